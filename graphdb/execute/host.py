"""The CPU executor: chunks of the first step's values, dealt out to threads that search without the GIL.

Small runs stay on the calling thread.  Larger ones deal chunks out as workers become free; matches are handed over in
the order of the chunks, so the rows and their order do not depend on the number of threads.  What is found ahead of
the caller waits in memory up to a budget; beyond it, workers wait.  The kernels return every few milliseconds, so
Ctrl-C, a timeout, cancellation and a limit stop any run at once.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import MemoryLimitError
from graphdb.execute.cliques import count_cliques
from graphdb.execute.count import count_matches
from graphdb.execute.executor import Block, Control
from graphdb.plan.physical import PhysicalPlan, VertexStep

BLOCK_ROWS = 1 << 16
YIELD_WORK = 1 << 20
"""Elements that a kernel call goes through at most, roughly: some milliseconds."""
INLINE_COST = 300_000.0
"""Plans expected to do less than this run on the calling thread."""
_CHUNKS_PER_THREAD = 128
_CHUNK_COST = 100_000.0
"""Chunks are not made smaller than this, in elements that the search is expected to go through."""


class HostExecutor:
    """Runs plans on the CPU.

    Parameters
    ----------
    threads
        How many workers a large run has; by default as many as the process may use CPUs.
    memory_limit
        Bytes that a run may take for its buffers; fewer workers are used where all would take more.
    block_rows, yield_work, inline_cost
        Sizes of output blocks and of kernel calls, and what runs without workers (tests make them tiny).
    """

    name = "cpu"

    def __init__(
        self,
        threads: int | None = None,
        *,
        memory_limit: int | None = None,
        block_rows: int = BLOCK_ROWS,
        yield_work: int = YIELD_WORK,
        inline_cost: float = INLINE_COST,
    ) -> None:
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory_limit = memory_limit
        self.block_rows = block_rows
        self.yield_work = yield_work
        self.inline_cost = inline_cost

    def supports(self, plan: PhysicalPlan) -> bool:
        """Every plan runs on the CPU."""
        return True

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes of the workers' intersection buffers and output blocks, or of the vectors that count."""
        if plan.counting is not None:
            return self.threads * plan.counting.worker_bytes
        return self._workers(plan) * self._worker_bytes(plan)

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan and give its matches block by block, in an order that depends on the plan alone.

        Raises
        ------
        QueryTimeout, ExecutionError, MemoryLimitError
            When the time is over, when cancelled, and where not even one worker fits the memory limit.
        """
        control = control or Control()
        limit = control.limit_of(plan)
        if not plan.steps:
            if limit != 0:
                yield Block({}, 1)
            return
        started, left = time.monotonic(), limit
        deal = _Deal(plan, self, control, counting=False, limit=_ceil(limit, plan.automorphisms))
        try:
            for matches in deal.blocks():
                count = matches.shape[1] * plan.automorphisms
                count = count if left is None else min(count, left)
                columns = zip(plan.outputs, plan.columns.T, strict=True)
                yield Block({name: _images(matches, moved)[:count] for name, moved in columns}, count)
                if left is not None:
                    left -= count
                    if left == 0:
                        break
        finally:
            deal.close()
            control.seconds = time.monotonic() - started

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Run the plan for the number of its matches; raises like :meth:`run`."""
        control = control or Control()
        limit = control.limit_of(plan)
        if not plan.steps:
            return 1 if limit is None else min(limit, 1)
        started = time.monotonic()
        if plan.clique is not None and limit is None:
            found = count_cliques(plan.clique, self.threads, control)
            control.rows = np.zeros(len(plan.steps), np.int64)
            control.rows[-1] = found  # the steps before it were not taken
            control.seconds = time.monotonic() - started
            return found * plan.automorphisms
        if plan.counting is not None and limit is None:
            try:
                counted = count_matches(plan.counting, control, self.threads, self.memory_limit)
            finally:
                control.seconds = time.monotonic() - started
            if counted is not None:
                return counted
        deal = _Deal(plan, self, control, counting=True, limit=_ceil(limit, plan.automorphisms))
        try:
            for _ in deal.blocks():
                pass
        finally:
            deal.close()
            control.seconds = time.monotonic() - started
        total = deal.total * plan.automorphisms
        return total if limit is None else min(total, limit)

    def _worker_bytes(self, plan: PhysicalPlan) -> int:
        block = self.block_rows * len(plan.program.outputs) * np.dtype(plan.dtype).itemsize
        return plan.worker_bytes + block

    def _workers(self, plan: PhysicalPlan) -> int:
        """How many workers a run gets; 0 is the calling thread alone."""
        scan = _scan(plan)
        workers = 1 if plan.cost < self.inline_cost else min(self.threads, len(scan))
        if self.memory_limit is not None:
            fitting = self.memory_limit // max(self._worker_bytes(plan), 1)
            if fitting < 1:
                raise MemoryLimitError(
                    f"the query needs {self._worker_bytes(plan):,} bytes of buffers, "
                    f"and the memory limit leaves {self.memory_limit:,}",
                    hint="raise memory_limit",
                )
            workers = min(workers, fitting)
        return max(workers, 1)


