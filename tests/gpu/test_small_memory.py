"""Joins whose tables do not fit: what makes no table, how tables share the room, and lists that fit neither way."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.gpu import beside
from graphdb.gpu.beside import SearchesBeside
from graphdb.gpu.code.launch import Module
from graphdb.gpu.data import graph as data_graph
from graphdb.gpu.data import residency
from graphdb.gpu.data.divided import can_be_divided
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.residency import Residency, copy_of, lists_of_plan
from graphdb.gpu.join import crowding, pieces, segmentation
from graphdb.gpu.join.pieces import Run
from graphdb.gpu.join.run import Join
from graphdb.gpu.join.tables import divided
from graphdb.gpu.search import run as search_run
from graphdb.gpu.search.run import Search
from graphdb.gpu.strategies import Strategies
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
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
from tests.oracle.test_trees import labelled_cases

PATH = [(0, 1, (1,), True), (1, 2, (1,), True), (2, 3, (1,), True)]


@pytest.fixture(
    params=[
        pytest.param("emulated-join", marks=EMULATED),
        pytest.param("cuda-join-pieces", marks=pytest.mark.gpu),
    ],
    scope="module",
)
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request.param) as found:
        yield found


@EXAMPLES
@given(case=labelled_cases() | symmetric_cases())
def test_rows_and_counts(executor: Any, case: Case) -> None:
    with mock.patch.object(Run, "_is_crowded", return_value=True):
        check(case, DataGraph(case.source), executor)


@EMULATED
@pytest.mark.parametrize("mode", [REPEATABLE, MatchMode.DIFFERENT_NODES])
@pytest.mark.parametrize(("edges", "kernel"), [(TRIANGLE, "count_pairs"), (PATH, "count_lists")], ids=["two", "one"])
def test_a_count_makes_no_table_that_does_not_fit(edges: list[Any], kernel: str, mode: Any) -> None:
    """And how many rows that would have is known as well."""
    graph, host = simple_graph(100, 3_000), HostExecutor(1)
    plan = make_plan(pattern(edges[-1][1] + 1, edges, mode, count_only=True), graph, counting="never")
    wanted = host.count(plan)
    with emulator.installed():
        for budget, fits in ((1 << 16, False), (1 << 26, True)):
            launched, launch, control = Counter[str](), Module.launch, Control()

            def noted(
                self: Module, name: str, *arguments: Any, launch: Any = launch, launched: Any = launched, **more: Any
            ) -> None:
                launched[name] += 1
                launch(self, name, *arguments, **more)

            device: Any = device_executor("join", {"block": 32, "items": 2}, budget)
            with mock.patch.object(Module, "launch", noted), mock.patch.object(pieces, "CROWDED", 1):
                assert device.count(plan, control) == wanted > 0
            assert bool(launched[kernel]) is not fits
            assert control.rows[-1] == wanted // plan.automorphisms
            assert control.rows[-2] > 0


@given(wanted=st.lists(st.floats(0, 1e6) | st.just(float("inf")), max_size=8), room=st.floats(1, 1e6, allow_nan=False))
def test_room_that_some_do_not_want_goes_to_others(wanted: list[float], room: float) -> None:
    parts, equal = divided(room, wanted), room / max(len(wanted), 1)
    assert sum(parts) <= room * (1 + 1e-9)
    for part, each in zip(parts, wanted, strict=True):
        assert part >= min(each, equal) * (1 - 1e-9)
        assert part <= max(each, equal / 4) * (1 + 1e-9)
    if sum(wanted) >= room:
        assert sum(parts) == pytest.approx(room)


@EMULATED
@pytest.mark.parametrize("divided", [True, False], ids=["divided", "segments"])
@pytest.mark.parametrize("part", [4, 16])
def test_lists_whose_offsets_leave_no_room_for_pages(part: int, divided: bool) -> None:
    """They are divided, or read by segments, however little the pages were expected to cost: kernels find no list
    without its offsets.
    """
    random = np.random.default_rng(9)
    who, labels = np.arange(4_000), range(5)
    ends = [np.stack([who, 4_000 + random.integers(0, 50, 4_000)]) for _ in labels]
    source, target = np.concatenate(ends, axis=1)
    graph = DataGraph(ArraySource(source, np.repeat(np.arange(4_050, 4_055), 4_000), target, 4_055), layer="direct")
    edges = [(0, 1 + label, (4_050 + label,), True) for label in labels]
    plan = make_plan(pattern(6, edges, REPEATABLE, count_only=True), graph, counting="never")
    lists = sum(each.nbytes for each in lists_of_plan(plan, True))
    with emulator.installed():
        device: Any = device_executor("join", SMALL["join"], lists // part + 40_000)
        with (
            mock.patch.object(type(device.graph.residency), "away_seconds", return_value=0.0),
            mock.patch.object(residency, "can_be_divided", lambda of: divided and can_be_divided(of)),
        ):
            assert device.graph.residency.possible(lists_of_plan(plan, True)) is divided
            assert (device.strategies.join.segments(plan, True) is None) is divided
            assert device.supports(plan)
            assert device.count(plan) == HostExecutor(1).count(plan) > 0
            assert device.device.memory.used_bytes <= device.device.memory.budget


@EMULATED
def test_shared_intersections_are_made_of_many_rows_at_a_time() -> None:
    """The bits of what is in all lists take room for each element, their values only where there are some."""
    edges = [*TRIANGLE, (0, 3, (1,), True), (1, 3, (1,), True), (2, 3, (1,), True)]
    graph, host = simple_graph(300, 6_000), HostExecutor(1)
    plan = make_plan(replace(pattern(4, edges, REPEATABLE), outputs=(), count_only=True), graph, counting="never")
    assert len(plan.program.shares) > 1
    made = Counter[int]()
    with emulator.installed():
        device: Any = device_executor("join", {"block": 32, "items": 2}, 1 << 19)
        make = Run._make

        def noted(self: Run, share: Any, table: Any) -> None:
            made[share.slot] += 1
            make(self, share, table)

        with mock.patch.object(Run, "_make", noted):
            assert device.count(plan) == host.count(plan) > 0
    assert 1 <= max(made.values()) <= 8


def within(budget: int) -> Any:
    """A device of so many bytes, with small pieces, that chooses its strategies."""
    device: Any = device_executor("join", SMALL["join"], budget)
    device.strategies.by_name["search"] = Search(device.device, device.graph, **SMALL["search"])
    device.hint = "auto"
    return device


def without_memory(*_: Any) -> Iterator[Any]:
    """A run that ends where it begins."""
    raise MemoryLimitError("too little")
    yield


def holding_memory(search: Search, *_: Any) -> Iterator[Any]:
    """A run that finds too little for the rest of what it needs."""
    with search.device.active():
        held = search.device.memory.empty(search.device.memory.budget // 2, np.uint8)
    raise MemoryLimitError("too little")
    yield held


LONG_TAIL = [*TRIANGLE, (2, 3, (1,), True)]


@EMULATED
def test_counts_whose_tables_do_not_fit_go_on_as_searches() -> None:
    """Once a thread has compiled these; before it, and where all fits, they are joins."""
    graph = simple_graph(100, 1_500)
    plan = make_plan(pattern(4, LONG_TAIL, REPEATABLE, count_only=True), graph, counting="never")
    wanted = HostExecutor(1).count(plan)
    with emulator.installed(), mock.patch.object(crowding, "PIECE", 1e4):
        device = within(1 << 26)
        assert device.count(plan) == wanted > 0
        assert not device.strategies.beside.saved(plan, True)
        device = within(1 << 17)
        strategies = device.strategies
        assert strategies.beside.saved(plan, True) > 0
        assert strategies.of_all(plan, True).name == "join"
        with mock.patch.object(beside, "BESIDE", 0.0):
            assert device.count(plan) == wanted
        strategies.beside.wait_for_all()
        assert strategies.of_all(plan, True).name == "search"
        assert "by search" in device.describe(plan)
        assert device.count(plan) == wanted
        assert device.device.memory.used_bytes <= device.device.memory.budget
        with mock.patch.object(Search, "count", side_effect=MemoryLimitError("too little")):
            assert device.count(plan) == wanted
        assert strategies.of_all(plan, True).name == "join"


@EMULATED
@pytest.mark.parametrize("expected", [True, False])
def test_a_count_by_a_join_is_overtaken_by_its_search(expected: bool) -> None:
    """Which a thread compiles, whatever was expected, once the join has taken as long as that; then it is known."""
    plan = make_plan(pattern(4, LONG_TAIL, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    wanted, joins = HostExecutor(1).count(plan), list[Control]()

    def endless(_: Any, plan: Any, control: Control, limit: int | None) -> int:
        joins.append(control)
        while True:
            control.check()
            time.sleep(0.001)

    with (
        emulator.installed(),
        mock.patch.object(SearchesBeside, "_seconds", return_value=(1e6 if expected else 1e-7, 1e-6)),
        mock.patch.object(beside, "COMPILED", 0.01),
        mock.patch.object(Join, "count", endless),
    ):
        device = within(1 << 24)
        assert device.count(plan) == wanted > 0
        assert [type(control).__name__ for control in joins] == ["UntilReady"]
        assert device.count(plan) == wanted
        assert len(joins) == 1, "a join that was overtaken is known to take longer"
        other = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
        with mock.patch.object(Search, "refused", return_value="no"), pytest.raises(QueryTimeout):
            device.count(other, Control(timeout=0.05))
        device.strategies.beside.wait_for_all()


@EMULATED
@pytest.mark.parametrize("strategy", [Join, Search])
def test_a_run_that_finds_no_memory_in_one_piece_begins_again_without_what_is_cached(strategy: Any) -> None:
    """Small arrays that are cached may stand in the midst of what is free."""
    plan = make_plan(pattern(4, LONG_TAIL, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    listed = make_plan(pattern(4, LONG_TAIL, REPEATABLE), simple_graph(60, 300))
    wanted = HostExecutor(1).count(plan)
    with emulator.installed(), mock.patch.object(SearchesBeside, "_seconds", return_value=(1e6, 0.0)):
        device, cached = within(1 << 24), []
        device.hint = strategy.name
        assert device.count(plan) == wanted > 0
        count, run = strategy.count, strategy.run

        def counted(self: Any, *arguments: Any) -> int:
            cached.append(device.device.memory.cached_bytes)
            return without_memory_once(cached) or count(self, *arguments)

        def found(self: Any, *arguments: Any) -> Any:
            cached.append(device.device.memory.cached_bytes)
            without_memory_once(cached)
            yield from run(self, *arguments)

        with mock.patch.object(strategy, "count", counted), mock.patch.object(strategy, "run", found):
            assert device.count(plan) == wanted
            assert cached[0] > 0 == cached[1]
            cached.clear()
            if strategy is Search:  # which would begin again in every run
                with pytest.raises(MemoryLimitError):
                    device.count(plan)
            else:
                assert device.count(plan) == wanted
            if strategy is Search:
                cached.clear()
                device.hint = "auto"
                device.strategies.search.compile(listed, lambda: None, counting=False)
                assert rows(device, listed) == rows(HostExecutor(1), listed) != {}
                assert cached[1:] == [0]
        assert not device.strategies.search.refused(plan)
        assert not device.strategies.search.refused(listed)


def without_memory_once(runs: list[int]) -> int:
    """Raise in the first of some runs."""
    if len(runs) == 1:
        raise MemoryLimitError("too little in one piece")
    return 0


@EMULATED
def test_rows_of_such_searches() -> None:
    plan, host = make_plan(pattern(4, LONG_TAIL, REPEATABLE), simple_graph(60, 300)), HostExecutor(1)
    with (
        emulator.installed(),
        mock.patch.object(SearchesBeside, "_seconds", return_value=(1.0, 0.0)),
        mock.patch.object(Search, "run", side_effect=Search.run, autospec=True) as searched,
    ):
        device = within(1 << 24)
        assert rows(device, plan) == rows(host, plan)
        device.strategies.beside.wait_for_all()
        assert not searched.called
        assert rows(device, plan) == rows(host, plan) != {}
        assert searched.called
        searched.side_effect, left = holding_memory, list[int]()

        def joined(self: Any, *arguments: Any) -> Iterator[Any]:
            left.append(self.device.memory.free_bytes())
            return run(self, *arguments)

        run = Join.run
        with mock.patch.object(Join, "run", joined):
            assert rows(device, plan) == rows(host, plan)
        assert left[0] > device.device.memory.budget // 2, "a join finds the room of the search that failed"
        assert device.strategies.of_all(plan, False).name == "join"


@EMULATED
def test_a_share_of_the_roots_and_a_limit_are_joined() -> None:
    """Shares are divided for a join, once for all runs, and so is the order of their rows."""
    plan = make_plan(pattern(4, LONG_TAIL, REPEATABLE), simple_graph(100, 1_500))
    with emulator.installed(), mock.patch.object(Strategies, "of_all", side_effect=AssertionError):
        device = within(1 << 17)
        assert sum(block.count for block in device.run(plan, Control(limit=7))) == 7
        assert sum(block.count for block in device.run(plan, Control(share=(0, 5)))) > 0


@EMULATED
@pytest.mark.parametrize("short", [True, False])
def test_lists_that_are_copied_whole_beside_segments_have_short_offsets(short: bool) -> None:
    """Where these have 32 bits: then they take half as much of a small budget."""
    rng = np.random.default_rng(5)
    ends = np.unique(rng.integers(0, 400, (2, 3_000)), axis=1)
    graph = DataGraph(ArraySource(ends[0], np.full(ends.shape[1], 400), ends[1], 401), layer="direct")
    plan = make_plan(pattern(3, [(0, 1, (400,), True), (1, 2, (400,), True), (0, 2, (400,), True)], REPEATABLE), graph)
    with (
        emulator.installed(),
        segmented(1),
        mock.patch.object(data_graph, "SHORT", 1 << 32 if short else 0),
        mock.patch.object(DeviceMemory, "upload", side_effect=DeviceMemory.upload, autospec=True) as uploaded,
    ):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        found = device.strategies.join.segments(plan, False)
        assert [each for each in found.slots if each.ranges > 1] == []
        assert rows(device, plan) == rows(HostExecutor(1), plan) != {}
        offsets = {id(each.offsets) for each in plan.partitions}
        copied = [call for call in uploaded.call_args_list if id(call.args[1]) in offsets]
        assert {np.dtype(call.args[2]) for call in copied} == {np.dtype(np.uint32 if short else np.int64)}


@EMULATED
def test_codes_that_no_step_asks_for_are_not_copied() -> None:
    """An undirected pattern reads lists with the codes of their edges; only what says which edge it is reads these."""
    ends = np.unique(np.sort(np.random.default_rng(3).integers(0, 80, (2, 400)), axis=0), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    graph = DataGraph(ArraySource(ends[0], np.ones(ends.shape[1]), ends[1], 80))
    both = [(0, 1, (1,), False), (1, 2, (1,), False)]
    plan = make_plan(pattern(3, both, REPEATABLE), graph)
    (partition,) = {id(each): each for each in plan.partitions}.values()
    assert partition.codes is not None
    assert (
        sum(each.nbytes for each in lists_of_plan(plan, False))
        == partition.offsets.nbytes + partition.neighbours.nbytes
    )
    with emulator.installed():
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        assert rows(device, plan) == rows(HostExecutor(1), plan) != {}
        memory = device.device.memory
        assert memory.is_cached("array int32", partition.neighbours)
        assert not memory.is_cached("array int64", partition.codes)


@EMULATED
def test_a_search_that_turns_out_slower_than_the_join_is_left() -> None:
    plan = make_plan(pattern(4, LONG_TAIL, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed(), mock.patch.object(SearchesBeside, "_seconds", return_value=(1.0, 0.1)):
        device = within(1 << 24)
        assert device.count(plan) == HostExecutor(1).count(plan) > 0
        device.strategies.beside.wait_for_all()
        for strategy, seconds in (("join", 0.01), ("search", 0.02), ("search", 0.02), ("search", 0.02)):
            for _ in range(3):
                device.strategies.beside.note(plan, True, strategy, seconds)
        assert device.strategies.of_all(plan, True).name == "join"
        for _ in range(9):
            device.strategies.beside.note(plan, True, "search", 0.001)
        assert device.strategies.of_all(plan, True).name == "search"


@EMULATED
def test_a_search_that_one_budget_refuses_is_tried_in_another() -> None:
    plan = make_plan(pattern(4, LONG_TAIL, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed():
        small, large = within(1 << 17), within(1 << 24)
        small.strategies.search.refuse(plan, "too little memory")
        assert small.strategies.no_search(plan) == "too little memory"
        assert large.strategies.no_search(plan) == ""


@EMULATED
@pytest.mark.parametrize("stored", [0.0, 2.0])
def test_intersections_are_stored_where_all_warps_have_room_for_theirs(stored: float) -> None:
    """Else a device would be almost idle."""
    edges = [*TRIANGLE, (0, 3, (1,), True), (1, 3, (1,), True), (2, 3, (1,), True)]
    plan = make_plan(pattern(4, edges, REPEATABLE, count_only=True), simple_graph(60, 900), counting="never")
    assert len(plan.program.shares) > 1
    with emulator.installed(), mock.patch.object(search_run, "STORED", stored):
        search = within(1 << 24).strategies.search
        assert bool(search.code(plan, counting=True, whole=True).text.shares) is (stored > 0)
        assert search.count(plan, Control(), None) * plan.automorphisms == HostExecutor(1).count(plan) > 0


@EMULATED
def test_a_join_by_segments_has_the_room_of_what_a_search_read() -> None:
    """Its lists are other copies: those that a search made are evicted, however often both take turns."""
    graph = simple_graph(200, 6_000)
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), graph, counting="never")
    wanted, lists = HostExecutor(1).count(plan), sum(each.nbytes for each in lists_of_plan(plan, True))
    by_segments = mock.patch.object(Residency, "away_seconds", return_value=1e9)
    in_parts = mock.patch.object(residency, "WHOLE", 0.0)
    with emulator.installed(), by_segments, in_parts, mock.patch.object(segmentation, "RANGES", (1, 2, 4)):
        device = within(lists + 50_000)
        assert device.strategies.join.segments(plan, True) is not None
        strategies, control = device.strategies, Control()
        for searched in (True, False, True, False):
            strategy = strategies.search if searched else strategies.join
            with strategies._using(plan, True, "search" if searched else "join"):
                assert strategy.count(plan, control, None) * plan.automorphisms == wanted > 0
            assert device.device.memory.used_bytes <= device.device.memory.budget


@EMULATED
@pytest.mark.parametrize("searched", [True, False])
def test_a_run_keeps_no_copies_of_its_lists_that_it_does_not_read(searched: bool) -> None:
    """A join by segments has copies of its own: neither they nor those of others may take the other's room."""
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), simple_graph(80, 900), counting="never")
    by_segments = mock.patch.object(Residency, "away_seconds", return_value=1e9)
    undivided = mock.patch.object(residency, "can_be_divided", return_value=False)
    with emulator.installed(), by_segments, undivided, mock.patch.object(residency, "WHOLE", 0.0):
        device = within(1 << 20)
        memory, (partition,) = device.device.memory, {id(each): each for each in plan.partitions}.values()
        elements = partition.neighbours
        assert device.strategies.join.segments(plan, True) is not None
        with device.strategies._using(plan, True, "search" if searched else "join"), memory.active():
            device.graph.array(elements)
            device.graph.lists(partition, True)
            memory.evict(None)
            assert memory.is_cached(copy_of(elements), elements) is searched
            assert memory.is_cached(data_graph.WHOLE_LISTS, elements) is not searched
