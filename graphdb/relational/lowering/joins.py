"""The rows of a query as tables, and how the bindings of a pattern that starts from them are joined with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from graphdb.common import arrow
from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import EDGE, INTEGER, NODE, Base, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import MOST, BoundPattern, bind, conjuncts, size_of
from graphdb.pattern.failing import can_fail
from graphdb.pattern.free import SUBQUERIES, free_variables, subqueries_in
from graphdb.pattern.graph import Duplicates, PatternGraph, Wanted
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.paths.unroll import is_plain
from graphdb.pattern.rename import rewritten
from graphdb.relational.argument_columns import ListOf
from graphdb.relational.arguments import Arguments
from graphdb.relational.edges.parallel_edges import resolve_edges
from graphdb.relational.lowering.guards import guarded, may_fail
from graphdb.relational.lowering.join_conditions import (
    apart_of,
    asks,
    compared_fields,
    computed_of_rows,
    computed_of_sides,
    greatest,
)
from graphdb.relational.lowering.narrowing import Narrowing
from graphdb.relational.lowering.needs import available, is_of, needs_of, only, read_beside
from graphdb.relational.program import AnyStep, Counted, Given, Joined, Matched, Rows, Step
from graphdb.relational.projection.compile import ProjectionCompiler
from graphdb.relational.projection.late import BesideBindings, gathered_in, needed_first
from graphdb.relational.projection.lookups import equal_integers, having, sharing
from graphdb.relational.projection.relation import GROUP, MATCHES, ORDER, ROW, Relation, Source, bindings_of
from graphdb.relational.snapshot import Snapshot
from graphdb.relational.vectors import algebra as vectors
from graphdb.sql.expressions import MOST_OPERANDS
from graphdb.sql.from_clause import Parameters
from graphdb.sql.value import SqlValue, column

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


class Joins:
    """What the lowering of one query has made so far: its matches, and the rows that the next one starts from."""

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
        self._whether = False
        """Whether nothing matters of the rows of the subquery under way but if there is one."""
        self._named = 0
        self._numbered: set[str] = set()
        """The views of bindings that are rows as they are."""
        self._beside: dict[str, BesideBindings] = {}
        """The properties that SQL reads beside the vertices in views of bindings."""
        self._clauses: object = ()
        """The part of the query under way."""

    def _bound(self, matches: Sequence[ast.MatchClause], relation: Relation) -> BoundPattern:
        later: list[ast.Expression] = []
        if self._beforehand:
            matches = [self._without_computed(match, later) for match in matches]
        bound = bind(tuple(matches), self._snapshot.names, self._text, relation.names)
        bound.residual = guarded([*bound.residual, *later], {*relation.names}, lambda part: any(self._aside(part)))
        resolve_edges(self._snapshot, self._text, self._arguments, bound, self._clauses)
        return bound

    def _bound_from(self, matches: Sequence[ast.MatchClause], left: Relation) -> BoundPattern:
        """Bind a pattern that starts from rows; that what it has is in lists which all rows have is ensured then."""
        bound = self._bound(matches, left)
        for condition, subject, wanted in [*asks(left.variables, bound)]:
            number, listed = bound.vertex_of.get(subject), wanted.expression
            if not wanted.listed or not isinstance(listed, ast.Variable) or left.variables[listed.name].shared is None:
                continue
            if number is None or bound.vertices[number].kinds or (wanted.key and self._snapshot.deleted is not None):
                continue
            if having(left, self._projecting(left), self._snapshot, self._text, wanted) is not None:
                bound.residual.remove(condition)
                bound.ensured.append(condition)
        asked = free_variables(tuple(bound.residual)) & {*left.variables}
        of_vertices = not bound.edge_of and all(left.variables[name].type == NODE for name in asked)
        if self._snapshot.deleted is None and of_vertices and not {*bound.variables} & {*left.variables}:
            bound.residual = apart_of(self._snapshot, self._text, left.variables, bound)
        return self._narrowed(left, bound)

    def _narrowed(self, left: Relation, bound: BoundPattern) -> BoundPattern:
        """Have a pattern that starts from rows compare its properties with columns of their types."""
        compiler = self._projecting(replace(left, where=()))
        narrowing = Narrowing(
            self._snapshot,
            self._text,
            left.variables,
            lambda node: compiler.native(node)[0],
            lambda label: greatest(self._snapshot, label),
        )
        bound.residual = narrowing.conditions(bound.residual, bound)
        return bound

    def _is_plain(self, match: ast.MatchClause) -> bool:
        """Whether the matches of a clause are those of a plan."""
        return is_plain(match) and not in_parts(match, self._snapshot)

    def _without_computed(self, match: ast.MatchClause, later: list[ast.Expression]) -> ast.MatchClause:
        """Return a MATCH without the conditions that Python computes something for, which are added to ``later``."""

        def waits(condition: ast.Expression | None) -> bool:
            return condition is not None and any(part in self._beforehand for part in walk(condition))

        waiting: list[ast.Expression] = []

        def without(node: object) -> object:
            if not isinstance(node, ast.NodePattern | ast.EdgePattern) or not waits(node.where):
                return None
            assert node.where is not None
            waiting.append(node.where)
            return replace(node, where=None)

        conditions = tuple(conjuncts(match.where))
        for each in conditions:
            if waits(each) or (waiting and may_fail(each)):  # of what fulfils those before it
                waiting.append(each)
        patterns = rewritten(match.patterns, without) if self._is_plain(match) else match.patterns
        if not waiting:
            return match
        later += waiting
        return replace(
            match, patterns=patterns, where=all_hold([c for c in conditions if c not in waiting], match.span)
        )

    # --- matches

    def _add_match(
        self, words: str, view: str, bound: BoundPattern, needs: Wanted, given: Iterable[Given] = ()
    ) -> None:
        """Add the step of a match, after those of the patterns that must match around its vertices."""
        given = (*given, *self._semijoins(bound))
        self._steps.append(Step(words, view, bound, needs, self._pattern_of(bound, needs), given=given))

    def _semijoins(self, bound: BoundPattern) -> Iterator[Given]:
        """Yield the vertices around which other patterns match; abstract: see
        :mod:`graphdb.relational.lowering.semijoins`.
        """
        raise NotImplementedError

    def _joined(self, left: Relation, bound: BoundPattern, live: Collection[str]) -> Relation:
        """Join rows, which keep their numbers, with the bindings of a pattern that starts from them."""
        return self._joined_anew(left, bound, live, "join", renumbers=False)[1]

    def _joined_anew(
        self,
        left: Relation,
        bound: BoundPattern,
        live: Collection[str],
        how: str,
        duplicates: Duplicates = "keep",
        then: Sequence[ast.ClauseNode] = (),
        *,
        renumbers: bool = True,
    ) -> tuple[Relation, Relation]:
        """Join rows with the bindings of a pattern that starts from them; return the rows, and what is joined.

        ``duplicates`` says what is needed of equal bindings, and ``then`` which clauses follow; where it
        ``renumbers``, the rows may have other numbers by then.
        """
        view = self._bindings_view()
        pattern = bindings_of(bound, self._snapshot.edges, view)
        shared = [name for name in bound.variables if name in left.variables]
        used = {*shared, *live, *free_variables(pattern.where)}
        beside = read_beside(bound, then).difference(shared)
        needs = needs_of(bound, used - beside, beside)
        if not (needs.edges or needs.facts):
            needs = replace(needs, duplicates=duplicates)
        names = [name for name in available(bound, needs) if name in used]
        pattern = replace(only(pattern, names, beside), where=pattern.where)
        counted = [MATCHES] if needs.duplicates == "count" else []
        numbered = dict.fromkeys(counted, column("n", INTEGER))
        first = [*needed_first(then), *gathered_in(pattern.where)]
        joins = how == "join" and bool(shared)
        first = [each for each in first if is_of(each, left, joins)]
        known = self._beside[view].known(first, pattern.variables, self._text)
        rows = replace(pattern, where=(), variables={**pattern.variables, **numbered}, known={**pattern.known, **known})
        given = (*self._given(left, bound, shared), *self._given_values(left, bound))
        self._add_match(how, view, bound, needs, given)
        pairs = None if shared or how != "join" else next(self._pairs(left, bound), None)
        if how == "join" and not shared and pairs is None:
            of_rows, of_bindings = computed_of_sides(left.variables, bound)
            of_rows |= compared_fields(left.variables, bound)
            rows = self._as_columns(rows, of_bindings, left.source)
            left = self._as_columns(left, of_rows, rows.source) if renumbers else left
        sql, found = self._projecting(rows).select([*names, *counted])
        on = [f"{found.variables[n].of('r')} = {left.variables[n].of('l')}" for n in shared]
        new = [name for name in names if name not in left.variables] + counted
        chosen = "".join(f", {found.variables[name].of('r')} AS m{i}" for i, name in enumerate(new))
        chosen += "".join(f", {value.of('r')} AS f{i}" for i, value in enumerate(found.known.values()))
        facts = {node: value.at(f"f{i}") for i, (node, value) in enumerate(found.known.items())}
        facts = {node: value for node, value in facts.items() if is_of(node, left, joins and node in known)}
        join = "LEFT JOIN" if how == "outer join" else "JOIN"
        start = f"{left.source} l"
        where = pattern.where
        if pairs is not None:
            condition, vertex, sharing = pairs
            where = tuple(other for other in where if other != condition)
            start += f" JOIN ({sharing}) m ON m.row = l.rowid"
            on = [f"{found.variables[vertex].of('r')} = m.id"]
        joined = f"(SELECT l.*, l.rowid AS row{chosen} FROM {start} {join} ({sql}) r ON {all_of(on)})"
        source = Source.made(joined, left.source, found.source)
        made = {name: found.variables[name].at(f"m{i}") for i, name in enumerate(new)}
        further: dict[str | ast.Expression, SqlValue] = {name: rows.variables[name] for name in new}
        further |= {node: rows.known[node] for node in facts}
        pairs_of = tuple((left.variables[name].column, rows.variables[name].column) for name in shared)
        left_over, same = equal_integers(where, left, rows) if how == "join" else (where, ())
        pairs_of = (*pairs_of, *same)
        arrays = None
        if pairs is None and rows.source.view is not None:
            arrays = self._by_arrays(left, rows.source.view, pairs_of, further, how == "outer join")
        if arrays is not None:
            (source, columns), where = arrays, left_over
            made = {name: rows.variables[name].at(columns[name]) for name in new}
            facts = {node: rows.known[node].at(columns[node]) for node in facts}
        number = made.pop(MATCHES, None)
        matches = None if number is None else f"coalesce({number.sql}, 1)" if how == "outer join" else number.sql
        numbers = None if number is None else number.column
        return left, Relation(source, {**left.variables, **made}, where, {**left.known, **facts}, matches, numbers)

    def _by_arrays(
        self,
        left: Relation,
        view: str,
        on: tuple[tuple[str | None, str | None], ...],
        further: Mapping[str | ast.Expression, SqlValue],
        outer: bool,
    ) -> tuple[Source, Mapping[str | ast.Expression, str]] | None:
        """Join rows with a view of bindings by arrays; return the rows, and the columns that ``further`` ones became.

        None where SQL has to: some of what is to be equal, or goes with the rows, is no column.
        """
        same = tuple((mine, theirs) for mine, theirs in on if mine is not None and theirs is not None)
        taken = {key: value.column for key, value in further.items()}
        retained = self._columns_of(left)
        if retained is None or len(same) < len(on) or None in taken.values() or not (same or taken):
            return None
        name = self._name("joined")
        columns = {key: f"j{self._named}_{i}" for i, key in enumerate(taken)}
        added = tuple((columns[key], column) for key, column in taken.items() if column is not None)
        chosen = [*(f"l.{column}" for column in retained), *(f"r.{it} AS {at}" for at, it in added)]
        equal = all_of([f"r.{theirs} = l.{mine}" for mine, theirs in same])
        joins = f" {'LEFT ' if outer else ''}JOIN {view} r ON {equal}"
        how = Matched(view, same, retained, added, outer)
        return self._add_joined(name, left.source, how, ", ".join(chosen), joins, (view,)), columns

    def _add_joined(
        self,
        name: str,
        rows: Source,
        how: Matched | tuple[Counted, ...],
        chosen: str,
        joins: str,
        views: Collection[str],
    ) -> Source:
        """Add the step of a join by arrays; return its rows."""
        assert rows.view is not None
        reads = rows.reads | {*views}
        self._beside[name] = BesideBindings(self._snapshot, f"p{self._named}_")
        self._steps.append(Joined(name, rows.view, how, chosen, joins, reads))
        # What it reads stays as long as it does: it may be a view of SQL.
        return Source(f"temp.{name}", reads | {name}, name, table=not isinstance(how, Matched))

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

    def _given(self, left: Relation, bound: BoundPattern, shared: Iterable[str]) -> Iterator[Given]:
        """Yield what the rows say of the vertices that a pattern shares with them, and of the ends of its edges."""
        for name in shared:
            value = left.variables[name]
            if value.type.base not in ((Base.NODE, Base.TERM) if name in bound.vertex_of else (Base.EDGE,)):
                raise NotSupportedError(f"a pattern that goes on from {value.type} is not supported in SQL")
            ends = [value.part(f'"{end}"', NODE) for end in ("start", "end")]
            columns: dict[int, list[SqlValue]] = {}
            if name in bound.vertex_of:
                columns = {bound.vertex_of[name]: [value]}
            else:
                edge = bound.edges[bound.edge_of[name]]
                columns = {edge.source: ends[: 1 if edge.directed else 2]}
                columns |= {edge.target: ends[1 if edge.directed else 0 :]}
            yield from (self._given_by(left, vertex, found) for vertex, found in columns.items())

    def _given_by(self, left: Relation, vertex: int, values: Sequence[SqlValue]) -> Given:
        """Return what columns of the rows say of a vertex: it is in one of them."""
        selects = [f"SELECT {v.sql} AS id FROM {left.source} b WHERE {v.sql} IS NOT NULL" for v in values]
        view, alone = left.source.view, values[0].column if len(values) == 1 else None
        has_arrays = self._has_arrays(left.source)
        as_they_are = (view, alone) if has_arrays and view is not None and alone is not None else None
        return Given(vertex, " UNION ".join(selects), {}, left.source.reads, as_they_are)

    def _given_values(self, left: Relation, bound: BoundPattern) -> Iterator[Given]:
        """Yield what the rows say of vertices that must be, or whose property must be, something of theirs."""
        for _, subject, asked in asks(left.variables, bound):
            vertex = _vertex_of(bound, subject)
            found = None if vertex is None else having(left, self._projecting(left), self._snapshot, self._text, asked)
            if vertex is not None and found is not None:
                used = self._parameters.used(found.sql)
                yield Given(vertex, found.sql, used, left.source.reads, found.column, found.key)

    def _pairs(self, left: Relation, bound: BoundPattern) -> Iterator[tuple[ast.Expression, str, str]]:
        """Yield conditions that a value of a vertex is one of the row's; the vertex, and SQL of the pairs that fit.

        Only where there are several values: over lists DuckDB would test it on every row with every binding.
        """
        for condition, subject, asked in asks(left.variables, bound):
            several = asked.listed or isinstance(asked.expression, ast.Property | ast.Variable)
            if _vertex_of(bound, subject) is not None and several:
                sql = sharing(left, self._projecting(left), self._snapshot, self._text, asked)
                if sql is not None:
                    yield condition, subject, sql

    # --- rows

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
        table = self._materialized(sql, found.source, made=found.source.rows)
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


def in_parts(match: ast.MatchClause, snapshot: Snapshot) -> bool:
    """Whether no one plan matches a clause: its connected parts are, and what they must not share is tested later."""
    return leaves_out(match, snapshot) or size_of(match) > MOST


def leaves_out(match: ast.MatchClause, snapshot: Snapshot) -> bool:
    """Whether only the edges of a whole match say that it is INDUCED: some are parallel, and may be in the data."""
    if match.mode is not ast.MatchMode.INDUCED or not snapshot.edges.parallel:
        return False
    joined = [
        (edge.repeat, frozenset(node.variable for node in ends))
        for path in match.patterns
        for edge, ends in zip(path.edges, pairwise(path.nodes), strict=True)
    ]
    if len({pair for _, pair in joined}) < len(joined):
        return True
    return any(repeat is not None and len(pair) == 1 for repeat, pair in joined)  # there and back


def _vertex_of(bound: BoundPattern, name: str) -> int | None:
    return next((i for i, info in enumerate(bound.vertices) if info.name == name), None)


def all_of(conditions: Sequence[str]) -> str:
    """Return SQL that all of some conditions hold."""
    return " AND ".join(conditions) or "TRUE"
