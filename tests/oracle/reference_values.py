"""The oracle of expressions: three-valued logic, operators, functions and aggregates over plain Python values.

A vertex is a :class:`Vertex`, an edge one of :class:`tests.oracle.walks.Edge`, a path a ``Walk``; null is None.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.oracle.walks import Edge, Walk


class Unclear(Exception):
    """The language leaves open what this is, or this oracle does not know it."""


class Vertex(int):
    """A vertex by its number, which is no integer of the language."""

    def __repr__(self) -> str:
        return f"(v{int(self)})"


def identity(value: Any) -> Any:
    """What is equal for exactly the values that DISTINCT, grouping and UNION take for one; null is one with itself."""
    if isinstance(value, (list, tuple)):
        return ("list", *map(identity, value))
    if isinstance(value, dict):
        return ("map", *((key, identity(item)) for key, item in sorted(value.items())))
    if _is_number(value):
        return ("number", value)
    return (type(value).__name__, value)


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return the values, each once."""
    return list({identity(value): value for value in values}.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, (bool, Vertex))


# --- logic ----------------------------------------------------------------------------------------------------------


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def conjunction(values: Iterable[bool | None]) -> bool | None:
    found = list(values)
    return False if False in found else None if None in found else True


def disjunction(values: Iterable[bool | None]) -> bool | None:
    return negated(conjunction(map(negated, values)))


def exclusive(values: Iterable[bool | None]) -> bool | None:
    found = list(values)
    return None if None in found else sum(map(bool, found)) % 2 == 1


# --- comparisons ----------------------------------------------------------------------------------------------------


def equal(left: Any, right: Any) -> bool | None:
    """``left = right``: null where a null decides it, of lists item by item."""
    if left is None or right is None:
        return None
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return False
        return conjunction(map(equal, left, right))
    return bool(identity(left) == identity(right))


def _sort_key(left: Any, right: Any) -> tuple[Any, Any] | None:
    """Return what two values are ordered by; None where nothing orders them."""
    if _is_number(left) and _is_number(right):
        return left, right
    for kind in (bool, dt.date):
        if isinstance(left, kind) and isinstance(right, kind):
            return left, right
    if isinstance(left, str) and isinstance(right, str):
        return left.encode(), right.encode()
    return None


def compare(operator: str, left: Any, right: Any) -> bool | None:
    """Return ``left operator right``; null where the types have no order between them."""
    if operator == "=":
        return equal(left, right)
    if operator == "<>":
        return negated(equal(left, right))
    keys = None if left is None or right is None else _sort_key(left, right)
    if keys is None:
        return None
    a, b = keys
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator])


def contained(item: Any, collection: Any) -> bool | None:
    return None if collection is None else disjunction(equal(item, other) for other in collection)


def text_predicate(operator: str, left: Any, right: Any) -> bool | None:
    if not (isinstance(left, str) and isinstance(right, str)):
        return None
    match operator:
        case "STARTS WITH":
            return left.startswith(right)
        case "ENDS WITH":
            return left.endswith(right)
        case "CONTAINS":
            return right in left
    raise Unclear(operator)


# --- operators and functions ----------------------------------------------------------------------------------------


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if operator == "+" and isinstance(left, list):
        return left + (right if isinstance(right, list) else [right])
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, dt.date) and isinstance(right, dt.timedelta):
        return left + right if operator == "+" else left - right
    if not (_is_number(left) and _is_number(right)):
        raise Unclear(f"{left!r} {operator} {right!r}")
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    raise Unclear(operator)


def item(base: Sequence[Any] | None, index: int | None) -> Any:
    """``base[index]``: from the end where the index is negative, null beyond the ends."""
    if base is None or index is None or not -len(base) <= index < len(base):
        return None
    return base[index]


def piece(base: list[Any] | None, bounds: Sequence[int | None]) -> Any:
    """``base[start..end]``; a bound that is null makes null of it."""
    return None if base is None or None in bounds else base[slice(*bounds)]


def _substring(text: str, start: int, length: int) -> str:
    return text[start : start + length]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "size": len,
    "head": lambda values: item(values, 0),
    "last": lambda values: item(values, -1),
    "tail": lambda values: values[1:],
    "reverse": lambda value: value[::-1],
    "range": lambda low, high: list(range(low, high + 1)),
    "toupper": str.upper,
    "trim": str.strip,
    "substring": _substring,
    "tofloat": float,
    "abs": abs,
    "length": lambda walk: len(walk.edges),
    "nodes": lambda walk: [Vertex(vertex) for vertex in walk.vertices],
    "relationships": lambda walk: list(walk.edges),
    "type": lambda edge: edge.label,
    "startnode": lambda edge: Vertex(edge.start),
    "endnode": lambda edge: Vertex(edge.end),
    "date": dt.date.fromisoformat,
    "duration": lambda parts: dt.timedelta(**parts),
}
"""Functions that are null where an argument is."""


def function(name: str, arguments: Sequence[Any]) -> Any:
    name = name.lower()
    if name == "coalesce":
        return next((value for value in arguments if value is not None), None)
    if name not in FUNCTIONS:
        raise Unclear(name)
    return None if any(value is None for value in arguments) else FUNCTIONS[name](*arguments)


def quantified(quantifier: str, found: list[bool | None]) -> bool | None:
    """``any``, ``all``, ``none`` or ``single`` of what a condition is for each item."""
    match quantifier:
        case "any":
            return disjunction(found)
        case "all":
            return conjunction(found)
        case "none":
            return negated(disjunction(found))
    if found.count(True) > 1:
        return False
    return None if None in found else found.count(True) == 1


def aggregate(name: str, values: list[Any]) -> Any:
    """An aggregate of the values that are not null."""
    match name.lower():
        case "count":
            return len(values)
        case "collect":
            return values
        case "sum":
            return sum(values)
        case "avg":
            return sum(values) / len(values) if values else None
        case "min" | "max" as which:
            if any(_sort_key(values[0], value) is None for value in values):
                raise Unclear("the least of several types")
            return ({"min": min, "max": max}[which](values)) if values else None
    raise Unclear(name)


AGGREGATES = ("count", "collect", "sum", "avg", "min", "max")


def element(value: Any) -> bool:
    return isinstance(value, (Vertex, Edge, Walk))
