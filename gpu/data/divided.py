"""Lists that do not all fit the device, divided by vertices: those that are read most stand there, others on the host.

How often lists are read is uneven: a tenth of their bytes may take two thirds of the reads, since the long lists are
those of vertices that are found often (access heat, GAMMA §5.1).  Pages (:mod:`graphdb.gpu.data.pages`) have
megabytes, in which long lists stand beside short ones.  Here the lists of every 16 vertices are placed by themselves:
either behind one another on the device, or as they stand in pinned memory of the host, where kernels read them over the
link (zero-copy, GAMMA §3.2).  The offset layer has 32-bit offsets of the vertices from the first that has neighbours to
the last, and for each such block how far its lists stand from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.pinned import Pinned, keep_while_read, pinned, pinned_copy
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TOGETHER = 16
"""Vertices whose lists stand in the same place: ``TOGETHER`` of ``sets.cuh``."""
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

    @property
    def header_words(self) -> int:
        """Numbers of 32 bits of the offset layer: offsets, to a multiple of two, and shifts of 64 bits."""
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
        The lists on the device, in one piece or several (:func:`_copied`); places of all are told from the beginning
        of the first.
    """

    header: Any
    groups: int
    here: tuple[Any, ...]
    elsewhere: NDArray[Any]
    nbytes: int


def divide(
    memory: DeviceMemory, partition: Partition, blocks: VertexBlocks, resident: NDArray[np.bool_]
) -> DividedLists:
    """Copy a partition: ``resident`` says of its offset layer, and of each block behind it, whether it is copied."""
    header_here, hot = bool(resident[0]), resident[1:]
    begin, end = int(blocks.bounds[0]), int(blocks.bounds[-1])
    sizes = np.diff(blocks.bounds)
    # The offset layer stands in one piece, so it is the first to have one.
    header: Any = memory.empty(blocks.header_words, np.uint32) if header_here else None
    chosen = partition.neighbours[begin:end][np.repeat(hot, sizes)]
    bounds = np.concatenate([[0], np.cumsum(sizes[hot])])
    here = _copied(memory, chosen, bounds) if chosen.size else [(0, memory.empty(1, partition.neighbours.dtype))]
    elsewhere = pinned(memory, partition.neighbours) if not hot.all() else partition.neighbours[:0]
    width, base = partition.neighbours.itemsize, int(here[0][1].data.ptr)
    own = np.cumsum(sizes * hot) - sizes * hot
    begins = np.array([begun for begun, _ in here])
    apart = np.array([(int(piece.data.ptr) - base) // width - begun for begun, piece in here])
    own += apart[np.searchsorted(begins, own, "right") - 1] - blocks.bounds[:-1]
    away = (int(elsewhere.ctypes.data) - base) // width
    words = np.zeros(blocks.header_words, np.uint32)
    words[: blocks.count + 1] = partition.offsets[blocks.first : blocks.first + blocks.count + 1]
    words[(blocks.count + 2) // 2 * 2 :] = np.where(hot, own, away).astype(np.int64).view(np.uint32)
    if header_here:
        memory.write(header, words)
    else:
        header = Pinned(pinned_copy(memory, words, words.dtype))
    groups = blocks.first | blocks.count << 32
    pieces = tuple(piece for _, piece in here)
    nbytes = sum(int(piece.nbytes) for piece in pieces) + int(header.nbytes)
    made = DividedLists(header, groups, pieces, elsewhere, nbytes)
    keep_while_read(memory, made, [header, elsewhere])
    return made


def _copied(memory: DeviceMemory, values: NDArray[Any], bounds: Ints) -> list[tuple[int, Any]]:
    """Copy lists to the device, in one piece, or in halves where what is free is in pieces: where each begins among
    the values, and its copy.  No piece ends but at some of the ``bounds``.
    """
    first, last = int(bounds[0]), int(bounds[-1])
    try:
        return [(first, memory.upload(values[first:last]))]
    except MemoryLimitError:
        middle = int(np.searchsorted(bounds, (first + last) // 2))
        if values.itemsize * (last - first) < PIECE or not 0 < middle < len(bounds) - 1:
            raise
    begun = _copied(memory, values, bounds[: middle + 1])
    return begun + _copied(memory, values, bounds[middle:])
