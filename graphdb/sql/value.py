"""What an expression compiles to: SQL with its type and its effects; and the union behind a property of mixed types.

What depends on an expression is decided by the fields of its value.  Its SQL is never searched: names in it may look
like anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.temporal import AT_OFFSETS
from graphdb.common.values.types import (
    CODE_BITS,
    EDGE,
    INTEGER,
    LABEL_OF,
    MEMBERS,
    MOMENT,
    UNION,
    VALUE,
    ZONED,
    Base,
    Column,
    Type,
    list_of,
    sql_type,
)
from graphdb.storage.catalog import EdgeLabel


@dataclass(frozen=True, slots=True)
class Effects:
    """What evaluating SQL does or needs besides yielding a value; ``|`` is the union of that of several operands."""

    can_fail: bool = False
    """Whether it may raise an error: one of the query's own, or that a number is out of range."""
    raises: bool = False
    """Whether SQL of it raises one of the query's own, which DuckDB catches nowhere."""
    volatile: bool = False
    """Whether evaluating it once more may yield something else."""
    subquery: bool = False
    """Whether a subquery is within it, which DuckDB takes in no lambda, and makes a join of elsewhere."""
    reads: frozenset[str] = frozenset()
    """The aliases of the rows of list items that it reads (see :mod:`graphdb.sql.types.list_items`)."""

    def __or__(self, other: Effects) -> Effects:
        if other is self or other is NO_EFFECTS:
            return self
        if self is NO_EFFECTS:
            return other
        return Effects(
            self.can_fail or other.can_fail,
            self.raises or other.raises,
            self.volatile or other.volatile,
            self.subquery or other.subquery,
            self.reads | other.reads,
        )

    @property
    def joined(self) -> Effects:
        """Those of a column of what is joined to rows by an expression with these: a join evaluates that one."""
        return Effects(reads=self.reads) if self.reads else NO_EFFECTS


NO_EFFECTS = Effects()
CAN_FAIL = Effects(can_fail=True)
RAISES = Effects(can_fail=True, raises=True)
VOLATILE = Effects(volatile=True)
SUBQUERY = Effects(subquery=True)


@dataclass(frozen=True, slots=True)
class SqlValue:
    """SQL that yields a value of ``type``.

    ``many`` marks the values of a multi-valued property: a list that stands for "one of these" in a condition, and
    is unwrapped where it holds a single value.

    A value that the compiler returns has the effects of all that it is made of
    (:meth:`graphdb.sql.compiler.Compiler.collected`).
    """

    sql: str
    type: Type
    many: bool = False
    constant: bool = False
    """Whether this is a vertex by its IRI: NULL where the database lacks it, and yet not unknown."""
    items: tuple[SqlValue, ...] = ()
    """Of a tuple or map that is put together here: its items, or what its keys lead to."""
    parts: tuple[str, ...] = ()
    """Of a duration that is put together here: what is NULL where it is, and its parts; of a point in time at an
    offset: the point in time, and the offset; of an exact time: what the clock shows, the nanoseconds, the offset, and
    the name of the zone, empty where the type has none;
    of an edge of bindings: its code, its ends and its ordinal, as columns of the rows, the last empty where no edge is
    parallel to another, and ``both`` where the code says which end it starts at; of a path of bindings: its vertices,
    then the codes of its edges, as such columns.
    """
    bases: frozenset[Base] | None = None
    """Of a union, or of the unions in a list: the members that occur; None where any may."""
    table: tuple[str, EdgeLabel] | None = None
    """Of the values of a property, read from its table: the alias of that, and the property."""
    column: str | None = None
    """Of a column of the rows that an expression is over: its name; None for any other value."""
    field_of: tuple[str, str] | None = None
    """Of a field of such a column's structs: the column's name, and the field's."""
    shared: tuple[str, str] | None = None
    """Of a list that is one for all rows: the table whose one row has it, and the column there."""
    counted: str | None = None
    """Of whether there is any of something: the column of the rows that has their number."""
    texts: tuple[str, ...] = ()
    """Of what is made of texts: SQL of those, whose lengths bound its own."""
    atomic: bool = False
    """Whether it is a name, a parameter, or a part or a cast of one: repeating it costs nothing."""
    effects: Effects = field(default=NO_EFFECTS)

    @property
    def can_fail(self) -> bool:
        """Whether evaluating it may raise an error."""
        return self.effects.can_fail

    @property
    def volatile(self) -> bool:
        """Whether evaluating it once more may yield something else."""
        return self.effects.volatile

    @property
    def subquery(self) -> bool:
        """Whether a subquery is within it."""
        return self.effects.subquery

    @property
    def reads(self) -> frozenset[str]:
        """The aliases of the rows of list items that it reads."""
        return self.effects.reads

    def at(self, name: str, rows: str = "b") -> SqlValue:
        """Return this value where it is a column of rows already."""
        return column(name, self.type, rows, self.many, self.bases)

    @property
    def items_sql(self) -> str:
        """SQL of the items of a list that is one for all rows: the column ``item`` of so many rows."""
        assert self.shared is not None
        table, name = self.shared
        return f"SELECT unnest({name}) AS item FROM {table}"

    def of(self, rows: str) -> str:
        """Return SQL of the column that this value is, in rows that go by another alias."""
        assert self.column is not None
        return f"{rows}.{self.column}"

    def made(self, sql: str, type: Type | None = None, **fields: Any) -> SqlValue:
        """Return a value that is made of this one: with its effects, and of its type if ``type`` is None."""
        return SqlValue(sql, self.type if type is None else type, effects=self.effects, **fields)

    def part(self, name: str, type: Type) -> SqlValue:
        """Return a field of a struct."""
        field_of = None if self.column is None or self.many else (self.column, name.strip('"'))
        return self.made(f"({self.sql}).{name}", type, atomic=self.atomic, field_of=field_of)


