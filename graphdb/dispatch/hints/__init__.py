"""Hints: what a statement of another language or database would be here, and names that the graph does not have."""
