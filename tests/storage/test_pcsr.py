"""Partitions against sets of triples, whatever their layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.execute.search.set_kernels import add_degrees
from graphdb.storage.graph import data_graph
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import GROUP_BYTES, OPPOSITE, build_partition
from tests.fuzz import scaled

TYPE = 0
RESOURCES, LITERALS = 20, 5

triples = st.sets(
    st.tuples(st.integers(0, RESOURCES - 1), st.integers(0, 3), st.integers(0, RESOURCES + LITERALS - 1)), max_size=120
)


@settings(max_examples=scaled(150), deadline=None)
@given(
    triples,
    st.sampled_from([None, (0,), (1,), (1, 2), (0, 1, 3), (9,), ()]),
    st.sampled_from(["out", "in", "both"]),
    st.sampled_from(["direct", "hashed", "spans", None]),
    st.sampled_from([np.int32, np.int64]),
    st.booleans(),
)
def test_neighbours_and_codes(data: Any, labels: Any, direction: Any, layer: Any, dtype: Any, out_before: bool) -> None:
    s, p, o = (list(column) for column in zip(*data, strict=True)) if data else ([], [], [])
    graph = DataGraph(ArraySource(s, p, o, RESOURCES, LITERALS, TYPE), dtype=dtype, layer=layer)
    if out_before:  # then others of a label are made of it
        graph.partition(labels, "out")
    partition = graph.partition(labels, direction)
    want: dict[int, dict[int, list[int]]] = {}
    for a, label, b in data:
        if (label == TYPE or b >= RESOURCES) if labels is None else label not in labels:
            continue
        if direction != "in":
            want.setdefault(a, {}).setdefault(b, []).append(2 * label)
        if direction == "in" or (direction == "both" and a != b):
            want.setdefault(b, {}).setdefault(a, []).append(2 * label + 1)
    assert partition.neighbours.dtype == dtype
    assert partition.keys.tolist() == sorted(want)
    reached = sorted({neighbour for near in want.values() for neighbour in near})
    assert graph.keys(labels, OPPOSITE[direction]).tolist() == reached
    assert layer == "spans" or direction == "both" or out_before or not graph.has_partition(labels, OPPOSITE[direction])
    assert partition.max_degree == max(map(len, want.values()), default=0)
    together = [u for vertex in range(RESOURCES + LITERALS) for u in sorted(want.get(vertex, {}))]
    everyone = partition.neighbours_of_all(np.arange(RESOURCES + LITERALS), len(together))
    assert everyone is not None
    assert everyone.tolist() == together
    for vertex in range(RESOURCES + LITERALS):
        near = want.get(vertex, {})
        assert partition.neighbours_of(vertex).tolist() == sorted(near)
        if partition.codes is not None:
            assert [partition.codes_of(vertex, u).tolist() for u in sorted(near)] == [
                sorted(near[u]) for u in sorted(near)
            ]
            assert partition.codes_of(vertex, RESOURCES + LITERALS).tolist() == []
    if partition.codes is not None:
        assert partition.simple == all(len(codes) == 1 for near in want.values() for codes in near.values())


@pytest.mark.parametrize("layer", ["direct", "hashed", None])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("vertices", [30, 900, 20_000])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_many_edges_in_one_direction(direction: Any, vertices: int, dtype: Any, layer: Any) -> None:
    """They are counted, not sorted, unless they are few for so many vertices."""
    draw = np.random.default_rng(vertices)
    pairs = np.unique(draw.integers(0, [vertices // 2, vertices], (400, 2)), axis=0)
    partition = build_partition(2, *pairs.T.copy(), direction, vertices, dtype, layer)
    want: dict[int, list[int]] = {}
    for subject, object in pairs.tolist():
        vertex, neighbour = (object, subject) if direction == "in" else (subject, object)
        want.setdefault(vertex, []).append(neighbour)
    assert partition.keys.tolist() == sorted(want)
    assert partition.neighbours.dtype == dtype
    assert partition.max_degree == max(map(len, want.values()))
    assert partition.loops == any(a == b for a, b in pairs.tolist())
    assert partition.layer == layer or layer is None
    assert all(partition.neighbours_of(vertex).tolist() == want.get(vertex, []) for vertex in range(vertices))


@pytest.mark.parametrize("count", [1, 7, 8, 1000, 5000])
def test_hashed_groups_overflow_into_empty_ones(count: int) -> None:
    """Every key is found again, and so is the absence of the others."""
    subjects = np.random.default_rng(count).choice(10 * count, count, replace=False)
    subjects.sort()
    partition = build_partition(3, subjects, subjects[::-1].copy(), "out", 10 * count, layer="hashed")
    assert partition.offsets.nbytes == GROUP_BYTES * count
    assert [int(partition.neighbours_of(v)[0]) for v in subjects] == subjects[::-1].tolist()
    absent = np.setdiff1d(np.arange(10 * count), subjects)
    assert all(len(partition.neighbours_of(int(v))) == 0 for v in absent)


def test_the_layer_follows_how_many_vertices_the_label_touches() -> None:
    few, many = np.arange(0, 100_000, 20_000), np.arange(0, 100_000, 20)
    assert build_partition(1, few, few, "out", 100_000).layer == "hashed"
    assert build_partition(1, many, many, "out", 100_000).layer == "direct"


@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("several", [False, True])
def test_offsets_end_with_the_last_vertex_that_has_neighbours(direction: Any, several: bool) -> None:
    """Literals, whose ids come last, have no places in lists among resources; whoever asks for them finds nothing."""
    resources, vertices = 300, 100_000
    subjects, objects = np.unique(np.random.default_rng(1).integers(0, resources, (900, 2)), axis=0).T.copy()
    labels: Any = np.arange(len(subjects)) % 2 if several else 1
    partition = build_partition(labels, subjects, objects, direction, vertices)
    assert partition.layer == "direct"
    assert partition.groups == int(partition.keys[-1]) + 1 <= resources
    assert len(partition.offsets) == partition.groups + 1
    behind = np.array([0, partition.groups - 1, partition.groups, partition.groups + 1, partition.groups + 2])
    found = partition.ranges_of(behind)[1]
    assert found.tolist() == [len(partition.neighbours_of(int(vertex))) for vertex in behind]
    assert found[1] > 0 == found[2:].sum() == len(partition.neighbours_of(vertices - 1))
    # As kernels read it: a list of all neighbours stands where the next offsets would.
    cells = np.append(partition.offsets, [0, len(partition.neighbours)] * 2)
    fenced, degrees = replace(partition, offsets=cells[: len(partition.offsets)]), np.zeros(len(behind), np.int64)
    add_degrees(np.array([fenced.row], np.int64).ctypes.data, 0, behind, degrees)
    assert degrees.tolist() == found.tolist()


def test_the_cache_keeps_to_its_budget_and_gives_the_same_again() -> None:
    source = ArraySource(np.arange(100), np.repeat([1, 2], 50), np.arange(100)[::-1], 100)
    graph = DataGraph(source, memory_budget_bytes=1)
    first = graph.partition((1,), "out")
    assert graph.partition((1,), "out") is first
    graph.partition((2,), "out")
    again = graph.partition((1,), "out")
    assert again is not first
    np.testing.assert_array_equal(again.neighbours, first.neighbours)
    assert graph.cached_bytes == again.nbytes


@settings(max_examples=scaled(50), deadline=None)
@given(triples, st.sampled_from([0, 3, 1000]))
def test_universe(data: Any, looked_for: int) -> None:
    """Whether all triples are read for it, or those are looked for that have no vertex label."""
    s, p, o = (list(column) for column in zip(*data, strict=True)) if data else ([], [], [])
    graph = DataGraph(ArraySource(s, p, o, RESOURCES, LITERALS, TYPE))
    want = {a for a, _, _ in data} | {b for _, label, b in data if label != TYPE and b < RESOURCES}
    with patch.object(data_graph, "_LOOKED_FOR", looked_for):
        assert graph.universe().tolist() == sorted(want)


def test_universe_and_members() -> None:
    """A class is no member of the universe for being one; a subject of nothing but a literal is."""
    #                        type: 0 -> class 3        knows: 1 -> 2        name: 4 -> literal 6; 5 stands nowhere
    graph = DataGraph(ArraySource([0, 1, 4], [0, 1, 2], [3, 2, 6], 6, 1, type_label=0))
    assert graph.universe().tolist() == [0, 1, 2, 4]
    assert graph.members(3).tolist() == [0]
    assert graph.members(2).tolist() == []


@pytest.mark.parametrize("layer", ["direct", "hashed"])
@pytest.mark.parametrize("skew", [(1, 1), (1, 3), (3, 1)])
def test_many_edges_both_ways(skew: tuple[int, int], layer: Any) -> None:
    """Leaving and entering edges are merged: loops, pairs joined both ways, vertices that only one side has."""
    draw = np.random.default_rng(skew)
    pairs = np.unique(draw.integers(0, np.array(skew) * 20, (200, 2)), axis=0)
    partition = build_partition(7, *pairs.T.copy(), "both", 70, np.int32, layer)
    want: dict[int, dict[int, list[int]]] = {}
    for subject, object in pairs.tolist():
        want.setdefault(subject, {}).setdefault(object, []).append(14)
        if subject != object:
            want.setdefault(object, {}).setdefault(subject, []).append(15)
    assert partition.keys.tolist() == sorted(want)
    assert partition.loops == any(a == b for a, b in pairs.tolist())
    for vertex in range(70):
        near = want.get(vertex, {})
        assert partition.neighbours_of(vertex).tolist() == sorted(near)
        assert [partition.codes_of(vertex, u).tolist() for u in sorted(near)] == [sorted(near[u]) for u in sorted(near)]
