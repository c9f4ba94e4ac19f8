"""The columns of a result as Python values, made a column at a time.

What terms all columns hold is asked of the database at once, each term once; then every column takes its values from
there.  No step goes from row to row in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.lazy import lazy
from graphdb.common.values.elements import Node
from graphdb.common.values.elements import Path as PathOfResult
from graphdb.common.values.entities import Edge, Path, Vertex
from graphdb.common.values.literals import exported
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import CODE_BITS, LABEL_OF, MIXED, Base, Type, tidied
from graphdb.results.path_materialization import MaterializedPaths, Walks, distinct, relationships
from graphdb.results.plain_values import plain_values
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.python_values import lists_of, pylist

Ints = NDArray[np.int64]

_FIRST, _MOST = 1 << 8, 1 << 16
"""Rows that are decoded at a time: few at first, since a caller may want no more of them; then more and more."""
_BYTES = 1 << 23
"""Bytes of a column table that are decoded at a time, roughly: a fraction of a second."""

_IRI = attrgetter("iri")

_FEW = 1000
"""Ids for which what Arrow does at once takes longer than what it is called for."""


class Known(Protocol):
    """Who knows what ids stand for."""

    def nodes(self, ids: Ints) -> Callable[[], list[Any]]:
        """Return what makes vertices with their labels and properties, and literals' values, of sorted ids."""

    def terms(self, ids: Ints) -> Callable[[], list[Any]]:
        """Return what makes the IRIs of vertices, and literals' values, of sorted ids."""

    def described(self, labels: Iterable[int]) -> bool:
        """Whether edges of some labels may have properties."""

    def facts(self, edges: Sequence[Ints]) -> list[dict[str, Any]]:
        """Return the properties of edges: columns of label, start, end and ordinal, int64."""

    def written(self, labels: Iterable[int]) -> list[str]:
        """Return edge labels as a user would write them."""


class Arrays:
    """Columns ``c0 …`` as a search left them.

    A table of them costs more than many a search, so there is one only where somebody asks for it.
    """

    __slots__ = ("columns", "num_rows")

    def __init__(self, columns: Sequence[arrow.Array | Walks], num_rows: int) -> None:
        self.columns, self.num_rows = columns, num_rows

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for column in self.columns)

    def table(self) -> arrow.Table:
        """Return the columns as a table."""
        arrays = [column.array() if isinstance(column, Walks) else column for column in self.columns]
        return arrow.table(arrays, [f"c{i}" for i in range(len(arrays))])


def pieces(table: arrow.Table | Arrays, *, whole: bool = False) -> Iterator[arrow.Table | Arrays]:
    """Yield a table in pieces that are decoded at a time, large ones at once where the ``whole`` of it is wanted."""
    count = table.num_rows
    if isinstance(table, Arrays):
        if count <= (_MOST if whole else _FIRST) and table.nbytes <= _BYTES:
            yield table
            return
        table = table.table()
    most = min(_MOST, max(1, count * _BYTES // max(table.nbytes, 1)))
    rows, start = most if whole else min(_FIRST, most), 0
    while start < count:
        yield table.slice(start, rows)
        start, rows = start + rows, min(rows * 8, most)


def decoded(
    known: Known,
    types: Sequence[tuple[Type, bool]] | None,
    table: arrow.Table | Arrays,
    value_of: Callable[[bytes], object] | None = None,
) -> list[list[Any]]:
    """Return the columns of a table as lists of Python values.

    ``types`` are the columns', and whether one of several values stands for itself where it is alone; without them the
    columns are plain SQL.  ``value_of`` returns what SQL knows by a key.
    """
    if types is None:
        return [_plain(column) for column in table.columns if not isinstance(column, Walks)]
    if not table.num_rows:
        return [[] for _ in types]
    columns = table.columns if isinstance(table, Arrays) else [column.combine_chunks() for column in table.columns]
    columns_of_types = zip(types, columns, strict=True)
    parts = [part for (type, _), column in columns_of_types for part in _ids(type, column, value_of)]
    terms = _Terms(known, parts, value_of)
    found = [_values(known, terms, type, column) for (type, _), column in zip(types, columns, strict=True)]
    return [
        # Several values of a property are a list, one is itself.
        [value[0] if value is not None and len(value) == 1 else value for value in values] if many else values
        for (_, many), values in zip(types, found, strict=True)
    ]


class _Terms:
    """All terms of some columns: found at once, and made when they are asked for.

    Parameters
    ----------
    parts
        Ids (int64, in Arrow they may be null), and whether more is wanted of them than IRIs.
    value_of
        Returns what SQL knows by a key.
    """

    def __init__(
        self,
        known: Known,
        parts: Sequence[tuple[arrow.Array | Ints, bool]],
        value_of: Callable[[bytes], object] | None,
    ) -> None:
        self.value_of = value_of
        arrays = [part if isinstance(part, np.ndarray) else _numbers(part) for part, _ in parts]
        self._flat = arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int64), *arrays])
        self.ids, self._at = distinct(self._flat)
        find = known.nodes if any(whole for _, whole in parts) else known.terms
        self._find = find(self.ids) if len(self.ids) else list  # numbers are there when the database is closed, too

    @lazy
    def all(self) -> list[Any]:
        """The terms, and None after them."""
        return [*self._find(), None]

    @lazy
    def ends(self) -> list[Any]:
        """The terms as ends of edges: vertices by their IRIs."""
        resources = int(np.searchsorted(self.ids, LITERAL_BASE)) if isinstance(self.all[0], Node) else 0
        return [*map(_IRI, self.all[:resources]), *self.all[resources:]]

    def places(self, ids: arrow.Array) -> Ints:
        """Which of all terms some are; -1, the last one, for null."""
        if not ids.null_count:
            return self.at(plain(ids))
        found = np.full(len(ids), -1, np.int64)
        there = ids.is_valid()
        found[there] = self.at(ids.data[there])  # type: ignore[index]
        return found

    def at(self, ids: Ints) -> Ints:
        """Which of all terms some are."""
        if ids is self._flat:
            return self._at
        if len(ids) >= _FEW:
            some, which = distinct(ids)
            return np.searchsorted(self.ids, some)[which]
        found: Ints = np.searchsorted(self.ids, ids)
        return found

    def of(self, ids: arrow.Array) -> list[Any]:
        """The terms of some ids; None for null."""
        return list(map(self.all.__getitem__, self.places(ids).tolist()))


