"""The interface of the compiler to SQL: its scope, the effects of what it compiles, conditions and errors.

Each of the other modules compiles the operators and functions of one kind of values and imports this class only;
:mod:`graphdb.sql.expressions` implements it with them.
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from graphdb.common.errors import (
    GraphDBError,
    NotSupportedError,
    ParameterError,
    TypeMismatchError,
    with_place,
)
from graphdb.common.values.types import BOOLEAN, MEMBERS, VALUE, Base, Type
from graphdb.grammar import syntax as ast
from graphdb.pattern.names import Names
from graphdb.sql.computing import Beforehand, Computing
from graphdb.sql.constants import constant
from graphdb.sql.from_clause import Rows
from graphdb.sql.value import NO_EFFECTS, RAISES, Effects, SqlValue, member, named, some

Made = TypeVar("Made")

_LONGEST = 1 << 17
"""Characters of an expression's SQL, which may name an operand several times, and so double with each call in a call,
and of all columns of a clause: DuckDB takes microseconds to bind each, in one piece that hears no timeout meanwhile."""

_AFFORDABLE = 1 << 16
"""Characters of a clause's columns from which on Python computes others, if a call of it is shorter."""

_CALL = 100
"""Characters of a column's SQL up to which a call of Python would take DuckDB as long to bind."""


def refuse_long(rows: Rows, text: str) -> None:
    """Refuse columns that are too long in SQL; aggregates are computed by nothing else, where arrays do not do it.

    Raises
    ------
    NotSupportedError
        They are.
    """
    if rows.too_long_at is not None:
        raise NotSupportedError(
            f"the columns of this clause are too long in SQL, of which they take {_LONGEST:,} characters at most",
            text=text,
            position=rows.too_long_at,
            hint="ask for this column and what follows in another query",
        )


_DEEPEST = 8
"""Lambdas of an expression's SQL that are in each other's bodies: DuckDB takes twice as long to plan each more."""

_BRACKET = re.compile(r"[()\[\]]|\blambda\b")


def _lambdas(sql: str) -> int:
    """Return how many lambdas are in each other's bodies, at most; a body ends with the bracket that it is in.

    >>> _lambdas("list_sum(list_filter(a, lambda x: x > list_sum(list_filter(b, lambda y: y > x))))")
    2
    """
    if sql.count("lambda") <= _DEEPEST:
        return sql.count("lambda")
    most, inside, brackets = 0, 0, [0]
    for found in _BRACKET.finditer(sql):
        match found[0]:
            case "(" | "[":
                brackets.append(0)
            case "lambda":
                brackets[-1] += 1
                inside += 1
                most = max(most, inside)
            case _ if len(brackets) > 1:  # of a text, if it has no other
                inside -= brackets.pop()
    return most


@dataclass(frozen=True, slots=True)
class Scope:
    """What names stand for while an expression is compiled."""

    variables: Mapping[str, SqlValue]
    """Pattern variables (and, in ORDER BY, result columns)."""
    known: Mapping[ast.Expression, SqlValue] = field(default_factory=dict)
    """Whole expressions that are columns already."""
    matches: str | None = None
    """The column that says how many matches a row stands for; None where each is one."""
    order: str | None = None
    """The column that says in which order the rows are; None where they have none."""


