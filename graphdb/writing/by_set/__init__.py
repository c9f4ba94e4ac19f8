"""Clauses that write, each as SQL over all of its rows."""
