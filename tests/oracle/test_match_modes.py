"""Random paths under every match mode, path mode and selector against the oracle of :mod:`tests.oracle.walks`.

Small multigraphs with self-loops, parallel edges and edges both ways; several patterns in one MATCH, several MATCH and
OPTIONAL MATCH clauses, EXISTS and COUNT around them.  ``GRAPHDB_FUZZ`` multiplies the number of graphs.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import graphdb
from graphdb.common.values.elements import Node, Path, Relationship
from tests.fuzz import scaled
from tests.oracle import walks as oracle
from tests.oracle.routes import path_by_path
from tests.oracle.walks import Clause, Edge, Graph, Link, Piece, Query

GRAPHS = scaled(4)
QUERIES = 30
"""For each graph."""

QUANTIFIERS: dict[str, tuple[int, int | None]] = {
    "": (1, 1),
    "*0..1": (0, 1),
    "*1..1": (1, 1),
    "*1..2": (1, 2),
    "?": (0, 1),
    "{0,2}": (0, 2),
    "{2}": (2, 2),
    "{1,3}": (1, 3),
}
UNBOUNDED: dict[str, tuple[int, int | None]] = {"+": (1, None), "*": (0, None), "{2,}": (2, None)}
PATH_MODES = ("", "", "", "WALK", "TRAIL", "SIMPLE", "ACYCLIC")
MATCH_MODES = ("", "", "", "DIFFERENT EDGES", "REPEATABLE ELEMENTS", "DIFFERENT NODES", "DIFFERENT NODES", "INDUCED")
SELECTORS = ("ALL", "ANY", "ANY 2", "ANY SHORTEST", "ALL SHORTEST", "SHORTEST 2", "SHORTEST 2 GROUPS")
LOOSE = ("ANY", "ANY 2", "ANY SHORTEST", "SHORTEST 2")
"""Selectors that leave open which paths they keep."""


def random_graph(dice: random.Random) -> Graph:
    """One to four vertices, up to five edges."""
    count = dice.randrange(1, 5)
    vertices = range(count)
    triples = [(dice.choice("RRS"), dice.choice(vertices), dice.choice(vertices)) for _ in range(dice.randrange(6))]
    if dice.random() < 0.5:
        triples = list(dict.fromkeys(triples))
    labels = tuple(dice.choice(["", "N", "NM"]) for _ in vertices)
    return Graph(labels, tuple(Edge(k, *triple) for k, triple in enumerate(triples)), dice.random() < 0.5)


class Random:
    """Makes random queries; vertices may share names, anything else is named once."""

    def __init__(self, dice: random.Random, vertices: list[str], named: int = 0) -> None:
        self._dice, self.vertices, self._count = dice, vertices, named

    def query(self) -> Query:
        """One to three clauses, and what is returned of them."""
        dice = self._dice
        clauses = tuple(self.clause() for _ in range(dice.choice([1, 1, 2, 3])))
        loose = {
            name
            for clause in clauses
            for path in clause.paths
            if path.selector in LOOSE
            for name in {*path.names} - {path.nodes[0].name, path.nodes[-1].name}
        }
        known = [name for name in dict.fromkeys(n for clause in clauses for n in clause.names) if name not in loose]
        returns = dice.sample(known, dice.randrange(min(len(known), 4) + 1))
        returns = [f"length({n})" if n.startswith("p") and dice.random() < 0.5 else n for n in returns]
        counted = self._around() if returns and self.vertices and dice.random() < 0.15 else None
        return Query(clauses, tuple(returns), bool(returns) and dice.random() < 0.4, counted)

    def clause(self, inside: bool = False) -> Clause:
        """One MATCH."""
        dice = self._dice
        mode = dice.choice(MATCH_MODES)
        selects = dice.random() < 0.25
        paths = tuple(self._path(mode, selects and i == 0) for i in range(dice.choice([1, 1, 2])))
        if inside:
            return Clause(paths, mode)
        differ = exists = None
        if len(self.vertices) > 1 and dice.random() < 0.15:
            differ = (self.vertices[0], self.vertices[1])
        if self.vertices and dice.random() < 0.2:
            exists = self._around()
        return Clause(paths, mode, dice.random() < 0.2, differ, exists, dice.random() < 0.5)

    def _around(self) -> Clause:
        """A pattern inside EXISTS or COUNT."""
        return Random(self._dice, [*self.vertices], self._count + 50).clause(inside=True)

    def _path(self, match_mode: str, selects: bool) -> oracle.Path:
        dice = self._dice
        mode = dice.choice(PATH_MODES)
        bounded = (mode == "WALK" and not match_mode) or (mode in ("", "WALK") and match_mode == "REPEATABLE ELEMENTS")
        pieces = tuple(self._piece(bounded) for _ in range(dice.choice([0, 1, 1, 1, 2])))
        nodes = tuple(self._node(self._vertex()) for _ in range(len(pieces) + 1))
        selector = dice.choice(SELECTORS) if selects and pieces else ""
        return oracle.Path(nodes, pieces, mode, selector, self._name("p"))

    def _piece(self, bounded: bool) -> Piece:
        dice = self._dice
        kinds = QUANTIFIERS if bounded else {**QUANTIFIERS, **UNBOUNDED}
        quantifier = dice.choice(["", *kinds])
        low, high = kinds[quantifier]
        if quantifier and quantifier[:-1].find("*") < 0 and dice.random() < 0.15:
            links = tuple(self._link(None) for _ in range(dice.choice([1, 2])))
            return Piece(links, quantifier, low, high, tuple(self._node(None) for _ in range(len(links) + 1)))
        return Piece((self._link(self._name("e")),), quantifier, low, high)

    def _link(self, name: str | None) -> Link:
        return Link(self._dice.choice(["out", "out", "in", "both"]), name, self._dice.choice(["", "", "R", "S", "RS"]))

    def _node(self, name: str | None) -> oracle.Node:
        return oracle.Node(name, self._dice.choice([None, None, None, "N", "M"]))

    def _vertex(self) -> str | None:
        name = self._dice.choice(["a", "b", "c", "d", None])
        if name is not None and name not in self.vertices:
            self.vertices.append(name)
        return name

    def _name(self, letter: str) -> str | None:
        if self._dice.random() < 0.6:
            return None
        self._count += 1
        return f"{letter}{self._count}"


def found(database: graphdb.Database, graph: Graph, query: Query) -> Counter[tuple[Any, ...]]:
    """The rows of a query in the oracle's words."""
    ids = {node.iri: node.properties["id"] for (node,) in database.query("MATCH (v) RETURN v")}

    def plain(value: Any) -> Any:
        match value:
            case Node():
                return value.properties["id"]
            case Relationship():
                ends = value.type, ids[value.start], ids[value.end]
                return (*ends, value.properties["k"]) if graph.described else ends
            case Path():
                return tuple(map(plain, value.nodes)), tuple(map(plain, value.relationships))
            case list():
                return tuple(map(plain, value))
        return value

    return Counter(tuple(map(plain, row)) for row in database.query(query.text()))


