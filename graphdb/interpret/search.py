"""Paths of variable length: a search over pairs of a data vertex and a state of the pattern.

A path pattern is an automaton: its states stand for the places between its edges, a quantifier for copies of what it
repeats or, without an upper bound, for a loop.  All paths of a mode are found depth first; where a selector wants the
shortest ones and the mode allows it, breadth first, and then no more paths than it may want are kept for each pair of
vertex and state (GQL, ISO/IEC 39075:2024, §16.6 and §22.4).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import BindError, NotSupportedError
from graphdb.execute import shortest as breadth_first
from graphdb.execute.executor import Control
from graphdb.execute.shortest import Side
from graphdb.grammar import syntax as ast
from graphdb.interpret.values import Edge, Path, Vertex
from graphdb.pattern.bind import bind
from graphdb.storage.pcsr import Direction, Partition
from graphdb.storage.triples import TripleStore

if TYPE_CHECKING:
    from graphdb.interpret.context import Context
    from graphdb.interpret.evaluate import Compiler, Row

Test = Callable[["Row"], Any]

_MOST_COPIES = 1000
"""States that the bounds of a quantifier may make."""

_BACK: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}
_FLIPPED = {
    ast.Direction.OUT: ast.Direction.IN,
    ast.Direction.IN: ast.Direction.OUT,
    ast.Direction.BOTH: ast.Direction.BOTH,
}


@dataclass(slots=True)
class _State:
    name: str | None = None
    """The vertex variable that is bound here."""
    group: bool = False
    labels: list[Callable[[frozenset[int]], bool]] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    steps: list[tuple[_Step, int]] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    """States reached without an edge."""


@dataclass(slots=True)
class _Step:
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
class _Trace:
    """A path under way, as a linked list from its end: ``edge`` led to ``vertex``; None: a jump between states."""

    before: _Trace | None
    state: int
    vertex: int
    edge: Edge | None
    length: int


class Search:
    """Finds the paths of a pattern from a bound vertex.

    Parameters
    ----------
    whole
        The path pattern with its mode and selector, where ``nodes`` and ``edges`` are all of it; None for one edge
        or part of a path that is matched in openCypher's way.
    key
        The name under which rows hold the path.
    """

    def __init__(
        self,
        context: Context,
        compiler: Compiler,
        nodes: tuple[ast.NodePattern, ...],
        edges: tuple[ast.EdgePattern | ast.Subpath, ...],
        whole: ast.PathPattern | None,
        key: str,
        match_mode: ast.MatchMode,
    ) -> None:
        self._context = context
        self._compiler = compiler
        self._nodes, self._edges, self._whole = nodes, edges, whole
        self.key = key
        self._renamed: dict[str, str] = {}
        self.selector = whole.selector if whole is not None else None
        self.mode = whole.mode if whole is not None and whole.mode is not None else _default_mode(match_mode)
        self._free = self.mode is ast.PathMode.WALK
        self._automata: dict[bool, _Automaton] = {}
        self._last = False
        self.names = _variables(nodes[1:-1], edges)
        if self._free and self.selector is None and _unbounded(edges):
            raise BindError(
                "without an upper bound there can be infinitely many walks",
                text=context.text,
                position=(whole.span if whole is not None else nodes[0].span).start,
                hint="write TRAIL, SIMPLE, ACYCLIC, a selector such as ANY SHORTEST, or an upper bound",
            )

    def stands_alone(self) -> None:
        """Note that no other edge of the clause could be one of the path's."""
        self._last = True

    def rename(self, name: str, hidden: str) -> None:
        """Bind a variable under another name."""
        self._renamed[name] = hidden
        self.names = [hidden if other == name else other for other in self.names]

    def run(self, row: Row, left: str, right: str, distinct: bool) -> Iterator[Row]:
        """Yield the row with each path between its two vertices, of which it holds at least one."""
        backwards = left not in row
        start, end = (right, left) if backwards else (left, right)
        if not isinstance(row[start], Vertex) or (end in row and not isinstance(row[end], Vertex)):
            return
        automaton = self._automata.get(backwards)
        if automaton is None:
            automaton = self._automata[backwards] = _Automaton(self, backwards)
        if automaton.simple:
            yield from self._shortest(automaton, row, start, end, distinct)
            return
        used = row["#used"] if distinct and not self._free else ()
        wanted = row[end].id if end in row else None
        for trace in self._traces(automaton, row, row[start].id, wanted, frozenset(used)):
            found = automaton.bindings(trace, self._renamed)
            path: Path = found.pop("")
            new = {**row, **found, end: Vertex(trace.vertex), self.key: path}
            if distinct and not self._free:
                new["#used"] = used + path.edges
            yield new

    # --- searching

    def _traces(
        self, automaton: _Automaton, row: Row, start: int, end: int | None, used: frozenset[Edge]
    ) -> Iterator[_Trace]:
        if self.selector is None:
            yield from self._depth_first(automaton, row, start, end, used)
            return
        if self._free or automaton.plain:
            yield from self._breadth_first(automaton, row, start, end, used, self.selector)
            return
        found: dict[int, list[_Trace]] = {}
        for trace in self._depth_first(automaton, row, start, end, used):
            found.setdefault(trace.vertex, []).append(trace)
        for traces in found.values():
            yield from _selected(traces, self.selector)

    def _shortest(self, automaton: _Automaton, row: Row, start: str, end: str, distinct: bool) -> Iterator[Row]:
        """Yield the row with the shortest paths along one repeated edge, found by kernels."""
        selector = self.selector
        assert selector is not None
        used = frozenset(row["#used"]) if distinct and not self._free else frozenset()
        wanted = row[end].id if end in row else None
        alone = distinct and not self._free and not self._last
        before = None
        for last, path in automaton.shortest(row[start].id, wanted, self._context.new_control()):
            if (used and not used.isdisjoint(path.edges)) or (last == before and not selector.groups):
                continue
            before = last
            new = {**row, end: Vertex(last), self.key: path}
            for name in self.names:
                new[name] = list(path.edges)
            if alone:
                new["#used"] = row["#used"] + path.edges
            yield new

    def rounds(self, automaton: _Automaton, start: int, length: int, depths: NDArray[np.int32]) -> Iterator[Path]:
        """Yield the ways round from a vertex to itself of a length that take no edge twice.

        ``depths`` (int32 [vertices]) says how far it is back: what is too far is not entered.
        """
        vertices = self._context.vertices
        traces = self._depth_first(
            automaton,
            {},
            start,
            start,
            frozenset(),
            lambda trace, vertex: trace.length + 1 + int(depths[vertices([vertex])[0]]) <= length,
        )
        for trace in traces:
            if trace.length == length:
                yield automaton.bindings(trace, {})[""]

    def _depth_first(
        self,
        automaton: _Automaton,
        row: Row,
        start: int,
        end: int | None,
        used: frozenset[Edge],
        enters: Callable[[_Trace, int], bool] | None = None,
    ) -> Iterator[_Trace]:
        stack = [_Trace(None, 0, start, None, 0)]
        control = self._context.new_control()
        seen = 0
        while stack:
            trace = stack.pop()
            seen += 1
            if not seen & 1023:
                control.check()
            if not automaton.admits(trace, row):
                continue
            state = automaton.states[trace.state]
            if trace.state == automaton.accepting and end in (None, trace.vertex):
                yield trace
            following = [_Trace(trace, target, trace.vertex, None, trace.length) for target in state.jumps]
            for step, target in state.steps:
                for edge, vertex in automaton.neighbours(step, trace.vertex):
                    if edge not in used and self._allows(trace, edge, vertex, start):
                        if enters is not None and not enters(trace, vertex):
                            continue
                        following.append(_Trace(trace, target, vertex, edge, trace.length + 1))
            stack += reversed(following)

    def _allows(self, trace: _Trace, edge: Edge, vertex: int, start: int) -> bool:
        """Whether the mode allows one more edge."""
        if self.mode is ast.PathMode.WALK:
            return True  # the only mode that may take an edge twice
        if self.mode is ast.PathMode.SIMPLE and trace.length and trace.vertex == start:
            return False  # it has come back to its start, which ends it
        at: _Trace | None = trace
        while at is not None:
            closes = self.mode is ast.PathMode.SIMPLE and vertex == start
            again = self.mode is not ast.PathMode.TRAIL and at.vertex == vertex and not closes
            if again or at.edge == edge:
                return False
            at = at.before
        return True

    def _breadth_first(
        self,
        automaton: _Automaton,
        row: Row,
        start: int,
        end: int | None,
        used: frozenset[Edge],
        selector: ast.Selector,
    ) -> Iterator[_Trace]:
        arrivals: dict[tuple[int, int], _Kept] = {}
        results: dict[int, _Kept] = {}
        layer = [_Trace(None, 0, start, None, 0)]
        control = self._context.new_control()
        while layer:
            control.check()
            following: list[_Trace] = []
            at = 0
            while at < len(layer):
                trace = layer[at]
                at += 1
                if not automaton.admits(trace, row):
                    continue
                kept = arrivals.setdefault((trace.state, trace.vertex), _Kept())
                if not kept.takes(trace.length, selector):
                    continue
                state = automaton.states[trace.state]
                ends = trace.state == automaton.accepting and end in (None, trace.vertex)
                if ends and results.setdefault(trace.vertex, _Kept()).takes(trace.length, selector):
                    yield trace
                layer += [_Trace(trace, target, trace.vertex, None, trace.length) for target in state.jumps]
                for step, target in state.steps:
                    for edge, vertex in automaton.neighbours(step, trace.vertex):
                        if edge not in used and self._allows(trace, edge, vertex, start):
                            following.append(_Trace(trace, target, vertex, edge, trace.length + 1))
            if end is not None and end in results and results[end].full(selector, layer[0].length):
                return
            layer = following


