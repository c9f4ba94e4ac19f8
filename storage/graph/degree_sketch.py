"""Degree sketches: a histogram of degrees by powers of two, and the moments that it gives.

The neighbour of a random vertex has more neighbours than a random vertex has.  How many more is a question of moments:
where ``k`` of a vertex's edges are bound, the next has ``S(k+1) / S(k)`` choices on average, with ``S(k)`` the sum of
the ``k``-th powers of all degrees (falling powers, where edges must differ).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.sorted_sets import unique

Ints = NDArray[np.int64]

OUT, IN = 0, 1
"""Directions: from subjects to objects, and back."""


@dataclass(frozen=True, slots=True)
class DegreeSketch:
    """Per bucket (degrees from one power of two to the next): (vertices, edges, sum of squared degrees)."""

    buckets: tuple[tuple[float, float, float], ...] = ()
    _grown: dict[tuple[int, bool], float] = field(default_factory=dict, compare=False, repr=False)
    """Cached results of :meth:`growth`."""

    @classmethod
    def of(cls, degrees: Ints) -> DegreeSketch:
        """The sketch of these degrees (int64, positive)."""
        exact = degrees.astype(np.float64)
        number = np.frexp(exact)[1] - 1
        sums = [np.bincount(number, weights) for weights in (None, exact, exact * exact)]
        rows = np.stack(sums, axis=1)[unique(number)].tolist() if len(degrees) else []
        return cls(tuple((n, e, q) for n, e, q in rows))

    @classmethod
    def union(cls, sketches: Iterable[DegreeSketch]) -> DegreeSketch:
        """The sketch of several edge labels together, as if no vertex had edges of two of them."""
        return cls(tuple(bucket for sketch in sketches for bucket in sketch.buckets))

    @property
    def vertices(self) -> float:
        """How many vertices have an edge."""
        return sum(n for n, _, _ in self.buckets)

    @property
    def edges(self) -> float:
        """How many edges they have."""
        return sum(e for _, e, _ in self.buckets)

    def moment(self, power: int, falling: bool) -> float:
        """The sum of powers of the degrees (falling: ``d (d - 1) (d - 2) …``): exact up to the second."""
        total = 0.0
        for _, edges, squares in self.buckets:
            met, value = squares / edges, edges  # the degree at the end of a random edge of the bucket
            for k in range(1, power):
                value *= max(met - k, 0.0) if falling else met
            total += value
        return total

    def growth(self, bound: int, falling: bool) -> float:
        """How many choices the next edge has at a vertex that ``bound`` (at least 1) of its edges led to."""
        known = self._grown.get((bound, falling))
        if known is None:
            moment = self.moment(bound, falling)
            known = self._grown[bound, falling] = self.moment(bound + 1, falling) / moment if moment else 0.0
        return known
