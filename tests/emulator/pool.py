"""A device's memory as CuPy's pool gives it: in pieces, which what stands between them keeps apart.

:class:`tests.emulator.Pool` counts bytes alone.  This one has chunks besides, as ``cupy.cuda.MemoryPool`` has: what the
driver gave is split where less is asked for, and merged with what is free beside it; it goes back to the driver once
all of it is free.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tests import emulator

ROUNDED = 512
"""Bytes at whose multiples chunks begin."""


class _Chunk:
    """A part of what the driver gave at a time, with those before and behind it."""

    def __init__(self, size: int, before: _Chunk | None = None, behind: _Chunk | None = None) -> None:
        self.size, self.before, self.behind, self.free = size, before, behind, False

    def cut(self, size: int) -> _Chunk:
        """Leave so many bytes; return the rest, as free."""
        rest = _Chunk(self.size - size, self, self.behind)
        if self.behind is not None:
            self.behind.before = rest
        self.size, self.behind, rest.free = size, rest, True
        return rest

    def swallow(self) -> _Chunk | None:
        """Merge with what is behind, where both are free; return that."""
        behind = self.behind
        if behind is None or not (self.free and behind.free):
            return None
        self.size, self.behind = self.size + behind.size, behind.behind
        if self.behind is not None:
            self.behind.before = self
        return behind


class PoolOfPieces(emulator.Pool):
    """The pool of one device."""

    def __init__(self, allocator: Callable[[int], object] = int) -> None:
        super().__init__(allocator)
        self._chunks: set[_Chunk] = set()
        self._total = 0

    def used_bytes(self) -> int:
        return self._total - self.free_bytes()

    def free_bytes(self) -> int:
        with self._lock:
            return sum(chunk.size for chunk in self._chunks if chunk.free)

    def total_bytes(self) -> int:
        return self._total

    def free_all_blocks(self) -> None:
        with self._lock:
            for chunk in [each for each in self._chunks if each.free and each.before is None and each.behind is None]:
                self._chunks.remove(chunk)
                self._total -= chunk.size

    def array(self, shape: Any, dtype: Any) -> Any:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self._lock:
            chunk = self._chunk(-(-size // ROUNDED) * ROUNDED) if size else None
            found = super().array(shape, dtype)
        if chunk is not None:
            weakref.finalize(found._owner, self._back, chunk)
        return found

    def _take(self, device: int, size: int) -> None:
        self.used[device] = self.used.get(device, 0) + size  # chunks are counted apart

    def _chunk(self, size: int) -> _Chunk:
        found = min(
            (each for each in self._chunks if each.free and each.size >= size), key=lambda c: c.size, default=None
        )
        if found is None:
            self._total += size
            try:
                self._allocator(size)
            except emulator.OutOfMemoryError:
                self._total -= size
                raise
            found = _Chunk(size)
            self._chunks.add(found)
        if found.size > size:
            self._chunks.add(found.cut(size))
        found.free = False
        return found

    def _back(self, chunk: _Chunk) -> None:
        with self._lock:
            chunk.free = True
            for each in (chunk, chunk.before):
                if each is not None and (gone := each.swallow()) is not None:
                    self._chunks.remove(gone)
