"""Counting over a graph that does not fit the device: milliseconds by budget, beside those where all of it fits.

    python -m tests.benchmarks.larger_than_device --graph rmat20 --parts 1 2 4 8 16

A part of 4 is a budget of a quarter of what a run takes that has room for all lists and so much for its tables
(``--tables``), parts beginning with 1.  Ways are pinned; *first* is the first count, which copies the graph, and *warm* the median of further
ones.  *moved* is what a warm run copies of lists that are read by segments, beside their size; *away*, of those read by pages, the
share of what is read that is expected to come from host memory.  With ``--pages`` nothing is read by segments.  *joins* are the combinations of segments.
With ``--drawn`` the graph is drawn on the device, from other random numbers, which takes seconds where a host takes minutes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import numpy as np

from graphdb.gpu.data.residency import WHOLE, lists_of_plan
from graphdb.gpu.executor import GpuExecutor, Hint
from graphdb.gpu.join import segmentation
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.counting import pattern, rmat
from tests.benchmarks.several_devices import drawn

LABELLED = "labelled"
"""The case whose edges have directions and one of two labels each."""
CASES: tuple[tuple[str, list[tuple[int, int]], Hint], ...] = (
    ("triangle", [(0, 1), (1, 2), (0, 2)], "join"),
    (LABELLED, [(0, 1), (1, 2), (0, 2)], "join"),
    ("triangle", [(0, 1), (1, 2), (0, 2)], "search"),
    ("4-clique", [(a, b) for b in range(4) for a in range(b)], "auto"),
    ("4-cycle", [(0, 1), (1, 2), (2, 3), (0, 3)], "sums"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="rmat20")
    parser.add_argument("--factor", type=int, default=16, help="edges for each vertex")
    parser.add_argument("--parts", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--tables", type=int, default=1024, help="MiB beside the graph")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", nargs="+", help="of the patterns, those of these names")
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--drawn", action="store_true", help="on the device")
    given = parser.parse_args()
    if given.pages:
        segmentation.MOST = 0
    vertices, *both = (drawn if given.drawn else rmat)(int(given.graph.removeprefix("rmat")), given.factor)
    ends = np.stack(both)
    alike = DataGraph(ArraySource(ends[0], np.full(ends.shape[1], vertices), ends[1], vertices + 2))
    print(f"{given.graph}: {ends.shape[1]:,} edges")
    print(
        f"{'count':<10}{'way':<8}{'budget':>12}{'of graph':>10}{'moved':>12}{'joins':>7}{'away':>7}{'first':>11}{'warm':>11}{'slower':>8}  right"
    )
    measured = GpuExecutor(0)
    measured.calibrate().join()
    rates = measured.device.rates
    del measured
    print(f"{rates.answer * 1e6:.1f} us an answer, {rates.linked / 1e9:.0f} and {rates.pinned_upload / 1e9:.0f} GB/s")
    for name, edges, way in CASES:
        if given.cases and name not in given.cases:
            continue
        counted, graph = pattern(edges, vertices, MatchMode.DIFFERENT_NODES), alike
        if name == LABELLED:
            labels = vertices + ends.sum(axis=0) % 2
            graph = DataGraph(ArraySource(ends[0], labels, ends[1], vertices + 2))
            of = zip(counted.edges, (0, 1, 1), strict=True)
            counted = replace(
                counted, edges=tuple(replace(e, labels=(vertices + which,), directed=True) for e, which in of)
            )
        made = make_plan(counted, graph, counting="auto" if way != "search" else "never")
        plan = replace(made, clique=None) if way in ("join", "search") else made
        reads = lists_of_plan(plan, True)
        every = sum(each.nbytes for each in reads)
        whole, want, need = 0.0, -1, int(every / WHOLE) + (given.tables << 20)
        for part in given.parts:
            budget = need // part
            executor = GpuExecutor(0, hint=way, memory_limit=budget)
            executor.device.rates = rates
            times, found = [], -1
            try:
                for _ in range(given.runs + 1):
                    started = time.perf_counter()
                    found = executor.count(plan)
                    times.append((time.perf_counter() - started) * 1000)
            except Exception as error:  # the table says which
                print(f"{name:<10}{way:<8}{budget:>12,}{1 / part:>10.3f} {error}", flush=True)
                continue
            warm = statistics.median(times[1:])
            if part == given.parts[0]:
                whole, want = warm, found
                need = part * int(executor.device.memory.pool.total_bytes())
            segments = executor.strategies.join.segments(plan, True) if way in ("join", "search") else None
            moved = f"{segments.moved / segments.size:.1f} x" if segments else ""
            joins = f"{len(segments.combinations)}" if segments else ""
            away = "" if segments else f"{executor.graph.residency.away(reads):.0%}"
            print(
                f"{name:<10}{way:<8}{budget:>12,}{1 / part:>10.3f}{moved:>12}{joins:>7}{away:>7}{times[0]:>11.1f}{warm:>11.1f}"
                f"{warm / whole:>8.2f}  {'yes' if found == want else f'NO: {found} and {want}'}",
                flush=True,
            )
            del executor


if __name__ == "__main__":
    main()