def _numbers(ids: arrow.Array) -> Ints:
    """The ids of a column that are there."""
    found: Ints = plain(ids.drop_null() if ids.null_count else ids)
    return found


def _ids(
    type: Type, column: arrow.Array | Walks, value_of: Callable[[bytes], object] | None
) -> Iterator[tuple[arrow.Array | Ints, bool]]:
    """Yield the ids of all terms in a column, and whether more is wanted of them than IRIs."""
    if isinstance(column, Walks):
        yield column.vertices, True
        return
    match type.base:
        case Base.NODE | Base.TERM:
            yield column.cast(arrow.INT64), True
        case Base.EDGE:
            yield column.field("start").cast(arrow.INT64), False
            yield column.field("end").cast(arrow.INT64), False
        case Base.PATH:
            yield Walks.of(column.drop_null()).vertices, True
        case Base.LIST if type.element is not None:
            yield from _ids(type.element, column.flatten(), value_of)
        case Base.MAP | Base.CHOICE:
            for i, (_, field) in enumerate(type.fields):  # those of a null map are null (and unions are not flattened)
                yield from _ids(field, column.field(i), value_of)
        case Base.ANY if type == MIXED and value_of is not None:
            ends = (
                (part.id,) if isinstance(part, Vertex) else (part.start, part.end)
                for part in entities(_of_keys(column, value_of))
            )
            yield np.fromiter(chain.from_iterable(ends), np.int64), True


def _values(known: Known, terms: _Terms, type: Type, column: arrow.Array | Walks) -> list[Any]:
    """Return a column's Python values."""
    if isinstance(column, Walks):
        return _paths(known, terms, column)
    match type.base:
        case Base.NODE | Base.TERM:
            return terms.of(column)
        case Base.EDGE:
            return _with_nulls(column, lambda edges: _edges(known, terms, edges))
        case Base.PATH:
            return _with_nulls(column, lambda paths: _paths(known, terms, Walks.of(paths)))
        case Base.LIST if type.element is not None and type.element.base is Base.EDGE:
            return lists_of(column, _with_nulls(column.flatten(), lambda edges: _shared_edges(known, terms, edges)))
        case Base.LIST if type.element is not None:
            return lists_of(column, _values(known, terms, type.element, column.flatten()))
        case Base.MAP:
            keys = [key for key, _ in type.fields]
            fields = enumerate(type.fields)
            values = [_values(known, terms, field, column.field(i)) for i, (_, field) in fields]
            rows: Iterable[tuple[Any, ...]] = zip(*values, strict=True) if values else [()] * len(column)
            maps = [dict(zip(keys, row, strict=True)) for row in rows]
            if type.sparse:
                there = type.certain
                maps = [{key: value for key, value in map.items() if value is not None or key in there} for map in maps]
            return [map if there else None for map, there in zip(maps, column.is_valid().tolist(), strict=True)]
        case Base.TUPLE:
            items = [_values(known, terms, field, column.field(i)) for i, (_, field) in enumerate(type.fields)]
            made = map(list, zip(*items, strict=True))
            return [row if there else None for row, there in zip(made, column.is_valid().tolist(), strict=True)]
        case Base.CHOICE:
            options = [_values(known, terms, field, column.field(i)) for i, (_, field) in enumerate(type.fields)]
            tags = arrow.pylist(column.field("tag"))
            there = column.is_valid().tolist()
            return [options[tag][i] if there[i] else None for i, tag in enumerate(tags)]
        case Base.ANY if terms.value_of is not None:
            found = _of_keys(column, terms.value_of)
            element = None if type != MIXED else _elements(known, terms, found)
            return [exported(value, element) for value in found]
    return plain_values(type, column)


