"""Sets of pattern vertices as the bits of an int."""

from __future__ import annotations

from collections.abc import Iterator


def members(bits: int) -> Iterator[int]:
    """The vertices of a set, in ascending order."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1
