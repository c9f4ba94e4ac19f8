"""Tables as numbers (:mod:`.encoding`) to a batch of terms and triples of codes, column by column.

The numbers of values become the codes that triples are made of.  So no value is written as a term of RDF, parsed, or
looked up again; only distinct values are written as IRIs and lexical forms.  The terms come first: another thread makes
the triples while they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import strings
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.stopping import check_stop
from graphdb.common.values.terms import DATATYPE, RDF_TYPE, VERTEX, Kind
from graphdb.storage.arrays.arrow import string_places
from graphdb.storage.arrays.batch import LITERAL, Batch, Edges, Texts, Valued, repeated
from graphdb.storage.arrays.spill import SpillFile
from graphdb.storage.arrays.texts import numbered
from graphdb.storage.loaders.tables import terms, values
from graphdb.storage.loaders.tables.encoding import VALUED, Encoded, Encoder, Numbers, Values
from graphdb.storage.loaders.tables.headers import name_iri
from graphdb.storage.loaders.tables.staging import Sort

if TYPE_CHECKING:
    import duckdb

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

_PIECE = 122_880
"""Texts of a piece: as many as are in a row group of DuckDB's."""


@dataclass
class _Made:
    """What the tables made so far: pieces of :class:`Edges`, and of the batch's triples."""

    triples: list[Codes] = field(default_factory=list)
    edges: list[Codes] = field(default_factory=list)
    owners: list[Ints] = field(default_factory=list)
    properties: list[Codes] = field(default_factory=list)
    count: int = 0


class Assembly:
    """Tables on their way to a batch of terms and triples.

    Parameters
    ----------
    connection
        A connection of DuckDB's, which writes distinct values as texts.
    spill
        What the batch's arrays belong to.
    alone
        Whether the batch becomes a graph by itself: its numbers and times then need no texts.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, encoder: Encoder, spill: SpillFile, *, alone: bool
    ) -> None:
        self._constants, dictionaries, self._tables = _Constants(), encoder.dictionaries(), encoder.tables
        self._codes: dict[Sort, Codes | int] = {}
        resources = [sort for sort in dictionaries if not sort.literal]
        iris = {sort: _iris(connection, sort, dictionaries[sort]) for sort in resources}
        for table in self._tables:
            self._constants.of(table)
        distinct = _resources(self._constants, iris, self._codes)
        valued = _valued(dictionaries, self._codes, spill) if alone else []
        literals, notes = _literals(connection, dictionaries, self._codes, spill)
        self.batch = Batch(
            spill,
            list(_pieces(distinct, 0, spill)),
            literals,
            notes,
            [],
            [],
            valued=valued,
        )
        """All terms, and the triples once they are written."""

    def write_triples(self) -> Edges:
        """Write the batch's triples, once; return the edges that need more than a triple."""
        made = _Made()
        while self._tables:  # what was written takes no more memory
            _Writer(self._tables.pop(0), self._codes, self._constants, made).write()
        self._codes.clear()
        self.batch.triples.extend(self.batch.spill.add(rows) for rows in made.triples if len(rows))
        none = np.empty((0, 3), np.uint32)
        return Edges(
            np.concatenate([none, *made.edges]),
            np.concatenate([np.empty(0, np.int64), *made.owners]),
            np.concatenate([none[:, :2], *made.properties]),
        )


class _Constants:
    """The names that tables have beside their values: keys, labels and edge labels."""

    def __init__(self) -> None:
        self._numbers = {RDF_TYPE: 0, VERTEX: 1}
        self.codes = np.empty(0, np.uint32)
        """The code of each, once all are known."""

    def of(self, table: Encoded) -> None:
        """Note the names of a table."""
        mapping = table.mapping
        keys = [some.column.name for some in table.columns if some.column.name]
        for name in (*mapping.labels, *keys, *([mapping.type] if mapping.type else [])):
            self._numbers.setdefault(name_iri(name), len(self._numbers))

    def iris(self) -> arrow.Array:
        """Return their IRIs."""
        return strings(self._numbers)

    def code(self, iri: str) -> int:
        """Return the code of one."""
        return int(self.codes[self._numbers[iri]])


