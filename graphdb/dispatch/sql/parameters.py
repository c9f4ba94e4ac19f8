"""The parameters of SQL statements: which of them a statement names, and what DuckDB is given for their values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from graphdb.common.errors import ParameterError, nearest
from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.common.values.temporal import Duration, Temporal
from graphdb.relational.session.embedded import token_starts
from graphdb.results.display import shown

if TYPE_CHECKING:
    import duckdb


def chosen(sql: str, names: Collection[str], arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return DuckDB's values of the parameters that a statement names, those by position under their numbers.

    Raises
    ------
    ParameterError
        One has no value, or one that SQL knows no type for.
    """
    for name in sorted(names):
        if name not in arguments:
            near = nearest(name, arguments)
            pass_it = f"pass {name} values in a list" if name.isdigit() else f"pass it: sql(…, {name}=…)"
            raise ParameterError(
                f"parameter {_written(name)} has no value",
                text=sql,
                position=_place(sql, name),
                hint=f"did you mean ${near[0]}?" if near else pass_it,
            )
    return {name: _to_sql(arguments[name], name) for name in names}


def check_known(arguments: Collection[str], names: Collection[str]) -> None:
    """Refuse a value for a parameter that no statement names: it is a mistake more often than not."""
    for name in arguments:
        if name not in names:
            near = nearest(name, names)
            raise ParameterError(
                f"the statement has no parameter {_written(name)}", hint=f"did you mean ${near[0]}?" if near else None
            )


def _written(name: str) -> str:
    return f"number {name}" if name.isdigit() else f"${name}"


def _place(sql: str, name: str) -> int:
    """Return where a statement names a parameter first, in characters."""
    data = sql.encode()
    for start in token_starts(sql):
        token = data[start:]
        if token.startswith(b"$" + name.encode()) or (name == "1" and token.startswith(b"?")):
            return len(data[:start].decode())
    return 0


def _to_sql(value: object, name: str) -> Any:
    """Return a value as DuckDB takes it: a vertex as its IRI, an edge as its type and ends, as results have them."""
    import numpy as np

    match value:
        case Node() | Relationship() | Path():
            return shown(value)
        case Duration():
            return _interval(value)
        case Temporal():
            return str(value)
        case np.generic():
            return value.item()
        case np.ndarray():
            return value.tolist()
        case list() | tuple():
            return [_to_sql(item, name) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _to_sql(item, name) for key, item in value.items()}
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ParameterError(f"parameter {_written(name)} has half a surrogate pair: it is no text") from None
            return value
        case (
            None | bool() | int() | float() | Decimal() | bytes() | date() | datetime() | time() | timedelta() | UUID()
        ):
            return value
    raise ParameterError(f"parameter {_written(name)} is of type {type(value).__name__}, which SQL has no value for")


def _interval(value: Duration) -> duckdb.Value:
    import duckdb
    from duckdb.sqltypes import INTERVAL

    microseconds = value.total // 1000
    return duckdb.Value(f"{value.months} months {value.days} days {microseconds} microseconds", INTERVAL)
