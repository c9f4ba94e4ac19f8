"""Which groups a continuous query has, and how each of its aggregates follows the rows that come and go.

A query that aggregates, or returns distinct rows, is one over the rows of another, whose rows are matches: those delta
plans maintain, and :mod:`.groups` brings the groups up to date that they belong to.  ``count``, and ``sum`` and ``avg``
of integers, are added up, of all values or of distinct ones; ``min`` and ``max`` are compared; whatever else there is,
is computed again of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.values.types import FLOAT, INTEGER, Base, Column, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.live.aggregates.distinct_values import NUMBER
from graphdb.live.aggregates.over_groups import NotGrouped, OverGroups, over_groups
from graphdb.live.forms.linear import NOTHING, Linear
from graphdb.pattern.paths.lengths import all_hold
from graphdb.relational.projection.return_clause import combines_aggregates
from graphdb.relational.projection.sql import columns_of
from graphdb.semantics.aggregation import aggregates_in, contains_aggregate, is_aggregate
from graphdb.sql.equivalence import has_key, lacks_key

if TYPE_CHECKING:
    from graphdb.relational.snapshot import Snapshot

_ORDERED = frozenset(
    (Base.BOOLEAN, Base.INTEGER, Base.DECIMAL, Base.FLOAT, Base.STRING, Base.DATE, Base.DATETIME, Base.TIME)
)
"""Types whose values SQL orders as ``min`` and ``max`` do."""
_ONCE = frozenset(("max", "min"))
"""Aggregates of which it does not matter how often a value comes."""
_COMPARED = frozenset((Base.BOOLEAN, Base.INTEGER, Base.STRING))
"""Types of keys whose groups are found by their values."""


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
    type: Type | None = None
    """The type of its values; None where no more than the column is made of them."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Linear queries that are aggregated, cut into those for their rows and what is made of these."""

    query: Linear
    """What groups are made of, with the columns of the answer."""
    rows: tuple[Linear, ...]
    """Return the keys ``k0 …`` of matches, what is aggregated, ``x0 …``, and how many matches have these."""
    by: tuple[ast.Expression, ...]
    """What is grouped by."""
    keys: tuple[str, ...]
    arguments: tuple[tuple[ast.Expression, str], ...]
    """What is aggregated, and the columns of the rows that have it."""

    @property
    def counts(self) -> bool:
        """Whether its aggregates say how often a row comes."""
        calls = list(aggregates_in(self.query.returns))
        return any(
            isinstance(call, ast.CountStar) or not (call.distinct or call.name.lower() in _ONCE) for call in calls
        )

    @classmethod
    def of(cls, branches: Sequence[Linear]) -> Grouping:
        """Cut linear queries, whose columns have aggregates or are each returned once, in two.

        Raises
        ------
        NotGrouped
            It is not made that simply.
        """
        if any(branch.final != branches[0].final for branch in branches):
            raise NotGrouped("a column is made of aggregates of several queries")
        for branch in branches:
            if branch.returns.star:
                raise NotGrouped("its columns are those of the pattern")
            if combines_aggregates(branch.returns.items):  # of a WITH
                raise NotGrouped("a column is made of aggregates and of what is grouped by")
        if len(branches) > 1:
            return cls._of_several(branches)
        (query,) = branches
        keys = [item.expression for item in query.returns.items if not contains_aggregate(item.expression)]
        arguments: dict[ast.Expression, str] = {}
        for item in query.returns.items:
            call = item.expression
            if is_aggregate(call) and isinstance(call, ast.FunctionCall) and len(call.arguments) == 1:
                arguments.setdefault(call.arguments[0], f"x{len(arguments)}")
        named = [(key, f"k{i}") for i, key in enumerate(keys)] + [*arguments.items()]
        rows = query.returning([*(named or [(ast.Literal(1), "one")]), (ast.CountStar(), NUMBER)])
        return cls(query, (rows,), tuple(keys), tuple(f"k{i}" for i in range(len(keys))), tuple(arguments.items()))

    @classmethod
    def _of_several(cls, branches: Sequence[Linear]) -> Grouping:
        """Cut queries that are one over the rows of all of them: of a call of their UNION ALL."""
        columns: list[list[tuple[ast.Expression, str]]] = [[] for _ in branches]
        items, keys, arguments = list[ast.ReturnItem](), list[str](), list[str]()
        for alike in zip(*(branch.returns.items for branch in branches), strict=True):
            parts = [item.expression for item in alike]
            made, name = parts[0], f"k{len(keys)}"
            if isinstance(made, ast.CountStar):
                items.append(alike[0])
                continue
            if not contains_aggregate(made):
                keys.append(name)
                made = ast.Variable(name, made.span)
            elif is_aggregate(made) and isinstance(made, ast.FunctionCall) and len(made.arguments) == 1:
                parts = [part.arguments[0] for part in parts if isinstance(part, ast.FunctionCall)]
                name = f"x{len(arguments)}"
                arguments.append(name)
                made = replace(made, arguments=(ast.Variable(name),))
            else:
                raise NotGrouped("a column is made of aggregates of several queries")
            items.append(replace(alike[0], expression=made))
            for own, part in zip(columns, parts, strict=True):
                own.append((part, name))
        first, made_of = branches[0], [own or [(ast.Literal(1), "one")] for own in columns]
        united = tuple(branch.returning(own).whole for branch, own in zip(branches, made_of, strict=True))
        call = ast.CallClause(ast.Composite(united, True, first.span), (), span=first.span)
        counted = (ast.CountStar(), NUMBER)
        return cls(
            Linear((call,), replace(first.returns, items=tuple(items)), first.span, first.final),
            tuple(branch.returning([*own, counted]) for branch, own in zip(branches, made_of, strict=True)),
            tuple(ast.Variable(name) for name in keys),
            tuple(keys),
            tuple((ast.Variable(name), name) for name in arguments),
        )

    def typed(self, columns: Sequence[Column], snapshot: Snapshot, text: str, *, parallel: bool) -> Accumulators:
        """Return how groups follow rows that have these columns; of edges that may be ``parallel``, if they are edges.

        ``snapshot`` is the state over which they were bound, and ``text`` that of the query.

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
        signature = signature_of([column for column in columns if column.sql_name != NUMBER])
        bases = tuple(types[name].type.base for name in self.keys)
        followed = [(each.name, each.change.name, each.distinct) for made in measures for each in made.accumulators]
        known, by = {measure.item: measure.type for measure in measures}, iter(self.keys)
        values: Mapping[str, Type | None] = {
            item.alias or item.text: known[item] if item in known else types[next(by)].type
            for item in self.query.returns.items
        }
        final = None
        if self.query.final is not None:
            final = over_groups(self.query.final, values, snapshot, text)
            values = final.types
        return Accumulators(self, bases, tuple(measures), repr((signature, followed)), final, values)


@dataclass(frozen=True, slots=True)
class Accumulators:
    """How the groups of a query are stored and brought up to date, over one state of the names."""

    grouping: Grouping
    bases: tuple[Base, ...]
    """The types of the keys."""
    measures: tuple[Measure, ...]
    signature: str
    """Of the rows: a table of groups that has another one is of other values."""
    final: OverGroups | None
    """What is made of the columns of groups, where that is more than these."""
    types: Mapping[str, Type | None]
    """By columns of the answer, their types; None: not known."""

    @property
    def all(self) -> tuple[Accumulator, ...]:
        """The accumulators of all measures."""
        return tuple(own for measure in self.measures for own in measure.accumulators)

    @property
    def query(self) -> Linear:
        """The query for the table of groups: keys, how many rows each is of, accumulators."""
        columns = [*zip(self.grouping.by, self.grouping.keys, strict=True), (ast.CountStar(), NUMBER)]
        return self.grouping.query.returning(columns + [(own.expression, own.name) for own in self.all])

    @property
    def distinct(self) -> dict[str, Linear]:
        """By columns of the rows of which equal values count once, the query for keys, value and in how many rows."""
        wanted = {own.argument for own in self.all if own.distinct}
        keys = [*zip(self.grouping.by, self.grouping.keys, strict=True)]
        return {
            name: self.grouping.query.returning([*keys, (expression, name), (ast.CountStar(), NUMBER)])
            for expression, name in self.grouping.arguments
            if name in wanted
        }

    def narrowed(self, values: Callable[[str], list[object] | None]) -> tuple[Linear, dict[str, list[str]]]:
        """Return :attr:`query` for some groups and perhaps others, and which vertices some variables may be for them.

        ``values`` are what a key is in these groups, vertices by their IRIs; None for too many of them.
        """
        conditions: list[ast.Expression] = []
        vertices = {}
        clauses = self.grouping.query.clauses
        first = [*takewhile(lambda clause: isinstance(clause, ast.MatchClause) and not clause.optional, clauses)]
        bound = {part.name for part in walk(tuple(first)) if isinstance(part, ast.Variable)}
        for key, base, name in zip(self.grouping.by, self.bases, self.grouping.keys, strict=True):
            if not any(isinstance(part, ast.Variable) and part.name in bound for part in walk(key)):
                continue  # it is of a later clause, and may be null
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
            last = first[-1]
            assert isinstance(last, ast.MatchClause)
            where = all_hold([*([] if last.where is None else [last.where]), *conditions], last.span)
            query = replace(query, clauses=(*first[:-1], replace(last, where=where), *clauses[len(first) :]))
        return query, vertices

    def answer(self, groups: str) -> tuple[str, Mapping[str, object]]:
        """Return SQL for the rows of the answer, of a table of groups or what stands after FROM, and its parameters."""
        items, keys = self.grouping.query.returns.items, iter(self.grouping.keys)
        measures = {measure.item: measure.sql for measure in self.measures}
        names = [column.sql_name for column in columns_of([(item, NOTHING) for item in items])]
        columns = [measures[item] if item in measures else next(keys) for item in items]
        chosen = ", ".join(f"{sql} AS {quoted(name)}" for sql, name in zip(columns, names, strict=True))
        there = f" WHERE {NUMBER} > 0" if self.grouping.keys else ""
        found = f"SELECT {chosen} FROM {groups}{there}"
        return (found, {}) if self.final is None else (self.final.of(found), self.final.parameters)


def signature_of(columns: Sequence[Column]) -> list[object]:
    """Return what of columns says which values they may have, and how SQL has these."""
    several = [sorted(map(str, column.bases or ())) for column in columns]
    return [
        (c.sql_name, str(c.type), c.type.scale, c.many, bases if len(bases) > 1 else ())
        for c, bases in zip(columns, several, strict=True)
    ]


def _has_edges(type: Type) -> bool:
    """Whether values are edges, paths, or lists of them."""
    return type.base in (Base.EDGE, Base.PATH) or (type.element is not None and _has_edges(type.element))


def _measure(
    item: ast.ReturnItem, names: dict[ast.Expression, str], types: dict[str, Column], first: int, *, parallel: bool
) -> Measure:
    """Return what a column of aggregates is made of; accumulators are numbered from ``first`` on."""
    call = item.expression
    if isinstance(call, ast.CountStar):
        return Measure(item, NUMBER, (), INTEGER)
    own = f"a{first}"
    if is_aggregate(call) and isinstance(call, ast.FunctionCall) and len(call.arguments) == 1:
        argument, function, once = names[call.arguments[0]], call.name.lower(), call.distinct
        column = types[argument]
        plain = not (column.many or lacks_key(column.type) or has_key(column.type, column.bases))
        plain = plain and not (parallel and _has_edges(column.type))
        whole = column.type.base is Base.INTEGER and not column.many
        match function:
            case "count" if plain or not once:
                return Measure(item, own, (Accumulator(own, call, Change.COUNT, argument, once),), INTEGER)
            case "sum" if whole:
                return Measure(item, own, (Accumulator(own, call, Change.SUM, argument, once),), INTEGER)
            case "avg" if whole:
                of = f"a{first + 1}"
                total = Accumulator(own, replace(call, name="sum"), Change.SUM, argument, once)
                count = Accumulator(of, replace(call, name="count"), Change.COUNT, argument, once)
                divided = f"CASE WHEN {of} > 0 THEN CAST({own} AS DOUBLE) / {of} END"
                return Measure(item, divided, (total, count), FLOAT)
            case "min" | "max" if column.type.base in _ORDERED and not column.many:
                change = Change.LEAST if function == "min" else Change.GREATEST
                return Measure(item, own, (Accumulator(own, call, change, argument),), column.type)
    return Measure(item, own, (Accumulator(own, call, Change.AGAIN),))
