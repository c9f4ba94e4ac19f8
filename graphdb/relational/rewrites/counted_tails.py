"""Parts of a pattern that only the number of matches depends on, counted by themselves: eager aggregation.

``MATCH (a)-[:p]->(b)-[:q]->(c) RETURN b, count(*), count(DISTINCT a)`` asks nothing of ``c`` but how many there are for
each ``b``, and ``a`` does not change that.  A part of a pattern that shares one returned vertex with the rest, and of
which nothing is returned, is such a *tail*.  It becomes ``COUNT { (b)-[:q]->(c) }`` of each row without it, and the
number of rows the sum of these counts, where a search would enumerate the product (Yan and Larson, *Eager aggregation
and lazy aggregation*, 1995).  Sums and averages weigh the number of each row by its counts.  What ignores duplicates,
such as ``count(DISTINCT a)`` or ``max``, is what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, conjuncts
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.graph import PatternGraph
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.rename import rewritten
from graphdb.plan.checks import EdgesDiffer
from graphdb.plan.injectivity import distinctness
from graphdb.plan.passes.counting import WORTH
from graphdb.plan.physical import PhysicalPlan
from graphdb.semantics.aggregation import aggregates_in

_ANY_EDGES = (ast.MatchMode.DIFFERENT_EDGES, ast.MatchMode.REPEATABLE_ELEMENTS)
_TIMES_AS_MANY = 3.0
"""How many times as many matches as rows without the tails there are at least where these are counted by themselves."""

_TIMES = "#times"
"""How the names of columns begin that say how often a tail matches."""

Vertex: TypeAlias = "str | tuple[int, int, int]"
"""A vertex of a pattern: its name, or the place where it has none."""


@dataclass(slots=True)
class _Part:
    """What the vertices make up that nothing returns and that edges or conditions connect."""

    vertices: set[Vertex]
    shared: set[str] = field(default_factory=set)
    """The returned vertices that its edges and conditions name."""
    edges: set[int] = field(default_factory=set)
    whole: bool = True
    """Whether it may be counted by itself, as far as is known."""

    def add(self, other: _Part) -> None:
        """Take up another part."""
        self.vertices |= other.vertices
        self.shared |= other.shared
        self.edges |= other.edges
        self.whole &= other.whole

    @property
    def is_tail(self) -> bool:
        """Whether it hangs on a single returned vertex."""
        return self.whole and len(self.shared) == 1 and bool(self.edges)


def enumerates_tails(plan: PhysicalPlan, wanted: Collection[int]) -> bool:
    """Whether a plan is expected to go through many matches only to count them for its rows.

    ``wanted`` are the vertices whose bindings are.
    """
    others = (plan.counting, plan.weighed, plan.tree, plan.clique, plan.twins, plan.scan, plan.functional)
    if plan.duplicates == "drop" or any(other is not None for other in others):
        return False
    if plan.duplicates == "keep":  # each match is a row
        estimates = [1.0, *(step.estimate for step in plan.steps)]
        growth = (
            max(after / before, 1.0) if before else 1.0
            for step, before, after in zip(plan.steps, estimates, estimates[1:], strict=False)
            if step.vertex not in wanted
        )
        return estimates[-1] > WORTH and prod(growth) >= _TIMES_AS_MANY
    enumerated = plan.steps[plan.row_steps : len(plan.steps) - plan.count_last]
    return max((step.estimate for step in enumerated), default=0.0) > WORTH


def coinciding(bound: BoundPattern, type_label: int | None) -> Iterator[tuple[int, int]]:
    """Yield the pairs of edges of a pattern, by their numbers, that must differ and might not."""
    pattern = PatternGraph((), tuple(bound.edges), tuple(bound.clauses), (), tuple(bound.unequal))
    for check in distinctness(pattern, type_label, lambda edge: False, parallel=True):
        if isinstance(check, EdgesDiffer):
            yield check.first, check.second
    yield from bound.differ


def with_counted_tails(
    matches: Sequence[ast.MatchClause],
    returns: ast.ReturnClause,
    coincide: Callable[[], Iterable[tuple[int, int]]],
    values: Collection[str],
    is_number: Callable[[ast.Expression], bool],
) -> tuple[list[ast.ClauseNode], ast.ReturnClause] | None:
    """Return clauses that count the tails of MATCH clauses, and what is returned after them; None where there are none.

    ``coincide`` gives the pairs of edges, by their numbers in the order written, that must differ though they may be
    bound to the same one: a tail has none with other edges.  The vertices ``values`` may be literals, from which no
    subquery starts.  ``is_number`` says whether an expression is a number of each row, or null.
    """
    if returns.star or not matches or not all(_is_divisible(match) for match in matches):
        return None
    returns = _counting_rows(matches, returns)
    aggregates = [call for item in returns.items for call in aggregates_in(item.expression)]
    if all(map(_ignores_duplicates, aggregates)) or not all(_is_countable(call, is_number) for call in aggregates):
        return None
    division = _Division(matches, free_variables((returns.items, returns.order_by)))
    if not division.tails:
        return None
    division.keep(coincide(), values)
    return division.clauses(returns) if division.tails else None


def _is_divisible(match: ast.MatchClause) -> bool:
    return match.mode in _ANY_EDGES and not match.optional and all(path.plain for path in match.patterns)


def _counting_rows(matches: Sequence[ast.MatchClause], returns: ast.ReturnClause) -> ast.ReturnClause:
    """Return what counts rows for elements of the pattern that are counted: these are never null."""
    patterns = walk(tuple(path for match in matches for path in match.patterns))
    elements = {each.variable for each in patterns if isinstance(each, ast.NodePattern | ast.EdgePattern)}

    def of_rows(part: object) -> object:
        if isinstance(part, SUBQUERIES):
            return part
        match part:
            case ast.FunctionCall(name, (ast.Variable() as counted,), False) if name.lower() == "count":
                return ast.CountStar(part.span) if counted in elements else None
        return None

    return rewritten(returns, of_rows)


def _ignores_duplicates(call: ast.FunctionCall | ast.CountStar) -> bool:
    return isinstance(call, ast.FunctionCall) and (call.distinct or call.name.lower() in ("min", "max"))


def _is_countable(call: ast.FunctionCall | ast.CountStar, is_number: Callable[[ast.Expression], bool]) -> bool:
    """Whether an aggregate is one over rows that come with the number of times that they stand for."""
    if _ignores_duplicates(call) or isinstance(call, ast.CountStar) or call.name.lower() == "count":
        return True
    return call.name.lower() in ("sum", "avg") and is_number(call.arguments[0])


class _Division:
    """MATCH clauses, divided into tails and what is left."""

    def __init__(self, matches: Sequence[ast.MatchClause], returned: set[str]) -> None:
        self._matches, self._returned = matches, returned
        self._parts: dict[Vertex, _Part] = {}
        self._part_of_edge: list[_Part | None] = []
        self._edges: dict[str, int] = {}
        for at, path in self._paths():
            self._add_path(at, path)
        for match in matches:
            for condition in conjuncts(match.where):
                self._add_condition(condition, set())
        for name in returned & self._edges.keys():
            self._keep(self._of_edge(self._edges[name]))

    @property
    def tails(self) -> list[_Part]:
        """The parts that are counted by themselves."""
        return [part for part in {id(part): part for part in self._parts.values()}.values() if part.is_tail]

    def keep(self, pairs: Iterable[tuple[int, int]], values: Collection[str]) -> None:
        """Note the pairs of edges that must differ, and might not, and the vertices that may be literals."""
        for tail in self.tails:
            tail.whole = tail.shared.isdisjoint(values)
        for one, other in pairs:
            if self._of_edge(one) is not self._of_edge(other):
                self._keep(self._of_edge(one))
                self._keep(self._of_edge(other))

    # --- what belongs together

    def _paths(self) -> Iterator[tuple[tuple[int, int], ast.PathPattern]]:
        for m, match in enumerate(self._matches):
            for p, path in enumerate(match.patterns):
                yield (m, p), path

    def _vertex(self, at: tuple[int, int], number: int, node: ast.NodePattern) -> Vertex:
        return (*at, number) if node.variable is None else node.variable.name

    def _part(self, vertex: Vertex) -> _Part | None:
        """Return what a vertex is part of; None for one that is returned."""
        if vertex in self._returned:
            return None
        return self._parts.setdefault(vertex, _Part({vertex}))

    def _of_edge(self, number: int) -> _Part | None:
        part = self._part_of_edge[number]
        return None if part is None else self._parts[next(iter(part.vertices))]

    def _keep(self, part: _Part | None) -> None:
        if part is not None:
            part.whole = False

    def _joined(self, vertices: Iterable[Vertex]) -> _Part | None:
        """Make one part of what some vertices are part of, those that are returned left out."""
        parts = {id(part): part for part in map(self._part, vertices) if part is not None}
        if not parts:
            return None
        first, *others = parts.values()
        for other in others:
            first.add(other)
        self._parts |= dict.fromkeys(first.vertices, first)
        return first

    def _add_path(self, at: tuple[int, int], path: ast.PathPattern) -> None:
        vertices = [self._vertex(at, i, node) for i, node in enumerate(path.nodes)]
        for vertex, node in zip(vertices, path.nodes, strict=True):
            self._part(vertex)
            self._add_condition((node.properties, node.where), {vertex})
        for i, edge in enumerate(path.edges):
            assert isinstance(edge, ast.EdgePattern)
            ends = {vertices[i], vertices[i + 1]}
            number, part = len(self._part_of_edge), self._joined(ends)
            self._part_of_edge.append(part)
            if part is not None:
                part.edges.add(number)
                part.shared |= {end for end in ends if isinstance(end, str) and end in self._returned}
            if edge.variable is not None:
                if edge.variable.name in self._edges:
                    self._keep(part)
                self._edges[edge.variable.name] = number
            self._add_condition((edge.properties, edge.where), ends)

    def _add_condition(self, condition: object, of: set[Vertex]) -> None:
        """Note a condition, and the vertices that it is a condition of beside those that it names."""
        names = free_variables(condition)
        if not names and condition in (None, (None, None)):
            return
        edges = [self._of_edge(self._edges[name]) for name in names & self._edges.keys()]
        vertices = of | (names - self._edges.keys())
        part = self._joined(vertices | {next(iter(edge.vertices)) for edge in edges if edge is not None})
        if part is None:
            return
        part.shared |= {name for name in vertices if isinstance(name, str) and name in self._returned}
        said = walk(condition)
        if any(isinstance(each, SUBQUERIES) for each in said) or None in edges:
            part.whole = False
        if any(isinstance(each, ast.FunctionCall) and each.name.lower() in VOLATILE for each in said):
            part.whole = False

    # --- the clauses

    def clauses(self, returns: ast.ReturnClause) -> tuple[list[ast.ClauseNode], ast.ReturnClause]:
        """Return the clauses without tails and the WITH that counts these; and what is returned after them."""
        tails, span = self.tails, returns.span
        there = {name for tail in tails for name in tail.shared}
        rest = self._of(None, there)
        counts = []
        for number, tail in enumerate(tails):
            (name,) = tail.shared
            query = ast.Composite((tuple(self._of(tail, {name})),), span=span)
            counts.append((ast.Variable(f"{_TIMES} {number}", span), ast.Subquery("count", query, span)))
        elements = {*self._edges, *(vertex for _, path in self._paths() for vertex in _names(path))}
        items = [ast.ReturnItem(ast.Variable(name, span), name, name) for name in sorted(self._returned & elements)]
        items += [ast.ReturnItem(count, times.name, times.name) for times, count in counts]
        some: list[ast.Expression] = [
            ast.Comparison((">",), (times, ast.Literal(0, span)), span) for times, _ in counts
        ]
        counted = ast.WithClause(ast.ReturnClause(tuple(items), span=span), all_hold(some, span), span)
        product: ast.Expression = counts[0][0]
        for times, _ in counts[1:]:
            product = ast.Binary("*", product, times, span)
        return [*rest, counted], rewritten(returns, lambda part: _times(part, product))

    def _of(self, tail: _Part | None, shared: set[str]) -> list[ast.MatchClause]:
        """Return the clauses of a tail, or of what is left, with the vertices that both have."""
        made, seen, edge = list[ast.MatchClause](), set[str](), 0
        waiting = list[ast.Expression]()
        for m, match in enumerate(self._matches):
            paths = list[ast.PathPattern]()
            for p, path in enumerate(match.patterns):
                vertices = [self._vertex((m, p), i, node) for i, node in enumerate(path.nodes)]
                mine = [self._belongs(self._of_edge(edge + i), tail) for i in range(len(path.edges))]
                paths += self._pieces(path, vertices, mine, tail)
                edge += len(path.edges)
            seen.update(name for path in paths for name in _names(path))
            waiting += [each for each in conjuncts(match.where) if self._says_of(each, tail)]
            if paths:
                where = all_hold(waiting, match.span)
                made.append(replace(match, patterns=tuple(paths), where=where))
                waiting = []
        missing = [ast.PathPattern((ast.NodePattern(ast.Variable(name)),), ()) for name in sorted(shared - seen)]
        if missing or waiting:
            last = made.pop() if made else replace(self._matches[-1], patterns=(), where=None)
            where = all_hold([*conjuncts(last.where), *waiting], last.span)
            made.append(replace(last, patterns=(*last.patterns, *missing), where=where))
        return made

    def _belongs(self, part: _Part | None, tail: _Part | None) -> bool:
        return part is tail if tail is not None else part is None or not part.is_tail

    def _says_of(self, condition: ast.Expression, tail: _Part | None) -> bool:
        names = free_variables(condition)
        parts = [self._of_edge(self._edges[name]) for name in names & self._edges.keys()]
        parts += [self._part(name) for name in names - self._edges.keys()]
        of = next((part for part in parts if part is not None and part.is_tail), None)
        return of is tail

    def _pieces(
        self, path: ast.PathPattern, vertices: Sequence[Vertex], mine: Sequence[bool], tail: _Part | None
    ) -> Iterator[ast.PathPattern]:
        """Yield the pieces of a path whose edges are a tail's, or of what is left, and vertices alone."""
        own = [self._belongs(self._part(vertex), tail) for vertex in vertices]
        begin = 0
        for i in range(len(path.nodes)):
            if i < len(mine) and mine[i]:
                continue
            nodes = [
                node if belongs else ast.NodePattern(node.variable)
                for node, belongs in zip(path.nodes[begin : i + 1], own[begin : i + 1], strict=True)
            ]
            if i > begin or (
                own[i] and (len(path.nodes) == 1 or path.nodes[i] != ast.NodePattern(path.nodes[i].variable))
            ):
                yield replace(path, nodes=tuple(nodes), edges=path.edges[begin:i])
            begin = i + 1


def _names(path: ast.PathPattern) -> Iterator[str]:
    return (node.variable.name for node in path.nodes if node.variable is not None)


def _times(part: object, times: ast.Expression) -> object:
    """Return an aggregate over rows each of which stands for a number of them; None for anything else."""
    if isinstance(part, SUBQUERIES):
        return part
    if isinstance(part, ast.CountStar):
        return ast.FunctionCall("sum", (times,), span=part.span)
    if not isinstance(part, ast.FunctionCall) or part.distinct or part.name.lower() not in ("count", "sum", "avg"):
        return None
    span, none, (of,) = part.span, ast.Literal(0, part.span), part.arguments
    case = ast.Case(None, (((ast.IsNull(of, span=span),), none),), times, span)
    number = ast.FunctionCall("sum", (case,), span=span)
    if part.name.lower() == "count":
        return number
    total = ast.FunctionCall("sum", (ast.Binary("*", of, times, span),), span=span)
    if part.name.lower() == "sum":
        return total
    mean = ast.Binary("/", ast.FunctionCall("toFloat", (total,), span=span), number, span)
    return ast.Case(None, (((ast.Comparison(("=",), (number, none), span),), ast.Literal(None, span)),), mean, span)
