"""Compiles equivalence: DISTINCT, grouping and UNION take values that are equal for one, whatever their types.

DuckDB takes 1 and 1.0 of a property of several types for two values, as members of a union, and so it does within lists
and maps.  Such values are grouped by keys instead.  A key is what the numbers that are equal have in common: the float
that they are, or (of what no float is exactly) a decimal.  A decimal is a float if it is the shortest one read as it.
DuckDB hashes and compares a union by each of its members, and so it does a key: it has columns only for the types that
a property's values have.  A value that only Python has goes by what its key has in common with those of equivalent
values.  Vertices that are literals go by their values.  Null is null here, and NaN is NaN.  Of the values of a group
the least one stands for all.
"""

from __future__ import annotations

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import MEMBERS, NULL, NUMERIC, VALUE, Base, Type, has_terms
from graphdb.sql.compiler import Compiler
from graphdb.sql.computing import VARIANT
from graphdb.sql.value import SqlValue, instant, item_of, offset_of

_EXACT = 1 << 53
"""All integers up to here are floats, and no fractions are from here on."""


def has_key(type: Type, bases: frozenset[Base] | None = None) -> bool:
    """Whether values of a type may be equal and two to DuckDB; ``bases`` are the members of a union that occur."""
    if type.base is Base.LIST:
        return type.element is not None and has_key(type.element, bases)
    if type.base in (Base.ANY, Base.MOMENT):
        return True
    if type.base is Base.TERM:
        return not type.unique
    if type.base is Base.VALUE:
        return bases is None or len(bases & NUMERIC) > 1
    return any(has_key(field) for _, field in type.fields)


def lacks_key(type: Type) -> bool:
    """Whether what distinguishes values of a type would have to be looked up for each item of a list."""
    if type.base is Base.LIST and type.element is not None and has_terms(type.element):
        return True
    inside = [type.element or NULL, *(field for _, field in type.fields)]
    return type.base in (Base.LIST, Base.MAP) and any(map(lacks_key, inside))


def key(c: Compiler, value: SqlValue) -> str:
    """Return SQL that DuckDB takes for the same where values are equivalent.

    Raises
    ------
    NotSupportedError
        What distinguishes them would have to be looked up for each item of a list.
    """
    if not has_key(value.type, value.bases):
        return value.sql
    match value.type.base:
        case Base.ANY:
            return f"({value.sql})[:-{VARIANT + 1}]"
        case Base.MOMENT:
            return instant(value).sql
        case Base.TERM if value.type.element is not None:  # literals alone
            return key(c, c.value_of(value))
        case Base.TERM:
            term, literal = value.sql, key(c, c.rows.literal(value, VALUE))
            parts = f"vertex := CASE WHEN {term} < {LITERAL_BASE} THEN {term} END, value := {literal}"
            return f"CASE WHEN {term} IS NOT NULL THEN struct_pack({parts}) END"
        case Base.LIST:
            assert value.type.element is not None
            item = c.fresh()
            if has_terms(value.type.element):
                raise NotSupportedError("lists of vertices and values are not distinguished in SQL")
            return f"list_transform({value.sql}, lambda {item}: {key(c, item_of(value, item))})"
        case Base.MAP | Base.TUPLE:
            fields = [value.part(f"f{i}", type) for i, (_, type) in enumerate(value.type.fields)]
            packed = ", ".join(f"f{i} := {key(c, field)}" for i, field in enumerate(fields))
            return f"CASE WHEN {value.sql} IS NOT NULL THEN struct_pack({packed}) END"
    if value.atomic:
        return _canonical(value.sql, value.bases)
    item = c.fresh()
    return f"(list_transform([{value.sql}], lambda {item}: {_canonical(item, value.bases)}))[1]"


def least(value: SqlValue) -> str:
    """Return SQL of the value that stands for a group of equivalent ones."""
    if value.type.base is Base.VALUE:  # equal values of one member are the same
        return f"min_by({value.sql}, union_tag({value.sql}))"
    if value.type.base is Base.MOMENT:  # one in UTC comes first
        offset = offset_of(value)
        return f"min_by({value.sql}, CASE {offset} WHEN 0 THEN '' ELSE CAST({offset} AS VARCHAR) END)"
    return f"min({value.sql})"