@pytest.mark.parametrize("seed", range(GRAPHS))
@pytest.mark.parametrize("single", [False, True], ids=["set by set", "path by path"])
def test_rows_are_those_of_all_walks(seed: int, single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    graph = random_graph(dice)
    if single:
        path_by_path(monkeypatch)
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query(graph.text())
        for _ in range(QUERIES):
            query = Random(dice, []).query()
            counting = query.text().rpartition(" RETURN ")[0] + " RETURN count(*)"
            try:
                expected = Counter(oracle.rows(graph, query))
                assert found(database, graph, query) == expected, f"{query.text()}\n{graph.text()}"
                if query.returns and not query.distinct:
                    assert database.query(counting).scalar() == expected.total(), f"{counting}\n{graph.text()}"
            except oracle.TooMany:
                continue


def test_counts_where_nothing_else_is_returned() -> None:
    """Rows of which no column is left are rows: one of each part of a union, too."""
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query("CREATE (a:B)-[:S]->(b:B), (a)-[:S]->(:B), (b)-[:T]->(:A)")
        for mode in ("", "WALK", "TRAIL", "SIMPLE", "ACYCLIC"):
            for length in ("", "*1..2"):
                matched = f"MATCH {mode} (a)-[:S{length}]->(b) WHERE NOT (b)-[:T]->(:A)"
                assert database.query(f"{matched} RETURN count(*)").scalar() == 1, matched
                assert database.query(f"{matched} RETURN 1").fetchall() == [(1,)], matched


def test_a_vertex_that_is_null_is_matched_by_nothing() -> None:
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query("CREATE (v:N:M)-[:R]->(v), (w)-[:R]->(w), ()")
        absent = "OPTIONAL MATCH (a)-[:R]-{1,3}(d) (()-[:R]-(:N)){1,3} (a:M) WHERE NOT EXISTS { (d)-[]-{0,2}(:M) }"
        for mode in ("INDUCED", "DIFFERENT NODES"):
            text = f"{absent} OPTIONAL MATCH {mode} p = (), q = TRAIL (d) WHERE a <> d RETURN p, d, a"
            assert database.query(text).fetchall() == [(None, None, None)], text
