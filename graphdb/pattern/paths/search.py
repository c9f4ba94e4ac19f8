"""What is searched for between two vertices of a pattern: a path, or the part of one that is no single edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphdb.grammar import syntax as ast
from graphdb.pattern.paths.lengths import OF_PATHS

NODES_DIFFER = (ast.MatchMode.DIFFERENT_NODES, ast.MatchMode.INDUCED)
"""Match modes under which no vertex is used twice."""


@dataclass(frozen=True, slots=True)
class PathSearch:
    """Paths from the first of some nodes to the last.

    Attributes
    ----------
    nodes, edges
        The pattern; what is said of its two ends is not asked here.
    names
        The names of the nodes, those of unnamed ones too: what has one name is one vertex.
    whole
        The path pattern with its mode and selector, where ``nodes`` and ``edges`` are all of it; None for one edge
        or part of a path that is matched in openCypher's way.
    key
        The name under which rows hold the path.
    match_mode
        The mode of the MATCH clause.
    outer
        The names of vertices that rows hold beside the path.
    """

    nodes: tuple[ast.NodePattern, ...]
    names: tuple[str, ...]
    edges: tuple[ast.EdgePattern | ast.Subpath, ...]
    whole: ast.PathPattern | None
    key: str
    match_mode: ast.MatchMode
    outer: frozenset[str] = frozenset()

    @property
    def inner(self) -> str:
        """The name under which rows hold the path's vertices but for the :attr:`outer` ones."""
        return f"{OF_PATHS} inner vertices of {self.key}"

    def renamed(self, variable: str) -> str:
        """Return the name under which rows hold what a variable is on the path, where they have that variable."""
        return f"{OF_PATHS} {variable} of {self.key}"

    @property
    def selector(self) -> ast.Selector | None:
        """Which paths are selected of those between the same ends; None for all."""
        return None if self.whole is None else self.whole.selector

    @property
    def nodes_differ(self) -> bool:
        """Whether no vertex of the match is used twice."""
        return self.match_mode in NODES_DIFFER

    @property
    def edges_differ(self) -> bool:
        """Whether the path may not take edges of the match."""
        return self.match_mode is not ast.MatchMode.REPEATABLE_ELEMENTS and self.mode is not ast.PathMode.WALK

    @property
    def mode(self) -> ast.PathMode:
        """What may not come twice on a path."""
        if self.whole is not None and self.whole.mode is not None:
            return self.whole.mode
        match self.match_mode:
            case ast.MatchMode.DIFFERENT_EDGES:
                return ast.PathMode.TRAIL
            case ast.MatchMode.REPEATABLE_ELEMENTS:
                return ast.PathMode.WALK
        again = len(self.names) - len({*self.names})
        if not again:
            return ast.PathMode.ACYCLIC
        # What is written twice is one vertex; which of a path's vertices are, only the whole path tells.
        closed = again == 1 and self.names[0] == self.names[-1]
        return ast.PathMode.SIMPLE if closed else ast.PathMode.TRAIL

    @property
    def variables(self) -> dict[str, tuple[bool, bool]]:
        """The variables between its ends: whether each is an edge, and whether it is a list of what is repeated."""
        return variables_between(self.nodes, self.edges)


def variables_between(
    nodes: tuple[ast.NodePattern, ...], edges: tuple[ast.EdgePattern | ast.Subpath, ...]
) -> dict[str, tuple[bool, bool]]:
    """Return the variables of a path but for its ends; see :attr:`PathSearch.variables`.

    Single edges of plain paths are among them.
    """
    return dict(_variables(nodes[1:-1], edges, False))


def _variables(
    nodes: tuple[ast.NodePattern, ...], edges: tuple[ast.EdgePattern | ast.Subpath, ...], group: bool
) -> Iterator[tuple[str, tuple[bool, bool]]]:
    yield from ((node.variable.name, (False, group)) for node in nodes if node.variable is not None)
    for edge in edges:
        repeated = group or edge.repeat is not None
        if isinstance(edge, ast.Subpath):
            yield from _variables(edge.pattern.nodes, edge.pattern.edges, repeated)
        elif edge.variable is not None:
            yield edge.variable.name, (True, repeated)


@dataclass(frozen=True, slots=True)
class Differing:
    """That the vertices of a whole match differ, and if ``induced`` that no edge between them is left out.

    All are names of what rows hold: vertices, lists of vertices, and edges and paths.
    """

    vertices: tuple[str, ...]
    inner: tuple[str, ...]
    edges: tuple[str, ...]
    induced: bool
