"""Extension, aggregation and filtering against brute force."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest

from graphdb.common.errors import MemoryLimitError, NotSupportedError, QueryInterrupted, QueryTimeout
from graphdb.mining import (
    EmbeddingTable,
    Limits,
    MiningGraph,
    aggregation,
    edge_extension,
    filtering,
    vertex_extension,
)
from graphdb.mining.cliques import cliques
from graphdb.mining.frequent import frequent_patterns
from graphdb.mining.motifs import motifs
from graphdb.mining.primitives import supports
from graphdb.mining.primitives.canonical import canonical
from graphdb.plan.executor import Control
from tests.fuzz import scaled
from tests.mining import brute

SEEDS = range(scaled(20))


def extended(graph: MiningGraph, kind: str, size: int) -> EmbeddingTable:
    table = EmbeddingTable.of_vertices(graph) if kind == "vertex" else EmbeddingTable.of_edges(graph)
    for _ in range(size - 1):
        table = (vertex_extension if kind == "vertex" else edge_extension)(table, graph)
    return table


@pytest.mark.parametrize("seed", SEEDS)
def test_every_connected_set_comes_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    graph = brute.random_graph(random, 9, int(random.integers(5, 16)), directed=seed % 2 == 0, edge_labels=2)
    edges = brute.edges_of(graph)
    for size in (1, 2, 3, 4, 5):
        found = [tuple(sorted(row)) for row in extended(graph, "vertex", size).rows().tolist()]
        sets = combinations(range(len(graph)), size)
        wanted = [s for s in sets if brute.connected(s, [e for e in edges if e[0] in s and e[1] in s])]
        assert sorted(found) == wanted
        if size < 5:
            found = [tuple(sorted(row)) for row in extended(graph, "edge", size).rows().tolist()]
            chosen = (tuple(edges[e] for e in s) for s in combinations(range(len(edges)), size))
            whole = [s for s in chosen if brute.connected({x for a, b, _ in s for x in (a, b)}, s)]
            assert sorted(tuple(edges[e] for e in row) for row in found) == sorted(whole)


@pytest.mark.parametrize("seed", SEEDS)
def test_common_neighbours_make_cliques(seed: int) -> None:
    graph = brute.random_graph(np.random.default_rng(seed), 14, 60, directed=False)
    joined = {(a, b) for a, b, _ in brute.edges_of(graph)}
    table = EmbeddingTable.of_vertices(graph)
    for size in range(2, 6):
        table = vertex_extension(table, graph, to="all")
        sets = combinations(range(len(graph)), size)
        wanted = [list(s) for s in sets if all(pair in joined for pair in combinations(s, 2))]
        assert table.rows().tolist() == wanted, "in order, too"


def test_edges_of_a_label_that_all_have_one_back() -> None:
    """No pair has an edge of the second label one way only."""
    graph = MiningGraph.of([0, 1, 1, 3], [1, 0, 2, 2], [1, 1, 0, 0], directed=True)
    for size in (2, 3, 4):
        found = aggregation(extended(graph, "vertex", size), graph)
        shapes = [brute.least(dict(enumerate(p.labels)), p.edges, True) for p in found.patterns]
        assert dict(zip(shapes, found.counts.tolist(), strict=True)) == brute.induced(graph, size, [0] * len(graph))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_patterns_are_those_of_brute_force(seed: int, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    images = supports._marked if seed % 2 else supports._sorted  # flags, or sorted keys, whatever takes less
    monkeypatch.setattr(supports, "_marked", images)
    monkeypatch.setattr(supports, "_sorted", images)
    graph = brute.random_graph(random, 8, int(random.integers(4, 14)), directed=directed, edge_labels=2, labels=2)
    names = graph.vertex_labels.tolist()
    own = [names[label] for label in graph.label_of.tolist()]
    for kind, sizes in (("vertex", (2, 3, 4, 5)), ("edge", (1, 2, 3, 4))):
        for size in sizes:
            table = extended(graph, kind, size)
            found = aggregation(table, graph)
            count = brute.induced if kind == "vertex" else brute.by_edges
            shapes = [
                brute.least({i: names[label] for i, label in enumerate(p.labels)}, p.edges, directed)
                for p in found.patterns
            ]
            assert dict(zip(shapes, found.counts.tolist(), strict=True)) == count(graph, size, own)
            assert np.array_equal(np.bincount(found.of_row, minlength=len(found)), found.counts)
            for pattern, example in zip(found.patterns, found.examples, strict=True):
                edges = brute.edges_of(graph)
                placed = [(example[a], example[b], kind) for a, b, kind in pattern.edges]
                placed = placed if directed else [(min(a, b), max(a, b), kind) for a, b, kind in placed]
                assert set(placed) <= set(edges)
                assert [own[v] for v in example] == [names[label] for label in pattern.labels]
            if kind == "edge" and size < 4:
                labels = [{label} for label in own]
                for shape, support in zip(shapes, found.supports.tolist(), strict=True):
                    assert support == brute.support(brute.embeddings(graph, shape, labels)), shape


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_canonical_labels_decide_isomorphism(size: int) -> None:
    """All orders of a pattern have one label, and it is another than that of what is not isomorphic to it."""
    random = np.random.default_rng(size)
    orders = np.array(list(permutations(range(size))))
    seen: dict[tuple[int, ...], bytes] = {}
    turned = np.array([0, 1, 3, 2])  # a state as the other vertex of the pair sees it
    for _ in range(scaled(60)):
        labels = random.integers(0, random.integers(1, 3), size)
        above = np.triu(random.choice(4, (size, size), p=[0.4, 0.3, 0.15, 0.15]), 1)
        if random.random() < 0.3:  # regular patterns, which no invariant of vertices distinguishes
            above = np.triu(np.roll(np.eye(size, dtype=int), 1, axis=1) + np.eye(size, k=1 - size, dtype=int).T, 1)
            labels[:] = 0
        cells = above + turned[above].T
        every = cells[orders[:, :, None], orders[:, None, :]]
        found = canonical(labels[orders], every)
        assert len(np.unique(found.codes, axis=0)) == 1, "invariant"
        upper = np.triu_indices(size, 1)
        written = np.concatenate([labels[orders], every[:, upper[0], upper[1]]], axis=1)
        least = min(map(tuple, written.tolist()))
        code = found.codes[0].tobytes()
        assert seen.setdefault(least, code) == code
        assert len(set(seen.values())) == len(seen), "and no other's"
        rows = np.arange(len(orders))[:, None]
        assert np.array_equal(found.labels, labels[orders][rows, found.orders]), "an order of the same pattern"
        same = (found.cells[0] == cells[orders[:, :, None], orders[:, None, :]]).all(axis=(1, 2))
        same &= (found.labels[0] == labels[orders]).all(axis=1)
        # Orders that give the canonical pattern differ by automorphisms.
        ways = orders[same]
        assert len(ways)
        wanted = [min(s for s in range(size) if (ways[:, s] == ways[0, t]).any()) for t in range(size)]
        assert found.orbits[0].tolist() == wanted


def test_patterns_of_seven_vertices_have_no_label() -> None:
    graph = MiningGraph.of(range(7), range(1, 8))
    table = extended(graph, "vertex", 7)
    with pytest.raises(NotSupportedError, match="at most 6"):
        aggregation(table, graph)
    with pytest.raises(NotSupportedError, match="at most 5"):
        aggregation(extended(graph, "edge", 6), graph)


def test_filters_compress_all_columns() -> None:
    random = np.random.default_rng(5)
    graph = brute.random_graph(random, 12, 40, directed=False)
    for kind in ("vertex", "edge"):
        table = extended(graph, kind, 3)
        keep = random.random(len(table)) < 0.1
        found = filtering(table, keep)
        assert found.rows().tolist() == table.rows()[keep].tolist()
        for i in range(1, found.size):
            used = np.unique(found.columns[i].parents)
            assert np.array_equal(used, np.arange(len(found.columns[i - 1].values))), "no row without a child"
        assert found.nbytes < table.nbytes
        assert len(filtering(table, np.zeros(len(table), bool)).rows()) == 0
        with pytest.raises(ValueError, match="a value for each"):
            filtering(table, keep[1:])


def test_a_filtered_table_is_extended_further() -> None:
    graph = brute.random_graph(np.random.default_rng(7), 12, 40, directed=False)
    table = extended(graph, "vertex", 3)
    triangles = np.array([len(p.edges) == 3 for p in aggregation(table, graph).patterns])
    found = filtering(table, triangles[aggregation(table, graph).of_row])
    rows = vertex_extension(found, graph).rows()
    whole = extended(graph, "vertex", 4).rows()
    chosen = {tuple(row) for row in found.rows().tolist()}
    assert rows.tolist() == [row for row in whole.tolist() if tuple(row[:3]) in chosen]


def test_threads_find_the_same() -> None:
    graph = brute.random_graph(np.random.default_rng(3), 5000, 6000, directed=True, edge_labels=2, labels=3)
    tables = []
    for threads in (1, 3):
        limits = Limits(threads=threads)
        table = EmbeddingTable.of_edges(graph)
        for _ in range(2):
            table = edge_extension(table, graph, limits)
        found = aggregation(table, graph, limits=limits)
        tables.append((table.rows().tolist(), found.patterns, found.counts.tolist(), found.supports.tolist()))
    assert tables[0] == tables[1]
    assert len(tables[0][0]) > 20_000


def test_several_labels_of_a_vertex_are_one_combination() -> None:
    graph = MiningGraph.of([0, 1, 2], [1, 2, 3], vertex_labels=([0, 0, 1, 1, 2], [5, 6, 5, 6, 5]))
    assert graph.vertex_labels.tolist() == [-1, 5, 6]
    first, second, third, fourth = graph.label_of.tolist()
    assert first == second
    assert len({first, third, fourth}) == 3
    assert Counter(aggregation(EmbeddingTable.of_edges(graph), graph).counts.tolist()) == {1: 3}
    assert aggregation(EmbeddingTable.of_edges(graph), graph, labels=[0, 0, 0, 0]).counts.tolist() == [3]


def test_limits() -> None:
    graph = brute.random_graph(np.random.default_rng(1), 1000, 15_000, directed=False)
    table = EmbeddingTable.of_vertices(graph)
    for _ in range(2):
        table = vertex_extension(table, graph)
    with pytest.raises(MemoryLimitError, match="embeddings of 4 vertices need"):
        vertex_extension(table, graph, limits=Limits(memory=1 << 24))
    with pytest.raises(QueryTimeout):
        vertex_extension(table, graph, limits=Limits(control=Control(timeout=0.05)))
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(QueryInterrupted):
        vertex_extension(table, graph, limits=Limits(control=Control(cancelled=cancelled)))


def test_images_take_flags_or_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags, where they take no more than keys would."""
    graph = brute.random_graph(np.random.default_rng(1), 300, 900, directed=False, labels=3)
    table = extended(graph, "vertex", 3)
    called: list[str] = []
    for name in ("_marked", "_sorted"):
        plain = getattr(supports, name)
        noted = lambda *a, plain=plain, name=name: called.append(name) or plain(*a)  # noqa: E731
        monkeypatch.setattr(supports, name, noted)
    aggregation(table, graph)
    aggregation(EmbeddingTable.of_edges(graph, range(20)), graph)
    assert called == ["_marked", "_sorted"]


