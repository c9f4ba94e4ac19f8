"""Closures of edge labels against the paths between each two vertices, one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.changes import Changes
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.degree_sketch import IN, OUT, DegreeSketch
from graphdb.storage.graph.derived.closure import Closure, closure_of
from tests.fuzz import scaled

TYPE, LABEL, OTHER = 0, 1, 2
RESOURCES = 16
CLASS = 3

Pairs = set[tuple[int, int]]

forests = st.integers(2, 11).flatmap(
    lambda n: st.tuples(
        st.permutations(range(4, 4 + n)),
        st.lists(st.one_of(st.none(), st.integers(0, n - 2)), min_size=n - 1, max_size=n - 1),
        st.booleans(),
    )
)


def edges_of(forest: Any) -> Pairs:
    """Edges from each vertex to an earlier one, or back from that: a forest."""
    order, parents, upwards = forest
    found = {(order[i + 1], order[p % (i + 1)]) for i, p in enumerate(parents) if p is not None}
    return found if upwards else {(b, a) for a, b in found}


def paths(edges: Pairs, low: int, high: int) -> Counter[tuple[int, int]]:
    """How many trails of so many edges there are between each two vertices."""
    found: Counter[tuple[int, int]] = Counter()

    def go_on(start: int, at: int, taken: tuple[tuple[int, int], ...]) -> None:
        if len(taken) >= low:
            found[start, at] += 1
        for edge in edges if len(taken) < high else ():
            if edge[0] == at and edge not in taken:
                go_on(start, edge[1], (*taken, edge))

    for start in range(RESOURCES):
        go_on(start, start, ())
    return found


def graph_of(edges: Pairs, layer: Any = None) -> DataGraph:
    typed = {(v, CLASS) for v in range(4, RESOURCES, 3)}
    rows = [(a, LABEL, b) for a, b in edges] + [(a, TYPE, b) for a, b in typed]
    s, p, o = zip(*rows, strict=True)
    return DataGraph(ArraySource(s, p, o, RESOURCES, 2, TYPE), layer=layer)


def pairs_of(graph: DataGraph, number: int, direction: Any) -> list[tuple[int, int]]:
    partition = graph.partition((number,), direction)
    return [(v, int(u)) for v in range(graph.vertices) for u in partition.neighbours_of(v)]


lengths = st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(1, 6)))


@settings(max_examples=scaled(120), deadline=None)
@given(forests, lengths, st.sampled_from(["direct", "hashed", None]))
def test_a_forest_has_the_closure_of_its_paths(forest: Any, length: Any, layer: Any) -> None:
    edges, (low, high) = edges_of(forest), length
    graph = graph_of(edges, layer)
    number = graph.closure(LABEL, low, high)
    if not edges:
        assert number is None
        return
    assert number is not None
    want = paths(edges, low, 99 if high is None else high)
    assert max(want.values(), default=1) == 1
    assert pairs_of(graph, number, "out") == sorted(want)
    assert pairs_of(graph, number, "in") == sorted((b, a) for a, b in want)
    assert pairs_of(graph, number, "both") == sorted({*want, *((b, a) for a, b in want)})
    starts, ends = (Counter(pair[i] for pair in want) for i in (0, 1))
    fresh, beside = graph_of(edges, layer), graph_of(edges, layer)  # have no partition of the closure yet
    assert fresh.closure(LABEL, low, high) == beside.closure(LABEL, low, high) == number
    with_none = beside.closure(LABEL, 0, high)  # paths of the same lengths, and those of none
    assert with_none is not None
    beside.partition((with_none,), "out")
    beside.partition((with_none,), "in")
    for each in (fresh, graph, beside):
        known = each.statistics((number,))
        assert (known.triples, known.resource_triples) == (len(want), len(want))
        assert (known.subjects, known.objects) == (len(starts), len(ends))
        assert (known.max_out_degree, known.max_in_degree) == tuple(max(c.values(), default=0) for c in (starts, ends))
        assert each.has_loops((number,)) == any(a == b for a, b in want)
        for direction, degrees in ((OUT, starts), (IN, ends)):
            assert each.degrees((number,), direction) == DegreeSketch.of(np.array([*degrees.values()], np.int64))
            members = [degrees[v] for v in range(4, RESOURCES, 3) if degrees[v]]
            assert each.at_class(number, direction, CLASS) == (sum(members), len(members))
    assert not fresh.has_partition((number,), "in")
    assert not fresh.has_partition((number,), "out")
    assert pairs_of(beside, number, "out") == sorted(want)
    assert pairs_of(beside, number, "in") == sorted((b, a) for a, b in want)


@settings(max_examples=scaled(120), deadline=None)
@given(forests, lengths, st.sets(st.integers(4, RESOURCES - 1)), st.sampled_from(["direct", "hashed", None]))
def test_a_closure_within_a_label_has_the_paths_to_its_vertices(
    forest: Any, length: Any, members: set[int], layer: Any
) -> None:
    """Where two of them are above one vertex there is none."""
    edges, (low, high) = edges_of(forest), length
    if not edges:
        return
    rows = [(a, LABEL, b) for a, b in edges] + [(a, TYPE, CLASS) for a in members]
    s, p, o = zip(*rows, strict=True)
    graph = DataGraph(ArraySource(s, p, o, RESOURCES, 2, TYPE), layer=layer)
    upwards = graph.upwards(LABEL) == "out"
    above = {pair if upwards else pair[::-1] for pair in paths(edges, 0, 99)}
    several = any(a != b and a in members and b in members for a, b in above)
    number = graph.closure(LABEL, low, high, CLASS)
    if several:
        assert number is None
        return
    assert number is not None
    assert number != graph.closure(LABEL, low, high)
    want = {pair for pair in paths(edges, low, 99 if high is None else high) if pair[1 if upwards else 0] in members}
    starts, ends = (Counter(pair[i] for pair in want) for i in (0, 1))
    known = graph.statistics((number,))  # without a partition
    assert (known.triples, known.subjects, known.objects) == (len(want), len(starts), len(ends))
    assert pairs_of(graph, number, "out") == sorted(want)
    assert pairs_of(graph, number, "in") == sorted((b, a) for a, b in want)
    assert pairs_of(graph, number, "both") == sorted({*want, *((b, a) for a, b in want)})
    assert graph.has_loops((number,)) == any(a == b for a, b in want)


def test_numbers_say_what_they_are_the_closure_of() -> None:
    for label in (0, 7, (1 << 23) - 1, 1 << 32):
        for low, high in ((0, None), (1, 3), (62, 62)):
            for within in (None, 0, 9, (1 << 24) - 1):
                closure = Closure(label, low, high, within)
                if within is None or label < 1 << 23:
                    assert closure.number is not None
                    assert closure_of(closure.number) == closure
                else:
                    assert closure.number is None
    assert Closure(1, 0, None, 1 << 24).number is None


any_edges = st.sets(st.tuples(st.integers(4, 10), st.integers(4, 10)), min_size=1, max_size=8)


@settings(max_examples=scaled(150), deadline=None)
@given(any_edges)
def test_where_two_vertices_have_several_paths_there_is_none(edges: Pairs) -> None:
    number = graph_of(edges).closure(LABEL, 0, None)
    several = max(paths(edges, 0, 99).values()) > 1  # a way round is one more path from a vertex to itself
    if several:
        assert number is None
    if any(max(Counter(edge[i] for edge in edges).values()) == 1 for i in (0, 1)):
        assert (number is None) == several


def test_a_long_chain_has_none_and_short_steps_along_it_have() -> None:
    count = 6_000
    chain = np.arange(count)
    source = ArraySource(chain[:-1] + 1, np.zeros(count - 1, np.int64), chain[1:] + 1, count + 1)
    graph = DataGraph(source)
    assert graph.closure(0, 0, None) is None
    number = graph.closure(0, 1, 3)
    assert number is not None
    assert graph.partition((number,), "out").neighbours_of(7).tolist() == [8, 9, 10]
    assert DataGraph(source, memory_budget_bytes=4 << 10).closure(0, 1, 3) is None


@settings(max_examples=scaled(80), deadline=None)
@given(forests, lengths, st.integers(0, 3), st.booleans(), st.sampled_from([None, CLASS]), st.booleans())
def test_closures_follow_changes(
    forest: Any, length: Any, new: int, touched: bool, within: int | None, labelled: bool
) -> None:
    """After vertices and edges came, the closure is the one that is derived from nothing."""
    edges, (low, high) = edges_of(forest), length
    before = graph_of(edges)
    number = before.closure(LABEL, low, high, within)
    if number is None:
        return
    for direction in ("out", "in"):
        before.partition((number,), direction)  # type: ignore[arg-type]
    added = [(OTHER, 4, RESOURCES + i) for i in range(new)]
    if touched and forest[2]:
        added += [(LABEL, RESOURCES + i, 4) for i in range(new)]
    if labelled:
        added += [(TYPE, RESOURCES + i, CLASS if i == 1 else OTHER) for i in range(new)]
    rows = [(a, LABEL, b) for a, b in edges] + [(v, TYPE, CLASS) for v in range(4, RESOURCES, 3)]
    s, p, o = zip(*rows, *((a, label, b) for label, a, b in added), strict=True)
    fresh, after = (DataGraph(ArraySource(s, p, o, RESOURCES + new, 2, TYPE)) for _ in range(2))
    after.follow(before, [Changes(added=np.array(added, np.int64).reshape(-1, 3))])
    found = fresh.closure(LABEL, low, high, within)
    assert after.closure(LABEL, low, high, within) == found
    assert found == number or (labelled and within is not None)
    for direction in ("out", "in") if found == number else ():
        assert pairs_of(after, number, direction) == pairs_of(fresh, number, direction)
