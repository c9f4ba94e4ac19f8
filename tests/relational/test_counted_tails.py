"""Parts of patterns that only the number of matches depends on are counted by themselves, and change no row."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest

import graphdb
from graphdb.relational import query as query_module
from graphdb.relational.rewrites import counted_tails

Edges = list[tuple[int, str, int]]
Rows = list[tuple[Any, ...]]

VERTICES = 9


@dataclass
class Graph:
    database: graphdb.Database
    edges: Edges
    k: dict[int, int]

    def walks(self, *labels: str) -> Iterator[tuple[int, ...]]:
        """The vertices of each walk along edges of some labels, ``""`` for any between resources."""
        pending: list[tuple[int, ...]] = [(v,) for v in range(VERTICES)]
        for label in labels:
            pending = [
                (*walk, target)
                for walk in pending
                for source, name, target in self.edges
                if source == walk[-1] and label in (name, "")
            ]
        yield from pending


@pytest.fixture(scope="module", params=range(3))
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    draw = random.Random(request.param)
    every = [(a, label, b) for a in range(VERTICES) for label in "pqr" for b in range(VERTICES)]
    edges = draw.sample(every, 40)
    k = {v: draw.randrange(3) for v in range(VERTICES)}
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("CREATE " + ", ".join(f"(v{v}:V {{i: {v}, k: {k[v]}}})" for v in range(VERTICES)))
        for label in "pqr":
            pairs = [[a, b] for a, name, b in edges if name == label]
            text = f"UNWIND $pairs AS p MATCH (a {{i: p[0]}}), (b {{i: p[1]}}) CREATE (a)-[:{label}]->(b)"
            database.query(text, pairs=pairs)
        yield Graph(database, edges, k)


def grouped(walks: Iterator[tuple[int, ...]], key: Callable[[Any], Any], *values: Callable[[Any], Any]) -> Rows:
    """Key, number of walks, and how many distinct values each of some has there."""
    groups = defaultdict(list)
    for walk in walks:
        groups[key(walk)].append(walk)
    return sorted((k, len(found), *(len({value(w) for w in found}) for value in values)) for k, found in groups.items())


CASES: dict[str, Callable[[Graph], Rows]] = {
    "MATCH REPEATABLE ELEMENTS (a)-->(b)-->(c) RETURN b.i, count(*), count(DISTINCT a)": lambda g: grouped(
        g.walks("", ""), lambda w: w[1], lambda w: w[0]
    ),
    "MATCH (a)-[:p]->(b)-[:q]->(c)-[:r]->(d) RETURN a.k, count(d), count(DISTINCT b)": lambda g: grouped(
        g.walks("p", "q", "r"), lambda w: g.k[w[0]], lambda w: w[1]
    ),
    "MATCH (a)-[:p]->(b {k: 1})-[:q]->(c {k: 2}) RETURN a.i, count(*), count(DISTINCT b)": lambda g: grouped(
        (w for w in g.walks("p", "q") if g.k[w[1]] == 1 and g.k[w[2]] == 2), lambda w: w[0], lambda w: w[1]
    ),
    "MATCH (a)-[:p]->(b)-[f:q]->(c) WHERE c.k <= b.k AND a.k < 2 RETURN b.i, count(f), count(DISTINCT a.k)": lambda g: (
        grouped(
            (w for w in g.walks("p", "q") if g.k[w[2]] <= g.k[w[1]] and g.k[w[0]] < 2),
            lambda w: w[1],
            lambda w: g.k[w[0]],
        )
    ),
    "MATCH (a)-[:p]->(b), (b)-[:q]->(c) MATCH (b)-[:r]->(d) RETURN b.i, count(*), count(DISTINCT a)": lambda g: grouped(
        ((*w, d) for w in g.walks("p", "q") for b, d in g.walks("r") if b == w[1]), lambda w: w[1], lambda w: w[0]
    ),
    "MATCH REPEATABLE ELEMENTS (a)-[:p]->(b)-[:q]->(c)-[:p]->(b) RETURN b.i, count(*), count(DISTINCT a)": lambda g: (
        grouped((w for w in g.walks("p", "q", "p") if w[1] == w[3]), lambda w: w[1], lambda w: w[0])
    ),
    "MATCH (a)-[:p]->(b:V)-[:q]->(:V) RETURN b.i, count(a.k), count(DISTINCT a)": lambda g: grouped(
        g.walks("p", "q"), lambda w: w[1], lambda w: w[0]
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_rows_are_those_of_walks(graph: Graph, text: str) -> None:
    divided = mock.Mock(side_effect=counted_tails.with_counted_tails)
    with (
        mock.patch.object(query_module, "enumerates_tails", return_value=True),
        mock.patch.object(query_module, "with_counted_tails", divided),
    ):
        found = graph.database.query(text).fetchall()
        assert divided.call_count == 1
    assert sorted(found) == CASES[text](graph)


def weighed(walks: Iterator[tuple[int, ...]], key: int, of: int, values: list[float | None]) -> Rows:
    """Key, sum and average of the values of walks' vertices, and how many walks have one."""
    groups: dict[int, list[float]] = defaultdict(list)
    for walk in walks:
        groups[walk[key]] += [value for value in [values[walk[of]]] if value is not None]
    return sorted(
        (k, sum(found), sum(found) / len(found) if found else None, len(found)) for k, found in groups.items()
    )


