"""Interchangeable leaves of a star that must differ from each other only: one vertex and a falling factorial count
them.

Of n neighbours, k leaves are chosen in n (n - 1) … (n - k + 1) ways.  Inclusion–exclusion would say the same with a
term for each partition of the leaves; of a dozen of them these are millions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import combinations

from graphdb.pattern.graph import PatternGraph

Pair = frozenset[int]


def alike_leaves(
    pattern: PatternGraph, filters: list[tuple[int, ...]], excluded: Collection[int]
) -> list[tuple[tuple[int, int], ...]]:
    """Return the groups of two and more leaves that hang on one vertex by edges of one kind, as (leaf, its edge).

    Parameters
    ----------
    filters
        What each pattern vertex may be bound to, as something to compare.
    excluded
        Vertices that are none, whatever hangs there.
    """
    ends = [end for edge in pattern.edges for end in (edge.source, edge.target)]
    ends += [end for test in pattern.edge_tests for end in (test.source, test.target)]
    once = {v for v in ends if ends.count(v) == 1} - {*excluded}
    groups: dict[object, list[tuple[int, int]]] = {}
    for e, edge in enumerate(pattern.edges):
        for leaf, centre, way in ((edge.target, edge.source, "out"), (edge.source, edge.target, "in")):
            if leaf in once and centre not in once:
                kind = (centre, edge.labels, way if edge.directed else "both", edge.parallel, filters[leaf])
                groups.setdefault(kind, []).append((leaf, e))
    return [tuple(group) for group in groups.values() if len(group) > 1]


def all_different(
    group: tuple[tuple[int, int], ...],
    differ: Collection[tuple[Pair, Pair]],
    weighted: Callable[[int], bool],
) -> bool:
    """Whether the leaves of a group must differ from each other, and from nothing else.

    Parameters
    ----------
    differ
        What must not happen, each as (vertices that are the same, edges that are the same).
    weighted
        Whether an edge may be bound to several data edges between the same two vertices: then leaves that differ are
        not edges that differ.
    """
    leaves, edges = (frozenset(column) for column in zip(*group, strict=True))
    pairs = {(frozenset((a, b)), frozenset[int]()) for (a, _), (b, _) in combinations(group, 2)}
    pairs_of_edges = {(frozenset((a, b)), frozenset((i, j))) for (a, i), (b, j) in combinations(group, 2)}
    touching = {found for found in differ if found[0] & leaves or found[1] & edges}
    return touching == pairs_of_edges or (touching == pairs and not weighted(group[0][1]))
