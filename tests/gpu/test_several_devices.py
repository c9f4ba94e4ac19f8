"""One device of several: everything of an executor is on its own device, whichever is current in the calling thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import graphdb
from graphdb.common.errors import DeviceError, MemoryLimitError
from graphdb.execute import devices as naming
from graphdb.execute import divided_extension, multi
from graphdb.execute.choose import choose_executor
from graphdb.execute.host import HostExecutor
from graphdb.execute.multi import MultiExecutor
from graphdb.execute.trial import try_device
from graphdb.gpu.join.refine import DeviceRefiner
from graphdb.gpu.probe import Device, DeviceReport, probe
from graphdb.mining import EmbeddingTable, Limits, aggregation, filtering, vertex_extension
from graphdb.mining.frequent import frequent_patterns
from graphdb.mining.motifs import motifs
from graphdb.pattern.graph import PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from tests import emulator
from tests.execute.test_host import REPEATABLE, complete, pattern
from tests.gpu.executors import EMULATED, SMALL, device_executor
from tests.gpu.patterns import PATTERNS, graph_of, pattern_of
from tests.gpu.test_device import PATH, TRIANGLE, random_graph
from tests.mining import brute

HOST = HostExecutor(1)
SQUARE: list[tuple[int, int, Any, bool]] = [*PATH, (2, 3, (1,), True), (0, 3, (1,), True)]


def machine_of(devices: int) -> DeviceReport:
    """What the driver says of so many devices."""
    there = tuple(Device(number, "emulated", 1 << 30, (9, 0)) for number in range(devices))
    return DeviceReport((13, 0), there, None, "nvrtc", "14")


@pytest.fixture
def two() -> Iterator[Any]:
    """A machine with two emulated devices."""
    with emulator.installed(devices=2) as machine, mock.patch.object(naming, "probe", return_value=machine_of(2)):
        yield machine


def rows_of(executor: Any, plan: Any, control: Control | None = None) -> Counter[tuple[int, ...]]:
    """The rows, and how many matches each stands for."""
    found: Counter[tuple[int, ...]] = Counter()
    for block in executor.run(plan, control):
        matches = np.ones(block.count, np.int64) if block.matches is None else block.matches
        columns = [block.columns[name].tolist() for name in plan.outputs]
        for *row, number in zip(*columns, matches.tolist(), strict=True):
            found[tuple(row)] += number
    return found


def every_kind() -> Iterator[tuple[str, Any, bool]]:
    """Plans that lead through all of a device's code: (what, plan, whether it is counted)."""
    graph = random_graph(40, 300)
    yield "rows", make_plan(pattern(3, TRIANGLE), graph), False
    yield "with counts", make_plan(pattern(3, PATH, outputs=("a",), duplicates="count"), graph, counting="never"), False
    yield "grouped", make_plan(pattern(3, PATH, REPEATABLE, outputs=("a", "c"), duplicates="count"), graph), False
    yield "by vertex", make_plan(pattern(4, SQUARE, REPEATABLE, outputs=("a",), duplicates="count"), graph), False
    yield "count", make_plan(pattern(3, TRIANGLE, count_only=True), graph, counting="never"), True
    yield "sums", make_plan(pattern(4, SQUARE, REPEATABLE, count_only=True), graph, counting="always"), True
    some = PatternVertex("some", np.arange(0, 30, 2))
    wanted = pattern(4, SQUARE, REPEATABLE, count_only=True)
    weighed = replace(wanted, vertices=(*wanted.vertices[:3], some))
    yield "sums of candidates", make_plan(weighed, graph, counting="always"), True
    undirected, label = graph_of(40, 300, 1)
    clique = pattern_of(((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)), label)
    yield "cliques", make_plan(clique, undirected, counting="always"), True
    wheel = pattern_of(PATTERNS["4-wheel"], label)
    yield "inclusion and exclusion", make_plan(wheel, undirected, counting="always"), True


@EMULATED
def test_the_second_device_alone(two: Any) -> None:
    """Every kind of run: nothing is made on the other device, and no address of it is used."""
    executor = device_executor("join", SMALL["join"], 1 << 24, number=1)
    for what, plan, counting in every_kind():
        for executor.hint in ("sums", "join"):
            if counting:
                assert executor.count(plan) == HOST.count(plan), what
            else:
                assert rows_of(executor, plan) == rows_of(HOST, plan), what
            assert two.touched == {1}, what
    assert executor.describe(next(every_kind())[1]) == "cuda:1 by join within 0.02 GB"


