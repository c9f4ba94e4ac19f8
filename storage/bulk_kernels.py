"""The triples of a batch by label, and what their statistics are, as machine code.

Within a label, a triple is a key: the subject's code in the upper half of 64 bits, the object's in the lower.  The bit
of literals is the highest of a code, so keys are in the order of ids.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import entry, kernel
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
def _slot(labels: Ints, label: int | np.int64) -> int | np.int64:
    """Return where a label is in a table of labels, or would be (linear probing, from a multiplicative hash)."""
    size = len(labels)
    slot = (label * 0x9E3779B1 & 0xFFFFFFFF) * size >> 32
    while labels[slot, 0] != label and labels[slot, 0] != -1:
        slot = slot + 1 if slot + 1 < size else 0
    return int(slot)


@entry
def histogram(triples: Codes, begin: int, labels: Ints, used: int) -> tuple[int, int]:
    """Count the triples (uint32[n, 3]) of each label, from row ``begin`` on.

    ``labels`` (int64[slots, 2]) holds labels and their counts, -1 where empty, and ``used`` says how many; return up to
    which row there was room, with half of it left free, and how many labels it holds then.
    """
    for row in range(begin, len(triples)):
        label = np.int64(triples[row, 1])
        slot = _slot(labels, label)
        if labels[slot, 0] == -1:
            if 2 * used >= len(labels):
                return row, used
            labels[slot, 0], labels[slot, 1] = label, 0
            used += 1
        labels[slot, 1] += 1
    return len(triples), used


@entry
def put(labels: Ints, numbers: Ints, values: Ints) -> None:
    """Write values of labels into a table that has room for them."""
    for i in range(len(numbers)):
        slot = _slot(labels, numbers[i])
        labels[slot, 0], labels[slot, 1] = numbers[i], values[i]


@entry
def scatter(triples: Codes, labels: Ints, keys: Keys) -> None:
    """Write the keys of triples (uint32[n, 3]) to where ``labels`` says (see :func:`histogram`), and move that on."""
    for row in range(len(triples)):
        slot = _slot(labels, np.int64(triples[row, 1]))
        keys[labels[slot, 1]] = np.uint64(triples[row, 0]) << _HALF | np.uint64(triples[row, 2])
        labels[slot, 1] += 1


@entry
def distinct(keys: Keys) -> int:
    """Move the distinct ones of sorted keys to the front; return how many there are."""
    count = 0
    for i in range(len(keys)):
        if not count or keys[i] != keys[count - 1]:
            keys[count] = keys[i]
            count += 1
    return count


@entry
def others(keys: Keys, known: Keys, found: Keys) -> int:
    """Write the keys that are not known, both of them sorted and distinct; return how many there are."""
    count = at = 0
    for i in range(len(keys)):
        while at < len(known) and known[at] < keys[i]:
            at += 1
        if at == len(known) or known[at] != keys[i]:
            found[count] = keys[i]
            count += 1
    return count


@entry
def spread(keys: Keys, subjects: Ints, objects: Ints) -> None:
    """Write the ids of keys' subjects and objects."""
    for i in range(len(keys)):
        subjects[i] = np.int64(keys[i] >> _HALF)
        found = np.int64(keys[i] & _OBJECT)
        objects[i] = found - _LITERAL + _BASE if found >= _LITERAL else found


@entry
def codes(subjects: Ints, labels: Ints, objects: Ints, triples: Codes) -> None:
    """Write ids as triples of codes (uint32[n, 3]): what :func:`spread` undoes."""
    for i in range(len(subjects)):
        triples[i, 0], triples[i, 1] = np.uint32(subjects[i]), np.uint32(labels[i])
        found = objects[i]
        triples[i, 2] = np.uint32(found - _BASE + _LITERAL if found >= _BASE else found)


@entry
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
    vertex: int, degree: int, direction: int, starts: Codes, classes: Codes, totals: Ints, degrees: Ints, pairs: Ints,
    touched: Ints,
) -> None:  # fmt: skip
    """Add one vertex."""
    bucket = _bucket(degree)
    degrees[direction, bucket, 0] += 1
    degrees[direction, bucket, 1] += degree
    degrees[direction, bucket, 2] += degree * degree
    if vertex < _LITERAL:
        for i in range(starts[vertex], starts[vertex + 1]):
            at = np.int64(classes[i])
            if not pairs[at, 0, 1] and not pairs[at, 1, 1]:
                touched[totals[CLASSES]] = at
                totals[CLASSES] += 1
            pairs[at, direction, 0] += degree
            pairs[at, direction, 1] += 1


@entry
def measure_subjects(
    keys: Keys, held: Ints, starts: Codes, classes: Codes, totals: Ints, degrees: Ints, pairs: Ints, touched: Ints
) -> None:
    """Add up the statistics of a label's subjects (see :mod:`graphdb.storage.statistics`).

    Parameters
    ----------
    keys : uint64[n]
        Its next distinct triples, sorted; none when all were there.
    held : int64[3]
        The last subject, which may have more triples, how many it had so far, and how many of them with literals; a
        degree of 0 at first.
    starts, classes : uint32[resources + 1], uint32[]
        The vertex labels of each resource, numbered from 0: those from ``classes[starts[r]]`` to
        ``classes[starts[r + 1]]``.
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
    subject, degree, values = held[0], held[1], held[2]
    for i in range(count + (count == 0)):
        found = np.int64(keys[i] >> _HALF) if count else -1
        if found != subject:
            if degree:
                totals[SUBJECTS] += 1
                totals[MAX_OUT] = max(totals[MAX_OUT], degree)
                totals[MAX_VALUES] = max(totals[MAX_VALUES], values)
                _add(subject, degree, 0, starts, classes, totals, degrees, pairs, touched)
            subject, degree, values = found, 0, 0
        if count:
            degree += 1
            values += int(int(keys[i] & _OBJECT) >= _LITERAL)
    held[0], held[1], held[2] = subject, degree, values


@entry
def measure_objects(
    objects: Codes,
    held: Ints,
    starts: Codes,
    classes: Codes,
    kinds: NDArray[np.uint8],
    totals: Ints,
    degrees: Ints,
    pairs: Ints,
    touched: Ints,
) -> None:
    """Add up the statistics of a label's objects (uint32[n], sorted), as :func:`measure_subjects` those of subjects.

    ``kinds`` (uint8[literals]) is the kind of each literal.
    """
    count = len(objects)
    target, degree = held[0], held[1]
    for i in range(count + (count == 0)):
        found = np.int64(objects[i]) if count else -1
        if found != target:
            if degree:
                totals[OBJECTS] += 1
                totals[MAX_IN] = max(totals[MAX_IN], degree)
                if target < _LITERAL:
                    totals[RESOURCE_TRIPLES] += degree
                else:
                    totals[KINDS] |= 1 << kinds[target - _LITERAL]
                _add(target, degree, 1, starts, classes, totals, degrees, pairs, touched)
            target, degree = found, 0
        degree += int(count > 0)
    held[0], held[1] = target, degree
