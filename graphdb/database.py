"""The database: one DuckDB file that holds a graph, and the path of a query through the layers.

The path of one query::

    text ─ grammar.parser.parse_script ─▶ a statement of frozen syntax, which dispatch.statements gives to what runs it
         ─ pattern.bind.bind ─▶ names become ids; each condition finds its place
         ─ relational.candidates.Candidates ─▶ labels, constants and property predicates become arrays of vertices
         ─ plan.passes.pipeline.make_plan ─▶ a physical plan: matching order, set operations, checks, as arrays
         ─ execute.host or gpu.executor ─▶ bindings: columns of ids, streamed in blocks
         ─ relational.projection.compile ─▶ RETURN, ORDER BY and aggregates as one SQL query over the bindings
         ─▶ results.result.Result

A query of several clauses goes the same way more than once: :mod:`graphdb.relational` lowers it to matches, each of
which may start from the rows before it, and to SQL that joins their bindings.  What SQL cannot express is computed in
Python, over whole columns (:mod:`graphdb.evaluate`).  What writes is cut into such queries, and SQL over their rows
that makes of them what comes and goes (:mod:`graphdb.writing`).

What is not a pattern query is DuckDB's SQL, on the same connection and the same file.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from graphdb.common.arguments import brief, flag_of, path_of, text_of
from graphdb.common.arrow import freed_memory
from graphdb.common.config import Budget, Executors, cores, memory_bytes
from graphdb.common.errors import GraphDBError, NotSupportedError, ParameterError, StorageError
from graphdb.common.other_names import OtherNames
from graphdb.common.other_names import by_name as named_by
from graphdb.common.progress import Progress, progress_of
from graphdb.common.stopping import seconds_of
from graphdb.dispatch.interface.transfer import Transfer
from graphdb.dispatch.parameters import Parameters, by_name
from graphdb.pictures import AROUND
from graphdb.relational.session.state import State
from graphdb.relational.session.turns import await_turn
from graphdb.storage.file.scratch import EXPORTED, SPILLED, sweep

if TYPE_CHECKING:
    from graphdb.common.duckdb.connection import SharedDatabase
    from graphdb.dispatch.interface.miner import Miner
    from graphdb.dispatch.interface.prepared import PreparedStatement
    from graphdb.dispatch.statements import Statements
    from graphdb.live.watch import Change, Watch
    from graphdb.mining.graph import MiningGraph
    from graphdb.results.result import Result

_AROUND_SECONDS = 10.0
"""How long a picture may take to find the edges of a vertex."""


_ELSEWHERE = named_by(
    {
        "run execute_query read_transaction write_transaction": "query(text)",
        "session driver": "query(text): a database is its own session",
        "cursor executemany": "graphdb.dbapi has cursors; query(text) returns rows",
        "begin begin_transaction transaction": "query('BEGIN')",
        "commit": "query('COMMIT')",
        "rollback": "query('ROLLBACK')",
        "register register_table": "sql(text) and LOAD FROM find data frames by their Python names",
        "register_function create_function register_udf": "register_procedure(…), for CALL",
        "read_csv read_parquet read_json parse": "load(path)",
        "serialize to_turtle": "export(path)",
        "nodes vertices": "query('MATCH (n) RETURN n')",
        "edges relationships triples": "query('MATCH (a)-[e]->(b) RETURN a, e, b')",
        "table view": "sql(text)",
        "types": "relationship_types",
        "properties keys": "property_keys",
        "bind namespaces namespace_manager": "query('PREFIX ex: <…>'), prefixes()",
        "update": "query('INSERT DATA { … }'), or add with triples",
        "remove delete": "apply with deletions=…",
        "profile": "query('PROFILE …').plan()",
        "backup copy save": "export(path), or query('COPY FROM DATABASE … TO …') with one that is attached",
        "add_node add_edge add_nodes_from add_edges_from": "query('CREATE …'), load(frame), or apply with triples",
    }
)
"""What the drivers of Neo4j, Kùzu and DuckDB, and rdflib, call it."""


class Database(Transfer, OtherNames):
    """An open database; use it as a context manager, or :meth:`close` it.  See :func:`graphdb.connect`."""

    _elsewhere = _ELSEWHERE

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        device: str = "auto",
        device_memory: int | str | None = None,
        memory_limit: int | str | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        subclasses: bool = False,
        progress: Progress | bool | None = None,
        untrusted: bool = False,
        shared: SharedDatabase | None = None,
        cluster: object = None,
        cluster_storage: str | os.PathLike[str] | None = None,
    ) -> None:
        if threads is not None and (
            isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024
        ):
            raise GraphDBError(f"threads must be a number from 1 to 1024, found {brief(threads)}")
        path = path_of(path, "a database")
        if cluster is not None and path == ":memory:":
            raise GraphDBError("a cluster needs a database file", hint="workers open it by its path, for reading")
        if cluster_storage is not None and cluster is None:
            raise GraphDBError(
                "cluster_storage is where a cluster's workers find the graph", hint="give a cluster, too"
            )
        read_only = flag_of(read_only, "read_only") or cluster is not None  # workers open the file, too
        subclasses, untrusted = flag_of(subclasses, "subclasses"), flag_of(untrusted, "untrusted")
        shown = progress_of(progress)
        if device not in ("auto", "cpu") and cluster is None:  # raise now what the first query would
            from graphdb.execute.devices import check_devices

            check_devices(device)
        self.path = path
        self.device = device
        self.device_memory = None if device_memory is None else memory_bytes(device_memory, "device_memory")
        self.threads = threads or cores()
        storage = None if cluster_storage is None else path_of(cluster_storage, "cluster_storage")
        self._executors = Executors(device, self.threads, self.device_memory, cluster, storage)
        budget = Budget.of(memory_limit)
        freed_memory.retain(budget.rows)
        spilled = path_of(spill, "spill") if spill is not None else None
        self._state = State(self.path, self.threads, budget, spilled, read_only, subclasses, untrusted, shared)
        self._state.progress = shown
        if self.path != ":memory:" and not read_only:
            sweep(SPILLED, spilled)
            sweep(EXPORTED, os.path.dirname(os.path.abspath(self.path)))
        self.unfinished = self._state.unfinished()
        """What another process had begun on this file when it was killed, or None: it was rolled back as a whole."""
        with suppress(GraphDBError):  # what is wrong with the file is reported when it is asked for
            if self._state.has_continuous():
                from graphdb.live.definitions import show_again

                show_again(self._state)
        self._lazy_statements: Statements | None = None
        own = weakref.ref(self)
        self._state.observed.maintainer = lambda: _alive(own)._statements().live.maintenance
        self._around = lambda iri: _open(own).query(AROUND, timeout=_AROUND_SECONDS, iri=iri)

    # --- statements

    def query(
        self,
        text: str,
        parameters: Parameters | None = None,
        timeout: float | None = None,
        **named: object,
    ) -> Result:
        """Run one or several statements (separated by ``;``) and return the last one's result.

        Parameters
        ----------
        text
            Pattern queries, ``PREFIX``, ``LOAD``, ``CREATE TABLE … AS MATCH``, ``EXPLAIN``, ``PROFILE``, or SQL.
        parameters, **named
            Values for ``$name`` in the text: numbers, strings, booleans, dates, times, vertices, lists, None.  A list
            or tuple has those of ``$1``, ``$2`` and so on, and of SQL's ``?``.
        timeout
            Seconds after which the text's statements are stopped with :class:`~graphdb.common.errors.QueryTimeout`.

        Raises
        ------
        GraphDBError
            With the place in the text, and what would be right.
        """
        if type(text) is not str:
            text = text_of(text)
        if timeout is not None:
            timeout = seconds_of(timeout)
        try:  # no context manager: small counts would take longer
            with self._state.hold(timeout):
                result = self._statements().run(text, by_name(parameters, named), timeout)
                result.around = self._around
                return result
        except GraphDBError:
            raise
        except Exception as error:
            diagnosed = self._state.diagnosis(error, text)
            if diagnosed is error:
                raise
            raise diagnosed from error

    def _begin_to_change(self) -> None:
        """Begin a transaction that changes something, after those of other threads that do."""
        file = self._state.connection.file
        with self._state.hold():
            await_turn(self._state)
            file.take_turn(self._state)
            try:
                self.query("BEGIN")
            finally:
                if not self.in_transaction:
                    file.leave(self._state)

    def prepare(self, text: str) -> PreparedStatement:
        """Parse one or several statements now, to run them with other parameters each time.

        >>> import graphdb
        >>> db = graphdb.connect()
        >>> double = db.prepare("RETURN 2 * $x AS y")
        >>> double.parameters, double.run(x=3).scalar(), double.run({"x": 4}).scalar()
        (('x',), 6, 8)
        >>> db.close()

        Raises
        ------
        ParseError
            The text is no statement.  Names are looked up when it runs: they may come by then.
        """
        from graphdb.dispatch.interface.prepared import PreparedStatement

        with self._state.diagnosed(text_of(text)), self._state.hold():
            return PreparedStatement(self.query, text, self._statements().parameters(text))

    def sql(
        self, text: str, parameters: Parameters | None = None, timeout: float | None = None, **named: object
    ) -> Result:
        """Run SQL and return its result; ``cypher($$ MATCH … $$)`` stands for the rows of a pattern query.

        Results and data frames in the caller's variables can be named like tables.  Parameters are those of
        :meth:`query`; a pattern query within the SQL has them too, and those of its second argument
        (``cypher($$ … $x … $$, {x: 1})``).
        """
        timeout = seconds_of(timeout)
        with self._state.diagnosed(text_of(text)), self._state.hold(timeout):
            return self._statements().run_sql(text, by_name(parameters, named), timeout)

    def explain(self, text: str, parameters: Parameters | None = None, **named: object) -> str:
        """Return how a pattern query would run: matching order, estimates, device, and the SQL after the match.

        Raises
        ------
        NotSupportedError
            The statement is no pattern query.
        """
        from graphdb.dispatch.sql.parameters import check_known
        from graphdb.grammar import syntax as ast
        from graphdb.grammar.parser import parse

        with self._state.diagnosed(), self._state.hold():
            statement = parse(text_of(text))
            if isinstance(statement, (ast.Explain, ast.CreateTable, ast.CreateView)):
                statement = statement.query
            if not isinstance(statement, (ast.Query, ast.Composite, ast.Mine)):
                raise NotSupportedError("only pattern queries can be explained; for SQL, run EXPLAIN SELECT …")
            arguments = by_name(parameters, named)
            check_known(arguments, self._statements().parameters(text))
            with self._state.at_home():
                return str(self._statements().explain(statement, False, text, arguments, None))

    @property
    def mine(self) -> Miner:
        """Cliques, motifs and frequent patterns: see :class:`graphdb.dispatch.interface.miner.Miner`.

        >>> import graphdb
        >>> with graphdb.connect() as db:
        ...     _ = db.query("CREATE (a)-[:KNOWS]->(b)-[:KNOWS]->(c)-[:KNOWS]->(a)")
        ...     db.mine.cliques(3).fetchall()[0][:2]
        (3, 1)
        """
        from graphdb.dispatch.interface.miner import Miner

        return Miner(self.query, self._mining_graph, lambda: self._statements().mining.limits())

    def _mining_graph(self, text: str, parameters: Mapping[str, object], directed: bool) -> MiningGraph:
        from graphdb.grammar import syntax as ast
        from graphdb.grammar.parser import parse

        with self._state.diagnosed(text), self._state.hold():
            statement = parse(text)
            assert isinstance(statement, ast.Mine)
            with self._state.at_home():
                return self._statements().mining.graph(statement, text, parameters, directed)

    def watch(
        self,
        query: str,
        from_batch: int | None = None,
        on_change: Callable[[Change], object] | None = None,
    ) -> Watch:
        """Follow the changes of a continuous query, as they are committed.

        Parameters
        ----------
        query
            The name of a continuous query, or the text of a query: it is a continuous one until the watch is closed.
        from_batch
            The first batch whose changes are wanted, the next one at most; by default that one.  Who goes on names the
            one after the last that it has seen.
        on_change
            Called with each change, by a thread of its own; else the watch is an iterator that waits for the next.

        Returns
        -------
        A :class:`~graphdb.live.watch.Watch`, to be closed.

        Raises
        ------
        GraphDBError
            There is no such query, the changes of that batch are not stored any more, or it is beyond the next one.
        """
        with self._state.diagnosed(text_of(query, "a query")), self._state.hold():
            return self._statements().live.watch(query, from_batch, on_change)

    @property
    def progress(self) -> Progress | bool | None:
        """Called with how far a statement is, or True for a bar: see :func:`graphdb.connect`."""
        return self._state.progress

    @progress.setter
    def progress(self, shown: Progress | bool | None) -> None:
        self._state.progress = progress_of(shown)

    @property
    def untrusted(self) -> bool:
        """Whether files and the network are closed to statements: see :func:`graphdb.connect`."""
        return self._state.untrusted

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction that ``BEGIN`` began is open."""
        return self._state.transactions.by_user

    def register_procedure(
        self,
        name: str,
        function: Callable[..., object],
        parameters: Mapping[str, object] | None = None,
        columns: Mapping[str, object] | None = None,
        *,
        description: str | None = None,
        replace: bool = False,
    ) -> None:
        """Let statements call a Python function: ``CALL name(arguments) YIELD column``.

        Parameters
        ----------
        name
            Its name, with a namespace (``"my.proc"``), or its whole signature: ``"my.proc(in :: INTEGER?) :: (out ::
            STRING?)"``.
        function
            What is called, with the arguments by their places, once for all rows with the same ones.  It returns rows:
            tuples, or dictionaries by the names of columns, in a list or from a generator; of a single column its
            values as they are; an Arrow table or a frame that has the columns; or None for no rows.
        parameters, columns
            Names and types, where ``name`` does not say them: as text, such as ``"INTEGER?"`` (``?`` admits null) and
            ``"LIST OF STRING"``, or Python's, such as ``int | None`` and ``list[str]``.  Without parameters those of
            the function are taken, with their annotations; without columns the procedure yields nothing.  Parameters
            with defaults may be left out.
        description
            What ``CALL dbms.procedures()`` says of it; by default the first line of the function's docstring.
        replace
            Whether it may take the place of a procedure of the same name.

        Raises
        ------
        GraphDBError
            The signature is none, or the name is taken.
        """
        from graphdb.procedures.registry import Procedure
        from graphdb.procedures.signature import signature_of

        if description is None:
            description = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
        if not callable(function):
            raise ParameterError(f"a procedure calls a function, found {type(function).__name__}")
        name = text_of(name, "the name of a procedure")
        procedure = Procedure(signature_of(name, function, parameters, columns), function, description)
        with self._state.hold():
            self._state.procedures.add(procedure, replace)
            self._state.plans.clear()

    def unregister_procedure(self, name: str) -> None:
        """Forget a procedure that was registered.

        Raises
        ------
        GraphDBError
            None was.
        """
        with self._state.hold():
            self._state.procedures.remove(text_of(name, "the name of a procedure"))
            self._state.plans.clear()

    def procedures(self) -> list[str]:
        """Return the signatures of the procedures that statements can call."""
        return [str(procedure.signature) for procedure in self._state.procedures]

    def interrupt(self) -> None:
        """Stop what another thread runs on this database: it ends there with a `QueryInterrupted`."""
        self._state.interrupt()

    # --- its end

    def close(self) -> None:
        """Close the database; what was taken out of results stays usable, the rest of them does not.

        What another thread runs is stopped first, and a transaction that is open is rolled back.
        """
        if self._state.migration_seconds is not None:
            from graphdb.relational.session.ahead import derive_ahead

            self._state.deriving = derive_ahead
        self._state.close()
        if self._executors.cluster is not None and self._lazy_statements is not None:
            self._lazy_statements.queries.leave_cluster()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<graphdb.Database {self.path!r}{' closed' if self._state.connection.closed else ''}>"

    execute = query
    """:meth:`query`, by the name that Python's databases have for it."""

    def _statements(self) -> Statements:
        """What runs statements; imported with the first one, so that opening a database is quick."""
        if self._lazy_statements is None:
            from graphdb.dispatch.statements import Statements

            self._lazy_statements = Statements(self._state, self._executors)
        return self._lazy_statements


def _open(database: weakref.ref[Database]) -> Database:
    """Return the database that a result is of, if somebody still has it."""
    found = database()
    if found is None:
        raise StorageError("the database is closed")
    return found


def _alive(database: weakref.ref[Database]) -> Database:
    """Return the database whose statement is under way."""
    found = database()
    assert found is not None
    return found
