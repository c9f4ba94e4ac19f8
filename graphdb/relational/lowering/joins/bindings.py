"""How the bindings of a pattern that starts from the rows of a query are joined with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import INTEGER, NODE, Base
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import MOST, BoundPattern, bind, conjuncts, size_of
from graphdb.pattern.free import free_variables
from graphdb.pattern.graph import Duplicates, Wanted
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.paths.unroll import is_plain
from graphdb.pattern.rename import rewritten
from graphdb.relational.edges.parallel_edges import resolve_edges
from graphdb.relational.lowering.joins.conditions import apart_of, asks, compared_fields, computed_of_sides, greatest
from graphdb.relational.lowering.joins.guards import guarded, may_fail
from graphdb.relational.lowering.joins.narrowing import Narrowing
from graphdb.relational.lowering.joins.rows import RowTables
from graphdb.relational.lowering.needs import available, is_of, needs_of, only, read_beside
from graphdb.relational.program import Counted, Given, Joined, Matched, Step
from graphdb.relational.projection.late import BesideBindings, gathered_in, needed_first
from graphdb.relational.projection.lookups import equal_integers, having, sharing
from graphdb.relational.projection.relation import MATCHES, Relation, Source, bindings_of
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.value import SqlValue, column


class Joins(RowTables):
    """Joins the rows of a query with the bindings of patterns that start from them."""

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

    def _joined(
        self, left: Relation, bound: BoundPattern, live: Collection[str], then: Sequence[ast.ClauseNode] = ()
    ) -> Relation:
        """Join rows, which keep their numbers, with the bindings of a pattern that starts from them."""
        return self._joined_anew(left, bound, live, "join", then=then, renumbers=False)[1]

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
