"""Delta plans: how the matches that a changed edge takes part in are found, one plan for each pattern edge.

The plan of pattern edge *i* binds it to the changed edges, and all others to edges that are there: those before *i* in
both versions of the graph, those after it in the version that is searched.  With the edges' total order every match is
found once (GAMMA §IV-C; Graphflow, Kankanamge et al., SIGMOD 2017, derives the same from the join's difference).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental import frame
from graphdb.incremental.lists import Size
from graphdb.incremental.relations import Relation
from graphdb.pattern.graph import PatternEdge, PatternGraph
from graphdb.plan.checks import Check, EdgesDiffer, Never, NotBothEqual, Unequal
from graphdb.plan.injectivity import distinctness

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Leg:
    """A pattern edge to a vertex that is bound: the relation seen from there, and the edge's number."""

    relation: int
    of: int
    edge: int


@dataclass(frozen=True, slots=True)
class VertexStep:
    """Bind ``vertex`` to what is in the lists of all legs."""

    vertex: int
    legs: tuple[Leg, ...]
    candidate: bool
    """Whether the candidate table says more than the legs do."""


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """Bind a pattern edge, whose ends are bound, to each data edge between them; ``leg`` is seen from its source."""

    leg: Leg


@dataclass(frozen=True, slots=True)
class DeltaPlan:
    """The steps after ``edge`` is bound to a changed edge of ``relation``."""

    edge: int
    relation: int
    steps: tuple[VertexStep | EdgeStep, ...]


@dataclass(frozen=True)
class Program:
    """The delta plans of a pattern, and the same as tables of :mod:`.frame`.

    ``plain`` programs are for graphs where no two vertices are joined by several edges of one relation: then a pattern
    edge needs no step of its own to be bound.
    """

    pattern: PatternGraph
    plain: bool
    plans: tuple[DeltaPlan, ...]
    tables: dict[int, Ints]
    """By cell of a search's frame."""
    relations: tuple[int, ...]
    """Relations that must have no parallel edges for it to be used."""


