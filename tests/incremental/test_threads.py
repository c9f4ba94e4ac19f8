"""Batches that several threads search: the same changes, stopped within half a second, on frames of their own."""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from graphdb.grammar.syntax import MatchMode
from graphdb.incremental import searches
from graphdb.incremental.changes import Updates
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.storage.graph.array_source import ArraySource
from tests.fuzz import scaled
from tests.incremental import test_matcher as edges
from tests.oracle.strategies import source_of
from tests.stops import Stopwatch


@settings(max_examples=scaled(60), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
def test_threads_find_the_difference_of_all_matches(seed: int) -> None:
    draw = np.random.default_rng(seed)
    data = edges.graph(draw)
    standing = [edges.pattern(draw, data) for _ in range(draw.integers(1, 4))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "FEWEST", 1)
        patch.setattr("graphdb.incremental.matcher.FEWEST", 0)
        matcher, counting = (IncrementalMatcher(source_of(data), standing, threads=3) for _ in range(2))
        for _ in range(2):
            batch = edges.batch(draw, data)
            after = edges.applied(data, batch)
            wanted = [edges.expected(pattern, data, after) for pattern in standing]
            assert [edges.found(change) for change in matcher.apply(edges.updates(batch))] == wanted
            counts = counting.count(edges.updates(batch), [len(batch)])
            assert counts.tolist() == [[[added.total(), removed.total()] for added, removed in wanted]]
            data = after


def _edges(vertices: int, count: int) -> Updates:
    pairs = np.unique(np.random.default_rng(3).integers(0, vertices, (count, 2)), axis=0)
    return Updates(np.ones(len(pairs)), pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))


def test_large_batches_are_searched_by_several_threads() -> None:
    vertices = 200
    updates = _edges(vertices, 4_000)
    triangle = edges._pattern([(0, 1), (1, 2), (2, 0)])
    empty = ArraySource([], [], [], vertices)
    seen = set[str]()
    original = searches.Search.frame

    def noted(search: searches.Search, thread: int) -> searches._Frame:
        seen.add(threading.current_thread().name)
        time.sleep(0.001)
        return original(search, thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches.Search, "frame", noted)
        (change,) = IncrementalMatcher(empty, [triangle], threads=2).apply(updates)
    assert len(seen - {"MainThread"}) == 2
    (alone,) = IncrementalMatcher(empty, [triangle]).apply(updates)
    assert Counter(map(tuple, change.added.tolist())) == Counter(map(tuple, alone.added.tolist()))
    assert len(alone.added) > 1000


def test_threads_are_stopped_at_once_and_leave_nothing() -> None:
    vertices = 400
    path = edges._pattern([(v, v + 1) for v in range(7)], MatchMode.REPEATABLE_ELEMENTS)
    ring = edges._pattern([(v, (v + 1) % 8) for v in range(8)], MatchMode.REPEATABLE_ELEMENTS)
    updates = _edges(vertices, 9_000)
    matcher = IncrementalMatcher(ArraySource([], [], [], vertices), [ring, path], threads=2)
    for action in (lambda: matcher.apply(updates, stop), lambda: matcher.count(updates, [len(updates.labels)], stop)):
        watch = Stopwatch()

        def stop(watch: Stopwatch = watch) -> None:
            if watch.seconds() > 0.5:
                raise edges.Interrupted

        with pytest.raises(edges.Interrupted):
            action()
        assert watch.seconds() < 10, "half a second of work, and stopping"
    (first, second) = matcher.apply(Updates([1], [0], [1], [False]))
    assert not len(first.removed)
    assert not len(second.removed)
