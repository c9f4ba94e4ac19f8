"""The types of values: what an expression yields, and how DuckDB stores it.

Structure comes out of the match as ids (:attr:`Base.NODE`, :attr:`Base.TERM`), a path as those of its vertices with the
codes of its edges (``label * 2``, and 1 more where an edge is passed against its direction; above :data:`CODE_BITS` the
ordinal of an edge that has parallel ones), literal values as DuckDB's own types.
A property whose values have several types is a :attr:`Base.VALUE`: a DuckDB union with one member per type, so that
no value is bent to fit its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cache

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.decimals import shortest
from graphdb.common.values.temporal import DateTime, LocalDateTime, LocalTime, Temporal, Time
from graphdb.common.values.terms import VALUE_SQL, Kind


class _Integers:
    """A range, which looks through its numbers one by one for an integer of a subclass (`enum.IntEnum`), is none."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and -(1 << 63) <= value < 1 << 63


INT64 = _Integers()
"""The integers that a value may be."""

CODE_BITS = 44
"""Bits of the code of a path's edge that say its label and direction; its ordinal among parallel ones is above them."""

LABEL_OF = (1 << (CODE_BITS - 1)) - 1
"""What is left of half a code when the ordinal is taken away: the label."""


EDGE_MODULUS, EDGE_FACTOR = (1 << 61) - 1, 0x9E3779B97F4A7C1
"""Modulus and factor of the numbers of edges."""


def edge_number(parts: Iterable[int]) -> int:
    """Return what ``id`` of an edge is, of its label, start, end and ordinal: a polynomial of them modulo 2**61 - 1."""
    number = 0
    for part in parts:
        number = (number * EDGE_FACTOR + part) % EDGE_MODULUS
    return number


def edge_number_sql(edge: str) -> str:
    """Return SQL for :func:`edge_number` of an edge."""
    number = "0::HUGEINT"
    for part in ("label", '"start"', '"end"', "ordinal"):
        number = f"(({number} * {EDGE_FACTOR} + ({edge}).{part}) % {EDGE_MODULUS})"
    return f"CAST({number} AS BIGINT)"


class Base(Enum):
    """The kinds of values; the text says how an error calls them."""

    NULL = "null"
    BOOLEAN = "a boolean"
    INTEGER = "an integer"
    DECIMAL = "a decimal"
    FLOAT = "a float"
    STRING = "a string"
    DATE = "a date"
    DATETIME = "a date and time"
    ZONED = "a date and time with zone"
    MOMENT = "a date and time at an offset"
    TIME = "a time"
    EXACT = "an exact time"
    DURATION = "a duration"
    VALUE = "a value of several types"
    NODE = "a vertex"
    EDGE = "an edge"
    TERM = "a vertex or a value"
    PATH = "a path"
    LIST = "a list"
    TUPLE = "a list of some length"
    MAP = "a map"
    CHOICE = "a value of one of some types"
    ANY = "a value that SQL does not hold"


@dataclass(frozen=True, slots=True)
class Type:
    """A type; ``element`` of a list, ``scale`` of a decimal, ``fields`` of a map: keys and what they lead to.

    In a ``sparse`` map a key that leads to null is not there: so it is with all properties of a vertex, but not with
    what is ``certain`` beside these, as ``n`` in ``a {.*, n: …}``.  A tuple is a
    list whose items have their places (``fields`` without keys) and types: as a column it needs no union.  A choice has
    values of one of some types each (``fields`` without keys, too): as a column it has a field of each, and a tag.
    """

    base: Base
    element: Type | None = None
    scale: int = 18
    fields: tuple[tuple[str, Type], ...] = ()
    sparse: bool = False
    certain: frozenset[str] = frozenset()
    """Of a sparse map: keys that are there though they lead to null."""
    unique: bool = False
    """Of literals: whether those with one value are one and the same, as plain strings are."""
    exact: bool = False
    """Of literals: whether some may have values that SQL has no type for, such as lists."""
    of: type[Temporal] | None = None
    """Of exact times: what they are."""
    by_name: bool = False
    """Of exact points in time: whether the names of their zones are beside them."""

    def __str__(self) -> str:
        return self.base.value if self.of is None else f"a {self.of.kind}"


NULL = Type(Base.NULL)
BOOLEAN = Type(Base.BOOLEAN)
INTEGER = Type(Base.INTEGER)
DECIMAL = Type(Base.DECIMAL)
FLOAT = Type(Base.FLOAT)
STRING = Type(Base.STRING)
DATE = Type(Base.DATE)
DATETIME = Type(Base.DATETIME)
ZONED = Type(Base.ZONED)
"""A point in time in UTC; as a member of a union, at whatever offset, which SQL does not know there."""
MOMENT = Type(Base.MOMENT)
"""A point in time with its offset from UTC beside it, in seconds."""
TIME = Type(Base.TIME)
EXACT: dict[type[Temporal], Type] = {of: Type(Base.EXACT, of=of) for of in (LocalTime, Time, LocalDateTime, DateTime)}
"""Times to the nanosecond, with their offsets from UTC: what a clock shows, the nanoseconds that are left of a
microsecond, and the offset in seconds (0 of local ones).  Of a time of day the clock shows 1970-01-01."""
IN_ZONE = Type(Base.EXACT, of=DateTime, by_name=True)
"""Points in time with the names of their zones, too: null of one at an offset without such a zone."""
DURATION = Type(Base.DURATION)
VALUE = Type(Base.VALUE)
NODE = Type(Base.NODE)
EDGE = Type(Base.EDGE)
TERM = Type(Base.TERM)
PATH = Type(Base.PATH)
ANY = Type(Base.ANY)
"""Values of Python's, which SQL knows by a key: see :mod:`graphdb.sql.udf`."""
MIXED = Type(Base.ANY, NODE)
"""The same, where vertices, edges and paths may be among them or in them."""