class Compiler:
    """Makes the delta plans of a pattern.

    Parameters
    ----------
    pattern, relations
        The pattern, and the relation of each of its edges, seen from its source.
    numbers, sizes, set_sizes
        The number of each relation, by it the sizes to estimate from, and the vertices in each candidate set.
    type_label
        The edge label ``rdf:type``.
    """

    def __init__(
        self,
        pattern: PatternGraph,
        relations: Sequence[Relation],
        numbers: dict[Relation, int],
        sizes: Sequence[Size],
        set_sizes: Sequence[int],
        type_label: int | None,
    ) -> None:
        self._pattern, self._relations, self._numbers = pattern, relations, numbers
        self._sizes, self._set_sizes, self._type_label = sizes, set_sizes, type_label

    def program(self, table_row: int, number_of: Callable[[int], int], plain: bool) -> Program:
        """Return the program; ``table_row`` is the pattern's candidate table, ``number_of`` numbers edge labels."""
        edges = self._pattern.edges
        several = [relation.several for relation in self._relations]
        checks = distinctness(self._pattern, self._type_label, lambda edge: plain or not several[edges.index(edge)])
        checks = [check for check in checks if not self._never_equal(check)]
        stepped = {
            e for check in checks if isinstance(check, EdgesDiffer) for e in (check.first, check.second) if several[e]
        }
        stepped |= {
            e for e, edge in enumerate(edges) if several[e] and (not plain or edge.name in self._pattern.outputs)
        }
        never = any(isinstance(check, Never) for check in checks)
        plans = () if never else tuple(self._plan(e, stepped) for e in range(len(edges)))
        relations = {self._numbers[r] for r, more in zip(self._relations, several, strict=True) if more and plain}
        tables = _Tables(self._pattern, self._relations, checks, table_row, plain, number_of).write(plans)
        return Program(self._pattern, plain, plans, tables, tuple(sorted(relations)))

    def _never_equal(self, check: Check) -> bool:
        """Whether an inequality always holds: no vertex is a candidate of both."""
        if not isinstance(check, Unequal):
            return False
        first, second = (self._pattern.vertices[v].candidates for v in (check.left, check.right))
        if first is None or second is None:
            return False
        return not len(np.intersect1d(first, second, assume_unique=True))

    def _leg(self, edge: int, to: int) -> Leg:
        """Return the leg of an edge by which its end ``to`` is bound."""
        end, relation = self._pattern.edges[edge], self._relations[edge]
        if end.target == to:
            return Leg(self._numbers[relation], end.source, edge)
        return Leg(self._numbers[relation.reversed], end.target, edge)

    def _plan(self, first: int, stepped: set[int]) -> DeltaPlan:
        """Return the plan of a pattern edge, in a greedy order: fewest expected bindings first, leaves last."""
        edges = self._pattern.edges
        bound = {edges[first].source, edges[first].target}
        done, steps = {first}, list[VertexStep | EdgeStep]()

        def bind_edges() -> None:
            for e, edge in enumerate(edges):
                if e not in done and {edge.source, edge.target} <= bound:
                    done.add(e)
                    steps.append(EdgeStep(Leg(self._numbers[self._relations[e]], edge.source, e)))

        bind_edges()
        while len(bound) < len(self._pattern.vertices):
            vertex, legs = min(self._next(bound), key=lambda found: self._rank(*found))
            closed = all({edge.source, edge.target} <= bound | {vertex} for edge in self._edges_of(vertex))
            steps.append(VertexStep(vertex, legs, not closed))
            bound.add(vertex)
            done |= {leg.edge for leg in legs} - stepped
            bind_edges()
        return DeltaPlan(first, self._numbers[self._relations[first]], tuple(steps))

    def _edges_of(self, vertex: int) -> list[PatternEdge]:
        return [edge for edge in self._pattern.edges if vertex in (edge.source, edge.target)]

    def _next(self, bound: set[int]) -> list[tuple[int, tuple[Leg, ...]]]:
        """Return the vertices beside those bound, with their legs."""
        legs: dict[int, list[Leg]] = {}
        for e, edge in enumerate(self._pattern.edges):
            for near, far in ((edge.source, edge.target), (edge.target, edge.source)):
                if near in bound and far not in bound:
                    legs.setdefault(far, []).append(self._leg(e, far))
        return [(vertex, tuple(own)) for vertex, own in legs.items()]

    def _rank(self, vertex: int, legs: tuple[Leg, ...]) -> tuple[bool, float, int]:
        """Return what a vertex is chosen by: no leaf, fewest bindings expected, most edges."""
        degree = len(self._edges_of(vertex))
        fans = sorted(self._sizes[leg.relation].entries / max(1, self._sizes[leg.relation].near) for leg in legs)
        candidates = self._pattern.vertices[vertex].candidates
        among = max(1, self._set_sizes[0] if candidates is None else len(candidates))
        estimate = fans[0]
        for fan in fans[1:]:
            estimate *= min(1.0, fan / among)
        return degree == 1, estimate, -degree


