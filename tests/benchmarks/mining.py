"""Mining beside programs for it on the CPU: cliques, motifs and frequent patterns.

    python -m tests.benchmarks.mining --repeat 3

Ours are seconds of processor time (of all threads), the median of some runs, over a graph that is in memory with what is
derived of it; *first* is the first run, which derives that.  Every count is compared with the suite's.  *igraph* ran in
the same process; G2Miner's and T-FSM's seconds, and GraphSet's, are those of ``cpu.json``, user time of single runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import igraph
import numpy as np

import graphdb
from graphdb.data import GEOGRAPHY
from graphdb.mining.cliques import cliques
from graphdb.mining.frequent import frequent_patterns
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.mining.motifs import motifs
from graphdb.storage.compile import warm
from tests import mining_sets
from tests.benchmarks.harness import Table, main, progress, surroundings

GRAPHS = ("wiki-Vote", "email-Enron", "ca-AstroPh-cc1")
THREADS = 2


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of one run, and what it found."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def measured(work: Callable[[], Any], check: Callable[[Any], bool], repeat: int) -> tuple[float, float]:
    """Return the time of the first run and the median of some more; SystemExit where an answer is wrong."""
    times = []
    for _ in range(repeat + 1):
        took, found = seconds(work)
        if not check(found):
            raise SystemExit("wrong")
        times.append(took)
    return times[0], statistics.median(times[1:])


def peers() -> dict[tuple[str, str], float]:
    """Seconds by (graph, task) as ``cpu.json`` has them."""
    runs = json.loads((mining_sets.FOLDER / "cpu.json").read_text())["runs"]
    return {(run["graph"], run["task"]): run["cpu seconds"] for run in runs}


def plain(graph: MiningGraph) -> igraph.Graph:
    """The graph as igraph has it."""
    return igraph.Graph(n=len(graph), edges=np.stack([graph.source, graph.target], axis=1).tolist())


def run(argv: list[str]) -> list[Table]:
    """Measure and return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--without-igraph", action="store_true")
    arguments = parser.parse_args(argv)
    warm.make_missing()
    return [_structure(arguments.repeat, not arguments.without_igraph), _frequent(arguments.repeat)]


def _structure(repeat: int, beside: bool) -> Table:
    table = Table("cliques and motifs, seconds of processor time", ["graph", "task", "first", "ours", "peer", "igraph"])
    known, others = mining_sets.counts(), peers()
    limits = Limits(threads=THREADS)
    for name in GRAPHS:
        graph, counts = mining_sets.snap(name), known["graphs"][name]
        other = plain(graph)

        def row(
            task: str, work: Callable[[], Any], check: Callable[[Any], bool], theirs: Any, name: str = name
        ) -> None:
            progress(f"{name}: {task}")
            first, ours = measured(work, check, repeat)
            peer = others.get((name, task))
            other = f"{seconds(theirs)[0]:.2f}" if theirs and beside else ""
            cells = [f"{first:.3f}", f"{ours:.3f}", f"{peer:.2f}" if peer else "", other]
            table.add(name, task, *cells)

        for k in (3, 4, 5):
            row(
                f"{k}-clique",
                lambda graph=graph, k=k: cliques(graph, k, k, limits=limits)[0].count,
                lambda found, counts=counts, k=k: found == counts["cliques"][str(k)],
                (lambda other=other, k=k: len(other.cliques(k, k))) if k == 3 else None,
            )
        row(
            "maximal cliques",
            lambda graph=graph: sum(each.count for each in cliques(graph, 3, 1000, maximal=True, limits=limits)),
            lambda found: found > 0,
            lambda other=other: other.maximal_cliques(min=3, file="/dev/null"),
        )
        for k in (3, 4):
            row(
                f"{k}-motif",
                lambda graph=graph, k=k: sorted(each.count for each in motifs(graph, k, limits)),
                lambda found, counts=counts, k=k: found == sorted(counts[f"{k}-motifs"].values()),
                (lambda other=other: other.motifs_randesu(3)) if k == 3 else None,
            )
    graph, name = mining_sets.labelled("hprd"), "hprd"
    other = plain(graph)
    wanted = sorted(each["induced"] for each in known["5-motifs"]["hprd (labels ignored)"])
    for k, theirs in ((4, lambda: other.motifs_randesu(4)), (5, None)):
        progress(f"{name}: {k}-motif")
        first, ours = measured(
            lambda k=k: sorted(each.count for each in motifs(graph, k, limits)),
            lambda found, k=k: k == 4 or found == wanted,
            repeat,
        )
        peer = others["hprd", "5-motif (edge-induced counts)"] if k == 5 else None
        cells = [f"{peer:.2f}" if peer else "", f"{seconds(theirs)[0]:.2f}" if theirs and beside else ""]
        table.add(name, f"{k}-motif", f"{first:.3f}", f"{ours:.3f}", *cells)
    table.notes.append("peer: G2Miner (GraphSet for 5-motif of hprd); 2 threads each")
    table.notes.append(surroundings())
    return table


def _frequent(repeat: int) -> Table:
    columns = ["graph", "edges", "patterns", "first", "ours", "with matches", "T-FSM", "G2Miner"]
    table = Table("frequent patterns, seconds of processor time", columns)
    others, limits = peers(), Limits(threads=THREADS)
    for name in mining_sets.FREQUENT:
        known = mining_sets.frequent(name)
        graph, support = mining_sets.labelled(known["graph"]), known["minsup"]
        for edges in (2, 3, 4)[: known["max_edges"] - 1]:
            progress(f"{name}: {edges} edges")
            count = sum(known["frequent by edges"][:edges])
            first, ours = measured(
                lambda graph=graph, support=support, edges=edges: frequent_patterns(
                    graph, support, edges, limits=limits
                ),
                lambda found, count=count: len(found) == count,
                repeat,
            )
            counted = seconds(lambda: frequent_patterns(graph, support, edges, matches=True, limits=limits))[0]  # noqa: B023
            dataset = f"{known['graph']} minsup {support}"
            vertices = f"fsm, patterns of at most {edges + 1} vertices (so also more edges)"
            theirs = [others.get((dataset, vertices)), others.get((dataset, f"fsm edges <= {edges}"))]
            cells = [f"{each:.2f}" if each else "" for each in theirs]
            table.add(name, str(edges), f"{count:,}", f"{first:.3f}", f"{ours:.3f}", f"{counted:.2f}", *cells)
    with graphdb.connect(threads=THREADS, device="cpu") as db:
        db.load(GEOGRAPHY)
        for support, edges in ((100, 2), (100, 3), (50, 3)):
            first, found = seconds(lambda: db.mine.frequent(support, edges))  # noqa: B023
            ours = statistics.median(seconds(lambda: db.mine.frequent(support, edges))[0] for _ in range(repeat))  # noqa: B023
            counted = seconds(lambda: db.mine.frequent(support, edges, matches=True))[0]  # noqa: B023
            cells = [f"{len(found):,}", f"{first:.3f}", f"{ours:.3f}", f"{counted:.2f}", "", ""]
            table.add(f"geography-{support}", str(edges), *cells)
    table.notes.append(
        "T-FSM (1 thread) takes patterns of so many edges and one vertex more, with all edges among these"
    )
    return table


if __name__ == "__main__":
    main(run)
