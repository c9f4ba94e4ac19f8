"""Where lists stand that a plan is searched in over again: placed by what it reads, in all the room that a search leaves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.common.errors import MemoryLimitError
from graphdb.execute.host import HostExecutor
from graphdb.gpu import beside
from graphdb.gpu.beside import SearchesBeside
from graphdb.gpu.card import TYPICAL
from graphdb.gpu.code.launch import Module
from graphdb.gpu.data import divided, searched
from graphdb.gpu.data import graph as data_graph
from graphdb.gpu.data.bit_packed import Packing
from graphdb.gpu.data.pages import hottest
from graphdb.gpu.data.residency import Residency, lists_of, lists_of_plan, lists_read
from graphdb.gpu.data.searched import LinkBytes, SearchedLists, Spread, link_bytes
from graphdb.gpu.join.run import Join
from graphdb.gpu.search import launches
from graphdb.gpu.search import run as search_run
from graphdb.gpu.search.reordered import ReorderedSearch
from graphdb.gpu.search.run import Search
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.emulator.pool import PoolOfPieces
from tests.execute.test_host import REPEATABLE, pattern
from tests.gpu.executors import EMULATED, SMALL, device_executor
from tests.gpu.test_device import TRIANGLE
from tests.gpu.test_pages import simple_graph

TAILED = [*TRIANGLE, (2, 3, (1,), True)]


@settings(deadline=None)
@given(
    parts=st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=1, max_size=12), quota=st.integers(-2, 99)
)
def test_a_part_that_does_not_fit_is_left_out_and_smaller_ones_are_not(
    parts: list[tuple[float, int]], quota: int
) -> None:
    heats, sizes = np.array([heat for heat, _ in parts]), np.array([size for _, size in parts])
    (chosen,) = hottest([heats], [sizes], quota)
    left = quota - int(sizes[chosen].sum())
    assert not chosen.any() or left >= 0
    assert (sizes[~chosen] > left).all()


@EMULATED
def test_an_array_smaller_than_a_page_takes_its_own_bytes() -> None:
    """Else a budget of less than a page has no room for it; and it needs no pages."""
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), simple_graph(20, 30), counting="never")
    with emulator.installed(), mock.patch.object(emulator.Pages, "page", 1 << 16):
        device: Any = device_executor("join", SMALL["join"], 1 << 16)
        residency = device.graph.residency
        lists = undivided(plan)[0]
        (size,) = residency.parts(lists).sizes
        assert size == lists.elements.nbytes < 1 << 16
        with mock.patch.object(Residency, "fits", return_value=False):
            residency.place([lists])
        assert residency.is_paged(lists.elements)
        assert residency.paged(lists.elements) is None


def undivided(plan: Any) -> list[Any]:
    """The lists of a plan, as if they could not be divided."""
    with by_pages():
        return lists_of_plan(plan, True)


def by_pages() -> Any:
    """Lists are not divided."""
    return mock.patch("graphdb.gpu.data.residency.can_be_divided", return_value=False)


def choosing() -> Any:
    """Return a device that joins, and searches where that is expected to be sooner."""
    device: Any = device_executor("join", SMALL["join"], 1 << 24)
    device.strategies.by_name["search"] = Search(device.device, device.graph, **SMALL["search"])
    device.hint = "auto"
    return device


@contextmanager
def searching(part: int, plan: Any, beside: int = 8_000) -> Iterator[Any]:
    """A device that searches, with room for such a part of a plan's lists, which are placed anew at once."""
    budget = sum(each.nbytes for each in lists_of_plan(plan, plan.count_only)) // part
    placed_at_once = mock.patch.object(searched, "GATHERED", math.inf)
    with emulator.installed(), placed_at_once, mock.patch.object(search_run, "SMALL", 1 << 10):
        device: Any = device_executor("search", SMALL["search"] | {"blocks": 4}, budget + beside)
        device.strategies.by_name["join"] = Join(device.device, device.graph, **SMALL["join"])
        device.device.rates = replace(TYPICAL, upload=math.inf)
        yield device


