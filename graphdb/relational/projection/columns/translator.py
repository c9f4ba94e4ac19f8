"""Translates clauses, beside their SQL, to what columns in memory are computed by (:mod:`graphdb.relational.vectors`).

Everything here returns None for what it does not know, which is for SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graphdb.common.stopping import checked
from graphdb.common.values.types import Base, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.relational.projection.columns.functions import FUNCTIONS, date_in, of_one, part_of, rounded, squared
from graphdb.relational.projection.columns.numbers import (
    NUMBERS,
    arithmetic,
    chosen,
    comparison,
    first_of,
    one_type,
    real,
)
from graphdb.relational.projection.columns.operations import duration, list_operation, part_between, text_operation
from graphdb.relational.projection.columns.values import (
    COMPARED,
    HANDED_ON,
    ITEM,
    KEYS,
    OF_VERTICES,
    ORDERED,
    PLAIN,
    STRUCTS,
    Typed,
    Unknown,
    column_of,
    constant,
    is_handed_on,
    is_key,
    require,
    type_of_aggregate,
)
from graphdb.relational.projection.late import late_property
from graphdb.relational.projection.relation import GROUP, ORDER, Relation, Source, rows_of
from graphdb.relational.projection.sql import Compiled
from graphdb.relational.snapshot import Snapshot
from graphdb.relational.vectors.algebra import (
    Aggregate,
    Clause,
    ColumnOf,
    Constant,
    Key,
    LabelOf,
    Operation,
    PropertyOf,
    Rows,
    Unwound,
    Vector,
)
from graphdb.relational.vectors.temporal import TRUNCATED
from graphdb.semantics.aggregation import aggregates_in, is_aggregate
from graphdb.sql.value import SqlValue, column


@dataclass(frozen=True)
class Translator:
    """Translates expressions over rows whose names, and known expressions, are columns."""

    snapshot: Snapshot
    text: str
    variables: Mapping[str, SqlValue]
    known: Mapping[ast.Expression, SqlValue]
    named: Mapping[str, Typed | None] = field(default_factory=dict)
    """What further names stand for."""
    matches: str | None = None
    """The column of how many matches a row stands for."""
    ordered: SqlValue | None = None
    """The number of a row in the order that a list is to have."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """The values of parameters."""

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
            conditions = tuple(map(self._condition, where))
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
        known, computed = dict(self.known), dict[str, tuple[ast.Expression, SqlValue]]()
        for i, (item, value) in enumerate(checked(compiled)):
            node = item.expression
            parts = () if node in self.known or is_aggregate(node) else tuple(aggregates_in(node))
            if not parts:
                columns.append((f"c{i}", self._item_of_group(item, value)))
                continue
            computed[f"c{i}"] = node, value
            for part in parts:
                if part not in known:
                    name = f"x{len(columns)}"
                    columns.append((name, self._aggregate(part)))
                    known[part] = column(name, type_of_aggregate(part, self._value))
        if not computed:
            return Clause(rows, conditions, tuple(columns), True, order, window)
        over = replace(self, known=known, variables={}, matches=None, ordered=None)
        made: list[tuple[str, Vector | Aggregate]] = []
        for name in (f"c{i}" for i in range(len(compiled))):
            vector: Vector = ColumnOf(name)
            if name in computed:
                vector, base = over._value(computed[name][0])
                require(base is computed[name][1].type.base and base in HANDED_ON)
            made.append((name, vector))
        found = Clause(Clause(rows, conditions, tuple(columns), True), (), tuple(made))
        if not order and window == (0, None):
            return found
        return Clause(found, (), tuple((name, ColumnOf(name)) for name, _ in made), False, order, window)

    def aliased(self, items: Sequence[ast.ReturnItem], known: Mapping[ast.Expression, SqlValue]) -> Translator:
        """Return the translator of what rows are ordered by, which sees items by their names."""
        named: dict[str, Typed | None] = {}
        for item in checked(items):
            if item.alias:
                try:
                    named[item.alias] = self._value(item.expression)
                except Unknown:
                    named[item.alias] = None
        return replace(self, known=known, named=named)

    def order(self, order_by: Sequence[ast.OrderItem]) -> list[Key] | None:
        """Return what rows are ordered by."""
        keys = []
        for order in order_by:
            if not any(isinstance(part, ast.Variable | ast.CountStar) for part in walk(order.expression)):
                continue  # a constant orders nothing
            try:
                vector, base = self._value(order.expression)
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
            conditions = tuple(map(self._condition, where))
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
        """Return the rows that fulfil conditions, once for each item of a list that is written out, which SQL yields as
        another value; without columns in memory where SQL has to make them.
        """
        rows, node, unknown = rows_of(source), unwound.source, Source("")
        if rows is None or not isinstance(node, ast.ListLiteral) or not node.items:
            return unknown
        try:
            items = [self._value(each) for each in checked(node.items)]
            base = one_type(items)
            require((base in PLAIN or is_handed_on(base, item)) and base is item.type.base and not item.many)
            conditions = tuple(map(self._condition, where))
            return Source("", rows=Unwound(rows, conditions, tuple(vector for vector, _ in items), ITEM))
        except Unknown:
            return unknown

    def _computed(self, node: ast.Expression, value: SqlValue) -> Vector:
        """Return an expression of plain values, which SQL yields as ``value``."""
        vector, base = self._value(node)
        plain = base in PLAIN - {Base.NODE} or (base is Base.VALUE and is_handed_on(base, value))
        require(plain and base is value.type.base and not value.many)
        return vector

    def of_groups(
        self,
        relation: Relation,
        returns: ast.ReturnClause,
        window: tuple[int, int | None],
        compiled: Sequence[Compiled],
        *,
        grouped: bool = False,
    ) -> Clause | None:
        """Return the rows of a clause that say of which group they are (column ``g``), where they have no order."""
        group = relation.variables[GROUP].column
        if group is None or window != (0, None) or returns.order_by or ORDER in relation.variables:
            return None
        found = self.clause(relation.source, relation.where, compiled, [], (0, None), grouped=grouped)
        return (
            None
            if found is None or found.grouped is not grouped
            else replace(found, columns=(*found.columns, ("g", ColumnOf(group))))
        )

    # --- expressions

    def _item(self, item: ast.ReturnItem, value: SqlValue) -> Vector:
        node = item.expression
        if value.type.base in STRUCTS and node not in self.known:
            return self._struct(node, value)
        vector, base = self._value(node)
        require(is_handed_on(base, value) and base is value.type.base and not value.many)
        return vector

    def _item_of_group(self, item: ast.ReturnItem, value: SqlValue) -> Vector | Aggregate:
        node = item.expression
        if node not in self.known and is_aggregate(node):
            return self._aggregate(node)
        if value.type.base in STRUCTS and node not in self.known:
            require(is_key(value.type))
            return self._struct(node, value)
        vector, base = self._property(node) or self._value(node)
        plain = base in KEYS or isinstance(vector, PropertyOf) or is_key(value.type)
        require(base is value.type.base and plain)
        return vector

    def _struct(self, node: ast.Expression, value: SqlValue) -> Vector:
        """Return a map or list of plain values, or a duration; of a vertex that is null, null."""
        there: Vector = Constant(True)
        match node:
            case ast.MapLiteral(items):
                fields = self._fields([(key.text, each) for key, each in items], value.type)
            case ast.MapProjection(element, entries) if None not in entries:
                fields = self._fields([item for item in entries if item is not None], value.type)
                there = self._not_null(element)
            case ast.FunctionCall(name, (vertex,)) if name.lower() == "properties" and value.items:
                keys = (key for key, _ in value.type.fields)
                fields = [(key, column_of(each)) for key, each in zip(keys, value.items, strict=True)]
                there = self._not_null(vertex)
            case ast.ListLiteral(items) if value.type.base is Base.TUPLE:
                fields = [("", self._value(item)) for item in items]
            case _:
                vector, base = self._value(node)
                require(base is value.type.base and not value.many)
                return vector
        require([key for key, _ in fields] == [key for key, _ in value.type.fields] and not value.many)
        for (_, (_, base)), (_, type) in zip(fields, value.type.fields, strict=True):
            require(base is type.base and base in PLAIN - {Base.NODE} | {Base.MAP})
        return Operation("struct", (there, *(vector for _, (vector, _) in fields)))

    def _fields(self, items: Sequence[tuple[str, ast.Expression]], type: Type) -> list[tuple[str, Typed]]:
        """Return what the keys of a map lead to, maps that are put together here among them."""
        require([key for key, _ in items] == [key for key, _ in type.fields])
        found: list[tuple[str, Typed]] = []
        for (key, node), (_, of) in zip(items, type.fields, strict=True):
            if of.base is Base.MAP and node not in self.known and isinstance(node, ast.MapLiteral | ast.MapProjection):
                found.append((key, (self._struct(node, SqlValue("", of)), Base.MAP)))
                continue
            typed = self._value(node)
            require(typed[1] is not Base.MAP)
            found.append((key, typed))
        return found

    def _not_null(self, node: ast.Expression) -> Vector:
        return Operation("NOT", (Operation("IS NULL", (self._value(node)[0],)),))

    def _aggregate(self, node: ast.FunctionCall | ast.CountStar) -> Aggregate:
        if isinstance(node, ast.CountStar):
            return Aggregate("count", None, matches=self.matches)
        require(len(node.arguments) == 1)
        match node.arguments[0]:
            case ast.Case(None, branches, None) if node.name.lower() == "count" and not node.distinct:
                return Aggregate("sum", self._counted_case(branches), matches=self.matches)
        vector, base = self._value(node.arguments[0])
        name = node.name.lower()
        if base is Base.VALUE and (name == "avg" or (name == "count" and not node.distinct)):
            vector, base = real((vector, base)), Base.FLOAT
        match name:
            case "count":
                require(base in (KEYS if node.distinct else HANDED_ON))
                return Aggregate("count", vector, node.distinct, None if node.distinct else self.matches)
            case "sum" | "avg" as function:
                require(base in NUMBERS and not node.distinct)
                return Aggregate(function, vector, matches=self.matches)
            case "min" | "max" as function:
                require(base in COMPARED - {Base.MOMENT} | {Base.FLOAT})
                return Aggregate(function, vector)
            case "stdev" | "stdevp" as function:
                require(base in (Base.INTEGER, Base.FLOAT) and not node.distinct)
                return Aggregate("stDev" if function == "stdev" else "stDevP", vector, matches=self.matches)
            case "collect":
                require(base in (KEYS - {Base.ZONED} if node.distinct else PLAIN))
                require(self.matches is None or node.distinct)
                order = None if self.ordered is None else column_of(self.ordered)[0]
                return Aggregate("collect", vector, node.distinct, order=order)
        raise Unknown

    def _counted_case(self, branches: Iterable[tuple[tuple[ast.Expression, ...], ast.Expression]]) -> Vector:
        """Return 1 where a CASE without ELSE has a value, and 0 where it has none."""
        operands: list[Vector] = []
        for conditions, result in branches:
            tested, (vector, _) = tuple(map(self._condition, conditions)), self._value(result)
            absent = Operation("IS NULL", (vector,))
            there = (
                Constant(1) if isinstance(vector, Constant) else Operation("CASE", (absent, Constant(0), Constant(1)))
            )
            operands += [tested[0] if len(tested) == 1 else Operation("OR", tested), there]
        return Operation("CASE", (*operands, Constant(0)))

    def _condition(self, node: ast.Expression) -> Vector:
        vector, base = self._value(node)
        require(base is Base.BOOLEAN)
        return vector

    def _value(self, node: ast.Expression) -> Typed:
        known = self.known.get(node)
        if known is not None:
            return column_of(known)
        if (made := self._of_list(node) or self._of_text(node)) is not None:
            return made
        match node:
            case ast.Variable(name):
                return self._variable(name)
            case ast.Literal(value):
                return constant(value)
            case ast.Parameter(name):
                return constant(self.arguments[name])
            case ast.Property():
                return self._property(node) or self._field(node) or self._part(node)
            case ast.Unary("NOT", operand):
                return Operation("NOT", (self._condition(operand),)), Base.BOOLEAN
            case ast.Unary("-", operand):
                return Operation("-", (Constant(0), self._integer(operand))), Base.INTEGER
            case ast.Boolean("AND" | "OR" as operator, operands):
                return Operation(operator, tuple(map(self._condition, operands))), Base.BOOLEAN
            case ast.Comparison():
                return self._comparison(node), Base.BOOLEAN
            case ast.Binary("+" | "-" | "*" | "/" as operator, left, right):
                return arithmetic(operator, self._value(left), self._value(right))
            case ast.Binary("%", left, right):
                return Operation("%", (self._integer(left), self._integer(right))), Base.INTEGER
            case ast.IsNull(operand, negated):
                absent = Operation("IS NULL", (self._value(operand)[0],))
                return Operation("NOT", (absent,)) if negated else absent, Base.BOOLEAN
            case ast.FunctionCall(name, arguments) if name.lower() == "coalesce" and arguments:
                return first_of([self._value(argument) for argument in arguments])
            case ast.Binary("^", left, right):
                return squared(self._value(left), right)
            case ast.FunctionCall() if (day := date_in(node)) is not None:
                return day, Base.DATE
            case ast.FunctionCall(name, (argument,)) if name.lower() in FUNCTIONS:
                return of_one(name.lower(), self._value(argument))
            case ast.FunctionCall(name, (argument, ast.Literal(int(digits)))) if name.lower() == "round":
                return rounded(self._value(argument), digits)
            case ast.FunctionCall(name, (ast.Literal(str(unit)), day)) if name.lower() == "date.truncate":
                vector, base = self._value(day)
                require(base is Base.DATE and unit.lower() in TRUNCATED)
                return Operation(f"begin of {unit.lower()}", (vector,)), base
            case ast.FunctionCall(name, (ast.Variable(edge),)) if name.lower() == "type":
                return self._label(edge), Base.STRING
            case ast.FunctionCall(name, (ast.MapLiteral(items),)) if name.lower() == "duration":
                return duration({key.text: self._integer(part) for key, part in items}), Base.DURATION
            case ast.Case(operand, branches, otherwise):
                return self._case(operand, branches, otherwise)
        raise Unknown

    def _label(self, name: str) -> Vector:
        """Return the name of the label of edges of a pattern."""
        edge = None if name in self.named else self.variables.get(name)
        require(edge is not None and edge.type.base is Base.EDGE and bool(edge.parts) and edge.column is None)
        assert edge is not None
        require(not edge.many and edge.shared is None)
        return LabelOf(ColumnOf(edge.parts[0]), self.snapshot.names.spellings)

    def _variable(self, name: str) -> Typed:
        found = self.named.get(name)
        if found is None:
            require(name in self.variables and name not in self.named)
            return column_of(self.variables[name])
        return found

    def _of_text(self, node: ast.Expression) -> Typed | None:
        """Return a function of one text, or the whole part or the text of a number; None for others."""
        found = text_operation(node, self.arguments)
        if found is not None:
            vector, base = self._value(found.operand)
            if found.operator == "toInteger" and base is Base.FLOAT:
                return Operation("toInteger of floats", (vector,)), Base.INTEGER
            require(base is Base.STRING)
            return Operation(found.operator, (vector,), found.constants), found.base
        match node:
            case ast.FunctionCall(name, (number,)) if name.lower() == "tostring":
                return Operation("toString", (self._integer(number),)), Base.STRING
        return None

    def _of_list(self, node: ast.Expression) -> Typed | None:
        """Return how many items a list in a column has, one of these, or some of them; None for others."""
        found = list_operation(node, self.arguments)
        if found is None:
            return None
        of = self.known.get(found.operand)
        if of is None and isinstance(found.operand, ast.Variable) and found.operand.name not in self.named:
            of = self.variables.get(found.operand.name)
        if of is None or of.type.base is not Base.LIST or of.type.element is None:
            return None
        vector, base = column_of(of)
        item = of.type.element.base
        if found.operator == "slice":
            return Operation(found.operator, (vector,), found.constants), base
        if found.operator == "item":
            require(item in PLAIN)
            return Operation(found.operator, (vector,), found.constants), item
        return Operation(found.operator, (vector,)), Base.INTEGER

    def _case(
        self,
        operand: ast.Expression | None,
        branches: Iterable[tuple[tuple[ast.Expression, ...], ast.Expression]],
        otherwise: ast.Expression | None,
    ) -> Typed:
        each: list[tuple[Vector, Typed]] = []
        for conditions, result in branches:
            if operand is not None:
                conditions = tuple(ast.Comparison(("=",), (operand, value)) for value in conditions)
            tested = tuple(map(self._condition, conditions))
            each.append((tested[0] if len(tested) == 1 else Operation("OR", tested), self._value(result)))
        absent = otherwise is None or (isinstance(otherwise, ast.Literal) and otherwise.value is None)
        return chosen(each, None if absent or otherwise is None else self._value(otherwise))

    def _comparison(self, node: ast.Comparison) -> Vector:
        operands = list(map(self._compared, node.operands))
        pairs = zip(node.operators, operands, operands[1:], strict=False)
        parts = [comparison(operator, left, right) for operator, left, right in pairs]
        return parts[0] if len(parts) == 1 else Operation("AND", tuple(parts))

    def _compared(self, node: ast.Expression) -> Typed:
        """Return a value that is compared: points in time are so by their instants, whatever their offsets."""
        value = self.arguments[node.name] if isinstance(node, ast.Parameter) else None
        if type(value) is datetime and value.tzinfo is not None:
            return Constant(value.astimezone(UTC)), Base.ZONED
        return self._value(node)

    def _integer(self, node: ast.Expression) -> Vector:
        vector, base = self._value(node)
        require(base is Base.INTEGER)
        return vector

    def _property(self, node: ast.Expression) -> Typed | None:
        """Return a property of a vertex in a column, where it is in memory."""
        late = late_property(node, self.variables, self.snapshot, self.text)
        if late is None or late[0].column is None:
            return None
        vertex, label = late
        if isinstance(node, ast.Property) and isinstance(node.base, ast.Variable) and node.base.name in self.named:
            return None
        base = self.snapshot.properties.type_of(label).base
        return (PropertyOf(ColumnOf(vertex.column or ""), label), base) if base in OF_VERTICES else None

    def _field(self, node: ast.Property) -> Typed | None:
        """Return what a map in a column has for a key; None for other properties."""
        name = node.base.name if isinstance(node.base, ast.Variable) else ""
        value = None if name in self.named else self.variables.get(name)
        if value is None or value.type.base is not Base.MAP or value.column is None or len(node.key.words) != 1:
            return None
        at = next((i for i, (key, _) in enumerate(value.type.fields) if key == node.key.text), None)
        require(at is not None and not value.many and value.shared is None)
        assert at is not None
        base = value.type.fields[at][1].base
        require(base in PLAIN)
        return Operation("field", (ColumnOf(value.column),), (at,)), base

    def _part(self, node: ast.Property) -> Typed:
        """Return a part of a date or a point in time, or of what lies between two of them."""
        require(len(node.key.words) == 1)
        if isinstance(node.base, ast.FunctionCall):
            return part_between(node.base, node.key.text, self._value), Base.INTEGER
        return part_of(self._value(node.base), node.key.text)
