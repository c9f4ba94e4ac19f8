"""MATCH clauses to relations: bindings of patterns and paths, joined with the rows before them.

A MATCH at the head of a query is a step whose bindings are the rows.  A later one keeps the rows as a table, which say
what the vertices are that the pattern shares with them.  Paths of bounded length are patterns of each length, where
these can be written out; :mod:`graphdb.relational.lowering.path_joins` and
:mod:`graphdb.relational.lowering.traversals` take the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import INTEGER, TERM, Base
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, bind
from graphdb.pattern.free import free_variables
from graphdb.pattern.graph import Duplicates, Wanted
from graphdb.pattern.paths.lengths import OF_PATHS, length_name
from graphdb.pattern.paths.unroll import Version, plain_versions
from graphdb.relational.lowering.joins.bindings import in_parts
from graphdb.relational.lowering.joins.rows import Setting
from graphdb.relational.lowering.needs import available, is_of, needs_of, only, read_beside
from graphdb.relational.lowering.subqueries.columns import AT
from graphdb.relational.lowering.traversals import Traversals
from graphdb.relational.projection.late import gathered_in, needed_first
from graphdb.relational.projection.relation import (
    MATCHES,
    ROW,
    UNIT,
    Relation,
    Source,
    bindings_of,
    rows_of,
)
from graphdb.relational.projection.return_clause import duplicates_of, wanted, window_of
from graphdb.relational.rewrites.path_columns import ASKED, written
from graphdb.relational.vectors.algebra import Clause, ColumnOf, Outer, Rows, Union
from graphdb.sql.joined import common
from graphdb.sql.value import SqlValue, bases_of, column

_LONG = 3
"""Edges of a path from which on it is searched for, where it is enough that there is one."""

_NOTHING = f"{OF_PATHS} nothing"
"""The column of rows that have no other."""


class Matches(Traversals):
    """Lowers MATCH clauses; see :class:`~graphdb.relational.lowering.joins.rows.RowTables`."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._names: set[str] = set()
        """All names in the part under way, but for those that WITH brings in."""
        self._groups: Source | None = None
        """The groups that the subquery under way runs for (column ``g``)."""
        self._within = False
        """Whether it is a subquery that is under way."""
        self._head: tuple[Relation, BoundPattern] | None = None
        """The bindings that the query starts from, as rows, and their pattern."""
        self._counts = False
        """Whether nothing but their number is returned."""
        self._sets = {}
        self._candidates_of = {}

    def _without_paths(
        self, matches: Sequence[ast.MatchClause], rest: Sequence[ast.ClauseNode], given: Collection[str]
    ) -> tuple[list[ast.MatchClause], list[ast.ClauseNode], list[Version] | None]:
        """Return MATCH clauses and those after them in which nothing is a path, where all that is asked of these can be
        written down; and the match as plain patterns, where it is several.
        """
        unchanged = [*matches], [*rest], None
        if not self._writes_paths or any(in_parts(match, self._snapshot) for match in matches):
            return unchanged
        found = written(matches, rest, given, lambda what: f"{what} {self._name('')}")
        if found is None or any(self._leads_to_literals(version, given) for version in found.versions):
            return unchanged
        self.has_written = True
        asked = [(version.matches, tuple(version.computed.values())) for version in found.versions]
        self._clauses = (self._clauses, *asked, tuple(found.rest))
        self._names |= free_variables(tuple(found.rest))
        if not found.alone:
            return [*matches], found.rest, found.versions
        (version,) = found.versions
        optional = any(match.optional for match in matches)
        return [replace(match, optional=optional) for match in version.matches], found.rest, None

    def _leads_to_literals(self, version: Version, given: Collection[str]) -> bool:
        """Whether a path has a literal among its vertices."""
        bound = bind(version.matches, self._snapshot.names, self._text, given)
        on_paths = {vertex for trace in version.paths.values() for vertex in trace.vertices}
        return any(bound.vertices[bound.vertex_of[vertex]].kinds for vertex in on_paths if vertex in bound.vertex_of)

    def _first(
        self,
        matches: Sequence[ast.MatchClause],
        rest: Sequence[ast.ClauseNode],
        versions: list[Version] | None = None,
    ) -> Relation:
        """Lower a MATCH that starts from nothing; what is returned at once may need less than all its bindings.

        ``versions`` are what it is as plain patterns, where that is known.
        """
        if not all(map(self._is_plain, matches)):
            live = self._live(UNIT, rest)
            versions = versions or self._unrolled(matches, live, (), rest[0])
            if versions is None:
                return self._with_paths(UNIT, matches, live, self._drops(rest[0]), _least(rest[0]))
            return self._first_unrolled(versions, live, rest[0])
        bound, view = self._bound(matches, UNIT), self._bindings_view()
        relation = bindings_of(bound, self._snapshot.edges, view)
        needs = self._needs_of(bound, relation, rest[0])
        if needs is not None and needs.count_only:
            self._counts = isinstance(rest[0], ast.ReturnClause) and not self._within
            needs = Wanted((), (), False, None, "count")
        if needs is None:
            beside = read_beside(bound, rest)
            live = self._live(relation, rest) | free_variables(relation.where)
            needs = needs_of(bound, live - beside, beside)
        self._add_match("match", view, bound, needs)
        facts = [bound.edges[edge].name for edge in needs.facts]
        found = only(relation, available(bound, needs), facts)
        found = replace(found, matches="b.n", number="n") if needs.duplicates == "count" else found
        if not isinstance(rest[0], ast.WithClause | ast.ReturnClause) or any(self._aside(rest[0])):
            known = self._beside[view].known(needed_first(rest), found.variables, self._text)
            found = replace(found, known={**found.known, **known})
        if not self._within:
            self._head = found, bound
        return found

    def _needs_of(self, bound: BoundPattern, relation: Relation, clause: ast.ClauseNode) -> Wanted | None:
        """What a clause needs of the bindings; None if all that is named from there on."""
        if not isinstance(clause, (ast.WithClause, ast.ReturnClause)):
            return None
        returns = clause.returns if isinstance(clause, ast.WithClause) else clause
        items = self._items(returns, relation)
        if any(self._aside((returns, relation.where))) or looks_back(clause, items, relation.variables):
            return None
        return wanted(returns, items, bound, window_of(returns, self._snapshot, self._arguments, self._text))

    def _match(
        self,
        relation: Relation,
        matches: Sequence[ast.MatchClause],
        rest: Sequence[ast.ClauseNode],
        versions: list[Version] | None = None,
    ) -> Relation:
        """Lower a MATCH or OPTIONAL MATCH that starts from rows; see :meth:`_first`."""
        live = self._live(relation, rest)
        relation = self._with_subqueries(relation, (), live | free_variables(tuple(matches)))
        left = self._table(relation, live | free_variables(tuple(matches)))
        left = self._with_elements(left, tuple(matches))
        how = "LEFT JOIN" if matches[0].optional else "JOIN"
        if not all(map(self._is_plain, matches)):
            versions = versions or self._unrolled(matches, live, left.variables, rest[0])
            if versions is None and how == "JOIN":
                return self._with_paths(left, matches, live, self._drops(rest[0]), _least(rest[0]))
            if versions is None:
                rows = self._with_row_numbers(left)
                start = replace(left, source=rows, variables={**left.variables, ROW: AT})
                found = self._with_paths(start, matches, live, self._drops(rest[0]), _least(rest[0]))
                return self._by_row(left, [found], live, how, rest)
            bounds = [self._bound_from(version.matches, left) for version in versions]
            left = self._with_operands(left, *bounds)
            pairs = zip(versions, bounds, strict=True)
            joined = [self._joined_version(left, version, bound, live) for version, bound in pairs]
            return self._by_row(left, joined, live, how, rest)
        bound = self._bound_from(matches, left)
        if how == "JOIN":
            left = self._with_operands(left, bound)
        if how == "JOIN" or not bound.residual:
            names = {*left.variables, *bound.variables}
            duplicates = self._duplicates(rest[0], names, bound.residual)
            join = "join" if how == "JOIN" else "outer join"
            return self._joined_anew(left, bound, live, join, duplicates, rest)[1]
        left, found = self._joined_anew(left, bound, live, "join")
        return self._by_row(left, [_numbered(found)], live, how, rest)

    def _with_row_numbers(self, left: Relation) -> Source:
        """Return rows that are a table with their numbers as the column ``row``."""
        columns, of_left = self._columns_of(left), rows_of(left.source)
        made = None
        if columns is not None and of_left is not None:
            made = Clause(of_left, (), (*((name, ColumnOf(name)) for name in columns), ("row", ColumnOf("rowid"))))
        return Source.made(f"(SELECT l.*, l.rowid AS row FROM {left.source} l)", left.source, rows=made)

    def _duplicates(
        self, clause: ast.ClauseNode, names: Collection[str], conditions: Sequence[ast.Expression]
    ) -> Duplicates:
        """What a clause needs of rows that are equal in what it names; ``conditions`` are still to be tested."""
        returns = clause.returns if isinstance(clause, ast.WithClause) else clause
        if not isinstance(returns, ast.ReturnClause) or any(self._aside((returns, tuple(conditions)))):
            return "keep"
        return "keep" if looks_back(clause, returns.items, names) else duplicates_of(returns, returns.items)

    def _unrolled(
        self, matches: Sequence[ast.MatchClause], live: Collection[str], given: Collection[str], then: ast.ClauseNode
    ) -> list[Version] | None:
        """Return MATCH clauses with paths as plain patterns; None where their paths are to be searched for.

        That is where they cannot be unrolled, or where it is enough that there is one: long ones are many.
        """
        edges = (edge for match in matches for path in match.patterns for edge in path.edges)
        repeats = [edge.repeat for edge in edges if edge.repeat and not edge.single]
        if any(in_parts(match, self._snapshot) for match in matches):
            return None
        if self._drops(then) and any(repeat.low <= 1 and (repeat.high or _LONG) >= _LONG for repeat in repeats):
            return None
        return plain_versions(matches, live, given)

    def _drops(self, clause: ast.ClauseNode) -> bool:
        """Whether equal rows may come once: to a clause, or because nothing matters but whether there is one."""
        returns = clause.returns if isinstance(clause, ast.WithClause) else clause
        drops = isinstance(returns, ast.ReturnClause) and duplicates_of(returns, returns.items) == "drop"
        return drops or self._whether

    def _joined_version(self, left: Relation, version: Version, bound: BoundPattern, live: Collection[str]) -> Relation:
        """Join rows, and their numbers, with the bindings of a version and with what is asked of its paths."""
        used = {*live, *version.same.values(), *free_variables(tuple(version.computed.values()))}
        then = _returning(version, live)
        _, joined = self._joined_anew(left, bound, used, "join", then=then, renumbers=False)
        return self._with_asked(_numbered(_aliased(joined, version)), version)

    def _with_asked(self, relation: Relation, version: Version) -> Relation:
        """Return rows of a version with columns of what is asked of its paths.

        Raises
        ------
        NotSupportedError
            It is not a value that SQL computes, and that cannot fail.
        """
        if not version.computed:
            return relation
        rows = self._filtered(relation, relation.variables)
        asked = [*version.computed.values()]
        for node in asked:
            value, _ = self._projecting(rows).native(node)
            if value.many or value.can_fail or value.volatile or value.type.base is Base.ANY:
                raise NotSupportedError("what may fail is computed where it is asked for")
        _, found = self._projecting(rows).select(rows.variables, known=asked)
        made = {name: found.known[node] for name, node in version.computed.items()}
        known = {node: value for node, value in found.known.items() if node not in asked}
        return replace(found, variables={**found.variables, **made}, known=known)

    def _by_row(
        self,
        left: Relation,
        joined: Sequence[Relation],
        live: Collection[str],
        how: str,
        then: Sequence[ast.ClauseNode],
    ) -> Relation:
        """Join rows once more with what they were joined with (:data:`ROW`), where that fulfils its conditions.

        Properties that these asked for are handed on to the clauses that follow.
        """
        new = [n for n in joined[0].variables if n not in left.variables and n in live]
        read = set(gathered_in(tuple(then))) if len(joined) == 1 else set()
        facts = [node for node in joined[0].known if node in read and is_of(node, left, joins=False)]
        rows, found, known = self._together(joined, [ROW, *new], live, facts)
        names = {f"m{i}": f"c{i + 1}" for i in range(len(new))}
        names |= {f"f{i}": value.column or "" for i, value in enumerate(known.values())}
        chosen = "".join(f", m.{column} AS {name}" for name, column in names.items())
        whole = f"(SELECT l.*{chosen} FROM {left.source} l {how} {rows} m ON m.c0 = l.rowid)"
        made_of, outer = rows_of(left.source), None
        if made_of is not None and rows.rows is not None and how == "LEFT JOIN":
            outer = Outer(made_of, rows.rows, "c0", tuple(names.items()))
        source = Source.made(whole, left.source, rows, rows=outer)
        made = {name: found[name].at(f"m{i}") for i, name in enumerate(new)}
        facts_of = {node: value.at(f"f{i}") for i, (node, value) in enumerate(known.items())}
        variables = {**left.variables, **made}
        return replace(left, source=source, variables=variables, known={**left.known, **facts_of})

    def _together(
        self,
        relations: Sequence[Relation],
        names: Sequence[str],
        live: Collection[str],
        facts: Sequence[ast.Expression] = (),
    ) -> tuple[Source, Mapping[str, SqlValue], dict[ast.Expression, SqlValue]]:
        """Return some columns of several relations' rows that fulfil their conditions, and what they are.

        Of one relation, also some of what is known of its rows.
        """
        selects, sources = [], []
        rows: list[Rows | None] = []
        for relation in relations:
            sql, found = self._projecting(self._filtered(relation, {*names, *live})).select(names)
            known = {node: found.known[node] for node in facts if node in found.known}
            values = [*(found.variables[name] for name in names), *known.values()]
            if found.known:  # not all of them may have the same
                sql = f"SELECT {', '.join(value.sql for value in values) or '1 AS one'} FROM ({sql}) b"
            sources.append(found.source)
            rows.append(_columns_of(found, values))
            selects.append((sql, {name: found.variables[name] for name in names}))
        together = dict(selects[0][1])
        asked = [
            name for name in names if name.startswith(ASKED) and len({found[name].type for _, found in selects}) > 1
        ]
        if asked:
            selects, rows = _of_one_type(selects, asked, together), [None]
        for name, value in together.items():
            if name in asked:
                continue
            if all(variables[name] == value for _, variables in selects):
                continue
            if value.type.base in (Base.NODE, Base.TERM, Base.ANY) or not name.startswith(ASKED):
                together[name] = replace(value, type=TERM)  # one ends at vertices, another at literals
            else:  # what is known of one alone is not known of all
                bases = bases_of([variables[name] for _, variables in selects])
                together[name] = column(value.column or "", value.type, bases=bases)
        united = Union(tuple(part for part in rows if part is not None)) if None not in rows else None
        source = Source.made(f"({' UNION ALL '.join(sql for sql, _ in selects)})", *sources, rows=united)
        return source, together, known

    def _first_unrolled(self, versions: Sequence[Version], live: Collection[str], then: ast.ClauseNode) -> Relation:
        """Lower a MATCH with paths that starts from nothing."""
        relations = []
        bounds = [self._bound(version.matches, UNIT) for version in versions]
        names = {name for bound in bounds for name in bound.variables}
        duplicates = self._duplicates(then, names, [c for bound in bounds for c in bound.residual])
        if any(name in live for bound in bounds for name in bound.edge_of) or versions[0].computed:
            duplicates = "keep"
        for version, bound in zip(versions, bounds, strict=True):
            view = self._bindings_view()
            relation = bindings_of(bound, self._snapshot.edges, view)
            asked = free_variables(tuple(version.computed.values()))
            beside = read_beside(bound, _returning(version, live))
            names = {*live, *version.same.values(), *asked, *free_variables(relation.where)}
            needs = needs_of(bound, names - beside, beside)
            needs = replace(needs, duplicates=duplicates)
            self._add_match("match", view, bound, needs)
            facts = [bound.edges[edge].name for edge in needs.facts]
            relation = _aliased(only(relation, available(bound, needs), facts), version)
            relation = self._with_asked(relation, version)
            if duplicates == "count":
                relation = replace(relation, variables={**relation.variables, MATCHES: column("n", INTEGER)})
            relations.append(relation)
        columns = [name for name in relations[0].variables if name in live or name == MATCHES]
        source, found, _ = self._together(relations, columns, live)
        variables = {name: found[name] for name in columns if name != MATCHES}
        if duplicates != "count":
            return Relation(source, variables)
        return Relation(source, variables, matches=found[MATCHES].sql, number=found[MATCHES].column)

    def _live(self, relation: Relation, rest: Sequence[ast.ClauseNode]) -> set[str]:
        """Return the names that later clauses may use: those of the relation, and those that come."""
        live = free_variables(tuple(rest))
        stars = (isinstance(part, ast.ReturnClause) and part.star for part in walk(tuple(rest)))
        if any(stars) or any(isinstance(part, ast.CallClause) and part.imported is None for part in rest):
            return live | self._names | set(relation.names)
        return live

    def _items(self, returns: ast.ReturnClause, relation: Relation) -> tuple[ast.ReturnItem, ...]:
        items = returns.items
        if returns.star:
            names = sorted(relation.names)
            items = tuple(ast.ReturnItem(ast.Variable(n), n, n, returns.span) for n in names) + items
        return items or (ast.ReturnItem(ast.Literal(1), _NOTHING, _NOTHING, returns.span),)

    def _alone(self, match: ast.MatchClause, returns: ast.ReturnClause) -> Relation:
        around = self._names, self._clauses, self._groups, self._within
        self._within, self._groups, self._clauses = True, None, (match, returns)
        self._names = free_variables(self._clauses)
        matches, rest, versions = self._without_paths([match], [returns], ())
        relation = self._filtered(self._first(matches, rest, versions), self._names)
        self._names, self._clauses, self._groups, self._within = around
        return relation


