"""What EXPLAIN and PROFILE tell of a statement that writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain

from graphdb.common.errors import (
    GraphDBError,
    NotSupportedError,
    TypeMismatchError,
)
from graphdb.common.values.types import PATH, sql_type
from graphdb.grammar import syntax as ast
from graphdb.relational.paths.run import PathRun
from graphdb.relational.profile import Profile
from graphdb.relational.projection.relation import Relation
from graphdb.results.result import Result
from graphdb.sql.value import SqlValue, column
from graphdb.writing.by_row.row_reader import found_by_keys
from graphdb.writing.by_set.create import named
from graphdb.writing.items import RowByRow, reads_of
from graphdb.writing.materialized import Materialized
from graphdb.writing.reading import CLAUSES, TOOK, Reading, expected, is_small
from graphdb.writing.rows import unit
from graphdb.writing.stages import Stage, WriteClause, creation


class Explaining(Reading, ABC):
    """Explains one statement."""

    @abstractmethod
    def run(self) -> Result:
        """Run the statement: all of it, or nothing."""

    def explain(self, profile: bool) -> list[str]:
        """Return what is done in lines, how long it took with ``profile``, which runs it."""
        self._notes, self._profiled = {}, profile
        result = self._run_profiled() if profile else None
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
        notes = [*chain.from_iterable(self._notes.values())]
        ways = [way for way in ("by sets", "row by row") if any(line.startswith(f"  {way}") for line in notes)]
        head = f"written {' and '.join(ways) or 'by sets'}: what is read runs as plans and SQL"
        lines = [head + ", each writing clause as SQL over its rows" * (ways != ["row by row"]), *lines]
        if result is not None:
            lines += ["", f"{result.elapsed * 1000:,.1f} ms in all; {result.message}"]
        return lines

    def _run_profiled(self) -> Result:
        with Profile(self._state.connection).asking_duckdb():
            return self.run()

    def _lines_of(self, stage: Stage) -> list[str]:
        assert self._notes is not None
        notes = self._notes.get(id(stage), [])
        way = [line for line in notes if line.startswith(("  by sets", "  row by row", TOOK))]
        read = [f"  {line}" for line in notes if line not in way]
        clauses = (*(stage.reads if not read else ()), *([stage.write] if stage.write is not None else []))
        if stage.made is None:
            own = [" ".join(self._text[c.span.start : c.span.end].split()) for c in clauses]
        else:
            own = ["ON CREATE" if stage.made else "ON MATCH"]
        lines = [*read, *own, *way]
        if isinstance(stage.write, ast.SetClause) and stage.why_rows is None and reads_of(stage.write):
            lines.append("  unless a row reads what one before it has set: then it goes row by row")
        return lines + [f"  {line}" for each in stage.inner for line in self._lines_of(each)]

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
            assert self._notes is not None
            if isinstance(stage.write, ast.ForeachClause) or "  by sets" in self._notes.get(id(stage), ()):
                self._explain_stages(stage.inner, values, start)

    def _explain_stage(self, stage: Stage, start: Relation | None) -> dict[str, SqlValue]:
        """Note how the rows of a stage are read, and how its clause is applied; return what is known of each row."""
        return self._ventured(lambda careful: self._explain_with(careful, stage, start))

    def _explain_with(self, careful: bool, stage: Stage, start: Relation | None) -> dict[str, SqlValue]:
        with self._run(careful=careful) as run:
            if stage.write is not None and not isinstance(stage.write, ast.ForeachClause):
                try:
                    return self._explain_sets(stage, start, run)
                except RowByRow as why:
                    self._note(stage, f"row by row: {why}")
            if stage.write is not None and start is None and not stage.reads:
                return {}
            prepared = self._prepare(run, stage.query(by_sets=False), start)
            self._note_read(stage, run, prepared, None)
            if found_by_keys(stage):
                self._note(stage, "found by keys instead, row by row, where an index has them")
            return {
                each.name: column(f"c{i}", each.type, many=each.many)
                for i, each in enumerate(prepared.projection.columns)
            }

    def _explain_sets(self, stage: Stage, start: Relation | None, run: PathRun) -> dict[str, SqlValue]:
        if stage.why_rows is not None:
            raise RowByRow(stage.why_rows)
        if start is None and (not stage.reads or not self._are_many(stage, unit())):
            prepared = self._prepare(run, stage.query(by_sets=False), None) if stage.reads else None
            if is_small(1 if prepared is None else self._items(stage) * expected(prepared)):
                raise RowByRow("there are few rows")
        try:
            prepared = self._prepare(run, stage.query(by_sets=True), start)
        except (NotSupportedError, TypeMismatchError) as error:
            raise RowByRow(error.message) from None
        columns = prepared.projection.columns
        values = {c.name: column(f"c{i}", c.type, many=c.many) for i, c in enumerate(columns) if c.name != "#"}
        CLAUSES[type(stage.write)].check(stage, values)
        self._note(stage, "by sets")
        self._note_read(stage, run, prepared, None)
        return values

    def _nothing(self, values: Mapping[str, SqlValue]) -> Relation:
        """Return no rows of such values."""
        chosen = "".join(f", CAST(NULL AS {sql_type(value.type)}) AS w{i}" for i, value in enumerate(values.values()))
        source = self._tables.rows(f"SELECT 0::BIGINT AS at{chosen} LIMIT 0")
        named = {name: column(f"w{i}", value.type, many=value.many) for i, (name, value) in enumerate(values.items())}
        return Materialized(source, 0, named).relation


def _after(clause: WriteClause, values: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
    """Return what is known of rows after a clause that writes."""
    known = {name: value for name, value in values.items() if not name.startswith("#")}
    create = creation(clause) if isinstance(clause, ast.MergeClause) else clause
    if not isinstance(create, ast.CreateClause):
        return known
    paths = {each.variable.name: SqlValue("NULL", PATH) for each in create.patterns if each.variable is not None}
    return {**named(create, known), **paths}
