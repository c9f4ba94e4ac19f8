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
from graphdb.incremental.relations import ITSELF, Relation, Relations
from graphdb.incremental.vertices import Vertices, bit
from graphdb.storage.arrays.sorted_sets import unique, without
from graphdb.storage.graph.pcsr import stable_order

Ints = NDArray[np.int64]

NARROW = 1 << 31
"""Vertices whose ids fit in 32 bits."""
_FIRST_RECORDS = 1 << 12
_LATE = 1 << 7
"""Places in the first table of rows out of range: there are half as many rows."""
LEAST_MARKED = 16
"""Entries of a list that gets a bitmap, which has at most eight words for each of them."""
_MARKS = 1 << 14
"""Words for the bitmaps of lists that become long."""
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


class Image(NamedTuple):
    """What a copy of the lists is made of (:mod:`.frame`): the arrays as far as they are in use."""

    rows: NDArray[np.int32]
    """Of the vertices in range, and of others behind them."""
    in_range: int
    late: Ints
    """[rows out of range, 2]: vertex and relation, and the row."""
    neighbours: NDArray[Any]
    codes: NDArray[np.int32]
    ranges: Ints
    marks: Ints
    table: NDArray[np.uint64]
    counter_starts: Ints
    counters: Ints
    vertices: Ints
    needs: Ints
    parallel: Ints
    """By relation, how many entries more than pairs of vertices it has."""


