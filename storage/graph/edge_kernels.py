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
        # Rows often come in the order of the triples.
        if not (low <= at < high and starts_of[at] == start and ends_of[at] == end):
            if width:
                low, high = offsets[label * width + start], offsets[label * width + start + 1]
            else:
                low = low + np.searchsorted(starts_of[low:high], start)
                high = low + np.searchsorted(starts_of[low:high], start, side="right")
            at = low + np.searchsorted(ends_of[low:high], end)
            if at == high or ends_of[at] != end:
                continue
        if simple:
            found[i] = at
        else:
            found[i], count[i] = first[at], first[at + 1] - first[at]
        at += 1
