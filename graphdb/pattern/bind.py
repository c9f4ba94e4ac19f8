"""Binding names to ids: a query's MATCH clauses become one pattern graph, with each condition where it is tested.

A condition in WHERE is put where it costs least: on one vertex (it becomes a candidate set before the match), on the
structure (an inequality or an edge test inside the match), or after the match, in SQL (``residual``).  Nothing is
evaluated here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import GraphDBError, NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.failing import can_fail
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.graph import Clause, EdgeTest, PatternEdge
from graphdb.pattern.labels import check_labels, edge_labels, names_a_label
from graphdb.pattern.names import ABSENT, Names
from graphdb.storage.graph.derived.closure import closure_of
from graphdb.storage.graph.derived.edge_subset import EdgeSubset
from graphdb.storage.graph.pcsr import Direction

DIRECTIONS: dict[ast.Direction, Direction] = {
    ast.Direction.OUT: "out",
    ast.Direction.IN: "in",
    ast.Direction.BOTH: "both",
}
"""Written directions of edges as those of partitions."""

Failure = TypeVar("Failure", bound=GraphDBError)


@dataclass(slots=True)
class VertexInfo:
    """What is known of a pattern vertex: everything its candidates must fulfil."""

    name: str
    labels: list[ast.LabelExpression] = field(default_factory=list)
    iris: list[ast.Expression] = field(default_factory=list)
    """Constants that it must be: IRI literals, or the expression compared with ``iri(v)``."""
    conditions: list[ast.Expression] = field(default_factory=list)
    """Conditions on this vertex alone."""
    exists: list[ast.PatternPredicate] = field(default_factory=list)
    """Patterns that must match around it."""
    resource: bool = True
    """Whether it can be a resource."""
    kinds: int = 0
    """The kinds of literals that it can be, as a bit mask."""
    resources_only: bool = False
    """Whether an edge without a named label ends here, though a label that it admits has literals too."""


@dataclass(slots=True)
class Choice:
    """What a match, which binds triples, leaves open of a pattern edge: see
    :mod:`graphdb.relational.edges.parallel_edges`.
    """

    labels: tuple[int, ...]
    """The described labels that it admits: those of which an edge may have properties or parallel ones."""
    parallel: bool
    """Whether some triple of them may stand for several edges."""
    fulfil: NDArray[np.bool_] | None = None
    """bool [edges of these labels, as numbered]: which fulfil the conditions on this edge alone; None without any."""
    others: bool = True
    """Whether edges of other labels fulfil them."""
    words: str = ""
    """The conditions, for EXPLAIN."""
    subset: EdgeSubset | None = None
    """The edges that fulfil them as an edge label of their own, once a plan is made with it."""
    facts: dict[ast.Property, int] = field(default_factory=dict)
    """The properties of this edge that a query names, as expressions, with their keys: columns of the bindings."""
    _chosen: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = field(default=None, compare=False, repr=False)

    def fulfilling(self) -> NDArray[np.int64]:
        """Return the numbers of the edges that fulfil the conditions, of which there are some; they stay if few are."""
        fulfil = self.fulfil
        assert fulfil is not None
        if self._chosen is not None and self._chosen[0] is fulfil:
            return self._chosen[1]
        found = np.flatnonzero(fulfil)
        if found.nbytes <= fulfil.nbytes:
            self._chosen = fulfil, found
        return found


@dataclass(slots=True)
class BoundPattern:
    """All MATCH clauses of a query, bound."""

    vertices: list[VertexInfo] = field(default_factory=list)
    edges: list[PatternEdge] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    edge_tests: list[EdgeTest] = field(default_factory=list)
    edge_conditions: dict[int, list[ast.Expression]] = field(default_factory=dict)
    """Conditions on the label of one edge alone, by the edge's number: they choose among the labels it may take."""
    unequal: list[tuple[int, int]] = field(default_factory=list)
    residual: list[ast.Expression] = field(default_factory=list)
    """Conditions that are left for SQL over the bindings."""
    ensured: list[ast.Expression] = field(default_factory=list)
    """Conditions that hold of all bindings, since the match starts from the vertices of a list."""
    choices: dict[int, Choice] = field(default_factory=dict)
    """What the match leaves open, by the edge's number."""
    differ: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of edges that must bind different edges, though they may bind the same triple."""
    vertex_of: dict[str, int] = field(default_factory=dict)
    """Named vertices, in the order of their first appearance."""
    edge_of: dict[str, int] = field(default_factory=dict)
    """Named edges."""

    @property
    def variables(self) -> list[str]:
        """All names that the user gave."""
        return [*self.vertex_of, *self.edge_of]


def bind(
    matches: tuple[ast.MatchClause, ...], names: Names, text: str, given: Collection[str] | None = None
) -> BoundPattern:
    """Bind the MATCH clauses of a query, whose scopes have been checked.

    ``given`` are the names that the rows have which the match starts from: those that it names too are resources
    there, and a condition that names others is left for SQL.
    """
    binder = _Binder(names, text, given)
    for clause in matches:
        binder.clause(clause)
    return binder.finish()


def conjuncts(condition: ast.Expression | None) -> Iterator[ast.Expression]:
    """Yield the parts of a condition that must all hold."""
    if isinstance(condition, ast.Boolean) and condition.operator == "AND":
        for operand in condition.operands:
            yield from conjuncts(operand)
    elif condition is not None:
        yield condition


def is_edge_test(condition: ast.Expression) -> bool:
    """Whether a condition is that two vertices have an edge between them, or have none: the match tests that."""
    if isinstance(condition, ast.Unary) and condition.operator == "NOT":
        condition = condition.operand
    if not isinstance(condition, ast.PatternPredicate) or len(condition.pattern.edges) != 1:
        return False
    (edge,), nodes = condition.pattern.edges, condition.pattern.nodes
    bare = isinstance(edge, ast.EdgePattern) and edge.variable is None and edge.properties is None
    bare = bare and edge.where is None and edge.single
    return bare and all(node.variable and node == ast.NodePattern(node.variable) for node in nodes)


def variables_in(node: object) -> set[str]:
    """Return the names of all variables in a piece of syntax, those in patterns included."""
    return {part.name for part in walk(node) if isinstance(part, ast.Variable)}


def edge_names(match: ast.MatchClause) -> set[str]:
    """Return the names of the edges in a MATCH clause."""
    edges = (part for part in walk(match.patterns) if isinstance(part, ast.EdgePattern))
    return {edge.variable.name for edge in edges if edge.variable is not None}


def _asks_label_only(condition: ast.Expression, edge: str) -> bool:
    """Whether nothing of an edge but its label decides a condition: ``type(e) STARTS WITH 'a'``, ``e:knows``."""
    uses, of_label = 0, 0
    for part in walk(condition):
        match part:
            case ast.Variable():
                uses += part.name == edge
            case ast.FunctionCall(arguments=(ast.Variable(name=name),)) if part.name.lower() in _OF_LABEL:
                of_label += name == edge
            case ast.LabelPredicate(operand=ast.Variable(name=name)):
                of_label += name == edge
    return uses == of_label


_OF_LABEL = frozenset({"type", "iri", "predicate"})
"""Functions of an edge that look at its label alone."""


def property_conditions(subject: ast.Variable, properties: ast.MapLiteral | None) -> list[ast.Expression]:
    """Return ``{key: value}`` of a vertex or edge as conditions."""
    if properties is None:
        return []
    return [
        ast.Comparison(("=",), (ast.Property(subject, key, key.span), value), ast.Span(key.span.start, value.span.end))
        for key, value in properties.items
    ]


MOST = 128
"""Vertices, and edges, that one pattern may have: the time of planning grows with the square of these."""


class Sizes:
    """How many vertices and edges the patterns of MATCH clauses have together, one clause after the other."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._unnamed = 0
        self._edges = 0

    def add(self, match: ast.MatchClause) -> int:
        """Add a clause; return the number of vertices, or of edges if those are more."""
        for path in match.patterns:
            self._add(path)
        return max(len(self._names) + self._unnamed, self._edges)

    def _add(self, path: ast.PathPattern) -> None:
        for node in path.nodes:
            if node.variable is None:
                self._unnamed += 1
            else:
                self._names.add(node.variable.name)
        for edge in path.edges:
            if isinstance(edge, ast.Subpath):
                self._add(edge.pattern)
            else:
                self._edges += 1


