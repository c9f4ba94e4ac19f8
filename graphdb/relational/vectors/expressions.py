"""Values of expressions for all rows of a frame.

Comparisons, conditions and arithmetic (:mod:`.operators`) are those of SQL: null where an operand is, but for what AND
and OR know without it.  What SQL would answer in another way, or with an error, is refused, and SQL is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime

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
from graphdb.relational.vectors.numbers import FITS, both, is_repeated, largest, numeric, require, truth
from graphdb.relational.vectors.operators import OF_OPERANDS, OPERATORS, real
from graphdb.relational.vectors.typed.lists import LISTS, Items, added_up, items_of, lists_of, quantified, ranges, split
from graphdb.relational.vectors.typed.mixed import parts_of_property, reals_of_property
from graphdb.relational.vectors.typed.structs import field_of
from graphdb.relational.vectors.typed.temporal import dates, instants
from graphdb.relational.vectors.typed.texts import TEXTS, joined, of_texts
from graphdb.relational.vectors.typed.unions import Part, in_union, parts_of_case, parts_of_union, parts_there
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.texts import number_integers, taken


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
            operand = _operand if operator in OF_OPERANDS else evaluated
            return OPERATORS[operator]([operand(each, frame, properties) for each in operands])
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


def _computed(
    compute: np.ufunc, most: Callable[[float, float], float], operands: list[arrow.Array], of: tuple[Vector, ...]
) -> arrow.Array:
    """Return sums, differences or products; ``of`` are the expressions whose values the operands are."""
    if any(operand.type == arrow.FLOAT64 for operand in operands):
        with np.errstate(over="ignore", invalid="ignore"):
            found = compute(*map(real, operands))
        require(bool(np.isfinite(found).all()))
        return arrow.numbers(found, both(*operands))
    require(most(*map(_most, of, operands)) < FITS)
    return arrow.numbers(compute(*map(numeric, operands)), both(*operands))


_ARITHMETIC: Mapping[str, tuple[np.ufunc, Callable[[float, float], float]]] = {
    "+": (np.add, lambda a, b: a + b),
    "-": (np.subtract, lambda a, b: a + b),
    "*": (np.multiply, lambda a, b: a * b),
}
"""What integers are computed by, and what no result exceeds in size, of what its operands do not."""
