"""Lowering: the clauses of a query become matches, searches of paths, and SQL that joins and projects their rows."""
