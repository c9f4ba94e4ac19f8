"""Pictures of graphs: a page that holds all that it needs, and asks no network for anything.

The drawing library is force-graph (MIT), whose licences, and those of what is in it, stand in ``assets/LICENSES.txt``.
"""

MOST = 2_000
"""Vertices, and edges, that a picture has at most unless somebody wants more."""

AROUND_MOST = 500
AROUND = f"MATCH (a)-[e]-(b) WHERE iri(a) = $iri RETURN a, e, b LIMIT {AROUND_MOST}"
"""Asks for the edges of a vertex, by its IRI, and their ends: what expanding it in a picture adds."""


def asset(name: str) -> str:
    """Return the text of a file that comes with the package."""
    from importlib.resources import files

    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
