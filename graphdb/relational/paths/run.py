"""A pattern query under way, paths of variable length included: which of the two ways it goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import BindError, NotSupportedError
from graphdb.common.values.types import BOOLEAN
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, conjuncts, variables_in
from graphdb.relational.path_joins import apart
from graphdb.relational.paths.base import Waiting
from graphdb.relational.paths.selected import Selected, SelectedRun
from graphdb.relational.paths.steps import StepRun
from graphdb.relational.paths.unrolled import Unrolled, UnrolledRun
from graphdb.relational.program import Program
from graphdb.relational.query import Prepared
from graphdb.results.decode import Arrays
from graphdb.results.result import Counted
from graphdb.semantics.aggregation import is_aggregate
from graphdb.sql.computing import Beforehand
from graphdb.sql.value import SUBQUERY, SqlValue
from graphdb.storage.arrays.arrow import table_of

if TYPE_CHECKING:
    import pyarrow as pa

Ids = NDArray[np.int64]
Matches = tuple[ast.MatchClause, ...]

_SET = "#set"
"""How the name of a set of vertices begins, where a pattern predicate stands for it."""


class PathRun(UnrolledRun, SelectedRun, StepRun):
    """Prepares and runs one query, which may have paths of variable length in it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sets: dict[str, Ids] = {}

    def prepare(self, query: ast.Query | ast.Composite) -> Prepared | Program:
        """Bind, find candidates, plan, and write the SQL after the match."""
        found = _match_and_return(query)
        if found is None:
            return super().prepare(query)
        matches, returns = found
        known = [variables_in(tuple(match.patterns for match in matches[: i + 1])) for i in range(len(matches))]
        matches = tuple(map(self._with_sets, matches, known))
        plain = all(path.plain for match in matches for path in match.patterns)
        if plain:
            return super().prepare(ast.Query(matches, returns, query.span) if self._sets else query)
        with self._snapshot.graph.watched(self.new_control().check):
            if _drops_duplicates(returns):
                try:
                    return self.prepare_selected(_any_shortest(matches, returns), returns)
                except (NotSupportedError, BindError, Beforehand):
                    pass
            try:
                if any(path.selector is not None for match in matches for path in match.patterns):
                    return self.prepare_selected(matches, returns)
                return self.prepare_unrolled(matches, returns)
            except (NotSupportedError, BindError, Beforehand):  # it is more than that; names were checked before
                return super().prepare(query)

    # --- paths as conditions

    def _with_sets(self, match: ast.MatchClause, outer: set[str]) -> ast.MatchClause:
        """Return a clause whose conditions that a path exists around one vertex are sets of such vertices."""
        conditions = tuple(conjuncts(match.where))
        changed = tuple(self._as_set(condition, outer) for condition in conditions)
        if all(new is old for new, old in zip(changed, conditions, strict=True)):
            return match
        return replace(match, where=changed[0] if len(changed) == 1 else ast.Boolean("AND", changed, match.span))

    def _as_set(self, condition: ast.Expression, outer: set[str]) -> ast.Expression:
        if isinstance(condition, ast.Unary) and condition.operator == "NOT":
            inner = self._as_set(condition.operand, outer)
            return condition if inner is condition.operand else replace(condition, operand=inner)
        clause = _existence(condition)
        if clause is None or all(path.plain for path in clause.patterns):
            return condition
        shared = variables_in(clause) & outer
        nodes = {node.variable.name for path in clause.patterns for node in path.nodes if node.variable is not None}
        if len(shared) != 1 or not shared <= nodes:
            return condition
        (name,) = shared
        variable = ast.Variable(name, condition.span)
        returns = ast.ReturnClause((ast.ReturnItem(variable, name, name),), distinct=True, span=condition.span)
        prepared = self.prepare(ast.Composite(((clause, returns),), span=condition.span))
        found = np.empty(0, np.int64)
        if self.left_out is not None:
            self.queries_left_out.append(prepared)
        else:
            with self.bindings(prepared):
                found = self._snapshot.connection.columns(prepared.shaped.sql, dict(prepared.shaped.parameters))["c0"]
        key = f"{_SET}{len(self._sets)}"
        self._sets[key] = np.sort(self._snapshot.store.to_vertices(np.asarray(found, np.int64)))
        ends = ast.NodePattern(variable), ast.NodePattern(iri=ast.IriLiteral(key))
        edge = ast.EdgePattern(ast.Direction.BOTH)
        return ast.PatternPredicate(ast.PathPattern(ends, (edge,), condition.span), condition.span)

    def _set_of(self, predicate: ast.PatternPredicate) -> Ids | None:
        iri = predicate.pattern.nodes[-1].iri
        return None if iri is None else self._sets.get(iri.iri)

    def _around(self, predicate: ast.PatternPredicate, outer: BoundPattern) -> Ids | None:
        found = self._set_of(predicate)
        if found is None:
            return super()._around(predicate, outer)
        return found if self.left_out is None else None

    def _exists(
        self, predicate: ast.PatternPredicate, outer: BoundPattern, variables: Mapping[str, SqlValue]
    ) -> SqlValue:
        found = self._set_of(predicate)
        if found is None:
            return super()._exists(predicate, outer, variables)
        view = self._snapshot.connection.temporary()
        columns = {"id": self._snapshot.store.to_terms(found)}
        self._lazy_stack = self._lazy_stack or ExitStack()
        self._lazy_stack.enter_context(self._snapshot.connection.view(view, table_of(columns)))
        self._views += 1
        (name,) = variables_in(predicate)
        return SqlValue(f"({variables[name].sql} IN (SELECT id FROM {view}))", BOOLEAN, effects=SUBQUERY)

    # --- running

    def run(self, prepared: Prepared | Program) -> pa.Table | Arrays | Counted:
        """Run the match and the SQL after it; the result in the engine's own terms."""
        if isinstance(prepared, Unrolled) and prepared.wanted.count_only:
            shaped = prepared.shaped
            return Counted(self.count_unrolled(prepared), len(shaped.columns), shaped.window)
        if isinstance(prepared, Selected) and prepared.sized:
            return Counted(self.number_found(prepared), len(prepared.shaped.columns), prepared.shaped.window)
        if isinstance(prepared, Selected) and prepared.direct is not None:
            found = self.projected(prepared, prepared.direct)
            if not isinstance(found, Waiting):
                return found
            with found.visible(), self._snapshot.connection.guard(self._left()) as raw:
                return raw.sql(prepared.shaped.sql, params=dict(prepared.shaped.parameters)).to_arrow_table()
        return super().run(prepared)

    @contextmanager
    def bindings(self, prepared: Prepared | Program) -> Iterator[None]:
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


