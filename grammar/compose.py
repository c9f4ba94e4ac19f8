"""Putting clauses and paths together: what is checked where a sequence of them becomes one node."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from graphdb.common.errors import ParseError
from graphdb.grammar import syntax as s
from graphdb.grammar.walk import is_node, mapped, walk

_WRITING = (s.CreateClause, s.MergeClause, s.SetClause, s.RemoveClause, s.DeleteClause)


_GENERAL = {
    s.Subscript,
    s.Slice,
    s.Case,
    s.ListComprehension,
    s.ListPredicate,
    s.Reduce,
    s.MapProjection,
    s.PatternComprehension,
    s.ShortestPath,
    s.Subquery,
}
"""Expressions that one SQL statement over one match does not hold."""


class Blame(Protocol):
    """Makes an error with its place."""

    given: bool
    """Whether a parameter stands for all properties somewhere."""

    def error(self, message: str, position: int, hint: str | None = None) -> ParseError:
        """Return the error at an offset."""


def composed(
    parts: Sequence[tuple[s.ClauseNode, ...]], unions: Sequence[tuple[bool, int]], blame: Blame, span: s.Span
) -> s.Query | s.Composite:
    """Return the query of linear parts; ``unions`` says of each UNION between them whether it keeps all, and where.

    Raises
    ------
    ParseError
        RETURN stands before other clauses, or UNION and UNION ALL are mixed.
    """
    for position in [at for keeps_all, at in unions if keeps_all is not unions[0][0]]:
        raise blame.error("UNION and UNION ALL cannot stand in one query", position)
    for part in parts:
        others = tuple(clause for clause in part if not isinstance(clause, s.CreateClause))
        for element in walk(others) if blame.given else ():
            if isinstance(element, (s.NodePattern, s.EdgePattern)) and element.given is not None:
                hint = "name the properties: {key: $value}"
                raise blame.error("only CREATE takes a parameter for all properties", element.given.span.start, hint)
        for clause, after in itertools.pairwise(part):
            if isinstance(clause, s.ReturnClause):
                hint = "to go on from its rows, write WITH"
                raise blame.error("RETURN ends a query", after.span.start, hint)
    if len(parts) == 1:
        returns, matches = parts[0][-1], [clause for clause in parts[0][:-1] if isinstance(clause, s.MatchClause)]
        if isinstance(returns, s.ReturnClause) and len(matches) == len(parts[0]) - 1 and is_plain(matches, returns):
            return s.Query(tuple(matches), returns, span)
    return s.Composite(tuple(parts), bool(unions) and unions[0][0], span)


def is_plain(matches: Sequence[s.MatchClause], returns: s.ReturnClause) -> bool:
    """Whether a query may be one plan and one SQL statement; what it asks of SQL is found out when it is bound."""
    if any(match.optional for match in matches):
        return False
    asked: list[object] = []
    for match in matches:
        asked.append(match.where)
        for path in match.patterns:
            if not path.plain:
                return False
            for element in (*path.nodes, *path.edges):
                assert not isinstance(element, s.Subpath)  # the path is plain
                asked += (element.where, element.properties)
    returned = walk((returns.items, returns.order_by, returns.skip, returns.limit))
    if any(isinstance(part, s.PatternPredicate) for part in returned):
        return False
    return not any(
        type(part) in _GENERAL or (isinstance(part, s.PathPattern) and not part.plain)
        for part in (*returned, *walk(tuple(asked)))
    )


_SUBQUERIES = (s.PatternPredicate, s.PatternComprehension, s.ShortestPath, s.Subquery)
_LOCAL = (s.ListComprehension, s.ListPredicate, s.Reduce)


def as_projected(where: s.Expression | None, returns: s.ReturnClause) -> s.Expression | None:
    """Return the condition of a WITH with the name of what is projected in the place of the same expression.

    So ``WITH DISTINCT a.name AS name WHERE a.name = 'Ada'`` asks of what is left, as ORDER BY does.  A name means what
    WITH makes of it: an expression with one that stands for something else from there on is another expression.
    """
    if where is None:
        return None
    items = [(item.expression, item.alias) for item in returns.items if item.alias is not None]
    changed = {alias for expression, alias in items if expression != s.Variable(alias)}
    known = {
        expression: alias
        for expression, alias in items
        if alias in changed and _is_looked_for(expression) and changed.isdisjoint(_names_in(expression))
    }
    return _renamed(where, known) if known else where


def _is_looked_for(expression: s.Expression) -> bool:
    """Whether an expression is more than a constant, and the same each time: ``rand()`` is not."""
    parts = walk(expression)
    if any(isinstance(part, s.FunctionCall) and not part.arguments for part in parts):
        return False
    return any(isinstance(part, (s.Variable, s.CountStar, s.FunctionCall)) for part in parts)


def _names_in(node: object) -> set[str]:
    return {part.name for part in walk(node) if isinstance(part, s.Variable)}


def _renamed(node: Any, known: Mapping[s.Expression, str]) -> Any:
    """Return an expression with names for others; what lists inside bring in is no row's, nor what patterns do."""
    if is_node(node):
        if node in known:
            return s.Variable(known[node], getattr(node, "span", s.HERE))
        if isinstance(node, _SUBQUERIES):
            return node
        if isinstance(node, _LOCAL):
            local = {node.variable.name, *([node.accumulator.name] if isinstance(node, s.Reduce) else [])}
            inner = {expression: name for expression, name in known.items() if local.isdisjoint(_names_in(expression))}
            outside = (node.source, node.start) if isinstance(node, s.Reduce) else (node.source,)
            # What a local name hides of the row's: a column of that name cannot be distinguished from it.
            inner = {expression: name for expression, name in inner.items() if name not in local}
            return mapped(
                node,
                lambda part: (
                    part
                    if isinstance(part, s.Variable) and part.name in local
                    else _renamed(part, known if any(part is each for each in outside) else inner)
                ),
            )
    return mapped(node, lambda part: _renamed(part, known))


