"""Statements: queries, and what else a text may say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from graphdb.grammar.syntax.expressions import Parameter
from graphdb.grammar.syntax.names import HERE, Span, Word
from graphdb.grammar.syntax.queries import Composite, Query


@dataclass(frozen=True, slots=True)
class Prefix:
    """``PREFIX name: <iri>``."""

    name: str
    iri: str
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Data:
    """``INSERT DATA { triples }`` or ``DELETE DATA { triples }``, as in Turtle: what is between the brackets."""

    inserts: bool
    span: Span = field(default=HERE, compare=False)
    """Where that text stands."""


@dataclass(frozen=True, slots=True)
class LoadSource:
    """One thing that is loaded: a ``path``, a query of ``sql``, or a file that says what to load (``mapping``).

    ``label`` and ``type`` are of its own: ``'path' AS LABEL A:B``.
    """

    path: str | None = None
    sql: str | None = None
    mapping: str | None = None
    label: tuple[str, ...] | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """``LOAD source [, source]`` with options in any order: ``FORMAT name``, ``BASE <iri>``, ``COLUMNS {name: 'text'}``
    or ``COLUMNS ('text', NULL)``, ``LABEL name``, ``TYPE name``, ``DELIMITER``, ``QUOTE``, ``NULL`` and
    ``LIST DELIMITER`` with a text, ``HEADER TRUE | FALSE``, ``ON ERROR STOP | SKIP``.

    ``columns`` are names with their headers, or headers by position.
    """

    sources: tuple[LoadSource, ...]
    format: str | None = None
    on_error: str = "stop"
    base: str | None = None
    columns: tuple[tuple[str, str] | str | None, ...] = ()
    label: tuple[str, ...] | None = None
    type: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    null: str | None = None
    header: bool | None = None
    list_delimiter: str | None = None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MineNumber:
    """A number of ``MINE``, or the parameter that says it."""

    value: int | Parameter
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MineCliques:
    """``CLIQUES OF SIZE least..most [MAXIMAL]``; both numbers are the same where one is written."""

    least: MineNumber
    most: MineNumber
    maximal: bool = False


@dataclass(frozen=True, slots=True)
class MineMotifs:
    """``MOTIFS OF SIZE size [DIRECTED]``."""

    size: MineNumber
    directed: bool = False


@dataclass(frozen=True, slots=True)
class MineFrequent:
    """``FREQUENT PATTERNS [UNDIRECTED] WITH SUPPORT >= support UP TO edges EDGES [COUNTING MATCHES]``."""

    support: MineNumber
    edges: MineNumber
    directed: bool = True
    matches: bool = False


@dataclass(frozen=True, slots=True)
class MineScope:
    """What is mined: ``OVER :label|label AMONG :label|label``, or ``FROM (query)``; by default all edges.

    A label is one word, or a prefix and a local name.
    """

    edges: tuple[tuple[Word, ...], ...] = ()
    vertices: tuple[tuple[Word, ...], ...] = ()
    query: Query | Composite | None = None


@dataclass(frozen=True, slots=True)
class Mine:
    """``MINE task scope``."""

    task: MineCliques | MineMotifs | MineFrequent
    scope: MineScope = MineScope()
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name AS MATCH …`` or ``AS MINE …``.

    ``name`` has up to three parts.
    """

    name: tuple[str, ...]
    query: Query | Composite | Mine
    replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateView:
    """``CREATE [OR REPLACE] [TEMP] VIEW [IF NOT EXISTS] name AS MATCH …``; ``name`` has up to three parts."""

    name: tuple[str, ...]
    query: Query | Composite
    replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Option:
    """``name = value`` among the options of a statement."""

    name: str
    value: bool | int | str
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateContinuous:
    """``CREATE [OR REPLACE] CONTINUOUS QUERY name [WITH (option = value, …)] AS MATCH …``."""

    name: str
    query: Query | Composite
    options: tuple[Option, ...] = ()
    replace: bool = False
    named: Span = field(default=HERE, compare=False)
    """Where the name stands."""
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class DropContinuous:
    """``DROP CONTINUOUS QUERY [IF EXISTS] name``."""

    name: str
    if_exists: bool = False
    named: Span = field(default=HERE, compare=False)
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ShowContinuous:
    """``SHOW CONTINUOUS QUERIES``."""

    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ExplainContinuous:
    """``EXPLAIN CONTINUOUS QUERY name``, ``PROFILE CONTINUOUS QUERY name``, ``EXPLAIN CREATE CONTINUOUS QUERY …``."""

    subject: str | CreateContinuous
    profile: bool = False
    named: Span = field(default=HERE, compare=False)
    span: Span = field(default=HERE, compare=False)


Continuous: TypeAlias = CreateContinuous | DropContinuous | ShowContinuous | ExplainContinuous


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN`` and ``PROFILE`` of a query or of ``MINE``; of ``EXPLAIN CREATE TABLE … AS``, its query."""

    query: Query | Composite | Mine
    profile: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Sql:
    """Any other statement: DuckDB's SQL, as written."""

    text: str
    span: Span = field(default=HERE, compare=False)


Statement: TypeAlias = (
    Query | Composite | Prefix | Data | Load | Mine | CreateTable | CreateView | Continuous | Explain | Sql
)
