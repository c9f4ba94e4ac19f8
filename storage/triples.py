"""The sorted triples as arrays: the DuckDB side of :class:`graphdb.storage.graph.data_graph.DataGraph`.

A term id in the file is not yet a vertex id: literals start at :data:`LITERAL_BASE`, so that appending resources
never renumbers them.  Vertex ids are dense: resources first, then literals, ``literal - LITERAL_BASE + resources``.
Both orders agree, so what is sorted by the one is sorted by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common.duckdb.fetch import batches, rows_of
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import unique, without
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.file.verify import Ids, damaged, verify_counts
from graphdb.storage.graph.changes import Changes, Sizes
from graphdb.storage.graph.degree_sketch import OUT, DegreeSketch
from graphdb.storage.graph.pcsr import stable_order
from graphdb.storage.graph.source import LabelStatistics
from graphdb.storage.persisted.room import NoRoom, Room
from graphdb.storage.statistics import labels as statistics
from graphdb.storage.statistics import tables

if TYPE_CHECKING:
    import duckdb

Ints = NDArray[np.int64]

_AT_ONCE = 100_000
"""Triples up to which all are read by one statement: it takes DuckDB longer to plan one than to read so few rows."""

_MANY = 1_000_000
"""Triples of a label from which on they are not read at once, …"""
_BATCH = 122_880
"""… but so many at a time."""

_COPIED = 10_000
"""Triples of a label up to which they are read into arrays of NumPy's."""


