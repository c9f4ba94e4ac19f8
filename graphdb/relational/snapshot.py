"""What a statement sees of the database: one state of its names and data, taken whole or followed through changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.out_of_range import OutOfRange
from graphdb.common.values.terms import Kind
from graphdb.pattern.hierarchy import Hierarchy
from graphdb.pattern.names import Names
from graphdb.procedures.registry import Procedures
from graphdb.relational.arguments import Arguments
from graphdb.relational.costed_edges import CostedEdges
from graphdb.relational.pattern_plans import PatternPlans
from graphdb.snapshot.edges import Edges
from graphdb.snapshot.key_index import KeyIndexes
from graphdb.snapshot.properties import Properties
from graphdb.snapshot.terms import Lookup
from graphdb.sql.computing import Computing
from graphdb.sql.from_clause import NAMES_VIEW, Beside, Deleted, Rows
from graphdb.sql.long_texts import SHORTEST, LongTexts, is_long
from graphdb.sql.parameters import Parameters
from graphdb.storage.arrays.arrow import names_table
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.catalog import PREFIXES, Catalog, EdgeLabel, VertexLabel
from graphdb.storage.dictionary.terms import names_ahead, term_counts
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.graph.changes import Changes, Sizes
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.persisted.store import NOTHING, StateStructures
from graphdb.storage.statistics.known import KnownStatistics
from graphdb.storage.triples import TripleStore

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.statistics.degrees import Degrees

_DECIMAL = 1 << Kind.DECIMAL


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a statement sees of the database: one state of names and data."""

    connection: Connection
    names: Names
    store: TripleStore
    graph: DataGraph
    properties: Properties
    keys: KeyIndexes
    lookup: Lookup
    edges: Edges
    ahead: int
    """How far the numbers in names of blank nodes are ahead of their ids."""
    degrees: Degrees | None = None
    """What is known of them for writing."""
    procedures: Procedures = field(default_factory=Procedures)
    """What CALL knows."""
    computing: Callable[[], Computing] | None = None
    """Who computes what SQL cannot express, for the statement under way."""
    deleted: Deleted | None = None
    """What the statement under way has deleted."""
    careful: bool = True
    """Whether arithmetic is taken to fail where numbers may be out of range."""
    told: OutOfRange | None = None
    """Who is told of such numbers by a statement without care, if an error would end its transaction."""
    ids: dict[str, int | None] = field(default_factory=dict)
    """IRIs that were looked up, with their ids; None for those that the database lacks."""
    plans: PatternPlans = field(default_factory=PatternPlans)
    """Plans of patterns over this state of the data."""
    costed: CostedEdges = field(default_factory=lambda: CostedEdges(0))
    """Edges with costs that this state of the data says."""

    def lenient(self) -> Snapshot:
        """Return it, where a name that nothing has is no mistake: see :attr:`.Names.open`."""
        return self if self.names.open else replace(self, names=self.names.lenient())

    def catch_up(self, threads: int) -> None:
        """Bring now up to date what takes in a change in about the time that it takes itself; on as many threads."""
        self.graph.catch_up(threads)
        self.properties.catch_up(self.names.edge_labels)
        self.keys.catch_up()

    def rows(
        self,
        parameters: Parameters,
        text: str,
        arguments: Mapping[str, object],
        *,
        beside: Beside | None = None,
        after: Rows | None = None,
        seldom: bool = False,
    ) -> Rows:
        """Return what joins what the expressions of a statement ask of the graph; see :class:`Rows`."""
        return Rows(
            parameters,
            self.store.type_label,
            self.properties,
            self.edges,
            self.deleted,
            beside,
            after,
            seldom=seldom,
            careful=self.careful,
            told=self.told,
            long_texts=partial(self._long_texts, text, arguments),
        )

    def _long_texts(self, text: str, arguments: Mapping[str, object]) -> LongTexts | None:
        """Return who computes functions of long texts for a statement; None where it meets none, or SQL stays alone."""
        if self.computing is None:
            return None
        given = [text, *(arguments.unnoted if isinstance(arguments, Arguments) else arguments).values()]
        listed = any(type(value) is list and value and type(value[0]) is str for value in given)
        long = listed or any(map(is_long, given)) or self.properties.longest_text() >= SHORTEST
        return self.connection.callee(LongTexts) if long else None

    @property
    def known_statistics(self) -> KnownStatistics:
        """What writing need not ask the file."""
        names, sizes = self.names, self.graph.sizes
        labels = names.edge_labels.values()
        return KnownStatistics(
            (sizes.resources, sizes.literals),
            self.ahead,
            self.store.type_label,
            {label.id: label.counts for label in labels},
            {label.id: label.vertices for label in (*names.vertex_labels.values(), *names.hidden.values())},
            self.degrees,
        )


