"""Signatures: lower bounds on a vertex's neighbourhood, tested with one AND (SGSI §3.1).

One column per (edge label, direction), over all vertices, made when a plan first asks for it: uint32, sixteen two-bit
counters that saturate (00 none, 01 one, 11 more).  Counter 0 counts all neighbours, counters 1 … 15 those whose vertex
labels hash there.  A vertex can only be a match where ``(column & required) == required``.

Where SGSI keeps one signature of fixed width per vertex, a column of ours knows its edge label exactly and is built
only where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Partition, elements_of

Ints = NDArray[np.int64]

COUNTERS = 16


def bucket(label: int) -> int:
    """The counter (1 … 15) that neighbours with vertex label ``label`` are counted in."""
    return 1 + (label * 0x9E3779B1 >> 8) % (COUNTERS - 1)


def required_bits(neighbours: Iterable[tuple[int, ...]], at_least_two: bool) -> int:
    """The mask that a vertex needs whose neighbours over one label and direction have the given vertex labels.

    ``at_least_two`` says that the neighbours are certainly different ones, so that two of a kind ask for a count of
    two.

    >>> bin(required_bits([(), ()], at_least_two=True)), bin(required_bits([(), ()], at_least_two=False))
    ('0b11', '0b1')
    """
    once = twice = 0
    for labels in neighbours:
        counters = 1
        for label in labels:
            counters |= 1 << 2 * bucket(label)
        twice |= once & counters
        once |= counters
    return once | twice << 1 if at_least_two else once


def build_column(partition: Partition, types: Partition | None, vertices: int, resources: int) -> NDArray[np.uint32]:
    """Build the column of one partition; ``types`` holds every vertex's labels (``rdf:type``, ``out``).

    A literal in the place of a class (ids from ``resources`` on) is counted with any label: no pattern asks for it, and
    its id changes with the number of resources.
    """
    from graphdb.storage.graph.pcsr_kernels import count_neighbour_labels

    column = np.zeros(vertices, np.uint32)
    keys, starts, neighbours = runs(partition)
    class_starts = np.zeros(vertices + 1, np.int64)
    classes = np.empty(0, np.int64)
    if types is not None:
        typed, type_starts, of_type = runs(types)
        class_starts[typed + 1] = np.diff(type_starts)
        np.cumsum(class_starts, out=class_starts)
        classes = _buckets(of_type, resources)
    count_neighbour_labels(keys, starts, neighbours, class_starts, classes, column)
    return column


def mend_column(
    column: NDArray[np.uint32], partition: Partition, types: Partition | None, vertices: Ints, resources: int
) -> NDArray[np.uint32]:
    """Return a copy of a column in which some vertices, sorted, are as :func:`build_column` has them now."""
    from graphdb.storage.graph.pcsr_kernels import count_neighbour_labels

    begins, lengths = partition.ranges_of(vertices)
    starts = np.append(0, np.cumsum(lengths))
    near, which = np.unique(partition.neighbours[elements_of(begins, lengths)].astype(np.int64), return_inverse=True)
    class_starts, classes = np.zeros(len(near) + 1, np.int64), np.empty(0, np.int64)
    if types is not None:
        type_begins, type_lengths = types.ranges_of(near)
        np.cumsum(type_lengths, out=class_starts[1:])
        classes = _buckets(types.neighbours[elements_of(type_begins, type_lengths)], resources)
    own, found = np.zeros(len(vertices), np.uint32), column.copy()
    numbers = np.arange(len(vertices))
    count_neighbour_labels(numbers, starts, which.astype(np.int64), class_starts, classes, own)
    found[vertices] = own
    return found


def _buckets(labels: NDArray[np.signedinteger], resources: int) -> Ints:
    """The counters of vertex labels; of a literal that of any label."""
    known, which = np.unique(labels, return_inverse=True)
    return np.array([bucket(int(label) if label < resources else 0) for label in known], np.int64)[which]


def runs(partition: Partition) -> tuple[Ints, Ints, Ints]:
    """A partition as (keys, starts, neighbours) in the order of the keys, whatever its offset layer."""
    keys = partition.keys
    if partition.layer == "direct":
        return keys, np.append(partition.offsets[keys], partition.offsets[-1]), partition.neighbours.astype(np.int64)
    starts, neighbours, _, _ = partition.laid_out()
    return keys, starts, neighbours.astype(np.int64)
