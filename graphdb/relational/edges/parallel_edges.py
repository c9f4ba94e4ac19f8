"""From triples to edges: what a match, which binds triples, leaves open of a pattern's edges is resolved here.

A triple may stand for several parallel edges, and edges have properties, which no partition holds.  So

- a condition on the properties of one edge alone is tested before the match, by SQL over all edges of its labels
  (:func:`resolve_edges`): their ends become candidates of the pattern's vertices, and what the match still finds
  beside them is dropped;
- after the match, for a block of rows at a time (:mod:`graphdb.relational.edges.assignment`), the edges of each triple
  are found by their ends.  A row comes once for each choice among parallel edges, or with as many more matches where
  only these are counted; two pattern edges that must differ may bind one triple, but not one of its edges; and the
  properties that the query names become columns of the bindings: of pattern edge ``j``, ``o<j>`` (its ordinal) and
  ``f<j>_<key>``;
- where all edges of a row are asked for and lead away from one vertex, and a search would take longer, rows are made of
  the numbered edges themselves (:func:`with_scan`);
- where only their number matters, and a match would take longer, parallel edges are weights of a count without it
  (:func:`with_weights`).

Executors know nothing of it: the same triples are resolved in the same way, whichever found them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import EDGE, NULL
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced, walk
from graphdb.pattern.bind import BoundPattern, Choice
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.graph import Duplicates, PatternEdge, PatternGraph, Wanted
from graphdb.plan.candidates.implied import ends_within
from graphdb.plan.passes.counting import WORTH, explosive, weighing_plan
from graphdb.plan.physical import EdgeExtension, EdgeScan, PhysicalPlan, VertexStep
from graphdb.relational.filtering.column_filters import NumberTest, number_tests, places_of
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.compiler import Scope
from graphdb.sql.expressions import ExpressionCompiler
from graphdb.sql.parameters import Parameters
from graphdb.sql.types import maps
from graphdb.sql.value import SqlValue, column
from graphdb.storage.arrays.sorted_sets import both, each_once, either
from graphdb.storage.graph.degree_sketch import IN, OUT

Ids = NDArray[np.int64]

_Tested = dict[Any, tuple[NDArray[np.bool_], bool]]
"""Conditions of one edge, whatever its name, that were tested: which edges fulfil them, and whether all others do."""

_ANY_EDGE = ast.Variable("#edge")

_SCANNED = 16
"""So many edges are scanned in the time that a search takes for one element and its edge."""

_FOUND = 3
"""Elements that a search scans in the time that it takes to find the edges of a triple, and how many they are."""

_SELECTIVE = 4
"""The ends of edges that fulfil a condition become candidates where these are at most every so many-th edge."""


def resolve_edges(
    snapshot: Snapshot, text: str, arguments: Mapping[str, object], bound: BoundPattern, later: object = ()
) -> None:
    """Note what a match leaves open of a pattern's edges, and test the conditions on the properties of one alone.

    ``later`` is the syntax after the match: the properties that it names become columns of the bindings.

    Raises
    ------
    NotSupportedError
        INDUCED, where two pattern edges may be parallel; properties whose values SQL does not hold.
    """
    edges = snapshot.edges
    if not edges.described:
        return
    named = {edge.name: number for number, edge in enumerate(bound.edges)}
    used = free_variables(tuple(bound.residual)) | bound.edge_of.keys()
    for number, edge in enumerate(bound.edges):
        admitted = edges.described if edge.labels is None else edges.described.intersection(edge.labels)
        parallel = not edges.parallel.isdisjoint(admitted)
        if admitted and (parallel or edge.name in used):
            bound.choices[number] = Choice(tuple(sorted(admitted)), parallel)
            bound.edges[number] = replace(edge, parallel=parallel)
    if not bound.choices:
        return
    _differ(bound)
    tested: _Tested = {}
    for number in bound.choices:
        own = [condition for condition in bound.residual if _asks_properties_only(condition, bound.edges[number].name)]
        if own:
            bound.residual = [condition for condition in bound.residual if condition not in own]
            _test(snapshot, text, arguments, bound, number, own, tested)
    _leave_none_out(snapshot, bound)
    for part in walk((tuple(bound.residual), later)):
        if isinstance(part, ast.Property) and isinstance(part.base, ast.Variable):
            of = bound.choices.get(named.get(part.base.name, -1))
            if of is not None and edges.plain(key := edges.key(part.key, snapshot.names, text)):
                of.facts[part] = key
        elif (every := maps.of_all_properties(part)) is not None:
            of = bound.choices.get(named.get(every.name, -1))
            if of is not None and all(map(edges.plain, edges.keys.values())):
                has = edges.keys_of(of.labels)
                of.facts |= {maps.property_of(every, iri): key for iri, key in edges.keys.items() if key in has}


def _differ(bound: BoundPattern) -> None:
    """Note which pattern edges must bind different edges though they may bind one triple."""
    for i, j in combinations((number for number, choice in bound.choices.items() if choice.parallel), 2):
        first, second = bound.edges[i], bound.edges[j]
        mode = bound.clauses[first.clause].mode
        if first.clause != second.clause or mode is ast.MatchMode.REPEATABLE_ELEMENTS:
            continue
        same_ends = {first.source, first.target} == {second.source, second.target}
        overlap = first.labels is None or second.labels is None or {*first.labels} & {*second.labels}
        if overlap and (same_ends or mode is ast.MatchMode.DIFFERENT_EDGES):
            bound.differ.append((i, j))


def _leave_none_out(snapshot: Snapshot, bound: BoundPattern) -> None:
    """INDUCED: what has parallel edges does not match one pattern edge, which would leave the others out."""
    for number, choice in bound.choices.items():
        edge = bound.edges[number]
        if not choice.parallel or bound.clauses[edge.clause].mode is not ast.MatchMode.INDUCED:
            continue
        if any(number in pair for pair in bound.differ):
            raise NotSupportedError("INDUCED with pattern edges that are parallel is not supported in SQL")
        table = snapshot.edges.table(choice.labels)
        _, count = table.find(table.labels[table.kind], table.starts, table.ends)
        alone = count == 1
        choice.fulfil = alone if choice.fulfil is None else alone & choice.fulfil
        choice.words = ", ".join(filter(None, (choice.words, "none parallel to it")))


def _asks_properties_only(condition: ast.Expression, edge: str) -> bool:
    """Whether nothing decides a condition but the properties of one edge."""
    if free_variables(condition) != {edge}:
        return False
    parts = list(walk(condition))
    uses = sum(isinstance(part, ast.Variable) and part.name == edge for part in parts)
    direct = sum(isinstance(part, ast.Property) and part.base == ast.Variable(edge) for part in parts)
    return uses == direct and not any(isinstance(part, SUBQUERIES) for part in parts)


def _test(
    snapshot: Snapshot,
    text: str,
    arguments: Mapping[str, object],
    bound: BoundPattern,
    number: int,
    conditions: list[ast.Expression],
    tested: _Tested,
) -> None:
    """Find the edges that fulfil conditions on one pattern edge, unless they were ``tested`` for another one."""
    edges, choice, edge = snapshot.edges, bound.choices[number], bound.edges[number]
    choice.words = ", ".join(" ".join(text[c.span.start : c.span.end].split()) for c in conditions)
    asked = (choice.labels, edge.labels, replaced(tuple(conditions), {ast.Variable(edge.name): _ANY_EDGE}))
    if asked in tested:
        choice.fulfil, choice.others = tested[asked]
        return
    if (compared := _compared(snapshot, text, arguments, edge, conditions)) is not None:
        chosen = places_of([(edges.values(choice.labels, key), tests) for key, tests in compared])
        choice.fulfil, choice.others = np.zeros(len(edges.table(choice.labels)), bool), False  # null is no number
        choice.fulfil[chosen] = True
        tested[asked] = choice.fulfil, choice.others
        return
    table = edges.table(choice.labels)
    columns: dict[str, Any] = {"number": numbers(np.arange(len(table)))}
    known: dict[ast.Expression, SqlValue] = {}
    absent: dict[ast.Expression, SqlValue] = {}
    for part in walk(tuple(conditions)):
        if isinstance(part, ast.Property) and part not in absent and part.base == ast.Variable(edge.name):
            key = edges.key(part.key, snapshot.names, text)
            absent[part] = SqlValue("NULL", NULL)
            if edges.plain(key):
                columns[f"f{key}"] = edges.values(choice.labels, key)
                known[part] = column(f"f{key}", edges.column(key).type, "u")
    if len(known) < len(absent):
        columns |= edges.columns(table)

    def compiled(known: Mapping[ast.Expression, SqlValue]) -> tuple[str, str, Parameters]:
        parameters = Parameters()
        rows = replace(snapshot, deleted=None).rows(parameters, text, arguments)
        scope = Scope({edge.name: SqlValue("u", EDGE)}, known)
        compiler = ExpressionCompiler(text, snapshot.names, arguments, rows, scope, snapshot.computing)
        return " AND ".join(compiler.filter(condition) for condition in conditions), rows.joins, parameters

    where, joins, parameters = compiled(known)
    fulfil = np.zeros(len(table), bool)
    view = snapshot.connection.temporary()
    with snapshot.connection.view(view, arrow.table(columns)):
        sql = f"SELECT u.number FROM {view} u {joins} WHERE {where}"
        fulfil[snapshot.connection.columns(sql, parameters.used(sql))["number"]] = True
    choice.fulfil = fulfil
    if edge.labels is None or not {*edge.labels} <= {*choice.labels}:
        where, joins, parameters = compiled(absent)
        sql = f"SELECT count(*) AS n FROM (SELECT 1) u {joins} WHERE {where}"
        choice.others = bool(snapshot.connection.columns(sql, parameters.used(sql))["n"][0])
    else:
        choice.others = False
    tested[asked] = fulfil, choice.others


def _compared(
    snapshot: Snapshot,
    text: str,
    arguments: Mapping[str, object],
    edge: PatternEdge,
    conditions: list[ast.Expression],
) -> list[tuple[int, list[NumberTest]]] | None:
    """Return conditions on one edge as comparisons of its properties, by their keys; None where they are more."""
    found = []
    for condition in conditions:
        parts = {part for part in walk(condition) if isinstance(part, ast.Property)}
        own = parts.pop()
        if parts or not snapshot.edges.plain(key := snapshot.edges.key(own.key, snapshot.names, text)):
            return None
        tests = number_tests(condition, own, snapshot.edges.column(key).type, arguments)
        if tests is None:
            return None
        found.append((key, tests))
    return found


def resolutions(bound: BoundPattern, plan: PhysicalPlan) -> Iterator[str]:
    """Say what is resolved of a pattern's edges beside the match, for EXPLAIN."""
    for number, choice in bound.choices.items():
        if choice.fulfil is not None:
            left = f"{np.count_nonzero(choice.fulfil):,} of {len(choice.fulfil):,} edges"
            yield f"edges of {bound.edges[number].name} before the match: {choice.words} leaves {left}"
        if choice.parallel and plan.scan is None and plan.weighed is None and plan.bundled is None:
            yield f"edges of {bound.edges[number].name} after the match: each of parallel ones"


