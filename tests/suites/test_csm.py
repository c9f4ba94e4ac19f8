"""Incremental matches of streams of changed edges: every count is what Graphflow, SymBi and RapidFlow agree on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from graphdb.incremental.changes import Updates
from graphdb.incremental.matcher import IncrementalMatcher
from tests import csm
from tests.fuzz import FUZZ

TOGETHER = 6
"""Patterns of a matcher: they share its lists."""


@pytest.fixture(scope="module", params=csm.SETS)
def data(request: pytest.FixtureRequest, shared: Callable[[str], Path]) -> csm.Set:
    return csm.load(request.param, shared("suites/csm"))


def _sizes(data: csm.Set, stream: str, query: str) -> list[str]:
    """The batch sizes that are tried: all of them in a long run, else of the larger sets every other one."""
    sizes = list(data.expected["queries"][query][stream]["total"])
    if FUZZ >= 1 or len(data.labels) < 1000:
        return sizes
    return sizes[csm.STREAMS.index(stream) :: 2] + (["1"] if stream == "mixed" else [])


def test_counts(data: csm.Set) -> None:
    expected, names = data.expected["queries"], list(data.queries)
    assert set(names) == set(expected)
    compared = 0
    for begin in range(0, len(names), TOGETHER):
        group = names[begin : begin + TOGETHER]
        matcher = IncrementalMatcher(data.source, [data.queries[name] for name in group])
        for stream, changes in data.streams.items():
            for size in _sizes(data, stream, group[0]):
                counts = matcher.count(changes.updates, changes.ends(size))
                for i, name in enumerate(group):
                    known, found = expected[name][stream], counts[:, i]
                    assert found.sum(axis=0).tolist() == known["total"][size], (name, stream, size)
                    if size in known["per_batch"]:
                        rows = [[b, *found[b].tolist()] for b in range(len(found)) if found[b].any()]
                        assert rows == known["per_batch"][size], (name, stream, size)
                    compared += 1
                back = matcher.count(changes.undone, [len(changes.edges)])
                net, undone = counts.sum(axis=0), back[0]
                assert (net[:, 0] - net[:, 1] == undone[:, 1] - undone[:, 0]).all(), "the graph is as before"
    assert compared >= 4 * len(names)


def test_matches(shared: Callable[[str], Path]) -> None:
    """The matches themselves that each batch of 8 gains and loses."""
    data = csm.load("tiny", shared("suites/csm"))
    known = data.expected["sets"]
    changes = data.streams[known["stream"]]
    ends = [0, *changes.ends(str(known["batch"])).tolist()]
    assert len(known["queries"]) == 5
    for name, expected in known["queries"].items():
        matcher, found = IncrementalMatcher(data.source, [data.queries[name]]), []
        for number, (begin, end) in enumerate(pairwise(ends)):
            (change,) = matcher.apply(Updates(*(np.asarray(column)[begin:end] for column in changes.updates)))
            if len(change.added) or len(change.removed):
                found.append([number, sorted(change.added.tolist()), sorted(change.removed.tolist())])
        assert found == expected, name