def has_ids(type: Type) -> bool:
    """Whether values of a type are, or have among them, ids of vertices or edges."""
    if type.base in (Base.NODE, Base.EDGE, Base.TERM, Base.PATH):
        return True
    return (type.element is not None and has_ids(type.element)) or any(has_ids(field) for _, field in type.fields)


def has_terms(type: Type) -> bool:
    """Whether values of a type are vertices or literals, or have such among them: what they are is looked up."""
    inside = (*([] if type.element is None or type.base is Base.TERM else [type.element]), *(t for _, t in type.fields))
    return type.base is Base.TERM or any(map(has_terms, inside))


_STRUCTS = (Base.DURATION, Base.MOMENT, Base.EXACT, Base.CHOICE, Base.ANY)
"""Types that have other forms in tables of a user's."""


def is_plain(type: Type) -> bool:
    """Whether values of a type are shown in SQL as they are, but for the names of keys."""
    if type.base is Base.LIST:
        return type.element is None or is_plain(type.element)
    if type.base in (Base.MAP, Base.TUPLE):
        return all(is_plain(field) for _, field in type.fields)
    return not has_ids(type) and type.base not in _STRUCTS


def list_of(element: Type) -> Type:
    """Return the type of lists of ``element``."""
    return Type(Base.LIST, element)


NO_KEYS = "f := TRUE"
"""What a struct is made of that is a map without keys."""

NUMERIC = {Base.INTEGER, Base.DECIMAL, Base.FLOAT}
"""Types that compare and compute with each other."""

WHOLE_AND_REAL = frozenset((Base.INTEGER, Base.FLOAT))
"""Types of numbers that are floating-point ones in a user's table."""

MEMBERS: dict[Base, tuple[str, str]] = {
    Base.INTEGER: ("integer", "BIGINT"),
    Base.DECIMAL: ("decimal", "DECIMAL(38, 18)"),
    Base.FLOAT: ("float", "DOUBLE"),
    Base.BOOLEAN: ("boolean", "BOOLEAN"),
    Base.DATE: ("date", "DATE"),
    Base.DATETIME: ("datetime", "TIMESTAMP"),
    Base.ZONED: ("zoned", "TIMESTAMP WITH TIME ZONE"),
    Base.TIME: ("time", "TIME"),
    Base.STRING: ("string", "VARCHAR"),
}
"""The members of the union behind :attr:`Base.VALUE`: name and DuckDB type."""

UNION = "UNION(" + ", ".join(f"{name} {sql}" for name, sql in MEMBERS.values()) + ")"
"""The DuckDB type of :attr:`Base.VALUE`."""

_OF_KIND = {
    Kind.STRING: STRING,
    Kind.LANGSTRING: STRING,
    Kind.INTEGER: INTEGER,
    Kind.DECIMAL: DECIMAL,
    Kind.DOUBLE: FLOAT,
    Kind.BOOLEAN: BOOLEAN,
    Kind.DATE: DATE,
    Kind.DATETIME: DATETIME,
    Kind.ZONED: ZONED,
    Kind.TIME: TIME,
    Kind.OTHER: STRING,
    Kind.LIST: STRING,
    Kind.TEMPORAL: STRING,
}

EXACT_ONLY = 1 << Kind.LIST | 1 << Kind.TEMPORAL
"""Kinds, as a bit mask, whose values SQL does not hold: the evaluator reads them from their text."""

AS_WRITTEN = EXACT_ONLY | 1 << Kind.ZONED
"""Kinds whose values a user sees as their text says: among others, SQL has a point in time without its offset."""

_VALUE = {_OF_KIND[kind].base: sql for kind, sql in VALUE_SQL.items()}


@cache
def type_of_kinds(mask: int, scale: int = 18) -> Type:
    """Return the type that holds literals of all kinds in ``mask`` (bit ``k`` for ``Kind(k)``).

    Raises
    ------
    NotSupportedError
        Some are lists or temporal values that SQL does not hold: Python reads them from their text.
    """
    if mask > 0 and mask & EXACT_ONLY:
        raise NotSupportedError("lists and exact temporal values of a property are not supported in SQL")
    types = {_OF_KIND[kind] for kind in Kind if mask >> kind & 1}
    if len(types) != 1:
        return VALUE if types else NULL
    (only,) = types
    return {DECIMAL: Type(Base.DECIMAL, scale=scale), ZONED: MOMENT}.get(only, only)


