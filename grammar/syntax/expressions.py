"""Expressions: what has a value for each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from graphdb.grammar.syntax.names import HERE, KeyName, LabelExpression, Span, Word
from graphdb.grammar.syntax.nodes import Expression

Constants: TypeAlias = tuple[int | str | float | bool | None, ...]
"""The items of a long list that is written out, or of one that a query's arguments say."""


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant: ``int``, ``float``, ``str``, ``bool`` or ``None``; a long list as a tuple.

    Two are the same if their types are, too: ``v / 2`` is another expression than ``v / 2.0``.
    """

    value: int | float | str | bool | Constants | None
    span: Span = field(default=HERE, compare=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or type(self.value) is not type(other.value) or self.value != other.value:
            return False
        mine, others = self.value, other.value
        return not (isinstance(mine, tuple) and isinstance(others, tuple)) or [*map(type, mine)] == [*map(type, others)]

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class IriLiteral(Expression):
    """``<http://…>`` as a value: the resource with that IRI; of ``ex:tom`` the local name, until names are read."""

    iri: str
    span: Span = field(default=HERE, compare=False)
    prefix: Word | None = None


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """``$name``."""

    name: str
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """A variable's name, where it is declared and where it is used."""

    name: str
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Property(Expression):
    """``base.key``."""

    base: Expression
    key: KeyName
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """``name([DISTINCT | ALL] a, b)``; the name as written, dots included."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    quantifier: str | None = field(default=None, compare=False)
    """``DISTINCT`` or ``ALL``, where one is written: aggregates take them, other functions do not."""
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CountStar(Expression):
    """``count(*)``."""

    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """``NOT x``, ``-x``, ``+x``."""

    operator: str
    operand: Expression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """Arithmetic: ``+ - * / % ^``; ``||`` joins texts or lists."""

    operator: str
    left: Expression
    right: Expression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Boolean(Expression):
    """``AND``, ``OR``, ``XOR`` over two or more operands."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """``a < b <= c``: ``operands`` is one longer than ``operators`` (``= <> < <= > >=``)."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class StringPredicate(Expression):
    """``STARTS WITH``, ``ENDS WITH``, ``CONTAINS``, ``=~``."""

    operator: str
    left: Expression
    right: Expression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class In(Expression):
    """``x IN list``."""

    item: Expression
    collection: Expression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """``x IS [NOT] NULL``."""

    operand: Expression
    negated: bool = False
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral(Expression):
    """``[a, b]``."""

    items: tuple[Expression, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MapLiteral(Expression):
    """``{key: value}``."""

    items: tuple[tuple[KeyName, Expression], ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelPredicate(Expression):
    """``n:Person`` as a condition."""

    operand: Expression
    labels: LabelExpression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """``base[index]``: an item of a list, or a value of a map, vertex or edge."""

    base: Expression
    index: Expression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Slice(Expression):
    """``base[start..end]``; either bound may be left out."""

    base: Expression
    start: Expression | None
    end: Expression | None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """``CASE [operand] WHEN a, b THEN x … [ELSE y] END``: each branch is its conditions (or values) and its result."""

    operand: Expression | None
    branches: tuple[tuple[tuple[Expression, ...], Expression], ...]
    otherwise: Expression | None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListComprehension(Expression):
    """``[x IN list WHERE condition | result]``."""

    variable: Variable
    source: Expression
    where: Expression | None
    result: Expression | None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListPredicate(Expression):
    """``all``, ``any``, ``none`` or ``single`` ``(x IN list WHERE condition)``."""

    quantifier: str
    variable: Variable
    source: Expression
    where: Expression | None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Reduce(Expression):
    """``reduce(total = start, x IN list | step)``."""

    accumulator: Variable
    start: Expression
    variable: Variable
    source: Expression
    step: Expression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MapProjection(Expression):
    """``n {.key, .*, variable, key: value}``; an item is a key with its value, or None for ``.*``."""

    base: Variable
    items: tuple[tuple[str, Expression] | None, ...]
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Narrowed(Expression):
    """An operand as what columns of some types have that may equal it: null where none does.

    Of one type it is a value of that; of several it is a text, which is the same for equal values.  No statement says
    this: joins compare by it.
    """

    operand: Expression
    types: tuple[str, ...]
    """The names of the types."""
    listed: bool = False
    """Whether the operand is a list; then it is the list of what its items are so, without nulls."""
    span: Span = field(default=HERE, compare=False)
