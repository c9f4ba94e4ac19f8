"""Relations: rows in SQL, and what the names of a query stand for in them.

The bindings of a match are one, and so is what each clause makes of the rows that it is given.  SQL over a relation
calls it ``b``.  Names that begin with ``#`` are the engine's own: unnamed vertices, and the two below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphdb.common.values.types import EDGE
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern, variables_in
from graphdb.relational.filtering.candidates import variable
from graphdb.relational.vectors.algebra import Rows
from graphdb.snapshot.edges import Edges
from graphdb.sql.value import SqlValue, column

BINDINGS = "_graphdb_bindings"
"""The view that holds the bindings of a statement's only match."""

ORDER = "#order"
"""The number of a row in the order that a WITH … ORDER BY gave; absent where rows have none."""

ROW = "#row"
"""The number of the row that a match started from, while its matches are gathered."""

GROUP = "#group"
"""The number of the outer row, or of the values taken from it, that a subquery's row belongs to."""

MATCHES = "#matches"
"""How many matches a row stands for, while rows are put together."""

ARGUMENT = "#argument"
"""What an argument of a procedure is called among the columns of the rows, with its number."""

VALUE = "#value"
"""What a subquery gathers of each of its matches."""


@dataclass(frozen=True, slots=True)
class Source:
    """What stands after FROM: the name of a table or view, or a subquery."""

    sql: str
    reads: frozenset[str] = frozenset()
    """The names of the tables and views that it reads, of those that a program makes."""
    view: str | None = None
    """The view or table that it is as it stands; None for a subquery."""
    table: bool = False
    """Whether its rows are in a table."""
    rows: Rows | None = None
    """Of a subquery: the same by columns in memory, where it is as simple as that."""

    @classmethod
    def of(cls, view: str) -> Source:
        """Return the rows of a view."""
        return cls(view, frozenset((view,)), view)

    @classmethod
    def of_table(cls, name: str) -> Source:
        """Return the rows of a temporary table."""
        return cls(f"temp.{name}", frozenset((name,)), name, table=True)

    @classmethod
    def made(cls, sql: str, *sources: Source, rows: Rows | None = None) -> Source:
        """Return the rows of a subquery, which reads what some others do."""
        return cls(sql, frozenset().union(*(source.reads for source in sources)), rows=rows)

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True, slots=True)
class Link:
    """An edge of some labels (None: any) between two vertices of a row, by their names."""

    source: str
    target: str
    labels: tuple[int, ...] | None
    directed: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows that are there, or that SQL makes."""

    source: Source
    """What stands after FROM."""
    variables: Mapping[str, SqlValue] = field(default_factory=dict)
    """The SQL of each name, over the alias ``b``."""
    where: tuple[ast.Expression, ...] = ()
    """Conditions that the rows have still to fulfil."""
    known: Mapping[ast.Expression, SqlValue] = field(default_factory=dict)
    """Whole expressions that are columns already: subqueries that were run."""
    matches: str | None = None
    """SQL of how many matches a row stands for; None where each is one."""
    number: str | None = None
    """The column that says so; null for one."""
    grouped: bool = False
    """Whether it has a row for each group of a clause, with the clause's keys and aggregates among what is known."""
    links: tuple[Link, ...] = ()
    """Edges that certainly join vertices of each row: a pattern around these vertices is matched along them, too."""

    @property
    def groups(self) -> str | None:
        """The column that says what group a row is of, where a subquery runs for many outer rows at once."""
        found = self.variables.get(GROUP)
        return None if found is None else found.sql

    @property
    def names(self) -> list[str]:
        """The names that a user gave."""
        return [name for name in self.variables if not name.startswith("#")]


ONE = Source("(SELECT 1 AS one, 1 AS n)")
"""The rows of a statement without a match: one."""

UNIT = Relation(Source("(SELECT 1 AS one)"))
"""The one row without names that a query starts from."""


def rows_of(source: Source) -> Rows | None:
    """Return the rows of a source: by their name, or what makes them."""
    return source.view if source.view is not None else source.rows


def bindings_of(bound: BoundPattern, edges: Edges, rows: Source | str = BINDINGS) -> Relation:
    """Return the bindings of a pattern: ``v<i>`` per vertex, ``e<j>`` per edge (its code), of those that are wanted.

    Of edges that may be parallel, or whose properties are asked for, :mod:`graphdb.relational.edges.parallel_edges`
    adds what it chose.  ``rows`` has them: a view by its name, or any rows.
    """
    names = [info.name for info in bound.vertices]
    found = {info.name: variable(info, f"v{number}") for number, info in enumerate(bound.vertices)}
    asked = variables_in(tuple(bound.residual))
    known: dict[ast.Expression, SqlValue] = {}
    for number, edge in enumerate(bound.edges):
        name, choice = edge.name, bound.choices.get(number)
        if name not in bound.edge_of and name not in asked:
            continue
        source, target, code = f"b.v{edge.source}", f"b.v{edge.target}", f"CAST(b.e{number} AS BIGINT)"
        start, end = source, target
        if not edge.directed:
            start = f"CASE WHEN {code} & 1 = 0 THEN {source} ELSE {target} END"
            end = f"CASE WHEN {code} & 1 = 0 THEN {target} ELSE {source} END"
        ordinal = f"b.o{number}" if choice is not None and choice.parallel else "0::BIGINT"
        ends = f'"start" := CAST({start} AS BIGINT), "end" := CAST({end} AS BIGINT)'
        at = f"o{number}" if choice is not None and choice.parallel else ""
        parts = (f"e{number}", f"v{edge.source}", f"v{edge.target}", at, "" if edge.directed else "both")
        packed = f"struct_pack(label := {code} >> 1, {ends}, ordinal := {ordinal})"
        found[name] = SqlValue(packed, EDGE, parts=parts)
        for node, key in choice.facts.items() if choice is not None else ():
            known[node] = column(f"f{number}_{key}", edges.column(key).type)
    links = (Link(names[edge.source], names[edge.target], edge.labels, edge.directed) for edge in bound.edges)
    rows = Source.of(rows) if isinstance(rows, str) else rows
    return Relation(rows, found, tuple(bound.residual), known, links=tuple(links))
