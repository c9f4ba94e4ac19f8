"""The database: one DuckDB file that holds a graph, and the way of a query through the house.

The story of one query::

    text ─ grammar.parser.parse_script ─▶ a statement of frozen syntax
         ─ pattern.bind.bind ─▶ names become ids; each condition finds its place
         ─ candidates.Candidates ─▶ labels, constants and property predicates become arrays of vertices
         ─ plan.passes.make_plan ─▶ a physical plan: matching order, set operations, checks, as arrays
         ─ execute (host) ─▶ bindings: columns of ids, streamed in blocks
         ─ shape.Shaper ─▶ RETURN, ORDER BY and aggregates as one SQL query over the bindings, run by DuckDB
         ─▶ Result

What is not a pattern query is DuckDB's SQL, on the same connection and the same file.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from graphdb.config import Budget, cores
from graphdb.connection import Connection, quoted
from graphdb.errors import GraphDBError, NotSupportedError, ParameterError, QueryTimeout, StorageError, nearest
from graphdb.result import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from graphdb.candidates import Snapshot
    from graphdb.elements import Node, Relationship
    from graphdb.execute.executor import Executor
    from graphdb.grammar import syntax as ast
    from graphdb.pattern.names import Names
    from graphdb.query import Prepared, QueryRun
    from graphdb.report import Explanation
    from graphdb.storage.catalog import Catalog, EdgeLabel
    from graphdb.storage.loaders.load import LoadReport
    from graphdb.values import Column

_OPEN: WeakSet[Database] = WeakSet()
"""All open databases of this process: two may have the same file."""
_OPEN_LOCK = threading.Lock()

_PATH = re.compile(r"\b(search_path|schema)\b", re.IGNORECASE)

_KEPT = 64
"""Prepared queries that are kept for the next time."""

Progress = Callable[[int, int, int, str], None]
"""Told how far a load is: bytes done, bytes in all, triples, phase."""


def connect(
    path: str | os.PathLike[str] = ":memory:",
    device: str = "auto",
    memory_limit: int | str | None = None,
    threads: int | None = None,
) -> Database:
    """Open a database, creating it where there is none.

    Parameters
    ----------
    path
        The DuckDB file, or ``":memory:"``.
    device
        Where patterns are matched: ``"auto"`` or ``"cpu"``; a CUDA device (``"cuda:0"``) is not supported yet.
    memory_limit
        Bytes, or text such as ``"4GB"``; by default four fifths of the machine's memory.
    threads
        How many threads work; by default one per core.

    Raises
    ------
    GraphDBError
        The file cannot be opened, is no database, or is open in another process; or an argument is wrong.
    """
    return Database(path, device=device, memory_limit=memory_limit, threads=threads)


class Database:
    """An open database; use it as a context manager, or :meth:`close` it.  See :func:`connect`."""

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        device: str = "auto",
        memory_limit: int | str | None = None,
        threads: int | None = None,
    ) -> None:
        if threads is not None and (
            isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024
        ):
            raise GraphDBError(f"threads must be a number from 1 to 1024, found {threads!r}")
        _check_device(device)
        self.path = os.fspath(path)
        self.device = device
        self.threads = threads or cores()
        self._budget = Budget.of(memory_limit)
        self._connection = Connection(self.path, self.threads, self._budget.duckdb if memory_limit else None)
        self._lazy_catalog: Catalog | None = None
        self._lazy_snapshot: Snapshot | None = None
        self._lazy_executor: Executor | None = None
        self._prepared: OrderedDict[object, Prepared] = OrderedDict()
        self._cancelled = threading.Event()
        self._moved = False
        self._stale = False
        self._closed = False
        self._home = self._connection.rows("SELECT current_database()")[0][0]
        with _OPEN_LOCK:
            _OPEN.add(self)

    # --- statements

    def query(
        self,
        text: str,
        parameters: Mapping[str, object] | None = None,
        timeout: float | None = None,
        **named: object,
    ) -> Result:
        """Run one or several statements (separated by ``;``) and return the last one's result.

        Parameters
        ----------
        text
            Pattern queries, ``PREFIX``, ``LOAD``, ``CREATE TABLE … AS MATCH``, ``EXPLAIN``, ``PROFILE``, or SQL.
        parameters, **named
            Values for ``$name`` in the text: numbers, strings, booleans, dates, times, vertices, lists, None.
        timeout
            Seconds after which a statement is stopped with :class:`~graphdb.errors.QueryTimeout`.

        Raises
        ------
        GraphDBError
            With the place in the text, and what would be right.
        """
        from graphdb.grammar.parser import parse_script

        arguments = {**(parameters or {}), **named}
        result = Result(self, None)
        with self._open():
            statements = parse_script(text)
            _check_arguments(text, arguments)
            self._cancelled.clear()
            for statement in statements:
                try:
                    result = self._statement(statement, text, arguments, timeout)
                except QueryTimeout:
                    raise QueryTimeout(
                        f"the statement ran longer than its timeout of {timeout:g} s",
                        hint="give it more time, or ask for less with LIMIT",
                    ) from None
        return result

    def sql(self, text: str, timeout: float | None = None) -> Result:
        """Run SQL and return its result; ``cypher($$ MATCH … $$)`` stands for the rows of a pattern query.

        Results and data frames in the caller's variables can be named like tables.
        """
        with self._open():
            return self._sql(text, timeout)

    def explain(self, text: str, parameters: Mapping[str, object] | None = None, **named: object) -> str:
        """Return how a pattern query would run: matching order, estimates, device, and the SQL after the match."""
        from graphdb.grammar import syntax as ast
        from graphdb.grammar.parser import parse

        with self._open():
            statement = parse(text)
            if isinstance(statement, (ast.Explain, ast.CreateTable)):
                statement = statement.query
            if not isinstance(statement, ast.Query):
                raise NotSupportedError("only pattern queries can be explained; for SQL, run EXPLAIN SELECT …")
            return str(self._explain(statement, False, text, {**(parameters or {}), **named}, None))

    def load(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        format: str | None = None,
        on_error: str = "stop",
        progress: Progress | None = None,
    ) -> LoadReport:
        """Load RDF files, in one transaction: all of it is kept, or nothing.

        Parameters
        ----------
        paths
            A path or several; wildcards are expanded.
        format
            ``"ntriples"`` where the name does not say it (``.nt``, ``.nt.gz``, ``.nt.zst``).
        on_error
            ``"stop"`` at the first malformed line, or ``"skip"`` such lines into the table ``load_errors``.
        progress
            Called with bytes done, bytes in all, triples, and what is being done.

        Raises
        ------
        LoadError
            With file, line, column and the text; nothing of the load was kept.
        """
        from graphdb.storage.loaders.load import load

        with self._open(), self._at_home(), self._connection.guard() as raw:
            self._cancelled.clear()
            try:
                report = load(raw, self._catalog(), paths, format, on_error, progress, self._cancelled)
            except GraphDBError:
                raise  # nothing was kept, so nothing that was derived is stale
            except BaseException:
                self._changed()
                raise
            self._changed()
        return report

    def interrupt(self) -> None:
        """Stop what another thread runs on this database; there it ends with an error."""
        self._cancelled.set()
        if not self._connection.closed:
            self._connection.raw.interrupt()

    # --- what the database holds

    def vertex_labels(self) -> list[tuple[str, int]]:
        """Return the vertex labels, as a user would write them, with their numbers of vertices."""
        names = self._names()
        return [(names.written(label.iri), label.vertices) for label in names.vertex_labels.values()]

    def edge_labels(self) -> list[EdgeLabel]:
        """Return the edge labels and property keys with their statistics."""
        return list(self._names().edge_labels.values())

    def written(self, iri: str) -> str:
        """Return a name as a user would write it: prefixed where a prefix is declared, else the IRI."""
        return self._names().written(iri)

    def prefixes(self) -> dict[str, str]:
        """Return the declared prefixes."""
        return dict(self._names().prefixes)

    def tables(self) -> list[str]:
        """Return the tables and views that SQL can name, internal ones left out."""
        self._open()
        rows = self._connection.rows(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND schema_name <> '_graphdb' "
            "AND NOT starts_with(table_name, '_') UNION ALL "
            "SELECT view_name FROM duckdb_views() WHERE NOT internal AND schema_name <> '_graphdb' "
            "AND NOT starts_with(view_name, '_') ORDER BY 1"
        )
        return [name for (name,) in rows]

    def close(self) -> None:
        """Close the database; what was taken out of results stays usable, the rest of them does not."""
        if not self._closed:
            self._forget()
            self._closed = True
            self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<graphdb.Database {self.path!r}{' closed' if self._closed else ''}>"

    # --- one statement

    def _statement(
        self, statement: ast.Statement, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        from graphdb.grammar import syntax as ast

        started = time.perf_counter()
        if isinstance(statement, ast.Sql):
            return self._sql(statement.text, timeout)
        with self._at_home() as current:
            return self._pattern_statement(statement, text, arguments, timeout, started, current)

    def _pattern_statement(
        self,
        statement: ast.Statement,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        started: float,
        current: tuple[str, ...],
    ) -> Result:
        from graphdb.grammar import syntax as ast

        match statement:
            case ast.Query():
                with self._run(text, arguments, timeout) as run:
                    prepared = self._prepare(run, statement, text, arguments)
                    table = run.run(prepared)
                return Result(self, table, prepared.shaped.columns, elapsed=time.perf_counter() - started)
            case ast.CreateTable():
                message = self._create_table(statement, text, arguments, timeout, current)
            case ast.Explain():
                lines = self._explain(statement.query, statement.profile, text, arguments, timeout)
                return Result(self, lines.to_table(), elapsed=time.perf_counter() - started, verbatim=True)
            case ast.Prefix():
                with self._connection.guard():
                    self._catalog().set_prefix(statement.name, statement.iri)
                self._changed()
                message = f"prefix {statement.name}: is <{statement.iri}>"
            case ast.Load():
                report = self.load(statement.paths, statement.format, statement.on_error)
                message = (
                    f"loaded {report.triples:,} triples ({report.new_triples:,} new) from {report.files} "
                    f"file{'s' if report.files != 1 else ''} in {report.seconds:.2f} s"
                )
                if report.errors:
                    message += f"; skipped {report.errors:,} bad lines, see table load_errors"
        return Result(self, None, elapsed=time.perf_counter() - started, message=message)

    def _run(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> QueryRun:
        from graphdb.execute.choose import choose_executor
        from graphdb.query import QueryRun

        executor = self._lazy_executor
        if executor is None:
            executor = choose_executor(self.device, threads=self.threads, memory_limit=self._budget.bindings)
            self._lazy_executor = executor
        return QueryRun(
            self._snapshot(),
            executor,
            text,
            arguments,
            bindings_bytes=self._budget.bindings,
            timeout=timeout,
            cancelled=self._cancelled,
        )

    def _prepare(self, run: QueryRun, query: ast.Query, text: str, arguments: Mapping[str, object]) -> Prepared:
        """Return the query ready to run: as it was prepared last time, while the data stays as it is."""
        key = (text, query.span, tuple((name, type(value), value) for name, value in arguments.items()))
        try:
            found = self._prepared.get(key)
        except TypeError:  # a list among the arguments
            return run.prepare(query)
        if found is None:
            found = run.prepare(query)
            if found.reusable:
                self._prepared[key] = found
                while len(self._prepared) > _KEPT:
                    self._prepared.popitem(last=False)
        else:
            self._prepared.move_to_end(key)
        return found

    def _create_table(
        self,
        statement: ast.CreateTable,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        current: tuple[str, ...],
    ) -> str:
        from graphdb.shape import presented

        parts = statement.name if len(statement.name) > 1 or statement.temporary else (*current, *statement.name)
        name = ".".join(quoted(part) for part in parts)
        create = "CREATE OR REPLACE" if statement.replace else "CREATE"
        kind = "TEMP TABLE" if statement.temporary else "TABLE"
        absent = "IF NOT EXISTS " if statement.if_not_exists else ""
        with self._run(text, arguments, timeout) as run:
            prepared = run.prepare(statement.query)
            rows = presented(f"({prepared.shaped.sql})", prepared.shaped.columns)
            with run.bindings(prepared), self._connection.guard(timeout) as raw:
                made = raw.execute(f"{create} {kind} {absent}{name} AS {rows}", dict(prepared.shaped.parameters))
                count = made.fetchall()  # not fetchone: an unfinished result would block the connection
        return f"table {'.'.join(statement.name)}: {count[0][0] if count else 0:,} rows"

    def _explain(
        self, query: ast.Query, profile: bool, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Explanation:
        from graphdb.report import Explanation

        with self._run(text, arguments, timeout) as run:
            started = time.perf_counter()
            prepared = run.prepare(query)
            planned = time.perf_counter() - started
            names, executor = self._snapshot().names, run.executor.name
            if not profile:
                return Explanation.planned(prepared, names, executor)
            table = run.run(prepared)
            seconds = planned, time.perf_counter() - started
        return Explanation.profiled(prepared, names, executor, run.control, seconds, table.num_rows)

    # --- SQL

    def _sql(self, text: str, timeout: float | None) -> Result:
        from graphdb.embed import caller_tables, cypher_calls

        started = time.perf_counter()
        table: pa.Table | None = None
        with ExitStack() as stack:
            for statement in self._statements(text):
                sql = statement
                for call in reversed(cypher_calls(statement)):
                    view = self._connection.temporary()
                    rows = self._cypher(call.text, timeout).presented()
                    stack.enter_context(self._connection.view(view, rows))
                    sql = sql[: call.start] + view + sql[call.end :]
                for name, data in caller_tables(self._connection, sql).items():
                    stack.enter_context(self._connection.view(name, data))
                table = self._execute(sql, timeout)
        return Result(self, table, elapsed=time.perf_counter() - started, message=None if table is not None else "done")

    def _cypher(self, text: str, timeout: float | None) -> Result:
        """Run the pattern query of a ``cypher(…)`` in SQL."""
        from graphdb.grammar import syntax as ast
        from graphdb.grammar.parser import parse_script

        statements = parse_script(text)
        if not statements or not all(isinstance(statement, ast.Query) for statement in statements):
            raise NotSupportedError("cypher in SQL takes a pattern query: MATCH … RETURN …", text=text, position=0)
        return self.query(text, timeout=timeout)

    def _statements(self, text: str) -> list[str]:
        with self._connection.guard(ours=False) as raw:
            return [statement.query for statement in raw.extract_statements(text)]

    def _execute(self, sql: str, timeout: float | None) -> pa.Table | None:
        with self._connection.guard(timeout, ours=False) as raw:
            relation = raw.sql(sql)
            table = relation.to_arrow_table() if relation is not None else None
        first = sql.split(None, 1)[0].rstrip(";").upper() if sql.strip() else ""
        if first in ("ROLLBACK", "ABORT"):  # what was read or created within the transaction may be no more
            self._forget()
            self._lazy_catalog = None
        if first == "USE" or (first == "SET" and _PATH.search(sql)):
            self._moved = True
        return table

    # --- the home of results

    def present(self, table: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
        """Return a result's table as a user of SQL sees it."""
        from graphdb.shape import presented

        with self._open(), self._at_home():
            self._snapshot()
            view = self._connection.temporary()
            with self._connection.view(view, table):
                return self._connection.arrow(presented(view, columns))

    def store(self, table: pa.Table, name: str, replace: bool) -> int:
        """Keep a table in the database under ``name``; return its number of rows."""
        with self._open():
            view = self._connection.temporary()
            target = ".".join(quoted(part) for part in name.split("."))
            with self._connection.view(view, table):
                self._connection.rows(f"CREATE {'OR REPLACE ' if replace else ''}TABLE {target} AS FROM {view}")
        return int(table.num_rows)

    def nodes(self, ids: set[int]) -> dict[int, Node]:
        """Return the resources among ``ids`` as nodes."""
        from graphdb import hydrate

        with self._open(), self._at_home():
            return hydrate.nodes(self._snapshot(), ids)

    def values(self, ids: set[int]) -> dict[int, object]:
        """Return the values of the literals among ``ids``."""
        from graphdb import hydrate

        with self._open(), self._at_home():
            return hydrate.values(self._snapshot(), ids)

    def relationship(self, edge: dict[str, int], ends: dict[int, Any]) -> Relationship:
        """Return an edge, given its ends."""
        from graphdb.elements import Node, Relationship

        names = self._names()
        start, end = (ends[edge[side]] for side in ("start", "end"))
        label = names.written(names.edge_labels[edge["label"]].iri)
        return Relationship(label, start.iri, end.iri if isinstance(end, Node) else end)

    # --- state

    def _open(self) -> threading.RLock:
        """Return the lock to hold while a statement runs; raise if the database is closed."""
        if self._closed:
            raise StorageError("the database is closed")
        if self._stale:
            with self._connection.lock:
                self._forget()
        return self._connection.lock

    def _catalog(self) -> Catalog:
        """The catalog; its tables are created when first needed."""
        from graphdb.storage.catalog import SCHEMA_VERSION, Catalog

        if self._lazy_catalog is None:
            with self._connection.guard() as raw:
                catalog = Catalog(raw)
                if not catalog.exists():
                    catalog.create()
                elif catalog.schema_version > SCHEMA_VERSION:
                    raise StorageError(
                        f"'{self.path}' was written by a newer version of graphdb", hint="upgrade graphdb to open it"
                    )
            self._lazy_catalog = catalog
        return self._lazy_catalog

    def _names(self) -> Names:
        with self._open():
            return self._snapshot().names

    @contextmanager
    def _at_home(self) -> Iterator[tuple[str, ...]]:
        """Work where our tables are, whatever USE said; yields (database, schema) that SQL is in, if it moved."""
        if not self._moved:
            yield ()
            return
        ((database, schema, path),) = self._connection.rows(
            "SELECT current_database(), current_schema(), current_setting('search_path')"
        )
        with self._connection.guard() as raw:
            raw.execute(f"USE {quoted(self._home)}.main")
        try:
            yield (database, schema)
        finally:
            with self._connection.guard() as raw:
                if path:
                    raw.execute("SET search_path = '" + path.replace("'", "''") + "'")
                else:
                    raw.execute(f"USE {quoted(database)}.{quoted(schema)}")

    def _changed(self) -> None:
        """Drop what was derived, here and in other connections of this process to the same file."""
        self._forget()
        if self.path != ":memory:":
            with _OPEN_LOCK:
                others = [other for other in _OPEN if other is not self and not other._closed]
            for other in others:
                if os.path.realpath(other.path) == os.path.realpath(self.path):
                    other._stale = True

    def _forget(self) -> None:
        """Drop what was derived from names and data, because they changed."""
        self._stale = False
        if self._lazy_snapshot is not None:
            self._lazy_snapshot.properties.drop()
        self._lazy_snapshot = None
        self._prepared.clear()

    def _snapshot(self) -> Snapshot:
        """The state of names and data that statements see, until the next load."""
        if self._lazy_snapshot is None:
            from graphdb.candidates import take_snapshot

            self._lazy_snapshot = take_snapshot(self._connection, self._catalog(), self._budget.graph)
        return self._lazy_snapshot


def _check_device(device: str) -> None:
    if device in ("auto", "cpu"):
        return
    if not isinstance(device, str):
        raise GraphDBError(f"device must be text, found {device!r}", hint="use 'auto' or 'cpu'")
    if device == "cuda" or device.startswith("cuda:"):
        raise NotSupportedError(
            f"matching on device '{device}' is not supported yet", hint="use device='auto' or device='cpu'"
        )
    raise GraphDBError(f"unknown device '{device}'", hint="use 'auto', 'cpu' or 'cuda:0'")


def _check_arguments(text: str, arguments: Mapping[str, object]) -> None:
    """Refuse a value for a parameter that the text does not have: it is a mistake more often than not."""
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
        if name not in used:
            near = nearest(name, used)
            raise ParameterError(
                f"the statement has no parameter ${name}", hint=f"did you mean ${near[0]}?" if near else None
            )


@lru_cache(maxsize=512)
def _parameters(text: str) -> Mapping[str, ast.Parameter]:
    """Return the parameters that a text names."""
    from graphdb.grammar import syntax as ast
    from graphdb.grammar.parser import parse_script
    from graphdb.pattern.bind import walk

    return {part.name: part for part in walk(parse_script(text)) if isinstance(part, ast.Parameter)}
