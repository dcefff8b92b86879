"""Finding the fastest settings of a pair on this machine."""
