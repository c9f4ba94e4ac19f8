"""The types that follow from a query's text, and the mistakes that they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from graphdb.common.errors import BindError, GraphDBError, ParseError, TypeMismatchError
from graphdb.common.stopping import check_stop
from graphdb.common.values.temporal import Temporal
from graphdb.functions.signature import Kind, Signature
from graphdb.functions.table import SIGNATURE_OF, did_you_mean
from graphdb.grammar import syntax as ast
from graphdb.interpret.functions import FACETS
from graphdb.interpret.values import is_number
from graphdb.sql.aggregates import AGGREGATES

if TYPE_CHECKING:
    from graphdb.interpret.context import Context


@dataclass(frozen=True, slots=True)
class Static:
    """A type by its name; ``element`` of a list."""

    base: str
    element: Static | None = None

    def __str__(self) -> str:
        article = "an" if self.base[0] in "aei" else "a"
        return "null" if self.base == "null" else f"{article} {self.base}"


ANY, NULL, BOOLEAN, INTEGER = Static("any"), Static("null"), Static("boolean"), Static("integer")
FLOAT, NUMBER, STRING, LIST = Static("float"), Static("number"), Static("string"), Static("list")
MAP, VERTEX, EDGE, PATH = Static("map"), Static("vertex"), Static("edge"), Static("path")
TEMPORAL = Static("temporal")

_NUMBERS = ("integer", "float", "number")
_OPEN = ("any", "null")

_TAKES: dict[Kind, tuple[str, ...]] = {
    "vertex": ("vertex",),
    "term": ("vertex",),
    "literal": (),
    "map": ("map",),
    "boolean": ("boolean",),
    "float": _NUMBERS,
    "temporal": ("temporal",),
    "edge": ("edge",),
    "path": ("path",),
    "element": ("vertex", "edge"),
    "named": ("vertex", "edge", "string"),
    "propertied": ("vertex", "edge", "map"),
    "long": ("path", "list", "string"),
    "sized": ("list", "string"),
    "list": ("list",),
    "string": ("string",),
    "integer": ("integer", "number"),
    "number": _NUMBERS,
    "scalar": (*_NUMBERS, "string", "boolean", "temporal"),
    "any": (),
}
"""The types that each kind of argument admits."""


def list_of(element: Static) -> Static:
    """Return the type of lists of one type."""
    return Static("list", element)


def common(types: list[Static]) -> Static:
    """Return the type that all of some types are: ``any`` where they differ."""
    known = {type for type in types if type.base != "null"}
    if not known:
        return NULL if types else ANY
    if len(known) == 1:
        return known.pop()
    if all(type.base in _NUMBERS for type in known):
        return NUMBER
    return LIST if all(type.base == "list" for type in known) else ANY


def type_of_value(value: Any) -> Static:
    """Return the type of a literal's or parameter's value."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return FLOAT
        case str():
            return STRING
        case dict():
            return MAP
        case list() | tuple():
            return list_of(common([type_of_value(item) for item in value]))
        case Temporal():
            return TEMPORAL
    return NUMBER if is_number(value) else ANY


Scope = dict[str, Static]
"""What is known of the type of each name."""


class QueryCheck(Protocol):
    """Who checks whole queries (:mod:`graphdb.interpret.check`): expressions hold some."""

    context: Context
    types: StaticTypes

    def error(self, kind: type[GraphDBError], message: str, node: Any, hint: str | None = None) -> GraphDBError:
        """Return an error at a node."""

    def unknown(self, node: ast.Variable, scope: Scope) -> None:
        """Raise: nothing has this name."""

    def labels(self, labels: Any, type: Static) -> None:
        """Check the names of a label expression."""

    def new(self, variable: ast.Variable, scope: Scope) -> None:
        """Raise if a name that is brought in is taken."""

    def no_aggregate(self, node: ast.Expression) -> None:
        """Raise if an expression has an aggregate in it."""

    def no_value(self, node: Any) -> GraphDBError:
        """Return the error for what has no value."""

    def predicate(self, node: ast.PatternPredicate | ast.ShortestPath, scope: Scope) -> None:
        """Check a pattern in an expression."""

    def comprehension(self, pattern: ast.PathPattern, scope: Scope) -> Scope:
        """Check a pattern that brings in names; return them with those around."""

    def condition(self, node: ast.Expression, scope: Scope) -> None:
        """Check a condition."""

    def query(self, query: ast.Query | ast.Composite, scope: Scope) -> None:
        """Check a query inside an expression."""


