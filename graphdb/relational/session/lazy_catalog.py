"""The catalog of an open file: its tables are verified when the file is opened, and made when first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphdb.common.duckdb.connection import Connection
from graphdb.common.errors import StorageError

if TYPE_CHECKING:
    from graphdb.storage.catalog import Catalog
    from graphdb.storage.file.verify import Macros


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
        self._catalog: Catalog | None = None
        self._bare = private
        """Whether the tables of the graph were never looked for: only SQL of the user's can have made them."""
        self._verified = False
        """Whether the tables of the graph were found to be ours."""
        self._macros: Macros | None = None

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
        if self._catalog is None:
            self._catalog = self._found()
        return self._catalog

    def _found(self) -> Catalog:
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
                catalog.create()
                self.empty = True
                self._created()
            elif catalog.schema_version < SCHEMA_VERSION:
                if self._read_only:
                    raise StorageError(
                        f"'{self._path}' was written by an older version of graphdb",
                        hint="open it for writing once, to bring it up to date",
                    )
                catalog.migrate()
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
