"""The triples of a batch by label, and what their statistics are, as machine code.

Within a label, a triple is a key: the subject's code in the upper half of 64 bits, the object's in the lower.  The bit
of literals is the highest of a code, so keys are in the order of ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.compile.kernels import entry, kernel

Codes = NDArray[np.uint32]
Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]

_LITERAL = 1 << 31
_OBJECT = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_BASE = np.int64(LITERAL_BASE)
_HANDFUL = 24

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


@entry("u4[:, :], i8, i8[:, :], i8 -> i8, i8")
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


@entry("i8[:, :], i8[:], i8[:]")
def put(labels: Ints, numbers: Ints, values: Ints) -> None:
    """Write values of labels into a table that has room for them."""
    for i in range(len(numbers)):
        slot = _slot(labels, numbers[i])
        labels[slot, 0], labels[slot, 1] = numbers[i], values[i]


@entry("u4[:, :], i8[:, :], u8[:]")
def scatter(triples: Codes, labels: Ints, keys: Keys) -> None:
    """Write the keys of triples (uint32[n, 3]) to where ``labels`` says (see :func:`histogram`), and move that on."""
    for row in range(len(triples)):
        slot = _slot(labels, np.int64(triples[row, 1]))
        keys[labels[slot, 1]] = np.uint64(triples[row, 0]) << _HALF | np.uint64(triples[row, 2])
        labels[slot, 1] += 1


@kernel
def _sort(keys: NDArray[Any], begin: int, end: int) -> None:
    """Sort some numbers in place, with no memory of their own (heapsort; Knuth, TAOCP 3, §5.2.3)."""
    count = end - begin
    start = count // 2
    while count > 1:
        if start:
            start -= 1
        else:
            count -= 1
            keys[begin], keys[begin + count] = keys[begin + count], keys[begin]
        root, child = start, 2 * start + 1
        moved = keys[begin + root]
        while child < count:
            if child + 1 < count and keys[begin + child] < keys[begin + child + 1]:
                child += 1
            if keys[begin + child] <= moved:
                break
            keys[begin + root] = keys[begin + child]
            root, child = child, 2 * child + 1
        keys[begin + root] = moved


@entry("u8[:], i8[:], i8")
def sort_each(keys: Keys, ends: Ints, most: int) -> None:
    """Sort the keys of each label that has at most so many: those from ``ends[i]`` to ``ends[i + 1]``, in place."""
    for label in range(len(ends) - 1):
        if ends[label + 1] - ends[label] <= most:
            _sort(keys, ends[label], ends[label + 1])


@kernel
def _insert(codes: Codes, begin: int, end: int) -> None:
    """Sort a handful of codes in place (insertion sort; Knuth, TAOCP 3, §5.2.1)."""
    for i in range(begin + 1, end):
        code, at = codes[i], i
        while at > begin and codes[at - 1] > code:
            codes[at] = codes[at - 1]
            at -= 1
        codes[at] = code


@entry("u8[:], i8, i4[:], u4[:]")
def sort_by_subject(keys: Keys, least: int, ends: NDArray[np.int32], objects: Codes) -> None:
    """Sort keys in place: their subjects are counted, and the objects of each sorted.

    ``least`` is the least subject, ``ends`` (int32[subjects from there on], 0) and ``objects`` (uint32[n]) are for use.
    """
    for i in range(len(keys)):
        ends[np.int64(keys[i] >> _HALF) - least] += 1
    begin = 0
    for subject in range(len(ends)):
        begin, ends[subject] = begin + ends[subject], begin
    for i in range(len(keys)):
        slot = np.int64(keys[i] >> _HALF) - least
        objects[ends[slot]] = np.uint32(keys[i] & _OBJECT)
        ends[slot] += 1
    begin = 0
    for subject in range(len(ends)):
        end = ends[subject]
        if end - begin <= _HANDFUL:
            _insert(objects, begin, end)
        else:
            _sort(objects, begin, end)
        for i in range(begin, end):
            keys[i] = np.uint64(subject + least) << _HALF | np.uint64(objects[i])
        begin = end


@entry("u4[:], i8, i4[:]")
def sort_codes(codes: Codes, least: int, counts: NDArray[np.int32]) -> None:
    """Sort codes in place: each is counted.  ``counts`` (int32[codes from ``least`` on], 0) is for use."""
    for i in range(len(codes)):
        counts[np.int64(codes[i]) - least] += 1
    at = 0
    for code in range(len(counts)):
        for _ in range(counts[code]):
            codes[at] = np.uint32(code + least)
            at += 1


@entry("u8[:], i8[:]")
def distinct(keys: Keys, ends: Ints) -> None:
    """Move the distinct ones of each label's keys, which are sorted, to the front (see :func:`sort_each`)."""
    count = begin = 0
    for label in range(len(ends) - 1):
        first, end = count, ends[label + 1]
        for i in range(begin, end):
            if count == first or keys[i] != keys[count - 1]:
                keys[count] = keys[i]
                count += 1
        begin, ends[label + 1] = end, count


@kernel
def _mark(keys: Keys, known: Keys, begin: int, end: int, at: int, stop: int, fresh: NDArray[np.uint8]) -> None:
    for i in range(begin, end):
        while at < stop and known[at] < keys[i]:
            at += 1
        fresh[i] = at == stop or known[at] != keys[i]


@entry("u8[:], i8[:], u8[:], i8[:], u1[:]")
def mark(keys: Keys, ends: Ints, known: Keys, known_ends: Ints, fresh: NDArray[np.uint8]) -> None:
    """Mark the keys of each label that are not among the known ones of that label (see :func:`sort_each`)."""
    for label in range(len(ends) - 1):
        _mark(keys, known, ends[label], ends[label + 1], known_ends[label], known_ends[label + 1], fresh)


