"""What a statement mines: edges of the database, by their labels and those of vertices, or the rows of a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.errors import BindError, TypeMismatchError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import Base, Column
from graphdb.grammar.syntax import Word
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import unique

Ints = NDArray[np.int64]
Words = Sequence[Sequence[Word]]

_BYTES = 120
"""Bytes of memory for each edge, roughly, while a graph is made."""


def graph_of(
    snapshot: Snapshot, edges: Words, vertices: Words, directed: bool, text: str, limits: Limits
) -> MiningGraph:
    """Return the graph of the database's edges between resources, as mining reads it; made once for one state of them.

    Parameters
    ----------
    edges, vertices
        Names of labels: of the edges that belong to the graph (none for all but ``rdf:type``), and of the vertices
        (none for all), whose other labels are then not looked at.

    Raises
    ------
    BindError
        A name is unknown, or of an edge label that only leads to values.
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say.
    """
    labels = tuple(sorted({_edge_label(snapshot, words, text) for words in edges}))
    classes = tuple(sorted({snapshot.names.vertex_label(words, text).id for words in vertices}))
    key = ("mining", labels, classes, directed, bool(edges), bool(vertices))
    return snapshot.graph.derived(
        key, lambda: _made(snapshot, labels if edges else None, classes if vertices else None, directed, limits)
    )


def graph_of_rows(
    snapshot: Snapshot,
    table: arrow.Table,
    columns: Sequence[Column],
    directed: bool,
    text: str,
    at: int,
    limits: Limits,
) -> MiningGraph:
    """Return the graph of a query's rows: a column of edges, or two columns of vertices, which an edge joins each time.

    Rows with a null are left out, and so are edges to values.  Edges of vertices have no label.

    Raises
    ------
    TypeMismatchError
        The rows are something else; ``at`` is where the query stands in the text.
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say.
    """
    kinds = [column.type.base for column in columns]
    if kinds not in ([Base.EDGE], [Base.NODE, Base.NODE]):
        found = ", ".join(f"{column.name}: {column.type}" for column in columns)
        raise TypeMismatchError(
            f"MINE takes rows of one edge or of two vertices, found {found}",
            text=text,
            position=at,
            hint="FROM (MATCH (a)-[e]->(b) … RETURN e), or RETURN a, b",
        )
    for i in range(len(columns)):
        table = table.take(np.flatnonzero(table.column(i).is_valid()))
    limits.need(len(table) * _BYTES, f"{len(table):,} edges")
    if kinds == [Base.EDGE]:
        edges = table.column(0).combine_chunks()
        source, target, label = (values(edges.field(name)).astype(np.int64) for name in ("start", "end", "label"))
    else:
        source, target = (values(table.column(i)).astype(np.int64) for i in (0, 1))
        label = np.full(len(source), -1)
    proper = (source < LITERAL_BASE) & (target < LITERAL_BASE)
    source, target, label = source[proper], target[proper], label[proper]
    labelled = _labels_of_vertices(snapshot, None)
    return limits.cancellable(
        len(source),
        lambda: MiningGraph.of(source, target, label, directed=directed, vertex_labels=labelled),
    )


def _edge_label(snapshot: Snapshot, words: Sequence[Word], text: str) -> int:
    label = snapshot.names.edge_label(words, text)
    known = snapshot.graph.statistics((label.id,)) if label.id >= 0 else None
    if known is not None and known.triples and not known.resource_triples:
        raise BindError(
            f"'{snapshot.names.written(label.iri)}' leads to values only, and mining takes edges between vertices",
            text=text,
            position=words[0].span.start,
        )
    return label.id


def _made(
    snapshot: Snapshot, labels: tuple[int, ...] | None, classes: tuple[int, ...] | None, directed: bool, limits: Limits
) -> MiningGraph:
    data = snapshot.graph
    known = data.statistics(tuple(label for label in labels if label >= 0) if labels is not None else None)
    limits.need(known.resource_triples * _BYTES, f"{known.resource_triples:,} edges")
    if labels is None:
        label, source, target = data.source.any_edges()
    else:
        runs = [(label, *data.source.edges(label)) for label in labels if label >= 0]
        source = np.concatenate([np.empty(0, np.int64), *(run[1] for run in runs)])
        target = np.concatenate([np.empty(0, np.int64), *(run[2] for run in runs)])
        label = np.repeat(np.array([run[0] for run in runs], np.int64), [len(run[1]) for run in runs])
        between = target < data.resources
        source, target, label = source[between], target[between], label[between]
    labelled = _labels_of_vertices(snapshot, classes)

    def make() -> MiningGraph:
        ends = source, target, label
        if classes is not None:
            chosen = np.zeros(data.resources, bool)
            chosen[labelled[0]] = True
            inside = chosen[source] & chosen[target]
            ends = source[inside], target[inside], label[inside]
        return MiningGraph.of(*ends, directed=directed, vertex_labels=labelled)

    return limits.cancellable(len(source), make)


def _labels_of_vertices(snapshot: Snapshot, classes: tuple[int, ...] | None) -> tuple[Ints, Ints]:
    """Return (vertex, label) of all labels, or of some: those of classes below them included, where they are read."""
    names, data = snapshot.names, snapshot.graph
    if data.type_label is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    vertices, labels = data.source.edges(data.type_label)
    seen = np.isin(labels, np.array(list(names.vertex_labels), np.int64))
    vertices, labels = vertices[seen], labels[seen]
    wanted = tuple(names.vertex_labels) if classes is None else classes
    below = {label: names.under(label) for label in wanted}
    if classes is None and all(len(under) == 1 for under in below.values()):
        return vertices, labels
    found = [(unique(vertices[np.isin(labels, under)]), label) for label, under in below.items()]
    return (
        np.concatenate([np.empty(0, np.int64), *(members for members, _ in found)]),
        np.repeat(np.array([label for _, label in found], np.int64), [len(members) for members, _ in found]),
    )
