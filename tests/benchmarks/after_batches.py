"""Queries right after a batch of changes, and transactions of a single edge in a file.

    python -m tests.benchmarks.after_batches --triples 10000000 --rounds 5

A file of random edges of four labels, ages and classes is opened anew.  Then, for each query, batches of 1,000 changes
are applied, and the query is asked right after each, again, and again prepared anew, as another text of its kind.  *before*
is the query prepared anew right after as large a batch in another database: it is met by the same caches of the processor as
*after* is, and nothing that it reads has changed.  *edges* inserts and deletes edges of all four labels
between vertices that are there; *vertices* also adds new ones, with ages and classes.  Times are medians of the
processor's milliseconds, of all threads: other work on the machine disturbs them less.

*Transactions* are single edges by ``db.apply`` and by ``CREATE``, each a transaction of its own in the file, beside
DuckDB's transaction with one ``INSERT`` in another file of the same disk.  *99.9 %* and *most* tell what single ones
wait for: that statistics are merged, or that something is read for the first time.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np

import graphdb
from tests.benchmarks.harness import Table, main, progress, scratch, surroundings

LABELS = ("knows", "likes", "follows", "trusts")
BATCH = 1_000
AGES = 100

QUERIES = {
    "edges of a vertex": "MATCH (a {number: 77})-[:knows]->(b) RETURN count(*) AS n",
    "two hops of a vertex": "MATCH (a {number: 78})-[:knows]->(b)-[:likes]->(c) RETURN count(*) AS n",
    "two hops, rows": "MATCH (a {number: 78})-[:knows]->(b)-[:likes]->(c) RETURN b.number, c.age",
    "any edge of a vertex": "MATCH (a {number: 77})-[]->(b)-[]->(c) RETURN count(*) AS n",
    "undirected": "MATCH (a {number: 79})-[:follows]-(b)-[:trusts]-(c) RETURN count(*) AS n",
    "alternatives": "MATCH (a {number: 77})-[:knows|likes]->(b) RETURN count(*) AS n",
    "three hops from an age": "MATCH (a)-[:knows]->(b)-[:likes]->(c) WHERE a.age = 7 RETURN count(*) AS n",
    "two hops, all": "MATCH (a)-[:knows]->(b)-[:likes]->(c) RETURN count(*) AS n",
    "triangles": "MATCH (a)-[:knows]->(b)-[:likes]->(c)-[:follows]->(a) RETURN count(*) AS n",
    "members": "MATCH (p:Red) RETURN count(*) AS n",
    "members and edges": "MATCH (p:Red)-[:knows]->(q:Blue) RETURN count(*) AS n",
    "a property": "MATCH (p) WHERE p.age < 10 RETURN count(*) AS n",
    "groups": "MATCH (p:Red)-[:trusts]->(q) WHERE p.age < 5 RETURN q.age, count(*) AS n",
}


IRI = "<http://example.org/{}>"
INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
COLOURS = ("Red", "Blue", "Green")


def write(path: Path, vertices: int) -> None:
    """Write N-Triples of so many vertices: eight edges and three facts for each."""

    def line(subject: str, label: str, object: str, source: str) -> str:
        return f"SELECT '<http://example.org/v' || {subject} || '> {label} ' || {object} || ' .' FROM {source}"

    random = "(hash(i * 8 + {}) % " + str(vertices) + ")"
    vertex, numbers = "'<http://example.org/v' || {} || '>'".format, f"range({vertices}) t(i)"
    integer = "'" + INTEGER.replace("{}", "' || {} || '") + "'"
    parts = [
        line(random.format(2 * k), IRI.format(label), vertex(random.format(2 * k + 1)), f"range({2 * vertices}) t(i)")
        for k, label in enumerate(LABELS)
    ]
    parts.append(line("i", IRI.format("age"), integer.format(f"(i * 7919 % {AGES})"), numbers))
    parts.append(line("i", IRI.format("number"), integer.format("i"), numbers))
    colour = f"{list(COLOURS)}[1 + i % 3]"
    parts.append(line("i", TYPE, f"'<http://example.org/' || {colour} || '>'", numbers))
    options = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\t'"
    duckdb.connect().execute(f"COPY ({' UNION ALL '.join(parts)}) TO '{path}' ({options})")


class Batches:
    """Batches of :data:`BATCH` changes: insertions, and deletions of what former ones inserted."""

    def __init__(self, vertices: int, new: bool) -> None:
        self._random = np.random.default_rng(11)
        self._vertices, self._new, self._there = vertices, new, list[tuple[str, str, str]]()
        self._made = 0

    def edge(self) -> tuple[str, str, str]:
        """Return a random edge."""
        s, o = self._random.integers(0, self._vertices, 2).tolist()
        return (
            f"<http://example.org/v{s}>",
            IRI.format(LABELS[int(self._random.integers(4))]),
            f"<http://example.org/v{o}>",
        )

    def next(self) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
        """Return what is to come and to go."""
        gone, self._there = self._there[: BATCH // 4], self._there[BATCH // 4 :]
        come = [self.edge() for _ in range((BATCH - len(gone)) // (2 if self._new else 1))]
        self._there += come
        while self._new and len(come) + len(gone) < BATCH:
            self._made += 1
            vertex, other = f"<http://example.org/new{self._made}>", self.edge()
            come += [
                (vertex, IRI.format("age"), INTEGER.format(self._made % AGES)),
                (vertex, IRI.format("number"), INTEGER.format(10**9 + self._made)),
                (vertex, TYPE, IRI.format(COLOURS[self._made % 3])),
                (vertex, other[1], other[2]),
            ]
        return come, gone


def timed(db: graphdb.Database, text: str) -> tuple[float, list[tuple[object, ...]]]:
    """Return the processor's milliseconds of a query with its rows, and these."""
    started = time.process_time()
    rows = db.query(text).fetchall()
    return (time.process_time() - started) * 1e3, rows


