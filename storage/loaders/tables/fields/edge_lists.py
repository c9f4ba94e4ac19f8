"""Edge lists whose vertices are integers: two numbers on each line, read without DuckDB."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.loaders.tables.fields import edge_list_kernels as kernels

_STEP = 4 << 20
"""Bytes between two looks at whether to stop."""

_PAIR = 4
"""Bytes of a line that has two numbers, at least."""


def pairs(path: str, watch: Callable[[], object]) -> list[NDArray[np.int64]] | None:
    """Return the edges of a file (int64[n, 2] each); None where a line has anything but two integers.

    ``watch`` is called again and again, and may raise.
    """
    text = np.asarray(np.memmap(path, np.uint8, "r"))
    found, count, at = [], np.zeros(1, np.int64), 0
    room = np.empty((min(_STEP, len(text)) // _PAIR + 1, 2), np.int64)
    while 0 <= at < len(text):
        watch()
        at = kernels.pairs(text, at, min(at + _STEP, len(text)), room, count)
        if at < 0:
            return None
        found.append(room[: int(count[0])].copy())
    return found
