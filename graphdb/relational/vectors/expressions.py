"""Values of expressions for all rows of a frame.

Comparisons, conditions and arithmetic are those of SQL: null where an operand is, but for what AND and OR know without
it.  What SQL would answer in another way, or with an error, is refused, and SQL is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import (
    MIXED_NUMERIC,
    ColumnOf,
    Constant,
    LabelOf,
    OfItems,
    Operation,
    PropertyOf,
    Vector,
)
from graphdb.relational.vectors.frames import Frame, Maker, made_once
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
from graphdb.relational.vectors.typed.lists import (
    LISTS,
    Items,
    added_up,
    items_of,
    lists_of,
    quantified,
    ranges,
    split,
    written,
)
from graphdb.relational.vectors.typed.mixed import parts_of_property, reals_of_property
from graphdb.relational.vectors.typed.structs import edges, edges_of_both, field_of, names_of_bits, paths, struct_of
from graphdb.relational.vectors.typed.temporal import TEMPORAL, dates, instants, is_instant
from graphdb.relational.vectors.typed.texts import TEXTS, joined, of_texts, same_texts
from graphdb.relational.vectors.typed.unions import (
    Part,
    as_floats,
    in_union,
    parts_of_case,
    parts_of_union,
    parts_there,
)
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import filled, number_integers, taken


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
        case Constant(datetime() as instant):
            return instants(instant, len(frame))
        case Constant(date() as day):
            return dates(day, len(frame))
        case Constant(value):
            return arrow.numbers(np.full(len(frame), value))
        case PropertyOf(vertex, label):
            found = properties.gather(label, frame.column(vertex.name))
            return found if isinstance(found, arrow.Array) else found.combine_chunks()
        case Operation(operator, (lists,), constants) if operator in LISTS:
            return LISTS[operator](evaluated(lists, frame, properties), *constants)
        case Operation("toFloat", (PropertyOf() as mixed,)) if (
            reals := reals_of_property(mixed, frame, properties)
        ) is not None:
            return reals
        case Operation("field", (structs,), (int(at),)):
            return field_of(evaluated(structs, frame, properties), at)
        case LabelOf() | Operation("CASE") if (coded := texts_by_numbers(vector, frame, properties)) is not None:
            numbers, texts = coded
            return taken(texts, numbers)
        case Operation("split", (text,), (str(separator),)):
            return split(evaluated(text, frame, properties).decoded(), separator)
        case Operation(operator, (text,), constants) if operator in TEXTS:
            return of_texts(operator, evaluated(text, frame, properties).decoded(), constants)
        case OfItems():
            return _of_items(vector, frame, properties)
        case Operation("range", operands, (int(step),)):
            return ranges([evaluated(each, frame, properties) for each in operands], step)
        case Operation("||", operands):
            return joined([_text(each, frame, properties) for each in operands], len(frame))
        case Operation(operator) if operator in MIXED_NUMERIC:
            parts = numbers_in_parts(vector, frame, properties)
            assert parts is not None
            return in_union(parts, properties.unions())
        case Operation("+" | "-" | "*" as operator, operands):
            compute, most = _ARITHMETIC[operator]
            return _computed(compute, most, [_operand(each, frame, properties) for each in operands], operands)
        case Operation(operator, operands):
            operand = _operand if operator in _OF_OPERANDS else evaluated
            return _OPERATORS[operator]([operand(each, frame, properties) for each in operands])
        case LabelOf():
            raise AssertionError("its texts have numbers")


def _of_items(vector: OfItems, frame: Frame, properties: Properties) -> arrow.Array:
    """Return what is made of the items of lists, which are rows: of all lists at once."""
    lists = evaluated(vector.lists, frame, properties)
    items = items_of(lists)
    inner = Frame(len(items.rows), lambda name: _maker_of_items(vector.name, items, name, frame))
    if vector.what == "sum":
        assert vector.start is not None
        assert vector.result is not None
        start = evaluated(vector.start, frame, properties)
        return added_up(start, evaluated(vector.result, inner, properties), items)
    holds = None if vector.where is None else evaluated(vector.where, inner, properties)
    if vector.what != "list":
        assert holds is not None
        return quantified(vector.what, holds, items, len(lists))
    rows = items.rows
    if holds is not None:
        chosen = np.flatnonzero(truth(holds))
        inner, rows = inner.at(chosen), rows[chosen]
    made = evaluated(ColumnOf(vector.name) if vector.result is None else vector.result, inner, properties)
    return lists_of(rows, made, len(lists), items.valid)


def _maker_of_items(own: str, items: Items, name: str, frame: Frame) -> Maker:
    if name == own:
        return made_once(lambda: items.values)
    return lambda places: frame.some(name, items.rows if places is None else items.rows[places])


def numbers_in_parts(vector: Vector, frame: Frame, properties: Properties) -> list[Part] | None:
    """Return the numbers of an expression that may be integers and floating-point numbers, in parts of one type each;
    None for other expressions.

    Raises
    ------
    NotVectorized
        SQL has to compute them.
    """
    match vector:
        case PropertyOf():
            return parts_of_property(vector, frame, properties)
        case Operation("CASE of numbers", operands):
            return parts_of_case([_operand(each, frame, properties) for each in operands])
        case Operation("coalesce of numbers", operands):
            return parts_there([part for each in operands for part in _parts(each, frame, properties)])
        case Operation(operator, (left, right)) if operator in MIXED_NUMERIC:
            compute, most = _ARITHMETIC[operator[0]]
            return [
                (_computed(compute, most, [one, other], (left, right)), _both_chosen(mine, theirs))
                for one, mine in _parts(left, frame, properties)
                for other, theirs in _parts(right, frame, properties)
            ]
        case Operation("items", items):
            return [part for item in items for part in _parts(item, frame, properties)]
    return None


def _parts(vector: Vector, frame: Frame, properties: Properties) -> list[Part]:
    """Return the numbers of an expression in parts of one type each, of which there may be one."""
    parts = numbers_in_parts(vector, frame, properties)
    if parts is not None:
        return parts
    array = _operand(vector, frame, properties)
    return parts_of_union(array) if arrow.is_union(array.type) else [(array, None)]


def _both_chosen(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return which rows two parts both have; None for all."""
    return other if one is None else one if other is None else one & other


