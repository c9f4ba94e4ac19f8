"""A pattern query under way, paths of variable length included: which of the two ways it goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphdb.grammar import syntax as ast
from graphdb.paths.selected import Selected, SelectedRun
from graphdb.paths.unrolled import Unrolled, UnrolledRun
from graphdb.query import Prepared
from graphdb.result import Counted

if TYPE_CHECKING:
    import pyarrow as pa


class PathRun(UnrolledRun, SelectedRun):
    """Prepares and runs one query, which may have paths of variable length in it."""

    def prepare(self, query: ast.Query | ast.Composite) -> Prepared:
        """Bind, find candidates, plan, and write the SQL after the match."""
        found = _path_query(query) if isinstance(query, ast.Composite) else None
        if found is None:
            return super().prepare(query)
        matches, returns = found
        with self._snapshot.graph.watched(self.new_control().check):
            if any(path.selector is not None for match in matches for path in match.patterns):
                return self.prepare_selected(matches, returns)
            return self.prepare_unrolled(matches, returns)

    def run(self, prepared: Prepared) -> pa.Table | Counted:
        """Run the match and the SQL after it; the result in the engine's own terms."""
        if isinstance(prepared, Unrolled) and prepared.wanted.count_only:
            shaped = prepared.shaped
            return Counted(self.count_unrolled(prepared), len(shaped.columns), shaped.window)
        return super().run(prepared)

    @contextmanager
    def bindings(self, prepared: Prepared) -> Iterator[None]:
        """Run the match, and keep its rows visible to the shaped SQL."""
        match prepared:
            case Unrolled():
                shown = self.unrolled(prepared)
            case Selected():
                shown = self.selected(prepared)
            case _:
                shown = super().bindings(prepared)
        with shown:
            yield


def _path_query(query: ast.Composite) -> tuple[tuple[ast.MatchClause, ...], ast.ReturnClause] | None:
    """Return the parts of a query that is MATCH and RETURN with a path among its patterns; None for any other."""
    if len(query.parts) != 1:
        return None
    *clauses, returns = query.parts[0]
    matches = tuple(clause for clause in clauses if isinstance(clause, ast.MatchClause) and not clause.optional)
    if not isinstance(returns, ast.ReturnClause) or not matches or len(matches) < len(clauses):
        return None
    return None if all(path.plain for match in matches for path in match.patterns) else (matches, returns)
