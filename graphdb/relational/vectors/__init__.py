"""Clauses over rows in memory as operations on whole columns: what SQL would do, without a statement of SQL."""
