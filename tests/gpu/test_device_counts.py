"""Counting without enumerating on a device, real or emulated: the host's numbers, in every mode that can be counted so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.gpu.costs import scanned, timings_of
from graphdb.gpu.counting import counter
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.fuzz import scaled
from tests.gpu.executors import EMULATED
from tests.oracle.strategies import Case, cases
from tests.oracle.test_counting import simple_cases
from tests.oracle.test_duplicates import counts_of, with_outputs

EXAMPLES = settings(
    max_examples=scaled(2),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
HOST = HostExecutor(1)

Edges = tuple[tuple[int, int], ...]
PATTERNS: dict[str, Edges] = {
    "diamond": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)),
    "4-cycle": ((0, 1), (0, 2), (1, 3), (2, 3)),
    "diamond closed by a vertex": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)),
    "4-clique with a triangle on an edge": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3)),
    "4-wheel": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4)),
    "bow tie": ((0, 1), (0, 2), (1, 2), (0, 3), (0, 4), (3, 4)),
    "5-clique minus an edge": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4)),
}


@pytest.fixture(params=[pytest.param("emulated", marks=EMULATED), pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device's executor."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed())
        from graphdb.gpu.executor import GpuExecutor

        yield GpuExecutor(0, memory_limit=1 << 30)


def graph_of(size: int, edges: int, seed: int) -> tuple[DataGraph, int]:
    """A random graph of one edge label with some hubs, and the label."""
    rng = np.random.default_rng(seed)
    a, b = (rng.random(edges) ** 2 * size).astype(np.int64), rng.integers(0, size, edges)
    pairs = np.unique(np.sort(np.stack([a[a != b], b[a != b]], axis=1), axis=1), axis=0)
    return DataGraph(ArraySource(pairs[:, 0], np.full(len(pairs), size), pairs[:, 1], size + 1)), size


def pattern_of(edges: Edges, label: int, candidates: tuple[Any, ...] = ()) -> PatternGraph:
    """An undirected pattern under DIFFERENT NODES that is only counted; the first vertices have ``candidates``."""
    count = 1 + max(max(edge) for edge in edges)
    return PatternGraph(
        tuple(PatternVertex(f"v{i}", candidates[i] if i < len(candidates) else None) for i in range(count)),
        tuple(PatternEdge(f"e{i}", a, b, (label,), False, 0) for i, (a, b) in enumerate(edges)),
        (Clause(MatchMode.DIFFERENT_NODES, tuple(range(count))),),
        count_only=True,
    )


def counted(pattern: PatternGraph, graph: DataGraph, executor: Any) -> bool:
    """Compare with the host's search; whether the device counted without searching."""
    plan = make_plan(pattern, graph, counting="always")
    want = HOST.count(make_plan(pattern, graph, counting="never"))
    found = executor._counter.count(plan, Control())
    assert found in (None, want)
    assert executor.count(plan) == want
    return found is not None


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(executor: Any, name: str) -> None:
    graph, label = graph_of(40, 160, 1)
    assert counted(pattern_of(PATTERNS[name], label), graph, executor)


def test_a_kernel_that_is_there_makes_a_count_cheaper(executor: Any) -> None:
    """What must be compiled first is waited for only where going through the matches takes longer."""
    graph, label = graph_of(40, 160, 1)
    plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="always")
    plan, slow = replace(plan, cost=1e7), replace(plan, cost=1e11)
    executor.count(make_plan(pattern_of(((0, 1), (1, 2)), label), graph, counting="never"))  # the join is compiled
    before = executor._counter.expected(plan, True)
    assert before.setup > 0.1
    assert executor.expected(plan, True).seconds > before.seconds
    assert executor.expected(slow, True) == before
    want = executor.count(plan)
    assert replace(executor._counter.expected(plan, True), setup=before.setup) == before
    assert executor.count(slow) == want
    executor._counter.wait_for_all()
    after = executor._counter.expected(plan, True)
    assert (after.setup, after.in_background) == (0.0, False)
    assert executor.expected(plan, True) == executor._counter.expected(plan, True)
    within = f"within {executor.device.memory.budget / 1e9:.2f} GB"
    assert executor.describe(plan) == f"cuda:0 by sums {within}"
    triangle = make_plan(pattern_of(((0, 1), (0, 2), (1, 2)), label), graph)
    executor.count(triangle)
    executor._counter.wait_for_all()  # a thread compiled its kernel, if none was there
    assert executor.describe(triangle) == f"cuda:0 by cliques {within}"


def test_a_count_by_sums_writes_no_program_of_matches(executor: Any) -> None:
    """What enumerates the matches is prepared only where they are enumerated."""
    graph, label = graph_of(40, 160, 1)
    pattern = pattern_of(PATTERNS["diamond"], label)
    first = make_plan(pattern, graph, counting="always")
    want = executor.count(first)
    executor._counter.wait_for_all()
    executor.count(first)
    assert first.counting is not None
    again = replace(first, cost=1e12)  # which has no timings yet
    with mock.patch.object(type(first), "program", property(lambda plan: pytest.fail("it is written"))):
        assert executor.count(again) == want