def _of_keys(column: arrow.Array, value_of: Callable[[bytes], object]) -> list[Any]:
    """Return the values that SQL knows by the keys in a column."""
    return [None if key is None else value_of(key) for key in arrow.pylist(column)]


def entities(value: object) -> Iterator[Vertex | Edge]:
    """Yield the vertices and edges in a value, those of paths among them."""
    match value:
        case Vertex() | Edge():
            yield value
        case Path():
            yield from value.vertices
            yield from value.edges
        case list():
            for item in value:
                yield from entities(item)
        case dict():
            for item in value.values():
                yield from entities(item)


def _elements(known: Known, terms: _Terms, values: list[Any]) -> Callable[[Any], object]:
    """Return the function to what a user sees of a vertex, edge or path in some values, which are made at once."""
    edges = list(dict.fromkeys(part for part in entities(values) if isinstance(part, Edge)))
    columns = np.array([(e.label, e.start, e.end, e.ordinal) for e in edges], np.int64).reshape(-1, 4).T
    label, start, end, ordinal = columns
    parts = [label, terms.at(start), terms.at(end), ordinal]
    made = dict(zip(edges, _made(known, terms, parts), strict=True)) if edges else {}

    def element(value: Vertex | Edge | Path) -> object:
        match value:
            case Vertex():
                return terms.all[int(np.searchsorted(terms.ids, value.id))]
            case Edge():
                return made[value]
        return PathOfResult(tuple(map(element, value.vertices)), tuple(made[edge] for edge in value.edges))  # type: ignore[arg-type]

    return element


def _with_nulls(column: arrow.Array, values: Callable[[arrow.Array], list[Any]]) -> list[Any]:
    """Return the values of a column that are there, and None where there is none."""
    if not column.null_count:
        return values(column)
    found = iter(values(column.drop_null()))
    return [next(found) if there else None for there in column.is_valid().tolist()]


def _edges(known: Known, terms: _Terms, edges: arrow.Array) -> list[Any]:
    label, start, end, ordinal = (edges.field(part) for part in ("label", "start", "end", "ordinal"))
    parts = [plain(label), terms.places(start), terms.places(end), plain(ordinal)]
    return _made(known, terms, parts)


def _shared_edges(known: Known, terms: _Terms, edges: arrow.Array) -> list[Any]:
    """The edges of lists, in which the same ones come again and again: each is made once."""
    label, start, end, ordinal = (edges.field(part) for part in ("label", "start", "end", "ordinal"))
    kinds, which = distinct(plain(label) | plain(ordinal) << (CODE_BITS - 1))
    count = len(terms.ids)
    keys, at = distinct((which * count + terms.places(start)) * count + terms.places(end))
    kind = kinds[keys // count // count]
    parts = [kind & LABEL_OF, keys // count % count, keys % count, kind >> (CODE_BITS - 1)]
    return list(map(_made(known, terms, parts).__getitem__, at.tolist()))


def _made(known: Known, terms: _Terms, parts: Sequence[Ints]) -> list[Any]:
    """Return edges of their labels, the places of their ends among all terms, and their ordinals."""
    label, start, end, ordinal = parts
    labels, which = distinct(label)
    facts = None
    if known.described(labels.tolist()):
        facts = known.facts([label, terms.ids[start], terms.ids[end], ordinal])
    return relationships(known.written(labels.tolist()), which, terms.ends, start, end, facts)


def _paths(known: Known, terms: _Terms, paths: Walks) -> list[Any]:
    kinds, which = distinct(paths.codes >> 1)
    labels, ordinals = kinds & LABEL_OF, kinds >> (CODE_BITS - 1)
    backwards = paths.codes & 1 == 1
    at = terms.at(paths.vertices)
    materialized = MaterializedPaths(paths.starts, terms, at, known.written(labels.tolist()), which, backwards)
    if known.described(labels.tolist()):
        kind, *ends = materialized.edges
        materialized.facts = known.facts([labels[kind], *map(terms.ids.__getitem__, ends), ordinals[kind]])
    return materialized.paths()


def _plain(column: arrow.Array | arrow.ChunkedArray) -> list[Any]:
    """Return the Python values of a column that SQL gave."""
    values = pylist(column)
    if arrow.is_decimal(column.type) and column.type.scale == 0:  # DuckDB's HUGEINT
        return [None if value is None else int(value) for value in values]
    if arrow.is_decimal(column.type) or arrow.is_union(column.type):
        return [tidied(value) for value in values]
    return values
