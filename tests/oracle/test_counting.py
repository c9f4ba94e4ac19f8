"""Counting without enumerating: the same number as brute force and as the search, however it is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import cycle
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from graphdb.execute.counting import crt, loops
from graphdb.execute.counting import plan_run as count
from graphdb.execute.counting import run as count_run
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.counting import nested_loops
from graphdb.plan.counting.costs import CountingCosts
from graphdb.plan.counting.programs import Through
from graphdb.plan.executor import Control
from graphdb.plan.passes import counting
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.brute import Data, matches
from tests.oracle.strategies import Case, cases, source_of

EXAMPLES = settings(
    max_examples=scaled(150), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
ONE = HostExecutor(threads=1)
TWO = HostExecutor(threads=2)


def counting_plan(case: Case, graph: DataGraph) -> PhysicalPlan:
    return make_plan(replace(case.pattern, outputs=(), count_only=True), graph, counting="always")


def check(case: Case, graph: DataGraph, executor: HostExecutor = ONE, plan: PhysicalPlan | None = None) -> bool:
    """Compare; whether the pattern could be counted without enumerating, as ``plan`` does where there is one already."""
    pattern = replace(case.pattern, outputs=(), count_only=True)
    want = sum(1 for _ in matches(case.pattern, case.data))
    note(f"triples {sorted(case.data.triples)} pattern {pattern} want {want}")
    plan = plan or counting_plan(case, graph)
    note(f"plan {plan.counting}")
    assert executor.count(plan) == want
    assert executor.count(make_plan(pattern, graph, counting="never")) == want
    return plan.counting is not None


@EXAMPLES
@given(cases())
def test_counts_are_the_oracles(case: Case) -> None:
    check(case, DataGraph(case.source))


def test_directed_edges_that_meet_by_an_undirected_one() -> None:
    """An undirected edge may be either of two that go opposite ways, but not both of them at once."""
    triples = {(0, 4, 1), (1, 4, 0), (0, 5, 1), (1, 5, 2), (2, 4, 1), (1, 4, 2)}
    edges = [("r", 0, 1, True), ("s", 0, 1, False), ("t", 1, 0, True)]
    pattern = PatternGraph(
        (PatternVertex("a"), PatternVertex("b")),
        tuple(PatternEdge(name, a, b, (4, 5), directed, 0) for name, a, b, directed in edges),
        (Clause(MatchMode.DIFFERENT_EDGES, (0, 1)),),
    )
    data = Data(triples, 6, 0, None)
    plan = make_plan(replace(pattern, count_only=True), DataGraph(source_of(data)), counting="always")
    assert plan.counting is not None
    assert ONE.count(plan) == sum(1 for _ in matches(pattern, data)) > 0


@pytest.mark.parametrize("mode", list(MatchMode))
@EXAMPLES
@given(case=cases(most_vertices=5))
def test_each_mode(mode: MatchMode, case: Case) -> None:
    clauses = tuple(replace(clause, mode=mode) for clause in case.pattern.clauses)
    counted = check(replace(case, pattern=replace(case.pattern, clauses=clauses)), DataGraph(case.source), TWO)
    assert counted or mode is not MatchMode.REPEATABLE_ELEMENTS


@st.composite
def simple_cases(draw: st.DrawFn) -> Case:
    """One edge label, undirected, up to seven data vertices; connected patterns of four to six vertices with cycles."""
    size = draw(st.integers(4, 7))
    pair = st.tuples(st.integers(0, size - 1), st.just(1), st.integers(0, size - 1))
    triples = draw(st.sets(pair, min_size=5, max_size=18))
    if draw(st.booleans()):
        triples = {(min(s, o), p, max(s, o)) for s, p, o in triples if s != o}
    data = Data(triples | {(0, 1, 1)}, size, 0, None)
    count = draw(st.integers(4, 5))
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, count)}
    pairs |= draw(st.sets(st.sampled_from([(a, b) for b in range(count) for a in range(b)]), max_size=6))
    mode = draw(st.sampled_from(list(MatchMode)))
    directed = draw(st.booleans())
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(count)),
        tuple(PatternEdge(f"e{i}", a, b, (1,), directed, 0) for i, (a, b) in enumerate(sorted(pairs))),
        (Clause(mode, tuple(range(count))),),
    )
    return Case(source_of(data), data, pattern)


@st.composite
def between(draw: st.DrawFn) -> Case:
    """Two or three vertices that two others, which are alike, are joined with by one or two labels, either way."""
    size = draw(st.integers(3, 6))
    triple = st.tuples(st.integers(0, size - 1), st.sampled_from([1, 2]), st.integers(0, size - 1))
    data = Data(draw(st.sets(triple, min_size=6, max_size=24)) | {(0, 1, 2), (1, 2, 2)}, size, 0, None)
    middle, labels = draw(st.integers(2, 3)), draw(st.sampled_from([(1,), (1, 2)]))
    away, directed = draw(st.booleans()), draw(st.booleans())
    pairs = [(end, 2 + at) if away else (2 + at, end) for end in (0, 1) for at in range(middle)]
    if draw(st.booleans()):  # each end has a leaf
        pairs += [(0, 2 + middle), (1, 3 + middle)]
    chosen = draw(st.none() | st.sets(st.integers(0, size - 1), min_size=2))
    candidates = None if chosen is None else np.array(sorted(chosen))
    count = 1 + max(map(max, pairs))
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{i}", candidates if i < 2 else None) for i in range(count)),
        tuple(PatternEdge(f"e{i}", a, b, labels, directed, 0) for i, (a, b) in enumerate(pairs)),
        (Clause(draw(st.sampled_from(list(MatchMode))), tuple(range(count))),),
    )
    return Case(source_of(data), data, pattern)


@pytest.mark.parametrize("overflows", [False, True])
def test_two_ends_that_are_alike(overflows: bool) -> None:
    """Of two vertices that are to each other what the other is, one sends to the other, for both."""
    mirrored = []

    @EXAMPLES
    @given(between())
    def compared(case: Case) -> None:
        graph = DataGraph(case.source)
        plan = counting_plan(case, graph)
        if plan.counting is not None and check(case, graph, plan=plan):
            parts = [part for term in plan.counting.terms for part in term.parts]
            mirrored.extend(part.levels[0].instructions[-1] for part in parts if len(part.levels) == 1)

    with counted_modulo_primes() if overflows else nullcontext():
        compared()
    assert sum(isinstance(each, Through) and each.mirrored for each in mirrored) > 3


@EXAMPLES
@given(simple_cases())
def test_cyclic_patterns(case: Case) -> None:
    check(case, DataGraph(case.source))


@EXAMPLES
@given(simple_cases())
def test_induced_patterns_are_counted_without_enumerating(case: Case) -> None:
    """Simple graphs of one label: an edge that must not be there is one minus that edge."""
    triples = {(min(s, o), p, max(s, o)) for s, p, o in case.data.triples if s != o} | {(0, 1, 1)}
    data = Data(triples, case.data.resources, 0, None)
    edges = tuple(replace(edge, directed=False) for edge in case.pattern.edges)
    clauses = tuple(replace(clause, mode=MatchMode.INDUCED) for clause in case.pattern.clauses)
    pattern = replace(case.pattern, edges=edges, clauses=clauses)
    assert check(Case(source_of(data), data, pattern), DataGraph(source_of(data)), TWO)


@EXAMPLES
@given(
    st.one_of(simple_cases(), cases(most_vertices=5)),
    st.sampled_from(["direct", "hashed", "spans"]),
    st.sampled_from([np.int32, np.int64]),
    st.lists(st.floats(0.01, 50), min_size=1, max_size=6),
    st.sampled_from([1, 5, 1 << 20]),
)
def test_whatever_is_expected_to_be_cheap(case: Case, layer: Any, dtype: Any, figures: list[float], room: int) -> None:
    """Wrong figures lead to other orders of loops, other roots of trees, other lists kept: never to other counts."""
    asked = cycle(figures)

    def figure(*_: object) -> float:
        return next(asked)

    graph = DataGraph(case.source, dtype=dtype, layer=layer)
    with (
        mock.patch.object(CountingCosts, "mean", figure),
        mock.patch.object(CountingCosts, "biased", figure),
        mock.patch.object(CountingCosts, "closure", figure),
        mock.patch.object(nested_loops, "_PUSH", figures[0]),
        mock.patch.object(loops, "_ROOM", room),
        mock.patch.object(count_run, "_SMALL", 1),
    ):
        check(case, graph, TWO)


@contextmanager
def counted_modulo_primes() -> Iterator[None]:
    """As where int64 does not do."""
    total = count._Parts.total

    def overflowing(run: Any, part: Any, modulus: int) -> int:
        if modulus == 0:
            raise crt.Overflow
        return total(run, part, modulus)

    with (
        mock.patch.object(count._Parts, "total", overflowing),
        mock.patch.object(
            crt, "primes", return_value=(5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)
        ),
    ):
        yield


@EXAMPLES
@given(st.one_of(simple_cases(), cases(most_vertices=5)))
def test_numbers_too_large_for_int64(case: Case) -> None:
    """Where int64 does not do, remainders modulo primes give the same number."""
    with counted_modulo_primes():
        check(case, DataGraph(case.source))


def complete(size: int) -> DataGraph:
    """Every vertex knows every vertex, itself too."""
    s, o = np.divmod(np.arange(size * size), size)
    return DataGraph(ArraySource(s, np.full(len(s), size), o, size + 1))


def walk(length: int, label: int, closed: bool = False) -> PatternGraph:
    ends = [(i, i + 1) for i in range(length)]
    if closed:
        ends[-1] = (length - 1, 0)
    vertices = length if closed else length + 1
    return PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(vertices)),
        tuple(PatternEdge(f"e{i}", a, b, (label,), True, 0) for i, (a, b) in enumerate(ends)),
        (Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(vertices))),),
        count_only=True,
    )


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("length", [3, 9, 30])
def test_walks_in_a_complete_graph(length: int, closed: bool) -> None:
    """100 choices at every step: the last count has 62 digits."""
    plan = make_plan(walk(length, 100, closed), complete(100))
    assert plan.counting is not None
    assert TWO.count(plan) == 100 ** (length if closed else length + 1)


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_large_cores(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cycles with chords, and grids, of up to 20 vertices, against a contraction of tensors."""
    monkeypatch.setattr(counting, "LONG", 0.0)
    dice = np.random.default_rng(seed)
    size = int(dice.integers(3, 5))
    adjacent = dice.random((size, size)) < 0.6
    np.fill_diagonal(adjacent, 0)
    s, o = np.nonzero(adjacent)
    graph = DataGraph(ArraySource(s, np.full(len(s), size), o, size + 1))
    for _ in range(4):
        if dice.random() < 0.5:
            n = int(dice.integers(13, 21))
            ends = {(i, (i + 1) % n) for i in range(n)}
            ends |= {(i, int(dice.choice([j for j in range(n) if j != i]))) for i in dice.integers(0, n, 2).tolist()}
        else:
            width, height = [(2, 8), (3, 5), (4, 4)][dice.integers(3)]
            n = width * height
            ends = {(i, i + 1) for i in range(n - 1) if (i + 1) % width} | {(i, i + width) for i in range(n - width)}
        edges = [(a, b, bool(dice.random() < 0.5)) for a, b in sorted(ends)]
        pattern = PatternGraph(
            tuple(PatternVertex(f"v{i}") for i in range(n)),
            tuple(PatternEdge(f"e{i}", a, b, (size,), directed, 0) for i, (a, b, directed) in enumerate(edges)),
            (Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(n))),),
            count_only=True,
        )
        plan = make_plan(pattern, graph, counting="always")
        assert plan.counting is not None
        there = adjacent.astype(np.float64)  # which BLAS multiplies: 4**20 is exact
        operands = [part for a, b, way in edges for part in (there if way else there + there.T, [a, b])]
        assert TWO.count(plan) == int(np.einsum(*operands, [], optimize="greedy")), (seed, edges)


