"""Sums of values of which many differ, for rows that are counted by others of which few do.

``sum(CASE WHEN r.since > 2010 THEN r.weight ELSE 0 END)`` by the age of a person is computed of a handful of years and
ages, but for the weights: these are added up for each combination of a year and an age as the rows are counted, and the
condition is tested once for each of them (eager aggregation: Yan and Larson, VLDB 1995, section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import Aggregate, ColumnOf, Constant, Operation, PropertyOf, Vector
from graphdb.relational.vectors.counted.codes import Codes
from graphdb.relational.vectors.frames import Ints
from graphdb.relational.vectors.numbers import multiplied
from graphdb.storage.arrays.arrow import values

ADDED = ("sum", "count", "avg")
"""Aggregates that are made of such sums: what others take is numbered first."""

_CASES = ("CASE", "CASE of numbers")


@dataclass
class Sums:
    """Aggregates over rows that stand for several each, some of them of what the values of these add up to."""

    codes: Codes
    rows: str
    """The column of how many rows one stands for."""
    types: dict[Vector, arrow.DataType] = field(default_factory=dict)

    def aggregate(self, each: Aggregate) -> Aggregate | None:
        """Return an aggregate of such rows; None where there are too many different values."""
        operand = each.operand
        if operand is not None and not each.distinct and not self._is_numbered(operand):
            if each.function == "sum" and (added := self._sum(operand)) is not None:
                return replace(each, operand=added, matches=None)
            if each.function == "count" and self._type(operand) is not None:
                return Aggregate("sum", ColumnOf(self._name("count", operand)))
            if each.function == "avg" and self._type(operand) == arrow.FLOAT64:
                count = self._name("count", operand)
                return replace(each, operand=ColumnOf(self._name("mean", operand)), matches=count)
        return replace(each, matches=self.rows) if operand is None or self.codes.take(operand) else None

    def columns(self, totals: Mapping[Vector, tuple[arrow.Array, Ints]], times: int) -> dict[str, arrow.Array]:
        """Return the columns that aggregates take, where each row that was counted stands for so many matches."""
        found: dict[str, arrow.Array] = {}
        for vector, (total, sizes) in totals.items():
            added, real = values(total), total.type == arrow.FLOAT64
            times_added = added * times if real else multiplied(added, np.array([times]))
            found[self._name("sum", vector)] = arrow.numbers(times_added, total.valid)
            found[self._name("count", vector)] = arrow.numbers(sizes * times)
            if real:
                found[self._name("mean", vector)] = arrow.numbers(added / np.maximum(sizes, 1), total.valid)
        return found

    def _is_numbered(self, vector: Vector) -> bool:
        return vector in self.codes.columns

    def _type(self, vector: Vector) -> arrow.DataType | None:
        """Return the type of a column or property that is added up; None of others."""
        if not isinstance(vector, ColumnOf | PropertyOf):
            return None
        if vector not in self.types:
            found = self.codes.add(vector)
            if found is None:
                return None
            self.types[vector] = found
        return self.types[vector]

    def _name(self, what: str, vector: Vector) -> str:
        return f"{what} of {list(self.codes.added).index(vector)}"

    def _sum(self, vector: Vector) -> Vector | None:
        """Return what the rows that one stands for add to a sum; None where there are too many different values."""
        match vector:
            case Constant(0) | Operation("absent"):
                return vector
            case Operation("items", items):  # values of each row that are added one by one
                added = [each for each in map(self._sum, items) if each is not None]
                return replace(vector, operands=tuple(added)) if len(added) == len(items) else None
            case Operation(operator, (*branches, otherwise)) if operator in _CASES:
                conditions, results = branches[::2], [self._sum(each) for each in (*branches[1::2], otherwise)]
                if not all(map(self.codes.take, conditions)):
                    return None
                return _case(operator, conditions, results)
            case ColumnOf() | PropertyOf() if not self._is_numbered(vector) and self._type(vector) is not None:
                return ColumnOf(self._name("sum", vector))
        return Operation("*", (vector, ColumnOf(self.rows))) if self.codes.take(vector) else None


def _case(operator: str, conditions: Sequence[Vector], results: Sequence[Vector | None]) -> Vector | None:
    known = [each for each in results if each is not None]
    if len(known) < len(results):
        return None
    pairs = zip(conditions, known, strict=False)
    return Operation(operator, (*(each for pair in pairs for each in pair), known[-1]))
