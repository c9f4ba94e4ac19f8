"""Patterns with paths of any kind, as joins: their paths are searched for one by one where no set-based search applies.

A MATCH clause is taken apart as :mod:`graphdb.relational.lowering.path_joins` does: vertices that single edges join are
matched by plans, and each path between them is one step (:class:`~graphdb.relational.program.Applied`).  The step
starts from the distinct ends that the rows have by then, with what its conditions name of the rows, and an automaton of
the pattern leads it from edge to edge.  What a path may not take of the clause's other edges is given to it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import EDGE, INTEGER, NODE, PATH, TERM, Base, Type, list_of
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import bind, conjuncts, property_conditions
from graphdb.pattern.free import free_variables
from graphdb.pattern.paths.conditions import at_the_ends, with_sets
from graphdb.pattern.paths.lengths import OF_PATHS, all_hold, length_name
from graphdb.pattern.paths.search import NODES_DIFFER, Differing, PathSearch
from graphdb.relational.lowering.path_joins import Searches
from graphdb.relational.lowering.path_pieces import in_pieces
from graphdb.relational.projection.relation import Relation
from graphdb.sql.value import SqlValue

_Element = TypeVar("_Element", ast.NodePattern, ast.EdgePattern)


@dataclass(slots=True)
class _Part:
    """Vertices that single edges join."""

    nodes: dict[str, list[ast.NodePattern]] = field(default_factory=dict)
    edges: list[tuple[str, ast.EdgePattern, str, str]] = field(default_factory=list)
    """Name, pattern, left and right vertex."""

    def cost(self) -> tuple[bool, int]:
        """Parts of which something is said first, and those of many edges."""
        said = any(replace(node, variable=None) != ast.NodePattern() for nodes in self.nodes.values() for node in nodes)
        return not said, -len(self.edges)

    @property
    def bare(self) -> bool:
        """Whether nothing is said of its vertices, and there are no edges."""
        return self.cost() == (True, 0)

    def take_out(self, known: Collection[str], pending: list[ast.Expression]) -> None:
        """Add the conditions within its vertices and edges that look at more than ``known`` names to the pending."""
        for name, nodes in self.nodes.items():
            self.nodes[name] = [_of_known(node, name, known, pending) for node in nodes]
        self.edges = [(edge[0], _of_known(edge[1], edge[0], known, pending), *edge[2:]) for edge in self.edges]

    def patterns(self) -> Iterator[ast.PathPattern]:
        """Yield its vertices and edges as paths."""
        for name, nodes in self.nodes.items():
            for node in nodes:
                yield ast.PathPattern((replace(node, variable=ast.Variable(name, node.span)),), (), node.span)
        for name, edge, *ends in self.edges:
            left, right = (ast.NodePattern(ast.Variable(end, edge.span), span=edge.span) for end in ends)
            named = replace(edge, variable=ast.Variable(name, edge.span))
            yield ast.PathPattern((left, right), (named,), edge.span)


@dataclass(slots=True)
class _Clause:
    """A MATCH clause in parts.

    Attributes
    ----------
    single
        Paths without edges: their names, and the names of their vertices.
    same
        Variables that rows hold before, with the names under which the clause has them.
    """

    match: ast.MatchClause
    parts: list[_Part] = field(default_factory=list)
    searches: list[PathSearch] = field(default_factory=list)
    single: dict[str, str] = field(default_factory=dict)
    same: list[tuple[str, str]] = field(default_factory=list)

    @property
    def names(self) -> Iterator[str]:
        """All names that it gives to something."""
        for part in self.parts:
            yield from part.nodes
            yield from (name for name, *_ in part.edges)
        for search in self.searches:
            yield from (search.key, search.inner, *search.names)
        yield from (name for pair in self.same for name in pair)


class Traversals(Searches):
    """Lowers MATCH clauses with paths of any kind."""

    def _with_paths(
        self,
        left: Relation,
        matches: Sequence[ast.MatchClause],
        live: Collection[str],
        drops: bool,
        least: Collection[str] = (),
    ) -> Relation:
        """Join rows with the matches of clauses that have paths in them: set by set, or else path by path.

        Of names among ``least`` the least value alone is asked for, where equal rows may come once (``drops``).
        """
        matches = [at_the_ends(match, self._hidden) for match in matches]
        steps = len(self._steps)
        if (pieces := in_pieces(matches, left.names, self._hidden)) is not None:
            used = pieces.used(live)
            found = self._searched(left, pieces.matches, used, drops, {*least} - {*map(length_name, pieces.paths)})
            if found is not None and (whole := pieces.put_together(found, live)) is not None:
                return whole
            del self._steps[steps:]
        if (found := self._searched(left, matches, live, drops, least)) is not None:
            return found
        del self._steps[steps:]
        costs = [path.cost for match in matches for path in match.patterns if path.cost is not None]
        if costs:
            message, hint = "this pattern is not supported beside COST BY", "match the rest in a MATCH of its own"
            raise NotSupportedError(message, text=self._text, position=costs[0].span.start, hint=hint)
        for number, match in enumerate(matches):
            left = self._traversed(left, match, {*live, *free_variables(tuple(matches[number + 1 :]))})
        return left

    def _traversed(self, relation: Relation, match: ast.MatchClause, live: Collection[str]) -> Relation:
        """Join rows with the matches of a clause, its paths found one by one."""
        clause = self._taken_apart(match, relation)
        pending = list(conjuncts(match.where))
        used = {*live, *free_variables(match), *clause.names}
        parts, searches = list(clause.parts), list(clause.searches)
        edges: list[str] = []
        paths: list[str] = []
        while parts or searches:
            bound = relation.variables.keys()
            searches.sort(key=lambda search: search.selector is not None)  # what is selected depends on all others
            search = next((s for s in searches if {s.names[0], s.names[-1]} & bound), None)
            part = next((p for p in parts if p.nodes.keys() & bound), None)
            if part is None and search is not None and search.selector is not None:
                part = _before(search, parts, searches, match)
            if part is None and search is None:
                part = min(parts, key=_Part.cost)
            if part is not None:
                parts.remove(part)
                relation = self._with_part(relation, part, match, pending, used, edges, paths)
                edges += [name for name, *_ in part.edges]
            elif search is not None:
                searches.remove(search)
                relation = self._with_search(relation, search, used, [*edges, *paths] if search.edges_differ else [])
                paths += [search.key] if search.edges_differ else []
        variables = dict(relation.variables)
        variables |= {name: _of_one(variables[vertex]) for name, vertex in clause.single.items()}
        named = [path.variable.name for path in match.patterns if path.variable is not None]
        variables |= {length_name(name): _length(variables[name]) for name in named}
        relation = replace(relation, variables=variables)
        if match.mode in NODES_DIFFER:
            relation = self._differing(relation, clause, used, match.mode is ast.MatchMode.INDUCED)
        pending += [_compared("=", one, other) for one, other in clause.same]
        return replace(relation, where=(*relation.where, *pending))

    # --- a clause in parts

    def _taken_apart(self, match: ast.MatchClause, relation: Relation) -> _Clause:
        found = _Clause(match)
        nodes: dict[str, list[ast.NodePattern]] = {}
        edges: list[tuple[str, ast.EdgePattern, str, str]] = []
        for path in match.patterns:
            names = [self._hidden("node") if node.variable is None else node.variable.name for node in path.nodes]
            variable = None if path.variable is None else path.variable.name
            ends = range(len(names))
            if path.mode is not None or path.selector is not None or (variable is not None and path.edges):
                ends = range(0, len(names), max(len(names) - 1, 1))
                key = self._hidden("path") if variable is None else variable
                found.searches.append(PathSearch(path.nodes, tuple(names), path.edges, path, key, match.mode))
            elif variable is not None:
                found.single[variable] = names[0]
            else:
                for i, edge in enumerate(path.edges):
                    if isinstance(edge, ast.EdgePattern) and edge.single:
                        edges.append((self._edge_name(edge), edge, names[i], names[i + 1]))
                        continue
                    pair, key = slice(i, i + 2), self._hidden("path")
                    one = PathSearch(path.nodes[pair], tuple(names[pair]), (edge,), None, key, match.mode)
                    found.searches.append(one)
            for at in ends:
                nodes.setdefault(names[at], []).append(path.nodes[at])
        outer = frozenset((*nodes, *(node.name for search in found.searches for node in _inner_nodes(search))))
        for i, search in enumerate(found.searches):
            found.searches[i] = search = replace(search, outer=outer)
            known = [n for n in search.variables if n in relation.variables and relation.variables[n].type != NODE]
            found.same += [(n, search.renamed(n)) for n in known]
        found.parts = _joined_parts(nodes, edges)
        return found

    def _edge_name(self, edge: ast.EdgePattern) -> str:
        return self._hidden("edge") if edge.variable is None else edge.variable.name

    def _hidden(self, what: str) -> str:
        return f"{OF_PATHS} {self._name(what)}"

    # --- steps

    def _with_part(
        self,
        relation: Relation,
        part: _Part,
        match: ast.MatchClause,
        pending: list[ast.Expression],
        used: set[str],
        edges: Sequence[str],
        paths: Sequence[str],
    ) -> Relation:
        """Join rows with what a plan matches; with the ``pending`` conditions that can be tested by then."""
        mine = {*part.nodes, *(name for name, *_ in part.edges)}
        if mine <= relation.variables.keys() and part.bare:
            pending += [ast.IsNull(ast.Variable(name), negated=True) for name in mine]
            return relation
        known = {*relation.variables, *mine}
        part.take_out(known, pending)
        where = [c for c in pending if free_variables(c) <= known and not free_variables(c).isdisjoint(mine)]
        where = [c for c in where if not any(self._aside(c))]
        pending[:] = [c for c in pending if c not in where]
        mode = ast.MatchMode.DIFFERENT_NODES if match.mode in NODES_DIFFER else match.mode
        clause = ast.MatchClause(tuple(part.patterns()), mode, all_hold(where, match.span), match.span)
        relation = self._with_plain(relation, [clause], used)
        if mode is ast.MatchMode.REPEATABLE_ELEMENTS:
            return relation
        own = [name for name, *_ in part.edges]
        differ = [_compared("<>", one, other) for one in own for other in edges]
        differ += [_not_on(one, path) for one in own for path in paths]
        return replace(relation, where=(*relation.where, *differ))

    def _with_search(
        self, relation: Relation, search: PathSearch, used: Collection[str], taken: Sequence[str]
    ) -> Relation:
        """Join rows with the paths of a search, which do not take the edges of some others."""
        search, sets = with_sets(search, self._hidden)
        if sets:
            relation = self._with_subqueries(relation, sets.values(), used)
            columns = {name: relation.known[node] for name, node in sets.items()}
            relation = replace(relation, variables={**relation.variables, **columns})
            used = {*used, *sets}
        known = relation.variables
        vertex = self._vertices_of(search)
        left, right = search.names[0], search.names[-1]
        yields: dict[str, Type] = {name: vertex for name in (left, right) if name not in known}
        yields[search.key] = PATH
        for name, (is_edge, group) in search.variables.items():
            element = EDGE if is_edge else vertex
            if name not in known:
                yields[name] = list_of(element) if group else element
            elif known[name].type.base not in (Base.NODE, Base.TERM):
                yields[search.renamed(name)] = list_of(element) if group else element
        if search.nodes_differ:
            yields[search.inner] = list_of(vertex)
        inner = free_variables((search.nodes[1:-1], search.edges))
        names = [n for n in known if n in {left, right, *inner, *taken}]
        words = " ".join(self._text[search.nodes[0].span.start : search.nodes[-1].span.end].split())
        return self._applied(relation, search, names, yields, used, f"search path by path, {words},", taken)

    def _differing(self, relation: Relation, clause: _Clause, used: Collection[str], induced: bool) -> Relation:
        """Return the rows whose vertices differ, those within paths too."""
        vertices = {name for part in clause.parts for name in part.nodes}
        vertices |= {node.name for search in clause.searches for node in _inner_nodes(search)}
        inner = tuple(search.inner for search in clause.searches)
        edges = [name for part in clause.parts for name, *_ in part.edges]
        edges += [search.key for search in clause.searches]
        pattern = Differing(tuple(sorted(vertices)), inner, tuple(edges) if induced else (), induced)
        names = [*pattern.vertices, *pattern.inner, *pattern.edges]
        return self._applied(relation, pattern, names, {}, used, f"tested for {clause.match.mode.value}")

    def _vertices_of(self, search: PathSearch) -> Type:
        """Return the type of a path's vertices: it may lead to literals by labels that have some."""
        names = self._snapshot.names
        node = ast.NodePattern()
        for edge in walk(search.edges):
            if isinstance(edge, ast.EdgePattern):
                plain = ast.EdgePattern(edge.direction, None, edge.labels, span=edge.span)
                path = ast.MatchClause((ast.PathPattern((node, node), (plain,), edge.span),), span=edge.span)
                labels = bind((path,), names, self._text).edges[0].labels or ()
                if any(names.edge_labels[label].kinds for label in labels if label in names.edge_labels):
                    return TERM
        return NODE


