"""Embedding tables: a column for each vertex (or edge) of the embeddings, in which rows share their prefixes.

Row ``r`` of a column has a value and a *parent*, a row of the column before: its embedding is its parent's, and its
value.  So what many embeddings have in common stands once.  A filter marks the rows of the last column that stay;
prefix sums over the marks say where each goes, and rows of earlier columns that no row has as its parent any more go
too (GAMMA §5.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.plan.extension import Compressor
from graphdb.storage.arrays.sorted_sets import unique

Ints = NDArray[np.int64]
Width = TypeVar("Width", np.int32, np.int64)

AHEAD = 3
"""Pieces of a table that threads write out while a device works on one: each takes about as long."""


class Column(NamedTuple):
    """One column.

    Attributes
    ----------
    values
        int32 [rows]: vertices, or int64 [rows]: edges.
    parents
        int64 [rows], never falling: rows of the column before; those of the first column are its own rows.
    """

    values: NDArray[np.signedinteger]
    parents: Ints


@dataclass(frozen=True, eq=False)
class EmbeddingTable:
    """Embeddings of one size.

    Attributes
    ----------
    kind
        What the columns hold: vertices of the graph, or its edges (numbers of the rows of its edge arrays).
    columns
        The columns, one for each vertex or edge.
    """

    kind: Literal["vertex", "edge"]
    columns: tuple[Column, ...]

    @classmethod
    def of_vertices(cls, graph: MiningGraph, vertices: ArrayLike | None = None) -> EmbeddingTable:
        """A table of single vertices: all of them, or those given, each once."""
        found = np.arange(len(graph)) if vertices is None else unique(np.asarray(vertices, np.int64))
        return cls("vertex", (Column(found.astype(np.int32), np.arange(len(found))),))

    @classmethod
    def of_edges(cls, graph: MiningGraph, edges: ArrayLike | None = None) -> EmbeddingTable:
        """A table of single edges: all of them, or those given, each once."""
        found = np.arange(graph.edges) if edges is None else unique(np.asarray(edges, np.int64))
        return cls("edge", (Column(found.astype(np.int64), np.arange(len(found))),))

    def __len__(self) -> int:
        return len(self.columns[-1].values)

    @property
    def size(self) -> int:
        """How many vertices or edges an embedding has."""
        return len(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(values.nbytes + parents.nbytes for values, parents in self.columns)

    def rows(self, begin: int = 0, end: int | None = None) -> Ints:
        """Return the embeddings of some rows, written out: int64 [rows, size]."""
        return self._rows(begin, len(self) if end is None else end, np.int64)

    def pieces(self, size: int) -> Iterator[NDArray[np.int32]]:
        """Yield the embeddings of so many rows at a time, int32 [rows, size]: threads are some pieces ahead."""
        with ThreadPoolExecutor(AHEAD) as pool:
            waiting = deque[Future[NDArray[np.int32]]]()
            for begin in range(0, len(self), size):
                waiting.append(pool.submit(self._rows, begin, begin + size, np.int32))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def rows_at(self, places: Ints) -> Ints:
        """Return the embeddings of given rows, written out: int64 [places, size]."""
        values, parents = self.columns[-1]
        return self._written(values[places], parents[places], np.int64)

    def _rows(self, begin: int, end: int, dtype: type[Width]) -> NDArray[Width]:
        values, parents = self.columns[-1]
        return self._written(values[begin:end], parents[begin:end], dtype)

    def _written(self, last: NDArray[np.signedinteger], places: Ints, dtype: type[Width]) -> NDArray[Width]:
        """Embeddings written out column by column, given their values in the last one and their rows of that before."""
        found = np.empty((self.size, len(last)), dtype)
        found[-1] = last
        for i in range(self.size - 2, -1, -1):
            values, parents = self.columns[i]
            found[i] = np.take(values, places, mode="clip")  # all are there: nothing is to be checked
            places = np.take(parents, places, mode="clip") if i else places
        return np.ascontiguousarray(found.T)


def filtering(table: EmbeddingTable, keep: ArrayLike, limits: Limits | None = None) -> EmbeddingTable:
    """Return a table of the rows that stay, compressed in all its columns.

    Parameters
    ----------
    keep
        bool [rows]: which rows stay.
    limits
        Deadline and cancellation; the executor, whose device compresses the table where that is expected to be sooner
        (:mod:`graphdb.gpu.mining.compression`): the same table.

    Raises
    ------
    ValueError
        ``keep`` has not a value for each row.
    """
    limits = limits or Limits()
    marks = np.asarray(keep, bool)
    if marks.shape != (len(table),):
        raise ValueError(f"a filter has a value for each of the {len(table):,} rows, found {marks.shape}")
    if compressor := _compressor(table, marks, limits):
        columns = compressor.compress(table.columns, marks)
        limits.notes.append(compressor.summary)
        return EmbeddingTable(table.kind, tuple(Column(*column) for column in columns))
    return limits.cancellable(len(table), lambda: _compressed(table, marks))


def _compressor(table: EmbeddingTable, marks: NDArray[np.bool_], limits: Limits) -> Compressor | None:
    """What compresses a table on a device; None where the host does."""
    if limits.executor is None or not len(table):
        return None
    back = np.count_nonzero(marks) / len(table)
    rows = sum(len(column.values) for column in table.columns)
    return limits.executor.compressor(rows, int(table.nbytes * (1 + back)), limits.control)


def _compressed(table: EmbeddingTable, marks: NDArray[np.bool_]) -> EmbeddingTable:
    columns: list[Column] = []
    for i in range(table.size - 1, -1, -1):
        values, parents = table.columns[i]
        values, parents = values[marks], parents[marks]
        if i == 0:
            columns.append(Column(values, np.arange(len(values))))
            break
        marks = np.zeros(len(table.columns[i - 1].values), bool)
        marks[parents] = True
        columns.append(Column(values, (np.cumsum(marks) - 1)[parents]))
    return EmbeddingTable(table.kind, tuple(columns[::-1]))