def column(
    name: str, type: Type, rows: str = "b", many: bool = False, bases: frozenset[Base] | None = None
) -> SqlValue:
    """Return the value of a column of rows."""
    return SqlValue(f"{rows}.{name}", type, many, bases=bases, column=name, atomic=True)


def column_at(name: str, of: Column, rows: str = "b") -> SqlValue:
    """Return the value of a column of rows, which is of the type of another one."""
    return column(name, of.type, rows, of.many, of.bases)


def named(name: str, type: Type, **fields: Any) -> SqlValue:
    """Return what a name stands for that SQL binds itself: the item of a list in a lambda."""
    return SqlValue(name, type, atomic=True, **fields)


def item_of(values: SqlValue, name: str) -> SqlValue:
    """Return the item of a list, which a lambda calls by a name."""
    assert values.type.element is not None
    return named(name, values.type.element, bases=values.bases)


def bases_of(values: Sequence[SqlValue]) -> frozenset[Base] | None:
    """Return the members that occur in a union which holds all of some values; None where any may."""
    found: set[Base] = set()
    for value in values:
        item = value.type
        while item.base is Base.LIST and item.element is not None:
            item = item.element
        if item.base in MEMBERS:  # of lists of one type, whatever is said of unions
            found.add(item.base)
        elif value.bases is not None:
            found |= value.bases
        elif value.type.base is not Base.NULL:
            return None
    return frozenset(found)


def member(value: SqlValue, base: Base) -> str:
    """Return SQL for the union member of a type, NULL if the value is of another (a plain value of it as it is)."""
    if value.type.base is base:
        return value.sql
    if value.type.base is not Base.VALUE:
        return f"CAST(NULL AS {MEMBERS[base][1]})"
    return f"({value.sql}).{MEMBERS[base][0]}"


def number(value: SqlValue) -> str:
    """Return SQL for the number in a union, NULL if it is none."""
    numbers = (Base.INTEGER, Base.DECIMAL, Base.FLOAT)
    there = [base for base in numbers if value.bases is None or base in value.bases]
    members = [f"CAST(({value.sql}).{MEMBERS[base][0]} AS DOUBLE)" for base in there]
    return f"coalesce({', '.join(members)})" if members else "CAST(NULL AS DOUBLE)"


def some(source: str, item: str, test: str) -> str:
    """Return SQL for whether a test holds for some item of a list: unknown where it is so for one and holds for none.

    Of an empty list it is unknown, as of null.
    """
    known = f"list_max(list_transform({source}, lambda {item}: coalesce(2 * CAST({test} AS TINYINT), 1)))"
    return f"CASE {known} WHEN 2 THEN TRUE WHEN 0 THEN FALSE END"


