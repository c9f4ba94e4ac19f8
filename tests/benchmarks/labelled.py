"""Labelled subgraph matching: published queries of 3 to 32 vertices on labelled graphs, beside a C++ matcher's times.

    python -m tests.benchmarks.labelled --sets hprd,hprd-edge-labels,yeast,github --limit 60

All ordered embeddings under DIFFERENT NODES, undirected; every count is compared with the published one.  *search* is
the run of the plan, *whole* also planning it: filtering, refinement, order, steps.  C++ seconds are those that were
published with the counts (one thread).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

from graphdb.common.errors import QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.ordering.order import matching_order
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.compile import warm
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.harness import Table, main, progress, surroundings
from tests.datasets import SHARED

SETS = ("hprd", "hprd-edge-labels", "yeast", "github")


@dataclass(frozen=True)
class Lines:
    """A graph in the sets' format: ``v id label`` and ``e a b [label]`` lines."""

    labels: list[int]
    """By vertex."""
    edges: list[tuple[int, int, int]]
    """(a, b, edge label or 0)."""

    @classmethod
    def read(cls, text: str) -> Lines:
        """Parse."""
        rows = [line.split() for line in text.splitlines()]
        labels = {int(row[1]): int(row[2]) for row in rows if row and row[0] == "v"}
        edges = [(int(r[1]), int(r[2]), int(r[3]) if len(r) > 3 else 0) for r in rows if r and r[0] == "e"]
        return cls([labels[v] for v in range(len(labels))], edges)


@dataclass(frozen=True)
class LabelledSet:
    """A data graph, its queries and what is known of them."""

    data: Lines
    queries: dict[str, Lines]
    counts: dict[str, int | None]
    seconds: dict[str, float]
    """A C++ matcher's, where it was measured."""

    def graph(self) -> DataGraph:
        """The data graph: vertices, then their labels, the edge labels and ``rdf:type``."""
        vertices, (first_class, first_edge, type_label) = len(self.data.labels), self._ids
        a, b, label = np.array(self.data.edges, np.int64).T
        return DataGraph(
            ArraySource(
                np.concatenate([a, np.arange(vertices)]),
                np.concatenate([label + first_edge, np.full(vertices, type_label)]),
                np.concatenate([b, np.array(self.data.labels) + first_class]),
                type_label + 1,
                type_label=type_label,
            )
        )

    @property
    def _ids(self) -> tuple[int, int, int]:
        """The ids of the first vertex label, of the first edge label, and of ``rdf:type``."""
        first_class = len(self.data.labels)
        first_edge = first_class + max(self.data.labels) + 1
        return first_class, first_edge, first_edge + max(label for _, _, label in self.data.edges) + 1

    def pattern(self, query: str, graph: DataGraph, *, rows: bool = False) -> PatternGraph:
        """A query over :meth:`graph`, counted or (``rows``) with all vertices as outputs."""
        first_class, first_edge, _ = self._ids
        wanted = self.queries[query]
        names = tuple(f"v{v}" for v in range(len(wanted.labels)))
        return PatternGraph(
            tuple(
                PatternVertex(name, graph.members(first_class + label), f":L{label}", (first_class + label,))
                for name, label in zip(names, wanted.labels, strict=True)
            ),
            tuple(PatternEdge(f"e{i}", a, b, (first_edge + e,), False, 0) for i, (a, b, e) in enumerate(wanted.edges)),
            (Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(names)))),),
            outputs=names if rows else (),
            count_only=not rows,
        )


@cache
def labelled_set(name: str) -> LabelledSet:
    """Read a set."""
    folder = SHARED / "data" / "labelled"
    path = folder / f"{name}.tar.gz"
    if not path.exists():
        raise SystemExit(f"{path} is not here; set GRAPHDB_SHARED to the folder with the shared data sets")
    known = json.loads((folder / f"{name}.json").read_text())["counts"]
    graphs: dict[str, Lines] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and member.name.endswith(".graph"):
                title = member.name.rpartition("/")[2].removesuffix(".graph")
                graphs[title] = Lines.read(file.read().decode())
    return LabelledSet(
        graphs.pop("data"),
        {title: graphs[title] for title in known},
        {title: found["count"] for title, found in known.items()},
        {title: found["c++ seconds"] for title, found in known.items() if "c++ seconds" in found},
    )