@EMULATED
@pytest.mark.parametrize("by_vertices", [True, False], ids=["divided", "pages"])
def test_lists_are_placed_for_a_plan_that_is_searched(by_vertices: bool) -> None:
    graph = simple_graph(120, 3_000)
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), graph, counting="never")
    wanted = HostExecutor(1).count(plan)
    with nullcontext() if by_vertices else by_pages(), searching(2, plan) as device:
        residency, memory = device.graph.residency, device.device.memory
        lists = lists_read(plan, True)
        assert {each.partition is not None for each in lists} == {by_vertices}
        residency.place_for(plan, True)
        joined = [residency.placed(each) for each in lists]
        for _ in range(3):
            assert device.count(plan) == wanted > 0
        placed = [residency.placed(each) for each in lists]
        assert all(each.searched for each in placed)
        assert sum(each.here for each in placed) > 0.0
        if by_vertices:  # in fewer bits, so that less comes from host memory though a join leaves as much room
            assert all(each.packing is not None for each in placed)
            assert sum(each.resident.sum() for each in placed) > sum(each.resident.sum() for each in joined)
        else:
            assert sum(each.nbytes for each in placed) > sum(each.nbytes for each in joined)
        assert memory.used_bytes <= memory.budget
        # A join needs room for its tables.
        device.hint = "join"
        assert device.count(plan) == wanted
        assert not any(each.searched for each in map(residency.placed, lists) if each is not None)
        assert memory.used_bytes <= memory.budget
        device.hint = "search"
        for _ in range(4):
            assert device.count(plan) == wanted
        assert all(residency.placed(each).searched for each in lists)
        memory.evict(None)
        assert memory.used_bytes == memory.cached_bytes, "a placement that was given up left its copies behind"


@EMULATED
def test_a_search_whose_lists_leave_it_too_little_room_is_not_refused() -> None:
    """Its lists leave it more from then on, at last as much as those of a join."""
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), simple_graph(2_000, 12_000), counting="never")
    wanted = HostExecutor(1).count(plan)
    own_order = mock.patch.object(ReorderedSearch, "looked", return_value=True)
    likely = mock.patch.object(SearchesBeside, "_seconds", return_value=(1e6, 0.0))
    with own_order, likely, searching(6, plan) as device:
        device.strategies.search.compile(plan, lambda: None, counting=True)
        device.hint = "auto"
        lists = lists_read(plan, True)
        shares, refused = [], ""
        while not refused:
            with mock.patch.object(device.strategies.join, "count", side_effect=AssertionError):
                for _ in range(3):
                    assert device.count(plan) == wanted
            placed = [device.graph.residency.placed(each) for each in lists]
            shares.append(sum(each.nbytes for each in placed))
            with mock.patch.object(Search, "count", side_effect=MemoryLimitError("too little")):
                assert device.count(plan) == wanted
            refused = device.strategies.search.refused(plan)
        assert len(shares) > 2
        assert shares == sorted(shares, reverse=True)
        assert not any(each.searched for each in placed)


def of_two_labels(vertices: int, edges_each: int) -> list[Any]:
    """Counts that read lists of one label, of another, and of both; of one graph."""
    drawn = [np.random.default_rng(seed).integers(0, vertices, (2, edges_each)) for seed in (3, 4)]
    ends = [np.array(divmod(np.unique(a * vertices + b), vertices)) for a, b in drawn]
    labels = np.repeat([vertices, vertices + 1], [each.shape[1] for each in ends])
    source, target = np.concatenate(ends, axis=1)
    graph = DataGraph(ArraySource(source, labels, target, vertices + 2), layer="direct")
    shapes = [vertices + np.array(each) for each in ((0, 0, 0), (1, 1, 1), (0, 1, 0))]
    edges = [
        [(a, b, (int(label),), True) for (a, b), label in zip(((0, 1), (1, 2), (0, 2)), each, strict=True)]
        for each in shapes
    ]
    return [make_plan(pattern(3, each, REPEATABLE, count_only=True), graph, counting="never") for each in edges]


@EMULATED
@pytest.mark.parametrize("hint", ["join", "search"])
def test_lists_that_plans_placed_apart_are_placed_anew_where_they_do_not_fit_together(hint: str) -> None:
    """Each plan places what no other did, in all the room."""
    one, another, both = plans = of_two_labels(250, 5_000)
    with searching(4, both) as device:
        device.hint, memory = hint, device.device.memory
        for plan in (one, another, both, *plans):
            assert device.count(plan) == HostExecutor(1).count(plan) > 0
            assert memory.used_bytes <= memory.budget


