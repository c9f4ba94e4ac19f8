"""Searches in other orders, where lists do not fit: of what reads less over the link, and what runs take decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError
from graphdb.execute.host import HostExecutor
from graphdb.gpu.beside import SearchesBeside
from graphdb.gpu.data.residency import lists_read
from graphdb.gpu.search import reordered as reordered_search
from graphdb.gpu.search.reordered import REORDERED
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.executor import Refused
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan, VertexStep
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.execute.test_host import pattern
from tests.gpu.executors import EMULATED
from tests.gpu.test_searched_lists import searching

PEOPLE, THINGS = 600, 60
KNOWS, LIKES = PEOPLE + THINGS, PEOPLE + THINGS + 1


def friends(*, count_only: bool = True) -> PhysicalPlan:
    """Friends who like the same: the plan begins with things, and finds the friends of those who like each."""
    draw = np.random.default_rng(5)
    known = np.unique(np.sort(draw.integers(0, PEOPLE, (2, 5 * PEOPLE)), axis=0), axis=1)
    known = known[:, known[0] != known[1]]
    liked = np.unique(np.stack([np.arange(PEOPLE).repeat(3), PEOPLE + draw.integers(0, THINGS, 3 * PEOPLE)]), axis=1)
    labels = np.repeat([KNOWS, LIKES], [known.shape[1], liked.shape[1]])
    source, target = np.concatenate([known, liked], axis=1)
    graph = DataGraph(ArraySource(source, labels, target, LIKES + 1), layer="direct")
    edges = [(0, 1, (KNOWS,), False), (0, 2, (LIKES,), True), (1, 2, (LIKES,), True)]
    return make_plan(pattern(3, edges, MatchMode.DIFFERENT_NODES, count_only=count_only), graph, counting="never")


@contextmanager
def compiled(plan: PhysicalPlan, part: int = 12, beside: int = 8_000) -> Iterator[Any]:
    """A device with room for a part of a plan's lists, that has compiled what it searches beside joins."""
    with (
        searching(part, plan, beside) as device,
        mock.patch.object(SearchesBeside, "_seconds", return_value=(1e6, 0.0)),
    ):
        device.hint = "auto"
        those = device.strategies.beside
        those._compile(plan, plan.count_only)
        those.wait_for_all()
        yield device


def order_of(plan: PhysicalPlan) -> list[int]:
    return [step.vertex for step in plan.steps if isinstance(step, VertexStep)]


def pinned(strategy: str) -> Any:
    return mock.patch.object(SearchesBeside, "chosen", return_value=strategy)


@EMULATED
def test_an_order_that_reads_less_over_the_link_is_compiled() -> None:
    plan = friends()
    assert order_of(plan)[0] == 2
    with compiled(plan) as device:
        other = device.strategies.beside.reordered.of(plan, True)
        assert order_of(other.plan)[2] == 2
        search = device.strategies.search
        assert search.link_seconds(other.plan, True) < search.link_seconds(plan, True) / 2
        # In the plan's own order, the lists of friends are found; in the other one, those of what somebody likes.
        with pinned("search"):
            assert device.count(plan) == HostExecutor(1).count(plan) > 0
        with pinned(REORDERED):
            for _ in range(3):
                assert device.count(plan) == HostExecutor(1).count(plan)
            placed = [device.graph.residency.placed(each) for each in lists_read(other.plan, True)]
            assert all(each is None or each.searched for each in placed)
            assert "by search in another order" in device.describe(plan)


@EMULATED
def test_rows_of_another_order_are_the_same() -> None:
    plan = friends(count_only=False)

    def rows(executor: Any) -> list[Any]:
        blocks = [block.columns for block in executor.run(plan)]
        return sorted(row for b in blocks for row in zip(*(b[name].tolist() for name in plan.outputs), strict=True))

    linked = mock.patch.object(reordered_search, "SHARE", 0.0)
    with linked, compiled(plan, 1, 1 << 20) as device, pinned(REORDERED):
        device.strategies.search.blocks = 1 << 12  # nobody reads before an emulated kernel ends
        assert device.strategies.of_all(plan, False).name == REORDERED
        assert rows(device) == rows(HostExecutor(1)) != []


@EMULATED
def test_another_order_is_looked_for_where_the_search_was_compiled_before() -> None:
    """For another budget, or by an earlier process: there is nothing else to compile then."""
    plan = friends()
    with searching(12, plan) as device, mock.patch.object(SearchesBeside, "_seconds", return_value=(1e6, 0.0)):
        device.strategies.search.compile(plan, lambda: None, counting=True)
        device.hint = "auto"
        for _ in range(3):
            assert device.count(plan) == HostExecutor(1).count(plan)
            device.strategies.beside.wait_for_all()
        assert device.strategies.beside.reordered.of(plan, True) is not None


@EMULATED
def test_what_runs_take_decides() -> None:
    """A search in another order is tried once others have taken long enough, and is left where it takes longer."""
    plan = friends()
    with compiled(plan) as device:
        those = device.strategies.beside
        for strategy, seconds in (("join", 0.4), ("search", 0.3)):
            for _ in range(4):
                those.note(plan, True, strategy, seconds)
        assert those.chosen(plan, True, runs=True) == REORDERED
        for _ in range(4):
            those.note(plan, True, REORDERED, 0.1)
        assert those.chosen(plan, True, runs=False) == REORDERED
        for _ in range(8):
            those.note(plan, True, REORDERED, 1.0)
        for _ in range(100):  # it is not measured again, however long others run
            assert those.chosen(plan, True, runs=True) in ("search", "join")
            those.note(plan, True, "search", 0.3)


@EMULATED
def test_lists_are_placed_for_the_order_that_is_tried() -> None:
    """At once: else it would be known by what it takes where lists stand for another one."""
    plan = friends()
    with compiled(plan) as device:
        other = device.strategies.beside.reordered.of(plan, True).plan
        device.graph.residency.place_for(other, True)  # as joins of it would have them
        for each in (plan, other):  # only what is tried is placed anew
            each.cache[device.strategies._searched._key(True)].cost = math.inf
        for strategy, searched in ((REORDERED, other), ("search", plan), (REORDERED, other)):
            with pinned(strategy):
                device.count(plan)
            before = device.device.memory.uploaded
            with pinned(strategy):
                device.count(plan)
            assert device.device.memory.uploaded - before < 1024
            placed = [device.graph.residency.placed(each) for each in lists_read(searched, True)]
            assert all(each is not None and each.searched for each in placed)


@EMULATED
@pytest.mark.parametrize("error", [Refused("the kernel does not compile"), MemoryLimitError("too little")])
def test_an_order_that_fails_is_given_up(error: Exception) -> None:
    plan = friends()
    with compiled(plan) as device, pinned(REORDERED):
        reordered, wanted = device.strategies.beside.reordered, HostExecutor(1).count(plan)
        with mock.patch.object(reordered._search, "count", side_effect=error):
            for _ in range(8):
                assert device.count(plan) == wanted
                if reordered.of(plan, True) is None:
                    break
        assert reordered.of(plan, True) is None
        assert not device.strategies.search.refused(plan)
        assert device.count(plan) == wanted
