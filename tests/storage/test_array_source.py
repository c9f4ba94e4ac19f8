"""Statistics of a graph in arrays, which are counted in either of two ways."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.degree_sketch import DegreeSketch


@pytest.mark.parametrize("vertices", [9, 5_000], ids=["fewer than edges", "more"])
def test_degrees_are_those_of_the_distinct_edges(vertices: int) -> None:
    random = np.random.default_rng(vertices)
    subjects, labels, objects = random.integers(0, [[vertices], [3], [vertices]], (3, 60))
    source = ArraySource(subjects, 2 * labels, objects, vertices)
    assert source.edge_labels() == tuple(np.unique(2 * labels).tolist())
    for label in (*source.edge_labels(), 1):
        edges = {(s, o) for s, p, o in zip(subjects, 2 * labels, objects, strict=True) if p == label}
        found = source.statistics(label)
        into_or_out = [Counter(edge[end] for edge in edges) for end in (0, 1)]
        assert found.triples == len(edges)
        assert [found.subjects, found.objects] == [len(each) for each in into_or_out]
        assert [found.max_out_degree, found.max_in_degree] == [max(each.values(), default=0) for each in into_or_out]
        for end, each in enumerate(into_or_out):
            wanted = DegreeSketch.of(np.array(sorted(each.values()), np.int64))
            assert source.degrees(label, end) == wanted
