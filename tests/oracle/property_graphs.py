"""Small random property graphs, as the oracle of whole queries and as the engine have them."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import graphdb
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse
from tests.oracle.reference import PropertyGraph, Reference
from tests.oracle.reference_values import Vertex
from tests.oracle.walks import Edge, Walk
from tests.stops import EVER


def random_graph(seed: int, most: int = 6) -> PropertyGraph:
    """Up to so many vertices, and two edges more, with parallel ones and loops; of every third graph edges have no facts."""
    dice = random.Random(seed)
    count = dice.randint(1, most)
    edges = [
        Edge(k, dice.choice("EEF"), dice.randrange(count), dice.randrange(count))
        for k in range(dice.randint(0, most + 2))
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


@dataclass(frozen=True)
class Opened:
    """A database with a graph in it."""

    database: graphdb.Database
    graph: PropertyGraph

    @classmethod
    def of(cls, database: graphdb.Database, graph: PropertyGraph) -> Opened:
        """Put a graph into an empty database."""
        parts = [f"(v{i}{''.join(f':{label}' for label in labels)})" for i, labels in enumerate(graph.labels)]
        for edge, facts in zip(graph.edges, graph.edge_facts, strict=True):
            given = f"$e{edge.k}" if facts else ""
            parts.append(f"(v{edge.start})-[e{edge.k}:{edge.label} {given}]->(v{edge.end})")
        sets = ", ".join(f"v{i} = $v{i}" for i in range(len(graph.labels)))
        parameters = {f"v{i}": facts for i, facts in enumerate(graph.vertex_facts)}
        parameters |= {f"e{k}": facts for k, facts in enumerate(graph.edge_facts) if facts}
        database.query(f"CREATE {', '.join(parts)} SET {sets}", parameters)
        return cls(database, graph)

    def found(self, text: str, parameters: dict[str, Any]) -> Counter[str]:
        """The rows that the engine gives, in words that the oracle's have too."""
        used = {name: value for name, value in parameters.items() if f"${name}" in text}
        rows = self.database.query(text, used, timeout=EVER).fetchall()
        ids = {node.iri: node.properties["id"] for (node,) in self.database.query("MATCH (v) RETURN v").fetchall()}

        def plain(value: Any) -> Any:
            match value:
                case graphdb.Node():
                    return _vertex(value.properties["id"])
                case graphdb.Relationship():
                    return _edge(value.type, ids[value.start], ids[value.end], value.properties)
                case graphdb.Path():
                    return [plain(one) for one in (*value.nodes, *value.relationships)]
            return value

        return _bag([_mapped(value, plain) for value in row] for row in rows)

    def expected(self, text: str, parameters: dict[str, Any], graph: PropertyGraph | None = None) -> Counter[str]:
        """The rows of the oracle; raises as it does."""
        graph = graph or self.graph
        query = parse(text)
        assert isinstance(query, (ast.Query, ast.Composite))
        rows = Reference(graph, parameters).rows(query)

        def plain(value: Any) -> Any:
            match value:
                case Vertex():
                    return _vertex(graph.facts(value)["id"])
                case Edge():
                    start, end = (graph.vertex_facts[end]["id"] for end in (value.start, value.end))
                    return _edge(value.label, start, end, graph.facts(value))
                case Walk():
                    return [plain(one) for one in (*map(Vertex, value.vertices), *value.edges)]
            return value

        return _bag([_mapped(value, plain) for value in row.values()] for row in rows)


def _vertex(number: int) -> str:
    return f"({number})"


def _edge(label: str, start: int, end: int, facts: Any) -> str:
    return f"({start})-[:{label} {dict(sorted(facts.items()))}]->({end})"


def _mapped(value: Any, plain: Any) -> Any:
    """A value in plain words; the items of lists are in no order, and numbers of one value are the same."""
    value = plain(value)
    match value:
        case list():
            return sorted((_mapped(one, plain) for one in value), key=repr)
        case dict():
            return {key: _mapped(one, plain) for key, one in sorted(value.items())}
        case bool():
            return value
        case int() | float():
            return float(value)
    return value


def _bag(rows: Iterable[list[Any]]) -> Counter[str]:
    return Counter(map(repr, rows))
