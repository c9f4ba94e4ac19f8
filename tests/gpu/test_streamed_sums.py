"""Sums in passes over lists that do not fit the device, real or emulated: the host's numbers, within any budget."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.counting import registers
from graphdb.gpu.counting.passes import ranges
from graphdb.gpu.counting.passes.ranges import Lengths, is_wide, least_room, passes_of
from graphdb.gpu.counting.passes.run import StreamedCount
from graphdb.gpu.counting.passes.streaming import Streaming
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause
from graphdb.plan.counting.plan import added_up
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.emulator.pool import PoolOfPieces
from tests.gpu.executors import WHERE
from tests.gpu.patterns import EXAMPLES, HOST, PATTERNS, Edges, graph_of, pattern_of
from tests.oracle.test_duplicates import counts_of

SIZE, EDGES = 300, 3_000
BETWEEN: Edges = ((0, 1), (0, 2), (0, 3), (4, 1), (4, 2), (4, 3))
SHAPES: dict[str, Edges] = {"square": PATTERNS["4-cycle"], "three between two": BETWEEN}


@pytest.fixture(params=WHERE)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where to count: the emulated device's memory comes in pieces, as a real one's does."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(mock.patch.object(emulator, "Pool", PoolOfPieces))
            stack.enter_context(emulator.installed())
        yield request.param


@contextmanager
def within(budget: int, hint: Any = "sums", shared: int = 512) -> Iterator[Any]:
    """An executor of so many bytes, whose blocks have so little shared memory that numbers are made range by range."""
    from graphdb.gpu.executor import GpuExecutor

    executor = GpuExecutor(0, memory_limit=budget, hint=hint)
    own = registers.BLOCKS * (shared + registers.RESERVED)
    limits = replace(executor.device.limits, shared=shared, processor_shared=own, processor_threads=256)
    with mock.patch.object(executor.device, "limits", limits):
        yield executor
        executor.device.memory.evict(None)
        assert executor.device.memory.used_bytes <= executor.device.memory.budget


def needed(plan: PhysicalPlan) -> int:
    """Bytes of a plan's lists by rank, of where they begin, and of a few numbers for each rank, about."""
    assert plan.counting is not None
    lists = {id(each): each for each in plan.counting.partitions.values()}.values()
    return sum(4 * len(each.neighbours) for each in lists) + 40 * SIZE


def prepared(executor: Any, plan: PhysicalPlan) -> StreamedCount:
    found = executor.device.memory.cached("count", plan.counting)
    assert isinstance(found, StreamedCount)
    return found


def directed(edges: Edges, label: int) -> Any:
    """A pattern whose edges have a direction: what roots have, and what is sent along, are two relations."""
    drawn = pattern_of(edges, label)
    clauses = (Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(range(len(edges)))),)
    return replace(drawn, clauses=clauses, edges=tuple(replace(edge, directed=True) for edge in drawn.edges))


