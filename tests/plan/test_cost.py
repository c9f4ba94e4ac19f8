"""Estimates, random walks and orders: how near they come, and that they come out the same every time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.checks import IsCandidate
from graphdb.plan.counting.costs import CountingCosts
from graphdb.plan.counting.inclusion_exclusion import Expansion, Member
from graphdb.plan.estimates.cost import Estimates, estimate
from graphdb.plan.executor import Control
from graphdb.plan.explain import explain, explain_text
from graphdb.plan.ordering import order as ordering
from graphdb.plan.ordering import sample
from graphdb.plan.ordering.sample import Walks, best_order, modelled
from graphdb.plan.passes import counting, steps
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import VertexStep
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.degree_sketch import IN, OUT, DegreeSketch
from tests.fuzz import scaled
from tests.oracle.strategies import cases

HOMOMORPHISM = MatchMode.REPEATABLE_ELEMENTS


def graph_of(edges: list[tuple[int, int, int]], classes: dict[int, list[int]], vertices: int) -> DataGraph:
    """Edges (subject, label, object) among ``vertices`` vertices; labels, classes and rdf:type come behind them."""
    kind = vertices + 20
    typed = [(v, kind, vertices + c) for c, members in classes.items() for v in members]
    s, p, o = zip(*[(a, vertices + 10 + label, b) for a, label, b in edges], *typed, strict=True)
    return DataGraph(ArraySource(s, p, o, vertices + 30, 0, kind))


def pattern_of(
    graph: DataGraph, edges: list[tuple[int, int]], vertices: int, labels: dict[int, int] | None = None,
    mode: MatchMode = HOMOMORPHISM,
) -> PatternGraph:  # fmt: skip
    count = 1 + max(map(max, edges))
    of = {v: vertices + c for v, c in (labels or {}).items()}
    return PatternGraph(
        tuple(
            PatternVertex(f"v{v}", graph.members(of[v]), "", (of[v],)) if v in of else PatternVertex(f"v{v}")
            for v in range(count)
        ),
        tuple(PatternEdge(f"e{i}", a, b, (vertices + 10,), True, 0) for i, (a, b) in enumerate(edges)),
        (Clause(mode, tuple(range(count))),),
        count_only=True,
    )


@pytest.fixture(scope="module")
def hub() -> DataGraph:
    """One vertex that 200 point at, of 400 that point at one each."""
    return graph_of([(i, 0, 400 if i < 200 else i + 201) for i in range(400)], {0: [*range(390, 400)]}, 700)


def rows(pattern: PatternGraph, graph: DataGraph) -> float:
    estimates = estimate(pattern, graph)
    return modelled(estimates, ordering.matching_order(estimates)).rows[-1]


def count(pattern: PatternGraph, graph: DataGraph) -> int:
    return HostExecutor().count(make_plan(pattern, graph, counting="never"))


@given(st.lists(st.integers(1, 100), max_size=30))
def test_moments_are_exact_up_to_the_second(degrees: list[int]) -> None:
    sketch = DegreeSketch.of(np.array(degrees, np.int64))
    assert (sketch.vertices, sketch.edges) == (len(degrees), sum(degrees))
    assert sketch.moment(2, False) == pytest.approx(sum(d * d for d in degrees))
    assert sketch.moment(2, True) == pytest.approx(sum(d * (d - 1) for d in degrees))
    third = sum(d**3 for d in degrees)
    assert third / 2 <= sketch.moment(3, False) <= third * 2


def test_skewed_joins_are_seen(hub: DataGraph) -> None:
    wedge = [(0, 2), (1, 2)]
    for mode in (HOMOMORPHISM, MatchMode.DIFFERENT_NODES):
        pattern = pattern_of(hub, wedge, 700, mode=mode)
        assert rows(pattern, hub) == pytest.approx(count(pattern, hub))
    star = pattern_of(hub, [(0, 3), (1, 3), (2, 3)], 700)
    assert rows(star, hub) == pytest.approx(count(star, hub), rel=0.01)


def test_labels_make_fan_outs_their_own(hub: DataGraph) -> None:
    """Vertices with the label point at vertices that nobody else does."""
    pattern = pattern_of(hub, [(0, 1)], 700, {0: 0})
    assert rows(pattern, hub) == pytest.approx(10) == count(pattern, hub)
    nowhere = pattern_of(hub, [(1, 0)], 700, {0: 0})
    assert count(nowhere, hub) == 0
    assert rows(nowhere, hub) <= 1


@settings(max_examples=scaled(40), deadline=None)
@given(cases())
def test_walks_are_the_same_every_time_and_never_change_the_matches(case: object) -> None:
    pattern, graph = case.pattern, DataGraph(case.source)  # type: ignore[attr-defined]
    estimates = estimate(pattern, graph)
    order = ordering.matching_order(estimates)
    first, second = (Walks(pattern, graph).forecast(estimates, order) for _ in range(2))
    assert first == second
    assert all(np.isfinite([*first.rows, *first.work]))


def test_walks_find_what_the_model_cannot_know() -> None:
    """Edges come in triangles: the model thinks that two ends are hardly ever joined."""
    edges = [(3 * i + a, 0, 3 * i + b) for i in range(300) for a, b in ((0, 1), (1, 2), (0, 2))]
    graph = graph_of(edges, {}, 900)
    pattern = pattern_of(graph, [(0, 1), (1, 2), (0, 2)], 900)
    estimates = estimate(pattern, graph)
    order = ordering.matching_order(estimates)
    assert modelled(estimates, order).rows[-1] < 30
    assert Walks(pattern, graph).forecast(estimates, order).rows[-1] == pytest.approx(300, rel=0.5)
    assert count(pattern, graph) == 300


def test_walks_get_past_rare_labels() -> None:
    """A path along ten labels, where an edge in eight leads to the next label: of walks that take any way and end where
    the label is another, one in thousands gets to the end.
    """
    rng, size, labels, degree = np.random.default_rng(3), 2000, 10, 80
    source, target = np.repeat(np.arange(size), degree), rng.integers(0, size, size * degree)
    along = np.arange(len(source)) % 8 == 0
    target[along] += (source[along] + 1 - target[along]) % labels
    edges = list(zip(source.tolist(), [0] * len(source), (target % size).tolist(), strict=True))
    graph = graph_of(edges, {c: list(range(c, size, labels)) for c in range(labels)}, size)
    pattern = pattern_of(graph, [(i, i + 1) for i in range(6)], size, {i: i for i in range(7)})
    estimates, order = estimate(pattern, graph), tuple(range(7))
    want = HostExecutor().count(make_plan(pattern, graph))
    assert modelled(estimates, order).rows[-1] < want / 10
    walks = Walks(pattern, graph, sample.WALKS[1])
    assert walks._walk(order)[2].min() > sample.ENOUGH
    assert want / 2 < walks.forecast(estimates, order).rows[-1] < 2 * want


def test_sums_of_many_conditions_are_looked_for_once() -> None:
    """Before random walks have told what the search costs, they would be given up."""
    rng = np.random.default_rng(1)
    edges = [(int(a), 0, int(b)) for a, b in rng.integers(0, 300, (9000, 2)) if a != b]
    graph = graph_of(edges, {}, 300)
    path = pattern_of(graph, [(i, i + 1) for i in range(4)], 300, mode=MatchMode.DIFFERENT_NODES)
    with mock.patch.object(Expansion, "quotients", autospec=True, side_effect=Expansion.quotients) as asked:
        plan = make_plan(path, graph)
    assert plan.counting is not None
    assert asked.call_count == 1


def test_an_order_that_is_sampled_to_be_dear_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many a point to b's that are hubs; the statistics of b's label cannot tell, since others have none."""
    monkeypatch.setattr(sample, "WORTH", 1.0)
    rng = np.random.default_rng(0)
    edges = [(int(a), 0, int(b)) for a, b in zip(rng.integers(0, 300, 600), rng.integers(300, 310, 600), strict=True)]
    edges += [(b, 1, c) for b in range(300, 310) for c in range(400, 600)]
    edges += [(b, 1, 600) for b in range(310, 400)] + [(c, 2, 610 + c % 40) for c in range(400, 420)]
    graph = graph_of(edges, {}, 700)
    path = PatternGraph(
        tuple(PatternVertex(name) for name in "abcd"),
        tuple(PatternEdge(f"e{i}", i, i + 1, (710 + i,), True, 0) for i in range(3)),
        (Clause(HOMOMORPHISM, (0, 1, 2, 3)),),
        count_only=True,
    )
    estimates = estimate(path, graph)
    chosen = best_order(path, graph, estimates, ordering.matching_order)
    worst = Walks(path, graph).forecast(estimates, (0, 1, 2, 3))
    assert chosen.cost < worst.cost
    assert count(path, graph) == HostExecutor().count(make_plan(path, graph, counting="always"))