def ends_of(snapshot: Snapshot, bound: BoundPattern) -> dict[int, Ids]:
    """Return candidates of pattern vertices: the ends of edges that fulfil conditions, where these are few."""
    found: dict[int, Ids] = {}
    for number, choice in bound.choices.items():
        if choice.fulfil is None or choice.others:
            continue
        chosen = choice.fulfilling()
        if len(chosen) * _SELECTIVE > len(choice.fulfil):
            continue
        edge, table = bound.edges[number], snapshot.edges.table(choice.labels)
        starts, ends = (each_once(side[chosen], snapshot.graph.vertices) for side in (table.starts, table.ends))
        if not edge.directed:
            starts = ends = either(starts, ends)
        for vertex, ids in ((edge.source, starts), (edge.target, ends)):
            found[vertex] = both(found[vertex], ids) if vertex in found else ids
    return found


def with_scan(
    snapshot: Snapshot, bound: BoundPattern, pattern: PatternGraph, plan: PhysicalPlan, *, chooses_all: bool
) -> PhysicalPlan:
    """Return a plan that goes through the numbered edges, where they are all there is to match and a search costs more.

    ``plan`` is that of ``pattern``, whose edges all have choices that matter; with several edges these must all be
    asked for (``chooses_all``): a search finds triples, the edges of which would have to be found again.
    """
    if plan.count_only or not pattern.edges or pattern.edge_tests or pattern.unequal:
        return plan
    if not all(_is_numbered(bound, pattern, number) for number in range(len(pattern.edges))):
        return plan
    order = [0] if len(pattern.edges) == 1 else _away_from_root(pattern, plan) if chooses_all else []
    if not order or len(pattern.vertices) > len({end for e in pattern.edges for end in (e.source, e.target)}):
        return plan
    number, *others = order
    edge, choice = pattern.edges[number], bound.choices[number]
    table = snapshot.edges.table(choice.labels)
    edges = len(table) if choice.fulfil is None else int(np.count_nonzero(choice.fulfil))
    if plan.cost * _SCANNED < edges:
        return plan

    def candidates(number: int, end: int, *directions: int) -> Ids | None:
        vertex, labels = pattern.vertices[end], bound.choices[number].labels
        every = all(ends_within(snapshot.graph, labels, each, vertex) for each in directions)
        every = every or _are_ends(snapshot, bound, number, vertex.candidates, directions)
        return None if every else vertex.candidates

    source, target = (
        candidates(number, end, *((direction,) if edge.directed else (OUT, IN)))
        for end, direction in ((edge.source, OUT), (edge.target, IN))
    )
    further = tuple(
        EdgeExtension(
            other,
            candidates(other, pattern.edges[other].target, IN),
            tuple(before for before in order[:at] if _differ_always(pattern, before, other)),
        )
        for at, other in enumerate(others, 1)
    )
    return replace(plan, scan=EdgeScan(edges, source, target, number, further))


