"""Edges with properties, parallel ones among them, against peers in one run: conditions, aggregates, order, rows.

    python -m tests.benchmarks.edges [--people 100000] [--repeat 3] [--limit 20]

A made social network: people with an age and a name, ten acquaintances each, each with a year and a weight; some pairs
are acquainted more than once.  Asked and compared as in :mod:`tests.benchmarks.clauses`.

Of the UNION of integers and floats DuckDB is asked for floats, which is what we hand over as Arrow; as Python's values
our integers stay integers, as those of DuckDB's own UNION type would.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import clauses
from tests.benchmarks.clauses import Question
from tests.benchmarks.harness import Engine, Table, main


def questions(people: int) -> list[Question]:
    """Return the questions to a network of so many people."""
    knows = "MATCH (a:Person)-[r:knows]->(b:Person)"
    joined = "FROM knows k JOIN person a ON a.id = k.s JOIN person b ON b.id = k.o"
    return [
        Question(
            "rows WHERE r.since > …",
            f"{knows} WHERE r.since > 2015 RETURN a.name AS name, r.since AS since",
            f"SELECT a.name, k.since {joined} WHERE k.since > 2015",
        ),
        Question(
            "count WHERE r.since > …",
            f"{knows} WHERE r.since > 2015 RETURN count(*) AS n",
            "SELECT count(*) AS n FROM knows WHERE since > 2015",
        ),
        Question(
            "[{since: …}]-[{since: …}], count",
            "MATCH (a)-[:knows {since: 2001}]->(b)-[:knows {since: 2002}]->(c) RETURN count(*) AS n",
            "SELECT count(*) AS n FROM knows k JOIN knows l ON l.s = k.o WHERE k.since = 2001 AND l.since = 2002",
            "MATCH (a)-[r:knows]->(b)-[t:knows]->(c) WHERE r.since = 2001 AND t.since = 2002 RETURN count(*) AS n",
        ),
        Question(
            "sum(r.since)",
            f"{knows} RETURN sum(r.since) AS n",
            "SELECT sum(since)::BIGINT AS n FROM knows",
            f"{knows} RETURN cast(sum(r.since), 'INT64') AS n",
        ),
        Question(
            "r.since, count(*)",
            f"{knows} RETURN r.since AS since, count(*) AS n",
            "SELECT since, count(*) AS n FROM knows GROUP BY since",
        ),
        Question(
            "a.age, max(r.since)",
            f"{knows} RETURN a.age AS age, max(r.since) AS since",
            "SELECT a.age, max(k.since) AS since FROM knows k JOIN person a ON a.id = k.s GROUP BY a.age",
        ),
        Question(
            "ORDER BY r.weight LIMIT 10",
            f"{knows} RETURN b.name AS name, r.weight AS weight, a.id AS a ORDER BY r.weight DESC LIMIT 10",
            f"SELECT b.name, k.weight, a.id AS a {joined} ORDER BY k.weight DESC LIMIT 10",
        ),
        Question(
            "rows of edges",
            f"{knows} WHERE a.age < 20 RETURN r, r.since AS since",
            f"SELECT {{'type': 'knows', 'start': a.name, 'end': b.name}} AS r, k.since {joined} WHERE a.age < 20",
        ),
        Question(
            "count of parallel edges",
            "MATCH (a)-[r:knows]->(b)<-[t:knows]-(a) RETURN count(*) AS n",
            "SELECT count(*) AS n FROM knows k JOIN knows l ON l.s = k.s AND l.o = k.o WHERE k.number <> l.number",
            "MATCH (a)-[r:knows]->(b)<-[t:knows]-(a) WHERE id(r) <> id(t) RETURN count(*) AS n",
        ),
        Question(
            "two hops, count",
            "MATCH (a)-[:knows]->(b)-[:knows]->(c) RETURN count(*) AS n",
            "SELECT count(*) AS n FROM knows k JOIN knows l ON l.s = k.o WHERE k.number <> l.number",
            "MATCH (a)-[r:knows]->(b)-[t:knows]->(c) WHERE id(r) <> id(t) RETURN count(*) AS n",
        ),
        Question(
            "two hops, r.since < t.since",
            "MATCH (a:Person)-[r:knows]->(b)-[t:knows]->(c) WHERE a.id < 2000 AND r.since < t.since RETURN count(*) AS n",
            "SELECT count(*) AS n FROM knows k JOIN knows l ON l.s = k.o WHERE k.s < 2000 AND k.since < l.since",
        ),
        Question(
            "OPTIONAL MATCH … WHERE r.since",
            "MATCH (a:Person) OPTIONAL MATCH (a)-[r:knows]->(b) WHERE r.since = 2020 RETURN a.id AS a, r.weight AS w, b.id AS b",
            "SELECT a.id AS a, k.weight AS w, k.o AS b FROM person a LEFT JOIN knows k ON k.s = a.id AND k.since = 2020",
        ),
        Question(
            "EXISTS { r.since }",
            "MATCH (a:Person) WHERE EXISTS { (a)-[r:knows]->() WHERE r.since = 2020 } RETURN a.id AS a",
            "SELECT a.id AS a FROM person a WHERE EXISTS (FROM knows k WHERE k.s = a.id AND k.since = 2020)",
        ),
        Question(
            "WITH r ORDER BY r.weight … MATCH",
            "MATCH (a:Person)-[r:knows]->(b:Person) WITH b, r ORDER BY r.weight LIMIT 1000 "
            "MATCH (b)-[t:knows]->(c:Person) RETURN c.id AS c, t.since - r.since AS years",
            "SELECT l.o AS c, l.since - k.since AS years FROM (FROM knows ORDER BY weight LIMIT 1000) k JOIN knows l ON l.s = k.o",
        ),
        Question(
            "one person's edges",
            "MATCH (a:Person {id: 77})-[r:knows]->(b:Person) RETURN b.name AS name, r.since AS since",
            f"SELECT b.name, k.since {joined} WHERE a.id = 77",
        ),
        Question(
            "sum(CASE … THEN float ELSE 0 END)",
            f"{knows} RETURN a.age AS age, sum(CASE WHEN r.since > 2010 THEN r.weight ELSE 0 END) AS n",
            f"SELECT a.age, sum(CASE WHEN k.since > 2010 THEN k.weight ELSE 0 END) AS n {joined} GROUP BY a.age",
        ),
        Question(
            "CASE … b.age - a.age, all rows",
            f"{knows} RETURN CASE WHEN a.age > b.age THEN b.age - a.age ELSE 2 * b.age END AS n",
            f"SELECT CASE WHEN a.age > b.age THEN b.age - a.age ELSE 2 * b.age END AS n {joined}",
        ),
        Question(
            "CALL { … ORDER BY … LIMIT 1 }",
            "MATCH (a:Person) WHERE a.id < 10000 CALL (a) { MATCH (a)-[r:knows]->(b:Person) RETURN b.id AS b, r.since AS y "
            "ORDER BY r.weight DESC LIMIT 1 } RETURN a.id AS a, b, y AS n",
            "SELECT s AS a, o AS b, since AS n FROM knows WHERE s < 10000 "
            "QUALIFY row_number() OVER (PARTITION BY s ORDER BY weight DESC) = 1",
        ),
        *of_paths(),
    ]


def of_paths() -> list[Question]:
    """Return the questions about what is on paths, and about edges of no direction."""
    some = "MATCH p = (a:Person)-[:knows*1..2]->(b:Person) WHERE a.id < 2000"
    two = "FROM knows k JOIN knows l ON l.s = k.o WHERE k.s < 2000 AND k.number <> l.number"
    return [
        Question(
            "reduce over relationships(p)",
            f"{some} RETURN a.id AS a, reduce(s = 0, r IN relationships(p) | s + r.since) AS n",
            f"SELECT s AS a, since AS n FROM knows WHERE s < 2000 UNION ALL SELECT k.s, k.since + l.since {two}",
        ),
        Question(
            "all(r IN relationships(p) WHERE …)",
            f"{some} AND all(r IN relationships(p) WHERE r.since > 2000) RETURN a.id AS a, b.id AS n",
            "SELECT s AS a, o AS n FROM knows WHERE s < 2000 AND since > 2000 "
            f"UNION ALL SELECT k.s, l.o {two} AND k.since > 2000 AND l.since > 2000",
        ),
        Question(
            "size([n IN nodes(p) WHERE …])",
            f"{some} RETURN size([n IN nodes(p) WHERE n.age > 30]) AS n",
            "SELECT (a.age > 30)::INT + (b.age > 30)::INT AS n FROM knows k JOIN person a ON a.id = k.s JOIN person b "
            "ON b.id = k.o WHERE k.s < 2000 UNION ALL SELECT (a.age > 30)::INT + (b.age > 30)::INT + (c.age > 30)::INT "
            "FROM knows k JOIN knows l ON l.s = k.o JOIN person a ON a.id = k.s JOIN person b ON b.id = k.o "
            "JOIN person c ON c.id = l.o WHERE k.s < 2000 AND k.number <> l.number",
        ),
        Question(
            "a {.*, n: count { … }}",
            "MATCH (a:Person) RETURN a {.*, n: count { (a)-[:knows]->() }} AS m, a.id AS n",
            "SELECT {'id': id, 'age': age, 'name': name, 'n': coalesce(n, 0)} AS m, id AS n FROM person LEFT JOIN "
            "(SELECT s, count(*) AS n FROM knows GROUP BY s) k ON k.s = id",
        ),
        Question(
            "()-[r]-(), type(r), count(*)",
            "MATCH ()-[r]-() RETURN type(r) AS t, count(*) AS n",
            "SELECT 'knows' AS t, 2 * count(*) - count(*) FILTER (s = o) AS n FROM knows",
        ),
        Question(
            "UNION ALL of integers and floats",
            "MATCH (a:Person) RETURN a.age AS n UNION ALL MATCH ()-[r:knows]->() WHERE r.since = 2001 RETURN r.weight AS n",
            "SELECT age::DOUBLE AS n FROM person UNION ALL SELECT weight FROM knows WHERE since = 2001",
        ),
    ]


def make(folder: Path, people: int) -> Path:
    """Write people and acquaintances as Parquet tables."""
    import duckdb

    with duckdb.connect() as sql:
        sql.execute(
            "CREATE TABLE person AS SELECT i AS id, (hash(i) % 80)::BIGINT AS age, 'person ' || i AS name "
            f"FROM range({people}) t(i)"
        )
        sql.execute(
            f"CREATE TABLE knows AS SELECT (hash(i % {10 * people - people // 20}, 1) % {people})::BIGINT AS s, "
            f"(hash(i % {10 * people - people // 20}, 8) % {people})::BIGINT AS o, (1990 + hash(i, 3) % 35)::BIGINT AS since, "
            f"i / {10 * people} AS weight, i AS number FROM (SELECT range AS i FROM range({10 * people}))"
        )
        for table in ("person", "knows"):
            sql.execute(f"COPY {table} TO '{folder / table}.parquet'")
    return folder


class Ours(clauses.Ours):
    """Ours, on disk."""

    def load(self, source: Path, folder: Path) -> int:
        import duckdb

        self.open(folder)
        assert self._database is not None
        person = f"SELECT id AS \":ID\", id, age, name, 'Person' AS \":LABEL\" FROM '{source}/person.parquet'"
        knows = (
            'SELECT s AS ":START_ID", o AS ":END_ID", \'knows\' AS ":TYPE", since, weight::DOUBLE AS weight '
            f"FROM '{source}/knows.parquet'"
        )
        return self._database.load([duckdb.sql(sql).to_arrow_table() for sql in (person, knows)]).triples


class Duck(clauses.Duck):
    """DuckDB, with a table for the people and one for their acquaintances."""

    tables = ("person", "knows")


class Ladybug(clauses.Ladybug):
    """Ladybug, with the same tables."""

    def load(self, source: Path, folder: Path) -> int:
        self.open(folder)
        self._run("CREATE NODE TABLE Person(id INT64 PRIMARY KEY, age INT64, name STRING)")
        self._run(f"COPY Person FROM '{source}/person.parquet'")
        self._run("CREATE REL TABLE knows(FROM Person TO Person, since INT64, weight DOUBLE, number INT64)")
        self._run(f"COPY knows FROM '{source}/knows.parquet'")
        return 0


ENGINES: dict[str, type[Engine]] = {"graphdb": Ours, "duckdb": Duck, "ladybug": Ladybug}


def run(argv: Sequence[str]) -> list[Table]:
    """Ask all engines all questions."""
    return clauses.asked(argv, __doc__ or "", ENGINES, make, questions, "acquaintances with properties")


if __name__ == "__main__":
    main(run)
