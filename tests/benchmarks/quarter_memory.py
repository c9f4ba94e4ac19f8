"""Queries to RDF, and joins of many rows, with all memory that they take on a device, and with a quarter of it.

    python -m tests.benchmarks.quarter_memory --triples 10_000_000 --people 150_000

RDF is generated (:mod:`tests.benchmarks.campus`), written and loaded; its questions are counted.  ``people`` know each
other and have interests, in the shapes of LSQB's queries; with 150,000 of them *interests of friends' friends* has some
55 million rows, which are counted and given to the host.  *needed* is what a run took that had room for all lists and a
GiB of tables, in MiB; a run with a quarter of that reads lists as *how* says.  Milliseconds are medians of further
runs, after the first.  Every number is compared with that of the run that fits; and with the CPU's, where it counts
within ``--limit`` seconds.

``--parts 4 8 16`` gives other parts, too; with ``--settle`` a thread has compiled what pays, and lists stand where searches read them, before the runs
that count.  *copied* are the MiB that the last of them copied to the device, *link* those that it is expected to read in host memory or to copy, *counted* those that
the driver says came over the link in a run, *x* these (or the larger of the others) by the lists' bytes, *read* by the bytes of lists that a run is expected to read
(what its lists have where they are scanned, over all partial matches), and *kernel* a search's time on the device; *how* tells the strategy, how much
of the lists stands on the device, how many blocks searched, and whether lists stand where joins want them.
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

import graphdb
from graphdb.common.errors import GraphDBError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.gpu.card import Rates
from graphdb.gpu.data.residency import WHOLE, lists_of_plan, lists_read
from graphdb.gpu.executor import GpuExecutor, Hint
from graphdb.grammar.parser import parse
from graphdb.grammar.syntax import MatchMode, Query
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.query import QueryRun
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks import campus
from tests.benchmarks.campus_queries import QUESTIONS
from tests.benchmarks.counting import pattern as counted
from tests.benchmarks.counting import rmat
from tests.benchmarks.harness import scratch
from tests.benchmarks.link import Link
from tests.benchmarks.several_devices import drawn as drawn_there

ASKED = ("S2", "F2", "C1", "T2", "T3", "T6", "T9", "H1", "H3", "H4")
"""Of the generated RDF's questions, those that read long lists."""
HEAD = (
    f"{'query':<42}{'way':<8}{'answer':>16}{'needed':>9}{'part':>6}{'fits ms':>10}{'part ms':>10}{'times':>7}"
    f"{'copied':>8}{'link':>8}{'counted':>8}{'x':>6}{'read':>7}{'kernel':>8}  right  how"
)
WAYS: tuple[Hint, ...] = ("join", "auto")
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
        self._runs, self._parts, self._limit, self._settle = given.runs, given.parts, given.limit, given.settle
        self._tables, self._only, self._ways = given.tables << 20, given.only, given.ways
        self._rates = self.calibrated()
        self._link = Link()

    @staticmethod
    def calibrated() -> Rates:
        """What the first device is measured to do."""
        measured = GpuExecutor(0)
        measured.calibrate().join()
        return measured.device.rates

    def row(self, title: str, way: Hint, plan: PhysicalPlan, run: Callable[[Any, PhysicalPlan], int]) -> None:
        """Print what a run took that had room for all, and with each part of that, if it ended."""
        counting = plan.count_only
        if way not in self._ways or (self._only and not any(title.startswith(each) for each in self._only)):
            return
        lists = sum(each.nbytes for each in lists_of_plan(plan, counting))
        read = max(plan.cost * np.dtype(plan.dtype).itemsize, 1.0)
        need, whole, wanted = int(lists / WHOLE) + self._tables, 0.0, None
        for part in (1, *self._parts):
            hint: Hint = "join" if part == 1 else way
            executor, found, times, copied = GpuExecutor(0, hint=hint, memory_limit=need // part), set[int](), [], 0
            executor.device.rates, memory = self._rates, executor.device.memory
            try:
                for number in range(self._settle + self._runs + 1):
                    if (
                        number <= self._settle and way == "auto"
                    ):  # joins are so short that many end while a search is compiled
                        executor.strategies.beside.wait_for_all()
                    before, started = memory.uploaded, time.perf_counter()
                    found.add(run(executor, plan))
                    times.append((time.perf_counter() - started) * 1000)
                    copied = memory.uploaded - before
            except GraphDBError as error:
                print(f"{title:<42}{way:<8} 1/{part}: {error.message}", flush=True)
                if part == 1:
                    return
                continue
            took = statistics.median(times[self._settle + 1 :])
            counted = self._link.bytes_of(partial(run, executor, plan)) if part > 1 else 0.0
            if part == 1:
                need, whole = int(memory.pool.total_bytes()), took
                try:
                    wanted = run(HostExecutor(), plan) if counting else max(found)
                except QueryTimeout:
                    wanted = max(found)
                if found != {wanted}:
                    print(f"{title:<42}{way:<8} where all fits: {sorted(found)}, not {wanted}", flush=True)
                continue
            how = executor.describe(plan)
            strategy = executor.strategies.of_all(plan, counting).name
            link = executor.strategies.link_bytes(plan, counting, strategy)
            moved = counted if counted >= 0.0 else max(copied, link)
            strategies = executor.strategies
            ready = strategies.beside.ready(plan, counting) if way == "auto" and part > 1 else True
            how += "" if ready else "; no search is compiled"
            how += f"; no search: {why}" if (why := strategies.no_search(plan)) else ""
            kernel = 0.0
            if strategy != "join":
                kernel = strategies.search.milliseconds
                placed = [executor.graph.residency.placed(each) for each in lists_read(plan, counting)]
                for_joins = any(each is not None and not each.searched for each in placed)
                how += f"; {strategies.search.launched} blocks{', lists stand as for joins' if for_joins else ''}"
            print(
                f"{title:<42}{way:<8}{wanted:>16,}{need / 2**20:>9.1f}{f'1/{part}':>6}{whole:>10.2f}{took:>10.2f}{took / whole:>7.2f}"
                f"{copied / 2**20:>8.1f}{link / 2**20:>8.1f}{counted / 2**20:>8.1f}{moved / lists:>6.1f}{moved / read:>7.2f}{kernel:>8.2f}"
                f"  {'yes' if found == {wanted} else f'NO: {sorted(found)}':<5}  {how}",
                flush=True,
            )
            del executor

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
                    for way in WAYS:
                        compared.row(question.name, way, matched, compared.count)


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
        for way in WAYS:
            compared.row(title, way, make_plan(pattern, graph, counting="never"), compared.count)
        listed = replace(pattern, count_only=False, outputs=tuple(vertex.name for vertex in vertices))
        for way in WAYS:
            compared.row(f"{title}, rows", way, make_plan(listed, graph, counting="never"), compared.rows)


def _labelled_plan(name: str, on_device: bool) -> PhysicalPlan:
    """Triangles of an R-MAT graph, drawn on the device or on the host, whose edges have one of two labels and a
    direction.
    """
    if on_device:
        vertices, low, high = drawn_there(int(name.removeprefix("rmat")), 16)
    else:
        vertices, u, v = rmat(int(name.removeprefix("rmat")), 16)
        low, high = np.divmod(unique(np.minimum(u, v)[u != v] * vertices + np.maximum(u, v)[u != v]), vertices)
    labels = (low + high) % 2
    order = np.concatenate([np.flatnonzero(labels == label) for label in (0, 1)])  # by label, as they are stored
    graph = DataGraph(ArraySource(low[order], vertices + labels[order], high[order], vertices + 2))
    drawn = counted([(0, 1), (1, 2), (0, 2)], vertices, MatchMode.DIFFERENT_NODES)
    of = zip(drawn.edges, (0, 1, 1), strict=True)
    drawn = replace(drawn, edges=tuple(replace(e, labels=(vertices + label,), directed=True) for e, label in of))
    return replace(make_plan(drawn, graph, counting="never"), clique=None)


def labelled(name: str, on_device: bool, compared: Compared) -> None:
    """Triangles of two labels, counted."""
    plan = _labelled_plan(name, on_device)
    for way in WAYS:
        compared.row(f"labelled {name}", way, plan, compared.count)


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=10_000_000, help="of RDF; 0: none")
    parser.add_argument("--people", type=int, default=150_000, help="0: none")
    parser.add_argument("--labelled", help="a graph: rmat18")
    parser.add_argument("--drawn", action="store_true", help="that graph is drawn on the device, in seconds")
    parser.add_argument("--parts", type=int, nargs="+", default=[4])
    parser.add_argument("--settle", type=int, default=0, help="runs before those that count")
    parser.add_argument("--only", nargs="+", help="of the queries, those whose names begin so")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--tables", type=int, default=1024, help="MiB beside the graph, where all fits")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that one run may take")
    given = parser.parse_args(argv)
    compared = Compared(given)
    print(HEAD, flush=True)
    if given.people:
        social(given.people, compared)
    if given.labelled:
        labelled(given.labelled, given.drawn, compared)
    if given.triples:
        rdf(given.triples, compared)


if __name__ == "__main__":
    main()
