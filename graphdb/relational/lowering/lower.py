"""Clauses to relations: a query of any reading clauses becomes matches, and SQL that joins and projects their bindings.

Every clause makes a relation out of the one before.  WITH, RETURN and UNWIND are one more SELECT around it.  A MATCH
keeps the rows as a table, which say what the vertices are that the pattern shares with them, and joins its bindings:
OPTIONAL MATCH outer, EXISTS, COUNT and patterns as conditions by the number of matches.  What SQL cannot express is a
column that Python computes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from graphdb.common import arrow
from graphdb.common.errors import NotSupportedError
from graphdb.common.stopping import check_stop
from graphdb.common.values.types import INTEGER, Column, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced
from graphdb.pattern.absent import has_no_match
from graphdb.pattern.apart import apart
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.failing import can_fail, computes
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.paths.lengths import OF_PATHS, is_length, length_name, with_lengths
from graphdb.pattern.paths.pieces import names_of
from graphdb.pattern.rename import renamed, rewritten
from graphdb.relational.argument_columns import ListOf, item_of_column, part_of_list
from graphdb.relational.lowering.joins.items import conditions_first, joined_by
from graphdb.relational.lowering.joins.rows import CARRIED
from graphdb.relational.lowering.matches import Matches, column_name, looks_back
from graphdb.relational.lowering.shared_lists import is_shared, makes_one_row, passed_on, relation_of
from graphdb.relational.lowering.subqueries.forms import leading
from graphdb.relational.program import Joined, Program, Rows, Step
from graphdb.relational.projection.grouped_vectors import united
from graphdb.relational.projection.relation import (
    ARGUMENT,
    GROUP,
    ORDER,
    UNIT,
    Relation,
    Source,
)
from graphdb.relational.projection.return_clause import combines_aggregates, window_of
from graphdb.relational.projection.sql import Projection
from graphdb.relational.rewrites.edge_counts import counting_no_edges
from graphdb.relational.vectors.algebra import Clause
from graphdb.semantics.aggregation import aggregates_in, contains_aggregate, is_aggregate
from graphdb.sql.equivalence import has_key, lacks_key
from graphdb.sql.joined import have_one_type, unified
from graphdb.sql.value import SqlValue, as_list, bases_of, column, column_at

_TOGETHER = 32
"""Parts of a UNION, and clauses, of one SQL statement: DuckDB plans more for seconds, and cannot be interrupted."""

_READING = (ast.MatchClause, ast.UnwindClause, ast.WithClause, ast.CallClause, ast.ProcedureClause, ast.ReturnClause)


class Lowering(Matches):
    """Lowers one query, clause by clause; see :class:`~graphdb.relational.lowering.joins.rows.RowTables`."""

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
        projection = self._parts(query, start)
        last = self._steps[-1] if self._steps and len(query.parts) == 1 else None
        alone = self._head is not None and isinstance(last, Step) and last.view == self._head[0].source.view
        projection = projection if alone else replace(projection, direct=None)
        steps = (
            replace(step, beside=self._beside[step.view].columns) if isinstance(step, Step | Rows | Joined) else step
            for step in self._steps
        )
        return Program(tuple(steps), projection, self._lists, self._listed, alone and self._counts)

    def _parts(self, query: ast.Composite, start: Relation) -> Projection:
        once = len(query.parts) > 1 and not query.keeps_all
        found: list[Projection] = []
        united: list[Projection] = []
        for part in query.parts:
            check_stop()
            if len(found) == _TOGETHER:
                united.append(self._as_table(self._union(found, query.keeps_all)))
                found = []
            found.append(self._part(_distinct(part) if once else part, start, once=once))
        found = united + found
        while len(found) > 2 * _TOGETHER:
            some = (found[at : at + _TOGETHER] for at in range(0, len(found), _TOGETHER))
            found = [self._as_table(self._union(parts, query.keeps_all)) for parts in some]
        return found[0] if len(found) == 1 else self._union(found, query.keeps_all)

    def _as_table(self, projection: Projection) -> Projection:
        source = self._materialized(projection.sql, projection.source, made=projection.rows)
        return replace(projection, sql=f"SELECT q.* FROM {source} q", parameters={}, reads=source.reads, rows=None)

    def _subquery(self, query: ast.Composite, start: Relation, *, whether: bool = False) -> Projection:
        around = self._names, self._clauses, self._groups, self._within, self._whether
        self._within, self._whether = True, whether
        self._groups = None
        if start is not UNIT:
            of, rows = start.source, start.source.view
            self._groups = Source.made(f"(SELECT b.g FROM {of} b)", of, rows=rows)
        projection = self._parts(query, start)
        self._names, self._clauses, self._groups, self._within, self._whether = around
        return projection

    # --- clauses

    def _part(self, clauses: Sequence[ast.ClauseNode], start: Relation, *, once: bool = False) -> Projection:
        """Lower one part of a UNION; ``once`` if that returns equal rows once, so that the part need not."""
        relation, rest, nested = start, list(clauses), 0
        self._names = free_variables(tuple(clauses))
        self._clauses = tuple(clauses)
        if not self._within:
            self._sets, self._candidates_of = {}, {}
        while rest:
            check_stop()
            clause, nested = rest[0], nested + 1
            if nested > _TOGETHER and relation.matches is None:
                live, nested = self._live(relation, rest), 0
                relation = self._table(self._filtered(relation, live), live)
            if isinstance(clause, ast.ReturnClause):
                return self._project(relation, clause, written=not self._within, repeated=once)
            if isinstance(clause, ast.MatchClause):
                clause, others = counting_no_edges(clause, rest[1:], relation.names)
                matches, rest = [clause], [clause, *others]
                if not clause.optional:
                    matches = leading(rest, relation.names)
                rest = _starred(matches, rest[len(matches) :])
                matches, rest, versions = self._without_paths(matches, rest, relation.variables)
                rest = _measured(matches, rest)
                if relation is UNIT and not clause.optional and not self._within and len(rest) == 1:
                    matches = self._with_vertex_sets(matches)
                groups = [matches] if clause.optional else self._apart(matches, relation.variables)
                for i, group in enumerate(groups):
                    then = [*chain.from_iterable(groups[i + 1 :]), *rest]
                    fresh = relation is UNIT and not clause.optional
                    relation = (
                        self._first(group, then, versions) if fresh else self._match(relation, group, then, versions)
                    )
                continue
            rest = rest[1:]
            if isinstance(clause, ast.UnwindClause):
                keep = self._live(relation, rest)
                items = self._column(clause.source)
                if items is not None:
                    conditions, rest = conditions_first(rest)
                    relation = self._crossed(relation, clause, items, keep, conditions)
                    continue
                relation = self._with_subqueries(relation, (clause.source,), keep | free_variables(clause.source))
                names = [name for name in relation.variables if name in {*keep, *CARRIED}]
                _, relation = self._projecting(relation).select(names, unwound=clause)
            elif isinstance(clause, ast.ProcedureClause):
                relation = self._invoked(relation, clause, self._live(relation, rest))
            elif isinstance(clause, ast.CallClause):
                relation = self._called(relation, clause, self._live(relation, rest))
            else:
                assert isinstance(clause, ast.WithClause)
                relation = self._with(relation, clause)
        return Projection("SELECT 1 AS one WHERE FALSE", {}, ())  # a procedure was called for what it does

    def _is_empty(self, paths: Iterable[ast.PathPattern], conditions: Iterable[ast.Expression]) -> bool:
        """Whether paths have no match for certain."""
        return has_no_match(paths, conditions, self._snapshot.names, self._text)

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

    def _with_lengths(self, relation: Relation, clause: ast.WithClause) -> ast.WithClause:
        """Return a WITH of a subquery that hands on, with paths around it, their lengths, which are no names."""
        returns = clause.returns
        passed = [column_name(item) for item in returns.items if item.expression == ast.Variable(column_name(item))]
        lengths = sorted(name for name in relation.variables if is_length(name) and name in self._names)
        if not returns.star:
            lengths = [name for name in lengths if name in map(length_name, passed)]
        if not lengths:
            return clause
        items = tuple(ast.ReturnItem(ast.Variable(name), name, name) for name in lengths)
        return replace(clause, returns=replace(returns, items=(*returns.items, *items)))

    def _with(self, relation: Relation, clause: ast.WithClause) -> Relation:
        clause = self._with_lengths(relation, clause)
        items = self._items(clause.returns, relation)
        if not looks_back(clause, items, relation.variables):
            named = None if self._groups is not None else _named(relation, clause.returns, items)
            if named is not None:
                return replace(relation, variables=named, where=tuple(conjuncts(clause.where)), links=())
            shared, returns = passed_on(relation, clause.returns, items)
            if shared:
                items = self._items(returns, relation)
            projection = self._project(relation, returns)
            if self._groups is None and makes_one_row(relation, returns, items):
                stay = [is_shared(item, made) for item, made in zip(items, projection.columns, strict=True)]
                if any(stay):
                    table = self._materialized(projection.sql, projection.source, lasting=True, made=projection.rows)
                    found = relation_of(table, projection.columns, stay)
                    return replace(found, variables={**found.variables, **shared}, where=tuple(conjuncts(clause.where)))
            found = self._after(projection, clause)
            return replace(found, variables={**found.variables, **shared}) if shared else found
        # A condition sees what was there before, too: that goes with the rows until it is tested.
        before = free_variables(clause.where).intersection(relation.variables).difference(map(column_name, items))
        hidden = {name: f"{OF_PATHS} before {name}" for name in sorted(before)}
        further = tuple(ast.ReturnItem(ast.Variable(name), alias, alias) for name, alias in hidden.items())
        returns = replace(clause.returns, items=(*items, *further), star=False)
        return self._after(self._project(relation, returns), replace(clause, where=renamed(clause.where, hidden)))

    def _after(self, projection: Projection, clause: ast.WithClause) -> Relation:
        """Return the rows of a WITH; where it orders them, with their numbers."""
        found = {each.name: column_at(f"c{i}", each) for i, each in enumerate(projection.columns)}
        source = projection.source
        if projection.ordered:
            rows = replace(source.rows, numbered="at") if isinstance(source.rows, Clause) else None
            source = Source.made(f"(SELECT q.*, row_number() OVER () AS at FROM {source} q)", source, rows=rows)
            found[ORDER] = column("at", INTEGER)
        if self._groups is not None:
            found[GROUP] = column("g", INTEGER)
        if isinstance(source.rows, Clause) and source.rows.is_smaller and not (self._groups or clause.where):
            source = self._materialized(f"SELECT q.* FROM {source} q", source, made=source.rows)
        return Relation(source, found, tuple(conjuncts(clause.where)))

    def _project(
        self, relation: Relation, returns: ast.ReturnClause, *, written: bool = False, repeated: bool = False
    ) -> Projection:
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
        groups = None if relation.grouped else self._groups
        bound = self._head[1] if written and self._head is not None and self._head[0] is relation else None
        return self._projecting(relation, bound).project(
            returns, items, window, groups=groups, written=written, repeated=repeated
        )

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
        return replace(found, variables={**found.variables, **named}, links=())

    def _known(self, relation: Relation, columns: Sequence[ast.Expression], returns: ast.ReturnClause) -> Relation:
        """Return the rows of a clause that returns some columns, which are known expressions then."""
        items = tuple(ast.ReturnItem(node, f"column {i}", f"column {i}") for i, node in enumerate(columns))
        clause = ast.ReturnClause(items, distinct=returns.distinct, span=returns.span)
        projection = self._project(relation, clause)
        values = [column_at(f"c{i}", each) for i, each in enumerate(projection.columns)]
        found = dict(zip(columns, values, strict=True))
        variables = {node.name: value for node, value in found.items() if isinstance(node, ast.Variable)}
        if self._groups is not None:
            variables[GROUP] = column("g", INTEGER)
        return Relation(projection.source, variables, known=found, grouped=True)

    def _union(self, parts: Sequence[Projection], keeps_all: bool) -> Projection:
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
            values, type = unified(_as_one(given))
            for mine, value in zip(chosen, values, strict=True):
                mine.append(f"{value} AS c{i}")
            columns.append(replace(same[0], type=type, bases=bases_of(given)))
        if self._groups is not None:
            for mine in chosen:
                mine.append("u.g")
        pairs = zip(chosen, parts, strict=True)
        selects = [f"(SELECT {', '.join(mine)} FROM ({part.sql}) u)" for mine, part in pairs]
        made = None if several else united(parts, columns, keeps_all, of_groups=self._groups is not None)
        if not keeps_all and any(has_key(column.type, column.bases) for column in columns):
            source = Source.made(f"({' UNION ALL '.join(selects)})", *(part.source for part in parts))
            return replace(self._each_once(source, columns), rows=made)
        sql = (" UNION ALL " if keeps_all else " UNION ").join(selects)
        reads = frozenset[str]().union(*(part.reads for part in parts))
        return Projection(sql, self._parameters.used(sql), tuple(columns), reads=reads, rows=made)

    def _each_once(self, source: Source, columns: Sequence[Column]) -> Projection:
        """Return rows of which equivalent ones come once, where DuckDB would tell them apart."""
        found = {f"column {i}": column_at(f"c{i}", each) for i, each in enumerate(columns)}
        items = tuple(ast.ReturnItem(ast.Variable(name), name, name) for name in found)
        if self._groups is not None:
            found[GROUP] = column("g", INTEGER)
        projection = self._project(Relation(source, found), ast.ReturnClause(items, distinct=True))
        return replace(projection, columns=tuple(columns))

    def _apart(self, matches: Sequence[ast.MatchClause], known: Collection[str]) -> list[list[ast.MatchClause]]:
        """Return MATCH clauses as groups to be matched one after the other; see :func:`~graphdb.pattern.apart.apart`.

        Without care, no number is taken to be out of range: should one be, the query runs again.
        """

        def fails(condition: ast.Expression) -> bool:
            if self._snapshot.careful or self._snapshot.told is not None:
                return computes(condition)
            return can_fail(condition, self._snapshot.names, self._text)

        return apart(matches, known, self._is_empty, fails)

    def _column(self, source: ast.Expression) -> tuple[arrow.Array, Type] | None:
        """Return a long list of plain values, a part of it, or a list of maps of them, as a column."""
        if isinstance(source, ast.Literal):
            return part_of_list(source.value)
        part = _part(source)
        return None if part is None else part_of_list(self._arguments.unnoted.get(part[0]), *part[1:])

    def _crossed(
        self,
        relation: Relation,
        clause: ast.UnwindClause,
        items: tuple[arrow.Array, Type],
        keep: Collection[str],
        conditions: tuple[ast.Expression, ...],
    ) -> Relation:
        """Return a row for each item of a column, which SQL reads as a view; conditions are still to be fulfilled."""
        array, type = items
        name, view = clause.variable.name, self._name("list")
        self._lists[view] = arrow.table({"item": array})
        if (part := _part(clause.source)) is not None:
            named, begin, end = part
            self._listed[view] = ListOf(named, type, begin, end)
        item, listed = item_of_column("item", type), Source.of(view)
        if item.column is None:
            listed = Source.made(f"(SELECT {item.sql} AS item FROM {view} b)", listed)
            item = item.at("item")
        if relation is UNIT:
            return Relation(listed, {name: item}, conditions)
        relation = self._with_subqueries(relation, (), keep)
        of_rows, of_items = joined_by(conditions, relation.variables.keys() - {name}, name)
        known: dict[ast.Expression, SqlValue] = {}
        added = {name: item}
        if of_rows:
            relation = self._as_columns(self._table(relation, {*keep, *free_variables(conditions)}), of_rows)
            listed, known = self._with_fields(Relation(listed, {name: item}), of_items)
            if self._groups is not None and not self._whether and ORDER not in relation.variables:
                added[ORDER] = column("at", INTEGER)  # a hash join yields items in any order
        _, rows = self._projecting(relation).select([n for n in relation.variables if n in {*keep, *CARRIED}])
        further = ", u.* EXCLUDE (item)" if of_rows else ""
        crossed = f"(SELECT b.*, u.item AS item{further} FROM {rows.source} b CROSS JOIN {listed} u)"
        source = Source.made(crossed, rows.source, listed)
        variables = {**rows.variables, **added}
        return replace(rows, source=source, variables=variables, where=conditions, known={**rows.known, **known})

    def _with_fields(
        self, listed: Relation, fields: Sequence[ast.Expression]
    ) -> tuple[Source, dict[ast.Expression, SqlValue]]:
        """Return the items of a list with their numbers, ``at``, and columns ``i0 …`` for what is computed of each."""
        sql, found = self._projecting(listed).select(listed.variables, known=fields)
        chosen = "".join(f", q.k{i} AS i{i}" for i in range(len(fields)))
        numbered = f"(SELECT q.c0 AS item, row_number() OVER () AS at{chosen} FROM ({sql}) q)"
        source = Source.made(numbered, listed.source)
        return source, {node: found.known[node].at(f"i{i}") for i, node in enumerate(fields)}


def _part(source: ast.Expression) -> tuple[str, int | None, int | None] | None:
    """Return the parameter that an expression is, or is a part of, and where this begins and ends; None for others."""
    if isinstance(source, ast.Parameter):
        return source.name, None, None
    if not isinstance(source, ast.Slice) or not isinstance(source.base, ast.Parameter):
        return None
    bounds = []
    for bound in (source.start, source.end):
        value = bound.value if isinstance(bound, ast.Literal) else bound
        if value is not None and type(value) is not int:
            return None
        if bound is not None and value is None:  # null
            return None
        bounds.append(value)
    return source.base.name, bounds[0], bounds[1]


def _as_one(values: Sequence[SqlValue]) -> Sequence[SqlValue]:
    """Return the values of a column of the parts of a UNION: tuples of several types as lists."""
    return values if len({value.type for value in values}) == 1 else list(map(as_list, values))


def _alike(columns: Sequence[Column]) -> bool:
    """Whether SQL has a type for all values of some columns."""
    if any(each.many is not columns[0].many for each in columns):
        return False
    return have_one_type(_as_one([column_at("c", each) for each in columns]))


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


def _named(
    relation: Relation, returns: ast.ReturnClause, items: Iterable[ast.ReturnItem]
) -> Mapping[str, SqlValue] | None:
    """Return columns by the names that a WITH gives them; None where it does more than that."""
    if relation.where or relation.known or relation.matches is not None:
        return None
    if any(name in CARRIED for name in relation.variables):
        return None
    if returns.distinct or returns.order_by or returns.skip is not None or returns.limit is not None:
        return None
    named: dict[str, SqlValue] = {}
    for item in items:
        found = relation.variables.get(item.expression.name) if isinstance(item.expression, ast.Variable) else None
        if found is None or (found.column is None and not found.shared):
            return None
        named[column_name(item)] = found
    return named


def _starred(matches: Sequence[ast.MatchClause], rest: list[ast.ClauseNode]) -> list[ast.ClauseNode]:
    """Return later clauses, the first of which counts matches where it counts what no match lacks."""
    clause = rest[0]
    if matches[0].optional or not isinstance(clause, (ast.WithClause, ast.ReturnClause)):
        return rest
    paths = [path for match in matches for path in match.patterns]
    edges = [edge for path in paths for edge in path.edges if isinstance(edge, ast.EdgePattern)]
    named = [names_of(*edges), *(names_of(path, *path.nodes) for path in paths)]
    never = {ast.Variable(name) for names in named for name in names}

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
