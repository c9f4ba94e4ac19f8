"""ORDER BY with SKIP and LIMIT: a query without them, whose rows have what they are ordered by as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.values.types import Base, Type
from graphdb.grammar import syntax as ast
from graphdb.live.forms.linear import NOTHING, refuse_window
from graphdb.live.forms.substitution import NotRewritten
from graphdb.pattern.free import free_variables
from graphdb.pattern.rename import rewritten
from graphdb.relational.projection.sql import columns_of

MORE = 1000
"""Rows that are stored beside twice as many as SKIP and LIMIT take."""
_KEY = "#order"
"""What columns are called that rows are ordered by and do not show, with their numbers: no user calls anything so."""
_ORDERED = frozenset((Base.BOOLEAN, Base.INTEGER, Base.DECIMAL, Base.FLOAT, Base.STRING, Base.DATE, Base.NULL))
"""Types whose values are ordered in a table as ORDER BY has them."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows of a query are its answer.

    Attributes
    ----------
    query
        The query without ORDER BY, SKIP and LIMIT: its columns are those of the answer and, behind them, keys.
    shown
        How many columns the answer has.
    keys
        By part of ORDER BY, the name of the column.
    order_by, skip, limit
        As they are written.
    """

    query: ast.Query | ast.Composite
    shown: int
    keys: tuple[str, ...]
    order_by: tuple[ast.OrderItem, ...]
    skip: int
    limit: int

    @property
    def needed(self) -> int:
        """How many first rows the answer is made of."""
        return self.skip + self.limit

    @property
    def stored(self) -> int:
        """How many first rows are stored, so that some may go before they are asked for again."""
        return 2 * self.needed + MORE

    @property
    def first(self) -> ast.Query | ast.Composite:
        """The query for these."""
        returns = _returns(self.query)
        return _returning(self.query, replace(returns, order_by=self.order_by, limit=ast.Literal(self.stored)))

    def order(self, *, backwards: bool = False) -> str:
        """Return what rows are ordered by, in SQL, or the other way round."""
        return ", ".join(
            f"{quoted(key)} {'DESC' if part.descending is not backwards else 'ASC'}"
            f" NULLS {'FIRST' if part.nulls_first is not backwards else 'LAST'}"
            for key, part in zip(self.keys, self.order_by, strict=True)
        )

    def unordered(self, types: Mapping[str, Type | None]) -> bool:
        """Whether SQL may order the rows otherwise, whose columns have these types; None: of several types."""
        return any((type := types[key]) is None or type.base not in _ORDERED for key in self.keys)


def windowed(query: ast.Query | ast.Composite) -> Window | None:
    """Return a query's window; None where it has all rows.

    Raises
    ------
    NotRewritten
        Its rows are not chosen by an order of their own.
    """
    if isinstance(query, ast.Composite) and len(query.parts) > 1:
        return None
    returns = _returns(query)
    if returns.skip is None and returns.limit is None:
        return None
    skip = 0 if returns.skip is None else _number(returns.skip)
    limit = None if returns.limit is None else _number(returns.limit)
    if not returns.order_by or returns.star or skip is None or limit is None:
        refuse_window(returns)
        return None
    items, places = [*returns.items], list[int]()
    for part in returns.order_by:
        expression = _of_items(part.expression, returns.items)
        named = [item.expression for item in items]
        if expression not in named:
            if returns.distinct:
                raise NotRewritten("its rows are ordered by what is none of their columns")
            name = f"{_KEY} {len(items) - len(returns.items)}"
            items.append(ast.ReturnItem(expression, name, name))
            named.append(expression)
        places.append(named.index(expression))
    names = [column.sql_name for column in columns_of([(item, NOTHING) for item in items])]
    keys = tuple(names[place] for place in places)
    plain = replace(returns, items=tuple(items), order_by=(), skip=None, limit=None)
    made = _returning(query, plain)
    return Window(made, len(returns.items), keys, returns.order_by, skip, limit)


def _of_items(expression: ast.Expression, items: Sequence[ast.ReturnItem]) -> ast.Expression:
    """Return what rows are ordered by, over the names that the columns are made of."""
    aliases = {item.alias: item.expression for item in items if item.alias is not None}
    used = free_variables(expression) & aliases.keys()
    if isinstance(expression, ast.Variable) or not used:
        return aliases.get(expression.name, expression) if isinstance(expression, ast.Variable) else expression
    hidden = {name for name in used if aliases[name] != ast.Variable(name)}
    if hidden & free_variables(tuple(item.expression for item in items)):
        raise NotRewritten("it orders its rows by names that stand for two things")

    def change(part: object) -> object:
        return aliases[part.name] if isinstance(part, ast.Variable) and part.name in hidden else None

    return rewritten(expression, change)


def _number(node: ast.Expression) -> int | None:
    """Return what SKIP or LIMIT says; None where it is computed."""
    match node:
        case ast.Literal(value=int(value)) if value >= 0:
            return value
    return None


def _returns(query: ast.Query | ast.Composite) -> ast.ReturnClause:
    returns = query.returns if isinstance(query, ast.Query) else query.parts[-1][-1]
    assert isinstance(returns, ast.ReturnClause)  # or it writes, which continuous queries do not
    return returns


def _returning(query: ast.Query | ast.Composite, returns: ast.ReturnClause) -> ast.Query | ast.Composite:
    """Return a query with another last clause."""
    if isinstance(query, ast.Query):
        return replace(query, returns=returns)
    return replace(query, parts=((*query.parts[0][:-1], returns),))
