"""Columns of Python values, of a type that is given or that all of them have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.arrow import types
from graphdb.common.arrow.arrays import Array, ChunkedArray, nulls
from graphdb.common.arrow.makers import binaries, list_array, numbers, strings
from graphdb.common.arrow.types import DataType

_EXACT = Context(prec=80)
_ABSENT = type(None)
_EPOCH, _FIRST_DAY = datetime(1970, 1, 1), date(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class ArrowTypeError(types.ArrowError, TypeError):
    """Values have no type in common that columns have, or are of another type than theirs."""


def array(values: Any, type: DataType | None = None) -> Array:
    """Return values as a column, of the type that they have in common, or of ``type``.

    Parameters
    ----------
    values
        An array of NumPy, a column of Arrow's, or Python values; None is null.

    Raises
    ------
    ArrowTypeError
        They are not of one type, or not of ``type``.
    OverflowError
        A number has more bits than its type.
    UnicodeEncodeError
        A text has a lone surrogate.
    """
    if isinstance(values, (Array, ChunkedArray)):
        found = values if isinstance(values, Array) else values.combine_chunks()
        return found if type is None else found.cast(type)
    if hasattr(values, "__arrow_c_array__"):
        from graphdb.common.arrow.imported import imported_array

        return array(imported_array(values.__arrow_c_array__()), type)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _of_numpy(values, type)
    given = list(values)
    kind = _inferred(given) if type is None else type
    return _built(given, kind)


def _of_numpy(values: NDArray[Any], type: DataType | None) -> Array:
    if values.ndim != 1:
        raise ArrowTypeError("only arrays of one dimension are columns")
    if values.dtype.kind == "U":
        return strings(values.tolist())
    if values.dtype.kind == "S":
        return binaries(values.tolist())
    if values.dtype.kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        if unit not in ("D", "s", "ms", "us", "ns"):
            values = values.astype("M8[D]" if unit in ("Y", "M", "W") else "M8[s]")
    try:
        found = numbers(values, ~np.isnat(values) if values.dtype.kind == "M" and np.isnat(values).any() else None)
    except TypeError as error:
        raise ArrowTypeError(str(error)) from None
    return found if type is None else found.cast(type)


def _inferred(values: Sequence[Any]) -> DataType:
    """Return the type that values have in common."""
    kinds = {*map(type, values)} - {type(None)}
    if not kinds:
        return types.NULL
    if len(kinds) == 1:
        [kind] = kinds
        plain = _PLAIN.get(kind)
        if plain is not None:
            return plain
    if kinds == {int, float}:
        if any(isinstance(value, int) and abs(value) > 1 << 53 for value in values):
            raise ArrowTypeError("an integer does not fit a column of floating-point numbers")
        return types.FLOAT64
    there = [value for value in values if value is not None]
    if all(issubclass(kind, np.generic) for kind in kinds):
        if len(kinds) == 1:
            try:
                return types.of_numpy(there[0].dtype)
            except TypeError as error:
                raise ArrowTypeError(str(error)) from None
        return _inferred([value.item() for value in there])
    if all(issubclass(kind, datetime) for kind in kinds):
        zones = {value.tzinfo is not None for value in there}
        if len(zones) > 1:
            raise ArrowTypeError("moments with a zone and without are of two types")
        return DataType("tsu:UTC") if zones == {True} else types.TIMESTAMP
    if kinds == {Decimal}:
        return _decimal(there)
    if all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds):
        return types.list_of(_inferred([item for value in there for item in value]))
    if all(issubclass(kind, Mapping) for kind in kinds):
        names = list(dict.fromkeys(key for value in there for key in value))
        if any(not isinstance(name, str) for name in names):
            raise ArrowTypeError("the keys of maps are texts")
        return types.struct((name, _inferred([value.get(name) for value in there])) for name in names)
    if any(issubclass(kind, datetime) for kind in kinds):
        raise ArrowTypeError("moments and dates are of two types")
    for kind, found in _PLAIN.items():
        if all(issubclass(each, kind) for each in kinds) and not (kind is int and bool in kinds):
            return found
    called = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ArrowTypeError(f"no column holds values of {called}")


_PLAIN: dict[type, DataType] = {
    bool: types.BOOL,
    int: types.INT64,
    float: types.FLOAT64,
    str: types.STRING,
    bytes: types.BINARY,
    date: types.DATE,
    time: types.TIME,
    timedelta: types.DURATION,
}


def _decimal(values: Sequence[Decimal]) -> DataType:
    """Return the type that holds some decimal numbers."""
    whole = scale = 0
    for value in values:
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise ArrowTypeError(f"no column of decimal numbers holds {value}")
        scale = max(scale, -exponent)
        whole = max(whole, len(digits) + exponent)
    if whole + scale > 38:
        raise ArrowTypeError("decimal numbers have at most 38 digits")
    return types.decimal(max(whole + scale, 1), scale)


def _built(values: Sequence[Any], type: DataType) -> Array:
    format, count = type.format, len(values)
    if format == "n":
        return nulls(count)
    kinds = {value.__class__ for value in values}
    there = None
    if _ABSENT in kinds:
        kinds.remove(_ABSENT)
        there = np.array([value is not None for value in values], bool)
    if format in "uU":
        _check(kinds, str, type)
        return strings(values, type)
    if format == "z":
        _check(kinds, bytes, type)
        return binaries(values)
    if types.is_list(type):
        lengths = [0 if value is None else len(value) for value in values]
        items = _built([item for value in values if value is not None for item in value], type.value_type)
        return list_array(np.append(0, np.cumsum(np.array(lengths, np.int64))), items, there, type)
    if types.is_struct(type):
        parts = [
            _built([None if value is None else value.get(field.name) for value in values], field.type)
            for field in type.fields
        ]
        return Array(type, count, there, children=tuple(parts))
    if types.is_decimal(type):
        raw = b"".join(_unscaled(value, type.scale).to_bytes(16, "little", signed=True) for value in values)
        return Array(type, count, there, np.frombuffer(raw, "V16"))
    given = values if there is None else [_FILL.get(format[:2], 0) if value is None else value for value in values]
    if format[:2] in _TICKS:
        data = np.fromiter(map(_TICKS[format[:2]], given), np.int64, count).astype(type.dtype)
        return Array(type, count, there, data)
    try:
        found = np.array(given, type.dtype) if count else np.empty(0, type.dtype)
    except (TypeError, ValueError) as error:
        raise ArrowTypeError(str(error)) from None
    called = {*map(_kind, kinds)}
    if not called <= _TAKEN.get(type.dtype.kind, set()):
        raise ArrowTypeError(f"a value of {type} was expected, not one of {', '.join(sorted(called))}")
    return Array(type, count, there, found)


_TAKEN = {"b": {"bool"}, "i": {"int"}, "u": {"int"}, "f": {"int", "float"}}
_FILL: dict[str, Any] = {"td": _FIRST_DAY, "ts": _EPOCH, "tt": time(), "tD": timedelta(), "b": False}


def _kind(kind: type) -> str:
    if issubclass(kind, (bool, np.bool_)):
        return "bool"
    if issubclass(kind, (int, np.integer)):
        return "int"
    return "float" if issubclass(kind, (float, np.floating)) else kind.__name__


def _check(kinds: Iterable[type], kind: type, type: DataType) -> None:
    for each in kinds:
        if not issubclass(each, kind):
            raise ArrowTypeError(f"a value of {type} was expected, not one of {each.__name__}")


def _unscaled(value: Any, scale: int) -> int:
    if value is None:
        return 0
    found = _EXACT.scaleb(Decimal(value), scale)
    if found != found.to_integral_value():
        raise ArrowTypeError(f"{value} has more digits than its type")
    return int(found)


def _days(value: Any) -> int:
    if isinstance(value, (int, np.integer)):
        return int(value)
    return value.toordinal() - _FIRST_DAY.toordinal()  # type: ignore[no-any-return]


def _microseconds(value: Any) -> int:
    moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
    return (moment - _EPOCH) // _MICROSECOND  # type: ignore[no-any-return]


def _of_day(value: Any) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond  # type: ignore[no-any-return]


_TICKS: dict[str, Any] = {
    "td": _days,
    "ts": _microseconds,
    "tt": _of_day,
    "tD": lambda value: value // _MICROSECOND,
}
