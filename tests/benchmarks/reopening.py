"""What the first query costs after a file is opened again: LDBC's data, one shape of query after the other.

    python -m tests.benchmarks.reopening FOLDER [--only counts,IC5] [--reads] [--repeat 3]

FOLDER is where ``tests.benchmarks.ldbc --keep`` has left its databases.  One process, which has asked each query of a
small database before: imports, parser and kernels are there, nothing of the file is.  For each shape the file is opened
anew and asked once (*first*), and then again (*warm*, the least of the further times).  ``--reads`` asks LDBC's reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

import graphdb
from tests import ldbc
from tests.benchmarks.harness import Table, main, options, progress, surroundings
from tests.benchmarks.ldbc import parameters

PERSON, OTHER, MESSAGE = "$person", "$other", "$message"
SHAPES = {
    "counts": "MATCH (p:Person)-[:KNOWS]-(q)-[:KNOWS]-(r) RETURN count(*)",
    "edges of any label": "MATCH ()-[r]->() RETURN count(*)",
    "edges of each label": "MATCH ()-[r]->() RETURN type(r), count(*)",
    "triangles": "MATCH (a:Person)-[:KNOWS]-(b)-[:KNOWS]-(c)-[:KNOWS]-(a) RETURN count(*)",
    "three labels": "MATCH (p:Person)<-[:HAS_CREATOR]-(m:Message)-[:HAS_TAG]->(t:Tag) RETURN count(*)",
    "rows": "MATCH (p:Person)-[:KNOWS]->(q) RETURN p, q LIMIT 10000",
    "rows of ids": "MATCH (m:Comment)-[:HAS_CREATOR]->(p) RETURN m.id, p.id",
    "one vertex": f"MATCH (p:Person {{id: {PERSON}}}) RETURN p",
    "key": f"MATCH (p:Person {{id: {PERSON}}})-[:KNOWS]-(q) RETURN q.firstName, q.lastName",
    "key of a message": f"MATCH (m:Message {{id: {MESSAGE}}})-[:HAS_CREATOR]->(p) RETURN m.content, p.firstName",
    "property of few": "MATCH (p:Person) WHERE p.gender = 'male' RETURN count(*)",
    "property of many": "MATCH (m:Message) WHERE m.length > 100 RETURN count(*)",
    "groups": "MATCH (m:Message) RETURN m.browserUsed, count(*)",
    "times": "MATCH (m:Message) WHERE m.creationDate < datetime('2011-06-01T00:00:00Z') RETURN count(*)",
    "text": "MATCH (m:Message) WHERE m.content CONTAINS 'about' RETURN count(*)",
    "top": "MATCH (m:Message) RETURN m.id, m.creationDate ORDER BY m.creationDate DESC, m.id ASC LIMIT 10",
    "edge property": "MATCH (:Person)-[r:KNOWS]->() RETURN max(r.creationDate)",
    "edge property of many": "MATCH (f:Forum)-[r:HAS_MEMBER]->(p) RETURN max(r.joinDate)",
    "edge property of one": f"MATCH (p:Person {{id: {PERSON}}})<-[r:HAS_MEMBER]-(f) RETURN f.id, r.joinDate",
    "degrees": "MATCH (p:Person) RETURN p.id, COUNT { (p)-[:KNOWS]-() } AS n ORDER BY n DESC, p.id ASC LIMIT 10",
    "degrees of many": "MATCH (m:Message) WHERE COUNT { (m)<-[:REPLY_OF]-() } > 3 RETURN count(*)",
    "shortest path": f"MATCH p = ANY SHORTEST (a:Person {{id: {PERSON}}})-[:KNOWS]-+(b:Person {{id: {OTHER}}}) RETURN length(p)",
    "path to a root": f"MATCH (m:Message {{id: {MESSAGE}}})-[:REPLY_OF*0..]->(p:Post) RETURN p.id",
    "paths of all": "MATCH (m:Comment)-[:REPLY_OF*]->(p:Post) RETURN count(*)",
    "labels": "MATCH (n) RETURN labels(n) AS l, count(*)",
    "one label": "MATCH (n:Comment) RETURN count(*)",
}
"""Queries over the graph ``bi``."""


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table."""
    parser = options(__doc__ or "", [], 3, 60.0)
    parser.add_argument("folder", type=Path, help="where tests.benchmarks.ldbc --keep has left its databases")
    parser.add_argument("--only", default="", help="comma-separated shapes or reads")
    parser.add_argument("--reads", action="store_true", help="LDBC's reads instead of shapes")
    given = parser.parse_args(argv)
    only = set(given.only.split(",")) - {""}
    queries = [each for each in _queries(given.folder, given.reads) if not only or each[0] in only]
    columns = ["shape", "first", "warm", "above", "first cpu", "warm cpu", "above cpu"]
    table = Table("the first query after opening a file, milliseconds", columns)
    for graph in sorted({graph for _, graph, _, _ in queries}):
        with graphdb.connect() as small:
            ldbc.load(small, ldbc.SUITE / "data", graph)
            for name, of, text, arguments in queries:
                progress(f"small: {name}")
                if of == graph:
                    for _ in range(2):
                        small.query(text, arguments).fetchall()
    over = 0
    for name, graph, text, arguments in queries:
        progress(name)
        with graphdb.connect(given.folder / "graphdb" / f"{graph}.duckdb") as database:
            database.query("RETURN 1").fetchall()
            times = [_asked(database, text, arguments) for _ in range(given.repeat + 1)]
        first, warm = times[0], [min(each[i] for each in times[1:]) for i in (0, 1)]
        above = [first[i] - warm[i] for i in (0, 1)]
        over += above[0] > 0.15
        cells = [first[0], warm[0], above[0], first[1], warm[1], above[1]]
        table.add(name, *(f"{seconds * 1000:,.0f}" for seconds in cells))
    table.notes.append(f"over 150 ms above the warm one: {over} of {len(queries)}")
    table.notes.append(surroundings("graphdb", "duckdb"))
    return [table]


def _asked(database: graphdb.Database, text: str, arguments: dict[str, Any]) -> tuple[float, float]:
    """Ask a query and read its rows: seconds, and seconds of processor time."""
    started, used = time.perf_counter(), time.process_time()
    database.query(text, arguments).fetchall()
    return time.perf_counter() - started, time.process_time() - used


def _queries(folder: Path, reads: bool) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield name, graph, text and arguments of each query."""
    with duckdb.connect(folder / "duckdb" / "tables.duckdb", read_only=True) as connection:
        if reads:
            samples = parameters(connection, 1)
            for read in ldbc.queries():
                (case,) = samples[read["id"]]
                yield read["id"], read["graph"], read["cypher"], ldbc.arguments(read["graph"], case)
            return
        sql = "SELECT min(k_person1id), max(k_person2id), (SELECT max(m_messageid) FROM iv.message) FROM iv.knows"
        found = connection.execute(sql).fetchone()
        values = dict(zip(("person", "other", "message"), found or (), strict=True))
    for name, text in SHAPES.items():
        yield name, "bi", text, {name: value for name, value in values.items() if f"${name}" in text}


if __name__ == "__main__":
    main(run)
