"""The oracle of whole queries: the rows of a syntax tree, by plain Python, clause after clause and row after row.

It knows the engine's grammar and nothing else of it: patterns are matched by :mod:`tests.oracle.walks`, over all walks,
expressions are computed by :mod:`tests.oracle.reference_values`.  What it does not know it says by ``Unclear``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdb.grammar import syntax as ast
from tests.oracle import walks
from tests.oracle.reference_values import (
    AGGREGATES,
    Unclear,
    Vertex,
    aggregate,
    arithmetic,
    compare,
    conjunction,
    contained,
    disjunction,
    distinct,
    equal,
    exclusive,
    function,
    identity,
    item,
    negated,
    piece,
    quantified,
    text_predicate,
)
from tests.oracle.walks import Row


@dataclass(frozen=True)
class PropertyGraph(walks.Graph):
    """A graph whose vertices and edges have properties: of a vertex by its number, of an edge by its ``k``."""

    vertex_facts: tuple[Mapping[str, Any], ...] = ()
    edge_facts: tuple[Mapping[str, Any], ...] = ()

    def facts(self, element: Any) -> Mapping[str, Any]:
        if isinstance(element, walks.Edge):
            return self.edge_facts[element.k]
        if isinstance(element, Vertex):
            return self.vertex_facts[element]
        raise Unclear(f"a property of {element!r}")

    def labels_of(self, element: Any) -> str:
        return element.label if isinstance(element, walks.Edge) else self.labels[element]


@dataclass(frozen=True)
class _Node(walks.Node):
    """A vertex of a pattern, with all that the pattern asks of it."""

    test: Callable[[int], bool] = lambda _: True

    def admits(self, graph: walks.Graph, vertex: int) -> bool:
        return self.test(vertex)


@dataclass(frozen=True)
class _Link(walks.Link):
    """An edge of a pattern, with all that the pattern asks of it."""

    test: Callable[[walks.Edge], bool] = lambda _: True

    def from_(self, graph: walks.Graph, vertex: int) -> Iterable[tuple[walks.Edge, int]]:  # type: ignore[override]
        return ((edge, end) for edge, end in super().from_(graph, vertex) if self.test(edge))


@dataclass
class Reference:
    """Queries over one graph with some parameters; ``effort`` is what the query may still take."""

    graph: PropertyGraph
    parameters: Mapping[str, Any] = field(default_factory=dict)
    effort: walks.Effort = field(default_factory=walks.Effort)

    def rows(self, query: ast.Query | ast.Composite, row: Row | None = None) -> list[Row]:
        """The rows of a query that sees the names of a row; without RETURN, what its clauses find."""
        parts = query.parts if isinstance(query, ast.Composite) else (query.clauses,)
        made = []
        for part in parts:
            found = [row or {}]
            for clause in part:
                found = self._clause(clause, found)
            made += found
        if len(parts) > 1 and isinstance(query, ast.Composite) and not query.keeps_all:
            made = list({identity(one): one for one in made}.values())
        return made

    # --- clauses

    def _clause(self, clause: ast.ClauseNode, rows: list[Row]) -> list[Row]:
        self.effort.spend(len(rows))
        match clause:
            case ast.MatchClause():
                return [more for row in rows for more in self._match(clause, row)]
            case ast.UnwindClause(source, variable):
                return [{**row, variable.name: value} for row in rows for value in _as_list(self.value(source, row))]
            case ast.CallClause(query, imported, optional):
                return [more for row in rows for more in self._call(query, imported, optional, clause.columns, row)]
            case ast.WithClause(returns, where):
                before, found = self._project(returns, rows)
                if where is None:
                    return found
                seen = ({**old, **new} for old, new in zip(before, found, strict=True)) if before else found
                return [new for new, one in zip(found, seen, strict=True) if self.value(where, one) is True]
            case ast.ReturnClause():
                return self._project(clause, rows)[1]
        raise Unclear(type(clause).__name__)

    def _match(self, clause: ast.MatchClause, row: Row) -> list[Row]:
        mode = "" if clause.mode is ast.MatchMode.DIFFERENT_EDGES else clause.mode.value
        matched = walks.Clause(tuple(self._path(path, row) for path in clause.patterns), mode)
        vertices = {node.name for path in matched.paths for node in path.nodes}
        found = [
            {name: _shown(value, name in vertices) for name, value in one.items()}
            for one in walks.matches(self.graph, matched, row, self.effort)
        ]
        if clause.where is not None:
            found = [one for one in found if self.value(clause.where, one) is True]
        if not found and clause.optional:
            return [{**dict.fromkeys(matched.names), **row}]
        return found

    def _call(
        self,
        query: ast.Composite,
        imported: tuple[ast.Variable, ...] | None,
        optional: bool,
        columns: Iterable[str],
        row: Row,
    ) -> list[Row]:
        seen = row if imported is None else {name.name: row[name.name] for name in imported}
        found = self.rows(query, dict(seen))
        if not found and optional:
            found = [dict.fromkeys(columns)]
        return [{**row, **one} for one in found]

    def _project(self, returns: ast.ReturnClause, rows: list[Row]) -> tuple[list[Row], list[Row]]:
        """The rows before and after WITH or RETURN, one for one; none before where one row stands for several."""
        items = [(one.alias or one.text, one.expression) for one in returns.items]
        grouped = any(_aggregates(expression) for _, expression in items)
        if grouped:
            keys = [(name, expression) for name, expression in items if not _aggregates(expression)]
            groups: dict[Any, tuple[Row, list[Row]]] = {} if keys else {identity({}): ({}, [])}
            for row in rows:
                of = {name: self.value(expression, row) for name, expression in keys}
                groups.setdefault(identity(of), (of, []))[1].append(row)
            made = [
                {name: of[name] if name in of else self.value(expression, {**(own[0] if own else {}), **of}, own)
                 for name, expression in items}
                for of, own in groups.values()
            ]  # fmt: skip
        else:
            made = [
                {**(row if returns.star else {}), **{name: self.value(expression, row) for name, expression in items}}
                for row in rows
            ]
        before = [] if grouped or returns.distinct else rows
        if returns.distinct:
            made = distinct(made)
        paired = list(zip(before or made, made, strict=True))
        for order in reversed(returns.order_by):
            keyed = [(self.value(order.expression, {**old, **new}), (old, new)) for old, new in paired]
            absent = [pair for value, pair in keyed if value is None]
            there = sorted(
                ((_order(value), pair) for value, pair in keyed if value is not None),
                key=lambda one: one[0],
                reverse=order.descending,
            )
            paired = [pair for _, pair in there]
            paired = absent + paired if order.nulls_first else paired + absent
        skip, limit = (None if n is None else self.value(n, {}) for n in (returns.skip, returns.limit))
        paired = paired[skip or 0 :][:limit]
        return [old for old, _ in paired] if before else [], [new for _, new in paired]

    # --- patterns

    def _path(self, pattern: ast.PathPattern, row: Row) -> walks.Path:
        nodes = tuple(self._node(node, row) for node in pattern.nodes)
        selector = pattern.selector
        words = ""
        if selector is not None and selector.groups:
            words = f"SHORTEST {selector.count} GROUPS"
        elif selector is not None:
            words = f"{'SHORTEST' if selector.shortest else 'ANY'} {selector.count}"
        return walks.Path(
            nodes,
            tuple(self._piece(edge, row) for edge in pattern.edges),
            pattern.mode.value if pattern.mode else "",
            words,
            pattern.variable.name if pattern.variable else None,
        )

    def _node(self, node: ast.NodePattern, row: Row) -> _Node:
        name = node.variable.name if node.variable else None

        def test(number: int) -> bool:
            vertex = Vertex(number)
            if name in row and row[name] != vertex:
                return False
            return self._fits(node, name, vertex, row)

        return _Node(name, None, test)

    def _piece(self, edge: ast.EdgePattern | ast.Subpath, row: Row) -> walks.Piece:
        repeat = edge.repeat
        times = ("", 1, 1) if repeat is None else ("*", repeat.low, repeat.high)
        if isinstance(edge, ast.EdgePattern):
            return walks.Piece((self._link(edge, row),), *times)
        inner = edge.pattern
        if edge.where is not None or not all(isinstance(one, ast.EdgePattern) and one.single for one in inner.edges):
            raise Unclear("a part of a path")
        links = tuple(self._link(one, row) for one in inner.edges if isinstance(one, ast.EdgePattern))
        return walks.Piece(links, *times, tuple(self._node(node, row) for node in inner.nodes))

    def _link(self, edge: ast.EdgePattern, row: Row) -> _Link:
        name = edge.variable.name if edge.variable else None
        direction = {ast.Direction.OUT: "out", ast.Direction.IN: "in", ast.Direction.BOTH: "both"}[edge.direction]
        return _Link(direction, name, "", lambda one: self._fits(edge, name, one, row))

    def _fits(self, pattern: ast.NodePattern | ast.EdgePattern, name: str | None, element: Any, row: Row) -> bool:
        """Whether an element has the labels and properties that its pattern asks for, and its condition holds."""
        self.effort.spend()
        if pattern.labels is not None and not has_labels(pattern.labels, self.graph.labels_of(element)):
            return False
        facts = self.graph.facts(element)
        for key, expression in pattern.properties.items if pattern.properties else ():
            if equal(facts.get(key.text), self.value(expression, row)) is not True:
                return False
        seen = row if name is None else {**row, name: element}
        return pattern.where is None or self.value(pattern.where, seen) is True

    # --- expressions

    def value(self, node: ast.Expression, row: Row, group: list[Row] | None = None) -> Any:
        """The value of an expression for a row; aggregates are of the rows of ``group``."""
        self.effort.spend()

        def of(one: ast.Expression) -> Any:
            return self.value(one, row, group)

        def each(variable: ast.Variable, source: ast.Expression) -> list[Row] | None:
            values = of(source)
            return None if values is None else [{**row, variable.name: one} for one in _as_list(values)]

        match node:
            case ast.Literal(value):
                return list(value) if isinstance(value, tuple) else value
            case ast.Parameter(name):
                return self.parameters[name]
            case ast.Variable(name):
                return row[name]
            case ast.Property(base, key):
                owner = of(base)
                if isinstance(owner, dict):
                    return owner.get(key.text)
                return None if owner is None else self.graph.facts(owner).get(key.text)
            case ast.CountStar():
                assert group is not None
                return len(group)
            case ast.FunctionCall(name, arguments, unique) if name.lower() in AGGREGATES:
                assert group is not None
                values = [self.value(arguments[0], one) for one in group]
                values = [one for one in values if one is not None]
                return aggregate(name, distinct(values) if unique else values)
            case ast.FunctionCall("labels", (of_vertex,)):
                vertex = of(of_vertex)
                return None if vertex is None else list(self.graph.labels_of(vertex))
            case ast.FunctionCall(name, arguments):
                return function(name, [of(one) for one in arguments])
            case ast.Unary("NOT", operand):
                return negated(of(operand))
            case ast.Unary("-", operand):
                number = of(operand)
                return None if number is None else -number
            case ast.Binary(operator, left, right):
                return arithmetic(operator, of(left), of(right))
            case ast.Boolean(operator, operands):
                return {"AND": conjunction, "OR": disjunction, "XOR": exclusive}[operator](map(of, operands))
            case ast.Comparison(operators, operands):
                values = [of(one) for one in operands]
                return conjunction(map(compare, operators, values, values[1:]))
            case ast.StringPredicate(operator, left, right):
                return text_predicate(operator, of(left), of(right))
            case ast.In(one, collection):
                return contained(of(one), of(collection))
            case ast.IsNull(operand, is_not):
                return (of(operand) is None) != is_not
            case ast.ListLiteral(items):
                return [of(one) for one in items]
            case ast.MapLiteral(items):
                return {key.text: of(one) for key, one in items}
            case ast.LabelPredicate(operand, labels):
                element = of(operand)
                return None if element is None else has_labels(labels, self.graph.labels_of(element))
            case ast.Subscript(base, index):
                return item(of(base), of(index))
            case ast.Slice(base, start, end):
                bounds = [of(bound) for bound in (start, end) if bound is not None]
                if None in bounds:
                    return None
                return piece(of(base), [0 if start is None else of(start), 1000 if end is None else of(end)])
            case ast.Case(operand, branches, otherwise):
                for conditions, result in branches:
                    met = [of(one) if operand is None else equal(of(operand), of(one)) for one in conditions]
                    if True in met:
                        return of(result)
                return None if otherwise is None else of(otherwise)
            case ast.ListComprehension(variable, source, where, result):
                inner = each(variable, source)
                if inner is None:
                    return None
                inner = [one for one in inner if where is None or self.value(where, one) is True]
                return [self.value(result or variable, one) for one in inner]
            case ast.ListPredicate(quantifier, variable, source, where):
                inner = each(variable, source)
                return None if inner is None else quantified(
                    quantifier, [True if where is None else self.value(where, one) for one in inner]
                )  # fmt: skip
            case ast.Reduce(accumulator, start, variable, source, step):
                total, inner = of(start), each(variable, source)
                for one in inner or ():
                    total = self.value(step, {**one, accumulator.name: total})
                return None if inner is None else total
            case ast.PatternPredicate(pattern):
                return bool(self._match(ast.MatchClause((pattern,)), row))
            case ast.PatternComprehension(pattern, where, result):
                found = self._match(ast.MatchClause((pattern,), where=where), row)
                return [self.value(result, one) for one in found]
            case ast.Subquery(kind, query):
                found = self.rows(query, row)
                if kind.lower() == "collect":
                    return [next(iter(one.values())) for one in found]
                return len(found) if kind.lower() == "count" else bool(found)
        raise Unclear(type(node).__name__)


def has_labels(expression: ast.LabelExpression, labels: str) -> bool:
    """Whether a label expression holds of labels, each of which is a letter."""
    match expression:
        case ast.LabelChain(words):
            return all(word.text in labels for word in words)
        case ast.LabelAny():
            return bool(labels)
        case ast.LabelNot(operand):
            return not has_labels(operand, labels)
        case ast.LabelAnd(operands):
            return all(has_labels(one, labels) for one in operands)
        case ast.LabelOr(operands):
            return any(has_labels(one, labels) for one in operands)


def _as_list(value: Any) -> list[Any]:
    """What UNWIND and comprehensions go over: of null nothing."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Unclear(f"the items of {value!r}")
    return value


def _shown(value: Any, vertex: bool) -> Any:
    """What a pattern binds, as a value of the language."""
    if vertex and value is not None:
        return Vertex(value)
    return list(value) if isinstance(value, tuple) else value


def _order(value: Any) -> Any:
    """What rows are ordered by, among values of one type."""
    return value.encode() if isinstance(value, str) else value


def _aggregates(node: Any) -> bool:
    """Whether an expression has an aggregate outside subqueries."""
    if isinstance(node, ast.CountStar) or (isinstance(node, ast.FunctionCall) and node.name.lower() in AGGREGATES):
        return True
    if isinstance(node, (ast.Subquery, ast.PatternComprehension)):
        return False
    if isinstance(node, tuple):
        return any(map(_aggregates, node))
    names = getattr(type(node), "__dataclass_fields__", {})
    return isinstance(node, ast.Expression) and any(_aggregates(getattr(node, name)) for name in names)
