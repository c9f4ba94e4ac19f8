"""Vertices with their labels, and what is said of vertices and edges, fetched for many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import chain, repeat
from operator import or_, setitem
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers as numbers_of
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.elements import Node, filled
from graphdb.common.values.literals import python_value_of
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.common.values.types import (
    AS_WRITTEN,
    VALUE,
    literal_sql,
    tidied,
)
from graphdb.relational.snapshot import Snapshot
from graphdb.results.path_materialization import distinct
from graphdb.snapshot.edges import Edges
from graphdb.snapshot.properties import Properties
from graphdb.snapshot.terms import Lookup, Part
from graphdb.sql.from_clause import NAMES_VIEW
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.python_values import pylist
from graphdb.storage.arrays.texts import taken

if TYPE_CHECKING:
    from graphdb.pattern.names import Names

Ids = NDArray[np.int64]

_WANTED = "_graphdb_wanted"

_PARTS = ("label", "subject", "object", "ordinal")
"""What an edge is known by."""

_FEW = 16
"""Edges up to which their properties are looked for one by one."""

_EXACT = ", ".join(str(int(kind)) for kind in Kind if AS_WRITTEN >> kind & 1)


@cache
def _value(kinds: int = -1) -> str:
    """Return SQL of a literal's value, of these kinds; of its text, where that says more; and of what the text is."""
    return f"{literal_sql('l', VALUE, kinds)}, CASE WHEN l.kind IN ({_EXACT}) THEN l.lexical END, l.datatype"


def _kinds(names: Names) -> int:
    """Return the kinds, as bits, of all literals that are objects."""
    return reduce(or_, (label.kinds for label in names.edge_labels.values()), 0)


Made = Callable[[], list[Any]]
"""Makes what was found: what that takes of the database is read already."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the terms of a result are looked up: one version of the data."""

    connection: Connection
    names: Names
    lookup: Lookup
    type_label: int | None
    described: frozenset[int]
    """Edge labels of which some edge has properties."""
    key_iri: Callable[[int], str]
    """Returns the IRI of a property key of edges."""
    edges: Edges | None = None
    """The edges of the state that is read, where it is the one in memory."""
    properties: Properties | None = None
    """The property columns of this state."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Source:
        """The data as a statement sees them that runs now."""
        store, edges = snapshot.store, snapshot.edges
        return cls(
            snapshot.connection,
            snapshot.names,
            snapshot.lookup,
            store.type_label,
            edges.described,
            edges.iri,
            edges,
            snapshot.properties,
        )

    def through(self, connection: Connection, snapshot: Snapshot) -> Source:
        """The same, read through another connection; nothing of it is in memory, so it may live long."""
        keys = {id: iri for iri, id in snapshot.edges.keys.items()}
        return replace(
            self,
            connection=connection,
            lookup=Lookup(connection, snapshot.store, 0),
            key_iri=keys.__getitem__,
            edges=None,
            properties=None,
        )


def nodes(source: Source, ids: Ids) -> Made:
    """Find vertices with labels and properties, and literals' values, in the order of their ids: int64, sorted."""
    resources, literals = _split(ids)
    looked_up = source.lookup.ready(wanted=len(ids))
    values: list[Any] = []
    if len(literals):
        values = source.lookup.values(literals) if looked_up else _read_terms(source, literals)
    if not len(resources):
        return lambda: values
    made = _looked_up(source, resources) if looked_up else _read(source, resources)
    return lambda: made() + values


def terms(source: Source, ids: Ids) -> Made:
    """Find the IRIs of vertices, and literals' values, in the order of their ids: int64, sorted."""
    resources, literals = _split(ids)
    lookup = source.lookup
    parts: tuple[Part, ...] = ("resources", "literals") if len(literals) else ("resources",)
    if not lookup.ready(*parts, wanted=len(ids)):
        found = _read_terms(source, ids)
        return lambda: found
    found = lookup.written_iris(resources) + lookup.values(literals)
    return lambda: found


def _split(ids: Ids) -> tuple[Ids, Ids]:
    at = np.searchsorted(ids, LITERAL_BASE)
    return ids[:at], ids[at:]


def _read(source: Source, resources: Ids) -> Made:
    """Read resources from the database."""
    connection = source.connection
    type_label = -1 if source.type_label is None else source.type_label
    iris = _read_terms(source, resources)
    with connection.view(_WANTED, {"id": resources}):
        classes = connection.arrow(
            f"SELECT t.subject, n.name FROM _graphdb.triple t "
            f"JOIN {_WANTED} w ON w.id = t.subject JOIN {NAMES_VIEW} n ON n.id = t.object "
            "WHERE t.label = $label ORDER BY t.subject ASC, n.name ASC",
            {"label": type_label},
        )
        values = connection.arrow(
            f"SELECT t.subject, t.label, {_value(_kinds(source.names))} FROM _graphdb.triple t "
            f"JOIN {_WANTED} w ON w.id = t.subject JOIN _graphdb.literal l ON l.id = t.object "
            f"WHERE t.object >= {LITERAL_BASE} ORDER BY t.subject ASC, t.label ASC, l.lexical ASC, l.id ASC"
        )
    classed = plain(classes.column(0)), pylist(classes.column(1))
    subjects, labels = (plain(values.column(i)) for i in range(2))
    properties = subjects, labels, _values(values, 2)
    return lambda: _nodes(source.names, resources, iris, classed, properties)


