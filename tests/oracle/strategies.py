"""Random small data graphs and patterns over them, for Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, EdgeTest, PatternEdge, PatternGraph, PatternVertex
from graphdb.storage.graph.array_source import ArraySource
from tests.oracle.brute import Data

LABELS = (0, 1, 2)
"""Edge labels; label 0 is ``rdf:type`` where the data has it."""


@dataclass(frozen=True)
class Case:
    """A data graph, as the engine and as the oracle see it, and a pattern."""

    source: ArraySource
    data: Data
    pattern: PatternGraph


def source_of(data: Data) -> ArraySource:
    """The same triples as arrays."""
    s, p, o = (list(column) for column in zip(*sorted(data.triples), strict=True)) if data.triples else ([], [], [])
    return ArraySource(s, p, o, data.resources, data.vertices - data.resources, data.type_label)


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    """Up to six resources and two literals, with self loops, parallel labels and classes."""
    resources, literals = draw(st.integers(3, 6)), draw(st.integers(0, 2))
    triple = st.tuples(st.integers(0, resources - 1), st.sampled_from(LABELS), st.integers(0, resources + literals - 1))
    triples = draw(st.sets(triple, min_size=4, max_size=26))
    return Data(triples, resources, literals, draw(st.sampled_from([None, 0, 0])))


@st.composite
def cases(draw: st.DrawFn, most_vertices: int = 4) -> Case:
    """A data graph with a pattern of up to ``most_vertices`` vertices in one to three clauses."""
    data = draw(graphs())
    count = draw(st.integers(1, most_vertices))
    vertex = st.integers(0, count - 1)
    labels = st.one_of(
        st.none(),
        st.sampled_from([(1,), (2,), (0,), (1,)]),
        st.sampled_from([(0, 1), (1, 2), (0, 1, 2), (0, 2), (7,)]),
    )
    clauses = draw(st.integers(1, 2))
    edges = []
    for e in range(draw(st.integers(0, min(count + 2, 5)))):
        source = min(e, count - 1) if draw(st.booleans()) else draw(vertex)
        edges.append(
            PatternEdge(
                f"e{e}", source, draw(vertex), draw(labels), draw(st.booleans()), draw(st.integers(0, clauses - 1))
            )
        )
    modes = st.sampled_from(list(MatchMode))
    members = []
    for number in range(clauses):
        ends = {end for edge in edges if edge.clause == number for end in (edge.source, edge.target)}
        members.append(Clause(draw(modes), tuple(sorted(ends | draw(st.sets(vertex, max_size=count))))))
    vertices = tuple(_vertex(draw, data, v) for v in range(count))
    tests = [
        EdgeTest(draw(vertex), draw(vertex), draw(labels), draw(st.booleans()), draw(st.booleans()))
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2])))
    ]
    pairs = st.tuples(vertex, vertex)
    names = [v.name for v in vertices] + [e.name for e in edges]
    pattern = PatternGraph(
        vertices,
        tuple(edges),
        tuple(members),
        tuple(tests),
        tuple(draw(st.lists(pairs, max_size=1))),
        tuple(draw(st.one_of(st.just(names), st.lists(st.sampled_from(names), unique=True)))),
    )
    return Case(source_of(data), data, pattern)


def _vertex(draw: st.DrawFn, data: Data, number: int) -> PatternVertex:
    candidates, labels = None, ()
    if draw(st.sampled_from([False, False, True])):
        chosen = sorted(draw(st.sets(st.integers(0, data.vertices - 1), max_size=data.vertices)))
        candidates = np.array(chosen, np.int64)
        of = [{o for s, p, o in data.triples if s == c and p == data.type_label} for c in chosen]
        if of and data.type_label is not None:
            labels = tuple(sorted(set.intersection(*of)))
    return PatternVertex(f"v{number}", candidates, "", labels)
