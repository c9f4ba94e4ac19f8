"""Compiles the order of values: what ORDER BY, ``min`` and ``max`` sort values of any type by.

Values of several types are ordered by their types first.  Within lists, and among others, nothing can be looked up: so
vertices there are ordered by their numbers.
"""

from __future__ import annotations

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.temporal import Temporal, Time
from graphdb.common.values.types import MEMBERS, NULL, NUMERIC, Base, Type, has_ids
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler
from graphdb.sql.equivalence import key
from graphdb.sql.joined import alternatives, options
from graphdb.sql.times import durations
from graphdb.sql.types import maps
from graphdb.sql.value import SqlValue, edges_of, instant, item_of, member, number

_LAST_ID = (1 << 63) - 1
"""A number that comes after those of all vertices."""


def sort_keys(c: Compiler, value: SqlValue) -> list[str]:
    """Return the SQL expressions that order values of any type."""
    base = value.type.base
    if not has_order(value.type):
        raise NotSupportedError("an order of such values is not supported in SQL")
    if base is Base.NODE:
        return [c.rows.iri(value).sql]
    if base is Base.TERM:
        return [c.rows.iri(value).sql, *sort_keys(c, c.value_of(value, or_text=True))]
    if base is Base.EDGE:
        return [f"({value.sql}).label", f'({value.sql})."start"', f'({value.sql})."end"', f"({value.sql}).ordinal"]
    if base is Base.CHOICE:
        return _sort_choices(c, value)
    if base is Base.MAP:
        return _sort_maps(c, value)
    if base is Base.DURATION:
        return durations.sort_keys(value)
    if base is Base.MOMENT:
        return [instant(value).sql]
    if base is Base.EXACT:
        return [exact.number(value)]
    if base is Base.VALUE:
        keys = _sort_values(value)
        members = len(_members(value))  # none where all is null, which DuckDB does not order by as a constant
        return [value.sql] if not members else keys if members == 1 else [_rank(value), *keys]
    if base is Base.LIST and orders_items(value.type.element or NULL):
        item = c.fresh()
        inside = ", ".join(_sort_inside(c, item_of(value, item)))
        return [f"list_transform({value.sql}, lambda {item}: row({inside}))"]
    return [key(c, value) if _has_keys(value.type) else value.sql]


_ORDER: tuple[Base | type[Temporal], ...] = (
    *(Base.MAP, Base.NODE, Base.EDGE, Base.LIST, Base.PATH),
    *(Base.DATE, Base.ZONED, Base.DURATION, Base.DATETIME, Base.TIME, Time),
    *(Base.STRING, Base.BOOLEAN, Base.INTEGER),
)
"""The order of values of several types: times by the names that openCypher gives their types, numbers last."""

_RANKS = {each: rank for rank, each in enumerate(_ORDER)}
_RANKS |= {Base.MOMENT: _RANKS[Base.ZONED], Base.DECIMAL: _RANKS[Base.INTEGER], Base.FLOAT: _RANKS[Base.INTEGER]}
_RANKS |= {kind: _RANKS[base] for base, kind in exact.LIKE.items()}


def _members(value: SqlValue) -> list[Base]:
    """Return the types that the values of a union have."""
    return [base for base in MEMBERS if value.bases is None or base in value.bases]


def _rank(value: SqlValue) -> str:
    """Return SQL of the place that a value's type has among all."""
    if value.type.base is not Base.VALUE:
        return str(_RANKS[value.type.of or value.type.base])
    whens = " ".join(f"WHEN '{MEMBERS[base][0]}' THEN {_RANKS[base]}" for base in _members(value))
    return f"CASE union_tag({value.sql}) {whens} END" if whens else "NULL"


def _sort_values(value: SqlValue) -> list[str]:
    """Return what orders values of several types that are of the same type; numbers that are one as floats by more."""
    there = _members(value)
    keys = [member(value, base) for base in there if base not in NUMERIC]
    if not NUMERIC.isdisjoint(there):
        keys.append(number(value))
    if len(NUMERIC.intersection(there)) > 1 and Base.INTEGER in there:
        whole = member(value, Base.INTEGER)
        keys.append(f"coalesce(CAST({whole} AS HUGEINT) - CAST(CAST({whole} AS DOUBLE) AS HUGEINT), 0)")
    return keys


def _sort_choices(c: Compiler, value: SqlValue) -> list[str]:
    """Return what orders values of a choice of types."""
    ranks, keys = [], []
    for i, (_, option) in enumerate(options(value)):
        ranks.append(f"WHEN {i} THEN {_rank(option)}")
        keys += _sort_values(option) if option.type.base is Base.VALUE else _sort_inside(c, option)
    return [f"CASE ({value.sql}).tag {' '.join(ranks)} END", *keys]


def _sort_inside(c: Compiler, value: SqlValue) -> list[str]:
    """Return what orders values that are within others, where nothing is looked up: vertices by their numbers."""
    if value.type.base is Base.NODE:
        return [value.sql]
    if value.type.base is Base.PATH:  # vertices come before edges, and so a longer path before its beginning
        last = f"CASE WHEN len(({value.sql}).codes) > 0 THEN {_LAST_ID} ELSE -1 END"
        vertices = f"CASE WHEN {value.sql} IS NOT NULL THEN (({value.sql}).vertices || [{last}]) END"
        return [vertices, edges_of(value.sql).sql]
    return sort_keys(c, value)


def has_order(type: Type) -> bool:
    """Whether SQL orders values of a type as openCypher does."""
    if type.base is Base.CHOICE:
        maps = [option for option in alternatives(type) if option.base is Base.MAP]
        return len(maps) < 2 and all(map(_has_order_inside, alternatives(type)))
    if type.base is Base.MAP:
        return all(has_order(field) for _, field in type.fields)
    if type.base is not Base.LIST:
        return type.base is not Base.PATH
    return _has_order_inside(type.element or NULL)


def _has_order_inside(type: Type) -> bool:
    """Whether SQL orders values that are within others: what is in maps there would have to be looked up."""
    if type.base in (Base.TERM, Base.TUPLE) or (type.base is Base.MAP and has_ids(type)):
        return False
    return type.base is Base.PATH or has_order(type)


def orders_items(element: Type) -> bool:
    """Whether lists of such items are ordered by what orders the items."""
    if element.base is Base.LIST:
        return orders_items(element.element or NULL)
    return element.base in (Base.VALUE, Base.CHOICE, Base.MAP, Base.PATH, Base.DURATION, Base.EXACT)


def _has_keys(type: Type) -> bool:
    """Whether values are the keys of Python's, or have keys that they are equal by, or are lists of such."""
    return type.base in (Base.ANY, Base.MOMENT) or (type.element is not None and _has_keys(type.element))


def _sort_maps(c: Compiler, value: SqlValue) -> list[str]:
    """Return what orders maps: the values of their keys, in the order of the keys; what has no more comes first."""
    keys = [f"CASE WHEN {value.sql} IS NOT NULL THEN 0 END"]
    fields = {key: maps.entry(value, key) for key in sorted(dict(value.type.fields))}
    certain = value.type.certain
    later = ["TRUE" if name in certain else f"{field.sql} IS NOT NULL" for name, field in fields.items()]
    for name, field in fields.items():
        there = later.pop(0)
        if value.type.sparse and name not in certain:
            others = f"WHEN {' OR '.join(later)} THEN 2 " if later else ""
            keys.append(f"CASE WHEN {there} THEN 1 {others}ELSE 0 END")
        if field.type.base is not Base.NULL:
            keys += sort_keys(c, field)
    return keys
