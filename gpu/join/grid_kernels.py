"""Blocks of sorted lists (:mod:`graphdb.gpu.join.grid`): each list's elements are in the order of their ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]


@entry("i8[:], T[:], i8[:], i8[:]")
def count_elements(offsets: Ints, neighbours: NDArray[Any], ends: Ints, counts: Ints) -> None:
    """Count the elements of some vertices' lists that are in each range.

    Parameters
    ----------
    offsets, neighbours
        int64 [vertices + 1] and the elements of all lists, each sorted: those of vertex v are
        ``neighbours[offsets[v]:offsets[v + 1]]``.
    ends
        int64 [ranges - 1]: what the elements of each range but the last are below.
    counts
        int64 [ranges], to which is added.
    """
    for v in range(len(offsets) - 1):
        own = 0
        for i in range(offsets[v], offsets[v + 1]):
            while own < len(ends) and neighbours[i] >= ends[own]:
                own += 1
            counts[own] += 1


@entry("i8[:], T[:], i8[:], i8[:, :], T[:]")
def place_elements(offsets: Ints, neighbours: NDArray[Any], ends: Ints, places: Ints, blocked: NDArray[Any]) -> None:
    """Put the elements of some vertices' lists one behind the other, range by range.

    Parameters
    ----------
    offsets, neighbours, ends
        As of :func:`count_elements`.
    places
        int64 [ranges, vertices + 1]: where a vertex' elements of a range begin, and the last one's end; the first
        column is given, the others are written.
    blocked
        The elements of all blocks, to which these are written.
    """
    last = len(offsets) - 1
    for v in range(last):
        for own in range(len(places)):
            places[own, v + 1] = places[own, v]
        own = 0
        for i in range(offsets[v], offsets[v + 1]):
            while own < len(ends) and neighbours[i] >= ends[own]:
                own += 1
            blocked[places[own, v + 1]] = neighbours[i]
            places[own, v + 1] += 1
