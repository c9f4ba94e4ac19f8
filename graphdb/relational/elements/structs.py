"""Vertices, edges and paths as structs of Arrow: with their labels or type, their ends, and all of their properties.

DuckDB makes the structs of the distinct elements of a batch, column by column, and the rows are gathered from them: no
value becomes an object of Python.  Which properties there are, and of what types, is found of a whole column first, so
that all of its batches have one type.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.values.decimals import shortest_sql
from graphdb.common.values.terms import LITERAL_BASE, VALUE_SQL, Kind
from graphdb.common.values.types import Base, Column, Type, has_ids
from graphdb.relational.elements import fetch
from graphdb.relational.elements.source import Source
from graphdb.relational.elements.tables import present
from graphdb.relational.elements.vertices import classes_of, described_columns, iris_of, whole
from graphdb.results.path_materialization import Walks, distinct, distinct_edges, edge_columns
from graphdb.snapshot.edges import is_everywhere
from graphdb.sql.from_clause import NAMES_VIEW
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.texts import number_integers, taken
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.graph.edges import edge_numbers

Ids = NDArray[np.int64]

Convert = Callable[[Source, arrow.Array], arrow.Array]
"""Makes a piece of a column what Arrow's readers see of it."""

_WANTED = "_graphdb_wanted"

_MOST_KEYS = 200
"""Keys up to which the properties of a column are a struct; where there are more, they are texts of JSON."""

_EDGE = ("label", "subject", "object", "ordinal")


def converter(source: Source, type: Type, column: arrow.Array) -> Convert:
    """Return what makes pieces of a column of a type, all of which is ``column``, columns of structs.

    A vertex is a struct of ``id`` (its IRI), ``labels`` and ``properties``, an edge one of ``id``, ``type``, ``start``,
    ``end`` (IRIs; the text of a literal) and ``properties``, a path one of the lists ``nodes`` and ``relationships``.
    """
    match type.base:
        case Base.NODE:
            return _vertices(source, _there(column))
        case Base.TERM:
            ids = _there(column)
            return _vertices(source, ids) if (ids < LITERAL_BASE).all() else _presented(type)
        case Base.EDGE:
            return _edges(source, column.drop_null())
        case Base.PATH:
            return _paths(source, column)
        case Base.LIST if type.element is not None and has_ids(type.element):
            return _lists(converter(source, type.element, column.flatten()))
        case Base.MAP if has_ids(type):
            parts = [converter(source, field, column.field(i)) for i, (_, field) in enumerate(type.fields)]
            return _maps([key for key, _ in type.fields], parts)
    return _presented(type)


def _there(column: arrow.Array) -> Ids:
    return plain(column.cast(arrow.INT64).drop_null())


def _presented(type: Type) -> Convert:
    """What is no element is as SQL has it."""

    def convert(source: Source, column: arrow.Array) -> arrow.Array:
        shown = present(source, arrow.table([column], ["c0"]), (Column("c", "c", type),))
        return shown.column(0).combine_chunks()

    return convert


def _lists(items: Convert) -> Convert:
    def convert(source: Source, column: arrow.Array) -> arrow.Array:
        offsets = np.append(0, np.cumsum(column.lengths()))
        return arrow.list_array(offsets, items(source, column.flatten()), column.valid)

    return convert


def _maps(keys: Sequence[str], parts: Sequence[Convert]) -> Convert:
    def convert(source: Source, column: arrow.Array) -> arrow.Array:
        fields = [part(source, column.field(i)) for i, part in enumerate(parts)]
        return arrow.struct_array(fields, keys, column.valid)

    return convert


def _gathered(column: arrow.Array, structs: Callable[[arrow.Array], tuple[arrow.Array, Ids | None]]) -> arrow.Array:
    """Return the structs of a column's elements: those of the distinct ones, and which of them each is."""
    if not column.null_count:
        made, which = structs(column)
        return made if which is None else made.take(which)
    made, which = structs(column.drop_null())
    there = column.is_valid()
    places = np.zeros(len(column), np.int64)
    places[there] = np.arange(len(made)) if which is None else which
    return made.take(numbers(places, there))


# --- properties


@dataclass(frozen=True, slots=True)
class _Key:
    """A property of some elements: its name, SQL of its value of a row ``l`` of the literal table, and whether some
    element has several.
    """

    id: int
    name: str
    value: str
    many: bool

    @property
    def sql(self) -> str:
        """SQL of the values of a group of rows that are joined with those of the literal table."""
        found = f"list({self.value} ORDER BY l.lexical ASC, l.id ASC)" if self.many else f"any_value({self.value})"
        return f"{found} FILTER (e.key = {self.id})"


