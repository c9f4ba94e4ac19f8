"""From a pattern graph to a physical plan: an ordered tuple of plain functions over one draft.

Each pass reads what the earlier ones decided and adds its own part; the last writes the plan down as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from math import factorial, log2
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph
from graphdb.plan.cost import Estimates, estimate
from graphdb.plan.counting import WORTH, counting_plan
from graphdb.plan.distinct import distinctness, unequal_vertices
from graphdb.plan.lower import lower
from graphdb.plan.motion import shared_prefixes
from graphdb.plan.order import matching_order
from graphdb.plan.physical import (
    Above,
    Check,
    CliqueCount,
    EdgeCount,
    EdgesDiffer,
    EdgeStep,
    HasEdge,
    HasSignature,
    IsCandidate,
    Neighbours,
    Never,
    NotBothEqual,
    PhysicalPlan,
    Relation,
    Step,
    TreeCount,
    Unequal,
    VertexStep,
)
from graphdb.plan.prefix import output_vertices, rows_first, search_cost
from graphdb.plan.sample import best_order, modelled
from graphdb.plan.space import CandidateSpace, candidate_space
from graphdb.plan.symmetry import NO_SYMMETRY, Symmetry, differ, symmetry
from graphdb.plan.tree import tree_count, tree_order
from graphdb.plan.twins import twin_count
from graphdb.storage.graph import DataGraph
from graphdb.storage.pcsr import Direction, Partition
from graphdb.storage.signatures import required_bits

Ints = NDArray[np.int64]

_OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}

TRUSTED = 4.0
"""A search that symmetry helps must promise to cost so many times less than a tree: estimates err more about it."""
SMALL = 1024
"""Candidate sets up to this size are intersected like a neighbour list; larger ones are asked value by value."""


@dataclass(slots=True)
class Draft:
    """A plan in the making.  ``position[v]`` is the step that binds pattern vertex ``v``."""

    pattern: PatternGraph
    graph: DataGraph
    space: CandidateSpace | None = None
    """The candidates as refined and joined, where that pays, …"""
    tree: TreeCount | None = None
    """… and the tree along which to count over them, if it may be."""
    estimates: Estimates = field(init=False)
    order: tuple[int, ...] = ()
    position: dict[int, int] = field(default_factory=dict)
    rows: list[float] = field(default_factory=list)
    """Expected rows after each vertex step."""
    visits: list[float] = field(default_factory=list)
    """Expected values that each vertex step goes through."""
    differ: tuple[Check, ...] = ()
    """What must differ, before symmetry says some of it in another way."""
    checks: list[Check] = field(default_factory=list)
    chosen_edges: set[int] = field(default_factory=set)
    """Edges whose data edge must be bound by a step of its own."""
    steps: list[Step] = field(default_factory=list)
    symmetry: Symmetry = NO_SYMMETRY

    def relation(self, edge: PatternEdge | EdgeTest) -> tuple[Relation, int, int]:
        """How the search goes along an edge: (relation, the end bound first, the other end)."""
        if not edge.directed:
            return Relation(edge.labels, "both"), edge.source, edge.target
        if self.position[edge.source] <= self.position[edge.target]:
            return Relation(edge.labels, "out"), edge.source, edge.target
        return Relation(edge.labels, "in"), edge.target, edge.source

    def partition(self, relation: Relation) -> Partition:
        """The partition a relation names, built if need be."""
        return self.graph.partition(relation.labels, relation.direction)

    def simple(self, edge: PatternEdge) -> bool:
        """Whether two bound ends leave no choice of data edge."""
        return has_one_code(edge) or self.partition(self.relation(edge)[0]).simple


def make_plan(
    pattern: PatternGraph, graph: DataGraph, *, counting: Literal["auto", "always", "never"] = "auto"
) -> PhysicalPlan:
    """Plan a pattern over a data graph.  Builds the partitions that the plan reads, where they are missing.

    ``counting`` says whether matches that are only counted may be (or, wherever possible, are) counted without going
    through them.
    """
    draft = Draft(pattern, graph)
    for run in PASSES:
        run(draft)
    cost = sum(draft.visits) + sum(draft.rows)
    if pattern.duplicates != "keep":
        cost = min(cost, search_cost(draft.estimates, draft.order, output_vertices(pattern), pattern.duplicates))
    plan = lower(pattern, graph, tuple(draft.steps), cost, draft.symmetry, draft.space)
    tree = _tree(draft, cost) if counting == "auto" else None
    if tree is not None:
        return replace(plan, tree=tree)
    clique = _clique(draft) if counting != "always" else None
    countable = pattern.count_only or pattern.duplicates != "keep"
    if clique is not None or not countable or counting == "never":
        return replace(plan, clique=clique)
    conditions = (*draft.differ, *(check for check in draft.checks if isinstance(check, EdgeCount)))
    plan = replace(plan, counting=counting_plan(pattern, graph, conditions, plan, always=counting == "always"))
    dear = plan.cost if plan.counting is None else plan.counting.cost
    if counting == "always" or dear < WORTH or pattern.limit is not None:
        return plan
    return replace(plan, twins=twin_count(pattern, graph, conditions, dear))


def refine_candidates(draft: Draft) -> None:
    """For a large pattern, find the candidates of all vertices first, and how they are joined, where that pays."""

    def expected() -> float:
        estimates = estimate(draft.pattern, draft.graph)
        return modelled(estimates, matching_order(estimates)).cost

    draft.space = candidate_space(draft.pattern, draft.graph, expected)


def choose_order(draft: Draft) -> None:
    """Order the pattern vertices by cost, and note what each step is expected to do."""
    if draft.space is None:
        draft.estimates = estimate(draft.pattern, draft.graph)
        forecast = best_order(draft.pattern, draft.graph, draft.estimates, matching_order)
    else:
        draft.estimates = draft.space.estimates()
        if draft.pattern.count_only and draft.pattern.limit is None:
            draft.tree = tree_count(draft.space, unequal_vertices(draft.pattern))
            order = tuple(node.vertex for node in draft.tree.nodes)
        else:
            order = tree_order(draft.space)
        forecast = modelled(draft.estimates, order)
    if draft.pattern.duplicates != "keep":
        order = rows_first(draft.estimates, forecast.order, draft.pattern)
        forecast = forecast if order == forecast.order else modelled(draft.estimates, order)
    draft.order = forecast.order
    draft.position = {v: i for i, v in enumerate(draft.order)}
    draft.rows, draft.visits = list(forecast.rows), list(forecast.work)


def require_distinct(draft: Draft) -> None:
    """What the match modes and ``a <> b`` ask: which vertices, and which edges, must differ."""
    wanted = distinctness(draft.pattern, draft.graph.type_label, draft.simple)
    draft.differ = tuple(check for check in wanted if not _certain(draft, check))
    overlaps = draft.space.overlaps if draft.space else None
    for check in draft.differ:
        # Vertices without a candidate in common differ anyway.
        if overlaps is None or not isinstance(check, Unequal) or overlaps[check.left] >> check.right & 1:
            draft.checks.append(check)


def _certain(draft: Draft, check: Check) -> bool:
    """Whether vertices differ since they have different labels, and no vertex of the graph has two."""
    match check:
        case Unequal(left, right):
            pairs = [(left, right)]
        case NotBothEqual(a, b, c, d):
            pairs = [(a, b), (c, d)]
        case _:
            return False
    type_label, vertices = draft.graph.type_label, draft.pattern.vertices
    if type_label is None or draft.graph.source.statistics(type_label).max_out_degree > 1:
        return False
    return any(vertices[a].labels and vertices[b].labels and vertices[a].labels != vertices[b].labels for a, b in pairs)


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


def break_symmetry(draft: Draft) -> None:
    """Find one of several automorphic matches (SMOG §III), where no data edge has to be chosen for a pattern edge."""
    pairs = {(check.left, check.right) for check in draft.checks if isinstance(check, Unequal)}
    loopless = _joined_without_loops(draft)
    unequal = set() if draft.chosen_edges else loopless | pairs
    # Where a row stands for many matches, only what is not returned may be exchanged.
    once = draft.pattern.duplicates != "keep"
    fixed = output_vertices(draft.pattern) if once else ()
    draft.symmetry = symmetry(
        draft.pattern, draft.order, unequal, rows=not (draft.pattern.count_only or once), fixed=fixed
    )
    above = differ(draft.symmetry.restrictions, draft.position.__getitem__)
    known = above | loopless
    draft.checks = [
        check for check in draft.checks if not (isinstance(check, Unequal) and (check.left, check.right) in known)
    ]
    draft.checks += [Above(greater, lesser) for lesser, greater in draft.symmetry.restrictions]
    share = 1.0
    for i, v in enumerate(draft.order):
        draft.visits[i] *= share
        share /= 1 + sum(v in pair and draft.position[min(pair, key=draft.position.__getitem__)] < i for pair in above)
        draft.rows[i] *= share


def _joined_without_loops(draft: Draft) -> set[tuple[int, int]]:
    """Pairs of vertices (lower number first) that differ since they are joined, and nothing there joins itself."""
    links: list[PatternEdge | EdgeTest] = [*draft.pattern.edges]
    links += [test for test in draft.pattern.edge_tests if not test.negated]
    return {
        (min(link.source, link.target), max(link.source, link.target))
        for link in links
        if link.source != link.target and not draft.partition(draft.relation(link)[0]).loops
    }


def _clique(draft: Draft) -> CliqueCount | None:
    """The count of cliques that a pattern asks for: all pairs joined alike, all matches of a clique automorphic."""
    edges, size = draft.pattern.edges, len(draft.pattern.vertices)
    restricted = all(isinstance(check, Above | HasSignature) for step in draft.steps for check in step.checks)
    free = all(vertex.candidates is None for vertex in draft.pattern.vertices)
    if not (draft.pattern.count_only and size > 2 and restricted and free) or draft.pattern.edge_tests:
        return None
    whole = len(edges) == size * (size - 1) // 2 and draft.symmetry.size == factorial(size)
    if not whole or draft.chosen_edges or any(edge.directed or edge.labels != edges[0].labels for edge in edges):
        return None
    return CliqueCount(size, draft.graph.oriented(edges[0].labels))


def _tree(draft: Draft, cost: float) -> TreeCount | None:
    """The tree along which to count, if vertices that differ are all that it has to know of."""
    if draft.tree is None or draft.chosen_edges or not all(isinstance(check, Unequal) for check in draft.differ):
        return None
    if not draft.differ:
        return None  # then counting along edges is faster still
    checks = (check for step in draft.steps for check in step.checks)
    known = all(isinstance(check, Unequal | Above) for check in checks)
    # A tree never goes through more than a search, unless symmetry leaves that just one of many matches.
    cheaper = draft.symmetry.size > 1 and draft.tree.cost > TRUSTED * cost
    return draft.tree if known and not cheaper else None


def use_signatures(draft: Draft) -> None:
    """Test what a vertex must have towards neighbours that are bound later, where that is likely to pay."""
    if draft.space is not None:
        return
    repeatable = MatchMode.REPEATABLE_ELEMENTS
    for v in draft.order:
        groups: dict[tuple[Relation, int], list[tuple[int, ...]]] = {}
        for edge in draft.pattern.edges:
            if edge.source == edge.target or v not in (edge.source, edge.target) or len(edge.labels or ()) != 1:
                continue
            other = edge.target if edge.source == v else edge.source
            if draft.position[other] > draft.position[v]:
                direction: Direction = "both" if not edge.directed else "out" if edge.source == v else "in"
                group = groups.setdefault((Relation(edge.labels, direction), edge.clause), [])
                group.append(draft.pattern.vertices[other].labels)
        required: dict[Relation, int] = {}
        for (relation, clause), neighbours in groups.items():
            two = relation.direction != "both" and draft.pattern.clauses[clause].mode is not repeatable
            required[relation] = required.get(relation, 0) | required_bits(neighbours, two)
        for relation, bits in required.items():
            if _signature_pays(draft, v, relation, bits):
                draft.checks.append(HasSignature(v, relation, bits))


def _signature_pays(draft: Draft, vertex: int, relation: Relation, required: int) -> bool:
    """Whether a signature column earns its making: enough values will be tested, and enough of them may fail."""
    assert relation.labels is not None
    label, graph = relation.labels[0], draft.graph
    known = graph.source.statistics(label)
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
    for i, v in enumerate(draft.order):
        lists: list[Neighbours] = []
        for link in links:
            if link.source != link.target and v in (link.source, link.target):
                other = link.target if link.source == v else link.source
                if draft.position[other] < i:
                    relation = draft.space.relation(other, v) if draft.space else draft.relation(link)[0]
                    if Neighbours(relation, other) not in lists:
                        lists.append(Neighbours(relation, other))
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
            many = draft.visits[i] * log2(len(candidates)) > len(candidates) + draft.graph.vertices / 64
            bits = _bit_set(candidates, draft.graph.vertices) if many else None
            draft.checks.append(IsCandidate(v, candidates, bits))
        draft.steps.append(VertexStep(v, tuple(lists), scan, constants, (), draft.rows[i]))


def drop_implied(draft: Draft) -> None:
    """Drop a candidate set that every value of one of the step's lists is in: often a label that a relation implies."""
    for i, step in enumerate(draft.steps):
        if not isinstance(step, VertexStep) or not step.neighbours or draft.space is not None:
            continue
        for check in [c for c in draft.checks if isinstance(c, IsCandidate) and c.vertex == step.vertex]:
            if any(_implies(draft, near.relation, check.candidates, draft.visits[i]) for near in step.neighbours):
                draft.checks.remove(check)


