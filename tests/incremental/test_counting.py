"""Counted matches where lists are long, shared by several steps, or differ much in length: against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphdb.incremental.changes import Updates
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import PatternGraph
from graphdb.storage.graph.array_source import ArraySource
from tests.incremental.test_matcher import _pattern

FEW = 7


def among(pattern: PatternGraph, candidates: dict[int, list[int]]) -> PatternGraph:
    """Return a pattern with candidates for some of its vertices."""
    vertices = list(pattern.vertices)
    for vertex, own in candidates.items():
        vertices[vertex] = replace(vertices[vertex], candidates=np.array(own, np.int64))
    return replace(pattern, vertices=tuple(vertices))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("common", "restricted"), [(5, False), (70, False), (70, True), (5_000, True)])
def test_two_vertices_in_the_same_lists(
    common: int, restricted: bool, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 0 and 1, which are joined, two common neighbours that both lead to 2."""
    if wide:
        monkeypatch.setattr("graphdb.incremental.lists.NARROW", 1)
    pattern = _pattern([(0, 1), (0, 3), (1, 3), (0, 4), (1, 4), (3, 2), (4, 2)])
    pattern = among(pattern, {0: [0], 1: [1], 2: [2]} | ({3: list(range(3, 3 + FEW))} if restricted else {}))
    ends = np.array([(a, d) for d in range(3, 3 + common) for a in (0, 1)] + [(d, 2) for d in range(3, 3 + common)])
    matcher = IncrementalMatcher(ArraySource(ends[:, 0], np.ones(len(ends)), ends[:, 1], 4 + common), [pattern])
    first = FEW if restricted else common
    for inserted in (True, False):
        (counts,) = matcher.count(Updates([1], [0], [1], [inserted]), [1]).tolist()
        wanted = first * (common - 1)
        assert counts == [[wanted, 0] if inserted else [0, wanted]]
    matcher.apply(Updates([1], [0], [1], [True]))
    (counts,) = matcher.count(Updates([1, 1], [0, 3], [3, 2], [False, False]), [2]).tolist()
    assert counts == [[0, first + common - 2]], "those that have the first common neighbour, in either place"


@pytest.mark.parametrize(("left", "right"), [(200, 3), (3, 200), (1, 1)])
def test_subtrees_begin_where_lists_are_short(left: int, right: int) -> None:
    """Of a changed edge, and a vertex that both its ends lead to, squares whose two further corners are many and few."""
    pattern = _pattern([(0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (3, 4)])
    begin = 10
    corners = [(0, begin + i) for i in range(left)] + [(1, 500 + j) for j in range(right)]
    ends = np.array([(0, 2), (1, 2), *corners, *((begin + i, 500 + j) for i in range(left) for j in range(right))])
    source = ArraySource(ends[:, 0], np.ones(len(ends)), ends[:, 1], 1_000)
    matcher = IncrementalMatcher(source, [pattern])
    assert any(plan.turned for plan in matcher.delta_plans())
    assert matcher.count(Updates([1], [0], [1], [True]), [1]).tolist() == [[[left * right, 0]]]


def test_batches_of_changes_that_concern_no_pattern() -> None:
    """Batches end where they did, whatever is left out before; also of several edge labels."""
    pattern = among(_pattern([(0, 1)]), {0: [0, 1], 1: [2, 3]})
    sources, targets = [0, 4, 0, 1, 4, 5, 1, 4], [2, 2, 3, 2, 4, 2, 3, 3]
    for labels in ([1] * 8, [1, 1, 2, 1, 1, 1, 1, 3]):
        matcher = IncrementalMatcher(ArraySource([], [], [], 6), [pattern])
        ends, wanted, begin = [1, 1, 3, 5, 8], [], 0
        for end in ends:
            own = range(begin, end)
            wanted.append(sum(labels[i] == 1 and sources[i] < 2 and targets[i] in (2, 3) for i in own))
            begin = end
        counts = matcher.count(Updates(labels, sources, targets, [True] * 8), ends)
        assert counts[:, 0].tolist() == [[number, 0] for number in wanted]


@pytest.mark.parametrize("each", [3, 70])
def test_leaves_are_counted_by_the_lengths_of_lists(each: int) -> None:
    """Paths over an edge that is inserted, of which another one loses an edge at once; vertices come once in a path."""
    hubs, back, leaves = range(2, 12), 4, range(20, 20 + each)
    edges = [(1, hub) for hub in hubs] + [(hub, leaf) for hub in hubs for leaf in leaves]
    ends = np.array(edges + [(hub, 0) for hub in hubs[:back]])
    matcher = IncrementalMatcher(
        ArraySource(ends[:, 0], np.ones(len(ends)), ends[:, 1], 20 + each), [_pattern([(0, 1), (1, 2), (2, 3)])]
    )
    wanted = len(hubs) * each + back * (len(hubs) - 1)
    changes = Updates([1, 1], [0, hubs[0]], [1, leaves[0]], [True, False])
    assert matcher.count(changes, [1, 2]).tolist() == [[[wanted, 0]], [[0, 1]]]
    undone = Updates([1, 1], [0, hubs[0]], [1, leaves[0]], [False, True])
    assert matcher.count(undone, [2]).tolist() == [[[0, wanted - 1]]]
    assert matcher.count(changes, [2]).tolist() == [[[wanted - 1, 0]]]