def test_a_bound_start_reads_what_it_reaches() -> None:
    """From one vertex of a chain, three steps: no weight of a vertex that is not reached is asked for."""
    case_size = 2000
    s = np.arange(case_size)
    graph = DataGraph(ArraySource(s, np.full(case_size, case_size + 1), s + 1, case_size + 2))
    pattern = walk(3, case_size + 1)
    pattern = replace(pattern, vertices=(PatternVertex("v0", np.array([7])), *pattern.vertices[1:]))
    plan = make_plan(pattern, graph, counting="always")
    assert plan.counting is not None
    assert ONE.count(plan) == 1


def test_a_timeout_stops_counting() -> None:
    from graphdb.common.errors import QueryTimeout

    plan = make_plan(walk(8, 700, closed=True), complete(700))
    assert plan.counting is not None
    with pytest.raises(QueryTimeout):
        TWO.count(plan, Control(timeout=0.05))


def test_sums_of_products_beyond_64_bits_are_exact() -> None:
    from graphdb.execute.counting.kernels.count_kernels import add_products

    rng = np.random.default_rng(1)
    left, right = rng.integers(0, 1 << 61, (2, 1000))
    left[0] = right[0] = (1 << 61) - 1
    support, sums = np.arange(0, 1000, 2), np.zeros(6, np.int64)
    add_products(support, left, right, sums)
    low, low_carry, middle, middle_carry, high, high_carry = map(int, sums)
    found = low + (low_carry << 32) + (middle + (middle_carry << 32) << 31) + (high + (high_carry << 32) << 62)
    assert found == sum(int(left[v]) * int(right[v]) for v in support)


