"""Decisions of the planner, seen from outside: order, omitted work, and what EXPLAIN says."""

from __future__ import annotations

import gc
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.candidates import candidate_bits
from graphdb.plan.checks import HasSignature, IsCandidate, NotBothEqual, Unequal
from graphdb.plan.estimates.cost import Estimates, estimate, extend
from graphdb.plan.executor import Control
from graphdb.plan.explain import explain, explain_text
from graphdb.plan.ordering.order import matching_order
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import VertexStep
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph

KNOWS, LIKES = 1000, 1001


@pytest.fixture(scope="module")
def graph() -> DataGraph:
    """1,000 vertices that know 20 others each; 10 of them like one."""
    rng = np.random.default_rng(7)
    s = np.repeat(np.arange(1000), 20)
    o = rng.integers(0, 1000, len(s))
    subjects, objects = np.append(s, np.arange(10)), np.append(o, np.arange(10) + 50)
    labels = np.append(np.full(len(s), KNOWS), np.full(10, LIKES))
    return DataGraph(ArraySource(subjects, labels, objects, 1002))


def chain(
    candidates: dict[int, Any], *labels: int, mode: MatchMode = MatchMode.DIFFERENT_EDGES, **more: Any
) -> PatternGraph:
    """A directed chain over the given edge labels."""
    count = len(labels) + 1
    return PatternGraph(
        tuple(PatternVertex("abcdefghijklmnop"[i], candidates.get(i)) for i in range(count)),
        tuple(PatternEdge(f"e{i}", i, i + 1, (label,), True, 0) for i, label in enumerate(labels)),
        (Clause(mode, tuple(range(count))),),
        **more,
    )


def order_of(pattern: PatternGraph, graph: DataGraph) -> str:
    return "".join(step.binds for step in explain(make_plan(pattern, graph)))


def test_the_search_starts_where_least_is(graph: DataGraph) -> None:
    assert order_of(chain({2: np.array([3])}, KNOWS, KNOWS, KNOWS), graph)[0] == "c"
    assert order_of(chain({}, KNOWS, KNOWS, LIKES), graph)[0] in "cd"


