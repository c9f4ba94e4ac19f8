"""Columns of Arrow as Python values, also those that Python's calendar does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays import times_with_offset
from graphdb.storage.arrays.arrow import values as values_of

if TYPE_CHECKING:
    import pyarrow as pa


def pylist(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column's Python values; a date or time that Python's calendar does not have comes as text."""
    values: list[Any] = []
    for chunk in getattr(column, "chunks", (column,)):
        values += _items(chunk)
    return values


def _items(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    type = array.type
    if pa.types.is_list(type):
        return lists_of(array, _items(array.flatten()))
    if times_with_offset.is_timetz(type):
        return times_with_offset.to_times(array)
    if pa.types.is_date32(type) or (pa.types.is_timestamp(type) and type.tz is None and type.unit != "ns"):
        return _dates(array.to_numpy(zero_copy_only=False))
    try:
        values: list[Any] = array.to_pylist()
    except (OverflowError, ValueError):
        if not pa.types.is_struct(type):
            return [_item(scalar) for scalar in array]
        names = [field.name for field in type]
        rows = zip(*(_items(array.field(i)) for i in range(type.num_fields)), strict=True)
        there = array.is_valid().to_pylist()
        values = [dict(zip(names, row, strict=True)) if valid else None for row, valid in zip(rows, there, strict=True)]
    return values


def _dates(times: NDArray[np.datetime64]) -> list[Any]:
    """Return dates and times, those outside of Python's years 1 to 9999 as text, ISO 8601 with astronomical years."""
    values: list[Any] = times.tolist()
    if times.size and not (_YEARS[0] <= times.min() and times.max() < _YEARS[1]):  # so it is with NaT, too
        texts = [
            f"-0{text[1:]}" if text[:1] == "-" == text[4:5] else text for text in np.datetime_as_string(times).tolist()
        ]
        return [text if isinstance(value, int) else value for value, text in zip(values, texts, strict=True)]
    return values


_YEARS = np.datetime64("0001-01-01"), np.datetime64("10000-01-01")


def _item(scalar: pa.Scalar) -> Any:
    """Return one value of a column of which Python does not have all."""
    import pyarrow as pa

    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        inner = scalar.value if isinstance(scalar, pa.UnionScalar) else scalar
        if pa.types.is_date32(inner.type):
            return _dates(np.array([inner.cast(pa.int32()).as_py()], "M8[D]"))[0]
        return _dates(np.array([inner.cast(pa.int64()).as_py()], "M8[us]"))[0]


def lists_of(column: pa.Array, values: list[Any]) -> list[Any]:
    """Return the lists of a column whose values, one list after the other, are given."""
    import pyarrow.compute as pc

    ends = np.cumsum(values_of(filled(pc.list_value_length(column), 0)))
    starts = np.append(0, ends[:-1]) if len(ends) else ends
    found: list[Any] = list(map(values.__getitem__, map(slice, starts.tolist(), ends.tolist())))
    if column.null_count:
        return [value if there else None for value, there in zip(found, column.is_valid().to_pylist(), strict=True)]
    return found


def filled(array: pa.Array, value: int) -> pa.Array:
    """Put a value in the place of NULL, where there is one: that imports pandas."""
    return array.fill_null(value) if array.null_count else array
