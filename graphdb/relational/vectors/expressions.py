"""Values of expressions for all rows of a frame.

Comparisons, conditions and arithmetic are those of SQL: null where an operand is, but for what AND and OR know without
it.  What SQL would answer in another way, or with an error, is refused, and SQL is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import ColumnOf, Constant, Operation, PropertyOf, Vector
from graphdb.relational.vectors.frames import Frame
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import filled, taken

Valid = NDArray[np.bool_] | None
"""Which values are not null; None for all."""

_FITS = float(1 << 62)
"""What sums and products of integers stay below."""

_DAY = 86_400_000_000
"""Microseconds."""

_FIRST_DAY = -719_162
"""The first day of the year 1: how years before it are counted differs."""

_MOST_DAYS = 10_000_000
"""Days whose parts are looked up, at most."""


class NotVectorized(Exception):
    """These rows are for SQL."""


def evaluated(vector: Vector, frame: Frame, properties: Properties) -> arrow.Array:
    """Return the values of an expression.

    Raises
    ------
    NotVectorized
        They are of a type, or so large, that SQL has to compute them.
    """
    match vector:
        case ColumnOf(name):
            return frame.column(name)
        case Constant(str(text)):
            return arrow.strings([text]).take(np.zeros(len(frame), np.int64))
        case Constant(value):
            return arrow.numbers(np.full(len(frame), value))
        case PropertyOf(vertex, label):
            found = properties.gather(label, frame.column(vertex.name))
            return found if isinstance(found, arrow.Array) else found.combine_chunks()
        case Operation(operator, operands):
            return _OPERATORS[operator]([evaluated(operand, frame, properties) for operand in operands])


def fulfilled(conditions: tuple[Vector, ...], frame: Frame, properties: Properties) -> Frame:
    """Return the rows for which all conditions hold."""
    for condition in conditions:
        holds = evaluated(condition, frame, properties)
        _require(holds.type == arrow.BOOL)
        frame = frame.at(np.flatnonzero(_true(holds)))
    return frame


def numeric(array: arrow.Array) -> NDArray[np.int64]:
    """Return integers as int64; what stands in the place of nulls means nothing."""
    _require(arrow.is_integer(array.type) and array.type != arrow.UINT64)
    return values(array).astype(np.int64, copy=False)


def ordinal(array: arrow.Array) -> NDArray[np.int64]:
    """Return integers that are ordered as the values are: of integers, truth values, dates and moments."""
    if arrow.is_struct(array.type):  # a point in time at an offset goes by its moment
        _require([field.name for field in array.type.fields] == ["moment", "offset"])
        array = array.field("moment")
    plain = array.type == arrow.BOOL or arrow.is_date(array.type) or arrow.is_timestamp(array.type)
    return values(array).astype(np.int64, copy=False) if plain else numeric(array)


def multiplied(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return products of integers that are not too large."""
    _require(_largest(left) * _largest(right) < _FITS)
    return left * right


def both(*arrays: arrow.Array) -> Valid:
    """Return which rows have no null among some values."""
    some = [array.is_valid() for array in arrays if array.null_count]
    return np.logical_and.reduce(some) if some else None


def _require(condition: bool) -> None:
    if not condition:
        raise NotVectorized


def _true(array: arrow.Array) -> NDArray[np.bool_]:
    data = values(array)
    return data if array.valid is None else data & array.valid


def _compared(compare: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]) -> _Operator:
    def made(operands: list[arrow.Array]) -> arrow.Array:
        left, right = operands
        same = left.type == right.type or (arrow.is_integer(left.type) and arrow.is_integer(right.type))
        _require(same)
        return arrow.numbers(compare(ordinal(left), ordinal(right)), both(left, right))

    return made


def _computed(
    compute: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]],
    most: Callable[[float, float], float],
) -> _Operator:
    def made(operands: list[arrow.Array]) -> arrow.Array:
        left, right = map(numeric, operands)
        _require(most(_largest(left), _largest(right)) < _FITS)
        return arrow.numbers(compute(left, right), both(*operands))

    return made


def _quotient(operands: list[arrow.Array]) -> arrow.Array:
    """Division of integers, towards zero; by zero is for SQL to refuse."""
    left, right = map(numeric, operands)
    valid = both(*operands)
    _require(not bool(((right == 0) if valid is None else (right == 0) & valid).any()))
    found = np.abs(left) // np.maximum(np.abs(right), 1)
    _require(_largest(left) < _FITS)
    return arrow.numbers(np.where((left < 0) != (right < 0), -found, found), valid)


def _ratio(operands: list[arrow.Array]) -> arrow.Array:
    """Division of numbers one of which is floating-point, by others than zero."""
    left, right = map(_real, operands)
    _require(bool(right.all()))
    return arrow.numbers(left / right, both(*operands))


def _real(array: arrow.Array) -> NDArray[np.float64]:
    return values(array) if array.type == arrow.FLOAT64 else numeric(array).astype(np.float64)


def _as_real(operands: list[arrow.Array]) -> arrow.Array:
    return arrow.numbers(_real(operands[0]), operands[0].valid)


def _largest(data: NDArray[np.int64]) -> float:
    return float(max(abs(float(data.max())), abs(float(data.min())))) if len(data) else 0.0


def _all(operands: list[arrow.Array]) -> arrow.Array:
    """AND: false where one is, true where all are, else null."""
    holds = [_true(operand) for operand in operands]
    if not any(operand.null_count for operand in operands):
        return arrow.numbers(np.logical_and.reduce(holds))
    false = np.logical_or.reduce([~values(operand) & operand.is_valid() for operand in operands])
    true = np.logical_and.reduce(holds)
    return arrow.numbers(true, true | false)


