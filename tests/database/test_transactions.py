"""Transactions and interrupts: whatever stops a statement, all of it is written or nothing, memory agrees with the file,
and the next statement runs."""

from __future__ import annotations

import io
import os
import pathlib
import sys
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import ExecutionError, GraphDBError, QueryTimeout, StorageError
from tests.fuzz import scaled

TRACED = (
    "graphdb/common/duckdb/transactions.py",
    "graphdb/relational/session/state.py",
    "graphdb/common/duckdb/open_files.py",
    "graphdb/common/duckdb/connection.py",
)
TRACED += ("storage/catalog.py", "storage/loaders/load.py", "storage/loaders/loading.py", "writing/run.py")
"""Files in which an interrupt comes at every line: those that begin, commit and roll back."""


def test_the_first_rollback_ends_a_failed_transaction() -> None:
    """Its text is read while DuckDB takes away none of the names that earlier queries' rows had."""
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND [1, 2] AS i CREATE (:A {v: i})")
        db.query("BEGIN")
        db.query("COMMIT")
        assert db.query("MATCH (a:A) WITH a.v AS v, count(*) AS n WHERE v > 1 RETURN v, n").fetchall() == [(2, 1)]
        db.query("BEGIN")
        with pytest.raises(ExecutionError, match="division by zero"):
            db.query("MATCH (a:A) RETURN 1 / (a.v - a.v)")
        db.query("ROLLBACK")
        assert db.query("MATCH (a:A) RETURN count(*)").scalar() == 2


