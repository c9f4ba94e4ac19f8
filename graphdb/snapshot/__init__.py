"""What a statement sees of the data beside the graph: terms by id, property columns, and edges with their numbers."""
