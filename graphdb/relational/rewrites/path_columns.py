"""What later clauses ask of the paths of a match, as expressions of its vertices and edges.

``MATCH p = (a)-[:knows]->(b) WITH p, a RETURN a.name, reduce(s = 0, r IN relationships(p) | s + r.w)`` matches
``(a)-[e:knows]->(b)``, and its WITH hands on ``0 + e.w`` instead of a path.  Where the lengths of paths differ, what is
asked is a column of the match, computed for each length.  So the matches are those of plain patterns, properties are
columns beside their bindings, and no list is taken apart to rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import variables_in
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.paths.lengths import OF_PATHS, length_name
from graphdb.pattern.paths.unroll import Version, lists_of, longest, path_names, unroll
from graphdb.pattern.rename import renamed, rewritten
from graphdb.relational.rewrites.path_items import PathItems, written_out
from graphdb.semantics.aggregation import contains_aggregate

ASKED = f"{OF_PATHS} asked"
"""How the names of columns begin that something asked of a path is."""

Put = Callable[[ast.Expression], ast.Expression]


@dataclass(frozen=True, slots=True)
class Written:
    """MATCH clauses and those after them, in which nothing is a path.

    Attributes
    ----------
    versions
        The match as plain patterns, with what is computed of each (:attr:`Version.computed`).
    alone
        Whether the only version stands in the place of the match, and all that is asked is written down after it.
    """

    versions: list[Version]
    rest: list[ast.ClauseNode]
    alone: bool


class _NotWritten(Exception):
    """Something takes a path, or a list of edges, as a value."""


def written(
    matches: Sequence[ast.MatchClause],
    rest: Sequence[ast.ClauseNode],
    given: Collection[str],
    fresh: Callable[[str], str],
) -> Written | None:
    """Return MATCH clauses and those after them without paths; None where nothing is asked of these, or more than that.

    Parameters
    ----------
    given
        The names that are known before the match.
    fresh
        Returns a name that nothing else has, which begins as it is told.
    """
    paths, lists = path_names(matches), lists_of(matches)
    named = paths | lists
    if named.isdisjoint(variables_in((tuple(rest), tuple(match.where for match in matches)))):
        return None
    if not named.isdisjoint(given):
        return None
    versions = unroll(tuple(matches), variables_in(tuple(rest)))
    if not versions or any(not {*version.same}.isdisjoint(given) for version in versions):
        return None
    items = PathItems(paths, lists, max(map(longest, versions)), whole=True, optional=matches[0].optional)
    versions = [_with_conditions(version, items, fresh) for version in versions]
    if any(named & variables_in(version.matches) for version in versions):
        return None
    at_once = _writer(versions[0], matches[0].optional, given) if len(versions) == 1 else None
    alone = at_once is not None
    names = {*given, *(name for match in matches for name in _bound_by(match))}
    try:
        later = _Later(items, names, fresh, at_once)
        rest = later.clauses(rest)
    except _NotWritten:
        return None
    if not alone:
        for version in versions:
            version.computed = {
                name.name: renamed(written_out(node, version.paths, version.lists), version.same)
                for node, name in later.columns.items()
            }
    return Written(versions, rest, alone)


def _with_conditions(version: Version, items: PathItems, fresh: Callable[[str], str]) -> Version:
    """Return a version whose conditions are of vertices and edges, with names for these that no other match has."""
    matches = items.change(version.matches, lambda node: written_out(node, version.paths, version.lists))
    names = {name: fresh(f"{OF_PATHS} part") for name in variables_in(matches) if name.startswith("#u")}
    return version.with_names(matches, names)


def _writer(version: Version, optional: bool, given: Collection[str]) -> Put | None:
    """Return what writes down what is asked of the paths of a match, which is null where that is not found.

    None where no one name says whether it is, or vertices are others because nothing is between them.
    """
    found = [name for trace in version.paths.values() for name in (*trace.vertices, *trace.edges)]
    found += [name for edges in version.lists.values() for name in edges]
    there = next((name for name in found if name not in given), None)
    if version.same or (optional and there is None):
        return None

    def write(node: ast.Expression) -> ast.Expression:
        made = written_out(node, version.paths, version.lists)
        of_item = isinstance(made, ast.Variable) or (
            isinstance(made, ast.Property) and isinstance(made.base, ast.Variable)
        )
        if of_item or not optional or there is None:
            return made
        test = ast.IsNull(ast.Variable(there, node.span), negated=True, span=node.span)
        return ast.Case(None, (((test,), made),), None, node.span)

    return write


class _Later:
    """Writes the clauses after a match.

    ``known`` are the names by then, and ``at_once`` writes down what is asked up to the first WITH: where it is None,
    all of that are columns of the match.
    """

    def __init__(self, items: PathItems, known: set[str], fresh: Callable[[str], str], at_once: Put | None) -> None:
        self.columns: dict[ast.Expression, ast.Variable] = {}
        """What is asked, with the names of the columns that it is."""
        self._items, self._fresh, self._at_once = items, fresh, at_once
        self._alive = known
        self._named = {*items.paths, *items.lists}
        self._first = at_once is not None
        """Whether no WITH has come yet, so that the match's own names are there."""

    def clauses(self, rest: Sequence[ast.ClauseNode]) -> list[ast.ClauseNode]:
        """Return the clauses; raises :class:`_NotWritten`."""
        found: list[ast.ClauseNode] = []
        carrying: list[int] = []
        for clause in rest:
            if self._named.isdisjoint(self._alive):
                found.append(clause)
                continue
            clause = rewritten(clause, self._by_length)
            match clause:
                case ast.WithClause():
                    carrying.append(len(found))
                    clause = self._with(clause)
                case ast.ReturnClause():
                    clause = self._returned(clause)
                case ast.MatchClause() if not self._named.isdisjoint(_bound_by(clause)):
                    raise _NotWritten
                case ast.MatchClause() | ast.UnwindClause() | ast.ProcedureClause():
                    clause = self._items.change(clause, self._put if self._first else self._column)
            if self._items.mentioned(clause) and not self._named.isdisjoint(self._alive):
                raise _NotWritten
            found.append(clause)
        return self._carried(found, carrying)

    def _with(self, clause: ast.WithClause) -> ast.WithClause:
        returns, named = clause.returns, self._named
        groups = returns.distinct or any(contains_aggregate(item.expression) for item in returns.items)
        passed = {_name_of(item) for item in returns.items if _is_passed(item)}
        if groups and (passed & named or self._items.mentioned(clause.where)):
            raise _NotWritten
        items = tuple(item for item in returns.items if not (_is_passed(item) and _name_of(item) in named))
        returns = self._returned(replace(returns, items=items))
        where = self._items.change(clause.where, self._column)
        self._alive, self._first = self._alive & passed, False
        return replace(clause, returns=returns, where=where)

    def _returned(self, returns: ast.ReturnClause) -> ast.ReturnClause:
        if returns.star or any(item.alias in self._named for item in returns.items):
            raise _NotWritten
        found = self._items.change(returns, self._put if self._first else self._column)
        if self._items.mentioned(found):
            raise _NotWritten
        return found

    def _put(self, node: ast.Expression) -> ast.Expression:
        assert self._at_once is not None
        return self._at_once(node)

    def _column(self, node: ast.Expression) -> ast.Expression:
        if not free_variables(node) <= self._alive | {length_name(path) for path in self._items.paths}:
            raise _NotWritten
        if node not in self.columns:
            self.columns[node] = ast.Variable(self._fresh(ASKED), node.span)
        return self.columns[node]

    def _by_length(self, part: object) -> object:
        """Whether there is a path is whether it has a length."""
        match part:
            case ast.FunctionCall(name, (ast.Variable(path) as argument,), False) if path in self._items.paths:
                if name.lower() == "count":
                    return replace(part, arguments=(ast.FunctionCall("length", (argument,), span=part.span),))
            case ast.IsNull(ast.Variable(path) as argument) if path in self._items.paths:
                return replace(part, operand=ast.FunctionCall("length", (argument,), span=part.span))
        return part if isinstance(part, SUBQUERIES) else None

    def _carried(self, found: list[ast.ClauseNode], carrying: Sequence[int]) -> list[ast.ClauseNode]:
        """Return clauses of which each WITH hands on the columns that it and later ones name."""
        asked = {name.name: node for node, name in self.columns.items()}
        for number, at in enumerate(carrying):
            clause = found[at]
            assert isinstance(clause, ast.WithClause)
            later = free_variables((clause.where, clause.returns.order_by, tuple(found[at + 1 :])))
            items = list(clause.returns.items)
            for name in sorted(later & asked.keys()):
                first = number == 0 and self._at_once is not None
                value = self._put(asked[name]) if first else ast.Variable(name)
                items.append(ast.ReturnItem(value, name, name))
            found[at] = replace(clause, returns=replace(clause.returns, items=tuple(items)))
        return found


def _bound_by(match: ast.MatchClause) -> set[str]:
    """Return the names that the patterns of a clause give."""
    kinds = (ast.NodePattern, ast.EdgePattern, ast.PathPattern)
    parts = (part for part in walk(match.patterns) if isinstance(part, kinds))
    return {part.variable.name for part in parts if part.variable is not None}


def _name_of(item: ast.ReturnItem) -> str:
    return item.alias or item.text


def _is_passed(item: ast.ReturnItem) -> bool:
    """Whether an item of a WITH hands on a variable as it is."""
    return isinstance(item.expression, ast.Variable) and _name_of(item) == item.expression.name
