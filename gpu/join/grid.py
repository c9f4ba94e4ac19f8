"""Lists that a join scans once, as blocks: of a range of their vertices, and a range of the neighbours in them.

Where a level has one list, its elements are its bindings.  A join of a range of vertices with a range of bindings needs
the elements of the one in the other: an edge is copied to the device once, in whatever ranges the bindings are, where
segments of whole lists are copied for each, and take more room (GridGraph; Zhu, Han and Chen, USENIX ATC 2015, §3).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.config import cores
from graphdb.common.lazy import lazy
from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.graph import segment_offsets
from graphdb.gpu.join.grid_kernels import count_elements, place_elements
from graphdb.gpu.segments import Part, window_sizes, within
from graphdb.plan.physical import SHARED_LIST, PhysicalPlan, StepColumn
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Blocks:
    """The arrays of a grid, in pinned memory, and where each block stands in them: int64 [ranges, ranges] each."""

    offsets: NDArray[Any]
    neighbours: NDArray[Any]
    firsts: Ints
    starts: Ints
    nbytes: int = 0
    """Bytes on the device."""


@dataclass(frozen=True, eq=False)
class Grid:
    """A partition that is read by blocks.

    Attributes
    ----------
    row, slot
        The partition, as a row of the program's table, and the slot whose lists it has.
    at, by
        The segmented slots that it is divided by: its own, and the one that its elements bind.
    partition, bounds, others
        What is divided, and the vertices that begin and end the ranges of either.
    """

    row: int
    slot: int
    at: int
    by: int
    partition: Partition
    bounds: Ints
    others: Ints

    @property
    def shape(self) -> tuple[int, int]:
        """How many ranges there are of either."""
        return len(self.bounds) - 1, len(self.others) - 1

    @lazy
    def counts(self) -> Ints:
        """The elements of each block: int64 [ranges, ranges]."""
        counts, neighbours = np.zeros(self.shape, np.int64), self.partition.neighbours

        def count(number: int) -> None:
            count_elements(self._offsets(number), neighbours, self._ends, counts[number])

        self._of_each_range(count)
        return counts

    @lazy
    def _own(self) -> Ints:
        """The bounds of the ranges of its vertices, as places in its offsets."""
        return within(self.partition, self.bounds)

    @property
    def _ends(self) -> Ints:
        """What the elements of each range but the last are below."""
        return np.ascontiguousarray(self.others[1:-1], np.int64)

    def _offsets(self, number: int) -> Ints:
        """Where the lists of a range of its vertices begin, and the last one ends."""
        first, last = self._own[number : number + 2].tolist()
        return self.partition.offsets[first : last + 1]

    def _of_each_range(self, work: Callable[[int], None]) -> None:
        """Do something with each range of its vertices, on several threads."""
        with ThreadPoolExecutor(min(cores(), self.shape[0]), "graphdb-blocks") as pool:
            for _ in pool.map(work, range(self.shape[0])):
                pass

    @property
    def parts(self) -> tuple[Ints, Ints]:
        """Bytes of the offsets, and of the elements, of each block: int64 [blocks]."""
        lengths = np.repeat(np.diff(self._own) + 1, self.shape[1]) * segment_offsets(self.partition).itemsize
        return lengths, self.counts.ravel() * self.partition.neighbours.itemsize

    @lazy
    def window(self) -> int:
        """Bytes of the room for one block."""
        return int(window_sizes(self.parts).sum(axis=0).max())

    def block(self, chosen: tuple[int, ...]) -> int:
        """The block that a combination of ranges reads."""
        return chosen[self.at] * self.shape[1] + chosen[self.by]

    def windowed(self, device: Device) -> tuple[Part, Part]:
        """The arrays of its windows: offsets, then neighbours."""
        made: Blocks = device.memory.cached_or_built("grid", self, lambda: self._made(device))
        lengths, counts = np.repeat(np.diff(self._own) + 1, self.shape[1]), self.counts.ravel()
        firsts, starts = made.firsts.ravel(), made.starts.ravel()
        vertices = np.repeat(self._own[:-1], self.shape[1])
        return (
            Part(made.offsets, firsts, firsts + lengths, vertices),
            Part(made.neighbours, starts, starts + counts),
        )

    def _made(self, device: Device) -> Blocks:
        """Put the blocks one behind the other: each list's elements stay in their order."""
        neighbours, others = self.partition.neighbours, self.shape[1]
        starts = self.partition.offsets[self._own[:-1], None] + np.cumsum(self.counts, axis=1) - self.counts
        lengths = np.repeat(np.diff(self._own) + 1, others)
        firsts = (np.cumsum(lengths) - lengths).reshape(self.shape)
        blocked = device.memory.pinned(neighbours.shape, neighbours.dtype)
        found = device.memory.pinned((int(lengths.sum()),), segment_offsets(self.partition))

        def place(number: int) -> None:
            offsets = self._offsets(number)
            places = np.empty((others, len(offsets)), np.int64)
            places[:, 0] = starts[number]
            place_elements(offsets, neighbours, self._ends, places, blocked)
            found[firsts[number, 0] :][: places.size] = places.ravel()

        self._of_each_range(place)
        return Blocks(found, blocked, firsts, starts)


def scanned_once(plan: PhysicalPlan) -> dict[tuple[int, int], int]:
    """The lists, by (partition, slot), that are read for the bindings of one slot, and for nothing else: that one."""
    program = plan.program
    reads = [(row, slot) for row, slot, *_ in program.lists.tolist() if row >= 0]
    reads += [(row, slot) for _, row, slot in program.shares.tolist()]
    found = {}
    for step in program.steps:
        lists = program.lists[step[StepColumn.LISTS] : step[StepColumn.LISTS_END]].tolist()
        if len(lists) == 1 and lists[0][0] >= 0 and lists[0][0] != SHARED_LIST:
            row, slot = lists[0][:2]
            if reads.count((row, slot)) == 1 and plan.partitions[row].layer == "direct":
                found[row, slot] = int(step[StepColumn.SLOT])
    return found