def size_of(*matches: ast.MatchClause) -> int:
    """Return how many vertices the patterns of MATCH clauses have together, or edges if those are more."""
    sizes = Sizes()
    return max((sizes.add(match) for match in matches), default=0)


class _Binder:
    def __init__(self, names: Names, text: str, given: Collection[str] | None) -> None:
        self.names = names
        self.text = text
        self.given = given
        self.bound = BoundPattern()
        self._conditions: list[ast.Expression] = []
        self._clause_vertices: list[int] = []
        self._clause_edges: set[str] = set()

    # --- patterns

    def clause(self, clause: ast.MatchClause) -> None:
        self._clause_vertices, self._clause_edges = [], set()
        where: list[ast.Expression] = []
        for path in clause.patterns:
            where += self._path(path)
            if max(len(self.bound.vertices), len(self.bound.edges)) > MOST:
                hint = "match parts of it in several MATCH clauses"
                raise self._error(NotSupportedError, f"a pattern of more than {MOST} vertices or edges", path, hint)
        where += conjuncts(clause.where)
        self._conditions += where
        self.bound.clauses.append(Clause(clause.mode, tuple(dict.fromkeys(self._clause_vertices))))

    def _path(self, path: ast.PathPattern) -> list[ast.Expression]:
        where: list[ast.Expression] = []
        ends = []
        for node in path.nodes:
            vertex = self._node(node)
            ends.append(vertex)
            if node.properties is not None:
                subject = node.variable or ast.Variable(self.bound.vertices[vertex].name, node.span)
                where += property_conditions(subject, node.properties)
            if node.where is not None:
                where += conjuncts(node.where)
        for edge, left, right in zip(path.edges, ends, ends[1:], strict=False):
            assert isinstance(edge, ast.EdgePattern)
            name = self._edge(edge, left, right)
            if edge.properties is not None:
                where += property_conditions(edge.variable or ast.Variable(name, edge.span), edge.properties)
            if edge.where is not None:
                where += conjuncts(edge.where)
        return where

    def _node(self, node: ast.NodePattern) -> int:
        name = node.variable.name if node.variable else None
        if name is not None and name in self.bound.vertex_of:
            vertex = self.bound.vertex_of[name]
        else:
            vertex = self._new_vertex(name, node)
        self._clause_vertices.append(vertex)
        info = self.bound.vertices[vertex]
        if node.labels is not None:
            check_labels(node.labels, self.names, self.text)
            info.labels.append(node.labels)
        if node.iri is not None:
            info.iris.append(node.iri)
        return vertex

    def _new_vertex(self, name: str | None, node: ast.NodePattern) -> int:
        vertex = len(self.bound.vertices)
        info = VertexInfo(name or f"#{vertex}")
        if name is not None:
            self.bound.vertex_of[name] = vertex
        self.bound.vertices.append(info)
        return vertex

    def _edge(self, edge: ast.EdgePattern, left: int, right: int) -> str:
        name = edge.variable.name if edge.variable else None
        if name is not None:
            if name in self.bound.edge_of:
                raise self._error(
                    NotSupportedError, "an edge variable in several MATCH clauses is not supported yet", edge.variable
                )
            self.bound.edge_of[name] = len(self.bound.edges)
            self._clause_edges.add(name)
        source, target = (right, left) if edge.direction is ast.Direction.IN else (left, right)
        # Literals are reached by naming an edge label; "not knows" and "any" name none.
        if edge.labels is not None and not names_a_label(edge.labels):
            for end in (left, right):
                self.bound.vertices[end].resources_only = True
        name = name or f"#e{len(self.bound.edges)}"
        self.bound.edges.append(
            PatternEdge(
                name,
                source,
                target,
                self._labels(edge),
                edge.direction is not ast.Direction.BOTH,
                len(self.bound.clauses),
            )
        )
        return name

    def _labels(self, edge: ast.EdgePattern) -> tuple[int, ...] | None:
        """Return the edge labels that an edge may take; None for any."""
        if edge.closure is not None:
            return (edge.closure,)
        return None if edge.labels is None else edge_labels(edge.labels, self.names, self.text)

    # --- conditions

    def finish(self) -> BoundPattern:
        """Find the domains, then put every condition where it belongs."""
        for vertex in range(len(self.bound.vertices)):
            self._domain(vertex)
        for condition in self._conditions:
            if not self._place(condition):
                self.bound.residual.append(condition)
        return self.bound

    def _domain(self, vertex: int) -> None:
        """Find out whether a vertex can be a resource and which kinds of literals it can be."""
        info = self.bound.vertices[vertex]
        if self.given is not None and info.name in self.given:
            return
        kinds = -1
        if info.labels or info.iris or info.resources_only:
            kinds = 0
        for edge in self.bound.edges:
            if edge.labels is None or (edge.directed and edge.source == vertex):
                if vertex in (edge.source, edge.target):
                    kinds = 0
            elif vertex in (edge.source, edge.target):
                closures = any(closure_of(label) is not None for label in edge.labels)
                labels = [] if closures else [self.names.edge_labels[x] for x in edge.labels if x != ABSENT]
                mask = 0
                for label in labels:
                    mask |= label.kinds
                kinds &= mask
                if edge.directed and not closures and not any(label.resource_triples for label in labels):
                    info.resource = False
        info.kinds = max(kinds, 0)
        if not info.kinds:
            info.resource = True

    def _place(self, condition: ast.Expression) -> bool:
        """Put a condition into the pattern; False if only SQL after the match can test it."""
        if isinstance(condition, ast.PatternPredicate):
            return self._place_pattern(condition, negated=False)
        if isinstance(condition, ast.Unary) and condition.operator == "NOT":
            inner = condition.operand
            if isinstance(inner, ast.PatternPredicate):
                return self._place_pattern(inner, negated=True)
        if isinstance(condition, ast.LabelPredicate) and isinstance(condition.operand, ast.Variable):
            vertex = self._vertex(condition.operand)
            if vertex is not None and self._is_resource(vertex):
                check_labels(condition.labels, self.names, self.text)
                self.bound.vertices[vertex].labels.append(condition.labels)
                return True
        if isinstance(condition, ast.Comparison) and self._place_identity(condition):
            return True
        names = free_variables(condition)
        if len(names) != 1 or any(isinstance(part, SUBQUERIES) for part in walk(condition)):
            return False
        (name,) = names
        if name in self.bound.edge_of and _asks_label_only(condition, name):
            self.bound.edge_conditions.setdefault(self.bound.edge_of[name], []).append(condition)
            return True
        vertex = self._vertex(ast.Variable(name))
        if vertex is None or can_fail(condition, self.names, self.text):
            return False
        self.bound.vertices[vertex].conditions.append(condition)
        return True

    def _place_identity(self, condition: ast.Comparison) -> bool:
        """Place ``a <> b`` between vertices, ``a = <iri>`` and ``iri(a) = '…'``."""
        if len(condition.operators) != 1:
            return False
        (operator,), (left, right) = condition.operators, condition.operands
        a, b = self._vertex(left), self._vertex(right)
        if a is not None and b is not None and a != b and self._is_resource(a) and self._is_resource(b):
            if operator == "<>":
                self.bound.unequal.append((min(a, b), max(a, b)))
            return operator == "<>"
        if operator != "=":
            return False
        for one, other in ((left, right), (right, left)):
            vertex = self._vertex(one)
            if vertex is not None and isinstance(other, ast.IriLiteral):
                self.bound.vertices[vertex].iris.append(other)
                return True
            if isinstance(one, ast.FunctionCall) and one.name.lower() == "iri" and len(one.arguments) == 1:
                vertex = self._vertex(one.arguments[0])
                text = isinstance(other, ast.Literal) and isinstance(other.value, str)
                if vertex is not None and (text or isinstance(other, ast.Parameter)):
                    self.bound.vertices[vertex].iris.append(other)
                    return True
        return False

    def _place_pattern(self, predicate: ast.PatternPredicate, negated: bool) -> bool:
        path = predicate.pattern
        if not path.plain:
            return False
        named = [self._vertex(node.variable) if node.variable else None for node in path.nodes]
        if is_edge_test(predicate) and None not in named:
            (edge,) = path.edges
            assert isinstance(edge, ast.EdgePattern)
            left, right = named
            assert left is not None
            assert right is not None
            source, target = (right, left) if edge.direction is ast.Direction.IN else (left, right)
            labels = self._labels(edge)
            directed = edge.direction is not ast.Direction.BOTH
            self.bound.edge_tests.append(EdgeTest(source, target, labels, directed, negated))
            return True
        around = {vertex for vertex in named if vertex is not None}
        if not negated and len(around) == 1 and len(variables_in(predicate)) == 1:
            self.bound.vertices[around.pop()].exists.append(predicate)
            return True
        return False

    def _vertex(self, node: object) -> int | None:
        if not isinstance(node, ast.Variable):
            return None
        found = self.bound.vertex_of.get(node.name)
        if found is None and node.name.startswith("#"):  # an anonymous vertex, in a condition made from its pattern
            return next((i for i, info in enumerate(self.bound.vertices) if info.name == node.name), None)
        return found

    def _is_resource(self, vertex: int) -> bool:
        return not self.bound.vertices[vertex].kinds

    def _error(self, kind: type[Failure], message: str, node: object, hint: str | None = None) -> Failure:
        span: ast.Span = getattr(node, "span", ast.Span(0, 0))
        return kind(message, text=self.text, position=span.start, hint=hint)
