"""Subqueries, and calls of queries and procedures, joined with the rows that they run for."""
