"""Paths of bounded length as plain patterns: one version of a query's MATCH clauses for each number of repetitions.

``(a)-[:knows*1..2]->(b)`` is ``(a)-[:knows]->(b)`` and ``(a)-[:knows]->()-[:knows]->(b)``: each version goes the way of
any pattern, with its order, its counting and its executors, and the rows of all versions together are the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from graphdb.common.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import conjuncts, variables_in
from graphdb.pattern.rename import renamed

_MOST_VERSIONS = 16
_MOST_EDGES = 12
"""Edges of one version."""

_NODES_DIFFER = (ast.MatchMode.DIFFERENT_NODES, ast.MatchMode.INDUCED)

_MODES = {
    ast.PathMode.WALK: ast.MatchMode.REPEATABLE_ELEMENTS,
    ast.PathMode.TRAIL: ast.MatchMode.DIFFERENT_EDGES,
    ast.PathMode.ACYCLIC: ast.MatchMode.DIFFERENT_NODES,
}


@dataclass(frozen=True, slots=True)
class Trace:
    """A path of a version: the names of its vertices and of the edges between them."""

    vertices: tuple[str, ...]
    edges: tuple[str, ...]


@dataclass(slots=True)
class Version:
    """MATCH clauses of plain patterns.

    Attributes
    ----------
    same
        Variables that are another one here, because nothing is between them.
    paths
        Path variables.
    lists
        Variables of repeated edges: the names of the edges.
    """

    matches: tuple[ast.MatchClause, ...] = ()
    same: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Trace] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)


def unroll(matches: tuple[ast.MatchClause, ...], needed: set[str]) -> list[Version]:
    """Return the versions of some MATCH clauses, shortest first.

    Parameters
    ----------
    needed
        The variables that are named after the match.

    Raises
    ------
    NotSupportedError
        There are too many versions, no upper bound, or a selector; or a name means something else in each repetition.
    """
    choices = [choice for match in matches for path in match.patterns for choice in _lengths(path, match.mode)]
    combined = 1
    for choice in choices:
        combined *= len(choice)
    if not 0 < combined <= _MOST_VERSIONS:
        raise NotSupportedError("so many (or no) lengths of paths are not supported as plain patterns")
    unrolled = (_Unroller(numbers, needed).version(matches) for numbers in itertools.product(*choices))
    versions = [version for version in unrolled if version is not None]
    if not versions:
        raise NotSupportedError("paths of no possible length are not supported as plain patterns")
    if any(sum(len(path.edges) for match in v.matches for path in match.patterns) > _MOST_EDGES for v in versions):
        raise NotSupportedError("so long paths are not supported as plain patterns")
    return versions


def is_plain(match: ast.MatchClause) -> bool:
    """Whether none of a clause's paths repeats anything or has a selector."""
    return all(path.plain for path in match.patterns)


def plain_versions(
    matches: Sequence[ast.MatchClause], needed: Collection[str], given: Collection[str]
) -> list[Version]:
    """Return the versions of MATCH clauses whose rows are those of the vertices and single edges alone.

    ``given`` are the names that are known before the match.

    Raises
    ------
    NotSupportedError
        They are not: a path, a list of edges, or what was given would have to be made or compared.
    """
    versions = unroll(tuple(matches), {*needed})
    for version in versions:
        if ({*needed} | variables_in(version.matches)) & {*version.paths, *version.lists}:
            raise NotSupportedError("paths and their edges as values beside such clauses are not supported in SQL")
        if not {*version.same, *version.lists}.isdisjoint(given):
            raise NotSupportedError("paths of no edge to what is given, and given edges, are not supported in SQL")
    return versions