def _sets(graph: MiningGraph, limits: Limits) -> object:
    table = vertex_extension(EmbeddingTable.of_vertices(graph), graph, limits=limits)
    return aggregation(vertex_extension(table, graph, limits=limits), graph, limits=limits)


@pytest.mark.parametrize(
    "work",
    [
        _sets,
        lambda graph, limits: cliques(graph, 3, 5, limits=limits),
        lambda graph, limits: cliques(graph, 3, 50, maximal=True, limits=limits),
        lambda graph, limits: motifs(graph, 4, limits),
        lambda graph, limits: frequent_patterns(graph, 1000, 2, limits=limits),
    ],
    ids=["primitives", "cliques", "maximal", "motifs", "frequent"],
)
def test_memory_stays_below_its_limit(work: Callable[[MiningGraph, Limits], object]) -> None:
    """Whatever the limit: either it is kept to, or an error comes before it is passed."""
    random = np.random.default_rng(0)
    ends, labels = random.integers(0, 12_000, (2, 60_000)), (np.arange(12_000), random.integers(0, 6, 12_000))

    def peak(limit: int | None) -> tuple[int, bool]:
        graph = MiningGraph.of(*ends, vertex_labels=labels)
        assert graph.oriented.nbytes
        tracemalloc.start()
        try:
            work(graph, Limits(threads=2, memory=limit))
            ended = True
        except MemoryLimitError:
            ended = False
        finally:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return most, ended

    work(
        MiningGraph.of(*ends, vertex_labels=labels), Limits(threads=2)
    )  # kernels are compiled, which takes memory, too
    taken, _ = peak(None)
    for part in (0.3, 0.7, 3):
        most, ended = peak(int(part * taken))
        assert most < part * taken + 2_000_000, part
        assert ended == (part == 3)


def test_wrong_kinds() -> None:
    graph = MiningGraph.of([0, 1], [1, 2])
    with pytest.raises(ValueError, match="a table of vertices"):
        vertex_extension(EmbeddingTable.of_edges(graph), graph)
    with pytest.raises(ValueError, match="a table of edges"):
        edge_extension(EmbeddingTable.of_vertices(graph), graph)
    with pytest.raises(ValueError, match="labels are a number"):
        aggregation(EmbeddingTable.of_edges(graph), graph, labels=[1])


def test_the_empty_graph() -> None:
    graph = MiningGraph.of([], [])
    table = vertex_extension(EmbeddingTable.of_vertices(graph), graph)
    assert (len(table), len(aggregation(table, graph))) == (0, 0)
    assert len(edge_extension(EmbeddingTable.of_edges(graph), graph)) == 0
