"""One query under way: bound, given candidates, planned, run, projected.

:class:`~graphdb.database.Database` tells the story; here it happens, over one :class:`Snapshot` of the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.errors import BindError, ExecutionError, NotSupportedError, TypeMismatchError
from graphdb.common.values.types import WHOLE_AND_REAL
from graphdb.execute.search.group import grouped
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.apart import apart
from graphdb.pattern.bind import MOST, BoundPattern, bind, edge_names, size_of
from graphdb.pattern.failing import can_fail, can_fail_somewhere, computes
from graphdb.pattern.free import SUBQUERIES
from graphdb.pattern.graph import Wanted
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.edges.parallel_edges import resolve_edges
from graphdb.relational.lowering.joins.bindings import leaves_out
from graphdb.relational.lowering.joins.rows import Setting
from graphdb.relational.lowering.lower import Lowering
from graphdb.relational.profile import LATE, RESULT
from graphdb.relational.program import AnyStep, Joined, Program, Rows, Searched, Step
from graphdb.relational.projection.arrays import Beside, labels_of, project
from graphdb.relational.projection.compile import ProjectionCompiler
from graphdb.relational.projection.late import BesideBindings
from graphdb.relational.projection.relation import BINDINGS, ONE, UNIT, Relation, bindings_of
from graphdb.relational.projection.return_clause import combines_aggregates, expand_star, wanted, window_of
from graphdb.relational.projection.sql import Projection, counted
from graphdb.relational.rewrites.argument_items import with_argument_items
from graphdb.relational.rewrites.collected_lists import without_lists
from graphdb.relational.rewrites.constants import with_constants
from graphdb.relational.rewrites.counted_tails import coinciding, enumerates_tails, with_counted_tails
from graphdb.relational.rewrites.edge_counts import counting_rows
from graphdb.relational.rewrites.edge_properties import with_edge_properties
from graphdb.relational.rewrites.lazy_branches import with_lazy_branches
from graphdb.relational.rewrites.list_subqueries import sees_items, with_rows
from graphdb.relational.rewrites.pattern_quantifiers import with_counts, with_existence
from graphdb.relational.rewrites.written_lists import with_alternatives, with_memberships, without_quantifiers
from graphdb.relational.running.program_run import ProgramRun
from graphdb.results.decode import Arrays
from graphdb.results.result import Counted
from graphdb.sql.computing import Beforehand, Computing
from graphdb.sql.expressions import MOST_OPERANDS
from graphdb.storage.arrays.arrow import values

Ids = NDArray[np.int64]
Query = TypeVar("Query")

_HANDFUL = 1000
"""Candidates of a vertex that are in memory in any case."""


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

    @property
    def gathers(self) -> bool:
        """Whether all that it returns is gathered for the candidates of its one vertex, with a plan or without.

        Where these are a handful, its SQL is not asked, which names tables that a change may take away.
        """
        direct = self.projection.direct
        if direct is None or len(self.bound.vertices) != 1 or self.bound.edges or self.computing is not None:
            return False
        return all(each.kind is None for one in direct for each in (one, *one.otherwise))


class QueryRun(ProgramRun):
    """Prepares and runs one query; see :class:`~graphdb.relational.match_run.MatchRun` for its parameters."""

    # --- preparing

    def prepare(self, query: ast.Query | ast.Composite) -> Prepared | Program:
        """Bind, find candidates, plan, and write the SQL after the match.

        Raises
        ------
        GraphDBError
            Something is wrong with it, or it is more than a limit allows.
        """
        query = with_alternatives(self._with_constants(with_memberships(query, self._text)), self._arguments)
        joined = with_argument_items(query, self._arguments)
        if joined != query and isinstance(joined, ast.Query):
            joined = ast.Composite(((*joined.matches, joined.returns),), span=joined.span)
        query = joined
        if isinstance(query, ast.Composite):
            return self._prepare_program(without_quantifiers(query))
        if not any(clause.optional for clause in query.matches):
            query = replace(query, returns=counting_rows(query.matches, query.returns))
        whole = ast.Composite(((*query.matches, query.returns),), span=query.span)
        prepared = self._prepare_match(query)
        if prepared is not None and (divided := self._with_counted_tails(query, prepared)) is not None:
            return self._prepare_program(divided)
        return prepared or self._prepare_program(whole)

    def _with_counted_tails(self, query: ast.Query, prepared: Prepared) -> ast.Composite | None:
        """Return a query of one pattern with its tails counted by themselves; None where its plan enumerates none."""
        if prepared.plan is None or not enumerates_tails(prepared.plan, prepared.wanted.vertices):
            return None
        bound, type_label = prepared.bound, self._snapshot.graph.type_label
        values = {vertex.name for vertex in bound.vertices if vertex.kinds}

        def is_number(node: ast.Expression) -> bool:
            if not isinstance(node, ast.Property) or not isinstance(node.base, ast.Variable):
                return False
            if node.base.name not in bound.vertex_of or node.base.name in values:
                return False
            label = self._snapshot.names.property(node.key.words, self._text)
            if not label.kinds or label.max_values != 1 or not self._snapshot.properties.has_type(label):
                return False
            return self._snapshot.properties.type_of(label).base in WHOLE_AND_REAL

        found = with_counted_tails(
            query.matches, query.returns, lambda: coinciding(bound, type_label), values, is_number
        )
        return None if found is None else ast.Composite(((*found[0], found[1]),), span=query.span)

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
        try:
            if needs.count_only and query.matches:
                plan = self._plan(bound, needs) if planned else None
                return Prepared(plan, needs, counted(items, window), bound)
            rows = BINDINGS if query.matches else ONE
            relation, beside = bindings_of(bound, self._snapshot.edges, rows), BesideBindings(self._snapshot)
            compiler = ProjectionCompiler(
                self._snapshot,
                self._text,
                self._arguments,
                replace(relation, matches="b.n", number="n") if needs.duplicates == "count" else relation,
                bound,
                beside=beside,
            )
            projection = compiler.project(query.returns, items, window, written=True, gather_late=planned)
            plan = self._plan(bound, needs) if query.matches and planned else None
        except Beforehand:
            return None
        return Prepared(plan, needs, projection, bound, beside=beside.columns if query.matches else ())

    def _is_one_pattern(self, matches: Sequence[ast.MatchClause]) -> bool:
        """Whether MATCH clauses are matched together, by one plan for each length of their paths."""
        edges = [name for match in matches for name in edge_names(match)] if len(matches) > 1 else []
        if len({*edges}) < len(edges) or size_of(*matches) > MOST:
            return False
        return not any(leaves_out(match, self._snapshot) for match in matches)

    def prepare_from(self, query: ast.Composite, start: Relation) -> Program:
        """Prepare a query that starts from rows which are there already; raises as :meth:`prepare`."""
        query = with_alternatives(self._with_constants(with_memberships(query, self._text)), self._arguments)
        query = with_argument_items(query, self._arguments)
        return self._prepare_program(without_quantifiers(query), start)

    def with_lazy_branches(self, query: Query) -> Query:
        """Return a query in which what CASE and others do not come to does not fail."""
        return with_lazy_branches(query, self._fails)

    def _fails(self, node: ast.Expression) -> bool:
        """Whether an expression may fail for some row; without care, no number is taken to be out of range."""
        return (self._snapshot.careful and computes(node)) or can_fail_somewhere(node, self._snapshot.names, self._text)

    def _with_constants(self, query: Query) -> Query:
        """Return a query with what is made of maps of its arguments alone as constants."""
        given, computing = self._arguments, self._snapshot.computing
        if computing is None:
            return query
        found = with_constants(query, given.unnoted, lambda node: computing().constant(node))
        given.looked_at = given.looked_at or found is not query
        return found

    def _prepare_program(self, query: ast.Composite, start: Relation = UNIT) -> Program:
        """Prepare a query of any reading clauses: matches, each of which may start from the rows before it, and SQL.

        Raises
        ------
        GraphDBError
            Something is wrong with it, or it is more than a limit allows.
        """
        query = with_existence(without_lists(query, self._is_safe), self._arguments)
        query = with_edge_properties(with_counts(query))
        if sees_items(query):
            query = with_rows(query)
        beforehand: list[ast.Expression] = []
        writes_paths = True
        while True:
            setting = Setting(
                self._snapshot,
                self._text,
                self._arguments,
                self._pattern,
                self._bindings_bytes,
                frozenset(beforehand),
                writes_paths,
                "_" * (self._depth + 1),
            )
            lowering = Lowering(setting)
            try:
                program = lowering.query(query, start)
            except Beforehand as found:
                if found.node in beforehand:
                    at = found.node.span.start
                    raise NotSupportedError(
                        "what is looked up here is not supported in SQL", text=self._text, position=at
                    ) from None
                beforehand.append(found.node)
            except (NotSupportedError, TypeMismatchError):
                if not lowering.has_written:
                    raise
                beforehand, writes_paths = [], False
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

    def _is_safe(self, node: ast.Expression) -> bool:
        """Whether an expression has one value for each row, and none at which it fails."""
        names = self._snapshot.names
        if computes(node) or can_fail(node, names, self._text):
            return False
        with suppress(BindError):  # reported where it is compiled
            keys = (part.key.words for part in walk(node) if isinstance(part, ast.Property))
            return all(names.property(words, self._text).max_values == 1 for words in keys)
        return False

    def is_general(self, prepared: Prepared | Program) -> bool:
        """Whether what was prepared here is right for other values of the arguments, once it is :meth:`replanned`."""
        if self._arguments.looked_at or prepared.computing is not None:
            return False
        if isinstance(prepared, Program):
            return all(isinstance(step, Step | Rows | Joined | Searched) for step in prepared.steps)
        return type(prepared) is Prepared and prepared.plan is not None

    def is_stale(self, prepared: Prepared | Program) -> bool:
        """Whether a plan of what :meth:`is_general` is missing, or over another state of the data than this run's."""
        if isinstance(prepared, Prepared):
            plans = [prepared.plan]
        else:
            steps = () if prepared.listed else prepared.steps
            plans = [step.plan for step in steps if isinstance(step, Step) and not step.given]
        graph = self._snapshot.graph
        return any(plan is None or (plan.origin is not None and plan.origin.graph is not graph) for plan in plans)

    def replanned(self, prepared: Prepared | Program) -> Prepared | Program | None:
        """Return what :meth:`is_general` for the arguments of this run; None where it takes more than other candidates.

        Nothing is checked, bound or compiled again: it was for arguments of the same types.
        """
        try:
            found = prepared.with_lists(self._arguments.unnoted) if isinstance(prepared, Program) else prepared
            return None if found is None else self._planned_anew(found)
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
        return replace(prepared, plan=self._planned(prepared.bound, prepared.wanted, there, prepared.plan))

    def planned(self, prepared: Prepared | Program) -> Prepared | Program | None:
        """Return a query with plans over the data of now, else as it was prepared; None as of :meth:`replanned`."""
        return self.replanned(prepared) if isinstance(prepared, Program) else self._planned_anew(prepared)

    def _planned_anew(self, prepared: Prepared | Program) -> Prepared | Program | None:
        """Return a query with plans over the data of now; None where its SQL is of another state and may be asked."""
        if isinstance(prepared, Program) or prepared.plan is not None or not prepared.gathers:
            return self.among(prepared, {})
        with self._snapshot.graph.watched(self.new_control().check):
            pattern = self._pattern(prepared.bound, prepared.wanted)
            candidates = pattern.vertices[0].candidates
            if candidates is None or len(candidates) > _HANDFUL:
                return None
            return replace(prepared, plan=self._made(pattern, prepared.bound, prepared.wanted))

    def _replanned(self, step: AnyStep, there: Mapping[str, Ids]) -> AnyStep:
        if isinstance(step, Searched):
            return step.with_ends(lambda bound, needs: self._pattern(bound, needs, there).vertices[0].candidates)
        if not isinstance(step, Step):
            return step
        pattern = self._pattern(step.bound, step.needs, there)
        plan = None if step.given else self._made(pattern, step.bound, step.needs, step.plan)
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
        late, properties = projection.late, self._snapshot.properties
        if late is not None:
            # Properties that are no arrays in memory are looked up for a few rows, and how many there are is known now.
            rows = self._selected(late.sql, late.parameters)
            if not properties.joins(late.properties.values(), len(rows)):
                with self._measuring(LATE):
                    return late.finished(rows, properties)
        return self._selected(projection.sql, projection.parameters)

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

    def _projected(
        self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern, projection: Projection, view: str = BINDINGS
    ) -> arrow.Table:
        """Run a match whose result needs no SQL while its rows are in memory."""
        assert projection.direct is not None
        properties, labels = self._snapshot.properties, labels_of(projection.direct)
        with self._entered(view, self._gathered(plan, needs, bound, view)) as gathered:
            literals = any(direct.kind is not None for direct in projection.direct)
            if gathered is not None and (not literals or self._snapshot.lookup.ready("literals", wanted=len(gathered))):
                rows = gathered.slice(*projection.window)
                if not properties.joins(labels, len(rows)):
                    with self._measuring(RESULT):
                        return project(rows, projection.direct, properties, self._snapshot.lookup)
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
            yield prepared.projection
            return
        if prepared.projection.grouped is not None:
            with self._grouped(prepared.plan, prepared, prepared.projection.grouped) as projection:
                yield projection
            return
        with self._bindings(prepared.plan, prepared.wanted, prepared.bound, beside=prepared.beside):
            yield prepared.projection
