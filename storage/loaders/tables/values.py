"""SQL for values of tables as literals of N-Triples: what DuckDB's types are in XML Schema, and what texts say.

A column's type may be stated (``age:int``): its values then have to be of that type as they are.  DuckDB's casts would
round 4.7 to an integer, drop the zone of a time and the clock of a date; such values are reported instead.
"""

from __future__ import annotations

import re

from graphdb.common.values.terms import RDF, XSD, escaped
from graphdb.storage.loaders.tables.delimited import literal as _text

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
             "UHUGEINT", "BIGNUM"}  # fmt: skip

_DAY = r"-?\d{4,6}-\d{1,2}-\d{1,2}"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_ZONE = r"(?:[Zz]|[+-]\d\d(?::?\d\d)?)"
_NUMBER = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?|nan))"
_DURATION = (
    r"-?P(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"  # with more behind its P and its T
)
_WRITTEN = {
    "BIGINT": r"[+-]?\d+",
    "HUGEINT": r"[+-]?\d+",
    "DOUBLE": _NUMBER,
    "DATE": _DAY,
    "TIMESTAMP": rf"{_DAY}(?:[ T]{_CLOCK})?",
    "TIMESTAMPTZ": rf"{_DAY}(?:[ T]{_CLOCK} ?{_ZONE}?)?",
    "TIME": rf"{_CLOCK}{_ZONE}?",
    "INTERVAL": r"-?P[\dT].*",
}
"""How texts are written that are of a stated type."""

_EXACT = {"BIGINT", "HUGEINT", "BOOLEAN", "DATE", "TIME"}
"""The types that other types' values are cast to only where nothing of them is lost."""


def element(type: str) -> str:
    """Return the type of a list's elements; any other as it is.

    >>> element("INTEGER[]"), element("DOUBLE[3]"), element("INTEGER[][]"), element("DATE")
    ('INTEGER', 'DOUBLE', 'INTEGER[]', 'DATE')
    """
    return re.sub(r"\[\d*\]$", "", type)


def values(column: str, type: str) -> str:
    """SQL for the values of a column as a list: those of a list, or the parts of a text, which ``;`` separates."""
    if type.endswith("]"):
        return f"list_filter({column}::{element(type)}[], lambda x: x IS NOT NULL)"
    return f"list_filter(string_split({column}::VARCHAR, ';'), lambda x: trim(x, ' ') <> '')"


def each(column: str, type: str, line: str) -> str:
    """SQL for the lines of all values ``x`` of a column."""
    return f"array_to_string(list_transform({values(column, type)}, lambda x: {line}), '')"


def wrong(value: str, type: str, stated: str) -> str:
    """SQL for whether a value of one of DuckDB's types is none of a stated type."""
    if stated == "VARCHAR" or stated == type:
        return "false"
    cast = f"TRY_CAST({value} AS {stated})"
    if type != "VARCHAR":
        lost = f" OR TRY_CAST({cast} AS {type}) IS DISTINCT FROM {value}" if stated in _EXACT else ""
        return f"{value} IS NOT NULL AND ({cast} IS NULL{lost})"
    text = f"trim({value})"
    written = f"regexp_full_match({text}, {_text(_WRITTEN[stated])})" if stated in _WRITTEN else "true"
    return f"{value} IS NOT NULL AND NOT ({written} AND {_of_text(text, stated)} IS NOT NULL)"


def stated_literal(value: str, type: str, stated: str | None) -> str:
    """SQL for a value as a literal of its stated type, if it has one; it is not :func:`wrong`."""
    if stated is None or stated == type:
        return literal(value, type)
    if stated == "VARCHAR":
        return literal(f"{value}::VARCHAR", "VARCHAR")
    if type != "VARCHAR":
        return literal(f"TRY_CAST({value} AS {stated})", stated)
    text = f"trim({value})"
    match stated:
        case "TIME":
            whole = f"if(regexp_matches({text}, '^..:..(?:$|[^:])'), {text}[:5] || ':00' || {text}[6:], {text})"
            return _as(_with_zone(whole), "time")
        case "INTERVAL":
            is_one = f"regexp_full_match({text}, {_text(_DURATION)}) AND NOT regexp_matches({text}, '[PT]$')"
            return f"CASE WHEN {is_one} THEN {_as(text, 'duration')} ELSE {literal(value, 'VARCHAR')} END"
        case "TIMESTAMP" | "TIMESTAMPTZ":  # digits beyond microseconds stay as they are written
            fine = f"regexp_matches({text}, '\\.\\d{{7}}')"
            written = _with_zone(f"regexp_replace({text}, ' *([+-]..:?.*|[Zz])?$', '\\1')")
            as_written = _as(f"regexp_replace({written}, '^(\\S+) ', '\\1T')", "dateTime")
            return f"CASE WHEN {fine} THEN {as_written} ELSE {literal(_of_text(text, stated), stated)} END"
    return literal(_of_text(text, stated), stated)


