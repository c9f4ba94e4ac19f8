"""What ``MINE`` does with counting and domains, beside the same done with the primitives of ``graphdb.mining``.

    python -m tests.benchmarks.mining_primitives --repeat 2

Seconds of processor time (of all threads), the median of some runs after a first.  Both find the same numbers.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdb.mining import EmbeddingTable, Limits, MiningGraph, aggregation, edge_extension, filtering, vertex_extension
from graphdb.mining.cliques import cliques
from graphdb.mining.frequent import frequent_patterns
from graphdb.mining.motifs import motifs
from tests import mining_sets
from tests.benchmarks.harness import Table, main, progress, surroundings

LIMITS = Limits(threads=2)


def cliques_of(graph: MiningGraph, size: int) -> int:
    """Every clique made of one with a vertex less."""
    table = EmbeddingTable.of_vertices(graph)
    for _ in range(size - 1):
        table = vertex_extension(table, graph, "all", LIMITS)
    return len(table)


def motifs_of(graph: MiningGraph, size: int) -> list[int]:
    """Every connected set of vertices, counted by its pattern."""
    table = EmbeddingTable.of_vertices(graph)
    for _ in range(size - 1):
        table = vertex_extension(table, graph, limits=LIMITS)
    return sorted(aggregation(table, graph, np.zeros(len(graph), int), LIMITS).counts.tolist())


def frequent_of(graph: MiningGraph, support: int, edges: int) -> list[int]:
    """Embeddings of frequent patterns, one edge larger at a time (GAMMA, algorithm 2)."""
    table, found = EmbeddingTable.of_edges(graph), list[int]()
    for size in range(1, edges + 1):
        table = table if size == 1 else edge_extension(table, graph, LIMITS)
        patterns = aggregation(table, graph, limits=LIMITS)
        frequent = patterns.supports >= support
        found += patterns.supports[frequent].tolist()
        if size == 1:  # what has an edge that is not frequent is not frequent
            rare = np.flatnonzero(~frequent[patterns.of_row])
            graph = without(graph, table.rows_at(rare)[:, 0])
            table = EmbeddingTable.of_edges(graph)
        elif size < edges:
            table = filtering(table, frequent[patterns.of_row], LIMITS)
    return sorted(found)


def without(graph: MiningGraph, edges: np.ndarray) -> MiningGraph:
    """The graph without some edges."""
    stay = np.ones(graph.edges, bool)
    stay[edges] = False
    own = graph.ids[graph.labelled[:, 0]], graph.vertex_labels[graph.labelled[:, 1]]
    ends = graph.ids[graph.source[stay]], graph.ids[graph.target[stay]]
    return MiningGraph.of(*ends, vertex_labels=own)


def run(argv: list[str]) -> list[Table]:
    """Measure and return the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args(argv)
    table = Table("mined by primitives, and as MINE does it: seconds", ["graph", "task", "primitives", "MINE", "ratio"])
    wiki, hprd = mining_sets.snap("wiki-Vote"), mining_sets.labelled("hprd")
    tasks: list[tuple[str, str, Callable[[], Any], Callable[[], Any]]] = [
        *(
            ("wiki-Vote", f"{k}-cliques", lambda k=k: cliques_of(wiki, k), lambda k=k: cliques(wiki, k, k)[0].count)
            for k in (3, 4, 5)
        ),
        ("wiki-Vote", "3-motifs", lambda: motifs_of(wiki, 3), lambda: _counts(wiki, 3)),
        *(("hprd", f"{k}-motifs", lambda k=k: motifs_of(hprd, k), lambda k=k: _counts(hprd, k)) for k in (3, 4)),
        *(
            (
                "hprd",
                f"{edges} edges, support {support}",
                lambda s=support, e=edges: frequent_of(hprd, s, e),
                lambda s=support, e=edges: sorted(f.support for f in frequent_patterns(hprd, s, e, limits=LIMITS)),
            )
            for support, edges in ((60, 2), (30, 2), (60, 3))
        ),
    ]
    for graph, task, ours, mine in tasks:
        took = [_seconds(work, arguments.repeat) for work in (ours, mine)]
        assert took[0][1] == took[1][1], task
        cells = [f"{took[0][0]:.3f}", f"{took[1][0]:.3f}", f"{took[0][0] / took[1][0]:.1f}"]
        table.add(graph, task, *cells)
        progress(f"{graph} {task}: {cells}")
    table.notes.append(surroundings())
    return [table]


def _counts(graph: MiningGraph, size: int) -> list[int]:
    return sorted(each.count for each in motifs(graph, size, LIMITS) if each.count)


def _seconds(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The processor time of a run, and what it found."""
    times, found = [], None
    for _ in range(repeat + 1):
        started = time.process_time()
        found = work()
        times.append(time.process_time() - started)
    return statistics.median(times[1:]), found


if __name__ == "__main__":
    main(run)
