"""Mining on a device, beside published programs: cliques, motifs and frequent patterns.

    python -m tests.benchmarks.device_mining --suite FOLDER --runs 9

Times are milliseconds, medians, warm: *kernels* from the first kernel to the last, *call* all that a count takes.  The
best published kernel time is that of ``peers.json`` in the suite's folder; *ratio* is of it to *kernels*.  Every count is
compared with the suite's, and where it has none (motifs of five vertices) with the host's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphdb.gpu.executor import GpuExecutor
from graphdb.gpu.mining.compression import DeviceCompressor
from graphdb.gpu.mining.extension import DeviceExtension
from graphdb.mining import EmbeddingTable, edge_extension, filtering, vertex_extension
from graphdb.mining.cliques import clique_plan
from graphdb.mining.frequent import Miner, frequent_patterns
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.mining.motifs import joint_count, known_motifs, motifs
from graphdb.plan.domains import Candidates
from graphdb.plan.executor import Control
from tests import mining_sets
from tests.benchmarks import mining_ablations
from tests.benchmarks.harness import Table, main, progress, surroundings

PARTS = (
    "structure",
    "frequent",
    "passes",
    "groups",
    "layout",
    "filter",
    "sort",
    "images",
    "placement",
    "filters",
    "divided",
    "larger",
)
GRAPHS = ("wiki-Vote", "email-Enron", "ca-AstroPh-cc1")


def run(argv: list[str]) -> list[Table]:
    """Measure and return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, default=mining_sets.FOLDER)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--sizes", nargs="+", type=int, default=range(3, 9), help="of cliques")
    parser.add_argument("--motifs", nargs="+", type=int, default=(3, 4, 5))
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--edges", type=int, default=4_000_000, help="of the graph that is larger than the budget")
    parser.add_argument("--keys", type=int, default=1 << 27, help="that are sorted")
    arguments = parser.parse_args(argv)
    mining_sets.FOLDER = arguments.suite
    tables = {
        "structure": lambda: _structure(arguments.graphs, arguments.sizes, arguments.motifs, arguments.runs),
        "frequent": lambda: _frequent(arguments.runs),
        "passes": lambda: _passes(arguments.graphs, arguments.runs),
        "groups": lambda: _groups(arguments.graphs, arguments.runs),
        "layout": lambda: mining_ablations.layouts(arguments.graphs, arguments.runs),
        "filter": lambda: mining_ablations.filters(arguments.graphs, arguments.runs),
        "sort": lambda: mining_ablations.sorts(arguments.runs, arguments.keys),
        "images": lambda: mining_ablations.images(arguments.runs, arguments.edges),
        "placement": lambda: mining_ablations.placements(arguments.runs, arguments.edges),
        "filters": lambda: _filters(arguments.graphs, arguments.runs),
        "divided": lambda: _divided(arguments.runs),
        "larger": lambda: _larger(arguments.edges),
    }
    return [tables[name]() for name in arguments.only or PARTS]


def measured(work: Callable[[], Any], device: GpuExecutor, runs: int) -> tuple[float, float, float, Any]:
    """Return the first call, the median call and the median of kernels, in ms, and what was found."""
    calls, kernels, found = [], [], None
    for _ in range(runs + 1):
        device._counter.milliseconds = 0.0  # a search does not measure its kernels: then the call counts
        started = time.perf_counter()
        found = work()
        calls.append((time.perf_counter() - started) * 1000)
        kernels.append(device.milliseconds or calls[-1])
        if sum(calls[1:]) > 5000:
            break
    return calls[0], statistics.median(calls[1:]), statistics.median(kernels[1:]), found


