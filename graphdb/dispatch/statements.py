"""Statements: how each kind is run over an open database.

Pattern queries go the way that :mod:`graphdb.database` tells; everything else is DuckDB's SQL, in which
``cypher($$ … $$)`` and the caller's own tables are made visible first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from graphdb.common.config import Executors
from graphdb.common.errors import (
    ExecutionError,
    NotSupportedError,
    ParameterError,
    QueryTimeout,
    placed,
)
from graphdb.common.progress import watching
from graphdb.common.stopping import stopping, time_left
from graphdb.dispatch.arguments import check_arguments, naming_no_text, parameters_named
from graphdb.dispatch.changes import changes_the_graph
from graphdb.dispatch.data import change
from graphdb.dispatch.describe import QUERY, described
from graphdb.dispatch.explain import Explainer
from graphdb.dispatch.hints.names import takes_away, unknown_names
from graphdb.dispatch.hints.other_databases import as_sparql
from graphdb.dispatch.mining import Mining
from graphdb.dispatch.queries import Queries
from graphdb.dispatch.sql.parameters import check_known
from graphdb.dispatch.sql.run import SqlStatements
from graphdb.dispatch.tables import Tables
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.pattern.prefixed import may_have_prefixed, with_iris
from graphdb.procedures.implied import expand_call, parameters_of
from graphdb.relational.path_patterns.counts import with_counts
from graphdb.relational.session.bulk import load
from graphdb.relational.session.embedded import caller_tables, cypher_calls
from graphdb.relational.session.graph_tables import with_cypher_calls
from graphdb.relational.session.state import State
from graphdb.relational.session.turns import await_turn
from graphdb.results.result import Result

if TYPE_CHECKING:
    from graphdb.dispatch.live import Live
    from graphdb.storage.loaders.load import LoadReport


class Statements:
    """Runs statements, one at a time, over ``state``."""

    def __init__(self, state: State, executors: Executors) -> None:
        self._state = state
        self._cancelled = state.cancelled
        self.queries = Queries(state, executors)
        self.mining = Mining(state, self.queries, executors.threads)
        self.explain = Explainer(state, self.queries, self.mining).explain
        self._tables = Tables(state, self.queries, self.mining)
        self._sql = SqlStatements(state, self._cypher)
        self._lazy_live: Live | None = None

    @property
    def live(self) -> Live:
        """What continuous queries need; imported with the first one."""
        if self._lazy_live is None:
            from graphdb.dispatch.live import Live

            self._lazy_live = Live(self._state, self.queries, self._tables)
        return self._lazy_live

    def run(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> Result:
        """Run the statements of a text, all within ``timeout`` seconds; the last one's result."""
        state = self._state
        if state.connection.file.turn is not None and changes_the_graph(text):
            await_turn(state, timeout)
        state.refresh()
        if (
            timeout is None
            and not arguments
            and not state.progress
            and (count := self.queries.counted_again(text)) is not None
        ):
            count.warn = partial(self._warnings, text)
            return count
        result = None
        warnings: list[str] = []
        with stopping(timeout, self._cancelled):
            statements = parse_script(text)
            if arguments or "$" in text:
                self._refuse_parameters(statements, text)
                check_arguments(text, arguments, lambda: self._implied(statements))
                statements = tuple(with_counts(statement, text, arguments) for statement in statements)
            prefixed = may_have_prefixed(text)
            run = self._reported if self._state.progress else self._statement
            for statement in statements:
                self._state.versions.before_statement()
                if prefixed and not isinstance(statement, ast.Sql):
                    statement = with_iris(statement, self._state.names(), text)
                if takes_away(statement):
                    warnings += self._unknown([statement], text)
                try:
                    result = run(statement, text, arguments, time_left())
                except QueryTimeout as error:
                    raise _late(error, timeout) from None
                except (ParameterError, UnicodeEncodeError) as error:
                    raise naming_no_text(error, text, arguments) from error.__cause__
                except ExecutionError as error:
                    raise placed(as_sparql(error, text), text) from error.__cause__
                finally:
                    state.statement_ends()
        if result is None:
            return Result(self._state.version(), None)
        result.warn = partial(self._warnings, text, warnings)
        return result

    def _warnings(self, text: str, found: Iterable[str] = ()) -> list[str]:
        """Return what may be a slip in a text that ran; what was ``found`` before its statements ran comes first."""
        with self._state.hold():
            return [*found, *self._unknown((one for one in parse_script(text) if not takes_away(one)), text)]

    def _unknown(self, statements: Iterable[ast.Statement], text: str) -> list[str]:
        statements = [*statements]
        found: list[str] = []
        if patterns := [one for one in statements if not isinstance(one, ast.Sql)]:
            snapshot = self._state.snapshot()
            found += unknown_names(patterns, snapshot.names, lambda: snapshot.edges.keys, text)
        for one in statements:
            if isinstance(one, ast.Sql):
                found += self._unknown_in(one.text)
        return found

    def _unknown_in(self, sql: str) -> list[str]:
        """Return the warnings of the pattern queries in SQL; their places are those in these queries."""
        calls = cypher_calls(with_cypher_calls(sql))
        return [warning for call in calls for warning in self._unknown(parse_script(call.text), call.text)]

    @staticmethod
    def _refuse_parameters(statements: Sequence[ast.Statement], text: str) -> None:
        """Raise what is wrong with the parameters of continuous queries: no value for them would be right."""
        for statement in statements:
            if isinstance(statement, ast.CreateContinuous):
                from graphdb.live.statements import refuse

                refuse(statement.query, text)

    def run_sql(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> Result:
        """Run SQL by itself; see :meth:`graphdb.database.Database.sql`."""
        self._state.refresh()
        try:
            with stopping(timeout, self._cancelled):
                if arguments:
                    check_known(arguments, self._sql.parameters(text))
                result = self._sql.run(text, arguments, timeout)
                result.warn = partial(self._unknown_in, text)
                return result
        except QueryTimeout as error:
            raise _late(error, timeout) from None
        except ExecutionError as error:
            raise as_sparql(error, text) from error.__cause__

    def parameters(self, text: str) -> tuple[str, ...]:
        """Return the names of a text's parameters, in their order; of SQL those by position come first.

        Raises
        ------
        ParseError
            The text is no statement.
        """
        named = parameters_named(text)
        return (*named, *sorted(name for name in self._of_sql(parse_script(text)) if name not in named))

    def _implied(self, statements: tuple[ast.Statement, ...]) -> set[str]:
        """Return the parameters that statements have, but not where the grammar reads them."""
        return set(parameters_of(statements, self._state.procedures)) | self._of_sql(statements)

    def _of_sql(self, statements: tuple[ast.Statement, ...]) -> set[str]:
        texts = [statement.text for statement in statements if isinstance(statement, ast.Sql)]
        return set().union(*map(self._sql.parameters, texts)) if texts else set()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Tell how far a statement is, as the database's owner wants it; what runs within one is part of it."""
        if self.queries.progress is not None:
            yield
            return
        with watching(self._state.progress) as self.queries.progress:
            try:
                yield
            finally:
                self.queries.progress = None

    def _reported(
        self, statement: ast.Statement, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        with self._watched():
            return self._statement(statement, text, arguments, timeout)

    def _statement(
        self, statement: ast.Statement, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        if isinstance(statement, ast.Sql):
            if (iri := described(statement.text, self._state.names)) is not None:
                return self.run(QUERY, {"iri": iri}, timeout)
            return self._sql.run(statement.text, arguments, timeout)
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
            if _writes(statement):
                self._state.catalog()
            match statement:
                case ast.Query():
                    return self.queries.read(statement, text, arguments, timeout)
                case ast.Composite():
                    if (function := self._sql_function(statement, text)) is not None:
                        return self._sql.run(function, arguments, timeout)
                    with self._state.procedures.statement():
                        query = expand_call(statement, self._state.procedures, text, arguments)
                        run = self.queries.write if query.writes else self.queries.read
                        return run(query, text, arguments, timeout)
                case ast.Mine():
                    return self.mining.run(statement, text, arguments)
                case ast.CreateTable():
                    message = self._tables.create(statement, text, arguments, timeout, current)
                case ast.CreateView():
                    message = self._sql.views.create(statement, text, timeout, current)
                case ast.Explain():
                    lines = self.explain(statement.query, statement.profile, text, arguments, timeout)
                    return Result(
                        self._state.version(),
                        lines.to_table(),
                        elapsed=time.perf_counter() - started,
                        verbatim=True,
                    )
                case ast.CreateContinuous() | ast.DropContinuous() | ast.ShowContinuous() | ast.ExplainContinuous():
                    answer = self.live.run(statement, text)
                    if not isinstance(answer, str):
                        plan = isinstance(statement, ast.ExplainContinuous)
                        seconds = time.perf_counter() - started
                        return Result(self._state.version(), answer, elapsed=seconds, verbatim=plan)
                    message = answer
                case ast.Prefix():
                    with self._state.connection.guard(), self._state.writing():
                        self._state.transactions.touch()
                        self._state.catalog().set_prefix(statement.name, statement.iri)
                        self._state.changed()
                    message = f"prefix {statement.name}: is <{statement.iri}>"
                case ast.Data():
                    message = change(self._state, statement, text)
                case ast.Load():
                    report = self._load(statement)
                    message = (
                        f"loaded {report.read} ({report.new_triples:,} new) from {report.files} "
                        f"file{'s' if report.files != 1 else ''} in {report.seconds:.2f} s"
                    )
                    if report.errors:
                        message += f"; skipped {report.errors:,} bad lines, see table load_errors"
            return Result(self._state.version(), None, elapsed=time.perf_counter() - started, message=message)

    def _sql_function(self, query: ast.Composite, text: str) -> str | None:
        """Return the text of a call of what is no procedure, but a function of DuckDB's."""
        call = query.called
        if call is None or call.yields is not None or call.star or call.arguments is None:
            return None
        if self._state.procedures.knows(call.name):
            return None
        space, _, name = call.name.lower().rpartition(".")
        sql = (
            "SELECT 1 FROM duckdb_functions() WHERE lower(function_name) = $name AND ($space = '' OR $space IN "
            "(lower(schema_name), lower(database_name), lower(database_name || '.' || schema_name))) LIMIT 1"
        )
        known = self._state.connection.rows(sql, {"name": name, "space": space})
        return text[query.span.start : query.span.end] if known else None

    def _load(self, statement: ast.Load) -> LoadReport:
        from graphdb.storage.loaders.sources import Options
        from graphdb.storage.loaders.tables.description import Table, read_mapping

        columns = statement.columns
        by_name = all(isinstance(column, tuple) for column in columns)
        given = {
            "columns": (dict(columns) if by_name else list(columns)) if columns else None,  # type: ignore[arg-type]
            "label": statement.label,
            "type": statement.type,
            **{name: getattr(statement, name) for name in ("delimiter", "quote", "null", "header", "list_delimiter")},
        }
        data: list[Any] = []
        for source in statement.sources:
            if source.mapping is not None:
                self._state.require_files()
                data += read_mapping(source.mapping)
            elif source.path is not None and source.label is None and source.type is None:
                data.append(source.path)
            else:
                own = {name: value for name in ("label", "type") if (value := getattr(source, name)) is not None}
                data.append(Table(source.path, source.sql, **{**given, **own}))
        options = Options(
            statement.format,
            statement.on_error,
            statement.base,
            Table(data=(), **given).mapping(),
            self._state.spill,
            self._state.batch,
        )
        with ExitStack() as frames:
            for source in statement.sources:
                if source.sql is not None and not self._state.untrusted:
                    for name, frame in caller_tables(self._state.connection, source.sql).items():
                        frames.enter_context(self._state.connection.view(name, frame))
            return load(self._state, data, options, self.queries.progress)

    def _cypher(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> Result:
        """Run the pattern query of a ``cypher(…)`` in SQL."""
        statements = parse_script(text)
        if not statements or not all(isinstance(statement, (ast.Query, ast.Composite)) for statement in statements):
            raise NotSupportedError("cypher in SQL takes a pattern query: MATCH … RETURN …", text=text, position=0)
        if any(isinstance(statement, ast.Composite) and statement.writes for statement in statements):
            raise NotSupportedError(
                "cypher in SQL only reads", text=text, position=0, hint="run the statement that writes by itself"
            )
        return self.run(text, arguments, timeout)


def _writes(statement: ast.Statement) -> bool:
    """Whether a statement writes to the file: then tables that it lacks are made before anything is read of them."""
    if isinstance(statement, ast.Composite):
        return statement.writes
    return isinstance(statement, (ast.CreateTable, ast.CreateView))


def _late(error: QueryTimeout, timeout: float | None) -> QueryTimeout:
    """Return the error of a statement that ran out of time, with the time that it had."""
    if timeout is None:
        return error
    return QueryTimeout(
        f"the statement ran longer than its timeout of {timeout:g} s",
        hint="give it more time, or ask for less with LIMIT",
    )
