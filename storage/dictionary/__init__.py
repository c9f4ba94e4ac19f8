"""The dictionary: RDF terms and their ids, found by hash, and literals counted by kind."""
