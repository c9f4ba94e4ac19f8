"""Which groups a continuous query has, and how each of its aggregates follows the rows that come and go.

A query that aggregates, or returns distinct rows, is one over the rows of another, whose rows are matches: those delta
plans maintain, and :mod:`.groups` brings the groups up to date that they belong to.  ``count``, and ``sum`` and ``avg``
of integers, are added up, of all values or of distinct ones; ``min`` and ``max`` are compared; whatever else there is,
is computed again of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.values.types import NULL, Base, Column, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.live.aggregates.distinct_values import NUMBER
from graphdb.relational.projection.return_clause import combines_aggregates
from graphdb.relational.projection.sql import columns_of
from graphdb.semantics.aggregation import contains_aggregate, is_aggregate
from graphdb.sql.equivalence import has_key, lacks_key
from graphdb.sql.value import SqlValue

_ORDERED = frozenset(
    (Base.BOOLEAN, Base.INTEGER, Base.DECIMAL, Base.FLOAT, Base.STRING, Base.DATE, Base.DATETIME, Base.TIME)
)
"""Types whose values SQL orders as ``min`` and ``max`` do."""
_COMPARED = frozenset((Base.BOOLEAN, Base.INTEGER, Base.STRING))
"""Types of keys whose groups are found by their values."""
_NOTHING = SqlValue("NULL", NULL)


class NotGrouped(Exception):
    """Why the groups of a query are not maintained."""


class Change(Enum):
    """How an accumulator follows the rows of its group; in words for EXPLAIN."""

    COUNT = "counted"
    SUM = "added up"
    LEAST = "compared, and computed again of a group that loses its least value"
    GREATEST = "compared, and computed again of a group that loses its greatest value"
    AGAIN = "computed again of each group that changes"


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A column of the table of groups: an aggregate of a group's rows."""

    name: str
    expression: ast.Expression
    change: Change
    argument: str = ""
    """The column of the rows that it aggregates."""
    distinct: bool = False
    """Whether equal values count once."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the answer that is made of accumulators."""

    item: ast.ReturnItem
    sql: str
    accumulators: tuple[Accumulator, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """A query that aggregates, cut into the query for its rows and what is made of these."""

    query: ast.Query
    rows: ast.Query
    """Returns the keys ``k0 …`` of matches, what is aggregated, ``x0 …``, and how many matches have these."""
    by: tuple[ast.Expression, ...]
    """What is grouped by."""
    keys: tuple[str, ...]
    arguments: tuple[tuple[ast.Expression, str], ...]
    """What is aggregated, and the columns of the rows that have it."""

    @classmethod
    def of(cls, query: ast.Query) -> Grouping:
        """Cut a query with aggregates or DISTINCT in two.

        Raises
        ------
        NotGrouped
            It is not made that simply.
        """
        returns = query.returns
        if returns.star:
            raise NotGrouped("its columns are those of the pattern")
        if combines_aggregates(returns.items):
            raise NotGrouped("a column is made of aggregates and of what is grouped by")
        keys = [item.expression for item in returns.items if not contains_aggregate(item.expression)]
        arguments: dict[ast.Expression, str] = {}
        for item in returns.items:
            call = item.expression
            if is_aggregate(call) and isinstance(call, ast.FunctionCall) and len(call.arguments) == 1:
                arguments.setdefault(call.arguments[0], f"x{len(arguments)}")
        named = [(key, f"k{i}") for i, key in enumerate(keys)] + [*arguments.items()]
        rows = _returning(query, [*(named or [(ast.Literal(1), "one")]), (ast.CountStar(), NUMBER)])
        return cls(query, rows, tuple(keys), tuple(f"k{i}" for i in range(len(keys))), tuple(arguments.items()))

    def typed(self, columns: Sequence[Column], *, parallel: bool) -> Accumulators:
        """Return how groups follow rows that have these columns; of edges that may be ``parallel``, if they are edges.

        Raises
        ------
        NotGrouped
            Values that are equal may differ in SQL.
        """
        types = {column.sql_name: column for column in columns}
        for name in self.keys:
            key = types[name]
            if key.many or lacks_key(key.type) or has_key(key.type, key.bases):
                raise NotGrouped("it is grouped by values of several types")
            if parallel and _has_edges(key.type):
                raise NotGrouped("it is grouped by edges, of which parallel ones are equal in SQL")
        names = dict(self.arguments)
        measures: list[Measure] = []
        for item in self.query.returns.items:
            if contains_aggregate(item.expression):
                first = sum(len(made.accumulators) for made in measures)
                measures.append(_measure(item, names, types, first, parallel=parallel))
        own = [column for column in columns if column.sql_name != NUMBER]
        signature = [(c.sql_name, str(c.type), c.type.scale, c.many, sorted(map(str, c.bases or ()))) for c in own]
        bases = tuple(types[name].type.base for name in self.keys)
        followed = [(each.name, each.change.name, each.distinct) for made in measures for each in made.accumulators]
        return Accumulators(self, bases, tuple(measures), repr((signature, followed)))


@dataclass(frozen=True, slots=True)
class Accumulators:
    """How the groups of a query are stored and brought up to date, over one state of the names."""

    grouping: Grouping
    bases: tuple[Base, ...]
    """The types of the keys."""
    measures: tuple[Measure, ...]
    signature: str
    """Of the rows: a table of groups that has another one is of other values."""

    @property
    def all(self) -> tuple[Accumulator, ...]:
        """The accumulators of all measures."""
        return tuple(own for measure in self.measures for own in measure.accumulators)

    @property
    def query(self) -> ast.Query:
        """The query for the table of groups: keys, how many rows each is of, accumulators."""
        columns = [*zip(self.grouping.by, self.grouping.keys, strict=True), (ast.CountStar(), NUMBER)]
        return _returning(self.grouping.query, columns + [(own.expression, own.name) for own in self.all])

    @property
    def distinct(self) -> dict[str, ast.Query]:
        """By columns of the rows of which equal values count once, the query for keys, value and in how many rows."""
        wanted = {own.argument for own in self.all if own.distinct}
        keys = [*zip(self.grouping.by, self.grouping.keys, strict=True)]
        return {
            name: _returning(self.grouping.query, [*keys, (expression, name), (ast.CountStar(), NUMBER)])
            for expression, name in self.grouping.arguments
            if name in wanted
        }

    def narrowed(self, values: Callable[[str], list[object] | None]) -> tuple[ast.Query, dict[str, list[str]]]:
        """Return :attr:`query` for some groups and perhaps others, and which vertices some variables may be for them.

        ``values`` are what a key is in these groups, vertices by their IRIs; None for too many of them.
        """
        conditions: list[ast.Expression] = []
        vertices = {}
        required = [match for match in self.grouping.query.matches if not match.optional]
        bound = {part.name for part in walk(tuple(required)) if isinstance(part, ast.Variable)}
        for key, base, name in zip(self.grouping.by, self.bases, self.grouping.keys, strict=True):
            if not any(isinstance(part, ast.Variable) and part.name in bound for part in walk(key)):
                continue  # of an optional clause, it may be null
            if isinstance(key, ast.Variable) and base is Base.NODE:
                if (found := values(name)) is not None:
                    vertices[key.name] = [str(iri) for iri in found]
            elif isinstance(key, ast.Property) and isinstance(key.base, ast.Variable) and base in _COMPARED:
                found = values(name)
                if found is not None and None not in found:
                    literals = tuple(ast.Literal(value) for value in found)  # type: ignore[arg-type]
                    conditions.append(ast.In(key, ast.ListLiteral(literals)))
        query = self.query
        if conditions:
            *others, last = required
            where = (*([] if last.where is None else [last.where]), *conditions)
            whole = where[0] if len(where) == 1 else ast.Boolean("AND", where)
            optional = query.matches[len(required) :]
            query = replace(query, matches=(*others, replace(last, where=whole), *optional))
        return query, vertices

    def answer(self, groups: str) -> str:
        """Return SQL for the rows of the answer, of a table of groups (or what stands after FROM)."""
        items, keys = self.grouping.query.returns.items, iter(self.grouping.keys)
        measures = {measure.item: measure.sql for measure in self.measures}
        names = [column.sql_name for column in columns_of([(item, _NOTHING) for item in items])]
        columns = [measures[item] if item in measures else next(keys) for item in items]
        chosen = ", ".join(f"{sql} AS {quoted(name)}" for sql, name in zip(columns, names, strict=True))
        there = f" WHERE {NUMBER} > 0" if self.grouping.keys else ""
        return f"SELECT {chosen} FROM {groups}{there}"


def _has_edges(type: Type) -> bool:
    """Whether values are edges, paths, or lists of them."""
    return type.base in (Base.EDGE, Base.PATH) or (type.element is not None and _has_edges(type.element))


def _measure(
    item: ast.ReturnItem, names: dict[ast.Expression, str], types: dict[str, Column], first: int, *, parallel: bool
) -> Measure:
    """Return what a column of aggregates is made of; accumulators are numbered from ``first`` on."""
    call = item.expression
    if isinstance(call, ast.CountStar):
        return Measure(item, NUMBER, ())
    own = f"a{first}"
    if is_aggregate(call) and isinstance(call, ast.FunctionCall) and len(call.arguments) == 1:
        argument, function, once = names[call.arguments[0]], call.name.lower(), call.distinct
        column = types[argument]
        plain = not (column.many or lacks_key(column.type) or has_key(column.type, column.bases))
        plain = plain and not (parallel and _has_edges(column.type))
        whole = column.type.base is Base.INTEGER and not column.many
        match function:
            case "count" if plain or not once:
                return Measure(item, own, (Accumulator(own, call, Change.COUNT, argument, once),))
            case "sum" if whole:
                return Measure(item, own, (Accumulator(own, call, Change.SUM, argument, once),))
            case "avg" if whole:
                of = f"a{first + 1}"
                total = Accumulator(own, replace(call, name="sum"), Change.SUM, argument, once)
                count = Accumulator(of, replace(call, name="count"), Change.COUNT, argument, once)
                return Measure(item, f"CASE WHEN {of} > 0 THEN CAST({own} AS DOUBLE) / {of} END", (total, count))
            case "min" | "max" if column.type.base in _ORDERED and not column.many:
                change = Change.LEAST if function == "min" else Change.GREATEST
                return Measure(item, own, (Accumulator(own, call, change, argument),))
    return Measure(item, own, (Accumulator(own, call, Change.AGAIN),))


def _returning(query: ast.Query, columns: Sequence[tuple[ast.Expression, str]]) -> ast.Query:
    """Return a query over the same matches with other columns."""
    items = tuple(ast.ReturnItem(expression, name, name) for expression, name in columns)
    return replace(query, returns=ast.ReturnClause(items, span=query.returns.span))
