"""Which statement goes where: pattern queries, tables of them, explanations, loads, prefixes, and DuckDB's SQL."""
