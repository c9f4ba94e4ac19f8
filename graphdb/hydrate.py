"""Vertices with their labels and properties, fetched for many ids at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import numpy as np

from graphdb.candidates import Snapshot
from graphdb.connection import Connection
from graphdb.elements import Node
from graphdb.result import pylist
from graphdb.rows import NAMES_VIEW
from graphdb.storage.terms import LITERAL_BASE
from graphdb.values import VALUE, literal_sql, shorter

_WANTED = "_graphdb_wanted"


def nodes(snapshot: Snapshot, ids: Collection[int]) -> dict[int, Node]:
    """Return the resources among ``ids`` as nodes, by id."""
    connection, names = snapshot.connection, snapshot.names
    resources = np.fromiter((i for i in ids if i < LITERAL_BASE), np.int64)
    if not len(resources):
        return {}
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
    keys = {id: names.written(label.iri) for id, label in names.edge_labels.items()}
    properties: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    for subject, label, value in values:
        key = keys[label]
        mine = properties[subject]
        if key not in mine:
            mine[key] = value
        elif isinstance(mine[key], list):
            mine[key].append(value)
        else:
            mine[key] = [mine[key], value]
    return {id: Node(iri, tuple(labels.get(id, ())), properties.get(id, {})) for id, iri in iris}


def values(snapshot: Snapshot, ids: Collection[int]) -> dict[int, object]:
    """Return the values of the literals among ``ids``, by id."""
    literals = np.fromiter((i for i in ids if i >= LITERAL_BASE), np.int64)
    if not len(literals):
        return {}
    with snapshot.connection.view(_WANTED, {"id": literals}):
        return dict(
            _rows(
                snapshot.connection,
                f"SELECT l.id, {literal_sql('l', VALUE)} FROM _graphdb.literal l SEMI JOIN {_WANTED} USING (id)",
            )
        )


def _rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    """Run a query whose values may be of any type: by Arrow, which knows time zones without further packages."""
    table = connection.arrow(sql)
    columns = [[shorter(value) for value in pylist(column)] for column in table.columns]
    return list(zip(*columns, strict=True))
