"""A path pattern as an automaton: what one edge, and one vertex, of a path must be.

Its states stand for the places between the pattern's edges, a quantifier for copies of what it repeats or, without an
upper bound, for a loop (GQL, ISO/IEC 39075:2024, §22.4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.common.errors import NotSupportedError
from graphdb.evaluate.values import Edge, Path, Vertex
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import DIRECTIONS, bind, conjuncts, property_conditions, variables_in
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.rename import renamed
from graphdb.storage.graph.pcsr import Direction, Partition

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context, Row
    from graphdb.evaluate.evaluator import Evaluator

Test = Callable[["Row"], Any]

PLACES = "#places"
"""Where a row says at which of a path's vertices the nodes of its pattern are."""

_MOST_COPIES = 1000
"""States that the bounds of a quantifier may make."""

_FLIPPED = {
    ast.Direction.OUT: ast.Direction.IN,
    ast.Direction.IN: ast.Direction.OUT,
    ast.Direction.BOTH: ast.Direction.BOTH,
}


@dataclass(slots=True)
class State:
    """A place of the path, and what a vertex must be there."""

    name: str | None = None
    """The vertex variable that is bound here."""
    group: bool = False
    labels: list[Callable[[frozenset[int]], bool]] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    steps: list[tuple[Step, int]] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    """States reached without an edge."""
    node: int | None = None
    """The number of the whole path's node that stands here."""


@dataclass(slots=True)
class Step:
    """What one edge of the path must be."""

    name: str | None
    group: bool
    partition: Partition
    labels: tuple[int, ...] | None
    direction: Direction
    tests: list[Test]

    @property
    def outwards(self) -> bool:
        """Whether it leads from subjects to objects."""
        return self.direction == "out"


@dataclass(slots=True)
class Trace:
    """A path under way, as a linked list from its end: ``edge`` led to ``vertex``; None: a jump between states."""

    before: Trace | None
    state: int
    vertex: int
    edge: Edge | None
    length: int

    def edges(self) -> Iterator[Edge]:
        """Yield its edges, the last one first."""
        at: Trace | None = self
        while at is not None:
            if at.edge is not None:
                yield at.edge
            at = at.before


