"""What later clauses need of the bindings of a match: which names have columns, which properties stand beside them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.graph import Wanted
from graphdb.pattern.paths.unroll import is_plain
from graphdb.relational.projection.late import Gathered
from graphdb.relational.projection.relation import Relation
from graphdb.relational.projection.return_clause import named_beside


def needs_of(bound: BoundPattern, names: Collection[str], beside: Collection[str] = ()) -> Wanted:
    """Return what is wanted of a match so that some names have columns, and of edges ``beside`` their properties."""
    edges = [number for number, edge in enumerate(bound.edges) if edge.name in names]
    vertices = {i for i, info in enumerate(bound.vertices) if info.name in names}
    vertices |= {end for edge in edges for end in (bound.edges[edge].source, bound.edges[edge].target)}
    facts = tuple(number for number, edge in enumerate(bound.edges) if edge.name in beside)
    return Wanted(tuple(sorted(vertices)), tuple(sorted(edges)), False, None, facts=facts)


def available(bound: BoundPattern, needs: Wanted) -> list[str]:
    """Return the names that have columns."""
    vertices = [bound.vertices[vertex].name for vertex in needs.vertices]
    return vertices + [bound.edges[edge].name for edge in needs.edges]


def only(relation: Relation, names: Collection[str], facts: Collection[str] = ()) -> Relation:
    """Return bindings of which only some names have columns; of others just their properties, where these have."""
    variables = {name: relation.variables[name] for name in names}
    known = {node: value for node, value in relation.known.items() if _base(node) in {*variables, *facts}}
    return replace(relation, variables=variables, known=known)


def is_of(node: ast.Expression, left: Relation, joins: bool) -> bool:
    """Whether bindings give a property: of what rows do not have, or that these, where they stay, do not know yet.

    Rows may know a property of an edge without having that.
    """
    return node not in left.known and (joins or _base(node) not in left.variables)


def _base(node: ast.Expression) -> str | None:
    """Return the name of what an expression is a property, or a label, of."""
    base = getattr(node, "base" if isinstance(node, ast.Property) else "operand", None)
    return base.name if isinstance(node, Gathered) and isinstance(base, ast.Variable) else None


def read_beside(bound: BoundPattern, then: Sequence[ast.ClauseNode]) -> set[str]:
    """Return the edges of a match of which nothing is read but properties that are columns beside them.

    What is left of the match's own conditions reads them, and later clauses do: plain MATCH, and the WITH or RETURN in
    which names end.  A subquery takes the edge itself.
    """
    matches = [*takewhile(lambda clause: isinstance(clause, ast.MatchClause) and is_plain(clause), then)]
    last = then[len(matches)] if len(matches) < len(then) else None
    returns = last.returns if isinstance(last, ast.WithClause) else last
    known = {node: number for number, choice in bound.choices.items() for node in choice.facts}
    if not known or not isinstance(returns, ast.ReturnClause) or returns.star:
        return set()
    read = (*matches, returns)
    if any(isinstance(part, SUBQUERIES) for part in walk(read)):
        return set()
    whole = named_beside((*read, *bound.residual), known)
    if isinstance(last, ast.WithClause):  # its condition may look back
        whole |= free_variables(last.where)
    whole |= free_variables(tuple(part for part in walk(tuple(bound.residual)) if isinstance(part, SUBQUERIES)))
    parts = [part for part in walk((*read, *bound.residual)) if isinstance(part, ast.Property)]
    return {bound.edges[known[part]].name for part in parts if part in known}.difference(whole)


def only_matches(query: ast.Composite) -> bool:
    """Whether a query returns a constant for each match of some patterns."""
    return all(
        isinstance(last, ast.ReturnClause)
        and not (last.distinct or last.order_by or last.skip or last.limit)
        and all(isinstance(item.expression, ast.Literal) for item in last.items)
        and all(isinstance(clause, ast.MatchClause) for clause in clauses)
        for *clauses, last in query.parts
    )
