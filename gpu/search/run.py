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

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device
from graphdb.gpu.code.layout import LEVEL_WORDS, STACK_WORDS
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.data.residency import lists_read
from graphdb.gpu.data.searched import SearchedLists
from graphdb.gpu.search.code_generation import WARP, search_text
from graphdb.gpu.search.launches import SHARED, Code, SearchRun, Sizes
from graphdb.gpu.search.stealing import LEFT, STEALS, Steal
from graphdb.gpu.stream import HostRows, Images, stream
from graphdb.plan.executor import Control, Refused
from graphdb.plan.physical import PhysicalPlan, VertexStep

PIECES = 16
"""Tasks per warp that the work is split into, …"""
LEAST = 1
"""… unless they had fewer elements than this."""
ENOUGH, ENOUGH_STEALING = 1 << 20, 1 << 13
"""Partial matches of the second step that keep a device busy; and those that do where work is stolen."""
RESIDENT = 4
"""Blocks of 256 threads that a processor has room for at least: its registers are shared by as many."""
POOL_ROWS = 1 << 22
BLOCK_ROWS = 1 << 18
RING_BLOCKS = 8
SMALL, OTHERS = 1 << 13, 0.1
"""Bytes of tables and cells; and of the budget, what is left beside lists for work that is given away, and for a pool
or a ring."""
STORED = 2.0
"""Of the device's budget, what all its warps would store of shared intersections, at most: fewer run at a time."""
MOST_RUNS = 64
"""Runs, at most, after which a search is tried again that got too little memory."""
LONGEST = 1 << 27
"""Elements of a list, at most: a warp counts those of 32 lists in 32 bits."""


_MACROS = {"THREADS": str(BLOCK), "RESIDENT": str(RESIDENT)}
VARIANTS["search"] = (
    {"ID": IDS[np.int32], **_MACROS, "STEAL": "2", "LEVELS": "4", "LEFT": str(LEFT)},
    {"ID": IDS[np.int32], **_MACROS, "BIT_PACKED": "1"},
    {"ID": IDS[np.int64], **_MACROS},
)


@dataclass(slots=True)
class Refusal:
    """Why a plan is not searched, for so many ``runs`` to come; and how many they were at first."""

    why: str
    runs: float
    times: int = 0


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
        self._searched = SearchedLists(device.memory, graph.residency)
        self._streams: list[Any] = []
        """Of searches that have ended, for those to come: to make one takes as long as some launches."""
        self.milliseconds = 0.0
        """After a run: the device's time."""
        self.stolen = (0, 0)
        """After a run: how often work was taken within blocks, and across them."""
        self.launched = 0
        """After a run: how many blocks of threads ran."""

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
        """Why a plan is not searched on this device, within this budget; empty where nothing speaks against it."""
        found: Refusal | None = plan.cache.get(self._refusal)
        return found.why if found is not None and found.runs > 0 else ""

    def refuse(self, plan: PhysicalPlan, why: str) -> None:
        """Never search it."""
        plan.cache[self._refusal] = Refusal(why, math.inf)

    def postpone(self, plan: PhysicalPlan, why: str) -> None:
        """Search it again after some runs, twice as many each time: others may have had the memory that it needs."""
        found: Refusal | None = plan.cache.get(self._refusal)
        times = 1 if found is None else min(2 * found.times, MOST_RUNS)
        plan.cache[self._refusal] = Refusal(why, times, times)

    def passed_over(self, plan: PhysicalPlan) -> None:
        """A run goes another way."""
        found: Refusal | None = plan.cache.get(self._refusal)
        if found is not None:
            found.runs -= 1

    @property
    def _refusal(self) -> tuple[object, ...]:
        return "search refused", self.device.number, self.device.memory.budget

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
        """Bytes that a run does well to find on the device beside lists that do not all fit it, and its roots."""
        budget, width = self.device.memory.budget, np.dtype(plan.dtype).itemsize
        scanned = [step.scan.size for step in plan.steps if isinstance(step, VertexStep) and step.scan is not None]
        scans = sum(scanned[1:]) * width + sum(scanned[:1]) * 8 / WARP
        stored = self._stored_ids(plan) * width if plan.program.shares.size and self._stores(plan) else 0
        others = OTHERS * budget * (1 + (not counting or self.depth(plan) > 0))
        return int(scans + others + min(stored, SHARED / 2 * budget)) + SMALL

    def link_seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """Seconds of the link that a search of divided lists is expected to take; infinite where there are none."""
        residency, rates, lists = self.graph.residency, self.device.rates, lists_read(plan, counting)
        if not residency.possible(lists):
            return math.inf
        placed = self._searched.seconds(plan, counting, self.beside_lists(plan, counting), rates)
        if placed is not None:
            return placed
        return residency.away_seconds(residency.place_for(plan, counting), plan, rates)

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

    def code(self, plan: PhysicalPlan, *, counting: bool, whole: bool) -> Code:
        """What is compiled for a plan: for runs of all its matches (``whole``), or with a limit; cached with the plan.

        Raises
        ------
        Refused
            A warp takes more shared memory than a block has.
        """
        how = (self.depth(plan), self.steal, self.left, self._stores(plan), self.resident, *self.macros.items())
        beside, rates = self.beside_lists(plan, counting), self.device.rates
        packed = self._searched.in_few_bits(plan, counting, beside, rates)
        key = ("search code", counting, whole, packed, self.device.name, *how)
        found: Code | None = plan.cache.get(key)
        if found is None:
            found = plan.cache[key] = self._written(plan, counting=counting, whole=whole, packed=packed)
        return found

    def _written(self, plan: PhysicalPlan, *, counting: bool, whole: bool, packed: bool) -> Code:
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
        if packed:
            macros["BIT_PACKED"] = 1
        return Code(text, depth, steals, threads, shared, macros, packed)

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
        with self._run(plan, limit, control, counting=True) as run:
            run.wait(control)
            return run.found

    @contextmanager
    def _run(self, plan: PhysicalPlan, limit: int | None, control: Control, *, counting: bool) -> Iterator[SearchRun]:
        """A run that is launched."""
        code = self.code(plan, counting=counting, whole=limit is None)
        sizes = Sizes(self.pieces, self.least, self.block_rows, self.blocks, self.most, self.pool_rows)
        where, stream = (self.device, self.graph, plan, code, sizes), self.stream()
        try:
            run = SearchRun(*where, stream, limit, control, counting=counting)
            with nullcontext() if counting else self.device.memory.kernel_waits():
                run.launch()
                try:
                    yield run
                finally:
                    run.close()
                    self.milliseconds, self.stolen, self.launched = run.milliseconds, run.stolen, run.launched
        finally:
            self.used(stream)

    def run(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[HostRows]:
        """Give the matches as blocks of rows, images included, each of which is a match."""
        if limit == 0:
            return
        with self.device.active():
            images = Images(self.device.module("join", {"ID": IDS[plan.dtype]}, check=control.check), self.device, plan)
        with self._run(plan, limit, control, counting=False) as run:
            yield from stream(self.device, run.tables(control), images, control.buffer_bytes)
