"""Operators on columns by the types of their values: texts, lists, times, and numbers of two types."""
