"""Counts that a search does sooner than a tree or sums, if it is as small as expected; and where it is not."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest

from graphdb.execute import host
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control, Overran
from graphdb.plan.passes import pipeline
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.oracle.test_trees import labelled_graph, labelled_pattern


def tree_plan(seed: int) -> PhysicalPlan:
    """A pattern of 9 vertices cut out of a labelled graph, which is counted along a tree."""
    while True:
        graph, known = labelled_graph(seed, 60, 4.0, 4)
        part = list(nx.bfs_tree(known, max(known, key=known.degree)))[:9]
        wanted = nx.minimum_spanning_tree(known.subgraph(part).copy())
        plan = make_plan(labelled_pattern(wanted, known, rows=False), graph)
        if plan.tree is not None:
            return plan
        seed += 100


@pytest.mark.parametrize("seed", range(6))
def test_every_count_is_the_same(seed: int) -> None:
    plan = tree_plan(seed)
    small, executor = replace(plan, cost=100.0), HostExecutor(1)
    want = executor.count(replace(plan, tree=None))
    assert small.cache == {}
    searched = mock.Mock(side_effect=executor._searched)
    with mock.patch.object(executor, "_searched", searched), mock.patch.object(host, "SOON", 60.0):
        assert [executor.count(small, Control()) for _ in range(4)] == [want] * 4
    assert 1 <= searched.call_count <= 3  # the search that is there counts again


@pytest.mark.parametrize("cost", [100.0, 1e5])
def test_a_search_that_takes_longer_is_tried_ever_less(cost: float) -> None:
    """Estimated to be faster than the tree, or some times slower."""
    plan, executor = replace(tree_plan(1), cost=cost), HostExecutor(1)
    want = executor.count(plan)
    late = mock.Mock(side_effect=Overran)
    with mock.patch.object(executor, "_searched", late):
        assert [executor.count(plan) for _ in range(200)] == [want] * 200
    assert late.call_count <= 6


def test_larger_ones_go_along_their_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, executor = tree_plan(2), HostExecutor(1)
    large = replace(plan, cost=1e10)

    def never(*_: Any) -> int:
        raise AssertionError("searched")

    monkeypatch.setattr(executor, "_searched", never)
    assert len({executor.count(large) for _ in range(70)}) == 1


@pytest.mark.parametrize("slow", ["_summed", "_searched"])
def test_what_was_measured_to_be_faster_counts_in_the_end(slow: str) -> None:
    """Whatever was expected: a search of ten times the estimate of the tree, or of a tenth of it."""
    plan, executor = tree_plan(3), HostExecutor(1)
    assert plan.tree is not None
    wrong = replace(plan, cost=plan.tree.cost * (10.0 if slow == "_summed" else 0.1))
    run, taken = getattr(executor, slow), Counter[str]()

    def late(*arguments: Any) -> Any:
        time.sleep(2e-3)
        taken["slow"] += 1
        return run(*arguments)

    with mock.patch.object(executor, slow, late), mock.patch.object(host, "SOON", 60.0):
        want = {executor.count(wrong) for _ in range(80)}
        taken.clear()
        assert want == {executor.count(wrong) for _ in range(40)} == {HostExecutor(1).count(replace(plan, tree=None))}
    assert not taken


def test_a_run_says_that_it_tried_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever measures it would take the host for slow otherwise."""
    plan, executor = tree_plan(3), HostExecutor(1)
    assert plan.tree is not None
    wrong, searched, found = replace(plan, cost=plan.tree.cost * 1.5), executor._searched, Counter[tuple[bool, bool]]()
    began: list[int] = []

    def late(*arguments: Any) -> Any:
        began.append(time.sleep(2e-3))
        return searched(*arguments)

    monkeypatch.setattr(executor, "_searched", late)
    monkeypatch.setattr(host, "SOON", 60.0)
    for _ in range(40):
        began.clear()
        control = Control()
        executor.count(wrong, control)
        found[bool(began), control.disturbed] += 1
    assert set(found) == {(True, True), (False, False)}


@pytest.mark.parametrize("size", [10, 12])
def test_what_may_explode_is_searched_first_where_that_is_expected_to_be_quick(size: int) -> None:
    """A long chain under homomorphism: its sums are certain, but the few matches are sooner found one by one."""
    source = np.arange(size)
    graph = DataGraph(ArraySource(source, np.full(size, size + 1), source + 1, size + 2))
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(size)),
        tuple(PatternEdge(f"e{i}", i, i + 1, (size + 1,), True, 0) for i in range(size - 1)),
        (Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(size))),),
        count_only=True,
    )
    plan = make_plan(pattern, graph, counting="always")
    assert plan.counting is not None
    executor = HostExecutor(1)
    sums = mock.Mock(side_effect=AssertionError("summed up"))
    doubtful = replace(plan, cost=50.0, counting=None, doubtful=True, otherwise=sums)
    with mock.patch.object(host, "SOON", 60.0):
        assert [executor.count(doubtful) for _ in range(3)] == [2] * 3
    certain = replace(plan, cost=50.0)
    searched = mock.Mock(side_effect=AssertionError("searched"))
    with mock.patch.object(executor, "_searched", searched):
        assert executor.count(certain) == 2


def test_a_search_that_explodes_is_left_within_milliseconds() -> None:
    """Walks of nine steps in a clique of 60: some 10 to the 16."""
    a, b = np.nonzero(~np.eye(60, dtype=bool))
    graph = DataGraph(ArraySource(a, np.full(len(a), 60), b, 61))
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(10)),
        tuple(PatternEdge(f"e{i}", i, i + 1, (60,), True, 0) for i in range(9)),
        (Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(10))),),
        count_only=True,
    )
    plan = make_plan(pattern, graph, counting="always")
    assert plan.counting is not None
    otherwise = mock.Mock(return_value=plan.counting)
    doubtful, executor = replace(plan, cost=50.0, counting=None, doubtful=True, otherwise=otherwise), HostExecutor(1)
    for _ in range(3):
        assert executor.count(doubtful, Control(timeout=30.0)) == 60 * 59**9
    assert executor.division(doubtful, True, Control()) is None  # sums along edges are one piece; no search is divided


def test_sums_of_a_search_that_may_explode_are_planned_once_it_has() -> None:
    """Paths of nine edges, each of which may lead to a hub; none does."""
    chain = [(i, i + 1) for i in range(9)]
    others = [(x, x + 1) for x in range(10, 4000, 2)] + [(4000, x) for x in range(4001, 4300)]
    source, target = np.array(chain + others).T
    graph = DataGraph(ArraySource(source, np.full(len(source), 4300), target, 4301))
    first = PatternVertex("v0", candidates=np.array([0]))
    pattern = PatternGraph(
        (first, *(PatternVertex(f"v{i}") for i in range(1, 10))),
        tuple(PatternEdge(f"e{i}", i, i + 1, (4300,), True, 0) for i in range(9)),
        (Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(10))),),
        count_only=True,
    )
    with mock.patch.object(pipeline, "counting_plan", wraps=pipeline.counting_plan) as planned:
        plan = make_plan(pattern, graph)
        assert plan.doubtful
        assert not planned.called
        assert HostExecutor(1).count(plan) == 1
    assert plan.sums is not None
    late = HostExecutor(1)
    with mock.patch.object(late, "_searched", side_effect=Overran):
        assert late.count(plan) == 1
