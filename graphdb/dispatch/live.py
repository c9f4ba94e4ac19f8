"""Continuous queries of an open database: their statements, and what maintains them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from graphdb.common.errors import GraphDBError, ParameterError, ParseError
from graphdb.dispatch.engine import Engine
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse
from graphdb.live.definitions import WATCHED, Definition
from graphdb.live.maintenance import Maintenance
from graphdb.live.statements import Statements
from graphdb.live.watch import Change, Watch, refuse_gone

if TYPE_CHECKING:
    from graphdb.common import arrow
    from graphdb.dispatch.queries import Queries
    from graphdb.dispatch.tables import Tables
    from graphdb.relational.session.state import State

_BEGINS_QUERY = re.compile(r"\s*(?:OPTIONAL|MATCH|UNWIND|WITH|CALL)\b\s*\S", re.IGNORECASE)
"""How a query begins, and no name of a continuous query that is written without quotes."""


class Live:
    """Runs their statements; see :mod:`graphdb.live`."""

    def __init__(self, state: State, queries: Queries, tables: Tables) -> None:
        self._state = state
        self.maintenance = Maintenance(state, Engine(state, queries, tables))
        self.statements = Statements(state, self.maintenance)

    def run(self, statement: ast.Continuous, text: str) -> arrow.Table | str:
        """Run a statement; return its rows, or what to report of it."""
        match statement:
            case ast.CreateContinuous():
                return self.statements.create(statement, text)
            case ast.DropContinuous():
                return self.statements.drop(statement, text)
            case ast.ShowContinuous():
                return self.statements.show()
            case ast.ExplainContinuous():
                return self.statements.explain(statement, text)

    def watch(self, text: str, from_batch: int | None, on_change: Callable[[Change], object] | None) -> Watch:
        """Follow a continuous query, by its name, or a query that is one for as long as it is followed.

        Raises
        ------
        GraphDBError
            There is none, it cannot be one, or the changes of ``from_batch`` are not stored any more, or far ahead.
        """
        state = self._state
        if from_batch is not None and type(from_batch) is not int:
            raise ParameterError(f"from_batch is the number of a batch, found {type(from_batch).__name__}")
        with state.at_home():
            definition = self._watched(text)
            first = following = self.statements.last_batch() + 1
            if from_batch is not None:
                first = from_batch
                try:
                    refuse_gone(definition.name, first, definition.since)
                    _refuse_ahead(first, following)
                except GraphDBError:
                    if definition.watch is not None:
                        WATCHED.discard(definition.watch)  # so the next batch drops it
                    raise

        def closed() -> None:
            if definition.watch is not None:
                WATCHED.discard(definition.watch)
                if not (state.connection.closed or state.transactions.inside):
                    with suppress(GraphDBError), state.hold(), state.at_home():
                        self.statements.delete(definition)

        watch = Watch(state.connection, definition, first, closed)
        if on_change is not None:
            watch.call(on_change)
        return watch

    def _watched(self, text: str) -> Definition:
        """Return the continuous query of a name, or a new one of a query."""
        try:
            query = parse(text)
        except ParseError:
            if _BEGINS_QUERY.match(text):
                raise
            return self.statements.find(text.strip().strip(';"`'), text, 0)
        if not isinstance(query, (ast.Query, ast.Composite)):
            return self.statements.find(text.strip().strip(';"`'), text, 0)
        token = uuid.uuid4().hex
        WATCHED.add(token)
        try:
            created = ast.CreateContinuous(f"watch_{token}", query, (ast.Option("table", False),))
            self.statements.create(created, text, watch=token)
        except BaseException:
            WATCHED.discard(token)
            raise
        return self.statements.find(created.name, text, 0)


def _refuse_ahead(batch: int, following: int) -> None:
    """Raise `ParameterError` for a batch beyond the following one."""
    if batch > following:
        raise ParameterError(
            f"there is no batch {batch} yet: the last one is {following - 1}",
            hint=f"from_batch={following}, or none, waits for the next one",
        )
