"""Embeddings extended on a device, real or emulated: the host's tables, row by row; and sets counted by their codes."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.execute import choose, host_costs
from graphdb.execute.choose import ChoosingExecutor
from graphdb.execute.host import HostExecutor
from graphdb.mining import EmbeddingTable, Limits, MiningGraph, edge_extension, filtering, vertex_extension
from graphdb.mining.motifs import motifs
from graphdb.mining.primitives import extension
from graphdb.plan.executor import Control
from graphdb.plan.extension import Aggregated
from tests import emulator
from tests.fuzz import scaled
from tests.gpu.executors import WHERE
from tests.mining import brute

aggregation = importlib.import_module("graphdb.mining.primitives.aggregation")


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


def same(found: EmbeddingTable, wanted: EmbeddingTable) -> bool:
    """Whether two tables are equal, column by column."""
    return len(found.columns) == len(wanted.columns) and all(
        mine.dtype == other.dtype and np.array_equal(mine, other)
        for column, known in zip(found.columns, wanted.columns, strict=True)
        for mine, other in zip(column, known, strict=True)
    )


GROUPED = ({"grouped": True}, {"grouped": True, "passes": "twice", "MERGED": 2}, {"grouped": True, "PIECE": 7})


@pytest.mark.parametrize(
    "sizes", [{}, {"ENTRIES": 32, "passes": "pool"}, {"PIECE": 7}, {"passes": "twice"}, *GROUPED], ids=str
)
@pytest.mark.parametrize("seed", range(scaled(3)))
def test_tables_are_the_hosts(device: Any, seed: int, sizes: dict[str, Any]) -> None:
    """In one pass to a pool, whose blocks rows share; in two passes; in pieces; prefixes intersected once, or where they do
    not fit shared memory, not.
    """
    from graphdb.gpu.mining import extension as on_device

    graph = brute.random_graph(np.random.default_rng(seed), 14, 34, directed=False)
    limits = Limits(executor=device)
    with ExitStack() as stack:
        defaults = on_device.DeviceExtension.__init__.__kwdefaults__
        if "ENTRIES" in sizes:
            stack.enter_context(mock.patch.object(on_device, "ENTRIES", sizes["ENTRIES"]))
        if "PIECE" in sizes:
            stack.enter_context(mock.patch.object(extension, "DEVICE_PIECE", 50))
            stack.enter_context(mock.patch.dict(defaults, piece=sizes["PIECE"]))
        if "MERGED" in sizes:
            stack.enter_context(mock.patch.object(on_device, "MERGED", sizes["MERGED"]))
        chosen = {name: sizes[name] for name in ("passes", "grouped") if name in sizes}
        stack.enter_context(mock.patch.dict(defaults, **chosen))
        for to in ("any", "all"):
            table = wanted = EmbeddingTable.of_vertices(graph)
            for _ in range(3):
                table, wanted = vertex_extension(table, graph, to, limits), vertex_extension(wanted, graph, to)
                assert same(table, wanted)
        table = wanted = EmbeddingTable.of_edges(graph)
        for _ in range(2):
            table, wanted = edge_extension(table, graph, limits), edge_extension(wanted, graph)
            assert same(table, wanted)
        assert len(table) > 300


@pytest.mark.parametrize("piece", [None, 64])
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 1.0])
def test_filters(device: Any, kept: float, piece: int | None) -> None:
    """The host's tables, of vertices and of edges, at once and in pieces; what is left can be extended further."""
    from graphdb.gpu.mining import compression

    random = np.random.default_rng(3)
    graph = brute.random_graph(random, 16, 60, directed=False)
    tables = [EmbeddingTable.of_vertices(graph), EmbeddingTable.of_edges(graph)]
    with mock.patch.object(compression, "PIECE", piece or compression.PIECE):
        for _ in range(2):
            tables = [
                vertex_extension(table, graph) if table.kind == "vertex" else edge_extension(table, graph)
                for table in tables
            ]
            limits = Limits(executor=device)
            keep = [random.random(len(table)) < kept for table in tables]
            found = [filtering(table, marks, limits) for table, marks in zip(tables, keep, strict=True)]
            wanted = [filtering(table, marks) for table, marks in zip(tables, keep, strict=True)]
            assert all(map(same, found, wanted))
            assert len(tables[1]) > 64
            assert all("bytes of embeddings moved" in note for note in limits.notes)
            assert len(limits.notes) == 2
            tables = found if kept == 0.5 else tables


