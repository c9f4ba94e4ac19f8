"""Counts on the CPU that do not go through the matches: weights, loops, trees, twins and cliques."""
