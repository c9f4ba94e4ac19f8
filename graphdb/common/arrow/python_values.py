"""Columns as Python values, also those that Python's calendar does not have."""

from __future__ import annotations

import io
import uuid
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Context
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from graphdb.common.arrow.arrays import Array, ChunkedArray, chunks
from graphdb.common.arrow.types import DataType

_EXACT = Context(prec=80)
_YEARS = np.datetime64("0001-01-01"), np.datetime64("10000-01-01")
_EPOCH = datetime(1970, 1, 1)


class MonthDayNano(NamedTuple):
    """An interval."""

    months: int
    days: int
    nanoseconds: int


def pylist(column: Array | ChunkedArray) -> list[Any]:
    """Return a column's values; a date or moment that Python's calendar does not have comes as text."""
    if isinstance(column, ChunkedArray):
        return [value for chunk in chunks(column) for value in pylist(chunk)]
    if column.type.format == "n":
        return [None] * len(column)
    values = _values(column)
    if column.valid is None or column.type.format.startswith("+u") or column.type.values is not None:
        return values
    if column.valid.all():
        return values
    there = column.valid.tolist()
    return [value if valid else None for value, valid in zip(values, there, strict=True)]


def encoded(column: Array, at: int) -> bytes:
    """Return the bytes of one text of a column, which is not null."""
    data, offsets = column.data, column.offsets
    assert data is not None
    assert offsets is not None
    return data[offsets[at] : offsets[at + 1]].tobytes()


def item(column: Array, at: int) -> Any:
    """Return one value of a column."""
    if column.type.format in "uU" and column.type.values is None:
        return None if column.valid is not None and not column.valid[at] else encoded(column, at).decode()
    return pylist(column.slice(at, 1))[0]


def _values(column: Array) -> list[Any]:
    """Return a column's values; what null has means nothing."""
    type, data = column.type, column.data
    if type.values is not None:
        return pylist(column.decoded())
    format = type.format
    if len(format) == 1 and type.is_fixed:
        assert data is not None
        found: list[Any] = data.tolist()
        return found
    if format in "uU":
        return _texts(column)
    if format in "zZ":
        assert column.offsets is not None
        return list(map(io.BytesIO(_bytes(column).tobytes()).read, np.diff(column.offsets).tolist()))
    if format[0] == "+":
        return _nested(column)
    assert data is not None
    if format[0] == "w":
        values = [value.tobytes() for value in data]
        return [uuid.UUID(bytes=value) for value in values] if type.extension == "arrow.uuid" else values
    if format[:2] == "d:":
        return _decimals(data, type.scale)
    return _temporal(column, type)


def _bytes(column: Array) -> NDArray[np.uint8]:
    assert column.offsets is not None
    assert column.data is not None
    return column.data[column.offsets[0] : column.offsets[-1]]


def _pieces(whole: list[Any], column: Array) -> list[Any]:
    """Return the slices of items that lists are."""
    assert column.offsets is not None
    at = (column.offsets - column.offsets[0]).tolist()
    return list(map(whole.__getitem__, map(slice, at, at[1:])))


def _texts(column: Array) -> list[str]:
    """Return the texts of a column: all characters are decoded at once, and then read one text after the other."""
    data = _bytes(column)
    text = data.tobytes().decode()
    assert column.offsets is not None
    at = column.offsets
    if len(text) < len(data):
        characters = np.append(0, np.cumsum((data & 0xC0) != 0x80))  # before each byte
        at = characters[at - at[0]]
    return list(map(io.StringIO(text, newline="").read, np.diff(at).tolist()))


def _nested(column: Array) -> list[Any]:
    type = column.type
    if type.format == "+s":
        names = [field.name for field in type.fields]
        if not names:
            return [{} for _ in range(len(column))]
        rows = zip(*map(pylist, column.children), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]
    if type.format.startswith("+u"):
        assert column.data is not None
        found = np.empty(len(column), object)
        for number, child in zip(type.format.partition(":")[2].split(","), column.children, strict=True):
            at = np.flatnonzero(column.data == int(number))
            if not len(at):  # most values of the others are there for nothing
                continue
            first, end = int(at[0]), int(at[-1]) + 1
            side_by_side = end - first == len(at)
            mine = pylist(child.slice(first, len(at)) if side_by_side else child.take(at))
            found[slice(first, end) if side_by_side else at] = np.fromiter(mine, object, len(at))
        values: list[Any] = found.tolist()
        return values
    if type.format.startswith("+w:"):
        size, items = int(type.format[3:]), pylist(column.children[0])
        return [items[i * size : (i + 1) * size] for i in range(len(column))]
    assert column.offsets is not None
    begin, end = int(column.offsets[0]), int(column.offsets[-1])
    inside = column.children[0].slice(begin, end - begin)
    if type.format == "+m":
        return _pieces(list(zip(*map(pylist, inside.children), strict=True)), column)
    return _pieces(pylist(inside), column)


