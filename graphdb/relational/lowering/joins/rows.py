"""The rows of a query as tables, and what its lowering has made so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from graphdb.common import arrow
from graphdb.common.values.types import EDGE, NODE, Base, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.failing import can_fail
from graphdb.pattern.free import SUBQUERIES, free_variables, subqueries_in
from graphdb.pattern.graph import PatternGraph, Wanted
from graphdb.relational.argument_columns import ListOf
from graphdb.relational.arguments import Arguments
from graphdb.relational.lowering.joins.conditions import computed_of_rows
from graphdb.relational.program import AnyStep, Joined, Rows, Step
from graphdb.relational.projection.compile import ProjectionCompiler
from graphdb.relational.projection.late import BesideBindings
from graphdb.relational.projection.relation import GROUP, ORDER, ROW, UNIT, Relation, Source
from graphdb.relational.snapshot import Snapshot
from graphdb.relational.vectors import algebra as vectors
from graphdb.sql.expressions import MOST_OPERANDS
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import column

_ROW_COLUMN = "row"
"""The column of joined rows that has the numbers of those that they were made of."""

CARRIED = (ORDER, ROW, GROUP)
"""Names of the engine's own that go with rows wherever they go."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a query is lowered in: the data, its text and arguments, and who makes steps of its parts."""

    snapshot: Snapshot
    text: str
    arguments: Arguments
    pattern_of: Callable[[BoundPattern, Wanted], PatternGraph]
    """Returns the pattern graph of a bound pattern, given what is wanted of it; raises where a plan cannot match it."""
    memory: int
    """Bytes that what is put together to search for paths may take."""
    beforehand: frozenset[ast.Expression] = frozenset()
    """Expressions that Python computes for tables of rows, before SQL goes on."""
    writes_paths: bool = True
    """Whether what is asked of paths is asked of their vertices and edges: SQL may know the one, but not the other."""
    prefix: str = "_"
    """How the names of its tables and views begin: those of queries that run within others differ."""


