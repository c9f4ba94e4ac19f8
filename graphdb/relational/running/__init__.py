"""Programs under way: what their steps make, by arrays where rows are in memory, and else by SQL."""
