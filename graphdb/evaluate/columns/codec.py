"""The evaluator's values as SQL holds them in columns: one definition of each type, read and written.

SQL holds vertices by their ids, an edge as a struct of its label, ends and ordinal, a path as the ids of its vertices
and the codes of its edges, and a value that it has no type for as a key (:mod:`graphdb.evaluate.columns.order_key`):
such values wait in a dictionary by their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from graphdb.common import arrow
from graphdb.common.errors import ExecutionError, NotSupportedError
from graphdb.common.stopping import checked
from graphdb.common.values.entities import Edge, Path, Vertex
from graphdb.common.values.literals import exact_of, far_value_of, moment_at
from graphdb.common.values.temporal import DAY, Date, DateTime, Duration, LocalDateTime
from graphdb.common.values.temporal_python import from_python
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.time_texts import LAST
from graphdb.common.values.types import (
    ANY,
    BOOLEAN,
    CODE_BITS,
    EDGE,
    FLOAT,
    INTEGER,
    LABEL_OF,
    MIXED,
    NODE,
    NULL,
    PATH,
    STRING,
    TERM,
    Base,
    Column,
    Type,
    tidied,
)
from graphdb.evaluate.columns.order_key import value_key
from graphdb.evaluate.values import Several
from graphdb.storage.arrays.python_values import pylist

Keys: TypeAlias = dict[bytes, Any]
"""The values that SQL knows by a key."""

Convert: TypeAlias = Callable[[Any], Any]

_PARTS = ("months", "days", "seconds", "nanoseconds")
"""The fields of a duration."""

_EDGE = ("label", "start", "end", "ordinal")
"""The fields of an edge."""

_LAST_DAY = (1 << 31) - 2
"""The last day that DuckDB's type of dates holds, in days since 1970; it holds as many before."""

_PYTHON: dict[Base, type] = {Base.BOOLEAN: bool, Base.INTEGER: int, Base.FLOAT: float, Base.STRING: str}
"""Types whose values are the same in SQL, Arrow and the evaluator."""

# --- from columns


def values_of(array: arrow.ChunkedArray, of: Column, keys: Keys) -> list[Any]:
    """Return the values of a column; of several values of a property one is that value, and none is null."""
    values = pylist(array)
    if of.type.base not in _PYTHON:
        values = list(map(reader(of.type, keys), values))
    return [None if value is None else one_of(value) for value in values] if of.many else values


def one_of(values: Sequence[Any]) -> Any:
    """Return the one of some values, null for none, else all of them as those of one property."""
    return values[0] if len(values) == 1 else Several(values) if values else None


def reader(type: Type, keys: Keys) -> Convert:
    """Return the function from values of Arrow's to those of the evaluator."""
    read = _reader(type, keys)
    return lambda value: None if value is None else read(value)


def _reader(type: Type, keys: Keys) -> Convert:
    match type.base:
        case Base.ANY:
            return keys.__getitem__
        case Base.NODE | Base.TERM:
            return Vertex
        case Base.EDGE:
            return lambda value: Edge(*map(value.__getitem__, _EDGE))
        case Base.PATH:
            return lambda value: path_of(value["vertices"], value["codes"])
        case Base.LIST:
            item = reader(type.element or ANY, keys)
            return lambda value: list(map(item, value))
        case Base.MAP:
            fields = [(key, f"f{i}", reader(field, keys)) for i, (key, field) in enumerate(type.fields)]
            there = type.certain if type.sparse else {key for key, _ in type.fields}
            return lambda value: {
                key: found for key, field, read in fields if (found := read(value[field])) is not None or key in there
            }
        case Base.TUPLE:
            places = [(f"f{i}", reader(field, keys)) for i, (_, field) in enumerate(type.fields)]
            return lambda value: [read(value[field]) for field, read in places]
        case Base.CHOICE:
            options = [(f"f{i}", reader(field, keys)) for i, (_, field) in enumerate(type.fields)]

            def chosen(value: Any) -> Any:
                field, read = options[value["tag"]]
                return read(value[field])

            return chosen
        case Base.DURATION:
            return lambda value: Duration(*map(value.__getitem__, _PARTS))
        case Base.MOMENT:
            return lambda value: moment_at(value["moment"], value["offset"])
        case Base.ZONED:
            return lambda value: moment_at(value, 0)
        case Base.EXACT if type.of is not None:
            of = type.of
            return lambda value: exact_of(of, value["clock"], value["nanoseconds"], value["offset"], value.get("zone"))
        case Base.DATE | Base.DATETIME:  # text where Python's calendar does not have the year
            return lambda value: far_value_of(value) if isinstance(value, str) else from_python(value)
    return _same if type.base in _PYTHON else _tidied


def _same(value: Any) -> Any:
    return value


def _tidied(value: Any) -> Any:
    """Return a value of a type that has several kinds of them; a moment is in UTC, whatever zone this runs in."""
    value = tidied(value)
    temporal = from_python(value)
    return value if temporal is None else temporal


def path_of(vertices: Sequence[int], codes: Iterable[int]) -> Path:
    """Return a path by the ids of its vertices and the codes of its edges."""
    edges = (
        Edge(code >> 1 & LABEL_OF, *((end, start) if code & 1 else (start, end)), code >> CODE_BITS)
        for (start, end), code in zip(pairwise(vertices), codes, strict=True)
    )
    return Path(tuple(map(Vertex, vertices)), tuple(edges))


