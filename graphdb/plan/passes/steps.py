"""The passes that write a plan's steps: the lists of every vertex, its candidates and signatures, the edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import EdgeTest, PatternEdge
from graphdb.plan.candidates import candidate_bits
from graphdb.plan.candidates.implied import ends_within
from graphdb.plan.checks import HasSignature, IsCandidate, Neighbours, Relation
from graphdb.plan.passes.code_motion import shared_prefixes
from graphdb.plan.passes.draft import Draft
from graphdb.plan.physical import EdgeStep, VertexStep
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.graph.derived.edge_subset import is_one_label
from graphdb.storage.graph.pcsr import OPPOSITE
from graphdb.storage.graph.signatures import required_bits

Ints = NDArray[np.int64]


SMALL = 1024
"""Candidate sets up to this size are intersected like a neighbour list; larger ones are asked value by value."""


def use_signatures(draft: Draft) -> None:
    """Test what a vertex must have towards neighbours that are bound later, where that is likely to pay."""
    if draft.space is not None:
        return
    repeatable = MatchMode.REPEATABLE_ELEMENTS
    groups: dict[int, dict[tuple[Relation, int, bool], list[tuple[int, ...]]]] = {v: {} for v in draft.order}
    for edge in draft.pattern.edges:
        if edge.source != edge.target and len(edge.admitted or ()) == 1 and edge.labels is not None:
            relation, v, other = draft.relation(edge)
            if draft.position[v] > draft.position[other]:  # as undirected ones may be seen
                v, other = other, v
            group = groups[v].setdefault((relation, edge.clause, edge.parallel), [])
            group.append(draft.pattern.vertices[other].labels)
    for v, towards in groups.items():
        required: dict[Relation, int] = {}
        for (relation, clause, parallel), neighbours in towards.items():
            apart = draft.pattern.clauses[clause].mode is not repeatable and not parallel
            two = relation.direction != "both" and apart
            required[relation] = required.get(relation, 0) | required_bits(neighbours, two)
        for relation, bits in required.items():
            if _signature_pays(draft, v, relation, bits):
                draft.checks.append(HasSignature(v, relation, bits))


def _signature_pays(draft: Draft, vertex: int, relation: Relation, required: int) -> bool:
    """Whether a signature column earns its making: enough values will be tested, and enough of them may fail."""
    assert relation.labels is not None
    label, graph = relation.labels[0], draft.graph
    known = graph.statistics(relation.labels)
    making = 0 if graph.has_signature(label, relation.direction) else known.triples + graph.vertices
    if draft.visits[draft.position[vertex]] < making:
        return False
    keys = known.subjects if relation.direction == "out" else known.objects
    return required > 1 or 2 * keys < draft.estimates.sizes[vertex]


def bind_vertices(draft: Draft) -> None:
    """Write the vertex steps: lists to intersect, a scan where there are none, candidate sets."""
    isolated = set(range(len(draft.pattern.vertices)))
    for edge in draft.pattern.edges:
        isolated -= {edge.source, edge.target}
    tests = [test for test in draft.pattern.edge_tests if not test.negated]
    links: list[PatternEdge | EdgeTest] = [*draft.pattern.edges, *tests]
    found: list[dict[Neighbours, None]] = [{} for _ in draft.pattern.vertices]
    for link in links:
        if link.source != link.target:
            other, v = sorted((link.source, link.target), key=draft.position.__getitem__)
            relation = draft.space.relation(other, v) if draft.space else draft.relation(link)[0]
            found[v][Neighbours(relation, other)] = None
    for i, v in enumerate(draft.order):
        lists = tuple(found[v])
        candidates = draft.pattern.vertices[v].candidates
        if draft.space is not None:
            candidates = None if lists else draft.space.candidates[v]
        elif candidates is None and v in isolated:
            candidates = draft.graph.universe()
        scan = constants = None
        if not lists:
            scan = candidates if candidates is not None else _keys(draft, v)
            scan = np.ascontiguousarray(scan, dtype=np.int64)
            candidates = None
        elif candidates is not None and len(candidates) <= SMALL:
            constants = candidates.astype(draft.graph.dtype)
            candidates = None
        if candidates is not None:
            candidates = np.ascontiguousarray(candidates, dtype=np.int64)
            many = candidate_bits.pays(candidates, draft.visits[i], draft.graph.vertices)
            draft.checks.append(IsCandidate(v, candidates, many))
        draft.steps.append(VertexStep(v, lists, scan, constants, (), draft.rows[i], work=draft.visits[i]))


def drop_implied(draft: Draft) -> None:
    """Drop a candidate set that every value of one of the step's lists is in: often a label that a relation implies."""
    for i, step in enumerate(draft.steps):
        if not isinstance(step, VertexStep) or not step.neighbours or draft.space is not None:
            continue
        for check in [c for c in draft.checks if isinstance(c, IsCandidate) and c.vertex == step.vertex]:
            if any(_implies(draft, near.relation, check, draft.visits[i]) for near in step.neighbours):
                draft.checks.remove(check)


