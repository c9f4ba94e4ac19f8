"""Paths of any length in the patterns of a continuous query, apart from what delta plans match.

A path whose lengths are not a handful is no pattern.  But it comes or goes only with an edge that it has, or with a
fact of a vertex on it; so one of its ends reaches that, and that reaches the other end (:mod:`.reaching`).  Of such a
path only the ends can be asked for: what is between them may be steps of one search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.live.aggregates.distinct_values import NUMBER
from graphdb.pattern.paths.unroll import unroll

_VERTEX = "#vertex"
"""What the vertices of a path's steps are called, with their numbers: no user calls anything so."""


@dataclass(frozen=True, slots=True)
class Far:
    """A path of any length, and what its ends are called."""

    path: ast.PathPattern
    first: str | None
    last: str | None

    @property
    def may_be_empty(self) -> bool:
        """Whether it may have no edge, so that any vertex is one."""
        return all(edge.repeat is not None and edge.repeat.low == 0 for edge in self.path.edges)

    @property
    def may_skip(self) -> bool:
        """Whether a part of it of bounded length may have no edge: then its ends may be written as one vertex."""
        repeats = (part.repeat for part in walk(self.path) if isinstance(part, (ast.EdgePattern, ast.Subpath)))
        return any(each is not None and each.low == 0 and each.high is not None for each in repeats)

    def steps(self, span: ast.Span) -> ast.Query:
        """Return a query for a path that has each of its edges once, from :func:`vertex` 0 to the last one.

        It asks for nothing else of what is on the path.
        """
        edges = tuple(_steps(self.path.edges))
        nodes = tuple(ast.NodePattern(ast.Variable(vertex(i))) for i in range(len(edges) + 1))
        first = ast.ReturnItem(ast.Variable(vertex(0)), vertex(0), vertex(0))
        returns = ast.ReturnClause((first, ast.ReturnItem(ast.CountStar(), NUMBER, NUMBER)), span=span)
        match = ast.MatchClause((ast.PathPattern(nodes, edges),), mode=ast.MatchMode.REPEATABLE_ELEMENTS)
        return ast.Query((match,), returns, span=span)


def vertex(number: int) -> str:
    """Return what a vertex of a path's steps is called."""
    return f"{_VERTEX} {number}"


def apart(match: ast.MatchClause, at: Collection[str]) -> tuple[ast.MatchClause, tuple[Far, ...]]:
    """Return a clause without its paths of any length, whose ends it still has, and these.

    Paths are cut ``at`` vertices of some names, which others bind.
    """
    near, far = list[ast.PathPattern](), list[Far]()
    for path in match.patterns:
        if path.selector is not None or not _is_far(path):
            near.append(path)
            continue
        for piece in _cut(path, at):
            if _is_far(piece):
                ends = piece.nodes[0], piece.nodes[-1]
                far.append(Far(piece, *map(_name, ends)))
                near += [ast.PathPattern((node,), ()) for node in ends if node.variable is not None]
            else:
                near.append(piece)
    if not far:
        return match, ()
    # A path may have an edge twice, whatever the clause says of others.
    return replace(match, patterns=tuple(near), mode=ast.MatchMode.REPEATABLE_ELEMENTS), tuple(far)


def is_unbounded(match: ast.MatchClause) -> bool:
    """Whether a clause has a path of which no number says how long it may be at most."""
    return any(edge.repeat is not None and edge.repeat.high is None for path in match.patterns for edge in path.edges)


def _cut(path: ast.PathPattern, at: Collection[str]) -> Iterator[ast.PathPattern]:
    """Yield the parts of a path between vertices of some names."""
    named = (i for i in range(1, len(path.edges)) if _name(path.nodes[i]) in at)
    for begin, end in pairwise((0, *named, len(path.edges))):
        yield ast.PathPattern(path.nodes[begin : end + 1], path.edges[begin:end], path.span)


def _is_far(path: ast.PathPattern) -> bool:
    """Whether a path has lengths that no handful of patterns are."""
    if all(edge.repeat is None and isinstance(edge, ast.EdgePattern) for edge in path.edges):
        return False
    bare = ast.PathPattern(tuple(ast.NodePattern() for _ in path.nodes), tuple(map(_bare, path.edges)))
    return unroll((ast.MatchClause((bare,), mode=ast.MatchMode.REPEATABLE_ELEMENTS),), set()) is None


def _bare(edge: ast.EdgePattern | ast.Subpath) -> ast.EdgePattern | ast.Subpath:
    """Return an edge, or a part of a path, without names and conditions."""
    if isinstance(edge, ast.EdgePattern):
        return ast.EdgePattern(edge.direction, labels=edge.labels, repeat=edge.repeat)
    nodes = tuple(ast.NodePattern() for _ in edge.pattern.nodes)
    return ast.Subpath(ast.PathPattern(nodes, tuple(map(_bare, edge.pattern.edges))), repeat=edge.repeat)


def _steps(edges: tuple[ast.EdgePattern | ast.Subpath, ...]) -> Iterator[ast.EdgePattern]:
    for edge in edges:
        if isinstance(edge, ast.Subpath):
            yield from _steps(edge.pattern.edges)
        else:
            yield ast.EdgePattern(edge.direction, labels=edge.labels)


def _name(node: ast.NodePattern) -> str | None:
    return None if node.variable is None else node.variable.name
