"""Arithmetic over Python values: numbers, and what else ``+ - * / % ^ ||`` take: texts, lists, times and durations."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.common.errors import ExecutionError, MemoryLimitError
from graphdb.common.values.decimals import DIGITS, EXACT, shortest
from graphdb.common.values.temporal import Duration, Temporal, exact, shift
from graphdb.common.values.types import INT64
from graphdb.evaluate.builtins.conversions import text_of
from graphdb.evaluate.calls import wrong
from graphdb.evaluate.values import is_number, type_name
from graphdb.grammar import syntax as ast
from graphdb.sql.types.ranges import LONGEST

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context

_PLAIN = {"+": add, "-": sub, "*": mul}
"""What Python does as IEEE and openCypher have it, whether numbers are integers or floats."""


def computed(context: Context, node: ast.Binary, left: Any, right: Any) -> Any:
    """Return ``left operator right``: null where one is null, but that a list takes null as an item.

    Raises
    ------
    TypeMismatchError
        The operator does not take such values.
    ExecutionError
        An integer is out of range, or divided by zero.
    MemoryLimitError
        The list or text would be too long.
    """
    if node.operator == "||":
        pair = (left, right)
        if None not in pair and not any(all(isinstance(each, kind) for each in pair) for kind in (str, list)):
            raise wrong(context, node, f"|| cannot take {type_name(left)} and {type_name(right)}")
        node = replace(node, operator="+")
    if node.operator == "+" and (isinstance(left, list) or isinstance(right, list)):
        if left is None or right is None:
            return None
        items = [*(left if isinstance(left, list) else [left]), *(right if isinstance(right, list) else [right])]
        if len(items) > LONGEST:
            message = f"a list of more than {LONGEST:,} items is too long"
            raise wrong(context, node, message, MemoryLimitError)
        return items
    if left is None or right is None:
        return None
    if is_number(left) and is_number(right):
        return _number(context, node, left, right)
    if node.operator == "+" and isinstance(left, str) and isinstance(right, str):
        if len(left) + len(right) > 10 * LONGEST:
            message = f"a text of more than {10 * LONGEST:,} characters is too long"
            raise wrong(context, node, message, MemoryLimitError)
        return left + right
    joined = node.operator == "+" and (isinstance(left, str) or isinstance(right, str))
    if joined and all(isinstance(value, (str, bool, Temporal)) or is_number(value) for value in (left, right)):
        return text_of(left) + text_of(right)
    if isinstance(left, Temporal) or isinstance(right, Temporal):
        found = _temporal(node.operator, left, right)
        if found is not None:
            return found
    times = node.operator == "-" and isinstance(left, Temporal) and isinstance(right, Temporal)
    hint = "what lies between two times: duration.between(earlier, later)" if times else None
    message = f"{node.operator} cannot take {type_name(left)} and {type_name(right)}"
    raise wrong(context, node, message, hint=hint)


def _number(context: Context, node: ast.Binary, left: Any, right: Any) -> Any:
    operator = node.operator
    if operator == "^":
        with np.errstate(all="ignore"):  # IEEE's: no complex numbers, and 0 ^ -1 is infinite
            return float(np.power(float(left), float(right)))
    if isinstance(left, int) and isinstance(right, int):
        return fits(context, _whole(context, node, left, right), node)
    if operator == "/" or isinstance(left, float) or isinstance(right, float):
        return _real(operator, float(left), float(right))
    if operator == "%" and not right:
        raise wrong(context, node, "division by zero", ExecutionError)
    call = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "%": EXACT.remainder}[operator]
    found = Decimal(shortest(call(left, right)))
    return found if len(found.as_tuple().digits) <= DIGITS else float(found)


def _whole(context: Context, node: ast.Binary, left: int, right: int) -> int:
    """Return what an operator makes of two integers: divided, they are cut towards zero."""
    if node.operator in _PLAIN:
        found: int = _PLAIN[node.operator](left, right)
        return found
    if not right:
        raise wrong(context, node, "division by zero", ExecutionError)
    quotient, rest = divmod(abs(left), abs(right))
    if node.operator == "/":
        return quotient if (left < 0) == (right < 0) else -quotient
    return rest if left >= 0 else -rest


def _real(operator: str, left: float, right: float) -> float:
    """Return what an operator makes of two floats, as IEEE has it."""
    if operator in _PLAIN:
        found: float = _PLAIN[operator](left, right)
        return found
    if operator == "/":
        return left / right if right else _over_zero(left, right)
    return math.fmod(left, right) if right and math.isfinite(left) else math.nan


def negated(value: Any) -> Any:
    """Return a number with the other sign."""
    return EXACT.minus(value) if isinstance(value, Decimal) else -value


def absolute(value: Any) -> Any:
    """Return a number without its sign."""
    return EXACT.abs(value) if isinstance(value, Decimal) else abs(value)


def fits(context: Context, value: Any, node: ast.Expression) -> Any:
    """Return a number, and refuse an integer of more than 64 bits."""
    if isinstance(value, int) and value not in INT64:
        raise wrong(context, node, "a number is out of range: 64 bits hold -2^63 to 2^63 - 1", ExecutionError)
    return value


def _temporal(operator: str, left: Any, right: Any) -> Any:
    if operator in "+-" and isinstance(left, Temporal) and isinstance(right, Duration):
        return shift(left, right, 1 if operator == "+" else -1)
    if operator == "+" and isinstance(left, Duration) and isinstance(right, Temporal):
        return shift(right, left, 1)
    if operator in "*/" and isinstance(left, Duration) and is_number(right) and (right or operator == "*"):
        factor = exact(right)
        return left.times(factor if operator == "*" else 1 / factor)
    if operator == "*" and isinstance(right, Duration) and is_number(left):
        return right.times(exact(left))
    return None


def _over_zero(value: float, zero: float) -> float:
    if not value or math.isnan(value):
        return math.nan
    return math.copysign(math.inf, value) * math.copysign(1, zero)
