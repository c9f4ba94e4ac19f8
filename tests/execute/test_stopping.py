"""Long runs say how far they are, and stop at once: however a query is run, and while it is planned."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.common.errors import ExecutionError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.compile.cancellable import run_cancellable
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.stops import PATIENCE, Stopwatch, soon

AT_ONCE = 0.1
"""Seconds of work from the wish to stop to the end of the run."""
AT_MOST = 3.0
"""The same on a machine that others keep busy: at least one of some tries must be at once, none may take this long."""


def random_graph(vertices: int, degree: int) -> DataGraph:
    rng = np.random.default_rng(1)
    s, o = np.sort(rng.integers(0, vertices, (2, vertices * degree)), axis=0)
    return DataGraph(ArraySource(s[s < o], np.zeros(int((s < o).sum())), o[s < o], vertices))


def pattern(edges: list[tuple[int, int]], mode: MatchMode, **more: Any) -> PatternGraph:
    size = 1 + max(map(max, edges))
    return PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(size)),
        tuple(PatternEdge(f"e{i}", a, b, (0,), False, 0) for i, (a, b) in enumerate(edges)),
        (Clause(mode, tuple(range(size))),),
        **more,
    )


def clique(size: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(size), 2))


PATH = [(i, i + 1) for i in range(5)]
CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
REPEATABLE, NODES, EDGES = MatchMode.REPEATABLE_ELEMENTS, MatchMode.DIFFERENT_NODES, MatchMode.DIFFERENT_EDGES


@pytest.fixture(scope="module")
def plans() -> dict[str, PhysicalPlan]:
    """Runs of many seconds, by every way that there is."""
    sparse, dense, wide = random_graph(6000, 20), random_graph(600, 200), random_graph(100_000, 6)
    heavy = random_graph(10_000, 40)
    rows = tuple(f"v{i}" for i in range(6))
    return {
        "rows": make_plan(pattern(PATH, EDGES, outputs=rows), sparse),
        "search": make_plan(pattern(PATH, EDGES, count_only=True), sparse, counting="never"),
        "grouped": make_plan(pattern(PATH, EDGES, outputs=("v0",), duplicates="count"), sparse, counting="never"),
        "cliques": make_plan(pattern(clique(7), NODES, count_only=True), dense),
        "loops": make_plan(pattern(CYCLE, REPEATABLE, count_only=True), heavy, counting="always"),
        "quotients": make_plan(pattern(CYCLE, NODES, count_only=True), heavy, counting="always"),
        "loops by vertex": make_plan(
            pattern(CYCLE, REPEATABLE, outputs=("v0",), duplicates="count"), heavy, counting="always"
        ),
        "along edges": make_plan(
            pattern([(i, i + 1) for i in range(150)], REPEATABLE, count_only=True), wide, counting="always"
        ),
    }


WAYS = ["rows", "search", "grouped", "cliques", "loops", "quotients", "loops by vertex", "along edges"]


def run(plan: PhysicalPlan, control: Control, threads: int) -> None:
    executor = HostExecutor(threads)
    if plan.count_only:
        executor.count(plan, control)
    else:
        for _ in executor.run(plan, control):
            pass


def test_the_plans_go_the_ways_they_are_named_for(plans: dict[str, PhysicalPlan]) -> None:
    assert plans["cliques"].clique is not None
    for way in ("loops", "quotients", "loops by vertex", "along edges"):
        assert plans[way].counting is not None
        assert any(part.levels for term in plans[way].counting.terms for part in term.parts) == (way != "along edges")
    assert len(plans["quotients"].counting.terms) > 1  # type: ignore[union-attr]
    assert plans["grouped"].row_steps < len(plans["grouped"].steps)


@pytest.mark.parametrize(("way", "threads"), [*((way, 2) for way in WAYS), ("rows", 1), ("loops", 1), ("cliques", 1)])
def test_a_run_is_cancelled_at_once(plans: dict[str, PhysicalPlan], way: str, threads: int) -> None:
    def stop() -> float:
        cancelled = threading.Event()
        asked: list[Stopwatch] = []

        def ask() -> None:
            asked.append(Stopwatch())
            cancelled.set()

        threading.Timer(0.15, ask).start()
        with pytest.raises(ExecutionError, match="interrupted"):
            run(plans[way], Control(cancelled=cancelled), threads)
        return asked[0].seconds()

    soon(stop, AT_ONCE, AT_MOST)


@pytest.mark.parametrize("way", WAYS)
def test_progress_is_reported_steadily(plans: dict[str, PhysicalPlan], way: str) -> None:
    """As long as a match runs, it reports its progress, which never falls: its first eight reports are enough."""
    seen: list[float] = []
    enough = threading.Event()

    def note(share: float) -> None:
        seen.append(share)
        if len(seen) == 8:
            enough.set()

    with pytest.raises(ExecutionError):
        run(plans[way], Control(progress=note, cancelled=enough, timeout=PATIENCE), 2)
    assert seen == sorted(set(seen))
    assert 0.0 < seen[0] <= seen[-1] < 1.0
    assert len(seen) >= 3


def test_progress_says_how_much_is_done() -> None:
    """At half of the processor's time, which other work does not add to, about half of the work."""
    plan = make_plan(pattern([(0, 1), (1, 2), (2, 3)], EDGES, outputs=("v0", "v3")), random_graph(1500, 15))
    for threads in (1, 2):
        report: list[tuple[float, float]] = []
        started = time.process_time()
        run(plan, Control(progress=lambda share: report.append((share, time.process_time()))), threads)  # noqa: B023
        whole = time.process_time() - started
        assert report[-1][0] == 1.0
        assert max(abs(share - (at - started) / whole) for share, at in report) < 0.4


