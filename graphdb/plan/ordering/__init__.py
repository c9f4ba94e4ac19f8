"""The matching order: cardinality estimates, cost, exact and greedy search, and random walks through the data."""
