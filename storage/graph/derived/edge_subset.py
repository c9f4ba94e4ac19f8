"""Some of the edges of edge labels as an edge label of their own: those that fulfil the conditions of a pattern edge.

A subset has a number, as an edge label has an id, and partitions, statistics and sketches as one has; the codes in its
partitions are those of the labels that its edges have.  What is derived of it belongs to it, and goes with it.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.sorted_sets import places
from graphdb.storage.graph.derived.closure import closure_of
from graphdb.storage.graph.source import LabelStatistics

Ints = NDArray[np.int64]

_IS_SUBSET = 1 << 61
"""Beyond all ids, and all closures of edge labels (:mod:`graphdb.storage.graph.derived.closure`)."""
_numbers = count(_IS_SUBSET)


class EdgeSubset:
    """A subset of the edges of some labels.

    Parameters
    ----------
    labels
        The edge labels, sorted.
    kinds
        int64 [edges]: the label of each edge; or the one that all of them have.
    subjects, objects
        int64 [edges]: its ends, unique together with the label; sorted by (label, subject, object).
    """

    __slots__ = ("__weakref__", "derived", "kinds", "labels", "number", "objects", "subjects")

    def __init__(self, labels: tuple[int, ...], kinds: Ints | int, subjects: Ints, objects: Ints) -> None:
        self.labels = labels
        self.kinds = kinds
        self.subjects = subjects
        self.objects = objects
        self.number = next(_numbers)
        """What stands in the place of its edge labels."""
        self.derived: dict[tuple[Any, ...], Any] = {}
        """Structures that a data graph derived from it, by their keys."""

    def __len__(self) -> int:
        return len(self.subjects)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays, and of what is derived of them."""
        own = (self.subjects, self.objects, *([] if isinstance(self.kinds, int) else [self.kinds]))
        return sum(array.nbytes for array in own) + sum(getattr(part, "nbytes", 0) for part in self.derived.values())

    @property
    def loops(self) -> bool:
        """Whether some edge joins a vertex with itself."""
        return bool(np.any(self.subjects == self.objects))

    def degrees(self, outwards: bool) -> Ints:
        """Return how many edges leave (or enter) each vertex that some edge does: int64, all at least 1."""
        ends = np.sort(self.subjects if outwards else self.objects)
        starts = np.flatnonzero(np.append(True, ends[1:] != ends[:-1])) if len(ends) else np.empty(0, np.int64)
        return np.diff(np.append(starts, len(ends)))

    def statistics(self, resources: int) -> LabelStatistics:
        """Return the statistics of the subset, of a graph of so many resources."""
        leaving, entering = self.degrees(outwards=True), self.degrees(outwards=False)
        return LabelStatistics(
            triples=len(self),
            resource_triples=int(np.count_nonzero(self.objects < resources)),
            subjects=len(leaving),
            objects=len(entering),
            max_out_degree=int(leaving.max(initial=0)),
            max_in_degree=int(entering.max(initial=0)),
        )

    def at(self, members: Ints, outwards: bool) -> tuple[int, int]:
        """Return how many edges leave (or enter) some of the sorted ``members``, and how many of these there are."""
        ends = self.subjects if outwards else self.objects
        _, there = places(members, ends)
        found = np.sort(ends[there])
        return len(found), int(np.count_nonzero(found[1:] != found[:-1])) + bool(len(found))


def is_subset(number: int) -> bool:
    """Whether what stands in the place of an edge label is the number of a subset of edges."""
    return number >= _IS_SUBSET


def joins_once(labels: tuple[int, ...] | None) -> bool:
    """Whether edge labels are a single one, or a closure: one edge at most leads from a vertex to another."""
    return labels is not None and len(labels) == 1 and not is_subset(labels[0])


def is_one_label(labels: tuple[int, ...] | None) -> bool:
    """Whether edge labels are a single one of the data, and neither a closure nor a subset."""
    return labels is not None and len(labels) == 1 and closure_of(labels[0]) is None and not is_subset(labels[0])