# --- orders ---


def test_a_search_that_gives_way_to_sums_is_neither_sampled_nor_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of four vertices among 2,000: sums win whatever walks say.  Where sums are refused, walks are asked."""
    rng = np.random.default_rng(7)
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 2000, (30_000, 2)) if a != b})
    graph = graph_of([(a, 0, b) for a, b in pairs], {0: [0]}, 2000)
    path = pattern_of(graph, [(i, i + 1) for i in range(3)], 2000, mode=MatchMode.DIFFERENT_EDGES)
    asked: list[int] = []
    walk = Walks.forecast
    monkeypatch.setattr(Walks, "forecast", lambda *given: asked.append(1) or walk(*given))
    plan = make_plan(path, graph)
    assert plan.counting is not None
    assert not asked
    assert not plan.text._written
    assert HostExecutor(1).count(plan) == HostExecutor(1).count(make_plan(path, graph, counting="never"))
    assert asked  # by the plan that may not sum
    asked.clear()
    monkeypatch.setattr(counting, "MOST_UNSAMPLED", 0)
    again = make_plan(path, graph)
    assert asked
    assert again.counting is not None
    assert again.counting.terms == plan.counting.terms
    assert len({id(again.program), id(again.program), id(replace(again, limit=None).program)}) == 1


@st.composite
def estimated(draw: st.DrawFn, least: int, most: int) -> Estimates:
    """Estimates of a random connected pattern."""
    size = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    edges = {(int(rng.integers(0, i)), i) for i in range(1, size)}
    edges |= {pair for pair in combinations(range(size), 2) if rng.random() < 2 / size}
    links: list[list[tuple[int, float, float]]] = [[] for _ in range(size)]
    for a, b in sorted(edges):
        share = float(10 ** -rng.uniform(0, 5))
        links[a].append((b, share, float(10 ** rng.uniform(0, 3))))
        links[b].append((a, share, float(10 ** rng.uniform(0, 3))))
    return Estimates(tuple(float(10 ** rng.uniform(0, 5)) for _ in range(size)), tuple(map(tuple, links)))


@settings(max_examples=scaled(30), deadline=None)
@given(estimated(11, 32))
def test_the_beam_is_never_worse_than_greedy(estimates: Estimates) -> None:
    component = list(range(len(estimates.sizes)))
    work, _, order = ordering._component_order(estimates, component)
    assert sorted(order) == component
    assert work <= ordering._greedy(estimates, component)[0]
    forecast = modelled(estimates, order)
    assert work == pytest.approx(forecast.cost - forecast.work[0], rel=1e-6)


@settings(max_examples=scaled(30), deadline=None)
@given(estimated(2, 6))
def test_the_beam_is_exact_on_small_patterns(estimates: Estimates) -> None:
    component = list(range(len(estimates.sizes)))
    exact = ordering._component_order(estimates, component)
    assert ordering._beam(estimates, component)[0] == pytest.approx(exact[0])


# --- PROFILE ---


def test_profile_points_at_what_was_misjudged_and_shares_out_the_time() -> None:
    edges = [(3 * i + a, 0, 3 * i + b) for i in range(300) for a, b in ((0, 1), (1, 2), (0, 2))]
    graph = graph_of(edges, {}, 900)
    pattern = pattern_of(graph, [(0, 1), (1, 2), (0, 2)], 900)
    plan, control = make_plan(pattern, graph), Control()
    assert HostExecutor().count(plan, control) == 300
    steps = explain(plan, str, control)
    assert [step.misjudged for step in steps] == [False, False, True]
    assert sum(step.seconds or 0 for step in steps) == pytest.approx(control.seconds)
    assert (control.work[1:] > 0).all()
    lines = explain_text(plan, str, control).splitlines()
    assert ["!" in line for line in lines[1:4]] == [False, False, True]
    assert lines[3].endswith("× more")
    assert not [line for line in explain_text(plan).splitlines() if "!" in line]


@pytest.mark.parametrize("threads", [1, 2])
def test_work_is_the_same_whoever_does_it(threads: int) -> None:
    rng = np.random.default_rng(3)
    edges = [(int(a), 0, int(b)) for a, b in rng.integers(0, 60, (400, 2))]
    graph = graph_of(edges, {}, 60)
    pattern = pattern_of(graph, [(0, 1), (1, 2), (2, 3)], 60)
    plan, control = make_plan(pattern, graph, counting="never"), Control()
    HostExecutor(threads, inline_cost=0.0).count(plan, control)
    assert control.threads == threads
    assert (control.work[1:] > 0).all()
    assert control.rows[-1] == count(pattern, graph) > 0


def test_directions() -> None:
    graph = graph_of([(0, 0, 1), (0, 0, 2)], {}, 3)
    assert graph.degrees((13,), OUT).buckets == ((1, 2, 4),)
    assert graph.degrees((13,), IN).buckets == ((2, 2, 2),)
    assert graph.degrees((13,), None).buckets == ((2, 2, 2), (1, 2, 4))


@pytest.mark.parametrize("layer", ["direct", "hashed", "spans"])
def test_counting_expects_the_degrees_that_an_edge_leads_to(layer: Any) -> None:
    """Of single labels and directions what statistics say, of others partitions; never the opposite one."""
    triples = np.unique(np.random.default_rng(7).integers(0, [30, 3, 40], (300, 3)), axis=0)
    for labels, direction in [((1,), "out"), ((1,), "in"), ((0, 2), "out"), ((1,), "both")]:
        graph = DataGraph(ArraySource(*triples.T, 40), layer=layer)
        costs, member, arrival = CountingCosts(graph, []), Member(labels, direction, False), Member((0,), "in", False)
        out = {(a, b) for a, label, b in triples.tolist() if label in labels}
        near = {"out": out, "in": {(b, a) for a, b in out}, "both": out | {(b, a) for a, b in out}}[direction]
        degree = Counter(a for a, _ in near)
        assert costs.keys(member) == len(degree)
        assert costs.mean(member) == pytest.approx(len(near) / len(degree))
        assert graph.has_partition(labels, direction) == (direction == "both" or len(labels) > 1)
        if direction == "out" and len(labels) > 1:
            other = Member(labels, "in", False)
            ends = Counter(b for _, b in near)
            assert costs.keys(other) == len(ends)
            assert costs.mean(other) == pytest.approx(len(near) / len(ends))
            assert graph.has_partition(labels, "in") == (layer == "spans")
        led = [a for a, label, _ in triples.tolist() if label == 0]
        assert costs.biased(member, arrival) == pytest.approx(sum(degree[a] for a in led) / len(led))
        assert not graph.has_partition((0,), "out")


@pytest.mark.parametrize("count_only", [True, False])
@pytest.mark.parametrize("strays", [0, 10])
def test_a_plan_builds_only_the_partitions_that_it_reads(
    monkeypatch: pytest.MonkeyPatch, count_only: bool, strays: int
) -> None:
    """Statistics say where edges lead, and no symmetry asks for loops; what leads elsewhere, too, is tested."""
    monkeypatch.setattr(steps, "SMALL", 1)
    random = np.random.default_rng(11)
    makers = [(i, 0, int(random.integers(300, 340))) for i in range(300)]
    makers += [edge for i in range(strays) for edge in ((i, 0, 345 + i), (385 + i, 0, 300 + i))]
    topics = [(i, 1, 360 + int(topic)) for i in range(300) for topic in random.permutation(20)[: 1 + i % 3]]
    graph = graph_of([*makers, *topics], {0: [*range(300, 340)], 1: [*range(300)], 2: [*range(360, 380)]}, 400)
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{v}", graph.members(400 + v), "", (400 + v,)) for v in range(3)),
        (PatternEdge("e0", 1, 0, (410,), True, 0), PatternEdge("e1", 1, 2, (411,), True, 0)),
        (Clause(MatchMode.DIFFERENT_EDGES, (0, 1, 2)),),
        outputs=() if count_only else ("v0", "v2"),
        count_only=count_only,
    )
    plan = make_plan(pattern, graph, counting="always" if count_only else "never")
    read = {near.relation for step in plan.steps if isinstance(step, VertexStep) for near in step.neighbours}
    read = read if plan.counting is None else {*plan.counting.partitions}
    assert len(read) == 2
    built = {
        (label, way) for label in (410, 411) for way in ("out", "in", "both") if graph.has_partition((label,), way)
    }
    assert built == {(*(relation.labels or ()), relation.direction) for relation in read}
    checks = [check for step in plan.steps for check in step.checks if isinstance(check, IsCandidate)]
    assert len(checks) == bool(strays)
    assert HostExecutor().count(replace(plan, count_only=True), Control()) == len(topics)
