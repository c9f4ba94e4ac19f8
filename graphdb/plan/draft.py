"""A plan in the making: what each pass reads, and adds to."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph
from graphdb.plan.cost import Estimates
from graphdb.plan.physical import (
    Check,
    Relation,
    Step,
    TreeCount,
)
from graphdb.plan.space import CandidateSpace
from graphdb.plan.symmetry import NO_SYMMETRY, Symmetry
from graphdb.storage.graph import DataGraph
from graphdb.storage.pcsr import Partition


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


def has_one_code(edge: PatternEdge) -> bool:
    """Whether the edge's code is known from the pattern alone: one label, directed."""
    return edge.directed and edge.labels is not None and len(edge.labels) == 1
