"""Page-locked memory for rows on their way to the host, in slabs that blocks of any size share.

To page-lock memory takes longer than to copy into it, and CuPy's pool uses again what has just the size that is asked
for.  Blocks of rows have each another size, and several devices fill more of them at a time than one: so they stand one
behind the other in slabs of a few sizes.  A slab goes back to the pool with the last array that views it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LEAST = 1 << 20
"""Bytes of a block that stands in a slab; smaller ones have memory of their own."""
SMALLEST, LARGEST = 8 << 20, 128 << 20
"""Bytes of slabs: each is as large as all those together that are in use, within these bounds."""
ALIGNED = 512
"""Bytes at whose multiples a block begins."""


@dataclass(slots=True)
class _Slab:
    """Page-locked memory: uint8 [bytes], of which the first ``used`` are lent, ``lent`` blocks of them still."""

    cells: NDArray[np.uint8]
    used: int = 0
    lent: int = 0

    def room(self) -> int:
        """Bytes that can be lent; all of them where every block came back."""
        if not self.lent:
            self.used = 0
        return len(self.cells) - self.used


class Slabs:
    """Lends page-locked memory to blocks of rows; threads may share it.

    Parameters
    ----------
    pinned
        Makes a page-locked array of a shape and a type, which goes back when nobody holds it.
    """

    def __init__(self, pinned: Callable[[tuple[int, ...], DTypeLike], NDArray[Any]]) -> None:
        self._pinned = pinned
        self._slab: _Slab | None = None
        self._in_use = 0
        """Bytes of all slabs that somebody holds."""
        self._lock = threading.RLock()  # what gives memory back may run within any call

    def lend(self, owner: object, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return page-locked memory of a shape and a type, which is lent as long as ``owner`` lives."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size < LEAST:
            return self._pinned(shape, dtype)
        with self._lock:
            slab = self._slab
            if slab is None or slab.room() < size:
                slab = self._slab = self._another(size)
            begin = slab.used
            slab.used += -(-size // ALIGNED) * ALIGNED
            slab.lent += 1
        weakref.finalize(owner, self._back, slab).atexit = False
        return slab.cells[begin : begin + size].view(dtype).reshape(shape)

    def drop(self) -> None:
        """Hold no slab for blocks to come."""
        with self._lock:
            self._slab = None

    def _another(self, size: int) -> _Slab:
        wanted = min(max(self._in_use, SMALLEST), LARGEST)
        taken = 1 << (max(size, wanted) - 1).bit_length()
        self._slab = None  # if nobody else holds the last one, it may serve again
        cells = self._pinned((taken,), np.uint8)
        self._in_use += taken
        weakref.finalize(cells, self._gone, taken).atexit = False
        return _Slab(cells)

    def _back(self, slab: _Slab) -> None:
        with self._lock:
            slab.lent -= 1

    def _gone(self, size: int) -> None:
        with self._lock:
            self._in_use -= size
