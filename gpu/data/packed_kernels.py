"""Sorted lists in few bits, list by list (:mod:`graphdb.gpu.data.packed`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]


@entry("i8[:], T[:], u4[:], i8[:], u4[:]")
def pack_lists(
    offsets: Ints, neighbours: NDArray[Any], begins: NDArray[np.uint32], low: Ints, words: NDArray[np.uint32]
) -> None:
    """Write the words of :class:`graphdb.gpu.data.packed.PackedLists`, which are 0.

    Parameters
    ----------
    offsets, neighbours
        int64 [ranks + 1] and the entries: the list of rank v is ``neighbours[offsets[v]:offsets[v + 1]]``, sorted, of
        ranks behind v.
    begins
        uint32 [ranks + 1]: where the words of each list begin.
    low
        int64 [ranks]: how many low bits each list's entries have.
    """
    for v in range(len(low)):
        first, bits = offsets[v], low[v]
        count = offsets[v + 1] - first
        if count:
            high = np.int64(begins[v])
            words[high] = np.uint32(count | bits << 16)
            at = 32 * (np.int64(begins[v + 1]) - (count * bits + 31) // 32)
            high = 32 * (high + 1)
            for i in range(count):
                entry = np.int64(neighbours[first + i]) - v - 1
                place = high + (entry >> bits) + i
                words[place >> 5] |= np.uint32(1 << (place & 31))
                own = (entry & ((1 << bits) - 1)) << (at & 31)
                words[at >> 5] |= np.uint32(own & 0xFFFFFFFF)
                if own >> 32:
                    words[(at >> 5) + 1] |= np.uint32(own >> 32)
                at += bits


@entry("T[:], i8, i8, u4[:]")
def pack_bits(neighbours: NDArray[Any], least: int, bits: int, words: NDArray[np.uint32]) -> None:
    """Write numbers one behind the other, in so many bits each (:mod:`graphdb.gpu.data.bit_packed`).

    Parameters
    ----------
    neighbours
        [entries]: each less ``least`` fits ``bits``, at most 32.
    words
        uint32 [entries * bits / 32, rounded up], written whole.
    """
    held, filled, at = np.uint64(0), np.int64(0), np.int64(0)
    for i in range(len(neighbours)):
        held |= np.uint64(np.int64(neighbours[i]) - least) << np.uint64(filled)
        filled += bits
        if filled >= 32:
            words[at] = np.uint32(held & np.uint64(0xFFFFFFFF))
            held >>= np.uint64(32)
            filled -= 32
            at += 1
    if filled:
        words[at] = np.uint32(held)