def _before(
    search: PathSearch, parts: Sequence[_Part], searches: Sequence[PathSearch], match: ast.MatchClause
) -> _Part | None:
    """Return a part to match before a path is selected: what has edges, or begins a path that is not selected."""
    if match.mode is not ast.MatchMode.REPEATABLE_ELEMENTS:
        begun = {end for other in searches if other.selector is None for end in (other.names[0], other.names[-1])}
        rest = [part for part in parts if part.edges or begun & part.nodes.keys()]
        if rest:
            return min(rest, key=_Part.cost)
    # Between two known ends a shortest path is found from both.
    ends = next((part for part in parts if {search.names[0], search.names[-1]} & part.nodes.keys()), None)
    return ends if ends is not None and ends.cost() < (True, 0) else None


def _joined_parts(
    nodes: Mapping[str, list[ast.NodePattern]], edges: Sequence[tuple[str, ast.EdgePattern, str, str]]
) -> list[_Part]:
    part_of = {name: name for name in nodes}

    def find(name: str) -> str:
        while part_of[name] != name:
            name = part_of[name]
        return name

    for _, _, left, right in edges:
        part_of[find(right)] = find(left)
    parts: dict[str, _Part] = {}
    for name, patterns in nodes.items():
        parts.setdefault(find(name), _Part()).nodes[name] = patterns
    for edge in edges:
        parts[find(edge[2])].edges.append(edge)
    return list(parts.values())


