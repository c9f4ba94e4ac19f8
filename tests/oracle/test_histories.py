"""Random histories of writes, by statements and by batches, against a model in Python: what is cached follows them.

Vertices, labels, properties and parallel edges come and go, in transactions that are committed or rolled back, by a
second connection and across reopenings; the same queries are asked all along, so that their plans, partitions and
tables of properties live through the changes.  ``GRAPHDB_FUZZ`` multiplies the number of histories.
"""

from __future__ import annotations

import io
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

import graphdb
from tests.fuzz import scaled

LABELS, TYPES = "AB", "rst"


@dataclass
class Model:
    """Vertices by their property ``id``, with labels and ``k``; edges with ``w``, each of parallel ones."""

    vertices: dict[int, tuple[set[str], int | None]] = field(default_factory=dict)
    edges: list[tuple[int, str, int, int | None]] = field(default_factory=list)

    def pairs(self, *types: str) -> Iterator[tuple[int, int]]:
        return ((a, b) for a, label, b, _ in self.edges if label in types)

    def walks(self, first: str, second: str) -> int:
        """Paths of two different edges."""
        return sum(
            x[2] == y[0] and i != j and x[1] == first and y[1] == second
            for i, x in enumerate(self.edges)
            for j, y in enumerate(self.edges)
        )


def _k(model: Model, vertex: int) -> int | None:
    return model.vertices[vertex][1]


Answer = Callable[[Model], list[tuple[Any, ...]]]

QUESTIONS: dict[str, Answer] = {
    "MATCH (a)-[:r]->(b) RETURN a.id AS a, b.id AS b": lambda m: list(m.pairs("r")),
    "MATCH (a:A)-[:r|s]->(b) RETURN a.id, count(*)": lambda m: list(
        Counter(a for a, _ in m.pairs("r", "s") if "A" in m.vertices[a][0]).items()
    ),
    "MATCH (a)-[:r]->(b)-[:s]->(c) RETURN count(*)": lambda m: [(m.walks("r", "s"),)],
    "MATCH (a)-[:t]->(b)-[:t]->(c) RETURN count(*)": lambda m: [(m.walks("t", "t"),)],
    "MATCH ()-[e]->() RETURN count(*)": lambda m: [(len(m.edges),)],
    "MATCH ()-[e]->() RETURN type(e), count(*)": lambda m: list(Counter(edge[1] for edge in m.edges).items()),
    "MATCH (a)<-[e:r|t]-() RETURN DISTINCT type(e)": lambda m: list({(edge[1],) for edge in m.edges} - {("s",)}),
    "MATCH ()-[:r]->() RETURN count(*)": lambda m: [(len(list(m.pairs("r"))),)],
    "MATCH ()-[:r|id|k]->() RETURN count(*)": lambda m: [
        (len(list(m.pairs("r"))) + sum(1 + (k is not None) for _, k in m.vertices.values()),)
    ],
    "MATCH (a)-[e:s]->(b) RETURN a.id, e.w": lambda m: [(a, w) for a, label, _, w in m.edges if label == "s"],
    "MATCH (a)-[e:t]->(b) WHERE e.w IS NULL RETURN count(*)": lambda m: [
        (sum(label == "t" and w is None for _, label, _, w in m.edges),)
    ],
    "MATCH (a:B) RETURN a.id, labels(a)": lambda m: [
        (v, sorted(labels)) for v, (labels, _) in m.vertices.items() if "B" in labels
    ],
    "MATCH (a) WHERE NOT (a)-[:s]->() RETURN a.id": lambda m: [
        (v,) for v in m.vertices if all(a != v for a, _ in m.pairs("s"))
    ],
    "MATCH (a)-[:r]-(b:A&!B) RETURN count(*)": lambda m: [
        (sum(m.vertices[x][0] == {"A"} for a, b in m.pairs("r") for x in ((b,) if a == b else (a, b))),)
    ],
    "MATCH (a)-[:r]->(b) WHERE a.k < b.k RETURN count(*)": lambda m: [
        (sum(x is not None and y is not None and x < y for x, y in ((_k(m, a), _k(m, b)) for a, b in m.pairs("r"))),)
    ],
}

BY_VALUE = "MATCH (a)-[:t]->(b) WHERE a.k = $k RETURN count(*)"


