"""A join whose lists are read by segments: which slots are divided, into which ranges, and what is copied when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.lazy import lazy
from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.graph import segment_offsets
from graphdb.gpu.data.pinned import pinned
from graphdb.gpu.join.grid import Grid
from graphdb.gpu.segments import Part, Ranges, SegmentStream, Window, combinations_of, within
from graphdb.plan.physical import PhysicalPlan

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segmented:
    """A slot whose vertices are divided.

    Attributes
    ----------
    level
        Which step binds it.
    rows
        The partitions that are read for it, as rows of the program's table.
    bounds
        int64 [ranges + 1]: the vertices that begin and end the ranges.
    above
        The segmented slots, as places among these, whose vertices its own exceeds.
    reached
        By segmented slots before it, as places among these, whose lists it is bound from: bool [their ranges, its own],
        whether a vertex of the one may have a neighbour in the other.
    """

    slot: int
    level: int
    rows: tuple[int, ...]
    bounds: Ints
    above: tuple[int, ...]
    reached: tuple[tuple[int, NDArray[np.bool_]], ...] = ()

    @property
    def ranges(self) -> int:
        """How many ranges there are."""
        return len(self.bounds) - 1

    def range(self, number: int) -> tuple[int, int]:
        """The least vertex of a range, and the one behind the greatest."""
        return int(self.bounds[number]), int(self.bounds[number + 1])


@dataclass(frozen=True, eq=False)
class Segmentation:
    """How a join is divided: ``slots`` in the order in which they are bound, of which the last changes most often.

    Attributes
    ----------
    seconds
        What a run is expected to take longer than one whose lists are on the device.
    size
        Bytes of all the lists.
    sizes
        Bytes of those that are read for each of the slots, but those of ``grids``.
    ahead
        The last slot's segments are copied while those before are read: there is room for two.
    grids
        The lists that are read by blocks.
    """

    slots: tuple[Segmented, ...]
    seconds: float
    size: int
    sizes: tuple[int, ...]
    ahead: bool
    grids: tuple[Grid, ...] = ()

    @property
    def streamed(self) -> set[tuple[int, int]]:
        """The lists that are not copied whole, by (partition, slot)."""
        return {(row, each.slot) for each in self.slots for row in each.rows} | {
            (grid.row, grid.slot) for grid in self.grids
        }

    @lazy
    def combinations(self) -> list[tuple[int, ...]]:
        """The combinations of ranges that matches may have.

        Each slot's ranges go up and down in turns: where one that was bound before goes on to its next range, the
        segment that was read last is read first.
        """

        def joined(at: int, number: int, chosen: tuple[int, ...]) -> bool:
            return all(reached[chosen[other], number] for other, reached in self.slots[at].reached)

        return combinations_of(self.slots, joined)

    @lazy
    def moved(self) -> int:
        """Bytes that a run copies to the device, about."""
        chosen = np.array(self.combinations, np.int64).reshape(len(self.combinations), len(self.slots))
        total = 0.0
        for at, (size, slot) in enumerate(zip(self.sizes, self.slots, strict=True)):
            read = chosen[np.insert(chosen[1:, at] != chosen[:-1, at], 0, True), at]
            again = (read[2:] == read[:-2]).sum() if self.buffers(at) > 1 else 0
            total += (len(read) - again) * size / slot.ranges
        for grid in self.grids:
            blocks = chosen[:, grid.at] * grid.shape[1] + chosen[:, grid.by]
            read = blocks[np.insert(blocks[1:] != blocks[:-1], 0, True)]
            total += float(sum(sizes[read].sum() for sizes in grid.parts))
        return int(total)

    def buffers(self, at: int) -> int:
        """How many segments of a slot there is room for."""
        return 2 if self.ahead and at == len(self.slots) - 1 else 1

    def describe(self) -> str:
        """A phrase for EXPLAIN."""
        ranges = " x ".join(str(slot.ranges) for slot in self.slots)
        return (
            f"{self.size / 2**20:,.0f} MiB of lists by segments ({ranges or 'one'}),"
            f" {self.moved / 2**20:,.0f} MiB to copy"
        )


def segment_stream(device: Device, plan: PhysicalPlan, segments: Segmentation) -> SegmentStream:
    """Make room for the segments of a run: by (partition, slot), and the cell of the partition's row that they are."""
    with device.active():
        read = device.memory.cached_or_built("ranges", segments, lambda: _read(device, plan, segments)).windows
        windows = [(Window(device, ranges, buffers), range_of, keys) for ranges, buffers, range_of, keys in read]
        return SegmentStream(device, windows)


@dataclass(frozen=True, slots=True)
class _Read:
    """What windows read: the ranges of each, its buffers, which range a combination reads, and its arrays' keys."""

    windows: list[tuple[Ranges, int, Callable[[tuple[int, ...]], int], list[Any]]]
    nbytes: int = 0
    """Bytes on the device."""


def _read(device: Device, plan: PhysicalPlan, segments: Segmentation) -> _Read:
    partitions, found = plan.partitions, _Read([])
    for at, each in enumerate(segments.slots):
        parts, keys = [], list[Any]()
        for row in each.rows:
            offsets, neighbours = partitions[row].offsets, partitions[row].neighbours
            bounds = within(partitions[row], each.bounds)
            first, last = bounds[:-1], bounds[1:]
            parts.append(Part(pinned(device.memory, offsets, segment_offsets(partitions[row])), first, last + 1))
            parts.append(Part(pinned(device.memory, neighbours), offsets[first], offsets[last]))
            keys += [((row, each.slot), cell) for cell in ("offsets", "neighbours")]
        if parts:
            found.windows.append((Ranges(parts), segments.buffers(at), itemgetter(at), keys))
    for grid in segments.grids:
        keys = [((grid.row, grid.slot), cell) for cell in ("offsets", "neighbours")]
        found.windows.append((Ranges(grid.windowed(device)), segments.buffers(grid.by), grid.block, keys))
    return found
