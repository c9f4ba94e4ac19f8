"""Marks of use that are times: SQL over a pattern, first rows of a billion matches, interrupts, a million rows.

Run as ``python -m tests.benchmarks.marks``; ``docs/marks.md`` names these and the others.  The graph is random: 200,000
people, a million edges, seeded.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

import graphdb
from graphdb.common import arrow
from tests.benchmarks.harness import Table, main, surroundings

PEOPLE, EDGES = 200_000, 1_000_000
MATCH = "MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age AS x, b.age AS y"
LONG = "(a)-[:KNOWS]->(b)-[:KNOWS]->(c)-[:KNOWS]->(d)-[:KNOWS]->(e)-[:KNOWS]->(f)-[:KNOWS]->(g)"
FIRST = [
    f"MATCH REPEATABLE ELEMENTS {LONG} RETURN a.age, g.age LIMIT 10",
    f"MATCH DIFFERENT NODES {LONG} RETURN a.age, g.age LIMIT 10",
    f"SELECT x FROM cypher($$ MATCH {LONG} RETURN a.age AS x, g.age AS y $$) LIMIT 10",
    f"SELECT x FROM (MATCH {LONG} RETURN a.age AS x, g.age AS y) WHERE y > 30 LIMIT 10",
]
ENDLESS = [
    f"MATCH DIFFERENT NODES {LONG} RETURN sum(a.age + g.age)",
    "UNWIND range(1, 9999) AS x UNWIND range(1, 9999) AS y UNWIND range(1, 9999) AS z WITH x * y * z AS p WHERE p % 7 = 3 RETURN count(*)",
    "SELECT count(*) FROM range(100000000000) r WHERE r.range % 7 = 3",
]


def run(argv: list[str]) -> list[Table]:
    """Measure and return the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args(argv).repeat
    random = np.random.default_rng(1)
    with graphdb.connect() as db:
        people = {"id:ID": np.arange(PEOPLE), "age:int": random.integers(0, 90, PEOPLE)}
        knows = {name: random.integers(0, PEOPLE, EDGES) for name in (":START_ID", ":END_ID")}
        db.load(arrow.table(people), label="Person")
        db.load(arrow.table(knows), type="KNOWS")
        tables = [over_sql(db, repeat), first_rows(db, repeat), interrupts(db, repeat), many_rows(db, repeat)]
    tables[-1].notes.append(surroundings("graphdb", "duckdb"))
    return tables


def medians(calls: Sequence[Callable[[], object]], repeat: int) -> list[float]:
    """Median milliseconds of calls that are made in turns, after one of each."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(repeat + 1):
        for call, found in zip(calls, times, strict=True):
            started = time.perf_counter()
            call()
            if turn:
                found.append((time.perf_counter() - started) * 1000)
    return [statistics.median(found) for found in times]


def over_sql(db: graphdb.Database, repeat: int) -> Table:
    """SQL over a match of a million rows, beside the match and DuckDB's scan of a table of its rows."""
    table = Table(
        "SELECT … FROM cypher(…), a million rows: ms", ["SQL", "match", "scan", "both", "both / (match + scan)"]
    )
    db.query(f"CREATE TABLE whole AS {MATCH}")
    for select, group in (
        ("sum(x + y)", ""),
        ("x, avg(y)", " GROUP BY x"),
        ("count(*)", ""),
        ("max(y)", " WHERE x = 7"),
    ):
        match, scan, both = medians(
            [
                lambda: db.query(MATCH).to_arrow(),
                lambda: db.sql(f"SELECT {select} FROM whole{group}").fetchall(),  # noqa: B023 - called at once
                lambda: db.sql(f"SELECT {select} FROM cypher($$ {MATCH} $$){group}").fetchall(),  # noqa: B023
            ],
            repeat,
        )
        figures = [f"{one:.1f}" for one in (match, scan, both)]
        table.add(f"SELECT {select}{group}", *figures, f"{both / (match + scan):.2f}")
    return table


def first_rows(db: graphdb.Database, repeat: int) -> Table:
    """The first ten of billions of matches."""
    count = db.query(f"MATCH REPEATABLE ELEMENTS {LONG} RETURN count(*)").scalar()
    table = Table(f"LIMIT 10 of {count:,} matches (walks): ms", ["statement", "first time", "median"])
    for text in FIRST:
        started = time.perf_counter()
        db.query(text).fetchall()
        first = (time.perf_counter() - started) * 1000
        [median] = medians([lambda: db.query(text).fetchall()], repeat)  # noqa: B023 - called at once
        table.add(text.replace(LONG, "…"), f"{first:.0f}", f"{median:.0f}")
    return table


def interrupts(db: graphdb.Database, repeat: int) -> Table:
    """How long statements that would take hours go on after Ctrl-C, each asked at another time."""
    table = Table("ms from Ctrl-C to KeyboardInterrupt", ["statement", "median", "most"])
    for text in ENDLESS:
        found = []
        for turn in range(repeat):
            asked: list[float] = []

            def interrupt(asked: list[float] = asked) -> None:
                asked.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)

            timer = threading.Timer(0.2 + 0.05 * turn, interrupt)
            timer.start()
            try:
                db.query(text)
            except KeyboardInterrupt:
                found.append((time.perf_counter() - asked[0]) * 1000)
            timer.join()
        assert len(found) == repeat
        table.add(text.replace(LONG, "…")[:60], f"{statistics.median(found):.0f}", f"{max(found):.0f}")
    return table


def many_rows(db: graphdb.Database, repeat: int) -> Table:
    """A million rows as Arrow, as batches, and as Python's tuples."""
    table = Table("a million rows of two integers: ms", ["as", "median"])
    calls = {
        "to_arrow()": lambda: db.query(MATCH).to_arrow(),
        "fetch_batches(100_000)": lambda: sum(batch.num_rows for batch in db.query(MATCH).fetch_batches(100_000)),
        "df()": lambda: db.query(MATCH).df(),
        "fetchall()": lambda: db.query(MATCH).fetchall(),
    }
    for name, median in zip(calls, medians(list(calls.values()), max(repeat // 3, 1)), strict=True):
        table.add(name, f"{median:.0f}")
    return table


if __name__ == "__main__":
    main(run)