def _inner_nodes(search: PathSearch) -> Iterator[ast.Variable]:
    """Yield the named vertices of a whole path but for its ends."""
    for node in search.nodes[1:-1]:
        if node.variable is not None:
            yield node.variable


def _of_known(element: _Element, name: str, known: Collection[str], pending: list[ast.Expression]) -> _Element:
    """Return a vertex or edge with the conditions that look at ``known`` names alone; the pending get the others."""
    if free_variables((element.properties, element.where)) <= {*known}:
        return element
    conditions = [*property_conditions(ast.Variable(name, element.span), element.properties), *conjuncts(element.where)]
    pending += (each for each in conditions if not free_variables(each) <= {*known})
    where = all_hold([each for each in conditions if each not in pending], element.span)
    return replace(element, properties=None, where=where)


def _of_one(vertex: SqlValue) -> SqlValue:
    """Return the path of one vertex."""
    packed = f"struct_pack(vertices := [{vertex.sql}], codes := CAST([] AS BIGINT[]))"
    return SqlValue(f"CASE WHEN {vertex.sql} IS NOT NULL THEN {packed} END", PATH)


def _length(path: SqlValue) -> SqlValue:
    return SqlValue(f"CAST(len(({path.sql}).codes) AS BIGINT)", INTEGER)


def _compared(operator: str, one: str, other: str) -> ast.Expression:
    return ast.Comparison((operator,), (ast.Variable(one), ast.Variable(other)))


def _not_on(edge: str, path: str) -> ast.Expression:
    """Return the condition that a path does not take an edge."""
    edges = ast.FunctionCall("relationships", (ast.Variable(path),))
    return ast.Unary("NOT", ast.In(ast.Variable(edge), edges))