def _are_ends(
    snapshot: Snapshot, bound: BoundPattern, number: int, candidates: Ids | None, directions: Sequence[int]
) -> bool:
    """Whether candidates are those which the edges that fulfil conditions start, or end, at: none of these leads to
    others.
    """
    choice = bound.choices[number]
    if candidates is None or choice.fulfil is None or choice.others or len(directions) > 1:
        return False
    table = snapshot.edges.table(choice.labels)
    side = table.starts if directions[0] == OUT else table.ends
    chosen = choice.fulfilling()
    if len(chosen) * _SELECTIVE > len(choice.fulfil):
        return False
    return np.array_equal(each_once(side[chosen], snapshot.graph.vertices), candidates)


def _is_numbered(bound: BoundPattern, pattern: PatternGraph, number: int) -> bool:
    """Whether all that a pattern edge may take are numbered edges, in a clause that asks for no more than these."""
    choice, edge = bound.choices.get(number), pattern.edges[number]
    modes = (ast.MatchMode.DIFFERENT_EDGES, ast.MatchMode.REPEATABLE_ELEMENTS)
    return choice is not None and edge.labels == choice.labels and pattern.clauses[edge.clause].mode in modes


def _away_from_root(pattern: PatternGraph, plan: PhysicalPlan) -> list[int]:
    """Return the edges of a pattern that all lead away from one vertex, in the order of the plan; none of others."""
    edges = pattern.edges
    targets = {edge.target: number for number, edge in enumerate(edges)}
    if len(targets) < len(edges) or len(pattern.vertices) != len(edges) + 1:
        return []
    if not all(edge.directed and edge.labels is not None and len(edge.labels) == 1 for edge in edges):
        return []
    steps = [step.vertex for step in plan.steps if isinstance(step, VertexStep)]
    order = [targets[vertex] for vertex in steps if vertex in targets]
    known = {edges[order[0]].source}
    for number in order:
        if edges[number].source not in known:
            return []
        known.add(edges[number].target)
    return order if len(order) == len(edges) and steps[0] in (edges[order[0]].source, edges[order[0]].target) else []


