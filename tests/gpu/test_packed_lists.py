"""Lists in few bits, in which cliques are counted where wider ones do not fit: real or emulated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.gpu.counting import cliques
from graphdb.gpu.counting.clique_counter import CliqueCounter
from graphdb.gpu.data.packed import PADDING, expected_bytes, packed, room_of
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.orientation import Oriented
from tests import emulator
from tests.emulator.pool import PoolOfPieces
from tests.gpu.executors import WHERE
from tests.gpu.patterns import EXAMPLES, HOST, graph_of, pattern_of


@pytest.fixture(params=WHERE)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where to count: the emulated device's memory comes in pieces, as a real one's does."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(mock.patch.object(emulator, "Pool", PoolOfPieces))
            stack.enter_context(emulator.installed())
        yield request.param


def oriented_of(lists: list[list[int]]) -> Oriented:
    """A graph of lists of ranks behind their own."""
    lengths = [len(each) for each in lists]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    neighbours = np.array([rank for each in lists for rank in each], np.int32)
    return Oriented(offsets, neighbours, np.zeros_like(offsets), max(lengths))


def unpacked(words: np.ndarray[Any, Any], rank: int) -> list[int]:
    """The list that some words say, bit by bit."""
    if not len(words):
        return []
    count, low, bits = int(words[0]) & 0xFFFF, int(words[0]) >> 16, ""
    high = len(words) - (count * low + 31) // 32
    unary = "".join(f"{int(word):032b}"[::-1] for word in words[1:high])
    bits = "".join(f"{int(word):032b}"[::-1] for word in words[high:])
    parts, above = [], 0
    for bit in unary:
        parts += [above] * (bit == "1")
        above += bit == "0"
    assert len(parts) == count
    own = [int(bits[i * low : (i + 1) * low][::-1] or "0", 2) for i in range(count)]
    return [rank + 1 + (part << low) + each for part, each in zip(parts, own, strict=True)]


@EXAMPLES
@given(ranks=st.integers(1, 3_000), density=st.floats(0.0, 1.0), seed=st.integers(0, 1 << 32))
def test_lists_are_what_was_packed(ranks: int, density: float, seed: int) -> None:
    """Some are empty, some hold all ranks behind their own; few bits each, as many as are told."""
    rng = np.random.default_rng(seed)
    shares = rng.choice([0.0, density, density**3, 1.0], ranks, p=[0.3, 0.3, 0.3, 0.1]) if ranks < 60 else None
    lists = []
    for rank in range(ranks):
        behind = ranks - 1 - rank
        share = (
            shares[rank] if shares is not None else rng.choice([0.0, density / behind if behind else 0.0, 3 / ranks])
        )
        lists.append(np.sort(rank + 1 + rng.choice(behind, int(share * behind), replace=False)).tolist())
    graph = oriented_of(lists)
    found = packed(graph)
    begins = found.begins.tolist()
    assert len(found.words) == begins[-1] + PADDING
    for rank, each in enumerate(lists):
        words = found.words[begins[rank] : begins[rank + 1]]
        assert unpacked(words, rank) == each
        if each:
            most = len(each) * (2.5 + np.log2((ranks - 1 - rank) / len(each)))
            assert 32 * len(words) <= 32 + most + 1 + 62
    for first in {0, ranks // 3, ranks}:
        taken = found.bytes_from(first)
        assert found.first_within(taken) <= first
        assert found.bytes_from(found.first_within(taken)) <= taken
    assert found.first_within(0) == ranks


@pytest.mark.parametrize(("size", "part"), [(3, 8), (4, 2), (4, 16), (5, 4)])
def test_small_budgets(device: str, size: int, part: int) -> None:
    """The lists that are not copied are read in host memory, by roots of few neighbours and of many; what stands where
    is what EXPLAIN says.
    """
    from graphdb.gpu.executor import GpuExecutor

    graph, label = graph_of(300, 6_000, part)
    plan = make_plan(pattern_of(tuple(combinations(range(size), 2)), label), graph)
    assert plan.clique is not None
    oriented, budget = plan.clique.graph, packed(plan.clique.graph).bytes_from(0) // part + 6_000
    with (
        mock.patch.object(CliqueCounter, "_way", return_value=("packed", 0.0)),
        mock.patch.object(cliques, "MOST_THREADS", dict.fromkeys(cliques.SIZES, 64)),
    ):
        executor = GpuExecutor(0, memory_limit=budget, hint="sums")
        memory = executor.device.memory
        assert executor.count(plan) == HOST.count(plan) > 0
        copy = memory.cached("packed", oriented)
        assert 0 < copy.first < len(oriented.offsets)
        assert copy.nbytes <= budget
        expected = expected_bytes(oriented, room_of(budget, 0))
        assert copy.nbytes <= expected.here <= room_of(budget, 0)
        sizes = 4 * np.diff(packed(oriented).begins.astype(np.int64))
        reads = 1 + np.bincount(oriented.neighbours, minlength=len(sizes))
        first = packed(oriented).first_within(room_of(budget, 0))
        assert expected.over == int((sizes * reads)[:first].sum()) + 4 * first
        told = re.search(
            r"by cliques, (\d+)% of 0 MiB of packed lists on the device, 0 MiB over", executor.describe(plan)
        )
        assert told is not None
        assert int(told[1]) == round(100 * expected.here / packed(oriented).bytes_from(0))
        del copy
        memory.evict(None)
        assert memory.used_bytes <= 1_024


def test_what_is_expected_sooner_is_read(device: str) -> None:
    """Lists as they are where they fit; two bytes a neighbour where the link is fast; packed where unpacking is."""
    from graphdb.gpu.executor import GpuExecutor

    graph, label = graph_of(300, 6_000, 1)
    plan = make_plan(pattern_of(((0, 1), (0, 2), (1, 2)), label), graph)
    assert plan.clique is not None
    oriented, found = plan.clique.graph, []
    for part, rates in ((1, {}), (16, {"linked": 1e15}), (16, {"listed": 1e15})):
        executor = GpuExecutor(0, hint="sums", memory_limit=4 * oriented.neighbours.nbytes // part + 6_000)
        executor.device.rates = replace(executor.device.rates, **rates)
        shape = executor._counter.cliques.shape(plan.clique)
        assert shape is not None
        found.append(("packed" if shape.packed else "narrow" if shape.narrow else "plain", executor.describe(plan)))
    assert [kind for kind, _ in found] == ["plain", "narrow", "packed"]
    assert "lists" not in found[0][1]
    assert re.search(r"by cliques, \d\d% of 0 MiB of narrow lists on the device, 0 MiB over the link", found[1][1])
    assert re.search(r"by cliques, \d\d% of 0 MiB of packed lists on the device, 0 MiB over the link", found[2][1])


@pytest.mark.parametrize("wide", [False, True])
def test_lists_of_more_words_than_lanes(device: str, wide: bool) -> None:
    """A complete graph's first vertices, of 699 neighbours in 33 words; and with many low bits."""
    from graphdb.gpu.executor import GpuExecutor

    ends = np.array(list(combinations(range(700), 2))).T
    if wide:  # pairs that are no part of any triangle come first
        ends = np.concatenate([ends, 700 + np.arange(100_000).reshape(2, -1, order="F")], axis=1)
    vertices = int(ends.max()) + 1
    graph = DataGraph(ArraySource(ends[0], np.full(ends.shape[1], vertices), ends[1], vertices + 1))
    plan = make_plan(pattern_of(((0, 1), (0, 2), (1, 2)), vertices), graph)
    assert plan.clique is not None
    ranks = len(plan.clique.graph.offsets) - 1
    with mock.patch.object(CliqueCounter, "_way", return_value=("packed", 0.0)):
        executor = GpuExecutor(0, memory_limit=1 << 20)
        division = executor._counter.division(plan, True, Control())
        share = (ranks - 700, ranks - 698)
        found = executor._counter.partial(plan, division, Control(), share)[0] // plan.automorphisms
    assert found == comb(699, 2) + comb(698, 2)
