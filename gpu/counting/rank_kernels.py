"""Neighbour lists by rank, list by list: a list's entries are written where its vertex stands, and sorted there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]
Words = NDArray[np.uint32]


@kernel
def sort(values: NDArray[np.int32], begin: int, end: int) -> None:
    """Sort values[begin:end] in place (Shell 1959, gaps by 2.25): most lists are a few entries long."""
    gap = 1
    while gap * 9 // 4 < end - begin:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(begin + gap, end):
            value, at = values[i], i
            while at >= begin + gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap = 0 if gap == 1 else max(gap * 4 // 9, 1)


@entry("i8[:], i8[:], i8[:], T[:], u4[:], u4[:], u4[:], i4[:]")
def rank_lists(
    keys: Ints,
    starts: Ints,
    neighbours: NDArray[Any],
    rank: NDArray[np.int32],
    begin: Words,
    less: Words,
    more: Words,
    ids: NDArray[np.int32],
) -> None:
    """Write ``less``, ``more`` and ``ids`` of :class:`graphdb.gpu.counting.ranks.Ranked`.

    Parameters
    ----------
    keys, starts, neighbours
        int64 [k], [k + 1] and the entries: the list of ``keys[i]`` is ``neighbours[starts[i]:starts[i + 1]]``.
    rank
        By vertex.
    begin
        uint32 [ranks + 1]; ``less`` and ``more`` [ranks] begin as its first ranks, for vertices without a list here.
    """
    for i in range(len(keys)):
        own = rank[keys[i]]
        first: Any = np.int64(begin[own])
        at = first
        for k in range(starts[i], starts[i + 1]):
            ids[at] = rank[neighbours[k]]
            at += 1
        sort(ids, first, at)
        k = first
        while k < at and ids[k] < own:
            k += 1
        less[own] = k
        while k < at and ids[k] <= own:
            k += 1
        more[own] = k
