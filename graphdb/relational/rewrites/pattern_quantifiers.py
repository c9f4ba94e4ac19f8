"""Quantifiers over pattern comprehensions, where they stand as conditions: whether some match exists.

``WHERE all(x IN [(p)-->(q) | q.k] WHERE x = $k)`` holds where no match has a ``q.k`` for which it is not known to be
``$k``: ``NOT EXISTS { (p)-->(q) WHERE NOT coalesce(q.k = $k, false) }``.  No list is made then, and matching stops at
the first.  Where the pattern's own ``p`` is one of a written list of vertices, as in ``WHERE p IN [a, b]``, each of
these has a condition of its own, on that vertex alone.

``WHERE any(r IN $rows WHERE r.id = a.id AND r.least < a.age)`` is ``EXISTS { UNWIND $rows AS r … }``, which is joined
with the rows: as a condition, it would be tested on each with each map of the argument.

``size([(a)-[r]->() | r])`` is ``COUNT { (a)-[r]->() }``: nothing is listed to be counted.  A list comprehension over a
pattern comprehension, ``[x IN [(a)-->(b) | b] WHERE (x)-->(:T) | x.k]``, is one with both conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced, walk
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import LOCAL, SUBQUERIES
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.rename import renamed, rewritten

Query = TypeVar("Query")

_ITEM = "#item of an argument"
"""The name of an item of a list that is an argument, which no other variable has."""
_MOST = 8
"""Vertices of a list up to which each gets a condition."""


def with_existence(query: Query, arguments: Mapping[str, object]) -> Query:
    """Return a query in whose MATCH clauses such quantifiers are EXISTS."""
    found = (part for part in walk(query) if isinstance(part, ast.ListPredicate))
    if not any(_over_pattern(part) or _over_maps(part, arguments) for part in found):
        return query
    uses = _uses(query)

    def change(node: object) -> object:
        if not isinstance(node, ast.MatchClause) or node.where is None:
            return None
        conditions = [
            each for condition in conjuncts(node.where) for each in _existence(condition, node, uses, arguments)
        ]
        where = all_hold(conditions, node.where.span)
        return None if where == node.where else replace(node, where=where)

    return rewritten(query, change)


def with_counts(query: Query) -> Query:
    """Return a query in which sizes of pattern comprehensions are counts, where no item of theirs can fail."""
    if not any(isinstance(part, ast.PatternComprehension) for part in walk(query)):
        return query
    return rewritten(rewritten(query, _fused), _counted)


def _fused(node: object) -> ast.Expression | None:
    """Return a list comprehension over a pattern comprehension of vertices or edges as one; None for anything else."""
    if not isinstance(node, ast.ListComprehension):
        return None
    source = rewritten(node.source, _fused)
    if not isinstance(source, ast.PatternComprehension):
        return None
    said = node.where, node.result
    if not isinstance(source.result, ast.Variable) or not _sees_the_same(said, node.variable, source.pattern):
        return None
    where, result = renamed(rewritten(said, _fused), {node.variable.name: source.result.name})
    both = [*conjuncts(source.where), *conjuncts(where)]
    return replace(source, where=all_hold(both, node.span), result=result or source.result, span=node.span)


def _sees_the_same(said: object, item: ast.Variable, pattern: ast.PathPattern) -> bool:
    """Whether what is said of an item of a list means the same among the names of the pattern that lists it."""
    parts = walk(said)
    if any(isinstance(part, LOCAL) for part in parts):
        return False
    inner = (part for part in parts if isinstance(part, SUBQUERIES))
    return ({*_uses(tuple(inner))} - {item.name}).isdisjoint(_uses(pattern))


def _counted(node: object) -> ast.Expression | None:
    match node:
        case ast.FunctionCall(name, (ast.PatternComprehension(pattern, where, result),)) if (
            name.lower() == "size" and pattern.variable is None and _cannot_fail(result, pattern)
        ):
            match = ast.MatchClause((pattern,), where=rewritten(where, _counted), span=node.span)
            return ast.Subquery("count", ast.Composite(((match,),), span=node.span), node.span)
    return None


def _cannot_fail(item: ast.Expression, pattern: ast.PathPattern) -> bool:
    """Whether an item is there for each match: a value, or a property of a vertex."""
    if isinstance(item, ast.Property):
        return any(node.variable == item.base for node in pattern.nodes)
    return isinstance(item, ast.Variable | ast.Literal)


def _over_pattern(node: ast.ListPredicate) -> bool:
    """Whether a quantifier is one over a pattern, whose condition brings in no names and is the same each time."""
    if node.quantifier not in ("all", "any", "none") or node.where is None:
        return False
    if not isinstance(node.source, ast.PatternComprehension) or node.source.pattern.variable is not None:
        return False
    source = node.source
    parts = [part for each in (node.where, source.where, source.result) for part in walk(each)]
    if any(isinstance(part, LOCAL) or _is_volatile(part) for part in parts):
        return False
    if not any(isinstance(part, SUBQUERIES) for part in parts):
        return True
    # A pattern names vertices, not values; within EXISTS it is tested with the match.
    alone = node.quantifier == "any" and isinstance(source.result, ast.Variable) and source.where is None
    return alone and _sees_the_same(node.where, node.variable, source.pattern)


def _over_maps(node: ast.ListPredicate, arguments: Mapping[str, object]) -> bool:
    """Whether a quantifier asks of the maps of an argument whether a condition holds for some, as it does each time."""
    if node.quantifier != "any" or not isinstance(node.source, ast.Parameter):
        return False
    if not isinstance(arguments.get(node.source.name), list | tuple):  # UNWIND makes a row of what is no list
        return False
    parts = walk(node.where)
    if any(isinstance(part, (*LOCAL, *SUBQUERIES)) or _is_volatile(part) for part in parts):
        return False
    return any(isinstance(part, ast.Property) and part.base == node.variable for part in parts)


def _is_volatile(part: object) -> bool:
    return isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE


def _existence(
    condition: ast.Expression, match: ast.MatchClause, uses: Counter[str], arguments: Mapping[str, object]
) -> Iterator[ast.Expression]:
    """Yield what holds where a condition does: itself, or that matches exist, or do not."""
    if isinstance(condition, ast.ListPredicate) and _over_maps(condition, arguments):
        yield _some_map(condition)
        return
    if not isinstance(condition, ast.ListPredicate) or not _over_pattern(condition):
        yield condition
        return
    found, span = condition.source, condition.span
    assert isinstance(found, ast.PatternComprehension)
    test = replaced(condition.where, {condition.variable: found.result})
    if condition.quantifier != "any":  # what is not known to be so is as bad as what is not
        fails = condition.quantifier == "all"
        test = ast.FunctionCall("coalesce", (test, ast.Literal(not fails, span)), span=span)
        test = ast.Unary("NOT", test, span) if fails else test
    pattern, where = found.pattern, [*conjuncts(found.where), test]
    if condition.quantifier == "any":
        yield _exists(pattern, where, span)
        return
    own = Counter({name: uses[name] - count for name, count in _uses(condition).items()})
    listed = next((each for each in where[:-1] if _among_vertices(each, match, pattern, own)), None)
    if listed is None:
        yield ast.Unary("NOT", _exists(pattern, where, span), span)
        return
    assert isinstance(listed, ast.In)
    assert isinstance(listed.item, ast.Variable)
    assert isinstance(listed.collection, ast.ListLiteral)
    rest = [each for each in where if each is not listed]
    for vertex in dict.fromkeys(listed.collection.items):
        assert isinstance(vertex, ast.Variable)
        name = {listed.item.name: vertex.name}
        yield ast.Unary("NOT", _exists(renamed(pattern, name), [renamed(each, name) for each in rest], span), span)


def _some_map(condition: ast.ListPredicate) -> ast.Subquery:
    """Return whether a condition holds for some item of an argument, as rows that are made of it."""
    span, item = condition.span, ast.Variable(_ITEM, condition.span)
    returns = ast.ReturnClause((ast.ReturnItem(item, None, _ITEM, span),), span=span)
    unwound = ast.UnwindClause(condition.source, item, span)
    where = renamed(condition.where, {condition.variable.name: _ITEM})
    return ast.Subquery(
        "exists", ast.Composite(((unwound, ast.WithClause(returns, where, span), returns),), span=span), span
    )


def _exists(pattern: ast.PathPattern, where: list[ast.Expression], span: ast.Span) -> ast.Subquery:
    match = ast.MatchClause((pattern,), where=all_hold(where, span), span=span)
    return ast.Subquery("exists", ast.Composite(((match,),), span=span), span)


def _among_vertices(
    condition: ast.Expression, match: ast.MatchClause, pattern: ast.PathPattern, elsewhere: Counter[str]
) -> bool:
    """Whether a condition is that a vertex which only the pattern has is one of some that the clause matches."""
    if not isinstance(condition, ast.In) or not isinstance(condition.item, ast.Variable):
        return False
    if not isinstance(condition.collection, ast.ListLiteral) or not 0 < len(condition.collection.items) <= _MOST:
        return False
    matched = {node.variable for path in match.patterns for node in path.nodes if node.variable is not None}
    own = condition.item in [node.variable for node in pattern.nodes] and not elsewhere[condition.item.name]
    return own and all(item in matched for item in condition.collection.items)


def _uses(node: object) -> Counter[str]:
    """Return how often each variable is named."""
    return Counter(part.name for part in walk(node) if isinstance(part, ast.Variable))
