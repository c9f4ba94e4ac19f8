"""Clauses as what columns in memory are computed by, beside their SQL."""
