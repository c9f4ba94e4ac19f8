"""Vertices, edges and paths of a result: what their ids stand for, as objects of Python and as structs of Arrow."""