def _decimals(data: NDArray[Any], scale: int) -> list[Any]:
    """Return decimal numbers of integers with their sign, the least byte first."""
    size = data.dtype.itemsize
    raw = np.ascontiguousarray(data)
    if size <= 8:
        values = raw.view(f"<i{size}").tolist()
    else:
        words = raw.view("<i8").reshape(-1, size // 8)
        if (words[:, 1:] == (words[:, :1] >> 63)).all():  # the rest is the sign
            values = words[:, 0].tolist()
        else:
            values = [int.from_bytes(value.tobytes(), "little", signed=True) for value in raw]
    made, scaled = _EXACT.create_decimal, _EXACT.scaleb
    return [scaled(made(value), -scale) for value in values]


def _temporal(column: Array, type: DataType) -> list[Any]:
    assert column.data is not None
    kind, data = type.format[:2], column.data
    if kind == "tt":
        ticks = data.astype(np.int64) * {"s": 10**6, "ms": 1000, "us": 1}.get(type.unit, 1)
        return list(map(_time, (ticks // 1000 if type.unit == "ns" else ticks).tolist()))
    if kind == "ti":
        if type.format != "tin":
            found: list[Any] = data.tolist()
            return found
        parts = np.ascontiguousarray(data).view([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
        return [MonthDayNano(*part) for part in parts.tolist()]
    if kind == "tD":
        return [timedelta(microseconds=value / 1000) if type.unit == "ns" else value for value in _deltas(data, type)]
    times = column.to_numpy()
    if type.format == "tdm":
        times = times.astype("M8[D]")
    elif type.format != "tdD" and type.unit == "ns":
        times = _coarser(times)
    found = _dates(times)
    if type.format[:2] == "ts" and type.tz is not None:
        zone = _zone(type.tz)
        return [_moved(value, zone) for value in found]
    return found


def _deltas(data: NDArray[Any], type: DataType) -> list[Any]:
    found: list[Any] = data.tolist() if type.unit == "ns" else data.view(f"m8[{type.unit}]").tolist()
    return found


def _coarser(times: NDArray[Any]) -> NDArray[Any]:
    """Return moments in microseconds, where that changes none."""
    whole = times.astype("M8[us]")
    return whole if (whole.astype("M8[ns]") == times)[~np.isnat(times)].all() else times


def _dates(times: NDArray[Any]) -> list[Any]:
    """Return dates and moments, those outside of Python's years 1 to 9999 as text, ISO 8601 with astronomical years."""
    values: list[Any] = times.tolist()
    if times.size and not (_YEARS[0] <= times.min() and times.max() < _YEARS[1] and not isinstance(values[0], int)):
        texts = [
            f"-0{text[1:]}" if text[:1] == "-" == text[4:5] else text for text in np.datetime_as_string(times).tolist()
        ]
        return [text if isinstance(value, int) else value for value, text in zip(values, texts, strict=True)]
    return values


def _time(ticks: int) -> time:
    seconds, fraction = divmod(ticks, 10**6)
    return time(seconds // 3600 % 24, seconds // 60 % 60, seconds % 60, fraction)


def _zone(name: str) -> Any:
    if name.upper() in ("UTC", "ETC/UTC", "Z"):
        return UTC if name.upper() != "ETC/UTC" else ZoneInfo(name)
    if name[:1] in "+-" and len(name) == 6:
        sign = -1 if name[0] == "-" else 1
        return timezone(sign * timedelta(hours=int(name[1:3]), minutes=int(name[4:])))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def _moved(value: Any, zone: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    try:
        return value.replace(tzinfo=UTC).astimezone(zone)
    except OverflowError:  # at the calendar's ends
        return f"{value.isoformat()}+00:00"
