"""Rows with equal values, counted before they are grouped."""
