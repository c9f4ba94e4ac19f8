"""Translates clauses, beside their SQL, to what columns in memory are computed by (:mod:`graphdb.relational.vectors`).

Everything here returns None for what it does not know, which is for SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from math import isfinite

from graphdb.common.stopping import checked
from graphdb.common.values.types import Base, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.relational.projection.late import late_property
from graphdb.relational.projection.relation import GROUP, ORDER, Relation, Source
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
    Vector,
)
from graphdb.sql.value import SqlValue

_PLAIN = {Base.NODE, Base.INTEGER, Base.FLOAT, Base.STRING, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.ZONED}
"""Types whose values are columns as SQL has them."""

_ORDERED = _PLAIN - {Base.NODE} | {Base.MOMENT, Base.DURATION}
"""Types whose order is that of their columns, or of the lengths that these say."""

KEYS = {Base.NODE, Base.INTEGER, Base.STRING, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.ZONED}
"""Types whose values are equal where those in their columns are."""

_COMPARED = {Base.INTEGER, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.ZONED, Base.MOMENT}

_INSTANTS = {Base.ZONED, Base.MOMENT}
"""Types of points in time that are compared with each other, too."""

_PARTS = {"year", "quarter", "month", "day"}

_STRUCTS = {Base.DURATION, Base.MAP, Base.TUPLE}
"""Types whose columns are structs of what their values consist of."""

_OF_VERTICES = _PLAIN | {Base.MOMENT, Base.LIST, Base.EDGE}
"""Types of properties that are columns."""

HANDED_ON = _OF_VERTICES | _STRUCTS | {Base.PATH}

Typed = tuple[Vector, Base]


class _Unknown(Exception):
    """Something is for SQL."""


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
            columns = tuple((f"c{i}", self._item(*one, grouped)) for i, one in enumerate(checked(compiled)))
        except _Unknown:
            return None
        return Clause(rows, conditions, columns, grouped, tuple(order), window)

    def aliased(self, items: Sequence[ast.ReturnItem], known: Mapping[ast.Expression, SqlValue]) -> Translator:
        """Return the translator of what rows are ordered by, which sees items by their names."""
        named: dict[str, Typed | None] = {}
        for item in checked(items):
            if item.alias:
                try:
                    named[item.alias] = self._value(item.expression)
                except _Unknown:
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
            except _Unknown:
                return None
            if base not in _ORDERED:
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
                name: self._computed(computed[name], value) if name in computed else _column(value)[0]
                for name, value in chosen.items()
            }
            return Clause(rows, conditions, tuple(columns.items()))
        except _Unknown:
            return None

    def _computed(self, node: ast.Expression, value: SqlValue) -> Vector:
        """Return an expression of plain values, which SQL yields as ``value``."""
        vector, base = self._value(node)
        _require(base in _PLAIN - {Base.NODE} and base is value.type.base and not value.many)
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
        return None if found is None else replace(found, columns=(*found.columns, ("g", ColumnOf(group))))

    # --- expressions

    def _item(self, item: ast.ReturnItem, value: SqlValue, grouped: bool) -> Vector | Aggregate:
        node = item.expression
        if not grouped:
            if value.type.base in _STRUCTS and node not in self.known:
                return self._struct(node, value)
            vector, base = self._value(node)
            _require(base in HANDED_ON and base is value.type.base and not value.many)
            return vector
        if isinstance(node, ast.CountStar):
            return Aggregate("count", None, matches=self.matches)
        if node not in self.known and isinstance(node, ast.FunctionCall) and node.name.lower() in _AGGREGATES:
            return self._aggregate(node)
        if value.type.base in _STRUCTS and node not in self.known:
            _require(_is_key(value.type))
            return self._struct(node, value)
        vector, base = self._property(node) or self._value(node)
        plain = base in KEYS or isinstance(vector, PropertyOf) or _is_key(value.type)
        _require(base is value.type.base and plain)
        return vector

    def _struct(self, node: ast.Expression, value: SqlValue) -> Vector:
        """Return a map or list of plain values, or a duration; of a vertex that is null, null."""
        there: Vector = Constant(True)
        match node:
            case ast.MapLiteral(items):
                fields = [(key.text, self._value(each)) for key, each in items]
            case ast.MapProjection(element, entries) if None not in entries:
                fields = [(item[0], self._value(item[1])) for item in entries if item is not None]
                there = self._not_null(element)
            case ast.FunctionCall(name, (vertex,)) if name.lower() == "properties" and value.items:
                keys = (key for key, _ in value.type.fields)
                fields = [(key, _column(each)) for key, each in zip(keys, value.items, strict=True)]
                there = self._not_null(vertex)
            case ast.ListLiteral(items) if value.type.base is Base.TUPLE:
                fields = [("", self._value(item)) for item in items]
            case _:
                vector, base = self._value(node)
                _require(base is value.type.base and not value.many)
                return vector
        _require([key for key, _ in fields] == [key for key, _ in value.type.fields] and not value.many)
        for (_, (_, base)), (_, type) in zip(fields, value.type.fields, strict=True):
            _require(base is type.base and base in _PLAIN - {Base.NODE})
        return Operation("struct", (there, *(vector for _, (vector, _) in fields)))

    def _not_null(self, node: ast.Expression) -> Vector:
        return Operation("NOT", (Operation("IS NULL", (self._value(node)[0],)),))

    def _aggregate(self, node: ast.FunctionCall) -> Aggregate:
        _require(len(node.arguments) == 1)
        match node.arguments[0]:
            case ast.Case(None, branches, None) if node.name.lower() == "count" and not node.distinct:
                return Aggregate("sum", self._counted_case(branches), matches=self.matches)
        vector, base = self._value(node.arguments[0])
        match node.name.lower():
            case "count":
                _require(base in (KEYS if node.distinct else HANDED_ON))
                return Aggregate("count", vector, node.distinct, None if node.distinct else self.matches)
            case "sum" | "avg" as function:
                _require(base in (Base.INTEGER, Base.FLOAT) and not node.distinct)
                return Aggregate(function, vector, matches=self.matches)
            case "min" | "max" as function:
                _require(base in _COMPARED - {Base.MOMENT} | {Base.FLOAT})
                return Aggregate(function, vector)
            case "collect":
                _require(base in (Base.NODE, Base.INTEGER) and not node.distinct and self.matches is None)
                order = None if self.ordered is None else _column(self.ordered)[0]
                return Aggregate("collect", vector, order=order)
        raise _Unknown

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
        _require(base is Base.BOOLEAN)
        return vector

    def _value(self, node: ast.Expression) -> Typed:
        known = self.known.get(node)
        if known is not None:
            return _column(known)
        match node:
            case ast.Variable(name):
                return self._variable(name)
            case ast.Literal(value):
                return _constant(value)
            case ast.Parameter(name):
                return _constant(self.arguments[name])
            case ast.Property():
                return self._property(node) or self._part(node)
            case ast.Unary("NOT", operand):
                return Operation("NOT", (self._condition(operand),)), Base.BOOLEAN
            case ast.Unary("-", operand):
                return Operation("-", (Constant(0), self._integer(operand))), Base.INTEGER
            case ast.Boolean("AND" | "OR" as operator, operands):
                return Operation(operator, tuple(map(self._condition, operands))), Base.BOOLEAN
            case ast.Comparison():
                return self._comparison(node), Base.BOOLEAN
            case ast.Binary("+" | "-" | "*" | "/" as operator, left, right):
                return self._arithmetic(operator, left, right)
            case ast.Binary("%", left, right):
                return Operation("%", (self._integer(left), self._integer(right))), Base.INTEGER
            case ast.IsNull(operand, negated):
                absent = Operation("IS NULL", (self._value(operand)[0],))
                return Operation("NOT", (absent,)) if negated else absent, Base.BOOLEAN
            case ast.FunctionCall(name, arguments) if name.lower() == "coalesce" and arguments:
                values = [self._value(argument) for argument in arguments]
                bases = {base for _, base in values}
                _require(len(bases) == 1 and bases <= _PLAIN)
                return Operation("coalesce", tuple(vector for vector, _ in values)), values[0][1]
            case ast.FunctionCall(name, (argument,)) if name.lower() in ("tofloat", "abs"):
                vector, base = self._value(argument)
                _require(base in (Base.INTEGER, Base.FLOAT))
                if name.lower() == "abs":
                    return Operation("abs", (vector,)), base
                return Operation("toFloat", (vector,)), Base.FLOAT
            case ast.FunctionCall(name, (ast.Variable(edge),)) if name.lower() == "type":
                return self._label(edge), Base.STRING
            case ast.FunctionCall(name, (ast.MapLiteral(items),)) if name.lower() == "duration":
                return self._duration({key.text: self._integer(part) for key, part in items}), Base.DURATION
            case ast.Case(None, branches, otherwise) if otherwise is not None:
                return self._case(branches, otherwise)
        raise _Unknown

    def _duration(self, parts: Mapping[str, Vector]) -> Vector:
        """Return a duration of whole parts, none of which is smaller than a second."""
        _require(bool(parts) and parts.keys() <= set().union(*_UNITS))
        sums: list[Vector] = []
        for units in _UNITS:
            some = [_times(parts[unit], per) for unit, per in units.items() if unit in parts]
            sums.append(reduce(lambda left, right: Operation("+", (left, right)), some) if some else Constant(0))
        return Operation("duration", (*sums, Constant(0)))

    def _label(self, name: str) -> Vector:
        """Return the name of the label of edges of a pattern."""
        edge = None if name in self.named else self.variables.get(name)
        _require(edge is not None and edge.type.base is Base.EDGE and bool(edge.parts) and edge.column is None)
        assert edge is not None
        _require(not edge.many and edge.shared is None)
        return LabelOf(ColumnOf(edge.parts[0]), self.snapshot.names.spellings)

    def _variable(self, name: str) -> Typed:
        found = self.named.get(name)
        if found is None:
            _require(name in self.variables and name not in self.named)
            return _column(self.variables[name])
        return found

    def _case(
        self, branches: Iterable[tuple[tuple[ast.Expression, ...], ast.Expression]], otherwise: ast.Expression
    ) -> Typed:
        operands: list[Vector] = []
        last, base = self._value(otherwise)
        _require(base in (Base.INTEGER, Base.BOOLEAN, Base.STRING))
        for conditions, result in branches:
            tested = tuple(map(self._condition, conditions))
            vector, other = self._value(result)
            _require(other is base)
            operands += [tested[0] if len(tested) == 1 else Operation("OR", tested), vector]
        return Operation("CASE", (*operands, last)), base

    def _arithmetic(self, operator: str, left: ast.Expression, right: ast.Expression) -> Typed:
        (one, base), (other, type) = self._value(left), self._value(right)
        _require({base, type} <= {Base.INTEGER, Base.FLOAT})
        integral = base is type is Base.INTEGER
        operator = "//" if integral and operator == "/" else operator
        return Operation(operator, (one, other)), Base.INTEGER if integral else Base.FLOAT

    def _comparison(self, node: ast.Comparison) -> Vector:
        operands = list(map(self._compared, node.operands))
        parts = []
        for operator, (left, base), (right, other) in zip(node.operators, operands, operands[1:], strict=False):
            same = (base is other and base in _COMPARED) or {base, other} == _INSTANTS
            _require(same or (base is other is Base.NODE and operator in ("=", "<>")))
            parts.append(Operation(operator, (left, right)))
        return parts[0] if len(parts) == 1 else Operation("AND", tuple(parts))

    def _compared(self, node: ast.Expression) -> Typed:
        """Return a value that is compared: points in time are so by their instants, whatever their offsets."""
        value = self.arguments[node.name] if isinstance(node, ast.Parameter) else None
        if type(value) is datetime and value.tzinfo is not None:
            return Constant(value.astimezone(UTC)), Base.ZONED
        return self._value(node)

    def _integer(self, node: ast.Expression) -> Vector:
        vector, base = self._value(node)
        _require(base is Base.INTEGER)
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
        return (PropertyOf(ColumnOf(vertex.column or ""), label), base) if base in _OF_VERTICES else None

    def _part(self, node: ast.Property) -> Typed:
        """Return a part of a date or a point in time, or of what lies between two of them."""
        _require(len(node.key.words) == 1)
        if isinstance(node.base, ast.FunctionCall):
            return self._part_between(node.base, node.key.text), Base.INTEGER
        _require(node.key.text in _PARTS)
        vector, base = self._value(node.base)
        _require(base in (Base.DATE, Base.DATETIME, Base.MOMENT))
        return Operation(node.key.text, (vector,)), Base.INTEGER

    def _part_between(self, call: ast.FunctionCall, part: str) -> Vector:
        """Return a part of what lies between two dates or local times: of the months, all days, or all seconds."""
        name, unit = call.name.lower(), next((unit for unit, parts in _BETWEEN.items() if part in parts), None)
        _require(len(call.arguments) == 2 and unit is not None)
        _require(name == f"duration.in{unit}" or (name == "duration.between" and unit == "months"))
        operands = [self._value(argument) for argument in call.arguments]
        _require(all(base in (Base.DATE, Base.DATETIME) for _, base in operands))
        found: Vector = Operation(f"{unit} between", tuple(vector for vector, _ in operands))
        for operator, by in _BETWEEN[unit or ""][part]:
            found = Operation(operator, (found, Constant(by)))
        return found


_UNITS = (
    {"years": 12, "quarters": 3, "months": 1},
    {"weeks": 7, "days": 1},
    {"hours": 3600, "minutes": 60, "seconds": 1},
)
"""Parts of a duration that are whole months, days and seconds, with how many these are."""

_BETWEEN: Mapping[str, Mapping[str, Sequence[tuple[str, int]]]] = {
    "months": {
        "years": [("//", 12)],
        "quarters": [("//", 3)],
        "months": [],
        "monthsOfYear": [("%", 12)],
        "quartersOfYear": [("%", 12), ("//", 3)],
        "monthsOfQuarter": [("%", 3)],
    },
    "days": {"weeks": [("//", 7)], "days": [], "daysOfWeek": [("%", 7)]},
    "seconds": {
        "hours": [("//", 3600)],
        "minutes": [("//", 60)],
        "seconds": [],
        "minutesOfHour": [("%", 3600), ("//", 60)],
        "secondsOfMinute": [("%", 60)],
    },
}
"""Parts of what lies between two times: operators that make them of all months, days or seconds."""


def _constant(value: object) -> Typed:
    """Return a plain value that a text or an argument has."""
    if isinstance(value, str):
        return Constant(value), Base.STRING
    if isinstance(value, float):
        _require(isfinite(value))
        return Constant(value), Base.FLOAT
    _require(isinstance(value, int) and abs(value) < 1 << 62)
    assert isinstance(value, int)
    return Constant(value), Base.BOOLEAN if isinstance(value, bool) else Base.INTEGER


def _times(vector: Vector, per: int) -> Vector:
    return vector if per == 1 else Operation("*", (vector, Constant(per)))


def _is_key(type: Type) -> bool:
    """Whether values are structs that are equal where all of their fields are."""
    return type.base in (Base.MAP, Base.TUPLE) and all(each.base in KEYS - {Base.NODE} for _, each in type.fields)


_AGGREGATES = {"count", "sum", "avg", "min", "max", "collect"}


def rows_of(source: Source) -> Rows | None:
    """Return the rows of a source: by their name, or what makes them."""
    return source.view if source.view is not None else source.rows


def _require(condition: bool) -> None:
    if not condition:
        raise _Unknown


def _column(value: SqlValue) -> Typed:
    """Return a value that is a column, or says whether one is above 0."""
    _require(not value.many and value.shared is None)
    if value.counted is not None:
        return Operation(">", (ColumnOf(value.counted), Constant(0))), Base.BOOLEAN
    if value.type.base is Base.EDGE and value.parts and value.column is None:
        *columns, at, both = value.parts
        ordinal = ColumnOf(at) if at else Constant(0)
        return Operation("edge of both" if both else "edge", (*map(ColumnOf, columns), ordinal)), Base.EDGE
    if value.type.base is Base.PATH and value.parts and value.column is None:
        return Operation("path", tuple(map(ColumnOf, value.parts))), Base.PATH
    _require(value.column is not None and value.type.base in HANDED_ON)
    return ColumnOf(value.column or ""), value.type.base
