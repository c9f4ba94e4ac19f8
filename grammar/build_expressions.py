"""Expressions: operators, calls, literals, and what is made of lists and subqueries."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphdb.common.errors import nearest
from graphdb.common.stopping import checked
from graphdb.grammar import syntax as s
from graphdb.grammar.build_base import Base, Rule, always, items, node_of, node_of_all
from graphdb.grammar.compose import path_of
from graphdb.grammar.lexing import Token
from graphdb.grammar.spelling import ARITIES, SAME_AS, STRING
from graphdb.grammar.sugar import FORMS, REPEATED, WRITTEN_OUT, is_too_large

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


def _of_value(make: Callable[..., s.Expression], *before: object) -> Rule:
    """Return what makes a condition of a rule without its left side, which is the value after CASE."""
    return lambda builder, span, children: _Partial(span, lambda left, at: make(*before, left, children[0], at))


class Expressions(Base):
    """One method for each rule of expressions."""

    or_ = node_of_all(s.Boolean, "OR")
    xor = node_of_all(s.Boolean, "XOR")
    and_ = node_of_all(s.Boolean, "AND")
    negation = node_of(s.Unary, "NOT")

    def chain(self, span: s.Span, children: list[Any]) -> s.Comparison:
        return s.Comparison(tuple(map(str, children[1::2])), tuple(children[::2]), span)

    starts_with = node_of(s.StringPredicate, "STARTS WITH")
    ends_with = node_of(s.StringPredicate, "ENDS WITH")
    contains = node_of(s.StringPredicate, "CONTAINS")
    matches = node_of(s.StringPredicate, "=~")
    in_ = node_of(s.In)

    def is_null(self, span: s.Span, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], False, span)

    def is_not_null(self, span: s.Span, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], True, span)

    def no_label_predicate(self, span: s.Span, children: list[Any]) -> s.Unary:
        return s.Unary("NOT", s.LabelPredicate(children[0], children[1], span), span)

    label_predicate = node_of(s.LabelPredicate)

    def binary(self, span: s.Span, children: list[Any]) -> s.Binary:
        return s.Binary(str(children[1]), children[0], children[2], span)

    def signed(self, span: s.Span, children: list[Any]) -> s.Expression:
        sign, operand = children
        value = operand.value if isinstance(operand, s.Literal) else None
        if sign == "-" and isinstance(value, int | float) and self._unsigned_after(sign, operand):
            # A minus sign right before a number is part of it: so -2^63 can be written.
            self.too_large.discard(operand.span.start)
            return s.Literal(-value, span)
        return s.Unary(str(sign), operand, span)

    def _unsigned_after(self, sign: Token, operand: s.Literal) -> bool:
        between, first = self.text[sign.end_pos : operand.span.start], self.text[operand.span.start]
        return not between.strip() and (first.isdigit() or first == ".")

    def property_(self, span: s.Span, children: list[Any]) -> s.Property:
        return s.Property(children[0], children[1], span)

    def call(self, span: s.Span, children: list[Any]) -> s.Expression:
        function, quantifier, arguments = children
        name = self._function(function, span.start)
        match arguments:
            case (s.PatternPredicate() as predicate,) if name.lower() == "exists":  # how EXISTS { … } was written once
                match = s.MatchClause((predicate.pattern,), span=predicate.span)
                return s.Subquery("exists", s.Composite(((match,),), span=predicate.span), span)
            case (argument,) if name.lower() == "exists" and not _may_be_absent(argument):
                raise self.error(
                    "exists takes a property or a pattern",
                    argument.span.start,
                    f"write {self.text[argument.span.start : argument.span.end]} IS NOT NULL",
                )
        return self._called(name, arguments or (), quantifier, span)

    def _called(
        self, name: str, arguments: tuple[s.Expression, ...], quantifier: str | None, span: s.Span
    ) -> s.Expression:
        """Return a call, or the expression that it is another way to write."""
        match arguments:
            case (text, s.Variable(form, span=at)) if name.lower() == "normalize" and form.upper() in FORMS:
                arguments = text, s.Literal(form.upper(), at)
        make = WRITTEN_OUT.get(name.lower())
        if make is None:
            known = SAME_AS.get(name.lower(), name)
            return s.FunctionCall(known, arguments, quantifier == "DISTINCT", quantifier, span)
        least, most = ARITIES[name.lower()]
        if quantifier is not None or not least <= len(arguments) <= most:
            wanted = f"{least} arguments" if least == most else f"at least {least} arguments"
            found = f"{len(arguments)}" if quantifier is None else quantifier
            raise self.error(f"{name} takes {wanted}, found {found}", span.start)
        for argument in arguments:
            self.check_repeated(argument, min(REPEATED.get(name.lower(), 1), len(arguments)))
        return make(arguments, span)

    def check_repeated(self, argument: s.Expression, times: int) -> None:
        """Raise if an expression that is written once is too large to stand there so many times."""
        if is_too_large(argument, times):
            raise self.error("this expression is too large here: name it in a WITH before", argument.span.start)

    def trimmed(self, span: s.Span, children: list[Any]) -> s.FunctionCall:
        _, side, characters, text = children
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side.upper() if side else "", "btrim")
        return s.FunctionCall(name, (text,) if characters is None else (text, characters), span=span)

    def call_star(self, span: s.Span, children: list[Any]) -> s.CountStar:
        name = self._function(children[0], span.start)
        if name.lower() != "count":
            hint = "did you mean count(*)?" if nearest(name, ("count",)) else None
            raise self.error(f"only count takes *, not {name}", span.start, hint)
        return s.CountStar(span)

    def _function(self, expression: s.Expression, position: int) -> str:
        """The name that is called: ``f``, or with its namespace ``duration.between``."""
        parts: list[str] = []
        while isinstance(expression, s.Property) and len(expression.key.words) == 1:
            parts.append(expression.key.words[0].text)
            expression = expression.base
        if not isinstance(expression, s.Variable):
            raise self.error("this cannot be called: a function's name stands before (", position)
        return ".".join([expression.name, *reversed(parts)])

    arguments = items

    def integer(self, span: s.Span, children: list[Any]) -> s.Literal:
        token = children[0]
        try:
            value = int(token, 0) if token[:2] in ("0x", "0X", "0o", "0O") else int(token)
        except ValueError:
            raise self.error(f"{token} is not a number", token.start_pos) from None
        if value > _LARGEST + 1:
            raise self.error(TOO_LARGE, token.start_pos)
        if value > _LARGEST:
            self.too_large.add(span.start)
        return s.Literal(value, span)

    def integers(self, span: s.Span, children: list[Any]) -> s.Literal:
        token = children[0]
        try:
            values = tuple(map(int, token[1:-1].split(",")))
        except ValueError:  # of more than 4,300 digits
            values = ()
        if not values or min(values) < -_LARGEST - 1 or max(values) > _LARGEST:
            wrong = next(item for item in _INTEGER.finditer(token) if len(item[0]) > 20 or abs(int(item[0])) > _LARGEST)
            raise self.error(TOO_LARGE, span.start + wrong.start())
        return s.Literal(values, span)

    def strings(self, span: s.Span, children: list[Any]) -> s.Literal:
        token = children[0]
        found = _STRING.finditer(token)
        values = tuple(
            [self._unescape(item[0][1:-1], item[0][0], span.start + item.start() + 1) for item in checked(found)]
        )
        return s.Literal(values, span)

    def float_(self, span: s.Span, children: list[Any]) -> s.Literal:
        try:
            value = float(children[0].rstrip("fFdD"))
        except ValueError:
            raise self.error(f"{children[0]} is not a number", span.start) from None
        if math.isinf(value):
            raise self.error("the number is out of range for a 64-bit float", span.start)
        return s.Literal(value, span)

    def string(self, span: s.Span, children: list[Any]) -> s.Literal:
        return s.Literal(self._unquoted(children[0]), span)

    true = node_of(s.Literal, True)
    false = node_of(s.Literal, False)
    null = node_of(s.Literal, None)

    def iri(self, span: s.Span, children: list[Any]) -> s.IriLiteral:
        return s.IriLiteral(children[0][1:-1], span)

    def short_iri(self, span: s.Span, children: list[Any]) -> s.IriLiteral:
        prefix, local = children
        return s.IriLiteral(local.text, span, s.Word(self.plain(prefix), span=span))

    def list_(self, span: s.Span, children: list[Any]) -> s.ListLiteral:
        return s.ListLiteral(children[0] or (), span)

    def map(self, span: s.Span, children: list[Any]) -> s.MapLiteral:
        return s.MapLiteral(tuple(entry for entry in children if entry is not None), span)

    entry = items

    def pattern_predicate(self, span: s.Span, children: list[Any]) -> s.PatternPredicate:
        return s.PatternPredicate(path_of(children, self, span), span)

    subscript = node_of(s.Subscript)
    slice = node_of(s.Slice)

    def case(self, span: s.Span, children: list[Any]) -> s.Case:
        operand, *branches, otherwise = children
        partial = next((test for tests, _ in branches for test in tests if isinstance(test, _Partial)), None)
        if partial is None:
            return s.Case(operand, tuple(branches), otherwise, span)
        if operand is None:
            raise self.error("this condition is of the value after CASE, and there is none", partial.span.start)
        self.check_repeated(operand, sum(len(tests) for tests, _ in branches))
        searched = [(tuple(_test(operand, test) for test in tests), result) for tests, result in branches]
        return s.Case(None, tuple(searched), otherwise, span)

    def when(self, span: s.Span, children: list[Any]) -> tuple[tuple[Any, ...], s.Expression]:
        *tests, result = children
        return tuple(tests), result

    def compared(self, span: s.Span, children: list[Any]) -> _Partial:
        operator, right = children
        return _Partial(span, lambda left, span: s.Comparison((str(operator),), (left, right), span))

    def being_null(self, span: s.Span, children: list[Any]) -> _Partial:
        return _Partial(span, lambda left, span: s.IsNull(left, False, span))

    def being_something(self, span: s.Span, children: list[Any]) -> _Partial:
        return _Partial(span, lambda left, span: s.IsNull(left, True, span))

    being_in = _of_value(s.In)

    starting = _of_value(s.StringPredicate, "STARTS WITH")
    ending = _of_value(s.StringPredicate, "ENDS WITH")
    containing = _of_value(s.StringPredicate, "CONTAINS")
    matching = _of_value(s.StringPredicate, "=~")
    list_comprehension = node_of(s.ListComprehension)

    def pattern_comprehension(self, span: s.Span, children: list[Any]) -> s.PatternComprehension:
        name, *elements, where, result = children
        return s.PatternComprehension(path_of(elements, self, span, name), where, result, span)

    def all_any(self, span: s.Span, children: list[Any]) -> s.ListPredicate:
        quantifier, variable, source, where = children
        return s.ListPredicate(quantifier.lower(), variable, source, where, span)

    reduce = node_of(s.Reduce)

    def subquery(self, span: s.Span, children: list[Any]) -> s.Subquery:
        return s.Subquery(children[0].lower(), children[1], span)

    def pattern_subquery(self, span: s.Span, children: list[Any]) -> s.Subquery:
        kind, patterns, where = children
        match = s.MatchClause(patterns, where=where, span=span)
        return s.Subquery(kind.lower(), s.Composite(((match,),), span=span), span)

    def map_projection(self, span: s.Span, children: list[Any]) -> s.MapProjection:
        base, *items = children
        return s.MapProjection(
            base, tuple(item(base) if callable(item) else item for item in items if item != ()), span
        )

    def projection(self, span: s.Span, children: list[Any]) -> tuple[str, s.Expression]:
        key, value = children[0]
        return key.text, value

    def field(self, span: s.Span, children: list[Any]) -> Any:
        key = s.KeyName((children[0],), span)
        return lambda base: (children[0].text, s.Property(base, key, span))

    fields = always(None)

    def variable_field(self, span: s.Span, children: list[Any]) -> tuple[str, s.Expression]:
        return children[0].name, children[0]

    shortest_path = node_of(s.ShortestPath)


def _may_be_absent(argument: s.Expression) -> bool:
    """Whether ``exists`` can be asked of an expression: a property, an entry of a map by its key, or null."""
    return isinstance(argument, (s.Property, s.Subscript)) or (
        isinstance(argument, s.Literal) and argument.value is None
    )
