"""A statement that writes, from its stages to its result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from itertools import chain

from graphdb.common.caches import ByIdentity
from graphdb.common.values.literals import exported
from graphdb.common.values.terms import RDF_TYPE
from graphdb.common.values.types import BOOLEAN, EDGE, INTEGER, NODE, PATH, Column, Type
from graphdb.evaluate.context import Row
from graphdb.evaluate.export import Exporter
from graphdb.evaluate.expressions import Compiler
from graphdb.evaluate.result import ValuesResult
from graphdb.evaluate.values import Vertex
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.relational.projection.relation import Relation
from graphdb.results.result import Result
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.semantics.patterns import names_of
from graphdb.sql.udf import running
from graphdb.sql.value import column
from graphdb.storage.updates.apply import incident
from graphdb.writing.by_row.row_merge import RowMerge
from graphdb.writing.by_row.row_reader import RowReader
from graphdb.writing.by_row.row_writer import RowWriter, edges_left
from graphdb.writing.by_set.merging import AT as MATCHED
from graphdb.writing.by_set.merging import MADE, asking_by, matching
from graphdb.writing.explain import Explaining
from graphdb.writing.items import RowByRow
from graphdb.writing.joining import elements_of
from graphdb.writing.literals import internal
from graphdb.writing.materialized import Materialized
from graphdb.writing.naming import Naming
from graphdb.writing.reading import CLAUSES, LEAST, Clause, is_small
from graphdb.writing.rows import AT, Rows, of_python, of_table, unit
from graphdb.writing.stages import Stage, creation
from graphdb.writing.work import Work

_RAN = "ran"
"""Stands for what the first run of a statement has compiled, which may be the only one."""


class Writing(Explaining):
    """Runs one statement, or explains it."""

    # --- running

    def run(self) -> Result:
        """Run the statement: all of it, or nothing."""
        started = time.perf_counter()
        state = self._state
        with ExitStack() as stack:
            stack.callback(self._tables.drop)
            stack.enter_context(state.connection.promised.at_once())
            within: AbstractContextManager[object] = nullcontext()
            if self._deadline is not None:
                within = state.connection.guard(self._left())
            with state.connection.guard() as raw, within:
                state.admit()
                self._begin = lambda: stack.enter_context(state.writing())
                update = state.update(raw, state.known_statistics())
                self._work = Work(self._context, self._tables, update, Naming(self._context, update), self._materialize)
                self._writer = RowWriter(self._work, self._values)
                self._reader = RowReader(self._writer, LEAST)
                self._row_merge = RowMerge(self._work, self._writer, self._reader, self._matches)
                results = [self._part(part) for part in self.parts]
                self._write()
                self._finish()
                state.written()
                result = results[0] if len(results) == 1 else self._union(results)
        self._values.rest()
        state.plans.compiled.put(self._query, self._values if self._came_before else _RAN)
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
        for at, stage in enumerate(stages):
            if stage.write is None:
                return self._returned(stage, rows)
            if rows.count or any(map(_may_go_on, stages[at:])):
                rows = self._stage(stage, rows, stages)
        return None

    def _stage(self, stage: Stage, start: Rows, around: Sequence[Stage]) -> Rows:
        """Read and write; return the rows with what was made."""
        started = time.perf_counter()
        rows = self._read_and_written(stage, start, around)
        self._note_time(stage, rows, started)
        return rows

    def _read_and_written(self, stage: Stage, start: Rows, around: Sequence[Stage]) -> Rows:
        self._left()
        if isinstance(stage.write, ast.ForeachClause):
            inner = foreach = self._unwound(stage, start, around) or self._rows_for_rows(stage, start, around)
            for each in stage.inner if foreach.count else ():
                inner = self._stage(each, inner, stage.inner)
            return foreach
        clause, rows = self._by_sets(stage, start, around)
        if clause is None:
            return self._by_rows(stage, rows or self._rows_for_rows(stage, start, around))
        self._note(stage, "by sets")
        rows = self._applied(clause)
        for each in stage.inner:
            chosen = self._chosen(rows, bool(each.made))
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
        if stage.why_rows is not None:
            return self._row_by_row(stage, rows, stage.why_rows)
        if self._context.view.deleted:
            return self._row_by_row(stage, rows, "rows may name what is deleted")
        try:
            if rows is None and not (stage.reads and self._are_many(stage, start)):
                rows = self._read_rows(stage, start, around, max(self._items(stage), 1) if start.is_unit else None)
            if rows is None:
                table = self._read_for_sets(stage, stage.query(by_sets=True), start)
            elif rows.in_python or is_small(rows.count):
                return self._row_by_row(stage, rows, "there are few rows")
            else:
                table = self._read_for_sets(stage, replace(stage, reads=()).query(by_sets=True), rows)
            clause = CLAUSES[type(stage.write)](self._work, stage, table)
            clause.refuse()
        except RowByRow as why:
            return self._row_by_row(stage, rows, str(why))
        return clause, None

    def _row_by_row(self, stage: Stage, rows: Rows | None, why: str) -> tuple[None, Rows | None]:
        """Note why a clause goes row by row; return what :meth:`_by_sets` does then."""
        self.row_by_row.append(why)
        if self._notes is not None:
            self._note(stage, f"row by row: {why}")
        return None, rows

    def _applied(self, clause: Clause) -> Rows:
        """Apply a clause by sets; return its rows."""
        self._write()
        self._writer.flush()
        table = clause.run()
        self._left()
        return self._rows_of(table)

    def _chosen(self, rows: Rows, made: bool) -> Rows:
        table = rows.materialized.where(f"{rows.materialized.values[MADE].sql} = {made}")
        return self._rows_of(replace(table, count=self._tables.count(table.source)))

    def _rows_of(self, table: Materialized) -> Rows:
        columns = [
            Column(name, name, value.type, value.many, value.bases)
            for name, value in table.values.items()
            if name == MADE or not name.startswith("#")
        ]
        return of_table(self._tables, table, columns, self._keys)

    # --- row by row

    def _by_rows(self, stage: Stage, rows: Rows) -> Rows:
        """Apply a clause row by row; return its rows."""
        clause = stage.by_row
        assert clause is not None
        self._merged = rows
        self._write()
        if isinstance(clause, ast.MergeClause):
            made = self._merged_and_set(stage, clause, rows)
        else:
            made = self._writer.run(clause, rows.listed)
        if not isinstance(clause, (ast.CreateClause, ast.MergeClause)):
            return rows
        return of_python(self._tables, made, rows, _types_of(stage))

    def _merged_and_set(self, stage: Stage, clause: ast.MergeClause, rows: Rows) -> list[Row]:
        """Merge rows, and set what only subqueries say: after each row where another may find what is set for it."""
        assert isinstance(stage.write, ast.MergeClause)
        inner = () if clause.on_create or clause.on_match else stage.inner
        if not inner:
            return self._row_merge.run(clause, rows.listed)
        made, types = [], _types_of(stage)
        together = self._row_merge.are_apart(stage.write, rows.listed)
        for part in [rows.listed] if together else [[row] for row in rows.listed]:
            self._merged = rows
            new = self._row_merge.run(clause, part)
            found = of_python(self._tables, [{**row} for row in new], rows, types)
            for each in inner:
                chosen = found.chosen(MADE, bool(each.made))
                if chosen.count:
                    self._stage(each, chosen, ())
            made += new
        return made

    def _matches(self, pattern: ast.PathPattern, rows: Sequence[Row]) -> list[list[Row]]:
        """Return what a pattern of MERGE matches for some of the rows under way: what it names first."""
        if len(rows) == 1 or self._merged.in_python:
            return [self._matches_of(pattern, row) for row in rows]
        new = [name for name in dict.fromkeys(names_of(pattern)) if name not in rows[0]]
        table = self._merged.materialized
        values = {name: table.values[name] for name in free_variables(pattern) if name in table.values}
        start = Relation(table.source, {**values, MATCHED: column("at", INTEGER)})
        places = {row[AT]: i for i, row in enumerate(rows)}
        result: list[list[Row]] = [[] for _ in rows]
        for row in self._found(matching(pattern, [MATCHED, *new]), start):
            result[places[row[MATCHED]]].append({name: row[name] for name in new})
        return result

    def _matches_of(self, pattern: ast.PathPattern, row: Row) -> list[Row]:
        """Return what a pattern matches for one row: the values it asks for are parameters."""
        given: dict[str, object] = {}

        def known(node: ast.Expression) -> ast.Expression:
            name = f" {len(given)}"
            given[name] = exported(self._writer.value(node)(row))
            return ast.Parameter(name, node.span)

        names = list(dict.fromkeys(names_of(pattern)))
        pattern = asking_by(pattern, known)
        new, bound = [name for name in names if name not in row], [name for name in names if name in row]
        start = None
        if bound:
            if any(row[name] is None for name in bound):
                return []
            types = {name: NODE if isinstance(row[name], Vertex) else EDGE for name in bound}
            start = of_python(self._tables, [{**row, AT: 0}], unit(), types).materialized.relation
        query = matching(pattern, new)
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

    # --- what is returned

    def _returned(self, stage: Stage, rows: Rows) -> Result:
        """Run the last clauses; what they return."""
        clause = stage.returned
        if clause is not None and (is_small(rows.count) or self._context.view.deleted):
            return self._returned_from_rows(clause, rows)
        start = self._relation(rows)

        def returned(careful: bool) -> Result:
            with self._run(careful=careful) as run:
                prepared = self._prepare(run, ast.Composite((stage.reads,)), start)
                with running(prepared.computing, self._keys):
                    table = run.run(prepared)
                self._note_read(stage, run, prepared, None)
            return Result(self._state.version(), table, prepared.projection.columns, value_of=self._keys.__getitem__)

        return self._ventured(returned)

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


_TYPES: ByIdentity[dict[str, Type]] = ByIdentity(256)
"""What :func:`_made_by` says of stages."""


def _types_of(stage: Stage) -> dict[str, Type]:
    """Return the types of what the clause of a stage makes, by its names; of MERGE, whether it was made."""
    return _TYPES.get_or_make(stage, lambda: _made_by(stage))


def _made_by(stage: Stage) -> dict[str, Type]:
    clause = stage.by_row
    assert isinstance(clause, ast.CreateClause | ast.MergeClause)
    create = creation(clause) if isinstance(clause, ast.MergeClause) else clause
    found = {MADE: BOOLEAN} if isinstance(clause, ast.MergeClause) else {}
    for element in elements_of(create):
        if element.variable is not None:
            found[element.variable.name] = NODE if isinstance(element, ast.NodePattern) else EDGE
    found |= {pattern.variable.name: PATH for pattern in create.patterns if pattern.variable is not None}
    return {name: type for name, type in found.items() if name not in stage.scope}


def _may_go_on(stage: Stage) -> bool:
    """Whether anything may come of a stage that starts from no rows: a row of what is counted, or returned columns."""
    return stage.write is None or contains_aggregate(stage.reads)
