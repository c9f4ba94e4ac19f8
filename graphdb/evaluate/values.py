"""Values as the evaluator sees them: openCypher's equality, comparison, order and equivalence.

Null is None; numbers, strings, booleans, lists and maps are Python's own; vertices and edges are ids until they leave.
Equality and comparison know three answers: True, False and None (unknown).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from graphdb.common.values.entities import Edge as Edge
from graphdb.common.values.entities import Path as Path
from graphdb.common.values.entities import Vertex as Vertex
from graphdb.common.values.temporal import DateTime, Duration, Temporal


class Several(list[Any]):
    """The values of a multi-valued property: a condition holds if it holds for any of them."""


Answer = bool | None

_SIMPLE = frozenset({int, str})
"""The types that most values have, and whose order is Python's: they are looked for first."""


def is_number(value: object) -> bool:
    """Whether a value is a number, which a boolean is not."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def is_nan(value: object) -> bool:
    """Whether a value is the float that is no number."""
    return isinstance(value, float) and math.isnan(value)


def equals(left: Any, right: Any) -> Answer:
    """Return whether two values are equal; None where that is unknown."""
    if left.__class__ is right.__class__ and left.__class__ in _SIMPLE:
        return bool(left == right)
    if left is None or right is None:
        return None
    if isinstance(left, Several) or isinstance(right, Several):
        return any_of(equals, left, right)
    if is_number(left):
        return is_number(right) and _of_one_kind(left, right, operator.eq)
    kind = type(left)
    if isinstance(left, list):
        if not isinstance(right, list):
            return False
        return decided(map(equals, left, right), False) if len(left) == len(right) else False
    if kind is not type(right):
        return False
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return False
        return decided((equals(value, right[key]) for key, value in left.items()), False)
    if isinstance(left, DateTime) and isinstance(right, DateTime):
        return left.instant == right.instant
    return bool(left == right)


def _of_one_kind(left: Any, right: Any, test: Callable[[Any, Any], bool]) -> bool:
    """Compare two numbers, as floats where one is a float: Python would compare them exactly, and SQL does not."""
    if left.__class__ is not right.__class__ and float in (left.__class__, right.__class__):
        return test(float(left), float(right))
    return bool(test(left, right))


def decided(answers: Iterable[Answer], decisive: bool) -> Answer:
    """Return OR (``decisive`` is true) or AND (false) of answers, which are asked for until one decides."""
    answer: Answer = not decisive
    for found in answers:
        if found is decisive:
            return decisive
        if found is None:
            answer = None
    return answer


def any_of(test: Callable[[Any, Any], Answer], left: Any, right: Any) -> Answer:
    """Test each of several values against each of the others: true if one is, else unknown if one is."""
    ours = left if isinstance(left, Several) else [left]
    theirs = right if isinstance(right, Several) else [right]
    return decided((test(a, b) for a in ours for b in theirs), True)


def less(left: Any, right: Any, or_equal: bool = False) -> Answer:
    """Return whether ``left < right`` (or ``<=``); None where the values have no order."""
    if left.__class__ is right.__class__ and left.__class__ in _SIMPLE:
        return bool(left <= right if or_equal else left < right)
    if isinstance(left, Several) or isinstance(right, Several):
        return any_of(lambda a, b: less(a, b, or_equal), left, right)
    if is_nan(left) or is_nan(right):
        return False if is_number(left) and is_number(right) else None
    order = compare(left, right)
    return None if order is None else order < 0 or (or_equal and order == 0)


def compare(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1; None where the values have no order."""
    if left is None or right is None:
        return None
    if is_number(left) and is_number(right):
        return -1 if _of_one_kind(left, right, operator.lt) else int(_of_one_kind(left, right, operator.gt))
    if isinstance(left, DateTime) and isinstance(right, DateTime):
        return (left.instant > right.instant) - (left.instant < right.instant)
    comparable = (
        (isinstance(left, str) and isinstance(right, str))
        or (isinstance(left, bool) and isinstance(right, bool))
        or (isinstance(left, Temporal) and type(left) is type(right) and not isinstance(left, Duration))
    )
    if comparable:
        return -1 if left < right else int(left > right)
    if isinstance(left, list) and isinstance(right, list):
        for a, b in zip(left, right, strict=False):
            order = compare(a, b)
            if order is None and equals(a, b) is not True:
                return None
            if order:
                return order
        return (len(left) > len(right)) - (len(left) < len(right))
    return None


_RANKS: list[type | tuple[type, ...]] = [dict, Vertex, Edge, list, Path, Temporal, str, bool, (int, float, Decimal)]


def sort_key(value: Any) -> tuple[Any, ...]:
    """Return what orders values of all types: openCypher's global order, null last."""
    if value is None:
        return (99,)
    if is_nan(value):
        return (98,)
    rank = next(i for i, kind in enumerate(_RANKS) if isinstance(value, kind))
    match value:
        case dict():
            return (rank, sorted((key, sort_key(item)) for key, item in value.items()))
        case Vertex():
            return (rank, value.id)
        case Edge():
            return (rank, value.label, value.start, value.end, value.ordinal)
        case list():
            return (rank, [sort_key(item) for item in value])
        case Path():
            return (rank, [sort_key(item) for item in (*value.vertices, *value.edges)])
        case Temporal():
            return (rank, type(value).__name__, value.sort_key())
    return (rank, value)


def group_key(value: Any) -> Any:
    """Return what is equal, and hashes alike, for equivalent values: null is null here, and NaN is NaN."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, float) and math.isnan(value):
        return ("nan",)
    if isinstance(value, list):
        return ("list", *map(group_key, value))
    if isinstance(value, dict):
        return ("map", frozenset((key, group_key(item)) for key, item in value.items()))
    if isinstance(value, Decimal):
        return shortest_float(value)
    if isinstance(value, DateTime):
        return ("moment", value.instant)
    return value


_EXACT = 1 << 53
"""Up to here all integers are floats; fractions are none from here on."""


def shortest_float(value: Decimal) -> float | Decimal:
    """Return the float that a decimal is equal to: it is the shortest that is read as that one; else the decimal."""
    near = float(value)
    return near if abs(near) < _EXACT and Decimal(repr(near)) == value else value


def type_name(value: Any) -> str:
    """Return how an error calls a value's type."""
    if value is None:
        return "null"
    if isinstance(value, Temporal):
        return "a " + value.kind
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a float",
        Decimal: "a decimal",
        str: "a string",
        list: "a list",
        Several: "a property with several values",
        dict: "a map",
        Vertex: "a vertex",
        Edge: "an edge",
        Path: "a path",
    }
    return names.get(type(value), type(value).__name__)


def _integer(value: Any) -> int | None:
    if value.__class__ is int:
        return int(value)
    if not is_number(value) or not abs(value) < 1 << 53:
        return None
    return int(value) if value == int(value) else None


def _float(value: Any) -> float | None:
    found = float(value) if is_number(value) else math.nan
    return None if math.isnan(found) else found


NARROWED: Mapping[str, Callable[[Any], Any]] = {
    "INTEGER": _integer,
    "FLOAT": _float,
    "STRING": lambda value: value if isinstance(value, str) else None,
    "BOOLEAN": lambda value: value if isinstance(value, bool) else None,
}
"""By the names of types: what a value of such a type is that equals some value; null where there is none."""
