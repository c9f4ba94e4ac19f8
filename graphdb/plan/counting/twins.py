"""Twins: pattern vertices with the same edges to the same other vertices, which nothing else joins.

"Two people with the same prize, birthplace and job" has two twins and three others.  Each choice of the others has
n·n matches, n the number of data vertices that reach all of it (n (n - 1), where twins must differ).  So it suffices to
go through the choices of each data vertex by itself and to count how often each comes: linear in the choices, where a
search scans pairs of data vertices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.checks import Check, Relation, Unequal
from graphdb.storage.arrays.sorted_sets import both
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Direction, Partition

Ints = NDArray[np.int64]

MOST = 1 << 22
"""Choices that are counted at most: each needs some 30 bytes."""
CHOICE = 8.0
"""What tallying a choice takes, in elements that other counts go through."""
_BITS = 62
"""Bits of the number of a choice."""


@dataclass(frozen=True, slots=True, eq=False)
class TwinCount:
    """How to count a pattern of twins.

    Attributes
    ----------
    twins
        The pattern vertices that are twins.
    differ
        Whether they must all be bound to different data vertices.
    roots
        The data vertices that may be bound to a twin: int64, sorted.
    choices
        int64 [roots + 1]: how many choices the roots before each have, at most.
    partitions
        One for each other vertex: the neighbours that it may be bound to.
    marks
        For each of them its candidates, bool [vertices], or None for all.
    """

    twins: tuple[int, ...]
    differ: bool
    roots: Ints = field(repr=False)
    choices: Ints = field(repr=False)
    partitions: tuple[Partition, ...] = field(repr=False)
    marks: tuple[NDArray[np.bool_] | None, ...] = field(repr=False)
    vertices: int
    dtype: type[np.signedinteger[Any]]


def twin_count(pattern: PatternGraph, graph: DataGraph, checks: Iterable[Check], most: float) -> TwinCount | None:
    """Plan to count by twins; None where a pattern is no such, or has more than ``most`` choices.

    Parameters
    ----------
    checks
        What must differ, as :func:`graphdb.plan.injectivity.distinctness` says.
    """
    if pattern.edge_tests or any(clause.mode is MatchMode.INDUCED for clause in pattern.clauses):
        return None
    if any(not edge.directed or edge.admitted is None or len(edge.admitted) != 1 for edge in pattern.edges):
        return None
    best: TwinCount | None = None
    for twins, links in _twins(pattern):
        pairs = set(combinations(twins, 2))
        found = set(checks)
        if found and found != {Unequal(a, b) for a, b in pairs}:
            continue
        if len(links) * (graph.vertices - 1).bit_length() > _BITS:
            continue
        plan = _count(pattern, graph, twins, links, differ=bool(found), most=min(most, MOST))
        if plan is not None and (best is None or plan.choices[-1] < best.choices[-1]):
            best = plan
    return best


def _twins(pattern: PatternGraph) -> Iterable[tuple[tuple[int, ...], list[tuple[int, Relation]]]]:
    """The sets of twins whose edges are all there is, with their (other vertex, relation that leads there)."""
    links: dict[int, list[tuple[int, Relation]]] = {v: [] for v in range(len(pattern.vertices))}
    for edge in pattern.edges:
        directions: tuple[tuple[int, int, Direction], ...] = (
            (edge.source, edge.target, "out"),
            (edge.target, edge.source, "in"),
        )
        for end, other, direction in directions:
            links[end].append((other, Relation(edge.labels, direction)))
    alike: dict[frozenset[tuple[int, Relation]], list[int]] = {}
    for v, found in links.items():
        alike.setdefault(frozenset(found), []).append(v)
    for shared, twins in alike.items():
        others = {other for other, _ in shared}
        whole = len(twins) + len(others) == len(links) and len(twins) * len(shared) == len(pattern.edges)
        first = pattern.vertices[twins[0]].candidates
        same = all(_same(pattern.vertices[v].candidates, first) for v in twins)
        if len(twins) > 1 and whole and same and len(others) == len(shared) > 1 and others.isdisjoint(twins):
            yield tuple(twins), sorted(shared, key=lambda link: link[0])


def _same(a: Ints | None, b: Ints | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _count(
    pattern: PatternGraph,
    graph: DataGraph,
    twins: tuple[int, ...],
    links: list[tuple[int, Relation]],
    *,
    differ: bool,
    most: float,
) -> TwinCount | None:
    partitions = tuple(graph.partition(relation.labels, relation.direction) for _, relation in links)
    sets = sorted((partition.keys for partition in partitions), key=len)
    candidates = pattern.vertices[twins[0]].candidates
    roots = reduce(both, sets if candidates is None else [candidates, *sets])
    choices = np.ones(len(roots))
    for partition in partitions if len(roots) else ():
        choices *= partition.lengths()[np.searchsorted(partition.keys, roots)]
    if choices.sum() > most:
        return None
    marks = []
    for other, _ in links:
        wanted = pattern.vertices[other].candidates
        marks.append(None if wanted is None else np.isin(np.arange(graph.vertices), wanted, assume_unique=True))
    ends = np.append(0, np.cumsum(choices)).astype(np.int64)
    return TwinCount(twins, differ, roots, ends, partitions, tuple(marks), graph.vertices, graph.dtype)
