"""Extension of embeddings by a device: what it reads and who does it (:mod:`graphdb.gpu.mining.extension`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]
TableColumn = tuple[NDArray[np.signedinteger], Ints]
"""A column of an embedding table: values, and rows of the column before (:class:`graphdb.mining.EmbeddingTable`)."""
Kind = Literal["any", "all", "edges"]
"""By a vertex adjacent to any of an embedding, by one adjacent to all, by an edge."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Adjacency:
    """Lists that embeddings are extended along.

    Attributes
    ----------
    offsets, ids
        int64 [n + 1] and int32: the adjacent vertices of each vertex, or the edges at it; sorted.
    source, target
        Of extension by edges, int32: the ends of each.
    ways
        uint8, beside adjacent vertices: 1 for edges to them, 2 for edges from them, 3 for both.
    """

    offsets: Ints
    ids: Narrow
    source: Narrow | None = None
    target: Narrow | None = None
    ways: NDArray[np.uint8] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.ids.nbytes + sum(array.nbytes for array in self.beside)

    @property
    def beside(self) -> tuple[NDArray[Any], ...]:
        """All arrays but the lists."""
        return tuple(array for array in (self.offsets, self.source, self.target, self.ways) if array is not None)


@dataclass(frozen=True, slots=True, eq=False)
class EdgeCodes:
    """How edges are written down in quick patterns: their labels, and the base of digits that a pair's edges are."""

    kinds: Ints
    directed: bool
    base: int


@dataclass(frozen=True, slots=True, eq=False)
class Aggregated:
    """What quick patterns are made of.

    Attributes
    ----------
    labels
        int64 [n]: a number for the labels of each vertex.
    states
        Of rows of vertices: int64, beside adjacent vertices, what joins the two.
    codes
        Of rows of edges.
    """

    labels: Ints
    states: Ints | None = None
    codes: EdgeCodes | None = None


class Cells(Protocol):
    """A number for each code, where a device adds to them."""

    def fill(self, value: int) -> None:
        """Set all to a value."""

    def get(self) -> NDArray[np.uint64]:
        """A copy on the host: uint64 [codes]."""


class Extender(Protocol):
    """Extends embeddings."""

    name: str

    @property
    def summary(self) -> str:
        """What it took so far: a phrase for PROFILE."""

    def extend(self, rows: Narrow, kind: Kind) -> tuple[Narrow, Ints]:
        """Return the extensions of embeddings one after the other, and how many each has.

        Parameters
        ----------
        rows
            int32 [rows, size]: embeddings in their canonical order.

        Returns
        -------
        tuple
            int32 [extensions] in the order of the rows, each row's as the host finds them; and int64 [rows].

        Raises
        ------
        QueryTimeout, QueryInterrupted, MemoryLimitError, DeviceError
            As the limits of the run say; where one row's extensions do not fit; where the device fails.
        """

    def quick(self, rows: Narrow, task: Aggregated) -> tuple[Ints, Ints, Ints]:
        """Return the quick patterns of rows, each once, in the order of the rows that come first with them.

        Returns
        -------
        tuple
            int64 [patterns, width], as aggregation writes them; int64 [patterns]: the first row that has each; and
            int64 [rows]: the pattern of each row.
        """

    def images(
        self, pieces: Iterable[tuple[Narrow, Narrow]], slots: Narrow, count: int, task: Aggregated
    ) -> Ints | None:
        """Return how many vertices each slot of the patterns takes over all rows; None without memory for their bits.

        Parameters
        ----------
        pieces
            int32 [rows, size] and int32 [rows]: rows, and the quick pattern of each.
        slots, count
            int32 [quick patterns, width]: the slot that the vertex at each place takes, -1 for none; and how many there
            are.

        Returns
        -------
        int64 [slots] or None
        """

    def count_codes(self, rows: Narrow, base: int, counts: Cells, firsts: Cells) -> None:
        """Add to counts of connected sets of one more vertex, by code, and note the first of each.

        Parameters
        ----------
        base
            The number of the first row.
        counts, firsts
            Of :meth:`code_cells`: the number of sets, and the least ``number of the row << 31 | vertex``.
        """

    def code_cells(self, codes: int) -> tuple[Cells, Cells]:
        """Return what :meth:`count_codes` adds to: counts of 0, and the greatest first embeddings."""


class Compressor(Protocol):
    """Compresses embedding tables after a filter."""

    @property
    def summary(self) -> str:
        """What it took so far: a phrase for PROFILE."""

    def compress(self, columns: Sequence[TableColumn], marks: NDArray[np.bool_]) -> list[TableColumn]:
        """Return a table's columns without the rows that no row that stays descends from.

        Parameters
        ----------
        marks
            bool [rows of the last column]: which stay.

        Raises
        ------
        QueryTimeout, QueryInterrupted, MemoryLimitError, DeviceError
            As the limits of the run say; where the device's memory does not do; where the device fails.
        """
