"""Continuous queries that aggregate: their groups, and the values that each aggregate has seen."""
