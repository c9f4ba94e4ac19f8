"""The choice between host and device, on a machine with an emulated one."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

import graphdb
from graphdb.common.errors import DeviceError, MemoryLimitError
from graphdb.execute.choose import ChoosingExecutor, _Known, choose_executor, open_device
from graphdb.execute.host import HostExecutor
from graphdb.execute.host_costs import HostCosts
from graphdb.gpu.probe import DeviceReport
from graphdb.plan.counting.tree import TreeCount
from graphdb.plan.executor import Control, Refused
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.strategy.ski_rental import ExpectedCost, StrategyTimings
from tests import emulator
from tests.execute.machines import TRIANGLE, machine, plan_of, rated
from tests.execute.test_host import REPEATABLE, complete, pattern
from tests.gpu.executors import EMULATED


@EMULATED
def test_a_device_gets_what_is_worth_it(device: None) -> None:
    opened: list[int] = []

    def opens() -> Any:
        opened.append(1)
        return rated(open_device(0))

    executor = ChoosingExecutor(HostExecutor(2), opens)
    small, large = plan_of(1e4), plan_of(1e10)
    assert executor.describe(small) == "cpu"
    assert not opened
    assert executor.count(small) == 336
    assert not opened
    assert executor.describe(large).startswith("cuda:0 by join; expected: cpu 57,145.9 ms, cuda:0 100.8 ms")
    assert sum(block.count for block in executor.run(large)) == executor.count(large) == 336
    assert executor.describe(small).startswith("cpu")
    assert opened == [1]


@EMULATED
def test_sums_are_compiled_while_the_host_counts(device: None) -> None:
    """No run waits for a compiler that takes for ever, and the first one after it is done goes by its kernel."""
    graph = complete(9)
    edges: list[tuple[int, int, Any, bool]] = [
        (0, 1, (1,), True),
        (1, 2, (1,), True),
        (2, 3, (1,), True),
        (0, 3, (1,), True),
    ]
    plan = make_plan(pattern(4, edges, REPEATABLE, count_only=True), graph, counting="always")
    assert plan.counting is not None
    # Counting takes the host 3 ms, it is thought, and going through matches takes all for ever.
    plan = replace(plan, cost=1e13, counting=replace(plan.counting, cost=3e5))
    there = open_device(0)
    executor = ChoosingExecutor(HostExecutor(1), lambda: there)
    executor._opened()
    want, on_host = executor.host.count(plan), []

    def counted(self: HostExecutor, plan: Any, control: Control | None = None) -> int:
        on_host.append(time.sleep(0.02))
        return want

    with emulator.slow_compiler("nested") as compiler, mock.patch.object(HostExecutor, "count", counted):
        for runs in range(1, 6):
            assert executor.describe(plan).startswith("cpu")
            assert executor.count(plan) == want
            assert len(on_host) == runs
        assert there._counter.preparing(plan, True)
        assert there.expected(plan, True).setup > 0.05
        compiler.set()
        there._counter.wait_for_all()
        assert executor.describe(plan).startswith("cuda:0 by sums")
        assert executor.count(plan) == want
        assert len(on_host) == runs


@EMULATED
def test_a_device_is_opened_when_it_was_missed_for_long_enough(device: None) -> None:
    executor, asked = ChoosingExecutor(HostExecutor(2), lambda: open_device(0)), 0
    while executor.describe(plan := plan_of(1e7)) == "cpu":  # 60 ms, it is thought, until runs tell
        assert executor.describe(plan) == "cpu"
        assert executor.count(plan) == 336
        asked += 1
        assert asked < 30
    assert asked >= 7
    assert executor.describe(plan).startswith("cuda:0")


@EMULATED
def test_counts_beyond_64_bits_are_the_hosts(device: None) -> None:
    """A device's sums end there; to go through so many matches instead would take for ever."""
    from graphdb.gpu.join.run import Join

    edges: list[tuple[int, int, Any, bool]] = [(i, i + 1, (1,), True) for i in range(9)]
    graph = complete(140)
    for more in ({"count_only": True}, {"outputs": ("a",), "duplicates": "count"}):
        plan = make_plan(pattern(10, edges, REPEATABLE, **more), graph, counting="always")
        assert plan.counting is not None
        plan = replace(plan, cost=1e13, counting=replace(plan.counting, cost=1e10))
        executor = ChoosingExecutor(HostExecutor(1), lambda: open_device(0, beside_host=True))
        counting = "outputs" not in more
        executor._opened()
        walked = mock.Mock(side_effect=AssertionError("the matches are gone through"))
        with mock.patch.multiple(Join, count=walked, run=walked):
            assert executor._chosen(plan, counting) is executor._device
            for _ in range(2):
                if counting:
                    assert executor.count(plan) == 140 * 139**9
                else:
                    (block,) = executor.run(plan)
                    assert block.matches is not None
                    assert block.matches.tolist() == [139**9] * 140
            assert executor._chosen(plan, counting) is executor.host


