"""What a database holds, as small tables: labels, types of edges, property keys, and which lead from where to where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.common import arrow
from graphdb.common.values.elements import Node, Relationship
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.common.values.types import bases_of_kinds
from graphdb.results.description import name_of
from graphdb.results.result import Result
from graphdb.storage.statistics.tables import summed

if TYPE_CHECKING:
    from graphdb.pictures.picture import Picture
    from graphdb.relational.session.state import State
    from graphdb.storage.catalog import EdgeLabel


class Contents:
    """What a :class:`~graphdb.database.Database` says of its graph."""

    _state: State

    @property
    def labels(self) -> Result:
        """The labels of vertices, the most frequent first: a table of ``label`` and ``vertices``."""
        with self._state.diagnosed(), self._state.hold():
            names = self._state.names()
            found = [(names.class_name(id), label.vertices) for id, label in names.vertex_labels.items()]
        return self._table(("label", "vertices"), _by_count(found))

    @property
    def relationship_types(self) -> Result:
        """The types of edges, the most frequent first: a table of ``type`` and ``edges``.

        As patterns have it, an edge leads from a vertex to a vertex; ``rdf:type`` is none.
        """
        with self._state.diagnosed(), self._state.hold(), self._state.at_home():
            names = self._state.names()
            sql = "SELECT label, count(*) - count(DISTINCT (subject, object)) FROM _graphdb.edge GROUP BY label"
            parallel = dict(self._state.connection.rows(sql))
            found = [
                (names.edge_name(label.id), label.resource_triples + parallel.get(label.id, 0))
                for label in self._edges()
            ]
        return self._table(("type", "edges"), _by_count([row for row in found if row[1]]))

    @property
    def property_keys(self) -> Result:
        """The keys of properties, by name: a table of ``key``, ``of`` (vertices or edges), ``values`` and ``types``.

        ``types`` are those of the values, by openCypher's names.
        """
        with self._state.diagnosed(), self._state.hold(), self._state.at_home():
            names = self._state.names()
            found: list[tuple[Any, ...]] = [
                (names.edge_name(label.id), "vertices", label.triples - label.resource_triples, _types(label.kinds))
                for label in self._edges()
                if label.triples > label.resource_triples
            ]
            sql = (
                "SELECT p.key, count(*), bit_or(CAST(1 AS BIGINT) << CAST(l.kind AS BIGINT)) "
                "FROM _graphdb.edge_property p JOIN _graphdb.literal l ON l.id = p.value GROUP BY p.key"
            )
            edges = self._state.snapshot().edges
            found += [
                (names.written(edges.iri(key)), "edges", count, _types(kinds))
                for key, count, kinds in self._state.connection.rows(sql)
            ]
        return self._table(("key", "of", "values", "types"), sorted(found, key=lambda row: (row[0], row[1])))

    def vertex_labels(self) -> list[tuple[str, int]]:
        """Return the vertex labels, as a user would write them, with their numbers of vertices."""
        names = self._state.names()
        return [(names.written(label.iri), label.vertices) for label in names.vertex_labels.values()]

    def edge_labels(self) -> list[EdgeLabel]:
        """Return the edge labels and property keys with their statistics."""
        return list(self._state.names().edge_labels.values())

    def keys_of_labels(self) -> dict[str, list[str]]:
        """Return the IRIs of what edges and properties lead from the vertices of a label, by the label as in
        :meth:`vertex_labels`, as far as the statistics have it.
        """
        from graphdb.storage.graph.degree_sketch import OUT

        with self._state.hold(), self._state.at_home():
            names = self._state.names()
            pairs = self._state.connection.rows(
                f"SELECT DISTINCT class, label FROM ({summed('label_pair')}) WHERE direction = {OUT} AND edges > 0"
            )
        found: dict[str, list[str]] = {}
        for label, key in pairs:
            if label in names.vertex_labels and key in names.edge_labels:
                written = names.written(names.vertex_labels[label].iri)
                found.setdefault(written, []).append(names.edge_labels[key].iri)
        return found

    def edge_keys(self) -> list[str]:
        """Return the IRIs of the keys of edges' properties."""
        with self._state.hold(), self._state.at_home():
            return list(self._state.snapshot().edges.keys)

    def columns(self) -> dict[str, list[str]]:
        """Return the columns of the tables and views that SQL can name, by these."""
        rows = self._state.connection.rows(
            "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() "
            "WHERE NOT internal AND schema_name <> '_graphdb' AND NOT starts_with(table_name, '_') GROUP BY ALL"
        )
        return dict(rows)

    def written(self, iri: str) -> str:
        """Return a name as a user would write it: prefixed where a prefix is declared, else the IRI."""
        return self._state.names().written(iri)

    def prefixes(self) -> dict[str, str]:
        """Return the declared prefixes."""
        return dict(self._state.names().prefixes)

    def tables(self) -> list[str]:
        """Return the tables and views that SQL can name, internal ones left out."""
        rows = self._state.connection.rows(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND schema_name <> '_graphdb' "
            "AND NOT starts_with(table_name, '_') UNION ALL "
            "SELECT view_name FROM duckdb_views() WHERE NOT internal AND schema_name <> '_graphdb' "
            "AND NOT starts_with(view_name, '_') ORDER BY 1"
        )
        return [name for (name,) in rows]

    def schema(self) -> Schema:
        """Return all of these, and a table of which labels the edges of a type lead from and to, with their number.

        >>> import graphdb
        >>> with graphdb.connect() as db:
        ...     _ = db.query("CREATE (:Person {name: 'Ada'})-[:LIVES_IN]->(:City)")
        ...     db.schema().connections.fetchall()
        [('Person', 'LIVES_IN', 'City', 1)]
        """
        with self._state.diagnosed(), self._state.hold(), self._state.at_home():
            return Schema(self.labels, self.relationship_types, self.property_keys, self._connections())

    def _connections(self) -> Result:
        """A vertex with several labels counts for each of them; one without has an empty one."""
        state = self._state
        names, type_label = state.names(), state.snapshot().store.type_label
        known = np.array(sorted(names.vertex_labels), np.int64)
        with state.connection.view("_graphdb_wanted", {"id": known}):
            rows = state.connection.rows(
                "WITH labelled AS (SELECT t.subject, t.object AS label FROM _graphdb.triple t "
                "JOIN _graphdb_wanted w ON w.id = t.object WHERE t.label = $type) "
                "SELECT a.label, t.label, b.label, count(*) FROM _graphdb.triple t LEFT JOIN _graphdb.edge p "
                "ON p.label = t.label AND p.subject = t.subject AND p.object = t.object "
                "LEFT JOIN labelled a ON a.subject = t.subject LEFT JOIN labelled b ON b.subject = t.object "
                f"WHERE t.label <> $type AND t.object < {LITERAL_BASE} GROUP BY ALL",
                {"type": -1 if type_label is None else type_label},
            )
        found = [
            ("" if start is None else names.class_name(start), names.edge_name(type),
             "" if end is None else names.class_name(end), count)
            for start, type, end, count in rows
        ]  # fmt: skip
        return self._table(("start", "type", "end", "edges"), sorted(found, key=lambda row: (-row[3], row[:3])))

    def _edges(self) -> list[EdgeLabel]:
        """The edge labels and property keys, ``rdf:type`` left out."""
        names, type_label = self._state.names(), self._state.snapshot().store.type_label
        return [label for label in names.edge_labels.values() if label.id != type_label]

    def _table(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Result:
        columns = [_column(name, [row[i] for row in rows]) for i, name in enumerate(names)]
        return Result(self._state.version(), arrow.table(columns, names))


class Schema:
    """What a graph consists of.

    Attributes
    ----------
    labels, relationship_types, property_keys
        The tables of :class:`Contents`.
    connections
        A table of ``start`` (a label), ``type``, ``end`` (a label) and ``edges``.
    """

    def __init__(self, labels: Result, relationship_types: Result, property_keys: Result, connections: Result) -> None:
        self.labels, self.relationship_types = labels, relationship_types
        self.property_keys, self.connections = property_keys, connections

    @property
    def tables(self) -> tuple[Result, ...]:
        """All four."""
        return self.labels, self.relationship_types, self.property_keys, self.connections

    def graph(self) -> Picture:
        """Return a picture of the labels, and of the types of edges between them; a notebook shows it."""
        from graphdb.pictures.picture import Picture

        counts = dict(list(self.labels))
        connections = [
            (start or _NO_LABEL, type, end or _NO_LABEL, count) for start, type, end, count in list(self.connections)
        ]
        ends = {end for start, _, end, _ in connections} | {start for start, *_ in connections}
        nodes = [Node(label, (label,), {"vertices": counts.get(label, 0)}) for label in sorted(ends | set(counts))]
        edges = [Relationship(type, start, end, {"edges": count}) for start, type, end, count in connections]
        return Picture.of(nodes, edges, title="schema")

    def show(self) -> str:
        """Open the picture in a browser, and return the path of the file, which is a temporary one."""
        return self.graph().show()

    def __repr__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables)

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() or "" for table in self.tables)


_NO_LABEL = "(no label)"
"""How a picture calls what has none."""


def _column(name: str, values: list[Any]) -> arrow.Array:
    if name == "types":
        return arrow.array(values, arrow.list_of(arrow.STRING))
    return arrow.array(values, arrow.INT64 if name in ("vertices", "edges", "values") else arrow.STRING)


def _by_count(rows: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def _types(mask: int) -> list[str]:
    """The names of the types that values of some kinds have."""
    kinds = [kind for kind in Kind if mask >> kind & 1]
    lists = ["LIST"] if Kind.LIST in kinds else []
    others = bases_of_kinds(mask & ~(1 << Kind.LIST | 1 << Kind.TEMPORAL))
    temporal = ["TEMPORAL"] if Kind.TEMPORAL in kinds else []
    return sorted({name_of(base) for base in others} | {*lists, *temporal})
