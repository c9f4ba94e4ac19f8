"""Joins over lists by segments: the same answers, within the budget, each segment copied as often as planned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

from graphdb.common.errors import MemoryLimitError
from graphdb.execute.host import HostExecutor
from graphdb.gpu.card import TYPICAL
from graphdb.gpu.code.launch import Module
from graphdb.gpu.data import graph as data_graph
from graphdb.gpu.data.graph import address
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.pinned import pinned
from graphdb.gpu.data.residency import lists_of_plan
from graphdb.gpu.join import pieces, run
from graphdb.gpu.join import segmentation as segmentation_module
from graphdb.gpu.join.pieces import Run
from graphdb.gpu.join.run import Join
from graphdb.gpu.join.segmentation import segmentation
from graphdb.gpu.join.segmented import segment_stream
from graphdb.gpu.segments import Part, Ranges, SegmentStream, Window
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.execute.test_host import REPEATABLE, pattern
from tests.gpu.executors import EMULATED, EXAMPLES, SMALL, device_executor, opened, segmented
from tests.gpu.test_device import TRIANGLE
from tests.gpu.test_executors import check
from tests.gpu.test_pages import rows, simple_graph
from tests.oracle.strategies import Case
from tests.oracle.test_symmetry import symmetric_cases
from tests.oracle.test_trees import labelled_cases, spaces

RANGES = segmentation_module.RANGES


@pytest.fixture(
    params=[
        pytest.param("emulated-join-segmented", marks=EMULATED),
        pytest.param("cuda-join-segmented", marks=pytest.mark.gpu),
    ],
    scope="module",
)
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request.param) as found:
        yield found


@EXAMPLES
@given(case=labelled_cases() | symmetric_cases())
def test_rows_and_counts(executor: Any, case: Case) -> None:
    check(case, DataGraph(case.source), executor)


@EXAMPLES
@given(case=labelled_cases())
def test_lists_of_a_candidate_space(executor: Any, case: Case) -> None:
    """They have offsets of candidates alone, so that they are in no segments."""
    with spaces():
        check(case, DataGraph(case.source), executor)


@EMULATED
@pytest.mark.parametrize("part", [2, 8])
def test_lists_larger_than_the_budget(part: int) -> None:
    graph, host = simple_graph(150, 4_000), HostExecutor(1)
    plan = make_plan(replace(pattern(3, TRIANGLE), outputs=(), count_only=True), graph, counting="never")
    wanted = make_plan(pattern(3, TRIANGLE), graph)
    lists = sum({id(each): each.neighbours.nbytes for each in plan.partitions}.values())
    with emulator.installed(), segmented(1, 2, 4, 8, 16):
        device: Any = device_executor("join", SMALL["join"], lists // part + 20_000)
        join: Join = device.strategies.join
        segments = join.segments(plan, True)
        assert segments is not None
        assert segments.describe() in device.describe(plan)
        assert device.count(plan) == host.count(plan) > 0
        assert device.device.memory.used_bytes <= device.device.memory.budget
        assert rows(device, wanted) == rows(host, wanted)


@EMULATED
@pytest.mark.parametrize("part", [4, 5])
def test_segments_of_many_short_lists_fit_the_budget(part: int) -> None:
    rng = np.random.default_rng(3)
    hubs = np.concatenate([rng.integers(0, 50, 6_000), rng.integers(0, 4_000, 2_000)])
    ends = np.stack([hubs, rng.integers(0, 4_000, 8_000)])
    ends = ends[:, ends[0] != ends[1]]
    graph, host = DataGraph(ArraySource(ends[0], np.ones(ends.shape[1]), ends[1], 4_000)), HostExecutor(1)
    plan = make_plan(replace(pattern(3, TRIANGLE), outputs=(), count_only=True), graph, counting="never")
    lists = sum(each.nbytes for each in lists_of_plan(plan, True))
    with emulator.installed(), segmented(1, 2, 4, 8, 16, 32):
        device: Any = device_executor("join", SMALL["join"], lists // part)
        found = device.strategies.join.segments(plan, True)
        with device.device.active():
            stream = segment_stream(device.device, plan, found)
            assert device.device.memory.used_bytes <= 0.7 * device.device.memory.budget
            del stream
        assert device.count(plan) == host.count(plan) > 0


@EMULATED
def test_pieces_that_get_too_little_memory_are_made_smaller() -> None:
    graph, host = simple_graph(150, 4_000), HostExecutor(1)
    plan = make_plan(replace(pattern(3, TRIANGLE), outputs=(), count_only=True), graph, counting="never")
    wanted = make_plan(pattern(3, TRIANGLE), graph)
    sizes = {**SMALL["join"], "rows": 1 << 14, "span": 1 << 16, "out_bytes": 1 << 12}
    with emulator.installed(), segmented(2), mock.patch.object(pieces, "TABLES", 100.0):
        device: Any = device_executor("join", sizes, 50_000)
        assert device.count(plan) == host.count(plan) > 0
        assert rows(device, wanted) == rows(host, wanted)
        assert [size for each in (plan, wanted) for key, size in each.cache.items() if key[0] == "parts"]


@EMULATED
def test_each_segment_is_copied_as_often_as_planned() -> None:
    plan = make_plan(pattern(3, TRIANGLE), simple_graph(300, 12_000))
    with emulator.installed(), segmented(3):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        found = segmentation(plan, 1 << 24, device.device.rates)
        assert found is not None
        assert [slot.ranges for slot in found.slots] == [3, 3]
        with device.device.active():
            stream = segment_stream(device.device, plan, found)
            seen = Counter(chosen for chosen, _ in stream.through(found.combinations))
        assert seen == {(a, b): 1 for a in range(3) for b in range(3)}
        lists = plan.partitions[0].neighbours.nbytes
        # The first slot's three segments, and the second's three for the first of those, then two (or one) more each.
        assert stream.moved <= found.moved * 1.1 == pytest.approx((3 + 7 - 2 * found.ahead) / 3 * lists * 1.1, rel=0.1)


@pytest.mark.parametrize(("labels", "fitting"), [(1, []), (3, [1, 2])], ids=["one label", "three"])
def test_long_paths_are_divided_without_looking_at_all_ranges_of_all_slots(labels: int, fitting: list[int]) -> None:
    """Those of eight slots have 10^9 combinations.  Where one label's lists are all that is read, whole ones do not fit
    for any slot, nor do blocks for each of them.
    """
    random = np.random.default_rng(3)
    source, target = random.integers(0, 2_000, (2, 30_000))
    graph = DataGraph(ArraySource(source, 2_000 + random.integers(0, labels, 30_000), target, 2_000 + labels))
    edges = [(number, number + 1, (2_000 + number % labels,), True) for number in range(8)]
    plan = make_plan(pattern(9, edges, REPEATABLE, count_only=True), graph, counting="never")
    size = sum(each.neighbours.nbytes + each.offsets.nbytes for each in plan.partitions)
    for part in (1, 2, 4, 100):
        with mock.patch.multiple(segmentation_module, RANGES=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32), MOST=2048):
            found = segmentation(plan, size // part, TYPICAL, True)
        assert (found is not None) == (part in fitting)
        if found is not None:
            assert 1 < math.prod(slot.ranges for slot in found.slots) <= 2048


@EMULATED
@pytest.mark.parametrize(
    "edges", [TRIANGLE, [*TRIANGLE, (1, 3, (1,), True), (2, 3, (1,), True)]], ids=["three", "four"]
)
def test_the_last_two_levels_of_a_count_make_no_table(edges: list[tuple[int, int, Any, bool]]) -> None:
    """And how many rows the one before the last would have is known as well."""
    graph, host = simple_graph(60, 900), HostExecutor(1)
    plan = make_plan(pattern(edges[-1][1] + 1, edges, REPEATABLE, count_only=True), graph, counting="never")
    wanted, found, launched = Control(), Control(), Counter[str]()
    assert host.count(plan, wanted) > 0
    with emulator.installed(), segmented(2):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        launch = Module.launch

        def noted(self: Module, name: str, *arguments: Any, **more: Any) -> None:
            launched[name] += 1
            launch(self, name, *arguments, **more)

        with mock.patch.object(Module, "launch", noted):
            assert device.count(plan, found) == host.count(plan)
    assert launched["count_pairs"] > 0 == launched["count_two"] + launched["count_two_others"]
    assert found.rows[-2:].tolist() == wanted.rows[-2:].tolist()  # those before are bound again for each segment


@EMULATED
@pytest.mark.parametrize("scanned", [True, False])
def test_the_first_table_is_the_scan_or_made_once_for_each_range(scanned: bool) -> None:
    """A scan whose vertices are all bindings is a table itself; else it stands while segments of later slots change."""
    graph, host = simple_graph(60, 900), HostExecutor(1)
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), graph, counting="never")
    launched, made = Counter[str](), run.plan_levels
    with emulator.installed(), segmented(3):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        launch = Module.launch

        def noted(self: Module, name: str, *arguments: Any, **more: Any) -> None:
            launched[name] += 1
            launch(self, name, *arguments, **more)

        def levels(*given: Any) -> Any:
            found = made(*given)
            assert found.roots is not None
            return found if scanned else replace(found, roots=None)

        with mock.patch.object(Module, "launch", noted), mock.patch.object(run, "plan_levels", levels):
            assert device.count(plan) == host.count(plan) > 0
        segments = device.strategies.join.segments(plan, True)
        assert [slot.ranges for slot in segments.slots] == [3, 3]
    assert launched["count_pairs"] == 9
    assert launched["combine"] == (0 if scanned else 3)


@EMULATED
@pytest.mark.parametrize("short", [True, False])
def test_lists_that_are_scanned_once_are_read_by_blocks(short: bool) -> None:
    """Each of their edges is copied once, however many ranges there are; offsets have 32 bits where these do."""
    rng = np.random.default_rng(5)
    ends = np.unique(rng.integers(0, 90, (2, 2_400)), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    graph = DataGraph(ArraySource(ends[0], 90 + ends.sum(axis=0) % 2, ends[1], 92))
    edges = [(0, 1, (90,), True), (1, 2, (91,), True), (0, 2, (91,), True)]
    count = make_plan(pattern(3, edges, REPEATABLE, count_only=True), graph, counting="never")
    wanted, host = make_plan(pattern(3, edges, REPEATABLE), graph), HostExecutor(1)
    with emulator.installed(), segmented(4), mock.patch.object(data_graph, "SHORT", 1 << 32 if short else 0):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        found = device.strategies.join.segments(count, True)
        (grid,) = found.grids
        lists = grid.partition
        assert (grid.row, grid.slot) not in {(row, each.slot) for each in found.slots for row in each.rows}
        assert grid.shape == (4, 4)
        assert grid.counts.sum() == lists.neighbours.size
        with device.device.active():
            blocks = grid._made(device.device)
            for at, by in np.ndindex(grid.shape):
                vertices = range(*grid.bounds[at : at + 2].tolist())
                begins = blocks.offsets[blocks.firsts[at, by] :][: len(vertices) + 1].tolist()
                for vertex, own in zip(vertices, pairwise(begins), strict=True):
                    each = lists.neighbours[slice(*lists.offsets[vertex : vertex + 2])]
                    within = each[(grid.others[by] <= each) & (each < grid.others[by + 1])]
                    assert blocks.neighbours[slice(*own)].tolist() == within.tolist()
            stream = segment_stream(device.device, count, found)
            assert len(list(stream.through(found.combinations))) == 16
            window = stream.windows[-1][0]
        assert window.moved == lists.neighbours.nbytes + (lists.offsets.size + 3) * 4 * (4 if short else 8)
        assert stream.moved == pytest.approx(found.moved, rel=0.15)
        del stream, window
        assert device.count(count) == host.count(count) > 0
        assert rows(device, wanted) == rows(host, wanted)
        assert not device.device.memory.pool.faults


@EMULATED
def test_what_host_memory_has_for_segments_is_made_once() -> None:
    """To evict it would give the device no memory, and to page-lock it again takes longer than to copy it."""
    rng = np.random.default_rng(5)
    ends = np.unique(rng.integers(0, 400, (2, 9_000)), axis=1)
    graph = DataGraph(ArraySource(ends[0], 400 + ends.sum(axis=0) % 2, ends[1], 402))
    edges = [(0, 1, (400,), True), (1, 2, (401,), True), (0, 2, (401,), True)]
    plan = make_plan(pattern(3, edges, REPEATABLE, count_only=True), graph, counting="never")
    lists = sum(each.nbytes for each in lists_of_plan(plan, True))
    with emulator.installed(), segmented(4):
        device: Any = device_executor("join", SMALL["join"], 5 * lists // 8)
        wanted = device.count(plan)
        assert device.strategies.join.segments(plan, True).grids
        with mock.patch.object(DeviceMemory, "pinned", side_effect=DeviceMemory.pinned, autospec=True) as made:
            assert device.count(plan) == wanted == HostExecutor(1).count(plan)
        assert max(int(np.prod(call.args[1])) for call in made.call_args_list) < 400
        # What copies the first segments is waited for, too, where the run then gets too little memory.
        sizes, calls = Run._find_sizes, mock.Mock()

        def find_sizes(run: Run, plan: PhysicalPlan) -> None:
            calls.find_sizes()
            if calls.find_sizes.call_count == 1:
                raise MemoryLimitError("too little")
            sizes(run, plan)

        def end(stream: SegmentStream) -> None:
            calls.end()
            ended(stream)

        ended = SegmentStream.end
        with mock.patch.object(Run, "_find_sizes", find_sizes), mock.patch.object(SegmentStream, "end", end):
            assert device.count(plan) == wanted
        assert [call[0] for call in calls.mock_calls] == ["find_sizes", "end", "find_sizes", "end"]


@EMULATED
@pytest.mark.parametrize("part", [2, 4, 8])
def test_a_labelled_join_moves_at_most_three_times_its_lists(part: int) -> None:
    """Within a part of what it takes, and never with more room than that."""
    rng = np.random.default_rng(7)
    ends = np.unique((rng.random((2, 30_000)) ** 2 * 3_000).astype(np.int64), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    graph, host = DataGraph(ArraySource(ends[0], 3_000 + ends.sum(axis=0) % 2, ends[1], 3_002)), HostExecutor(1)
    edges = [(0, 1, (3_000,), True), (1, 2, (3_001,), True), (0, 2, (3_001,), True)]
    plan = make_plan(pattern(3, edges, REPEATABLE, count_only=True), graph, counting="never")
    lists = sum(each.nbytes for each in lists_of_plan(plan, True))
    with emulator.installed(), segmented(*RANGES), mock.patch.object(segmentation_module, "OTHERS", 1 << 13):
        device: Any = device_executor("join", SMALL["join"], 2 * lists // part)
        found = device.strategies.join.segments(plan, True)
        assert len(found.combinations) > 1 or part == 2
        assert found.moved <= 3 * found.size
        with device.device.active():
            stream = segment_stream(device.device, plan, found)
            assert device.device.memory.used_bytes <= 0.85 * device.device.memory.budget
            for _ in stream.through(found.combinations):
                pass
            assert stream.moved <= 3.1 * found.size
            del stream
        assert device.count(plan) == host.count(plan) > 0


@EMULATED
def test_segments_that_no_list_reaches_are_skipped() -> None:
    """Where edges lead to vertices of about the same age, most pairs of segments have nothing in common."""
    source = np.repeat(np.arange(400), 6)
    target = np.minimum(source + np.tile(np.arange(1, 7), 400), 405)
    graph, host = DataGraph(ArraySource(source, np.ones(len(source)), target, 406)), HostExecutor(1)
    count = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), graph, counting="never")
    wanted = make_plan(pattern(3, TRIANGLE, REPEATABLE), graph)
    with emulator.installed(), segmented(8):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        found = device.strategies.join.segments(count, True)
        assert [slot.ranges for slot in found.slots] == [8, 8]
        assert len(found.combinations) < 24
        assert found.moved < 3 * found.size
        assert device.count(count) == host.count(count) > 0
        assert rows(device, wanted) == rows(host, wanted)


@EMULATED
def test_arrays_of_a_window_share_its_room() -> None:
    """Ranges of many short lists have long offsets, those of few long ones long neighbours."""
    long, short = np.arange(1000, dtype=np.int64), np.arange(1000, dtype=np.int32)
    begins = np.array([0, 900])
    with emulator.installed():
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        with device.device.active():
            before = device.device.memory.used_bytes
            parts = [
                Part(pinned(device.device.memory, long), begins, np.array([900, 1000])),
                Part(pinned(device.device.memory, short), np.array([0, 100]), np.array([100, 1000])),
            ]
            window = Window(device.device, Ranges(parts), 1)
            taken = device.device.memory.used_bytes - before
            assert 7_600 <= taken < 8_200 < 900 * (8 + 4)
            stream = SegmentStream(device.device, [(window, itemgetter(0), "ab")])
            for (chosen,), bases in stream.through([(0,), (1,)]):
                for key, part in zip("ab", parts, strict=True):
                    begin, end = part.begins[chosen], part.ends[chosen]
                    place = bases[key] + begin * part.values.itemsize - address(window._buffers[0])
                    there = window._buffers[0][place : place + (end - begin) * part.values.itemsize].get()
                    assert np.array_equal(there.view(part.values.dtype), part.values[begin:end])


@EMULATED
def test_shares_of_a_run_by_segments_add_up() -> None:
    graph, host = simple_graph(100, 2_000), HostExecutor(1)
    plan = make_plan(replace(pattern(3, TRIANGLE), outputs=(), count_only=True), graph, counting="never")
    with emulator.installed(), segmented(3):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        shares = [(0, 7), (7, 60), (60, 61), (61, 1 << 20)]
        roots = len(plan.steps[0].scan)  # type: ignore[union-attr, arg-type]
        found = [device.count(plan, Control(share=(first, min(last, roots)))) for first, last in shares]
        assert sum(found) == host.count(plan)
        assert min(found) > 0
