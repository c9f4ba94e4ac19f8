"""Columns as Python values, those of DuckDB's own types among them."""

from __future__ import annotations

from typing import Any

from graphdb.common import arrow
from graphdb.storage.arrays import times_with_offset


def pylist(column: arrow.ChunkedArray | arrow.Array) -> list[Any]:
    """Return a column's Python values; a date or time that Python's calendar does not have comes as text."""
    if isinstance(column, arrow.ChunkedArray):
        return [value for chunk in column.chunks for value in pylist(chunk)]
    if times_with_offset.is_timetz(column.type):
        return times_with_offset.to_times(column)
    if arrow.is_list(column.type):
        return lists_of(column, pylist(column.flatten()))
    return arrow.pylist(column)


def lists_of(column: arrow.Array, values: list[Any]) -> list[Any]:
    """Return the lists of a column whose values, one list after the other, are given."""
    ends = column.lengths().cumsum().tolist()
    found: list[Any] = list(map(values.__getitem__, map(slice, [0, *ends[:-1]], ends)))
    if column.null_count:
        return [value if there else None for value, there in zip(found, column.is_valid().tolist(), strict=True)]
    return found
