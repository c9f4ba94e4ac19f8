"""Which matches of a continuous query a batch adds and takes away."""
