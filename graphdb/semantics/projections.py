"""WITH and RETURN: columns, aggregates, grouping keys, ORDER BY, SKIP and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

from graphdb.common.errors import BindError, NotSupportedError, ParameterError, ParseError, TypeMismatchError
from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import parts_of, walk
from graphdb.pattern.bind import variables_in
from graphdb.semantics.aggregation import aggregates_in, contains_aggregate, is_plain_key
from graphdb.semantics.patterns import Patterns
from graphdb.semantics.types import Scope

MOST_COLUMNS = 2048
"""Columns of a clause: DuckDB parses and binds all of them in one piece, which hears no timeout meanwhile."""


class Projections(Patterns):
    """Checks projections."""

    def _aggregates(self, node: ast.Expression) -> None:
        """Check the arguments of the aggregates in an expression."""
        for call in aggregates_in(node):
            for argument in getattr(call, "arguments", ()):
                inner = next(aggregates_in(argument), None)
                if inner is not None:
                    raise self.error(ParseError, "an aggregate cannot stand in another", inner)
                for part in walk(argument):
                    if isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE:
                        raise self.error(ParseError, "what is aggregated cannot be random", part)

    def projection(self, clause: ast.ReturnClause, scope: Scope, with_: ast.WithClause | None) -> list[str]:
        """Check RETURN or WITH, after which the scope is its columns; return their names."""
        if clause.star and not scope and with_ is None:
            raise self.error(BindError, "RETURN * needs a variable", clause)
        found: Scope = {name: scope[name] for name in sorted(scope)} if clause.star else {}
        self._refuse_wide(clause, len(found))
        for item in clause.items:
            self._aggregates(item.expression)
            if item.alias is None and isinstance(item.expression, ast.PatternPredicate):
                raise self.no_value(item.expression)
            type = self.type_of(item.expression, scope)
            if with_ is not None and item.alias is None and not isinstance(item.expression, ast.Variable):
                raise self.error(ParseError, "WITH needs a name for an expression", item, "add AS name")
            name = item.alias or item.text
            if name in found:
                raise self.error(BindError, f"two columns are called '{name}'", item, "add AS …")
            found[name] = type
        expressions = [item.expression for item in clause.items]
        aggregated = any(map(contains_aggregate, expressions))
        keys: list[ast.Expression] = [e for e in expressions if not contains_aggregate(e)]
        if clause.star:
            keys += [ast.Variable(name) for name in scope]
        if aggregated:
            for expression in expressions:
                if contains_aggregate(expression):
                    self._grouped(expression, keys)
        hidden = aggregated or clause.distinct
        for order in clause.order_by:
            self._order(order, clause, scope, found, keys, aggregated, hidden)
        for bound, word in ((clause.skip, "SKIP"), (clause.limit, "LIMIT")):
            if bound is not None:
                self._window(bound, word)
        if with_ is not None and with_.where is not None:
            self.condition(with_.where, found if hidden else {**scope, **found})
        scope.clear()
        scope.update(found)
        return list(found)

    def _refuse_wide(self, clause: ast.ReturnClause, variables: int) -> None:
        """Refuse more columns than :data:`MOST_COLUMNS`, of which ``*`` brings those of so many variables."""
        columns = variables + len(clause.items)
        if columns > MOST_COLUMNS:
            within = MOST_COLUMNS - variables
            raise self.error(
                NotSupportedError,
                f"a clause has at most {MOST_COLUMNS:,} columns, and here are {columns:,}",
                clause.items[within] if within >= 0 else clause,
                "return whole vertices, maps or lists, or ask in several queries",
            )

    def _grouped(self, expression: ast.Expression, keys: Sequence[ast.Expression]) -> None:
        loose = self._loose(expression, [key for key in keys if is_plain_key(key)], set())
        if loose is not None:
            raise self.error(
                BindError,
                f"'{loose.name}' stands beside an aggregate but is no grouping key",
                loose,
                "return it as a column of its own",
            )

    def _loose(self, node: object, keys: Sequence[ast.Expression], local: set[str]) -> ast.Variable | None:
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
            found = self._loose(part, keys, local)
            if found is not None:
                return found
        return None

    def _order(
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
        self._aggregates(expression)
        if not hidden:
            self.type_of(expression, {**scope, **found})
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
            self._grouped(expression, [*keys, *(ast.Variable(name) for name in found)])
        else:
            loose = self._loose(expression, [*returned, *(ast.Variable(name) for name in found)], set())
            if loose is not None:
                raise self.error(
                    BindError,
                    f"'{loose.name}' cannot be sorted by: after DISTINCT and aggregates only returned columns can",
                    loose,
                    "return it, or sort by a column's alias",
                )
        self.type_of(expression, {**scope, **visible})

    def _window(self, bound: ast.Expression, word: str) -> None:
        self.no_aggregate(bound)
        names = variables_in(bound)
        if names:
            raise self.error(ParseError, f"{word} needs a number that does not depend on the rows", bound)
        type = self.type_of(bound, {})
        if type.base not in ("integer", "any", "null", "number"):
            raise self.error(TypeMismatchError, f"{word} needs a number of rows, found {type}", bound)
        if isinstance(bound, ast.Literal) and isinstance(bound.value, int) and bound.value < 0:
            raise self.error(ParameterError, f"{word} needs a number of rows, 0 or more, found {bound.value}", bound)
