"""Vertices and edges that the statement itself has deleted: later clauses may name them, and read nothing of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphdb.common.errors import ExecutionError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.interpret.context import Row
from graphdb.interpret.values import Edge, Vertex
from graphdb.writing.joining import OF_ALL
from graphdb.writing.stages import Stage


def check_deleted(stage: Stage, rows: Sequence[Row], deleted: Collection[Vertex | Edge], text: str) -> None:
    """Raise `ExecutionError` where a stage reads properties or labels of what some row has deleted."""
    names = {
        name for row in rows for name, value in row.items() if isinstance(value, Vertex | Edge) and value in deleted
    }
    called = {name: name for name in names}
    for clause in stage.reads:
        if not called:
            return
        for part in walk(clause):
            base = _read_of(part)
            if isinstance(base, ast.Variable) and base.name in called:
                assert isinstance(part, ast.Expression)
                raise ExecutionError("this was deleted by the statement", text=text, position=part.span.start)
        called = _names_after(clause, called)


def _read_of(part: object) -> object:
    """Return what a piece of syntax reads properties or labels of."""
    match part:
        case ast.Property() | ast.Subscript() | ast.MapProjection():
            return part.base
        case ast.LabelPredicate():
            return part.operand
        case ast.FunctionCall() if part.name.lower() in OF_ALL and len(part.arguments) == 1:
            return part.arguments[0]
    return None


def _names_after(clause: ast.ClauseNode, called: Mapping[str, str]) -> dict[str, str]:
    """Return the names that go on meaning what was deleted."""
    if not isinstance(clause, ast.WithClause):
        return dict(called)
    kept = dict(called) if clause.returns.star else {}
    for item in clause.returns.items:
        if isinstance(item.expression, ast.Variable) and item.expression.name in called:
            kept[item.alias or item.text] = item.expression.name
    return kept
