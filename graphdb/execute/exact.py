"""Whole numbers of any size from kernels that count in int64: the Chinese remainder theorem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator


class Overflow(Exception):
    """A number did not fit int64."""


def exactly(total: Callable[[int], int], greatest: int) -> int:
    """Return ``total(0)``, or where that overflows, the same from remainders.

    Parameters
    ----------
    total
        Counts modulo its argument, and for 0 in int64, which may raise :class:`Overflow`.
    greatest
        More than can be counted.
    """
    try:
        return total(0)
    except Overflow:
        pass
    remainders: list[tuple[int, int]] = []
    product = 1
    for prime in primes():
        if product > greatest:
            break
        remainders.append((prime, total(prime) % prime))
        product *= prime
    return sum(r * (product // p) * pow(product // p, -1, p) for p, r in remainders) % product


def primes() -> Iterator[int]:
    """Primes below 2**31, the greatest first."""
    for candidate in range((1 << 31) - 1, 3, -2):
        if all(candidate % divisor for divisor in range(3, math.isqrt(candidate) + 1, 2)):
            yield candidate
