"""What mining does without on a device is right, too: else its times would say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from graphdb.gpu.mining.extension import DeviceExtension
from graphdb.mining import EmbeddingTable, vertex_extension
from graphdb.mining.limits import Limits
from graphdb.mining.primitives import supports
from graphdb.plan.executor import Control
from tests import emulator
from tests.benchmarks.external_sort import ExternalSort
from tests.benchmarks.mining_ablations import FILTER, LAYOUTS, _aggregated, laid_out
from tests.gpu.executors import WHERE
from tests.mining import brute


@pytest.fixture(scope="module", params=WHERE)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device's executor."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed())
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 26)
        yield executor
        if request.param == "emulated":
            assert not executor.device.memory.pool.faults


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(device: Any, layout: str) -> None:
    """The extensions are those of rows that are extended one by one."""
    graph = brute.random_graph(np.random.default_rng(2), 120, 4500, directed=False)
    pairs = vertex_extension(EmbeddingTable.of_vertices(graph), graph, "all")
    rows = pairs.rows()[pairs.rows()[:, 0] < 6].astype(np.int32)
    wanted = DeviceExtension(device.device, device.graph, graph.adjacency, Control(), grouped=False).extend(rows, "all")
    for passes in ("pool", "twice"):
        with laid_out(device.device, LAYOUTS[layout]):
            made = DeviceExtension(device.device, device.graph, graph.adjacency, Control(), passes=passes, grouped=True)
            found = made.extend(rows, "all")
        assert all(map(np.array_equal, found, wanted))
    assert len(wanted[0]) > 1000


def test_filter(device: Any) -> None:
    """The extensions of connected sets are those without a filter."""
    graph = brute.random_graph(np.random.default_rng(5), 60, 240, directed=False)
    rows = EmbeddingTable.of_vertices(graph)
    for _ in range(2):
        rows = vertex_extension(rows, graph)
        written = rows.rows(0, 400).astype(np.int32)
        wanted, found = (_extended(device, graph, written, macros) for macros in (None, FILTER))
        assert all(map(np.array_equal, found, wanted))
        assert len(wanted[0]) > 1000


def _extended(device: Any, graph: Any, rows: Any, macros: Any) -> Any:
    with laid_out(device.device, macros):
        return DeviceExtension(device.device, device.graph, graph.adjacency, Control()).extend(rows, "any")


@pytest.mark.parametrize("merge", ["all", "half", "sort"])
@pytest.mark.parametrize("values", [1 << 62, 50], ids=["distinct", "equal"])
def test_external_sort(device: Any, merge: Any, values: int) -> None:
    """In one segment, in two and in many; of keys that are often equal."""
    keys = np.random.default_rng(3).integers(0, values, 20_000).astype(np.uint64)
    with device.device.active():
        for segment in (20_000, 10_001, 3_000):
            assert np.array_equal(ExternalSort(device.device, segment, merge).sort(keys), np.sort(keys))


def test_images_by_sorted_keys(device: Any) -> None:
    """The host's: flags, and sorted keys."""
    graph = brute.random_graph(np.random.default_rng(4), 40, 130, directed=False, labels=3)
    rows = vertex_extension(vertex_extension(EmbeddingTable.of_vertices(graph), graph), graph)
    _, slots, quick_of_row = _aggregated(graph, rows)
    arguments = slots, quick_of_row, rows.rows_at, len(graph), 0, Limits()
    wanted = supports._sorted(*arguments)
    assert np.array_equal(supports._marked(*arguments), wanted)
    with device.device.active():
        pieces = supports.pieces(rows, quick_of_row, 100)
        found = ExternalSort(device.device, 500).images(pieces, slots.of_place, len(slots), len(graph))
    assert np.array_equal(found, wanted)
    assert len(rows) > 300
