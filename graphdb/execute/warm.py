"""Compile every kernel at once, on a graph of a few vertices.

Numba keeps machine code on disk, so this happens once per installation.  Each family of kernels compiles when it is
first used; without this, the first count of a clique or of a tree would wait some day, long after the first query.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from graphdb.common.kernel_cache import compiled
from graphdb.execute.counting.twins import count_twins
from graphdb.execute.host import HostExecutor
from graphdb.execute.paths.steps import Paths
from graphdb.execute.search.group import grouped
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.cost import estimate
from graphdb.plan.counting.twins import twin_count
from graphdb.plan.executor import Control
from graphdb.plan.ordering.sample import Walks
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.paths import PathStep
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.data_graph import ArraySource, DataGraph

_KERNELS = ("search_kernels.search", "clique_kernels.count_triangles", "clique_kernels.count_cliques",
            "count_kernels.send", "nested_kernels.nested", "sample_kernels.walk", "twin_kernels.tally",
            "space_kernels.join_candidates", "tree_kernels.try_roots", "tree_kernels.walk",
            "group_kernels.group_runs", "search_kernels.count_all", "bfs_kernels.bfs", "bfs_kernels.count_ways",
            "bidirectional_bfs_kernels.bidirectional_bfs", "enumeration_kernels.enumerate_paths")  # fmt: skip
"""One function of each family."""


@cache
def warm_up() -> None:
    """Compile what is not compiled yet; quick where everything is, and done once in a process."""
    if compiled(_KERNELS):
        return
    size = 12
    source, target = np.triu_indices(size, 1)
    for layer in ("direct", "hashed"):
        graph = DataGraph(ArraySource(source, np.full(len(source), size), target, size + 1), layer=layer)
        executor = HostExecutor(2)
        triangle, square = [(0, 1), (0, 2), (1, 2)], [(0, 1), (0, 2), (1, 3), (2, 3)]
        clique = [(a, b) for a in range(5) for b in range(a)]
        for _ in executor.run(make_plan(_pattern(triangle, size, MatchMode.INDUCED, count=False), graph)):
            pass
        shared = tuple(PatternEdge(f"e{i}", i % 2, 2 + i // 2, (size,), True, 0) for i in range(4))
        pattern = replace(_pattern(square, size, MatchMode.REPEATABLE_ELEMENTS, count=True), edges=shared)
        twins = twin_count(pattern, graph, (), float("inf"))
        assert twins is not None
        count_twins(twins, Control())
        for mode in (MatchMode.DIFFERENT_NODES, MatchMode.REPEATABLE_ELEMENTS, MatchMode.DIFFERENT_EDGES):
            for edges in (triangle, square, clique, [(0, 1), (1, 2), (2, 3)], [*square, (0, 4)]):
                pattern = _pattern(edges, size, mode, count=True)
                Walks(pattern, graph).forecast(estimate(pattern, graph), tuple(range(len(pattern.vertices))))
                executor.count(make_plan(pattern, graph))
                again = make_plan(pattern, graph, counting="never")
                assert executor.count(again) == executor.count(again)  # the second time by the cached search
                executor.count(make_plan(pattern, graph, counting="always"))
        _find_paths(graph, size)
        ones = np.ones(3, np.int64)
        grouped(ones, ones, ones, 2, lambda: None)
        path = _pattern([(i, i + 1) for i in range(8)], size, MatchMode.DIFFERENT_NODES, count=True)
        some = tuple(replace(v, candidates=np.arange(i, i + 2)) for i, v in enumerate(path.vertices))
        executor.count(make_plan(replace(path, vertices=some), graph))


def _find_paths(graph: DataGraph, label: int) -> None:
    """Paths from both ends, from one, all of the shortest, their number, and beyond the shortest."""
    shortest = PathStep("a", "b", (label,), "both", 1, None, "TRAIL", materialized=True)
    one, other = np.array([0]), np.array([3])
    for step in (shortest, replace(shortest, groups=True), replace(shortest, groups=True, materialized=False)):
        for _ in Paths(graph, replace(step, bound=True), Control()).between(one, other):
            pass
        for _ in Paths(graph, step, Control()).across(one, None):
            pass
    for _ in Paths(graph, replace(shortest, bound=True, count=2), Control()).between(one, other):
        pass


def smallest_plan() -> PhysicalPlan:
    """Triangles in a clique of four vertices: four, each in six ways."""
    source, target = np.triu_indices(4, 1)
    graph = DataGraph(ArraySource(source, np.full(len(source), 4), target, 5))
    triangle = _pattern([(0, 1), (0, 2), (1, 2)], 4, MatchMode.DIFFERENT_NODES, count=True)
    return make_plan(triangle, graph, counting="never")


def _pattern(edges: list[tuple[int, int]], label: int, mode: MatchMode, *, count: bool) -> PatternGraph:
    """An undirected pattern of one edge label."""
    names = [f"v{i}" for i in range(1 + max(map(max, edges)))]
    return PatternGraph(
        tuple(PatternVertex(name) for name in names),
        tuple(PatternEdge(f"e{i}", a, b, (label,), False, 0) for i, (a, b) in enumerate(edges)),
        (Clause(mode, tuple(range(len(names)))),),
        outputs=() if count else tuple(names),
        count_only=count,
    )
