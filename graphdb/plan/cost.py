"""What a plan is expected to do: rows and work, from degree statistics and the sizes of candidate sets.

The model is the textbook's: a join of ``|A|`` and ``|B|`` rows over a relation of T pairs with S and O distinct ends
keeps ``|A| |B| T / (max(|A|, S) max(|B|, O))`` rows; conditions are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphdb.pattern.graph import PatternGraph
from graphdb.storage.graph import DataGraph

_LOOP = 0.05
"""The share of vertices guessed to have a self loop; the same for a condition that nothing is known about."""
SEARCH = 4.0
"""What one more neighbour list in an intersection costs, in elements per candidate."""


@dataclass(frozen=True, slots=True)
class Link:
    """A pattern edge, or a positive edge test, between two different pattern vertices."""

    a: int
    b: int
    selectivity: float
    """The share of pairs of candidates that it joins."""
    degree_a: float
    """How long a neighbour list of an ``a`` is on average."""
    degree_b: float


@dataclass(frozen=True, slots=True)
class Estimates:
    """Sizes of the pattern vertices' candidate sets, and the links between them."""

    sizes: tuple[float, ...]
    links: tuple[tuple[tuple[int, float, float], ...], ...]
    """Per vertex: (neighbour, selectivity, average length of the *neighbour's* list that leads here)."""


def estimate(pattern: PatternGraph, graph: DataGraph) -> Estimates:
    """Estimate every vertex and link of a pattern."""
    count = len(pattern.vertices)
    sizes = [float(graph.vertices)] * count
    isolated = [True] * count
    conditions = [(edge, False) for edge in pattern.edges]
    conditions += [(test, True) for test in pattern.edge_tests if not test.negated]  # type: ignore[misc]
    ends = []
    for edge, is_test in conditions:
        known = graph.statistics(edge.labels)
        triples, subjects, objects = float(known.triples), float(known.subjects), float(known.objects)
        if not edge.directed:
            subjects = objects = min(subjects + objects, float(graph.vertices))
            triples *= 2
        ends.append((edge, is_test, triples, max(subjects, 1.0), max(objects, 1.0)))
        if not is_test:
            isolated[edge.source] = isolated[edge.target] = False
            sizes[edge.source] = min(sizes[edge.source], subjects)
            sizes[edge.target] = min(sizes[edge.target], objects)
    for v, vertex in enumerate(pattern.vertices):
        if vertex.candidates is not None:
            sizes[v] = float(len(vertex.candidates))
        elif isolated[v]:
            sizes[v] = float(graph.resources)
    links: list[list[tuple[int, float, float]]] = [[] for _ in range(count)]
    for edge, is_test, triples, subjects, objects in ends:
        a, b = edge.source, edge.target
        if a == b:
            sizes[a] *= _LOOP
            continue
        share = triples / (max(sizes[a], subjects) * max(sizes[b], objects))
        if is_test:
            share = min(share, 1.0)
        links[b].append((a, share, triples / subjects))
        links[a].append((b, share, triples / objects))
    return Estimates(tuple(sizes), tuple(map(tuple, links)))


def extend(estimates: Estimates, bound: int, rows: float, vertex: int) -> tuple[float, float]:
    """(rows, work) of binding ``vertex`` next, given ``rows`` bindings of the vertices in the bit set ``bound``."""
    kept = estimates.sizes[vertex]
    shortest, lists = kept, 0
    for other, share, degree in estimates.links[vertex]:
        if bound >> other & 1:
            kept *= share
            shortest = min(shortest, degree) if lists else degree
            lists += 1
    return rows * kept, rows * (1.0 + shortest * (1.0 + SEARCH * max(lists - 1, 0)))
