"""Operations on typed values of which some are integers and others floating-point numbers.

A value of both (:attr:`~graphdb.common.values.types.Base.VALUE` here) is a union where it is handed on, and
floating-point numbers where it is compared, ordered, or computed with.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdb.common.values.types import Base
from graphdb.relational.projection.columns.values import COMPARED, INSTANTS, PLAIN, Typed, require, same_texts
from graphdb.relational.vectors.algebra import Constant, Operation, Vector

NUMBERS = {Base.INTEGER, Base.FLOAT, Base.VALUE}

_CHOSEN = {Base.INTEGER, Base.FLOAT, Base.BOOLEAN, Base.STRING, Base.DATE, Base.DATETIME}
"""Types of the results of CASE."""


def real(value: Typed) -> Vector:
    """Return a number as a floating-point one."""
    vector, base = value
    match vector:
        case Constant(int(number)) if base is Base.INTEGER:
            return Constant(float(number))
        case Operation("CASE of numbers", (*branches, otherwise)):
            made = [each if i % 2 == 0 else _real(each) for i, each in enumerate(branches)]
            return Operation("CASE", (*made, _real(otherwise)))
        case Operation("coalesce of numbers", operands):
            return Operation("coalesce", tuple(map(_real, operands)))
    return vector if base is Base.FLOAT else Operation("toFloat", (vector,))


def _real(vector: Vector) -> Vector:
    integral = isinstance(vector, Constant) and isinstance(vector.value, int)
    return real((vector, Base.INTEGER if integral else Base.VALUE))


def number(value: Typed) -> Typed:
    """Return what is a number, one of several types as a floating-point one."""
    require(value[1] in NUMBERS)
    return (real(value), Base.FLOAT) if value[1] is Base.VALUE else value


def chosen(branches: Sequence[tuple[Vector, Typed | None]], otherwise: Typed | None) -> Typed:
    """Return the first result whose condition holds, or else another; results that are None are null."""
    results = [*(result for _, result in branches), otherwise]
    there = [result for result in results if result is not None]
    require(bool(there))
    base = one_type(there)
    require(base in _CHOSEN or base is Base.VALUE)
    absent = Operation("absent", (there[0][0],))
    *vectors, rest = (absent if result is None else result[0] for result in results)
    operands = tuple(
        each for (condition, _), vector in zip(branches, vectors, strict=True) for each in (condition, vector)
    )
    return Operation("CASE of numbers" if base is Base.VALUE else "CASE", (*operands, rest)), base


def first_of(values: Sequence[Typed]) -> Typed:
    """Return the first of some values that is there."""
    base = one_type(values)
    require(base in PLAIN or base is Base.VALUE)
    operator = "coalesce of numbers" if base is Base.VALUE else "coalesce"
    return Operation(operator, tuple(vector for vector, _ in values)), base


def one_type(values: Sequence[Typed]) -> Base:
    """Return the type of some values: all have it, or they are numbers of several."""
    bases = {base for _, base in values}
    require(len(bases) == 1 or bases <= NUMBERS)
    return next(iter(bases)) if len(bases) == 1 else Base.VALUE


def arithmetic(operator: str, one: Typed, other: Typed) -> Typed:
    """Return ``+ - * /`` of two numbers."""
    bases = {one[1], other[1]}
    require(bases <= NUMBERS)
    if Base.VALUE in bases and Base.FLOAT not in bases:
        require(operator != "/")
        return Operation(f"{operator} of numbers", (one[0], other[0])), Base.VALUE
    if Base.VALUE in bases:
        one, other = number(one), number(other)
    integral = bases == {Base.INTEGER}
    operator = "//" if integral and operator == "/" else operator
    return Operation(operator, (one[0], other[0])), Base.INTEGER if integral else Base.FLOAT


def comparison(operator: str, one: Typed, other: Typed) -> Vector:
    """Return whether two values compare so."""
    (left, base), (right, type) = one, other
    if base is type is Base.STRING and operator in ("=", "<>"):
        same = same_texts(left, right)
        return same if operator == "=" else Operation("NOT", (same,))
    if Base.VALUE in (base, type):
        require({base, type} <= NUMBERS)
        return Operation(operator, (number(one)[0], number(other)[0]))
    fits = (base is type and base in COMPARED) or {base, type} == INSTANTS
    fits = fits or {base, type} <= {Base.INTEGER, Base.FLOAT}
    require(fits or (base is type is Base.NODE and operator in ("=", "<>")))
    return Operation(operator, (left, right))
