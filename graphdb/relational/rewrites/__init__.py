"""Rewrites of a query's syntax before it is bound."""
