"""The static type of every expression, and the mistakes that it shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from graphdb.common.errors import BindError, GraphDBError, ParseError, TypeMismatchError
from graphdb.common.stopping import check_stop
from graphdb.functions.signature import Kind, Signature
from graphdb.functions.table import SIGNATURE_OF, did_you_mean
from graphdb.grammar import syntax as ast
from graphdb.semantics.scopes import Scopes
from graphdb.semantics.types import (
    ANY,
    BOOLEAN,
    EDGE,
    FLOAT,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    NUMBERS,
    OPEN,
    PATH,
    STRING,
    TEMPORAL,
    VERTEX,
    Scope,
    Static,
    common,
    list_of,
    type_of_value,
)

_OF_LITERALS = frozenset({"lang", "datatype"})
"""Functions of a property's literal, not of its value."""

_TAKES: dict[Kind, tuple[str, tuple[str, ...]]] = {
    "vertex": ("a vertex", ("vertex",)),
    "term": ("a vertex", ("vertex",)),
    "map": ("a map", ("map",)),
    "boolean": ("a boolean", ("boolean",)),
    "temporal": ("a temporal value", ("temporal",)),
    "edge": ("an edge", ("edge",)),
    "path": ("a path", ("path",)),
    "element": ("a vertex or an edge", ("vertex", "edge")),
    "named": ("a vertex, an edge or the text of an IRI", ("vertex", "edge", "string")),
    "propertied": ("a vertex, an edge or a map", ("vertex", "edge", "map")),
    "long": ("a path, a list or a string", ("path", "list", "string")),
    "sized": ("a list or a string", ("list", "string")),
    "list": ("a list", ("list",)),
    "string": ("a string", ("string",)),
    "integer": ("an integer", ("integer", "number")),
    "float": ("a number", NUMBERS),
    "number": ("a number", NUMBERS),
    "scalar": ("a number, a string, a boolean or a temporal value", (*NUMBERS, "string", "boolean", "temporal")),
}
"""What each kind of argument is called, and the types that it admits; the kinds left out admit any."""