@EMULATED
def test_the_second_device_alone_by_search(two: Any) -> None:
    executor = device_executor("search", SMALL["search"], 1 << 24, number=1)
    plan = make_plan(pattern(3, TRIANGLE, count_only=True), complete(8), counting="never")
    assert executor.count(plan) == 336
    assert rows_of(executor, make_plan(pattern(3, TRIANGLE), complete(8))).total() == 336
    assert two.touched == {1}


@EMULATED
def test_a_plan_that_the_second_device_refines(two: Any) -> None:
    from tests.gpu.test_refine import large_case, tasks

    case = large_case()
    with tasks(case) as asked:
        (task,) = asked
    executor = device_executor("join", SMALL["join"], 1 << 24, number=1)
    executor.refiner = DeviceRefiner(executor.device, executor.graph, block=64, blocks=1)
    found = executor.refine(replace(task, work=1e8))
    assert found is not None
    assert two.touched == {1}


@EMULATED
def test_two_devices_in_two_threads(two: Any) -> None:
    """Each thread's current device is its own: two executors at a time do not disturb each other."""
    graph = random_graph(40, 300)
    plans = [make_plan(pattern(3, edges), graph) for edges in (PATH, TRIANGLE)]
    wanted = [rows_of(HOST, plan) for plan in plans]
    executors = [device_executor("join", SMALL["join"], 1 << 24, number=number) for number in (0, 1)]
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            for i in range(6):
                if rows_of(executors[number % 2], plans[i % 2]) != wanted[i % 2]:
                    wrong.append(i)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for executor in executors:
        assert not executor.device.memory.pool.faults
        assert executor.device.memory.used_bytes == executor.device.memory.cached_bytes > 0


@EMULATED
def test_a_thread_that_used_no_device_yet(two: Any) -> None:
    """The first device is current there, and none has a context: a side stream is the device's own all the same, and
    the driver answers.
    """
    executor = device_executor("join", SMALL["join"], 1 << 24, number=1)
    module = executor.strategies.join.module(np.int32)
    found: list[object] = []

    def work() -> None:
        try:
            found.append(executor.device.side_stream().device)
            with executor.device.active():
                found.append(module.resident("combine"))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1, executor.device.processors]


@EMULATED
def test_the_second_device_mines_alone(two: Any) -> None:
    """All kinds of mining: nothing is made on the other device, and what is there is not used with it."""
    executor = device_executor("join", SMALL["join"], 1 << 26, number=1)
    limits = Limits(executor=executor)
    plain, directed = (
        brute.random_graph(np.random.default_rng(1), 16, 40, directed=way, labels=2) for way in (False, True)
    )
    table = vertex_extension(
        vertex_extension(EmbeddingTable.of_vertices(plain), plain, limits=limits), plain, limits=limits
    )
    aggregation(table, plain, limits=limits)
    filtering(table, np.arange(len(table)) % 2 == 0, limits)
    frequent_patterns(directed, 2, 2, limits=limits)
    assert _counts(motifs(plain, 4, limits)) == _counts(motifs(plain, 4))
    assert _counts(motifs(directed, 5, limits)) == _counts(motifs(directed, 5))
    assert two.touched == {1}


def _counts(found: Any) -> dict[Any, int]:
    return {motif.pattern: motif.count for motif in found}


@EMULATED
@pytest.mark.parametrize("fails", [False, True])
def test_embeddings_are_extended_on_both(two: Any, fails: bool) -> None:
    """The host's tables, patterns and motifs; where one device fails, the other's."""
    members = [device_executor("join", SMALL["join"], 1 << 26, number=number) for number in range(2)]
    several = MultiExecutor(members, least=0.0)
    limits = Limits(executor=several)
    plain, directed = (
        brute.random_graph(np.random.default_rng(1), 16, 40, directed=way, labels=2) for way in (False, True)
    )
    with mock.patch.object(multi, "MINED_ALONE", 0.0), mock.patch.object(divided_extension, "LEAST", 4):
        if not fails:
            assert _counts(motifs(directed, 5, limits)) == _counts(motifs(directed, 5))
        wanted = found = EmbeddingTable.of_vertices(plain)
        for number in range(3):
            if fails and number == 2:
                two.failing[1] = 0
            wanted, found = vertex_extension(wanted, plain), vertex_extension(found, plain, limits=limits)
            for mine, other in zip(found.columns, wanted.columns, strict=True):
                assert all(map(np.array_equal, mine, other))
        known, patterns = aggregation(wanted, plain), aggregation(found, plain, limits=limits)
    assert len(found) > 20
    assert patterns.patterns == known.patterns
    assert np.array_equal(patterns.supports, known.supports)
    assert two.touched == {0, 1}
    assert several.name == ("cuda:0" if fails else "cuda:0,1")
    assert fails or {"cuda:0", "cuda:1"} <= {part.split(": ")[0] for part in limits.notes[-2].split("; ")}


