"""Cliques against NetworkX."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError
from graphdb.mining import Limits, MiningGraph
from graphdb.mining.cliques import cliques
from tests.fuzz import scaled
from tests.mining import brute


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(scaled(20)))
def test_cliques_of_random_graphs(seed: int, threads: int) -> None:
    random = np.random.default_rng(seed)
    vertices = int(random.integers(6, 120))
    density = random.choice([0.1, 0.5, 0.8]) if vertices < 30 else random.choice([0.05, 0.3])
    graph = brute.random_graph(random, vertices, int(vertices**2 / 2 * density), directed=seed % 2 == 0)
    plain = nx.Graph((a, b) for a, b, _ in brute.edges_of(graph))
    limits = Limits(threads=threads)
    every = Counter(len(found) for found in nx.find_cliques(plain))
    for least, most in ((3, 130), (3, 4), (5, 8)):
        found = cliques(graph, least, most, maximal=True, limits=limits)
        assert {each.size: each.count for each in found} == {k: n for k, n in every.items() if least <= k <= most}
        for each in found:
            inside = np.searchsorted(graph.ids, each.example).tolist()
            assert len(set(inside)) == each.size
            assert all(plain.has_edge(*pair) for pair in combinations(inside, 2))
            assert not set.intersection(*(set(plain[v]) for v in inside)), "maximal"
    known = (
        Counter(len(found) for found in nx.enumerate_all_cliques(plain) if len(found) <= 6) if density < 0.8 else None
    )
    found = cliques(graph, 3, 6, limits=limits)
    if known is not None:
        assert {each.size: each.count for each in found} == {k: n for k, n in known.items() if k > 2}
    for each in found:
        inside = np.searchsorted(graph.ids, each.example).tolist()
        assert len(set(inside)) == each.size
        assert all(plain.has_edge(*pair) for pair in combinations(inside, 2))


def test_a_hub_and_a_large_clique() -> None:
    """More than 64 higher neighbours, and a vertex with thousands of lower ones."""
    clique = list(combinations(range(100), 2))
    rays = [(0, v) for v in range(100, 6000)]
    graph = MiningGraph.of(*np.array(clique + rays).T)
    (found,) = cliques(graph, 3, 1000, maximal=True)
    assert (found.size, found.count, found.example) == (100, 1, tuple(range(100)))
    assert [each.count for each in cliques(graph, 3, 4)] == [161700, 3921225]


def test_no_cliques() -> None:
    assert cliques(MiningGraph.of([], [])) == []
    assert cliques(MiningGraph.of([0, 1], [1, 2]), maximal=True) == []


def test_memory_is_asked_for_before() -> None:
    graph = brute.random_graph(np.random.default_rng(0), 500, 20_000, directed=False)
    with pytest.raises(MemoryLimitError, match="rows of bits need"):
        cliques(graph, limits=Limits(memory=10_000))
