"""Queries of several clauses against peers, in one run: OPTIONAL MATCH, UNWIND, UNION, CASE, lists, subqueries, values.

    python -m tests.benchmarks.clauses [--people 100000] [--repeat 3] [--limit 20] [--only values]

A made social network: people with an age, a name, a day of birth and a time when they were seen, ten acquaintances each,
every second one with a liking.  Each engine is asked its own way, and answers with a table; the sum of its last column
must be the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import (
    CORES,
    Engine,
    Table,
    against,
    main,
    measure,
    options,
    progress,
    scratch,
    surroundings,
    workers,
)


@dataclass(frozen=True, slots=True)
class Question:
    """One question, in openCypher, DuckDB's SQL, and Ladybug's Cypher where that differs."""

    name: str
    cypher: str
    sql: str
    ladybug: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


def questions(people: int) -> list[Question]:
    """Return the questions to a network of so many people."""
    many, some = list(range(10 * people)), list(range(0, people, 10))
    return [
        Question(
            "OPTIONAL MATCH",
            "MATCH (a:Person) OPTIONAL MATCH (a)-[:likes]->(b:Person) RETURN a.id AS a, b.id AS b",
            "SELECT p.id AS a, l.o AS b FROM person p LEFT JOIN likes l ON l.s = p.id",
        ),
        Question(
            "OPTIONAL MATCH … WHERE, count",
            "MATCH (a:Person) OPTIONAL MATCH (a)-[:knows]->(b:Person) WHERE b.age > a.age RETURN a.id AS a, count(b) AS n",
            "SELECT p.id, count(m.o) AS n FROM person p LEFT JOIN (SELECT k.s, k.o FROM knows k JOIN person a ON a.id = k.s "
            "JOIN person b ON b.id = k.o WHERE b.age > a.age) m ON m.s = p.id GROUP BY p.id",
        ),
        Question(
            "UNWIND range",
            f"UNWIND range(1, {10 * people}) AS x WITH x WHERE x % 3 = 0 RETURN sum(x) AS n",
            f"SELECT sum(x)::BIGINT AS n FROM (SELECT unnest(generate_series(1, {10 * people})) AS x) WHERE x % 3 = 0",
            f"UNWIND range(1, {10 * people}) AS x WITH x WHERE x % 3 = 0 RETURN cast(sum(x), 'INT64') AS n",
        ),
        Question(
            "UNWIND $list",
            "UNWIND $many AS x WITH x WHERE x % 3 = 0 RETURN sum(x) AS n",
            "SELECT sum(x)::BIGINT AS n FROM (SELECT unnest($many::BIGINT[]) AS x) WHERE x % 3 = 0",
            "UNWIND $many AS x WITH x WHERE x % 3 = 0 RETURN cast(sum(x), 'INT64') AS n",
            arguments={"many": many},
        ),
        Question(
            "UNWIND $list MATCH (p {id: x})",
            "UNWIND $some AS x MATCH (p:Person {id: x}) RETURN p.name AS name, p.age AS age",
            "SELECT p.name, p.age FROM (SELECT unnest($some::BIGINT[]) AS x) JOIN person p ON p.id = x",
            arguments={"some": some},
        ),
        Question(
            "MATCH … WITH count … MATCH",
            "MATCH (a:Person)-[:knows]->(b:Person) WITH a, count(b) AS n WHERE n > 11 MATCH (a)-[:likes]->(c:Person) "
            "RETURN c.id AS c, n",
            "SELECT l.o AS c, g.n FROM (SELECT s, count(*) AS n FROM knows GROUP BY s HAVING n > 11) g "
            "JOIN likes l ON l.s = g.s",
        ),
        Question(
            "WITH ORDER BY LIMIT … MATCH",
            "MATCH (a:Person)<-[:knows]-(b:Person) WITH a, count(b) AS n ORDER BY n DESC, a.id LIMIT 100 "
            "MATCH (a)-[:knows]->(c:Person)-[:likes]->(d:Person) RETURN a.id AS a, count(d) AS n",
            "SELECT g.o AS a, count(*) AS n FROM (SELECT o, count(*) AS n FROM knows GROUP BY o ORDER BY n DESC, o LIMIT 100) "
            "g JOIN knows k ON k.s = g.o JOIN likes l ON l.s = k.o GROUP BY g.o",
        ),
        Question(
            "UNION",
            "MATCH (:Person)-[:knows]->(b:Person) RETURN b.id AS id UNION MATCH (:Person)-[:likes]->(b:Person) RETURN b.id AS id",
            "SELECT o AS id FROM knows UNION SELECT o AS id FROM likes",
        ),
        Question(
            "UNION ALL",
            "MATCH (a:Person)-[:knows]->(b:Person) RETURN a.age AS x UNION ALL MATCH (a:Person)-[:likes]->(b:Person) RETURN a.age AS x",
            "SELECT p.age AS x FROM knows k JOIN person p ON p.id = k.s UNION ALL "
            "SELECT p.age FROM likes l JOIN person p ON p.id = l.s",
        ),
        Question(
            "CASE",
            "MATCH (a:Person)-[:knows]->(b:Person) RETURN CASE WHEN a.age < b.age THEN 'younger' WHEN a.age > b.age THEN "
            "'older' ELSE 'same' END AS how, count(*) AS n",
            "SELECT CASE WHEN a.age < b.age THEN 'younger' WHEN a.age > b.age THEN 'older' ELSE 'same' END AS how, "
            "count(*) AS n FROM knows k JOIN person a ON a.id = k.s JOIN person b ON b.id = k.o GROUP BY how",
        ),
        Question(
            "lists",
            "MATCH (a:Person)-[:knows]->(b:Person) RETURN sum(size([x IN [a.age, b.age] WHERE x > 30])) AS n",
            "SELECT sum(len(list_filter([a.age, b.age], lambda x: x > 30)))::BIGINT AS n "
            "FROM knows k JOIN person a ON a.id = k.s JOIN person b ON b.id = k.o",
            "MATCH (a:Person)-[:knows]->(b:Person) RETURN cast(sum(size(list_filter([a.age, b.age], x -> x > 30))), 'INT64') AS n",
        ),
        Question(
            "collect … UNWIND",
            "MATCH (a:Person)-[:knows]->(b:Person) WITH a, collect(b) AS l UNWIND l AS b RETURN count(b) AS n",
            "SELECT count(b) AS n FROM (SELECT unnest(l) AS b FROM (SELECT s, list(o) AS l FROM knows GROUP BY s))",
        ),
        Question(
            "EXISTS { … WHERE }",
            "MATCH (a:Person) WHERE EXISTS { MATCH (a)-[:knows]->(b:Person) WHERE b.age > a.age + 50 } RETURN count(*) AS n",
            "SELECT count(*) AS n FROM person a WHERE EXISTS (FROM knows k JOIN person b ON b.id = k.o "
            "WHERE k.s = a.id AND b.age > a.age + 50)",
        ),
        Question(
            "COUNT { … }",
            "MATCH (a:Person) RETURN a.id AS a, COUNT { MATCH (a)-[:knows]->(:Person)-[:likes]->(:Person) } AS n",
            "SELECT a.id AS a, coalesce(m.n, 0) AS n FROM person a LEFT JOIN (SELECT k.s, count(*) AS n FROM knows k "
            "JOIN likes l ON l.s = k.o GROUP BY k.s) m ON m.s = a.id",
        ),
        *whole(some),
        *values(),
    ]


def values() -> list[Question]:
    """Return the questions about dates, durations, maps and lists of several types."""
    between = "date_part('year', age(a.seen, a.born))::BIGINT"
    return [
        Question(
            "values: parts of a date",
            "MATCH (a:Person) RETURN a.born.year AS y, a.born.quarter AS q, count(*) AS n",
            "SELECT year(born) AS y, quarter(born) AS q, count(*) AS n FROM person GROUP BY ALL",
            "MATCH (a:Person) RETURN date_part('year', a.born) AS y, date_part('quarter', a.born) AS q, count(*) AS n",
        ),
        Question(
            "values: a date plus a duration",
            "MATCH (a:Person) WHERE a.born + duration('P18Y') > date('1990-06-01') RETURN count(*) AS n",
            "SELECT count(*) AS n FROM person WHERE born + INTERVAL 18 YEAR > DATE '1990-06-01'",
            "MATCH (a:Person) WHERE a.born + interval('18 years') > date('1990-06-01') RETURN count(*) AS n",
        ),
        Question(
            "values: duration.between, grouped",
            "MATCH (a:Person) RETURN duration.between(a.born, a.seen).years AS y, count(*) AS n",
            f"SELECT {between} AS y, count(*) AS n FROM person a GROUP BY ALL",
            "MATCH (a:Person) RETURN date_part('year', a.seen) - date_part('year', a.born) AS y, count(*) AS n",
        ),
        Question(
            "values: durations, ordered",
            "MATCH (a:Person) RETURN duration({days: a.age, hours: a.age % 24}) AS d, a.age AS n ORDER BY d, n",
            "SELECT to_days(age::INT) + to_hours(age % 24) AS d, age AS n FROM person ORDER BY d, n",
            "MATCH (a:Person) RETURN to_days(a.age) + to_hours(a.age % 24) AS d, a.age AS n ORDER BY d, n",
        ),
        Question(
            "values: maps, collected",
            "MATCH (a:Person)-[:knows]->(b:Person) WITH a, collect({name: b.name, age: b.age}) AS l "
            "RETURN a.id AS a, size(l) AS n",
            "SELECT s AS a, len(l) AS n FROM (SELECT k.s, list({'name': b.name, 'age': b.age}) AS l FROM knows k "
            "JOIN person b ON b.id = k.o GROUP BY k.s)",
            "MATCH (a:Person)-[:knows]->(b:Person) WITH a, collect({name: b.name, age: b.age}) AS l "
            "RETURN a.id AS a, size(l) AS n",
        ),
        Question(
            "values: a map of each person",
            "MATCH (a:Person) RETURN a {.name, .born, .age} AS m, a.id AS n",
            "SELECT {'name': name, 'born': born, 'age': age} AS m, id AS n FROM person",
            "MATCH (a:Person) RETURN {name: a.name, born: a.born, age: a.age} AS m, a.id AS n",
        ),
        Question(
            "values: all properties",
            "MATCH (a:Person) WHERE a.id % 10 = 0 RETURN properties(a) AS m, a.id AS n",
            "SELECT p AS m, id AS n FROM person p WHERE id % 10 = 0",
            "MATCH (a:Person) WHERE a.id % 10 = 0 RETURN properties(a) AS m, a.id AS n",
        ),
        Question(
            "values: a list of several types",
            "MATCH (a:Person) WITH [a.age, a.age > 40, a.born.year] AS l RETURN l, count(*) AS n",
            "SELECT l, count(*) AS n FROM (SELECT row(age, age > 40, year(born)) AS l FROM person) GROUP BY l",
            "MATCH (a:Person) WITH {a: a.age, b: a.age > 40, c: date_part('year', a.born)} AS l RETURN l, count(*) AS n",
        ),
        Question(
            "values: reduce",
            "MATCH (a:Person)-[:knows]->(b:Person) WITH a, collect(b.age) AS l "
            "RETURN reduce(t = 0, x IN l | t + x) AS n",
            "SELECT list_reduce(l, lambda t, x: t + x, 0::BIGINT) AS n FROM (SELECT k.s, list(b.age) AS l FROM knows k "
            "JOIN person b ON b.id = k.o GROUP BY k.s)",
            "MATCH (a:Person)-[:knows]->(b:Person) WITH a, collect(b.age) AS l RETURN cast(list_sum(l), 'INT64') AS n",
        ),
        Question(
            "values: percentile, deviation",
            "MATCH (a:Person)-[:knows]->(b:Person) RETURN a.age AS a, stDev(b.age) AS s, percentileDisc(b.age, 0.9) AS n",
            "SELECT a.age, stddev_samp(b.age) AS s, quantile_disc(b.age, 0.9) AS n FROM knows k JOIN person a ON a.id = k.s "
            "JOIN person b ON b.id = k.o GROUP BY a.age",
            "MATCH (a:Person)-[:knows]->(b:Person) RETURN a.age AS a, cast(max(b.age), 'INT64') AS n",
        ),
    ]


def whole(some: list[int]) -> list[Question]:
    """Return the questions with whole queries as subqueries, and with paths beside other clauses."""
    return [
        Question(
            "EXISTS { … WITH count … }",
            "MATCH (a:Person) WHERE EXISTS { MATCH (a)-[:knows]->(b:Person) WITH count(b) AS n WHERE n > 11 RETURN n } "
            "RETURN count(*) AS n",
            "SELECT count(*) AS n FROM (SELECT s FROM knows GROUP BY s HAVING count(*) > 11)",
        ),
        Question(
            "COLLECT { … ORDER BY … LIMIT 2 }",
            "MATCH (a:Person) RETURN a.id AS a, size(COLLECT { MATCH (a)-[:knows]->(b:Person) WHERE b.age > a.age "
            "RETURN b.id ORDER BY b.age DESC, b.id LIMIT 2 }) AS n",
            "SELECT p.id AS a, coalesce(m.n, 0) AS n FROM person p LEFT JOIN (SELECT s, len(list(o ORDER BY i)) AS n FROM "
            "(SELECT k.s, k.o, row_number() OVER (PARTITION BY k.s ORDER BY b.age DESC, b.id) AS i FROM knows k "
            "JOIN person a ON a.id = k.s JOIN person b ON b.id = k.o WHERE b.age > a.age) WHERE i <= 2 GROUP BY s) m ON m.s = p.id",
        ),
        Question(
            "a.seen.hour, a.born.dayOfWeek",
            "MATCH (a:Person) RETURN a.seen.hour AS h, a.born.dayOfWeek AS d, count(*) AS n",
            "SELECT hour(seen) AS h, isodow(born) AS d, count(*) AS n FROM person GROUP BY ALL",
            "MATCH (a:Person) RETURN date_part('hour', a.seen) AS h, date_part('dow', a.born) AS d, count(*) AS n",
        ),
        Question(
            "(a), (b) WHERE a.born = b.born",
            "MATCH (a:Person), (b:Person) WHERE a.born = b.born AND a.age = b.age AND a.id < b.id RETURN count(*) AS n",
            "SELECT count(*) AS n FROM person a JOIN person b ON a.born = b.born AND a.age = b.age AND a.id < b.id",
        ),
        Question(
            "UNWIND [a.age, a.id * 0.5], sum",
            "MATCH (a:Person) UNWIND [a.age, a.id * 0.5] AS x RETURN a.age % 10 AS k, sum(x) AS n",
            "SELECT k, sum(x) AS n FROM (SELECT age % 10 AS k, unnest([age, id * 0.5::DOUBLE]) AS x FROM person) GROUP BY k",
        ),
        Question(
            "UNWIND range(1, a.age)",
            "MATCH (a:Person) WHERE a.id % 10 = 0 UNWIND range(1, a.age) AS x RETURN a.id AS a, x AS n",
            "SELECT id AS a, unnest(range(1, age + 1)) AS n FROM person WHERE id % 10 = 0",
        ),
        Question(
            "min(a.name), count(DISTINCT […, …])",
            "MATCH (a:Person) RETURN a.age AS a, min(a.name) AS x, max(a.name) AS y, count(DISTINCT [a.born, a.id % 2]) AS n",
            "SELECT age, min(name) AS x, max(name) AS y, count(DISTINCT (born, id % 2)) AS n FROM person GROUP BY age",
        ),
        Question(
            "COUNT { … UNION … }",
            "MATCH (a:Person) RETURN a.id AS a, COUNT { MATCH (a)-[:knows]->(b:Person) RETURN b UNION "
            "MATCH (a)-[:likes]->(b:Person) RETURN b } AS n",
            "SELECT a.id AS a, coalesce(m.n, 0) AS n FROM person a LEFT JOIN (SELECT s, count(*) AS n FROM "
            "(SELECT s, o FROM knows UNION SELECT s, o FROM likes) GROUP BY s) m ON m.s = a.id",
        ),
        Question(
            "WITH … MATCH (a)-[*]->(b), count(DISTINCT b)",
            "MATCH (a:Person) WITH a WHERE a.id < 1000 MATCH (a)-[:likes*]->(b:Person) RETURN a.id AS a, count(DISTINCT b) AS n",
            "WITH RECURSIVE r(a, o) AS (SELECT s, o FROM likes WHERE s < 1000 UNION SELECT r.a, l.o FROM r JOIN likes l "
            "ON l.s = r.o) SELECT a, count(*) AS n FROM r GROUP BY a",
            "MATCH (a:Person)-[:likes*1..30]->(b:Person) WHERE a.id < 1000 RETURN a.id AS a, count(DISTINCT b) AS n",
        ),
        Question(
            "UNWIND … EXISTS { (a)-[*]->(b) }",
            "UNWIND $some[..1000] AS x MATCH (a:Person {id: x}) RETURN x, CASE WHEN EXISTS { (a)-[:likes*]->(:Person {id: 1}) } "
            "THEN 1 ELSE 0 END AS n",
            "WITH RECURSIVE r(o) AS (SELECT 1 UNION SELECT l.s FROM r JOIN likes l ON l.o = r.o), q(o) AS "
            "(SELECT l.s FROM likes l JOIN r ON r.o = l.o) "
            "SELECT x, CASE WHEN x IN (FROM q) THEN 1 ELSE 0 END AS n FROM (SELECT unnest($some[:1000]::BIGINT[]) AS x)",
            arguments={"some": some},
        ),
    ]


# --- the network, and who is asked -----------------------------------------------------------------------------


def make(folder: Path, people: int) -> Path:
    """Write people, acquaintances and likings as Parquet tables."""
    import duckdb

    with duckdb.connect() as sql:
        sql.execute("SELECT setseed(0.5)")
        sql.execute(
            "CREATE TABLE person AS SELECT i AS id, (hash(i) % 80)::BIGINT AS age, 'person ' || i AS name, "
            "DATE '1940-01-01' + (hash(i, 3) % 25000)::INT AS born, "
            "TIMESTAMP '2020-01-01' + to_minutes((hash(i, 4) % 1000000)::BIGINT) AS seen "
            f"FROM range({people}) t(i)"
        )
        for table, edges, salt in (("knows", 10 * people, 1), ("likes", people // 2, 2)):
            sql.execute(
                f"CREATE TABLE {table} AS SELECT DISTINCT (hash(i, {salt}) % {people})::BIGINT AS s, "
                f"(hash(i, {salt + 7}) % {people})::BIGINT AS o FROM range({edges}) t(i)"
            )
        for table in ("person", "knows", "likes"):
            sql.execute(f"COPY {table} TO '{folder / table}.parquet'")
    return folder


class Ours:
    """Ours, on disk."""

    def __init__(self) -> None:
        import graphdb

        self._connect = graphdb.connect
        self._database: graphdb.Database | None = None

    def load(self, source: Path, folder: Path) -> int:
        import duckdb

        self.open(folder)
        assert self._database is not None
        person = duckdb.sql(f"SELECT id AS \":ID\", *, 'Person' AS \":LABEL\" FROM '{source}/person.parquet'")
        tables = [person.to_arrow_table()]
        for name in ("knows", "likes"):
            edges = duckdb.sql(
                f'SELECT s AS ":START_ID", o AS ":END_ID", \'{name}\' AS ":TYPE" FROM \'{source}/{name}.parquet\''
            )
            tables.append(edges.to_arrow_table())
        return self._database.load(tables).triples

    def open(self, folder: Path) -> None:
        self._database = self._connect(folder / "graph.duckdb", device="cpu")

    def count(self, query: Question) -> int:
        assert self._database is not None
        table = self._database.query(query.cypher, query.arguments).to_arrow()
        return _last(table)


class Duck:
    """DuckDB, with a table for the people and one for each kind of edge."""

    tables: tuple[str, ...] = ("person", "knows", "likes")

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        for name in self.tables:
            self._connection.execute(f"CREATE TABLE {name} AS FROM '{source / name}.parquet'")
        return 0

    def open(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "tables.duckdb"), config={"threads": CORES})

    def count(self, query: Question) -> int:
        return _last(self._connection.sql(query.sql, params=query.arguments or None).to_arrow_table())


class Ladybug:
    """Ladybug, with the same tables."""

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        self._run("CREATE NODE TABLE Person(id INT64 PRIMARY KEY, age INT64, name STRING, born DATE, seen TIMESTAMP)")
        self._run(f"COPY Person FROM '{source}/person.parquet'")
        for name in ("knows", "likes"):
            self._run(f"CREATE REL TABLE {name}(FROM Person TO Person)")
            self._run(f"COPY {name} FROM '{source}/{name}.parquet'")
        return 0

    def open(self, folder: Path) -> None:
        import ladybug

        self._connection: Any = ladybug.Connection(ladybug.Database(str(folder / "ladybug"), max_num_threads=CORES))

    def count(self, query: Question) -> int:
        return _last(self._run(query.ladybug or query.cypher, query.arguments).get_as_arrow())

    def _run(self, text: str, arguments: dict[str, Any] | None = None) -> Any:
        return self._connection.execute(text, arguments or {})


def _last(table: Any) -> int:
    """The sum of a table's last column."""
    import pyarrow.compute as pc

    return int(pc.sum(table.column(table.num_columns - 1)).as_py() or 0)