def unwound(clauses: Sequence[s.ClauseNode]) -> tuple[s.ClauseNode, ...]:
    """Return clauses with UNWIND in the place of a FOREACH that stands last, where no row has to come back from it."""
    *before, last = clauses
    if not isinstance(last, s.ForeachClause):
        return tuple(clauses)
    return (*before, s.UnwindClause(last.source, last.variable, last.span), *unwound(last.updates))


def called(
    query: s.Query | s.Composite,
    imported: tuple[s.Variable, ...] | bool | None,
    optional: bool,
    blame: Blame,
    span: s.Span,
) -> s.CallClause:
    """Return the CALL of a query, which sees the ``imported`` names (True: all, False: none), or those it begins with.

    Raises
    ------
    ParseError
        It does not return rows with names, or the parts of its UNION begin with different names.
    """
    whole = query if isinstance(query, s.Composite) else s.Composite((query.clauses,), span=query.span)
    for part in whole.parts:
        writing = next((clause for clause in part if isinstance(clause, (*_WRITING, s.ForeachClause))), None)
        if writing is not None:
            hint = "let UNWIND or WITH make its rows, and write after it"
            raise blame.error("CALL { } cannot write", writing.span.start, hint)
        returns = part[-1]
        if not isinstance(returns, s.ReturnClause):
            raise blame.error("CALL { } ends with RETURN", returns.span.end)
        if returns.star:
            raise blame.error("CALL { } returns what it names", returns.span.start, "name the columns in place of *")
        for item in returns.items:
            if item.alias is None and not isinstance(item.expression, s.Variable):
                raise blame.error("CALL { } needs a name for an expression", item.span.start, "add AS name")
    if imported is not None:
        return s.CallClause(whole, None if imported is True else tuple(imported or ()), optional, span)
    first, *others = [_begins_with(part) for part in whole.parts]
    if any(set(other) != set(first) for other in others):
        raise blame.error("the parts of this UNION import different names", span.start, "write CALL (name, …) { … }")
    return s.CallClause(whole, first, optional, span)


def invoked(
    clause: s.ProcedureClause, where: s.Expression | None, optional: bool, blame: Blame
) -> tuple[s.ClauseNode, ...]:
    """Return the clauses that the call of a procedure is.

    A condition on what it yields is that of a ``WITH *``; OPTIONAL is that of a subquery, whose rows are the call's.

    Raises
    ------
    ParseError
        OPTIONAL stands without YIELD.
    """
    span = clause.span
    clauses: list[s.ClauseNode] = [clause]
    if where is not None:
        clauses.append(s.WithClause(s.ReturnClause((), True, span=span), where, span))
    if not optional:
        return tuple(clauses)
    if clause.yields is None:
        raise blame.error("OPTIONAL CALL needs YIELD", span.start, "name what the call yields: YIELD column, …")
    returns = s.ReturnClause(tuple(map(_yielded, clause.yields)), span=span)
    return (s.CallClause(s.Composite(((*clauses, returns),), span=span), None, True, span),)


