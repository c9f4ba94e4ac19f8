"""Turtle, TriG, RDF/XML and JSON-LD to blocks of N-Quads text."""
