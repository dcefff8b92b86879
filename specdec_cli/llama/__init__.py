"""llama.cpp through its bindings: the only package that imports llama_cpp."""
