"""The routes that a query can go: as SQL over matches, its expressions in Python, into a table, and from SQL.

Paths have two routes of their own: searched set by set, and one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import SUBQUERIES
from graphdb.relational.lowering.lower import Lowering
from graphdb.relational.paths.run import PathRun
from graphdb.semantics.aggregation import is_aggregate
from graphdb.sql.expressions import ExpressionCompiler
from graphdb.sql.udf import _OF_ELEMENTS, _OF_LITERALS
from graphdb.sql.value import SqlValue


def path_by_path(patch: pytest.MonkeyPatch) -> None:
    """Have all paths searched for one by one."""
    for name in ("prepare_selected", "prepare_unrolled"):
        patch.setattr(PathRun, name, lambda *_: None)
    for name in ("_searched", "_unrolled"):
        patch.setattr(Lowering, name, lambda *_: None)
    patch.setattr(Lowering, "_without_paths", lambda _, matches, rest, given: (matches, rest, None))


_FOUND = (ast.Literal, ast.Parameter, ast.Variable, ast.CountStar, ast.IriLiteral, ast.Narrowed, *SUBQUERIES)
"""Constants, what only SQL finds, whoever computes the expression around it, and what joins compare by."""


def python_forms(patch: pytest.MonkeyPatch) -> None:
    """Have Python compute all expressions: what SQL finds in the graph, groups and joins is all that it is left."""
    native = ExpressionCompiler._native

    def found(self: ExpressionCompiler, node: ast.Expression) -> SqlValue:
        match node:
            case ast.Property(ast.Variable()) | ast.LabelPredicate(ast.Variable()):
                return native(self, node)
            case ast.FunctionCall(name, (ast.Variable(),)) if name.lower() in _OF_ELEMENTS:
                return native(self, node)
            case ast.FunctionCall(name, (ast.Property(ast.Variable()),)) if name.lower() in _OF_LITERALS:
                return native(self, node)
        if node in self.scope.known or isinstance(node, _FOUND) or is_aggregate(node):
            return native(self, node)
        raise NotSupportedError("expressions are to be computed in Python")

    patch.setattr(ExpressionCompiler, "_native", found)


def in_python(
    db: graphdb.Database, text: str, arguments: Mapping[str, object] | None = None, timeout: float | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a query whose expressions Python computes."""
    with pytest.MonkeyPatch.context() as patch:
        python_forms(patch)
        return db.query(
            f"{text}\n", arguments, timeout=timeout
        ).fetchall()  # a text of its own: nothing is cached of it


def bag(rows: Iterable[tuple[Any, ...]]) -> Counter[str]:
    """Rows in no order, where types are distinguished, and the items of lists are in no order either."""
    return Counter(repr(tuple(map(_plain, row))) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return sorted(map(_plain, value), key=repr)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in sorted(value.items())}
    return value


def every_route(db: graphdb.Database, text: str) -> dict[str, Counter[str]]:
    """The rows of a reading query by each route, as bags."""
    found = {"default": bag(db.query(text).fetchall()), "in Python": bag(in_python(db, text))}
    found["cypher()"] = bag(db.sql(f"SELECT * FROM cypher($$ {text} $$)").fetchall())
    db.query(f"CREATE OR REPLACE TABLE made AS {text}")
    found["table"] = bag(db.sql("FROM made").fetchall())
    return found
