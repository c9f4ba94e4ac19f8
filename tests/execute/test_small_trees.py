"""The smallest patterns over candidate spaces: counted along a tree first, and by a search where that is quicker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import networkx as nx
import pytest

from graphdb.execute import host
from graphdb.execute.host import HostExecutor
from graphdb.plan.executor import Control, Overran
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
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
    searched = mock.Mock(side_effect=executor._searched)
    with mock.patch.object(executor, "_searched", searched):
        assert [executor.count(small, Control()) for _ in range(4)] == [want] * 4
    assert searched.call_count == 3


def test_a_search_that_takes_longer_is_not_tried_again() -> None:
    plan, executor = replace(tree_plan(1), cost=100.0), HostExecutor(1)
    want = executor.count(plan)
    late = mock.Mock(side_effect=Overran)
    with mock.patch.object(executor, "_searched", late):
        assert [executor.count(plan) for _ in range(4)] == [want] * 4
    assert late.call_count == 1


def test_larger_ones_go_along_their_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, executor = tree_plan(2), HostExecutor(1)
    large = replace(plan, cost=host.SMALLEST + 1)

    def never(*_: Any) -> int:
        raise AssertionError("searched")

    monkeypatch.setattr(executor, "_searched", never)
    assert len({executor.count(large) for _ in range(3)}) == 1
