"""What miners are built from: a table of embeddings, its extension, aggregation by canonical pattern, and filters."""
