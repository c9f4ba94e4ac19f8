"""What is derived of a graph that was loaded, before its file is closed: who opens it next finds it.

A session that loads a file, or brings up to date what an older version wrote, and asks nothing would leave all of it to
the first queries of the next one.  What takes longest to derive for its bytes comes first: of which kinds large
properties of edges are, columns of large properties, that of a key before others, which vertices large labels have,
chains of edges as forests, neighbours of large edge labels, where they take little more than the edges themselves or
are one at most, and properties of edges.  It is persisted as all else that was derived is
(:mod:`graphdb.storage.persisted.store`).  Small graphs need none of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from graphdb.common.errors import GraphDBError
from graphdb.common.values.types import INTEGER, MOMENT, STRING
from graphdb.snapshot.property_types import exact_only
from graphdb.storage.graph.degree_sketch import IN, OUT

if TYPE_CHECKING:
    from graphdb.relational.session.state import State
    from graphdb.relational.snapshot import Snapshot
    from graphdb.snapshot.edges import Edges
    from graphdb.storage.catalog import EdgeLabel

SHARE = 0.04
"""A share of what the loads and a migration took of the processor, which deriving may take; writing what it derives
comes to it."""

MOST = 4.0
"""Seconds of it at most: nobody is told why closing a file takes so long."""

LEAST = 1.0
"""Seconds of the processor that these took from which on it is done: to read names and statistics, and import what does
it, takes 0.02 to 0.13."""

LARGE = 100_000
"""Triples or values from which on it takes long enough to derive what is of them: some milliseconds."""

_KINDS, _TEXT, _NUMBER, _MOMENT, _VALUES = 30e-9, 15e-9, 30e-9, 80e-9, 90e-9
"""Seconds that it takes for each value of edges, each value of a column by its type, and each value of edges once more,
so that they stand as the edges do; …"""
_MEMBERS, _FOREST, _OUT, _LISTS = 8e-9, 10e-9, 12e-9, 20e-9
"""… for each vertex of a label, and of a forest, and for each edge of lists, which stand as edges do where they lead
out."""

_BYTES = 64
"""Bytes of memory that it takes for each value or edge while something is derived of it, at most."""

_KEYED = 8
"""Edges for each vertex that has some, from which on lists of neighbours take little more than the edges."""

_SHARED = 1.25
"""Vertices for each value of a key, at most: those of several vertex labels may have the same."""


def derive_ahead(state: State) -> None:
    """Derive what first queries need most; an error, as where memory is short, leaves it at what there is.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    spent = state.load_seconds + (state.migration_seconds or 0.0)
    if spent < LEAST:
        return
    import duckdb

    with suppress(GraphDBError, MemoryError, duckdb.Error), state.at_home():
        snapshot = state.snapshot()
        until = time.process_time() + min(spent * SHARE, MOST)
        most = snapshot.graph.memory_budget_bytes // _BYTES
        for count, seconds, derive in _wanted(snapshot):
            if count <= most and time.process_time() + count * seconds <= until:
                derive()


Wanted: TypeAlias = "tuple[int, float, Callable[[], object]]"
"""Of how many values or edges something is derived, how many seconds that takes for each, and what does it."""


