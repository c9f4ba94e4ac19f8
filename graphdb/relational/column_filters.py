"""Conditions on one vertex that its property columns in memory decide, without SQL: comparisons with constants.

``m.creationDate < $d AND m.length >= 40`` is a comparison of two arrays with a number each, and of their bits, for all
vertices between the first and the last that have both properties; SQL would read two tables, and their vertices would
be intersected.  Whole numbers and points in time are compared so; what else there is SQL tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.temporal import DateTime, from_python
from graphdb.common.values.types import INTEGER, MOMENT, Type
from graphdb.grammar import syntax as ast
from graphdb.relational.snapshot import Snapshot
from graphdb.snapshot.columns import ValueColumn
from graphdb.sql.constants import from_numpy
from graphdb.storage.arrays.arrow import numbers, values
from graphdb.storage.arrays.sorted_sets import both
from graphdb.storage.catalog import EdgeLabel

if TYPE_CHECKING:
    import pyarrow as pa

Ids = NDArray[np.int64]

_KERNELS = {
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "=": "equal", "<>": "not_equal",
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """A comparison of a property with a number: the value itself, or a point in time in microseconds."""

    label: EdgeLabel
    operator: str
    number: int


def column_tests(
    snapshot: Snapshot,
    arguments: Mapping[str, object],
    subject: str,
    label: EdgeLabel,
    key: ast.KeyName,
    condition: ast.Expression,
) -> list[ColumnTest] | None:
    """Return a condition on the property of the vertex ``subject`` as comparisons; None where it is more than that."""
    if not isinstance(condition, ast.Comparison) or snapshot.deleted is not None:
        return None
    if not label.kinds or not snapshot.properties.in_memory(label):
        return None
    type, own = snapshot.properties.type_of(label), ast.Property(ast.Variable(subject), key)
    found = []
    for operator, (left, right) in zip(condition.operators, pairwise(condition.operands), strict=True):
        other = right if left == own else left
        number = _number(other, type, arguments) if own in (left, right) and operator in _KERNELS else None
        if number is None:
            return None
        found.append(ColumnTest(label, operator if left == own else _MIRRORED[operator], number))
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


def fulfilling(snapshot: Snapshot, tests: Sequence[ColumnTest], near: Ids | None) -> Ids:
    """Return the vertices whose properties fulfil all tests, sorted; of those ``near``, if they are given."""
    of_label: dict[int, list[ColumnTest]] = {}
    for test in tests:
        of_label.setdefault(test.label.id, []).append(test)
    found: list[tuple[ValueColumn, list[ColumnTest]]] = []
    for each in of_label.values():
        column = snapshot.properties.array(each[0].label)
        assert column is not None, "only texts are too large for memory without being too many"
        found.append((column, each))
    if near is not None:
        ids = numbers(near)
        return near[_where([(column.gather(ids), each) for column, each in found])]
    dense = [(column, each) for column, each in found if column.subjects is None]
    sets = [column.subjects[_where([(column.values, each)])] for column, each in found if column.subjects is not None]
    if dense:
        first = max(column.first for column, _ in dense)
        count = max(min(column.first + len(column.values) for column, _ in dense) - first, 0)
        arrays = [(column.values.slice(first - column.first, count), each) for column, each in dense]
        sets.append(_where(arrays) + first)
    while len(sets) > 1:
        sets.append(both(sets.pop(), sets.pop()))
    return sets[0]


def having(snapshot: Snapshot, label: EdgeLabel, ids: Ids | None) -> Ids:
    """Return the vertices that have a property, sorted; of some resources, if these are given."""

    def there() -> NDArray[np.bool_]:
        relation = snapshot.properties.column(label).relation
        found = np.zeros(snapshot.graph.resources, bool)
        found[snapshot.connection.columns(f"SELECT subject FROM {relation}")["subject"]] = True
        return found

    flags = snapshot.graph.derived(("has property", label.id), there)
    return np.flatnonzero(flags) if ids is None else ids[flags[ids]]


def _where(columns: Sequence[tuple[pa.Array, Sequence[ColumnTest]]]) -> Ids:
    """Return the places (int64, sorted) where all tests of all columns, of the same length, are true."""
    import pyarrow as pa
    from pyarrow import compute

    mask: pa.Array | None = None
    for array, tests in columns:
        if pa.types.is_struct(array.type):  # a point in time, and the offset that it was written with
            array = array.flatten()[0]
        for test in tests:
            kernel: Callable[..., Any] = getattr(compute, _KERNELS[test.operator])
            one = kernel(array, pa.scalar(test.number, pa.int64()).cast(array.type))
            mask = one if mask is None else compute.and_(mask, one)
    assert mask is not None
    return values(compute.indices_nonzero(mask)).astype(np.int64)
