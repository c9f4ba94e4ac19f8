"""A packed memory array of edges on a device (GPMA; GAMMA, batch-dynamic, §V-C).

What partitions that follow changes do without: their lists stay contiguous (:mod:`graphdb.storage.graph.in_place.spans`).
This is what they are compared with (:mod:`tests.benchmarks.batch_layouts`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, Device, defines
from graphdb.gpu.code.machine_code import Source
from graphdb.gpu.data.graph import address

Ints = NDArray[np.int64]

WARP = 32
MOST, LEAST, GROWN = 0.75, 0.4, 0.6
"""Which share of all slots is in use: at most, at least, and where there are other leaves than before."""
_SEGMENT = 7
"""Cells of a segment."""


class PackedMemory:
    """The entries of one partition, sorted, with free slots between them.

    Parameters
    ----------
    source, target, codes
        Of each entry, sorted; without codes, entries have none.  All are int32 on the device.
    vertices
        Rows of the table.
    leaf
        Slots of a leaf, at most a warp's lanes.

    Attributes
    ----------
    table
        int64 [2 * vertices]: where the list of each vertex begins and ends; vertices without neighbours have 0 and 0.
    sources, neighbours, codes
        int32 [slots].  Free slots repeat the entry before them, the neighbour with its highest bit set.
    sizes
        int32 [leaves]: entries of each leaf.
    tree
        int32: entries of each node, level by level.
    rebuilt
        Leaves that the latest batch rebuilt.
    """

    def __init__(
        self, device: Device, source: Ints, target: Ints, codes: Ints | None, vertices: int, leaf: int = WARP
    ) -> None:
        self._device, self._leaf, self._coded = device, leaf, codes is not None
        text = Path(__file__).with_name("packed_memory.cu").read_text()
        bounds = {"MOST": int(MOST * 1024), "LEAST": int(LEAST * 1024)}
        macros = defines({"LEAF": leaf, "CODED": int(self._coded), **bounds})
        self._module = device.compile(Source("packed_memory", text, macros))
        upload = device.memory.upload
        self.table = device.memory.empty(2 * vertices, np.int64)
        self.table.fill(0)
        self._batch, self.rebuilt = 0, 0
        entries = [upload(each, np.int32) for each in (source, target, *(() if codes is None else (codes,)))]
        self._spread_over(entries if self._coded else [*entries, device.memory.empty(0, np.int32)], len(source))

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        arrays = (self.table, self.sources, self.neighbours, self.codes, self.sizes, self.tree, self._marks)
        return sum(int(each.nbytes) for each in arrays)

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return len(self.sizes)

    def change(self, source: Ints, target: Ints, codes: Ints, comes: Ints) -> None:
        """Take edges in and out, sorted by source, target and code, each once; ``comes`` is 1 or 0.

        What is there does not come again, and what is not there does not go.
        """
        count = len(source)
        if not count:
            return
        device, memory, empty = self._device, self._device.memory, self._device.memory.empty
        rows = np.empty((count, 4), np.int32)
        for i, column in enumerate((source, target, codes, comes)):
            rows[:, i] = column
        self._batch += 1
        changes, leaf_of, rank_of = memory.upload(rows), empty(count, np.int32), empty(count, np.int32)
        effects, firsts = empty(count, np.int64), empty(count, np.int64)
        self._launch("locate", count, self._cells, changes, count, leaf_of, rank_of, effects)
        self._launch("group", count, leaf_of, count, firsts)
        groups, sums = device.offsets(firsts), device.offsets(effects)
        starts, touched, level_of = empty(count + 1, np.int64), empty(count, np.int32), empty(count, np.int32)
        self._launch("begin_groups", count, leaf_of, groups, count, starts, touched)
        self._launch("count_up", count, self._cells, starts, touched, groups, count, sums)
        self._launch("climb", count, self._cells, touched, groups, count, self._batch, level_of)
        self._launch("own", count, self._cells, touched, groups, count, self._batch, level_of)
        self._launch("begin_segments", count, self._cells, touched, groups, count, level_of, firsts)
        places = device.offsets(firsts)
        segment_count, self.rebuilt = divmod(device.last(places), 1 << 32)
        segments = empty((segment_count + 1, _SEGMENT), np.int64)
        self._launch("write_segments", count, touched, groups, count, level_of, places, segments)
        own, sizes = (segments, segment_count, self.rebuilt), empty(self.rebuilt, np.int64)
        self._launch("take_sizes", self.rebuilt, self._cells, *own, sizes)
        before = device.offsets(sizes)
        self._launch("sum_segments", segment_count, starts, before, sums, segment_count, segments)
        space = self.rebuilt * self._leaf + count
        entries = [empty(space if used else 0, np.int32) for used in (True, True, self._coded)]
        tables = (changes, starts, touched, before, sums)
        self._launch("gather", WARP * self.rebuilt, self._cells, *own, *tables, *entries)
        ranks = (leaf_of, rank_of, groups, places, before, sums)
        self._launch("put", count, segments, changes, count, *ranks, *entries)
        if self.rebuilt == self.leaves and not self._fits(total := device.last(before) + device.last(sums)):
            self._spread_over(entries, total)
        else:
            self._launch("spread", WARP * self.rebuilt, self._cells, *own, *entries)
            self._launch("mark", WARP * self.rebuilt, self._cells, *own)
        self._launch("clear", count, self._cells, changes, count, sums)

    def _fits(self, total: int) -> bool:
        """Whether so many entries are within the bounds of all leaves together."""
        slots = self.leaves * self._leaf
        return total <= slots if self.leaves == 1 else max(LEAST * slots, self.leaves) <= total <= MOST * slots

    def _spread_over(self, entries: list[Any], total: int) -> None:
        """Spread entries over as many leaves as they are to have."""
        memory = self._device.memory
        leaves = max(-(-int(total / GROWN) // self._leaf), 1)
        slots, height = leaves * self._leaf, (leaves - 1).bit_length()
        levels = np.cumsum([0, *(-(-leaves >> h) for h in range(height + 1))])
        self.sources, self.neighbours = memory.empty(slots, np.int32), memory.empty(slots, np.int32)
        self.codes = memory.empty(slots if self._coded else 0, np.int32)
        self.sizes, self.tree = memory.empty(leaves, np.int32), memory.empty(int(levels[-1]), np.int32)
        self._marks = memory.empty(int(levels[-1]), np.uint32)
        self._marks.fill(0)
        self._levels = memory.upload(levels)
        arrays = (
            self.table,
            self.sources,
            self.neighbours,
            self.codes,
            self.sizes,
            self.tree,
            self._marks,
            self._levels,
        )
        self._cells = memory.upload(np.array([*map(address, arrays), leaves, height], np.int64))
        whole = np.zeros((2, _SEGMENT), np.int64)
        whole[0, [1, 3, 6]], whole[1, 2] = (leaves, height, total), leaves
        own = (memory.upload(whole), 1, leaves)
        self._launch("spread", WARP * leaves, self._cells, *own, *entries)
        self._launch("mark", WARP * leaves, self._cells, *own)

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        self._module.launch(kernel, -(-threads // BLOCK), *arguments)
