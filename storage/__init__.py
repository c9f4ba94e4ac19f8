"""What the file holds and what is derived from it: catalog, dictionary, triples, partitions, signatures, loaders."""
