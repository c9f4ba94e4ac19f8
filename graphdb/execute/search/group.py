"""GROUP BY over rows of two vertices without hashing: equal rows are merged, with their numbers of matches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Vertices = NDArray[np.integer]

_FITS = float(1 << 62)

_BUDGET = 1 << 20
"""Rows that a kernel call scans, about: some milliseconds."""


def grouped(
    first: Vertices, second: Vertices, numbers: Ints, vertices: int, check: Callable[[], None]
) -> tuple[Vertices, Vertices, Ints] | None:
    """Return the different rows with their numbers of matches, by either column's runs; None where neither has such,
    or the numbers are so large that sums of them may not fit.

    Rows that ascend, by one column and then by the other, are all different: they are returned as they are.

    Parameters
    ----------
    first, second, numbers
        [rows]: two vertices (below ``vertices``), and how many matches the row stands for.
    check
        Called every few milliseconds; may raise.
    """
    if _ascending(first, second, check) or _ascending(second, first, check):
        return first, second, numbers  # no two are equal
    from graphdb.execute.search.group_kernels import group_runs

    if float(numbers.sum(dtype=np.float64)) >= _FITS:
        return None
    counts = np.zeros(vertices, np.int64)
    for swapped in (False, True):
        columns = (second, first) if swapped else (first, second)
        a, b, n = (np.array(column, np.int64) for column in (*columns, numbers))
        at, out, seen = 0, 0, np.zeros(vertices, np.uint8)
        while at < len(a) and out >= 0:
            check()
            at, out = group_runs(a, b, n, at, out, counts, seen, _BUDGET)
        if out >= 0:
            found = (b, a) if swapped else (a, b)
            return found[0][:out], found[1][:out], n[:out]
    return None


def _ascending(first: Vertices, second: Vertices, check: Callable[[], None]) -> bool:
    """Whether each row is above the one before it, by the first column and then by the second."""
    for begin in range(0, len(first), _BUDGET):
        check()
        a, b = (column[begin : begin + _BUDGET + 1] for column in (first, second))
        if not ((a[1:] > a[:-1]) | ((a[1:] == a[:-1]) & (b[1:] > b[:-1]))).all():
            return False
    return True
