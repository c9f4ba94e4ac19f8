"""One query under way: bound, given candidates, planned, run, projected.

:class:`~graphdb.database.Database` tells the story; here it happens, over one :class:`Snapshot` of the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.errors import ExecutionError, NotSupportedError
from graphdb.execute.search.group import grouped
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.apart import apart
from graphdb.pattern.bind import MOST, BoundPattern, bind, edge_names, size_of
from graphdb.pattern.free import SUBQUERIES
from graphdb.pattern.graph import PatternVertex, Wanted
from graphdb.plan.executor import Control
from graphdb.plan.paths import Weighted
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.array_joins import joined
from graphdb.relational.costed_edges import FoundEdges
from graphdb.relational.edges.parallel_edges import resolve_edges
from graphdb.relational.given import given_vertices
from graphdb.relational.lowering.joins import Setting, leaves_out
from graphdb.relational.lowering.lower import Lowering
from graphdb.relational.match_run import MatchRun, restricted
from graphdb.relational.materialized import joined_by_sql, materialized
from graphdb.relational.profile import LATE, RESULT, planning_of
from graphdb.relational.program import AnyStep, Applied, Called, Computed, Given, Joined, Program, Rows, Searched, Step
from graphdb.relational.projection.arrays import Beside, project
from graphdb.relational.projection.compile import ProjectionCompiler
from graphdb.relational.projection.late import BesideBindings
from graphdb.relational.projection.relation import BINDINGS, UNIT, Relation, bindings_of
from graphdb.relational.projection.return_clause import combines_aggregates, expand_star, wanted, window_of
from graphdb.relational.projection.sql import Projection, counted
from graphdb.relational.rewrites.edge_properties import with_edge_properties
from graphdb.relational.rewrites.list_subqueries import sees_items, with_rows
from graphdb.relational.rewrites.pattern_quantifiers import with_existence
from graphdb.relational.rewrites.written_lists import without_quantifiers
from graphdb.relational.session.plan_cache import StepPlans
from graphdb.relational.vectors.algebra import Rows as Vectors
from graphdb.relational.vectors.run import run
from graphdb.results.decode import Arrays
from graphdb.results.result import Counted
from graphdb.sql.computing import Beforehand, Computing
from graphdb.sql.expressions import MOST_OPERANDS
from graphdb.storage.arrays.arrow import table_of, values

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that is ready to run: its plan, and the SQL after it."""

    plan: PhysicalPlan | None
    """None for a query without MATCH."""
    wanted: Wanted
    projection: Projection
    bound: BoundPattern
    beside: tuple[Beside, ...] = field(default=(), kw_only=True)
    """Properties of the match's vertices that its SQL reads as columns of the bindings."""
    computing: Computing | None = field(default=None, kw_only=True)
    """Who computes what its SQL cannot express."""


