"""The first load of an empty graph, written at once: what a load is when it is all there is.

What :class:`graphdb.storage.append.Appender` asks DuckDB for, because it must find what is there already, is here done
on arrays: terms have their ids as they were numbered, triples are sorted label by label while DuckDB writes those
before, and each label's statistics (:mod:`.statistics`) are added up as it passes.  Each table is one INSERT.

Triples that do not fit into memory are sorted in chunks that do, whose labels become runs in a file, and each label is
merged from its runs (:func:`.spool.merged`): so what a load takes does not depend on how many triples it has, nor on
how many have the same label.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import StorageError
from graphdb.storage.arrow import Windows, numbers, values
from graphdb.storage.batch import LITERAL
from graphdb.storage.catalog import has_rows
from graphdb.storage.dictionary import typed_literals
from graphdb.storage.spool import Kept, Spool, merged
from graphdb.storage.statistics import PAIRS
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
Codes = NDArray[np.uint32]

_ROWS = 122_880
"""Triples that are handed to DuckDB at a time: one of its row groups."""

_LABELS = 1 << 12
"""Slots of a table of labels at first."""

_TABLES = ("resource", "literal", "triple", "quad", "edge", "reifier")


def is_empty(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether there are neither terms nor triples yet."""
    return not any(has_rows(connection, f"_graphdb.{table}") for table in _TABLES)


class Terms(Protocol):
    """Distinct terms and triples of their codes: a :class:`~.Batch`, or several as one."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many resources and literals there are."""

    @property
    def triples(self) -> Sequence[Kept]:
        """The triples, piece by piece: uint32[n, 3] each."""

    def iris(self) -> Iterator[pa.Array]:
        """Yield the IRIs and blank nodes in the order of their codes, piece by piece."""

    def values(self) -> Iterator[tuple[pa.Array, ...]]:
        """Yield the literals in the order of their codes, piece by piece: lexical forms, datatypes, languages."""

    def forget_terms(self) -> None:
        """Give back the memory that the texts of terms take."""


