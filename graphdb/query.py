"""One MATCH query under way: bound, given candidates, planned, run, shaped.

:class:`~graphdb.database.Database` tells the story; here it happens, over one :class:`Snapshot` of the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.candidates import Candidates, Snapshot
from graphdb.errors import NotSupportedError
from graphdb.execute.executor import Block, Control, Executor
from graphdb.execute.group import grouped
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, bind, bind_exists, conjuncts
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.passes import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.progress import Progress
from graphdb.project import FEW, project
from graphdb.result import Counted
from graphdb.shape import BINDINGS, Shaped, Shaper, Wanted, expand_star, wanted, window_of
from graphdb.typed import Typed
from graphdb.values import BOOLEAN, EXACT_ONLY, Base

if TYPE_CHECKING:
    import pyarrow as pa

Ids = NDArray[np.int64]

_STREAM = 16 << 20
"""Bytes of bindings that are handed on at a time, once they are too many to wait in memory."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that is ready to run: its plan, and the SQL after it."""

    plan: PhysicalPlan | None
    """None for a query without MATCH."""
    wanted: Wanted
    shaped: Shaped
    bound: BoundPattern
    reusable: bool
    """Whether it may run again: it depends on nothing that its run made visible to SQL."""


class QueryRun:
    """Prepares and runs one query; a context manager, whose exit drops what the run made visible to SQL.

    Parameters
    ----------
    bindings_bytes
        What the match may take: half of it for bindings that wait in memory.  Beyond that they go to a temporary table,
        which DuckDB may spill, block by block.
    timeout
        Seconds from now.
    cancelled
        Set by another thread to stop the match.
    progress
        Told what share of a match is done.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        executor: Executor,
        text: str,
        arguments: Mapping[str, object],
        *,
        bindings_bytes: int,
        timeout: float | None = None,
        cancelled: threading.Event | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._progress = progress
        self._snapshot = snapshot
        self.executor = executor
        self._text = text
        self._arguments = arguments
        self._bindings_bytes = bindings_bytes
        self._cancelled = cancelled
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._lazy_stack: ExitStack | None = None
        self._views = 0
        self.control: Control | None = None
        """What the match reported, once it ran."""

    def __enter__(self) -> QueryRun:
        self._snapshot.connection.deadline = self._deadline
        return self

    def __exit__(self, *_: object) -> None:
        self._snapshot.connection.deadline = None
        if self._lazy_stack is not None:
            self._lazy_stack.close()

    # --- preparing

    def prepare(self, query: ast.Query | ast.Composite) -> Prepared:
        """Bind, find candidates, plan, and write the SQL after the match."""
        if isinstance(query, ast.Composite):
            return self._prepare_chain(query)
        bound = bind(query.matches, self._snapshot.names, self._text)
        self._refuse_described(bound)
        window = window_of(query.returns, self._arguments, self._text)
        items = expand_star(query.returns, bound, self._text)
        needs = wanted(query.returns, items, bound, window)
        shaper = Shaper(
            self._snapshot,
            self._text,
            self._arguments,
            bound,
            lambda predicate, variables: self._exists(predicate, bound, variables),
        )
        # The SQL is written before the match runs, so that every mistake is told before any work is done.
        if needs.count_only and query.matches:
            shaped = shaper.counted(query.returns, items, window)
        else:
            shaped = shaper.shape(query.returns, items, window, needs.duplicates)
        self._refuse_exact(shaped)
        plan = self._plan(bound, needs) if query.matches else None
        return Prepared(plan, needs, shaped, bound, reusable=not self._views)

    def _prepare_chain(self, query: ast.Composite) -> Prepared:
        """Prepare ``MATCH … WITH … RETURN``: each clause after the match is one more SELECT around the one before.

        Raises
        ------
        GraphDBError
            It is not of that shape, or SQL cannot type it, or it is a mistake: the interpreter will tell.
        """
        (part,) = query.parts if len(query.parts) == 1 else ((),)
        matches = tuple(takewhile(lambda clause: isinstance(clause, ast.MatchClause), part))
        steps = part[len(matches) :]
        if not matches or not steps or not all(isinstance(step, (ast.WithClause, ast.ReturnClause)) for step in steps):
            raise NotSupportedError("only MATCH, WITH and RETURN are supported in SQL")
        plain = [match for match in matches if isinstance(match, ast.MatchClause) and not match.optional]
        if len(plain) < len(matches) or not all(path.plain for match in plain for path in match.patterns):
            raise NotSupportedError("paths and optional matches are not supported in SQL")
        if any(isinstance(node, ast.PatternPredicate) for node in walk(part)):
            raise NotSupportedError("patterns as conditions beside WITH are not supported in SQL")
        bound = bind(tuple(plain), self._snapshot.names, self._text)
        self._refuse_described(bound)
        shaper = Shaper(
            self._snapshot,
            self._text,
            self._arguments,
            bound,
            lambda predicate, variables: self._exists(predicate, bound, variables),
        )
        needs, shaped = None, None
        for number, step in enumerate(steps):
            returns = step.returns if isinstance(step, ast.WithClause) else step
            assert isinstance(returns, ast.ReturnClause)
            if number < len(steps) - 1 and returns.order_by:
                raise NotSupportedError("rows in order, to go on from, are not supported in SQL")
            items = returns.items
            if returns.star:
                names = bound.variables if needs is None else shaper.names
                items = tuple(ast.ReturnItem(ast.Variable(n), n, n, returns.span) for n in sorted(names)) + items
            named = [item.alias or item.text for item in items]
            unnamed = [item for item in items if item.alias is None and not isinstance(item.expression, ast.Variable)]
            if len(set(named)) < len(named) or (unnamed and isinstance(step, ast.WithClause)):
                raise NotSupportedError("columns without names of their own are not supported")
            window = window_of(returns, self._arguments, self._text)
            if needs is None:
                needs = wanted(returns, items, bound, window)
                if needs.count_only:
                    needs = Wanted((), (), False, None, "count")
                shaped = shaper.shape(returns, items, window, needs.duplicates)
            else:
                shaped = shaper.shape(returns, items, window)
            where = step.where if isinstance(step, ast.WithClause) else None
            shaper = shaper.after(shaped, list(conjuncts(where)))
        assert needs is not None
        assert shaped is not None
        self._refuse_exact(shaped)
        shaped = replace(shaped, direct=None)
        return Prepared(self._plan(bound, needs), needs, shaped, bound, reusable=not self._views)

    def _refuse_exact(self, shaped: Shaped) -> None:
        """Leave vertices whose properties SQL does not hold (lists, exact times) to the interpreter."""
        if any(label.kinds & EXACT_ONLY for label in self._snapshot.names.edge_labels.values()):
            for column in shaped.columns:
                inner = column.type.element or column.type
                if {column.type.base, inner.base} & {Base.NODE, Base.TERM, Base.LIST}:
                    raise NotSupportedError("lists and exact times among properties are not supported in SQL")

    def _refuse_described(self, bound: BoundPattern) -> None:
        """Leave edges that their triples do not tell apart, or not in full, to the interpreter."""
        described, parallel = self._snapshot.described, self._snapshot.parallel
        if not described:
            return
        named = set(bound.edge_of.values())
        for number, edge in enumerate(bound.edges):
            asked = described if number in named else parallel
            if asked if edge.labels is None else asked.intersection(edge.labels):
                raise NotSupportedError("parallel edges and properties of edges are not supported in SQL")

    def _plan(self, bound: BoundPattern, needs: Wanted) -> PhysicalPlan:
        with self._snapshot.graph.watched(self.new_control().check):
            return self._planned(bound, needs)

    def _planned(self, bound: BoundPattern, needs: Wanted) -> PhysicalPlan:
        candidates = Candidates(
            self._snapshot, self._text, self._arguments, lambda predicate: self._around(predicate, bound)
        )
        outputs = [bound.vertices[v].name for v in needs.vertices] + [bound.edges[e].name for e in needs.edges]
        count_only = needs.count_only or not outputs
        pattern = PatternGraph(
            candidates.vertices(bound),
            tuple(bound.edges),
            tuple(bound.clauses),
            tuple(bound.edge_tests),
            tuple(bound.unequal),
            () if count_only else tuple(outputs),
            count_only,
            needs.limit,
            "keep" if count_only else needs.duplicates,
        )
        return make_plan(pattern, self._snapshot.graph)

    # --- pattern predicates

    def _around(self, predicate: ast.PatternPredicate, outer: BoundPattern) -> Ids:
        """The vertices around which a pattern with one named vertex matches, sorted."""
        inner = bind_exists(predicate, outer, self._snapshot.names, self._text)
        (vertex,) = inner.vertex_of.values()
        found = self._distinct(inner, (vertex,))
        return found[0]

    def _exists(self, predicate: ast.PatternPredicate, outer: BoundPattern, variables: Mapping[str, Typed]) -> Typed:
        """A pattern predicate in SQL: its named vertices' columns are among the pattern's matches."""
        inner = bind_exists(predicate, outer, self._snapshot.names, self._text)
        names = list(inner.vertex_of)
        if not names:
            plan = self._plan(inner, Wanted((), (), True, 1))
            return Typed("TRUE" if self.executor.count(plan, self.new_control()) else "FALSE", BOOLEAN)
        found = self._distinct(inner, tuple(inner.vertex_of.values()))
        view = self._snapshot.connection.temporary()
        columns = {f"v{i}": self._snapshot.store.to_terms(column) for i, column in enumerate(found)}
        self._lazy_stack = self._lazy_stack or ExitStack()
        self._lazy_stack.enter_context(self._snapshot.connection.view(view, columns))
        self._views += 1
        ids = ", ".join(variables[name].sql for name in names)
        return Typed(f"(({ids}) IN (SELECT {', '.join(columns)} FROM {view}))", BOOLEAN)

    def _distinct(self, inner: BoundPattern, vertices: tuple[int, ...]) -> list[Ids]:
        """The distinct bindings of some vertices of a pattern, as columns sorted by the first, the second …"""
        if inner.residual:
            # What cannot be placed in the pattern is tested by SQL, as in any query.
            return self._distinct_by_sql(inner, vertices)
        plan = self._plan(inner, Wanted(vertices, (), False, None, "drop"))
        names = [inner.vertices[vertex].name for vertex in vertices]
        kept: list[Ids] = [np.empty(0, np.int64) for _ in vertices]
        for block in self.executor.run(plan, self.new_control()):
            columns = [np.concatenate([old, block.columns[name]]) for old, name in zip(kept, names, strict=True)]
            kept = _unique(columns)
        return kept

    def _distinct_by_sql(self, inner: BoundPattern, vertices: tuple[int, ...]) -> list[Ids]:
        names = [inner.vertices[vertex].name for vertex in vertices]
        items = tuple(ast.ReturnItem(ast.Variable(name), name, name) for name in names)
        returns = ast.ReturnClause(items, distinct=True)
        needs = wanted(returns, items, inner, (0, None))
        shaper = Shaper(
            self._snapshot, self._text, self._arguments, inner, lambda p, variables: self._exists(p, inner, variables)
        )
        shaped = shaper.shape(returns, items, (0, None))
        plan = self._plan(inner, needs)
        with self._bindings(plan, needs, inner):
            found = self._snapshot.connection.columns(shaped.sql, shaped.parameters)
        return _unique([self._snapshot.store.to_vertices(column) for column in found.values()])

    # --- running

    def run(self, prepared: Prepared) -> pa.Table | Counted:
        """Run the match and the SQL after it; the result in the engine's own terms."""
        if prepared.plan is not None and prepared.wanted.count_only:
            self.control = control = self.new_control()
            shaped = prepared.shaped  # what only counts needs no SQL
            return Counted(self.executor.count(prepared.plan, control), len(shaped.columns), shaped.window)
        if prepared.plan is not None and prepared.shaped.direct is not None:
            return self._projected(prepared.plan, prepared)
        if prepared.plan is not None and prepared.shaped.grouped is not None:
            return self._grouped(prepared.plan, prepared, prepared.shaped.grouped)
        with self.bindings(prepared), self._snapshot.connection.guard(self._left()) as raw:
            return raw.sql(prepared.shaped.sql, params=dict(prepared.shaped.parameters)).to_arrow_table()

    def _grouped(self, plan: PhysicalPlan, prepared: Prepared, sql: str) -> pa.Table:
        """Run a match whose rows are two vertices, grouped before SQL sees them where their order allows it."""
        with self._gathered(plan, prepared.wanted, prepared.bound) as gathered:
            found = None
            if gathered is not None and gathered.num_rows and gathered.num_columns == 3:
                vertices = self._snapshot.graph.vertices
                columns = [gathered.column(i).to_numpy() for i in range(3)]
                if max(int(column.max()) for column in columns[:2]) < vertices:  # a literal's id is not its vertex
                    found = grouped(columns[0], columns[1], columns[2], vertices, self.new_control().check)
            if found is None:
                sql = prepared.shaped.sql
            elif gathered is not None:
                gathered = type(gathered).from_arrays(list(found), names=gathered.column_names)
            with self._visible(gathered), self._snapshot.connection.guard(self._left()) as raw:
                return raw.sql(sql, params=dict(prepared.shaped.parameters)).to_arrow_table()

    def _projected(self, plan: PhysicalPlan, prepared: Prepared) -> pa.Table:
        """Run a match whose result needs no SQL while its rows are few."""
        shaped = prepared.shaped
        assert shaped.direct is not None
        with self._gathered(plan, prepared.wanted, prepared.bound) as gathered:
            literals = any(direct.kind is not None for direct in shaped.direct)
            if gathered is not None and gathered.num_rows <= FEW and (not literals or self._snapshot.lookup.ready()):
                rows = gathered.slice(*shaped.window)
                return project(rows, shaped.direct, self._snapshot.properties, self._snapshot.lookup)
            with self._visible(gathered), self._snapshot.connection.guard(self._left()) as raw:
                return raw.sql(shaped.sql, params=dict(shaped.parameters)).to_arrow_table()

    @contextmanager
    def bindings(self, prepared: Prepared) -> Iterator[None]:
        """Run the match, and keep its bindings visible to the shaped SQL."""
        if prepared.plan is None:
            with self._snapshot.connection.view(BINDINGS, {"one": np.zeros(1, np.int8), "n": np.ones(1, np.int8)}):
                yield
            return
        with self._bindings(prepared.plan, prepared.wanted, prepared.bound):
            yield

    @contextmanager
    def _bindings(self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern) -> Iterator[None]:
        connection = self._snapshot.connection
        if needs.count_only:
            self.control = control = self.new_control()
            count = self.executor.count(plan, control)
            with connection.view(BINDINGS, {"count": np.array([count], np.int64)}):
                yield
            return
        if not needs.vertices:
            # Nothing of the match is returned but its number of rows.
            self.control = control = self.new_control()
            count = self.executor.count(plan, control)
            # All bindings are equal: one row does where it may come with its number, or where that is not asked.
            rows = f"range({int(count)})" if needs.duplicates == "keep" else f"range({min(int(count), 1)})"
            with connection.guard() as raw:
                raw.execute(f"CREATE OR REPLACE TEMP VIEW {BINDINGS} AS SELECT 1 AS one, {int(count)} AS n FROM {rows}")
                try:
                    yield
                finally:
                    raw.execute(f"DROP VIEW {BINDINGS}")
            return
        with self._gathered(plan, needs, bound) as gathered, self._visible(gathered):
            yield

    @contextmanager
    def _visible(self, gathered: pa.Table | None) -> Iterator[None]:
        """Show gathered bindings to SQL; those that spilled are a table already."""
        if gathered is None:
            yield
            return
        with self._snapshot.connection.view(BINDINGS, gathered):
            yield

    @contextmanager
    def _gathered(self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern) -> Iterator[pa.Table | None]:
        """Run the match and yield its bindings, or None where they were too many and wait in a temporary table."""
        import pyarrow as pa

        self.control = control = self.new_control()
        columns = {f"v{v}": bound.vertices[v].name for v in needs.vertices}
        columns |= {f"e{e}": bound.edges[e].name for e in needs.edges}
        literals = {bound.vertices[v].name for v in needs.vertices if bound.vertices[v].kinds}
        batches: list[pa.Table] = []
        spilled, waiting = False, 0
        try:
            for block in self.executor.run(plan, control):
                table = self._terms(block, columns, literals)
                batches.append(table)
                waiting += table.nbytes
                if waiting > (_STREAM if spilled else self._bindings_bytes // 2):
                    self._spill(pa.concat_tables(batches), first=not spilled)
                    batches, spilled, waiting = [], True, 0
            if spilled:
                if batches:
                    self._spill(pa.concat_tables(batches), first=False)
                yield None
                return
            numbered = ["n"] if needs.duplicates == "count" else []
            empty = pa.table({name: pa.array(np.empty(0, np.int64)) for name in (*columns, *numbered)})
            yield pa.concat_tables(batches) if batches else empty
        finally:
            if spilled:
                self._snapshot.connection.rows(f"DROP TABLE IF EXISTS temp.{BINDINGS}")

    def _terms(self, block: Block, columns: Mapping[str, str], literals: set[str]) -> pa.Table:
        """A block of bindings as columns of term ids."""
        import pyarrow as pa

        arrays: dict[str, Any] = {}
        for column, name in columns.items():
            values = block.columns[name]
            if name in literals:
                values = self._snapshot.store.to_terms(values)
            arrays[column] = pa.array(np.ascontiguousarray(values))
        if block.matches is not None:
            arrays["n"] = pa.array(block.matches)
        return pa.table(arrays)

    def _spill(self, table: pa.Table, *, first: bool) -> None:
        connection = self._snapshot.connection
        with connection.view("_graphdb_block", table), connection.guard(self._left()) as raw:
            if first:
                raw.execute(f"CREATE OR REPLACE TEMP TABLE {BINDINGS} AS FROM _graphdb_block")
            else:
                raw.execute(f"INSERT INTO temp.{BINDINGS} FROM _graphdb_block")

    def new_control(self) -> Control:
        """Return the control of one match: it ends with the statement's time, or when that is cancelled."""
        told = self._progress
        return Control(
            timeout=self._left(),
            cancelled=self._cancelled,
            progress=None if told is None else lambda share: told(share, 1.0, 0, "matching"),
            buffer_bytes=max(self._bindings_bytes // 4, 1 << 20),
        )

    def _left(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)


def _unique(columns: list[Ids]) -> list[Ids]:
    """Return the distinct rows, sorted."""
    if len(columns) == 1:
        return [np.unique(columns[0])]
    order = np.lexsort(columns[::-1])
    ordered = [column[order] for column in columns]
    if not len(order):
        return ordered
    new = np.ones(len(order), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
    return [column[new] for column in ordered]
