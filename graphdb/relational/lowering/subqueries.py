"""Subqueries to joins: EXISTS, COUNT and COLLECT, and patterns as conditions or lists, become columns of the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from graphdb.common.values.types import ANY, BOOLEAN, INTEGER, MIXED, Base, Type, has_terms, list_of, sql_type
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.failing import can_fail
from graphdb.pattern.free import SUBQUERIES, Subquery, free_variables
from graphdb.pattern.graph import EdgeTest, Wanted
from graphdb.pattern.paths.lengths import is_length, length_name
from graphdb.pattern.paths.search import Differing, PathSearch
from graphdb.procedures.registry import Call
from graphdb.relational.lowering.joins.bindings import all_of
from graphdb.relational.lowering.needs import available, needs_of, only, only_matches
from graphdb.relational.lowering.semijoins import Semijoins
from graphdb.relational.lowering.subquery_forms import (
    calls_procedure,
    collects,
    is_existence,
    is_volatile,
    one_match,
    query_of,
    wants_all_shortest,
)
from graphdb.relational.lowering.subquery_values import by_values, have_few_values
from graphdb.relational.program import Applied, Called, Computed, Counted
from graphdb.relational.projection.grouped_vectors import (
    collected,
    counted,
    grouped_values,
    groups_of,
    listed_by_row,
    with_rows_of_groups,
)
from graphdb.relational.projection.late import gathered_in
from graphdb.relational.projection.relation import GROUP, ROW, UNIT, VALUE, Relation, Source, bindings_of, rows_of
from graphdb.relational.projection.sql import Projection, listed
from graphdb.relational.vectors.algebra import Rows
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.sql.computing import Input
from graphdb.sql.value import SqlValue, as_list, column, column_at

AT = column("row", INTEGER)
"""The number of the row that a match started from."""

_ALIKE = (Base.NODE, Base.TERM, Base.EDGE, Base.PATH, Base.INTEGER, Base.STRING, Base.BOOLEAN)
"""Types whose equal values are the same value."""

_PLAIN = (Base.INTEGER, Base.FLOAT, Base.STRING, Base.BOOLEAN, Base.DATE, Base.NULL)
"""Types of arguments that procedures are called with from SQL."""

_PER_ROW = "WITH f AS MATERIALIZED ({1}) SELECT f.c0 AS at, {0} AS n FROM f GROUP BY f.c0"
"""Of rows by their numbers.  DuckDB would otherwise gather, before the join that makes them, all that might be joined:
lists of 360,000 values for the 28,000 that some row has."""


@dataclass(frozen=True, slots=True)
class _Added:
    """What a subquery adds to each row ``l``: SQL of its value, with its type, over what is joined with the rows."""

    sql: str
    type: Type
    join: str
    """What stands after LEFT JOIN."""
    reads: frozenset[str]
    """The names of the tables and views that the join reads, of those that the program makes."""
    counted: tuple[str, tuple[tuple[str, str], ...], bool] | None = None
    """Where it is the number of bindings of a view: that, the columns that must be equal, and whether one will do."""
    of_groups: tuple[str, str, Rows] | None = None
    """Where columns in memory say a number or list (``n``) of each group (``g``): the column of the vertices that have
    groups, the table of these, and the rows."""
    by_row: Rows | None = None
    """Where columns in memory say a list (``n``) of each row (``g``): the rows of these."""


class Subqueries(Semijoins):
    """Adds the columns of subqueries to rows."""

    def _with_subqueries(self, relation: Relation, expressions: Iterable[object], keep: Collection[str]) -> Relation:
        """Return the rows with a column for each subquery of some expressions, and of their own conditions."""
        together: list[Subquery] = []
        for node in dict.fromkeys(self._aside((*expressions, *relation.where))):
            if node in relation.known:
                continue
            joined = node not in self._sets and isinstance(node, SUBQUERIES)
            if together and (not joined or self._decides(relation, together)):
                relation, together = self._with_joined(relation, together, keep), []
            if joined:
                assert isinstance(node, SUBQUERIES)
                together.append(node)
            elif node in self._sets:
                relation = self._with_known_set(relation, node)
            elif relation.grouped or not contains_aggregate(node):
                relation = self._with_computed(relation, node, keep)
        return self._with_joined(relation, together, keep) if together else relation

    def _decides(self, relation: Relation, nodes: Collection[ast.Expression]) -> bool:
        """Whether some subqueries are all that a condition of the rows waits for: it leaves fewer for what follows."""
        waiting = ([part for part in self._aside(c) if part not in relation.known] for c in relation.where)
        return any(parts and all(part in nodes for part in parts) for parts in waiting)

    def _with_computed(self, relation: Relation, node: ast.Expression, keep: Collection[str]) -> Relation:
        """Return the rows with the values of an expression that Python computes for all of them, between two SQLs."""
        left = self._table(relation, {*keep, *free_variables(node)})
        sql, found = self._projecting(left).computed(node)
        view, type = self._name("computed"), sql_type(found.value.type)
        step = Computed(view, sql, self._parameters.used(sql), left.source.reads, found.compute, type)
        self._steps.append(step)
        joined = f"(SELECT l.*, r.value, r.failed FROM {left.source} l LEFT JOIN {view} r ON r.row = l.rowid)"
        source = Source.made(joined, left.source, Source.of(view))
        return replace(left, source=source, known={**left.known, node: found.value})

    def _filtered(self, relation: Relation, keep: Collection[str]) -> Relation:
        """Return the rows with all that their conditions need."""
        return self._with_subqueries(relation, (), keep)

    def _with_joined(self, relation: Relation, nodes: Sequence[Subquery], keep: Collection[str]) -> Relation:
        """Return the rows with a column for each of some subqueries, all joined with one table of the rows."""
        left = self._table(relation, {*keep, *free_variables(tuple(nodes))})
        matches = [self._plain_match(node) for node in nodes]
        left = self._with_elements(left, tuple(clause for one in matches if one is not None for clause in one[0]))
        bounds = [
            None if one is None or any(self._aside(one[1])) else self._bound_from(one[0], left) for one in matches
        ]
        left = self._with_operands(left, *[bound for bound in bounds if bound is not None])
        queried = [query_of(node) for node, bound in zip(nodes, bounds, strict=True) if bound is None]
        left = self._with_values(left, queried)
        around, self._shared_groups = self._shared_groups, {}
        found = [
            self._queried(left, query_of(node), is_existence(node), collects(node), str(i) if i else "")
            if bound is None
            else self._added(left, node, bound, None if one is None else one[1], str(i) if i else "")
            for i, (node, one, bound) in enumerate(zip(nodes, matches, bounds, strict=True))
        ]
        self._shared_groups = around
        known, names = dict(left.known), [f"s{i}" for i in range(len(found))]
        rest = list(zip(names, found, strict=True))
        source = left.source
        if self._has_arrays(source) and any(added.counted is not None for added in found):
            source, names = self._with_counts(source, found)
            rest = [pair for pair in zip(names, found, strict=True) if pair[1].counted is None]
        for node, name, added in zip(nodes, names, found, strict=True):
            known[node] = column(name, added.type)
            if is_existence(node):
                known[node] = SqlValue(f"(b.{name} > 0)", BOOLEAN, counted=name)
            elif isinstance(node, ast.ShortestPath) and not wants_all_shortest(node):
                assert added.type.element is not None
                known[node] = SqlValue(f"(b.{name})[1]", added.type.element)
        if rest:
            columns = "".join(f", {added.sql} AS {name}" for name, added in rest)
            joins = "".join(f" LEFT JOIN {added.join}" for _, added in rest)
            reads = source.reads.union(*(added.reads for _, added in rest))
            rows = rows_of(source)
            for name, added in rest:
                if added.by_row is not None:
                    rows = listed_by_row(rows, name, added.by_row)
                    continue
                lists = added.type.base is Base.LIST
                rows = None if added.of_groups is None else grouped_values(rows, name, *added.of_groups, lists=lists)
            source = Source(f"(SELECT l.*{columns} FROM {source} l{joins})", reads, rows=rows)
        return replace(left, source=source, known=known)

    def _with_counts(self, rows: Source, found: Sequence[_Added]) -> tuple[Source, list[str]]:
        """Return rows with those of some columns that are numbers of bindings, and the names of all of them."""
        view = self._name("joined")
        names = [f"s{i}" if added.counted is None else f"j{self._named}_{i}" for i, added in enumerate(found)]
        counted = [(name, added) for name, added in zip(names, found, strict=True) if added.counted is not None]
        counts = tuple(Counted(*added.counted[:2], name, added.counted[2]) for name, added in counted if added.counted)
        chosen = "".join(f", {added.sql} AS {name}" for name, added in counted)
        joins = "".join(f" LEFT JOIN {added.join}" for _, added in counted)
        views = [count.view for count in counts]
        return self._add_joined(view, rows, counts, chosen, joins, views), names

    def _plain_match(self, node: Subquery) -> tuple[list[ast.MatchClause], ast.Expression | None] | None:
        """Return a subquery's MATCH clauses and what is gathered of them where a plan matches them; see _one_match."""
        one = one_match(node)
        return one if one is not None and all(map(self._is_plain, one[0])) else None

    def _added(
        self,
        left: Relation,
        node: Subquery,
        bound: BoundPattern,
        value: ast.Expression | None,
        suffix: str,
    ) -> _Added:
        """Return what a pattern adds to rows, or a value of its matches; the aliases of its join end in a suffix."""
        shared = [name for name in bound.variables if name in left.variables]
        if value is None and all(name in bound.vertex_of for name in shared):
            if not bound.residual:
                return self._counted(left, bound, shared, is_existence(node), suffix)
            if shared and self._is_of_bindings(bound):
                return self._counted_where(left, bound, shared, is_existence(node), suffix)
        return self._gathered(left, bound, value, suffix)

    def _is_of_bindings(self, bound: BoundPattern) -> bool:
        """Whether the conditions that are left of a match are of its bindings alone, and cannot fail: they may then be
        tested of bindings that no row has.
        """
        asked = tuple(bound.residual)
        if any(self._aside(asked)) or not free_variables(asked) <= {*bound.vertex_of}:
            return False
        return not any(can_fail(each, self._snapshot.names, self._text) for each in asked)

    def _counted_where(
        self, left: Relation, bound: BoundPattern, shared: Sequence[str], exists: bool, suffix: str
    ) -> _Added:
        """The number of a pattern's matches that fulfil conditions, around the vertices it shares: these are tested
        before the rows are joined with what is left.
        """
        view = self._bindings_view()
        pattern = bindings_of(bound, self._snapshot.edges, view)
        needs = needs_of(bound, {*shared, *free_variables(pattern.where)})
        rows = replace(only(pattern, available(bound, needs)), where=pattern.where)
        known = self._beside[view].known(gathered_in(pattern.where), rows.variables, self._text)
        given = (*self._given(left, bound, shared), *self._given_values(left, bound))
        self._add_match("group join", view, bound, needs, given)
        sql, found = self._projecting(replace(rows, known={**rows.known, **known})).select(shared)
        table = self._materialized(sql, found.source, made=found.source.rows)
        ids = [found.variables[name].column for name in shared]
        number = "1" if exists else "count(*)"
        columns = ", ".join(f"b.{id}" for id in ids)
        r = f"r{suffix}"
        on = [f"{r}.{id} = {left.variables[name].of('l')}" for id, name in zip(ids, shared, strict=True)]
        join = f"(SELECT {columns}, {number} AS n FROM {table} b GROUP BY {columns}) {r} ON {all_of(on)}"
        same = [(left.variables[name].column, id) for id, name in zip(ids, shared, strict=True)]
        plain = tuple((mine, theirs) for mine, theirs in same if mine is not None and theirs is not None)
        counted = (str(table.view), plain, exists) if len(plain) == len(same) else None
        return _Added(f"coalesce({r}.n, 0)", INTEGER, join, table.reads, counted)

    def _counted(self, left: Relation, bound: BoundPattern, shared: Sequence[str], exists: bool, suffix: str) -> _Added:
        """The number of a pattern's matches around the vertices it shares, of which only the numbers are wanted."""
        view = self._bindings_view()
        vertices = [bound.vertex_of[name] for name in shared]
        needs = Wanted(tuple(sorted(vertices)), (), False, None, "drop" if exists else "count")
        given = (*self._given(left, bound, shared), *self._given_values(left, bound))
        self._add_match("group join", view, bound, needs, given)
        ids = [f"b.v{vertex}" for vertex in vertices]
        number = "1" if exists and ids else "CAST(coalesce(sum(b.n), 0) AS BIGINT)"
        group = f" GROUP BY {', '.join(ids)}" if ids else ""
        sql = f"SELECT {''.join(f'{sql}, ' for sql in ids)}{number} AS n FROM {view} b{group}"
        r = f"r{suffix}"
        on = [f"{r}.v{bound.vertex_of[name]} = {left.variables[name].of('l')}" for name in shared]
        join = f"({sql}) {r} ON {all_of(on)}"
        same = [(left.variables[name].column, f"v{bound.vertex_of[name]}") for name in shared]
        plain = tuple((mine, theirs) for mine, theirs in same if mine is not None)
        counted = (view, plain, exists) if len(plain) == len(same) else None
        return _Added(f"coalesce({r}.n, 0)", INTEGER, join, frozenset((view,)), counted)

    def _gathered(self, left: Relation, bound: BoundPattern, value: ast.Expression | None, suffix: str) -> _Added:
        """The number of a pattern's matches for each row, or the list of what they yield."""
        keep = set() if value is None else free_variables(value)
        at, known = bound.vertex_of, left.variables
        for link in left.links:
            if {link.source, link.target} <= at.keys() & known.keys():  # else there are far more matches than rows take
                test = EdgeTest(at[link.source], at[link.target], link.labels, link.directed, negated=False)
                bound.edge_tests.append(test)
        item = ast.Literal(1) if value is None else value
        joined = self._joined(left, bound, keep, (ast.ReturnClause((ast.ReturnItem(item, "item", "item"),)),))
        joined = self._filtered(replace(joined, variables={**joined.variables, ROW: AT}), keep | {ROW})
        sql, found = self._projecting(joined).select([ROW], value)
        r = f"r{suffix}"
        number, type = f"coalesce({r}.n, 0)", INTEGER
        source, counted = found.source, None
        if value is None and source.rows is not None and self._has_arrays(left.source):
            source = self._materialized(sql, source, made=source.rows)
            sql, counted = f"FROM {source}", (str(source.view), (("rowid", "c0"),), False)
        per_row = _PER_ROW.format("count(*)" if value is None else "list(f.c1)", sql)
        if value is not None:
            type = list_of(found.variables[VALUE].type)
            number = f"coalesce({r}.n, CAST([] AS {sql_type(type)}))"
        lists = None if value is None or source.rows is None else collected(source.rows, "c0", "c1")
        return _Added(number, type, f"({per_row}) {r} ON {r}.at = l.rowid", source.reads, counted, by_row=lists)

    # --- whole queries

    def _with_values(self, left: Relation, queries: Iterable[ast.Composite]) -> Relation:
        """Return rows with columns for the properties that queries take instead of their vertices."""
        asked = (self._by_values(left, query)[1].values() for query in queries)
        return self._as_columns(left, dict.fromkeys(chain.from_iterable(asked)))

    def _of_values(self, left: Relation, query: ast.Composite) -> tuple[ast.Composite, Relation]:
        """Return a query that takes values instead of vertices, and the rows in which they are variables."""
        query, values = self._by_values(left, query)
        known = {name: left.known[node] for name, node in values.items()}
        return query, replace(left, variables={**left.variables, **known}) if known else left

    def _by_values(self, left: Relation, query: ast.Composite) -> tuple[ast.Composite, dict[str, ast.Property]]:
        vertices = [name for name, value in left.variables.items() if value.type.base is Base.NODE and value.column]
        if left.matches is not None:
            return query, {}
        return by_values(query, vertices, lambda asked: have_few_values(self._snapshot, self._text, asked))

    def _queried(self, left: Relation, query: ast.Composite, exists: bool, collects: bool, suffix: str) -> _Added:
        """The number of a query's rows for each row, or the list of what they yield.

        It runs once for all rows, or for all that differ in what it takes from them: each is a group of its own.
        """
        query, left = self._of_values(left, query)
        free = free_variables(query)
        taken = [name for name in left.variables if name in free]
        each = is_volatile(query)
        grouped = bool(taken) or each or calls_procedure(query)
        r = f"r{suffix}"
        start, join, groups = UNIT, f"({{0}}) {r} ON TRUE", UNIT.source
        if grouped:
            key = str(left.source), tuple(taken), each
            if key in self._shared_groups:
                start, first, groups = self._shared_groups[key]
                join = f"({{0}}) {r} ON {r}.g = o{first}.g"
            else:
                start, join, groups = self._groups_of(left, taken, each=each, suffix=suffix)
                if groups.view is not None:
                    self._shared_groups[key] = start, suffix, groups
        projection = self._subquery(query, start, whether=exists and only_matches(query))
        sql, by = projection.sql, ("q.g, ", " GROUP BY q.g") if grouped else ("", "")
        type, gathered, found = INTEGER, "1" if exists and grouped else "count(*)", f"coalesce({r}.n, 0)"
        rows = projection.rows
        if collects:
            if projection.columns[0].many:
                rows = None
                projection = self._as_keys(projection, [0], grouped)
                sql = projection.sql
            (gathers,) = projection.columns
            item = as_list(column("c0", gathers.type, "q"))
            type = list_of(item.type)
            sql, gathered = listed(projection, item.sql)
            found = f"coalesce({r}.n, CAST([] AS {sql_type(type)}))"
        joined = join.format(f"SELECT {by[0]}{gathered} AS n FROM ({sql}) q{by[1]}")
        added = _Added(found, type, joined, groups.reads | projection.reads)
        if rows is None or len(taken) != 1 or groups.view is None:
            return added
        vertex = left.variables[taken[0]]
        if vertex.column is None or vertex.type.base is not Base.NODE:
            return added
        values = collected(rows) if collects else counted(rows, exists=exists)
        return replace(added, of_groups=(vertex.column, groups.view, values))

    def _called(self, relation: Relation, clause: ast.CallClause, live: Collection[str]) -> Relation:
        """Join rows with those that a query makes of each, or of all that differ in what it takes from them."""
        free = free_variables(clause.query)
        if clause.imported is None:
            known = [*relation.names, *filter(is_length, relation.variables)]
        else:
            known = [called for each in clause.imported for called in (each.name, length_name(each.name))]
        taken = [name for name in dict.fromkeys(known) if name in free and name in relation.variables]
        how = "LEFT JOIN" if clause.optional else "JOIN"
        left = self._table(self._with_subqueries(relation, (), {*live, *taken}), {*live, *taken})
        left = self._with_values(left, [clause.query])
        query, rows_of_values = self._of_values(left, clause.query)
        if query is not clause.query:
            values = [name for name in rows_of_values.variables if name not in left.variables]
            taken = [name for name in taken if name in free_variables(query)] + values
        each = is_volatile(query)
        grouped = bool(taken) or each or calls_procedure(query)
        start, join, groups = UNIT, "({0}) r ON TRUE", UNIT.source
        if grouped:
            start, join, groups = self._groups_of(rows_of_values, taken, how, each=each)
        projection = self._subquery(query, start)
        new = "".join(f", r.c{i} AS s{i}" for i in range(len(projection.columns)))
        joined = f"(SELECT l.*{new} FROM {left.source} l {how} {join.format(projection.sql)})"
        vertex = left.variables.get(taken[0]) if len(taken) == 1 else None
        rows = None
        if vertex is not None and vertex.column and vertex.type.base is Base.NODE and groups.view and how == "JOIN":
            of_left, count = rows_of(left.source), len(projection.columns)
            rows = with_rows_of_groups(of_left, vertex.column, groups.view, projection.rows, count)
        source = Source.made(joined, left.source, groups, projection.source, rows=rows)
        made = {each.name: column_at(f"s{i}", each) for i, each in enumerate(projection.columns)}
        return replace(left, source=source, variables={**left.variables, **made})

    def _yielded(self, call: Call, left: Relation, names: Sequence[str]) -> Relation:
        """Join rows with what a procedure yields for the arguments that are some of their columns."""
        types = [field.type.sql for _, field in call.yields]
        if any(left.variables[name].shared for name in names):
            left = self._table(self._with_columns(left, names), left.variables)
        given = [left.variables[name] for name in names]
        if None in types or not all(_is_argument(value) for value in given):
            items = call.clause.yields or ()
            yields = {item.variable.name: _column_type(type) for item, type in zip(items, types, strict=True)}
            found = self._applied(left, call, names, yields, left.variables, f"calls of {call.procedure.signature}")
            return replace(found, variables={n: value for n, value in found.variables.items() if n not in names})
        view = self._name("called")
        start, join, groups = self._groups_of(left, names, "JOIN")
        sql = f"SELECT b.* FROM {start.source} b ORDER BY b.g ASC"
        self._steps.append(Called(view, call, sql, self._parameters.used(sql), start.source.reads))
        if not call.procedure.signature.columns:
            return replace(left, variables={n: value for n, value in left.variables.items() if n not in names})
        new = "".join(f", r.c{i} AS s{i}" for i in range(len(types)))
        joined = f"(SELECT l.*{new} FROM {left.source} l JOIN {join.format(f'SELECT * FROM {view} v')})"
        source = Source.made(joined, left.source, groups, Source.of(view))
        variables = {name: value for name, value in left.variables.items() if name not in names}
        for i, (item, type) in enumerate(zip(call.clause.yields or (), types, strict=True)):
            assert type is not None
            variables[item.variable.name] = column(f"s{i}", type)
        return replace(left, source=source, variables=variables)

    def _applied(
        self,
        relation: Relation,
        function: PathSearch | Differing | Call,
        names: Sequence[str],
        yields: Mapping[str, Type],
        used: Collection[str],
        words: str,
        taken: Sequence[str] = (),
    ) -> Relation:
        """Join rows with those that Python makes of each that differs in some names; ``used`` are wanted later.

        A path may not take the edges that are ``taken``.
        """
        assert self._snapshot.computing is not None
        keep = {*used, *names}
        filtered = self._filtered(relation, keep)
        left = self._table(self._with_columns(filtered, keep & filtered.variables.keys()), keep)
        given = {
            name: Input(value.sql, value.type, "several" if value.many else "value")
            for name, value in left.variables.items()
            if name in names
        }
        applying = self._snapshot.computing().applied(function, given, yields, taken)
        start, join, groups = self._groups_of(left, list(given), "JOIN")
        view = self._name("applied")
        sql = f"SELECT b.* FROM {start.source} b ORDER BY b.g ASC"
        self._steps.append(Applied(view, words, applying, sql, start.source.reads))
        new = "".join(f", r.c{i} AS s{i}" for i in range(len(yields)))
        joined = f"(SELECT l.*{new} FROM {left.source} l JOIN {join.format(f'SELECT * FROM {view} v')})"
        source = Source.made(joined, left.source, groups, Source.of(view))
        made = {name: column(f"s{i}", type) for i, (name, type) in enumerate(yields.items())}
        return replace(left, source=source, variables={**left.variables, **made})

    def _groups_of(
        self, left: Relation, taken: Sequence[str], how: str = "LEFT JOIN", *, each: bool = False, suffix: str = ""
    ) -> tuple[Relation, str, Source]:
        """Return the groups that a query runs for, SQL that joins their results ({0}) with the rows, and what it reads.

        Where it takes nothing from the rows there is one group, or none if there are no rows; with ``each`` every row
        is a group.  The aliases of the join end in the suffix.
        """
        r, o = f"r{suffix}", f"o{suffix}"
        if not (taken or each):
            table = self._materialized(f"SELECT 0::BIGINT AS g FROM {left.source} b LIMIT 1", left.source)
            return Relation(table, {GROUP: column("g", INTEGER)}), f"({{0}}) {r} ON TRUE", UNIT.source
        shared = {name: left.variables[name] for name in taken if left.variables[name].shared}
        if shared:
            rest = [name for name in taken if name not in shared]
            start, join, reads = self._groups_of(left, rest, how, each=each, suffix=suffix)
            return replace(start, variables={**start.variables, **shared}), join, reads
        values = {name: left.variables[name] for name in taken}
        columns = [f"{value.sql} AS c{i}" for i, value in enumerate(values.values())]
        if not each and all(map(_is_alike, values.values())):
            distinct = f"SELECT DISTINCT {', '.join(columns)} FROM {left.source} b"
            numbered = f"SELECT v.*, row_number() OVER () AS g FROM ({distinct}) v"
            table = self._materialized(numbered, left.source, made=groups_of(left.source, [*values.values()], "g"))
            same = [f"{o}.c{i} IS NOT DISTINCT FROM {value.of('l')}" for i, value in enumerate(values.values())]
            join, reads = f"{table} {o} ON {all_of(same)} {how} ({{0}}) {r} ON {r}.g = {o}.g", table
        else:
            chosen = ", ".join([*columns, "b.rowid AS g"])
            table = self._materialized(f"SELECT {chosen} FROM {left.source} b", left.source)
            join, reads = f"({{0}}) {r} ON {r}.g = l.rowid", UNIT.source
        found = {name: value.at(f"c{i}") for i, (name, value) in enumerate(values.items())}
        return Relation(table, {**found, GROUP: column("g", INTEGER)}), join, reads

    def _as_keys(self, part: Projection, several: Sequence[int], grouped: bool) -> Projection:
        """Return rows (of groups, if ``grouped``) with some columns of values that SQL knows by keys."""
        names = [f"column {i}" for i in range(len(part.columns))]
        found = {name: column_at(f"c{i}", each) for i, (name, each) in enumerate(zip(names, part.columns, strict=True))}
        if grouped:
            found[GROUP] = column("g", INTEGER)
        relation, wanted = Relation(part.source, found), []
        for i in several:
            if part.columns[i].type.base is Base.ANY:
                continue
            if has_terms(part.columns[i].type):
                relation = self._with_computed(relation, ast.Variable(names[i]), names)
                value = relation.known[ast.Variable(names[i])]
                relation = replace(relation, variables={**relation.variables, names[i]: value}, known={})
            else:
                wanted.append(names[i])
        types = {ast.Variable(name): ANY for name in wanted}
        sql, rows = self._projecting(relation).select(relation.variables, types=types)
        if grouped:
            sql = f"SELECT k.* RENAME (c{len(names)} AS g) FROM ({sql}) k"
        made = [rows.variables[name] for name in names]
        columns = tuple(
            replace(each, type=value.type, many=value.many, bases=value.bases)
            for each, value in zip(part.columns, made, strict=True)
        )
        return Projection(sql, self._parameters.used(sql), columns, reads=relation.source.reads)

    def _subquery(self, query: ast.Composite, start: Relation, *, whether: bool = False) -> Projection:
        """Project a whole query that starts from some rows, where it may matter only ``whether`` it has any; abstract:
        see :mod:`graphdb.relational.lowering.lower`.
        """
        raise NotImplementedError


def _is_alike(value: SqlValue) -> bool:
    """Whether equal values are the same value: what is made of one is made of the other."""
    type = value.type
    while type.base is Base.LIST and type.element is not None:
        type = type.element
    return type.base in _ALIKE


def _column_type(type: Type | None) -> Type:
    """Return the type that columns hold a procedure's values in."""
    return MIXED if type is None or type.base not in _PLAIN or type.base is Base.DATE else type


def _is_argument(value: SqlValue) -> bool:
    """Whether values are Python's as they come from a table."""
    type = value.type
    while type.base is Base.LIST and type.element is not None:
        type = type.element
    return type.base in _PLAIN and not value.many