def as_union(value: SqlValue) -> SqlValue:
    """Return a value as a union."""
    if value.type.base is Base.VALUE:
        return value
    if value.type.base is Base.NULL:
        return SqlValue(f"CAST(NULL AS {UNION})", VALUE)
    if value.type.base not in MEMBERS:
        raise NotSupportedError(f"{value.type} among values of other types is not supported in SQL")
    name, sql = MEMBERS[value.type.base]
    # A union with a NULL member is not NULL, and must be.
    union = f"CAST(union_value({name} := CAST({value.sql} AS {sql})) AS {UNION})"
    return SqlValue(f"CASE WHEN {value.sql} IS NOT NULL THEN {union} END", VALUE)


def side_by_side(values: Sequence[SqlValue]) -> SqlValue | None:
    """Return a list of plain values of several types as a column may hold it; None for any other list."""
    bases = {value.type.base for value in values}
    if len(bases) < 2 or bases == {Base.ZONED, Base.MOMENT} or any(value.many for value in values):
        return None
    if not bases <= {*MEMBERS, Base.MOMENT}:
        return None
    packed = ", ".join(f"f{i} := CAST({value.sql} AS {sql_type(value.type)})" for i, value in enumerate(values))
    fields = tuple(("", value.type) for value in values)
    return SqlValue(f"struct_pack({packed})", Type(Base.TUPLE, fields=fields), items=tuple(values))


def lacks_offset(value: SqlValue) -> bool:
    """Whether points in time may be among values that have lost the offset that they were written with."""
    type = value.type.element or value.type if value.many else value.type
    return type.base is Base.VALUE and (value.bases is None or Base.ZONED in value.bases)


def at_offset(moment: str, offset: str) -> SqlValue:
    """Return a point in time with its offset in seconds beside it; null where that is."""
    found = f'CAST(struct_pack(moment := {moment}, "offset" := {offset}) AS {sql_type(MOMENT)})'
    return SqlValue(f"CASE WHEN {moment} IS NOT NULL THEN {found} END", MOMENT, parts=(moment, offset))


def instant(value: SqlValue) -> SqlValue:
    """Return a point in time at some offset as one in UTC, which is what it is compared by; others as they are."""
    if value.type.base is not Base.MOMENT:
        return value
    return value.made(value.parts[0], ZONED) if value.parts else value.part("moment", ZONED)


def offset_of(value: SqlValue) -> str:
    """Return SQL of the offset of a time in seconds: 0 of local ones."""
    if value.type.base is not Base.MOMENT and value.type.of not in AT_OFFSETS:
        return "0"
    if value.parts:
        return value.parts[2 if value.type.base is Base.EXACT else 1]
    return value.part('"offset"', INTEGER).sql


def as_list(value: SqlValue) -> SqlValue:
    """Return a column of lists of several types as what expressions take: lists of unions.  Others as they are."""
    if value.type.base is not Base.TUPLE:
        return value
    fields = value.items or _fields(value)
    items, bases = ", ".join(as_union(item).sql for item in fields), bases_of(fields)
    if value.items:
        return value.made(f"[{items}]", list_of(VALUE), bases=bases)
    return value.made(f"CASE WHEN {value.sql} IS NOT NULL THEN [{items}] END", list_of(VALUE), bases=bases)


def _fields(value: SqlValue) -> list[SqlValue]:
    return [value.part(f"f{i}", type) for i, (_, type) in enumerate(value.type.fields)]


def edges_of(path: str) -> SqlValue:
    """Return the list of a path's edges."""
    ends = f"(({path}).vertices)[i]", f"(({path}).vertices)[i + 1]"
    start, end = (f"CASE WHEN code & 1 = 0 THEN {a} ELSE {b} END" for a, b in (ends, ends[::-1]))
    label, ordinal = f"(code >> 1) & {LABEL_OF}::BIGINT", f"code >> {CODE_BITS}"
    edge = f'struct_pack(label := {label}, "start" := {start}, "end" := {end}, ordinal := {ordinal})'
    return SqlValue(f"list_transform(({path}).codes, lambda code, i: {edge})", list_of(EDGE))


def incomparable(operator: str, left: SqlValue, right: SqlValue) -> str:
    """Return the outcome of comparing different types: never equal, no order; NULL with NULL."""
    if operator != "=":
        return "CAST(NULL AS BOOLEAN)"
    return f"(CASE WHEN {left.sql} IS NULL OR {right.sql} IS NULL THEN NULL ELSE FALSE END)"
