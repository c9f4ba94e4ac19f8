"""Conditions on one vertex that its property columns in memory decide, without SQL: comparisons with constants.

``m.creationDate < $d AND m.length >= 40`` is a comparison of two arrays with a number each, and of their bits, for all
vertices between the first and the last that have both properties; SQL would read two tables, and their vertices would
be intersected.  Whole numbers and points in time are compared so; what else there is SQL tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.caches import ByIdentity
from graphdb.common.values.temporal import DateTime
from graphdb.common.values.temporal_python import from_python
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import INTEGER, MOMENT, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.relational.snapshot import Snapshot
from graphdb.snapshot.columns import ValueColumn
from graphdb.sql.constants import from_numpy
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import both, each_once, joined, without
from graphdb.storage.catalog import EdgeLabel

Ids = NDArray[np.int64]

_KERNELS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal, "<>": np.not_equal,
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class NumberTest:
    """A comparison of a value with a number: with the value itself, or with a point in time in microseconds."""

    operator: str
    number: int


Asked: TypeAlias = "tuple[ast.KeyName, ast.Expression, bool]"

_ASKED: ByIdentity[dict[str, Asked | None]] = ByIdentity(4096)
"""What conditions ask of vertices, by their names."""

Compared = tuple[EdgeLabel, Sequence[NumberTest]]
"""A property of a vertex, and what its value is compared with."""


def column_tests(
    snapshot: Snapshot,
    arguments: Mapping[str, object],
    subject: str,
    label: EdgeLabel,
    key: ast.KeyName,
    condition: ast.Expression,
) -> list[NumberTest] | None:
    """Return a condition on the property of the vertex ``subject`` as comparisons; None where it is more than that."""
    if snapshot.deleted is not None or not label.kinds or not snapshot.properties.in_memory(label):
        return None
    own = ast.Property(ast.Variable(subject), key)
    return number_tests(condition, own, snapshot.properties.type_of(label), arguments)


def number_tests(
    condition: ast.Expression, own: ast.Property, type: Type, arguments: Mapping[str, object]
) -> list[NumberTest] | None:
    """Return a condition on a property, whose values are of a type, as comparisons; None where it is more than that."""
    if not isinstance(condition, ast.Comparison):
        return None
    found = []
    for operator, (left, right) in zip(condition.operators, pairwise(condition.operands), strict=True):
        other = right if left == own else left
        number = _number(other, type, arguments) if own in (left, right) and operator in _KERNELS else None
        if number is None:
            return None
        found.append(NumberTest(operator if left == own else _MIRRORED[operator], number))
    return found


def _number(node: ast.Expression, type: Type, arguments: Mapping[str, object]) -> int | None:
    """Return what a constant is in a column of a type; None where it is not of that type."""
    match node:
        case ast.Literal():
            value: object = node.value
        case ast.Parameter():
            value = from_numpy(arguments.get(node.name))
        case _:
            return None
    if type == INTEGER:
        if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63:
            return value
        return None
    moment = from_python(value) if type == MOMENT else None
    return moment.instant // 1000 if isinstance(moment, DateTime) and not moment.nanoseconds % 1000 else None


def fulfilling(snapshot: Snapshot, compared: Sequence[Compared], near: Ids | None) -> Ids:
    """Return the vertices whose properties fulfil all tests, sorted; of those ``near``, if they are given."""
    if near is not None:
        ids = numbers(near)
        return near[places_of([(snapshot.properties.gather(label, ids), tests) for label, tests in compared])]
    sets: list[Ids] = []
    dense: list[tuple[ValueColumn, Sequence[NumberTest]]] = []
    for label, tests in compared:
        column = snapshot.properties.array(label)
        if column is not None and column.subjects is None and column.changed is None:
            dense.append((column, tests))
        else:
            sets.append(_of_table(snapshot, label, tests) if column is None else _of_column(column, tests))
    if dense:
        first = max(column.first for column, _ in dense)
        count = max(min(column.first + len(column.values) for column, _ in dense) - first, 0)
        parts = [(column.values.slice(first - column.first, count), tests) for column, tests in dense]
        sets.append(places_of(parts) + first)
    while len(sets) > 1:
        sets.append(both(sets.pop(), sets.pop()))
    return sets[0]


def _of_column(column: ValueColumn, tests: Sequence[NumberTest]) -> Ids:
    """Return the vertices whose values in a column fulfil all tests, sorted."""
    found = places_of([(column.values, tests)])
    ids = found + column.first if column.subjects is None else column.subjects[found]
    if column.changed is None or column.later is None:
        return ids
    return joined(without(ids, column.changed), _of_column(column.later, tests))


def _of_table(snapshot: Snapshot, label: EdgeLabel, tests: Sequence[NumberTest]) -> Ids:
    """Return the vertices whose values of a property, too many for memory, fulfil all tests, sorted."""
    value = "p.value" if snapshot.properties.type_of(label) == INTEGER else "epoch_us((p.value).moment)"
    where = " AND ".join(f"{value} {test.operator} $p{i}" for i, test in enumerate(tests))
    sql = f"SELECT p.subject AS id FROM {snapshot.properties.column(label).relation} p WHERE {where}"
    found = snapshot.connection.columns(sql, {f"p{i}": test.number for i, test in enumerate(tests)})["id"]
    return each_once(np.asarray(found, np.int64), snapshot.graph.resources)


def unchanged(snapshot: Snapshot, label: EdgeLabel) -> ValueColumn | None:
    """Return the values of a property, where they are in memory and none has changed since they were read."""
    if snapshot.deleted is not None or not snapshot.properties.in_memory(label):
        return None
    column = snapshot.properties.array(label)
    return None if column is None or column.changed is not None else column


def having(snapshot: Snapshot, label: EdgeLabel, ids: Ids | None) -> Ids:
    """Return the vertices that have a property, sorted; of some resources, if these are given."""

    def there() -> NDArray[np.bool_]:
        sql = f"SELECT subject FROM _graphdb.triple WHERE label = {int(label.id)} AND object >= {LITERAL_BASE}"
        subjects = snapshot.connection.columns(sql)["subject"]
        snapshot.store.ids.resource(subjects, "subject")
        found = np.zeros(snapshot.graph.resources, bool)
        found[subjects] = True
        return found

    flags = snapshot.graph.derived(("has property", label.id), there)
    return np.flatnonzero(flags) if ids is None else ids[flags[ids]]


def places_of(columns: Sequence[tuple[arrow.Array | arrow.ChunkedArray, Sequence[NumberTest]]]) -> Ids:
    """Return the places (int64, sorted) where all tests of all columns, of the same length, are true."""
    mask: NDArray[np.bool_] | None = None
    for column, tests in columns:
        array = column if isinstance(column, arrow.Array) else column.combine_chunks()
        there = [array.valid]
        if arrow.is_struct(array.type):  # a point in time, and the offset that it was written with
            array = array.field(0)
            there.append(array.valid)
        data = values(array)
        found = [_KERNELS[test.operator](data, test.number) for test in tests]
        for one in [*found, *(valid for valid in there if valid is not None)]:
            mask = one if mask is None else mask & one
    assert mask is not None
    return np.flatnonzero(mask)


def asked_values(name: str, condition: ast.Expression) -> Iterator[tuple[ast.KeyName, ast.Expression, bool]]:
    """Yield a property of a vertex that must have a value, or one of a list: the value, and whether it is a list."""
    pairs: list[tuple[ast.Expression, ast.Expression, bool]] = []
    match condition:
        case ast.Comparison(("=",), (one, other)):
            pairs = [(one, other, False), (other, one, False)]
        case ast.In(one, other):
            pairs = [(one, other, True)]
        case ast.Boolean("OR", operands):
            yield from _one_of(name, operands)
    for own, value, listed in pairs:
        if isinstance(own, ast.Property) and own.base == ast.Variable(name):
            yield own.key, value, listed


def _one_of(name: str, operands: Sequence[ast.Expression]) -> Iterator[tuple[ast.KeyName, ast.Expression, bool]]:
    """Yield the property of a vertex that must have one of the values that conditions compare it with."""
    found = [next(asked_values(name, each), None) for each in operands if isinstance(each, ast.Comparison)]
    asked = [each for each in found if each is not None]
    values = tuple(value for _, value, _ in asked if isinstance(value, ast.Literal | ast.Parameter))
    if len(values) == len(operands) and all(key == asked[0][0] for key, _, _ in asked):
        yield asked[0][0], ast.ListLiteral(values), True


def asked_constant(name: str, condition: ast.Expression) -> Asked | None:
    """Return the property of a vertex that must be a constant, the constant, and whether that is a list of them."""
    known: dict[str, Asked | None] = _ASKED.get_or_make(condition, dict)
    if name not in known:
        known[name] = _asked_constant(name, condition)
    return known[name]


def _asked_constant(name: str, condition: ast.Expression) -> Asked | None:
    for key, given, listed in asked_values(name, condition):
        if not free_variables(given) and not any(isinstance(part, SUBQUERIES) for part in walk(given)):
            return key, given, listed
    return None
