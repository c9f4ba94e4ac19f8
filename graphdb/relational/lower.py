"""Clauses to relations: a query of any reading clauses becomes matches, and SQL that joins and shapes their bindings.

Every clause makes a relation out of the one before.  WITH, RETURN and UNWIND are one more SELECT around it.  A MATCH
keeps the rows as a table, which say what the vertices are that the pattern shares with them, and joins its bindings:
OPTIONAL MATCH outer, EXISTS, COUNT and patterns as conditions by the number of matches.  What SQL cannot express is a
column that Python computes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from graphdb.common.errors import NotSupportedError
from graphdb.common.stopping import check_stop
from graphdb.common.values.types import INTEGER, TERM, Column, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced, walk
from graphdb.pattern.apart import apart
from graphdb.pattern.bind import BoundPattern, conjuncts
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.graph import Duplicates, Wanted
from graphdb.pattern.lengths import OF_PATHS, length_name, with_lengths
from graphdb.pattern.pieces import names_of
from graphdb.pattern.rename import renamed, rewritten
from graphdb.pattern.unroll import Version, plain_versions
from graphdb.relational.joins import KEPT, Setting, available, in_parts, needs_of, only
from graphdb.relational.program import Program, Step
from graphdb.relational.projection.compile import Shaped
from graphdb.relational.projection.relation import (
    ARGUMENT,
    GROUP,
    MATCHES,
    ORDER,
    ROW,
    UNIT,
    Relation,
    Source,
    bindings_of,
)
from graphdb.relational.projection.return_clause import combines_aggregates, duplicates_of, wanted, window_of
from graphdb.relational.subqueries import AT, leading
from graphdb.relational.traversals import Traversals
from graphdb.semantics.aggregation import aggregates_in, contains_aggregate, is_aggregate
from graphdb.sql.constants import long_column, maps_column
from graphdb.sql.equivalence import has_key, lacks_key
from graphdb.sql.lists import common
from graphdb.sql.value import SqlValue, as_list, bases_of, column, column_at

if TYPE_CHECKING:
    import pyarrow as pa

_LONG = 3
"""Edges of a path from which on it is searched for, where it is enough that there is one."""

_TOGETHER = 32
"""Parts of a UNION, and clauses, of one SQL statement: DuckDB plans more for seconds, and cannot be interrupted."""

_NOTHING = f"{OF_PATHS} nothing"
"""The column of rows that have no other."""

_READING = (ast.MatchClause, ast.UnwindClause, ast.WithClause, ast.CallClause, ast.ProcedureClause, ast.ReturnClause)


class Lowering(Traversals):
    """Lowers one query: its clauses, one after the other; see :class:`~graphdb.relational.joins.Joins`."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._names: set[str] = set()
        """All names in the part under way, but for those that WITH brings in."""
        self._groups: Source | None = None
        """The groups that the subquery under way runs for (column ``g``)."""
        self._within = False
        """Whether it is a subquery that is under way."""
        self._count_view: str | None = None
        """The bindings of which nothing but their number is returned."""
        self._sets = {}
        self._candidates_of = {}

    def query(self, query: ast.Composite, start: Relation = UNIT) -> Program:
        """Lower a query, which may start from rows that are there.

        Raises
        ------
        NotSupportedError
            SQL cannot do all of it.
        GraphDBError
            Something is wrong with it.
        """
        _check_reading(query)
        shaped = self._parts(query, start)
        last = self._steps[-1] if self._steps and len(query.parts) == 1 else None
        counts = isinstance(last, Step) and last.view == self._count_view
        return Program(tuple(self._steps), replace(shaped, direct=None), self._lists, counts)

    def _parts(self, query: ast.Composite, start: Relation) -> Shaped:
        once = len(query.parts) > 1 and not query.keeps_all
        found: list[Shaped] = []
        united: list[Shaped] = []
        for part in query.parts:
            check_stop()
            if len(found) == _TOGETHER:
                united.append(self._as_table(self._union(found, query.keeps_all)))
                found = []
            found.append(self._part(_distinct(part) if once else part, start))
        found = united + found
        while len(found) > 2 * _TOGETHER:
            some = (found[at : at + _TOGETHER] for at in range(0, len(found), _TOGETHER))
            found = [self._as_table(self._union(parts, query.keeps_all)) for parts in some]
        return found[0] if len(found) == 1 else self._union(found, query.keeps_all)

    def _as_table(self, shaped: Shaped) -> Shaped:
        source = self._kept(shaped.sql, shaped.source)
        return replace(shaped, sql=f"SELECT q.* FROM {source} q", parameters={}, reads=source.reads)

    def _subquery(self, query: ast.Composite, start: Relation) -> Shaped:
        around = self._names, self._clauses, self._groups, self._within
        self._within = True
        self._groups = None if start is UNIT else Source.made(f"(SELECT b.g FROM {start.source} b)", start.source)
        shaped = self._parts(query, start)
        self._names, self._clauses, self._groups, self._within = around
        return shaped

    def _alone(self, match: ast.MatchClause, returns: ast.ReturnClause) -> Relation:
        around = self._names, self._clauses, self._groups, self._within
        self._within, self._groups, self._clauses = True, None, (match, returns)
        self._names = free_variables(self._clauses)
        relation = self._filtered(self._first([match], [returns]), self._names)
        self._names, self._clauses, self._groups, self._within = around
        return relation

    # --- clauses

    def _part(self, clauses: Sequence[ast.ClauseNode], start: Relation) -> Shaped:
        relation, rest, nested = start, list(clauses), 0
        self._names = free_variables(tuple(clauses))
        self._clauses = tuple(clauses)
        while rest:
            check_stop()
            clause, nested = rest[0], nested + 1
            if nested > _TOGETHER and relation.matches is None:
                live, nested = self._live(relation, rest), 0
                relation = self._table(self._filtered(relation, live), live)
            if isinstance(clause, ast.ReturnClause):
                return self._project(relation, clause, written=not self._within)
            if isinstance(clause, ast.MatchClause):
                matches = [clause] if clause.optional else leading(rest, relation.names)
                rest = _starred(matches, _measured(matches, rest[len(matches) :]))
                if relation is UNIT and not clause.optional and not self._within and len(rest) == 1:
                    matches = self._with_vertex_sets(matches)
                groups = [matches] if clause.optional else apart(matches, relation.variables)
                for i, group in enumerate(groups):
                    then = [*chain.from_iterable(groups[i + 1 :]), *rest]
                    fresh = relation is UNIT and not clause.optional
                    relation = self._first(group, then) if fresh else self._match(relation, group, then)
                continue
            rest = rest[1:]
            if isinstance(clause, ast.UnwindClause):
                keep = self._live(relation, rest)
                items = self._column(clause.source)
                if items is not None:
                    relation = self._crossed(relation, clause.variable.name, items, keep)
                    continue
                relation = self._with_subqueries(relation, (clause.source,), keep | free_variables(clause.source))
                names = [name for name in relation.variables if name in {*keep, *KEPT}]
                _, relation = self._shaper(relation).select(names, unwound=clause)
            elif isinstance(clause, ast.ProcedureClause):
                relation = self._invoked(relation, clause, self._live(relation, rest))
            elif isinstance(clause, ast.CallClause):
                relation = self._called(relation, clause, self._live(relation, rest))
            else:
                assert isinstance(clause, ast.WithClause)
                relation = self._with(relation, clause)
        return Shaped("SELECT 1 AS one WHERE FALSE", {}, ())  # a procedure was called for what it does

    def _invoked(self, relation: Relation, clause: ast.ProcedureClause, live: Collection[str]) -> Relation:
        """Join rows with those that a procedure yields for each, or for all with the same arguments."""
        call = self._snapshot.procedures.bound(clause, self._text)
        names = [f"{ARGUMENT} {i}" for i in range(len(call.arguments))]
        items = tuple(ast.ReturnItem(node, name, name) for node, name in zip(call.arguments, names, strict=True))
        if free_variables(call.arguments) or self._groups is not None or relation is not UNIT:
            if items:
                relation = self._with(relation, ast.WithClause(ast.ReturnClause(items, star=True)))
            relation = self._table(self._with_subqueries(relation, (), {*live, *names}), {*live, *names})
            return self._yielded(call, relation, names)
        if items:
            relation = self._with(relation, ast.WithClause(ast.ReturnClause(items)))
        return self._yielded(call, self._table(relation, names) if items else relation, names)

    def _with(self, relation: Relation, clause: ast.WithClause) -> Relation:
        items = self._items(clause.returns, relation)
        if not _looks_back(clause, items, relation.variables):
            named = None if self._groups is not None else _named(relation, clause.returns, items)
            if named is not None:
                return replace(relation, variables=named, where=tuple(conjuncts(clause.where)))
            return self._after(self._project(relation, clause.returns), clause)
        # A condition sees what was there before, too: that goes with the rows until it is tested.
        before = free_variables(clause.where).intersection(relation.variables).difference(map(_column_name, items))
        hidden = {name: f"{OF_PATHS} before {name}" for name in sorted(before)}
        further = tuple(ast.ReturnItem(ast.Variable(name), alias, alias) for name, alias in hidden.items())
        returns = replace(clause.returns, items=(*items, *further), star=False)
        return self._after(self._project(relation, returns), replace(clause, where=renamed(clause.where, hidden)))

    def _after(self, shaped: Shaped, clause: ast.WithClause) -> Relation:
        """Return the rows of a WITH; where it orders them, with their numbers."""
        found = {each.name: column_at(f"c{i}", each) for i, each in enumerate(shaped.columns)}
        source = shaped.source
        if shaped.ordered:
            source = Source.made(f"(SELECT q.*, row_number() OVER () AS at FROM {source} q)", source)
            found[ORDER] = column("at", INTEGER)
        if self._groups is not None:
            found[GROUP] = column("g", INTEGER)
        return Relation(source, found, tuple(conjuncts(clause.where)))

    def _project(self, relation: Relation, returns: ast.ReturnClause, *, written: bool = False) -> Shaped:
        items = self._items(returns, relation)
        aggregated = any(contains_aggregate(item.expression) for item in items)
        waiting = any(contains_aggregate(part) and not is_aggregate(part) for part in self._computed_in(items))
        if aggregated and not relation.grouped and (waiting or combines_aggregates(items)):
            relation = self._grouped(relation, items, returns)
        if any(self._computed_in(returns.order_by)):
            if returns.distinct or aggregated:
                relation = self._returned(relation, items, returns)
                returns = replace(returns, distinct=False)
                columns = (replace(item, expression=ast.Variable(item.alias)) if item.alias else item for item in items)
                items = tuple(columns)
            else:
                aliased = {ast.Variable(item.alias): item.expression for item in items if item.alias}
                returns = replace(returns, order_by=replaced(returns.order_by, aliased))
        expressions = (*[item.expression for item in items], *returns.order_by)
        relation = self._with_subqueries(relation, expressions, free_variables(expressions))
        window = window_of(returns, self._snapshot, self._arguments, self._text)
        shaper, groups = self._shaper(relation), None if relation.grouped else self._groups
        return shaper.shape(returns, items, window, groups=groups, written=written)

    def _computed_in(self, node: object) -> Iterator[ast.Expression]:
        """Yield what Python computes for tables of rows, of some expressions."""
        return (part for part in self._aside(node) if part in self._beforehand)

    def _grouped(self, relation: Relation, items: Sequence[ast.ReturnItem], returns: ast.ReturnClause) -> Relation:
        """Return the groups that a clause makes of rows: its keys and its aggregates are known columns."""
        keys = [item.expression for item in items if not contains_aggregate(item.expression)]
        calls = aggregates_in((*(item.expression for item in items), *(order.expression for order in returns.order_by)))
        return self._known(relation, [*dict.fromkeys((*keys, *calls))], ast.ReturnClause(()))

    def _returned(self, relation: Relation, items: Sequence[ast.ReturnItem], returns: ast.ReturnClause) -> Relation:
        """Return the rows that a clause returns, before they are ordered, with its columns by their names, too."""
        found = self._known(relation, [item.expression for item in items], returns)
        named = {item.alias: found.known[item.expression] for item in items if item.alias}
        return replace(found, variables={**found.variables, **named})

    def _known(self, relation: Relation, columns: Sequence[ast.Expression], returns: ast.ReturnClause) -> Relation:
        """Return the rows of a clause that returns some columns, which are known expressions then."""
        items = tuple(ast.ReturnItem(node, f"column {i}", f"column {i}") for i, node in enumerate(columns))
        clause = ast.ReturnClause(items, distinct=returns.distinct, span=returns.span)
        shaped = self._project(relation, clause)
        values = [column_at(f"c{i}", each) for i, each in enumerate(shaped.columns)]
        found = dict(zip(columns, values, strict=True))
        variables = {node.name: value for node, value in found.items() if isinstance(node, ast.Variable)}
        if self._groups is not None:
            variables[GROUP] = column("g", INTEGER)
        return Relation(shaped.source, variables, known=found, grouped=True)

    def _items(self, returns: ast.ReturnClause, relation: Relation) -> tuple[ast.ReturnItem, ...]:
        items = returns.items
        if returns.star:
            names = sorted(relation.names)
            items = tuple(ast.ReturnItem(ast.Variable(n), n, n, returns.span) for n in names) + items
        return items or (ast.ReturnItem(ast.Literal(1), _NOTHING, _NOTHING, returns.span),)

    def _union(self, parts: Sequence[Shaped], keeps_all: bool) -> Shaped:
        """Put the rows of several parts together; columns that SQL has no one type for are of keys."""
        columns: list[Column] = []
        several = [
            i
            for i, same in enumerate(zip(*[part.columns for part in parts], strict=True))
            if not _alike(same) or (not keeps_all and any(lacks_key(column.type) for column in same))
        ]
        if several:
            parts = [self._as_keys(part, several, self._groups is not None) for part in parts]
        chosen: list[list[str]] = [[] for _ in parts]
        for i, same in enumerate(zip(*[part.columns for part in parts], strict=True)):
            given = [column_at(f"c{i}", each, "u") for each in same]
            values, type = _common(given)
            for mine, value in zip(chosen, values, strict=True):
                mine.append(f"{value} AS c{i}")
            columns.append(replace(same[0], type=type, bases=bases_of(given)))
        if self._groups is not None:
            for mine in chosen:
                mine.append("u.g")
        pairs = zip(chosen, parts, strict=True)
        selects = [f"(SELECT {', '.join(mine)} FROM ({part.sql}) u)" for mine, part in pairs]
        if not keeps_all and any(has_key(column.type, column.bases) for column in columns):
            source = Source.made(f"({' UNION ALL '.join(selects)})", *(part.source for part in parts))
            return self._each_once(source, columns)
        sql = (" UNION ALL " if keeps_all else " UNION ").join(selects)
        reads = frozenset[str]().union(*(part.reads for part in parts))
        return Shaped(sql, self._parameters.used(sql), tuple(columns), reads=reads)

    def _each_once(self, source: Source, columns: Sequence[Column]) -> Shaped:
        """Return rows of which equivalent ones come once, where DuckDB would tell them apart."""
        found = {f"column {i}": column_at(f"c{i}", each) for i, each in enumerate(columns)}
        items = tuple(ast.ReturnItem(ast.Variable(name), name, name) for name in found)
        if self._groups is not None:
            found[GROUP] = column("g", INTEGER)
        shaped = self._project(Relation(source, found), ast.ReturnClause(items, distinct=True))
        return replace(shaped, columns=tuple(columns))

    def _column(self, source: ast.Expression) -> tuple[pa.Array, Type] | None:
        """Return a long list of plain values, or a list of maps of them, as a column."""
        if not isinstance(source, ast.Parameter | ast.Literal):
            return None
        given = self._arguments.get(source.name) if isinstance(source, ast.Parameter) else source.value
        return long_column(given) or maps_column(given)

    def _crossed(self, relation: Relation, name: str, items: tuple[pa.Array, Type], keep: Collection[str]) -> Relation:
        """Return a row for each item of a column, which SQL reads as a view."""
        import pyarrow as pa

        array, type = items
        view = self._name("list")
        self._lists[view] = pa.table({"item": array})
        relation = self._with_subqueries(relation, (), keep)
        _, rows = self._shaper(relation).select([n for n in relation.variables if n in {*keep, *KEPT}])
        crossed = f"(SELECT b.*, u.item AS item FROM {rows.source} b CROSS JOIN {view} u)"
        source = Source.made(crossed, rows.source, Source.of(view))
        return replace(rows, source=source, variables={**rows.variables, name: column("item", type)})

    # --- matches

    def _first(self, matches: Sequence[ast.MatchClause], rest: Sequence[ast.ClauseNode]) -> Relation:
        """Lower a MATCH that starts from nothing; what is returned at once may need less than all its bindings."""
        if not all(map(self._is_plain, matches)):
            live = self._live(UNIT, rest)
            versions = self._unrolled(matches, live, (), rest[0])
            if versions is None:
                return self._with_paths(UNIT, matches, live, _drops(rest[0]))
            return self._first_unrolled(versions, live, rest[0])
        bound, view = self._bound(matches, UNIT), self._name("bindings")
        relation = bindings_of(bound, self._snapshot.edges, view)
        needs = self._needs_of(bound, relation, rest[0])
        if needs is not None and needs.count_only:
            if isinstance(rest[0], ast.ReturnClause) and not self._within:
                self._count_view = view
            needs = Wanted((), (), False, None, "count")
        if needs is None:
            needs = needs_of(bound, self._live(relation, rest) | free_variables(relation.where))
        self._add_match("match", view, bound, needs)
        facts = [bound.edges[edge].name for edge in needs.facts]
        found = only(relation, available(bound, needs), facts)
        return replace(found, matches="b.n" if needs.duplicates == "count" else None)

    def _needs_of(self, bound: BoundPattern, relation: Relation, clause: ast.ClauseNode) -> Wanted | None:
        """What a clause needs of the bindings; None if all that is named from there on."""
        if not isinstance(clause, (ast.WithClause, ast.ReturnClause)):
            return None
        returns = clause.returns if isinstance(clause, ast.WithClause) else clause
        items = self._items(returns, relation)
        if any(self._aside((returns, relation.where))) or _looks_back(clause, items, relation.variables):
            return None
        return wanted(returns, items, bound, window_of(returns, self._snapshot, self._arguments, self._text))

    def _match(
        self, relation: Relation, matches: Sequence[ast.MatchClause], rest: Sequence[ast.ClauseNode]
    ) -> Relation:
        """Lower a MATCH or OPTIONAL MATCH that starts from rows."""
        live = self._live(relation, rest)
        relation = self._with_subqueries(relation, (), live | free_variables(tuple(matches)))
        left = self._table(relation, live | free_variables(tuple(matches)))
        left = self._with_elements(left, tuple(matches))
        how = "LEFT JOIN" if matches[0].optional else "JOIN"
        if not all(map(self._is_plain, matches)):
            versions = self._unrolled(matches, live, left.variables, rest[0])
            if versions is None and how == "JOIN":
                return self._with_paths(left, matches, live, _drops(rest[0]))
            if versions is None:
                rows = Source.made(f"(SELECT l.*, l.rowid AS row FROM {left.source} l)", left.source)
                start = replace(left, source=rows, variables={**left.variables, ROW: AT})
                return self._by_row(left, [self._with_paths(start, matches, live, _drops(rest[0]))], live, how)
            joined = [
                _aliased(self._joined(left, self._bound(v.matches, left), live | {*v.same.values()}, "join"), v)
                for v in versions
            ]
            return self._by_row(left, list(map(_numbered, joined)), live, how)
        bound = self._bound(matches, left)
        if how == "JOIN" or not bound.residual:
            names = {*left.variables, *bound.variables}
            duplicates = self._duplicates(rest[0], names, bound.residual)
            return self._joined(left, bound, live, "join" if how == "JOIN" else "outer join", duplicates)
        return self._by_row(left, [_numbered(self._joined(left, bound, live, "join"))], live, how)

    def _duplicates(
        self, clause: ast.ClauseNode, names: Collection[str], conditions: Sequence[ast.Expression]
    ) -> Duplicates:
        """What a clause needs of rows that are equal in what it names; ``conditions`` are still to be tested."""
        returns = clause.returns if isinstance(clause, ast.WithClause) else clause
        if not isinstance(returns, ast.ReturnClause) or any(self._aside((returns, tuple(conditions)))):
            return "keep"
        return "keep" if _looks_back(clause, returns.items, names) else duplicates_of(returns, returns.items)

    def _unrolled(
        self, matches: Sequence[ast.MatchClause], live: Collection[str], given: Collection[str], then: ast.ClauseNode
    ) -> list[Version] | None:
        """Return MATCH clauses with paths as plain patterns; None where their paths are to be searched for.

        That is where they cannot be unrolled, or where it is enough that there is one: long ones are many.
        """
        repeats = [edge.repeat for match in matches for path in match.patterns for edge in path.edges if edge.repeat]
        if any(in_parts(match, self._snapshot) for match in matches):
            return None
        if _drops(then) and any(repeat.low <= 1 and (repeat.high or _LONG) >= _LONG for repeat in repeats):
            return None
        return plain_versions(matches, live, given)

    def _by_row(self, left: Relation, joined: Sequence[Relation], live: Collection[str], how: str) -> Relation:
        """Join rows once more with what they were joined with (:data:`ROW`), where that fulfils its conditions."""
        new = [n for n in joined[0].variables if n not in left.variables and n in live]
        rows, found = self._together(joined, [ROW, *new], live)
        chosen = "".join(f", m.c{i + 1} AS m{i}" for i in range(len(new)))
        whole = f"(SELECT l.*{chosen} FROM {left.source} l {how} {rows} m ON m.c0 = l.rowid)"
        source = Source.made(whole, left.source, rows)
        made = {name: found[name].at(f"m{i}") for i, name in enumerate(new)}
        return replace(left, source=source, variables={**left.variables, **made})

    def _together(
        self, relations: Sequence[Relation], names: Sequence[str], live: Collection[str]
    ) -> tuple[Source, Mapping[str, SqlValue]]:
        """Return some columns of several relations' rows that fulfil their conditions, and what they are."""
        selects, sources = [], []
        for relation in relations:
            sql, found = self._shaper(self._filtered(relation, {*names, *live})).select(names)
            if found.known:  # not all of them may have the same
                sql = f"SELECT {', '.join(found.variables[name].sql for name in names) or '1 AS one'} FROM ({sql}) b"
            sources.append(found.source)
            selects.append((sql, {name: found.variables[name] for name in names}))
        together = dict(selects[0][1])
        for name, value in together.items():
            if any(variables[name] != value for _, variables in selects):  # one ends at vertices, another at literals
                together[name] = replace(value, type=TERM)
        return Source.made(f"({' UNION ALL '.join(sql for sql, _ in selects)})", *sources), together

    def _first_unrolled(self, versions: Sequence[Version], live: Collection[str], then: ast.ClauseNode) -> Relation:
        """Lower a MATCH with paths that starts from nothing."""
        relations = []
        bounds = [self._bound(version.matches, UNIT) for version in versions]
        names = {name for bound in bounds for name in bound.variables}
        duplicates = self._duplicates(then, names, [c for bound in bounds for c in bound.residual])
        if any(name in live for bound in bounds for name in bound.edge_of):
            duplicates = "keep"
        for version, bound in zip(versions, bounds, strict=True):
            view = self._name("bindings")
            relation = bindings_of(bound, self._snapshot.edges, view)
            needs = needs_of(bound, {*live, *version.same.values(), *free_variables(relation.where)})
            needs = replace(needs, duplicates=duplicates)
            self._add_match("match", view, bound, needs)
            relation = _aliased(only(relation, available(bound, needs)), version)
            if duplicates == "count":
                relation = replace(relation, variables={**relation.variables, MATCHES: column("n", INTEGER)})
            relations.append(relation)
        kept = [name for name in relations[0].variables if name in live or name == MATCHES]
        source, found = self._together(relations, kept, live)
        variables = {name: found[name] for name in kept if name != MATCHES}
        return Relation(source, variables, matches=found[MATCHES].sql if duplicates == "count" else None)

    def _live(self, relation: Relation, rest: Sequence[ast.ClauseNode]) -> set[str]:
        """Return the names that later clauses may use: those of the relation, and those that come."""
        live = free_variables(tuple(rest))
        stars = (isinstance(part, ast.ReturnClause) and part.star for part in walk(tuple(rest)))
        if any(stars) or any(isinstance(part, ast.CallClause) and part.imported is None for part in rest):
            return self._names | set(relation.names)
        return live