@EMULATED
def test_a_budget_holds_on_its_own_device(two: Any) -> None:
    """And an error says which device has how much."""
    memory = device_executor("join", {}, 1 << 20, number=1).device.memory
    with memory.active(), pytest.raises(MemoryLimitError, match=r"on the device cuda:1, .* budget of 1,048,576 are"):
        memory.empty(1 << 21, np.uint8)


@EMULATED
def test_an_error_names_the_device_that_failed(two: Any) -> None:
    executor = device_executor("join", {}, number=1)
    two.failing[1] = 3
    with pytest.raises(DeviceError, match="cuda:1 failed: device 1 is lost"):
        executor.count(make_plan(pattern(3, TRIANGLE), complete(8), counting="never"))


@EMULATED
def test_device_memory_is_an_argument(two: Any) -> None:
    """Of connect and of doctor; EXPLAIN says it, and a size that is none is an error."""
    triangle = "MATCH (a)-[:knows]->(b)-[:knows]->(c)-[:knows]->(a)"
    with graphdb.connect(device="cuda:1", device_memory="100MB") as db:
        db.query("CREATE (a)-[:knows]->(b)-[:knows]->(c)-[:knows]->(a)")
        assert "cuda:1 by join within 0.10 GB" in str(db.query(f"EXPLAIN {triangle} RETURN a, b").fetchall())
        assert len(db.query(f"{triangle} RETURN a, b").fetchall()) == 3
    assert two.touched == {1}
    assert "0.1 GiB to work with" in try_device(1, 100 * 10**6)
    for wrong, told in (("8XB", "device_memory '8XB' is no size"), (5, "device_memory of 5 bytes is too small")):
        with pytest.raises(graphdb.GraphDBError, match=told):
            graphdb.connect(device="cuda:1", device_memory=wrong)


def test_names_of_several_devices() -> None:
    named = naming.devices_named
    assert named("cuda:0,1") == naming.Devices((0, 1))
    assert named("cuda:1, 3 by search") == naming.Devices((1, 3), "search")
    assert named("cuda by join") == naming.Devices(None, "join")
    with mock.patch.object(naming, "probe", return_value=machine_of(3)):
        assert naming.Devices(None).found() == (0, 1, 2)
        assert naming.Devices((2, 0)).found() == (2, 0)
        with pytest.raises(DeviceError, match=r"no device 'cuda:3'\nhint: there is 'cuda:0', 'cuda:1', 'cuda:2'"):
            graphdb.connect(device="cuda:1,3")
    with pytest.raises(graphdb.GraphDBError, match=r"'cuda:1,1' names one device twice"):
        graphdb.connect(device="cuda:1,1")
    for name in ("cuda:", "cuda:0,", "cuda:,1", "cuda:0;1", "cuda:0,1 by hash"):
        with pytest.raises(graphdb.GraphDBError, match="unknown device"):
            graphdb.connect(device=name)


@pytest.mark.gpu
def test_the_last_device_alone() -> None:
    """On a real machine: that of the greatest number, as others are not asked to work."""
    last = probe().devices[-1].number
    executor = choose_executor(f"cuda:{last}", device_memory=1 << 30)
    for what, plan, counting in every_kind():
        if counting:
            assert executor.count(plan) == HOST.count(plan), what
        else:
            assert rows_of(executor, plan) == rows_of(HOST, plan), what


def test_the_emulator_notices_addresses_of_another_device() -> None:
    machine = emulator._Machine()
    machine.devices = 2
    dice = np.random.default_rng(3)
    starts = np.sort(dice.choice(200, 20, replace=False)) * 100
    sizes = dice.integers(1, 101, 20)
    sizes[4] = 0
    devices = dice.integers(0, 2, 20)
    machine._places = {
        start: (start, start + size, device)
        for start, size, device in zip(starts.tolist(), sizes.tolist(), devices.tolist(), strict=True)
    }
    for address in range(0, 20_100, 9):
        wrong = ((starts <= address) & (address < starts + sizes) & (devices == 1)).any()  # 0 is the current one
        for values in (address, [0, address, 1 << 60]):
            with pytest.raises(AssertionError, match="of device 1") if wrong else nullcontext():
                machine.check("a kernel", values)
    machine.devices = 1
    machine.check("a kernel", starts)
