"""Expressions to Python closures: what an expression yields for one row, with openCypher's null semantics.

A row maps names to values.  Names that begin with ``#`` are the engine's own, as those of inputs that SQL finds:
columns, aggregates, and the results of subqueries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphdb.common import regex
from graphdb.common.errors import BindError, ExecutionError, NotSupportedError, ParameterError
from graphdb.common.stopping import check_stop
from graphdb.common.values.temporal import DateTime, Duration, LocalDateTime, Temporal, exact
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.evaluate.builtins import lists
from graphdb.evaluate.builtins import scalar as functions
from graphdb.evaluate.builtins.arithmetic import computed, fits, negated
from graphdb.evaluate.context import Row
from graphdb.evaluate.evaluator import Evaluate, Evaluator
from graphdb.evaluate.values import (
    NARROWED,
    Answer,
    Edge,
    Several,
    Vertex,
    any_of,
    decided,
    equals,
    is_number,
    less,
    type_name,
)
from graphdb.functions.table import did_you_mean
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import SUBQUERIES
from graphdb.sql.times import temporal

_COMPILED: dict[type, Callable[[Any, Any], Evaluate]] = {}
"""How each kind of expression compiles that has come up."""


class Compiler(Evaluator):
    """Compiles expressions; names are checked before (:mod:`graphdb.semantics.check`)."""

    def compile(self, node: ast.Expression) -> Evaluate:
        """Return the function from a row to the expression's value."""
        if type(node) is ast.Parameter:
            return self._parameter(node)
        check_stop()
        if isinstance(node, SUBQUERIES):
            return self.context.subqueries.value_of(node)
        kind = type(node)
        make = _COMPILED.get(kind)
        if make is None:
            make = _COMPILED[kind] = lists.COMPILED.get(kind) or getattr(Compiler, "_" + kind.__name__.lower())
        return make(self, node)

    def _operand(self, node: ast.Expression) -> Evaluate:
        """Return the function to what arithmetic takes: a literal by its value; items of lists are not looked at."""
        read = self.compile(node)
        if isinstance(node, ast.Literal | ast.Property | ast.Variable):
            return read
        valued = self.context.valued

        def operand(row: Row) -> Any:
            value = read(row)
            return valued(value) if isinstance(value, Vertex) else value

        return operand

    # --- leaves

    def _literal(self, node: ast.Literal) -> Evaluate:
        value: Any = list(node.value) if isinstance(node.value, tuple) else node.value
        return lambda row: value

    def _iriliteral(self, node: ast.IriLiteral) -> Evaluate:
        found = self.context.resource(node.iri)
        return lambda row: found

    def _parameter(self, node: ast.Parameter) -> Evaluate:
        arguments = self.context.arguments
        if node.name not in arguments:
            raise self.error(node, f"parameter ${node.name} has no value", ParameterError)
        self.context.argument(node)
        given, name = self.context.given_arguments, node.name
        return lambda row: given[name]

    def _variable(self, node: ast.Variable) -> Evaluate:
        name, view = node.name, self.context.view

        def read(row: Row) -> Any:
            value = row[name]
            if isinstance(value, Vertex) and value.id >= LITERAL_BASE:
                return view.literal(value.id)
            return value

        return read

    def reference(self, node: ast.Expression) -> Evaluate:
        """Return the function to what stands for an item in a row: a literal vertex stays what it is."""
        if isinstance(node, ast.Variable):
            name = node.name
            return lambda row: row[name]
        return self.compile(node)

    def _property(self, node: ast.Property) -> Evaluate:
        base, view, key = self.compile(node.base), self.context.view, node.key
        text = key.text

        def read(row: Row) -> Any:
            value = base(row)
            if value.__class__ is Vertex:
                return view.property(value, key, node)
            match value:
                case None:
                    return None
                case Edge():
                    return view.edge_property(value, key, node)
                case dict():
                    return value.get(text)
                case Temporal():
                    try:
                        return value.part(text)
                    except KeyError:
                        raise self.error(node, f"a {value.kind} has no component '{text}'", BindError) from None
            raise self.error(node, f"{type_name(value)} has no properties")

        return read

    def _listliteral(self, node: ast.ListLiteral) -> Evaluate:
        items = [self.compile(item) for item in node.items]
        return lambda row: [item(row) for item in items]

    def _mapliteral(self, node: ast.MapLiteral) -> Evaluate:
        items = [(key.text, self.compile(value)) for key, value in node.items]
        return lambda row: {key: value(row) for key, value in items}

    def _mapprojection(self, node: ast.MapProjection) -> Evaluate:
        base = self.compile(node.base)
        items = [(item[0], self.compile(item[1])) if item is not None else None for item in node.items]

        def project(row: Row) -> Any:
            value = base(row)
            if value is None:
                return None
            found: dict[str, Any] = {}
            for item in items:
                if item is None:
                    found |= functions.properties(self.context, value, node)
                else:
                    found[item[0]] = item[1](row)
            return found

        return project

    # --- conditions

    def _boolean(self, node: ast.Boolean) -> Evaluate:
        operands = [self.condition(operand) for operand in node.operands]
        if node.operator == "XOR":

            def xor(row: Row) -> Answer:
                values = [operand(row) for operand in operands]
                return None if None in values else sum(map(bool, values)) % 2 == 1

            return xor
        decisive = node.operator == "OR"

        def decide(row: Row) -> Answer:  # as `decided` does, whose generator takes each row twice the time
            answer: Answer = not decisive
            for operand in operands:
                value = operand(row)
                if value is decisive:
                    return decisive
                if value is None:
                    answer = None
            return answer

        return decide

    def _unary(self, node: ast.Unary) -> Evaluate:
        if node.operator == "NOT":
            condition = self.condition(node.operand)

            def negate(row: Row) -> Answer:
                value = condition(row)
                return None if value is None else not value

            return negate
        operand = self.compile(node.operand)

        def sign(row: Row) -> Any:
            value = operand(row)
            if value is None:
                return None
            if isinstance(value, Duration):
                return value if node.operator == "+" else value.times(exact(-1))
            if not is_number(value):
                raise self.error(node, f"{node.operator} needs a number, found {type_name(value)}")
            return fits(self.context, negated(value) if node.operator == "-" else value, node)

        return sign

    def _comparison(self, node: ast.Comparison) -> Evaluate:
        operands = [self.value(operand) for operand in node.operands]
        tests = [_COMPARISONS[operator] for operator in node.operators]
        unzoned = [temporal.unzoned(operand, self.context.arguments) for operand in node.operands]
        if any(unzoned):
            tests = [_locally(test, unzoned[i], unzoned[i + 1]) for i, test in enumerate(tests)]
        if len(tests) == 1:
            (test,), (left, right) = tests, operands
            return lambda row: test(left(row), right(row))

        def chain(row: Row) -> Answer:
            values = [operand(row) for operand in operands]
            return decided((test(a, b) for test, a, b in zip(tests, values, values[1:], strict=False)), False)

        return chain

    def _stringpredicate(self, node: ast.StringPredicate) -> Evaluate:
        left, right = self.compile(node.left), self.compile(node.right)
        test: Callable[[str, str], bool] = {
            "STARTS WITH": str.startswith,
            "ENDS WITH": str.endswith,
            "CONTAINS": str.__contains__,
            "=~": lambda text, pattern: self._matches(text, pattern, node),
        }[node.operator]

        def check(a: Any, b: Any) -> Answer:
            return test(a, b) if isinstance(a, str) and isinstance(b, str) else None

        return lambda row: any_of(check, left(row), right(row))

    def _matches(self, text: str, pattern: str, node: ast.Expression) -> bool:
        try:
            return regex.full_match(pattern, text)
        except ExecutionError as fault:
            raise self.error(node, fault.message, ExecutionError, fault.hint) from None

    def _isnull(self, node: ast.IsNull) -> Evaluate:
        operand, negated = self.compile(node.operand), node.negated
        return lambda row: (operand(row) is None) is not negated

    def _labelpredicate(self, node: ast.LabelPredicate) -> Evaluate:
        operand, context = self.compile(node.operand), self.context
        holds = context.label_test(node.labels)

        def test(row: Row) -> Answer:
            value = operand(row)
            if value is None:
                return None
            if isinstance(value, Vertex):
                return holds(context.view.labels(value, node))
            if isinstance(value, Edge):
                return holds(frozenset([value.label]))
            raise self.error(node, f"{type_name(value)} has no labels")

        return test

    # --- arithmetic

    def _binary(self, node: ast.Binary) -> Evaluate:
        left, right = self._operand(node.left), self._operand(node.right)
        return lambda row: computed(self.context, node, left(row), right(row))

    # --- choices

    def _case(self, node: ast.Case) -> Evaluate:
        operand = None if node.operand is None else self.value(node.operand)
        compiled = self.value if operand is not None else self.condition
        branches = [([compiled(test) for test in tests], self.compile(result)) for tests, result in node.branches]
        otherwise = None if node.otherwise is None else self.compile(node.otherwise)

        def choose(row: Row) -> Any:
            value = operand(row) if operand is not None else None
            for tests, result in branches:
                for test in tests:
                    found = test(row)
                    if operand is not None:
                        found = equals(value, found)
                    if found is True:
                        return result(row)
            return otherwise(row) if otherwise is not None else None

        return choose

    def _narrowed(self, node: ast.Narrowed) -> Evaluate:
        operand, narrow = self.value(node.operand), NARROWED.get(" ".join(node.types))
        if narrow is None:
            raise NotSupportedError("values are narrowed to such types by SQL alone")
        if not node.listed:
            return lambda row: narrow(operand(row))

        def items(row: Row) -> list[Any] | None:
            found = operand(row)
            if not isinstance(found, list):
                return None
            return [item for item in map(narrow, found) if item is not None]

        return items

    # --- calls

    def _functioncall(self, node: ast.FunctionCall) -> Evaluate:
        name = node.name.lower()
        if name in functions.FACETS and node.arguments and isinstance(node.arguments[0], ast.Property):
            base = self.compile(node.arguments[0].base)
            property_key = node.arguments[0].key
            return lambda row: self.context.view.facet(base(row), property_key, name, node)
        if name in functions.FACETS:
            return self._literal_facet(node, name)
        if name == "coalesce":
            arguments = [self.compile(argument) for argument in node.arguments]
            return lambda row: next((v for v in (argument(row) for argument in arguments) if v is not None), None)
        if name == "exists" and len(node.arguments) == 1:
            value = self.compile(node.arguments[0])
            return lambda row: value(row) is not None
        function = functions.FUNCTIONS.get(name)
        if function is None:
            raise self.error(node, f"unknown function '{node.name}'", BindError, did_you_mean(name))
        read = self.reference if name in functions.OF_TERMS else self.compile
        arguments = [read(argument) for argument in node.arguments]
        context = self.context
        return lambda row: function(context, node, *[argument(row) for argument in arguments])

    def _literal_facet(self, node: ast.FunctionCall, name: str) -> Evaluate:
        term, view = self.reference(node.arguments[0]), self.context.view

        def read(row: Row) -> Any:
            value = term(row)
            if value is None or isinstance(value, Vertex):
                return None if value is None else view.literal_facet(value, name)
            raise self.error(
                node.arguments[0],
                f"{node.name} needs a property or a vertex that is a literal, found {type_name(value)}",
                hint=f"ask the property itself: {node.name}(v.key)",
            )

        return read


def _not_equals(left: Any, right: Any) -> Answer:
    if isinstance(left, Several) or isinstance(right, Several):
        return any_of(_not_equals, left, right)
    answer = equals(left, right)
    return None if answer is None else not answer


def _locally(test: Callable[[Any, Any], Answer], left: bool, right: bool) -> Callable[[Any, Any], Answer]:
    """Return a comparison in which a side is a point in time without a zone: local where the other one is."""

    def one_of(value: Any, other: Any, unzoned: bool) -> Any:
        first = other[0] if isinstance(other, Several) else other
        if unzoned and isinstance(first, LocalDateTime) and isinstance(value, DateTime):
            return LocalDateTime(value.days, value.nanoseconds)
        return value

    return lambda a, b: test(one_of(a, b, left), one_of(b, a, right))


_COMPARISONS: Mapping[str, Callable[[Any, Any], Answer]] = {
    "=": equals,
    "<>": _not_equals,
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": lambda a, b: less(a, b, True),
    ">=": lambda a, b: less(b, a, True),
}
