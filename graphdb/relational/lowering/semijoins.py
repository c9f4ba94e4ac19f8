"""Semijoins: patterns that must match around a vertex are steps of their own, before the match that they restrict.

A condition that names one vertex of the pattern, as ``(a)-[:KNOWS]->(:Person)`` or ``EXISTS { (a)-[:KNOWS*]->(b) }``,
is a set of vertices: those that the step finds are the candidates of ``a`` in the step after it.  Nothing is matched
while a query is lowered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from graphdb.common.values.types import BOOLEAN
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, conjuncts, variables_in
from graphdb.pattern.free import SUBQUERIES
from graphdb.pattern.graph import Wanted
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.rename import renamed
from graphdb.plan.estimates.cost import estimate
from graphdb.relational.lowering.joins.bindings import Joins
from graphdb.relational.program import Given, Step
from graphdb.relational.projection.relation import UNIT, Relation, Source
from graphdb.semantics.aggregation import is_aggregate
from graphdb.sql.value import SUBQUERY, SqlValue

_EXCLUDED = "vertex of an antijoin"
"""What it is called where patterns are compared: no user's name."""


@dataclass(frozen=True, slots=True)
class _VertexSet:
    """The vertices around which a pattern matches, of those that a name stands for."""

    name: str
    source: Source
    """SQL of the rows with their ids (column ``id``)."""
    parameters: dict[str, object]
    column: tuple[str, str] | None = None
    """The view of bindings, and its column, that they stand in as they are."""
    excluded: bool = False
    """Whether the name stands for none of them."""

    def of(self, vertex: int) -> Given:
        """Return it as what is given of a pattern vertex."""
        sql, reads = f"SELECT id FROM {self.source}", self.source.reads
        return Given(vertex, sql, self.parameters, reads, self.column, excluded=self.excluded)


