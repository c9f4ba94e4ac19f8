"""Incremental matches are the difference of all matches after a batch and before it, by brute force over both graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from graphdb.common.errors import ExecutionError, NotSupportedError
from graphdb.grammar.syntax import MatchMode
from graphdb.incremental import frame, lists, searches
from graphdb.incremental.changes import Changes, Updates
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import Clause, EdgeTest, PatternEdge, PatternGraph, PatternVertex
from graphdb.storage.graph.array_source import ArraySource
from tests.fuzz import scaled
from tests.oracle import brute
from tests.oracle.strategies import source_of

MODES = (MatchMode.DIFFERENT_NODES, MatchMode.DIFFERENT_EDGES, MatchMode.REPEATABLE_ELEMENTS)
LABELS: tuple[tuple[int, ...] | None, ...] = ((1,), (2,), (1, 2), None, (0, 1, 2), (7,))
Batch = list[tuple[int, int, int, bool]]


Draw = np.random.Generator


def graph(draw: Draw) -> brute.Data:
    """Four to seven resources and a literal or none, with self loops, parallel labels and classes."""
    resources, literals = int(draw.integers(4, 8)), int(draw.integers(2))
    count = int(draw.integers(3, 4 * resources))
    triples = {_edge(draw, resources, resources + literals) for _ in range(count)}
    return brute.Data({(s, p, o) for p, s, o in triples}, resources, literals, 0 if draw.random() < 0.5 else None)


def _edge(draw: Draw, resources: int, vertices: int) -> tuple[int, int, int]:
    label = draw.choice([0, 1, 2, 7, 9], p=[0.1, 0.55, 0.25, 0.05, 0.05])
    return int(label), int(draw.integers(resources)), int(draw.integers(vertices))


def pattern(draw: Draw, data: brute.Data, *, connected: bool = True) -> PatternGraph:
    """A pattern of up to five edges: of one or several labels, of any, in either direction, with loops."""
    if draw.random() < 0.5:
        return (star, symmetric, book)[draw.integers(3)](draw)
    count, clauses = int(draw.integers(1, 5)), int(draw.integers(1, 3))
    ends = [(int(draw.integers(v)), v) for v in range(1, count) if connected or draw.random() < 0.5]
    for _ in range(int(draw.integers(0 if ends or not connected else 1, 3))):
        ends.append((int(draw.integers(count)), int(draw.integers(count))))
    edges = []
    for e, k in enumerate(draw.permutation(len(ends))):
        a, b = ends[k] if draw.random() < 0.5 else ends[k][::-1]
        labels = LABELS[draw.choice(len(LABELS), p=[0.5, 0.1, 0.1, 0.15, 0.1, 0.05])]
        edges.append(PatternEdge(f"e{e}", a, b, labels, draw.random() < 0.6, int(draw.integers(clauses))))
    members = []
    for number in range(clauses):
        own = {end for edge in edges if edge.clause == number for end in (edge.source, edge.target)}
        if not connected:
            own |= {v for v in range(count) if draw.random() < 0.3}
        members.append(Clause(MODES[draw.integers(len(MODES))], tuple(sorted(own))))
    vertices, joined = [], {end for edge in edges for end in (edge.source, edge.target)}
    for v in range(count):
        among = np.flatnonzero(draw.random(data.vertices) < 0.7)
        vertices.append(PatternVertex(f"v{v}", among if draw.random() < 0.3 or v not in joined else None))
    names = [vertex.name for vertex in vertices] + [edge.name for edge in edges]
    outputs = [name for name in names if draw.random() < 0.5] if draw.random() < 0.5 else names
    unequal = ((int(draw.integers(count)), int(draw.integers(count))),) if draw.random() < 0.1 else ()
    if draw.random() < 0.2:  # a triple of label 1 may stand for several edges
        edges = [replace(edge, parallel=edge.labels is None or 1 in edge.labels) for edge in edges]
    return PatternGraph(tuple(vertices), tuple(edges), tuple(members), (), unequal, tuple(outputs))


def star(draw: Draw) -> PatternGraph:
    """An edge with two or three leaves at one end, alike but for their mode."""
    leaves, directed = int(draw.integers(2, 4)), draw.random() < 0.5
    labels = LABELS[draw.choice(len(LABELS), p=[0.5, 0.1, 0.2, 0.2, 0.0, 0.0])]
    ends = [(1, 0), *((1, 2 + leaf) for leaf in range(leaves))]
    parallel = draw.random() < 0.2
    edges = tuple(PatternEdge(f"e{e}", a, b, labels, directed, 0, parallel) for e, (a, b) in enumerate(ends))
    vertices = tuple(PatternVertex(f"v{v}") for v in range(len(ends) + 1))
    clause = Clause(MODES[draw.integers(len(MODES))], tuple(range(len(vertices))))
    outputs = [vertex.name for vertex in vertices] + [edge.name for edge in edges if draw.random() < 0.2]
    return PatternGraph(vertices, edges, (clause,), outputs=tuple(outputs))


def book(draw: Draw) -> PatternGraph:
    """A path or a triangle, all or two of whose vertices several others are joined with, and some with one of these."""
    spine, pages = int(draw.integers(2, 4)), int(draw.integers(2, 4))
    labels = LABELS[draw.choice(len(LABELS), p=[0.7, 0.1, 0.1, 0.1, 0.0, 0.0])]
    ends = [(v, v + 1) for v in range(spine - 1)] + ([(0, 2)] if spine == 3 and draw.random() < 0.4 else [])
    joined = range(spine if draw.random() < 0.5 else 2)
    ends += [(page, v) for page in range(spine, spine + pages) for v in joined]
    if draw.random() < 0.3:
        ends.append((int(draw.integers(spine + pages)), spine + pages))
    directed = draw.random() < 0.5
    edges = [PatternEdge(f"e{e}", *ends[k], labels, directed, 0) for e, k in enumerate(draw.permutation(len(ends)))]
    vertices = tuple(PatternVertex(f"v{v}") for v in range(1 + max(max(pair) for pair in ends)))
    clause = Clause(MODES[draw.choice(3, p=[0.6, 0.2, 0.2])], tuple(range(len(vertices))))
    outputs = [vertex.name for vertex in vertices[: spine if draw.random() < 0.3 else None]]
    return PatternGraph(vertices, tuple(edges), (clause,), outputs=tuple(outputs))


def square(draw: Draw, data: brute.Data) -> PatternGraph:
    """A square with one or two vertices beside it, and a diagonal or none: of some labels, candidates and directions."""
    ends = [(0, 1), (1, 2), (0, 3), (3, 2), (int(draw.integers(4)), 4)]
    if draw.random() < 0.4:
        ends.append((int(draw.integers(5)), 5) if draw.random() < 0.6 else (0, 2))
    labels, others = (LABELS[draw.choice(3, p=[0.8, 0.1, 0.1])] for _ in range(2))
    directed = draw.random() < 0.5
    edges = []
    for e, k in enumerate(draw.permutation(len(ends))):
        edges.append(PatternEdge(f"e{e}", *ends[k], labels if k in (0, 2) else others, directed, 0))
    among = [np.flatnonzero(draw.random(data.vertices) < 0.7) if draw.random() < 0.3 else None for _ in range(6)]
    among[3] = among[1] if draw.random() < 0.8 else among[3]
    vertices = tuple(PatternVertex(f"v{v}", among[v]) for v in range(1 + max(max(pair) for pair in ends)))
    clause = Clause(MODES[draw.choice(3, p=[0.6, 0.1, 0.3])], tuple(range(len(vertices))))
    outputs = [f"v{v}" for v in range(len(vertices)) if draw.random() < 0.4]
    return PatternGraph(vertices, tuple(edges), (clause,), outputs=tuple(outputs))


def symmetric(draw: Draw) -> PatternGraph:
    """A cycle or a clique, with a vertex beside it or none: automorphisms map its edges to each other."""
    count, directed = int(draw.integers(2, 5)), draw.random() < 0.3
    ends = [(v, (v + 1) % count) for v in range(count)] if directed or draw.random() < 0.5 else []
    ends = ends or [(a, b) for a in range(count) for b in range(a)]
    ends = [pair if directed or draw.random() < 0.5 else pair[::-1] for pair in ends]
    if draw.random() < 0.3:
        ends.append((0, count))
    parallel = draw.random() < 0.2
    edges = tuple(PatternEdge(f"e{e}", a, b, (1,), directed, 0, parallel) for e, (a, b) in enumerate(ends))
    vertices = tuple(PatternVertex(f"v{v}") for v in range(1 + max(max(pair) for pair in ends)))
    clause = Clause(MODES[draw.integers(len(MODES))], tuple(range(len(vertices))))
    outputs = [*(vertex.name for vertex in vertices), *(edge.name for edge in edges)]
    return PatternGraph(vertices, edges, (clause,), outputs=tuple(outputs))


def batch(draw: Draw, data: brute.Data) -> Batch:
    """Updates that insert and delete, also what is there or not, and the same edge again and again."""
    found: Batch = []
    there = sorted((p, s, o) for s, p, o in data.triples)
    for _ in range(int(draw.integers(0, 10))):
        kind = draw.random()
        if found and kind < 0.2:
            edge = found[draw.integers(len(found))][:3]
        elif there and kind < 0.5:
            edge = there[draw.integers(len(there))]
        else:
            edge = _edge(draw, data.resources, data.vertices)
        found.append((*edge, bool(draw.random() < 0.6)))
    return found


def updates(batch: Batch) -> Updates:
    columns = zip(*batch, strict=True) if batch else ([], [], [], [])
    return Updates(*(np.array(list(column), np.int64) for column in columns))


def applied(data: brute.Data, batch: Batch) -> brute.Data:
    triples = set(data.triples)
    for p, s, o, inserted in batch:
        (triples.add if inserted else triples.discard)((s, p, o))
    return brute.Data(triples, data.resources, data.vertices - data.resources, data.type_label)


def all_matches(pattern: PatternGraph, data: brute.Data) -> Counter[tuple[tuple[str, int], ...]]:
    return Counter(tuple(sorted(match.items())) for match in brute.matches(pattern, data))


def expected(pattern: PatternGraph, before: brute.Data, after: brute.Data) -> tuple[Counter[Any], Counter[Any]]:
    """Rows gained and lost: of whole matches, of which the outputs are what is compared."""
    old, new = all_matches(pattern, before), all_matches(pattern, after)
    return _rows(pattern, new - old), _rows(pattern, old - new)


def _rows(pattern: PatternGraph, matches: Counter[tuple[tuple[str, int], ...]]) -> Counter[Any]:
    rows: Counter[Any] = Counter()
    for match, count in matches.items():
        row = dict(match)
        rows[tuple(row[name] for name in pattern.outputs)] += count
    return rows


def found(changes: Changes) -> tuple[Counter[Any], Counter[Any]]:
    added, removed = (Counter(map(tuple, rows.tolist())) for rows in changes)
    return added, removed


@settings(max_examples=scaled(300), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
@example(79885)
def test_changes_are_the_difference_of_all_matches(seed: int) -> None:
    draw = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "LEAST_MARKED", int(draw.choice([1, 2, 24])))
        compare(draw, IncrementalMatcher)


@settings(max_examples=scaled(100), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
def test_squares_are_counted_in_pairs(seed: int) -> None:
    """On one thread and on several."""
    draw = np.random.default_rng(seed)
    data, threads = graph(draw), int(draw.choice([1, 3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "FEWEST", 1)
        patch.setattr("graphdb.incremental.matcher.FEWEST", 0)
        make = partial(IncrementalMatcher, threads=threads)
        compare(draw, make, data, [square(draw, data) for _ in range(2)])


def test_which_squares_are_counted_in_pairs() -> None:
    """Where the two that may be exchanged are bound by the same lists, and what must differ of one must of the other."""
    tailed = _pattern([(0, 1), (1, 2), (0, 3), (3, 2), (4, 0)])
    chorded = _pattern([(0, 1), (1, 2), (0, 3), (3, 2), (4, 0), (4, 1)])
    for own, pairs in ((tailed, True), (chorded, False)):
        program = IncrementalMatcher(ArraySource([0], [1], [1], 9), [own])._programs[0]
        steps = program.tables[frame.STEPS]
        assert bool((steps[:, 12] == frame.DISTINCT_PAIRS).any()) is pairs


def test_vertices_that_may_be_exchanged_are_bound_in_one_order() -> None:
    """Of a clique those that are not the changed edge's, nor the last one, which is only counted."""
    four, five = ([(a, b) for b in range(count) for a in range(b)] for count in (4, 5))
    for ends, above, copies in ((four, False, 12), (five, True, 40)):
        own = _pattern(ends)
        own = replace(own, edges=tuple(replace(edge, directed=False) for edge in own.edges))
        matcher = IncrementalMatcher(ArraySource([0], [1], [1], 9), [own])
        tables = matcher._programs[0].tables
        assert (tables[frame.CHECKS][:, 0] == frame.ABOVE).any() == above
        assert tables[frame.PLANS][:, 12].tolist() == [copies] * len(tables[frame.PLANS])