@dataclass(slots=True)
class _Kept:
    """How many paths, and of which lengths, have come to one place."""

    count: int = 0
    lengths: list[int] = field(default_factory=list)

    def takes(self, length: int, selector: ast.Selector) -> bool:
        """Whether one more of this length is wanted (lengths only grow); count it if so."""
        if selector.groups:
            if not self.lengths or self.lengths[-1] != length:
                if len(self.lengths) == selector.count:
                    return False
                self.lengths.append(length)
            return True
        self.count += 1
        return self.count <= selector.count

    def full(self, selector: ast.Selector, length: int) -> bool:
        """Whether nothing longer than ``length`` is wanted."""
        return len(self.lengths) == selector.count if selector.groups else self.count >= selector.count


def _selected(traces: list[_Trace], selector: ast.Selector) -> list[_Trace]:
    traces.sort(key=lambda trace: trace.length)
    if not selector.groups:
        return traces[: selector.count]
    lengths = sorted({trace.length for trace in traces})[: selector.count]
    return [trace for trace in traces if trace.length in lengths]


def _default_mode(mode: ast.MatchMode) -> ast.PathMode:
    return {
        ast.MatchMode.DIFFERENT_EDGES: ast.PathMode.TRAIL,
        ast.MatchMode.REPEATABLE_ELEMENTS: ast.PathMode.WALK,
    }.get(mode, ast.PathMode.ACYCLIC)


