"""Matches on their way from the device to the caller: images, page-locked buffers, and copies behind the kernels.

While one block is copied, the next is computed.  A block's arrays are the page-locked memory that the device wrote to,
so the host touches nothing; where the caller holds more of them than its buffer, they are copied to ordinary memory.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, Device, Module
from graphdb.plan.physical import PhysicalPlan

AHEAD = 2
"""Blocks that are computed or copied before the caller asks for them, at least."""


class Table(Protocol):
    """Matches on the device: ``cells`` is [outputs, rows] of the vertex id type, ``matches`` int64 [rows], how many
    matches each row stands for; None where each is one.
    """

    cells: Any
    rows: int
    matches: Any


HostRows = tuple[NDArray[Any], int, NDArray[np.int64] | None]
"""A block on the host: cells [outputs, rows], how many rows, and how many matches each stands for; None: one each."""


class Images:
    """Makes the automorphic images of matches, each match's one after the other (``plan.columns``)."""

    def __init__(self, module: Module, device: Device, plan: PhysicalPlan) -> None:
        self._module, self._device, self._dtype = module, device, plan.dtype
        self._moved = plan.columns
        self._copy: Any = None
        count, outputs = self._moved.shape
        self.count, self._outputs = count, outputs
        module.load("images")
        self._same = count == 1 and np.array_equal(self._moved[0], np.arange(len(plan.program.outputs)))

    def of(self, table: Table) -> Any:
        """The images of a table: [outputs, rows * count]."""
        if self._same or self._outputs == 0:
            return table.cells
        memory = self._device.memory
        if self._copy is None:
            self._copy = memory.upload(self._moved)
        total = table.rows * self.count
        out = memory.empty((self._outputs, total), self._dtype)
        arguments = (table.cells, table.rows, table.rows, self._copy, self.count, self._outputs, out)
        self._module.launch("images", -(-total // BLOCK), *arguments)
        return out


class _Pinned:
    """Page-locked memory as an array's owner: numpy's views lead back to it, and it is gone when none is left."""

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: Any) -> None:
        self._cells = device.memory.slabs.lend(self, shape, dtype)
        self.__array_interface__ = self._cells.__array_interface__


class _PinnedBudget:
    """Counts the page-locked bytes that are lent to the caller."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lent_bytes = 0

    def array(self, pinned: _Pinned) -> NDArray[Any]:
        """The block as an array for the caller: the memory itself while little is lent, else a copy."""
        cells = np.asarray(pinned)
        if self._lent_bytes + cells.nbytes > self._limit:
            return cells.copy()
        self._lent_bytes += cells.nbytes
        weakref.finalize(pinned, self._release, cells.nbytes)
        return cells

    def _release(self, nbytes: int) -> None:
        self._lent_bytes -= nbytes


@dataclass(slots=True)
class _Copy:
    """A block under way: the device arrays that must stay until they have been copied, cells and matches."""

    sources: Sequence[Any]
    targets: Sequence[_Pinned]
    rows: int
    done: Any

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(source.nbytes) for source in self.sources)


def stream(
    device: Device, tables: Iterator[Table], images: Images, buffer_bytes: int, ahead: float = 0.0
) -> Iterator[HostRows]:
    """Copy tables to the host, images included, in their order.

    ``buffer_bytes`` of page-locked memory may be in the caller's hands at a time.  The next table is asked for while
    less than ``ahead`` bytes are under way: who finds many rows at once, then none for as long as it takes to copy
    them, works meanwhile.
    """
    copying: deque[_Copy] = deque()
    pinned_budget, waiting, more = _PinnedBudget(buffer_bytes), 0, True
    try:
        while more or copying:
            if more:
                with device.active():
                    table = next(tables, None)
                    more = table is not None
                    if table is not None:
                        cells = images.of(table)
                        sources = [cells] if table.matches is None else [cells, table.matches]
                        copying.append(_send(device, sources, table.rows * images.count))
                        waiting += copying[-1].nbytes
                        del table, cells, sources
            while copying and (not more or copying[0].done.done or (len(copying) >= AHEAD and waiting >= ahead)):
                copy = copying.popleft()
                copy.done.synchronize()
                waiting -= copy.nbytes
                cells, *matches = map(pinned_budget.array, copy.targets)
                rows = copy.rows
                del copy  # the caller need not hold the device's memory
                yield cells, rows, matches[0] if matches else None
    finally:
        for copy in copying:
            copy.done.synchronize()


def _send(device: Device, sources: Sequence[Any], rows: int) -> _Copy:
    """Start to copy arrays to the host, behind the kernels that are making them."""
    targets = [_Pinned(device, source.shape, source.dtype) for source in sources]
    device.copies.wait_event(device.event())
    for source, target in zip(sources, targets, strict=True):
        if source.size:
            source.get(out=np.asarray(target), stream=device.copies, blocking=False)
    return _Copy(sources, targets, rows, device.event_on(device.copies))
