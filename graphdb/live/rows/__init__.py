"""The rows of a continuous query that a batch adds and takes away, as temporary tables."""
