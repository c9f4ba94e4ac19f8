"""What becomes of the memory of arrays that are gone: the C library's allocator retains some of it.

Columns of a query take some MB, and are gone when the next one begins.  glibc maps blocks as large as that one by one,
and gives the top of its heap back to the system, so that each query's pages are mapped and cleared anew: a third of
what a join of 100,000 rows takes.  Its limits for both grow with the blocks that a program frees, up to 32 MB for the
first and twice that for the second (``mallopt(3)``, ``M_MMAP_THRESHOLD``): one block, which nobody writes to, is freed
for that.  Other allocators take no notice of it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

_BLOCK = (32 << 20) - (64 << 10)
"""Bytes: the largest block that the limits grow with, less what the allocator puts beside it."""

_SHARE = 16
"""Times the block that the memory for rows is, at least: of less, nothing is retained."""


def retain(limit: int) -> None:
    """Have up to 64 MB of freed memory stay with the process, where ``limit`` bytes of memory are many times that."""
    if limit >= _SHARE * _BLOCK:
        with suppress(MemoryError):
            np.empty(_BLOCK, np.uint8)


def give_back() -> None:
    """Give memory that was freed back to the system, where the allocator is glibc's (``malloc_trim(3)``)."""
    if (trim := _trim()) is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], Any] | None:
    with suppress(OSError, AttributeError):
        trim = ctypes.CDLL(None).malloc_trim
        trim.argtypes = [ctypes.c_size_t]
        return trim
    return None
