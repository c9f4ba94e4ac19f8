"""The kernels of a join's levels, launched with the arrays that they need (``join.cu``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import Device, Module
from graphdb.gpu.data.graph import address
from graphdb.gpu.join.levels import Level
from graphdb.gpu.join.tables import Elements, Marks, Sizes, Table
from graphdb.plan.physical import PhysicalPlan

Ints = NDArray[np.int64]


class Kernels:
    """Launches the kernels of one plan's levels: what they find is on the device."""

    def __init__(self, device: Device, module: Module, sizes: Sizes, plan: PhysicalPlan) -> None:
        self._device, self._memory, self._module, self._sizes = device, device.memory, module, sizes
        self._dtype, self._width = plan.dtype, np.dtype(plan.dtype).itemsize
        self._unread = self._memory.empty(1, np.int64)
        """In the place of arrays that kernels neither read nor write."""

    def rows_at(self, elements: Elements, table: Table, begin: int, end: int, step: int) -> Any:
        """The rows that elements ``begin``, ``begin + step`` … and ``end - 1`` belong to, on the device."""
        count = -(-(end - begin) // step) + 1
        rows = self._memory.empty(count, np.int64)
        self.launch("starts", count, elements.offsets, table.rows, begin, end, step, count, rows)
        return rows

    def launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        """Launch a kernel with a thread for each of so many things."""
        block = self._sizes.block
        self._module.launch(kernel, -(-threads // block), *arguments, threads=block)

    def sums(self, counts: Any) -> Any:
        """The prefix sums of int64 [n]: int64 [n + 1]."""
        return self._device.offsets(counts, self._sizes.block)

    def elements(
        self, cells: Any, level: Level, table: Table, *, discounted: bool = False, waits: bool = True
    ) -> Elements:
        """Find the lists of every row, and where their elements stand among those of all rows.

        How many those are is not known to the host where it does not wait.  ``cells`` are the level's descriptor, on
        the device.
        """
        empty, rows, lists = self._memory.empty, table.rows, len(level.lists)
        if lists > 1:
            begins, lengths, which = (
                empty(rows * lists, np.int64),
                empty(rows * lists, np.uint32),
                empty(rows, np.uint8),
            )
        else:
            begins = lengths = which = self._unread
        first, counts = empty(rows, np.int64), empty(rows, np.int64)
        found = (begins, lengths, which, first, counts)
        self.launch("bounds", rows, cells, table.address, table.stride, rows, *found)
        if discounted:
            self.launch("discount", rows, cells, table.address, table.stride, rows, first, counts)
        offsets = self.sums(counts)
        total = self._device.last(offsets) if waits else -1
        return Elements(cells, begins, lengths, which, first, offsets, total)

    def marks(self, level: Level, table: Table, elements: Elements, begin: int, end: int, *, write: bool) -> Marks:
        """Mark the elements [begin, end) that are bindings; without ``write``, only count them."""
        tiles = -(-(end - begin) // self._sizes.tile)
        starts = self.rows_at(elements, table, begin, end, self._sizes.tile)
        if level.plain:
            return Marks(begin, end, starts, None, None, end - begin)
        bits = self._memory.empty(tiles * self._sizes.tile // 32, np.uint32) if write else None
        counts = self._memory.empty(tiles, np.int64)
        self._module.launch(
            level.kernel,
            tiles,
            *(elements.descriptor, len(elements.descriptor), table.address, table.stride, table.rows),
            *(elements.begins, elements.lengths, elements.which, elements.first, elements.offsets, starts),
            *(begin, end, np.uint64(address(bits)), counts),
            threads=self._sizes.block,
        )
        positions = self.sums(counts)
        return Marks(begin, end, starts, bits, positions, self._device.last(positions))

    def combine(
        self, table: Table, elements: Elements, marks: Marks, first: int, tiles: int, rows: int, columns: int
    ) -> Table:
        """Write the next table, from so many tiles of the marks."""
        stride = max(rows, 1)
        out = self._memory.empty((columns, stride), self._dtype)
        self._module.launch(
            "combine",
            tiles,
            *(elements.descriptor, len(elements.descriptor), table.address, table.stride),
            *(elements.which, elements.first, elements.offsets, marks.starts, marks.begin, marks.end),
            *(np.uint64(address(marks.bits)), np.uint64(address(marks.positions)), first, out, stride),
            threads=self._sizes.block,
        )
        return Table(out, stride, 0, rows, self._width)
