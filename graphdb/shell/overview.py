"""What a database holds, in a few lines: the answer to ``.schema``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphdb.common import render
from graphdb.dispatch.completion import short_names

if TYPE_CHECKING:
    from graphdb.database import Database
    from graphdb.storage.catalog import EdgeLabel

_UNCUT = 1_000_000


def schema(database: Database) -> Iterator[str]:
    """Yield the lines of ``.schema``: labels with counts, and what each edge label leads to."""
    vertex_labels = sorted(database.vertex_labels(), key=lambda label: (-label[1], label[0]))
    edge_labels = sorted(database.edge_labels(), key=lambda label: (-label.triples, label.iri))
    if not vertex_labels and not edge_labels:
        yield "the graph is empty: LOAD 'file.nt';"
        return
    short = short_names(name for name, _ in vertex_labels)
    vertices = [(short[name], count, name) for name, count in vertex_labels]
    yield from render.table(("vertex label", "vertices", "name"), vertices, _UNCUT)
    yield ""
    short = short_names(label.iri for label in edge_labels)
    edges = [
        (short[label.iri], label.triples, ", ".join(_leads_to(label)), database.written(label.iri))
        for label in edge_labels
    ]
    yield from render.table(("edge label", "triples", "leads to", "name"), edges, _UNCUT)


def _leads_to(label: EdgeLabel) -> Iterator[str]:
    """Yield the kinds of the objects of an edge label: vertices, and kinds of values."""
    from graphdb.common.values.terms import Kind

    if label.resource_triples:
        yield "vertices"
    yield from (kind.name.lower() for kind in Kind if label.kinds >> kind & 1)
