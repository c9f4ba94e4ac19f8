"""A pattern query under way, paths of variable length included: which of the two ways it goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import conjuncts, is_edge_test, variables_in
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.paths.conditions import beside_paths
from graphdb.pattern.paths.pieces import names_of
from graphdb.pattern.paths.predicates import with_predicates
from graphdb.pattern.paths.search import variables_between
from graphdb.relational.path_patterns.order import apart
from graphdb.relational.paths.base import Waiting
from graphdb.relational.paths.closures import with_closures
from graphdb.relational.paths.selected import Selected, SelectedRun
from graphdb.relational.paths.steps import StepRun
from graphdb.relational.paths.unrolled import Unrolled, UnrolledRun
from graphdb.relational.program import Program
from graphdb.relational.projection.sql import Projection
from graphdb.relational.query import Prepared
from graphdb.results.decode import Arrays
from graphdb.results.result import Counted
from graphdb.semantics.aggregation import is_aggregate
from graphdb.sql.computing import Beforehand

if TYPE_CHECKING:
    from graphdb.relational.projection.relation import Relation

Ids = NDArray[np.int64]
Matches = tuple[ast.MatchClause, ...]


class PathRun(UnrolledRun, SelectedRun, StepRun):
    """Prepares and runs one query, which may have paths of variable length in it."""

    closures = True
    """Whether repeated edges of forests are closures, which are those of a whole label."""

    def prepare(self, query: ast.Query | ast.Composite) -> Prepared | Program:
        """Bind, find candidates, plan, and write the SQL after the match."""
        query = self._with_paths_as_found(query)
        found = _match_and_return(query)
        if found is None or _has_subqueries(*found):
            return super().prepare(query)
        matches, returns = found
        if all(path.plain for match in matches for path in match.patterns):
            return super().prepare(query)
        with self._snapshot.graph.watched(self.new_control().check):
            return self._prepare_paths(matches, returns) or super().prepare(query)

    def prepare_from(self, query: ast.Composite, start: Relation) -> Program:
        """Prepare a query that starts from rows which are there already."""
        found = self._with_paths_as_found(query)
        return super().prepare_from(ast.Composite((found.clauses,)) if isinstance(found, ast.Query) else found, start)

    def _with_paths_as_found(self, query: ast.Query | ast.Composite) -> ast.Query | ast.Composite:
        """Return a query whose paths are as they are searched for: conditions within them, forests as closures.

        What may fail is asked for where it stood.
        """
        query = beside_paths(self.with_lazy_branches(query))
        if isinstance(query, ast.Composite):
            query = with_predicates(query)
        if not self.closures:
            return query
        with self._snapshot.graph.watched(self.new_control().check):
            return with_closures(query, self._snapshot, self._text)

    def _prepare_paths(self, matches: Matches, returns: ast.ReturnClause) -> Prepared | None:
        """Prepare a query of one path by one search, or of several lengths as patterns; None where it takes more."""
        if any(path.cost is not None for match in matches for path in match.patterns):
            return None
        if not self._is_one_pattern(matches) or any(map(_asks_path, matches)):
            return None
        reachability = _any_shortest(matches, returns) if _drops_duplicates(returns) else None
        try:
            if reachability is not None and (found := self.prepare_selected(reachability, returns)) is not None:
                return found
            if any(path.selector is not None for match in matches for path in match.patterns):
                return self.prepare_selected(matches, returns)
            return self.prepare_unrolled(matches, returns)
        except Beforehand:
            return None

    # --- running

    def run(self, prepared: Prepared | Program) -> arrow.Table | Arrays | Counted:
        """Run the match and the SQL after it; the result in the engine's own terms."""
        if isinstance(prepared, Unrolled) and prepared.wanted.count_only:
            projection = prepared.projection
            return Counted(self.count_unrolled(prepared), len(projection.columns), projection.window)
        if isinstance(prepared, Selected) and prepared.sized:
            return Counted(self.number_found(prepared), len(prepared.projection.columns), prepared.projection.window)
        if isinstance(prepared, Selected) and prepared.direct is not None:
            found = self.projected(prepared, prepared.direct)
            if not isinstance(found, Waiting):
                return found
            with found.visible():
                return self._result(prepared.projection)
        return super().run(prepared)

    @contextmanager
    def bindings(self, prepared: Prepared | Program) -> Iterator[Projection]:
        """Run the match, and keep its rows visible to the SQL after it: the projection's that is yielded."""
        match prepared:
            case Unrolled():
                with self.unrolled(prepared):
                    yield prepared.projection
            case Selected():
                with self.selected(prepared):
                    yield prepared.projection
            case _:
                with super().bindings(prepared) as projection:
                    yield projection


