"""Aggregates over the values of one group; null values do not take part."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphdb.errors import ExecutionError, GraphDBError, TypeMismatchError
from graphdb.interpret.values import group_key, is_number, sort_key, type_name
from graphdb.temporal import Duration
from graphdb.values import INT64

Fail = Callable[[type[GraphDBError], str], GraphDBError]


def aggregate(name: str, values: list[Any], distinct: bool, argument: Any, fail: Fail) -> Any:
    """Return an aggregate of ``values``; ``argument`` is the fraction of a percentile."""
    values = [value for value in values if value is not None]
    if distinct:
        values = list({group_key(value): value for value in values}.values())
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
            total = math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)
            if isinstance(total, int) and total not in INT64:
                raise fail(ExecutionError, "a number is out of range: 64 bits hold -2^63 to 2^63 - 1")
            return total
        case "avg":
            return math.fsum(values) / len(values) if values else None
        case "stdev" | "stdevp":
            return _deviation([float(value) for value in values], sample=name == "stdev")
    return _percentile(name, sorted(values), argument, fail)


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
    mean = math.fsum(values) / count
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - sample))


def _percentile(name: str, values: list[Any], fraction: Any, fail: Fail) -> Any:
    if not is_number(fraction) or not 0 <= fraction <= 1:
        told = "null" if fraction is None else repr(fraction)
        raise fail(ExecutionError, f"{name} needs a fraction from 0 to 1, found {told}")
    if not values:
        return None
    if name == "percentiledisc":
        return values[max(math.ceil(fraction * len(values)) - 1, 0)]
    at = fraction * (len(values) - 1)
    low, high = math.floor(at), math.ceil(at)
    return float(values[low] + (values[high] - values[low]) * (at - low))
