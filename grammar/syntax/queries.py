"""Queries, and what holds queries: subqueries as expressions and as clauses."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdb.grammar.syntax.clauses import (
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
from graphdb.grammar.syntax.expressions import Variable
from graphdb.grammar.syntax.names import HERE, Span
from graphdb.grammar.syntax.nodes import ClauseNode, Expression


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
class CallClause(ClauseNode):
    """``[OPTIONAL] CALL [(name, …) | (*)] { query }``: the query's rows for each row, which it sees these names of.

    ``imported`` is None where all names are; a ``WITH`` that its query begins with names them instead.
    """

    query: Composite
    imported: tuple[Variable, ...] | None
    optional: bool = False
    span: Span = field(default=HERE, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that it brings in."""
        returns = self.query.parts[0][-1]
        assert isinstance(returns, ReturnClause)
        return tuple(item.alias or item.text for item in returns.items)


@dataclass(frozen=True, slots=True)
class Subquery(Expression):
    """``EXISTS``, ``COUNT`` or ``COLLECT`` ``{ … }``: of a query, or of patterns with a condition."""

    kind: str
    query: Query | Composite
    span: Span = field(default=HERE, compare=False)