def _lists_of(item: str) -> str:
    """Return SQL of whether a literal is a list whose items, where they are not null, fit a regular expression."""
    return rf"regexp_full_match(l.lexical, '\[(({item}|null)(, *({item}|null))*)?\]')"


def _typed(item: str, datatype: str) -> str:
    """Return the regular expression of an item that is a literal of one of XML Schema's datatypes."""
    return rf'"{item}"\^\^<http://www.w3.org/2001/XMLSchema#{datatype}>'


_PLAIN_ITEMS = r"""regexp_replace(l.lexical, '(^|[^\\])"\^\^<[^>]*>', '\1"', 'g')"""
"""SQL of a list without the datatypes of its items: JSON."""
_TEXTS = f"""CASE WHEN json_valid({_PLAIN_ITEMS}) THEN from_json({_PLAIN_ITEMS}, '["VARCHAR"]') END"""
_NUMBER = r"-?(\d+(\.\d+)?([eE][+-]?\d+)?|INF)|NaN"
_DAY, _CLOCK = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(\.\d{1,6})?"
_LISTS = (
    (_lists_of(r"-?\d+"), "TRY_CAST(l.lexical AS BIGINT[])"),
    (_lists_of("true|false"), "TRY_CAST(l.lexical AS BOOLEAN[])"),
    (_lists_of(_NUMBER), "TRY_CAST(l.lexical AS DOUBLE[])"),
    (_lists_of(_typed(_DAY, "date")), f"TRY_CAST({_TEXTS} AS DATE[])"),
    (_lists_of(_typed(f"{_DAY}T{_CLOCK}", "dateTime")), f"TRY_CAST({_TEXTS} AS TIMESTAMP[])"),
    (_lists_of(_typed(_CLOCK, "time")), f"TRY_CAST({_TEXTS} AS TIME[])"),
    (f"json_valid({_PLAIN_ITEMS})", _TEXTS),
)
"""Whether a literal that is a list has items of one type, and SQL of such lists; at last, of all as texts."""


def _keys(source: Source, rows: str, name: Callable[[int], str]) -> list[_Key]:
    """Return the properties in rows of owner, key and value (SQL)."""
    is_list = f"l.kind = {int(Kind.LIST)}"
    lists = ", ".join(f"bool_and({test}) FILTER ({is_list})" for test, _ in _LISTS)
    digits = f"length(split_part({shortest_sql(VALUE_SQL[Kind.DECIMAL].format('l'))}, '.', 2))"
    items = ", ".join(f"bool_and(lists[{i}])" for i in range(1, len(_LISTS) + 1))
    found = source.connection.rows(
        f"SELECT key, bit_or(kinds), max(several) > 1, coalesce(max(digits), 0), [{items}] FROM ("
        f"SELECT e.owner, e.key, bit_or(CAST(1 AS BIGINT) << CAST(l.kind AS BIGINT)) AS kinds, count(*) AS several, "
        f"max({digits}) AS digits, [{lists}] AS lists FROM ({rows}) e JOIN _graphdb.literal l ON l.id = e.value "
        "GROUP BY e.owner, e.key) GROUP BY key ORDER BY key ASC"
    )
    keys = [_Key(key, name(key), _value(kinds, digits, lists), many) for key, kinds, many, digits, lists in found]
    return sorted(keys, key=lambda key: key.name)


_NUMBERS = {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}
_TYPED = {Kind.INTEGER, Kind.DOUBLE, Kind.BOOLEAN, Kind.DATE, Kind.DATETIME, Kind.ZONED, Kind.TIME}


def _value(mask: int, digits: int, lists: Sequence[bool | None]) -> str:
    """Return SQL of a value of a row ``l`` of the literal table, in one type for all kinds in ``mask``."""
    kinds = {kind for kind in Kind if mask >> kind & 1}
    if kinds == {Kind.LIST}:
        return next((sql for is_such, (_, sql) in zip(lists, _LISTS, strict=True) if is_such), "l.lexical")
    if len(kinds) == 1 and kinds <= _TYPED:
        return VALUE_SQL[next(iter(kinds))].format("l")
    if kinds <= _NUMBERS:
        if Kind.DOUBLE in kinds:
            return "l.number"
        decimal = VALUE_SQL[Kind.DECIMAL].format("l")
        return (
            f"TRY_CAST(CASE l.kind WHEN {int(Kind.INTEGER)} THEN l.integer ELSE {decimal} END AS DECIMAL(38, {digits}))"
        )
    return "l.lexical"