@pytest.mark.parametrize("length", [4, 10, 14])
def test_orders_are_connected_whether_searched_exactly_or_greedily(graph: DataGraph, length: int) -> None:
    estimates = estimate(chain({length // 2: np.array([1])}, *[KNOWS] * (length - 1)), graph)
    order = matching_order(estimates)
    assert sorted(order) == list(range(length))
    for i in range(1, length):
        assert any(abs(order[i] - before) == 1 for before in order[:i])


@given(st.data())
def test_no_order_is_cheaper_than_the_one_chosen(data: st.DataObject) -> None:
    """Trees with some more edges, of any sizes and shares: all connected orders are tried."""
    count = data.draw(st.integers(3, 6))
    number = st.floats(0.001, 1000.0)
    links: list[list[tuple[int, float, float]]] = [[] for _ in range(count)]
    joined = [(data.draw(st.integers(0, v - 1)), v) for v in range(1, count)]
    joined += data.draw(st.lists(st.tuples(st.integers(0, count - 2), st.just(count - 1)), max_size=2))
    for a, b in joined:
        share = data.draw(st.floats(1e-4, 1.0))
        links[a].append((b, share, data.draw(number)))
        links[b].append((a, share, data.draw(number)))
    estimates = Estimates(tuple(data.draw(number) for _ in range(count)), tuple(map(tuple, links)))

    def cost(order: tuple[int, ...]) -> float:
        bound, rows, work = 1 << order[0], estimates.sizes[order[0]], estimates.sizes[order[0]]
        for v in order[1:]:
            if not any(bound >> other & 1 for other, _, _ in links[v]):
                return float("inf")
            rows, step = extend(estimates, bound, rows, v)
            work += step + rows
            bound |= 1 << v
        return work

    assert cost(matching_order(estimates)) == pytest.approx(min(map(cost, permutations(range(count)))))


def test_a_product_puts_the_smaller_component_outside() -> None:
    assert matching_order(Estimates((500.0, 2.0), ((), ()))) == (1, 0)


def test_distinct_nodes_make_edges_distinct_and_labels_that_differ_need_no_test(graph: DataGraph) -> None:
    checks = [
        check
        for step in make_plan(chain({}, KNOWS, KNOWS, mode=MatchMode.DIFFERENT_NODES), graph).steps
        for check in step.checks
    ]
    assert all(isinstance(check, Unequal) for check in checks)
    assert len(checks) == 3
    checks = [check for step in make_plan(chain({}, KNOWS, LIKES), graph).steps for check in step.checks]
    assert not [check for check in checks if isinstance(check, Unequal | NotBothEqual)]


def test_a_selective_start_never_makes_a_signature_or_a_bit_set(graph: DataGraph) -> None:
    many = np.arange(0, 1000, dtype=np.int64)
    many = np.append(many, [1000, 1001])
    plan = make_plan(chain({0: np.array([5]), 1: np.tile(many, 1)}, KNOWS, LIKES), graph)
    assert not [c for step in plan.steps for c in step.checks if isinstance(c, HasSignature)]
    assert not [c for step in plan.steps for c in step.checks if isinstance(c, IsCandidate) and c.many]


@pytest.mark.parametrize("vertices", [5000, 40_000])
def test_bits_of_candidates_that_plan_after_plan_asks_of_are_kept(vertices: int) -> None:
    """Also where a plan looks for fewer than would pay: estimates are often far too low."""
    rng = np.random.default_rng(1)
    s, o = np.repeat(np.arange(5000), 20), rng.integers(0, vertices, 100_000)
    graph = DataGraph(ArraySource(s, np.full(len(s), KNOWS), o, vertices))
    asked = np.flatnonzero(rng.random(vertices) < 0.5)

    def found(graph: DataGraph, asked: Any, start: int) -> tuple[bool, set[tuple[int, int]]]:
        plan = make_plan(chain({0: np.array([start]), 1: asked}, KNOWS, outputs=("a", "b")), graph)
        (check,) = [c for step in plan.steps for c in step.checks if isinstance(c, IsCandidate)]
        blocks = list(HostExecutor(1).run(plan, Control()))
        return check.many, {pair for block in blocks for pair in zip(*map(block.columns.get, "ab"), strict=True)}  # type: ignore[arg-type]

    for number, start in enumerate([5, 5, 9, 2000]):
        wanted = {(start, int(v)) for v in o[s == start] if v in asked}
        assert found(graph, asked, start) == (number > 0, wanted)
    bits = candidate_bits.bit_set(asked, vertices)
    assert bits is candidate_bits.bit_set(asked, vertices)
    assert np.flatnonzero(np.unpackbits(bits, count=vertices, bitorder="little")).tolist() == asked.tolist()
    assert len(candidate_bits.bit_set(asked, vertices + 8)) == vertices // 8 + 1, "a graph that has grown"
    key = id(asked)
    assert key in candidate_bits._seen
    del asked, graph
    gc.collect()
    assert key not in candidate_bits._seen


def test_counting_leaves_the_last_step_uncounted_one_by_one(graph: DataGraph) -> None:
    plan = make_plan(chain({}, KNOWS, KNOWS, count_only=True, mode=MatchMode.REPEATABLE_ELEMENTS), graph)
    assert plan.count_last
    assert isinstance(plan.steps[-1], VertexStep)


def test_explain_and_profile(graph: DataGraph) -> None:
    pattern = chain({0: np.array([5])}, KNOWS, LIKES, outputs=("a", "c"))
    plan, control = make_plan(pattern, graph), Control()
    assert "rows" not in explain_text(plan).splitlines()[0].split("estimated rows")[1]
    count = sum(block.count for block in HostExecutor().run(plan, control))
    steps = explain(plan, {KNOWS: "knows", LIKES: "likes"}.__getitem__, control)
    assert [step.number for step in steps] == [1, 2, 3]
    assert steps[-1].rows == count
    assert {"a", "b", "c"} == {step.binds for step in steps}
    assert any("[:knows]" in step.how for step in steps)
    text = explain_text(plan, str, control)
    assert "threads" in text.splitlines()[-2]
    assert len(text.splitlines()) == 6


@pytest.mark.parametrize("classes", [1, 2])
def test_vertices_of_different_labels_are_not_compared_where_none_has_two(classes: int) -> None:
    """The same counts as of candidate sets of which nothing is known."""
    rng = np.random.default_rng(classes)
    size, kind = 60, 70
    typed = {(v, kind, size + int(c)) for v in range(size) for c in rng.choice(3, classes, replace=False)}
    edges = {(int(a), kind + 1, int(b)) for a, b in [(0, 0), *rng.integers(0, size, (500, 2))]}
    s, p, o = zip(*typed, *edges, strict=True)
    graph = DataGraph(ArraySource(s, p, o, kind + 2, 0, kind))
    counts: set[int] = set()
    for known in (True, False):
        pattern = PatternGraph(
            tuple(
                PatternVertex(name, graph.members(size + c), "", (size + c,) if known else ())
                for name, c in zip("abcd", (0, 1, 0, 1), strict=True)
            ),
            tuple(PatternEdge(f"e{i}", i, i + 1, (kind + 1,), False, 0) for i in range(3)),
            (Clause(MatchMode.DIFFERENT_NODES, (0, 1, 2, 3)),),
            count_only=True,
        )
        plans = [make_plan(pattern, graph, counting=how) for how in ("never", "always")]
        pairs = [c for step in plans[0].steps for c in step.checks if isinstance(c, Unequal)]
        assert len(pairs) == (2 if known and classes == 1 else 6)
        counts |= {HostExecutor().count(plan) for plan in plans}
    assert len(counts) == 1
