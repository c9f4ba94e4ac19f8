"""What expressions are as operations on columns: functions of one text or list that are told what is written out or
given (:mod:`graphdb.relational.vectors.typed.texts`), durations, and parts of what lies between two times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from graphdb.common.values.types import Base
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.columns.numbers import arithmetic
from graphdb.relational.projection.columns.values import Typed, require, times
from graphdb.relational.vectors.algebra import Constant, Operation, Vector

_GROWS = 8
"""How many times as long ``replace`` may make a text."""


class OfOne(NamedTuple):
    """A function of an expression."""

    operator: str
    operand: ast.Expression
    constants: tuple[int | str, ...]
    base: Base
    """The type of its values."""


def text_operation(node: ast.Expression, arguments: Mapping[str, object]) -> OfOne | None:
    """Return what an expression does with a text, by the values of parameters; None for others."""
    match node:
        case ast.Subscript(ast.FunctionCall(name, (text, separator)), index) if name.lower() == "split":
            return _with(Base.STRING, "part", text, (separator, index), (str, int), arguments)
        case ast.FunctionCall(name, (ast.FunctionCall(inner, (text, separator)),)) if inner.lower() == "split":
            number = {"head": 0, "last": -1}.get(name.lower())
            found = _with(Base.STRING, "part", text, (separator,), (str,), arguments)
            return None if found is None or number is None else found._replace(constants=(*found.constants, number))
        case ast.FunctionCall(name, (text, *others)):
            return _function(name.lower(), text, others, arguments)
    return None


def list_operation(node: ast.Expression, arguments: Mapping[str, object]) -> OfOne | None:
    """Return what an expression does with a list, if its operand is one; None for others.  The base is not known."""
    match node:
        case ast.Subscript(of, index):
            return _with(Base.ANY, "item", of, (index,), (int,), arguments)
        case ast.FunctionCall(name, (of,)) if name.lower() in ("head", "last", "size"):
            numbers = {"head": (0,), "last": (-1,)}.get(name.lower())
            return OfOne("size of list", of, (), Base.ANY) if numbers is None else OfOne("item", of, numbers, Base.ANY)
        case ast.Slice(of, start, end) if end is not None:
            begin = ast.Literal(0) if start is None else start
            return _with(Base.ANY, "slice", of, (begin, end), (int, int), arguments)
    return None


def _function(
    name: str, text: ast.Expression, others: Sequence[ast.Expression], arguments: Mapping[str, object]
) -> OfOne | None:
    match name, len(others):
        case "tointeger", 0:
            return OfOne("toInteger", text, (), Base.INTEGER)
        case (("size" | "charlength" | "char_length"), 0):
            return OfOne("size", text, (), Base.INTEGER)
        case (("toupper" | "upper"), 0):
            return OfOne("toUpper", text, (), Base.STRING)
        case (("tolower" | "lower"), 0):
            return OfOne("toLower", text, (), Base.STRING)
        case "reverse", 0:
            return OfOne("reverse", text, (), Base.STRING)
        case (("left" | "right" | "substring"), 1):
            return _with(Base.STRING, name, text, others, (int,), arguments)
        case (("trim" | "btrim" | "ltrim" | "rtrim"), 0):
            return OfOne("trim" if name == "btrim" else name, text, (), Base.STRING)
        case "substring", 2:
            return _with(Base.STRING, name, text, others, (int, int), arguments)
        case "replace", 2:
            found = _with(Base.STRING, name, text, others, (str, str), arguments)
            if found is None:
                return None
            old, new = map(str, found.constants)
            return found if old and len(new) <= _GROWS * len(old) else None
    return None


def _with(
    base: Base,
    operator: str,
    text: ast.Expression,
    others: Sequence[ast.Expression],
    types: Sequence[type],
    arguments: Mapping[str, object],
) -> OfOne | None:
    """Return an operation that is told values of some types; None where they are others, or negative where they count
    characters.
    """
    constants = []
    for each, wanted in zip(others, types, strict=True):
        value = constant_of(each, arguments)
        if type(value) is not wanted:
            return None
        if isinstance(value, int) and ((value < 0 and operator not in ("part", "item")) or abs(value) >= 1 << 31):
            return None
        assert isinstance(value, int | str)
        constants.append(value)
    return OfOne(operator, text, tuple(constants), base)


def constant_of(node: ast.Expression, arguments: Mapping[str, object]) -> object:
    """Return the value of what is written out, or given; None for anything else."""
    match node:
        case ast.Literal(value):
            return value
        case ast.Parameter(name):
            return arguments[name]
        case ast.Unary("-", ast.Literal(int(value))):
            return -value
    return None


def is_null(node: ast.Expression) -> bool:
    """Whether an expression is null, written out."""
    return isinstance(node, ast.Literal) and node.value is None


def text_of(value: Typed) -> Vector:
    """Return the text of an integer or a date; a text itself."""
    vector, base = value
    require(base in (Base.INTEGER, Base.DATE, Base.STRING))
    return vector if base is Base.STRING else Operation("toString", (vector,))


_PREDICATES = {"STARTS WITH": "starts", "ENDS WITH": "ends", "CONTAINS": "contains"}


def tested(operator: str, text: Typed, part: object) -> Vector:
    """Return whether texts begin or end with, or contain, one that is known."""
    require(text[1] is Base.STRING and isinstance(part, str) and bool(part))
    assert isinstance(part, str)
    return Operation(_PREDICATES[operator], (text[0],), (part,))


def joined(one: Typed, other: Typed) -> Typed:
    """Return two texts, one behind the other."""
    require(one[1] is other[1] is Base.STRING)
    parts: list[Vector] = []
    for vector, _ in (one, other):
        parts += vector.operands if isinstance(vector, Operation) and vector.operator == "||" else (vector,)
    return Operation("||", tuple(parts)), Base.STRING


def combined(operator: str, one: Typed, other: Typed) -> Typed:
    """Return ``+ - * /`` of two numbers, texts or text and integer one behind the other, or times that are moved."""
    bases = {one[1], other[1]}
    if operator == "+" and Base.STRING in bases and bases <= {Base.STRING, Base.INTEGER}:
        return joined((text_of(one), Base.STRING), (text_of(other), Base.STRING))
    match other:
        case Operation("duration", (months, days, seconds, Constant(0))), Base.DURATION if operator in "+-":
            require(one[1] is Base.DATETIME or (one[1] is Base.DATE and seconds == Constant(0)))
            parts: tuple[Vector, ...] = (months, days, seconds)
            if operator == "-":
                parts = tuple(Operation("-", (Constant(0), part)) for part in parts)
            return Operation("later", (one[0], *parts)), one[1]
    return arithmetic(operator, one, other)


# --- durations

UNITS = (
    {"years": 12, "quarters": 3, "months": 1},
    {"weeks": 7, "days": 1},
    {"hours": 3600, "minutes": 60, "seconds": 1},
)
"""Parts of a duration that are whole months, days and seconds, with how many these are."""

BETWEEN: Mapping[str, Mapping[str, Sequence[tuple[str, int]]]] = {
    "months": {
        "years": [("//", 12)],
        "quarters": [("//", 3)],
        "months": [],
        "monthsOfYear": [("%", 12)],
        "quartersOfYear": [("%", 12), ("//", 3)],
        "monthsOfQuarter": [("%", 3)],
    },
    "days": {"weeks": [("//", 7)], "days": [], "daysOfWeek": [("%", 7)]},
    "seconds": {
        "hours": [("//", 3600)],
        "minutes": [("//", 60)],
        "seconds": [],
        "minutesOfHour": [("%", 3600), ("//", 60)],
        "secondsOfMinute": [("%", 60)],
    },
}
"""Parts of what lies between two times: operators that make them of all months, days or seconds."""


def duration(parts: Mapping[str, Vector]) -> Vector:
    """Return a duration of whole parts, none of which is smaller than a second."""
    require(bool(parts) and parts.keys() <= set().union(*UNITS))
    sums: list[Vector] = []
    for units in UNITS:
        some = [times(parts[unit], per) for unit, per in units.items() if unit in parts]
        sums.append(reduce(lambda left, right: Operation("+", (left, right)), some) if some else Constant(0))
    return Operation("duration", (*sums, Constant(0)))


def part_between(call: ast.FunctionCall, part: str, value: Callable[[ast.Expression], Typed]) -> Vector:
    """Return a part of what lies between two dates or local times: of the months, all days, or all seconds."""
    name, unit = call.name.lower(), next((unit for unit, parts in BETWEEN.items() if part in parts), None)
    require(len(call.arguments) == 2 and unit is not None)
    require(name == f"duration.in{unit}" or (name == "duration.between" and unit == "months"))
    operands = [value(argument) for argument in call.arguments]
    require(all(base in (Base.DATE, Base.DATETIME) for _, base in operands))
    found: Vector = Operation(f"{unit} between", tuple(vector for vector, _ in operands))
    for operator, by in BETWEEN[unit or ""][part]:
        found = Operation(operator, (found, Constant(by)))
    return found
