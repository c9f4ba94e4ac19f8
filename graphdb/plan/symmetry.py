"""Symmetry: restrictions that leave one of the matches that an automorphism of the pattern maps to each other.

An automorphism is a permutation of the pattern's vertices under which the pattern stays the same: edges with their
labels, directions and clauses, edge tests, inequalities, candidate sets.  It turns each match into a match.  Where the
vertices that it exchanges are always bound to different data vertices, the images are different ones, and
*restrictions* on the order of ids leave just one of them (SMOG §III; Grochow and Kellis): for each vertex in turn, its
id is the least among those that it can be exchanged with while all vertices before it stay in place.  The search then
finds one match of each class, and the others are generated or counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from graphdb.common.lazy import lazy
from graphdb.pattern.graph import PatternGraph

Pair = tuple[int, int]

MOST_ROWS = 5040
"""Larger groups are only counted with, not written down: 7! automorphisms of a clique of seven."""
LARGEST = 12
"""Patterns with more vertices are not searched for automorphisms: of those only the exchanges of twins are known."""


@dataclass(frozen=True)
class Symmetry:
    """A group of automorphisms, by its restrictions."""

    restrictions: tuple[Pair, ...]
    """(lesser, greater): pairs of vertices."""
    size: int
    """How many automorphisms there are."""
    permutations: NDArray[np.int64]
    """int64 [size, vertices], the identity first; only the identity where rows are not wanted."""


NO_SYMMETRY = Symmetry((), 1, np.empty((1, 0), np.int64))


def symmetry(
    pattern: PatternGraph, order: Sequence[int], unequal: Collection[Pair], rows: bool, fixed: Collection[int] = ()
) -> Symmetry:
    """Find a group of automorphisms that act freely on the matches.

    Parameters
    ----------
    order
        The matching order: restrictions say that the vertex bound later has the greater id.
    unequal
        Pairs (lower number first) of vertices that differ in every match.
    rows
        Whether all permutations are wanted, to generate rows with.
    fixed
        Vertices that every automorphism must leave where they are.
    """
    count = len(pattern.vertices)
    identity = np.arange(count).reshape(1, -1)
    if count < 2 or not unequal:
        return Symmetry((), 1, identity)
    search = Automorphisms(pattern, fixed)
    if count > LARGEST:
        return _of_twins(search, order, set(unequal), rows)
    if not any(search.colours[a] == search.colours[b] for a, b in unequal):
        return Symmetry((), 1, identity)
    search.colours = _free(search, set(unequal))
    size, restrictions = 1, []
    stay: dict[int, int] = {}
    for v in order:
        orbit = [u for u in range(count) if u == v or search.exists({**stay, v: u})]
        size *= len(orbit)
        restrictions += [(v, u) for u in orbit if u != v]
        stay[v] = v
    if size == 1 or (rows and size > MOST_ROWS):
        return Symmetry((), 1, identity)
    permutations = np.array(sorted(search.extend({})), np.int64) if rows else identity
    return Symmetry(tuple(_reduce(restrictions)), size, permutations)


def may_be_alike(pattern: PatternGraph, a: int, b: int) -> bool:
    """Whether an automorphism may map a vertex to another one, by what each may be bound to alone."""
    first, second = pattern.vertices[a], pattern.vertices[b]
    return first.labels == second.labels and _size(first.candidates) == _size(second.candidates)


def _of_twins(search: Automorphisms, order: Sequence[int], unequal: set[Pair], rows: bool) -> Symmetry:
    """The group that exchanges *twins*: vertices joined alike to all others, such as the leaves of a star.

    It is the product of the symmetric groups of their classes, so each class is bound in ascending order.
    """
    identity = np.arange(search.count).reshape(1, -1)
    classes: list[list[int]] = []
    for v in order:
        for found in classes:
            if all((min(u, v), max(u, v)) in unequal for u in found) and search.are_twins(found[0], v):
                found.append(v)
                break
        else:
            classes.append([v])
    size = prod(factorial(len(found)) for found in classes)
    if size == 1 or (rows and size > MOST_ROWS):
        return Symmetry((), 1, identity)
    images = identity
    for found in classes if rows else ():
        exchanged = np.repeat(images, factorial(len(found)), axis=0)
        exchanged[:, found] = np.tile(list(permutations(found)), (len(images), 1))
        images = exchanged
    restrictions = tuple(pair for found in classes for pair in pairwise(found))
    return Symmetry(restrictions, size, images[np.lexsort(images.T[::-1])])


def _reduce(restrictions: list[Pair]) -> Iterator[Pair]:
    """Leave out what follows from the others: a < c, where a < b and b < c."""
    known = set(restrictions)
    middle = {v for pair in restrictions for v in pair}
    for a, c in restrictions:
        if not any((a, b) in known and (b, c) in known for b in middle):
            yield a, c


def _free(search: Automorphisms, unequal: set[Pair]) -> list[int]:
    """Colours such that automorphisms which keep them only exchange vertices that are unequal: a group again.

    Vertices of one orbit get one colour if all of them differ from each other; else those connected by inequalities
    do, if among them all do.
    """
    count = len(search.colours)
    orbit = list(range(count))
    for v in range(count):
        orbit[v] = next((orbit[u] for u in range(v) if orbit[u] == u and search.exists({u: v})), v)
    colours = list(range(count))
    for first in set(orbit):
        left = {v for v in range(count) if orbit[v] == first}
        while left:
            part, frontier = set(), [min(left)]
            while frontier:
                v = frontier.pop()
                part.add(v)
                frontier += [u for u in left - part if (min(u, v), max(u, v)) in unequal]
            if all(pair in unequal for pair in combinations(sorted(part), 2)):
                for v in part:
                    colours[v] = min(part)
            left -= part
    return colours


class Automorphisms:
    """The automorphisms of a pattern that keep ``colours``, by backtracking.

    ``fixed`` vertices stay where they are; of ``kinds``, by vertex, each vertex keeps its own.
    """

    def __init__(self, pattern: PatternGraph, fixed: Collection[int] = (), kinds: Sequence[int] = ()) -> None:
        self.count = len(pattern.vertices)
        self._pattern = pattern
        self.colours = self._kinds()
        if kinds:
            self.colours = _numbered(zip(self.colours, kinds, strict=True))
        for v in fixed:
            self.colours[v] = -1 - v

    def _kinds(self) -> list[int]:
        """Number the vertices by what they may be bound to, the clauses they are in, and what they are linked to.

        Colour refinement (Weisfeiler and Leman): vertices differ whose neighbours do.
        """
        clauses = self._pattern.clauses
        ends: list[set[tuple[object, ...]]] = [set() for _ in range(self.count)]
        for edge in self._pattern.edges:
            ends[edge.source].add((edge.labels, edge.clause, edge.directed))
            ends[edge.target].add((edge.labels, edge.clause, edge.directed and "in"))
        kinds = _numbered(
            [
                (vertex.labels, _size(vertex.candidates), frozenset(ends[v]), *[v in each.vertices for each in clauses])
                for v, vertex in enumerate(self._pattern.vertices)
            ]
        )
        if max(kinds) == self.count - 1:  # all differ, as nearly always: nobody needs the links
            return kinds
        near: list[list[Pair]] = [[] for _ in range(self.count)]
        for (a, b), link in self._links.items():
            near[a].append((link, b))
        first = range(self.count)
        for _ in first:
            if max(kinds) == self.count - 1:  # all differ
                return list(first)
            finer = _numbered([(kinds[v], *sorted([(link, kinds[u]) for link, u in near[v]])) for v in first])
            kinds, before = finer, kinds
            if max(kinds) == max(before):
                break
        return [next(u for u in first if kinds[u] == kinds[v] and self._share_candidates(u, v)) for v in first]

    def _share_candidates(self, u: int, v: int) -> bool:
        a, b = self._pattern.vertices[u].candidates, self._pattern.vertices[v].candidates
        return a is b or (a is not None and b is not None and np.array_equal(a, b))

    @lazy
    def _links(self) -> dict[Pair, int]:
        """Everything that the pattern says of two vertices (or of one), numbered, by the pair: what an automorphism
        must preserve.
        """
        links: dict[Pair, Counter[tuple[object, ...]]] = {}

        def say(a: int, b: int, directed: bool, *what: object) -> None:
            links.setdefault((a, b), Counter())[("to" if directed else "with", *what)] += 1
            if a != b:
                links.setdefault((b, a), Counter())[("from" if directed else "with", *what)] += 1

        for edge in self._pattern.edges:
            say(edge.source, edge.target, edge.directed, "edge", edge.labels, edge.clause)
        for test in self._pattern.edge_tests:
            say(test.source, test.target, test.directed, "test", test.labels, test.negated)
        for a, b in {(min(pair), max(pair)) for pair in self._pattern.unequal}:
            say(a, b, False, "unequal")
        return dict(zip(links, _numbered(frozenset(said.items()) for said in links.values()), strict=True))

    def are_twins(self, u: int, v: int) -> bool:
        """Whether the exchange of two vertices is an automorphism."""
        if self.colours[u] != self.colours[v]:
            return False
        links = self._links
        if links.get((u, v)) != links.get((v, u)) or links.get((u, u)) != links.get((v, v)):
            return False
        others = (w for w in range(self.count) if w not in (u, v))
        return all(links.get((u, w)) == links.get((v, w)) for w in others)

    def extend(self, chosen: dict[int, int]) -> Iterator[tuple[int, ...]]:
        """All automorphisms that map the given vertices as given, each as (image of 0, image of 1, …)."""
        for v, image in chosen.items():
            others = {u: w for u, w in chosen.items() if u != v}
            if not self._fits(others, v, image):
                return
        yield from self._extend(dict(chosen))

    def _extend(self, chosen: dict[int, int]) -> Iterator[tuple[int, ...]]:
        if len(chosen) == self.count:
            yield tuple(chosen[v] for v in range(self.count))
            return
        free = [v for v in range(self.count) if v not in chosen]
        # One next to what is chosen, so that a wrong choice shows soon.
        v = next((v for v in free if any((v, u) in self._links for u in chosen)), free[0])
        for image in range(self.count):
            if self._fits(chosen, v, image):
                yield from self._extend({**chosen, v: image})

    def exists(self, chosen: dict[int, int]) -> bool:
        """Whether there is an automorphism that maps the given vertices as given."""
        return next(self.extend(chosen), None) is not None

    def _fits(self, chosen: dict[int, int], v: int, image: int) -> bool:
        if self.colours[v] != self.colours[image] or image in chosen.values():
            return False
        links = self._links
        if links.get((v, v)) != links.get((image, image)):
            return False
        return all(links.get((v, u)) == links.get((image, w)) for u, w in chosen.items())


def _numbered(things: Iterable[object]) -> list[int]:
    """Numbers for things: the same for equal ones."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(thing, len(numbers)) for thing in things]


def _size(candidates: NDArray[np.int64] | None) -> int:
    return -1 if candidates is None else len(candidates)


def differ(restrictions: Collection[Pair], order: Callable[[int], int]) -> set[Pair]:
    """The pairs (lower number first) that the restrictions make unequal, directly or through others."""
    above: dict[int, set[int]] = {}
    for lesser, greater in sorted(restrictions, key=lambda pair: order(pair[1])):
        above.setdefault(greater, set()).update({lesser}, above.get(lesser, set()))
    return {(min(a, b), max(a, b)) for a, lower in above.items() for b in lower}
