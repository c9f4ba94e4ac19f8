"""The parts of a path pattern, one after the other: single edges, repeated edges, repeated chains of edges or parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import free_variables


@dataclass(frozen=True, slots=True)
class Piece:
    """A chain of edges that follows itself ``low`` to ``high`` times (None: any number of times).

    Attributes
    ----------
    nodes, edges
        The chain, each of its edges one edge or a part of its own; the outermost nodes are those around it, with what
        is said of them inside brackets.
    where
        Conditions, for each edge those that need nothing but it and its ends.
    across
        Conditions on several edges.
    group
        Whether its names are lists.
    """

    nodes: tuple[ast.NodePattern, ...]
    edges: tuple[ast.EdgePattern | Piece, ...]
    where: tuple[tuple[ast.Expression, ...], ...]
    low: int = 1
    high: int | None = 1
    group: bool = False
    across: tuple[ast.Expression, ...] = ()

    @property
    def names(self) -> list[str]:
        """Its variables."""
        own = names_of(*self.nodes, *(edge for edge in self.edges if isinstance(edge, ast.EdgePattern)))
        return list(dict.fromkeys([*own, *(n for edge in self.edges if isinstance(edge, Piece) for n in edge.names)]))

    @property
    def simple(self) -> bool:
        """Whether it is one edge."""
        return len(self.edges) == 1 and isinstance(self.edges[0], ast.EdgePattern)

    @property
    def nested(self) -> bool:
        """Whether there are parts in it."""
        return any(isinstance(edge, Piece) for edge in self.edges)

    @property
    def entwined(self) -> bool:
        """Whether only some of its edges go together: they have to fulfil a condition, or to share a vertex."""
        names = names_of(*self.nodes)
        return not self.simple and not self.nested and (bool(self.across) or len({*names}) < len(names))

    @property
    def longest(self) -> int | None:
        """How many edges it has at most; None for any number."""
        lengths = [edge.longest if isinstance(edge, Piece) else 1 for edge in self.edges]
        return None if self.high is None or None in lengths else self.high * sum(filter(None, lengths))

    def every_edge(self) -> Iterator[ast.EdgePattern]:
        """Yield all edges in it."""
        for edge in self.edges:
            yield from edge.every_edge() if isinstance(edge, Piece) else (edge,)

    @property
    def bare(self) -> bool:
        """Whether it is edges of some labels, on which there are no conditions."""
        edge = self.edges[0]
        return (
            len(self.edges) == 1
            and isinstance(edge, ast.EdgePattern)
            and edge.properties is None
            and edge.where is None
            and not any(self.where)
            and not any(map(conditions_on, self.nodes))
            and len({*names_of(*self.nodes)}) == len(names_of(*self.nodes))
        )


def pieces_of(path: ast.PathPattern) -> list[Piece] | None:
    """Return the parts of a path pattern.

    None where a part has a name or a mode of its own, no possible length, or parts and a condition on several edges.
    """
    found = [piece for edge in path.edges if (piece := _piece(edge)) is not None]
    return found if len(found) == len(path.edges) else None


def _piece(edge: ast.EdgePattern | ast.Subpath) -> Piece | None:
    low, high = (1, 1) if edge.repeat is None else (edge.repeat.low, edge.repeat.high)
    if high is not None and high < low:
        return None
    group = edge.repeat is not None
    if isinstance(edge, ast.EdgePattern):
        around = ast.NodePattern(span=edge.span)
        return Piece((around, around), (edge,), ((),), low, high, group)
    inner = edge.pattern
    if not inner.edges or inner.variable or inner.mode or inner.selector:
        return None
    edges = []
    for each in inner.edges:
        part = each if isinstance(each, ast.EdgePattern) and each.repeat is None else _piece(each)
        if part is None:
            return None
        edges.append(part)
    found = Piece(inner.nodes, tuple(edges), ((),) * len(edges), low, high, group)
    known = [{*names_of(*pair)} for pair in pairwise(inner.nodes)]
    for names, part in zip(known, edges, strict=True):
        names |= {*names_of(part)} if isinstance(part, ast.EdgePattern) else set()
    where: list[list[ast.Expression]] = [[] for _ in edges]
    across: list[ast.Expression] = []
    for condition in conjuncts(edge.where):
        used = free_variables(condition)
        alone = found.simple  # what it names besides is outside the path
        at = [i for i, part in enumerate(edges) if isinstance(part, ast.EdgePattern) and (alone or used <= known[i])]
        (where[at[0]] if at else across).append(condition)
    nodes, own = names_of(*inner.nodes), names_of(*(e for e in edges if isinstance(e, ast.EdgePattern)))
    again = len({*nodes}) < len(nodes)
    if len({*own}) < len(own) or not {*own}.isdisjoint(nodes) or (found.nested and (again or across)):
        return None
    return replace(found, where=tuple(map(tuple, where)), across=tuple(across))


def names_of(*parts: ast.NodePattern | ast.EdgePattern | ast.PathPattern) -> list[str]:
    """Return the variables that name some parts of a pattern."""
    return [part.variable.name for part in parts if part.variable is not None]


def conditions_on(node: ast.NodePattern) -> bool:
    """Whether something is said of a node."""
    return node.labels is not None or node.iri is not None or node.properties is not None or node.where is not None
