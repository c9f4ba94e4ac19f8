"""Plans in other orders: they find what the plan's own order does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.passes.reordered import LARGEST, in_all_orders
from graphdb.plan.physical import PhysicalPlan, VertexStep
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.execute.test_host import pattern

SHAPES: list[list[tuple[int, int]]] = [
    [(0, 1), (1, 2)],
    [(0, 1), (1, 2), (0, 2)],
    [(0, 1), (1, 2), (2, 3), (0, 3)],
    [(0, 1), (0, 2), (0, 3), (1, 2)],
    [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)],
]
VERTICES, LABELS = 12, (12, 13)


def drawn(seed: int, edges: int = 40) -> DataGraph:
    """A graph of a dozen vertices, whose edges have one of two labels."""
    draw = np.random.default_rng(seed)
    source, target = draw.integers(0, VERTICES, (2, edges))
    return DataGraph(ArraySource(source, VERTICES + draw.integers(0, 2, edges), target, VERTICES + 2))


def order_of(plan: PhysicalPlan) -> tuple[int, ...]:
    return tuple(step.vertex for step in plan.steps if isinstance(step, VertexStep))


def rows(plan: PhysicalPlan) -> list[Any]:
    blocks = [block.columns for block in HostExecutor(1).run(plan)]
    return sorted(row for each in blocks for row in zip(*(each[name].tolist() for name in plan.outputs), strict=True))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1 << 32),
    st.sampled_from(SHAPES),
    st.sampled_from([MatchMode.DIFFERENT_EDGES, MatchMode.DIFFERENT_NODES, MatchMode.REPEATABLE_ELEMENTS]),
    st.booleans(),
)
def test_all_orders_find_the_same(seed: int, shape: list[tuple[int, int]], mode: MatchMode, directed: bool) -> None:
    draw, graph = np.random.default_rng(seed), drawn(seed)
    edges = [(a, b, (LABELS[int(draw.integers(2))],), directed) for a, b in shape]
    vertices = 1 + max(map(max, shape))
    for counted in (False, True):
        plan = make_plan(pattern(vertices, edges, mode, count_only=counted), graph, counting="never")
        orders = in_all_orders(plan)
        assert orders
        assert order_of(orders[0]) == order_of(plan)
        assert len({order_of(each) for each in orders}) == len(orders)
        found = HostExecutor(1).count(plan) if counted else rows(plan)
        for each in orders:
            assert (HostExecutor(1).count(each) if counted else rows(each)) == found


@pytest.mark.parametrize(
    ("vertices", "edges"),
    [(4, [(0, 1), (2, 3)]), (LARGEST + 1, [(v, v + 1) for v in range(LARGEST)]), (2, [(0, 1)])],
    ids=["in two components", "large", "an edge"],
)
def test_patterns_that_have_no_other_orders_worth_a_look(vertices: int, edges: list[tuple[int, int]]) -> None:
    joined = [(a, b, LABELS[:1], True) for a, b in edges]
    assert in_all_orders(make_plan(pattern(vertices, joined, count_only=True), drawn(1), counting="never")) == []
