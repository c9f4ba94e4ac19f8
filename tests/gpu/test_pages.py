"""Graphs larger than the device's budget: which pages stand there, and that answers are the same."""

from __future__ import annotations

import gc
import math
import mmap
import platform
from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.common.errors import MemoryLimitError
from graphdb.execute.host import HostExecutor
from graphdb.gpu.costs import timings_of
from graphdb.gpu.counting.clique_counter import CliqueCounter
from graphdb.gpu.data import divided, narrow, residency
from graphdb.gpu.data.divided import TOGETHER, VertexBlocks, can_be_divided, divide
from graphdb.gpu.data.narrow import lists_of_narrow
from graphdb.gpu.data.pages import heat, hottest
from graphdb.gpu.data.pinned import Pinned
from graphdb.gpu.data.residency import lists_of_oriented, lists_of_plan, offsets_of
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.executor import Control, Traffic
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived import orientation
from tests import emulator
from tests.execute.test_host import pattern
from tests.gpu.executors import EMULATED, SMALL, device_executor, paged
from tests.gpu.patterns import PATTERNS, graph_of, pattern_of
from tests.gpu.test_device import TRIANGLE

MAP_32BIT = 0x40 if platform.machine() == "x86_64" else 0
"""The flag that asks Linux for addresses below 2 GiB."""


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    page=st.sampled_from([8, 16, 64]),
    data=st.data(),
)
def test_heat_is_what_is_read_of_each_page(lengths: list[int], page: int, data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 9), min_size=len(lengths), max_size=len(lengths)))
    ends = np.cumsum(lengths)
    entries = int(ends[-1])
    want = np.zeros(-(-entries * 4 // page))
    for element, of in enumerate(np.repeat(np.arange(len(lengths)), lengths)):
        want[element * 4 // page] += times[of]
    found = heat(ends - lengths, np.array(lengths), np.array(times), entries, 4, page)
    assert found == pytest.approx(want)


@settings(deadline=None)
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=70), data=st.data())
def test_divided_lists_are_found_wherever_they_stand(lengths: list[int], data: st.DataObject) -> None:
    """By the offset layer as ``neighbours_of`` of ``sets.cuh`` reads it."""
    source = np.repeat(np.arange(len(lengths)), lengths)
    target = np.concatenate([np.arange(length) for length in lengths]).astype(np.int64)
    if not len(source):
        return
    graph = DataGraph(ArraySource(source, np.full(len(source), 70), target, 71), layer="direct")
    partition = graph.partition((70,), "out")
    assert can_be_divided(partition)
    blocks = VertexBlocks.of(partition)
    assert blocks.heats.sum() == pytest.approx(sum(length * (1 + np.log2(1 + length)) for length in lengths))
    resident = np.array(
        data.draw(st.lists(st.booleans(), min_size=1 + len(blocks.heats), max_size=1 + len(blocks.heats)))
    )
    with emulator.installed():
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        with device.device.active():
            copy = divide(device.device.memory, partition, blocks, resident)
        words = np.asarray(copy.header.values if isinstance(copy.header, Pinned) else copy.header.get())
        first, count = copy.groups & 0xFFFFFFFF, copy.groups >> 32
        away = words[(count + 2) // 2 * 2 :].view(np.int64)
        width, here = partition.neighbours.itemsize, copy.here[0].get()
        for vertex, length in enumerate(lengths):
            if not first <= vertex < first + count:
                assert length == 0
                continue
            block = (vertex - first) // TOGETHER
            begin, end = (int(each) + int(away[block]) for each in words[vertex - first : vertex - first + 2])
            assert end - begin == length
            if resident[1 + block]:
                assert here[begin:end].tolist() == list(range(length))
            elif length:
                at = int(copy.here[0].data.ptr) + begin * width - int(copy.elsewhere.ctypes.data)
                assert at % width == 0
                assert copy.elsewhere[at // width : at // width + length].tolist() == list(range(length))
        assert len(here) == max(sum(np.diff(blocks.bounds)[resident[1:]]), 1)


@given(
    heats=st.lists(st.lists(st.floats(0, 100), max_size=8), min_size=1, max_size=4),
    quota=st.integers(-2, 40),
)
def test_the_hottest_pages_stand_on_the_device(heats: list[list[float]], quota: int) -> None:
    chosen = hottest([np.array(each) for each in heats], [np.ones(len(each), np.int64) for each in heats], quota)
    assert [len(each) for each in chosen] == [len(each) for each in heats]
    every, on = np.concatenate([np.array(each) for each in heats]), np.concatenate(chosen)
    here, away = every[on].tolist(), every[~on].tolist()
    assert len(here) == min(max(quota, 0), len(here) + len(away))
    assert not here or not away or min(here) >= max(away)


def rows(executor: Any, plan: Any) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for block in executor.run(plan):
        found.update(zip(*(block.columns[name].tolist() for name in plan.outputs), strict=True))
    return found


def simple_graph(vertices: int, edges: int) -> DataGraph:
    s, o = np.random.default_rng(7).integers(0, vertices, (2, edges))
    proper = s != o
    return DataGraph(ArraySource(s[proper], np.ones(int(proper.sum())), o[proper], vertices))


def freed(executor: Any) -> bool:
    """Whether all pages go back, once nothing is cached."""
    gc.collect()
    memory, pages = executor.device.memory, executor.graph.residency.driver
    memory.evict(None)  # the copies, which leaves pages that nobody reads, …
    memory.evict(None)  # … and those
    return bool((pages.device, pages.host) == (0, 0))


@EMULATED
@pytest.mark.parametrize("by_vertices", [True, False], ids=["divided", "pages"])
@pytest.mark.parametrize("part", [2, 4, 8, 16])
def test_a_graph_larger_than_the_budget(part: int, by_vertices: bool) -> None:
    graph, host = simple_graph(600, 6_000), HostExecutor(1)
    plan = make_plan(pattern(3, TRIANGLE), graph)
    neighbours = sum({id(each): each.neighbours.nbytes for each in plan.partitions}.values())
    dividing = mock.patch.object(residency, "can_be_divided", lambda of: by_vertices and can_be_divided(of))
    with emulator.installed(), dividing:
        budget = neighbours // part + 22_000
        device: Any = device_executor("join", SMALL["join"], budget)
        memory = device.device.memory
        assert device.supports(plan)
        assert device.count(plan) == host.count(plan) > 0
        assert memory.used_bytes <= budget
        assert rows(device, plan) == rows(host, plan)
        assert "of the reads from host memory" in device.describe(plan)
        assert "of the reads from host memory" in device.traffic().since(Traffic())
        assert device.traffic().copied > 0
        pages = device.graph.residency.driver
        assert pages.device <= budget
        assert bool(pages.host) is not by_vertices
        read, pinned = lists_of_plan(plan, False), memory.pinned_bytes
        assert 0 < device.graph.residency.away(read) < 1
        assert not by_vertices or pinned >= sum(each.elements.nbytes for each in read)
        del plan, graph, read
        assert freed(device)


@EMULATED
@pytest.mark.parametrize("part", [1, 4, 16])
def test_sums_over_lists_larger_than_the_budget(part: int) -> None:
    from graphdb.gpu.executor import GpuExecutor

    graph, host = simple_graph(2_000, 40_000), HostExecutor(1)
    plan = make_plan(replace(pattern(3, TRIANGLE), outputs=(), count_only=True), graph, counting="always")
    with emulator.installed():
        device = GpuExecutor(0, hint="sums", memory_limit=160_000 // part + 150_000)
        assert device.count(plan) == host.count(plan) > 0
        pages: Any = device.graph.residency.driver
        assert pages.host > 0
        del plan, graph
        assert freed(device)


@EMULATED
def test_sums_leave_room_for_what_they_keep_for_each_rank() -> None:
    """Where even that does not fit, the matches are found."""
    from graphdb.gpu.executor import GpuExecutor

    (graph, label), host = graph_of(2_000, 16_000, 2), HostExecutor(1)
    plan = make_plan(pattern_of(PATTERNS["4-cycle"], label), graph, counting="always")
    with emulator.installed():
        wanted, pinned = host.count(plan), GpuExecutor(0, hint="sums", memory_limit=100_000)
        assert pinned.count(plan) == wanted > 0
        with mock.patch.object(pinned._counter, "count", side_effect=MemoryLimitError("too little")):
            with pytest.raises(MemoryLimitError):
                pinned.count(plan)
            pinned.hint = "auto"
            assert pinned._summed(plan, True, lambda: pinned._counter.count(plan, Control())) is None
        assert timings_of(plan, True).measured("count") == math.inf


@EMULATED
@pytest.mark.parametrize("wide", [False, True], ids=["short", "wide"])
def test_cliques_of_a_graph_larger_than_the_budget(wide: bool) -> None:
    """Their lists stand in nine tenths of it, also where a join's, which left room for tables, stood before."""
    (graph, label), host = graph_of(500, 8_000, 2), HostExecutor(1)
    count = make_plan(pattern_of(tuple(combinations(range(4), 2)), label), graph)
    assert count.clique is not None
    oriented, short = count.clique.graph, orientation.Oriented.short_offsets
    of_width = mock.patch.object(orientation.Oriented, "short_offsets", None if wide else short)
    of_kind = mock.patch.object(CliqueCounter, "_way", return_value=("narrow", 0.0))
    with emulator.installed(), of_width, of_kind, mock.patch.object(narrow, "RANKS", 250):
        assert offsets_of(oriented).itemsize == (8 if wide else 4)
        budget = (oriented.neighbours.nbytes + offsets_of(oriented).nbytes) // 2 + 4_000
        device: Any = device_executor("join", SMALL["join"], budget)
        device.hint = "auto"
        memory, lists = device.device.memory, lists_of_oriented(oriented)
        device.graph.residency.place([lists])
        before, away = device.graph.residency.placed(lists), device.graph.residency.away([lists])
        assert before is not None
        assert device.count(count) == host.count(count) > 0
        narrow_lists, pages = lists_of_narrow(oriented), device.graph.residency.driver
        placed = [found for each in narrow_lists if (found := device.graph.residency.placed(each)) is not None]
        taken = sum(each.nbytes for each in placed)
        assert {each.elements.dtype.name for each in narrow_lists} == {"int32", "uint16"}
        assert device.graph.residency.placed(lists) is None
        assert taken > 1.3 * before.nbytes
        assert device.graph.residency.away(narrow_lists) < 0.6 * away
        assert isinstance(pages, emulator.Pages)
        assert pages.device == sum(each.nbytes for each in placed if not each.resident.all()) > 0
        assert pages.host > 0
        assert memory.used_bytes <= memory.budget
        device.hint = "join"
        assert device.count(count) == host.count(count)
        joined = device.graph.residency.placed(lists)
        assert joined is not None
        assert joined.nbytes == pages.device <= before.nbytes
        del count, graph, oriented, lists
        assert freed(device)


@EMULATED
def test_what_a_run_uses_is_not_evicted() -> None:
    from graphdb.gpu.data.memory import DeviceMemory

    with emulator.installed():
        memory = DeviceMemory(0, 100_000)
        originals = [np.arange(1_000, dtype=np.int32) for _ in range(3)]
        with memory.active():
            for each in originals:
                memory.cached_or_built("array", each, lambda each=each: memory.upload(each))  # type: ignore[misc]
        with memory.using(originals[:1]), memory.using(originals[:2]):
            memory.evict(None)
            assert [memory.is_cached("array", each) for each in originals] == [True, True, False]
        memory.evict(None)
        assert memory.cached_bytes == 0


def low(memory: Any, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy below what is allocated elsewhere, where the system can be asked for that."""
    room = mmap.mmap(-1, values.nbytes + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_32BIT)
    copy = np.frombuffer(room, values.dtype, values.size)
    copy[:] = values
    return copy


@EMULATED
@pytest.mark.parametrize("mode", list(MatchMode))
def test_lists_in_host_memory_below_the_devices(mode: MatchMode) -> None:
    """Their places, from the beginning of those on the device, are negative, as they are on many a machine."""
    ends = np.unique(np.random.default_rng(7).integers(0, 60, (2, 900)), axis=1)  # loops among them
    graph, host = DataGraph(ArraySource(ends[0], np.ones(ends.shape[1]), ends[1], 60)), HostExecutor(1)
    edges = [(0, 1, (1,), True), (1, 2, (1,), True), (0, 2, (1,), True), (2, 2, (1,), True)]
    plan = make_plan(pattern(3, edges, mode), graph)
    with emulator.installed(), paged(3), mock.patch.object(divided, "pinned", low):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        assert rows(device, plan) == rows(host, plan) != {}
        partition = next(each for each in plan.partitions if can_be_divided(each))
        copy = device.device.memory.cached("divided", partition)
        assert copy is None or copy.elsewhere.ctypes.data < int(copy.here[0].data.ptr)
