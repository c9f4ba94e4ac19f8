"""Continuous queries of an open database: their statements, and what maintains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdb.dispatch.engine import Engine
from graphdb.grammar import syntax as ast
from graphdb.live.maintenance import Maintenance
from graphdb.live.statements import Statements

if TYPE_CHECKING:
    import pyarrow as pa

    from graphdb.dispatch.queries import Queries
    from graphdb.dispatch.tables import Tables
    from graphdb.relational.session.state import State


class Live:
    """Runs their statements; see :mod:`graphdb.live`."""

    def __init__(self, state: State, queries: Queries, tables: Tables) -> None:
        self.maintenance = Maintenance(state, Engine(queries, tables))
        self.statements = Statements(state, self.maintenance)

    def run(self, statement: ast.Continuous, text: str) -> pa.Table | str:
        """Run a statement; return its rows, or what to report of it."""
        match statement:
            case ast.CreateContinuous():
                return self.statements.create(statement, text)
            case ast.DropContinuous():
                return self.statements.drop(statement, text)
            case ast.ShowContinuous():
                return self.statements.show()
        return self.statements.show()
