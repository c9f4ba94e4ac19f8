"""A pattern's delta plans as the tables that its search reads (:mod:`.frame`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental import frame
from graphdb.incremental.delta_plan import DeltaPlan, EdgeStep, Planner, Step, VertexStep, ancestors, slots_of
from graphdb.incremental.lists import Lists
from graphdb.incremental.orbits import MOST_COPIES, Copy, Orbit, alone, exchanged, orbits
from graphdb.incremental.relations import Relation
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.checks import Check, EdgesDiffer, Never, NotBothEqual, Unequal
from graphdb.plan.injectivity import distinctness

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """The delta plans of a pattern, and the same as tables.

    ``plain`` programs are for graphs where no two vertices are joined by several edges of one relation: then a pattern
    edge needs no step of its own to be bound.  ``counted`` ones enumerate what their outputs are made of, and count the
    rest of each match.
    """

    pattern: PatternGraph
    plain: bool
    counted: bool
    plans: tuple[tuple[DeltaPlan, ...], ...]
    """By orbit of pattern edges, the plan of one of them in several orders."""
    orbits: tuple[Orbit, ...]
    tables: dict[int, Ints]
    """By cell of a search's frame."""
    relations: tuple[int, ...]
    """Relations that must have no parallel edges for it to be used."""


def make_program(
    pattern: PatternGraph,
    relations: Sequence[Relation],
    lists: Lists,
    sets: Sequence[int],
    apart: Callable[[int, int], bool],
    *,
    plain: bool,
    counted: bool = False,
    seed: int | None = None,
) -> Program:
    """Return the program of a pattern.

    Parameters
    ----------
    pattern, relations
        The pattern, and the relation of each of its edges, seen from its source.
    lists
        What relations and edge labels are numbered in, and orders are estimated from.
    sets
        By vertex, the number of its candidate set.
    apart
        Whether two of its vertices have no candidate in common.
    seed
        The one edge that changed edges are bound to first; None: each.
    """
    edges, numbers, source = pattern.edges, lists.relations.numbers, lists.relations.source
    several = [relation.several for relation in relations]
    checks = distinctness(pattern, source.type_label, lambda edge: plain or not several[edges.index(edge)])
    checks = [check for check in checks if not (isinstance(check, Unequal) and apart(check.left, check.right))]
    compared = {e for check in checks if isinstance(check, EdgesDiffer) for e in (check.first, check.second)}
    never = any(isinstance(check, Never) for check in checks)
    found = () if never else tuple(orbits(pattern, sets) if seed is None else [alone(pattern, seed)])
    outputs = [e for e, edge in enumerate(edges) if edge.name in pattern.outputs]
    free = [] if counted else [each for each in found if len(each.copies) * each.exchanges <= MOST_COPIES]
    classes = {orbit.edge: orbit.classes for orbit in free}  # a counted match's rows would be as many as its copies
    copies = (exchanged(pattern, orbit.copies, classes.get(orbit.edge, ())) for orbit in found)
    wanted = {copy.edges[e][0] for copy in chain(*copies) for e in outputs}
    stepped = {e for e in range(len(edges)) if several[e] and (not plain or e in compared or e in wanted)}
    slots = {orbit.edge: _slots(pattern, orbit) for orbit in found} if counted else None
    planner = Planner(
        pattern, relations, numbers, lists.sizes, lists.relations.vertices, checks, stepped, apart, slots, classes
    )
    plans = tuple(tuple(planner.plans(orbit.edge)) for orbit in found)
    uncertain = {numbers[relation] for relation, more in zip(relations, several, strict=True) if more and plain}
    tables = _Tables(pattern, relations, checks, planner, plain, lists.number_of).write(found, plans)
    return Program(pattern, plain, counted, plans, found, tables, tuple(sorted(uncertain)))


def _slots(pattern: PatternGraph, orbit: Orbit) -> set[int]:
    """Return the slots that the outputs of a match's copies are made of."""
    found = set[int]()
    for copy in orbit.copies:
        bound = zip(copy.vertices, pattern.vertices, strict=True)
        found |= {v for v, vertex in bound if vertex.name in pattern.outputs}
        for (number, _), edge in zip(copy.edges, pattern.edges, strict=True):
            if edge.name in pattern.outputs:
                own = pattern.edges[number]
                found |= {len(pattern.vertices) + number, own.source, own.target}
    return found


