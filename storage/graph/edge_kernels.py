"""The loop behind :mod:`graphdb.storage.graph.edges`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]


@entry("i8[:], T[:], T[:], i8[:], i8[:], T[:], T[:], i8[:], i8[:], i8[:]")
def find_edges(
    which: Ints,
    starts: NDArray[Any],
    ends: NDArray[Any],
    runs: Ints,
    offsets: Ints,
    starts_of: NDArray[Any],
    ends_of: NDArray[Any],
    first: Ints,
    found: Ints,
    count: Ints,
) -> None:
    """Write, for each (which label, start, end), the number of its first edge and how many edges it stands for.

    ``starts_of`` and ``ends_of`` are those of the triples, label after label as ``runs`` says, sorted in each;
    ``offsets`` is flat, [labels, vertices + 1], or empty.  What is not there gets -1, and 1.
    """
    width = len(offsets) // (len(runs) - 1)
    simple = first[-1] == len(first) - 1
    at = 0
    for i in range(len(which)):
        found[i], count[i] = -1, 1
        label, start, end = which[i], starts[i], ends[i]
        if label < 0:
            continue
        low, high = runs[label], runs[label + 1]
        # Rows often come in the order of the triples, some with one triple several times.
        if low < at <= high and starts_of[at - 1] == start and ends_of[at - 1] == end:
            at -= 1
        if not (low <= at < high and starts_of[at] == start and ends_of[at] == end):
            if width:
                low, high = offsets[label * width + start], offsets[label * width + start + 1]
            else:
                low = low + np.searchsorted(starts_of[low:high], start)
                high = low + np.searchsorted(starts_of[low:high], start, side="right")
            at, last = low, high
            if low < high and ends_of[low] < end:  # whole lists begin with their first
                while at < last:
                    middle = (at + last) >> 1
                    if ends_of[middle] < end:
                        at = middle + 1
                    else:
                        last = middle
            if at == high or ends_of[at] != end:
                continue
        if simple:
            found[i] = at
        else:
            found[i], count[i] = first[at], first[at + 1] - first[at]
        at += 1


@entry("i8[:], i8[:], i8[:], i8[:]")
def spread_edges(first: Ints, count: Ints, rows: Ints, edges: Ints) -> None:
    """Write, of triples with ``count`` edges from ``first`` on, each edge and which triple it is of."""
    at = 0
    for i in range(len(first)):
        for edge in range(count[i]):
            rows[at], edges[at] = i, first[i] + edge
            at += 1


@entry("T[:], T[:], i8[:], i8[:], T[:], i8[:], i8[:]")
def count_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    begins: Ints,
    ends: Ints,
    neighbours: NDArray[Any],
    code_offsets: Ints,
    count: Ints,
) -> None:
    """Write how many data edges lead from each source to its target.

    ``begins`` and ``ends`` say, by vertex, where its sorted ``neighbours`` stand; each is one edge, or as many as there
    are codes, where ``code_offsets`` are given.
    """
    several = len(code_offsets) > 0
    at = 0
    for i in range(len(sources)):
        low, high, target = begins[sources[i]], ends[sources[i]], targets[i]
        # Rows often come in the order of the lists.
        if not (low <= at < high and neighbours[at] == target):
            at, last = low, high
            while at < last:
                middle = (at + last) >> 1
                if neighbours[middle] < target:
                    at = middle + 1
                else:
                    last = middle
        if at == high or neighbours[at] != target:
            count[i] = 0
            continue
        count[i] = code_offsets[at + 1] - code_offsets[at] if several else 1
        at += 1
