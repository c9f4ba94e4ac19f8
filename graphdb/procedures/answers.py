"""What a procedure returned, as columns of its types: rows as tuples or dictionaries, a table, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, TypeAlias

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import table_of_frame
from graphdb.common.values.types import Base, Type
from graphdb.procedures.signature import Field
from graphdb.procedures.types import NotOfType

_AT_A_TIME = 1 << 10
"""Rows that are taken from a generator between two questions whether to go on."""


class Unfit(Exception):
    """What was returned is not what the signature says; the message says how."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of one call: a column, Python's values or Arrow's, for each of the procedure's."""

    num_rows: int
    columns: tuple[Column, ...]

    def values(self, number: int) -> Sequence[Any]:
        """Return a column as Python values."""
        column = self.columns[number]
        found: Sequence[Any] = column if isinstance(column, Sequence) else arrow.pylist(column)
        return found

    def arrays(self, number: int, type: Type) -> list[arrow.Array]:
        """Return a column, whose values are of a type that SQL has, as Arrow arrays."""
        column = self.columns[number]
        if isinstance(column, Sequence):
            return [arrow.array(column, arrow_type(type))]
        return list(column.chunks)


Column: TypeAlias = "Sequence[Any] | arrow.ChunkedArray"


def arrow_type(type: Type) -> arrow.DataType:
    """Return the Arrow type of a column that procedures yield."""
    if type.base is Base.LIST:
        assert type.element is not None
        return arrow.list_of(arrow_type(type.element))
    return {
        Base.BOOLEAN: arrow.BOOL,
        Base.INTEGER: arrow.INT64,
        Base.FLOAT: arrow.FLOAT64,
        Base.STRING: arrow.STRING,
        Base.DATE: arrow.DATE,
    }[type.base]


def answer_of(returned: object, columns: Sequence[Field], check: Callable[[], None]) -> Answer:
    """Return what a function returned as columns; ``check`` is asked whether to go on.

    Raises
    ------
    Unfit
        It is not what the signature says.
    """
    if returned is None:
        return Answer(0, tuple([] for _ in columns))
    if not columns:
        raise Unfit(f"returned {_shown(returned)}, but yields nothing")
    if hasattr(returned, "__arrow_c_stream__") or hasattr(returned, "__dataframe__"):
        return _of_table(returned, columns)
    if isinstance(returned, (Mapping, str, bytes)) or not isinstance(returned, Iterable):
        returned = [returned]  # one row
    rows: list[Any] = []
    waiting = iter(returned)
    while batch := list(islice(waiting, _AT_A_TIME)):
        check()
        rows += batch
    fitted = tuple(_fitted(field, values) for field, values in zip(columns, _transposed(rows, columns), strict=True))
    return Answer(len(rows), fitted)


def _transposed(rows: list[Any], columns: Sequence[Field]) -> list[Any]:
    """Return rows as columns."""
    if not rows:
        return [[] for _ in columns]
    names = [field.name for field in columns]
    kinds = {*map(type, rows)}
    if kinds == {dict} and all(row.keys() == {*names} for row in rows):
        return [list(map(itemgetter(name), rows)) for name in names]
    if kinds != {tuple} or {*map(len, rows)} != {len(names)}:
        rows = [_row(row, names) for row in rows]
    return [list(column) for column in zip(*rows, strict=True)]


def _row(row: Any, names: list[str]) -> tuple[Any, ...]:
    """Return one row as a tuple; of a single column, whatever is no row is its value."""
    if isinstance(row, Mapping) and (len(names) > 1 or row.keys() == {*names}):
        missing = [name for name in names if name not in row]
        if missing:
            raise Unfit(f"returned a row without '{missing[0]}'")
        unknown = [name for name in row if name not in names]
        if unknown:
            raise Unfit(f"returned a row with '{unknown[0]}', which it does not yield")
        return tuple(row[name] for name in names)
    if len(names) == 1:
        return row if isinstance(row, tuple) and len(row) == 1 else (row,)
    if not isinstance(row, (tuple, list)):
        raise Unfit(f"returned {_shown(row)} as a row; rows are tuples or dictionaries")
    if len(row) != len(names):
        raise Unfit(f"returned a row of {len(row)} values, but yields {len(names)}: {', '.join(names)}")
    return tuple(row)


def _fitted(field: Field, values: Sequence[Any]) -> Sequence[Any]:
    try:
        found = field.type.fitted(values)
        if field.type.name == "STRING":
            "".join(value for value in found if value is not None).encode()
    except UnicodeEncodeError:
        raise Unfit(f"returned a string with a lone surrogate, which is no character, for '{field.name}'") from None
    except NotOfType as wrong:
        raise Unfit(f"returned {_shown(wrong.args[0])} for '{field.name}', which is {field.type}") from None
    return found


def _of_table(returned: Any, columns: Sequence[Field]) -> Answer:
    """Return the columns of a table, or of a frame, by their names."""
    table = table_of_frame(returned)
    found: list[Column] = []
    for field in columns:
        if field.name not in table.column_names:
            raise Unfit(f"returned a table without a column '{field.name}'")
        column = table.column(field.name)
        if column.null_count and not field.type.nullable:
            raise Unfit(f"returned null for '{field.name}', which is {field.type}")
        type = field.type.sql
        plain = type is not None and _is_plain(column.type, type)
        found.append(column.cast(arrow_type(type)) if plain else _fitted(field, arrow.pylist(column)))  # type: ignore[arg-type]
    return Answer(table.num_rows, tuple(found))


def _is_plain(found: arrow.DataType, type: Type) -> bool:
    """Whether all values of an Arrow type are of one of ours."""
    match type.base:
        case Base.BOOLEAN:
            return found == arrow.BOOL
        case Base.INTEGER:
            return arrow.is_integer(found) and found != arrow.UINT64
        case Base.FLOAT:
            return arrow.is_floating(found) or (arrow.is_integer(found) and found.dtype.itemsize < 8)
        case Base.STRING:
            return arrow.is_string(found)
        case Base.DATE:
            return arrow.is_date(found)
    return False


def _shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