def test_plans_pay_for_a_kernel_together(executor: Any) -> None:
    """What counts miss for want of a kernel adds up over all plans that it would serve, also those made anew."""
    graph, label = graph_of(40, 160, 1)
    plans = [make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="always") for _ in range(3)]
    counter = executor._counter
    first = [counter.expected(plan, True).setup for plan in plans]
    assert len(set(first)) == 1
    counter.missed(plans[0], True, 1e-3)  # less than sums would take
    counter.missed(plans[0], True, 2.5e-3)
    assert not counter.preparing(plans[0], True)
    counter.missed(plans[1], True, 2.5e-3)
    counter.wait_for_all()
    assert counter.expected(plans[1], True).setup == 0.0
    assert counter.expected(plans[2], True).setup < first[2] / 10


@EMULATED
def test_sums_are_compiled_while_matches_are_gone_through() -> None:
    """Plans go the way they went until a thread has the kernel; a caller who would rather wait may still leave."""
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 30)
        graph, label = graph_of(40, 160, 1)
        plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="always")
        plan = replace(plan, cost=1e7)
        want = HOST.count(plan)
        with emulator.slow_compiler("nested") as compiler:
            executor._counter.missed(plan, True, 1.0)
            for _ in range(5):
                assert executor.count(plan) == want
                assert executor.describe(plan) == "cuda:0 by join within 0.97 GB while sums are compiled"
            with pytest.raises(QueryTimeout):
                executor._counter.count(plan, Control(timeout=0.05))
            compiler.set()
            executor._counter.wait_for_all()
        assert executor._counter.expected(plan, True).setup == 0.0
        assert executor._counter.count(plan, Control()) == want


@EMULATED
def test_a_compiler_that_fails_leaves_the_way_as_it_was() -> None:
    with emulator.installed():
        from graphdb.gpu.counting import counter
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 30)
        graph, label = graph_of(40, 160, 1)
        plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="always")
        with mock.patch.object(counter, "DeviceCount", side_effect=MemoryLimitError("it is full")):
            executor._counter.missed(plan, True, 1.0)
            executor._counter.wait_for_all()
        assert executor._counter.expected(plan, True) is None
        assert executor.count(plan) == HOST.count(plan)


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


def test_where_the_host_walks_along_a_tree_a_device_sums(executor: Any) -> None:
    """A path of eight vertices, of which the first and the last have the same candidates."""

    graph, label = graph_of(64, 700, 6)
    sets = tuple(np.flatnonzero(np.arange(64) % 7 == i % 7) for i in range(8))
    plan = make_plan(pattern_of(tuple((i, i + 1) for i in range(7)), label, sets), graph)
    assert plan.tree is not None
    want = HOST.count(plan)
    assert executor._counter.count(plan, Control()) is None
    with mock.patch.object(counter, "LONG", 0.0):
        assert executor._counter.count(plan, Control()) == want > 0
        # Beside a host whose tree is quick, nobody writes down sums.
        with mock.patch.object(executor._counter, "_beside_host", True):
            assert executor._counter.expected(plan, True) is None
            with mock.patch.object(counter, "DEAR", 0.0):
                assert executor._counter.expected(plan, True) is not None


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


def _racing(executor: Any) -> Any:
    """A plan that takes about as long to go through the matches as to compile."""
    graph, label = graph_of(40, 160, 1)
    plan = make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting="always")
    return replace(plan, cost=executor.device.rates.intersected)


@EMULATED
@pytest.mark.parametrize("first", ["matches", "sums"])
def test_matches_and_sums_race(first: str) -> None:
    """Where to compile takes about as long as to go through the matches, both begin; who is done first answers."""
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor
        from graphdb.gpu.join.run import Join

        executor = GpuExecutor(0, memory_limit=1 << 30)
        plan, plain, ended = _racing(executor), Join.count, list[bool]()
        want = HOST.count(plan)

        def count(join: Any, plan: Any, control: Control, limit: int | None) -> int:
            ended.append(False)
            while first == "sums":
                compiler.set()
                control.check()  # raises once the sums are ready
            found = plain(join, plan, control, limit)
            ended[-1] = True
            return found

        with mock.patch.object(Join, "count", count), emulator.slow_compiler("nested") as compiler:
            assert executor.count(plan) == want
            assert ended == [first == "matches"]
            assert executor._counter.preparing(plan, True) == (first == "matches")
        executor._counter.wait_for_all()
        assert executor.describe(plan).startswith("cuda:0 by sums")
        assert executor.count(plan) == want


@EMULATED
def test_what_takes_much_longer_than_a_compiler_is_not_begun() -> None:
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor
        from graphdb.gpu.join.run import Join

        executor = GpuExecutor(0, memory_limit=1 << 30)
        plan = _racing(executor)
        plan = replace(plan, cost=1e3 * plan.cost)
        with mock.patch.object(Join, "count", side_effect=AssertionError):
            assert executor.count(plan) == HOST.count(plan)


