"""Devices, real or emulated: memory that stays flat, copies that are freed, stopping, several threads."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.common.errors import ExecutionError, MemoryLimitError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.gpu import stream
from graphdb.gpu.code.launch import Module
from graphdb.gpu.join import run as join_run
from graphdb.pattern.graph import PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.execute.test_host import REPEATABLE, complete, pattern
from tests.gpu.executors import EXECUTORS, opened
from tests.gpu.mirror import MirrorExecutor

PATH: list[tuple[int, int, Any, bool]] = [(0, 1, (1,), True), (1, 2, (1,), True)]
TRIANGLE: list[tuple[int, int, Any, bool]] = [*PATH, (0, 2, (1,), True)]


@pytest.fixture(params=[name for name in EXECUTORS if name.id != "host"])
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request.param) as found:
        yield found


def cells(device: Any) -> int:
    gc.collect()
    device.device.memory.evict(0)  # pages that nobody reads go back
    return int(device.device.memory.used_bytes)


def random_graph(vertices: int, edges: int) -> DataGraph:
    rng = np.random.default_rng(7)
    s, o = rng.integers(0, vertices, (2, edges))
    return DataGraph(ArraySource(s, np.ones(edges), o, vertices))


@contextmanager
def copies_that_last() -> Iterator[list[int]]:
    """Have no copy of rows to the host be done before somebody waits for it; yields the rows of those that were begun."""
    send, begun = stream._send, list[int]()

    def sent(*given: Any) -> Any:
        copy = send(*given)
        begun.append(copy.rows)
        copy.done = SimpleNamespace(done=False, synchronize=copy.done.synchronize)
        return copy

    with mock.patch.object(stream, "_send", sent):
        yield begun


def test_a_mirror_agrees(device: Any) -> None:
    mirror = MirrorExecutor(HostExecutor(1), device)
    graph = random_graph(40, 300)
    for edges in (PATH, TRIANGLE):
        plan = make_plan(pattern(3, edges), graph)
        assert sum(block.count for block in mirror.run(plan)) == mirror.count(plan) > 0
        assert sum(block.count for block in mirror.run(plan, Control(limit=5))) == 5


@pytest.mark.parametrize(
    ("slots", "few", "once"), [(1 << 12, 1 << 16, True), (1 << 7, 1 << 16, False), (1 << 12, 0, False)]
)
def test_equal_rows_leave_the_device_once(device: Any, slots: int, few: int, once: bool) -> None:
    """All that its table has room for at a time; as they are, where the first rows show that most of them differ."""
    from graphdb.gpu.join import distinct

    plan = make_plan(pattern(3, PATH, REPEATABLE, outputs=("a", "c"), duplicates="count"), random_graph(40, 300))
    assert plan.row_steps == len(plan.steps)
    want, found, rows = Counter[tuple[int, int]](), Counter[tuple[int, int]](), 0
    for executor, counts in ((HostExecutor(1), want), (device, found)):
        with mock.patch.object(distinct, "SLOTS", slots), mock.patch.object(distinct, "MIN_SAMPLE", few):
            for block in executor.run(plan):
                rows = 0 if counts is want else rows + block.count
                for *row, number in zip(
                    *(cells.tolist() for cells in block.columns.values()), block.matches.tolist(), strict=True
                ):
                    counts[tuple(row)] += number
    assert found == want
    assert rows == len(want) if once else rows >= len(want)  # where pieces are large, all are the first


def test_a_mirror_detects_a_difference(device: Any) -> None:
    class Forgetful(HostExecutor):
        def count(self, plan: Any, control: Any = None) -> int:
            return super().count(plan, control) - 1

    plan = make_plan(pattern(3, TRIANGLE), complete(5))
    with pytest.raises(AssertionError, match="cuda:0"):
        MirrorExecutor(device, Forgetful(1)).count(plan)


def test_rows_come_in_the_same_order_whatever_the_pieces(device: Any) -> None:
    plan = make_plan(pattern(3, TRIANGLE), random_graph(30, 250))
    first, second = ([block.columns["c"].copy() for block in device.run(plan)] for _ in range(2))
    assert np.array_equal(np.concatenate(first), np.concatenate(second))


@pytest.mark.skipif(emulator.COMPILER is None, reason="no C++ compiler to emulate the device with")
def test_rows_are_found_while_others_are_copied() -> None:
    """As many blocks are under way as there is room for, and each is what it was when it arrives."""
    plan, waits = make_plan(pattern(3, PATH), random_graph(40, 300)), list[int]()

    with opened("emulated-join") as device:
        want = np.concatenate([block.columns["c"].copy() for block in device.run(plan)])
        with copies_that_last() as begun:
            found = []
            for block in device.run(plan):
                waits.append(len(begun) - len(found))
                found.append(block.columns["c"].copy())
    assert waits[0] == len(begun) > 10, "copies that last leave the device at work"
    assert np.array_equal(np.concatenate(found), want)


def test_rows_of_each_step_are_the_hosts(device: Any) -> None:
    plan = make_plan(pattern(3, TRIANGLE), random_graph(30, 250))
    host, here = Control(), Control()
    for executor, control in ((HostExecutor(1), host), (device, here)):
        for _ in executor.run(plan, control):
            pass
    assert host.rows.tolist() == here.rows.tolist()
    assert here.seconds > 0


def test_many_small_queries_leave_nothing(device: Any, request: pytest.FixtureRequest) -> None:
    """Flat after the first: what a run takes goes back, and what is kept is kept once."""
    many = 10_000 if request.node.get_closest_marker("gpu") else 60
    graph = random_graph(30, 200)
    plans = [make_plan(pattern(3, edges, REPEATABLE), graph) for edges in (PATH, TRIANGLE)]
    for plan in plans:
        device.count(plan)
    before = cells(device)
    for i in range(many):
        plan = plans[i % 2]
        assert device.count(plan) > 0
        if i % 20 == 0:
            assert sum(block.count for block in device.run(plan)) > 0
            run = device.run(plan)
            next(run)
            run.close()
    assert cells(device) == before


@pytest.mark.parametrize("counting", [False, True], ids=["rows", "count"])
@pytest.mark.parametrize("name", [name for name in EXECUTORS if name.id in ("emulated-join", "cuda-join")])
def test_peak_memory_does_not_grow_with_the_number_of_matches(name: str, counting: bool) -> None:
    """Once pieces are full there are only more of them: eight times the matches and more take no byte more.

    The pool gives nothing back while a run goes on: what it has afterwards, less the lists, is the most of the run's own.
    How many blocks of rows are on their way to the host is a matter of time, up to a bound: here it is always as many.
    """
    real = name.startswith("cuda")
    edges = PATH if not counting else [*PATH, (2, 3, (1,), True)]
    small, large = ((150, 300) if counting else (300, 600)) if real else (10, 20)
    most, matches, sizes = [], [], []
    for vertices in (small, large):
        plan = make_plan(
            pattern(len(edges) + 1, edges, REPEATABLE, count_only=counting), complete(vertices), counting="never"
        )
        memory = 1 << 26 if real else 1 << 24
        ahead = mock.patch.object(join_run, "AHEAD", 1 << 23 if real else 1 << 10)  # less than the rows of either graph
        with opened(name, memory) as executor, executor.device.memory.current(), copies_that_last(), ahead:
            matches.append(executor.count(plan) if counting else sum(block.count for block in executor.run(plan)))
            lists = sum(each.offsets.nbytes + each.neighbours.nbytes for each in plan.partitions)
            most.append(int(executor.device.memory.pool.total_bytes()) - lists)
            sizes.append(lists)
    assert matches == [n * (n - 1) ** len(edges) for n in (small, large)]
    # The first level has a row for each edge, some 40 bytes beside the 4 of the lists; all matches would take gigabytes.
    allowed = 10 * (sizes[1] - sizes[0]) if real else most[0] // 20
    assert 0 < most[1] <= most[0] + allowed, (most, sizes)


def test_copies_go_with_the_graph(device: Any) -> None:
    empty = cells(device)
    plan = make_plan(pattern(3, TRIANGLE), random_graph(30, 200))
    assert device.costs.missing_bytes(plan) > 0
    device.count(plan)
    assert device.costs.missing_bytes(plan) == 0
    assert cells(device) > empty
    del plan
    assert cells(device) == empty


def test_prepared_counts_go_with_the_plan(device: Any) -> None:
    """What is ready to count, the ranked lists that it reads, and weights; and with candidates what is made of them."""
    empty = cells(device)
    square: list[tuple[int, int, Any, bool]] = [*PATH, (2, 3, (1,), True), (0, 3, (1,), True), (3, 4, (1,), True)]
    for seed in range(3):
        graph = random_graph(30 + seed, 200)
        wanted = pattern(5, square, REPEATABLE, count_only=True)
        some = PatternVertex("some", np.arange(0, 30, 2))
        plan = make_plan(replace(wanted, vertices=(*wanted.vertices[:4], some)), graph, counting="always")
        assert plan.counting is not None
        for _ in range(2):
            assert device._counter.count(plan, Control()) == HostExecutor(1).count(plan)
        assert cells(device) > empty
        del plan, graph, some
        assert cells(device) == empty


def test_copies_make_room_for_a_run(device: Any) -> None:
    memory = device.device.memory
    plan = make_plan(pattern(3, TRIANGLE), random_graph(30, 200))
    device.count(plan)
    assert memory.cached_bytes > 0
    with device.device.active():
        large = memory.empty(memory.budget - 64, np.uint8)
        assert memory.cached_bytes == 0
        with pytest.raises(MemoryLimitError, match="on the device"):
            memory.empty(memory.budget, np.uint8)
        del large
    assert device.count(plan) == HostExecutor(1).count(plan)


def test_a_budget_that_is_reached_takes_back_what_is_not_used_and_no_garbage_is_collected(device: Any) -> None:
    """A collection takes longer than most runs, beside a large graph; and what has no use goes before copies do."""
    memory = device.device.memory
    plan = make_plan(pattern(3, TRIANGLE), random_graph(30, 200))
    device.count(plan)
    cached = memory.cached_bytes
    with device.device.active(), mock.patch.object(gc, "collect") as collected:
        for number in range(3):  # none has room in what the one before leaves
            held = memory.empty(memory.budget // 2 + 4096 * number, np.uint8)
            del held
        assert memory.cached_bytes == cached
        with pytest.raises(MemoryLimitError, match="on the device"):
            memory.empty(memory.budget + 1, np.uint8)
        assert memory.pool.total_bytes() <= memory.budget
    assert not collected.called
    assert device.count(plan) == HostExecutor(1).count(plan)


def endless(vertices: int) -> Any:
    """A plan with some 10^17 matches, none of which can be counted without going there."""
    edges = [(i, i + 1, (1,), False) for i in range(7)]
    return make_plan(pattern(8, edges, count_only=True), complete(vertices), counting="never")


@contextmanager
def stopped_at(turn: int, stop: Callable[[], None]) -> Iterator[tuple[list[str], list[int]]]:
    """Call ``stop`` where a run asks for the so-manieth time whether it is to go on; yields what is launched, and how much
    had been each time that it asked.  It ends within half a second of that.
    """
    plain_launch, plain_check, launched, asked = Module.launch, Control.check, list[str](), list[int]()
    begun: list[float] = []

    def launch(module: Any, kernel: str, *given: Any, **more: Any) -> Any:
        launched.append(kernel)
        return plain_launch(module, kernel, *given, **more)

    def check(control: Control) -> None:
        asked.append(len(launched))
        if len(asked) == turn:
            begun.append(time.monotonic())
            stop()
        plain_check(control)

    with mock.patch.object(Module, "launch", launch), mock.patch.object(Control, "check", check):
        try:
            yield launched, asked
        finally:
            ended = time.monotonic()
    assert ended - begun[0] < 0.5


def test_a_timeout_stops_a_count(device: Any) -> None:
    """Of so many matches none would ever be the last: that it ends says that what runs is stopped, not waited for."""
    plan, passed = endless(200), list[float]()
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(passed))
    with (
        mock.patch("graphdb.plan.executor.time", clock),
        stopped_at(20, lambda: passed.append(1e6)) as (launched, asked),
        pytest.raises(QueryTimeout),
    ):
        device.count(plan, Control(timeout=1e5))
    assert len(asked) == 20
    assert len(launched) == asked[-1] > 0, "nothing is launched after it"


def test_cancelling_stops_a_run_within_half_a_second(device: Any) -> None:
    """As soon as it asks, which it does while a kernel runs, too."""
    plan = endless(200)
    cancelled = threading.Event()
    with (
        stopped_at(20, cancelled.set) as (launched, asked),
        pytest.raises(ExecutionError, match="interrupted"),
    ):
        device.count(plan, Control(cancelled=cancelled))
    assert len(asked) == 20
    assert len(launched) == asked[-1] > 0
    assert device.count(make_plan(pattern(3, TRIANGLE), complete(5))) == 60


def test_progress_grows_to_one(device: Any) -> None:
    seen: list[float] = []
    plan = make_plan(pattern(3, TRIANGLE), complete(30))
    for _ in device.run(plan, Control(progress=seen.append)):
        pass
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


def test_threads_share_a_device(device: Any) -> None:
    graph = random_graph(30, 250)
    plans = [make_plan(pattern(3, edges), graph) for edges in (PATH, TRIANGLE)]
    wanted = [HostExecutor(1).count(plan) for plan in plans]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(5):
            found = sum(block.count for block in device.run(plans[i % 2]))
            if found != wanted[i % 2]:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_caller_may_keep_every_block(device: Any) -> None:
    """Blocks stay what they were, also those beyond the page-locked memory that a caller may hold."""
    plan = make_plan(pattern(3, PATH), complete(30))
    blocks = list(device.run(plan, Control(buffer_bytes=1000)))
    found = {row for block in blocks for row in zip(*(block.columns[n].tolist() for n in "abc"), strict=True)}
    assert len(found) == sum(block.count for block in blocks) == 30 * 29 * 28 + 30 * 29


def test_page_locked_memory_goes_back(device: Any) -> None:
    """Rows are in it as long as a caller has them."""
    memory, plan = device.device.memory, make_plan(pattern(3, PATH), complete(30))
    for _ in device.run(plan):  # what stays for other runs
        pass
    gc.collect()
    before = memory.pinned_bytes
    blocks = list(device.run(plan))
    lent = sum(column.nbytes for block in blocks for column in block.columns.values())
    assert memory.pinned_bytes >= before + lent > before
    del blocks
    gc.collect()
    assert memory.pinned_bytes == before
