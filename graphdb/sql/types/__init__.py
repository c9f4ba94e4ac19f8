"""Operators and functions as SQL, by the type of their values."""
