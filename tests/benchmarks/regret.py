"""The regret of the choice: the time of the way that ``db.query`` takes, over the time of the best of all ways.

    python -m tests.benchmarks.regret --queries 300
    python -m tests.benchmarks.regret --queries 60 --graphs hprd,yeast --device cpu

Queries are drawn anew from a seed: random walks of 6 to 16 vertices over labelled graphs, motifs of 3 to 6 vertices on
an R-MAT graph without labels, and walks of 3 to 8 triples over RDF data, some with constants.  Of each, all ways count
the matches: on the CPU a search, sums, a tree, twins or cliques, on a device the join, the search and sums, each pinned,
on plans of their own.  *first* is a text that was never seen, by ``db.query``, over the least that a way takes for
planning and its first run.  The lists of the edge labels are there by then, whoever reads them (a text is asked for the
first time more often than a label), and device code that is written per plan is there for none: before each way's
first run it is unloaded, its files are deleted, and NVRTC's own cache is not used.  *anew* is the same once all code is
there.  *warm* is the median of later runs: of the plan that ``db.query`` had settled on by then, and of the ways that
come near the best, run in turns, so that what slows the machine slows them alike.  All counts are compared.

Whatever runs beside a measurement makes one way look worse than another; so a query whose regret is above :data:`ALLOWED`
is measured once more from the start, without plans, code or times of the first, and of each time the lesser counts.  A
note says which these are, and what the first measurement said.

A way may take ``--limit`` seconds (the choice :data:`ALLOWED` times that), and not much longer than the best one so far;
graphs take turns, so that what ``--seconds`` cuts off is the same share of each.  Both times of a ratio have
:data:`CALL` added: between ways that take microseconds nobody has to choose.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import graphdb
from graphdb.common.errors import GraphDBError
from graphdb.execute.choose import ChoosingExecutor
from graphdb.grammar.parser import parse
from graphdb.grammar.syntax import Query
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Control, Executor
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.query import Prepared, QueryRun
from graphdb.storage.compile import warm
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.datasets import source
from tests.benchmarks.harness import Table, main, surroundings
from tests.benchmarks.labelled import labelled_set
from tests.benchmarks.pinned_ways import Make, compile_anew, device_ways, executors, forget_code, plans_of, rank_lists
from tests.benchmarks.random_queries import Lists, rmat, triples_walk

GRAPHS = ("github", "hprd", "yeast", "rmat", "motifs", "watdiv")
SLACK, PATIENCE = 0.05, 5.0
"""A pinned way is stopped after so many seconds, and so many times the best time so far."""
RUNS, ANEW = 5, 3
"""Runs of which the median counts; and plans made anew, with their first runs, of which the least does: another process
that runs meanwhile takes milliseconds, as much as a small query."""
TURNS, NEAR = 9, 2.0
"""Runs in turns of what was chosen and of all ways that took less than so many times the best."""
KINDS = ("first", "anew", "warm")
ALLOWED = 3.0
CALL = 1e-4
"""Seconds that asking takes, about."""
UNMEASURED = 2
"""Queries of each graph that come first: they read and compile what all others share …"""
BRIEF = 0.3
"""… and take so many seconds at most."""
READING = 0.5
"""Seconds in which the lists that a pattern reads are made, and copied to a device."""


_TRIPLE = re.compile(r"^(<[^>]*>)\s+(<[^>]*>)\s+(<[^>]*>)\s*\.", re.MULTILINE)


@dataclass
class Graph:
    """A graph in a database, and where its queries come from."""

    name: str
    database: graphdb.Database
    draw: Callable[[np.random.Generator], str]
    executor: Executor = field(init=False)
    """Who answers ``db.query``; a device that it may choose is open."""
    counted: float = field(default=0.0, init=False)
    """Seconds that the latest count took there."""

    def __post_init__(self) -> None:
        statements = self.database._statements()
        with statements.queries.new_run("", {}, None) as run:
            self.executor = run.executor
        if isinstance(self.executor, ChoosingExecutor):
            self.executor._opened()
        count = self.executor.count

        def timed(plan: PhysicalPlan, control: Control | None = None) -> int:
            started = time.perf_counter()
            try:
                return count(plan, control)
            finally:
                self.counted = time.perf_counter() - started

        self.executor.count = timed  # type: ignore[method-assign]


def opened(name: str, device: str) -> Graph:
    """Load a graph; the first query of each edge label makes what all others read."""
    import pyarrow as pa

    database = graphdb.connect(device=device)
    if name == "watdiv":
        with gzip.open(source("watdiv"), "rt", encoding="utf-8") as file:
            triples = [found.groups() for found in _TRIPLE.finditer(file.read())]
        near: dict[str, list[int]] = {}
        for i, (subject, _, object) in enumerate(triples):
            near.setdefault(subject, []).append(i)
            near.setdefault(object, []).append(i)
        database.load(source("watdiv"))
        return Graph(name, database, lambda rng: triples_walk(triples, rng, near))  # type: ignore[arg-type]
    labels: list[int] | None = None
    if name in ("rmat", "motifs"):
        u, v = rmat(14, 8)
        vertices = 1 << 14
        if name == "rmat":
            labels = (40 * np.random.default_rng(2).random(vertices) ** 1.5).astype(np.int64).tolist()
    else:
        data = labelled_set(name).data
        labels, vertices = data.labels, len(data.labels)
        u, v, _ = np.array(data.edges, np.int64).T
    if labels is not None:
        database.load(pa.table({":ID": np.arange(vertices), ":LABEL": [f"L{label}" for label in labels]}))
    database.load(pa.table({":START_ID": u, ":END_ID": v}), type="e")
    lists, sizes = Lists.of(labels, vertices, u, v), (3, 6) if labels is None else (6, 16)
    return Graph(name, database, lambda rng: lists.walk(rng, *sizes))


@dataclass
class Time:
    """Seconds of a way: a first run and all that asking takes before and after it, without and with device code that
    is written for its plan; later runs; infinite where it did not end.
    """

    first: float = math.inf
    anew: float = math.inf
    warm: float = math.inf

    def least(self, other: Time) -> Time:
        """The lesser of each two."""
        return Time(*(min(getattr(self, kind), getattr(other, kind)) for kind in KINDS))


@dataclass
class Measured:
    """One query."""

    graph: str
    number: int
    text: str
    chosen: Time = field(default_factory=Time)
    ways: dict[str, Time] = field(default_factory=dict)
    answers: set[int] = field(default_factory=set)
    besides: dict[str, float] = field(default_factory=dict)
    """Seconds of a first run that did not go into counting, whichever way: to parse, to plan, to make a result."""
    explained: str = ""
    costs: dict[str, float] = field(default_factory=dict)
    """What the planner expects, in elements; and what the choice made of that."""
    before: dict[str, float] = field(default_factory=dict)
    """Where it was measured twice, the regrets of the first measurement."""

    def regret(self, kind: str) -> float:
        """The chosen time over the best; 1 where the chosen way is the best."""
        chosen = getattr(self.chosen, kind)
        best = min([chosen, *(getattr(way, kind) for way in self.ways.values())])
        return float((chosen + CALL) / (best + CALL)) if best < math.inf else 1.0

    def least(self, again: Measured) -> Measured:
        """What two measurements of one query say: of each time the lesser, and the answers of both."""
        ways = {name: way.least(again.ways.get(name, way)) for name, way in self.ways.items()}
        first = {kind: self.regret(kind) for kind in KINDS}
        chosen, answers = self.chosen.least(again.chosen), self.answers | again.answers
        return replace(again, chosen=chosen, ways=again.ways | ways, answers=answers, before=first)

    def best(self, kind: str) -> str:
        """The best of the pinned ways."""
        return min(self.ways, key=lambda way: getattr(self.ways[way], kind), default="-")


def measure(graph: Graph, number: int, rng: np.random.Generator, given: argparse.Namespace) -> Measured:
    """Ask by ``db.query``, then by all ways."""
    found, settled = Measured(graph.name, number, graph.draw(rng)), None
    _read(graph, found.text)
    device = executors(graph.executor)[1]
    started = time.perf_counter()

    def ask() -> int:
        graph.counted = 0.0
        return int(graph.database.query(found.text, timeout=ALLOWED * given.limit).scalar())

    try:
        found.answers.add(ask())
        found.chosen.first = time.perf_counter() - started
        found.besides["first"] = found.chosen.first - graph.counted
        for run in range(1000):
            found.answers.add(ask())
            if run >= 3 and time.perf_counter() - started > given.settle:
                break
        found.chosen.warm = _warm(ask)
        settled = graph.database._state.plans.counting(found.text)
        if device is not None:
            device._counter.wait_for_all()
        for _ in range(ANEW):
            graph.database._state.plans.clear()
            graph.database._state.snapshot().plans.clear()
            started = time.perf_counter()
            found.answers.add(ask())
            taken = time.perf_counter() - started
            if taken < found.chosen.anew:
                found.chosen.anew, found.besides["anew"] = taken, taken - graph.counted
            if found.chosen.anew > BRIEF:
                break
    except GraphDBError as error:
        found.explained = f"{type(error).__name__}; "
    found.explained += _explained(graph.database, found.text)
    with QueryRun(graph.database._state.snapshot(), graph.executor, found.text, {}, bindings_bytes=8 << 30) as run:
        graph.database._state.snapshot().plans.clear()
        started = time.perf_counter()
        query = parse(found.text)
        assert isinstance(query, Query)
        graph.database._statements().queries.check(query, found.text)
        prepared = run.prepare(query)
        planning = time.perf_counter() - started
        found.besides = {kind: found.besides.get(kind, planning) for kind in KINDS[:2]}
        assert isinstance(prepared, Prepared)
        assert prepared.plan is not None
        pattern, data, plan = run._pattern(prepared.bound, prepared.wanted), run._snapshot.graph, prepared.plan
        found.costs = {
            name: float(part.choices[-1] if name == "twins" else part.cost)
            for name, part in (("search", plan), ("tree", plan.tree), ("sums", plan.counting), ("twins", plan.twins))
            if part is not None
        }
        if isinstance(graph.executor, ChoosingExecutor):
            found.costs["cpu ms"] = graph.executor.costs.of(plan, True) * 1e3
            if graph.executor._device is not None:
                for name, cost in graph.executor._device.costs.of(plan, True).items():
                    found.costs |= {f"cuda {name} ms": cost.seconds * 1e3, f"cuda {name} setup ms": cost.setup * 1e3}
        runs = _pinned(found, graph.executor, pattern, data, plan, given)
        if settled is not None and settled.plan is not None:
            _in_turns(found, partial(graph.executor.count, settled.plan), runs, given.settle)
    if device is not None:  # the compiler has one lock: the next graph's first run would wait for this one's kernels
        device._counter.wait_for_all()
    return found


def _checked(graph: Graph, number: int, given: argparse.Namespace) -> Measured:
    """Measure a query, and once more where the choice looks bad."""
    found = measure(graph, number, np.random.default_rng([given.seed, number]), given)
    if any(found.regret(kind) > ALLOWED for kind in KINDS):
        found = found.least(measure(graph, number, np.random.default_rng([given.seed, number]), given))
    return found


def _read(graph: Graph, text: str) -> None:
    """Have the lists that a pattern reads in memory and on the device, but no plan and no code of its own."""
    with QueryRun(graph.database._state.snapshot(), graph.executor, text, {}, bindings_bytes=8 << 30) as run:
        query = parse(text)
        assert isinstance(query, Query)
        graph.database._statements().queries.check(query, text)
        prepared = run.prepare(query)
        assert isinstance(prepared, Prepared)
        pattern, data = run._pattern(prepared.bound, prepared.wanted), run._snapshot.graph
        host, device = executors(graph.executor)
        readers = [host] if device is None else [host, device_ways(device)["join"]]
        for reader in readers:
            try:
                reader.count(make_plan(pattern, data, counting="never"), Control(timeout=READING))
            except GraphDBError:
                continue
        if device is not None:
            if prepared.plan is not None:
                rank_lists(device, prepared.plan)
            forget_code(device)
    graph.database._state.plans.clear()
    graph.database._state.snapshot().plans.clear()


def _in_turns(found: Measured, chosen: Callable[[], int], runs: dict[str, Callable[[], int]], settle: float) -> None:
    """Measure what was chosen and the ways near the best again, each once in every turn.

    The ways' first runs have unloaded all code, so what was chosen runs as long as the text did before.
    """
    started = time.perf_counter()
    for run in range(1000):
        chosen()
        if run >= 3 and time.perf_counter() - started > settle:
            break
    best = min([found.chosen.warm, *(way.warm for way in found.ways.values())])
    near = {name: run for name, run in runs.items() if found.ways[name].warm <= NEAR * best}
    times: dict[str, list[float]] = {name: [] for name in ("chosen", *near)}
    for _ in range(TURNS):
        for name, run in (("chosen", chosen), *near.items()):
            started = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - started)
    found.chosen.warm = statistics.median(times["chosen"])
    for name in near:
        found.ways[name].warm = statistics.median(times[name])


def _pinned(
    found: Measured,
    executor: Executor,
    pattern: PatternGraph,
    data: DataGraph,
    plan: PhysicalPlan,
    given: argparse.Namespace,
) -> dict[str, Callable[[], int]]:
    """Measure every way, and return what runs those that were done."""
    runs: dict[str, Callable[[], int]] = {}
    if not plan.count_only:
        return runs
    host, device = executors(executor)
    started = time.perf_counter()
    make_plan(pattern, data, refine=executor.refine)
    planning = time.perf_counter() - started
    plans = {name: (make, saved) for name, make, saved in plans_of(pattern, data, plan, planning)}
    ways: list[tuple[str, Executor, tuple[Make, float]]] = [(f"cpu {name}", host, plans[name]) for name in plans]
    if device is not None:
        pinned = device_ways(device)
        ways.append(("cuda join", pinned["join"], plans["search"]))
        if found.number % given.search_each == 0:
            ways.append(("cuda search", pinned["search"], plans["search"]))
        if plan.clique is not None:
            ways.append(("cuda cliques", pinned["sums"], plans["cliques"]))
        if "sums" in plans:
            ways.append(("cuda sums", pinned["sums"], plans["sums"]))
    for name, who, make in ways:
        best = min([found.chosen.warm, *(way.warm for way in found.ways.values())])
        limit = min(given.limit, SLACK + PATIENCE * best)
        if who is not host:
            forget_code(device)
        compiling = given.limit if name in ("cuda search", "cuda sums") else limit
        try:
            run = _measure(found, name, who, *make, data, limit, compiling)
            if run is not None:
                runs[name] = run
        except GraphDBError:
            found.ways.setdefault(name, Time())
    return runs


def _measure(
    found: Measured,
    name: str,
    who: Any,
    make: Make,
    saved: float,
    data: DataGraph,
    limit: float,
    compiling: float,
) -> Callable[[], int] | None:
    """Plan and run one way; what runs it once more, or None where there is no such way."""
    seen, plan = found.ways.setdefault(name, Time()), None
    for run in range(1 + ANEW):
        started = time.perf_counter()
        with data.watched(Control(timeout=compiling).check):
            plan = make()
        if plan is None or (
            getattr(who, "hint", "auto") in ("search", "sums") and not plan.clique and who.off_hint(plan, True)
        ):
            del found.ways[name]
            return None
        found.answers.add(who.count(plan, Control(timeout=compiling)))
        taken = time.perf_counter() - started
        if run == 0:
            seen.first = max(found.besides["first"] - saved, 0.0) + taken
        seen.anew = min(max(found.besides["anew"] - saved, 0.0) + taken, seen.anew)
        if seen.first > BRIEF and run > 0:
            break
    for _ in range(2):
        who.count(plan, Control(timeout=limit))
    seen.warm = _warm(lambda: who.count(plan, Control(timeout=limit)))
    if getattr(who, "hint", "auto") == "sums" and not plan.clique and who.off_hint(plan, True):
        del found.ways[name]  # its kernels could not be written
        return None
    assert plan is not None
    return partial(who.count, plan)


def _warm(run: Callable[[], object]) -> float:
    """The median of some runs, in seconds."""
    seconds: list[float] = []
    while len(seconds) < RUNS and sum(seconds) < 0.5:
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _explained(database: graphdb.Database, text: str) -> str:
    """Who runs the match, and what was expected."""
    lines = "\n".join(str(row[0]) for row in database.query(f"EXPLAIN {text}").fetchall()).splitlines()
    return " | ".join(line.strip() for line in lines if line.startswith("match") or "expected" in line)


def tables(measured: list[Measured], worst: int) -> list[Table]:
    """The quantiles by graph, and the worst rows."""
    quantiles = Table("chosen ÷ best", ["graph", "queries", "time", "50 %", "90 %", "95 %", "99 %", "most", "mean"])
    for name in [*dict.fromkeys(one.graph for one in measured), "all"]:
        rows = [one for one in measured if name in (one.graph, "all")]
        for kind in KINDS:
            regrets = [min(one.regret(kind), 1e4) for one in rows]
            figures = np.quantile(regrets, [0.5, 0.9, 0.95, 0.99, 1.0]).tolist() if regrets else []
            mean = math.exp(statistics.fmean(map(math.log, regrets))) if regrets else math.nan
            quantiles.add(name, str(len(rows)), kind, *(f"{figure:,.2f}" for figure in [*figures, mean]))
    wrong = [one for one in measured if len(one.answers) > 1]
    quantiles.notes += [f"NOT AGREED: {one.graph} {one.number}: {one.answers}" for one in wrong]
    twice = [
        f"{one.graph} {one.number} (" + ", ".join(f"{one.before[kind]:.1f}" for kind in KINDS) + ")"
        for one in measured
        if one.before
    ]
    quantiles.notes.append(
        f"measured twice, with the regrets ({', '.join(KINDS)}) of the first time: {', '.join(twice) or 'none'}"
    )
    quantiles.notes.append(f"{sum(not one.answers for one in measured)} queries were not answered in time")
    quantiles.notes.append(f"{surroundings('graphdb')}; medians of {RUNS} runs")
    listed = []
    for kind in KINDS:
        table = Table(f"largest regret, {kind}: ms", ["query", "regret", "chosen", "best", "", "explained"])
        for one in sorted(measured, key=lambda one: -one.regret(kind))[:worst]:
            best = one.best(kind)
            row = f"{one.graph} {one.number}", f"{one.regret(kind):,.1f}", _ms(getattr(one.chosen, kind))
            table.add(*row, best, _ms(getattr(one.ways.get(best, Time()), kind)), one.explained)
        listed.append(table)
    return [quantiles, *listed]


def _ms(seconds: float) -> str:
    return "-" if math.isinf(seconds) else f"{seconds * 1e3:,.2f}"


def line(one: Measured) -> str:
    """A query as JSON, for whoever fits the constants of the cost model."""
    times = {name: [_ms(getattr(way, kind)) for kind in KINDS] for name, way in one.ways.items()}
    costs = {name: float(f"{cost:.3g}") for name, cost in one.costs.items()}
    shown = {"graph": one.graph, "number": one.number, "count": max(one.answers, default=None), "ways": times}
    chosen = {"chosen": [_ms(getattr(one.chosen, kind)) for kind in KINDS], "costs": costs, "explained": one.explained}
    chosen |= {"before": one.before} if one.before else {}
    return json.dumps(shown | chosen)


def run(argv: list[str]) -> list[Table]:
    """Draw, ask, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=300, help="of all graphs together")
    parser.add_argument("--begin", type=int, default=0, help="leave out so many of them, the first")
    parser.add_argument("--graphs", default=",".join(GRAPHS), help=f"comma-separated, among: {', '.join(GRAPHS)}")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds that one run may take")
    parser.add_argument("--settle", type=float, default=0.3, help="seconds in which a text is asked before it is warm")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no query begins after so many")
    parser.add_argument("--search-each", type=int, default=1, help="pin the device's search for one query of so many")
    parser.add_argument("--worst", type=int, default=10, help="how many rows of the largest regret are listed")
    parser.add_argument("--lines", action="store_true", help="print every query as JSON when it is measured")
    given = parser.parse_args(argv)
    started, measured = time.monotonic(), list[Measured]()
    warm.make_missing()
    if not compile_anew():
        print("NVRTC may cache what it compiles: first runs of device ways may be flattered", flush=True)
    graphs = [opened(name, given.device) for name in given.graphs.split(",")]
    print(f"loaded in {time.monotonic() - started:.1f} s", flush=True)
    brief = argparse.Namespace(**vars(given) | {"limit": BRIEF / ALLOWED, "settle": 0.0})
    for number, graph in enumerate(graphs * UNMEASURED):
        measure(graph, number, np.random.default_rng([given.seed + 1, number]), brief)
    print(f"compiled after {time.monotonic() - started:.1f} s", flush=True)
    for number in range(given.begin, given.queries):
        graph = graphs[number % len(graphs)]
        if time.monotonic() - started > given.seconds:
            break
        measured.append(_checked(graph, number, given))
        if given.lines:
            print(line(measured[-1]), flush=True)
    for graph in graphs:
        graph.database.close()
    return tables(measured, given.worst)


if __name__ == "__main__":
    main(run)
