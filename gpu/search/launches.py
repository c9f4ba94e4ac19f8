"""The launches of a search: what its kernels are given, and the matches that come back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.common.lazy import lazy
from graphdb.gpu.code.launch import BLOCK, Device, StopFlag
from graphdb.gpu.code.layout import LETTER, RUN
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.data.pinned import Pinned
from graphdb.gpu.search.code_generation import WARP, Text
from graphdb.gpu.search.program import Ends, search_tables
from graphdb.gpu.stream import Table
from graphdb.gpu.watch import wait_for
from graphdb.plan.executor import Control
from graphdb.plan.physical import PhysicalPlan

LARGE = 16
"""Elements of a task from which on work is split more finely, to a quarter: then it differs most."""
FAR = 2
"""Where roots or their lists are in host memory, tasks have so many times as many elements, and are not split: each
finds the lists of all roots of a warp anew, over the link."""
SHARE = 0.2
"""Of the device's budget, what the pool may take at most, and what the ring may; and a third of what is free."""
CARRIED, SHARED = 0.8, 0.5
"""Of what is free, what work that is given away may take, and shared intersections: fewer blocks take less."""


class _Counter(IntEnum):
    """The cells that kernels count with: all 0 at first, but for where the pool ends."""

    NEXT = 0
    HALT = 1
    FOUND = 2
    HEAD = 3
    POOLED = 4
    POOL_END = 5
    NEXT_OF_RESUMED = 6
    """The second launch's next task."""
    STOLEN_WITHIN = 7
    STOLEN_ACROSS = 8


@dataclass(frozen=True, slots=True)
class Code:
    """What a plan's kernel is compiled of, and how it is launched.

    Attributes
    ----------
    depth
        The step whose batches go through the pool; 0: none.
    steals
        How work is stolen, as a number of :data:`~graphdb.gpu.search.stealing.STEALS`.
    threads, shared
        Threads of a block, and the bytes of shared memory that it takes.
    packed
        Whether it reads lists that may stand in few bits.
    """

    text: Text
    depth: int
    steals: int
    threads: int
    shared: int
    macros: dict[str, object]
    packed: bool

    def carried_bytes(self, width: int) -> int:
        """Bytes of global memory by which a warp is given work."""
        return 4 * len(LETTER) * (1 + (self.depth > 0)) * (self.steals > 0) + width * self.text.carried


@dataclass(frozen=True, slots=True)
class Sizes:
    """How finely work is split, and the room of a run: see :class:`graphdb.gpu.search.run.Search`."""

    pieces: int
    least: int
    block_rows: int
    blocks: int
    most: int | None
    pool_rows: int


@dataclass(slots=True)
class _Table:
    """Matches on the device: [columns, rows]."""

    cells: Any
    rows: int
    matches: None = None