@cache
def bases_of_kinds(mask: int) -> frozenset[Base]:
    """Return the types that literals of all kinds in ``mask`` have."""
    return frozenset(_OF_KIND[kind].base for kind in Kind if mask >> kind & 1)


def single_kind(mask: int) -> Kind | None:
    """Return a kind for all in ``mask`` if their values stand in one column as they are; else None."""
    type = type_of_kinds(mask)
    if type.base in (Base.VALUE, Base.NULL, Base.DECIMAL, Base.MOMENT):
        return None
    return next(kind for kind in Kind if mask >> kind & 1)


def literal_sql(alias: str, type: Type, kinds: int = -1) -> str:
    """Return SQL for the value of a row ``alias`` of the literal table as ``type``; no other ``kinds`` are there."""
    if type.base is Base.DECIMAL:
        return f"TRY_CAST({_VALUE[Base.DECIMAL].format(alias)} AS DECIMAL(38, {type.scale}))"
    if type.base is Base.MOMENT:
        found = f'struct_pack(moment := make_timestamptz({alias}.moment), "offset" := {_offset(alias + ".text")})'
        return f"CASE WHEN {alias}.kind = {Kind.ZONED:d} THEN {found} END"
    if type.base is not Base.VALUE:
        return _VALUE[type.base].format(alias)
    cases: dict[Base, list[int]] = {}
    for kind, of in _OF_KIND.items():
        if kinds >> kind & 1:  # DuckDB plans a union of each as long as a small query runs
            cases.setdefault(of.base, []).append(int(kind))
    whens = " ".join(
        f"WHEN {alias}.kind IN ({', '.join(map(str, kinds))}) "
        f"THEN CAST(union_value({MEMBERS[base][0]} := {_VALUE[base].format(alias)}) AS {UNION})"
        for base, kinds in cases.items()
    )
    return f"CASE {whens} END" if cases else f"CAST(NULL AS {UNION})"


def _offset(lexical: str) -> str:
    """Return SQL of the offset, in seconds, at the end of a point in time as XML Schema writes it."""
    minutes = f"CAST({lexical}[-5:-4] AS INTEGER) * 60 + CAST({lexical}[-2:] AS INTEGER)"
    signed = f"CASE {lexical}[-6] WHEN '+' THEN 60 * ({minutes}) WHEN '-' THEN -60 * ({minutes}) ELSE 0 END"
    return f"CASE WHEN suffix({lexical}, 'Z') THEN 0 ELSE {signed} END"  # most are of UTC


def sql_type(type: Type) -> str:
    """Return the DuckDB type that holds ``type`` inside the engine (vertices as ids)."""
    if type.base is Base.LIST:
        assert type.element is not None
        return sql_type(type.element) + "[]"
    if type.base in (Base.NODE, Base.TERM):
        return "BIGINT"
    if type.base is Base.EDGE:
        return 'STRUCT(label BIGINT, "start" BIGINT, "end" BIGINT, ordinal BIGINT)'
    if type.base is Base.PATH:
        return "STRUCT(vertices BIGINT[], codes BIGINT[])"
    if type.base is Base.VALUE:
        return UNION
    if type.base is Base.DECIMAL:
        return f"DECIMAL(38, {type.scale})"
    if type.base in (Base.MAP, Base.TUPLE, Base.CHOICE):
        fields = ", ".join(f"f{i} {sql_type(field)}" for i, (_, field) in enumerate(type.fields))
        tag = ", tag UTINYINT" if type.base is Base.CHOICE else ""
        return f"STRUCT({fields or 'f BOOLEAN'}{tag})"
    if type.base is Base.DURATION:
        return "STRUCT(months BIGINT, days BIGINT, seconds BIGINT, nanoseconds BIGINT)"
    if type.base is Base.MOMENT:
        return 'STRUCT(moment TIMESTAMP WITH TIME ZONE, "offset" INTEGER)'
    if type.base is Base.EXACT:
        return (
            f'STRUCT(clock TIMESTAMP, nanoseconds INTEGER, "offset" INTEGER{", zone VARCHAR" if type.by_name else ""})'
        )
    if type.base is Base.ANY:
        return "BLOB"
    if type.base is Base.NULL:
        return "INTEGER"
    return MEMBERS[type.base][1]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result: its name as openCypher has it, its name as a table's column, and its type."""

    name: str
    sql_name: str
    type: Type
    many: bool = False
    bases: frozenset[Base] | None = None
    """Of a union: the members that occur; None where any may."""


def tidied(value: object) -> object:
    """Return a decimal without the zeros that its column's scale adds, a moment in UTC and not in the zone where this
    runs, and lists of them; other values as they are.
    """
    if isinstance(value, list):
        return [tidied(item) for item in value]
    if isinstance(value, datetime):
        try:
            return value if value.tzinfo is None else value.astimezone(UTC)
        except OverflowError:  # the first day of Python's calendar is in the year before elsewhere
            return value
    if not isinstance(value, Decimal):
        return value
    return Decimal(shortest(value))
