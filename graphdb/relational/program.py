"""Programs: what a query of several clauses is lowered to, which :mod:`graphdb.relational.running.program_run` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.graph import PatternGraph, Wanted
from graphdb.plan.paths import PathStep, Weighted
from graphdb.plan.physical import PhysicalPlan
from graphdb.procedures.answers import Answer, arrow_type
from graphdb.procedures.registry import Call
from graphdb.relational.argument_columns import ListOf
from graphdb.relational.costed_edges import CostedEdges, DataEdges, FoundAlong
from graphdb.relational.costed_edges import Key as EdgesKey
from graphdb.relational.path_patterns.edges import Pattern
from graphdb.relational.projection.arrays import Beside
from graphdb.relational.projection.lookups import Key
from graphdb.relational.projection.sql import Projection
from graphdb.relational.vectors import algebra as vectors
from graphdb.sql.computing import Applying, Computing

if TYPE_CHECKING:
    from graphdb.execute.paths.path_rows import PathRows


ONE_VERTEX = Wanted((0,), (), False, None)
"""What is wanted of a pattern of one vertex: its candidates."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are materialized: matches start from them, and are joined with them."""

    view: str
    sql: str
    parameters: Mapping[str, object]
    reads: frozenset[str]
    """The names of the tables and views that the SQL reads, of those that the program makes."""
    lasting: bool = False
    """Whether whatever comes later may read them, to the end."""
    beside: tuple[Beside, ...] = ()
    """Properties of their vertices that SQL reads as further columns."""
    made: vectors.Rows | None = None
    """What makes them of rows in memory without SQL, where it is as simple as that."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Bindings that rows are joined with: each row comes once for each of these whose vertices are its own."""

    view: str
    on: tuple[tuple[str, str], ...]
    """The columns of vertices that must be equal: of the rows, and of the bindings."""
    retained: tuple[str, ...]
    """The columns of the rows that stay."""
    added: tuple[tuple[str, str], ...]
    """Names of further columns, and the columns of the bindings that they are."""
    outer: bool
    """Whether a row without a binding stays, with nulls."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Bindings that are counted for each row: the column ``name``, of those whose vertices are the row's own."""

    view: str
    on: tuple[tuple[str, str], ...]
    """The columns of vertices that must be equal: of the rows, and of the bindings."""
    name: str
    whether: bool
    """Whether nothing is asked but if there is one: the column is 1 then, and else 0."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows joined with bindings, for SQL that names them ``view``.

    In memory this is done by arrays (:mod:`graphdb.relational.running.array_joins`), else by DuckDB.
    """

    view: str
    rows: str
    """The view of the rows, which have their numbers (``rowid``)."""
    how: Matched | tuple[Counted, ...]
    chosen: str
    joins: str
    """SQL for the same: the columns of joined rows, or of counted ones those that come to theirs; and what stands after
    the rows ``l``."""
    reads: frozenset[str]
    """The names of the tables and views that are joined."""
    numbered: bool = False
    """Whether others start from its rows, so that these have their numbers (``rowid``) instead of the numbers of those
    that they were made of (``row``); counted ones always have them."""
    beside: tuple[Beside, ...] = ()
    """Properties of their vertices that SQL reads as further columns."""

    def sql(self, rows: str) -> str:
        """Return SQL for the same, in which counted rows have some columns ``rows``."""
        chosen = f"{rows}{self.chosen}"
        if isinstance(self.how, Matched):
            chosen = ", ".join(filter(None, (self.chosen, "" if self.numbered else "l.rowid AS row")))
        return f"SELECT {chosen} FROM temp.{self.rows} l{self.joins}"


@dataclass(frozen=True, slots=True)
class Given:
    """What the rows say of a pattern vertex: it is one of the ids that ``sql`` yields."""

    vertex: int
    sql: str
    parameters: Mapping[str, object]
    reads: frozenset[str]
    """The names of the tables and views that the SQL reads, of those that the program makes."""
    column: tuple[str, str] | None = None
    """The view of bindings or rows, and its column, that they stand in as they are, but for nulls."""
    key: Key | None = None
    """The property, and its values, that they are found by, where an index has it and the values are not many."""
    excluded: bool = False
    """Whether it is none of them instead; then it has a label, so that it is a resource."""