def _match_and_return(query: ast.Query | ast.Composite) -> tuple[Matches, ast.ReturnClause] | None:
    """Return the parts of a query that is MATCH and RETURN with a path, or EXISTS, in it; None for any other."""
    if isinstance(query, ast.Query) or len(query.parts) != 1:
        return None
    *clauses, returns = query.parts[0]
    matches = tuple(clause for clause in clauses if isinstance(clause, ast.MatchClause) and not clause.optional)
    if not isinstance(returns, ast.ReturnClause) or not matches or len(matches) < len(clauses):
        return None
    return matches, returns


def _has_subqueries(matches: Matches, returns: ast.ReturnClause) -> bool:
    """Whether patterns are values or conditions, but for edges that the match tests."""
    rest = [condition for match in matches for condition in conjuncts(match.where) if not is_edge_test(condition)]
    patterns = tuple(match.patterns for match in matches)
    return any(isinstance(part, SUBQUERIES) for part in walk((patterns, tuple(rest), returns)))


def _asks_path(match: ast.MatchClause) -> bool:
    """Whether what is said of a vertex or an edge of a clause asks for what is on a path of it."""
    on_paths = {*names_of(*match.patterns)}
    for path in match.patterns:
        on_paths |= {name for name, (_, group) in variables_between(path.nodes, path.edges).items() if group}
    nodes = [(node.properties, node.where) for path in match.patterns for node in path.nodes]
    edges = (edge for path in match.patterns for edge in path.edges if isinstance(edge, ast.EdgePattern))
    said = (*nodes, *((edge.properties, edge.where) for edge in edges if edge.single))
    return not on_paths.isdisjoint(free_variables(said))


def _drops_duplicates(returns: ast.ReturnClause) -> bool:
    """Whether what is returned depends on the distinct rows alone."""
    calls = [part for item in returns.items for part in walk(item.expression) if is_aggregate(part)]
    if not calls:
        return returns.distinct
    functions = [call for call in calls if isinstance(call, ast.FunctionCall)]
    return len(functions) == len(calls) and all(f.distinct or f.name.lower() in ("min", "max") for f in functions)


def _any_shortest(matches: Matches, returns: ast.ReturnClause) -> Matches | None:
    """Return clauses in which one path of no matter what length is any shortest one: the same ends have one.

    None where there is no such path, or not just one.
    """
    matches = tuple(replace(m, patterns=tuple(p for path in m.patterns for p in apart(path))) for m in matches)
    unplain = [path for match in matches for path in match.patterns if not path.plain]
    if len(unplain) != 1 or len(unplain[0].edges) != 1 or unplain[0].selector is not None:
        return None
    (path,) = unplain
    repeat = path.edges[0].repeat
    walks = path.mode is ast.PathMode.WALK or any(m.mode is ast.MatchMode.REPEATABLE_ELEMENTS for m in matches)
    if repeat is None or repeat.low > 1 or path.variable is not None or (repeat.high is None and walks):
        return None
    others = tuple(other for match in matches for other in match.patterns if other is not path)
    elsewhere = variables_in((returns, path.nodes, others, tuple(match.where for match in matches)))
    if not elsewhere.isdisjoint(variables_in(path.edges)):
        return None
    chosen = replace(path, selector=ast.Selector(1, shortest=True))
    return tuple(
        replace(match, patterns=tuple(chosen if other is path else other for other in match.patterns))
        for match in matches
    )