def _implies(draft: Draft, relation: Relation, check: IsCandidate, visits: float) -> bool:
    """Whether all that a relation leads to are candidates; not asked where finding out costs more than testing.

    Where statistics say it, no list is read.
    """
    graph, candidates, known = draft.graph, check.candidates, draft.graph.statistics(relation.labels)
    if visits < known.triples:
        return False
    if relation.labels is not None:
        ways = {"out": (IN,), "in": (OUT,), "both": (OUT, IN)}[relation.direction]
        vertex = draft.pattern.vertices[check.vertex]
        implied = [ends_within(graph, relation.labels, way, vertex) for way in ways]
        if None not in implied:
            return all(implied)
    if relation.direction != "both" and is_one_label(relation.labels):
        ends = known.objects if relation.direction == "out" else known.subjects
        if ends > len(candidates):
            return False
    reached = graph.keys(relation.labels, OPPOSITE[relation.direction])
    if len(reached) > len(candidates):
        return False
    at = np.searchsorted(candidates, reached)
    return bool(np.array_equal(candidates[np.minimum(at, len(candidates) - 1)], reached))


def share_intersections(draft: Draft) -> None:
    """Lift intersections to where their lists are bound, and reuse them (:mod:`graphdb.plan.passes.code_motion`)."""
    joins = {i: step.neighbours for i, step in enumerate(draft.steps) if isinstance(step, VertexStep)}
    for i, (neighbours, shared) in shared_prefixes(joins, draft.position).items():
        step = draft.steps[i]
        assert isinstance(step, VertexStep)
        if (neighbours, shared) != (step.neighbours, step.shared):
            draft.steps[i] = replace(step, neighbours=neighbours, shared=shared)


def _keys(draft: Draft, vertex: int) -> Ints:
    """The vertices that have the rarest of the edges that ``vertex`` needs.

    Where matches may be counted another way, no partition is built for these alone.
    """
    best: Ints | None = None
    counted, keys_of = draft.pattern.count_only or draft.pattern.duplicates != "keep", draft.graph.keys
    for edge in draft.pattern.edges:
        if vertex in (edge.source, edge.target):
            relation, _, _ = draft.relation(edge)
            keys = keys_of(relation.labels, relation.direction) if counted else draft.partition(relation).keys
            best = keys if best is None or len(keys) < len(best) else best
    assert best is not None, "a vertex without edges has candidates"
    return best


def bind_edges(draft: Draft) -> None:
    """Write the edge steps, after all vertices: they only multiply."""
    rows = draft.rows[-1] if draft.rows else 1.0
    for e in sorted(draft.chosen_edges):
        relation, vertex, other = draft.relation(draft.pattern.edges[e])
        partition = draft.partition(relation)
        assert partition.codes is not None
        rows *= len(partition.codes) / max(len(partition.neighbours), 1)
        draft.steps.append(EdgeStep(e, relation, vertex, other, (), rows))
