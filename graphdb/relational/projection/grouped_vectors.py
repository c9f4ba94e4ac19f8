"""Rows of groups and of UNION, as what columns in memory are computed by: put together of the clauses that
:mod:`graphdb.relational.projection.columns.clauses` translates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphdb.common.values.types import FLOAT, INTEGER, Column
from graphdb.relational.projection.columns.values import HANDED_ON, KEYS
from graphdb.relational.projection.relation import Source, rows_of
from graphdb.relational.projection.sql import Projection
from graphdb.relational.vectors.algebra import Aggregate, Clause, ColumnOf, Constant, Inner, Lookup, Rows, Union, Vector
from graphdb.sql.value import SqlValue


def of_all_groups(clause: Clause, groups: Source) -> Rows | None:
    """Return the aggregates of all groups there are (column ``g``): of those without rows, what they are of nothing."""
    rows = rows_of(groups)
    found: list[tuple[str, str, int | None]] = []
    for name, each in clause.columns[:-1]:
        if rows is None or not isinstance(each, Aggregate) or each.function == "collect":
            return None
        found.append((name, name, 0 if each.function in ("count", "sum", "stDev", "stDevP") else None))
    assert rows is not None
    named = tuple((name, ColumnOf(name)) for name, _ in clause.columns)
    return Clause(Lookup(rows, clause, ("g", "g"), tuple(found)), (), named)


def counted(rows: Rows, *, exists: bool) -> Rows:
    """Return how many rows there are of each group (column ``g``) as a column ``n``, or 1 if only that is asked for."""
    number: Vector | Aggregate = Constant(1) if exists else Aggregate("count", None)
    return Clause(rows, (), (("g", ColumnOf("g")), ("n", number)), grouped=True)


def collected(rows: Rows, group: str = "g", item: str = "c0") -> Rows:
    """Return the lists of what rows of each group have as ``item``, as a column ``n`` beside that of groups, ``g``."""
    items = Aggregate("collect", ColumnOf(item), nulls=True)
    return Clause(rows, (), (("g", ColumnOf(group)), ("n", items)), grouped=True)


def listed_by_row(rows: Rows | None, name: str, lists: Rows) -> Rows | None:
    """Return rows with a column more: the list (``n``) of those with the number of the row (``g``), else an empty one.

    None where the rows are not those of a table, which have numbers.
    """
    table = rows
    while isinstance(table, Lookup):
        table = table.rows
    return (
        Lookup(rows, lists, (None, "g"), ((name, "n", "empty"),))
        if rows is not None and isinstance(table, str)
        else None
    )


def grouped_values(rows: Rows | None, name: str, column: str, groups: str, values: Rows, *, lists: bool) -> Rows | None:
    """Return rows with a column more: of the group that the vertex in a column is of, a number (``n``), else 0; or a
    list, else an empty one.
    """
    if rows is None:
        return None
    group = f"{name} of group"
    known = Lookup(rows, groups, (column, "c0"), ((group, "g", None),))
    return Lookup(known, values, (group, "g"), ((name, "n", "empty" if lists else 0),))


def with_rows_of_groups(rows: Rows | None, column: str, groups: str, others: Rows | None, count: int) -> Rows | None:
    """Return rows once for each of the others of the group that the vertex in a column is of, whose so many columns are
    ``s0`` ….
    """
    if rows is None or others is None:
        return None
    group = "group of the row"
    known = Lookup(rows, groups, (column, "c0"), ((group, "g", None),))
    return Inner(known, others, (group, "g"), tuple((f"s{i}", f"c{i}") for i in range(count)))


def united(
    parts: Sequence[Projection], columns: Sequence[Column], keeps_all: bool, *, of_groups: bool = False
) -> Rows | None:
    """Return the rows of the parts of a UNION, each once if it does not keep all; ``of_groups`` with a column ``g``."""
    types = HANDED_ON if keeps_all else KEYS
    mixed = set()
    for i, same in enumerate(zip(*(part.columns for part in parts), strict=True)):
        if {each.type for each in same} == {INTEGER, FLOAT}:
            mixed.add(f"c{i}")
        elif len({each.type for each in same}) > 1 or columns[i].type.base not in types:
            return None
        if any(each.many for each in same):
            return None
    if mixed and not keeps_all:  # of equal numbers an integer comes first, and stands for all
        if len(mixed) > 1 or of_groups:
            return None
        (at,) = (int(name[1:]) for name in mixed)
        parts = sorted(parts, key=lambda part: part.columns[at].type == FLOAT)
    rows = [part.rows for part in parts]
    if None in rows:
        return None
    # Groups are many, so that hardly any two rows of a part are equal: all parts are looked at in one go.
    each = (_ungrouped(part) if of_groups and not keeps_all else part for part in rows if part is not None)
    whole = Union(tuple(each), frozenset(mixed))
    names = [f"c{i}" for i in range(len(columns))] + ["g"] * of_groups
    return whole if keeps_all else Clause(whole, (), tuple((name, ColumnOf(name)) for name in names), grouped=True)


def _ungrouped(rows: Rows) -> Rows:
    """Return the rows of a clause that leaves each once, without leaving any out; others as they are."""
    if not isinstance(rows, Clause) or rows.order or rows.window != (0, None) or rows.numbered is not None:
        return rows
    kept = all(isinstance(vector, ColumnOf) for _, vector in rows.columns)
    return replace(rows, grouped=False) if kept else rows


def groups_of(source: Source, values: Sequence[SqlValue], numbered: str) -> Clause | None:
    """Return the different values of rows as columns ``c0`` …, and their numbers."""
    rows = rows_of(source)
    if rows is None or not all(value.type.base in KEYS and value.column and not value.many for value in values):
        return None
    columns = tuple((f"c{i}", ColumnOf(value.column or "")) for i, value in enumerate(values))
    return Clause(rows, (), columns, grouped=True, numbered=numbered)
