"""Statements that are DuckDB's SQL, in which ``cypher($$ … $$)`` and the caller's own tables are visible."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from graphdb.common import arrow
from graphdb.common.duckdb.errors import in_text, place_of
from graphdb.common.duckdb.fetch import fetched
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import ExecutionError, ParameterError
from graphdb.dispatch.arguments import parameters_named
from graphdb.dispatch.hints.other_databases import of_label, with_hint
from graphdb.dispatch.sql.parameters import chosen
from graphdb.dispatch.sql.pushdown import asked
from graphdb.dispatch.sql.texts import SqlStatement, Texts
from graphdb.dispatch.sql.views import Cypher, Views
from graphdb.pattern.names import local_name
from graphdb.relational.session.authorizer import authorize, authorize_files
from graphdb.relational.session.bulk import vacuum
from graphdb.relational.session.embedded import (
    CypherCall,
    caller_tables,
    first_word,
    has_unnamed_parameters,
    is_vacuum,
)
from graphdb.relational.session.search_path import check_path
from graphdb.relational.session.state import State
from graphdb.results.result import Result
from graphdb.storage.arrays import times_with_offset

if TYPE_CHECKING:
    import duckdb


_PATH = re.compile(r"\b(search_path|schema)\b", re.IGNORECASE)
_SHOW_TABLES = re.compile(r"\s*SHOW\s+(ALL\s+)?TABLES\s*;?\s*", re.IGNORECASE)

_READING = ("SELECT", "EXPLAIN", "INSERT", "UPDATE", "DELETE", "COPY")
"""Kinds of statements that make and drop no views."""


class SqlStatements:
    """Runs SQL over ``state``."""

    def __init__(self, state: State, cypher: Cypher) -> None:
        self._state = state
        self._cypher = cypher
        self._texts = Texts(state.connection)
        self.views = Views(state, cypher)

    def parameters(self, text: str) -> frozenset[str]:
        """Return the names of a text's parameters, those of its pattern queries with them."""
        return frozenset().union(*(each.parameters | each.embedded for each in self._texts.statements(text)))

    def run(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> Result:
        """Run SQL; see :meth:`graphdb.database.Database.sql`.  Other statements may have some of the arguments."""
        started = time.perf_counter()
        table: arrow.Table | None = None
        message = None
        with ExitStack() as stack:
            for each in self._texts.statements(text):
                statement, sql = each.text, each.sql
                authorize(statement, self._state.database)
                self._state.versions.before_statement()
                if each.kind == "TRANSACTION":
                    self.views.changed()
                    self._transaction(statement)
                    table = None
                    continue
                self._state.transactions.check()
                self.views.refuse_answers(statement)
                if is_vacuum(statement):
                    message, table = str(vacuum(self._state, timeout)), None
                    continue
                values = chosen(statement, each.parameters, arguments)
                authorize_files(sql, values.values())
                for view, call in each.calls.items():
                    given = self._given(call, arguments)
                    rows = self.views.rows(call.text, given, asked(each.tree, view, values), timeout)
                    stack.enter_context(self._state.connection.view(view, rows, lasting=True))
                    self._state.connection.promised.make(view)  # the user's SQL makes nothing that it reads
                self.views.enter(sql, values, stack, timeout)
                if not self._state.untrusted:
                    for name, data in caller_tables(self._state.connection, sql).items():
                        stack.enter_context(self._state.connection.view(name, data))
                if each.calls and values:  # what only the second argument of a call named is used up
                    [rest] = self._texts.statements(sql)
                    values = {name: values[name] for name in rest.parameters}
                try:
                    table = self._execute(sql, values, timeout)
                    if table is not None and _is_no_answer(each.kind, table):
                        table = None
                except ExecutionError as error:
                    raise _as_written(error, each) from None
                finally:
                    if each.kind not in _READING:
                        self.views.changed()
        return Result(
            self._state.version(),
            table,
            elapsed=time.perf_counter() - started,
            message=message or (None if table is not None else "done"),
        )

    def _given(self, call: CypherCall, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the parameters of a pattern query: those of the statement, and those that its call passes."""
        own: dict[str, object] = {}
        if call.parameters is not None:
            sql = f"SELECT {call.parameters}"
            [passing] = self._texts.statements(sql)
            if has_unnamed_parameters(sql):  # once the call is replaced, DuckDB would number those after it anew
                raise ParameterError(
                    "parameters that are passed to cypher need names or numbers, found ?",
                    hint="cypher($$ … $$, {x: $1})",
                )
            with self._state.connection.guard(ours=False) as raw:
                [[passed]] = raw.execute(sql, chosen(sql, passing.parameters, arguments)).fetchall()
            if not isinstance(passed, dict) or not all(isinstance(name, str) for name in passed):
                raise ParameterError(
                    f"cypher's parameters are a struct or a map, found {call.parameters}",
                    hint="cypher($$ … $$, {x: 1})",
                )
            own = passed
        return {name: arguments[name] for name in parameters_named(call.text) if name in arguments} | own

    def _labels(self) -> Iterator[tuple[str, str]]:
        """Yield names of vertex labels, each with what a pattern calls it; none within a transaction."""
        if not self._state.transactions.by_user:
            names = self._state.names()
            for id, label in names.vertex_labels.items():
                written = names.vertex_in_pattern(id)
                yield from ((name, written) for name in (local_name(label.iri), written.strip("`")))

    def _transaction(self, sql: str) -> None:
        """Begin or end the user's transaction."""
        connection, transactions = self._state.connection, self._state.transactions

        def run() -> None:
            with connection.guard() as raw:  # it reads no names: those of ours that last stay
                raw.execute(sql).fetchall()

        word = first_word(sql)
        if transactions.by_user:
            self._state.before_end()
        if word in ("BEGIN", "START"):
            transactions.begin(run)
        elif word in ("COMMIT", "END"):
            transactions.commit(run)
        else:
            transactions.rollback(run)

    def _execute(self, sql: str, values: dict[str, Any], timeout: float | None) -> arrow.Table | None:
        try:
            with self._state.connection.guard(timeout, ours=False) as raw:
                if _SHOW_TABLES.fullmatch(sql) is not None:
                    sql = f"FROM ({sql.rstrip('; ')}) WHERE NOT starts_with(name, '_graphdb_')"
                relation = raw.sql(sql, params=values) if values else raw.sql(sql)
                table = _table_of(relation, self._state.budget.rows) if relation is not None else None
        except BaseException as error:
            self._state.versions.after_failure()
            self._state.transactions.look()
            if isinstance(error, ExecutionError) and str(error).startswith("Catalog Error"):
                raise of_label(with_hint(error, sql), sql, self._labels()) from None
            raise
        first = first_word(sql)
        if first in ("SET", "RESET", "PRAGMA"):
            self._state.set_differently()
        if first == "USE" or (first in ("SET", "RESET", "PRAGMA") and _PATH.search(sql)):
            self._state.moved = True
            check_path(self._state.connection, self._state.database)
        return table


def _is_no_answer(kind: str, table: arrow.Table) -> bool:
    """Whether these are the columns that DuckDB names where a statement, of this kind, gives no rows at all."""
    if table.num_rows or kind in ("SELECT", "EXECUTE"):
        return False
    return table.column_names == ["Success"] or (kind == "CREATE" and table.column_names == ["Count"])


def _table_of(relation: duckdb.DuckDBPyRelation, most: int) -> arrow.Table:
    """Return the rows of a SQL query, which may take so many bytes, times with their offsets."""
    zoned = [i for i, type in enumerate(relation.types) if str(type) == times_with_offset.SQL]
    if not zoned:
        return fetched(relation, most)
    chosen = [  # by position: names may be the same
        f"{times_with_offset.parts_sql(f'#{i + 1}') if i in zoned else f'#{i + 1}'} AS {quoted(name)}"
        for i, name in enumerate(relation.columns)
    ]
    table = fetched(relation.project(", ".join(chosen)), most)
    return table.with_columns({i: times_with_offset.of_parts(table.column(i)) for i in zoned})


def _as_written(error: ExecutionError, statement: SqlStatement) -> ExecutionError:
    """Return an error of the SQL that ran as one of the SQL that is written, with its pattern queries."""
    position, shift = place_of(error.message, statement.sql), 0
    for view, call in statement.calls.items():
        if f'Referenced column "{view}"' in error.message:
            hint = "SELECT … FROM cypher($$ MATCH … RETURN … $$)"
            return ExecutionError("cypher is a table, not a value", text=statement.text, position=call.start, hint=hint)
        if position is not None and position > call.start + shift:
            shift += len(view) - (call.end - call.start)
    found = in_text(error, statement.sql)
    if position is None or not statement.calls:
        return found
    return type(error)(found.message, text=statement.text, position=position - shift, hint=found.hint)
