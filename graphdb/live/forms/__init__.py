"""Queries of several clauses in the form that delta plans follow: linear ones, whose names are unique."""