class QueryRun(MatchRun):
    """Prepares and runs one query; see :class:`~graphdb.relational.match_run.MatchRun` for its parameters."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.controls: list[tuple[Step | Searched, PhysicalPlan | None, Control | None]] = []
        """What each match of a program reported, once it ran."""
        self._known: dict[str, Weighted] = {}
        """The edges that cheapest paths go along, by their steps, where they were found before."""
        self._edges: list[FoundEdges] = []
        """The edges that they go along, of which only the costs are not known."""
        self.step_plans = StepPlans()
        """The plans of steps that start from rows: those that the plan cache has for the query, if it has it."""

    # --- preparing

    def prepare(self, query: ast.Query | ast.Composite) -> Prepared | Program:
        """Bind, find candidates, plan, and write the SQL after the match.

        Raises
        ------
        GraphDBError
            Something is wrong with it, or it is more than a limit allows.
        """
        if isinstance(query, ast.Composite):
            return self._prepare_program(without_quantifiers(query))
        whole = ast.Composite(((*query.matches, query.returns),), span=query.span)
        return self._prepare_match(query) or self._prepare_program(whole)

    def prepare_projection(self, query: ast.Query) -> Prepared | None:
        """Prepare what follows the matches of a query of one pattern, which are found elsewhere: it has no plan.

        SQL goes on from its rows, so that properties are gathered for the matches alone before it.
        None where its rows are not matches of one pattern; raises as :meth:`prepare`.
        """
        return self._prepare_match(query, planned=False)

    def _prepare_match(self, query: ast.Query, *, planned: bool = True) -> Prepared | None:
        """Prepare a query of one pattern, whose bindings its RETURN is over; None where it takes more than one step."""
        if len(apart(query.matches)) > 1 or not self._is_one_pattern(query.matches):
            return None
        bound = bind(query.matches, self._snapshot.names, self._text)
        if len(bound.residual) > MOST_OPERANDS:
            return None
        if any(info.exists for info in bound.vertices):
            return None
        if any(isinstance(part, SUBQUERIES) for part in walk(tuple(bound.residual))):
            return None
        if combines_aggregates(query.returns.items):
            return None
        resolve_edges(self._snapshot, self._text, self._arguments, bound, query.returns)
        window = window_of(query.returns, self._snapshot, self._arguments, self._text)
        items = expand_star(query.returns, bound)
        needs = wanted(query.returns, items, bound, window)
        # The SQL is written before the match runs, so that every mistake is reported before any work is done.
        if needs.count_only and query.matches:
            projection = counted(items, window)
        else:
            relation, beside = bindings_of(bound, self._snapshot.edges), BesideBindings(self._snapshot)
            compiler = ProjectionCompiler(
                self._snapshot,
                self._text,
                self._arguments,
                replace(relation, matches="b.n", number="n") if needs.duplicates == "count" else relation,
                bound,
                beside=beside,
            )
            try:
                projection = compiler.project(query.returns, items, window, written=True, gather_late=planned)
                plan = self._plan(bound, needs) if query.matches and planned else None
            except Beforehand:
                return None
            return Prepared(plan, needs, projection, bound, beside=beside.columns if query.matches else ())
        return Prepared(self._plan(bound, needs) if planned else None, needs, projection, bound)

    def _is_one_pattern(self, matches: Sequence[ast.MatchClause]) -> bool:
        """Whether MATCH clauses are matched together, by one plan for each length of their paths."""
        edges = [name for match in matches for name in edge_names(match)] if len(matches) > 1 else []
        if len({*edges}) < len(edges) or size_of(*matches) > MOST:
            return False
        return not any(leaves_out(match, self._snapshot) for match in matches)

    def prepare_from(self, query: ast.Composite, start: Relation) -> Program:
        """Prepare a query that starts from rows which are there already; raises as :meth:`prepare`."""
        return self._prepare_program(without_quantifiers(query), start)

    def _prepare_program(self, query: ast.Composite, start: Relation = UNIT) -> Program:
        """Prepare a query of any reading clauses: matches, each of which may start from the rows before it, and SQL.

        Raises
        ------
        GraphDBError
            Something is wrong with it, or it is more than a limit allows.
        """
        query = with_edge_properties(with_existence(query))
        if sees_items(query):
            query = with_rows(query)
        beforehand: list[ast.Expression] = []
        while True:
            setting = Setting(
                self._snapshot,
                self._text,
                self._arguments,
                self._pattern,
                self._bindings_bytes,
                frozenset(beforehand),
                "_" * (self._depth + 1),
            )
            try:
                program = Lowering(setting).query(query, start)
            except Beforehand as found:
                if found.node in beforehand:
                    at = found.node.span.start
                    raise NotSupportedError(
                        "what is looked up here is not supported in SQL", text=self._text, position=at
                    ) from None
                beforehand.append(found.node)
            else:
                break
        with self._snapshot.graph.watched(self.new_control().check):
            steps = tuple(
                replace(step, plan=self._made(step.pattern, step.bound, step.needs))
                if isinstance(step, Step) and not step.given
                else step
                for step in program.steps
            )
        return replace(program, steps=steps)

    def is_general(self, prepared: Prepared | Program) -> bool:
        """Whether what was prepared here is right for other values of the arguments, once it is :meth:`replanned`."""
        if self._arguments.looked_at or prepared.computing is not None:
            return False
        if isinstance(prepared, Program):
            return all(isinstance(step, Step | Rows | Joined | Searched) for step in prepared.steps)
        return type(prepared) is Prepared and prepared.plan is not None

    def replanned(self, prepared: Prepared | Program) -> Prepared | Program | None:
        """Return what :meth:`is_general` for the arguments of this run; None where it takes more than other candidates.

        Nothing is checked, bound or compiled again: it was for arguments of the same types.
        """
        try:
            found = prepared.with_lists(self._arguments.unnoted) if isinstance(prepared, Program) else prepared
            return None if found is None else self.among(found, {})
        except (Beforehand, ExecutionError):
            return None

    def among(self, prepared: Prepared | Program, vertices: Mapping[str, Ids]) -> Prepared | Program:
        """Return a query with plans over the data of now, for vertices that are of some sorted resources.

        They are known by names that no other vertices have; others may be any.
        """
        there = {name: ids[ids < self._snapshot.graph.sizes.resources] for name, ids in vertices.items()}
        with self._snapshot.graph.watched(self.new_control().check):
            if isinstance(prepared, Prepared):
                return self._of_there(prepared, there)
            return replace(prepared, steps=tuple(self._replanned(step, there) for step in prepared.steps))

    def _of_there(self, prepared: Prepared, there: Mapping[str, Ids]) -> Prepared:
        """Return a query of one pattern with a plan of now; its own may be gone, since a change concerned it."""
        return replace(prepared, plan=self._planned(prepared.bound, prepared.wanted, there))

    def planned(self, prepared: Prepared | Program) -> Prepared | Program | None:
        """Return a query with plans over the data of now, else as it was prepared; None as of :meth:`replanned`."""
        return self.replanned(prepared) if isinstance(prepared, Program) else self.among(prepared, {})

    def _replanned(self, step: AnyStep, there: Mapping[str, Ids]) -> AnyStep:
        if isinstance(step, Searched):
            return step.with_ends(lambda bound, needs: self._pattern(bound, needs, there).vertices[0].candidates)
        if not isinstance(step, Step):
            return step
        pattern = self._pattern(step.bound, step.needs, there)
        plan = None if step.given else self._made(pattern, step.bound, step.needs)
        return replace(step, pattern=pattern, plan=plan)

    # --- running

    def run(self, prepared: Prepared | Program) -> arrow.Table | Arrays | Counted:
        """Run the matches and the SQL after them; the result in the engine's own terms."""
        if isinstance(prepared, Program) and (prepared.counts or prepared.projection.direct is not None):
            return self._of_last(prepared)
        if isinstance(prepared, Program):
            with self._steps(prepared):
                return self._result(prepared.projection)
        if prepared.plan is not None and prepared.wanted.count_only:
            self.control = control = self.new_control()
            projection = prepared.projection  # what only counts needs no SQL
            count = self._count(prepared.plan, prepared.wanted, prepared.bound, control)
            return Counted(count, len(projection.columns), projection.window)
        if prepared.plan is not None and prepared.projection.direct is not None:
            return self._projected(prepared.plan, prepared.wanted, prepared.bound, prepared.projection)
        with self._entered(BINDINGS, self.bindings(prepared)) as projection:
            return self._result(projection)

    def _result(self, projection: Projection) -> arrow.Table:
        """Run the SQL after the match, and gather what only its result needs; or neither, where columns do."""
        if projection.rows is not None:
            with self._measuring(RESULT):
                found = self._vectorized(projection.rows)
            if found is not None:
                if self.profile is not None:
                    self.profile.measured(RESULT, found.num_rows, found.nbytes)
                return found
        chosen = projection if projection.late is None else projection.late
        rows = self._selected(chosen.sql, chosen.parameters)
        if projection.late is None:
            return rows
        with self._measuring(LATE):
            return projection.late.finished(rows, self._snapshot.properties)

    def _vectorized(self, rows: Vectors) -> arrow.Table | None:
        """Make rows by operations on columns; None where SQL has to."""
        return run(rows, self._tables, self._snapshot.properties, self.new_control().check, self._threads)

    def _selected(self, sql: str, parameters: Mapping[str, object]) -> arrow.Table:
        """Run the SQL after the match."""
        connection = self._snapshot.connection
        with self._measuring(RESULT), connection.guard(self._left()) as raw:
            connection.promised.make(sql)
            rows = rows_of(raw, sql, parameters, connection.most_bytes)
        if self.profile is not None:
            self.profile.ran_sql(RESULT, sql)
            self.profile.measured(RESULT, rows.num_rows, rows.nbytes)
        return rows

    @contextmanager
    def _grouped(self, plan: PhysicalPlan, prepared: Prepared, sql: str) -> Iterator[Projection]:
        """Run a match whose rows are two vertices, grouped before SQL sees them where their order allows it; see
        :meth:`bindings`.
        """
        projection, found = prepared.projection, None
        with self._gathered(plan, prepared.wanted, prepared.bound) as gathered:
            if gathered is not None and gathered.num_rows and gathered.num_columns == 3:
                vertices = self._snapshot.graph.vertices
                columns = [values(gathered.column(i)) for i in range(3)]
                if max(int(column.max()) for column in columns[:2]) < vertices:  # a literal's id is not its vertex
                    found = grouped(columns[0], columns[1], columns[2], vertices, self.new_control().check)
                if found is not None:
                    gathered = arrow.table(list(found), gathered.column_names)
                    projection = replace(projection, sql=sql, rows=None, late=None)
            with self._visible(gathered):
                yield projection

    def _of_last(self, program: Program) -> arrow.Table | Counted:
        """Run a program whose result is the number of its last step's matches, or columns of these."""
        last = program.steps[-1]
        assert isinstance(last, Step)
        with self._steps(program, len(program.steps) - 1):
            plan = last.plan or self._plan_from(last)
            if not program.counts:
                table = self._projected(plan, last.needs, last.bound, program.projection, last.view)
                self.controls.append((last, plan, self.control))
                return table
            self.control = control = self.new_control()
            count = self._count(plan, last.needs, last.bound, control)
            self.controls.append((last, plan, control))
        return Counted(count, len(program.projection.columns), program.projection.window)

    @contextmanager
    def _steps(self, program: Program, most: int | None = None) -> Iterator[None]:
        """Run the first ``most`` steps of a program in order, visible to SQL while something after them reads them."""
        with ExitStack() as everything:
            self._show_lists(program, everything)
            alive: dict[str, ExitStack] = {}
            shares = sum(isinstance(step, Step | Rows | Joined) for step in program.steps)
            last_use = program.last_uses()
            self._known, done = program.known_edges(self._snapshot.costed)
            for number, step in enumerate(program.steps[:most]):
                if step.view in done:
                    continue
                for name in [name for name in alive if last_use.get(name, 0) < number]:
                    alive.pop(name).close()
                alive[step.view] = stack = everything.enter_context(ExitStack())
                stack.enter_context(self._entered(step.view, self._shown(step, shares)))
                if self.profile is not None and step.view not in self._tables and not _is_lazy(step):
                    self.profile.counted(step.view)
            yield

    @contextmanager
    def _shown(self, step: AnyStep, shares: int) -> Iterator[None]:
        """Run one step of a program, one of so many that share the memory for rows, and show what it makes to SQL."""
        scope: AbstractContextManager[None]
        if isinstance(step, Rows):
            scope = self._materialized(step, shares)
        elif isinstance(step, Joined):
            scope = self._joined(step, shares)
        elif isinstance(step, Called):
            scope = self._yielded(step)
        elif isinstance(step, Applied):
            scope = self._applied_to(step)
        elif isinstance(step, Computed):
            rows = self._snapshot.connection.arrow(step.rows, step.parameters)
            scope = self._snapshot.connection.view(step.view, step.table(rows), lasting=True)
        elif isinstance(step, Searched):
            scope = self._paths_found(step)
        else:
            scope = self._shown_match(step, shares) if step.found_by is None else self._all_edges(step, shares)
        with scope:
            if isinstance(step, Searched):
                self.controls.append((step, None, self.control))
            yield

    @contextmanager
    def _shown_match(self, step: Step, shares: int) -> Iterator[None]:
        """Run a match, and show its bindings to SQL."""
        plan = step.plan or self._plan_from(step)
        how = {"numbered": step.numbered, "shown": step.shown}
        with self._bindings(plan, step.needs, step.bound, step.view, shares, beside=step.beside, **how):
            self.controls.append((step, plan, self.control))
            yield

    def _all_edges(self, step: Step, shares: int) -> AbstractContextManager[None]:
        """Find the edges of a path, and show them to SQL; abstract: see :mod:`graphdb.relational.paths.steps`."""
        raise NotImplementedError

    def _paths_found(self, step: Searched) -> AbstractContextManager[None]:
        """Search for paths, and show them to SQL; abstract: see :mod:`graphdb.relational.paths.steps`."""
        raise NotImplementedError

    def _applied_to(self, step: Applied) -> AbstractContextManager[None]:
        """Make rows of rows, and show them to SQL; abstract, as :meth:`_paths_found`."""
        raise NotImplementedError

    def _show_lists(self, program: Program, stack: ExitStack) -> None:
        for view, table in program.lists.items():
            stack.enter_context(self._snapshot.connection.view(view, table, lasting=True))
            self._tables[view] = table
            stack.callback(self._tables.pop, view, None)

    @contextmanager
    def _yielded(self, step: Called) -> Iterator[None]:
        """Call a procedure for each group of rows, and show what it yields to SQL."""
        snapshot, check = self._snapshot, self.new_control().check
        groups = snapshot.connection.arrow(step.groups, step.parameters)
        numbered = arrow.pylist(groups.column("g"))
        columns = [arrow.pylist(groups.column(f"c{i}")) for i in range(len(step.call.arguments))]
        given = zip(*columns, strict=True) if columns else iter([()] * len(numbered))
        answers = [snapshot.procedures.answer(step.call, arguments, snapshot, check) for arguments in given]
        with snapshot.connection.view(step.view, step.table(numbered, answers), lasting=True):
            yield

    @contextmanager
    def _materialized(self, rows: Rows, shares: int) -> Iterator[None]:
        most = self._bindings_bytes // (2 * shares)
        made = None
        if rows.made is not None:
            made = self._vectorized(rows.made)
        with materialized(self._snapshot, rows, most, self._left(), made) as found:
            if self.profile is not None and made is None:
                self.profile.ran_sql(rows.view, rows.sql)
            if found is not None:
                self._tables[rows.view] = found
            yield
            self._tables.pop(rows.view, None)

    @contextmanager
    def _joined(self, step: Joined, shares: int) -> Iterator[None]:
        """Join rows with bindings, and show them to SQL."""
        found = joined(step, self._tables, self._bindings_bytes // (2 * shares))
        if found is None:
            with joined_by_sql(self._snapshot, step, self._tables, self._left()):
                yield
            return
        self._tables[step.view] = found = self._with_beside(found, step.beside)
        with self._visible(found, step.view):
            yield
        self._tables.pop(step.view, None)

    def _plan_from(self, step: Step) -> PhysicalPlan:
        """Plan a match whose vertices its rows give."""
        given = [given_vertices(one, self._tables, self._snapshot) for one in step.given]
        if (cached := self.step_plans.get(step.view, given)) is not None:
            return cached
        vertices = list(step.pattern.vertices)
        for one, ids in zip(step.given, given, strict=True):
            vertices[one.vertex] = self._restricted(vertices[one.vertex], one, ids)
        with self._measuring(planning_of(step.view)), self._snapshot.graph.watched(self.new_control().check):
            plan = self._made(replace(step.pattern, vertices=tuple(vertices)), step.bound, step.needs)
        subsets = {id(choice.subset): choice.subset for choice in step.bound.choices.values() if choice.subset}
        own_bytes = plan.own_bytes - sum(each.nbytes for each in subsets.values())  # these go with the pattern
        self.step_plans.put(step.view, given, plan, own_bytes)
        return plan

    def _restricted(self, vertex: PatternVertex, given: Given, ids: Ids) -> PatternVertex:
        """Return a pattern vertex that must be one of those that are given, or none of them."""
        if not given.excluded:
            return restricted(vertex, ids)
        among = self._snapshot.graph.universe() if vertex.candidates is None else vertex.candidates
        return replace(vertex, candidates=np.setdiff1d(among, ids, assume_unique=True))

    def _projected(
        self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern, projection: Projection, view: str = BINDINGS
    ) -> arrow.Table:
        """Run a match whose result needs no SQL while its rows are in memory."""
        assert projection.direct is not None
        with self._entered(view, self._gathered(plan, needs, bound, view)) as gathered:
            literals = any(direct.kind is not None for direct in projection.direct)
            if gathered is not None and (not literals or self._snapshot.lookup.ready()):
                rows = gathered.slice(*projection.window)
                with self._measuring(RESULT):
                    return project(rows, projection.direct, self._snapshot.properties, self._snapshot.lookup)
            with self._visible(gathered, view):
                return self._result(projection)

    @contextmanager
    def bindings(self, prepared: Prepared | Program) -> Iterator[Projection]:
        """Run the matches, and keep their bindings visible to the SQL after it: the projection's that is yielded."""
        if isinstance(prepared, Program):
            with self._steps(prepared):
                yield prepared.projection
            return
        if prepared.plan is None:
            one = table_of({"one": np.zeros(1, np.int8), "n": np.ones(1, np.int8)})
            with self._snapshot.connection.view(BINDINGS, one):
                yield prepared.projection
            return
        if prepared.projection.grouped is not None:
            with self._grouped(prepared.plan, prepared, prepared.projection.grouped) as projection:
                yield projection
            return
        with self._bindings(prepared.plan, prepared.wanted, prepared.bound, beside=prepared.beside):
            yield prepared.projection


def _is_lazy(step: AnyStep) -> bool:
    """Whether a step that made no table leaves it to SQL to ask for its rows, or has none but their number."""
    if isinstance(step, Joined):
        return not step.numbered
    return isinstance(step, Step) and (step.needs.count_only or step.needs.nothing or not step.shown)