class _History:
    def __init__(self, path: pathlib.Path, random: Random) -> None:
        self.path, self.random, self.model, self.next = path, random, Model(), 0
        self.db = graphdb.connect(path, threads=1, device="cpu")
        self.saved: Model | None = None
        """What a ROLLBACK returns to; None outside of a transaction."""
        for _ in range(6):
            self.vertex()
        for _ in range(9):
            self.edge()

    def _some(self) -> int:
        return self.random.choice(list(self.model.vertices))

    def vertex(self) -> None:
        """By a batch, which gives it an IRI."""
        v, label, k = self.next, self.random.choice(LABELS), self.random.randrange(3)
        self.next += 1
        self.db.apply([_property(v, "id", v), _property(v, "k", k), _labelled(v, label)])
        self.model.vertices[v] = {label}, k

    def edge(self) -> None:
        a, b, label, w = self._some(), self._some(), self.random.choice(TYPES), self.random.choice([None, None, 1, 2])
        self.db.query(f"MATCH (a {{id: $a}}), (b {{id: $b}}) CREATE (a)-[:{label} {{w: $w}}]->(b)", a=a, b=b, w=w)
        self.model.edges.append((a, label, b, w))

    def batch(self) -> None:
        """Edges come and go, and a label does; edges with others parallel to them are left to statements."""
        there = Counter(edge[:3] for edge in self.model.edges)
        drawn = {(self._some(), self.random.choice(TYPES), self._some()) for _ in range(self.random.choice([1, 4, 12]))}
        come, gone = sorted(drawn - there.keys()), sorted(each for each in drawn if there[each] == 1)
        v, label = self._some(), self.random.choice(LABELS)
        labels = self.model.vertices[v][0]
        lines = [[_edge(*each) for each in come], [_edge(*each) for each in gone]]
        lines[label in labels].append(_labelled(v, label))
        self.db.apply(*(rows or None for rows in lines))
        labels ^= {label}
        self.model.edges = [edge for edge in self.model.edges if edge[:3] not in gone]
        self.model.edges += [(*each, None) for each in come]

    def without_edge(self) -> None:
        if self.model.edges:
            a, label, b, _ = self.random.choice(self.model.edges)
            self.db.query(f"MATCH (a {{id: $a}})-[e:{label}]->(b {{id: $b}}) DELETE e", a=a, b=b)
            self.model.edges = [edge for edge in self.model.edges if edge[:3] != (a, label, b)]

    def weight(self) -> None:
        if self.model.edges:
            a, label, b, _ = self.random.choice(self.model.edges)
            w = self.random.choice([None, 1, 3])
            self.db.query(f"MATCH (a {{id: $a}})-[e:{label}]->(b {{id: $b}}) SET e.w = $w", a=a, b=b, w=w)
            self.model.edges = [(*edge[:3], w if edge[:3] == (a, label, b) else edge[3]) for edge in self.model.edges]

    def without_vertex(self) -> None:
        if len(self.model.vertices) > 3:
            v = self._some()
            self.db.query("MATCH (a {id: $v}) DETACH DELETE a", v=v)
            del self.model.vertices[v]
            self.model.edges = [edge for edge in self.model.edges if v not in (edge[0], edge[2])]

    def value(self) -> None:
        v, k = self._some(), self.random.choice([None, 0, 1, 2])
        self.db.query("MATCH (a {id: $v}) SET a.k = $k", v=v, k=k)
        self.model.vertices[v] = self.model.vertices[v][0], k

    def unlabelled(self) -> None:
        label = self.random.choice(LABELS)
        self.db.query(f"MATCH (a:{label}) REMOVE a:{label}")
        for labels, _ in self.model.vertices.values():
            labels.discard(label)

    def transaction(self) -> None:
        if self.saved is None:
            self.db.query("BEGIN")
            self.saved = deepcopy(self.model)
        else:
            commit = self.random.random() < 0.5
            self.db.query("COMMIT" if commit else "ROLLBACK")
            self.model, self.saved = self.model if commit else self.saved, None

    def elsewhere(self) -> None:
        """By another connection of this process."""
        if self.saved is None:
            mine = self.db
            with graphdb.connect(self.path, threads=1, device="cpu") as self.db:
                for change in self.random.choices([self.edge, self.batch, self.value], k=2):
                    change()
                self.check()
            self.db = mine

    def again(self) -> None:
        if self.saved is None:
            self.db.close()
            self.db = graphdb.connect(self.path, threads=1, device="cpu")

    def check(self) -> None:
        """Ask some of the questions."""
        for text in self.random.sample(list(QUESTIONS), 8):
            assert _bag(self.db.query(text).fetchall()) == _bag(QUESTIONS[text](self.model)), text
        k = self.random.randrange(3)
        want = sum(_k(self.model, a) == k for a, _ in self.model.pairs("t"))
        assert self.db.query(BY_VALUE, k=k).scalar() == want, BY_VALUE

    def run(self, steps: int) -> None:
        often = {self.batch: 6, self.edge: 4, self.without_edge: 3, self.weight: 3, self.value: 3, self.vertex: 1}
        seldom = (self.without_vertex, self.unlabelled, self.transaction, self.transaction, self.elsewhere, self.again)
        changes = [*(change for change, times in often.items() for _ in range(times)), *seldom]
        for _ in range(steps):
            self.random.choice(changes)()
            self.check()


