"""Statements in cells of a notebook: ``%load_ext graphdb``, then ``%cypher`` and ``%%cypher``."""
