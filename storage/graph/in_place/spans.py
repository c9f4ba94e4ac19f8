"""Neighbour lists that take batches of changes in place: the offset layer ``spans`` of partitions.

A partition is laid out once, list after list.  Where the graph changes, it gets a table of where each list begins and
ends, and its arrays become a pool: the lists of changed vertices are written anew behind all others, and their old
places are abandoned.  So a batch costs what the changed vertices' lists have, and nothing that is written is changed
but the table.  Once more than half of the pool is abandoned the lists are laid out again: batches share that cost.

This is the log-structured answer to the gaps of a packed memory array (GAMMA, batch-dynamic, §V-C): lists stay
contiguous and sorted, as searches read them, and no list is moved for another one.  On a device such an array takes
batches more quickly, whatever the lengths of lists, and is read more slowly (``tests/benchmarks/batch_layouts.py``).
A copy elsewhere (on a device) follows by what was written behind its own, and by the rows of the table that are new
(:meth:`Spans.changed_since`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.in_place.spans_kernels import (
    CELLS,
    CODES,
    KEYS,
    LIVE,
    LONGEST,
    SEVERAL,
    USED,
    count_codes,
    count_lists,
    lay_out,
    rewrite_lists,
)

Ints = NDArray[np.int64]
T = TypeVar("T")

_NOBODY: Ints = np.empty(0, np.int64)
_SLACK = 1 << 12
_FREE = 1.5
"""So many times the entries in use are free in a new pool, and some more: as a rule it is sparse before it is full.
Memory that is not written to costs nothing."""
_LISTS, _ENTRIES = 1 << 14, 1 << 20
"""Lists that a thread writes at least where they change, and entries where all are laid out."""
_LOGGED = 4
"""The vertices of the latest changes are remembered, as long as they are at most one in so many of all."""


class Spans:
    """The arrays of one partition, which are changed in place.

    Parameters
    ----------
    keys, begins, lengths
        int64: the vertices that have neighbours, sorted, and where the list of each begins, and how long it is.
    neighbours, code_offsets, codes
        As in a partition; they are copied.

    Attributes
    ----------
    table
        int64 [vertices, 2]: where the list of each vertex begins and ends; vertices behind them have none.
    neighbours
        int32 or int64 [entries]: the pool.
    code_offsets, codes
        int64, as in a partition, by places of the pool; empty without codes.
    version
        How many batches of changes there were.
    """

    def __init__(
        self,
        keys: Ints,
        begins: Ints,
        lengths: Ints,
        neighbours: NDArray[Any],
        code_offsets: Ints | None,
        codes: Ints | None,
    ) -> None:
        self.table = np.zeros((int(keys[-1]) + 1 if len(keys) else 0, 2), np.int64)
        self.table[keys, 0], self.table[keys, 1] = begins, begins + lengths
        used = len(neighbours)
        self.neighbours = _extended(neighbours, _with_space(used))
        self.code_offsets, self.codes = np.empty(0, np.int64), np.empty(0, np.int64)
        self._state = np.zeros(CELLS, np.int64)
        self._state[[USED, LIVE, LONGEST]] = used, used, lengths.max(initial=0)
        if code_offsets is not None and codes is not None:
            self.code_offsets = _extended(code_offsets, _with_space(used) + 1)
            self.codes = _extended(codes, _with_space(len(codes)))
            self._state[CODES] = len(codes)
            self._state[SEVERAL] = int(len(codes) > used)
        self.most = max(int(self.neighbours[:used].max(initial=-1)), len(self.table) - 1)
        """The largest vertex that is an end."""
        self.version = 0
        self._log: deque[Ints] = deque()
        """The vertices that each of the latest batches changed."""
        self._logged = 0
        self._rows: Ints = np.empty((0, 2), np.int64)
        """The rows of the table that the latest batch wrote."""

    @property
    def sparse(self) -> bool:
        """Whether more than half of the pool is abandoned."""
        used, live = self._state[USED], self._state[LIVE]
        return bool(used > 2 * live + _SLACK)

    def change(self, source: Ints, target: Ints, codes: Ints, comes: Ints, threads: int = 1) -> tuple[Ints, Ints]:
        """Take edges in and out, sorted by source, target and code; return the vertices (sorted) that have their first
        neighbours now, and those that have lost their last.

        Of an edge that comes and goes there is one row: what becomes of it.  At most so many threads write lists.
        """
        if not len(source):
            return _NOBODY, _NOBODY
        begins = np.append(np.flatnonzero(np.diff(source, prepend=source[0] - 1)), len(source))
        vertices = source[begins[:-1]]
        needed = int(vertices[-1]) + 1
        if needed > len(self.table):
            self.table = _extended(self.table, max(needed, len(self.table) * 9 // 8), fill=0)
        rows, lengths = np.empty((len(vertices), 2), np.int64), np.empty(len(vertices), np.int64)
        parts = min(threads, len(vertices) // _LISTS + 1)
        cuts = [len(vertices) * part // parts for part in range(parts + 1)]
        places = self._reserve(vertices, begins, cuts)
        self._state[KEYS] = 0
        arrays = (self.table, self.neighbours, self.code_offsets, self.codes)
        batch = (vertices, begins, target, codes, comes, rows, lengths)
        if parts == 1:
            rewrite_lists(0, len(vertices), *batch, *arrays, self._state)
        else:
            states = [self._state.copy() for _ in range(parts)]
            for state, place in zip(states, places, strict=False):
                state[[USED, CODES, LIVE]] = *place, 0
            _each(lambda part: rewrite_lists(cuts[part], cuts[part + 1], *batch, *arrays, states[part]), parts)
            self._join(states, places)
        self.most = max(self.most, int(vertices[-1]), int(target.max()))
        self._note(vertices, rows)
        if not self._state[KEYS]:
            return _NOBODY, _NOBODY
        have = rows[:, 1] > rows[:, 0]
        return vertices[have & (lengths == 0)], vertices[~have & (lengths > 0)]

    def _reserve(self, vertices: Ints, begins: Ints, cuts: list[int]) -> list[tuple[int, int]]:
        """Have space in the pool for the lists of vertices after changes; return how many entries and codes there are
        before each part of them, which is written to a place of its own: one entry away from the next, as offsets of
        codes have an end.
        """
        counts = _each(
            lambda part: count_lists(cuts[part], cuts[part + 1], vertices, self.table, self.code_offsets), len(cuts) - 1
        )
        used, known = entries, codes = int(self._state[USED]), int(self._state[CODES])
        places = [(used, known)]
        for (more, more_codes), first, last in zip(counts, cuts[:-1], cuts[1:], strict=True):
            changes = int(begins[last] - begins[first])
            entries, codes = entries + more + changes + 1, codes + more_codes + changes
            places.append((entries, codes))
        if entries > len(self.neighbours):
            self.neighbours = _extended(self.neighbours[:used], _with_space(entries))
        if len(self.code_offsets):
            if entries >= len(self.code_offsets):
                self.code_offsets = _extended(self.code_offsets[: used + 1], _with_space(entries) + 1)
            if codes > len(self.codes):
                self.codes = _extended(self.codes[:known], _with_space(codes))
        return places

    def _join(self, states: list[Ints], places: list[tuple[int, int]]) -> None:
        """Have the state be that after all parts, and what is between two of them some vertex, which is in no list."""
        for state, (begin, codes_begin) in zip(states[:-1], places[1:-1], strict=True):
            end, codes_end = state[[USED, CODES]].tolist()
            self.neighbours[end:begin] = 0
            self.code_offsets[end + 1 : begin], self.codes[codes_end:codes_begin] = codes_end, 0
        self._state[[USED, CODES]] = states[-1][[USED, CODES]]
        self._state[LIVE] += sum(int(state[LIVE]) for state in states)
        for cell in (LONGEST, SEVERAL, KEYS):
            self._state[cell] = max(state[cell] for state in states)

    def _note(self, vertices: Ints, rows: Ints) -> None:
        """Remember what the latest batch changed, and forget what is older than copies follow."""
        self.version += 1
        self._rows = rows
        self._log.append(vertices)
        self._logged += len(vertices)
        while self._logged * _LOGGED > len(self.table) + _SLACK:
            self._logged -= len(self._log.popleft())

    def changed_since(self, version: int) -> Ints | None:
        """The vertices whose rows of the table changed since a version, each as often as it changed; None where that is
        not remembered.
        """
        behind = self.version - version
        if behind > len(self._log):
            return None
        if behind == 1:
            return self._log[-1]
        return np.concatenate([np.empty(0, np.int64), *(self._log[-i] for i in range(1, behind + 1))])

    def rows_of(self, vertices: Ints) -> Ints:
        """Rows of the table, int64 [vertices, 2]; those that the latest batch changed are at hand."""
        latest = self._log[-1] if self._log else None
        return self._rows if vertices is latest else self.table[vertices]

    def laid_out(self, threads: int = 1) -> Spans:
        """The same lists in a pool of their own, without what is abandoned; written by so many threads at most."""
        lengths = self.table[:, 1] - self.table[:, 0]
        coded, live = len(self.code_offsets) > 0, int(self._state[LIVE])
        ends = np.cumsum(lengths)
        parts = min(threads, live // _ENTRIES + 1)
        cuts = [0, *np.searchsorted(ends, live * np.arange(1, parts) // parts).tolist(), len(ends)]
        counts = [0] * parts
        if coded:
            counts = _each(lambda part: count_codes(cuts[part], cuts[part + 1], self.table, self.code_offsets), parts)
        codes = sum(counts)
        found = copy(self)
        found.table = np.zeros_like(self.table)
        found.neighbours = np.empty(_with_space(live), self.neighbours.dtype)
        found.code_offsets = np.empty(_with_space(live) + 1 if coded else 0, np.int64)
        found.codes = np.empty(_with_space(codes) if coded else 0, np.int64)
        before, after = ((each.table, each.neighbours, each.code_offsets, each.codes) for each in (self, found))
        written = [int(ends[cut - 1]) if cut else 0 for cut in cuts[:-1]]
        code_at = np.cumsum([0, *counts[:-1]]).tolist()
        _each(lambda part: lay_out(cuts[part], cuts[part + 1], written[part], code_at[part], *before, *after), parts)
        if coded:
            found.code_offsets[live] = codes
        found._state = np.zeros(CELLS, np.int64)
        found._state[[USED, CODES, LIVE, SEVERAL]] = live, codes, live, codes > live
        found._state[LONGEST] = lengths.max(initial=0)
        found.version, found._log, found._logged = 0, deque(), 0
        return found

    @property
    def arrays(self) -> tuple[NDArray[Any], Ints | None, Ints | None]:
        """The pool as far as it is in use: neighbours, code offsets and codes, views."""
        used, codes = int(self._state[USED]), int(self._state[CODES])
        if not len(self.code_offsets):
            return self.neighbours[:used], None, None
        return self.neighbours[:used], self.code_offsets[: used + 1], self.codes[:codes]

    @property
    def max_degree(self) -> int:
        """The longest list that there was since the lists were laid out."""
        return int(self._state[LONGEST])

    @property
    def simple(self) -> bool:
        """Whether each entry has had one code at most since the lists were laid out."""
        return not self._state[SEVERAL]


def _each(work: Callable[[int], T], parts: int) -> list[T]:
    """What ``work`` gives for each part, a thread for each."""
    if parts == 1:
        return [work(0)]
    with ThreadPoolExecutor(parts, "graphdb-lists") as pool:
        return list(pool.map(work, range(parts)))


def _with_space(entries: int) -> int:
    """Entries of a pool that so many are in, and others are to be written to."""
    return entries + int(entries * _FREE) + _SLACK


def _extended(array: NDArray[Any], rows: int, fill: int | None = None) -> NDArray[Any]:
    """A copy of an array with space for more."""
    shape = (rows, *array.shape[1:])
    found = np.empty(shape, array.dtype) if fill is None else np.full(shape, fill, array.dtype)
    found[: len(array)] = array
    return found
