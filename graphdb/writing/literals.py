"""Values to literals, column by column: what :func:`graphdb.literals.literal_of` does to one value of Python's."""

from __future__ import annotations

from dataclasses import dataclass

from graphdb.errors import NotSupportedError
from graphdb.storage.terms import LIST_DATATYPE, XSD
from graphdb.typed import Typed, member
from graphdb.values import MEMBERS, Base, Type

_DATATYPES = {
    Base.BOOLEAN: "boolean",
    Base.INTEGER: "integer",
    Base.FLOAT: "double",
    Base.DATE: "date",
    Base.DATETIME: "dateTime",
    Base.TIME: "time",
}
"""Types, and what XML Schema calls them; a string has no datatype."""


@dataclass(frozen=True, slots=True)
class Written:
    """SQL of a value's lexical form and datatype; both NULL for null."""

    lexical: str
    datatype: str
    total: bool = True
    """Whether each value has a lexical form: those without one are for the interpreter."""


def written(value: Typed) -> Written:
    """Return the literals of a column's values.

    Raises
    ------
    NotSupportedError
        Its values are no property, or SQL does not write them.
    """
    base = value.type.base
    if value.many or base not in {*_DATATYPES, Base.STRING, Base.NULL, Base.VALUE, Base.LIST}:
        what = "several values" if value.many else str(value.type)
        raise NotSupportedError(f"writing {what} is not for SQL")
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
    return Written(_text(value.sql, base), _datatype(base), total=base not in (Base.DATE, Base.DATETIME))


def _datatype(base: Base) -> str:
    return "CAST(NULL AS VARCHAR)" if base is Base.STRING else f"'{XSD}{_DATATYPES[base]}'"


def _text(sql: str, base: Base) -> str:
    """Return SQL of the lexical form of a value of a type; NULL where it is not written here."""
    match base:
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


def _list(value: Typed) -> str:
    """Return SQL of the text of a list; NULL where some item is not written here."""
    element = value.type.element or Type(Base.NULL)
    if element.base is Base.NULL:
        item = "'null'"
    elif element.base is Base.STRING:
        escaped = r"""'"' || replace(replace(x, '\', '\\'), '"', '\"') || '"'"""
        item = f"CASE WHEN x IS NULL THEN 'null' WHEN regexp_full_match(x, '[ -~]*') THEN {escaped} END"
    elif element.base in (Base.BOOLEAN, Base.INTEGER, Base.FLOAT):
        item = f"coalesce({_text('x', element.base)}, 'null')"
    else:
        raise NotSupportedError(f"writing lists of {element} is not for SQL")
    items = f"list_transform({value.sql}, lambda x: {item})"
    whole = f"list_aggregate({items}, 'count') = len({items})"
    return f"CASE WHEN len({items}) = 0 THEN '[]' WHEN {whole} THEN '[' || array_to_string({items}, ', ') || ']' END"
