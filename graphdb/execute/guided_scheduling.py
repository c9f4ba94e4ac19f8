"""Guided self-scheduling of one run on several executors: whoever is free takes the next share of it.

Shares become smaller towards the end, so that no one works for long after the others are done (Polychronopoulos and
Kuck, 1987; SMOG §IV-A: the workload
is partitioned by what vertices are expected to take).  Results are handed over in the order of the shares.  A share
whose executor fails is run again by another, which leaves out the rows that were handed over.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, GraphDBError, MemoryLimitError, QueryInterrupted
from graphdb.execute.scheduler import WAIT
from graphdb.plan.executor import Block, Control
from graphdb.plan.shares import Divisible, Partial

FAILURES = (DeviceError, MemoryLimitError)
"""What makes an executor leave a run to the others."""


@dataclass(frozen=True, slots=True)
class Task:
    """One share that was run: by whom, which units, and its seconds, from the beginning of the run."""

    executor: int
    begin: int
    end: int
    started: float
    ended: float


@dataclass(slots=True)
class _Share:
    """A share: what it has found that nobody has taken yet, and what was handed over before its executor failed."""

    begin: int
    end: int
    weight: float
    """Its part of the whole run's work."""
    blocks: deque[Block] = field(default_factory=deque)
    partial: Partial = ()
    found: int = 0
    """Rows, or matches, found so far."""
    given: int = 0
    """Of them, those that were handed over, or wait for the caller in an order that does not change."""
    done: bool = False


