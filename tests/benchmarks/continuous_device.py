"""Incremental matches of large batches on a device, beside the CPU and counting again on the device.

    python -m tests.benchmarks.continuous_device --set github --share 0.1
    python -m tests.benchmarks.continuous_device --set snap:email-Enron
    python -m tests.benchmarks.continuous_device --apply 16000000

The graph is the end of a stream of suites/csm, or one of data/snap with random labels, without some of its edges; a batch inserts these, and deletes half as many
others: together ``share`` of the edges.  Queries are those of six vertices: dense, sparse and trees.

*device* is the wall time of a batch on the device, staging on the host and transfers included, the median of some runs;
*merge* and *search* are the device's time for the batch's entries and for the search, *floor* what it takes to read all
lists once from the device's memory.  *CPU* is the same batch on one thread and on all.  *peer* is the best continuous matcher's recorded time for the mixed
stream of the set, one update at a time, for as many updates as the batch has.  *again* counts the query on the
device after the batch, its plan and partitions made before.  ``--apply`` measures updates a second of lists alone: those
of a continuous query, and the partitions that any query reads, out and in, with a label's codes both ways on top.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.executor import GpuExecutor
from graphdb.incremental.changes import Updates
from graphdb.incremental.device.search import DeviceSearch
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.changes import Changes
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Direction
from tests import csm
from tests.benchmarks.continuous import best_peer
from tests.benchmarks.continuous_ablations import VARIANTS, WHOLE
from tests.benchmarks.harness import CORES, Table, main, progress, surroundings
from tests.datasets import SHARED

Ints = NDArray[np.int64]

BANDWIDTH = 4.3e12
"""Bytes that an H200 reads in a second."""
VERTICES = 6
SLOW = 20.0
"""Seconds on the CPU after which a query is not asked again there."""


def set_of(name: str, folder: Path) -> csm.Set:
    """Return a set of suites/csm, or a graph of data/snap with random labels and the queries of github."""
    if not name.startswith("snap:"):
        return csm.load(name, folder)
    with gzip.open(SHARED / "data" / "snap" / f"{name[5:]}.txt.gz", "rt") as file:
        edges = np.loadtxt(file, np.int64, comments="#", usecols=(0, 1))
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return csm.labelled(edges, "github", folder)


def batch_of(data: csm.Set, share: float, seed: int = 0) -> tuple[Ints, Updates]:
    """Return the edges before a batch, and the batch: two insertions for each deletion."""
    draw = np.random.default_rng(seed)
    edges = np.unique(np.concatenate([data.initial.edges, data.streams["insert"].edges]), axis=0)
    edges = edges[draw.permutation(len(edges))]
    new, old = int(len(edges) * share * 2 / 3), int(len(edges) * share / 3)
    inserted = np.arange(new + old) < new
    order = draw.permutation(new + old)
    changed = edges[: new + old][order]
    return edges[new:], Updates(np.full(new + old, csm.EDGE_LABEL), changed[:, 0], changed[:, 1], inserted[order])


def source_of(edges: Ints, vertices: int) -> ArraySource:
    """Return a graph of edges."""
    return ArraySource(edges[:, 0], np.full(len(edges), csm.EDGE_LABEL), edges[:, 1], vertices)


def undone(updates: Updates) -> Updates:
    """Return what takes a batch back."""
    return updates._replace(inserted=~np.asarray(updates.inserted, bool))


def timed(work: Callable[[], Any], undo: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    """Return what ``work`` gives, and the median of its seconds; each run is undone."""
    taken, found = [], None
    for _ in range(repeat):
        begun = time.perf_counter()
        found = work()
        taken.append(time.perf_counter() - begun)
        undo()
        if sum(taken) > SLOW:
            break
    return found, statistics.median(taken)


def measure(
    pattern: PatternGraph, edges: Ints, vertices: int, updates: Updates, executor: GpuExecutor, arguments: Any
) -> tuple[list[str], dict[str, float]]:
    """Return the cells of a query, and its seconds; raises SystemExit where counts differ."""
    ends, back = [len(updates.inserted)], undone(updates)  # type: ignore[arg-type]
    source = source_of(edges, vertices)
    matcher = IncrementalMatcher(source, [pattern], device=lambda: executor.device, pinned=True)
    device = matcher._device
    assert device is not None
    device.steal = not arguments.no_stealing
    matcher.count(updates, ends)  # which makes the copy
    matcher.count(back, ends)
    phases = list[tuple[float, float, int]]()

    def on_device() -> Any:
        found = matcher.count(updates, ends)
        phases.append((device.merged, device.searched, device.stolen))
        return found

    found, seconds = timed(on_device, lambda: matcher.count(back, ends), arguments.repeat)
    assert device.batches == 2 * len(phases) + 2, "the device has given up"
    times = {"device": seconds}
    for threads in (1, CORES):
        if threads == 1 and arguments.one_thread is False:
            continue
        host = IncrementalMatcher(source, [pattern], threads=threads)
        expected, times[f"CPU {threads}"] = timed(
            lambda host=host: host.count(updates, ends),
            lambda host=host: host.count(back, ends),
            1 if threads == 1 else 3,
        )
        if not np.array_equal(found, expected):
            raise SystemExit(f"WRONG: {found.tolist()}, expected {expected.tolist()}")
    whole = {tuple(edge) for edge in edges.tolist()}
    gone = {tuple(edge) for edge in _pairs(updates, inserted=False)}
    after = np.array(sorted((whole | {tuple(edge) for edge in _pairs(updates, inserted=True)}) - gone), np.int64)
    plan = make_plan(replace(pattern, outputs=(), count_only=True), DataGraph(source_of(after, vertices)))
    executor.count(plan, Control())
    _, times["again"] = timed(lambda: executor.count(plan, Control()), lambda: None, arguments.repeat)
    merged, searched, stolen = (statistics.median(column) for column in zip(*phases, strict=True))
    floor = device.copy_bytes / BANDWIDTH
    cells = [
        f"{int(found[0, 0, 0]):,}",
        f"{int(found[0, 0, 1]):,}",
        *(f"{each * 1e3:.1f}" for each in times.values()),
        f"{merged:.2f}",
        f"{searched:.2f}",
        f"{floor * 1e3:.3f}",
        f"{stolen:,.0f}",
    ]
    return cells, times


def _pairs(updates: Updates, *, inserted: bool) -> list[list[int]]:
    chosen = np.asarray(updates.inserted, bool) == inserted
    pairs: list[list[int]] = np.column_stack([updates.sources, updates.targets])[chosen].tolist()
    return pairs


def queries(data: csm.Set, arguments: Any) -> dict[str, PatternGraph]:
    """Return the queries that are asked."""
    wanted = {name: found for name, found in data.queries.items() if len(found.vertices) == arguments.vertices}
    return {name: found for name, found in wanted.items() if arguments.queries in name}


def searched(executor: GpuExecutor, arguments: Any) -> Table:
    """Measure the queries of a set."""
    data = set_of(arguments.set, arguments.folder)
    edges, updates = batch_of(data, arguments.share)
    count = len(np.asarray(updates.inserted))
    hosts = [f"CPU {threads}" for threads in (1, CORES) if threads > 1 or arguments.one_thread]
    table = Table(
        f"{arguments.set}, {arguments.without}: ms for a batch of {count:,} changes of {len(edges):,} edges",
        ["query", "gained", "lost", "device", *hosts, "again", "merge", "search", "floor", "stolen", "peer", ""],
    )
    ratios, beside = list[float](), list[float]()
    peers = csm.peers(arguments.folder).get(arguments.set, {}).get("mixed")
    for name, pattern in queries(data, arguments).items():
        progress(f"{arguments.set}: {name}")
        cells, times = measure(pattern, edges, len(data.labels), updates, executor, arguments)
        ratios.append(times[hosts[0]] / times["device"])
        if peers is not None:
            system, seconds = best_peer(peers, name)
            seconds *= count / len(data.streams["mixed"].edges)
            beside.append(seconds / times["device"])
            cells += [f"{seconds * 1e3:.1f}", system]
        else:
            cells += ["", ""]
        table.add(name, *cells)
        print(name, *cells, flush=True)
    table.notes.append(f"{statistics.geometric_mean(ratios):.1f} times faster than {hosts[0]}, geometric mean")
    if beside:
        table.notes.append(f"{statistics.geometric_mean(beside):.1f} times faster than the best peer, geometric mean")
    table.notes.append(f"{surroundings('graphdb', 'cupy-cuda13x')}; median of {arguments.repeat} runs")
    return table


def applied(executor: GpuExecutor, size: int, batches: int = 5, each: int = 100_000) -> Table:
    """Measure updates a second of the lists of one edge label, both directions."""
    draw = np.random.default_rng(1)
    vertices = size // 8
    edges = np.minimum(draw.integers(0, vertices, (size, 2)), draw.integers(0, vertices, (size, 2)))
    nobody = PatternVertex("a")
    pattern = PatternGraph(
        (nobody, PatternVertex("b"), PatternVertex("c")),
        (
            PatternEdge("e", 0, 1, (0,), True, 0),
            PatternEdge("f", 1, 2, (0,), True, 0),
            PatternEdge("g", 2, 0, (0,), True, 0),
        ),
        (Clause(csm.MatchMode.DIFFERENT_NODES, (0, 1, 2)),),
    )
    progress("the lists are made")
    matcher = IncrementalMatcher(source_of(edges, vertices), [pattern], device=lambda: executor.device, pinned=True)
    device = matcher._device
    assert device is not None
    table = Table(f"{size:,} edges, batches of {each:,}", ["batch", "ms", "merge ms", "search ms", "updates / s"])
    for number in range(batches):
        pairs, inserted = draw.integers(0, vertices, (each, 2)), draw.random(each) < 0.6
        pairs[~inserted] = edges[draw.integers(0, size, int((~inserted).sum()))]
        updates = Updates(np.zeros(each, np.int64), pairs[:, 0], pairs[:, 1], inserted)
        begun = time.perf_counter()
        matcher.count(updates, [each])
        taken = time.perf_counter() - begun
        row = (f"{taken * 1e3:.1f}", f"{device.merged:.2f}", f"{device.searched:.2f}", f"{each / taken:,.0f}")
        table.add(str(number), *row)
        print(number, *row, flush=True)
    return table


def followed(executor: GpuExecutor, size: int, batches: int = 8, each: int = 100_000) -> Table:
    """Measure changes a second of partitions and their device copies, which are compared at the end."""
    draw = np.random.default_rng(2)
    vertices = size // 8
    edges = np.minimum(draw.integers(0, vertices, (size, 2)), draw.integers(0, vertices, (size, 2)))
    source = ArraySource(edges[:, 0], np.zeros(size, np.int64), edges[:, 1], vertices)
    directions: dict[str, tuple[Direction, ...]] = {"out, in": ("out", "in"), "out, in, both": ("out", "in", "both")}
    columns = ["batch", "changes ms", "partitions ms", "device ms", "MB sent", "changes / s"]
    table = Table(f"partitions of {size:,} edges, batches of {each:,}", ["directions", *columns])
    memory, device = executor.device.memory, executor.device
    for name, asked in directions.items():
        progress(name)
        graph = DataGraph(source, 16 << 30)
        for number in range(batches):
            pairs = draw.integers(0, vertices, (each, 2))
            new = int(each * 0.6)
            gone = edges[draw.choice(size, each - new, replace=False)]
            label = np.zeros((each, 1), np.int64)
            changes = Changes(np.hstack([label[new:], gone]), np.hstack([label[:new], pairs[:new]]))
            following, times, sent = DataGraph(source, 16 << 30), [time.perf_counter()], memory.uploaded
            following.follow(graph, [changes])
            graph = following
            times.append(time.perf_counter())
            graph.catch_up(CORES)
            made = [graph.partition((0,), direction) for direction in asked]
            times.append(time.perf_counter())
            with device.active():
                copies = [executor.graph.partition(partition) for partition in made]
                device.stream.synchronize()
            times.append(time.perf_counter())
            taken = times[-1] - times[0]
            parts = tuple(f"{(end - begin) * 1e3:.1f}" for begin, end in pairwise(times))
            row = (*parts, f"{(memory.uploaded - sent) / 1e6:.1f}", f"{each / taken:,.0f}")
            table.add(name, str(number), *row)
            print(name, number, *row, flush=True)
        for partition, copy in zip(made, copies, strict=True):
            pairs_of = ((copy.offsets, partition.offsets), (copy.neighbours, partition.neighbours))
            if partition.codes is not None:
                pairs_of += ((copy.codes, partition.codes), (copy.code_offsets, partition.code_offsets))
            if not all(np.array_equal(there.get(), here) for there, here in pairs_of):
                raise SystemExit(f"WRONG: the copy of {name}")
        begun = time.perf_counter()
        with device.active():
            whole = [memory.upload(array) for each in made for array in (each.offsets, each.neighbours)]
            device.stream.synchronize()
        table.notes.append(f"{name}: offsets and neighbours whole {(time.perf_counter() - begun) * 1e3:.0f} ms")
        del whole, copies, made
    return table


def run(argv: list[str]) -> list[Table]:
    """Measure and return tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="github")
    parser.add_argument("--folder", type=Path, default=csm.FOLDER, help="where the sets are")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--vertices", type=int, default=VERTICES)
    parser.add_argument("--queries", default="", help="part of their names")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--apply", type=int, default=0)
    parser.add_argument("--one-thread", action="store_true", help="on the CPU, too")
    parser.add_argument("--no-stealing", action="store_true")
    parser.add_argument("--without", default=WHOLE, choices=VARIANTS, help="a part that is taken away")
    parser.add_argument("--macros", default="", help="of the search's kernel: RESIDENT=3,...")
    arguments = parser.parse_args(argv)
    DeviceSearch.macros.update(pair.split("=") for pair in arguments.macros.split(",") if pair)
    executor = GpuExecutor(0)
    if arguments.apply:
        return [followed(executor, arguments.apply), applied(executor, arguments.apply)]
    with VARIANTS[arguments.without]():
        return [searched(executor, arguments)]


if __name__ == "__main__":
    main(run)
