"""Sets of integers as sorted arrays: construction, union, intersection and lookup."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

_MARKED = 64
"""Marks for all vertices are scanned in the time that a list so many times smaller is sorted in."""

_LARGE = 10_000
"""Members from which on looking each of them up takes longer than marking those of the other set."""

_TABLE = 4
"""Places of a table for each number that is looked up, at most: they are filled as fast as some steps of a search."""

_SPREAD = 16
"""Places for each member, at most, where they are marked."""


def unique(numbers: ArrayLike) -> NDArray[Any]:
    """Return the different ones of some integers, sorted: what :func:`numpy.unique` returns, in less time.

    From NumPy 2.3 on, that one fills a hash table, which takes 12 to 80 times as long for many that differ, and no less
    for few; so do ``numpy.union1d``, ``numpy.intersect1d`` and ``numpy.setdiff1d``, which call it.
    """
    found = np.sort(numbers, axis=None)
    is_first = np.empty(len(found), np.bool_)
    is_first[:1] = True
    np.not_equal(found[1:], found[:-1], out=is_first[1:])
    return found[is_first]


def either(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return what is in one of two arrays of integers at least, sorted, each once."""
    return unique(np.concatenate([left.reshape(-1), right.reshape(-1)]))


def both(left: Ints, right: Ints) -> Ints:
    """Return what is in both of two sorted sets: the smaller one looks its members up, or marks many."""
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    if not len(few):
        return few
    if len(few) > _LARGE and few[-1] - few[0] < _SPREAD * len(few):
        first, last = few[0], few[-1]
        begin, end = np.searchsorted(many, (first, last + 1))
        if last - first < len(few):  # a run of numbers
            within: Ints = many[begin:end]
            return within
        marks = np.zeros(last - first + 1, np.bool_)
        marks[many[begin:end] - first] = True
        marked: Ints = few[marks[few - first]]
        return marked
    found: Ints = few[many[np.minimum(many.searchsorted(few), len(many) - 1)] == few]
    return found


def places(numbers: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where numbers stand, or would, in a sorted array, and whether they do."""
    at = np.searchsorted(numbers, wanted)
    there = np.zeros(len(wanted), bool)
    inside = at < len(numbers)
    there[inside] = numbers[at[inside]] == wanted[inside]
    return at, there


def looked_up(numbers: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return where numbers stand in a sorted array of different ones, whether they do; anything where they do not.

    Those that are wanted may come in any order and again: where they are many beside the range of the array, a table of
    that is read instead of searching for each.
    """
    first = int(numbers[0]) if len(numbers) else 0
    width = int(numbers[-1]) - first + 1 if len(numbers) else 0
    if not 0 < width <= _TABLE * len(wanted):
        return places(numbers, wanted)
    table = np.full(width + 1, -1, np.int32)  # what is out of range reads the last
    table[numbers - first] = np.arange(len(numbers), dtype=np.int32)
    shifted = wanted - first
    at = table[np.where(shifted.view(np.uint64) < width, shifted, width)].astype(np.int64)
    return at, at >= 0


def without(numbers: Ints, gone: Ints) -> Ints:
    """A sorted array without some numbers: each of these is looked up."""
    at, there = places(numbers, gone)
    return np.delete(numbers, at[there]) if there.any() else numbers


def joined(numbers: Ints, come: Ints) -> Ints:
    """A sorted array with some numbers, sorted, that it may have already: each of these is looked up."""
    at, there = places(numbers, come)
    return numbers if there.all() else np.insert(numbers, at[~there], come[~there])


def each_once(ids: NDArray[np.signedinteger[Any]], bound: int) -> Ints:
    """Return the ids in a list, each once and sorted; all are below ``bound``."""
    first = 0
    if len(ids) <= 1:
        return ids.astype(np.int64)
    if len(ids) * _MARKED < bound:
        first, bound = int(ids.min()), int(ids.max()) + 1
        if len(ids) * _MARKED < bound - first:
            return unique(ids).astype(np.int64)
    marks = np.zeros(bound - first, np.bool_)
    marks[ids - first if first else ids] = True
    marked = np.flatnonzero(marks)
    return marked + first if first else marked
