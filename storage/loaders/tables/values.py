"""SQL for values of tables as literals of N-Triples: what DuckDB's types are in XML Schema, and what texts say.

A column's type may be stated (``age:int``): its values then have to be of that type as they are.  DuckDB's casts would
round 4.7 to an integer, drop the zone of a time and the clock of a date; such values are reported instead.
"""

from __future__ import annotations

import re

from graphdb.common.values.terms import LIST_DATATYPE, RDF, XSD, escaped
from graphdb.storage.loaders.tables.delimited import literal as _text

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
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


_UNESCAPED = r"[ !#-\[\]-~]*"
"""Texts that JSON has as they are."""

_LAST = 9_223_000_000_000_000_000
"""The microseconds since 1970 that DuckDB's times reach."""


def element(type: str) -> str:
    """Return the type of a list's elements; any other as it is.

    >>> element("INTEGER[]"), element("DOUBLE[3]"), element("INTEGER[][]"), element("DATE")
    ('INTEGER', 'DOUBLE', 'INTEGER[]', 'DATE')
    """
    return re.sub(r"\[\d*\]$", "", type)


def values(column: str, type: str, delimiter: str = ";") -> str:
    """SQL for the values of a column as a list: those of a list, or the parts of a text between delimiters."""
    if type.endswith("]"):
        return f"list_filter({column}::{element(type)}[], lambda x: x IS NOT NULL)"
    parts = f"string_split({column}::VARCHAR, {_text(delimiter)})"
    left = f"list_filter({parts}, lambda x: trim(x, ' ') <> '')"
    return f"CASE WHEN {_has_blanks(column, delimiter)} THEN {left} ELSE {parts} END"


def _has_blanks(text: str, delimiter: str) -> str:
    """SQL for whether nothing but blanks stands somewhere between delimiters, or there is a null."""
    between = re.escape(delimiter)
    return f"coalesce(regexp_matches({text}::VARCHAR, {_text(f'(^|{between}) *({between}|$)')}), true)"


def each(given: str, line: str) -> str:
    """SQL for the lines of all values ``x`` of a list."""
    return f"array_to_string(list_transform({given}, lambda x: {line}), '')"


def list_text(given: str, type: str, stated: str | None) -> str:
    """SQL for a list of values of one of DuckDB's types as the lexical form of a list: as properties have it."""
    text, datatype = stated_lexical("x", type, stated)
    if datatype is None:
        escaped = f"""replace(replace({text}, '\\', '\\\\'), '"', '\\"')"""
        other = f"array_to_string(list_transform(regexp_extract_all({text}, '(?s).'), lambda c: {_escaped('c')}), '')"
        text = f"""'"' || if(regexp_full_match({text}, '[ -~]*'), {escaped}, {other}) || '"'"""
    elif datatype.removeprefix(XSD) not in ("integer", "double", "boolean"):
        text = f"""'"' || {text} || '"^^<{datatype}>'"""
    return f"'[' || array_to_string(list_transform({given}, lambda x: {text}), ', ') || ']'"


def plain_list(text: str, stated: str | None, delimiter: str) -> tuple[str, str] | None:
    """SQL for whether a text's parts are written in a list as they are, and for that list; None where none are.

    Most are: to take a text apart, look at each part and join them takes some times as long.
    """
    between = re.escape(delimiter)
    if stated == "BIGINT" and not re.search("[-0-9]", delimiter):
        item = "(?:0|-?[1-9][0-9]{0,17})"
        return (
            f"regexp_full_match({text}, {_text(f'{item}(?:{between}{item})*')})",
            f"'[' || replace({text}, {_text(delimiter)}, ', ') || ']'",
        )
    if stated == "VARCHAR":
        plain = f"regexp_full_match({text}, {_text(_UNESCAPED)}) AND NOT {_has_blanks(text, delimiter)}"
        return plain, f"""'["' || replace({text}, {_text(delimiter)}, '", "') || '"]'"""
    return None


def _escaped(character: str) -> str:
    """SQL for a character within a text in JSON, of ASCII alone: UTF-16 in hexadecimal digits for others."""
    named = {"'\\'": "'\\\\'", "'\"'": "'\\\"'", "chr(10)": r"'\n'", "chr(13)": r"'\r'", "chr(9)": r"'\t'",
             "chr(8)": r"'\b'", "chr(12)": r"'\f'"}  # fmt: skip
    code = f"unicode({character})"
    rest = f"({code} - 65536)"
    cases = " ".join(f"WHEN {given} THEN {written}" for given, written in named.items())
    wide = f"printf('\\u%04x\\u%04x', 55296 + ({rest} >> 10), 56320 + ({rest} & 1023))"
    other = f"if({code} BETWEEN 32 AND 126, {character}, if({code} < 65536, printf('\\u%04x', {code}), {wide}))"
    return f"CASE {character} {cases} ELSE {other} END"