class _Interrupting:
    """Raises KeyboardInterrupt at the n-th line that the main thread runs in the files above, as Ctrl-C may."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.passed = 0
        self.place: str | None = None

    def __enter__(self) -> _Interrupting:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: Any, event: str, argument: object) -> Any:
        return self._line if frame.f_code.co_filename.endswith(TRACED) else None

    def _line(self, frame: Any, event: str, argument: object) -> Any:
        if event == "line" and self.place is None:
            self.passed += 1
            if self.passed > self._left:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self._line


def contents(db: graphdb.Database) -> list[tuple[Any, ...]]:
    """What the engine says of the graph, of which it may remember much, and what the file says."""
    by_engine = db.query(
        "MATCH (n:P) RETURN n.k AS k, n.v AS v, size([(n)-[:R]->(m) | m.k]) AS d ORDER BY k, v, d"
    ).fetchall()
    vertices = db.query("MATCH (n:P) RETURN count(*)").scalar()
    in_file = db.sql(
        "SELECT count(*) FROM (SELECT DISTINCT subject FROM triples WHERE predicate LIKE '%#type' AND object LIKE '%P')"
    ).scalar()
    assert vertices == in_file == len(by_engine)
    return by_engine


STATEMENTS: dict[str, Callable[[graphdb.Database, pathlib.Path], object]] = {
    "a row": lambda db, _: db.query("CREATE (:P {k: 9, v: 'new'})"),
    "sets": lambda db, _: db.query("UNWIND range(10, 200) AS i CREATE (:P {k: i, v: 'many'})"),
    "a change": lambda db, _: db.query("MATCH (n:P {k: 2}) SET n.v = 'changed'"),
    "deleting": lambda db, _: db.query("MATCH (n:P {k: 1}) DETACH DELETE n"),
    "a prefix": lambda db, _: db.query("PREFIX e: <http://e/>"),
    "a load": lambda db, folder: db.load(folder / "more.nt"),
    "a transaction": lambda db, _: (db.sql("BEGIN"), db.query("CREATE (:P {k: 9, v: 'new'})"), db.sql("COMMIT")),
    "rolled back": lambda db, _: (db.sql("BEGIN"), db.query("CREATE (:P {k: 9, v: 'new'})"), db.sql("ROLLBACK")),
}


def small(path: pathlib.Path | str) -> graphdb.Database:
    db = graphdb.connect(path, threads=1)
    db.query("CREATE (a:P {k: 1, v: 'one'})-[:R]->(b:P {k: 2, v: 'two'})")
    return db


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_interrupt_at_any_line(name: str, tmp_path: pathlib.Path) -> None:
    """At every line with GRAPHDB_FUZZ=100, by default at some of them: what was under way is undone, or was done."""
    (tmp_path / "more.nt").write_text(
        '<e:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:graphdb:P> .\n<e:x> <urn:graphdb:k> "9" .\n'
    )
    run = STATEMENTS[name]
    path = tmp_path / "a.duckdb"
    db = small(path)
    before = contents(db)
    with _Interrupting(1 << 60) as counting:
        run(db, tmp_path)
    lines = counting.passed
    after = contents(db)
    assert lines > 20
    db.query("MATCH (n) DETACH DELETE n")
    db.query("CREATE (a:P {k: 1, v: 'one'})-[:R]->(b:P {k: 2, v: 'two'})")
    for at in range(0, lines, max(1, lines // (scaled(4)))):
        with _Interrupting(at) as interrupting, suppress(KeyboardInterrupt):
            run(db, tmp_path)
        if db._state.transactions.by_user and not db._state.connection.has_leftovers():
            db.sql("ROLLBACK")
        with suppress(ExecutionError):  # it was ended
            db.sql("ROLLBACK")
        assert contents(db) in (before, after), interrupting.place
        db.query("MATCH (n:P) DETACH DELETE n")
        db.query("CREATE (a:P {k: 1, v: 'one'})-[:R]->(b:P {k: 2, v: 'two'})")
        assert contents(db) == before, interrupting.place
    db.close()
    with graphdb.connect(path, threads=1) as db:
        assert db.unfinished is None
        assert contents(db) == before


# --- histories against a model -----------------------------------------------------------------------------------

Model = dict[int, int]
"""The property ``v`` of each vertex by its property ``k``."""


class _History:
    """Random statements, inside transactions of the user's and outside, that succeed, fail, or are interrupted."""

    def __init__(self, db: graphdb.Database, random: Random) -> None:
        self.db, self.random = db, random
        self.now: Model = {}
        self.committed: Model | None = None
        """What a ROLLBACK returns to; None outside of a transaction."""
        self.failed = False

    def step(self) -> None:
        kind = self.random.choice(self.KINDS)
        if self.failed and kind not in (_History.end, _History.check):
            if kind not in self.PLAIN:
                return
            with pytest.raises(ExecutionError, match="the transaction has failed"):
                kind(self)
            return
        kind(self)

    def begin(self) -> None:
        if self.committed is not None:
            if self.failed:
                self.db.sql("BEGIN")
            with pytest.raises(ExecutionError, match="open already"):
                self.db.sql("BEGIN")
            return
        self.db.sql("/* a comment */ BEGIN")
        self.committed = dict(self.now)

    def end(self) -> None:
        commit = self.random.random() < 0.5
        if self.committed is None:
            with pytest.raises(ExecutionError, match="no transaction is open"):
                self.db.query("COMMIT" if commit else "ROLLBACK")
            return
        if commit and self.failed:
            with pytest.raises(ExecutionError, match="the transaction has failed"):
                self.db.sql("COMMIT")
            return
        self.db.sql(self.random.choice(["COMMIT", "END"] if commit else ["ROLLBACK", "ABORT", "-- no\nROLLBACK"]))
        if not commit:
            self.now = self.committed
        self.committed, self.failed = None, False

    def _failing(self, run: Callable[[], object], error: type[BaseException], *, fails: bool) -> None:
        with pytest.raises(error):
            run()
        if fails and self.committed is not None:
            self.failed = True

    def create(self) -> None:
        k, v = self.random.randrange(1 << 40), self.random.randrange(5)
        self.db.query("CREATE (:P {k: $k, v: $v})", k=k, v=v)
        self.now[k] = v

    def create_many(self) -> None:
        first, count = self.random.randrange(1 << 40), self.random.choice([3, 90])
        self.db.query("UNWIND range($first, $last) AS k CREATE (:P {k: k, v: 7})", first=first, last=first + count - 1)
        self.now.update(dict.fromkeys(range(first, first + count), 7))

    def change(self) -> None:
        self.db.query("MATCH (n:P) WHERE n.v < 3 SET n.v = n.v + 10")
        self.now = {k: v + 10 if v < 3 else v for k, v in self.now.items()}

    def delete(self) -> None:
        v = self.random.choice([0, 1, 7, 11])
        self.db.query("MATCH (n:P {v: $v}) DETACH DELETE n", v=v)
        self.now = {k: there for k, there in self.now.items() if there != v}

    def fail_writing(self) -> None:
        texts = [
            "CREATE (n:P {k: -1, v: 0}) WITH n SET n.v = 1 / 0",
            "CREATE (:P {k: -1, v: 0})-[:R]->(b) WITH b DELETE b",
            "UNWIND range(1, 100) AS k CREATE (n:P {k: -k}) SET n.v = 1 / (k - 50)",
        ]
        text = self.random.choice(texts)
        self._failing(lambda: self.db.query(text), GraphDBError, fails=True)

    def fail_reading(self) -> None:
        texts = [
            "SELECT 1/0::INTEGER, error('x')",
            "CREATE TABLE t AS MATCH (n:P) RETURN error",
            "SELECT * FROM nothing",
        ]
        texts += ["SELECT * FROM cypher($$ UNWIND [1, 0] AS x RETURN 1 / x AS y $$)"]
        text = self.random.choice(texts)
        with pytest.raises(GraphDBError):
            self.db.query(text)
        # DuckDB says whether the transaction survives it; nothing else may be true afterwards.
        self.failed = self.db._state.transactions.failed

    def mistake(self) -> None:
        """What is wrong with a statement before it runs leaves the transaction as it was."""
        texts = ["MATCH (n:P RETURN n", "MATCH (n) RETURN m", "SELECT * FROM cypher($$ CREATE (:P {k: -5}) $$)"]
        text = self.random.choice(texts)
        self._failing(lambda: self.db.query(text), GraphDBError, fails=False)
        assert not self.db._state.transactions.failed

    def run_out_of_time(self) -> None:
        with pytest.raises(QueryTimeout):
            self.db.query("UNWIND range(1, 3000000) AS i CREATE (:P {k: -i, v: 0})", timeout=0.02)
        self.failed = self.db._state.transactions.failed

    def interrupt(self) -> None:
        before, at = dict(self.now), self.random.randrange(300)
        with _Interrupting(at) as interrupting, suppress(KeyboardInterrupt):
            self.create_many()
        if interrupting.place is None:
            return
        outside = self.committed is None
        with suppress(ExecutionError):
            self.db.query("MATCH (n:P) RETURN count(*)")  # settles it
        self.failed = self.db._state.transactions.failed
        if not self.failed:
            found = {k for k, _ in self.db.query("MATCH (n:P) RETURN n.k, n.v").fetchall()}
            if found != set(before):  # it was done when it was interrupted
                assert outside or self.committed is not None
                added = found - set(before)
                assert not set(before) - found
                self.now = {**before, **dict.fromkeys(added, 7)}

    def load(self) -> None:
        if self.committed is not None:
            self._failing(lambda: self.db.load(io.BytesIO(b""), "nt"), GraphDBError, fails=False)
            return
        k = self.random.randrange(1 << 40)
        subject, type = f"<e:{k}>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:graphdb:P>"
        integer = "<http://www.w3.org/2001/XMLSchema#integer>"
        lines = f'{subject} {type} .\n{subject} <urn:graphdb:k> "{k}"^^{integer} .\n'
        self.db.load(io.BytesIO((lines + f'{subject} <urn:graphdb:v> "4"^^{integer} .\n').encode()), "nt")
        self.now[k] = 4

    def check(self) -> None:
        if self.failed:
            with pytest.raises(ExecutionError, match="the transaction has failed"):
                self.db.query("MATCH (n:P) RETURN count(*)")
            return
        assert dict(self.db.query("MATCH (n:P) RETURN n.k, n.v").fetchall()) == self.now
        assert self.db.query("MATCH (n:P) RETURN count(*)").scalar() == len(self.now)
        assert self.db.query("MATCH (n) RETURN count(*)").scalar() == len(self.now)

    PLAIN = (begin, create, create_many, change, delete)
    KINDS = (begin, end, begin, end, create, create, create_many, change, delete, check, check)
    KINDS += (fail_writing, fail_reading, mistake, run_out_of_time, interrupt, load)


