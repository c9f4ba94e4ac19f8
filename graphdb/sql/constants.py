"""Compiles literals and parameters: Python values, and lists of them, to SQL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from graphdb.common.arguments import encodes, is_missing
from graphdb.common.errors import NotSupportedError, ParameterError
from graphdb.common.stopping import checked
from graphdb.common.values.decimals import fits, no_decimal, shortest
from graphdb.common.values.elements import Node
from graphdb.common.values.temporal import DateTime, Duration, Temporal
from graphdb.common.values.temporal_python import from_python, offset_of
from graphdb.common.values.time_texts import LAST
from graphdb.common.values.types import (
    BOOLEAN,
    DATE,
    DATETIME,
    DECIMAL,
    EXACT,
    FLOAT,
    INT64,
    INTEGER,
    NULL,
    STRING,
    TIME,
    ZONED,
    Type,
    list_of,
    sql_type,
)
from graphdb.common.values.zones import has_offset
from graphdb.sql import exact
from graphdb.sql.from_clause import Rows
from graphdb.sql.joined import items_of
from graphdb.sql.value import SqlValue, at_offset, bases_of

_PLAIN: dict[type, Type] = {bool: BOOLEAN, int: INTEGER, float: FLOAT, str: STRING, date: DATE}
"""Python types whose lists travel as one array."""

_MOST = 1 << 14
"""Items that a list of several types has at most where SQL lists them one by one: of more it would be too long."""


def constant(value: object, rows: Rows) -> SqlValue:
    """Return SQL for a Python value, which travels as a parameter.

    Raises
    ------
    ParameterError
        The value is of no type of the language, or does not fit its type.
    """
    add, add_once = rows.parameters.add, rows.parameters.add_once
    value = from_numpy(value)
    match value:
        case None:
            return SqlValue("NULL", NULL)
        case bool():
            return SqlValue("TRUE" if value else "FALSE", BOOLEAN, atomic=True)
        case int():
            if value not in INT64:
                raise ParameterError(f"{value} does not fit 64 bits")
            return SqlValue(add(int(value), "BIGINT"), INTEGER, atomic=True)
        case float():
            return SqlValue(add(float(value), "DOUBLE"), FLOAT, atomic=True)
        case str():
            if not encodes(value):
                raise ParameterError("the string has a lone surrogate, which is no character")
            return SqlValue(add(str.__str__(value), "VARCHAR"), STRING, atomic=True)
        case Decimal():
            if not fits(value):
                raise ParameterError(no_decimal(value))
            return SqlValue(add(Decimal(shortest(value)), "DECIMAL(38, 18)"), DECIMAL)
        case datetime():
            offset = offset_of(value)
            if getattr(value.tzinfo, "key", None) is not None:
                return _exact(from_python(value), rows)
            found = DATETIME if offset is None else ZONED
            sql = add(value, sql_type(found))
            return at_offset(sql, add(offset, "INTEGER")) if offset else SqlValue(sql, found, atomic=True)
        case date():
            return SqlValue(add(value, "DATE"), DATE, atomic=True)
        case time():
            if value.tzinfo is not None:
                return _exact(from_python(value), rows)
            return SqlValue(add(value, "TIME"), TIME, atomic=True)
        case Temporal() if not isinstance(value, Duration):
            return _exact(value, rows)
        case Node():
            return rows.resource(value.iri)
        case dict() | timedelta():
            raise NotSupportedError("maps and durations are not supported in SQL")
        case list() | tuple() | set() | frozenset():
            items = list(value)
            kinds = {*map(type, items)}
            there = [item for item in items if item is not None] if type(None) in kinds else items
            kinds.discard(type(None))
            if len(items) > _MOST and len(kinds) > 1:
                raise NotSupportedError("so long a list of several types is not supported in SQL")
            plain = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
            if plain is INTEGER and (min(there) not in INT64 or max(there) not in INT64):
                raise ParameterError(f"{max(there, key=abs)} does not fit 64 bits")
            if plain is STRING and not all(map(encodes, there)):
                raise ParameterError("a string has a lone surrogate, which is no character")
            if plain is not None:  # one parameter for the whole list
                return SqlValue(add_once(value, items, sql_type(plain) + "[]"), list_of(plain))
            nested = _nested(items)
            if nested is not None:  # and for lists in it
                return SqlValue(add_once(value, items, sql_type(nested)), nested)
            return list_sql([constant(item, rows) for item in checked(items)])
    raise ParameterError(f"a value of type {type(value).__name__} cannot be passed", hint=passed_instead(value))


def _nested(items: list[object]) -> Type | None:
    """Return the type of a list of lists of values of one Python type, which SQL takes as they are; None for others."""
    if not {*map(type, items)} <= {list, tuple}:
        return None
    inside = [item for each in items for item in each]  # type: ignore[attr-defined]
    kinds = {*map(type, inside)}
    if len(kinds) != 1:
        return None
    [kind] = kinds
    plain = _PLAIN.get(kind)
    if plain is None:
        found = _nested(inside)
        return None if found is None else list_of(found)
    if (plain is INTEGER and (min(inside) not in INT64 or max(inside) not in INT64)) or (
        plain is STRING and not all(map(encodes, inside))
    ):
        return None  # the error is that of the item
    return list_of(list_of(plain))


def _exact(value: Temporal | None, rows: Rows) -> SqlValue:
    """Return SQL for a time that DuckDB has no type for."""
    days, nanoseconds = getattr(value, "days", 0), getattr(value, "nanoseconds", 0)
    microseconds = days * 86_400_000_000 + nanoseconds // 1000
    if value is None or type(value) not in EXACT or abs(microseconds) > LAST:
        raise NotSupportedError("such a date or time is not supported in SQL")
    zone = value.zone if isinstance(value, DateTime) else None
    if isinstance(value, DateTime) and zone is not None:
        if not has_offset(zone, value.instant, value.offset):
            raise NotSupportedError("a time at another offset than its zone has then is not supported in SQL")
        rows.compare_zones([zone])
    parts = (microseconds, "BIGINT"), (nanoseconds % 1000, "INTEGER"), (getattr(value, "offset", 0), "INTEGER")
    clock, rest, offset = (rows.parameters.add(*part) for part in parts)
    name = "" if zone is None else rows.parameters.add(zone, "VARCHAR")
    return exact.exact(type(value), f"make_timestamp({clock})", rest, offset, name)


def passed_instead(value: object) -> str:
    """Return the hint on a value that cannot be passed: what of it can.

    >>> passed_instead(range(3))
    'pass list(…)'
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "there are no bytes in a graph: pass a string, as bytes.hex and bytes.decode make one"
    if type(value).__module__.partition(".")[0] in ("uuid", "pathlib", "ipaddress"):
        return "pass str(…)"
    for attribute, instead in _MEMBERS.items():
        if hasattr(value, attribute):
            return instead
    if isinstance(value, Iterable):
        return "pass list(…)"
    return "pass numbers, strings, booleans, dates, times, None, vertices, or lists of them"


