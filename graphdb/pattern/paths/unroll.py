"""Paths of bounded length as plain patterns: one version of a query's MATCH clauses for each number of repetitions.

``(a)-[:knows*1..2]->(b)`` is ``(a)-[:knows]->(b)`` and ``(a)-[:knows]->()-[:knows]->(b)``: each version goes the way of
any pattern, with its order, its counting and its executors, and the rows of all versions together are the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import conjuncts, variables_in
from graphdb.pattern.paths.pieces import names_of
from graphdb.pattern.rename import renamed

_MOST_VERSIONS = 16
_MOST_EDGES = 12
"""Edges of one version."""

_FRESH = "#u"
"""How names begin that a version gives to what has none."""

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
    computed
        What is asked of its paths, by the names of the columns that it is.
    """

    matches: tuple[ast.MatchClause, ...] = ()
    same: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Trace] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    computed: dict[str, ast.Expression] = field(default_factory=dict)

    def with_names(self, matches: tuple[ast.MatchClause, ...], names: Mapping[str, str]) -> Version:
        """Return it with other clauses, in which some vertices and edges are called otherwise."""

        def called(found: Collection[str]) -> tuple[str, ...]:
            return tuple(names.get(name, name) for name in found)

        return Version(
            renamed(matches, names),
            {name: names.get(other, other) for name, other in self.same.items()},
            {path: Trace(called(trace.vertices), called(trace.edges)) for path, trace in self.paths.items()},
            {name: called(edges) for name, edges in self.lists.items()},
        )


def unroll(matches: tuple[ast.MatchClause, ...], needed: set[str]) -> list[Version] | None:
    """Return the versions of some MATCH clauses, shortest first.

    None where there are too many versions or none, no upper bound, or a selector, and where a vertex of a repeated part
    is named after the match.

    Parameters
    ----------
    needed
        The variables that are named after the match.
    """
    asked = needed | variables_in(tuple(match.where for match in matches))
    if not all(_has_versions(path, match, asked) for match in matches for path in match.patterns):
        return None
    choices = [choice for match in matches for path in match.patterns for choice in _lengths(path, match.mode)]
    combined = 1
    for choice in choices:
        combined *= len(choice)
    if not 0 < combined <= _MOST_VERSIONS:
        return None
    around = {name for name in variables_in(matches) if name.startswith(_FRESH)}
    unrolled = (_Unroller(numbers, around).version(matches) for numbers in itertools.product(*choices))
    versions = [version for version in unrolled if version is not None]
    edges = [sum(len(path.edges) for match in each.matches for path in match.patterns) for each in versions]
    return versions if edges and max(edges) <= _MOST_EDGES else None


def path_names(matches: Sequence[ast.MatchClause]) -> set[str]:
    """Return the variables of paths."""
    return {path.variable.name for match in matches for path in match.patterns if path.variable is not None}


def lists_of(matches: Sequence[ast.MatchClause]) -> set[str]:
    """Return the variables of repeated edges, and of the edges of repeated parts."""
    edges = (edge for match in matches for path in match.patterns for edge in path.edges if edge.repeat is not None)
    return {name for edge in edges for name in names_of(*_edges_of(edge))}


def _edges_of(edge: ast.EdgePattern | ast.Subpath) -> list[ast.EdgePattern]:
    """Return an edge, or those of a part in brackets."""
    inside = edge.pattern.edges if isinstance(edge, ast.Subpath) else (edge,)
    return [each for each in inside if isinstance(each, ast.EdgePattern)]


def longest(version: Version) -> int:
    """Return how many edges the longest path, or list of edges, of a version has."""
    return max(0, *(len(trace.edges) for trace in version.paths.values()), *map(len, version.lists.values()))


def is_plain(match: ast.MatchClause) -> bool:
    """Whether none of a clause's paths repeats anything or has a selector."""
    return all(path.plain for path in match.patterns)


def plain_versions(
    matches: Sequence[ast.MatchClause], needed: Collection[str], given: Collection[str]
) -> list[Version] | None:
    """Return the versions of MATCH clauses whose rows are those of the vertices and single edges alone.

    None where they are not: where a path, a list of edges, or what is ``given`` (the names that are known before the
    match) would have to be made or compared.
    """
    versions = unroll(tuple(matches), {*needed})
    for version in versions or ():
        if ({*needed} | variables_in(version.matches)) & {*version.paths, *version.lists}:
            return None
        if not {*version.same, *version.lists}.isdisjoint(given):
            return None
    return versions


