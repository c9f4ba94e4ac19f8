"""Delta plans: how the matches that a changed edge takes part in are found, one plan for each pattern edge.

The plan of a pattern edge binds it to the changed edges, and all others to edges that are there: in both versions of
the graph, or in the version that is searched if they come after the changed edge.  With this total order every match is
found once, at the least of its changed edges (GAMMA §IV-C; Graphflow orders the pattern's edges instead, and
derives the same from the join's difference: Kankanamge et al., SIGMOD 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations
from typing import TypeAlias

from graphdb.incremental.lists import Size
from graphdb.incremental.relations import Relation
from graphdb.pattern.graph import PatternEdge, PatternGraph
from graphdb.plan.checks import Check, EdgesDiffer, NotBothEqual, Unequal

MOST_ORDERS = 4
"""Of a delta plan."""
MOST_TURNED = 2
"""Vertices of a subtree of a plan that may be bound in several orders."""
LEAST = 0.02
"""Bindings of a step that are expected at least: neighbours of neighbours are neighbours more often than others."""
JOINED = 0.1
"""Of the entries of a list, the share that is expected to be in another list, too, at least: to choose an order by."""
LEAVES = 0.5
"""What a binding takes below which all steps are leaves, in others: these are counted without being stepped through."""
SCANNED = 0.1
"""What an entry of a list takes that is looked at and passed over, in bindings."""


@dataclass(frozen=True, slots=True)
class Leg:
    """A pattern edge to a vertex that is bound: the relation seen from there, and the edge's number."""

    relation: int
    of: int
    edge: int


@dataclass(frozen=True, slots=True)
class VertexStep:
    """Bind ``vertex`` to what is in the lists of all legs, where it has none to any candidate."""

    vertex: int
    legs: tuple[Leg, ...]
    candidate: bool
    """Whether the candidate table says more than the legs do."""


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """Bind a pattern edge, whose ends are bound, to each data edge between them; ``leg`` is seen from its source."""

    leg: Leg


Step: TypeAlias = VertexStep | EdgeStep


@dataclass(frozen=True, slots=True)
class Turned:
    """A step of a subtree in another order, which is counted where its first step has fewer bindings."""

    step: Step
    parent: int
    """The number of its parent: of a plan's own steps, or behind them of these."""
    instead: int
    """The number of the step instead of which it begins the subtree; -1 for the steps below."""


@dataclass(frozen=True, slots=True)
class DeltaPlan:
    """The steps after ``edge`` is bound to a changed edge of ``relation``.

    They are a tree in preorder: a step's bindings depend on those of its ancestors and of no others, so that what is
    counted is, for each binding, the product of what its children count (AND/OR search over a pseudo tree: Dechter and
    Mateescu, "AND/OR search spaces for graphical models", 2007).  Who enumerates takes one step after the other.
    """

    edge: int
    relation: int
    steps: tuple[Step, ...]
    parents: tuple[int, ...]
    """By step, its parent's number, -1 for those that depend on ``edge`` alone."""
    work: float
    """Bindings expected for each one of the first step."""
    begun: float
    """What orders are compared by: the work expected for each entry of the first step's shortest list, in bindings."""
    enumerated: int
    """So many first steps, each the only child of the one before, bind what is wanted; the others are only counted."""
    classes: tuple[tuple[int, ...], ...] = ()
    """Vertices that may be exchanged (:attr:`.orbits.Orbit.classes`) and are bound in ascending order."""
    paired: frozenset[int] = frozenset()
    """Steps whose bindings are counted in pairs, by what the step below binds to both."""
    turned: tuple[Turned, ...] = ()
    """Small subtrees in other orders, for who counts."""

    @property
    def ordered(self) -> frozenset[int]:
        """All of them."""
        return frozenset[int]().union(*self.classes)


