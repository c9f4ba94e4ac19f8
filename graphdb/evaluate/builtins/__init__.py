"""The language's operators, functions and aggregates over Python values."""
