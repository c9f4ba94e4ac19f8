"""The triples of a batch by label, and what their statistics are, as machine code.

Within a label, a triple is a key: the subject's code in the upper half of 64 bits, the object's in the lower.  The bit
of literals is the highest of a code, so keys are in the order of ids.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import kernel
from graphdb.storage.terms import LITERAL_BASE

Codes = NDArray[np.uint32]
Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]

_LITERAL = 1 << 31
_OBJECT = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_BASE = np.int64(LITERAL_BASE)

RESOURCE_TRIPLES, SUBJECTS, OBJECTS, MAX_OUT, MAX_IN, KINDS, MAX_VALUES, CLASSES = range(8)
"""Places in the ``totals`` of a label; the last counts the vertex labels at its ends."""

BUCKETS = 32
"""Powers of two that a degree can have."""


@kernel
def histogram(triples: Codes, counts: Ints) -> None:
    """Count the triples (uint32[n, 3]) of each label."""
    for row in range(len(triples)):
        counts[triples[row, 1]] += 1


@kernel
def scatter(triples: Codes, places: Ints, keys: Keys) -> None:
    """Write the keys of triples (uint32[n, 3]) to where ``places`` says for their labels, and move these on.

    A label whose place is negative is left out.
    """
    for row in range(len(triples)):
        place = places[triples[row, 1]]
        if place >= 0:
            keys[place] = np.uint64(triples[row, 0]) << _HALF | np.uint64(triples[row, 2])
            places[triples[row, 1]] = place + 1


@kernel
def distinct(keys: Keys) -> int:
    """Move the distinct ones of sorted keys to the front; return how many there are."""
    count = 0
    for i in range(len(keys)):
        if not count or keys[i] != keys[count - 1]:
            keys[count] = keys[i]
            count += 1
    return count


@kernel
def spread(keys: Keys, subjects: Ints, objects: Ints) -> None:
    """Write the ids of keys' subjects and objects."""
    for i in range(len(keys)):
        subjects[i] = np.int64(keys[i] >> _HALF)
        found = np.int64(keys[i] & _OBJECT)
        objects[i] = found - _LITERAL + _BASE if found >= _LITERAL else found


@kernel
def targets(keys: Keys, objects: Codes) -> None:
    """Write the objects of keys."""
    for i in range(len(keys)):
        objects[i] = np.uint32(keys[i] & _OBJECT)


@kernel
def _bucket(degree: int) -> int:
    """Return the power of two that a degree is at least."""
    bucket = 0
    while degree >> (bucket + 1):
        bucket += 1
    return bucket


@kernel
def _add(
    vertex: int, degree: int, direction: int, starts: Ints, classes: Ints, totals: Ints, degrees: Ints, pairs: Ints,
    touched: Ints,
) -> None:  # fmt: skip
    """Add one vertex."""
    bucket = _bucket(degree)
    degrees[direction, bucket, 0] += 1
    degrees[direction, bucket, 1] += degree
    degrees[direction, bucket, 2] += degree * degree
    if vertex < _LITERAL:
        for i in range(starts[vertex], starts[vertex + 1]):
            at = classes[i]
            if not pairs[at, 0, 1] and not pairs[at, 1, 1]:
                touched[totals[CLASSES]] = at
                totals[CLASSES] += 1
            pairs[at, direction, 0] += degree
            pairs[at, direction, 1] += 1


@kernel
def measure(
    keys: Keys,
    objects: Codes,
    starts: Ints,
    classes: Ints,
    kinds: NDArray[np.uint8],
    totals: Ints,
    degrees: Ints,
    pairs: Ints,
    touched: Ints,
) -> None:
    """Add up the statistics of one label (see :mod:`graphdb.storage.statistics`).

    Parameters
    ----------
    keys : uint64[n]
        Its distinct triples, sorted.
    objects : uint32[n]
        Their objects, sorted.
    starts, classes : int64[resources + 1], int64[]
        The vertex labels of each resource, numbered from 0: those from ``classes[starts[r]]`` to
        ``classes[starts[r + 1]]``.
    kinds : uint8[literals]
        The kind of each literal.
    totals : int64[8]
        See :data:`RESOURCE_TRIPLES` and its neighbours; 0 at first.
    degrees : int64[2, BUCKETS, 3]
        By direction and bucket: vertices, edges, squares; 0 at first.
    pairs : int64[vertex labels, 2, 2]
        By vertex label and direction: edges and vertices; 0 at first.
    touched : int64[vertex labels]
        Receives the vertex labels that have pairs.
    """
    count = len(keys)
    begin = 0
    while begin < count:
        subject = int(keys[begin] >> _HALF)
        end, values = begin, 0
        while end < count and int(keys[end] >> _HALF) == subject:
            values += int(int(keys[end] & _OBJECT) >= _LITERAL)
            end += 1
        degree = end - begin
        totals[SUBJECTS] += 1
        totals[MAX_OUT] = max(totals[MAX_OUT], degree)
        totals[MAX_VALUES] = max(totals[MAX_VALUES], values)
        _add(subject, degree, 0, starts, classes, totals, degrees, pairs, touched)
        begin = end
    begin = 0
    while begin < count:
        found = int(objects[begin])
        end = begin
        while end < count and int(objects[end]) == found:
            end += 1
        degree = end - begin
        totals[OBJECTS] += 1
        totals[MAX_IN] = max(totals[MAX_IN], degree)
        if found < _LITERAL:
            totals[RESOURCE_TRIPLES] += degree
        else:
            totals[KINDS] |= 1 << kinds[found - _LITERAL]
        _add(found, degree, 1, starts, classes, totals, degrees, pairs, touched)
        begin = end