class _Properties:
    """The properties of a column's elements, which all of its batches have.

    Parameters
    ----------
    rows
        SQL of rows of owner, key and value; empty where there are none.
    """

    def __init__(self, source: Source, rows: str, name: Callable[[int], str]) -> None:
        self._rows = rows
        self._keys = _keys(source, rows, name) if rows else []
        lowered = {key.name.lower() for key in self._keys}
        self.is_struct = len(self._keys) <= _MOST_KEYS and len(lowered) == len(self._keys)

    @property
    def columns(self) -> str:
        """SQL of the columns with them, of a row ``p``: a comma before each."""
        return "".join(f", p.p{i}" for i in range(len(self._keys))) if self.is_struct else ""

    @property
    def join(self) -> str:
        """SQL of a join with the row ``p`` of an owner, ``w.number``."""
        if not self._keys or not self.is_struct:
            return ""
        values = ", ".join(f"{key.sql} AS p{i}" for i, key in enumerate(self._keys))
        found = f"SELECT e.owner, {values} FROM ({self._rows}) e JOIN _graphdb.literal l ON l.id = e.value"
        return f"LEFT JOIN ({found} GROUP BY e.owner) p ON p.owner = w.number"

    def column(self, columns: Sequence[arrow.Array], count: int, maps: Callable[[], Sequence[Any]]) -> arrow.Array:
        """Return the properties of so many elements: of their columns, or where there is none for each, of maps."""
        if not self.is_struct:
            return arrow.strings([json.dumps(map, ensure_ascii=False, default=str) for map in maps()])
        if not self._keys:
            return arrow.nulls(count)
        return arrow.struct_array(columns, [key.name for key in self._keys])


def _columns(table: arrow.Table) -> list[arrow.Array]:
    return [column.combine_chunks() for column in table.columns]


# --- vertices


_ABOUT = (
    f"SELECT w.number AS owner, t.label AS key, t.object AS value FROM _graphdb.triple t JOIN {_WANTED} w "
    f"ON w.id = t.subject WHERE t.object >= {LITERAL_BASE}"
)


def _vertex_view(source: Source, ids: Ids) -> Any:
    return source.connection.view(_WANTED, {"id": ids, "number": np.arange(len(ids))})


def _vertices(source: Source, ids: Ids) -> Convert:
    """Return what makes vertices structs, all of which are ``ids``."""
    ids = distinct(ids)[0]
    return _vertices_in_memory(source, ids) or _vertices_by_sql(source, ids)


def _vertices_by_sql(source: Source, ids: Ids) -> Convert:
    """Return what reads vertices, each once, from the database."""
    with _vertex_view(source, ids):
        properties = _Properties(source, _ABOUT, source.names.edge_name)

    def structs(source: Source, column: arrow.Array) -> tuple[arrow.Array, Ids]:
        some, which = distinct(plain(column.cast(arrow.INT64)))
        type_label = -1 if source.type_label is None else source.type_label
        labels = (
            f"SELECT t.subject, list(n.name ORDER BY n.name ASC) AS labels FROM _graphdb.triple t JOIN {_WANTED} w "
            f"ON w.id = t.subject JOIN {NAMES_VIEW} n ON n.id = t.object WHERE t.label = {type_label} "
            "GROUP BY t.subject"
        )
        with _vertex_view(source, some):
            table = source.connection.arrow(
                f"SELECT r.iri, coalesce(c.labels, []::VARCHAR[]) AS labels{properties.columns} FROM {_WANTED} w "
                f"LEFT JOIN _graphdb.resource r ON r.id = w.id LEFT JOIN ({labels}) c ON c.subject = w.id "
                f"{properties.join} ORDER BY w.number ASC"
            )
        iris, classes, *values = _columns(table)
        about = properties.column(values, len(some), lambda: [node.properties for node in fetch.nodes(source, some)()])
        return arrow.struct_array([iris, classes, about], ["id", "labels", "properties"]), which

    return lambda source, column: _gathered(column, lambda there: structs(source, there))


