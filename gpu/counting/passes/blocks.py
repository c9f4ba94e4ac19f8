"""Lists by rank in pinned memory of the host, as passes read them (:mod:`.ranges`).

Elements lie in two planes: their low 16 bits, and where these do not do, the 8 bits above them.  The lists of roots
lie one behind the other; of those that are sent along, each pass has the elements within its ranks, with offsets of its
own, so that a block is three copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import Device
from graphdb.gpu.counting.passes.ranges import Passes, is_wide
from graphdb.gpu.counting.ranks import Ranked
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.segments import Part, Ranges, Window

Ints = NDArray[np.int64]

LOW, HIGH, OFFSETS = range(3)
"""The arrays of a window, in the order of their addresses."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Planes:
    """Lists in pinned memory.

    Attributes
    ----------
    low, high
        uint16 and uint8 [elements]; ``high`` has those of wide passes alone.
    offsets
        uint32: where lists begin and end, pass by pass.
    bounds
        The ranks that begin and end the passes.
    begins, high_begins
        int64 [passes + 1]: the elements that begin each pass, and the last one's end, in either plane.
    """

    low: NDArray[np.uint16]
    high: NDArray[np.uint8]
    offsets: NDArray[np.uint32]
    bounds: tuple[int, ...]
    begins: Ints
    high_begins: Ints
    nbytes: int = 0
    """Bytes on the device."""

    def window(self, device: Device, passes: Passes) -> Window:
        """Room for one pass's block, or two."""
        number = np.arange(len(self.bounds))
        own = len(self.offsets) // (len(self.bounds) - 1)
        of_offsets = Part(self.offsets, number[:-1] * own, number[1:] * own, np.zeros(len(number) - 1, np.int64))
        of_high = Part(self.high, self.high_begins[:-1], self.high_begins[1:], self.begins[:-1])
        ranges = Ranges([Part(self.low, self.begins[:-1], self.begins[1:]), of_high, of_offsets])
        return Window(device, ranges, passes.buffers)

    def segments(self, device: Device, passes: Passes) -> Window:
        """Of the lists of roots: room for one segment and the next."""
        first, last = np.array(passes.segments, np.int64).T
        begins, ends = self.offsets[first].astype(np.int64), self.offsets[last].astype(np.int64)
        high = (begins, ends) if len(self.high) else (np.zeros_like(begins),) * 2
        parts = [Part(self.low, begins, ends), Part(self.high, *high), Part(self.offsets, first, last + 1)]
        return Window(device, Ranges(parts), min(2, len(first)))


def planes_of_roots(memory: DeviceMemory, ranked: Ranked) -> Planes:
    """The lists of all ranks, as one pass; cached with them."""
    return memory.cached_or_built("planes", ranked.ids, lambda: _planes(memory, ranked, (0, len(ranked.less))))


def blocks_of(memory: DeviceMemory, ranked: Ranked, bounds: tuple[int, ...]) -> Planes:
    """The blocks of each pass; cached with the lists as long as no others are asked for."""
    known: Planes | None = memory.cached("blocks", ranked.ids)
    if known is not None and known.bounds != bounds:
        memory.forget("blocks", ranked.ids)
    return memory.cached_or_built("blocks", ranked.ids, lambda: _planes(memory, ranked, bounds))


def _planes(memory: DeviceMemory, ranked: Ranked, bounds: tuple[int, ...]) -> Planes:
    ids, passes = ranked.ids, list(pairwise(bounds))
    wide = [is_wide(first, last) for first, last in passes]
    sizes = [int(np.count_nonzero((ids >= first) & (ids < last))) for first, last in passes]
    begins = np.cumsum([0, *sizes])
    high_begins = np.cumsum([0, *(size * is_so for size, is_so in zip(sizes, wide, strict=True))])
    low = memory.pinned((int(begins[-1]),), np.uint16)
    high = memory.pinned((int(high_begins[-1]),), np.uint8)
    offsets = memory.pinned((len(passes) * len(ranked.begin),), np.uint32)
    for number, (first, last) in enumerate(passes):
        inside = (ids >= first) & (ids < last)
        own, at = ids[inside] - np.int32(first), int(begins[number])
        low[at : at + len(own)] = own  # the low bits of each
        if wide[number]:
            begun = int(high_begins[number])
            high[begun : begun + len(own)] = own >> 16
        places = np.concatenate([np.zeros(1, np.uint32), np.cumsum(inside, dtype=np.uint32)])
        offsets[number * len(ranked.begin) : (number + 1) * len(ranked.begin)] = places[ranked.begin] + np.uint32(at)
    return Planes(low, high, offsets, bounds, begins, high_begins)
