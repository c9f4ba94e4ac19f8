"""Counting without enumerating: from a pattern to a program of sums, loops and trees."""
