"""Kills, interrupts, several handles and threads: answers, changes and graph always are of one state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import graphdb
from graphdb.common.errors import ExecutionError, GraphDBError, QueryInterrupted, QueryTimeout, StorageError
from graphdb.live import definitions
from tests.fuzz import scaled
from tests.live.writes import QUERIES, bag, begin, check, created, opened, statement

_WRITER = """
import sys
import numpy as np
from pathlib import Path
from tests.live.writes import opened, statement
draw = np.random.default_rng(int(sys.argv[2]))
with opened(Path(sys.argv[1])) as db:
    print("open", flush=True)
    while True:
        if draw.random() < 0.3:
            db.query("BEGIN")
            for _ in range(3):
                db.query(statement(draw))
            db.query("COMMIT")
        else:
            db.query(statement(draw))
        print("done", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills as POSIX has them")
def test_a_kill_loses_and_repeats_nothing(tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    path = tmp_path / "a.duckdb"
    with opened(path) as db:
        queries, stored = begin(db, draw, 5)
    for number in range(scaled(6)):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), str(number)], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        assert process.stdout is not None
        for _ in range(2 + int(draw.integers(6))):
            assert process.stdout.readline()
        time.sleep(draw.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with opened(path) as db:
            check(db, queries, stored)
            batches = [batch for (batch,) in db.sql("SELECT DISTINCT batch FROM _graphdb.batch ORDER BY 1").fetchall()]
            assert batches == list(range(1, len(batches) + 1))


def test_what_is_stopped_leaves_nothing() -> None:
    draw = np.random.default_rng(3)
    with opened(None) as db:
        queries, stored = begin(db, draw, 5)
        for number in range(scaled(40)):
            text = statement(draw)
            if number % 2:
                timer = threading.Timer(float(draw.random()) * 0.15, db.interrupt)
                timer.start()
                with suppress(QueryInterrupted, ExecutionError):
                    db.query(text)
                timer.cancel()
                timer.join()
            else:
                with suppress(QueryTimeout):
                    db.query(text, timeout=float(draw.random()) * 0.1)
            if number % 5 == 4:
                db.query("RETURN 1")
                check(db, queries, stored)
        check(db, queries, stored)


def test_handles_and_threads_on_one_file(tmp_path: Path) -> None:
    draw = np.random.default_rng(11)
    path = tmp_path / "a.duckdb"
    with opened(path) as first, opened(path) as second:
        queries, stored = begin(first, draw, 4)
        errors: list[BaseException] = []

        def write(db: graphdb.Database, seed: int) -> None:
            own = np.random.default_rng(seed)
            try:
                for number in range(min(scaled(20), 30)):  # what statements choose doubles now and then
                    db.query(statement(own))
                    if number % 5 == 2:  # others write while queries come and go
                        db.query(f"CREATE OR REPLACE CONTINUOUS QUERY own{seed} AS {QUERIES[seed % len(QUERIES)]}")
                    if number % 5 == 4:
                        db.query(f"DROP CONTINUOUS QUERY IF EXISTS own{seed}")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(db, seed)) for seed, db in enumerate((first, second, first))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        check(first, queries, stored)
        second.query("BEGIN")
        second.query(statement(draw))
        with suppress(StorageError):  # the other one's transaction is open
            first.query("CREATE (:A {i: 1})-[:R]->(:B)")
        second.query("COMMIT")
        check(second, queries, stored)


