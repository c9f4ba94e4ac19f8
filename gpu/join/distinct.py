"""DISTINCT and counts per row by a hash table on the device, before rows cross the link to the host.

A row of one or two vertices is a 64-bit key of a hash table in device memory (``distinct.cu``), which leaves at
the end, or when it is full.  A key is put by one or two reads and atomic operations, some billions in a second; the
link takes three billion rows of eight bytes, and the host then groups them at a tenth of that.  Where the first rows
show that most of them differ, rows leave as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Rates
from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device
from graphdb.plan.physical import PhysicalPlan

SLOTS = 1 << 25
"""Of the hash table, at most: 16 bytes each."""
FULL = 0.75
"""The share of them that may be taken."""
WORTH = 0.5
"""The share of the first rows that may differ, if this is to go on; …"""
MIN_SAMPLE = 1 << 16
"""… fewer rows are too small a sample."""

LARGE = 0.02
"""Seconds that all rows take to the host from which on plain DISTINCT is computed on the device, too: fewer are there
sooner with repeats."""

VARIANTS["distinct"] = tuple({"ID": name} for name in IDS.values())

Grouped = tuple[NDArray[Any], int, NDArray[np.int64]]


def reduces(plan: PhysicalPlan, rates: Rates) -> bool:
    """Whether a plan's rows are keys, of which only the different ones are wanted, by a card with such rates."""
    outputs, width = len(plan.outputs), np.dtype(plan.dtype).itemsize
    if plan.duplicates == "keep" or plan.limit is not None or not 0 < outputs * width <= 8:
        return False
    copying = plan.steps[-1].estimate * outputs * width / rates.pinned_download
    return plan.duplicates == "count" or copying >= LARGE


class Distinct:
    """Makes equal rows one.

    Parameters
    ----------
    device, plan
        Whose rows.
    """

    def __init__(self, device: Device, plan: PhysicalPlan) -> None:
        self._device = device
        self._outputs, self._dtype = len(plan.outputs), plan.dtype
        self._module = device.module("distinct", {"ID": IDS[plan.dtype]})
        self._expected = int(min(plan.steps[-1].estimate, SLOTS * FULL))
        self._slots = self._taken = 0
        self._keys: Any = None
        self._numbers: Any = None
        self._used: Any = None

    def rows_of(self, tables: Iterator[Any]) -> Iterator[Grouped]:
        """The rows of device arrays [outputs, rows] as host arrays, how many each has, and how often each row came.

        In no particular order, and more than once where not all have room at a time, or most of the first rows differ.
        """
        worth, more = True, True
        while more:
            given: list[Grouped] = []
            with self._device.active():
                table = next(tables, None)
                more = table is not None
                if table is not None:
                    rows = table.shape[1]
                    if worth and self._taken + rows > FULL * self._slots:
                        given += self._take()
                        worth = self._grow(rows)
                    if worth:
                        before = self._taken
                        self._put(table, rows)
                        worth = before > 0 or rows < MIN_SAMPLE or self._taken <= WORTH * rows
                    else:
                        given.append((table.get(), rows, np.ones(rows, np.int64)))
                if not (more and worth):
                    given += self._take()
            yield from given

    def _grow(self, rows: int) -> bool:
        """Whether a table of so many rows can be allocated."""
        slots = 1 << int(max(rows, self._expected) / FULL).bit_length()
        if slots <= self._slots:
            return True
        memory = self._device.memory
        self._keys = self._numbers = None
        room = min(SLOTS, memory.reserve(16 * slots) // 32)  # half of what there is
        self._slots = min(slots, 1 << max(room.bit_length() - 1, 0))
        if rows > FULL * self._slots:
            self._slots = 0
            return False
        self._keys, self._numbers = (memory.empty(self._slots, np.uint64) for _ in range(2))
        self._used = memory.empty(1, np.uint64)
        for cells in (self._keys, self._numbers, self._used):
            cells.fill(0)
        return True

    def _put(self, table: Any, rows: int) -> None:
        table_arrays = (self._keys, self._numbers, self._slots, self._used)
        self._module.launch("put_rows", -(-rows // BLOCK), table, table.shape[1], rows, self._outputs, *table_arrays)
        self._taken = self._device.last(self._used)

    def _take(self) -> list[Grouped]:
        """All that the table holds, if it holds any; then it holds none."""
        count, blocks = self._taken, -(-self._slots // BLOCK)
        if not count:
            return []
        empty = self._device.memory.empty
        fits = empty(self._slots, np.int64)
        self._module.launch("taken", blocks, self._keys, self._slots, fits)
        cells, numbers = empty((self._outputs, count), self._dtype), empty(count, np.int64)
        where = (self._device.offsets(fits), self._outputs, cells, count, numbers)
        self._module.launch("take_rows", blocks, self._keys, self._numbers, self._slots, *where)
        self._used.fill(0)
        self._taken = 0
        return [(cells.get(), count, numbers.get())]
