"""One MATCH query under way: bound, given candidates, planned, run, shaped.

:class:`~graphdb.database.Database` tells the story; here it happens, over one :class:`Snapshot` of the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.candidates import Candidates, Snapshot
from graphdb.choices import Chooser, ends_of, settle, with_scan, with_weights
from graphdb.computed import Computing
from graphdb.errors import ExecutionError, MemoryLimitError, NotSupportedError, QueryTimeout
from graphdb.execute.count import count_by_vertex, count_matches
from graphdb.execute.executor import Block, Control, Executor
from graphdb.execute.group import grouped
from graphdb.grammar import syntax as ast
from graphdb.pattern.apart import apart
from graphdb.pattern.bind import BoundPattern, bind, bind_exists
from graphdb.pattern.graph import PatternGraph, PatternVertex, Wanted
from graphdb.pattern.pieces import Piece
from graphdb.plan.passes import make_plan, without_matches
from graphdb.plan.paths import PathStep
from graphdb.plan.physical import PhysicalPlan
from graphdb.progress import Progress
from graphdb.project import FEW, project
from graphdb.relation import BINDINGS, UNIT, Relation, bindings_of
from graphdb.relational.lower import Lowering
from graphdb.relational.program import Given, Program, Rows, Searched, Step
from graphdb.result import Counted
from graphdb.returns import expand_star, wanted, window_of
from graphdb.shape import Shaped, Shaper
from graphdb.storage.sets import both, each_once
from graphdb.typed import Typed
from graphdb.values import BOOLEAN

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Ids = NDArray[np.int64]
T = TypeVar("T")

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
    computing: Computing | None = field(default=None, kw_only=True)
    """Who computes what its SQL cannot express."""


class QueryRun:
    """Prepares and runs one query; a context manager, whose exit drops what the run made visible to SQL.

    Parameters
    ----------
    bindings_bytes
        What the match may take: half of it for bindings that wait in memory.  Beyond that they go to a temporary table,
        which DuckDB may spill, block by block.
    threads
        How many threads count what executors do not know of.
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
        threads: int = 1,
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
        self._threads = threads
        self._cancelled = cancelled
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._lazy_stack: ExitStack | None = None
        self._views = 0
        self._numbered: dict[str, pa.Table] = {}
        """Bindings that are visible to SQL, and that others start from."""
        self.control: Control | None = None
        """What the match reported, once it ran."""
        self.controls: list[tuple[Step | Searched, PhysicalPlan | None, Control | None]] = []
        """The same of each match of a program."""

    def __enter__(self) -> Self:
        self._snapshot.connection.deadline = self._deadline
        return self

    def __exit__(self, *_: object) -> None:
        self._snapshot.connection.deadline = None
        if self._lazy_stack is not None:
            self._lazy_stack.close()

    # --- preparing

    def prepare(self, query: ast.Query | ast.Composite) -> Prepared | Program:
        """Bind, find candidates, plan, and write the SQL after the match."""
        if isinstance(query, ast.Composite):
            return self._prepare_program(query)
        if len(apart(query.matches)) > 1:
            try:
                return self._prepare_program(ast.Composite(((*query.matches, query.returns),), span=query.span))
            except NotSupportedError:
                pass
        bound = bind(query.matches, self._snapshot.names, self._text)
        settle(self._snapshot, self._text, self._arguments, bound, query.returns)
        window = window_of(query.returns, self._arguments, self._text)
        items = expand_star(query.returns, bound, self._text)
        needs = wanted(query.returns, items, bound, window)
        shaper = Shaper(
            self._snapshot,
            self._text,
            self._arguments,
            replace(bindings_of(bound, self._snapshot.edges), matches="b.n" if needs.duplicates == "count" else None),
            lambda predicate, variables: self._exists(predicate, bound, variables),
            bound,
        )
        # The SQL is written before the match runs, so that every mistake is told before any work is done.
        if needs.count_only and query.matches:
            shaped = shaper.counted(query.returns, items, window)
        else:
            shaped = shaper.shape(query.returns, items, window, written=True)
        plan = self._plan(bound, needs) if query.matches else None
        return Prepared(plan, needs, shaped, bound, reusable=not self._views)

    def prepare_from(self, query: ast.Composite, start: Relation) -> Program:
        """Prepare a query that starts from rows which are there already."""
        return self._prepare_program(query, start)

    def _prepare_program(self, query: ast.Composite, start: Relation = UNIT) -> Program:
        """Prepare a query of any reading clauses: matches, each of which may start from the rows before it, and SQL.

        Raises
        ------
        GraphDBError
            SQL cannot do it, or it is a mistake: the interpreter will tell.
        """
        lowering = Lowering(self._snapshot, self._text, self._arguments, self._pattern, self._step)
        program = lowering.query(query, start)
        if self._snapshot.proved.get(program.proof):
            program = replace(program, assumed=True)
        else:
            self._prove(program)
        with self._snapshot.graph.watched(self.new_control().check):
            steps = tuple(
                replace(step, plan=self._made(step.pattern, step.bound, step.needs))
                if isinstance(step, Step) and not step.given
                else step
                for step in program.steps
            )
        return replace(program, steps=steps)

    def _prove(self, program: Program) -> None:
        """Have DuckDB bind the SQL of a program, over no rows: what it would refuse is refused before anything runs."""
        import duckdb

        with self._snapshot.connection.guard() as raw, ExitStack() as stack:
            try:
                self._show_lists(program, stack)
                for step in program.steps:
                    if isinstance(step, Rows):
                        self._keep_rows(raw, step, "LIMIT 0")
                        stack.callback(raw.execute, f"DROP TABLE IF EXISTS temp.{step.table}")
                        continue
                    if isinstance(step, Searched):
                        stack.enter_context(self._snapshot.connection.view(step.view, step.table(None)))
                        continue
                    empty = self._empty(step.needs, step.bound)
                    if step.numbered:
                        empty = empty.append_column("rowid", empty.column(0))
                    if step.needs.nothing:
                        empty = empty.append_column("one", empty.column("n"))
                    stack.enter_context(self._snapshot.connection.view(step.view, empty))
                    for given in step.given:
                        raw.execute(f"SELECT id FROM ({given.sql}) LIMIT 0", dict(given.parameters)).fetchall()
                shaped = program.shaped
                raw.execute(f"SELECT * FROM ({shaped.sql}) LIMIT 0", dict(shaped.parameters)).fetchall()
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                raise NotSupportedError(f"DuckDB does not know it: {str(error).splitlines()[0]}") from None
        proof = program.proof
        self._snapshot.proved.put(proof, True, sum(len(part) for part in proof if isinstance(part, str)))

    def _keep_rows(self, raw: duckdb.DuckDBPyConnection, rows: Rows, limit: str = "") -> None:
        raw.execute(f"CREATE OR REPLACE TEMP TABLE {rows.table} AS FROM ({rows.sql}) {limit}", dict(rows.parameters))

    def _plan(self, bound: BoundPattern, needs: Wanted) -> PhysicalPlan:
        with self._snapshot.graph.watched(self.new_control().check):
            return self._planned(bound, needs)

    def _planned(self, bound: BoundPattern, needs: Wanted) -> PhysicalPlan:
        pattern = self._pattern(bound, needs)
        return self._made((without_matches(pattern) if pattern.count_only else None) or pattern, bound, needs)

    def _made(self, pattern: PatternGraph, bound: BoundPattern, needs: Wanted) -> PhysicalPlan:
        plan = make_plan(pattern, self._snapshot.graph, refine=self.executor.refine)
        if not bound.choices:
            return plan
        plan = with_scan(self._snapshot, bound, pattern, plan)
        return plan if plan.scan is not None else with_weights(self._snapshot, bound, needs, pattern, plan)

    def _pattern(self, bound: BoundPattern, needs: Wanted) -> PatternGraph:
        candidates = Candidates(
            self._snapshot, self._text, self._arguments, lambda predicate: self._around(predicate, bound)
        )
        chooser = Chooser(self._snapshot, bound, needs)
        vertices, edges = {*needs.vertices, *chooser.vertices}, {*needs.edges, *chooser.edges}
        outputs = [bound.vertices[v].name for v in sorted(vertices)] + [bound.edges[e].name for e in sorted(edges)]
        count_only = (needs.count_only and not chooser) or not outputs
        found = list(candidates.vertices(bound))
        for vertex, ids in ends_of(self._snapshot, bound).items():
            found[vertex] = restricted(found[vertex], ids)
        return PatternGraph(
            tuple(found),
            tuple(bound.edges),
            tuple(bound.clauses),
            tuple(bound.edge_tests),
            tuple(bound.unequal),
            () if count_only else tuple(outputs),
            count_only,
            None if chooser.cuts else needs.limit,
            "keep" if count_only else "count" if needs.count_only else needs.duplicates,
        )

    # --- pattern predicates

    def _around(self, predicate: ast.PatternPredicate, outer: BoundPattern) -> Ids:
        """The vertices around which a pattern with one named vertex matches, sorted."""
        inner = self._inner(predicate, outer)
        (vertex,) = inner.vertex_of.values()
        found = self._distinct(inner, (vertex,))
        return found[0]

    def _exists(self, predicate: ast.PatternPredicate, outer: BoundPattern, variables: Mapping[str, Typed]) -> Typed:
        """A pattern predicate in SQL: its named vertices' columns are among the pattern's matches."""
        if not predicate.pattern.plain:
            raise NotSupportedError("such paths as conditions are not supported in SQL")
        inner = self._inner(predicate, outer)
        names = list(inner.vertex_of)
        if not names:
            needs = Wanted((), (), True, 1)
            plan = self._plan(inner, needs)
            return Typed("TRUE" if self._count(plan, needs, inner, self.new_control()) else "FALSE", BOOLEAN)
        found = self._distinct(inner, tuple(inner.vertex_of.values()))
        view = self._snapshot.connection.temporary()
        columns = {f"v{i}": self._snapshot.store.to_terms(column) for i, column in enumerate(found)}
        self._lazy_stack = self._lazy_stack or ExitStack()
        self._lazy_stack.enter_context(self._snapshot.connection.view(view, columns))
        self._views += 1
        ids = ", ".join(variables[name].sql for name in names)
        return Typed(f"(({ids}) IN (SELECT {', '.join(columns)} FROM {view}))", BOOLEAN)

    def _inner(self, predicate: ast.PatternPredicate, outer: BoundPattern) -> BoundPattern:
        inner = bind_exists(predicate, outer, self._snapshot.names, self._text)
        settle(self._snapshot, self._text, self._arguments, inner)
        return inner

    def _distinct(self, inner: BoundPattern, vertices: tuple[int, ...]) -> list[Ids]:
        """The distinct bindings of some vertices of a pattern, as columns sorted by the first, the second …"""
        if inner.residual:
            # What cannot be placed in the pattern is tested by SQL, as in any query.
            return self._distinct_by_sql(inner, vertices)
        needs = Wanted(vertices, (), False, None, "drop")
        plan = self._plan(inner, needs)
        names = [inner.vertices[vertex].name for vertex in vertices]
        kept: list[Ids] = [np.empty(0, np.int64) for _ in vertices]
        for block in self._blocks(plan, needs, inner, self.new_control()):
            columns = [np.concatenate([old, block.columns[name]]) for old, name in zip(kept, names, strict=True)]
            kept = _unique(columns)
        return kept

    def _distinct_by_sql(self, inner: BoundPattern, vertices: tuple[int, ...]) -> list[Ids]:
        names = [inner.vertices[vertex].name for vertex in vertices]
        items = tuple(ast.ReturnItem(ast.Variable(name), name, name) for name in names)
        returns = ast.ReturnClause(items, distinct=True)
        needs = wanted(returns, items, inner, (0, None))
        shaper = Shaper(
            self._snapshot,
            self._text,
            self._arguments,
            bindings_of(inner, self._snapshot.edges),
            lambda predicate, variables: self._exists(predicate, inner, variables),
        )
        shaped = shaper.shape(returns, items, (0, None))
        plan = self._plan(inner, needs)
        with self._bindings(plan, needs, inner):
            found = self._snapshot.connection.columns(shaped.sql, shaped.parameters)
        return _unique([self._snapshot.store.to_vertices(column) for column in found.values()])

    # --- running

    def run(self, prepared: Prepared | Program) -> pa.Table | Counted:
        """Run the matches and the SQL after them; the result in the engine's own terms."""
        if isinstance(prepared, Program):
            with self._steps(prepared), self._snapshot.connection.guard(self._left()) as raw:
                return raw.sql(prepared.shaped.sql, params=dict(prepared.shaped.parameters)).to_arrow_table()
        if prepared.plan is not None and prepared.wanted.count_only:
            self.control = control = self.new_control()
            shaped = prepared.shaped  # what only counts needs no SQL
            count = self._count(prepared.plan, prepared.wanted, prepared.bound, control)
            return Counted(count, len(shaped.columns), shaped.window)
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

    @contextmanager
    def _steps(self, program: Program) -> Iterator[None]:
        """Run the matches of a program in order, and keep visible to SQL what comes after them names."""
        try:
            with self._stepped(program):
                yield
        except (QueryTimeout, MemoryLimitError):
            raise
        except ExecutionError:
            if program.assumed:  # it may be these values that DuckDB does not take
                self._prove(program)
            raise

    @contextmanager
    def _stepped(self, program: Program) -> Iterator[None]:
        with ExitStack() as everything:
            self._show_lists(program, everything)
            alive: dict[str, ExitStack] = {}
            shares = len(program.matches)
            for number, step in enumerate(program.steps):
                for name in [name for name in alive if program.last_use(name) < number]:
                    alive.pop(name).close()
                name = step.table if isinstance(step, Rows) else step.view
                alive[name] = stack = everything.enter_context(ExitStack())
                if isinstance(step, Rows):
                    stack.enter_context(self._kept(step))
                    continue
                if isinstance(step, Searched):
                    stack.enter_context(self._paths_found(step))
                    self.controls.append((step, None, self.control))
                    continue
                plan = step.plan or self._plan_from(step)
                found = self._bindings(plan, step.needs, step.bound, step.view, shares, numbered=step.numbered)
                stack.enter_context(found)
                self.controls.append((step, plan, self.control))
            yield

    def _step(
        self, path: ast.PathPattern, pieces: Sequence[Piece], match: ast.MatchClause, beside: list[Any], spelled: bool
    ) -> PathStep:
        """Return the step that searches for a path of some parts; ``beside`` are the other edges of its clause."""
        raise NotImplementedError

    def _paths_found(self, step: Searched) -> AbstractContextManager[None]:
        """Search for paths, and show them to SQL; see :mod:`graphdb.paths.steps`."""
        raise NotImplementedError

    def _show_lists(self, program: Program, stack: ExitStack) -> None:
        for view, table in program.lists.items():
            stack.enter_context(self._snapshot.connection.view(view, table))

    @contextmanager
    def _kept(self, rows: Rows) -> Iterator[None]:
        with self._snapshot.connection.guard(self._left()) as raw:
            self._keep_rows(raw, rows)
        try:
            yield
        finally:
            self._snapshot.connection.rows(f"DROP TABLE IF EXISTS temp.{rows.table}")

    def _plan_from(self, step: Step) -> PhysicalPlan:
        """Plan a match whose vertices its rows give."""
        given = [self._given(one) for one in step.given]
        if (former := step.former.again(given)) is not None:
            return former
        vertices = list(step.pattern.vertices)
        for one, ids in zip(step.given, given, strict=True):
            vertices[one.vertex] = restricted(vertices[one.vertex], ids)
        with self._snapshot.graph.watched(self.new_control().check):
            plan = self._made(replace(step.pattern, vertices=tuple(vertices)), step.bound, step.needs)
        step.former.keep(given, plan)
        return plan

    def _given(self, given: Given) -> Ids:
        rows = self._numbered.get(given.column[0]) if given.column is not None else None
        if rows is not None and given.column is not None:
            found = rows.column(given.column[1]).to_numpy()
        else:
            found = self._snapshot.connection.columns(f"SELECT id FROM ({given.sql})", given.parameters)["id"]
        return each_once(self._snapshot.store.to_vertices(np.asarray(found, np.int64)), self._snapshot.graph.vertices)

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
    def bindings(self, prepared: Prepared | Program) -> Iterator[None]:
        """Run the matches, and keep their bindings visible to the shaped SQL."""
        if isinstance(prepared, Program):
            with self._steps(prepared):
                yield
            return
        if prepared.plan is None:
            with self._snapshot.connection.view(BINDINGS, {"one": np.zeros(1, np.int8), "n": np.ones(1, np.int8)}):
                yield
            return
        with self._bindings(prepared.plan, prepared.wanted, prepared.bound):
            yield

    @contextmanager
    def _bindings(
        self,
        plan: PhysicalPlan,
        needs: Wanted,
        bound: BoundPattern,
        view: str = BINDINGS,
        shares: int = 1,
        *,
        numbered: bool = False,
    ) -> Iterator[None]:
        """Run a match and show its bindings to SQL, one of so many that share the memory for those that wait.

        ``numbered`` ones have a column ``rowid``, as rows of tables do: what starts from them may read them, too.
        """
        connection = self._snapshot.connection
        if needs.count_only:
            self.control = control = self.new_control()
            count = self._count(plan, needs, bound, control)
            with connection.view(view, {"count": np.array([count], np.int64)}):
                yield
            return
        if needs.nothing:
            # Nothing of the match is returned but its number of rows.
            self.control = control = self.new_control()
            count = self._count(plan, needs, bound, control)
            # All bindings are equal: one row does where it may come with its number, or where that is not asked.
            rows = f"range({int(count)})" if needs.duplicates == "keep" else f"range({min(int(count), 1)})"
            with connection.guard() as raw:
                raw.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT 1 AS one, {int(count)} AS n FROM {rows}")
                try:
                    yield
                finally:
                    raw.execute(f"DROP VIEW {view}")
            return
        with self._gathered(plan, needs, bound, view, shares) as gathered:
            if numbered and gathered is not None:
                gathered = gathered.append_column("rowid", [np.arange(gathered.num_rows)])
                self._numbered[view] = gathered
            with self._visible(gathered, view):
                yield
            self._numbered.pop(view, None)

    @contextmanager
    def _visible(self, gathered: pa.Table | None, view: str = BINDINGS) -> Iterator[None]:
        """Show gathered bindings to SQL; those that spilled are a table already."""
        if gathered is None:
            yield
            return
        with self._snapshot.connection.view(view, gathered):
            yield

    @contextmanager
    def _gathered(
        self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern, view: str = BINDINGS, shares: int = 1
    ) -> Iterator[pa.Table | None]:
        """Run the match and yield its bindings, or None where they were too many and wait in a temporary table."""
        import pyarrow as pa

        self.control = control = self.new_control()
        batches: list[pa.Table] = []
        spilled, waiting = False, 0
        try:
            for block in self._blocks(plan, needs, bound, control):
                table = self._terms(block, needs, bound)
                batches.append(table)
                waiting += table.nbytes
                if waiting > (_STREAM if spilled else self._bindings_bytes // (2 * shares)):
                    self._spill(pa.concat_tables(batches), view, first=not spilled)
                    batches, spilled, waiting = [], True, 0
            if spilled:
                if batches:
                    self._spill(pa.concat_tables(batches), view, first=False)
                yield None
                return
            yield pa.concat_tables(batches) if batches else self._empty(needs, bound)
        finally:
            if spilled:
                self._snapshot.connection.rows(f"DROP TABLE IF EXISTS temp.{view}")

    def _blocks(self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern, control: Control) -> Iterator[Block]:
        """Run a match, and settle which edges its triples stand for; no more rows than are wanted."""
        chooser = Chooser(self._snapshot, bound, needs)
        if not chooser:
            yield from self.executor.run(plan, control)
            return
        if plan.weighed is not None and plan.weighed.root >= 0:
            counted = self._weighed(partial(count_by_vertex, plan.weighed), control)
            if counted is not None:
                vertices, matches = counted
                name = bound.vertices[plan.weighed.root].name
                yield Block({name: vertices.astype(plan.dtype)}, len(vertices), matches)
                return
        left, started = needs.limit, time.monotonic()
        blocks = map(chooser.block, self.executor.run(plan, control)) if plan.scan is None else chooser.scan(plan.scan)
        for block in blocks:
            control.check()
            yield block
            if left is not None and (left := left - block.count) <= 0:
                break
        if plan.scan is not None:
            control.seconds = time.monotonic() - started

    def _count(self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern, control: Control) -> int:
        """The number of a pattern's matches."""
        if plan.count_only:
            return self.executor.count(plan, control)
        if plan.weighed is not None and plan.weighed.root < 0:
            weighed = self._weighed(partial(count_matches, plan.weighed), control)
            if weighed is not None:
                return weighed
        counted = replace(needs, count_only=True)
        total = 0
        for block in self._blocks(plan, counted, bound, control):
            assert block.matches is not None
            total += int(block.matches.sum())
        return total

    def _weighed(self, count: Callable[[Control, int, int], T], control: Control) -> T:
        """Count parallel edges as weights; these no device counts."""
        started = time.monotonic()
        try:
            return count(control, self._threads, self._bindings_bytes)
        finally:
            control.seconds = time.monotonic() - started

    def _empty(self, needs: Wanted, bound: BoundPattern) -> pa.Table:
        """The table of no bindings."""
        chooser = Chooser(self._snapshot, bound, needs)
        columns = dict.fromkeys(_columns(needs, bound).values(), np.empty(0, np.int64))
        columns |= {f"#n{edge}": np.empty(0, np.int64) for edge in chooser.edges}
        counted = needs.nothing or needs.duplicates == "count"
        return self._terms(Block(columns, 0, np.empty(0, np.int64) if counted else None), needs, bound)

    def _terms(self, block: Block, needs: Wanted, bound: BoundPattern) -> pa.Table:
        """A block of bindings as columns of term ids."""
        import pyarrow as pa

        literals = {f"v{v}" for v in needs.vertices if bound.vertices[v].kinds}
        arrays: dict[str, Any] = {}
        for column, name in _columns(needs, bound).items():
            values = block.columns[name]
            if column in literals:
                values = self._snapshot.store.to_terms(values)
            arrays[column] = pa.array(np.ascontiguousarray(values))
        arrays |= Chooser(self._snapshot, bound, needs).columns(block)
        if block.matches is not None:
            arrays["n"] = pa.array(block.matches)
        return pa.table(arrays)

    def _spill(self, table: pa.Table, view: str, *, first: bool) -> None:
        connection = self._snapshot.connection
        with connection.view("_graphdb_block", table), connection.guard(self._left()) as raw:
            if first:
                raw.execute(f"CREATE OR REPLACE TEMP TABLE {view} AS FROM _graphdb_block")
            else:
                raw.execute(f"INSERT INTO temp.{view} FROM _graphdb_block")

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


def _columns(needs: Wanted, bound: BoundPattern) -> dict[str, str]:
    """Return the columns of bindings: by their names in SQL, the names of the pattern's elements."""
    vertices = {f"v{v}": bound.vertices[v].name for v in needs.vertices}
    return vertices | {f"e{e}": bound.edges[e].name for e in needs.edges}


def restricted(vertex: PatternVertex, ids: Ids) -> PatternVertex:
    """Return a pattern vertex that must also be one of some sorted vertices."""
    if vertex.candidates is not None:
        ids = both(vertex.candidates, ids)
    return replace(vertex, candidates=ids)


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
