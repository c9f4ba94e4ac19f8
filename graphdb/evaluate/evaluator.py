"""What the parts of the evaluator know of the whole: that it compiles expressions, and where errors belong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from graphdb.common.errors import GraphDBError, TypeMismatchError
from graphdb.evaluate.calls import wrong
from graphdb.evaluate.context import Context, Row
from graphdb.evaluate.values import Answer, Several, any_of, type_name
from graphdb.grammar import syntax as ast

Evaluate = Callable[[Row], Any]
"""What an expression yields for a row."""


class Evaluator(ABC):
    """Compiles the expressions of one statement to functions of a row."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def compile(self, node: ast.Expression) -> Evaluate:
        """Return the function from a row to the expression's value."""

    def value(self, node: ast.Expression) -> Evaluate:
        """Return the function to the expression's value, literals that a list of matched ones holds by theirs, too."""
        read, valued = self.compile(node), self.context.valued
        return read if isinstance(node, ast.Literal | ast.Property) else lambda row: valued(read(row))

    def condition(self, node: ast.Expression) -> Callable[[Row], Answer]:
        """Return the function from a row to whether a condition holds."""
        value = self.compile(node)
        return lambda row: self._truth(value(row), node)

    def error(
        self, node: ast.Expression, message: str, kind: type[GraphDBError] = TypeMismatchError, hint: str | None = None
    ) -> GraphDBError:
        """Return an error at a node."""
        return wrong(self.context, node, message, kind, hint)

    def _truth(self, value: Any, node: ast.Expression) -> Answer:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Several):
            return any_of(lambda a, _: self._truth(a, node), value, None)
        raise self.error(node, f"expected a condition, found {type_name(value)}")
