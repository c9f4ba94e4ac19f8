"""Groups of rows: their numbers, and aggregates of what they have."""
