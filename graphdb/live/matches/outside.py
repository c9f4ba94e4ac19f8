"""Resources that a query names in its expressions: their labels and properties may change without any of its matches.

``<http://…>.k``, ``iri($text).k`` and ``predicate(e).k`` read of a vertex that no pattern binds, so that what delta
plans find says nothing of it.  To compare with one reads nothing of it.
"""

from __future__ import annotations

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import parts_of, walk

_OF_EDGES = frozenset({"startnode", "endnode"})


def reads_outside(query: ast.Query | ast.Composite) -> bool:
    """Whether a query may read of a resource that its patterns do not bind, or ask whether it is there."""
    patterns = (part for part in walk(query) if isinstance(part, (ast.NodePattern, ast.EdgePattern)))
    elements = {part.variable.name for part in patterns if part.variable is not None}
    return _reads(query, elements, set())


def _reads(node: object, elements: set[str], harmless: set[int]) -> bool:
    """Whether a piece of syntax has such a resource in another place than those of ``harmless`` pieces, by identity."""
    if isinstance(node, ast.Comparison):
        harmless = harmless | set(map(id, node.operands))
    elif isinstance(node, ast.In) and isinstance(node.collection, ast.ListLiteral):
        harmless = harmless | {id(node.item), *map(id, node.collection.items)}
    elif isinstance(node, ast.NodePattern) and node.iri is not None:
        harmless = harmless | {id(node.iri)}
    if id(node) not in harmless and _is_resource(node, elements):
        return True
    return any(_reads(part, elements, harmless) for part in parts_of(node))


def _is_resource(node: object, elements: set[str]) -> bool:
    """Whether an expression may be a resource by its name, or an edge's label."""
    if isinstance(node, ast.IriLiteral):
        return True
    if not isinstance(node, ast.FunctionCall):
        return False
    of = node.arguments[0] if node.arguments else None
    match node.name.lower():
        case "predicate":
            return True
        case "iri":  # of an element it is a text
            called = isinstance(of, ast.FunctionCall) and of.name.lower() in _OF_EDGES
            return not called and not (isinstance(of, ast.Variable) and of.name in elements)
    return False
