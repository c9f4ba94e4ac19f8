"""Errors of libraries become GraphDBErrors; only Ctrl-C is a KeyboardInterrupt."""

from __future__ import annotations

import asyncio
import io
import os
import pathlib
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import (
    ExecutionError,
    GraphDBError,
    ParameterError,
    ParseError,
    QueryInterrupted,
    QueryTimeout,
)
from tests.fuzz import scaled
from tests.stops import Stopwatch, interrupted

LONE = "\ud800"
NESTED = "[" * 99 + "1" + "]" * 99


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


WRONG: dict[str, Callable[[graphdb.Database], object]] = {
    "a lone surrogate in a string": lambda db: db.query(f"RETURN '{LONE}'").fetchall(),
    "in a parameter": lambda db: db.query("RETURN $x", x=LONE).fetchall(),
    "in a property": lambda db: db.query("CREATE (:P {k: $x})", x=LONE),
    "in a list": lambda db: db.query("CREATE (:P {k: $x})", x=[LONE]),
    "in a list of lists": lambda db: db.query("MATCH (n) SET n.l = $x", x=[[1], [LONE]]),
    "in many properties": lambda db: db.query("UNWIND $x AS y CREATE (:P {k: y})", x=[LONE] * 100),
    "in a key": lambda db: db.query("CREATE (n:P) SET n += $m", m={LONE: 1}),
    "in SQL": lambda db: db.sql(f"SELECT '{LONE}'"),
    "in SQL by query": lambda db: db.query(f"SELECT '{LONE}'"),
    "in a prefix": lambda db: db.query(f"PREFIX e: <http://{LONE}>"),
    "in a path": lambda db: db.load(f"/tmp/{LONE}.nt"),
    "in the path of an export": lambda db: db.export(f"/tmp/{LONE}.nt"),
    "in the path of a database": lambda db: graphdb.connect(f"/tmp/{LONE}.duckdb"),
    "in the name of a table": lambda db: db.query("RETURN 1 AS x").into(LONE),
    "NUL in the name of a table": lambda db: db.query("RETURN 1 AS x").into("t\0x"),
    "NUL in the path of an export": lambda db: db.export("/tmp/\0.nt"),
    "NUL in the path of a database": lambda db: graphdb.connect("/tmp/\0x"),
    "in the folder for what is spilled": lambda db: graphdb.connect(spill=f"/tmp/{LONE}"),
    "a folder that is none": lambda db: db.export("/proc/x.nt"),
    "lists too deep for Arrow": lambda db: db.query(f"RETURN {NESTED} AS x").fetchall(),
    "lists too deep for Arrow, as a table": lambda db: db.query("RETURN $x AS x", x=nested(99)).to_arrow(),
    "lists too deep for Python": lambda db: db.query("RETURN $x AS x", x=nested(5000)).fetchall(),
    "brackets too deep": lambda db: db.query(f"RETURN {'[' * 3000}1{']' * 3000} AS x"),
    "a large integer": lambda db: db.query("RETURN $x", x=10**5000),
    "a large integer in a list": lambda db: db.query("UNWIND $x AS y RETURN y", x=[10**5000]),
    "a large integer as a property": lambda db: db.query("CREATE (:P {k: $x})", x=10**5000),
    "a large literal": lambda db: db.query(f"RETURN {'9' * 5000}"),
    "no number of seconds": lambda db: db.query("RETURN 1", timeout=float("nan")),
    "a text of seconds": lambda db: db.query("RETURN 1", timeout="x"),  # type: ignore[arg-type]
    "seconds that are over": lambda db: db.query("MATCH (n) RETURN n", timeout=0),
    "fewer seconds than none": lambda db: db.query("RETURN 1", timeout=-1),
    "no text": lambda db: db.query(None),  # type: ignore[arg-type]
    "bytes": lambda db: db.sql(b"SELECT 1"),  # type: ignore[arg-type]
    "no text to explain": lambda db: db.explain(5),  # type: ignore[arg-type]
    "no query to watch": lambda db: db.watch(5),  # type: ignore[arg-type]
    "no name of a table": lambda db: db.query("RETURN 1 AS x").into(5),  # type: ignore[arg-type]
    "no name of a procedure": lambda db: db.register_procedure(5, len),  # type: ignore[arg-type]
    "no function": lambda db: db.register_procedure("my.p() :: (x :: INTEGER)", 10**5000),  # type: ignore[arg-type]
    "no name to forget": lambda db: db.unregister_procedure([]),  # type: ignore[arg-type]
    "no format of a load": lambda db: db.load(io.BytesIO(b""), 5),  # type: ignore[arg-type]
    "no format of an export": lambda db: db.export("/tmp/x.nt", 5),  # type: ignore[arg-type]
    "no path of an export": lambda db: db.export(5),  # type: ignore[arg-type]
    "no path of a database": lambda db: graphdb.connect(5),  # type: ignore[arg-type]
    "no rows": lambda db: db.apply([5]),
    "no patch": lambda db: db.apply(patch=5),
    "no number of rows": lambda db: db.query("RETURN 1").fetchmany("x"),  # type: ignore[arg-type]
    "fewer rows than none": lambda db: db.query("RETURN 1").fetchmany(-1),
    "many rows": lambda db: db.query("RETURN 1").fetchmany(10**5000),
    "batches of fewer rows than none": lambda db: db.query("RETURN 1").fetch_batches(-(10**5000)),
    "a picture of no number": lambda db: db.query("MATCH (n) RETURN n").graph("x"),  # type: ignore[arg-type]
    "no sizes": lambda db: db.mine.cliques("abc"),  # type: ignore[arg-type]
    "large seconds": lambda db: db.query("RETURN 1", timeout=-(10**5000)),
    "lists of seconds": lambda db: db.query("RETURN 1", timeout=nested(5000)),  # type: ignore[arg-type]
    "large memory": lambda db: graphdb.connect(memory_limit=10**5000),
    "no memory": lambda db: graphdb.connect(memory_limit=[1]),  # type: ignore[arg-type]
    "large devices": lambda db: graphdb.connect(device=10**5000),  # type: ignore[arg-type]
    "large threads": lambda db: graphdb.connect(threads=10**5000),
    "an interval of SQL's for Polars": lambda db: db.sql("SELECT INTERVAL 1 DAY AS x").to_polars(),
    "an object": lambda db: db.query("RETURN $x", x=object()),
    "a regular expression": lambda db: db.query("RETURN 'a' =~ '('").fetchall(),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_others_are_ours(name: str) -> None:
    with graphdb.connect() as db:
        db.query("CREATE (:Q {k: 1})")
        with pytest.raises(GraphDBError) as found:
            WRONG[name](db)
        str(found.value).encode()  # it can be printed
        assert db.query("MATCH (n:Q) RETURN n.k").fetchall() == [(1,)]
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 1


def test_wrong_settings_are_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    wrong: list[tuple[str, Any]] = [("progress", 3), ("spill", 3)]
    wrong += [("spill", tmp_path / name) for name in ("none/below", "file", "file/below")]
    for setting, value in wrong:
        with pytest.raises(GraphDBError, match=f"^{setting}"):
            graphdb.connect(**{setting: value})
    with graphdb.connect(spill=tmp_path / "made", progress=False) as db:
        with pytest.raises(ParameterError, match=r"^progress"):
            db.progress = "yes"  # type: ignore[assignment]
        with pytest.raises(ParameterError, match=r"^progress"):
            db.load(io.BytesIO(b"<e:a> <e:p> <e:b> .\n"), "nt", progress=3)  # type: ignore[arg-type]
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 0


def test_places_of_lone_surrogates() -> None:
    with graphdb.connect() as db, pytest.raises(ParseError) as found:
        db.sql(f"SELECT 1,\n  '{LONE}'")
    assert (found.value.line, found.value.column) == (2, 4)


def test_lone_surrogates_name_their_parameter() -> None:
    with graphdb.connect() as db:
        db.query("CREATE (:P {k: 'x'})")
        for text, value in {
            "CREATE (:P {k: $x})": LONE,
            "MERGE (:P {k: $x})": LONE,
            "MATCH (n:P) SET n.k = $x": LONE,
            "FOREACH (y IN $x | CREATE (:P {k: y}))": ["a", LONE],
            "UNWIND $x AS y MERGE (:P {k: y.k})": [{"k": "a"}, {"k": LONE}],
            "UNWIND $x AS y CREATE (:P {k: y.k})": [{"k": "a"}] * 99 + [{"k": LONE}],
            "MATCH (n:P) WHERE n.k = $x RETURN n.k": LONE,
            "MATCH (n:P {k: $x}) RETURN n.k": LONE,
            "CREATE (:P {k: $x})  ": ["a", LONE],
            "MATCH (n:P) SET n.l = $x": [1, [LONE]],
        }.items():
            with pytest.raises(ParameterError, match=r"\$x has a lone surrogate") as found:
                db.query(f"{text}; RETURN $other", x=value, other="é")
            assert found.value.column == text.index("$x") + 1
        assert db.query("MATCH (n) RETURN n.k").fetchall() == [("x",)]


def test_columns_of_texts_with_nul() -> None:
    with graphdb.connect() as db:
        db.query("CREATE (:P {k: 'x\0y'}); CREATE CONTINUOUS QUERY q AS MATCH (n:P) RETURN n.k = 'x\0y'")
        db.query("CREATE (:P {k: 'x\0z'}); CREATE TABLE t AS FROM q")
        assert sorted(db.sql("FROM t").fetchall()) == [(False,), (True,)]
        assert db.sql("FROM t").columns == (r"n.k = 'x\u0000y'",)


def test_timeouts_without_end() -> None:
    with graphdb.connect() as db:
        for timeout in (float("inf"), 1e300):
            assert db.query("RETURN 1", timeout=timeout).scalar() == 1
            assert db.sql("SELECT 1", timeout=timeout).scalar() == 1
        for timeout in (-1, -1e300, float("-inf"), float("nan")):
            with pytest.raises(ParameterError, match="timeout must be"):
                db.query("RETURN 1", timeout=timeout)
            with pytest.raises(ParameterError, match="timeout must be"):
                db.sql("SELECT 1", timeout=timeout)


LONG = (
    "MATCH (a:P), (b:P), (c:P), (d:P), (e:P) WHERE a.k + b.k + c.k + d.k + e.k = -1 RETURN a.k",
    "SELECT count(*) FROM range(100000000000) a WHERE hash(a.range) = 1",
    "SELECT a.range FROM range(3000000000) a WHERE hash(a.range) % 1000000007 = 0",
    "UNWIND range(1, 3000000) AS i CREATE (:X {i: i})",
    "UNWIND range(1, 3000) AS i UNWIND range(1, 3000) AS j UNWIND range(1, 300) AS l WITH i + j + l AS s RETURN max(s)",
    "SELECT * FROM cypher($$ MATCH (a:P), (b:P), (c:P), (d:P) WHERE a.k * b.k * c.k = d.k + 0.5 RETURN a.k AS k $$)",
)


@pytest.fixture(scope="module")
def people() -> Any:
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 300) AS k CREATE (:P {k: k})")
        yield db


