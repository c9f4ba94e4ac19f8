"""Compiles maps to structs, where the text of a query says what their keys are.

A map that is written out, or made of a vertex by naming its properties, has a field per key (``f0 …``: keys differ by
case, DuckDB's fields do not) whose type is known.  So has the map of all of a vertex's properties, where it has one
value of each and they are not many; a key that is null is not in it, unless it is written beside them, as in
``a {.*, n: null}``.  Python computes maps whose keys only the data knows (:mod:`graphdb.sql.udf`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import NO_KEYS, NULL, STRING, Base, Type, list_of, sql_type
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compiler, Forms
from graphdb.sql.value import SqlValue

_MOST = 1000
"""Keys that a map has in SQL, those of the maps in it included: DuckDB plans and computes each field of a struct by
itself, and does not stop meanwhile; of a map whose maps have maps there soon are millions."""


def made_of(entries: Sequence[tuple[str, SqlValue]]) -> SqlValue:
    """Return the map of some keys and values; of a key that comes twice, the last value.

    Raises
    ------
    NotSupportedError
        It has very many keys.
    """
    last = dict(entries)
    fields = tuple((key, value.type) for key, value in last.items())
    if sum(_keys_of(type) for _, type in fields) > _MOST:
        raise NotSupportedError("a map of very many keys is not supported in SQL")
    packed = ", ".join(f"f{i} := CAST({value.sql} AS {sql_type(value.type)})" for i, value in enumerate(last.values()))
    return SqlValue(f"struct_pack({packed or NO_KEYS})", Type(Base.MAP, fields=fields), items=tuple(last.values()))


def _keys_of(type: Type) -> int:
    """Return how many keys there are in values of a type, at least one."""
    if type.element is not None:
        return _keys_of(type.element)
    return sum(_keys_of(field) for _, field in type.fields) or 1


def of_all_properties(node: object) -> ast.Variable | None:
    """Return the variable all of whose properties are in a map, or their keys in a list; None for any other."""
    match node:
        case ast.FunctionCall(name, (ast.Variable() as variable,)) if name.lower() in FORMS:
            return variable
        case ast.MapProjection(ast.Variable() as variable, items) if None in items:
            return variable
    return None


def property_of(variable: ast.Variable, iri: str) -> ast.Property:
    """Return the property of a variable whose key is an IRI."""
    return ast.Property(variable, ast.KeyName((ast.Word(iri, is_iri=True),)))


def _every_property(c: Compiler, element: SqlValue, node: ast.Expression) -> list[tuple[str, SqlValue]]:
    """Return the properties of a vertex or edge, all of which an expression asks for.

    Values that SQL does not hold Python reads of their texts; where keys alone are asked for, there is another way.
    """
    variable = of_all_properties(node)
    only_keys = isinstance(node, ast.FunctionCall) and node.name.lower() == "keys"

    def known(iri: str) -> SqlValue | None:
        if variable is None:
            return None
        property = property_of(variable, iri)
        if element.type.base is Base.EDGE:
            return c.scope.known.get(property)
        return None if only_keys else c.computed(replace(property, span=node.span))

    return list(c.rows.every_value(element, c.names, known).items())


def _properties(c: Compiler, element: SqlValue, node: ast.Expression) -> SqlValue:
    """Return the map of all properties of a vertex or edge, which an expression is."""
    packed = made_of(_every_property(c, element, node))
    sql = f"CASE WHEN {element.sql} IS NOT NULL THEN {packed.sql} END"
    return SqlValue(sql, replace(packed.type, sparse=True), items=packed.items)


def entry(map: SqlValue, key: str) -> SqlValue:
    """Return what a key leads to: null where it is not there."""
    for i, (name, type) in enumerate(map.type.fields):
        if name == key:
            return map.part(f"f{i}", type)
    return SqlValue("NULL", NULL)


def subscript(c: Compiler, base: SqlValue, node: ast.Subscript) -> SqlValue:
    """Return what a key in brackets leads to, where the text of the query says which it is."""
    key = node.index.value if isinstance(node.index, ast.Literal) else None
    if isinstance(key, str) and base.type.base is Base.MAP:
        return entry(base, key)
    raise NotSupportedError("a key that only the data knows is not supported in SQL", position=node.span.start)


def _value(c: Compiler, node: ast.Expression) -> SqlValue:
    """Compile what a key of a map leads to."""
    value = c.anything(node)
    if value.many:
        raise NotSupportedError("a property with several values is not supported in a map in SQL")
    return c.value_of(value) if value.type.base is Base.TERM and value.type.element is not None else value


def _literal(c: Compiler, node: ast.MapLiteral) -> SqlValue:
    return made_of([(key.text, _value(c, value)) for key, value in node.items])


def _projection(c: Compiler, node: ast.MapProjection) -> SqlValue:
    base = c.compile(node.base)
    if node.items == (None,) and base.type.base in (Base.NODE, Base.EDGE):
        return _properties(c, base, node)
    entries: list[tuple[str, SqlValue]] = []
    certain: set[str] = set()
    for item in node.items:
        if item is None and base.type.base in (Base.NODE, Base.EDGE):
            every = _every_property(c, base, node)
            if not certain.isdisjoint(key for key, _ in every):  # of a property that is null, what stands before it
                raise NotSupportedError(
                    "properties after their keys are not supported in SQL", position=node.span.start
                )
            entries += every
        elif item is None:
            if base.type.base is not Base.MAP or base.type.sparse:
                raise NotSupportedError("all properties of a vertex are not known to SQL", position=node.span.start)
            entries += [(key, entry(base, key)) for key, _ in base.type.fields]
        else:
            entries.append((item[0], _value(c, item[1])))
            certain.add(item[0])
    if base.type.base is Base.NULL:
        return base
    if base.type.base not in (Base.NODE, Base.EDGE, Base.MAP):
        raise NotSupportedError(f"a map of {base.type} is not supported in SQL", position=node.span.start)
    found = made_of(entries)
    type = found.type
    if None in node.items and base.type.base is not Base.MAP:
        type = replace(type, sparse=True, certain=frozenset(certain))
    return SqlValue(f"CASE WHEN {base.sql} IS NOT NULL THEN {found.sql} END", type, items=found.items)


COMPILED: Mapping[type, Callable[[Compiler, Any], SqlValue]] = {
    ast.MapLiteral: _literal,
    ast.MapProjection: _projection,
}


def _map(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base in (Base.NODE, Base.EDGE):
        return _properties(c, value, node)
    if value.type.base in (Base.NULL, Base.MAP):
        return value
    raise NotSupportedError(f"{node.name} of {value.type} is not supported in SQL", position=node.span.start)


def _keys(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    of = c.compile(node.arguments[0])
    try:
        value = _map(c, node)
    except NotSupportedError:
        if of.type.base is not Base.NODE:
            raise
        return c.rows.keys(of)
    if value.type.sparse:
        fields = value.items or [entry(value, key) for key, _ in value.type.fields]
        there = [
            name.sql if key in value.type.certain else f"CASE WHEN {field.sql} IS NOT NULL THEN {name.sql} END"
            for (key, _), field in zip(value.type.fields, fields, strict=True)
            for name in (c.constant(key, node),)
        ]
        item = c.fresh()
        found = f"list_filter([{', '.join(there)}], lambda {item}: {item} IS NOT NULL)"
        return SqlValue(f"CASE WHEN {of.sql} IS NOT NULL THEN {found} END", list_of(STRING))
    names = c.constant([key for key, _ in value.type.fields], node) if value.type.fields else SqlValue("[]", NULL)
    return SqlValue(f"CASE WHEN {value.sql} IS NOT NULL THEN {names.sql} END", list_of(STRING))


FORMS: Forms = {
    "properties": _map,
    "keys": _keys,
}