class Planner:
    """Makes the delta plans of a pattern, in greedy orders: fewest expected bindings first, leaves last.

    Parameters
    ----------
    pattern, relations
        The pattern, and the relation of each of its edges, seen from its source.
    numbers, sizes, vertices
        The number of each relation, by it the sizes to estimate from, and how many vertices the data graph has.
    checks
        What must differ.
    stepped
        Pattern edges that need a step of their own, beside those whose ends others bind.
    apart
        Whether two pattern vertices have no candidate in common.
    wanted
        By the edge of an orbit, the slots that are wanted of its matches, which else are only counted; None: all.
    classes
        By the edge of an orbit, its classes of vertices that may be exchanged.
    """

    def __init__(
        self,
        pattern: PatternGraph,
        relations: Sequence[Relation],
        numbers: dict[Relation, int],
        sizes: Sequence[Size],
        vertices: int,
        checks: Sequence[Check],
        stepped: set[int],
        apart: Callable[[int, int], bool],
        wanted: Mapping[int, set[int]] | None = None,
        classes: Mapping[int, Sequence[tuple[int, ...]]] | None = None,
    ) -> None:
        self._classes = classes or {}
        self._pattern, self._relations, self.numbers = pattern, relations, numbers
        self._wanted, self._apart = wanted, apart
        self._sizes, self._vertices, self._stepped = sizes, vertices, stepped
        self._near: dict[int, list[PatternEdge]] = {v: [] for v in range(len(pattern.vertices))}
        for edge in pattern.edges:
            for end in {edge.source, edge.target}:
                self._near[end].append(edge)
        tests = [slots_of(check, pattern) for check in checks]
        self._compared = {pair for slots in tests for pair in permutations(slots, 2)}
        self._differ: dict[int, set[int]] = {v: set() for v in range(len(pattern.vertices))}
        for check in checks:
            if isinstance(check, Unequal):
                self._differ[check.left].add(check.right)
                self._differ[check.right].add(check.left)
        others = [slots_of(check, pattern) for check in checks if not isinstance(check, Unequal)]
        self._plainly = set(self._differ) - frozenset[int]().union(*others)

    def plans(self, first: int) -> list[DeltaPlan]:
        """Return the plan of a pattern edge in several orders, which begin with different vertices.

        Lists differ so much in length that which is best is seen when the changed edge is known (as RapidFlow orders by
        what is around it: Sun et al., PVLDB 2022, §5).
        """
        found = [self._plan(first, None)]
        if found[0].steps and isinstance(found[0].steps[0], VertexStep):
            edge = self._pattern.edges[first]
            begun = found[0].steps[0].vertex
            for vertex, _ in self._next({edge.source, edge.target}):
                if vertex != begun and len(self._near[vertex]) > 1 and len(found) < MOST_ORDERS:
                    found.append(self._plan(first, vertex))
        return found

    def _plan(self, first: int, start: int | None) -> DeltaPlan:
        """Return the plan of a pattern edge that binds ``start`` first."""
        edges, relation = self._pattern.edges, self.numbers[self._relations[first]]
        ends = {edges[first].source, edges[first].target}
        bound, done = set(ends), {first}
        steps = self._edge_steps(bound, done)
        work, product, joined = 1.0, 1.0, 1.0
        while len(bound) < len(self._pattern.vertices):
            vertices = [found for found in self._next(bound) if start in (None, found[0])]
            vertex, legs = min(vertices, key=lambda found: self._rank(*found))
            leaf, estimate, _ = self._rank(vertex, legs)
            if not (others := len(bound) - len(ends)) and len(legs) > 1:
                joined = self._joined(estimate, legs)
            elif others and not leaf:
                product *= max(estimate, LEAST)
                work += product
            start = None
            closed = legs and all({edge.source, edge.target} <= bound | {vertex} for edge in self._near[vertex])
            steps.append(VertexStep(vertex, legs, not closed))
            bound.add(vertex)
            done |= {leg.edge for leg in legs} - self._stepped
            steps += self._edge_steps(bound, done)
        ordered = [] if self._wanted is None else self._enumerated(steps, self._wanted[first])
        tree = partial(self._tree, steps, ordered, first)
        grown, parents, squares = tree(())
        inner = {self.slot(grown[number]) for number in parents if number >= 0}  # leaves are counted sooner without
        kept = (tuple(v for v in own if v in inner) for own in self._classes.get(first, ()))
        classes = tuple(own for own in kept if len(own) > 1)
        if classes:
            grown, parents, squares = tree(classes)
        apart = frozenset[int]().union(*classes)
        paired = frozenset(number for number, slots in squares.items() if not apart & set(slots))
        own = tuple(grown), tuple(parents)
        turned = self._turned(*own, first, classes, max(len(ordered), 1), paired)
        begun = SCANNED + joined * work * (LEAVES if {*parents} == {-1, 0} else 1.0)
        return DeltaPlan(first, relation, *own, work, begun, len(ordered), classes, paired, turned)

    def _turned(
        self,
        steps: tuple[Step, ...],
        parents: tuple[int, ...],
        first: int,
        classes: Sequence[tuple[int, ...]],
        begin: int,
        paired: frozenset[int],
    ) -> tuple[Turned, ...]:
        """Return small subtrees of a plan in other orders, from step ``begin`` on: the plan itself is in several.

        Which order is best depends on what is bound above: one of two vertices may have a list of two entries where
        another one has hundreds, and at the next binding it is the other way round.  A vertex of several lists may come
        first though its shortest one is longer: few entries are left of it (:meth:`begun`).
        """
        every, above, instead = list(steps), list(parents), [-1] * len(steps)
        number = begin
        while number < len(every):
            below = [number]
            for of in below:  # which grows
                below += [i for i, parent in enumerate(above) if parent == of]
            path = ancestors(above, number)
            vertices = {step.vertex for i in below if isinstance(step := every[i], VertexStep)}
            small = 1 < len(below) <= MOST_TURNED and len(vertices) == len(below)
            if small and instead[number] < 0 and not paired & {number, *path}:
                edge = self._pattern.edges[first]
                bound = {edge.source, edge.target, *(self.slot(every[i]) for i in path)}
                last = number
                for start in sorted(vertices - {self.slot(every[number])}):
                    if len(self._near[start]) > 1 and (order := self._order_of(start, vertices, bound)):
                        at = len(every)
                        self._grow(order, above[number], every, above, first, _together(classes))
                        instead += [last] + [-1] * (len(every) - at - 1)
                        last = at
            number += 1
        return tuple(Turned(*found) for found in zip(every, above, instead, strict=True))[len(steps) :]

    def _order_of(self, start: int, vertices: set[int], bound: set[int]) -> list[Step]:
        """Return steps that bind some vertices, ``start`` first; none where it is not joined to what is bound."""
        steps, bound = list[Step](), set(bound)
        while left := [found for found in self._next(bound) if found[0] in vertices and found[1]]:
            own = [found for found in left if found[0] == start or steps]
            if not own:
                return []
            vertex, legs = min(own, key=lambda found: self._rank(*found))
            bound.add(vertex)
            closed = all({edge.source, edge.target} <= bound for edge in self._near[vertex])
            steps.append(VertexStep(vertex, legs, not closed))
        return steps if len(steps) == len(vertices) else []

    def _tree(
        self, steps: Sequence[Step], enumerated: Sequence[Step], first: int, classes: Sequence[tuple[int, ...]]
    ) -> tuple[list[Step], list[int], dict[int, tuple[int, int, int]]]:
        """Return steps in preorder, the enumerated ones first, with their parents, and the slots of those that close a
        square (:meth:`_paired`), by the number of its first.
        """
        ordered, parents = [*enumerated], list(range(-1, len(enumerated) - 1))
        together = _together(classes)
        left = [step for step in steps if step not in ordered]
        self._grow(left, len(ordered) - 1, ordered, parents, first, together)
        squares = dict[int, tuple[int, int, int]]()
        for number in range(len(enumerated), len(ordered)):
            match _chain(parents, number):
                case [x, y, z] if self._paired(ordered[x], ordered[y], ordered[z], first):
                    squares[number] = (self.slot(ordered[x]), self.slot(ordered[y]), self.slot(ordered[z]))
        return ordered, parents, squares

    def _enumerated(self, steps: Sequence[Step], wanted: set[int]) -> list[Step]:
        """Return the steps that bind some slots, and what they read."""
        slots, found = set(wanted), list[Step]()
        for step in reversed(steps):  # each reads what others before it bind
            if self.slot(step) in slots:
                slots |= self._reads(step)
                found.append(step)
        return found[::-1]

    def twins(self, left: Step, right: Step, first: int) -> bool:
        """Whether two steps of the plan of edge ``first`` bind vertices by the same lists, to the same vertices, but
        each to another one, and all else that is compared with one of them is with both.

        Either may then be counted without the other, and their counts be multiplied: one less for each twin before.
        Of several lists, those of both come before ``first``, or after it, as what they admit is one set then; of one,
        what comes before is among what comes after.
        """
        if left is right or isinstance(left, EdgeStep) or isinstance(right, EdgeStep):
            return False
        a, b = left.vertex, right.vertex
        several = len(left.legs) > 1
        mine, theirs = (
            sorted((leg.relation, leg.of, several and self.late(leg, first)) for leg in step.legs)
            for step in (left, right)
        )
        return (
            bool(mine)
            and mine == theirs
            and len(self._near[a]) == len(self._near[b]) == len(mine)
            and not {leg.edge for leg in (*left.legs, *right.legs)} & self._stepped
            and {a, b} <= self._plainly
            and self._differ[a] - {b} == self._differ[b] - {a}
            and b in self._differ[a]
        )

    def same_lists(self, left: VertexStep, right: VertexStep, first: int, classes: Sequence[tuple[int, ...]]) -> bool:
        """Whether two steps of the plan of edge ``first`` bind candidates in the same lists."""
        mine, theirs = (sorted((leg.relation, leg.of, self.late(leg, first)) for leg in s.legs) for s in (left, right))
        exchanged = any({left.vertex, right.vertex} <= {*own} for own in classes)
        return mine == theirs and (exchanged or not (left.candidate or right.candidate))

    def _paired(self, x: Step, y: Step, z: Step, first: int) -> bool:
        """Whether three steps, each of which alone depends on the one before, close a square whose first and last
        vertex are bound by the same lists, and are compared with the same: then they are any pair of what ``x`` binds,
        that have what ``y`` binds in common.
        """
        if not (isinstance(x, VertexStep) and isinstance(y, VertexStep) and isinstance(z, VertexStep) and x.legs):
            return False
        a, b, c = x.vertex, y.vertex, z.vertex
        over = [leg for leg in y.legs if leg.of == a]
        back = [leg for leg in z.legs if leg.of == b]
        if len(over) != 1 or len(back) != 1 or {leg.edge for leg in (*x.legs, *y.legs, *z.legs)} & self._stepped:
            return False
        mine = [(leg.relation, leg.of, self.late(leg, first)) for leg in (*x.legs, self._leg(over[0].edge, a))]
        theirs = [(leg.relation, leg.of, self.late(leg, first)) for leg in z.legs]
        return (
            sorted(mine) == sorted(theirs)
            and len(self._near[a]) == len(self._near[c]) == len(theirs)
            and {a, c} <= self._plainly
            and self._differ[a] - {c} == self._differ[c] - {a}
        )

    def begun(self, step: Step) -> float:
        """Return the work expected for each entry of a step's shortest list, in bindings: of several lists most entries
        are passed over, of one nearly all are bound.
        """
        if isinstance(step, EdgeStep) or len(step.legs) < 2:
            return SCANNED + 1.0
        return SCANNED + self._joined(self._rank(step.vertex, step.legs)[1], step.legs)

    def _joined(self, estimate: float, legs: tuple[Leg, ...]) -> float:
        """Return the share of the entries of the shortest of several lists that is expected to be in all of them."""
        return max(estimate / max(self._fans(legs)[0], 1.0), JOINED)

    def differ(self, left: Step, right: Step) -> bool:
        """Whether two steps bind different vertices."""
        return self.slot(right) in self._differ[self.slot(left)]

    def late(self, leg: Leg, first: int) -> bool:
        """Whether a leg may be bound to the changed edge itself, which edge ``first`` is bound to.

        An edge before it may not, nor one whose ends have no candidates in common with those of ``first``.
        """
        a, b = self._pattern.edges[leg.edge], self._pattern.edges[first]
        ways = ((b.source, b.target), (b.target, b.source))
        return leg.edge > first and any(self._meet(a.source, s) and self._meet(a.target, t) for s, t in ways)

    def _meet(self, left: int, right: int) -> bool:
        return left == right or not self._apart(left, right)

    def _grow(
        self,
        steps: list[Step],
        parent: int,
        ordered: list[Step],
        parents: list[int],
        first: int,
        together: frozenset[frozenset[int]],
    ) -> None:
        """Add the trees of steps to a preorder: one for each component of those that depend on each other.

        So do pairs of slots that are bound in ascending order.
        """
        near = self._dependent(steps, first, together)

        def grow(numbers: list[int], parent: int) -> None:
            while numbers:
                component, left = numbers[:1], numbers[1:]
                for number in component:  # which grows
                    component += [other for other in left if other in near[number]]
                    left = [other for other in left if other not in near[number]]
                own = len(ordered)
                ordered.append(steps[numbers[0]])
                parents.append(parent)
                grow(sorted(component[1:]), own)
                numbers = left

        grow([*range(len(steps))], parent)

    def _dependent(self, steps: Sequence[Step], first: int, together: frozenset[frozenset[int]]) -> list[set[int]]:
        """Return, by step, the numbers of those that depend on it: one reads what the other binds, or a check what both
        bind, unless they are twins; or both are bound in ascending order.
        """
        slots, reads = [self.slot(step) for step in steps], [self._reads(step) for step in steps]
        found: list[set[int]] = [set() for _ in steps]
        for i, j in combinations(range(len(steps)), 2):
            a, b = slots[i], slots[j]
            if (
                a in reads[j]
                or b in reads[i]
                or ((a, b) in self._compared and not self.twins(steps[i], steps[j], first))
                or frozenset((a, b)) in together
            ):
                found[i].add(j)
                found[j].add(i)
        return found

    def slot(self, step: Step) -> int:
        """Return what a step binds."""
        return len(self._pattern.vertices) + step.leg.edge if isinstance(step, EdgeStep) else step.vertex

    def _reads(self, step: Step) -> set[int]:
        if isinstance(step, VertexStep):
            return {leg.of for leg in step.legs}
        edge = self._pattern.edges[step.leg.edge]
        return {edge.source, edge.target}

    def _edge_steps(self, bound: set[int], done: set[int]) -> list[Step]:
        """Return steps for the edges whose ends are bound, and that are not done."""
        steps = list[Step]()
        for e, edge in enumerate(self._pattern.edges):
            if e not in done and {edge.source, edge.target} <= bound:
                done.add(e)
                steps.append(EdgeStep(Leg(self.numbers[self._relations[e]], edge.source, e)))
        return steps

    def _leg(self, edge: int, to: int) -> Leg:
        """Return the leg of an edge by which its end ``to`` is bound."""
        end, relation = self._pattern.edges[edge], self._relations[edge]
        if end.target == to:
            return Leg(self.numbers[relation], end.source, edge)
        return Leg(self.numbers[relation.reversed], end.target, edge)

    def _next(self, bound: set[int]) -> list[tuple[int, tuple[Leg, ...]]]:
        """Return the vertices beside those bound, with their legs."""
        legs: dict[int, list[Leg]] = {}
        for e, edge in enumerate(self._pattern.edges):
            for near, far in ((edge.source, edge.target), (edge.target, edge.source)):
                if near in bound and far not in bound:
                    legs.setdefault(far, []).append(self._leg(e, far))
        if not legs:  # another component begins
            return [(vertex, ()) for vertex in range(len(self._pattern.vertices)) if vertex not in bound]
        return [(vertex, tuple(own)) for vertex, own in legs.items()]

    def _fans(self, legs: tuple[Leg, ...]) -> list[float]:
        """Return how long the lists of legs are in the mean, the shortest first."""
        return sorted(self._sizes[leg.relation].entries / max(1, self._sizes[leg.relation].near) for leg in legs)

    def _rank(self, vertex: int, legs: tuple[Leg, ...]) -> tuple[bool, float, int]:
        """Return what a vertex is chosen by: no leaf, fewest bindings expected, most edges."""
        degree = len(self._near[vertex])
        fans = self._fans(legs)
        candidates = self._pattern.vertices[vertex].candidates
        among = max(1, self._vertices if candidates is None else len(candidates))
        estimate = fans[0] if fans else float(among)
        for fan in fans[1:]:
            estimate *= min(1.0, fan / among)
        return degree == 1 and bool(fans), estimate, -degree


