"""Induced matches gained and lost: the difference of all of them after a batch and before it, by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from graphdb.common.errors import NotSupportedError
from graphdb.grammar.syntax import MatchMode
from graphdb.incremental import induced
from graphdb.incremental.changes import CandidateChange, Updates, VertexChanges
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.storage.graph.array_source import ArraySource
from tests.fuzz import scaled
from tests.incremental import test_matcher as plain
from tests.oracle import brute
from tests.oracle.strategies import source_of


def graph(draw: plain.Draw) -> brute.Data:
    """A graph of resources alone."""
    data = plain.graph(draw)
    triples = {triple for triple in data.triples if triple[2] < data.resources}
    return brute.Data(triples, data.resources, 0, data.type_label)


def pattern(draw: plain.Draw, data: brute.Data) -> PatternGraph:
    """A pattern of which most clauses are INDUCED, and no edge binds ``rdf:type``."""
    found = plain.pattern(draw, data, connected=bool(draw.random() < 0.8))
    clauses = tuple(
        replace(clause, mode=MatchMode.INDUCED) if draw.random() < 0.8 else clause for clause in found.clauses
    )
    labels = {label for edge in found.edges for label in edge.labels or ()}
    return pattern(draw, data) if data.type_label in labels else replace(found, clauses=clauses)


@example(1192)  # edges of the pattern are the same one of the graph
@settings(max_examples=scaled(200), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
def test_changes_are_the_difference_of_all_induced_matches(seed: int) -> None:
    draw = np.random.default_rng(seed)
    data = graph(draw)
    standing = [pattern(draw, data) for _ in range(2)]
    matcher, counting = (IncrementalMatcher(source_of(data), standing) for _ in range(2))
    weighing = IncrementalMatcher(source_of(data), standing, counted=True)
    for _ in range(3):
        batch = plain.batch(draw, data)
        after, changed = plain.applied(data, batch), plain.updates(batch)
        wanted = [plain.expected(own, data, after) for own in standing]
        assert plain._rolled_back(matcher, changed) == wanted
        assert [plain.found(change) for change in matcher.apply(changed)] == wanted, "also after a rollback"
        assert [plain.numbered(change) for change in weighing.apply(changed)] == wanted
        numbers = [[added.total(), removed.total()] for added, removed in wanted]
        assert counting.count(changed, [len(batch)])[0].tolist() == numbers
        data = after


def test_another_edge_takes_a_match_and_gives_it_back() -> None:
    """Once, also where several edges come between its vertices at a time."""
    source = ArraySource([0, 1], [1, 1], [1, 2], 4)
    matcher = IncrementalMatcher(source, [path()])
    more = Updates([2, 3, 1, 2], [0, 2, 2, 1], [2, 0, 2, 1], [True] * 4)
    (change,) = matcher.apply(more)
    assert (change.added.tolist(), change.removed.tolist()) == ([], [[0, 1, 2]])
    (change,) = matcher.apply(Updates([2, 3], [0, 2], [2, 0], [False] * 2))
    assert (change.added.tolist(), change.removed.tolist()) == ([], []), "there are loops, still"
    (change,) = matcher.apply(Updates([1, 2], [2, 1], [2, 1], [False] * 2))
    assert (change.added.tolist(), change.removed.tolist()) == ([[0, 1, 2]], [])


def test_a_vertex_that_is_a_candidate_no_longer_takes_its_matches() -> None:
    """Also where an edge that it forbids goes at the same time: the match is no new one then."""
    everything = np.arange(4)
    for edge, before in (([], []), ([2], [])):
        source = ArraySource([0, 1, *([0] if edge else [])], [1, 1, *edge], [1, 2, *([2] if edge else [])], 4)
        own = path()
        own = replace(own, vertices=(replace(own.vertices[0], candidates=everything), *own.vertices[1:]))
        matcher = IncrementalMatcher(source, [own], [["condition", None, None]])
        gone = Updates(edge, [0] * len(edge), [2] * len(edge), [False] * len(edge))
        (change,) = matcher.apply(gone, vertices=VertexChanges([CandidateChange(0, 0, [], [0])]))
        assert (change.added.tolist(), change.removed.tolist()) == (before, [] if edge else [[0, 1, 2]])


def test_what_is_not_supported_is_refused() -> None:
    long = path(induced.MOST_INDUCED + 1)
    for source, refused in (
        (ArraySource([0], [1], [1], 3), long),
        (ArraySource([0], [1], [3], 3, 1), path()),
        (ArraySource([0], [1], [1], 3, type_label=1), path()),
    ):
        with pytest.raises(NotSupportedError, match="INDUCED"):
            IncrementalMatcher(source, [refused])


def path(vertices: int = 3) -> PatternGraph:
    """A directed path of edges of label 1."""
    edges = tuple(PatternEdge(f"e{v}", v, v + 1, (1,), True, 0) for v in range(vertices - 1))
    own = tuple(PatternVertex(f"v{v}") for v in range(vertices))
    clause = Clause(MatchMode.INDUCED, tuple(range(vertices)))
    return PatternGraph(own, edges, (clause,), outputs=tuple(vertex.name for vertex in own))
