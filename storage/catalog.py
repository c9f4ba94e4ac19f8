"""The catalog of a database file: labels, prefixes, sources and meta data.

A file is one of ours when it has the schema ``_graphdb``.  Its small tables are changed through SQLAlchemy, which
knows all of them (:mod:`.file.schema`); they are created, and what a query needs on its way is read, by plain DuckDB,
so that neither a first load nor reading imports SQLAlchemy.  There is one DuckDB connection: SQLAlchemy is handed the
caller's, and every statement joins the caller's transaction (or commits by itself where there is none).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from graphdb.common.duckdb.transactions import Transactions
from graphdb.common.errors import StorageError
from graphdb.common.values.terms import LITERAL_BASE, RDF, XSD
from graphdb.storage.arrays.sorted_sets import either
from graphdb.storage.file.prepared_sql import execute, execute_script
from graphdb.storage.file.verify import verify_labels
from graphdb.storage.statistics import tables

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import sqlalchemy
    from numpy.typing import NDArray

SCHEMA_VERSION = 12
"""See :mod:`graphdb.storage.file.migrations` for what each version brought."""

PREFIXES = {"rdf": RDF, "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "xsd": XSD}
"""Prefixes that every new database knows."""

_VIEW = f"""
CREATE VIEW IF NOT EXISTS main.triples AS
SELECT
    subject.iri AS subject,
    predicate.iri AS predicate,
    coalesce(resource.iri, literal.lexical) AS object,
    CASE
        WHEN literal.language IS NOT NULL THEN '{RDF}langString'
        WHEN literal.id IS NOT NULL THEN coalesce(literal.datatype, '{XSD}string')
    END AS datatype,
    literal.language AS language
FROM _graphdb.triple AS triple
JOIN _graphdb.resource AS subject ON subject.id = triple.subject
JOIN _graphdb.resource AS predicate ON predicate.id = triple.label
LEFT JOIN _graphdb.resource AS resource ON resource.id = triple.object
LEFT JOIN _graphdb.literal AS literal ON literal.id = triple.object
"""

_LOAD_ERRORS = """
CREATE TABLE IF NOT EXISTS main.load_errors (file VARCHAR, line BIGINT, "column" BIGINT, message VARCHAR, text VARCHAR)
"""


class EdgeLabel(NamedTuple):
    """An edge label's id, IRI and statistics (see :mod:`graphdb.storage.statistics.labels`).

    Each write makes those of all labels that it has triples of: a named tuple takes a third of a data class's time.
    """

    id: int
    iri: str
    triples: int
    resource_triples: int
    subjects: int
    objects: int
    max_out_degree: int
    max_in_degree: int
    kinds: int
    max_values: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The row of ``edge_label`` without its id."""
        return self[2:]


@dataclass(frozen=True, slots=True)
class VertexLabel:
    """A vertex label's id, IRI, and how many vertices have it."""

    id: int
    iri: str
    vertices: int


