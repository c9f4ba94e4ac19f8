"""A statement, interpreted: its clauses one after the other, each from rows to rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphdb.common.stopping import check_stop
from graphdb.grammar import syntax as ast
from graphdb.interpret import clauses
from graphdb.interpret.context import Context
from graphdb.interpret.export import Exporter
from graphdb.interpret.match import Rows
from graphdb.interpret.procedures import run_call
from graphdb.interpret.subqueries import Subqueries


class Interpreter:
    """Runs one query over a context."""

    def __init__(self, context: Context, query: ast.Query | ast.Composite) -> None:
        self.context = context
        self.query = query
        context.subqueries = Subqueries(context, self._run_query)
        self._writer: Any = None

    def columns(self) -> list[str]:
        """Return the names of the result's columns; none where nothing is returned."""
        parts = self.query.parts if isinstance(self.query, ast.Composite) else (self.query.clauses,)
        last = parts[0][-1]
        if not isinstance(last, ast.ReturnClause):
            return []
        return self._last_columns or [clauses.column_name(item) for item in last.items]

    _last_columns: list[str] | None = None

    def run(self) -> Rows:
        """Run the query and return its rows, in the interpreter's terms."""
        return self._run_query(self.query, [{}], outermost=True)

    def _run_query(self, query: ast.Query | ast.Composite, rows: Rows, outermost: bool = False) -> Rows:
        if isinstance(query, ast.Query):
            return self._run_part(query.clauses, rows, outermost)
        parts = [self._run_part(part, [dict(row) for row in rows], outermost) for part in query.parts]
        return parts[0] if len(parts) == 1 else clauses.union(self.context, parts, query.keeps_all)

    def _run_part(self, part: tuple[ast.ClauseNode, ...], rows: Rows, outermost: bool) -> Rows:
        if not rows:
            return []
        scope = [name for name in rows[0] if not name.startswith("#")]
        for clause in part:
            rows = self._run_clause(clause, rows, scope, outermost)
        return rows

    def _run_clause(self, clause: ast.ClauseNode, rows: Rows, scope: list[str], outermost: bool) -> Rows:
        check_stop()
        match clause:
            case ast.MatchClause():
                rows = clauses.run_match(self.context, clause, rows)
                scope += [name for name in _introduced(clause) if name not in scope]
            case ast.UnwindClause():
                rows = clauses.run_unwind(self.context, clause, rows)
                scope.append(clause.variable.name)
            case ast.WithClause():
                projection = clauses.Projection(self.context, clause.returns, scope, clause.where)
                rows, scope[:] = projection.run(rows), projection.columns
            case ast.CallClause():
                rows = self._call(clause, rows, scope)
                scope += clause.columns
            case ast.ProcedureClause():
                rows = run_call(self.context, clause, rows, Exporter(self.context).value)
                scope += clause.columns
            case ast.ForeachClause():
                self._run_part((ast.UnwindClause(clause.source, clause.variable), *clause.updates), list(rows), False)
            case ast.ReturnClause():
                projection = clauses.Projection(self.context, clause, scope, None)
                rows, scope[:] = projection.run(rows), projection.columns
                if outermost:
                    self._last_columns = projection.columns
            case _:
                rows = self._write(clause, rows)
                scope += [name for name in _introduced(clause) if name not in scope]
        return rows

    def _call(self, clause: ast.CallClause, rows: Rows, scope: list[str]) -> Rows:
        """Return each row with each of the rows that a query makes of it."""
        names = scope if clause.imported is None else [variable.name for variable in clause.imported]
        absent = [dict.fromkeys(clause.columns)] if clause.optional else []
        found: Rows = []
        for row in self.context.watched(rows):
            made = self._run_query(clause.query, [{name: row[name] for name in names}])
            found += [{**row, **new} for new in made or absent]
        return found

    def _write(self, clause: ast.ClauseNode, rows: Rows) -> Rows:
        from graphdb.interpret.write import Writer

        if self._writer is None:
            self._writer = Writer(self.context)
        return self._writer.run(clause, rows)  # type: ignore[no-any-return]

    def finish(self) -> Any:
        """Check and keep what was written; return what changed, or None."""
        return None if self._writer is None else self._writer.finish()


def _introduced(clause: ast.ClauseNode) -> Iterator[str]:
    """Yield the names that a clause's patterns bring in."""
    from graphdb.semantics.patterns import names_of

    patterns = clause.patterns if isinstance(clause, (ast.MatchClause, ast.CreateClause)) else ()
    if isinstance(clause, ast.MergeClause):
        patterns = (clause.pattern,)
    for pattern in patterns:
        yield from names_of(pattern)
