"""Mining of one's own with three primitives: extension, aggregation, filtering.

Run it with ``python examples/own_mining.py``; it takes seconds and leaves nothing behind.
"""

import numpy as np

import graphdb
from graphdb.data import GEOGRAPHY
from graphdb.mining import (
    EmbeddingTable,
    MiningGraph,
    Pattern,
    aggregation,
    edge_extension,
    filtering,
    vertex_extension,
)


def cliques(graph: MiningGraph, size: int) -> EmbeddingTable:
    """All cliques of a size, each once: only what is joined with all vertices of a clique is added."""
    table = EmbeddingTable.of_vertices(graph)
    for _ in range(size - 1):
        table = vertex_extension(table, graph, to="all")
    return table


def motifs(graph: MiningGraph, size: int) -> dict[Pattern, int]:
    """How many sets of vertices induce each pattern: all connected sets, counted by their patterns."""
    table = EmbeddingTable.of_vertices(graph)
    for _ in range(size - 1):
        table = vertex_extension(table, graph, to="any")
    found = aggregation(table, graph, labels=np.zeros(len(graph), int))
    return {pattern: int(count) for pattern, count in zip(found.patterns, found.counts, strict=True)}


def dense_groups(graph: MiningGraph, size: int, missing: int) -> EmbeddingTable:
    """Connected groups of vertices of which at most so many pairs are not joined.

    A group with a vertex less misses no more pairs, but it may fall apart: so smaller groups are filtered by what
    they miss, and any neighbour is added.
    """
    table = EmbeddingTable.of_vertices(graph)
    for vertices in range(2, size + 1):
        table = vertex_extension(table, graph, to="any")
        found = aggregation(table, graph, labels=np.zeros(len(graph), int))
        most = vertices * (vertices - 1) // 2
        enough = np.array([len(pattern.edges) >= most - missing for pattern in found.patterns], bool)
        table = filtering(table, enough[found.of_row])
    return table


def frequent_patterns(graph: MiningGraph, support: int, edges: int) -> dict[Pattern, int]:
    """Patterns with labels and their supports, by embeddings: what ``MINE FREQUENT PATTERNS`` finds by domains."""
    table, found = EmbeddingTable.of_edges(graph), {}
    for size in range(1, edges + 1):
        if size > 1:
            table = edge_extension(table, graph)
        patterns = aggregation(table, graph)
        frequent = patterns.supports >= support
        found |= {p: int(s) for p, s in zip(patterns.patterns, patterns.supports, strict=True) if s >= support}
        if size == 1:  # what has an edge that is not frequent is not frequent either
            rare = np.flatnonzero(~frequent[patterns.of_row])
            graph = without_edges(graph, table.rows_at(rare)[:, 0])
            table = EmbeddingTable.of_edges(graph)
    return found


def without_edges(graph: MiningGraph, edges: np.ndarray) -> MiningGraph:
    """The graph without some edges; labels keep their numbers where all of them are still there."""
    keep = np.ones(graph.edges, bool)
    keep[edges] = False
    ends = graph.ids[graph.source[keep]], graph.ids[graph.target[keep]]
    vertices, labels = graph.labelled.T
    own = graph.ids[vertices], graph.vertex_labels[labels]
    return MiningGraph.of(*ends, graph.edge_labels[graph.label[keep]], directed=graph.directed, vertex_labels=own)


with graphdb.connect() as db:
    db.load(GEOGRAPHY)
    names = dict(db.query("MATCH (c:Country) RETURN id(c), c.name"))
    borders = db.mine.graph(edges="neighbour", vertices="Country")

    fours = cliques(borders, 4)
    print(f"{len(fours)} times four countries all border each other:")
    for row in borders.ids[fours.rows(0, 3)].tolist():
        print("  " + ", ".join(names[country] for country in row))

    counts = motifs(borders, 4)
    mined = sorted(count for _, count, _, _ in db.mine.motifs(4, edges="neighbour", vertices="Country"))
    print(f"{sum(counts.values())} connected sets of four countries have {len(counts)} patterns")
    print("MINE counts the same" if sorted(counts.values()) == mined else "MINE counts others")

    groups = dense_groups(borders, 5, missing=2)
    print(f"{len(groups)} groups of five countries miss at most two borders among them")

    spoken = db.mine.graph(edges=["language", "neighbour"], vertices=["Country", "Language"], directed=True)
    found = frequent_patterns(spoken, support=100, edges=2)
    known = db.mine.frequent(100, 2, edges=["language", "neighbour"], vertices=["Country", "Language"])
    print(f"{len(found)} patterns of countries and their languages have a support of 100; MINE finds {len(known)}")