@dataclass(frozen=True)
class _Tree:
    """All steps of a plan: its own, and behind them those of subtrees in other orders."""

    steps: list[Step]
    parents: list[int]
    instead: list[int]
    """By step, the one instead of which it begins a subtree, or -1."""

    @classmethod
    def of(cls, plan: DeltaPlan) -> _Tree:
        """Return the steps of a plan."""
        steps = [*plan.steps, *(turned.step for turned in plan.turned)]
        parents = [*plan.parents, *(turned.parent for turned in plan.turned)]
        return cls(steps, parents, [-1] * len(plan.steps) + [turned.instead for turned in plan.turned])

    def above(self, number: int) -> list[int]:
        """Return the steps that a step is below."""
        return ancestors(self.parents, number)

    def children(self, number: int) -> list[int]:
        """Return the steps that depend on a step, in one order."""
        return [i for i, of in enumerate(self.parents) if of == number and self.instead[i] < 0]

    def siblings(self, number: int) -> list[int]:
        """Return the steps that are counted after a step, for the same binding of its parent."""
        while self.instead[number] >= 0:
            number = self.instead[number]
        return [i for i in self.children(self.parents[number]) if i > number]


class _Tables:
    """Writes delta plans down as tables."""

    def __init__(
        self,
        pattern: PatternGraph,
        relations: Sequence[Relation],
        checks: Sequence[Check],
        planner: Planner,
        plain: bool,
        number_of: Callable[[int], int],
    ) -> None:
        self._pattern, self._relations, self._plain = pattern, relations, plain
        self._planner = planner
        self._tests = [self._test(check) for check in checks if not isinstance(check, Never)]
        self._tests_of: dict[int, list[int]] = {}
        for number, (slots, _) in enumerate(self._tests):
            for slot in slots:
                self._tests_of.setdefault(slot, []).append(number)
        self._plans: list[list[int]] = []
        self._copies: list[list[list[int]]] = []
        self._steps: list[list[int]] = []
        self._legs: list[list[int]] = []
        self._checks: list[list[int]] = []
        self._counted: list[list[int]] = []
        self._above: list[tuple[int, int]] = []
        """Of the plan that is written, the vertices that are bound in ascending order, one by one."""
        self._values = np.zeros(len(pattern.vertices) + len(pattern.edges), np.int64)
        for e, edge in enumerate(pattern.edges):
            if not relations[e].several and edge.labels:
                self._values[self._edge_slot(e)] = 2 * number_of(edge.labels[0])

    def write(self, found: Sequence[Orbit], plans: Sequence[Sequence[DeltaPlan]]) -> dict[int, Ints]:
        """Return the tables by their cells."""
        starts: dict[int, list[int]] = {number: [] for number in self._planner.numbers.values()}
        for orbit, orders in zip(found, plans, strict=True):
            starts[orders[0].relation].append(len(self._plans))
            for number, plan in enumerate(orders):
                copies, each = len(self._copies), exchanged(self._pattern, orbit.copies, plan.classes)
                self._copies += [self._copy(copy) for copy in each]
                self._write_plan(plan, len(orders) - number)
                last = self._plans[-1][4] + plan.enumerated - 1 if plan.enumerated else -1
                self._plans[-1] += [copies, len(each), int(orbit.one_way), 0, last]
        numbers = [starts[number] for number in range(len(starts))]
        return {
            frame.PLANS: _table(self._plans, frame.PLAN_CELLS),
            frame.PLAN_STARTS: np.cumsum([0] + [len(own) for own in numbers]),
            frame.PLAN_NUMBERS: np.array([plan for own in numbers for plan in own], np.int64),
            frame.STEPS: _table(self._steps, frame.STEP_CELLS),
            frame.LEGS: _table(self._legs, frame.LEG_CELLS),
            frame.CHECKS: _table(self._checks, frame.CHECK_CELLS),
            frame.COPIES: np.array(self._copies, np.int64).reshape(-1, frame.COPY_CELLS),
            frame.VALUES: self._values,
            frame.STACK: np.zeros((len(self._steps), frame.STACK_CELLS), np.int64),
            frame.SPANS: np.zeros((len(self._legs), frame.SPAN_CELLS), np.int64),
            frame.CHUNKS: np.zeros((len(self._steps), frame.CHUNK), np.int64),
            frame.COUNTED: _table(self._counted, frame.COUNTED_CELLS),
        }

    def _copy(self, copy: Copy) -> list[list[int]]:
        """Return the cells of a match's copy, by column."""
        vertices = {vertex.name: v for v, vertex in enumerate(self._pattern.vertices)}
        edges = {edge.name: e for e, edge in enumerate(self._pattern.edges)}
        cells = []
        for name in self._pattern.outputs:
            if name in vertices:
                cells.append([copy.vertices[vertices[name]], -1, -1])
            else:
                number, turned = copy.edges[edges[name]]
                edge = self._pattern.edges[number]
                cells.append([self._edge_slot(number), *((edge.source, edge.target) if turned else (-1, -1))])
        return cells

    def _edge_slot(self, edge: int) -> int:
        return len(self._pattern.vertices) + edge

    def _test(self, check: Check) -> tuple[frozenset[int], list[int]]:
        """Return the slots that a check waits for, and its row."""
        simple = {self._edge_slot(e) for e, relation in enumerate(self._relations) if not relation.several}
        slots = slots_of(check, self._pattern) - simple  # whose codes are known
        match check:
            case Unequal(a, b):
                return slots, [frame.UNEQUAL, a, b]
            case NotBothEqual(a, b, c, d):
                return slots, [frame.NOT_BOTH_EQUAL, a, b, c, d]
            case EdgesDiffer(i, j):
                return slots, [frame.EDGES_DIFFER, *self._edge_cells(i), *self._edge_cells(j)]
        raise TypeError(f"{check} is no check of delta plans")

    def _edge_cells(self, edge: int) -> tuple[int, int, int]:
        return self._edge_slot(edge), self._pattern.edges[edge].source, self._pattern.edges[edge].target

    def _due(self, bound: set[int], slots: set[int], last: frozenset[int] = frozenset()) -> tuple[int, int, int]:
        """Write the checks whose last slot is now bound, those that read a slot of ``last`` behind the others.

        Returns where they begin and end, and where the others end.
        """
        begin = len(self._checks)
        new = slots - bound
        above = [[frame.ABOVE, b, a] for a, b in self._above if {a, b} <= bound | new and {a, b} & new]
        tests = {number: None for slot in sorted(new) for number in self._tests_of.get(slot, ())}
        due = [self._tests[number] for number in tests if self._tests[number][0] <= bound | new]
        due.sort(key=lambda test: bool(test[0] & last))
        rows = above + [row for _, row in due]
        self._checks += [row + [0] * (frame.CHECK_CELLS - len(row)) for row in rows]
        bound |= slots
        return begin, len(self._checks), begin + len(above) + sum(not read & last for read, _ in due)

    def _write_plan(self, plan: DeltaPlan, orders: int) -> None:
        edge = self._pattern.edges[plan.edge]
        self._above = [pair for own in plan.classes for pair in pairwise(own)]
        bound: set[int] = set()
        seed = {edge.source, edge.target, self._edge_slot(plan.edge)}
        begin, end, _ = self._due(bound, set(seed))
        tree = _Tree.of(plan)
        first, hoisted = len(self._steps), self._hoisted(plan, tree)
        for number, step in enumerate(tree.steps):
            if number >= len(plan.steps):
                bound = seed | {self._planner.slot(tree.steps[above]) for above in tree.above(number)}
            if isinstance(step, EdgeStep):
                self._write_edge_step(plan, step, bound)
            else:
                self._write_vertex_step(plan, step, self._twins(plan, tree, number), bound)
            self._steps[-1] += self._family(plan, tree, number, first)
            turned = next((i + first for i, of in enumerate(tree.instead) if of == number), -1)
            place, when = hoisted.get(number, (-1, frame.ONCE))
            alike = number not in tree.parents and self._is_alike(self._steps[-1])
            leg = -1 if place >= 0 else self._leg_of_leaf(tree, number)
            work = int(self._planner.begun(step) * frame.BINDING)
            self._counted.append([turned, place, int(alike), when, leg, work])
        last = first + len(plan.steps)
        row = [plan.relation, edge.source, edge.target, self._edge_slot(plan.edge), first, last, begin, end]
        work = min(int(plan.begun * frame.BINDING), 1 << 30)
        self._plans.append([*row, int(edge.source == edge.target), orders, work])

    def _hoisted(self, plan: DeltaPlan, tree: _Tree) -> dict[int, tuple[int, int]]:
        """Return by step the place of what its lists share, and when it is written down, where they share it often."""
        found: dict[int, tuple[int, int]] = {}
        for number in range(plan.enumerated, len(tree.steps)):
            step, parent = tree.steps[number], tree.parents[number]
            above = tree.steps[parent] if parent >= 0 else step
            if isinstance(step, EdgeStep) or isinstance(above, EdgeStep) or len(step.legs) < 2 or parent in plan.paired:
                continue
            if parent >= plan.enumerated and self._planner.same_lists(step, above, plan.edge, plan.classes):
                place, _ = found.setdefault(parent, (len(found), frame.EACH))
                found[number] = place, frame.ABOVE_IT
            elif parent >= 0 and all(leg.of != above.vertex for leg in step.legs):
                found[number] = len(found), frame.ONCE
        return found

    def _leg_of_leaf(self, tree: _Tree, number: int) -> int:
        """Return the leg by which a leaf is counted without being opened (:mod:`.kernels.leaf_kernels`), or -1."""
        row, step, parent = self._steps[-1], tree.steps[number], tree.parents[number]
        if isinstance(step, EdgeStep) or parent < 0 or number in tree.parents:
            return -1
        one = row[3] - row[2] == 1 and row[7] >= 0 and self._legs[row[2]][1] == self._planner.slot(tree.steps[parent])
        return row[2] if one else -1

    def _twins(self, plan: DeltaPlan, tree: _Tree, number: int) -> list[VertexStep]:
        """Return the twins that a step is counted beside."""
        steps, parents = tree.steps, tree.parents
        if number < plan.enumerated or number in parents or self._planner.slot(steps[number]) in plan.ordered:
            return []
        beside = [i for i, parent in enumerate(parents) if parent == parents[number] and i not in parents]
        twins = [steps[i] for i in beside if self._planner.twins(steps[number], steps[i], plan.edge)]
        return [step for step in twins if isinstance(step, VertexStep)]

    def _family(self, plan: DeltaPlan, tree: _Tree, number: int, first: int) -> list[int]:
        """Return a step's parent, first child and next sibling, or -1, and the cell behind them (:mod:`.frame`)."""
        parent = tree.parents[number]
        children, siblings = tree.children(number), tree.siblings(number)
        family = [parent + first if parent >= 0 else -1, *(f[0] + first if f else -1 for f in (children, siblings))]
        step, row = tree.steps[number], self._steps[-1]
        if isinstance(step, EdgeStep):
            return [*family, 0]
        if children:
            if number in plan.paired:
                third = plan.parents.index(plan.parents.index(number))
                distinct = self._planner.differ(step, plan.steps[third])
                return [*family, frame.DISTINCT_PAIRS if distinct else frame.PAIRS]
            return [*family, int(not any(of in children for of in tree.parents))]
        return [*family, int(len(step.legs) in (2, 3) and not step.candidate and self._is_alike(row))]

    def _is_alike(self, row: Sequence[int]) -> bool:
        """Whether what a step binds must differ from others, and nothing else."""
        return all(check[0] == frame.UNEQUAL for check in self._checks[row[4] : row[5]])

    def _write_vertex_step(self, plan: DeltaPlan, step: VertexStep, twins: list[VertexStep], bound: set[int]) -> None:
        """Write a step.

        Of twins by one edge, those whose edge comes before the plan's own are counted first: what they may be bound to,
        the others may be bound to as well, so that each has one less to be bound to for every twin before it.
        """
        legs = len(self._legs)
        for leg in step.legs:
            several = self._relations[leg.edge].several and not self._plain
            self._legs.append([leg.relation, leg.of, int(self._planner.late(leg, plan.edge)), int(several), 0])
        begin, end, counted = self._due(bound, {step.vertex}, frozenset(self._planner.slot(twin) for twin in twins))
        bit = step.vertex if step.candidate else -1
        countable = bit < 0 and len(step.legs) == 1 and not self._legs[-1][3]
        countable = countable and all(row[0] == frame.UNEQUAL for row in self._checks[begin:])
        countable = countable or (len(step.legs) > 1 and bool(twins))
        before = sum(self._order(twin, plan) < self._order(step, plan) for twin in twins) if countable else -1
        row = [frame.VERTEX, step.vertex, legs, len(self._legs), begin, end, bit, before, counted]
        self._steps.append(row)

    def _order(self, step: VertexStep, plan: DeltaPlan) -> tuple[bool, int]:
        """Return what twins are counted by."""
        return len(step.legs) == 1 and self._planner.late(step.legs[0], plan.edge), step.vertex

    def _write_edge_step(self, plan: DeltaPlan, step: EdgeStep, bound: set[int]) -> None:
        leg, legs = step.leg, len(self._legs)
        late = int(self._planner.late(leg, plan.edge))
        self._legs.append([leg.relation, leg.of, late, 0, self._pattern.edges[leg.edge].target])
        slot = self._edge_slot(leg.edge)
        begin, end, _ = self._due(bound, {slot})
        self._steps.append([frame.EDGE, slot, legs, legs + 1, begin, end, -1, -1, end])


def _table(rows: list[list[int]], columns: int) -> Ints:
    return np.array(rows, np.int64).reshape(-1, columns)