def after_batches(path: Path, other: Path, vertices: int, rounds: int, new: bool, device: str) -> Table:
    """Measure every query right after a batch, and again."""
    kind = "with new vertices" if new else "of edges"
    table = Table(
        f"ms of queries, batches of {BATCH:,} changes {kind}",
        ["query", "again", "anew", "before", "after", "after / again", "after / anew", "after / before", "batch"],
    )
    batches, others = Batches(vertices, new), Batches(vertices, new)

    def forget(db: graphdb.Database) -> None:
        db._state.plans.clear()
        db._state.snapshot().plans.clear()

    with graphdb.connect(str(path), device=device) as db, graphdb.connect(str(other)) as elsewhere:
        for _ in range(2):
            elsewhere.apply(*others.next())
        for name, text in QUERIES.items():
            progress(name)
            again, anew, before, after, took = (list[float]() for _ in range(5))
            for _ in range(2):
                timed(db, text)
            for number in range(rounds + 2):
                forget(db)
                elsewhere.apply(*others.next())
                unchanged, _ = timed(db, text)
                come, gone = batches.next()
                started = time.process_time()
                db.apply(come, gone)
                applied = (time.process_time() - started) * 1e3
                first, rows = timed(db, text)
                later = [timed(db, text) for _ in range(3)]
                forget(db)
                prepared, _ = timed(db, text)
                assert all(sorted(map(repr, rows)) == sorted(map(repr, each)) for _, each in later)
                if number > 1:
                    before.append(unchanged)
                    after.append(first)
                    anew.append(prepared)
                    again += [ms for ms, _ in later]
                    took.append(applied)
            cells = [statistics.median(each) for each in (again, anew, before, after)]
            ratios = (cells[3] / each for each in cells[:3])
            table.add(name, *(f"{x:.2f}" for x in (*cells, *ratios)), f"{statistics.median(took):.1f}")
    table.notes.append(surroundings("graphdb-duckdb", "duckdb"))
    return table


def transactions(folder: Path, vertices: int, count: int) -> Table:
    """Measure transactions of one edge; the first of each kind, which reads what later ones have, is left out."""
    table = Table("ms of a transaction of one edge in a file", ["way", "median", "90 %", "99.9 %", "most", "processor"])

    def row(way: str, works: Iterator[object]) -> None:
        next(works)
        times, before = list[float](), time.process_time()
        while True:
            started = time.perf_counter()
            if next(works, works) is works:
                break
            times.append((time.perf_counter() - started) * 1e3)
        used = (time.process_time() - before) * 1e3 / len(times)
        table.add(way, *(f"{q:.2f}" for q in np.quantile(times, (0.5, 0.9, 0.999, 1))), f"{used:.2f}")

    bare = duckdb.connect(str(folder / "bare.duckdb"))
    bare.execute("CREATE TABLE t (label BIGINT, subject BIGINT, object BIGINT)")

    def inserts(statements: int) -> Iterator[object]:
        for i in range(count):
            bare.execute("BEGIN")
            for _ in range(statements):
                bare.execute("INSERT INTO t VALUES (?, ?, ?)", [1, i, i + 1])
            bare.execute("COMMIT")
            yield i

    row("DuckDB, one INSERT", inserts(1))
    row("DuckDB, eight", inserts(8))
    bare.close()
    write(folder / "small.nt", vertices)
    with graphdb.connect(str(folder / "small.duckdb")) as db:
        db.load(str(folder / "small.nt"))
        batches = Batches(vertices, False)

        def applied() -> Iterator[object]:
            for _ in range(count):
                yield db.apply([batches.edge()])

        def created(first: int) -> Iterator[object]:  # other pairs each time: parallel edges are another matter
            text = "MATCH (a {number: $a}), (b {number: $b}) CREATE (a)-[:knows]->(b)"
            for i in range(first, first + count):
                yield db.query(text, a=i % vertices, b=i * 7 % vertices)

        for number in range(2):
            row("db.apply", applied())
            row("MATCH … CREATE", created(number * count))
        db.query("CREATE CONTINUOUS QUERY hops AS MATCH (a)-[:knows]->(b)-[:likes]->(c) RETURN a.number, c.number")
        row("db.apply, two hops standing", applied())
    table.notes.append(f"{count:,} each; {surroundings('graphdb-duckdb', 'duckdb')}")
    return table


def run(argv: list[str]) -> list[Table]:
    """Measure and return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transactions", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--file", type=Path, help="a file that an earlier run made, or where to make it")
    arguments = parser.parse_args(argv)
    vertices, tables = arguments.triples // 11, []
    with scratch() as folder:
        if arguments.transactions:
            tables.append(transactions(folder, vertices, arguments.transactions))
        if arguments.rounds:
            path = arguments.file or folder / "graph.duckdb"
            if not path.exists():
                write(folder / "graph.nt", vertices)
                with graphdb.connect(str(path), device="cpu") as db:
                    db.load(str(folder / "graph.nt"))
            for new in (False, True):
                other = folder / f"other-{new}.duckdb"
                shutil.copy(path, other)
                tables.append(after_batches(path, other, vertices, arguments.rounds, new, arguments.device))
    return tables


if __name__ == "__main__":
    main(run)
