"""``CREATE TABLE … AS MATCH …`` and ``AS MINE …``: a result as a table of DuckDB's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphdb.common import arrow
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import ExecutionError, StorageError
from graphdb.common.stopping import time_left
from graphdb.dispatch.mining import Mining
from graphdb.dispatch.queries import Queries
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.presentation import presented
from graphdb.relational.session.authorizer import authorize_name
from graphdb.relational.session.state import State
from graphdb.results.display import made_in_python
from graphdb.sql.udf import running

if TYPE_CHECKING:
    from graphdb.relational.paths.run import PathRun
    from graphdb.relational.program import Program
    from graphdb.relational.query import Prepared

_WIDEST = 500
"""Columns up to which SQL joins the properties of a table's rows: DuckDB's joins nest no deeper than 1,000."""


class Tables:
    """Makes tables of queries' results, and of what was mined."""

    def __init__(self, state: State, queries: Queries, mining: Mining) -> None:
        self._state = state
        self._queries = queries
        self._mining = mining

    def create(
        self,
        statement: ast.CreateTable,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        current: tuple[str, ...],
    ) -> str:
        """Make the table, in the schema ``current`` where none is named; return what to tell of it."""
        try:
            count = self._create(statement, text, arguments, timeout, current)
        except ExecutionError as error:
            if error.line is None and error.message.endswith("already exists!"):
                at = max(text.find(statement.name[-1], statement.span.start), statement.span.start)
                hint = "CREATE OR REPLACE TABLE makes it anew, CREATE TABLE IF NOT EXISTS leaves it"
                raise type(error)(error.message.rstrip("!"), text=text, position=at, hint=hint) from None
            raise
        return f"table {'.'.join(statement.name)}: {count[0][0] if count else 0:,} rows"

    def _create(
        self,
        statement: ast.CreateTable,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        current: tuple[str, ...],
    ) -> list[tuple[int, ...]]:
        """Make the table; return its number of rows, or nothing."""
        parts = statement.name if len(statement.name) > 1 or statement.temporary else (*current, *statement.name)
        authorize_name(parts, statement.temporary)
        name = ".".join(quoted(part) for part in parts)
        create = "CREATE OR REPLACE" if statement.replace else "CREATE"
        kind = "TEMP TABLE" if statement.temporary else "TABLE"
        absent = "IF NOT EXISTS " if statement.if_not_exists else ""
        made = f"{create} {kind} {absent}{name} AS"
        if isinstance(statement.query, ast.Mine):
            self._admit(statement)
            mined = self._mining.run(statement.query, text, arguments)
            return self._keep(f"{made} FROM", mined.presented(), time_left())
        with self._queries.calling(statement.query, text, arguments) as query:

            def tabled(careful: bool) -> list[tuple[int, ...]]:
                left = time_left() if careful else timeout
                with self._queries.new_run(text, arguments, left, careful=careful) as run:
                    prepared = self._queries.prepare(run, query, text, arguments)
                    return self.make(run, prepared, made, left)

            # A table of numbers that were told to be out of range would be there already.
            inside = self._state.transactions.inside
            return tabled(True) if inside else self._queries.ventured(text, tabled)

    def _admit(self, statement: ast.CreateTable) -> None:
        """Refuse a table that cannot be made before anything is mined."""
        if self._state.read_only and not statement.temporary:
            raise StorageError(
                "the database is open read-only, and takes no table",
                hint="open it for writing, or create a TEMP TABLE",
            )

    def make(
        self, run: PathRun, prepared: Prepared | Program, made: str, timeout: float | None
    ) -> list[tuple[int, ...]]:
        """Make a table of what was prepared: ``made`` is the SQL before its rows."""
        projection = prepared.projection
        if len(projection.columns) > _WIDEST or any(made_in_python(column.type) for column in projection.columns):
            return self._keep(f"{made} FROM", self._queries.result(run, prepared, 0.0).presented(), timeout)
        with (
            running(prepared.computing),
            run.bindings(prepared) as projection,
            self._state.connection.guard(timeout) as raw,
        ):
            rows = presented(f"({projection.sql})", projection.columns, ordered=projection.ordered)
            self._state.connection.promised.make(rows)
            # Not fetchone: an unfinished result would block the connection.
            return raw.execute(f"{made} {rows}", dict(projection.parameters)).fetchall()

    def _keep(self, made: str, table: arrow.Table, timeout: float | None) -> list[tuple[int, ...]]:
        """Make a table of rows that are there."""
        with self._state.connection.view("_graphdb_rows", table), self._state.connection.guard(timeout) as raw:
            return raw.execute(f"{made} _graphdb_rows").fetchall()
