"""Pictures of graphs: a page that holds all that it needs, and asks no network for anything.

The drawing library is force-graph (MIT), whose licences, and those of what is in it, stand in ``assets/LICENSES.txt``.
"""

MOST = 2_000
"""Vertices, and edges, that a picture has at most unless somebody wants more."""
