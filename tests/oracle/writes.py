"""Statements that write, each with what it makes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.oracle.reference import PropertyGraph
from tests.oracle.walks import Edge

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Write:
    """A statement, and the graph after it, of the graph before it."""

    text: str
    made: Callable[[PropertyGraph], PropertyGraph]


def _edges(graph: PropertyGraph, edges: Iterable[tuple[Edge, Facts]]) -> PropertyGraph:
    """The graph with these edges, which get numbers of their own."""
    numbered = [(replace(edge, k=k), facts) for k, (edge, facts) in enumerate(edges)]
    return replace(graph, edges=tuple(edge for edge, _ in numbered), edge_facts=tuple(facts for _, facts in numbered))


def _all_edges(graph: PropertyGraph) -> list[tuple[Edge, Facts]]:
    return [*zip(graph.edges, graph.edge_facts, strict=True)]


def _with_ages(graph: PropertyGraph) -> PropertyGraph:
    facts = zip(graph.labels, graph.vertex_facts, strict=True)
    return replace(graph, vertex_facts=tuple({**of, "age": 2 - of["id"]} if "N" in n else of for n, of in facts))


def _without_ages(graph: PropertyGraph) -> PropertyGraph:
    return replace(graph, vertex_facts=tuple({k: v for k, v in of.items() if k != "age"} for of in graph.vertex_facts))


def _relabelled(graph: PropertyGraph) -> PropertyGraph:
    return replace(graph, labels=tuple("M" if "N" in labels else labels for labels in graph.labels))


def _joined(graph: PropertyGraph) -> PropertyGraph:
    vertices = range(len(graph.labels))
    pairs = [(a, b) for a in vertices for b in vertices if "N" in graph.labels[a] and "M" in graph.labels[b]]
    return _edges(graph, [*_all_edges(graph), *((Edge(0, "F", a, b), {"age": 1}) for a, b in pairs)])


def _aged_edges(graph: PropertyGraph) -> PropertyGraph:
    return _edges(graph, ((e, {**of, "age": 2} if e.label == "E" else of) for e, of in _all_edges(graph)))


def _without_e(graph: PropertyGraph) -> PropertyGraph:
    return _edges(graph, (pair for pair in _all_edges(graph) if pair[0].label != "E"))


def _without_first(graph: PropertyGraph) -> PropertyGraph:
    left = replace(graph, labels=graph.labels[1:], vertex_facts=graph.vertex_facts[1:])
    there = [(edge, facts) for edge, facts in _all_edges(graph) if edge.start and edge.end]
    return _edges(left, ((replace(e, start=e.start - 1, end=e.end - 1), facts) for e, facts in there))


def _with_others(graph: PropertyGraph) -> PropertyGraph:
    """Each vertex has a new neighbour: vertices are numbered by their ids."""
    count = len(graph.labels)
    longer = replace(
        graph,
        labels=(*graph.labels, *["M"] * count),
        vertex_facts=(*graph.vertex_facts, *({"id": 10 + i, "age": 1} for i in range(count))),
    )
    return _edges(longer, [*_all_edges(graph), *((Edge(0, "E", count + i, i), {}) for i in range(count))])


def _merged(graph: PropertyGraph) -> PropertyGraph:
    """Each vertex has a loop of label F: what has one is not changed."""
    there = {edge.start for edge in graph.edges if edge.label == "F" and edge.start == edge.end}
    new = [v for v in range(len(graph.labels)) if v not in there]
    return _edges(graph, [*_all_edges(graph), *((Edge(0, "F", v, v), {"age": 0}) for v in new)])


WRITES = [
    Write("MATCH (n:N) SET n.age = 2 - n.id", _with_ages),
    Write("MATCH (n) REMOVE n.age", _without_ages),
    Write("MATCH (n:N) SET n:M REMOVE n:N", _relabelled),
    Write("MATCH (a:N), (b:M) CREATE (a)-[:F {age: 1}]->(b)", _joined),
    Write("MATCH ()-[e:E]->() SET e.age = 2", _aged_edges),
    Write("MATCH ()-[e:E]->() DELETE e", _without_e),
    Write("MATCH (n {id: 0}) DETACH DELETE n", _without_first),
    Write("MATCH (n) CREATE (n)<-[:E]-(:M {id: 10 + n.id, age: 1})", _with_others),
    Write("MATCH (n) MERGE (n)-[e:F]->(n) ON CREATE SET e.age = 0", _merged),
]
