"""Minimum image supports: of each pattern of a table, the least number of vertices that a place takes.

The places of a pattern that an automorphism exchanges are one *slot*: all vertices that they take in any embedding are
counted once.  A flag for each slot and vertex says which were taken, where the flags are no larger than the keys (slot,
vertex) would be that are sorted otherwise.  A device that finds the quick patterns marks bits instead
(:mod:`graphdb.gpu.mining.aggregation`), if it has memory for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.scheduler import Pause
from graphdb.mining.limits import Limits
from graphdb.mining.primitives.table import EmbeddingTable
from graphdb.storage.arrays.sorted_sets import unique

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]

Vertices = Callable[[Ints], Ints]
"""The vertices of some rows, -1 behind the last: int64 [rows] to int64 [rows, width]."""

PIECE = 1 << 16
"""Rows that are looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Which slot the vertices of a row take.

    Attributes
    ----------
    of_place
        int32 [quick patterns, width]: by the place of a row that has the quick pattern; -1 where it has no vertex.
    pattern
        int64 [slots]: the pattern of each, ascending; every pattern has a slot.
    """

    of_place: Narrow
    pattern: Ints

    @classmethod
    def of(cls, pattern_of: Ints, orders: Ints, orbits: Ints, sizes: Ints) -> Slots:
        """The slots of quick patterns, given of each its pattern, canonical order, orbits and number of vertices."""
        width = orders.shape[1]
        used = np.arange(width) < sizes[:, None]
        keys, number = np.unique((pattern_of[:, None] * width + orbits)[used], return_inverse=True)
        of_place = np.full(orders.shape, -1, np.int32)
        of_place[np.nonzero(used)[0], orders[used]] = number.ravel()
        return cls(of_place, keys // width)

    def __len__(self) -> int:
        return len(self.pattern)

    def supports(self, images: Ints) -> Ints:
        """The supports of patterns, given how many vertices each slot takes."""
        first = np.append(True, self.pattern[1:] != self.pattern[:-1])[: len(self)]
        found: Ints = np.minimum.reduceat(images, np.flatnonzero(first))
        return found


def images_of(slots: Slots, quick_of_row: Ints, read: Vertices, vertices: int, own: int, limits: Limits) -> Ints:
    """Return how many vertices each slot takes: int64 [slots].

    Parameters
    ----------
    quick_of_row
        The quick pattern of each row.
    vertices
        How many the graph has.
    own
        Bytes that the run takes already.

    Raises
    ------
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say.
    """
    marks = len(slots) * vertices <= 8 * len(quick_of_row) * slots.of_place.shape[1]
    return (_marked if marks else _sorted)(slots, quick_of_row, read, vertices, own, limits)


def _marked(slots: Slots, quick_of_row: Ints, read: Vertices, vertices: int, own: int, limits: Limits) -> Ints:
    """A flag for each slot and vertex: threads that set the same one write the same."""
    from graphdb.mining.kernels.aggregation_kernels import mark_images

    limits.need(own + len(slots) * vertices, f"the supports of {len(quick_of_row):,} embeddings")
    flags = np.zeros((len(slots), vertices), np.uint8)

    def work(begin: int, worker: int, pause: Pause) -> None:
        pause()
        places = np.arange(begin, min(begin + PIECE, len(quick_of_row)))
        mark_images(read(places), quick_of_row[places], slots.of_place, flags)

    limits.each(range(0, len(quick_of_row), PIECE), work)
    return limits.cancellable(flags.size, lambda: np.count_nonzero(flags, axis=1))


def _sorted(slots: Slots, quick_of_row: Ints, read: Vertices, vertices: int, own: int, limits: Limits) -> Ints:
    """A key for each slot and vertex; of each piece's the distinct ones are sorted together."""
    found: list[Ints] = []

    def work(begin: int, worker: int, pause: Pause) -> None:
        pause()
        places = np.arange(begin, min(begin + PIECE, len(quick_of_row)))
        taken = slots.of_place[quick_of_row[places]].astype(np.int64)
        found.append(unique((taken * vertices + read(places))[taken >= 0]))

    limits.each(range(0, len(quick_of_row), PIECE), work)
    total = sum(map(len, found))
    limits.need(own + 32 * total, f"the supports of {len(quick_of_row):,} embeddings")
    keys = limits.cancellable(total, lambda: _distinct_keys(found))
    return np.bincount(keys // max(vertices, 1), minlength=len(slots))


def _distinct_keys(found: list[Ints]) -> Ints:
    keys = np.concatenate(found)
    found.clear()
    keys.sort()
    first: NDArray[np.bool_] = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    return keys[first]


def pieces(table: EmbeddingTable, quick_of_row: Ints, size: int) -> Iterator[tuple[Narrow, Narrow]]:
    """Yield a table's rows with their quick patterns, so many at a time, as a device takes them."""
    for number, rows in enumerate(table.pieces(size)):
        yield rows, quick_of_row[number * size : (number + 1) * size].astype(np.int32)
