"""Sets of vertices as sorted arrays against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from graphdb.storage.arrays.sorted_sets import both, each_once, either, looked_up, unique, without


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
    run, some = np.arange(20_000) + span, np.unique(dice.integers(span - 10, span + 50_000, 60_000))
    assert both(run, some).tolist() == both(some, run).tolist() == np.intersect1d(run, some).tolist()


@pytest.mark.parametrize("span", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_each_once_of_lists_that_lie_close_together_or_apart(span: int, dtype: type) -> None:
    dice = np.random.default_rng(span)
    for size in (0, 1, 2, 100, 20_000):
        for low in (0, 1, 10**6):
            ids = dice.integers(low, low + span, size).astype(dtype)
            given = ids.copy()
            for bound in (low + span, low + span + 1, 10**7):
                found = each_once(ids, bound)
                assert found.dtype == np.int64
                assert found.tolist() == np.unique(given).tolist()
            assert (ids == given).all()


def test_numbers_are_looked_up_by_a_table_or_a_search() -> None:
    random = np.random.default_rng(5)
    for many in (0, 3, 40, 400):
        for _ in range(50):
            numbers = np.unique(random.integers(-50, 50, random.integers(0, 20)))
            wanted = random.integers(-80, 80, many)
            wanted[: many // 40] = random.choice([1 << 40, -(1 << 62), (1 << 63) - 1])
            at, there = looked_up(numbers, wanted)
            known = {number: place for place, number in enumerate(numbers.tolist())}
            assert there.tolist() == [number in known for number in wanted.tolist()]
            assert at[there].tolist() == [known[number] for number in wanted.tolist() if number in known]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sets_of_integers_are_those_of_python(dtype: type) -> None:
    dice = np.random.default_rng(7)
    for size, other, span in [(0, 0, 9), (0, 3, 9), (1, 0, 9), (5, 5, 3), (200, 300, 10**6), (900, 20, 40)]:
        left, right = (dice.integers(-span, span, many).astype(dtype) for many in (size, other))
        assert unique(left).tolist() == sorted(set(left.tolist()))
        assert unique(left).dtype == dtype
        assert either(left, right).tolist() == sorted({*left.tolist(), *right.tolist()})
        assert without(unique(left), right).tolist() == sorted(set(left.tolist()) - set(right.tolist()))
    assert unique([3, 1, 3]).tolist() == unique(np.array([[3, 1], [1, 3]])).tolist() == [1, 3]
