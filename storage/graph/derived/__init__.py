"""Edge labels and graphs that are derived from others: closures, subsets of edges, the graph oriented by degree."""
