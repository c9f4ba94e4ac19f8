"""Values that :mod:`graphdb.relational.projection.columns.expressions` translates: which are columns as in SQL."""

from __future__ import annotations

from datetime import date
from math import isfinite

from graphdb.common.values.types import WHOLE_AND_REAL, Base, Type
from graphdb.relational.vectors.algebra import ColumnOf, Constant, Operation, Vector
from graphdb.sql.value import SqlValue

PLAIN = {Base.NODE, Base.INTEGER, Base.FLOAT, Base.STRING, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.ZONED}
"""Types whose values are columns as SQL has them."""

ORDERED = PLAIN - {Base.NODE} | {Base.MOMENT, Base.DURATION}
"""Types whose order is that of their columns, or of the lengths that these say."""

KEYS = {Base.NODE, Base.INTEGER, Base.STRING, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.ZONED}
"""Types whose values are equal where those in their columns are."""

COMPARED = {Base.INTEGER, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.ZONED, Base.MOMENT}

INSTANTS = {Base.ZONED, Base.MOMENT}
"""Types of points in time that are compared with each other, too."""

PARTS = {"year", "quarter", "month", "day", "dayOfWeek"}

PARTS_OF_TIMES = {"hour", "minute", "second"}

STRUCTS = {Base.DURATION, Base.MAP, Base.TUPLE}
"""Types whose columns are structs of what their values consist of."""

OF_VERTICES = PLAIN | {Base.MOMENT, Base.LIST, Base.EDGE}
"""Types of properties that are columns."""

HANDED_ON = OF_VERTICES | STRUCTS | {Base.PATH}

ITEM = "item of the list"
"""The column that has the items of a list, where each makes a row."""

Typed = tuple[Vector, Base]


class Unknown(Exception):
    """Something is for SQL."""


def constant(value: object) -> Typed:
    """Return a plain value that a text or an argument has."""
    if isinstance(value, str):
        return Constant(value), Base.STRING
    if isinstance(value, float):
        require(isfinite(value))
        return Constant(value), Base.FLOAT
    if type(value) is date:
        return Constant(value), Base.DATE
    require(isinstance(value, int) and abs(value) < 1 << 62)
    assert isinstance(value, int)
    return Constant(value), Base.BOOLEAN if isinstance(value, bool) else Base.INTEGER


def same_texts(left: Vector, right: Vector) -> Operation:
    """Return whether two texts are the same, one of which may be the same for all rows."""
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(right, Constant) and isinstance(right.value, str) and not isinstance(left, Constant):
        return Operation("equals", (left,), (right.value,))
    return Operation("same text", (left, right))


def times(vector: Vector, per: int) -> Vector:
    """Return so many times a number."""
    return vector if per == 1 else Operation("*", (vector, Constant(per)))


def is_key(type: Type) -> bool:
    """Whether values are structs that are equal where all of their fields are."""
    return type.base in (Base.MAP, Base.TUPLE) and all(each.base in KEYS - {Base.NODE} for _, each in type.fields)


def require(condition: bool) -> None:
    """Leave an expression to SQL unless a condition holds."""
    if not condition:
        raise Unknown


def is_handed_on(base: Base, value: SqlValue) -> bool:
    """Whether values of a type are columns as SQL has them; of several types, what SQL yields says of which."""
    return base in HANDED_ON or (base is Base.VALUE and value.bases == WHOLE_AND_REAL)


def column_of(value: SqlValue) -> Typed:
    """Return a value that is a column, or says whether one is above 0."""
    require(not value.many and value.shared is None)
    if value.counted is not None:
        return Operation(">", (ColumnOf(value.counted), Constant(0))), Base.BOOLEAN
    if value.type.base is Base.EDGE and value.parts and value.column is None:
        *columns, at, both = value.parts
        ordinal = ColumnOf(at) if at else Constant(0)
        return Operation("edge of both" if both else "edge", (*map(ColumnOf, columns), ordinal)), Base.EDGE
    if value.type.base is Base.PATH and value.parts and value.column is None:
        return Operation("path", tuple(map(ColumnOf, value.parts))), Base.PATH
    require(value.column is not None and is_handed_on(value.type.base, value))
    return ColumnOf(value.column or ""), value.type.base