def _structure(graphs: Sequence[str], sizes: Sequence[int], motif_sizes: Sequence[int], runs: int) -> Table:
    columns = ["graph", "task", "right", "first", "call", "kernels", "best", "ratio"]
    table = Table("cliques and motifs on a device, ms", columns)
    known, device, ratios = mining_sets.counts(), GpuExecutor(0), []
    peers = json.loads((mining_sets.FOLDER / "peers.json").read_text())["graphs"]

    def row(name: str, task: str, right: bool, times: tuple[float, float, float]) -> None:
        best = peers.get(name, {}).get(task, {}).get("best ms")
        cells = [f"{each:.3f}" for each in times]
        if best:
            ratios.append(best / times[2])
        table.add(
            name, task, "yes" if right else "NO", *cells, *([f"{best:.3f}", f"{ratios[-1]:.2f}"] if best else ["", ""])
        )
        progress(f"{name} {task}: {cells} {best} {right}")

    for name in graphs:
        graph, counts = mining_sets.snap(name), known["graphs"][name]
        for size in sizes:
            plan = clique_plan(graph, size)
            *times, found = measured(lambda plan=plan: device.count(plan) // plan.automorphisms, device, runs)
            row(name, f"{size}-clique", found == counts["cliques"][str(size)], (times[0], times[1], times[2]))
        for size in motif_sizes:
            joint = joint_count(graph, known_motifs(size, False).patterns)
            *times, copies = measured(lambda joint=joint: device.count_jointly(joint), device, runs)
            row(name, f"{size}-motif", _right(graph, size, counts, device, copies), (times[0], times[1], times[2]))
    table.notes.append(
        f"geometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}; least {min(ratios):.2f}"
    )
    table.notes.append(surroundings())
    return table


def _frequent(runs: int) -> Table:
    columns = ["graph", "edges", "patterns", "right", "first", "call", "kernels", "host", "best", "ratio"]
    table = Table("frequent patterns on a device, ms (host: the call there)", columns)
    device, ratios = GpuExecutor(0), []
    peers = json.loads((mining_sets.FOLDER / "peers.json").read_text())["graphs"]
    for name in mining_sets.FREQUENT:
        known = mining_sets.frequent(name)
        graph, support = mining_sets.labelled(known["graph"]), known["minsup"]
        for edges in range(2, known["max_edges"] + 1):
            calls, kernels = [], []
            for _ in range(runs + 1):
                miner = Miner(graph, support, edges, Limits(executor=device))
                started = time.perf_counter()
                found = miner.levels(edges, 1.0)
                calls.append((time.perf_counter() - started) * 1000)
                kernels.append(miner.search.milliseconds)  # type: ignore[attr-defined]
            started = time.perf_counter()
            wanted = frequent_patterns(graph, support, edges)
            host = (time.perf_counter() - started) * 1000
            same = [(e.pattern, e.support) for e in found] == [(e.pattern, e.support) for e in wanted]
            right = same and len(found) == sum(known["frequent by edges"][:edges])
            took = statistics.median(kernels[1:])
            best = peers.get(f"{known['graph']} minsup {support}", {}).get(f"fsm edges<={edges}", {}).get("best ms")
            if best:
                ratios.append(best / took)
            beside = [f"{best:.3f}", f"{ratios[-1]:.2f}"] if best else ["", ""]
            cells = [f"{each:.3f}" for each in (calls[0], statistics.median(calls[1:]), took, host)]
            table.add(name, str(edges), f"{len(found):,}", "yes" if right else "NO", *cells, *beside)
            progress(f"{name} {edges} edges: {cells} {right}")
    table.notes.append(f"geometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")
    table.notes.append(surroundings())
    return table


def _passes(graphs: Sequence[str], runs: int) -> Table:
    """One pass to a pool of blocks, beside counting first and extending twice (GAMMA §6.1, optimisation 1)."""
    columns = ["graph", "extension", "rows", "extensions", "pool", "twice", "ratio", "pool call", "twice call", "host"]
    table = Table("extension in one pass or two: kernels, and calls, in ms", columns)
    device = GpuExecutor(0)
    for name in graphs:
        graph = mining_sets.snap(name)
        pairs = vertex_extension(EmbeddingTable.of_vertices(graph), graph)
        triangles = vertex_extension(pairs, graph, "all")
        tables = [("any, 2 to 3", pairs, "any"), ("all, 3 to 4", triangles, "all")]
        for what, rows, kind in [*tables, ("edges, 1 to 2", EmbeddingTable.of_edges(graph), "edges")]:
            lists = graph.incidence if kind == "edges" else graph.adjacency
            written = rows.rows().astype(np.int32)
            took: dict[str, tuple[float, float]] = {}
            found = {}
            for passes in ("pool", "twice"):
                kernels, calls = [], []
                for _ in range(runs + 1):
                    extender = DeviceExtension(device.device, device.graph, lists, Control(), passes=passes)
                    started = time.perf_counter()
                    found[passes] = extender.extend(written, kind)
                    calls.append((time.perf_counter() - started) * 1000)
                    kernels.append(extender.clock.milliseconds)
                took[passes] = statistics.median(kernels[1:]), statistics.median(calls[1:])
            assert all(map(np.array_equal, found["pool"], found["twice"]))
            started = time.perf_counter()
            wanted = edge_extension(rows, graph) if kind == "edges" else vertex_extension(rows, graph, kind)
            host = (time.perf_counter() - started) * 1000
            assert np.array_equal(wanted.columns[-1].values, found["pool"][0])
            (pool, pool_call), (twice, twice_call) = took["pool"], took["twice"]
            cells = [f"{each:.2f}" for each in (pool, twice, twice / pool, pool_call, twice_call, host)]
            table.add(name, what, f"{len(rows):,}", f"{len(wanted):,}", *cells)
            progress(f"{name} {what}: {cells}")
    table.notes.append(surroundings())
    return table


def _groups(graphs: Sequence[str], runs: int) -> Table:
    """Prefixes intersected once for all their rows, beside rows one by one (GAMMA §6.1, optimisation 2)."""
    columns = [
        "graph",
        "cliques",
        "rows",
        "a prefix",
        "extensions",
        "pool",
        "pool grouped",
        "twice",
        "twice grouped",
        "gain",
    ]
    table = Table("cliques extended row by row or prefix by prefix: kernels in ms", columns)
    device = GpuExecutor(0)
    for name in graphs:
        graph = mining_sets.snap(name)
        rows = EmbeddingTable.of_vertices(graph)
        for size in (2, 3, 4):
            rows = vertex_extension(rows, graph, "all", Limits(executor=device))
            written, lists = rows.rows().astype(np.int32), graph.adjacency
            prefixes = max(len(np.unique(rows.columns[-1].parents)), 1)
            took, found = [], []
            for passes in ("pool", "twice"):
                for grouped in (False, True):
                    kernels = []
                    for _ in range(runs + 1):
                        made = DeviceExtension(
                            device.device, device.graph, lists, Control(), passes=passes, grouped=grouped
                        )
                        values, counts = made.extend(written, "all")
                        kernels.append(made.milliseconds)
                    took.append(statistics.median(kernels[1:]))
                    found.append((values, counts))
            assert all(all(map(np.array_equal, found[0], other)) for other in found[1:])
            gain = min(took[0], took[2]) / min(took[1], took[3])
            cells = [*(f"{each:.2f}" for each in took), f"{gain:.2f}"]
            shape = (f"{len(rows):,}", f"{len(rows) / prefixes:.1f}", f"{len(found[0][0]):,}")
            table.add(name, f"{size} to {size + 1}", *shape, *cells)
            progress(f"{name} {size}: {cells}")
    table.notes.append(surroundings())
    return table


def _filters(graphs: Sequence[str], runs: int) -> Table:
    """A filter between extensions on the device, beside the host's one thread."""
    columns = ["graph", "rows", "kept", "MB moved", "kernels", "call", "host", "ratio"]
    table = Table("sets of three vertices filtered, ms", columns)
    device, random = GpuExecutor(0), np.random.default_rng(1)
    for name in graphs:
        graph = mining_sets.snap(name)
        rows = vertex_extension(vertex_extension(EmbeddingTable.of_vertices(graph), graph), graph)
        for share in (0.05, 0.5):
            keep = random.random(len(rows)) < share
            calls, kernels, moved, here = [], [], 0, []
            for _ in range(runs + 1):
                compressor = DeviceCompressor(device.device, Control())
                started = time.perf_counter()
                found = compressor.compress(rows.columns, keep)
                calls.append((time.perf_counter() - started) * 1000)
                kernels.append(compressor.clock.milliseconds)
                moved = compressor.moved
                started = time.perf_counter()
                wanted = filtering(rows, keep)
                here.append((time.perf_counter() - started) * 1000)
            for mine, other in zip(found, wanted.columns, strict=True):
                assert all(map(np.array_equal, mine, other))
            times = [statistics.median(each[1:]) for each in (kernels, calls, here)]
            cells = [f"{moved / 1e6:.0f}", *(f"{each:.2f}" for each in times), f"{times[2] / times[1]:.2f}"]
            table.add(name, f"{len(rows):,}", f"{share:.0%}", *cells)
            progress(f"{name} {share}: {cells}")
    table.notes.append(surroundings())
    return table


class _Timed:
    """Times each level's domains on one device: of all its patterns, and of every other one, as two would share them."""

    def __init__(self, search: Any) -> None:
        self._search, self.levels = search, list[tuple[int, float, float]]()
        self.summary = ""

    def find(self, candidates: Candidates, support: int, keep: bool, share: Any) -> Any:
        """As the search."""
        columns = (candidates.sizes, candidates.edges, candidates.orbits, candidates.sources)
        half = Candidates(*(column[::2] for column in columns))
        started = time.perf_counter()
        self._search.find(half, support, keep, share)
        between = time.perf_counter()
        found = self._search.find(candidates, support, keep, share)
        self.levels.append((len(candidates), time.perf_counter() - between, between - started))
        return found

    def keep(self, frequent: Any) -> Any:
        """As the search."""
        return self._search.keep(frequent)


def _divided(runs: int) -> Table:
    """What a second device could take off a first: a level's domains, of all patterns and of half of them."""
    columns = ["graph", "edges", "scanned", "patterns", "all", "half", "saved", "open", "call"]
    table = Table("domains of all patterns and of half of them, all levels, ms on one device", columns)
    device = GpuExecutor(0)
    for name in mining_sets.FREQUENT:
        known = mining_sets.frequent(name)
        graph, support = mining_sets.labelled(known["graph"]), known["minsup"]
        for edges in range(2, known["max_edges"] + 1):
            took = []
            for _ in range(runs + 1):
                started = time.perf_counter()
                miner = Miner(graph, support, edges, Limits(executor=device))
                opened = time.perf_counter() - started
                miner.search = timed = _Timed(miner.search)  # type: ignore[assignment]
                miner.levels(edges, 1.0)
                whole, half = (sum(level[i] for level in timed.levels) for i in (1, 2))
                took.append((whole, half, whole - half, opened, time.perf_counter() - started - half))
            cells = [f"{statistics.median(each) * 1000:.2f}" for each in zip(*took[1:], strict=True)]
            patterns = sum(level[0] for level in timed.levels)
            table.add(name, str(edges), f"{graph.edges * 4.0**edges:,.0f}", f"{patterns:,}", *cells)
            progress(f"{name} {edges}: {cells}")
    table.notes.append(surroundings())
    return table


def _larger(edges: int) -> Table:
    """Runs whose graph and intermediate results are larger than the budget, beside the same that fit."""
    columns = ["task", "budget MiB", "same", "first", "second", "kernels", "ratio", "what it says"]
    table = Table("larger than the device's budget, ms", columns)
    graph = mining_ablations.labelled_graph(edges)
    support = edges // 20 // 30
    sets = EmbeddingTable.of_vertices(graph, np.arange(0, len(graph), 40))
    motif_plan = joint_count(graph, known_motifs(4, False).patterns)

    def domains(limits: Limits) -> Any:
        return [(each.pattern, each.support) for each in frequent_patterns(graph, support, 2, limits=limits)]

    def extended(limits: Limits) -> Any:
        return vertex_extension(vertex_extension(sets, graph, limits=limits), graph, limits=limits).columns[-1].values

    def counted(limits: Limits) -> Any:
        assert limits.executor is not None
        return limits.executor.count_jointly(motif_plan)

    cliques_plan = clique_plan(graph, 4)

    def cliques(limits: Limits) -> Any:
        assert limits.executor is not None
        return limits.executor.count(cliques_plan)

    tasks = {"frequent, 2 edges": domains, "sets of 3": extended, "motifs of 4": counted, "4-cliques": cliques}
    for task, work in tasks.items():
        wanted, base, budget = None, 1.0, None
        for _ in range(2):
            device = GpuExecutor(0, memory_limit=budget)
            limits = Limits(executor=device)
            times = []
            try:
                for _ in range(2):
                    limits.notes.clear()
                    started = time.perf_counter()
                    found = work(limits)
                    times.append((time.perf_counter() - started) * 1000)
            except Exception as error:  # a row says what is not possible
                table.add(task, f"{(budget or 0) / 2**20:,.0f}", "", "", "", "", "", f"{type(error).__name__}: {error}")
                progress(f"{task}: {error}")
                break
            same = wanted is None or (
                np.array_equal(found, wanted) if isinstance(found, np.ndarray) else found == wanted
            )
            took = [f"{each:,.1f}" for each in times]
            ratio = "" if wanted is None else f"{times[1] / base:.2f}"
            size = f"{device.device.memory.budget / 2**20:,.0f}"
            said = "; ".join(limits.notes) or device.graph.residency.describe([])
            table.add(task, size, "yes" if same else "NO", *took, f"{device.milliseconds:.1f}", ratio, said)
            progress(f"{task} {size}: {took} {same} {said}")
            used = device.device.memory
            needed = int(getattr(used.pool, "total_bytes", used.pool.used_bytes)())
            wanted, base, budget = found, times[1], max(needed // 4, 16 << 20)
    table.notes.append(
        f"{len(graph):,} vertices, {graph.edges:,} edges; the second budget is a quarter of what the first run took"
    )
    table.notes.append(surroundings())
    return table


def _right(graph: MiningGraph, size: int, counts: Any, device: GpuExecutor, copies: list[int]) -> bool:
    """Whether motifs are as the suite has them; those of five vertices as the host counts them."""
    if size == 5:
        return copies == Limits().host.count_jointly(joint_count(graph, known_motifs(5, False).patterns))
    found = sorted(each.count for each in motifs(graph, size, Limits(executor=device)))
    return found == sorted(counts[f"{size}-motifs"].values())


if __name__ == "__main__":
    main(run)
