"""Queries with OPTIONAL MATCH, and of single vertices: which rows a batch changes, by what is required of a match.

A row of such a query belongs to a match of the clauses that are required, its *binding*: with each extension by the
optional clauses, or with nulls.  It changes where that binding comes or goes, one of its extensions does, or a property
of their vertices.  So delta plans follow the required pattern, and with each optional clause the pattern of both; and
the query is asked before and after a batch for the vertices of the bindings that are found.
"""

from __future__ import annotations

from dataclasses import replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.compose import is_plain
from graphdb.grammar.walk import walk
from graphdb.live.aggregates.distinct_values import NUMBER
from graphdb.pattern.free import SUBQUERIES

NO_MATCHES = "its rows are not the matches of one pattern"


class NotIncremental(Exception):
    """Why delta plans do not maintain a query."""


def with_optional(query: ast.Composite) -> ast.Query:
    """Return a query of several clauses as one of MATCH clauses, the last of which are optional.

    Raises
    ------
    NotIncremental
        It has others.
    """
    *clauses, returns = query.parts[0]
    matches = tuple(clause for clause in clauses if isinstance(clause, ast.MatchClause))
    if len(query.parts) > 1 or len(matches) < len(clauses) or not isinstance(returns, ast.ReturnClause):
        raise NotIncremental(NO_MATCHES)
    optional = [match.optional for match in matches]
    if not matches or optional[0] or optional != sorted(optional):
        raise NotIncremental(NO_MATCHES)
    if not is_plain([replace(match, optional=False) for match in matches], returns):
        raise NotIncremental(NO_MATCHES)
    return ast.Query(matches, returns, span=query.span)


def runnable(query: ast.Query) -> ast.Query | ast.Composite:
    """Return a query as what prepares queries takes it."""
    if any(match.optional for match in query.matches):
        return ast.Composite((query.clauses,), span=query.span)
    return query


def required(query: ast.Query) -> tuple[ast.MatchClause, ...]:
    """Return the clauses that are not optional."""
    return tuple(match for match in query.matches if not match.optional)


def is_alone(query: ast.Query) -> bool:
    """Whether what is required is a vertex without edges, which has a label or a property that is named."""
    if len(query.matches) > 1 or len(query.matches[0].patterns) > 1:
        return False
    parts = list(walk(query.matches[0].patterns))
    nodes = [part for part in parts if isinstance(part, ast.NodePattern)]
    if len(nodes) != 1 or any(isinstance(part, ast.EdgePattern) for part in parts):
        return False
    return nodes[0].iri is None and nodes[0].labels is not None and _asks_for_one(nodes[0].labels)


def _asks_for_one(labels: ast.LabelExpression) -> bool:
    """Whether what fulfils a label expression has a label."""
    match labels:
        case ast.LabelNot():
            return False
        case ast.LabelAnd(operands):
            return any(map(_asks_for_one, operands))
        case ast.LabelOr(operands):
            return all(map(_asks_for_one, operands))
    return True


def bindings(query: ast.Query) -> tuple[ast.Query, ...] | None:
    """Return queries for the vertices of bindings that have other rows after a batch; None where rows are matches.

    Each is of one pattern: what is required, alone and with an optional clause, and with those whose vertices or edges
    this names in turn.  It returns the vertices that have names, and how many matches they are of.

    Raises
    ------
    NotIncremental
        It cannot be asked for some bindings alone.
    """
    first = required(query)
    base = replace(query, matches=first)
    if len(first) == len(query.matches) and not is_alone(query):
        return None
    if any(isinstance(part, SUBQUERIES) for part in walk(query)):
        raise NotIncremental("its conditions or columns have patterns")
    names = list(dict.fromkeys(_vertices(first)))
    if not names:
        raise NotIncremental("what it requires has no vertex with a name")
    items = [ast.ReturnItem(ast.Variable(name), name, name) for name in names]
    number = ast.ReturnItem(ast.CountStar(), NUMBER, NUMBER)
    returns = ast.ReturnClause((*items, number), span=query.returns.span)
    known, clauses = _variables(first), list[tuple[set[str], tuple[ast.MatchClause, ...]]]()
    found = [replace(base, returns=returns)]
    for match in query.matches[len(first) :]:
        own = _variables(match.patterns)
        needed = [(new, chain) for new, chain in clauses if new & own]
        if match.where is not None and any(new & _variables(match.where) - own for new, _ in clauses):
            match = replace(match, where=None)  # which more matches fulfil
        chain = tuple(dict.fromkeys([*(clause for _, before in needed for clause in before)]))
        chain = (*chain, replace(match, optional=False))
        clauses.append((own - known, chain))
        known |= own
        found.append(replace(query, matches=(*first, *chain), returns=returns))
    return tuple(found)


def _vertices(matches: tuple[ast.MatchClause, ...]) -> list[str]:
    """Return the names of vertices in MATCH clauses, as often as they stand there."""
    nodes = (part for part in walk(tuple(match.patterns for match in matches)) if isinstance(part, ast.NodePattern))
    return [node.variable.name for node in nodes if node.variable is not None]


def _variables(syntax: object) -> set[str]:
    return {part.name for part in walk(syntax) if isinstance(part, ast.Variable)}