def test_a_search_that_was_stopped_leaves_no_pairs() -> None:
    rng = np.random.default_rng(7)
    edges = np.unique(rng.integers(0, 60, (1500, 2)), axis=0)
    own = _pattern([(0, 1), (1, 2), (0, 3), (3, 2), (4, 0)])
    matcher = IncrementalMatcher(ArraySource(edges[:, 0], np.ones(len(edges)), edges[:, 1], 60), [own])
    changed = Updates(np.ones(200), *rng.integers(0, 60, (2, 200)), np.ones(200))
    search = matcher._searches._pairs[0][0].frame(0)
    before = matcher.count(changed, [200])
    matcher.count(changed._replace(inserted=np.zeros(200)), [200])
    search._counts[:5], search._paired[:5], search.cells[frame.PAIRED_COUNT] = 3, np.arange(5), 5  # as if within a step
    gone = set(zip(*changed[1:3], strict=True)) & set(map(tuple, edges.tolist()))
    there = np.array(sorted(gone), np.int64).reshape(-1, 2)
    matcher.count(Updates(np.ones(len(there)), *there.T, np.ones(len(there))), [len(there)])
    assert np.array_equal(matcher.count(changed, [200]), before)


def compare(
    draw: Draw,
    make: Callable[..., IncrementalMatcher],
    data: brute.Data | None = None,
    standing: list[PatternGraph] | None = None,
) -> None:
    """Have matchers, made of a source and patterns, follow random batches."""
    data = data or graph(draw)
    if standing is None:
        standing = [pattern(draw, data, connected=bool(draw.random() < 0.8)) for _ in range(draw.integers(1, 4))]
    matcher, counting = (make(source_of(data), standing) for _ in range(2))
    weighing = make(source_of(data), standing, counted=True)
    counts, numbers, stream = [], [], list[Batch]()
    for _ in range(draw.integers(1, 4)):
        stream.append(batch(draw, data))
        after, changed = applied(data, stream[-1]), updates(stream[-1])
        wanted = [expected(own, data, after) for own in standing]
        numbers.append([[added.total(), removed.total()] for added, removed in wanted])
        assert _rolled_back(matcher, changed) == wanted
        assert [found(change) for change in matcher.apply(changed)] == wanted, "also after a rollback"
        assert [numbered(change) for change in weighing.apply(changed)] == wanted
        counts.append(counting.count(changed, [len(stream[-1])])[0].tolist())
        data = after
    assert counts == numbers
    again = IncrementalMatcher(source_of(data), standing)
    matcher._catch_up()
    assert np.array_equal(matcher._lists._table, again._lists._table), "vertices are encoded as at first"
    absent = {edge[:3] for batch in stream for edge in batch} - {(p, s, o) for s, p, o in data.triples}
    assert not matcher.count(updates([(*edge, False) for edge in absent]), [len(absent)]).any()


