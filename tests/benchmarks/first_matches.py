"""The first matches of large labelled patterns, and finding that there are none: where a search that backs out badly hangs.

    python -m tests.benchmarks.first_matches --sets hprd,hprd-edge-labels,yeast,github

Each published query, and the same with the label of one vertex replaced by another vertex's (seeded), which often has
no match: one thread, the first match and the first thousand.  *over* counts the runs that ``--limit`` seconds stopped.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import replace

from graphdb.common.errors import QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.compile import warm
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.harness import Table, main, progress, surroundings
from tests.benchmarks.labelled import SETS, LabelledSet, Lines, labelled_set


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for one query")
    given = parser.parse_args(argv)
    warm.make_missing()
    host = HostExecutor(1)
    columns = [
        "set",
        "queries",
        "rows",
        "asked",
        "no match",
        "over",
        "plan ms, median",
        "run ms, median",
        "run ms, most",
    ]
    table = Table("first matches of labelled patterns, one thread", columns)
    for name in given.sets.split(","):
        known = labelled_set(name)
        graph = known.graph()
        for what, chosen in (("as published", known), ("a label changed", changed(known))):
            for rows in (1, 1000):
                progress(f"{name}: {what}, {rows}")
                found = [
                    first(host, graph, chosen.pattern(q, graph, rows=True), rows, given.limit) for q in chosen.queries
                ]
                ran = [milliseconds for _, milliseconds, count in found if count is not None]
                table.add(
                    name,
                    what,
                    f"{rows:,}",
                    f"{len(found)}",
                    f"{sum(count == 0 for *_, count in found)}",
                    f"{len(found) - len(ran)}",
                    f"{statistics.median(planning for planning, *_ in found):.2f}",
                    f"{statistics.median(ran):.3f}",
                    f"{max(ran):.2f}",
                )
    progress("")
    table.notes.append(surroundings("graphdb"))
    return [table]


def changed(known: LabelledSet) -> LabelledSet:
    """The set with the label of one vertex of each query replaced by that of a random vertex of the data."""
    rng = random.Random(1)
    queries = {}
    for name, lines in known.queries.items():
        labels = list(lines.labels)
        labels[rng.randrange(len(labels))] = rng.choice(known.data.labels)
        queries[name] = Lines(labels, lines.edges)
    return replace(known, queries=queries)


def first(
    host: HostExecutor, graph: DataGraph, pattern: PatternGraph, rows: int, limit: float
) -> tuple[float, float, int | None]:
    """Milliseconds of planning and running, and how many rows there were; None where the time was over."""
    started = time.perf_counter()
    plan = make_plan(replace(pattern, limit=rows), graph)
    planned = time.perf_counter()
    try:
        count = sum(block.count for block in host.run(plan, Control(timeout=limit)))
    except QueryTimeout:
        count = None
    return (planned - started) * 1e3, (time.perf_counter() - planned) * 1e3, count


if __name__ == "__main__":
    main(run)