@EMULATED
def test_searches_without_a_bound_are_left_to_a_host_that_counts(device: None) -> None:
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), complete(8), counting="always")
    assert plan.counting is not None
    plan = replace(plan, cost=1e9, counting=replace(plan.counting, cost=1e8))
    executor = ChoosingExecutor(HostExecutor(2), lambda: open_device(0, beside_host=True))
    counter = "graphdb.gpu.counting.counter.Counter"
    with (
        mock.patch(f"{counter}.expected", return_value=None),  # it has no kernel for these sums
        mock.patch(f"{counter}.too_wide", return_value=True),
    ):
        executor._opened()
        assert executor.count(plan) == 336
        assert executor.describe(plan).startswith("cpu; expected: cpu 574.4 ms, cuda:0 inf ms")


@EMULATED
def test_a_device_is_weighed_against_sums_without_a_program(device: None) -> None:
    """The lists that matches would read fit by far: nobody writes what tells them one by one."""
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), complete(8), counting="always")
    assert plan.counting is not None
    plan = replace(plan, cost=1e12, counting=replace(plan.counting, cost=1e6))
    executor = ChoosingExecutor(HostExecutor(2), lambda: rated(open_device(0, beside_host=True)))
    opened = executor._opened()
    assert opened is not None
    with mock.patch.object(type(plan), "program", property(lambda plan: pytest.fail("it is written"))):
        assert executor.count(plan) == 336
        assert "expected: cpu 8.7 ms, cuda:0 " in executor.describe(plan)
    opened._counter.wait_for_all()


@EMULATED
def test_a_tree_count_stays_on_the_host(device: None) -> None:
    """A device walks along no trees: what it would go through, not what the host does, is weighed against these."""
    executor = ChoosingExecutor(HostExecutor(2), lambda: rated(open_device(0)))
    plan = replace(plan_of(1e12, count_only=True), tree=TreeCount((), cast(Any, None), 1e8))
    assert executor.describe(plan) == "cpu; expected: cpu 574.4 ms, cuda:0 10,000.8 ms"


@EMULATED
def test_what_must_be_copied_first_counts(device: None) -> None:
    executor = ChoosingExecutor(HostExecutor(2), lambda: open_device(0))
    executor.describe(plan_of(1e10))
    plan, device = plan_of(1e6), executor._device
    assert device is not None
    assert executor.describe(plan).startswith("cuda:0")
    device.device.rates = replace(device.device.rates, upload=1e3)
    assert executor.describe(plan).startswith("cpu")


@EMULATED
def test_what_runs_took_counts_more_than_what_was_expected(device: None) -> None:
    """A device that takes minutes for what it was thought to be quick at is not asked again."""
    executor = ChoosingExecutor(HostExecutor(2), lambda: open_device(0))
    plan = plan_of(1e10)
    for _ in range(3):
        assert executor.describe(plan).startswith("cuda:0")
        assert sum(block.count for block in executor.run(plan)) == 336
    timings = executor._known(plan, False).timings
    assert timings.runs == {"cuda:0": 3}
    timings.seconds["cuda:0"] = 200.0
    assert executor.describe(plan) == "cpu; expected: cpu 57,145.9 ms, cuda:0 200,000.0 ms (measured)"


def test_what_was_thought_small_is_watched_once_it_took_long() -> None:
    executor = ChoosingExecutor(HostExecutor(2), lambda: pytest.fail("no device is asked for"))
    executor._small = 1.0  # a busy machine takes long for little, too
    plan = plan_of(1.0)
    for _ in range(3):
        control = Control()
        assert sum(block.count for block in executor.run(plan, control)) == 336
    known = executor._known(plan, False)
    assert known.last is control
    assert not known.timings.runs
    control.seconds = 5.0
    assert sum(block.count for block in executor.run(plan)) == 336
    assert known.timings.runs == {"cpu": 2}


