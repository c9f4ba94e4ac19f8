"""The plans of matches: a bound pattern gets its candidates, and the way in which its matches are found or counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.graph import PatternGraph, PatternVertex, Wanted
from graphdb.plan.executor import Executor
from graphdb.plan.passes.counting import WORTH, explosive
from graphdb.plan.passes.edge_counts import counted_plan
from graphdb.plan.passes.functional import functional_plan
from graphdb.plan.passes.pipeline import make_plan, without_matches
from graphdb.plan.passes.retarget import retargeted
from graphdb.plan.physical import BundledCount, PhysicalPlan
from graphdb.relational.arguments import Arguments
from graphdb.relational.edges.all_edges import with_all_edges
from graphdb.relational.edges.assignment import Chooser
from graphdb.relational.edges.bundles import is_searched, numbers_bytes, vertices_alone
from graphdb.relational.edges.parallel_edges import ends_of, with_scan, with_weights
from graphdb.relational.edges.subsets import among, subsets_between, subsets_of
from graphdb.relational.filtering.candidates import Candidates
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.arrays.sorted_sets import both
from graphdb.storage.graph.derived.edge_subset import EdgeSubset

if TYPE_CHECKING:
    from graphdb.common.duckdb.connection import Connection

Ids = NDArray[np.int64]


class MatchPlanner:
    """Plans the matches of one query over one state.

    Parameters
    ----------
    snapshot
        The state of names and data that it reads.
    executor
        Who runs the plans: it says how much they are refined.
    text
        The statement, for errors.
    arguments
        The values of the statement's parameters, by their names.
    bindings_bytes
        What the match may take; a plan that counts edges by their pairs of vertices takes no more.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        executor: Executor,
        text: str,
        arguments: Mapping[str, object],
        bindings_bytes: int,
    ) -> None:
        self._snapshot = snapshot
        self.executor = executor
        self._text = text
        self._arguments = Arguments(arguments)
        self._bindings_bytes = bindings_bytes

    @property
    def snapshot(self) -> Snapshot:
        """The state of names and data that it reads."""
        return self._snapshot

    @property
    def connection(self) -> Connection:
        """Where its SQL runs."""
        return self._snapshot.connection

    def _planned(
        self,
        bound: BoundPattern,
        needs: Wanted,
        there: Mapping[str, Ids] | None = None,
        former: PhysicalPlan | None = None,
    ) -> PhysicalPlan:
        """Plan a pattern; vertices of names that ``there`` has must be of these sorted ids, too.

        ``former`` is its plan with other candidates.
        """
        pattern = self._pattern(bound, needs, there)
        return self._made((without_matches(pattern) if pattern.count_only else None) or pattern, bound, needs, former)

    def _made(
        self, pattern: PatternGraph, bound: BoundPattern, needs: Wanted, former: PhysicalPlan | None = None
    ) -> PhysicalPlan:
        """Plan a pattern that has its candidates; see :meth:`_planned`."""
        again = None if former is None else retargeted(former, pattern, self._snapshot.graph)
        if again is not None and not bound.choices:
            return again

        def make() -> PhysicalPlan:
            graph = self._snapshot.graph
            return counted_plan(pattern, graph) or make_plan(pattern, graph, refine=self.executor.refine)

        if (counted := with_all_edges(self._snapshot, pattern, bound, needs)) is not None:
            return counted
        if not bound.choices and (gathered := functional_plan(pattern, self._snapshot.graph)) is not None:
            return gathered
        if bound.choices and (between := subsets_between(self._snapshot, bound, pattern, needs)):
            return self._with_bundles(self._made_among(pattern, bound, needs, between), pattern, bound, needs)
        plan = again or self._snapshot.plans.get_or_make(pattern, make)
        if not bound.choices:
            return self._with_bundles(plan, pattern, bound, needs)
        chooses_all = Chooser(self._snapshot, bound, needs).chooses_all
        plan = with_scan(self._snapshot, bound, pattern, plan, chooses_all=chooses_all)
        if plan.scan is not None:
            return plan
        if not (subsets := subsets_of(self._snapshot, bound, pattern, plan)):
            plan = with_weights(self._snapshot, bound, needs, pattern, plan)
            return self._with_bundles(plan, pattern, bound, needs)
        return self._with_bundles(self._made_among(pattern, bound, needs, subsets), pattern, bound, needs)

    def _with_bundles(
        self, plan: PhysicalPlan, pattern: PatternGraph, bound: BoundPattern, needs: Wanted
    ) -> PhysicalPlan:
        """Return a plan that matches the vertices alone where a search for all edges is long, or may be."""
        graph = self._snapshot.graph
        if not is_searched(plan) or (plan.cost < WORTH and not explosive(pattern, graph, plan)):
            return plan
        if (alone := vertices_alone(bound, pattern, needs, graph.type_label)) is None:
            return plan
        if numbers_bytes(graph, pattern, bound.choices) > self._bindings_bytes:
            return plan
        search = make_plan(alone, graph, refine=self.executor.refine)
        own = plan.own_bytes + search.own_bytes
        return replace(plan, bundled=BundledCount(search, pattern), count_only=False, own_bytes=own)

    def _made_among(
        self, pattern: PatternGraph, bound: BoundPattern, needs: Wanted, subsets: Mapping[int, EdgeSubset]
    ) -> PhysicalPlan:
        """Plan a match some of whose edges are among subsets."""
        fulfilled = frozenset(number for number in subsets if not bound.choices[number].parallel)
        asked = _asking(among(pattern, subsets), bound, needs, Chooser(self._snapshot, bound, needs, fulfilled))
        plan = make_plan(asked, self._snapshot.graph, refine=self.executor.refine)
        distinct = {id(each): each for each in subsets.values()}.values()
        own = sum(each.nbytes for each in distinct)
        return replace(plan, fulfilled=fulfilled, own_bytes=plan.own_bytes + own, subsets=tuple(distinct))

    def _pattern(self, bound: BoundPattern, needs: Wanted, there: Mapping[str, Ids] | None = None) -> PatternGraph:
        """Return a pattern with its candidates; vertices of names that ``there`` has must be of these, too."""
        # Which edges a pattern leaves is not found anew for other values.
        arguments = self._arguments if bound.edge_conditions else self._arguments.unnoted
        candidates = Candidates(self._snapshot, self._text, arguments)
        found = list(candidates.vertices(bound))
        for vertex, ids in ends_of(self._snapshot, bound).items():
            found[vertex] = restricted(found[vertex], ids)
        if there:
            joined = {end for edge in bound.edges for end in (edge.source, edge.target)}
            for number, v in enumerate(found):
                if v.name in there:
                    any_there = v.candidates is None and number not in joined  # of those that some triple has
                    ids = both(self._snapshot.graph.universe(), there[v.name]) if any_there else there[v.name]
                    found[number] = restricted(v, ids)
        pattern = PatternGraph(
            tuple(found), tuple(bound.edges), tuple(bound.clauses), tuple(bound.edge_tests), tuple(bound.unequal)
        )
        return _asking(pattern, bound, needs, Chooser(self._snapshot, bound, needs))


def _asking(pattern: PatternGraph, bound: BoundPattern, needs: Wanted, chooser: Chooser) -> PatternGraph:
    """Return a pattern with what is wanted of its matches, and of these by what finds their edges."""
    vertices, edges = {*needs.vertices, *chooser.vertices}, {*needs.edges, *chooser.edges}
    outputs = [bound.vertices[v].name for v in sorted(vertices)] + [bound.edges[e].name for e in sorted(edges)]
    count_only = (needs.count_only and not chooser) or not outputs
    return replace(
        pattern,
        outputs=() if count_only else tuple(outputs),
        count_only=count_only,
        limit=None if chooser.cuts else 1 if asks_whether(needs) else needs.limit,
        duplicates="keep" if count_only else "count" if needs.count_only else needs.duplicates,
    )


def asks_whether(needs: Wanted) -> bool:
    """Whether all that is wanted of a match is whether there is one."""
    return needs.nothing and needs.duplicates == "drop"


def restricted(vertex: PatternVertex, ids: Ids) -> PatternVertex:
    """Return a pattern vertex that must also be one of some sorted vertices."""
    if vertex.candidates is not None:
        ids = both(vertex.candidates, ids)
    return replace(vertex, candidates=ids)
