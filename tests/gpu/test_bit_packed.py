"""Lists in as many bits a neighbour as their partition needs: how they are packed, and searches that read them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.gpu.card import TYPICAL
from graphdb.gpu.data import bit_packed, searched
from graphdb.gpu.data import graph as data_graph
from graphdb.gpu.data.bit_packed import BLOCK_WORDS, ELSEWHERE, MOST, TOGETHER, Packing, packing_of
from graphdb.gpu.data.divided import VertexBlocks, divide
from graphdb.gpu.data.pages import hottest
from graphdb.gpu.data.pinned import Pinned
from graphdb.gpu.data.residency import Residency, lists_read
from graphdb.gpu.join.run import Join
from graphdb.gpu.search.run import Search
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.gpu.executors import EMULATED, SMALL, WHERE, device_executor, paged
from tests.gpu.patterns import EXAMPLES, PATTERNS, graph_of, pattern_of
from tests.gpu.test_executors import check
from tests.oracle.strategies import Case, cases

HOST = HostExecutor(1)


@settings(deadline=None)
@given(
    bits=st.integers(1, 32), least=st.integers(0, 1 << 40), dtype=st.sampled_from([np.int32, np.int64]), data=st.data()
)
def test_numbers_stand_one_behind_the_other(bits: int, least: int, dtype: Any, data: st.DataObject) -> None:
    least = min(least, np.iinfo(dtype).max - (1 << bits) + 1)
    if least < 0:
        return
    numbers = data.draw(st.lists(st.integers(0, (1 << bits) - 1), max_size=70))
    packing = Packing(least, bits)
    words = packing.pack(np.array(numbers, np.int64).astype(dtype) + dtype(least))
    assert len(words) == packing.words(len(numbers)) == math.ceil(len(numbers) * bits / 32)
    whole = int.from_bytes(words.astype("<u4").tobytes(), "little")
    assert whole == sum(number << place * bits for place, number in enumerate(numbers))


def test_what_would_gain_little_is_not_packed() -> None:
    def partition(*targets: int) -> Any:
        found = np.array(targets, np.int64)
        source = ArraySource(np.zeros(len(found)), np.full(len(found), 1 << 40), found, (1 << 40) + 1)
        return mock.Mock(neighbours=found, source=source)

    assert packing_of(partition(7, 9, 12)) == Packing(7, 3)
    assert packing_of(partition(1 << 39)) == Packing(1 << 39, 1)
    assert packing_of(partition(5, 5 + (1 << MOST) - 1)) == Packing(5, MOST)
    assert packing_of(partition(5, 5 + (1 << MOST))) is None
    assert packing_of(partition()) is None


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=70),
    short=st.sampled_from([20, 60, bit_packed.SHORT]),
    data=st.data(),
)
def test_packed_lists_are_found_wherever_they_stand(lengths: list[int], short: int, data: st.DataObject) -> None:
    """By what stands for their offsets, as ``list_in`` of ``elements.cuh`` reads it."""
    source = np.repeat(np.arange(len(lengths)), lengths)
    target = np.concatenate([np.arange(length) for length in lengths]).astype(np.int64) + 100
    if not len(source):
        return
    graph = DataGraph(ArraySource(source, np.full(len(source), 200), target, 201), layer="direct")
    partition = graph.partition((200,), "out")
    blocks, packing = VertexBlocks.of(partition), packing_of(partition)
    assert packing is not None
    resident = np.array(
        data.draw(st.lists(st.booleans(), min_size=1 + len(blocks.heats), max_size=1 + len(blocks.heats)))
    )
    with emulator.installed(), mock.patch.object(bit_packed, "SHORT", short):
        device: Any = device_executor("join", SMALL["join"], 1 << 24)
        with device.device.active():
            copy = divide(device.device.memory, partition, blocks, resident, packing)
        assert len(copy.header) == blocks.header_words(packing)
        words = np.asarray(copy.header.values if isinstance(copy.header, Pinned) else copy.header.get())
        base = int(copy.header.data.ptr)
        first, count = copy.groups & 0xFFFFFFFF, copy.groups >> 32
        stood = [(int(each.data.ptr), each.get()) for each in copy.here]
        stood.append((int(copy.elsewhere.ctypes.data), copy.elsewhere))
        for vertex, length in enumerate(lengths):
            if not first <= vertex < first + count:
                assert length == 0
                continue
            block, own = divmod(vertex - first, TOGETHER)
            header = words[block * BLOCK_WORDS :][:BLOCK_WORDS]
            begin, ends = int(header[:2].view(np.uint64)[0]), header[2:].view(np.uint16)
            if begin >> 63:
                begin, at = begin & ~ELSEWHERE, int(header[2:4].view(np.uint64)[0]) - base
                ends = words[at // 4 :][:TOGETHER]
            assert (ends.dtype == np.uint32) == (sum(lengths[first + block * TOGETHER :][:TOGETHER]) > short)
            at, end = int(ends[own - 1]) if own else 0, int(ends[own])
            assert end - at == length
            if not length:
                continue
            where, kept = next((where, kept) for where, kept in stood if 0 <= begin - 8 * where < 32 * len(kept))
            assert (where == stood[-1][0]) != resident[1 + block]
            whole = int.from_bytes(kept.astype("<u4").tobytes(), "little") >> (begin - 8 * where + at * packing.bits)
            read = [whole >> (i * packing.bits) & ((1 << packing.bits) - 1) for i in range(length)]
            assert [packing.least + each for each in read] == list(range(100, 100 + length))


@contextmanager
def few_on_the_device(parts: int) -> Iterator[None]:
    """No list is copied: so many parts of them are, in few bits, once they are searched in."""
    few = mock.patch.object(
        searched, "hottest", lambda heats, _sizes, _quota: hottest(heats, list(map(np.ones_like, heats)), parts)
    )
    at_once = mock.patch.object(searched, "GATHERED", math.inf)
    with paged(0), few, at_once:
        yield


def searches(**sizes: Any) -> Any:
    """An executor that searches, and places lists for that at once."""
    from graphdb.gpu.executor import GpuExecutor

    executor = GpuExecutor(0, memory_limit=1 << 30, hint="search")
    executor.device.rates = replace(TYPICAL, upload=math.inf)
    executor.strategies.by_name["search"] = Search(executor.device, executor.graph, **SMALL["search"] | sizes)
    return executor


@pytest.fixture(params=WHERE)
def divided(request: pytest.FixtureRequest) -> Iterator[Any]:
    """On a device, real or emulated: how copies of divided lists are made."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed(together=2))
        yield stack.enter_context(mock.patch.object(data_graph, "divide", wraps=data_graph.divide))


