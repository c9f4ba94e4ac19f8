"""Changes of the graph: triples and edges in and out, within the caller's transaction.

The caller works with ids: :meth:`Update.resources` and :meth:`Update.literals` number terms, :meth:`Update.vertices`
makes new vertices, :meth:`Update.apply` writes what changed and adds the difference to the statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphdb.storage import statistics
from graphdb.storage.arrow import Windows
from graphdb.storage.changes import Changes
from graphdb.storage.dictionary import Numbering
from graphdb.storage.terms import LITERAL_BASE

if TYPE_CHECKING:
    import duckdb

Triple = tuple[int, int, int]
"""Label, subject, object."""
EdgeRow = tuple[int, int, int, int]
"""Label, subject, object, ordinal."""
PropertyRow = tuple[int, int, int, int, int, int]
"""An edge's row, key and value."""

_TRIPLE = ("label", "subject", "object")
_EDGE = (*_TRIPLE, "ordinal")
_PROPERTY = (*_EDGE, "key", "value")

_THERE = "SELECT label, subject, object FROM _graphdb.triple SEMI JOIN _graphdb_some USING (label, subject, object)"
"""Those of some triples that are there: few, so the sorted triples are read only where they can be."""


class Update:
    """Writes to the database behind ``connection``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._terms = Numbering(connection, Windows(connection))
        self.changes: list[Changes | None] = []
        """What :meth:`apply` did so far; None for what is too much to follow."""

    def resources(self, iris: Sequence[str]) -> list[int]:
        """Return the ids of distinct IRIs, adding those that are new."""
        import pyarrow as pa

        ids = self._terms.resources(pa.array(iris, pa.string()))
        self._terms.store()
        return list(map(int, ids))

    def literals(self, literals: Sequence[tuple[str, str | None, str | None]]) -> list[int]:
        """Return the ids of distinct literals (lexical form, datatype, language), adding those that are new."""
        import pyarrow as pa

        columns = list(zip(*literals, strict=True)) or [(), (), ()]
        ids = self._terms.literals(*(pa.array(list(column), pa.string()) for column in columns))
        self._terms.store()
        return list(map(int, ids))

    def vertices(self, count: int) -> range:
        """Make new vertices, blank nodes, and return their ids."""
        [(first,)] = self._connection.execute("SELECT coalesce(max(id) + 1, 0) FROM _graphdb.resource").fetchall()
        self._connection.execute(
            "INSERT INTO _graphdb.resource SELECT range, '_:v' || range FROM range($first, $end)",
            {"first": first, "end": first + count},
        ).fetchall()
        return range(first, first + count)

    def existing(self, triples: Iterable[Triple]) -> set[Triple]:
        """Return those of some triples that are there."""
        return set(self._joined(_THERE, _TRIPLE, triples))

    def incident(self, vertices: Iterable[int], type_label: int) -> set[Triple]:
        """Return the edges from and to some vertices; ``type_label`` gives labels, and is none of them."""
        sql = (
            "SELECT label, subject, object FROM _graphdb.triple WHERE object < {0} AND label <> {1} AND "
            "(subject IN (SELECT vertex FROM _graphdb_some) OR object IN (SELECT vertex FROM _graphdb_some))"
        )
        found = self._joined(sql.format(LITERAL_BASE, int(type_label)), ("vertex",), [(v,) for v in vertices])
        return set(found)

    def facts(self, vertices: Iterable[int], type_label: int) -> set[Triple]:
        """Return the labels and properties of some vertices, as triples."""
        sql = (
            "SELECT label, subject, object FROM _graphdb.triple WHERE (object >= {0} OR label = {1}) "
            "AND subject IN (SELECT vertex FROM _graphdb_some)"
        )
        return set(self._joined(sql.format(LITERAL_BASE, int(type_label)), ("vertex",), [(v,) for v in vertices]))

    def apply(
        self,
        removed: Iterable[Triple],
        added: Iterable[Triple],
        touched: Iterable[Triple] = (),
        edges: Iterable[EdgeRow] = (),
        properties: Iterable[PropertyRow] = (),
    ) -> None:
        """Write changes: first ``removed`` triples go, then ``added`` ones that are not there come.

        The rows of the edges that ``touched`` triples stand for are replaced by ``edges`` with ``properties``.
        """
        removed, added, touched = list(removed), list(added), list(touched)
        using = "USING _graphdb_some s WHERE t.label = s.label AND t.subject = s.subject AND t.object = s.object"
        if removed or added:
            self._apply_triples(removed, added, using)
        if touched:
            for table in ("edge", "edge_property"):
                self._joined(f"DELETE FROM _graphdb.{table} t {using}", _TRIPLE, touched)
        self._joined("INSERT INTO _graphdb.edge FROM _graphdb_some", _EDGE, edges)
        self._joined("INSERT INTO _graphdb.edge_property FROM _graphdb_some", _PROPERTY, properties)
        if touched:
            gone = "NOT EXISTS (FROM _graphdb.edge e WHERE (e.label, e.subject, e.object, e.ordinal) = "
            gone += "(t.label, t.subject, t.object, t.ordinal))"
            self._joined(f"DELETE FROM _graphdb.reifier t {using} AND {gone}", _TRIPLE, touched)

    def _apply_triples(self, removed: Sequence[Triple], added: Sequence[Triple], using: str) -> None:
        """Take triples away, append others, and bring the statistics up to date with what changed."""
        columns = "(label BIGINT, subject BIGINT, object BIGINT)"
        if removed:
            self._connection.execute(f"CREATE TEMP TABLE _graphdb_gone {columns}")
            self._joined(f"INSERT INTO temp._graphdb_gone {_THERE}", _TRIPLE, removed)
            for table in ("triple", "quad", "reifier"):
                self._joined(f"DELETE FROM _graphdb.{table} t {using}", _TRIPLE, removed)
        self._connection.execute(f"CREATE TEMP TABLE _graphdb_new {columns}")
        self._joined(
            "INSERT INTO temp._graphdb_new SELECT DISTINCT label, subject, object FROM _graphdb_some"
            f" ANTI JOIN ({_THERE}) USING (label, subject, object)",
            _TRIPLE,
            added,
        )
        self._connection.execute(
            "INSERT INTO _graphdb.triple FROM temp._graphdb_new ORDER BY label ASC, subject ASC, object ASC"
        )
        gone = self._rows("temp._graphdb_gone") if removed else ()
        new = self._rows("temp._graphdb_new")
        self.changes.append(Changes.of(gone, new))
        statistics.change(
            self._connection,
            "temp._graphdb_new",
            "temp._graphdb_gone" if removed else statistics.NOTHING,
            literals=any(row[2] >= LITERAL_BASE for row in (*gone, *new)),
        )
        for table in ("new", "gone") if removed else ("new",):
            self._connection.execute(f"DROP TABLE temp._graphdb_{table}")

    def _rows(self, table: str) -> list[Triple]:
        return self._connection.execute(f"SELECT label, subject, object FROM {table}").fetchall()

    def _joined(self, sql: str, names: Sequence[str], rows: Iterable[tuple[int, ...]]) -> list[Any]:
        """Run SQL that names the rows ``_graphdb_some``; nothing happens where there are none."""
        import pyarrow as pa

        columns = list(zip(*rows, strict=True))
        if not columns:
            return []
        table = pa.table({name: pa.array(column, pa.int64()) for name, column in zip(names, columns, strict=True)})
        self._connection.register("_graphdb_some", table)
        try:
            return self._connection.execute(sql).fetchall()
        finally:
            self._connection.unregister("_graphdb_some")
