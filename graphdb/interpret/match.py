"""MATCH over rows: the parts of the patterns that are single edges go to a plan, the rest is searched path by path.

A clause becomes steps.  Vertices joined by single edges are one part, and one plan finds all its matches at once,
its vertices that the rows know already kept to the rows' values; SQL's join is then a hash join on what is shared.
Paths of variable length lead from part to part (:mod:`graphdb.interpret.search`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import numpy as np

from graphdb.common.errors import GraphDBError, NotSupportedError, TypeMismatchError
from graphdb.common.stopping import checked
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.interpret.context import Context, Row
from graphdb.interpret.evaluate import Compiler
from graphdb.interpret.search import Search
from graphdb.interpret.values import Edge, Path, Vertex, equals, type_name
from graphdb.pattern.bind import bind, conjuncts, property_conditions, variables_in
from graphdb.pattern.graph import PatternGraph
from graphdb.pattern.path_search import NODES_DIFFER, PathSearch
from graphdb.plan.passes.pipeline import make_plan
from graphdb.relational.candidates import Candidates
from graphdb.sql.expressions import LARGEST

Rows = list[Row]

_PUSHED = (ast.Comparison, ast.Boolean, ast.Unary, ast.In, ast.StringPredicate, ast.IsNull, ast.Property, ast.Variable,
           ast.Literal, ast.IriLiteral, ast.ListLiteral, ast.Parameter, ast.KeyName, ast.Word)  # fmt: skip
"""What a condition on one vertex may consist of for SQL to test it before the match."""

_WHICH = frozenset({"id", "elementid", "iri"})
"""Functions that say which vertex it is: they may be in it, too."""


@dataclass(slots=True)
class _Part:
    """Vertices that single edges join: what one plan matches."""

    nodes: dict[str, list[ast.NodePattern]] = field(default_factory=dict)
    edges: list[tuple[str, ast.EdgePattern, str, str]] = field(default_factory=list)
    """Hidden or own name, pattern, left and right vertex."""


_Searched = tuple[Search, str, str]
"""A search, and the names of the vertices between which it goes."""


class Match:
    """One MATCH clause, ready to run over rows that hold the names ``known``."""

    def __init__(self, context: Context, clause: ast.MatchClause, known: Iterable[str]) -> None:
        self.context = context
        self.clause = clause
        self.known = set(known)
        self._compiler = Compiler(context)
        self._parts: list[_Part] = []
        self._searches: list[_Searched] = []
        self._paths: list[tuple[str, list[str]]] = []
        self._bound_edges: list[tuple[str, str]] = []
        self._residual: list[ast.Expression] = []
        self.names: list[str] = []
        """The names that the clause brings in."""
        self._type_label = context.snapshot.store.type_label
        self._distinct_edges = clause.mode is not ast.MatchMode.REPEATABLE_ELEMENTS
        self._split()
        if len(self._searches) == 1 and not any(part.edges for part in self._parts):
            self._searches[0][0].stands_alone()
        self._place_conditions()
        self._filters: list[Callable[[Row], Any]] = [self._compiler.condition(c) for c in self._residual]

    # --- the clause in parts

    def _split(self) -> None:
        nodes: dict[str, list[ast.NodePattern]] = {}
        edges: list[tuple[str, ast.EdgePattern, str, str]] = []
        for path in self.clause.patterns:
            names = [self._node_name(node) for node in path.nodes]
            if path.mode is not None or path.selector is not None:
                self._search(path.nodes, names, path.edges, path)
                for at in (0, -1):
                    nodes.setdefault(names[at], []).append(path.nodes[at])
                if path.variable is not None:
                    self._introduce(path.variable.name)
                continue
            trace: list[str] = [names[0]]
            for i, edge in enumerate(path.edges):
                left, right = names[i], names[i + 1]
                if isinstance(edge, ast.EdgePattern) and edge.repeat is None:
                    trace += [self._single(edge, left, right, edges), right]
                    continue
                key = self._search(path.nodes[i : i + 2], names[i : i + 2], (edge,), None)
                trace += [key, right]
            for name, node in zip(names, path.nodes, strict=True):
                nodes.setdefault(name, []).append(node)
            if path.variable is not None:
                self._introduce(path.variable.name)
                self._paths.append((path.variable.name, trace))
        self._join_parts(nodes, edges)

    def _node_name(self, node: ast.NodePattern) -> str:
        if node.variable is None:
            return self.context.fresh("n")
        self._introduce(node.variable.name)
        return node.variable.name

    def _introduce(self, name: str) -> None:
        if name not in self.known and name not in self.names:
            self.names.append(name)

    def _single(
        self, edge: ast.EdgePattern, left: str, right: str, edges: list[tuple[str, ast.EdgePattern, str, str]]
    ) -> str:
        name = self.context.fresh("e")
        if edge.variable is not None:
            own = edge.variable.name
            if own in self.known or own in [other for other, *_ in edges] or own in self.names:
                self._bound_edges.append((name, own))
            else:
                self._introduce(own)
                name = own
        edges.append((name, edge, left, right))
        return name

    def _search(
        self,
        nodes: Sequence[ast.NodePattern],
        names: Sequence[str],
        edges: Sequence[ast.EdgePattern | ast.Subpath],
        whole: ast.PathPattern | None,
    ) -> str:
        """Add a search from the first of some nodes, by their names, to the last; return the name of its path."""
        key = self.context.fresh("p")
        if whole is not None and whole.variable is not None:
            key = whole.variable.name
        mode = self.clause.mode
        pattern = PathSearch(tuple(nodes), tuple(names), tuple(edges), whole, key, mode)
        search = Search(self.context, self._compiler, pattern)
        for name in search.names:
            if name in self.known:
                hidden = self.context.fresh("b")
                search.rename(name, hidden)
                self._bound_edges.append((hidden, name))
            else:
                self._introduce(name)
        self._searches.append((search, names[0], names[-1]))
        return key

    def _join_parts(
        self, nodes: dict[str, list[ast.NodePattern]], edges: list[tuple[str, ast.EdgePattern, str, str]]
    ) -> None:
        part_of = {name: name for name in nodes}

        def find(name: str) -> str:
            while part_of[name] != name:
                name = part_of[name]
            return name

        for _, _, left, right in edges:
            part_of[find(right)] = find(left)
        parts: dict[str, _Part] = {}
        for name, patterns in nodes.items():
            parts.setdefault(find(name), _Part()).nodes[name] = patterns
        for edge in edges:
            parts[find(edge[2])].edges.append(edge)
        self._parts = list(parts.values())

    # --- conditions

    def _place_conditions(self) -> None:
        """Find the conditions that SQL can test on one vertex before the match; all others wait for the rows."""
        self._pushed: dict[str, list[ast.Expression]] = {}
        conditions = list(conjuncts(self.clause.where))
        for part in self._parts:
            for name, patterns in part.nodes.items():
                for pattern in patterns:
                    subject = ast.Variable(name, pattern.span)
                    conditions += property_conditions(subject, pattern.properties)
                    conditions += conjuncts(pattern.where)
            for name, edge, *_ in part.edges:
                conditions += property_conditions(ast.Variable(name, edge.span), edge.properties)
                conditions += conjuncts(edge.where)
        single, size = {name for part in self._parts for name in part.nodes}, 0
        for condition in checked(conditions, 16):
            names = variables_in(condition)
            pushable = len(names) == 1 and names <= single and not names & self.known
            pieces = walk(condition) if pushable else []
            size += len(pieces)
            pushable = pushable and size <= LARGEST
            if pushable and all(_is_plain(piece) or self._constant(piece) for piece in pieces):
                self._pushed.setdefault(next(iter(names)), []).append(condition)
            else:
                self._residual.append(condition)

    def _constant(self, node: object) -> bool:
        """Whether a sum, product … is the same for every row and can be worked out: then it may be before the match."""
        if not _is_of_constants(node):
            return False
        try:
            self._compiler.compile(node)({})
        except GraphDBError:
            return False
        return True

    # --- running

    def run(self, rows: Rows, limit: int | None = None) -> Rows:
        """Return the rows with their matches; the clause's order is that of the rows."""
        if not rows:
            return []
        bound = set(rows[0])
        self._check_given(rows, bound)
        waiting, searches = list(self._parts), list(self._searches)
        used = "#used"
        for row in rows:
            row[used] = ()
        while waiting or searches:
            # What is selected depends on the edges of the rest: those paths come last.
            searches.sort(key=lambda search: search[0].selector is not None)
            search = next((s for s in searches if s[1] in bound or s[2] in bound), None)
            part = next((p for p in waiting if bound & p.nodes.keys()), None)
            if part is None and search is not None and search[0].selector is not None:
                part = self._before(search, waiting, searches)
            if part is None and search is None:
                part = min(waiting, key=self._cost)
            if part is not None:
                waiting.remove(part)
                rows = self._match_part(part, rows, bound)
                bound |= part.nodes.keys() | {name for name, *_ in part.edges}
            elif search is not None:
                searches.remove(search)
                found, left, right = search
                paths = (r for row in rows for r in found.run(row, left, right, self._distinct_edges))
                rows = list(self.context.watched(paths))
                bound |= {left, right, found.key, *found.names}
            if not rows:
                return []
        if self._bound_edges:
            bound_to = self._bound_edges
            rows = [r for r in self.context.watched(rows) if all(equals(r[a], r[b]) is True for a, b in bound_to)]
        for row in self.context.watched(rows):
            row.pop(used, None)
            for name, trace in self._paths:
                row[name] = _path(row, trace)
        if self.clause.mode in NODES_DIFFER:
            rows = [row for row in self.context.watched(rows) if self._differs(row)]
        self._expect(rows)
        return [row for row in self.context.watched(rows) if all(test(row) is True for test in self._filters)]

    def _before(self, search: _Searched, waiting: list[_Part], searches: list[_Searched]) -> _Part | None:
        """Return a part to match before a path is selected: what has edges, or begins a path that is not selected."""
        if self._distinct_edges:
            begun = {end for other, *ends in searches if other.selector is None for end in ends}
            rest = [part for part in waiting if part.edges or begun & part.nodes.keys()]
            if rest:
                return min(rest, key=self._cost)
        # Between two known ends a shortest path is found from both.
        ends = next((part for part in waiting if {search[1], search[2]} & part.nodes.keys()), None)
        return ends if ends is not None and self._cost(ends) < (True, 0) else None

    def _check_given(self, rows: Rows, bound: set[str]) -> None:
        """Refuse values from before that are neither null nor what the pattern takes them for."""
        found = walk(self.clause.patterns)
        for kind, pattern, word in ((Vertex, ast.NodePattern, "vertex"), ((Edge, list), ast.EdgePattern, "edge")):
            variables = [each.variable for each in found if isinstance(each, pattern) and each.variable is not None]
            for variable in variables:
                name = variable.name
                wrong = (row[name] for row in rows if row[name] is not None and not isinstance(row[name], kind))
                value = next(wrong, None) if name in bound else None
                if value is not None:
                    raise TypeMismatchError(
                        f"'{name}' is {type_name(value)}, not a{'n' if word == 'edge' else ''} {word}",
                        text=self.context.text,
                        position=variable.span.start,
                    )

    def _expect(self, rows: Rows) -> None:
        if self._filters:
            for row in self.context.watched(rows):
                self.context.view.expect(row.values())
            self.context.subqueries.run_ahead(self._residual, rows)

    def _differs(self, row: Row) -> bool:
        """Whether a row's vertices differ, those within paths too, and for INDUCED no edge between them is left out."""
        paths = [row[search.key] for search, *_ in self._searches]
        elements: dict[object, Vertex] = {name: row[name] for part in self._parts for name in part.nodes}
        for path, (search, *_) in zip(paths, self._searches, strict=True):
            elements |= search.elements(path, row.get(search.places))
        vertices = {*elements.values()}
        if len(vertices) < len(elements):
            return False
        if self.clause.mode is not ast.MatchMode.INDUCED:
            return True
        edges = [row[name] for part in self._parts for name, *_ in part.edges]
        edges += [edge for path in paths for edge in path.edges]
        between = {edge for edge in edges if edge.label != self._type_label and edge.end < LITERAL_BASE}
        return {*self._between([vertex for vertex in vertices if vertex.id < LITERAL_BASE])} == between

    def _between(self, vertices: list[Vertex]) -> Iterator[Edge]:
        """Yield all edges between some vertices, those that a pattern without a label takes."""
        partition = self.context.snapshot.graph.partition(None, "out")
        places = self.context.vertices([vertex.id for vertex in vertices]).tolist()
        for (start, here), (end, there) in itertools.product(zip(vertices, places, strict=True), repeat=2):
            for code in partition.codes_of(here, there).tolist():
                yield from self.context.view.parallel(code >> 1, start.id, end.id)

    def _cost(self, part: _Part) -> tuple[bool, int]:
        """Parts with conditions first."""
        conditions = sum(len(self._pushed.get(name, [])) for name in part.nodes)
        labelled = any(p.labels is not None or p.iri is not None for ps in part.nodes.values() for p in ps)
        return (not (conditions or labelled), -len(part.edges))

    def _match_part(self, part: _Part, rows: Rows, bound: set[str]) -> Rows:
        shared = [name for name in part.nodes if name in bound]
        for name in shared:
            rows = [row for row in rows if isinstance(row[name], Vertex)]
        if not rows:
            return []
        bare = all(
            p.labels is None and p.iri is None for patterns in part.nodes.values() for p in patterns
        ) and not any(self._pushed.get(name) for name in part.nodes)
        if not part.edges and bare and shared:
            return rows
        wanted = {name: np.unique(self.context.vertices([row[name].id for row in rows])) for name in shared}
        matches = self._matches(part, wanted)
        found: dict[tuple[int, ...], list[Row]] = {}
        for match in self.context.watched(matches):
            found.setdefault(tuple(match[name].id for name in shared), []).append(match)
        fresh_edges = [name for name, *_ in part.edges]
        result = []
        pairs = ((row, match) for row in rows for match in found.get(tuple(row[name].id for name in shared), ()))
        for row, match in self.context.watched(pairs):
            used = row["#used"]
            if self._distinct_edges and fresh_edges:
                own = tuple(match[name] for name in fresh_edges)
                if used and not set(used).isdisjoint(own):
                    continue
                used = used + own
            result.append({**row, **match, "#used": used})
        return result

    def _matches(self, part: _Part, wanted: dict[str, Any]) -> Iterator[Row]:
        """Run the plan of a part and yield its matches as rows of vertices and edges."""
        bound, plan = self._plan(part, wanted)
        context, store = self.context, self.context.snapshot.store
        names = list(bound.vertex_of)
        edges = [(name, bound.edges[bound.edge_of[name]]) for name, *_ in part.edges]
        for block in context.executor.run(plan, context.new_control()):
            columns = [store.to_terms(block.columns[name]).tolist() for name in names]
            codes = [block.columns[name].tolist() for name, _ in edges]
            vertices = [[Vertex(id) for id in column] for column in columns]
            for i in range(block.count):
                row: Row = {name: column[i] for name, column in zip(names, vertices, strict=True)}
                choices: list[list[Edge]] = []
                for (_, edge), code in zip(edges, codes, strict=True):
                    start, end = (row[bound.vertices[v].name].id for v in (edge.source, edge.target))
                    if not edge.directed and code[i] & 1:
                        start, end = end, start
                    choices.append(context.view.parallel(code[i] >> 1, start, end))
                yield from self._chosen(row, [name for name, _ in edges], choices)

    def _chosen(self, row: Row, names: list[str], choices: list[list[Edge]]) -> Iterator[Row]:
        """Yield a row for each choice among parallel edges: edge by edge, so that two alike end a choice at once."""
        chosen: list[Edge] = []
        under_way = [iter(choices[0])] if choices else []
        if not choices:
            yield row
        while under_way:
            for edge in self.context.stepped(under_way[-1]):
                if not self._distinct_edges or edge not in chosen:
                    chosen.append(edge)
                    break
            else:
                under_way.pop()
                del chosen[-1:]
                continue
            if len(chosen) < len(choices):
                under_way.append(iter(choices[len(chosen)]))
                continue
            yield {**row, **dict(zip(names, chosen, strict=True))}
            chosen.pop()

    def _plan(self, part: _Part, wanted: dict[str, Any]) -> Any:
        pushed = [condition for name in part.nodes for condition in self._pushed.get(name, [])]
        try:
            return self._make_plan(part, wanted, pushed)
        except (TypeMismatchError, NotSupportedError):
            # What SQL refuses to type is decided for each row.
            compiled = [self._compiler.condition(condition) for condition in pushed]
            for name in part.nodes:
                self._pushed.pop(name, None)
            self._filters += compiled
            return self._make_plan(part, wanted, [])

    def _make_plan(self, part: _Part, wanted: dict[str, Any], pushed: list[ast.Expression]) -> Any:
        context, snapshot = self.context, self.context.snapshot
        paths = []
        for name, patterns in part.nodes.items():
            for pattern in patterns:
                node = ast.NodePattern(ast.Variable(name, pattern.span), pattern.labels, pattern.iri, span=pattern.span)
                paths.append(ast.PathPattern((node,), (), pattern.span))
        for name, edge, left, right in part.edges:
            ends = tuple(ast.NodePattern(ast.Variable(end, edge.span), span=edge.span) for end in (left, right))
            own = ast.EdgePattern(edge.direction, ast.Variable(name, edge.span), edge.labels, span=edge.span)
            paths.append(ast.PathPattern(ends, (own,), edge.span))
        where = None
        if pushed:
            where = pushed[0] if len(pushed) == 1 else ast.Boolean("AND", tuple(pushed), pushed[0].span)
        # Which edges are left out is seen when all are known, those within paths and parallel ones too.
        mode = ast.MatchMode.DIFFERENT_NODES if self.clause.mode is ast.MatchMode.INDUCED else self.clause.mode
        clause = ast.MatchClause(tuple(paths), mode, where, self.clause.span)
        bound = bind((clause,), snapshot.names, context.text)
        if bound.residual:
            raise NotSupportedError("a condition that only SQL can test is left")
        candidates = Candidates(snapshot, context.text, context.arguments, lambda predicate: np.empty(0, np.int64))
        vertices = []
        for vertex in candidates.vertices(bound):
            known = wanted.get(vertex.name)
            if known is not None:
                both = known if vertex.candidates is None else np.intersect1d(known, vertex.candidates)
                vertex = replace(vertex, candidates=both)
            vertices.append(vertex)
        parallel = snapshot.edges.parallel
        for number, one in enumerate(bound.edges):  # two of them may take one triple, and differ after the match
            admitted = parallel if one.labels is None else parallel.intersection(one.labels)
            bound.edges[number] = replace(one, parallel=bool(admitted))
        outputs = (*bound.vertex_of, *bound.edge_of)
        graph = PatternGraph(
            tuple(vertices),
            tuple(bound.edges),
            tuple(bound.clauses),
            tuple(bound.edge_tests),
            tuple(bound.unequal),
            outputs,
            False,
            None,
        )
        return bound, make_plan(graph, snapshot.graph, refine=context.executor.refine)


