"""Injectivity: which vertices and edges must differ, in the cheapest form that is still exact.

Two data edges are the same when label, subject and object are.  Where both pattern edges leave no choice between two
bound ends, comparing ends is enough, and that mostly comes down to one pair of vertices that must differ; where they
leave a choice, the edges' codes are compared; and where the ends can never coincide, there is nothing to check.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternEdge, PatternGraph
from graphdb.plan.checks import Check, EdgesDiffer, Never, NotBothEqual, Unequal

Pair = tuple[int, int]


def distinctness(
    pattern: PatternGraph, type_label: int | None, simple: Callable[[PatternEdge], bool], *, parallel: bool = False
) -> list[Check]:
    """Return the checks; ``simple(edge)`` says that two bound ends leave no choice of data edge.

    Two pattern edges that may each take one of parallel edges are distinguished after the match; ``parallel`` asks for
    what says of them, too, that they differ.
    """
    unequal = unequal_vertices(pattern)
    checks: list[Check] = []
    by_ends: list[frozenset[Pair]] = []
    by_codes: list[tuple[int, int, list[frozenset[Pair]]]] = []
    for i, j in _comparable(pattern):
        first, second = pattern.edges[i], pattern.edges[j]
        alike = first.parallel and second.parallel
        if (alike and not parallel) or not _overlap(first.admitted, second.admitted, type_label):
            continue
        ways = coincidences(first, second)
        if not alike and _ends_decide(first, second, type_label) and simple(first) and simple(second):
            by_ends += ways
        else:
            by_codes.append((i, j, ways))
    for way in by_ends:
        if not way:
            checks.append(Never())
        elif len(way) == 1:
            unequal |= way
    checks += [Unequal(a, b) if a != b else Never() for a, b in sorted(unequal)]
    for way in dict.fromkeys(by_ends):
        if len(way) == 2 and not closure(way) & unequal:
            (a, b), (c, d) = sorted(way)
            checks.append(NotBothEqual(a, b, c, d))
    for i, j, ways in by_codes:
        if not all(closure(way) & unequal for way in ways):
            checks.append(EdgesDiffer(i, j))
    return checks


def unequal_vertices(pattern: PatternGraph) -> set[Pair]:
    """Pairs of vertices (lower number first) that must differ: as the clauses' modes say, and ``a <> b``."""
    unequal = {_pair(a, b) for a, b in pattern.unequal}
    for clause in pattern.clauses:
        if clause.mode in (MatchMode.DIFFERENT_NODES, MatchMode.INDUCED):
            unequal.update(combinations(sorted(set(clause.vertices)), 2))
    return unequal


def _comparable(pattern: PatternGraph) -> Iterator[Pair]:
    """Pairs of edges of one clause that could bind one data edge."""
    for group in comparable(pattern):
        yield from combinations(group, 2)


def comparable(pattern: PatternGraph) -> Iterator[list[int]]:
    """Groups of edges of one clause, by their numbers, that could bind one data edge.

    Where all vertices of the clause differ, only those between the same two vertices could.
    """
    for number, clause in enumerate(pattern.clauses):
        if clause.mode is MatchMode.REPEATABLE_ELEMENTS:
            continue
        edges = [(e, edge) for e, edge in enumerate(pattern.edges) if edge.clause == number]
        own = [(e, frozenset((edge.source, edge.target))) for e, edge in edges]
        apart = clause.mode is not MatchMode.DIFFERENT_EDGES
        apart = apart and frozenset[int]().union(*(ends for _, ends in own)) <= set(clause.vertices)
        alike: defaultdict[frozenset[int], list[int]] = defaultdict(list)
        for e, ends in own:
            alike[ends if apart else frozenset()].append(e)
        yield from alike.values()


def choice_order(pattern: PatternGraph, type_label: int | None) -> list[tuple[int, tuple[int, ...]]] | None:
    """Return the edges so that each, once the vertices are bound, chooses among what those before it have left.

    With each edge come those before it that must differ from it and may bind the same data edges: where their ends
    coincide, its choice is less by one for each.  None where what two such edges admit overlaps and neither is all of
    the other: then the number of choices is no product.
    """
    edges = pattern.edges
    order = sorted(
        range(len(edges)),
        key=lambda e: (edges[e].admitted is None, len(edges[e].admitted or ()), not edges[e].directed),
    )
    place = {e: at for at, e in enumerate(order)}
    before: dict[int, list[int]] = {e: [] for e in order}
    for pair in _comparable(pattern):
        early, late = sorted(pair, key=place.__getitem__)
        first, second = edges[early], edges[late]
        if not _overlap(first.admitted, second.admitted, type_label):
            continue
        if not _within(first.admitted, second.admitted, type_label) or (second.directed and not first.directed):
            return None
        before[late].append(early)
    return [(e, tuple(before[e])) for e in order]


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a <= b else (b, a)


def coincidences(first: PatternEdge, second: PatternEdge) -> list[frozenset[Pair]]:
    """The ways in which the ends of two edges can coincide: each a set of pairs that must be equal for it."""
    ways = [((first.source, second.source), (first.target, second.target))]
    if not (first.directed and second.directed):
        ways.append(((first.source, second.target), (first.target, second.source)))
    return [frozenset(_pair(a, b) for a, b in way if a != b) for way in ways]


def closure(way: frozenset[Pair]) -> frozenset[Pair]:
    """Everything that is equal if the pairs of ``way`` (two at most) are."""
    ends = {end for pair in way for end in pair}
    return frozenset(combinations(sorted(ends), 2)) if len(ends) == 3 else way


def _overlap(first: tuple[int, ...] | None, second: tuple[int, ...] | None, type_label: int | None) -> bool:
    """Whether some edge label fits both."""
    if first is None and second is None:
        return True
    if first is None or second is None:
        return any(label != type_label for label in first or second or ())
    return not set(first).isdisjoint(second)


def _within(inner: tuple[int, ...] | None, outer: tuple[int, ...] | None, type_label: int | None) -> bool:
    """Whether every edge that fits ``inner`` fits ``outer``, between ends that an edge of ``outer`` joins."""
    if outer is None:
        return inner is None or type_label not in inner
    return inner is not None and set(inner) <= set(outer)


def _ends_decide(first: PatternEdge, second: PatternEdge, type_label: int | None) -> bool:
    """Whether two simple edges are the same just when their ends coincide: the options of one include the other's."""
    if first.labels != second.labels and not (first.among is None and second.among is None):
        return (
            first.directed and second.directed and first.admitted == second.admitted and len(first.admitted or ()) == 1
        )
    inward = _within(first.labels, second.labels, type_label)
    outward = _within(second.labels, first.labels, type_label)
    if first.directed == second.directed:
        return inward or outward
    return inward if first.directed else outward
