"""Functions of one number or one time as operations on columns, and dates that a text has."""

from __future__ import annotations

import re
from datetime import date

from graphdb.common.values.types import Base
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.columns.numbers import number, real
from graphdb.relational.projection.columns.values import PARTS, PARTS_OF_TIMES, Typed, require
from graphdb.relational.vectors.algebra import Constant, Operation
from graphdb.relational.vectors.typed.temporal import TRUNCATED, UNITS

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)

_DIGITS = 15
"""Decimal places up to which floating-point numbers are rounded."""

FUNCTIONS = frozenset({"tofloat", "abs", "round", "floor", "ceil", "sqrt", "date"})
"""Those that :func:`of_one` knows, in lower case."""


def of_one(name: str, value: Typed) -> Typed:
    """Return a function of one value."""
    vector, base = value
    match name:
        case "tofloat":
            return real(number(value)), Base.FLOAT
        case "abs":
            require(base in (Base.INTEGER, Base.FLOAT))
            return Operation("abs", (vector,)), base
        case "date":
            require(base in (Base.DATE, Base.DATETIME, Base.ZONED, Base.MOMENT))
            return Operation("date", (vector,)), Base.DATE
    return Operation(name, (number(value)[0],)), Base.FLOAT


def rounded(value: Typed, digits: int) -> Typed:
    """Return a number rounded to so many decimal places."""
    require(0 <= digits <= _DIGITS)
    shift = Constant(10.0**digits)
    return Operation("/", (Operation("round", (Operation("*", (real(number(value)), shift)),)), shift)), Base.FLOAT


def date_in(node: ast.Expression) -> Constant | None:
    """Return the date of a call that has it as a text; None for others."""
    match node:
        case ast.FunctionCall(name, (ast.Literal(str(text)),)) if name.lower() == "date" and _DATE.fullmatch(text):
            try:
                return Constant(date.fromisoformat(text))
            except ValueError:
                return None
    return None


def squared(base: Typed, exponent: ast.Expression) -> Typed:
    """Return the square of a number."""
    require(isinstance(exponent, ast.Literal) and type(exponent.value) in (int, float) and exponent.value == 2)
    vector = real(number(base))
    return Operation("*", (vector, vector)), Base.FLOAT


def truncated(name: str, unit: str, value: Typed) -> Typed:
    """Return a time truncated to a unit by a function such as ``date.truncate``, named in lower case."""
    vector, base = value
    require(base in (Base.DATE, Base.DATETIME, Base.MOMENT))
    if name == "date.truncate":
        require(unit in TRUNCATED)
        return Operation(f"begin of {unit}", (vector,)), Base.DATE
    require(base in (Base.DATETIME, Base.MOMENT) and unit in (*TRUNCATED, *UNITS))
    found = Operation(f"time at begin of {unit}", (vector,))
    if name == "localdatetime.truncate":
        require(base is Base.DATETIME)
        return found, base
    require(name == "datetime.truncate")
    return (found, base) if base is Base.MOMENT else (Operation("in UTC", (found,)), Base.ZONED)


def part_of(value: Typed, part: str) -> Typed:
    """Return a part of a date or of a point in time."""
    vector, base = value
    of_times = part in PARTS_OF_TIMES and base in (Base.DATETIME, Base.MOMENT)
    require(of_times or (part in PARTS and base in (Base.DATE, Base.DATETIME, Base.MOMENT)))
    return Operation(part, (vector,)), Base.INTEGER
