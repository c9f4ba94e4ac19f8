"""Vertices that become candidates, or are so no longer, and new ones: changes are still the difference of all matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from graphdb.grammar.syntax import MatchMode
from graphdb.incremental.changes import CandidateChange, Changes, Updates, VertexChanges
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.storage.graph.array_source import ArraySource
from tests.fuzz import scaled
from tests.incremental import test_matcher as edges
from tests.oracle import brute
from tests.oracle.strategies import source_of

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Standing:
    """Patterns whose candidates are known by conditions, each of some vertices now."""

    def __init__(self, draw: edges.Draw, data: brute.Data) -> None:
        self.conditions = {name: self._some(draw, data.vertices) for name in "ABC"}
        drawn = [edges.pattern(draw, data, connected=False) for _ in range(draw.integers(1, 3))]
        self.known: list[list[str | None]] = []
        self._patterns = drawn
        for pattern in drawn:
            joined = {end for edge in pattern.edges for end in (edge.source, edge.target)}
            names = ["ABC"[draw.integers(3)] for _ in pattern.vertices]
            free = draw.random(len(names)) < 0.4
            self.known.append([None if free[v] and v in joined else name for v, name in enumerate(names)])

    @staticmethod
    def _some(draw: edges.Draw, vertices: int) -> Ints:
        return np.flatnonzero(draw.random(vertices) < draw.choice([0.2, 0.7]))

    @property
    def patterns(self) -> list[PatternGraph]:
        return [
            replace(
                pattern,
                vertices=tuple(
                    PatternVertex(vertex.name, None if name is None else self.conditions[name])
                    for vertex, name in zip(pattern.vertices, known, strict=True)
                ),
            )
            for pattern, known in zip(self._patterns, self.known, strict=True)
        ]

    def change(self, draw: edges.Draw, shift: Sequence[int], vertices: int) -> list[CandidateChange]:
        """Have other vertices fulfil some conditions; ``shift`` says where the vertices of before are now."""
        changes = []
        for name, old in self.conditions.items():
            before = np.array(shift, np.int64)[old]
            after = self._some(draw, vertices) if draw.random() < 0.5 else before
            self.conditions[name] = after
            places = [(p, v) for p, known in enumerate(self.known) for v, own in enumerate(known) if own == name]
            if places:
                place = places[draw.integers(len(places))]
                gained = after if draw.random() < 0.3 else np.setdiff1d(after, before)
                changes.append(CandidateChange(*place, gained, np.setdiff1d(before, after)))
        return changes


def renumbered(data: brute.Data, resources: int, literals: int) -> tuple[brute.Data, list[int]]:
    """The same with more vertices, and where those of before are now."""
    shift = [v if v < data.resources else v - data.resources + resources for v in range(data.vertices)]
    triples = {(s, p, shift[o]) for s, p, o in data.triples}
    return brute.Data(triples, resources, literals, data.type_label), shift


@settings(max_examples=scaled(400), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
def test_changes_of_vertices_and_edges_are_the_difference_of_all_matches(seed: int) -> None:
    compare(np.random.default_rng(seed), IncrementalMatcher)


def compare(draw: edges.Draw, make: Callable[..., IncrementalMatcher]) -> None:
    """Have a matcher, made of a source, patterns and conditions, follow random changes."""
    data = edges.graph(draw)
    standing = Standing(draw, data)
    matcher = make(source_of(data), standing.patterns, standing.known)
    for _ in range(draw.integers(1, 5)):
        before = standing.patterns
        resources = data.resources + int(draw.integers(3)) * int(draw.random() < 0.5)
        literals = data.vertices - data.resources + int(draw.random() < 0.3)
        data, shift = renumbered(data, resources, literals)
        old = [_moved(pattern, shift) for pattern in before]
        changed = standing.change(draw, shift, data.vertices)
        batch = edges.batch(draw, data)
        after = edges.applied(data, batch)
        gained = {int(v) for change in changed for v in np.asarray(change.gained)}
        batch += [(p, s, o, True) for s, p, o in sorted(after.triples) if gained & {s, o}]
        wanted = []
        for earlier, later in zip(old, standing.patterns, strict=True):
            lost, found = edges.all_matches(earlier, data), edges.all_matches(later, after)
            wanted.append((edges._rows(later, found - lost), edges._rows(later, lost - found)))
        vertices = VertexChanges(changed, resources, literals)
        with pytest.raises(edges.Interrupted), matcher.batch(edges.updates(batch), vertices=vertices) as changes:
            raise edges.Interrupted
        assert [edges.found(change) for change in changes] == wanted
        assert _applied(matcher, edges.updates(batch), vertices) == wanted, "also after a rollback"
        data = after
    again = IncrementalMatcher(source_of(data), standing.patterns, standing.known)
    matcher._catch_up()
    assert _candidates(matcher) == _candidates(again), "vertices are encoded as at first"


def _applied(
    matcher: IncrementalMatcher, updates: Updates, vertices: VertexChanges
) -> list[tuple[Counter[Any], Counter[Any]]]:
    changes: list[Changes] = matcher.apply(updates, vertices=vertices)
    return [edges.found(change) for change in changes]


def _moved(pattern: PatternGraph, shift: Sequence[int]) -> PatternGraph:
    """The pattern with the candidates that it had, as they are numbered now."""
    moved = tuple(
        vertex
        if vertex.candidates is None
        else PatternVertex(vertex.name, np.array(shift, np.int64)[vertex.candidates])
        for vertex in pattern.vertices
    )
    return replace(pattern, vertices=moved)


def _candidates(matcher: IncrementalMatcher) -> set[tuple[int, int, int]]:
    """Patterns, vertices of the data graph and the bits that the candidate table has of them."""
    table = matcher._lists._table
    found = set()
    for pattern, number in np.argwhere(table != 0).tolist():
        vertex = int(matcher._lists.vertices.outer(np.array([number]))[0])
        found.add((pattern, vertex, int(table[pattern, number])))
    return found


def test_vertices_of_other_relations_get_lists_of_their_own() -> None:
    """All vertices become candidates that none was before, more of them than any table has space for at first."""
    vertices = 3_000
    spokes = np.arange(1, vertices)
    source = ArraySource(np.zeros(vertices - 1), np.ones(vertices - 1), spokes, vertices)
    pattern = PatternGraph(
        (PatternVertex("a", np.array([0])), PatternVertex("b", np.empty(0, np.int64))),
        (PatternEdge("e", 0, 1, (1,), True, 0),),
        (Clause(MatchMode.DIFFERENT_NODES, (0, 1)),),
        outputs=("a", "b"),
    )
    matcher = IncrementalMatcher(source, [pattern])
    there = Updates(np.ones(vertices - 1), np.zeros(vertices - 1), spokes, np.ones(vertices - 1))
    none = Updates([], [], [], [])
    sizes = []
    for _ in range(3):
        (change,) = matcher.apply(there, vertices=VertexChanges([CandidateChange(0, 1, spokes, [])]))
        assert sorted(change.added.tolist()) == [[0, v] for v in range(1, vertices)]
        (change,) = matcher.apply(none, vertices=VertexChanges([CandidateChange(0, 1, [], spokes)]))
        assert sorted(change.removed.tolist()) == [[0, v] for v in range(1, vertices)]
        sizes.append(matcher._lists.bytes)
    assert sizes[0] == sizes[2], "what is empty is used again"


def test_new_vertices_are_found_and_forgotten() -> None:
    pattern = edges._pattern([(0, 1)])
    matcher = IncrementalMatcher(ArraySource([0], [1], [2], 2, 1), [pattern])
    new = Updates([1, 1], [2, 2], [1, 4], [True, True])
    grown = VertexChanges(resources=3, literals=2)
    with pytest.raises(edges.Interrupted), matcher.batch(new, vertices=grown):
        raise edges.Interrupted
    with pytest.raises(ValueError, match="no vertex"):
        matcher.apply(new)
    (change,) = matcher.apply(new, vertices=grown)
    assert sorted(change.added.tolist()) == [[2, 1], [2, 4]]
    (change,) = matcher.apply(Updates([1, 1], [0, 2], [3, 4], [False, False]), vertices=VertexChanges(resources=3))
    assert sorted(change.removed.tolist()) == [[0, 3], [2, 4]], "the literal that was 2 is 3"
    with pytest.raises(ValueError, match="fewer"):
        matcher.apply(new, vertices=VertexChanges(resources=2))


def test_a_pattern_vertex_without_condition_cannot_change() -> None:
    matcher = IncrementalMatcher(ArraySource([0], [1], [1], 2), [edges._pattern([(0, 1)])])
    with pytest.raises(ValueError, match="without a condition"):
        matcher.apply(Updates([], [], [], []), vertices=VertexChanges([CandidateChange(0, 1, [0], [])]))
