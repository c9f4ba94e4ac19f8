"""Properties that are integers of some vertices and floating-point numbers of others, in columns of one type each."""

from __future__ import annotations

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import PropertyOf
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.typed.unions import Part
from graphdb.snapshot.columns import ValueColumn
from graphdb.snapshot.number_columns import Numbers, numbers_of
from graphdb.snapshot.properties import Properties


def parts_of_property(key: PropertyOf, frame: Frame, properties: Properties) -> list[Part] | None:
    """Return the integers and the floating-point numbers of a property of both; None of any other."""
    numbers = _numbers(key, frame, properties)
    if numbers is None:
        return None
    ids = frame.column(key.vertex.name)
    return [(_gathered(column, ids), None) for column in (numbers.whole, numbers.real)]


def reals_of_property(key: PropertyOf, frame: Frame, properties: Properties) -> arrow.Array | None:
    """Return a property of both as floating-point numbers; None of any other, and where some are not equal to one."""
    numbers = _numbers(key, frame, properties)
    return None if numbers is None or numbers.both is None else _gathered(numbers.both, frame.column(key.vertex.name))


def _numbers(key: PropertyOf, frame: Frame, properties: Properties) -> Numbers | None:
    if not properties.is_mixed_numeric(key.label):
        return None
    column = properties.source(key.label, len(frame.column(key.vertex.name)))
    return None if column is None else numbers_of(column)


def _gathered(column: ValueColumn, ids: arrow.Array) -> arrow.Array:
    found = column.gather(ids)
    return found if isinstance(found, arrow.Array) else found.combine_chunks()
