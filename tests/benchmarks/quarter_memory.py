"""Queries to RDF, and joins of many rows, with all memory that they take on a device, and with a quarter of it.

    python -m tests.benchmarks.quarter_memory --triples 10_000_000 --people 150_000

RDF is generated (:mod:`tests.benchmarks.campus`), written and loaded; its questions are counted.  ``people`` know each
other and have interests, in the shapes of LSQB's queries; with 150,000 of them *interests of friends' friends* has some
55 million rows, which are counted and given to the host.  *needed* is what a run took that had room for all lists and a
GiB of tables, in MiB; a run with a quarter of that reads lists as *how* says.  Milliseconds are medians of further
runs, after the first.  Every number is compared with that of the run that fits; and with the CPU's, where it counts
within ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import graphdb
from graphdb.common.errors import GraphDBError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.gpu.data.residency import WHOLE, lists_of_plan
from graphdb.gpu.executor import GpuExecutor, Hint
from graphdb.grammar.parser import parse
from graphdb.grammar.syntax import MatchMode, Query
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.query import QueryRun
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks import campus
from tests.benchmarks.campus_queries import QUESTIONS
from tests.benchmarks.harness import scratch

ASKED = ("S2", "F2", "C1", "T2", "T3", "T6", "T9", "H1", "H3", "H4")
"""Of the generated RDF's questions, those that read long lists."""
HEAD = f"{'query':<42}{'way':<8}{'answer':>16}{'needed':>9}{'fits ms':>10}{'quarter':>10}{'times':>7}  right  how"
KNOWS, INTEREST, CITY = range(3)
PATTERNS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "friends' friends' interests": ((0, 1, KNOWS), (1, 2, KNOWS), (2, 3, INTEREST)),
    "triangle of one city": ((0, 1, KNOWS), (1, 2, KNOWS), (0, 2, KNOWS), (0, 3, CITY), (1, 3, CITY), (2, 3, CITY)),
    "friends of one interest": ((0, 1, KNOWS), (0, 2, INTEREST), (1, 2, INTEREST)),
    "friends of friends of one interest": ((0, 1, KNOWS), (1, 2, KNOWS), (0, 3, INTEREST), (2, 3, INTEREST)),
}
"""Patterns as edges (from, to, label); people know each other both ways."""


