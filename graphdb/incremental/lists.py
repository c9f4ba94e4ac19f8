"""The graph in memory that standing patterns are matched on: neighbour lists of their relations, and candidate tables.

It is derived from a :class:`TripleSource` once, and then takes batches of changes in place.  It has the edges that
some pattern edge can bind, and no others: what concerns no pattern costs a look at a label and two vertices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental import frame
from graphdb.incremental.relations import Relation, Relations

Ints = NDArray[np.int64]

NARROW = 1 << 31
"""Vertices whose ids fit in 32 bits."""
_FIRST_RECORDS = 1 << 12
_SLACK = 1 << 10
"""Units of the pool that are free at first, beside a quarter of those in use."""


class Need(NamedTuple):
    """How many entries a candidate of a pattern vertex has in a relation at least."""

    relation: int
    entries: int


class Size(NamedTuple):
    """What orders are estimated from."""

    entries: int
    near: int
    """Vertices whose list is not empty."""


class Lists:
    """Neighbour lists in a pool, with the tables of :mod:`.frame`.

    Parameters
    ----------
    relations
        All relations of the patterns.
    needs
        By pattern, by its vertices: what a candidate needs.

    Vertices have numbers of their own here: those that the same relations concern have consecutive ones, so that the
    lists of a relation lie together, and those that none concerns have one number together, behind all others
    (:meth:`inner`).  Neighbours are int32 where all vertices fit, else int64; an entry has four bytes more, and a list
    32.
    """

    def __init__(self, relations: Relations, needs: Sequence[Sequence[Sequence[Need]]]) -> None:
        self.relations, vertices = relations, relations.vertices
        self.like: NDArray[Any] = np.empty(0, np.int32 if vertices <= NARROW else np.int64)
        self.sizes: list[Size] = []
        self._labels: Ints = np.empty(0, np.int64)
        self._order: Ints = np.empty(0, np.int64)
        self._free = np.full(frame.SIZES, -1, np.int64)
        self._records = np.empty((_FIRST_RECORDS, frame.RECORD_CELLS), np.int64)
        self._heads = np.full(len(relations.numbers), -1, np.int64)
        self._parallel = np.zeros(len(relations.numbers), np.int64)
        self.words = len(relations.numbers) // 64 + 1
        self._number_vertices()
        self._neighbours, self._codes = np.empty_like(self.like), np.empty(0, np.int32)
        self.cells = np.zeros(frame.GRAPH_CELLS, np.int64)
        self.number(np.array(relations.source.edge_labels(), np.int64))
        self._fill()
        self._table = np.zeros((len(needs), len(self.outer) + 1), np.uint64)
        self._encode(needs)
        self._point()

    @property
    def labels(self) -> Ints:
        """Edge labels by their numbers."""
        return self._labels

    @property
    def bytes(self) -> int:
        """What all arrays take."""
        own = (self._rows, self._neighbours, self._codes, self._near, self._far, self._table, self._records)
        return sum(array.nbytes for array in own)

    def number(self, labels: Ints) -> Ints:
        """Return the numbers of edge labels; those not seen before get new ones."""
        if not len(labels):
            return labels
        if len(self._labels):
            found = self._order[np.searchsorted(self._labels[self._order[:-1]], labels)]
            if np.array_equal(self._labels[found], labels):
                return found
        self._labels = np.concatenate([self._labels, np.setdiff1d(labels, self._labels)])
        self._order = np.argsort(self._labels)
        self._mark_labels()
        return self.number(labels)

    def number_of(self, label: int) -> int:
        """Return the number of one edge label."""
        return int(self.number(np.array([label], np.int64))[0])

    def reserve(self) -> None:
        """Make more space: in the pool, or for records."""
        if self.cells[frame.RECORD_COUNT] == len(self._records):
            self._records = np.concatenate([self._records, np.empty_like(self._records)])
        else:
            self._neighbours, self._codes = (
                np.concatenate([array, np.empty_like(array)]) for array in (self._neighbours, self._codes)
            )
        self._point()

    def _number_vertices(self) -> None:
        """Number the vertices that some relation concerns, and give each relation rows for its near candidates.

        It has some for all of them, also where its edges join resources alone: searches ask for them.
        """
        near, far = (np.zeros((self.relations.vertices, self.words), np.uint64) for _ in range(2))
        for relation, number in self.relations.numbers.items():
            near[self.relations.ends(relation, relation.near), number // 64] |= _bit(number)
            far[self.relations.ends(relation, relation.far), number // 64] |= _bit(number)
        words = np.hstack([near, far])
        concerned = np.flatnonzero(words.any(axis=1))
        self.outer: Ints = concerned[np.lexsort(words[concerned].T)]
        """Vertices of the data graph by their numbers here."""
        self._inner = np.full(self.relations.vertices, len(self.outer))
        self._inner[self.outer] = np.arange(len(self.outer))
        none = np.zeros((1, self.words), np.uint64)
        self._near, self._far = (np.concatenate([table[self.outer], none]) for table in (near, far))
        self._first_rows = np.zeros(len(self.relations.numbers), np.int64)
        self._ranges: list[tuple[int, int]] = []
        rows = 0
        for number, relation in enumerate(self.relations.numbers):
            own = np.flatnonzero(self.relations.members[relation.near][self.outer])
            low, high = (int(own[0]), int(own[-1]) + 1) if len(own) else (0, 0)
            self._ranges.append((low, high))
            self._first_rows[number] = rows - low
            rows += high - low
        self._rows = np.zeros((rows, frame.ROW_CELLS), np.int32)

    def inner(self, vertices: Ints) -> Ints:
        """Return the numbers of vertices here; raises IndexError where they are none of the data graph."""
        return self._inner[vertices]

    def _rows_of(self, relation: int) -> NDArray[np.int32]:
        """Return the rows of a relation's lists, by the range of vertices that it has some of."""
        low, high = self._ranges[relation]
        first = int(self._first_rows[relation])
        return self._rows[first + low : first + high]

    def _mark_labels(self) -> None:
        """Write which relations take which edge label, in which direction."""
        self._forwards, self._backwards = (np.zeros((len(self._labels), self.words), np.uint64) for _ in range(2))
        for relation, number in self.relations.numbers.items():
            if relation.labels is None:
                taken = self._labels != self.relations.source.type_label
            else:
                taken = np.isin(self._labels, relation.labels)
            for direction, table in (("out", self._forwards), ("in", self._backwards)):
                if relation.direction in (direction, "either"):
                    table[taken, number // 64] |= _bit(number)
        self.cells[frame.FORWARDS] = self._forwards.ctypes.data
        self.cells[frame.BACKWARDS] = self._backwards.ctypes.data

    def _fill(self) -> None:
        """Fill the lists from the source."""
        pieces: list[tuple[Ints, Ints, Ints]] = []
        used = 0
        edges: dict[tuple[int, ...] | None, tuple[Ints, Ints, Ints]] = {}
        for relation, number in self.relations.numbers.items():
            if relation.labels not in edges:
                edges[relation.labels] = self.relations.edges(relation.labels)
            near, far, key = self._entries(relation, *edges[relation.labels])
            low, high = self._ranges[number]
            near -= low
            lengths = np.bincount(near, minlength=high - low)
            units = -(-lengths // frame.UNIT)
            starts = used + np.cumsum(units) - units
            columns = [starts, lengths, units * frame.UNIT, lengths, lengths, lengths]
            self._rows_of(number)[:, : len(columns)] = np.column_stack(columns)
            within = np.arange(len(near)) - (np.cumsum(lengths) - lengths)[near]
            pieces.append((starts[near] * frame.UNIT + within, far, key << frame.KEY_SHIFT | frame.BOTH))
            used += int(units.sum())
            self.sizes.append(Size(len(near), int(np.count_nonzero(lengths))))
            self._parallel[number] = np.count_nonzero((near[1:] == near[:-1]) & (far[1:] == far[:-1]))
        space = (used + used // 4 + _SLACK) * frame.UNIT
        self._neighbours, self._codes = np.empty(space, self.like.dtype), np.empty(space, np.int32)
        for places, far, codes in pieces:
            self._neighbours[places], self._codes[places] = far, codes
        self.cells[frame.USED] = used

    def _entries(self, relation: Relation, labels: Ints, subjects: Ints, objects: Ints) -> tuple[Ints, Ints, Ints]:
        """Return a relation's entries, sorted: near end, far end, key."""
        near_ends, far_ends = (self.relations.ends(relation, end) for end in (relation.near, relation.far))
        parts = []
        for backwards in (False, True):
            if relation.direction not in ("either", "in" if backwards else "out"):
                continue
            near, far = (objects, subjects) if backwards else (subjects, objects)
            wanted = near_ends[near] & far_ends[far]
            if backwards and relation.direction == "either":
                wanted &= near != far
            parts.append(
                (self.inner(near[wanted]), self.inner(far[wanted]), 2 * self.number(labels[wanted]) + backwards)
            )
        near, far, key = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((key, far, near))
        return near[order], far[order], key[order]

    def _encode(self, needs: Sequence[Sequence[Sequence[Need]]]) -> None:
        """Fill the candidate tables, and write which counters matter to which pattern vertices."""
        rows, flat = list[tuple[int, int, int, int]](), list[Need]()
        counters: list[list[tuple[int, int]]] = [[] for _ in self.relations.numbers]
        for pattern, vertices in enumerate(needs):
            for bit, own in enumerate(vertices):
                fits = np.ones(len(self.outer) + 1, bool)
                for need in own:
                    counters[need.relation].append((len(rows), need.entries))
                    low, high = self._ranges[need.relation]
                    fits[:low] = fits[high:] = False
                    fits[low:high] &= self._rows_of(need.relation)[:, 1] >= need.entries
                self._table[pattern, fits] |= _bit(bit)
                rows.append((pattern, bit, len(flat), len(flat) + len(own)))
                flat += own
        self._counter_starts = np.cumsum([0] + [len(found) for found in counters], dtype=np.int64)
        self._counters = np.array([row for found in counters for row in found], np.int64).reshape(-1, 2)
        self._vertices = np.array(rows, np.int64).reshape(-1, frame.VERTEX_CELLS)
        self._needs = np.array(flat, np.int64).reshape(-1, frame.NEED_CELLS)

    def _point(self) -> None:
        """Write the addresses of all arrays into the frame."""
        cells = self.cells
        for cell, array in (
            (frame.ROWS, self._rows),
            (frame.NEIGHBOURS, self._neighbours),
            (frame.CODES, self._codes),
            (frame.FREE, self._free),
            (frame.NEAR, self._near),
            (frame.FAR, self._far),
            (frame.COUNTER_STARTS, self._counter_starts),
            (frame.COUNTERS, self._counters),
            (frame.VERTICES, self._vertices),
            (frame.NEEDS, self._needs),
            (frame.TABLE, self._table),
            (frame.RECORDS, self._records),
            (frame.HEADS, self._heads),
            (frame.PARALLEL, self._parallel),
            (frame.FIRST_ROWS, self._first_rows),
        ):
            cells[cell] = array.ctypes.data
        cells[frame.STRIDE], cells[frame.WORDS] = len(self.outer) + 1, self.words
        cells[frame.UNITS] = len(self._neighbours) // frame.UNIT
        cells[frame.RECORD_CAPACITY] = len(self._records)


def _bit(number: int) -> np.uint64:
    return np.uint64(1 << number % 64)