@EMULATED
@pytest.mark.parametrize("part", [2, 4, 8, 16])
def test_plans_in_turns_move_no_more_than_they_read(part: int) -> None:
    """In memory that comes in pieces, of which each plan leaves others: none is refused, and none thrashes."""
    plans, launch = of_two_labels(20_000, 200_000), Module.launch

    def without_search(self: Module, name: str, *arguments: Any, **how: Any) -> None:
        if name != "search":  # whose matches are found in other tests
            launch(self, name, *arguments, **how)

    in_pieces = mock.patch.object(emulator, "Pool", PoolOfPieces)
    with in_pieces, searching(part, plans[2]) as device, mock.patch.object(Module, "launch", without_search):
        memory, read = device.device.memory, 0.0
        for number in np.random.default_rng(part).integers(0, 3, 40).tolist():
            assert device.count(plans[number]) == 0
            read += sum(each.nbytes for each in lists_of_plan(plans[number], True))
            assert memory.used_bytes <= memory.budget
        assert isinstance(memory.pool, PoolOfPieces)
        assert memory.uploaded <= 3 * read


@EMULATED
@pytest.mark.parametrize("packing", [None, Packing(0, 9)], ids=["ids", "packed"])
def test_lists_are_copied_in_pieces_where_what_is_free_is_in_pieces(packing: Packing | None) -> None:
    """And found in them, wherever they stand."""
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), simple_graph(120, 3_000), counting="never")
    with searching(2, plan) as device, mock.patch.object(divided, "PIECE", 0):
        memory, empty, asked = device.device.memory, device.device.memory.empty, list[int]()

        def pieces(shape: Any, dtype: Any) -> Any:
            asked.append(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            if len(asked) == 2:  # the first is the offset layer's
                raise MemoryLimitError("no piece is so large")
            return empty(shape, dtype)

        place = device.graph.residency.place_for
        (lists,) = place(plan, True)
        placed = device.graph.residency.placed(lists)
        with memory.active(), mock.patch.object(memory, "empty", pieces):
            copy = divided.divide(memory, lists.partition, placed.blocks, placed.resident, packing)
        assert len(copy.here) == 2
        assert max(asked[2:]) < asked[1]
        with mock.patch.object(data_graph, "divide", return_value=copy):
            assert device.count(plan) == HostExecutor(1).count(plan) > 0


@EMULATED
def test_a_search_asks_once_for_memory_that_is_not_in_one_piece() -> None:
    """For each time in vain, the pool gives all back that it has, and Python looks for garbage."""
    plan = make_plan(pattern(4, TAILED, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed(), mock.patch.object(Module, "resident", return_value=8):
        device = choosing()
        search = device.strategies.by_name["search"] = Search(device.device, device.graph, steal="across", depth=0)
        memory, empty, vain = device.device.memory, device.device.memory.empty, list[int]()

        def pieces(shape: Any, dtype: Any) -> Any:
            if np.dtype(dtype) == np.uint32 and np.prod(shape) * 4 > 400:
                vain.append(int(np.prod(shape)))
                raise MemoryLimitError("no piece is so large")
            return empty(shape, dtype)

        with mock.patch.object(memory, "empty", pieces):
            counts, times = [], []
            for _ in range(3):
                counts.append(search.count(plan, Control(), None) * plan.automorphisms)
                times.append(len(vain))
        assert set(counts) == {HostExecutor(1).count(plan)}
        assert times[0] > 0
        assert times[1:] == times[:1] * 2
        assert 0 < search.launched < 8


@EMULATED
def test_a_search_that_copies_lists_that_were_placed_for_it_is_not_measured() -> None:
    """Else the second one that did took so long that the plan was joined ever after."""
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), simple_graph(120, 3_000), counting="never")
    with searching(2, plan) as device, mock.patch.object(SearchesBeside, "note") as noted:
        those, moved = device.strategies.beside, []
        assert those is not None
        for _ in range(4):
            before = [device.graph.residency.placed(each) for each in lists_read(plan, True)]
            noted.reset_mock()
            assert device.count(plan) > 0
            after = [device.graph.residency.placed(each) for each in lists_read(plan, True)]
            moved.append(before != after)
            assert noted.called is not any(each.searched for each in after if before != after)
        assert any(moved)
        assert not moved[-1]


@EMULATED
def test_a_search_that_got_too_little_memory_is_tried_again() -> None:
    """After one run, then two, then four: others may have had the memory that it needs."""
    plan = make_plan(pattern(4, TAILED, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed(), mock.patch.object(SearchesBeside, "_seconds", return_value=(1e6, 0.0)):
        device = choosing()
        device.strategies.search.compile(plan, lambda: None, counting=True)
        with mock.patch.object(Search, "count", side_effect=MemoryLimitError("too little")) as searched:
            tried = []
            for _ in range(16):
                assert device.count(plan) == HostExecutor(1).count(plan) > 0
                tried.append(searched.called)
                searched.reset_mock()
        assert [number for number, each in enumerate(tried) if each] == [0, 2, 5, 10]
        with mock.patch.object(Search, "count", side_effect=Search.count, autospec=True) as searched:
            for _ in range(4):
                assert device.count(plan) == HostExecutor(1).count(plan)
        assert searched.called


@EMULATED
def test_lists_are_not_placed_anew_before_that_pays_nor_under_a_run() -> None:
    graph = simple_graph(120, 3_000)
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), graph, counting="never")
    budget = sum(each.nbytes for each in lists_of_plan(plan, True)) // 2
    with emulator.installed(), mock.patch.object(Residency, "replace") as replaced:
        device: Any = device_executor("search", SMALL["search"], budget + 8_000)
        lists, rates = SearchedLists(device.device.memory, device.graph.residency), device.device.rates
        device.graph.residency.place_for(plan, True)
        wanted = lists._wanted(plan, True, 0, rates)
        assert wanted is not None
        placed = [device.graph.residency.placed(each) for each in wanted.lists]
        loses = (wanted.bytes(placed) - wanted.least) / rates.linked
        assert loses > 0
        runs = int(wanted.cost / loses)
        for _ in range(runs):
            lists.place(plan, True, 0, rates)
        assert not replaced.called
        with device.device.memory.using([wanted.lists[0].original]):
            lists.place(plan, True, 0, rates)
            assert not replaced.called
        lists.place(plan, True, 0, rates)
        assert replaced.called
        of_others = [replace(each, searched=True) for each in placed]
        with mock.patch.object(Residency, "placed", side_effect=2 * (2 * runs + 3) * of_others):
            for _ in range(runs + 1):  # what another plan's searches read is lost to these
                lists.place(plan, True, 0, rates)
            assert replaced.call_count == 2
            for _ in range(runs + 1):  # so that twice as much must be lost before the next time
                lists.place(plan, True, 0, rates)
            assert replaced.call_count == 2


@EMULATED
def test_fewer_blocks_search_where_work_that_is_given_away_leaves_no_room() -> None:
    """Of a budget of which it would take more than all; they find the same."""
    plan = make_plan(pattern(4, TAILED, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed(), mock.patch.object(launches, "LETTER", ("step", "low", "high", "on") + ("",) * 250):
        device: Any = device_executor("search", {"steal": "across", "depth": 2}, 1 << 15)
        assert device.count(plan) == HostExecutor(1).count(plan) > 0
        assert device.strategies.no_search(plan) == ""


@EMULATED
def test_fewer_blocks_search_where_what_is_free_is_in_pieces() -> None:
    """None of which has room for the work that all blocks may give away: the search does not begin again."""
    plan = make_plan(pattern(4, TAILED, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed():
        device: Any = device_executor("search", {"steal": "across", "depth": 2, "pool_rows": 64}, 1 << 22)
        memory, asked, empty = device.device.memory, list[int](), device.device.memory.empty
        assert device.count(plan) == HostExecutor(1).count(plan) > 0

        def pieces(shape: Any, dtype: Any) -> Any:
            asked.append(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            if most and asked[-1] > most:
                raise MemoryLimitError("no piece is so large")
            return empty(shape, dtype)

        for most in (0, 1):
            with mock.patch.object(memory, "empty", pieces):
                most = most and max(asked) - 1
                assert device.count(plan) == HostExecutor(1).count(plan)
        assert asked.count(max(asked)) == 2, "asked for once with all blocks, and granted where there is room"
        assert not device.strategies.search.refused(plan)


def test_what_a_search_reads_of_lists() -> None:
    """Lists that all partial matches are searched in are read more than those that are scanned once."""
    vertices = np.arange(2_000)
    near = np.stack([np.repeat(vertices, 5), (np.repeat(vertices, 5) + np.tile([1, 2, 3, 5, 8], 2_000)) % 2_000])
    few = np.stack([vertices, 2_000 + vertices % 4])
    source, target = np.concatenate([near, few], axis=1)
    labels = np.repeat([2_004, 2_005], [10_000, 2_000])
    graph = DataGraph(ArraySource(source, labels, target, 2_006))
    edges = [(0, 1, (2_004,), True), (0, 2, (2_005,), True), (1, 2, (2_005,), True)]
    plan = make_plan(pattern(3, edges, REPEATABLE, count_only=True), graph, counting="never")
    read = link_bytes(plan, [None] * len(plan.partitions))
    sizes = [each.neighbours.nbytes for each in plan.partitions]
    moved = [each.scanned + sum(each.found.values()) for each in read]
    assert all(each.offsets > 0 for each in read)
    assert min(moved) > 0
    assert max(moved) > 2 * min(sizes)


def test_lists_are_read_as_often_as_their_vertices_are_found() -> None:
    """Among the neighbours by which they are bound, however long their own lists are."""
    # Everybody follows the first 16; all like two things, and the last sixteen all of them.
    people, things = np.arange(160), 160 + np.arange(40)
    follows = np.stack([np.repeat(people, 16), np.tile(people[:16], 160)])
    likes = np.concatenate(
        [
            np.stack([np.repeat(people[:144], 2), things[np.arange(288) % 40]]),
            np.stack([np.repeat(people[144:], 40), np.tile(things, 16)]),
        ],
        axis=1,
    )
    source, target = np.concatenate([follows, likes], axis=1)
    labels = np.repeat([200, 201], [follows.shape[1], likes.shape[1]])
    graph = DataGraph(ArraySource(source, labels, target, 202), layer="direct")
    partition = graph.partition((201,), "out")
    parts = Residency(mock.Mock()).parts(lists_of(partition, coded=False)[0])
    of_one_kind, of_both = LinkBytes(), LinkBytes()
    spread = Spread(graph.partition((200,), "out"))
    of_one_kind.found[None] = of_both.found[spread] = 1000.0
    assert of_one_kind.of_parts(parts, partition)[1:].argmax() == 9
    found = of_both.of_parts(parts, partition)[1:]
    assert found.tolist() == pytest.approx([1000.0] + [0.0] * 9)
    assert spread.mean_bytes(partition, 4.0) == 8.0
    assert Spread(partition, extended=True).mean_bytes(partition, 4.0) == pytest.approx(
        (288 * 8 + 640 * 160) / (288 + 640)
    )


@EMULATED
def test_a_join_that_takes_longer_than_was_expected_has_its_search_compiled() -> None:
    plan = make_plan(pattern(4, TAILED, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed(), mock.patch.object(SearchesBeside, "_seconds", return_value=(0.0011, 0.001)):
        device = choosing()
        those = device.strategies.beside
        with mock.patch.object(those, "_seconds", return_value=(0.0011, 0.0012)):
            assert not those.saved(plan, True)
            for _ in range(4):
                those.note(plan, True, "join", 0.002 + beside.BESIDE * beside.COMPILED / 2)
            assert those.saved(plan, True), "though a join was expected to be sooner"
        with mock.patch.object(those, "_compile") as compiled:
            those.missed(plan, True)
            assert not compiled.called
            those.missed(plan, True)
            assert compiled.called
        assert device.count(plan, Control()) == HostExecutor(1).count(plan)


@EMULATED
def test_joins_by_segments_that_are_expected_to_cost_nothing_are_measured() -> None:
    """What is copied may be expected to save as much as it takes: the search is compiled once that turns out wrong."""
    plan = make_plan(pattern(4, TAILED, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    with emulator.installed(), mock.patch.object(Join, "segments", return_value=SimpleNamespace(seconds=-1.0)):
        those = choosing().strategies.beside
        assert those.crowded(plan, True)
        for _ in range(4):
            those.note(plan, True, "join", 1.0)
        assert those.saved(plan, True) > 0.9


@EMULATED
def test_a_join_that_is_measured_beside_a_known_search_ends_unless_it_takes_twice_as_long() -> None:
    """Else it was overtaken by what was expected of the search whenever it was tried, and never known."""
    plan = make_plan(pattern(4, TAILED, REPEATABLE, count_only=True), simple_graph(60, 300), counting="never")
    now = 0.0
    with (
        emulator.installed(),
        mock.patch.object(SearchesBeside, "_seconds", return_value=(0.04, 0.001)),
        mock.patch.object(SearchesBeside, "ready", return_value=True),
        mock.patch.object(beside.time, "monotonic", side_effect=lambda: now),
    ):
        those = choosing().strategies.beside
        overtaken = those.overtakes(plan, True, lambda: True)
        now = 0.01
        assert overtaken()
        for _ in range(4):
            those.note(plan, True, "search", 0.05)
        overtaken = those.overtakes(plan, True, lambda: True)
        now = 0.1
        assert not overtaken()
        now = 0.12
        assert overtaken()
