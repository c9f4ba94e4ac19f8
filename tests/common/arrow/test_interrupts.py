"""An interrupt at any line while rows come from DuckDB leaves no result open, which would refuse every later statement."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

import graphdb
from graphdb.common.duckdb.fetch import abandon, batches, fetched, rows_of, small_rows
from tests.interrupted import interrupted

_FILES = ("common/duckdb/fetch.py", "common/arrow/imported.py", "common/arrow/tables.py")


def _interrupted(run: Callable[[], object], at: int) -> KeyboardInterrupt | None:
    return interrupted(run, at, _FILES)


def test_an_interrupt_leaves_no_result_open() -> None:
    rows = "SELECT i, 'text' || i AS t FROM range(5000) r (i)"
    with duckdb.connect(config={"threads": 1}) as raw:
        runs = (
            lambda: rows_of(raw, rows),
            lambda: fetched(raw.sql(rows)),
            lambda: small_rows(raw, rows, {}, 1 << 10),
            lambda: list(batches(raw, rows, 1 << 11)),
        )
        for run in runs:
            run()  # once without: what is cached is cached
            at = 0
            while (error := _interrupted(run, at)) is not None:
                abandon(raw)  # as the next statement does, while somebody may still look at the error
                raw.execute("BEGIN")
                del error
                raw.rollback()
                at += 5
            assert at > 10


def test_statements_run_while_somebody_holds_on_to_interrupts() -> None:
    """As a prompt does with the last error."""
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(1, 20) AS i CREATE (:A {k: i})")
        texts = ("MATCH (n:A) RETURN n, n.k ORDER BY n.k", "MATCH (n:A) WHERE n.k > 17 SET n.x = 1 RETURN n.x")
        for text in texts:
            db.query(text)
            held, at = [], 0
            while (error := _interrupted(lambda text=text: db.query(text), at)) is not None:
                held.append(error)
                assert db.query("MATCH (n:A) RETURN count(*)").scalar() == 20
                at += 5
            assert len(held) > 3


def test_a_statement_runs_after_an_interrupt_that_came_outside_of_its_reads() -> None:
    """Partitions are read for the plan: nobody caught the interrupt where the connection is, and the rows stayed open."""
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(1, 20) AS i CREATE (:A {k: i})")
        at = 0
        while (error := _interrupted(lambda: db.query("MATCH (n:A) RETURN n, n.k ORDER BY n.k"), at)) is not None:
            at += 1
        assert error is None
        assert at > 20
