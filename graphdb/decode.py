"""The columns of a result as Python values, made a column at a time.

What terms all columns hold is asked of the database at once, each term once; then every column takes its values from
there.  No step goes from row to row in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.elements import Node
from graphdb.literals import python_value_of
from graphdb.spelled import Spelled, distinct, lists, relationships
from graphdb.temporal import Duration
from graphdb.values import CODE_BITS, LABEL_OF, Base, Type, tidied

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

_FIRST, _MOST = 1 << 8, 1 << 16
"""Rows that are decoded at a time: few at first, for who wants no more of them, and then more and more."""
_BYTES = 1 << 23
"""Bytes of a column table that are decoded at a time, roughly: a fraction of a second."""

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


def pieces(table: pa.Table, *, whole: bool = False) -> Iterator[pa.Table]:
    """Yield a table in pieces that are decoded at a time, large ones at once where the ``whole`` of it is wanted."""
    count = table.num_rows
    most = min(_MOST, max(1, count * _BYTES // max(table.nbytes, 1)))
    rows, start = most if whole else min(_FIRST, most), 0
    while start < count:
        yield table.slice(start, rows)
        start, rows = start + rows, min(rows * 8, most)


def decoded(
    known: Known,
    types: Sequence[tuple[Type, bool]] | None,
    table: pa.Table,
    value_of: Callable[[bytes], object] | None = None,
) -> list[list[Any]]:
    """Return the columns of a table as lists of Python values.

    ``types`` are the columns', and whether one of several values stands for itself where it is alone; without them the
    columns are plain SQL.  ``value_of`` returns what SQL knows by a key.
    """
    if types is None:
        return [_plain(column) for column in table.columns]
    if not table.num_rows:
        return [[] for _ in types]
    columns = [column.combine_chunks() for column in table.columns]
    parts = [part for (type, _), column in zip(types, columns, strict=True) for part in _ids(type, column)]
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
        Ids (int64, may be null), and whether more is wanted of them than IRIs.
    value_of
        Returns what SQL knows by a key.
    """

    def __init__(
        self,
        known: Known,
        parts: Sequence[tuple[pa.Array, bool]],
        value_of: Callable[[bytes], object] | None,
    ) -> None:
        self.value_of = value_of
        arrays = [part.drop_null() if part.null_count else part for part, _ in parts]
        flat = np.concatenate([array.to_numpy() for array in arrays]) if arrays else np.empty(0, np.int64)
        self.ids = np.array(sorted({*flat.tolist()}), np.int64) if len(flat) < _FEW else distinct(flat)[0]
        find = known.nodes if any(whole for _, whole in parts) else known.terms
        self._find = find(self.ids) if len(self.ids) else list  # numbers are there when the database is closed, too

    @cached_property
    def all(self) -> list[Any]:
        """The terms, and None after them."""
        return [*self._find(), None]

    @cached_property
    def ends(self) -> list[Any]:
        """The terms as ends of edges: vertices by their IRIs."""
        return [term.iri if isinstance(term, Node) else term for term in self.all]

    def places(self, ids: pa.Array) -> Ints:
        """Which of all terms some are; -1, the last one, for null."""
        if not ids.null_count and len(ids) < _FEW:
            near: Ints = np.searchsorted(self.ids, ids.to_numpy())
            return near
        import pyarrow as pa
        import pyarrow.compute as pc

        found: Ints = pc.index_in(ids.cast("int64"), pa.array(self.ids)).fill_null(-1).to_numpy()
        return found

    def of(self, ids: pa.Array) -> list[Any]:
        """The terms of some ids; None for null."""
        return list(map(self.all.__getitem__, self.places(ids).tolist()))


def _ids(type: Type, column: pa.Array) -> Iterator[tuple[pa.Array, bool]]:
    """Yield the ids of all terms in a column, and whether more is wanted of them than IRIs."""
    match type.base:
        case Base.NODE | Base.TERM:
            yield column.cast("int64"), True
        case Base.EDGE:
            yield column.field("start").cast("int64"), False
            yield column.field("end").cast("int64"), False
        case Base.PATH:
            yield lists((column.drop_null() if column.null_count else column).field("vertices"))[1], True
        case Base.LIST if type.element is not None:
            yield from _ids(type.element, column.flatten())
        case Base.MAP:
            for i, (_, field) in enumerate(type.fields):  # those of a null map are null (and unions are not flattened)
                yield from _ids(field, column.field(i))


def _values(known: Known, terms: _Terms, type: Type, column: pa.Array) -> list[Any]:
    """Return a column's Python values."""
    match type.base:
        case Base.NODE | Base.TERM:
            return terms.of(column)
        case Base.EDGE:
            return _with_nulls(column, lambda edges: _edges(known, terms, edges))
        case Base.PATH:
            return _with_nulls(column, lambda paths: _paths(known, terms, paths))
        case Base.LIST if type.element is not None and type.element.base is Base.EDGE:
            return _lists(column, _with_nulls(column.flatten(), lambda edges: _shared_edges(known, terms, edges)))
        case Base.LIST if type.element is not None:
            return _lists(column, _values(known, terms, type.element, column.flatten()))
        case Base.MAP:
            keys = [key for key, _ in type.fields]
            fields = enumerate(type.fields)
            rows = zip(*[_values(known, terms, field, column.field(i)) for i, (_, field) in fields], strict=True)
            maps = [dict(zip(keys, row, strict=True)) for row in rows]
            if type.sparse:
                maps = [{key: value for key, value in map.items() if value is not None} for map in maps]
            return [map if there else None for map, there in zip(maps, column.is_valid().to_pylist(), strict=True)]
        case Base.TUPLE:
            items = [_values(known, terms, field, column.field(i)) for i, (_, field) in enumerate(type.fields)]
            made = map(list, zip(*items, strict=True))
            return [row if there else None for row, there in zip(made, column.is_valid().to_pylist(), strict=True)]
        case Base.DURATION:
            parts = zip(*[field.to_pylist() for field in column.flatten()], strict=True)
            return [None if part[0] is None else Duration(*part) for part in parts]
        case Base.MOMENT:
            texts = zip(column.field("lexical").to_pylist(), column.field("datatype").to_pylist(), strict=True)
            return [None if text is None else python_value_of(text, datatype) for text, datatype in texts]
        case Base.ANY if (value_of := terms.value_of) is not None:
            return [None if key is None else value_of(key) for key in column.to_pylist()]
        case Base.DECIMAL | Base.ZONED | Base.VALUE:
            return [tidied(value) for value in pylist(column)]
    return pylist(column)