def _numbered(arrays: Sequence[arrow.ChunkedArray]) -> tuple[arrow.Array, list[NDArray[np.int32]]]:
    """Return the distinct values of several arrays, and for each array the numbers of its values, -1 for nulls."""
    type = arrays[0].type
    whole = arrow.concat_arrays([chunk for array in arrays for chunk in array.chunks], type)
    distinct, found = numbered(whole, np.int32)
    return distinct, np.split(found, np.cumsum([len(array) for array in arrays])[:-1])


def _texts(
    connection: duckdb.DuckDBPyConnection, array: arrow.Array | arrow.ChunkedArray, sql: str
) -> arrow.ChunkedArray:
    """Return what SQL makes of values ``v``, as texts."""
    connection.register("distinct_values", arrow.table({"v": array}))
    try:
        return rows_of(connection, f"SELECT {sql} AS text FROM distinct_values").column(0)
    finally:
        connection.unregister("distinct_values")


def _iris(
    connection: duckdb.DuckDBPyConnection, sort: Sort, distinct: arrow.Array | arrow.ChunkedArray
) -> arrow.ChunkedArray:
    """Return the IRIs of names."""
    if sort.type == "BIGINT":
        return _texts(connection, distinct, terms.number_iri("v", sort.group or ""))
    return _texts(connection, distinct, terms.vertex_iri("v", sort.group or ""))


def _any_is_numbered(texts: arrow.ChunkedArray, prefix: str) -> bool:
    """Whether a text begins with a prefix, and a digit or a minus behind it, as the names of integers do."""
    head = np.frombuffer(prefix.encode(), np.uint8)
    for chunk in texts.chunks:
        data, at = string_places(chunk)
        long = at[:-1][np.diff(at) > len(head)]
        for i in range(len(head)):
            long = long[data[long + i] == head[i]]
        behind = data[long + len(head)]
        if ((behind == ord("-")) | ((behind >= ord("0")) & (behind <= ord("9")))).any():
            return True
    return False


def _resources(
    constants: _Constants, iris: dict[Sort, arrow.ChunkedArray], codes: dict[Sort, Codes | int]
) -> arrow.ChunkedArray:
    """Return the distinct IRIs, and put the codes of names into ``codes`` and ``constants``.

    Integers of a group are no names of another; so those of groups that have no other names like them are distinct.
    """
    numbered = {sort: terms.prefix(sort.group or "") for sort in iris if sort.type == "BIGINT"}
    others = [arrow.ChunkedArray([constants.iris()]), *(iris[sort] for sort in iris if sort not in numbered)]
    for sort, prefix in list(numbered.items()):
        if any(_any_is_numbered(some, prefix) for some in others):
            del numbered[sort]
            others.append(iris[sort])
    named = [sort for sort in iris if sort not in numbered]
    others = [others[0], *(iris[sort] for sort in named)]
    distinct, found = _numbered(others)
    constants.codes = found[0].astype(np.uint32)
    for sort, part in zip(named, found[1:], strict=True):
        codes[sort] = part.astype(np.uint32)
    first = len(distinct)
    for sort in numbered:
        codes[sort] = first
        first += len(iris[sort])
    return arrow.ChunkedArray([distinct, *(chunk for sort in numbered for chunk in iris[sort].chunks)])


def _valued(
    dictionaries: dict[Sort, arrow.Array | arrow.ChunkedArray], codes: dict[Sort, Codes | int], spill: SpillFile
) -> list[Valued]:
    """Return the literals that are handed over as their values, and put their codes into ``codes``.

    Of a datatype there are none where some have another type: equal ones of both would be two literals.
    """
    found: list[Valued] = []
    literals = [sort for sort in dictionaries if sort.literal]
    for kind, sort in VALUED.items():
        if sort not in dictionaries or any(
            other.datatype == sort.datatype and other not in VALUED.values() for other in literals
        ):
            continue
        values = dictionaries[sort]
        assert isinstance(values, arrow.Array)
        assert values.data is not None
        data = values.data
        if not len(data) or not _is_canonical(kind, data):
            continue
        codes[sort] = sum(map(len, found)) | LITERAL
        wide = data if kind is Kind.DOUBLE else data.astype(np.int64, copy=False)
        pieces = [spill.add(wide[begin : begin + _PIECE]) for begin in range(0, len(wide), _PIECE)]
        found.append(Valued(kind, pieces))
    return found


