"""Relations: which data edges a pattern edge can bind, seen from one of its ends; each has its own neighbour lists."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common.lazy import lazy
from graphdb.pattern.graph import PatternEdge
from graphdb.storage.arrays.sorted_sets import both
from graphdb.storage.graph.source import TripleSource

Ints = NDArray[np.int64]
Direction = Literal["out", "in", "either"]

ITSELF = -1
"""Stands for an edge label: of the edges from each vertex to itself that patterns have where they have no others."""

_REVERSED: dict[Direction, Direction] = {"out": "in", "in": "out", "either": "either"}


class Relation(NamedTuple):
    """Data edges between candidates: ``near`` and ``far`` number candidate sets (:class:`Relations`).

    The lists of a relation hold, by near end, the far ends of its edges.  ``labels`` of None stand for any edge between
    resources but ``rdf:type``, as in :class:`graphdb.pattern.graph.PatternEdge`.
    """

    labels: tuple[int, ...] | None
    direction: Direction
    near: int
    far: int

    @property
    def reversed(self) -> Relation:
        """The same data edges, by their other end."""
        return Relation(self.labels, _REVERSED[self.direction], self.far, self.near)

    @property
    def several(self) -> bool:
        """Whether two vertices may be joined by several of its data edges."""
        return self.direction == "either" or self.labels is None or len(self.labels) > 1


@dataclass
class Relations:
    """The relations of some patterns, numbered, and the candidate sets and edge labels that they are made of."""

    source: TripleSource
    numbers: dict[Relation, int] = field(default_factory=dict)
    sets: list[Ints | None] = field(default_factory=lambda: [None])
    """Sorted vertices; None, number 0, are all."""
    _set_numbers: dict[Hashable, int] = field(default_factory=dict)

    def of(self, edge: PatternEdge, sets: Sequence[int]) -> Relation:
        """Return the relation of a pattern edge, seen from its source, numbered with its reverse.

        ``sets`` are the candidate sets of the pattern's vertices (:meth:`set_of`).
        """
        near, far = sets[edge.source], sets[edge.target]
        relation = Relation(edge.labels, "out" if edge.directed else "either", near, far)
        for found in (relation, relation.reversed):
            self.numbers.setdefault(found, len(self.numbers))
        return relation

    def set_of(self, candidates: Ints | None, condition: Hashable = None) -> int:
        """Return the number of a candidate set: of one condition, or without one of the same vertices."""
        if candidates is None:
            return 0
        known = candidates.tobytes() if condition is None else condition
        number = self._set_numbers.setdefault((condition is None, known), len(self.sets))
        if number == len(self.sets):
            self.sets.append(candidates)
        return number

    @property
    def vertices(self) -> int:
        """Vertices of the data graph."""
        return self.source.resources + self.source.literals

    @lazy
    def members(self) -> list[NDArray[np.bool_]]:
        """By candidate set, which vertices are in it: [vertices]."""
        found = []
        for candidates in self.sets:
            member = np.full(self.vertices, candidates is None)
            if candidates is not None:
                member[candidates] = True
            found.append(member)
        return found

    def ends(self, relation: Relation, number: int) -> NDArray[np.bool_]:
        """Return which vertices may be an end of the relation's edges: those of a candidate set."""
        member = self.members[number]
        if relation.labels is None:  # such an edge is one between resources
            member = member.copy()
            member[self.source.resources :] = False
        return member

    @property
    def reflexive(self) -> bool:
        """Whether a pattern has vertices without edges."""
        return any(relation.labels == (ITSELF,) for relation in self.numbers)

    def at(self, candidates: int) -> Ints:
        """Return the relations whose near ends a candidate set is, [relations, 3]: each, its reverse, any direction?"""
        rows = [
            (number, self.numbers[relation.reversed], relation.direction == "either")
            for relation, number in self.numbers.items()
            if relation.near == candidates
        ]
        return np.array(rows, np.int64).reshape(-1, 3)

    def disjoint(self, first: int, second: int) -> bool:
        """Whether two candidate sets have no vertex in common."""
        a, b = self.sets[first], self.sets[second]
        return a is not None and b is not None and not len(both(a, b))

    def edges(self, labels: tuple[int, ...] | None) -> tuple[Ints, Ints, Ints]:
        """Return labels, subjects and objects of the data edges with one of some labels."""
        if labels is None:
            return self.source.any_edges()
        if labels == (ITSELF,):
            every = np.arange(self.vertices)
            return np.full(self.vertices, ITSELF, np.int64), every, every
        parts = []
        for label in labels:
            subjects, objects = self.source.edges(label)
            parts.append((np.full(len(subjects), label, np.int64), subjects, objects))
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
        a, b, c = (np.concatenate(column) for column in zip(*parts, strict=True))
        return a, b, c