class SearchRun:
    """One search: the memory that it takes, and its launches, on a stream of its own."""

    def __init__(
        self,
        device: Device,
        graph: DeviceGraph,
        plan: PhysicalPlan,
        code: Code,
        sizes: Sizes,
        stream: Any,
        limit: int | None,
        control: Control,
        *,
        counting: bool,
    ) -> None:
        self._device, self._graph, self._plan, self._code, self._sizes = device, graph, plan, code, sizes
        self._limit, self._stream = limit, stream
        self._stop = StopFlag(device)
        self.milliseconds, self.stolen = 0.0, (0, 0)
        """Once it is closed: the device's time, and how often work was taken within blocks, and across them."""
        text, depth, threads, shared = code.text, code.depth, code.threads, code.shared
        warps, width = threads // 32, np.dtype(plan.dtype).itemsize
        with device.active():
            empty = device.memory.empty
            self._tables = tables = search_tables(plan, graph, code.packed)
            self._module = module = device.module("search", code.macros, text.plan, control.check)
            first, last = control.range_of(len(tables.program.scans[0]))
            self._scan = tables.program.scans[0][first:last]
            self._work = self._ends()
            self._far = self._reads_far()
            blocks = module.resident("search", threads, shared)
            if not counting:
                blocks = max(blocks - BLOCK // threads * device.processors, device.processors)
            blocks = min(blocks, sizes.most or 1 << 30, tables.blocks.get(id(code), blocks))
            shares_bytes = warps * text.shares * width
            for each, most in ((warps * code.carried_bytes(width), CARRIED), (shares_bytes, SHARED)):
                if each:
                    room = most * device.memory.reserve(int(blocks * each / most))
                    blocks = max(min(blocks, int(room / each)), 1)
            columns = 0 if counting else len(plan.program.outputs)
            while True:
                taken = blocks * (warps * code.carried_bytes(width) + shares_bytes)
                left = max(device.memory.unused_bytes() - taken, 0)
                most = int(min(SHARE * device.memory.budget, left / 3)) // width
                pool_rows = max(min(sizes.pool_rows, most // max(text.pooled, 1)), 1)
                self._block_rows = max(min(sizes.block_rows, most // (sizes.blocks * max(columns, 1))), 1)
                desk_words = 2 + -(-blocks // 32) + len(LETTER) * blocks * warps if code.steals else 0
                try:
                    ring = (sizes.blocks, max(columns, 1), self._block_rows)
                    self._ring = empty((0, *ring[1:]) if counting else ring, plan.dtype)
                    shares = empty(blocks * warps * text.shares, plan.dtype)
                    pool = empty(text.pooled * pool_rows, plan.dtype)
                    desks = empty((1 + (depth > 0), desk_words), np.uint32)
                    mail = empty(blocks * warps * text.carried, plan.dtype)
                    break
                except MemoryLimitError:  # what is free is in several pieces: lists stand between them
                    if blocks == 1:
                        raise
                    self._ring = shares = pool = desks = mail = None
                    blocks = tables.blocks[id(code)] = blocks * 3 // 4
            self._columns = columns
            cells = np.zeros if counting else device.pinned  # a count gives no rows: no kernel looks here
            self._ready: NDArray[np.uint64] = cells((sizes.blocks,), np.uint64)
            self._gone: NDArray[np.int64] = cells((sizes.blocks,), np.int64)
            self._given: dict[str, int] = {
                **tables.addresses,
                "resources": plan.program.resources,
                "type_label": plan.program.type_label,
                "stop": self._stop.address,
                "limit": -1 if limit is None else limit,
                "shares": address(shares),
                "share_ids": text.shares,
                "pool": address(pool),
                "pool_rows": pool_rows,
                "ring": address(self._ring),
                "block_rows": self._block_rows,
                "blocks": sizes.blocks,
                "ready": self._ready.ctypes.data,
                "mail": address(mail),
            }
            self._desks, self.launched = desks, blocks
            self._alive = (shares, pool, mail)
            self._stream.wait_event(device.event())

    def launch(self) -> None:
        """Launch the kernels, behind all that was before; those that give rows wait for the host."""
        sizes, code, device, work = self._sizes, self._code, self._device, self._work
        piece = work.elements // (self.launched * (code.threads // 32) * sizes.pieces)
        fine = piece // 4 if piece >= LARGE else piece
        piece = max(FAR * piece if self._far else fine, sizes.least)
        with device.active():
            self._ready[:] = 0
            self._gone[:] = 0
            self._desks.fill(0)
            # Counters, how far the host is, how full the ring's blocks are, and what the launches are given.
            bounds = np.cumsum([0, len(_Counter), 1, -(-sizes.blocks // 2), len(RUN), len(RUN)]).tolist()
            self._cells = cells = device.memory.empty(bounds[-1], np.int64)
            self._taken = cells[bounds[1] : bounds[2]]
            counter = {member: address(cells) + 8 * member for member in _Counter}
            given = self._given | {
                "scan": address(self._scan),
                "roots": len(self._scan),
                "ends": 0 if work.ends is None else address(work.ends) + 8,
                "elements": work.elements,
                "piece": piece,
                "next": counter[_Counter.NEXT],
                "halt": counter[_Counter.HALT],
                "found": counter[_Counter.FOUND],
                "pooled": counter[_Counter.POOLED],
                "pool_end": counter[_Counter.POOL_END],
                "resumes": 0,
                "head": counter[_Counter.HEAD],
                "filled": address(cells) + 8 * bounds[2],
                "taken": address(self._taken),
                "desk": address(self._desks),
                "stolen": counter[_Counter.STOLEN_WITHIN],
            }
            desk = address(self._desks[-1:])
            resumed = {"next": counter[_Counter.NEXT_OF_RESUMED], "resumes": 1, "desk": desk}
            written = np.zeros(bounds[-1], np.int64)
            written[_Counter.POOL_END] = 1 << 62
            for begin, run in zip(bounds[3:], (given, given | resumed), strict=False):
                written[begin : begin + len(RUN)] = [run[name] for name in RUN]
            device.memory.write(cells, written)
            one, again = (np.uint64(address(cells) + 8 * begin) for begin in bounds[3:5])
            self._stream.wait_event(device.event())
            with self._stream:
                self._begin = device.event_on(self._stream)
                tasks = self.launched if code.steals > 1 else max(-(-work.elements // piece), 1)
                how = {"threads": code.threads, "shared": code.shared}
                self._module.launch("search", min(self.launched, tasks), one, **how)
                if code.depth:
                    self._module.launch("search", self.launched, again, **how)
                self._end = device.event_on(self._stream)

    def _ends(self) -> Ends:
        """Where the elements of each warp's roots end, those of their lists in the partition by which work is
        scheduled: of all roots, cached as long as the plan's program.
        """
        device, tables, scan = self._device, self._tables, self._scan
        second = self._plan.program.second
        if second < 0 or not len(scan):
            return Ends(None, len(scan))

        def found() -> Ends:
            ends = device.memory.empty(-(-len(scan) // WARP) + 1, np.int64)
            table, roots, degrees = np.uint64(tables.addresses["partitions"]), np.uint64(address(scan)), ends[1:]
            self._module.launch("degrees", -(-len(scan) // BLOCK), table, roots, len(scan), degrees)
            device.sum_up(degrees, ends)
            return Ends(ends, device.last(ends))

        if len(scan) < len(tables.program.scans[0]):
            return found()
        return device.memory.cached_or_built("search ends", self._plan.program, found)

    def _reads_far(self) -> bool:
        """Whether the roots, or some of the lists that tasks are made of, are in host memory."""
        second = self._plan.program.second
        placed = None if second < 0 else self._graph.residency.divided(self._plan.partitions[second])
        return isinstance(self._scan, Pinned) or (placed is not None and not placed.resident.all())

    @lazy
    def _counters(self) -> NDArray[np.int64]:
        """What the kernels counted, once they have ended."""
        found: NDArray[np.int64] = self._cells[: len(_Counter)].get()
        return found

    @property
    def found(self) -> int:
        """The matches counted."""
        return int(self._counters[_Counter.FOUND])

    def wait(self, control: Control) -> None:
        """Wait for the kernels to end."""
        wait_for(self._end, control, self._stop, lambda: None)

    def tables(self, control: Control) -> Iterator[Table]:
        """The matches, block by block: whoever asks for the next has put the copy of the last on its way."""
        number, rows, blocks = 0, self._block_rows, self._sizes.blocks
        while True:
            ended = self._end.done  # asked first: what was written before is there then
            at = number % blocks
            if int(self._ready[at]) == number + 1:
                yield self._block(at, rows)
                number += 1
                self._gone[at] = number
                self._taken.set(self._gone[at : at + 1], stream=self._device.copies)
            elif ended:
                break
            else:
                control.check()
                time.sleep(2e-5)
        head = int(self._counters[_Counter.HEAD])
        rest = (head if self._limit is None else min(head, self._limit)) - number * rows
        if rest > 0:
            yield self._block(number % blocks, rest)

    def _block(self, at: int, rows: int) -> _Table:
        """The first rows of a block of the ring."""
        cells = self._ring[at, : self._columns, :rows]
        if rows < self._block_rows:  # which copies as one piece
            whole = self._device.memory.empty((self._columns, rows), self._plan.dtype)
            whole[...] = cells
            cells = whole
        return _Table(cells, rows)

    def close(self) -> None:
        """Stop the kernels if they run still."""
        if not self._end.done:
            self._stop.set()
            self._end.synchronize()
        else:
            self.milliseconds = self._device.milliseconds(self._begin, self._end)
            self.stolen = tuple(self._counters[_Counter.STOLEN_WITHIN :].tolist())
