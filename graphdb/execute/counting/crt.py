"""Exact counts of any size: by the Chinese remainder theorem (CRT) where kernels count in int64.

Numbers of matches are int64 arrays while they fit, arrays of Python's integers (dtype object) where they do not, and
never wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import ExecutionError

T = TypeVar("T", int, NDArray[Any])

Numbers = NDArray[Any]
"""int64, or of dtype object."""

_MOST = (1 << 63) - 1


class Overflow(Exception):
    """A number did not fit int64."""


def by_remainders(total: Callable[[int], T], greatest: int) -> T:
    """Return ``total(0)``, or where that overflows, the same by the Chinese remainder theorem.

    Parameters
    ----------
    total
        Counts modulo its argument, and for 0 in int64, which may raise :class:`Overflow`: a number, or an array of
        dtype object.
    greatest
        An upper bound of the result.
    """
    try:
        return total(0)
    except Overflow:
        pass
    remainders: list[tuple[Any, int]] = []
    product = 1
    for prime in primes():
        if product > greatest:
            break
        remainders.append((total(prime) % prime, prime))
        product *= prime
    found: T = sum(r * (product // p * pow(product // p, -1, p)) for r, p in remainders) % product
    return found


def primes() -> Iterator[int]:
    """Primes below 2**31, the greatest first."""
    for candidate in range((1 << 31) - 1, 3, -2):
        if all(candidate % divisor for divisor in range(3, math.isqrt(candidate) + 1, 2)):
            yield candidate


def products(left: Numbers, right: Numbers) -> Numbers:
    """Multiply natural numbers, element by element."""
    if not len(left) or int(left.max()) * int(right.max()) <= _MOST:
        found: Numbers = left * right
        return found
    wide: Numbers = left.astype(object) * right.astype(object)
    return wide


def times(values: Numbers, factor: int) -> Numbers:
    """Multiply integers by a number; by 1 they are the same."""
    if factor == 1:
        return values
    if abs(factor) <= _MOST and (not len(values) or int(np.abs(values).max()) * abs(factor) <= _MOST):
        return values * factor
    return values.astype(object) * factor


def sums(left: Numbers, right: Numbers) -> Numbers:
    """Add integers, element by element."""
    if not len(left) or int(np.abs(left).max()) + int(np.abs(right).max()) <= _MOST:
        found: Numbers = left + right
        return found
    wide: Numbers = left.astype(object) + right.astype(object)
    return wide


def total(values: Numbers) -> int:
    """Add up natural numbers."""
    if values.dtype == object or not len(values) or int(values.max()) * len(values) <= _MOST:
        return int(values.sum())
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def narrowed(values: Numbers) -> Numbers:
    """The same as int64, where they fit."""
    if values.dtype == object and (not len(values) or int(values.max()) <= _MOST):
        return values.astype(np.int64)
    return values


def as_integers(values: Numbers) -> NDArray[np.int64]:
    """Natural numbers as the integers of a table.

    Raises
    ------
    ExecutionError
        One has more than 64 bits.
    """
    found = narrowed(values)
    if found.dtype == object:
        raise ExecutionError("a number is out of range", hint="integers have 64 bits: -2^63 to 2^63 - 1")
    return found
