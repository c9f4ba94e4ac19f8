"""CALL of queries and procedures, and searches by Python: rows joined with what is made of each that differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from graphdb.common.values.types import MIXED, Base, Type
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.pattern.paths.lengths import is_length, length_name
from graphdb.pattern.paths.search import Differing, PathSearch
from graphdb.procedures.registry import Call
from graphdb.relational.lowering.subqueries.columns import Subqueries
from graphdb.relational.lowering.subqueries.forms import calls_procedure, is_volatile
from graphdb.relational.program import Applied, Called
from graphdb.relational.projection.grouped_vectors import with_rows_of_groups
from graphdb.relational.projection.relation import UNIT, Relation, Source, rows_of
from graphdb.sql.computing import Input
from graphdb.sql.value import SqlValue, column, column_at

_PLAIN = (Base.INTEGER, Base.FLOAT, Base.STRING, Base.BOOLEAN, Base.DATE, Base.NULL)
"""Types of arguments that procedures are called with from SQL."""


class Calls(Subqueries):
    """Joins rows with what calls make of them."""

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


def _column_type(type: Type | None) -> Type:
    """Return the type that columns hold a procedure's values in."""
    return MIXED if type is None or type.base not in _PLAIN or type.base is Base.DATE else type


def _is_argument(value: SqlValue) -> bool:
    """Whether values are Python's as they come from a table."""
    type = value.type
    while type.base is Base.LIST and type.element is not None:
        type = type.element
    return type.base in _PLAIN and not value.many