def _common(values: Sequence[SqlValue]) -> tuple[list[str], Type]:
    """Return the values of the parts of a UNION as SQL of one type; raises where they have none."""
    return common(values if len({value.type for value in values}) == 1 else list(map(as_list, values)))


def _alike(columns: Sequence[Column]) -> bool:
    """Whether SQL has a type for all values of some columns."""
    if any(each.many is not columns[0].many for each in columns):
        return False
    try:
        _common([column_at("c", each) for each in columns])
    except NotSupportedError:
        return False
    return True


def _check_reading(query: ast.Composite) -> None:
    """Refuse clauses that are not for SQL."""
    for part in query.parts:
        for clause in part:
            if not isinstance(clause, _READING):
                raise NotSupportedError("writing is not for SQL")


def _distinct(part: tuple[ast.ClauseNode, ...]) -> tuple[ast.ClauseNode, ...]:
    """Return a part of a UNION so that equal rows may come once, where that is all that DISTINCT does to it."""
    *clauses, returns = part
    if not isinstance(returns, ast.ReturnClause) or returns.order_by or returns.skip or returns.limit:
        return part
    if any(contains_aggregate(item.expression) for item in returns.items):
        return part
    return (*clauses, replace(returns, distinct=True))


def _looks_back(clause: ast.ClauseNode, items: Iterable[ast.ReturnItem], before: Collection[str]) -> bool:
    """Whether the condition of a WITH names what was there before it, and is no more."""
    if not isinstance(clause, ast.WithClause):
        return False
    return bool(free_variables(clause.where).difference(map(_column_name, items)) & set(before))


