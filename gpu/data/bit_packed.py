"""Lists in as many bits a neighbour as those of their partition need: what is left of each, less the least of them.

All lists of a partition share the least neighbour and the number of bits (bit packing with a frame of reference:
Goldstein, Ramakrishnan and Shaft, 1998; Zukowski et al., 2006).  So any neighbour is found by its place alone, and
lists are scanned and searched as those of vertex ids are (``elements.cuh``).  A label's neighbours are of few kinds,
whose vertices stand together: tags take 11 bits, a hundred thousand people 17.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.packed_kernels import pack_bits
from graphdb.gpu.data.pinned import Pinned
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

MOST = 28
"""Bits of a neighbour beyond which lists stand as they are: they would take nearly as much room."""
TOGETHER = 16
"""Vertices of a block, whose lists stand in the same place: ``TOGETHER`` of ``sets.cuh``."""
BLOCK_WORDS = 2 + TOGETHER // 2
"""Words of what tells where a block's lists are: ``BLOCK_WORDS`` of ``elements.cuh``."""
SHORT = (1 << 16) - 1
"""Neighbours of a block, at most, whose lists' ends are told by 16 bits."""
ELSEWHERE = 1 << 63
"""Set in a block's first word of 64 bits: its lists' ends stand elsewhere."""
PINNED = "pinned, in few bits"
"""What the lists of a partition in host memory are cached as."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How the neighbours of a partition are packed.

    Attributes
    ----------
    least
        What is taken away from each.
    bits
        How many each takes.
    """

    least: int
    bits: int

    def words(self, entries: int) -> int:
        """Words of 32 bits that so many neighbours take."""
        return -(-entries * self.bits // 32)

    def pack(self, neighbours: NDArray[Any], words: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """Return neighbours packed, uint32 [words], one behind the other from the lowest bit on; written to ``words``,
        if they are given.
        """
        words = np.empty(self.words(len(neighbours)), np.uint32) if words is None else words
        pack_bits(neighbours, self.least, self.bits, words)
        return words


def header_words(bounds: Ints) -> int:
    """Words of 32 bits that tell where the lists of blocks are, which begin and end at ``bounds``."""
    return BLOCK_WORDS * (len(bounds) - 1) + TOGETHER * int((np.diff(bounds) > SHORT).sum())


def headers(firsts: Ints, offsets: Ints, bounds: Ints, address: int) -> NDArray[np.uint32]:
    """Return what tells where lists are, as ``elements.cuh`` reads it.

    Parameters
    ----------
    firsts
        int64 [blocks]: the addresses of their first bits.
    offsets
        int64 [vertices + 1]: the entries that begin each list.
    bounds
        int64 [blocks + 1]: those that begin the lists of each block.
    address
        Where the words are going to stand.

    Returns
    -------
    numpy.ndarray
        uint32 [:func:`header_words`].
    """
    blocks = len(firsts)
    ends = np.full(blocks * TOGETHER, offsets[-1])
    ends[: len(offsets) - 1] = offsets[1:]
    ends = ends.reshape(blocks, TOGETHER) - bounds[:-1, None]
    long = np.flatnonzero(np.diff(bounds) > SHORT)
    words = np.empty((blocks, BLOCK_WORDS), np.uint32)
    words[:, 2:] = ends.astype(np.uint16).view(np.uint32)
    tables = address + 4 * (words.size + TOGETHER * np.arange(len(long)))
    words[long, 2:4] = tables.astype(np.uint64)[:, None].view(np.uint32)
    begins = firsts.astype(np.uint64)
    begins[long] |= np.uint64(ELSEWHERE)
    words[:, :2] = begins[:, None].view(np.uint32)
    return np.concatenate([words.ravel(), ends[long].astype(np.uint32).ravel()])


_KNOWN: WeakKeyDictionary[Partition, Packing | None] = WeakKeyDictionary()


def packing_of(partition: Partition) -> Packing | None:
    """How the lists of a partition are packed; None where that would gain little, or there are none."""
    if partition not in _KNOWN:
        neighbours, found = partition.neighbours, None
        if len(neighbours):
            least = int(neighbours.min())
            bits = max((int(neighbours.max()) - least).bit_length(), 1)
            found = Packing(least, bits) if bits <= MOST else None
        _KNOWN[partition] = found
    return _KNOWN[partition]


def pinned_words(memory: DeviceMemory, partition: Partition, packing: Packing) -> NDArray[np.uint32]:
    """Return all lists of a partition, packed, in pinned memory of the host; made when they are first asked for."""

    def made() -> Pinned:
        words = memory.pinned((packing.words(len(partition.neighbours)),), np.dtype(np.uint32))
        return Pinned(packing.pack(partition.neighbours, words))

    found: Pinned = memory.cached_or_built(PINNED, partition, made)
    return found.values