def test_filters_by_what_is_expected_to_be_sooner(device: Any) -> None:
    """Small tables stay on the host, and so do those whose marks a device has no room for."""
    graph = brute.random_graph(np.random.default_rng(4), 60, 300, directed=False)
    table = vertex_extension(vertex_extension(EmbeddingTable.of_vertices(graph), graph), graph)
    keep = np.arange(len(table)) % 3 == 0
    limits = Limits(executor=ChoosingExecutor(HostExecutor(1), lambda: device))
    assert same(filtering(table, keep, limits), filtering(table, keep))
    assert not limits.notes
    with mock.patch.object(host_costs, "HOST_RATE", 1e3), mock.patch.object(choose, "OPENING", 0.0):
        assert same(filtering(table, keep, limits), filtering(table, keep))
    assert limits.notes
    assert device.compressor(1 << 40, 1 << 43, Control()) is None


def test_a_pool_that_is_too_small(device: Any) -> None:
    """What it has no block for is found once more, and written to its place."""
    from graphdb.gpu.mining import extension as on_device

    graph = brute.random_graph(np.random.default_rng(5), 60, 300, directed=False)
    table = EmbeddingTable.of_vertices(graph)
    launched: list[Any] = []
    plain = on_device.DeviceExtension._launch

    def launch(self: Any, kind: str, which: int, *arguments: Any) -> None:
        launched.append(which)
        plain(self, kind, which, *arguments)

    with (
        mock.patch.object(on_device.DeviceExtension, "_pool", lambda self, rows: on_device._Pool(self._device, 1)),
        mock.patch.object(on_device.DeviceExtension, "_launch", launch),
        mock.patch.dict(on_device.PASSES, any="pool"),
    ):
        found = vertex_extension(table, graph, limits=Limits(executor=device))
    assert launched == [on_device.POOL, on_device.WRITE]
    assert same(found, vertex_extension(table, graph))


def test_limits_hold(device: Any) -> None:
    graph = brute.random_graph(np.random.default_rng(6), 60, 600, directed=False)
    table = EmbeddingTable.of_vertices(graph)
    with pytest.raises(MemoryLimitError, match="embeddings"):
        vertex_extension(table, graph, limits=Limits(executor=device, memory=2000))
    with pytest.raises(QueryTimeout):
        vertex_extension(table, graph, limits=Limits(executor=device, control=Control(timeout=-1.0)))


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_motifs_that_are_enumerated(device: Any, seed: int) -> None:
    """Directed motifs of five vertices: counts of brute force, examples of the host's."""
    graph = brute.random_graph(np.random.default_rng(seed), 9, 22, directed=True)
    plain = MiningGraph.of(graph.source, graph.target, directed=True)
    found = motifs(graph, 5, Limits(executor=device))
    shapes = {brute.least(dict.fromkeys(range(5), 0), m.pattern.edges, True): m.count for m in found}
    assert shapes == brute.induced(plain, 5, [0] * len(plain))
    assert found == motifs(graph, 5, Limits(threads=1))


def test_motifs_by_halves(device: Any) -> None:
    """Roots whose sets take more memory than there is are halved, until one alone does not fit."""
    graph = brute.random_graph(np.random.default_rng(1), 200, 500, directed=True)
    with mock.patch.object(Limits, "need", autospec=True, side_effect=_limited(20_000)) as asked:
        found = motifs(graph, 5, Limits(executor=device))
    assert any("embeddings" in call.args[2] and call.args[1] > 20_000 for call in asked.call_args_list)
    assert found == motifs(graph, 5, Limits(threads=1))


