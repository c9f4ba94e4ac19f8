"""Names and their scopes: what a check of a query knows, and how it says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphdb.common.errors import BindError, GraphDBError, ParseError, nearest
from graphdb.grammar import syntax as ast
from graphdb.pattern.names import Names
from graphdb.procedures.registry import Procedures
from graphdb.semantics.aggregation import aggregates_in
from graphdb.semantics.types import Static


class Scopes:
    """Checks one statement: its ``text``, over the ``names`` and ``procedures`` of a database."""

    def __init__(self, names: Names, procedures: Procedures, text: str) -> None:
        self.names = names
        self.procedures = procedures
        self.text = text

    def error(self, kind: type[GraphDBError], message: str, node: Any, hint: str | None = None) -> GraphDBError:
        """Return an error at a node."""
        return kind(message, text=self.text, position=node.span.start, hint=hint)

    def unknown(self, variable: ast.Variable, scope: Mapping[str, Static]) -> None:
        """Raise: nothing has this name."""
        near = nearest(variable.name, scope)
        hint = f"did you mean '{near[0]}'?" if near else None
        if self.text[: variable.span.start].rstrip(" ").endswith("--"):
            hint = "a comment begins with //"
        raise self.error(BindError, f"unknown variable '{variable.name}'", variable, hint)

    def new(self, variable: ast.Variable, scope: Mapping[str, Static]) -> None:
        """Raise if a name that is brought in is taken."""
        if variable.name in scope:
            raise self.error(BindError, f"'{variable.name}' is there already", variable)

    def no_aggregate(self, node: ast.Expression) -> None:
        """Raise if an expression has an aggregate in it."""
        found = next(aggregates_in(node), None)
        if found is not None:
            raise self.error(ParseError, "an aggregate cannot stand here", found, "aggregate in WITH or RETURN first")
