"""Equations between properties of a pattern and values of rows that are of other types, as equations of columns.

``UNWIND $edges AS e MATCH (a {id: e[0]})`` asks for integers by the items of lists in which there are floats and texts
as well.  What is of another type than a property's values equals none of them, so that such items are narrowed to that
type (:class:`~graphdb.grammar.syntax.Narrowed`), and vertices are looked up, and joined, by what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from graphdb.common.errors import BindError, NotSupportedError, TypeMismatchError
from graphdb.common.values.types import MEMBERS, MIXED, NUMERIC, Base, Type, bases_of_kinds, has_ids
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.free import free_variables, subqueries_in
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.types.narrowing import EXACT, IN_PYTHON, TYPES
from graphdb.sql.value import SqlValue
from graphdb.storage.catalog import EdgeLabel

_PLAIN = frozenset(MEMBERS)
_FRACTIONS = frozenset((Base.FLOAT, Base.DECIMAL))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The values of a property that a pattern has."""

    bases: frozenset[Base]
    single: Base | None
    """The type of all of them; None where they are unions."""
    is_small: Callable[[], bool]
    """Returns whether all are known to be integers that floats are exact for."""


class Narrowing:
    """Narrows what the conditions of a pattern compare its properties with.

    Parameters
    ----------
    snapshot, text
        The data, and the text of the statement.
    variables
        What the rows have.
    native
        Returns an expression over the rows as SQL has it.
    greatest
        Returns the largest absolute value of the integers of a property; None where that is not known.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        text: str,
        variables: Mapping[str, SqlValue],
        native: Callable[[ast.Expression], SqlValue],
        greatest: Callable[[EdgeLabel], float | None],
    ) -> None:
        self._snapshot = snapshot
        self._text = text
        self._variables = variables
        self._native = native
        self._greatest = greatest

    def conditions(self, conditions: Sequence[ast.Expression], bound: BoundPattern) -> list[ast.Expression]:
        """Return conditions of a pattern, with what their operands are narrowed to."""
        return [each for condition in conditions for each in self._condition(condition, bound)]

    def _condition(self, condition: ast.Expression, bound: BoundPattern) -> Iterator[ast.Expression]:
        if isinstance(condition, ast.Comparison) and condition.operators == ("=",):
            for one, other in (condition.operands, condition.operands[::-1]):
                types, exact = self._types(one, other, bound, listed=False)
                if types:
                    narrowed = ast.Narrowed(other, types, span=other.span)
                    mine = one if len(types) == 1 else ast.Narrowed(one, types, span=one.span)
                    yield replace(condition, operands=(mine, narrowed))
                    if exact:
                        return
                    break
        elif isinstance(condition, ast.In):
            types, exact = self._types(condition.item, condition.collection, bound, listed=True)
            if len(types) == 1 and exact:
                narrowed = ast.Narrowed(condition.collection, types, listed=True, span=condition.collection.span)
                condition = replace(condition, collection=narrowed)
        yield condition

    def _types(
        self, one: ast.Expression, other: ast.Expression, bound: BoundPattern, *, listed: bool
    ) -> tuple[tuple[str, ...], bool]:
        """Return the types that what a property is compared with is narrowed to, and whether that is all it is about.

        None where DuckDB compares them by hashes, or where more is to be compared.
        """
        nothing: tuple[str, ...] = ()
        free = free_variables(other)
        if not free or not free <= {*self._variables} or any(subqueries_in(other)):
            return nothing, True
        asked = self._asked(one, bound)
        if asked is None:
            return nothing, True
        try:
            value: SqlValue | None = self._native(other)
        except (NotSupportedError, TypeMismatchError):
            value = None
        if value is not None and (value.many or value.volatile or value.shared):
            return nothing, True
        if value is None or value.type.base is Base.ANY:
            if any(each.many or has_ids(each.type) or each.type == MIXED for each in self._of(free)):
                return nothing, True  # what it is only the graph says
            found: tuple[Type, frozenset[Base] | None] | None = None
        else:
            type, bases = value.type, value.bases
            if listed:
                if type.base is not Base.LIST or type.element is None:
                    return nothing, True
                type = type.element
            if type.base is Base.TERM or _are_hashed(asked, type):
                return nothing, True
            found = type, bases
        return self._narrowed(asked, found)

    def _of(self, names: set[str]) -> Iterator[SqlValue]:
        return (self._variables[name] for name in names)

    def _narrowed(
        self, asked: _Asked, found: tuple[Type, frozenset[Base] | None] | None
    ) -> tuple[tuple[str, ...], bool]:
        may = None if found is None else _bases_of(*found)
        wanted = asked.bases
        exact = asked.single is not None
        if wanted <= NUMERIC:
            if asked.single is Base.INTEGER and (
                not (_FRACTIONS if may is None else _FRACTIONS & may) or asked.is_small()
            ):
                names = [Base.INTEGER.name]
            else:
                names, exact = [Base.FLOAT.name], asked.single is Base.FLOAT
        else:
            names = [base.name for base in MEMBERS if base in wanted - NUMERIC]
            names += [Base.FLOAT.name] if wanted & NUMERIC else []
        if any(name not in TYPES or (found is None and name not in IN_PYTHON) for name in names):
            return (), True
        return tuple(names), exact

    def _asked(self, one: ast.Expression, bound: BoundPattern) -> _Asked | None:
        """Return what the values of a property are like; None of what is no property of the pattern's alone."""
        if not isinstance(one, ast.Property) or not isinstance(one.base, ast.Variable):
            return None
        name = one.base.name
        if name in bound.edge_of and name not in self._variables:
            return self._asked_of_edges(one)
        if name in self._variables or name not in bound.vertex_of:
            return None
        with suppress(BindError, NotSupportedError):
            label = self._snapshot.names.property(one.key.words, self._text)
            if not label.kinds:
                return None
            type, bases = self._snapshot.properties.type_of(label), bases_of_kinds(label.kinds)
            if type.base is Base.VALUE and label.max_values == 1:
                return _Asked(bases, None, lambda: False)
            if type.base in _PLAIN and type.base is not Base.ZONED:
                return _Asked(frozenset((type.base,)), type.base, lambda: self._is_small(label))
        return None

    def _asked_of_edges(self, one: ast.Property) -> _Asked | None:
        """Return what the values of a property of edges are like, which are of one type each."""
        with suppress(BindError, NotSupportedError):
            found = self._snapshot.edges.column(self._snapshot.edges.key(one.key, self._snapshot.names, self._text))
            base = found.type.base
            if base is Base.VALUE and not found.many and found.bases is not None:
                return _Asked(found.bases, None, lambda: False)
            if base in _PLAIN and base is not Base.ZONED and not found.many:
                return _Asked(frozenset((base,)), base, lambda: False)
        return None

    def _is_small(self, label: EdgeLabel) -> bool:
        greatest = self._greatest(label)
        return greatest is not None and greatest < EXACT


def _are_hashed(asked: _Asked, type: Type) -> bool:
    """Whether DuckDB makes a hash join of a property with values of a type as they are."""
    return asked.single is not None and (asked.single is type.base or {asked.single, type.base} <= NUMERIC)


def _bases_of(type: Type, bases: frozenset[Base] | None) -> frozenset[Base]:
    """Return the types that values may be of."""
    if type.base is Base.VALUE:
        return frozenset(MEMBERS) if bases is None else bases
    if type.base is Base.CHOICE:
        return frozenset[Base]().union(*(_bases_of(field, None) for _, field in type.fields))
    return frozenset((type.base,))