def looks_back(clause: ast.ClauseNode, items: Iterable[ast.ReturnItem], before: Collection[str]) -> bool:
    """Whether the condition of a WITH names what was there before it, and is no more."""
    if not isinstance(clause, ast.WithClause):
        return False
    return bool(free_variables(clause.where).difference(map(column_name, items)) & set(before))


def column_name(item: ast.ReturnItem) -> str:
    """Return the name of the column that an item becomes."""
    return item.alias or item.text


def _returning(version: Version, live: Collection[str]) -> tuple[ast.ClauseNode, ...]:
    """Return a clause that asks for what is asked of a version's paths, and for what later clauses name.

    None where nothing is asked of paths.
    """
    asked = [(name, node) for name, node in version.computed.items()]
    named = [(name, ast.Variable(name)) for name in sorted(live) if name not in version.computed]
    items = (ast.ReturnItem(node, name, name) for name, node in (*asked, *named))
    return (ast.ReturnClause(tuple(items)),) if version.computed else ()


def _of_one_type(
    selects: Sequence[tuple[str, dict[str, SqlValue]]], names: Sequence[str], together: dict[str, SqlValue]
) -> list[tuple[str, dict[str, SqlValue]]]:
    """Return SQL of several rows in which some columns are of one type each, which ``together`` has then.

    Raises
    ------
    NotSupportedError
        Some are integers and others are not: they are equal, and differ, at once.
    """
    chosen: list[list[str]] = [[] for _ in selects]
    for name in names:
        given = [found[name].at(found[name].column or "", "u") for _, found in selects]
        same, type = common(given)
        for mine, sql, value in zip(chosen, same, given, strict=True):
            mine.append(f"{sql} AS {value.column}")
        together[name] = column(given[0].column or "", type, bases=bases_of(given))
    pairs = zip(chosen, selects, strict=True)
    return [(f"SELECT u.* REPLACE ({', '.join(mine)}) FROM ({sql}) u", found) for mine, (sql, found) in pairs]