def _operand(vector: Vector, frame: Frame, properties: Properties) -> arrow.Array:
    """Return the values of an expression for an operator that makes others of them; one number for all rows once."""
    if isinstance(vector, Constant) and isinstance(vector.value, int | float):
        return arrow.numbers(np.broadcast_to(np.array(vector.value), len(frame)))
    return evaluated(vector, frame, properties)


def _text(vector: Vector, frame: Frame, properties: Properties) -> arrow.Array:
    """Return texts that others are made of; one for all rows once."""
    if isinstance(vector, Constant) and isinstance(vector.value, str):
        return arrow.strings([vector.value])
    return evaluated(vector, frame, properties)


def _most(vector: Vector, array: arrow.Array) -> float:
    """Return what no integer of an expression exceeds in size, of which its values are given."""
    found = _known_most(vector)
    return largest(numeric(array)) if found is None else found


def _known_most(vector: Vector) -> float | None:
    """Return the same as far as it follows from the expression alone."""
    match vector:
        case Constant(bool()):
            return None
        case Constant(int(value)):
            return float(abs(value))
        case Operation("CASE", operands):
            each = [_known_most(result) for result in _results(operands)]
        case Operation("+" | "-" | "*" as operator, operands):
            each = [_known_most(operand) for operand in operands]
            known = [one for one in each if one is not None]
            return _ARITHMETIC[operator][1](*known) if len(known) == len(each) else None
        case _:
            return None
    known = [one for one in each if one is not None]
    return max(known) if len(known) == len(each) else None


def texts_by_numbers(
    vector: Vector, frame: Frame, properties: Properties
) -> tuple[NDArray[np.int64], arrow.Array] | None:
    """Return the few texts that an expression may be, each once, and which of them it is for each row; None for others.

    int64 [rows], -1 for null.
    """
    match vector:
        case LabelOf(code, names):
            return _labels(frame.column(code.name), names)
        case Operation("CASE", operands) if has_few_texts(vector):
            written = [str(each.value) for each in _results(operands) if isinstance(each, Constant)]
            holds = [truth(evaluated(condition, frame, properties)) for condition in operands[:-1:2]]
            texts, number = _each_once(written)
            which = np.select(holds, [np.int64(i) for i in range(len(holds))], np.int64(len(holds)))
            return number[which], texts
    return None


