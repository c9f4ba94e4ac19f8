"""Clauses that compute something of each of many rows: a piece of these at a time, on several threads.

What an operator makes of a piece is still in the processor's cache when the next one takes it, and operators run
without the interpreter's lock (vectorized execution: Boncz, Zukowski and Nes, *MonetDB/X100*, CIDR 2005, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import (
    MIXED_NUMERIC,
    Aggregate,
    Clause,
    ColumnOf,
    OfItems,
    Operation,
    PropertyOf,
    Vector,
    names_of,
)
from graphdb.relational.vectors.counted.compressed import without_columns_between
from graphdb.relational.vectors.counted.results import of_few_values
from graphdb.relational.vectors.expressions import evaluated, fulfilled, has_few_texts
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.numbers import SPREAD, NotVectorized
from graphdb.relational.vectors.pieces import in_pieces, rows_of_piece
from graphdb.snapshot.number_columns import Numbers, numbers_of
from graphdb.snapshot.properties import Properties

_PIECE = 1 << 15
"""Rows of a piece: some columns of them fit into a cache of a megabyte."""

_SHARED = 1 << 18
"""Rows from which on several threads compute pieces."""

MANY = 1 << 15
"""Rows from which on pieces are worth while."""

_LOCAL = {
    *"= <> < <= > >= + - * // % / AND OR NOT CASE coalesce absent equals".split(),
    *("IS NULL", "same text", "toInteger of floats", *MIXED_NUMERIC),
    *("toFloat", "abs", "round", "floor", "ceil", "sqrt", "date", "year", "quarter", "month", "day", "dayOfWeek"),
    *("hour", "minute", "second"),
}
"""Operators whose results are columns of numbers, truth values or texts of a clause, each of its own row alone."""


def is_computed(vector: Vector | Aggregate | None) -> bool:
    """Whether an expression is one that pieces are computed of."""
    return isinstance(vector, Operation) and is_local(vector)


def is_local(vector: Vector) -> bool:
    """Whether an expression has a number, truth value or text of a clause for each row, of that row alone."""
    if isinstance(vector, Operation):
        return vector.operator in _LOCAL and all(map(is_local, vector.operands))
    return not isinstance(vector, OfItems)


def each_in_pieces(
    clause: Clause, tables: Mapping[str, arrow.Table], properties: Properties, check: Callable[[], None], threads: int
) -> arrow.Table | None:
    """Return what a clause makes of each of the rows of a table; None where it is none of that kind.

    Raises
    ------
    NotVectorized
        SQL has to compute it.
    """
    if clause.grouped or clause.order or clause.numbered or clause.window != (0, None):
        return None
    below = clause.rows
    while isinstance(below, Clause):
        below = below.rows
    table = tables.get(below) if isinstance(below, str) else None
    if table is None or len(table) < MANY:
        return None
    try:
        clause = without_columns_between(clause)
    except NotVectorized:
        return None
    columns = {name: vector for name, vector in clause.columns if not isinstance(vector, Aggregate)}
    if clause.where and not any(map(is_computed, columns.values())):
        return None  # rows are chosen only: columns that nobody reads need not be
    if not isinstance(clause.rows, str):
        return None
    few = {} if clause.where else of_few_values(columns, table, properties, check, threads)
    names, columns = list(columns), {name: vector for name, vector in columns.items() if name not in few}
    vectors = [*columns.values(), *clause.where]
    if not (few or any(map(is_computed, vectors))) or not all(map(is_local, vectors)):
        return None
    table, vectors = with_properties(table, vectors, properties)
    columns = dict(zip(columns, vectors, strict=False))
    where = tuple(vectors[len(columns) :])
    taken = sorted({name for vector in vectors for name in names_of(vector)})
    table = table.select(taken)
    whole = (
        few if where else few | {name: table.column(v.name) for name, v in columns.items() if isinstance(v, ColumnOf)}
    )

    size, threads = (_PIECE, 1) if len(table) < _SHARED else (rows_of_piece(len(table), threads), threads)
    properties.unions()  # is asked of DuckDB once, which this thread alone may do while others work

    def made(number: int) -> dict[str, arrow.Array]:
        frame = fulfilled(where, Frame.of(table.part(number * size, size)), properties)
        return {name: evaluated(vector, frame, properties) for name, vector in columns.items() if name not in whole}

    pieces = in_pieces(made, -(-len(table) // size) if columns.keys() - whole.keys() else 0, threads, check)
    found: dict[str, arrow.ChunkedArray] = {}
    for name in names:
        chunks = [] if name in whole else [piece[name] for piece in pieces]
        if len({chunk.type for chunk in chunks}) > 1:
            raise NotVectorized
        found[name] = whole[name] if name in whole else arrow.ChunkedArray(chunks)
    return arrow.table(found)


def with_properties(
    table: arrow.Table, vectors: list[Vector], properties: Properties
) -> tuple[arrow.Table, list[Vector]]:
    """Return rows with the properties that expressions look up as columns, and the expressions over these: threads may
    compute them, since none asks DuckDB for anything.
    """
    vectors = [_by_codes(vector, len(table), properties) for vector in vectors]
    looked_up = list(dict.fromkeys(each for vector in vectors for each in _properties_of(vector)))
    properties.read_ahead(each.label for each in looked_up)
    names: dict[Vector, Vector] = {}
    for number, each in enumerate(looked_up):
        name, ids = f"property {number}", table.column(each.vertex.name)
        source = properties.source(each.label, len(ids))
        if isinstance(each, CodeOf):
            assert source is not None
            coded = source.codes()
            assert coded is not None
            source = coded[0]
        if isinstance(each, _NumberOf):
            assert source is not None
            numbers = numbers_of(source)
            assert numbers is not None
            source = getattr(numbers, each.part)
        table = table.append_column(name, properties.gather(each.label, ids) if source is None else source.delayed(ids))
        names[each] = ColumnOf(name)
    return table, [_with(vector, names) for vector in vectors]


@dataclass(frozen=True, slots=True)
class CodeOf(PropertyOf):
    """The number of a text that is a property."""


@dataclass(frozen=True, slots=True)
class _NumberOf(PropertyOf):
    """The integer, or floating-point number, that a property of both types is; or the latter that it is or equals."""

    part: Literal["whole", "real", "both"]


def _by_codes(vector: Vector, rows: int, properties: Properties) -> Vector:
    """Return an expression in which texts of one property are compared by numbers of theirs, where they have some, and
    integers beside floating-point numbers by the latter.
    """
    match vector:
        case Operation("toFloat", (PropertyOf() as mixed,)) if properties.is_mixed_numeric(mixed.label):
            numbers = _numbers(mixed, rows, properties)
            if numbers is not None and numbers.both is not None:
                return _NumberOf(mixed.vertex, mixed.label, "both")
        case PropertyOf(vertex, label) if _numbers(vector, rows, properties) is not None:
            return Operation("coalesce of numbers", tuple(_NumberOf(vertex, label, part) for part in _PARTS))
        case Operation("same text", (PropertyOf() as left, PropertyOf() as right)) if left.label == right.label:
            few = left.label.triples <= SPREAD * rows  # to number many would take longer than to compare some
            source = properties.source(left.label, rows) if few else None
            if source is not None and source.codes() is not None:
                codes = tuple(CodeOf(each.vertex, each.label) for each in (left, right))
                return Operation("=", codes)
        case Operation(_, operands):
            return replace(vector, operands=tuple(_by_codes(operand, rows, properties) for operand in operands))
    return vector


_PARTS: tuple[Literal["whole", "real"], ...] = ("whole", "real")


def _numbers(key: PropertyOf, rows: int, properties: Properties) -> Numbers | None:
    """Return the numbers of a property of both types; None of any other."""
    source = properties.source(key.label, rows) if properties.is_mixed_numeric(key.label) else None
    return None if source is None else numbers_of(source)


def _with(vector: Vector, names: Mapping[Vector, Vector]) -> Vector:
    if isinstance(vector, Operation):
        return replace(vector, operands=tuple(_with(operand, names) for operand in vector.operands))
    return names.get(vector, vector) if isinstance(vector, PropertyOf) else vector


def _properties_of(vector: Vector) -> list[PropertyOf]:
    if isinstance(vector, Operation):
        return [each for operand in vector.operands for each in _properties_of(operand)]
    return [vector] if isinstance(vector, PropertyOf) else []


def over_computed(clause: Clause) -> Clause | None:
    """Return a clause that groups rows of a table over one that computes what it takes of each; None for others."""
    vectors = [each.operand if isinstance(each, Aggregate) else each for _, each in clause.columns]
    if not clause.grouped or not any(map(is_computed, vectors)):
        return None
    names: dict[Vector, str] = {}

    def named(vector: Vector) -> Vector:
        if is_computed(vector) and not (has_few_texts(vector) or _is_union(vector)):  # the former go by numbers
            return ColumnOf(names.setdefault(vector, f"computed {len(names)}"))
        return vector

    columns = [
        (name, replace(each, operand=each.operand and named(each.operand), order=each.order and named(each.order)))
        if isinstance(each, Aggregate)
        else (name, named(each))
        for name, each in clause.columns
    ]
    passed = {name for _, each in columns for name in _taken(each)}.difference(names.values())
    below = Clause(
        clause.rows,
        clause.where,
        (*((name, ColumnOf(name)) for name in sorted(passed)), *((name, vector) for vector, name in names.items())),
    )
    return replace(clause, rows=below, where=(), columns=tuple(columns))


def _is_union(vector: Vector) -> bool:
    """Whether values are a union, whose pieces take longer to put together than all to be made at once."""
    return isinstance(vector, Operation) and vector.operator in MIXED_NUMERIC


def _taken(each: Vector | Aggregate) -> set[str]:
    if not isinstance(each, Aggregate):
        return names_of(each)
    vectors = [vector for vector in (each.operand, each.order) if vector is not None]
    return {name for vector in vectors for name in names_of(vector)} | ({each.matches} if each.matches else set())
