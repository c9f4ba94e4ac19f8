"""Operators over columns: comparisons, division, conditions and functions of numbers, with the nulls that SQL has.

An operator takes the values of its operands for all rows and returns its own.  Where SQL would answer in another way,
or with an error, it refuses (`NotVectorized`), and SQL is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.numbers import (
    FITS,
    Operator,
    both,
    is_repeated,
    largest,
    numeric,
    ordinal,
    require,
    truncated,
    truth,
)
from graphdb.relational.vectors.typed.lists import written
from graphdb.relational.vectors.typed.structs import edges, edges_of_both, names_of_bits, paths, struct_of
from graphdb.relational.vectors.typed.temporal import TEMPORAL, is_instant
from graphdb.relational.vectors.typed.texts import same_texts
from graphdb.relational.vectors.typed.unions import as_floats
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import filled, taken

_WHOLE = float(1 << 53)
"""Integers up to here are floating-point numbers, too."""


def _compared(compare: np.ufunc) -> Operator:
    def made(operands: list[arrow.Array]) -> arrow.Array:
        left, right = operands
        if arrow.FLOAT64 in (left.type, right.type):
            return arrow.numbers(compare(*map(_finite, operands)), both(left, right))
        same = left.type == right.type or (arrow.is_integer(left.type) and arrow.is_integer(right.type))
        require(same or (is_instant(left.type) and is_instant(right.type)))
        return arrow.numbers(compare(ordinal(left), ordinal(right)), both(left, right))

    return made


def _divided(divide: Callable[[NDArray[np.int64], NDArray[np.int64] | np.int64], NDArray[np.int64]]) -> Operator:
    """Division of integers, towards zero, or what it leaves; by zero is for SQL to refuse."""

    def made(operands: list[arrow.Array]) -> arrow.Array:
        left, right = map(numeric, operands)
        valid = both(*operands)
        if len(right) and is_repeated(right):
            require(right[0] != 0 and largest(left) < FITS)
            return arrow.numbers(divide(left, right[0]), valid)
        require(not bool(((right == 0) if valid is None else (right == 0) & valid).any()))
        require(largest(left) < FITS)
        return arrow.numbers(divide(left, np.where(right == 0, 1, right)), valid)

    return made


def _ratio(operands: list[arrow.Array]) -> arrow.Array:
    """Division of numbers one of which is floating-point, by others than zero."""
    left, right = map(real, operands)
    require(bool(right.all()))
    return arrow.numbers(left / right, both(*operands))


def _finite(array: arrow.Array) -> NDArray[np.float64]:
    """Return numbers that are compared as floating-point ones: SQL has those that differ from these."""
    found = real(array)
    some = found if array.valid is None else found[array.valid]
    require(bool(np.isfinite(some).all()) and (array.type == arrow.FLOAT64 or largest(numeric(array)) <= _WHOLE))
    return found


def real(array: arrow.Array) -> NDArray[np.float64]:
    """Return numbers as floating-point ones."""
    return values(array) if array.type == arrow.FLOAT64 else numeric(array).astype(np.float64)


def _as_real(operands: list[arrow.Array]) -> arrow.Array:
    (operand,) = operands
    if arrow.is_union(operand.type):
        data, there = as_floats(operand)
        return arrow.numbers(data, None if there.all() else there)
    return arrow.numbers(real(operand), operand.valid)


def _absent(operands: list[arrow.Array]) -> arrow.Array:
    """Nulls of the type of some values."""
    (operand,) = operands
    return arrow.nulls(len(operand), operand.type)


def _absolute(operands: list[arrow.Array]) -> arrow.Array:
    (operand,) = operands
    if operand.type == arrow.FLOAT64:
        return arrow.numbers(np.abs(values(operand)), operand.valid)
    data = numeric(operand)
    require(largest(data) < FITS)  # the least integer has none
    return arrow.numbers(np.abs(data), operand.valid)


def _root(operands: list[arrow.Array]) -> arrow.Array:
    """Square roots of numbers that are not negative."""
    (operand,) = operands
    found = real(operand) if operand.valid is None else np.where(operand.valid, real(operand), 0.0)
    require(bool((found >= 0).all()))
    return arrow.numbers(np.sqrt(found), operand.valid)


def _rounded(round: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Operator:
    """A function of one number, as a floating-point one."""

    def made(operands: list[arrow.Array]) -> arrow.Array:
        return arrow.numbers(round(real(operands[0])), operands[0].valid)

    return made


def _whole(operands: list[arrow.Array]) -> arrow.Array:
    """Floating-point numbers without what is behind the point, as integers."""
    found, valid = real(operands[0]), operands[0].valid
    found = found if valid is None else np.where(valid, found, 0.0)
    require(bool((np.abs(found) < FITS).all()))
    return arrow.numbers(found.astype(np.int64), valid)


def _all(operands: list[arrow.Array]) -> arrow.Array:
    """AND: false where one is, true where all are, else null."""
    holds = [truth(operand) for operand in operands]
    if not any(operand.null_count for operand in operands):
        return arrow.numbers(np.logical_and.reduce(holds))
    false = np.logical_or.reduce([~values(operand) & operand.is_valid() for operand in operands])
    true = np.logical_and.reduce(holds)
    return arrow.numbers(true, true | false)


def _any(operands: list[arrow.Array]) -> arrow.Array:
    return _not([_all([_not([operand]) for operand in operands])])


def _not(operands: list[arrow.Array]) -> arrow.Array:
    (operand,) = operands
    require(operand.type == arrow.BOOL)
    return arrow.numbers(~values(operand), operand.valid)


def _is_null(operands: list[arrow.Array]) -> arrow.Array:
    return arrow.numbers(~operands[0].is_valid())


def _first_there(operands: list[arrow.Array]) -> arrow.Array:
    return reduce(filled, operands)


def _case(operands: list[arrow.Array]) -> arrow.Array:
    *branches, otherwise = operands
    results = [*branches[1::2], otherwise]
    if all(arrow.is_string(result.type) for result in results):
        return _case_of_texts([truth(condition) for condition in branches[::2]], results)
    types = {result.type for result in results}
    times = len(types) == 1 and all(arrow.is_date(type) or arrow.is_timestamp(type) for type in types)
    kinds = {type.format if times or type in (arrow.BOOL, arrow.FLOAT64) else "l" for type in types}
    require(len(kinds) == 1)
    data = [numeric(result) if kinds == {"l"} else values(result) for result in results]
    conditions = [truth(condition) for condition in branches[::2]]
    chosen = _chosen(conditions, data)
    there = None
    if any(result.null_count for result in results):
        valid = [result.is_valid() for result in results]
        there = np.select(conditions, valid[:-1], valid[-1])
    return arrow.Array(results[0].type, len(chosen), there, chosen) if times else arrow.numbers(chosen, there)


def _chosen(conditions: list[NDArray[np.bool_]], data: list[NDArray[Any]]) -> NDArray[Any]:
    """Return for each row the data of the first condition that it fulfils, the last of them where it fulfils none."""
    if len(conditions) > 1:
        return np.select(conditions, data[:-1], data[-1])
    one, other = data
    if one.dtype == np.int64 == other.dtype and len(one) and is_repeated(one) and is_repeated(other):
        step, least = int(one[0]) - int(other[0]), int(other[0])
        if abs(step) + abs(least) < FITS:
            found = conditions[0].astype(np.int64)
            found = found if step == 1 else found * step
            return found + least if least else found
    return np.where(conditions[0], one, other)


def _case_of_texts(conditions: list[NDArray[np.bool_]], results: list[arrow.Array]) -> arrow.Array:
    require(len({result.type for result in results}) == 1)
    count = len(results[0])
    which = np.select(conditions, list(range(len(conditions))), len(conditions))
    return taken(arrow.concat_arrays(results), which * count + np.arange(count))


OF_OPERANDS = frozenset(("=", "<>", "<", "<=", ">", ">=", "//", "%", "/", "CASE"))
"""Operators that none of their operands is handed on by."""

OPERATORS: Mapping[str, Operator] = {
    "=": _compared(np.equal),
    "<>": _compared(np.not_equal),
    "<": _compared(np.less),
    "<=": _compared(np.less_equal),
    ">": _compared(np.greater),
    ">=": _compared(np.greater_equal),
    "//": _divided(truncated),
    "%": _divided(np.fmod),
    "/": _ratio,
    "toFloat": _as_real,
    "abs": _absolute,
    "toInteger of floats": _whole,
    "round": _rounded(lambda number: np.floor(number + 0.5)),
    "floor": _rounded(np.floor),
    "sqrt": _root,
    "ceil": _rounded(np.ceil),
    "same text": same_texts,
    "AND": _all,
    "OR": _any,
    "NOT": _not,
    "IS NULL": _is_null,
    "coalesce": _first_there,
    "absent": _absent,
    "CASE": _case,
    "struct": struct_of,
    "list": written,
    "names": names_of_bits,
    "edge": edges,
    "edge of both": edges_of_both,
    "path": paths,
    **TEMPORAL,
}
"""What makes the values of an operation of those of its operands."""
