"""Which batches may change an answer that is compared: those that change triples of a label that the query names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdb.common.errors import BindError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.live.matches.delta import asks_for_one
from graphdb.pattern.labels import edge_labels
from graphdb.relational.session.reads import facts_read

if TYPE_CHECKING:
    from graphdb.relational.snapshot import Snapshot

_OF_ALL = frozenset({"graphs", "iri", "predicate"})
"""Functions that say more than what the triples of the labels do that a query names."""


def labels_read(query: ast.Query | ast.Composite, snapshot: Snapshot, text: str) -> frozenset[int] | None:
    """Return the labels of the triples that a query reads: edges, properties, vertex labels; None for any.

    It ranges over vertices that have one of these, too: those of a pattern without edges and labels are any that occur.
    """
    names = snapshot.names
    found = None if names.with_subclasses else facts_read(query, names, snapshot.store.type_label, text)
    if found is None:
        return None
    labels = set(found)
    for piece in walk(query):
        match piece:
            case ast.IriLiteral() | ast.ProcedureClause() | ast.MatchClause(mode=ast.MatchMode.INDUCED):
                return None
            case ast.FunctionCall() if piece.name.lower() in _OF_ALL:
                return None
            case ast.Subpath(repeat=ast.Repeat(low=0)) | ast.EdgePattern(repeat=ast.Repeat(low=0)):
                return None
            case ast.EdgePattern():
                try:
                    own = None if piece.labels is None else edge_labels(piece.labels, names, text)
                except BindError:
                    return None
                if own is None:
                    return None
                labels.update(own)
            case ast.PathPattern(edges=()) if not _has_label(piece.nodes[0]):
                return None
    return frozenset(labels)


def _has_label(node: ast.NodePattern) -> bool:
    """Whether what a vertex of a pattern is bound to certainly has a label."""
    return node.labels is not None and asks_for_one(node.labels)
