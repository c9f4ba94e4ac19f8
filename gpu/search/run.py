"""The depth-first search on a device: persistent kernels written per plan (``kernels/search/search.cu``).

Counts come back as a number.  Matches leave while the kernel runs, through a ring of blocks in device memory: warps
fill them in any order and say when one is complete, blocks are copied to the host in their order, and the kernel is
informed how many are read, by a copy behind theirs.  So a run needs no more memory than the ring, however many matches
there are.  As the kernel waits for those who empty the ring, it leaves room on every processor for theirs.

Work is scheduled by the second step's elements.  Warps that find none take half of what others have left, within their
block and across blocks (``steal.cuh``).  Where there are too few elements to begin with, partial matches of a
later step are put into a pool first, and redistributed in a second launch: that spreads sooner than stealing does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device, StopFlag
from graphdb.gpu.code.layout import LETTER, LEVEL_WORDS, RUN, STACK_WORDS
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.search.code_generation import WARP, Text, search_text
from graphdb.gpu.search.program import Ends, SearchTables, search_tables
from graphdb.gpu.search.stealing import LEFT, STEALS, Steal
from graphdb.gpu.stream import HostRows, Images, Table, stream
from graphdb.gpu.watch import wait_for
from graphdb.plan.executor import Control, Refused
from graphdb.plan.physical import PhysicalPlan, VertexStep

PIECES = 16
"""Tasks per warp that the work is split into, …"""
LEAST = 1
"""… unless they had fewer elements than this, …"""
LARGE = 16
"""… or so many, which are split more finely, to a quarter: then their work differs most."""
ENOUGH, ENOUGH_STEALING = 1 << 20, 1 << 13
"""Partial matches of the second step that keep a device busy; and those that do where work is stolen."""
RESIDENT = 4
"""Blocks of 256 threads that a processor has room for at least: its registers are shared by as many."""
POOL_ROWS = 1 << 22
BLOCK_ROWS = 1 << 18
RING_BLOCKS = 8
SHARE = 0.2
"""Of the device's budget, what the pool may take at most, and what the ring may; and a third of what is free."""
CARRIED, SHARED = 0.8, 0.5
"""Of what is free, what work that is given away may take, and shared intersections: fewer blocks take less."""
SMALL, OTHERS = 1 << 13, 0.1
"""Bytes of tables and cells; and of the budget, what is left beside lists for work that is given away, and for a pool
or a ring."""
STORED = 2.0
"""Of the device's budget, what all its warps would store of shared intersections, at most: fewer run at a time."""
LONGEST = 1 << 27
"""Elements of a list, at most: a warp counts those of 32 lists in 32 bits."""


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


_MACROS = {"THREADS": str(BLOCK), "RESIDENT": str(RESIDENT)}
VARIANTS["search"] = (
    {"ID": IDS[np.int32], **_MACROS, "STEAL": "2", "LEVELS": "4", "LEFT": str(LEFT)},
    {"ID": IDS[np.int64], **_MACROS},
)


@dataclass(frozen=True, slots=True)
class _Code:
    """What a plan's kernel is compiled of, and how it is launched.

    Attributes
    ----------
    depth
        The step whose batches go through the pool; 0: none.
    steals
        How work is stolen, as a number of :data:`~graphdb.gpu.search.stealing.STEALS`.
    threads, shared
        Threads of a block, and the bytes of shared memory that it takes.
    """

    text: Text
    depth: int
    steals: int
    threads: int
    shared: int
    macros: dict[str, object]

    def carried_bytes(self, width: int) -> int:
        """Bytes of global memory by which a warp is given work."""
        return 4 * len(LETTER) * (1 + (self.depth > 0)) * (self.steals > 0) + width * self.text.carried


