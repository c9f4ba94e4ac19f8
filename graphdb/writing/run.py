"""A statement that writes, from its stages to its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Any, TypeAlias

from graphdb.common.errors import (
    BindError,
    ExecutionError,
    GraphDBError,
    MemoryLimitError,
    NotSupportedError,
    QueryTimeout,
    StorageError,
    TypeMismatchError,
    placed,
)
from graphdb.common.values.literals import exported
from graphdb.common.values.terms import RDF_TYPE
from graphdb.common.values.types import BOOLEAN, EDGE, INTEGER, NODE, PATH, Base, Column, Type, sql_type
from graphdb.grammar import syntax as ast
from graphdb.grammar.compose import is_plain
from graphdb.interpret.context import Context, Row
from graphdb.interpret.evaluate import Compiler
from graphdb.interpret.export import Exporter
from graphdb.interpret.memory import MemoryWatch
from graphdb.interpret.result import ValuesResult
from graphdb.interpret.values import Vertex
from graphdb.pattern.free import free_variables
from graphdb.relational.explain import Explanation
from graphdb.relational.paths.run import PathRun
from graphdb.relational.program import Program, Step
from graphdb.relational.program import Rows as Materialized
from graphdb.relational.projection.relation import Relation, Source
from graphdb.relational.query import Prepared
from graphdb.relational.session.state import State
from graphdb.results.result import Result
from graphdb.semantics.patterns import names_of
from graphdb.sql.udf import running
from graphdb.sql.value import SqlValue, column, column_at
from graphdb.storage.updates.apply import Update, incident
from graphdb.writing.change import Change
from graphdb.writing.create import Create, named
from graphdb.writing.delete import Delete
from graphdb.writing.deleted import check_deleted
from graphdb.writing.items import RowByRow, reads_of
from graphdb.writing.kept import Kept, Tables
from graphdb.writing.literals import internal, of_keys
from graphdb.writing.merge import Merge
from graphdb.writing.naming import Naming
from graphdb.writing.row_writer import MADE, RowWriter, edges_left
from graphdb.writing.rows import AT, Rows, of_arrow, of_python, of_table, unit
from graphdb.writing.stages import Stage, WriteClause, creation, elements_of, stages_of, with_maps
from graphdb.writing.work import Work

NewRun: TypeAlias = Callable[[Mapping[str, object], float | None], PathRun]
"""Makes what runs one reading query, with these parameters and within so many seconds."""

LEAST = 64
"""Rows that are worth writing by sets: for fewer, its SQL takes longer to plan than they take one by one."""

Prepare: TypeAlias = Callable[[PathRun, ast.Query | ast.Composite, Relation | None], Prepared | Program]
"""Prepares a reading query, which may start from rows."""

Clause: TypeAlias = Create | Merge | Change | Delete

_CLAUSES: dict[type, type[Create] | type[Merge] | type[Change] | type[Delete]] = {
    ast.CreateClause: Create,
    ast.MergeClause: Merge,
    ast.SetClause: Change,
    ast.RemoveClause: Change,
    ast.DeleteClause: Delete,
}
"""Who applies each writing clause by sets: ``check`` says by types whether it can, ``refuse`` by the rows."""

SPENT = (QueryTimeout, MemoryLimitError, StorageError)
"""Errors of what there is no more of: nothing else is tried."""

_AT = " #at"
"""The number of a row while what it matches is gathered: not quite one of the engine's own names, which matches keep
back."""


class Writing:
    """Runs one statement, or explains it."""

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
        memory = MemoryWatch(state.budget)
        self._context = Context(state.snapshot, state.forget, run.executor, text, arguments, run.new_control, memory)
        self._query, self._arguments = with_maps(query, arguments)
        self._context.arguments = self._arguments
        self.parts = tuple(stages_of(part) for part in self._query.parts)
        self._tables = Tables(state.connection)
        self._begin: Callable[[], None] | None = None
        """Begins the transaction; None once that is done."""
        self._keys: dict[bytes, Any] = {}
        """The values that SQL knows by a key."""
        self._notes: dict[int, list[str]] | None = None
        """How the rows of each stage were read, and how its clause was applied, where somebody wants to know."""

    # --- running

    def run(self) -> Result:
        """Run the statement: all of it, or nothing."""
        started = time.perf_counter()
        state = self._state
        with ExitStack() as stack:
            stack.callback(self._tables.drop)
            with state.connection.guard() as raw, state.connection.guard(self._left()):
                state.admit()
                self._begin = lambda: stack.enter_context(state.writing())
                update = Update(raw, self._context.held(), state.transactions.touch)
                self._work = Work(self._context, self._tables, update, Naming(self._context, update), self._read_kept)
                self._writer = RowWriter(self._work, self._matches)
                results = [self._part(part) for part in self.parts]
                self._write()
                self._finish()
                state.changed(())
                result = results[0] if len(results) == 1 else self._union(results)
        if result is None:
            result = Result(state.version(), None)
        result.message, result.elapsed = str(self._work.changes), time.perf_counter() - started
        return result

    def _write(self) -> None:
        """Begin the transaction, if this is the first to be written: what fails before need not be rolled back."""
        if self._begin is not None:
            self._begin()
            self._begin = None

    def _part(self, stages: Sequence[Stage]) -> Result | None:
        """Run the stages of a part of a UNION; what it returns."""
        rows = unit()
        for stage in stages:
            if stage.write is None:
                return self._returned(stage, rows)
            rows = self._stage(stage, rows, stages)
        return None

    def _stage(self, stage: Stage, start: Rows, around: Sequence[Stage]) -> Rows:
        """Read and write; return the rows with what was made."""
        self._left()
        if isinstance(stage.write, ast.ForeachClause):
            rows = inner = self._unwound(stage, start, around) or self._rows_for_rows(stage, start)
            for each in stage.inner:
                inner = self._stage(each, inner, stage.inner)
            return rows
        clause, rows = self._by_sets(stage, start, around)
        if clause is None:
            rows = self._by_rows(stage, rows or self._rows_for_rows(stage, start))
        else:
            self._note(stage, "by sets")
            rows = self._applied(clause)
        for each in stage.inner:
            if clause is not None or not _has_items(stage.by_row):
                chosen = rows.chosen(MADE, bool(each.made)) if clause is None else self._chosen(rows, bool(each.made))
                if chosen.count:
                    self._stage(each, chosen, ())
        return rows

    # --- by sets

    def _by_sets(self, stage: Stage, start: Rows, around: Sequence[Stage]) -> tuple[Clause | None, Rows | None]:
        """Return what applies a clause by sets; None where it goes row by row, and its rows if they are read already.

        Nothing of the clause is written yet: it is by sets where there are many rows, unless its text, the types of its
        values or what its rows hold say otherwise.
        """
        rows = self._unwound(stage, start, around)
        try:
            if stage.why_rows is not None:
                raise RowByRow(stage.why_rows)
            if self._context.view.deleted:
                raise RowByRow("rows may name what is deleted")
            if rows is None and not (stage.reads and self._are_many(stage, start)):
                most = LEAST / self._items(stage) if start.is_unit and stage.why_rows is None else inf
                rows = self._read_rows(stage, start, most)
            if rows is None:
                kept = self._read_for_sets(stage, stage.query(by_sets=True), start)
            elif rows.in_python or rows.count < LEAST:
                raise RowByRow("there are few rows")
            else:
                kept = self._read_for_sets(stage, replace(stage, reads=()).query(by_sets=True), rows)
            clause = _CLAUSES[type(stage.write)](self._work, stage, kept)
            clause.refuse()
        except RowByRow as why:
            self._note(stage, f"row by row: {why}")
            return None, rows
        return clause, None

    def _applied(self, clause: Clause) -> Rows:
        """Apply a clause by sets; return its rows."""
        self._write()
        self._writer.flush()
        kept = clause.run()
        self._left()
        return self._rows_of(kept)

    def _chosen(self, rows: Rows, made: bool) -> Rows:
        kept = rows.kept.where(f"{rows.kept.values[MADE].sql} = {made}")
        return self._rows_of(replace(kept, count=self._tables.count(kept.source)))

    def _rows_of(self, kept: Kept) -> Rows:
        columns = [
            Column(name, name, value.type, value.many, value.bases)
            for name, value in kept.values.items()
            if name == MADE or not name.startswith("#")
        ]
        return of_table(self._tables, kept, columns, self._keys)

    # --- row by row

    def _by_rows(self, stage: Stage, rows: Rows) -> Rows:
        """Apply a clause row by row; return its rows."""
        clause = stage.by_row
        assert clause is not None
        self._merged = rows
        self._write()
        made = self._writer.run(clause, rows.listed)
        if not isinstance(clause, (ast.CreateClause, ast.MergeClause)):
            return rows
        return of_python(self._tables, made, rows, self._types_of(clause, stage.scope))

    @staticmethod
    def _types_of(clause: ast.CreateClause | ast.MergeClause, scope: Sequence[str]) -> dict[str, Type]:
        """Return the types of what a clause makes, by its names; of MERGE, whether it was made."""
        create = creation(clause) if isinstance(clause, ast.MergeClause) else clause
        found = {MADE: BOOLEAN} if isinstance(clause, ast.MergeClause) else {}
        for element in elements_of(create):
            if element.variable is not None:
                found[element.variable.name] = NODE if isinstance(element, ast.NodePattern) else EDGE
        found |= {pattern.variable.name: PATH for pattern in create.patterns if pattern.variable is not None}
        return {name: type for name, type in found.items() if name not in scope}

    def _matches(self, pattern: ast.PathPattern, rows: Sequence[Row]) -> list[list[Row]]:
        """Return what a pattern of MERGE matches for some of the rows under way: what it names first."""
        if len(rows) == 1 or self._merged.in_python:
            return [self._matches_of(pattern, row) for row in rows]
        new = [name for name in dict.fromkeys(names_of(pattern)) if name not in rows[0]]
        kept = self._merged.kept
        values = {name: kept.values[name] for name in free_variables(pattern) if name in kept.values}
        start = Relation(kept.source, {**values, _AT: column("at", INTEGER)})
        places = {row[AT]: i for i, row in enumerate(rows)}
        result: list[list[Row]] = [[] for _ in rows]
        for row in self._found(_match(pattern, [_AT, *new]), start):
            result[places[row[_AT]]].append({name: row[name] for name in new})
        return result

    def _matches_of(self, pattern: ast.PathPattern, row: Row) -> list[Row]:
        """Return what a pattern matches for one row: the values it asks for are parameters."""
        given: dict[str, object] = {}

        def known(element: Any) -> Any:
            if isinstance(element, ast.Subpath) or element.properties is None:
                return element
            items = []
            for key, node in element.properties.items:
                name = f" {len(given)}"
                given[name] = exported(self._writer.value(node)(row))
                items.append((key, ast.Parameter(name, node.span)))
            return replace(element, properties=replace(element.properties, items=tuple(items)))

        names = list(dict.fromkeys(names_of(pattern)))
        pattern = replace(pattern, nodes=tuple(map(known, pattern.nodes)), edges=tuple(map(known, pattern.edges)))
        new, bound = [name for name in names if name not in row], [name for name in names if name in row]
        start = None
        if bound:
            if any(row[name] is None for name in bound):
                return []
            types = {name: NODE if isinstance(row[name], Vertex) else EDGE for name in bound}
            start = of_python(self._tables, [{**row, AT: 0}], unit(), types).kept.relation
        query = _match(pattern, new)
        return [{name: found[name] for name in new} for found in self._found(query, start, given)]

    def _found(
        self,
        query: ast.Query | ast.Composite,
        start: Relation | None,
        given: Mapping[str, object] | None = None,
    ) -> list[Row]:
        rows = self._read(query, start, given=given)
        assert rows is not None
        return rows.listed

    # --- reading

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
        if start.count >= LEAST:
            return True
        matches = any(isinstance(clause, ast.MatchClause) for clause in stage.reads)
        items = self._items(stage)
        return items == inf or (not matches and start.count * items >= LEAST)

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

    def _read_rows(self, stage: Stage, start: Rows, most: float = inf) -> Rows | None:
        """Return the rows that a stage's clause is applied to row by row; None where ``most`` or more are expected."""
        if not stage.reads and not stage.asked:
            return start
        self._check_deleted(stage, start)
        return self._read(stage.query(by_sets=False), self._relation(start), stage, most)

    def _rows_for_rows(self, stage: Stage, start: Rows) -> Rows:
        rows = self._read_rows(stage, start)
        assert rows is not None
        return rows

    def _unwound(self, stage: Stage, start: Rows, around: Sequence[Stage]) -> Rows | None:
        """Return the rows of an UNWIND of few items, of which nothing is asked but by what goes row by row."""
        clause, at = stage.unwound, next((i for i, each in enumerate(around) if each is stage), None)
        if clause is None or at is None or not all(map(_in_python, around[at:])):
            return None
        if not start.in_python and LEAST <= self._items(stage) < inf:
            return None
        source = Compiler(self._context).compile(clause.source)
        rows: list[Row] = []
        for row in start.listed:
            self._context.view.expect(row.values())
            items = source(row)
            for item in items if isinstance(items, list) else () if items is None else (items,):
                rows.append({**row, clause.variable.name: item})
        if len(rows) >= LEAST and not start.in_python:
            return None
        for at, row in enumerate(rows):
            row[AT] = at

        def table() -> Kept:
            raise AssertionError("nothing is asked of these rows in SQL")

        return Rows(len(rows), lambda: rows, table, in_python=True)

    def _relation(self, rows: Rows) -> Relation | None:
        """Return rows for SQL to start from; None for the one row without names."""
        self._writer.flush()
        return None if rows.is_unit else rows.kept.relation

    def _read(
        self,
        query: ast.Query | ast.Composite,
        start: Relation | None,
        stage: Stage | None = None,
        most: float = inf,
        given: Mapping[str, object] | None = None,
    ) -> Rows | None:
        """Run a query, which may start from rows; its rows, or None where ``most`` or more are expected.

        ``given`` are parameters beside those of the statement.
        """
        with self._new_run({**self._arguments, **(given or {})}, self._left()) as run:
            prepared = self._prepare(run, query, start)
            if most < inf and _expected(prepared) >= most:
                return None
            with running(prepared.computing, self._keys):
                found = run.run(prepared)
            self._note_read(stage, run, prepared, found.num_rows)
        return of_arrow(self._tables, found, prepared.shaped.columns, self._keys)

    def _read_for_sets(self, stage: Stage, query: ast.Query | ast.Composite, start: Rows) -> Kept:
        """Run the reading of a stage whose clause is to be applied by sets; its rows.

        Raises
        ------
        RowByRow
            That cannot be: by the types of the values, or because SQL does not know one of the expressions.
        """
        self._check_deleted(stage, start)
        try:
            return self._read_kept(query, self._relation(start), stage)
        except (NotSupportedError, TypeMismatchError, BindError) as error:
            raise RowByRow(error.message) from None
        except ExecutionError as error:
            lost = self._begin is None or self._state.transactions.by_user  # DuckDB has aborted the transaction
            if lost or isinstance(error, SPENT) or placed(error, self._text).line is not None:
                raise
            raise RowByRow(error.message) from None  # its place is known where Python computes it

    def _read_kept(self, query: ast.Query | ast.Composite, start: Relation | None, stage: Stage | None = None) -> Kept:
        """Run a query, which may start from rows; its rows as a table, for a stage or for what that looks up."""
        with self._new_run(self._arguments, self._left()) as run:
            prepared = self._prepare(run, query, start)
            columns = prepared.shaped.columns
            values = {c.name: column_at(f"c{i}", c) for i, c in enumerate(columns) if c.name != "#"}
            if stage is not None:
                _CLAUSES[type(stage.write)].check(stage, values)
            with (
                running(prepared.computing, self._keys),
                run.bindings(prepared),
                self._state.connection.guard(self._left()),
            ):
                shaped = prepared.shaped
                sql = f"SELECT row_number() OVER () - 1 AS at, q.* FROM ({shaped.sql}) q"
                source = self._tables.rows(sql, shaped.parameters)
            computed = [
                v.column for n, v in values.items() if n.startswith("#") and v.type.base is Base.ANY and v.column
            ]
            if computed:
                source = self._as_literals(source, computed)
            kept = Kept(source, self._tables.count(source), values)
            self._note_read(stage, run, prepared, kept.count)
        return kept

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

    def _check_deleted(self, stage: Stage, rows: Rows) -> None:
        """Refuse to read properties and labels of what the statement has deleted."""
        if deleted := self._context.view.deleted:
            check_deleted(stage, rows.listed, deleted, self._text)

    # --- what is returned

    def _returned(self, stage: Stage, rows: Rows) -> Result:
        """Run the last clauses; what they return."""
        clause = stage.returned
        if clause is not None and (rows.count < LEAST or self._context.view.deleted):
            return self._returned_from_rows(clause, rows)
        self._check_deleted(stage, rows)
        start = self._relation(rows)
        with self._new_run(self._arguments, self._left()) as run:
            prepared = self._prepare(run, ast.Composite((stage.reads,)), start)
            with running(prepared.computing, self._keys):
                table = run.run(prepared)
            self._note_read(stage, run, prepared, None)
        return Result(self._state.version(), table, prepared.shaped.columns, value_of=self._keys.__getitem__)

    def _returned_from_rows(self, clause: ast.ReturnClause, rows: Rows) -> Result:
        """Return what RETURN makes of each of few rows."""
        context, compiler, listed = self._context, Compiler(self._context), rows.listed
        items = list(clause.items)
        if clause.star:
            names = sorted(name for name in (listed[0] if listed else {}) if name[0] not in "# ")
            items[:0] = [ast.ReturnItem(ast.Variable(name, clause.span), name, name) for name in names]
        for row in listed:
            context.view.expect(row.values())
        columns = [item.alias or item.text for item in items]
        read = [(str(i), compiler.reference(item.expression)) for i, item in enumerate(items)]
        found = [{name: value(row) for name, value in read} for row in context.watched(listed)]
        self._writer.flush()
        values = Exporter(context).rows(found, [name for name, _ in read])
        return ValuesResult(self._state.version(), columns, values, len(found), elapsed=0.0, message=None)

    def _union(self, results: Sequence[Result | None]) -> Result | None:
        """Put together what the parts of a UNION returned."""
        parts = [result for result in results if result is not None]
        if not parts:
            return None
        rows = list(chain.from_iterable(parts))
        if not self._query.keeps_all:
            key = self._context.group_key
            rows = list({tuple(map(key, map(internal, row))): row for row in rows[::-1]}.values())[::-1]
        columns = list(parts[0].columns)
        values = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
        return ValuesResult(self._state.version(), columns, values, len(rows), elapsed=0.0, message=None)

    def _finish(self) -> None:
        """Write what is left; refuse deleted vertices that still have edges."""
        work = self._work
        self._writer.finish()
        (type,) = work.naming.ids(RDF_TYPE) if work.left else (0,)
        if left := sum(self._tables.count(incident(gone, type)) for gone, _ in work.left):
            raise edges_left(left, self._text, work.left[-1][1])
        work.flushed()

    # --- what is done

    def explain(self, profile: bool) -> list[str]:
        """Return what is done in lines, how long it took with ``profile``, which runs it."""
        self._notes = {}
        result = self.run() if profile else None
        lines: list[str] = []
        if result is None:
            try:
                for stages in self.parts:
                    self._explain_stages(stages, {}, None)
            finally:
                self._tables.drop()
        for number, stages in enumerate(self.parts):
            lines += [] if not number else ["UNION ALL" if self._query.keeps_all else "UNION"]
            lines += chain.from_iterable(map(self._lines_of, stages))
        by_rows = [any(line.startswith("  row by row") for line in notes) for notes in self._notes.values()]
        by_sets = [any(line.startswith("  by sets") for line in notes) for notes in self._notes.values()]
        ways = [way for way, is_gone in (("by sets", any(by_sets)), ("row by row", any(by_rows))) if is_gone]
        head = f"written {' and '.join(ways) or 'by sets'}: what is read runs as plans and SQL"
        lines = [head + ", each writing clause as SQL over its rows" * (ways != ["row by row"]), *lines]
        if result is not None:
            lines += ["", f"{result.elapsed * 1000:,.1f} ms in all; {result.message}"]
        return lines

    def _lines_of(self, stage: Stage) -> list[str]:
        assert self._notes is not None
        notes = self._notes.get(id(stage), [])
        way = [line for line in notes if line.startswith(("  by sets", "  row by row"))]
        read = [f"  {line}" for line in notes if line not in way]
        clauses = (*(stage.reads if not read else ()), *([stage.write] if stage.write is not None else []))
        if stage.made is None:
            own = [" ".join(self._text[c.span.start : c.span.end].split()) for c in clauses]
        else:
            own = ["ON CREATE" if stage.made else "ON MATCH"]
        lines = [*read, *own, *way]
        if isinstance(stage.write, ast.SetClause) and stage.why_rows is None and reads_of(stage.write):
            lines.append("  unless a row reads what one before it has set: then it goes row by row")
        inner = stage.inner if not isinstance(stage.write, ast.ForeachClause) else stage.inner[:]
        return lines + [f"  {line}" for each in inner for line in self._lines_of(each)]

    def _note(self, stage: Stage, line: str) -> None:
        if self._notes is not None:
            self._notes.setdefault(id(stage), []).append(f"  {line}")

    def _note_read(self, stage: Stage | None, run: PathRun, prepared: Prepared | Program, count: int | None) -> None:
        if self._notes is not None and stage is not None:
            rows = [] if count is None else [f"{count:,} rows"]
            self._notes.setdefault(id(stage), [])[:0] = [*_explained(run, prepared, self._state), *rows]

    def _explain_stages(self, stages: Sequence[Stage], values: Mapping[str, SqlValue], start: Relation | None) -> None:
        """Note how the rows of each stage are read, as far as that is known before those before it have written."""
        for stage in stages:
            try:
                found = self._explain_stage(stage, start)
            except NotSupportedError:
                raise
            except GraphDBError:
                if start is None:
                    raise
                assert self._notes is not None
                self._notes[id(stage)] = ["planned when the clauses before it have written what it names"]
                return
            if stage.write is None:
                return
            values = _after(stage.write, found or values)
            start = self._nothing(values)
            self._explain_stages(stage.inner, values, start)

    def _explain_stage(self, stage: Stage, start: Relation | None) -> dict[str, SqlValue]:
        """Note how the rows of a stage are read, and how its clause is applied; return what is known of each row."""
        with self._new_run(self._arguments, self._left()) as run:
            if stage.write is not None and not isinstance(stage.write, ast.ForeachClause):
                try:
                    return self._explain_sets(stage, start, run)
                except RowByRow as why:
                    self._note(stage, f"row by row: {why}")
            if stage.write is not None and start is None and not stage.reads:
                return {}
            prepared = self._prepare(run, stage.query(by_sets=False), start)
            self._note_read(stage, run, prepared, None)
            return {
                each.name: column(f"c{i}", each.type, many=each.many) for i, each in enumerate(prepared.shaped.columns)
            }

    def _explain_sets(self, stage: Stage, start: Relation | None, run: PathRun) -> dict[str, SqlValue]:
        if stage.why_rows is not None:
            raise RowByRow(stage.why_rows)
        if start is None and (not stage.reads or not self._are_many(stage, unit())):
            few = not stage.reads
            if not few:
                few = self._items(stage) * _expected(self._prepare(run, stage.query(by_sets=False), None)) < LEAST
            if few and LEAST > 1:
                raise RowByRow("there are few rows")
        try:
            prepared = self._prepare(run, stage.query(by_sets=True), start)
        except (NotSupportedError, TypeMismatchError) as error:
            raise RowByRow(error.message) from None
        columns = prepared.shaped.columns
        values = {c.name: column(f"c{i}", c.type, many=c.many) for i, c in enumerate(columns) if c.name != "#"}
        _CLAUSES[type(stage.write)].check(stage, values)
        self._note(stage, "by sets")
        self._note_read(stage, run, prepared, None)
        return values

    def _nothing(self, values: Mapping[str, SqlValue]) -> Relation:
        """Return no rows of such values."""
        chosen = "".join(f", CAST(NULL AS {sql_type(value.type)}) AS w{i}" for i, value in enumerate(values.values()))
        source = self._tables.rows(f"SELECT 0::BIGINT AS at{chosen} LIMIT 0")
        named = {name: column(f"w{i}", value.type, many=value.many) for i, (name, value) in enumerate(values.items())}
        return Kept(source, 0, named).relation