@entry("u8[:], i8[:], i8[:]")
def spread(keys: Keys, subjects: Ints, objects: Ints) -> None:
    """Write the ids of keys' subjects and objects."""
    for i in range(len(keys)):
        subjects[i] = np.int64(keys[i] >> _HALF)
        found = np.int64(keys[i] & _OBJECT)
        objects[i] = found - _LITERAL + _BASE if found >= _LITERAL else found


@entry("i8[:], i8[:], i8[:], u4[:, :]")
def codes(subjects: Ints, labels: Ints, objects: Ints, triples: Codes) -> None:
    """Write ids as triples of codes (uint32[n, 3]): what :func:`spread` undoes."""
    for i in range(len(subjects)):
        triples[i, 0], triples[i, 1] = np.uint32(subjects[i]), np.uint32(labels[i])
        found = objects[i]
        triples[i, 2] = np.uint32(found - _BASE + _LITERAL if found >= _BASE else found)


@entry("u8[:], u4[:]")
def targets(keys: Keys, objects: Codes) -> None:
    """Write the objects of keys."""
    for i in range(len(keys)):
        objects[i] = np.uint32(keys[i] & _OBJECT)


@entry("u8[:], i8[:], u8[:]")
def numbered_targets(keys: Keys, ends: Ints, objects: Keys) -> None:
    """Write the objects of keys, behind the number of the label that each has (see :func:`sort_each`)."""
    for label in range(len(ends) - 1):
        for i in range(ends[label], ends[label + 1]):
            objects[i] = np.uint64(label) << _HALF | keys[i] & _OBJECT


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


@entry("u8[:], i8[:], u4[:], u4[:], i8[:], i8[:, :, :], i8[:, :, :], i8[:]")
def measure_subjects(
    keys: Keys, carried: Ints, starts: Codes, classes: Codes, totals: Ints, degrees: Ints, pairs: Ints, touched: Ints
) -> None:
    """Add up the statistics of a label's subjects (see :mod:`graphdb.storage.statistics.labels`).

    Parameters
    ----------
    keys : uint64[n]
        Its next distinct triples, sorted; none when all were there.
    carried : int64[3]
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
    subject, degree, values = carried[0], carried[1], carried[2]
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
    carried[0], carried[1], carried[2] = subject, degree, values


@entry("u4[:], i8[:], u4[:], u4[:], u1[:], i8[:], i8[:, :, :], i8[:, :, :], i8[:]")
def measure_objects(
    objects: Codes,
    carried: Ints,
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
    target, degree = carried[0], carried[1]
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
    carried[0], carried[1] = target, degree


@entry(
    "u8[:], u4[:], i8[:], i8, i8[:], u4[:], u4[:], u1[:], i8[:, :], i8[:, :, :], i8[:, :, :], i8[:], i8[:, :], "
    "i8[:, :] -> i8, i8, i8"
)
def measure_labels(
    keys: Keys,
    objects: Codes,
    ends: Ints,
    first: int,
    carried: Ints,
    starts: Codes,
    classes: Codes,
    kinds: NDArray[np.uint8],
    totals: Ints,
    degrees: Ints,
    pairs: Ints,
    touched: Ints,
    degree_rows: Ints,
    pair_rows: Ints,
) -> tuple[int, int, int]:
    """Measure labels one by one, from number ``first`` on, each as the two functions above do.

    Parameters
    ----------
    keys, objects, ends
        The keys of the labels (see :func:`sort_each`), and in the same places their objects, sorted label by label.
    totals : int64[labels, 8]
        A row for each label.
    degree_rows : int64[n, 6]
        Receives a label's number, direction, bucket; vertices, edges, squares.
    pair_rows : int64[m, 5]
        Receives a label's number, the number of a vertex label, direction; edges and vertices.

    Returns
    -------
    Before which label there was no more room, and how many rows there are of degrees and of pairs.
    """
    used = paired = 0
    for label in range(first, len(ends) - 1):
        sums = totals[label]
        if used + 2 * BUCKETS > len(degree_rows):
            return label, used, paired
        begin, end = ends[label], ends[label + 1]
        carried[:] = 0
        measure_subjects(keys[begin:end], carried, starts, classes, sums, degrees, pairs, touched)
        measure_subjects(keys[:0], carried, starts, classes, sums, degrees, pairs, touched)
        carried[:] = 0
        measure_objects(objects[begin:end], carried, starts, classes, kinds, sums, degrees, pairs, touched)
        measure_objects(objects[:0], carried, starts, classes, kinds, sums, degrees, pairs, touched)
        count = sums[CLASSES]
        room = paired + 2 * count <= len(pair_rows)
        for direction in range(2):
            for bucket in range(BUCKETS):
                if room and degrees[direction, bucket, 0]:
                    degree_rows[used, 0], degree_rows[used, 1], degree_rows[used, 2] = label, direction, bucket
                    for cell in range(3):
                        degree_rows[used, 3 + cell] = degrees[direction, bucket, cell]
                    used += 1
            for i in range(count):
                if room and pairs[touched[i], direction, 1]:
                    pair_rows[paired, 0], pair_rows[paired, 1], pair_rows[paired, 2] = label, touched[i], direction
                    for cell in range(2):
                        pair_rows[paired, 3 + cell] = pairs[touched[i], direction, cell]
                    paired += 1
        degrees[:] = 0
        for i in range(count):
            pairs[touched[i]] = 0
        if not room:
            sums[:] = 0
            return label, used, paired
    return len(ends) - 1, used, paired
