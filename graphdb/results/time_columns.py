"""Exact times as columns of DuckDB's and Arrow's own types, where one of these holds all values of a column.

Local dates and times are timestamps, of nanoseconds where some have any; times of day at an offset are DuckDB's; what
has no nanoseconds is of the types for microseconds.  What is left is text: SQL writes it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.temporal import DateTime, LocalDateTime, Temporal, Time
from graphdb.storage.arrays import times_with_offset
from graphdb.storage.arrays.arrow import values

_LAST = (1 << 63) // 1000 - 1
"""Microseconds before and after 1970 that are 64 bits of nanoseconds."""

_NANOSECONDS, _UTC, _CLOCK = (arrow.DataType(format) for format in ("tsn:", "tsu:UTC", "ttu"))

Ints = NDArray[np.int64]


def of_times(array: arrow.Array, of: type[Temporal]) -> arrow.Array | None:
    """Return a column of exact times as one of another type, the only one that there is; None where there is none."""
    clocks, rests, offsets = (values(array.field(i)).astype(np.int64) for i in range(3))
    there = array.is_valid()
    for part in (clocks, rests, offsets):
        part[~there] = 0
    if not rests.any():
        if of is Time:
            fits = int(np.abs(offsets).max(initial=0)) <= times_with_offset.LARGEST
            return times_with_offset.packed(clocks, offsets, there) if fits else None
        if of is DateTime:
            return _made(clocks - offsets * 1_000_000, _UTC, there)
        return _made(clocks, arrow.TIMESTAMP if of is LocalDateTime else _CLOCK, there)
    if of is LocalDateTime and int(np.abs(clocks).max(initial=0)) < _LAST:
        return _made(clocks * 1000 + rests, _NANOSECONDS, there)
    return None


def _made(numbers: Ints, type: arrow.DataType, there: NDArray[np.bool_]) -> arrow.Array:
    return arrow.Array(type, len(numbers), None if there.all() else there, numbers)
