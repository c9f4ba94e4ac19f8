"""Searches of lists by ranges of vertices: every match once, whatever is divided, and in little memory."""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError
from graphdb.execute.host import HostExecutor
from graphdb.gpu.card import TYPICAL
from graphdb.gpu.data.residency import lists_of_plan
from graphdb.gpu.search import run as search_run
from graphdb.gpu.search.launches import SearchRun
from graphdb.gpu.search.ranges import _Ways, ranged_search
from graphdb.gpu.search.run import Search
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.execute.test_host import REPEATABLE, pattern
from tests.gpu.executors import EMULATED, SMALL, device_executor
from tests.gpu.test_device import TRIANGLE
from tests.gpu.test_pages import simple_graph

SQUARE = [(0, 1, (1,), True), (1, 2, (1,), True), (2, 3, (1,), True), (0, 3, (1,), True)]
TAILED = [*TRIANGLE, (2, 3, (1,), True)]
Divide = Callable[[_Ways], Any]


@contextmanager
def searching(budget: int, divide: Divide | None = None) -> Iterator[Any]:
    """A device that searches; every plan as ``divide`` says."""

    def divided(self: Search, plan: Any, counting: bool) -> Any:
        assert divide is not None
        return divide(_Ways(plan, 0.0, TYPICAL))

    with emulator.installed(devices=2) as machine, mock.patch.object(search_run, "SMALL", 4 << 10):
        device: Any = device_executor("search", SMALL["search"] | ({} if divide else {"blocks": 4}), budget, number=1)
        with (
            nullcontext()
            if divide is None
            else mock.patch.multiple(Search, can_be_ranged=divided, link_seconds=lambda *_: math.inf)
        ):
            yield device
        gc.collect()
        assert machine.touched == {1}
        assert not device.device.memory.pool.faults
        assert device.device.memory.used_bytes == device.device.memory.cached_bytes, "a run left something behind"


def rows_of(executor: Any, plan: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for block in executor.run(plan, Control()):
        found.update(zip(*(block.columns[name].tolist() for name in plan.outputs), strict=True))
    return found


@EMULATED
@pytest.mark.parametrize("edges", [TAILED, SQUARE], ids=["tailed", "square"])
def test_every_match_once(edges: Any) -> None:
    """For any slots, one or two, any ranges, and any partitions beside them on the device."""
    random, graph = np.random.default_rng(len(edges)), simple_graph(24, 130)
    vertices = 1 + max(max(edge[:2]) for edge in edges)
    waited: list[Any] = []
    how, launches, launch = dict[Any, Any](), list[int](), SearchRun._launch

    def counted(self: SearchRun, *given: Any) -> None:
        launches.append(1)
        launch(self, *given)
        # A kernel waits until its rows are copied, and copies wait for the device's stream.
        assert any(event is self._end for event in waited) == self._counting

    def divide(ways: _Ways) -> Any:
        if (made := how.get(ways._plan)) is not None:
            return made
        slots = sorted(random.choice(list(ways._rows), min(int(random.integers(1, 3)), len(ways._rows)), replace=False))
        slots = sorted(slots, key=ways._levels.__getitem__)
        ranges = tuple(random.integers(1, 6, len(slots)).tolist())
        whole = frozenset(row for row in range(len(ways._sizes)) if random.random() < 0.5)
        how[ways._plan] = ways.made(0.0, 0.0, tuple(map(int, slots)), ranges, whole)
        return how[ways._plan]

    with searching(1 << 22, divide) as device:
        count = make_plan(pattern(vertices, edges, REPEATABLE, count_only=True), graph, counting="never")
        listed = make_plan(pattern(vertices, edges), graph, counting="never")
        wanted, rows = HostExecutor(1).count(count), rows_of(HostExecutor(1), listed)
        for _ in range(4):
            device.device.memory.evict(None)
            how.clear()
            noted = mock.patch.object(emulator.Stream, "wait_event", lambda _, event: waited.append(event))
            with mock.patch.object(SearchRun, "_launch", counted), noted:
                assert device.count(count) == wanted > 0, how
                assert rows_of(device, listed) == rows, how
        assert len(launches) > 16
        assert device.count(count, Control(limit=5)) == 5, "a part of the matches is searched in divided lists"


@EMULATED
def test_lists_are_searched_by_ranges_where_that_is_sooner() -> None:
    """They are copied once or twice, where each list that is found in host memory would come over the link."""
    graph = simple_graph(400, 12_000)
    plan = make_plan(pattern(3, TRIANGLE, REPEATABLE, count_only=True), graph, counting="never")
    size = sum(each.nbytes for each in lists_of_plan(plan, True))
    wanted = HostExecutor(1).count(plan)
    for part in (2,):
        budget = size // part + 32_000
        measured = mock.patch.multiple("graphdb.gpu.search.ranges", PASS=0.0, MEASURED=True)
        with searching(budget) as device, measured:
            search, memory = device.strategies.search, device.device.memory
            ranged = search.ranged(plan, True)
            assert ranged is not None
            assert ranged.link < 4 * size
            assert device.count(plan) == wanted
            before = memory.uploaded
            assert device.count(plan) == wanted
            assert memory.uploaded - before < ranged.link + (1 << 16)
            assert memory.used_bytes <= budget
            assert "by ranges" in device.describe(plan)
            device.strategies._failed(plan, True, MemoryLimitError("too little"))
            assert search.ranged(plan, True) is None
            assert device.count(plan) == wanted
        assert ranged_search(plan, 100.0, TYPICAL) is None, "no range fits"


def test_lists_that_elements_are_searched_in_are_not_left_in_host_memory() -> None:
    """Those of hubs are the longest, and searched most often: that is not told by the mean of all lists."""
    random = np.random.default_rng(5)
    source, target = (random.random((2, 60_000)) ** 9 * 3_000).astype(np.int64)
    source, label, target = np.unique(np.stack([source, 3_000 + (source + target) % 2, target]), axis=1)
    graph = DataGraph(ArraySource(source, label, target, 3_002))
    edges = [(0, 1, (3_000,), True), (0, 2, (3_001,), True), (1, 2, (3_001,), True)]
    plan = make_plan(pattern(3, edges, REPEATABLE, count_only=True), graph, counting="never")
    size = sum(each.nbytes for each in lists_of_plan(plan, True))
    found = ranged_search(plan, size / 4, replace(TYPICAL, answer=0.0))
    assert found is not None
    assert not found.whole
    assert [each.level for each in found.slots] == [0, 1]
    assert found.link < 5 * size