def _read_terms(source: Source, ids: Ids) -> list[Any]:
    """Read IRIs and values from the database."""
    with source.connection.view(_WANTED, {"id": ids}):
        found = source.connection.arrow(
            f"SELECT r.iri, {_value(_kinds(source.names))} FROM {_WANTED} w "
            "LEFT JOIN _graphdb.resource r ON r.id = w.id LEFT JOIN _graphdb.literal l ON l.id = w.id ORDER BY w.id ASC"
        )
    resources = int(np.searchsorted(ids, LITERAL_BASE))
    return pylist(found.column(0).slice(0, resources)) + _values(found.slice(resources), 1)


def _values(table: arrow.Table, at: int) -> list[Any]:
    """Return the values of literals, in columns from a number on."""
    values = list(map(tidied, pylist(table.column(at))))
    texts, datatypes = (table.column(at + i).combine_chunks() for i in (1, 2))
    if texts.null_count < len(texts):
        for i in np.flatnonzero(texts.is_valid()).tolist():
            values[i] = python_value_of(arrow.item(texts, i), arrow.item(datatypes, i))
    return values


def _looked_up(source: Source, resources: Ids) -> Made:
    """Take resources from memory."""
    lookup, names = source.lookup, source.names
    subjects, labels, objects = lookup.about(resources)
    classed: tuple[Ids, list[str]] = subjects[:0], []
    is_literal = objects >= LITERAL_BASE
    if not is_literal.all():
        classed = _classes(names, subjects[~is_literal], objects[~is_literal])
        subjects, labels, objects = subjects[is_literal], labels[is_literal], objects[is_literal]
    if ((subjects[1:] == subjects[:-1]) & (labels[1:] == labels[:-1])).any():
        # Several values stand in the order of their lexical forms.
        lexical = arrow.pylist(lookup.lexical(numbers_of(objects - LITERAL_BASE)))
        sequence = sorted(zip(subjects.tolist(), labels.tolist(), lexical, objects.tolist(), strict=True))
        objects = np.array([literal for *_, literal in sequence], np.int64)
    iris = lookup.written_iris(resources)
    properties = subjects, labels, lookup.values(objects)
    return lambda: _nodes(names, resources, iris, classed, properties)


def _classes(names: Names, subjects: Ids, classes: Ids) -> tuple[Ids, list[str]]:
    """Return (vertex, label), both sorted, of vertices (sorted) and ids of classes."""
    found, which = distinct(classes)
    known = np.array([label in names.vertex_labels for label in found.tolist()])  # without that of created vertices
    subjects, which = subjects[known[which]], which[known[which]]
    written = [names.class_name(label) for label in found.tolist()]
    rank = np.argsort(np.array(written, object)).argsort()[which]
    order = np.lexsort((rank, subjects))
    return subjects[order], list(map(written.__getitem__, which[order].tolist()))


def _nodes(
    names: Names,
    resources: Ids,
    iris: list[str],
    classes: tuple[Ids, list[str]],
    properties: tuple[Ids, Ids, list[Any]],
) -> list[Any]:
    """Make nodes of their IRIs, of (vertex, label), and of (vertex, key, value): both sorted, a key may stand again."""
    return filled(
        Node,
        len(resources),
        iri=iris,
        labels=_grouped(classes[0], tuple(classes[1]), resources),
        properties=_properties(names.edge_name, properties, resources),
    )


def facts(source: Source, edges: Sequence[Ids]) -> list[dict[str, Any]]:
    """Return the properties of edges: columns of label, start, end and ordinal, int64."""
    made: list[dict[str, Any]] = [{} for _ in range(len(edges[0]))]
    found, which = distinct(edges[0])
    rest = []
    for number, label in enumerate(found.tolist()):
        if label in source.described and (source.edges is None or source.edges.keys_of((label,))):
            at = np.flatnonzero(which == number)
            if not _gathered(source, [part[at] for part in edges], at, made):
                rest.append(at)
    if rest:
        places = np.concatenate(rest)
        looked_up = _facts_by_sql(source, np.array([part[places] for part in edges]))
        deque(map(setitem, repeat(made), places.tolist(), looked_up), maxlen=0)
    return made


