"""Values to literals, column by column: what :func:`graphdb.common.values.literals.literal_of` does to one value of
Python's.

Values that SQL does not hold (a time with a zone, a list of lists) are written by that function itself, once for each
that there is (:func:`of_keys`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdb.common import arrow
from graphdb.common.values.decimals import AFTER, BEFORE, shortest_sql
from graphdb.common.values.literals import literal_of
from graphdb.common.values.temporal import AT_OFFSETS, DATED
from graphdb.common.values.temporal_python import from_python
from graphdb.common.values.terms import LIST_DATATYPE, XSD, ZONED_DATATYPE
from graphdb.common.values.types import MEMBERS, Base, Type
from graphdb.sql import exact
from graphdb.sql.times import durations, temporal
from graphdb.sql.types.text import exact_text
from graphdb.sql.value import SqlValue, member, offset_of
from graphdb.writing.items import RowByRow

_DATATYPES = {
    Base.BOOLEAN: "boolean",
    Base.INTEGER: "integer",
    Base.DECIMAL: "decimal",
    Base.FLOAT: "double",
    Base.DATE: "date",
    Base.DATETIME: "dateTime",
    Base.TIME: "time",
    Base.DURATION: "duration",
}
"""Types, and what XML Schema calls them; a string has no datatype."""


@dataclass(frozen=True, slots=True)
class Written:
    """SQL of a value's lexical form and datatype; both NULL for null."""

    lexical: str
    datatype: str
    total: bool = True
    """Whether each value has a lexical form: those without one go row by row."""


def written(value: SqlValue) -> Written:
    """Return the literals of a column's values.

    Raises
    ------
    RowByRow
        Its values are no property, or SQL does not write them.
    """
    base = value.type.base
    if base is Base.ANY:  # literals by now
        return Written(f"({value.sql}).lexical", f"({value.sql}).datatype")
    if base is Base.EXACT and not value.many:
        name = "dateTime" if value.type.of in DATED else "time"
        datatype = f"'{XSD}{name}'"
        if value.type.by_name:
            datatype = f"CASE WHEN {exact.zone_of(value)} IS NULL THEN {datatype} ELSE '{ZONED_DATATYPE}' END"
        return Written(_exact(value), datatype, total=False)
    if base in (Base.ZONED, Base.MOMENT) and not value.many:
        return Written(_moment(value), f"'{XSD}dateTime'", total=False)
    if value.many or base not in {*_DATATYPES, Base.STRING, Base.NULL, Base.VALUE, Base.LIST}:
        what = "several values" if value.many else str(value.type)
        raise RowByRow(f"SQL does not write {what}")
    if base is Base.NULL:
        return Written("CAST(NULL AS VARCHAR)", "CAST(NULL AS VARCHAR)")
    if base is Base.LIST:
        return Written(_list(value), f"'{LIST_DATATYPE}'", total=False)
    if base is Base.VALUE:
        parts = [(name, each) for each, (name, _) in MEMBERS.items() if each in _DATATYPES or each is Base.STRING]
        texts = " ".join(f"WHEN '{name}' THEN {_text(member(value, each), each)}" for name, each in parts)
        types = " ".join(f"WHEN '{name}' THEN {_datatype(each)}" for name, each in parts)
        tag = f"union_tag({value.sql})"
        return Written(f"CASE {tag} {texts} END", f"CASE {tag} {types} END", total=False)
    text, datatype = _text(value.sql, base), _datatype(base)
    if base is Base.DECIMAL and value.type.scale != AFTER:  # others are written as what they would be read as
        fits = f"regexp_full_match({text}, '-?[0-9]{{0,{BEFORE}}}([.][0-9]{{1,{AFTER}}})?')"
        number = _text(f"CAST({value.sql} AS DOUBLE)", Base.FLOAT)
        text = f"CASE WHEN {fits} THEN {text} ELSE {number} END"
        datatype = f"CASE WHEN {fits} THEN {datatype} ELSE {_datatype(Base.FLOAT)} END"
    return Written(text, datatype, total=base not in (Base.DATE, Base.DATETIME))


def _datatype(base: Base) -> str:
    return "CAST(NULL AS VARCHAR)" if base is Base.STRING else f"'{XSD}{_DATATYPES[base]}'"


