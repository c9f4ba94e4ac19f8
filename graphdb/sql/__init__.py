"""Expressions of the language as SQL: operators, functions, comparisons, aggregates and literals."""
