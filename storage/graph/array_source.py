"""A graph's triples in NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphdb.storage.arrays.sorted_sets import both, unique
from graphdb.storage.graph.degree_sketch import DegreeSketch
from graphdb.storage.graph.source import LabelStatistics

Ints = NDArray[np.int64]


class ArraySource:
    """A :class:`TripleSource` over NumPy arrays, for tests and embedded use.

    Parameters
    ----------
    subjects, labels, objects
        Integers [triples]; duplicates are dropped.
    resources, literals
        How many there are; objects from ``resources`` on are literals.
    type_label
        The edge label that gives vertices their labels.
    """

    def __init__(
        self,
        subjects: ArrayLike,
        labels: ArrayLike,
        objects: ArrayLike,
        resources: int,
        literals: int = 0,
        type_label: int | None = None,
    ) -> None:
        o, s, p = (np.asarray(column, dtype=np.int64).reshape(-1) for column in (objects, subjects, labels))
        if not _rises(p, s, o):
            order = np.lexsort((o, s, p))
            o, s, p = o[order], s[order], p[order]
        if len(s):
            fresh = np.append(True, (s[1:] != s[:-1]) | (p[1:] != p[:-1]) | (o[1:] != o[:-1]))
            s, p, o = s[fresh], p[fresh], o[fresh]
            if s.min() < 0 or s.max() >= resources or o.min() < 0 or o.max() >= resources + literals:
                raise ValueError("a subject is no resource, or an object is no vertex")
        self.resources, self.literals, self.type_label = resources, literals, type_label
        self._triples = (p, s, o)
        starts = run_starts(p)
        ends = np.append(starts[1:], len(p))[: len(starts)]
        self._runs = {int(p[begin]): slice(int(begin), int(end)) for begin, end in zip(starts, ends, strict=True)}
        self._statistics: dict[int, LabelStatistics] = {}
        self._sketches: dict[tuple[int, int], DegreeSketch] = {}
        self._classes: dict[tuple[int, int, int], tuple[int, int]] = {}

    def edge_labels(self) -> tuple[int, ...]:
        """All edge labels, sorted."""
        return tuple(self._runs)

    def occurring(self, resources: Ints) -> Ints:
        """Those of some resources that are a subject, or an object of anything but ``rdf:type``."""
        labels, subjects, objects = self._triples
        typed = -1 if self.type_label is None else self.type_label
        return both(resources, unique(np.concatenate([subjects, objects[labels != typed]])))

    def triples(self) -> Iterator[tuple[int | Ints, Ints, Ints]]:
        """Labels, subjects and objects of all triples: one piece."""
        yield self._triples

    def edges(self, label: int) -> tuple[Ints, Ints]:
        """Subjects and objects of one label, sorted by (subject, object)."""
        run = self._runs.get(label, slice(0, 0))
        return self._triples[1][run], self._triples[2][run]

    def subjects(self, label: int, object: int) -> Ints:
        """Subjects of the triples of one label with one object, sorted."""
        s, o = self.edges(label)
        found: Ints = s[o == object]
        return found

    def any_edges(self) -> tuple[Ints, Ints, Ints]:
        """Labels, subjects and objects of the edges between resources other than ``rdf:type``."""
        p, s, o = self._triples
        keep = o < self.resources
        if self.type_label is not None:
            keep &= p != self.type_label
        return p[keep], s[keep], o[keep]

    def parallel_edges(self, labels: tuple[int, ...] | None) -> tuple[Ints, Ints, Ints]:
        """The same of some labels: no two edges are parallel."""
        if labels is None:
            return self.any_edges()
        keep = np.isin(self._triples[0], labels)
        p, s, o = (column[keep] for column in self._triples)
        return p, s, o

    def statistics(self, label: int) -> LabelStatistics:
        """Statistics of one label, counted on the first call."""
        if label not in self._statistics:
            s, o = self.edges(label)
            out, into = self._degrees(label, 0), self._degrees(label, 1)
            self._statistics[label] = LabelStatistics(
                triples=len(s),
                resource_triples=int((o < self.resources).sum()),
                subjects=len(out),
                objects=len(into),
                max_out_degree=int(out.max(initial=0)),
                max_in_degree=int(into.max(initial=0)),
            )
        return self._statistics[label]

    def degrees(self, label: int, direction: int) -> DegreeSketch:
        """How the degrees of one label in a direction are distributed, counted on the first call."""
        key = (label, direction)
        if key not in self._sketches:
            self._sketches[key] = DegreeSketch.of(self._degrees(label, direction))
        return self._sketches[key]

    def _degrees(self, label: int, direction: int) -> Ints:
        """How many edges of a label the vertices have that have some: subjects are sorted; objects are sorted here
        where it would take longer to count them.
        """
        ends = self.edges(label)[direction]
        if direction == 0:
            return np.diff(np.append(run_starts(ends), len(ends)))
        if len(ends) < self.resources + self.literals:
            return np.unique(ends, return_counts=True)[1]
        counts = np.bincount(ends)
        return counts[counts > 0]

    def at_class(self, label: int, direction: int, class_id: int) -> tuple[int, int] | None:
        """(edges at vertices with a vertex label, such vertices), counted on the first call."""
        if self.type_label is None:
            return None
        key = (label, direction, class_id)
        if key not in self._classes:
            s, o = self.edges(self.type_label)
            ends = self.edges(label)[direction]
            ends = ends[np.isin(ends, s[o == class_id])]
            self._classes[key] = (len(ends), len(unique(ends)))
        return self._classes[key]


def run_starts(values: Ints) -> Ints:
    """Where each run of equal values begins: int64 [runs]."""
    return np.flatnonzero(np.append(np.ones(min(len(values), 1), bool), values[1:] != values[:-1]))


def _rises(*columns: Ints) -> bool:
    """Whether rows are sorted by their columns."""
    falls, equal = False, np.ones(max(len(columns[0]) - 1, 0), bool)
    for column in columns:
        falls = falls or bool((equal & (column[1:] < column[:-1])).any())
        equal &= column[1:] == column[:-1]
    return not falls
