"""Aggregation: the patterns that a table's embeddings have, how often, and with which support.

What an embedding looks like is first written down as it stands, its *quick pattern* (Arabesque §5.2); rows with the
same quick pattern, found by hashing, have the same pattern, and only the distinct quick patterns get canonical labels.
Where the limits name an executor that has a device, and that is expected to be sooner, quick patterns are made and
hashed there, and the vertices that patterns take are marked there (:mod:`graphdb.gpu.mining.aggregation`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphdb.common.errors import NotSupportedError
from graphdb.execute.scheduler import Pause
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.mining.patterns import Pattern
from graphdb.mining.primitives.canonical import MOST, Canonical, canonical, distinct
from graphdb.mining.primitives.supports import PIECE, Slots, images_of, pieces
from graphdb.mining.primitives.table import EmbeddingTable
from graphdb.plan.extension import Aggregated, EdgeCodes, Extender
from graphdb.storage.arrays.sorted_sets import unique

Ints = NDArray[np.int64]

DEVICE_PIECE = 1 << 19
"""Rows that are looked at together on a device."""


@dataclass(frozen=True, eq=False)
class PatternTable:
    """The patterns of a table's embeddings, in the order of their canonical labels.

    Attributes
    ----------
    patterns
        The patterns; labels of vertices are the numbers that aggregation was given, edges have indices of the graph's
        ``edge_labels``.
    counts
        int64 [patterns]: embeddings of each.
    supports
        int64 [patterns]: the minimum image support (MNI) of each: the least number of vertices that a place of
        the pattern takes, over all embeddings and automorphisms.
    of_row
        int64 [rows]: the pattern of each row of the table.
    examples
        For each pattern the vertices of its first embedding, at the places of the pattern.
    """

    patterns: tuple[Pattern, ...]
    counts: Ints
    supports: Ints
    of_row: Ints
    examples: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.patterns)


@dataclass(slots=True)
class _Quick:
    """The quick patterns of a table of one kind."""

    labels: Ints
    cells: Ints
    rows: Ints
    """A row of each."""
    of_row: Ints


def aggregation(
    table: EmbeddingTable,
    graph: MiningGraph,
    labels: ArrayLike | None = None,
    limits: Limits | None = None,
) -> PatternTable:
    """Return the patterns of a table's embeddings with their counts and supports.

    Parameters
    ----------
    table
        Of vertices: the pattern of an embedding is the subgraph that they induce; or of edges: it is these alone.
    labels
        int64 [n]: a number for each vertex, 0 or more; by default ``graph.label_of``.  Zeros ignore labels.

    Raises
    ------
    NotSupportedError
        Patterns have more than six vertices or five edges; or there are too many edge labels.
    """
    limits = limits or Limits()
    numbers = graph.label_of if labels is None else np.asarray(labels, np.int64)
    if numbers.shape != (len(graph),) or numbers.min(initial=0) < 0:
        raise ValueError(f"labels are a number of 0 or more for each of {len(graph):,} vertices")
    most = MOST if table.kind == "vertex" else MOST - 1
    if table.size > most:
        raise NotSupportedError(f"embeddings of {table.size} {table.kind}s have no canonical label: at most {most}")
    reader = _Vertices(graph, numbers, table) if table.kind == "vertex" else _Edges(graph, numbers, table)
    limits.need(_bytes(table, reader.width, limits), f"the patterns of {len(table):,} embeddings")
    found: dict[int, tuple[Ints, Ints, Ints]] = {}

    def work(begin: int, worker: int, pause: Pause) -> None:
        pause()
        quick = reader.quick(np.arange(begin, min(begin + PIECE, len(table))))[1]
        firsts, numbers = _numbered(quick)
        order, rank, _ = distinct(quick[firsts])
        found[begin] = (quick[firsts[order]], firsts[order] + begin, rank[numbers])

    extender = _extender(table, reader, limits)
    begins = range(0, len(table), PIECE if extender is None else DEVICE_PIECE)
    if extender is None:
        limits.each(begins, work)
    else:
        for begin, piece in zip(begins, table.pieces(DEVICE_PIECE), strict=True):
            limits.control.check()
            found[begin] = _quick_on(extender, piece, begin, reader.task)
    if not found:
        empty = np.empty(0, np.int64)
        return PatternTable((), empty, empty, empty, ())
    quick = np.concatenate([found[begin][0] for begin in begins])
    rows = np.concatenate([found[begin][1] for begin in begins])
    first, place, _ = distinct(quick)
    starts = np.cumsum([0, *(len(found[begin][0]) for begin in begins)])
    of_row = np.concatenate([place[start + found[begin][2]] for start, begin in zip(starts, begins, strict=False)])
    patterns = _patterns(table, reader, rows[first], of_row, extender, limits)
    if extender is not None:
        limits.notes.append(extender.summary)
    return patterns


def _extender(table: EmbeddingTable, reader: _Reader, limits: Limits) -> Extender | None:
    """What finds quick patterns on a device; None where the host does."""
    if limits.executor is None or not len(table):
        return None
    scanned = float(len(table)) * reader.width * 8
    lists = reader.graph.adjacency if table.kind == "vertex" else reader.graph.incidence
    return limits.executor.extender(lists, scanned, limits.control)


def _quick_on(extender: Extender, rows: NDArray[np.int32], begin: int, task: Aggregated) -> tuple[Ints, Ints, Ints]:
    """Quick patterns of a piece, a row of each, and the pattern of each row; in the order that the host has them in."""
    quick, first, number = extender.quick(rows, task)
    order, rank, _ = distinct(quick)
    return quick[order], first[order] + begin, rank[number]


def _numbered(quick: Ints) -> tuple[Ints, Ints]:
    """The first of each of the distinct rows, in their order, and for every row which it is."""
    from graphdb.mining.kernels.aggregation_kernels import number_rows

    firsts, numbers = np.empty(len(quick), np.int64), np.empty(len(quick), np.int64)
    slots = np.zeros(1 << (2 * len(quick)).bit_length(), np.int64)
    count = number_rows(quick, slots, firsts, numbers)
    return firsts[:count], numbers


def _patterns(
    table: EmbeddingTable, reader: _Reader, rows: Ints, quick_of_row: Ints, extender: Extender | None, limits: Limits
) -> PatternTable:
    """Return the table of patterns, given a row of each quick pattern, and the quick pattern of each row."""
    vertices, quick = reader.quick(rows)
    sizes = (vertices >= 0).sum(axis=1)
    pattern_of = np.empty(len(rows), np.int64)
    orders = np.zeros((len(rows), vertices.shape[1]), np.int64)
    orbits = np.zeros((len(rows), vertices.shape[1]), np.int64)
    patterns: list[Pattern] = []
    firsts: list[int] = []
    for size in unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        found = reader.canonical(vertices[chosen][:, :size], quick[chosen])
        first, place, _ = distinct(found.codes)
        pattern_of[chosen] = place + len(patterns)
        orders[chosen, :size], orbits[chosen, :size] = found.orders, found.orbits
        patterns += [reader.pattern(found, int(i)) for i in first]
        firsts += chosen[first].tolist()
    limits.control.check()
    of_row = pattern_of[quick_of_row]
    counts = np.bincount(of_row, minlength=len(patterns))
    slots = Slots.of(pattern_of, orders, orbits, sizes)
    supports = slots.supports(_images(table, reader, slots, quick_of_row, extender, limits))
    examples = tuple(
        tuple(vertices[q][orders[q, : len(pattern)]].tolist()) for q, pattern in zip(firsts, patterns, strict=True)
    )
    return PatternTable(tuple(patterns), counts, supports, of_row, examples)


def _images(
    table: EmbeddingTable, reader: _Reader, slots: Slots, quick_of_row: Ints, extender: Extender | None, limits: Limits
) -> Ints:
    """Return how many vertices each slot of the patterns takes: on the device, where it has memory for their bits."""
    if extender is not None:
        rows = pieces(table, quick_of_row, DEVICE_PIECE)
        images = extender.images(rows, slots.of_place, len(slots), reader.task)
        if images is not None:
            return images
    own = _bytes(table, reader.width, limits)
    return images_of(slots, quick_of_row, reader.vertices, len(reader.graph), own, limits)


def _bytes(table: EmbeddingTable, width: int, limits: Limits) -> int:
    """Bytes that a table takes with the number of each row's pattern, and with what threads make of their pieces."""
    pieces = min(limits.threads * PIECE, len(table))
    return table.nbytes + 32 * len(table) + 24 * width * pieces