def _is_canonical(kind: Kind, values: NDArray[Any]) -> bool:
    """Whether the lexical forms of values are what DuckDB writes: of times, from the year 1 to the year 9999."""
    if kind not in _RANGES:
        return True
    first, last = _RANGES[kind]
    return bool(first <= int(values.min()) and int(values.max()) <= last)


_FIRST_DAY, _LAST_DAY = (int(np.datetime64(day).astype(np.int64)) for day in ("0001-01-01", "9999-12-31"))
_TIMES = _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1
_RANGES = {Kind.DATE: (_FIRST_DAY, _LAST_DAY), Kind.DATETIME: _TIMES, Kind.ZONED: _TIMES}


def _literals(
    connection: duckdb.DuckDBPyConnection,
    dictionaries: dict[Sort, arrow.Array | arrow.ChunkedArray],
    codes: dict[Sort, Codes | int],
    spill: SpillFile,
) -> tuple[list[Texts], Texts]:
    """Return the literals and their datatypes as texts, and put the codes of each sort's values into ``codes``.

    Literals that have codes already come before them.
    """
    texts: list[Texts] = []
    by_datatype: dict[str | None, list[Sort]] = {}
    for sort in dictionaries:
        if sort.literal and sort not in codes:
            by_datatype.setdefault(sort.datatype, []).append(sort)
    first = sum(len(dictionaries[sort]) for sort in codes if sort.literal)
    notes = [datatype for datatype in by_datatype if datatype is not None]
    for datatype, sorts in by_datatype.items():
        forms = []
        for sort in sorts:
            distinct = dictionaries[sort]
            plain = sort.type == "VARCHAR"
            forms.append(
                (distinct if isinstance(distinct, arrow.ChunkedArray) else arrow.ChunkedArray([distinct]))
                if plain
                else _texts(connection, distinct, values.lexical("v", sort.type)[0])
            )
        whole: arrow.Array | arrow.ChunkedArray
        if len(forms) == 1:
            [whole], codes[sorts[0]] = forms, first | LITERAL
        else:
            whole, numbers = _numbered(forms)
            for sort, some in zip(sorts, numbers, strict=True):
                codes[sort] = (some.astype(np.uint32) + np.uint32(first)) | np.uint32(LITERAL)
        first += len(whole)
        texts += _pieces(whole, 0 if datatype is None else notes.index(datatype) + 1, spill)
    [noted] = list(_pieces(strings(notes), DATATYPE, spill)) or [
        Texts(*(spill.add(np.zeros(size, dtype)) for size, dtype in ((0, np.uint8), (1, np.int32), (0, np.int32))))
    ]
    return texts, noted


def _pieces(texts: arrow.Array | arrow.ChunkedArray, tag: int, spill: SpillFile) -> Iterator[Texts]:
    """Yield texts in pieces, all with one tag."""
    for piece in _in_row_groups(texts.chunks if isinstance(texts, arrow.ChunkedArray) else [texts]):
        characters, ends = string_places(piece)
        tags = np.full(len(piece), tag, np.int32)
        some = spill.add(characters[ends[0] : ends[-1]])
        yield Texts(some, spill.add((ends - ends[0]).astype(np.int32)), spill.add(tags))


def _in_row_groups(chunks: Sequence[arrow.Array]) -> Iterator[arrow.Array]:
    """Yield the values of chunks in pieces that are whole row groups of DuckDB's, but for the last."""
    waiting: list[arrow.Array] = []
    rows = 0
    for chunk in chunks:
        begin = 0
        while begin < len(chunk):
            end = min(begin + _PIECE - rows, len(chunk))
            waiting.append(chunk.slice(begin, end - begin))
            rows += end - begin
            begin = end
            if rows == _PIECE:
                yield waiting[0] if len(waiting) == 1 else arrow.concat_arrays(waiting)
                waiting, rows = [], 0
    if waiting:
        yield waiting[0] if len(waiting) == 1 else arrow.concat_arrays(waiting)