@pytest.mark.parametrize("text", LONG)
def test_who_stops_a_statement_decides_the_error(people: graphdb.Database, text: str) -> None:
    """At random moments: a timeout, another thread's interrupt, Ctrl-C; within half a second on a quiet machine."""
    random = Random(text if os.environ.get("CI") else None)
    kinds = {"timeout": QueryTimeout, "interrupt": QueryInterrupted, "signal": KeyboardInterrupt}
    for kind in list(kinds) * scaled(1):
        after = random.random() * 0.4 + 0.02
        watch = Stopwatch()
        with pytest.raises(kinds[kind]), interrupted(people, kind, after):
            people.query(text, timeout=after if kind == "timeout" else 60)
        took = watch.seconds() - after
        assert took < 3, (kind, took)
        assert people.query("MATCH (n) RETURN count(*)").scalar() == 300


def test_threads_of_asyncio(tmp_path: pathlib.Path) -> None:
    """As docs/language/transactions.md has it: statements run in threads; a cancelled task interrupts its statement."""

    async def work() -> list[Any]:
        with graphdb.connect(tmp_path / "db.duckdb") as db:
            await asyncio.to_thread(db.query, "UNWIND range(1, 300) AS k CREATE (:P {k: k})")
            counts = [asyncio.to_thread(db.query, "MATCH (n:P) WHERE n.k > $k RETURN count(*)", k=k) for k in range(8)]
            found = [result.scalar() for result in await asyncio.gather(*counts)]
            task = asyncio.create_task(asyncio.to_thread(db.query, LONG[0]))
            while not task.done():  # an interrupt that comes before the statement begins stops nothing
                await asyncio.sleep(0.3)
                db.interrupt()
            with pytest.raises(QueryInterrupted):
                await task
            with pytest.raises(QueryTimeout):
                await asyncio.to_thread(db.query, LONG[1], timeout=0.2)
            return [*found, (await asyncio.to_thread(db.query, "MATCH (n:P) RETURN count(*)")).scalar()]

    assert asyncio.run(work()) == [*range(300, 292, -1), 300]


def test_what_a_progress_function_raises_is_the_callers() -> None:
    class Own(RuntimeError):
        pass

    def fail(*_: object) -> None:
        raise Own("mine")

    with graphdb.connect() as db:
        with pytest.raises(Own):
            db.load(io.BytesIO(b"<e:a> <e:p> <e:b> .\n"), "nt", progress=fail)
        assert issubclass(QueryTimeout, ExecutionError)
        assert issubclass(ParameterError, GraphDBError)