class Lists:
    """Neighbour lists in a pool, with the tables of :mod:`.frame`.

    Parameters
    ----------
    relations
        All relations of the patterns.
    needs
        By pattern, by its vertices: what a candidate needs.

    Vertices have numbers of their own here (:class:`.vertices.Vertices`).  Neighbours are int32 where all vertices fit,
    else int64; an entry has four bytes more, and a list 32.
    """

    def __init__(self, relations: Relations, needs: Sequence[Sequence[Sequence[Need]]]) -> None:
        self.relations = relations
        self.like: NDArray[Any] = np.empty(0, np.int32 if relations.vertices <= NARROW else np.int64)
        self.sizes: list[Size] = []
        self._labels: Ints = np.empty(0, np.int64)
        self._order: Ints = np.empty(0, np.int64)
        self._known: dict[int, int] = {}
        """The numbers of labels that were asked for one by one."""
        self._free = np.full(frame.SIZES, -1, np.int64)
        self._records = np.empty((_FIRST_RECORDS, frame.RECORD_CELLS), np.int64)
        self._waiting = np.empty((frame.MOST_WAITING + 2 * len(relations.numbers), 5), np.int64)
        self._wanted = np.empty(frame.MOST_WAITING, np.int64)
        self._parallel = np.zeros(len(relations.numbers), np.int64)
        self.vertices = Vertices(relations)
        self.words = self.vertices.words
        self._neighbours, self._codes = np.empty_like(self.like), np.empty(0, np.int32)
        self.cells = np.zeros(frame.GRAPH_CELLS, np.int64)
        self.address = self.cells.ctypes.data
        """Of the cells, for kernels."""
        self._lay_out()
        self.number(np.array(relations.source.edge_labels(), np.int64))
        self._fill()
        self._table = np.zeros((len(needs), self.vertices.capacity), np.uint64)
        self._encode(needs)
        self._point()
        from graphdb.incremental.kernels.list_kernels import mark_lists

        mark_lists(self.address, self.like, len(relations.numbers))

    @property
    def labels(self) -> Ints:
        """Edge labels by their numbers."""
        return self._labels

    @property
    def bytes(self) -> int:
        """What all arrays take."""
        own = (
            self._rows,
            self._neighbours,
            self._codes,
            self.vertices.ends,
            self._table,
            self._records,
            self._late,
            self._marks,
        )
        return sum(array.nbytes for array in own)

    @property
    def rows_out_of_range(self) -> int:
        """Rows of vertices that are out of their relation's range."""
        return int(self.cells[frame.ROWS_USED]) - self._in_range

    @property
    def records(self) -> Ints:
        """The entries that the batch under way touched: a view of [records, :data:`.frame.RECORD_CELLS`]."""
        return self._records[: int(self.cells[frame.RECORD_COUNT])]

    @property
    def label_bits(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Bits of the relations that take an edge label forwards, and backwards: [labels, words]."""
        return self._forwards, self._backwards

    def image(self) -> Image:
        """Return the arrays as they are now, also within a batch."""
        used = int(self.cells[frame.USED]) * frame.UNIT
        return Image(
            self._rows[: int(self.cells[frame.ROWS_USED])],
            self._in_range,
            self._late[self._late[:, 0] >= 0],
            self._neighbours[:used],
            self._codes[:used],
            self._ranges,
            self._marks[: int(self.cells[frame.MARKS_USED])],
            self._table,
            self._counter_starts,
            self._counters,
            self._vertices,
            self._needs,
            self._parallel,
        )

    def number(self, labels: Ints) -> Ints:
        """Return the numbers of edge labels; those not seen before get new ones."""
        if not len(labels):
            return labels
        if len(self._labels) and labels[0] == labels[-1] and (labels == labels[0]).all():  # as in most streams
            known = np.flatnonzero(self._labels == labels[0])
            if len(known):
                return np.full(len(labels), known[0])
        if len(self._labels):
            found = self._order[np.searchsorted(self._labels[self._order[:-1]], labels)]
            if np.array_equal(self._labels[found], labels):
                return found
        self._labels = np.concatenate([self._labels, without(unique(labels), self._labels)])
        self._order = np.argsort(self._labels)
        self._mark_labels()
        return self.number(labels)

    def number_of(self, label: int) -> int:
        """Return the number of one edge label."""
        if label not in self._known:
            self._known[label] = int(self.number(np.array([label], np.int64))[0])
        return self._known[label]

    def reserve(self) -> None:
        """Make more space: for records, for lists, or in the pool."""
        if self.cells[frame.RECORD_COUNT] == len(self._records):
            self._records = np.concatenate([self._records, np.empty_like(self._records)])
        elif self.cells[frame.ROWS_USED] == len(self._rows):
            self._more_rows()
        else:
            self._neighbours, self._codes = (
                np.concatenate([array, np.empty_like(array)]) for array in (self._neighbours, self._codes)
            )
        self._point()

    def _lay_out(self) -> None:
        """Give each relation rows for its near candidates, behind the empty one.

        It has some for all of them, also where its edges join resources alone: searches ask for them.
        """
        vertices, relations = self.vertices, self.relations
        self._ranges = np.zeros((len(relations.numbers), frame.RANGE_CELLS), np.int64)
        rows, outer = 1, vertices.outer(np.arange(vertices.count))
        for number, relation in enumerate(relations.numbers):
            own = np.flatnonzero(relations.members[relation.near][outer[1:]]) + 1
            low, high = (int(own[0]), int(own[-1]) + 1) if len(own) else (0, 0)
            self._ranges[number, :3] = low, high - low, rows
            rows += high - low
        for relation, number in relations.numbers.items():
            self._ranges[number, 3:] = self._ranges[relations.numbers[relation.reversed], :2]
        self._rows = np.zeros((rows, frame.ROW_CELLS), np.int32)
        self.cells[frame.ROWS_USED] = self._in_range = rows
        self._late = np.full((1, frame.LATE_CELLS), -1, np.int64)

    def _more_rows(self) -> None:
        """Have space for more lists of vertices that are out of their relation's range."""
        from graphdb.incremental.kernels.list_kernels import rehash

        space = max(_LATE, 2 * len(self._late))
        rows = len(self._rows) - len(self._late) // 2 + space // 2
        more = np.zeros((rows, frame.ROW_CELLS), np.int32)
        more[: len(self._rows)] = self._rows
        old = self._late[self._late[:, 0] >= 0]
        self._rows, self._late = more, np.full((space, frame.LATE_CELLS), -1, np.int64)
        self._point()
        rehash(self.address, old)

    def extend(self) -> None:
        """Follow the vertices: they may have become more."""
        if self.vertices.capacity > self._table.shape[1]:
            table = np.zeros((len(self._table), self.vertices.capacity), np.uint64)
            table[:, : self._table.shape[1]] = self._table
            self._table = table
        self._point()

    def _rows_of(self, relation: int) -> NDArray[np.int32]:
        """Return the rows of a relation's lists, by the range of vertices that it has some of."""
        _, count, first = self._ranges[relation, :3].tolist()
        return self._rows[first : first + count]

    def _mark_labels(self) -> None:
        """Write which relations take which edge label, in which direction."""
        self._forwards, self._backwards = (np.zeros((len(self._labels), self.words), np.uint64) for _ in range(2))
        for relation, number in self.relations.numbers.items():
            if relation.labels is None:
                taken = (self._labels != self.relations.source.type_label) & (self._labels != ITSELF)
            else:
                taken = np.isin(self._labels, relation.labels)
            for direction, table in (("out", self._forwards), ("in", self._backwards)):
                if relation.direction in (direction, "either"):
                    table[taken, number // 64] |= bit(number)
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
            low, count = self._ranges[number, :2].tolist()
            near -= low
            lengths = np.bincount(near, minlength=count)
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
        self._reserve_marks()

    def _reserve_marks(self) -> None:
        """Have space for the bitmaps of long lists, and some more."""
        words = _MARKS
        for number in self.relations.numbers.values():
            own, lengths = int(self._ranges[number, 4]) // 64 + 1, self._rows_of(number)[:, 1]
            words += 2 * own * int(np.count_nonzero(lengths >= max(LEAST_MARKED, own / 8)) * 5 // 4)
        self._marks = np.zeros(words, np.int64)
        self.cells[frame.MARKS_USED], self.cells[frame.LEAST_MARKED] = 1, LEAST_MARKED

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
                (
                    self.vertices.inner(near[wanted]),
                    self.vertices.inner(far[wanted]),
                    2 * self.number(labels[wanted]) + backwards,
                )
            )
        near, far, key = (np.concatenate(column) for column in zip(*parts, strict=True))
        columns = [near, far, key]
        for last in (2, 1, 0):
            by = columns[last]
            if len(by) and bool((by[1:] < by[:-1]).any()):
                order = stable_order(by, int(by.max()) + 1)
                columns = [column[order] for column in columns]
        return columns[0], columns[1], columns[2]

    def _encode(self, needs: Sequence[Sequence[Sequence[Need]]]) -> None:
        """Fill the candidate tables, and write which counters matter to which pattern vertices."""
        rows, flat = list[tuple[int, int, int, int]](), list[Need]()
        counters: list[list[tuple[int, int]]] = [[] for _ in self.relations.numbers]
        for pattern, vertices in enumerate(needs):
            for column, own in enumerate(vertices):
                fits = np.ones(self.vertices.capacity, bool)
                for need in own:
                    counters[need.relation].append((len(rows), need.entries))
                    low, count = self._ranges[need.relation, :2].tolist()
                    high = low + count
                    fits[:low] = fits[high:] = False
                    fits[low:high] &= self._rows_of(need.relation)[:, 1] >= need.entries
                self._table[pattern, fits] |= bit(column)
                rows.append((pattern, column, len(flat), len(flat) + len(own)))
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
            (frame.ENDS, self.vertices.ends),
            (frame.COUNTER_STARTS, self._counter_starts),
            (frame.COUNTERS, self._counters),
            (frame.VERTICES, self._vertices),
            (frame.NEEDS, self._needs),
            (frame.TABLE, self._table),
            (frame.RECORDS, self._records),
            (frame.PARALLEL, self._parallel),
            (frame.WAITING, self._waiting),
            (frame.WANTED, self._wanted),
            (frame.RANGES, self._ranges),
            (frame.LATE, self._late),
            (frame.MARKS, self._marks),
        ):
            cells[cell] = array.ctypes.data
        cells[frame.STRIDE], cells[frame.WORDS] = self._table.shape[1], self.words
        cells[frame.VERTEX_COUNT] = self.vertices.count
        cells[frame.LATE_MASK], cells[frame.ROW_CAPACITY] = len(self._late) - 1, len(self._rows)
        cells[frame.MARK_CAPACITY] = len(self._marks)
        cells[frame.UNITS] = len(self._neighbours) // frame.UNIT
        cells[frame.RECORD_CAPACITY] = len(self._records)