@dataclass(frozen=True, slots=True)
class Step:
    """One match: of a pattern whose vertices the rows may give, for SQL that names its bindings ``view``."""

    words: str
    """How its bindings are joined with the rows, for EXPLAIN."""
    view: str
    bound: BoundPattern
    needs: Wanted
    pattern: PatternGraph
    """With the candidates that do not depend on the rows."""
    given: tuple[Given, ...] = ()
    plan: PhysicalPlan | None = None
    """Made once where it depends on no rows."""
    numbered: bool = False
    """Whether its bindings are rows that others start from: then they have their numbers (column ``rowid``), as rows
    of tables do."""
    shown: bool = True
    """Whether SQL reads its bindings; otherwise nothing but what is given of another step's vertices does."""
    beside: tuple[Beside, ...] = ()
    """Properties of its vertices that SQL reads as columns of the bindings."""
    found_by: EdgesKey | None = None
    """What its bindings are found again by, where they are all edges of a path and the data alone says which."""

    @property
    def reads(self) -> frozenset[str]:
        """The names of the tables and views that say what the rows give."""
        return frozenset().union(*(given.reads for given in self.given))


@dataclass(frozen=True, slots=True)
class Searched:
    """Paths that are searched for, for SQL that names them ``view``.

    Its columns: the ends ``s`` and ``t``, or the one of them that is wanted; ``length``; ``cost`` where edges cost
    something; ``n`` where a row stands for
    so many paths; ``path`` where they are materialized, and for each place between two parts ``c1`` …, the edges
    before it.
    """

    view: str
    path: PathStep
    start: str | None
    """SQL of the ends that the rows have (columns ``s``, ``t``); None where it starts from none."""
    reads: frozenset[str]
    """The names of the tables and views that this SQL reads, of those that the program makes."""
    starts: NDArray[np.int64] | None
    ends: NDArray[np.int64] | None
    """The candidates of an end that the rows do not have; None for any vertex."""
    among: tuple[Given, ...] = ()
    """What other steps say of these ends: of the source as vertex 0, of the target as vertex 1."""
    edges: Pattern | None = None
    """The edges that it goes along, as other steps find them; None for all of its labels."""
    cost: ast.Cost | None = None
    """What these cost, where they cost something."""
    of_data: DataEdges | None = None
    """How the edges and costs are found again, where the data alone says what they are."""
    free: tuple[BoundPattern | None, BoundPattern | None] = (None, None)
    """What the ends are that the rows do not have: patterns of one vertex, whose candidates ``starts`` and ``ends``
    are."""

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        if self.path.only:
            return ["s" if self.path.only == "source" else "t"]
        numbered = ["n"] if self.path.numbered and self.path.cost is None else []
        costs = [] if self.path.cost is None else ["cost"]
        return ["s", "t", "length", *numbered, *costs, *(["path", *self._cuts] if self.path.materialized else [])]

    @property
    def _cuts(self) -> list[str]:
        return [] if self.path.edges is None else [f"c{cut + 1}" for cut in range(self.path.edges.cuts)]

    def with_ends(self, candidates_of: Callable[[BoundPattern, Wanted], NDArray[np.int64] | None]) -> Searched:
        """Return the step with the candidates that its ends have by now, for other values of the arguments."""
        starts, ends = (None if one is None else candidates_of(one, ONE_VERTEX) for one in self.free)
        return replace(self, starts=starts, ends=ends)

    def table(self, found: PathRows | None) -> arrow.Table:
        """Return what was found as a table; None for nothing."""
        from graphdb.results.path_materialization import Walks

        none = np.empty(0, np.int64)
        if found is None:
            columns: dict[str, Any] = dict.fromkeys(("s", "t", "length", "n", *self._cuts), none)
            columns["cost"] = np.empty(0)
            paths = np.zeros(1, np.int64), none, none
        else:
            counts = np.ones(len(found), np.int64) if found.counts is None else found.counts
            columns = {"s": found.sources, "t": found.targets, "length": found.lengths, "n": counts}
            columns |= dict(zip(self._cuts, found.cuts, strict=False))
            columns |= {} if found.costs is None else {"cost": found.costs}
            paths = found.starts, found.walks, found.codes
        columns = {name: numbers(columns[name]) for name in self.columns if name != "path"}
        return arrow.table(columns | ({"path": Walks(*paths).array()} if self.path.materialized else {}))


@dataclass(frozen=True, slots=True)
class Called:
    """A procedure that is called for each of some groups of rows, for SQL that names what it yields ``view``.

    Its columns: the group ``g``, and ``c0`` … in the order of the call's YIELD.
    """

    view: str
    call: Call
    groups: str
    """SQL of the groups: the arguments (columns ``c0`` …) of each, and its number ``g``."""
    parameters: Mapping[str, object]
    reads: frozenset[str]
    """The names of the tables and views that this SQL reads, of those that the program makes."""

    def table(self, groups: Sequence[int], answers: Sequence[Answer]) -> arrow.Table:
        """Return what it yielded for groups as a table."""
        numbered = np.repeat(np.array(groups, np.int64), [answer.num_rows for answer in answers])
        columns: dict[str, Any] = {"g": numbers(numbered)}
        for i, (number, column) in enumerate(self.call.yields):
            assert column.type.sql is not None
            arrays = [array for answer in answers for array in answer.arrays(number, column.type.sql)]
            columns[f"c{i}"] = arrow.ChunkedArray(arrays, arrow_type(column.type.sql))
        return arrow.table(columns)


