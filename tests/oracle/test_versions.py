"""Results read late: whatever was written, rolled back, loaded or vacuumed since, they are what their query saw.

A random history runs queries, writes and transactions.  Of every query two results are made: the one is copied at once,
the other is read some statements later, in a random manner, and has to be equal.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

import graphdb
from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.writing import reading as by_sets
from tests.fuzz import scaled

HISTORIES = scaled(4)

READS = (
    "MATCH (n) RETURN n",
    "MATCH (n:A) RETURN n, n.k, labels(n)",
    "MATCH (n) RETURN n {.*} AS all, n",
    "MATCH (a)-[e]->(b) RETURN a, e, b",
    "MATCH (a)-[e:R]->(b) WHERE a.k >= 0 RETURN e, b.k",
    "MATCH p = (a)-[*1..2]->(b) RETURN p",
    "MATCH p = (a)-[:R]->(b) RETURN p, nodes(p), relationships(p)",
    "MATCH (a)-[es*1..2]->(b) RETURN es, a.k",
    "MATCH (a) RETURN collect(a) AS every, count(*)",
    "MATCH (a)-[e]->(b) RETURN {from: a, by: e, to: b} AS row",
    "MATCH (a)-[:k]->(v) RETURN a, v",
    "OPTIONAL MATCH (a:B)-[e]->(b) RETURN a, e, b",
    "MATCH (a) WITH a ORDER BY a.k LIMIT 3 MATCH (a)-[e]->(b) RETURN a, b, e.w",
    "MATCH (a) UNWIND labels(a) AS l RETURN l, a",
)
WRITES = (
    "CREATE (:A {k: $i})-[:R {w: $i}]->(:B {k: $i, t: ['x', 'y']})",
    "CREATE (a:A {k: $i}) RETURN a",
    "MATCH (a:A), (b:B) WITH a, b LIMIT 3 CREATE (a)-[:R {w: $i}]->(b), (a)-[:S]->(b)",
    "MATCH (n) WHERE n.k % 3 = 0 SET n.k = n.k + $i",
    "MATCH (n:A) SET n.name = 'of ' + toString($i), n:C",
    "MATCH (n:C) REMOVE n:C, n.name",
    "MATCH (n) WHERE n.k % 2 = 1 SET n = {k: $i}",
    "MATCH ()-[e:R]->() SET e.w = $i, e.since = 'now'",
    "MATCH ()-[e:R]->() WHERE e.w % 2 = 0 DELETE e",
    "MATCH (n) WHERE n.k % 4 = 1 DETACH DELETE n",
    "MATCH (n:B) WITH n LIMIT 2 DETACH DELETE n",
    "MATCH (n) DETACH DELETE n",
    "MERGE (n:A {k: $i % 5}) ON MATCH SET n.seen = $i ON CREATE SET n.new = true",
    "MATCH (a:A) MERGE (a)-[e:S]->(:D {of: a.k})",
    "UNWIND range(1, 40) AS j CREATE (:A {k: j * $i})",
)
FAILS = (
    "CREATE (:A {k: $i}) RETURN 1 / 0",
    "MATCH (n) DELETE n",
    "MATCH (n) SET n.k = 1 / (n.k - n.k)",
    "SELECT error('no')",
)


def plain(value: Any) -> Any:
    """A value with all that its elements say, comparable."""
    match value:
        case Node():
            return "node", value.iri, value.labels, sorted((key, repr(v)) for key, v in value.properties.items())
        case Relationship():
            facts = sorted((key, repr(v)) for key, v in value.properties.items())
            return "edge", value.type, value.start, str(value.end), facts
        case Path():
            return "path", [plain(node) for node in value.nodes], [plain(edge) for edge in value.relationships]
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return sorted((key, plain(item)) for key, item in value.items())
    return repr(value)


def rows(values: Any) -> list[str]:
    return sorted(map(repr, map(plain, values)))


def table(result: Any) -> list[str]:
    """The rows as SQL sees them."""
    return sorted(map(repr, map(plain, result.to_arrow().to_pylist())))


class History:
    """A database, and results that wait to be read."""

    def __init__(self, seed: int, path: str) -> None:
        self.random = random.Random(seed)
        self.path = path
        self.db = graphdb.connect(path)
        self.waiting: list[tuple[str, Any, list[str], list[str]]] = []
        self.begun: list[tuple[Iterator[Any], list[Any], list[str]]] = []
        self.inside = False
        self.report: list[str] = []
        self.tables = 0

    def query(self, text: str, **given: Any) -> Any:
        self.report.append(text)
        try:
            return self.db.query(text, **given)
        except graphdb.GraphDBError as error:
            self.report.append(f"-- {error}".splitlines()[0])
            if self.inside and ("abort" in str(error).lower() or "failed" in str(error).lower()):
                self.db.query("ROLLBACK")
                self.inside = False
            return None

    def read(self) -> None:
        text = self.random.choice(READS)
        result, twin = self.query(text), self.query(text)
        if result is not None and twin is not None:
            self.waiting.append((text, result, rows(twin.fetchall()), table(twin)))
            if self.random.random() < 0.2:
                again = self.query(text)
                if again is not None:
                    iterator = iter(again)
                    self.begun.append((iterator, list(islice(iterator, 1)), rows(twin)))

    def write(self) -> None:
        text = self.random.choice(WRITES)
        given = {"i": self.random.randrange(1, 50)} if "$i" in text else {}
        result = self.query(text, **given)
        if result is not None and len(result):
            copied = rows(result.fetchall()) if self.random.random() < 0.5 else None
            if copied is not None:
                self.waiting.append((text, result, copied, table(result)))

    def fail(self) -> None:
        text = self.random.choice(FAILS)
        self.query(text, **({"i": 1} if "$i" in text else {}))

    def transaction(self) -> None:
        word = self.random.choice(("COMMIT", "ROLLBACK")) if self.inside else "BEGIN"
        if self.query(word) is not None:
            self.inside = not self.inside

    def load(self) -> None:
        if not self.inside:
            number = self.random.randrange(9)
            lines = f'<e:{number}> <urn:graphdb:k> "{number}" .\n<e:{number}> <urn:graphdb:R> <e:{number + 1}> .\n'
            self.report.append("LOAD")
            self.db.load(io.BytesIO(lines.encode()), format="ntriples")

    def prefix(self) -> None:
        self.query(f"PREFIX p{self.random.randrange(3)}: <urn:graphdb:>")

    def vacuum(self) -> None:
        if not self.inside:
            self.query(self.random.choice(("VACUUM", "CHECKPOINT")))

    def check(self) -> None:
        """Read one of those that wait."""
        if self.begun and self.random.random() < 0.3:
            iterator, first, wanted = self.begun.pop(self.random.randrange(len(self.begun)))
            assert rows([*first, *iterator]) == wanted, "\n".join(self.report)
        elif self.waiting:
            at = self.random.randrange(len(self.waiting))
            text, result, values, shown = self.waiting[at]
            self.report.append(f"-- read {text}")
            how = self.random.randrange(5)
            if how == 0:
                assert rows(result) == values, "\n".join(self.report)
            elif how == 1:
                assert rows(result.fetchall()) == values, "\n".join(self.report)
            elif how == 2:
                assert table(result) == shown, "\n".join(self.report)
            elif how == 3:
                assert len(result.to_pandas()) == len(values)
            elif result.columns and not self.inside:
                self.tables += 1
                self.report.append(f"-- into t{self.tables}")
                if self.tables_work(result):
                    stored, seen = (  # unions of numbers and texts as they are: to_arrow makes texts of both
                        [list(row.values()) for row in pa.table(each.presented()).to_pylist()]
                        for each in (self.db.sql(f"FROM t{self.tables}"), result)
                    )
                    assert rows(stored) == rows(seen), "\n".join(self.report)
                assert table(result) == shown, "\n".join(self.report)
            if self.random.random() < 0.5:
                del self.waiting[at]

    def tables_work(self, result: Any) -> bool:
        try:
            result.into(f"t{self.tables}")
        except graphdb.GraphDBError:
            return False
        return True

    def run(self, steps: int) -> None:
        kinds: list[Callable[[], None]] = [self.read] * 6 + [self.write] * 7 + [self.check] * 6
        kinds += [self.fail, self.transaction, self.transaction, self.load, self.prefix, self.vacuum]
        self.write()
        for _ in range(steps):
            self.random.choice(kinds)()
        while self.waiting or self.begun:
            self.check()
        self.db.close()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_results_are_what_their_query_saw(seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(by_sets, "LEAST", 0)
    History(seed, ":memory:" if seed % 4 < 2 else str(tmp_path / "g.duckdb")).run(40)