def each_once(c: Compiler, value: SqlValue) -> str:
    """Return SQL of an aggregate: the list of values that are not null, one of each group of equivalent ones."""
    there = f"FILTER (WHERE {value.sql} IS NOT NULL)"
    if not has_key(value.type, value.bases):
        return f"list(DISTINCT {value.sql}) {there}"
    pair = f"struct_pack(k := {key(c, value)}, v := {value.sql})"
    return _first_of_each(c, f"list(DISTINCT {pair}) {there}")


def items_once(c: Compiler, values: SqlValue) -> str:
    """Return SQL of a list with one of each group of its items that are equivalent."""
    if not has_key(values.type, values.bases):
        return f"list_distinct({values.sql})"
    item = c.fresh()
    pair = f"struct_pack(k := {key(c, item_of(values, item))}, v := {item})"
    return _first_of_each(c, f"list_transform({values.sql}, lambda {item}: {pair})")


def _first_of_each(c: Compiler, pairs: str) -> str:
    """Return SQL of the values of a list of keys (``k``) with values (``v``): the first one of each key."""
    whole, pair, at = c.fresh(), c.fresh(), c.fresh()
    first = f"list_filter({whole}, lambda {pair}, {at}: {at} = 1 OR {whole}[{at} - 1].k IS DISTINCT FROM {pair}.k)"
    found = f"list_transform({first}, lambda {pair}: {pair}.v)"
    return f"(list_transform([list_sort({pairs})], lambda {whole}: {found}))[1]"


def _canonical(union: str, bases: frozenset[Base] | None) -> str:
    """Return SQL of a struct that is one for equal values of a union: the float or the decimal that a number is, and
    what is none.  Of null all its parts are null.
    """
    there = [base for base in MEMBERS if bases is None or base in bases]
    member = {base: f"({union}).{MEMBERS[base][0]}" for base in there}
    parts = {MEMBERS[base][0]: member[base] for base in there if base not in NUMERIC}
    decimal = MEMBERS[Base.DECIMAL][1]
    floats, exact = [], []
    if Base.FLOAT not in there:  # a decimal holds all others
        exact = [f"CAST({member[base]} AS {decimal})" for base in there if base in NUMERIC]
    else:
        floats.append(member[Base.FLOAT])
        if Base.INTEGER in there:
            whole = member[Base.INTEGER]
            floats.append(f"CASE WHEN {_is_float(whole)} THEN CAST({whole} AS DOUBLE) END")
            exact.append(f"CASE WHEN NOT ({_is_float(whole)}) THEN CAST({whole} AS {decimal}) END")
        if Base.DECIMAL in there:
            near = _nearest(member[Base.DECIMAL])
            floats.append(near)
            exact.append(f"CASE WHEN {near} IS NULL THEN {member[Base.DECIMAL]} END")
    parts |= {name: f"coalesce({', '.join(of)})" for name, of in (("f", floats), ("e", exact)) if of}
    packed = ", ".join(f'"{name}" := {sql}' for name, sql in parts.items())
    return f"struct_pack({packed})"  # without a CASE around it, DuckDB computes only once what stands there twice


def _is_float(whole: str) -> str:
    """Return SQL of whether a float is an integer exactly."""
    return f"{whole} BETWEEN {-_EXACT} AND {_EXACT} OR CAST(CAST({whole} AS DOUBLE) AS HUGEINT) = {whole}"


def _nearest(exact: str) -> str:
    """Return SQL of the float of which a decimal is the shortest text that is read as it; NULL if it is of none."""
    decimal = MEMBERS[Base.DECIMAL][1]
    # Of 15 digits at most it always is, and the quotient of two integers that floats hold is rounded but once.
    millionths = f"round(CAST({exact} AS DOUBLE) * 1e6)"
    is_short = f"TRY_CAST({millionths} AS DECIMAL(15, 0)) * 0.000001 = {exact}"
    near = f"CAST(CAST({exact} AS VARCHAR) AS DOUBLE)"  # of the text: the nearest, however many digits it has
    same = (
        f"CASE WHEN abs({near}) < {_EXACT} THEN TRY_CAST(CAST({near} AS VARCHAR) AS {decimal}) "
        f"ELSE TRY_CAST(CAST({near} AS HUGEINT) AS {decimal}) END = {exact}"
    )
    return f"CASE WHEN {is_short} THEN {millionths} / 1e6 WHEN {same} THEN {near} END"
