"""Conversions over Python values: ``toString`` and its kin, and the text of a value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import TypeMismatchError
from graphdb.common.values.decimals import shortest
from graphdb.common.values.temporal import Temporal
from graphdb.common.values.types import INT64
from graphdb.evaluate.calls import Call, wrong
from graphdb.evaluate.values import is_number, type_name
from graphdb.grammar import syntax as ast

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context


def text_of(value: Any) -> str:
    """Return a number, boolean, string or temporal value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        text = repr(value)
        return text.replace("e+", "E").replace("e-0", "E-").replace("e", "E")
    return shortest(value) if isinstance(value, Decimal) else str(value)


def _to_string(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, (str, bool, int, float, Decimal, Temporal)):
        return text_of(value)
    raise wrong(context, node, f"toString does not take {type_name(value)}")


def _to_integer(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) and len(value) < _LONG else _read(value)
    if value is None:
        return None
    if is_number(value):
        return found if math.isfinite(value) and (found := int(value)) in INT64 else None
    raise wrong(context, node, f"toInteger does not take {type_name(value)}")


_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_LONG = 100
"""Characters beyond which Python would mind reading an integer, which cannot be one of 64 bits."""
_REAL = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|Infinity|INF|NaN)\s*", re.ASCII)


def _read(text: str) -> float | None:
    """Return the number that a text says in openCypher's words; Python knows more of them, such as ``1_0``."""
    return float(text) if _REAL.fullmatch(text) else None


def _to_float(context: Context, node: ast.Expression, value: Any) -> Any:
    if is_number(value):
        return float(value)
    if isinstance(value, str):
        return _read(value)
    raise wrong(context, node, f"toFloat does not take {type_name(value)}")


def _to_boolean(context: Context, node: ast.Expression, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return bool(value)
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    raise wrong(context, node, f"toBoolean does not take {type_name(value)}")


def _or_null(call: Call) -> Call:
    def forgiving(context: Context, node: ast.Expression, value: Any) -> Any:
        try:
            return call(context, node, value)
        except TypeMismatchError:
            return None

    return forgiving


def _each(name: str, call: Call) -> Call:
    """A conversion of lists: null for each item that cannot be converted."""
    one = _or_null(call)

    def each(context: Context, node: ast.Expression, values: Any) -> Any:
        if not isinstance(values, list):
            raise wrong(context, node, f"{name} needs a list, found {type_name(values)}")
        return [None if value is None else one(context, node, value) for value in values]

    return each


_CONVERSIONS: Mapping[str, Call] = {
    "string": _to_string,
    "integer": _to_integer,
    "float": _to_float,
    "boolean": _to_boolean,
}

FORMS: Mapping[str, Call] = {
    **{f"to{name}": call for name, call in _CONVERSIONS.items()},
    **{f"to{name}ornull": _or_null(call) for name, call in _CONVERSIONS.items()},
    **{f"to{name}list": _each(f"to{name.capitalize()}List", call) for name, call in _CONVERSIONS.items()},
}
