"""Random statements that write, and what is compared after each: every continuous query with its query, run anew."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import graphdb

Draw = np.random.Generator

VERTICES = 8
"""Values of the property that statements choose vertices by."""

QUERIES = (
    "MATCH (a)-[:R]->(b) RETURN a, b",
    "MATCH (a:A)-[:R]->(b) RETURN a.i AS i, b.k AS k",
    "MATCH (a:A)-[e:R]->(b:B) WHERE a.k < 3 RETURN a, e, b.k AS k",
    "MATCH (a)-[:R]->(b)-[:S]->(c) RETURN a, b.i AS i, c.k AS k",
    "MATCH (a)-[:R]->(b)-[:R]->(c)-[:R]->(a) RETURN a.i AS a, b.i AS b, c.i AS c",
    "MATCH (a)-[x:R|S]-(b) WHERE a.k = b.k RETURN a.i AS i, b.i AS j",
    "MATCH REPEATABLE ELEMENTS (a)-[x]->(b)<-[y]-(c) RETURN a.i AS i, b.i AS j, c.i AS k",
    "MATCH DIFFERENT NODES (a)-[:R]-(b)-[:S]-(c) RETURN a.i AS i, b.i AS j, c.i AS k",
    "MATCH INDUCED (a)-[:R]->(b)-[:R]->(c) RETURN a.i AS i, c.i AS j",
    "MATCH INDUCED (a)-[:R]-(b:A)-[:S]-(c) RETURN a.i AS i, b.k AS k, c.i AS j",
    "MATCH INDUCED (a)-[:R]->(b)<-[:R]-(c) RETURN b.i AS i, count(*) AS n",
    "MATCH (a:A|B)-[:R]->(b:!A) RETURN a.i AS i, b.k AS k ORDER BY k",
    "MATCH (a)-[:R]->(b), (b)-[:S]->(c) MATCH (c)-[:R]->(d) RETURN a.i AS i, d.k AS k",
    "MATCH (a {k: 1})-[:R]->(b) RETURN b, a.i + coalesce(b.i, 0) AS s",
    "MATCH (a)-[:R]->(b) WHERE a <> b AND NOT b:A RETURN a, CASE WHEN b.k > 1 THEN 'x' ELSE b.k END AS v",
    "MATCH (a)-[e:R]->(b) RETURN a.i AS i, e.w AS w, b.i AS j",
    "MATCH (a)-[e:R {w: 1}]->(b) RETURN a.i AS i, b.i AS j",
    "MATCH (a:A)-[:R]->(b) RETURN count(*) AS n, sum(b.i) AS s, min(b.k) AS m",
    "MATCH (a:A)-[:R]->(b) RETURN a.k AS k, count(DISTINCT b) AS n, max(b.i) AS m",
    "MATCH (a)-[:R]->(b) RETURN DISTINCT b.i % 3 AS r",
    "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) RETURN a.i AS i, b.i AS j",
    "MATCH (a) WHERE NOT (a)-[:R]->() RETURN a.i AS i",
    "MATCH (a)-[:R*1..3]->(b:B) RETURN a.i AS i, b.i AS j",
    "MATCH (a)-[:R]->+(b) RETURN count(*) AS n",
    "MATCH (a)-[:R]->(b) RETURN a.i AS i ORDER BY i, b.i LIMIT 3",
    "MATCH (a:A) RETURN a.i AS i, labels(a) AS l",
    "MATCH (a)-[:R]->(b) WITH a, count(b) AS n WHERE n > 1 RETURN a.i AS i, n",
    "MATCH (a:B) RETURN keys(a) AS p UNION MATCH (a:A) RETURN labels(a) AS p",
    "MATCH (a)-[:R]->(b) WHERE EXISTS { (b)-[:S]->() } RETURN a.i AS i, b.i AS j",
    "MATCH (a:New)-[:R]->(b) RETURN a.i AS i, b.fresh AS f",
    "MATCH (a)-[:T]->(b) RETURN a.i AS i, b.i AS j",
)
"""Queries that delta plans maintain, always or sometimes, and queries that they never do."""


def small_graph(db: graphdb.Database, values: str, last: str) -> None:
    """Make twelve vertices of two labels with some properties, and edges, of which ``last`` chooses the last ones."""
    for label in "AB":
        db.query(f"UNWIND range(0, 5) AS x CREATE (:{label} {{i: x, {values}}})")
    db.query("MATCH (a:A {i: 1}) REMOVE a.k, a.s")
    db.query("MATCH (a:A), (b:B) WHERE (a.i + 3 * b.i) % 5 < 2 CREATE (a)-[:R]->(b)")
    db.query(f"MATCH (a:B), (b:A) WHERE {last} CREATE (a)-[:S]->(b), (a)-[:R]->(b)")


def statement(draw: Draw) -> str:
    """Return a statement that writes something."""

    def one(name: str) -> str:
        return f"({name} {{i: {draw.integers(VERTICES)}}})"

    label, key = draw.choice(["A", "B", "New"], p=[0.45, 0.45, 0.1]), draw.choice(["k", "fresh"], p=[0.85, 0.15])
    edge = draw.choice(["R", "S", "T"], p=[0.6, 0.35, 0.05])
    value = draw.choice(["0", "1", "2", "3", "'x'", "2.5", "null"], p=[0.2, 0.25, 0.2, 0.15, 0.08, 0.08, 0.04])
    number = int(draw.integers(VERTICES))
    match int(
        draw.choice(15, p=[0.19, 0.13, 0.09, 0.07, 0.04, 0.07, 0.06, 0.05, 0.05, 0.04, 0.03, 0.05, 0.04, 0.05, 0.04])
    ):
        case 0:
            return f"MATCH {one('a')}, {one('b')} MERGE (a)-[:{edge}]->(b)"
        case 1:
            return f"MATCH {one('a')}-[e:{edge}]->(b) WITH e LIMIT 2 DELETE e"
        case 2:
            return f"MATCH {one('a')} CREATE (a)-[:{edge}]->(:{label} {{i: {number}, k: {value}}})-[:R]->(:B)"
        case 3:
            return f"MATCH {one('a')} SET a.{key} = {value}"
        case 4:
            return f"MATCH {one('a')} REMOVE a.{key}"
        case 5:
            return f"MATCH {one('a')} SET a:{label}"
        case 6:
            return f"MATCH {one('a')} REMOVE a:{label}"
        case 7:
            return f"MATCH {one('a')} DETACH DELETE a"
        case 8:
            return f"UNWIND range(0, 3) AS x CREATE (:{label} {{i: x, k: {value}}})"
        case 9:
            return f"MATCH {one('a')}, {one('b')} CREATE (a)-[:{edge} {{w: {value}}}]->(b)"
        case 10:
            return f"MATCH {one('a')}-[e:{edge}]->() SET e.w = {value}"
        case 11:
            return f"MATCH (a)-[:{edge}]->(b) WITH a, b LIMIT 2 MERGE (b)-[:R]->(a)"
        case 12:
            return f"MATCH (a:{label}) WHERE a.k = {value} SET a.k = 2, a.i = {number}"
        case 13:
            return f"CREATE (x:{label} {{i: {number}}})-[:R]->(y:A {{i: {number + 1}, k: 1}}), (y)-[:S]->(x)"
    return f"MATCH (n:{label}) WITH n LIMIT 2 DETACH DELETE n"


def triples(draw: Draw) -> bytes:
    """Return N-Triples to load: edges between some vertices of their own, with labels and properties."""
    own = "urn:graphdb:"
    lines = []
    for _ in range(int(draw.integers(1, 12))):
        a, b = (f"<http://x/{draw.integers(VERTICES)}>" for _ in range(2))
        match int(draw.integers(5)):
            case 0:
                lines.append(
                    f"{a} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{own}{draw.choice(['A', 'B'])}> ."
                )
            case 1:
                lines.append(f'{a} <{own}k> "{draw.integers(4)}"^^<http://www.w3.org/2001/XMLSchema#integer> .')
            case _:
                lines.append(f"{a} <{own}{draw.choice(['R', 'S'])}> {b} .")
    return ("\n".join(lines) + "\n").encode()


def bag(db: graphdb.Database, sql: str) -> Counter[str]:
    """Return the rows of SQL as a bag."""
    return Counter(map(_text, db.sql(sql).fetchall()))


def _text(row: Any) -> str:
    return repr([_plain(value) for value in row])


def _plain(value: Any) -> Any:
    """Return a value that is printed the same where it is the same: numbers may have other types after a change."""
    match value:
        case bool() | None | str():
            return value
        case dict():
            # A map that is a struct in SQL has a field for every key that some row has.
            return sorted((name, _plain(part)) for name, part in value.items() if part is not None)
        case [alone]:  # a property with several values has lists, while another vertex has several
            return _plain(alone)
        case list() | tuple():
            return [_plain(part) for part in value]
        case _ if isinstance(value, (int, float)) or type(value).__name__ == "Decimal":
            return round(float(value), 9)
    return repr(value)


def check(db: graphdb.Database, queries: dict[str, str], stored: dict[str, Counter[str]]) -> None:
    """Compare every answer with the query run anew, and with the answer it began with and all changes since.

    ``stored`` are the answers at the beginning.
    """
    for name, text in queries.items():
        anew = bag(db, f"SELECT * FROM cypher($$ {text} $$)")
        found = bag(db, f'FROM "{name}"')
        assert found == anew, (text, found - anew, anew - found)
        changed = Counter(stored[name])
        for change, *row in db.sql(f'SELECT change, * EXCLUDE (batch, change) FROM "{name}_changes"').fetchall():
            assert change in (1, -1)
            changed[_text(tuple(row))] += change
        assert +changed == anew, (text, changed - anew, anew - changed)
        assert not -changed, (text, -changed)


def begin(db: graphdb.Database, draw: Draw, count: int) -> tuple[dict[str, str], dict[str, Counter[str]]]:
    """Create some continuous queries; return them, and their answers."""
    for label in "AB":
        db.query(f"UNWIND range(0, {VERTICES - 1}) AS x CREATE (:{label} {{i: x, k: x % 4}})")
    db.query("MATCH (a:A), (b:B) WHERE (a.i + 3 * b.i) % 5 = 0 CREATE (a)-[:R]->(b)")
    db.query("MATCH (a:A), (b:A) WHERE (2 * a.i + b.i) % 7 = 0 CREATE (a)-[:S]->(b)")
    chosen = draw.choice(len(QUERIES), count, replace=False).tolist()
    queries = {f"q{number}": QUERIES[number] for number in chosen}
    return queries, created(db, queries)


def create(db: graphdb.Database, queries: Mapping[str, str]) -> None:
    """Create continuous queries by their names."""
    for name, text in queries.items():
        db.query(f"CREATE CONTINUOUS QUERY {name} AS {text}")


def created(db: graphdb.Database, queries: Mapping[str, str]) -> dict[str, Counter[str]]:
    """Create continuous queries; return their answers."""
    create(db, queries)
    return {name: bag(db, f"FROM {name}") for name in queries}


def check_history(
    file: Path,
    draw: Draw,
    begun: Callable[[graphdb.Database], dict[str, str]],
    write: Callable[[Draw], str],
    loads: float = 0.1,
) -> None:
    """Compare all answers after each of eight changes: transactions, reopenings, a share of loads, and statements.

    ``begun`` fills a new file, creates continuous queries, and returns them; ``write`` draws statements.
    """
    db = opened(file)
    queries = begun(db)
    stored = {name: bag(db, f'FROM "{name}"') for name in queries}
    for _ in range(8):
        kind = draw.random()
        if kind < 0.2:
            db.query("BEGIN")
            for _ in range(3):
                db.query(write(draw))
            db.query("ROLLBACK" if draw.random() < 0.4 else "COMMIT")
        elif kind < 0.3:
            db.close()
            db = opened(file)
        elif kind < 0.3 + loads:
            load(db, draw)
        else:
            db.query(write(draw))
        check(db, queries, stored)
    db.close()


def load(db: graphdb.Database, draw: Draw) -> None:
    """Load a few triples."""
    db.load(io.BytesIO(triples(draw)), format="ntriples")


def strategies(db: graphdb.Database) -> Counter[str]:
    """Return how many batches were maintained by delta plans, and by comparison."""
    found: Counter[str] = Counter()
    for standing in db._statements().live.maintenance._standing.values():
        found.update(took.strategy.partition(":")[0] for took in standing.took)
    return found


def opened(path: Path | None) -> graphdb.Database:
    """Open a database for a test."""
    return graphdb.connect(path or ":memory:", device="cpu", threads=1)