class StaticTypes:
    """Finds the type of expressions, and refuses what cannot be right whatever the data."""

    def __init__(self, context: Context, checker: QueryCheck) -> None:
        self._context = context
        self._checker = checker

    def of(self, node: ast.Expression, scope: Scope) -> Static:
        """Return the type of an expression."""
        check_stop()
        method: Callable[[Any, Scope], Static] = getattr(self, "_" + type(node).__name__.lower())
        return method(node, scope)

    def condition(self, node: ast.Expression, scope: Scope) -> None:
        """Check an expression that is a condition."""
        type = self.of(node, scope)
        if type.base not in ("boolean", *_OPEN):
            raise self._mismatch(f"expected a condition, found {type}", node)

    def _mismatch(self, message: str, node: Any) -> Exception:
        return self._checker.error(TypeMismatchError, message, node)

    # --- leaves

    def _literal(self, node: ast.Literal, scope: Scope) -> Static:
        if isinstance(node.value, tuple):
            return list_of(type_of_value(node.value[0]))
        return type_of_value(node.value)

    def _iriliteral(self, node: ast.IriLiteral, scope: Scope) -> Static:
        return VERTEX

    def _parameter(self, node: ast.Parameter, scope: Scope) -> Static:
        return ANY

    def _variable(self, node: ast.Variable, scope: Scope) -> Static:
        if node.name not in scope:
            self._checker.unknown(node, scope)
        return scope[node.name]

    def _property(self, node: ast.Property, scope: Scope) -> Static:
        base = self.of(node.base, scope)
        if base.base not in ("vertex", "edge", "map", "temporal", *_OPEN):
            raise self._mismatch(f"{base} has no properties", node)
        if base == TEMPORAL:
            return STRING if node.key.text in ("timezone", "offset") else INTEGER
        return ANY

    def _listliteral(self, node: ast.ListLiteral, scope: Scope) -> Static:
        return list_of(common([self.of(item, scope) for item in node.items]))

    def _mapliteral(self, node: ast.MapLiteral, scope: Scope) -> Static:
        for _, value in node.items:
            self.of(value, scope)
        return MAP

    def _mapprojection(self, node: ast.MapProjection, scope: Scope) -> Static:
        self.of(node.base, scope)
        for item in node.items:
            if item is not None:
                self.of(item[1], scope)
        return MAP

    # --- conditions

    def _boolean(self, node: ast.Boolean, scope: Scope) -> Static:
        for operand in node.operands:
            self.condition(operand, scope)
        return BOOLEAN

    def _unary(self, node: ast.Unary, scope: Scope) -> Static:
        if node.operator == "NOT":
            self.condition(node.operand, scope)
            return BOOLEAN
        type = self.of(node.operand, scope)
        if type.base not in (*_NUMBERS, "temporal", *_OPEN):
            raise self._mismatch(f"{node.operator} needs a number, found {type}", node)
        return type

    def _comparison(self, node: ast.Comparison, scope: Scope) -> Static:
        for operand in node.operands:
            self.of(operand, scope)
        return BOOLEAN

    def _stringpredicate(self, node: ast.StringPredicate, scope: Scope) -> Static:
        self.of(node.left, scope)
        self.of(node.right, scope)
        return BOOLEAN

    def _in(self, node: ast.In, scope: Scope) -> Static:
        self.of(node.item, scope)
        collection = self.of(node.collection, scope)
        if collection.base not in ("list", *_OPEN):
            raise self._mismatch(f"IN needs a list, found {collection}", node.collection)
        return BOOLEAN

    def _isnull(self, node: ast.IsNull, scope: Scope) -> Static:
        self.of(node.operand, scope)
        return BOOLEAN

    def _labelpredicate(self, node: ast.LabelPredicate, scope: Scope) -> Static:
        type = self.of(node.operand, scope)
        if type.base not in ("vertex", "edge", *_OPEN):
            raise self._mismatch(f"{type} has no labels", node)
        self._checker.labels(node.labels, type)
        return BOOLEAN

    # --- computed values

    def _binary(self, node: ast.Binary, scope: Scope) -> Static:
        left, right = self.of(node.left, scope), self.of(node.right, scope)
        bases = (left.base, right.base)
        if node.operator == "||":
            known = {base for base in bases if base not in _OPEN}
            if len(known) > 1 or not known <= {"string", "list"}:
                raise self._mismatch(f"|| needs two strings or two lists, found {left} and {right}", node)
            return STRING if "string" in bases else common([left, right]) if "list" in bases else ANY
        if node.operator == "+" and "list" in bases:
            sides = [type.element or ANY if type.base == "list" else type for type in (left, right)]
            return list_of(common(sides))
        for type in (left, right):
            wanted = (*_NUMBERS, "temporal", *(["string"] if node.operator == "+" else []), *_OPEN)
            if node.operator == "+" and "string" in bases:
                wanted += ("boolean",)
            if type.base not in wanted:
                raise self._mismatch(f"{node.operator} cannot take {left} and {right}", node)
        if bases[0] in _NUMBERS and bases[1] in _NUMBERS:
            if node.operator == "^" or "float" in bases:
                return FLOAT
            return INTEGER if bases == ("integer", "integer") else NUMBER
        return STRING if node.operator == "+" and "string" in bases and "any" not in bases else ANY

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Static:
        base, index = self.of(node.base, scope), self.of(node.index, scope)
        if base.base not in ("list", "map", "vertex", "edge", *_OPEN):
            raise self._mismatch(f"{base} has no items", node)
        if base.base == "list" and index.base not in ("integer", "number", *_OPEN):
            raise self._mismatch(f"a list's index is an integer, found {index}", node.index)
        if base.base in ("map", "vertex", "edge") and index.base not in ("string", *_OPEN):
            raise self._mismatch(f"a key is a string, found {index}", node.index)
        return base.element or ANY if base.base == "list" else ANY

    def _slice(self, node: ast.Slice, scope: Scope) -> Static:
        base = self.of(node.base, scope)
        if base.base not in ("list", *_OPEN):
            raise self._mismatch(f"only lists have slices, found {base}", node)
        for bound in (node.start, node.end):
            if bound is not None and (found := self.of(bound, scope)).base not in ("integer", "number", *_OPEN):
                raise self._mismatch(f"a list's index is an integer, found {found}", bound)
        return base

    def _case(self, node: ast.Case, scope: Scope) -> Static:
        if node.operand is not None:
            self.of(node.operand, scope)
        results = []
        for tests, result in node.branches:
            for test in tests:
                if node.operand is None:
                    self.condition(test, scope)
                else:
                    self.of(test, scope)
            results.append(self.of(result, scope))
        if node.otherwise is not None:
            results.append(self.of(node.otherwise, scope))
        return common(results)

    def source(self, node: ast.Expression, scope: Scope) -> Static:
        """Return the type of the items of what must be a list."""
        source = self.of(node, scope)
        if source.base not in ("list", *_OPEN):
            raise self._mismatch(f"expected a list, found {source}", node)
        return source.element or ANY if source.base == "list" else ANY

    def _listcomprehension(self, node: ast.ListComprehension, scope: Scope) -> Static:
        element = self.source(node.source, scope)
        inner = {**scope, node.variable.name: element}
        for part in (node.where, node.result):
            if part is not None:
                self._checker.no_aggregate(part)
        if node.where is not None:
            self.condition(node.where, inner)
        return list_of(element if node.result is None else self.of(node.result, inner))

    def _listpredicate(self, node: ast.ListPredicate, scope: Scope) -> Static:
        element = self.source(node.source, scope)
        if node.where is not None:
            self._checker.no_aggregate(node.where)
            self.condition(node.where, {**scope, node.variable.name: element})
        return BOOLEAN

    def _reduce(self, node: ast.Reduce, scope: Scope) -> Static:
        self.of(node.start, scope)
        element = self.source(node.source, scope)
        self.of(node.step, {**scope, node.variable.name: element, node.accumulator.name: ANY})
        return ANY

    # --- calls

    def _countstar(self, node: ast.CountStar, scope: Scope) -> Static:
        return INTEGER

    def _functioncall(self, node: ast.FunctionCall, scope: Scope) -> Static:
        name = node.name.lower()
        if name in AGGREGATES:
            self._count_arguments(node, SIGNATURE_OF[name])
            types = [self.of(argument, scope) for argument in node.arguments]
            if name == "collect":
                return list_of(types[0])
            return INTEGER if name == "count" else types[0] if name in ("min", "max") else ANY
        signature = SIGNATURE_OF.get(name)
        if signature is None:
            raise self._checker.error(BindError, f"unknown function '{node.name}'", node, did_you_mean(name))
        if node.quantifier is not None:
            raise self._checker.error(BindError, f"{node.name} takes no {node.quantifier}", node)
        self._count_arguments(node, signature)
        types = [self.of(argument, scope) for argument in node.arguments]
        if name in FACETS and types[0].base not in _OPEN and not isinstance(node.arguments[0], ast.Property):
            message = f"{node.name} needs a property or a vertex that is a literal, found {types[0]}"
            raise self._mismatch(message, node.arguments[0])
        for place, (type, argument) in enumerate(zip(types, node.arguments, strict=True)):
            admitted = () if signature.late else _TAKES[signature.kind(place)]
            if admitted and type.base not in (*admitted, *_OPEN):
                if isinstance(argument, ast.PatternPredicate):
                    raise self._checker.no_value(argument)
                raise self._mismatch(f"{node.name} does not take {type}", argument)
        if name in ("head", "last") and types[0].base == "list":
            return types[0].element or ANY
        if name in ("tail", "reverse"):
            return types[0]
        if name in ("nodes", "relationships", "rels"):
            return list_of(VERTEX if name == "nodes" else EDGE)
        if name == "range":
            return list_of(INTEGER)
        return Static(signature.result)

    def _count_arguments(self, node: ast.FunctionCall, signature: Signature) -> None:
        wrong = signature.wrong_number(node.name, len(node.arguments))
        if wrong is not None:
            raise self._checker.error(BindError, wrong, node)

    # --- patterns

    def _patternpredicate(self, node: ast.PatternPredicate, scope: Scope) -> Static:
        self._checker.predicate(node, scope)
        return BOOLEAN

    def _patterncomprehension(self, node: ast.PatternComprehension, scope: Scope) -> Static:
        inner = self._checker.comprehension(node.pattern, scope)
        if node.where is not None:
            self._checker.condition(node.where, inner)
        return list_of(self.of(node.result, inner))

    def _shortestpath(self, node: ast.ShortestPath, scope: Scope) -> Static:
        self._checker.predicate(ast.PatternPredicate(node.pattern, node.span), scope)
        many = node.pattern.selector is not None and node.pattern.selector.groups
        return list_of(PATH) if many else PATH

    def _subquery(self, node: ast.Subquery, scope: Scope) -> Static:
        parts = node.query.parts if isinstance(node.query, ast.Composite) else (node.query.clauses,)
        writing = (ast.CreateClause, ast.MergeClause, ast.SetClause, ast.RemoveClause, ast.DeleteClause)
        for part in parts:
            for clause in part:
                if isinstance(clause, writing):
                    raise self._checker.error(ParseError, f"{node.kind.upper()} {{ }} cannot write", clause)
        self._checker.query(node.query, scope)
        return {"exists": BOOLEAN, "count": INTEGER}.get(node.kind, LIST)
