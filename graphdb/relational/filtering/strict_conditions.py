"""Which conditions on a vertex can be true only where it has a property: they are tested on that one's values alone."""

from __future__ import annotations

from collections.abc import Mapping, Sized

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import VertexInfo
from graphdb.relational.filtering.column_filters import asked_constant

_NOT_STRICT = (
    ast.IsNull,
    ast.LabelPredicate,
    ast.Case,
    ast.ListComprehension,
    ast.ListPredicate,
    ast.Reduce,
)
_KNOW_NULL = frozenset({"coalesce", "datatype", "exists", "lang"})
"""Functions that make something of null."""


def by_property(
    info: VertexInfo, arguments: Mapping[str, object]
) -> tuple[dict[ast.KeyName, list[ast.Expression]], list[ast.Expression]]:
    """Split conditions into those that need one property to be there, by property, and the rest."""
    grouped: dict[ast.KeyName, list[ast.Expression]] = {}
    others = []
    for condition in info.conditions:
        if (asked := asked_constant(info.name, condition)) is not None and not info.kinds:
            grouped.setdefault(asked[0], []).append(condition)
            continue
        parts = list(walk(condition))
        own = [part.key for part in parts if isinstance(part, ast.Property) and isinstance(part.base, ast.Variable)]
        properties, direct = {*own}, len(own)
        uses = sum(isinstance(part, ast.Variable) for part in parts)
        calls = {part.name.lower() for part in parts if isinstance(part, ast.FunctionCall)}
        inner = parts[1:] if isinstance(condition, ast.In) else parts  # to be in a list is never true of null
        strict = not calls & _KNOW_NULL and not any(_knows_null(part, arguments) for part in inner)
        if len(properties) == 1 and uses == direct and (strict or asks_presence(condition)) and not info.kinds:
            grouped.setdefault(properties.pop(), []).append(condition)
        else:
            others.append(condition)
    return grouped, others


def asks_presence(condition: ast.Expression) -> bool:
    """Whether a condition is that there is a property: what has none fails it."""
    return isinstance(condition, ast.IsNull) and condition.negated and isinstance(condition.operand, ast.Property)


def _knows_null(part: object, arguments: Mapping[str, object]) -> bool:
    """Whether a part of a condition may be known though a property in it is null: null is not in an empty list."""
    if isinstance(part, ast.In) and not isinstance(part.collection, ast.ListLiteral):
        listed = part.collection
        given = arguments.get(listed.name) if isinstance(listed, ast.Parameter) else getattr(listed, "value", None)
        return not (isinstance(given, Sized) and len(given))
    if isinstance(part, ast.ListLiteral):
        return not part.items or any(isinstance(inner, ast.Property) for inner in walk(part))
    if isinstance(part, ast.Boolean):
        return not all(any(isinstance(inner, ast.Property) for inner in walk(side)) for side in part.operands)
    if isinstance(part, ast.MapLiteral):
        return any(isinstance(inner, ast.Property) for inner in walk(part))
    return isinstance(part, _NOT_STRICT)
