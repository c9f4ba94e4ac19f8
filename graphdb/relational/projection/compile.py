"""RETURN and its kin: what follows the match becomes one SQL query over the bindings.

The bindings are a relation with a column ``v<i>`` per wanted vertex and ``e<j>`` per wanted edge (its code); with ``n``
where equal bindings come once with their number.  What a clause makes of them is a relation again.  The
query yields columns ``c0 … cn`` in the engine's own terms (vertices as ids), which
:mod:`graphdb.relational.projection.presentation` turns into what a user of SQL sees (vertices as their IRIs).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from graphdb.common.errors import NotSupportedError
from graphdb.common.stopping import checked
from graphdb.common.values.types import ANY, Base
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.relational.projection.described import Described, with_lists
from graphdb.relational.projection.grouped_vectors import of_all_groups
from graphdb.relational.projection.late import direct_columns, late_items, late_projection, named_in
from graphdb.relational.projection.relation import ORDER, Relation, Source
from graphdb.relational.projection.relation_sql import RelationCompiler, where_sql
from graphdb.relational.projection.return_clause import combines_aggregates
from graphdb.relational.projection.sql import (
    Compiled,
    Order,
    Projection,
    columns_of,
    keyed_sql,
    order_sql,
    window_sql,
    windows_sql,
)
from graphdb.relational.vectors.algebra import Aggregate, Clause
from graphdb.relational.vectors.algebra import Rows as VectorRows
from graphdb.semantics.aggregation import contains_aggregate, unshadowed
from graphdb.sql.compiler import Compiler, Scope, refuse_long
from graphdb.sql.equivalence import has_key, key, lacks_key, least
from graphdb.sql.from_clause import Rows
from graphdb.sql.types.order import has_order, sort_keys
from graphdb.sql.value import SqlValue, lacks_offset


class ProjectionCompiler(RelationCompiler):
    """Writes the SQL of one clause over a relation."""

    def project(
        self,
        returns: ast.ReturnClause,
        items: tuple[ast.ReturnItem, ...],
        window: tuple[int, int | None],
        *,
        groups: Source | None = None,
        written: bool = False,
        gather_late: bool = True,
        repeated: bool = False,
    ) -> Projection:
        """Project the relation by any RETURN clause.

        Parameters
        ----------
        groups
            SQL of all groups there are (column ``g``), where the relation's rows are of groups: then the clause is one
            for each of them, and its rows say of which they are (column ``g``).
        written
            Whether the rows go to the user: properties that nothing else needs are then gathered for them after SQL, …
        gather_late
            … unless they are to be columns beside the bindings, too, because SQL goes on from the rows.
        repeated
            Whether rows of DISTINCT may come again where no SKIP or LIMIT counts them: a UNION returns each once.
        """
        aggregated = not self._relation.grouped and any(contains_aggregate(item.expression) for item in items)
        grouped = aggregated or returns.distinct
        bits = self._described(items) if grouped and self._relation.groups is None else {}
        # What LIMIT leaves a few rows of is asked for these.
        each = [item.expression for i, item in enumerate(items) if i not in bits and (grouped or not returns.limit)]
        relation = self._relation = self._with_names((*each, self._relation.where, () if grouped else returns.order_by))
        rows, ordered = self._rows(self._beside), relation.variables.get(ORDER)
        scope = Scope(
            self._variables,
            relation.known,
            matches=relation.matches,
            order=None if ordered is None else ordered.sql,
        )
        compiler = self._compiler(rows, scope)
        conditions = self._compiler(rows, Scope(self._variables, relation.known))
        where = conditions.row_conditions(relation.where)
        if aggregated and combines_aggregates(items):
            raise NotSupportedError("what stands beside aggregates is put together in a second step")
        if not grouped:
            return self._each_row(returns, window, items, compiler, where, groups, written, written and gather_late)
        compiled = [
            (item, bits[i][0] if i in bits else self._resolved(compiler, compiler.column(item.expression)))
            for i, item in enumerate(items)
        ]
        compiled = [
            (item, compiler.computed(item.expression, ANY))
            if (lacks_key(value.type) or (aggregated and _repeats_subquery(value)))
            and (relation.grouped or not contains_aggregate(item.expression))
            else (item, value)
            for item, value in compiled
        ]
        repeated = repeated and window == (0, None)
        lists = {i: by for i, (_, by) in bits.items()}
        return self._groups(returns, window, compiled, compiler, where, groups, repeated, lists)

    def _described(self, items: tuple[ast.ReturnItem, ...]) -> dict[int, tuple[SqlValue, Described]]:
        """Return the items that are the labels or keys of vertices in the bindings: the columns of their bits."""
        found = {}
        for i, item in enumerate(items):
            by = self._names_of(item.expression)
            if by is not None:
                found[i] = self._beside_names(*by), by[1]
        return found

    def _each_row(
        self,
        returns: ast.ReturnClause,
        window: tuple[int, int | None],
        items: tuple[ast.ReturnItem, ...],
        compiler: Compiler,
        where: list[str],
        groups: Source | None,
        written: bool,
        gather_late: bool,
    ) -> Projection:
        """Project by a clause that makes a row of each row; see :meth:`project`.

        Conditions, order and window take the rows with what they need themselves.  What else the items need is joined
        with, or gathered for, the rows that are left.
        """
        relation, rows, (_, limit) = self._relation, compiler.rows, window
        ordered = relation.variables.get(ORDER)
        first = named_in(returns.order_by, items)
        keys = {i: self._resolved(compiler, compiler.column(items[i].expression)) for i in first}
        aliased = {alias: keys[i] for i in first if (alias := items[i].alias)}
        seen = Scope({**self._variables, **aliased}, unshadowed(relation.known, _named(items)))
        order = self._order(returns, seen, rows, items)
        if not order and ordered is not None:
            order = [(ordered.sql, "ASC NULLS LAST")]
        late = late_items(items, {*keys}, relation, self._snapshot, self._text) if gather_late else {}
        columns = (i in late or i in keys or _is_column(item.expression, relation) for i, item in enumerate(items))
        cut = limit is not None and relation.groups is None and not all(columns)
        source, joins, after, within = relation.source, rows.joins, where, window
        if cut:
            key_columns = "".join(f", {value.sql} AS s{i}" for i, value in keys.items())
            cut_off = order_sql(order) + window_sql(window)
            top = f"SELECT b.*{key_columns} FROM {source} b {joins}{where_sql(where)}{cut_off}"
            place = ", row_number() OVER () AS top" if order else ""
            source = Source.made(f"(SELECT q.*{place} FROM ({top}) q)", source)
            keys = {i: value.at(f"s{i}") for i, value in keys.items()}
            joins, after, within = "", [], (0, None)
            order = [("b.top", "ASC")] if order else []
        # What is gathered after SQL, the last, is joined where only SQL can be used.
        others = self._rows() if cut else self._rows(self._beside, rows)
        gathered = self._rows(after=others, seldom=True)
        given: list[Compiled] = []
        for i, item in enumerate(checked(items)):
            mine = self._compiler(gathered if i in late else others, compiler.scope)
            value = keys[i] if i in keys else self._resolved(mine, mine.column(item.expression))
            given.append((item, self._as_written(mine, item, value) if written else value))
        start = f" FROM {source} b {joins} {others.joins}"
        chosen, rest = f"SELECT {_chosen(given)}", f"{start} {gathered.joins}{where_sql(after)}"
        tail = order_sql(order) + window_sql(within)
        sql = windows_sql(f"{chosen}{self._of_group}", rest, order, within, relation.groups is not None)
        direct = None
        if not (where or order) and self._bound is not None:
            direct = direct_columns(self._bound, items, relation.known, self._snapshot, self._text)
        made = self._rows_of_each(returns, window, given)
        if made is None and direct is None:
            refuse_long(others, self._text)
        return Projection(
            sql,
            self._parameters.used(sql),
            columns_of(given),
            window,
            direct,
            bool(order),
            reads=self._reads(groups),
            rows=made,
            late=late_projection(given, late, f"{start}{where_sql(after)}{tail}", self._parameters) if late else None,
            keyed=keyed_sql(f"{chosen}{self._of_group}", rest, order, window, relation.groups),
        )

    def _groups(
        self,
        returns: ast.ReturnClause,
        window: tuple[int, int | None],
        compiled: list[Compiled],
        compiler: Compiler,
        where: list[str],
        groups: Source | None,
        repeated: bool,
        lists: Mapping[int, Described],
    ) -> Projection:
        """Project by a clause with aggregates or DISTINCT; see :meth:`project`.

        ``lists`` are the items that rows are grouped by the bits of.
        """
        relation = self._relation
        items = tuple(item for item, _ in compiled)
        aggregating = [not relation.grouped and contains_aggregate(item.expression) for item in items]
        aggregated = any(aggregating)
        by, chosen = [], []
        for i, (_, value) in enumerate(compiled):
            sql, is_key = value.sql, not aggregating[i]
            if is_key and aggregated and has_key(value.type, value.bases):
                by.append(key(compiler, value))
                sql = least(value)
            elif is_key:
                by.append(str(i + 1))
            chosen.append(f"{sql} AS c{i}")
        keys = len(by)
        if relation.groups is not None:
            by.append(relation.groups)
        # SQL may know what is made of an aggregate without it, and would then yield each row: one group is said to be.
        group = f" GROUP BY {', '.join(by) or '()'}" if aggregated else ""
        several = returns.distinct and any(has_key(value.type, value.bases) for _, value in compiled)
        keyed = []
        if several and not aggregated:  # what has keys beside it is grouped by these
            keyed = [i for i, (_, value) in enumerate(compiled) if value.table and has_key(value.type, value.bases)]
            chosen += [f"{key(compiler, compiled[i][1])} AS k{i}" for i in keyed]
        joins = compiler.rows.joins
        distinct = "DISTINCT " if returns.distinct and not (several or repeated) else ""
        columns = ", ".join(chosen)
        inner = f"SELECT {distinct}{columns}{self._of_group} FROM {relation.source} b {joins}{where_sql(where)}{group}"
        if groups is not None and not keys:
            # Aggregates of nothing are a row, too: groups without rows have that one.
            nothing = f"SELECT {columns} FROM {relation.source} b {joins} WHERE FALSE GROUP BY ()"
            either = ", ".join(f"CASE WHEN a.g IS NULL THEN e.c{i} ELSE a.c{i} END AS c{i}" for i in range(len(items)))
            inner = f"SELECT {either}, o.g FROM {groups} o LEFT JOIN ({inner}) a ON a.g = o.g CROSS JOIN ({nothing}) e"
        if several:
            inner = self._each_once(inner, compiled, keyed)
        by_bits, compiled = compiled, [*compiled]
        if lists:
            for i, names in lists.items():
                compiled[i] = compiled[i][0], names.listed(f"p.c{i}", self._parameters)
            inner = f"SELECT p.* REPLACE ({', '.join(f'{compiled[i][1].sql} AS c{i}' for i in lists)}) FROM ({inner}) p"
        # ORDER BY sees the result's columns: by alias, by the variable returned, or by the same expression.
        outer = self._rows()
        over = [(item, value.at(f"c{i}", "q")) for i, (item, value) in enumerate(compiled)]
        order = self._order(returns, self._returned(over), outer)
        sql = windows_sql("SELECT q.*", f" FROM ({inner}) q {outer.joins}", order, window, relation.groups is not None)
        used, reads = self._parameters.used(sql), self._reads(groups)
        once = aggregated and returns.distinct
        made = None if once else self._rows_of_groups(returns, window, by_bits, over, groups, lists)
        if made is None:
            refuse_long(compiler.rows, self._text)
        found = Projection(sql, used, columns_of(compiled), window, ordered=bool(order), reads=reads, rows=made)
        alone = relation.matches is not None and not (where or returns.distinct)
        grouped = (
            alone and not any(has_key(value.type, value.bases) for _, value in compiled) and self._counts_pairs(items)
        )
        if not grouped:
            return found
        # The numbers of matches are a column already; sorting sees the same columns.
        columns = ", ".join(
            f"{relation.matches if isinstance(item.expression, ast.CountStar) else value.sql} AS c{i}"
            for i, (item, value) in enumerate(compiled)
        )
        inner = f"SELECT {columns} FROM {relation.source} b {joins}"
        ordered = order_sql(order) + window_sql(window)
        return replace(found, grouped=f"SELECT q.* FROM ({inner}) q {outer.joins}{ordered}")

    def _rows_of_each(
        self, returns: ast.ReturnClause, window: tuple[int, int | None], compiled: Sequence[Compiled]
    ) -> Clause | None:
        """Return what :meth:`_each_row` makes, by columns in memory."""
        relation, items = self._relation, tuple(item for item, _ in compiled)
        if relation.matches is not None:
            return None
        translator = self._translator()
        order = translator.aliased(items, unshadowed(relation.known, _named(items))).order(returns.order_by)
        if not order and ORDER in relation.variables:
            order = translator.order((ast.OrderItem(ast.Variable(ORDER)),))
        if relation.groups is not None:
            return translator.each_of_groups(relation, compiled, order, window)
        return translator.clause(relation.source, relation.where, compiled, order, window)

    def _rows_of_groups(
        self,
        returns: ast.ReturnClause,
        window: tuple[int, int | None],
        compiled: Sequence[Compiled],
        over: list[Compiled],
        groups: Source | None,
        lists: Mapping[int, Described],
    ) -> VectorRows | None:
        """Return what :meth:`_groups` makes, by columns in memory; ``over`` are its columns as ORDER BY sees them."""
        if self._relation.groups is not None:
            found = self._translator().of_groups(self._relation, returns, window, compiled)
            if (
                found is None
                or groups is None
                or not all(isinstance(each, Aggregate) for _, each in found.columns[:-1])
            ):
                return found
            return of_all_groups(found, groups)
        made = self._returned(over)
        order = self._translator().over(made.known, made.variables).order(returns.order_by)
        relation, translator = self._relation, self._translator()
        bits = {compiled[i][0].expression: compiled[i][1] for i in lists}
        translator = translator.over({**relation.known, **bits})
        found = translator.clause(relation.source, relation.where, compiled, order, window, grouped=True)
        return with_lists(found, lists) if found is not None and lists else found

    def _each_once(self, sql: str, compiled: list[Compiled], keyed: list[int]) -> str:
        """Return SQL of rows (``c0 …``) of which equivalent ones come once, though DuckDB tells them apart.

        ``keyed`` are the values whose keys the rows have, too (``k0 …``).
        """
        rows = self._rows()
        compiler = self._compiler(rows, Scope({}))
        columns = [value.at(f"c{i}", "p") for i, (_, value) in enumerate(compiled)]
        by, chosen = [], []
        for i, value in enumerate(columns):
            by.append(f"p.k{i}" if i in keyed else key(compiler, value))
            chosen.append(least(value) if has_key(value.type, value.bases) else value.sql)
        group = "" if self._relation.groups is None else ", p.g"
        named = ", ".join(f"{column} AS c{i}" for i, column in enumerate(chosen))
        return f"SELECT {named}{group} FROM ({sql}) p {rows.joins} GROUP BY {', '.join(by)}{group}"

    @property
    def _of_group(self) -> str:
        """The column that says of which group a row is, where rows are of groups."""
        return "" if self._relation.groups is None else f", {self._relation.groups} AS g"

    def _counts_pairs(self, items: tuple[ast.ReturnItem, ...]) -> bool:
        """Whether items are two vertices of a pattern, or their ids, and each pair's numbers of matches."""
        if self._bound is None:
            return False
        keys = {_of_id(item.expression) for item in items if not isinstance(item.expression, ast.CountStar)}
        vertices = [self._bound.vertex_of.get(key.name) for key in keys if isinstance(key, ast.Variable)]
        # Two literals may have one value.
        resources = [number for number in vertices if number is not None and not self._bound.vertices[number].kinds]
        return len(keys) == len(resources) == 2

    def _reads(self, groups: Source | None) -> frozenset[str]:
        """Return the names of the tables and views that a clause reads."""
        return self._relation.source.reads if groups is None else self._relation.source.reads | groups.reads

    def _returned(self, columns: list[Compiled]) -> Scope:
        """What ORDER BY sees after DISTINCT and aggregates: the returned columns, by alias, variable or expression."""
        names = {item.expression.name: v for item, v in columns if isinstance(item.expression, ast.Variable)}
        names |= {item.alias: value for item, value in columns if item.alias}
        known = unshadowed({item.expression: value for item, value in columns}, _named(item for item, _ in columns))
        return Scope(names, known)

    def _resolved(self, compiler: Compiler, value: SqlValue) -> SqlValue:
        """Return a literal vertex of known type as its value."""
        if value.type.base is Base.TERM and value.type.element is not None:
            return compiler.value_of(value)
        return value

    def _as_written(self, compiler: Compiler, item: ast.ReturnItem, value: SqlValue) -> SqlValue:
        """Return a property of several types with the offsets of its points in time, other values as they are."""
        node = item.expression
        if not lacks_offset(value) or not isinstance(node, ast.Property) or node in self._relation.known:
            return value
        base = node.base
        of = self._relation.variables.get(base.name) if isinstance(base, ast.Variable) else None
        if of is not None and of.type.base in (Base.MAP, Base.CHOICE):  # in which no value has its offset
            return value
        return compiler.computed(node, ANY)

    def _order(
        self, returns: ast.ReturnClause, scope: Scope, rows: Rows, items: tuple[ast.ReturnItem, ...] = ()
    ) -> Order:
        compiler = self._compiler(rows, scope)
        aliased = {item.alias: item.expression for item in items if item.alias}
        keys: list[tuple[str, str]] = []
        for order in returns.order_by:
            value = compiler.anything(order.expression)
            expression = order.expression
            if isinstance(expression, ast.Variable):
                expression = aliased.get(expression.name, expression)
            if not any(isinstance(part, (ast.Variable, ast.CountStar)) for part in walk(expression)):
                continue  # a constant orders nothing
            if value.type.base is Base.NULL:
                continue  # and nor does what nothing has
            if not has_order(value.type):
                value = compiler.computed(order.expression, ANY)
            ordered = sort_keys(compiler, value)
            direction = "DESC NULLS FIRST" if order.descending else "ASC NULLS LAST"
            if order.nulls_first is not order.descending:
                keys.append((f"({value.sql} IS NULL)", f"{'DESC' if order.nulls_first else 'ASC'} NULLS LAST"))
            keys += [(key, direction) for key in ordered]
        return keys


def _repeats_subquery(value: SqlValue) -> bool:
    """Whether the key that rows are grouped by would have a subquery several times, which DuckDB does not take."""
    return value.subquery and has_key(value.type, value.bases)


def _of_id(expression: ast.Expression) -> ast.Expression:
    """Return the variable whose ``id`` an expression is, which is another for each vertex; else the expression."""
    if isinstance(expression, ast.FunctionCall) and expression.name.lower() == "id" and len(expression.arguments) == 1:
        return expression.arguments[0]
    return expression


def _chosen(columns: Sequence[Compiled]) -> str:
    return ", ".join(f"{value.sql} AS c{i}" for i, (_, value) in enumerate(columns))


def _named(items: Iterable[ast.ReturnItem]) -> Iterator[tuple[str, ast.Expression]]:
    return ((item.alias, item.expression) for item in items if item.alias)


def _is_column(expression: ast.Expression, relation: Relation) -> bool:
    """Whether an expression is a column of the rows."""
    value = relation.known.get(expression)
    if value is None and isinstance(expression, ast.Variable):
        value = relation.variables.get(expression.name)
    return value is not None and value.column is not None and value.type.base is not Base.TERM