@pytest.mark.parametrize("seed", range(2))
def test_histories(seed: int, tmp_path: pathlib.Path) -> None:
    random = Random(seed if os.environ.get("CI") else None)
    for number in range(scaled(2)):
        path = tmp_path / f"{number}.duckdb"
        with graphdb.connect(path, threads=1) as db:
            db.query("CREATE (:P {k: 0, v: 0})")
            history = _History(db, random)
            history.now = {0: 0}
            for _ in range(14):
                history.step()
            if not history.failed:
                history.check()
            left = history.now if history.committed is None else history.committed
        with graphdb.connect(path, threads=1) as db:  # what was not committed is gone
            assert dict(db.query("MATCH (n:P) RETURN n.k, n.v").fetchall()) == left
        path.unlink()


def test_a_file_whose_tables_another_connection_has_not_committed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db.duckdb"
    with graphdb.connect(path, device="cpu") as one, graphdb.connect(path, device="cpu") as other:
        one.query("BEGIN")
        one.query("CREATE (:A)")
        for text in ("MATCH (n) RETURN count(*)", "CREATE (:B)"):
            with pytest.raises(StorageError, match="another connection of this process is changing the same data"):
                other.query(text)
        one.query("COMMIT")
        assert other.query("MATCH (n:A) RETURN count(*)").scalar() == 1
