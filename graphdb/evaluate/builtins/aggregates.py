"""Aggregates over the values of one group; null values do not take part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import reduce
from typing import Any

from graphdb.common.errors import ExecutionError, GraphDBError, TypeMismatchError
from graphdb.common.values.decimals import EXACT, shortest
from graphdb.common.values.temporal import Duration
from graphdb.common.values.types import INT64
from graphdb.evaluate.values import is_number, sort_key, type_name

Fail = Callable[[type[GraphDBError], str], GraphDBError]


def aggregate(name: str, values: list[Any], key_of: Callable[[Any], Any] | None, argument: Any, fail: Fail) -> Any:
    """Return an aggregate of ``values``; ``argument`` is the fraction of a percentile.

    With DISTINCT ``key_of`` says what equivalent values have in common: the first one of them counts.
    """
    values = [value for value in values if value is not None]
    if key_of is not None:
        values = list({key_of(value): value for value in values[::-1]}.values())[::-1]
    match name:
        case "count":
            return len(values)
        case "collect":
            return values
        case "min":
            return min(values, key=sort_key, default=None)
        case "max":
            return max(values, key=sort_key, default=None)
    if name in ("sum", "avg") and values and all(isinstance(value, Duration) for value in values):
        return _durations(name, values)
    for value in values:
        if not is_number(value):
            raise fail(TypeMismatchError, f"{name} needs numbers, found {type_name(value)}")
    match name:
        case "sum":
            total = _total(values)
            if isinstance(total, int) and total not in INT64:
                raise fail(ExecutionError, "a sum is out of range: 64 bits hold -2^63 to 2^63 - 1")
            return total
        case "avg":
            return _total(map(float, values)) / len(values) if values else None
        case "stdev" | "stdevp":
            return _deviation([float(value) for value in values], sample=name == "stdev")
    return _percentile(name, sorted(values, key=sort_key), argument, fail)


def _total(values: Iterable[Any]) -> Any:
    """Return a sum without errors of rounding, of a type that holds all values."""
    values = list(values)
    if not any(isinstance(value, float) for value in values):
        exact = any(isinstance(value, Decimal) for value in values)
        return Decimal(shortest(reduce(EXACT.add, values, Decimal()))) if exact else sum(values)
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # on the way, or infinities of both signs
        return sum(map(float, values))


def _durations(name: str, values: list[Duration]) -> Duration:
    from fractions import Fraction

    total = Duration()
    for value in values:
        total = total.plus(value)
    return total if name == "sum" else total.times(Fraction(1, len(values)))


def _deviation(values: list[float], *, sample: bool) -> float:
    count = len(values)
    if count < 2:
        return 0.0
    mean = _total(values) / count
    squares = _total((value - mean) * (value - mean) for value in values)
    return math.sqrt(squares / (count - sample))


def _percentile(name: str, values: list[Any], fraction: Any, fail: Fail) -> Any:
    if not is_number(fraction) or not 0 <= fraction <= 1:
        text = "null" if fraction is None else repr(fraction)
        raise fail(ExecutionError, f"{name} needs a fraction from 0 to 1, found {text}")
    if not values:
        return None
    if name == "percentiledisc":
        return values[max(math.ceil(fraction * len(values)) - 1, 0)]
    at = float(fraction) * (len(values) - 1)
    low, high = math.floor(at), math.ceil(at)
    start, end = float(values[low]), float(values[high])
    return start if low == high else start + (end - start) * (at - low)
