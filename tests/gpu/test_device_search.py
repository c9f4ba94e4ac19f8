"""The depth-first search on a device, real or emulated, where random patterns seldom go: shared intersections, long lists."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.common.errors import DeviceError, MemoryLimitError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.gpu.executors import SMALL, WHERE
from tests.gpu.patterns import EXAMPLES, PATTERNS, graph_of, pattern_of
from tests.gpu.test_executors import check
from tests.oracle.strategies import Case, cases
from tests.oracle.test_symmetry import symmetric_cases

HOST = HostExecutor(1)
CLIQUE = tuple(combinations(range(5), 2))


@pytest.fixture(params=WHERE)
def devices(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What makes a device's executor."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed(together=2))
        from graphdb.gpu.executor import GpuExecutor

        yield lambda: GpuExecutor(0, memory_limit=1 << 30, hint="search")


def searching(devices: Any, **sizes: Any) -> Any:
    """An executor that searches, with pieces of the given sizes."""
    from graphdb.gpu.search.run import Search

    executor = devices()
    executor.strategies.by_name["search"] = Search(executor.device, executor.graph, **sizes)
    return executor


@pytest.mark.parametrize("motion", [True, False])
@pytest.mark.parametrize("name", ["4-wheel", "5-clique minus an edge", "5-clique"])
def test_shared_intersections(devices: Any, name: str, motion: bool) -> None:
    """Lists longer than a batch, intersections that are kept while several steps read them; rows and counts."""
    graph, label = graph_of(44, 420, 1)
    pattern = pattern_of({**PATTERNS, "5-clique": CLIQUE}[name], label)
    counting = make_plan(pattern, graph, counting="never")
    assert len(counting.program.shares) > 0
    executor = searching(devices, motion=motion, **{**SMALL["search"], "least": 40})
    assert executor.count(replace(counting, clique=None)) == HOST.count(replace(counting, clique=None)) > 0


@pytest.mark.parametrize("pool_rows", [8, 1 << 12])
def test_partial_matches_are_dealt_out_anew(devices: Any, pool_rows: int) -> None:
    """Those that have no room in the pool are searched at once."""
    graph, label = graph_of(30, 140, 5)
    counting = make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting="never")
    executor = searching(devices, **{**SMALL["search"], "depth": 3, "pool_rows": pool_rows, "unroll": 32})
    assert executor.count(counting) == HOST.count(counting) > 0


def many_rows() -> Any:
    """A plan of some hundred rows."""
    graph, label = graph_of(30, 140, 2)
    pattern = replace(pattern_of(PATTERNS["diamond"], label), outputs=("v0", "v1", "v2", "v3"), count_only=False)
    return make_plan(pattern, graph)


def rows_of(blocks: Any) -> list[tuple[int, ...]]:
    return [row for block in blocks for row in zip(*(cells.tolist() for cells in block.columns.values()), strict=True)]


@pytest.mark.parametrize("start", ["count", "run"])
def test_another_run_while_rows_are_read(devices: Any, start: str) -> None:
    """The rows of the first go to the host before the second starts, and none is lost or comes twice."""
    plan = many_rows()
    executor = searching(devices, **SMALL["search"])
    want = sorted(rows_of(HOST.run(plan)))
    first = executor.run(plan)
    found = rows_of([next(first)])
    (queue,) = executor.strategies._reading
    assert (executor.count(plan) if start == "count" else len(rows_of(executor.run(plan)))) == len(want)
    assert next(queue._blocks, None) is None  # its kernel has ended
    assert sorted(found + rows_of(first)) == want
    assert not executor.strategies._reading


def test_rows_that_are_too_many_to_wait_are_an_error_for_the_other_run(devices: Any) -> None:
    plan = many_rows()
    executor = searching(devices, **SMALL["search"])
    want = sorted(rows_of(HOST.run(plan)))
    first = executor.run(plan, Control(buffer_bytes=64))
    found = rows_of([next(first)])
    with pytest.raises(MemoryLimitError, match=r"more than 64 bytes\nhint: read that result to its end"):
        executor.count(plan)
    assert sorted(found + rows_of(first)) == want
    assert executor.count(plan) == len(want)


def test_a_run_that_stops_while_rows_are_taken_leaves_them_to_their_reader(devices: Any) -> None:
    plan = many_rows()
    executor = searching(devices, **SMALL["search"])
    want = sorted(rows_of(HOST.run(plan)))
    first = executor.run(plan)
    found = rows_of([next(first)])
    (queue,) = executor.strategies._reading
    blocks, going = queue._blocks, threading.Event()
    queue._blocks = (going.wait() and block for block in blocks)
    with pytest.raises(QueryTimeout):
        executor.count(plan, Control(timeout=0.02))
    going.set()
    assert sorted(found + rows_of(first)) == want


def test_a_search_that_fails_while_rows_are_taken_fails_for_its_reader(devices: Any) -> None:
    def broken() -> Iterator[Any]:
        raise DeviceError("it broke")
        yield

    plan = many_rows()
    executor = searching(devices, **SMALL["search"])
    first = executor.run(plan)
    next(first)
    executor.strategies._reading[0]._blocks = broken()
    assert executor.count(plan) == HOST.count(plan)
    with pytest.raises(DeviceError, match="it broke"):
        rows_of(first)


ONE_TASK: dict[str, Any] = {"pieces": 1, "least": 1 << 20, "most": 2, "left": 2}
"""All work is one warp's, to begin with."""