def _scan(plan: PhysicalPlan) -> NDArray[np.int64]:
    first = plan.steps[0]
    assert isinstance(first, VertexStep)
    assert first.scan is not None
    return first.scan


def _ceil(limit: int | None, share: int) -> int | None:
    """How many matches to find where each stands for ``share``."""
    return None if limit is None else -(-limit // share)


def _images(matches: NDArray[Any], moved: NDArray[np.int64]) -> NDArray[Any]:
    """One output's column: for each match, one after the other, the values of its automorphic images."""
    if len(moved) == 1:
        column: NDArray[Any] = matches[moved[0]]
        return column
    return np.take(matches, moved, axis=0).T.reshape(-1)


class _Search:
    """One worker's search: the kernel's frame, and the buffers and the output block that it points to."""

    def __init__(self, plan: PhysicalPlan, executor: HostExecutor, counting: bool) -> None:
        from graphdb.execute import host_kernels as kernels

        self._kernel: Any = kernels.search
        program, steps, width = plan.program, len(plan.steps), np.dtype(plan.dtype).itemsize
        self.capacity = 1 if counting else executor.block_rows
        self._counting = counting
        self._modes = (counting, plan.count_last and counting, executor.yield_work)
        self._like = (plan.dtype(0), width)
        self._values = program.constants.copy()
        self._stack = np.zeros((steps, kernels.STACK_CELLS), np.int64)
        self._tallies = np.zeros((2, steps), np.int64)
        self.rows, self.work = self._tallies
        self._block: NDArray[Any] = np.empty((len(program.outputs), self.capacity), plan.dtype)
        self._buffers = np.empty(plan.worker_bytes, np.uint8)
        at = self._buffers.ctypes.data
        bits = np.full((program.bits, kernels.BITS_CELLS), -1, np.int64)
        self._buffers[: program.bits * program.bits_bytes] = 0  # and whoever sets bits there clears them
        for i in range(program.bits):
            bits[i, 0] = at
            at += program.bits_bytes
        for i, step in enumerate(plan.steps):
            self._stack[i, 3] = at
            at += int(program.steps[i, 7]) * width
            if isinstance(step, VertexStep) and step.scan is not None:
                self._stack[i, 4], self._stack[i, 7] = step.scan.ctypes.data, len(step.scan)
        shared = np.full((len(program.shares), kernels.SHARED_CELLS), -1, np.int64)
        for i, entries in enumerate(program.share_capacity):
            shared[i, 5] = at
            at += int(entries) * width
        spans = np.zeros((len(program.lists) + 1, kernels.SPAN_CELLS), np.int64)
        self._frame = np.zeros(kernels.FRAME_CELLS, np.int64)
        p = program
        tables = (p.steps, p.lists, p.checks, p.uncertain, p.partitions, p.outputs, p.shares)
        self._frame[: kernels.RESOURCES] = [table.ctypes.data for table in tables]
        numbers = (p.resources, p.type_label, steps - 1, len(p.outputs))
        self._frame[kernels.RESOURCES : kernels.VALUES] = numbers
        self._own = (self._values, self._stack, self._tallies, spans, bits, shared)
        self._frame[kernels.VALUES : kernels.LEVEL] = [array.ctypes.data for array in self._own]
        self._state = self._frame[kernels.LEVEL :]

    def start(self, begin: int, end: int, piece: int = 0, pieces: int = 1) -> None:
        """Begin with values ``begin … end-1`` of the first step's scan, and a piece of what the second goes through."""
        self._stack[0, 1] = self._stack[0, 2] = 0
        self._stack[0, 5], self._stack[0, 6] = begin, end
        self._state[:] = (0, 0, 0, piece, pieces)

    def advance(self, wanted: int) -> int:
        """Search on until the block holds ``wanted`` matches, the budget is spent, or all is done."""
        block = self._block.ctypes.data
        return int(self._kernel(self._frame.ctypes.data, *self._like, block, self.capacity, wanted, *self._modes))

    def take(self) -> tuple[int, NDArray[Any]]:
        """The matches found since the last call: how many, and their columns (none when counting)."""
        count = int(self._state[1])
        self._state[1] = 0
        if self._counting:
            return count, self._block
        if 2 * count < self.capacity:
            return count, self._block[:, :count].copy()
        full, self._block = self._block[:, :count], np.empty_like(self._block)
        return count, full


def _pieces(plan: PhysicalPlan, workers: int) -> list[tuple[int, int, int, int]]:
    """Deal a run into chunks of about the same work: (first and last root, piece, of how many pieces).

    Roots count by their degrees in the second step; one that is too much for a chunk (a hub) is dealt out in pieces of
    the list that the second step goes through.
    """
    from graphdb.execute.set_kernels import degrees

    scan = _scan(plan)
    if not len(scan):
        return []
    if workers == 1:
        return [(0, len(scan), 0, 1)]
    chunks = int(min(max(plan.cost / _CHUNK_COST, 4), _CHUNKS_PER_THREAD)) * workers
    weights = np.ones(len(scan), np.int64)
    if plan.program.second >= 0:
        weights += degrees(plan.program.partitions.ctypes.data, plan.program.second, scan)
    ends = np.cumsum(weights)
    share = max(int(ends[-1]) // chunks, 1)
    number = (ends - weights) // share
    hub = (weights > 2 * share) if plan.program.second >= 0 else np.zeros(len(scan), bool)
    fresh = np.append(True, (number[1:] != number[:-1]) | hub[1:] | hub[:-1])
    bounds = [*np.flatnonzero(fresh).tolist(), len(scan)]
    found = []
    for begin, end in pairwise(bounds):
        pieces = int(weights[begin]) // share if hub[begin] else 1
        found += [(begin, end, piece, pieces) for piece in range(pieces)]
    return found


@dataclass(slots=True)
class _Chunk:
    """What a chunk has found and nobody has taken yet."""

    blocks: deque[NDArray[Any]] = field(default_factory=deque)
    done: bool = False


class _Deal:
    """One run: its chunks, the workers they are dealt to, and the matches that wait for the caller."""

    def __init__(
        self, plan: PhysicalPlan, executor: HostExecutor, control: Control, *, counting: bool, limit: int | None
    ) -> None:
        self.total = 0
        self._plan, self._executor, self._control = plan, executor, control
        self._counting, self._limit = counting, limit
        workers = executor._workers(plan)
        self._pieces = _pieces(plan, workers)
        self._chunks = [_Chunk() for _ in self._pieces]
        self._next = self._head = self._waiting_bytes = 0
        self._stop = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        control.rows, control.work = np.zeros((2, len(plan.steps)), np.int64)
        control.threads = workers

    def blocks(self) -> Iterator[NDArray[Any]]:
        """The matches in the order of the chunks; counting gives none and leaves ``total``."""
        if not self._chunks or self._limit == 0:
            return iter(())
        return self._inline() if self._control.threads == 1 else self._threaded()

    def close(self) -> None:
        """Stop the workers and wait for them: some milliseconds."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _inline(self) -> Iterator[NDArray[Any]]:
        search = _Search(self._plan, self._executor, self._counting)
        search.start(*self._pieces[0])
        left = self._limit
        result = -1
        try:
            while result != 0:
                self._control.check()
                result = search.advance(search.capacity if left is None else min(left, search.capacity))
                if self._counting or result != 2:
                    count, matches = search.take()
                    self.total += count
                    if count and not self._counting:
                        yield matches
                    if left is not None:
                        left -= count
                        if left <= 0:
                            return
        finally:
            self._note(search)

    def _threaded(self) -> Iterator[NDArray[Any]]:
        workers = range(self._control.threads)
        self._threads = [threading.Thread(target=self._work, name=f"graphdb-{i}", daemon=True) for i in workers]
        for thread in self._threads:
            thread.start()
        for head, chunk in enumerate(self._chunks):
            with self._changed:
                self._head = head
                self._changed.notify_all()
            while True:
                self._control.check()
                with self._changed:
                    if not chunk.blocks and not chunk.done and self._error is None:
                        self._changed.wait(0.05)  # and then see whether time is over, or Ctrl-C was pressed
                    if self._error is not None:
                        raise self._error
                    matches = chunk.blocks.popleft() if chunk.blocks else None
                    if matches is not None:
                        self._waiting_bytes -= matches.nbytes
                        self._changed.notify_all()
                    elif chunk.done:
                        break
                if matches is not None:
                    yield matches
                if self._counting and self._limit is not None and self.total >= self._limit:
                    return
            if self._control.progress is not None:
                self._control.progress((head + 1) / len(self._chunks))

    def _work(self) -> None:
        """A worker: take the next chunk and search it, until none is left."""
        try:
            search = _Search(self._plan, self._executor, self._counting)
            try:
                while (number := self._take_chunk()) is not None:
                    search.start(*self._pieces[number])
                    self._search_chunk(search, number)
            finally:
                with self._changed:
                    self._note(search)
        except BaseException as error:  # whatever it is, the caller's thread raises it
            with self._changed:
                self._error = error
                self._stop = True
                self._changed.notify_all()

    def _note(self, search: _Search) -> None:
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

    def _search_chunk(self, search: _Search, number: int) -> None:
        chunk, found, result = self._chunks[number], 0, -1
        while result != 0 and not self._stop:
            capacity = search.capacity if self._limit is None else min(search.capacity, self._limit - found)
            result = search.advance(capacity)
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
                    self._waiting_bytes += matches.nbytes
                chunk.done = result == 0
                self._changed.notify_all()
                while self._must_wait(chunk, number):
                    self._changed.wait()

    def _must_wait(self, chunk: _Chunk, number: int) -> bool:
        """Whether too much waits for the caller; the chunk that he takes from may always stay a block ahead."""
        if self._stop or self._waiting_bytes <= self._control.buffer_bytes:
            return False
        return number != self._head or len(chunk.blocks) > 1
