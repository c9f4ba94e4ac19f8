"""The data graph derived from the triples: PCSR partitions, signatures, edges, and how they follow changes."""
