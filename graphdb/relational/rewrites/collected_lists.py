"""Lists that are collected only to be counted or searched, as aggregates: no list is made.

``WITH a, collect(b) AS l WHERE size(l) > 3 AND none(x IN l WHERE x.age < 18)`` counts the ``b`` of each ``a``, those
whose age is less, and those of which that is unknown.  So do later clauses up to the next that returns something, if
all that they ask of ``l`` is a number of its items, or whether some, all or none are as a condition says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import kinds_in, replaced, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.rename import rewritten
from graphdb.relational.rewrites.written_lists import calls_anew

Node = TypeVar("Node")
Clauses = tuple[ast.ClauseNode, ...]

_NAME = "#of list"
"""How the names of columns begin that something asked of a list is."""

_ASKING = frozenset((ast.FunctionCall, ast.In, ast.ListPredicate))

_SIMPLE = (ast.Variable, ast.Literal, ast.Parameter, ast.Property)


def without_lists(query: ast.Composite, is_safe: Callable[[ast.Expression], bool]) -> ast.Composite:
    """Return a query with aggregates for lists that are collected to be counted or searched.

    ``is_safe`` says whether an expression has one value for each row, and none at which it fails.
    """
    if ast.WithClause not in kinds_in(query):
        return query
    names = (f"{_NAME} {number}" for number in range(len(walk(query))))
    parts = tuple(_part(part, is_safe, names) for part in query.parts)
    return query if parts == query.parts else replace(query, parts=parts)


def _part(clauses: Clauses, is_safe: Callable[[ast.Expression], bool], names: Iterator[str]) -> Clauses:
    for at, clause in enumerate(clauses):
        if not isinstance(clause, ast.WithClause) or clause.returns.star:
            continue
        for item in clause.returns.items:
            call = item.expression
            if isinstance(call, ast.FunctionCall) and call.name.lower() == "collect" and item.alias is not None:
                made = _List(item, call, _passed(clause), is_safe, names).clauses(clauses[at:])
                clauses = clauses if made is None else (*clauses[:at], *made)
    return clauses


def _passed(clause: ast.WithClause) -> set[str]:
    """Return the variables that a clause hands on as they are."""
    found = ((item.expression, item.alias or item.text) for item in clause.returns.items)
    return {node.name for node, name in found if isinstance(node, ast.Variable) and node.name == name}


def _brought_in(node: object) -> set[str] | None:
    """Return the names that pieces of syntax bring in; None where a CALL says itself which it sees."""
    found = set[str]()
    for part in walk(node):
        match part:
            case ast.CallClause():
                return None
            case ast.Reduce():
                found |= {part.variable.name, part.accumulator.name}
            case ast.ListComprehension() | ast.ListPredicate() | ast.UnwindClause():
                found.add(part.variable.name)
            case ast.ReturnItem(expression, alias, text) if expression != ast.Variable(alias or text):
                found.add(alias or text)
    return found


class _Needed(Exception):
    """Something asks for the list itself, or for items of it."""


class _List:
    """A list that an item of a WITH collects; ``passed`` are the names that mean the same before this and after, but
    where syntax brings in a name of its own that is the same.
    """

    def __init__(
        self,
        item: ast.ReturnItem,
        call: ast.FunctionCall,
        passed: set[str],
        is_safe: Callable[[ast.Expression], bool],
        names: Iterator[str],
    ) -> None:
        self._item, self._call, self._passed, self._is_safe = item, call, passed, is_safe
        self._alike = passed
        self._list, self._value = ast.Variable(item.alias or item.text), call.arguments[0]
        self._names = names
        self._counts: dict[ast.Expression, ast.Variable] = {}
        """The aggregates, with the names of their columns."""

    def clauses(self, clauses: Clauses) -> Clauses | None:
        """Return a WITH and the clauses after it without the list; None where they need it, or ask nothing of it."""
        first, found = clauses[0], list[ast.ClauseNode]()
        assert isinstance(first, ast.WithClause)
        if any(self._list.name in free_variables(item.expression) for item in first.returns.items):
            return None  # the name of something before
        try:
            self._check(self._value, free_variables(self._value))
            order, where = self._change(first.returns.order_by), self._change(first.where)
            for clause in clauses[1:]:
                found.append(self._change(clause))
                if isinstance(clause, ast.WithClause | ast.ReturnClause):
                    if (clause.returns if isinstance(clause, ast.WithClause) else clause).star:
                        return None
                    break
        except _Needed:
            return None
        if not self._counts:
            return None
        new = [ast.ReturnItem(node, name.name, name.name) for node, name in self._counts.items()]
        others = [[item] if item is not self._item else new for item in first.returns.items]
        returns = replace(first.returns, items=tuple(item for each in others for item in each), order_by=order)
        return (replace(first, returns=returns, where=where), *found, *clauses[len(found) + 1 :])

    def _change(self, node: Node) -> Node:
        """Return syntax in which what is asked of the list is a column."""
        if self._list.name not in free_variables(node):
            return node
        own = _brought_in(node)
        if own is None or self._list.name in own:
            raise _Needed
        self._alike = self._passed - own
        found = rewritten(node, self._asked)
        if self._list.name in free_variables(found):
            raise _Needed
        return found

    def _asked(self, node: object) -> ast.Expression | None:
        if type(node) not in _ASKING:
            return None
        match node:
            case ast.FunctionCall(name, (argument,)) if name.lower() == "size" and argument == self._list:
                return self._column(replace(self._call, name="count"))
            case ast.FunctionCall(name, (ast.ListComprehension(variable, source, where, result),)) if (
                name.lower() == "size" and source == self._list and where is not None
            ):
                if result is not None:
                    self._of_value(result, variable)  # it cannot fail
                return self._number(self._of_value(where, variable))
            case ast.In(value, collection) if collection == self._list and isinstance(value, _SIMPLE):
                self._check(value, free_variables(value) - self._alike)
                return self._whether("any", ast.Comparison(("=",), (self._value, value), node.span), node.span)
            case ast.ListPredicate(quantifier, variable, source, where) if (
                source == self._list and where is not None and quantifier != "single"
            ):
                return self._whether(quantifier, self._of_value(where, variable), node.span)
        return None

    def _of_value(self, node: ast.Expression, variable: ast.Variable) -> ast.Expression:
        """Return what is made of an item as what is made of what is collected."""
        self._check(node, free_variables(node) - self._alike - {variable.name})
        return replaced(node, {variable: self._value})  # type: ignore[no-any-return]

    def _check(self, node: ast.Expression, others: set[str]) -> None:
        """Raise :class:`_Needed` unless an expression can be computed of each row; of items without ``others``."""
        parts = walk(node)
        # A pattern names vertices: these may be what is collected, but no value that is made of them.
        kinds = LOCAL if isinstance(self._value, ast.Variable) else (*LOCAL, *SUBQUERIES)
        alike = not any(isinstance(part, kinds) or calls_anew(part) for part in parts)
        if (others and node is not self._value) or not alike or not self._is_safe(node):
            raise _Needed

    def _whether(self, quantifier: str, test: ast.Expression, span: ast.Span) -> ast.Expression:
        """Return whether a condition holds for all, any or none of what is collected, by how many it holds for."""
        decisive = ast.Unary("NOT", test, span) if quantifier == "all" else test
        none, some = ast.Literal(0, span), self._number(decisive)
        unknown = self._number(ast.IsNull(test, span=span))
        branches = (
            ((ast.Comparison((">",), (some, none), span),), ast.Literal(quantifier == "any", span)),
            ((ast.Comparison((">",), (unknown, none), span),), ast.Literal(None, span)),
        )
        return ast.Case(None, branches, ast.Literal(quantifier != "any", span), span)

    def _number(self, test: ast.Expression) -> ast.Variable:
        """Return how many of what is collected a condition holds for."""
        span = self._call.span
        there = ast.IsNull(self._value, negated=True, span=span)  # null is never collected
        both = ast.Boolean("AND", (there, test), span)
        case = ast.Case(None, (((both,), self._value if self._call.distinct else ast.Literal(1, span)),), None, span)
        return self._column(replace(self._call, name="count", arguments=(case,)))

    def _column(self, count: ast.Expression) -> ast.Variable:
        if count not in self._counts:
            self._counts[count] = ast.Variable(next(self._names), self._call.span)
        return self._counts[count]
