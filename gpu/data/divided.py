"""Lists that do not all fit the device, divided by vertices: those that are read most stand there, others on the host.

How often lists are read is uneven: a tenth of their bytes may take two thirds of the reads, since the long lists are
those of vertices that are found often (access heat, GAMMA §5.1).  Pages (:mod:`graphdb.gpu.data.pages`) have
megabytes, in which long lists stand beside short ones.  Here the lists of every 16 vertices are placed by themselves:
either behind one another on the device, or as they stand in pinned memory of the host, where kernels read them over the
link (zero-copy, GAMMA §3.2).  The offset layer has 32-bit offsets of the vertices from the first that has neighbours to
the last, and for each such block how far its lists stand from there.  Searches read lists in few bits
(:mod:`graphdb.gpu.data.bit_packed`): more of them stand on the device, and less of the others comes over the link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.data.bit_packed import TOGETHER, Packing, header_words, headers, pinned_words
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.pinned import Pinned, keep_while_read, pinned
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LOOKED_UP = 3.0
"""Reads of the offset layer for each list that is read."""
SHORT = 1 << 32
"""Entries from which offsets of 32 bits are too short."""
PIECE = 1 << 16
"""Bytes of lists that are copied in one piece, or not at all."""
VERTICES = 1 << 31
"""Vertices that a row of a plan's table of partitions can number."""


def can_be_divided(partition: Partition) -> bool:
    """Whether a partition's lists can be: those found by offsets of all vertices, which no batch changes in place."""
    direct = partition.layer == "direct" and partition.spans is None
    return direct and partition.neighbours.size < SHORT and partition.offsets.size < VERTICES


