"""When rows of a MERGE may be taken together: those that find nothing and ask for the same make it once.

openCypher's rows go one after the other, each over what those before it have made.  Mostly a row can find what another
has made only if it asks for the very same: what is new hangs together, by vertices that nobody else has.  Where edges
between known vertices may be part of several patterns, where a pattern can be found turned round, and where MERGE sets
what it asks for, only one row after the other tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk


def apart(clause: ast.MergeClause, bound: Collection[str]) -> bool:
    """Whether a row finds what another has made only if both ask for the same; ``bound`` are the rows' names."""
    pattern = clause.pattern
    ends = [node.variable is not None and node.variable.name in bound for node in pattern.nodes]
    turned = [isinstance(edge, ast.EdgePattern) and edge.direction is ast.Direction.BOTH for edge in pattern.edges]
    if len(pattern.edges) == 1 and turned[0] and not any(ends) and _alike(*pattern.nodes):
        return False
    if len(pattern.edges) > 1 and (any(turned) or any(left and right for left, right in pairwise(ends))):
        return False
    asked = dict(_asked(clause))
    return all(key not in asked or asked[key] == value for key, value in _set(clause))


def either_way(clause: ast.MergeClause, bound: Collection[str]) -> tuple[str, str] | None:
    """Return the names of two known vertices that one edge joins, whichever is its start; None for other patterns."""
    pattern = clause.pattern
    names = [node.variable.name for node in pattern.nodes if node.variable is not None and node.variable.name in bound]
    match pattern.edges:
        case (ast.EdgePattern(direction=ast.Direction.BOTH),) if len(names) == 2:
            return names[0], names[1]
    return None


def _alike(one: ast.NodePattern, other: ast.NodePattern) -> bool:
    """Whether what is made for one vertex of a pattern may be found as another."""
    words = [sorted(part.text for part in walk(node.labels) if isinstance(part, ast.Word)) for node in (one, other)]
    keys = [{key.text for key, _ in node.properties.items} if node.properties else set() for node in (one, other)]
    return words[0] == words[1] and keys[0] == keys[1]


def _asked(clause: ast.MergeClause) -> Iterator[tuple[str, ast.Expression]]:
    """Yield the properties that a pattern asks for."""
    for element in (*clause.pattern.nodes, *clause.pattern.edges):
        if not isinstance(element, ast.Subpath) and element.properties is not None:
            yield from ((key.text, value) for key, value in element.properties.items)


def _set(clause: ast.MergeClause) -> Iterator[tuple[str, ast.Expression]]:
    """Yield the properties that MERGE sets, as far as the text names them."""
    for item in (*clause.on_create, *clause.on_match):
        if isinstance(item, ast.SetItem) and isinstance(item.target, ast.Property):
            yield item.target.key.text, item.value
        elif isinstance(item, ast.SetItem) and isinstance(item.value, ast.MapLiteral):
            yield from ((key.text, value) for key, value in item.value.items)
