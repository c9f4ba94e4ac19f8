"""Queries whose rows are asked for anew: which rows a batch changes, by the patterns that they depend on.

A row of such a query belongs to a match of the clauses that are required, its *binding*: with each extension by the
optional clauses, or with nulls, and with what subqueries find from there.  It changes where that binding comes or goes,
an extension or a match of a subquery does, or a property of their vertices.  So delta plans follow the required
pattern, and with it that of each optional clause and of each subquery; and the query is asked before and after a batch
for the vertices of the bindings that are found.  Which are too many does no harm: rows that stay the same cancel out.
So of conditions only those are followed that say something of the pattern's own elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.compose import is_plain
from graphdb.grammar.walk import walk
from graphdb.live.aggregates.distinct_values import NUMBER
from graphdb.live.forms.linear import Linear, makes_groups
from graphdb.live.forms.substitution import declared
from graphdb.live.matches.far import Far, apart
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import SUBQUERIES, Subquery, free_variables, subqueries_in
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.paths.unroll import unroll
from graphdb.semantics.aggregation import aggregates_in

NO_MATCHES = "its rows are not the matches of one pattern"
NO_EDGE = "its paths may have no edge"
INEXACT = "it aggregates, before other clauses, what may differ with the order of its rows"
MOST_PARTS = 12
"""Patterns that are followed of one query."""
_EXACT = frozenset({"count", "min", "max"})
"""Aggregates that are the same in whatever order their rows come; …"""
_OF_INTEGERS = frozenset({"avg", "sum"})
"""… and such that are of integers."""
Chain = tuple[ast.MatchClause, ...]
"""Clauses of which each goes on from those before it."""
Element = TypeVar("Element", ast.NodePattern, ast.EdgePattern)


class NotIncremental(Exception):
    """Why delta plans do not maintain a query."""


def required(clauses: Sequence[ast.ClauseNode]) -> Chain:
    """Return the MATCH clauses that each row has a match of, wherever they stand, of vertices that are never null."""
    found, unsure = list[ast.MatchClause](), set[str]()
    for clause in clauses:
        match clause:
            case ast.MatchClause() if not clause.optional and unsure.isdisjoint(declared(clause.patterns)):
                found.append(clause)
            case ast.MatchClause():
                unsure |= _names_in((clause,)) - _names_in(tuple(found))
            case ast.UnwindClause():
                unsure.add(clause.variable.name)
            case ast.WithClause():
                unsure |= {item.text for item in clause.returns.items if not isinstance(item.expression, ast.Variable)}
            case ast.CallClause():
                unsure |= {*clause.columns}
    return tuple(found)


def is_alone(query: ast.Query) -> bool:
    """Whether what is required is a vertex without edges."""
    first = required(query.matches)
    if len(first) > 1 or len(first[0].patterns) > 1:
        return False
    (path,) = first[0].patterns
    return not path.edges and path.nodes[0].iri is None


def one_pattern(rows_of: Linear) -> ast.Query | None:
    """Return a query whose rows may be the matches of one pattern; None for another one."""
    query = rows_of.query
    if not isinstance(query, ast.Query) or is_alone(query):
        return None
    return None if any(isinstance(part, SUBQUERIES) for part in walk(query)) else query


@dataclass(frozen=True, slots=True)
class Reached:
    """A path of any length: what its ends are called, of those by which a query is asked for some bindings alone."""

    far: Far
    first: str | None
    last: str | None


def bindings(rows_of: Linear) -> tuple[ast.Query | Reached, ...]:
    """Return queries for the vertices of bindings that have other rows after a batch, and paths between such vertices.

    Each query is of one pattern: what is required, alone and with a clause or subquery, and with the clauses whose
    vertices or edges this names in turn.  It returns the vertices that have names, and how many matches they are of.
    Of what is required that no vertex or edge connects, each component has queries of its own.

    Raises
    ------
    NotIncremental
        It cannot be asked for some bindings alone.
    """
    _refuse_undetermined(rows_of)
    first, lost = required(rows_of.clauses), _lost_in_groups(rows_of)
    if not first:
        raise NotIncremental(NO_MATCHES)
    near, far = _apart(first, ())
    components, known = _components(near), _names_in(near)
    ends = {name for path in far for name in (path.first, path.last)}
    found: dict[ast.Query | Reached, None] = {_reached(path, known, lost): None for path in far}
    followed: list[tuple[list[Chain], Chain]] = [
        ([own], ()) for own in components if _has_edges(own) or ends.isdisjoint(_names_in(own))
    ]
    for chain in _chains(rows_of, first):
        near, far = _apart(chain, known)
        found |= {_reached(path, known, lost): None for path in far}
        if far:
            near = _beside(chain, near, far, known)
        if near:
            followed.append(([own for own in components if _names_in(own) & _names_in(near)] or components, near))
    for own, chain in followed:
        matches = tuple(match for component in own for match in component)
        returns = _returning_vertices(matches, lost, rows_of.span)
        for plain in _followed((*matches, *chain)):
            found[ast.Query(plain, returns, span=rows_of.span)] = None
    if len(found) > MOST_PARTS:
        raise NotIncremental(f"it takes more than {MOST_PARTS} patterns")
    return tuple(found)


def _apart(chain: Chain, at: Collection[str]) -> tuple[Chain, tuple[Far, ...]]:
    """Return clauses without their paths of any length, and these; see :func:`.far.apart`."""
    pairs = [apart(match, at) for match in chain]
    if any(far and match.mode is ast.MatchMode.INDUCED for match, (_, far) in zip(chain, pairs, strict=True)):
        raise NotIncremental("INDUCED has a path of any length")
    paths = tuple(path for _, far in pairs for path in far)
    if any(path.may_skip for path in paths):
        raise NotIncremental(NO_EDGE)
    return tuple(near for near, _ in pairs), paths


def _reached(path: Far, known: set[str], lost: set[str]) -> Reached:
    """Return a path by its ends that are required, and that no WITH has lost."""
    first, last = (name if name in known - lost else None for name in (path.first, path.last))
    if first is None and last is None:
        raise NotIncremental("neither end of a path of any length is a vertex of what is required, with a name")
    return Reached(path, first, last)


def _beside(chain: Chain, near: Chain, far: Collection[Far], known: set[str]) -> Chain:
    """Return what is matched of a clause that has paths of any length, and of those that it goes on from."""
    *before, last = near
    ends = {name for path in far for name in (path.first, path.last)}
    paths = tuple(path for path in last.patterns if path.edges or {*_names(path)}.isdisjoint(ends))
    others = (*before, replace(last, patterns=paths))
    if (*before,) != chain[:-1] or not (_names_in(others) & ends) <= known:
        raise NotIncremental("a pattern goes on from a path of any length that is not required")
    return others if paths else ()


def _has_edges(chain: Chain) -> bool:
    return any(path.edges for match in chain for path in match.patterns)


def _components(first: Chain) -> list[Chain]:
    """Return clauses as groups that have no vertex or edge in common, each with its own paths alone.

    Those of an INDUCED clause are one group: an edge between them matters.
    """
    groups: list[tuple[set[str], list[tuple[int, ast.PathPattern]]]] = []
    for number, match in enumerate(first):
        for path in match.patterns:
            names = {*_names(path), *([f" {number}"] if match.mode is ast.MatchMode.INDUCED else [])}
            own = [(number, path)]
            for other in [other for other in groups if other[0] & names]:
                groups.remove(other)
                names, own = names | other[0], other[1] + own
            groups.append((names, own))
    return [
        tuple(
            replace(match, patterns=tuple(path for of, path in own if of == number))
            for number, match in enumerate(first)
            if any(of == number for of, _ in own)
        )
        for _, own in groups
    ]


def _refuse_inexact(clause: object) -> None:
    """Raise NotIncremental where aggregates of rows may differ each time that they are asked for."""
    calls = (call for call in aggregates_in(clause) if isinstance(call, ast.FunctionCall))
    if not (_EXACT | _OF_INTEGERS).issuperset(call.name.lower() for call in calls):
        raise NotIncremental(INEXACT)


def summed(rows_of: Linear) -> Iterator[Linear]:
    """Yield queries for what the clauses of another one add up: their columns are to be integers, or it is inexact."""
    for i, clause in enumerate(rows_of.clauses):
        parts: list[tuple[ast.ClauseNode, ...]] = []
        if isinstance(clause, ast.WithClause):
            parts = [(clause.returns,)]
        elif isinstance(clause, ast.CallClause):
            parts = [*clause.query.parts]
        for *before, returns in parts:
            calls = (call for call in aggregates_in(returns) if isinstance(call, ast.FunctionCall))
            added = dict.fromkeys(call.arguments[0] for call in calls if call.name.lower() in _OF_INTEGERS)
            if added:
                own = replace(rows_of, clauses=(*rows_of.clauses[:i], *before))
                yield own.returning([(value, f"x{number}") for number, value in enumerate(added)])


def _lost_in_groups(rows_of: Linear) -> set[str]:
    """Return the names that a WITH aggregates: of some of these vertices alone, its groups would not be whole."""
    found, there = set[str](), set[str]()
    for clause in rows_of.clauses:
        if isinstance(clause, ast.MatchClause):
            there |= {*declared(clause.patterns)}
        if isinstance(clause, ast.WithClause) and makes_groups(clause):
            own = {item.expression.name for item in clause.returns.items if isinstance(item.expression, ast.Variable)}
            found |= there - own
            _refuse_inexact(clause.returns)
    return found


def _returning_vertices(first: Chain, lost: set[str], span: ast.Span) -> ast.ReturnClause:
    """Return the vertices of some clauses that have names, but for ``lost`` ones, and how many matches they are of."""
    nodes = (node for match in first for path in match.patterns for node in path.nodes)
    names = dict.fromkeys(node.variable.name for node in nodes if node.variable is not None)
    if not names:
        raise NotIncremental("what it requires has no vertex with a name")
    names = {name: None for name in names if name not in lost}
    if not names:
        raise NotIncremental("a WITH before other clauses groups by none of the vertices of a pattern")
    items = [ast.ReturnItem(ast.Variable(name), name, name) for name in names]
    return ast.ReturnClause((*items, ast.ReturnItem(ast.CountStar(), NUMBER, NUMBER)), span=span)


def _refuse_undetermined(rows_of: Linear) -> None:
    """Raise NotIncremental where the rows of a binding may be others each time, or depend on patterns within lists."""
    for part in walk(rows_of.whole):
        match part:
            case ast.ListComprehension() | ast.ListPredicate() | ast.Reduce():
                if any(isinstance(inner, SUBQUERIES) for inner in walk(part)):
                    raise NotIncremental("its lists have patterns")
            case ast.PatternComprehension() | ast.ShortestPath() | ast.Subquery(kind="collect"):
                raise NotIncremental("a subquery makes lists, whose order is not determined")
            case ast.PathPattern(selector=ast.Selector()):
                raise NotIncremental("it chooses among paths")
            case ast.CallClause():
                _refuse_inexact(part.query)


def _chains(rows_of: Linear, first: Chain) -> Iterator[Chain]:
    """Yield what the rows of a binding depend on beside what is required: other clauses, and subqueries."""
    known, clauses, values = _bound(first), list[tuple[set[str], Chain]](), set[str]()

    def needed(variables: Collection[str]) -> Chain:
        return tuple(dict.fromkeys(clause for new, chain in clauses if new & {*variables} for clause in chain))

    for clause in rows_of.whole:
        chain: Chain = ()
        match clause:
            case ast.MatchClause() if clause in first:
                pass
            case ast.MatchClause():
                own = _bound((clause,))
                if not values.isdisjoint(declared(clause.patterns)):
                    raise NotIncremental("a pattern goes on from values")
                chain = (*needed(own), clause)
                clauses.append((own - known, chain))
                known |= own
                yield chain
                chain = (clause,)
            case ast.UnwindClause():
                values.add(clause.variable.name)
                clauses.append(({clause.variable.name}, needed(_variables(clause.source))))
            case ast.WithClause():
                for item in clause.returns.items:
                    if not isinstance(item.expression, ast.Variable):
                        assert item.alias is not None  # or it is no column of a WITH
                        values.add(item.alias)
                        clauses.append(({item.alias}, needed(_variables(item.expression))))
            case ast.CallClause():
                values |= {*clause.columns}
                clauses.append(({*clause.columns}, needed(_variables(clause.query))))
                yield from _called(clause.query, needed(_variables(clause.query)), known)
                continue
        for subquery in subqueries_in(clause):
            yield from _within(subquery, (*needed(_variables(subquery)), *chain), known)


def _within(subquery: Subquery, chain: Chain, known: set[str]) -> Iterator[Chain]:
    """Yield what a subquery depends on beside what is required and a chain, among which there are ``known`` names."""
    if isinstance(subquery, ast.Subquery):
        yield from _called(subquery.query, chain, known)
    else:
        yield from _matched((ast.MatchClause((subquery.pattern,)),), (), chain, known)  # lists of matches are refused


def _called(query: ast.Query | ast.Composite, chain: Chain, known: set[str]) -> Iterator[Chain]:
    """Yield what a query of MATCH clauses within another one depends on; see :func:`_within`."""
    for clauses in (query.clauses,) if isinstance(query, ast.Query) else query.parts:
        matches = tuple(clause for clause in clauses if isinstance(clause, ast.MatchClause) and not clause.optional)
        rest = clauses[len(matches) :]
        if clauses[: len(matches)] != matches or not all(isinstance(clause, ast.ReturnClause) for clause in rest):
            raise NotIncremental("a subquery has other clauses than MATCH and RETURN")
        yield from _matched(matches, rest, chain, known)


def _matched(matches: Chain, rest: object, chain: Chain, known: set[str]) -> Iterator[Chain]:
    """Yield what some clauses depend on, and what is made of their rows."""
    own, there = chain, set(known)
    for match in matches:
        if there.isdisjoint(_bound((match,))):
            raise NotIncremental("a subquery has a pattern that its row says nothing of")
        own, there = (*own, match), there | _bound((match,))
        yield own
        for inner in subqueries_in((match.patterns, match.where)):
            yield from _within(inner, own, there)
    for inner in subqueries_in(rest):
        yield from _within(inner, own, there)


# --- patterns that have all matches of others, and perhaps more


def _followed(chain: Chain) -> Iterator[Chain]:
    """Yield clauses of plain patterns, all of them required, which together match whatever others do."""
    names = {name for match in chain for path in match.patterns for name in _names(path)}
    matches = tuple(_without(match, names) for match in chain)
    if all(path.plain for match in matches for path in match.patterns):
        yield matches
        return
    versions = unroll(matches, names)
    if versions is None:
        raise NotIncremental("its paths may be of many lengths")
    for version in versions:
        if version.same:
            raise NotIncremental(NO_EDGE)
        yield version.matches


def _names(path: ast.PathPattern) -> Iterator[str]:
    """Yield the names of a path's vertices and single edges."""
    edges = (edge for edge in path.edges if isinstance(edge, ast.EdgePattern) and edge.single)
    named = [*(node.variable for node in path.nodes), *(edge.variable for edge in edges)]
    yield from (variable.name for variable in named if variable is not None)


