"""The relational algebra that columns in memory are computed by: a clause is a tree of these, frozen.

It stands beside the SQL of a clause, as far as the clause consists of columns, properties of vertices in columns,
integers, comparisons and the usual aggregates.  To DuckDB a statement over a hundred rows costs one to three
milliseconds before it sees a row, and the names of vertices that are grouped cost a hash of texts for each match; here
groups are groups of ids, and names are gathered for the rows that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, TypeAlias

from graphdb.storage.catalog import EdgeLabel


@dataclass(frozen=True, slots=True)
class ColumnOf:
    """A column of the rows."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for all rows; a point in time is in UTC, and compared with others."""

    value: int | float | bool | str | date | datetime


@dataclass(frozen=True, slots=True)
class PropertyOf:
    """A property of the vertices in a column: single values, in memory."""

    vertex: ColumnOf
    label: EdgeLabel


@dataclass(frozen=True, slots=True)
class LabelOf:
    """The name of the label of edges whose codes are in a column; null where these are."""

    code: ColumnOf
    names: Mapping[int, str] = field(compare=False, repr=False)
    """As a user would write them, by the ids of the labels."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator over values: ``= <> < <= > >=``, ``AND OR NOT``, ``+ - *``, ``//`` and ``%`` of integers and ``/`` of
    others, ``IS NULL``, ``coalesce``, ``toFloat``, ``abs``, parts of dates (``year`` …), ``date`` of times; ``CASE``,
    whose operands are conditions, each followed by its result, and what else it is; ``struct``, a map or a list of
    several types, whose operands are whether there is one and its values; ``items``, of which sums alone are made: all
    operands of each row; ``names``, the list of the operands after the first whose bits are set in that, the first
    being the lowest; functions of one text; ``duration`` of months, days, seconds and nanoseconds, and ``months
    between`` … two times; ``begin of`` a unit of dates; ``edge`` of columns of codes, starts, ends and ordinals, and
    ``edge of both``, whose codes say which of two ends it starts at.
    """

    operator: str
    operands: tuple[Vector, ...]
    constants: tuple[int | str, ...] = ()
    """What a function of texts is told besides (:mod:`graphdb.relational.vectors.typed.texts`)."""


@dataclass(frozen=True, slots=True)
class OfItems:
    """What is made of the items of lists, each of which is a row beside what the row of its list has."""

    what: Literal["list", "all", "any", "none", "single", "sum"]
    """The list of the results of those that fulfil the condition; whether all, any … do; or what the results add up to,
    one after the other."""
    lists: Vector
    name: str
    """The column of the items."""
    where: Vector | None
    result: Vector | None
    """None for the items themselves."""
    start: Vector | None = None
    """What results are added to."""

    @property
    def inner(self) -> tuple[Vector, ...]:
        """What is computed of each item."""
        return tuple(vector for vector in (self.where, self.result) if vector is not None)


MIXED_NUMERIC = frozenset(f"{operator} of numbers" for operator in ("CASE", "coalesce", "+", "-", "*"))
"""Operators whose results are integers in some rows and floating-point numbers in others."""

Vector: TypeAlias = "ColumnOf | Constant | PropertyOf | LabelOf | Operation | OfItems"
"""An expression: a value for each row."""


def names_of(vector: Vector) -> set[str]:
    """Return the columns that an expression takes."""
    match vector:
        case ColumnOf(name):
            return {name}
        case PropertyOf(column) | LabelOf(column):
            return {column.name}
        case Operation(_, operands):
            return {name for operand in operands for name in names_of(operand)}
        case OfItems(_, lists, own, _, _, start):
            outer = names_of(lists) if start is None else names_of(lists) | names_of(start)
            return outer | {name for each in vector.inner for name in names_of(each)} - {own}
        case Constant():
            return set()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A value for each group of rows, of those of their values that are not null."""

    function: Literal[
        "count", "sum", "min", "max", "avg", "collect", "stDev", "stDevP", "percentileCont", "percentileDisc"
    ]
    operand: Vector | None
    """None for ``count(*)``."""
    distinct: bool = False
    matches: str | None = None
    """The column of how many matches a row stands for (null: one)."""
    order: Vector | None = None
    """What a list is in the order of; None for that of the rows."""
    nulls: bool = False
    """Whether a list has nulls, too."""
    share: float = 0.0
    """Of the values of a group, those that are not above its percentile."""


@dataclass(frozen=True, slots=True)
class Key:
    """What rows are ordered by."""

    vector: Vector
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """The rows that a clause makes of others."""

    rows: Rows
    where: tuple[Vector, ...]
    columns: tuple[tuple[str, Vector | Aggregate], ...]
    """Their names, and what they are."""
    grouped: bool = False
    """Whether rows with equal columns, aggregates left out, become one."""
    order: tuple[Key, ...] = ()
    """Of what the clause makes where it is grouped, else of the rows before it."""
    window: tuple[int, int | None] = (0, None)
    """SKIP and LIMIT."""
    numbered: str | None = None
    """The name of a further column, the number of a row in their order, if there is one."""
    within: str | None = None
    """The column of groups, of each of which rows are ordered, and a window is cut out; None for all rows together."""

    @property
    def is_smaller(self) -> bool:
        """Whether there are fewer rows than before, so that it pays to have them before SQL goes on from them."""
        return self.grouped or self.window[1] is not None


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several clauses with the same columns, one after the other."""

    parts: tuple[Rows, ...]
    mixed: frozenset[str] = frozenset()
    """Columns that are integers in some parts and floating-point numbers in others: unions in all rows."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Rows with further columns of others, no two of which have the same key: those of the one whose key a row has."""

    rows: Rows
    others: Rows
    key: tuple[str | None, str]
    """The columns of integers, none of which is null, that must be equal: of the rows (None for their numbers, from 0
    on), and of the others."""
    added: tuple[tuple[str, str, int | Literal["empty"] | None], ...]
    """The names of further columns, which of the others they are, and what a row without one has: a number, an empty
    list, or None for null."""


@dataclass(frozen=True, slots=True)
class Outer:
    """Rows with further columns of others: each once for each of the others that names its place; null without any."""

    rows: Rows
    others: Rows
    place: str
    """The column of the others that says which row, counted from 0, each belongs to; never null."""
    added: tuple[tuple[str, str], ...]
    """The names of further columns, and which of the others they are."""


@dataclass(frozen=True, slots=True)
class Inner:
    """Rows with further columns of others: each once for each of the others whose key it has."""

    rows: Rows
    others: Rows
    key: tuple[str, str]
    """The columns of integers, none of which is null, that must be equal: of the rows, and of the others."""
    added: tuple[tuple[str, str], ...]
    """The names of further columns, and which of the others they are."""


@dataclass(frozen=True, slots=True)
class Unwound:
    """Rows once for each of some values of theirs, or of the items of a list, in the order of these."""

    rows: Rows
    where: tuple[Vector, ...]
    items: tuple[Vector, ...]
    """Of one type, or integers and floating-point numbers."""
    name: str
    """The column that they are in."""
    listed: bool = False
    """Whether there is one value, a list."""


@dataclass(frozen=True, slots=True)
class One:
    """One row, of a column that nobody asks for."""

    column: str


Rows: TypeAlias = "str | Clause | Union | Lookup | Outer | Inner | Unwound | One"
"""Rows: those that go by a name, or what a clause makes."""
