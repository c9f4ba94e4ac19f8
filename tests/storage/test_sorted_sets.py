"""Sets of vertices as sorted arrays against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from graphdb.storage.arrays.sorted_sets import both


@pytest.mark.parametrize("span", [1, 10, 1000, 10**6, 10**12])
def test_intersections_of_dense_and_of_sparse_sets(span: int) -> None:
    dice = np.random.default_rng(span)
    for size, other in [(0, 5), (1, 1), (7, 900), (300, 300), (1000, 3), (20_000, 30_000)]:
        low = int(dice.integers(10**6))
        left = np.unique(dice.integers(low, low + span, size))
        right = np.unique(dice.integers(low, low + span, other))
        for one, two in ((left, right), (right, left)):
            assert both(one, two).tolist() == np.intersect1d(one, two).tolist()
            assert both(one, one).tolist() == one.tolist()
