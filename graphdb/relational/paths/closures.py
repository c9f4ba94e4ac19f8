"""Repeated edges as single edges of a transitive closure, wherever two vertices are joined by at most one path.

A message replies to one message, a part belongs to one whole: ``(m)-[:REPLY_OF*0..]->(p:Post)`` has at most one path
between two ends, so that trails and reachability are the same.  The planner orders such an edge with all others of the
pattern, from whichever end is selective, and what matches single edges (joins, OPTIONAL MATCH, subqueries, counts
without enumeration) takes it as it is.  Whether an edge label is so, the data graph says
(:mod:`graphdb.storage.graph.derived.closure`), with what the pattern says of the end that is above the other: of all
messages that one replies to, one is a post.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise, takewhile

from graphdb.common.errors import BindError
from graphdb.grammar import syntax as ast
from graphdb.grammar.compose import is_plain
from graphdb.grammar.walk import walk
from graphdb.pattern.labels import edge_labels
from graphdb.pattern.paths.pieces import names_of
from graphdb.pattern.rename import rewritten
from graphdb.relational.snapshot import Snapshot

_MODES = (ast.MatchMode.DIFFERENT_EDGES, ast.MatchMode.REPEATABLE_ELEMENTS)

_Patterns = Sequence[ast.PathPattern]


def with_closures(query: ast.Query | ast.Composite, snapshot: Snapshot, text: str) -> ast.Query | ast.Composite:
    """Return a query in which repeated edges are single edges of a closure, where they can be."""
    if isinstance(query, ast.Query):
        return query  # of plain patterns: those of its subqueries are, too
    edges = (part for part in walk(query) if isinstance(part, ast.EdgePattern))
    if not any(_may_be_one(edge) for edge in edges):
        return query
    closures = _Closures(query, snapshot, text)
    found = rewritten(query, closures.change)
    *clauses, last = found.parts[0]
    matches = [clause for clause in clauses if isinstance(clause, ast.MatchClause)]
    if len(found.parts) > 1 or not isinstance(last, ast.ReturnClause) or not matches or len(matches) < len(clauses):
        return found
    return ast.Query(tuple(matches), last, found.span) if is_plain(matches, last) else found


class _Closures:
    """What is known of one query's patterns."""

    def __init__(self, query: ast.Composite, snapshot: Snapshot, text: str) -> None:
        self._snapshot = snapshot
        self._text = text
        self._said: set[str] = set()
        """The variables of vertices with edges, labels or properties, as far as this is said where they are bound: by
        the clauses before, the clause itself, and those that its rows must match next."""
        self._to_literals = any(
            self._leads_to_literals(edge) for edge in walk(query) if isinstance(edge, ast.EdgePattern)
        )

    def change(self, part: object) -> object:
        """Return what stands in the place of a piece of syntax; None for the same."""
        match part:
            case ast.Composite(parts):
                return replace(part, parts=tuple(map(self._clauses, parts)))
            case ast.Query(matches, returns):
                found = self._clauses((*matches, returns))
                return replace(part, matches=found[:-1], returns=found[-1])  # type: ignore[arg-type]
            case ast.CallClause(query, imported):
                seen = self._said if imported is None else self._said & {name.name for name in imported}
                with self._knowing(seen):
                    return replace(part, query=rewritten(query, self.change))
            case ast.PatternPredicate(pattern):
                with self._knowing(self._said | {*_said_of((pattern,))}):
                    (pattern,) = self._patterns((pattern,))
                return replace(part, pattern=pattern)
            case ast.PatternComprehension(pattern=pattern):
                with self._knowing(self._said | {*_said_of((pattern,))}):
                    (pattern,) = self._patterns((pattern,))
                    where, result = rewritten(part.where, self.change), rewritten(part.result, self.change)
                return replace(part, pattern=pattern, where=where, result=result)
        return None

    def _clauses(self, clauses: Sequence[ast.ClauseNode]) -> tuple[ast.ClauseNode, ...]:
        """Return clauses that follow each other."""
        found: list[ast.ClauseNode] = []
        known = self._said
        for at, clause in enumerate(clauses):
            if not isinstance(clause, ast.MatchClause):
                with self._knowing(known):
                    found.append(rewritten(clause, self.change))
                if isinstance(clause, ast.WithClause):
                    known = _handed_on(clause.returns, known)
                continue
            own = known | {*_said_of(clause.patterns)}
            with self._knowing(own if clause.optional else own | _said_next(clauses[at + 1 :])):
                found.append(self._match(clause))
            known = own
        return tuple(found)

    def _match(self, clause: ast.MatchClause) -> ast.MatchClause:
        if clause.mode not in _MODES:
            return replace(
                clause, patterns=rewritten(clause.patterns, self.change), where=rewritten(clause.where, self.change)
            )
        patterns = self._patterns(clause.patterns, clause.mode)
        return replace(clause, patterns=patterns, where=rewritten(clause.where, self.change))

    @contextmanager
    def _knowing(self, said: set[str]) -> Iterator[None]:
        """Read a piece of syntax in which other variables are known to stand for such vertices."""
        before, self._said = self._said, said
        try:
            yield
        finally:
            self._said = before

    def _patterns(
        self, patterns: _Patterns, mode: ast.MatchMode = ast.MatchMode.DIFFERENT_EDGES
    ) -> tuple[ast.PathPattern, ...]:
        found = []
        for path in patterns:
            plain = path.variable is None and path.mode is None and path.selector is None
            edges = tuple(
                self._edge(edge, ends, patterns, mode) if plain and isinstance(edge, ast.EdgePattern) else edge
                for edge, ends in zip(path.edges, pairwise(path.nodes), strict=True)
            )
            found.append(rewritten(replace(path, edges=edges), self.change))
        return tuple(found)

    def _edge(
        self,
        edge: ast.EdgePattern,
        ends: tuple[ast.NodePattern, ast.NodePattern],
        patterns: _Patterns,
        mode: ast.MatchMode,
    ) -> ast.EdgePattern:
        """Return an edge with the number of the closure that it is one edge of, if it is."""
        label = self._label_of(edge) if _may_be_one(edge) else None
        if label is None or edge.repeat is None:
            return edge
        if mode is ast.MatchMode.DIFFERENT_EDGES and any(self._overlaps(e, label) for e in _edges(patterns, edge)):
            return edge
        repeat = edge.repeat
        if repeat.low == 0 and (self._to_literals or not any(_is_said(end, self._said) for end in ends)):
            return edge  # of 0 edges, the ends may be what no edge of the label is at
        graph = self._snapshot.graph
        upper = ends[(graph.upwards(label) == "out") == (edge.direction is ast.Direction.OUT)]
        for within in (*self._vertex_labels(upper, patterns), None):
            if (closure := graph.closure(label, repeat.low, repeat.high, within)) is not None:
                return replace(edge, closure=closure)
        return edge

    def _vertex_labels(self, node: ast.NodePattern, patterns: _Patterns) -> list[int]:
        """Return the vertex labels that a clause's patterns say a vertex has."""
        names = self._snapshot.names
        if names.with_subclasses:
            return []
        nodes = [node]
        if node.variable is not None:
            nodes += (each for path in patterns for each in path.nodes if each.variable == node.variable)
        with suppress(BindError):
            chains = [names.chains(chain.words) for each in nodes for chain in _all_of(each.labels)]
            found = (names.vertex_label(words, self._text).id for chain in chains for words in chain)
            return [*dict.fromkeys(found)]
        return []

    def _label_of(self, edge: ast.EdgePattern) -> int | None:
        """Return the one label of an edge whose edges are triples between resources."""
        labels = self._labels(edge)
        if labels is None or len(labels) != 1 or labels[0] in self._snapshot.edges.parallel:
            return None
        known = self._snapshot.names.edge_labels.get(labels[0])
        return None if known is None or known.kinds else labels[0]

    def _labels(self, edge: ast.EdgePattern) -> tuple[int, ...] | None:
        """Return the labels of an edge; None for any, and where something is wrong with them."""
        with suppress(BindError):
            return None if edge.labels is None else edge_labels(edge.labels, self._snapshot.names, self._text)
        return None

    def _overlaps(self, edge: ast.EdgePattern, label: int) -> bool:
        labels = self._labels(edge)
        return labels is None or label in labels

    def _leads_to_literals(self, edge: ast.EdgePattern) -> bool:
        known = self._snapshot.names.edge_labels
        return any(known[label].kinds for label in self._labels(edge) or () if label in known)


