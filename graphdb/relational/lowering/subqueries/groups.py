"""Whole queries as subqueries: each runs once, for the groups of all rows that differ in what it takes from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from graphdb.common.values.types import ANY, INTEGER, Base, Type, has_terms, list_of, sql_type
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.relational.lowering.joins.bindings import all_of
from graphdb.relational.lowering.needs import only_matches
from graphdb.relational.lowering.semijoins import Semijoins
from graphdb.relational.lowering.subqueries.forms import calls_procedure, is_volatile
from graphdb.relational.lowering.subqueries.values import by_values, have_few_values
from graphdb.relational.program import Computed
from graphdb.relational.projection.grouped_vectors import collected, counted, groups_of
from graphdb.relational.projection.relation import GROUP, UNIT, Relation, Source
from graphdb.relational.projection.sql import Projection, listed
from graphdb.relational.vectors.algebra import Rows
from graphdb.sql.value import SqlValue, as_list, column, column_at

_ALIKE = (Base.NODE, Base.TERM, Base.EDGE, Base.PATH, Base.INTEGER, Base.STRING, Base.BOOLEAN)
"""Types whose equal values are the same value."""


@dataclass(frozen=True, slots=True)
class Added:
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


class GroupedQueries(Semijoins):
    """Joins rows with what whole queries yield for them."""

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

    def _queried(self, left: Relation, query: ast.Composite, exists: bool, collects: bool, suffix: str) -> Added:
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
        added = Added(found, type, joined, groups.reads | projection.reads)
        if rows is None or len(taken) != 1 or groups.view is None:
            return added
        vertex = left.variables[taken[0]]
        if vertex.column is None or vertex.type.base is not Base.NODE:
            return added
        values = collected(rows) if collects else counted(rows, exists=exists)
        return replace(added, of_groups=(vertex.column, groups.view, values))

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
