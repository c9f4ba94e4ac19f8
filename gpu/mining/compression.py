"""Compression of an embedding table on a device: which rows stay goes there as bits, columns follow in pieces.

The table lies in host memory (GAMMA §5.2): a column's values and parents are copied to the device, and those of the
rows that stay come back.  What lies there of a whole column are two arrays: a bit for each row, and for each 32 rows
how many stay before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device, Module, faults
from graphdb.gpu.data.graph import address
from graphdb.gpu.mining.clock import Clock
from graphdb.gpu.watch import Watch
from graphdb.plan.extension import TableColumn

Ints = NDArray[np.int64]

PIECE = 1 << 22
"""Rows of a column that lie on the device at a time, at most; a multiple of 32."""
_WORD = 32
_PER_WORD = 4 + 2 * 8
"""Bytes on the device for each 32 rows of a column."""

VARIANTS["compress"] = tuple({"VALUE": name} for name in IDS.values())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Which rows of a column stay: on the device, bits, and how many stay before each word of them; and in all."""

    bits: Any
    starts: Any
    count: int


class DeviceCompressor:
    """Compresses tables on a device (:class:`graphdb.plan.extension.Compressor`)."""

    def __init__(self, device: Device, watch: Watch) -> None:
        self.name = f"cuda:{device.number}"
        self._device, self._watch = device, watch
        self.clock = Clock(device)
        """The time of its kernels, copies left out."""
        self.moved = 0
        """Bytes that were copied to the device and from it."""

    @property
    def summary(self) -> str:
        """What it took so far: a phrase for PROFILE."""
        took = self.clock.milliseconds
        return f"{self.name}: {took:,.1f} ms of kernels to filter, {self.moved:,} bytes of embeddings moved"

    def compress(self, columns: Sequence[TableColumn], marks: NDArray[np.bool_]) -> list[TableColumn]:
        """Compress a table (:meth:`graphdb.plan.extension.Compressor.compress`)."""
        found: list[TableColumn] = []
        with faults(self.name), self._device.active():
            passed = self._rows(self._uploaded(marks), len(marks))
            for i in range(len(columns) - 1, -1, -1):
                column, passed = self._column(columns[i], passed, len(columns[i - 1][0]) if i else 0)
                found.append(column)
        return found[::-1]

    def _uploaded(self, marks: NDArray[np.bool_]) -> Any:
        """Marks as bits on the device: uint32 [rows / 32]."""
        bytes = np.zeros(4 * _words(len(marks)), np.uint8)
        packed = np.packbits(marks, bitorder="little")
        bytes[: len(packed)] = packed
        self.moved += bytes.nbytes
        return self._device.memory.upload(bytes.view(np.uint32))

    def _rows(self, bits: Any, rows: int) -> _Rows:
        device, words = self._device, _words(rows)
        counts = device.memory.empty(words, np.int64)
        with self.clock.timed():
            self._launch(self._module(np.dtype(np.int32)), "count_bits", words, bits, words, counts)
            starts = device.offsets(counts)
        return _Rows(bits, starts, device.last(starts))

    def _column(self, column: TableColumn, passed: _Rows, parents: int) -> tuple[TableColumn, _Rows]:
        """What stays of a column, and the rows of the one before that stay (``parents`` rows; 0: there is none)."""
        memory, (values, own) = self._device.memory, column
        module = self._module(values.dtype)
        before, uploaded = passed, None
        pieces = list(self._pieces(len(values), values.itemsize + 8))
        if parents:
            bits = memory.empty(_words(parents), np.uint32)
            bits.fill(0)
            for part in pieces:
                self._watch.check()
                uploaded = memory.upload(own[part])
                self._launch(
                    module, "mark_parents", len(uploaded), uploaded, part.start, len(uploaded), passed.bits, bits
                )
            before = self._rows(bits, parents)
            self.moved += own.nbytes
        found = np.empty(passed.count, values.dtype), np.arange(passed.count)
        for part in pieces:
            self._watch.check()
            if parents and len(pieces) > 1:
                uploaded = memory.upload(own[part])
                self.moved += own[part].nbytes
            self._piece(module, values[part], uploaded, part.start, passed, before, found)
        return found, before

    def _piece(
        self,
        module: Module,
        values: NDArray[np.signedinteger],
        parents: Any,
        first: int,
        passed: _Rows,
        before: _Rows,
        found: TableColumn,
    ) -> None:
        """Copy what stays of a piece of a column to its place."""
        device, count = self._device, len(values)
        part = slice(*(device.last(passed.starts[: cut + 1]) for cut in (first // _WORD, _words(first + count))))
        total = part.stop - part.start
        if not total:
            return
        own, out = device.memory.upload(values), device.memory.empty(total, values.dtype)
        out_parents = None if parents is None else device.memory.empty(total, np.int64)
        arrays = (passed.bits, passed.starts, before.bits, before.starts, out, address(out_parents))
        with self.clock.timed():
            self._launch(module, "compress", count, own, address(parents), first, count, part.start, *arrays)
        found[0][part] = out.get()
        if out_parents is not None:
            found[1][part] = out_parents.get()
        self.moved += values.nbytes + out.nbytes + (8 * total if parents is not None else 0)

    def _pieces(self, rows: int, width: int) -> Iterator[slice]:
        """Pieces of a column, which with what stays of them take half of what is free."""
        free = self._device.memory.reserve(4 * width * min(rows, PIECE))
        step = max(min(PIECE, free // 4 // width) // _WORD * _WORD, _WORD)
        for begin in range(0, rows, step):
            yield slice(begin, min(begin + step, rows))

    def _module(self, dtype: np.dtype[Any]) -> Module:
        return self._device.module("compress", {"VALUE": IDS[dtype.type]}, check=self._watch.check)

    def _launch(self, module: Module, kernel: str, rows: int, *arguments: Any) -> None:
        module.launch(kernel, min(-(-rows // BLOCK), 32 * self._device.processors), *arguments)


def fits(rows: int, budget: int) -> bool:
    """Whether what lies on a device of two columns of so many rows takes less than half of its budget."""
    return 2 * _PER_WORD * _words(rows) < budget // 2


def _words(rows: int) -> int:
    return -(-rows // _WORD)