@pytest.mark.parametrize(
    ("shape", "part"), [("square", 2), ("square", 4), ("square", 8), ("square", 16), ("three between two", 4)]
)
def test_small_budgets(device: str, shape: str, part: int) -> None:
    """What is copied is what was expected; memory that a run took is free after it."""
    graph, label = graph_of(SIZE, EDGES, part)
    plan = make_plan(pattern_of(SHAPES[shape], label), graph, counting="always")
    with within(needed(plan) // part) as executor:
        memory = executor.device.memory
        if part == 16:  # the offsets of one block take most of it
            with pytest.raises(MemoryLimitError, match=r"sums need [\d,]+ bytes .* of its budget of [\d,]+ are free"):
                executor.count(plan)
            return
        assert executor.count(plan) == HOST.count(plan) > 0
        before = memory.uploaded
        assert executor.count(plan) == HOST.count(plan)
        found = prepared(executor, plan)
        assert found.passes is not None
        assert memory.uploaded - before == found.passes.moved
        assert len(found.passes.bounds) > 2 or part == 2
        assert memory.used_bytes == 0
        told = re.search(r"sums in (\d+) pass.* over 0 MiB of lists, 0 MiB over the link", executor.describe(plan))
        assert told is not None
        assert int(told[1]) <= len(found.passes.bounds) - 1  # arrays of a few bytes take 512


@EXAMPLES
@example(1, 3.0, SHAPES["square"], False, "one for all", 256)
@example(2, 2.0, SHAPES["three between two"], True, "none", 1024)
@example(3, 4.0, SHAPES["square"], True, "none", 4096)
@given(
    seed=st.integers(0, 1 << 32),
    part=st.sampled_from([2.0, 3.0, 5.0]),
    edges=st.sampled_from([*SHAPES.values(), ((0, 1), (2, 1), (2, 3), (0, 3)), ((0, 1), (1, 2), (3, 2), (0, 3))]),
    one_way=st.booleans(),
    sets=st.sampled_from(["none", "one for all", "several"]),
    shared=st.sampled_from([256, 1024, 4096]),
)
def test_random_graphs(
    device: str, seed: int, part: float, edges: Edges, one_way: bool, sets: str, shared: int
) -> None:
    """With and without directions and candidates, with numbers of 16 and of 32 bits, of a range of ranks or of all."""
    rng = np.random.default_rng(seed)
    graph, label = graph_of(SIZE, EDGES, seed % 1000)
    several = [np.sort(rng.choice(SIZE, int(rng.integers(5, SIZE)), replace=False)) for _ in range(5)]
    chosen = {"none": (), "one for all": several[:1] * (1 + max(map(max, edges))), "several": several[:3]}[sets]
    pattern = directed(edges, label) if one_way else pattern_of(edges, label, tuple(chosen))
    plan = make_plan(pattern, graph, counting="always")
    with within(int(needed(plan) / part), shared=shared) as executor, mock.patch.object(registers, "RANGED", 0.0):
        assert executor.count(plan) == HOST.count(plan)


@pytest.mark.parametrize("numbers", [16, 32])
def test_more_ranks_than_two_bytes_number(device: str, numbers: int) -> None:
    """Elements have a second plane; counted from some roots, which any numbers of each rank tell."""
    random, ranks = np.random.default_rng(3), 70_000
    ends = np.stack([np.arange(ranks), (random.random(ranks) ** 3 * ranks).astype(np.int64)])
    more = np.stack([random.integers(ranks - 500, ranks, 2_000), random.integers(0, 40, 2_000)])
    ends = np.concatenate([ends, more], axis=1)
    ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    graph = DataGraph(ArraySource(ends[0], np.full(ends.shape[1], ranks), ends[1], ranks + 1))
    plan = make_plan(pattern_of(SHAPES["square"], ranks), graph, counting="always")
    assert plan.counting is not None
    with within(4_000_000, shared=1 << 15) as executor, ExitStack() as stack:
        if numbers == 32:
            patched = mock.patch("graphdb.gpu.counting.passes.run.span_of", return_value=(1 << 13, False))
            stack.enter_context(patched)
        count = StreamedCount(executor.device, executor.graph, plan.counting, _found(executor, plan))
        ranked = count._ranks.relations[count.found.roots]
        for share in ((0, 30), (ranks // 2, ranks // 2 + 60), (len(count._ranks.vertices) - 60, len(ranked.less))):
            totals = count.totals(Control(), share)
            assert totals is not None
            assert count.passes is not None
            assert any(is_wide(first, last) for first, last in pairwise(count.passes.bounds))
            wanted = 0
            for root in range(*share):
                lists = [ranked.ids[ranked.begin[y] : ranked.begin[y + 1]] for y in _list(ranked, root)]
                got = np.bincount(np.concatenate([*lists, np.empty(0, np.int32)]), minlength=root + 1)[: root + 1]
                wanted += 2 * int((got[:root] ** 2).sum()) + int(got[root]) ** 2
            assert sum(totals[part] for part in count.found.sent) == wanted > 0


def _found(executor: Any, plan: PhysicalPlan) -> Any:
    assert plan.counting is not None
    streaming = Streaming.of(executor.graph, plan.counting, anyway=True)
    assert streaming is not None
    return streaming.found


def _list(ranked: Any, root: int) -> Any:
    return ranked.ids[ranked.begin[root] : ranked.begin[root + 1]]


def test_shares_of_the_roots_add_up(device: str) -> None:
    graph, label = graph_of(SIZE, EDGES, 1)
    plan = make_plan(pattern_of(SHAPES["square"], label), graph, counting="always")
    assert plan.counting is not None
    with within(needed(plan) // 3) as executor:
        assert executor.count(plan) == HOST.count(plan)
        found = prepared(executor, plan)
        division = found.division()
        assert len(division.weights) == division.units
        parts = [found.totals(Control(), share) for share in ((0, 40), (40, 40), (40, 290), (290, division.units))]
        sums = {part: sum(each[part] for each in parts if each) for part in parts[0] or {}}
        assert added_up(plan.counting.terms, sums) == HOST.count(plan)


@pytest.mark.parametrize(
    ("shape", "part", "one_way"), [("square", 2, False), ("square", 5, True), ("square", 8, False)]
)
def test_counts_by_vertex(device: str, shape: str, part: int, one_way: bool) -> None:
    """Numbers of each root beside what is added up of edges; shares of the roots are theirs alone."""
    graph, label = graph_of(SIZE, EDGES, part)
    sets = (None, np.arange(0, SIZE, 2)) if part == 5 else ()
    pattern = directed(SHAPES[shape], label) if one_way else pattern_of(SHAPES[shape], label, sets)
    for vertex in ("v0",) if one_way else ("v0", "v1"):
        counted = replace(pattern, outputs=(vertex,), count_only=False, duplicates="count")
        wanted = {root: number for (root,), number in counts_of(counted, graph, HOST, "never").items()}
        plan = make_plan(counted, graph, counting="always")
        assert plan.counting is not None
        with within(needed(plan) // part + 8 * SIZE) as executor:
            found = executor._counter.count_by_vertex(plan, Control())
            assert dict(zip(*(column.tolist() for column in found), strict=True)) == wanted
            count = prepared(executor, plan)
            assert count.passes is not None
            assert len(count.passes.bounds) > 2 or part == 2
            units = count.division().units
            shares = [count.run_by_vertex(Control(), each) for each in ((0, 40), (40, 40), (40, units))]
            assert sum(len(each[0]) for each in shares if each) == len(wanted)
            assert {v: n for each in shares if each for v, n in zip(*map(list, each), strict=True)} == wanted


def test_memory_that_others_have_taken(device: str) -> None:
    """Then passes are more, and smaller; a run that is stopped leaves nothing behind."""
    graph, label = graph_of(SIZE, EDGES, 2)
    plan = make_plan(pattern_of(SHAPES["square"], label), graph, counting="always")
    with within(needed(plan) // 2) as executor:
        memory = executor.device.memory
        assert executor.count(plan) == HOST.count(plan)
        before = prepared(executor, plan).passes
        with executor.device.active():
            taken = memory.empty(int(0.55 * memory.budget), np.uint8)
        assert executor.count(plan) == HOST.count(plan)
        after = prepared(executor, plan).passes
        assert before is not None
        assert after is not None
        assert after.room < before.room
        assert len(after.bounds) > len(before.bounds)
        del taken
        stopped = Control()
        with (
            mock.patch.object(StreamedCount, "_launch", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            executor.count(plan, stopped)
        assert executor.count(plan) == HOST.count(plan)
        assert memory.used_bytes == 0


def test_sums_that_fit_no_more_beside_their_numbers_are_made_in_passes(device: str) -> None:
    graph, label = graph_of(SIZE, EDGES, 4)
    plan = make_plan(pattern_of(SHAPES["square"], label), graph, counting="always")
    with within(needed(plan) * 2) as executor:
        plain = executor.count(plan)
        assert not isinstance(executor.device.memory.cached("count", plan.counting), StreamedCount)
    with (
        within(needed(plan) * 2) as executor,
        mock.patch("graphdb.gpu.counting.counter.DeviceCount", side_effect=MemoryLimitError("too little")),
    ):
        assert executor.count(plan) == plain == HOST.count(plan)
        prepared(executor, plan)


def test_auto_takes_sums_in_passes_where_they_are_expected_sooner(device: str) -> None:
    graph, label = graph_of(SIZE, EDGES, 5)
    plan = make_plan(pattern_of(SHAPES["square"], label), graph, counting="always")
    with within(needed(plan) // 2, hint="auto") as executor:
        for cost, way in ((1e12, "sums in"), (1.0, "join")):
            assert way in executor.describe(replace(plan, cost=cost))
        assert executor.count(replace(plan, cost=1e12)) == HOST.count(plan)
        prepared(executor, plan)


@pytest.mark.parametrize(
    ("name", "part"),
    [("square with a leaf", 1.6), ("diamond", 3.2)],
)
def test_other_sums_read_what_does_not_fit_in_host_memory(device: str, name: str, part: float) -> None:
    """Beside it stand the lists that cliques are counted along; what is linear takes no vectors."""
    edges = {**PATTERNS, "square with a leaf": ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4))}[name]
    graph, label = graph_of(500, 8_000, 6)
    plan = make_plan(pattern_of(edges, label), graph, counting="always")
    with within(int(needed(plan) / part), shared=224 << 10) as executor:
        with mock.patch.object(executor.device, "processors", max(executor.device.processors, 132)):  # tasks for each
            assert executor.count(plan) == HOST.count(plan) > 0
        assert executor.graph.residency.summary


@given(
    lengths=st.lists(st.integers(0, 2_000), min_size=1, max_size=60),
    room=st.integers(0, 20_000),
    mirrored=st.booleans(),
    narrow=st.sampled_from([4, 1 << 16]),
)
def test_passes_cover_all_ranks_and_roots(lengths: list[int], room: int, mirrored: bool, narrow: int) -> None:
    """Within the room, whatever the lists are; there are none just where one list, or one rank's, takes too much."""
    roots = np.sort(np.array(lengths, np.int64))[::-1]
    known = Lengths(roots, roots, mirrored)
    with mock.patch.object(ranges, "NARROW", narrow):
        found = passes_of(known, room)
        assert (found is not None) == (room >= least_room(known))
        if found is None:
            return
    assert found.bounds[0] == 0
    assert found.bounds[-1] == len(roots)
    assert found.room <= room
    for number, (low, high) in enumerate(pairwise(found.bounds)):
        assert low < high
        own = [found.segments[segment] for at, segment in found.steps if at == number]
        assert own[0][0] == (low if mirrored else 0)
        assert own[-1][1] == len(roots)
        assert all(one[1] == other[0] for one, other in pairwise(own))


def test_a_quarter_of_the_memory_copies_at_most_three_times_the_lists() -> None:
    """Of lists as an R-MAT graph has them, and an eighth hardly more."""
    ranks = np.arange(1, 200_001)
    lengths = Lengths(*(np.maximum(3e5 / ranks**0.75, 4.0).astype(np.int64),) * 2, True)
    needed = lengths.lists_bytes + 28 * len(ranks)
    for part, times in ((2, 2.0), (4, 3.0), (8, 3.5)):
        found = passes_of(lengths, int(0.9 * needed / part))
        assert found is not None
        assert lengths.lists_bytes < found.moved <= times * lengths.lists_bytes
