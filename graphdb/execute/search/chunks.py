"""A run of the CPU's search: on the calling thread alone, or in chunks scheduled on threads.

Chunks are scheduled dynamically, as workers become free; matches are handed over in the order of the chunks, so the
rows and their order do not depend on the number of threads.  What is found ahead of the caller waits in memory up to a
budget; beyond it, workers wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.scheduler import WAIT
from graphdb.execute.search.worker import Found, Search, Sizes, acquire, release
from graphdb.plan.executor import Control
from graphdb.plan.physical import PhysicalPlan, VertexStep

_CHUNKS_PER_THREAD = 128
_FEWEST_PER_THREAD = 4
_CHUNK_COST = 100_000.0
"""Chunks are not made smaller than this, in elements that the search is expected to scan: many threads that each
ask for the next chunk after some microseconds wait for one another."""


class SingleThreadRun:
    """One run on the calling thread."""

    def __init__(self, plan: PhysicalPlan, sizes: Sizes, control: Control, counting: bool, limit: int | None) -> None:
        self.total = 0
        self._plan, self._control = plan, control
        self._counting, self._limit = counting, limit
        self._search = acquire(plan, sizes, counting)
        control.rows, control.work = self._search.totals

    def blocks(self) -> Iterator[Found]:
        """The matches; counting gives none and leaves ``total``."""
        search, left, result = self._search, self._limit, -1
        first, last = self._control.range_of(len(scan_of(self._plan)))
        if first == last or left == 0:
            return
        search.start(first, last)
        while result != 0:
            self._control.check()
            result = search.advance(search.capacity if left is None else min(left, search.capacity))
            if self._control.due:
                self._control.report(search.share())
            if self._counting or result != 2:
                count, matches = search.take()
                self.total += count
                if count and not self._counting:
                    yield matches
                if left is not None:
                    left -= count
                    if left <= 0:
                        return
        self._control.report(1.0)

    def close(self) -> None:
        """Cache the search for the next run."""
        self._control.rows, self._control.work = self._search.totals.copy()
        release(self._plan, self._search)


@dataclass(slots=True)
class _Chunk:
    """A part of a run, and what it has found and nobody has taken yet."""

    piece: tuple[int, int, int, int]
    """First and last root, and of the second step's list which of how many pieces."""
    weight: float
    """Its share of the run's work."""
    share: float = 0.0
    """How much of it is done."""
    blocks: deque[Found] = field(default_factory=deque)
    done: bool = False