def _all_of(labels: ast.LabelExpression | None) -> Iterator[ast.LabelChain]:
    """Yield names of labels that must all hold where an expression does."""
    match labels:
        case ast.LabelChain():
            yield labels
        case ast.LabelAnd():
            for operand in labels.operands:
                yield from _all_of(operand)


def _may_be_one(edge: ast.EdgePattern) -> bool:
    """Whether an edge is repeated, several numbers of times, in one direction, and nothing more is said of it."""
    repeat = edge.repeat
    if repeat is None or repeat.low == repeat.high or (repeat.high is not None and repeat.high < repeat.low):
        return False
    said = edge.variable is not None or edge.properties is not None or edge.where is not None
    return not said and edge.labels is not None and edge.direction is not ast.Direction.BOTH


def _edges(patterns: _Patterns, but: ast.EdgePattern) -> Iterator[ast.EdgePattern]:
    """Yield the other edges of a clause, those inside parts of paths among them."""
    for path in patterns:
        for edge in path.edges:
            if isinstance(edge, ast.Subpath):
                yield from _edges((edge.pattern,), but)
            elif edge is not but:
                yield edge


def _said_of(patterns: _Patterns) -> Iterator[str]:
    """Yield the variables that stand for vertices with edges, labels or properties, as some paths say."""
    for path in patterns:
        yield from names_of(*(node for node in path.nodes if node.labels is not None or node.properties is not None))
        for edge, ends in zip(path.edges, pairwise(path.nodes), strict=True):
            if isinstance(edge, ast.EdgePattern) and edge.repeat is None:
                yield from names_of(*ends)


def _said_next(clauses: Sequence[ast.ClauseNode]) -> set[str]:
    """Return what the next clauses say, up to the first that is no MATCH, of all rows that are left."""
    matches = takewhile(lambda clause: isinstance(clause, ast.MatchClause), clauses)
    required = (match for match in matches if isinstance(match, ast.MatchClause) and not match.optional)
    return {name for match in required for name in _said_of(match.patterns)}


def _handed_on(returns: ast.ReturnClause, known: set[str]) -> set[str]:
    """Return which names stand for such vertices after WITH."""
    found = {*known} if returns.star else set()
    for item in returns.items:
        name = item.alias or item.text
        found.discard(name)
        if isinstance(item.expression, ast.Variable) and item.expression.name in known:
            found.add(name)
    return found


def _is_said(node: ast.NodePattern, said: set[str]) -> bool:
    if node.labels is not None or node.properties is not None:
        return True
    return node.variable is not None and node.variable.name in said