class _Unroller:
    """Writes one version; ``numbers`` says how often each repeated piece comes, in the order written."""

    def __init__(self, numbers: tuple[int, ...], needed: set[str]) -> None:
        self._numbers: Iterator[int] = iter(numbers)
        self._needed = needed
        self._fresh = itertools.count()
        self._found = Version()
        self._distinct: list[tuple[str, ...]] = []
        """Vertices that must differ from each other."""

    def version(self, matches: tuple[ast.MatchClause, ...]) -> Version | None:
        """Return the version; None where vertices that must differ are one, because nothing is between them."""
        clauses: list[ast.MatchClause] = []
        for match in matches:
            clauses += self._clause(match)
        same = self._found.same
        same.update({name: self._root(name) for name in same})
        if any(len({*map(self._root, names)}) < len(names) for names in self._distinct):
            return None
        self._found.matches = tuple(renamed(tuple(clauses), same))
        paths, lists = self._found.paths, self._found.lists
        for name, trace in paths.items():
            paths[name] = Trace(tuple(same.get(vertex, vertex) for vertex in trace.vertices), trace.edges)
        self._found.lists = dict(lists)
        return self._found

    def _name(self) -> str:
        return f"#u{next(self._fresh)}"

    def _root(self, name: str) -> str:
        """Return the vertex that stands for all that are the same as one."""
        while name in self._found.same:
            name = self._found.same[name]
        return name

    def _merge(self, one: str, other: str) -> None:
        """Note that nothing is between two vertices."""
        one, other = self._root(one), self._root(other)
        if one != other:
            self._found.same[other] = one

    def _clause(self, match: ast.MatchClause) -> Iterator[ast.MatchClause]:
        nodes_differ = match.mode in _NODES_DIFFER
        mentioned: list[str] = []
        patterns: list[ast.PathPattern] = []
        own: list[ast.MatchClause] = []
        where: list[ast.Expression] = list(conjuncts(match.where))
        for path in match.patterns:
            if path.selector is not None:
                raise NotSupportedError("selectors are not supported as plain patterns")
            pieces, conditions, places = self._path(path)
            where += conditions
            mentioned += places
            if path.mode is None:
                patterns += pieces
                continue
            if path.mode not in _MODES:
                raise NotSupportedError("SIMPLE paths are not supported as plain patterns")
            named = [node.variable.name for node in path.nodes if node.variable is not None]
            if path.mode is ast.PathMode.ACYCLIC and len({*named}) < len(named):
                raise NotSupportedError("an acyclic path back to its start is not supported as a plain pattern")
            others = any(other.edges for other in match.patterns if other is not path)
            if nodes_differ or (others and path.mode is not ast.PathMode.WALK):
                raise NotSupportedError("a path mode beside other edges is not supported as a plain pattern")
            if path.mode is ast.PathMode.ACYCLIC:
                self._distinct.append(tuple(places))
            own.append(ast.MatchClause(tuple(pieces), _MODES[path.mode], span=match.span))
        if nodes_differ:
            self._distinct.append(tuple(dict.fromkeys(mentioned)))
        clauses = own
        if patterns:
            clauses = [*own, ast.MatchClause(tuple(patterns), match.mode, span=match.span)]
        if where:
            condition = where[0] if len(where) == 1 else ast.Boolean("AND", tuple(where), match.span)
            clauses[-1] = replace(clauses[-1], where=condition)
        yield from clauses

    def _path(self, path: ast.PathPattern) -> tuple[list[ast.PathPattern], list[ast.Expression], list[str]]:
        """Write one path as plain ones; with the conditions of its parts, and the vertices that it passes."""
        pieces: list[ast.PathPattern] = []
        where: list[ast.Expression] = []
        nodes = [node if node.variable else replace(node, variable=self._variable(node)) for node in path.nodes]
        vertices, edges = [_name_of(nodes[0])], []
        for i, edge in enumerate(path.edges):
            left, right = _name_of(nodes[i]), _name_of(nodes[i + 1])
            copies: list[tuple[ast.EdgePattern, str]] = []
            if edge.repeat is None and isinstance(edge, ast.EdgePattern):
                if edge.variable is None and path.variable is not None:
                    edge = replace(edge, variable=self._variable(edge))
                copies = [(edge, right)]
            else:
                copies = list(self._copies(edge, left, right, pieces, where))
            at = left
            for copy, to in copies:
                pieces.append(ast.PathPattern((_bare(at, copy), _bare(to, copy)), (copy,), path.span))
                vertices.append(to)
                edges.append(copy.variable.name if copy.variable is not None else "")
                at = to
        pieces += [ast.PathPattern((node,), (), path.span) for node in nodes if not _is_bare(node)]
        # A vertex that nothing else mentions must be mentioned.
        mentioned = variables_in(tuple(pieces))
        pieces += [ast.PathPattern((node,), (), path.span) for node in nodes if _name_of(node) not in mentioned]
        if path.variable is not None:
            self._found.paths[path.variable.name] = Trace(tuple(vertices), tuple(edges))
        return pieces, where, vertices

    def _copies(
        self,
        edge: ast.EdgePattern | ast.Subpath,
        left: str,
        right: str,
        pieces: list[ast.PathPattern],
        where: list[ast.Expression],
    ) -> Iterator[tuple[ast.EdgePattern, str]]:
        """Yield the edges of a repeated piece, each with the vertex that it leads to."""
        if edge.repeat is None:
            raise NotSupportedError("a part of a path without a quantifier is not supported as a plain pattern")
        number = next(self._numbers)
        if not number:
            self._merge(left, right)
            if isinstance(edge, ast.EdgePattern) and edge.variable is not None:
                self._found.lists[edge.variable.name] = ()
            return
        places = [left, *(self._name() for _ in range(number - 1)), right]
        names: list[str] = []
        for at, to in itertools.pairwise(places):
            if isinstance(edge, ast.EdgePattern):
                name = self._name()
                names.append(name)
                own = {} if edge.variable is None else {edge.variable.name: name}
                yield replace(renamed(edge, own), variable=ast.Variable(name, edge.span), repeat=None), to
            else:
                yield from self._part(edge, at, to, pieces, where)
        if isinstance(edge, ast.EdgePattern) and edge.variable is not None:
            self._found.lists[edge.variable.name] = tuple(names)

    def _part(
        self, part: ast.Subpath, left: str, right: str, pieces: list[ast.PathPattern], where: list[ast.Expression]
    ) -> Iterator[tuple[ast.EdgePattern, str]]:
        """Yield the edges of one repetition of a part in brackets."""
        inner = part.pattern
        if inner.variable is not None or inner.mode is not None or inner.selector is not None:
            raise NotSupportedError("a name or mode for a part of a path is not supported as a plain pattern")
        ends = [left, *(self._name() for _ in inner.nodes[1:-1]), right]
        names: dict[str, str] = {}
        for node, place in zip(inner.nodes, ends, strict=True):
            if node.variable is not None and names.setdefault(node.variable.name, place) != place:
                raise NotSupportedError("a vertex that comes twice in a repeated part is not a plain pattern")
        for edge in inner.edges:
            if not isinstance(edge, ast.EdgePattern) or edge.repeat is not None:
                raise NotSupportedError("quantifiers inside a repeated part are not supported as plain patterns")
            if edge.variable is not None:
                names[edge.variable.name] = self._name()
        if names.keys() & self._needed:
            raise NotSupportedError("lists of a repeated part's variables are not supported as plain patterns")
        for node, place in zip(inner.nodes, ends, strict=True):
            if not _is_bare(node):
                copy = replace(renamed(node, names), variable=ast.Variable(place, node.span))
                pieces.append(ast.PathPattern((copy,), (), part.span))
        where += [renamed(condition, names) for condition in conjuncts(part.where)]
        for edge, to in zip(inner.edges, ends[1:], strict=True):
            assert isinstance(edge, ast.EdgePattern)
            inner_edge = renamed(edge, names)
            yield replace(inner_edge, variable=inner_edge.variable or self._variable(edge)), to

    def _variable(self, node: ast.NodePattern | ast.EdgePattern) -> ast.Variable:
        return ast.Variable(self._name(), node.span)


def _lengths(path: ast.PathPattern, mode: ast.MatchMode) -> Iterator[range]:
    """Yield how often each repeated piece of a path may come."""
    for i, edge in enumerate(path.edges):
        if edge.repeat is None:
            continue
        if edge.repeat.high is None:
            raise NotSupportedError("paths without an upper bound are not supported as plain patterns")
        left, right = path.nodes[i].variable, path.nodes[i + 1].variable
        # Between vertices that differ there is an edge; one that is written twice is the same.
        between = mode in _NODES_DIFFER and (left is None or left != right)
        yield range(max(edge.repeat.low, 1) if between else edge.repeat.low, edge.repeat.high + 1)


def _name_of(node: ast.NodePattern) -> str:
    assert node.variable is not None
    return node.variable.name


def _bare(name: str, at: ast.EdgePattern) -> ast.NodePattern:
    return ast.NodePattern(ast.Variable(name, at.span), span=at.span)


def _is_bare(node: ast.NodePattern) -> bool:
    """Whether a node says nothing of its vertex."""
    return node.labels is None and node.iri is None and node.properties is None and node.where is None