def packings(divided: Any) -> list[Packing]:
    """Of the copies that were made in few bits."""
    return [call.args[4] for call in divided.call_args_list if call.args[4] is not None]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        pytest.param("5-clique minus an edge", 0, id="none"),
        pytest.param("4-wheel", 2, id="some"),
        pytest.param("bow tie", 1 << 20, id="all"),
    ],
)
def test_searches_of_packed_lists(divided: Any, name: str, parts: int) -> None:
    """Shared intersections, restrictions and stealing, wherever the lists, and the ends of long ones, stand."""
    graph, label = graph_of(44, 420, 1)
    plan = make_plan(pattern_of(PATTERNS[name], label), graph, counting="never")
    with few_on_the_device(parts), mock.patch.object(bit_packed, "SHORT", 200):
        executor = searches()
        for _ in range(2):
            assert executor.count(plan) == HOST.count(plan) > 0
    assert {each.bits for each in packings(divided)} == {6}


@pytest.mark.parametrize("mode", list(MatchMode))
@EXAMPLES
@given(case=cases(), dtype=st.sampled_from([np.int32, np.int64]), parts=st.sampled_from([0, 1, 3]))
def test_each_mode(divided: Any, mode: MatchMode, case: Case, dtype: Any, parts: int) -> None:
    """Random graphs and patterns, whose lists may stand in few bits or not: rows and counts are the oracle's."""
    clauses = tuple(replace(clause, mode=mode) for clause in case.pattern.clauses)
    pattern = replace(case.pattern, clauses=clauses)
    with few_on_the_device(parts):
        check(replace(case, pattern=pattern), DataGraph(case.source, dtype=dtype, layer="direct"), searches())


@EMULATED
def test_a_join_reads_lists_as_they_are_while_a_search_reads_them_in_few_bits() -> None:
    """There is no room for both: the join finds all of them in host memory, and has its own once the search has ended."""
    graph, label = graph_of(60, 500, 2)
    plan = make_plan(pattern_of(PATTERNS["diamond"], label), graph, counting="never")
    with emulator.installed(), few_on_the_device(3):
        executor, (lists,) = searches(), lists_read(plan, True)
        executor.strategies.by_name["join"] = Join(executor.device, executor.graph, **SMALL["join"])
        residency: Residency = executor.graph.residency

        def packing() -> Packing | None:
            placed = residency.placed(lists)
            assert placed is not None
            return placed.packing

        assert executor.count(plan) == HOST.count(plan) > 0
        assert packing() is not None
        executor.hint = executor.strategies.hint = "join"
        with executor.device.memory.using([lists.original]):
            assert executor.count(plan) == HOST.count(plan)
            assert packing() is not None
        assert executor.count(plan) == HOST.count(plan)
        assert packing() is None
