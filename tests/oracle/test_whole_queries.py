"""Whole queries of any clauses against the oracle that evaluates them row by row (:mod:`tests.oracle.reference`).

``GRAPHDB_FUZZ`` multiplies the number of examples, and that of the graphs.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse
from tests.fuzz import FUZZ, SAME, scaled
from tests.oracle.queries import PARAMETERS, queries
from tests.oracle.reference import PropertyGraph, Reference
from tests.oracle.reference_values import Unclear, Vertex
from tests.oracle.walks import Edge, TooMany, Walk

GRAPHS = 6 if FUZZ < 1 else 40


def _graph(seed: int) -> PropertyGraph:
    """Up to six vertices and eight edges, parallel ones and loops among them; of every third graph edges have no facts."""
    dice = random.Random(seed)
    count = dice.randint(1, 6)
    edges = [
        Edge(k, dice.choice("EEF"), dice.randrange(count), dice.randrange(count)) for k in range(dice.randint(0, 8))
    ]
    if seed % 2:
        edges = [*{(edge.label, edge.start, edge.end): edge for edge in edges}.values()]
        edges = [Edge(k, edge.label, edge.start, edge.end) for k, edge in enumerate(edges)]

    def some(**facts: Any) -> dict[str, Any]:
        return {key: value for key, value in facts.items() if dice.random() < 0.7}

    vertices = tuple(
        {"id": i}
        | some(
            age=dice.randrange(3),
            name=dice.choice(["a", "b", "ab", ""]),
            weight=i / 2,
            mixed=dice.choice([1, 2.5, "a", True]),
            nick=dice.choice("xy"),
            born=dt.date(2020, dice.randint(1, 3), 1),
        )
        for i in range(count)
    )
    facts = tuple({"k": edge.k} | some(age=dice.randrange(3), mixed=dice.choice([1, "a"])) for edge in edges)
    labels = tuple(dice.choice(["", "N", "M", "NM"]) for _ in vertices)
    return PropertyGraph(labels, tuple(edges), seed % 3 > 0, vertices, facts if seed % 3 else tuple({} for _ in edges))


def _made(graph: PropertyGraph) -> tuple[str, dict[str, Any]]:
    """The graph as CREATE, with its parameters."""
    parts = []
    for i, labels in enumerate(graph.labels):
        parts.append(f"(v{i}{''.join(f':{label}' for label in labels)})")
    for edge, facts in zip(graph.edges, graph.edge_facts, strict=True):
        parts.append(f"(v{edge.start})-[e{edge.k}:{edge.label} {'$' + f'e{edge.k}' if facts else ''}]->(v{edge.end})")
    sets = ", ".join(f"v{i} = $v{i}" for i in range(len(graph.labels)))
    parameters = {f"v{i}": facts for i, facts in enumerate(graph.vertex_facts)}
    parameters |= {f"e{k}": facts for k, facts in enumerate(graph.edge_facts) if facts}
    return f"CREATE {', '.join(parts)} SET {sets}", parameters


Opened = Callable[[int], tuple[graphdb.Database, PropertyGraph]]


@pytest.fixture(scope="module")
def opened() -> Iterator[Opened]:
    """The database of each graph, made when it is first asked for."""
    with ExitStack() as stack:
        made: dict[int, tuple[graphdb.Database, PropertyGraph]] = {}

        def of(seed: int) -> tuple[graphdb.Database, PropertyGraph]:
            if seed not in made:
                graph = _graph(seed)
                database = stack.enter_context(graphdb.connect(threads=1, device="cpu"))
                text, parameters = _made(graph)
                database.query(text, parameters)
                made[seed] = database, graph
            return made[seed]

        yield of


def _plain(graph: PropertyGraph, ids: dict[str, int], value: Any) -> Any:
    """A value of the engine's or the oracle's in words that both share; lists are in no order."""

    def edge(label: str, start: int, end: int, facts: Any) -> str:
        return f"({start})-[:{label} {dict(facts)}]->({end})"

    match value:
        case graphdb.Node():
            return f"({ids[value.iri]})"
        case graphdb.Relationship():
            return edge(value.type, ids[value.start], ids[value.end], sorted(value.properties.items()))
        case graphdb.Path():
            return [_plain(graph, ids, one) for one in (*value.nodes, *value.relationships)]
        case Vertex():
            return f"({int(value)})"
        case Edge():
            return edge(value.label, value.start, value.end, sorted(graph.facts(value).items()))
        case Walk():
            return [_plain(graph, ids, one) for one in (*map(Vertex, value.vertices), *value.edges)]
        case list():
            return sorted((_plain(graph, ids, one) for one in value), key=repr)
        case bool() | None:
            return value
        case int() | float():
            return float(value)
    return value


@settings(
    max_examples=scaled(150),
    deadline=None,
    derandomize=SAME,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(text=queries(), seed=st.integers(0, GRAPHS - 1))
def test_rows_are_those_of_the_oracle(opened: Opened, text: str, seed: int) -> None:
    database, graph = opened(seed)
    note(text)
    query = parse(text)
    assert isinstance(query, (ast.Query, ast.Composite))
    try:
        rows = Reference(graph, PARAMETERS).rows(query)
    except (TooMany, Unclear) as reason:
        event(f"not compared: {type(reason).__name__} {reason}")
        return
    used = {name: value for name, value in PARAMETERS.items() if f"${name}" in text}
    ids = {node.iri: node.properties["id"] for (node,) in database.query("MATCH (v) RETURN v").fetchall()}

    def bag(found: Any) -> Counter[str]:
        return Counter(repr([_plain(graph, ids, value) for value in row]) for row in found)

    try:
        found = database.query(text, used, timeout=60).fetchall()
    except graphdb.NotSupportedError as reason:
        event(f"not supported: {reason}")
        return
    assert bag(found) == bag(one.values() for one in rows)
