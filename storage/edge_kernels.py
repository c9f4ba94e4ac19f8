"""The loop behind :mod:`graphdb.storage.edges` (Numba)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import kernel

Ints = NDArray[np.int64]


@kernel
def find_edges(
    which: Ints,
    starts: Ints,
    ends: Ints,
    runs: Ints,
    offsets: Ints,
    starts_of: Ints,
    ends_of: Ints,
    first: Ints,
    found: Ints,
    count: Ints,
) -> None:
    """Write, for each (which label, start, end), the number of its first edge and how many edges it stands for.

    ``starts_of`` and ``ends_of`` are those of the triples, label after label as ``runs`` says, sorted in each;
    ``offsets`` is flat, [labels, vertices + 1], or empty.  What is not there gets -1, and 1.
    """
    width = len(offsets) // max(len(runs) - 1, 1)
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
                if start >= width - 1:
                    continue
                low, high = offsets[label * width + start], offsets[label * width + start + 1]
            at = low
            while at < high:
                middle = (at + high) // 2
                if starts_of[middle] < start or (starts_of[middle] == start and ends_of[middle] < end):
                    at = middle + 1
                else:
                    high = middle
            if at == runs[label + 1] or starts_of[at] != start or ends_of[at] != end:
                continue
        found[i], count[i] = first[at], first[at + 1] - first[at]
        at += 1
