"""The parts of a path pattern, one after the other: single edges, repeated edges, and repeated chains of edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphdb.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import free_variables


@dataclass(frozen=True, slots=True)
class Piece:
    """A chain of edges that follows itself ``low`` to ``high`` times (None: any number of times).

    Attributes
    ----------
    nodes, edges
        The chain; the outermost nodes are those around it, with what is said of them inside brackets.
    where
        Conditions, for each edge those that need nothing but it and its ends.
    group
        Whether its names are lists.
    """

    nodes: tuple[ast.NodePattern, ...]
    edges: tuple[ast.EdgePattern, ...]
    where: tuple[tuple[ast.Expression, ...], ...]
    low: int = 1
    high: int | None = 1
    group: bool = False

    @property
    def names(self) -> list[str]:
        """Its variables."""
        return names_of(*self.nodes, *self.edges)

    @property
    def bare(self) -> bool:
        """Whether it is edges of some labels, on which there are no conditions."""
        return (
            len(self.edges) == 1
            and self.edges[0].properties is None
            and self.edges[0].where is None
            and not any(self.where)
            and not any(map(conditions_on, self.nodes))
        )


def pieces_of(path: ast.PathPattern) -> list[Piece]:
    """Return the parts of a path pattern.

    Raises
    ------
    NotSupportedError
        A part has parts, a name or a selector of its own, or a condition that looks at several of its edges.
    """
    return [_piece(edge) for edge in path.edges]


def _piece(edge: ast.EdgePattern | ast.Subpath) -> Piece:
    low, high = (1, 1) if edge.repeat is None else (edge.repeat.low, edge.repeat.high)
    if high is not None and high < low:
        raise NotSupportedError("paths of no possible length are not supported in SQL")
    group = edge.repeat is not None
    if isinstance(edge, ast.EdgePattern):
        around = ast.NodePattern(span=edge.span)
        return Piece((around, around), (edge,), ((),), low, high, group)
    inner = edge.pattern
    edges = tuple(part for part in inner.edges if isinstance(part, ast.EdgePattern) and part.repeat is None)
    if len(edges) < len(inner.edges) or not edges or inner.variable or inner.mode or inner.selector:
        raise NotSupportedError("quantifiers, names or modes inside a part of a searched path are not supported in SQL")
    names = names_of(*inner.nodes, *edges)
    if len({*names}) < len(names):
        raise NotSupportedError("a vertex that comes twice in a part of a searched path is not supported in SQL")
    where: list[list[ast.Expression]] = [[] for _ in edges]
    for condition in conjuncts(edge.where):
        used = free_variables(condition)
        at = [i for i, known in enumerate(_known(inner.nodes, edges)) if used <= known]
        if not at:
            raise NotSupportedError("a condition on several edges of a searched path is not supported in SQL")
        where[at[0]].append(condition)
    return Piece(inner.nodes, edges, tuple(map(tuple, where)), low, high, group)


def _known(nodes: tuple[ast.NodePattern, ...], edges: tuple[ast.EdgePattern, ...]) -> Iterator[set[str]]:
    """Yield, for each edge, its name and those of its ends."""
    for i, edge in enumerate(edges):
        yield {*names_of(nodes[i], edge, nodes[i + 1])}


def names_of(*parts: ast.NodePattern | ast.EdgePattern | ast.PathPattern) -> list[str]:
    """Return the variables that name some parts of a pattern."""
    return [part.variable.name for part in parts if part.variable is not None]


def conditions_on(node: ast.NodePattern) -> bool:
    """Whether something is said of a node."""
    return node.labels is not None or node.iri is not None or node.properties is not None or node.where is not None