def _property(vertex: int, key: str, value: int) -> tuple[str, str, int]:
    return f"<urn:v{vertex}>", f"<urn:graphdb:{key}>", value


def _labelled(vertex: int, label: str) -> tuple[str, str, str]:
    return f"<urn:v{vertex}>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<urn:graphdb:{label}>"


def _edge(a: int, label: str, b: int) -> tuple[str, str, str]:
    return f"<urn:v{a}>", f"<urn:graphdb:{label}>", f"<urn:v{b}>"


def _bag(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(sorted(cell) if isinstance(cell, list | tuple) else cell for cell in row)) for row in rows)


@pytest.mark.parametrize("seed", range(scaled(10)))
def test_what_is_cached_follows_random_changes(tmp_path: pathlib.Path, seed: int) -> None:
    history = _History(tmp_path / "db.duckdb", Random(seed))
    history.run(40)
    history.db.close()


def _counts(db: graphdb.Database, pattern: str, count: str, order: str = "ORDER BY n DESC, t") -> tuple[Any, ...]:
    found = db.query(f"MATCH {pattern} RETURN type(r) AS t, {count} AS n {order}")
    return found.columns, found.fetchall()


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_edges_are_counted_by_label_as_rows_are_added_up(seed: int) -> None:
    """Statistics say how many there are, the table of edges of parallel ones; sums go through all edges."""
    random, saved = Random(seed), False
    p, q, l, missing = (f"<urn:graphdb:{name}>" for name in ("p", "q", "l", "missing"))
    patterns = ["()-[r]->()", f"REPEATABLE ELEMENTS (a)<-[r:{p}|{q}]-(b)", f"()-[r:!{p}]->()", f"(a)-[r:{l}]->(b)"]
    patterns += ["()-[r]-()", f"(a)-[r:{p}|{l}]-(b)", f"(a)-[r:{l}]-(b)", f"REPEATABLE ELEMENTS ()-[r:{q}]-()"]
    patterns += [f"()-[r:{l}|rdf:type|{missing}]->()", "(a)-[r]->(b) WHERE type(r) <> 'q'", "(a)-[r]->(a)"]
    patterns += ["(a:<urn:v0>)-[r]->(b)", f"(a)<-[r:{p}]-(b:<urn:v0>)", "(:<urn:v0>)-[r]-(:<urn:v0>)"]
    with graphdb.connect(threads=1, device="cpu") as db:
        db.load(io.BytesIO(b"".join(b"<urn:v0> <urn:graphdb:%c> <urn:v1> .\n" % each for each in b"pql")), "nt")
        for _ in range(15):
            a, b = (f"<urn:v{random.randrange(8)}>" for _ in "ab")
            label = f"<urn:graphdb:{random.choice('pql')}>"
            typed = f"{a} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> {b} ."
            literal = f'{a} {label} "{random.randrange(3)}" .'
            match random.randrange(10):
                case 8 | 9:
                    twice = f"CREATE (a)-[:{random.choice('pq')}]->({random.choice('ab')})"
                    db.query(f"MATCH (a)-[:{random.choice([p, q])}]->(b) WITH a, b LIMIT 1 {twice} {twice}")
                case 0 | 1 if not saved:
                    db.load(io.BytesIO("\n".join([f"{a} {label} {b} .", typed, literal]).encode()), "nt")
                case 2:
                    db.apply([(a, label, b)])
                case 3:
                    db.apply(None, [(a, label, b)])
                case 4:
                    db.query(f"CREATE ({{m: 1}})-[:{random.choice('pq')} {{w: 1}}]->()")
                case 5:
                    db.query(f"MATCH ()-[r:{random.choice([p, q])}]->() WITH r LIMIT 1 DELETE r")
                case 6:
                    db.query(f"MATCH (a)-[:{p}]->() WITH a LIMIT 1 DETACH DELETE a")
                case _:
                    db.query(random.choice(["COMMIT", "ROLLBACK"]) if saved else "BEGIN")
                    saved = not saved
            for pattern in patterns:
                want = _counts(db, pattern, "sum(1)")
                assert _counts(db, pattern, "count(r)") == want, pattern
                (every,) = db.query(f"MATCH {pattern} RETURN count(*) AS n").fetchall()
                assert every == (sum(n for _, n in want[1]),), pattern
                assert _counts(db, pattern, "count(*)", "ORDER BY n DESC, t LIMIT 2")[1] == want[1][:2], pattern
        assert "statistics say how many matches there are of each" in str(
            db.query("EXPLAIN MATCH ()-[r]->() RETURN type(r), count(*)").fetchall()
        )
