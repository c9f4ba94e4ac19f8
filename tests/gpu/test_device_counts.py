"""Counting without enumerating on a device, real or emulated: the host's numbers, in every mode that can be counted so."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternGraph
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.gpu.patterns import EXAMPLES, HOST, PATTERNS, Edges, counted, executor, graph_of, pattern_of
from tests.oracle.strategies import Case, cases
from tests.oracle.test_counting import simple_cases
from tests.oracle.test_duplicates import counts_of, with_outputs

__all__ = ["executor"]


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(executor: Any, name: str) -> None:
    graph, label = graph_of(40, 160, 1)
    assert counted(pattern_of(PATTERNS[name], label), graph, executor)


def test_candidates_and_hanging_trees(executor: Any) -> None:
    """Vertices with candidate sets, on a cycle with two branches: weights that are bits, and weights that are not."""
    graph, label = graph_of(32, 90, 3)
    sets = tuple(np.flatnonzero(np.arange(32) % 4 == i) for i in range(4))
    edges = ((0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (0, 5))
    assert counted(pattern_of(edges, label, (*sets, sets[0], sets[1])), graph, executor)


def test_what_is_known_of_a_label_is_not_asked_again(executor: Any) -> None:
    """Candidates' bits, and how many of them a list holds, are kept for other plans as long as the candidates are."""
    from graphdb.gpu.code.launch import Module

    graph, label = graph_of(32, 90, 3)
    sets = tuple(np.flatnonzero(np.arange(32) % 3 == i) for i in range(3))
    launched: list[str] = []
    plain = Module.launch

    def launch(module: Any, kernel: str, *arguments: Any, **more: Any) -> None:
        launched.append(kernel)
        plain(module, kernel, *arguments, **more)

    with mock.patch.object(Module, "launch", launch):
        for edges, weighings in ((((0, 1), (1, 2), (0, 2)), True), (((0, 1), (1, 2), (0, 2)), False)):
            launched.clear()
            assert counted(pattern_of(edges, label, sets), graph, executor)
            assert ("weigh" in launched) == weighings


def by_vertex(pattern: PatternGraph, graph: DataGraph, executor: Any) -> bool:
    """Compare with the host's search; whether the device counted by vertex without searching."""
    pattern = replace(pattern, count_only=False)
    want = counts_of(replace(pattern, duplicates="count"), graph, HOST, "never")
    plan = make_plan(replace(pattern, duplicates="count"), graph, counting="always")
    found = executor._counter.count_by_vertex(plan, Control())
    assert found is None or dict(zip(*(column.tolist() for column in found), strict=True)) == {
        vertex: number for (vertex,), number in want.items()
    }
    assert counts_of(replace(pattern, duplicates="count"), graph, executor, "always") == want
    dropped = counts_of(replace(pattern, duplicates="drop"), graph, executor, "always")
    assert dropped.keys() == want.keys()
    assert found is None or dropped.total() == len(dropped)  # each row once
    return found is not None


@pytest.mark.parametrize(("name", "vertex"), [("diamond", "v0"), ("4-cycle", "v1")])
def test_matches_are_counted_by_vertex(executor: Any, name: str, vertex: str) -> None:
    """Loops whose sums are kept apart by the vertex that they begin with."""
    graph, label = graph_of(40, 160, 1)
    assert by_vertex(replace(pattern_of(PATTERNS[name], label), outputs=(vertex,)), graph, executor)


def test_walks_are_counted_by_vertex(executor: Any) -> None:
    """One pass over the edges for each edge of the pattern: what would be millions of rows are as many as vertices."""
    graph, label = graph_of(60, 400, 7)
    pattern = pattern_of(((0, 1), (1, 2), (2, 3), (1, 4)), label, (None, np.arange(0, 60, 2)))
    pattern = replace(pattern, clauses=(Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(4))),))
    for vertex in ("v0", "v1", "v2"):
        assert by_vertex(replace(pattern, outputs=(vertex,)), graph, executor)


@pytest.mark.parametrize("candidates", [(None, np.arange(0, 12, 2)), (np.arange(0, 12, 2),) * 2], ids=["one", "two"])
def test_a_leaf_that_an_edge_joins_with_itself(executor: Any, candidates: tuple[Any, ...]) -> None:
    """No kernel knows of such edges: a search has to, and not the bits of the leaf's candidates alone."""
    s, o = np.unique(np.random.default_rng(9).integers(0, 12, (2, 60)), axis=1)
    graph = DataGraph(ArraySource(s, np.full(len(s), 12), o, 13))
    pattern = pattern_of(((0, 0), (0, 1), (1, 2)), 12, candidates)
    pattern = replace(
        pattern,
        clauses=(Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(3))),),
        edges=tuple(replace(edge, directed=True) for edge in pattern.edges),
    )
    counted(pattern, graph, executor)
    for vertex in ("v0", "v1", "v2"):
        by_vertex(replace(pattern, outputs=(vertex,)), graph, executor)


@EXAMPLES
@given(case=cases(most_vertices=5), number=st.integers(0, 4))
def test_all_sorts_of_patterns_by_vertex(executor: Any, case: Case, number: int) -> None:
    by_vertex(with_outputs(case, [number]).pattern, DataGraph(case.source), executor)