def _vertices_in_memory(source: Source, ids: Ids) -> Convert | None:
    """Return what gathers vertices, each once, from columns in memory; None where SQL has to."""
    found, properties = described_columns(source, ids), source.properties
    if found is None or properties is None:
        return None
    named: dict[str, EdgeLabel] = {}
    for label, (type, column) in found.items():
        if column.null_count < len(column):
            if not is_everywhere(type) or not _has_its_type(type, column):
                return None
            named[source.names.edge_name(label)] = source.names.edge_labels[label]
    named = dict(sorted(named.items()))
    if len({name.lower() for name in named}) < len(named):
        return None
    types = {name: properties.type_of(label) for name, label in named.items()}
    del found

    def structs(source: Source, column: arrow.Array) -> tuple[arrow.Array, Ids]:
        some, which = distinct(plain(column.cast(arrow.INT64)))
        about = arrow.nulls(len(some))
        if named:
            gathered = {name: whole(properties.gather(label, numbers(some))) for name, label in named.items()}
            about = arrow.struct_array([_shown(types[name], gathered[name]) for name in named], list(named))
        parts = [iris_of(source, some), _classes_of(source, some), about]
        return arrow.struct_array(parts, ["id", "labels", "properties"]), which

    later: list[Convert] = []

    def convert(source: Source, column: arrow.Array) -> arrow.Array:
        if source.properties is properties:
            return _gathered(column, lambda there: structs(source, there))
        if not later:  # columns in memory are those of another state by now
            later.append(_vertices_by_sql(source, ids))
        return later[0](source, column)

    return convert


def _has_its_type(type: Type, column: arrow.Array) -> bool:
    """Whether SQL finds the type of a property in some values, too: lists of texts without any would be others."""
    return type.base is not Base.LIST or column.flatten().null_count < len(column.flatten())


def _shown(type: Type, column: arrow.Array) -> arrow.Array:
    """Return a column of a property as SQL sees it: points in time without their offsets."""
    if type.base is not Base.MOMENT:
        return column
    moments, there = column.field("moment"), column.valid
    valid = moments.valid if there is None else there if moments.valid is None else there & moments.valid
    return arrow.Array(moments.type, len(column), valid, moments.data)


def _classes_of(source: Source, ids: Ids) -> arrow.Array:
    """Return the names of the labels of some vertices (sorted, each once): sorted lists."""
    subjects, classes = classes_of(source, ids)
    found, which = distinct(classes)
    spellings = source.names.spellings
    written = sorted((spellings[label], i) for i, label in enumerate(found.tolist()) if label in spellings)
    rank = np.full(len(found), -1)
    rank[[i for _, i in written]] = np.arange(len(written))
    ranks = rank[which]
    known = ranks >= 0
    subjects, ranks = subjects[known], ranks[known]
    order = np.lexsort((ranks, subjects))
    offsets = np.searchsorted(subjects[order], np.append(ids, LITERAL_BASE))
    names = arrow.strings([name for name, _ in written])
    return arrow.list_array(offsets, taken(names, ranks[order]))


# --- edges


def _edge_view(source: Source, edges: Sequence[Ids]) -> Any:
    columns = {name: np.ascontiguousarray(part) for name, part in zip(_EDGE, edges, strict=True)}
    return source.connection.view(_WANTED, {"number": np.arange(len(edges[0])), **columns})


_DESCRIBED = (
    "SELECT w.number AS owner, q.key, q.value FROM _graphdb.edge_property q "
    f"JOIN {_WANTED} w USING ({', '.join(_EDGE)})"
)


_Structs = Callable[[Source, Sequence[Ids], arrow.Provenance | None], tuple[arrow.Array, Ids | None]]
"""Returns structs of edges (label, start, end, ordinal; their provenance), and which of them each is; None where each
has its own.
"""


def _edge_structs(source: Source, edges: Sequence[Ids], provenance: arrow.Provenance | None = None) -> _Structs:
    """Return what makes edges structs, all of which are ``edges``."""
    found = _in_memory(source, edges, provenance)
    if found is not None:
        return found
    about = _read(source, edges)

    def structs(source: Source, edges: Sequence[Ids], _: arrow.Provenance | None) -> tuple[arrow.Array, Ids]:
        some, which = distinct_edges(edges)
        return _packed(some, about(source, some)), which

    return structs


def _packed(edges: Sequence[Ids], about: Sequence[arrow.Array]) -> arrow.Array:
    """Return structs of edges, of their types, starts, ends and properties."""
    return arrow.struct_array([numbers(edge_numbers(*edges)), *about], ["id", "type", "start", "end", "properties"])


