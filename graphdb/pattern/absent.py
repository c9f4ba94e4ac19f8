"""Which parts of a pattern have no match for certain, whatever their vertices are: a label or key is nowhere.

They are matched first, so that nothing is computed of the other parts' rows: a condition that fails on one of these
would fail for no row of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from graphdb.common.errors import BindError
from graphdb.grammar import syntax as ast
from graphdb.pattern.labels import edge_labels
from graphdb.pattern.names import Names


def has_no_match(
    paths: Iterable[ast.PathPattern], conditions: Iterable[ast.Expression], names: Names, text: str
) -> bool:
    """Whether some vertex or single edge of paths is of no label that there is, or has to have a key that none has.

    ``conditions`` are what WHERE says, of which those count that say so of one of their vertices.
    """
    with suppress(BindError):  # what is wrong is reported where it is bound
        nodes: set[str] = set()
        for path in paths:
            for node in path.nodes:
                if node.variable is not None:
                    nodes.add(node.variable.name)
                keys = () if node.properties is None else (key for key, _ in node.properties.items)
                if _has_none(node.labels, names, text) or any(_is_nowhere(key, names, text) for key in keys):
                    return True
            for edge in path.edges:
                if isinstance(edge, ast.EdgePattern) and edge.repeat is None and edge.labels is not None:
                    admitted = edge_labels(edge.labels, names, text)
                    if admitted is not None and not any(label in names.edge_labels for label in admitted):
                        return True
        return any(_contradicts(condition, nodes, names, text) for condition in conditions)
    return False


def _contradicts(condition: ast.Expression, nodes: set[str], names: Names, text: str) -> bool:
    """Whether a condition holds for no vertex of some names."""
    match condition:
        case ast.LabelPredicate(ast.Variable(name), labels) if name in nodes:
            return _has_none(labels, names, text)
        case ast.Comparison(_, operands):  # a key that nothing has is null, and nothing compares with it
            for operand in operands:
                match operand:
                    case ast.Property(ast.Variable(name), key) if name in nodes and _is_nowhere(key, names, text):
                        return True
    return False


def _has_none(labels: ast.LabelExpression | None, names: Names, text: str) -> bool:
    """Whether no vertex has labels as an expression says."""
    match labels:
        case ast.LabelChain() if not names.with_subclasses:
            return any(not names.vertex_label(name, text).vertices for name in names.chains(labels.words))
        case ast.LabelAnd():
            return any(_has_none(operand, names, text) for operand in labels.operands)
        case ast.LabelOr():
            return all(_has_none(operand, names, text) for operand in labels.operands)
    return False


def _is_nowhere(key: ast.KeyName, names: Names, text: str) -> bool:
    return not names.property(key.words, text).kinds
