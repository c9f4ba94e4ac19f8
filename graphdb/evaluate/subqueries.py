"""Subqueries that start from what only the evaluator knows, such as what ``reduce`` has accumulated by then.

All others are columns of the rows (:mod:`graphdb.relational.lowering.subqueries`), found for all of them at once.
These run for each value that asks, as queries of their own that start from one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdb.common import arrow
from graphdb.common.values.types import Type
from graphdb.evaluate.columns.codec import Keys, column_of, type_of, values_of
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.pattern.paths.lengths import OF_PATHS
from graphdb.pattern.rename import renamed
from graphdb.relational.projection.relation import Relation, Source
from graphdb.sql.udf import running
from graphdb.sql.value import column

if TYPE_CHECKING:
    from graphdb.evaluate.statement_names import StatementNames
    from graphdb.relational.paths.run import PathRun
    from graphdb.relational.program import Program
    from graphdb.relational.snapshot import Snapshot

Prepare: TypeAlias = "Callable[[ast.Composite, Relation], tuple[PathRun, Program]]"
"""Prepares a query that starts from rows, while another one runs; returns what runs it, too."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A subquery for rows of some types, which stand in a view."""

    query: ast.Composite
    run: PathRun
    program: Program
    view: str


class Subqueries:
    """Runs the subqueries of one statement, each for one row."""

    def __init__(self, names: StatementNames, prepare: Prepare) -> None:
        self._names = names
        self._prepare = prepare
        self._snapshot: Snapshot | None = None
        self._prepared: dict[tuple[Any, ...], _Prepared] = {}

    def forget(self) -> None:
        """Forget what was prepared: another run has other limits."""
        self._prepared.clear()

    def value_of(self, node: ast.Expression) -> Callable[[Mapping[str, Any]], Any]:
        """Return the function from a row to the value of a subquery."""
        names = {name: _written(name) for name in sorted(free_variables(node))}
        item = ast.ReturnItem(renamed(node, names), "value", "value", node.span)
        query = ast.Composite(((ast.ReturnClause((item,), span=node.span),),), True, node.span)

        def value(row: Mapping[str, Any]) -> Any:
            return self._value(query, {written: row[name] for name, written in names.items() if name in row})

        return value

    def _value(self, query: ast.Composite, given: Mapping[str, Any]) -> Any:
        """Return the one value of a query that starts from a row."""
        keys: Keys = {}
        types = {name: type_of(value) for name, value in given.items()}
        columns = {f"c{i}": column_of([given[name]], type, keys) for i, (name, type) in enumerate(types.items())}
        found = self._prepared_for(query, types)
        view = self._names.connection.view(found.view, arrow.table(columns or {"one": [1]}))
        with found.run, view, running(found.program.computing, keys):
            table = found.run.run(found.program)
        assert isinstance(table, arrow.Table)
        (value,) = values_of(table.column(0), found.program.projection.columns[0], keys)
        return value

    def _prepared_for(self, query: ast.Composite, types: Mapping[str, Type]) -> _Prepared:
        snapshot, key = self._names.snapshot, (id(query), *types.items())
        if snapshot is not self._snapshot:
            self._snapshot, self._prepared = snapshot, {}
        found = self._prepared.get(key)
        if found is None:
            view = self._names.connection.temporary()
            start = Relation(Source(view), {name: column(f"c{i}", types[name]) for i, name in enumerate(types)})
            found = self._prepared[key] = _Prepared(query, *self._prepare(query, start), view)
        return found


def _written(name: str) -> str:
    """Return a name as a pattern may have it: those that begin with ``#`` are the engine's own there."""
    return f"{OF_PATHS} input {name[1:]}" if name.startswith("#") else name