class Expressions(Scopes, ABC):
    """Finds the type of expressions, and refuses what cannot be right whatever the data."""

    @abstractmethod
    def query(self, query: ast.Query | ast.Composite, scope: Scope) -> None:
        """Check a query, which may be one inside an expression."""

    @abstractmethod
    def pattern(self, node: ast.PatternPredicate | ast.ShortestPath, scope: Scope) -> None:
        """Check a pattern in an expression, which brings in no variables."""

    @abstractmethod
    def comprehension(self, pattern: ast.PathPattern, scope: Scope) -> Scope:
        """Check the pattern of a comprehension; return the scope inside."""

    @abstractmethod
    def labels(self, labels: ast.LabelExpression, type: Static) -> None:
        """Check the names of a condition on labels."""

    def no_value(self, node: ast.PatternPredicate) -> GraphDBError:
        """Return the error for a pattern where its paths seem to be meant, and not whether there are any."""
        hint = "COUNT { (a)-->() } is how many there are; (a)-->() AS x whether; [p = (a)-->() | p] has the paths"
        return self.error(ParseError, "a pattern cannot stand here as a value", node, hint)

    def type_of(self, node: ast.Expression, scope: Scope) -> Static:
        """Return the type of an expression."""
        check_stop()
        method: Callable[[Any, Scope], Static] = getattr(self, "_" + type(node).__name__.lower())
        return method(node, scope)

    def condition(self, node: ast.Expression, scope: Scope) -> None:
        """Check a condition on rows, which no aggregate is part of."""
        self.no_aggregate(node)
        self._boolean_of(node, scope)

    def _boolean_of(self, node: ast.Expression, scope: Scope) -> None:
        type = self.type_of(node, scope)
        if type.base not in ("boolean", *OPEN):
            raise self._mismatch(f"expected a condition, found {type}", node)

    def _mismatch(self, message: str, node: Any) -> GraphDBError:
        return self.error(TypeMismatchError, message, node)

    # --- leaves

    def _literal(self, node: ast.Literal, scope: Scope) -> Static:
        if isinstance(node.value, tuple):
            same = len({*map(type, node.value)}) == 1
            return list_of(type_of_value(node.value[0]) if same else ANY)
        return type_of_value(node.value)

    def _iriliteral(self, node: ast.IriLiteral, scope: Scope) -> Static:
        return VERTEX

    def _parameter(self, node: ast.Parameter, scope: Scope) -> Static:
        return ANY

    def _variable(self, node: ast.Variable, scope: Scope) -> Static:
        if node.name not in scope:
            self.unknown(node, scope)
        return scope[node.name]

    def _property(self, node: ast.Property, scope: Scope) -> Static:
        base = self.type_of(node.base, scope)
        if base.base not in ("vertex", "edge", "map", "temporal", *OPEN):
            raise self._mismatch(f"{base} has no properties", node)
        if base == TEMPORAL:
            return STRING if node.key.text in ("timezone", "offset") else INTEGER
        return ANY

    def _listliteral(self, node: ast.ListLiteral, scope: Scope) -> Static:
        return list_of(common([self.type_of(item, scope) for item in node.items]))

    def _mapliteral(self, node: ast.MapLiteral, scope: Scope) -> Static:
        for _, value in node.items:
            self.type_of(value, scope)
        return MAP

    def _mapprojection(self, node: ast.MapProjection, scope: Scope) -> Static:
        self.type_of(node.base, scope)
        for item in node.items:
            if item is not None:
                self.type_of(item[1], scope)
        return MAP

    # --- conditions

    def _boolean(self, node: ast.Boolean, scope: Scope) -> Static:
        for operand in node.operands:
            self._boolean_of(operand, scope)
        return BOOLEAN

    def _unary(self, node: ast.Unary, scope: Scope) -> Static:
        if node.operator == "NOT":
            self._boolean_of(node.operand, scope)
            return BOOLEAN
        type = self.type_of(node.operand, scope)
        if type.base not in (*NUMBERS, "temporal", *OPEN):
            raise self._mismatch(f"{node.operator} needs a number, found {type}", node)
        return type

    def _comparison(self, node: ast.Comparison, scope: Scope) -> Static:
        for operand in node.operands:
            self.type_of(operand, scope)
        return BOOLEAN

    def _stringpredicate(self, node: ast.StringPredicate, scope: Scope) -> Static:
        self.type_of(node.left, scope)
        self.type_of(node.right, scope)
        return BOOLEAN

    def _in(self, node: ast.In, scope: Scope) -> Static:
        self.type_of(node.item, scope)
        collection = self.type_of(node.collection, scope)
        if collection.base not in ("list", *OPEN):
            raise self._mismatch(f"IN needs a list, found {collection}", node.collection)
        return BOOLEAN

    def _isnull(self, node: ast.IsNull, scope: Scope) -> Static:
        self.type_of(node.operand, scope)
        return BOOLEAN

    def _labelpredicate(self, node: ast.LabelPredicate, scope: Scope) -> Static:
        type = self.type_of(node.operand, scope)
        if type.base not in ("vertex", "edge", *OPEN):
            raise self._mismatch(f"{type} has no labels", node)
        self.labels(node.labels, type)
        return BOOLEAN

    # --- computed values

    def _binary(self, node: ast.Binary, scope: Scope) -> Static:
        left, right = self.type_of(node.left, scope), self.type_of(node.right, scope)
        bases = (left.base, right.base)
        if node.operator == "||":
            known = {base for base in bases if base not in OPEN}
            if len(known) > 1 or not known <= {"string", "list"}:
                raise self._mismatch(f"|| needs two strings or two lists, found {left} and {right}", node)
            return STRING if "string" in bases else common([left, right]) if "list" in bases else ANY
        if node.operator == "+" and "list" in bases:
            sides = [type.element or ANY if type.base == "list" else type for type in (left, right)]
            return list_of(common(sides))
        for type in (left, right):
            wanted = (*NUMBERS, "temporal", *(["string"] if node.operator == "+" else []), *OPEN)
            if node.operator == "+" and "string" in bases:
                wanted += ("boolean",)
            if type.base not in wanted:
                raise self._mismatch(f"{node.operator} cannot take {left} and {right}", node)
        if bases[0] in NUMBERS and bases[1] in NUMBERS:
            if node.operator == "^" or "float" in bases:
                return FLOAT
            return INTEGER if bases == ("integer", "integer") else NUMBER
        return STRING if node.operator == "+" and "string" in bases and "any" not in bases else ANY

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Static:
        base, index = self.type_of(node.base, scope), self.type_of(node.index, scope)
        if base.base not in ("list", "map", "vertex", "edge", *OPEN):
            hint = "characters of a text: substring(text, 0, 1)" if base.base == "string" else None
            raise self.error(TypeMismatchError, f"{base} has no items", node, hint)
        if base.base == "list" and index.base not in ("integer", "number", *OPEN):
            raise self._mismatch(f"a list's index is an integer, found {index}", node.index)
        if base.base in ("map", "vertex", "edge") and index.base not in ("string", *OPEN):
            raise self._mismatch(f"a key is a string, found {index}", node.index)
        return base.element or ANY if base.base == "list" else ANY

    def _slice(self, node: ast.Slice, scope: Scope) -> Static:
        base = self.type_of(node.base, scope)
        if base.base not in ("list", *OPEN):
            raise self._mismatch(f"only lists have slices, found {base}", node)
        for bound in (node.start, node.end):
            if bound is not None and (found := self.type_of(bound, scope)).base not in ("integer", "number", *OPEN):
                raise self._mismatch(f"a list's index is an integer, found {found}", bound)
        return base

    def _case(self, node: ast.Case, scope: Scope) -> Static:
        if node.operand is not None:
            self.type_of(node.operand, scope)
        results = []
        for tests, result in node.branches:
            for test in tests:
                if node.operand is None:
                    self._boolean_of(test, scope)
                else:
                    self.type_of(test, scope)
            results.append(self.type_of(result, scope))
        if node.otherwise is not None:
            results.append(self.type_of(node.otherwise, scope))
        return common(results)

    def source(self, node: ast.Expression, scope: Scope) -> Static:
        """Return the type of the items of what must be a list."""
        source = self.type_of(node, scope)
        if source.base not in ("list", *OPEN):
            raise self._mismatch(f"expected a list, found {source}", node)
        return source.element or ANY if source.base == "list" else ANY

    def _listcomprehension(self, node: ast.ListComprehension, scope: Scope) -> Static:
        element = self.source(node.source, scope)
        inner = {**scope, node.variable.name: element}
        for part in (node.where, node.result):
            if part is not None:
                self.no_aggregate(part)
        if node.where is not None:
            self._boolean_of(node.where, inner)
        return list_of(element if node.result is None else self.type_of(node.result, inner))

    def _listpredicate(self, node: ast.ListPredicate, scope: Scope) -> Static:
        element = self.source(node.source, scope)
        if node.where is not None:
            self.no_aggregate(node.where)
            self._boolean_of(node.where, {**scope, node.variable.name: element})
        return BOOLEAN

    def _reduce(self, node: ast.Reduce, scope: Scope) -> Static:
        self.type_of(node.start, scope)
        element = self.source(node.source, scope)
        self.type_of(node.step, {**scope, node.variable.name: element, node.accumulator.name: ANY})
        return ANY

    def _narrowed(self, node: ast.Narrowed, scope: Scope) -> Static:
        self.type_of(node.operand, scope)
        return ANY

    # --- calls

    def _countstar(self, node: ast.CountStar, scope: Scope) -> Static:
        return INTEGER

    def _functioncall(self, node: ast.FunctionCall, scope: Scope) -> Static:
        name = node.name.lower()
        signature = SIGNATURE_OF.get(name)
        if signature is not None and signature.aggregate:
            self._count_arguments(node, signature)
            types = [self.type_of(argument, scope) for argument in node.arguments]
            if name == "collect":
                return list_of(types[0])
            return INTEGER if name == "count" else types[0] if name in ("min", "max") else ANY
        if signature is None:
            raise self.error(BindError, f"unknown function '{node.name}'", node, did_you_mean(name))
        if node.quantifier is not None:
            raise self.error(BindError, f"{node.name} takes no {node.quantifier}", node)
        self._count_arguments(node, signature)
        types = [self.type_of(argument, scope) for argument in node.arguments]
        if name in _OF_LITERALS and types[0].base not in OPEN and not isinstance(node.arguments[0], ast.Property):
            message = f"{node.name} needs a property or a vertex that is a literal, found {types[0]}"
            raise self._mismatch(message, node.arguments[0])
        for place, (type, argument) in enumerate(zip(types, node.arguments, strict=True)):
            words, admitted = _TAKES.get(signature.kind(place), ("", OPEN))
            if not signature.late and words and type.base not in (*admitted, *OPEN):
                if isinstance(argument, ast.PatternPredicate):
                    raise self.no_value(argument)
                raise self._mismatch(f"{node.name} needs {words}, found {type}", argument)
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
            raise self.error(BindError, wrong, node)

    # --- patterns

    def _patternpredicate(self, node: ast.PatternPredicate, scope: Scope) -> Static:
        self.pattern(node, scope)
        return BOOLEAN

    def _patterncomprehension(self, node: ast.PatternComprehension, scope: Scope) -> Static:
        inner = self.comprehension(node.pattern, scope)
        if node.where is not None:
            self.condition(node.where, inner)
        return list_of(self.type_of(node.result, inner))

    def _shortestpath(self, node: ast.ShortestPath, scope: Scope) -> Static:
        self.pattern(ast.PatternPredicate(node.pattern, node.span), scope)
        many = node.pattern.selector is not None and node.pattern.selector.groups
        return list_of(PATH) if many else PATH

    def _subquery(self, node: ast.Subquery, scope: Scope) -> Static:
        parts = node.query.parts if isinstance(node.query, ast.Composite) else (node.query.clauses,)
        writing = (ast.CreateClause, ast.MergeClause, ast.SetClause, ast.RemoveClause, ast.DeleteClause)
        for part in parts:
            for clause in part:
                if isinstance(clause, writing):
                    raise self.error(ParseError, f"{node.kind.upper()} {{ }} cannot write", clause)
        self.query(node.query, scope)
        return {"exists": BOOLEAN, "count": INTEGER}.get(node.kind, LIST)