def _any(operands: list[arrow.Array]) -> arrow.Array:
    return _not([_all([_not([operand]) for operand in operands])])


def _not(operands: list[arrow.Array]) -> arrow.Array:
    (operand,) = operands
    _require(operand.type == arrow.BOOL)
    return arrow.numbers(~values(operand), operand.valid)


def _is_null(operands: list[arrow.Array]) -> arrow.Array:
    return arrow.numbers(~operands[0].is_valid())


def _first_there(operands: list[arrow.Array]) -> arrow.Array:
    return reduce(filled, operands)


def _case(operands: list[arrow.Array]) -> arrow.Array:
    *branches, otherwise = operands
    results = [*branches[1::2], otherwise]
    if all(arrow.is_string(result.type) for result in results):
        return _case_of_texts([_true(condition) for condition in branches[::2]], results)
    kinds = {"b" if result.type == arrow.BOOL else "l" for result in results}
    _require(len(kinds) == 1)
    data = [values(result) if kinds == {"b"} else numeric(result) for result in results]
    conditions = [_true(condition) for condition in branches[::2]]
    found = arrow.numbers(np.select(conditions, data[:-1], data[-1]))
    if any(result.null_count for result in results):
        valid = [result.is_valid() for result in results]
        return arrow.numbers(values(found), np.select(conditions, valid[:-1], valid[-1]))
    return found


def _case_of_texts(conditions: list[NDArray[np.bool_]], results: list[arrow.Array]) -> arrow.Array:
    _require(len({result.type for result in results}) == 1)
    count = len(results[0])
    which = np.select(conditions, list(range(len(conditions))), len(conditions))
    return taken(arrow.concat_arrays(results), which * count + np.arange(count))


def _part(part: Callable[[NDArray[np.datetime64]], NDArray[np.int64]]) -> _Operator:
    """A part of dates and of points in time, each at its offset: that of its day, which is looked up."""

    def made(operands: list[arrow.Array]) -> arrow.Array:
        (operand,) = operands
        days, valid = _days(operand), operand.valid
        if valid is not None:
            days = np.where(valid, days, 0)
        if not len(days):
            return arrow.numbers(days, valid)
        first, last = int(days.min()), int(days.max())
        _require(first >= _FIRST_DAY and last - first < _MOST_DAYS)
        return arrow.numbers(part(np.arange(first, last + 1).astype("M8[D]"))[days - first], valid)

    return made


def _days(array: arrow.Array) -> NDArray[np.int64]:
    """Return days since 1970; what stands in the place of nulls means nothing."""
    if arrow.is_date(array.type):
        return ordinal(array)
    if arrow.is_timestamp(array.type):
        _require(array.type.unit == "us")
        return ordinal(array) // _DAY
    _require(arrow.is_struct(array.type) and array.field("moment").type.unit == "us")
    moments, offsets = ordinal(array), numeric(array.field("offset"))
    if offsets.any():
        moments = moments + offsets * 1_000_000
    return moments // _DAY


def _year(days: NDArray[np.datetime64]) -> NDArray[np.int64]:
    return days.astype("M8[Y]").astype(np.int64) + 1970


def _month(days: NDArray[np.datetime64]) -> NDArray[np.int64]:
    return days.astype("M8[M]").astype(np.int64) % 12 + 1


def _quarter(days: NDArray[np.datetime64]) -> NDArray[np.int64]:
    return (_month(days) + 2) // 3


def _day(days: NDArray[np.datetime64]) -> NDArray[np.int64]:
    begins: NDArray[np.datetime64] = days.astype("M8[M]").astype("M8[D]")
    return days.astype(np.int64) - begins.astype(np.int64) + 1


_Operator = Callable[[list[arrow.Array]], arrow.Array]


def _map(operands: list[arrow.Array]) -> arrow.Array:
    """Return maps as structs of their values, without their keys."""
    there, *fields = operands
    some = _true(there)
    fields = [field.decoded() for field in fields]
    return arrow.struct_array(fields, [f"f{i}" for i in range(len(fields))], None if some.all() else some)


def _edge(operands: list[arrow.Array]) -> arrow.Array:
    """Return edges of their codes, starts, ends and ordinals."""
    code, start, end, ordinal = map(numeric, operands)
    parts = map(arrow.numbers, (code >> 1, start, end, ordinal))
    return arrow.struct_array(list(parts), ["label", "start", "end", "ordinal"])


_OPERATORS: Mapping[str, _Operator] = {
    "=": _compared(np.equal),
    "<>": _compared(np.not_equal),
    "<": _compared(np.less),
    "<=": _compared(np.less_equal),
    ">": _compared(np.greater),
    ">=": _compared(np.greater_equal),
    "+": _computed(np.add, lambda a, b: a + b),
    "-": _computed(np.subtract, lambda a, b: a + b),
    "*": _computed(np.multiply, lambda a, b: a * b),
    "//": _quotient,
    "/": _ratio,
    "toFloat": _as_real,
    "AND": _all,
    "OR": _any,
    "NOT": _not,
    "IS NULL": _is_null,
    "coalesce": _first_there,
    "CASE": _case,
    "map": _map,
    "edge": _edge,
    "year": _part(_year),
    "quarter": _part(_quarter),
    "month": _part(_month),
    "day": _part(_day),
}
