"""The values of literals, typed for comparison: SQL that reads lexical forms by their datatypes (XML Schema 1.1)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from graphdb.common.values.terms import LIST_DATATYPE, XSD, ZONED_DATATYPE, Kind
from graphdb.common.values.types import INT64

_INTEGER_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-(1 << 7), (1 << 7) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
}
"""The integer types of XML Schema 1.1 Datatypes, §3.4, with their least and greatest values."""

# Lexical forms (XML Schema 1.1 Datatypes, §3.3), as regular expressions that must match in full.
_INTEGER = "[+-]?[0-9]+"
_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_EXACT_DECIMAL = r"[+-]?0*([0-9]{1,20}(\.[0-9]{0,18}0*)?|\.[0-9]{1,18}0*)"
_DOUBLE = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN"
_DATE = "-?([1-9][0-9]{3,}|0[0-9]{3})-[0-9]{2}-[0-9]{2}"
_TIME = r"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?|24:00:00(\.0+)?)"
_FINE = r"\.[0-9]{6}[0-9]*[1-9]"
_ZONE = "(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))"


_AS_DOUBLE = "CASE WHEN is_number THEN coalesce(nullif(integer, 0)::DOUBLE, TRY_CAST(lexical AS DOUBLE)) END"
_AS_DECIMAL = (
    f"CASE WHEN is_number AND integer IS NULL AND datatype NOT IN ('{XSD}double', '{XSD}float')"
    f" AND regexp_full_match(lexical, '{_EXACT_DECIMAL}') THEN TRY_CAST(lexical AS DECIMAL(38, 18)) END"
)
_AS_BOOLEAN = (
    f"CASE WHEN datatype = '{XSD}boolean' THEN CASE lexical"
    " WHEN 'true' THEN true WHEN '1' THEN true WHEN 'false' THEN false WHEN '0' THEN false END END"
)
_AS_DATE = (
    f"CASE WHEN datatype = '{XSD}date' AND regexp_full_match(lexical, '{_DATE}') THEN TRY_CAST(lexical AS DATE) END"
)
_AS_DATETIME = (
    f"CASE WHEN datatype = '{XSD}dateTime' AND regexp_full_match(lexical, '{_DATE}T{_TIME}')"
    " THEN TRY_CAST(lexical AS TIMESTAMP) END"
)
_AS_ZONED = (
    f"CASE WHEN datatype = '{XSD}dateTime' AND regexp_full_match(lexical, '{_DATE}T{_TIME}{_ZONE}')"
    " THEN TRY_CAST(lexical AS TIMESTAMPTZ) END"
)
_AS_TIME = (
    f"CASE WHEN datatype = '{XSD}time' AND regexp_full_match(lexical, '{_TIME}')"
    " THEN TRY_CAST(regexp_replace(lexical, '^24', '00') AS TIME) END"
)
_TEMPORAL_TIME = (
    f"regexp_full_match(lexical, '{_TIME}{_ZONE}|{_TIME}') AND (time IS NULL OR regexp_matches(lexical, '{_FINE}'))"
)


_IN_RANGE = """
                    AND coalesce(TRY_CAST(lexical AS HUGEINT) >= low, low IS NULL OR NOT starts_with(lexical, '-'))
                    AND coalesce(TRY_CAST(lexical AS HUGEINT) <= high, high IS NULL OR starts_with(lexical, '-'))"""
_IS_NUMBER = f"""CASE
                WHEN datatype IS NULL OR NOT starts_with(datatype, '{XSD}') THEN NULL
                WHEN is_integer THEN regexp_full_match(lexical, '{_INTEGER}'){{in_range}}
                WHEN datatype = '{XSD}decimal' THEN regexp_full_match(lexical, '{_DECIMAL}')
                WHEN datatype IN ('{XSD}double', '{XSD}float') THEN regexp_full_match(lexical, '{_DOUBLE}')
            END"""


def typed_literals(source: str, datatypes: Collection[str | None] | None = None) -> str:
    """Return SQL for rows ``(id, lexical, datatype, language)`` of ``source`` as rows of the table literal.

    ``datatypes`` are all that there are, where that is known: SQL that says less is planned sooner.

    First the one value that the datatype calls for, NULL where the lexical form is not one of its own; then the
    kind follows from which value there is.  Rows pass one by one and keep their order: nothing is joined or sorted.
    What others can be read from is left out: the text of an integer that is written as DuckDB writes it, and the value
    of a decimal.  Booleans, dates and times share the column ``moment`` (see :data:`.VALUE_SQL`).
    """
    ranges = {n: r for n, r in _INTEGER_RANGES.items() if datatypes is None or XSD + n in datatypes}
    names = ", ".join(f"'{XSD}{name}'" for name in ranges) or "NULL"
    low, high = (
        " ".join(
            f"WHEN '{XSD}{n}' THEN {limits[end]}::HUGEINT" for n, limits in ranges.items() if limits[end] is not None
        )
        for end in (0, 1)
    )
    low, high = (f"CASE datatype {cases} END" if cases else "NULL" for cases in (low, high))

    def of(sql: str, type: str, *names: str) -> str:
        """Return the value of literals of some datatypes; NULL where there are none."""
        there = datatypes is None or any(XSD + name in datatypes for name in names)
        return sql if there else f"CAST(NULL AS {type})"

    numbers = (*_INTEGER_RANGES, "decimal", "double", "float")
    limited = any(limit is not None for limits in ranges.values() for limit in limits)
    is_number = _IS_NUMBER.format(in_range=_IN_RANGE if limited else "")
    return f"""
    WITH ranged AS (
        SELECT *, coalesce(datatype IN ({names}), false) AS is_integer,
            CASE WHEN is_integer THEN {low} END AS low,
            CASE WHEN is_integer THEN {high} END AS high
        FROM {source}
    ),
    checked AS (
        SELECT *, {of(is_number, "BOOLEAN", *numbers)} AS is_number
        FROM ranged
    ),
    valued AS (
        SELECT *,
            {of("CASE WHEN is_number AND is_integer THEN TRY_CAST(lexical AS BIGINT) END", "BIGINT", *_INTEGER_RANGES)}
                AS integer,
            {of(_AS_DOUBLE, "DOUBLE", *numbers)} AS number,
            {of(_AS_DECIMAL, "DECIMAL(38, 18)", *_INTEGER_RANGES, "decimal")} AS decimal,
            {of(_AS_BOOLEAN, "BOOLEAN", "boolean")} AS boolean,
            {of(_AS_DATE, "DATE", "date")} AS date,
            {of(_AS_DATETIME, "TIMESTAMP", "dateTime")} AS datetime,
            {of(_AS_ZONED, "TIMESTAMPTZ", "dateTime")} AS zoned,
            {of(_AS_TIME, "TIME", "time")} AS time,
            CASE
                WHEN datatype IN ('{XSD}duration', '{ZONED_DATATYPE}') THEN true
                WHEN datatype = '{XSD}time' THEN {of(_TEMPORAL_TIME, "BOOLEAN", "time")}
                WHEN datatype = '{XSD}dateTime' THEN {of(f"regexp_matches(lexical, '{_FINE}')", "BOOLEAN", "dateTime")}
                ELSE false
            END AS temporal
        FROM checked
    )
    SELECT id, CASE WHEN integer::VARCHAR = lexical THEN NULL ELSE lexical END AS text, datatype, language,
        (CASE
            WHEN language IS NOT NULL THEN {Kind.LANGSTRING:d}
            WHEN datatype IS NULL THEN {Kind.STRING:d}
            WHEN integer IS NOT NULL THEN {Kind.INTEGER:d}
            WHEN decimal IS NOT NULL THEN {Kind.DECIMAL:d}
            WHEN number IS NOT NULL THEN {Kind.DOUBLE:d}
            WHEN boolean IS NOT NULL THEN {Kind.BOOLEAN:d}
            WHEN temporal THEN {Kind.TEMPORAL:d}
            WHEN datatype = '{LIST_DATATYPE}' THEN {Kind.LIST:d}
            WHEN date IS NOT NULL THEN {Kind.DATE:d}
            WHEN datetime IS NOT NULL THEN {Kind.DATETIME:d}
            WHEN zoned IS NOT NULL THEN {Kind.ZONED:d}
            WHEN time IS NOT NULL THEN {Kind.TIME:d}
            ELSE {Kind.OTHER:d}
        END)::UTINYINT AS kind,
        integer, number,
        CASE
            WHEN boolean IS NOT NULL THEN boolean::BIGINT
            WHEN temporal THEN NULL
            WHEN date IS NOT NULL THEN date - DATE '1970-01-01'
            WHEN datetime IS NOT NULL THEN epoch_us(datetime)
            WHEN zoned IS NOT NULL THEN epoch_us(zoned)
            WHEN time IS NOT NULL THEN epoch_us(time)
        END AS moment
    FROM valued
    """


_MOMENT = "replace(make_timestamp(value)::VARCHAR, ' ', 'T')"
_CANONICAL_TEXT = {
    Kind.DOUBLE: "CASE WHEN value = 0 THEN value::VARCHAR WHEN isfinite(value) THEN NULL WHEN isnan(value) THEN 'NaN'"
    " WHEN value > 0 THEN 'INF' ELSE '-INF' END",
    Kind.DATE: "(DATE '1970-01-01' + value::INTEGER)::VARCHAR",
    Kind.DATETIME: _MOMENT,
    Kind.ZONED: f"{_MOMENT} || 'Z'",
}
"""The texts of values of some kinds, which are within the years 1 to 9999 where they have one: of floats the lexical
form where DuckDB writes another, or may not tell one zero from the other."""

_DATATYPES = {
    Kind.INTEGER: "integer",
    Kind.DOUBLE: "double",
    Kind.DATE: "date",
    Kind.DATETIME: "dateTime",
    Kind.ZONED: "dateTime",
}


def valued_literals(source: str, kind: Kind) -> str:
    """Return SQL for rows ``(id, value)`` of ``source``, literals in their canonical form, by names of columns of the
    table literal: what :func:`typed_literals` reads in their texts.

    ``value`` is what the table has of literals of this kind; see :class:`~graphdb.storage.arrays.batch.Valued`.
    """
    columns = f"id, '{XSD}{_DATATYPES[kind]}' AS datatype, {kind:d} AS kind"
    if kind is Kind.INTEGER:
        return f"BY NAME SELECT {columns}, value AS integer, value::DOUBLE AS number FROM {source}"
    column = "number" if kind is Kind.DOUBLE else "moment"
    return f"BY NAME SELECT {columns}, {_CANONICAL_TEXT[kind]} AS text, value AS {column} FROM {source}"


_INTEGER_DATATYPE, _DOUBLE_DATATYPE, _BOOLEAN_DATATYPE = (XSD + name for name in ("integer", "double", "boolean"))
_SHORT = {
    _INTEGER_DATATYPE: re.compile("[+-]?[0-9]{1,18}"),
    _DOUBLE_DATATYPE: re.compile(r"[+-]?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?"),
    _BOOLEAN_DATATYPE: re.compile("true|false"),
    LIST_DATATYPE: re.compile(".*", re.DOTALL),
}
"""Lexical forms whose values Python reads as SQL does."""


_CANONICAL = re.compile("0|-?[1-9][0-9]{0,18}")
_PLAIN_DOUBLE = re.compile(r"-?[0-9]{1,17}(\.[0-9]{1,17})?(e[+-][0-9]{2,3})?")
"""Lexical forms among which are those of finite floats as DuckDB writes them."""


def stored_as(literals: Iterable[Sequence[str | None]]) -> dict[str, list[Any]]:
    """Return the columns of the table literal that tell literals (lexical form, datatype, language), and what is there.

    Integers have no text where DuckDB writes them like that, if the type that is derived from xsd:integer has them;
    floats may have none.
    """
    found: dict[str, list[Any]] = {"integer": [], "number": [], "text": []}
    for lexical, datatype, *_ in literals:
        integer = bool(datatype and lexical and _CANONICAL.fullmatch(lexical) and int(lexical) in INT64)
        if integer:
            found["integer"].append(int(lexical or 0))
        if datatype == _DOUBLE_DATATYPE and lexical and _PLAIN_DOUBLE.fullmatch(lexical):
            found["number"].append(float(lexical))
        if not integer or datatype != _INTEGER_DATATYPE:
            found["text"].append(lexical)
    return {column: values for column, values in found.items() if values}


def is_short(lexical: str, datatype: str | None, language: str | None) -> bool:
    """Whether a literal is one of those that :func:`short_literals` knows."""
    if datatype is None:
        return True
    form = _SHORT.get(datatype)
    return form is not None and form.fullmatch(lexical) is not None


def short_literals(
    lexical: Sequence[str], datatype: Sequence[str | None], language: Sequence[str | None]
) -> dict[str, list[Any]]:
    """Return the columns ``text``, ``kind``, ``integer``, ``number`` and ``moment`` of literals that :func:`is_short`
    knows.

    They are what :func:`typed_literals` says of strings, integers of 18 digits, plain doubles, booleans and lists: rows
    of values are planned sooner than the SQL that reads any lexical form.
    """
    kinds = {
        _INTEGER_DATATYPE: Kind.INTEGER,
        _DOUBLE_DATATYPE: Kind.DOUBLE,
        _BOOLEAN_DATATYPE: Kind.BOOLEAN,
        LIST_DATATYPE: Kind.LIST,
    }
    texts = list(zip(lexical, datatype, strict=True))
    return {
        "text": [None if type == _INTEGER_DATATYPE and str(int(text)) == text else text for text, type in texts],
        "kind": [
            int(Kind.LANGSTRING if tag is not None else Kind.STRING if type is None else kinds[type])
            for type, tag in zip(datatype, language, strict=True)
        ],
        "integer": [int(text) if type == _INTEGER_DATATYPE else None for text, type in texts],
        "number": [float(text) if type in (_INTEGER_DATATYPE, _DOUBLE_DATATYPE) else None for text, type in texts],
        "moment": [int(text == "true") if type == _BOOLEAN_DATATYPE else None for text, type in texts],
    }


def short_value(lexical: str, datatype: str | None, language: str | None) -> int | str | None:
    """Return the value of a plain string, or of an integer that :func:`is_short` knows; None for any other literal."""
    if datatype is None:
        return lexical if language is None else None
    return int(lexical) if datatype == _INTEGER_DATATYPE and is_short(lexical, datatype, language) else None
