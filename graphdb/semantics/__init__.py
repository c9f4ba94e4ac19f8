"""Semantic analysis of queries: scopes, static types, aggregation; before, and whichever way, they run."""
