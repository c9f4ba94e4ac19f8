"""What is wrong with a query before anything runs: unknown and conflicting variables, misplaced aggregates, types.

Types are those that follow from the text alone; what only the data decides is ``any`` and checked when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import BindError, GraphDBError, ParameterError, ParseError, TypeMismatchError, nearest
from graphdb.common.stopping import checked
from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import parts_of, walk
from graphdb.interpret.clauses import column_name
from graphdb.interpret.procedures import check_call
from graphdb.interpret.types import (
    ANY,
    EDGE,
    PATH,
    VERTEX,
    Scope,
    Static,
    StaticTypes,
    common,
    list_of,
)
from graphdb.pattern.bind import variables_in
from graphdb.sql.aggregates import aggregates_in, contains_aggregate, is_plain_key

if TYPE_CHECKING:
    from graphdb.interpret.context import Context


_BRINGING = (ast.CreateClause, ast.MergeClause, ast.SetClause)
"""Clauses that can bring labels into the graph."""


def check(query: ast.Query | ast.Composite, context: Context) -> None:
    """Raise the first error of a query; see the error classes for what can be wrong."""
    _Checker(context, query).query(query, {})


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


class _Checker:
    def __init__(self, context: Context, query: ast.Query | ast.Composite) -> None:
        self.context = context
        self._brings_labels = any(isinstance(part, _BRINGING) for part in walk(query))
        self.types = StaticTypes(context, self)

    def error(self, kind: type[GraphDBError], message: str, node: Any, hint: str | None = None) -> GraphDBError:
        return kind(message, text=self.context.text, position=node.span.start, hint=hint)

    # --- queries

    def query(self, query: ast.Query | ast.Composite, scope: Scope) -> None:
        parts = query.parts if isinstance(query, ast.Composite) else (query.clauses,)
        columns = [self.part(part, dict(scope)) for part in parts]
        for part, own in zip(parts[1:], columns[1:], strict=True):
            if own != columns[0]:
                raise self.error(ParseError, "the parts of a UNION return columns of different names", part[-1])

    def part(self, part: tuple[ast.ClauseNode, ...], scope: Scope) -> list[str]:
        for clause in checked(part, 8):
            match clause:
                case ast.MatchClause():
                    self.match(clause, scope)
                case ast.UnwindClause():
                    self.no_aggregate(clause.source)
                    found = self.types.of(clause.source, scope)
                    self.new(clause.variable, scope)
                    scope[clause.variable.name] = found.element or ANY if found.base == "list" else ANY
                case ast.WithClause():
                    self.projection(clause.returns, scope, clause)
                case ast.CallClause():
                    self.called(clause, scope)
                case ast.ProcedureClause():
                    check_call(self, clause, scope)
                case ast.ForeachClause():
                    self.no_aggregate(clause.source)
                    found = self.types.source(clause.source, scope)
                    self.new(clause.variable, scope)
                    self.part(clause.updates, {**scope, clause.variable.name: found})
                case ast.ReturnClause():
                    return self.projection(clause, scope, None)
                case ast.CreateClause():
                    for pattern in clause.patterns:
                        self.created(pattern, scope)
                case ast.MergeClause():
                    self.created(clause.pattern, scope, merged=True)
                    self.items((*clause.on_create, *clause.on_match), scope)
                case ast.SetClause():
                    self.items(clause.items, scope)
                case ast.RemoveClause():
                    self.removed(clause, scope)
                case ast.DeleteClause():
                    self.deleted(clause, scope)
        return []

    def called(self, clause: ast.CallClause, scope: Scope) -> None:
        """Check the query of a CALL, and bring in its columns."""
        for variable in clause.imported or ():
            if variable.name not in scope:
                self.unknown(variable, scope)
        names = scope if clause.imported is None else [variable.name for variable in clause.imported]
        columns: list[Scope] = []
        for part in clause.query.parts:
            inner = {name: scope[name] for name in names}
            self.part(part, inner)
            columns.append(inner)
            if list(inner) != list(columns[0]):
                raise self.error(ParseError, "the parts of a UNION return columns of different names", part[-1])
        for name in columns[0]:
            self.new(ast.Variable(name, clause.query.parts[0][-1].span), scope)
            scope[name] = common([column[name] for column in columns])

    def new(self, variable: ast.Variable, scope: Mapping[str, Static]) -> None:
        if variable.name in scope:
            raise self.error(BindError, f"'{variable.name}' is there already", variable)

    # --- patterns

    def match(self, clause: ast.MatchClause, scope: Scope) -> None:
        edges: set[str] = set()
        for pattern in clause.patterns:
            if pattern.variable is not None and pattern.variable.name in list(names_of(pattern))[:-1]:
                raise self.error(BindError, f"'{pattern.variable.name}' is there already", pattern.variable)
        for pattern in clause.patterns:
            self.elements(pattern, scope, edges)
        for pattern in clause.patterns:
            if pattern.variable is not None:
                self.new(pattern.variable, scope)
                scope[pattern.variable.name] = PATH
        for pattern in clause.patterns:
            self.conditions(pattern, scope)
        if clause.where is not None:
            self.condition(clause.where, scope)

    def elements(self, pattern: ast.PathPattern, scope: Scope, edges: set[str], group: bool = False) -> None:
        """Bring in the variables of a pattern."""
        literals = self.literal_ends(pattern)
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
                self.elements(edge.pattern, scope, edges, repeated)
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

    def literal_ends(self, pattern: ast.PathPattern) -> set[int]:
        """Return the vertices of a pattern, by number, that can be literals: what they are only the data tells."""
        found = set()
        for i, edge in enumerate(pattern.edges):
            if isinstance(edge, ast.EdgePattern) and self.context.admits_literals(edge.labels):
                found |= {i + (edge.direction is not ast.Direction.IN)}
                found |= {i, i + 1} if edge.direction is ast.Direction.BOTH else set()
        return found

    def labels(self, labels: ast.LabelExpression, type: Static) -> None:
        """Check the names of a condition on labels, where the statement itself cannot have brought them."""
        resolve = {"vertex": self.context.names.vertex_label, "edge": self.context.names.edge_label}.get(type.base)
        if resolve is not None and not self._brings_labels:
            for part in walk(labels):
                if isinstance(part, ast.LabelChain):
                    for words in self.context.names.chains(part.words):
                        resolve(words, self.context.text)

    def conditions(self, pattern: ast.PathPattern, scope: Scope) -> None:
        """Check the conditions inside a pattern; what is repeated is single there."""
        for element in (*pattern.nodes, *pattern.edges):
            inner = scope
            if isinstance(element, ast.Subpath):
                inner = {**scope, **dict.fromkeys(names_of(element.pattern), ANY)}
                self.conditions(element.pattern, inner)
            elif isinstance(element, ast.EdgePattern) and element.repeat is not None and element.variable is not None:
                inner = {**scope, element.variable.name: EDGE}
            if not isinstance(element, ast.Subpath) and element.properties is not None:
                for _, value in element.properties.items:
                    self.no_aggregate(value)
                    self.types.of(value, inner)
            if element.where is not None:
                self.condition(element.where, inner)

    def predicate(self, node: ast.PatternPredicate | ast.ShortestPath, scope: Scope) -> None:
        """Check a pattern as a condition, which brings in no variables."""
        for part in walk(node.pattern):
            if isinstance(part, ast.Variable) and part.name not in scope:
                hint = "a pattern in an expression cannot introduce variables; leave the name out"
                raise self.error(BindError, f"unknown variable '{part.name}'", part, hint)
        self.elements(node.pattern, dict(scope), set())
        self.conditions(node.pattern, scope)

    def no_value(self, node: ast.PatternPredicate) -> GraphDBError:
        """Return the error for a pattern where its paths seem to be meant, and not whether there are any."""
        hint = "it is a boolean where it has a name: (a)-->() AS x; its paths are those of [p = (a)-->() | p]"
        return self.error(ParseError, "a pattern cannot stand here as a value", node, hint)

    def comprehension(self, pattern: ast.PathPattern, scope: Scope) -> Scope:
        """Check the pattern of a comprehension; return the scope inside."""
        inner = dict(scope)
        self.match(ast.MatchClause((pattern,), span=pattern.span), inner)
        return inner

    # --- conditions and aggregates

    def condition(self, node: ast.Expression, scope: Scope) -> None:
        self.no_aggregate(node)
        self.types.condition(node, scope)

    def no_aggregate(self, node: ast.Expression) -> None:
        found = next(aggregates_in(node), None)
        if found is not None:
            raise self.error(ParseError, "an aggregate cannot stand here", found, "aggregate in WITH or RETURN first")

    def aggregates(self, node: ast.Expression) -> None:
        """Check the arguments of the aggregates in an expression."""
        for call in aggregates_in(node):
            for argument in getattr(call, "arguments", ()):
                inner = next(aggregates_in(argument), None)
                if inner is not None:
                    raise self.error(ParseError, "an aggregate cannot stand in another", inner)
                for part in walk(argument):
                    if isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE:
                        raise self.error(ParseError, "what is aggregated cannot be random", part)

    # --- projections

    def projection(self, clause: ast.ReturnClause, scope: Scope, with_: ast.WithClause | None) -> list[str]:
        if clause.star and not scope and with_ is None:
            raise self.error(BindError, "RETURN * needs a variable", clause)
        found: Scope = dict(scope) if clause.star else {}
        columns = sorted(scope) if clause.star else []
        for item in clause.items:
            self.aggregates(item.expression)
            if item.alias is None and isinstance(item.expression, ast.PatternPredicate):
                raise self.no_value(item.expression)
            type = self.types.of(item.expression, scope)
            if with_ is not None and item.alias is None and not isinstance(item.expression, ast.Variable):
                raise self.error(ParseError, "WITH needs a name for an expression", item, "add AS name")
            name = column_name(item)
            if name in columns:
                raise self.error(BindError, f"two columns are called '{name}'", item, "add AS …")
            found[name] = type
            columns.append(name)
        expressions = [item.expression for item in clause.items]
        aggregated = any(map(contains_aggregate, expressions))
        keys: list[ast.Expression] = [e for e in expressions if not contains_aggregate(e)]
        if clause.star:
            keys += [ast.Variable(name) for name in scope]
        if aggregated:
            for expression in expressions:
                if contains_aggregate(expression):
                    self.grouped(expression, keys)
        hidden = aggregated or clause.distinct
        for order in clause.order_by:
            self.order(order, clause, scope, found, keys, aggregated, hidden)
        for bound, word in ((clause.skip, "SKIP"), (clause.limit, "LIMIT")):
            if bound is not None:
                self.window(bound, word)
        if with_ is not None and with_.where is not None:
            self.condition(with_.where, found if hidden else {**scope, **found})
        scope.clear()
        scope.update(found)
        return columns

    def grouped(self, expression: ast.Expression, keys: Sequence[ast.Expression]) -> None:
        loose = self.loose(expression, [key for key in keys if is_plain_key(key)], set())
        if loose is not None:
            raise self.error(
                BindError,
                f"'{loose.name}' stands beside an aggregate but is no grouping key",
                loose,
                "return it as a column of its own",
            )

    def loose(self, node: object, keys: Sequence[ast.Expression], local: set[str]) -> ast.Variable | None:
        """Return the first variable that is neither aggregated nor part of a grouping key."""
        if isinstance(node, ast.CountStar) or (not isinstance(node, (str, tuple)) and node in keys):
            return None
        if isinstance(node, ast.FunctionCall) and next(aggregates_in(node), None) is node:
            return None
        if isinstance(node, ast.Variable):
            return None if node.name in local else node
        if isinstance(node, (ast.ListComprehension, ast.ListPredicate)):
            local = local | {node.variable.name}
        if isinstance(node, ast.Reduce):
            local = local | {node.variable.name, node.accumulator.name}
        if isinstance(node, (ast.PatternComprehension, ast.Subquery, ast.PatternPredicate)):
            return None
        for part in parts_of(node):
            found = self.loose(part, keys, local)
            if found is not None:
                return found
        return None

    def order(
        self,
        order: ast.OrderItem,
        clause: ast.ReturnClause,
        scope: Scope,
        found: Scope,
        keys: list[ast.Expression],
        aggregated: bool,
        hidden: bool,
    ) -> None:
        expression = order.expression
        returned = [item.expression for item in clause.items]
        if not aggregated:
            self.no_aggregate(expression)
        if expression in returned:
            return
        self.aggregates(expression)
        if not hidden:
            self.types.of(expression, {**scope, **found})
            return
        # After DISTINCT and aggregates only what is returned is there: as a column, or as the same expression.
        visible = {**scope, **found} if aggregated else found
        for part in walk(expression):
            if isinstance(part, ast.Variable) and part.name not in {**scope, **found}:
                self.unknown(part, found)
        computed = set(aggregates_in(tuple(returned)))
        for call in aggregates_in(expression):
            if call not in computed:
                raise self.error(BindError, "this aggregate is not returned, and so cannot be sorted by", call)
        if contains_aggregate(expression):
            self.grouped(expression, [*keys, *(ast.Variable(name) for name in found)])
        else:
            loose = self.loose(expression, [*returned, *(ast.Variable(name) for name in found)], set())
            if loose is not None:
                raise self.error(
                    BindError,
                    f"'{loose.name}' cannot be sorted by: after DISTINCT and aggregates only returned columns can",
                    loose,
                    "return it, or sort by a column's alias",
                )
        self.types.of(expression, {**scope, **visible})

    def window(self, bound: ast.Expression, word: str) -> None:
        self.no_aggregate(bound)
        names = variables_in(bound)
        if names:
            raise self.error(ParseError, f"{word} needs a number that does not depend on the rows", bound)
        type = self.types.of(bound, {})
        if type.base not in ("integer", "any", "null", "number"):
            raise self.error(TypeMismatchError, f"{word} needs a number of rows, found {type}", bound)
        if isinstance(bound, ast.Literal) and isinstance(bound.value, int) and bound.value < 0:
            raise self.error(ParameterError, f"{word} needs a number of rows, 0 or more, found {bound.value}", bound)

    def unknown(self, variable: ast.Variable, scope: Mapping[str, Static]) -> None:
        near = nearest(variable.name, scope)
        hint = f"did you mean '{near[0]}'?" if near else None
        raise self.error(BindError, f"unknown variable '{variable.name}'", variable, hint)

    # --- writing

    def created(self, pattern: ast.PathPattern, scope: Scope, merged: bool = False) -> None:
        word = "MERGE" if merged else "CREATE"
        if pattern.mode is not None or pattern.selector is not None:
            raise self.error(ParseError, f"{word} takes a plain path", pattern)
        before = dict(scope)
        for node in pattern.nodes:
            if node.where is not None or node.iri is not None:
                raise self.error(ParseError, f"{word} takes labels and properties only", node)
            if node.labels is not None and not isinstance(node.labels, (ast.LabelChain, ast.LabelAnd)):
                raise self.error(ParseError, f"{word} takes labels, not conditions on them", node.labels)
            self.values(node.properties, before if not merged else scope)
            if node.variable is None:
                continue
            name = node.variable.name
            if name in scope:
                bare = node.labels is None and node.properties is None
                if scope[name].base not in ("vertex", "any", "null"):
                    raise self.error(BindError, f"'{name}' is {scope[name]}, not a vertex", node.variable)
                if not bare or (not pattern.edges and name in before):
                    raise self.error(BindError, f"'{name}' is there already", node.variable)
            scope[name] = VERTEX
        for edge in pattern.edges:
            if isinstance(edge, ast.Subpath) or edge.repeat is not None:
                raise self.error(ParseError, f"{word} needs edges one by one", edge)
            if edge.direction is ast.Direction.BOTH and not merged:
                raise self.error(ParseError, "CREATE needs a direction", edge, "write --> or <--")
            if not isinstance(edge.labels, ast.LabelChain) or len(self.context.names.chains(edge.labels.words)) != 1:
                raise self.error(ParseError, f"{word} needs one label for an edge", edge, "write -[:label]->")
            if edge.where is not None:
                raise self.error(ParseError, f"{word} takes labels and properties only", edge)
            self.values(edge.properties, before if not merged else scope)
            if edge.variable is not None:
                self.new(edge.variable, scope)
                scope[edge.variable.name] = EDGE
        if pattern.variable is not None:
            self.new(pattern.variable, scope)
            scope[pattern.variable.name] = PATH

    def values(self, properties: ast.MapLiteral | None, scope: Scope) -> None:
        for _, value in properties.items if properties is not None else ():
            self.no_aggregate(value)
            self.types.of(value, scope)

    def items(self, items: Sequence[ast.SetItem | ast.LabelItem], scope: Scope) -> None:
        for item in items:
            if isinstance(item, ast.SetItem):
                self.types.of(item.value, scope)
                self.no_aggregate(item.value)
                if not isinstance(item.target, (ast.Property, ast.Variable, ast.Subscript)):
                    raise self.error(ParseError, "SET needs a property or a variable", item.target)
            self.types.of(item.target, scope)

    def removed(self, clause: ast.RemoveClause, scope: Scope) -> None:
        for item in clause.items:
            target = item.target if isinstance(item, ast.LabelItem) else item
            if not isinstance(item, ast.LabelItem) and not isinstance(item, (ast.Property, ast.Subscript)):
                raise self.error(ParseError, "REMOVE needs a property or a label", item)
            self.types.of(target, scope)

    def deleted(self, clause: ast.DeleteClause, scope: Scope) -> None:
        for value in clause.values:
            if isinstance(value, ast.LabelPredicate):
                raise self.error(ParseError, "a label cannot be deleted", value, "to take it off: REMOVE n:Label")
            self.no_aggregate(value)
            type = self.types.of(value, scope)
            if type.base not in ("vertex", "edge", "path", "any", "null"):
                raise self.error(TypeMismatchError, f"DELETE needs a vertex, an edge or a path, found {type}", value)
