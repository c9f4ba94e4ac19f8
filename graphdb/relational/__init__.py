"""Whole queries as SQL over matched bindings: clauses become relations, and matches start from their rows."""