def _has_items(clause: object) -> bool:
    """Whether a MERGE sets what it says itself, row by row; otherwise its inner stages do."""
    return isinstance(clause, ast.MergeClause) and bool(clause.on_create or clause.on_match)


def _match(pattern: ast.PathPattern, names: Sequence[str]) -> ast.Query | ast.Composite:
    """Return the query for what a pattern matches, by these names."""
    items = [ast.ReturnItem(ast.Variable(name), name, name) for name in names]
    items = items or [ast.ReturnItem(ast.Literal(1), "#", "#")]
    match, returns = ast.MatchClause((pattern,), span=pattern.span), ast.ReturnClause(tuple(items), span=pattern.span)
    plain = not names or names[0] != _AT
    return ast.Query((match,), returns) if plain and is_plain([match], returns) else ast.Composite(((match, returns),))


def _in_python(stage: Stage) -> bool:
    """Whether a stage can go on from rows that are Python's alone: it reads nothing that SQL would have to find."""
    if stage.write is None:
        return stage.returned is not None
    if stage.asked or not all(map(_in_python, stage.inner)):
        return False
    return not stage.reads or stage.unwound is not None


def _expected(prepared: Prepared | Program) -> float:
    """Return how many rows a query that starts from nothing is expected to have; infinity where only a run tells."""
    rows = 1.0
    for step in prepared.steps if isinstance(prepared, Program) else (prepared,):
        if isinstance(step, Materialized):
            continue
        plan = step.plan if isinstance(step, (Step, Prepared)) else None
        if plan is not None:
            rows *= max(plan.steps[-1].estimate, 1.0)
        elif not isinstance(step, Prepared):
            return inf
    return rows


def _after(clause: WriteClause, values: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
    """Return what is known of rows after a clause that writes."""
    known = {name: value for name, value in values.items() if not name.startswith("#")}
    if isinstance(clause, ast.MergeClause):
        return named(creation(clause), known)
    return named(clause, known) if isinstance(clause, ast.CreateClause) else known


def _explained(run: PathRun, prepared: Prepared | Program, state: State) -> list[str]:
    """Return how rows are read."""
    names = state.snapshot().names
    if isinstance(prepared, Program):
        return list(Explanation.of_program(prepared, names, run.executor.describe, run.controls).lines)
    executor = "" if prepared.plan is None else run.executor.describe(prepared.plan)
    return list(Explanation.planned(prepared, names, executor).lines)