def test_dropping_the_graph_and_vacuum(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    with opened(tmp_path / "a.duckdb") as db:
        queries, stored = begin(db, draw, 8)
        db.query("MATCH (n) DETACH DELETE n")
        check(db, queries, stored)
        assert db.query("VACUUM").message != "reclaimed 0"
        check(db, queries, stored)
        for _ in range(6):
            db.query(statement(draw))
        check(db, queries, stored)
        db.query("MATCH (n) WHERE n.i > 3 DETACH DELETE n")
        db.query("VACUUM")
        db.query("CREATE (:A {i: 1, k: 2})-[:R]->(:B {i: 2, k: 2})")
        check(db, queries, stored)


def test_a_failing_commit_is_rolled_back_whole() -> None:
    with opened(None) as db:
        db.query("CREATE (:A {i: 1})-[:R]->(:A {i: 2})")
        db.query("CREATE CONTINUOUS QUERY good AS MATCH (a)-[:R]->(b) RETURN b.i AS i")
        db.query("CREATE CONTINUOUS QUERY bad AS MATCH (a)-[:R]->(b) RETURN 1 / b.i AS x")
        before = bag(db, "FROM good_changes")
        with pytest.raises(GraphDBError, match="'bad'"):
            db.query("CREATE (:A {i: 3})-[:R]->(:A {i: 0})")
        assert bag(db, "FROM good_changes") == before
        db.query("CREATE (:A {i: 3})-[:R]->(:A {i: 5})")
        assert sorted(db.sql("FROM good").fetchall()) == [(2,), (5,)]
        assert db.sql("FROM good_changes").fetchall() == [(1, 1, 5)]


_COMPUTED = (
    "MATCH (a:A)-[:R]->(b) RETURN a.i AS i, [a.x, b.x, 10 / a.d] AS l",
    "MATCH (a:A) RETURN a.d % 2 AS d, min(a.x) AS m, sum(10 / a.d) AS s",
)
"""Queries whose values SQL asks Python for, where they are of several types, and which some values make fail."""


def test_batches_that_fail_leave_nothing_behind(tmp_path: Path) -> None:
    """What Python computes of the graph before and after a batch goes on after failures, and in a file opened again."""
    draw, path, failed = np.random.default_rng(2), tmp_path / "a.duckdb", list[str]()
    queries = {f"q{number}": text for number, text in enumerate(_COMPUTED)}
    db = opened(path)
    db.query("UNWIND range(0, 3) AS i CREATE (:A {i: i, x: i + 1, d: i % 3 + 1})")
    db.query("MATCH (a:A), (b:A) WHERE (a.i + b.i) % 3 = 0 CREATE (a)-[:R]->(b)")
    db.query("MATCH (a:A {i: 3}) SET a.x = duration('P1D')")
    iris = [node.iri for (node,) in db.query("MATCH (a:A) RETURN a").fetchall()]
    stored = created(db, queries)
    values = ["7", "2.5", "'x'", "duration('P2D')", "[1, 'a']", "null"]
    for number in range(6):
        if number % 4 == 0:
            db.close()
            db = opened(path)
        texts = [
            f"MATCH (a:A {{i: {draw.integers(4)}}}) SET a.x = {draw.choice(values)}, a.d = {draw.integers(3)}"
            for _ in range(2)
        ]
        try:
            match number % 3:
                case 0:
                    db.query(texts[0])
                case 1:
                    db.query("BEGIN")
                    for text in texts:
                        db.query(text)
                    db.query("COMMIT")
                case 2:
                    db.apply(additions=[(iris[draw.integers(4)], "R", iris[draw.integers(4)])])
        except ExecutionError as error:
            failed.append(str(error))
            with suppress(ExecutionError):  # none is open where a statement by itself failed
                db.query("ROLLBACK")
        check(db, queries, stored)
    assert len(failed) > 1
    assert all("division by zero" in message for message in failed)
    db.close()


def test_definitions_are_read_when_they_may_be_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches go on with the same definitions and number; another handle's queries, and what is rolled back, are seen."""
    reads, original = list[object](), definitions.read

    def read(raw: object) -> list[definitions.Definition]:
        reads.append(raw)
        return original(raw)  # type: ignore[arg-type]

    monkeypatch.setattr(definitions, "read", read)
    path = tmp_path / "a.duckdb"
    with opened(path) as first, opened(path) as second:
        first.query("CREATE CONTINUOUS QUERY pairs AS MATCH (a)-[:R]->(b) RETURN a.i, b.i")
        reads.clear()
        for i in range(10):
            first.query("CREATE (:A {i: $i})-[:R]->(:B {i: $i})", i=i)
        assert len(reads) <= 1
        second.query("CREATE CONTINUOUS QUERY others AS MATCH (a:A) RETURN a.i")
        first.query("BEGIN")
        first.query("CREATE (:A {i: 20})-[:R]->(:B {i: 20})")
        first.query("ROLLBACK")
        first.query("CREATE (:A {i: 30})-[:R]->(:B {i: 30})")
        second.query("CREATE (:A {i: 40})-[:R]->(:B {i: 40})")
        for name in ("pairs", "others"):
            assert first.sql(f"SELECT count(*) FROM {name}").fetchall() == [(12,)]
        batches = [batch for (batch,) in first.sql("SELECT DISTINCT batch FROM _graphdb.batch ORDER BY 1").fetchall()]
        assert batches == list(range(1, 13))
