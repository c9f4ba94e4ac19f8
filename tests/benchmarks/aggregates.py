"""DISTINCT, count(DISTINCT), EXISTS and grouped counts against peers, in one run: warm milliseconds, medians.

    python -m tests.benchmarks.aggregates [--repeat 3] [--limit 20]

The questions are asked of LSQB's social network, each engine's own way; every answer is reduced to one number (the
rows, or the sum of a column), and all engines must give the same.  The cell ``graphdb`` sends a text that it has not
seen, so that no prepared plan helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.benchmarks.datasets import source
from tests.benchmarks.engines import DuckIds, Engine, Graphdb, Ladybug, Oxigraph
from tests.benchmarks.harness import Table, against, main, measure, options, progress, scratch, surroundings, workers

KNOWS, INTEREST = "<http://ldbcouncil.org/lsqb/knows>", "<http://ldbcouncil.org/lsqb/hasInterest>"


@dataclass(frozen=True, slots=True)
class Question:
    """One question in each language; each gives one number."""

    name: str
    cypher: str
    sparql: str
    sql: str


def _grouped(name: str, keys: str, steps: int, number: str = "count(*)") -> Question:
    """Group the walks a - b - c (- t, an interest) by keys, and add the numbers of the ten greatest groups."""
    walk = "(a)-[:knows]-(b)-[:knows]-(c)" + ("-[:hasInterest]->(t)" if steps == 3 else "")
    either = f"({KNOWS}|^{KNOWS})"
    where = f"?a {either} ?b . ?b {either} ?c" + (f" . ?c {INTEREST} ?t" if steps == 3 else "") + " FILTER(?a != ?c)"
    columns = {"a": "k1.s", "b": "k1.o", "c": "k2.o", "t": "i.o"}
    joined = "FROM knows k1 JOIN knows k2 ON k1.o = k2.s AND k1.s <> k2.o"
    joined += " JOIN interest i ON i.s = k2.o" if steps == 3 else ""
    in_sparql = number.replace("count(*)", "COUNT(*)").replace("count(DISTINCT ", "COUNT(DISTINCT ?")
    in_sql = number
    for variable, column in columns.items():
        in_sql = in_sql.replace(f"DISTINCT {variable})", f"DISTINCT {column})")
    if not keys:
        return Question(
            name,
            f"MATCH {walk} WHERE a <> c RETURN {number}",
            f"SELECT ({in_sparql} AS ?n) WHERE {{ {where} }}",
            f"SELECT {in_sql} {joined}",
        )
    return Question(
        name,
        f"MATCH {walk} WHERE a <> c RETURN {keys}, {number} AS n ORDER BY n DESC LIMIT 10",
        f"SELECT (SUM(?n) AS ?all) WHERE {{ SELECT {' '.join('?' + k for k in keys.split(', '))} ({in_sparql} AS ?n) "
        f"WHERE {{ {where} }} GROUP BY {' '.join('?' + k for k in keys.split(', '))} ORDER BY DESC(?n) LIMIT 10 }}",
        f"SELECT sum(n) FROM (SELECT {in_sql} AS n {joined} GROUP BY {', '.join(columns[k] for k in keys.split(', '))} "
        "ORDER BY n DESC LIMIT 10)",
    )


QUESTIONS = [
    _grouped("count(DISTINCT a)", "", 3, "count(DISTINCT a)"),
    _grouped("count(DISTINCT t)", "", 3, "count(DISTINCT t)"),
    _grouped("a, count(*)", "a", 3),
    _grouped("t, count(*)", "t", 3),
    _grouped("b, count(*)", "b", 2),
    _grouped("a, b, count(*)", "a, b", 3),
    _grouped("a, c, count(*)", "a, c", 2),
    _grouped("t, count(DISTINCT c)", "t", 3, "count(DISTINCT c)"),
    Question(
        "EXISTS: people whose friend's friend likes a tag",
        "MATCH (p)-[:knows]-(q) WHERE (p)-[:knows]-()-[:knows]-()-[:hasInterest]->() RETURN count(DISTINCT p)",
        f"SELECT (COUNT(DISTINCT ?p) AS ?n) WHERE {{ ?p ({KNOWS}|^{KNOWS}) ?q FILTER EXISTS {{ ?p ({KNOWS}|^{KNOWS}) ?x . "
        f"?x ({KNOWS}|^{KNOWS}) ?y . ?y {INTEREST} ?t FILTER(?y != ?p) }} }}",
        "SELECT count(DISTINCT s) FROM knows p WHERE EXISTS (SELECT 1 FROM knows k1 JOIN knows k2 ON k1.o = k2.s AND "
        "k1.s <> k2.o JOIN interest i ON i.s = k2.o WHERE k1.s = p.s)",
    ),
]


class OurAnswers(Graphdb):
    """Ours, with a text that it has not seen."""

    asked = 0

    def count(self, query: Any) -> int:
        assert self._database is not None
        self.asked += 1
        found = self._database.query(query.cypher + " " * self.asked).fetchall()
        return int(sum(row[-1] for row in found))


class DuckAnswers(DuckIds):
    """DuckDB over integers, one table for each of the two predicates."""

    def count(self, query: Any) -> int:
        self._connection.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS knows AS SELECT s, o FROM both_ways JOIN term ON id = p WHERE term = '{KNOWS}'"
        )
        self._connection.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS interest AS SELECT s, o FROM triple JOIN term ON id = p WHERE term = '{INTEREST}'"
        )
        return int(self._connection.execute(query.sql).fetchall()[0][0])


class OxigraphAnswers(Oxigraph):
    """pyoxigraph: SPARQL."""

    def count(self, query: Any) -> int:
        assert self._store is not None
        (row,) = self._store.query(query.sparql)  # type: ignore[misc]
        return int(row[0].value)


class LadybugAnswers(Ladybug):
    """Ladybug: our Cypher, with its names for the two edge labels."""

    def count(self, query: Any) -> int:
        knows, interest = f"P{self._ids[KNOWS]}", f"P{self._ids[INTEREST]}"
        text = query.cypher.replace(":knows", f":{knows}").replace(":hasInterest", f":{interest}")
        if "EXISTS" in query.name:
            text = (
                f"MATCH (p:N)-[:{knows}]-(q:N) WHERE EXISTS {{ MATCH (p)-[:{knows}]-(x:N)-[:{knows}]-(y:N)-[:{interest}]->"
                "(t:N) WHERE y.id <> p.id } RETURN count(DISTINCT p)"
            )
        else:
            for name in "abct":
                text = text.replace(f"({name})", f"({name}:N)", 1)
            text = text.replace("a <> c", "a.id <> c.id").replace("count(DISTINCT a:N)", "count(DISTINCT a)")
            head, _, tail = text.partition(" RETURN ")
            text = f"{head} RETURN {tail.replace(':N)', ')')}"
        result, total = self._run(text), 0
        while result.has_next():
            total += int(result.get_next()[-1])
        return total


ENGINES: dict[str, type[Engine]] = {
    "graphdb": OurAnswers,
    "duckdb": DuckAnswers,
    "oxigraph": OxigraphAnswers,
    "ladybug": LadybugAnswers,
}


def run(argv: list[str]) -> list[Table]:
    """Ask all engines all questions."""
    arguments = options(__doc__ or "", [name for name in ENGINES if name != "graphdb"], 3, 20.0).parse_args(argv)
    chosen = {name: make for name, make in ENGINES.items() if name == "graphdb" or name in arguments.peers.split(",")}
    table = Table("lsqb: aggregates, warm ms, median", ["question", *chosen])
    cells: dict[str, list[Any]] = {name: [] for name in chosen}
    with scratch() as folder, workers(chosen) as started:
        for name, worker in started.items():
            progress(f"loading {name}")
            (folder / name).mkdir()
            loaded = worker.load(source("lsqb"), folder / name, 300)
            if loaded.trouble:
                raise SystemExit(f"{name}: {loaded.trouble}")
        for question in QUESTIONS:
            progress(question.name)
            expected = started["graphdb"].count(question, arguments.limit).value
            found = measure(started, question, expected, arguments.repeat, arguments.limit, question.name)
            for name, cell in found.items():
                cells[name].append(cell)
            table.add(question.name, *(found[name].text() for name in chosen))
    table.add("peer / graphdb", "-", *(against(cells["graphdb"], cells[name]) for name in chosen if name != "graphdb"))
    table.notes.append(f"{surroundings('graphdb', 'duckdb', 'pyoxigraph', 'ladybug')}; {arguments.repeat} runs")
    return [table]


if __name__ == "__main__":
    main(run)