def _of_text(text: str, stated: str) -> str:
    """SQL for a text as a value of a stated type, NULL where it is none; of a time its clock, of a duration itself."""
    if stated == "TIME":
        return f"TRY_CAST(regexp_extract({text}, {_text(_CLOCK)}) AS TIME)"
    return text if stated == "INTERVAL" else f"TRY_CAST({text} AS {stated})"


def _with_zone(text: str) -> str:
    """SQL for a text whose zone, if it has one, is written as XML Schema has it: Z, or hours and minutes."""
    with_minutes = f"regexp_replace({text}, '([+-]\\d\\d)$', '\\1:00')"
    return f"upper(regexp_replace({with_minutes}, '(:\\S*[+-]\\d\\d)(\\d\\d)$', '\\1:\\2'))"


def literal(value: str, type: str) -> str:
    """SQL for a value of one of DuckDB's types as a literal of N-Triples."""
    text = f"{value}::VARCHAR"
    if type.endswith("]"):  # a list within a list
        return _json(value)
    base = type.split("(")[0]
    if base in _INTEGERS:
        return _as(text, "integer")
    match base:
        case "DECIMAL":
            return _as(text, "decimal")
        case "DOUBLE" | "FLOAT":
            named = f"CASE {text} WHEN 'inf' THEN 'INF' WHEN '-inf' THEN '-INF' WHEN 'nan' THEN 'NaN' ELSE {text} END"
            return _as(named, "double")
        case "BOOLEAN":
            return _as(text, "boolean")
        case "DATE":
            return _as(_day(value), "date")
        case "TIME" | "TIME_NS":
            return _as(text, "time")
        case "TIME WITH TIME ZONE" | "TIMETZ":
            return _as(_with_zone(text), "time")
        case "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS":
            return _as(_moment(f"{value}::TIMESTAMP"), "dateTime")
        case "TIMESTAMP_NS":
            return _as(f"replace({text}, ' ', 'T')", "dateTime")
        case "TIMESTAMP WITH TIME ZONE" | "TIMESTAMPTZ":
            return _as(_moment(f"({value} AT TIME ZONE 'UTC')") + " || 'Z'", "dateTime")
        case "TIMESTAMPTZ_NS":  # which is written in the session's zone: UTC
            return _as(f"replace(replace({text}, ' ', 'T'), '+00', 'Z')", "dateTime")
        case "INTERVAL":
            return _duration(value)
        case "BLOB":
            return _as(f"base64({value})", "base64Binary")
    if base.startswith(("STRUCT", "MAP", "JSON", "UNION")):
        return _json(value)
    return f"'\"' || {escaped(text)} || '\"'"


def _json(value: str) -> str:
    return f"'\"' || {escaped(f'to_json({value})::VARCHAR')} || '\"^^<{RDF}JSON>'"


def _day(value: str) -> str:
    """SQL for a date; before our era, years are numbered as ISO 8601 has it: 0000 is 1 BC."""
    year = f"year({value})"
    early = f"if({year} < 0, '-', '') || lpad(abs({year})::VARCHAR, 4, '0') || strftime({value}, '-%m-%d')"
    return f"CASE WHEN {year} < 1 THEN {early} ELSE ({value})::DATE::VARCHAR END"


def _moment(value: str) -> str:
    """SQL for a date and time without zone."""
    early = f"{_day(value)} || 'T' || ({value})::TIME::VARCHAR"
    return f"(CASE WHEN year({value}) < 1 THEN {early} ELSE replace(({value})::VARCHAR, ' ', 'T') END)"


def _duration(value: str) -> str:
    """SQL for an interval as a literal; one whose parts go both ways is no duration of XML Schema's, but a text."""
    months = f"(12 * datepart('year', {value}) + datepart('month', {value}))"
    days = f"datepart('day', {value})"
    micros = f"(60000000 * (60 * datepart('hour', {value}) + datepart('minute', {value})) + datepart('us', {value}))"
    signs = f"[sign({months}), sign({days}), sign({micros})]"
    seconds = f"(abs({micros})::DECIMAL(38, 0) / 1000000)::DECIMAL(38, 6)::VARCHAR"
    text = f"if(-1 IN {signs}, '-', '') || 'P' || abs({months}) || 'M' || abs({days}) || 'DT' || {seconds} || 'S'"
    plain = f"'\"' || {value}::VARCHAR || '\"'"
    return f"CASE WHEN -1 IN {signs} AND 1 IN {signs} THEN {plain} ELSE {_as(text, 'duration')} END"


def _as(text: str, datatype: str) -> str:
    return f"'\"' || {text} || '\"^^<{XSD}{datatype}>'"