@EMULATED
@pytest.mark.parametrize("error", [DeviceError("it broke"), MemoryLimitError("it is full")])
def test_the_host_takes_over_and_says_so_once(device: None, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    executor = ChoosingExecutor(HostExecutor(2), lambda: open_device(0))
    plan = plan_of(1e10)
    from graphdb.gpu.join.run import Join

    broken = mock.Mock(side_effect=error)
    with caplog.at_level(logging.WARNING, "graphdb"), mock.patch.multiple(Join, count=broken, run=broken):
        for _ in range(2):
            assert executor.count(plan) == 336
            assert sum(block.count for block in executor.run(plan)) == 336
    assert [record.message for record in caplog.records] == [f"a query runs on the CPU instead: {error}"]


def endless(self: HostExecutor, plan: Any, control: Control | None = None) -> int:
    """A count that goes on until it is stopped."""
    while True:
        assert control is not None
        control.check()
        time.sleep(1e-3)


@EMULATED
@pytest.mark.parametrize(("cost", "opened"), [(1.0, True), (6e4, True), (1e6, False), (1.0, False)])
def test_a_host_that_takes_far_longer_than_expected_gives_way(device: None, cost: float, opened: bool) -> None:
    """Microseconds, or some milliseconds, were expected; the device is open, or is opened for that."""
    executor = ChoosingExecutor(HostExecutor(1), lambda: open_device(0))
    if opened:
        executor._opened()
    plan = plan_of(cost, count_only=True)
    assert executor.describe(plan).startswith("cpu")
    with mock.patch.object(HostExecutor, "count", endless):
        assert executor.count(plan, Control(timeout=60.0)) == 336
        assert executor.describe(plan).startswith("cuda:0")
        assert executor.count(plan, Control(timeout=60.0)) == 336


@EMULATED
def test_a_device_that_takes_far_longer_than_expected_gives_way(device: None) -> None:
    executor = ChoosingExecutor(HostExecutor(1), lambda: open_device(0))
    from graphdb.gpu.executor import GpuExecutor

    plan = plan_of(1e7, count_only=True)  # 0.1 s on the host
    executor._opened()
    with mock.patch.object(GpuExecutor, "count", endless):
        assert executor.describe(plan).startswith("cuda:0")
        assert executor.count(plan, Control(timeout=60.0)) == 336
        assert executor.describe(plan).startswith("cpu")


def test_what_enumerating_took_is_forgotten_when_sums_are_ready() -> None:
    known = _Known(0.5, StrategyTimings())
    for seconds in (0.3, 0.2, 0.2):
        known.timings.note("cuda:0", seconds)
    known.now_by("cuda:0", sums=False)
    assert known.timings.measured("cuda:0") == 0.2
    for _ in range(2):
        known.now_by("cuda:0", sums=True)
        assert known.timings.measured("cuda:0") is None
    for seconds in (0.2, 0.01, 0.01):
        known.timings.note("cuda:0", seconds)
    known.now_by("cuda:0", sums=True)
    assert known.timings.measured("cuda:0") == 0.01
    known.timings.rule_out("cuda:0")
    for sums in (False, True):
        known.now_by("cuda:0", sums=sums)
    assert known.timings.measured("cuda:0") == math.inf


def test_what_one_thread_takes_is_learned_apart_from_what_all_take() -> None:
    host = HostExecutor(2)
    costs, small, large = HostCosts(host), plan_of(host.inline_cost / 2), plan_of(host.inline_cost * 8)
    at_first = {name: costs.of(plan, True) for name, plan in (("small", small), ("large", large))}
    costs.note_count(small, at_first["small"] / 4, first=True)
    costs.note_count(plan_of(host.inline_cost / 20), 1.0, first=False)
    assert costs.of(small, True) == at_first["small"]
    for _ in range(30):
        costs.note_count(small, at_first["small"] / 4, first=False)
    assert costs.of(small, True) == pytest.approx(at_first["small"] / 4, rel=0.01)
    assert costs.of(large, True) == at_first["large"]
    for _ in range(30):
        costs.note_count(large, at_first["large"] * 3, first=True)
    assert costs.of(large, True) == pytest.approx(at_first["large"] * 3, rel=0.01)
    assert costs.of(small, True) == pytest.approx(at_first["small"] / 4, rel=0.01)


@EMULATED
def test_the_host_is_not_taken_for_slow_beside_a_compiler(device: None) -> None:
    from graphdb.gpu.executor import GpuExecutor

    executor, plan, host = ChoosingExecutor(HostExecutor(1), lambda: open_device(0)), plan_of(1.0, count_only=True), []

    def late(plan: Any, control: Control | None = None) -> int:
        host.append(time.sleep(2e-2))
        return 336

    executor._opened()
    count = executor.host.count
    with mock.patch.object(executor.host, "count", late):
        with mock.patch.object(GpuExecutor, "preparing", True):
            assert {executor.count(plan) for _ in range(6)} == {336}
        assert len(host) == 6
    assert executor._known(plan, True).timings.measured("cpu") is None
    assert executor.describe(plan).startswith("cpu")
    with mock.patch.object(executor.host, "count", late), mock.patch.object(GpuExecutor, "preparing", False):
        assert {executor.count(plan) for _ in range(3)} == {336}
    assert executor._known(plan, True).timings.measured("cpu") > 1e-2
    assert executor.host.count == count


@EMULATED
def test_sums_that_take_far_longer_than_expected_give_way_to_the_join(device: None) -> None:
    from graphdb.gpu.counting.counter import Counter

    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), complete(8), counting="always")
    assert plan.counting is not None
    plan = replace(plan, clique=None, cost=1e8, counting=replace(plan.counting, cost=1e3))
    there = open_device(0)
    with (
        mock.patch.object(Counter, "expected", return_value=ExpectedCost(1e-4)),
        mock.patch.object(Counter, "count", endless),
    ):
        there.costs.matching._log = -6.0  # joins were faster than expected: they are worth a turn
        timings = StrategyTimings()
        plan.cache["how", True] = timings
        timings.runs["match"] = 1
        assert set(there.costs.of(plan, True)) == {"match", "count"}
        assert there.count(plan, Control(timeout=60.0)) == 336
        assert timings.runs["match"] > 1


