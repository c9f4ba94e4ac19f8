"""The catalog of an open file: its tables are verified when the file is opened, and made when first written.

What only reads a file without a graph, as one of DuckDB's own, finds empty tables: they are made for a statement, in a
transaction that is rolled back after it, so that the file stays as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import StorageError
from graphdb.common.stopping import check_stop

if TYPE_CHECKING:
    from graphdb.common.duckdb.transactions import Atomic
    from graphdb.storage.catalog import Catalog
    from graphdb.storage.file.verify import Macros


_PATIENCE = 1.0
"""Seconds in which others that read the file are waited for."""

_PAUSE = 0.005
"""Seconds between two looks whether they are done."""


class _GivenBack(Exception):
    """Ends a transaction in which something was only read."""


class LazyCatalog:
    """The tables of the graph in one open file.

    Parameters
    ----------
    created
        Called once the tables were created here.
    private
        Whether the database is in memory, and began with this connection: it ends with the process.
    read_only
        Whether the file is open for reading only.

    Attributes
    ----------
    database
        The name by which DuckDB knows the file.
    empty
        Whether nothing was written since the tables of the graph were created here.
    """

    def __init__(
        self, connection: Connection, path: str, created: Callable[[], None], *, private: bool, read_only: bool
    ) -> None:
        self._connection, self._path, self._created = connection, path, created
        self._private, self._read_only = private, read_only
        self.database: str = "memory" if private else connection.rows("SELECT system.main.current_database()")[0][0]
        self.empty = False
        self.migration_seconds: float | None = None
        """What it took of the processor to bring the file up to date, where an older version wrote it."""
        self._catalog: Catalog | None = None
        self._bare = private
        """Whether the tables of the graph were never looked for: only SQL of the user's can have made them."""
        self._verified = False
        """Whether the tables of the graph were found to be ours."""
        self._macros: Macros | None = None
        self._lent: Atomic | None = None
        """The transaction in which the tables are there for reading."""
        self._passing = False
        """Whether they are there for reading within the user's transaction."""
        self._has_view = False
        """Whether the file has a view of the user's that is called as ours."""

    @property
    def may_lend(self) -> bool:
        """Whether reading may need tables that the file has not."""
        return self._catalog is None and not (self._path == ":memory:" or self._read_only)

    def verify(self) -> None:
        """Check that what has our names in the file is what we made; see :mod:`graphdb.storage.file.verify`.

        Raises
        ------
        StorageError
            Something there is not ours.
        """
        from graphdb.storage.file.verify import Macros, is_new, verify_tables

        with self._connection.guard() as raw:
            if is_new(raw, self.database):
                return
            self._verified = verify_tables(raw, self.database, self._path)
            self._macros = Macros(raw, self.database)

    def catalog(self) -> Catalog:
        """Return the catalog; see :meth:`graphdb.relational.session.state.State.catalog`."""
        self.keep()
        if self._catalog is None:
            self._catalog = self._found(for_reading=False)
        return self._catalog

    def reading(self) -> Catalog:
        """Return the catalog for what only reads: if the file has no tables, they are there until :meth:`give_back`.

        Raises
        ------
        StorageError
            See :meth:`graphdb.relational.session.state.State.catalog`.
        """
        if self._catalog is None:
            self._catalog = self._found(for_reading=True)
        return self._catalog

    def keep(self) -> None:
        """Leave the tables that are there for reading in the file: something is about to be written."""
        lent, self._lent, self._passing = self._lent, None, False
        if lent is not None:
            lent.__exit__(None, None, None)

    def give_back(self) -> None:
        """Take away the tables that were there for reading; called after each statement.

        Caches are dropped as after any ROLLBACK.
        """
        lent, passing = self._lent, self._passing
        self._lent, self._passing = None, False
        transactions = self._connection.transactions
        if lent is not None:
            if transactions.writing:  # else an interrupt has rolled it back already
                lent.__exit__(_GivenBack, _GivenBack(), None)
        elif passing and transactions.by_user and not transactions.failed and not transactions.is_aborted():
            self._drop()
            transactions.on_rollback()

    def _created_for_reading(self, catalog: Catalog) -> Atomic:
        """Create the tables in a transaction; wait for another connection that reads the file in the same way."""
        import duckdb

        until = time.monotonic() + _PATIENCE
        while True:
            lent = self._connection.transactions.atomic()
            lent.__enter__()
            try:
                catalog.create()
            except BaseException as error:
                lent.__exit__(type(error), error, None)
                if not isinstance(error, duckdb.TransactionException) or time.monotonic() > until:
                    raise
                check_stop()
                time.sleep(_PAUSE)
            else:
                return lent

    def _drop(self) -> None:
        """Drop the tables that were made in the user's transaction: with their schema alone it could not commit."""
        home = quoted(self.database)
        tables = [f"TABLE {home}._graphdb.{quoted(name)}" for name in self._named("tables", "_graphdb")]
        with self._connection.guard() as raw:
            for what in ([] if self._has_view else [f"VIEW {home}.main.triples"], tables, [f"SCHEMA {home}._graphdb"]):
                for each in what:
                    raw.execute(f"DROP {each}")

    def _named(self, kind: str, schema: str) -> list[str]:
        """Return the names of tables, or of views that are called as ours, in a schema."""
        column = kind.removesuffix("s") + "_name"
        sql = (
            f"SELECT {column} FROM system.main.duckdb_{kind}() WHERE schema_name = $schema"
            " AND database_name = $database"
        )
        found = self._connection.rows(sql, {"schema": schema, "database": self.database})
        return [name for (name,) in found if kind == "tables" or name == "triples"]

    def _create(self, catalog: Catalog, *, for_reading: bool) -> None:
        """Create the tables: for reading within a transaction that is rolled back."""
        transactions = self._connection.transactions
        if not for_reading or self._path == ":memory:" or transactions.writing:
            catalog.create()
        elif transactions.by_user:
            self._has_view = bool(self._named("views", "main"))
            catalog.create()
            self._passing = True
        else:
            self._lent = self._created_for_reading(catalog)

    def _found(self, *, for_reading: bool) -> Catalog:
        """Look for the tables, and create or migrate them where that is due."""
        from graphdb.storage.catalog import SCHEMA_VERSION, Catalog
        from graphdb.storage.file.verify import verify_tables

        self._connection.transactions.check()
        with self._connection.guard() as raw:
            if self._macros is not None:
                self._macros.verify()
            catalog = Catalog(raw, self._connection.transactions, in_memory=self._private)
            found = (not self._bare or self._connection.has_others) and catalog.exists()
            self._bare = False
            if found and not self._verified:  # SQL copied it here
                verify_tables(raw, self.database, self._path)
            self._verified = True
            if not found:
                if self._read_only:
                    raise StorageError(
                        f"'{self._path}' holds no graph", hint="load one, with the database open for writing"
                    )
                self._create(catalog, for_reading=for_reading)
                self.empty = True
                self._created()
            elif catalog.schema_version < SCHEMA_VERSION:
                if self._read_only:
                    raise StorageError(
                        f"'{self._path}' was written by an older version of graphdb",
                        hint="open it for writing once, to bring it up to date",
                    )
                used = time.process_time()
                catalog.migrate()
                self.migration_seconds = time.process_time() - used
        return catalog

    def unfinished(self) -> str | None:
        """Return what was begun on this file and never ended, because its process was killed; it left nothing.

        Asked as soon as the file is open: what was verified is still all that there is.
        """
        from graphdb.storage.catalog import SCHEMA_VERSION, Catalog

        if self._private:
            return None
        with self._connection.guard() as raw:
            catalog = Catalog(raw, self._connection.transactions)
            if not (self._verified if self._path != ":memory:" else catalog.exists()):
                return None
            found = catalog.unfinished()
            if found and not self._read_only and catalog.schema_version <= SCHEMA_VERSION:
                catalog.end_work()
        return found

    def has_continuous(self) -> bool:
        """Whether the file, as it was opened, can be written and has continuous queries."""
        from graphdb.storage.catalog import SCHEMA_VERSION, Catalog

        if self._read_only or not self._verified:
            return False
        with self._connection.guard() as raw:
            if Catalog(raw, self._connection.transactions).schema_version != SCHEMA_VERSION:
                return False
        return bool(self._connection.rows("SELECT 1 FROM _graphdb.continuous_query LIMIT 1"))

    def rolled_back(self) -> None:
        """Forget what was read or created in a transaction that is no more."""
        self._catalog = None
        self._verified = False

    def close(self) -> None:
        """Stop looking at the file's macros."""
        if self._macros is not None:
            self._macros.close()
