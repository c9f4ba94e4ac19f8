"""Connections of PEP 249."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from graphdb.database import Database
from graphdb.dbapi import errors
from graphdb.dbapi.cursor import Cursor
from graphdb.dbapi.errors import translated
from graphdb.dispatch.changes import changes_within_a_transaction
from graphdb.dispatch.parameters import Parameters
from graphdb.results.result import Result


def connect(database: str = ":memory:", *, autocommit: bool = False, **options: Any) -> Connection:
    """Open a database file, creating it where there is none.

    Parameters
    ----------
    database
        The file, or ``":memory:"``.
    autocommit
        Whether each statement is a transaction of its own.
    **options
        Those of :func:`graphdb.connect`.

    Raises
    ------
    Error
        The file cannot be opened.
    """
    with translated():
        return Connection(Database(database, **options), autocommit=autocommit)


class Connection:
    """A connection to a database, which it closes in the end.

    As a context manager it commits (or, after an error, rolls back) what was done, and stays open.

    Attributes
    ----------
    database
        The :class:`graphdb.Database`.
    autocommit
        Whether each statement is a transaction of its own; otherwise what changes something begins one.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, database: Database, *, autocommit: bool = False) -> None:
        self.database = database
        self.autocommit = autocommit
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self.check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Run statements and return a new cursor over the last one's rows."""
        return self.cursor().execute(operation, parameters)

    def run(self, operation: str, parameters: Parameters | None) -> Result:
        """Run statements and return the last one's result, a transaction around what changes something."""
        self.check_open()
        with translated():
            if not self.autocommit and not self.database.in_transaction and changes_within_a_transaction(operation):
                self.database._begin_to_change()
            return self.database.query(operation, parameters)

    def commit(self) -> None:
        """End the transaction, if there is one, and keep what it did."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """End the transaction, if there is one, and undo what it did."""
        self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        self.check_open()
        with translated():
            if self.database.in_transaction:
                self.database.query(statement)

    def interrupt(self) -> None:
        """Stop what another thread runs on this connection."""
        self.database.interrupt()

    def close(self) -> None:
        """Close the database; a transaction that is open is rolled back."""
        if not self._closed:
            self._closed = True
            with translated():
                self.database.close()

    def check_open(self) -> None:
        """Raise `InterfaceError` where it is closed."""
        if self._closed:
            raise errors.InterfaceError("the connection is closed")

    def __enter__(self) -> Connection:
        self.check_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._closed:
            self._end("COMMIT" if error is None else "ROLLBACK")