def _in_memory(source: Source, edges: Sequence[Ids], provenance: arrow.Provenance | None) -> _Structs | None:
    """Return what gathers them from columns in memory; None where these are not there."""
    found = None if source.edges is None else source.edges.described_by(edges, provenance)
    if found is None:
        return None
    numbers_of, every = found.numbers, found.every
    named: dict[str, arrow.Array] = {}
    for name, (type, column) in sorted((source.names.written(iri), each) for iri, each in found.properties.items()):
        if _some(column, every):
            if not _has_its_type(type, taken(column, every)):
                return None
            named[name] = _shown(type, column)
    if not named or len(named) > _MOST_KEYS or len({name.lower() for name in named}) < len(named):
        return None

    def structs(
        source: Source, some: Sequence[Ids], provenance: arrow.Provenance | None
    ) -> tuple[arrow.Array, Ids | None]:
        at = every if all(map(operator.is_, some, edges)) else numbers_of(some, provenance)
        assert at is not None
        which = None
        if not (at[1:] > at[:-1]).all() and 2 * np.count_nonzero(np.bincount(at)) < len(at):  # most come again
            at, which = number_integers(at)
            firsts = np.empty(len(at), np.int64)
            firsts[which[::-1]] = np.arange(len(which) - 1, -1, -1)
            some = [part[firsts] for part in some]
        values = [taken(column, at) for column in named.values()]
        return _packed(some, [*_ends(source, some), arrow.struct_array(values, list(named))]), which

    return structs


def _some(column: arrow.Array, at: Ids) -> bool:
    """Whether a column has values at some places."""
    return bool(len(at)) if column.valid is None else bool(column.valid[at].any())


def _ends(source: Source, edges: Sequence[Ids]) -> list[arrow.Array]:
    """Return the types, starts and ends of edges."""
    labels, starts, ends, _ = edges
    if not source.lookup.ready("resources", wanted=2 * len(ends)) or (ends >= LITERAL_BASE).any():
        with _edge_view(source, edges):
            return _columns(source.connection.arrow(f"SELECT {_ENDS} ORDER BY w.number ASC"))
    known, which = distinct(labels)
    names = arrow.strings([source.names.edge_name(label) for label in known.tolist()])
    return [taken(names, which), *(source.lookup.iris(numbers(ids)) for ids in (starts, ends))]


_ENDS = (
    f"n.name, s.iri, coalesce(o.iri, x.lexical) AS o FROM {_WANTED} w LEFT JOIN {NAMES_VIEW} n ON n.id = w.label "
    "LEFT JOIN _graphdb.resource s ON s.id = w.subject LEFT JOIN _graphdb.resource o ON o.id = w.object "
    "LEFT JOIN _graphdb.literal x ON x.id = w.object"
)


def _read(source: Source, edges: Sequence[Ids]) -> Callable[[Source, Sequence[Ids]], list[arrow.Array]]:
    """Return what reads types, starts, ends and properties of edges from the database."""
    with _edge_view(source, edges):
        described = np.isin(edges[0], list(source.described)).any()
        properties = _Properties(
            source, _DESCRIBED if described else "", lambda key: source.names.written(source.key_iri(key))
        )

    def about(source: Source, edges: Sequence[Ids]) -> list[arrow.Array]:
        with _edge_view(source, edges):
            ends = _ENDS.replace(" FROM", f"{properties.columns} FROM", 1)
            table = source.connection.arrow(f"SELECT {ends} {properties.join} ORDER BY w.number ASC")
        type, start, end, *values = _columns(table)
        found = properties.column(values, len(edges[0]), lambda: fetch.facts(source, edges))
        return [type, start, end, found]

    return about


def _edges(source: Source, column: arrow.Array) -> Convert:
    structs = _edge_structs(source, edge_columns(column), column.field("label").provenance)

    def some(source: Source, there: arrow.Array) -> tuple[arrow.Array, Ids | None]:
        return structs(source, edge_columns(there), there.field("label").provenance)

    return lambda source, column: _gathered(column, lambda there: some(source, there))


# --- paths


def _paths(source: Source, column: arrow.Array) -> Convert:
    whole = Walks.of(column.drop_null())
    nodes, edges = _vertices(source, whole.vertices), _edge_structs(source, whole.edges)

    def structs(source: Source, column: arrow.Array) -> tuple[arrow.Array, Ids]:
        paths = Walks.of(column)
        count = len(paths.starts) - 1
        made, which = edges(source, paths.edges, None)
        lists = [
            arrow.list_array(paths.starts, nodes(source, numbers(paths.vertices))),
            arrow.list_array(paths.starts - np.arange(count + 1), made if which is None else made.take(which)),
        ]
        return arrow.struct_array(lists, ["nodes", "relationships"]), np.arange(count)

    return lambda source, column: _gathered(column, lambda there: structs(source, there))