def _match_and_return(query: ast.Query | ast.Composite) -> tuple[Matches, ast.ReturnClause] | None:
    """Return the parts of a query that is MATCH and RETURN with a path, or EXISTS, in it; None for any other."""
    if isinstance(query, ast.Query) or len(query.parts) != 1:
        return None
    *clauses, returns = query.parts[0]
    matches = tuple(clause for clause in clauses if isinstance(clause, ast.MatchClause) and not clause.optional)
    if not isinstance(returns, ast.ReturnClause) or not matches or len(matches) < len(clauses):
        return None
    return matches, returns


def _existence(condition: ast.Expression) -> ast.MatchClause | None:
    """Return the one MATCH clause of a condition that a pattern exists."""
    if isinstance(condition, ast.PatternPredicate):
        return ast.MatchClause((condition.pattern,), span=condition.span)
    if not isinstance(condition, ast.Subquery) or condition.kind.upper() != "EXISTS":
        return None
    query = condition.query
    clauses = query.clauses if isinstance(query, ast.Query) else query.parts[0] if len(query.parts) == 1 else ()
    first = clauses[0] if clauses else None
    rest_returns = all(isinstance(clause, ast.ReturnClause) and clause.limit is None for clause in clauses[1:])
    if not isinstance(first, ast.MatchClause) or first.optional or not rest_returns or len(clauses) > 2:
        return None
    return None if any(is_aggregate(part) for part in walk(clauses[1:])) else first


def _drops_duplicates(returns: ast.ReturnClause) -> bool:
    """Whether what is returned depends on the distinct rows alone."""
    calls = [part for item in returns.items for part in walk(item.expression) if is_aggregate(part)]
    if not calls:
        return returns.distinct
    functions = [call for call in calls if isinstance(call, ast.FunctionCall)]
    return len(functions) == len(calls) and all(f.distinct or f.name.lower() in ("min", "max") for f in functions)


def _any_shortest(matches: Matches, returns: ast.ReturnClause) -> Matches:
    """Return clauses in which one path of no matter what length is any shortest one: the same ends have one.

    Raises
    ------
    NotSupportedError
        There is no such path, or not just one.
    """
    matches = tuple(replace(m, patterns=tuple(p for path in m.patterns for p in apart(path))) for m in matches)
    unplain = [path for match in matches for path in match.patterns if not path.plain]
    if len(unplain) != 1 or len(unplain[0].edges) != 1 or unplain[0].selector is not None:
        raise NotSupportedError("such paths are not reachability")
    (path,) = unplain
    repeat = path.edges[0].repeat
    walks = path.mode is ast.PathMode.WALK or any(m.mode is ast.MatchMode.REPEATABLE_ELEMENTS for m in matches)
    if repeat is None or repeat.low > 1 or path.variable is not None or (repeat.high is None and walks):
        raise NotSupportedError("such paths are not reachability")
    others = tuple(other for match in matches for other in match.patterns if other is not path)
    elsewhere = variables_in((returns, path.nodes, others, tuple(match.where for match in matches)))
    if not elsewhere.isdisjoint(variables_in(path.edges)):
        raise NotSupportedError("which edges such paths take is asked for")
    chosen = replace(path, selector=ast.Selector(1, shortest=True))
    return tuple(
        replace(match, patterns=tuple(chosen if other is path else other for other in match.patterns))
        for match in matches
    )
