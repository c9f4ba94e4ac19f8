"""Vertices with their labels and properties, fetched for many ids at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.candidates import Snapshot
from graphdb.connection import Connection
from graphdb.elements import Node
from graphdb.result import pylist
from graphdb.rows import NAMES_VIEW
from graphdb.storage.terms import LITERAL_BASE
from graphdb.values import VALUE, Base, Column, literal_sql, tidied

if TYPE_CHECKING:
    import pyarrow as pa

_WANTED = "_graphdb_wanted"


def nodes(snapshot: Snapshot, ids: Collection[int]) -> dict[int, Node]:
    """Return the resources among ``ids`` as nodes, by id."""
    connection = snapshot.connection
    resources = np.fromiter((i for i in ids if i < LITERAL_BASE), np.int64)
    if not len(resources):
        return {}
    if snapshot.lookup.ready():
        return _looked_up(snapshot, np.sort(resources))
    type_label = -1 if snapshot.store.type_label is None else snapshot.store.type_label
    with connection.view(_WANTED, {"id": resources}):
        iris = connection.rows(f"SELECT id, iri FROM _graphdb.resource SEMI JOIN {_WANTED} USING (id)")
        labels = dict(
            connection.rows(
                f"SELECT t.subject, list(n.name ORDER BY n.name ASC) FROM _graphdb.triple t "
                f"JOIN {_WANTED} w ON w.id = t.subject JOIN {NAMES_VIEW} n ON n.id = t.object "
                "WHERE t.label = $label GROUP BY t.subject",
                {"label": type_label},
            )
        )
        values = _rows(
            connection,
            f"SELECT t.subject, t.label, {literal_sql('l', VALUE)} FROM _graphdb.triple t "
            f"JOIN {_WANTED} w ON w.id = t.subject JOIN _graphdb.literal l ON l.id = t.object "
            f"WHERE t.object >= {LITERAL_BASE} ORDER BY t.subject ASC, t.label ASC, l.lexical ASC, l.id ASC",
        )
    properties = _properties(snapshot, values)
    return {id: Node(iri, tuple(labels.get(id, ())), properties.get(id, {})) for id, iri in iris}


def _looked_up(snapshot: Snapshot, resources: NDArray[np.int64]) -> dict[int, Node]:
    """The same, from memory."""
    import pyarrow as pa

    lookup, names = snapshot.lookup, snapshot.names
    subjects, labels, objects = lookup.about(resources)
    is_literal = objects >= LITERAL_BASE
    classes: defaultdict[int, list[str]] = defaultdict(list)
    for subject, found in zip(subjects[~is_literal].tolist(), objects[~is_literal].tolist(), strict=True):
        if found in names.vertex_labels:  # but for the class of all created vertices
            classes[subject].append(names.written(names.vertex_labels[found].iri))
    subjects, labels, objects = subjects[is_literal], labels[is_literal], objects[is_literal]
    if ((subjects[1:] == subjects[:-1]) & (labels[1:] == labels[:-1])).any():
        # Several values stand in the order of their lexical forms.
        lexical = lookup.lexical(pa.array(objects - LITERAL_BASE)).to_pylist()
        order = sorted(zip(subjects.tolist(), labels.tolist(), lexical, objects.tolist(), strict=True))
        objects = np.array([literal for *_, literal in order], np.int64)
    triples = zip(subjects.tolist(), labels.tolist(), lookup.values(objects), strict=True)
    properties = _properties(snapshot, triples)
    iris = zip(resources.tolist(), lookup.iris(pa.array(resources)).to_pylist(), strict=True)
    return {id: Node(iri, tuple(sorted(classes.get(id, ()))), properties.get(id, {})) for id, iri in iris}


def _properties(snapshot: Snapshot, values: Iterable[tuple[Any, ...]]) -> dict[int, dict[str, Any]]:
    """Properties by vertex, of (vertex, label, value) in this order; several values are a list."""
    names = snapshot.names
    keys: dict[int, str] = {}
    properties: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    for subject, label, value in values:
        key = keys.get(label) or keys.setdefault(label, names.written(names.edge_labels[label].iri))
        mine = properties[subject]
        if key not in mine:
            mine[key] = value
        elif isinstance(mine[key], list):
            mine[key].append(value)
        else:
            mine[key] = [mine[key], value]
    return properties


def values(snapshot: Snapshot, ids: Collection[int]) -> dict[int, object]:
    """Return the values of the literals among ``ids``, by id."""
    literals = np.fromiter((i for i in ids if i >= LITERAL_BASE), np.int64)
    if not len(literals):
        return {}
    if snapshot.lookup.ready():
        return dict(zip(literals.tolist(), snapshot.lookup.values(literals), strict=True))
    with snapshot.connection.view(_WANTED, {"id": literals}):
        return dict(
            _rows(
                snapshot.connection,
                f"SELECT l.id, {literal_sql('l', VALUE)} FROM _graphdb.literal l SEMI JOIN {_WANTED} USING (id)",
            )
        )


def presented(snapshot: Snapshot, table: pa.Table, columns: tuple[Column, ...]) -> pa.Table | None:
    """Return a result's table as a user of SQL sees it, from memory; None where SQL has to do it."""
    import pyarrow as pa

    if any(
        column.type.base in (Base.LIST, Base.PATH) or table.column(i).null_count for i, column in enumerate(columns)
    ):
        return None
    if any(column.type.base in _GRAPH for column in columns) and not snapshot.lookup.ready():
        return None
    shown = [_shown(snapshot, table.column(i), column.type.base) for i, column in enumerate(columns)]
    return pa.Table.from_arrays(shown, names=[column.sql_name for column in columns])


_GRAPH = (Base.NODE, Base.TERM, Base.EDGE)


def _shown(snapshot: Snapshot, column: pa.ChunkedArray, base: Base) -> Any:
    """A column's vertices as IRIs, literals by their lexical forms, edges as structs of names."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lookup, names = snapshot.lookup, snapshot.names
    match base:
        case Base.NODE:
            return lookup.iris(column)
        case Base.TERM:
            ids = column.to_numpy()
            is_literal = ids >= LITERAL_BASE
            iris = lookup.iris(pa.array(ids, mask=is_literal))
            return pc.coalesce(iris, lookup.lexical(pa.array(ids - LITERAL_BASE, mask=~is_literal)))
        case Base.EDGE:
            flat = column.combine_chunks()
            labels, which = np.unique(flat.field("label").to_numpy(), return_inverse=True)
            written = pa.array([names.written(names.edge_labels[label].iri) for label in labels.tolist()], pa.string())
            ends = [_shown(snapshot, pa.chunked_array([flat.field(end)]), Base.TERM) for end in ("start", "end")]
            return pa.StructArray.from_arrays([written.take(pa.array(which)), *ends], ["type", "start", "end"])
    return column


def _rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    """Run a query whose values may be of any type: by Arrow, which knows time zones without further packages."""
    table = connection.arrow(sql)
    columns = [[tidied(value) for value in pylist(column)] for column in table.columns]
    return list(zip(*columns, strict=True))
