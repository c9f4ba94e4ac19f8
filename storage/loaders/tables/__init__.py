"""Node and edge tables to triples: CSV, Parquet, data frames, GraphML and NetworkX."""