class ParallelRun:
    """One run of several workers: its chunks, the workers that run them, the matches that wait for the caller."""

    def __init__(self, plan: PhysicalPlan, sizes: Sizes, control: Control, counting: bool, limit: int | None) -> None:
        self.total = 0
        self._plan, self._sizes, self._control = plan, sizes, control
        self._counting, self._limit = counting, limit
        self._chunks = _pieces(plan, control.threads, *control.range_of(len(scan_of(plan))))
        self._next = self._head = self._waiting_bytes = 0
        self._stop = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        control.rows, control.work = np.zeros((2, len(plan.steps)), np.int64)

    def blocks(self) -> Iterator[Found]:
        """The matches in the order of the chunks; counting gives none and leaves ``total``."""
        if not self._chunks or self._limit == 0:
            return iter(())
        return self._threaded()

    def close(self) -> None:
        """Stop the workers and wait for them: some milliseconds."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _threaded(self) -> Iterator[Found]:
        workers = range(self._control.threads)
        self._threads = [threading.Thread(target=self._work, name=f"graphdb-{i}", daemon=True) for i in workers]
        for thread in self._threads:
            thread.start()
        for head, chunk in enumerate(self._chunks):
            with self._changed:
                self._head = head
                self._changed.notify_all()
            while True:
                self._control.watch(self._share)
                with self._changed:
                    if not chunk.blocks and not chunk.done and self._error is None:
                        self._changed.wait(self._control.wait(WAIT))  # then see if time is over, or Ctrl-C was pressed
                    if self._error is not None:
                        raise self._error
                    matches = chunk.blocks.popleft() if chunk.blocks else None
                    if matches is not None:
                        self._waiting_bytes -= matches[0].nbytes
                        self._changed.notify_all()
                    elif chunk.done:
                        break
                if matches is not None:
                    yield matches
                if self._counting and self._limit is not None and self.total >= self._limit:
                    return
        self._control.report(1.0)

    def _share(self) -> float:
        return sum(chunk.weight * chunk.share for chunk in self._chunks)

    def _work(self) -> None:
        """A worker: take the next chunk and search it, until none is left."""
        try:
            search = Search(self._plan, self._sizes, self._counting)
            try:
                while (number := self._take_chunk()) is not None:
                    search.start(*self._chunks[number].piece)
                    self._search_chunk(search, number)
            finally:
                with self._changed:
                    self._note(search)
        except BaseException as error:  # whatever it is, the caller's thread raises it
            with self._changed:
                self._error = error
                self._stop = True
                self._changed.notify_all()

    def _note(self, search: Search) -> None:
        self._control.rows += search.rows
        self._control.work += search.work

    def _take_chunk(self) -> int | None:
        with self._changed:
            # Every chunk that was taken comes before the next: its matches do for the limit.
            enough = self._limit is not None and self.total >= self._limit
            if self._stop or enough or self._next == len(self._chunks):
                return None
            self._next += 1
            return self._next - 1

    def _search_chunk(self, search: Search, number: int) -> None:
        chunk, found, result = self._chunks[number], 0, -1
        while result != 0 and not self._stop:
            capacity = search.capacity if self._limit is None else min(search.capacity, self._limit - found)
            result = search.advance(capacity)
            chunk.share = search.share() if result != 0 else 1.0
            if result == 2 and not self._counting:
                continue
            count, matches = search.take()
            found += count
            if self._limit is not None and found >= self._limit:
                result = 0  # this chunk alone has enough
            with self._changed:
                self.total += count
                if count and not self._counting:
                    chunk.blocks.append(matches)
                    self._waiting_bytes += matches[0].nbytes
                chunk.done = result == 0
                self._changed.notify_all()
                while self._must_wait(chunk, number):
                    self._changed.wait()

    def _must_wait(self, chunk: _Chunk, number: int) -> bool:
        """Whether too much waits for the caller; the chunk that he takes from may always stay a block ahead."""
        if self._stop or self._waiting_bytes <= self._control.buffer_bytes:
            return False
        return number != self._head or len(chunk.blocks) > 1


def _pieces(plan: PhysicalPlan, workers: int, first: int, last: int) -> list[_Chunk]:
    """Split a run over roots ``first … last-1`` into chunks of about the same work.

    Roots count by their degrees in the second step; one that is too much for a chunk (a hub) is split into pieces of
    the list that the second step scans.
    """
    from graphdb.execute.search.set_kernels import add_degrees

    scan = scan_of(plan)[first:last]
    if not len(scan):
        return []
    chunks = int(min(max(plan.cost / _CHUNK_COST, _FEWEST_PER_THREAD * workers), _CHUNKS_PER_THREAD * workers))
    weights = np.ones(len(scan), np.int64)
    if plan.program.second >= 0:
        add_degrees(plan.program.partitions.ctypes.data, plan.program.second, scan, weights)
    ends = np.cumsum(weights)
    share = max(int(ends[-1]) // chunks, 1)
    number = (ends - weights) // share
    # Where the first step alone makes the row, every piece would give it again.
    split = plan.program.second >= 0 and (plan.row_steps > 1 or plan.duplicates != "drop")
    hub = (weights > 2 * share) if split else np.zeros(len(scan), bool)
    fresh = np.append(True, (number[1:] != number[:-1]) | hub[1:] | hub[:-1])
    bounds = [*np.flatnonzero(fresh).tolist(), len(scan)]
    found = []
    for begin, end in pairwise(bounds):
        pieces = int(weights[begin]) // share if hub[begin] else 1
        weight = float(ends[end - 1] - ends[begin] + weights[begin]) / pieces / float(ends[-1])
        found += [_Chunk((first + begin, first + end, piece, pieces), weight) for piece in range(pieces)]
    return found


def scan_of(plan: PhysicalPlan) -> NDArray[np.int64]:
    """The values that the first step scans."""
    first = plan.steps[0]
    assert isinstance(first, VertexStep)
    assert first.scan is not None
    return first.scan