# --- through the database --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    folder = tmp_path_factory.mktemp("stopping")
    rng = np.random.default_rng(2)
    edges = rng.integers(0, 5000, (60_000, 2)).tolist()
    (folder / "graph.nt").write_text("".join(f"<urn:v:{a}> <urn:p:e> <urn:v:{b}> .\n" for a, b in edges))
    with graphdb.connect(folder / "graph.duckdb", threads=2) as opened:
        opened.load(folder / "graph.nt")
        opened.query("MATCH (a)-[:e]-(b)-[:e]-(c) RETURN iri(a) LIMIT 1")
        yield opened


STATEMENTS = {
    "the match": "MATCH (a)-[:e]-(b)-[:e]-(c)-[:e]-(d)-[:e]-(f) RETURN a, b, c, d, f",
    "a path": "MATCH p = SHORTEST 100 ACYCLIC GROUPS (a)-[:e]-+(b) WHERE iri(a) = 'urn:v:1' AND iri(b) = 'urn:v:2' "
    "RETURN length(p), count(*)",
    "the SQL after it": "MATCH (a)-[:e]-(b)-[:e]-(c) RETURN iri(a) + iri(b) + iri(c) AS x ORDER BY reverse(x)",
}


@pytest.mark.parametrize("how", ["interrupt", "timeout"])
@pytest.mark.parametrize("what", STATEMENTS)
def test_a_statement_ends_at_once(db: graphdb.Database, what: str, how: str) -> None:
    def stop() -> float:
        asked: list[Stopwatch] = []

        def ask() -> None:
            asked.append(Stopwatch())
            if how == "interrupt":
                db.interrupt()

        timer = threading.Timer(0.4, ask)
        timer.start()
        with pytest.raises((ExecutionError, KeyboardInterrupt, QueryTimeout)):
            db.query(STATEMENTS[what], timeout=0.4 if how == "timeout" else None)
        timer.join()
        return asked[0].seconds()

    soon(stop, AT_ONCE, AT_MOST)
    assert db.query("MATCH (a)-[:e]->(b) RETURN count(*)").scalar() > 0


def test_waiting_ends_where_the_check_says_so() -> None:
    """What is derived in a thread of its own is left alone; nobody waits for it."""
    ended = threading.Event()

    def check() -> None:
        if time.monotonic() - started > 0.05:
            raise ExecutionError("enough")

    started = time.monotonic()
    with pytest.raises(ExecutionError, match="enough"):
        run_cancellable(lambda: ended.wait(PATIENCE), check)
    assert any(thread.name == "graphdb-derive" for thread in threading.enumerate())
    ended.set()
    assert run_cancellable(lambda: 42, lambda: None) == 42
    with pytest.raises(ZeroDivisionError):
        run_cancellable(lambda: 1 / 0, lambda: None)


def test_partitions_are_built_patiently() -> None:
    """A plan that asks for large partitions can be given up while they are made."""
    graph = random_graph(400_000, 8)
    calls, between = [], []

    def check() -> None:
        if calls:
            between.append(calls[0].seconds())
            raise ExecutionError("enough")
        calls.append(Stopwatch())

    with graph.watched(check), pytest.raises(ExecutionError, match="enough"):
        make_plan(pattern(PATH, EDGES, outputs=("v0",)), graph)
    assert between[0] < 1
    assert make_plan(pattern(PATH, EDGES, outputs=("v0",)), graph).steps
