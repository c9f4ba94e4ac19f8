"""Counting without enumerating: whether the number of matches is found faster as a sum of products, and how.

The number of matches is written as a sum over quotients (:mod:`graphdb.plan.counting.inclusion_exclusion`), each the
product of its components, each counted along its edges or by loops over few vertices
(:mod:`graphdb.plan.counting.components`).  That is exact; it is chosen where it is expected to cost less than
enumerating the matches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternEdge, PatternGraph
from graphdb.plan.checks import Check, Relation
from graphdb.plan.counting.components import MOST_CORE, MOST_DEMANDED_CORE, MOST_LARGE_CORE, parts_of
from graphdb.plan.counting.costs import CountingCosts
from graphdb.plan.counting.inclusion_exclusion import MOST_STATES, Expansion, Member, Quotient
from graphdb.plan.counting.plan import CountingPlan, Term
from graphdb.plan.counting.programs import Bundle, Part, Through, Weight
from graphdb.plan.injectivity import distinctness
from graphdb.plan.physical import EdgeStep, PhysicalPlan, VertexStep
from graphdb.storage.graph.data_graph import DataGraph

Ints = NDArray[np.int64]

WORTH = 50_000.0
"""Searches expected to scan fewer elements are not worth a second plan."""
OVERHEAD = 20_000.0
"""What planning to count, and starting to, costs beside the counting: less than a millisecond, in elements."""
SURELY = 4.0
"""A search that the model alone expects to cost so many times more than counting will not be run."""
LONG = 1e7
"""Searches expected to scan so many elements take a tenth of a second: then large cores are worth planning."""
CACHED = 1 << 18
"""Bytes of a vector that are read as fast as lists are; each doubling of it costs loops ``FARTHER`` more: most of what
they touch misses the caches."""
FARTHER = 0.75
VECTOR = 0.3
"""What it takes to clear a vertex's number in a vector, in elements."""
MOST_QUOTIENTS = 200
"""Sums of more terms are left to the search, …"""
MOST_BESIDE = 16
"""… and where there is a tree beside it, sums of more than these are: finding them takes longer than it helps."""
MOST_COMPILED = 24
"""Sums of more terms are not written for a device where the CPU counts along a tree: each term is compiled (about
0.1 s), and to write down thousands takes seconds."""
MOST_UNSAMPLED = 6
"""Sums of more terms, or of so many conditions, take longer to find than random walks over the search do, so walks
come first."""
MOST_TRUSTED = 8
"""Estimates of searches for patterns of more edges are doubted (:func:`explosive`): counting them is preferred, …"""
QUICK = 1e6
"""… where it is certain to take no more elements than this, a few milliseconds, …"""
BRIEF = 1e5
"""Searches that are expected to scan fewer elements (a millisecond) are tried before sums are planned, which takes as
long."""
MOST_UNCERTAIN = 12
"""… and where no more conditions than this have to be multiplied out."""
MOST_CHECKS = 1000
"""So many checks are looked at for them: 40 leaves have 780."""
TERM = 15_000.0
"""What planning one term, and starting to count it, takes: in elements that a search scans meanwhile."""