class Compared:
    """Runs one plan with all that it needs, and with a quarter."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._runs, self._part, self._limit = given.runs, given.part, given.limit
        self._tables = given.tables << 20
        measured = GpuExecutor(0)
        measured.calibrate().join()
        self._rates = measured.device.rates

    def row(self, title: str, way: Hint, plan: PhysicalPlan, run: Callable[[Any, PhysicalPlan], int]) -> None:
        """Print what both took, if both ended."""
        counting = plan.count_only
        need = int(sum(each.nbytes for each in lists_of_plan(plan, counting)) / WHOLE) + self._tables
        found, took, how = [], [], ""
        for part in (1, self._part):
            executor = GpuExecutor(0, hint=way, memory_limit=need // part)
            executor.device.rates = self._rates
            times = []
            try:
                for _ in range(self._runs + 1):
                    started = time.perf_counter()
                    found.append(run(executor, plan))
                    times.append((time.perf_counter() - started) * 1000)
            except GraphDBError as error:
                print(f"{title:<42}{way:<8}{found[0] if found else '':>16} 1/{part}: {error.message}", flush=True)
                return
            took.append(statistics.median(times[1:]))
            if part == 1:
                need = int(executor.device.memory.pool.total_bytes())
            how = executor.describe(plan)
            del executor
        try:
            found.append(run(HostExecutor(), plan) if counting else found[0])
            right = "yes"
        except QueryTimeout:
            right = "alike"
        right = right if len(set(found)) == 1 else f"NO: {sorted(set(found))}"
        print(
            f"{title:<42}{way:<8}{found[0]:>16,}{need / 2**20:>9.1f}{took[0]:>10.1f}{took[1]:>10.1f}{took[1] / took[0]:>7.2f}  {right:<5}  {how}",
            flush=True,
        )

    def count(self, executor: Any, plan: PhysicalPlan) -> int:
        """The number of matches."""
        return int(executor.count(plan, Control(timeout=self._limit)))

    def rows(self, executor: Any, plan: PhysicalPlan) -> int:
        """How many rows the host is given."""
        control = Control(timeout=self._limit, buffer_bytes=1 << 30)
        return sum(block.count for block in executor.run(plan, control))


def rdf(triples: int, compared: Compared) -> None:
    """Questions to RDF, counted by enumeration and as the device likes it best."""
    with scratch() as folder:
        started = time.perf_counter()
        drawn = campus.campus(triples)
        campus.write(drawn, folder / "campus.nt")
        written = time.perf_counter()
        with graphdb.connect(folder / "campus.duckdb", device="cpu") as database:
            database.load(folder / "campus.nt")
            print(
                f"{campus.size(drawn):,} triples: written in {written - started:.1f} s, loaded in {time.perf_counter() - written:.1f} s",
                flush=True,
            )
            for question in QUESTIONS:
                if question.name.split()[0] not in ASKED:
                    continue
                text = replace(question, returns=(), form="rows").text
                with QueryRun(database._state.snapshot(), HostExecutor(), text, {}, bindings_bytes=8 << 30) as asked:
                    query = parse(text)
                    assert isinstance(query, Query)
                    plan = asked.prepare(query).plan
                    assert plan is not None
                    assert plan.origin is not None
                    matched = make_plan(plan.origin.pattern, plan.origin.graph, counting="never")
                    compared.row(question.name, "join", matched, compared.count)
                    compared.row(question.name, "auto", plan, compared.count)


def social(people: int, compared: Compared) -> None:
    """Joins in the shapes of LSQB's queries: a sixth of the people know most."""
    random = np.random.default_rng(1)
    ends = (random.random((2, 5 * people)) ** 1.5 * people).astype(np.int64)
    ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    ends = random.permutation(people)[ends]
    interests, cities = 2_000, 300
    several = random.integers(1, 7, people)
    who = np.repeat(np.arange(people), several)
    liked = np.unique(np.stack([who, people + (random.random(len(who)) ** 2 * interests).astype(np.int64)]), axis=1)
    lives = np.stack([np.arange(people), people + interests + (random.random(people) ** 2 * cities).astype(np.int64)])
    first = people + interests + cities
    parts = (ends, liked, lives)
    labels = np.concatenate([np.full(part.shape[1], first + label) for label, part in enumerate(parts)])
    source, target = np.concatenate(parts, axis=1)
    graph = DataGraph(ArraySource(source, labels, target, first + len(parts)))
    print(f"{people:,} people: {', '.join(f'{part.shape[1]:,}' for part in parts)} edges", flush=True)
    for title, edges in PATTERNS.items():
        vertices = tuple(PatternVertex(f"v{number}") for number in range(1 + max(max(a, b) for a, b, _ in edges)))
        pattern = PatternGraph(
            vertices,
            tuple(PatternEdge(f"e{i}", a, b, (first + of,), of != KNOWS, 0) for i, (a, b, of) in enumerate(edges)),
            (Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(vertices)))),),
            count_only=True,
        )
        compared.row(title, "join", make_plan(pattern, graph, counting="never"), compared.count)
        compared.row(title, "auto", make_plan(pattern, graph), compared.count)
        listed = replace(pattern, count_only=False, outputs=tuple(vertex.name for vertex in vertices))
        compared.row(f"{title}, rows", "join", make_plan(listed, graph, counting="never"), compared.rows)


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=10_000_000, help="of RDF; 0: none")
    parser.add_argument("--people", type=int, default=150_000, help="0: none")
    parser.add_argument("--part", type=int, default=4)
    parser.add_argument("--tables", type=int, default=1024, help="MiB beside the graph, where all fits")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that one run may take")
    given = parser.parse_args(argv)
    compared = Compared(given)
    print(HEAD, flush=True)
    if given.people:
        social(given.people, compared)
    if given.triples:
        rdf(given.triples, compared)


if __name__ == "__main__":
    main()
