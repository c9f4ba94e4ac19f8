"""The clauses of a query, those that read and those that write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from graphdb.grammar.syntax.expressions import Expression, Variable
from graphdb.grammar.syntax.names import HERE, LabelExpression, Span
from graphdb.grammar.syntax.patterns import MatchMode, PathPattern

if TYPE_CHECKING:
    from graphdb.grammar.syntax.statements import Composite


@dataclass(frozen=True, slots=True)
class MatchClause:
    """``[OPTIONAL] MATCH [mode] pattern, … [WHERE …]``."""

    patterns: tuple[PathPattern, ...]
    mode: MatchMode = MatchMode.DIFFERENT_EDGES
    where: Expression | None = None
    span: Span = field(default=HERE, compare=False)
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """``expression [AS alias]``; ``text`` is the expression as written, which names the column without an alias."""

    expression: Expression
    alias: str | None
    text: str
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class OrderItem:
    """``expression [ASC | DESC] [NULLS FIRST | NULLS LAST]``: null counts as the largest value if nothing is said."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ReturnClause:
    """``RETURN [DISTINCT] items | * [ORDER BY …] [SKIP …] [LIMIT …]``; ``star`` stands before the items."""

    items: tuple[ReturnItem, ...]
    star: bool = False
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    skip: Expression | None = None
    limit: Expression | None = None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class WithClause:
    """``WITH …``, which is a RETURN that the query goes on from, and its ``WHERE``."""

    returns: ReturnClause
    where: Expression | None = None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class UnwindClause:
    """``UNWIND list AS name``."""

    source: Expression
    variable: Variable
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateClause:
    """``CREATE pattern, …``."""

    patterns: tuple[PathPattern, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class SetItem:
    """``target = value``: of a property, of a vertex's or edge's whole map, or with ``add`` of part of it (``+=``)."""

    target: Expression
    value: Expression
    add: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelItem:
    """``n:Label``, to set or to remove."""

    target: Expression
    labels: LabelExpression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class SetClause:
    """``SET item, …``."""

    items: tuple[SetItem | LabelItem, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class RemoveClause:
    """``REMOVE n.key, n:Label``."""

    items: tuple[Expression | LabelItem, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class DeleteClause:
    """``[DETACH] DELETE value, …``."""

    values: tuple[Expression, ...]
    detach: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MergeClause:
    """``MERGE pattern [ON MATCH SET …] [ON CREATE SET …]``."""

    pattern: PathPattern
    on_match: tuple[SetItem | LabelItem, ...] = ()
    on_create: tuple[SetItem | LabelItem, ...] = ()
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CallClause:
    """``[OPTIONAL] CALL [(name, …) | (*)] { query }``: the query's rows for each row, which it sees these names of.

    ``imported`` is None where all names are; a ``WITH`` that its query begins with has told them otherwise.
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
class YieldItem:
    """``column [AS name]`` after YIELD; ``variable`` is the name that it brings in."""

    column: str
    variable: Variable
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ProcedureClause:
    """``CALL name[(arguments)] [YIELD column [AS name], … | *]``: the procedure's rows for each row.

    ``arguments`` is None where none are written: they are the query's parameters of the same names.  ``yields`` is None
    where no column is named (no YIELD, or ``YIELD *``, which is ``star``): all are, of a call that is the whole query.
    """

    name: str
    arguments: tuple[Expression, ...] | None = None
    yields: tuple[YieldItem, ...] | None = None
    star: bool = False
    span: Span = field(default=HERE, compare=False)
    named: Span = field(default=HERE, compare=False)
    """Where its name stands."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that it brings in."""
        return tuple(item.variable.name for item in self.yields or ())


@dataclass(frozen=True, slots=True)
class ForeachClause:
    """``FOREACH (name IN list | updates)``: clauses that write, for each item; the rows stay what they are."""

    variable: Variable
    source: Expression
    updates: tuple[ClauseNode, ...]
    span: Span = field(default=HERE, compare=False)


ClauseNode: TypeAlias = (
    MatchClause
    | WithClause
    | UnwindClause
    | ReturnClause
    | CreateClause
    | MergeClause
    | SetClause
    | RemoveClause
    | DeleteClause
    | CallClause
    | ProcedureClause
    | ForeachClause
)
