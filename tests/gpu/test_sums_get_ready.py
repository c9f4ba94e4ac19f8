"""When a device counts by sums: what it expects of them, and how their kernels are got ready beside queries."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.gpu import costs
from graphdb.gpu.costs import scanned, timings_of
from graphdb.gpu.counting import counter
from graphdb.plan.checks import IsCandidate
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from tests import emulator
from tests.gpu.executors import EMULATED
from tests.gpu.patterns import HOST, PATTERNS, Edges, executor, graph_of, pattern_of

__all__ = ["executor"]


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
    meanwhile = executor._counter.expected(plan, True)
    if not meanwhile.setup:  # what a thread compiled is there by now, so that nothing is left for the background
        meanwhile = replace(meanwhile, in_background=before.in_background)
    assert replace(meanwhile, setup=before.setup) == before
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
def test_cliques_that_are_joined_are_overtaken_by_their_kernel() -> None:
    """A join of cliques may take many times as long as is expected: it ends once their kernel is compiled."""
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor
        from graphdb.gpu.join.run import Join
        from graphdb.gpu.overtaking import Overtaken

        executor, overtaken = GpuExecutor(0, memory_limit=1 << 30), list[str]()
        graph, label = graph_of(60, 900, 1)
        plan = make_plan(pattern_of(tuple(combinations(range(4), 2)), label), graph)
        want = HOST.count(plan)

        def count(join: Any, plan: Any, control: Control, limit: int | None) -> int:
            compiler.set()
            try:
                while True:
                    control.check()  # raises once the kernel is there
            except Overtaken as stopped:
                overtaken.append(stopped.by)
                raise

        with mock.patch.object(Join, "count", count), emulator.slow_compiler("clique") as compiler:
            assert executor.count(plan, Control(timeout=60)) == want
        assert overtaken == ["sums"]
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
        parts = counter._looped(summed) - known._known.keys()
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


def test_what_is_only_measured_says_nothing_of_what_a_device_takes(executor: Any) -> None:
    """A join is due to be measured, which is expected to take longer than the sums: the device is as quick as before."""
    graph, label = graph_of(40, 160, 1)
    plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="always")
    executor.count(plan)
    executor._counter.wait_for_all()
    timings = timings_of(plan, True)
    timings.forget("match")
    for _ in range(10_000):
        timings.note("count", 1e-3)
    costs = executor.costs.of(plan, True)
    assert timings.choose(costs) == "match"
    assert executor.expected(plan, True) == costs["count"]
    assert " by sums" in executor.describe(plan)
    control = Control()
    executor.count(plan, control)
    assert control.disturbed


def test_sums_of_a_new_plan_are_got_ready_first_though_their_kernels_are_there(executor: Any) -> None:
    """Which takes as long as a small count elsewhere: it is expected, and learned; no thread is begun for it."""
    graph, label = graph_of(40, 160, 1)
    plans = [make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="always") for _ in range(2)]
    counter = executor._counter
    want = counter.count(plans[0], Control())
    expected = counter.expected(plans[1], True)
    assert 0.0 < expected.setup < counter._compile_seconds / 10
    assert not expected.in_background
    assert counter.begin(plans[1], True, 1.0) is None
    counter.missed(plans[1], True, 1.0)
    assert not counter.busy
    before = counter._readying.factor
    assert counter.count(plans[1], Control()) == want
    assert counter._readying.factor != before
    assert counter.expected(plans[1], True).setup == 0.0


def test_lists_of_candidates_alone_are_expected_to_be_shorter(executor: Any) -> None:
    """A join leaves out what is no candidate before it begins, and counts such a list by its length."""
    graph, label = graph_of(5000, 40_000, 6)
    sets = tuple(np.flatnonzero(np.arange(5000) % 4 == i) for i in range(4))
    plan = make_plan(pattern_of(((0, 1), (1, 2), (2, 3)), label, sets), graph, counting="never")
    assert any(isinstance(check, IsCandidate) for step in plan.steps for check in step.checks)
    levels = executor.strategies.join._levels(plan, counting=True).levels
    with mock.patch.object(costs, "NARROWED", 0.0):
        assert levels[-1].counts_rows
        assert plan.steps[-2].estimate <= scanned(plan, True) < scanned(plan, False) < plan.cost / 2
    with mock.patch.object(costs, "NARROWED", math.inf):
        assert scanned(plan, True) == plan.cost


def test_sums_that_a_caller_stopped_give_way_to_matches(executor: Any) -> None:
    """They were expected to take less; the next run would end there again."""
    graph, label = graph_of(40, 160, 1)
    plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="always")
    want = executor.count(plan)
    executor._counter.wait_for_all()
    executor.count(plan)
    again = replace(plan, cost=executor.device.rates.intersected / 10)
    assert set(executor.costs.of(again, True)) == {"count"}

    def late(*_: Any) -> int:
        time.sleep(0.2)
        raise QueryTimeout("it took too long")

    with mock.patch.object(executor._counter, "count", late), pytest.raises(QueryTimeout):
        executor.count(again)
    found = executor.costs.of(again, True)
    assert timings_of(again, True).quickest(found) == "match"
    assert executor.count(again) == want


def test_a_join_that_ran_is_prepared(executor: Any) -> None:
    """What is written and copied for its steps is expected of the first run alone."""
    graph, label = graph_of(40, 160, 1)
    plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="never")
    before = executor.costs.of(plan, True)["match"].setup
    executor.count(plan)
    assert before >= costs.LEVEL * len(plan.steps) > executor.costs.of(plan, True)["match"].setup
