"""A plan for other candidates is what would have been made of them, and finds their matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.passes.retarget import retargeted
from graphdb.plan.physical import CONSTANT_LIST, PhysicalPlan, VertexStep
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph

LABELS = (60, 61)


def graph_of(seed: int) -> DataGraph:
    """60 vertices with some five edges each, of two labels."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(LABELS, 300))
    return DataGraph(ArraySource(rng.integers(0, 60, 300), labels, rng.integers(0, 60, 300), 62))


GRAPH = graph_of(3)


def chain(candidates: list[Any], labels: list[int], **more: Any) -> PatternGraph:
    return PatternGraph(
        tuple(PatternVertex("abcde"[i], ids) for i, ids in enumerate(candidates)),
        tuple(PatternEdge(f"e{i}", i, i + 1, (label,), True, 0) for i, label in enumerate(labels)),
        (Clause(MatchMode.DIFFERENT_EDGES, tuple(range(len(candidates)))),),
        **more,
    )


def arrays(plan: PhysicalPlan) -> list[list[int] | None]:
    steps = [step for step in plan.steps if isinstance(step, VertexStep)]
    both = [array for step in steps for array in (step.scan, step.constants)]
    return [None if array is None else array.tolist() for array in both]


def tables(plan: PhysicalPlan) -> list[list[Any]]:
    """The tables of a program, without addresses."""
    program, lists = plan.program, plan.program.lists.copy()
    lists[lists[:, 0] == CONSTANT_LIST, 1] = 0
    return [each.tolist() for each in (program.steps, lists, program.checks, program.shares, program.outputs)]


def rows(plan: PhysicalPlan) -> list[tuple[int, ...]]:
    blocks = list(HostExecutor(1).run(plan, Control()))
    return sorted(row for b in blocks for row in zip(*(b.columns[name].tolist() for name in plan.outputs), strict=True))


@settings(deadline=None)  # kernels may be compiled
@given(st.data())
def test_it_is_the_plan_that_would_be_made(data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.sampled_from(LABELS), max_size=3))
    sizes = [data.draw(st.sampled_from([None, 1, 1, 3])) for _ in range(len(labels) + 1)]

    def some(size: int | None) -> Any:
        ids = st.lists(st.integers(0, 59), min_size=size or 0, max_size=size, unique=True)
        return None if size is None else np.array(sorted(data.draw(ids)), np.int64)

    counted = data.draw(st.booleans())
    wanted: dict[str, Any] = {"count_only": True} if counted else {"outputs": tuple("abcde"[: len(sizes)])}
    first, second = (chain([some(size) for size in sizes], labels, **wanted) for _ in range(2))
    before, fresh = make_plan(first, GRAPH), make_plan(second, GRAPH)
    made = retargeted(before, second, GRAPH)
    assert retargeted(before, second, graph_of(4)) is None, "it is of another graph"
    if made is None:
        assert counted or before.automorphisms > 1, "searches for rows are never planned anew here"
        return
    executor = HostExecutor(1)
    if counted:
        assert executor.count(made, Control()) == executor.count(fresh, Control())
    else:
        assert rows(made) == rows(fresh)
    if fresh.automorphisms == 1 and fresh.counting is None:
        assert made.steps == fresh.steps
        assert arrays(made) == arrays(fresh)
        assert tables(made) == tables(fresh)
        assert made.own_bytes == fresh.own_bytes


def test_plans_that_looked_at_candidates_are_made_anew() -> None:
    two, one, large = np.array([1, 2]), np.array([7]), np.arange(60)
    for before, now in (
        ([one, None], [two, None]),
        ([one, None], [None, one]),
        ([large, one], [large.copy()[1:], one]),
    ):
        plan = make_plan(chain(list(before), [60], outputs=("a", "b")), GRAPH)
        assert retargeted(plan, chain(list(now), [60], outputs=("a", "b")), GRAPH) is None
    other = make_plan(chain([one, None], [61], outputs=("a", "b")), GRAPH)
    assert retargeted(other, chain([one, None], [60], outputs=("a", "b")), GRAPH) is None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_sums_are_planned_for_what_is_counted_now(length: int) -> None:
    """Who counts so often that sums pay has those of the candidates of now."""
    ids = [np.array([each]) for each in (5, 9)]
    first, second = (chain([each, *[None] * length], [60] * length, count_only=True) for each in ids)
    made = retargeted(make_plan(first, GRAPH), second, GRAPH)
    assert made is not None
    assert made.otherwise is not None
    assert (sums := made.otherwise()) is not None
    assert sums.cost > 0
