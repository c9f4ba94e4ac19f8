"""The inputs of computed expressions: columns of Arrow, their distinct rows, and what the evaluator makes of them.

See :class:`graphdb.sql.computing.Input` for the ways in which an input is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdb.common import arrow
from graphdb.common.values.entities import Vertex
from graphdb.common.values.literals import value_of
from graphdb.common.values.temporal_python import from_python
from graphdb.common.values.terms import Kind
from graphdb.common.values.types import ANY, EXACT_ONLY, tidied
from graphdb.evaluate.columns.codec import Convert, Keys, one_of, reader
from graphdb.evaluate.view import Fact, View
from graphdb.sql.computing import Input
from graphdb.storage.arrays.python_values import pylist
from graphdb.storage.arrays.texts import numbered

# --- rows


def distinct_rows(columns: list[arrow.ChunkedArray], rows: int) -> tuple[list[list[Any]], np.ndarray[Any, Any] | None]:
    """Return the distinct rows of some columns (as a list of values per column), and which of them each row is."""
    if not columns:
        return [], np.zeros(rows, np.int64)
    types = [part for column in columns for part in _flat_types(column.type)]
    if any(arrow.is_nested(type) or arrow.is_null(type) for type in types):
        return every_row(columns)
    arrays = [column.combine_chunks() for column in columns]
    flat = [part for array in arrays for part in _flat(array)]
    which = np.zeros(rows, np.int64)
    for array in flat:
        found = numbered(array)[1] + 1
        _, which = np.unique(which * (int(found.max(initial=0)) + 1) + found, return_inverse=True)
    _, first = np.unique(which, return_index=True)
    return [pylist(array.take(first)) for array in arrays], which


def _flat_types(type: arrow.DataType) -> list[arrow.DataType]:
    """Return the types of a column's values, or of a struct's fields."""
    return [field.type for field in type.fields] if arrow.is_struct(type) else [type]


def every_row(columns: list[arrow.ChunkedArray]) -> tuple[list[list[Any]], None]:
    """Return all rows of some columns."""
    return [pylist(column) for column in columns], None


def _flat(array: arrow.Array) -> list[arrow.Array]:
    """Return the columns that tell the values of a column apart: of structs their fields."""
    if not arrow.is_struct(array.type):
        return [array]
    return [arrow.array(array.is_valid()), *array.children]


def exactly(value: Any) -> Any:
    """Return what is equal for the same input only: 0.0 is not -0.0, and 1 neither 1.0 nor true."""
    if isinstance(value, dict):
        return tuple(map(exactly, value.values()))
    return value.__class__, value.hex() if isinstance(value, float) else value


# --- values


def reader_of(input: Input, keys: Keys, view: View) -> Convert:
    """Return the function from an input's values to those of the evaluator, null aside."""
    read = _reader_of(input, keys, view)
    return lambda value: None if value is None else read(value)


def _reader_of(input: Input, keys: Keys, view: View) -> Convert:
    match input.read:
        case "several":
            item = reader(input.type.element or ANY, keys)
            return lambda value: one_of(list(map(item, value)))
        case "literal":
            return _literal
        case "literals":
            return lambda value: one_of(list(map(_literal, value)))
        case "properties":
            return _properties
        case "term":
            return lambda value: _term(value, view)
    return reader(input.type, keys)


def _term(value: dict[str, Any], view: View) -> Vertex:
    """Return a vertex; where it is a literal, its value need not be looked up any more."""
    if (literal := value["literal"]) is not None:
        view.found(value["id"], Fact(_literal(literal), literal["lexical"], literal["datatype"]))
    return Vertex(value["id"])


_FROM_TEXT = EXACT_ONLY | 1 << Kind.DATE | 1 << Kind.DATETIME | 1 << Kind.ZONED
"""Kinds of literals, as bits, that Python's types do not hold all of."""


def _literal(found: dict[str, Any]) -> Any:
    """Return the value of a literal as it is written: what DuckDB's types bend is read from its text."""
    value = found["value"]
    if 1 << found["kind"] & _FROM_TEXT or from_python(value) is not None:
        return value_of(found["lexical"], found["datatype"])
    return tidied(value)


def _properties(literals: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for literal in literals:
        found.setdefault(literal["name"], []).append(_literal(literal))
    return {name: one_of(values) for name, values in found.items()}