def _column_name(item: ast.ReturnItem) -> str:
    return item.alias or item.text


def _named(
    relation: Relation, returns: ast.ReturnClause, items: Iterable[ast.ReturnItem]
) -> Mapping[str, SqlValue] | None:
    """Return columns by the names that a WITH gives them; None where it does more than that."""
    if relation.where or relation.known or relation.matches is not None or any(n in KEPT for n in relation.variables):
        return None
    if returns.distinct or returns.order_by or returns.skip is not None or returns.limit is not None:
        return None
    named: dict[str, SqlValue] = {}
    for item in items:
        found = relation.variables.get(item.expression.name) if isinstance(item.expression, ast.Variable) else None
        if found is None or found.column is None:
            return None
        named[_column_name(item)] = found
    return named


def _aliased(relation: Relation, version: Version) -> Relation:
    """Return a relation with the names of vertices that are another one in a version, and the lengths of its paths."""
    known = relation.variables
    same = {name: known[other] for name, other in version.same.items() if other in known}
    lengths = {
        length_name(p): SqlValue(f"CAST({len(trace.edges)} AS BIGINT)", INTEGER) for p, trace in version.paths.items()
    }
    return replace(relation, variables={**known, **same, **lengths})


def _numbered(relation: Relation) -> Relation:
    """Return joined rows with the number of the row that each was made of."""
    return replace(relation, variables={**relation.variables, ROW: AT})