def _unbounded(edges: Sequence[ast.EdgePattern | ast.Subpath]) -> bool:
    return any(
        (edge.repeat is not None and edge.repeat.high is None)
        or (isinstance(edge, ast.Subpath) and _unbounded(edge.pattern.edges))
        for edge in edges
    )


def _variables(nodes: Sequence[ast.NodePattern], edges: Sequence[ast.EdgePattern | ast.Subpath]) -> list[str]:
    names = [node.variable.name for node in nodes if node.variable is not None]
    for edge in edges:
        if isinstance(edge, ast.Subpath):
            names += _variables(edge.pattern.nodes, edge.pattern.edges)
        elif edge.variable is not None:
            names.append(edge.variable.name)
    return list(dict.fromkeys(names))


class _Automaton:
    """A path pattern as states, in one direction."""

    def __init__(self, search: Search, backwards: bool) -> None:
        self._search = search
        self._context = search._context
        self._compiler = search._compiler
        self._backwards = backwards
        self.states: list[_State] = []
        self._near: dict[tuple[int, int], list[tuple[Edge, int]]] = {}
        nodes, edges = search._nodes, search._edges
        entry = self._new()
        whole = search._whole is not None
        self.accepting = self._chain(nodes, edges, entry, group=False, outer=True)
        self.plain = (
            len(edges) == 1
            and isinstance(edges[0], ast.EdgePattern)
            and (edges[0].repeat is None or edges[0].repeat.low <= 1)
            and search.selector is not None
            and search.selector.count == 1
            and whole
        )
        """Whether the shortest walks are the shortest paths of any mode."""
        self.backwards = backwards
        edge = edges[0]
        self.simple = (
            self.plain
            and isinstance(edge, ast.EdgePattern)
            and edge.repeat is not None
            and (edge.repeat.high is None or edge.repeat.high >= edge.repeat.low)
            and edge.properties is None
            and edge.where is None
        )
        """Whether kernels find them: one repeated edge on which there are no conditions."""

    def _new(self) -> int:
        self.states.append(_State())
        if len(self.states) > _MOST_COPIES:
            raise NotSupportedError(
                f"quantifiers whose bounds make more than {_MOST_COPIES} copies are not supported",
                text=self._context.text,
                position=self._search._nodes[0].span.start,
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
        if self._backwards:
            nodes, edges = nodes[::-1], edges[::-1]
        if not outer:
            self._check(entry, nodes[0], group)
        at = entry
        for i, (edge, node) in enumerate(zip(edges, nodes[1:], strict=True)):
            at = self._repeated(edge, at, group)
            arrived = self._new()
            self.states[at].jumps.append(arrived)
            if not (outer and i == len(edges) - 1):
                self._check(arrived, node, group)
            at = arrived
        return at

    def _check(self, number: int, node: ast.NodePattern, group: bool) -> None:
        state = self.states[number]
        state.group = group
        variable = node.variable or ast.Variable(self._context.fresh("v"), node.span)
        conditions: list[ast.Expression] = []
        if node.properties is not None:
            conditions += [
                ast.Comparison(("=",), (ast.Property(variable, key, key.span), value), key.span)
                for key, value in node.properties.items
            ]
        if node.where is not None:
            conditions.append(node.where)
        if node.variable is not None or conditions:
            state.name = variable.name
        if node.labels is not None:
            state.labels.append(self._context.label_test(node.labels))
        state.tests += [self._compiler.condition(condition) for condition in conditions]

    def _repeated(self, edge: ast.EdgePattern | ast.Subpath, entry: int, group: bool) -> int:
        """Add an edge or part as often as its quantifier says; return the state behind it."""
        repeat = edge.repeat
        if repeat is None:
            return self._once(edge, entry, group)
        at = entry
        if repeat.high is not None and repeat.high < repeat.low:
            return self._new()  # which nothing leads to
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
            self.states[tested].tests.append(self._compiler.condition(edge.where))
            self.states[end].jumps.append(tested)
            return tested
        target = self._new()
        self.states[entry].steps.append((self._step(edge, group), target))
        return target

    def _step(self, edge: ast.EdgePattern, group: bool) -> _Step:
        node = ast.NodePattern(span=edge.span)
        plain = ast.EdgePattern(edge.direction, None, edge.labels, span=edge.span)
        clause = ast.MatchClause((ast.PathPattern((node, node), (plain,), edge.span),), span=edge.span)
        bound = bind((clause,), self._context.names, self._context.text).edges[0]
        way = _FLIPPED[edge.direction] if self._backwards else edge.direction
        direction: Direction = {ast.Direction.OUT: "out", ast.Direction.IN: "in", ast.Direction.BOTH: "both"}[way]  # type: ignore[assignment]
        partition = self._context.snapshot.graph.partition(bound.labels, direction)
        variable = edge.variable or ast.Variable(self._context.fresh("v"), edge.span)
        conditions: list[ast.Expression] = []
        if edge.properties is not None:
            conditions += [
                ast.Comparison(("=",), (ast.Property(variable, key, key.span), value), key.span)
                for key, value in edge.properties.items
            ]
        if edge.where is not None:
            conditions.append(edge.where)
        tests = [self._compiler.condition(condition) for condition in conditions]
        name = variable.name if edge.variable is not None or conditions else None
        return _Step(name, group, partition, bound.labels, direction, tests)

    def shortest(self, start: int, end: int | None, control: Control) -> Iterator[tuple[int, Path]]:
        """Yield the shortest paths of a simple pattern, and where they end: to one vertex, or to all it reaches."""
        (edge,) = self._search._edges
        assert isinstance(edge, ast.EdgePattern)
        assert edge.repeat is not None
        low, high = edge.repeat.low, edge.repeat.high
        step = next(step for state in self.states for step, _ in state.steps)
        graph, store = self._context.snapshot.graph, self._context.snapshot.store
        away = step.partition
        back = graph.partition(step.labels, _BACK[step.direction])
        source, *ends = self._context.vertices([start] if end is None else [start, end]).tolist()
        if end is not None and ends[0] != source:
            found = breadth_first.meet(away, back, source, ends[0], graph.vertices, high, control)
            if found is None:
                return
            there, hence, met = found
            walks = (
                (*first, *second[-2::-1])
                for middle in met.tolist()
                for first in breadth_first.walks_back(there, back, middle)
                for second in breadth_first.walks_back(hence, away, middle)
            )
            yield from ((end, path) for path in self._paths(step, walks, store))
            return
        if low == 0 and end is not None:
            yield start, Path((Vertex(start),), ())
            return
        side = breadth_first.reach(away, source, graph.vertices, high, control)
        if low == 0:
            yield start, Path((Vertex(start),), ())
        elif self._search.mode is ast.PathMode.ACYCLIC:
            pass  # it does not come back to its start
        elif step.direction == "both" and self._search.mode is not ast.PathMode.WALK:
            yield from ((start, path) for path in self._rounds(step, start, source, high, side, control))
        else:  # a way round, back to the start, is found apart: the start has depth 0
            near = back.neighbours_of(source)
            depths = side.depths[near]
            least = depths[depths >= 0].min(initial=np.iinfo(np.int32).max)
            if (depths >= 0).any() and (high is None or least < high):
                rounds = (
                    (*walk, source)
                    for last in near[depths == least].tolist()
                    for walk in breadth_first.walks_back(side, back, last)
                )
                yield from ((start, path) for path in self._paths(step, rounds, store))
        if end is None:
            reached = np.flatnonzero(side.depths > 0)
            lengths, ids = side.depths[reached].tolist(), store.to_terms(reached).tolist()
            groups = self._search.selector is not None and self._search.selector.groups
            make = self._one_path(step, side, back, store)
            for vertex, length, id in zip(reached.tolist(), lengths, ids, strict=True):
                if groups:
                    ways = breadth_first.walks_back(side, back, vertex)
                    yield from ((id, path) for path in self._paths(step, ways, store))
                else:
                    yield id, Path.later(length, make, vertex)

    def _rounds(
        self, step: _Step, start: int, source: int, high: int | None, side: Side, control: Control
    ) -> Iterator[Path]:
        """Yield the shortest ways round along undirected edges: a loop, two parallel edges, or a cycle."""
        most = 1 << 30 if high is None else high
        to_self = [edge for edge, vertex in self.neighbours(step, start) if vertex == start]
        if to_self:
            yield from (Path((Vertex(start), Vertex(start)), (edge,)) for edge in to_self)
            return
        ends = [vertex for _, vertex in self.neighbours(step, start)]
        length: int | None = 2 if len(set(ends)) < len(ends) else None
        if length is None:
            vertices = self._context.snapshot.graph.vertices
            length = breadth_first.way_round(step.partition, source, vertices, high, control)
        if length is not None and length <= most:
            yield from self._search.rounds(self, start, length, side.depths)

    def _one_path(self, step: _Step, side: Side, back: Partition, store: TripleStore) -> Callable[[int], Path]:
        return lambda vertex: next(self._paths(step, breadth_first.walks_back(side, back, vertex), store))

    def _paths(self, step: _Step, walks: Iterator[tuple[int, ...]], store: TripleStore) -> Iterator[Path]:
        """Yield the paths along walks, one for each choice among the edges between two vertices."""
        for walk in walks:
            ids = store.to_terms(np.array(walk)).tolist()
            choices = [
                [
                    edge
                    for code in self._codes(step, a, b)
                    for edge in self._context.view.parallel(code >> 1, *((q, p) if code & 1 else (p, q)))
                ]
                for a, b, p, q in zip(walk, walk[1:], ids, ids[1:], strict=False)
            ]
            vertices = tuple(map(Vertex, ids))
            for edges in itertools.product(*choices):
                yield Path(vertices[::-1], edges[::-1]) if self.backwards else Path(vertices, edges)

    def _codes(self, step: _Step, vertex: int, neighbour: int) -> list[int]:
        if step.partition.codes is None:
            assert step.labels is not None
            return [step.labels[0] << 1 | (not step.outwards)]
        codes: list[int] = step.partition.codes_of(vertex, neighbour).tolist()
        return codes

    def neighbours(self, step: _Step, vertex: int) -> list[tuple[Edge, int]]:
        """The edges that a step can take from a vertex, and where they lead."""
        key = (id(step), vertex)
        found = self._near.get(key)
        if found is None:
            found = self._near[key] = list(self._read(step, vertex))
        return found

    def _read(self, step: _Step, vertex: int) -> Iterator[tuple[Edge, int]]:
        store, view = self._context.snapshot.store, self._context.view
        if vertex >= store.resources:
            vertex = int(self._context.vertices([vertex])[0])
        for neighbour in step.partition.neighbours_of(vertex).tolist():
            ends = store.to_terms(np.array([vertex, neighbour])).tolist()
            for code in self._codes(step, vertex, neighbour):
                start, end = reversed(ends) if code & 1 else ends
                for edge in view.parallel(code >> 1, start, end):
                    yield edge, ends[1]

    def admits(self, trace: _Trace, row: Row) -> bool:
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
            known = row.get(self._search._renamed.get(state.name, state.name), row.get(state.name))
            if isinstance(known, Vertex) and known.id != trace.vertex:
                return False
        if not tests:
            return True
        environment = {**row, **self._nearest(trace)}
        return all(test(environment) is True for test in tests)

    def _nearest(self, trace: _Trace) -> Row:
        """The variables as the trace bound them last: those of the present repetition."""
        found: Row = {}
        at: _Trace | None = trace
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

    def bindings(self, trace: _Trace, renamed: dict[str, str]) -> Row:
        """The variables of a whole path, lists where they are repeated; the path itself under ""."""
        chain: list[_Trace] = []
        at: _Trace | None = trace
        while at is not None:
            chain.append(at)
            at = at.before
        if not self._backwards:
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
        for part in chain:
            state = self.states[part.state]
            taken: _Step | None = None
            if part.edge is not None and part.before is not None:
                taken = next(s for s, target in self.states[part.before.state].steps if target == part.state)
            if taken is not None and taken.name is not None and not taken.name.startswith("#"):
                _bind(found, renamed.get(taken.name, taken.name), part.edge, taken.group)
            if state.name is not None and not state.name.startswith("#"):
                _bind(found, renamed.get(state.name, state.name), Vertex(part.vertex), state.group)
            if part.edge is not None:
                edges.append(part.edge)
            if part.before is None or part.edge is not None:
                vertices.append(Vertex(part.vertex))
        found[""] = Path(tuple(vertices), tuple(edges))
        return found


def _bind(found: Row, name: str, value: Any, group: bool) -> None:
    if group:
        found[name].append(value)
    else:
        found[name] = value
