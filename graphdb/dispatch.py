"""Statements: how each kind is run over an open database.

Pattern queries go the way that :mod:`graphdb.database` tells; everything else is DuckDB's SQL, in which
``cypher($$ … $$)`` and the caller's own tables are made visible first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from graphdb.common.duckdb.connection import quoted
from graphdb.common.errors import (
    BindError,
    ExecutionError,
    GraphDBError,
    MemoryLimitError,
    NotSupportedError,
    ParameterError,
    ParseError,
    QueryTimeout,
    StorageError,
    TypeMismatchError,
    nearest,
    placed,
)
from graphdb.common.progress import Progress, watching
from graphdb.common.stopping import stopping, time_left
from graphdb.execute.choose import choose_executor
from graphdb.execute.warm import warm_up
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.grammar.walk import walk
from graphdb.plan.executor import Control
from graphdb.procedures.implied import expand_call, parameters_of
from graphdb.relational.explain import Explanation
from graphdb.relational.path_counts import given_counts, with_counts
from graphdb.relational.paths.run import PathRun
from graphdb.relational.paths.selected import Selected
from graphdb.relational.program import Program
from graphdb.relational.projection.presentation import presented
from graphdb.relational.query import Prepared, QueryRun
from graphdb.relational.session.authorizer import authorize, authorize_name
from graphdb.relational.session.embedded import caller_tables, cypher_calls, first_word, is_vacuum
from graphdb.relational.session.state import State
from graphdb.relational.session.versions import Version
from graphdb.results.display import made_in_python
from graphdb.results.result import Counted, Result
from graphdb.sql.udf import running
from graphdb.storage.arrays import times_with_offset

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from graphdb.interpret.compute import Computation
    from graphdb.interpret.result import ValuesResult
    from graphdb.plan.executor import Executor
    from graphdb.relational.projection.relation import Relation
    from graphdb.storage.loaders.load import LoadReport
    from graphdb.writing.run import Writing

_REMEMBERED = 1000
"""Statements of which it is remembered that they write few rows."""
_FEW = 1000
"""Rows that these may have: for more, whether they are written by sets is asked again."""

_SPENT = (QueryTimeout, MemoryLimitError, StorageError)
"""Errors of what there is no more of, time, memory or room on the disk: no other strategy is tried."""

_PATH = re.compile(r"\b(search_path|schema)\b", re.IGNORECASE)


class Statements:
    """Runs statements, one at a time, over ``state``."""

    def __init__(self, state: State, device: str, threads: int) -> None:
        self._state = state
        self._device = device
        self._threads = threads
        self._executor: Executor | None = None
        self._cancelled = state.cancelled
        self._unasked = Control(cancelled=self._cancelled)
        """Controls repeated counts, one after the other: nobody asks what it learns."""
        self._home = Version(state)
        """What repeated counts are given, which look nothing up."""
        self._write_few: dict[str, int] = {}
        """Texts of statements that were expected to write few rows, and how many resources there were then: what that
        is known by takes longer than the rest, and is not asked again before the graph has doubled."""
        self._told: Progress | None = None
        """Whom to tell how far the statement is."""

    def run(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> Result:
        """Run the statements of a text, all within ``timeout`` seconds; the last one's result."""
        state = self._state
        state.refresh()
        if (
            timeout is None
            and not arguments
            and not state.progress
            and (count := self._counted_again(text)) is not None
        ):
            return count
        result = None
        with stopping(timeout, self._cancelled):
            statements = parse_script(text)
            if arguments or "$" in text:
                _check_arguments(text, arguments, lambda: parameters_of(statements, self._state.procedures))
                statements = tuple(with_counts(statement, text, arguments) for statement in statements)
            run = self._told_of if self._state.progress else self._statement
            for statement in statements:
                self._state.versions.before_statement()
                try:
                    result = run(statement, text, arguments, time_left())
                except QueryTimeout as error:
                    raise _late(error, timeout) from None
                except ExecutionError as error:
                    raise placed(error, text) from error.__cause__
        return Result(self._state.version(), None) if result is None else result

    def run_sql(self, text: str, timeout: float | None) -> Result:
        """Run SQL by itself; see :meth:`graphdb.database.Database.sql`."""
        self._state.refresh()
        try:
            with stopping(timeout, self._cancelled):
                return self.sql(text, timeout)
        except QueryTimeout as error:
            raise _late(error, timeout) from None

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Tell how far a statement is, as the database's owner wants it; what runs within one is part of it."""
        if self._told is not None:
            yield
            return
        with watching(self._state.progress) as self._told:
            try:
                yield
            finally:
                self._told = None

    def _told_of(
        self, statement: ast.Statement, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        with self._watched():
            return self._statement(statement, text, arguments, timeout)

    def _statement(
        self, statement: ast.Statement, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        if isinstance(statement, ast.Sql):
            return self.sql(statement.text, timeout)
        transactions = self._state.transactions
        if not transactions.by_user:
            return self._pattern_statement(statement, text, arguments, timeout)
        transactions.check()
        try:
            return self._pattern_statement(statement, text, arguments, timeout)
        except BaseException:
            transactions.look()
            raise

    def _pattern_statement(
        self, statement: ast.Statement, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        started = time.perf_counter()
        with self._state.at_home() as current:
            match statement:
                case ast.Query():
                    with self._query_run(text, arguments, timeout) as run:
                        try:
                            prepared = self._prepare(run, statement, text, arguments)
                        except NotSupportedError:
                            return self._interpreted(statement, text, arguments, timeout)
                        except TypeMismatchError as refused:  # types that only the data decides, or a mistake
                            try:
                                return self._interpreted(statement, text, arguments, timeout)
                            except TypeMismatchError:
                                raise refused from None
                        try:
                            return self._result(run, prepared, started)
                        except NotSupportedError:  # only its values showed it
                            return self._interpreted(statement, text, arguments, timeout)
                case ast.Composite():
                    if (function := self._sql_function(statement, text)) is not None:
                        return self.sql(function, timeout)
                    with self._state.procedures.statement():
                        query = expand_call(statement, self._state.procedures, text, arguments)
                        return self._composite(query, text, arguments, timeout)
                case ast.CreateTable():
                    with self._calling(statement.query, text, arguments) as called:
                        statement = replace(statement, query=called)
                        message = self._create_table(statement, text, arguments, timeout, current)
                case ast.Explain():
                    lines = self.explain(statement.query, statement.profile, text, arguments, timeout)
                    return Result(
                        self._state.version(),
                        lines.to_table(),
                        elapsed=time.perf_counter() - started,
                        verbatim=True,
                    )
                case ast.Prefix():
                    with self._state.connection.guard(), self._state.writing():
                        self._state.transactions.touch()
                        self._state.catalog().set_prefix(statement.name, statement.iri)
                        self._state.changed()
                    message = f"prefix {statement.name}: is <{statement.iri}>"
                case ast.Load():
                    report = self._load(statement)
                    message = (
                        f"loaded {report.triples:,} triple{'s' if report.triples != 1 else ''} "
                        f"({report.new_triples:,} new) from {report.files} "
                        f"file{'s' if report.files != 1 else ''} in {report.seconds:.2f} s"
                    )
                    if report.errors:
                        message += f"; skipped {report.errors:,} bad lines, see table load_errors"
            return Result(self._state.version(), None, elapsed=time.perf_counter() - started, message=message)

    @contextmanager
    def _calling(
        self, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Iterator[ast.Query | ast.Composite]:
        """Yield a query as it is to run: its calls of procedures have all that they need, and are made once."""
        procedures = self._state.procedures
        with procedures.statement():
            yield expand_call(query, procedures, text, arguments) if isinstance(query, ast.Composite) else query

    def _sql_function(self, query: ast.Composite, text: str) -> str | None:
        """Return the text of a call of what is no procedure, but a function of DuckDB's."""
        call = query.called
        if call is None or call.yields is not None or call.arguments is None or self._state.procedures.knows(call.name):
            return None
        name = call.name.rpartition(".")[2].lower()
        sql = "SELECT 1 FROM duckdb_functions() WHERE lower(function_name) = $name LIMIT 1"
        known = self._state.connection.rows(sql, {"name": name})
        return text[query.span.start : query.span.end] if known else None

    def _composite(
        self, query: ast.Composite, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        """Run a query of any clauses: as matches with SQL after them, or what SQL does not know by the interpreter."""
        started = time.perf_counter()
        if not query.writes:
            with self._query_run(text, arguments, timeout) as run:
                try:
                    prepared = self._prepare(run, query, text, arguments)
                except _SPENT:  # what was asked for is spent: no second way
                    raise
                except GraphDBError:  # the interpreter knows more, and what is wrong
                    pass
                else:
                    try:
                        return self._result(run, prepared, started)
                    except NotSupportedError:  # only its values showed it
                        pass
            return self._interpreted(query, text, arguments, timeout)
        from graphdb.interpret.write import WritesMany
        from graphdb.writing.run import WritesFew

        size = self._state.snapshot().graph.resources
        if size <= 2 * self._write_few.get(text, -1):
            try:
                return self._interpreted(query, text, arguments, timeout, most=_FEW)
            except WritesMany:
                del self._write_few[text]
        try:
            return self._writing(query, text, arguments, timeout).run()
        except _SPENT:
            raise
        except WritesFew:
            if len(self._write_few) > _REMEMBERED:
                self._write_few.clear()
            self._write_few[text] = size
        except GraphDBError as error:  # nothing is written yet: the interpreter knows more, and what is wrong
            if placed(error, text).line is not None and isinstance(error, ExecutionError):
                raise
        return self._interpreted(query, text, arguments, timeout)

    def _writing(
        self, query: ast.Composite, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Writing:
        """Return a statement that writes by sets; see :mod:`graphdb.writing`.

        Raises
        ------
        GraphDBError
            It is for the interpreter, or wrong, which that tells.
        """
        from graphdb.writing.run import Writing
        from graphdb.writing.stages import writes_one_row

        if writes_one_row(query):
            raise NotSupportedError("it writes one row, which is as quick")

        def new_run(given: Mapping[str, object], left: float | None) -> PathRun:
            return self._query_run(text, given, left)

        def prepare(run: PathRun, query: ast.Composite, start: Relation | None) -> Prepared | Program:
            prepared = run.prepare(query) if start is None else run.prepare_from(query, start)
            return prepared if self._later.found is None else replace(prepared, computing=self._later.found)

        return Writing(self._state, query, text, arguments, timeout, new_run, prepare)

    def _result(self, run: PathRun, prepared: Prepared | Program, started: float) -> Result:
        """Run what was prepared.

        Raises
        ------
        NotSupportedError
            A value that Python computes failed: the query has to be interpreted.
        """
        with running(prepared.computing) as value_of:
            table = run.run(prepared)
        columns = prepared.shaped.columns
        return Result(self._state.version(), table, columns, elapsed=time.perf_counter() - started, value_of=value_of)

    def _load(self, statement: ast.Load) -> LoadReport:
        from graphdb.storage.loaders.sources import Options
        from graphdb.storage.loaders.tables.headers import Mapping as Headers

        options = Options(
            statement.format,
            statement.on_error,
            statement.base,
            Headers(dict(statement.columns), statement.label, statement.type),
            self._state.spill,
            self._state.batch,
        )
        return self._state.load(statement.paths, options, self._told)

    def _interpreted(
        self,
        query: ast.Query | ast.Composite,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        most: int | None = None,
    ) -> ValuesResult:
        """Run a query by the interpreter; see :mod:`graphdb.interpret`."""
        from graphdb.interpret.statement import interpreted

        run = self._query_run(text, arguments, timeout)
        return interpreted(self._state, run.executor, query, text, arguments, run.new_control, most)

    def _query_run(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> PathRun:
        executor = self._executor
        if executor is None:
            warm_up()
            executor = choose_executor(self._device, threads=self._threads, memory_limit=self._state.budget.bindings)
            self._executor = executor
        self._later = later = _Later(self._state, executor, text, arguments)
        return PathRun(
            replace(self._state.snapshot(), computing=later),
            executor,
            text,
            arguments,
            bindings_bytes=self._state.budget.bindings,
            threads=self._threads,
            timeout=timeout,
            cancelled=self._cancelled,
            progress=self._told,
        )

    @staticmethod
    def _only_counts(prepared: Prepared | Program | GraphDBError) -> bool:
        """Whether a query's result is the number of its plan's matches, and nothing is left to do after the match."""
        if not isinstance(prepared, Prepared) or prepared.plan is None or not prepared.reusable:
            return False
        return prepared.wanted.count_only and prepared.plan.count_only

    def _counted_again(self, text: str) -> Result | None:
        """Count the matches of a text that only counts and was prepared before; None for any other.

        Many such counts take a microsecond: whatever else is done here is what they cost.
        """
        found: Prepared | None = self._state.prepared.get(text)
        if found is None or self._executor is None:
            return None
        started = time.perf_counter()
        assert found.plan is not None
        self._unasked.term_seconds.clear()
        count = self._executor.count(found.plan, self._unasked)
        columns = found.shaped.columns
        table = Counted(count, len(columns), found.shaped.window)
        return Result(self._home, table, columns, elapsed=time.perf_counter() - started)

    def _prepare(
        self, run: PathRun, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Prepared | Program:
        """Return the query ready to run: as it was prepared last time, while the data stays as it is.

        Raises
        ------
        GraphDBError
            SQL cannot do it, or something is wrong with it; that is remembered, too.
        """
        key = _key(query, text, arguments)
        try:
            found: Prepared | Program | GraphDBError | None = self._state.prepared.get(key)
        except TypeError:  # a list among the arguments
            return self._new(run, query, text, arguments)
        if found is None:
            alike = (text, query.span.start, *given_counts(query), *arguments, *map(type, arguments.values()))
            if arguments and (former := self._state.prepared.get(alike)) is not None:
                assert isinstance(former, Selected)
                if (again := run.again(former)) is not None:
                    return again
            try:
                found = self._new(run, query, text, arguments)
            except (NotSupportedError, TypeMismatchError, BindError) as refused:
                found = refused
            if isinstance(found, GraphDBError) or found.reusable:
                self._state.prepared.put(key, found, _own_bytes(found))
                if isinstance(found, Selected) and found.given is not None:
                    self._state.prepared.put(alike, found, 0)
        elif self._only_counts(found) and not arguments and len(parse_script(text)) == 1:
            self._state.prepared.put(text, found, 0)  # asked twice, it will be asked again: _counted_again finds it
        if isinstance(found, GraphDBError):
            raise found.with_traceback(None)
        return found

    def _new(
        self, run: QueryRun, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Prepared | Program:
        if isinstance(query, ast.Composite):
            from graphdb.interpret.statement import check_query

            check_query(self._state, run.executor, query, text, arguments, run.new_control)
        try:
            prepared = run.prepare(query)
        except ExecutionError:
            if self._later.found is not None:
                self._later.found.refuse()
            raise
        return prepared if self._later.found is None else replace(prepared, computing=self._later.found)

    def _create_table(
        self,
        statement: ast.CreateTable,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        current: tuple[str, ...],
    ) -> str:
        parts = statement.name if len(statement.name) > 1 or statement.temporary else (*current, *statement.name)
        authorize_name(parts, statement.temporary)
        name = ".".join(quoted(part) for part in parts)
        create = "CREATE OR REPLACE" if statement.replace else "CREATE"
        kind = "TEMP TABLE" if statement.temporary else "TABLE"
        absent = "IF NOT EXISTS " if statement.if_not_exists else ""
        made = f"{create} {kind} {absent}{name} AS"
        with self._query_run(text, arguments, timeout) as run:
            try:
                prepared = self._new(run, statement.query, text, arguments)
                if any(made_in_python(column.type) for column in prepared.shaped.columns):
                    count = self._keep(f"{made} FROM", self._result(run, prepared, 0.0).presented(), timeout)
                else:
                    shaped = prepared.shaped
                    rows = presented(f"({shaped.sql})", shaped.columns, ordered=shaped.ordered)
                    with (
                        running(prepared.computing),
                        run.bindings(prepared),
                        self._state.connection.guard(timeout) as raw,
                    ):
                        # Not fetchone: an unfinished result would block the connection.
                        count = raw.execute(f"{made} {rows}", dict(shaped.parameters)).fetchall()
            except _SPENT:  # what was asked for is spent: no second way
                raise
            except GraphDBError as refused:
                one = isinstance(statement.query, ast.Query)
                if one and not isinstance(refused, NotSupportedError | TypeMismatchError):
                    raise
                table = self._interpreted(statement.query, text, arguments, timeout).presented()
                count = self._keep(f"{made} FROM", table, timeout)
        return f"table {'.'.join(statement.name)}: {count[0][0] if count else 0:,} rows"

    def _keep(self, made: str, table: pa.Table, timeout: float | None) -> list[tuple[int, ...]]:
        """Make a table of rows that are there."""
        with self._state.connection.view("_graphdb_rows", table), self._state.connection.guard(timeout) as raw:
            return raw.execute(f"{made} _graphdb_rows").fetchall()

    def explain(
        self,
        query: ast.Query | ast.Composite,
        profile: bool,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
    ) -> Explanation:
        """Explain a query, or with ``profile`` run it and tell what happened."""
        with self._calling(query, text, arguments) as called:
            return self._explain(called, profile, text, arguments, timeout)

    def _explain(
        self,
        query: ast.Query | ast.Composite,
        profile: bool,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
    ) -> Explanation:
        if isinstance(query, ast.Composite) and query.writes:
            try:
                return Explanation(tuple(self._writing(query, text, arguments, timeout).explain(profile)))
            except (NotSupportedError, TypeMismatchError, BindError, ParseError) as refused:
                return self._explained(query, profile, text, arguments, timeout, refused.message)
        with self._query_run(text, arguments, timeout) as run:
            started = time.perf_counter()
            try:
                prepared = self._prepare(run, query, text, arguments)
            except (NotSupportedError, TypeMismatchError, BindError, ParseError) as refused:
                return self._explained(query, profile, text, arguments, timeout, refused.message)
            planned = time.perf_counter() - started
            names = self._state.snapshot().names
            if isinstance(prepared, Program):
                if not profile:
                    return Explanation.of_program(prepared, names, run.executor.describe)
                with running(prepared.computing):
                    table = run.run(prepared)
                seconds = planned, time.perf_counter() - started
                return Explanation.of_program(
                    prepared, names, run.executor.describe, run.controls, seconds, table.num_rows
                )
            executor = "" if prepared.plan is None else run.executor.describe(prepared.plan)
            if not profile:
                return Explanation.planned(prepared, names, executor)
            with running(prepared.computing):
                table = run.run(prepared)
            seconds = planned, time.perf_counter() - started
        return Explanation.profiled(prepared, names, executor, run.control, seconds, table.num_rows)

    def _explained(
        self,
        query: ast.Query | ast.Composite,
        profile: bool,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        why: str,
    ) -> Explanation:
        """Explain a query that is interpreted, and why, or raise what is wrong with it."""
        from graphdb.interpret.statement import explained

        run = self._query_run(text, arguments, timeout)
        found = self._interpreted(query, text, arguments, timeout) if profile else None
        told = explained(self._state, run.executor, query, text, arguments, run.new_control, found, why)
        return Explanation(tuple(told))

    # --- SQL

    def sql(self, text: str, timeout: float | None) -> Result:
        """Run SQL; see :meth:`graphdb.database.Database.sql`."""
        started = time.perf_counter()
        table: pa.Table | None = None
        message = None
        with ExitStack() as stack:
            for statement, kind in self._statements(text):
                authorize(statement, self._state.database)
                self._state.versions.before_statement()
                if kind == "TRANSACTION":
                    self._transaction(statement)
                    table = None
                    continue
                self._state.transactions.check()
                if is_vacuum(statement):
                    message, table = str(self._state.vacuum(timeout)), None
                    continue
                sql = statement
                for call in reversed(cypher_calls(statement)):
                    view = self._state.connection.temporary()
                    rows = self._cypher(call.text, timeout).presented()
                    stack.enter_context(self._state.connection.view(view, rows))
                    sql = sql[: call.start] + view + sql[call.end :]
                if not self._state.untrusted:
                    for name, data in caller_tables(self._state.connection, sql).items():
                        stack.enter_context(self._state.connection.view(name, data))
                table = self._execute(sql, timeout)
        return Result(
            self._state.version(),
            table,
            elapsed=time.perf_counter() - started,
            message=message or (None if table is not None else "done"),
        )

    def _cypher(self, text: str, timeout: float | None) -> Result:
        """Run the pattern query of a ``cypher(…)`` in SQL."""
        statements = parse_script(text)
        if not statements or not all(isinstance(statement, (ast.Query, ast.Composite)) for statement in statements):
            raise NotSupportedError("cypher in SQL takes a pattern query: MATCH … RETURN …", text=text, position=0)
        if any(isinstance(statement, ast.Composite) and statement.writes for statement in statements):
            raise NotSupportedError(
                "cypher in SQL only reads", text=text, position=0, hint="run the statement that writes by itself"
            )
        return self.run(text, {}, timeout)

    def _statements(self, text: str) -> list[tuple[str, str]]:
        """Return the statements of a text, and of which kind each is, by DuckDB's name."""
        text.encode()  # the error of a lone surrogate says where it is, DuckDB's does not
        with self._state.connection.guard(ours=False) as raw:
            return [(statement.query, _kind(statement)) for statement in raw.extract_statements(text)]

    def _transaction(self, sql: str) -> None:
        """Begin or end the user's transaction."""
        connection, transactions = self._state.connection, self._state.transactions

        def run() -> None:
            with connection.guard(ours=False) as raw:
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

    def _execute(self, sql: str, timeout: float | None) -> pa.Table | None:
        try:
            with self._state.connection.guard(timeout, ours=False) as raw:
                relation = raw.sql(sql)
                table = _table_of(relation) if relation is not None else None
        except BaseException:
            self._state.versions.after_failure()
            self._state.transactions.look()
            raise
        first = first_word(sql)
        if first in ("SET", "RESET", "PRAGMA"):
            self._state.set_differently()
        if first == "USE" or (first in ("SET", "RESET", "PRAGMA") and _PATH.search(sql)):
            self._state.moved = True
            self._state.check_path()
        return table


def _kind(statement: duckdb.Statement) -> str:
    """Return DuckDB's name of a kind of statements; none for those that its Python client does not know."""
    try:
        return statement.type.name
    except ValueError:
        return ""


def _late(error: QueryTimeout, timeout: float | None) -> QueryTimeout:
    """Return the error of a statement that ran out of time, with the time that it had."""
    if timeout is None:
        return error
    return QueryTimeout(
        f"the statement ran longer than its timeout of {timeout:g} s",
        hint="give it more time, or ask for less with LIMIT",
    )


def _table_of(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """Return the rows of a SQL query, times with their offsets."""
    zoned = [i for i, type in enumerate(relation.types) if str(type) == times_with_offset.SQL]
    if not zoned:
        return relation.to_arrow_table()
    chosen = [  # by position: names may be the same
        f"{times_with_offset.parts_sql(f'#{i + 1}') if i in zoned else f'#{i + 1}'} AS {quoted(name)}"
        for i, name in enumerate(relation.columns)
    ]
    table = relation.project(", ".join(chosen)).to_arrow_table()
    for i in zoned:
        table = table.set_column(i, table.column_names[i], times_with_offset.of_parts(table.column(i)))
    return table


class _Later:
    """Makes what computes a statement's expressions in Python, when the first of them is met."""

    def __init__(self, state: State, executor: Executor, text: str, arguments: Mapping[str, object]) -> None:
        self._of = state, executor, text, arguments
        self.found: Computation | None = None

    def __call__(self) -> Computation:
        if self.found is None:
            from graphdb.interpret.compute import Computation
            from graphdb.interpret.context import Context

            state, executor, text, arguments = self._of
            self.found = Computation(Context(state.snapshot, state.forget, executor, text, arguments, Control))
        return self.found


def _key(query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]) -> tuple[object, ...]:
    """What tells a query with its arguments from all others."""
    if not arguments:
        return text, query.span.start
    # Equal values are not the same argument: 1 is no 1.0, and 0.0 no -0.0.
    values = ((type(value), repr(value) if isinstance(value, float) else value) for value in arguments.values())
    return text, query.span.start, *zip(arguments, values, strict=True)


def _own_bytes(prepared: Prepared | Program | GraphDBError) -> int:
    """Return what the plans of a query hold of memory."""
    if isinstance(prepared, Prepared):
        return 0 if prepared.plan is None else prepared.plan.own_bytes
    if isinstance(prepared, Program):
        return prepared.own_bytes
    return 0


def _check_arguments(text: str, arguments: Mapping[str, object], implied: Callable[[], Collection[str]]) -> None:
    """Refuse a value for a parameter that the text does not have: it is a mistake more often than not.

    ``implied`` tells those that it has without naming them.
    """
    used = _parameters(text)
    for name, parameter in used.items():
        if name not in arguments:
            near = nearest(name, arguments)
            raise ParameterError(
                f"parameter ${name} has no value",
                text=text,
                position=parameter.span.start,
                hint=f"did you mean ${near[0]}?" if near else f"pass it: query(…, {name}=…)",
            )
    for name in arguments:
        if name not in used and name not in implied():
            near = nearest(name, used)
            raise ParameterError(
                f"the statement has no parameter ${name}", hint=f"did you mean ${near[0]}?" if near else None
            )


@lru_cache(maxsize=512)
def _parameters(text: str) -> Mapping[str, ast.Parameter]:
    """Return the parameters that a text names."""
    if "$" not in text:
        return {}
    return {part.name: part for part in walk(parse_script(text)) if isinstance(part, ast.Parameter)}