_MEMBERS = {
    "_value_": "pass its .value",  # an enumeration
    "__dataclass_fields__": "pass dataclasses.asdict(…)",
    "as_py": "pass its .as_py()",  # a scalar of PyArrow
    "collect_schema": "pass its .collect()",  # a lazy frame of Polars
}
"""What can be passed of values that have such an attribute."""


def list_sql(items: list[SqlValue]) -> SqlValue:
    """Return the list of some values, of a common type.

    Raises
    ------
    NotSupportedError
        They have none.
    """
    values, element = items_of(items)
    sql = f"CAST([{', '.join(values)}] AS {sql_type(element)}[])"
    return SqlValue(sql, list_of(element), bases=bases_of(items))


def from_numpy(value: object) -> object:
    """Return a NumPy scalar or array as Python values, and a number or text of a subclass as what it is one of.

    What is missing to pandas is null.
    """
    if type(value) in _PLAIN:
        return value
    if is_missing(value):
        return None
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, str):
        return str.__str__(value)
    if not hasattr(value, "dtype"):
        return value
    import numpy as np

    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[D]" if value.dtype == "datetime64[D]" else "datetime64[us]")
    if isinstance(value, np.timedelta64):
        if np.datetime_data(value.dtype)[0] in ("Y", "M", "generic"):  # NumPy would hand over their number
            return value
        value = value.astype("timedelta64[us]")
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
