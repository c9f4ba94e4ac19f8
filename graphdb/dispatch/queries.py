"""Pattern queries: prepared once and found again, run as matches with SQL after them, by sets, or interpreted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphdb.common.errors import (
    BindError,
    ExecutionError,
    GraphDBError,
    NotSupportedError,
)
from graphdb.common.progress import Progress
from graphdb.execute.choose import choose_executor
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.grammar.walk import walk
from graphdb.plan.executor import Control
from graphdb.procedures.implied import expand_call
from graphdb.relational.path_counts import given_counts
from graphdb.relational.paths.run import PathRun
from graphdb.relational.paths.selected import Selected
from graphdb.relational.program import Program
from graphdb.relational.query import Prepared, QueryRun
from graphdb.relational.session.state import State
from graphdb.relational.session.versions import Version
from graphdb.results.result import Counted, Result
from graphdb.semantics.check import check
from graphdb.sql.computing import items_within
from graphdb.sql.udf import running

if TYPE_CHECKING:
    from graphdb.interpret.compute import Computation
    from graphdb.interpret.result import ValuesResult
    from graphdb.plan.executor import Executor
    from graphdb.relational.projection.relation import Relation
    from graphdb.writing.run import Writing


@dataclass(frozen=True, slots=True)
class Refused:
    """A query that the interpreter has to run, because SQL cannot do it."""

    error: GraphDBError

    @property
    def reason(self) -> str:
        """What SQL cannot do."""
        return self.error.message


class Queries:
    """Runs pattern queries over ``state``, one at a time."""

    def __init__(self, state: State, device: str, threads: int) -> None:
        self._state = state
        self._device = device
        self._threads = threads
        self._executor: Executor | None = None
        self._cancelled = state.cancelled
        self._unasked = Control(cancelled=self._cancelled)
        """Controls repeated counts, one after the other: nobody asks what it learns."""
        self._home = Version(state)
        """What repeated counts are given, which look nothing up."""
        self.progress: Progress | None = None
        """Whom to report to how far the statement is."""

    def read(
        self, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object], timeout: float | None
    ) -> Result:
        """Run a query that only reads: as matches with SQL after them, or what SQL does not know by the interpreter."""
        started = time.perf_counter()
        with self.new_run(text, arguments, timeout) as run:
            prepared = self.prepare(run, query, text, arguments)
            if not isinstance(prepared, Refused):
                return self.result(run, prepared, started)
        return self.interpreted(query, text, arguments, timeout)

    def write(self, query: ast.Composite, text: str, arguments: Mapping[str, object], timeout: float | None) -> Result:
        """Run a statement that writes: all of it, or nothing."""
        self.check(query, text)
        return self.writing(query, text, arguments, timeout).run()

    def check(self, query: ast.Query | ast.Composite, text: str) -> None:
        """Raise what is wrong with a query, whichever way it runs; see :mod:`graphdb.semantics`."""
        snapshot = self._state.snapshot()
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

        def new_run(given: Mapping[str, object], left: float | None) -> PathRun:
            return self.new_run(text, given, left)

        def prepare(run: PathRun, query: ast.Query | ast.Composite, start: Relation | None) -> Prepared | Program:
            if start is None:
                prepared = run.prepare(query)
            else:
                query = ast.Composite((query.clauses,)) if isinstance(query, ast.Query) else query
                prepared = run.prepare_from(query, start)
            return prepared if self._later.found is None else replace(prepared, computing=self._later.found)

        return Writing(self._state, query, text, arguments, timeout, new_run, prepare)

    def result(self, run: PathRun, prepared: Prepared | Program, started: float) -> Result:
        """Run what was prepared."""
        with running(prepared.computing) as value_of:
            table = run.run(prepared)
        columns = prepared.shaped.columns
        return Result(self._state.version(), table, columns, elapsed=time.perf_counter() - started, value_of=value_of)

    def interpreted(
        self,
        query: ast.Query | ast.Composite,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
    ) -> ValuesResult:
        """Run a query by the interpreter; see :mod:`graphdb.interpret`."""
        from graphdb.interpret.statement import interpreted

        run = self.new_run(text, arguments, timeout)
        return interpreted(self._state, run.executor, query, text, arguments, run.new_control)

    def new_run(self, text: str, arguments: Mapping[str, object], timeout: float | None) -> PathRun:
        """Return what prepares and runs a query over the present snapshot, with an executor chosen once."""
        executor = self._executor
        if executor is None:
            executor = choose_executor(self._device, threads=self._threads, memory_limit=self._state.budget.bindings)
            self._executor = executor
        self._later = later = _Later(self._state, executor, text, arguments)
        return PathRun(
            replace(self._state.snapshot(), computing=later),
            executor,
            text,
            arguments,
            bindings_bytes=self._state.budget.bindings,
            threads=self._threads,
            timeout=timeout,
            cancelled=self._cancelled,
            progress=self.progress,
        )

    @staticmethod
    def _only_counts(prepared: Prepared | Program | Refused) -> bool:
        """Whether a query's result is the number of its plan's matches, and nothing is left to do after the match."""
        if not isinstance(prepared, Prepared) or prepared.plan is None or not prepared.reusable:
            return False
        return prepared.wanted.count_only and prepared.plan.count_only

    def counted_again(self, text: str) -> Result | None:
        """Count the matches of a text that only counts and was prepared before; None for any other.

        Many such counts take a microsecond: whatever else is done here is what they cost.
        """
        found: Prepared | None = self._state.prepared.get(text)
        if found is None or self._executor is None:
            return None
        started = time.perf_counter()
        assert found.plan is not None
        self._unasked.term_seconds.clear()
        count = self._executor.count(found.plan, self._unasked)
        columns = found.shaped.columns
        table = Counted(count, len(columns), found.shaped.window)
        return Result(self._home, table, columns, elapsed=time.perf_counter() - started)

    def prepare(
        self, run: PathRun, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Prepared | Program | Refused:
        """Return the query ready to run: as it was prepared last time, while the data stays as it is.

        Raises
        ------
        GraphDBError
            Something is wrong with it.
        """
        key = _key(query, text, arguments)
        try:
            found: Prepared | Program | Refused | None = self._state.prepared.get(key)
        except TypeError:  # a list among the arguments
            return self.prepare_anew(run, query, text, arguments)
        if found is None:
            alike = (text, query.span.start, *given_counts(query), *arguments, *map(type, arguments.values()))
            if arguments and (former := self._state.prepared.get(alike)) is not None:
                assert isinstance(former, Selected)
                if (again := run.again(former)) is not None:
                    return again
            found = self.prepare_anew(run, query, text, arguments)
            if run.complete and (isinstance(found, Refused) or (found.reusable and not _computes_window(query))):
                self._state.prepared.put(key, found, _own_bytes(found))
                if isinstance(found, Selected) and found.given is not None:
                    self._state.prepared.put(alike, found, 0)
        elif self._only_counts(found) and not arguments and len(parse_script(text)) == 1:
            self._state.prepared.put(text, found, 0)  # asked twice, it will be asked again: counted_again finds it
        return found

    def prepare_anew(
        self, run: QueryRun, query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]
    ) -> Prepared | Program | Refused:
        """Return the query ready to run, whatever was prepared before; raises as :meth:`prepare` does."""
        self.check(query, text)
        try:
            prepared = run.prepare(query)
        except ExecutionError as error:  # of a condition that is tested before the match
            raise error if self._later.found is None else self._later.found.own(error) from None
        except NotSupportedError as error:
            return Refused(error)
        except BindError as error:
            if isinstance(query, ast.Query):
                raise
            return Refused(error)
        return prepared if self._later.found is None else replace(prepared, computing=self._later.found)

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

    def __init__(self, state: State, executor: Executor, text: str, arguments: Mapping[str, object]) -> None:
        self._of = state, executor, text, arguments
        self.found: Computation | None = None

    def __call__(self) -> Computation:
        if self.found is None:
            from graphdb.interpret.compute import Computation
            from graphdb.interpret.context import Context
            from graphdb.interpret.memory import MemoryWatch

            state, executor, text, arguments = self._of
            memory = MemoryWatch(state.budget)
            context = Context(state.snapshot, state.forget, executor, text, arguments, Control, memory)
            self.found = Computation(context, items_within(state.budget.duckdb))
        return self.found


def _key(query: ast.Query | ast.Composite, text: str, arguments: Mapping[str, object]) -> tuple[object, ...]:
    """What tells a query with its arguments from all others."""
    if not arguments:
        return text, query.span.start
    # Equal values are not the same argument: 1 is no 1.0, and 0.0 no -0.0.
    values = ((type(value), repr(value) if isinstance(value, float) else value) for value in arguments.values())
    return text, query.span.start, *zip(arguments, values, strict=True)


def _computes_window(query: ast.Query | ast.Composite) -> bool:
    """Whether a SKIP or LIMIT calls functions, whose values another run may not have."""
    if isinstance(query, ast.Query):
        windows: list[object] = [query.returns.skip, query.returns.limit]
    else:
        returns = [part for part in walk(query) if isinstance(part, ast.ReturnClause)]
        windows = [window for each in returns for window in (each.skip, each.limit)]
    return any(isinstance(part, ast.FunctionCall) for part in walk(tuple(windows)))


def _own_bytes(prepared: Prepared | Program | Refused) -> int:
    """Return what the plans of a query hold of memory."""
    if isinstance(prepared, Prepared):
        return 0 if prepared.plan is None else prepared.plan.own_bytes
    if isinstance(prepared, Program):
        return prepared.own_bytes
    return 0
