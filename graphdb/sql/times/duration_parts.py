"""Durations as structs: what they are made of, and their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphdb.common.values.types import DURATION, sql_type
from graphdb.sql.compiler import Compiler
from graphdb.sql.equivalence import all_once
from graphdb.sql.value import SqlValue

BILLION = "1000000000"

NAMES = ("months", "days", "seconds", "nanoseconds")


def bound(c: Compiler, value: SqlValue, body: Callable[[str], SqlValue]) -> SqlValue:
    """Return what is made of a value that is named in it more than once."""
    return all_bound(c, (value,), body)


def all_bound(c: Compiler, values: Sequence[SqlValue], body: Callable[..., SqlValue]) -> SqlValue:
    """The same of several values."""
    if all(value.atomic for value in values):
        return body(*(value.sql for value in values))
    types = []

    def made(*names: SqlValue) -> str:
        found = body(*(name.sql for name in names))
        types.append(found.type)
        return found.sql

    return SqlValue(all_once(c, values, made), types.pop())


def packed(months: str, days: str, seconds: str, nanoseconds: str, of: str) -> SqlValue:
    """Return a duration of its parts: null where ``of`` is."""
    parts = months, days, seconds, nanoseconds
    whole = f"CAST(struct_pack({', '.join(f'{name} := {part}' for name, part in zip(NAMES, parts, strict=True))}) "
    whole += f"AS {sql_type(DURATION)})"
    return SqlValue(f"CASE WHEN {of} IS NOT NULL THEN {whole} END", DURATION, parts=(of, *parts))


def parts(value: SqlValue) -> list[str]:
    """Return SQL of the parts of a duration."""
    if not value.parts:
        return [f"({value.sql}).{name}" for name in NAMES]
    of, *parts = value.parts
    return [f"CASE WHEN {of} IS NOT NULL THEN {part} END" for part in parts]