def _wanted(snapshot: Snapshot) -> Iterator[Wanted]:
    """Yield what is worth it: what saves most for its bytes first."""
    edges, graph = snapshot.edges, snapshot.graph
    labels = [label for label in snapshot.names.edge_labels.values() if label.triples >= LARGE]
    described = sorted((label for label in labels if label.id in edges.described), key=lambda each: -each.triples)
    counts = {key: count for key, count in edges.counts().items() if count >= LARGE} if described else {}
    for key, count in counts.items():
        yield count, _KINDS, lambda key=key: edges.kinds(key)  # type: ignore[misc]
    columns = [label for label in labels if not exact_only(label) and snapshot.properties.in_memory(label)]
    times = [label for label in columns if snapshot.properties.type_of(label) == MOMENT]
    keys = sorted((each for each in columns if _tells_vertices(snapshot, each)), key=lambda each: -each.triples)[:1]
    yield from _columns(snapshot, keys)
    for one in sorted(snapshot.names.vertex_labels.values(), key=lambda each: -each.vertices):
        if one.vertices >= LARGE:
            yield one.vertices, _MEMBERS, lambda id=one.id: graph.members(id)  # type: ignore[misc]
    lists = [label for label in labels if label.resource_triples and label.id != graph.type_label]
    for label in lists:
        if min(label.max_out_degree, label.max_in_degree) <= 1 and _in_chains(snapshot, label):
            yield graph.resources, _FOREST, lambda id=label.id: graph.forest(id)  # type: ignore[misc]
    yield from _columns(snapshot, times)
    for label in lists:
        if label.triples >= _KEYED * max(label.subjects, label.objects) and _among_themselves(snapshot, label):
            yield label.triples, 4 * _LISTS, lambda id=label.id: graph.partition((id,), "both")  # type: ignore[misc]
    longest_first = sorted(lists, key=lambda each: -each.triples)
    for label in longest_first:  # along what leads to one vertex at most, others are gathered
        if label.max_out_degree <= 1:
            yield label.triples, _OUT, lambda id=label.id: graph.partition((id,), "out")  # type: ignore[misc]
        if label.max_in_degree <= 1:
            yield label.triples, _LISTS, lambda id=label.id: graph.partition((id,), "in")  # type: ignore[misc]
    for label in described:
        for key in counts.keys() & edges.keys_of((label.id,)):
            yield label.triples, _VALUES, partial(_values, edges, label, key)
    for label in longest_first:
        if label.triples >= _KEYED * label.objects:
            yield label.triples, _LISTS, lambda id=label.id: graph.partition((id,), "in")  # type: ignore[misc]
    yield from _columns(snapshot, [label for label in columns if label not in times and label not in keys])


def _values(edges: Edges, label: EdgeLabel, key: int) -> None:
    """Derive the values of a property of a label's edges, if they are read as an array."""
    if edges.plain(key):
        edges.values((label.id,), key)


def _tells_vertices(snapshot: Snapshot, label: EdgeLabel) -> bool:
    """Whether a property is a number that nearly every vertex has to itself: such a key is what queries return."""
    return snapshot.properties.type_of(label) == INTEGER and label.objects * _SHARED >= label.triples


def _columns(snapshot: Snapshot, labels: Sequence[EdgeLabel]) -> Iterator[Wanted]:
    """Yield columns, those that take longest first."""
    seconds = {MOMENT: _MOMENT, STRING: _TEXT}
    costs = [(label, seconds.get(snapshot.properties.type_of(label), _NUMBER)) for label in labels]
    for label, cost in sorted(costs, key=lambda each: -each[0].triples * each[1]):
        yield label.triples, cost, lambda label=label: snapshot.properties.array(label)  # type: ignore[misc]


def _among_themselves(snapshot: Snapshot, label: EdgeLabel) -> bool:
    """Whether the edges of a label join vertices of one vertex label: then they are asked for direction aside."""
    return any(out == into == label.triples for out, into in _edges_by_class(snapshot, label))


def _in_chains(snapshot: Snapshot, label: EdgeLabel) -> bool:
    """Whether edges of a label lead on to others, as far as vertex labels say so: along paths of any length."""
    return any(min(out, into) >= LARGE for out, into in _edges_by_class(snapshot, label))


def _edges_by_class(snapshot: Snapshot, label: EdgeLabel) -> Iterator[tuple[int, int]]:
    """Yield of each vertex label how many edges of a label start and end there."""
    at = snapshot.graph.source.at_class
    for one in snapshot.names.vertex_labels.values():
        out, into = (at(label.id, way, one.id) for way in (OUT, IN))
        if out is not None and into is not None:
            yield out[0], into[0]