class _Tables:
    """Writes delta plans down as tables."""

    def __init__(
        self,
        pattern: PatternGraph,
        relations: Sequence[Relation],
        checks: Sequence[Check],
        table_row: int,
        plain: bool,
        number_of: Callable[[int], int],
    ) -> None:
        self._pattern, self._relations, self._table_row, self._plain = pattern, relations, table_row, plain
        self._tests = [self._test(check) for check in checks if not isinstance(check, Never)]
        self._plans: list[list[int]] = []
        self._steps: list[list[int]] = []
        self._legs: list[list[int]] = []
        self._checks: list[list[int]] = []
        self._values = np.zeros(len(pattern.vertices) + len(pattern.edges), np.int64)
        for e, edge in enumerate(pattern.edges):
            if not relations[e].several and edge.labels:
                self._values[self._edge_slot(e)] = 2 * number_of(edge.labels[0])

    def write(self, plans: Sequence[DeltaPlan]) -> dict[int, Ints]:
        """Return the tables by their cells."""
        for plan in plans:
            self._write_plan(plan)
        names = [vertex.name for vertex in self._pattern.vertices] + [edge.name for edge in self._pattern.edges]
        outputs = np.array([names.index(name) for name in self._pattern.outputs], np.int64)
        return {
            frame.PLANS: _table(self._plans, frame.PLAN_CELLS),
            frame.STEPS: _table(self._steps, frame.STEP_CELLS),
            frame.LEGS: _table(self._legs, frame.LEG_CELLS),
            frame.CHECKS: _table(self._checks, frame.CHECK_CELLS),
            frame.OUTPUTS: outputs,
            frame.VALUES: self._values,
            frame.STACK: np.zeros((len(self._steps), frame.STACK_CELLS), np.int64),
            frame.SPANS: np.zeros((len(self._legs), frame.SPAN_CELLS), np.int64),
        }

    def _edge_slot(self, edge: int) -> int:
        return len(self._pattern.vertices) + edge

    def _test(self, check: Check) -> tuple[set[int], list[int]]:
        """Return the slots that a check reads, and its row."""
        match check:
            case Unequal(a, b):
                return {a, b}, [frame.UNEQUAL, a, b]
            case NotBothEqual(a, b, c, d):
                return {a, b, c, d}, [frame.NOT_BOTH_EQUAL, a, b, c, d]
            case EdgesDiffer(i, j):
                row, slots = [frame.EDGES_DIFFER], set[int]()
                for e in (i, j):
                    edge = self._pattern.edges[e]
                    row += [self._edge_slot(e), edge.source, edge.target]
                    slots |= {edge.source, edge.target}
                    slots |= {self._edge_slot(e)} if self._relations[e].several else set()
                return slots, row
        raise TypeError(f"{check} is no check of delta plans")

    def _due(self, bound: set[int], slots: set[int]) -> tuple[int, int]:
        """Write the checks whose last slot is now bound; return where they begin and end."""
        begin = len(self._checks)
        for read, row in self._tests:
            if read <= bound | slots and not read <= bound:
                self._checks.append(row + [0] * (frame.CHECK_CELLS - len(row)))
        bound |= slots
        return begin, len(self._checks)

    def _write_plan(self, plan: DeltaPlan) -> None:
        edge = self._pattern.edges[plan.edge]
        bound: set[int] = set()
        seed_checks = self._due(bound, {edge.source, edge.target, self._edge_slot(plan.edge)})
        first = len(self._steps)
        for step in plan.steps:
            if isinstance(step, EdgeStep):
                self._write_edge_step(plan, step, bound)
            else:
                self._write_vertex_step(plan, step, bound)
        row = [plan.relation, edge.source, edge.target, self._edge_slot(plan.edge), first, len(self._steps)]
        self._plans.append([*row, *seed_checks, self._table_row, int(edge.source == edge.target)])

    def _write_vertex_step(self, plan: DeltaPlan, step: VertexStep, bound: set[int]) -> None:
        legs = len(self._legs)
        for leg in step.legs:
            several = self._relations[leg.edge].several and not self._plain
            self._legs.append([leg.relation, leg.of, int(leg.edge > plan.edge), int(several), 0])
        checks = self._due(bound, {step.vertex})
        bit = step.vertex if step.candidate else -1
        countable = bit < 0 and len(step.legs) == 1 and not self._legs[-1][3]
        countable = countable and all(row[0] == frame.UNEQUAL for row in self._checks[checks[0] :])
        self._steps.append([frame.VERTEX, step.vertex, legs, len(self._legs), *checks, bit, int(countable)])

    def _write_edge_step(self, plan: DeltaPlan, step: EdgeStep, bound: set[int]) -> None:
        leg, legs = step.leg, len(self._legs)
        late = int(leg.edge > plan.edge)
        self._legs.append([leg.relation, leg.of, late, 0, self._pattern.edges[leg.edge].target])
        slot = self._edge_slot(leg.edge)
        self._steps.append([frame.EDGE, slot, legs, legs + 1, *self._due(bound, {slot}), -1, 0])


def _table(rows: list[list[int]], columns: int) -> Ints:
    return np.array(rows, np.int64).reshape(-1, columns)
