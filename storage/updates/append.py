"""Appending to the graph: terms and triples in, numbered and without repeats, within the caller's transaction.

Loads go this way.  An :class:`Appender` is given batches of terms with triples of their codes (:class:`Batch`: what
loads collect), or triples of ids that are known (:meth:`Appender.add_ids`), in any order and as often as one likes;
:meth:`Appender.append` appends what is new, sorted by (label, subject, object), and :meth:`Appender.count` brings
the statistics up to date.  Until then nothing is seen; a transaction that is rolled back leaves nothing.

Edges with identity.  The triples of a graph are a set.  An edge that has properties, or that there is more than once,
is *reified*, as RDF 1.2 does it: a resource, its reifier, stands for it.  Each reifier of a triple becomes a row of the
table ``edge`` with an ordinal of its own, the reifier's literals become the edge's properties (``edge_property``), and
the table ``reifier`` keeps which resource it was, and ``edge_graph`` in which named graphs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.arrow import ArrowViews
from graphdb.storage.arrays.batch import LITERAL, Batch, Edges, Ids, Terms, Texts, ids
from graphdb.storage.arrays.sorted_sets import either
from graphdb.storage.dictionary.terms import Numbering, term_counts
from graphdb.storage.file.prepared_sql import execute, has_rows
from graphdb.storage.graph.changes import MOST, Changes
from graphdb.storage.statistics import incremental, streaming
from graphdb.storage.statistics import labels as statistics
from graphdb.storage.statistics.known import KnownStatistics
from graphdb.storage.updates.parallel_edges import edge_rows, write_edges

if TYPE_CHECKING:
    import duckdb

_NEW_EDGES = """
CREATE TEMP TABLE _graphdb_edge AS
WITH fresh AS (
    SELECT DISTINCT reifier, label, subject, object FROM temp._graphdb_reifier
    EXCEPT SELECT reifier, label, subject, object FROM _graphdb.reifier
),
last AS (
    SELECT label, subject, object, max(ordinal) AS ordinal FROM _graphdb.edge
    SEMI JOIN fresh USING (label, subject, object) GROUP BY label, subject, object
)
SELECT reifier, label, subject, object, coalesce(last.ordinal, -1)
    + row_number() OVER (PARTITION BY label, subject, object ORDER BY reifier ASC) AS ordinal