class _Reader:
    """Reads quick patterns: the labels of an embedding's vertices, and what joins each pair of them."""

    def __init__(self, graph: MiningGraph, labels: Ints, table: EmbeddingTable, size: int) -> None:
        self.graph, self._labels, self._table = graph, labels, table
        self._size = size
        self._pairs = size * (size - 1) // 2
        self.width = size + self._pairs

    @property
    def task(self) -> Aggregated:
        """What quick patterns are made of, as a device reads it."""
        raise NotImplementedError

    def vertices(self, places: Ints) -> Ints:
        """The vertices of some rows, -1 behind the last: int64 [rows, size]."""
        raise NotImplementedError

    def quick(self, places: Ints) -> tuple[Ints, Ints]:
        """The vertices and the quick patterns of some rows: int64 [rows, size] and [rows, width]."""
        raise NotImplementedError

    def _with_labels(self, vertices: Ints, cells: Ints) -> tuple[Ints, Ints]:
        labels = np.where(vertices >= 0, self._labels[vertices] + 1, 0)
        return vertices, np.concatenate([labels, cells], axis=1)

    def canonical(self, vertices: Ints, quick: Ints) -> Canonical:
        """Canonical orders of quick patterns that have the same number of vertices."""
        count, n = vertices.shape
        cells = np.zeros((count, n, n), np.int64)
        for j in range(1, n):
            for i in range(j):
                cell = np.ascontiguousarray(quick[:, self._size + j * (j - 1) // 2 + i])
                cells[:, i, j], cells[:, j, i] = cell, self.turned(cell)
        return canonical(quick[:, :n] - 1, cells)

    def pattern(self, found: Canonical, row: int) -> Pattern:
        """A pattern of those in canonical order."""
        n = found.labels.shape[1]
        edges = []
        for i in range(n):
            for j in range(i + 1, n):
                for code in self.codes(int(found.cells[row, i, j])):
                    ends = (j, i) if code & 1 else (i, j)
                    edges.append((*ends, code >> 1))
        return Pattern(tuple(found.labels[row].tolist()), tuple(sorted(edges)), self.graph.directed)

    def turned(self, cells: Ints) -> Ints:
        """Cells as the other vertex of the pair sees them."""
        raise NotImplementedError

    def codes(self, cell: int) -> tuple[int, ...]:
        """The codes of the edges that a cell stands for."""
        raise NotImplementedError


class _Vertices(_Reader):
    """Of tables of vertices: cells are 1 more than the states of pairs."""

    def __init__(self, graph: MiningGraph, labels: Ints, table: EmbeddingTable) -> None:
        super().__init__(graph, labels, table, table.size)
        states = {codes: state for state, codes in enumerate(graph.codes)}
        turned = [tuple(sorted(code ^ 1 for code in codes)) if graph.directed else codes for codes in graph.codes]
        # A state that begins those of pairs with more edges may be no pair's own: then nobody asks what it is turned.
        self._turned = np.array([0, *(states.get(codes, -1) + 1 for codes in turned)])

    @property
    def task(self) -> Aggregated:
        return Aggregated(self._labels, states=self.graph.states)

    def vertices(self, places: Ints) -> Ints:
        return self._table.rows_at(places)

    def quick(self, places: Ints) -> tuple[Ints, Ints]:
        from graphdb.mining.kernels.aggregation_kernels import read_states

        graph, rows = self.graph, self._table.rows_at(places)
        cells = np.empty((len(rows), self._pairs), np.int64)
        read_states(graph.offsets, graph.neighbours, graph.states, rows, cells)
        return self._with_labels(rows, cells)

    def turned(self, cells: Ints) -> Ints:
        return self._turned[cells]

    def codes(self, cell: int) -> tuple[int, ...]:
        return self.graph.codes[cell - 1] if cell else ()


class _Edges(_Reader):
    """Of tables of edges: the digits of a cell are 1 more than the codes of the pair's edges in the embedding."""

    def __init__(self, graph: MiningGraph, labels: Ints, table: EmbeddingTable) -> None:
        super().__init__(graph, labels, table, table.size + 1)
        self._base = 2 * len(graph.edge_labels) + 1
        several = min(table.size, max(map(len, graph.codes), default=1))
        if self._base**several >= 1 << 63:
            raise NotSupportedError(
                f"{len(graph.edge_labels):,} edge labels are too many where a pair has {several} edges",
                hint="mine fewer edge labels",
            )

    @property
    def task(self) -> Aggregated:
        codes = EdgeCodes(self.graph.label, self.graph.directed, self._base)
        return Aggregated(self._labels, codes=codes)

    def _read(self, places: Ints) -> tuple[Ints, Ints]:
        from graphdb.mining.kernels.aggregation_kernels import read_edges

        graph, rows = self.graph, self._table.rows_at(places)
        vertices = np.empty((len(rows), self._size), np.int64)
        cells = np.empty((len(rows), self._pairs), np.int64)
        ends = (graph.source, graph.target, graph.label)
        read_edges(*ends, graph.directed, self._base, rows, vertices, cells)
        return vertices, cells

    def vertices(self, places: Ints) -> Ints:
        return self._read(places)[0]

    def quick(self, places: Ints) -> tuple[Ints, Ints]:
        return self._with_labels(*self._read(places))

    def turned(self, cells: Ints) -> Ints:
        from graphdb.mining.kernels.aggregation_kernels import turn

        turned = np.empty_like(cells)
        turn(cells, self._base, self.graph.directed, turned)
        return turned

    def codes(self, cell: int) -> tuple[int, ...]:
        found = []
        while cell:
            found.append(cell % self._base - 1)
            cell //= self._base
        return tuple(found)
