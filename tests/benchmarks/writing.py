"""Statements that write many rows: ours by sets, ours row by row, DuckDB's SQL over tables, and Ladybug.

    python -m tests.benchmarks.writing [--rows 100000] [--repeat 3] [--cpu]
    python -m tests.benchmarks.writing --points 50 [--onto 0 20000 1000000] [--cpu]

The statements run one after the other over one database in memory, each over what those before it left; every engine
starts anew for each repetition.  Cells are medians; with ``--cpu`` of processor seconds, which a busy machine bends less.
``row by row`` is what few rows go through.

With ``--points``, statements that write one vertex or edge instead, so many times each and each in a transaction of its
own, onto graphs of so many vertices.  The tables of the others have a primary key; ours has no index of properties.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.benchmarks.harness import Cell, Table, against, chosen, main, options, progress, surroundings


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, in openCypher, Ladybug's where that differs, and SQL; empty for what one cannot say."""

    name: str
    cypher: str
    sql: str
    ladybug: str | None = None


def statements(rows: int) -> list[Statement]:
    """Return the statements over so many rows."""
    return [
        Statement(
            "CREATE vertices, UNWIND range",
            f"UNWIND range(1, {rows}) AS i CREATE (:T {{i: i, name: 'n' + toString(i)}})",
            f"INSERT INTO t SELECT i, 'n' || i, NULL FROM range(1, {rows + 1}) r(i)",
            f"UNWIND range(1, {rows}) AS i CREATE (:T {{i: i, name: 'n' + CAST(i AS STRING)}})",
        ),
        Statement(
            "CREATE vertices, UNWIND $rows",
            "UNWIND $rows AS r CREATE (:P {name: r.name, age: r.age})",
            "INSERT INTO p SELECT r.name, r.age FROM (SELECT unnest($rows) AS r)",
        ),
        Statement("SET n.i = n.i + 1", "MATCH (n:T) SET n.j = n.i + 1", "UPDATE t SET j = i + 1"),
        Statement("SET n:Label", "MATCH (n:T) SET n:Big", "", ""),
        Statement(
            "CREATE edges with a property",
            "MATCH (a:T) WITH a MATCH (b:P) WHERE b.name = 'p' + toString(a.i - 1) CREATE (a)-[:KNOWS {since: a.i}]->(b)",
            "INSERT INTO knows SELECT t.i, p.name, t.i, NULL FROM t JOIN p ON p.name = 'p' || (t.i - 1)",
            "MATCH (a:T), (b:P) WHERE b.name = 'p' + CAST(a.i - 1 AS STRING) CREATE (a)-[:KNOWS {since: a.i}]->(b)",
        ),
        Statement(
            "SET r.w = r.since * 2", "MATCH ()-[r:KNOWS]->() SET r.w = r.since * 2", "UPDATE knows SET w = since * 2"
        ),
        Statement(
            "REMOVE n.name", "MATCH (n:T) REMOVE n.name", "UPDATE t SET name = NULL", "MATCH (n:T) SET n.name = NULL"
        ),
        Statement(
            "DELETE half of the edges",
            "MATCH (n:T)-[r:KNOWS]->() WHERE n.i % 2 = 0 DELETE r",
            "DELETE FROM knows USING t WHERE t.i = knows.s AND t.i % 2 = 0",
        ),
        Statement(
            "DETACH DELETE",
            "MATCH (n:T) DETACH DELETE n",
            "DELETE FROM knows USING t WHERE t.i = knows.s; DELETE FROM t",
        ),
    ]


class Engine(Protocol):
    """Runs the statements."""

    def run(self, statement: Statement, rows: list[dict[str, Any]]) -> bool:
        """Run one; whether the engine can say it."""


class Ours:
    """By sets."""

    def __init__(self) -> None:
        import graphdb

        self._database = graphdb.connect(device="cpu")
        self._database.query("CREATE (:T)-[:KNOWS {since: 0}]->(:P) ").fetchall()

    def run(self, statement: Statement, rows: list[dict[str, Any]]) -> bool:
        given = {"rows": rows} if "$rows" in statement.cypher else {}
        self.ask(statement.cypher, given)
        return True

    def ask(self, text: str, given: dict[str, Any]) -> None:
        self._database.query(text, given)


