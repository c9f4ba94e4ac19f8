"""Candidate patterns: those of a level with one edge more, each of isomorphic ones once.

All patterns of a level with equally many vertices are made together, as arrays: by the label of each vertex, what
frequent single edges can add there; then their canonical labels, of which the distinct ones stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.mining.patterns import Pattern
from graphdb.mining.primitives.canonical import canonical, distinct
from graphdb.plan.domains import EDGES, PLACES, Candidates

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Patterns with equally many vertices and edges.

    Attributes
    ----------
    labels
        int64 [patterns, n].
    edges
        int64 [patterns, m, 3]: (place, place, label).
    sources
        int64 [patterns, n]: the number of the set of each place's candidates.
    orbits
        int64 [patterns, n]: the first place that an automorphism takes each place to.
    """

    labels: Ints
    edges: Ints
    sources: Ints
    orbits: Ints

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def size(self) -> int:
        """How many vertices they have."""
        return int(self.labels.shape[1])

    def chosen(self, which: NDArray[np.bool_], sources: Ints) -> Shapes:
        """Return some of the patterns, with other candidates."""
        return Shapes(self.labels[which], self.edges[which], sources[:, : self.size], self.orbits[which])

    def patterns(self, which: NDArray[np.bool_], directed: bool) -> list[Pattern]:
        """Return some of them as patterns."""
        rows = zip(self.labels[which].tolist(), self.edges[which].tolist(), strict=True)
        return [Pattern(tuple(own), tuple((a, b, kind) for a, b, kind in edges), directed) for own, edges in rows]


class Additions:
    """What frequent single edges add to a vertex, by its label.

    Attributes
    ----------
    kind, label, onwards
        The label of the edge, that of the new vertex, and whether the edge leads there.
    """

    def __init__(self, single: Shapes, labels: int, directed: bool) -> None:
        source = single.labels[np.arange(len(single)), single.edges[:, 0, 0]]
        target = single.labels[np.arange(len(single)), single.edges[:, 0, 1]]
        kind = single.edges[:, 0, 2]
        both = np.ones(len(single), bool) if directed else source != target
        ahead, back = np.ones(len(single), bool), np.full(int(both.sum()), not directed)
        rows = np.concatenate([source, target[both]])
        order = np.argsort(rows, kind="stable")
        self.kind = np.concatenate([kind, kind[both]])[order]
        self.label = np.concatenate([target, source[both]])[order]
        self.onwards = np.concatenate([ahead, back])[order]
        self._offsets = np.searchsorted(rows[order], np.arange(labels + 1))

    def of(self, labels: Ints) -> tuple[Ints, Ints]:
        """Return for vertices with these labels all that can be added: (vertex, number of the addition)."""
        counts = self._offsets[labels + 1] - self._offsets[labels]
        vertex = np.repeat(np.arange(len(labels)), counts)
        rank = np.arange(len(vertex)) - np.repeat(np.cumsum(counts) - counts, counts)
        return vertex, self._offsets[labels][vertex] + rank

    def count(self, labels: Ints) -> int:
        """Return how many that are."""
        return int((self._offsets[labels + 1] - self._offsets[labels]).sum())


def single_edges(triples: Ints) -> Shapes:
    """Return patterns of one edge; ``triples`` is int64 [patterns, 3]: (label, label of the edge, label)."""
    labels = triples[:, [0, 2]]
    edges = np.zeros((len(triples), 1, 3), np.int64)
    edges[:, 0, 1], edges[:, 0, 2] = 1, triples[:, 1]
    return Shapes(labels, edges, labels, np.zeros_like(labels))


def larger(shapes: Shapes, additions: Additions, directed: bool) -> Iterator[Shapes]:
    """Give all patterns with one edge more: to a new vertex, or between two that are there."""
    size = shapes.size
    for place in range(size):
        row, added = additions.of(shapes.labels[:, place])
        kind, label, onwards = additions.kind[added], additions.label[added], additions.onwards[added]
        if size < PLACES:
            first = shapes.orbits[row, place] == place
            ahead = onwards[first]
            edge = np.stack([np.where(ahead, place, size), np.where(ahead, size, place), kind[first]], axis=1)
            yield _with(shapes, row[first], edge, label[first])
        for other in range(size) if directed else range(place + 1, size):
            fits = onwards & (shapes.labels[row, other] == label)
            if other == place or not fits.any():
                continue
            edge = np.stack([np.full(int(fits.sum()), place), np.full(int(fits.sum()), other), kind[fits]], axis=1)
            new = ~(shapes.edges[row[fits]] == edge[:, None, :]).all(axis=2).any(axis=1)
            yield _with(shapes, row[fits][new], edge[new], None)