def _without(match: ast.MatchClause, names: set[str]) -> ast.MatchClause:
    """Return a clause without what it asks of others than elements of some names, or of whole paths."""
    patterns, mode = match.patterns, match.mode
    if mode is not ast.MatchMode.INDUCED and any(not replace(path, variable=None).plain for path in patterns):
        mode = ast.MatchMode.REPEATABLE_ELEMENTS
    where = [condition for condition in conjuncts(match.where) if _says(condition, names)]
    paths = tuple(_path_without(path, names) for path in patterns)
    return replace(match, patterns=paths, mode=mode, where=all_hold(where, match.span), optional=False)


def _path_without(path: ast.PathPattern, names: set[str]) -> ast.PathPattern:
    nodes = tuple(_element_without(node, names) for node in path.nodes)
    edges: list[ast.EdgePattern | ast.Subpath] = []
    for edge in path.edges:
        if isinstance(edge, ast.Subpath):
            edges.append(replace(edge, pattern=_path_without(edge.pattern, set()), where=None))
        else:
            edge = _element_without(edge, names)
            edges.append(edge if edge.single else replace(edge, variable=None))
    return replace(path, nodes=nodes, edges=tuple(edges), variable=None, mode=None, selector=None, cost=None)


def _element_without(part: Element, names: set[str]) -> Element:
    properties = part.properties if _says(part.properties, names) else None
    return replace(part, properties=properties, where=part.where if _says(part.where, names) else None)


def _says(condition: ast.Expression | None, names: set[str]) -> bool:
    """Whether a condition is one on elements of some names alone, that one SQL statement over their match has."""
    clause = ast.MatchClause((), where=condition)
    subqueries = any(isinstance(part, SUBQUERIES) for part in walk(condition))
    return not subqueries and free_variables(condition) <= names and is_plain((clause,), ast.ReturnClause(()))


def _names_in(chain: Chain) -> set[str]:
    """Return the names of elements in the patterns of clauses."""
    return {name for match in chain for name in declared(match.patterns)}


def _bound(chain: Chain) -> set[str]:
    """Return the names in the patterns of clauses."""
    return _variables(tuple(match.patterns for match in chain))


def _variables(syntax: object) -> set[str]:
    return {part.name for part in walk(syntax) if isinstance(part, ast.Variable)}
