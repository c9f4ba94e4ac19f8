"""What a statement that writes reads: the rows of its stages, as relational programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from graphdb.common.arrow import numbers
from graphdb.common.caches import ByIdentity
from graphdb.common.errors import (
    BindError,
    ExecutionError,
    MemoryLimitError,
    NotSupportedError,
    QueryTimeout,
    StorageError,
    TypeMismatchError,
    placed,
)
from graphdb.common.values.types import ANY, Base
from graphdb.evaluate.columns.codec import Keys
from graphdb.evaluate.context import Context, Row
from graphdb.evaluate.kept import CompiledValues
from graphdb.evaluate.memory import MemoryWatch
from graphdb.evaluate.values import Edge, Vertex
from graphdb.grammar import syntax as ast
from graphdb.plan.executor import Control
from graphdb.relational.explain import Explanation
from graphdb.relational.paths.run import PathRun
from graphdb.relational.profile import Profile
from graphdb.relational.program import Joined, Program, Step
from graphdb.relational.program import Rows as RowsStep
from graphdb.relational.projection.relation import Relation, Source
from graphdb.relational.query import Prepared
from graphdb.relational.session.state import State
from graphdb.results.result import Counted
from graphdb.sql.from_clause import Deleted
from graphdb.sql.udf import running
from graphdb.sql.value import column_at
from graphdb.writing.by_row.row_reader import RowReader
from graphdb.writing.by_row.row_writer import RowWriter
from graphdb.writing.by_set.change import Change
from graphdb.writing.by_set.create import Create
from graphdb.writing.by_set.delete import Delete
from graphdb.writing.by_set.merge import Merge
from graphdb.writing.items import RowByRow
from graphdb.writing.literals import of_keys
from graphdb.writing.materialized import Materialized, Tables
from graphdb.writing.rows import Rows, alone, of_arrow, of_values
from graphdb.writing.stages import Stage, stages_of_parts, with_maps
from graphdb.writing.work import Work

NewRun: TypeAlias = Callable[[Mapping[str, object], float | None, Deleted | None, bool], PathRun]
"""Makes what runs one reading query, with these parameters, within so many seconds, after what was deleted, and with or
without care for numbers out of range."""

LEAST = 256
"""Rows that are worth writing by sets: for fewer, its SQL takes longer to plan than they take one by one."""


Made = TypeVar("Made")


class Ventured(Protocol):
    """Runs something without care for numbers out of range, and once more with care where one is."""

    def __call__(self, run: Callable[[bool], Made], /) -> Made:
        """Return what it makes; it is told whether to have care."""


class Prepare(Protocol):
    """Prepares a reading query, which may start from rows."""

    def __call__(
        self, run: PathRun, query: ast.Query | ast.Composite, start: Relation | None, again: int | None = None
    ) -> Prepared | Program:
        """Return it; where a number of its own in the text is given, it may be what was prepared for other values."""


Clause: TypeAlias = Create | Merge | Change | Delete

CLAUSES: dict[type, type[Create] | type[Merge] | type[Change] | type[Delete]] = {
    ast.CreateClause: Create,
    ast.MergeClause: Merge,
    ast.SetClause: Change,
    ast.RemoveClause: Change,
    ast.DeleteClause: Delete,
}
"""Who applies each writing clause by sets: ``check`` says by types whether it can, ``refuse`` by the rows."""

SPENT = (QueryTimeout, MemoryLimitError, StorageError)
"""Errors of what there is no more of: nothing else is tried."""

TOOK = "  took"
"""What the line begins with that says how long a clause took."""


class Reading:
    """Reads for one statement."""

    _work: Work
    _writer: RowWriter
    _reader: RowReader

    def __init__(
        self,
        state: State,
        query: ast.Composite,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        new_control: Callable[[], Control],
        new_run: NewRun,
        prepare: Prepare,
        ventured: Ventured,
    ) -> None:
        self._state = state
        self._ventured = ventured
        self._text = text
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._new_run = new_run
        self._prepare = prepare
        state.snapshot()  # before a transaction begins
        memory = MemoryWatch(state.budget)
        self._query, self._arguments = with_maps(query, arguments)
        known: CompiledValues | str | None = state.plans.compiled.take(self._query)
        self._came_before = known is not None
        kept = known if isinstance(known, CompiledValues) else None
        if kept is None or kept.context.text != text:
            context = Context(
                state.snapshot, state.forget, self._prepare_within, text, self._arguments, new_control, memory
            )
            kept = CompiledValues(context)
        else:
            kept.context.begin_again(self._prepare_within, self._arguments, new_control, memory)
        self._values, self._context = kept, kept.context
        self.parts = stages_of_parts(self._query)
        self._tables = Tables(state.connection)
        self.row_by_row: list[str] = []
        """Why clauses went row by row, of those that did."""
        self._gone: Deleted | None = None
        """What was deleted so far, as SQL knows it."""
        self._begin: Callable[[], None] | None = None
        """Begins the transaction; None once that is done."""
        self._keys: Keys = {}
        """The values that SQL knows by a key."""
        self._notes: dict[int, list[str]] | None = None
        self._profiled = False
        """Whether what runs is measured, for PROFILE."""
        """How the rows of each stage were read, and how its clause was applied, where somebody wants to know."""

    def _prepare_within(self, query: ast.Composite, start: Relation) -> tuple[PathRun, Program]:
        run = self._run()
        prepared = self._prepare(run, query, start)
        assert isinstance(prepared, Program)
        return run, prepared

    def _left(self) -> float | None:
        """Return the seconds that are left."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise QueryTimeout("the statement ran longer than its timeout")
        return left

    def _are_many(self, stage: Stage, start: Rows) -> bool:
        """Whether the rows of a stage are worth writing by sets, by what is known before they are read."""
        if not is_small(start.count):
            return True
        matches = any(isinstance(clause, ast.MatchClause) for clause in stage.reads)
        items = self._items(stage)
        return items == inf or (not matches and not is_small(start.count * items))

    def _items(self, stage: Stage) -> float:
        """Return how many rows the lists of a stage make of one; infinity where only a run tells."""
        rows = 1.0
        for clause in stage.reads:
            if isinstance(clause, ast.UnwindClause):
                source = clause.source
                given = self._arguments.get(source.name) if isinstance(source, ast.Parameter) else None
                items = source.items if isinstance(source, ast.ListLiteral) else getattr(source, "value", given)
                rows *= len(items) if isinstance(items, (list, tuple)) else inf
            elif isinstance(clause, ast.ProcedureClause) and clause.yields is not None:
                return inf
        return rows

    def _read_rows(self, stage: Stage, start: Rows, around: Sequence[Stage], each: float | None = None) -> Rows | None:
        """Return the rows that a stage's clause is applied to row by row; None where too many are expected.

        That is asked where ``each`` says how many there are for each row that the query is expected to have.
        """
        if not stage.reads and not stage.asked:
            return start
        if is_small(start.count) and start.types is not None:
            found = self._reader.read(stage, start.listed, start.types, stay=_onward(stage, around).stays)
            if found is not None:
                if self._notes is not None:
                    first, last = stage.reads[0].span.start, stage.reads[-1].span.end
                    self._note(stage, f"found by keys, row by row: {' '.join(self._text[first:last].split())}")
                rows, types = found
                return alone(rows) if ANY in types.values() else of_values(self._tables, rows, types)
        return self._read(stage.query(by_sets=False), self._relation(start), stage, each)

    def _rows_for_rows(self, stage: Stage, start: Rows, around: Sequence[Stage]) -> Rows:
        rows = self._read_rows(stage, start, around)
        assert rows is not None
        return rows

    def _unwound(self, stage: Stage, start: Rows, around: Sequence[Stage]) -> Rows | None:
        """Return the rows of an UNWIND of few items, of which nothing is asked but by what goes row by row."""
        onward = _onward(stage, around)
        if not onward.in_python or (clause := stage.unwound) is None:
            return None
        items = self._items(stage)
        if not start.in_python and items < inf and not is_small(items):
            return None
        source, plain = self._writer.value(clause.source), isinstance(clause.source, ast.Variable | ast.Parameter)
        rows: list[Row] = []
        for row in start.listed:
            if not plain:
                self._context.view.expect(row.values())
            found = source(row)
            for item in found if isinstance(found, list) else () if found is None else (found,):
                rows.append({**row, clause.variable.name: item})
        if not is_small(len(rows)) and not start.in_python:
            return None
        return alone(rows)

    def _relation(self, rows: Rows) -> Relation | None:
        """Return rows for SQL to start from; None for the one row without names."""
        self._writer.flush()
        return None if rows.is_unit else rows.materialized.relation

    def _read(
        self,
        query: ast.Query | ast.Composite,
        start: Relation | None,
        stage: Stage | None = None,
        each: float | None = None,
        given: Mapping[str, object] | None = None,
    ) -> Rows | None:
        """Run a query, which may start from rows; its rows, or None where too many are expected (:meth:`_read_rows`).

        ``given`` are parameters beside those of the statement.
        """

        def read(careful: bool) -> Rows | None:
            with self._run(given, careful=careful) as run:
                prepared = self._prepare(run, query, start, self._place_of(stage, start, given))
                if each is not None and not is_small(each * expected(prepared)):
                    return None
                with running(prepared.computing, self._keys):
                    found = run.run(prepared)
                self._note_read(stage, run, prepared, found.num_rows)
            rows = found.table() if isinstance(found, Counted) else found
            return of_arrow(self._tables, rows, prepared.projection.columns, self._keys)

        return self._ventured(read)

    def _place_of(self, stage: Stage | None, start: Relation | None, given: Mapping[str, object] | None) -> int | None:
        """Return the number of a stage's query in the text; None where more than the text and arguments say what it is.

        It is negative: statements have those from 0 on.
        """
        if stage is None or not stage.reads or start is not None or given is not None or self._notes is not None:
            return None
        if self._context.view.deleted or any(isinstance(value, dict) for value in self._arguments.values()):
            return None
        return -1 - stage.reads[0].span.start

    def _read_for_sets(self, stage: Stage, query: ast.Query | ast.Composite, start: Rows) -> Materialized:
        """Run the reading of a stage whose clause is to be applied by sets; its rows.

        Raises
        ------
        RowByRow
            That cannot be: by the types of the values, or because SQL does not know one of the expressions.
        """
        try:
            return self._materialize(query, self._relation(start), stage)
        except (NotSupportedError, TypeMismatchError, BindError) as error:
            raise RowByRow(error.message) from None
        except ExecutionError as error:
            lost = self._begin is None or self._state.transactions.by_user  # DuckDB has aborted the transaction
            if lost or isinstance(error, SPENT) or placed(error, self._text).line is not None:
                raise
            raise RowByRow(error.message) from None  # its place is known where Python computes it

    def _materialize(
        self, query: ast.Query | ast.Composite, start: Relation | None, stage: Stage | None = None
    ) -> Materialized:
        """Run a query, which may start from rows; its rows as a table, for a stage or for what that looks up."""
        return self._ventured(lambda careful: self._materialize_with(careful, query, start, stage))

    def _materialize_with(
        self, careful: bool, query: ast.Query | ast.Composite, start: Relation | None, stage: Stage | None
    ) -> Materialized:
        with self._run(careful=careful) as run:
            prepared = self._prepare(run, query, start)
            columns = prepared.projection.columns
            values = {c.name: column_at(f"c{i}", c) for i, c in enumerate(columns) if c.name != "#"}
            if stage is not None:
                CLAUSES[type(stage.write)].check(stage, values)
            with (
                running(prepared.computing, self._keys),
                run.bindings(prepared) as projection,
                self._state.connection.guard(self._left()),
            ):
                sql = f"SELECT row_number() OVER () - 1 AS at, q.* FROM ({projection.sql}) q"
                source = self._tables.rows(sql, projection.parameters)
            computed = [
                v.column for n, v in values.items() if n.startswith("#") and v.type.base is Base.ANY and v.column
            ]
            if computed:
                source = self._as_literals(source, computed)
            table = Materialized(source, self._tables.count(source), values)
            self._note_read(stage, run, prepared, table.count)
        return table

    def _as_literals(self, source: Source, columns: list[str]) -> Source:
        """Put literals in the place of values that SQL knows by a key; return the new table."""
        connection, joins, chosen = self._state.connection, "", []
        for i, name in enumerate(columns):
            keys = connection.rows(f"SELECT DISTINCT {name} FROM {source} WHERE {name} IS NOT NULL")
            with connection.view(view := connection.temporary(), of_keys([key for (key,) in keys], self._keys)):
                table = self._tables.make(f"FROM {view}")
            joins += f" LEFT JOIN {table} t{i} ON t{i}.key = q.{name}"
            literal = f"struct_pack(lexical := t{i}.lexical, datatype := t{i}.datatype)"
            chosen.append(f"CASE WHEN t{i}.key IS NOT NULL THEN {literal} END AS {name}")
        return self._tables.rows(f"SELECT q.* REPLACE ({', '.join(chosen)}) FROM {source} q{joins} ORDER BY q.at ASC")

    def _run(self, given: Mapping[str, object] | None = None, *, careful: bool = True) -> PathRun:
        """Return what runs a query; ``given`` are parameters beside those of the statement."""
        run = self._new_run({**self._arguments, **(given or {})}, self._left(), self._deleted(), careful)
        if self._profiled:
            run.profile = Profile(run.connection)
        return run

    def _deleted(self) -> Deleted | None:
        """Return what was deleted so far."""
        elements = self._context.view.deleted
        if not elements:
            return None
        if self._gone is None or len(self._gone.elements) != len(elements):
            vertices = [each.id for each in elements if isinstance(each, Vertex)]
            edges = [each for each in elements if isinstance(each, Edge)]
            parts = ("label", "start", "end", "ordinal")
            columns = {part: np.array([getattr(edge, part) for edge in edges], np.int64) for part in parts}
            self._gone = Deleted(
                frozenset(elements),
                self._tables.of_arrow({"id": numbers(np.array(vertices, np.int64))}).sql,
                self._tables.of_arrow({part: numbers(found) for part, found in columns.items()}).sql,
            )
        return self._gone

    def _note(self, stage: Stage, line: str) -> None:
        if self._notes is not None:
            self._notes.setdefault(id(stage), []).append(f"  {line}")

    def _note_time(self, stage: Stage, rows: Rows, started: float) -> None:
        if self._profiled:
            took = (time.perf_counter() - started) * 1000
            self._note(stage, f"{TOOK.strip()} {took:,.1f} ms with what it reads; {rows.count:,} rows")

    def _note_read(self, stage: Stage | None, run: PathRun, prepared: Prepared | Program, count: int | None) -> None:
        if self._notes is not None and stage is not None:
            rows = [] if count is None else [f"{count:,} rows"]
            self._notes.setdefault(id(stage), [])[:0] = [*described(run, prepared, self._state), *rows]