def _text(sql: str, base: Base) -> str:
    """Return SQL of the lexical form of a value of a type; NULL where it is not written here."""
    match base:
        case Base.DECIMAL:
            return shortest_sql(sql)
        case Base.DURATION:
            return durations.text(sql)
        case Base.BOOLEAN:
            return f"CASE WHEN {sql} THEN 'true' WHEN NOT {sql} THEN 'false' END"
        case Base.INTEGER:
            return f"CAST(CAST({sql} AS BIGINT) AS VARCHAR)"
        case Base.FLOAT:
            return (
                f"CASE WHEN isnan({sql}) THEN 'NaN' WHEN isinf({sql}) THEN CASE WHEN {sql} > 0 THEN 'INF' "
                f"ELSE '-INF' END ELSE CAST(CAST({sql} AS DOUBLE) AS VARCHAR) END"
            )
        case Base.DATE | Base.DATETIME:  # other years are written otherwise
            return f"CASE WHEN year({sql}) BETWEEN 1 AND 9999 THEN replace(CAST({sql} AS VARCHAR), ' ', 'T') END"
        case Base.TIME:
            return f"CAST({sql} AS VARCHAR)"
    return sql


def _moment(value: SqlValue) -> str:
    """Return SQL of the lexical form of a point in time; NULL where XML Schema has none: see `literal_of`."""
    text = f"{_text(temporal.local(value).sql, Base.DATETIME)} || {temporal.offset_text(value)}"
    return f"CASE WHEN {_fits(offset_of(value))} THEN {text} END"


def _fits(offset: str) -> str:
    """Return SQL of whether XML Schema has times at an offset."""
    return f"abs({offset}) <= 14 * 3600 AND {offset} % 60 = 0"


def _exact(value: SqlValue) -> str:
    """Return SQL of the lexical form of an exact time, as above."""
    near = f"year({exact.clock_of(value)}) BETWEEN 1 AND 9999"  # other years are written otherwise
    fits = f" AND {_fits(offset_of(value))}" if value.type.of in AT_OFFSETS else ""
    of_zone = (
        f"WHEN {near} AND {exact.zone_of(value)} IS NOT NULL THEN {exact_text(value)} " if value.type.by_name else ""
    )
    return f"CASE {of_zone}WHEN {near}{fits} THEN {exact_text(value, seconds=True)} END"


def _list(value: SqlValue) -> str:
    """Return SQL of the text of a list; NULL where some item is not written here."""
    element = value.type.element or Type(Base.NULL)
    if element.base is Base.VALUE:
        tags = {each: name for each, (name, _) in MEMBERS.items() if each in _DATATYPES or each is Base.STRING}
        cases = " ".join(f"WHEN '{tag}' THEN {_item(f'(x).{tag}', each)}" for each, tag in tags.items())
        item = f"CASE WHEN x IS NULL THEN 'null' ELSE CASE union_tag(x) {cases} END END"
    elif element.base is Base.NULL or element.base is Base.STRING or element.base in _DATATYPES:
        item = f"CASE WHEN x IS NULL THEN 'null' ELSE {_item('x', element.base)} END"
    else:
        raise RowByRow(f"SQL does not write lists of {element}")
    items = f"list_transform({value.sql}, lambda x: {item})"
    whole = f"list_aggregate({items}, 'count') = len({items})"
    return f"CASE WHEN len({items}) = 0 THEN '[]' WHEN {whole} THEN '[' || array_to_string({items}, ', ') || ']' END"


def _item(sql: str, base: Base) -> str:
    """Return SQL of the text of an item that is not null; NULL where it is not written here."""
    if base is Base.STRING:
        escaped = rf"""'"' || replace(replace({sql}, '\', '\\'), '"', '\"') || '"'"""
        return f"CASE WHEN regexp_full_match({sql}, '[ -~]*') THEN {escaped} END"
    if base in (Base.BOOLEAN, Base.INTEGER, Base.FLOAT):
        return _text(sql, base)
    return "'null'" if base is Base.NULL else f"""'"' || {_text(sql, base)} || '"^^<' || {_datatype(base)} || '>'"""


def of_keys(keys: Sequence[bytes], values: Mapping[bytes, Any]) -> arrow.Table:
    """Return the literals of values that SQL knows by a key: columns ``key``, ``lexical`` and ``datatype``.

    Raises
    ------
    RowByRow
        Some value is no property.
    """
    found = [literal_of(values[key]) for key in keys]
    if None in found:
        raise RowByRow("such a value is no property")
    texts = [arrow.array([each[i] for each in found if each is not None], arrow.STRING) for i in range(2)]
    return arrow.table([arrow.array(keys, arrow.BINARY), *texts], ["key", "lexical", "datatype"])


def internal(value: object) -> object:
    """Return a value of a user's as the evaluator knows it."""
    if isinstance(value, list):
        return [internal(item) for item in value]
    if isinstance(value, dict):
        return {key: internal(item) for key, item in value.items()}
    temporal = from_python(value)
    return value if temporal is None else temporal