def has_few_texts(vector: Vector) -> bool:
    """Whether an expression is one of some texts that it names."""
    if not isinstance(vector, Operation) or vector.operator != "CASE":
        return False
    return all(isinstance(each, Constant) and isinstance(each.value, str) for each in _results(vector.operands))


def _results(operands: tuple[Vector, ...]) -> list[Vector]:
    return [*operands[1::2], operands[-1]]


def _labels(codes: arrow.Array, names: Mapping[int, str]) -> tuple[NDArray[np.int64], arrow.Array]:
    """Return the names of the labels of edges, and which of them each has."""
    there = codes.is_valid() if codes.null_count else slice(None)
    some = numeric(codes)[there] >> 1
    once = is_repeated(some) and len(some) > 1
    different, which = number_integers(some[:1] if once else some)
    texts, number = _each_once([names[label] for label in different.tolist()])
    numbers = np.full(len(codes), -1)
    numbers[there] = number[which]
    return numbers, texts


def _each_once(texts: Sequence[str]) -> tuple[arrow.Array, NDArray[np.int64]]:
    """Return different texts, and which of them each is."""
    different = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return arrow.strings(different), np.array([different[text] for text in texts], np.int64)


def fulfilled(conditions: tuple[Vector, ...], frame: Frame, properties: Properties) -> Frame:
    """Return the rows for which all conditions hold."""
    for condition in conditions:
        holds = evaluated(condition, frame, properties)
        require(holds.type == arrow.BOOL)
        true = truth(holds)
        if not true.all():  # else there is nothing to take
            frame = frame.at(np.flatnonzero(true))
    return frame


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


def _computed(
    compute: np.ufunc, most: Callable[[float, float], float], operands: list[arrow.Array], of: tuple[Vector, ...]
) -> arrow.Array:
    """Return sums, differences or products; ``of`` are the expressions whose values the operands are."""
    if any(operand.type == arrow.FLOAT64 for operand in operands):
        with np.errstate(over="ignore", invalid="ignore"):
            found = compute(*map(_real, operands))
        require(bool(np.isfinite(found).all()))
        return arrow.numbers(found, both(*operands))
    require(most(*map(_most, of, operands)) < FITS)
    return arrow.numbers(compute(*map(numeric, operands)), both(*operands))


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
    left, right = map(_real, operands)
    require(bool(right.all()))
    return arrow.numbers(left / right, both(*operands))


def _finite(array: arrow.Array) -> NDArray[np.float64]:
    """Return numbers that are compared as floating-point ones: SQL has those that differ from these."""
    found = _real(array)
    some = found if array.valid is None else found[array.valid]
    require(bool(np.isfinite(some).all()) and (array.type == arrow.FLOAT64 or largest(numeric(array)) <= _WHOLE))
    return found


def _real(array: arrow.Array) -> NDArray[np.float64]:
    return values(array) if array.type == arrow.FLOAT64 else numeric(array).astype(np.float64)


def _as_real(operands: list[arrow.Array]) -> arrow.Array:
    (operand,) = operands
    if arrow.is_union(operand.type):
        data, there = as_floats(operand)
        return arrow.numbers(data, None if there.all() else there)
    return arrow.numbers(_real(operand), operand.valid)


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
    found = _real(operand) if operand.valid is None else np.where(operand.valid, _real(operand), 0.0)
    require(bool((found >= 0).all()))
    return arrow.numbers(np.sqrt(found), operand.valid)


def _rounded(round: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Operator:
    """A function of one number, as a floating-point one."""

    def made(operands: list[arrow.Array]) -> arrow.Array:
        return arrow.numbers(round(_real(operands[0])), operands[0].valid)

    return made


def _whole(operands: list[arrow.Array]) -> arrow.Array:
    """Floating-point numbers without what is behind the point, as integers."""
    found, valid = _real(operands[0]), operands[0].valid
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


_ARITHMETIC: Mapping[str, tuple[np.ufunc, Callable[[float, float], float]]] = {
    "+": (np.add, lambda a, b: a + b),
    "-": (np.subtract, lambda a, b: a + b),
    "*": (np.multiply, lambda a, b: a * b),
}
"""What integers are computed by, and what no result exceeds in size, of what its operands do not."""

_OF_OPERANDS = frozenset(("=", "<>", "<", "<=", ">", ">=", "//", "%", "/", "CASE"))
"""Operators that none of their operands is handed on by."""

_OPERATORS: Mapping[str, Operator] = {
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
