"""Subqueries to joins: EXISTS, COUNT and COLLECT, and patterns as conditions or lists, become columns of the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from graphdb.common.values.types import BOOLEAN, INTEGER, Base, list_of, sql_type
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.failing import can_fail
from graphdb.pattern.free import SUBQUERIES, Subquery, free_variables
from graphdb.pattern.graph import EdgeTest, Wanted
from graphdb.relational.lowering.joins.bindings import all_of
from graphdb.relational.lowering.needs import available, needs_of, only
from graphdb.relational.lowering.subqueries.forms import collects, is_existence, one_match, query_of, wants_all_shortest
from graphdb.relational.lowering.subqueries.groups import Added, GroupedQueries
from graphdb.relational.program import Counted
from graphdb.relational.projection.grouped_vectors import collected, grouped_values, listed_by_row
from graphdb.relational.projection.late import gathered_in
from graphdb.relational.projection.relation import ROW, VALUE, Relation, Source, bindings_of, rows_of
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.sql.value import SqlValue, column

AT = column("row", INTEGER)
"""The number of the row that a match started from."""

_PER_ROW = "WITH f AS MATERIALIZED ({1}) SELECT f.c0 AS at, {0} AS n FROM f GROUP BY f.c0"
"""Of rows by their numbers.  DuckDB would otherwise gather, before the join that makes them, all that might be joined:
lists of 360,000 values for the 28,000 that some row has."""


class Subqueries(GroupedQueries):
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

    def _with_counts(self, rows: Source, found: Sequence[Added]) -> tuple[Source, list[str]]:
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
    ) -> Added:
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
    ) -> Added:
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
        return Added(f"coalesce({r}.n, 0)", INTEGER, join, table.reads, counted)

    def _counted(self, left: Relation, bound: BoundPattern, shared: Sequence[str], exists: bool, suffix: str) -> Added:
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
        return Added(f"coalesce({r}.n, 0)", INTEGER, join, frozenset((view,)), counted)

    def _gathered(self, left: Relation, bound: BoundPattern, value: ast.Expression | None, suffix: str) -> Added:
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
        return Added(number, type, f"({per_row}) {r} ON {r}.at = l.rowid", source.reads, counted, by_row=lists)
