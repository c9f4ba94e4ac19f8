"""Statements that are DuckDB's SQL."""
