"""Patterns: the variables that they bring in, what those may be, and the conditions inside."""

from __future__ import annotations

from collections.abc import Iterator

from graphdb.common.errors import BindError, TypeMismatchError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.labels import admits_literals
from graphdb.semantics.expressions import Expressions
from graphdb.semantics.types import ANY, EDGE, NUMBER, NUMBERS, OPEN, PATH, VERTEX, Scope, Static, list_of


def names_of(pattern: ast.PathPattern) -> Iterator[str]:
    """Yield the variables that a path pattern names, in order."""
    for i, node in enumerate(pattern.nodes):
        if node.variable is not None:
            yield node.variable.name
        if i < len(pattern.edges):
            edge = pattern.edges[i]
            if isinstance(edge, ast.Subpath):
                yield from names_of(edge.pattern)
            elif edge.variable is not None:
                yield edge.variable.name
    if pattern.variable is not None:
        yield pattern.variable.name


class Patterns(Expressions):
    """Checks patterns."""

    _brings_labels = False
    """Whether the statement can bring labels into the graph: then a name that nothing has is no mistake."""

    def match(self, clause: ast.MatchClause, scope: Scope) -> None:
        """Check a MATCH clause, and bring in its variables."""
        edges: set[str] = set()
        for pattern in clause.patterns:
            if pattern.variable is not None and pattern.variable.name in list(names_of(pattern))[:-1]:
                raise self.error(BindError, f"'{pattern.variable.name}' is there already", pattern.variable)
        for pattern in clause.patterns:
            self._elements(pattern, scope, edges)
        for pattern in clause.patterns:
            if pattern.variable is not None:
                self.new(pattern.variable, scope)
                scope[pattern.variable.name] = PATH
        for pattern in clause.patterns:
            self._conditions(pattern, scope)
        for pattern in clause.patterns:
            if pattern.cost is not None:
                self._cost(pattern, pattern.cost, scope)
        if clause.where is not None:
            self.condition(clause.where, scope)

    def _elements(self, pattern: ast.PathPattern, scope: Scope, edges: set[str], group: bool = False) -> None:
        """Bring in the variables of a pattern."""
        literals = self._literal_ends(pattern)
        for i, node in enumerate(pattern.nodes):
            if node.variable is None:
                continue
            name = node.variable.name
            known = scope.get(name)
            wanted = list_of(VERTEX) if group else VERTEX
            if known is not None and known.base not in ("any", "null", wanted.base):
                raise self.error(BindError, f"'{name}' is {known}, not {wanted}", node.variable)
            scope[name] = ANY if i in literals and not group else wanted
        for edge in pattern.edges:
            repeated = group or edge.repeat is not None
            if isinstance(edge, ast.Subpath):
                self._elements(edge.pattern, scope, edges, repeated)
                continue
            if edge.variable is None:
                continue
            name = edge.variable.name
            wanted = list_of(EDGE) if repeated else EDGE
            known = scope.get(name)
            if name in edges:
                raise self.error(BindError, f"edge '{name}' stands twice in one pattern", edge.variable)
            if known is not None and known.base not in ("any", "null", wanted.base):
                raise self.error(BindError, f"'{name}' is {known}, not {wanted}", edge.variable)
            if known is not None and (known.element or ANY).base not in ("any", "null", "edge"):
                raise self.error(BindError, f"'{name}' is no list of edges", edge.variable)
            edges.add(name)
            scope[name] = wanted

    def _literal_ends(self, pattern: ast.PathPattern) -> set[int]:
        """Return the vertices of a pattern, by number, that can be literals: what they are only the data tells."""
        found = set()
        for i, edge in enumerate(pattern.edges):
            if isinstance(edge, ast.EdgePattern) and admits_literals(edge.labels, self.names, self.text):
                found |= {i + (edge.direction is not ast.Direction.IN)}
                found |= {i, i + 1} if edge.direction is ast.Direction.BOTH else set()
        return found

    def labels(self, labels: ast.LabelExpression, type: Static) -> None:
        """Check the names of a condition on labels, where the statement itself cannot have brought them."""
        resolve = {"vertex": self.names.vertex_label, "edge": self.names.edge_label}.get(type.base)
        if resolve is not None and not self._brings_labels:
            for part in walk(labels):
                if isinstance(part, ast.LabelChain):
                    for words in self.names.chains(part.words):
                        resolve(words, self.text)

    def _conditions(self, pattern: ast.PathPattern, scope: Scope) -> None:
        """Check the conditions inside a pattern; what is repeated is single there."""
        for element in (*pattern.nodes, *pattern.edges):
            inner = scope
            if isinstance(element, ast.Subpath):
                inner = {**scope, **dict.fromkeys(names_of(element.pattern), ANY)}
                self._conditions(element.pattern, inner)
            elif isinstance(element, ast.EdgePattern) and element.repeat is not None and element.variable is not None:
                inner = {**scope, element.variable.name: EDGE}
            if not isinstance(element, ast.Subpath) and element.properties is not None:
                for _, value in element.properties.items:
                    self.no_aggregate(value)
                    self.type_of(value, inner)
            if element.where is not None:
                self.condition(element.where, inner)

    def _cost(self, pattern: ast.PathPattern, cost: ast.Cost, scope: Scope) -> None:
        """Check what an edge of a path costs, and bring in the name of the whole."""
        (edge,) = pattern.edges
        inner = dict(scope)
        if isinstance(edge, ast.Subpath):
            nodes, edges = edge.pattern.nodes, edge.pattern.edges
            inner |= {node.variable.name: VERTEX for node in nodes if node.variable is not None}
            (edge,) = edges
        assert isinstance(edge, ast.EdgePattern)
        if edge.variable is not None:
            inner[edge.variable.name] = EDGE
        self.no_aggregate(cost.expression)
        found = self.type_of(cost.expression, inner)
        if found.base not in (*NUMBERS, *OPEN):
            raise self.error(TypeMismatchError, f"a cost is a number, not {found}", cost.expression)
        if cost.variable is not None:
            self.new(cost.variable, scope)
            scope[cost.variable.name] = NUMBER

    def pattern(self, node: ast.PatternPredicate | ast.ShortestPath, scope: Scope) -> None:
        """Check a pattern as a condition, which brings in no variables."""
        for part in walk(node.pattern):
            if isinstance(part, ast.Variable) and part.name not in scope:
                hint = "a pattern in an expression cannot introduce variables; leave the name out"
                raise self.error(BindError, f"unknown variable '{part.name}'", part, hint)
        self._elements(node.pattern, dict(scope), set())
        self._conditions(node.pattern, scope)

    def comprehension(self, pattern: ast.PathPattern, scope: Scope) -> Scope:
        """Check the pattern of a comprehension; return the scope inside."""
        inner = dict(scope)
        self.match(ast.MatchClause((pattern,), span=pattern.span), inner)
        return inner
