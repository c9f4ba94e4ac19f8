"""Values: their types, how DuckDB and RDF store them, vertices, edges and paths, dates and times."""