class RowTables:
    """What the lowering of one query has made so far: its steps, and the rows that the next one starts from."""

    def __init__(self, setting: Setting) -> None:
        self._snapshot = setting.snapshot
        self._text = setting.text
        self._arguments = setting.arguments
        self._pattern_of = setting.pattern_of
        self._memory = setting.memory
        self._beforehand = setting.beforehand
        self._prefix = setting.prefix
        self._writes_paths = setting.writes_paths
        self.has_written = False
        """Whether what is asked of some path was asked of its vertices and edges."""
        self._parameters = Parameters()
        self._steps: list[AnyStep] = []
        self._lists: dict[str, arrow.Table] = {}
        self._listed: dict[str, ListOf] = {}
        self._shared_groups: dict[tuple[str, tuple[str, ...], bool], tuple[Relation, str, Source]] = {}
        """The groups that subqueries beside one another run for, by the rows and what is taken of them: with how the
        alias of their join ends."""
        self._whether = False
        """Whether nothing matters of the rows of the subquery under way but if there is one."""
        self._named = 0
        self._numbered: set[str] = set()
        """The views of bindings that are rows as they are."""
        self._beside: dict[str, BesideBindings] = {}
        """The properties that SQL reads beside the vertices in views of bindings."""
        self._clauses: object = ()
        """The part of the query under way."""

    def _has_arrays(self, source: Source) -> bool:
        """Whether rows are there as arrays, while they are in memory."""
        return source.view is not None and (source.table or source.view in self._numbered)

    def _columns_of(self, rows: Relation) -> tuple[str, ...] | None:
        """Return the columns of rows that are there as arrays; None where something of them is no column."""
        values = [value for value in (*rows.variables.values(), *rows.known.values()) if not value.shared]
        columns = dict.fromkeys(value.column for value in values)
        if not self._has_arrays(rows.source) or None in columns or _ROW_COLUMN in columns:
            return None
        return tuple(column for column in columns if column is not None)

    def _aside(self, node: object) -> Iterator[ast.Expression]:
        """Yield what has to be a column of the rows before an expression is compiled: what is within it comes first."""
        yield from subqueries_in(node)
        if self._beforehand:
            parts = [part for part in walk(node, SUBQUERIES) if isinstance(part, ast.Expression)]
            yield from (part for part in reversed(parts) if part in self._beforehand)

    def _table(self, relation: Relation, keep: Collection[str]) -> Relation:
        """Return the rows that fulfil the conditions as a table; what waits for a subquery stays to be tested.

        So does what can fail behind such a condition: of rows that this one excludes it must not be asked.
        """
        waiting: tuple[ast.Expression, ...] = ()
        for each in relation.where:
            waits = any(part not in relation.known for part in self._aside(each))
            if waits or (waiting and can_fail(each, self._snapshot.names, self._text)):
                waiting = (*waiting, each)
        ready = tuple(c for c in relation.where if c not in waiting) if waiting else relation.where
        if len(ready) > MOST_OPERANDS:
            later = (*ready[MOST_OPERANDS:], *waiting)
            some = replace(relation, where=ready[:MOST_OPERANDS])
            return self._table(replace(self._table(some, {*keep, *free_variables(later)}), where=later), keep)
        used = {*keep, *free_variables(waiting), *CARRIED}
        names = [name for name in relation.variables if name in used]
        columns = all(value.column or value.shared for value in map(relation.variables.__getitem__, names))
        if relation.source.table and columns and not ready:
            return relation
        shared = {name: relation.variables[name] for name in names if relation.variables[name].shared}
        if not ready and self._number(relation, [name for name in names if name not in shared]):
            return replace(relation, variables={name: relation.variables[name] for name in names})
        sql, found = self._projecting(replace(relation, where=ready)).select(names)
        made = vectors.One("one") if relation.source is UNIT.source and not names and not ready else found.source.rows
        table = self._materialized(sql, found.source, made=made)
        return replace(found, source=table, where=waiting, links=relation.links)

    def _with_columns(self, relation: Relation, names: Collection[str]) -> Relation:
        """Return the rows with lists that are one for all of them as columns."""
        shared = {name: relation.variables[name] for name in names if relation.variables[name].shared}
        if not shared:
            return relation
        chosen = "".join(f", {value.sql} AS s{i}" for i, value in enumerate(shared.values()))
        made = {name: column(f"s{i}", value.type) for i, (name, value) in enumerate(shared.items())}
        source = Source.made(f"(SELECT b.*{chosen} FROM {relation.source} b)", relation.source)
        return replace(relation, source=source, variables={**relation.variables, **made})

    def _with_elements(self, left: Relation, patterns: object) -> Relation:
        """Return rows that are a table, with a pattern's vertices and edges that only the data says are some.

        A value that is neither null nor one of them is an error of its row.
        """
        types: dict[ast.Variable, Type] = {}
        for part in walk(patterns):
            if isinstance(part, ast.EdgePattern) and part.repeat is not None:
                continue  # that is a list
            if isinstance(part, ast.NodePattern | ast.EdgePattern) and part.variable is not None:
                found = left.variables.get(part.variable.name)
                wanted = NODE if isinstance(part, ast.NodePattern) else EDGE
                if found is not None and found.type.base not in (wanted.base, Base.TERM):
                    types.setdefault(part.variable, wanted)
        if not types:
            return left
        sql, rows = self._projecting(replace(left, where=())).select(left.variables, types=types)
        return replace(rows, source=self._materialized(sql, left.source), where=left.where)

    def _with_operands(self, left: Relation, *bounds: BoundPattern) -> Relation:
        """Return rows that are a table, with columns for what is computed of them and a property has to equal."""
        operands = (computed_of_rows(left.variables, bound) for bound in bounds)
        return self._as_columns(left, dict.fromkeys(chain.from_iterable(operands)))

    def _as_columns(self, rows: Relation, operands: Iterable[ast.Expression], other: Source | None = None) -> Relation:
        """Return rows as a table that has columns for what is computed of them.

        It is null, and cannot fail, where ``other`` has no rows.
        """
        new = [one for one in operands if one not in rows.known and not any(self._aside(one))]
        if not new or rows.matches is not None:
            return rows
        sql, found = self._projecting(replace(rows, where=())).select(rows.variables, known=new, unless_empty=other)
        reads = Source.made("", found.source, *([] if other is None else [other]))
        table = self._materialized(sql, reads, made=found.source.rows)
        return replace(rows, source=table, variables=found.variables, known=found.known)

    def _number(self, relation: Relation, names: Sequence[str]) -> bool:
        """Have the bindings of a match be rows as they are, where all that is wanted of them are columns."""
        view = relation.source.view
        if view in self._numbered:
            return True
        columns = [*(relation.variables[name] for name in names), *relation.known.values()]
        if not names or relation.matches is not None or any(each.column in (None, _ROW_COLUMN) for each in columns):
            return False
        for i, step in enumerate(self._steps):
            if isinstance(step, Step | Joined) and step.view == view:
                self._steps[i] = replace(step, numbered=True)
                self._numbered.add(step.view)
                return True
        return False

    def _materialized(
        self, sql: str, source: Source, *, lasting: bool = False, made: vectors.Rows | None = None
    ) -> Source:
        """Return the table that is made of some SQL, which reads what a source does, when what is before it has run.

        It is there until the query ends where it is ``lasting``.  ``made`` says the same by columns in memory.
        """
        table = self._name("rows")
        self._beside[table] = BesideBindings(self._snapshot)
        self._steps.append(Rows(table, sql, self._parameters.used(sql), source.reads, lasting, made=made))
        return Source.of_table(table)

    def _projecting(self, relation: Relation, bound: BoundPattern | None = None) -> ProjectionCompiler:
        beside = None if relation.source.view is None else self._beside.get(relation.source.view)
        return ProjectionCompiler(
            self._snapshot, self._text, self._arguments, relation, bound, self._parameters, beside
        )

    def _bindings_view(self) -> str:
        view = self._name("bindings")
        self._beside[view] = BesideBindings(self._snapshot)
        return view

    def _name(self, what: str) -> str:
        self._named += 1
        return f"{self._prefix}{what}{self._named}"
