"""Translates clauses, beside their SQL, to what columns in memory are computed by (:mod:`graphdb.relational.vectors`).

Everything here returns None for what it does not know, which is for SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graphdb.common.stopping import checked
from graphdb.common.values.types import Base, Type, list_of
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.relational.projection.columns.aggregates import aggregate, maps_of, type_of_aggregate
from graphdb.relational.projection.columns.expressions import ExpressionTranslator
from graphdb.relational.projection.columns.lists import list_of_items
from graphdb.relational.projection.columns.numbers import one_type, real
from graphdb.relational.projection.columns.values import (
    HANDED_ON,
    ITEM,
    KEYS,
    ORDERED,
    PLAIN,
    STRUCTS,
    Typed,
    Unknown,
    column_of,
    is_handed_on,
    is_key,
    require,
)
from graphdb.relational.projection.relation import GROUP, ORDER, Relation, Source, rows_of
from graphdb.relational.projection.sql import Compiled
from graphdb.relational.vectors.algebra import (
    Aggregate,
    Clause,
    ColumnOf,
    Key,
    PropertyOf,
    Rows,
    Unwound,
    Vector,
)
from graphdb.semantics.aggregation import aggregates_in, is_aggregate
from graphdb.sql.value import SqlValue, column


@dataclass(frozen=True)
class ClauseTranslator:
    """Translates clauses over rows whose names, and known expressions, are columns."""

    expressions: ExpressionTranslator
    """Translates what the clauses compute of the rows that they start from."""
    matches: str | None = None
    """The column of how many matches a row stands for."""
    ordered: SqlValue | None = None
    """The number of a row in the order that a list is to have."""

    def clause(
        self,
        source: Source,
        where: Sequence[ast.Expression],
        compiled: Sequence[Compiled],
        order: Sequence[Key] | None,
        window: tuple[int, int | None],
        *,
        grouped: bool = False,
    ) -> Clause | None:
        """Return a clause over some rows."""
        rows = rows_of(source)
        if rows is None or order is None:
            return None
        try:
            conditions = tuple(map(self.expressions.condition, where))
            if grouped:
                return self._grouped(rows, conditions, compiled, tuple(order), window)
            columns = tuple((f"c{i}", self._item(*one)) for i, one in enumerate(checked(compiled)))
        except Unknown:
            return None
        return Clause(rows, conditions, columns, False, tuple(order), window)

    def _grouped(
        self,
        rows: Rows,
        conditions: tuple[Vector, ...],
        compiled: Sequence[Compiled],
        order: tuple[Key, ...],
        window: tuple[int, int | None],
    ) -> Clause:
        """Return a clause that groups rows; what is computed of aggregates is so by a second one over theirs."""
        columns: list[tuple[str, Vector | Aggregate]] = []
        known, computed = dict(self.expressions.known), dict[str, tuple[ast.Expression, SqlValue]]()
        for i, (item, value) in enumerate(checked(compiled)):
            node = item.expression
            parts = () if node in self.expressions.known or is_aggregate(node) else tuple(aggregates_in(node))
            if not parts:
                columns.append((f"c{i}", self._item_of_group(item, value)))
                continue
            computed[f"c{i}"] = node, value
            for part in parts:
                if part not in known:
                    name, maps = f"x{len(columns)}", maps_of(part, value)
                    columns.append((name, self._aggregate(part, maps)))
                    type = list_of(maps) if maps else type_of_aggregate(part, self.expressions.value)
                    known[part] = column(name, type)
        if not computed:
            return Clause(rows, conditions, tuple(columns), True, order, window)
        over = replace(self.expressions, known=known, variables={})
        made: list[tuple[str, Vector | Aggregate]] = []
        for name in (f"c{i}" for i in range(len(compiled))):
            vector: Vector = ColumnOf(name)
            if name in computed:
                node, value = computed[name]
                if value.type.base in STRUCTS:
                    made.append((name, over.struct(node, value)))
                    continue
                vector, base = over.value(node)
                require(base is value.type.base and base in HANDED_ON)
            made.append((name, vector))
        found = Clause(Clause(rows, conditions, tuple(columns), True), (), tuple(made))
        if not order and window == (0, None):
            return found
        return Clause(found, (), tuple((name, ColumnOf(name)) for name, _ in made), False, order, window)

    def over(
        self, known: Mapping[ast.Expression, SqlValue], variables: Mapping[str, SqlValue] | None = None
    ) -> ClauseTranslator:
        """Return the translator of clauses over rows with other columns for known expressions, and for names."""
        variables = self.expressions.variables if variables is None else variables
        return replace(self, expressions=replace(self.expressions, known=known, variables=variables))

    def aliased(self, items: Sequence[ast.ReturnItem], known: Mapping[ast.Expression, SqlValue]) -> ClauseTranslator:
        """Return the translator of what rows are ordered by, which sees items by their names."""
        named: dict[str, Typed | None] = {}
        for item in checked(items):
            if item.alias:
                try:
                    named[item.alias] = self.expressions.value(item.expression)
                except Unknown:
                    named[item.alias] = None
        return replace(self, expressions=replace(self.expressions, known=known, named=named))

    def order(self, order_by: Sequence[ast.OrderItem]) -> list[Key] | None:
        """Return what rows are ordered by."""
        keys = []
        for order in order_by:
            if not any(isinstance(part, ast.Variable | ast.CountStar) for part in walk(order.expression)):
                continue  # a constant orders nothing
            try:
                vector, base = self.expressions.value(order.expression)
            except Unknown:
                return None
            if base is Base.VALUE:
                vector, base = real((vector, base)), Base.FLOAT
            if base not in ORDERED:
                return None
            keys.append(Key(vector, order.descending, order.nulls_first))
        return keys

    def columns(
        self,
        source: Source,
        where: Sequence[ast.Expression],
        chosen: Mapping[str, SqlValue],
        computed: Mapping[str, ast.Expression],
    ) -> Clause | None:
        """Return the rows that fulfil conditions, with values as columns by their names.

        Values are ``chosen``, or those of expressions that are ``computed``.
        """
        rows = rows_of(source)
        if rows is None:
            return None
        try:
            conditions = tuple(map(self.expressions.condition, where))
            columns = {
                name: self._computed(computed[name], value) if name in computed else column_of(value)[0]
                for name, value in chosen.items()
            }
            return Clause(rows, conditions, tuple(columns.items()))
        except Unknown:
            return None

    def unwound(
        self, source: Source, where: Sequence[ast.Expression], unwound: ast.UnwindClause, item: SqlValue
    ) -> Source:
        """Return the rows that fulfil conditions, once for each item of a list, which SQL yields as another value;
        without columns in memory where SQL has to make them.
        """
        rows, node, unknown = rows_of(source), unwound.source, Source("")
        if rows is None:
            return unknown
        try:
            listed = not isinstance(node, ast.ListLiteral)
            if isinstance(node, ast.ListLiteral):
                require(bool(node.items))
                items = [self.expressions.value(each) for each in checked(node.items)]
            else:
                items = [list_of_items(self.expressions, node)]
            base = one_type(items)
            require((base in PLAIN or is_handed_on(base, item)) and base is item.type.base and not item.many)
            conditions = tuple(map(self.expressions.condition, where))
            return Source("", rows=Unwound(rows, conditions, tuple(vector for vector, _ in items), ITEM, listed))
        except Unknown:
            return unknown

    def _computed(self, node: ast.Expression, value: SqlValue) -> Vector:
        """Return an expression of plain values, which SQL yields as ``value``."""
        vector, base = self.expressions.value(node)
        plain = base in PLAIN - {Base.NODE} or (base is Base.VALUE and is_handed_on(base, value))
        plain = plain or (base is Base.LIST and self._has_items_of(node, value))
        require(plain and base is value.type.base and not value.many)
        return vector

    def of_groups(
        self,
        relation: Relation,
        returns: ast.ReturnClause,
        window: tuple[int, int | None],
        compiled: Sequence[Compiled],
    ) -> Clause | None:
        """Return what a clause makes of groups of rows, with the column of groups (``g``), where that has no order."""
        group = relation.variables[GROUP].column
        if group is None or window != (0, None) or returns.order_by or ORDER in relation.variables:
            return None
        found = self.clause(relation.source, relation.where, compiled, [], (0, None), grouped=True)
        return _with_groups(found, group) if found is not None and found.grouped else None

    def each_of_groups(
        self,
        relation: Relation,
        compiled: Sequence[Compiled],
        order: Sequence[Key] | None,
        window: tuple[int, int | None],
    ) -> Clause | None:
        """Return a row for each of the rows of groups, those of a window out of each in some order."""
        group = relation.variables[GROUP].column
        found = self.clause(relation.source, relation.where, compiled, order, window)
        if group is None or found is None:
            return None
        return replace(_with_groups(found, group), within=group if order or window != (0, None) else None)

    # --- items

    def _item(self, item: ast.ReturnItem, value: SqlValue) -> Vector:
        node = item.expression
        if value.type.base in STRUCTS and node not in self.expressions.known:
            return self.expressions.struct(node, value)
        vector, base = self.expressions.value(node)
        require(is_handed_on(base, value) and base is value.type.base and not value.many)
        require(base is not Base.LIST or self._has_items_of(node, value))
        return vector

    def _has_items_of(self, node: ast.Expression, value: SqlValue) -> bool:
        """Whether the items of a list are of the type that SQL yields."""
        element = value.type.element
        return element is not None and list_of_items(self.expressions, node)[1] is element.base

    def _item_of_group(self, item: ast.ReturnItem, value: SqlValue) -> Vector | Aggregate:
        node = item.expression
        if node not in self.expressions.known and is_aggregate(node):
            return self._aggregate(node, maps_of(node, value))
        if value.type.base in STRUCTS and node not in self.expressions.known:
            require(is_key(value.type))
            return self.expressions.struct(node, value)
        vector, base = self.expressions.property(node) or self.expressions.value(node)
        plain = base in KEYS or (isinstance(vector, PropertyOf) and base is not Base.LIST) or is_key(value.type)
        require(base is value.type.base and plain)
        return vector

    def _aggregate(self, node: ast.FunctionCall | ast.CountStar, maps: Type | None) -> Aggregate:
        """Return an aggregate: a list of ``maps`` where it is one."""
        if maps is None or not isinstance(node, ast.FunctionCall):
            return aggregate(node, self.expressions.value, self.matches, self.ordered)
        require(self.matches is None)
        order = None if self.ordered is None else column_of(self.ordered)[0]
        operand = self.expressions.struct(node.arguments[0], SqlValue("", maps))
        return Aggregate("collect", operand, order=order)


def _with_groups(clause: Clause, group: str) -> Clause:
    """Return a clause with the column of groups as one more, ``g``."""
    return replace(clause, columns=(*clause.columns, ("g", ColumnOf(group))))
