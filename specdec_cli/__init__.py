"""specdec: lossless speculative decoding of GGUF models on the command line."""
