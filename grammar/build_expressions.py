"""Expressions: operators, calls, literals, and what is made of lists and subqueries."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lark import Token

from graphdb.common.stopping import checked
from graphdb.grammar import syntax as s
from graphdb.grammar.build_base import Base, span_of
from graphdb.grammar.compose import path_of
from graphdb.grammar.machine import Place as Meta
from graphdb.grammar.spelling import STRING
from graphdb.grammar.sugar import FORMS, SAME_AS, WRITTEN_OUT

_LARGEST = 2**63 - 1
_INTEGER = re.compile(r"-?\d+")
_STRING = re.compile(STRING, re.DOTALL)
TOO_LARGE = "the integer is out of range: 64 bits hold -2^63 to 2^63 - 1"


@dataclass(frozen=True, slots=True)
class _Partial:
    """A condition after WHEN whose left side is the value after CASE: ``< 2``, ``IS NULL``, ``STARTS WITH 'a'``."""

    span: s.Span
    of: Callable[[s.Expression, s.Span], s.Expression]


def _test(operand: s.Expression, test: s.Expression | _Partial) -> s.Expression:
    """Return what is asked of the value after CASE as a condition."""
    if isinstance(test, _Partial):
        return test.of(operand, test.span)
    return s.Comparison(("=",), (operand, test), test.span)


class Expressions(Base):
    """One method for each rule of expressions."""

    def or_(self, meta: Meta, children: list[Any]) -> s.Boolean:
        return s.Boolean("OR", tuple(children), span_of(meta))

    def xor(self, meta: Meta, children: list[Any]) -> s.Boolean:
        return s.Boolean("XOR", tuple(children), span_of(meta))

    def and_(self, meta: Meta, children: list[Any]) -> s.Boolean:
        return s.Boolean("AND", tuple(children), span_of(meta))

    def negation(self, meta: Meta, children: list[Any]) -> s.Unary:
        return s.Unary("NOT", children[0], span_of(meta))

    def chain(self, meta: Meta, children: list[Any]) -> s.Comparison:
        return s.Comparison(tuple(map(str, children[1::2])), tuple(children[::2]), span_of(meta))

    def starts_with(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("STARTS WITH", children[0], children[1], span_of(meta))

    def ends_with(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("ENDS WITH", children[0], children[1], span_of(meta))

    def contains(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("CONTAINS", children[0], children[1], span_of(meta))

    def matches(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("=~", children[0], children[1], span_of(meta))

    def in_(self, meta: Meta, children: list[Any]) -> s.In:
        return s.In(children[0], children[1], span_of(meta))

    def is_null(self, meta: Meta, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], False, span_of(meta))

    def is_not_null(self, meta: Meta, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], True, span_of(meta))

    def no_label_predicate(self, meta: Meta, children: list[Any]) -> s.Unary:
        return s.Unary("NOT", s.LabelPredicate(children[0], children[1], span_of(meta)), span_of(meta))

    def label_predicate(self, meta: Meta, children: list[Any]) -> s.LabelPredicate:
        return s.LabelPredicate(children[0], children[1], span_of(meta))

    def binary(self, meta: Meta, children: list[Any]) -> s.Binary:
        return s.Binary(str(children[1]), children[0], children[2], span_of(meta))

    def signed(self, meta: Meta, children: list[Any]) -> s.Expression:
        sign, operand = children
        value = operand.value if isinstance(operand, s.Literal) else None
        if sign == "-" and isinstance(value, int | float) and self._unsigned_after(sign, operand):
            # A minus sign right before a number is part of it: so -2^63 can be written.
            self.too_large.discard(operand.span.start)
            return s.Literal(-value, span_of(meta))
        return s.Unary(str(sign), operand, span_of(meta))

    def _unsigned_after(self, sign: Token, operand: s.Literal) -> bool:
        between, first = self.text[sign.end_pos : operand.span.start], self.text[operand.span.start]
        return not between.strip() and (first.isdigit() or first == ".")

    def property_(self, meta: Meta, children: list[Any]) -> s.Property:
        return s.Property(children[0], children[1], span_of(meta))

    def call(self, meta: Meta, children: list[Any]) -> s.Expression:
        function, quantifier, arguments = children
        name = self._function(function, meta.start_pos)
        match arguments:
            case (s.PatternPredicate() as predicate,) if name.lower() == "exists":  # how EXISTS { … } was written once
                match = s.MatchClause((predicate.pattern,), span=predicate.span)
                return s.Subquery("exists", s.Composite(((match,),), span=predicate.span), span_of(meta))
            case (argument,) if name.lower() == "exists" and not _may_be_absent(argument):
                raise self.error(
                    "exists takes a property or a pattern",
                    argument.span.start,
                    f"write {self.text[argument.span.start : argument.span.end]} IS NOT NULL",
                )
        return self._called(name, arguments or (), quantifier, span_of(meta))

    def _called(
        self, name: str, arguments: tuple[s.Expression, ...], quantifier: str | None, span: s.Span
    ) -> s.Expression:
        """Return a call, or the expression that it is another way to write."""
        match arguments:
            case (text, s.Variable(form, span=at)) if name.lower() == "normalize" and form.upper() in FORMS:
                arguments = text, s.Literal(form.upper(), at)
        written_out = WRITTEN_OUT.get(name.lower())
        if written_out is None:
            known = SAME_AS.get(name.lower(), name)
            return s.FunctionCall(known, arguments, quantifier == "DISTINCT", quantifier, span)
        make, least, most = written_out
        if quantifier is not None or not least <= len(arguments) <= most:
            wanted = f"{least} arguments" if least == most else f"at least {least} arguments"
            found = f"{len(arguments)}" if quantifier is None else quantifier
            raise self.error(f"{name} takes {wanted}, found {found}", span.start)
        return make(arguments, span)

    def trimmed(self, meta: Meta, children: list[Any]) -> s.FunctionCall:
        _, side, characters, text = children
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side.upper() if side else "", "btrim")
        return s.FunctionCall(name, (text,) if characters is None else (text, characters), span=span_of(meta))

    def call_star(self, meta: Meta, children: list[Any]) -> s.CountStar:
        name = self._function(children[0], meta.start_pos)
        if name.lower() != "count":
            raise self.error(f"only count takes *, not {name}", meta.start_pos)
        return s.CountStar(span_of(meta))

    def _function(self, expression: s.Expression, position: int) -> str:
        """The name that is called: ``f``, or with its namespace ``duration.between``."""
        parts: list[str] = []
        while isinstance(expression, s.Property) and len(expression.key.words) == 1:
            parts.append(expression.key.words[0].text)
            expression = expression.base
        if not isinstance(expression, s.Variable):
            raise self.error("this cannot be called: a function's name stands before (", position)
        return ".".join([expression.name, *reversed(parts)])

    def arguments(self, meta: Meta, children: list[Any]) -> tuple[s.Expression, ...]:
        return tuple(children)

    def integer(self, meta: Meta, children: list[Any]) -> s.Literal:
        token = children[0]
        try:
            value = int(token, 0) if token[:2] in ("0x", "0X", "0o", "0O") else int(token)
        except ValueError:
            raise self.error(f"{token} is not a number", token.start_pos) from None
        if value > _LARGEST + 1:
            raise self.error(TOO_LARGE, token.start_pos)
        if value > _LARGEST:
            self.too_large.add(meta.start_pos)
        return s.Literal(value, span_of(meta))

    def integers(self, meta: Meta, children: list[Any]) -> s.Literal:
        token = children[0]
        try:
            values = tuple(map(int, token[1:-1].split(",")))
        except ValueError:  # of more than 4,300 digits
            values = ()
        if not values or min(values) < -_LARGEST - 1 or max(values) > _LARGEST:
            wrong = next(item for item in _INTEGER.finditer(token) if len(item[0]) > 20 or abs(int(item[0])) > _LARGEST)
            raise self.error(TOO_LARGE, meta.start_pos + wrong.start())
        return s.Literal(values, span_of(meta))

    def strings(self, meta: Meta, children: list[Any]) -> s.Literal:
        token = children[0]
        found = _STRING.finditer(token)
        values = tuple(
            [self._unescape(item[0][1:-1], item[0][0], meta.start_pos + item.start() + 1) for item in checked(found)]
        )
        return s.Literal(values, span_of(meta))

    def float_(self, meta: Meta, children: list[Any]) -> s.Literal:
        try:
            value = float(children[0].rstrip("fFdD"))
        except ValueError:
            raise self.error(f"{children[0]} is not a number", meta.start_pos) from None
        if math.isinf(value):
            raise self.error("the number is out of range for a 64-bit float", meta.start_pos)
        return s.Literal(value, span_of(meta))

    def string(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(self._unquoted(children[0]), span_of(meta))

    def true(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(True, span_of(meta))

    def false(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(False, span_of(meta))

    def null(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(None, span_of(meta))

    def iri(self, meta: Meta, children: list[Any]) -> s.IriLiteral:
        return s.IriLiteral(children[0][1:-1], span_of(meta))

    def list_(self, meta: Meta, children: list[Any]) -> s.ListLiteral:
        return s.ListLiteral(children[0] or (), span_of(meta))

    def map(self, meta: Meta, children: list[Any]) -> s.MapLiteral:
        return s.MapLiteral(tuple(entry for entry in children if entry is not None), span_of(meta))

    def entry(self, meta: Meta, children: list[Any]) -> tuple[s.KeyName, s.Expression]:
        return children[0], children[1]

    def pattern_predicate(self, meta: Meta, children: list[Any]) -> s.PatternPredicate:
        return s.PatternPredicate(path_of(children, self, span_of(meta)), span_of(meta))

    def subscript(self, meta: Meta, children: list[Any]) -> s.Subscript:
        return s.Subscript(children[0], children[1], span_of(meta))

    def slice(self, meta: Meta, children: list[Any]) -> s.Slice:
        base, start, end = children
        return s.Slice(base, start, end, span_of(meta))

    def case(self, meta: Meta, children: list[Any]) -> s.Case:
        operand, *branches, otherwise = children
        partial = next((test for tests, _ in branches for test in tests if isinstance(test, _Partial)), None)
        if partial is None:
            return s.Case(operand, tuple(branches), otherwise, span_of(meta))
        if operand is None:
            raise self.error("this condition is of the value after CASE, and there is none", partial.span.start)
        searched = [(tuple(_test(operand, test) for test in tests), result) for tests, result in branches]
        return s.Case(None, tuple(searched), otherwise, span_of(meta))

    def when(self, meta: Meta, children: list[Any]) -> tuple[tuple[Any, ...], s.Expression]:
        *tests, result = children
        return tuple(tests), result

    def compared(self, meta: Meta, children: list[Any]) -> _Partial:
        operator, right = children
        return _Partial(span_of(meta), lambda left, span: s.Comparison((str(operator),), (left, right), span))

    def being_null(self, meta: Meta, children: list[Any]) -> _Partial:
        return _Partial(span_of(meta), lambda left, span: s.IsNull(left, False, span))

    def being_something(self, meta: Meta, children: list[Any]) -> _Partial:
        return _Partial(span_of(meta), lambda left, span: s.IsNull(left, True, span))

    def being_in(self, meta: Meta, children: list[Any]) -> _Partial:
        return _Partial(span_of(meta), lambda left, span: s.In(left, children[0], span))

    def _of_text(self, operator: str, meta: Meta, children: list[Any]) -> _Partial:
        return _Partial(span_of(meta), lambda left, span: s.StringPredicate(operator, left, children[0], span))

    def starting(self, meta: Meta, children: list[Any]) -> _Partial:
        return self._of_text("STARTS WITH", meta, children)

    def ending(self, meta: Meta, children: list[Any]) -> _Partial:
        return self._of_text("ENDS WITH", meta, children)

    def containing(self, meta: Meta, children: list[Any]) -> _Partial:
        return self._of_text("CONTAINS", meta, children)

    def matching(self, meta: Meta, children: list[Any]) -> _Partial:
        return self._of_text("=~", meta, children)

    def list_comprehension(self, meta: Meta, children: list[Any]) -> s.ListComprehension:
        variable, source, where, result = children
        return s.ListComprehension(variable, source, where, result, span_of(meta))

    def pattern_comprehension(self, meta: Meta, children: list[Any]) -> s.PatternComprehension:
        name, *elements, where, result = children
        return s.PatternComprehension(path_of(elements, self, span_of(meta), name), where, result, span_of(meta))

    def all_any(self, meta: Meta, children: list[Any]) -> s.ListPredicate:
        quantifier, variable, source, where = children
        return s.ListPredicate(quantifier.lower(), variable, source, where, span_of(meta))

    def reduce(self, meta: Meta, children: list[Any]) -> s.Reduce:
        accumulator, start, variable, source, step = children
        return s.Reduce(accumulator, start, variable, source, step, span_of(meta))

    def subquery(self, meta: Meta, children: list[Any]) -> s.Subquery:
        return s.Subquery(children[0].lower(), children[1], span_of(meta))

    def pattern_subquery(self, meta: Meta, children: list[Any]) -> s.Subquery:
        kind, patterns, where = children
        match = s.MatchClause(patterns, where=where, span=span_of(meta))
        return s.Subquery(kind.lower(), s.Composite(((match,),), span=span_of(meta)), span_of(meta))

    def map_projection(self, meta: Meta, children: list[Any]) -> s.MapProjection:
        base, *items = children
        return s.MapProjection(
            base, tuple(item(base) if callable(item) else item for item in items if item != ()), span_of(meta)
        )

    def projection(self, meta: Meta, children: list[Any]) -> tuple[str, s.Expression]:
        key, value = children[0]
        return key.text, value

    def field(self, meta: Meta, children: list[Any]) -> Any:
        key = s.KeyName((children[0],), span_of(meta))
        return lambda base: (children[0].text, s.Property(base, key, span_of(meta)))

    def fields(self, meta: Meta, children: list[Any]) -> None:
        return None

    def variable_field(self, meta: Meta, children: list[Any]) -> tuple[str, s.Expression]:
        return children[0].name, children[0]

    def shortest_path(self, meta: Meta, children: list[Any]) -> s.ShortestPath:
        return s.ShortestPath(children[0], span_of(meta))


def _may_be_absent(argument: s.Expression) -> bool:
    """Whether ``exists`` can be asked of an expression: a property, an entry of a map by its key, or null."""
    return isinstance(argument, (s.Property, s.Subscript)) or (
        isinstance(argument, s.Literal) and argument.value is None
    )
