"""Statements: queries, and what else a text may say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from graphdb.grammar.syntax.clauses import (
    CallClause,
    ClauseNode,
    CreateClause,
    DeleteClause,
    ForeachClause,
    MatchClause,
    MergeClause,
    ProcedureClause,
    RemoveClause,
    ReturnClause,
    SetClause,
)
from graphdb.grammar.syntax.names import HERE, Span


@dataclass(frozen=True, slots=True)
class Composite:
    """A query of any clauses: linear parts, whose rows UNION puts together (``keeps_all``: UNION ALL)."""

    parts: tuple[tuple[ClauseNode, ...], ...]
    keeps_all: bool = False
    span: Span = field(default=HERE, compare=False)

    @property
    def writes(self) -> bool:
        """Whether it changes the graph."""
        writing = (CreateClause, MergeClause, SetClause, RemoveClause, DeleteClause, ForeachClause)
        return any(isinstance(clause, writing) for part in self.parts for clause in part)

    @property
    def called(self) -> ProcedureClause | None:
        """The call of a procedure that is its first clause, or that clause's with OPTIONAL."""
        first = self.parts[0][0]
        if isinstance(first, CallClause) and first.query.span == first.span:
            first = first.query.parts[0][0]
        return first if isinstance(first, ProcedureClause) else None


@dataclass(frozen=True, slots=True)
class Query:
    """``MATCH … [MATCH …] RETURN …`` of plain paths: one plan and one SQL statement; ``matches`` may be empty."""

    matches: tuple[MatchClause, ...]
    returns: ReturnClause
    span: Span = field(default=HERE, compare=False)

    @property
    def clauses(self) -> tuple[ClauseNode, ...]:
        """All clauses in order."""
        return (*self.matches, self.returns)


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