@pytest.mark.parametrize("shared", [1 << 12, 224 << 10])
@pytest.mark.parametrize("warp", [0, 10 << 10])
def test_wherever_registers_lie(executor: Any, shared: int, warp: int) -> None:
    """Blocks as teams, and numbers in scratch memory, as on larger graphs."""
    from graphdb.gpu.counting import registers

    graph, label = graph_of(20, 70, 4)
    limits = replace(executor.device.limits, shared=shared, processor_shared=shared)
    with mock.patch.object(executor.device, "limits", limits), mock.patch.object(registers, "WARP_BYTES", warp):
        for name in ("4-wheel", "diamond closed by a vertex"):
            assert counted(pattern_of(PATTERNS[name], label), graph, executor)


RANGES: dict[str, Edges] = {
    "4-cycle": PATTERNS["4-cycle"],
    "three between two": ((0, 1), (0, 2), (0, 3), (4, 1), (4, 2), (4, 3)),
    "4-cycle with a leaf": ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4)),
}


@pytest.mark.parametrize(("name", "shared"), list(zip(RANGES, (256, 512, 1024), strict=True)))
def test_sums_of_one_range_of_ranks_after_the_other(executor: Any, name: str, shared: int) -> None:
    """Their numbers, of 16 or 32 bits, lie in shared memory, which has no room for those of all ranks."""
    from graphdb.gpu.counting import registers
    from graphdb.gpu.counting import run as count

    (graph, label), texts, written = graph_of(300, 900, 6), list[str](), count._written

    def write(*arguments: Any) -> Any:
        texts.append(written(*arguments).text)
        return written(*arguments)

    rng, own = np.random.default_rng(shared), registers.BLOCKS * (shared + registers.RESERVED)
    limits = replace(executor.device.limits, shared=shared, processor_shared=own, processor_threads=512)
    sets = (None, None, np.sort(rng.choice(300, 150, replace=False)))
    with (
        mock.patch.object(executor.device, "limits", limits),
        mock.patch.object(registers, "RANGED", 0.0),
        mock.patch.object(count, "_written", write),
    ):
        for candidates in ((), sets):
            assert counted(pattern_of(RANGES[name], label, candidates), graph, executor)
    assert any("within(" in text for text in texts)


@pytest.mark.parametrize("shared", [1 << 12, 224 << 10])
def test_what_triangles_have_in_common(executor: Any, shared: int) -> None:
    """The kernel for larger graphs; its matrices in shared memory, and in scratch memory."""
    from graphdb.gpu.counting import run as count

    graph, label = graph_of(120, 1500, 5)
    limits = replace(executor.device.limits, shared=shared, processor_shared=shared)
    with mock.patch.object(count, "WARP_BYTES", 0), mock.patch.object(executor.device, "limits", limits):
        assert counted(pattern_of(PATTERNS["5-clique minus an edge"], label), graph, executor)


@EXAMPLES
@given(case=simple_cases())
def test_cyclic_patterns(executor: Any, case: Case) -> None:
    counted(replace(case.pattern, outputs=(), count_only=True), DataGraph(case.source), executor)


@EXAMPLES
@given(case=cases(most_vertices=5))
def test_all_sorts_of_patterns(executor: Any, case: Case) -> None:
    counted(replace(case.pattern, outputs=(), count_only=True), DataGraph(case.source), executor)


SHARED: dict[str, tuple[int, Edges]] = {
    "what asks for the last factor": (35, ((0, 1), (1, 2), (2, 3), (3, 0))),
    "a loop": (184, ((0, 1), (0, 2), (1, 2), (1, 3), (0, 4), (2, 4), (3, 4))),
}
"""By what blocks that share a root divide: a seed, and a pattern."""


def shared_roots(executor: Any, seed: int, edges: Edges) -> str:
    """Compare a pattern of random candidates, whose roots many blocks share; the kernels that count it."""
    from graphdb.gpu.counting import run as count

    rng, (graph, label) = np.random.default_rng(seed), graph_of(300, 3600, 6)
    size = 1 + max(max(edge) for edge in edges)
    sets = tuple(np.sort(rng.choice(300, rng.integers(5, 150), replace=False)) for _ in range(size))
    texts, written = list[str](), count._written

    def write(*arguments: Any) -> Any:
        texts.append(written(*arguments).text)
        return written(*arguments)

    with mock.patch.object(count, "_DEAL", 64), mock.patch.object(count, "_written", write):
        counted(pattern_of(edges, label, sets), graph, executor)
    return "\n".join(texts)


@pytest.mark.parametrize("how", SHARED)
def test_a_list_in_no_order_is_divided_by_vertices(executor: Any, how: str) -> None:
    """Threads append to it as they come, in every block in another order: places in it mean nothing to other blocks."""
    assert "% pieces" in shared_roots(executor, *SHARED[how])


@EXAMPLES
@given(seed=st.integers(0, 1 << 32), pairs=st.sets(st.sampled_from(list(combinations(range(5), 2))), min_size=4))
def test_blocks_that_share_roots(executor: Any, seed: int, pairs: set[tuple[int, int]]) -> None:
    shared_roots(executor, seed, tuple(sorted(pairs)))