ABLATIONS: dict[str, tuple[tuple[str, Any], ...]] = {
    "as it is": (),
    "no cached counts": (("tree.CACHED", math.inf),),
    "no refinement": (("space.PASSES", 0),),
    "no neighbour counts": (("space.unequal_vertices", lambda _: set()),),
    "no trees": (("passes._tree", lambda *_: None),),
    "no trees, order of the cost model": (
        ("passes._tree", lambda *_: None),
        ("passes.tree_order", lambda found: matching_order(found.estimates())),
    ),
    "no candidate spaces": (("space.SMALLEST", 1000),),
}
"""What is left out: (what, instead), in ``graphdb.plan``."""


@contextmanager
def without(name: str) -> Iterator[None]:
    """Leave something out of planning."""
    with ExitStack() as stack:
        for what, instead in ABLATIONS[name]:
            stack.enter_context(mock.patch(f"graphdb.plan.{what}", instead))
        yield


@dataclass
class Measured:
    """What one set's queries took with some number of threads."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    """Queries that ran past the limit, which count with it."""
    search: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)


def measure(
    known: LabelledSet, queries: Sequence[str], threads: int, limit: float, repeat: int, *, rows: bool
) -> Measured:
    """Plan and run queries; seconds are medians of ``repeat`` runs."""
    graph, executor, result = known.graph(), HostExecutor(threads), Measured()
    executor.count(make_plan(known.pattern(queries[0], graph), graph))  # the graph's partitions are there
    for query in queries:
        pattern = known.pattern(query, graph, rows=rows)
        search, whole, count = [], [], None
        for _ in range(repeat):
            started = time.perf_counter()
            plan = make_plan(pattern, graph)
            planned = time.perf_counter()
            control = Control(timeout=limit)
            try:
                if rows:
                    count = sum(block.count for block in executor.run(plan, control))
                else:
                    count = executor.count(plan, control)
            except QueryTimeout:
                count = None
            ended = time.perf_counter()
            search.append(ended - planned)
            whole.append(ended - started)
            if count is None:
                break
        result.search.append(statistics.median(search))
        result.whole.append(statistics.median(whole))
        if count is None:
            result.over.append(query)
        elif known.counts[query] not in (None, count):
            result.wrong.append(query)
        else:
            result.right += known.counts[query] is not None
    return result


def run(argv: list[str]) -> list[Table]:
    """Measure and return the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help=f"comma-separated, among: {', '.join(SETS)}")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a query is stopped")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ablate", action="store_true", help="a row for each thing left out, with one thread")
    parser.add_argument("--rows", action="store_true", help="enumerate all matches instead of counting them")
    parser.add_argument("--unknown", action="store_true", help="also the queries whose counts nobody published")
    arguments = parser.parse_args(argv)
    warm.make_missing()
    what = "enumerated" if arguments.rows else "counted"
    table = Table(
        f"labelled patterns under DIFFERENT NODES, {what}: ms summed over a set (median of its queries)",
        ["set", "threads", "queries", "right", "wrong", "over", "search", "whole query", "C++ matcher"],
    )
    for name in arguments.sets.split(","):
        known = labelled_set(name)
        queries = [query for query, count in known.counts.items() if count is not None or arguments.unknown]
        variants = [("as it is", threads) for threads in arguments.threads.split(",")]
        for variant, threads in [(name, "1") for name in ABLATIONS] if arguments.ablate else variants:
            progress(f"{name}: {variant}, {threads} threads")
            with without(variant):
                measured = measure(known, queries, int(threads), arguments.limit, arguments.repeat, rows=arguments.rows)
            published = [known.seconds[query] for query in queries if query in known.seconds]
            kinds = (queries, range(measured.right), measured.wrong, measured.over)
            figures = (measured.search, measured.whole, published)
            table.add(
                f"{name}, {variant}" if arguments.ablate else name,
                threads,
                *(str(len(found)) for found in kinds),
                *(f"{math.fsum(f) * 1000:,.1f} ({statistics.median(f) * 1000:.2f})" if f else "-" for f in figures),
            )
            table.notes += [f"WRONG: {name} {query}" for query in measured.wrong]
            if measured.over:
                table.notes.append(f"over {arguments.limit:g} s, {name}, {threads} threads: {', '.join(measured.over)}")
    table.notes.append(f"{surroundings('graphdb')}; medians of {arguments.repeat} runs")
    return [table]


if __name__ == "__main__":
    main(run)
