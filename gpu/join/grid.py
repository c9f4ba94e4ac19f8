"""Lists that a join scans once, as blocks: of a range of their vertices, and a range of the neighbours in them.

Where a level has one list, its elements are its bindings.  A join of a range of vertices with a range of bindings needs
the elements of the one in the other: an edge is copied to the device once, in whatever ranges the bindings are, where
segments of whole lists are copied for each, and take more room (GridGraph; Zhu, Han and Chen, USENIX ATC 2015, §3).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.lazy import lazy
from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.graph import segment_offsets
from graphdb.gpu.data.pinned import pinned_copy
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
        ranges = self._ranges
        return np.stack([np.bincount(found, minlength=self.shape[1]) for found in map(ranges, *self._ends)])

    @lazy
    def _own(self) -> Ints:
        """The bounds of the ranges of its vertices, as places in its offsets."""
        return within(self.partition, self.bounds)

    @property
    def _ends(self) -> tuple[list[int], list[int]]:
        return self._own[:-1].tolist(), self._own[1:].tolist()

    def _ranges(self, first: int, last: int) -> NDArray[np.int16]:
        """Which range each element of the lists of some vertices is in."""
        offsets, neighbours = self.partition.offsets, self.partition.neighbours
        numbers = np.repeat(np.arange(self.shape[1], dtype=np.int16), np.diff(self.others))
        found: NDArray[np.int16] = numbers[np.minimum(neighbours[offsets[first] : offsets[last]], len(numbers) - 1)]
        return found

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
        offsets, neighbours = self.partition.offsets, self.partition.neighbours
        vertices, others = self.shape
        blocked, tables = np.empty_like(neighbours), []
        starts = np.zeros((vertices, others), np.int64)
        for number, (first, last) in enumerate(pairwise(self._own.tolist())):
            begin, end = int(offsets[first]), int(offsets[last])
            ranges = self._ranges(first, last)
            blocked[begin:end] = neighbours[begin:end][np.argsort(ranges, kind="stable")]
            owners = np.repeat(np.arange(last - first), np.diff(offsets[first : last + 1]))
            counts = np.bincount(owners * others + ranges, minlength=(last - first) * others).reshape(-1, others)
            starts[number] = begin + np.cumsum(counts.sum(axis=0)) - counts.sum(axis=0)
            table = np.concatenate([np.zeros((1, others), np.int64), np.cumsum(counts, axis=0)]) + starts[number]
            tables.append(table.T.ravel())
        lengths = np.repeat(np.diff(self._own) + 1, others)
        firsts = (np.cumsum(lengths) - lengths).reshape(vertices, others)
        found = pinned_copy(device.memory, np.concatenate(tables), segment_offsets(self.partition))
        return Blocks(found, pinned_copy(device.memory, blocked, blocked.dtype), firsts, starts)


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