class Search:
    """Runs plans by depth-first search.

    Parameters
    ----------
    pieces, least, block_rows, blocks
        How finely work is split, and the ring's blocks (tests make them tiny).
    most
        Blocks of threads at most.
    unroll
        Lists that a warp works on at a time, at most (STMatch §VI).
    motion
        Whether shared intersections are stored (:func:`graphdb.gpu.search.code_generation.search_text`).
    depth, pool_rows
        The step whose batches are redistributed, and how many partial matches that may be; by default the third where
        the second is not expected to have enough for all warps, and the plan goes on for long enough.
    steal, left
        Whether warps without work take from others (STMatch §V), and how little of the last step but one is still
        divided.
    resident
        Blocks that a processor is to have room for, at least: with more, each thread has fewer registers.
    """

    name = "search"

    def __init__(
        self,
        device: Device,
        graph: DeviceGraph,
        *,
        pieces: int = PIECES,
        least: int = LEAST,
        block_rows: int = BLOCK_ROWS,
        blocks: int = RING_BLOCKS,
        most: int | None = None,
        unroll: int = 32,
        motion: bool = True,
        depth: int | None = None,
        pool_rows: int = POOL_ROWS,
        steal: Steal = "across",
        left: int = LEFT,
        resident: int = RESIDENT,
    ) -> None:
        self.device, self.graph = device, graph
        self.pieces, self.least, self.block_rows, self.blocks = pieces, least, block_rows, blocks
        self.most, self.motion, self.pool_rows = most, motion, pool_rows
        self._depth, self.steal, self.left = depth, steal, left
        self.resident = resident
        self.macros: dict[str, object] = {} if unroll == 32 else {"UNROLL": unroll}
        self._streams: list[Any] = []
        """Of searches that have ended, for those to come: to make one takes as long as some launches."""
        self.milliseconds = 0.0
        """After a run: the device's time."""
        self.stolen = (0, 0)
        """After a run: how often work was taken within blocks, and across them."""

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether no list, of neighbours or to be scanned, is too long for it."""
        scans = (len(step.scan) for step in plan.steps[1:] if isinstance(step, VertexStep) and step.scan is not None)
        lists = (partition.max_degree for partition in plan.partitions)
        return max((*scans, *lists), default=0) < LONGEST

    def stream(self) -> Any:
        """A stream that no search uses now."""
        try:
            return self._streams.pop()
        except IndexError:
            return self.device.side_stream()

    def used(self, stream: Any) -> None:
        """A search that used a stream has ended."""
        self._streams.append(stream)

    def refused(self, plan: PhysicalPlan) -> str:
        """Why a plan was not searched when it was tried on this device, within this budget; empty where it was not."""
        found: str = plan.cache.get(("search refused", self.device.number, self.device.memory.budget), "")
        return found

    def refuse(self, plan: PhysicalPlan, why: str) -> None:
        """Remember that."""
        plan.cache["search refused", self.device.number, self.device.memory.budget] = why

    def _stores(self, plan: PhysicalPlan) -> bool:
        """Whether shared intersections are stored: where too few warps had room for theirs, they are made anew."""
        stored = self._stored_ids(plan) * np.dtype(plan.dtype).itemsize
        return self.motion and stored < STORED * self.device.memory.budget

    def _stored_ids(self, plan: PhysicalPlan) -> int:
        """Vertex ids that all warps of a device store of shared intersections."""
        return sum(max(int(entries), 1) for entries in plan.program.share_capacity) * 1024 * self.device.processors

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run takes on the device, besides the graph: intersections, pool and ring."""
        ids = self._stored_ids(plan) * self._stores(plan)
        ids += self.pool_rows * len(plan.steps) * (self.depth(plan) > 0)
        ids += self.block_rows * self.blocks * max(len(plan.program.outputs), 1) * (not plan.count_only)
        return ids * np.dtype(plan.dtype).itemsize + (1 << 16)

    def beside_lists(self, plan: PhysicalPlan, counting: bool) -> int:
        """Bytes that a run does well to find on the device beside lists that do not all fit it."""
        budget, width = self.device.memory.budget, np.dtype(plan.dtype).itemsize
        scans = sum(step.scan.size for step in plan.steps if isinstance(step, VertexStep) and step.scan is not None)
        stored = self._stored_ids(plan) * width if plan.program.shares.size and self._stores(plan) else 0
        others = OTHERS * budget * (1 + (not counting or self.depth(plan) > 0))
        return int(scans * (width + 8 / WARP) + others + min(stored, SHARED / 2 * budget)) + SMALL

    def depth(self, plan: PhysicalPlan) -> int:
        """The step whose batches go through the pool; 0 where the second step's lists are enough to schedule by."""
        last = len(plan.steps) - 2
        depth = self._depth
        if depth is None:
            # As early as will do: intersections stored for later steps are computed again for each match that is
            # pooled.
            enough = ENOUGH_STEALING if self.steal == "across" else ENOUGH
            depth = 2 if last > 2 and plan.steps[1].estimate < enough else 0
        return depth if 1 < depth <= last else 0

    def code(self, plan: PhysicalPlan, *, counting: bool, whole: bool) -> _Code:
        """What is compiled for a plan: for runs of all its matches (``whole``), or with a limit; cached with the plan.

        Raises
        ------
        Refused
            A warp takes more shared memory than a block has.
        """
        how = (self.depth(plan), self.steal, self.left, self._stores(plan), self.resident, *self.macros.items())
        key = ("search code", counting, whole, self.device.name, *how)
        found: _Code | None = plan.cache.get(key)
        if found is None:
            found = plan.cache[key] = self._written(plan, counting=counting, whole=whole)
        return found

    def _written(self, plan: PhysicalPlan, *, counting: bool, whole: bool) -> _Code:
        depth, limits, threads = self.depth(plan) if whole else 0, self.device.limits, BLOCK
        text = search_text(plan, counting, plan.program.second, self._stores(plan), depth, self.steal != "off")
        steals = STEALS.index(self.steal) if text.levels else 0
        width = np.dtype(plan.dtype).itemsize
        stacks = 4 * (LEVEL_WORDS * text.levels + STACK_WORDS) if steals else 0

        def shared_by(warps: int) -> int:
            """Bytes of shared memory: of batches and stacks, and which warps have no work."""
            return warps * (text.cells * width + stacks) + 4 * (steals > 0)

        room = limits.shared if counting else limits.shared // 2
        while threads > 32 and shared_by(threads // 32) > room:
            threads //= 2
        shared = shared_by(threads // 32)
        if shared > limits.shared:
            raise Refused(
                f"a warp of the search takes {shared:,} bytes of shared memory, a block has {limits.shared:,}"
            )
        resident = min(self.resident * BLOCK // threads, limits.processor_shared // max(shared, 1))
        macros: dict[str, object] = {"ID": IDS[plan.dtype], "THREADS": threads, "RESIDENT": max(resident, 1)}
        macros |= self.macros
        if steals:
            macros |= {"STEAL": steals, "LEVELS": text.levels, "LEFT": self.left}
        return _Code(text, depth, steals, threads, shared, macros)

    def is_ready(self, plan: PhysicalPlan, *, counting: bool) -> bool:
        """Whether a run of all matches has nothing to compile; raises as :meth:`code` does."""
        code = self.code(plan, counting=counting, whole=True)
        return self.device.is_ready("search", code.macros, code.text.plan)

    def compile(self, plan: PhysicalPlan, check: Callable[[], None], *, counting: bool) -> None:
        """Compile and load what a run of all matches needs, while ``check`` is asked; raises what that does."""
        code = self.code(plan, counting=counting, whole=True)
        self.device.module("search", code.macros, code.text.plan, check)

    def count(self, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """How many matches are found, before images; with a limit, that many or more will do."""
        if limit == 0:
            return 0
        run = _Run(self, plan, limit, control, counting=True)
        try:
            run.wait(control)
            return run.found
        finally:
            run.close()

    def run(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[HostRows]:
        """Give the matches as blocks of rows, images included, each of which is a match."""
        if limit == 0:
            return
        with self.device.active():
            images = Images(self.device.module("join", {"ID": IDS[plan.dtype]}, check=control.check), self.device, plan)
        run = _Run(self, plan, limit, control, counting=False)
        try:
            yield from stream(self.device, run.tables(control), images, control.buffer_bytes)
        finally:
            run.close()


@dataclass(slots=True)
class _Table:
    """Matches on the device: [columns, rows]."""

    cells: Any
    rows: int
    matches: None = None


class _Run:
    """One search: its launches, on a stream of its own, and what they write."""

    def __init__(
        self, search: Search, plan: PhysicalPlan, limit: int | None, control: Control, *, counting: bool
    ) -> None:
        self._search, self._plan, self._limit, self._counting = search, plan, limit, counting
        self._stop = StopFlag(search.device)
        device = self._device = search.device
        code = search.code(plan, counting=counting, whole=limit is None)
        text, depth, steals, threads, shared = code.text, code.depth, code.steals, code.threads, code.shared
        warps, width, second = threads // 32, np.dtype(plan.dtype).itemsize, plan.program.second
        with device.active():
            empty = device.memory.empty
            tables = search_tables(plan, search.graph)
            program = tables.program
            module = device.module("search", code.macros, text.plan, control.check)
            first_root, last_root = control.range_of(len(program.scans[0]))
            scan = program.scans[0][first_root:last_root]
            work = self._ends(module, tables, scan, second)
            ends, elements = work.ends, work.elements
            blocks = module.resident("search", threads, shared)
            if not counting:
                blocks = max(blocks - BLOCK // threads * device.processors, device.processors)
            blocks = min(blocks, search.most or 1 << 30)
            shares_bytes = warps * text.shares * width
            for each, most in ((warps * code.carried_bytes(width), CARRIED), (shares_bytes, SHARED)):
                if each:
                    room = most * device.memory.reserve(int(blocks * each / most))
                    blocks = max(min(blocks, int(room / each)), 1)
            taken = blocks * (warps * code.carried_bytes(width) + shares_bytes)
            piece = elements // (blocks * warps * search.pieces)
            piece = max(piece // 4 if piece >= LARGE else piece, search.least)
            columns = 0 if counting else len(plan.program.outputs)
            left = max(device.memory.unused_bytes() - taken, 0)
            most = int(min(SHARE * device.memory.budget, left / 3)) // width
            pool_rows = max(min(search.pool_rows, most // max(text.pooled, 1)), 1)
            self._block_rows = max(min(search.block_rows, most // (search.blocks * max(columns, 1))), 1)
            self._ring = empty((search.blocks, max(columns, 1), 1 if counting else self._block_rows), plan.dtype)
            self._columns = columns
            self._ready: NDArray[np.uint64] = device.pinned((search.blocks,), np.uint64)
            self._gone: NDArray[np.int64] = device.pinned((search.blocks,), np.int64)
            self._ready[:] = 0
            shares = empty(blocks * warps * text.shares, plan.dtype)
            pool = empty(text.pooled * pool_rows, plan.dtype)
            desks = empty(
                (1 + (depth > 0), 2 + -(-blocks // 32) + len(LETTER) * blocks * warps if steals else 0), np.uint32
            )
            desks.fill(0)
            mail = empty(blocks * warps * text.carried, plan.dtype)
            # Counters, how far the host is, how full the ring's blocks are, and what the launches are given.
            sizes = [len(_Counter), 1, -(-search.blocks // 2), len(RUN), len(RUN)]
            bounds = np.cumsum([0, *sizes]).tolist()
            cells = empty(bounds[-1], np.int64)
            self._cells, self._taken = cells[: bounds[1]], cells[bounds[1] : bounds[2]]
            counter = {member: address(cells) + 8 * member for member in _Counter}
            given = {
                **tables.addresses,
                "resources": plan.program.resources,
                "type_label": plan.program.type_label,
                "scan": address(scan),
                "roots": len(scan),
                "ends": 0 if ends is None else address(ends) + 8,
                "elements": elements,
                "piece": piece,
                "next": counter[_Counter.NEXT],
                "halt": counter[_Counter.HALT],
                "stop": self._stop.address,
                "found": counter[_Counter.FOUND],
                "limit": -1 if limit is None else limit,
                "shares": address(shares),
                "share_ids": text.shares,
                "pool": address(pool),
                "pool_rows": pool_rows,
                "pooled": counter[_Counter.POOLED],
                "pool_end": counter[_Counter.POOL_END],
                "resumes": 0,
                "ring": address(self._ring),
                "block_rows": self._block_rows,
                "blocks": search.blocks,
                "head": counter[_Counter.HEAD],
                "filled": address(cells) + 8 * bounds[2],
                "ready": self._ready.ctypes.data,
                "taken": address(self._taken),
                "desk": address(desks),
                "mail": address(mail),
                "stolen": counter[_Counter.STOLEN_WITHIN],
            }
            resumed = {"next": counter[_Counter.NEXT_OF_RESUMED], "resumes": 1, "desk": address(desks[-1:])}
            written = np.zeros(bounds[-1], np.int64)
            written[_Counter.POOL_END] = 1 << 62
            for begin, run in zip(bounds[3:], (given, given | resumed), strict=False):
                written[begin : begin + len(RUN)] = [run[name] for name in RUN]
            device.memory.write(cells, written)
            first, again = (np.uint64(address(cells) + 8 * begin) for begin in bounds[3:5])
            self._alive = (module, tables, ends, shares, pool, desks, mail, cells)
            self._stream = search.stream()
            self._stream.wait_event(device.event())
            with self._stream:
                self._begin = device.event_on(self._stream)
                started = blocks if steals > 1 else min(blocks, max(-(-elements // piece), 1))
                module.launch("search", started, first, threads=threads, shared=shared)
                if depth:
                    module.launch("search", blocks, again, threads=threads, shared=shared)
                self._end = device.event_on(self._stream)
            device.memory.streams(int(not counting))

    def _ends(self, module: Any, tables: SearchTables, scan: Any, second: int) -> Ends:
        """Where the elements of each warp's roots end, those of their lists in partition ``second``: of all roots,
        cached as long as the plan's program.
        """
        if second < 0 or not len(scan):
            return Ends(None, len(scan))
        device = self._device

        def found() -> Ends:
            ends = device.memory.empty(-(-len(scan) // WARP) + 1, np.int64)
            table, degrees = np.uint64(tables.addresses["partitions"]), ends[1:]
            module.launch("degrees", -(-len(scan) // BLOCK), table, scan, len(scan), degrees)
            device.sum_up(degrees, ends)
            return Ends(ends, device.last(ends))

        if len(scan) < len(tables.program.scans[0]):
            return found()
        return device.memory.cached_or_built("search ends", self._plan.program, found)

    @cached_property
    def _counters(self) -> NDArray[np.int64]:
        """What the kernels counted, once they have ended."""
        found: NDArray[np.int64] = self._cells.get()
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
        number, rows, blocks = 0, self._block_rows, self._search.blocks
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
            self._search.milliseconds = self._device.milliseconds(self._begin, self._end)
            self._search.stolen = tuple(self._counters[_Counter.STOLEN_WITHIN :].tolist())
        self._search.used(self._stream)
        self._device.memory.streams(-int(not self._counting))
