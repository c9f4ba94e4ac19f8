"""Signature columns against counting by hand, and what they promise: no vertex that fits is ever lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.signatures import bucket, required_bits
from tests.fuzz import scaled

triples = st.sets(st.tuples(st.integers(0, 11), st.integers(0, 2), st.integers(0, 11)), max_size=60)


@settings(max_examples=scaled(100), deadline=None)
@given(triples, st.sampled_from(["out", "in", "both"]), st.sampled_from(["direct", "hashed", "spans"]))
def test_columns_hold_saturated_counts(data: Any, direction: Any, layer: Any) -> None:
    s, p, o = (list(column) for column in zip(*data, strict=True)) if data else ([], [], [])
    graph = DataGraph(ArraySource(s, p, o, 12, type_label=0), layer=layer)
    column = graph.signature(1, direction)
    assert column.dtype == np.uint32
    for vertex in range(12):
        near = {b for a, label, b in data if (a, label) == (vertex, 1) and direction != "in"}
        near |= {a for a, label, b in data if (b, label) == (vertex, 1) and direction != "out"}
        counts = [0] * 16
        counts[0] = len(near)
        for u in near:
            for label in (b for a, p, b in data if (a, p) == (u, 0)):
                counts[bucket(label)] += 1
        assert int(column[vertex]) == sum((0, 1, 3)[min(count, 2)] << 2 * i for i, count in enumerate(counts))


@pytest.mark.parametrize("label", [0, 1, 2**30, 2**40])
def test_labels_never_share_the_counter_of_all_neighbours(label: int) -> None:
    assert 1 <= bucket(label) <= 15


def test_a_requirement_asks_for_two_only_where_two_are_certain() -> None:
    person = (5,)
    assert required_bits([person, person], at_least_two=True) == 0b11 | 0b11 << 2 * bucket(5)
    assert required_bits([person, person], at_least_two=False) == 0b01 | 0b01 << 2 * bucket(5)
    assert required_bits([person, ()], at_least_two=True) == 0b11 | 0b01 << 2 * bucket(5)
