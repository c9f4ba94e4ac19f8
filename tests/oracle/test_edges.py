"""Edges with properties and parallel edges, in SQL and Python, against brute force over lists in Python.

Patterns of up to three edges over small multigraphs: directions, labels, conditions before, in and after the match, all
modes that know edges, rows and aggregates.  ``GRAPHDB_FUZZ`` multiplies the number of examples.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.plan.passes import counting
from graphdb.relational.edges import parallel_edges as choices
from graphdb.relational.edges import subsets
from tests.fuzz import scaled
from tests.oracle.routes import in_python

VARIABLES = "abcd"
EDGES = "rst"


@dataclass(frozen=True)
class Edge:
    number: int
    label: str
    start: int
    end: int
    facts: tuple[tuple[str, Any], ...]

    def get(self, key: str) -> Any:
        return dict(self.facts).get(key)


@dataclass
class Graph:
    """Vertices are numbers, which are their ids; a label each, of N and M."""

    labels: list[str]
    edges: list[Edge]
    database: graphdb.Database = field(default_factory=lambda: graphdb.connect(threads=1, device="cpu"))


def _graph(seed: int) -> Graph:
    """Parallel edges, self loops; K has properties mostly, L at times, F never; every second graph names more."""
    dice = random.Random(seed)
    count = 3 + seed
    labels = [dice.choice("NM") for _ in range(count)]
    edges = []
    for number in range(3 * count):
        label = dice.choice("KKKLLF")
        facts: dict[str, Any] = {}
        if label != "F" and dice.random() < (0.8 if label == "K" else 0.3):
            facts = {
                key: value for key, value in (("x", dice.randrange(3)), ("y", dice.choice("pq"))) if dice.random() < 0.8
            }
            if seed % 2 and dice.random() < 0.5:
                facts["z"] = dice.choice([1, 1.5, "p", True])
        edges.append(Edge(number, label, dice.randrange(count), dice.randrange(count), tuple(facts.items())))
    for edge in dice.sample(edges, 3):  # without properties, beside one that has them
        edges.append(Edge(len(edges), edge.label, edge.start, edge.end, ()))
    graph = Graph(labels, edges)
    nodes = [f"(v{i}:{label} {{id: {i}}})" for i, label in enumerate(labels)]
    links = []
    for edge in edges:
        facts_text = ", ".join(f"{key}: {value!r}" for key, value in edge.facts).replace("True", "true")
        links.append(f"(v{edge.start})-[:{edge.label} {{{facts_text}}}]->(v{edge.end})")
    graph.database.query("CREATE " + ", ".join(nodes + links))
    return graph


@pytest.fixture(scope="module")
def graphs() -> Iterator[list[Graph]]:
    made = [_graph(seed) for seed in range(5)]
    yield made
    for graph in made:
        graph.database.close()


# --- patterns, as text and as what they mean -----------------------------------------------------------------------

Row = dict[str, Any]
"""Vertices by variable as numbers, edges as :class:`Edge`."""


@dataclass(frozen=True)
class Link:
    name: str
    left: str
    right: str
    direction: str
    labels: tuple[str, ...]
    named: bool
    inline: tuple[str, Any] | None

    def text(self) -> str:
        name = self.name if self.named else ""
        labels = f":{'|'.join(self.labels)}" if self.labels else ""
        facts = f" {{{self.inline[0]}: {self.inline[1]!r}}}" if self.inline else ""
        arrows = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[self.direction]
        return f"({self.left}){arrows[0]}[{name}{labels}{facts}]{arrows[1]}({self.right})"

    def matches(self, graph: Graph) -> Iterator[Row]:
        for edge in graph.edges:
            if self.labels and edge.label not in self.labels:
                continue
            if self.inline and edge.get(self.inline[0]) != self.inline[1]:
                continue
            ways = {(edge.start, edge.end)} if self.direction == "out" else {(edge.end, edge.start)}
            if self.direction == "both":
                ways = {(edge.start, edge.end), (edge.end, edge.start)}
            for left, right in ways:
                if self.left != self.right or left == right:
                    yield {self.name: edge, self.left: left, self.right: right}


def brute(graph: Graph, links: list[Link], mode: str) -> Iterator[Row]:
    """All matches of a pattern."""
    for parts in itertools.product(*(list(link.matches(graph)) for link in links)):
        row: Row = {}
        if any(row.setdefault(name, value) != value for part in parts for name, value in part.items()):
            continue
        numbers = [row[link.name].number for link in links]
        vertices = [row[name] for name in row if name in VARIABLES]
        if mode != "REPEATABLE ELEMENTS" and len(set(numbers)) < len(numbers):
            continue
        if mode == "DIFFERENT NODES" and len(set(vertices)) < len(vertices):
            continue
        yield row


Value = Callable[[Row], Any]


def _compare(left: Any, operator: str, right: Any) -> bool:
    """Whether a comparison is true: unknown is not."""
    if left is None or right is None:
        return False
    return {"=": left == right, "<>": left != right, ">": operator == ">" and left > right}[operator]


@st.composite
def questions(
    draw: st.DrawFn,
) -> tuple[str, list[Link], str, Callable[[Row], bool], list[tuple[str, Value | str]], bool]:
    pick = lambda *choices: draw(st.sampled_from(choices))  # noqa: E731
    links: list[Link] = []
    used = ["a"]
    for name in EDGES[: pick(1, 1, 2, 2, 3)]:
        left = pick(*used)
        right = pick(*used, *VARIABLES[len(used) : len(used) + 1], *VARIABLES[len(used) : len(used) + 1])
        used += [right] if right not in used else []
        labels = pick(("K",), ("K",), ("L",), ("F",), ("K", "L"), ("K", "F"), ())
        inline = pick(None, None, None, ("x", 1), ("y", "p"))
        links.append(Link(name, left, right, pick("out", "out", "in", "both"), labels, pick(True, True, False), inline))
    mode = pick("DIFFERENT EDGES", "DIFFERENT EDGES", "REPEATABLE ELEMENTS", "DIFFERENT NODES")
    names = [link.name for link in links if link.named]

    def value() -> tuple[str, Value]:
        kinds = ["id", *(["fact", "fact", "type"] if names else [])]
        match pick(*kinds):
            case "fact":
                edge, key = pick(*names), pick("x", "x", "y")
                return f"{edge}.{key}", lambda row: row[edge].get(key)
            case "type":
                edge = pick(*names)
                return f"type({edge})", lambda row: row[edge].label
        vertex = pick(*used)
        return f"{vertex}.id", lambda row: row[vertex]

    tests: list[tuple[str, Callable[[Row], bool]]] = []
    for _ in range(pick(0, 0, 1, 1, 2)):
        if not names:
            break
        edge, other = pick(*names), pick(*names)
        tests.append(
            pick(
                (f"{edge}.x > 0", lambda row, e=edge: _compare(row[e].get("x"), ">", 0)),
                (f"{edge}.x IS NULL", lambda row, e=edge: row[e].get("x") is None),
                (f"{edge}.x = {other}.x", lambda row, e=edge, o=other: _compare(row[e].get("x"), "=", row[o].get("x"))),
                (f"{edge}.x = a.id", lambda row, e=edge: _compare(row[e].get("x"), "=", row["a"])),
                (
                    f"({edge}.y = 'p' OR {edge}.x = 2)",
                    lambda row, e=edge: row[e].get("y") == "p" or row[e].get("x") == 2,
                ),
                (f"type({edge}) = 'K'", lambda row, e=edge: row[e].label == "K"),
                (f"{edge} <> {other}", lambda row, e=edge, o=other: row[e].number != row[o].number),
            )
        )
    where = " WHERE " + " AND ".join(text for text, _ in tests) if tests else ""
    items: list[tuple[str, Value | str]] = [value() for _ in range(pick(0, 1, 2))]
    for _ in range(pick(0, 0, 1, 2) if items else 1):
        items.append((pick("count(*)", *(f"{f}({e}.x)" for e in names for f in ("sum", "count", "min")),
                           *(f"count({e})" for e in names), *(f"count(DISTINCT {e})" for e in names)), "aggregate"))  # fmt: skip
    distinct = pick(False, False, True) and all(callable(v) for _, v in items)
    returned = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
    pattern = ", ".join(link.text() for link in links)
    query = f"MATCH {mode} {pattern}{where} RETURN {'DISTINCT ' if distinct else ''}{returned}"
    return query, links, mode, lambda row: all(test(row) for _, test in tests), items, distinct


def _aggregate(text: str, rows: list[Row]) -> Any:
    if text == "count(*)":
        return len(rows)
    function, _, argument = text[:-1].partition("(")
    if argument.startswith("DISTINCT "):
        return len({row[argument.split()[1]].number for row in rows})
    edge, _, key = argument.partition(".")
    if not key:
        return len(rows)
    values = [value for row in rows if (value := row[edge].get(key)) is not None]
    return {"sum": sum(values), "count": len(values), "min": min(values, default=None)}[function]


def expected(rows: list[Row], items: list[tuple[str, Value | str]], distinct: bool) -> Counter[tuple[Any, ...]]:
    keys = [tuple(value(row) for _, value in items if callable(value)) for row in rows]
    if all(callable(value) for _, value in items):
        return Counter(set(keys) if distinct else keys)
    groups: dict[tuple[Any, ...], list[Row]] = {} if any(callable(value) for _, value in items) else {(): []}
    for key, row in zip(keys, rows, strict=True):
        groups.setdefault(key, []).append(row)
    found = []
    for key, members in groups.items():
        left = iter(key)
        found.append(tuple(next(left) if callable(value) else _aggregate(text, members) for text, value in items))
    return Counter(found)


# --- the tests -----------------------------------------------------------------------------------------------------


@settings(max_examples=scaled(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    at=st.integers(0, 4),
    question=questions(),
    scanned=st.sampled_from([0, choices._SCANNED]),
    planned=st.sampled_from([-(1 << 60), subsets._PLANNED]),
)
def test_matches_of_edges(graphs: list[Graph], at: int, question: Any, scanned: int, planned: int) -> None:
    query, links, mode, holds, items, distinct = question
    graph = graphs[at]
    rows = [row for row in brute(graph, links, mode) if holds(row)]
    want = expected(rows, items, distinct)
    note(f"{query}\nlabels {graph.labels}\nedges {graph.edges}")
    database = graph.database
    database._state.plans.clear()
    with mock.patch.object(choices, "_SCANNED", scanned), mock.patch.object(subsets, "_PLANNED", planned):
        event(f"among the edges that fulfil conditions: {' edges]-' in database.explain(query)}")
        _compare_all(database, query, want)


@pytest.mark.parametrize(("labels", "want"), [("L", 0), ("K|L", 1)])
def test_edges_among_those_that_conditions_leave_have_labels_that_others_leave(labels: str, want: int) -> None:
    with graphdb.connect() as database, mock.patch.object(choices, "_SCANNED", 0):
        database.query("CREATE (a:N), (b:N), (a)-[:L {x: 1}]->(a), (b)-[:L {x: 1}]->(b), (a)-[:K {x: 1}]->(a)")
        query = f"MATCH (a)-[r:{labels} {{x: 1}}]->(a) WHERE type(r) = 'K' RETURN count(*)"
        with mock.patch.object(subsets, "_PLANNED", -(1 << 60)):
            assert database.query(query).fetchall() == [(want,)]


@st.composite
def counts(draw: st.DrawFn) -> tuple[str, list[Link], str, list[tuple[str, Value | str]]]:
    """Numbers of matches of patterns without conditions, in all or by a vertex; several clauses are one pattern."""
    pick = lambda *choices: draw(st.sampled_from(choices))  # noqa: E731
    links: list[Link] = []
    used = ["a"]
    for name in EDGES[: pick(1, 2, 2, 3)]:
        left = pick(*used)
        right = pick(*used, *VARIABLES[len(used) : len(used) + 1] * 2)
        used += [right] if right not in used else []
        labels = pick(("K",), ("K",), ("K",), ("L",), ("F",), ("K", "L"), ())
        links.append(Link(name, left, right, pick("out", "out", "in", "both"), labels, pick(True, False), None))
    mode = pick("DIFFERENT EDGES", "DIFFERENT EDGES", "REPEATABLE ELEMENTS", "DIFFERENT NODES")
    vertex = pick(None, *used)
    items: list[tuple[str, Value | str]] = [] if vertex is None else [(f"{vertex}.id", lambda row: row[vertex])]
    items.append(("count(*)", "aggregate"))
    returned = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
    return f"MATCH {mode} {', '.join(link.text() for link in links)} RETURN {returned}", links, mode, items


@settings(max_examples=scaled(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(at=st.integers(0, 4), question=counts())
def test_counts_by_weights(graphs: list[Graph], at: int, question: Any) -> None:
    query, links, mode, items = question
    graph = graphs[at]
    note(f"{query}\nlabels {graph.labels}\nedges {graph.edges}")
    graph.database._state.plans.clear()
    always = partial(counting.weighing_plan, always=True)
    with mock.patch.object(choices, "WORTH", 0.0), mock.patch.object(choices, "weighing_plan", always):
        event(f"counted by weights: {'without enumerating' in graph.database.explain(query)}")
        _compare_all(graph.database, query, expected(list(brute(graph, links, mode)), items, distinct=False))


def _compare_all(database: graphdb.Database, query: str, want: Counter[tuple[Any, ...]]) -> None:
    assert Counter(database.query(query)) == want
    assert Counter(in_python(database, query)) == want  # type: ignore[arg-type]