def _aliased(relation: Relation, version: Version) -> Relation:
    """Return a relation with the names of vertices that are another one in a version, and the lengths of its paths."""
    known = relation.variables
    same = {name: known[other] for name, other in version.same.items() if other in known}
    lengths = {
        length_name(p): SqlValue(f"CAST({len(trace.edges)} AS BIGINT)", INTEGER) for p, trace in version.paths.items()
    }
    return replace(relation, variables={**known, **same, **lengths})


def _columns_of(relation: Relation, values: Sequence[SqlValue]) -> Rows | None:
    """Return what makes some values of rows in memory columns, by their names; None where SQL has to."""
    rows = relation.source.rows
    if rows is None or not relation.known:
        return rows
    named = tuple((value.column, ColumnOf(value.column)) for value in values if value.column is not None)
    return Clause(rows, (), named) if len(named) == len(values) else None


def _numbered(relation: Relation) -> Relation:
    """Return joined rows with the number of the row that each was made of."""
    return replace(relation, variables={**relation.variables, ROW: AT})


def _least(clause: ast.ClauseNode) -> set[str]:
    """Return the names of which a clause asks for the least value alone: ``min(x)``."""
    calls = [part for part in walk(clause) if isinstance(part, ast.FunctionCall) and part.name.lower() == "min"]
    found = Counter(part.name for call in calls for part in call.arguments if isinstance(part, ast.Variable))
    uses = Counter(part.name for part in walk(clause) if isinstance(part, ast.Variable))
    starred = any(isinstance(part, ast.ReturnClause) and part.star for part in walk(clause))
    return set() if starred else {name for name, count in found.items() if uses[name] == count}