def reads_when_found(lengths: Ints) -> Floats:
    """How many reads a list is expected to take each time that it is found: long ones are searched, not scanned."""
    return 1.0 + np.log2(1.0 + lengths.astype(np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class VertexBlocks:
    """The blocks of vertices of a partition.

    Attributes
    ----------
    first, count
        The first vertex that has neighbours, and how many there are up to the last that does.
    bounds
        int64 [blocks + 1]: where the blocks' lists begin, and the last one ends.
    heats
        float64 [blocks]: the reads that are expected of each.
    """

    first: int
    count: int
    bounds: Ints
    heats: Floats

    @classmethod
    def of(cls, partition: Partition) -> VertexBlocks:
        """Those of a partition: each list is expected to be found as often as it is long, and read or searched then."""
        keys = partition.keys
        first, count = (int(keys[0]), int(keys[-1]) - int(keys[0]) + 1) if len(keys) else (0, 0)
        offsets = partition.offsets[first : first + count + 1]
        begins = np.arange(0, count, TOGETHER)
        lengths = np.diff(offsets)
        heats = np.add.reduceat(lengths * reads_when_found(lengths), begins) if count else np.empty(0)
        return cls(first, count, np.append(offsets[begins], offsets[-1:]), heats)

    def heats_of(self, partition: Partition, times: Floats) -> Floats:
        """How many reads are expected of each block whose vertices are found so often: float64 [blocks].

        ``times`` is by vertex; none is found beyond its end.
        """
        lengths = np.diff(partition.offsets[self.first : self.first + self.count + 1])
        found, reads = times[self.first : self.first + self.count], np.zeros(self.count)
        reads[: len(found)] = found * reads_when_found(lengths[: len(found)])
        return np.add.reduceat(reads, np.arange(0, self.count, TOGETHER)) if self.count else reads

    def header_words(self, packing: Packing | None) -> int:
        """Numbers of 32 bits of the offset layer: offsets, to a multiple of two, and shifts of 64 bits; or what tells
        where lists in few bits are.
        """
        if packing is not None:
            return header_words(self.bounds)
        return (self.count + 2) // 2 * 2 + 2 * len(self.heats)

    def header_heat(self, partition: Partition) -> float:
        """Reads of the offset layer: each neighbour is a vertex that was found, and whose list may be read."""
        return LOOKED_UP * partition.neighbours.size


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class DividedLists:
    """The copy of a partition's lists, by blocks.

    Attributes
    ----------
    header
        The offset layer: uint32, on the device or in pinned memory.
    groups
        The first vertex in the low 32 bits, and above them how many vertices there are.
    here
        The lists on the device, in one piece or several (:func:`_copied`).
    elsewhere
        Those in pinned memory of the host; none where all are on the device.
    packing
        How neighbours are packed; None: they stand as they are, and places are told from the beginning of the first
        piece on the device.
    """

    header: Any
    groups: int
    here: tuple[Any, ...]
    elsewhere: NDArray[Any]
    nbytes: int
    packing: Packing | None = None


def divide(
    memory: DeviceMemory,
    partition: Partition,
    blocks: VertexBlocks,
    resident: NDArray[np.bool_],
    packing: Packing | None = None,
) -> DividedLists:
    """Copy a partition: ``resident``, bool [1 + blocks], says of its offset layer, and of each block behind it, whether
    it is copied; with ``packing`` all lists are packed, those in host memory too.

    Raises
    ------
    MemoryLimitError
        There is too little memory for a list, or for the offset layer, in one piece.
    """
    header_here, hot = bool(resident[0]), resident[1:]
    begin, end = int(blocks.bounds[0]), int(blocks.bounds[-1])
    neighbours, sizes = partition.neighbours, np.diff(blocks.bounds)
    # The offset layer stands in one piece, so it is the first to have one.
    count = blocks.header_words(packing)
    header: Any = memory.empty(count, np.uint32) if header_here else Pinned(memory.pinned((count,), np.uint32))
    chosen = neighbours[begin:end][np.repeat(hot, sizes)]
    bounds = np.concatenate([[0], np.cumsum(sizes[hot])])
    packed = (lambda values: values) if packing is None else packing.pack
    copied = partial(_copied, lambda values: memory.upload(packed(values)), chosen, bounds)
    here = copied() if chosen.size else [(0, memory.empty(1, neighbours.dtype))]
    elsewhere = neighbours[:0]
    if not hot.all():
        elsewhere = pinned(memory, neighbours) if packing is None else pinned_words(memory, partition, packing)
    # The addresses of the bits where each block's lists begin.
    bits = 8 * neighbours.itemsize if packing is None else packing.bits
    begins, starts = np.array([begun for begun, _ in here]), np.array([int(piece.data.ptr) for _, piece in here])
    own = np.cumsum(sizes * hot) - sizes * hot
    piece = np.searchsorted(begins, own, "right") - 1
    there = 8 * int(elsewhere.ctypes.data) + blocks.bounds[:-1] * bits
    firsts = np.where(hot, 8 * starts[piece] + (own - begins[piece]) * bits, there)
    offsets = partition.offsets[blocks.first : blocks.first + blocks.count + 1]
    if packing is not None:
        words = headers(firsts, offsets, blocks.bounds, int(header.data.ptr))
    else:
        words = np.zeros(count, np.uint32)
        words[: blocks.count + 1] = offsets
        away = (firsts - 8 * starts[0]) // bits - blocks.bounds[:-1]
        words[(blocks.count + 2) // 2 * 2 :] = away.astype(np.int64).view(np.uint32)
    if header_here:
        memory.write(header, words)
    else:
        header.values[:] = words
    groups = blocks.first | blocks.count << 32
    pieces = tuple(copy for _, copy in here)
    nbytes = sum(int(copy.nbytes) for copy in pieces) + int(header.nbytes)
    made = DividedLists(header, groups, pieces, elsewhere, nbytes, packing)
    keep_while_read(memory, made, [header, elsewhere])
    return made


def _copied(copy: Callable[[NDArray[Any]], Any], values: NDArray[Any], bounds: Ints) -> list[tuple[int, Any]]:
    """Copy lists to the device, in one piece, or in halves where what is free is in pieces: where each begins among
    the values, and its copy.  No piece ends but at some of the ``bounds``.
    """
    first, last = int(bounds[0]), int(bounds[-1])
    try:
        return [(first, copy(values[first:last]))]
    except MemoryLimitError:
        middle = int(np.searchsorted(bounds, (first + last) // 2))
        if values.itemsize * (last - first) < PIECE or not 0 < middle < len(bounds) - 1:
            raise
    begun = _copied(copy, values, bounds[: middle + 1])
    return begun + _copied(copy, values, bounds[middle:])