@EMULATED
def test_a_search_that_is_counted_again_and_again_gives_way_to_sums() -> None:
    """The planner took the search, of a millisecond, for cheaper than to write down sums: 50 such counts are not."""
    graph, label = graph_of(64, 700, 6)
    sets = tuple(np.flatnonzero(np.arange(64) % 9 == i) for i in range(4))
    plan = make_plan(pattern_of(((0, 1), (1, 2), (2, 3)), label, sets), graph)
    assert (plan.counting, plan.tree) == (None, None)
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 30)
        want = executor.count(plan)
        assert want == HOST.count(plan) > 0
        known = executor._counter
        known.wait_for_all()
        plan = replace(plan)  # of which no run is known
        known.missed(plan, True, counter.OFTEN / 2)
        assert known.expected(plan, True) is None
        known.missed(plan, True, counter.OFTEN)
        known.missed(plan, True, counter.OFTEN)
        known.wait_for_all()
        assert known.expected(plan, True) is not None
        assert known.count(plan, Control()) == want
        timings_of(plan, True).rule_out("match")
        assert executor.count(plan) == want
        assert timings_of(plan, True).runs["count"] == 1


@EMULATED
def test_how_long_a_kernel_is_compiled_is_learned() -> None:

    square, tailed = ((0, 1), (1, 2), (2, 3), (3, 0)), ((0, 1), (1, 2), (2, 3), (3, 0), (3, 4))
    graph, label = graph_of(64, 700, 6)
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor

        known = GpuExecutor(0, memory_limit=1 << 30, hint="sums")._counter
        plans = [make_plan(pattern_of(edges, label), graph, counting="always") for edges in (square, tailed)]
        assert known.count(plans[0], Control()) == HOST.count(plans[0])
        factor, expected, summed = known.biases["compiler"].factor, known.expected(plans[1], True), plans[1].counting
        assert factor != 1.0
        assert expected is not None
        assert summed is not None
        parts = counter._looped(summed) - known._known
        assert parts
        assert expected.setup == pytest.approx(counter.COMPILING * factor * len(parts), rel=0.01)


@EMULATED
def test_parts_that_share_a_kernel_say_how_long_one_takes() -> None:
    """A path of six different vertices has more parts than shapes of them: fewer kernels are compiled than parts."""
    graph, label = graph_of(64, 700, 6)
    path = pattern_of(tuple((i, i + 1) for i in range(5)), label)
    plan = make_plan(path, graph, counting="always")
    assert plan.counting is not None
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor

        there = GpuExecutor(0, memory_limit=1 << 30, hint="sums")
        origins, known = there.device.code.origins, there._counter
        assert known.count(plan, Control()) == HOST.count(plan)
        assert 0 < origins["compiler"] < len(counter._looped(plan.counting))
        assert known.biases["compiler"].factor != 1.0


@EMULATED
def test_a_race_ends_with_its_timeout() -> None:
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor
        from graphdb.gpu.join.run import Join

        executor = GpuExecutor(0, memory_limit=1 << 30)
        plan = _racing(executor)

        def count(join: Any, plan: Any, control: Control, limit: int | None) -> int:
            while True:
                control.check()

        with mock.patch.object(Join, "count", count), emulator.slow_compiler("nested"):
            with pytest.raises(QueryTimeout):
                executor.count(plan, Control(timeout=0.05))
            assert executor._counter.preparing(plan, True)
        executor._counter.wait_for_all()
        assert executor.count(plan) == HOST.count(plan)


@EMULATED
def test_a_count_whose_sums_have_no_kernel_is_not_overtaken() -> None:
    """What is being got ready turns out not to be possible: the matches are gone through to the end, once."""

    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor
        from graphdb.gpu.join.run import Join

        executor = GpuExecutor(0, memory_limit=1 << 30)
        plan, plain, began = _racing(executor), Join.count, list[Control]()

        def count(join: Any, plan: Any, control: Control, limit: int | None) -> int:
            began.append(control)
            running.set()
            executor._counter.wait_for_all()
            control.check()
            return plain(join, plan, control, limit)

        def built(*_: Any) -> Any:
            running.wait(60)
            return counter._Unable(False)

        running = threading.Event()
        with mock.patch.object(counter.Counter, "_built", built), mock.patch.object(Join, "count", count):
            assert executor.count(plan) == HOST.count(plan)
        assert [type(control).__name__ for control in began] == ["UntilReady"]


@pytest.mark.parametrize(
    "edges",
    [((0, 1), (1, 2), (2, 3)), ((0, 1), (0, 2), (0, 3), (1, 2)), PATTERNS["4-cycle"], PATTERNS["diamond"]],
    ids=["path", "triangle with an edge", "4-cycle", "diamond"],
)
def test_what_a_join_is_expected_to_scan_leaves_out_lists_whose_lengths_are_counted(
    executor: Any, edges: Edges
) -> None:
    graph, label = graph_of(60, 240, 5)
    plan = make_plan(pattern_of(edges, label), graph, counting="never")
    last = executor.strategies.join._levels(plan, counting=True).levels[-1]
    before = plan.steps[-2].estimate
    assert (before <= scanned(plan, True) < plan.cost) == last.counts_rows
    assert scanned(plan, False) == plan.cost
