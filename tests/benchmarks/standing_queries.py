"""Continuous queries of many forms: batches of one edge by delta plans and by comparing.

    python -m tests.benchmarks.standing_queries --vertices 10000 --batches 8

Two databases get the same graph and batches; in one the query is maintained by comparing whole answers, as whatever
delta plans do not maintain is.  Their answers must be the same at the end.  Times are medians of the processor's
milliseconds, those of the same batch without any continuous query among them.

A second table has batches of edges with none, one and ten continuous queries: of one text, and of several.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import graphdb
from tests.benchmarks.harness import Table, main, surroundings

QUERIES = {
    "optional": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) RETURN a.i AS i, b.i AS j",
    "optional, two hops": "MATCH (a:A)-[:R]->(b) OPTIONAL MATCH (b)-[:S]->(c) RETURN a.i AS i, b.i AS j, c.i AS k",
    "optional, counted": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) RETURN a.i AS i, count(b) AS n",
    "vertices": "MATCH (a:A) WHERE a.i > 10 RETURN a.i AS i",
    "parallel": "MATCH (a:A)-[:R]->(b)-[:R]->(c) RETURN a.i AS i, c.i AS j",
    "parallel, properties": "MATCH (a:A)-[e:R]->(b) RETURN a.i AS i, e.w AS w, b.i AS j",
    "first rows": "MATCH (a:A)-[:R]->(b) RETURN a.i AS i, b.i AS j ORDER BY j DESC, i LIMIT 10",
    "first groups": "MATCH (a:A)-[:R]->(b) RETURN b.i AS i, count(*) AS n ORDER BY n DESC, i LIMIT 10",
    "paths": "MATCH (a)-[:T*]->(b:B) RETURN a.i AS i, b.i AS j",
    "paths, counted": "MATCH (a)-[:T*]->(b:B) RETURN b.i AS j, count(a) AS n",
    "paths, optional": "MATCH (a:B) OPTIONAL MATCH (a)<-[:T*]-(b:C) RETURN a.i AS i, b.i AS j",
    "paths, existing": "MATCH (a:B) WHERE EXISTS { (a)<-[:T*]-(:C) } RETURN a.i AS i",
    "paths, more than one": "MATCH (a)-[:U*]->(b:B) RETURN a.i AS i, b.i AS j",
}

TOGETHER = (
    "MATCH (a:A)-[:R]->(b)-[:R]->(c) RETURN a.i AS i, c.i AS j",
    "MATCH (a:A)-[:R]->(b)-[:R]->(c) RETURN a.i AS i, b.i AS j, c.i AS k",
    "MATCH (a:A)-[:R]->(b)-[:S]->(c) RETURN a.i AS i, c.i AS j",
    "MATCH (a:A)-[:R]->(b) WHERE a.i > b.i RETURN a.i AS i, b.i AS j",
    "MATCH (a:A)-[:R]->(b)-[:R]->(c) WHERE a.i < c.i RETURN a.i AS i, c.i AS j",
    "MATCH (a:A)-[:R]->(b) RETURN b.i AS i, count(*) AS n",
    "MATCH (a:A)-[:S]->(b)-[:S]->(c) RETURN a.i AS i, c.i AS j",
    "MATCH (a:A)-[:S]->(b) RETURN b.i AS i, count(*) AS n",
    "MATCH (a:A)-[:R]->(b)-[:R]->(c)-[:R]->(a) RETURN a.i AS i, b.i AS j, c.i AS k",
    "MATCH (a:A)-[:R]->(b)<-[:R]-(c) RETURN a.i AS i, c.i AS j",
)
"""Ten queries: a batch of edges R touches all but two."""
SIZES = {1: 24, 100: 10, 10_000: 3}
"""How many batches there are of how many edges."""


def made(vertices: int) -> graphdb.Database:
    """Return a database of vertices with about three edges each, some of them parallel, and some with a property.

    Edges ``T`` are a binary tree of them; ``U`` are, too, but that every twentieth vertex has two ways up.
    """
    db = graphdb.connect(device="cpu", threads=1)
    db.query(f"UNWIND range(0, {vertices - 1}) AS x CREATE (:A {{i: x}})")
    for label, factor in (("R", 7), ("R", 11), ("S", 13)):
        db.query(f"MATCH (a:A), (b:A) WHERE b.i = (a.i * {factor} + 1) % {vertices} CREATE (a)-[:{label}]->(b)")
    db.query("MATCH (a:A)-[:R]->(b) WHERE a.i % 50 = 0 CREATE (a)-[:R {w: a.i}]->(b)")
    db.query("MATCH (a:A), (b:A) WHERE b.i = a.i / 2 AND a.i > 0 CREATE (a)-[:T]->(b), (a)-[:U]->(b)")
    db.query("MATCH (a:A), (b:A) WHERE b.i = a.i / 3 AND a.i % 20 = 7 CREATE (a)-[:U]->(b)")
    db.query("MATCH (a:A) WHERE a.i < 50 SET a:B")
    db.query("MATCH (a:A) WHERE a.i % 100 = 0 SET a:C")
    return db


def batches(db: graphdb.Database, text: str, vertices: int, count: int) -> float:
    """Write edges one by one, such as a query has, those of trees to new leaves; return the median of milliseconds."""
    draw, times = np.random.default_rng(0), list[float]()
    for number in range(count + 2):
        a, b = draw.integers(vertices, size=2).tolist()
        label = "R {w: 1}" if number % 4 == 0 else "S" if number % 2 else "R"
        statement = f"MATCH (a:A {{i: $a}}), (b:A {{i: $b}}) CREATE (a)-[:{label}]->(b)"
        for tree in "TU":
            if f":{tree}*" in text:
                statement, a = f"MATCH (b:A {{i: $b}}) CREATE (:A {{i: $a}})-[:{tree}]->(b)", vertices + number
        started = time.process_time()
        db.query(statement, a=a, b=b)
        times.append((time.process_time() - started) * 1e3)
    return statistics.median(times[2:])


def together(vertices: int) -> Table:
    """Measure batches of edges with some continuous queries standing, and compare their answers."""
    table = Table("ms of a batch of edges R", ["queries", *(f"{size:,}" for size in SIZES)])
    kinds = {"none": (), "one": TOGETHER[:1], "ten alike": TOGETHER[:1] * 10, "ten": TOGETHER}
    for kind, texts in kinds.items():
        draw, times = np.random.default_rng(0), dict[int, list[float]]()
        with graphdb.connect(device="cpu", threads=1) as db:
            db.apply(_lines(vertices), None)
            for number, text in enumerate(texts):
                db.query(f"CREATE CONTINUOUS QUERY q{number} AS {text}")
            for size, count in SIZES.items():
                for _ in range(count):
                    ends = draw.integers(vertices, size=(size, 2)).tolist()
                    rows = [(f"http://x/{a}", "http://x/R", f"http://x/{b}") for a, b in ends]
                    started = time.process_time()
                    db.apply(rows, None)
                    times.setdefault(size, []).append((time.process_time() - started) * 1e3)
            for number, text in enumerate(texts):
                [(lacks,)] = db.sql(
                    f"SELECT count(*) FROM ((FROM q{number} EXCEPT ALL FROM cypher($$ {text} $$))"
                    f" UNION ALL (FROM cypher($$ {text} $$) EXCEPT ALL FROM q{number}))"
                ).fetchall()
                if lacks:
                    raise SystemExit(f"{text}: the answer is another one")
        table.add(kind, *(f"{statistics.median(own[len(own) // 3 :]):.1f}" for own in times.values()))
    return table


def _lines(vertices: int) -> str:
    """Return vertices ``A`` with three edges each as N-Triples."""
    kind, integer = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2001/XMLSchema#integer"
    lines = []
    for x in range(vertices):
        lines += [f"<http://x/{x}> <{kind}> <http://x/A> .", f'<http://x/{x}> <http://x/i> "{x}"^^<{integer}> .']
        for label, factor in (("R", 7), ("R", 11), ("S", 13)):
            lines.append(f"<http://x/{x}> <http://x/{label}> <http://x/{(x * factor + 1) % vertices}> .")
    return "\n".join(lines) + "\n"


def run(argv: list[str]) -> list[Table]:
    """Measure all queries."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vertices", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=8, help="0: the second table alone")
    parser.add_argument("--only", default="", help="what the names of queries begin with")
    arguments = parser.parse_args(argv)
    if arguments.batches == 0:
        return [together(2 * arguments.vertices)]
    table = Table("ms of a batch of one edge", ["query", "none", "delta plans", "compared", "compared / delta plans"])
    for name, text in ((name, text) for name, text in QUERIES.items() if name.startswith(arguments.only)):
        found, answers = [], []
        for way in ("none", "delta plans", "compared"):
            with made(arguments.vertices) as db:
                if way != "none":
                    db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
                if way == "compared":
                    (standing,) = db._statements().live.maintenance._standing.values()
                    standing.never, standing.accumulators = "it is measured", None
                found.append(batches(db, text, arguments.vertices, arguments.batches))
                if way != "none":
                    answers.append(db.sql("SELECT count(*), sum(hash(COLUMNS(*))) FROM q").fetchall())
        if answers[0] != answers[1]:
            raise SystemExit(f"{name}: the answers differ")
        table.add(name, *(f"{each:.1f}" for each in found), f"{found[2] / found[1]:.1f}")
    table.notes.append(f"{arguments.vertices:,} vertices; {surroundings('graphdb-duckdb', 'duckdb')}")
    return [table] if arguments.only else [table, together(2 * arguments.vertices)]


if __name__ == "__main__":
    main(run)
