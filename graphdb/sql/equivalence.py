"""Compiles equivalence: DISTINCT, grouping and UNION take values that are equal for one, whatever their types.

DuckDB takes 1 and 1.0 of a property of several types for two values, as members of a union, and so it does within lists
and maps.  Such values are grouped by keys instead (:mod:`graphdb.common.values.numeric_keys`), which the table of a
property has in a column.  A value that only Python has goes by what its key has in common with those of equivalent
values.  Vertices that are literals go by their values.  Null is null here, and NaN is NaN.  Of the values of a group
the least one stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.numeric_keys import key_of_union
from graphdb.common.values.temporal import DateTime
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import NULL, NUMERIC, VALUE, Base, Type, has_terms
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler
from graphdb.sql.computing import VARIANT
from graphdb.sql.value import SqlValue, instant, item_of, named


def has_key(type: Type, bases: frozenset[Base] | None = None) -> bool:
    """Whether values of a type may be equal and two to DuckDB; ``bases`` are the members of a union that occur."""
    if type.base is Base.LIST:
        return type.element is not None and has_key(type.element, bases)
    if type.base in (Base.ANY, Base.MOMENT, Base.EXACT):
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
    return type.base in (Base.LIST, Base.MAP, Base.CHOICE) and any(map(lacks_key, inside))


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
        case Base.EXACT:
            return exact.number(value)
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
        case Base.MAP | Base.TUPLE | Base.CHOICE:
            fields = [value.part(f"f{i}", type) for i, (_, type) in enumerate(value.type.fields)]
            packed = ", ".join(f"f{i} := {key(c, field)}" for i, field in enumerate(fields))
            return f"CASE WHEN {value.sql} IS NOT NULL THEN struct_pack({packed}) END"
    if value.table is not None and c.rows.has_keys(value.table[1]):
        return f"{value.table[0]}.key"
    return once(c, value, lambda value: key_of_union(value.sql, value.bases))


def once(c: Compiler, value: SqlValue, make: Callable[[SqlValue], str]) -> str:
    """Return SQL that is made of a value which it names several times, and computes once; without subqueries."""
    return all_once(c, (value,), make)


def all_once(c: Compiler, values: Sequence[SqlValue], make: Callable[..., str]) -> str:
    """The same of several values, which may have subqueries: a lambda, within which none stands, is given them all."""
    computed = [value for value in values if not value.atomic]
    if not computed:
        return make(*values)
    item = c.fresh()
    if len(computed) == 1:
        given, names = computed[0].sql, [item]
    else:
        given = f"struct_pack({', '.join(f'v{i} := {value.sql}' for i, value in enumerate(computed))})"
        names = [f"{item}.v{i}" for i in range(len(computed))]
    called = dict(zip(computed, names, strict=True))
    found = [value if value.atomic else named(called[value], value.type, bases=value.bases) for value in values]
    return f"(list_transform([{given}], lambda {item}: {make(*found)}))[1]"


def least(value: SqlValue) -> str:
    """Return SQL of the value that stands for a group of equivalent ones."""
    if value.type.base is Base.VALUE:  # equal values of one member are the same
        return f"min_by({value.sql}, union_tag({value.sql}))"
    if value.type.base is Base.MOMENT or value.type.of is DateTime:
        return f"min_by({value.sql}, {exact.variant(value)})"
    return f"min({value.sql})"


def each_once(c: Compiler, value: SqlValue) -> str:
    """Return SQL of an aggregate: the list of values that are not null, one of each group of equivalent ones."""
    there = f"FILTER (WHERE {value.sql} IS NOT NULL)"
    if not has_key(value.type, value.bases):
        return f"list(DISTINCT {value.sql}) {there}"
    pair = f"struct_pack(k := {key(c, value)}, v := {value.sql})"
    return _first_of_each(c, f"list(DISTINCT {pair}) {there}")


def each_once_in_order(c: Compiler, value: SqlValue, order: str) -> str:
    """Return SQL of the list that :func:`each_once` yields, in an order of the rows: the first one of each group."""
    k = key(c, value) if has_key(value.type, value.bases) else value.sql
    rows = f"list(struct_pack(k := {k}, o := {order}, v := {value.sql})) FILTER (WHERE {value.sql} IS NOT NULL)"
    whole, row, at = c.fresh(), c.fresh(), c.fresh()
    first = f"list_filter({whole}, lambda {row}, {at}: {at} = 1 OR {whole}[{at} - 1].k IS DISTINCT FROM {row}.k)"
    placed = f"list_sort(list_transform({first}, lambda {row}: struct_pack(o := {row}.o, v := {row}.v)))"
    found = f"list_transform({placed}, lambda {row}: {row}.v)"
    return f"(list_transform([list_sort({rows})], lambda {whole}: {found}))[1]"


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
