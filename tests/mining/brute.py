"""Mining by brute force: every subset of vertices or edges, every order of a pattern's vertices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations, permutations

import numpy as np

from graphdb.mining.graph import MiningGraph

Edge = tuple[int, int, int]
Shape = tuple[tuple[int, ...], tuple[Edge, ...]]
"""Labels of vertices, and edges among their places."""


def random_graph(
    random: np.random.Generator, vertices: int, edges: int, *, directed: bool, edge_labels: int = 1, labels: int = 1
) -> MiningGraph:
    """A graph of random edges, loops and parallel ones among them; each vertex has one label."""
    ends = random.integers(0, vertices, (2, edges))
    kinds = random.integers(0, edge_labels, edges)
    own = (np.arange(vertices), random.integers(0, labels, vertices))
    return MiningGraph.of(*ends, kinds, directed=directed, vertex_labels=own)


def edges_of(graph: MiningGraph) -> list[Edge]:
    """The graph's edges as tuples."""
    return list(zip(graph.source.tolist(), graph.target.tolist(), graph.label.tolist(), strict=True))


def connected(vertices: Iterable[int], edges: Iterable[Edge]) -> bool:
    """Whether edges join all of some vertices."""
    left, edges = set(vertices), list(edges)
    reached = {left.pop()}
    while found := {x for a, b, _ in edges for x in (a, b) if (a in reached or b in reached) and x in left}:
        reached |= found
        left -= found
    return not left


def least(labels: dict[int, int], edges: Iterable[Edge], directed: bool) -> Shape:
    """The least way to write a pattern, over all orders of its vertices: a canonical label by definition."""
    edges = list(edges)
    shapes = []
    for order in permutations(labels):
        place = {vertex: i for i, vertex in enumerate(order)}
        written = [(place[a], place[b], kind) for a, b, kind in edges]
        if not directed:
            written = [(min(a, b), max(a, b), kind) for a, b, kind in written]
        shapes.append((tuple(labels[v] for v in order), tuple(sorted(written))))
    return min(shapes)


def induced(graph: MiningGraph, size: int, labels: list[int]) -> Counter[Shape]:
    """How many connected induced subgraphs there are of each shape."""
    edges = edges_of(graph)
    found: Counter[Shape] = Counter()
    for chosen in combinations(range(len(graph)), size):
        inside = [edge for edge in edges if edge[0] in chosen and edge[1] in chosen]
        if connected(chosen, inside):
            found[least({v: labels[v] for v in chosen}, inside, graph.directed)] += 1
    return found


def by_edges(graph: MiningGraph, size: int, labels: list[int]) -> Counter[Shape]:
    """How many connected sets of edges there are of each shape."""
    found: Counter[Shape] = Counter()
    for chosen in combinations(edges_of(graph), size):
        vertices = {x for a, b, _ in chosen for x in (a, b)}
        if connected(vertices, chosen):
            found[least({v: labels[v] for v in vertices}, chosen, graph.directed)] += 1
    return found


def embeddings(graph: MiningGraph, shape: Shape, labels: list[set[int]]) -> list[tuple[int, ...]]:
    """All ways to place a pattern's vertices on different vertices that have their labels, edges on edges."""
    edges = set(edges_of(graph))
    if not graph.directed:
        edges |= {(b, a, kind) for a, b, kind in edges}
    return [
        places
        for places in permutations(range(len(graph)), len(shape[0]))
        if all(label in labels[v] for label, v in zip(shape[0], places, strict=True))
        and all((places[a], places[b], kind) in edges for a, b, kind in shape[1])
    ]


def support(found: list[tuple[int, ...]]) -> int:
    """The minimum image support of a pattern with these embeddings."""
    return min(len(set(column)) for column in zip(*found, strict=True)) if found else 0
