"""The SQL after a match, with what is known of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphdb.common.values.types import INTEGER, Column
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.arrays import Direct, Late
from graphdb.relational.projection.relation import BINDINGS, Source
from graphdb.relational.vectors.algebra import Rows
from graphdb.sql.value import SqlValue, column


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