@pytest.mark.parametrize("name", ["n", "f"])
def test_sums_and_averages_weigh_rows(graph: Graph, name: str) -> None:
    """Of integers and of floating-point numbers, which some vertices lack; all, where a vertex lacks one."""
    draw = random.Random(name)
    whole = [None if v % 4 == 1 else draw.randrange(-9, 9) for v in range(VERTICES)]
    values = whole if name == "n" else [None if n is None else n / 4 for n in whole]
    graph.database.query(
        f"UNWIND $rows AS r MATCH (v:V {{i: r.i}}) SET v.{name} = r.value",
        rows=[{"i": v, "value": value} for v, value in enumerate(values)],
    )
    for text, walks, key, of in (
        ("(a)-[:p]->(b)-[:q]->(c) RETURN b.i", graph.walks("p", "q"), 1, "a"),
        ("(a)-[:p]->(b)-[:q]->(c)-[:r]->(d) RETURN b.i", graph.walks("p", "q", "r"), 1, "a"),
        ("(a)-[:p]->(b)-[:q]->(c) RETURN a.i", graph.walks("p", "q"), 0, "a"),
    ):
        each = f"sum({of}.{name}), avg({of}.{name}), count({of}.{name})"
        divided = mock.Mock(side_effect=counted_tails.with_counted_tails)
        with (
            mock.patch.object(query_module, "enumerates_tails", return_value=True),
            mock.patch.object(query_module, "with_counted_tails", divided),
        ):
            found = graph.database.query(f"MATCH {text}, {each}").fetchall()
            lines = "\n".join(str(row[0]) for row in graph.database.query(f"EXPLAIN MATCH {text}, {each}").fetchall())
        assert "group join" in lines
        assert sorted(found) == weighed(walks, key, 0, values), text
    edgeless = graph.database.query(f"MATCH (a {{i: 99}})-[:p]->(b)-[:q]->(c) RETURN sum(a.{name}), avg(a.{name})")
    assert edgeless.fetchall() == [(0, None)]


STAYS = {
    "edges that must differ, and might be the same": "MATCH (a)-->(b)-->(c) RETURN b.i, count(*), count(DISTINCT a)",
    "a condition on both": ("MATCH (a)-[:p]->(b)-[:q]->(c) WHERE a.k = c.k RETURN b.i, count(*), count(DISTINCT a.k)"),
    "values that meet": "MATCH (a)-[:k]->(v)<-[:k]-(b) RETURN v, count(*), count(DISTINCT a)",
    "duplicates make no difference": "MATCH (a)-[:p]->(b)-[:q]->(c) RETURN b.i, max(a.k), count(DISTINCT a)",
    "a sum of what may be no number": "MATCH (a)-[:p]->(b)-[:q]->(c) RETURN b.i, count(*), sum(a.x)",
    "all is returned": "MATCH (a)-[:p]->(b)-[:q]->(c) RETURN b.i, count(DISTINCT c), count(a.k)",
}


@pytest.mark.parametrize("text", STAYS.values(), ids=list(STAYS))
def test_what_is_no_tail_stays(graph: Graph, text: str) -> None:
    want = graph.database.query(text + " // as it is").fetchall()
    with mock.patch.object(query_module, "enumerates_tails", return_value=True):
        lines = "\n".join(str(row[0]) for row in graph.database.query("EXPLAIN " + text).fetchall())
        assert sorted(graph.database.query(text).fetchall()) == sorted(want)
    assert "group join" not in lines


def test_walks_through_hubs_are_not_enumerated() -> None:
    """Two labels between all pairs: a search goes through a million walks and more, once it knows their edges."""
    with graphdb.connect(device="cpu", threads=1) as database:
        text = "UNWIND range(0, 99) AS a UNWIND range(0, 29) AS b "
        for label in "pq":
            database.query(text + f"MERGE (x:A {{i: a}}) MERGE (y:B {{i: b}}) CREATE (x)-[:{label}]->(y)")
            database.query(text + f"MERGE (x:C {{i: a}}) MERGE (y:B {{i: b}}) CREATE (y)-[:{label}]->(x)")
        for asked, found in (("count(*), count(DISTINCT a)", (40_000, 100)), ("sum(a.i), avg(a.i)", (1_980_000, 49.5))):
            text = f"MATCH REPEATABLE ELEMENTS (a)-->(b)-->(c) RETURN b.i, {asked} ORDER BY b.i"
            assert database.query(text).fetchall() == [(b, *found) for b in range(30)]
            lines = "\n".join(str(row[0]) for row in database.query("EXPLAIN " + text).fetchall())
            assert "group join" in lines, lines
