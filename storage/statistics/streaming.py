"""Streaming statistics of labels (:mod:`.labels`), in one pass over sorted triples: by first loads and large appends.

SQL computes the statistics of a difference.  Where a good part of all triples is new, counting all of them is faster,
and its memory is bounded (:mod:`graphdb.storage.arrays.external_sort`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.duckdb.fetch import batches
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE
from graphdb.storage.arrays.arrow import ArrowViews, values
from graphdb.storage.arrays.batch import LITERAL
from graphdb.storage.arrays.external_sort import Group, Keys, Labels, Piece, by_label, groups, in_chunks, sort_codes
from graphdb.storage.arrays.spill import SpillArray, SpillFile, merge_runs, unmap, zeros_on_disk
from graphdb.storage.dictionary.terms import term_counts
from graphdb.storage.file.prepared_sql import execute, filled
from graphdb.storage.file.verify import Ids, verify_kinds
from graphdb.storage.statistics.labels import PAIRS, note_pairs
from graphdb.storage.statistics.tables import STATISTICS

if TYPE_CHECKING:
    import duckdb

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]

ROWS = 122_880
"""Triples that go to DuckDB or come from there at a time: one of its row groups."""

STORED = 4
"""What part of memory the keys of :func:`stored` triples may take at a time: the triples take as much and half of that,
and two chunks are there at once."""


_PAIRS = 1 << 15
"""Rows of pairs that are written at a time."""


class StreamingStatistics:
    """Counts the statistics of a graph whose terms are stored, in the transaction that is open.

    Parameters
    ----------
    folder, memory
        Where those numbers go that take more bytes than that.
    sizes
        The numbers of resources and literals, where they are known.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        folder: Path,
        memory: int,
        sizes: tuple[int, int] | None = None,
    ) -> None:
        self._connection = connection
        self._folder = folder
        self._memory = memory
        self._resources, literals = term_counts(connection) if sizes is None else sizes
        self._kinds: NDArray[np.uint8] = zeros_on_disk(folder / "kinds", literals, np.uint8, memory // 4)
        if literals:
            for rows in batches(connection, "SELECT id, kind FROM _graphdb.literal", ROWS):
                kinds = values(rows["kind"])
                verify_kinds(kinds)
                self._kinds[values(rows["id"]) - LITERAL_BASE] = kinds
                unmap(self._kinds)
        found = execute(connection, "SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
        self._typed = found[0][0] if found else -1
        self._spill = SpillFile(folder / "statistics", memory // 16)
        self._labels: list[SpillArray] = []
        self._degrees: list[SpillArray] = []
        self._pairs: list[Ints] = []
        self._pending = 0
        self._least = 0  # edges that a pair must have to be stored
        self._all_pairs = True

    def observe(self, labels: Labels) -> Iterator[tuple[Ints | int, Keys]]:
        """Pass on the keys of all labels, with the label of each or of all, some at a time, and count them."""
        self._classify(labels)
        for some in groups(labels):
            if len(some) == 1:
                for keys in self._label(int(some[0]), labels.pieces(int(some[0]))):
                    yield int(some[0]), keys
            else:
                group = labels.group(int(some[0]), int(some[-1]))
                self._group(group)
                yield np.repeat(group.labels, np.diff(group.ends)), group.keys

    def write(self) -> None:
        """Write what was found, in place of what was there."""
        views = ArrowViews(self._connection)
        for table in filled(self._connection, "counted", *STATISTICS):
            execute(self._connection, f"DELETE FROM _graphdb.{table}")
        for table, rows in self._tables().items():
            for some in rows.tables():
                if len(some):
                    with views.view_or_list(f"_graphdb_{table}s", some) as (source, given):
                        execute(self._connection, f"INSERT INTO _graphdb.{table} BY NAME SELECT * FROM {source}", given)
        views.close()
        self._spill.close()
        if not self._all_pairs:
            note_pairs(self._connection)

    def _classify(self, labels: Labels) -> None:
        """Learn the vertex labels, by the keys of ``rdf:type``."""
        self._starts: Codes = zeros_on_disk(self._folder / "starts", self._resources + 1, np.uint32, self._memory // 4)
        seen = zeros_on_disk(self._folder / "seen", self._resources, np.uint8, self._memory // 4)
        for vertices, classes in _halves(labels.pieces(self._typed)):
            seen[classes] = 1
            begins = np.flatnonzero(np.diff(vertices, prepend=-1))  # they are sorted
            self._starts[vertices[begins] + 1] += np.diff(begins, append=len(vertices)).astype(np.uint32)
            unmap(self._starts, seen)
        places = (begin + np.flatnonzero(seen[begin : begin + ROWS]) for begin in range(0, len(seen), ROWS))
        self._ids = np.concatenate([np.empty(0, np.int64), *(some for some in places if len(some))])
        unmap(seen)
        labelled = 0
        for begin in range(0, len(self._starts), ROWS):
            some = self._starts[begin : begin + ROWS]
            some[0] += labelled
            np.cumsum(some, dtype=np.uint32, out=some)
            labelled = int(some[-1])
            unmap(self._starts)
        self._classes: Codes = zeros_on_disk(self._folder / "classes", labelled, np.uint32, self._memory // 4)
        self._vertices = np.zeros(len(self._ids), np.int64)
        at = 0
        for _, classes in _halves(labels.pieces(self._typed)):
            numbers = np.searchsorted(self._ids, classes)
            self._classes[at : at + len(numbers)] = numbers
            self._vertices += np.bincount(numbers, minlength=len(self._ids))
            at += len(numbers)
            unmap(self._classes)
        room, count = self._memory // 4, len(self._ids)
        self._at: Ints = (
            zeros_on_disk(self._folder / "pairs", 4 * count, np.uint64, room).view(np.int64).reshape(-1, 2, 2)
        )
        self._touched: Ints = zeros_on_disk(self._folder / "touched", count, np.uint64, room).view(np.int64)

    def _label(self, label: int, pieces: Iterable[Keys]) -> Iterator[Keys]:
        """Pass on the keys of one label, and add up its statistics."""
        from graphdb.storage.arrays import batch_kernels as kernels

        totals, degrees = np.zeros(8, np.int64), np.zeros((2, kernels.BUCKETS, 3), np.int64)
        vertices = (self._starts, self._classes)
        sums = (totals, degrees, self._at, self._touched)
        count = 0
        with SpillFile(self._folder / "objects", self._memory // 2) as spill:
            runs = []
            carried = np.zeros(3, np.int64)
            for keys in pieces:
                kernels.measure_subjects(keys, carried, *vertices, *sums)
                objects = np.empty(len(keys), np.uint32)
                kernels.targets(keys, objects)
                sort_codes(objects)
                runs.append(spill.add(objects))
                count += len(keys)
                unmap(*vertices, self._at, self._touched)
                yield keys
            kernels.measure_subjects(np.empty(0, np.uint64), carried, *vertices, *sums)
            carried = np.zeros(3, np.int64)
            for objects in merge_runs(runs, self._memory // 16):
                kernels.measure_objects(objects, carried, *vertices, self._kinds, *sums)
                unmap(*vertices, self._kinds, self._at, self._touched)
            kernels.measure_objects(np.empty(0, np.uint32), carried, *vertices, self._kinds, *sums)
        self._add_labels(np.array([[label, count, *totals[: kernels.CLASSES].tolist()]], np.int64))
        direction, bucket = np.nonzero(degrees[:, :, 0])
        self._degrees.append(self._spill.add(_rows(label, direction, bucket, *degrees[direction, bucket].T)))
        for begin in range(0, int(totals[kernels.CLASSES]), _PAIRS):
            touched = self._touched[begin : min(begin + _PAIRS, totals[kernels.CLASSES])]
            pairs = self._at[touched]
            self._at[touched] = 0
            kind, direction = np.nonzero(pairs[:, :, 1])
            self._add_pairs(_rows(label, self._ids[touched[kind]], direction, *pairs[kind, direction].T))

    def _group(self, group: Group) -> None:
        """Add up the statistics of several labels."""
        from graphdb.storage.arrays import batch_kernels as kernels

        count = len(group.keys)
        objects, numbered = np.empty(count, np.uint32), np.empty(count, np.uint64)
        kernels.numbered_targets(group.keys, group.ends, numbered)
        numbered.sort()
        kernels.targets(numbered, objects)
        totals, degrees = np.zeros((len(group.labels), 8), np.int64), np.zeros((2, kernels.BUCKETS, 3), np.int64)
        carried, room = np.zeros(3, np.int64), _PAIRS
        degree_rows, first = np.empty((2 * (count + kernels.BUCKETS), 6), np.int64), 0
        while first < len(group.labels):
            pair_rows = np.empty((room, 5), np.int64)
            last, used, paired = kernels.measure_labels(
                group.keys, objects, group.ends, first, carried, self._starts, self._classes, self._kinds,
                totals, degrees, self._at, self._touched, degree_rows, pair_rows,
            )  # fmt: skip
            room = room if last > first else 2 * room
            rows, pairs = degree_rows[:used].copy(), pair_rows[:paired]
            rows[:, 0], pairs[:, 0] = group.labels[rows[:, 0]], group.labels[pairs[:, 0]]
            pairs[:, 1] = self._ids[pairs[:, 1]]
            self._degrees.append(self._spill.add(rows))
            self._add_pairs(pairs)
            first = last
        unmap(self._starts, self._classes, self._kinds, self._at, self._touched)
        self._add_labels(np.column_stack([group.labels, np.diff(group.ends), totals[:, : kernels.CLASSES]]))

    def _tables(self) -> dict[str, arrow.Reader]:
        """Return the rows by table."""
        self._prune()
        label, kind, direction, *_ = self._pairs[0].T
        pairs = self._pairs[0][np.lexsort((direction, kind, label))]
        vertices = np.column_stack([self._ids, self._vertices])
        names = "id triples resource_triples subjects objects max_out_degree max_in_degree kinds max_values"
        tables = {
            "edge_label": (names, (array.get() for array in self._labels)),
            "degree": ("label direction bucket vertices edges squares", (array.get() for array in self._degrees)),
            "label_pair": ("label class direction edges vertices", iter([pairs])),
            "vertex_label": ("id vertices", iter([vertices])),
        }
        return {table: _reader(columns.split(), pieces) for table, (columns, pieces) in tables.items()}

    def _add_labels(self, rows: Ints) -> None:
        self._labels.append(self._spill.add(rows))

    def _add_pairs(self, pairs: Ints) -> None:
        """Add pairs, and keep those with most edges."""
        if self._least:
            enough = pairs[:, 3] >= self._least
            self._all_pairs = self._all_pairs and bool(enough.all())
            pairs = pairs[enough]
        self._pairs.append(pairs)
        self._pending += len(pairs)
        if self._pending > 2 * PAIRS:
            self._prune()

    def _prune(self) -> None:
        """Keep the pairs with most edges, in one array."""
        pairs = np.concatenate([np.empty((0, 5), np.int64), *self._pairs])
        if len(pairs) > PAIRS:
            label, kind, direction, edges, _ = pairs.T
            self._all_pairs = False
            pairs = pairs[np.lexsort((direction, kind, label, -edges))[:PAIRS]]
            self._least = int(pairs[-1, 3])
        self._pairs, self._pending = [pairs], len(pairs)


def recount(connection: duckdb.DuckDBPyConnection, folder: Path, memory: int) -> None:
    """Count all statistics anew, in the transaction that is open.

    Parameters
    ----------
    folder, memory
        Where that goes which does not fit into so many bytes.
    """
    statistics = StreamingStatistics(connection, folder, memory)
    with SpillFile(folder / "runs", 0) as spill:
        labels = by_label(in_chunks(stored(connection), memory // STORED), spill, memory)
        for _ in statistics.observe(labels):
            pass
    statistics.write()


def stored(connection: duckdb.DuckDBPyConnection) -> Iterator[Piece]:
    """Yield the triples of a graph, as codes."""
    from graphdb.storage.arrays import batch_kernels as kernels

    columns, ids = ("subject", "label", "object"), Ids(*term_counts(connection))
    for rows in batches(connection, f"SELECT {', '.join(columns)} FROM _graphdb.triple", ROWS):
        triples = np.empty((len(rows), 3), np.uint32)
        subjects, labels, objects = (values(rows[name]) for name in columns)
        ids.resource(subjects, "subject")
        ids.resource(labels, "label")
        ids.term(objects, "object")
        kernels.codes(subjects, labels, objects, triples)
        yield _Read(triples)


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """Triples that are in memory."""

    triples: Codes

    def __len__(self) -> int:
        return len(self.triples)

    def get(self) -> Codes:
        return self.triples


def _halves(pieces: Iterable[Keys]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the subjects and objects of keys whose objects are resources, some at a time."""
    for keys in pieces:
        for begin in range(0, len(keys), ROWS):
            some = keys[begin : begin + ROWS]
            objects = (some & np.uint64(0xFFFFFFFF)).astype(np.int64)
            chosen = objects < LITERAL
            yield (some[chosen] >> np.uint64(32)).astype(np.int64), objects[chosen]


def _reader(names: list[str], pieces: Iterable[Ints]) -> arrow.Reader:
    """Return rows as a stream."""
    schema = arrow.schema(dict.fromkeys(names, arrow.INT64))
    batches = ([numbers(column) for column in rows.T] for rows in pieces)
    return arrow.Reader(schema, batches)


def _rows(label: int, *columns: Ints) -> Ints:
    """Return columns as rows behind a label."""
    return np.column_stack([np.full(len(columns[0]), label), *columns])
