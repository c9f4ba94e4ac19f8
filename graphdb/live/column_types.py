"""The type that has the values of two others: what a column is once rows of another type come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdb.common.duckdb.identifiers import quoted

if TYPE_CHECKING:
    import duckdb


def common(connection: duckdb.DuckDBPyConnection, left: Any, right: Any) -> Any:
    """Return the type (a ``DuckDBPyType``) that the values of two types can be cast to, by :func:`cast`.

    A type is as it is beside one of nulls alone; a value beside lists is a list of one, as a property with several
    values has them; values of several types have one that says which each is (a union); maps have all their fields;
    beside a text everything is one.  Anything else is DuckDB's to say, as for UNION ALL.
    """
    if str(left) == str(right) or right.id == "null":
        return left
    if left.id == "null":
        return right
    if "list" in (left.id, right.id):
        items = [side.children[0][1] if side.id == "list" else side for side in (left, right)]
        return connection.type(f"{common(connection, *items)}[]")
    for side in (left, right):
        if side.id == "union":
            return side
    if "varchar" in (left.id, right.id):
        return connection.type("VARCHAR")
    if left.id == right.id == "struct":
        fields, others = dict(left.children), dict(right.children)
        typed = [
            (name, common(connection, fields.get(name, others.get(name)), others.get(name, fields.get(name))))
            for name in {**fields, **others}
        ]
        return connection.type(f"STRUCT({', '.join(f'{quoted(name)} {type}' for name, type in typed)})")
    sides = f"SELECT CAST(NULL AS {left}) AS x UNION ALL SELECT CAST(NULL AS {right})"
    return connection.sql(sides).types[0]


def hides(found: Any, wanted: Any) -> bool:
    """Whether values of one type, made values of another, may be others than those that had this type from the start.

    Integers beside floats or decimals are floats or decimals in a column of these; where a type says which each value
    is, or is that of texts, they would be integers again.
    """
    if str(found) == str(wanted):
        return False
    if wanted.id == "list":
        return hides(found.children[0][1] if found.id == "list" else found, wanted.children[0][1])
    if wanted.id == found.id == "struct":
        fields = dict(found.children)
        return any(name in fields and hides(fields[name], type) for name, type in wanted.children)
    return found.id in ("float", "double", "decimal") and wanted.id in ("union", "varchar")


def cast(sql: str, found: Any, wanted: Any, depth: int = 0) -> str:
    """Return SQL that makes values of one type values of their :func:`common` type; within lists at some ``depth``."""
    if str(found) == str(wanted):
        return sql
    if wanted.id == "list" and found.id not in ("list", "null"):
        return f"CASE WHEN {sql} IS NOT NULL THEN [{cast(sql, found, wanted.children[0][1])}] END"
    if wanted.id == found.id == "list":
        item = cast(f"x{depth}", found.children[0][1], wanted.children[0][1], depth + 1)
        return f"[{item} FOR x{depth} IN {sql}]"
    if wanted.id == found.id == "struct":
        fields = dict(found.children)
        made = [
            f"{quoted(name)} := {cast(f'({sql}).{quoted(name)}', fields[name], type, depth)}"
            if name in fields
            else f"{quoted(name)} := CAST(NULL AS {type})"
            for name, type in wanted.children
        ]
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(made)}) END"
    if wanted.id == "union":  # which has a null of each of its members beside its own
        return f"CASE WHEN {sql} IS NOT NULL THEN CAST({sql} AS {wanted}) END"
    return f"CAST({sql} AS {wanted})"
