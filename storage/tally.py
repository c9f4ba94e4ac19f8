"""The statistics of labels (:mod:`.statistics`), counted as all triples pass, sorted: by first loads and large appends.

What a difference costs, SQL computes; but where a good part of all triples is new, it is quicker to count all of them,
and takes no more memory than one wishes (:mod:`.runs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrow import Windows, numbers, values
from graphdb.storage.batch import LITERAL
from graphdb.storage.dictionary import term_counts
from graphdb.storage.runs import Keys, Piece, Pieces, by_label, in_chunks
from graphdb.storage.spool import Spool, merged, unmap, vast
from graphdb.storage.statistics import PAIRS, note_pairs
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]

ROWS = 122_880
"""Triples that go to DuckDB or come from there at a time: one of its row groups."""

STORED = 4
"""What part of memory the keys of :func:`stored` triples may take at a time: the triples take as much and half of that,
and two chunks are there at once."""


class Tally:
    """Counts the statistics of a graph whose terms are stored, in the transaction that is open.

    Parameters
    ----------
    folder, memory
        Where those numbers go that take more bytes than that.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, memory: int) -> None:
        self._connection = connection
        self._folder = folder
        self._memory = memory
        self._resources, literals = term_counts(connection)
        self._kinds: NDArray[np.uint8] = vast(folder / "kinds", literals, np.uint8, memory // 4)
        for rows in connection.sql("SELECT id, kind FROM _graphdb.literal").to_arrow_reader(ROWS):
            self._kinds[values(rows["id"]) - LITERAL_BASE] = values(rows["kind"])
            unmap(self._kinds)
        found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
        self._typed = found[0][0] if found else -1
        self._labels: list[tuple[int, int, Ints]] = []
        self._degrees: list[Ints] = []
        self._pairs = np.empty((0, 5), np.int64)
        self._all_pairs = True

    def passing(self, labels: Mapping[int, Pieces]) -> Iterator[tuple[int, Keys]]:
        """Pass on each label with its keys, some at a time, and count them."""
        self._classify(labels.get(self._typed, tuple))
        for label, pieces in labels.items():
            for keys in self._label(label, pieces()):
                yield label, keys

    def write(self) -> None:
        """Write what was found, in place of what was there."""
        windows = Windows(self._connection)
        for table, rows in self._tables().items():
            self._connection.execute(f"DELETE FROM _graphdb.{table}")
            with windows.show(f"_graphdb_{table}s", rows):
                self._connection.execute(f"INSERT INTO _graphdb.{table} BY NAME SELECT * FROM _graphdb_{table}s")
        windows.close()
        if not self._all_pairs:
            note_pairs(self._connection)

    def _classify(self, typed: Pieces) -> None:
        """Learn the vertex labels, by the keys of ``rdf:type``."""
        self._ids = np.empty(0, np.int64)
        self._starts: Codes = vast(self._folder / "starts", self._resources + 1, np.uint32, self._memory // 4)
        for vertices, classes in _halves(typed()):
            self._ids = np.union1d(self._ids, classes)
            found, counts = np.unique(vertices, return_counts=True)
            self._starts[found + 1] += counts.astype(np.uint32)
            unmap(self._starts)
        labelled = 0
        for begin in range(0, len(self._starts), ROWS):
            some = self._starts[begin : begin + ROWS]
            some[0] += labelled
            np.cumsum(some, dtype=np.uint32, out=some)
            labelled = int(some[-1])
            unmap(self._starts)
        self._classes: Codes = vast(self._folder / "classes", labelled, np.uint32, self._memory // 4)
        self._vertices = np.zeros(len(self._ids), np.int64)
        at = 0
        for _, classes in _halves(typed()):
            numbers = np.searchsorted(self._ids, classes)
            self._classes[at : at + len(numbers)] = numbers
            self._vertices += np.bincount(numbers, minlength=len(self._ids))
            at += len(numbers)
            unmap(self._classes)
        self._at = np.zeros((len(self._ids), 2, 2), np.int64)
        self._touched = np.empty(len(self._ids), np.int64)

    def _label(self, label: int, pieces: Iterable[Keys]) -> Iterator[Keys]:
        """Pass on the keys of one label, and add up its statistics."""
        from graphdb.storage import bulk_kernels as kernels

        totals, degrees = np.zeros(8, np.int64), np.zeros((2, kernels.BUCKETS, 3), np.int64)
        vertices = (self._starts, self._classes)
        sums = (totals, degrees, self._at, self._touched)
        count = 0
        with Spool(self._folder / "objects", self._memory // 2) as spool:
            runs = []
            held = np.zeros(3, np.int64)
            for keys in pieces:
                kernels.measure_subjects(keys, held, *vertices, *sums)
                objects = np.empty(len(keys), np.uint32)
                kernels.targets(keys, objects)
                objects.sort()
                runs.append(spool.add(objects))
                count += len(keys)
                unmap(*vertices)
                yield keys
            kernels.measure_subjects(np.empty(0, np.uint64), held, *vertices, *sums)
            held = np.zeros(3, np.int64)
            for objects in merged(runs, self._memory // 16):
                kernels.measure_objects(objects, held, *vertices, self._kinds, *sums)
                unmap(*vertices, self._kinds)
            kernels.measure_objects(np.empty(0, np.uint32), held, *vertices, self._kinds, *sums)
        self._labels.append((label, count, totals[: kernels.CLASSES]))
        direction, bucket = np.nonzero(degrees[:, :, 0])
        self._degrees.append(_rows(label, direction, bucket, *degrees[direction, bucket].T))
        touched = np.sort(self._touched[: totals[kernels.CLASSES]])
        pairs = self._at[touched]
        self._at[touched] = 0
        kind, direction = np.nonzero(pairs[:, :, 1])
        self._add_pairs(_rows(label, self._ids[touched[kind]], direction, *pairs[kind, direction].T))

    def _tables(self) -> dict[str, pa.Table]:
        """Return the rows by table."""
        import pyarrow as pa

        labels = np.array([(label, count, *totals.tolist()) for label, count, totals in self._labels], np.int64)
        names = "id triples resource_triples subjects objects max_out_degree max_in_degree kinds max_values"
        degrees = np.concatenate([np.empty((0, 6), np.int64), *self._degrees])
        tables = {
            "edge_label": (names, labels.reshape(-1, 9)),
            "degree": ("label direction bucket vertices edges squares", degrees),
            "label_pair": ("label class direction edges vertices", self._pairs),
            "vertex_label": ("id vertices", np.column_stack([self._ids, self._vertices])),
        }
        return {
            table: pa.table([numbers(column) for column in rows.T], names.split())
            for table, (names, rows) in tables.items()
        }

    def _add_pairs(self, pairs: Ints) -> None:
        """Add pairs, and keep those with most edges."""
        self._pairs = np.concatenate([self._pairs, pairs])
        if len(self._pairs) > PAIRS:
            label, kind, direction, edges, _ = self._pairs.T
            self._all_pairs = False
            self._pairs = self._pairs[np.sort(np.lexsort((direction, kind, label, -edges))[:PAIRS])]


def recount(connection: duckdb.DuckDBPyConnection, folder: Path, memory: int) -> None:
    """Count all statistics anew, in the transaction that is open.

    Parameters
    ----------
    folder, memory
        Where that goes which does not fit into so many bytes.
    """
    tally = Tally(connection, folder, memory)
    with Spool(folder / "runs", 0) as spool:
        labels = by_label(in_chunks(stored(connection), memory // STORED), spool, memory)
        for _ in tally.passing(labels):
            pass
    tally.write()


def stored(connection: duckdb.DuckDBPyConnection) -> Iterator[Piece]:
    """Yield the triples of a graph, as codes."""
    from graphdb.storage import bulk_kernels as kernels

    columns = "subject", "label", "object"
    for rows in connection.sql(f"SELECT {', '.join(columns)} FROM _graphdb.triple").to_arrow_reader(ROWS):
        triples = np.empty((len(rows), 3), np.uint32)
        subjects, labels, objects = (values(rows[name]) for name in columns)
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


def _rows(label: int, *columns: Ints) -> Ints:
    """Return columns as rows behind a label."""
    return np.column_stack([np.full(len(columns[0]), label), *columns])
