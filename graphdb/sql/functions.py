"""Compiles the scalar functions of the language.

This module compiles the functions of vertices, edges, paths and terms, and those of values of any type; the modules of
strings, numbers, lists, maps and times compile theirs.  :data:`FORMS` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphdb.common.errors import NotSupportedError, TypeMismatchError, with_place
from graphdb.common.values.types import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    MEMBERS,
    NODE,
    NULL,
    NUMERIC,
    STRING,
    Base,
    Type,
    edge_number_sql,
    list_of,
    sql_type,
)
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compile, Compiler, Forms
from graphdb.sql.joined import options, unified
from graphdb.sql.times import durations, making, temporal
from graphdb.sql.types import lists, maps, numbers, ranges
from graphdb.sql.types import text as strings
from graphdb.sql.types.comparisons import same_term
from graphdb.sql.value import SUBQUERY, VOLATILE, SqlValue, bases_of, edges_of

# --- values ----------------------------------------------------------------------------------------------------


_REVERSED = (
    r"CASE WHEN regexp_full_match({0}, '[\x00-\x0c\x0e-\x7f]*') THEN reverse({0}) "
    "ELSE array_to_string(list_reverse(regexp_extract_all({0}, '(?s).')), '') END"
)
"""DuckDB's reverse leaves together what is seen as one character: a letter with its accents, the two ends of a line."""


