"""The CPU executor: stopping, limits, memory, threads, and the rare cases of distinctness that random tests seldom meet."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.common.errors import ExecutionError, GraphDBError, MemoryLimitError, QueryTimeout
from graphdb.execute.choose import choose_executor
from graphdb.execute.host import HostExecutor
from graphdb.execute.search import frame, worker
from graphdb.execute.search.worker import Search, Sizes
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.checks import EdgesDiffer
from graphdb.plan.executor import Control
from graphdb.plan.passes import draft, steps
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import EdgeStep, PhysicalPlan, Writing
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.oracle.brute import Data, matches
from tests.oracle.strategies import source_of
from tests.stops import Stopwatch

DIFFERENT_EDGES, REPEATABLE = MatchMode.DIFFERENT_EDGES, MatchMode.REPEATABLE_ELEMENTS


def pattern(
    vertices: int, edges: list[tuple[int, int, Any, bool]], mode: MatchMode = DIFFERENT_EDGES, **more: Any
) -> PatternGraph:
    """Vertices a, b, … and edges (source, target, labels, directed) in one clause; all vertices are outputs."""
    names = "abcdefghij"[:vertices]
    return PatternGraph(
        vertices=tuple(PatternVertex(name) for name in names),
        edges=tuple(PatternEdge(f"e{i}", *edge, 0) for i, edge in enumerate(edges)),
        clauses=(Clause(mode, tuple(range(vertices))),),
        **{"outputs": () if more.get("count_only") else tuple(names), **more},
    )


def complete(vertices: int) -> DataGraph:
    """Every vertex has an edge to every other."""
    s, o = np.nonzero(~np.eye(vertices, dtype=bool))
    return DataGraph(ArraySource(s, np.ones(len(s)), o, vertices))


@pytest.fixture(scope="module")
def endless() -> PhysicalPlan:
    """A plan with some 10^20 matches, none of which can be counted without going there."""
    edges = [(i, i + 1, (1,), False) for i in range(8)]
    return make_plan(pattern(9, edges, count_only=True), complete(300))


def rows(plan: PhysicalPlan, executor: HostExecutor, control: Control | None = None) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for block in executor.run(plan, control or Control()):
        found += zip(*(block.columns[name].tolist() for name in plan.outputs), strict=True)
    return found


# --- stopping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_a_timeout_stops_a_count(endless: PhysicalPlan, threads: int) -> None:
    HostExecutor(threads).count(make_plan(pattern(1, [], count_only=True), complete(3)))  # compiled
    for seconds in (0.2, 2.0, 20.0):  # it is stopped before it begins where others have the processors for so long
        control, watch = Control(timeout=seconds), Stopwatch()
        with pytest.raises(QueryTimeout, match="longer than its timeout"):
            HostExecutor(threads).count(endless, control)
        assert watch.seconds() < seconds + 5
        assert not workers()
        if control.rows.sum() > 0:
            break
    assert control.rows.sum() > 0


def workers() -> list[str]:
    """The threads of ours that are left, but for the one that watches connections: that one stays."""
    return [t.name for t in threading.enumerate() if t.name.startswith("graphdb") and t.name != "graphdb-watchdog"]


@pytest.mark.parametrize("threads", [1, 2])
def test_cancelling_stops_a_count(endless: PhysicalPlan, threads: int) -> None:
    cancelled = threading.Event()
    threading.Timer(0.1, cancelled.set).start()
    with pytest.raises(ExecutionError, match="interrupted"):
        HostExecutor(threads).count(endless, Control(cancelled=cancelled))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_reaches_the_caller_and_leaves_no_worker(endless: PhysicalPlan, threads: int) -> None:
    import _thread

    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        threading.Timer(0.2, _thread.interrupt_main).start()
        HostExecutor(threads).count(endless)
    assert not workers()


def test_a_caller_may_stop_taking_rows(endless: PhysicalPlan) -> None:
    """The workers end, though far more was to come; meanwhile only so much waited for the caller."""
    plan = make_plan(pattern(4, [(0, 1, (1,), True), (1, 2, (1,), True), (2, 3, (1,), True)]), complete(100))
    control = Control(buffer_bytes=1 << 16)
    run = HostExecutor(2, block_rows=1000).run(plan, control)
    first = next(run)
    time.sleep(0.1)
    run.close()  # type: ignore[attr-defined]
    assert first.count == 1000
    assert 0 < control.rows[-1] < 200_000
    assert not workers()


def test_a_limit_stops_early() -> None:
    plan = make_plan(pattern(4, [(0, 1, (1,), True), (1, 2, (1,), True), (2, 3, (1,), True)], limit=10), complete(100))
    for executor in (HostExecutor(1), HostExecutor(2, inline_cost=0)):
        control = Control()
        assert len(rows(plan, executor, control)) == 10
        assert control.rows[-1] <= 10_000


def test_progress_grows_to_one() -> None:
    plan = make_plan(pattern(3, [(0, 1, (1,), True), (1, 2, (1,), True)], count_only=True), complete(60))
    seen: list[float] = []
    HostExecutor(2, inline_cost=0).count(plan, Control(progress=seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


# --- memory and devices ----------------------------------------------------------------------------------------------


def test_a_run_uses_fewer_workers_or_none_where_memory_is_short() -> None:
    graph = complete(2000)
    triangle = [(0, 1, (1,), True), (1, 2, (1,), True), (0, 2, (1,), True)]
    plan = make_plan(pattern(3, triangle, count_only=True, limit=1), graph)
    assert 1999 * 4 <= plan.worker_bytes <= 8 * 1999 * 4
    assert HostExecutor(4, inline_cost=0).memory(plan) == 4 * plan.worker_bytes
    control = Control()
    assert HostExecutor(4, memory_limit=2 * plan.worker_bytes, inline_cost=0).count(plan, control) == 1
    assert control.threads == 2
    with pytest.raises(MemoryLimitError, match="memory limit"):
        HostExecutor(4, memory_limit=100).count(plan)


def test_devices() -> None:
    assert choose_executor("cpu").name == "cpu"
    for name in ("abacus", "cuda:", "cuda:x", "cuda0"):
        with pytest.raises(GraphDBError, match=name):
            choose_executor(name)


def test_candidates_must_be_vertices() -> None:
    graph = complete(5)
    strange = replace(pattern(1, []), vertices=(PatternVertex("a", np.array([0, 5])),))
    with pytest.raises(ExecutionError, match="candidate"):
        make_plan(strange, graph)


def test_an_empty_pattern_has_one_match() -> None:
    plan = make_plan(PatternGraph((), (), ()), complete(3))
    assert [block.count for block in HostExecutor().run(plan)] == [1]
    assert HostExecutor().count(plan) == 1


# --- distinctness, where random patterns seldom go ------------------------------------------------------------------


def same_as_oracle(data: Data, wanted: PatternGraph) -> PhysicalPlan:
    """Compare rows, and the count; the plan, for a closer look."""
    graph = DataGraph(source_of(data))
    plan = make_plan(wanted, graph)
    expected = Counter(tuple(row[name] for name in wanted.outputs) for row in matches(wanted, data))
    assert Counter(rows(plan, HostExecutor(1))) == expected
    counted = make_plan(replace(wanted, outputs=(), count_only=True), graph)
    assert HostExecutor(1).count(counted) == expected.total() > 0
    return plan


def test_simple_relations_that_share_only_some_labels_are_compared_by_codes() -> None:
    """1|2 and 2|3 are both simple here, and joined ends need not be the same edge."""
    data = Data({(0, 1, 1), (0, 3, 1), (2, 2, 1), (0, 2, 4)}, 5, 0, None)
    plan = same_as_oracle(data, pattern(4, [(0, 1, (1, 2), True), (2, 3, (2, 3), True)]))
    assert any(isinstance(check, EdgesDiffer) for step in plan.steps for check in step.checks)


def test_a_wide_directed_and_a_narrow_undirected_edge_may_share_ends_without_being_one() -> None:
    """(0)-[1]->(1) and (1)-[2]->(0): 1|2 directed is simple, 2 undirected is simple, and they differ."""
    data = Data({(0, 1, 1), (1, 2, 0), (2, 1, 3)}, 4, 0, None)
    plan = same_as_oracle(data, pattern(4, [(0, 1, (1, 2), True), (2, 3, (2,), False)]))
    assert any(isinstance(check, EdgesDiffer) for step in plan.steps for check in step.checks)


def test_simple_undirected_edges_need_no_codes() -> None:
    data = Data({(0, 1, 1), (1, 1, 2), (0, 1, 2), (2, 1, 3), (3, 1, 3)}, 4, 0, None)
    plan = same_as_oracle(data, pattern(3, [(0, 1, (1,), False), (1, 2, (1,), False), (0, 2, (1,), False)]))
    assert not any(isinstance(step, EdgeStep) for step in plan.steps)


def test_a_value_excluded_twice_is_discounted_once() -> None:
    """d differs from a, b and c, which are free to be the same vertex."""
    data = Data({(i, 1, j) for i in range(4) for j in range(4)}, 4, 0, None)
    edges = [(0, 1, (1,), True), (1, 2, (1,), True), (2, 3, (1,), True)]
    plan = same_as_oracle(data, replace(pattern(4, edges, REPEATABLE), unequal=((0, 3), (1, 3), (2, 3))))
    assert len(plan.steps[-1].checks) == 3


@pytest.mark.parametrize("mode", list(MatchMode))
def test_signatures_ask_for_two_neighbours_only_where_they_must_differ(mode: MatchMode) -> None:
    """Vertex 0 has one successor, vertex 1 two: with repeatable elements both match a fork."""
    data = Data({(0, 1, 2), (1, 1, 2), (1, 1, 3), (4, 1, 4)}, 5, 0, None)
    fork = pattern(3, [(0, 1, (1,), True), (0, 2, (1,), True)], mode)
    centre = np.arange(5)
    fork = replace(fork, vertices=(PatternVertex("a", centre[:2]), *fork.vertices[1:]))
    with mock.patch.object(steps, "_signature_pays", return_value=True):
        same_as_oracle(data, fork)


def test_a_longer_list_than_the_shortest_may_be_gone_through() -> None:
    """d is joined to a by one edge and to c by four: the four are asked, one after the other, for a's bit."""
    triples = {(0, 1, 5), (5, 1, 6), (0, 2, 10), *((6, 1, 10 + i) for i in range(4))}
    data = Data(triples, 15, 0, None)
    square = pattern(4, [(0, 1, (1,), True), (1, 2, (1,), True), (2, 3, (1,), True), (0, 3, (2,), True)])
    with mock.patch.object(draft, "matching_order", return_value=(0, 1, 2, 3)):
        plan = same_as_oracle(data, square)
    wider = replace(plan.program, worker_bytes=plan.worker_bytes + 64)
    guarded = replace(plan, text=Writing(lambda: wider))
    search = Search(guarded, Sizes(1 << 16, 1 << 20, 0), False)
    search._buffers[-64:] = 0xA5
    search.start(0, 1)
    assert search.advance(search.capacity) == 0
    assert search.take()[1][0].T.tolist() == [[0, 5, 6, 10]]
    assert (search._buffers[-64:] == 0xA5).all()  # nothing was written behind the last step's buffer