def counting_plan(
    pattern: PatternGraph,
    graph: DataGraph,
    checks: Iterable[Check],
    search: PhysicalPlan,
    *,
    beside: float | None = None,
    sampled: bool = True,
    always: bool = False,
    most: int = MOST_STATES,
    known: dict[tuple[Quotient, int], tuple[Part, ...] | None] | None = None,
) -> CountingPlan | None:
    """Plan to count a pattern without enumerating; None where the search is expected to be cheaper, or is needed.

    Parameters
    ----------
    checks
        What must differ, as :func:`graphdb.plan.injectivity.distinctness` says, and what INDUCED forbids.
    search
        The plan that enumerates.
    beside
        Elements that counting along a tree is expected to scan, where that is the other way, not the search.
    sampled
        Whether random walks corrected what the search is expected to cost: what the model alone says of a skewed graph
        may be far too much, and counts for less (:data:`SURELY`).
    always
        Whatever it costs, with up to ``most`` terms.
    known
        How quotients are counted (with cores of at most so many vertices) that were planned before, which is added to.
    """
    known = {} if known is None else known
    root = -1 if pattern.count_only else _only_output(pattern)
    if not (pattern.count_only or root >= 0) or pattern.limit is not None or not pattern.vertices:
        return None
    uncertain = beside is None and explosive(pattern, graph, search)
    if search.cost < WORTH and not (always or uncertain):
        return None
    checks = tuple(checks)
    if search.cost < WORTH and not always and len(checks) > MOST_CHECKS:
        return None
    expansion = Expansion(pattern, graph, checks, root)
    if search.cost < WORTH and not always and len(expansion) > MOST_UNCERTAIN:
        return None
    if not (sampled or always) and len(expansion) >= MOST_UNSAMPLED:  # each condition makes a term at least, mostly
        return None
    costs = CountingCosts(graph, expansion.filters)
    instead_of = search.cost
    if beside is not None:
        instead_of = beside
    elif pattern.duplicates != "drop":  # else the search looks for first matches only
        instead_of = max(instead_of if sampled else instead_of / SURELY, _search_cost(pattern, search, costs))
    if uncertain:
        instead_of = max(instead_of, QUICK)
    if not always:
        most = min(most, MOST_QUOTIENTS if beside is None else MOST_BESIDE, int((instead_of - OVERHEAD) / TERM) + 1)
    most = most if sampled else min(most, MOST_UNSAMPLED)
    quotients = expansion.quotients(most)
    if quotients is None:
        return None
    terms, cost = [], OVERHEAD + TERM * (len(quotients) - 1)
    scattered = 1.0 + FARTHER * max(math.log2(8 * graph.vertices / CACHED), 0.0)
    planned: set[Part] = set()
    largest = MOST_DEMANDED_CORE if always else MOST_CORE
    if instead_of > LONG:
        largest = MOST_LARGE_CORE
    for coefficient, quotient in sorted(quotients, key=lambda found: -len(found[1].filters)):
        graph.check()
        if (quotient, largest) not in known:
            known[quotient, largest] = parts_of(quotient, costs, largest)
        parts = known[quotient, largest]
        if parts is None:
            return None
        cost += sum(part.cost * (scattered if part.levels else 1.0) for part in parts if part not in planned)
        planned.update(parts)
        if cost > instead_of and not always:
            return None
        terms.append(Term(coefficient, quotient, parts))
    plan = CountingPlan(
        terms=tuple(terms),
        filters=tuple(expansion.filters),
        partitions={},
        oriented={},
        vertices=graph.vertices,
        dtype=graph.dtype,
        cost=cost,
        instead_of=instead_of,
        root=root,
    )
    cost += VECTOR * plan.shared_bytes / 8
    if cost > instead_of and not always:
        return None  # before anything is built for it
    relations = {relation for part in planned if not part.clique for relation in _relations(part)}
    partitions = {r: graph.partition(r.labels, r.direction, parallel=r.parallel) for r in relations}
    oriented = {r: graph.oriented(r.labels) for part in planned if part.clique for r in _relations(part)}
    return replace(plan, cost=cost, partitions=partitions, oriented=oriented)


def explosive(pattern: PatternGraph, graph: DataGraph, search: PhysicalPlan) -> bool:
    """Whether a search may go through very many matches, whatever is expected of it.

    Estimates of long chains and of large stars multiply small errors; degrees bound what can come at each step.  So do
    labels and directions for edges between bound ends: twenty undirected pattern edges between two vertices that edges
    of both directions join are a million matches.
    """
    if len(pattern.edges) <= MOST_TRUSTED:
        return False
    most = [graph.vertices if v.candidates is None else len(v.candidates) for v in pattern.vertices]
    ways: list[list[tuple[int, int]]] = [[] for _ in pattern.vertices]
    for edge in pattern.edges:
        known = graph.statistics(edge.labels)
        out, back = known.max_out_degree, known.max_in_degree
        if not edge.directed:
            out = back = out + back
        ways[edge.target].append((edge.source, out))
        ways[edge.source].append((edge.target, back))
    worst, bound = 1.0, set[int]()
    for step in search.steps:
        if isinstance(step, EdgeStep):
            worst *= _most_choices(step.relation, graph)
        elif step.vertex not in bound:
            worst *= min([most[step.vertex], *(degree for other, degree in ways[step.vertex] if other in bound)])
            bound.add(step.vertex)
        if worst > WORTH:
            return True
    return False


