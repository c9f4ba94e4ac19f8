"""What the fields of delimited texts show, and so in which types DuckDB reads their columns."""