# --- to columns


def type_of(value: Any) -> Type:
    """Return the type of the column that holds one value of the evaluator."""
    match value:
        case None:
            return NULL
        case Vertex():
            return TERM if value.id >= LITERAL_BASE else NODE
        case Edge():
            return EDGE
        case Path():
            return PATH
    return {bool: BOOLEAN, int: INTEGER, float: FLOAT, str: STRING}.get(value.__class__, ANY)


def array_of(values: Iterable[Any], type: Type) -> arrow.Array:
    """Return a column of values as :func:`writer` makes them."""
    array = arrow.array(values, arrow_type(type))
    return array.cast(arrow.DATE) if type.base is Base.DATE else array


def column_of(values: Iterable[Any], type: Type, keys: Keys) -> arrow.Array:
    """Return a column of the evaluator's values."""
    return array_of(list(map(writer(type, keys), values)), type)


def writer(type: Type, keys: Keys, keyed: Convert | None = None) -> Convert:
    """Return the function from values of the evaluator to those that SQL holds in a column.

    ``keyed`` returns what the key of a value is of that may be a literal's vertex, or have such inside: their values.

    Raises
    ------
    NotSupportedError
        The function is given a value of another type.
    ExecutionError
        It is given a date that no column holds.
    """
    write = _writer(type, keys, keyed)
    return lambda value: None if value is None else write(value)


def _writer(type: Type, keys: Keys, keyed: Convert | None) -> Convert:
    match type.base:
        case Base.ANY:
            shown = keyed if type == MIXED else None
            return lambda value: _key(value, keys, shown)
        case Base.LIST:
            item = writer(type.element or ANY, keys, keyed)
            return lambda value: list(map(item, checked(_of(list, value, type))))
        case Base.NODE | Base.TERM:
            return lambda value: _of(Vertex, value, type).id
        case Base.EDGE:
            return lambda value: {name: getattr(_of(Edge, value, type), name) for name in _EDGE}
        case Base.PATH:
            return lambda value: _path(_of(Path, value, type))
        case Base.DATE:
            return lambda value: _days(_of(Date, value, type))
        case Base.DURATION:
            return lambda value: {name: getattr(_of(Duration, value, type), name) for name in _PARTS}
        case Base.EXACT if type.by_name:
            return lambda value: _in_zone(_of(DateTime, value, type))
    kind = _PYTHON[type.base]
    return lambda value: value if value.__class__ is kind else _of(kind, None, type)


def _of(kind: type[Any], value: Any, type: Type) -> Any:
    if not isinstance(value, kind) or isinstance(value, Several):
        raise NotSupportedError(f"{type} was expected")
    return value


def _key(value: Any, keys: Keys, keyed: Convert | None) -> bytes:
    key = value_key(value if keyed is None else keyed(value))
    keys.setdefault(key, value)
    return key


def _days(date: Date) -> int:
    if not is_sql_date(date):
        raise ExecutionError(f"the date {date} is out of range: columns hold years -5877641 to 5881580")
    return date.days


def is_sql_date(date: Date) -> bool:
    """Whether SQL's dates have one."""
    return abs(date.days) <= _LAST_DAY


def _in_zone(value: DateTime) -> dict[str, object]:
    """Return the fields of a point in time in a zone; what a clock shows as text: Python's calendar may lack it."""
    nanoseconds = value.nanoseconds
    if abs(value.days * DAY + nanoseconds) > LAST * 1000:
        raise ExecutionError("a date and time is out of range: columns hold the years -289566 to 293506")
    clock = str(LocalDateTime(value.days, nanoseconds - nanoseconds % 1000)).removeprefix("+")
    return {"clock": clock, "nanoseconds": nanoseconds % 1000, "offset": value.offset, "zone": value.zone}


def _path(path: Path) -> dict[str, list[int]]:
    vertices = [vertex.id for vertex in path.vertices]
    codes = [
        edge.ordinal << CODE_BITS | edge.label << 1 | (edge.start != start)
        for start, edge in zip(vertices, path.edges, strict=False)
    ]
    return {"vertices": vertices, "codes": codes}


def arrow_type(type: Type) -> arrow.DataType:
    """Return the Arrow type of values as :func:`writer` makes them."""
    if type.base is Base.LIST:
        return arrow.list_of(arrow_type(type.element or ANY))
    return {
        Base.NULL: arrow.NULL,
        Base.BOOLEAN: arrow.BOOL,
        Base.INTEGER: arrow.INT64,
        Base.FLOAT: arrow.FLOAT64,
        Base.STRING: arrow.STRING,
        Base.ANY: arrow.BINARY,
        Base.DATE: arrow.INT32,
        Base.NODE: arrow.INT64,
        Base.TERM: arrow.INT64,
        Base.EDGE: arrow.struct([(name, arrow.INT64) for name in _EDGE]),
        Base.PATH: arrow.struct([(name, arrow.list_of(arrow.INT64)) for name in ("vertices", "codes")]),
        Base.DURATION: arrow.struct([(name, arrow.INT64) for name in _PARTS]),
    }[type.base]