class Catalog:
    """The catalog of the database behind ``connection``, which stays the caller's, as its ``transactions`` do.

    ``in_memory`` says that the database ends with its process.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        transactions: Transactions | None = None,
        *,
        in_memory: bool = False,
    ) -> None:
        self._in_memory = in_memory
        self._connection = connection
        self.transactions = Transactions(connection) if transactions is None else transactions
        self._lazy_engine: sqlalchemy.Engine | None = None

    # --- the file ---

    def exists(self) -> bool:
        """Is the open file a graphdb database?"""
        # The schema first: before DuckDB lists tables, it parses the views of its own, which takes milliseconds.
        here = "schema_name = '_graphdb' AND database_name = system.main.current_database()"
        return bool(
            self._rows(f"SELECT 1 FROM system.main.duckdb_schemas() WHERE {here}")
            and self._rows(f"SELECT 1 FROM system.main.duckdb_tables() WHERE table_name = 'meta' AND {here}")
        )

    def create(self) -> None:
        """Create the schema, its tables, the view ``main.triples`` and the usual prefixes, in one transaction.

        Raises
        ------
        StorageError
            Something else has their names, or the file cannot be written.
        duckdb.TransactionException
            Another connection has created them in a transaction that is under way.
        """
        import duckdb

        from graphdb.storage.file.ddl import CREATE

        try:
            with self.transactions.atomic():
                self.transactions.touch()
                execute_script(self._connection, CREATE)
                version = "INSERT INTO _graphdb.meta VALUES ('schema_version', ?)"
                prefixes = f"INSERT INTO _graphdb.prefix VALUES {', '.join(['(?, ?)'] * len(PREFIXES))}"
                given = [SCHEMA_VERSION, *chain(*PREFIXES.items())]
                execute(self._connection, f"WITH version AS ({version}) {prefixes}", given)
                execute(self._connection, _VIEW)
        except (duckdb.InterruptException, duckdb.TransactionException):
            raise
        except duckdb.Error as error:
            raise StorageError(f"the tables of graphdb cannot be created: {error}") from error

    @property
    def schema_version(self) -> int:
        """The version of the file's tables; :class:`~graphdb.common.errors.StorageError` where the file states none."""
        value = self.meta("schema_version")
        if value is None or not value.isdecimal():
            raise StorageError("the file has no schema version: it is damaged or not a graphdb database")
        return int(value)

    def migrate(self) -> None:
        """Bring a file that an older version wrote to this version's tables, in one transaction."""
        import numpy as np

        from graphdb.storage.file import migrations
        from graphdb.storage.statistics import labels

        found = self.schema_version
        if found >= SCHEMA_VERSION:
            return
        with self.transactions.atomic():
            migrations.migrate(self._connection, found, SCHEMA_VERSION)
            if found < migrations.COUNTED:
                labels.refresh(self._connection, np.array([label.id for label in self.labels()[0]], np.int64))

    # --- small tables ---

    def meta(self, key: str) -> str | None:
        """Return the value noted under ``key``, or None."""
        rows = self._rows("SELECT value FROM _graphdb.meta WHERE key = ?", [key])
        return rows[0][0] if rows else None

    def prefixes(self) -> dict[str, str]:
        """Return the declared prefixes and their IRIs, by name."""
        return dict(self._rows("SELECT prefix, iri FROM _graphdb.prefix ORDER BY prefix"))

    def add_prefixes(self, prefixes: dict[str, str]) -> None:
        """Declare prefixes where their names are free."""
        if prefixes:
            declared = self.prefixes()  # asked for: planning ON CONFLICT takes longer
            new = {name: iri for name, iri in prefixes.items() if name not in declared}
            if new:
                execute(
                    self._connection,
                    "INSERT INTO _graphdb.prefix SELECT unnest($names::VARCHAR[]), unnest($iris::VARCHAR[])",
                    {"names": list(new), "iris": list(new.values())},
                )

    def set_prefix(self, name: str, iri: str) -> None:
        """Declare a prefix, or declare it anew."""
        from graphdb.storage.file import schema

        self._put(schema.prefix, {"prefix": name}, {"iri": iri})

    def labels(self) -> tuple[list[EdgeLabel], list[VertexLabel]]:
        """Return all edge labels that have a triple, and all vertex labels that have a vertex, by id."""
        edges, vertices = tables.labels(self._connection, "edge_label", "vertex_label")
        verify_labels(edges)
        verify_labels(vertices)
        return [EdgeLabel(*row) for row in edges], [VertexLabel(*row) for row in vertices]

    def subclasses(self) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[int, VertexLabel]]:
        """Return the triples of rdfs:subClassOf (classes, classes above) and their classes with an IRI, by id."""
        import numpy as np

        columns = execute(
            self._connection,
            "SELECT subject, object FROM _graphdb.triple WHERE object < $literals"
            " AND label = (SELECT id FROM _graphdb.resource WHERE iri = $iri)",
            {"iri": PREFIXES["rdfs"] + "subClassOf", "literals": LITERAL_BASE},
        ).fetchnumpy()
        below, above = (np.asarray(columns[name], np.int64) for name in ("subject", "object"))
        rows = execute(
            self._connection,
            "SELECT id, iri FROM _graphdb.resource WHERE id IN (SELECT unnest($ids)) AND NOT starts_with(iri, '_:')",
            {"ids": either(below, above).tolist()},
        ).fetchall()
        return below, above, {id: VertexLabel(id, iri, 0) for id, iri in rows}

    # --- work under way ---

    def begin_work(self, what: str) -> None:
        """Note, outside of any transaction, that something long begins; whoever finds the note knows it was killed."""
        import duckdb

        if self._in_memory:  # nobody will find it
            return
        try:
            execute(self._connection, "INSERT INTO _graphdb.meta VALUES ('work', ?)", [what])
        except duckdb.ConstraintException:  # a note is left over; to plan for one takes longer
            execute(self._connection, "INSERT OR REPLACE INTO _graphdb.meta VALUES ('work', ?)", [what])

    def end_work(self) -> None:
        """Take the note away; within the transaction of the work, it goes with the work's success."""
        if not self._in_memory:
            execute(self._connection, "DELETE FROM _graphdb.meta WHERE key = 'work'")

    def unfinished(self) -> str | None:
        """What a process that is no more had begun and never ended."""
        found = self.meta("work")
        return None if found is None or f"(process {os.getpid()}," in found else found

    # --- sources and load errors ---

    def next_source(self) -> int:
        """Return the number that the next loaded file gets."""
        return int(self._rows("SELECT coalesce(max(id) + 1, 0) FROM _graphdb.source")[0][0])

    def add_sources(self, first: int, paths: list[str], triples: list[int]) -> None:
        """Note loaded files, numbered from ``first``, and their triples: in plain SQL, which needs no SQLAlchemy."""
        execute(
            self._connection,
            "INSERT INTO _graphdb.source"
            " SELECT unnest($ids::BIGINT[]), unnest($paths::VARCHAR[]), unnest($triples::BIGINT[]), now()",
            {"ids": [*range(first, first + len(paths))], "paths": paths, "triples": triples},
        )

    def create_load_errors(self) -> None:
        """Create the table ``main.load_errors`` where it is missing."""
        execute(self._connection, _LOAD_ERRORS)

    # --- the connection ---

    def _rows(self, sql: str, parameters: list[object] | None = None) -> list[Any]:
        return execute(self._connection, sql, parameters).fetchall()

    def _put(self, table: sqlalchemy.Table, key: dict[str, str], value: dict[str, str]) -> None:
        """Insert a row, or update the one with this key."""
        from sqlalchemy.exc import DBAPIError

        [(column, wanted)] = key.items()
        try:
            with self._engine().connect() as sql:
                updated = sql.execute(
                    table.update().where(table.c[column] == wanted).values(value).returning(table.c[column])
                )
                if not updated.fetchall():
                    sql.execute(table.insert(), [key | value])
        except DBAPIError as error:
            if error.orig is not None:
                raise error.orig from None  # DuckDB's own, which the connection's owner knows
            raise

    def _engine(self) -> sqlalchemy.Engine:
        """Return SQLAlchemy's engine over our one connection."""
        if self._lazy_engine is None:
            self._lazy_engine = _share(self._connection)
        return self._lazy_engine


def _share(connection: duckdb.DuckDBPyConnection) -> sqlalchemy.Engine:
    """Return an engine whose only connection is ``connection``, and which leaves transactions to its owner."""
    import sqlalchemy
    from duckdb_sqlalchemy import ConnectionWrapper
    from sqlalchemy.pool import StaticPool

    class Shared(ConnectionWrapper):
        """Sends statements; it neither begins nor ends transactions, nor closes what is not its own."""

        def begin(self) -> None: ...

        def commit(self) -> None: ...

        def rollback(self) -> None: ...

        def close(self) -> None: ...

    return sqlalchemy.create_engine(
        "duckdb://", creator=lambda: Shared(connection), poolclass=StaticPool, pool_reset_on_return=None
    )
