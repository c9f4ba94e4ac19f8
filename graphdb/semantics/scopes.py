"""Names and their scopes: what a check of a query knows, and how it says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from graphdb.common.errors import BindError, GraphDBError, ParseError, nearest
from graphdb.grammar import syntax as ast
from graphdb.pattern.names import Names
from graphdb.procedures.registry import Procedures
from graphdb.semantics.aggregation import aggregates_in
from graphdb.semantics.types import Static

_FUNCTIONS = {
    name: meant
    for meant, names in (
        ("date", "current_date today"),
        ("datetime", "current_timestamp now sysdate localtimestamp"),
        ("time", "current_time"),
        ("rand", "random"),
    )
    for name in names.split()
}
"""What SQL and others write without brackets, and the functions that are meant."""

_NAMED = 8
"""Variables that a hint names, at most."""


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
        hint = self._meant(variable, scope)
        raise self.error(BindError, f"unknown variable '{variable.name}'", variable, hint)

    def _meant(self, variable: ast.Variable, scope: Mapping[str, Static]) -> str | None:
        """Return what a name may be meant to be that nothing has."""
        name, known = variable.name, [other for other in scope if other.isidentifier()]
        before, after = self.text[: variable.span.start], self.text[variable.span.end :]
        if before.rstrip(" ").endswith("--"):
            return "a comment begins with //"
        if (near := nearest(name, known)) != []:
            return f"did you mean '{near[0]}'?"
        if name.lower() in _FUNCTIONS:
            return f"did you mean {_FUNCTIONS[name.lower()]}()?"
        introduced = re.search(rf"[(\[]\s*{re.escape(name)}\b|\bAS\s+{re.escape(name)}\b", before, re.IGNORECASE)
        if introduced is not None and re.search(r"\bWITH\b(?!\s+['\"])", before[introduced.end() :], re.IGNORECASE):
            return f"WITH hands on what it names alone: WITH {name}, …"
        if after.startswith("."):
            return f"known here: {', '.join(known[:_NAMED])}" if known else None
        elements = [other for other in known if scope[other].base in ("vertex", "edge")]
        of_element = f"a property is written with its variable, {elements[0]}.{name}; " if elements else ""
        return f"{of_element}a text stands in quotes, '{name}'" if name.isidentifier() else None

    def new(self, variable: ast.Variable, scope: Mapping[str, Static]) -> None:
        """Raise if a name that is brought in is taken."""
        if variable.name in scope:
            raise self.error(BindError, f"'{variable.name}' is there already", variable)

    def no_aggregate(self, node: ast.Expression) -> None:
        """Raise if an expression has an aggregate in it."""
        found = next(aggregates_in(node), None)
        if found is not None:
            raise self.error(ParseError, "an aggregate cannot stand here", found, "aggregate in WITH or RETURN first")
