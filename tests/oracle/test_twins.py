"""Counting by twins: the same number as brute force, for what is such a pattern; everything else is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from graphdb.common.errors import QueryTimeout
from graphdb.execute.counting import twins
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.counting.twins import twin_count
from graphdb.plan.executor import Control
from graphdb.plan.explain import explain_text
from graphdb.plan.passes import pipeline
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.brute import Data, matches
from tests.oracle.strategies import Case, cases, graphs, source_of

EXAMPLES = settings(max_examples=scaled(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
ONE = HostExecutor(1)


def planned(pattern: PatternGraph, graph: DataGraph) -> PhysicalPlan:
    """A plan by twins wherever there are any, however little there is to count."""
    with (
        mock.patch.object(pipeline, "WORTH", -1.0),
        mock.patch.object(pipeline, "twin_count", lambda p, g, checks, _: twin_count(p, g, checks, float("inf"))),
    ):
        return make_plan(pattern, graph)


def shared(count: int, others: list[tuple[int, bool]], mode: MatchMode, **more: Any) -> PatternGraph:
    """Some twins, joined to each of the others by an edge (label, whether it leads away from the twins)."""
    names = [*(f"t{i}" for i in range(count)), *(f"o{i}" for i in range(len(others)))]
    edges = []
    for twin in range(count):
        for i, (label, out) in enumerate(others):
            ends = (twin, count + i) if out else (count + i, twin)
            edges.append(PatternEdge(f"e{len(edges)}", *ends, (label,), True, 0))
    vertices = tuple(PatternVertex(name) for name in names)
    clause = Clause(mode, tuple(range(len(names))))
    return PatternGraph(vertices, tuple(edges), (clause,), outputs=(), count_only=True, **more)


def candidates(draw: st.DrawFn, data: Data) -> np.ndarray[Any, Any] | None:
    chosen = draw(st.one_of(st.none(), st.sets(st.integers(0, data.vertices - 1))))
    return None if chosen is None else np.array(sorted(chosen), np.int64)


@st.composite
def twin_cases(draw: st.DrawFn) -> Case:
    data = draw(graphs())
    count = draw(st.integers(2, 3))
    others = draw(st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.booleans()), min_size=2, max_size=5 - count))
    unequal = tuple((a, b) for b in range(count) for a in range(b)) if draw(st.booleans()) else ()
    pattern = shared(count, others, draw(st.sampled_from(list(MatchMode))), unequal=unequal)
    of_twins = candidates(draw, data)
    sets = [of_twins] * count + [candidates(draw, data) for _ in others]
    vertices = tuple(replace(v, candidates=found) for v, found in zip(pattern.vertices, sets, strict=True))
    return Case(source_of(data), data, replace(pattern, vertices=vertices))


@EXAMPLES
@given(twin_cases(), st.sampled_from([np.int32, np.int64]), st.sampled_from([None, "direct", "hashed", "spans"]))
def test_counts_are_the_oracles(case: Case, dtype: Any, layer: Any) -> None:
    graph = DataGraph(case.source, dtype=dtype, layer=layer)
    plan = planned(case.pattern, graph)
    want = sum(1 for _ in matches(case.pattern, case.data))
    note(f"triples {sorted(case.data.triples)} {plan.twins} want {want}")
    with mock.patch.object(twins, "_PIECE", 3):
        assert ONE.count(plan) == want
    mode = case.pattern.clauses[0].mode
    asked = pipeline.without_matches(case.pattern) is None
    assert plan.twins is not None or mode is not MatchMode.REPEATABLE_ELEMENTS or not asked
    assert plan.twins is None or mode not in (MatchMode.INDUCED, MatchMode.DIFFERENT_NODES)


@EXAMPLES
@given(cases(most_vertices=5))
def test_other_patterns_are_counted_right_too(case: Case) -> None:
    pattern = replace(case.pattern, outputs=(), count_only=True)
    assert ONE.count(planned(pattern, DataGraph(case.source))) == sum(1 for _ in matches(case.pattern, case.data))


def complete(size: int) -> DataGraph:
    s, o = np.divmod(np.arange(size * size), size)
    return DataGraph(ArraySource(s, np.full(len(s), size), o, size + 1))


@pytest.fixture
def cheap() -> Iterator[None]:
    """Planning as if two choices were counted as fast as other counts go through an element."""
    with mock.patch.object(pipeline, "CHOICE", 0.5):
        yield


def test_it_is_left_where_other_counts_take_less() -> None:
    pattern = shared(2, [(100, True), (100, True)], MatchMode.REPEATABLE_ELEMENTS)
    assert make_plan(pattern, complete(100)).twins is None


def test_it_is_chosen_where_it_pays_and_said(cheap: None) -> None:
    pattern = shared(2, [(100, True), (100, True)], MatchMode.REPEATABLE_ELEMENTS)
    plan = make_plan(pattern, complete(100))
    assert plan.twins is not None
    assert ONE.count(plan) == 100**4
    assert "twins t0, t1: 100 vertices with up to 1,000,000 choices of o0, o1" in explain_text(plan)
    assert make_plan(pattern, complete(100), counting="never").twins is None
    assert make_plan(replace(pattern, limit=3), complete(100)).twins is None
    assert ONE.count(make_plan(replace(pattern, unequal=((0, 1),)), complete(100))) == 100**2 * 100 * 99


def test_many_twins_of_one_choice_are_more_than_64_bits_hold(cheap: None) -> None:
    pattern = shared(20, [(100, False), (100, True)], MatchMode.REPEATABLE_ELEMENTS)
    plan = make_plan(pattern, complete(100))
    assert plan.twins is not None
    assert ONE.count(plan) == 100**22


def test_limits_of_memory_and_time(cheap: None) -> None:
    plan = make_plan(shared(2, [(150, True), (150, True)], MatchMode.REPEATABLE_ELEMENTS), complete(150))
    assert plan.twins is not None
    assert HostExecutor(1)._sums(plan) == "twins" != HostExecutor(1, memory_limit=1 << 10)._sums(plan)
    with pytest.raises(QueryTimeout):
        ONE.count(plan, Control(timeout=0.0))
