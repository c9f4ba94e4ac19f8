"""Components of a pattern that only equal values connect, as in ``MATCH (a:A), (b:B) WHERE a.x = b.y``.

One plan would enumerate the product of their matches, for a condition on values is tested after the match.  Taken
apart, each is matched by itself, and SQL joins their rows by the condition (a hash join, where it is an equation).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.failing import computes
from graphdb.pattern.free import free_variables, subqueries_in
from graphdb.pattern.paths.lengths import all_hold

_ANY_EDGES = (ast.MatchMode.DIFFERENT_EDGES, ast.MatchMode.REPEATABLE_ELEMENTS)


@dataclass(slots=True)
class _Component:
    """Paths that variables connect, with the number of the clause of each."""

    paths: list[tuple[int, ast.PathPattern]]
    names: set[str]
    conditions: list[tuple[int, ast.Expression]] = field(default_factory=list)

    @property
    def takes(self) -> set[str]:
        """The variables of others that its paths name: in maps of properties, and in conditions within."""
        return free_variables(tuple(path for _, path in self.paths)) - self.names


Fails = Callable[[ast.Expression], bool]
"""Whether a condition may fail where those before it do not hold."""

Empty = Callable[[Iterable[ast.PathPattern], Iterable[ast.Expression]], bool]
"""Whether paths have no match for certain, by them or by conditions."""


def apart(
    matches: Sequence[ast.MatchClause],
    known: Collection[str] = (),
    empty: Empty = lambda paths, conditions: False,
    fails: Fails = computes,
) -> list[list[ast.MatchClause]]:
    """Return MATCH clauses as groups to be matched one after the other: one group where one plan is as good.

    The conditions of a group name what it and the groups before it bind.  Groups share no variable, and edges that have
    to differ are in the same group.  Those that are ``empty`` come first.  ``known`` are the names that rows have
    before the match: where they say something of two groups, these are as good as connected by values.  What ``fails``
    is true of is tested of matches that fulfil the conditions before it, any other as soon as its names are bound.
    """
    whole = [list(matches)]
    if _connected(matches):
        return whole
    where = [(i, condition) for i, match in enumerate(matches) for condition in conjuncts(match.where)]
    if not all(_divisible(match) for match in matches) or any(subqueries_in(tuple(where))):
        return whole
    components = _components(matches)
    if len(components) == 1 or not _ordered(components) or not _edges_differ(matches, components):
        return whole
    said = [condition for _, condition in where]
    components.sort(key=lambda each: bool(each.takes) or not empty((path for _, path in each.paths), said))
    given = {*known}
    compared = [names for names in map(free_variables, said) if names & given]
    asked = [
        component
        for component in components
        if (component.names | component.takes) & given or any(component.names & names for names in compared)
    ]
    linked = len(asked) > 1 or any(component.takes.difference(known) for component in components)
    before = 0
    for i, condition in where:
        names = free_variables(condition)
        last = max((n for n, component in enumerate(components) if component.names & names), default=0)
        last = max(last, before) if fails(condition) else last  # of matches that fulfil those before it
        before = max(last, before)
        components[last].conditions.append((i, condition))
        crosses = sum(bool(component.names & names) for component in components) > 1
        linked |= crosses and any(isinstance(part, ast.Property) for part in walk(condition))
    return [_clauses(matches, component) for component in components] if linked else whole


def _connected(matches: Sequence[ast.MatchClause]) -> bool:
    """Whether vertices that paths share connect them all: nearly every pattern's way out of here."""
    left = [
        {node.variable.name for node in path.nodes if node.variable is not None}
        for match in matches
        for path in match.patterns
    ]
    reached = left.pop(0) if left else set()
    while left:
        later = []
        for names in left:
            if reached.isdisjoint(names):
                later.append(names)
            else:
                reached |= names
        if len(later) == len(left):
            return False
        left = later
    return True


def _divisible(match: ast.MatchClause) -> bool:
    return match.mode in _ANY_EDGES and not match.optional and all(path.plain for path in match.patterns)


def _components(matches: Sequence[ast.MatchClause]) -> list[_Component]:
    found: list[_Component] = []
    for i, match in enumerate(matches):
        for path in match.patterns:
            edges = [edge for edge in path.edges if isinstance(edge, ast.EdgePattern)]
            named = [each.variable for each in path.nodes] + [each.variable for each in edges]
            new = _Component([(i, path)], {variable.name for variable in named if variable is not None})
            for other in [other for other in found if other.names & new.names]:
                found.remove(other)
                new = _Component(other.paths + new.paths, other.names | new.names)
            found.append(new)
    return found


def _ordered(components: list[_Component]) -> bool:
    """Put what names variables of others after them; false where two name each other's."""
    names = [component.names for component in components]
    components.sort(key=lambda component: bool(component.takes & set().union(*names)))
    known: set[str] = set()
    for component in components:
        if component.takes & set().union(*names) - known:
            return False
        known |= component.names
    return True


def _edges_differ(matches: Sequence[ast.MatchClause], components: Sequence[_Component]) -> bool:
    """Whether no edge has to differ from one of another component."""
    for i, match in enumerate(matches):
        if match.mode is ast.MatchMode.DIFFERENT_EDGES:
            having = [c for c in components if any(clause == i and path.edges for clause, path in c.paths)]
            if len(having) > 1:
                return False
    return True


def _clauses(matches: Sequence[ast.MatchClause], component: _Component) -> list[ast.MatchClause]:
    """Return a component's clauses; conditions from elsewhere go to its last one."""
    numbers = sorted({i for i, _ in component.paths})
    made = []
    for i in numbers:
        own = [c for at, c in component.conditions if at == i or (i == numbers[-1] and at not in numbers)]
        paths = tuple(path for at, path in component.paths if at == i)
        made.append(replace(matches[i], patterns=paths, where=all_hold(own, matches[i].span)))
    return made
