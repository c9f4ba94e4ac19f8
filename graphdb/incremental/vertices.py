"""The vertices that standing patterns concern: their numbers in the lists, and what relations they may be ends of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental.relations import Relations
from graphdb.storage.arrays.sorted_sets import unique

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_MORE = 64
"""Vertices that there is space for at least when it is made."""


class _Before(NamedTuple):
    """What a rollback goes back to."""

    resources: int
    literals: int
    numbers: int
    ends: list[tuple[Ints, Words]]
    """Bits of vertices before they changed, in order."""
    numbered: list[tuple[int, Ints]]
    """What got numbers: 0 and resources, 1 and literals by their own numbers."""


class Vertices:
    """Vertices by numbers of their own, from 1 on: number 0 stands for all that concern no pattern.

    At first, those that the same relations concern have consecutive numbers, so that the lists of a relation lie
    together.  Later ones have the next numbers, whatever concerns them, and none is ever numbered again: resources and
    literals are known by their own ids, so that a new resource moves no literal.

    Attributes
    ----------
    ends
        uint64 [capacity, 2, words]: bits of the relations that a vertex may be the near, and the far end of.
    count
        Numbers in use.
    state
        Another number after each change of :attr:`ends`.
    """

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self.resources, self.literals = relations.source.resources, relations.source.literals
        self.words = len(relations.numbers) // 64 + 1
        ends = np.zeros((relations.vertices, 2, self.words), np.uint64)
        for relation, number in relations.numbers.items():
            for side, own in enumerate((relation.near, relation.far)):
                ends[relations.ends(relation, own), side, number // 64] |= bit(number)
        flat = ends.reshape(len(ends), 2 * self.words)
        concerned = np.flatnonzero(flat.any(axis=1))
        concerned = concerned[np.lexsort(flat[concerned].T)]
        self.count = len(concerned) + 1
        self._terms = np.zeros(self.count + _MORE, np.int64)
        """By number: a resource, or -1 less a literal's own number."""
        self.ends = np.zeros((self.count + _MORE, 2, self.words), np.uint64)
        self._terms[1 : self.count] = np.where(concerned < self.resources, concerned, self.resources - 1 - concerned)
        self.ends[1 : self.count] = ends[concerned]
        numbers = np.zeros(relations.vertices, np.int64)
        numbers[concerned] = np.arange(1, self.count)
        self._numbers = [numbers[: self.resources].copy(), numbers[self.resources :].copy()]
        self._before = _Before(self.resources, self.literals, self.count, [], [])
        self.state = 0

    @property
    def capacity(self) -> int:
        """Numbers that there is space for."""
        return len(self._terms)

    def inner(self, vertices: Ints) -> Ints:
        """Return the numbers of vertices; raises ValueError where there are no such vertices."""
        if len(vertices) and (vertices.min() < 0 or vertices.max() >= self.resources + self.literals):
            raise ValueError("a change is of what is no vertex of the data graph")
        if not self.literals:
            return self._numbers[0][vertices]
        literal = vertices >= self.resources
        found = np.empty(len(vertices), np.int64)
        found[~literal] = self._numbers[0][vertices[~literal]]
        found[literal] = self._numbers[1][vertices[literal] - self.resources]
        return found

    def outer(self, numbers: Ints) -> Ints:
        """Return vertices by their numbers."""
        terms = self._terms[numbers]
        return np.where(terms < 0, self.resources - 1 - terms, terms) if self.literals else terms

    @property
    def of_resources(self) -> Ints:
        """The numbers of all resources."""
        return self._numbers[0][: self.resources]

    def begin(self) -> None:
        """Begin a batch, which :meth:`roll_back` takes back."""
        self._before = _Before(self.resources, self.literals, self.count, [], [])

    def roll_back(self) -> None:
        """Forget the vertices and ends of this batch; no list may have an entry of them."""
        before = self._before
        self.state += bool(before.ends or before.numbered)
        for numbers, ends in reversed(before.ends):
            self.ends[numbers] = ends
        self.ends[before.numbers : self.count] = 0
        for kind, own in before.numbered:
            self._numbers[kind][own] = 0
        self.resources, self.literals, self.count = before[:3]

    def grow(self, resources: int, literals: int) -> None:
        """Have so many vertices; the new ones are candidates where all vertices are."""
        if resources < self.resources or literals < self.literals:
            raise ValueError("a batch has fewer vertices than the data graph")
        for kind, (old, size) in enumerate(((self.resources, resources), (self.literals, literals))):
            known = self._numbers[kind]
            if size > len(known):
                self._numbers[kind] = np.zeros(max(size, len(known) + len(known) // 2), np.int64)
                self._numbers[kind][: len(known)] = known
            ends = self._ends_of(0, kind == 1)
            if size > old and ends.any():
                self._number(kind, np.arange(old, size), ends)
        self.resources, self.literals = resources, literals

    def _number(self, kind: int, own: Ints, ends: Words) -> None:
        """Number resources, or literals by their own numbers."""
        numbers = np.arange(self.count, self.count + len(own))
        self.count += len(own)
        if self.count > self.capacity:
            more = self.count + self.count // 2 + _MORE
            terms, old = self._terms, self.ends
            self._terms, self.ends = np.zeros(more, np.int64), np.zeros((more, 2, self.words), np.uint64)
            self._terms[: len(terms)], self.ends[: len(old)] = terms, old
        self._terms[numbers] = -1 - own if kind else own
        self._numbers[kind][own] = numbers
        self._before.numbered.append((kind, own))
        self.state += 1
        self.ends[numbers] = ends

    def _ends_of(self, candidate_set: int, literal: bool) -> Words:
        """Return the bits [2, words] of the ends that a candidate set is: of edges to literals, or of all others."""
        ends = np.zeros((2, self.words), np.uint64)
        for relation, number in self._relations.numbers.items():
            for side, own in enumerate((relation.near, relation.far)):
                if own == candidate_set and not (literal and relation.labels is None):
                    ends[side, number // 64] |= bit(number)
        return ends

    @property
    def sizes(self) -> tuple[int, int]:
        """How many resources and literals there are."""
        return self.resources, self.literals

    def leave(self, candidate_set: int, numbers: Ints) -> None:
        """Have vertices, by their numbers, be in a candidate set no longer."""
        numbers = unique(numbers)
        self.state += 1
        self._before.ends.append((numbers, self.ends[numbers]))
        self.ends[numbers] &= ~self._ends_of(candidate_set, literal=False)

    def join(self, candidate_set: int, vertices: Ints) -> Ints:
        """Have vertices be in a candidate set, and return their numbers."""
        parts = []
        self.state += 1
        each = unique(vertices)
        self.inner(each)  # which raises an error where they are none
        for kind, own in enumerate((each[each < self.resources], each[each >= self.resources])):
            ends, own = self._ends_of(candidate_set, kind == 1), own - self.resources * kind
            unknown = own[self._numbers[kind][own] == 0]
            if len(unknown):
                self._number(kind, unknown, np.zeros_like(ends))
            numbers = self._numbers[kind][own]
            self._before.ends.append((numbers, self.ends[numbers]))
            self.ends[numbers] |= ends
            parts.append(numbers)
        return np.concatenate(parts)

    def any_in(self, numbers: Ints, first: int, second: int) -> bool:
        """Whether some vertices are in two candidate sets both."""
        in_both = np.ones(len(numbers), bool)
        for candidate_set in (first, second):
            in_both &= (self.ends[numbers] & self._ends_of(candidate_set, literal=False)).any(axis=(1, 2))
        return bool(in_both.any())


def bit(number: int) -> np.uint64:
    """Return the bit of a number in its word."""
    return np.uint64(1 << number % 64)