def _gathered(source: Source, edges: Sequence[Ids], places: Ids, into: list[dict[str, Any]]) -> bool:
    """Put the properties of edges of one label in their places, from columns in memory; or return False."""
    described = None if source.edges is None else source.edges.described_by(edges, lists=True)
    if described is None:
        return False
    for iri, column in described.properties.items():
        values, owners = taken(column, described.every), places
        if values.null_count:
            owners = places[values.is_valid()]
            values = values.drop_null()
        mine = map(into.__getitem__, owners.tolist())
        deque(map(setitem, mine, repeat(source.names.written(iri)), pylist(values)), maxlen=0)
    return True


def _facts_by_sql(source: Source, edges: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return what :func:`facts` does, from the database."""
    wanted, which = np.unique(edges, axis=1, return_inverse=True)
    found = (
        _facts_of_few(source, wanted)
        if wanted.shape[1] <= _FEW and source.lookup.ready("literals", wanted=_FEW)
        else None
    )
    owners, keys, values = _facts_joined(source, wanted) if found is None else found

    def name(key: int) -> str:
        return source.names.written(source.key_iri(key))

    made = _properties(name, (owners, keys, values), np.arange(wanted.shape[1]))
    return list(map(dict, map(made.__getitem__, which.reshape(-1).tolist())))


def _facts_joined(source: Source, wanted: NDArray[np.int64]) -> tuple[Ids, Ids, list[Any]]:
    """Return (edge, key, value) of edges, by their numbers: sorted, a key may stand again."""
    columns = {part: np.ascontiguousarray(column) for part, column in zip(_PARTS, wanted, strict=True)}
    with source.connection.view(_WANTED, {"number": np.arange(wanted.shape[1]), **columns}):
        found = source.connection.arrow(
            f"SELECT w.number, e.key, {_value()} FROM {_WANTED} w "
            f"JOIN _graphdb.edge_property e USING ({', '.join(_PARTS)}) JOIN _graphdb.literal l ON l.id = e.value "
            "ORDER BY w.number ASC, e.key ASC, l.lexical ASC, l.id ASC"
        )
    owners, keys = (plain(found.column(i)) for i in range(2))
    return owners, keys, _values(found, 2)


def _facts_of_few(source: Source, wanted: NDArray[np.int64]) -> tuple[Ids, Ids, list[Any]] | None:
    """Return the same of a handful, whose rows DuckDB finds by ids; None where an edge has several values of a key."""
    given: dict[str, object] = {}
    conditions = []
    for part, ids in zip(_PARTS[:3], wanted, strict=False):
        names = {f"{part}{i}": id for i, id in enumerate(dict.fromkeys(ids.tolist()))}
        given |= names
        conditions.append(f"{part} IN ({', '.join(f'${name}' for name in names) or 'NULL'})")
    rows = source.connection.arrow(
        f"SELECT {', '.join(_PARTS)}, key, value FROM _graphdb.edge_property WHERE {' AND '.join(conditions)}", given
    )
    *parts, keys, literals = (plain(rows.column(i)) for i in range(6))
    at, owners = (np.array(parts)[:, :, np.newaxis] == wanted[:, np.newaxis]).all(axis=0).nonzero()
    order = np.lexsort((keys[at], owners))
    owners, keys, literals = owners[order], keys[at][order], literals[at][order]
    if ((owners[1:] == owners[:-1]) & (keys[1:] == keys[:-1])).any():  # they stand in the order of their texts
        return None
    return owners, keys, source.lookup.values(literals)


def _properties(name: Callable[[int], str], properties: tuple[Ids, Ids, list[Any]], of: Ids) -> list[dict[str, Any]]:
    """Return a dictionary for each of some owners (sorted), of (owner, key, value): sorted, a key may stand again."""
    owners, keys, values = properties
    again = (owners[1:] == owners[:-1]) & (keys[1:] == keys[:-1])
    if again.any():
        first = np.flatnonzero(np.append(True, ~again))
        ends = np.append(first[1:], len(owners))
        several = [values[begin:end] for begin, end in zip(first.tolist(), ends.tolist(), strict=True)]
        values = [value if len(value) > 1 else value[0] for value in several]
        owners, keys = owners[first], keys[first]
    found, which = distinct(keys)
    written = list(map(name, found.tolist()))
    made: list[dict[str, Any]] = [{} for _ in range(len(of))]
    first = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))[: len(owners)]
    mine = map(made.__getitem__, np.searchsorted(of, owners[first]).tolist())
    each = chain.from_iterable(map(repeat, mine, np.diff(np.append(first, len(owners))).tolist()))
    deque(map(setitem, each, map(written.__getitem__, which.tolist()), values), maxlen=0)
    return made


def _grouped(subjects: Ids, values: Sequence[Any], of: Ids) -> Iterable[Sequence[Any]]:
    """Return the values of each of some subjects; those of all stand side by side, sorted."""
    if not len(subjects):
        return repeat(values, len(of))
    begin, end = np.searchsorted(subjects, of), np.searchsorted(subjects, of, side="right")
    return map(values.__getitem__, map(slice, begin.tolist(), end.tolist()))