class Rows(Ours):
    """Ours, row by row whatever the number of rows."""

    def __init__(self) -> None:
        from graphdb.writing import reading

        reading.LEAST = sys.maxsize
        super().__init__()


class Duck:
    """DuckDB, with a table for each kind of vertex and edge."""

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE t (i BIGINT, name VARCHAR, j BIGINT)")
        self._connection.execute("CREATE TABLE p (name VARCHAR, age BIGINT)")
        self._connection.execute("CREATE TABLE knows (s BIGINT, o VARCHAR, since BIGINT, w BIGINT)")

    def run(self, statement: Statement, rows: list[dict[str, Any]]) -> bool:
        if statement.sql:
            self._connection.execute(statement.sql, {"rows": rows} if "$rows" in statement.sql else None)
        return bool(statement.sql)


class Ladybug:
    """Ladybug, with the same tables."""

    def __init__(self) -> None:
        import ladybug

        self._connection: Any = ladybug.Connection(ladybug.Database(":memory:"))
        for made in (
            "NODE TABLE T(id SERIAL PRIMARY KEY, i INT64, name STRING, j INT64)",
            "NODE TABLE P(id SERIAL PRIMARY KEY, name STRING, age INT64)",
            "REL TABLE KNOWS(FROM T TO P, since INT64, w INT64)",
        ):
            self._connection.execute(f"CREATE {made}")

    def run(self, statement: Statement, rows: list[dict[str, Any]]) -> bool:
        text = statement.cypher if statement.ladybug is None else statement.ladybug
        if text:
            self._connection.execute(text, {"rows": rows} if "$rows" in text else {})
        return bool(text)


POINTS = {
    "CREATE a vertex": ("CREATE (:T {i: $i, name: 'new'})", "INSERT INTO t VALUES ($i, 'new', NULL)"),
    "MERGE a new one": (
        "MERGE (:T {i: $i + 1000000000})",
        "INSERT INTO t VALUES ($i::BIGINT + 1000000000, NULL, NULL) ON CONFLICT DO NOTHING",
    ),
    "MERGE one that is there": ("MERGE (:T {i: -1})", "INSERT INTO t VALUES (-1, NULL, NULL) ON CONFLICT DO NOTHING"),
    "CREATE an edge": (
        "MATCH (a:T {i: -1}), (b:T {i: $i}) CREATE (a)-[:KNOWS]->(b)",
        "INSERT INTO knows VALUES (-1, $i)",
    ),
    "SET a property": ("MATCH (n:T {i: -1}) SET n.j = $i", "UPDATE t SET j = $i WHERE i = -1"),
    "REMOVE a property": ("MATCH (n:T {i: $i}) REMOVE n.name", "UPDATE t SET name = NULL WHERE i = $i"),
    "DETACH DELETE": (
        "MATCH (n:T {i: $i}) DETACH DELETE n",
        "DELETE FROM knows WHERE s = $i OR o = $i; DELETE FROM t WHERE i = $i",
    ),
}
"""Statements for one vertex or edge, in openCypher and SQL."""


