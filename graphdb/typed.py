"""SQL with its type, and what the union behind a mixed property needs."""

from __future__ import annotations

from dataclasses import dataclass

from graphdb.values import MEMBERS, UNION, VALUE, Base, Type


@dataclass(frozen=True, slots=True)
class Typed:
    """SQL that yields a value of ``type``.

    ``many`` marks the values of a multi-valued property: a list that stands for "one of these" in a condition, and
    is unwrapped where it holds a single value.
    """

    sql: str
    type: Type
    many: bool = False
    constant: bool = False
    """Whether this is a vertex by its IRI: NULL where the database lacks it, and yet not unknown."""


def member(value: Typed, base: Base) -> str:
    """Return SQL for the union member of a type, NULL if the value is of another (a plain value of it as it is)."""
    if value.type.base is base:
        return value.sql
    if value.type.base is not Base.VALUE:
        return f"CAST(NULL AS {MEMBERS[base][1]})"
    return f"({value.sql}).{MEMBERS[base][0]}"


def number(value: Typed) -> str:
    """Return SQL for the number in a union, NULL if it is none."""
    members = [f"CAST(({value.sql}).{MEMBERS[base][0]} AS DOUBLE)" for base in (Base.INTEGER, Base.DECIMAL, Base.FLOAT)]
    return f"coalesce({', '.join(members)})"


def as_union(value: Typed) -> Typed:
    """Return a value as a union."""
    if value.type.base is Base.VALUE:
        return value
    if value.type.base is Base.NULL:
        return Typed(f"CAST(NULL AS {UNION})", VALUE)
    name, sql = MEMBERS[value.type.base]
    # A union with a NULL member is not NULL, and must be.
    union = f"CAST(union_value({name} := CAST({value.sql} AS {sql})) AS {UNION})"
    return Typed(f"CASE WHEN {value.sql} IS NOT NULL THEN {union} END", VALUE)


def incomparable(operator: str, left: Typed, right: Typed) -> str:
    """Return the outcome of comparing different types: never equal, no order; NULL with NULL."""
    if operator != "=":
        return "CAST(NULL AS BOOLEAN)"
    return f"(CASE WHEN {left.sql} IS NULL OR {right.sql} IS NULL THEN NULL ELSE FALSE END)"