FROM fresh LEFT JOIN last USING (label, subject, object)
"""
_PLACES = """
INSERT INTO _graphdb.edge_graph BY NAME
WITH staged AS (
    SELECT DISTINCT edge.label, edge.subject, edge.object, ordinal, graph
    FROM temp._graphdb_reifier JOIN _graphdb.reifier AS edge USING (reifier, label, subject, object)
),
placed AS (
    FROM staged UNION SELECT label, subject, object, ordinal, $default::BIGINT FROM staged
    ANTI JOIN temp._graphdb_edge USING (label, subject, object, ordinal)
    ANTI JOIN _graphdb.edge_graph USING (label, subject, object, ordinal)
),
named AS (
    SELECT label, subject, object, ordinal FROM placed WHERE graph <> $default
    UNION SELECT label, subject, object, ordinal FROM _graphdb.edge_graph
)
FROM placed SEMI JOIN named USING (label, subject, object, ordinal)
EXCEPT SELECT label, subject, object, ordinal, graph FROM _graphdb.edge_graph
"""
_PROPERTIES = f"""
INSERT INTO {{into}} BY NAME
WITH edge AS (FROM _graphdb.reifier WHERE reifier >= $first AND reifier < $end)
SELECT DISTINCT edge.label, edge.subject, edge.object, edge.ordinal, row.label AS key, row.object AS value
FROM temp._graphdb_triple AS row JOIN edge ON row.subject = edge.reifier
WHERE row.object >= {LITERAL_BASE} AND row.subject >= $first AND row.subject < $end
EXCEPT SELECT label, subject, object, ordinal, key, value
FROM _graphdb.edge_property SEMI JOIN edge USING (label, subject, object, ordinal)
"""

DEFAULT_GRAPH = -1
"""The graph that a triple is in which is in a named one as well; one without rows in ``quad`` is in this one only."""

_COLUMNS = {
    "triple": ("subject", "label", "object"),
    "quad": ("subject", "label", "object", "graph"),
    "reifier": ("reifier", "subject", "label", "object", "graph"),
}
"""Tables of staged rows."""

_QUAD = "graph, label, subject, object"
"""What quads are sorted by."""

_IN_DEFAULT = """
INSERT INTO temp._graphdb_quad BY NAME
WITH named AS (
    SELECT subject, label, object FROM temp._graphdb_quad UNION SELECT subject, label, object FROM _graphdb.quad
),
plain AS (
    SELECT subject, label, object FROM temp._graphdb_triple
    UNION SELECT subject, label, object FROM _graphdb.triple ANTI JOIN _graphdb.quad USING (subject, label, object)
)
SELECT subject, label, object, $default::BIGINT AS graph FROM plain SEMI JOIN named USING (subject, label, object)
"""

_SHARE = 10
"""Counting all triples costs as much as counting what this part of them changes."""

_ROOM = 40
"""Bytes that there must be for each new triple, for DuckDB to have the memory to count what it changes."""

_PROPERTIES_AT_ONCE = 500_000
"""Properties of edges that DuckDB joins and distinguishes at a time, about."""

_TEXT = 64 << 20
"""Bytes of texts that are numbered at a time."""


class Appender:
    """Appends triples in the transaction that is open on ``connection``; one at a time.

    Parameters
    ----------
    folder, memory
        Where the count of statistics keeps what does not fit into so many bytes, when there is much that is new;
        without a folder, all is left to DuckDB.
    known
        What is known of the file already.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        folder: Path | None = None,
        memory: int = 0,
        known: KnownStatistics | None = None,
    ) -> None:
        self._connection = connection
        self._known = known
        self._folder = folder
        self._memory = memory
        self._views = ArrowViews(connection)
        self.terms = Numbering(connection, self._views)
        """Gives terms the ids that :meth:`add_ids` and its kin take."""
        self._labels = np.empty(0, np.int64)
        self._staged: set[str] = set()
        self._named = False  # whether staged reifiers are in named graphs
        self._new: int | None = None  # rows of temp._graphdb_new, where there is one
        self.changes: Changes | None = None
        """What :meth:`count` found to be new; None where that is too much to follow, or everything."""

    def add(self, batch: Batch, edges: Edges | None = None) -> None:
        """Number the batch's terms, stage its triples and write its edges."""
        numbered = _Ids(self.terms, batch)
        if edges is not None:
            write_edges(self._connection, edge_rows(edges, numbered.of))
        for triples in batch.rows():
            self.add_ids(*(numbered.of(column) for column in triples.T))
        for spilled in batch.others:
            self.add_others(spilled.get(), numbered.of)

    def add_new(self, terms: Terms) -> None:
        """Write terms of which none is there, with the next ids, which are their codes; stage their triples."""
        self.terms.append(terms.iris(), terms.values(), terms.datatypes, terms.valued)
        terms.forget_terms()
        for spilled in terms.triples:
            self.add_ids(*map(ids, spilled.get().T))
        for spilled in terms.others:
            self.add_others(spilled.get(), ids)

    def add_others(self, others: Ids, of: Callable[[Ids], Ids]) -> None:
        """Stage what is in named graphs or reified (see :attr:`.Batch.others`); ``of`` gives the ids of codes."""
        reified = others[:, 4] >= 0
        self.add_quads(*map(of, others[~reified, :4].T))
        graphs = others[reified, 3]
        graphs[graphs >= 0] = of(graphs[graphs >= 0])  # -1 is the default graph's number, too
        reifiers, subjects, labels, objects = map(of, others[reified][:, [4, 0, 1, 2]].T)
        self.add_reifiers(reifiers, subjects, labels, objects, graphs)

    def add_ids(self, subjects: Ids, labels: Ids, objects: Ids) -> None:
        """Stage triples of term ids (int64[triples] each)."""
        self._labels = either(self._labels, labels)
        self._stage("triple", [subjects, labels, objects])

    def add_quads(self, subjects: Ids, labels: Ids, objects: Ids, graphs: Ids) -> None:
        """Stage triples in named graphs (int64[quads] each)."""
        self._labels = either(self._labels, labels)
        self._stage("quad", [subjects, labels, objects, graphs])

    def add_reifiers(self, reifiers: Ids, subjects: Ids, labels: Ids, objects: Ids, graphs: Ids) -> None:
        """Stage that resources stand for edges, and in which graph they do (int64[edges] each).

        The edges' triples are added by themselves.
        """
        self._named = self._named or bool((graphs != DEFAULT_GRAPH).any())
        self._stage("reifier", [reifiers, subjects, labels, objects, graphs])

    def append(self) -> int:
        """Append what is staged and not there yet; return how many triples were new."""
        self.terms.store()
        if "reifier" in self._staged:
            self._staged.remove("reifier")
            self._append_edges()
        elif "triple" in self._staged and self._has("reifier"):
            self._take_properties()
        if "quad" in self._staged or ("triple" in self._staged and self._has("quad")):
            self._name_default()
            execute(
                self._connection,
                "INSERT INTO temp._graphdb_triple BY NAME SELECT subject, label, object FROM temp._graphdb_quad"
                " WHERE graph <> $default",
                {"default": DEFAULT_GRAPH},
            )
            self._append("quad", _QUAD)
        new = self._append_triples()
        self._views.close()
        return new

    def append_others(self) -> None:
        """Append named graphs and edges to a graph that has no triples yet; forget the staged triples themselves."""
        if "reifier" in self._staged:
            self._staged.remove("reifier")
            self._append_edges()
        if "quad" in self._staged:
            self._name_default()
            self._append("quad", _QUAD)
        for table in self._staged:
            execute(self._connection, f"DROP TABLE temp._graphdb_{table}")
        self._staged.clear()
        self._views.close()

    def count(self) -> None:
        """Bring the statistics up to date with what :meth:`append` has appended."""
        followed = self._new is not None and self._new <= MOST
        self.changes = Changes.read(self._connection, None, "temp._graphdb_new") if followed else None
        if self._folder is not None and self._much_new():
            streaming.recount(self._connection, self._folder, self._memory)
        elif self.changes is not None:
            fresh, literals = self.terms.first_new, self.terms.first_new_literal
            if self._new:
                incremental.change(self._connection, self.changes, fresh, literals, self._known, self.terms.kinds)
        elif self._new is not None:
            literals = self.changes is None or self.changes.literals
            fresh, new_literals = self.terms.first_new, self.terms.first_new_literal
            statistics.change(
                self._connection, "temp._graphdb_new", fresh=fresh, fresh_literals=new_literals, literals=literals
            )
        else:
            statistics.refresh(self._connection, self._labels)
        if self._new is not None:
            execute(self._connection, "DROP TABLE temp._graphdb_new")
        self._new = None
        self._labels = np.empty(0, np.int64)

    def _much_new(self) -> bool:
        """Whether it is quicker to count all triples than what the new ones change."""
        if self._new is None:
            much = bool(len(self._labels))
        else:
            much = much_new(self._connection, self._new, self._memory)
        return much and max(term_counts(self._connection)) < LITERAL  # an id is a code then

    def _stage(self, table: str, columns: Sequence[Ids]) -> None:
        """Keep rows of ids for :meth:`append`."""
        names = _COLUMNS[table]
        if table not in self._staged and not (columns and not len(columns[0])):
            self._staged.add(table)
            execute(
                self._connection,
                f"CREATE TEMP TABLE _graphdb_{table} ({', '.join(f'{name} BIGINT' for name in names)})",
            )
        if not columns or not len(columns[0]):
            return
        with self._views.view_or_list("_graphdb_batch", arrow.table([*map(numbers, columns)], names)) as (rows, given):
            execute(self._connection, f"INSERT INTO temp._graphdb_{table} SELECT * FROM {rows}", given)

    def _name_default(self) -> None:
        """Note which of the triples of named graphs are in the default graph, too."""
        for table in ("triple", "quad"):
            self._stage(table, ())
        if has_rows(self._connection, "temp._graphdb_triple") or self._has("triple"):
            execute(self._connection, _IN_DEFAULT, {"default": DEFAULT_GRAPH})

    def _append_edges(self) -> None:
        """Give each new reifier an edge of its own, and the edges their properties."""
        execute(self._connection, _NEW_EDGES)
        execute(self._connection, "INSERT INTO _graphdb.reifier BY NAME SELECT * FROM temp._graphdb_edge")
        execute(
            self._connection,
            "INSERT INTO _graphdb.edge BY NAME SELECT label, subject, object, ordinal FROM temp._graphdb_edge",
        )
        if self._named or self._has("edge_graph"):
            execute(self._connection, _PLACES, {"default": DEFAULT_GRAPH})
            self._named = False
        execute(self._connection, "DROP TABLE temp._graphdb_edge")
        execute(self._connection, "DROP TABLE temp._graphdb_reifier")
        if "triple" in self._staged:
            self._take_properties()

    def _take_properties(self) -> None:
        """Make the staged literals of reifiers properties of their edges: of a range of reifiers after the other.

        DuckDB does not join and distinguish any number of them within a small limit of memory.  What several statements
        append would stay in memory, so a temporary table collects it, which is spilled.
        """
        literals = f"FROM temp._graphdb_triple WHERE object >= {LITERAL_BASE}"
        of_reifiers = f"{literals} AND subject IN (SELECT reifier FROM _graphdb.reifier)"
        [(rows, first, last)] = execute(
            self._connection, f"SELECT count(*), min(subject), max(subject) {of_reifiers}"
        ).fetchall()
        if not rows:
            return
        parts = -(-rows // _PROPERTIES_AT_ONCE)
        into = "temp._graphdb_property" if parts > 1 else "_graphdb.edge_property"
        if parts > 1:
            execute(self._connection, "CREATE TEMP TABLE _graphdb_property AS FROM _graphdb.edge_property LIMIT 0")
        bounds = [first + (last + 1 - first) * part // parts for part in range(parts + 1)]
        for begin, end in itertools.pairwise(bounds):
            execute(self._connection, _PROPERTIES.format(into=into), {"first": begin, "end": end})
        if parts > 1:
            execute(self._connection, "INSERT INTO _graphdb.edge_property FROM temp._graphdb_property")
            execute(self._connection, "DROP TABLE temp._graphdb_property")
            self._retain_others()
        else:
            execute(self._connection, f"DELETE {of_reifiers}")

    def _retain_others(self) -> None:
        """Retain the staged triples that are no properties, in a table anew: what is deleted of one is not spilled."""
        others = f"object < {LITERAL_BASE} OR subject NOT IN (SELECT reifier FROM _graphdb.reifier)"
        execute(
            self._connection,
            f"CREATE TEMP TABLE _graphdb_others AS SELECT * FROM temp._graphdb_triple WHERE {others}",
        )
        execute(self._connection, "DROP TABLE temp._graphdb_triple")
        execute(self._connection, "ALTER TABLE temp._graphdb_others RENAME TO _graphdb_triple")

    def _has(self, table: str) -> bool:
        return has_rows(self._connection, f"_graphdb.{table}")

    def _append_triples(self) -> int:
        """Append the staged triples that are not there yet; where there are some, keep the new ones to count them."""
        if "triple" not in self._staged or not self._has("triple"):
            return self._append("triple", "label, subject, object")
        self._staged.remove("triple")
        # The staged triples are few beside those that are there: they are what the join looks up, and its bounds say
        # which parts of the sorted triples are read at all.  One number is looked up sooner than three.
        execute(
            self._connection,
            "CREATE TEMP TABLE _graphdb_new AS WITH staged AS MATERIALIZED ("
            "SELECT DISTINCT label, subject, object FROM temp._graphdb_triple)"
            " FROM staged ANTI JOIN ("
            "SELECT label, subject, object FROM (SELECT label, subject, object FROM _graphdb.triple"
            " WHERE label IN (SELECT label FROM staged) AND subject IN (SELECT subject FROM staged))"
            " SEMI JOIN staged USING (label, subject, object)) USING (label, subject, object)",
        )
        [(appended,)] = execute(
            self._connection,
            "INSERT INTO _graphdb.triple FROM temp._graphdb_new ORDER BY label ASC, subject ASC, object ASC",
        ).fetchall()
        execute(self._connection, "DROP TABLE temp._graphdb_triple")
        self._new = int(appended)
        return self._new

    def _append(self, table: str, columns: str) -> int:
        """Append the staged rows that ``table`` does not have, sorted by ``columns``."""
        if table not in self._staged:
            return 0
        self._staged.remove(table)
        known = f"EXCEPT SELECT {columns} FROM _graphdb.{table}" if self._has(table) else ""
        order = ", ".join(f"{column} ASC" for column in columns.split(", "))
        [(appended,)] = execute(
            self._connection,
            f"INSERT INTO _graphdb.{table} BY NAME SELECT DISTINCT {columns} FROM temp._graphdb_{table} {known} "
            f"ORDER BY {order}",
        ).fetchall()
        execute(self._connection, f"DROP TABLE temp._graphdb_{table}")
        return int(appended)


def much_new(connection: duckdb.DuckDBPyConnection, new: int, memory: int) -> bool:
    """Whether it is quicker to pass over all triples than over those that so many new ones change."""
    if new * _ROOM > memory:
        return True
    [(triples,)] = execute(connection, "SELECT count(*) FROM _graphdb.triple").fetchall()
    return bool(new * _SHARE >= triples)


class _Ids:
    """The dictionary's ids of a batch's terms."""

    def __init__(self, terms: Numbering, batch: Batch) -> None:
        resources = [
            terms.resources(arrow.ChunkedArray([texts.array() for texts in some])) for some in _groups(batch.resources)
        ]
        literals = []
        for some in _groups(batch.literals):
            columns = zip(*map(batch.literal_columns, some), strict=True)
            literals.append(terms.literals(*map(arrow.ChunkedArray, columns)))
        none = np.empty(0, np.int64)
        self._resources, self._literals = (np.concatenate([none, *found]) for found in (resources, literals))

    def of(self, codes: NDArray[np.integer[Any]]) -> Ids:
        """Return the ids (int64) of codes."""
        literal = codes >= LITERAL
        ids = np.empty(len(codes), np.int64)
        ids[~literal] = self._resources[codes[~literal]]
        ids[literal] = self._literals[codes[literal] - LITERAL]
        return ids


def _groups(pieces: Sequence[Texts]) -> Iterator[Sequence[Texts]]:
    """Yield pieces, so many at a time that their texts take little memory."""
    size = 0
    begin = 0
    for number, piece in enumerate(pieces, 1):
        size += piece.data.shape[0]
        if size >= _TEXT or number == len(pieces):
            yield pieces[begin:number]
            begin, size = number, 0
