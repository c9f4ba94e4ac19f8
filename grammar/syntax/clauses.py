"""The clauses of a query, those that read and those that write."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdb.grammar.syntax.expressions import Variable
from graphdb.grammar.syntax.names import HERE, LabelExpression, Span
from graphdb.grammar.syntax.nodes import ClauseNode, Expression
from graphdb.grammar.syntax.patterns import MatchMode, PathPattern


@dataclass(frozen=True, slots=True)
class MatchClause(ClauseNode):
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
class ReturnClause(ClauseNode):
    """``RETURN [DISTINCT] items | * [ORDER BY …] [SKIP …] [LIMIT …]``; ``star`` stands before the items."""

    items: tuple[ReturnItem, ...]
    star: bool = False
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    skip: Expression | None = None
    limit: Expression | None = None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class WithClause(ClauseNode):
    """``WITH …``, which is a RETURN that the query goes on from, and its ``WHERE``."""

    returns: ReturnClause
    where: Expression | None = None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class UnwindClause(ClauseNode):
    """``UNWIND list AS name``."""

    source: Expression
    variable: Variable
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateClause(ClauseNode):
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
class SetClause(ClauseNode):
    """``SET item, …``."""

    items: tuple[SetItem | LabelItem, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class RemoveClause(ClauseNode):
    """``REMOVE n.key, n:Label``."""

    items: tuple[Expression | LabelItem, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class DeleteClause(ClauseNode):
    """``[DETACH] DELETE value, …``."""

    values: tuple[Expression, ...]
    detach: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MergeClause(ClauseNode):
    """``MERGE pattern [ON MATCH SET …] [ON CREATE SET …]``."""

    pattern: PathPattern
    on_match: tuple[SetItem | LabelItem, ...] = ()
    on_create: tuple[SetItem | LabelItem, ...] = ()
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class YieldItem:
    """``column [AS name]`` after YIELD; ``variable`` is the name that it brings in."""

    column: str
    variable: Variable
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ProcedureClause(ClauseNode):
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
class ForeachClause(ClauseNode):
    """``FOREACH (name IN list | updates)``: clauses that write, for each item; the rows stay what they are."""

    variable: Variable
    source: Expression
    updates: tuple[ClauseNode, ...]
    span: Span = field(default=HERE, compare=False)
