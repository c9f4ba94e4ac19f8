"""CREATE, MERGE, SET, REMOVE and DELETE: what they may name, and what they may be given."""

from __future__ import annotations

from collections.abc import Sequence

from graphdb.common.errors import BindError, ParseError, TypeMismatchError
from graphdb.grammar import syntax as ast
from graphdb.semantics.projections import Projections
from graphdb.semantics.types import EDGE, PATH, VERTEX, Scope


class Updates(Projections):
    """Checks clauses that write."""

    def created(self, pattern: ast.PathPattern, scope: Scope, merged: bool = False) -> None:
        """Check a path that CREATE or MERGE makes, and bring in its variables."""
        word = "MERGE" if merged else "CREATE"
        if pattern.mode is not None or pattern.selector is not None:
            raise self.error(ParseError, f"{word} takes a plain path", pattern)
        before = dict(scope)
        for node in pattern.nodes:
            if node.where is not None or (merged and node.iri is not None):
                raise self.error(ParseError, f"{word} takes labels and properties only", node)
            if node.labels is not None and not isinstance(node.labels, (ast.LabelChain, ast.LabelAnd)):
                raise self.error(ParseError, f"{word} takes labels, not conditions on them", node.labels)
            self._values(node.properties, before if not merged else scope)
            if node.variable is None:
                continue
            name = node.variable.name
            if name in scope:
                bare = node.labels is None and node.properties is None and node.iri is None
                if scope[name].base not in ("vertex", "any", "null"):
                    raise self.error(BindError, f"'{name}' is {scope[name]}, not a vertex", node.variable)
                if not bare or (not pattern.edges and name in before):
                    raise self.error(BindError, f"'{name}' is there already", node.variable)
            scope[name] = VERTEX
        for edge in pattern.edges:
            if isinstance(edge, ast.Subpath) or edge.repeat is not None:
                raise self.error(ParseError, f"{word} needs edges one by one", edge)
            if edge.direction is ast.Direction.BOTH and not merged:
                raise self.error(ParseError, "CREATE needs a direction", edge, "write --> or <--")
            if not isinstance(edge.labels, ast.LabelChain) or len(self.names.chains(edge.labels.words)) != 1:
                raise self.error(ParseError, f"{word} needs one label for an edge", edge, "write -[:label]->")
            if edge.where is not None:
                raise self.error(ParseError, f"{word} takes labels and properties only", edge)
            self._values(edge.properties, before if not merged else scope)
            if edge.variable is not None:
                self.new(edge.variable, scope)
                scope[edge.variable.name] = EDGE
        if pattern.variable is not None:
            self.new(pattern.variable, scope)
            scope[pattern.variable.name] = PATH

    def _values(self, properties: ast.MapLiteral | None, scope: Scope) -> None:
        for _, value in properties.items if properties is not None else ():
            self.no_aggregate(value)
            self.type_of(value, scope)

    def items(self, items: Sequence[ast.SetItem | ast.LabelItem], scope: Scope) -> None:
        """Check what SET sets."""
        for item in items:
            if isinstance(item, ast.SetItem):
                self.type_of(item.value, scope)
                self.no_aggregate(item.value)
                if not isinstance(item.target, (ast.Property, ast.Variable, ast.Subscript)):
                    raise self.error(ParseError, "SET needs a property or a variable", item.target)
            self.type_of(item.target, scope)

    def removed(self, clause: ast.RemoveClause, scope: Scope) -> None:
        """Check what REMOVE takes away."""
        for item in clause.items:
            target = item.target if isinstance(item, ast.LabelItem) else item
            if not isinstance(item, ast.LabelItem) and not isinstance(item, (ast.Property, ast.Subscript)):
                raise self.error(ParseError, "REMOVE needs a property or a label", item)
            self.type_of(target, scope)

    def deleted(self, clause: ast.DeleteClause, scope: Scope) -> None:
        """Check what DELETE deletes."""
        for value in clause.values:
            if isinstance(value, ast.LabelPredicate):
                raise self.error(ParseError, "a label cannot be deleted", value, "to take it off: REMOVE n:Label")
            self.no_aggregate(value)
            type = self.type_of(value, scope)
            if type.base not in ("vertex", "edge", "path", "any", "null"):
                raise self.error(TypeMismatchError, f"DELETE needs a vertex, an edge or a path, found {type}", value)