def _implies(draft: Draft, relation: Relation, candidates: Ints, visits: float) -> bool:
    """Whether all that a relation leads to are candidates; not asked where finding out costs more than testing."""
    if visits < draft.graph.statistics(relation.labels).triples:
        return False
    reached = draft.partition(Relation(relation.labels, _OPPOSITE[relation.direction])).keys
    if len(reached) > len(candidates):
        return False
    at = np.searchsorted(candidates, reached)
    return bool(np.array_equal(candidates[np.minimum(at, len(candidates) - 1)], reached))


def share_intersections(draft: Draft) -> None:
    """Lift intersections to where their lists are bound, and reuse them (:mod:`graphdb.plan.motion`)."""
    joins = {i: step.neighbours for i, step in enumerate(draft.steps) if isinstance(step, VertexStep)}
    for i, (neighbours, shared) in shared_prefixes(joins, draft.position).items():
        step = draft.steps[i]
        assert isinstance(step, VertexStep)
        draft.steps[i] = replace(step, neighbours=neighbours, shared=shared)


def _keys(draft: Draft, vertex: int) -> Ints:
    """The vertices that have the rarest of the edges that ``vertex`` needs."""
    best: Ints | None = None
    for edge in draft.pattern.edges:
        if vertex in (edge.source, edge.target):
            relation, _, _ = draft.relation(edge)
            keys = draft.partition(relation).keys
            best = keys if best is None or len(keys) < len(best) else best
    assert best is not None, "a vertex without edges has candidates"
    return best


