"""Counting without enumerating: tables of times, beside the search that goes through every match.

    python -m tests.benchmarks.counting walks --scales 14-20
    python -m tests.benchmarks.counting patterns --graphs wiki-Vote email-Enron

``walks``: homomorphic paths of five steps on R-MAT graphs; CPU time per edge stays the same where time is linear.
``patterns``: the nine patterns and the 3-star under DIFFERENT NODES on SNAP graphs, every count compared with the
published one.  Times are medians in milliseconds, warm (partitions and machine code are there).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import time
from collections.abc import Callable

import numpy as np

from graphdb.common.errors import QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.harness import CORES
from tests.datasets import SHARED

Edges = list[tuple[int, int]]


def undirected(vertices: int, u: np.ndarray, v: np.ndarray) -> tuple[DataGraph, int]:
    """A graph of one edge label, and the label."""
    return DataGraph(ArraySource(u, np.full(len(u), vertices), v, vertices + 1)), vertices


def pattern(edges: Edges, label: int, mode: MatchMode) -> PatternGraph:
    """An undirected pattern that is only counted."""
    count = 1 + max(max(edge) for edge in edges)
    return PatternGraph(
        tuple(PatternVertex("abcdefgh"[i]) for i in range(count)),
        tuple(PatternEdge(f"e{i}", a, b, (label,), False, 0) for i, (a, b) in enumerate(edges)),
        (Clause(mode, tuple(range(count))),),
        count_only=True,
    )


def snap(name: str) -> tuple[DataGraph, int]:
    """A SNAP graph."""
    rows = np.loadtxt(SHARED / "data" / "snap" / f"{name}.txt.gz", dtype=np.int64, comments="#")
    ids, ends = np.unique(rows, return_inverse=True)
    ends = ends.reshape(-1, 2)
    u, v = ends.min(axis=1), ends.max(axis=1)
    return undirected(len(ids), u[u != v], v[u != v])


def rmat(scale: int, factor: int) -> tuple[int, np.ndarray, np.ndarray]:
    """(vertices, ends of the edges) of an R-MAT graph, from the shared generator."""
    path = SHARED / "data" / "rmat.py"
    spec = importlib.util.spec_from_file_location("rmat", path)
    if spec is None or spec.loader is None or not path.exists():
        raise SystemExit(f"{path} is not here; set GRAPHDB_SHARED to the folder with the shared data sets")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: tuple[int, np.ndarray, np.ndarray] = module.rmat(scale, factor)
    return found


def median(run: Callable[[], object], times: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median of some runs by a clock, in milliseconds, after one that is not counted."""
    run()
    seconds = []
    for _ in range(times):
        started = clock()
        run()
        seconds.append(clock() - started)
    return statistics.median(seconds) * 1000


def load() -> str:
    """The machine's load, for who reads the table later."""
    return f"load average {os.getloadavg()[0]:.2f} on {CORES} cores"


def walks(scales: list[int], runs: int) -> None:
    """Paths of five steps under homomorphism."""
    executor = HostExecutor()
    print(
        f"{'scale':>5}  {'edges':>12}  {'paths of five steps':>28}  {'ms':>9}  {'CPU ms':>9}  {'CPU ns per edge':>15}"
    )
    points = []
    for scale in scales:
        vertices, u, v = rmat(scale, 16)
        graph, label = undirected(vertices, u, v)
        plan = make_plan(pattern([(i, i + 1) for i in range(5)], label, MatchMode.REPEATABLE_ELEMENTS), graph)
        found = executor.count(plan)
        took = median(lambda plan=plan: executor.count(plan), runs)
        # On a shared machine, what the processors did says more about the edges than what the clock on the wall did.
        work = median(lambda plan=plan: executor.count(plan), runs, time.process_time)
        points.append((math.log(len(u)), math.log(work)))
        figures = f"{took:>9.1f}  {work:>9.1f}  {work * 1e6 / len(u):>15.1f}"
        print(f"{scale:>5}  {len(u):>12,}  {found:>28,}  {figures}", flush=True)
        del graph, plan
    if len(points) > 1:
        slope = np.polyfit(*zip(*points, strict=True), 1)[0]
        print(f"slope of log CPU time against log edges: {slope:.2f}")


def patterns(graphs: list[str], runs: int, limit: float) -> None:
    """The nine patterns and the 3-star under DIFFERENT NODES."""
    known = json.loads((SHARED / "data" / "snap" / "matchers-h200.json").read_text())
    counts = json.loads((SHARED / "data" / "snap" / "counts.json").read_text())["graphs"]
    cases = [(name, found["edges"], found["automorphisms"]) for name, found in known["patterns"].items()]
    cases.append(("3-stars", [[0, 1], [0, 2], [0, 3]], 6))
    executor = HostExecutor()
    print(f"{'graph':<12}  {'pattern':<36}  {'subgraphs':>15}  {'terms':>5}  {'counted ms':>10}  {'searched ms':>11}")
    for name in graphs:
        graph, label = snap(name)
        for title, edges, automorphisms in cases:
            want = counts[name].get(title) or known["graphs"][name][title]["count"]
            wanted = pattern([(a, b) for a, b in edges], label, MatchMode.DIFFERENT_NODES)
            plan = make_plan(wanted, graph)
            found = executor.count(plan)
            took = median(lambda plan=plan: executor.count(plan), runs)
            verdict = "" if found == want * automorphisms else f"  WRONG, {want:,} is right"
            terms = len(plan.counting.terms) if plan.counting else 0
            search, started = make_plan(wanted, graph, counting="never"), time.perf_counter()
            try:
                searched = executor.count(search, Control(timeout=limit))
                passed = f"{(time.perf_counter() - started) * 1000:,.0f}"
                verdict += "" if searched == found else f"  the search finds {searched:,}"
            except QueryTimeout:
                passed = f"> {limit * 1000:,.0f}"
            subgraphs = found // automorphisms
            print(
                f"{name:<12}  {title:<36}  {subgraphs:>15,}  {terms:>5}  {took:>10.1f}  {passed:>11}{verdict}",
                flush=True,
            )


def main() -> None:
    """Print one of the tables, or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=["walks", "patterns", []], default=[])
    parser.add_argument("--scales", default="14-20", help="R-MAT scales, from-to")
    parser.add_argument("--graphs", nargs="+", default=["wiki-Vote", "email-Enron"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds after which the search is stopped")
    arguments = parser.parse_args()
    tables = arguments.tables or ["walks", "patterns"]
    first, _, last = arguments.scales.partition("-")
    print(load())
    if "walks" in tables:
        walks(list(range(int(first), int(last or first) + 1)), arguments.runs)
    if "patterns" in tables:
        patterns(arguments.graphs, arguments.runs, arguments.limit)
    print(load())


if __name__ == "__main__":
    main()
