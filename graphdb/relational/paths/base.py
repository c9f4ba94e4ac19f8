"""What both ways of finding paths share: the query's parts, and rows that wait until SQL goes on from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.graph import Wanted
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.projection.arrays import Beside
from graphdb.relational.projection.compile import ProjectionCompiler
from graphdb.relational.projection.late import BesideBindings
from graphdb.relational.projection.relation import Source, bindings_of
from graphdb.relational.query import Prepared, QueryRun
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import SqlValue

FIXED, FOUND = "_graphdb_fixed", "_graphdb_found"
"""The views of what a plan matched, and of the rows of all versions or of a path step."""


@dataclass(frozen=True, slots=True)
class Part:
    """A plain pattern with its plan, and what is wanted of it."""

    bound: BoundPattern
    plan: PhysicalPlan
    needs: Wanted
    beside: tuple[Beside, ...] = ()
    """Properties of its vertices that SQL reads as columns of the bindings."""


@dataclass(frozen=True, slots=True)
class PreparedPaths(Prepared):
    """A query with paths that is ready to run."""

    def describe(self, label: Callable[[int], str]) -> Iterator[str]:
        """How the paths are found, for EXPLAIN; ``label`` writes edge labels; abstract."""
        raise NotImplementedError


class Waiting:
    """Rows that wait: in memory, or beyond ``most`` bytes in a temporary table, which DuckDB may spill."""

    def __init__(self, run: PathBase, name: str, empty: arrow.Table, most: int) -> None:
        self._run, self._name, self._most = run, name, most
        self._tables, self._bytes, self._spilled = [empty], 0, False
        self._scope = run._snapshot.connection.temporary_table(name)
        self.rows = 0

    def add(self, table: arrow.Table) -> None:
        """Keep the rows of a table."""
        self._tables.append(table)
        self._bytes += table.nbytes
        self.rows += table.num_rows
        if self._bytes > self._most:
            self._spill()

    @property
    def nbytes(self) -> int | None:
        """Bytes of all rows, while they are in memory."""
        return None if self._spilled else self._bytes

    @property
    def table(self) -> arrow.Table | None:
        """All rows, while they are in memory."""
        if self._spilled:
            return None
        _, *tables = self._tables
        return tables[0] if len(tables) == 1 else arrow.concat_tables(self._tables)

    def _spill(self) -> None:
        connection = self._run._snapshot.connection
        table = arrow.concat_tables(self._tables)
        if not self._spilled:
            self._scope.__enter__()
        with connection.view("_graphdb_block", table), connection.guard(self._run._left()) as raw:
            if self._spilled:
                raw.execute(f"INSERT INTO temp.{self._name} BY NAME FROM _graphdb_block")
            else:
                raw.execute(f"CREATE OR REPLACE TEMP TABLE {self._name} AS FROM _graphdb_block")
        self._tables, self._bytes, self._spilled = [table.slice(0, 0)], 0, True

    @contextmanager
    def visible(self) -> Iterator[None]:
        """Show the rows to SQL under their name."""
        connection = self._run._snapshot.connection
        if (table := self.table) is not None:
            with connection.view(self._name, table, lasting=True):
                yield
            return
        with ExitStack() as stack:
            stack.push(self._scope)
            self._spill()
            yield


class PathBase(QueryRun):
    """A query run that knows how to keep rows."""

    def _projecting(
        self,
        bound: BoundPattern,
        source: Source,
        further: Mapping[str, SqlValue] | None = None,
        parameters: Parameters | None = None,
        *,
        counted: bool = False,
        beside: BesideBindings | None = None,
    ) -> ProjectionCompiler:
        """Return the compiler of rows in ``source``, with their numbers of matches where they are ``counted``.

        ``further`` are variables besides the pattern's; ``beside`` adds properties to the rows.
        """
        relation = bindings_of(bound, self._snapshot.edges, source)
        variables = {**relation.variables, **(further or {})}
        return ProjectionCompiler(
            self._snapshot,
            self._text,
            self._arguments,
            replace(relation, variables=variables, matches="b.n" if counted else None, number="n" if counted else None),
            parameters=parameters,
            beside=beside,
        )

    def _matched(self, part: Part, name: str = FIXED, share: int = 1, *, unasked: bool = False) -> Waiting:
        """Run the plan of a part, and keep its bindings under a name: one of so many that share the memory for them.

        What is ``unasked`` is not run: it has no rows.
        """
        with self._measuring(name):
            rows = self._matches_of(part, name, share, unasked=unasked)
        if self.profile is not None:
            self.profile.measured(name, rows.rows, rows.nbytes)
        return rows

    def _matches_of(self, part: Part, name: str, share: int, *, unasked: bool) -> Waiting:
        self.control = control = self.new_control()
        needs, bound = part.needs, part.bound
        counted = needs.duplicates == "count"
        if needs.nothing:
            names = ["one", *(["n"] if counted else [])]
            empty = arrow.table({column: numbers(np.empty(0, np.int64)) for column in names})
            rows = Waiting(self, name, empty, self._bindings_bytes // (4 * share))
            if unasked:
                return rows
            count = self._count(part.plan, needs, bound, control)
            number = count if needs.duplicates == "keep" else min(count, 1)
            found = {"one": np.zeros(number, np.int64)}
            columns = found | ({"n": np.full(number, count)} if counted else {})
            rows.add(arrow.table({column: numbers(values) for column, values in columns.items()}))
            return rows
        empty = self._with_beside(self._empty(needs, bound), part.beside)
        rows = Waiting(self, name, empty, self._bindings_bytes // (4 * share))
        for block in () if unasked else self._blocks(part.plan, needs, bound, control):
            rows.add(self._with_beside(self._terms(block, needs, bound), part.beside))
        return rows


def items_of(returns: ast.ReturnClause, names: set[str]) -> tuple[ast.ReturnItem, ...]:
    """Return what is returned, ``*`` written out in the order of the names."""
    items = returns.items
    if returns.star:
        items = tuple(ast.ReturnItem(ast.Variable(n), n, n, returns.span) for n in sorted(names)) + items
    columns = [item.alias or item.text for item in items]
    if len(set(columns)) < len(columns):
        raise NotSupportedError("two columns of one name are not supported in SQL")
    return items


def unnamed(names: Any) -> set[str]:
    """Return the names that a user gave."""
    return {name for name in names if not name.startswith("#")}