@pytest.mark.parametrize(("steal", "depth"), [("off", 0), ("within", 0), ("across", 2)])
def test_work_is_stolen(devices: Any, steal: str, depth: int) -> None:
    """Who has nothing takes from who has all, intersections included, and matches are found once."""
    graph, label = graph_of(44, 420, 1)
    plan = make_plan(pattern_of(PATTERNS["5-clique minus an edge"], label), graph, counting="never")
    executor = searching(devices, steal=steal, depth=depth, **ONE_TASK)
    assert executor.count(plan) == HOST.count(plan) > 0
    within, across = executor.strategies.by_name["search"].stolen
    assert (within > 0, across > 0) == (steal != "off", steal == "across")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["4-wheel", "5-clique minus an edge", "4-cycle"])
def test_a_hub_is_shared_by_the_device(name: str) -> None:
    """One vertex has all edges: counts and rows agree, and blocks give each other work."""
    from graphdb.gpu.executor import GpuExecutor

    graph, label = graph_of(200, 4000, 3)
    pattern = pattern_of(PATTERNS[name], label)
    first = replace(pattern.vertices[0], candidates=np.array([7]))
    pattern = replace(pattern, vertices=(first, *pattern.vertices[1:]))
    executor = searching(lambda: GpuExecutor(0, hint="search"), steal="across", pieces=1, least=1 << 20, depth=0)
    plan = make_plan(pattern, graph, counting="never")
    assert executor.count(plan) == HOST.count(plan) > 0
    within, across = executor.strategies.by_name["search"].stolen
    assert within > 0
    assert across > 0
    outputs = tuple(vertex.name for vertex in pattern.vertices)
    rows = make_plan(replace(pattern, outputs=outputs, count_only=False), graph)
    assert sum(block.count for block in executor.run(rows)) == HOST.count(plan)


def test_rows_leave_through_the_ring(devices: Any) -> None:
    graph, label = graph_of(30, 140, 2)
    pattern = replace(pattern_of(PATTERNS["diamond"], label), outputs=("v0", "v1", "v2", "v3"), count_only=False)
    plan = make_plan(pattern, graph)
    found, want = (
        Counter(
            row for block in run for row in zip(*(block.columns[name].tolist() for name in plan.outputs), strict=True)
        )
        for run in (searching(devices, **SMALL["search"]).run(plan), HOST.run(plan))
    )
    assert found == want


def test_memory_goes_back_to_the_driver_unless_a_kernel_waits_for_its_reader(devices: Any) -> None:
    """The driver waits for all kernels before it takes memory: while one waits for the host, for good; else at once."""
    plan, executor = many_rows(), searching(devices, **SMALL["search"])
    memory = executor.device.memory
    with mock.patch.object(memory.slabs, "drop", side_effect=memory.slabs.drop) as given_back:
        for _ in range(2):
            first = executor.run(plan)
            next(first)
            memory.evict(None)
            assert memory.streaming
            assert not given_back.called
            assert len(rows_of(first)) > 0
            memory.evict(None)
            assert not memory.streaming
            assert given_back.called
            given_back.reset_mock()


