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

from graphdb.gpu.executor import GpuExecutor
from graphdb.mining.cliques import clique_plan
from graphdb.mining.frequent import Miner, frequent_patterns
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.mining.motifs import joint_count, known_motifs, motifs
from tests import mining_sets
from tests.benchmarks.harness import Table, main, progress, surroundings

GRAPHS = ("wiki-Vote", "email-Enron", "ca-AstroPh-cc1")


def run(argv: list[str]) -> list[Table]:
    """Measure and return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, default=mining_sets.FOLDER)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--sizes", nargs="+", type=int, default=range(3, 9), help="of cliques")
    parser.add_argument("--motifs", nargs="+", type=int, default=(3, 4, 5))
    parser.add_argument("--only", choices=["structure", "frequent"])
    arguments = parser.parse_args(argv)
    mining_sets.FOLDER = arguments.suite
    tables = []
    if arguments.only != "frequent":
        tables.append(_structure(arguments.graphs, arguments.sizes, arguments.motifs, arguments.runs))
    if arguments.only != "structure":
        tables.append(_frequent(arguments.runs))
    return tables


def measured(work: Callable[[], Any], device: GpuExecutor, runs: int) -> tuple[float, float, float, Any]:
    """Return the first call, the median call and the median of kernels, in ms, and what was found."""
    calls, kernels, found = [], [], None
    for _ in range(runs + 1):
        started = time.perf_counter()
        found = work()
        calls.append((time.perf_counter() - started) * 1000)
        kernels.append(device.milliseconds)
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


def _right(graph: MiningGraph, size: int, counts: Any, device: GpuExecutor, copies: list[int]) -> bool:
    """Whether motifs are as the suite has them; those of five vertices as the host counts them."""
    if size == 5:
        return copies == Limits().host.count_jointly(joint_count(graph, known_motifs(5, False).patterns))
    found = sorted(each.count for each in motifs(graph, size, Limits(executor=device)))
    return found == sorted(counts[f"{size}-motifs"].values())


if __name__ == "__main__":
    main(run)
