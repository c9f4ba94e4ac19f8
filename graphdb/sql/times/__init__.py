"""Expressions of dates, times and durations in SQL."""
