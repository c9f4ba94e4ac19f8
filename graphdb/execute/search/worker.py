"""One worker's search: the kernel's frame, and the buffers and the output block that it points to.

Small ones are cached with the plan, for its next run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.search import frame
from graphdb.plan.executor import Control
from graphdb.plan.physical import WINDOW, PhysicalPlan, VertexStep

Found = tuple[NDArray[Any], NDArray[np.int64] | None]
"""Rows as columns, and how many matches each stands for where that is counted."""

_FIRST_ROWS = 1 << 12
"""Rows of a search's first output block; later ones are larger, up to :attr:`Sizes.block_rows`."""
_NEAR = 1 << 21
"""Bytes of partitions that a processor's cache has."""
_FETCHED, _FETCHED_FAR = 32, 1
"""Bindings from which on their lists are prefetched: where lists are near, to go through fewer takes what it saves."""
_YIELD = 2
"""What the kernel says when it has worked for a while."""
_TELLING = 3
"""Steps whose positions make up the reported progress of a search."""


class Sizes(NamedTuple):
    """Rows of the largest output block, elements that a kernel call scans, bytes of a search that is cached."""

    block_rows: int
    yield_work: int
    cache_bytes: int


class Search:
    """A depth-first search that can stop and go on."""

    def __init__(self, plan: PhysicalPlan, sizes: Sizes, counting: bool) -> None:
        from graphdb.execute.search.search_kernels import count_all, search

        self._kernel: Any = search
        self._count_all: Any = count_all
        program, steps, width = plan.program, len(plan.steps), np.dtype(plan.dtype).itemsize
        self._largest = sizes.block_rows
        self.capacity = 1 if counting else min(_FIRST_ROWS, sizes.block_rows)
        self.fits = counting, sizes
        """What two searches of one plan must have in common to stand in for each other."""
        self._counting = counting
        counted = plan.duplicates == "count" and plan.row_steps < steps and not counting
        self._modes = (counting, plan.count_last and (counting or counted), sizes.yield_work)
        self._like = (np.empty(0, plan.dtype), width)
        self._values = program.constants.copy()
        self._stack = np.zeros((steps, frame.STACK_CELLS), np.int64)
        self.totals = np.zeros((2, steps), np.int64)
        self.rows, self.work = self.totals
        self._block: NDArray[Any] = np.empty((len(program.outputs), self.capacity), plan.dtype)
        self._numbers = np.empty(self.capacity, np.int64) if counted else None
        self._buffers = np.empty(plan.worker_bytes, np.uint8)
        at = self._buffers.ctypes.data
        bits = np.full((program.bits, frame.BITS_CELLS), -1, np.int64)
        self._buffers[: program.bits * program.bits_bytes] = 0  # and whoever sets bits there clears them
        for i in range(program.bits):
            bits[i, 0] = at
            at += program.bits_bytes
        for i, step in enumerate(plan.steps):
            self._stack[i, 3] = at
            at += int(program.steps[i, 7]) * width
            if isinstance(step, VertexStep) and step.scan is not None:
                self._stack[i, 4], self._stack[i, 7] = step.scan.ctypes.data, len(step.scan)
        shared = np.full((len(program.shares), frame.SHARED_CELLS), -1, np.int64)
        for i, entries in enumerate(program.share_capacity):
            shared[i, 5] = at
            at += int(entries) * width
        spans = np.zeros((len(program.lists) + 1, frame.SPAN_CELLS), np.int64)
        self._frame = np.zeros(frame.FRAME_CELLS, np.int64)
        p = program
        tables = (p.steps, p.lists, p.checks, p.uncertain, p.partitions, p.outputs, p.shares)
        self._frame[: frame.RESOURCES] = [table.ctypes.data for table in tables]
        fetched = _FETCHED_FAR if p.lists_bytes > _NEAR else _FETCHED
        numbers = (p.resources, p.type_label, steps - 1, len(p.outputs), fetched)
        self._frame[frame.RESOURCES : frame.VALUES] = numbers
        self._own = (self._values, self._stack, self.totals, spans, bits, shared)
        self._frame[frame.VALUES : frame.LEVEL] = [array.ctypes.data for array in self._own]
        self._frame[frame.ROW_LEVEL] = steps - 1 if counting else plan.row_steps - 1
        self._state = self._frame[frame.LEVEL : frame.ROW_LEVEL]
        self._rows = self._frame[frame.NUMBERS :]
        self._addresses = self._frame.ctypes.data, self._block.ctypes.data
        first = plan.steps[0]
        roots = len(first.scan) if isinstance(first, VertexStep) and first.scan is not None else 0
        self._whole = (self._addresses[0], *self._like, roots, self._modes[1], sizes.yield_work)
        self.short = True
        """Whether one call is expected to count all."""

    @property
    def bytes(self) -> int:
        """What its buffers and its block take."""
        return self._buffers.nbytes + self._block.nbytes

    def start(self, begin: int, end: int, piece: int = 0, pieces: int = 1) -> None:
        """Begin with values ``begin … end-1`` of the first step's scan, and a piece of what the second scans."""
        self._stack[0, 1] = self._stack[0, 2] = 0
        self._stack[0, 5], self._stack[0, 6], self._stack[0, 8] = begin, end, begin
        self._state[:] = (0, 0, 0, piece, pieces)
        self._rows[:] = (0 if self._numbers is None else self._numbers.ctypes.data, 0)

    def advance(self, wanted: int) -> int:
        """Search on until the block holds ``wanted`` matches, the budget is spent, or all is done."""
        frame, block = self._addresses
        result: int = self._kernel(frame, *self._like, block, self.capacity, wanted, *self._modes)
        self.short = self.short and result != _YIELD
        return result

    def count_all(self) -> int | None:
        """Count from the beginning to the end in one call; None where that is more than a call's work."""
        found: int = self._count_all(*self._whole)
        self.short = found >= 0
        return found if self.short else None

    def share(self) -> float:
        """The share done since the start, as the first steps' positions in their lists tell."""
        share, each = 0.0, 1.0
        for level in range(min(int(self._state[0]) + 1, _TELLING, len(self._stack))):
            _, at, window_end, _, _, list_at, end, _, begin = self._stack[level].tolist()
            length = max(end - begin, 1)
            # The value that is bound now is not done: the next step says how far it is.
            window = max(min(list_at - begin, WINDOW), window_end)
            waiting = window * (window_end - at) / max(window_end, 1)
            share += each * max(list_at - begin - waiting - 1, 0) / length
            each /= length
        return share

    def take(self) -> tuple[int, Found]:
        """The rows found since the last call: how many, and their columns (none when counting)."""
        count = int(self._state[1])
        self._state[1] = 0
        numbers = None if self._numbers is None else self._numbers[:count].copy()
        if self._counting:
            return count, (self._block, None)
        if 2 * count < self.capacity:
            return count, (self._block[:, :count].copy(), numbers)
        full = self._block[:, :count]
        self.capacity = min(4 * self.capacity, self._largest)
        self._block = np.empty((len(full), self.capacity), full.dtype)
        self._addresses = self._addresses[0], self._block.ctypes.data
        if self._numbers is not None:
            self._numbers = np.empty(self.capacity, np.int64)
            self._rows[0] = self._numbers.ctypes.data
        return count, (full, numbers)


def acquire(plan: PhysicalPlan, sizes: Sizes, counting: bool) -> Search:
    """A search for this thread alone: the one cached with the plan, or a new one."""
    cached: Search | None = plan.cache.pop((counting, sizes), None)  # one thread alone gets it
    if cached is None:
        return Search(plan, sizes, counting)
    cached.totals[:] = 0
    return cached


def recount(plan: PhysicalPlan, sizes: Sizes, control: Control) -> int | None:
    """Count by the cached search of the plan's last count; None where there is none, or where it takes more calls."""
    search: Search | None = plan.cache.pop((True, sizes), None)
    if search is None:
        return None
    found = None
    if search.short:
        control.check()
        found = search.count_all()
        control.threads = 1
        control.rows, control.work = search.totals.copy()
    plan.cache[search.fits] = search
    return found


def release(plan: PhysicalPlan, search: Search) -> None:
    """Cache a search with its plan for the next run, where it is small.

    The state that the last run left does no harm: a start resets it, and lists stored as bits or shared are tagged
    with the values that they belong to, over data that stays as it is for as long as the plan.
    """
    if search.bytes <= search.fits[1].cache_bytes:
        plan.cache[search.fits] = search
