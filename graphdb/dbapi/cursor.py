"""Cursors of PEP 249."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from graphdb.dbapi.errors import InterfaceError, ProgrammingError, translated
from graphdb.dispatch.changes import ends_with_sql_that_changes
from graphdb.dispatch.parameters import Parameters

if TYPE_CHECKING:
    from graphdb.results.result import Result

Row = tuple[Any, ...]
_COUNT = [("Count", "INTEGER")]
"""What a SQL statement that changes rows has for a result: how many."""


class Runner(Protocol):
    """What a cursor needs of its connection."""

    def run(self, operation: str, parameters: Parameters | None) -> Result:
        """Run statements and return the last one's result."""

    def check_open(self) -> None:
        """Raise where it is closed."""


class Cursor:
    """Statements and their rows.

    Attributes
    ----------
    connection
        Where it comes from.
    arraysize
        How many rows :meth:`fetchmany` returns where nobody says.
    result
        The :class:`graphdb.Result` of the last statement: data frames, Arrow; None before the first one.
    rowcount
        How many rows the last statement gave or changed; -1 where nobody knows.
    description
        The columns: tuples of name, type and five times None; None where there are no rows.
    """

    lastrowid = None

    def __init__(self, connection: Runner) -> None:
        self.connection = connection
        self.arraysize = 1
        self.result: Result | None = None
        self.rowcount = -1
        self.description: Sequence[tuple[Any, ...]] | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Run one or several statements, and return this cursor, over the rows of the last one."""
        self._check_open()
        self.result, self.description, self.rowcount = None, None, -1
        self.result = self.connection.run(operation, parameters)
        with translated():
            self.description = self.result.description
            if self._changed_rows(operation):
                self.rowcount = next((row[0] for row in self.result), -1)
                self.description = None
            elif self.description is not None:
                self.rowcount = len(self.result)
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Run a statement with one set of parameters after the other, all in one transaction."""
        self._check_open()
        total = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            if self.description is not None:
                raise ProgrammingError("executemany is for statements without rows; use execute")
            total = total + self.rowcount if self.rowcount >= 0 and total >= 0 else -1
        self.rowcount = total
        return self

    def fetchone(self) -> Row | None:
        """Return the next row, or None."""
        with translated():
            return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next ``size`` rows, or as many as are left."""
        with translated():
            return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""
        with translated():
            rows = self._rows()
            return rows.fetchmany(len(rows))

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows that are left."""
        return iter(self.fetchone, None)

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Do nothing: values are as large as they are."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values are as large as they are."""

    def close(self) -> None:
        """Let go of the rows."""
        self._closed = True
        self.result = None

    def _rows(self) -> Result:
        self._check_open()
        if self.result is None or self.description is None:
            raise ProgrammingError("there are no rows to fetch: execute a statement that gives some")
        return self.result

    def _changed_rows(self, operation: str) -> bool:
        """Whether the result is DuckDB's count of the rows that a SQL statement changed."""
        return [column[:2] for column in self.description or ()] == _COUNT and ends_with_sql_that_changes(operation)

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection.check_open()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
