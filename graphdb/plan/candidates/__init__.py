"""Candidate sets made smaller along the edges of a pattern, and the candidate space that they span."""
