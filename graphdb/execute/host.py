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
from graphdb.execute.count import count_by_vertex, count_matches
from graphdb.execute.executor import Block, Control
from graphdb.execute.trees import count_along_tree
from graphdb.execute.twins import count_twins
from graphdb.plan.physical import WINDOW, PhysicalPlan, TreeCount, VertexStep

Found = tuple[NDArray[Any], NDArray[np.int64] | None]
"""Rows as columns, and how many matches each stands for where that is counted."""

BLOCK_ROWS = 1 << 16
_FIRST_ROWS = 1 << 12
"""Rows of a search's first output block; later ones are larger, up to the executor's ``block_rows``."""
YIELD_WORK = 1 << 20
"""Elements that a kernel call goes through at most, roughly: some milliseconds."""
INLINE_COST = 300_000.0
"""Plans expected to do less than this run on the calling thread."""
_WAIT = 0.02
"""Seconds after which the caller's thread looks at the clock, while it waits for workers."""
_TELLING = 3
"""So many of the first steps say how far a search is."""
_CHUNKS_PER_THREAD = 128
_CHUNK_COST = 100_000.0
"""Chunks are not made smaller than this, in elements that the search is expected to go through."""
_SPARE_BYTES = 1 << 20
"""Buffers up to this size (or a 64th of the memory limit) stay with their plan for its next run."""


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
        self.spare_bytes = _SPARE_BYTES if memory_limit is None else min(_SPARE_BYTES, memory_limit // 64)

    def supports(self, plan: PhysicalPlan) -> bool:
        """Every plan runs on the CPU."""
        return True

    def describe(self, plan: PhysicalPlan) -> str:
        """The CPU: there is one way."""
        return self.name

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes of the workers' intersection buffers and output blocks, or of the vectors that count."""
        if plan.counting is not None:
            return plan.counting.shared_bytes + self.threads * plan.counting.worker_bytes
        if plan.tree is not None:
            return self.threads * plan.tree.worker_bytes
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
        if plan.counting is not None and limit is None:
            try:
                counted = count_by_vertex(plan.counting, control, self.threads, self.memory_limit)
            finally:
                control.seconds = time.monotonic() - started
            if counted is not None:
                yield from self._counted_rows(plan, *counted)
                return
        deal = self._deal(plan, control, counting=False, limit=_ceil(limit, len(plan.columns)))
        try:
            for matches in deal.blocks():
                found, numbers = matches
                count = found.shape[1] * len(plan.columns)
                count = count if left is None else min(count, left)
                columns = zip(plan.outputs, plan.columns.T, strict=True)
                if plan.duplicates == "count":
                    numbers = np.ones(count, np.int64) if numbers is None else numbers
                    numbers *= plan.automorphisms
                yield Block({name: _images(found, moved)[:count] for name, moved in columns}, count, numbers)
                if left is not None:
                    left -= count
                    if left == 0:
                        break
        finally:
            deal.close()
            control.seconds = time.monotonic() - started

    def _counted_rows(
        self, plan: PhysicalPlan, vertices: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> Iterator[Block]:
        for at in range(0, len(vertices), self.block_rows):
            part = vertices[at : at + self.block_rows].astype(plan.dtype)
            matches = numbers[at : at + self.block_rows] if plan.duplicates == "count" else None
            yield Block({plan.outputs[0]: part}, len(part), matches)

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
        if plan.twins is not None and limit is None:
            try:
                counted = count_twins(plan.twins, control, self.memory_limit)
            finally:
                control.seconds = time.monotonic() - started
            if counted is not None:
                return counted
        if plan.tree is not None and limit is None and self._fits(plan.tree):
            try:
                return count_along_tree(
                    plan.tree, control, self.threads, yield_work=self.yield_work, inline_cost=self.inline_cost
                )
            finally:
                control.seconds = time.monotonic() - started
        if plan.counting is not None and limit is None:
            try:
                counted = count_matches(plan.counting, control, self.threads, self.memory_limit)
            finally:
                control.seconds = time.monotonic() - started
            if counted is not None:
                return counted
        deal = self._deal(plan, control, counting=True, limit=_ceil(limit, plan.automorphisms))
        try:
            for _ in deal.blocks():
                pass
        finally:
            deal.close()
            control.seconds = time.monotonic() - started
        total = deal.total * plan.automorphisms
        return total if limit is None else min(total, limit)

    def _deal(self, plan: PhysicalPlan, control: Control, *, counting: bool, limit: int | None) -> _Alone | _Deal:
        control.threads = self._workers(plan)
        return (_Alone if control.threads == 1 else _Deal)(plan, self, control, counting, limit)

    def _fits(self, tree: TreeCount) -> bool:
        """Whether the memory limit has room for all workers of a count along a tree."""
        return self.memory_limit is None or self.threads * tree.worker_bytes <= self.memory_limit

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
        self._largest = executor.block_rows
        self.capacity = 1 if counting else min(_FIRST_ROWS, executor.block_rows)
        self.fits = _fits(executor, counting)
        self._counting = counting
        counted = plan.duplicates == "count" and plan.kept < steps and not counting
        self._modes = (counting, plan.count_last and (counting or counted), executor.yield_work)
        self._like = (plan.dtype(0), width)
        self._values = program.constants.copy()
        self._stack = np.zeros((steps, kernels.STACK_CELLS), np.int64)
        self.tallies = np.zeros((2, steps), np.int64)
        self.rows, self.work = self.tallies
        self._block: NDArray[Any] = np.empty((len(program.outputs), self.capacity), plan.dtype)
        self._numbers = np.empty(self.capacity, np.int64) if counted else None
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
        self._own = (self._values, self._stack, self.tallies, spans, bits, shared)
        self._frame[kernels.VALUES : kernels.LEVEL] = [array.ctypes.data for array in self._own]
        self._frame[kernels.KEPT] = steps - 1 if counting else plan.kept - 1
        self._state = self._frame[kernels.LEVEL : kernels.KEPT]
        self._rows = self._frame[kernels.NUMBERS :]
        self._addresses = self._frame.ctypes.data, self._block.ctypes.data

    @property
    def bytes(self) -> int:
        """What its buffers and its block take."""
        return self._buffers.nbytes + self._block.nbytes

    def start(self, begin: int, end: int, piece: int = 0, pieces: int = 1) -> None:
        """Begin with values ``begin … end-1`` of the first step's scan, and a piece of what the second goes through."""
        self._stack[0, 1] = self._stack[0, 2] = 0
        self._stack[0, 5], self._stack[0, 6], self._stack[0, 8] = begin, end, begin
        self._state[:] = (0, 0, 0, piece, pieces)
        self._rows[:] = (0 if self._numbers is None else self._numbers.ctypes.data, 0)

    def advance(self, wanted: int) -> int:
        """Search on until the block holds ``wanted`` matches, the budget is spent, or all is done."""
        frame, block = self._addresses
        return int(self._kernel(frame, *self._like, block, self.capacity, wanted, *self._modes))

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


def _fits(executor: HostExecutor, counting: bool) -> tuple[bool, int, int]:
    """What two searches of one plan must have in common to stand in for each other."""
    return counting, executor.block_rows, executor.yield_work


def _borrowed(plan: PhysicalPlan, executor: HostExecutor, counting: bool) -> _Search:
    """A search that nobody else uses now: the one kept with the plan, or a new one."""
    kept: _Search | None = plan.spare.pop(_fits(executor, counting), None)  # one thread alone gets it
    if kept is None:
        return _Search(plan, executor, counting)
    kept.tallies[:] = 0
    return kept


def _give_back(plan: PhysicalPlan, executor: HostExecutor, search: _Search) -> None:
    """Keep a search with its plan for the next run, where it is small.

    Whatever state the last run left: a start begins anew, and the lists that are kept as bits or shared are told by the
    values that they belong to, over data that stays as it is for as long as the plan.
    """
    if search.bytes <= executor.spare_bytes:
        plan.spare[search.fits] = search


def _pieces(plan: PhysicalPlan, workers: int) -> list[_Chunk]:
    """Deal a run into chunks of about the same work.

    Roots count by their degrees in the second step; one that is too much for a chunk (a hub) is dealt out in pieces of
    the list that the second step goes through.
    """
    from graphdb.execute.set_kernels import degrees

    scan = _scan(plan)
    if not len(scan):
        return []
    chunks = int(min(max(plan.cost / _CHUNK_COST, 4), _CHUNKS_PER_THREAD)) * workers
    weights = np.ones(len(scan), np.int64)
    if plan.program.second >= 0:
        weights += degrees(plan.program.partitions.ctypes.data, plan.program.second, scan)
    ends = np.cumsum(weights)
    share = max(int(ends[-1]) // chunks, 1)
    number = (ends - weights) // share
    # Where the first step alone makes the row, every piece would give it again.
    split = plan.program.second >= 0 and (plan.kept > 1 or plan.duplicates != "drop")
    hub = (weights > 2 * share) if split else np.zeros(len(scan), bool)
    fresh = np.append(True, (number[1:] != number[:-1]) | hub[1:] | hub[:-1])
    bounds = [*np.flatnonzero(fresh).tolist(), len(scan)]
    found = []
    for begin, end in pairwise(bounds):
        pieces = int(weights[begin]) // share if hub[begin] else 1
        weight = float(ends[end - 1] - ends[begin] + weights[begin]) / pieces / float(ends[-1])
        found += [_Chunk((begin, end, piece, pieces), weight) for piece in range(pieces)]
    return found


class _Alone:
    """One run on the calling thread."""

    def __init__(
        self, plan: PhysicalPlan, executor: HostExecutor, control: Control, counting: bool, limit: int | None
    ) -> None:
        self.total = 0
        self._plan, self._executor, self._control = plan, executor, control
        self._counting, self._limit = counting, limit
        self._search = _borrowed(plan, executor, counting)
        control.rows, control.work = self._search.tallies

    def blocks(self) -> Iterator[Found]:
        """The matches; counting gives none and leaves ``total``."""
        search, left, result = self._search, self._limit, -1
        roots = len(_scan(self._plan))
        if not roots or left == 0:
            return
        search.start(0, roots)
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
        """Keep the search for the next run."""
        self._control.rows, self._control.work = self._search.tallies.copy()
        _give_back(self._plan, self._executor, self._search)


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


class _Deal:
    """One run of several workers: its chunks, the workers they are dealt to, the matches that wait for the caller."""

    def __init__(
        self, plan: PhysicalPlan, executor: HostExecutor, control: Control, counting: bool, limit: int | None
    ) -> None:
        self.total = 0
        self._plan, self._executor, self._control = plan, executor, control
        self._counting, self._limit = counting, limit
        self._chunks = _pieces(plan, control.threads)
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
                self._control.check()
                if self._control.due:
                    self._control.report(sum(chunk.weight * chunk.share for chunk in self._chunks))
                with self._changed:
                    if not chunk.blocks and not chunk.done and self._error is None:
                        self._changed.wait(_WAIT)  # and then see whether time is over, or Ctrl-C was pressed
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

    def _work(self) -> None:
        """A worker: take the next chunk and search it, until none is left."""
        try:
            search = _Search(self._plan, self._executor, self._counting)
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
