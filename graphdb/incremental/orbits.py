"""Pattern edges that an automorphism maps to each other: one of them is searched, the matches of the others follow.

What a changed edge adds at one pattern edge, it adds at each edge of the same orbit, with the vertices exchanged (GAMMA
§V-B, of the whole pattern: k = 0, which rule 1 prefers).  That holds in a batch, too, as changed edges are ordered, and
not the pattern's: a match is found at the least of its changed edges, wherever the pattern has it.

Of vertices beside a changed edge that may be exchanged while all others stay, one order is searched, too: matches that
differ in that alone have the same edges, and so the same least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, permutations, product
from math import factorial, prod

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternEdge, PatternGraph
from graphdb.plan.symmetry import LARGEST, Automorphisms

MOST_COPIES = 1 << 10
"""Of a match: a row for each is written at once."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Another match by one that was found: which of its bindings each vertex and edge takes."""

    vertices: tuple[int, ...]
    edges: tuple[tuple[int, bool], ...]
    """(pattern edge, whether it is bound from its other end)."""


@dataclass(frozen=True, slots=True)
class Orbit:
    """Pattern edges that one delta plan is for."""

    edge: int
    """The one that is searched."""
    one_way: bool
    """Whether its changed edges are bound in one direction alone: an automorphism exchanges its ends."""
    copies: tuple[Copy, ...]
    """Of each match that is found, itself among them."""
    classes: tuple[tuple[int, ...], ...] = ()
    """Vertices beside the edge's own, any two of which an automorphism exchanges that leaves all others alone."""

    @property
    def exchanges(self) -> int:
        """In how many ways all of them may be exchanged."""
        return prod(factorial(len(own)) for own in self.classes)


def orbits(pattern: PatternGraph, sets: Sequence[int]) -> list[Orbit]:
    """Return the orbits of a pattern's edges; ``sets`` numbers the candidate sets of its vertices."""
    vertices, edges = range(len(pattern.vertices)), pattern.edges
    identity = tuple(vertices)
    each = [alone(pattern, e) for e in range(len(edges))]
    ends = {frozenset((edge.source, edge.target)) for edge in edges}
    modes = {pattern.clauses[edge.clause].mode for edge in edges}
    exclusive = len({edge.clause for edge in edges}) == 1 and MatchMode.REPEATABLE_ELEMENTS not in modes
    exclusive = exclusive and not any(edge.parallel for edge in edges)  # which may bind one triple
    if not exclusive or len(ends) < len(edges) or len(vertices) > LARGEST:
        return each
    search = Automorphisms(pattern, kinds=sets)
    if len(set(search.colours)) == len(vertices):
        return each
    different = modes == {MatchMode.DIFFERENT_NODES}
    found, done = [], set[int]()
    for e, edge in enumerate(edges):
        if e in done:
            continue
        images = [identity]
        for other in range(e + 1, len(edges)):
            if other not in done and (image := _image(search, edge, edges[other])):
                images.append(image)
                done.add(other)
        flip = (
            next(search.extend({edge.source: edge.target, edge.target: edge.source}), None)
            if (different and not edge.directed and edge.source != edge.target)
            else None
        )
        if flip is not None:
            images += [tuple(image[flip[v]] for v in vertices) for image in images]
        if len(images) > MOST_COPIES:
            return each
        classes = _classes(search, edge, len(vertices)) if different else ()
        found.append(Orbit(e, flip is not None, tuple(_copy(pattern, image) for image in images), classes))
    return found


def alone(pattern: PatternGraph, edge: int) -> Orbit:
    """Return the orbit of a pattern edge that no other one is searched by."""
    return Orbit(edge, False, (_copy(pattern, tuple(range(len(pattern.vertices)))),))


def exchanged(pattern: PatternGraph, copies: Sequence[Copy], classes: Sequence[Sequence[int]]) -> tuple[Copy, ...]:
    """Return copies of a match, each with the vertices of classes exchanged in all ways."""
    found, vertices = [], range(len(pattern.vertices))
    for ways in product(*map(permutations, classes)):
        moved = dict(zip(chain(*classes), chain(*ways), strict=True))
        found += [
            _taking(pattern, tuple(moved.get(copy.vertices[v], copy.vertices[v]) for v in vertices)) for copy in copies
        ]
    return tuple(found)


def _classes(search: Automorphisms, edge: PatternEdge, count: int) -> tuple[tuple[int, ...], ...]:
    """Return what :attr:`Orbit.classes` has of an edge, where there are two or more."""
    left = [v for v in range(count) if v not in (edge.source, edge.target)]
    found = []
    while left:
        first, *others = left
        fixed = {v: v for v in range(count)}
        own = [first, *(v for v in others if next(search.extend(fixed | {first: v, v: first}), None) is not None)]
        left = [v for v in others if v not in own]
        if len(own) > 1:
            found.append(tuple(own))
    return tuple(found)


def _image(search: Automorphisms, edge: PatternEdge, other: PatternEdge) -> tuple[int, ...] | None:
    """Return an automorphism that maps an edge to another one."""
    if (edge.labels, edge.directed) != (other.labels, other.directed):
        return None
    if (edge.source == edge.target) != (other.source == other.target):
        return None
    ways = [(other.source, other.target)] + ([] if edge.directed else [(other.target, other.source)])
    for source, target in ways:
        image = next(search.extend({edge.source: source, edge.target: target}), None)
        if image is not None:
            return image
    return None


def _copy(pattern: PatternGraph, image: tuple[int, ...]) -> Copy:
    """Return the match that has, at the image of each vertex, what was found for the vertex."""
    return _taking(pattern, tuple(image.index(v) for v in range(len(image))))


def _taking(pattern: PatternGraph, came: tuple[int, ...]) -> Copy:
    """Return the match that has, at each vertex, what was found for another one."""
    by_ends = {(edge.source, edge.target): e for e, edge in enumerate(pattern.edges)}
    edges = []
    for e, edge in enumerate(pattern.edges):
        source, target = came[edge.source], came[edge.target]
        if came == tuple(range(len(came))):
            edges.append((e, False))
        elif (source, target) in by_ends:
            edges.append((by_ends[source, target], False))
        else:
            edges.append((by_ends[target, source], True))
    return Copy(came, tuple(edges))
