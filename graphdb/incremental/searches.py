"""Searches of a batch: each pattern's program on a frame for each thread, the changed edges scheduled among them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.scheduler import Pause, schedule
from graphdb.incremental import frame
from graphdb.incremental.lists import Lists
from graphdb.incremental.program import Program
from graphdb.pattern.graph import PatternGraph

Ints = NDArray[np.int64]
Take = Callable[[int, Ints], None]
"""Is given a pattern's number, and rows of matches."""

BUDGET = 1 << 20
"""Steps of a search between two looks at whether to stop: some 20 ms."""
FEWEST = 256
"""Records of a batch that several threads search: those of fewer take less time than threads to begin."""
_PIECES = 16
"""Of a batch for each thread: one that finds little takes the next."""
_FIRST_ROWS, _MOST_ROWS = 1 << 8, 1 << 16
"""Matches that a search hands over at a time."""

_OWN = (frame.VALUES, frame.STACK, frame.SPANS, frame.CHUNKS)
"""Tables that a search writes."""


class _Frame:
    """The cells of a search on one thread, and the tables that it writes."""

    def __init__(self, program: Program, lists: Lists, table_row: int, relations: Ints) -> None:
        self.cells = np.zeros(frame.SEARCH_CELLS, np.int64)
        self._own = {cell: program.tables[cell].copy() for cell in _OWN}
        for cell, table in (program.tables | self._own).items():
            self.cells[cell] = table.ctypes.data
        self.cells[frame.GRAPH], self.cells[frame.TABLE_ROW] = lists.address, table_row
        self.cells[frame.COLUMNS] = len(program.pattern.outputs)
        self.cells[frame.MOST_COPIES] = most_copies(program)
        self.cells[frame.PLAIN], self.cells[frame.PLAIN_COUNT] = relations.ctypes.data, len(relations)
        places = int(program.tables[frame.COUNTED][:, 1].max(initial=-1)) + 1
        self._hoisted = np.empty((places, frame.HOISTED_ENTRIES), lists.like.dtype)
        self.cells[frame.HOISTED], self.cells[frame.ENTRY_BYTES] = self._hoisted.ctypes.data, lists.like.itemsize
        self.address = self.cells.ctypes.data
        self._pairs = bool((program.tables[frame.STEPS][:, 12] >= frame.PAIRS).any())
        self._counts: NDArray[np.int32] = np.empty(0, np.int32)

    def reserve(self, vertices: int) -> None:
        """Have space to count pairs by so many vertices, where any are counted; no search is under way."""
        if self._pairs and vertices > len(self._counts):
            self._counts = np.zeros(vertices + vertices // 4, np.int32)
            self._paired = np.empty(len(self._counts) + 1, np.int64)  # one is written too many
            self.cells[frame.PAIRED], self.cells[frame.PAIRED_VERTICES] = (
                self._counts.ctypes.data,
                self._paired.ctypes.data,
            )
            self.cells[frame.PAIRED_COUNT] = 0


class Search:
    """A program with the frames that its searches run on, by thread."""

    def __init__(self, program: Program, lists: Lists, table_row: int, threads: int) -> None:
        self.program, self._lists, self.table_row = program, lists, table_row
        self._relations = np.array(program.relations, np.int64)
        self._frames: list[_Frame | None] = [None] * threads
        self.address = self.frame(0).address

    @property
    def vertices(self) -> int:
        """How many vertices there may be."""
        return self._lists.vertices.capacity

    def frame(self, thread: int) -> _Frame:
        """Return the frame of a thread, which alone asks for it."""
        found = self._frames[thread]
        if found is None:
            found = _Frame(self.program, self._lists, self.table_row, self._relations)
            self._frames[thread] = found
        return found


class _Piece(NamedTuple):
    """Records of a batch that a pattern is searched from."""

    pattern: int
    begin: int
    end: int


class Searches:
    """The searches of all patterns.

    Parameters
    ----------
    pairs
        By pattern, the search of its plain program and that of its full one (:class:`.program.Program`).
    lists, threads
        The graph, and how many threads search it.
    """

    def __init__(self, pairs: Sequence[tuple[Search, Search]], lists: Lists, threads: int) -> None:
        self._pairs, self._lists, self.threads = pairs, lists, threads
        self.addresses = np.array([[plain.address, full.address] for plain, full in pairs], np.int64).reshape(-1, 2)

    def reserve(self) -> None:
        """Have space for what searches on one thread write (:attr:`addresses`)."""
        for search in {search for pair in self._pairs for search in pair}:
            search.frame(0).reserve(search.vertices)

    def rows(self, check: Pause, take: Take) -> None:
        """Find what a staged batch changes, and hand it over by parts, one after the other.

        A part is [matches, outputs + 1], the version of each match first; of a counted program
        (:class:`.program.Program`) [rows, outputs + 2], of how many matches a row is last.
        """
        from graphdb.incremental.kernels.search_kernels import count
        from graphdb.incremental.kernels.search_kernels import search as find

        chosen, like, alone = self.chosen(), self._lists.like, threading.Lock()

        def work(piece: _Piece, thread: int, pause: Pause) -> None:
            search = chosen[piece.pattern]
            own, program = self._begin(search, piece, thread), search.program
            kernel, columns = (count, 2) if program.counted else (find, 1)
            capacity, result = max(_FIRST_ROWS, most_copies(program)), frame.YIELD
            block = np.empty((capacity, len(program.pattern.outputs) + columns), np.int64)
            while result != frame.DONE:
                pause()
                result = kernel(own.address, like, block.ctypes.data, capacity, BUDGET)
                if result != frame.YIELD and own.cells[frame.FOUND]:
                    with alone:
                        take(piece.pattern, block[: int(own.cells[frame.FOUND])])
                    capacity = min(2 * capacity, _MOST_ROWS)
                    block = np.empty((capacity, block.shape[1]), np.int64)
                    own.cells[frame.FOUND] = 0

        self._schedule(work, check)

    def counts(self, check: Pause) -> Ints:
        """Count what a staged batch changes: [patterns, 2], matches gained and lost."""
        from graphdb.incremental.kernels.search_kernels import count

        chosen, like = self.chosen(), self._lists.like
        found = np.zeros((self.threads, len(self._pairs), 2), np.int64)

        def work(piece: _Piece, thread: int, pause: Pause) -> None:
            own = self._begin(chosen[piece.pattern], piece, thread)
            pause()
            while count(own.address, like, 0, 0, BUDGET) != frame.DONE:
                pause()
            found[thread, piece.pattern] += own.cells[[frame.GAINED, frame.LOST]]

        self._schedule(work, check)
        total: Ints = found.sum(axis=0)
        return total

    @property
    def patterns(self) -> list[PatternGraph]:
        """What is searched."""
        return [plain.program.pattern for plain, _ in self._pairs]

    @property
    def counted(self) -> bool:
        """Whether some programs count matches (:class:`.program.Program`)."""
        return any(plain.program.counted for plain, _ in self._pairs)

    def suited(self, parallel: Ints) -> list[Search]:
        """Return the search of each pattern that suits relations with so many parallel edges."""
        return [full if parallel[list(plain.program.relations)].any() else plain for plain, full in self._pairs]

    def chosen(self) -> list[Search]:
        """Return the search of each pattern that a batch is searched by that is staged in the lists."""
        from graphdb.incremental.kernels.batch_kernels import choose

        graph = self._lists.address
        return [
            plain if choose(graph, plain.address, full.address) == plain.address else full
            for plain, full in self._pairs
        ]

    @staticmethod
    def _begin(search: Search, piece: _Piece, thread: int) -> _Frame:
        from graphdb.incremental.kernels.batch_kernels import begin

        own = search.frame(thread)
        own.reserve(search.vertices)
        begin(own.address, piece.begin, piece.end)
        return own

    def _schedule(self, work: Callable[[_Piece, int, Pause], None], check: Pause) -> None:
        """Have all pieces searched: small batches in one piece each, on the caller's thread."""
        records = int(self._lists.cells[frame.RECORD_COUNT])
        several = self.threads > 1 and records * len(self._pairs) >= FEWEST
        each = max(1, records // (self.threads * _PIECES)) if several else max(1, records)
        pieces = (
            _Piece(pattern, begin, min(begin + each, records))
            for begin in range(0, records, each)
            for pattern in range(len(self._pairs))
        )
        schedule(pieces, work, self.threads if several else 0, check)


def most_copies(program: Program) -> int:
    """Return the most rows that are written at once."""
    return int(program.tables[frame.PLANS][:, 12].max(initial=1))
