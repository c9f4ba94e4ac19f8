"""Vertices of a result from columns: their labels, and the values of one property after the other.

Which properties some vertices may have their labels say: it is counted how many triples of an edge label start at
vertices of a vertex label.  So the columns of these are read alone, and no more of the file than the classes and IRIs
of the vertices.  What is no column, because a vertex has several values or SQL no type for them, is read beside them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from operator import setitem
from typing import Any

import numpy as np

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.values.elements import Node, filled
from graphdb.common.values.types import Type
from graphdb.pattern.names import Names
from graphdb.relational.elements.source import Ids, Made, Source
from graphdb.results.path_materialization import distinct
from graphdb.results.plain_values import plain_values
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.python_values import pylist
from graphdb.storage.arrays.small_joins import SMALL
from graphdb.storage.graph.pcsr import elements_of

LEAST = 32
"""Vertices from which on all columns are read: for a handful those are taken that are there."""

MOST = 64
"""Properties of which there are columns, at most."""

_WANTED = "_graphdb_wanted"

_LISTED = "SELECT unnest($ids::BIGINT[])"
"""SQL of a handful of ids."""


Rows = tuple[Ids, Ids, list[Any]]
"""Owners, keys and values: sorted, a key may stand again."""


def nodes(source: Source, resources: Ids, read: Callable[[Source, Ids, Sequence[int]], Rows]) -> Made | None:
    """Find vertices with labels and properties, of sorted ids; None where their labels do not say which these are.

    ``read`` reads the values of properties that are no columns, of the vertices and these labels.
    """
    if source.properties is None:
        return None
    classified = classes_of(source, resources)
    labels = _properties(source, resources, *classified)
    if labels is None:
        return None
    columns = _columns(source, resources, labels, at_hand=len(resources) < LEAST)
    if columns is None:
        return None
    others = [label for label in labels if label not in columns]
    rest = together(*read(source, resources, others)) if others else None
    iris = iris_of(source, resources)
    names = {label: source.names.edge_name(label) for label in labels}
    labelled = labels_of(source.names, *classified)

    def made() -> list[Any]:
        properties: list[dict[str, Any]] = [{} for _ in range(len(resources))]
        for label, name in names.items():
            if label in columns:
                there, values = _there(*columns[label])
            elif rest is not None:
                at = np.flatnonzero(rest[1] == label)
                there, values = np.searchsorted(resources, rest[0][at]), list(map(rest[2].__getitem__, at.tolist()))
            owners = properties if there is None else map(properties.__getitem__, there.tolist())
            deque(map(setitem, owners, repeat(name), values), maxlen=0)
        classes = grouped(labelled[0], tuple(labelled[1]), resources)
        return filled(Node, len(resources), iri=pylist(iris), labels=classes, properties=properties)

    return made


def _there(type: Type, column: arrow.Array) -> tuple[Ids | None, list[Any]]:
    """Return which vertices have a value, None for all, and the values of these."""
    if arrow.is_union(column.type):  # whose members say what is null
        values = plain_values(type, column)
        there = np.array([i for i, value in enumerate(values) if value is not None], np.int64)
        return there, list(map(values.__getitem__, there.tolist()))
    if not column.null_count:
        return None, plain_values(type, column)
    return np.flatnonzero(column.is_valid()), plain_values(type, column.drop_null())


def classes_of(source: Source, resources: Ids) -> tuple[Ids, Ids]:
    """Return (vertex, class) of some vertices, in any order."""
    label = source.type_label
    assert source.graph is not None
    if label is None:
        return resources[:0], resources[:0]
    if source.graph.has_partition((label,), "out"):
        partition = source.graph.partition((label,), "out")
        begins, lengths = partition.ranges_of(resources)
        classes = partition.neighbours[elements_of(begins, lengths)].astype(np.int64)
        return np.repeat(resources, lengths), classes
    sql, where = "SELECT t.subject, t.object FROM _graphdb.triple t", f"WHERE t.label = {int(label)}"
    if len(resources) <= SMALL:
        some = f"AND t.subject IN ({_LISTED})"
        found = source.connection.arrow(f"{sql} {where} {some}", {"ids": resources.tolist()})
    else:
        with source.connection.view(_WANTED, {"id": resources}):
            found = source.connection.arrow(f"{sql} JOIN {_WANTED} w ON w.id = t.subject {where}")
    return plain(found.column(0)), plain(found.column(1))


def described_columns(source: Source, resources: Ids) -> dict[int, tuple[Type, arrow.Array]] | None:
    """Return all properties of vertices, of sorted ids, as columns, by label; None where they are none."""
    if source.properties is None:
        return None
    labels = _properties(source, resources, *classes_of(source, resources))
    if labels is None:
        if not source.lookup.ready("described", wanted=len(resources)):
            return None
        labels = [label.id for label in source.names.edge_labels.values() if label.kinds]
    columns = _columns(source, resources, labels) if len(labels) <= MOST else None
    return None if columns is None or len(columns) < len(labels) else columns


def _properties(source: Source, resources: Ids, subjects: Ids, classes: Ids) -> list[int] | None:
    """Return the properties that some vertices may have, by their ids; None where their labels do not say them."""
    assert source.store is not None
    found, which = distinct(classes)
    starting = [source.store.starting_at(one) for one in found.tolist()]
    known = sorted((len(labels), i) for i, labels in enumerate(starting) if labels is not None)
    if len(known) < len(starting):
        return None
    rank = np.empty(len(known), np.int64)  # of several labels of a vertex that with the fewest properties says them all
    rank[[i for _, i in known]] = np.arange(len(known))
    least = np.full(len(resources), len(known))
    np.minimum.at(least, np.searchsorted(resources, subjects), rank[which])
    if bool((least == len(known)).any()):  # one has no label
        return None
    chosen = [starting[known[i][1]] or () for i in np.flatnonzero(np.bincount(least)).tolist()]
    labels = sorted({label for each in chosen for label in each if source.names.edge_labels[label].kinds})
    return labels if len(labels) <= MOST else None


def _columns(
    source: Source, resources: Ids, labels: Sequence[int], *, at_hand: bool = False
) -> dict[int, tuple[Type, arrow.Array]] | None:
    """Return the types and values of those properties that are columns, if only those that are ``at_hand``; None where
    they had better be joined.
    """
    properties, ids = source.properties, numbers(resources)
    assert properties is not None
    known = [source.names.edge_labels[label] for label in labels]
    if at_hand:
        known = list(filter(properties.at_hand, known))
    columns = list(filter(properties.gathers, known))
    if properties.joins(columns, len(resources)):
        return None
    properties.read_ahead(columns)
    found = ((label, properties.gather(label, ids)) for label in columns)
    return {label.id: (properties.type_of(label), whole(column)) for label, column in found}


def iris_of(source: Source, resources: Ids) -> arrow.Array:
    """Return the IRIs of resources."""
    if source.lookup.iris_pay(len(resources)):
        found: arrow.Array = source.lookup.iris(numbers(resources))
        return found
    if len(resources) <= SMALL:
        sql = f"SELECT iri FROM _graphdb.resource WHERE id IN ({_LISTED}) ORDER BY id ASC"
        iris = source.connection.arrow(sql, {"ids": resources.tolist()}).column(0)
        if len(iris) == len(resources):
            return whole(iris)
    with source.connection.view(_WANTED, {"id": resources}):
        sql = f"SELECT r.iri FROM {_WANTED} w LEFT JOIN _graphdb.resource r ON r.id = w.id ORDER BY w.id ASC"
        return whole(source.connection.arrow(sql).column(0))


def whole(column: arrow.Array | arrow.ChunkedArray) -> arrow.Array:
    """Return a column in one piece."""
    return column if isinstance(column, arrow.Array) else column.combine_chunks()


# --- labels and properties of many owners


def labels_of(names: Names, subjects: Ids, classes: Ids) -> tuple[Ids, list[str]]:
    """Return (vertex, label), both sorted, of vertices (sorted) and ids of classes."""
    found, which = distinct(classes)
    known = np.array([label in names.vertex_labels for label in found.tolist()])  # without that of created vertices
    subjects, which = subjects[known[which]], which[known[which]]
    written = [names.class_name(label) for label in found.tolist()]
    rank = np.argsort(np.array(written, object)).argsort()[which]
    order = np.lexsort((rank, subjects))
    return subjects[order], list(map(written.__getitem__, which[order].tolist()))


def together(owners: Ids, keys: Ids, values: list[Any]) -> tuple[Ids, Ids, list[Any]]:
    """Return (owner, key, value), sorted, with a list for several values of one owner and key."""
    again = (owners[1:] == owners[:-1]) & (keys[1:] == keys[:-1])
    if not again.any():
        return owners, keys, values
    first = np.flatnonzero(np.append(True, ~again))
    ends = np.append(first[1:], len(owners))
    several = [values[begin:end] for begin, end in zip(first.tolist(), ends.tolist(), strict=True)]
    return owners[first], keys[first], [value if len(value) > 1 else value[0] for value in several]


def properties_of(name: Callable[[int], str], properties: tuple[Ids, Ids, list[Any]], of: Ids) -> list[dict[str, Any]]:
    """Return a dictionary for each of some owners (sorted), of (owner, key, value): sorted, a key may stand again."""
    owners, keys, values = together(*properties)
    found, which = distinct(keys)
    written = list(map(name, found.tolist()))
    made: list[dict[str, Any]] = [{} for _ in range(len(of))]
    first = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))[: len(owners)]
    mine = map(made.__getitem__, np.searchsorted(of, owners[first]).tolist())
    each = chain.from_iterable(map(repeat, mine, np.diff(np.append(first, len(owners))).tolist()))
    deque(map(setitem, each, map(written.__getitem__, which.tolist()), values), maxlen=0)
    return made


def grouped(subjects: Ids, values: Sequence[Any], of: Ids) -> Iterable[Sequence[Any]]:
    """Return the values of each of some subjects; those of all stand side by side, sorted."""
    if not len(subjects):
        return repeat(values, len(of))
    begin, end = np.searchsorted(subjects, of), np.searchsorted(subjects, of, side="right")
    return map(values.__getitem__, map(slice, begin.tolist(), end.tolist()))