ENGINES: dict[str, type[Engine]] = {"graphdb": Ours, "duckdb": Duck, "ladybug": Ladybug}


def run(argv: Sequence[str]) -> list[Table]:
    """Ask all engines all questions."""
    return asked(argv, __doc__ or "", ENGINES, make, questions, "acquaintances: clauses")


def asked(
    argv: Sequence[str],
    doc: str,
    engines: dict[str, type[Engine]],
    make: Callable[[Path, int], Path],
    questions: Callable[[int], list[Question]],
    what: str,
) -> list[Table]:
    """Ask some engines some questions to a network that ``make`` writes."""
    parser = options(doc, [name for name in engines if name != "graphdb"], 3, 20.0)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--only", default="", help="ask the questions whose names have this in them")
    arguments = parser.parse_args(argv)
    chosen = {name: kind for name, kind in engines.items() if name == "graphdb" or name in arguments.peers.split(",")}
    title = f"{arguments.people:,} people, {10 * arguments.people:,} {what}, warm ms, median"
    table = Table(title, ["question", *chosen])
    cells: dict[str, list[Any]] = {name: [] for name in chosen}
    with scratch() as folder, workers(chosen) as started:
        (folder / "source").mkdir()
        source = make(folder / "source", arguments.people)
        for name, worker in started.items():
            progress(f"loading {name}")
            (folder / name).mkdir()
            loaded = worker.load(source, folder / name, 300)
            if loaded.trouble:
                raise SystemExit(f"{name}: {loaded.trouble}")
        for question in questions(arguments.people):
            if arguments.only not in question.name:
                continue
            progress(question.name)
            expected = started["duckdb"].count(question, arguments.limit).value
            found = measure(started, question, expected, arguments.repeat, arguments.limit, question.name)
            for name, cell in found.items():
                cells[name].append(cell)
            table.add(question.name, *(found[name].text() for name in chosen))
    table.add("peer / graphdb", "-", *(against(cells["graphdb"], cells[name]) for name in chosen if name != "graphdb"))
    table.notes.append(f"{surroundings('graphdb', 'duckdb', 'ladybug')}; {arguments.repeat} runs")
    return [table]


if __name__ == "__main__":
    main(run)