def _bit_set(values: Ints, size: int) -> NDArray[np.uint8]:
    """One bit per vertex, little-endian within each byte."""
    flags = np.zeros(size, bool)
    flags[values] = True
    return np.packbits(flags, bitorder="little")


def bind_edges(draft: Draft) -> None:
    """Write the edge steps, after all vertices: they only multiply."""
    rows = draft.rows[-1] if draft.rows else 1.0
    for e in sorted(draft.chosen_edges):
        relation, vertex, other = draft.relation(draft.pattern.edges[e])
        partition = draft.partition(relation)
        assert partition.codes is not None
        rows *= len(partition.codes) / max(len(partition.neighbours), 1)
        draft.steps.append(EdgeStep(e, relation, vertex, other, (), rows))


def place_checks(draft: Draft) -> None:
    """Put every check at the step that binds the last slot it reads."""
    when_edge = {step.edge: i for i, step in enumerate(draft.steps) if isinstance(step, EdgeStep)}
    placed: list[list[Check]] = [[] for _ in draft.steps]
    for check in dict.fromkeys(draft.checks):
        vertices, edges = _reads(check, draft.pattern)
        when = [draft.position[v] for v in vertices] + [when_edge[e] for e in edges if e in when_edge]
        placed[max(when, default=0)].append(check)
    for i, step in enumerate(draft.steps):
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


def has_one_code(edge: PatternEdge) -> bool:
    """Whether the edge's code is known from the pattern alone: one label, directed."""
    return edge.directed and edge.labels is not None and len(edge.labels) == 1


PASSES = (
    refine_candidates,
    choose_order,
    require_distinct,
    require_induced,
    require_edges,
    choose_edges,
    break_symmetry,
    use_signatures,
    bind_vertices,
    drop_implied,
    share_intersections,
    bind_edges,
    place_checks,
)
