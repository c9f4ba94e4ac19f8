"""What a user of SQL sees of rows: vertices as their IRIs, edges and paths by their names, durations as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.values.types import LABEL_OF, WHOLE_AND_REAL, Base, Column, Type
from graphdb.sql.from_clause import NAMES_VIEW
from graphdb.sql.times import durations
from graphdb.sql.types.text import exact_text
from graphdb.sql.value import SqlValue, as_list, instant, number


def presented(relation: str, columns: tuple[Column, ...], *, ordered: bool = True) -> str:
    """Return SQL that shows a relation (``c0 … cn``) as a table: vertices as IRIs, names as written.

    With ``ordered`` its rows come as they are in the relation: a sort, which a table without an order does not need.
    """
    shown = [_column(f"q.c{i}", column, i) for i, column in enumerate(columns)]
    joins = [join for each in shown for join in each.joins]
    chosen = [f"{each.sql} AS {quoted(column.sql_name)}" for each, column in zip(shown, columns, strict=True)]
    moved = joins or any(each.subquery for each in shown)  # DuckDB makes a join of a subquery, too
    if not moved or not ordered:
        return f"SELECT {', '.join(chosen)} FROM {relation} q {' '.join(joins)}"
    # The joins must not disturb the order of the rows.
    source = f"(SELECT *, row_number() OVER () AS at FROM {relation})"
    return f"SELECT {', '.join(chosen)} FROM {source} q {' '.join(joins)} ORDER BY q.at ASC"


@dataclass(frozen=True, slots=True)
class _Shown:
    """SQL of what a user sees of a value, and the joins that it needs."""

    sql: str
    joins: Sequence[str] = ()
    subquery: bool = False
    """Whether a subquery is within it."""


def shows_floats(column: Column) -> bool:
    """Whether a column has integers and floating-point numbers, all of which a user of SQL sees as these."""
    return column.type.base is Base.VALUE and column.bases == WHOLE_AND_REAL and not column.many


def _column(sql: str, column: Column, i: int) -> _Shown:
    if shows_floats(column):
        return _Shown(number(SqlValue(sql, column.type)))
    return _presented(sql, column.type, i)


def _instants(value: SqlValue) -> SqlValue:
    """Return a tuple whose points in time are in UTC, as a list of several types has them in SQL."""
    fields = [value.part(f"f{i}", type) for i, (_, type) in enumerate(value.type.fields)]
    if all(field.type.base is not Base.MOMENT for field in fields):
        return value
    items = tuple(map(instant, fields))
    packed = ", ".join(f"f{i} := {item.sql}" for i, item in enumerate(items))
    type = replace(value.type, fields=tuple(("", item.type) for item in items))
    return SqlValue(f"CASE WHEN {value.sql} IS NOT NULL THEN struct_pack({packed}) END", type)


def _presented(sql: str, type: Type, i: int | str) -> _Shown:
    resource = f"LEFT JOIN _graphdb.resource r{i} ON r{i}.id = {sql}"
    literal = f"LEFT JOIN _graphdb.literal l{i} ON l{i}.id = {sql}"
    match type.base:
        case Base.NODE:
            return _Shown(f"r{i}.iri", [resource])
        case Base.TERM:
            return _Shown(f"coalesce(r{i}.iri, l{i}.lexical)", [resource, literal])
        case Base.EDGE:
            return _Shown(
                f'CASE WHEN {sql} IS NOT NULL THEN struct_pack("type" := n{i}.name, "start" := s{i}.iri, '
                f'"end" := coalesce(t{i}.iri, l{i}.lexical)) END',
                [
                    f"LEFT JOIN {NAMES_VIEW} n{i} ON n{i}.id = ({sql}).label",
                    f'LEFT JOIN _graphdb.resource s{i} ON s{i}.id = ({sql})."start"',
                    f'LEFT JOIN _graphdb.resource t{i} ON t{i}.id = ({sql})."end"',
                    f'LEFT JOIN _graphdb.literal l{i} ON l{i}.id = ({sql})."end"',
                ],
            )
        case Base.PATH:
            step = "':' || n.name || ']"
            forward = "u.code & 1 = 0 OR u.vertex = u.before"
            return _Shown(
                "(SELECT string_agg(CASE WHEN u.code IS NULL THEN '(' || r.iri || ')' "
                f"WHEN {forward} THEN '-[' || {step}->(' || r.iri || ')' ELSE '<-[' || {step}-(' || r.iri || ')' END, "
                f"'' ORDER BY u.at ASC) FROM (SELECT unnest(({sql}).vertices) AS vertex, unnest(list_prepend(NULL, "
                f"({sql}).codes)) AS code, unnest(list_prepend(NULL, ({sql}).vertices)) AS before, "
                f"generate_subscripts(({sql}).vertices, 1) AS at) u JOIN _graphdb.resource r ON r.id = u.vertex "
                f"LEFT JOIN {NAMES_VIEW} n ON n.id = ((u.code >> 1) & {LABEL_OF}))",
                subquery=True,
            )
        case Base.MOMENT:
            return _Shown(f"({sql}).moment")
        case Base.DURATION:
            return _Shown(durations.text(sql))
        case Base.EXACT:
            return _Shown(exact_text(SqlValue(sql, type, atomic=True), seconds=True))
        case Base.TUPLE:
            return _Shown(as_list(_instants(SqlValue(sql, type))).sql)
        case Base.MAP:
            shown = [_presented(f"({sql}).f{j}", field, f"{i}_{j}") for j, (_, field) in enumerate(type.fields)]
            pairs = zip(type.fields, shown, strict=True)
            packed = ", ".join(f"{quoted(key)} := {value.sql}" for (key, _), value in pairs)
            whole = f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({packed}) END"
            joins = [join for value in shown for join in value.joins]
            return _Shown(whole, joins, any(value.subquery for value in shown))
        case Base.LIST if type.element is not None and type.element.base in (
            Base.NODE,
            Base.TERM,
            Base.EDGE,
            Base.PATH,
            Base.LIST,
            Base.MAP,
            Base.DURATION,
            Base.MOMENT,
        ):
            item = _presented("u.item", type.element, 0)
            return _Shown(
                f"CASE WHEN {sql} IS NOT NULL THEN (SELECT coalesce(list({item.sql} ORDER BY u.at ASC), []) FROM "
                f"(SELECT unnest({sql}) AS item, generate_subscripts({sql}, 1) AS at) u {' '.join(item.joins)}) END",
                subquery=True,
            )
    return _Shown(sql)