class OursByPoint(Ours):
    """One vertex at a time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.ask("CREATE (:T {i: -1})", {})
        if size:
            self.ask(f"UNWIND range(1, {size}) AS i CREATE (:T {{i: i, name: 'n' + toString(i)}})", {})

    def point(self, name: str, number: int) -> None:
        """Run a statement for a number."""
        text = POINTS[name][0]
        self.ask(text, {"i": number} if "$i" in text else {})


class DuckByPoint(Duck):
    """One row at a time."""

    def __init__(self, size: int) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE t (i BIGINT PRIMARY KEY, name VARCHAR, j BIGINT)")
        self._connection.execute("CREATE TABLE knows (s BIGINT, o BIGINT)")
        self._connection.execute(
            "INSERT INTO t SELECT i, 'n' || i, NULL FROM range(-1, $size) r(i)", {"size": size + 1}
        )

    def point(self, name: str, number: int) -> None:
        """Run a statement for a number."""
        for part in POINTS[name][1].split("; "):
            self._connection.execute(part, {"i": number} if "$i" in part else None)


class LadybugByPoint(Ladybug):
    """One vertex at a time."""

    def __init__(self, size: int) -> None:
        import ladybug

        self._connection = ladybug.Connection(ladybug.Database(":memory:"))
        self._connection.execute("CREATE NODE TABLE T(i INT64, name STRING, j INT64, PRIMARY KEY(i))")
        self._connection.execute("CREATE REL TABLE KNOWS(FROM T TO T)")
        self._connection.execute("CREATE (:T {i: -1})")
        if size:
            self._connection.execute(
                f"UNWIND range(1, {size}) AS i CREATE (:T {{i: i, name: 'n' + CAST(i AS STRING)}})"
            )

    def point(self, name: str, number: int) -> None:
        """Run a statement for a number."""
        text = POINTS[name][0].replace("REMOVE n.name", "SET n.name = NULL")
        self._connection.execute(text, {"i": number} if "$i" in text else {})


ENGINES: dict[str, Callable[[], Any]] = {
    "graphdb": Ours,
    "row by row": Rows,
    "duckdb": Duck,
    "ladybug": Ladybug,
}


def run(argv: Sequence[str]) -> list[Table]:
    """Run all statements on all engines."""
    parser = options(__doc__ or "", [name for name in ENGINES if name != "graphdb"], 3, 60.0)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--cpu", action="store_true", help="processor seconds in place of elapsed ones")
    parser.add_argument("--points", type=int, default=0, help="how often to run statements that write one vertex")
    parser.add_argument("--onto", type=int, nargs="+", default=[0, 20_000, 1_000_000], help="vertices before these")
    asked = parser.parse_args(argv)
    clock = time.process_time if asked.cpu else time.perf_counter
    if asked.points:
        return [points(asked.points, asked.onto, clock, "processor ms" if asked.cpu else "ms")]
    engines = chosen(asked.peers, ENGINES)
    wanted = statements(asked.rows)
    rows = [{"name": f"p{i}", "age": i % 90} for i in range(asked.rows)]
    cells = {name: [Cell() for _ in wanted] for name in engines}
    for _ in range(asked.repeat):
        for name, make in engines.items():
            engine = make()
            for statement, cell in zip(wanted, cells[name], strict=True):
                progress(f"{name}: {statement.name}")
                started = clock()
                if engine.run(statement, rows):
                    cell.seconds.append(clock() - started)
                else:
                    cell.trouble = "-"
    what = "processor ms" if asked.cpu else "ms"
    table = Table(f"writing {asked.rows:,} rows: {what}, median", ["statement", *engines])
    for i, statement in enumerate(wanted):
        table.add(statement.name, *[cells[name][i].text() for name in engines])
    for name in engines:
        if name != "graphdb":
            table.notes.append(f"{name} takes {against(cells['graphdb'], cells[name])} of our time")
    table.notes.append(f"{surroundings('graphdb', 'duckdb', 'ladybug')}; {asked.repeat} runs")
    return [table]


def points(times: int, sizes: Sequence[int], clock: Callable[[], float], what: str) -> Table:
    """Run the statements for single vertices, the engines in turns."""
    first = 2_000_000_000
    made = {"graphdb": OursByPoint, "duckdb": DuckByPoint, "ladybug": LadybugByPoint}
    engines: dict[tuple[str, int], Any] = {}
    for size in sizes:
        for name, make in made.items():
            progress(f"{name}: {size:,} vertices")
            engines[name, size] = make(size)
    table = Table(f"point writes: {what} each, median", ["statement", *(f"{n}, onto {s:,}" for n, s in engines)])
    for statement in POINTS:
        cells = {key: Cell() for key in engines}
        for i in range(-3, times):
            for key, engine in engines.items():
                started = clock()
                engine.point(statement, first + i)
                if i >= 0:  # the first ones find out how
                    cells[key].seconds.append(clock() - started)
        table.add(statement, *[cell.text() for cell in cells.values()])
    table.notes.append(f"{surroundings('graphdb', 'duckdb', 'ladybug')}; {times} times each, in turns")
    return table


if __name__ == "__main__":
    main(run)