def _reverse(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.LIST and not value.many:
        return SqlValue(f"list_reverse({value.sql})", value.type, bases=value.bases)
    return strings.string(_REVERSED)(c, node)


def _is_empty(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.many or value.type.base not in (Base.STRING, Base.LIST):
        raise NotSupportedError("whether this is empty is not supported in SQL", position=node.span.start)
    return SqlValue(f"({value.sql} = '')" if value.type.base is Base.STRING else f"(len({value.sql}) = 0)", BOOLEAN)


def _exists(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    return SqlValue(f"({c.anything(node.arguments[0]).sql} IS NOT NULL)", BOOLEAN)


def _size(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    if (counted := ranges.size(c, node.arguments[0])) is not None:
        return counted
    value = c.compile(node.arguments[0])
    if value.type.base is Base.PATH and node.name.lower() == "length":
        return SqlValue(f"len(({value.sql}).codes)", INTEGER)
    if value.many and value.type.element is STRING:  # one value is that value, several are a list
        return SqlValue(
            f"CASE WHEN len({value.sql}) = 1 THEN length(({value.sql})[1]) ELSE len({value.sql}) END", INTEGER
        )
    if value.type.base is Base.LIST:
        return SqlValue(f"len({value.sql})", INTEGER)
    return strings.string("length({0})", INTEGER)(c, node)


_CONVERTED: Mapping[Type, frozenset[Base]] = {
    INTEGER: frozenset({Base.STRING} | NUMERIC),
    FLOAT: frozenset({Base.STRING} | NUMERIC),
    BOOLEAN: frozenset({Base.STRING, Base.BOOLEAN, Base.INTEGER}),
}
"""What each conversion takes."""
_REAL = r"\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|Infinity|INF|NaN)\s*"
"""How texts say a number: DuckDB reads more of them, such as ``1_0`` and ``inf``."""


_TRUE, _FALSE = (
    rf"[\s\pZ]*{''.join(f'[{letter.upper()}{letter}]' for letter in word)}[\s\pZ]*" for word in ("true", "false")
)
"""How they say a truth value: what else a long text says, its first characters show."""


def _to(target: Type) -> Compile:
    """Return ``toInteger`` and its kin: null for text that says something else, an error for values that it refuses."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        value, argument = c.value_of(c.one(node.arguments[0])), node.arguments[0]
        if value.type.base is Base.VALUE:
            whens = []
            for base, (member, _) in MEMBERS.items():
                if base in _CONVERTED[target]:
                    item = f"union_extract({value.sql}, '{member}')"
                    whens.append(f"WHEN '{member}' THEN {_converted(item, base)}")
            refused = with_place(f"{node.name} does not take every value here", argument.span.start, TypeMismatchError)
            whens.append(f"ELSE {c.rows.error(refused)}")
            chosen = f"CASE union_tag({value.sql}) {' '.join(whens)} END"
            return SqlValue(f"CASE WHEN {value.sql} IS NOT NULL THEN {chosen} END", target)
        if value.type.base is not Base.NULL and value.type.base not in _CONVERTED[target]:
            raise c.mismatch(f"{node.name} does not take {value.type}", argument)
        if value.type.base is Base.STRING and not (value.atomic or value.column or value.table):
            text = c.fresh()  # which is made once
            made = f"list_transform([{value.sql}], lambda {text}: {_converted(text, Base.STRING)})"
            return SqlValue(f"({made})[1]", target)
        return SqlValue(_converted(value.sql, value.type.base), target)

    def _converted(sql: str, base: Base) -> str:
        real = f"TRY_CAST(CASE WHEN regexp_full_match({sql}, '{_REAL}') THEN {sql} END AS DOUBLE)"
        if target is INTEGER and base is Base.STRING:  # as a float it would lose digits
            whole = f"regexp_full_match({sql}, '\\s*[+-]?[0-9]+\\s*')"
            return f"CASE WHEN {whole} THEN TRY_CAST({sql} AS BIGINT) ELSE TRY_CAST(trunc({real}) AS BIGINT) END"
        if target is FLOAT and base is Base.STRING:
            return real
        if target is INTEGER and base in (Base.FLOAT, Base.DECIMAL):
            return f"TRY_CAST(trunc({sql}) AS BIGINT)"
        if target is BOOLEAN and base is Base.STRING:
            return (
                f"CASE WHEN regexp_full_match({sql}, '{_TRUE}') THEN TRUE "
                f"WHEN regexp_full_match({sql}, '{_FALSE}') THEN FALSE END"
            )
        return f"TRY_CAST({sql} AS {sql_type(target)})"

    return compile


def _to_string(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    return SqlValue(strings.text_of(c, c.one(node.arguments[0]), node), STRING)


def _coalesce(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    values = [c.handed_on(c.whole(argument)) for argument in node.arguments]
    if all(value.type.base is Base.NULL for value in values):
        return SqlValue("NULL", NULL)
    sql, type = unified(values)
    return SqlValue(_first(values, sql), type, bases=bases_of(values))


def _first(values: list[SqlValue], sql: list[str]) -> str:
    """Return SQL of the first of some values that is not null."""
    if not any(value.can_fail for value in values[1:]):
        return f"coalesce({', '.join(sql)})"
    # What stands twice in an argument of coalesce, DuckDB computes before it.
    found = " ".join(f"WHEN {value.sql} IS NOT NULL THEN {each}" for value, each in zip(values, sql, strict=True))
    return f"CASE {found} END"


# --- vertices, edges, terms ------------------------------------------------------------------------------------


def _id(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.EDGE:
        number = edge_number_sql(value.sql)
    elif value.type.base in (Base.NODE, Base.TERM):
        number = f"CAST({value.sql} AS BIGINT)"
    else:
        raise c.mismatch(f"{node.name} needs a vertex or an edge, found {value.type}", node.arguments[0])
    if node.name.lower() == "elementid":
        return SqlValue(f"CAST({number} AS VARCHAR)", STRING)
    return SqlValue(number, INTEGER)


def _iri(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """``iri(vertex)`` is its IRI, ``iri(edge)`` that of its label; ``iri('http://…')`` is the vertex."""
    argument = node.arguments[0]
    value = c.compile(argument)
    if value.type.base is Base.EDGE:
        return c.rows.iri(value.part("label", NODE))
    if value.type.base in (Base.NODE, Base.TERM):
        return c.rows.iri(value)
    if value.type.base is Base.STRING and not value.many:
        found = f"(SELECT id FROM _graphdb.resource WHERE iri = {value.sql})"
        return SqlValue(found, NODE, constant=True, effects=value.effects | SUBQUERY)
    raise c.mismatch(f"iri needs a vertex, an edge or the text of an IRI, found {value.type}", argument)


def _labels(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.CHOICE:
        return _of_choice(c, value, Base.NODE, node, c.rows.labels)
    if value.type.base not in (Base.NODE, Base.TERM):
        raise c.mismatch(f"labels needs a vertex, found {value.type}", node.arguments[0])
    return c.rows.labels(value)


def _of_choice(
    c: Compiler, value: SqlValue, base: Base, node: ast.FunctionCall, make: Callable[[SqlValue], SqlValue]
) -> SqlValue:
    """Return what is made of values of one type among others: of those running it fails."""
    for test, each in options(value):
        if each.type.base is base:
            found = make(each)
            error = c.rows.error(with_place(f"{node.name} needs {base.value}", node.span.start, TypeMismatchError))
            c.rows.noted.mistaken = True
            return SqlValue(f"CASE WHEN {test} OR {value.sql} IS NULL THEN {found.sql} ELSE {error} END", found.type)
    raise c.mismatch(f"{node.name} needs {base.value}, found {value.type}", node.arguments[0])


def _type(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.CHOICE:
        return _of_choice(c, value, Base.EDGE, node, lambda edge: c.rows.written(edge.part("label", NODE)))
    return c.rows.written(_edge(c, node).part("label", NODE))


def _predicate(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """Return an edge's label as the vertex that it is."""
    return _edge(c, node).part("label", NODE)


def _graphs(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    return c.rows.graphs(_edge(c, node))


def _end(field: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        return _edge(c, node).part(f'"{field}"', NODE)

    return compile


def _edge(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base is not Base.EDGE:
        raise c.mismatch(f"{node.name} needs an edge, found {value.type}", node.arguments[0])
    return value


def _nodes(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    return _path(c, node).part("vertices", list_of(NODE))


def _relationships(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    return edges_of(_path(c, node).sql)


def _path(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base is not Base.PATH:
        raise c.mismatch(f"{node.name} needs a path, found {value.type}", node.arguments[0])
    return value


def _facet(column: str) -> Compile:
    """Return ``lang`` or ``datatype``: what the literal behind a property or a literal vertex says of itself."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        argument = node.arguments[0]
        if isinstance(argument, ast.Property):
            base = c.compile(argument.base)
            if base.type.base in (Base.NODE, Base.TERM):
                return c.rows.facet(base, c.names.property(argument.key.words, c.text), column)
        value = c.compile(argument)
        if value.type.base is Base.TERM:
            return c.rows.literal_facet(value, column)
        raise c.mismatch(f"{node.name} needs a property or a vertex that is a literal", argument)

    return compile


def _same_term(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    terms = [c.compile(argument) for argument in node.arguments]
    for term, argument in zip(terms, node.arguments, strict=True):
        if term.type.base not in (Base.NODE, Base.TERM, Base.NULL):
            raise c.mismatch(f"{node.name} needs vertices, found {term.type}", argument)
    if any(term.type.base is Base.NULL for term in terms):
        return SqlValue("CAST(NULL AS BOOLEAN)", BOOLEAN)
    return SqlValue(same_term(*terms), BOOLEAN)


FORMS: Forms = {
    "reverse": _reverse,
    "size": _size,
    "length": _size,
    "tointeger": _to(INTEGER),
    "tofloat": _to(FLOAT),
    "toboolean": _to(BOOLEAN),
    "tostring": _to_string,
    "coalesce": _coalesce,
    "exists": _exists,
    "isempty": _is_empty,
    "randomuuid": lambda c, node: SqlValue("CAST(uuid() AS VARCHAR)", STRING, effects=VOLATILE),
    "id": _id,
    "elementid": _id,
    "iri": _iri,
    "labels": _labels,
    "graphs": _graphs,
    "type": _type,
    "predicate": _predicate,
    "startnode": _end("start"),
    "endnode": _end("end"),
    "nodes": _nodes,
    "relationships": _relationships,
    "lang": _facet("language"),
    "sameterm": _same_term,
    "datatype": _facet("datatype"),
    **strings.FORMS,
    **numbers.FORMS,
    **lists.FORMS,
    **maps.FORMS,
    **temporal.FORMS,
    **making.FORMS,
    **durations.FORMS,
}
"""How functions compile, by their signatures' keys; what has no form here is computed by Python."""
