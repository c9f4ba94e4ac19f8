"""Columns without ids as Python values: what a user sees of numbers, texts, times and lists of them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np

from graphdb.common import arrow
from graphdb.common.values.literals import far_value_of, moment_at
from graphdb.common.values.temporal import AT_OFFSETS, DATED, Duration, Temporal
from graphdb.common.values.temporal_python import to_python
from graphdb.common.values.types import MEMBERS, Base, Type, tidied
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.python_values import pylist
from graphdb.storage.arrays.sorted_sets import unique

_YEARS = [int(np.datetime64(year, "us").astype(np.int64)) for year in ("0001-01-01", "10000-01-01")]
"""The microseconds since 1970 where Python's calendar begins and ends."""


def plain_values(type: Type, column: arrow.Array) -> list[Any]:
    """Return the Python values of a column of numbers, texts, truth values, times, or lists of such."""
    match type.base:
        case Base.DURATION:
            durations = map(Duration, *[arrow.pylist(field) for field in column.children])
            return _where_valid(column, list(durations))
        case Base.MOMENT:
            return _moments(column)
        case Base.EXACT if type.of is not None:
            return _exact(column, type.of, type.by_name)
        case Base.ZONED:
            moments = map(tidied, pylist(column))
            return [to_python(moment_at(each, 0)) if isinstance(each, str) else each for each in moments]
        case Base.DATE | Base.DATETIME:
            found = pylist(column)
            if str not in {each.__class__ for each in found}:
                return found
            return [far_value_of(each) if isinstance(each, str) else each for each in found]
        case Base.VALUE if _is_tidy(column):
            return pylist(column)
        case Base.DECIMAL | Base.VALUE:
            return [tidied(value) for value in pylist(column)]
    return pylist(column)


def _where_valid(column: arrow.Array, values: list[Any]) -> list[Any]:
    """Return values where a column has some, and None elsewhere."""
    if not column.null_count:
        return values
    return [value if there else None for value, there in zip(values, column.is_valid().tolist(), strict=True)]


def _is_tidy(column: arrow.Array) -> bool:
    """Whether a column of unions has no decimals and no points in time, which Python is to have otherwise."""
    untidy = {MEMBERS[base][0] for base in (Base.DECIMAL, Base.ZONED)}
    if not arrow.is_union(column.type) or column.data is None:
        return False
    kinds = [number for number, field in enumerate(column.type.fields) if field.name in untidy]
    return not any(bool((column.data == kind).any()) for kind in kinds)


def _moments(column: arrow.Array) -> list[Any]:
    """Return points in time, each at its offset."""
    moments, offsets = (column.field(name) for name in ("moment", "offset"))
    there = column.is_valid() & moments.is_valid()
    clocks, shifts = (np.where(there, plain(part), 0).astype(np.int64) for part in (moments, offsets))
    zones = {offset: timezone(timedelta(seconds=offset)) for offset in unique(shifts).tolist()}
    shown = clocks + shifts * 1_000_000
    if moments.type.unit != "us" or not bool(((shown >= _YEARS[0]) & (shown < _YEARS[1])).all()):
        return _far_moments(moments, offsets, zones)
    local: list[datetime] = shown.view("M8[us]").tolist()
    if len(zones) == 1:
        (zone,) = zones.values()
        made = [each.replace(tzinfo=zone) for each in local]
    else:
        made = [each.replace(tzinfo=zones[shift]) for each, shift in zip(local, shifts.tolist(), strict=True)]
    return made if there.all() else [each if known else None for each, known in zip(made, there.tolist(), strict=True)]


def _far_moments(moments: arrow.Array, offsets: arrow.Array, zones: dict[int, timezone]) -> list[Any]:
    """Return the same where Python's calendar does not have the years of some."""

    def at(moment: Any, offset: int) -> Any:
        try:
            return moment.astimezone(zones[offset])
        except (AttributeError, OverflowError):
            return to_python(moment_at(moment, offset))

    pairs = zip(pylist(moments), pylist(offsets), strict=True)
    return [None if moment is None else at(moment, offset) for moment, offset in pairs]


def _exact(column: arrow.Array, of: type[Temporal], by_name: bool) -> list[Any]:
    """Return times to the nanosecond, each as Python's own where nothing is lost."""
    clocks, rests, offsets = (column.field(name) for name in ("clock", "nanoseconds", "offset"))
    days, microseconds = np.divmod(clocks.to_numpy().astype(np.int64), 86_400_000_000)
    parts = [*([days] if of in DATED else []), microseconds * 1000 + plain(rests)]
    if of in AT_OFFSETS:
        parts.append(plain(offsets))
    zones = [arrow.pylist(column.field("zone"))] if by_name else []
    made = map(of, *(part.tolist() for part in parts), *zones)
    return [to_python(value) if there else None for value, there in zip(made, column.is_valid().tolist(), strict=True)]
