"""The statements of continuous queries: CREATE, DROP, SHOW."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphdb.common import arrow
from graphdb.common.arrow import strings
from graphdb.common.errors import (
    BindError,
    ExecutionError,
    GraphDBError,
    NotSupportedError,
    ParameterError,
    StorageError,
    nearest,
    placed,
)
from graphdb.functions.table import SIGNATURE_OF
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.live import definitions
from graphdb.live.definitions import Definition
from graphdb.live.explain import explained, profiled
from graphdb.live.standing import Standing

if TYPE_CHECKING:
    from graphdb.live.maintenance import Maintenance
    from graphdb.relational.session.state import State


class Statements:
    """Runs them over an open database."""

    def __init__(self, state: State, maintenance: Maintenance) -> None:
        self._state = state
        self._maintenance = maintenance

    def create(self, statement: ast.CreateContinuous, text: str, *, watch: str | None = None) -> str:
        """Create a continuous query with its answer of now; return what to report of it.

        Raises
        ------
        GraphDBError
            It cannot be one, or a name is taken.
        """
        self._refuse_transaction("CREATE CONTINUOUS QUERY")
        refuse(statement.query, text)
        own = text[statement.query.span.start : statement.query.span.end]
        at = statement.named.start
        if not statement.name.strip() or statement.name.lower().startswith("_graphdb"):
            raise BindError(f"'{statement.name}' cannot name a continuous query", text=text, position=at)
        with self._state.connection.guard() as raw, self._state.writing():
            self._state.catalog()
            self._state.transactions.touch()
            others = definitions.read(raw)
            there = _named(statement.name, others)
            if there is not None:
                if not statement.replace:
                    raise BindError(
                        f"there is a continuous query '{there.name}' already",
                        text=text,
                        position=at,
                        hint="CREATE OR REPLACE CONTINUOUS QUERY takes its place",
                    )
                definitions.delete(raw, there)
                others.remove(there)
            since = definitions.last_batch(raw) + 1
            made = Definition(definitions.next_number(others), statement.name, own, since=since, watch=watch)
            made = definitions.with_options(made, statement.options, text)
            definitions.refuse_no_interval(raw, made, statement.options, text)
            with self._maintenance.engine.prepared(statement.query, text, self._state.snapshot()):
                pass  # what is wrong with it stands in the statement's text
            try:
                standing = self._maintenance.create(raw, made, others, text, at)
            except GraphDBError as error:
                raise placed(error, own) from error.__cause__  # what SQL failed with says where in the query's own text
            self._state.changed(())
        how = "delta plans" if standing.why is None else f"comparing its answers, because {standing.why}"
        return f"continuous query {statement.name}, maintained by {how}"

    def drop(self, statement: ast.DropContinuous, text: str) -> str:
        """Drop a continuous query with its tables; return what to report of it."""
        self._refuse_transaction("DROP CONTINUOUS QUERY")
        there = self._find(statement.name)
        if there is None:
            if statement.if_exists:
                return "no changes"
            raise self.unknown(statement.name, text, statement.named.start)
        self.delete(there)
        return f"continuous query {there.name} dropped"

    def delete(self, definition: Definition) -> None:
        """Take a continuous query away."""
        with self._state.connection.guard() as raw, self._state.writing():
            self._state.transactions.touch()
            definitions.delete(raw, definition)
            self._state.observed.redefine()
            self._state.changed(())

    def show(self) -> arrow.Table:
        """Return a row for each continuous query."""
        self._state.read_catalog()
        with self._state.connection.guard() as raw:
            standing = [each for each in self._maintenance.standing(raw) if each.definition.watch is None]
            last = definitions.last_batch(raw)
        rows = [each.definition for each in standing]
        return arrow.table(
            {
                "name": strings([row.name for row in rows]),
                "query": strings([row.text for row in rows]),
                "table": arrow.array([row.stored for row in rows], arrow.BOOL),
                "changes": arrow.array([row.changes for row in rows], arrow.INT64),
                "retention": arrow.array([row.retention for row in rows], arrow.STRING),
                "first_batch": arrow.array([row.since for row in rows], arrow.INT64),
                "last_batch": arrow.array([last] * len(rows), arrow.INT64),
            }
        )

    def explain(self, statement: ast.ExplainContinuous, text: str) -> arrow.Table:
        """Return the lines of an explanation."""
        subject = statement.subject
        if isinstance(subject, str):
            number = self.find(subject, text, statement.named.start).number
            with self._state.connection.guard() as raw:
                standing = {each.definition.number: each for each in self._maintenance.standing(raw)}[number]
            if self._state.transactions.by_user:  # which the graph in memory is to follow when it ends
                took, standing = standing.took, Standing(standing.definition)
                standing.took = took
        else:
            refuse(subject.query, text)
            self._state.read_catalog()
            with self._maintenance.engine.prepared(subject.query, text, self._state.snapshot()):
                pass
            own = text[subject.query.span.start : subject.query.span.end]
            standing = Standing(definitions.with_options(Definition(0, subject.name, own), subject.options, text))
        lines = [*explained(self._maintenance.explainable(standing), self._state.snapshot().names)]
        if statement.profile:
            lines += ["", *profiled(standing)]
        return arrow.table({"plan": strings(lines)})

    def last_batch(self) -> int:
        """Return the number of the last batch that changed an answer."""
        with self._state.connection.guard() as raw:
            return definitions.last_batch(raw)

    def find(self, name: str, text: str, at: int) -> Definition:
        """Return a continuous query by its name.

        Raises
        ------
        BindError
            There is none.
        """
        found = self._find(name)
        if found is None:
            raise self.unknown(name, text, at)
        return found

    def unknown(self, name: str, text: str, at: int) -> BindError:
        """Return the error of a name that no continuous query has."""
        with self._state.connection.guard() as raw:
            near = nearest(name, [each.name for each in definitions.read(raw) if each.watch is None])
        hint = f"did you mean {near[0]}?" if near else "SHOW CONTINUOUS QUERIES lists them"
        return BindError(f"there is no continuous query '{name}'", text=text, position=at, hint=hint)

    def _find(self, name: str) -> Definition | None:
        self._state.read_catalog()
        with self._state.connection.guard() as raw:
            return _named(name, definitions.read(raw))

    def _refuse_transaction(self, what: str) -> None:
        if self._state.read_only:
            raise StorageError("the database is open read-only", hint="open it for writing")
        if self._state.transactions.by_user:
            raise ExecutionError(
                f"{what} cannot run within a transaction", hint="COMMIT or ROLLBACK first, then run it by itself"
            )


def _named(name: str, there: Sequence[Definition]) -> Definition | None:
    """Return the one of some continuous queries that has a name, in whatever case."""
    return next((each for each in there if each.name.lower() == name.lower()), None)


def refuse(query: ast.Query | ast.Composite, text: str) -> None:
    """Raise what is wrong with a query as a continuous one: that it writes, or that more than the graph decides it."""
    if isinstance(query, ast.Composite) and query.writes:
        raise NotSupportedError("a continuous query only reads", text=text, position=query.span.start)
    for piece in walk(query):
        match piece:
            case ast.Parameter():
                raise ParameterError(
                    "a continuous query has no parameters: nobody gives them values later",
                    text=text,
                    position=piece.span.start,
                    hint="write the value",
                )
            case ast.ProcedureClause():
                raise NotSupportedError(
                    "a continuous query cannot call procedures", text=text, position=piece.span.start
                )
            case ast.FunctionCall():
                signature = SIGNATURE_OF.get(piece.name.lower())
                if signature is None or signature.volatility == "immutable":
                    continue
                if signature.volatility == "volatile" or not signature.parameters or _reads_clock(piece):
                    raise NotSupportedError(
                        f"{piece.name} changes without the graph, and so would the answer",
                        text=text,
                        position=piece.span.start,
                    )


def _reads_clock(call: ast.FunctionCall) -> bool:
    """Whether a temporal function is called for the time of now."""
    return not call.arguments or "." in call.name