def test_walks_beyond_64_bits_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vertex with many neighbours: six steps to and fro pass 2**63, their halves do not."""
    monkeypatch.setattr(crt, "primes", lambda: pytest.fail("counted again modulo primes"))
    leaves = 100_000
    graph = DataGraph(
        ArraySource(np.zeros(leaves, np.int64), np.full(leaves, leaves + 1), np.arange(1, leaves + 1), leaves + 2)
    )
    steps = [(i, i + 1) for i in range(6)]
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(7)),
        tuple(PatternEdge(f"e{i}", a, b, (leaves + 1,), False, 0) for i, (a, b) in enumerate(steps)),
        (Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(7))),),
        count_only=True,
    )
    # From the hub and back three times, or from a leaf.
    assert HostExecutor().count(make_plan(pattern, graph, counting="always")) == leaves**3 + leaves**4


@EXAMPLES
@given(case=st.one_of(simple_cases(), cases(most_vertices=5)), spare=st.sampled_from([0, 8, 64, 400, 1 << 20]))
def test_whatever_memory_is_left(case: Case, spare: int) -> None:
    """Lists that are only kept because it is quicker are left out where memory is short, and then threads, then all."""
    pattern = replace(case.pattern, outputs=(), count_only=True)
    want = sum(1 for _ in matches(case.pattern, case.data))
    plan = make_plan(pattern, DataGraph(case.source), counting="always")
    if plan.counting is not None:
        needed = plan.counting.shared_bytes + plan.counting.worker_bytes
        for limit in (needed + spare, needed - 1):
            found = count.count_matches(plan.counting, Control(), 2, limit)
            assert found == (want if limit >= needed else None)