def _together(classes: Sequence[tuple[int, ...]]) -> frozenset[frozenset[int]]:
    """Return the pairs of slots that are bound in ascending order, and so one below the other."""
    return frozenset(frozenset(pair) for own in classes for pair in permutations(own, 2))


def ancestors(parents: Sequence[int], number: int) -> list[int]:
    """Return the steps that a step is below."""
    found = []
    while (number := parents[number]) >= 0:
        found.append(number)
    return found


def _chain(parents: Sequence[int], number: int) -> list[int]:
    """Return a step and those below it, where each has one child; nothing where one has several, or there are many."""
    found = [number]
    while below := [i for i, of in enumerate(parents) if of == found[-1]]:
        found += below
        if len(below) > 1 or len(found) > 3:
            return []
    return found


def slots_of(check: Check, pattern: PatternGraph) -> frozenset[int]:
    """Return the slots that a check compares: of vertices, and behind them of edges."""
    match check:
        case Unequal(a, b):
            return frozenset((a, b))
        case NotBothEqual(a, b, c, d):
            return frozenset((a, b, c, d))
        case EdgesDiffer(i, j):
            slots = {end for e in (i, j) for end in (pattern.edges[e].source, pattern.edges[e].target)}
            return frozenset(slots | {len(pattern.vertices) + i, len(pattern.vertices) + j})
    return frozenset()
