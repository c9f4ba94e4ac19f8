"""The SQL after a match, with what is known of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphdb.common.values.types import INTEGER, Base, Column
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.arrays import Direct, Late
from graphdb.relational.projection.relation import BINDINGS, Source
from graphdb.relational.vectors.algebra import Rows
from graphdb.sql.value import SqlValue, column

Order = Sequence[tuple[str, str]]
"""What rows are ordered by: SQL of values, and how, as ``ASC NULLS LAST``, of which sort keys take no part alone."""

_FEW = 16
"""Rows up to which the first ones of each group wait in places that are taken beforehand."""

_EXACT = {Base.NODE, Base.INTEGER, Base.STRING, Base.BOOLEAN}
"""Types of values that come back from DuckDB's sort keys, as the first ones wait there, as they were: not -0.0."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The SQL after the match."""

    sql: str
    parameters: Mapping[str, object]
    columns: tuple[Column, ...]
    window: tuple[int, int | None] = (0, None)
    """SKIP and LIMIT, which stand in ``sql`` too."""
    direct: tuple[Direct, ...] | None = None
    """The same result without SQL, where it is that simple."""
    ordered: bool = False
    """Whether the rows are in an order."""
    grouped: str | None = None
    """The same for bindings of which no two are equal in their vertices: nothing is left to group."""
    reads: frozenset[str] = frozenset()
    """The names of the tables and views that it reads, of those that a program makes."""

    rows: Rows | None = None
    """The same by columns in memory, where it is as simple as that."""
    late: Late | None = None
    """The same result with less SQL, after which properties are gathered; ``sql`` is for SQL that goes on from it."""
    keyed: str | None = None
    """Of groups whose windows are small: their rows before these are cut, in the order of a further column, ``at``."""

    @property
    def source(self) -> Source:
        """Its rows, for SQL that goes on from them."""
        return Source(f"({self.sql})", self.reads, rows=self.rows)


Compiled = tuple[ast.ReturnItem, SqlValue]
"""An item of the clause, and its value."""


def counted(items: tuple[ast.ReturnItem, ...], window: tuple[int, int | None]) -> Projection:
    """Return the one row of a query that only counts, which needs no order: the bindings are (count)."""
    columns = columns_of([(item, column("count", INTEGER)) for item in items])
    chosen = ", ".join(f"b.count AS c{i}" for i in range(len(items)))
    return Projection(f"SELECT {chosen} FROM {BINDINGS} b{window_sql(window)}", {}, columns, window)


def window_sql(window: tuple[int, int | None]) -> str:
    """Return SQL that cuts a window out of the rows."""
    skip, limit = window
    sql = f" LIMIT {int(limit)}" if limit is not None else ""
    return sql + (f" OFFSET {int(skip)}" if skip else "")


def order_sql(order: Order) -> str:
    """Return SQL that orders the rows."""
    return f" ORDER BY {', '.join(f'{key} {direction}' for key, direction in order)}" if order else ""


def windows_sql(chosen: str, rest: str, order: Order, window: tuple[int, int | None], grouped: bool) -> str:
    """Return SQL that orders the rows and cuts a window out of them, or out of those of each group, their column ``g``.

    ``chosen`` are the columns, after SELECT, and ``rest`` is what follows.  What groups are ordered by is a column
    before it is, since DuckDB takes nothing that may be an error behind OVER.
    """
    skip, limit = window
    if not grouped or (not skip and limit is None):
        return f"{chosen}{rest}{order_sql(order)}{window_sql(window)}"
    keys = [f"o{i}" for i in range(len(order))]
    made = "".join(f", {key} AS {name}" for name, (key, _) in zip(keys, order, strict=True))
    ordered = order_sql([(f"w.{name}", direction) for name, (_, direction) in zip(keys, order, strict=True)])
    left = f" EXCLUDE ({', '.join(keys)})" if keys else ""
    upper = "" if limit is None else f" AND {skip + limit}"
    tested = f"BETWEEN {skip + 1}{upper}" if upper else f"> {skip}"
    first = f"QUALIFY row_number() OVER (PARTITION BY w.g{ordered}) {tested}"
    return f"SELECT w.*{left} FROM ({chosen}{made}{rest}) w {first}{ordered}"


def keyed_sql(sql: str, after: str, order: Order, window: tuple[int, int | None], group: str | None) -> str | None:
    """Return SQL of rows with a key to order them by, where each group is cut to a few of them."""
    skip, limit = window
    if group is None or not order or limit is None or not 0 < skip + limit <= _FEW:
        return None
    keys = ", ".join(f"{key}, '{direction}'" for key, direction in order)
    return f"{sql}, create_sort_key({keys}) AS at{after}"


def listed(projection: Projection, item: str) -> tuple[str, str]:
    """Return SQL of rows ``q``, and of a list of what they have, in their order: of those that windows leave of groups.

    DuckDB finds the first few of each group in one pass, where it would sort all rows twice.
    """
    if projection.keyed is None or projection.columns[0].type.base not in _EXACT:
        return f"SELECT p.*, row_number() OVER () AS at FROM ({projection.sql}) p", f"list({item} ORDER BY q.at ASC)"
    skip, limit = projection.window
    first = f"arg_min(row({item}), q.at, {skip + (limit or 0)})"  # of values as they are it leaves nulls out
    return projection.keyed, f"list_transform({first}[{skip + 1}:], lambda kept: kept[1])"


def columns_of(compiled: Sequence[Compiled]) -> tuple[Column, ...]:
    """Return the columns of some items."""
    keys = [_key(item) for item, _ in compiled]
    lowered = Counter(key.lower() for key in keys)
    columns = []
    for (item, value), named in zip(compiled, keys, strict=True):
        name = item.alias or item.text
        sql_name = named if lowered[named.lower()] == 1 else name.replace(".", "_")
        columns.append(Column(name, sql_name, value.type, value.many, value.bases))
    return tuple(columns)


def _key(item: ast.ReturnItem) -> str:
    """Return the name of an item's column in SQL: a property without alias goes by its key."""
    if item.alias is None and isinstance(item.expression, ast.Property):
        return item.expression.key.words[-1].text
    return item.alias or item.text