def is_small(rows: float) -> bool:
    """Whether rows are too few to be worth writing by sets."""
    return rows < LEAST


def _in_python(stage: Stage) -> bool:
    """Whether a stage can go on from rows that are Python's alone: it reads nothing that SQL would have to find."""
    if stage.write is None:
        return stage.returned is not None
    if stage.asked or not all(map(_in_python, stage.inner)):
        return False
    return not stage.reads or stage.unwound is not None


@dataclass(frozen=True, slots=True)
class _Onward:
    """What the text says of the rows of a stage among others."""

    around: Sequence[Stage]
    in_python: bool
    """Whether it and those after it can go on from rows that are Python's alone."""
    stays: bool
    """Whether nothing is asked of its rows but by what goes row by row in Python."""


_ONWARD: ByIdentity[_Onward] = ByIdentity(256)
"""What :func:`_goes_on` says of stages."""


def _onward(stage: Stage, around: Sequence[Stage]) -> _Onward:
    """Return what the text says of the rows of a stage: found once for the same others around it."""
    found = _ONWARD.get(stage)
    return _ONWARD.put(stage, _goes_on(stage, around)) if found is None or found.around is not around else found


def _goes_on(stage: Stage, around: Sequence[Stage]) -> _Onward:
    at = next((i for i, each in enumerate(around) if each is stage), None)
    if at is None:
        return _Onward(around, False, False)
    stays = not isinstance(stage.write, ast.MergeClause) and all(map(_in_python, (*stage.inner, *around[at + 1 :])))
    return _Onward(around, all(map(_in_python, around[at:])), stays)


def expected(prepared: Prepared | Program) -> float:
    """Return how many rows a query that starts from nothing is expected to have; infinity where only a run tells.

    Of a match whose vertices the rows give, one for each row: what they give is few until the run says otherwise.
    """
    rows = 1.0
    for step in prepared.steps if isinstance(prepared, Program) else (prepared,):
        if isinstance(step, (RowsStep, Joined)) or (isinstance(step, Step) and step.given):
            continue
        plan = step.plan if isinstance(step, (Step, Prepared)) else None
        if plan is not None:
            rows *= max(plan.steps[-1].estimate, 1.0)
        elif not isinstance(step, Prepared):
            return inf
    return rows


def described(run: PathRun, prepared: Prepared | Program, state: State) -> list[str]:
    """Return how rows are read, and what reading them took where they were."""
    names = state.snapshot().names
    if run.profile is not None:
        return list(Explanation.of_run(prepared, names, run).lines)
    return list(Explanation.of_reading(prepared, names, run.executor.describe).lines)
