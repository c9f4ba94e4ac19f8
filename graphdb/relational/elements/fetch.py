"""Vertices with their labels, and what is said of vertices and edges, fetched for many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache, reduce
from itertools import repeat
from operator import or_, setitem
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers as numbers_of
from graphdb.common.values.elements import Node, filled
from graphdb.common.values.literals import python_value_of
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.common.values.types import (
    AS_WRITTEN,
    VALUE,
    literal_sql,
    tidied,
)
from graphdb.relational.elements import vertices
from graphdb.relational.elements.source import Ids, Made, Source
from graphdb.relational.elements.vertices import Rows, grouped, labels_of, properties_of
from graphdb.results.path_materialization import distinct
from graphdb.results.plain_values import plain_values
from graphdb.snapshot.terms import Part
from graphdb.sql.from_clause import NAMES_VIEW
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.python_values import pylist
from graphdb.storage.arrays.texts import taken

if TYPE_CHECKING:
    from graphdb.pattern.names import Names

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


def nodes(source: Source, ids: Ids) -> Made:
    """Find vertices with labels and properties, and literals' values, in the order of their ids: int64, sorted."""
    resources, literals = _split(ids)
    few = len(resources) < vertices.LEAST
    looked_up = few and source.lookup.ready(wanted=len(ids))
    made = None if looked_up or not len(resources) else vertices.nodes(source, resources, _read_values)
    if not few:
        looked_up = (made is None or len(literals) > 0) and source.lookup.ready(wanted=len(ids))
    values: list[Any] = []
    if len(literals):
        values = source.lookup.values(literals) if looked_up else _read_terms(source, literals)
    if not len(resources):
        return lambda: values
    if made is None:
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
    classed = plain(classes.column(0)), pylist(classes.column(1))
    properties = _read_values(source, resources)
    return lambda: _nodes(source.names, resources, iris, classed, properties)


def _read_values(source: Source, resources: Ids, labels: Sequence[int] | None = None) -> Rows:
    """Read the properties of resources, or those of some labels, from the database."""
    among = "" if labels is None else " AND t.label IN (SELECT unnest($labels::BIGINT[]))"
    with source.connection.view(_WANTED, {"id": resources}):
        values = source.connection.arrow(
            f"SELECT t.subject, t.label, {_value(_kinds(source.names))} FROM _graphdb.triple t "
            f"JOIN {_WANTED} w ON w.id = t.subject JOIN _graphdb.literal l ON l.id = t.object "
            f"WHERE t.object >= {LITERAL_BASE}{among} "
            "ORDER BY t.subject ASC, t.label ASC, l.lexical ASC, l.id ASC",
            None if labels is None else {"labels": [*labels]},
        )
    subjects, keys = (plain(values.column(i)) for i in range(2))
    return subjects, keys, _values(values, 2)


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
        classed = labels_of(names, subjects[~is_literal], objects[~is_literal])
        subjects, labels, objects = subjects[is_literal], labels[is_literal], objects[is_literal]
    if ((subjects[1:] == subjects[:-1]) & (labels[1:] == labels[:-1])).any():
        # Several values stand in the order of their lexical forms.
        lexical = arrow.pylist(lookup.lexical(numbers_of(objects - LITERAL_BASE)))
        sequence = sorted(zip(subjects.tolist(), labels.tolist(), lexical, objects.tolist(), strict=True))
        objects = np.array([literal for *_, literal in sequence], np.int64)
    iris = lookup.written_iris(resources)
    properties = subjects, labels, lookup.values(objects)
    return lambda: _nodes(names, resources, iris, classed, properties)


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
        labels=grouped(classes[0], tuple(classes[1]), resources),
        properties=properties_of(names.edge_name, properties, resources),
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
    described = None if source.edges is None else source.edges.described_by(edges)
    if described is None:
        return False
    for iri, (type, column) in described.properties.items():
        values, owners = taken(column, described.every), places
        if values.null_count:
            owners = places[values.is_valid()]
            values = values.drop_null()
        mine = map(into.__getitem__, owners.tolist())
        deque(map(setitem, mine, repeat(source.names.written(iri)), plain_values(type, values)), maxlen=0)
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

    made = properties_of(name, (owners, keys, values), np.arange(wanted.shape[1]))
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