@dataclass(frozen=True, slots=True)
class Applied:
    """Rows that Python makes of each of some groups of rows, such as paths, for SQL that names them ``view``.

    Its columns: the group ``g``, and ``c0`` … of what is wanted of each.
    """

    view: str
    words: str
    """How they are made, for EXPLAIN."""
    applying: Applying
    groups: str
    """SQL of the groups: what each gives (columns ``c0`` …), and its number ``g``."""
    reads: frozenset[str]
    """The names of the tables and views that this SQL reads, of those that the program makes."""


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression that Python computes for the rows of a table, for SQL that names its values ``view``.

    Its columns: the number of the row, ``row``, ``value``, and ``failed``, the number of an error in its place.
    """

    view: str
    rows: str
    """SQL of the rows' numbers, and of what the expression takes (columns ``c0`` …)."""
    parameters: Mapping[str, object]
    reads: frozenset[str]
    """The names of the tables and views that this SQL reads, of those that the program makes."""
    compute: Callable[[arrow.Table], arrow.Table] = field(compare=False)
    sql_type: str

    def table(self, rows: arrow.Table) -> arrow.Table:
        """Return the values for some rows as a table."""
        return self.compute(rows).append_column("row", rows.column("row"))


AnyStep: TypeAlias = "Step | Searched | Applied | Called | Computed | Rows | Joined"


@dataclass(frozen=True, slots=True)
class Program:
    """A query that is ready to run: its matches and the rows that they start from, in order, and the SQL after them."""

    steps: tuple[AnyStep, ...]
    projection: Projection
    lists: Mapping[str, arrow.Table]
    """Long lists among the parameters, by the views that SQL reads them from (column ``item``)."""
    listed: Mapping[str, ListOf] = field(default_factory=dict)
    """Of those that are parameters, or parts of these, by the same views: which they are."""
    counts: bool = False
    """Whether the result is the number of matches of the last step, and nothing is left to do after it; where
    ``projection`` is direct it is columns of these matches."""
    computing: Computing | None = None
    """Who computes what its SQL cannot express."""

    @property
    def matches(self) -> list[Step]:
        """Its matches alone."""
        return [step for step in self.steps if isinstance(step, Step)]

    @property
    def own_bytes(self) -> int:
        """What its plans, and the candidates that later ones start from, take of memory."""
        plans = sum(step.plan.own_bytes for step in self.matches if step.plan is not None)
        later = [vertex.candidates for step in self.matches if step.plan is None for vertex in step.pattern.vertices]
        return plans + sum(ids.nbytes for ids in later if ids is not None)

    def unplanned(self) -> Program:
        """Return it without its plans and candidates, which depend on the data, and its parameters' lists."""
        steps = (_unplanned(step) if isinstance(step, Step) else step for step in self.steps)
        lists = {view: table for view, table in self.lists.items() if view not in self.listed}
        return replace(self, steps=tuple(steps), lists=lists)

    def with_lists(self, arguments: Mapping[str, object]) -> Program | None:
        """Return it with the lists of these arguments; None where one has items of another type."""
        lists = dict(self.lists)
        for view, each in self.listed.items():
            found = each.column(arguments)
            if found is None:
                return None
            lists[view] = arrow.table({"item": found})
        return replace(self, lists=lists)

    def known_edges(self, costed: CostedEdges) -> tuple[dict[str, Weighted | FoundAlong], set[str]]:
        """Return the edges of paths that are known, by the steps that go along them, and the steps that find them."""
        known: dict[str, Weighted | FoundAlong] = {}
        steps: set[str] = set()
        for step in self.steps:
            if isinstance(step, Searched) and step.of_data is not None:
                found = costed.get(step.of_data.key)
                if isinstance(found, Weighted | FoundAlong):
                    known[step.view] = found
                    steps |= step.of_data.views
        return known, steps

    def last_uses(self) -> dict[str, int]:
        """Return the number of the last step that reads each table or view; past the last if the result does."""
        found = {name: number for number, step in enumerate(self.steps) for name in step.reads}
        lasting = {step.view for step in self.steps if isinstance(step, Rows) and step.lasting}
        return found | dict.fromkeys(self.projection.reads | lasting, len(self.steps))


def _unplanned(step: Step) -> Step:
    anywhere = (replace(vertex, candidates=None) for vertex in step.pattern.vertices)
    return replace(step, plan=None, pattern=replace(step.pattern, vertices=tuple(anywhere)))
