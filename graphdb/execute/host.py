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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import MemoryLimitError
from graphdb.execute.count import count_matches
from graphdb.execute.executor import Block, Control
from graphdb.plan.physical import PhysicalPlan, VertexStep

BLOCK_ROWS = 1 << 16
YIELD_WORK = 1 << 20
"""Elements that a kernel call goes through at most, roughly: some milliseconds."""
INLINE_COST = 300_000.0
"""Plans expected to do less than this run on the calling thread."""
_CHUNKS_PER_THREAD = 128


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
        deal = _Deal(plan, self, control, counting=False, limit=limit)
        try:
            for matches in deal.blocks():
                matches = matches[:, :left]
                count = matches.shape[1]
                yield Block({name: matches[i] for i, name in enumerate(plan.outputs)}, count)
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
        if plan.counting is not None and limit is None:
            try:
                counted = count_matches(plan.counting, control, self.threads, self.memory_limit)
            finally:
                control.seconds = time.monotonic() - started
            if counted is not None:
                return counted
        deal = _Deal(plan, self, control, counting=True, limit=limit)
        try:
            for _ in deal.blocks():
                pass
        finally:
            deal.close()
            control.seconds = time.monotonic() - started
        return deal.total if limit is None else min(deal.total, limit)

    def _worker_bytes(self, plan: PhysicalPlan) -> int:
        block = self.block_rows * len(plan.outputs) * np.dtype(plan.dtype).itemsize
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


class _Search:
    """One worker's search: the kernel's state, its buffers and its output block."""

    def __init__(self, plan: PhysicalPlan, executor: HostExecutor, counting: bool) -> None:
        from graphdb.execute.host_kernels import search

        self._kernel: Any = search
        program, steps = plan.program, len(plan.steps)
        self.capacity = 1 if counting else executor.block_rows
        self._budget, self._counting, self._plan = executor.yield_work, counting, plan
        self._state = np.zeros(3, np.int64)
        self._values = program.constants.copy()
        self._stack = np.zeros((steps, 4), np.int64)
        self.rows = np.zeros(steps, np.int64)
        self._block: NDArray[Any] = np.empty((len(plan.outputs), self.capacity), plan.dtype)
        self._buffers = np.empty(plan.worker_bytes, np.uint8)
        at = self._buffers.ctypes.data
        for i, step in enumerate(plan.steps):
            self._stack[i, 3] = at
            at += int(program.steps[i, 7]) * np.dtype(plan.dtype).itemsize
            if isinstance(step, VertexStep) and step.scan is not None:
                self._stack[i, 0], self._stack[i, 2] = step.scan.ctypes.data, len(step.scan)
        p = program
        self._tables = (p.steps, p.lists, p.checks, p.uncertain, p.partitions, p.outputs, p.resources, p.type_label)
        self._cells = (self._state, self._values, self._stack, self.rows, np.zeros((p.most_lists + 1, 2), np.int64))

    def start(self, begin: int, end: int) -> None:
        """Begin with values ``begin … end-1`` of the first step's scan."""
        self._stack[0, 1], self._stack[0, 2] = begin, end
        self._state[:] = 0

    def advance(self, capacity: int) -> int:
        """Search on until the block holds ``capacity`` matches, the budget is spent, or all is done."""
        modes = (capacity, self._counting, self._plan.count_last and self._counting, self._budget)
        return int(self._kernel(*self._tables, *self._cells, self._block, *modes))

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
        roots, workers = len(_scan(plan)), executor._workers(plan)
        pieces = min(roots, workers * _CHUNKS_PER_THREAD) if workers > 1 else 1
        self._bounds = [roots * i // pieces for i in range(pieces + 1)] if roots else [0]
        self._chunks = [_Chunk() for _ in self._bounds[1:]]
        self._next = self._head = self._waiting_bytes = 0
        self._stop = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        control.rows = np.zeros(len(plan.steps), np.int64)
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
        search.start(0, self._bounds[-1])
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
            self._control.rows += search.rows

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
                    search.start(self._bounds[number], self._bounds[number + 1])
                    self._search_chunk(search, number)
            finally:
                with self._changed:
                    self._control.rows += search.rows
        except BaseException as error:  # whatever it is, the caller's thread raises it
            with self._changed:
                self._error = error
                self._stop = True
                self._changed.notify_all()

    def _take_chunk(self) -> int | None:
        with self._changed:
            if self._stop or self._next == len(self._chunks):
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
