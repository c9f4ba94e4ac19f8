"""Changes of the graph: triples and edges in and out, within the caller's transaction.

The caller works with ids: :meth:`Update.resources` and :meth:`Update.literals` number terms, :meth:`Update.vertices`
makes new vertices, :meth:`Update.apply` writes what changed and adds the difference to the statistics.

What goes in and out are *relations*, so that a change may be of any size: what can stand after FROM (the name of a
temporary table, a SELECT in parentheses), or an array.  Columns are BIGINT, by name: a triple has ``label``,
``subject`` and ``object``; an edge has its ``ordinal``, too; an edge's property also ``key`` and ``value``.  Arrays
have them in this order: int64 [rows, columns].
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphdb.common import arrow
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.arrow import LISTED, ArrowViews, table_of
from graphdb.storage.arrays.batch import LITERAL
from graphdb.storage.arrays.small_joins import SMALL, Ints, among, distinct, rows_of
from graphdb.storage.dictionary.terms import Numbering, term_counts
from graphdb.storage.dictionary.typed_literals import short_value
from graphdb.storage.file.prepared_sql import Columns, execute
from graphdb.storage.file.scratch import spill_folder
from graphdb.storage.graph.changes import MOST, Changes, Counted, EdgeRows, Sizes
from graphdb.storage.statistics import incremental, labels, tables
from graphdb.storage.statistics.degrees import UNCHANGED
from graphdb.storage.statistics.known import KnownStatistics

if TYPE_CHECKING:
    import duckdb

Relation: TypeAlias = "str | Ints"
"""What can stand after FROM, or an array."""

TRIPLE_KEY = "label, subject, object"
"""What a triple is known by."""

EDGE_KEY = f"{TRIPLE_KEY}, ordinal"
"""What an edge is known by, of the parallel ones of a triple."""

_PROPERTY = f"{EDGE_KEY}, key, value"
_BESIDE = ("quad", "reifier", "edge_graph")
"""Tables whose rows go with their triples."""

_HANDFUL = 3
"""Triples whose rows are found by conditions on each."""


def there(triples: str) -> str:
    """Return SQL for those of some triples that are there: read only where the sorted triples can hold them."""
    return f"(SELECT {TRIPLE_KEY} FROM _graphdb.triple AS stored SEMI JOIN {triples} AS given USING ({TRIPLE_KEY}))"


def at_handful(vertices: Sequence[int], type_label: int, *, edges: bool) -> tuple[str, list[int]]:
    """Return SQL for what :func:`incident` finds of a handful of vertices, or :func:`facts`, with its parameters.

    DuckDB looks for constants sooner than it joins.
    """
    among = f"IN ({', '.join('?' * len(vertices))})"
    if edges:
        where = f"(subject {among} OR object {among}) AND object < {LITERAL_BASE} AND label <> {int(type_label)}"
        return f"SELECT {TRIPLE_KEY} FROM _graphdb.triple WHERE {where}", [*vertices, *vertices]
    where = f"subject {among} AND (object >= {LITERAL_BASE} OR label = {int(type_label)})"
    return f"SELECT {TRIPLE_KEY} FROM _graphdb.triple WHERE {where}", [*vertices]


def incident(vertices: str, type_label: int) -> str:
    """Return SQL for the edges from and to some (``vertex``); ``type_label`` gives labels, and is none of them."""
    edges = f"SELECT {TRIPLE_KEY} FROM _graphdb.triple SEMI JOIN {vertices} AS given ON {{end}} = given.vertex"
    where = f"WHERE object < {LITERAL_BASE} AND label <> {int(type_label)}"
    return f"({edges.format(end='subject')} {where} UNION {edges.format(end='object')} {where})"


def facts(vertices: str, type_label: int) -> str:
    """Return SQL for the labels and properties of some vertices (``vertex``), as triples."""
    return (
        f"(SELECT {TRIPLE_KEY} FROM _graphdb.triple SEMI JOIN {vertices} AS given ON subject = given.vertex"
        f" WHERE object >= {LITERAL_BASE} OR label = {int(type_label)})"
    )


def edges_of(triples: str) -> str:
    """Return SQL for the edges that distinct triples stand for: one of ordinal 0 where the file has no rows of them."""
    return (
        f"(SELECT {EDGE_KEY} FROM _graphdb.edge AS stored SEMI JOIN {triples} AS given USING ({TRIPLE_KEY}) UNION ALL"
        f" SELECT {TRIPLE_KEY}, 0 FROM {there(triples)} ANTI JOIN _graphdb.edge USING ({TRIPLE_KEY}))"
    )


def properties_of(triples: str) -> str:
    """Return SQL for the properties of the edges that some triples stand for."""
    return (
        f"(SELECT {_PROPERTY} FROM _graphdb.edge_property AS stored SEMI JOIN {triples} AS given USING ({TRIPLE_KEY}))"
    )


def numbered(wanted: str) -> str:
    """Return SQL for edges to come (``row``, a triple and whatever else) with an ``ordinal`` each.

    It goes on from those of the edges that are there; new ones between the same vertices are distinguished in order of
    ``row``.
    """
    last = f"SELECT {TRIPLE_KEY}, max(ordinal) AS last FROM {edges_of(wanted)} GROUP BY {TRIPLE_KEY}"
    return (
        f"(SELECT * EXCLUDE last, coalesce(last, -1) + row_number() OVER (PARTITION BY {TRIPLE_KEY} ORDER BY row ASC)"
        f" AS ordinal FROM {wanted} AS wanted LEFT JOIN ({last}) USING ({TRIPLE_KEY}))"
    )


@dataclass(frozen=True, slots=True)
class Scratch:
    """Where statistics are counted whole: so many bytes, and a directory for what does not fit (None: any)."""

    memory: int
    folder: str | None = None


class Update:
    """Writes to the database behind ``connection``; nothing else does within the transaction.

    ``known`` is what is known of the file already, and need not be asked; ``touch`` is called before it writes;
    ``scratch`` is for large changes, which are counted by SQL without it.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        known: KnownStatistics | None = None,
        touch: Callable[[], None] = lambda: None,
        scratch: Scratch | None = None,
    ) -> None:
        self._connection = connection
        self._touch = touch
        self._scratch = scratch
        self._known = known or KnownStatistics()
        self._degrees = self._known.degrees
        self._views = ArrowViews(connection)
        hashes = None if self._known.degrees is None else self._known.degrees.hashes
        self._terms = Numbering(
            connection, self._views, sizes=self._known.sizes, ahead=self._known.ahead, hashes=hashes
        )
        # What is inserted by one statement at the end of a change; new terms that nobody uses yet wait there, too.
        self._insertions = self._terms.insertions
        # Vertices, and literals, from here on were in no triple when the last change was written.
        self._fresh, self._fresh_literals = LITERAL_BASE, sys.maxsize
        self._values: dict[int, int | str] = {}  # of literals that were asked for in small numbers
        self.changes: list[Changes | None] = []
        """What :meth:`apply` did since :meth:`take_changes`; None for what is too much to follow."""
        self._reported: tuple[int, int] | None = None  # how many terms there were at the last such call

    def take_changes(self) -> list[Changes | None]:
        """Return what :meth:`apply` did since the last call, and how many terms there are by now.

        What is cached of degrees and pairs is to follow that before anything else is written.
        """
        self._insertions.run()
        found, self.changes = self.changes, []
        if self._known.degrees is not self._degrees:
            self._known = self._known.with_degrees(self._degrees)
        sizes = self._terms.sizes
        if sizes is None:
            return [*found, Changes()]
        if sizes != self._reported:
            last, self._reported = found[-1] if found else None, sizes
            if last is not None and last.counted is not None:
                before = last.counted
                counted = Counted(before.edge_labels, before.vertex_labels, Sizes(*sizes), before.pairs)
                found[-1] = Changes(last.removed, last.added, counted, last.edges, last.values)
            else:
                found.append(Changes(counted=Counted(sizes=Sizes(*sizes))))
        return found

    @property
    def known(self) -> KnownStatistics | None:
        """What the changes leave known of the file, once they are taken; None where the file is to be asked."""
        known, sizes = self._known, self._terms.sizes
        if known.edge_labels is None or known.typed is None or known.degrees is None or sizes is None:
            return None
        return known.with_sizes(sizes)

    def resources(self, iris: Sequence[str]) -> list[int]:
        """Return the ids of distinct IRIs, adding those that are new."""
        self._touch()
        ids = self._terms.listed_resources(iris)
        self._terms.store()
        return ids

    def literals(self, literals: Sequence[tuple[str, str | None, str | None]]) -> list[int]:
        """Return the ids of distinct literals (lexical form, datatype, language), adding those that are new.

        SQL may not see these before :meth:`apply`.
        """
        self._touch()
        self._fresh_literals = min(self._fresh_literals, self._terms.next_literal)
        ids: list[int] = self._terms.listed_literals(literals)
        self._terms.store(may_wait=True)
        if len(ids) <= LISTED:
            known = ((id, short_value(*literal)) for id, literal in zip(ids, literals, strict=True))
            self._values.update((id, value) for id, value in known if value is not None)
        return ids

    def number(
        self, resources: arrow.Array | list[str], literals: tuple[arrow.Array, arrow.Array, arrow.Array]
    ) -> tuple[Ints, Ints]:
        """Return the ids of distinct IRIs, and of distinct literals (as columns), adding those that are new.

        SQL may not see these before :meth:`apply`.
        """
        self._touch()
        self._fresh_literals = min(self._fresh_literals, self._terms.next_literal)
        if isinstance(resources, list):
            found = np.array(self._terms.listed_resources(resources), np.int64)
        else:
            found = self._terms.resources(resources)
        values = self._terms.literals(*literals)
        self._terms.store(may_wait=True)
        return found, values

    def literals_of(self, source: str, into: str) -> None:
        """Number the literals of a relation; see :meth:`~graphdb.storage.dictionary.terms.Numbering.literals_of`."""
        self._touch()
        self._fresh_literals = min(self._fresh_literals, self._terms.next_literal)
        self._terms.literals_of(source, into)

    def vertices(self, count: int) -> range:
        """Make new vertices, blank nodes, and return their ids; SQL may not see these before :meth:`apply`."""
        self._touch()
        made = self._terms.blanks(count)
        self._fresh = min(self._fresh, made.start)
        return made

    def there(self, triples: Iterable[tuple[int, int, int]]) -> set[tuple[int, int, int]]:
        """Return those of a handful of triples (label, subject, object) that are in the file."""
        listed = sorted(triples)
        found = incremental.there_in_memory(self._connection, listed, self._known) if len(listed) <= SMALL else None
        if found is None:
            found = incremental.there(self._connection, np.array(listed, np.int64).reshape(-1, 3), self._known).tolist()
        return {(label, subject, object) for label, subject, object in found}

    def objects(self, label: int, subjects: Sequence[int]) -> list[set[int]]:
        """Return the objects that some subjects have of a label, in the file."""
        if self._known.edge_labels is not None and label not in self._known.edge_labels:
            return [set() for _ in subjects]
        found = self._known.objects(lambda: self._connection, label, subjects, UNCHANGED)
        if found is not None:
            return found
        sql = "SELECT subject, object FROM _graphdb.triple WHERE label = ? AND subject IN (SELECT unnest(?::BIGINT[]))"
        by_subject: dict[int, set[int]] = {subject: set() for subject in subjects}
        for subject, object in execute(self._connection, sql, [label, [*subjects]]).fetchall():
            by_subject[subject].add(object)
        return [by_subject[subject] for subject in subjects]

    def at(self, vertices: Sequence[int], type_label: int, *, edges: bool) -> list[tuple[int, int, int]]:
        """Return what :func:`incident` finds of vertices in the file, or :func:`facts`; for small results."""
        if len(vertices) <= SMALL:
            return execute(self._connection, *at_handful(vertices, type_label, edges=edges)).fetchall()
        what, table = incident if edges else facts, table_of({"vertex": np.array(vertices, np.int64)})
        with self._views.view("_graphdb_asked", table):
            return execute(self._connection, f"FROM {what('_graphdb_asked', type_label)}").fetchall()

    def apply(
        self,
        removed: Relation | None = None,
        added: Relation | None = None,
        touched: Relation | None = None,
        edges: Relation | None = None,
        properties: Relation | None = None,
        absent: Ints | None = None,
        bare: Collection[int] = (),
    ) -> None:
        """Write changes: first ``removed`` triples go, then ``added`` ones that are not there come.

        The rows of the edges that ``touched`` triples stand for are replaced by ``edges`` with ``properties``.  Triples
        may be given more than once.  No relation may read what is changed: a table of its own may.  ``absent`` are
        triples that the caller knows not to be there, which small changes do not look for; ``bare`` are vertices that
        it deletes with all their edges.
        """
        self._touch()
        if removed is not None or added is not None:
            gone, come = self._listed(removed), self._listed(added)
            if gone is not None and come is not None:
                self._apply_small(gone, come, incremental.NONE if absent is None else absent, bare)
                removed = added = None
        with ExitStack() as windows:

            def seen(name: str, relation: Relation, columns: str = TRIPLE_KEY) -> str:
                if isinstance(relation, str):
                    return relation
                table = table_of(dict(zip(columns.split(", "), relation.T, strict=True)))
                windows.enter_context(self._views.view(f"_graphdb_given_{name}", table))
                return f"_graphdb_given_{name}"

            if removed is not None or added is not None:
                self._insertions.run()
                lost = None if removed is None else seen("lost", removed)
                self._apply_triples(lost, None if added is None else seen("come", added))
            if touched is not None or edges is not None or properties is not None:
                self.changes.append(self._of_edges(touched, edges))
                if touched is not None and len(touched) <= LISTED and not isinstance(touched, str):
                    replaced: Relation | None = touched
                else:
                    replaced = None if touched is None else seen("touched_edge", touched)
                if replaced is not None:
                    self._delete("edge", replaced)
                    self._delete("edge_property", replaced)
                for table, rows, columns in (("edge", edges, EDGE_KEY), ("edge_property", properties, _PROPERTY)):
                    if rows is not None and len(rows) <= LISTED and not isinstance(rows, str):
                        self._insertions.add(table, _integers(columns, rows))
                    elif rows is not None:
                        self._run(f"INSERT INTO _graphdb.{table} SELECT {columns} FROM {seen(table, rows, columns)}")
                if replaced is not None:
                    self._delete_beside(replaced)
            self._insertions.run()

    def _listed(self, relation: Relation | None) -> Ints | None:
        """Return triples as int64 [triples, 3]; None where they are many.

        A table of few is read: to count what these change takes far less than to plan DuckDB's SQL for it.
        """
        if isinstance(relation, str):
            self._insertions.run()  # the relation may read what waits
            return self._columns(relation, TRIPLE_KEY, incremental.MOST)
        return incremental.listed(relation)

    def _apply_triples(self, removed: str | None, added: str | None) -> None:
        """Take triples away, append others, and bring the statistics up to date with what changed."""
        gone = new = 0
        if removed is not None:
            gone = self._run(f"CREATE TEMP TABLE _graphdb_gone AS FROM {there(removed)}")
            for table in ("triple", *_BESIDE) if gone else ():
                self._delete(table, "temp._graphdb_gone")
        if added is not None:
            others = "" if self._begins_fresh(added) else f" ANTI JOIN {there(added)} USING ({TRIPLE_KEY})"
            new = self._run(f"CREATE TEMP TABLE _graphdb_new AS SELECT DISTINCT {TRIPLE_KEY} FROM {added}{others}")
            if new:
                self._run(
                    "INSERT INTO _graphdb.triple FROM temp._graphdb_new ORDER BY label ASC, subject ASC, object ASC"
                )
        lost, come = "temp._graphdb_gone" if gone else None, "temp._graphdb_new" if new else None
        if gone or new:
            changes = Changes.read(self._connection, lost, come) if gone + new <= MOST else None
            if not self._recounted(gone + new):
                labels.change(
                    self._connection,
                    come or labels.NOTHING,
                    lost or labels.NOTHING,
                    fresh=self._fresh,
                    fresh_literals=self._fresh_literals,
                    literals=changes is None or changes.literals,
                )
            self._known = KnownStatistics()
            self._changed(changes)
        for table, relation in (("gone", removed), ("new", added)):
            if relation is not None:
                self._run(f"DROP TABLE temp._graphdb_{table}")

    def _begins_fresh(self, triples: str) -> bool:
        """Whether the subjects of some triples are all new: then none of these is there."""
        if self._fresh >= LITERAL_BASE:
            return False
        [(least,)] = execute(self._connection, f"SELECT min(subject) FROM {triples}").fetchall()
        return least is not None and least >= self._fresh

    def _recounted(self, changed: int) -> bool:
        """Count all triples where that is quicker than to count what so many have changed; return whether it was."""
        from graphdb.storage.updates.append import much_new

        if self._scratch is None or not much_new(self._connection, changed, self._scratch.memory):
            return False
        if max(term_counts(self._connection)) >= LITERAL:  # an id is a code there
            return False
        from graphdb.storage.statistics import streaming

        with spill_folder(self._scratch.folder) as folder:
            streaming.recount(self._connection, folder, self._scratch.memory)
        return True

    def _apply_small(self, removed: Ints, added: Ints, absent: Ints, bare: Collection[int]) -> None:
        """Do the same for small changes that Python has as arrays, without temporary tables."""
        added = distinct(added)
        asked = distinct(np.concatenate([removed, added])) if len(removed) else added
        there = incremental.there(self._connection, self._perhaps_there(asked, absent), self._known)
        lost = distinct(removed[among(removed, there)]) if len(removed) else removed
        new = added[~among(added, there) | among(added, lost)] if len(there) else added
        if len(lost):
            for table in ("triple", *self._beside()):
                self._delete(table, lost)
        if len(new):
            self._insertions.add("triple", _integers(TRIPLE_KEY, new))
        if len(lost) or len(new):
            changes = Changes(lost, new)
            counted = incremental.change(
                self._connection,
                changes,
                self._fresh,
                self._fresh_literals,
                self._known,
                self._terms.kinds,
                self._insertions,
                bare,
            )
            self._known = self._known.after(counted)
            self._changed(Changes(lost, new, counted, values=self._values))

    def _perhaps_there(self, triples: Ints, absent: Ints) -> Ints:
        """Return those of some triples that may be in the file: a new term is in none, nor are those ``absent``."""
        fresh, literals = self._fresh, self._fresh_literals
        if len(triples) <= LISTED and len(absent) <= LISTED:  # sooner than NumPy begins
            missing = set(map(tuple, absent.tolist()))
            found = [
                row
                for row in map(tuple, triples.tolist())
                if row[1] < fresh and row[2] < (fresh if row[2] < LITERAL_BASE else literals) and row not in missing
            ]
            return np.array(found, np.int64) if found else incremental.NONE
        _, subject, object = triples.T
        new_object = np.where(object < LITERAL_BASE, object >= fresh, object >= literals)
        perhaps: Ints = triples[(subject < fresh) & ~new_object]
        return perhaps[~among(perhaps, absent)]

    def _changed(self, changes: Changes | None) -> None:
        """Note changes; by now there are triples of all terms."""
        self.changes.append(changes)
        self._fresh, self._fresh_literals = LITERAL_BASE, sys.maxsize

    def _of_edges(self, touched: Relation | None, edges: Relation | None) -> Changes:
        """Return what is written of single edges; the labels are to be asked for where it is too much to follow."""
        gone, came = self._columns(touched, TRIPLE_KEY), self._columns(edges, EDGE_KEY)
        if gone is None or came is None:
            return Changes(edges=EdgeRows(triples=None))
        rows = EdgeRows(
            frozenset(came[:, 0].tolist()),
            frozenset(came[came[:, 3] > 0, 0].tolist()),
            frozenset(gone[:, 0].tolist()),
            np.concatenate([gone, came[:, :3]]),
        )
        return Changes(counted=Counted(), edges=rows)

    def _columns(self, relation: Relation | None, columns: str, most: int = MOST) -> Ints | None:
        """Return columns of a relation, int64 [rows, columns]; None where it has more than so many rows."""
        names = columns.split(", ")
        if relation is None:
            return np.empty((0, len(names)), np.int64)
        if isinstance(relation, str):
            sql = f"SELECT {columns} FROM {relation} LIMIT {most + 1}"
            relation = rows_of(execute(self._connection, sql))
        return relation if len(relation) <= most else None

    def _beside(self) -> list[str]:
        """Return the tables beside the triples that have rows, or had some when that was asked."""
        log = tables.Log() if self._degrees is None else self._degrees.log
        return log.filled(self._connection, *_BESIDE)

    def _delete_beside(self, touched: Relation) -> None:
        """Delete reifiers and graphs of those edges of some triples that are no more."""
        others = [table for table in self._beside() if table != "quad"]
        if not others:
            return
        self._insertions.run("edge")
        same = " AND ".join(f"e.{name} = t.{name}" for name in EDGE_KEY.split(", "))
        for table in others:
            self._delete(table, touched, f" AND NOT EXISTS (FROM _graphdb.edge e WHERE {same})")

    def _delete(self, table: str, triples: Relation, condition: str = "") -> None:
        """Delete the rows of some triples: a handful by conditions on each, which takes DuckDB half as long."""
        if isinstance(triples, str):
            source, given = triples, None
        elif len(triples) <= _HANDFUL:
            one = " AND ".join(f"t.{name} = ?" for name in TRIPLE_KEY.split(", "))
            where = f"({' OR '.join([f'({one})'] * len(triples))})"
            self._run(f"DELETE FROM _graphdb.{table} t WHERE {where}{condition}", triples.ravel().tolist())
            return
        else:
            source, given = incremental.relation(triples)
        same = " AND ".join(f"t.{name} = s.{name}" for name in TRIPLE_KEY.split(", "))
        self._run(f"DELETE FROM _graphdb.{table} t USING {source} s WHERE {same}{condition}", given)

    def _run(self, sql: str, given: Mapping[str, list[Any]] | list[int] | None = None) -> int:
        """Run a statement; return how many rows it wrote, where it writes rows."""
        found = execute(self._connection, sql, given).fetchall()
        return int(found[0][0]) if found else 0


def _integers(columns: str, rows: Ints) -> Columns:
    """Return rows as what can be inserted."""
    return dict(zip(columns.split(", "), rows.T.tolist(), strict=True))