def _drops(clause: ast.ClauseNode) -> bool:
    """Whether what a clause makes of its rows depends on the distinct ones alone."""
    returns = clause.returns if isinstance(clause, ast.WithClause) else clause
    return isinstance(returns, ast.ReturnClause) and duplicates_of(returns, returns.items) == "drop"


def _starred(matches: Sequence[ast.MatchClause], rest: list[ast.ClauseNode]) -> list[ast.ClauseNode]:
    """Return later clauses, the first of which counts matches where it counts what no match lacks."""
    clause = rest[0]
    if matches[0].optional or not isinstance(clause, (ast.WithClause, ast.ReturnClause)):
        return rest
    paths = [path for match in matches for path in match.patterns]
    never = {ast.Variable(name) for path in paths for name in names_of(path, *path.nodes)}

    def change(part: object) -> object:
        if isinstance(part, SUBQUERIES):
            return part
        if not isinstance(part, ast.FunctionCall) or part.name.lower() != "count" or part.distinct:
            return None
        return ast.CountStar(part.span) if len(part.arguments) == 1 and part.arguments[0] in never else None

    returns = clause.returns if isinstance(clause, ast.WithClause) else clause
    returns = replace(returns, items=rewritten(returns.items, change), order_by=rewritten(returns.order_by, change))
    return [replace(clause, returns=returns) if isinstance(clause, ast.WithClause) else returns, *rest[1:]]


def _measured(matches: Sequence[ast.MatchClause], rest: list[ast.ClauseNode]) -> list[ast.ClauseNode]:
    """Return later clauses in which the lengths of paths are variables of their own, while they are no values."""
    paths = {path.variable.name for match in matches for path in match.patterns if path.variable is not None}
    if not paths:
        return rest
    ends = (ast.WithClause, ast.ReturnClause)
    until = next((number for number, clause in enumerate(rest) if isinstance(clause, ends)), len(rest) - 1)
    return [with_lengths(clause, paths) if number <= until else clause for number, clause in enumerate(rest)]
