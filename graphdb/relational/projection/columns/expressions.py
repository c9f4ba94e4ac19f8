"""Translates expressions, beside their SQL, to what columns in memory are computed by
(:mod:`graphdb.relational.vectors`): what is not known here is :class:`Unknown`, and for SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graphdb.common.values.types import Base, Type
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.relational.projection.columns.functions import (
    FUNCTIONS,
    date_in,
    of_one,
    part_of,
    rounded,
    squared,
    truncated,
)
from graphdb.relational.projection.columns.lists import contained, folded, list_of_items, quantified
from graphdb.relational.projection.columns.numbers import chosen, comparison, first_of
from graphdb.relational.projection.columns.operations import (
    combined,
    constant_of,
    duration,
    is_null,
    joined,
    list_operation,
    part_between,
    tested,
    text_of,
    text_operation,
)
from graphdb.relational.projection.columns.values import (
    OF_VERTICES,
    PLAIN,
    Typed,
    Unknown,
    column_of,
    constant,
    require,
)
from graphdb.relational.projection.late import late_property
from graphdb.relational.snapshot import Snapshot
from graphdb.relational.vectors.algebra import ColumnOf, Constant, LabelOf, Operation, PropertyOf, Vector
from graphdb.sql.value import SqlValue, column


@dataclass(frozen=True)
class ExpressionTranslator:
    """Translates expressions over rows whose names, and known expressions, are columns."""

    snapshot: Snapshot
    text: str
    variables: Mapping[str, SqlValue]
    known: Mapping[ast.Expression, SqlValue]
    arguments: Mapping[str, object]
    """The values of parameters."""
    named: Mapping[str, Typed | None] = field(default_factory=dict)
    """What further names stand for."""

    def condition(self, node: ast.Expression) -> Vector:
        """Return an expression that is true, false or null."""
        vector, base = self.value(node)
        require(base is Base.BOOLEAN)
        return vector

    def value(self, node: ast.Expression) -> Typed:
        """Return an expression and its type; raises :class:`Unknown` where it is for SQL."""
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
                return self.property(node) or self._field(node) or self._part(node)
            case ast.Unary("NOT", operand):
                return Operation("NOT", (self.condition(operand),)), Base.BOOLEAN
            case ast.Unary("-", operand):
                return Operation("-", (Constant(0), self._integer(operand))), Base.INTEGER
            case ast.Boolean("AND" | "OR" as operator, operands):
                return Operation(operator, tuple(map(self.condition, operands))), Base.BOOLEAN
            case ast.Comparison():
                return self._comparison(node), Base.BOOLEAN
            case ast.StringPredicate("STARTS WITH" | "ENDS WITH" | "CONTAINS" as operator, text, part):
                return tested(operator, self.value(text), constant_of(part, self.arguments)), Base.BOOLEAN
            case ast.In():
                return contained(self, node), Base.BOOLEAN
            case ast.ListPredicate():
                return quantified(self, node), Base.BOOLEAN
            case ast.Reduce():
                return folded(self, node)
            case ast.ListComprehension() | ast.ListLiteral():
                return list_of_items(self, node)[0], Base.LIST
            case ast.FunctionCall(name) if name.lower() in ("range", "split"):
                return list_of_items(self, node)[0], Base.LIST
            case ast.Binary("+" | "-" | "*" | "/" as operator, left, right):
                return combined(operator, self.value(left), self.value(right))
            case ast.Binary("||", left, right):
                return joined(self.value(left), self.value(right))
            case ast.Binary("%", left, right):
                return Operation("%", (self._integer(left), self._integer(right))), Base.INTEGER
            case ast.IsNull(operand, negated):
                absent = Operation("IS NULL", (self.value(operand)[0],))
                return Operation("NOT", (absent,)) if negated else absent, Base.BOOLEAN
            case ast.FunctionCall(name, arguments) if name.lower() == "coalesce" and arguments:
                return first_of([self.value(argument) for argument in arguments])
            case ast.Binary("^", left, right):
                return squared(self.value(left), right)
            case ast.FunctionCall() if (day := date_in(node)) is not None:
                return day, Base.DATE
            case ast.FunctionCall(name, (argument,)) if name.lower() in FUNCTIONS:
                return of_one(name.lower(), self.value(argument))
            case ast.FunctionCall(name, (argument, ast.Literal(int(digits)))) if name.lower() == "round":
                return rounded(self.value(argument), digits)
            case ast.FunctionCall(name, (ast.Literal(str(unit)), time)) if name.lower().endswith(".truncate"):
                return truncated(name.lower(), unit.lower(), self.value(time))
            case ast.FunctionCall(name, (ast.Variable(edge),)) if name.lower() == "type":
                return self._label(edge), Base.STRING
            case ast.FunctionCall(name, (ast.MapLiteral(items),)) if name.lower() == "duration":
                return duration({key.text: self._integer(part) for key, part in items}), Base.DURATION
            case ast.Case(operand, branches, otherwise):
                return self._case(operand, branches, otherwise)
        raise Unknown

    def struct(self, node: ast.Expression, value: SqlValue) -> Vector:
        """Return a map or list of plain values, or a duration; of a vertex that is null, null."""
        there: Vector = Constant(True)
        match node:
            case ast.MapLiteral(items):
                fields = self._fields([(key.text, each) for key, each in items], value.type)
            case ast.MapProjection(element, entries) if None not in entries:
                fields = self._fields([item for item in entries if item is not None], value.type)
                there = self._not_null(element)
            case ast.FunctionCall(_, (vertex,)) | ast.MapProjection(vertex, (None,)) if _has_all(node, value):
                keys = (key for key, _ in value.type.fields)
                fields = [(key, column_of(each)) for key, each in zip(keys, value.items or (), strict=True)]
                there = self._not_null(vertex)
            case ast.ListLiteral(items) if value.type.base is Base.TUPLE:
                fields = [("", self.value(item)) for item in items]
            case _:
                vector, base = self.value(node)
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
                found.append((key, (self.struct(node, SqlValue("", of)), Base.MAP)))
                continue
            typed = self.value(node)
            require(typed[1] is not Base.MAP)
            found.append((key, typed))
        return found

    def _not_null(self, node: ast.Expression) -> Vector:
        return Operation("NOT", (Operation("IS NULL", (self.value(node)[0],)),))

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
            vector, base = self.value(found.operand)
            if found.operator == "toInteger" and base is Base.FLOAT:
                return Operation("toInteger of floats", (vector,)), Base.INTEGER
            require(base is Base.STRING)
            return Operation(found.operator, (vector,), found.constants), found.base
        match node:
            case ast.FunctionCall(name, (number,)) if name.lower() == "tostring":
                return text_of(self.value(number)), Base.STRING
        return None

    def _of_list(self, node: ast.Expression) -> Typed | None:
        """Return how many items a list in a column has, one of these, or some of them; None for others."""
        found = list_operation(node, self.arguments)
        if found is None:
            return None
        operand = found.operand
        if found.operator == "item" and isinstance(operand, ast.FunctionCall) and operand.name.lower() == "split":
            return None  # a part of a text
        try:
            vector, item = list_of_items(self, operand)
        except Unknown:
            return None
        if found.operator == "slice":
            return Operation(found.operator, (vector,), found.constants), Base.LIST
        if found.operator == "item":
            require(item in PLAIN)
            return Operation(found.operator, (vector,), found.constants), item
        return Operation(found.operator, (vector,)), Base.INTEGER

    def list_column(self, node: ast.Expression) -> Typed | None:
        """Return a list that is a column, and the type of its items; None for others."""
        of = self.known.get(node)
        if of is None and isinstance(node, ast.Variable) and node.name not in self.named:
            of = self.variables.get(node.name)
        if of is not None:
            require(of.type.base is Base.LIST and of.type.element is not None)
            assert of.type.element is not None
            return column_of(of)[0], of.type.element.base
        if isinstance(node, ast.Property) and (found := self.property(node)) is not None:
            type = self.snapshot.properties.type_of(self.snapshot.names.property(node.key.words, self.text))
            require(type.base is Base.LIST and type.element is not None)
            assert type.element is not None
            return found[0], type.element.base
        return None

    def binding(self, name: str, typed: Typed) -> ExpressionTranslator:
        """Return the translator of expressions in which a name stands for a column."""
        known = {node: value for node, value in self.known.items() if name not in free_variables(node)}
        return replace(self, named={**self.named, name: typed}, known=known)

    def _case(
        self,
        operand: ast.Expression | None,
        branches: Iterable[tuple[tuple[ast.Expression, ...], ast.Expression]],
        otherwise: ast.Expression | None,
    ) -> Typed:
        each: list[tuple[Vector, Typed | None]] = []
        for conditions, result in branches:
            if operand is not None:
                conditions = tuple(ast.Comparison(("=",), (operand, value)) for value in conditions)
            tested = tuple(map(self.condition, conditions))
            each.append((tested[0] if len(tested) == 1 else Operation("OR", tested), self._unless_null(result)))
        return chosen(each, None if otherwise is None else self._unless_null(otherwise))

    def _unless_null(self, node: ast.Expression) -> Typed | None:
        """Return a result of CASE; None for null, which has the type of the others."""
        return None if is_null(node) else self.value(node)

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
        return self.value(node)

    def _integer(self, node: ast.Expression) -> Vector:
        vector, base = self.value(node)
        require(base is Base.INTEGER)
        return vector

    def property(self, node: ast.Expression) -> Typed | None:
        """Return a property of a vertex in a column, where it is in memory."""
        variables = self.variables
        if isinstance(node, ast.Property) and isinstance(node.base, ast.Variable) and node.base.name in self.named:
            match self.named[node.base.name]:
                case ColumnOf(name), Base.NODE:
                    variables = {node.base.name: column(name, Type(Base.NODE))}
                case _:
                    return None
        late = late_property(node, variables, self.snapshot, self.text)
        if late is None or late[0].column is None:
            return None
        vertex, label = late
        base = self.snapshot.properties.type_of(label).base
        there = base in OF_VERTICES or self.snapshot.properties.is_mixed_numeric(label)
        return (PropertyOf(ColumnOf(vertex.column or ""), label), base) if there else None

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
            return part_between(node.base, node.key.text, self.value), Base.INTEGER
        return part_of(self.value(node.base), node.key.text)


def _has_all(node: ast.Expression, value: SqlValue) -> bool:
    """Whether an expression is the map of all properties, which SQL has as columns."""
    by_name = isinstance(node, ast.FunctionCall) and node.name.lower() == "properties"
    return bool(value.items) and (by_name or isinstance(node, ast.MapProjection))