class TripleStore:
    """A :class:`~graphdb.storage.graph.source.TripleSource` over the open database; a snapshot of its sizes.

    Parameters
    ----------
    lock
        Serialises the use of the connection with everything else that uses it.
    edge_labels
        Those of the catalog, by id, in its order.
    room
        Makes room for the columns of a label's triples, which are read into memory where it is left out.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lock: RLock,
        sizes: Sizes,
        edge_labels: Mapping[int, EdgeLabel],
        room: Callable[[], Room] | None = None,
    ) -> None:
        self._room = room
        self._connection = connection
        self._lock = lock
        self._edge_labels = edge_labels
        self.resources, self.literals = sizes.resources, sizes.literals
        self.ids = Ids(sizes.resources, sizes.literals)
        """Which ids there are: what is read of the file is checked against them."""
        self.type_label = next((id for id, label in edge_labels.items() if label.iri == RDF_TYPE), None)
        self._degrees: dict[str, Ints] | None = None
        self._classes: dict[tuple[int, int, int], tuple[int, int]] | None = None if edge_labels else {}
        self._starting: Mapping[int, frozenset[int]] | None = None

    @property
    def size(self) -> int:
        """How many triples there are."""
        return sum([label.triples for label in self._edge_labels.values()])

    @property
    def described(self) -> int:
        """How many triples there are with a literal or a class, at most."""
        described = [label for id, label in self._edge_labels.items() if label.kinds or id == self.type_label]
        return sum([label.triples for label in described])

    def edge_labels(self) -> tuple[int, ...]:
        """All predicates that have a triple, sorted."""
        return tuple(self._edge_labels)

    def statistics(self, label: int) -> LabelStatistics:
        """The stored statistics of one edge label."""
        found = self._edge_labels.get(label)
        if found is None:
            return LabelStatistics()
        return LabelStatistics(*found.counts[: len(LabelStatistics.__dataclass_fields__)])

    def degrees(self, label: int, direction: int) -> DegreeSketch:
        """How the degrees of one label in a direction are distributed: the stored histogram."""
        if self._degrees is None:
            columns = "label * 2 + direction AS key, vertices, edges, squares::DOUBLE AS squares"
            degrees = tables.summed("degree")
            found = self._query(f"SELECT {columns} FROM ({degrees}) ORDER BY key ASC, bucket ASC", {})
            verify_counts(found["vertices"], found["edges"], found["squares"], least=1)
            self._degrees = found
        begin, end = np.searchsorted(self._degrees["key"], [label * 2 + direction, label * 2 + direction + 1])
        rows = [self._degrees[name][begin:end].tolist() for name in ("vertices", "edges", "squares")]
        return DegreeSketch(tuple(zip(*rows, strict=True)))

    def at_class(self, label: int, direction: int, class_id: int) -> tuple[int, int] | None:
        """(edges at vertices with a vertex label, such vertices), as stored; None for pairs that were too rare."""
        pairs, complete = self.class_pairs()
        return pairs.get((label, direction, class_id), (0, 0) if complete else None)

    def class_pairs(self) -> tuple[dict[tuple[int, int, int], tuple[int, int]], bool]:
        """(edges, vertices) by (label, direction, vertex label), and whether these are all pairs that have edges."""
        if self._classes is None:
            found = self._query(tables.summed("label_pair"), {})
            verify_counts(found["edges"], found["vertices"])
            keys = zip(*(found[name].tolist() for name in ("label", "direction", "class")), strict=True)
            values = zip(found["edges"].tolist(), found["vertices"].tolist(), strict=True)
            self._classes = dict(zip(keys, values, strict=True))
        return self._classes, len(self._classes) != statistics.PAIRS

    def starting_at(self, class_id: int) -> frozenset[int] | None:
        """The labels of all triples about vertices with a vertex label; None where some pairs were too rare."""
        pairs, complete = self.class_pairs()
        if not complete:
            return None
        if self._starting is None:
            found: dict[int, set[int]] = {}
            for (label, direction, at), (edges, _) in pairs.items():
                if direction == OUT and edges:
                    found.setdefault(at, set()).add(label)
            self._starting = {at: frozenset(labels) for at, labels in found.items()}
        return self._starting.get(class_id, frozenset())

    def follow(self, previous: TripleStore, changes: Iterable[Changes]) -> None:
        """Take over which pairs an earlier state had, where that is known of it and of all changes since."""
        added = [None if change.counted is None else change.counted.pairs for change in changes]
        if previous._classes is None or not previous.class_pairs()[1] or any(rows is None for rows in added):
            return
        found = dict(previous._classes)
        for rows in added:
            for label, class_id, direction, edges, vertices in () if rows is None else rows.tolist():
                before = found.get((label, direction, class_id), (0, 0))
                found[label, direction, class_id] = before[0] + edges, before[1] + vertices
        self._classes = {key: counts for key, counts in found.items() if counts[0]}

    def edges(self, label: int) -> tuple[Ints, Ints]:
        """Subjects and objects of one label as vertex ids, sorted by (subject, object)."""
        sql = f"SELECT subject, object FROM _graphdb.triple WHERE label = {int(label)}"
        subjects, objects = self.ends(self._read(sql, label))
        if not _ascending(subjects, objects):  # what each load and each update brought is sorted for itself
            order = stable_order(objects, self.resources + self.literals)
            order = order[stable_order(subjects[order], self.resources)]
            subjects, objects = subjects[order], objects[order]
            if not _ascending(subjects, objects):
                raise damaged("a triple is there twice")
        return subjects, objects

    def subjects(self, label: int, object: int) -> Ints:
        """Subjects of the triples of one label with one object, a resource: sorted."""
        sql = f"SELECT subject FROM _graphdb.triple WHERE label = {int(label)} AND object = {int(object)}"
        found = self._read(sql, label)["subject"]
        self.ids.resource(found, "subject")
        if not bool((found[1:] > found[:-1]).all()):
            found = np.sort(found)
            if bool((found[1:] == found[:-1]).any()):
                raise damaged("a triple is there twice")
        return found

    def occurring(self, resources: Ints) -> Ints:
        """Those of some resources that are a subject, or an object of anything but ``rdf:type``: sorted."""
        sql = "SELECT DISTINCT {0} AS id FROM _graphdb.triple WHERE {0} IN (SELECT unnest($ids::BIGINT[]))"
        subjects = self._query(sql.format("subject"), {"ids": resources.tolist()})["id"]
        others = without(unique(resources), subjects)
        if not len(others):  # as most are a subject, no objects are read
            return np.sort(subjects)
        typed = -1 if self.type_label is None else self.type_label
        given: dict[str, object] = {"ids": others.tolist(), "type": typed}
        objects = self._query(f"{sql.format('object')} AND label <> $type", given)["id"]
        return np.sort(np.concatenate([subjects, objects]))

    def triples(self) -> Iterator[tuple[int | Ints, Ints, Ints]]:
        """Labels, subjects and objects of all triples: label by label, or at once where they are few."""
        if self.size > _AT_ONCE:
            for label in self._edge_labels:
                yield label, *self.edges(label)
        else:
            rows = self._query("SELECT label, subject, object FROM _graphdb.triple", {})
            yield self._labels(rows), *self.ends(rows)

    def any_edges(self) -> tuple[Ints, Ints, Ints]:
        """Labels, subjects, objects of all edges between resources other than ``rdf:type``."""
        rows = self._query(
            "SELECT label, subject, object FROM _graphdb.triple WHERE object < $base AND label <> $type",
            {"base": LITERAL_BASE, "type": -1 if self.type_label is None else self.type_label},
        )
        return self._labels(rows), *self.ends(rows)

    def parallel_edges(self, labels: tuple[int, ...] | None) -> tuple[Ints, Ints, Ints]:
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
        return self._labels(rows), *self.ends(rows)

    def to_vertices(self, terms: Ints) -> Ints:
        """Vertex ids of term ids, int64 both: the same array where none is a literal."""
        if not len(terms) or int(terms.max()) < LITERAL_BASE:
            return terms
        return np.where(terms >= LITERAL_BASE, terms - LITERAL_BASE + self.resources, terms)

    def to_terms(self, vertices: NDArray[np.signedinteger]) -> Ints:
        """Term ids of vertex ids."""
        wide = vertices.astype(np.int64, copy=False)
        return np.where(wide >= self.resources, wide - self.resources + LITERAL_BASE, wide)

    def _labels(self, rows: dict[str, Ints]) -> Ints:
        """Return the labels of triples, which are resources."""
        self.ids.resource(rows["label"], "label")
        return rows["label"]

    def ends(self, rows: Mapping[str, Ints]) -> tuple[Ints, Ints]:
        """Return the columns ``subject`` and ``object`` of rows as vertex ids: int64 [rows] each."""
        self.ids.resource(rows["subject"], "subject")
        self.ids.term(rows["object"], "object")
        return rows["subject"], self.to_vertices(rows["object"])

    def _read(self, sql: str, label: int) -> dict[str, Ints]:
        """Read triples of one label: NumPy gets copies, which come sooner than Arrow's where they are few.

        Many are written where there is room for them as they come.
        """
        count = self.statistics(label).triples
        if count <= _COPIED:
            return self._query(sql, {})
        with self._lock:
            if count > _MANY and self._room is not None and (read := self._streamed(sql, count, self._room())):
                return read
            rows = rows_of(self._connection, sql)
        return {name: values(rows.column(name)) for name in rows.column_names}

    def _streamed(self, sql: str, count: int, room: Room) -> dict[str, Ints] | None:
        """Read so many triples, at most; None where there is no room for them, or more are there."""
        try:
            with batches(self._connection, sql, _BATCH) as rows:
                names = list(rows.schema.names)
                found = room.columns(([values(part) for part in batch.columns] for batch in rows), count, len(names))
        except NoRoom:
            return None
        return dict(zip(names, found, strict=True))

    def _query(self, sql: str, parameters: dict[str, object]) -> dict[str, Ints]:
        with self._lock:
            columns = execute(self._connection, sql, parameters).fetchnumpy()
        return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def _ascending(subjects: Ints, objects: Ints) -> bool:
    """Whether pairs are sorted, and each is there once."""
    from graphdb.storage.arrays.column_kernels import pairs_ascend

    return pairs_ascend(np.ascontiguousarray(subjects), np.ascontiguousarray(objects))