def _with(shapes: Shapes, rows: Ints, edge: Ints, label: Ints | None) -> Shapes:
    """Patterns with an edge more, and with a vertex more where it has a label."""
    labels, sources = shapes.labels[rows], shapes.sources[rows]
    if label is not None:
        labels, sources = (np.concatenate([each, label[:, None]], axis=1) for each in (labels, sources))
    edges = np.concatenate([shapes.edges[rows], edge[:, None, :]], axis=1)
    return Shapes(labels, edges, sources, np.zeros_like(labels))


def joined(made: Sequence[Shapes]) -> Shapes:
    """Return patterns with equally many vertices together."""
    return Shapes(
        np.concatenate([each.labels for each in made]),
        np.concatenate([each.edges for each in made]),
        np.concatenate([each.sources for each in made]),
        np.concatenate([each.orbits for each in made]),
    )


def distinct_shapes(shapes: Shapes, directed: bool, kinds: int) -> Shapes:
    """Return each of isomorphic patterns once, in canonical order; there are so many ``kinds`` of edge labels."""
    found = canonical(shapes.labels, _cells(shapes.edges, shapes.size, directed, kinds))
    first, _, _ = distinct(found.codes)
    orders = found.orders[first]
    place, edges = np.argsort(orders, axis=1), shapes.edges[first]
    ends = np.take_along_axis(place, edges[:, :, :2].reshape(len(first), -1), axis=1).reshape(len(first), -1, 2)
    if not directed:
        ends.sort(axis=2)
    moved = np.concatenate([ends, edges[:, :, 2:]], axis=2)
    order = np.argsort((moved[:, :, 0] * PLACES + moved[:, :, 1]) * kinds + moved[:, :, 2], axis=1)
    moved = np.take_along_axis(moved, order[:, :, None], axis=1)
    sources = np.take_along_axis(shapes.sources[first], orders, axis=1)
    return Shapes(found.labels[first], moved, sources, found.orbits[first])


def _cells(edges: Ints, size: int, directed: bool, kinds: int) -> Ints:
    """Numbers for the sets of edges that join two places, each seen from both: int64 [patterns, n, n].

    A single edge has 1 more than its code; several have the numbers behind these.
    """
    cells = np.zeros((len(edges), size, size), np.int64)
    rows, several = np.arange(len(edges)), np.zeros(len(edges), bool)
    for a, b, kind in edges.transpose(1, 2, 0):
        several |= cells[rows, a, b] != 0
        cells[rows, a, b], cells[rows, b, a] = 2 * kind + 1, 2 * kind + 1 + directed
    numbers: dict[tuple[int, ...], int] = {}
    for row in np.flatnonzero(several).tolist():
        codes: dict[tuple[int, int], tuple[int, ...]] = {}
        for a, b, kind in edges[row].tolist():
            codes[a, b] = (*codes.get((a, b), ()), 2 * kind)
            codes[b, a] = (*codes.get((b, a), ()), 2 * kind + directed)
        for pair, all in codes.items():
            if len(all) > 1:
                number = numbers.setdefault(tuple(sorted(all)), 2 * kinds + 1 + len(numbers))
                cells[row, pair[0], pair[1]] = number
    return cells


def candidates_of(groups: Sequence[Shapes]) -> Candidates:
    """Return patterns as their domains are searched for."""
    total = sum(map(len, groups))
    sizes, edges = np.zeros((total, 2), np.int64), np.zeros((total, EDGES, 3), np.int64)
    orbits, sources = np.zeros((total, PLACES), np.int64), np.zeros((total, PLACES), np.int64)
    begin = 0
    for each in groups:
        part = slice(begin, begin + len(each))
        sizes[part] = each.size, each.edges.shape[1]
        edges[part, : each.edges.shape[1]] = each.edges
        orbits[part, : each.size], sources[part, : each.size] = each.orbits, each.sources
        begin = part.stop
    edges[:, :, 2] *= 2  # labels as codes
    return Candidates(sizes, edges, orbits, sources)
