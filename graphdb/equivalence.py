"""Which values are one to DISTINCT, grouping and UNION: those that are equal, whatever their types.

DuckDB takes 1 and 1.0 of a property of several types for two values, as members of a union, and so it does within lists
and maps.  Such values are grouped by keys instead.  A key is what the numbers that are equal have in common: the float
that they are, or (of what no float is exactly) a decimal.  A decimal is a float if it is the shortest one read as it.
Floats are a column of their own in a key, beside a union of all else: DuckDB hashes and compares a union by each of its
members.  Vertices that are literals go by their values.  Null is null here, and NaN is NaN.  Of the values of a group
the least one stands for all.
"""

from __future__ import annotations

from graphdb.compiler import Compiler
from graphdb.errors import NotSupportedError
from graphdb.storage.terms import LITERAL_BASE
from graphdb.typed import Typed
from graphdb.values import MEMBERS, UNION, VALUE, Base, Type, has_terms

_EXACT = 1 << 53
"""All integers up to here are floats, and no fractions are from here on."""

_SHORT = 40
"""Characters of SQL that may be repeated."""


def has_key(type: Type) -> bool:
    """Whether values of a type may be equal and two values to DuckDB."""
    if type.base is Base.LIST:
        return type.element is not None and has_key(type.element)
    if type.base is Base.TERM:
        return not type.unique
    return type.base is Base.VALUE or any(has_key(field) for _, field in type.fields)


def key(c: Compiler, value: Typed) -> str:
    """Return SQL that DuckDB takes for the same where values are equivalent: NULL where the value is.

    Raises
    ------
    NotSupportedError
        What tells them apart would have to be looked up for each item of a list.
    """
    if not has_key(value.type):
        return value.sql
    match value.type.base:
        case Base.TERM if value.type.element is not None:  # literals alone
            return key(c, c.value_of(value))
        case Base.TERM:
            term, literal = value.sql, key(c, c.rows.literal(value.sql, VALUE))
            parts = f"vertex := CASE WHEN {term} < {LITERAL_BASE} THEN {term} END, value := {literal}"
            return f"CASE WHEN {term} IS NOT NULL THEN struct_pack({parts}) END"
        case Base.LIST:
            assert value.type.element is not None
            item = c.fresh()
            if has_terms(value.type.element):
                raise NotSupportedError("lists of vertices and values are not told apart in SQL")
            return f"list_transform({value.sql}, lambda {item}: {key(c, Typed(item, value.type.element))})"
        case Base.MAP | Base.TUPLE:
            fields = [Typed(f"({value.sql}).f{i}", type) for i, (_, type) in enumerate(value.type.fields)]
            packed = ", ".join(f"f{i} := {key(c, field)}" for i, field in enumerate(fields))
            return f"CASE WHEN {value.sql} IS NOT NULL THEN struct_pack({packed}) END"
    if len(value.sql) <= _SHORT:
        return _canonical(value.sql)
    item = c.fresh()
    return f"(list_transform([{value.sql}], lambda {item}: {_canonical(item)}))[1]"


def least(value: Typed) -> str:
    """Return SQL of the value that stands for a group of equivalent ones."""
    return f"min({value.sql})"


def each_once(c: Compiler, value: Typed) -> str:
    """Return SQL of an aggregate: the list of values that are not null, one of each group of equivalent ones."""
    pair = f"struct_pack(k := {key(c, value)}, v := {value.sql})"
    return _first_of_each(c, f"list(DISTINCT {pair}) FILTER (WHERE {value.sql} IS NOT NULL)", value.type)


def items_once(c: Compiler, values: Typed) -> str:
    """Return SQL of a list with one of each group of its items that are equivalent."""
    if values.type.element is None or not has_key(values.type.element):
        return f"list_distinct({values.sql})"
    item = c.fresh()
    pair = f"struct_pack(k := {key(c, Typed(item, values.type.element))}, v := {item})"
    return _first_of_each(c, f"list_transform({values.sql}, lambda {item}: {pair})", values.type.element)


def _first_of_each(c: Compiler, pairs: str, type: Type) -> str:
    """Return SQL of the values of a list of keys (``k``) with values (``v``): the first one of each key."""
    whole, pair, at = c.fresh(), c.fresh(), c.fresh()
    first = f"list_filter({whole}, lambda {pair}, {at}: {at} = 1 OR {whole}[{at} - 1].k IS DISTINCT FROM {pair}.k)"
    found = f"list_transform({first}, lambda {pair}: {pair}.v)"
    return f"(list_transform([list_sort({pairs})], lambda {whole}: {found}))[1]"


def _canonical(union: str) -> str:
    """Return SQL of a struct that is one for equal values of a union: numbers that are floats, and what is none."""
    whole, real, exact = (f"({union}).{MEMBERS[base][0]}" for base in (Base.INTEGER, Base.FLOAT, Base.DECIMAL))
    integral = f"{whole} BETWEEN {-_EXACT} AND {_EXACT} OR CAST(CAST({whole} AS DOUBLE) AS HUGEINT) = {whole}"
    near = f"CAST(CAST({exact} AS VARCHAR) AS DOUBLE)"  # of the text: the nearest, however many digits it has
    decimal = MEMBERS[Base.DECIMAL][1]
    same = (
        f"CASE WHEN abs({near}) < {_EXACT} THEN TRY_CAST(CAST({near} AS VARCHAR) AS {decimal}) "
        f"ELSE TRY_CAST(CAST({near} AS HUGEINT) AS {decimal}) END = {exact}"
    )
    tag = f"union_tag({union})"
    floats = (
        f"CASE {tag} WHEN 'integer' THEN CASE WHEN {integral} THEN CAST({whole} AS DOUBLE) END "
        f"WHEN 'float' THEN {real} WHEN 'decimal' THEN CASE WHEN {same} THEN {near} END END"
    )
    others = (
        f"CASE {tag} WHEN 'integer' THEN CASE WHEN {integral} THEN NULL ELSE {_member(Base.DECIMAL, whole)} END "
        f"WHEN 'float' THEN NULL WHEN 'decimal' THEN CASE WHEN {same} THEN NULL ELSE {union} END ELSE {union} END"
    )
    return f"CASE WHEN {tag} IS NOT NULL THEN struct_pack(f := {floats}, o := {others}) END"


def _member(base: Base, sql: str) -> str:
    name, type = MEMBERS[base]
    return f"CAST(union_value({name} := CAST({sql} AS {type})) AS {UNION})"
