"""Paths in patterns: taken apart, unrolled to single edges, or left to a search."""