class Semijoins(Joins):
    """Adds the steps of patterns that must match around a vertex."""

    _sets: dict[ast.Expression, _VertexSet]
    """Conditions of the part under way that are in a table of vertices."""
    _candidates_of: dict[str, list[_VertexSet]]
    """What the names of the part under way must be among."""

    def _semijoins(self, bound: BoundPattern) -> Iterator[Given]:
        """Yield the vertices around which other patterns match."""
        for number, info in enumerate(bound.vertices):
            yield from (found.of(number) for found in self._candidates_of.get(info.name, ()))
            for predicate in info.exists:
                (name,) = variables_in(predicate)
                variable = ast.Variable(name, predicate.span)
                # What is known of the vertex restricts these matches, too.
                nodes = (ast.NodePattern(variable, labels=labels) for labels in info.labels)
                known = tuple(ast.PathPattern((node,), (), predicate.span) for node in nodes)
                iris = [_named_by(variable, constant) for constant in info.iris]
                where = all_hold(iris, predicate.span)
                match = ast.MatchClause((predicate.pattern, *known), where=where, span=predicate.span)
                yield self._vertex_set(match, variable).of(number)

    def _with_vertex_sets(self, matches: Sequence[ast.MatchClause]) -> list[ast.MatchClause]:
        """Return MATCH clauses without the conditions that a path exists around one vertex: these are sets of vertices.

        Those that no path exists stay, and are known; so are all where the clauses have paths, whose ends no plan may
        match.  Of those that a plain pattern does not match the vertices around which it does are excluded, where it is
        no larger than what the clauses start from.
        """
        found, names = [], set[str]()
        plain = all(map(self._is_plain, matches))
        excluded: dict[ast.MatchClause, _VertexSet] = {}
        for match in matches:
            names |= variables_in(match.patterns)
            rest = []
            for condition in conjuncts(match.where):
                negated = isinstance(condition, ast.Unary) and condition.operator == "NOT"
                inner = condition.operand if isinstance(condition, ast.Unary) and negated else condition
                clause = _existence(inner)
                if plain and negated and clause is not None and (name := self._excludable(clause, matches)) is not None:
                    alike = renamed(clause, {name: _EXCLUDED})
                    if alike not in excluded:
                        excluded[alike] = self._vertex_set(clause, ast.Variable(name, condition.span), "antijoin")
                    vertices = replace(excluded[alike], name=name, excluded=True)
                    self._candidates_of.setdefault(name, []).append(vertices)
                    continue
                name = None if clause is None else _only_shared(clause, names)
                if clause is None or name is None:
                    rest.append(condition)
                    continue
                stays = negated or not plain
                vertices = self._vertex_set(clause, ast.Variable(name, condition.span), shown=stays)
                if stays:
                    rest.append(condition)
                    sql = f"SELECT id FROM {vertices.source}"
                    table = self._materialized(sql, vertices.source)
                    self._sets[inner] = replace(vertices, source=table)
                if not negated:
                    self._candidates_of.setdefault(name, []).append(vertices)
            found.append(replace(match, where=all_hold(rest, match.span)))
        return found

    def _with_known_set(self, relation: Relation, node: ast.Expression) -> Relation:
        """Return rows with a condition that is in a table of vertices as a known expression."""
        vertices = self._sets[node]
        variable = relation.variables[vertices.name]
        known = SqlValue(f"({variable.sql} IN (SELECT id FROM {vertices.source}))", BOOLEAN, effects=SUBQUERY)
        source = replace(relation.source, reads=relation.source.reads | vertices.source.reads)
        return replace(relation, source=source, known={**relation.known, node: known})

    def _excludable(self, clause: ast.MatchClause, matches: Sequence[ast.MatchClause]) -> str | None:
        """Return the vertex of MATCH clauses that must not be among those which a plain pattern matches around.

        None where it is more than that, or takes longer than to look around the vertices that are matched: where the
        pattern is larger than all that the clauses may start from.
        """
        names = variables_in(tuple(match.patterns for match in matches))
        labelled = {node.variable.name for node in _nodes(matches) if node.variable is not None and node.labels}
        name = _shared(clause, names)
        if name not in labelled or not self._is_plain(clause) or any(map(_is_selective, matches)):
            return None
        if any(isinstance(part, SUBQUERIES) for part in walk(clause.where)):
            return None
        sizes = [self._sizes(replace(match, where=None) for match in each) for each in ((clause,), matches)]
        return name if max(sizes[0]) <= min(sizes[1]) else None

    def _sizes(self, matches: Iterable[ast.MatchClause]) -> Sequence[float]:
        """Return how many vertices those of some clauses may be, conditions aside."""
        bound = self._bound(tuple(matches), UNIT)
        return estimate(self._pattern_of(bound, Wanted((), (), True, None)), self._snapshot.graph).sizes

    def _vertex_set(
        self, match: ast.MatchClause, variable: ast.Variable, words: str = "semijoin", *, shown: bool = False
    ) -> _VertexSet:
        """Add the steps of a pattern; return the vertices that a variable of it stands for in some match.

        SQL reads them where they are ``shown``.
        """
        returns = ast.ReturnClause((ast.ReturnItem(variable, variable.name, variable.name),), distinct=True)
        first = len(self._steps)
        relation = self._alone(match, returns)
        self._steps[first:] = [
            replace(step, words=words) if isinstance(step, Step) and step.words == "match" else step
            for step in self._steps[first:]
        ]
        value = relation.variables[variable.name]
        view = relation.source.view
        if not relation.where and view is not None and value.column is not None and not shown:
            as_they_are = (view, value.column) if self._number(relation, [variable.name]) else None
            self._steps[first:] = [
                replace(step, shown=as_they_are is None) if isinstance(step, Step) and step.view == view else step
                for step in self._steps[first:]
            ]
            source = Source.made(f"(SELECT {value.sql} AS id FROM {relation.source} b)", relation.source)
            return _VertexSet(variable.name, source, {}, as_they_are)
        sql, rows = self._projecting(relation).select([variable.name])
        source = Source.made(f"(SELECT c0 AS id FROM ({sql}))", rows.source)
        return _VertexSet(variable.name, source, dict(self._parameters.used(sql)))

    def _alone(self, match: ast.MatchClause, returns: ast.ReturnClause) -> Relation:
        """Lower a MATCH that has nothing to do with the rows; abstract: see
        :mod:`graphdb.relational.lowering.lower`.
        """
        raise NotImplementedError


def _named_by(variable: ast.Variable, constant: ast.Expression) -> ast.Expression:
    """Return the condition that a vertex has an IRI."""
    iri = isinstance(constant, ast.IriLiteral)
    named = variable if iri else ast.FunctionCall("iri", (variable,), span=variable.span)
    return ast.Comparison(("=",), (named, constant), variable.span)


def _only_shared(clause: ast.MatchClause, names: set[str]) -> str | None:
    """Return the vertex that a clause with a path shares with others, if that is all that it shares."""
    return None if all(path.plain for path in clause.patterns) else _shared(clause, names)


def _shared(clause: ast.MatchClause, names: set[str]) -> str | None:
    """Return the vertex that a clause shares with others, if that is all that it shares."""
    shared = variables_in(clause) & names
    nodes = {node.variable.name for node in _nodes((clause,)) if node.variable is not None}
    return shared.pop() if len(shared) == 1 and shared <= nodes else None


def _nodes(matches: Iterable[ast.MatchClause]) -> Iterator[ast.NodePattern]:
    return (node for match in matches for path in match.patterns for node in path.nodes)


def _is_selective(match: ast.MatchClause) -> bool:
    """Whether a clause says what some vertex, or a property of it, is."""
    inner = (node.where for node in _nodes((match,)))
    conditions = (condition for where in (match.where, *inner) for condition in conjuncts(where))
    given = any(isinstance(each, ast.In) or (isinstance(each, ast.Comparison) and "=" in each.operators)
                for each in conditions)  # fmt: skip
    return given or any(node.properties or node.iri for node in _nodes((match,)))


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