class Bulk:
    """Writes terms and triples into an empty graph, in the transaction that is open.

    Parameters
    ----------
    memory
        Bytes of triples that are sorted at a time.
    folder
        Where those go that do not fit.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, batch: Terms, memory: int, folder: Path) -> None:
        self._connection = connection
        self._windows = Windows(connection)
        self._batch = batch
        self._counts = batch.counts
        self._memory = memory
        self._folder = folder
        self._statistics = _Statistics(folder, memory)

    def write_terms(self) -> None:
        """Write the dictionary."""
        import pyarrow as pa

        schema = pa.schema({"id": pa.int64(), "iri": pa.string()})
        with self._windows.show("_graphdb_terms", _stream(schema, 0, ((iris,) for iris in self._batch.iris()))):
            self._connection.execute("INSERT INTO _graphdb.resource SELECT id, iri FROM _graphdb_terms")
        notes = pa.dictionary(pa.int32(), pa.string())
        schema = pa.schema({"id": pa.int64(), "lexical": pa.string(), "datatype": notes, "language": notes})
        with self._windows.show("_graphdb_values", _stream(schema, LITERAL_BASE, self._batch.values())):
            self._connection.execute(f"INSERT INTO _graphdb.literal {typed_literals('_graphdb_values')}")
        self._batch.forget_terms()

    def write_triples(self) -> int:
        """Write the triples, sorted; return how many there are."""
        import pyarrow as pa

        # While DuckDB reads the stream, it can be asked nothing.
        known = self._connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
        self._typed = known[0][0] if known else -1
        self._kinds = self._literal_kinds()
        schema = pa.schema({name: pa.int64() for name in ("label", "subject", "object")})
        with (
            Spool(self._folder / "runs", 0) as spool,
            self._windows.show("_graphdb_sorted", pa.RecordBatchReader.from_batches(schema, self._rows(schema, spool))),
        ):
            [(count,)] = self._connection.execute(
                "INSERT INTO _graphdb.triple SELECT label, subject, object FROM _graphdb_sorted"
            ).fetchall()
        return int(count)

    def write_statistics(self) -> None:
        """Write what was found on the way."""
        for table, rows in self._statistics.tables().items():
            with self._windows.show(f"_graphdb_{table}s", rows):
                self._connection.execute(f"INSERT INTO _graphdb.{table} BY NAME SELECT * FROM _graphdb_{table}s")
        self._windows.close()

    def _literal_kinds(self) -> NDArray[np.uint8]:
        """Return the kind of each literal."""
        kinds = _vast(self._folder / "kinds", self._counts[1], np.uint8, self._memory // 4)
        for rows in self._connection.sql("SELECT id, kind FROM _graphdb.literal").to_arrow_reader(_ROWS):
            kinds[values(rows["id"]) - LITERAL_BASE] = values(rows["kind"])
            _unmap(kinds)
        return kinds

    def _rows(self, schema: pa.Schema, spool: Spool) -> Iterator[pa.RecordBatch]:
        """Yield the sorted triples, a row group at a time, and add up their statistics."""
        import pyarrow as pa

        columns = np.empty((3, _ROWS), np.int64)
        filled = 0
        for label, keys in self._labels(spool):
            done = 0
            while done < len(keys):
                some = min(_ROWS - filled, len(keys) - done)
                _label_rows(columns, filled, label, keys[done : done + some])
                done += some
                filled += some
                if filled == _ROWS:
                    yield pa.record_batch([numbers(column) for column in columns], schema)
                    columns, filled = np.empty_like(columns), 0
        yield pa.record_batch([numbers(column[:filled]) for column in columns], schema)

    def _labels(self, spool: Spool) -> Iterator[tuple[int, Keys]]:
        """Yield each label with its distinct keys, sorted, some at a time."""
        chunks = list(self._chunks())
        of: dict[int, Callable[[], Iterable[Keys]]]
        if len(chunks) > 1:
            runs: dict[int, list[Kept]] = {}
            for chunk in chunks:
                _add_runs(chunk, spool, runs)
            of = {label: partial(_merged, runs[label], self._memory // 32) for label in sorted(runs)}
        else:
            found = [*map(_by_label, chunks)]
            of = {label: cache(partial(_whole, unsorted)) for some in found for label, unsorted in some}
        self._statistics.begin(of.get(self._typed, tuple), self._counts[0], self._kinds)
        for label, pieces in of.items():
            for keys in self._statistics.passing(label, pieces()):
                yield label, keys

    def _chunks(self) -> Iterator[list[Kept]]:
        """Yield the pieces of triples, so many at a time that their keys fit into memory."""
        chunk: list[Kept] = []
        rows = 0
        for kept in self._batch.triples:
            if chunk and (rows + len(kept)) * 8 > self._memory:
                yield chunk
                chunk, rows = [], 0
            chunk.append(kept)
            rows += len(kept)
        if chunk:
            yield chunk


def _add_runs(chunk: Sequence[Kept], spool: Spool, runs: dict[int, list[Kept]]) -> None:
    """Add a run of each label of a chunk."""
    for label, keys in _by_label(chunk):
        runs.setdefault(label, []).append(spool.add(_sorted(keys)))


def _by_label(chunk: Sequence[Kept]) -> list[tuple[int, Keys]]:
    """Return the labels of triples, in order, with their keys in any."""
    from graphdb.storage import bulk_kernels as kernels

    table, used = np.full((_LABELS, 2), -1, np.int64), 0
    for kept in chunk:
        triples = kept.get()
        row, used = kernels.histogram(triples, 0, table, used)
        while row < len(triples):
            table = _table(table[table[:, 0] >= 0], 2 * len(table))
            row, used = kernels.histogram(triples, row, table, used)
    counted = table[table[:, 0] >= 0]
    labels, counts = counted[np.argsort(counted[:, 0])].T
    ends = np.cumsum(counts)
    table = _table(np.column_stack([labels, ends - counts]), len(table))
    keys = np.empty(sum(map(len, chunk)), np.uint64)
    for kept in chunk:
        kernels.scatter(kept.get(), table, keys)
    places = pairwise([0, *ends.tolist()])
    return [(label, keys[begin:end]) for label, (begin, end) in zip(labels.tolist(), places, strict=True)]


def _table(rows: Ints, slots: int) -> Ints:
    """Return a table of labels (see :func:`.bulk_kernels.histogram`) with these rows."""
    from graphdb.storage import bulk_kernels as kernels

    table = np.full((slots, 2), -1, np.int64)
    kernels.put(table, *np.ascontiguousarray(rows.T))
    return table


def _stream(schema: pa.Schema, first: int, pieces: Iterable[Sequence[pa.Array]]) -> pa.RecordBatchReader:
    """Return pieces of columns as a stream, behind a column of ids that begin with ``first``."""
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        at = first
        for columns in pieces:
            ids = numbers(np.arange(at, at + len(columns[0])))
            yield pa.record_batch([ids, *columns], schema)
            at += len(ids)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _sorted(keys: Keys) -> Keys:
    """Sort keys in place, and return the distinct ones."""
    from graphdb.storage import bulk_kernels as kernels

    keys.sort()
    return keys[: kernels.distinct(keys)]


def _whole(keys: Keys) -> Sequence[Keys]:
    """Return the keys of a label, distinct and sorted, in one piece."""
    return (_sorted(keys),)


def _merged(runs: Sequence[Kept], room: int) -> Iterator[Keys]:
    """Yield the keys of a label, distinct and sorted, from runs."""
    from graphdb.storage import bulk_kernels as kernels

    for keys in merged(runs, room):
        yield keys[: kernels.distinct(keys)]


def _label_rows(columns: Ints, at: int, label: int, keys: Keys) -> None:
    """Write the triples of a label into rows of ids."""
    from graphdb.storage import bulk_kernels as kernels

    end = at + len(keys)
    columns[0, at:end] = label
    kernels.spread(keys, columns[1, at:end], columns[2, at:end])


def _vast(path: Path, count: int, dtype: type[np.unsignedinteger[Any]], memory: int) -> NDArray[Any]:
    """Return zeros, which are in a file where they are more bytes than that."""
    size = count * np.dtype(dtype).itemsize
    if size <= memory:
        return np.zeros(count, dtype)
    try:
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # no room is an error here, and a signal when it is written to
    except OSError as error:
        raise StorageError(f"cannot spill to '{path.parent}': {error.strerror}") from error
    return np.memmap(path, dtype, "r+", shape=(count,))


def _unmap(*arrays: NDArray[Any]) -> None:
    """Let go of the memory that arrays in a file were read into; the system reads them again."""
    for array in arrays:
        if isinstance(array, np.memmap):
            array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


class _Statistics:
    """The statistics of labels, as rows of their tables.

    Parameters
    ----------
    folder, memory
        Where those numbers go that take more bytes than that.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        self._folder = folder
        self._memory = memory
        self._labels: list[tuple[int, int, Ints]] = []
        self._degrees: list[Ints] = []
        self._pairs = np.empty((0, 5), np.int64)

    def begin(self, typed: Callable[[], Iterable[Keys]], resources: int, kinds: NDArray[np.uint8]) -> None:
        """Say which vertex labels there are, by the keys of ``rdf:type``, and the kinds of literals."""
        self._kinds = kinds
        self._ids = np.empty(0, np.int64)
        self._starts: Codes = _vast(self._folder / "starts", resources + 1, np.uint32, self._memory // 4)
        for vertices, classes in _halves(typed()):
            self._ids = np.union1d(self._ids, classes)
            found, counts = np.unique(vertices, return_counts=True)
            self._starts[found + 1] += counts.astype(np.uint32)
            _unmap(self._starts)
        labelled = 0
        for begin in range(0, len(self._starts), _ROWS):
            some = self._starts[begin : begin + _ROWS]
            some[0] += labelled
            np.cumsum(some, dtype=np.uint32, out=some)
            labelled = int(some[-1])
            _unmap(self._starts)
        self._classes: Codes = _vast(self._folder / "classes", labelled, np.uint32, self._memory // 4)
        self._vertices = np.zeros(len(self._ids), np.int64)
        at = 0
        for _, classes in _halves(typed()):
            numbers = np.searchsorted(self._ids, classes)
            self._classes[at : at + len(numbers)] = numbers
            self._vertices += np.bincount(numbers, minlength=len(self._ids))
            at += len(numbers)
            _unmap(self._classes)
        self._at = np.zeros((len(self._ids), 2, 2), np.int64)
        self._touched = np.empty(len(self._ids), np.int64)

    def passing(self, label: int, pieces: Iterable[Keys]) -> Iterator[Keys]:
        """Pass on the keys of one label, which are distinct and sorted, and add up its statistics."""
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
                _unmap(*vertices)
                yield keys
            kernels.measure_subjects(np.empty(0, np.uint64), held, *vertices, *sums)
            held = np.zeros(3, np.int64)
            for objects in merged(runs, self._memory // 16):
                kernels.measure_objects(objects, held, *vertices, self._kinds, *sums)
                _unmap(*vertices, self._kinds)
            kernels.measure_objects(np.empty(0, np.uint32), held, *vertices, self._kinds, *sums)
        self._labels.append((label, count, totals[: kernels.CLASSES]))
        direction, bucket = np.nonzero(degrees[:, :, 0])
        self._degrees.append(_rows(label, direction, bucket, *degrees[direction, bucket].T))
        touched = np.sort(self._touched[: totals[kernels.CLASSES]])
        pairs = self._at[touched]
        self._at[touched] = 0
        kind, direction = np.nonzero(pairs[:, :, 1])
        self._add_pairs(_rows(label, self._ids[touched[kind]], direction, *pairs[kind, direction].T))

    def tables(self) -> dict[str, pa.Table]:
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
            self._pairs = self._pairs[np.sort(np.lexsort((direction, kind, label, -edges))[:PAIRS])]


def _halves(pieces: Iterable[Keys]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the subjects and objects of keys whose objects are resources, some at a time."""
    for keys in pieces:
        for begin in range(0, len(keys), _ROWS):
            some = keys[begin : begin + _ROWS]
            objects = (some & np.uint64(0xFFFFFFFF)).astype(np.int64)
            chosen = objects < LITERAL
            yield (some[chosen] >> np.uint64(32)).astype(np.int64), objects[chosen]


def _rows(label: int, *columns: Ints) -> Ints:
    """Return columns as rows behind a label."""
    return np.column_stack([np.full(len(columns[0]), label), *columns])
