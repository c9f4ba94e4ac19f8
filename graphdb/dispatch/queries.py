"""Pattern queries: prepared once and found again, run as matches with SQL after them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from graphdb.common.config import Executors
from graphdb.common.duckdb.out_of_range import OutOfRange
from graphdb.common.errors import ExecutionError, MemoryLimitError
from graphdb.common.progress import Progress
from graphdb.common.stopping import time_left
from graphdb.execute.choose import choose_executor
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.grammar.walk import walk
from graphdb.plan.executor import Control
from graphdb.procedures.implied import expand_call
from graphdb.relational.match_run import control_of
from graphdb.relational.path_patterns.counts import given_counts
from graphdb.relational.paths.run import PathRun
from graphdb.relational.paths.selected import Selected
from graphdb.relational.program import Joined, Program, Rows, Step
from graphdb.relational.query import Prepared, QueryRun
from graphdb.relational.session.reads import Reads, reads_of, reads_of_clauses
from graphdb.relational.session.state import State
from graphdb.relational.session.versions import Version
from graphdb.results.result import Counted, Result
from graphdb.semantics.check import check
from graphdb.sql.computing import items_within
from graphdb.sql.from_clause import Deleted
from graphdb.sql.udf import running

if TYPE_CHECKING:
    from graphdb.evaluate.compute import Computation
    from graphdb.evaluate.subqueries import Prepare
    from graphdb.pattern.names import Names
    from graphdb.plan.executor import Executor
    from graphdb.relational.projection.relation import Relation
    from graphdb.relational.snapshot import Snapshot
    from graphdb.writing.run import Writing

P = TypeVar("P", bound=Prepared | Program | None)
Made = TypeVar("Made")

_MOST_TEXTS = 1000


class Queries:
    """Runs pattern queries over ``state``, one at a time."""

    def __init__(self, state: State, executors: Executors) -> None:
        self._state = state
        self._executors = executors
        self._executor: Executor | None = None
        self._cancelled = state.cancelled
        self._unasked = Control(cancelled=self._cancelled)
        """Controls repeated counts, one after the other: nobody asks what it learns."""
        self._home = Version(state)
        """What repeated counts are given, which look nothing up."""
        self.progress: Progress | None = None
        """Whom to report to how far the statement is."""
        self._out_of_range: set[str] = set()
        """Texts that came to numbers out of range when they ran without care for it."""

    def read(
        self, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        """Run a query that only reads: as matches, with SQL after them."""
        started = time.perf_counter()

        def read(careful: bool) -> Result:
            with self.new_run(text, arguments, time_left() if careful else timeout, careful=careful) as run:
                return self.result(run, self.prepare(run, query, text, arguments), started)

        try:
            return self.ventured(text, read)
        except MemoryLimitError as error:
            raise _of_lists(error, query, text) from None

    def ventured(self, text: str, run: Callable[[bool], Made]) -> Made:
        """Run a text as if no number were out of range, which is seldom and costs much to exclude; with care if one is.

        Whether a condition that fails was to be tested, what has care finds out.  In a transaction, which DuckDB ends
        with an error, SQL tells of such a number, and does not fail.
        """
        if text not in self._out_of_range:
            told = self._state.connection.callee(OutOfRange)
            told.noted = False
            try:
                made = run(False)
                if not told.noted:
                    return made
            except ExecutionError as error:
                if type(error) is not ExecutionError or not (told.noted or "out of range" in error.message):
                    raise
                if self._state.transactions.inside and self._state.transactions.is_aborted():
                    raise
            if len(self._out_of_range) >= _MOST_TEXTS:
                self._out_of_range.clear()
            self._out_of_range.add(text)
        return run(True)

    def write(self, query: ast.Composite, text: str, arguments: Mapping[str, object], timeout: float | None) -> Result:
        """Run a statement that writes: all of it, or nothing."""
        if not self._state.plans.checked.get(query):
            self.check(query, text)
            self._state.plans.checked.put(query, True)
        return self.writing(query, text, arguments, timeout).run()

    def check(self, query: ast.Query | ast.Composite, text: str, snapshot: Snapshot | None = None) -> None:
        """Raise what is wrong with a query over a state, whichever way it runs; see :mod:`graphdb.semantics`."""
        snapshot = snapshot or self._state.snapshot()
        check(query, snapshot.names, snapshot.procedures, text)

    def writing(
        self, query: ast.Composite, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Writing:
        """Return a statement that writes, ready to run; see :mod:`graphdb.writing`.

        Raises
        ------
        GraphDBError
            Something is wrong with it.
        """
        from graphdb.writing.run import Writing

        def new_run(given: Mapping[str, object], left: float | None, deleted: Deleted | None, careful: bool) -> PathRun:
            return self.new_run(text, given, left, deleted, careful=careful)

        def prepare(
            run: PathRun, query: ast.Query | ast.Composite, start: Relation | None, again: int | None = None
        ) -> Prepared | Program:
            if again is not None:
                return self._prepare_again(run, query, (text, again, arguments))
            if start is None:
                prepared = run.prepare(query)
            else:
                query = ast.Composite((query.clauses,)) if isinstance(query, ast.Query) else query
                prepared = run.prepare_from(query, start)
            return prepared if self._later.found is None else replace(prepared, computing=self._later.found)

        def ventured(run: Callable[[bool], Made]) -> Made:
            return self.ventured(text, run)

        deadline = None if timeout is None else time.monotonic() + timeout

        def new_control() -> Control:
            left = None if deadline is None else deadline - time.monotonic()
            return control_of(left, self._cancelled, self.progress, self._state.budget.bindings)

        return Writing(self._state, query, text, arguments, timeout, new_control, new_run, prepare, ventured)

    def result(self, run: PathRun, prepared: Prepared | Program, started: float) -> Result:
        """Run what was prepared."""
        with running(prepared.computing) as value_of:
            table = run.run(prepared)
        columns = prepared.projection.columns
        return Result(self._state.version(), table, columns, elapsed=time.perf_counter() - started, value_of=value_of)

    def leave_cluster(self) -> None:
        """Close the connection to a cluster, where it is our own."""
        from graphdb.cluster.executor import ClusterExecutor

        if isinstance(self._executor, ClusterExecutor):
            self._executor.close()

    @property
    def executor(self) -> Executor:
        """What runs plans, chosen once."""
        if self._executor is None:
            executors = self._executors
            self._executor = choose_executor(
                "cpu" if executors.cluster is not None else executors.device,
                threads=executors.threads,
                memory_limit=self._state.budget.bindings,
                device_memory=executors.device_memory,
            )
            if executors.cluster is not None:
                from graphdb.cluster.executor import ClusterExecutor

                self._executor = ClusterExecutor(
                    executors.cluster,
                    self._state.path,
                    self._executor,
                    device=executors.device,
                    subclasses=self._state.subclasses,
                    storage=executors.cluster_storage,
                )
        return self._executor

    def new_run(
        self,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        deleted: Deleted | None = None,
        snapshot: Snapshot | None = None,
        *,
        careful: bool = True,
    ) -> PathRun:
        """Return what prepares and runs a query over the present snapshot, or another, with an executor chosen once.

        ``deleted`` is what a statement has deleted of which the query is a part; without ``careful`` it is run by
        :meth:`ventured`.
        """
        if any(type(value) is list for value in arguments.values()):  # its owner may change it while a plan has it
            arguments = {name: [*value] if type(value) is list else value for name, value in arguments.items()}
        run, self._later = self._run(self.executor, text, arguments, timeout, deleted, careful, snapshot=snapshot)
        return run

    @contextmanager
    def apart(self, text: str, snapshot: Snapshot | None = None) -> Iterator[PathRun]:
        """Yield a run within the statement under way, which goes on after it; over a state other than the present."""
        former = getattr(self, "_later", None)
        try:
            with self.new_run(text, {}, time_left(), snapshot=snapshot) as run:
                yield run
        finally:
            if former is not None:
                self._later = former

    def _run(
        self,
        executor: Executor,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        deleted: Deleted | None,
        careful: bool,
        depth: int = 0,
        snapshot: Snapshot | None = None,
    ) -> tuple[PathRun, _Later]:
        """Return what prepares and runs a query, and what makes who computes for it; within ``depth`` others."""

        def prepare(query: ast.Composite, start: Relation) -> tuple[PathRun, Program]:
            run, later = self._run(executor, text, arguments, time_left(), deleted, careful, depth + 1, snapshot)
            return run, replace(run.prepare_from(query, start), computing=later.found)

        snapshot_of = self._state.snapshot if snapshot is None else lambda: snapshot
        later = _Later(self._state, snapshot_of, prepare, text, arguments, deleted)
        inside = not careful and self._state.transactions.inside
        told = self._state.connection.callee(OutOfRange) if inside else None
        run = PathRun(
            replace(snapshot_of(), computing=later, deleted=deleted, careful=careful, told=told),
            executor,
            text,
            arguments,
            bindings_bytes=self._state.budget.bindings,
            threads=self._executors.threads,
            timeout=timeout,
            cancelled=self._cancelled,
            progress=self.progress,
            depth=depth,
        )
        return run, later

    @staticmethod
    def _only_counts(prepared: Prepared | Program) -> bool:
        """Whether a query's result is the number of its plan's matches, and nothing is left to do after the match."""
        if not isinstance(prepared, Prepared) or prepared.plan is None:
            return False
        return prepared.wanted.count_only and prepared.plan.count_only

    def counted_again(self, text: str) -> Result | None:
        """Count the matches of a text that only counts and was prepared before; None for any other.

        Many such counts take a microsecond: whatever else is done here is what they cost.
        """
        found: Prepared | None = self._state.plans.counting(text)
        if found is None or self._executor is None:
            return None
        started = time.perf_counter()
        assert found.plan is not None
        self._unasked.term_seconds.clear()
        count = self._executor.count(found.plan, self._unasked)
        columns = found.projection.columns
        table = Counted(count, len(columns), found.projection.window)
        return Result(self._home, table, columns, elapsed=time.perf_counter() - started)

    def prepare(
        self, run: PathRun, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Prepared | Program:
        """Return the query ready to run: as it was prepared last time, while what it reads of the data stays as it is.

        Raises
        ------
        GraphDBError
            Something is wrong with it.
        """
        plans, place = self._state.plans, query.span.start
        key = (text, _place(run, place), arguments)
        try:
            cached, cacheable = plans.get(*key), True
        except TypeError:  # a list among the arguments
            cached, cacheable = None, False
        if cached is not None:
            if not arguments and self._only_counts(cached.plan) and len(parse_script(text)) == 1:
                plans.put_count(text, cached.plan)  # asked twice, it will be asked again: counted_again finds it
            run.step_plans = cached.steps
            return cached.plan  # type: ignore[no-any-return]
        prepared: Prepared | Program | None = None
        if cacheable and (left := plans.unplanned(*key)) is not None:
            prepared = run.planned(left)
            if self._later.found is not None:
                prepared = None
        elif arguments and (general := plans.general(*key, given_counts(query))) is not None:
            if isinstance(general, Selected):
                if (found := run.for_arguments(general)) is not None:
                    return found
            else:
                prepared = run.replanned(general)
                if self._later.found is not None:  # Python computes something for these values
                    prepared = None
                elif prepared is not None and run.is_stale(general):  # others are planned by what is of this state
                    self._put_general(query, key, prepared, text)
        if prepared is None:
            prepared = self.prepare_anew(run, query, text, arguments)
            if _computes_window(query):
                return prepared
            is_general = prepared.given is not None if isinstance(prepared, Selected) else run.is_general(prepared)
            if arguments and is_general:
                self._put_general(query, key, prepared, text)
        if cacheable:
            depends = self._depends(prepared, query, arguments, text)
            run.step_plans = plans.put(*key, prepared, _own_bytes(prepared), depends)
        return prepared

    def _put_general(
        self,
        query: ast.Query | ast.Composite,
        key: tuple[str, int, Mapping[str, object]],
        prepared: Prepared | Program,
        text: str,
    ) -> None:
        """Cache a query that is right for other values of its arguments, too."""
        depends = self._depends(prepared, query, key[2], text)
        general = prepared.unplanned() if isinstance(prepared, Program) and prepared.listed else prepared
        self._state.plans.put_general(*key, given_counts(query), general, _own_bytes(prepared), depends)

    def _prepare_again(
        self, run: PathRun, query: ast.Query | ast.Composite, key: tuple[str, int, Mapping[str, object]]
    ) -> Prepared | Program:
        """Return a query of a statement that writes, ready to run: bound and compiled once for all values."""
        (text, again, arguments), plans, counts = key, self._state.plans, given_counts(query)
        key = text, _place(run, again), arguments
        general = plans.general(*key, counts)
        prepared = None if general is None or isinstance(general, Selected) else run.replanned(general)
        if prepared is None or self._later.found is not None:
            prepared = self._with_computing(lambda: run.prepare(query))
            if not isinstance(prepared, Selected) and run.is_general(prepared):
                depends = self._depends(prepared, query, arguments, text)
                general = prepared.unplanned() if isinstance(prepared, Program) and prepared.listed else prepared
                plans.put_general(*key, counts, general, _own_bytes(prepared), depends)
        return prepared

    def _depends(
        self,
        prepared: Prepared | Program,
        query: ast.Query | ast.Composite,
        arguments: Mapping[str, object],
        text: str,
    ) -> Callable[[], Reads | None]:
        """Return what finds out what of the data a query depends on."""
        snapshot = self._state.snapshot()
        if isinstance(prepared, Program):
            plain = all(isinstance(step, Step | Rows | Joined) for step in prepared.steps)
            if prepared.computing is not None or not plain:
                return lambda: None
            bounds, type_label = [step.bound for step in prepared.matches], snapshot.store.type_label
            return partial(reads_of_clauses, query, bounds, snapshot.names, type_label, text, prepared.unplanned())
        of_one_pattern = type(prepared) is Prepared and prepared.plan is not None and prepared.computing is None
        if not of_one_pattern or not isinstance(prepared, Prepared) or not isinstance(query, ast.Query):
            return lambda: None
        return partial(_reads, query, prepared, snapshot.names, snapshot.store.type_label, arguments, text)

    def prepare_anew(
        self, run: QueryRun, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Prepared | Program:
        """Return the query ready to run, whatever was prepared before; raises as :meth:`prepare` does."""
        self.check(query, text, run.snapshot)
        return self._with_computing(lambda: run.prepare(query))

    def project_anew(self, run: QueryRun, query: ast.Query) -> Prepared | None:
        """Return what follows the matches of a query, as :meth:`QueryRun.prepare_projection` does."""
        return self._with_computing(lambda: run.prepare_projection(query))

    def _with_computing(self, prepare: Callable[[], P]) -> P:
        """Prepare, with who computes what SQL does not express."""
        try:
            prepared = prepare()
        except ExecutionError as error:  # of a condition that is tested before the match
            raise error if self._later.found is None else self._later.found.own(error) from None
        if self._later.found is None or prepared is None:
            return prepared
        return replace(prepared, computing=self._later.found)

    @contextmanager
    def calling(
        self, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Iterator[ast.Query | ast.Composite]:
        """Yield a query as it is to run: its calls of procedures have all that they need, and are made once."""
        procedures = self._state.procedures
        with procedures.statement():
            yield expand_call(query, procedures, text, arguments) if isinstance(query, ast.Composite) else query


class _Later:
    """Makes what computes a statement's expressions in Python, when the first of them is met."""

    def __init__(
        self,
        state: State,
        snapshot_of: Callable[[], Snapshot],
        prepare: Prepare,
        text: str,
        arguments: Mapping[str, object],
        deleted: Deleted | None,
    ) -> None:
        self._of = state, snapshot_of, prepare, text, arguments
        self._deleted = deleted
        self.found: Computation | None = None

    def __call__(self) -> Computation:
        if self.found is None:
            from graphdb.evaluate.compute import Computation
            from graphdb.evaluate.context import Context
            from graphdb.evaluate.memory import MemoryWatch

            state, snapshot_of, prepare, text, arguments = self._of
            memory = MemoryWatch(state.budget)
            context = Context(snapshot_of, state.forget, prepare, text, arguments, Control, memory)
            self.found = Computation(context, items_within(state.budget.duckdb))
            if self._deleted is not None:
                context.view.deleted.update(self._deleted.elements)
        return self.found


