"""What a query makes of the groups of a WITH: conditions on them, as HAVING has it, and columns.

An expression of these is one of what is grouped by, of aggregates, or of both.  What it makes of the former alone is
the same in each row of a group, so it is grouped by that, too; the rest is computed of the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdb.grammar import syntax as ast
from graphdb.grammar.syntax.names import HERE
from graphdb.grammar.walk import is_node, mapped
from graphdb.live.forms.substitution import NotRewritten
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.rename import rewritten
from graphdb.semantics.aggregation import contains_aggregate, is_aggregate

_AGGREGATE = "#aggregate"
"""What the columns of aggregates are called, with their numbers: no user calls anything so."""
_KEY = "#key"


def aggregate(number: int) -> ast.Variable:
    """Return the variable that stands for an aggregate of a WITH."""
    return ast.Variable(f"{_AGGREGATE} {number}")


@dataclass(frozen=True, slots=True)
class Final:
    """Columns and conditions over the columns of groups."""

    items: tuple[ast.ReturnItem, ...]
    conditions: tuple[ast.Expression, ...]

    @property
    def computed(self) -> set[str]:
        """The columns of groups that something is computed of."""
        items = [item.expression for item in self.items if not isinstance(item.expression, ast.Variable)]
        return free_variables((*items, *self.conditions))


def finished(
    keys: Sequence[ast.Expression],
    aggregates: Sequence[ast.Expression],
    items: Sequence[ast.ReturnItem],
    conditions: Sequence[ast.Expression],
) -> tuple[tuple[ast.ReturnItem, ...], Final]:
    """Return the columns of groups, and what is made of them.

    Parameters
    ----------
    keys, aggregates
        What a WITH groups by, and what it aggregates, over the names before it.
    items, conditions
        Columns and conditions over the same names, and over variables for the aggregates (:func:`aggregate`).

    Raises
    ------
    NotRewritten
        A list or a subquery depends on an aggregate.
    """
    names: dict[ast.Expression, str] = {}
    for key in keys:
        names.setdefault(key, f"{_KEY} {len(names)}")
    shown = tuple(replace(item, expression=_over(item.expression, names)) for item in items)
    chosen = tuple(_over(condition, names) for condition in conditions)
    columns = [*names.items()]
    columns += [(call, aggregate(i).name) for i, call in enumerate(aggregates)]
    return tuple(ast.ReturnItem(expression, name, name) for expression, name in columns), Final(shown, chosen)


def apart(items: Sequence[ast.ReturnItem]) -> tuple[tuple[ast.ReturnItem, ...], Final]:
    """Return the columns of groups, and what columns that are made of aggregates and keys are over these."""
    keys = [item.expression for item in items if not contains_aggregate(item.expression)]
    calls: list[ast.Expression] = []

    def change(part: object) -> object:
        if not is_aggregate(part):
            return None
        if part not in calls:
            calls.append(part)
        return aggregate(calls.index(part))

    shown = [replace(item, expression=rewritten(item.expression, change)) for item in items]
    return finished(keys, calls, shown, ())


def _over(node: Any, names: dict[ast.Expression, str]) -> Any:
    """Return an expression over the columns of groups; what it makes of keys alone is a key then."""
    if isinstance(node, tuple):
        return mapped(node, lambda part: _over(part, names))
    if not is_node(node):
        return node
    free = free_variables(node)
    if not free or (isinstance(node, ast.Variable) and node.name.startswith(_AGGREGATE)):
        return node
    if not any(name.startswith(_AGGREGATE) for name in free) and isinstance(node, ast.Expression):
        return ast.Variable(names.setdefault(node, f"{_KEY} {len(names)}"), getattr(node, "span", HERE))
    if isinstance(node, (*LOCAL, *SUBQUERIES)):
        raise NotRewritten("a list or a subquery depends on an aggregate")
    return mapped(node, lambda part: _over(part, names))