def _with_nulls(column: pa.Array, values: Callable[[pa.Array], list[Any]]) -> list[Any]:
    """Return the values of a column that are there, and None where there is none."""
    if not column.null_count:
        return values(column)
    found = iter(values(column.drop_null()))
    return [next(found) if there else None for there in column.is_valid().to_pylist()]


def _edges(known: Known, terms: _Terms, edges: pa.Array) -> list[Any]:
    label, start, end, ordinal = (edges.field(part) for part in ("label", "start", "end", "ordinal"))
    parts = [label.to_numpy(), terms.places(start), terms.places(end), ordinal.to_numpy()]
    return _made(known, terms, parts)


def _shared_edges(known: Known, terms: _Terms, edges: pa.Array) -> list[Any]:
    """The edges of lists, in which the same ones come again and again: each is made once."""
    label, start, end, ordinal = (edges.field(part) for part in ("label", "start", "end", "ordinal"))
    kinds, which = distinct(label.to_numpy() | ordinal.to_numpy() << (CODE_BITS - 1))
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


def _paths(known: Known, terms: _Terms, paths: pa.Array) -> list[Any]:
    starts, vertices = lists(paths.field("vertices"))
    codes = lists(paths.field("codes"))[1].to_numpy()
    kinds, which = distinct(codes >> 1)
    labels, ordinals = kinds & LABEL_OF, kinds >> (CODE_BITS - 1)
    backwards = codes & 1 == 1
    spelled = Spelled(starts, terms, terms.places(vertices), known.written(labels.tolist()), which, backwards)
    if known.described(labels.tolist()):
        kind, *ends = spelled.edges
        spelled.facts = known.facts([labels[kind], *map(terms.ids.__getitem__, ends), ordinals[kind]])
    return spelled.paths()


def _lists(column: pa.Array, values: list[Any]) -> list[Any]:
    """Return the lists of a column whose values, one list after the other, are given."""
    import pyarrow.compute as pc

    ends = np.cumsum(pc.list_value_length(column).fill_null(0).to_numpy())
    starts = np.append(0, ends[:-1]) if len(ends) else ends
    found: list[Any] = list(map(values.__getitem__, map(slice, starts.tolist(), ends.tolist())))
    if column.null_count:
        return [value if there else None for value, there in zip(found, column.is_valid().to_pylist(), strict=True)]
    return found


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return the Python values of a column that SQL gave."""
    import pyarrow as pa

    values = pylist(column)
    if pa.types.is_decimal(column.type) and column.type.scale == 0:  # DuckDB's HUGEINT
        return [None if value is None else int(value) for value in values]
    if pa.types.is_decimal(column.type) or pa.types.is_union(column.type):
        return [tidied(value) for value in values]
    return values


def pylist(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column's Python values; a date or time that Python's calendar does not have comes as text."""
    values: list[Any] = []
    for chunk in getattr(column, "chunks", (column,)):
        values += _items(chunk)
    return values


def _items(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    type = array.type
    if pa.types.is_list(type):
        return _lists(array, _items(array.flatten()))
    if pa.types.is_date32(type) or (pa.types.is_timestamp(type) and type.tz is None and type.unit != "ns"):
        return _dates(array.to_numpy(zero_copy_only=False))
    try:
        values: list[Any] = array.to_pylist()
    except (OverflowError, ValueError):
        values = [_item(scalar) for scalar in array]
    return values


def _dates(times: NDArray[np.datetime64]) -> list[Any]:
    """Return dates and times, those outside of Python's years 1 to 9999 as text, ISO 8601 with astronomical years."""
    values: list[Any] = times.tolist()
    if times.size and not (_YEARS[0] <= times.min() and times.max() < _YEARS[1]):  # so it is with NaT, too
        texts = [
            f"-0{text[1:]}" if text[:1] == "-" == text[4:5] else text for text in np.datetime_as_string(times).tolist()
        ]
        return [text if isinstance(value, int) else value for value, text in zip(values, texts, strict=True)]
    return values


_YEARS = np.datetime64("0001-01-01"), np.datetime64("10000-01-01")


def _item(scalar: pa.Scalar) -> Any:
    """Return one value of a column of which Python does not have all."""
    import pyarrow as pa

    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        inner = scalar.value if isinstance(scalar, pa.UnionScalar) else scalar
        if pa.types.is_date32(inner.type):
            return _dates(np.array([inner.cast(pa.int32()).as_py()], "M8[D]"))[0]
        return _dates(np.array([inner.cast(pa.int64()).as_py()], "M8[us]"))[0]
