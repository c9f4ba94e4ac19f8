"""Puts equal rows of two columns together, where the first column's values stand in runs, as a search gives them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]


@entry("i8[:], i8[:], i8[:], i8, i8, i8[:], u1[:], i8 -> i8, i8")
def group_runs(
    first: Ints, second: Ints, numbers: Ints, at: int, out: int, counts: Ints, seen: NDArray[np.uint8], budget: int
) -> tuple[int, int]:
    """Go on with rows ``at …``, writing each different one once, in its first place, from ``out`` on, with its number.

    Parameters
    ----------
    first, second, numbers
        Int64 [rows], written over: two columns of vertices, and how many matches each row stands for.
    counts, seen
        [vertices], zero at the beginning: scratch, and which values of ``first`` had their run.
    budget
        Rows to go through before returning, at the end of a run.

    Returns
    -------
    at, out
        Where to go on; ``out`` is -1 where a value of ``first`` comes in two runs.
    """
    rows, limit = len(first), min(at + budget, len(first))
    while at < limit:
        x, begin = first[at], out
        if seen[x]:
            return at, -1
        seen[x] = 1
        while at < rows and first[at] == x:
            y = second[at]
            if counts[y] == 0:
                second[out] = y
                out += 1
            counts[y] += numbers[at]
            at += 1
        for i in range(begin, out):
            y = second[i]
            first[i], numbers[i], counts[y] = x, counts[y], 0
    return at, out