class GuidedSchedule:
    """The shares of one run on several executors.

    Parameters
    ----------
    executors
        Who runs shares, each in a thread of its own.
    cuts, weights
        The shares, as ranges of units, and each one's part of the work.
    control
        The caller's.
    limit
        Rows or matches that will do.
    ordered
        Whether every executor gives a share's rows in the same order.
    """

    def __init__(
        self,
        executors: Sequence[Divisible],
        cuts: Sequence[tuple[int, int]],
        weights: Sequence[float],
        control: Control,
        limit: int | None,
        *,
        ordered: bool = True,
    ) -> None:
        self.executors = tuple(executors)
        self._control, self._limit, self._ordered = control, limit, ordered
        self._shares = [_Share(begin, end, weight) for (begin, end), weight in zip(cuts, weights, strict=True)]
        self._open = list(range(len(cuts)))
        """The shares that nobody runs, a heap."""
        self._head = self._waiting_bytes = self._left = 0
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self.failed: dict[int, GraphDBError] = {}
        """By executor that failed: how."""
        self.tasks: list[Task] = []
        self._started = time.monotonic()
        self._rows: list[NDArray[np.int64]] = []
        self._workers: dict[int, int] = {}
        """By executor: how many threads it had."""
        self._threads: list[threading.Thread] = []

    # --- the caller's side

    def rows(self, run: Callable[[Divisible, Control], Iterator[Block]]) -> Iterator[Block]:
        """The rows in the order of the shares."""

        def work(executor: Divisible, control: Control, share: _Share, number: int) -> None:
            self._collect(run(executor, control), share, number)

        self._begin(work)
        try:
            for number, share in enumerate(self._shares):
                if self._enough(number):
                    return
                with self._changed:
                    self._head = number
                    self._changed.notify_all()
                while (block := self._next(share)) is not None:
                    yield block
        finally:
            self._end()

    def partials(self, count: Callable[[Divisible, Control], Partial]) -> Iterator[Partial]:
        """What the shares count, in their order."""

        def work(executor: Divisible, control: Control, share: _Share, _: int) -> None:
            share.partial = count(executor, control)
            share.found = share.partial[0]

        self._begin(work)
        try:
            for number, share in enumerate(self._shares):
                if self._enough(number):
                    return
                self._next(share)
                yield share.partial
        finally:
            self._end()

    def _next(self, share: _Share) -> Block | None:
        """Wait for a share's next block; None once it is done."""
        while True:
            self._control.watch(self._done)
            with self._changed:
                if not share.blocks and not share.done and self._error is None:
                    self._changed.wait(self._control.wait(WAIT))  # then see if time is over, or Ctrl-C was pressed
                if self._error is not None:
                    raise self._error
                if share.blocks:
                    block = share.blocks.popleft()
                    self._waiting_bytes -= _bytes(block)
                    self._changed.notify_all()
                    return block
                if share.done:
                    return None

    def _done(self) -> float:
        return sum(share.weight for share in self._shares if share.done)

    def _enough(self, until: int) -> bool:
        """Whether the shares before one have enough for the limit."""
        return self._limit is not None and sum(share.found for share in self._shares[:until]) >= self._limit

    def _begin(self, work: Callable[[Divisible, Control, _Share, int], None]) -> None:
        # Kernels run without the GIL, and a device's thread only waits.
        for number in range(len(self.executors)):
            thread = threading.Thread(target=self._work, args=(number, work), name=f"graphdb-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _end(self) -> None:
        """Stop whoever works still, wait for that, and say what all have done."""
        with self._changed:
            self._stop.set()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        if len({len(rows) for rows in self._rows}) == 1:
            self._control.rows = np.sum(self._rows, axis=0)
        self._control.threads = sum(self._workers.values())

    # --- the executors' side

    def _work(self, number: int, work: Callable[[Divisible, Control, _Share, int], None]) -> None:
        """Take shares until none is left, or this executor fails."""
        try:
            while (taken := self._take()) is not None:
                share, started = self._shares[taken], time.monotonic()
                control = self._control_of(share)
                try:
                    work(self.executors[number], control, share, taken)
                except _Yielded:
                    self._give_back(taken)
                    continue
                except FAILURES as error:
                    self._fail(number, taken, error)
                    return
                with self._changed:
                    now = time.monotonic()
                    task = Task(number, share.begin, share.end, started - self._started, now - self._started)
                    self.tasks.append(task)
                    self._rows.append(control.rows)
                    self._workers[number] = control.threads
                    share.done = True
                    self._changed.notify_all()
        except BaseException as error:  # whatever it is, the caller's thread raises it
            with self._changed:
                if not (self._stop.is_set() and isinstance(error, QueryInterrupted)):
                    self._error = self._error or error
                    self._stop.set()
                self._changed.notify_all()

    def _control_of(self, share: _Share) -> Control:
        """The control of a share: our own event stops it."""
        return Control(
            cancelled=self._stop,
            limit=self._limit,
            buffer_bytes=max(self._control.buffer_bytes // len(self.executors), 1),
            share=(share.begin, share.end),
        )

    def _take(self) -> int | None:
        """The next share; waits where others run the last ones, who may fail.  None where nothing is left to do."""
        with self._changed:
            while not self._stop.is_set():
                if self._open:
                    if self._enough(self._open[0]):  # what comes before has enough, unless somebody fails
                        if all(share.done for share in self._shares[: self._open[0]]):
                            return None
                    else:
                        return heapq.heappop(self._open)
                elif all(share.done for share in self._shares):
                    return None
                self._changed.wait(WAIT)
            return None

    def _give_back(self, number: int) -> None:
        """A share that is to be run again, by whoever is free next."""
        with self._changed:
            share = self._shares[number]
            share.found = share.given
            heapq.heappush(self._open, number)
            self._changed.notify_all()

    def _fail(self, number: int, taken: int, error: GraphDBError) -> None:
        """An executor leaves its share to the others; where it was the last, the run fails."""
        self._give_back(taken)
        with self._changed:
            self.failed[number] = error
            if len(self.failed) == len(self.executors):
                self._error = error
                self._stop.set()
            else:  # where it came from holds arrays on the device
                error.with_traceback(None).__cause__ = error.__context__ = None
            self._changed.notify_all()

    def _collect(self, blocks: Iterator[Block], share: _Share, number: int) -> None:
        """Hand over a share's blocks, or all at its end where another executor may give them in another order."""
        skipped, pending = share.given, []
        for block in blocks:
            if skipped >= block.count:
                skipped -= block.count
                continue
            if skipped:
                block, skipped = _after(block, skipped), 0
            if self._ordered:
                self._hand_over([block], share, number)
            else:
                pending.append(block)
        self._hand_over(pending, share, number)

    def _hand_over(self, blocks: list[Block], share: _Share, number: int) -> None:
        with self._changed:
            for block in blocks:
                share.blocks.append(block)
                share.found += block.count
                share.given += block.count
                self._waiting_bytes += _bytes(block)
            self._changed.notify_all()
            while not self._stop.is_set() and self._waiting_bytes > self._control.buffer_bytes:
                if number == self._head and len(share.blocks) <= 1:
                    return
                if number != self._head and self._head in self._open:
                    # Whoever ran the share that the caller waits for has failed: this one goes on later.
                    for block in share.blocks:
                        self._waiting_bytes -= _bytes(block)
                    share.blocks.clear()
                    share.given = 0
                    raise _Yielded
                self._changed.wait(WAIT)


class _Yielded(Exception):
    """A share is put aside for one that is wanted sooner."""


def _after(block: Block, rows: int) -> Block:
    """A block without its first rows."""
    columns = {name: cells[rows:] for name, cells in block.columns.items()}
    return Block(columns, block.count - rows, None if block.matches is None else block.matches[rows:])


def _bytes(block: Block) -> int:
    arrays = [*block.columns.values(), *([] if block.matches is None else [block.matches])]
    return sum(cells.nbytes for cells in arrays)
