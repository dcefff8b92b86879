"""`specdec worker`: this machine's devices, lent to others over the network by ggml's RPC."""
