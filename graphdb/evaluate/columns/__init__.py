"""Values of the evaluator in columns of Arrow and DuckDB."""
