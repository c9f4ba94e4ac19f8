"""The vertex-oriented join on the device (SGSI §5): level by level, depth-first over pieces of tables.

A level takes a table of partial matches, finds how many elements its rows' shortest lists have, marks those that are in
all other lists and pass the checks, and combines the marked ones into the next table (``join.cu``).  Where SGSI
preallocates room for every element, a prefix sum of the marks says how many there are before anything is written.
However many those are, the next table is at most a piece: it is joined to the end before the next piece is made.  So
memory is bounded by the number of levels, and rows come out in one order, whatever the size of the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device, Module
from graphdb.gpu.data.graph import DeviceGraph, DevicePartition
from graphdb.gpu.data.residency import CLIQUES, LEVELS, reads_candidate_space
from graphdb.gpu.join.distinct import Distinct, Grouped
from graphdb.gpu.join.filter import narrowed
from graphdb.gpu.join.levels import Levels, clique_levels, plan_levels
from graphdb.gpu.join.pieces import Run
from graphdb.gpu.join.segmentation import segments_of
from graphdb.gpu.join.segmented import Segmentation
from graphdb.gpu.join.tables import Sizes, Table
from graphdb.gpu.stream import HostRows, Images, stream
from graphdb.plan.executor import Control
from graphdb.plan.physical import PhysicalPlan

Ints = NDArray[np.int64]

ITEMS = 8
"""Elements per thread: a block of threads has a tile of them."""
ROWS = 1 << 24
"""Rows of a table, at most."""
SPAN = 1 << 28
"""Elements that one launch scans, at most."""
OUT_BYTES = 32 << 20
"""Bytes of an output block, images included."""
AHEAD, FREE = 512 << 20, 0.2
"""Bytes of rows that are copied to the host while others are found, at most; and of what is free, so much."""
PARTS = 1 << 12
"""Pieces are made smaller until they take this part of the memory: then each is of one tile."""
NARROW = 8.0
"""Entries of a partition that are read once for each element that a plan is expected to scan, at most, to leave
those out that are no candidates."""

VARIANTS["join"] = tuple({"ID": name} for name in IDS.values())


class Join:
    """Runs plans by the breadth-first join.

    Parameters
    ----------
    block, items, rows, span, out_bytes
        Threads of a block, elements of a thread, and the sizes of pieces (tests make them tiny).
    """

    name = "join"

    def __init__(
        self,
        device: Device,
        graph: DeviceGraph,
        *,
        block: int = BLOCK,
        items: int = ITEMS,
        rows: int = ROWS,
        span: int = SPAN,
        out_bytes: int = OUT_BYTES,
    ) -> None:
        self.device, self.graph = device, graph
        self._sizes = Sizes(block, block * items, rows, max(span // (block * items), 1) * block * items, out_bytes)
        self._macros = {} if (block, items) == (BLOCK, ITEMS) else {"THREADS": block, "ITEMS": items}

    def module(self, dtype: type[np.signedinteger[Any]], check: Callable[[], None] | None = None) -> Module:
        """The kernels for a vertex id type; ``check`` is asked while they are compiled."""
        return self.device.module("join", {"ID": IDS[dtype], **self._macros}, check=check)

    def supports(self, plan: PhysicalPlan) -> bool:
        """Every plan: what does not fit is processed in pieces, and numbers of elements have 64 bits."""
        return True

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes of the tables, if all of them are full."""
        return sum(_row_bytes(step, plan) * self._sizes.rows for step in range(len(plan.steps)))

    def run(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[HostRows]:
        """Give the matches as blocks of rows, images included; where the plan's last steps make no row of their own,
        with how many matches each row stands for.
        """
        images = Images(self.module(plan.dtype), self.device, plan)
        ahead = min(AHEAD, FREE * self.device.memory.free_bytes())
        yield from stream(self.device, self._tables(plan, control, limit), images, control.buffer_bytes, ahead)

    def grouped(self, plan: PhysicalPlan, control: Control) -> Iterator[Grouped]:
        """The same where only different rows are wanted; and how often each came."""
        images = Images(self.module(plan.dtype), self.device, plan)
        yield from Distinct(self.device, plan).rows_of(map(images.of, self._tables(plan, control, None)))

    def count(self, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """How many matches there are, each of which may stand for several; at most ``limit``, or slightly more."""
        tables = self._tables(plan, control, limit, counting=True)
        with self.device.active():
            while True:
                try:
                    next(tables)
                except StopIteration as end:
                    return int(end.value)

    def _tables(
        self, plan: PhysicalPlan, control: Control, limit: int | None, *, counting: bool = False
    ) -> Generator[Table, None, int]:
        """Give the tables of a run; return its number of matches.

        A run that gets too little memory begins again with pieces of half the size, behind the rows that it gave: their
        order is that of any size.  Later runs begin with those.
        """
        key = ("parts", counting, self.device.number, self.device.memory.budget)
        levels, segments = self._levels(plan, counting=counting), self.segments(plan, counting)
        module, given = self.module(plan.dtype, control.check), 0
        while True:
            parts, skipped = plan.cache.get(key, 1), given
            sizes, run, table = replace(self._sizes, parts=parts), None, None
            try:
                run = Run(self.device, module, sizes, plan, levels, segments, control, counting=counting, limit=limit)
                for table in run.tables():
                    if skipped >= table.rows:
                        skipped -= table.rows
                        continue
                    table, skipped = (table.after(skipped) if skipped else table), 0
                    given += table.rows
                    yield table
                return run.total
            except MemoryLimitError:
                if parts >= PARTS:
                    raise
            plan.cache[key] = 2 * parts
            del run, table  # and what they hold

    def segments(self, plan: PhysicalPlan, counting: bool) -> Segmentation | None:
        """How a run (or with ``counting``, a count) reads its lists by segments; None where it does not."""
        return segments_of(plan, counting, self.device, self.graph.residency)

    def _levels(self, plan: PhysicalPlan, *, counting: bool) -> Levels:
        """The plan's levels, with what they read on the device; cached as long as the plan."""
        clique, row_levels = plan.clique if counting else None, _row_levels(plan, counting)
        segments = self.segments(plan, counting)

        def build() -> Levels:
            if segments is not None:
                return plan_levels(plan, self.graph, row_levels, lambda copy, bits: None, segments)
            if clique is None:
                return plan_levels(plan, self.graph, row_levels, lambda copy, bits: self._narrow(plan, copy, bits))
            ranks = len(clique.graph.offsets) - 1
            return clique_levels(clique.size, self.graph.oriented(clique.graph), ranks, self.graph)

        with self.device.active():
            return self.device.memory.cached_or_built(self._which(plan, counting), plan, build)

    def is_prepared(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether the levels of a plan are on the device, as an earlier run of it left them."""
        return self.device.memory.is_cached(self._which(plan, counting), plan)

    def _which(self, plan: PhysicalPlan, counting: bool) -> str:
        """Which levels of a plan a run (or with ``counting``, a count) reads."""
        if counting and plan.clique is not None:
            return CLIQUES
        return f"{LEVELS} {_row_levels(plan, counting)}{' by segments' * (self.segments(plan, counting) is not None)}"

    def _narrow(self, plan: PhysicalPlan, partition: DevicePartition, bits: int) -> DevicePartition | None:
        """A partition of candidates alone, where going through it once is no more than the plan does anyway.

        Those of a candidate space are that already, and tell nothing of other vertices.
        """
        if (
            reads_candidate_space(plan)
            or partition.layer == "divided"
            or not 0 < partition.neighbours.size <= NARROW * plan.cost
        ):
            return None
        return narrowed(self.device, partition, bits, plan.dtype)


def _row_levels(plan: PhysicalPlan, counting: bool) -> int:
    """So many levels make a row; 0 where all do, or rows are only counted."""
    return 0 if counting or plan.row_steps == len(plan.steps) else plan.row_steps


def _row_bytes(step: int, plan: PhysicalPlan) -> int:
    """Bytes that a row of the table before a step takes with all that is found for it, about."""
    width = np.dtype(plan.dtype).itemsize
    lists = int(plan.program.steps[step, 3] - plan.program.steps[step, 2])
    return step * width + 33 + 12 * lists