def is_looked_up(clause: ast.MatchClause) -> bool:
    """Whether a clause's vertices are found before its rows are made: no condition is left for which many are tried."""
    patterns = [variables_in(pattern) for pattern in clause.patterns]
    names: set[str] = set().union(*patterns)
    conditions = list(conjuncts(clause.where))
    for node in walk(clause.patterns):
        if isinstance(node, ast.NodePattern):
            subject = node.variable or ast.Variable("#", node.span)
            names.add(subject.name)
            conditions += [*property_conditions(subject, node.properties), *conjuncts(node.where)]
    edges = {node.variable.name for node in walk(clause.patterns)
             if isinstance(node, ast.EdgePattern) and node.variable is not None}  # fmt: skip
    for condition in conditions:
        asked = variables_in(condition)
        if asked - names or sum(bool(asked & pattern) for pattern in patterns) > 1:
            return False
        if (
            len(asked) == 1
            and not asked & edges
            and not all(_is_plain(piece) or _is_of_constants(piece) for piece in walk(condition))
        ):
            return False
    return True


def _is_of_constants(node: object) -> TypeGuard[ast.Binary]:
    return isinstance(node, ast.Binary) and not variables_in(node)


def _is_plain(node: object) -> bool:
    if isinstance(node, ast.FunctionCall):
        return node.name.lower() in _WHICH and all(isinstance(argument, ast.Variable) for argument in node.arguments)
    return isinstance(node, _PUSHED)


def _path(row: Row, trace: list[str]) -> Path:
    """Put a path together from its vertices, edges and the paths between them."""
    vertices: list[Vertex] = [row[trace[0]]]
    edges: list[Edge] = []
    for name, vertex in zip(trace[1::2], trace[2::2], strict=True):
        between = row[name]
        if isinstance(between, Path):
            vertices += between.vertices[1:]
            edges += between.edges
        else:
            edges.append(between)
            vertices.append(row[vertex])
    return Path(tuple(vertices), tuple(edges))
