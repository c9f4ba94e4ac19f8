"""Counts on the CPU that do not enumerate the matches: weights, loops, trees, twins and cliques."""
