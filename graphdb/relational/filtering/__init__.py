"""Conditions on single vertices, before the match: sorted arrays of candidates."""