@pytest.mark.parametrize("mode", list(MatchMode))
@EXAMPLES
@given(case=cases(), layer=st.sampled_from(["direct", "hashed", "spans"]), dtype=st.sampled_from([np.int32, np.int64]))
def test_each_mode(devices: Any, mode: MatchMode, case: Case, layer: Any, dtype: Any) -> None:
    """Random graphs and patterns: rows and counts are the oracle's."""
    clauses = tuple(replace(clause, mode=mode) for clause in case.pattern.clauses)
    pattern = replace(case.pattern, clauses=clauses)
    graph = DataGraph(case.source, dtype=dtype, layer=layer)
    check(replace(case, pattern=pattern), graph, searching(devices, **SMALL["search"]))


@EXAMPLES
@given(case=symmetric_cases(), limit=st.one_of(st.none(), st.integers(0, 12)))
def test_symmetric_patterns_and_limits(devices: Any, case: Case, limit: int | None) -> None:
    check(case, DataGraph(case.source), searching(devices, **SMALL["search"]), limit)


def test_lists_that_are_too_long_to_count_in_32_bits_are_joined(devices: Any) -> None:
    """No graph so large is made here: one entry less is allowed instead."""
    from graphdb.gpu.search import run as search

    graph, label = graph_of(30, 140, 2)
    plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="never")
    executor = devices()
    assert executor.strategies.of(plan).name == "search"
    with mock.patch.object(search, "LONGEST", graph.partition((label,), "both").max_degree):
        assert executor.strategies.of(plan).name == "join"
        assert executor.count(plan) == HOST.count(plan)


@pytest.mark.gpu
def test_the_ring_goes_round() -> None:
    """More matches than the ring holds: the kernel waits for the host."""
    from graphdb.gpu.executor import GpuExecutor

    graph, label = graph_of(200, 4000, 3)
    pattern = replace(pattern_of(PATTERNS["4-cycle"], label), outputs=("v0", "v1", "v2", "v3"), count_only=False)
    plan = make_plan(pattern, graph)
    executor = searching(lambda: GpuExecutor(0, hint="search"), block_rows=1 << 10, blocks=4)
    rows = sum(block.count for block in executor.run(plan))
    counting = make_plan(replace(pattern, outputs=(), count_only=True), graph, counting="never")
    assert rows == HOST.count(counting) > 1 << 16


@pytest.mark.gpu
def test_a_timeout_stops_a_search() -> None:
    from graphdb.gpu.executor import GpuExecutor

    graph, label = graph_of(2000, 400_000, 4)
    plan = make_plan(pattern_of(tuple((i, i + 1) for i in range(7)), label), graph, counting="never")
    executor = GpuExecutor(0, hint="search")
    with pytest.raises(QueryTimeout):
        executor.count(plan, Control(timeout=0.3))
    small = make_plan(pattern_of(PATTERNS["diamond"], label), graph_of(40, 160, 1)[0], counting="never")
    assert executor.count(small) >= 0  # and the device goes on


def test_a_search_stops_while_its_kernel_is_compiled(devices: Any) -> None:
    """The compiler goes on, but nobody waits for it; who asks again finds what it has made."""
    from graphdb.gpu.code.machine_code import MachineCode

    graph, label = graph_of(20, 60, 9)
    plan = make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting="never")
    executor, slow, begun, compiled = searching(devices), threading.Event(), [], threading.Event()
    plain = MachineCode._compile

    def compile(code: Any, source: Any, compilation: Any) -> None:
        begun.append(source.name)
        slow.wait(60)
        plain(code, source, compilation)
        compiled.set()

    code = executor.device.code  # whatever earlier tests compiled is not looked for
    with mock.patch.object(MachineCode, "_compile", compile), mock.patch.object(code, "disk", None):
        for seconds in (0.5, 0.05):  # the first gives all else that it needs to the device
            with pytest.raises(QueryTimeout):
                executor.count(plan, Control(timeout=seconds))
        assert not compiled.is_set()
        slow.set()
        assert compiled.wait(60)
    assert executor.count(plan) == HOST.count(plan)
    assert begun == ["search"]
