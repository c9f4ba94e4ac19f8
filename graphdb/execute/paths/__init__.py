"""Breadth-first searches on the CPU: shortest paths, their number, and the vertices that are reached."""
