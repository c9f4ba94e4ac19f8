"""Edges that have properties or parallel ones: their numbers, and their properties as columns in that order.

Everything here is derived from the tables ``edge`` and ``edge_property`` when a query first asks, and belongs to one
state of the data; the next state takes over what did not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import batches
from graphdb.common.errors import NotSupportedError
from graphdb.common.values.terms import Kind
from graphdb.common.values.types import NULL, VALUE, Base, Type, bases_of_kinds, list_of, literal_sql, type_of_kinds
from graphdb.grammar import syntax as ast
from graphdb.pattern.names import ABSENT, Names
from graphdb.snapshot.columns import BATCH, read_values
from graphdb.snapshot.edge_values import DescribedEdges, EdgeValues, numbered
from graphdb.snapshot.exact_types import Form, form_among
from graphdb.snapshot.properties import PropertyColumn
from graphdb.storage.arrays.arrow import table_of
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.small_joins import among, listed_rows
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.arrays.texts import taken
from graphdb.storage.file.verify import verify_kinds
from graphdb.storage.graph.changes import Changes
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.edges import EdgeTable
from graphdb.storage.persisted.room import NoRoom
from graphdb.storage.persisted.store import NOTHING, StateStructures
from graphdb.storage.triples import TripleStore

Ints = NDArray[np.int64]

_SEVERAL = 16
"""Edges of some labels for each whose properties are wanted, at most, for which all are read into columns."""

_TIMES = 4
"""Times that the properties of a handful of edges are looked up before all of their label are read into columns."""

_CELLS = 1 << 24
"""Values of all properties of these edges, at most."""

_ONE_OF = 64
"""Edges of a table for each whose values of a property are wanted, at least, for which these alone are read, …"""

_MOST_LOOKED_UP = 4096
"""… and as many, at most, …"""

LOOKS = 2
"""… the first times, …"""

_LARGE = 50_000
"""… of a table of more edges than that."""

Written: TypeAlias = "dict[tuple[int, ...], int]"
"""Triples (label, subject, object) that were written, or edges of them, and whether they are there since."""

_GONE, _CAME, _AS_BEFORE = range(3)

_HANDFUL = 64
"""Triples that are written of some labels, at most, where their edges are not read anew."""

_EVERYWHERE = {
    Base.INTEGER, Base.FLOAT, Base.STRING, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.MOMENT, Base.TIME
}  # fmt: skip
"""Types of properties all of whose values are of one kind, and of the same type among some edges as among all."""

_VALUES_OF = "FROM _graphdb.edge_property WHERE key = {}"
"""The values of a property of edges, …"""
_VALUES = f"SELECT value {_VALUES_OF}"
"""… and the literals that these are."""

_SOURCE = "_graphdb.edge_property e JOIN _graphdb.literal l ON l.id = e.value WHERE e.key = {}"
"""Edges with the literals that are their values of a property."""


class Edges:
    """The edges of the described labels of one state of the data.

    Parameters
    ----------
    described
        The edge labels of which some edge has properties or a parallel one.
    parallel
        Those with parallel edges: their triples do not tell how many edges there are.
    memory
        Bytes of memory that one array may take: what is larger is mapped from a file.
    persisted
        What was derived of the same state before.
    """

    def __init__(
        self,
        connection: Connection,
        graph: DataGraph,
        store: TripleStore,
        described: frozenset[int],
        parallel: frozenset[int],
        memory: int,
        persisted: StateStructures = NOTHING,
    ) -> None:
        self._memory = memory
        self.described = described
        self.parallel = parallel
        self._connection = connection
        self._graph = graph
        self._store = store
        self._persisted = persisted
        self._tables: dict[tuple[int, ...], EdgeTable] = {}
        self._behind: dict[tuple[int, ...], tuple[EdgeTable, Written]] = {}
        """Tables of an earlier state, among the vertices of this one, and what was written of their labels since."""
        self._columns: dict[int, PropertyColumn] = {}
        self._forms: dict[int, Form | None] = {}
        self._kinds: dict[int, Ints] = {}
        """What was read of the values for these columns."""
        self._values: dict[tuple[tuple[int, ...], int], arrow.Array] = {}
        self._keys: Mapping[str, int] | None = None
        self._keys_of: Mapping[int, frozenset[int]] = {}
        """The keys that edges of a label have, by label: of those that are in ``_keys``."""
        self._wanted: Counter[tuple[int, ...]] = Counter()
        """Edges whose properties were looked up, by the labels of all that they were asked for with."""
        self._looks: Counter[int] = Counter()
        """How often values of some edges alone were read, by key."""
        self._made: dict[int, str] = {}
        """The temporary tables of columns that SQL joined, by key."""
        self._last: tuple[int, EdgeValues] | None = None
        """A key, and its values."""

    def table(self, labels: tuple[int, ...]) -> EdgeTable:
        """The edges of some labels, numbered."""
        found = self._tables.get(labels)
        if found is None:
            behind = self._behind.pop(labels, None)
            if behind is None:
                found = self._persisted.get_or_derive(("edges", labels), lambda: self._table(labels), self._memory)
            else:
                found = self._caught_up(labels, *behind)
            self._tables[labels] = found
        return found

    def _caught_up(self, labels: tuple[int, ...], table: EdgeTable, written: Written) -> EdgeTable:
        """Return the edges of some labels by those that there were before a handful of triples was written."""
        triples = np.array([*written], np.int64).reshape(-1, 3)

        def joined(rows: Ints) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
            starts, ends = self._store.ends({"subject": rows[:, 1], "object": rows[:, 2]})
            dtype = self._graph.dtype
            return rows[:, 0].copy(), np.ascontiguousarray(starts, dtype), np.ascontiguousarray(ends, dtype)

        asked = joined(triples)
        before, now = table.find(*asked)[0] >= 0, np.array([*written.values()])
        there = triples[np.where(now == _AS_BEFORE, before, now == _CAME)]
        edges = np.column_stack([there, np.zeros(len(there), np.int64)])
        if not self.parallel.isdisjoint(labels):
            given, parameters = listed_rows(("label", "subject", "object"), there)
            sql = f"SELECT label, subject, object, ordinal FROM _graphdb.edge SEMI JOIN {given}"
            rows = self._connection.columns(f"{sql} AS given USING (label, subject, object)", parameters)
            described = np.column_stack([*rows.values()]).astype(np.int64)
            edges = np.concatenate([described, edges[~among(there, described[:, :3])]])
        return table.with_edges_of(asked, (*joined(edges), edges[:, 3]), self._graph.vertices)

    def _table(self, labels: tuple[int, ...]) -> EdgeTable:
        graph, store = self._graph, self._store
        if self.parallel.isdisjoint(labels):
            return EdgeTable.of_triples(labels, store.edges, graph.vertices, graph.dtype)
        return EdgeTable.read(labels, self._connection.columns, store.ends, graph.vertices, graph.dtype)

    def columns(self, table: EdgeTable) -> dict[str, NDArray[np.int64]]:
        """Return the edges of a table as SQL knows them: label, start, end (terms) and ordinal."""
        ends = {"start": self._store.to_terms(table.starts), "end": self._store.to_terms(table.ends)}
        ordinals = np.zeros(len(table), np.int64) if table.ordinals is None else table.ordinals.astype(np.int64)
        return {"label": table.labels[table.kind], **ends, "ordinal": ordinals}

    # --- properties

    def key(self, key: ast.KeyName, names: Names, text: str) -> int:
        """Return the id of a property key of edges; :data:`~graphdb.pattern.names.ABSENT` where nothing has it.

        Raises
        ------
        BindError
            Nothing has it, and the names came with RDF: then it is a mistake.
        """
        return names.key(key.words, self.keys, text)

    @property
    def keys(self) -> Mapping[str, int]:
        """The keys that edges have, by IRI."""
        if self._keys is None:
            found: dict[int, set[int]] = {}
            names: dict[str, int] = {}
            if self.described:
                pairs = "SELECT DISTINCT label, key FROM _graphdb.edge_property"
                sql = f"SELECT r.iri, e.key, e.label FROM ({pairs}) e JOIN _graphdb.resource r ON r.id = e.key"
                for iri, key, label in self._connection.rows(f"{sql} ORDER BY e.key ASC"):
                    names[iri] = key
                    found.setdefault(label, set()).add(key)
            self._keys_of = {label: frozenset(keys) for label, keys in found.items()}
            self._keys = names
        return self._keys

    def keys_of(self, labels: Iterable[int]) -> frozenset[int]:
        """Return the keys of the properties that some edges of these labels have."""
        found = self._keys_of if self.keys else {}
        return frozenset[int]().union(*(found.get(label, ()) for label in labels))

    def iri(self, key: int) -> str:
        """Return the IRI of a key that edges have."""
        return next(iri for iri, id in self.keys.items() if id == key)

    def column(self, key: int) -> PropertyColumn:
        """Return the values of a property: ``relation`` is SQL for (label, start, end, ordinal, value).

        Raises
        ------
        NotSupportedError
            Some are lists or times that SQL does not hold; lists and durations of one form it does.
        """
        if key == ABSENT or not self.described:
            return PropertyColumn("", NULL, False)
        if key not in self._columns:
            self._columns[key] = self._column(key)
        return self._columns[key]

    def _column(self, key: int) -> PropertyColumn:
        kinds, digits, many = self.kinds(key).tolist()
        if not kinds:
            return PropertyColumn("", NULL, False)
        form = self._form(key)
        single = type_of_kinds(kinds, digits) if form is None else form.type
        source, value, group = _SOURCE.format(int(key)), self._value_sql(key, single), ""
        if many:
            value, group = f"list({value} ORDER BY l.lexical ASC, l.id ASC)", " GROUP BY ALL"
        edge = 'e.label AS label, e.subject AS "start", e.object AS "end", e.ordinal AS ordinal'
        relation = f"(SELECT {edge}, {value} AS value FROM {source}{group})"
        bases = bases_of_kinds(kinds) if form is None else None
        return PropertyColumn(relation, list_of(single) if many else single, bool(many), bases)

    def _form(self, key: int) -> Form | None:
        """Return the form of a property's values that are lists or durations, one for each edge that has it."""
        if key not in self._forms:
            kinds, _, many = self.kinds(key).tolist()
            found = None if many else form_among(self._connection, kinds, _VALUES.format(int(key)))
            self._forms[key] = found
        return self._forms[key]

    def _value_sql(self, key: int, single: Type) -> str:
        """Return SQL of a single value of a property, over the alias ``l`` of the literal table."""
        form = self._form(key)
        return literal_sql("l", single, int(self.kinds(key)[0])) if form is None else form.value

    def counts(self) -> dict[int, int]:
        """Return how many values each key has."""
        sql = "SELECT key, count(*) FROM _graphdb.edge_property GROUP BY key"
        return dict(self._connection.rows(sql)) if self.described else {}

    def kinds(self, key: int) -> Ints:
        """Return the kinds of a property's values as bits, the digits of decimals, and whether an edge has several."""
        if key not in self._kinds:
            self._kinds[key] = self._persisted.get_or_derive(("edge kinds", key), lambda: self._kinds_of(key))
        return self._kinds[key]

    def _kinds_of(self, key: int) -> Ints:
        rows = self._rows(key)
        if not len(rows.values):
            return np.zeros(3, np.int64)
        ends = {"first": int(rows.values.min()), "last": int(rows.values.max())}
        sql = "SELECT DISTINCT kind FROM _graphdb.literal WHERE id BETWEEN $first AND $last"
        found = np.array(self._connection.rows(sql, ends), np.uint8).ravel()
        if len(found) != 1:  # others are between
            _, read = read_values(self._connection, rows.values, _VALUES.format(int(key)), "l.kind")
            found = plain(read)
        verify_kinds(found)
        kinds, digits = int(np.bitwise_or.reduce(1 << found.astype(np.int64))), 0
        if kinds >> Kind.DECIMAL & 1:
            scale = f"CASE WHEN l.kind = {int(Kind.DECIMAL)} THEN length(split_part(l.text, '.', 2)) END"
            sql = f"SELECT least(coalesce(max({scale}), 18), 18) FROM {_SOURCE.format(int(key))}"
            ((digits,),) = self._connection.rows(sql)
        return np.array([kinds, digits, rows.several(self._graph.vertices)])

    def _rows(self, key: int, labels: tuple[int, ...] | None = None) -> EdgeValues:
        """Return the values of a property, of edges of some labels; those of the last key are cached."""
        if self._last is not None and self._last[0] == key:
            return self._last[1] if labels is None else self._last[1].of(np.array(labels, np.int64))
        if labels is not None:
            return self._read(f"{_VALUES_OF.format(int(key))} AND label IN ({_listed(labels)})")
        self._last = key, self._read(_VALUES_OF.format(int(key)))
        return self._last[1]

    def _read(self, where: str, given: Mapping[str, object] | None = None) -> EdgeValues:
        columns = ["label", "subject", "object", "value"]
        if self.parallel:
            columns.append("ordinal")
        found = None if given else self._streamed(columns, where)
        if found is None:
            table = self._connection.arrow(f"SELECT {', '.join(columns)} {where}", given)
            found = {name: plain(table.column(name)) for name in columns}
        if not self.parallel:
            found["ordinal"] = np.broadcast_to(np.int64(0), len(found["value"]))
        starts, ends = self._store.ends(found)
        self._store.ids.resource(found["label"], "label")
        self._store.ids.literal(found["value"], "value")
        return EdgeValues(found["label"], starts, ends, found["ordinal"], found["value"])

    def _streamed(self, columns: list[str], where: str) -> dict[str, Ints] | None:
        """Read columns where there is room for them as they come; None where they are few, or there is none."""
        if 8 * len(columns) * sum(self._store.statistics(label).triples for label in self.described) <= self._memory:
            return None
        ((count,),) = self._connection.rows(f"SELECT count(*) {where}")
        if 8 * len(columns) * count <= self._memory:
            return None
        sql, room = f"SELECT {', '.join(columns)} {where}", self._persisted.room(self._memory)
        try:
            with self._connection.lock, self._connection.guard() as raw, batches(raw, sql, BATCH) as rows:
                parts = ([plain(part) for part in batch.columns] for batch in rows)
                return dict(zip(columns, room.columns(parts, count, len(columns)), strict=True))
        except NoRoom:
            return None

    def relation(self, key: int) -> str:
        """Return the relation of a property's :meth:`column`, made into a table the first time."""
        found = self._made.get(key)
        if found is None:
            rows = self.column(key).relation
            with self._connection.guard() as raw:
                if self._connection.transactions.inside:  # its ROLLBACK would take a table away
                    return rows
                table = self._connection.temporary()
                with self._connection.temporary_table(table) as keep:
                    raw.execute(f"CREATE TEMP TABLE {table} AS FROM {rows}")
                    keep()
                    self._made[key] = found = f"temp.{table}"
        return found

    def follow(self, former: Edges, changes: Sequence[Changes]) -> None:
        """Take over what an earlier state has of edges of labels that did not change; ``former`` is used no more."""
        graph, before = self._graph, former._graph
        rows = frozenset[int]().union(*(change.edges.come | change.edges.gone for change in changes))
        touched = rows.union(*(change.labels for change in changes))
        if graph.dtype == before.dtype and all(change.counted is not None for change in changes):
            behind: list[tuple[tuple[int, ...], EdgeTable, Written]] = [(k, t, {}) for k, t in former._tables.items()]
            behind += [(labels, *each) for labels, each in former._behind.items()]
            for labels, table, earlier in behind:
                written = _written(labels, earlier, changes)
                if touched.isdisjoint(labels) and not earlier:
                    self._tables[labels] = table.moved(before.sizes, graph.sizes)
                elif written is not None:
                    self._behind[labels] = table.moved(before.sizes, graph.sizes), written
            if not rows:  # otherwise properties may have values of other types, and keys are new
                self._columns, self._keys, self._keys_of = former._columns, former._keys, former._keys_of
                self._forms = former._forms
                self._made, former._made = former._made, {}
                self._values = {at: values for at, values in former._values.items() if at[0] in self._tables}
        former.drop()

    def drop(self) -> None:
        """Drop all tables, because the data changed."""
        self._connection.discard(self._made.values())
        self._made.clear()
        self._last = None

    def plain(self, key: int) -> bool:
        """Whether the values of a property are read as an array: one of a plain type for each edge that has it."""
        try:
            column = self.column(key)
        except NotSupportedError:
            return False
        return not column.many and column.type not in (VALUE, NULL)

    def values(self, labels: tuple[int, ...], key: int) -> arrow.Array:
        """Return the values of a :meth:`plain` property in the order of the table of some labels."""
        found = self._values.get((labels, key))
        if found is None:
            found = self._persisted.get_or_derive(
                ("values", labels, key), lambda: self._gathered(labels, key), self._memory
            )
            self._values[labels, key] = found
        return found

    def values_of(self, labels: tuple[int, ...], key: int, edges: Ints) -> arrow.Array:
        """Return the values of a :meth:`plain` property of edges, by their numbers in the table of some labels, or -1.

        Where they are a small share, theirs alone are read, the first times: texts are most of what reading all takes.
        """
        edges_there = len(self.table(labels))
        most = min(edges_there // _ONE_OF, _MOST_LOOKED_UP) if edges_there > _LARGE else 0
        few = (labels, key) not in self._values and len(edges) <= most
        if few and self._looks[key] < LOOKS and not self._persisted.has(("values", labels, key)):
            self._looks[key] += 1
            if (found := self._looked_up(labels, key, edges)) is not None:
                return found
        return taken(self.values(labels, key), edges)

    def _looked_up(self, labels: tuple[int, ...], key: int, edges: Ints) -> arrow.Array | None:
        """Return what :meth:`values_of` does, from the file; None where the rows are not found by their ends alone."""
        table = self.table(labels)
        known = edges[edges >= 0]
        if not len(known):
            return None
        starts, ends = (unique(self._store.to_terms(each[known])).tolist() for each in (table.starts, table.ends))
        where = f"{_VALUES_OF.format(int(key))} AND label IN ({_listed(labels)})"
        some = " AND subject IN (SELECT unnest($starts::BIGINT[])) AND object IN (SELECT unnest($ends::BIGINT[]))"
        rows = self._read(where + some, {"starts": starts, "ends": ends})
        place = rows.places_of(table, self._graph.vertices, known)
        if place is None:
            return None
        at = np.full(len(edges), -1, np.int64)
        at[edges >= 0] = place
        if not len(wanted := rows.values[at[there := at >= 0]]):
            return None
        same_sql = f"SELECT unnest([{', '.join(map(str, unique(wanted).tolist()))}])"
        standing = np.full(len(at), -1, np.int64)
        value_sql = self._value_sql(key, self.column(key).type)
        standing[there], found = read_values(self._connection, wanted, same_sql, value_sql)
        return taken(found, standing)

    def _gathered(self, labels: tuple[int, ...], key: int) -> arrow.Array:
        """Return what :meth:`values` does, from the file: by a join where there are parallel edges."""
        table, rows = self.table(labels), self._rows(key, labels)
        at = rows.places_of(table, self._graph.vertices)
        if at is not None and len(wanted := rows.values[at[there := at >= 0]]):
            value_sql = self._value_sql(key, self.column(key).type)
            same_sql = f"{_VALUES.format(int(key))} AND label IN ({_listed(labels)})"
            standing = np.zeros(len(at), np.int32)
            standing[there], found = read_values(self._connection, wanted, same_sql, value_sql)
            return found.take(numbers(standing, there))
        view = self._connection.temporary()
        with self._connection.view(view, table_of({**self.columns(table), "number": np.arange(len(table))})):
            values = self._connection.arrow(
                f"SELECT n.number, p.value FROM {view} n JOIN {self.column(key).relation} p "
                'ON p.label = n.label AND p."start" = n."start" AND p."end" = n."end" AND p.ordinal = n.ordinal'
            )
        at = np.full(len(table), -1, np.int64)
        at[plain(values.column("number"))] = np.arange(values.num_rows)
        return values.column("value").combine_chunks().take(numbers(at, at >= 0))

    def described_by(self, edges: Sequence[Ints], provenance: arrow.Provenance | None = None) -> DescribedEdges | None:
        """Return the properties of edges (label, start, end as terms, ordinal; their provenance) as columns in memory.

        None where that takes more than to ask SQL for those of these edges, or some property has values of several
        types, or several for an edge.
        """
        labels = tuple(numbered(edges[0])[0].tolist())
        if not labels or not self.described.issuperset(labels):
            return None
        has = self.keys_of(labels)
        keys = {iri: key for iri, key in self.keys.items() if key in has}
        if not keys or not self._pays(labels, keys.values(), len(edges[0])):
            return None
        if not all(self.plain(key) and is_everywhere(self.column(key).type) for key in keys.values()):
            return None
        columns = {iri: (self.column(key).type, self.values(labels, key)) for iri, key in keys.items()}
        found = DescribedEdges(columns, self.table(labels), self._store)
        every = found.numbers(edges, provenance)
        return None if every is None else replace(found, every=every)

    def _pays(self, labels: tuple[int, ...], keys: Collection[int], count: int) -> bool:
        """Whether all values of some labels' edges are to be columns, by how many edges were asked for, and how often.

        Ski rental: SQL reads all of a table for a handful, too.
        """
        if all((labels, key) in self._values or self._persisted.has(("values", labels, key)) for key in keys):
            return True
        most = sum(self._store.statistics(label).triples for label in labels)
        if most * len(keys) > _CELLS:
            return False
        self._wanted[labels] += max(count * _SEVERAL, most // _TIMES)
        return self._wanted[labels] >= most


def _written(labels: tuple[int, ...], earlier: Written, changes: Sequence[Changes]) -> Written | None:
    """Return what was written of the triples of some labels, and ``earlier``; None where that is not a handful."""
    found = dict(earlier)
    for change in changes:
        if change.edges.triples is None:
            return None
        for triples, state in ((change.edges.triples, None), (change.removed, _GONE), (change.added, _CAME)):
            own = triples[np.isin(triples[:, 0], labels)]
            if len(own) > _HANDFUL:
                return None
            for triple in map(tuple, own.tolist()):
                found[triple] = found.get(triple, _AS_BEFORE) if state is None else state
    return found if len(found) <= _HANDFUL else None


def is_everywhere(type: Type) -> bool:
    """Whether some values of a property have the type that all have, or lists of such."""
    return (type if type.base is not Base.LIST or type.element is None else type.element).base in _EVERYWHERE


def _listed(labels: tuple[int, ...]) -> str:
    """Return labels as SQL lists them: ids are numbers."""
    return ", ".join(str(int(label)) for label in labels)
