"""From a pattern graph to a physical plan: an ordered tuple of plain functions over one draft.

Each pass reads what the earlier ones decided and adds its own part; the last writes the plan down as arrays.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache, partial
from math import factorial
from typing import Literal

import numpy as np

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, EdgeTest, PatternEdge, PatternGraph
from graphdb.plan.candidates.refinement import Refine
from graphdb.plan.candidates.space import candidate_space
from graphdb.plan.checks import Above, EdgeCount, HasSignature, Unequal
from graphdb.plan.counting.tree import LOOK, TreeCount, tree_count, tree_order
from graphdb.plan.counting.twins import CHOICE, twin_count
from graphdb.plan.injectivity import unequal_vertices
from graphdb.plan.lower import lower
from graphdb.plan.ordering.prefix import output_vertices, rows_first, search_cost
from graphdb.plan.ordering.sample import modelled, walked_order
from graphdb.plan.passes.conditions import choose_edges, place_checks, require_distinct, require_edges, require_induced
from graphdb.plan.passes.counting import BRIEF, MOST_COMPILED, MOST_TRUSTED, WORTH, counting_plan, explosive
from graphdb.plan.passes.draft import Draft
from graphdb.plan.passes.pigeonhole import overfull
from graphdb.plan.passes.steps import bind_edges, bind_vertices, drop_implied, share_intersections, use_signatures
from graphdb.plan.physical import CliqueCount, Origin, PhysicalPlan
from graphdb.plan.symmetry import differ, may_be_alike, symmetry
from graphdb.storage.graph.data_graph import DataGraph

BESIDE = 4e7
"""Trees that are expected to scan so many elements (0.4 s of one thread) are compared with counting as a sum of
products, which takes some milliseconds to find, and seldom costs less."""
LOOKED = 3e6
"""Sums that are expected to cost so many elements (30 ms of one thread) are compared with what random walks say of the
search: a device may go through the matches sooner."""
TRUSTED = 4.0
"""A search that symmetry helps must promise to cost so many times less than a tree: estimates err more about it."""


def make_plan(
    pattern: PatternGraph,
    graph: DataGraph,
    *,
    counting: Literal["auto", "always", "never"] = "auto",
    refine: Refine | None = None,
    order: tuple[int, ...] | None = None,
) -> PhysicalPlan:
    """Plan a pattern over a data graph.  Builds the partitions that the plan reads, where they are missing.

    ``counting`` says whether matches that are only counted may be (or, wherever possible, are) counted without
    enumerating them; ``refine``, an executor's, refines candidates where that is quicker than here.  The pattern
    vertices are bound in ``order``, or as is expected to cost least.
    """
    if overfull(pattern, graph):
        pattern = _unmatched(pattern, 0)
    # Nobody looks at samples for a search that gives way to counting whatever they say.
    enumerated = counting != "auto" or not pattern.count_only or pattern.limit is not None
    sampled = enumerated or len(pattern.edges) > MOST_TRUSTED
    draft = Draft(pattern, graph, counting, sampled=sampled, refine=refine, fixed=order)
    plan = _plan(draft)
    certain = plan.clique is not None or (plan.counting is not None and plan.counting.cost < LOOKED)
    if draft.unsure and not certain:  # cliques are counted in no order of ours
        again = Draft(pattern, graph, counting, refine=refine, counted=draft.counted)
        again.plain, again.modelled = draft.plain, draft.modelled
        plan = _plan(again)
    if plan.tree is None and plan.counting is None and plan.clique is None:
        plan.text.program  # noqa: B018 - what the search reads is built now, not while it runs
    return plan


def _plan(draft: Draft) -> PhysicalPlan:
    pattern, graph, counting = draft.pattern, draft.graph, draft.counting
    for run in PASSES:
        run(draft)
    cost = sum(draft.visits) + sum(draft.rows)
    if pattern.duplicates != "keep":
        cost = min(cost, search_cost(draft.estimates, draft.order, output_vertices(pattern), pattern.duplicates))
    origin = Origin(pattern, graph, counting)
    plan = lower(pattern, graph, tuple(draft.steps), cost, draft.symmetry, draft.space, origin)
    conditions = (*draft.differ, *(check for check in draft.checks if isinstance(check, EdgeCount)))
    later = partial(counting_plan, pattern, graph, conditions, plan, always=True, most=MOST_COMPILED)
    tree = _tree(draft, cost) if counting == "auto" else None
    if tree is not None:
        found = counting_plan(pattern, graph, conditions, plan, beside=tree.cost) if tree.cost > BESIDE else None
        if found is not None:
            return replace(plan, counting=found)
        return replace(plan, tree=tree, otherwise=cache(later))
    clique = _clique(draft) if counting != "always" else None
    countable = pattern.count_only or pattern.duplicates != "keep"
    if clique is not None:
        return replace(plan, clique=clique)
    if not countable or counting == "never":
        return plan
    summed = partial(counting_plan, pattern, graph, conditions, plan, known=draft.counted)
    bounded = counting == "always" or not pattern.count_only or pattern.limit is not None
    doubtful = not bounded and bool(plan.cost < BRIEF) and explosive(pattern, graph, plan)
    found = None if doubtful else summed(sampled=not draft.unsure, always=counting == "always")
    dear = plan.cost if found is None else found.cost
    twins = None
    if counting != "always" and dear >= WORTH and pattern.limit is None:
        twins = twin_count(pattern, graph, conditions, dear / CHOICE)
    otherwise = cache(summed if doubtful else later) if found is None and not bounded else None
    return replace(plan, counting=found, twins=twins, otherwise=otherwise, doubtful=doubtful)


def without_matches(pattern: PatternGraph) -> PatternGraph | None:
    """Where a vertex has no candidates, or an edge only labels that the data lack: that vertex alone, without a match.

    None where nothing like that is known.  To plan the rest would take longer than to find none.
    """
    empty = [
        v for v, vertex in enumerate(pattern.vertices) if vertex.candidates is not None and not vertex.candidates.size
    ]
    empty += [edge.source for edge in pattern.edges if edge.labels is not None and max(edge.labels, default=-1) < 0]
    if not empty:
        return None
    return _unmatched(pattern, empty[0])


def _unmatched(pattern: PatternGraph, vertex: int) -> PatternGraph:
    """A pattern without a match: what is only counted is one vertex without candidates, of rows all columns stay."""
    nothing = replace(pattern.vertices[vertex], candidates=np.empty(0, np.int64))
    if pattern.count_only:
        clauses = (Clause(MatchMode.REPEATABLE_ELEMENTS, (0,)),)
        return PatternGraph((nothing,), (), clauses, count_only=True, limit=pattern.limit)
    vertices = (*pattern.vertices[:vertex], nothing, *pattern.vertices[vertex + 1 :])
    return replace(pattern, vertices=vertices)


def refine_candidates(draft: Draft) -> None:
    """For a large pattern, find the candidates of all vertices first, and how they are joined, where that pays."""
    if not draft.linear and draft.fixed is None:
        draft.space = candidate_space(draft.pattern, draft.graph, lambda: draft.searched.cost, draft.refine)


def choose_order(draft: Draft) -> None:
    """Order the pattern vertices by cost, and note what each step is expected to do."""
    if draft.space is None:
        draft.estimates, forecast = draft.plain, draft.forecast
    else:
        draft.estimates = draft.space.estimates()
        if draft.pattern.count_only and draft.pattern.limit is None:
            draft.tree = tree_count(draft.space, unequal_vertices(draft.pattern), draft.graph.check)
            order = tuple(node.vertex for node in draft.tree.nodes)
        else:
            order = tree_order(draft.space, draft.graph.check)
        forecast = modelled(draft.estimates, order)
        if max(forecast.cost, 0.0 if draft.tree is None else draft.tree.cost) > LOOK:
            forecast = walked_order(draft.space, forecast, unequal_vertices(draft.pattern))
    if draft.pattern.duplicates != "keep":
        order = rows_first(draft.estimates, forecast.order, draft.pattern)
        forecast = forecast if order == forecast.order else modelled(draft.estimates, order)
    draft.order = forecast.order
    draft.position = {v: i for i, v in enumerate(draft.order)}
    draft.rows, draft.visits = list(forecast.rows), list(forecast.work)


def break_symmetry(draft: Draft) -> None:
    """Find one of several automorphic matches (SMOG §III), where no data edge has to be chosen for a pattern edge."""
    pairs = {(check.left, check.right) for check in draft.checks if isinstance(check, Unequal)}
    loopless = _joined_without_loops(draft, pairs)
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


def _joined_without_loops(draft: Draft, pairs: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Pairs of vertices (lower number first) that differ since they are joined, and nothing there joins itself.

    Beside those of ``pairs``, only vertices are asked for that an automorphism may exchange: of others it makes no
    difference, and to learn it may take a partition that nothing else reads.
    """
    if draft.space is not None:
        return set(draft.space.apart)
    links: list[PatternEdge | EdgeTest] = [*draft.pattern.edges]
    links += [test for test in draft.pattern.edge_tests if not test.negated]
    apart: set[tuple[int, int]] = set()
    for link in links:
        pair = min(link.source, link.target), max(link.source, link.target)
        asked = pair in pairs or may_be_alike(draft.pattern, *pair)
        if link.source != link.target and asked and not _has_loops(draft, link):
            apart.add(pair)
    return apart


def _has_loops(draft: Draft, link: PatternEdge | EdgeTest) -> bool:
    """Whether edges of a link join vertices with themselves; a search reads its partition anyway."""
    relation = draft.relation(link)[0]
    if draft.pattern.count_only and not draft.graph.has_partition(relation.labels, relation.direction):
        return draft.graph.has_loops(relation.labels)
    return draft.partition(relation).loops


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
    if draft.tree is None or draft.chosen_edges or not draft.differ:
        return None  # where nothing must differ, counting along edges is faster still
    # The tree was planned before it was known which vertices must differ so that edges do: it would count them too.
    distinguished = unequal_vertices(draft.pattern)
    if not all(isinstance(check, Unequal) and (check.left, check.right) in distinguished for check in draft.differ):
        return None
    checks = (check for step in draft.steps for check in step.checks)
    known = all(isinstance(check, Unequal | Above) for check in checks)
    # A tree never scans more than a search, unless symmetry leaves that just one of many matches.
    cheaper = draft.symmetry.size > 1 and draft.tree.cost > TRUSTED * cost
    return draft.tree if known and not cheaper else None


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