class Compiler(ABC):
    """Compiles the expressions of one statement; errors carry its ``text``.

    Everything that compiles raises :class:`~graphdb.common.errors.NotSupportedError` where SQL cannot do it exactly
    (Python computes it then), and :class:`~graphdb.common.errors.BindError`,
    :class:`~graphdb.common.errors.TypeMismatchError` or :class:`~graphdb.common.errors.ParameterError` for mistakes.
    """

    def __init__(
        self,
        text: str,
        names: Names,
        arguments: Mapping[str, object],
        rows: Rows,
        scope: Scope,
        computing: Callable[[], Computing] | None = None,
    ) -> None:
        self.computing = computing
        """Has Python compute what SQL cannot express; None where that is not possible."""
        self.text = text
        self.names = names
        self.arguments = arguments
        self.rows = rows
        self.scope = scope
        self._lambdas = 0
        self._depth = 0
        self.of_items = False
        """Whether this is within a lambda, of a list's items."""

    # --- what the whole compiler does

    @abstractmethod
    def _native(self, node: ast.Expression) -> SqlValue:
        """Return the SQL of an expression that SQL itself computes; its effects are collected by the caller."""

    @abstractmethod
    def _computed(self, node: ast.Expression, type: Type | None) -> SqlValue:
        """Return the SQL of an expression that Python computes; its effects are collected by the caller."""

    @abstractmethod
    def column(self, node: ast.Expression) -> SqlValue:
        """Return the SQL of any expression as a column of rows, which may hold a list of several types as a tuple."""

    @property
    @abstractmethod
    def aggregate_names(self) -> Collection[str]:
        """The names of the aggregates."""

    # --- effects

    def collected(self, make: Callable[[], Made]) -> tuple[Made, Effects]:
        """Return what is made, and the effects of all that is compiled meanwhile; of what raises, none are left.

        So no part of the compiler has to hand on the effects of its operands.
        """
        noted = self.rows.noted
        before, noted.effects = noted.effects, NO_EFFECTS
        try:
            return make(), noted.effects
        finally:
            noted.effects = before

    def _with_effects(self, make: Callable[[], SqlValue]) -> SqlValue:
        """Return a value with the effects of all that it is made of, which are those of what is made of it, too."""
        value, effects = self.collected(make)
        effects |= value.effects
        if effects is NO_EFFECTS:
            return value
        self.rows.note(effects)
        return value if effects == value.effects else replace(value, effects=effects)

    # --- entry points

    def native(self, node: ast.Expression) -> SqlValue:
        """Return the SQL of an expression that SQL itself computes.

        Raises
        ------
        NotSupportedError
            None does, or it would be very long.
        """
        value = self._with_effects(lambda: self._native(node))
        if len(value.sql) > _LONGEST or _lambdas(value.sql) > _DEEPEST:
            raise NotSupportedError("so long an expression is not supported in SQL", position=node.span.start)
        return value

    def computed(self, node: ast.Expression, type: Type | None = None) -> SqlValue:
        """Return the SQL of an expression that Python computes, of a type that is known from what it is for."""
        return self._with_effects(lambda: self._computed(node, type))

    def compile(self, node: ast.Expression) -> SqlValue:
        """Return the SQL of an expression whose value SQL represents, computed by Python if need be."""
        found = self.anything(node)
        if found.type.base is Base.ANY:
            raise NotSupportedError("SQL does not represent this value", text=self.text, position=node.span.start)
        return found

    def affordable(self, node: ast.Expression, value: SqlValue) -> SqlValue:
        """Return the SQL of a clause's column, or shorter SQL that has Python compute it where the columns are long."""
        rows = self.rows
        if len(value.sql) > _CALL and rows.characters + len(value.sql) > _AFFORDABLE:
            with contextlib.suppress(NotSupportedError, Beforehand):
                value = min(value, self.computed(node), key=lambda each: len(each.sql))
        if len(value.sql) > _CALL:
            rows.characters += len(value.sql)
        if rows.characters > _LONGEST and rows.too_long_at is None:
            rows.too_long_at = node.span.start
        return value

    def anything(self, node: ast.Expression) -> SqlValue:
        """Return the SQL of any expression; a value that SQL does not represent as its key."""
        try:
            return self.native(node)
        except (NotSupportedError, TypeMismatchError) as refused:
            return self.instead(refused, node)

    def instead(self, refused: GraphDBError, node: ast.Expression, type: Type | None = None) -> SqlValue:
        """Return the SQL of an expression that Python computes, because SQL does not.

        Where the types of properties do not fit, an error is one of the rows that have such values.  What Python cannot
        compute either is a mistake whatever the rows are.
        """
        self.rows.noted.mistaken |= isinstance(refused, TypeMismatchError)
        try:
            return self.computed(node, type)
        except NotSupportedError as other:
            raise refused if isinstance(refused, TypeMismatchError) else other from None

    @property
    def outermost(self) -> bool:
        """Whether this is of rows, not of the items of a list."""
        return not self._depth

    def within(self, scope: Scope, *, of_items: bool = False) -> Self:
        """Return the compiler of an expression inside the present one, where names stand for something else."""
        found = type(self)(self.text, self.names, self.arguments, self.rows, scope, self.computing)
        found._depth = self._depth + 1
        found.of_items = of_items or self.of_items
        return found

    def truth(self, node: ast.Expression) -> SqlValue:
        """Return a condition as a value."""
        return self._with_effects(lambda: SqlValue(self.condition(node), BOOLEAN))

    def condition(self, node: ast.Expression) -> str:
        """Return the SQL of a condition; of a value that is neither true, false nor null, running it fails."""
        return self._condition(node, fails=True)

    def filter(self, node: ast.Expression) -> str:
        """Return the SQL of a condition that rows have to fulfil: a property that is no truth value does not."""
        return self._condition(node, fails=not isinstance(node, ast.Property))

    def _condition(self, node: ast.Expression, *, fails: bool) -> str:
        try:
            value = self.compile(node)
        except NotSupportedError:
            value = self.computed(node, BOOLEAN)
        bases = {value.type.base} if not value.many or value.type.element is None else {value.type.element.base}
        if not bases <= {Base.BOOLEAN, Base.NULL, Base.VALUE}:
            value = self.instead(self.mismatch(f"expected a condition, found {value.type}", node), node, BOOLEAN)
        if value.many:
            return self.any_of(lambda v: SqlValue(member(v, Base.BOOLEAN), BOOLEAN), value).sql
        if value.type.base is not Base.VALUE:
            return value.sql
        truth = member(value, Base.BOOLEAN)
        if not fails or (value.bases is not None and value.bases <= {Base.BOOLEAN}):
            return truth
        self.rows.noted.mistaken = True
        error = self.unfit("expected a condition", node, f"union_tag({value.sql})", (Base.BOOLEAN,))
        return f"CASE WHEN {truth} IS NOT NULL THEN {truth} WHEN {value.sql} IS NOT NULL THEN {error} END"

    def unfit(self, message: str, node: ast.Expression, tag: str, right: Collection[Base]) -> str:
        """Return SQL that fails since a value of a union is of another type than those that are right.

        ``tag`` is SQL of the name of the union's member.
        """
        place, kind = node.span.start, TypeMismatchError
        cases = (
            f"WHEN '{name}' THEN {self.rows.error(with_place(f'{message}, found {Type(base)}', place, kind))}"
            for base, (name, _) in MEMBERS.items()
            if base not in right
        )
        return f"CASE {tag} {' '.join(cases)} END"

    def row_conditions(self, nodes: Iterable[ast.Expression]) -> list[str]:
        """Return SQL of conditions for WHERE, all of which rows have to fulfil; DuckDB evaluates it on whole rows only.

        DuckDB tests conditions in any order, and one on a joined table before the join.  One that can fail is tested
        of rows that fulfil those before it: what is volatile stays where it stands.
        """
        tests, before = [], "random() >= 0"
        for node in nodes:
            value = self._with_effects(lambda node=node: SqlValue(self.filter(node), BOOLEAN))  # type: ignore[misc]
            if value.can_fail:
                tests.append(f"CASE WHEN {before} THEN {value.sql} END")
                before = tests[-1]
            else:
                tests.append(value.sql)
                before = f"{before} AND ({value.sql})"
        return tests

    def one(self, node: ast.Expression) -> SqlValue:
        """Compile to a single value: a multi-valued property must have just one there."""
        return self.single(self.compile(node), node)

    def whole(self, node: ast.Expression) -> SqlValue:
        """Compile what is handed on as it is: the values of a multi-valued property are a list, which Python makes."""
        value = self.compile(node)
        if value.many:
            raise NotSupportedError("a property with several values is handed on by Python")
        return value

    def one_of_any(self, node: ast.Expression) -> SqlValue:
        """Compile to a single value, one that SQL does not represent as its key."""
        return self.single(self.anything(node), node)

    def single(self, value: SqlValue, node: ast.Expression) -> SqlValue:
        """Return the one value of a multi-valued property; running it fails where there are several."""
        if not value.many:
            return value
        assert value.type.element is not None
        error = self.rows.error(
            f"'{self.source(node)}' has several values on some vertex where one is needed; "
            "match the property as an edge to get each of them"
        )
        sql = f"CASE WHEN len({value.sql}) > 1 THEN {error} ELSE ({value.sql})[1] END"
        return SqlValue(sql, value.type.element, bases=value.bases, effects=value.effects | RAISES)

    def value_of(self, value: SqlValue, *, or_text: bool = False) -> SqlValue:
        """Return a literal vertex as its value (NULL where it is a resource), other values as they are.

        ``or_text`` takes the text of a literal whose value SQL has no type for.

        Raises
        ------
        NotSupportedError
            It may be such a literal.
        """
        if value.type.base is not Base.TERM:
            return value
        if value.type.exact and not or_text:
            raise NotSupportedError("lists and exact temporal values are not supported in SQL")
        return self.rows.literal(value, value.type.element or VALUE)

    def handed_on(self, value: SqlValue) -> SqlValue:
        """Return a literal vertex as its value, other values as they are.

        Raises
        ------
        NotSupportedError
            It may be a resource, of which there would be nothing left.
        """
        if value.type.base is Base.TERM and value.type.element is None:
            raise NotSupportedError("what may be a vertex or a value is handed on by Python")
        return self.value_of(value)

    # --- constants

    def argument(self, node: ast.Parameter) -> object:
        """Return the value given for a parameter."""
        if node.name not in self.arguments:
            raise ParameterError.missing(node.name, self.arguments, self.text, node.span.start)
        return self.arguments[node.name]

    def constant(self, value: object, node: ast.Expression) -> SqlValue:
        """Return SQL for a Python value."""
        try:
            return constant(value, self.rows)
        except GraphDBError as error:
            raise type(error)(error.message, text=self.text, position=node.span.start, hint=error.hint) from None

    # --- conditions of several values

    def any_of(self, test: Callable[..., SqlValue], *values: SqlValue) -> SqlValue:
        """Apply a condition to values, of which the multi-valued ones need one member that satisfies it."""
        lifted: list[tuple[str, SqlValue]] = []
        singles: list[SqlValue] = []
        for value in values:
            if value.many:
                assert value.type.element is not None
                name = self.fresh()
                lifted.append((name, value))
                singles.append(named(name, value.type.element))
            else:
                singles.append(value)
        if lifted and any(value.subquery for value in singles):
            raise NotSupportedError("what is looked up is compared with each of several values in Python")
        sql = test(*singles).sql
        for name, value in reversed(lifted):
            sql = some(value.sql, name, sql)
        return SqlValue(sql, BOOLEAN)

    def fresh(self) -> str:
        """Return a name for the item of a list that no expression around this one has."""
        self._lambdas += 1
        return f"x{self._depth}_{self._lambdas}"

    # --- errors

    def source(self, node: ast.Expression) -> str:
        """The text of an expression as written."""
        return self.text[node.span.start : node.span.end]

    def mismatch(self, message: str, node: ast.Expression) -> TypeMismatchError:
        """Return the error for ``node``."""
        return TypeMismatchError(message, text=self.text, position=node.span.start)


Compile = Callable[[Compiler, ast.FunctionCall], SqlValue]
"""How a function compiles: its call, by the compiler of what is around it."""
Forms = Mapping[str, Compile]
"""How functions compile, by their signatures' keys (:mod:`graphdb.functions.table`)."""
