"""Results: rows as Python values, Arrow and data frames, and how they are shown."""
