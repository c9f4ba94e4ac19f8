"""Times of day with an offset from UTC as columns: DuckDB's TIME WITH TIME ZONE, for which Arrow has no type.

In Arrow it is an opaque extension type of eight bytes, least first: the microseconds since midnight as the clock there
shows them, times 2**24, and how much less the offset is than the largest one, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import time, timedelta, timezone
from typing import Any

import numpy as np

from graphdb.common import arrow

SQL = "TIME WITH TIME ZONE"
"""What DuckDB calls the type."""

LARGEST = 16 * 3600 - 1
"""Seconds of the largest offset that DuckDB takes."""
_BITS = 24
_TYPE = arrow.DataType("w:8", extension="arrow.opaque", metadata='{"type_name":"time_tz","vendor_name":"DuckDB"}')


def is_timetz(type: arrow.DataType) -> bool:
    """Whether a column holds such times."""
    return type == _TYPE


def has_timetz(type: arrow.DataType) -> bool:
    """Whether a column holds such times, or lists, structs or maps with some."""
    return is_timetz(type) or (not arrow.is_union(type) and any(has_timetz(field.type) for field in type.fields))


def parts_sql(column: str) -> str:
    """Return SQL of the struct of such a time that :func:`of_parts` takes: Arrow would get the clock alone."""
    parts = f"clock := epoch_us(CAST({column} AS TIME)), zone := CAST(date_part('timezone', {column}) AS BIGINT)"
    return f"CASE WHEN {column} IS NOT NULL THEN struct_pack({parts}) END"


def of_parts(column: arrow.ChunkedArray) -> arrow.Array:
    """Return the column of what :func:`parts_sql` selects."""
    array = column.combine_chunks()
    clock, zone = (array.field(name).data for name in ("clock", "zone"))
    there = array.is_valid()
    return packed(clock, zone, there)


def of_times(times: Sequence[time | None]) -> arrow.Array:
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
    if np.abs(zone).max(initial=0) > LARGEST:
        raise OverflowError("an offset is out of range")
    return packed(clock, zone, there)


def to_times(array: arrow.Array) -> list[time | None]:
    """Return a column as Python's times."""
    there = array.is_valid().tolist()
    packed = np.ascontiguousarray(array.data).view("<u8")
    clock, less = (packed >> _BITS).tolist(), (packed & ((1 << _BITS) - 1)).tolist()
    return [_time(*parts) if known else None for known, *parts in zip(there, clock, less, strict=True)]


def as_texts(array: arrow.Array) -> arrow.Array:
    """Return a column with such times as texts, ISO 8601: for who reads Arrow and knows nothing of DuckDB."""
    if is_timetz(array.type):
        return arrow.strings([None if value is None else value.isoformat() for value in to_times(array)])
    children = tuple(as_texts(child) if has_timetz(child.type) else child for child in array.children)
    fields = (replace(field, type=child.type) for field, child in zip(array.type.fields, children, strict=True))
    type = replace(array.type, fields=tuple(fields))
    return arrow.Array(type, len(array), array.valid, array.data, array.offsets, children)


def packed(clock: Any, zone: Any, there: Any) -> arrow.Array:
    """Return a column of the times with these microseconds since midnight and offsets in seconds, where they are."""
    packed = (clock.astype("<u8") << np.uint64(_BITS)) | (LARGEST - zone).astype("<u8")
    return arrow.Array(_TYPE, len(packed), there, packed.view("V8"))


def _time(clock: int, less: int) -> time:
    seconds, fraction = divmod(clock, 10**6)
    zone = timezone(timedelta(seconds=LARGEST - less))
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction, zone)
