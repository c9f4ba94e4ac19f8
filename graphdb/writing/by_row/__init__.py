"""Clauses that write, one row after the other."""