def _place(run: PathRun, place: int) -> int:
    """Return a place in the text by which plans are known: one without care is none with it, or where errors are told.

    It is not negative for queries of their own, and negative for those of statements that write.
    """
    mode = 1 if run.snapshot.careful else 0 if run.snapshot.told is None else 2
    return 3 * place + mode


def _computes_window(query: ast.Query | ast.Composite) -> bool:
    """Whether a SKIP or LIMIT calls functions, whose values another run may not have."""
    if isinstance(query, ast.Query):
        if query.returns.skip is None and query.returns.limit is None:
            return False
        windows: list[object] = [query.returns.skip, query.returns.limit]
    else:
        returns = [part for part in walk(query) if isinstance(part, ast.ReturnClause)]
        windows = [window for each in returns for window in (each.skip, each.limit)]
    return any(isinstance(part, ast.FunctionCall) for part in walk(tuple(windows)))


def _reads(
    query: ast.Query,
    prepared: Prepared,
    names: Names,
    type_label: int | None,
    arguments: Mapping[str, object],
    text: str,
) -> Reads | None:
    """Return what of the data a query of one pattern depends on."""
    unplanned = replace(prepared, plan=None) if prepared.wanted.count_only or prepared.gathers else None
    return reads_of(query, prepared.bound, names, type_label, arguments, text, unplanned)


def _own_bytes(prepared: Prepared | Program) -> int:
    """Return what the plans of a query hold of memory."""
    if isinstance(prepared, Prepared):
        return 0 if prepared.plan is None else prepared.plan.own_bytes
    return prepared.own_bytes


def _of_lists(error: MemoryLimitError, query: ast.Query | ast.Composite, text: str) -> MemoryLimitError:
    """Return the error of a query that gathers lists as one that says so: nothing of these is spilled to disk."""
    calls = [part for part in walk(query) if isinstance(part, ast.FunctionCall | ast.Subquery)]
    found = next((part for part in calls if _names(part) == "collect"), None)
    if found is None or error.line is not None:
        return error
    hint = "lists that collect() gathers are in memory as they are: raise memory_limit, or gather, or group, fewer"
    return MemoryLimitError(error.message, text=text, position=found.span.start, hint=hint)


def _names(part: ast.FunctionCall | ast.Subquery) -> str:
    return part.name.lower() if isinstance(part, ast.FunctionCall) else part.kind
