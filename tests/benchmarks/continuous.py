"""Incremental matches of streams of changed edges, beside continuous matchers' times.

    python -m tests.benchmarks.continuous --sets deezer,github --repeat 5

Ours are seconds of processor time on one thread, the least of some runs, for applying a stream batch by batch and
counting what each batch adds and takes away; every count is compared with the expected one.  *whole* is the stream as one
batch, *rows* the same with all matches enumerated.  *again* counts the query on the graph after the stream, planning
included: what one would do without incremental matching, on one thread.  *best peer* is the best of Graphflow, SymBi,
TurboFlux, RapidFlow and CaLiG that counts right, which take one update at a time, as measured when the sets were made.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from graphdb.execute.host import HostExecutor
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.compile import warm
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import csm
from tests.benchmarks.harness import Table, main, progress, surroundings

SIZES = ("1", "64", "1024", "all")


def seconds(work: Callable[[], Any], repeat: int, undo: Callable[[], Any] = lambda: None, spend: float = 0.0) -> float:
    """Return the least processor time of some runs, each of them undone; of more while they took less than ``spend``."""
    found = list[float]()
    while len(found) < repeat or sum(found) < spend:
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
        undo()
    return min(found)


def best_peer(peers: dict[str, Any], query: str) -> tuple[str, float]:
    """Return the fastest system that counts a query right, and its seconds."""
    times = {
        system: found[query]
        for system, found in peers["seconds"].items()
        if query in found and query not in peers["systems"][system]["wrong"]
    }
    best = min(times, key=lambda system: times[system])
    return best, times[best]


def measure(data: csm.Set, stream: str, query: str, repeat: int, spend: float) -> dict[str, float]:
    """Return seconds by batch size; raises SystemExit where a count is wrong."""
    matcher, changes = IncrementalMatcher(data.source, [data.queries[query]]), data.streams[stream]
    found = {}

    def back() -> None:
        matcher.count(changes.undone, [len(changes.edges)])

    for size in SIZES:
        counts = matcher.count(changes.updates, changes.ends(size))
        if counts[:, 0].sum(axis=0).tolist() != data.expected["queries"][query][stream]["total"][size]:
            raise SystemExit(f"{query} of {stream} by {size}: wrong")
        back()
        found[size] = seconds(partial(matcher.count, changes.updates, changes.ends(size)), repeat, back, spend)
    found["rows"] = seconds(lambda: matcher.apply(changes.updates), min(repeat, 2), back)
    return found


def count_again(data: csm.Set, stream: str) -> Callable[[PatternGraph], float]:
    """Return what measures counting a query on the graph after a stream, whose partitions are there."""
    edges = {tuple(edge) for edge in data.initial.edges.tolist()}
    for edge, inserted in zip(data.streams[stream].edges.tolist(), data.streams[stream].inserted, strict=True):
        (edges.add if inserted else edges.discard)(tuple(edge))
    ends = np.array(sorted(edges), np.int64)
    graph = DataGraph(ArraySource(ends[:, 0], np.full(len(ends), csm.EDGE_LABEL), ends[:, 1], len(data.labels)))
    executor = HostExecutor(1)

    def work(pattern: PatternGraph) -> float:
        counted = replace(pattern, outputs=(), count_only=True)
        return seconds(lambda: executor.count(make_plan(counted, graph), Control()), 2)

    return work


def run(argv: list[str]) -> list[Table]:
    """Measure and return a table for each set and stream."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="deezer,github")
    parser.add_argument("--streams", default="insert,mixed")
    parser.add_argument("--repeat", type=int, default=3, help="runs of a query and size, at least")
    parser.add_argument("--spend", type=float, default=0.0, help="processor seconds that they take, at least")
    arguments = parser.parse_args(argv)
    warm.make_missing()
    tables = []
    for name in arguments.sets.split(","):
        data, peers = csm.load(name), csm.peers()[name]
        for stream in arguments.streams.split(","):
            table = Table(
                f"{name}, {stream}: ms for {len(data.streams[stream].edges):,} updates, in batches of",
                ["query", *SIZES, "rows", "again", "best peer", "", "peer / 1", "peer / 1024", "again / all"],
            )
            again, ratios = count_again(data, stream), list[tuple[float, float, float]]()
            for query, pattern in data.queries.items():
                progress(f"{name}, {stream}: {query}")
                ours, whole = measure(data, stream, query, arguments.repeat, arguments.spend), again(pattern)
                system, theirs = best_peer(peers[stream], query)
                ratios.append((theirs / ours["1"], theirs / ours["1024"], whole / ours["all"]))
                times = [*ours.values(), whole, theirs]
                table.add(query, *(f"{t * 1000:.2f}" for t in times), system, *(f"{r:.1f}" for r in ratios[-1]))
            means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
            table.notes.append(
                "times faster, geometric means: {:.1f} than the best peer update by update, {:.1f} in batches of 1,024; "
                "{:.1f} than again".format(*means)
            )
            table.notes.append(f"{surroundings('graphdb')}; least of {arguments.repeat} runs and {arguments.spend} s")
            tables.append(table)
    return tables


if __name__ == "__main__":
    main(run)
