"""A statement that writes by sets, from its stages to its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from math import inf
from typing import TypeAlias

from graphdb.common.errors import ExecutionError, GraphDBError, NotSupportedError, QueryTimeout
from graphdb.common.values.terms import RDF_TYPE
from graphdb.common.values.types import ANY, Base, sql_type
from graphdb.grammar import syntax as ast
from graphdb.interpret.context import Context
from graphdb.interpret.match import is_looked_up
from graphdb.interpret.naming import Naming
from graphdb.relational.explain import Explanation
from graphdb.relational.paths.run import PathRun
from graphdb.relational.program import Program, Rows, Step
from graphdb.relational.projection.relation import Relation, Source
from graphdb.relational.query import Prepared
from graphdb.relational.session.state import State
from graphdb.results.result import Result
from graphdb.sql.udf import running
from graphdb.sql.value import SqlValue, column
from graphdb.storage.updates.apply import Update, incident
from graphdb.writing.change import Change
from graphdb.writing.create import Create, named
from graphdb.writing.delete import Delete
from graphdb.writing.items import reads_of
from graphdb.writing.kept import Kept, Tables, unheld
from graphdb.writing.literals import always_written, of_keys
from graphdb.writing.merge import MADE, Merge
from graphdb.writing.stages import Stage, WriteClause, creation, is_closed, stages_of, with_maps
from graphdb.writing.work import Work

NewRun: TypeAlias = Callable[[Mapping[str, object], float | None], PathRun]
"""Makes what runs one reading query, with these parameters and within so many seconds."""

LEAST = 64
"""Rows that are worth writing by sets: for fewer, its SQL takes longer to plan than they take one by one."""

Prepare: TypeAlias = Callable[[PathRun, ast.Composite, Relation | None], Prepared | Program]
"""Prepares a reading query, which may start from rows."""

_CLAUSES: dict[type, type[Create] | type[Merge] | type[Change] | type[Delete]] = {
    ast.CreateClause: Create,
    ast.MergeClause: Merge,
    ast.SetClause: Change,
    ast.RemoveClause: Change,
    ast.DeleteClause: Delete,
}
"""Who runs each writing clause: ``check`` refuses by types before anything runs, ``run`` returns the rows."""


class WritesFew(NotSupportedError):
    """A statement is for the interpreter because it is expected to write few rows."""


class Writing:
    """Runs one statement.

    Raises
    ------
    NotSupportedError
        It is for the interpreter; nothing is written then.
    """

    def __init__(
        self,
        state: State,
        query: ast.Composite,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
        new_run: NewRun,
        prepare: Prepare,
    ) -> None:
        self._state = state
        self._text = text
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._new_run = new_run
        self._prepare = prepare
        run = new_run(arguments, timeout)
        self._context = Context(state.snapshot, state.forget, run.executor, text, arguments, run.new_control)
        query, self._arguments = with_maps(query, arguments)
        self.stages = stages_of(query, text)
        self._tables = Tables(state.connection)
        self._told: dict[int, list[str]] | None = None
        """How the rows of each stage were read, where somebody wants to know."""

    def explain(self, profile: bool) -> list[str]:
        """Return what is done in lines, how long it took with ``profile``, which runs it."""
        self._told = {}
        result = self.run() if profile else None
        if result is None:
            try:
                self._explain_stages()
            finally:
                self._tables.drop()
        lines = ["written by sets: what is read runs as plans and SQL, each writing clause as SQL over its rows"]
        for stage in self.stages:
            told = self._told.get(id(stage))
            lines += [f"  {line}" for line in told or ()]
            clauses = (*(stage.reads if told is None else ()), *([stage.write] if stage.write is not None else []))
            if stage.made is None:
                lines += [" ".join(self._text[c.span.start : c.span.end].split()) for c in clauses]
            else:
                lines.append("ON CREATE" if stage.made else "ON MATCH")
            if isinstance(stage.write, ast.SetClause) and reads_of(stage.write, self._text):
                lines.append("  unless a row reads what one before it has set: then the statement is interpreted")
        if result is not None:
            lines += ["", f"{result.elapsed * 1000:,.1f} ms in all; {result.message}"]
        return lines

    def _explain_stages(self, *, sure: bool = False) -> None:
        """Tell how the rows of each stage are read, as far as that is known before those before it have written.

        With ``sure``, refuse stages that may refuse some rows, or are not known yet, but for the first.
        """
        assert self._told is not None
        values: dict[str, SqlValue] = {}
        start: Relation | None = None
        for stage in self.stages:
            try:
                with self._new_run(self._arguments, self._left()) as run:
                    run.left_out = []
                    if stage.write is None:
                        if sure:
                            self._refuse_unsure(stage, values, {})
                        prepared = self._prepare(run, stage.query, start)
                    else:
                        prepared, found = self._prepared(run, stage.query, start, stage)
                        if sure and start is not None:
                            self._refuse_unsure(stage, values, found)
                    self._told[id(stage)] = _explained(run, prepared, self._state)
            except NotSupportedError:
                raise
            except GraphDBError:
                if start is None or sure:
                    raise
                self._told[id(stage)] = ["planned when the clauses before it have written what it names"]
                return
            if stage.made is None and stage.write is not None:
                values = _after(stage.write, found)
                start = self._nothing(values)

    def _refuse_later(self) -> None:
        """Refuse what may turn out not to be for sets when something is written, which only the caller takes back.

        What later stages do must follow from the rows of the first one, and from what they are.
        """
        told, self._told = self._told, {}
        self._explain_stages(sure=True)
        self._told = told

    def _refuse_unsure(self, stage: Stage, start: Mapping[str, SqlValue], found: Mapping[str, SqlValue]) -> None:
        """Refuse a later stage that may refuse some rows, by what is known of the rows before it and for it."""
        values = [value for name, value in found.items() if name.startswith("#")]
        if (
            stage.reads
            or stage.write is None
            or isinstance(stage.write, ast.MergeClause)
            or not all(map(always_written, values))
            or not all(is_closed(node, start) for node in stage.computed)
        ):
            raise NotSupportedError("reading what was written within the caller's transaction is not for SQL")

    def _refuse_null_maps(self, kept: Kept) -> None:
        """Refuse rows with null in the place of a map that a later stage sets properties by."""
        names = {node.name for stage in self.stages[1:] for node in stage.computed if isinstance(node, ast.Variable)}
        for value in (kept.values[name] for name in names & kept.values.keys()):
            if value.type.base is Base.MAP and self._tables.count(kept.where(f"{value.sql} IS NULL").source):
                raise NotSupportedError("a map of properties that is null is not for SQL")

    def _nothing(self, values: Mapping[str, SqlValue]) -> Relation:
        """Return no rows of such values."""
        chosen = "".join(f", CAST(NULL AS {sql_type(value.type)}) AS w{i}" for i, value in enumerate(values.values()))
        source = self._tables.rows(f"SELECT 0::BIGINT AS at{chosen} LIMIT 0")
        named = {name: column(f"w{i}", value.type, many=value.many) for i, (name, value) in enumerate(values.items())}
        return Kept(source, 0, named).relation

    def run(self) -> Result:
        """Run the statement: all of it, or nothing."""
        started = time.perf_counter()
        state, first = self._state, self.stages[0]
        with ExitStack() as stack:
            stack.callback(self._tables.drop)
            with state.connection.guard() as raw:
                state.admit()
                theirs = len(self.stages) > 1 and state.transactions.by_user  # who alone may roll back
                if theirs:
                    self._refuse_later()
                kept = self._kept(first, None)
                if theirs:
                    self._refuse_null_maps(kept)
                naming = Naming(self._context, update := Update(raw, touch=state.transactions.touch))
                work = Work(self._context, self._tables, update, naming, self._read)
                result = None
                with state.writing(), state.connection.guard(self._left()):
                    for stage in self.stages:
                        if stage.write is None:
                            result = self._returned(stage, kept)
                            break
                        if stage.made is not None:
                            self._set_merged(work, stage, kept)
                            continue
                        rows = kept if stage is first else self._kept(stage, kept)
                        kept = _CLAUSES[type(stage.write)](work, stage, rows).run()
                        self._left()
                    self._finish(work)
                    work.flushed()
                    state.changed(())
        message = str(work.changes)
        elapsed = time.perf_counter() - started
        if result is None:
            return Result(state.version(), None, elapsed=elapsed, message=message)
        result.message, result.elapsed = message, elapsed
        return result

    def _left(self) -> float | None:
        """Return the seconds that are left."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise QueryTimeout("the statement ran longer than its timeout")
        return left

    def _kept(self, stage: Stage, start: Kept | None) -> Kept:
        """Run the reading of a stage; its rows."""
        return self._read(stage.query, None if start is None else start.relation, stage)

    def _set_merged(self, work: Work, stage: Stage, kept: Kept) -> None:
        """Run what a MERGE sets for some of its rows."""
        chosen = kept.where(f"{kept.values[MADE].sql} = {stage.made}")
        if self._tables.count(chosen.source):
            Change(work, stage, self._kept(stage, chosen)).run()
        self._left()

    def _prepared(
        self, run: PathRun, query: ast.Composite, start: Relation | None, stage: Stage | None
    ) -> tuple[Prepared | Program, dict[str, SqlValue]]:
        """Prepare a query, which may start from rows; what is known of each row, if its stage takes it."""
        prepared = self._prepare(run, query, start)
        columns = prepared.shaped.columns
        values = {c.name: column(f"c{i}", c.type, many=c.many) for i, c in enumerate(columns) if c.name != "#"}
        for name, value in values.items():
            if unheld(value.type) and not (name.startswith("#") and value.type == ANY):
                raise NotSupportedError("a value that SQL does not hold is not written by SQL")
        if stage is not None:
            _CLAUSES[type(stage.write)].check(stage, values, self._text)
        if stage is self.stages[0] and self._rows(prepared, stage) < LEAST and _are_looked_up(stage):
            raise WritesFew("it writes few rows, which is as quick")
        return prepared, values

    def _rows(self, prepared: Prepared | Program, stage: Stage) -> float:
        """Return how many rows are expected; infinity where only a run tells."""
        rows = 1.0
        for clause in stage.reads:
            if isinstance(clause, ast.UnwindClause):
                source = clause.source
                given = self._arguments.get(source.name) if isinstance(source, ast.Parameter) else None
                items = source.items if isinstance(source, ast.ListLiteral) else getattr(source, "value", given)
                rows *= len(items) if isinstance(items, (list, tuple)) else inf
            elif isinstance(clause, ast.ProcedureClause) and clause.yields is not None:
                return inf
        if not any(isinstance(clause, ast.MatchClause) for clause in stage.reads):
            return rows
        steps = prepared.steps if isinstance(prepared, Program) else (prepared,)
        for step in steps:
            if isinstance(step, Rows):
                continue
            plan = step.plan if isinstance(step, (Step, Prepared)) else None
            rows *= inf if plan is None else max(plan.steps[-1].estimate, 1.0)
        return rows

    def _read(self, query: ast.Composite, start: Relation | None, stage: Stage | None = None) -> Kept:
        """Run a query, which may start from rows; its rows, for a stage or for what that looks up."""
        with self._new_run(self._arguments, self._left()) as run:
            prepared, values = self._prepared(run, query, start, stage)
            with (
                running(prepared.computing) as value_of,
                run.bindings(prepared),
                self._state.connection.guard(self._left()),
            ):
                shaped = prepared.shaped
                sql = f"SELECT row_number() OVER () - 1 AS at, q.* FROM ({shaped.sql}) q"
                source = self._tables.rows(sql, shaped.parameters)
                unknown = [v.column for v in values.values() if v.type == ANY and v.column is not None]
                if unknown and value_of is not None:
                    source = self._as_literals(source, unknown, value_of)
            kept = Kept(source, self._tables.count(source), values)
            if self._told is not None and stage is not None:
                self._told[id(stage)] = [*_explained(run, prepared, self._state), f"{kept.count:,} rows"]
        return kept

    def _as_literals(self, source: Source, columns: list[str], value_of: Callable[[bytes], object]) -> Source:
        """Put literals in the place of values that SQL knows by a key, which is of one run; return the new table."""
        connection, joins, chosen = self._state.connection, "", []
        for i, name in enumerate(columns):
            keys = connection.rows(f"SELECT DISTINCT {name} FROM {source} WHERE {name} IS NOT NULL")
            with connection.view(view := connection.temporary(), of_keys([key for (key,) in keys], value_of)):
                table = self._tables.make(f"FROM {view}")
            joins += f" LEFT JOIN {table} t{i} ON t{i}.key = q.{name}"
            literal = f"struct_pack(lexical := t{i}.lexical, datatype := t{i}.datatype)"
            chosen.append(f"CASE WHEN t{i}.key IS NOT NULL THEN {literal} END AS {name}")
        return self._tables.rows(f"SELECT q.* REPLACE ({', '.join(chosen)}) FROM {source} q{joins} ORDER BY q.at ASC")

    def _returned(self, stage: Stage, start: Kept) -> Result:
        """Run the last clauses; what they return."""
        with self._new_run(self._arguments, self._left()) as run:
            prepared = self._prepare(run, stage.query, start.relation)
            with running(prepared.computing) as value_of:
                table = run.run(prepared)
        return Result(self._state.version(), table, prepared.shaped.columns, value_of=value_of)

    def _finish(self, work: Work) -> None:
        """Refuse deleted vertices that still have edges."""
        (type,) = work.naming.ids(RDF_TYPE) if work.left else (0,)
        left = sum(self._tables.count(incident(gone, type)) for gone, _ in work.left)
        if left:
            raise ExecutionError(
                f"a deleted vertex still has {left} edge{'s' if left > 1 else ''}",
                text=self._text,
                position=work.left[-1][1],
                hint="delete them too, or write DETACH DELETE",
            )


def _after(clause: WriteClause, values: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
    """Return what is known of rows after a clause that writes."""
    known = {name: value for name, value in values.items() if not name.startswith("#")}
    if isinstance(clause, ast.MergeClause):
        return named(creation(clause), known)
    return named(clause, known) if isinstance(clause, ast.CreateClause) else known


def _are_looked_up(stage: Stage) -> bool:
    """Whether the interpreter, too, finds what a stage reads without trying all vertices."""
    return all(is_looked_up(clause) for clause in stage.reads if isinstance(clause, ast.MatchClause))


def _explained(run: PathRun, prepared: Prepared | Program, state: State) -> list[str]:
    """Return how rows are read."""
    names, describe = state.snapshot().names, run.executor.describe
    if isinstance(prepared, Program):
        found = Explanation.of_program(prepared, names, describe, run.controls)
    else:
        found = Explanation.of_reading(prepared, names, describe)
    return list((Explanation.of_conditions(run, names) + found).lines)
