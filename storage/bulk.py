"""The first batch of an empty graph, written at once: what a load is when it is all there is.

What :class:`graphdb.storage.append.Appender` asks DuckDB for, because it must find what is there already, is here done
on arrays: terms have their ids as they were numbered, triples are sorted label by label while DuckDB writes those
before, and each label's statistics (:mod:`.statistics`) are added up as it passes.  Each table is one INSERT.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrow import Windows, numbers
from graphdb.storage.batch import LITERAL, Batch
from graphdb.storage.dictionary import typed_literals
from graphdb.storage.statistics import PAIRS
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]

_ROWS = 122_880
"""Triples that are handed to DuckDB at a time: one of its row groups."""

_TABLES = ("resource", "literal", "triple", "quad", "edge", "reifier")


def is_empty(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether there are neither terms nor triples yet."""
    any_row = " OR ".join(f"EXISTS (FROM _graphdb.{table})" for table in _TABLES)
    [(found,)] = connection.execute(f"SELECT {any_row}").fetchall()
    return not found


class Bulk:
    """Writes a batch without :attr:`~.Batch.others` into an empty graph, in the transaction that is open.

    Parameters
    ----------
    memory
        Bytes of triples that are sorted at a time, where their labels are not larger.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, batch: Batch, memory: int) -> None:
        self._connection = connection
        self._windows = Windows(connection)
        self._batch = batch
        self._memory = memory
        self._resources = sum(map(len, batch.resources))
        self._statistics = _Statistics()

    def write_terms(self) -> None:
        """Write the dictionary."""
        import pyarrow as pa

        schema = pa.schema({"id": pa.int64(), "iri": pa.string()})
        with self._windows.show("_graphdb_terms", pa.RecordBatchReader.from_batches(schema, self._iris(schema))):
            self._connection.execute("INSERT INTO _graphdb.resource SELECT id, iri FROM _graphdb_terms")
        notes = pa.dictionary(pa.int32(), pa.string())
        schema = pa.schema({"id": pa.int64(), "lexical": pa.string(), "datatype": notes, "language": notes})
        with self._windows.show("_graphdb_values", pa.RecordBatchReader.from_batches(schema, self._literals(schema))):
            self._connection.execute(f"INSERT INTO _graphdb.literal {typed_literals('_graphdb_values')}")

    def write_triples(self) -> int:
        """Write the triples, sorted; return how many there are."""
        import pyarrow as pa

        # While DuckDB reads the stream, it can be asked nothing.
        found = self._connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
        self._typed = found[0][0] if found else None
        kinds = self._connection.execute("SELECT kind FROM _graphdb.literal ORDER BY id ASC").fetchnumpy()
        self._kinds: NDArray[np.uint8] = kinds["kind"]
        schema = pa.schema({name: pa.int64() for name in ("label", "subject", "object")})
        with self._windows.show("_graphdb_sorted", pa.RecordBatchReader.from_batches(schema, self._triples(schema))):
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

    def _iris(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        first = 0
        for texts in self._batch.resources:
            ids = numbers(np.arange(first, first + len(texts)))
            yield pa.record_batch([ids, texts.array()], schema)
            first += len(texts)

    def _literals(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        first = LITERAL_BASE
        for texts in self._batch.literals:
            ids = numbers(np.arange(first, first + len(texts)))
            yield pa.record_batch([ids, *self._batch.literal_columns(texts)], schema)
            first += len(texts)

    def _triples(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the sorted triples, a row group at a time, and add up their statistics."""
        import pyarrow as pa

        columns = np.empty((3, _ROWS), np.int64)
        filled = 0
        for label, keys in self._labels():
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

    def _labels(self) -> Iterator[tuple[int, Keys]]:
        """Yield each label and its distinct keys, sorted, as many labels at a time as memory allows."""
        from graphdb.storage import bulk_kernels as kernels

        counts = np.zeros(self._resources, np.int64)
        for triples in self._batch.rows():
            kernels.histogram(triples, counts)
        self._statistics.begin(self._classes(counts), self._kinds)
        labels = np.flatnonzero(counts)
        group = np.cumsum(counts[labels]) * 8 // self._memory
        for number in np.unique(group).tolist():
            some = labels[group == number]
            keys, ends = self._keys(some, counts)
            begin = 0
            for label, end in zip(some.tolist(), ends.tolist(), strict=True):
                found = _sorted(keys[begin:end])
                self._statistics.add(label, found)
                yield label, found
                begin = end

    def _keys(self, labels: Ints, counts: Ints) -> tuple[Keys, Ints]:
        """Return the keys of some labels, label after label, and where each ends."""
        from graphdb.storage import bulk_kernels as kernels

        ends = np.cumsum(counts[labels])
        places = np.full(self._resources, -1, np.int64)
        places[labels] = ends - counts[labels]
        keys = np.empty(ends[-1] if len(ends) else 0, np.uint64)
        for triples in self._batch.rows():
            kernels.scatter(triples, places, keys)
        return keys, ends

    def _classes(self, counts: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the ids of the vertex labels, and which each resource has (see :func:`.bulk_kernels.measure`)."""
        keys = np.empty(0, np.uint64)
        if self._typed is not None:
            keys = _sorted(self._keys(np.array([self._typed]), counts)[0])
        of = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
        vertices = (keys >> np.uint64(32)).astype(np.int64)[of < LITERAL]
        ids, classes = np.unique(of[of < LITERAL], return_inverse=True)
        starts = np.zeros(self._resources + 1, np.int64)
        np.cumsum(np.bincount(vertices, minlength=self._resources), out=starts[1:])
        return ids, starts, classes.astype(np.int64)


def _sorted(keys: Keys) -> Keys:
    """Sort keys in place, and return the distinct ones."""
    from graphdb.storage import bulk_kernels as kernels

    keys.sort()
    return keys[: kernels.distinct(keys)]


def _label_rows(columns: Ints, at: int, label: int, keys: Keys) -> None:
    """Write the triples of a label into rows of ids."""
    from graphdb.storage import bulk_kernels as kernels

    end = at + len(keys)
    columns[0, at:end] = label
    kernels.spread(keys, columns[1, at:end], columns[2, at:end])


class _Statistics:
    """The statistics of labels, as rows of their tables."""

    def __init__(self) -> None:
        self._labels: list[tuple[int, int, Ints]] = []
        self._degrees: list[Ints] = []
        self._pairs: list[Ints] = []

    def begin(self, classes: tuple[Ints, Ints, Ints], kinds: NDArray[np.uint8]) -> None:
        """Say which vertex labels there are, and the kinds of literals."""
        self._ids, self._starts, self._classes = classes
        self._kinds = kinds
        self._at = np.zeros((len(self._ids), 2, 2), np.int64)
        self._touched = np.empty(len(self._ids), np.int64)

    def add(self, label: int, keys: Keys) -> None:
        """Add up the statistics of one label, whose keys are distinct and sorted."""
        from graphdb.storage import bulk_kernels as kernels

        objects = np.empty(len(keys), np.uint32)
        kernels.targets(keys, objects)
        objects.sort()
        totals, degrees = np.zeros(8, np.int64), np.zeros((2, kernels.BUCKETS, 3), np.int64)
        kernels.measure(
            keys, objects, self._starts, self._classes, self._kinds, totals, degrees, self._at, self._touched
        )
        self._labels.append((label, len(keys), totals[: kernels.CLASSES]))
        direction, bucket = np.nonzero(degrees[:, :, 0])
        self._degrees.append(_rows(label, direction, bucket, *degrees[direction, bucket].T))
        touched = np.sort(self._touched[: totals[kernels.CLASSES]])
        pairs = self._at[touched]
        self._at[touched] = 0
        kind, direction = np.nonzero(pairs[:, :, 1])
        self._pairs.append(_rows(label, self._ids[touched[kind]], direction, *pairs[kind, direction].T))

    def tables(self) -> dict[str, pa.Table]:
        """Return the rows by table."""
        import pyarrow as pa

        labels = np.array([(label, count, *totals.tolist()) for label, count, totals in self._labels], np.int64)
        names = "id triples resource_triples subjects objects max_out_degree max_in_degree kinds max_values"
        pairs = np.concatenate([np.empty((0, 5), np.int64), *self._pairs])
        if len(pairs) > PAIRS:
            label, kind, direction, edges, _ = pairs.T
            pairs = pairs[np.sort(np.lexsort((direction, kind, label, -edges))[:PAIRS])]
        vertices = np.column_stack([self._ids, np.bincount(self._classes, minlength=len(self._ids))])
        degrees = np.concatenate([np.empty((0, 6), np.int64), *self._degrees])
        tables = {
            "edge_label": (names, labels.reshape(-1, 9)),
            "degree": ("label direction bucket vertices edges squares", degrees),
            "label_pair": ("label class direction edges vertices", pairs),
            "vertex_label": ("id vertices", vertices),
        }
        return {
            table: pa.table([numbers(column) for column in rows.T], names.split())
            for table, (names, rows) in tables.items()
        }


def _rows(label: int, *columns: Ints) -> Ints:
    """Return columns as rows behind a label."""
    return np.column_stack([np.full(len(columns[0]), label), *columns])
