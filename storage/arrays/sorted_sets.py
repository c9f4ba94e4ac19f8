"""Sets of vertices as sorted int64 arrays: intersection, lookup and construction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_MARKED = 64
"""Marks for all vertices are scanned in the time that a list so many times smaller is sorted in."""


_DENSE = 16
"""Marks are made in the time that so many times fewer members are searched for one by one."""


def both(left: Ints, right: Ints) -> Ints:
    """Return what is in both of two sorted sets: the smaller one's members are looked up, by marks in a dense one."""
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    if not len(few):
        return few
    low, high = min(int(few[0]), int(many[0])), max(int(few[-1]), int(many[-1]))
    if high - low < _DENSE * len(few):
        marks = np.zeros(high - low + 1, np.bool_)
        marks[many - low] = True
        dense: Ints = few[marks[few - low]]
        return dense
    kept: Ints = few[many[np.minimum(np.searchsorted(many, few), len(many) - 1)] == few]
    return kept


def places(numbers: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where numbers stand, or would, in a sorted array, and whether they do."""
    at = np.searchsorted(numbers, wanted)
    there = np.zeros(len(wanted), bool)
    inside = at < len(numbers)
    there[inside] = numbers[at[inside]] == wanted[inside]
    return at, there


def each_once(ids: NDArray[np.signedinteger[Any]], bound: int) -> Ints:
    """Return the ids in a list, each once and sorted; all are below ``bound``."""
    if len(ids) * _MARKED < bound:
        found = np.sort(ids).astype(np.int64)  # np.unique would hash them, which takes longer
        return found[np.append(True, found[1:] != found[:-1])] if len(found) else found
    marks = np.zeros(bound, np.bool_)
    marks[ids] = True
    return np.flatnonzero(marks)