def wrong(value: str, type: str, stated: str) -> str:
    """SQL for whether a value of one of DuckDB's types is none of a stated type."""
    if stated == "VARCHAR" or stated == type:
        return "false"
    if "@" in stated:
        return f"{value} IS NOT NULL AND {of_epoch(value, type, stated)} IS NULL"
    cast = f"TRY_CAST({value} AS {stated})"
    if type != "VARCHAR":
        lost = f" OR TRY_CAST({cast} AS {type}) IS DISTINCT FROM {value}" if stated in _EXACT else ""
        return f"{value} IS NOT NULL AND ({cast} IS NULL{lost})"
    text = f"trim({value})"
    written = f"regexp_full_match({text}, {_text(_WRITTEN[stated])})" if stated in _WRITTEN else "true"
    written = f"{written} AND {_of_text(text, stated)} IS NOT NULL"
    if stated == "TIME":
        return f"CASE WHEN {value} IS NULL OR {_is_plain(value)} THEN false ELSE NOT ({written}) END"
    return f"{value} IS NOT NULL AND NOT ({written})"


def _is_plain(text: str) -> str:
    """SQL for whether a text is a time of day as DuckDB writes it; most are, and patterns take ten times as long."""
    return f"TRY_CAST({text} AS TIME)::VARCHAR IS NOT DISTINCT FROM {text}"


def as_integer(text: str) -> str:
    """SQL for a text as an integer; one that is not :func:`wrong`."""
    return f"coalesce(TRY_CAST({text} AS BIGINT), TRY_CAST(trim({text}) AS BIGINT))"


def of_epoch(value: str, type: str, stated: str) -> str:
    """SQL for a number as the time that it is since 1970, NULL where it is none.

    ``stated`` is the type with the microseconds of the unit: ``DATE@1000``.  A date has no clock.
    """
    base, unit = stated.split("@")
    number = value
    if type == "VARCHAR":
        number = f"(CASE WHEN regexp_full_match(trim({value}), '[+-]?\\d+') THEN TRY_CAST(trim({value}) AS BIGINT) END)"
    elif type not in INTEGERS:
        number = f"(CASE WHEN TRY_CAST({value} AS BIGINT) = {value} THEN TRY_CAST({value} AS BIGINT) END)"
    most = _LAST // int(unit)
    time = f"make_timestamp(({number})::BIGINT * {unit})"
    if base == "DATE":
        day = 86_400_000_000 // int(unit)
        return f"(CASE WHEN {number} BETWEEN -{most} AND {most} AND {number} % {day} = 0 THEN {time}::DATE END)"
    zoned = f"{time} AT TIME ZONE 'UTC'" if base == "TIMESTAMPTZ" else time
    return f"(CASE WHEN {number} BETWEEN -{most} AND {most} THEN {zoned} END)"


def stated_literal(value: str, type: str, stated: str | None) -> str:
    """SQL for a value as a literal of its stated type, if it has one; it is not :func:`wrong`."""
    if stated == "INTERVAL" and type == "VARCHAR":
        text, is_one = duration(value, type)
        return f"CASE WHEN {is_one} THEN {_as(text, 'duration')} ELSE {literal(value, 'VARCHAR')} END"
    if (stated or type) == "INTERVAL":
        return _duration(value if type == "INTERVAL" else f"TRY_CAST({value} AS INTERVAL)")
    return quoted_literal(*stated_lexical(value, type, stated))


def duration(value: str, type: str) -> tuple[str, str]:
    """SQL for an interval, or a text, as a duration of XML Schema's, and for whether it is one."""
    if type == "VARCHAR":
        text = f"trim({value})"
        return text, f"regexp_full_match({text}, {_text(_DURATION)}) AND right({text}, 1) NOT IN ('P', 'T')"
    months = f"(12 * datepart('year', {value}) + datepart('month', {value}))"
    days = f"datepart('day', {value})"
    micros = f"(60000000 * (60 * datepart('hour', {value}) + datepart('minute', {value})) + datepart('us', {value}))"
    parts = months, days, micros
    below, above = (" OR ".join(f"{part} {sign} 0" for part in parts) for sign in ("<", ">"))
    seconds = f"(abs({micros})::DECIMAL(38, 0) / 1000000)::DECIMAL(38, 6)::VARCHAR"
    text = f"if({below}, '-', '') || 'P' || abs({months}) || 'M' || abs({days}) || 'DT' || {seconds} || 'S'"
    return text, f"NOT (({below}) AND ({above}))"


