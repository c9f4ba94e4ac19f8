"""Canonical labels: two patterns have the same one exactly if they are isomorphic.

The vertices of a pattern are sorted by label and by what is around them, which isomorphisms preserve; of the orders
that only exchange vertices equal in this, the one with the least code is canonical.  Patterns have up to six vertices,
so that few orders are left to compare.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import NotSupportedError

Ints = NDArray[np.int64]

MOST = 6
"""Vertices of a pattern."""


class Canonical(NamedTuple):
    """Patterns in their canonical orders.

    Attributes
    ----------
    labels, cells
        int64 [patterns, n] and [patterns, n, n]: as given, the vertices in canonical order.
    orders
        int64 [patterns, n]: the vertex that stands at each place.
    orbits
        int64 [patterns, n]: the first place that an automorphism takes each place to.
    """

    labels: Ints
    cells: Ints
    orders: Ints
    orbits: Ints

    @property
    def codes(self) -> Ints:
        """int64 [patterns, n + n * (n - 1) / 2]: the canonical labels."""
        above = np.triu_indices(self.labels.shape[1], 1)
        return np.concatenate([self.labels, self.cells[:, above[0], above[1]]], axis=1)


def canonical(labels: Ints, cells: Ints) -> Canonical:
    """Return the canonical orders of patterns with equally many vertices.

    Parameters
    ----------
    labels
        int64 [patterns, n]: a number for the labels of each vertex.
    cells
        int64 [patterns, n, n]: a number for what joins two vertices, seen from the first; 0 for nothing.

    Raises
    ------
    NotSupportedError
        They have more than six vertices.
    """
    from graphdb.mining.kernels.canonical_kernels import canonical_orders

    count, n = labels.shape
    if n > MOST:
        raise NotSupportedError(f"patterns of {n} vertices have no canonical label here: at most {MOST}")
    orders, orbits = np.empty((count, n), np.int64), np.empty((count, n), np.int64)
    labels, cells = np.ascontiguousarray(labels, np.int64), np.ascontiguousarray(cells, np.int64)
    canonical_orders(labels, cells, orders, orbits, np.empty((7, n), np.int64))
    rows = np.arange(count)[:, None]
    cells = cells[rows[:, :, None], orders[:, :, None], orders[:, None, :]]
    return Canonical(labels[rows, orders], cells, orders, orbits)


def distinct(columns: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the first of each of the distinct rows, sorted, then each row's place among them, and how often it is.

    ``columns`` is int64 [rows, width].
    """
    if not columns.shape[1]:
        columns = np.zeros((len(columns), 1), np.int64)
    order = np.lexsort(columns.T[::-1])
    rows = columns[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    place = np.empty(len(rows), np.int64)
    place[order] = np.cumsum(new) - 1
    first = order[new]  # lexsort is stable: the first in the order that they came in
    return first, place, np.diff(np.append(np.flatnonzero(new), len(rows)))