def _differ_always(pattern: PatternGraph, one: int, other: int) -> bool:
    """Whether two edges of such a pattern must take different data edges, of the same label."""
    first, second = pattern.edges[one], pattern.edges[other]
    same = first.clause == second.clause and first.labels == second.labels
    return same and pattern.clauses[first.clause].mode is ast.MatchMode.DIFFERENT_EDGES


def with_weights(
    snapshot: Snapshot, bound: BoundPattern, needs: Wanted, pattern: PatternGraph, plan: PhysicalPlan
) -> PhysicalPlan:
    """Return a plan that counts parallel edges as weights, where only their number matters and a search costs more."""
    counts = needs.count_only or needs.duplicates == "count"
    if not counts or needs.edges or needs.facts or plan.count_only:
        return plan
    if plan.cost < WORTH and not explosive(pattern, snapshot.graph, plan):
        return plan
    choices = bound.choices.values()
    if not any(choice.parallel for choice in choices) or any(choice.fulfil is not None for choice in choices):
        return plan
    outputs = tuple(bound.vertices[vertex].name for vertex in needs.vertices)
    duplicates: Duplicates = "count" if outputs else "keep"
    counted = replace(pattern, outputs=outputs, count_only=not outputs, limit=None, duplicates=duplicates)
    rows = max((step.estimate for step in plan.steps), default=0.0)
    dearer = replace(plan, cost=plan.cost + _FOUND * rows * len(bound.choices))
    return replace(plan, weighed=weighing_plan(counted, snapshot.graph, dearer))