@pytest.mark.parametrize("near", [-1, 1 << 62])
def test_rows_do_not_depend_on_what_is_prefetched(near: int) -> None:
    """Lists of all vertices and of some, of single bindings and of many; lists that are far are fetched for each."""
    rng = np.random.default_rng(9)
    s, o = rng.integers(0, 400, (2, 2500))
    labels = np.where(np.arange(2500) < 40, 2, 1)
    graph = DataGraph(ArraySource(s, labels, o, 400))
    edges = [(0, 1, (1,), True), (1, 2, (2,), False), (2, 3, (1,), True)]
    plan = make_plan(pattern(4, edges, REPEATABLE, duplicates="drop"), graph)
    with mock.patch.object(worker, "_NEAR", near):
        found = rows(plan, HostExecutor(1))
        fetched = Search(plan, Sizes(1 << 16, 1 << 20, 0), False)._frame[frame.FETCHED]
    triples = list(zip(s.tolist(), labels.tolist(), o.tolist(), strict=True))
    ways = [(a, b) for a, label, b in triples if label == 1]
    joins = {pair for a, label, b in triples if label == 2 for pair in ((a, b), (b, a))}
    expected = {(a, b, c, d) for b, c in joins for a, t in ways if t == b for f, d in ways if f == c}
    assert set(found) == expected
    assert len(found) > 100
    assert fetched == (1 if near < 0 else 32)


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_rows_and_their_order_do_not_depend_on_the_threads(duplicates: Any) -> None:
    """Hubs and all: 1, 2, 4 and 7 workers, whose chunks are cut differently."""
    rng = np.random.default_rng(3)
    s, o = rng.integers(0, 300, 3000), (rng.random(3000) ** 3 * 300).astype(np.int64)
    graph = DataGraph(ArraySource(s, np.ones(3000), o, 300))
    edges = [(0, 1, (1,), False), (1, 2, (1,), False), (0, 2, (1,), True)]
    outputs = ("a", "b") if duplicates == "drop" else ("a", "b", "c")
    plan = make_plan(pattern(3, edges, outputs=outputs, duplicates=duplicates), graph)
    counted = make_plan(pattern(3, edges, count_only=True), graph, counting="never")
    always = make_plan(pattern(3, edges, count_only=True), graph, counting="always")
    first, number = rows(plan, HostExecutor(1)), HostExecutor(1).count(counted)
    assert len(first) > 5000
    for threads in (2, 4, 7):
        executor = HostExecutor(threads, inline_cost=-1.0)
        assert rows(plan, executor) == first
        assert executor.count(counted) == executor.count(always) == number
        limited = rows(replace(plan, limit=100), executor)
        assert limited == first[:100]
