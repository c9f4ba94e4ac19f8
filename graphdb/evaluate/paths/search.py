"""Paths of variable length: a search over pairs of a data vertex and a state of the pattern's automaton.

All paths of a mode are found depth first; where a selector wants the shortest ones and the mode allows it, breadth
first, and then no more paths than it may want are stored for each pair of vertex and state (GQL, ISO/IEC 39075:2024,
§16.6 and §22.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphdb.common.errors import BindError, NotSupportedError
from graphdb.evaluate.paths.automaton import PLACES, Automaton, Trace
from graphdb.evaluate.paths.shortest import Shortest
from graphdb.evaluate.values import Edge, Path, Vertex
from graphdb.grammar import syntax as ast
from graphdb.pattern.paths.search import PathSearch

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context, Row
    from graphdb.evaluate.evaluator import Evaluator


class Search:
    """Finds the paths of a pattern from a bound vertex."""

    def __init__(self, context: Context, compiler: Evaluator, search: PathSearch) -> None:
        self._context = context
        self._compiler = compiler
        self._pattern = search
        self._nodes, self._node_names, self._edges = search.nodes, search.names, search.edges
        self.key, self.selector, self.nodes_differ, self.mode = (
            search.key,
            search.selector,
            search.nodes_differ,
            search.mode,
        )
        edges, match_mode = search.edges, search.match_mode
        self._renamed: dict[str, str] = {}
        self._free = self.mode is ast.PathMode.WALK
        self._trails = not self._free and not (
            self.mode is ast.PathMode.SIMPLE and match_mode is ast.MatchMode.REPEATABLE_ELEMENTS
        )
        """Whether no edge may come twice; a simple walk is simple by its vertices alone."""
        self._automata: dict[bool, Automaton] = {}
        edge = edges[0] if edges else None
        self._plain = (
            len(edges) == 1
            and isinstance(edge, ast.EdgePattern)
            and (edge.repeat is None or edge.repeat.low <= 1)
            and self.selector is not None
            and self.selector.count == 1
        )
        """Whether the shortest walks are the shortest paths of any mode."""
        self._simple = (
            self._plain
            and isinstance(edge, ast.EdgePattern)
            and edge.repeat is not None
            and (edge.repeat.high is None or edge.repeat.high >= edge.repeat.low)
            and edge.properties is None
            and edge.where is None
        )
        """Whether kernels find them: one repeated edge on which there are no conditions."""
        self.names = list(search.variables)
        self.places = f"{PLACES} {search.key}"
        """The name under which rows hold the places of its nodes."""
        if self._free and self.selector is None and _unbounded(edges):
            raise BindError(
                "without an upper bound there can be infinitely many walks",
                text=context.text,
                position=(search.whole or search.nodes[0]).span.start,
                hint="write TRAIL, SIMPLE, ACYCLIC, a selector such as ANY SHORTEST, or an upper bound",
            )

    def rename(self, name: str, hidden: str) -> None:
        """Bind a variable under another name."""
        self._renamed[name] = hidden
        self.names = [hidden if other == name else other for other in self.names]

    def prepare(self, known: Collection[str], backwards: bool) -> None:
        """Build the automaton, for rows that hold some names; raises what is wrong with the pattern."""
        self._automaton(known, backwards)

    def _automaton(self, known: Collection[str], backwards: bool) -> Automaton:
        automaton = self._automata.get(backwards)
        if automaton is None:
            automaton = self._automata[backwards] = Automaton(
                self._context, self._compiler, self._nodes, self._edges, self._renamed, backwards, known
            )
        if automaton.late and self.selector is not None:
            raise NotSupportedError(
                "a condition within a selected path that looks at what comes later is not supported yet",
                text=self._context.text,
                position=self._nodes[0].span.start,
                hint="write it in WHERE, where it is asked of the paths that were selected",
            )
        return automaton

    def run(self, row: Row, left: str, right: str, distinct: bool) -> Iterator[Row]:
        """Yield the row with each path between its two vertices, of which it holds at least one."""
        backwards = left not in row
        start, end = (right, left) if backwards else (left, right)
        if not isinstance(row[start], Vertex) or (end in row and not isinstance(row[end], Vertex)):
            return
        automaton = self._automaton(row, backwards)
        if self._simple:
            yield from self._shortest(automaton, row, start, end, distinct)
            return
        used = row["#used"] if distinct and not self._free else ()
        wanted = row[end].id if end in row else None
        selector, beside, seen = self.selector, frozenset(used), set()
        any_one = bool(used) and selector is not None and selector.count == 1 and not selector.groups
        if any_one:
            selector = ast.Selector(1, shortest=True, groups=True)
        for trace in self._traces(automaton, row, row[start].id, wanted, beside, selector):
            found = automaton.bindings(trace, self._renamed)
            path: Path = found.pop("")
            found[self.places] = found.pop(PLACES)
            if selector is not None and not beside.isdisjoint(path.edges):
                continue  # paths are selected first
            if any_one:
                if trace.vertex in seen:
                    continue
                seen.add(trace.vertex)
            new = {**row, **found, end: Vertex(trace.vertex), self.key: path}
            if not all(test(new) is True for test in automaton.late):
                continue
            if distinct and not self._free:
                new["#used"] = used + path.edges
            yield new

    # --- searching

    def _traces(
        self,
        automaton: Automaton,
        row: Row,
        start: int,
        end: int | None,
        used: frozenset[Edge],
        selector: ast.Selector | None,
    ) -> Iterator[Trace]:
        if selector is None:
            yield from self._depth_first(automaton, row, start, end, used)
            return
        if self._free or self._plain:
            yield from self._breadth_first(automaton, row, start, end, selector)
            return
        found: dict[int, list[Trace]] = {}
        for trace in self._depth_first(automaton, row, start, end, frozenset()):
            if not self.nodes_differ or self._differs(automaton, trace):
                found.setdefault(trace.vertex, []).append(trace)
        for traces in found.values():
            yield from _selected(traces, selector, used)

    def _differs(self, automaton: Automaton, trace: Trace) -> bool:
        """Whether the vertices of a path that stands alone differ."""
        found = automaton.bindings(trace, self._renamed)
        elements = self.elements(found[""], found[PLACES])
        return len({*elements.values()}) == len(elements)

    def elements(self, path: Path, places: Mapping[int, int] | None) -> dict[object, Vertex]:
        """Return the pattern's vertices along a path, each once, and what each is bound to.

        A vertex with a name is one wherever it is written; others are known by their place.  ``places`` are those of
        the pattern's nodes; None for its two ends.
        """
        places = places or {0: 0, len(self._nodes) - 1: len(path.vertices) - 1}
        found: dict[object, Vertex] = {self._node_names[node]: path.vertices[place] for node, place in places.items()}
        inner = {*range(len(path.vertices))}.difference(places.values())
        return found | {(self.key, place): path.vertices[place] for place in inner}

    def _shortest(self, automaton: Automaton, row: Row, start: str, end: str, distinct: bool) -> Iterator[Row]:
        """Yield the row with the shortest paths along one repeated edge, found by kernels."""
        selector = self.selector
        assert selector is not None
        used = frozenset(row["#used"]) if distinct and not self._free else frozenset()
        wanted = row[end].id if end in row else None
        alone = distinct and not self._free
        before = None
        for last, path in Shortest(self._context, self.mode, automaton, self._edges).paths(
            row[start].id, wanted, selector.groups or bool(used), self._context.new_control()
        ):
            if (used and not used.isdisjoint(path.edges)) or (last == before and not selector.groups):
                continue
            before = last
            new = {**row, end: Vertex(last), self.key: path}
            for name in self.names:
                new[name] = list(path.edges)
            if alone:
                new["#used"] = row["#used"] + path.edges
            yield new

    def _depth_first(
        self,
        automaton: Automaton,
        row: Row,
        start: int,
        end: int | None,
        used: frozenset[Edge],
    ) -> Iterator[Trace]:
        stack = [Trace(None, 0, start, None, 0)]
        control = self._context.new_control()
        seen = 0
        while stack:
            trace = stack.pop()
            seen += 1
            if not seen & 1023:
                self._context.check(control)
            if not automaton.admits(trace, row):
                continue
            state = automaton.states[trace.state]
            if trace.state == automaton.accepting and end in (None, trace.vertex):
                yield trace
            following = [Trace(trace, target, trace.vertex, None, trace.length) for target in state.jumps]
            for step, target in state.steps:
                for edge, vertex in automaton.neighbours(step, trace.vertex):
                    if edge not in used and self._allows(trace, edge, vertex, start):
                        following.append(Trace(trace, target, vertex, edge, trace.length + 1))
            stack += reversed(following)

    def _allows(self, trace: Trace, edge: Edge, vertex: int, start: int) -> bool:
        """Whether the mode allows one more edge."""
        if self.mode is ast.PathMode.WALK:
            return True
        if self.mode is ast.PathMode.SIMPLE and trace.length and trace.vertex == start:
            return False  # it has come back to its start, which ends it
        at: Trace | None = trace
        while at is not None:
            closes = self.mode is ast.PathMode.SIMPLE and vertex == start
            again = self.mode is not ast.PathMode.TRAIL and at.vertex == vertex and not closes
            if again or (self._trails and at.edge == edge):
                return False
            at = at.before
        return True

    def _breadth_first(
        self,
        automaton: Automaton,
        row: Row,
        start: int,
        end: int | None,
        selector: ast.Selector,
    ) -> Iterator[Trace]:
        arrivals: dict[tuple[int, int], Selection] = {}
        results: dict[int, Selection] = {}
        layer = [Trace(None, 0, start, None, 0)]
        control = self._context.new_control()
        while layer:
            following: list[Trace] = []
            at = 0
            while at < len(layer):
                if at % 1024 == 0:
                    self._context.check(control)
                trace = layer[at]
                at += 1
                if not automaton.admits(trace, row):
                    continue
                selection = arrivals.setdefault((trace.state, trace.vertex), Selection())
                if not selection.takes(trace.length, selector):
                    continue
                state = automaton.states[trace.state]
                ends = trace.state == automaton.accepting and end in (None, trace.vertex)
                if ends and results.setdefault(trace.vertex, Selection()).takes(trace.length, selector):
                    yield trace
                layer += [Trace(trace, target, trace.vertex, None, trace.length) for target in state.jumps]
                for step, target in state.steps:
                    for edge, vertex in automaton.neighbours(step, trace.vertex):
                        if self._allows(trace, edge, vertex, start):
                            following.append(Trace(trace, target, vertex, edge, trace.length + 1))
            if end is not None and end in results and results[end].full(selector, layer[0].length):
                return
            layer = following


@dataclass(slots=True)
class Selection:
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


def _selected(traces: list[Trace], selector: ast.Selector, used: frozenset[Edge]) -> list[Trace]:
    """Return the shortest of some paths, and of those that are as long the ones that take no ``used`` edge first."""
    traces.sort(key=lambda trace: (trace.length, bool(used) and not used.isdisjoint(trace.edges())))
    if not selector.groups:
        return traces[: selector.count]
    lengths = sorted({trace.length for trace in traces})[: selector.count]
    return [trace for trace in traces if trace.length in lengths]


def _unbounded(edges: Sequence[ast.EdgePattern | ast.Subpath]) -> bool:
    return any(
        (edge.repeat is not None and edge.repeat.high is None)
        or (isinstance(edge, ast.Subpath) and _unbounded(edge.pattern.edges))
        for edge in edges
    )
