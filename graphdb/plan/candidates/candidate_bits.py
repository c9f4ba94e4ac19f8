"""Candidate sets as one bit per vertex: those that plan after plan asks of, as the vertices of a label, are kept."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_LASTING = 32
"""Plans that bits are made for, by guess, where an earlier plan asked of the same array, too."""

_EXPECTED = 2048
"""Vertices that each of these looks for, at least: how many was often expected to be hundreds of times fewer."""


@dataclass(slots=True)
class _Seen:
    """An array that a plan asked of, and its bits, once they were made."""

    array: weakref.ref[Ints]
    bits: NDArray[np.uint8] | None = None
    size: int = 0

    def made(self, vertices: int) -> bool:
        """Whether there are bits for so many vertices."""
        return self.bits is not None and self.size == vertices


_seen: dict[int, _Seen] = {}
"""By the arrays' identities, for as long as they live: nobody writes to them."""


def pays(candidates: Ints, visits: float, vertices: int) -> bool:
    """Whether bits of sorted candidates take less than to look for so many vertices among them by binary search."""
    seen, asked, making = _known(candidates), visits * log2(len(candidates)), len(candidates) + vertices / 64
    if seen is not None:
        return seen.made(vertices) or max(visits, _EXPECTED) * log2(len(candidates)) * _LASTING > making
    if 64 * len(candidates) >= vertices:  # the bits take no more memory than the array
        key = id(candidates)
        _seen[key] = _Seen(weakref.ref(candidates, lambda _: _seen.pop(key, None)))
    return asked > making


def bit_set(candidates: Ints, vertices: int) -> NDArray[np.uint8]:
    """Return one bit per vertex, little-endian within each byte: uint8[ceil(vertices / 8)], which nobody writes to."""
    seen = _known(candidates)
    if seen is not None and seen.bits is not None and seen.made(vertices):
        return seen.bits
    flags = np.zeros(vertices, bool)
    flags[candidates] = True
    bits = np.packbits(flags, bitorder="little")
    if seen is not None:
        seen.bits, seen.size = bits, vertices
    return bits


def _known(candidates: Ints) -> _Seen | None:
    seen = _seen.get(id(candidates))
    return seen if seen is not None and seen.array() is candidates else None
