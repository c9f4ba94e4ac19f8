"""Rows of a query, and how they are joined with the bindings of a pattern: tables, conditions, joins."""
