"""Paths searched for one by one, in Python."""
