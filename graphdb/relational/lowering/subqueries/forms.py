"""What the text of a subquery says: what it asks of its rows, the query that it is, and the pattern it begins with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.syntax import Span
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import MOST, Sizes, edge_names
from graphdb.pattern.free import Subquery, free_variables, subqueries_in
from graphdb.pattern.paths.lengths import OF_PATHS
from graphdb.relational.projection.return_clause import returns_each


def calls_procedure(query: ast.Composite) -> bool:
    """Whether a query calls a procedure, which must not happen where there are no rows to do it for."""
    return any(isinstance(part, ast.ProcedureClause) for part in walk(query))


def is_volatile(query: ast.Composite) -> bool:
    """Whether a query yields something else each time: then it runs for each row."""
    return any(isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE for part in walk(query))


def is_existence(node: Subquery) -> bool:
    """Whether a subquery asks whether there are rows."""
    return isinstance(node, ast.PatternPredicate) or (isinstance(node, ast.Subquery) and node.kind == "exists")


def collects(node: Subquery) -> bool:
    """Whether a subquery gathers its rows as a list."""
    pattern = isinstance(node, (ast.PatternComprehension, ast.ShortestPath))
    return pattern or (isinstance(node, ast.Subquery) and node.kind == "collect")


def wants_all_shortest(node: ast.ShortestPath) -> bool:
    """Whether all shortest paths are wanted."""
    return node.pattern.selector is not None and node.pattern.selector.groups


def query_of(node: Subquery) -> ast.Composite:
    """Return a subquery as a query that returns what is gathered of its rows: anything where that is their number."""
    parts: Sequence[Sequence[ast.ClauseNode]]
    once = False
    match node:
        case ast.PatternPredicate():
            parts = [[ast.MatchClause((node.pattern,), span=node.span)]]
        case ast.PatternComprehension():
            match = ast.MatchClause((node.pattern,), where=node.where, span=node.span)
            item = ast.ReturnItem(node.result, "item", "item", node.span)
            parts = [[match, ast.ReturnClause((item,), span=node.span)]]
        case ast.ShortestPath():
            path = ast.Variable(f"{OF_PATHS} shortest", node.span)
            shortest = ast.MatchClause((replace(node.pattern, variable=path),), span=node.span)
            parts = [[shortest, ast.ReturnClause((ast.ReturnItem(path, "path", "path"),), span=node.span)]]
        case ast.Subquery(query=ast.Query() as query):
            parts = [query.clauses]
        case ast.Subquery(query=ast.Composite() as union):
            parts, once = union.parts, len(union.parts) > 1 and not union.keeps_all
    each = all(returns_each(part[-1]) for part in parts if isinstance(part[-1], ast.ReturnClause))
    any_will_do = each and not (once or collects(node))
    return ast.Composite(tuple(_returning(part, node.span, any_will_do) for part in parts), not once, node.span)


def one_match(node: Subquery) -> tuple[list[ast.MatchClause], ast.Expression | None] | None:
    """Return a subquery's MATCH clauses, where it is but one plain pattern, and what is gathered of its matches.

    That is None where only their number is wanted.  None instead of both where the subquery is more than that.
    """
    query = query_of(node)
    if len(query.parts) > 1:
        return None
    *clauses, returns = query.parts[0]
    matches = leading(clauses)
    if not matches or len(matches) < len(clauses):
        return None
    if not isinstance(returns, ast.ReturnClause) or returns.order_by or returns.star or not returns_each(returns):
        return None
    value = returns.items[0].expression if collects(node) else None
    return None if any(subqueries_in(value)) else (matches, value)


def _returning(part: Sequence[ast.ClauseNode], span: Span, any_will_do: bool) -> tuple[ast.ClauseNode, ...]:
    """Return a part of a subquery with something that it returns, the simplest where only its number of rows counts."""
    one = ast.ReturnClause((ast.ReturnItem(ast.Literal(1, span), "one", "one", span),), span=span)
    *clauses, last = part
    if not isinstance(last, ast.ReturnClause):
        return (*part, one)
    return (*clauses, one) if any_will_do else tuple(part)


def leading(clauses: Sequence[ast.ClauseNode], known: Collection[str] = ()) -> list[ast.MatchClause]:
    """Return the MATCH clauses at the head of others that are one pattern together.

    Where they start from rows, the ones of ``known`` names, a clause that has nothing to do with those before it is a
    pattern of its own: what the rows say of either narrows it, and their product is never made.  So is one that names
    an edge of those before it: which edge it is, their rows say; and one with which they would be too large.
    """
    found: list[ast.MatchClause] = []
    names: set[str] = set()
    edges: set[str] = set()
    local: set[str] = set()
    sizes = Sizes()
    for clause in clauses:
        if not isinstance(clause, ast.MatchClause) or clause.optional:
            break
        parts = (part for part in walk(clause.patterns) if isinstance(part, (ast.NodePattern, ast.EdgePattern)))
        mine = {part.variable.name for part in parts if part.variable is not None}
        if (found and known and not names & mine) or edges & mine:
            break
        edges |= edge_names(clause)
        if not mine.isdisjoint(local):
            break  # a subquery before it has that name for something of its own
        if sizes.add(clause) > MOST and found:
            break
        names |= mine
        local |= free_variables(tuple(subqueries_in(clause.where))) - names - {*known}
        found.append(clause)
    return found
