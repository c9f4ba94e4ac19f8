"""Times to the nanosecond, times of day at an offset, and points in time in a zone that has a name: what DuckDB has no
type for, as structs.

One struct holds them all (:data:`~graphdb.common.values.types.EXACT`): what a clock shows, to the microsecond, the
nanoseconds that are left, and the offset from UTC in seconds; where some are in a zone that has a name, this too
(:data:`~graphdb.common.values.types.IN_ZONE`).  Times of DuckDB's own types become such values where they are beside
them.  Two values are equal, and one is before another, by one number each: :func:`number`.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphdb.common.values.temporal import AT_OFFSETS, DATED, DateTime, LocalDateTime, LocalTime, Temporal, Time
from graphdb.common.values.types import DATETIME, EXACT, IN_ZONE, INTEGER, STRING, TIME, ZONED, Base, Type, sql_type
from graphdb.sql.value import SqlValue, at_offset, instant, offset_of

LIKE: Mapping[Base, type[Temporal]] = {
    Base.TIME: LocalTime,
    Base.DATETIME: LocalDateTime,
    Base.ZONED: DateTime,
    Base.MOMENT: DateTime,
}
"""DuckDB's types of times, and what their values are."""

TIMES = (*LIKE, Base.EXACT)
"""All types of times."""

LESS_EXACT: Mapping[type[Temporal], Type] = {LocalTime: TIME, LocalDateTime: DATETIME, DateTime: ZONED}
"""What has a type of DuckDB's, to the microsecond."""

_DAY = 86_400_000_000
"""Microseconds."""

_OFFSETS = 1 << 18
"""More than twice the largest offset in seconds."""


def kind_of(type: Type) -> type[Temporal] | None:
    """Return what the times of a type are; None of other types."""
    return type.of if type.base is Base.EXACT else LIKE.get(type.base)


def exact(of: type[Temporal], clock: str, nanoseconds: str, offset: str, zone: str = "") -> SqlValue:
    """Return a time of its parts (SQL), with its zone's name if there is one: null where the clock is."""
    packed = f'clock := {clock}, nanoseconds := {nanoseconds}, "offset" := {offset}'
    type = IN_ZONE if zone else EXACT[of]
    if zone:
        packed += f", zone := {zone}"
    found = f"CAST(struct_pack({packed}) AS {sql_type(type)})"
    parts = clock, nanoseconds, offset, zone
    return SqlValue(f"CASE WHEN {clock} IS NOT NULL THEN {found} END", type, parts=parts)


def clock_of(value: SqlValue) -> str:
    """Return SQL of what a clock shows at a time, at its offset, to the microsecond: a TIMESTAMP."""
    if value.type.base is Base.EXACT:
        return value.parts[0] if value.parts else value.part("clock", DATETIME).sql
    return value.sql if value.type.base is Base.DATETIME else shown(value, offset_of(value))


def shown(value: SqlValue, offset: str) -> str:
    """Return SQL of the local date and time that a clock shows at a point in time, at an offset in seconds."""
    if value.type.base is Base.EXACT:
        clock, own = clock_of(value), offset_of(value)
        return clock if own == offset else f"make_timestamp(epoch_us({clock}) + ({offset} - {own}) * 1000000::BIGINT)"
    microseconds = f"epoch_us({instant(value).sql})"
    return f"make_timestamp({microseconds if offset == '0' else f'{microseconds} + {offset} * 1000000::BIGINT'})"


def nanoseconds_of(value: SqlValue) -> str:
    """Return SQL of the nanoseconds of a time that are left of a microsecond."""
    if value.type.base is not Base.EXACT:
        return "0"
    return value.parts[1] if value.parts else value.part("nanoseconds", INTEGER).sql


def zone_of(value: SqlValue) -> str:
    """Return SQL of the name of a time's zone: null where it has none."""
    if not value.type.by_name:
        return "CAST(NULL AS VARCHAR)"
    return value.parts[3] if value.parts else value.part("zone", STRING).sql


def time_of_day(microseconds: str) -> str:
    """Return SQL of the time of day so many microseconds after some midnight, as one of 1970-01-01."""
    return f"make_timestamp((({microseconds}) % {_DAY} + {_DAY}) % {_DAY})"


def converted(value: SqlValue, of: type[Temporal]) -> SqlValue:
    """Return a time as one of another kind: what it has of it, at its offset, which is that of UTC if it has none."""
    clock = clock_of(value)
    if of not in DATED and kind_of(value.type) in DATED:
        clock = time_of_day(f"epoch_us({clock})")
    return exact(of, clock, nanoseconds_of(value), offset_of(value) if of in AT_OFFSETS else "0")


def lifted(value: SqlValue, type: Type) -> SqlValue:
    """Return a time as one of an exact type that holds it."""
    assert type.of is not None
    if type.by_name:
        return exact(type.of, clock_of(value), nanoseconds_of(value), offset_of(value), zone_of(value))
    return converted(value, type.of)


def less_exact(value: SqlValue) -> SqlValue:
    """Return a time to the microsecond, as one of DuckDB's types; a time of day at an offset without that."""
    if value.type.base is not Base.EXACT:
        return value
    clock = clock_of(value)
    if value.type.of is LocalDateTime:
        return SqlValue(clock, DATETIME)
    if value.type.of is DateTime:
        offset = offset_of(value)
        return at_offset(f"make_timestamptz(epoch_us({clock}) - {offset} * 1000000::BIGINT)", offset)
    return SqlValue(f"CAST({clock} AS TIME)", TIME)


def number(value: SqlValue) -> str:
    """Return SQL of the number by which times of one kind are compared: nanoseconds since midnight, or since 1970.

    Points in time are equal at any offset; times of day are in the order of UTC, then of their offsets.
    """
    kind, offset = kind_of(value.type), offset_of(value)
    microseconds = f"epoch_us({clock_of(value) if value.type.base is Base.EXACT else instant(value).sql})"
    if kind in AT_OFFSETS and value.type.base is Base.EXACT:
        microseconds = f"({microseconds} - {offset} * 1000000::BIGINT)"
    if kind in DATED:
        microseconds = f"CAST({microseconds} AS HUGEINT)"
    found = f"({microseconds} * 1000 + {nanoseconds_of(value)})"
    return f"(CAST({found} AS HUGEINT) * {_OFFSETS} + {offset})" if kind is Time else found


def variant(value: SqlValue) -> str:
    """Return SQL of what orders points in time at different offsets that are equal: one in UTC comes first."""
    offset, zone = offset_of(value), f" || ' ' || coalesce({zone_of(value)}, '')" if value.type.by_name else ""
    utc = f"{offset} = 0 AND {zone_of(value)} IS NULL" if zone else f"{offset} = 0"
    return f"CASE WHEN {utc} THEN '' ELSE CAST({offset} AS VARCHAR){zone} END"
