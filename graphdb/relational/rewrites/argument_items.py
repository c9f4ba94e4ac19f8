"""Quantifiers and comprehensions over maps of an argument, as subqueries over rows: joined, not tested one by one.

``[r IN $rows WHERE r.k = a.team AND a.age > r.least | r.id]`` is ``COLLECT { UNWIND $rows AS r WITH * WHERE … RETURN
r.id }``, whose rows are joined with those of ``a`` by what is equal; its ``size`` is ``COUNT { … }``.  A quantifier
asks whether there are such items, and whether there are some of which the condition is unknown.

As a condition of MATCH, ``any(…)`` is ``EXISTS { … }``, ``none(…)`` that there is no item of which it holds or is
unknown, and ``single(…)`` that there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import kinds_in, mapped, walk
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.rename import renamed
from graphdb.relational.arguments import Arguments
from graphdb.relational.rewrites.written_lists import calls_anew

Query = TypeVar("Query")

_ITEM = "item of an argument"
"""What an item is called: no user's name."""

_PLAIN = frozenset((bool, int, float, str, type(None)))
"""Types of keys that are equal to a value or not, which is unknown of null alone."""

_LEAST = 16
"""Maps from which on rows are joined with them."""


def with_argument_items(query: Query, arguments: Arguments) -> Query:
    """Return a query in which such quantifiers and comprehensions are subqueries."""
    kinds = kinds_in(query)
    if ast.Parameter not in kinds or kinds.isdisjoint((ast.ListPredicate, ast.ListComprehension)):
        return query
    sources = (part.source for part in walk(query) if isinstance(part, ast.ListPredicate | ast.ListComprehension))
    if not any(isinstance(source, ast.Parameter) for source in sources):
        return query
    return _Rewriting(arguments).clauses(query)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of the items of an argument: that a key of theirs equals something of the row, and more."""

    source: ast.Parameter
    key: ast.Expression
    own: ast.Expression
    """What the key has to equal."""
    rest: ast.Expression | None
    span: ast.Span

    def asking(
        self,
        kind: str,
        conditions: Iterable[ast.Expression | None],
        result: ast.Expression | None = None,
    ) -> ast.Subquery:
        """Return a subquery over the items that fulfil conditions."""
        item, span = ast.Variable(_ITEM, self.span), self.span
        where = all_hold([part for each in conditions for part in conjuncts(each)], span)
        value = ast.Literal(1, span) if result is None else result
        returns = ast.ReturnClause((ast.ReturnItem(value, "item", "item", span),), span=span)
        all_names = ast.ReturnClause((), star=True, span=span)
        unwound = ast.UnwindClause(self.source, item, span)
        query = ast.Composite(((unwound, ast.WithClause(all_names, where, span), returns),), span=span)
        return ast.Subquery(kind, query, span)

    def equal(self) -> ast.Expression:
        """Return whether the key equals."""
        return ast.Comparison(("=",), (self.key, self.own), self.span)

    def holding(self, kind: str) -> ast.Subquery:
        """Return whether the condition holds of an item, or of how many."""
        return self.asking(kind, (self.equal(), self.rest))

    def maybe(self) -> ast.Expression | None:
        """Return whether the rest of the condition holds, or is unknown."""
        if self.rest is None:
            return None
        return ast.FunctionCall("coalesce", (self.rest, ast.Literal(True, self.span)), span=self.span)

    def unknown(self) -> tuple[ast.Subquery, ...]:
        """Return whether there are items of which the condition is unknown, for want of a key or of what it equals."""
        lacking = (ast.IsNull(each, span=self.span) for each in (self.own, self.key))
        return tuple(self.asking("exists", (lacks, self.maybe())) for lacks in lacking)


class _Rewriting:
    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def clauses(self, node: Any) -> Any:
        """Return syntax with such subqueries: not within what sees the items of another list."""
        match node:
            case ast.MatchClause():
                conditions = [found for each in conjuncts(node.where) for found in self._condition(each)]
                return replace(node, where=all_hold(conditions, node.span))
            case ast.NodePattern() | ast.EdgePattern() | ast.Reduce():
                return node
            case ast.FunctionCall(name, (ast.ListComprehension() as items,)) if name.lower() == "size":
                found = self._listed(items)
                return found.holding("count") if found is not None else node
            case ast.ListComprehension():
                found = self._listed(node)
                if found is None:
                    return node
                result = ast.Variable(_ITEM, node.span) if node.result is None else _of_item(node, node.result)
                return found.asking("collect", (found.equal(), found.rest), result)
            case ast.ListPredicate():
                return self._value(node)
        return mapped(node, self.clauses)

    def _condition(self, node: ast.Expression) -> Iterator[ast.Expression]:
        """Yield what holds of the rows of which a condition of MATCH does."""
        negated = isinstance(node, ast.Unary) and node.operator == "NOT"
        inner = node.operand if isinstance(node, ast.Unary) and negated else node
        if not isinstance(inner, ast.ListPredicate) or (negated and inner.quantifier not in ("any", "none")):
            yield self.clauses(node)
            return
        if negated:
            inner = replace(inner, quantifier="none" if inner.quantifier == "any" else "any")
        found = self._quantified(inner)
        if found is None:
            yield node
        elif inner.quantifier == "any":
            yield found.holding("exists")
        else:
            if inner.quantifier == "single":
                number = found.asking("count", (found.equal(), found.maybe()))
                yield ast.Comparison(("=",), (number, ast.Literal(1, node.span)), node.span)
                yield found.holding("exists")
            else:
                yield ast.Unary("NOT", found.asking("exists", (found.equal(), found.maybe())), node.span)
            yield from (ast.Unary("NOT", each, node.span) for each in found.unknown())

    def _value(self, node: ast.ListPredicate) -> ast.Expression:
        """Return whether a quantifier holds, which may be unknown."""
        found = self._quantified(node)
        if found is None:
            return node
        span, one = node.span, ast.Literal(1, node.span)
        single = node.quantifier == "single"
        holds: ast.Expression = found.holding("count" if single else "exists")
        decided = ast.Comparison((">",), (holds, one), span) if single else holds
        otherwise: ast.Expression = ast.Literal(node.quantifier != "any", span)
        if single:
            otherwise = ast.Comparison(("=",), (holds, one), span)
        unknown = found.unknown()
        if found.rest is not None:
            unknown = (found.asking("exists", (found.equal(), ast.IsNull(found.rest, span=span))), *unknown)
        branches = (
            ((decided,), ast.Literal(node.quantifier == "any", span)),
            ((ast.Boolean("OR", unknown, span),), ast.Literal(None, span)),
        )
        return ast.Case(None, branches, otherwise, span)

    def _listed(self, node: ast.ListComprehension) -> _Asked | None:
        result = node.result
        if result is not None and not _is_simple(result):
            return None
        return self._asked(node, node.where)

    def _quantified(self, node: ast.ListPredicate) -> _Asked | None:
        """Return what a quantifier asks of items: that it holds of none instead of all."""
        where = node.where
        return self._asked(node, _negated(where) if node.quantifier == "all" and where is not None else where)

    def _asked(self, node: ast.ListComprehension | ast.ListPredicate, where: ast.Expression | None) -> _Asked | None:
        source, item = node.source, node.variable
        if where is None or not isinstance(source, ast.Parameter) or not _is_simple(where):
            return None
        conditions = list(conjuncts(where))
        for number, each in enumerate(conditions):
            if not isinstance(each, ast.Comparison) or each.operators != ("=",):
                continue
            for key, own in (each.operands, each.operands[::-1]):
                names = free_variables(own)
                if not isinstance(key, ast.Property) or key.base != item or item.name in names or not names:
                    continue
                if not self._has_keys(source.name, key.key.text):
                    return None
                rest = all_hold([*conditions[:number], *conditions[number + 1 :]], node.span)
                return _Asked(source, _of_item(node, key), own, rest and _of_item(node, rest), node.span)
        return None

    def _has_keys(self, name: str, key: str) -> bool:
        """Whether an argument is a list of maps in which a key leads to plain values or to none."""
        value = self._arguments.unnoted.get(name)  # lists of other types have the query prepared anew
        if not isinstance(value, list | tuple) or len(value) < _LEAST or {*map(type, value)} != {dict}:
            return False
        return {type(each.get(key)) for each in value} <= _PLAIN


def _of_item(node: ast.ListComprehension | ast.ListPredicate, expression: ast.Expression) -> ast.Expression:
    """Return an expression over an item of a list as one over the row that it becomes."""
    return renamed(expression, {node.variable.name: _ITEM})


def _is_simple(node: ast.Expression) -> bool:
    """Whether an expression brings in no names, and is the same each time."""
    return not any(isinstance(part, (*LOCAL, *SUBQUERIES)) or calls_anew(part) for part in walk(node))


def _negated(node: ast.Expression) -> ast.Expression:
    """Return that a condition does not hold, with equations on the outside where that is what it comes to."""
    match node:
        case ast.Unary("NOT", operand):
            return operand
        case ast.Boolean("OR", operands):
            return ast.Boolean("AND", tuple(map(_negated, operands)), node.span)
        case ast.Comparison(("<>",), operands):
            return ast.Comparison(("=",), operands, node.span)
    return ast.Unary("NOT", node, node.span)
