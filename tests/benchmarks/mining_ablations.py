"""What mining on a device does without: GAMMA's layout and filter for intersections, and its external sort.

``layout`` exchanges ``gpu/kernels/mining/prefix.cuh`` for ``prefix_layouts.cuh`` and extends the same cliques; ``sort`` finds what
aggregation needs of all embeddings together by sorted segments and multi-merge (:mod:`.external_sort`).  Run by
``python -m tests.benchmarks.device_mining --only layout sort``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from graphdb.gpu.code.launch import Device, Module, defines, source
from graphdb.gpu.code.machine_code import Source
from graphdb.gpu.data import pages, residency
from graphdb.gpu.executor import GpuExecutor
from graphdb.gpu.mining.aggregation import Images
from graphdb.gpu.mining.extension import DeviceExtension
from graphdb.mining import EmbeddingTable, MiningGraph, vertex_extension
from graphdb.mining.frequent import Miner
from graphdb.mining.limits import Limits
from graphdb.mining.primitives import aggregation, supports
from graphdb.plan.executor import Control
from tests import mining_sets
from tests.benchmarks.external_sort import ExternalSort
from tests.benchmarks.harness import Table, progress, surroundings

LAYOUTS: dict[str, dict[str, int]] = {
    "columns": {"LAYOUT": 1, "FILTER": 0, "LONG": 0},
    "columns by halves": {"LAYOUT": 2, "FILTER": 0, "LONG": 0},
    "filter": {"LAYOUT": 0, "FILTER": 1, "LONG": 0},
    "filter, columns": {"LAYOUT": 1, "FILTER": 1, "LONG": 0},
    "the paper's": {"LAYOUT": 1, "FILTER": 1, "LONG": 1},
    "the paper's, sorted": {"LAYOUT": 0, "FILTER": 1, "LONG": 1},
}
"""How common neighbours of a prefix are laid out and searched; of ours they are sorted and searched by halves."""
FILTER: dict[str, int] = {"KIND": 0, "MERGED": 512}
"""Extension by any neighbour with a filter of those of the prefix."""


def exchanged(macros: Mapping[str, int]) -> str:
    """The text of extension with another header in place of ``prefix.cuh``."""
    whole, folder = source("extension"), Path(__file__).parent
    begin = whole.index("// What rows of an embedding table with the same prefix")
    ours = whole[begin : whole.index("#endif", begin)]
    if macros is not FILTER:
        other = (folder / "prefix_layouts.cuh").read_text().replace('#include "prefix.cuh"\n', ours)
        return whole.replace(ours, other + "\n")
    text = whole.replace(ours, (folder / "prefix_filter.cuh").read_text() + "\n")
    searched = "all_of_merged(lists, prefix, row[size - 1], take)", "all_of(lists, row, (int)size, take);\n        else"
    assert all(text.count(each) == 1 for each in searched)
    text = text.replace(searched[0], "any_of_filtered(lists, prefix, row, (int)size, take)")
    return text.replace(searched[1], searched[1].replace("all_of", "any_of"))


@contextmanager
def laid_out(device: Device, macros: Mapping[str, int] | None) -> Iterator[None]:
    """Extension with another layout of what a prefix has in common; None: ours."""
    if macros is None:
        yield
        return
    plain, kind, text = device.module, macros.get("KIND", 1), exchanged(macros)

    def module(name: str, wanted: Mapping[str, object], *arguments: Any, **more: Any) -> Module:
        if name != "extension" or wanted["KIND"] != kind or not (wanted["MERGED"] or kind == 0):
            return plain(name, wanted, *arguments, **more)
        return _loaded(device, text, defines({**wanted, **macros}))

    with mock.patch.object(device, "module", module):
        yield


@cache
def _loaded(device: Device, text: str, options: tuple[str, ...]) -> Module:
    """A module, loaded once: the first launch of a kernel waits for the driver."""
    return device.compile(Source("extension", text, options))


def layouts(graphs: Sequence[str], runs: int) -> Table:
    """Cliques extended prefix by prefix, with each layout (optimisation 3): kernels of the better of one pass and two."""
    columns = ["graph", "cliques", "ours", *LAYOUTS, "best gain"]
    table = Table("common neighbours of prefixes: layouts, kernels in ms", columns)
    device = GpuExecutor(0)
    for name in graphs:
        graph = mining_sets.snap(name)
        rows = EmbeddingTable.of_vertices(graph)
        for size in (2, 3, 4):
            rows = vertex_extension(rows, graph, "all", Limits(executor=device))
            written, wanted, took = rows.rows().astype(np.int32), None, []
            for macros in (None, *LAYOUTS.values()):
                passes: list[float] = []
                for which in ("pool", "twice"):
                    kernels = []
                    for _ in range(runs + 1):
                        with laid_out(device.device, macros):
                            made = DeviceExtension(
                                device.device, device.graph, graph.adjacency, Control(), passes=which, grouped=True
                            )
                            found = made.extend(written, "all")
                        kernels.append(made.milliseconds)
                    passes.append(statistics.median(kernels[1:]))
                    wanted = wanted or found
                    assert all(map(np.array_equal, found, wanted))
                took.append(min(passes))
            cells = [*(f"{each:.2f}" for each in took), f"{took[0] / min(took[1:]):.2f}"]
            table.add(name, f"{size} to {size + 1}", *cells)
            progress(f"{name} {size}: {cells}")
    table.notes.append(surroundings())
    return table


def filters(graphs: Sequence[str], runs: int) -> Table:
    """Connected sets extended with a filter of what the prefix is adjacent to, and without: kernels of two passes."""
    columns = ["graph", "sets", "rows", "extensions", "ours", "filter", "gain"]
    table = Table("extension by any neighbour, with a filter of the prefix's: kernels in ms", columns)
    device = GpuExecutor(0)
    for name in graphs:
        graph = mining_sets.snap(name)
        rows = EmbeddingTable.of_vertices(graph)
        for size in (2, 3):
            rows = vertex_extension(rows, graph, "any", Limits(executor=device))
            written, took, wanted = rows.rows(0, 1 << 18).astype(np.int32), [], None
            for macros in (None, FILTER):
                kernels = []
                for _ in range(runs + 1):
                    with laid_out(device.device, macros):
                        made = DeviceExtension(device.device, device.graph, graph.adjacency, Control(), passes="twice")
                        found = made.extend(written, "any")
                    kernels.append(made.milliseconds)
                wanted = wanted or found
                assert all(map(np.array_equal, found, wanted))
                took.append(statistics.median(kernels[1:]))
            cells = [f"{took[0]:.2f}", f"{took[1]:.2f}", f"{took[0] / took[1]:.2f}"]
            table.add(name, f"{size} to {size + 1}", f"{len(written):,}", f"{len(found[0]):,}", *cells)
            progress(f"{name} {size}: {cells}")
    table.notes.append(surroundings())
    return table


def sorts(runs: int, keys: int, segments: Sequence[int] = (4, 8, 16)) -> Table:
    """Random keys sorted by segments (optimisation 4), beside one sort on the device and the host's."""
    columns = ["keys", "segments", "merge", "sort", "kernels", "MB moved", "call"]
    table = Table("64-bit keys sorted by segments, ms", columns)
    device = GpuExecutor(0).device
    values = np.random.default_rng(1).integers(0, 1 << 63, keys, dtype=np.int64).astype(np.uint64)
    wanted, host = _timed(lambda: np.sort(values), 0)
    with device.active():
        found, one = _timed(lambda: ExternalSort(device, keys).sort(values), runs)
        assert np.array_equal(found, wanted)
        table.add(f"{keys:,}", "host", "", "", "", "", f"{host:,.0f}")
        table.add(f"{keys:,}", "1", "", "", "", f"{32 * keys / 1e6:,.0f}", f"{one:,.0f}")
        for count in segments:
            for merge in ("all", "half", "sort"):
                sort = ExternalSort(device, -(-keys // count), merge)  # type: ignore[arg-type]
                found, took = _timed(lambda sort=sort: sort.sort(values), runs)
                assert np.array_equal(found, wanted)
                calls = runs + 1
                cells = [
                    f"{sort.sorting / calls:.1f}",
                    f"{sort.merging / calls:.1f}",
                    f"{sort.moved / calls / 1e6:,.0f}",
                ]
                table.add(f"{keys:,}", str(count), merge, *cells, f"{took:,.0f}")
                progress(f"{count} {merge}: {cells} {took:.0f}")
    table.notes.append("sort and kernels: the device's time for segments and for merging them")
    table.notes.append(surroundings())
    return table


def images(runs: int, edges: int) -> Table:
    """The vertices that patterns take: flags, bits, and sorted keys; within a quarter of the memory that keys take."""
    columns = [
        *("graph", "rows", "slots", "distinct", "host sorts", "host flags", "bits kernels", "bits call"),
        *("sort kernels", "merge kernels", "sort call", "hash kernels", "label sort", "aggregation", "on the host"),
    ]
    table = Table("minimum image supports of sets of three vertices: ms", columns)
    device = GpuExecutor(0)
    for name, graph, rows in _sets(edges):
        task, slots, quick_of_row = _aggregated(graph, rows)
        vertices, read = len(graph), rows.rows_at
        arguments = slots, quick_of_row, read, vertices, 0, Limits()
        wanted, sorting = _timed(lambda arguments=arguments: supports._sorted(*arguments), 0)
        found, marking = _timed(lambda arguments=arguments: supports._marked(*arguments), 0)
        assert np.array_equal(found, wanted)
        written = [tuple(each) for each in supports.pieces(rows, quick_of_row, 1 << 19)]
        with device.device.active():
            kernels = list[float]()

            def marked(graph: MiningGraph, slots: Any, task: Any, written: Any, kernels: list[float]) -> Any:
                bits = Images.of(device.device, device.graph, graph.adjacency, slots.of_place, len(slots), task)
                assert bits is not None
                for piece in written:
                    bits.mark(*piece)
                counts = bits.counts()
                kernels.append(bits.milliseconds)
                return counts

            found, call = _timed(partial(marked, graph, slots, task, written, kernels), runs)
            assert np.array_equal(found, wanted)
            segment = max(3 * len(rows) // 4, 3 << 19)
            sort = ExternalSort(device.device, segment)
            found, sorted_call = _timed(
                lambda sort=sort, written=written, slots=slots, vertices=vertices: sort.images(
                    written, slots.of_place, len(slots), vertices
                ),
                runs,
            )
            assert np.array_equal(found, wanted)
            hashing = DeviceExtension(device.device, device.graph, graph.adjacency, Control())
            for each, _ in written:
                hashing.quick(each, task)
            labels = quick_of_row.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            label_sort = ExternalSort(device.device, segment)
            label_sort.segments(labels)
        calls = runs + 1
        cells = [
            sorting,
            marking,
            statistics.median(kernels[1:]),
            call,
            sort.sorting / calls,
            sort.merging / calls,
            sorted_call,
        ]
        limits = Limits(executor=device)
        mine, on_device = _timed(partial(aggregation.aggregation, rows, graph, limits=limits), 1)
        known, on_host = _timed(partial(aggregation.aggregation, rows, graph), 0)
        assert mine.patterns == known.patterns
        assert np.array_equal(mine.supports, known.supports)
        cells += [hashing.milliseconds, label_sort.sorting, on_device, on_host]
        shape = f"{len(rows):,}", f"{len(slots):,}", f"{int(wanted.sum()):,}"
        table.add(name, *shape, *(f"{each:,.1f}" for each in cells))
        progress(f"{name}: {shape} {cells}")
    table.notes.append("kernels and calls over pieces of rows that are written out; segments of a quarter of all keys")
    table.notes.append(surroundings())
    return table


def _spread_pages(heats: Sequence[Any], sizes: Sequence[Any], quota: int) -> list[Any]:
    """As many pages as :func:`graphdb.gpu.data.pages.hottest` gives, evenly spread: whatever is read how often."""
    total = sum(map(len, heats))
    count = quota // int(np.concatenate(sizes).max())
    chosen = np.zeros(total, bool)
    chosen[np.linspace(0, total - 1, max(min(count, total), 0)).astype(int)] = True
    return np.split(chosen, np.cumsum([len(each) for each in heats])[:-1])


PLACEMENTS: dict[str, Callable[[Sequence[Any], Sequence[Any], int], list[Any]]] = {
    "heat": pages.hottest,
    "spread": _spread_pages,
    "zero-copy": lambda heats, sizes, _quota: _spread_pages(heats, sizes, 0),
}
"""Which pages of lists are on the device: the hottest (GAMMA, equation 5), others as many, or none."""


def placements(runs: int, edges: int) -> Table:
    """Frequent patterns of two edges within a quarter of the memory, by what of the lists is on the device."""
    columns = ["budget MiB", "pages", "same", "call", "kernels", "what it says"]
    table = Table("lists on the device by access heat, evenly spread, and none: ms", columns)
    graph, wanted, budget = labelled_graph(edges), None, None
    support = len(graph) // 30
    for name, chosen in {"all": None, **PLACEMENTS}.items():
        with mock.patch.object(residency, "hottest", chosen or pages.hottest):
            device = GpuExecutor(0, memory_limit=budget)
            limits = Limits(executor=device)
            calls, kernels, said = [], [], ""
            for _ in range(runs + 1):
                limits.notes.clear()
                started = time.perf_counter()
                miner = Miner(graph, support, 2, limits)
                found = [(each.pattern, each.support) for each in miner.levels(2, 1.0)]
                calls.append((time.perf_counter() - started) * 1000)
                kernels.append(miner.search.milliseconds)  # type: ignore[attr-defined]
                said = "; ".join(limits.notes)
                del miner  # it has its lists on the device
        wanted = wanted or found
        cells = [f"{statistics.median(each[1:]):,.1f}" for each in (calls, kernels)]
        table.add(f"{device.device.memory.budget / 2**20:,.0f}", name, "yes" if found == wanted else "NO", *cells, said)
        progress(f"{name}: {cells} {said}")
        if budget is None:
            budget = max(int(device.device.memory.pool.total_bytes()) // 4, 16 << 20)
    table.notes.append(f"{len(graph):,} vertices, {graph.edges:,} edges; a quarter of what the run takes that fits")
    table.notes.append(surroundings())
    return table


def labelled_graph(edges: int) -> MiningGraph:
    """A random graph with hubs, a label of twelve at each vertex."""
    random, vertices = np.random.default_rng(1), edges // 20
    ends = (random.random((2, edges)) ** 2 * vertices).astype(np.int64)
    return MiningGraph.of(*ends, vertex_labels=(np.arange(vertices), random.integers(0, 12, vertices)))


def _sets(edges: int) -> Iterator[tuple[str, MiningGraph, EmbeddingTable]]:
    graph = mining_sets.snap("wiki-Vote")
    yield "wiki-Vote", graph, vertex_extension(vertex_extension(EmbeddingTable.of_vertices(graph), graph), graph)
    graph = labelled_graph(edges)
    chosen = EmbeddingTable.of_vertices(graph, np.arange(0, len(graph), 40))
    yield f"{len(graph):,} vertices", graph, vertex_extension(vertex_extension(chosen, graph), graph)


def _aggregated(graph: MiningGraph, rows: EmbeddingTable) -> tuple[Any, supports.Slots, Any]:
    """What aggregation hands to what finds images: how to read rows, the slots, and the quick pattern of each row."""
    seen: list[Any] = []
    plain = aggregation._images

    def images(table: Any, reader: Any, slots: Any, quick_of_row: Any, *rest: Any) -> Any:
        seen.append((reader.task, slots, quick_of_row))
        return plain(table, reader, slots, quick_of_row, *rest)

    with mock.patch.object(aggregation, "_images", images):
        aggregation.aggregation(rows, graph)
    return seen[0]  # type: ignore[no-any-return]


def _timed(work: Callable[[], Any], runs: int) -> tuple[Any, float]:
    """What is found, and the median milliseconds of so many calls after the first, or of that alone."""
    calls, found = [], None
    for _ in range(runs + 1):
        started = time.perf_counter()
        found = work()
        calls.append((time.perf_counter() - started) * 1000)
    return found, statistics.median(calls[1:] or calls)
