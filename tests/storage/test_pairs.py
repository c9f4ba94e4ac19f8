"""Cached pairs of an edge label, compared with a set of Python's."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.storage.statistics import pairs as module
from graphdb.storage.statistics.pairs import Pairs

pair = st.tuples(st.integers(0, 6), st.integers(0, 6))
batch = st.tuples(st.lists(pair, max_size=8), st.lists(pair, max_size=8))


def rows(found: list[tuple[int, int]]) -> np.ndarray:
    return np.array(found, np.int64).reshape(-1, 2)


@settings(deadline=None)
@given(st.sets(pair), st.lists(batch, max_size=8), st.sampled_from([0, 3, 1024]))
def test_pairs_follow_changes(there: set[tuple[int, int]], batches: list, least: int) -> None:
    subjects, objects = rows(sorted(there)).T
    found = Pairs(subjects, objects)
    before, module._LEAST = module._LEAST, least
    try:
        for come, gone in batches:
            found.change(rows(come), rows(gone))
            there = (there - set(gone)) | set(come)
            known = found.objects(np.arange(8))
            assert known == [{o for s, o in there if s == subject} for subject in range(8)]
    finally:
        module._LEAST = before
