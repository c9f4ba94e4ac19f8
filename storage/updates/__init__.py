"""Triples and edges in and out of the file: first loads, appends, single changes and VACUUM."""
