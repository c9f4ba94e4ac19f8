"""The order in which patterns with paths are joined: connected components of single edges, and the paths between them.

``(m {id: $x})-[:CITES*]->(p:Paper)<-[:WROTE]-(a)`` is two components, ``m`` and what is around ``p``, and a path.  All
at once they would be the product of both; joined one after the other, the path is searched for from ``m`` alone, and
the rest is matched around where it leads to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import free_variables, subqueries_in
from graphdb.pattern.paths.lengths import OF_PATHS, all_hold
from graphdb.pattern.paths.pieces import names_of


@dataclass(slots=True)
class Component:
    """Plain paths that vertices connect, each with the number of its clause."""

    paths: list[tuple[int, ast.PathPattern]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    @property
    def edges(self) -> int:
        """How many edges it has."""
        return sum(len(path.edges) for _, path in self.paths)

    def of(self, name: str) -> list[ast.PathPattern]:
        """Return what is said of one of its vertices, each as a pattern of its own."""
        nodes = [node for _, path in self.paths for node in path.nodes if names_of(node) == [name]]
        return [ast.PathPattern((node,), (), node.span) for node in dict.fromkeys(nodes)]


def components(plain: Sequence[ast.MatchClause]) -> list[Component]:
    """Return the components of clauses without repeated edges; what one of them names of another connects them."""
    found: list[Component] = []
    for number, match in enumerate(plain):
        for path in match.patterns:
            new = Component([(number, path)], free_variables(path))
            for other in [other for other in found if other.names & new.names]:
                found.remove(other)
                new = Component(other.paths + new.paths, other.names | new.names)
            found.append(new)
    return found


@dataclass(slots=True)
class Conditions:
    """The conditions of plain clauses, until what they name is there."""

    waiting: list[tuple[int, ast.Expression]]

    @classmethod
    def of(cls, plain: Sequence[ast.MatchClause]) -> Conditions:
        """Return all conditions of some clauses."""
        return cls([(i, condition) for i, match in enumerate(plain) for condition in conjuncts(match.where)])

    @property
    def names(self) -> set[str]:
        """What those name that wait."""
        return set[str]().union(*(free_variables(condition) for _, condition in self.waiting))

    def about(self, name: str) -> list[ast.Expression]:
        """Return the conditions on one variable alone; they go on waiting."""
        return [c for _, c in self.waiting if free_variables(c) == {name} and not any(subqueries_in(c))]

    def equate(self, names: Collection[str], known: Collection[str]) -> bool:
        """Whether something of variables ``names`` must equal something of others that are known."""
        equal = (free_variables(c) for _, c in self.waiting if isinstance(c, ast.Comparison) and c.operators == ("=",))
        return any(some & {*names} and some & {*known} and some <= {*names, *known} for some in equal)

    def clauses(
        self, chosen: Sequence[Component], plain: Sequence[ast.MatchClause], known: Collection[str]
    ) -> list[ast.MatchClause]:
        """Return components as clauses, with the conditions that can be tested then: these wait no more."""
        names = {*known}.union(*(component.names for component in chosen))
        ready = [(i, c) for i, c in self.waiting if free_variables(c) <= names]
        self.waiting = [each for each in self.waiting if each not in ready]
        paths = [each for component in chosen for each in component.paths]
        numbers = sorted({i for i, _ in paths})
        made = []
        for number in numbers:
            mine = [c for i, c in ready if i == number or (i not in numbers and number == numbers[-1])]
            patterns = tuple(path for i, path in paths if i == number)
            made.append(replace(plain[number], patterns=patterns, where=all_hold(mine, plain[number].span)))
        return made


def apart(path: ast.PathPattern) -> Iterator[ast.PathPattern]:
    """Yield a path without a name in pieces: each repeated edge is one of its own."""
    if path.plain or len(path.edges) == 1 or path.variable or path.mode is not None or path.selector is not None:
        yield path
        return
    nodes = [
        node
        if node.variable
        else replace(node, variable=ast.Variable(f"{OF_PATHS} node {path.span.start} {i}", node.span))
        for i, node in enumerate(path.nodes)
    ]
    bare = [ast.NodePattern(node.variable, span=node.span) for node in nodes]
    yield from (ast.PathPattern((node,), (), path.span) for node in nodes)
    for i, edge in enumerate(path.edges):
        yield ast.PathPattern((bare[i], bare[i + 1]), (edge,), edge.span)  # by which each is known