def _limited(most: int) -> Any:
    """What checks tables against fewer bytes than codes take."""
    plain = Limits.need

    def need(self: Limits, bytes: int, what: str) -> None:
        plain(self, bytes, what)
        if "embeddings" in what and bytes > most:
            raise MemoryLimitError(what)

    return need


@pytest.mark.skipif(emulator.COMPILER is None, reason="no C++ compiler to emulate the device with")
def test_graphs_and_tables_larger_than_the_device() -> None:
    """Lists that are read most stand on the device, the others in host memory; the table is extended in pieces."""
    graph = brute.random_graph(np.random.default_rng(2), 150, 3000, directed=True)
    edges = EmbeddingTable.of_edges(graph, np.arange(0, graph.edges, 20))
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor
        from graphdb.gpu.mining import extension as on_device

        executor = GpuExecutor(0, memory_limit=24 << 10)
        made: list[Any] = []
        plain = on_device.DeviceExtension.extend

        def noted(self: Any, *arguments: Any) -> Any:
            made.append(self)
            return plain(self, *arguments)

        with mock.patch.object(on_device.DeviceExtension, "extend", noted):
            found = vertex_extension(EmbeddingTable.of_vertices(graph), graph, limits=Limits(executor=executor))
        assert "of the reads from host memory" in made[0].summary
        assert found.nbytes > 24 << 10
        assert same(found, vertex_extension(EmbeddingTable.of_vertices(graph), graph))
        with mock.patch.object(
            on_device.DeviceExtension, "extend", noted
        ):  # the ends of edges do not fit: the host does it
            assert same(edge_extension(edges, graph, Limits(executor=executor)), edge_extension(edges, graph))
        assert len(made) == 1


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(scaled(6)))
def test_aggregation(device: Any, seed: int, directed: bool) -> None:
    """Patterns, counts, supports, the pattern of each row and examples are the host's; tables of vertices and edges."""
    graph = brute.random_graph(np.random.default_rng(seed), 10, 24, directed=directed, edge_labels=3, labels=2)
    tables = [EmbeddingTable.of_vertices(graph), EmbeddingTable.of_edges(graph)]
    for _ in range(2):
        tables = [
            vertex_extension(table, graph) if table.kind == "vertex" else edge_extension(table, graph)
            for table in tables
        ]
        for table in tables:
            wanted = aggregation.aggregation(table, graph)
            limits, host = (
                Limits(executor=device),
                mock.patch.object(aggregation, "images_of", side_effect=AssertionError),
            )
            with mock.patch.object(aggregation, "DEVICE_PIECE", 100), host:
                found = aggregation.aggregation(table, graph, limits=limits)
            assert found.patterns == wanted.patterns
            assert found.examples == wanted.examples
            for name in ("counts", "supports", "of_row"):
                assert np.array_equal(getattr(found, name), getattr(wanted, name))
            assert "ms of kernels" in limits.notes[0]


def test_images_that_the_device_has_no_memory_for(device: Any) -> None:
    """Bits of many slots: the host finds what they take."""
    graph = brute.random_graph(np.random.default_rng(0), 10, 24, directed=False, labels=2)
    table = vertex_extension(EmbeddingTable.of_vertices(graph), graph)
    extender = device.extender(graph.adjacency, 1.0, Control())
    task = Aggregated(graph.label_of, states=graph.states)
    slots = np.zeros((1, 2), np.int32)
    pieces = [(table.rows().astype(np.int32), np.zeros(len(table), np.int32))]
    assert extender.images(pieces, slots, 1, task).tolist() == [len(graph)]
    assert extender.images(pieces, slots, 1 << 24, task) is None
    with mock.patch("graphdb.gpu.mining.aggregation.Images.of", return_value=None):
        found = aggregation.aggregation(table, graph, limits=Limits(executor=device))
    assert np.array_equal(found.supports, aggregation.aggregation(table, graph).supports)