def test_without_a_device_nothing_is_stopped() -> None:
    with machine(DeviceReport(None, (), None, None, None)):
        executor = choose_executor("auto", threads=1)
        with mock.patch.object(HostExecutor, "count", endless), pytest.raises(graphdb.QueryTimeout):
            executor.count(plan_of(1.0), Control(timeout=0.2))


@EMULATED
@pytest.mark.parametrize(
    ("error", "open_after", "calls"),
    [(Refused("too large"), True, 2), (MemoryLimitError("it is full"), True, 3), (DeviceError("it is lost"), False, 1)],
)
def test_a_plan_that_is_refused_closes_no_device(device: None, error: Exception, open_after: bool, calls: int) -> None:
    """That plan stays on the host, others go to the device; one that is lost is closed.

    A count that found no memory begins again once.
    """
    executor = ChoosingExecutor(HostExecutor(2), lambda: open_device(0))
    first, second = plan_of(1e10), plan_of(1e10)
    from graphdb.gpu.join.run import Join

    broken = mock.Mock(side_effect=error)
    with mock.patch.multiple(Join, count=broken, run=broken):
        for _ in range(3):
            assert executor.count(first) == sum(block.count for block in executor.run(first)) == 336
        assert broken.call_count == calls
    assert executor.describe(first).startswith("cpu")
    assert executor.describe(second).startswith("cuda:0") == open_after
    with mock.patch.object(HostExecutor, "count", side_effect=AssertionError("on the host")):
        if open_after:
            assert executor.count(second) == 336


@EMULATED
@pytest.mark.parametrize(
    ("status", "kind"), [(1, Refused), (701, Refused), (2, MemoryLimitError), (700, DeviceError), (719, DeviceError)]
)
def test_what_cuda_says_is_told_apart(device: None, status: int, kind: type[Exception]) -> None:
    from graphdb.gpu.code.launch import faults

    with pytest.raises(DeviceError if kind is Refused else kind) as raised, faults("cuda:0"):
        raise emulator.Failure("it failed", status)
    assert type(raised.value) is kind


@EMULATED
def test_a_caller_who_stops_a_run_stops_it(device: None) -> None:
    """An error that is not the device's is nobody's reason to begin again."""
    executor = ChoosingExecutor(HostExecutor(2), lambda: open_device(0))
    with pytest.raises(graphdb.QueryTimeout):
        executor.count(plan_of(1e10), Control(timeout=-1.0))


@EMULATED
def test_a_database_on_a_device(device: None, tmp_path: Path) -> None:
    data = tmp_path / "people.nt"
    people = [(a, b) for a in range(6) for b in range(6) if a != b]
    data.write_text("".join(f"<p:{a}> <p:knows> <p:{b}> .\n" for a, b in people))
    triangle = "MATCH (a)-[:<p:knows>]->(b)-[:<p:knows>]->(c)-[:<p:knows>]->(a)"
    wanted = []
    for where in ("cpu", "cuda"):
        with graphdb.connect(device=where) as db:
            db.load(data)
            wanted.append(db.query(f"{triangle} RETURN a, count(*) AS n ORDER BY n, id(a)").fetchall())
            report = str(db.query(f"PROFILE {triangle} RETURN a").fetchall())
            assert ("match on cuda:0 by join" in report) == (where == "cuda")
    assert wanted[0] == wanted[1]
    assert len(wanted[0]) == 6