def numbered(changes: Changes) -> tuple[Counter[Any], Counter[Any]]:
    """The changes of a matcher that counts."""
    sides: tuple[Counter[Any], Counter[Any]] = Counter(), Counter()
    for side, rows in zip(sides, changes, strict=True):
        for *row, number in rows.tolist():
            assert number > 0
            side[tuple(row)] += number
    return sides


def _rolled_back(matcher: IncrementalMatcher, changed: Updates) -> list[tuple[Counter[Any], Counter[Any]]]:
    """The changes of a batch that its consumer does not accept."""
    try:
        with matcher.batch(changed) as changes:
            raise Interrupted
    except Interrupted:
        return [found(change) for change in changes]


class Interrupted(Exception):
    """What a consumer of changes may raise."""


def test_several_batches_are_counted_in_one_call() -> None:
    """Also where nothing concerns a pattern, and where all space must be made on the way."""
    rng = np.random.default_rng(5)
    vertices = 300
    edges = np.unique(rng.integers(0, vertices, (4000, 2)), axis=0)
    rng.shuffle(edges)
    triangle = _pattern([(0, 1), (1, 2), (2, 0)])
    empty = ArraySource([], [], [], vertices)
    matcher = IncrementalMatcher(empty, [triangle])
    reserved = 0
    reserve = matcher._lists.reserve

    def counted() -> None:
        nonlocal reserved
        reserved += 1
        reserve()

    matcher._lists.reserve = counted  # type: ignore[method-assign]
    insert = Updates(np.ones(len(edges)), edges[:, 0], edges[:, 1], np.ones(len(edges)))
    ends = np.append(np.arange(100, len(edges), 100), len(edges))
    counts = matcher.count(insert, ends)
    assert reserved > 0
    adjacency = np.zeros((vertices, vertices), np.int64)
    adjacency[edges[:, 0], edges[:, 1]] = 1
    np.fill_diagonal(adjacency, 0)
    triangles = int(np.trace(adjacency @ adjacency @ adjacency))
    assert counts.sum(axis=0).tolist() == [[triangles, 0]]
    delete = insert._replace(inserted=np.zeros(len(edges)))
    assert matcher.count(delete, [17, 17, len(edges)]).sum(axis=0).tolist() == [[0, triangles]]


