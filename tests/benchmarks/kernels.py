"""The CPU engine alone, without grammar, SQL or terms: counts and rows over the SNAP graphs.

    python -m tests.benchmarks.kernels [graph …] [--threads N] [--repeat N]

Every count is compared with the published one where there is one.  Times are medians, warm, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from itertools import combinations
from typing import Any

import numpy as np

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.datasets import SHARED

KNOWS = 0
CLIQUES = {3: "triangles", 4: "4-cliques", 5: "5-cliques"}


def snap(name: str) -> DataGraph:
    """A SNAP graph, each undirected edge stored once."""
    edges = np.loadtxt(SHARED / f"data/snap/{name}.txt.gz", dtype=np.int64, comments="#")
    low, high = edges.min(axis=1), edges.max(axis=1)
    proper = low != high
    ids, dense = np.unique(np.stack([low[proper], high[proper]]), return_inverse=True)
    s, o = dense.reshape(2, -1)
    return DataGraph(ArraySource(s, np.full(len(s), KNOWS), o, len(ids)))


def undirected(edges: Any, mode: MatchMode, candidates: Any = None, **more: Any) -> PatternGraph:
    """An undirected pattern over the one edge label; rows have a column per vertex unless it only counts."""
    count = 1 + max(end for edge in edges for end in edge)
    names = tuple("abcdefgh"[:count])
    return PatternGraph(
        tuple(PatternVertex(name, (candidates or {}).get(i)) for i, name in enumerate(names)),
        tuple(PatternEdge(f"e{i}", a, b, (KNOWS,), False, 0) for i, (a, b) in enumerate(edges)),
        (Clause(mode, tuple(range(count))),),
        outputs=() if more.get("count_only") else names,
        **more,
    )


def cases(graph: DataGraph, known: dict[str, int]) -> list[tuple[str, PatternGraph, bool, int | None]]:
    """(name, pattern, rows wanted?, expected)."""
    nodes, walk = MatchMode.DIFFERENT_NODES, MatchMode.REPEATABLE_ELEMENTS
    found: list[tuple[str, PatternGraph, bool, int | None]] = []
    for k, name in CLIQUES.items():
        pattern = undirected(list(combinations(range(k), 2)), nodes, count_only=True)
        found.append((f"count {name}", pattern, False, known[name] * int(np.prod(range(1, k + 1)))))
    triangle, square = [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2), (2, 3), (0, 3)]
    house = [*square, (0, 4), (1, 4)]
    found.append(("rows of triangles", undirected(triangle, nodes), True, known["triangles"] * 6))
    found.append(("count 4-cycles", undirected(square, nodes, count_only=True), False, None))
    found.append(("count diamonds", undirected([*square, (0, 2)], nodes, count_only=True), False, None))
    half = np.arange(0, graph.vertices, 2)
    bits = {1: half, 2: half}
    found.append(("walks, bit-tested", undirected([(0, 1), (1, 2)], walk, bits, count_only=True), False, None))
    found.append(("induced wedges", undirected([(0, 1), (1, 2)], MatchMode.INDUCED, count_only=True), False, None))
    found.append(("houses", undirected(house, nodes, count_only=True), False, None))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["facebook-combined", "email-Enron", "ca-AstroPh-cc1"])
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a case is given up")
    parser.add_argument("--only", default="", help="cases whose names hold this")
    arguments = parser.parse_args()
    counts = json.loads((SHARED / "data/snap/counts.json").read_text())["graphs"]
    executor = HostExecutor(arguments.threads)
    for name in arguments.graphs:
        graph = snap(name)
        print(f"{name}: {graph.vertices:,} vertices; load {os.getloadavg()[0]:.1f}, {executor.threads} threads")
        for what, pattern, rows, expected in cases(graph, counts[name]):
            if arguments.only not in what:
                continue
            times, found, visited = [], -1, 0
            try:
                for _ in range(arguments.repeat + 1):
                    started = time.perf_counter()
                    found, visited = run(executor, pattern, graph, rows, arguments.limit)
                    times.append(time.perf_counter() - started)
            except TimeoutError:
                print(f"  {what:<22} over {arguments.limit:.0f} s")
                continue
            right = "" if expected is None else " right" if found == expected else f" WRONG, {expected:,}"
            took = statistics.median(times[1:])
            print(f"  {what:<22} {took * 1000:10.1f} ms {found:>18,}{right}   {visited:,} bindings")


def run(executor: HostExecutor, pattern: PatternGraph, graph: DataGraph, rows: bool, limit: float) -> tuple[int, int]:
    """(matches, bindings that the search went through)."""
    from graphdb.common.errors import QueryTimeout
    from graphdb.plan.executor import Control

    control, plan = Control(timeout=limit), make_plan(pattern, graph)
    try:
        if rows:
            found = sum(block.count for block in executor.run(plan, control))
        else:
            found = executor.count(plan, control)
    except QueryTimeout as error:
        raise TimeoutError from error
    return found, int(control.rows.sum())


if __name__ == "__main__":
    main()
