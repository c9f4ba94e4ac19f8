"""The draft of a plan: what each pass reads and adds to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from graphdb.common.lazy import lazy
from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph
from graphdb.plan.candidates.refinement import Refine
from graphdb.plan.candidates.space import CandidateSpace
from graphdb.plan.checks import Check, Relation
from graphdb.plan.counting.inclusion_exclusion import Quotient
from graphdb.plan.counting.programs import Part
from graphdb.plan.counting.tree import TreeCount
from graphdb.plan.estimates.cost import Estimates, estimate
from graphdb.plan.ordering.order import matching_order
from graphdb.plan.ordering.sample import Forecast, best_order, modelled
from graphdb.plan.passes.counting import OVERHEAD, SURELY, counts_along_edges
from graphdb.plan.physical import Step
from graphdb.plan.symmetry import NO_SYMMETRY, Symmetry
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Partition

LATER = 5e5
"""Searches that are expected to scan so many elements are not looked at before it is known whether they give way
to sums; cheaper ones seldom do so whatever is seen."""


@dataclass
class Draft:
    """A plan in the making.  ``position[v]`` is the step that binds pattern vertex ``v``."""

    pattern: PatternGraph
    graph: DataGraph
    counting: Literal["auto", "always", "never"] = "auto"
    sampled: bool = True
    """Whether a dear search is looked at by random walks; False leaves it to the model."""
    refine: Refine | None = None
    """Refines candidates elsewhere, if it takes them."""
    fixed: tuple[int, ...] | None = None
    """The order in which the pattern vertices are to be bound, if one is prescribed."""
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
    """Expected values that each vertex step scans."""
    differ: tuple[Check, ...] = ()
    """What must differ, before symmetry says some of it in another way."""
    checks: list[Check] = field(default_factory=list)
    chosen_edges: set[int] = field(default_factory=set)
    """Edges whose data edge must be bound by a step of its own."""
    steps: list[Step] = field(default_factory=list)
    symmetry: Symmetry = NO_SYMMETRY
    counted: dict[tuple[Quotient, int], tuple[Part, ...] | None] = field(default_factory=dict)
    """How the terms of sums are counted, as far as they were planned."""
    _simple: dict[tuple[tuple[int, ...] | None, bool], bool] = field(default_factory=dict)

    @lazy
    def plain(self) -> Estimates:
        """What is expected of a search over the candidates as they are, …"""
        return estimate(self.pattern, self.graph)

    @lazy
    def searched(self) -> Forecast:
        """… and what its best order does.  Nobody looks at samples for a search that will give way to counting."""
        if self.linear and self.modelled.cost > SURELY * self.along_edges:
            return self.modelled
        return best_order(self.pattern, self.graph, self.plain, matching_order, self.modelled)

    @property
    def forecast(self) -> Forecast:
        """What the plan's order does: of a search that may give way to counting, as modelled, not as looked at."""
        if self.fixed is not None:
            return modelled(self.plain, self.fixed)
        return self.modelled if self.unsure else self.searched

    @lazy
    def modelled(self) -> Forecast:
        """What the statistics say of the order that they like best."""
        return modelled(self.plain, matching_order(self.plain))

    @property
    def unsure(self) -> bool:
        """Whether random walks would have corrected the estimates of the search."""
        looked_at = self.sampled or self.space or self.linear or self.fixed is not None
        return not looked_at and self.modelled.cost > LATER

    @lazy
    def linear(self) -> bool:
        """Whether the matches are only counted, and can be along the edges: homomorphisms of a forest."""
        return self.counting != "never" and counts_along_edges(self.pattern)

    @property
    def along_edges(self) -> float:
        """What counting along the edges scans at most."""
        triples = sum((2 - edge.directed) * self.graph.statistics(edge.labels).triples for edge in self.pattern.edges)
        return OVERHEAD + 2.0 * triples + sum(self.plain.sizes)

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
        kind = (edge.labels, edge.directed)
        if kind not in self._simple:
            self._simple[kind] = has_one_code(edge) or self.partition(self.relation(edge)[0]).simple
        return self._simple[kind]


def has_one_code(edge: PatternEdge) -> bool:
    """Whether the edge's code is known from the pattern alone: one label, directed."""
    return edge.directed and edge.admitted is not None and len(edge.admitted) == 1
