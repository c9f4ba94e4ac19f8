"""Extension on a device: pieces of an embedding table go there, written out, and their extensions come back.

The table itself lies in host memory (GAMMA §5.2), so that it may be larger than the device; what lies there is a piece
of it, and the buffer that kernels write to.  Extensions are counted and then found again; or one pass writes them to
blocks of a pool and counts them, and another puts them in order, and where the pool is too small for a piece, its
extensions are found once more and written to their places (GAMMA §6.1, optimisation 1).  Rows by common neighbours
that share all vertices but the last are extended by one warp, which intersects what they share once (optimisation 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.code.launch import BLOCK, VARIANTS, Device, StopFlag, faults
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.data.residency import Lists, lists_of_steps
from graphdb.gpu.mining.aggregation import Images, quick_patterns
from graphdb.gpu.mining.clock import Clock
from graphdb.gpu.watch import Watch
from graphdb.plan.extension import Adjacency, Aggregated, Cells, Kind

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]
Pass = Literal["pool", "twice"]

KINDS: dict[Kind, int] = {"any": 0, "all": 1, "edges": 2}
PASSES: dict[Kind, Pass] = {"any": "twice", "all": "pool", "edges": "twice"}
"""What takes less: an intersection is dear to find twice, a list that is only read is not."""
GROUPED = 3
"""Vertices from which on the rows of a prefix are extended together (1.1 to 1.6 times as fast, on an H200): where the
prefix is one vertex, its list is only copied (0.4 to 0.6 times as fast)."""
MERGED = 512
"""Common neighbours of a prefix that a warp has room for in shared memory; of one with more, rows go one by one."""
COUNT, WRITE, POOL, CODES = 0, 1, 2, 3
"""``PASS`` of ``extension.cu``."""
ENTRIES = 256
"""Entries of a block of the pool: 32 or more, as a warp writes so many at once."""
PIECE = 1 << 20
"""Rows that are extended at a time, at most."""
_PER_ENTRY, _PER_ROW = 16, 24
"""Bytes on the device for each entry of the pool, with its place in order; and for each row, beside its columns."""

VARIANTS["extension"] = (
    *(
        {"KIND": str(kind), "PASS": str(each), "MERGED": "0"}
        for kind in KINDS.values()
        for each in (COUNT, WRITE, POOL)
    ),
    *({"KIND": str(KINDS["all"]), "PASS": str(each), "MERGED": str(MERGED)} for each in (COUNT, WRITE, POOL)),
    {"KIND": "0", "PASS": str(CODES), "MERGED": "0"},
)


class DeviceExtension:
    """Extends embeddings on a device (:class:`graphdb.plan.extension.Extender`).

    Parameters
    ----------
    watch
        Deadline and cancellation.
    passes
        ``"pool"``, or ``"twice"``: extensions are counted first and then found again, as on the host; by default
        what takes less.
    grouped
        Whether what a prefix's vertices have in common is intersected once for all its rows; by default what takes
        less.
    piece
        Rows at a time.

    Raises
    ------
    MemoryLimitError
        The graph does not fit the device's budget.
    """

    def __init__(
        self,
        device: Device,
        graph: DeviceGraph,
        lists: Adjacency,
        watch: Watch,
        *,
        passes: Pass | None = None,
        grouped: bool | None = None,
        piece: int = PIECE,
    ) -> None:
        self.name = f"cuda:{device.number}"
        self._device, self._device_graph, self._lists, self._watch = device, graph, lists, watch
        self._passes, self._piece, self._stop = passes, piece, StopFlag(device)
        self._grouped_from = GROUPED if grouped is None else 2 if grouped else None
        self.clock = Clock(device)
        """The time of its kernels, copies left out."""
        self.moved = 0
        """Bytes that were copied to the device and from it."""
        with faults(), device.active():
            self._where = graph.residency.require(lists_of(lists))
            arrays = (lists.offsets, lists.ids, lists.source, lists.target, lists.ways)
            self._arrays = tuple(None if array is None else graph.array(array) for array in arrays)

    @property
    def summary(self) -> str:
        """What it took so far: a phrase for PROFILE."""
        took = self.clock.milliseconds
        text = f"{self.name}: {took:,.1f} ms of kernels, {self.moved:,} bytes of embeddings moved"
        return f"{text}; {self._where}" if self._where else text

    def extend(self, rows: Narrow, kind: Kind) -> tuple[Narrow, Ints]:
        """Extend embeddings (:meth:`graphdb.plan.extension.Extender.extend`)."""
        found: list[Narrow] = []
        counts = np.zeros(len(rows), np.int64)
        with faults(), self._device.active():
            for part in self._parts(len(rows), rows.shape[1]):
                values, counts[part] = self._extended(np.ascontiguousarray(rows[part], np.int32), kind)
                found.append(values)
        return np.concatenate([np.empty(0, np.int32), *found]), counts

    def _parts(self, rows: int, size: int) -> Iterator[slice]:
        """Pieces of a table, of which the pool leaves half of what is free."""
        free = self._device.memory.reserve(rows * (4 * size + _PER_ROW))
        step = max(min(self._piece, free // 4 // (4 * size + _PER_ROW)), 1)
        for begin in range(0, rows, step):
            self._watch.check()
            yield slice(begin, min(begin + step, rows))

    def _extended(self, rows: Narrow, kind: Kind) -> tuple[Narrow, Ints]:
        """Extend a piece of a table: by halves, where its extensions do not fit the device."""
        try:
            return self._at_once(rows, kind)
        except MemoryLimitError:
            if len(rows) == 1:
                raise
        halves = [self._extended(half, kind) for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :])]
        return np.concatenate([half[0] for half in halves]), np.concatenate([half[1] for half in halves])

    def _at_once(self, rows: Narrow, kind: Kind) -> tuple[Narrow, Ints]:
        device, memory, count = self._device, self._device.memory, len(rows)
        own = memory.upload(rows)
        counts = memory.empty(count, np.int64)
        pool = self._pool(count) if (self._passes or PASSES[kind]) == "pool" else None
        self._launch(kind, COUNT if pool is None else POOL, own, count, rows.shape[1], counts, None, pool)
        places = device.offsets(counts)
        total = device.last(places)
        values = memory.empty(total, np.int32)
        if pool is not None and pool.used() <= pool.blocks:
            entries = min(pool.used(), pool.blocks) * ENTRIES
            module = device.module("extension", self._macros(kind, POOL, rows.shape[1]))
            arguments = (pool.values, pool.owners, pool.ranks, entries, places, values)
            with self.clock.timed():
                module.launch("put_in_order", min(-(-entries // BLOCK), 32 * device.processors), *arguments)
        else:
            self._launch(kind, WRITE, own, count, rows.shape[1], counts, places, None, values)
        self.moved += rows.nbytes + 4 * total + 8 * count
        narrow: Narrow = values.get()
        return narrow, counts.get()

    def _pool(self, rows: int) -> _Pool | None:
        """A pool that half of what is free is for; None where that is not a block for each warp."""
        warps = min(self._warps(), rows)
        wanted = warps + 8 * rows // ENTRIES
        free = self._device.memory.reserve(2 * _PER_ENTRY * ENTRIES * wanted) // 2
        blocks = min(free // _PER_ENTRY // ENTRIES, wanted)
        return _Pool(self._device, blocks) if blocks >= warps else None

    def _warps(self) -> int:
        """How many warps run at a time, about: each leaves a block of the pool half empty."""
        return self._device.processors * 32

    def _macros(self, kind: Kind, which: int, size: int) -> dict[str, int]:
        grouped = kind == "all" and self._grouped_from is not None and size >= self._grouped_from
        return {"KIND": KINDS[kind], "PASS": which, "MERGED": MERGED if grouped else 0}

    def _launch(
        self,
        kind: Kind,
        which: int,
        rows: Any,
        count: int,
        size: int,
        counts: Any,
        places: Any,
        pool: _Pool | None,
        values: Any = None,
    ) -> None:
        device = self._device
        module = device.module("extension", self._macros(kind, which, size), check=self._watch.check)
        next_task = device.memory.empty(1, np.uint64)
        next_task.fill(0)
        offsets, ids, source, target, _ = self._arrays
        written = (values, None, None, None, 0) if pool is None else pool.arguments
        out, owners, ranks, cursor, blocks = written
        with self.clock.watched(self._watch, self._stop):
            module.launch(
                "extend",
                min(module.resident("extend"), -(-count * 32 // BLOCK)),
                *(offsets, ids, address(source), address(target), rows, count, size, counts, address(places)),
                *(address(out), address(owners), address(ranks), address(cursor), blocks, ENTRIES),
                *(next_task, self._stop.address),
            )

    def count_codes(self, rows: Narrow, base: int, counts: Cells, firsts: Cells) -> None:
        """Count sets of one more vertex by code (:meth:`graphdb.plan.extension.Extender.count_codes`)."""
        assert isinstance(counts, DeviceCells)
        assert isinstance(firsts, DeviceCells)
        device = self._device
        offsets, ids, _, _, ways = self._arrays
        with faults(), device.active():
            module = device.module("extension", {"KIND": 0, "PASS": CODES, "MERGED": 0}, check=self._watch.check)
            for part in self._parts(len(rows), rows.shape[1]):
                own = device.memory.upload(np.ascontiguousarray(rows[part], np.int32))
                next_task = device.memory.empty(1, np.uint64)
                next_task.fill(0)
                count = part.stop - part.start
                with self.clock.watched(self._watch, self._stop):
                    module.launch(
                        "count_codes",
                        min(module.resident("count_codes"), -(-count * 32 // BLOCK)),
                        *(offsets, ids, ways, own, count, rows.shape[1], base + part.start),
                        *(counts.array, firsts.array, next_task, self._stop.address),
                    )
                self.moved += 4 * own.size

    def quick(self, rows: Narrow, task: Aggregated) -> tuple[Ints, Ints, Ints]:
        """The distinct quick patterns of rows (:meth:`graphdb.plan.extension.Extender.quick`)."""
        with faults(), self._device.active():
            patterns, first, number = quick_patterns(
                self._device, self.clock, self._device_graph, self._lists, rows, task
            )
        self.moved += rows.nbytes + 4 * len(rows) + patterns.nbytes
        return patterns, first, number

    def images(
        self, pieces: Iterable[tuple[Narrow, Narrow]], slots: Narrow, count: int, task: Aggregated
    ) -> Ints | None:
        """How many vertices each slot takes (:meth:`graphdb.plan.extension.Extender.images`)."""
        with faults(), self._device.active():
            images = Images.of(self._device, self.clock, self._device_graph, self._lists, slots, count, task)
            if images is None:
                return None
            for rows, quick_of_row in pieces:
                self._watch.check()
                images.mark(rows, quick_of_row)
                self.moved += rows.nbytes + quick_of_row.nbytes
            found = images.counts()
        return found

    def code_cells(self, codes: int) -> tuple[Cells, Cells]:
        """Two numbers for each code on the device: a count of 0, and the greatest first embedding."""
        return DeviceCells(self._device, codes, 0), DeviceCells(self._device, codes, (1 << 64) - 1)


class DeviceCells:
    """A number for each code on a device (:class:`graphdb.plan.extension.Cells`)."""

    def __init__(self, device: Device, codes: int, value: int) -> None:
        self._device = device
        with faults(), device.active():
            self.array = device.memory.empty(codes, np.uint64)
            self.array.fill(value)

    def fill(self, value: int) -> None:
        """Set all to a value."""
        with faults(), self._device.active():
            self.array.fill(value)

    def get(self) -> NDArray[np.uint64]:
        """A copy on the host."""
        with faults(), self._device.active():
            found: NDArray[np.uint64] = self.array.get()
        return found


def lists_of(lists: Adjacency) -> Lists:
    """Return what is read of a graph."""
    return lists_of_steps(lists.ids, lists.offsets, lists.beside)


class _Pool:
    """Blocks that warps take and write to."""

    def __init__(self, device: Device, blocks: int) -> None:
        empty = device.memory.empty
        self.blocks = blocks
        self.values, self.owners, self.ranks = (empty(blocks * ENTRIES, np.int32) for _ in range(3))
        self.cursor = empty(1, np.uint64)
        self.cursor.fill(0)
        self.owners.fill(-1)

    @property
    def arguments(self) -> tuple[Any, Any, Any, Any, int]:
        """For a launch."""
        return self.values, self.owners, self.ranks, self.cursor, self.blocks

    def used(self) -> int:
        """How many blocks were asked for."""
        return int(self.cursor.get()[0])
