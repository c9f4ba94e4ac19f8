"""The sorted triples as arrays: the DuckDB side of :class:`graphdb.storage.graph.DataGraph`.

A term id in the file is not yet a vertex id: literals start at :data:`LITERAL_BASE`, so that appending resources
never renumbers them.  Vertex ids are dense: resources first, then literals, ``literal - LITERAL_BASE + resources``.
Both orders agree, so what is sorted by the one is sorted by the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.storage import statistics
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.dictionary import term_counts
from graphdb.storage.graph import LabelStatistics
from graphdb.storage.sketch import DegreeSketch
from graphdb.storage.terms import LITERAL_BASE

if TYPE_CHECKING:
    import duckdb

Ids = NDArray[np.int64]


class TripleStore:
    """A :class:`~graphdb.storage.graph.TripleSource` over the open database; a snapshot of its sizes.

    ``lock`` serialises the use of the connection with everything else that uses it.  ``edge_labels`` are those of the
    catalog, by id, in its order; ``type_label`` is rdf:type's, where that is known.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lock: RLock,
        edge_labels: Mapping[int, EdgeLabel],
        type_label: int | None = None,
    ) -> None:
        self._connection = connection
        self._lock = lock
        self._edge_labels = edge_labels
        with lock:
            self.resources, self.literals = term_counts(connection)
            self.type_label = statistics.type_label(connection) if type_label is None else type_label
        self._degrees: dict[str, Ids] | None = None
        self._classes: dict[tuple[int, int, int], tuple[int, int]] | None = None

    def edge_labels(self) -> tuple[int, ...]:
        """All predicates that have a triple, sorted."""
        return tuple(self._edge_labels)

    def statistics(self, label: int) -> LabelStatistics:
        """The stored statistics of one edge label."""
        found = self._edge_labels.get(label)
        if found is None:
            return LabelStatistics()
        return LabelStatistics(*(getattr(found, name) for name in LabelStatistics.__dataclass_fields__))

    def degrees(self, label: int, direction: int) -> DegreeSketch:
        """How the degrees of one label in a direction are distributed: the stored histogram."""
        if self._degrees is None:
            columns = "label * 2 + direction AS key, vertices, edges, squares::DOUBLE AS squares"
            self._degrees = self._query(f"SELECT {columns} FROM _graphdb.degree ORDER BY key ASC, bucket ASC", {})
        begin, end = np.searchsorted(self._degrees["key"], [label * 2 + direction, label * 2 + direction + 1])
        rows = [self._degrees[name][begin:end].tolist() for name in ("vertices", "edges", "squares")]
        return DegreeSketch(tuple(zip(*rows, strict=True)))

    def at_class(self, label: int, direction: int, class_id: int) -> tuple[int, int] | None:
        """(edges at vertices with a vertex label, such vertices), as stored; None for pairs that were too rare."""
        if self._classes is None:
            found = self._query("SELECT * FROM _graphdb.label_pair", {})
            keys = zip(*(found[name].tolist() for name in ("label", "direction", "class")), strict=True)
            values = zip(found["edges"].tolist(), found["vertices"].tolist(), strict=True)
            self._classes = dict(zip(keys, values, strict=True))
        known = self._classes.get((label, direction, class_id))
        return known if known is not None or len(self._classes) == statistics.PAIRS else (0, 0)

    def edges(self, label: int) -> tuple[Ids, Ids]:
        """Subjects and objects of one label as vertex ids, sorted by (subject, object)."""
        rows = self._query(
            "SELECT subject, object FROM _graphdb.triple WHERE label = $label ORDER BY subject ASC, object ASC",
            {"label": label},
        )
        return rows["subject"], self.to_vertices(rows["object"])

    def any_edges(self) -> tuple[Ids, Ids, Ids]:
        """Labels, subjects, objects of all edges between resources other than ``rdf:type``."""
        rows = self._query(
            "SELECT label, subject, object FROM _graphdb.triple WHERE object < $base AND label <> $type",
            {"base": LITERAL_BASE, "type": -1 if self.type_label is None else self.type_label},
        )
        return rows["label"], rows["subject"], rows["object"]

    def parallel_edges(self, labels: tuple[int, ...] | None) -> tuple[Ids, Ids, Ids]:
        """Labels, subjects, objects of the edges of some labels (None: as :meth:`any_edges`), parallel ones apart."""
        where, values = "t.object < $base AND t.label <> $type", {"base": LITERAL_BASE, "type": -1}
        if labels is not None:
            where, values = f"t.label IN ({', '.join(str(int(label)) for label in labels) or 'NULL'})", {}
        elif self.type_label is not None:
            values["type"] = self.type_label
        rows = self._query(
            "SELECT t.label, t.subject, t.object FROM _graphdb.triple t "
            "LEFT JOIN _graphdb.edge e ON e.label = t.label AND e.subject = t.subject AND e.object = t.object "
            f"WHERE {where}",
            dict(values),
        )
        return rows["label"], rows["subject"], self.to_vertices(rows["object"])

    def to_vertices(self, terms: Ids) -> Ids:
        """Vertex ids of term ids."""
        return np.where(terms >= LITERAL_BASE, terms - LITERAL_BASE + self.resources, terms)

    def to_terms(self, vertices: NDArray[np.signedinteger]) -> Ids:
        """Term ids of vertex ids."""
        wide = vertices.astype(np.int64, copy=False)
        return np.where(wide >= self.resources, wide - self.resources + LITERAL_BASE, wide)

    def _query(self, sql: str, parameters: dict[str, object]) -> dict[str, Ids]:
        with self._lock:
            columns = self._connection.execute(sql, parameters).fetchnumpy()
        return {name: np.ascontiguousarray(column) for name, column in columns.items()}
