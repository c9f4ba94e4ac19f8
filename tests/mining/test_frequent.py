"""Frequent patterns against brute force: every connected set of edges, every placing of its pattern."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError
from graphdb.mining import EmbeddingTable, Limits, MiningGraph, aggregation, edge_extension
from graphdb.mining.frequent import Frequent, frequent_patterns, memory
from tests.fuzz import scaled
from tests.mining import brute


def shape_of(graph: MiningGraph, found: Frequent) -> brute.Shape:
    labels = {place: int(graph.vertex_labels[label]) for place, label in enumerate(found.pattern.labels)}
    return brute.least(labels, found.pattern.edges, graph.directed)


def labels_of(graph: MiningGraph) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(len(graph))]
    for vertex, label in graph.labelled.tolist():
        found[vertex].add(int(graph.vertex_labels[label]))
    return found


def by_brute_force(graph: MiningGraph, support: int, edges: int) -> dict[brute.Shape, tuple[int, int]]:
    """Support and number of embeddings of each frequent pattern."""
    labels = labels_of(graph)
    shapes = set()
    for size in range(1, edges + 1):
        for chosen in brute.by_edges(graph, size, list(range(len(graph)))):  # by vertex: each set of edges
            for own in product(*(sorted(labels[v]) for v in chosen[0])):
                shapes.add(brute.least(dict(enumerate(own)), chosen[1], graph.directed))
    found = {}
    for shape in shapes:
        placed = brute.embeddings(graph, shape, labels)
        if (least := brute.support(placed)) >= support:
            found[shape] = (least, len(placed))
    return found


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(scaled(24)))
def test_random_graphs(seed: int, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of vertices and edges; several labels of a vertex, or none; edges in both directions, parallel ones."""
    random = np.random.default_rng(seed)
    vertices = int(random.integers(4, 8))
    ends = random.integers(0, vertices, (2, int(random.integers(3, 13))))
    kinds = random.integers(0, random.integers(1, 3), ends.shape[1])
    own = np.argwhere(random.random((vertices, 2)) < (0.5 if seed % 3 == 0 else 0.35))
    if seed % 3 == 1:
        own = np.stack([np.arange(vertices), random.integers(0, 2, vertices)], axis=1)
    graph = MiningGraph.of(*ends, kinds, directed=directed, vertex_labels=(own[:, 0], own[:, 1]))
    for support in (1, 2, 3):
        wanted = by_brute_force(graph, support, 3)
        for threads, steps in ((1, 1 << 17), (2, 0), (1, 9)):  # embeddings are counted one by one, or by the matcher
            monkeypatch.setattr("graphdb.mining.frequent._STEPS", steps)
            found = frequent_patterns(graph, support, 3, matches=True, limits=Limits(threads=threads))
            shapes = {shape_of(graph, each): (each.support, each.matches) for each in found}
            assert len(shapes) == len(found), "each once"
            assert shapes == wanted
        labels, edges = labels_of(graph), set(brute.edges_of(graph))
        for each in found:
            inside = np.searchsorted(graph.ids, each.example).tolist()
            assert len(set(inside)) == len(each.pattern)
            for place, label in enumerate(each.pattern.labels):
                assert int(graph.vertex_labels[label]) in labels[inside[place]]
            for a, b, kind in each.pattern.edges:
                edge = (inside[a], inside[b], kind)
                assert edge in edges or (not directed and (edge[1], edge[0], kind) in edges)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(scaled(10)))
def test_larger_graphs_by_the_primitives(seed: int, directed: bool) -> None:
    """Domains over several words of bits, up to five edges, beside enumeration by extension and aggregation."""
    random = np.random.default_rng(seed)
    edges = int(random.integers(150, 420))
    graph = brute.random_graph(random, 300, edges, directed=directed, edge_labels=2, labels=3)
    support, most = edges // 25, 5  # which more than 10 patterns reach
    found = {each.pattern: each.support for each in frequent_patterns(graph, support, most)}
    wanted = {}
    table = EmbeddingTable.of_edges(graph)
    labels = graph.labelled[:, 1]  # one label each
    for size in range(1, most + 1):
        if size > 1:
            table = edge_extension(table, graph)
        patterns = aggregation(table, graph, labels)
        wanted |= {
            pattern: least
            for pattern, least in zip(patterns.patterns, patterns.supports.tolist(), strict=True)
            if least >= support
        }
    as_shapes = [
        {brute.least(dict(enumerate(p.labels)), p.edges, directed): least for p, least in table.items()}
        for table in (found, wanted)
    ]
    assert as_shapes[0] == as_shapes[1]
    assert len(found) == len(wanted) > 10


def test_little_room_for_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Domains are taken away whenever a worker's array is full."""
    graph = brute.random_graph(np.random.default_rng(1), 200, 500, directed=True, edge_labels=2, labels=2)
    wanted = frequent_patterns(graph, 20, 3)
    monkeypatch.setattr("graphdb.mining.domains._OUT", 1)
    monkeypatch.setattr("graphdb.mining.domains.BUDGET", 50)
    for threads in (1, 3):
        assert frequent_patterns(graph, 20, 3, limits=Limits(threads=threads)) == wanted
    assert len(wanted) > 40


def test_nothing_is_frequent() -> None:
    assert frequent_patterns(MiningGraph.of([], []), 1, 3) == []
    assert frequent_patterns(MiningGraph.of([0], [1]), 3, 3) == []
    (only,) = frequent_patterns(MiningGraph.of([7], [9]), 1, 3, matches=True)
    assert (only.support, only.matches, set(only.example)) == (2, 2, {7, 9})
    (only,) = frequent_patterns(MiningGraph.of([7], [9], directed=True), 1, 3, matches=True)
    assert (only.support, only.matches, set(only.example)) == (1, 1, {7, 9})


def test_memory_is_asked_for_before() -> None:
    graph = brute.random_graph(np.random.default_rng(0), 100, 200, directed=True)
    with pytest.raises(MemoryLimitError, match="domains need"):
        frequent_patterns(graph, 1, 5, limits=Limits(memory=1 << 16))
    graph = brute.random_graph(np.random.default_rng(0), 300, 900, directed=True, edge_labels=3, labels=3)
    some = memory(graph, 1) + 500_000
    with pytest.raises(MemoryLimitError, match=r"(patterns|domains) need"):
        frequent_patterns(graph, 1, 5, limits=Limits(threads=1, memory=some))
