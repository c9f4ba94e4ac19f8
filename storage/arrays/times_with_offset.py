"""Times of day with an offset from UTC as columns: DuckDB's TIME WITH TIME ZONE, for which Arrow has no type.

In Arrow it is an opaque extension type of eight bytes, least first: the microseconds since midnight as the clock there
shows them, times 2**24, and how much less the offset is than the largest one, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.storage.arrays.arrow import values

if TYPE_CHECKING:
    import pyarrow as pa

SQL = "TIME WITH TIME ZONE"
"""What DuckDB calls the type."""

_LARGEST = 16 * 3600 - 1
"""Seconds of the largest offset."""
_BITS = 24
_NAMES = "time_tz", "DuckDB"


def is_timetz(type: pa.DataType) -> bool:
    """Whether a column holds such times."""
    import pyarrow as pa

    return isinstance(type, pa.OpaqueType) and (type.type_name, type.vendor_name) == _NAMES


def parts_sql(column: str) -> str:
    """Return SQL of the struct of such a time that :func:`of_parts` takes: Arrow would get the clock alone."""
    parts = f"clock := epoch_us(CAST({column} AS TIME)), zone := CAST(date_part('timezone', {column}) AS BIGINT)"
    return f"CASE WHEN {column} IS NOT NULL THEN struct_pack({parts}) END"


def of_parts(column: pa.ChunkedArray) -> pa.Array:
    """Return the column of what :func:`parts_sql` selects."""
    import pyarrow.compute as pc

    array = column.combine_chunks()
    there = array.is_valid().to_numpy(zero_copy_only=False)
    clock, zone = (values(pc.fill_null(pc.struct_field(array, name), 0)) for name in ("clock", "zone"))
    return _packed(clock, zone, there)


def of_times(times: Sequence[time | None]) -> pa.Array:
    """Return Python's times, all with an offset, as a column.

    Raises
    ------
    OverflowError
        An offset is sixteen hours or more, which DuckDB does not take.
    """
    there = np.array([value is not None for value in times], bool)
    given = [value for value in times if value is not None]
    offsets = [value.utcoffset() or timedelta() for value in given]
    clock, zone = np.zeros(len(times), np.int64), np.zeros(len(times), np.int64)
    clock[there] = [((v.hour * 60 + v.minute) * 60 + v.second) * 10**6 + v.microsecond for v in given]
    zone[there] = [offset.days * 86_400 + offset.seconds for offset in offsets]
    if np.abs(zone).max(initial=0) > _LARGEST:
        raise OverflowError("an offset is out of range")
    return _packed(clock, zone, there)


def to_times(array: pa.Array) -> list[time | None]:
    """Return a column as Python's times."""
    there = array.is_valid().to_pylist()
    packed = np.frombuffer(b"".join(item or bytes(8) for item in array.storage.to_pylist()), "<u8")
    clock, less = (packed >> _BITS).tolist(), (packed & ((1 << _BITS) - 1)).tolist()
    return [_time(*parts) if known else None for known, *parts in zip(there, clock, less, strict=True)]


def as_texts(array: pa.ChunkedArray) -> pa.Array:
    """Return a column as texts, ISO 8601: for who reads Arrow and knows nothing of DuckDB."""
    import pyarrow as pa

    times = [value for chunk in array.chunks for value in to_times(chunk)]
    return pa.array([None if value is None else value.isoformat() for value in times], pa.string())


def _packed(clock: Any, zone: Any, there: Any) -> pa.Array:
    import pyarrow as pa

    packed = (clock.astype("<u8") << np.uint64(_BITS)) | (_LARGEST - zone).astype("<u8")
    bits = pa.py_buffer(np.packbits(there, bitorder="little"))
    storage = pa.Array.from_buffers(pa.binary(8), len(packed), [bits, pa.py_buffer(packed)])
    return pa.ExtensionArray.from_storage(pa.opaque(pa.binary(8), *_NAMES), storage)


def _time(clock: int, less: int) -> time:
    seconds, fraction = divmod(clock, 10**6)
    zone = timezone(timedelta(seconds=_LARGEST - less))
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction, zone)
