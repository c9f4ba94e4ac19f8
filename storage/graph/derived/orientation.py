"""The data graph oriented by degree: each edge once, from the vertex of lower degree to the other.

A clique has just one order of rising rank, so it is found once; and no vertex keeps more than √(2 edges) neighbours,
since all of them have at least its degree (SMOG §III; Chiba and Nishizeki).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Partition, stable_order
from graphdb.storage.graph.signatures import runs
from graphdb.storage.persisted.packing import persistable

Ints = NDArray[np.int64]


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Oriented:
    """Vertices by their rank in order of degree (those without edges have none).

    Attributes
    ----------
    offsets, neighbours
        int64 [ranks + 1] and the vertex id type [edges]: the neighbours of higher rank, sorted.
    work
        int64 [ranks + 1]: summed over all ranks before, the neighbours' neighbours.
    longest
        The length of the longest list.
    """

    offsets: Ints
    neighbours: NDArray[Any]
    work: Ints
    longest: int
    _short: NDArray[np.uint32] | None = field(init=False, default=None, repr=False)
    _few: tuple[int, int] | None = field(init=False, default=None, repr=False)
    """A length, and the ranks before the first list that is longer."""

    @property
    def short_offsets(self) -> NDArray[np.uint32] | None:
        """The offsets as uint32 [ranks + 1], which devices read; None where there are more edges than these count."""
        if self._short is None and len(self.neighbours) <= np.iinfo(np.uint32).max:
            object.__setattr__(self, "_short", self.offsets.astype(np.uint32))
        return self._short

    def short_until(self, most: int) -> int:
        """So many of the first ranks have no more than ``most`` neighbours of higher rank each."""
        if self._few is None or self._few[0] != most:
            longer = np.diff(self.offsets) > most
            ends = int(longer.argmax()) if longer.any() else len(longer)
            object.__setattr__(self, "_few", (most, ends))
        assert self._few is not None
        return self._few[1]

    def work_by(self, pieces: int) -> NDArray[np.float64]:
        """The work of so many ranges of about as many ranks each: float64 [pieces]."""
        bounds = np.arange(pieces + 1) * (len(self.work) - 1) // max(pieces, 1)
        return np.diff(self.work[bounds]).astype(np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        return self.offsets.nbytes + self.neighbours.nbytes + self.work.nbytes


def orient(partition: Partition, vertices: int) -> Oriented:
    """Orient a partition of direction ``both``; loops are left out, and parallel edges are one."""
    return orient_lists(*runs(partition), vertices, partition.neighbours.dtype)


def by_degree(degrees: Ints) -> Ints:
    """Return vertices in the order of their ranks, by ascending degree: int64 [vertices]."""
    return np.argsort(degrees, kind="stable")


def orient_lists(keys: Ints, starts: Ints, neighbours: Ints, vertices: int, dtype: np.dtype[Any]) -> Oriented:
    """Orient lists of neighbours: those of ``keys[i]`` are ``neighbours[starts[i]:starts[i + 1]]``, sorted."""
    count = len(keys)
    degrees = np.diff(starts)
    rank = np.zeros(vertices, np.int64)
    rank[keys[by_degree(degrees)]] = np.arange(count)
    source, target = np.repeat(rank[keys], degrees), rank[neighbours]
    upwards = source < target
    source, target = source[upwards], target[upwards]
    order = stable_order(target, count)
    order = order[stable_order(source[order], count)]
    source, target = source[order], target[order]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=count), out=offsets[1:])
    sizes = np.diff(offsets)
    work = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(source, weights=sizes[target], minlength=count), out=work[1:])
    return Oriented(offsets, np.ascontiguousarray(target, dtype), work, int(sizes.max(initial=0)))
