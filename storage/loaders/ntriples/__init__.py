"""N-Triples and N-Quads to terms and rows, as machine code."""