@dataclass(slots=True, eq=False)
class Predecessor:
    """A snapshot, and what changed since: the next one takes over what was derived for it."""

    snapshot: Snapshot
    changes: list[Changes] = field(default_factory=list)
    is_taken_over: bool = False
    """Whether the next one began to: what an interrupt left half done is not taken over again."""


def take_snapshot(
    connection: Connection,
    catalog: Catalog,
    graph_bytes: int,
    former: Predecessor | None = None,
    *,
    subclasses: bool = False,
    empty: bool = False,
    degrees: Degrees | None = None,
    procedures: Procedures | None = None,
    persisted: StateStructures = NOTHING,
) -> Snapshot:
    """Read names and sizes, with ``subclasses`` the hierarchy of classes, and make the written names visible to SQL.

    What was derived for the ``former`` snapshot is followed.  The tables are as they were created where ``empty``:
    nothing is read then.  Writing gets ``degrees``, and statements call ``procedures``.  What was ``persisted`` of the
    same state is not derived again.
    """
    names = None if former is None or subclasses else _followed(connection, former)
    if names is not None and former is not None:
        before = former.snapshot
        reported = [change.counted.sizes for change in former.changes if change.counted is not None]
        sizes = next((size for size in reversed(reported) if size is not None), before.graph.sizes)
        described, parallel = _edges_followed(connection, former)
        scales, ahead = before.properties.scales, before.ahead
    elif empty and not subclasses:
        names = Names(PREFIXES, (), ())
        described = parallel = frozenset()
        scales, sizes, ahead = {}, Sizes(0, 0), 0
    else:
        with connection.guard() as raw:
            hierarchy = Hierarchy(*catalog.subclasses()) if subclasses else None
            names = Names(catalog.prefixes(), *catalog.labels(), hierarchy, partial(_classes_above, catalog))
            described, parallel = _edges_counted(raw)
            scales, sizes, ahead = None, Sizes(*term_counts(raw)), names_ahead(raw)
    spellings = None if former is None else former.snapshot.names.spellings
    if spellings is not None and not spellings.keys() <= names.spellings.keys():
        names.spellings = spellings | names.spellings  # rows may have what the graph has no more
    if names.spellings is not spellings:
        _show(connection, names)
    decimal = frozenset([label.id for label in names.edge_labels.values() if label.kinds & _DECIMAL])
    if scales is None or (decimal and (former is None or _touched(former.changes, decimal))):
        scales = _scales(connection) if decimal else {}
    room = partial(persisted.room, graph_bytes // 8)
    store = TripleStore(connection.raw, connection.lock, sizes, names.edge_labels, room)
    columns_bytes = graph_bytes // 4

    def counts() -> tuple[object, ...]:
        ((zone,),) = connection.rows("SELECT system.main.current_setting('TimeZone')")
        counted = [(label.id, *label.counts) for label in names.edge_labels.values()]
        return sizes, sorted(counted), sorted(described), sorted(parallel), zone, subclasses

    persisted.describe(counts)
    graph = DataGraph(store, graph_bytes - columns_bytes, persisted=persisted)
    properties = Properties(connection, store.ids, scales, columns_bytes, persisted)
    keys = KeyIndexes(connection, graph_bytes // 8, persisted)
    edges = Edges(connection, graph, store, described, parallel, graph_bytes // 8, persisted)
    known: dict[str, int | None] = {}
    if former is not None:
        before, changes = former.snapshot, former.changes
        if not former.is_taken_over:
            former.is_taken_over = True
            store.follow(before.store, changes)
            graph.follow(before.graph, changes)
            properties.follow(before.properties, names.edge_labels, changes)
            keys.follow(before.keys, changes)
            edges.follow(before.edges, changes)
        known = dict(before.ids)
        if None in known.values():
            known = {iri: id for iri, id in known.items() if id is not None}
    return Snapshot(
        connection,
        names,
        store,
        graph,
        properties,
        keys,
        Lookup(connection, store, graph_bytes // 8),
        edges,
        ahead,
        degrees,
        procedures or Procedures(),
        ids=known,
        costed=CostedEdges(graph_bytes // 8, persisted),
    )


def _touched(changes: Sequence[Changes], labels: frozenset[int]) -> bool:
    """Whether some changes are of triples of some labels."""
    return any(not labels.isdisjoint(change.labels) for change in changes)


def _followed(connection: Connection, former: Predecessor) -> Names | None:
    """Return the names after changes that tell what is counted of them now; None where they are to be read."""
    edges: dict[int, tuple[int, ...] | None] = {}
    vertices: dict[int, int] = {}
    before = former.snapshot
    for change in former.changes:
        if change.counted is None:
            return None
        edges.update(change.counted.edge_labels)
        vertices.update(change.counted.vertex_labels)
    names = before.names
    changed, known = edges.keys() | vertices.keys(), dict[int, str]()
    for id in changed:
        label = names.edge_labels.get(id) or names.vertex_labels.get(id) or names.hidden.get(id)
        if label is not None:
            known[id] = label.iri
    if len(known) < len(changed):
        known |= {id: iri for iri, id in before.ids.items() if id in changed}
    if missing := [id for id in changed if id not in known]:
        places = ", ".join("?" * len(missing))
        sql = f"SELECT id, iri FROM _graphdb.resource WHERE id IN ({places})"
        with connection.guard() as raw:
            known.update(execute(raw, sql, missing).fetchall())
    return before.names.following(
        {id: None if row is None else EdgeLabel(id, known[id], *row) for id, row in edges.items()},
        {id: VertexLabel(id, known[id], count) if count else None for id, count in vertices.items()},
    )


def _edges_counted(raw: duckdb.DuckDBPyConnection) -> tuple[frozenset[int], frozenset[int]]:
    """Return the edge labels that have rows of single edges, and those of which some are parallel."""
    found = execute(raw, "SELECT label, bool_or(ordinal <> 0) FROM _graphdb.edge GROUP BY label").fetchall()
    return frozenset(label for label, _ in found), frozenset(label for label, several in found if several)


def _edges_followed(connection: Connection, former: Predecessor) -> tuple[frozenset[int], frozenset[int]]:
    """Return the same after changes: only labels of which all such rows may have gone are asked for."""
    before, rows = former.snapshot, [change.edges for change in former.changes]
    described, parallel = before.edges.described, before.edges.parallel
    lost, joined = frozenset[int](), frozenset[int]()
    for each in rows:  # what comes with a change comes after what goes
        described, parallel = described | each.come, parallel | each.parallel
        lost, joined = (lost | each.gone) - each.come, (joined | (each.gone & parallel)) - each.parallel
    described = described - _without(connection, lost, "true")
    return described, parallel - _without(connection, joined, "ordinal <> 0")


def _without(connection: Connection, labels: frozenset[int], where: str) -> frozenset[int]:
    """Return which of some edge labels have no such row of a single edge."""
    if not labels:
        return labels
    sql = f"(SELECT label FROM _graphdb.edge WHERE label = ? AND {where} LIMIT 1)"
    with connection.guard() as raw:
        found = execute(raw, " UNION ALL ".join([sql] * len(labels)), [*labels]).fetchall()
    return labels - {label for (label,) in found}


def _classes_above(catalog: Catalog) -> list[str]:
    """The classes that others are below."""
    _, above, classes = catalog.subclasses()
    return [classes[id].iri for id in unique(above).tolist() if id in classes]


def _show(connection: Connection, names: Names) -> None:
    """Make the written names visible to SQL that reads them: most does not."""

    def show() -> bool:
        with connection.guard() as raw:
            raw.register(NAMES_VIEW, names_table(names.spellings))
        return True

    connection.promised.add(NAMES_VIEW, show)
    if not connection.promised.delayed:
        connection.promised.make(NAMES_VIEW)


def _scales(connection: Connection) -> dict[int, int]:
    """Return the digits after the point of each decimal property, by label id."""
    with connection.guard() as raw:
        found = execute(
            raw,
            "SELECT t.label, least(max(length(split_part(l.text, '.', 2))), 18) FROM _graphdb.triple t "
            "JOIN _graphdb.literal l ON l.id = t.object WHERE l.kind = $kind GROUP BY t.label",
            {"kind": int(Kind.DECIMAL)},
        ).fetchall()
    return dict(found)