class _Unroller:
    """Writes one version; ``numbers`` says how often each repeated piece comes, in the order written.

    ``around`` are names that the version of a query around this one gave to what is mentioned here.
    """

    def __init__(self, numbers: tuple[int, ...], around: Collection[str]) -> None:
        self._numbers: Iterator[int] = iter(numbers)
        self._fresh = (name for name in map(f"{_FRESH}{{}}".format, itertools.count()) if name not in around)
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
        return next(self._fresh)

    def _root(self, name: str) -> str:
        """Return the vertex that stands for all that are the same as one."""
        while name in self._found.same:
            name = self._found.same[name]
        return name

    def _merge(self, one: str, other: str) -> None:
        """Note that nothing is between two vertices; a name that the query has stands for both."""
        one, other = self._root(one), self._root(other)
        if one.startswith(_FRESH):
            one, other = other, one
        if one != other:
            self._found.same[other] = one

    def _clause(self, match: ast.MatchClause) -> Iterator[ast.MatchClause]:
        nodes_differ = match.mode in _NODES_DIFFER
        mentioned: list[str] = []
        patterns: list[ast.PathPattern] = []
        own: list[ast.MatchClause] = []
        where: list[ast.Expression] = list(conjuncts(match.where))
        for path in match.patterns:
            pieces, conditions, places = self._path(path)
            where += conditions
            mentioned += places
            if path.mode is None:
                patterns += pieces
                continue
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
            if isinstance(edge, ast.EdgePattern) and edge.single:
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
        number = next(self._numbers)
        lists = self._found.lists
        lists |= dict.fromkeys(names_of(*_edges_of(edge)), ())
        if not number:
            self._merge(left, right)
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
            lists[edge.variable.name] = tuple(names)

    def _part(
        self, part: ast.Subpath, left: str, right: str, pieces: list[ast.PathPattern], where: list[ast.Expression]
    ) -> Iterator[tuple[ast.EdgePattern, str]]:
        """Yield the edges of one repetition of a part in brackets."""
        inner = part.pattern
        ends = [left, *(self._name() for _ in inner.nodes[1:-1]), right]
        names: dict[str, str] = {}
        for node, place in zip(inner.nodes, ends, strict=True):
            if node.variable is not None:
                names[node.variable.name] = place
        edges = [edge for edge in inner.edges if isinstance(edge, ast.EdgePattern)]
        names |= {name: self._name() for name in names_of(*edges)}
        for name in names_of(*edges):
            self._found.lists[name] += (names[name],)
        for node, place in zip(inner.nodes, ends, strict=True):
            if not _is_bare(node):
                copy = replace(renamed(node, names), variable=ast.Variable(place, node.span))
                pieces.append(ast.PathPattern((copy,), (), part.span))
        where += [renamed(condition, names) for condition in conjuncts(part.where)]
        for edge, to in zip(edges, ends[1:], strict=True):
            inner_edge = renamed(edge, names)
            yield replace(inner_edge, variable=inner_edge.variable or self._variable(edge)), to

    def _variable(self, node: ast.NodePattern | ast.EdgePattern) -> ast.Variable:
        return ast.Variable(self._name(), node.span)


def _has_versions(path: ast.PathPattern, match: ast.MatchClause, needed: set[str]) -> bool:
    """Whether a path can be written out: all that its parts say can be said of each of their edges."""
    if path.selector is not None:
        return False
    if path.mode is not None:
        named = names_of(*path.nodes)
        others = any(other.edges for other in match.patterns if other is not path)
        if path.mode not in _MODES or (path.mode is ast.PathMode.ACYCLIC and len({*named}) < len(named)):
            return False
        if match.mode in _NODES_DIFFER or (others and path.mode is not ast.PathMode.WALK):
            return False
    for edge in path.edges:
        if edge.single:
            continue
        if edge.repeat is not None and edge.repeat.high is None:
            return False
        if isinstance(edge, ast.EdgePattern):
            continue
        inner = edge.pattern
        if edge.repeat is None or inner.variable is not None or inner.mode is not None or inner.selector is not None:
            return False
        plain = [each for each in inner.edges if isinstance(each, ast.EdgePattern) and each.repeat is None]
        vertices, named = names_of(*inner.nodes), names_of(*plain)
        if len(plain) < len(inner.edges) or any(len({*names}) < len(names) for names in (vertices, named)):
            return False
        if not needed.isdisjoint(vertices):  # lists of vertices
            return False
    return True


def _lengths(path: ast.PathPattern, mode: ast.MatchMode) -> Iterator[range]:
    """Yield how often each repeated piece of a path may come."""
    for i, edge in enumerate(path.edges):
        if edge.repeat is None or edge.single:
            continue
        assert edge.repeat.high is not None
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
