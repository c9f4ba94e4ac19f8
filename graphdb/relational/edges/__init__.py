"""From triples to edges: which of several parallel edges a match takes."""
