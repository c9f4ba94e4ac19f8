"""Expressions to Python closures: what an expression yields for one row, with openCypher's null semantics.

A row maps names to values.  Names that begin with ``#`` are the engine's own: hidden pattern elements, aggregates
and the results of subqueries, which are run for all rows at once before the expression is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from graphdb.errors import BindError, ExecutionError, MemoryLimitError, ParameterError, TypeMismatchError, nearest
from graphdb.grammar import syntax as ast
from graphdb.interpret import functions
from graphdb.interpret.values import (
    Answer,
    Edge,
    Path,
    Several,
    Vertex,
    any_of,
    equals,
    is_number,
    less,
    type_name,
)
from graphdb.lists import LONGEST
from graphdb.storage.terms import LITERAL_BASE
from graphdb.temporal import Duration, Temporal, exact, shift

if TYPE_CHECKING:
    from graphdb.interpret.context import Context

Row = dict[str, Any]
Evaluate = Callable[[Row], Any]

_INT64 = range(-(2**63), 2**63)


class Compiler:
    """Compiles expressions; names are checked before (:mod:`graphdb.interpret.check`)."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def compile(self, node: ast.Expression) -> Evaluate:
        """Return the function from a row to the expression's value."""
        method: Callable[[Any], Evaluate] = getattr(self, "_" + type(node).__name__.lower())
        return method(node)

    def condition(self, node: ast.Expression) -> Callable[[Row], Answer]:
        """Return the function from a row to whether a condition holds."""
        value = self.compile(node)
        return lambda row: self._truth(value(row), node)

    def error(
        self, node: ast.Expression, message: str, kind: type[Any] = TypeMismatchError, hint: str | None = None
    ) -> Any:
        """Return an error at a node."""
        return kind(message, text=self.context.text, position=node.span.start, hint=hint)

    def _truth(self, value: Any, node: ast.Expression) -> Answer:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Several):
            return any_of(lambda a, _: self._truth(a, node), value, None)
        raise self.error(node, f"expected a condition, found {type_name(value)}")

    # --- leaves

    def _literal(self, node: ast.Literal) -> Evaluate:
        value = node.value
        return lambda row: value

    def _iriliteral(self, node: ast.IriLiteral) -> Evaluate:
        found = self.context.resource(node.iri)
        return lambda row: found

    def _parameter(self, node: ast.Parameter) -> Evaluate:
        arguments = self.context.arguments
        if node.name not in arguments:
            raise self.error(node, f"parameter ${node.name} has no value", ParameterError)
        value = self.context.given(arguments[node.name], node)
        return lambda row: value

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
        base, context, key = self.compile(node.base), self.context, node.key
        text = key.text

        def read(row: Row) -> Any:
            value = base(row)
            match value:
                case None:
                    return None
                case Vertex():
                    return context.view.property(value, key, node)
                case Edge():
                    return context.view.edge_property(value, key, node)
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

        def decide(row: Row) -> Answer:
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
            return self._fits(-value if node.operator == "-" else value, node)

        return sign

    def _comparison(self, node: ast.Comparison) -> Evaluate:
        operands = [self.compile(operand) for operand in node.operands]
        tests = [_COMPARISONS[operator] for operator in node.operators]
        if len(tests) == 1:
            (test,), (left, right) = tests, operands
            return lambda row: test(left(row), right(row))

        def chain(row: Row) -> Answer:
            values = [operand(row) for operand in operands]
            answer: Answer = True
            for test, a, b in zip(tests, values, values[1:], strict=False):
                found = test(a, b)
                if found is False:
                    return False
                if found is None:
                    answer = None
            return answer

        return chain

    def _stringpredicate(self, node: ast.StringPredicate) -> Evaluate:
        left, right = self.compile(node.left), self.compile(node.right)
        test: Callable[[str, str], bool] = {
            "STARTS WITH": str.startswith,
            "ENDS WITH": str.endswith,
            "CONTAINS": str.__contains__,
            "=~": lambda text, pattern: self._pattern(pattern, node).fullmatch(text) is not None,
        }[node.operator]

        def check(a: Any, b: Any) -> Answer:
            return test(a, b) if isinstance(a, str) and isinstance(b, str) else None

        return lambda row: any_of(check, left(row), right(row))

    def _pattern(self, pattern: str, node: ast.Expression) -> re.Pattern[str]:
        try:
            return re.compile(pattern)
        except re.error as wrong:
            raise self.error(node, f"'{pattern}' is no regular expression: {wrong}", ExecutionError) from None

    def _in(self, node: ast.In) -> Evaluate:
        item, collection = self.compile(node.item), self.compile(node.collection)

        def member(row: Row) -> Answer:
            values = collection(row)
            if values is None:
                return None
            if not isinstance(values, list):
                raise self.error(node.collection, f"IN needs a list, found {type_name(values)}")
            return any_of(equals, item(row), Several(values))

        return member

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
        left, right = self.compile(node.left), self.compile(node.right)
        return lambda row: self._compute(node, left(row), right(row))

    def _compute(self, node: ast.Binary, left: Any, right: Any) -> Any:
        if node.operator == "+" and (isinstance(left, list) or isinstance(right, list)):
            if left is None or right is None:
                return None
            items = [*(left if isinstance(left, list) else [left]), *(right if isinstance(right, list) else [right])]
            if len(items) > LONGEST:
                message = f"a list of more than {LONGEST:,} items is too long"
                raise self.error(node, message, MemoryLimitError)
            return items
        if left is None or right is None:
            return None
        if is_number(left) and is_number(right):
            return self._number(node, left, right)
        if node.operator == "+" and isinstance(left, str) and isinstance(right, str):
            if len(left) + len(right) > 10 * LONGEST:
                message = f"a text of more than {10 * LONGEST:,} characters is too long"
                raise self.error(node, message, MemoryLimitError)
            return left + right
        joined = node.operator == "+" and (isinstance(left, str) or isinstance(right, str))
        if joined and all(isinstance(value, (str, bool, Temporal)) or is_number(value) for value in (left, right)):
            return functions.text_of(left) + functions.text_of(right)
        if isinstance(left, Temporal) or isinstance(right, Temporal):
            found = self._temporal(node.operator, left, right)
            if found is not None:
                return found
        raise self.error(node, f"{node.operator} cannot take {type_name(left)} and {type_name(right)}")

    def _number(self, node: ast.Binary, left: Any, right: Any) -> Any:
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)
        whole = isinstance(left, int) and isinstance(right, int)
        try:
            match node.operator:
                case "+":
                    return self._fits(left + right, node)
                case "-":
                    return self._fits(left - right, node)
                case "*":
                    return self._fits(left * right, node)
                case "^":
                    return float(left) ** float(right)
            if not right and (whole or isinstance(right, Decimal)):
                raise self.error(node, "division by zero", ExecutionError)
            if node.operator == "/":
                if whole:
                    quotient = abs(left) // abs(right)
                    return self._fits(quotient if (left < 0) == (right < 0) else -quotient, node)
                return left / right if right else _over_zero(float(left))
            if whole:
                rest = abs(left) % abs(right)
                return rest if left >= 0 else -rest
            return math.fmod(left, right) if right else math.nan
        except OverflowError:
            return math.inf
        except ArithmeticError:
            return math.nan

    def _fits(self, value: Any, node: ast.Expression) -> Any:
        if isinstance(value, int) and value not in _INT64:
            raise self.error(node, "a number is out of range: 64 bits hold -2^63 to 2^63 - 1", ExecutionError)
        return value

    def _temporal(self, operator: str, left: Any, right: Any) -> Any:
        if operator in "+-" and isinstance(left, Temporal) and isinstance(right, Duration):
            return shift(left, right, 1 if operator == "+" else -1)
        if operator == "+" and isinstance(left, Duration) and isinstance(right, Temporal):
            return shift(right, left, 1)
        if operator in "*/" and isinstance(left, Duration) and is_number(right) and (right or operator == "*"):
            factor = exact(right)
            return left.times(factor if operator == "*" else 1 / factor)
        if operator == "*" and isinstance(right, Duration) and is_number(left):
            return right.times(exact(left))
        return None

    # --- collections

    def _subscript(self, node: ast.Subscript) -> Evaluate:
        base, index = self.compile(node.base), self.compile(node.index)

        def read(row: Row) -> Any:
            value, at = base(row), index(row)
            if value is None or at is None:
                return None
            if isinstance(value, list):
                if isinstance(at, bool) or not isinstance(at, int):
                    raise self.error(node.index, f"a list's index is an integer, found {type_name(at)}")
                return value[at] if -len(value) <= at < len(value) else None
            if isinstance(value, (dict, Vertex, Edge)):
                if not isinstance(at, str):
                    raise self.error(node.index, f"a key is a string, found {type_name(at)}")
                return value.get(at) if isinstance(value, dict) else self.context.view.named(value, at, node)
            raise self.error(node, f"{type_name(value)} has no items")

        return read

    def _slice(self, node: ast.Slice) -> Evaluate:
        base = self.compile(node.base)
        bounds = [None if bound is None else self.compile(bound) for bound in (node.start, node.end)]

        def cut(row: Row) -> Any:
            value = base(row)
            places = [None if bound is None else bound(row) for bound in bounds]
            if value is None or any(b is not None and p is None for b, p in zip(bounds, places, strict=True)):
                return None
            if not isinstance(value, list):
                raise self.error(node, f"only lists have slices, found {type_name(value)}")
            for place in places:
                if place is not None and (isinstance(place, bool) or not isinstance(place, int)):
                    raise self.error(node, f"a list's index is an integer, found {type_name(place)}")
            return list(value[slice(*places)])

        return cut

    def _case(self, node: ast.Case) -> Evaluate:
        operand = None if node.operand is None else self.compile(node.operand)
        compiled = self.compile if operand is not None else self.condition
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

    def _items(self, node: ast.Expression) -> Callable[[Row], list[Any] | None]:
        source = self.compile(node)

        def items(row: Row) -> list[Any] | None:
            value = source(row)
            if value is not None and not isinstance(value, list):
                raise self.error(node, f"expected a list, found {type_name(value)}")
            return value

        return items

    def _listcomprehension(self, node: ast.ListComprehension) -> Evaluate:
        source, name = self._items(node.source), node.variable.name
        where = None if node.where is None else self.condition(node.where)
        result = None if node.result is None else self.compile(node.result)

        def comprehend(row: Row) -> Any:
            items = source(row)
            if items is None:
                return None
            found = []
            inner = {key: value for key, value in row.items() if not key.startswith("#sub")}
            for item in items:
                inner[name] = item
                if where is None or where(inner) is True:
                    found.append(item if result is None else result(inner))
            return found

        return comprehend

    def _listpredicate(self, node: ast.ListPredicate) -> Evaluate:
        source, name = self._items(node.source), node.variable.name
        where = self.condition(node.where if node.where is not None else node.variable)
        decide = _QUANTIFIERS[node.quantifier]

        def test(row: Row) -> Answer:
            items = source(row)
            if items is None:
                return None
            inner = {key: value for key, value in row.items() if not key.startswith("#sub")}
            return decide([where({**inner, name: item}) for item in items])

        return test

    def _reduce(self, node: ast.Reduce) -> Evaluate:
        start, source, step = self.compile(node.start), self._items(node.source), self.compile(node.step)

        def fold(row: Row) -> Any:
            items, value = source(row), start(row)
            if items is None:
                return None
            inner = {key: value for key, value in row.items() if not key.startswith("#sub")}
            for item in items:
                value = step({**inner, node.accumulator.name: value, node.variable.name: item})
            return value

        return fold

    # --- calls

    def _countstar(self, node: ast.CountStar) -> Evaluate:
        key = self.context.aggregate_key(node)
        return lambda row: row[key]

    def _functioncall(self, node: ast.FunctionCall) -> Evaluate:
        name = node.name.lower()
        if name in functions.AGGREGATES:
            key = self.context.aggregate_key(node)
            return lambda row: row[key]
        if name in functions.FACETS and node.arguments and isinstance(node.arguments[0], ast.Property):
            base = self.compile(node.arguments[0].base)
            property_key = node.arguments[0].key
            return lambda row: self.context.view.facet(base(row), property_key, name)
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
            near = nearest(node.name, functions.FUNCTIONS)
            raise self.error(
                node, f"unknown function '{node.name}'", BindError, f"did you mean {near[0]}()?" if near else None
            )
        read = self.reference if name in functions.OF_TERMS else self.compile
        arguments = [read(argument) for argument in node.arguments]
        call, context = function.call, self.context
        return lambda row: call(context, node, *[argument(row) for argument in arguments])

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

    # --- patterns

    def _patternpredicate(self, node: ast.PatternPredicate) -> Evaluate:
        matches = self.context.subqueries.of(node)
        return lambda row: bool(matches(row))

    def _patterncomprehension(self, node: ast.PatternComprehension) -> Evaluate:
        matches, result = self.context.subqueries.of(node), self.compile(node.result)
        return lambda row: [result({**row, **match}) for match in matches(row)]

    def _subquery(self, node: ast.Subquery) -> Evaluate:
        matches = self.context.subqueries.of(node)
        if node.kind == "exists":
            return lambda row: bool(matches(row))
        if node.kind == "count":
            return lambda row: len(matches(row))
        return lambda row: [next(iter(match.values()), None) for match in matches(row)]

    def _shortestpath(self, node: ast.ShortestPath) -> Evaluate:
        matches = self.context.subqueries.of(node)
        many = node.pattern.selector is not None and node.pattern.selector.groups

        def read(row: Row) -> Any:
            paths: list[Path] = [match["#path"] for match in matches(row)]
            return paths if many else (paths[0] if paths else None)

        return read


def _over_zero(value: float) -> float:
    return math.nan if not value or math.isnan(value) else math.copysign(math.inf, value)


def _not_equals(left: Any, right: Any) -> Answer:
    if isinstance(left, Several) or isinstance(right, Several):
        return any_of(_not_equals, left, right)
    answer = equals(left, right)
    return None if answer is None else not answer


_COMPARISONS: Mapping[str, Callable[[Any, Any], Answer]] = {
    "=": equals,
    "<>": _not_equals,
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": lambda a, b: less(a, b, True),
    ">=": lambda a, b: less(b, a, True),
}


def _all(answers: list[Answer]) -> Answer:
    return False if False in answers else None if None in answers else True


def _any(answers: list[Answer]) -> Answer:
    return True if True in answers else None if None in answers else False


def _none(answers: list[Answer]) -> Answer:
    found = _any(answers)
    return None if found is None else not found


def _single(answers: list[Answer]) -> Answer:
    if answers.count(True) > 1:
        return False
    return None if None in answers else answers.count(True) == 1


_QUANTIFIERS = {"all": _all, "any": _any, "none": _none, "single": _single}
