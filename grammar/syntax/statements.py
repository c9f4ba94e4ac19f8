"""Statements: queries, and what else a text may say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from graphdb.grammar.syntax.names import HERE, Span
from graphdb.grammar.syntax.queries import Composite, Query


@dataclass(frozen=True, slots=True)
class Prefix:
    """``PREFIX name: <iri>``."""

    name: str
    iri: str
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Load:
    """``LOAD 'path' [, 'path'] [FORMAT name] [BASE <iri>] [COLUMNS {name: 'header', …}] [LABEL name] [TYPE name]
    [ON ERROR STOP | SKIP]``, the options in any order; ``columns`` are names with their headers.
    """

    paths: tuple[str, ...]
    format: str | None = None
    on_error: str = "stop"
    base: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    label: str | None = None
    type: str | None = None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name AS MATCH …``; ``name`` has up to three parts."""

    name: tuple[str, ...]
    query: Query | Composite
    replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN MATCH …`` and ``PROFILE MATCH …``."""

    query: Query | Composite
    profile: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Sql:
    """Any other statement: DuckDB's SQL, as written."""

    text: str
    span: Span = field(default=HERE, compare=False)


Statement: TypeAlias = Query | Composite | Prefix | Load | CreateTable | Explain | Sql
