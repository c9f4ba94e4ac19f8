"""The passes that turn conditions on a match into checks, each placed at the first step that can test it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.checks import (
    Above,
    Check,
    EdgeCount,
    EdgesDiffer,
    HasEdge,
    HasSignature,
    IsCandidate,
    Never,
    NotBothEqual,
    Relation,
    Unequal,
)
from graphdb.plan.injectivity import distinctness
from graphdb.plan.passes.draft import Draft, has_one_code
from graphdb.plan.physical import EdgeStep

Ints = NDArray[np.int64]


def require_distinct(draft: Draft) -> None:
    """What the match modes and ``a <> b`` ask: which vertices, and which edges, must differ."""
    wanted = distinctness(draft.pattern, draft.graph.type_label, draft.simple)
    draft.differ = tuple(_uncertain(draft, wanted))
    overlaps = draft.space.overlaps if draft.space else None
    for check in draft.differ:
        # Vertices without a candidate in common differ anyway.
        if overlaps is None or not isinstance(check, Unequal) or overlaps[check.left] >> check.right & 1:
            draft.checks.append(check)


def _uncertain(draft: Draft, checks: list[Check]) -> list[Check]:
    """Leave out vertices that differ since they have different labels, where no vertex of the graph has two."""
    type_label = draft.graph.type_label
    if type_label is None or draft.graph.statistics((type_label,)).max_out_degree > 1:
        return checks
    labels = [vertex.labels for vertex in draft.pattern.vertices]

    def apart(a: int, b: int) -> bool:
        return bool(labels[a] and labels[b] and labels[a] != labels[b])

    return [
        check
        for check in checks
        if not (isinstance(check, Unequal) and apart(check.left, check.right))
        and not (isinstance(check, NotBothEqual) and (apart(check.a, check.b) or apart(check.c, check.d)))
    ]


def require_induced(draft: Draft) -> None:
    """INDUCED: between any two vertices of the clause (and from each to itself) no data edge but the matched ones."""
    type_label = draft.graph.type_label
    for number, clause in enumerate(draft.pattern.clauses):
        if clause.mode is not MatchMode.INDUCED:
            continue
        edges = [(e, edge) for e, edge in enumerate(draft.pattern.edges) if edge.clause == number]
        vertices = sorted(set(clause.vertices) | {end for _, edge in edges for end in (edge.source, edge.target)})
        for u, w in [*combinations(vertices, 2), *zip(vertices, vertices, strict=True)]:
            between = [(e, edge) for e, edge in edges if {edge.source, edge.target} == {u, w}]
            typed = [(e, edge) for e, edge in between if edge.labels and type_label in edge.labels]
            uncertain = tuple(e for e, edge in typed if edge.labels != (type_label,))
            draft.chosen_edges.update(uncertain)
            expected, every = len(between) - len(typed), draft.partition(Relation(None, "both"))
            # What the data does not have needs no test: loops, and more edges than the one that is matched.
            if u == w and expected == 0 and not uncertain and not every.loops:
                continue
            if u != w and expected == 1 and not uncertain and every.simple:
                continue
            draft.checks.append(EdgeCount(u, w, expected, uncertain))


def require_edges(draft: Draft) -> None:
    """Conditions on bound vertices: negated edge tests, and every loop; other tests are lists to intersect."""
    for edge in draft.pattern.edges:
        if edge.source == edge.target:
            draft.checks.append(HasEdge(draft.relation(edge)[0], edge.source, edge.target, False))
    for test in draft.pattern.edge_tests:
        if test.negated or test.source == test.target:
            relation, vertex, other = draft.relation(test)
            draft.checks.append(HasEdge(relation, vertex, other, test.negated))


def choose_edges(draft: Draft) -> None:
    """An edge gets a step where its data edge is wanted or compared, or where several fit."""
    compared = {e for check in draft.checks if isinstance(check, EdgesDiffer) for e in (check.first, check.second)}
    for e, edge in enumerate(draft.pattern.edges):
        wanted = edge.name in draft.pattern.outputs or e in compared
        multiplies = draft.pattern.duplicates != "drop" and not draft.simple(edge)
        if not has_one_code(edge) and (wanted or multiplies):
            draft.chosen_edges.add(e)


def place_checks(draft: Draft) -> None:
    """Put every check at the step that binds the last slot it reads."""
    when_edge = {step.edge: i for i, step in enumerate(draft.steps) if isinstance(step, EdgeStep)}
    placed: list[list[Check]] = [[] for _ in draft.steps]
    for check in dict.fromkeys(draft.checks):
        vertices, edges = _reads(check, draft.pattern)
        when = [draft.position[v] for v in vertices] + [when_edge[e] for e in edges if e in when_edge]
        placed[max(when, default=0)].append(check)
    for i, step in enumerate(draft.steps):
        if placed[i]:
            draft.steps[i] = replace(step, checks=tuple(placed[i]))


def _reads(check: Check, pattern: PatternGraph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The vertices and edges whose bindings a check reads."""
    match check:
        case Never():
            return (), ()
        case Above(left, right) | Unequal(left, right):
            return (left, right), ()
        case NotBothEqual(a, b, c, d):
            return (a, b, c, d), ()
        case EdgesDiffer(first, second):
            ends = [end for e in (first, second) for end in (pattern.edges[e].source, pattern.edges[e].target)]
            return tuple(ends), (first, second)
        case EdgeCount(vertex, other, _, uncertain):
            return (vertex, other), uncertain
        case HasEdge(_, vertex, other, _):
            return (vertex, other), ()
        case IsCandidate() | HasSignature():
            return (check.vertex,), ()