def stated_lexical(value: str, type: str, stated: str | None) -> tuple[str, str | None]:
    """SQL for the lexical form of a value of its stated type, if it has one, and its datatype; of all but intervals."""
    if stated is None or stated == type:
        return lexical(value, type)
    if "@" in stated:
        return lexical(of_epoch(value, type, stated), stated.split("@")[0])
    if stated == "VARCHAR":
        return f"{value}::VARCHAR", None
    if type != "VARCHAR":
        return lexical(f"TRY_CAST({value} AS {stated})", stated)
    text = f"trim({value})"
    match stated:
        case "TIME":
            whole = f"if(regexp_matches({text}, '^..:..(?:$|[^:])'), {text}[:5] || ':00' || {text}[6:], {text})"
            return f"CASE WHEN {_is_plain(value)} THEN {value} ELSE {_with_zone(whole)} END", f"{XSD}time"
        case "TIMESTAMP" | "TIMESTAMPTZ":  # digits beyond microseconds stay as they are written
            fine = f"regexp_matches({text}, '\\.\\d{{7}}')"
            written = _with_zone(f"regexp_replace({text}, ' *([+-]..:?.*|[Zz])?$', '\\1')")
            as_written = f"regexp_replace({written}, '^(\\S+) ', '\\1T')"
            exact, datatype = lexical(_of_text(text, stated), stated)
            return f"CASE WHEN {fine} THEN {as_written} ELSE {exact} END", datatype
    return lexical(_of_text(text, stated), stated)


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
    return _duration(value) if type == "INTERVAL" else quoted_literal(*lexical(value, type))


def quoted_literal(text: str, datatype: str | None) -> str:
    """SQL for a lexical form as a literal of N-Triples."""
    if datatype is None:
        return f"'\"' || {escaped(text)} || '\"'"
    if datatype in (f"{RDF}JSON", LIST_DATATYPE):
        text = escaped(text)
    return f"'\"' || {text} || '\"^^<{datatype}>'"


def lexical(value: str, type: str) -> tuple[str, str | None]:
    """SQL for the lexical form of a value of one of DuckDB's types, and its datatype; of all but intervals."""
    text = f"{value}::VARCHAR"
    base = type.split("(")[0]
    if type.endswith("]") or base.startswith(("STRUCT", "MAP", "JSON", "UNION")):  # a list within a list
        return f"to_json({value})::VARCHAR", f"{RDF}JSON"
    if base in INTEGERS:
        return text, f"{XSD}integer"
    match base:
        case "DECIMAL":
            return text, f"{XSD}decimal"
        case "DOUBLE" | "FLOAT":
            named = f"CASE {text} WHEN 'inf' THEN 'INF' WHEN '-inf' THEN '-INF' WHEN 'nan' THEN 'NaN' ELSE {text} END"
            return named, f"{XSD}double"
        case "BOOLEAN":
            return text, f"{XSD}boolean"
        case "DATE":
            return _day(value), f"{XSD}date"
        case "TIME" | "TIME_NS":
            return text, f"{XSD}time"
        case "TIME WITH TIME ZONE" | "TIMETZ":
            return _with_zone(text), f"{XSD}time"
        case "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS":
            return _moment(f"{value}::TIMESTAMP"), f"{XSD}dateTime"
        case "TIMESTAMP_NS":
            return f"replace({text}, ' ', 'T')", f"{XSD}dateTime"
        case "TIMESTAMP WITH TIME ZONE" | "TIMESTAMPTZ":
            return _moment(f"({value} AT TIME ZONE 'UTC')") + " || 'Z'", f"{XSD}dateTime"
        case "TIMESTAMPTZ_NS":  # which is written in the session's zone: UTC
            return f"replace(replace({text}, ' ', 'T'), '+00', 'Z')", f"{XSD}dateTime"
        case "BLOB":
            return f"base64({value})", f"{XSD}base64Binary"
    return text, None


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
    text, is_one = duration(value, "INTERVAL")
    plain = f"'\"' || {value}::VARCHAR || '\"'"
    return f"CASE WHEN {is_one} THEN {_as(text, 'duration')} ELSE {plain} END"


def _as(text: str, datatype: str) -> str:
    return f"'\"' || {text} || '\"^^<{XSD}{datatype}>'"
