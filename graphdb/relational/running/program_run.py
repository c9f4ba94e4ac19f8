"""Programs under way: their steps in order, each shown to SQL while something after it reads what it made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.pattern.graph import PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.paths import Weighted
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.costed_edges import FoundAlong, FoundEdges
from graphdb.relational.match_planner import restricted
from graphdb.relational.match_run import MatchRun
from graphdb.relational.profile import planning_of
from graphdb.relational.program import AnyStep, Applied, Called, Computed, Given, Joined, Program, Rows, Searched, Step
from graphdb.relational.running.array_joins import joined, product_of
from graphdb.relational.running.given import given_vertices
from graphdb.relational.running.materialized import joined_by_sql, materialized
from graphdb.relational.session.plan_cache import StepPlans
from graphdb.relational.vectors.algebra import Rows as Vectors
from graphdb.relational.vectors.products import Product
from graphdb.relational.vectors.run import most_computed, run
from graphdb.storage.arrays.sorted_sets import without

Ids = NDArray[np.int64]


class ProgramRun(MatchRun):
    """Runs the steps of programs; see :class:`~graphdb.relational.match_run.MatchRun` for its parameters."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.controls: list[tuple[Step | Searched, PhysicalPlan | None, Control | None]] = []
        """What each match of a program reported, once it ran."""
        self._known: dict[str, Weighted | FoundAlong] = {}
        """The edges that paths go along, by their steps, where they were found before."""
        self._edges: list[FoundEdges] = []
        """The edges that they go along, of which only the costs are not known."""
        self._products: dict[str, Product] = {}
        """All pairs of rows and bindings that nothing but conditions joins, by their views."""
        self.step_plans = StepPlans()
        """The plans of steps that start from rows: those that the plan cache has for the query, if it has it."""

    def _vectorized(self, rows: Vectors) -> arrow.Table | None:
        """Make rows by operations on columns; None where SQL has to."""
        check, threads = self.new_control().check, self._threads
        most = most_computed(threads, self._bindings_bytes)
        return run(rows, self._tables, self._snapshot.properties, check, threads, most=most, products=self._products)

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

    def _most_rows(self, shares: int) -> int:
        """Return how many bytes in memory the rows of a step may take, one of so many that have rows.

        Half of the memory for bindings is shared out equally; where most steps have few rows, one with many may take
        half of what the others have left of that.  So all together take no more than all of it.
        """
        half, taken = self._bindings_bytes // 2, sum(table.nbytes for table in self._tables.values())
        return max(half // shares, (half - taken) // 2)

    @contextmanager
    def _shown_match(self, step: Step, shares: int) -> Iterator[None]:
        """Run a match, and show its bindings to SQL."""
        plan = step.plan or self._plan_from(step)
        how = {"numbered": step.numbered, "shown": step.shown}
        most = self._most_rows(shares)
        with self._bindings(plan, step.needs, step.bound, step.view, most, beside=step.beside, **how):
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
        most, made = self._most_rows(shares), None
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
        found = joined(step, self._tables, self._most_rows(shares))
        if found is None and (product := product_of(step, self._tables)) is not None:
            with self._shown_to_sql_when_asked(step):
                self._products[step.view] = product
                yield
                self._products.pop(step.view, None)
            return
        if found is None:
            with joined_by_sql(self._snapshot, step, self._tables, self._left()):
                yield
            return
        self._tables[step.view] = found = self._with_beside(found, step.beside)
        with self._visible(found, step.view):
            yield
        self._tables.pop(step.view, None)

    @contextmanager
    def _shown_to_sql_when_asked(self, step: Joined) -> Iterator[None]:
        """Show joined rows to SQL that reads them: columns in memory may be all that does."""
        promised = self._snapshot.connection.promised
        with ExitStack() as stack:

            def show() -> bool:
                stack.enter_context(joined_by_sql(self._snapshot, step, self._tables, self._left()))
                return True

            promised.add(step.view, show)
            if not promised.delayed:
                promised.make(step.view)
            try:
                yield
            finally:
                promised.forget(step.view)

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
        return replace(vertex, candidates=without(among, ids))


def _is_lazy(step: AnyStep) -> bool:
    """Whether a step that made no table leaves it to SQL to ask for its rows, or has none but their number."""
    if isinstance(step, Joined):
        return not step.numbered
    return isinstance(step, Step) and (step.needs.count_only or step.needs.nothing or not step.shown)
