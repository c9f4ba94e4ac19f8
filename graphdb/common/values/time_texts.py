"""SQL of the times that texts say, as literals have them: :data:`~graphdb.common.values.types.EXACT`.

:func:`graphdb.common.values.literals.value_of` reads all there are: the midnight that ends a day, in years that
DuckDB's calendar lacks, in a zone without an offset.
"""

from __future__ import annotations

from graphdb.common.values.temporal import AT_OFFSETS, DATED, LARGEST_OFFSET
from graphdb.common.values.terms import XSD, ZONED_DATATYPE
from graphdb.common.values.types import Type, sql_type

LAST = 9_200_000_000_000_000_000
"""Microseconds before and after 1970 of which DuckDB knows which day they are on, at any offset."""

_DAY = "([+-]?[0-9]{4,6}-[0-9]{2}-[0-9]{2})T"
_CLOCK = r"((?:[01][0-9]|2[0-3]):[0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?"
_OFFSET = "(?:Z|([+-])((?:0[0-9]|1[0-7]):[0-5][0-9]|18:00)(?::([0-5][0-9]))?)"
_ZONE = r"(?:\[([A-Za-z0-9_/+-]{1,255})\])?"


def time_of(type: Type, text: str, datatype: str) -> tuple[str, str]:
    """Return SQL of whether a literal is a time of an exact type, and of the time that it is.

    It is of the literal's ``text`` and ``datatype``.  Of a zone that has a name, whether there is one, and whether the
    offset is what it has then, is not asked.
    """
    of = type.of
    pattern = (_DAY if of in DATED else "()") + _CLOCK + (_OFFSET if of in AT_OFFSETS else "")
    names = ["day", "clock", "second", "fraction", *(["sign", "ahead", "rest"] if of in AT_OFFSETS else [])]
    if type.by_name:
        pattern, names = pattern + _ZONE, [*names, "zone"]
    listed = ", ".join(f"'{name}'" for name in names)
    found = f"regexp_extract({text}, '^{pattern}$', [{listed}])"
    part = {name: f"({found}).{name}" for name in names}
    day = f"ltrim({part['day']}, '+')" if of in DATED else "'1970-01-01'"
    second = f"CASE WHEN {part['second']} = '' THEN ':00' ELSE ':' || {part['second']} END"
    fraction = f"rpad({part['fraction']}, 9, '0')"
    clock = f"TRY_CAST({day} || ' ' || {part['clock']} || {second} || '.' || {fraction}[:6] AS TIMESTAMP)"
    offset = "0"
    if of in AT_OFFSETS:
        units = ((part["ahead"] + "[:2]", 3600), (part["ahead"] + "[4:]", 60), (part["rest"], 1))
        seconds = " + ".join(f"coalesce(TRY_CAST({unit} AS INTEGER), 0) * {length}" for unit, length in units)
        offset = f"CASE WHEN {part['sign']} = '-' THEN -1 ELSE 1 END * ({seconds})"
    packed = f'clock := {clock}, nanoseconds := coalesce(TRY_CAST({fraction}[7:] AS INTEGER), 0), "offset" := {offset}'
    if type.by_name:
        packed += f", zone := nullif({part['zone']}, '')"
    name = "dateTime" if of in DATED else "time"
    there = f"{datatype} IN ('{XSD}{name}', '{ZONED_DATATYPE}') AND regexp_full_match({text}, '{pattern}')"
    value = f"CAST(struct_pack({packed}) AS {sql_type(type)})"
    in_range = f"coalesce(abs(epoch_us((x.value).clock)) <= {LAST}, FALSE)"
    if of in AT_OFFSETS:
        in_range += f' AND abs((x.value)."offset") <= {LARGEST_OFFSET}'
    # As an operand of AND the value would have the text taken apart once for each of its parts.
    both = f"[struct_pack(there := {there}, value := {value})]"
    return f"(list_transform({both}, lambda x: x.there AND {in_range}))[1]", value