class Automaton:
    """A path pattern as states, in one direction."""

    def __init__(
        self,
        context: Context,
        compiler: Evaluator,
        nodes: Sequence[ast.NodePattern],
        edges: Sequence[ast.EdgePattern | ast.Subpath],
        renamed: Mapping[str, str],
        backwards: bool,
        known: Collection[str],
    ) -> None:
        self._context = context
        self._compiler = compiler
        self._position = nodes[0].span.start
        self._renamed = renamed
        self.backwards = backwards
        self.states: list[State] = []
        self.late: list[Test] = []
        """Conditions that look at what the path meets only later: they wait for the whole path."""
        self._ahead = _names_in(nodes, edges).difference(known)
        """The pattern's variables that are not met yet, while it is built."""
        self._near: dict[tuple[int, int], list[tuple[Edge, int]]] = {}
        self.accepting = self._chain(nodes, edges, self._new(), group=False, outer=True)

    def _new(self) -> int:
        self.states.append(State())
        if len(self.states) > _MOST_COPIES:
            raise NotSupportedError(
                f"quantifiers whose bounds make more than {_MOST_COPIES} copies are not supported",
                text=self._context.text,
                position=self._position,
            )
        return len(self.states) - 1

    def _chain(
        self,
        nodes: Sequence[ast.NodePattern],
        edges: Sequence[ast.EdgePattern | ast.Subpath],
        entry: int,
        *,
        group: bool,
        outer: bool = False,
    ) -> int:
        """Add nodes and edges in order, from a state on; return the last state.

        The outermost ends are vertices that the rows or another part hold: their conditions are tested there.
        """
        if self.backwards:
            nodes, edges = nodes[::-1], edges[::-1]
        first, *others = nodes
        if outer:
            self.states[entry].node = len(edges) if self.backwards else 0
            others = list(self._once_each(others))
        else:
            first, *others = self._once_each(nodes)
            self._check(entry, first, group)
        at = entry
        for i, (edge, node) in enumerate(zip(edges, others, strict=True)):
            at = self._repeated(edge, at, group)
            arrived = self._new()
            self.states[at].jumps.append(arrived)
            if outer:
                self.states[arrived].node = len(edges) - 1 - i if self.backwards else i + 1
            if not outer or node is not nodes[-1]:
                self._check(arrived, node, group)
            at = arrived
        return at

    def _once_each(self, nodes: Sequence[ast.NodePattern]) -> Iterator[ast.NodePattern]:
        """Yield the nodes of a part; one that comes again is another, which has to be the same vertex."""
        met: set[str] = set()
        for node in nodes:
            if node.variable is not None and node.variable.name in met:
                again = ast.Variable(self._context.fresh("v"), node.span)
                same = ast.Comparison(("=",), (again, node.variable), node.span)
                other = renamed(node, {node.variable.name: again.name})
                yield replace(other, where=all_hold([same, *conjuncts(other.where)], node.span))
                continue
            met |= set() if node.variable is None else {node.variable.name}
            yield node

    def _check(self, number: int, node: ast.NodePattern, group: bool) -> None:
        state = self.states[number]
        state.group = group
        variable = node.variable or ast.Variable(self._context.fresh("v"), node.span)
        conditions = property_conditions(variable, node.properties)
        if node.where is not None:
            conditions.append(node.where)
        if node.variable is not None or conditions:
            state.name = variable.name
        if node.labels is not None:
            state.labels.append(self._context.label_test(node.labels))
        self._ahead.discard(variable.name)
        state.tests += self._tests(conditions, group)

    def _repeated(self, edge: ast.EdgePattern | ast.Subpath, entry: int, group: bool) -> int:
        """Add an edge or part as often as its quantifier says; return the state behind it."""
        repeat = edge.repeat
        if repeat is None:
            return self._once(edge, entry, group)
        at = entry
        if repeat.high is not None and repeat.high < repeat.low:
            return self._new()  # which nothing leads to
        if repeat.high == 0:
            self._once(edge, self._new(), True)  # for its names, whose lists are empty
        for _ in range(repeat.low):
            at = self._once(edge, at, True)
        after = self._new()
        if repeat.high is None:
            loop = self._new()
            self.states[at].jumps.append(loop)
            behind = self._once(edge, loop, True)
            self.states[behind].jumps.append(loop)
            self.states[loop].jumps.append(after)
            return after
        self.states[at].jumps.append(after)
        for _ in range(repeat.high - repeat.low):
            at = self._once(edge, at, True)
            self.states[at].jumps.append(after)
        return after

    def _once(self, edge: ast.EdgePattern | ast.Subpath, entry: int, group: bool) -> int:
        if isinstance(edge, ast.Subpath):
            if edge.pattern.variable is not None:
                raise NotSupportedError(
                    "a name for a part of a path is not supported yet",
                    text=self._context.text,
                    position=edge.pattern.variable.span.start,
                )
            begin = self._new()
            self.states[entry].jumps.append(begin)
            end = self._chain(edge.pattern.nodes, edge.pattern.edges, begin, group=group)
            if edge.where is None:
                return end
            tested = self._new()
            self.states[tested].tests += self._tests([edge.where], group)
            self.states[end].jumps.append(tested)
            return tested
        target = self._new()
        self.states[entry].steps.append((self._step(edge, group), target))
        return target

    def _step(self, edge: ast.EdgePattern, group: bool) -> Step:
        node = ast.NodePattern(span=edge.span)
        plain = ast.EdgePattern(edge.direction, None, edge.labels, span=edge.span)
        clause = ast.MatchClause((ast.PathPattern((node, node), (plain,), edge.span),), span=edge.span)
        bound = bind((clause,), self._context.names, self._context.text).edges[0]
        way = _FLIPPED[edge.direction] if self.backwards else edge.direction
        direction = DIRECTIONS[way]
        partition = self._context.snapshot.graph.partition(bound.labels, direction)
        variable = edge.variable or ast.Variable(self._context.fresh("v"), edge.span)
        conditions = property_conditions(variable, edge.properties)
        if edge.where is not None:
            conditions.append(edge.where)
        self._ahead.discard(variable.name)
        tests = self._tests(conditions, group)
        name = variable.name if edge.variable is not None or conditions else None
        return Step(name, group, partition, bound.labels, direction, tests)

    def _tests(self, conditions: Sequence[ast.Expression], group: bool) -> list[Test]:
        """Compile the conditions on what is met now; those that look ahead are put off."""
        tests = []
        for condition in conditions:
            test = self._compiler.condition(condition)
            if not variables_in(condition) & self._ahead:
                tests.append(test)
            elif group:
                raise NotSupportedError(
                    "a condition in a repeated part that looks at what comes later is not supported yet",
                    text=self._context.text,
                    position=condition.span.start,
                    hint="write it where all that it looks at was met",
                )
            else:
                self.late.append(test)
        return tests

    def codes(self, step: Step, vertex: int, neighbour: int) -> list[int]:
        """The data edges between two vertices that a step can take: label and orientation."""
        if step.partition.codes is None:
            assert step.labels is not None
            return [step.labels[0] << 1 | (not step.outwards)]
        codes: list[int] = step.partition.codes_of(vertex, neighbour).tolist()
        return codes

    def neighbours(self, step: Step, vertex: int) -> list[tuple[Edge, int]]:
        """The edges that a step can take from a vertex, and where they lead."""
        key = (id(step), vertex)
        found = self._near.get(key)
        if found is None:
            found = self._near[key] = list(self._read(step, vertex))
        return found

    def _read(self, step: Step, vertex: int) -> Iterator[tuple[Edge, int]]:
        store, view = self._context.snapshot.store, self._context.view
        if vertex >= store.resources:
            vertex = int(self._context.vertices([vertex])[0])
        for neighbour in step.partition.neighbours_of(vertex).tolist():
            ends = store.to_terms(np.array([vertex, neighbour])).tolist()
            for code in self.codes(step, vertex, neighbour):
                start, end = reversed(ends) if code & 1 else ends
                for edge in view.parallel(code >> 1, start, end):
                    yield edge, ends[1]

    def admits(self, trace: Trace, row: Row) -> bool:
        """Whether the last vertex and edge of a trace fulfil what is asked of them there."""
        state = self.states[trace.state]
        tests = state.tests
        if trace.edge is not None and trace.before is not None:
            for step, target in self.states[trace.before.state].steps:
                if target == trace.state and step.tests:
                    tests = [*tests, *step.tests]
        if state.labels:
            labels = self._context.view.labels(Vertex(trace.vertex))
            if not all(test(labels) for test in state.labels):
                return False
        if state.name is not None and not state.group:
            known = row.get(self._renamed.get(state.name, state.name), row.get(state.name))
            if isinstance(known, Vertex) and known.id != trace.vertex:
                return False
        if not tests:
            return True
        environment = {**row, **self._nearest(trace)}
        return all(test(environment) is True for test in tests)

    def _nearest(self, trace: Trace) -> Row:
        """The variables as the trace bound them last: those of the present repetition."""
        found: Row = {}
        at: Trace | None = trace
        while at is not None:
            name = self.states[at.state].name
            if name is not None and name not in found:
                found[name] = Vertex(at.vertex)
            if at.edge is not None and at.before is not None:
                for step, target in self.states[at.before.state].steps:
                    if target == at.state and step.name is not None and step.name not in found:
                        found[step.name] = at.edge
            at = at.before
        return found

    def bindings(self, trace: Trace, renamed: dict[str, str]) -> Row:
        """The variables of a whole path, lists where they are repeated; the path itself under "".

        Under :data:`PLACES` stands, for each node of the pattern, at which of the path's vertices it is.
        """
        chain: list[Trace] = []
        at: Trace | None = trace
        while at is not None:
            chain.append(at)
            at = at.before
        if not self.backwards:
            chain.reverse()
        found: Row = {}
        for state in self.states:
            for step, _ in state.steps:
                if step.name is not None and step.group and not step.name.startswith("#"):
                    found.setdefault(renamed.get(step.name, step.name), [])
            if state.name is not None and state.group and not state.name.startswith("#"):
                found.setdefault(renamed.get(state.name, state.name), [])
        vertices: list[Vertex] = []
        edges: list[Edge] = []
        places: dict[int, int] = {}
        for part in chain:
            state = self.states[part.state]
            taken: Step | None = None
            if part.edge is not None and part.before is not None:
                taken = next(s for s, target in self.states[part.before.state].steps if target == part.state)
            if taken is not None and taken.name is not None and not taken.name.startswith("#"):
                _bind(found, renamed.get(taken.name, taken.name), part.edge, taken.group)
            if state.name is not None and not state.name.startswith("#"):
                _bind(found, renamed.get(state.name, state.name), Vertex(part.vertex), state.group)
            if part.edge is not None:
                edges.append(part.edge)
            arrives = part.before is None or part.edge is not None
            if state.node is not None:  # backwards, the states at a vertex come before the edge that led there
                places[state.node] = len(vertices) - (not self.backwards and not arrives)
            if arrives:
                vertices.append(Vertex(part.vertex))
        found[""] = Path(tuple(vertices), tuple(edges))
        found[PLACES] = places
        return found


def _bind(found: Row, name: str, value: Any, group: bool) -> None:
    if group:
        found[name].append(value)
    else:
        found[name] = value


def _names_in(nodes: Sequence[ast.NodePattern], edges: Sequence[ast.EdgePattern | ast.Subpath]) -> set[str]:
    """Return the variables of a path pattern, those of its parts included."""
    found = {node.variable.name for node in nodes if node.variable is not None}
    for edge in edges:
        if isinstance(edge, ast.Subpath):
            found |= _names_in(edge.pattern.nodes, edge.pattern.edges)
        elif edge.variable is not None:
            found.add(edge.variable.name)
    return found
