"""Compiles expressions to SQL: openCypher's operators, null semantics and types over DuckDB's.

The compiler returns a :class:`~graphdb.sql.value.SqlValue` for each expression.  This module compiles names, conditions
and calls; each kind of values has a module for its operators and functions (:mod:`~graphdb.sql.types.comparisons`,
:mod:`~graphdb.sql.types.numbers`, :mod:`~graphdb.sql.types.text`, :mod:`~graphdb.sql.types.lists` …).  A condition on a
multi-valued property is true if it is true for any of its values; where one value is needed, the property must have
just one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from graphdb.common.errors import NotSupportedError, TypeMismatchError, with_place
from graphdb.common.stopping import check_stop
from graphdb.common.values.types import BOOLEAN, NULL, Base, Type
from graphdb.functions.table import SIGNATURE_OF
from graphdb.grammar import syntax as ast
from graphdb.sql import aggregates, functions
from graphdb.sql.compiler import Compiler
from graphdb.sql.exact import TIMES
from graphdb.sql.joined import options, unified
from graphdb.sql.times import durations, in_zones, temporal
from graphdb.sql.types import comparisons, folds, lists, maps, membership, narrowing, numbers, text
from graphdb.sql.udf import compute
from graphdb.sql.value import SqlValue, as_list, bases_of

MOST_OPERANDS = 200
"""Operands of AND, OR or XOR in SQL: DuckDB plans more for seconds, cannot be interrupted, and refuses 1,000."""


class ExpressionCompiler(Compiler):
    """The whole compiler: names, conditions and calls here, the rest by the kind of values that it is of."""

    def _native(self, node: ast.Expression) -> SqlValue:
        check_stop()
        self.rows.noted.position = node.span.start
        found = self.scope.known.get(node)
        if found is not None:
            return as_list(found)
        method: Callable[[ast.Expression], SqlValue] | None = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is not None:
            return method(node)
        of_values = _COMPILED.get(type(node))
        if of_values is None:
            raise NotSupportedError("this expression is not supported in SQL", text=self.text, position=node.span.start)
        return of_values(self, node)

    def _computed(self, node: ast.Expression, type: Type | None) -> SqlValue:
        return compute(self, node, type)

    @property
    def aggregate_names(self) -> Collection[str]:
        """The names of the aggregates."""
        return aggregates.AGGREGATES

    def column(self, node: ast.Expression) -> SqlValue:
        """Return the SQL of any expression as a column of rows, which may hold a list of several types as a tuple."""
        return self.affordable(node, self._column(node))

    def _column(self, node: ast.Expression) -> SqlValue:
        if isinstance(node, ast.Variable) and node.name in self.scope.variables and node not in self.scope.known:
            found = self.scope.variables[node.name]
            return self.rows.shared(found) if found.shared else found
        if not isinstance(node, ast.ListLiteral) or node in self.scope.known:
            return self.anything(node)
        try:
            return lists.column(self, node)
        except (NotSupportedError, TypeMismatchError) as refused:
            return self.instead(refused, node)

    # --- leaves

    def _literal(self, node: ast.Literal) -> SqlValue:
        return self.constant(node.value, node)

    def _iriliteral(self, node: ast.IriLiteral) -> SqlValue:
        return self.rows.resource(node.iri)

    def _parameter(self, node: ast.Parameter) -> SqlValue:
        return self.constant(self.argument(node), node)

    def _variable(self, node: ast.Variable) -> SqlValue:
        found = self.scope.variables.get(node.name)
        if found is None:
            message = f"'{node.name}' is not in the scope of this SQL"
            raise NotSupportedError(message, text=self.text, position=node.span.start)
        return self.rows.shared(found) if found.shared else as_list(found)

    def _property(self, node: ast.Property) -> SqlValue:
        base, effects = self.collected(lambda: self.compile(node.base))
        if base.type.base not in (Base.EDGE, Base.NODE, Base.TERM):
            self.rows.note(effects)
        return self._property_of(base, node)

    def _property_of(self, base: SqlValue, node: ast.Property) -> SqlValue:
        if base.type.base is Base.EDGE:
            return self.rows.edge_value(base, self.rows.edges.key(node.key, self.names, self.text))
        if base.type.base in (Base.NODE, Base.TERM):
            return self.rows.value(base, self.names.property(node.key.words, self.text))
        if base.type.base is Base.NULL:
            return base
        if base.type.base is Base.CHOICE:
            return self._property_of_choice(base, node)
        if base.type.base is Base.MAP:
            return maps.entry(base, node.key.text)
        if base.type.base is Base.DURATION:
            return durations.part(self, base, node.key.text, node)
        if base.type.base in temporal.HAVE_PARTS:
            return in_zones.named_once(self, [base], lambda base: temporal.part(base, node.key.text, node))
        raise self.mismatch(f"{base.type} has no properties", node)

    def _property_of_choice(self, base: SqlValue, node: ast.Property) -> SqlValue:
        """Return a property of what only the rows say whether it has any."""
        found: list[tuple[str, SqlValue]] = []
        refused: list[str] = []
        for test, each in options(base):
            try:
                value = self._property_of(each, node)
            except TypeMismatchError as mismatch:
                place = with_place(mismatch.message, node.span.start, TypeMismatchError)
                refused.append(f"WHEN {test} THEN {self.rows.error(place)}")
                continue
            if value.many:
                raise NotSupportedError("a property with several values is not read of values of several types in SQL")
            found.append((test, self.handed_on(value)))
        if not found:
            raise self.mismatch(f"{base.type} has no properties", node)
        sql, type = unified([value for _, value in found])
        whens = [f"WHEN {test} THEN {each}" for (test, _), each in zip(found, sql, strict=True)]
        self.rows.noted.mistaken |= bool(refused)
        bases = bases_of([value for _, value in found])
        return SqlValue(f"CASE {' '.join([*refused, *whens])} END", type, bases=bases)

    # --- conditions

    def _boolean(self, node: ast.Boolean) -> SqlValue:
        if len(node.operands) > MOST_OPERANDS:
            shorter = _with_lists(node)
            if len(shorter.operands) > MOST_OPERANDS:
                message = f"more than {MOST_OPERANDS} conditions are computed in Python"
                raise NotSupportedError(message, text=self.text, position=node.span.start)
            node = shorter
        if node.operator == "XOR":
            result, *others = [f"({self.condition(operand)})" for operand in node.operands]
            for other in others:
                result = f"(({result}) <> {other})"
            return SqlValue(result, BOOLEAN)
        decisive = "FALSE" if node.operator == "AND" else "TRUE"
        first = self.truth(node.operands[0])
        result, can_fail = f"({first.sql})", first.can_fail
        for operand in node.operands[1:]:
            value = self.truth(operand)
            both = f"({result} {node.operator} ({value.sql}))"
            # DuckDB computes all operands of an AND for all rows, or none beside a constant FALSE; of a CASE, what is
            # asked for.
            can_fail |= value.can_fail
            if can_fail:
                both = f"(CASE WHEN {result} IS {decisive} THEN {decisive} ELSE {both} END)"
            result = both
        return SqlValue(result, BOOLEAN)

    def _unary(self, node: ast.Unary) -> SqlValue:
        if node.operator == "NOT":
            return SqlValue(f"(NOT ({self.condition(node.operand)}))", BOOLEAN)
        value = self.one(node.operand)
        if value.type.base is Base.DURATION:
            return durations.negative(self, value) if node.operator == "-" else value
        return numbers.signed(self, value, node)

    def _isnull(self, node: ast.IsNull) -> SqlValue:
        value = self.anything(node.operand)
        return SqlValue(f"({value.sql} IS {'NOT ' if node.negated else ''}NULL)", BOOLEAN)

    def _labelpredicate(self, node: ast.LabelPredicate) -> SqlValue:
        value = self.compile(node.operand)
        if value.type.base not in (Base.NODE, Base.TERM, Base.EDGE):
            raise self.mismatch(f"{value.type} has no labels", node)
        return SqlValue(self._labels(node.labels, value), BOOLEAN)

    def _labels(self, labels: ast.LabelExpression, element: SqlValue) -> str:
        """Return the SQL of whether a label expression holds for a vertex or an edge."""
        match labels:
            case ast.LabelAny():
                return "TRUE" if element.type.base is Base.EDGE else f"(len({self.rows.labels(element).sql}) > 0)"
            case ast.LabelNot():
                return f"(NOT {self._labels(labels.operand, element)})"
            case ast.LabelAnd() | ast.LabelOr():
                word = " AND " if isinstance(labels, ast.LabelAnd) else " OR "
                return f"({word.join(self._labels(operand, element) for operand in labels.operands)})"
            case ast.LabelChain():
                return f"({' AND '.join(self._has_label(element, name) for name in self.names.chains(labels.words))})"

    def _has_label(self, element: SqlValue, name: Sequence[ast.Word]) -> str:
        if element.type.base is Base.EDGE:
            return f"({element.sql}).label = {int(self.names.edge_label(name, self.text).id)}"
        return self.rows.has_label(element, self.names.under(self.names.vertex_label(name, self.text).id))

    # --- arithmetic and functions

    def _binary(self, node: ast.Binary) -> SqlValue:
        left, right = self.one(node.left), self.one(node.right)
        bases = {left.type.base, right.type.base}
        if Base.NULL in bases:
            return SqlValue("NULL", NULL)
        if node.operator == "||" and bases != {Base.LIST}:
            return text.concatenated(self, left, right, node)
        if node.operator in ("+", "||") and Base.LIST in bases:
            return lists.appended(self, left, right, node)
        if node.operator == "+" and Base.STRING in bases:
            return text.joined(self, left, right, node)
        if bases & {Base.DATE, Base.DURATION, *TIMES}:
            return durations.arithmetic(self, node.operator, left, right, node)
        return numbers.arithmetic(self, left, right, node)

    def _countstar(self, node: ast.CountStar) -> SqlValue:
        return aggregates.number_of_matches(self)

    def _functioncall(self, node: ast.FunctionCall) -> SqlValue:
        name = node.name.lower()
        signature = SIGNATURE_OF[name]
        if signature.aggregate:
            try:
                value = self._with_effects(lambda: aggregates.AGGREGATES[name](self, node))
            except (NotSupportedError, TypeMismatchError) as refused:
                if isinstance(refused, TypeMismatchError) and self.anything(node.arguments[0]).many:
                    raise
                value = self._with_effects(lambda: aggregates.gathered(self, node))
            if value.volatile:
                raise NotSupportedError("what is aggregated cannot be random", text=self.text, position=node.span.start)
            return value
        form = functions.FORMS.get(signature.key)
        if form is None:
            message = f"SQL does not compute {node.name}"
            raise NotSupportedError(message, text=self.text, position=node.span.start)
        return form(self, node)


def _with_lists(node: ast.Boolean) -> ast.Boolean:
    """Return an OR in which ``x = 1 OR x = 2 …`` is ``x IN [1, 2, …]``."""
    listed: dict[tuple[ast.Expression, type], list[Any]] = {}
    operands: list[ast.Expression] = []
    for operand in node.operands if node.operator == "OR" else ():
        match operand:
            case ast.Comparison(("=",), (one, ast.Literal(value))) if type(value) in (int, str):
                listed.setdefault((one, type(value)), []).append(value)
            case _:
                operands.append(operand)
    if not listed:
        return node
    operands += (ast.In(one, ast.Literal(tuple(values)), node.span) for (one, _), values in listed.items())
    return ast.Boolean(node.operator, tuple(operands), node.span)


_COMPILED = {
    **comparisons.COMPILED,
    **text.COMPILED,
    **lists.COMPILED,
    **membership.COMPILED,
    **folds.COMPILED,
    **maps.COMPILED,
    **narrowing.COMPILED,
}
"""How the kinds of expressions compile that other modules compile."""