def _most_choices(relation: Relation, graph: DataGraph) -> int:
    """As many triples as may join two vertices in a relation: a bound, by labels and directions alone."""
    labels = len(graph.source.edge_labels()) if relation.labels is None else len(relation.labels)
    return labels * (2 if relation.direction == "both" else 1)


def weighing_plan(
    pattern: PatternGraph, graph: DataGraph, search: PhysicalPlan, *, always: bool = False
) -> CountingPlan | None:
    """Plan to count a pattern of which some edges may be parallel, each of them; None as :func:`counting_plan`.

    ``search`` is the plan that enumerates: it binds triples, whose edges would be distinguished after it.
    """
    if pattern.edge_tests or any(clause.mode is MatchMode.INDUCED for clause in pattern.clauses):
        return None

    def simple(edge: PatternEdge) -> bool:
        return graph.partition(edge.labels, "out" if edge.directed else "both").simple

    checks = distinctness(pattern, graph.type_label, simple, parallel=True)
    return counting_plan(pattern, graph, checks, search, always=always)


def counts_along_edges(pattern: PatternGraph) -> bool:
    """Whether a pattern's number of matches is a single sum of products along its edges: homomorphisms of a forest."""
    if not pattern.count_only or pattern.limit is not None or pattern.edge_tests or pattern.unequal:
        return False
    if any(clause.mode is not MatchMode.REPEATABLE_ELEMENTS for clause in pattern.clauses):
        return False
    tree_of = list(range(len(pattern.vertices)))
    for edge in pattern.edges:
        a, b = tree_of[edge.source], tree_of[edge.target]
        if a == b:
            return False
        tree_of = [a if tree == b else tree for tree in tree_of]
    return True


def _only_output(pattern: PatternGraph) -> int:
    """The vertex by which matches can be counted, where it is the one output; else -1."""
    if pattern.duplicates == "keep" or len(pattern.outputs) != 1:
        return -1
    return next((v for v, vertex in enumerate(pattern.vertices) if vertex.name == pattern.outputs[0]), -1)


def _search_cost(pattern: PatternGraph, search: PhysicalPlan, costs: CountingCosts) -> float:
    """What the search is expected to scan, by the same figures that counting is judged by."""
    cost, rows, depth = 0.0, 1.0, 0
    for i, step in enumerate(search.steps):
        if not isinstance(step, VertexStep):
            cost += rows
            continue
        last = i == len(search.steps) - 1 and search.count_last
        candidates = pattern.vertices[step.vertex].candidates
        share = 1.0 if candidates is None else len(candidates) / max(costs.vertices, 1)
        if step.scan is not None:
            rows *= max(len(step.scan), 1e-3)
            cost += rows
            depth = 1
            continue
        members = [Member(near.relation.labels, near.relation.direction, False) for near in step.neighbours]
        lengths = [costs.mean(m) if depth == 1 else costs.biased(m) for m in members]
        shortest = min(lengths, default=1.0)
        remaining = shortest * share
        for member in members[1:]:
            remaining *= costs.closure((member,))
        if len(members) > 1:
            cost += rows * shortest * 2.0 * (len(members) - 1)
        rows, before = rows * max(remaining, 1e-3), rows
        cost += before if last else rows + before
        depth += 1
    return cost


def _relations(part: Part) -> Iterable[Relation]:
    """Every relation that counting a part reads: weights go along edges one way, cores in both directions."""
    pending: list[Weight] = [part.root, *part.weights]
    bundles: list[Bundle] = list(part.root_bundles)
    for level in part.levels:
        for instruction in level.instructions:
            bundles += [
                getattr(instruction, name) for name in ("bundle", "forward", "backward") if hasattr(instruction, name)
            ]
            if isinstance(instruction, Through) and instruction.closed is not None:
                bundles += [instruction.closed.first, instruction.closed.second]
    while pending:
        weight = pending.pop()
        yield from (member.relation for member in weight.loops)
        for bundle, child in weight.messages:
            bundles.append(bundle)
            pending.append(child)
    for bundle in bundles:
        for member in bundle.members:
            yield member.relation
            if part.levels:
                yield member.reversed().relation