def _yielded(item: s.YieldItem) -> s.ReturnItem:
    return s.ReturnItem(item.variable, item.variable.name, item.variable.name, item.span)


def with_columns(query: s.Composite, blame: Blame) -> s.Composite:
    """Return a statement in which procedures are called: one that is a call alone returns what that yields.

    Raises
    ------
    ParseError
        Another call leaves arguments or columns to the procedure.
    """
    alone = _only_call(query)
    for part in walk(query):
        if not isinstance(part, s.ProcedureClause) or part is alone:
            continue
        if part.arguments is None:
            hint = f"write CALL {part.name}(…)"
            raise blame.error("a call among other clauses needs brackets with its arguments", part.span.start, hint)
        if part.star:
            hint = "write YIELD column, …"
            raise blame.error("a call among other clauses names what it yields", part.span.start, hint)
    if alone is None or alone.yields is None:
        return query
    returns = s.ReturnClause(tuple(map(_yielded, alone.yields)), span=alone.span)
    return replace(query, parts=((*query.parts[0], returns),))


def _only_call(query: s.Composite) -> s.ProcedureClause | None:
    """Return the call that is all there is to a query, but for its own condition and OPTIONAL."""
    first, *rest = query.parts[0]
    if len(query.parts) > 1 or any(clause.span != first.span for clause in rest):
        return None
    return query.called


def _begins_with(part: Sequence[s.ClauseNode]) -> tuple[s.Variable, ...]:
    """Return the names that the query of a CALL takes from outside by beginning ``WITH name, …``."""
    first = part[0]
    if not isinstance(first, s.WithClause) or first.returns.star:
        return ()
    return tuple(item.expression for item in first.returns.items if isinstance(item.expression, s.Variable))


def check_ends(query: s.Query | s.Composite, blame: Blame) -> None:
    """Check that a whole query ends with RETURN or, where there is no UNION, with writing or a call without YIELD."""
    if isinstance(query, s.Query):
        return
    for part in query.parts:
        if isinstance(part[-1], s.ReturnClause):
            continue
        calls = isinstance(part[-1], s.ProcedureClause) and part[-1].yields is None
        if len(query.parts) > 1 or not (calls or isinstance(part[-1], _WRITING)):
            raise blame.error("the query ends too early: expected RETURN", part[-1].span.end)


_IMPLIED = (s.PathMode.WALK, s.PathMode.TRAIL)
"""Path modes that ask no more than any match mode under which edges differ."""


def matched(
    patterns: tuple[s.PathPattern, ...],
    mode: s.MatchMode | None,
    where: s.Expression | None,
    span: s.Span,
    *,
    optional: bool = False,
) -> s.MatchClause:
    """Return a MATCH clause; a mode that is written holds for its walks, too, where the default lets them go free."""
    if mode is not None and mode is not s.MatchMode.REPEATABLE_ELEMENTS:
        patterns = tuple(replace(path, mode=None) if path.mode in _IMPLIED else path for path in patterns)
    return s.MatchClause(patterns, mode or s.MatchMode.DIFFERENT_EDGES, where, span, optional)


def path_of(
    elements: Sequence[s.NodePattern | s.EdgePattern | s.Subpath],
    blame: Blame,
    span: s.Span,
    variable: s.Variable | None = None,
    mode: s.PathMode | None = None,
    selector: s.Selector | None = None,
) -> s.PathPattern:
    """Return the path of nodes, edges and parts in brackets; nodes that were left out are unnamed ones.

    Raises
    ------
    ParseError
        Two nodes follow each other.
    """
    nodes: list[s.NodePattern] = []
    edges: list[s.EdgePattern | s.Subpath] = []
    for element in elements:
        if isinstance(element, s.NodePattern):
            if len(nodes) > len(edges):
                raise blame.error("expected an edge between two nodes", element.span.start)
            nodes.append(element)
        else:
            if len(nodes) == len(edges):
                nodes.append(s.NodePattern(span=s.Span(element.span.start, element.span.start)))
            edges.append(element)
    if len(nodes) == len(edges):
        nodes.append(s.NodePattern(span=s.Span(span.end, span.end)))
    return s.PathPattern(tuple(nodes), tuple(edges), span, variable, mode, selector)
