"""Motifs against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError
from graphdb.mining import EmbeddingTable, Limits, MiningGraph, vertex_extension
from graphdb.mining.motifs import _divided, known_motifs, motifs
from tests.fuzz import scaled
from tests.mining import brute


@pytest.mark.parametrize(
    ("size", "directed", "patterns"), [(3, False, 2), (4, False, 6), (5, False, 21), (3, True, 13)]
)
def test_all_connected_patterns_are_known(size: int, directed: bool, patterns: int) -> None:
    """As many as OEIS A001349 and A003085 have."""
    known = known_motifs(size, directed)
    assert len(known.patterns) == len(set(known.patterns)) == patterns
    assert (np.diag(known.copies) == 1).all()
    assert (np.tril(known.copies, -1) == 0).all(), "what is larger has no copy in what is smaller"
    complete = known.patterns[-1]
    assert len(complete.edges) == size * (size - 1) // (1 if directed else 2)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(scaled(20)))
def test_motifs_of_random_graphs(seed: int, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    if seed % 3 == 0:  # no example is found by one thread in time
        monkeypatch.setattr("graphdb.mining.motifs._ALONE", -1.0)
    vertices = int(random.integers(3, 11))
    edges = int(random.integers(2, vertices * 4))
    graph = brute.random_graph(random, vertices, edges, directed=directed, edge_labels=2, labels=2)
    plain = MiningGraph.of(graph.source, graph.target, directed=directed)
    for size in (3, 4, 5):
        wanted = brute.induced(plain, size, [0] * len(plain))
        for threads in (1, 2):
            found = motifs(graph, size, Limits(threads=threads))
            shapes = {brute.least(dict.fromkeys(range(size), 0), m.pattern.edges, directed): m for m in found}
            assert len(shapes) == len(found)
            assert {shape: motif.count for shape, motif in shapes.items() if motif.count} == wanted
            for shape, motif in shapes.items():
                assert bool(motif.example) == bool(motif.count)
                if motif.example:
                    inside = np.searchsorted(graph.ids, motif.example).tolist()
                    own = [e for e in brute.edges_of(plain) if e[0] in inside and e[1] in inside]
                    assert brute.least(dict.fromkeys(inside, 0), own, directed) == shape
                    placed = {(inside[a], inside[b]) for a, b, _ in motif.pattern.edges}
                    assert placed <= {(a, b) for a, b, _ in own} | {(b, a) for a, b, _ in own if not directed}


def test_enumeration_is_divided_by_work() -> None:
    """What is done says what is left: no piece of several pairs is much of the work, though half of the edges are a hub's."""
    random = np.random.default_rng(1)
    ends = np.concatenate([random.integers(0, 3000, (2, 3000)), np.stack([np.full(3000, 7), np.arange(3000)])], axis=1)
    graph = MiningGraph.of(*ends, directed=True)
    pieces = _divided(graph, 5, Limits(threads=2))
    assert sum(piece.work for piece in pieces) == pytest.approx(1)
    assert max(piece.work for piece in pieces if len(piece.table) > 1) < 0.02
    rows = np.concatenate([piece.table.rows() for piece in pieces])
    assert np.array_equal(rows, vertex_extension(EmbeddingTable.of_vertices(graph), graph).rows())
    assert motifs(MiningGraph.of([], [], directed=True), 5) == []


def test_memory_is_asked_for_before() -> None:
    graph = brute.random_graph(np.random.default_rng(0), 100, 200, directed=True)
    with pytest.raises(MemoryLimitError, match="the codes of sets"):
        motifs(graph, 5, Limits(memory=1 << 20))