class _Writer:
    """Writes the triples of a table.

    Parameters
    ----------
    codes
        The codes of the distinct values of each sort, or that of the first, where the others' follow it.
    """

    def __init__(self, table: Encoded, codes: dict[Sort, Codes | int], constants: _Constants, made: _Made) -> None:
        self._mapping = table.mapping
        self._found = table.columns
        self._distinct = table.distinct
        self._codes = codes
        self._constants = constants
        self._made = made

    def write(self) -> None:
        """Write them."""
        roles = {each.column.role: each for each in self._found}
        if "ID" in roles:
            self._nodes(self._of(roles["ID"]))
        else:
            self._edges(self._of(roles["START_ID"]), self._of(roles["END_ID"]), roles.get("TYPE"))

    def _of(self, some: Values) -> Codes:
        """The codes of values, each row with one."""
        return self._coded(some.sort, some.numbers)

    def _values(self, some: Values) -> tuple[Ints | slice, Codes]:
        """The rows that have values, and the codes of these."""
        check_stop()
        valid = some.numbers >= 0
        if valid.all():
            return slice(None) if some.rows is None else some.rows, self._coded(some.sort, some.numbers)
        there = np.flatnonzero(valid)
        rows = there if some.rows is None else some.rows[there]
        return rows, self._coded(some.sort, some.numbers[there])

    def _coded(self, sort: Sort, numbers: Numbers) -> Codes:
        """The codes of the values of a sort with some numbers, of which none is below 0."""
        codes = self._codes[sort]
        return numbers.astype(np.uint32) + np.uint32(codes) if isinstance(codes, int) else codes[numbers]

    def _nodes(self, vertices: Codes) -> None:
        """Write labels and properties of vertices; one without either is a vertex all the same."""
        type = self._constants.code(RDF_TYPE)
        lone = np.full(len(vertices), not self._mapping.labels)
        for label in self._mapping.labels:
            self._triples(vertices, type, self._constants.code(name_iri(label)))
        for some in self._found:
            if some.column.role not in ("LABEL", ""):
                continue
            rows, objects = self._values(some)
            lone[rows] = False
            key = type if some.column.role else self._constants.code(name_iri(some.column.name))
            self._triples(vertices[rows], key, objects)
        if lone.any():
            self._triples(vertices[lone], type, self._constants.code(VERTEX))

    def _edges(self, starts: Codes, ends: Codes, kind: Values | None) -> None:
        """Write edges, with their properties."""
        label: Codes | int = self._of(kind) if kind else self._constants.code(name_iri(self._mapping.type or ""))
        self._triples(starts, label, ends)
        if self._distinct:
            return
        rows = self._made.triples[-1]
        parts = [(each.column, *self._values(each)) for each in self._found if not each.column.role]
        chosen = np.zeros(len(rows), bool)
        for _, places, _ in parts:
            chosen[places] = True
        if not chosen.all():
            chosen |= repeated(rows)
        if not chosen.any():
            return
        numbers = np.cumsum(chosen) - 1 + self._made.count
        self._made.edges.append(rows if chosen.all() else rows[chosen])
        self._made.count += int(chosen.sum())
        for column, places, objects in parts:
            check_stop()
            self._made.owners.append(numbers[places])
            pairs = np.empty((len(objects), 2), np.uint32)
            pairs[:, 0], pairs[:, 1] = self._constants.code(name_iri(column.name)), objects
            self._made.properties.append(pairs)

    def _triples(self, subjects: Codes, labels: Codes | int, objects: Codes | int) -> None:
        rows = np.empty((len(subjects), 3), np.uint32)
        rows[:, 0], rows[:, 1], rows[:, 2] = subjects, labels, objects
        self._made.triples.append(rows)
