"""The loops behind :mod:`graphdb.storage.graph.edges`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.types import EDGE_FACTOR, EDGE_MODULUS
from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]

_MODULUS = np.uint64(EDGE_MODULUS)
_HIGH, _LOW = np.uint64(EDGE_FACTOR >> 31), np.uint64(EDGE_FACTOR & (1 << 31) - 1)
"""The factor of edges' ids: its upper bits, and its lower 31."""
_MASK_30, _MASK_31 = np.uint64((1 << 30) - 1), np.uint64((1 << 31) - 1)
_TWO, _30, _31, _61 = np.uint64(2), np.uint64(30), np.uint64(31), np.uint64(61)


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


@entry("b1[:], b1[:], T[:], T[:], i8[:] -> i8")
def among(
    from_some: NDArray[np.bool_], to_some: NDArray[np.bool_], starts: NDArray[Any], ends: NDArray[Any], places: Ints
) -> int:
    """Write where both ends are vertices that masks name, as far as these go; return how many these are."""
    count = 0
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        if start < len(from_some) and end < len(to_some) and from_some[start] and to_some[end]:
            places[count] = i
            count += 1
    return count


@kernel
def _modulo(number: np.uint64) -> np.uint64:
    """Return a number modulo 2**61 - 1: what is above 2**61 counts once."""
    found = (number & _MODULUS) + (number >> _61)
    return found - _MODULUS if found >= _MODULUS else found


@kernel
def _times_factor(number: np.uint64) -> np.uint64:
    """Return a number below 2**61 times the factor, modulo 2**61 - 1."""
    # The product has 122 bits: it is added up of those of halves, where 2**61 is 1.
    high, low = number >> _31, number & _MASK_31
    middle = high * _LOW + low * _HIGH
    return _modulo(_TWO * high * _HIGH + (middle >> _30) + ((middle & _MASK_30) << _31) + low * _LOW)


@entry("i8[:], i8[:], i8[:], i8[:], i8[:]")
def identify(labels: Ints, starts: Ints, ends: Ints, ordinals: Ints, ids: Ints) -> None:
    """Write what ``id`` of edges is, of their labels, starts, ends and ordinals."""
    label, start, before = np.int64(-1), np.int64(-1), np.uint64(0)
    for i in range(len(ids)):
        if labels[i] != label or starts[i] != start:  # edges often come in the order of their starts
            label, start = labels[i], starts[i]
            before = _modulo(_times_factor(_modulo(np.uint64(label))) + _modulo(np.uint64(start)))
            before = _times_factor(_times_factor(before))
        rest = _times_factor(_modulo(np.uint64(ends[i]))) + _modulo(np.uint64(ordinals[i]))
        ids[i] = np.int64(_modulo(before + rest))


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
