"""Keys and codes sorted by counting where they lie close together, against NumPy's sort."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from graphdb.storage.arrays import external_sort
from graphdb.storage.arrays.batch import LITERAL

Ints = NDArray[np.int64]

DRAWN: dict[str, Callable[[np.random.Generator, int], tuple[Ints, Ints]]] = {
    "a hub": lambda draw, n: (np.where(draw.random(n) < 0.7, 5, draw.integers(0, n, n)), draw.integers(0, 40, n)),
    "handfuls": lambda draw, n: (draw.integers(7, 7 + n // 3 + 1, n), draw.integers(LITERAL, LITERAL + n, n)),
    "two labels": lambda draw, n: (np.tile(np.arange(n), 2)[:n], np.repeat([9, 3], n)[:n]),
    "far apart": lambda draw, n: (draw.integers(0, LITERAL, n), draw.integers(0, 2 * LITERAL, n)),
    "literals and resources": lambda draw, n: (draw.integers(0, 9, n), draw.choice([1, LITERAL + 1, 2], n)),
    "in order": lambda draw, n: (np.arange(n), np.arange(n)),
}


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("most", [100, 1 << 22])
def test_sorted_as_numpy_does(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_sort, "_COUNTED", most)
    draw = np.random.default_rng(3)
    for size in (0, 1, 2, 30, 100, 101, 3000):
        subjects, objects = DRAWN[kind](draw, size)
        keys = subjects.astype(np.uint64) << np.uint64(32) | objects.astype(np.uint64)
        codes = objects.astype(np.uint32)
        expected = np.sort(keys), np.sort(codes)
        external_sort.sort_keys(keys)
        external_sort.sort_codes(codes)
        assert np.array_equal(keys, expected[0])
        assert np.array_equal(codes, expected[1])


def test_what_is_close_together_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the test above would not say: what is sorted by counting asks for no other sort."""
    from graphdb.storage.arrays import batch_kernels

    called = []
    for name in ("sort_by_subject", "sort_codes"):
        monkeypatch.setattr(batch_kernels, name, lambda *given, name=name: called.append((name, len(given[0]))))
    draw = np.random.default_rng(3)
    external_sort.sort_keys(draw.permutation(50).astype(np.uint64) << np.uint64(32))
    external_sort.sort_codes(draw.permutation(50).astype(np.uint32))
    external_sort.sort_codes(np.arange(50, dtype=np.uint32))
    assert called == [("sort_by_subject", 50), ("sort_codes", 50)]