def test_a_hub_moves_as_it_grows_and_its_blocks_are_used_again() -> None:
    vertices = 2_000
    star = _pattern([(0, 1), (0, 2)])
    matcher = IncrementalMatcher(ArraySource([], [], [], vertices), [star])
    sizes, degree = [], vertices - 1
    for hub in (0, 5):
        spokes = np.delete(np.arange(vertices), hub)
        insert = Updates(np.ones(degree), np.full(degree, hub), spokes, np.ones(degree))
        assert matcher.count(insert, [degree // 3, degree]).sum(axis=0).tolist() == [[degree * (degree - 1), 0]]
        delete = insert._replace(inserted=np.zeros(degree))
        assert matcher.count(delete, [degree]).tolist() == [[[0, degree * (degree - 1)]]]
        sizes.append(matcher._lists.bytes)
    assert sizes[0] == sizes[1]


def test_a_search_can_be_stopped_and_leaves_nothing() -> None:
    vertices = 400
    path = _pattern([(0, 1), (1, 2), (2, 3), (3, 4)], MatchMode.REPEATABLE_ELEMENTS)
    matcher = IncrementalMatcher(ArraySource([0], [1], [0], vertices), [path])
    rng = np.random.default_rng(1)
    edges = np.unique(rng.integers(0, vertices, (9000, 2)), axis=0)
    insert = Updates(np.ones(len(edges)), edges[:, 0], edges[:, 1], np.ones(len(edges)))
    calls = 0

    def stop() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Interrupted

    for action in (lambda: matcher.apply(insert, stop), lambda: matcher.count(insert, [len(edges)], stop)):
        calls = 0
        with pytest.raises(Interrupted):
            action()
        nothing = insert._replace(inserted=np.zeros(len(edges)))
        keep = ~((edges[:, 0] == 0) & (edges[:, 1] == 0))
        nothing = Updates(*(np.asarray(column)[keep] for column in nothing))
        assert not matcher.count(nothing, [len(edges) - 1]).any(), "nothing was there to delete"
    adjacency = np.zeros((vertices, vertices), np.int64)
    adjacency[edges[:, 0], edges[:, 1]] = 1
    adjacency[0, 0] = 1
    counts = matcher.count(insert, [len(edges)])
    assert counts.tolist() == [[[int(np.linalg.matrix_power(adjacency, 4).sum()) - 1, 0]]]


def test_what_is_not_supported_is_refused() -> None:
    source, pattern = ArraySource([0], [1], [1], 3), _pattern([(0, 1)])
    many = _pattern([(v, v + 1) for v in range(64)])
    tested = replace(pattern, edge_tests=(EdgeTest(0, 1, None, True, True),))
    alone = replace(pattern, vertices=(*pattern.vertices, PatternVertex("v2")))
    limited = replace(pattern, limit=3)
    for refused in (many, tested, alone, limited):
        with pytest.raises(NotSupportedError):
            IncrementalMatcher(source, [refused])
    assert IncrementalMatcher(source, [_pattern([(v, v + 1) for v in range(63)])])
    assert IncrementalMatcher(source, []).apply(Updates([1], [0], [2], [True])) == []


@pytest.mark.parametrize("end", [-1, 3])
def test_edges_of_no_vertex_are_refused(end: int) -> None:
    matcher = IncrementalMatcher(ArraySource([0], [1], [1], 3), [_pattern([(0, 1)])])
    with pytest.raises(ValueError, match="no vertex"):
        matcher.apply(Updates([1], [end], [0], [True]))
    (change,) = matcher.apply(Updates([1], [2], [0], [True]))
    assert change.added.tolist() == [[2, 0]]


def test_one_batch_at_a_time() -> None:
    matcher = IncrementalMatcher(ArraySource([0], [1], [1], 3), [_pattern([(0, 1)])])
    first, second = Updates([1], [0], [2], [True]), Updates([1], [1], [2], [True])
    with matcher.batch(first) as changes:
        for refused in (lambda: matcher.apply(second), lambda: matcher.count(second, [1])):
            with pytest.raises(ExecutionError, match="under way"):
                refused()
        assert changes[0].added.tolist() == [[0, 2]]
    assert matcher.count(second, [1]).tolist() == [[[1, 0]]]


def test_wide_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vertices that do not fit in 32 bits have lists of their own type: the same kernels."""
    monkeypatch.setattr(lists, "NARROW", 1)
    matcher = IncrementalMatcher(ArraySource([0, 1], [1, 1], [1, 2], 4), [_pattern([(0, 1), (1, 2), (2, 3)])])
    assert matcher._lists.like.dtype == np.int64
    (change,) = matcher.apply(Updates([1, 1], [2, 0], [3, 1], [True, True]))
    assert change.added.tolist() == [[0, 1, 2, 3]]
    assert matcher.count(Updates([1], [0], [1], [False]), [1]).tolist() == [[[0, 1]]]


def _pattern(ends: list[tuple[int, int]], mode: MatchMode = MatchMode.DIFFERENT_NODES) -> PatternGraph:
    """Directed edges of label 1."""
    vertices = tuple(PatternVertex(f"v{v}") for v in range(1 + max(max(pair) for pair in ends)))
    edges = tuple(PatternEdge(f"e{e}", a, b, (1,), True, 0) for e, (a, b) in enumerate(ends))
    clause = Clause(mode, tuple(range(len(vertices))))
    return PatternGraph(vertices, edges, (clause,), outputs=tuple(vertex.name for vertex in vertices))
