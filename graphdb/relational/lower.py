"""Clauses to relations: a query of any reading clauses becomes matches, and SQL that joins and shapes their bindings.

Every clause makes a relation out of the one before.  WITH, RETURN and UNWIND are one more SELECT around it.  A MATCH
keeps the rows as a table, which say what the vertices are that the pattern shares with them, and joins its bindings:
OPTIONAL MATCH outer, EXISTS, COUNT and patterns as conditions by the number of matches.  What SQL cannot type, or does
not know in full, raises: the query is interpreted then, as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphdb.candidates import Snapshot
from graphdb.constants import long_column
from graphdb.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.lists import common
from graphdb.pattern.bind import BoundPattern, bind, conjuncts
from graphdb.pattern.free import Subquery, free_variables, subqueries_in
from graphdb.pattern.graph import PatternGraph
from graphdb.pattern.unroll import Version, is_plain, plain_versions
from graphdb.relation import ORDER, ROW, VALUE, Relation, bindings_of
from graphdb.relational.program import Given, Program, Rows, Step
from graphdb.rows import Parameters
from graphdb.shape import Shaped, Shaper, Wanted, is_aggregate, wanted, window_of
from graphdb.typed import Typed
from graphdb.values import BOOLEAN, INTEGER, Base, Column, Type, list_of, sql_type

if TYPE_CHECKING:
    import pyarrow as pa

PatternOf = Callable[[BoundPattern, Wanted], PatternGraph]

_UNIT = Relation("(SELECT 1 AS one)")
"""The one row without names that a query starts from."""

_READING = (ast.MatchClause, ast.UnwindClause, ast.WithClause, ast.ReturnClause)


class Lowering:
    """Lowers one query.

    Parameters
    ----------
    pattern_of
        Returns the pattern graph of a bound pattern, given what is wanted of it; raises where a plan cannot match it.
    """

    def __init__(self, snapshot: Snapshot, text: str, arguments: Mapping[str, object], pattern_of: PatternOf) -> None:
        self._snapshot = snapshot
        self._text = text
        self._arguments = arguments
        self._pattern_of = pattern_of
        self._parameters = Parameters()
        self._steps: list[Step] = []
        self._lists: dict[str, pa.Table] = {}
        self._rows: Rows | None = None
        self._named = 0
        self._names: set[str] = set()
        """All names in the part under way, but for those that WITH brings in."""

    def query(self, query: ast.Composite) -> Program:
        """Lower a query.

        Raises
        ------
        NotSupportedError
            SQL cannot do all of it.
        GraphDBError
            Something is wrong with it.
        """
        _check_reading(query)
        once = len(query.parts) > 1 and not query.keeps_all
        parts = [self._part(_distinct(part) if once else part) for part in query.parts]
        shaped = parts[0] if len(parts) == 1 else self._union(parts, query.keeps_all)
        return Program(tuple(self._steps), replace(shaped, direct=None), self._lists)

    # --- clauses

    def _part(self, clauses: Sequence[ast.ClauseNode]) -> Shaped:
        relation, rest = _UNIT, list(clauses)
        self._names = free_variables(tuple(clauses))
        while True:
            clause = rest[0]
            if isinstance(clause, ast.ReturnClause):
                return self._project(relation, clause)
            if isinstance(clause, ast.MatchClause):
                matches = [clause] if clause.optional else _leading(rest)
                rest = rest[len(matches) :]
                fresh = relation is _UNIT and not clause.optional
                relation = self._first(matches, rest) if fresh else self._match(relation, matches, rest)
                continue
            rest = rest[1:]
            if isinstance(clause, ast.UnwindClause):
                keep = self._live(relation, rest)
                column = self._column(clause.source)
                if column is not None:
                    relation = self._crossed(relation, clause.variable.name, column, keep)
                    continue
                relation = self._with_subqueries(relation, (clause.source,), keep | free_variables(clause.source))
                names = [name for name in relation.variables if name in {*keep, ORDER}]
                _, relation = self._shaper(relation).select(names, unwound=clause)
            else:
                assert isinstance(clause, ast.WithClause)
                relation = self._with(relation, clause)

    def _with(self, relation: Relation, clause: ast.WithClause) -> Relation:
        if not _looks_back(clause, self._items(clause.returns, relation), relation.variables):
            return self._after(self._project(relation, clause.returns), clause)
        # A condition sees what was there before, too: then it is tested there.
        where = tuple(conjuncts(clause.where))
        if clause.returns.skip is not None or clause.returns.limit is not None or any(subqueries_in(where)):
            raise NotSupportedError("this condition on what was before WITH is not supported in SQL")
        return self._after(self._project(relation, clause.returns, where), replace(clause, where=None))

    def _after(self, shaped: Shaped, clause: ast.WithClause) -> Relation:
        """Return the rows of a WITH; where it orders them, with their numbers."""
        found = {column.name: Typed(f"b.c{i}", column.type, column.many) for i, column in enumerate(shaped.columns)}
        source = f"({shaped.sql})"
        if shaped.ordered:
            source = f"(SELECT q.*, row_number() OVER () AS at FROM {source} q)"
            found[ORDER] = Typed("b.at", INTEGER)
        return Relation(source, found, tuple(conjuncts(clause.where)))

    def _project(self, relation: Relation, returns: ast.ReturnClause, also: Sequence[ast.Expression] = ()) -> Shaped:
        items = self._items(returns, relation)
        expressions = (*[item.expression for item in items], *returns.order_by)
        relation = self._with_subqueries(relation, expressions, free_variables((*expressions, *also)))
        window = window_of(returns, self._arguments, self._text)
        return self._shaper(relation).shape(returns, items, window, also=also)

    def _items(self, returns: ast.ReturnClause, relation: Relation) -> tuple[ast.ReturnItem, ...]:
        items = returns.items
        if returns.star:
            names = sorted(relation.names)
            items = tuple(ast.ReturnItem(ast.Variable(n), n, n, returns.span) for n in names) + items
        if not items:
            raise NotSupportedError("rows without columns are not supported in SQL")
        return items

    def _union(self, parts: Sequence[Shaped], keeps_all: bool) -> Shaped:
        """Put the rows of several parts together."""
        columns: list[Column] = []
        chosen: list[list[str]] = [[] for _ in parts]
        for i, same in enumerate(zip(*[part.columns for part in parts], strict=True)):
            many = same[0].many
            if any(column.many is not many for column in same):
                raise NotSupportedError("properties with several values beside single ones are not supported in SQL")
            values, type = common([Typed(f"u.c{i}", column.type) for column in same])
            for mine, value in zip(chosen, values, strict=True):
                mine.append(f"{value} AS c{i}")
            columns.append(replace(same[0], type=type))
        pairs = zip(chosen, parts, strict=True)
        selects = [f"(SELECT {', '.join(mine)} FROM ({part.sql}) u)" for mine, part in pairs]
        sql = (" UNION ALL " if keeps_all else " UNION ").join(selects)
        return Shaped(sql, self._parameters.used(sql), tuple(columns))

    def _column(self, source: ast.Expression) -> tuple[pa.Array, Type] | None:
        """Return a parameter that is a long list of plain values as a column."""
        if not isinstance(source, ast.Parameter):
            return None
        return long_column(self._arguments.get(source.name))

    def _crossed(self, relation: Relation, name: str, column: tuple[pa.Array, Type], keep: Collection[str]) -> Relation:
        """Return a row for each item of a column, which SQL reads as a view."""
        import pyarrow as pa

        array, type = column
        view = self._name("list")
        self._lists[view] = pa.table({"item": array})
        relation = self._with_subqueries(relation, (), keep)
        _, rows = self._shaper(relation).select([n for n in relation.variables if n in {*keep, ORDER}])
        source = f"(SELECT b.*, u.item AS item FROM {rows.source} b CROSS JOIN {view} u)"
        return replace(rows, source=source, variables={**rows.variables, name: Typed("b.item", type)})

    # --- matches

    def _bound(self, matches: Sequence[ast.MatchClause], relation: Relation) -> BoundPattern:
        bound = bind(tuple(matches), self._snapshot.names, self._text, relation.names)
        refuse_described(self._snapshot, bound)
        return bound

    def _first(self, matches: Sequence[ast.MatchClause], rest: Sequence[ast.ClauseNode]) -> Relation:
        """Lower a MATCH that starts from nothing; what is returned at once may need less than all its bindings."""
        if not all(map(is_plain, matches)):
            return self._first_unrolled(matches, self._live(_UNIT, rest))
        bound, view = self._bound(matches, _UNIT), self._name("bindings")
        relation = bindings_of(bound, view)
        needs = self._needs_of(bound, relation, rest[0])
        if needs is None:
            needs = _needs(bound, self._live(relation, rest) | free_variables(relation.where))
        self._steps.append(Step("match", view, bound, needs, self._pattern_of(bound, needs)))
        return replace(
            relation,
            variables={name: relation.variables[name] for name in _available(bound, needs)},
            matches="b.n" if needs.duplicates == "count" else None,
        )

    def _needs_of(self, bound: BoundPattern, relation: Relation, clause: ast.ClauseNode) -> Wanted | None:
        """What a clause needs of the bindings; None if all that is named from there on."""
        if not isinstance(clause, (ast.WithClause, ast.ReturnClause)):
            return None
        returns = clause.returns if isinstance(clause, ast.WithClause) else clause
        items = self._items(returns, relation)
        if any(subqueries_in((returns, relation.where))) or _looks_back(clause, items, relation.variables):
            return None
        needs = wanted(returns, items, bound, window_of(returns, self._arguments, self._text))
        return Wanted((), (), False, None, "count") if needs.count_only else needs

    def _match(
        self, relation: Relation, matches: Sequence[ast.MatchClause], rest: Sequence[ast.ClauseNode]
    ) -> Relation:
        """Lower a MATCH or OPTIONAL MATCH that starts from rows."""
        live = self._live(relation, rest)
        relation = self._with_subqueries(relation, (), live | free_variables(tuple(matches)))
        left = self._table(relation, live | free_variables(tuple(matches)))
        how = "LEFT JOIN" if matches[0].optional else "JOIN"
        if not all(map(is_plain, matches)):
            versions = plain_versions(matches, live, left.variables)
            joined = [
                _aliased(self._joined(left, self._bound(v.matches, left), live | {*v.same.values()}, "join"), v)
                for v in versions
            ]
            return self._by_row(left, joined, live, how)
        bound = self._bound(matches, left)
        if how == "JOIN" or not bound.residual:
            return self._joined(left, bound, live, "join" if how == "JOIN" else "outer join")
        return self._by_row(left, [self._joined(left, bound, live, "join")], live, how)

    def _by_row(self, left: Relation, joined: Sequence[Relation], live: Collection[str], how: str) -> Relation:
        """Join rows once more with what they were joined with, where that fulfils its conditions."""
        numbered = [replace(one, variables={**one.variables, ROW: _ROW}) for one in joined]
        new = [name for name in joined[0].names if name not in left.variables and name in live]
        sql, found = self._together(numbered, [ROW, *new], live)
        chosen = "".join(f", m.c{i + 1} AS m{i}" for i in range(len(new)))
        source = f"(SELECT l.*{chosen} FROM {left.source} l {how} ({sql}) m ON m.c0 = l.rowid)"
        made = {name: replace(found[name], sql=f"b.m{i}") for i, name in enumerate(new)}
        return replace(left, source=source, variables={**left.variables, **made})

    def _together(
        self, relations: Sequence[Relation], names: Sequence[str], live: Collection[str]
    ) -> tuple[str, Mapping[str, Typed]]:
        """Return SQL of some columns of several relations' rows that fulfil their conditions, and what they are."""
        selects = []
        for relation in relations:
            if any(name not in relation.variables for name in names):
                raise NotSupportedError("such paths beside such clauses are not supported in SQL")
            sql, found = self._shaper(self._filtered(relation, {*names, *live})).select(names)
            selects.append((sql, {name: found.variables[name] for name in names}))
        if any(variables != selects[0][1] for _, variables in selects):
            raise NotSupportedError("paths that end at vertices or at literals are not supported in SQL")
        return " UNION ALL ".join(sql for sql, _ in selects), selects[0][1]

    def _first_unrolled(self, matches: Sequence[ast.MatchClause], live: Collection[str]) -> Relation:
        """Lower a MATCH with paths that starts from nothing."""
        relations = []
        for version in plain_versions(matches, live, ()):
            bound, view = self._bound(version.matches, _UNIT), self._name("bindings")
            relation = bindings_of(bound, view)
            needs = _needs(bound, {*live, *version.same.values(), *free_variables(relation.where)})
            self._steps.append(Step("match", view, bound, needs, self._pattern_of(bound, needs)))
            variables = {name: relation.variables[name] for name in _available(bound, needs)}
            relations.append(_aliased(replace(relation, variables=variables), version))
        names = [name for name in relations[0].names if name in live]
        sql, found = self._together(relations, names, live)
        return Relation(f"({sql})", found)

    def _joined(self, left: Relation, bound: BoundPattern, live: Collection[str], how: str) -> Relation:
        """Join rows with the bindings of a pattern that starts from them."""
        view = self._name("bindings")
        pattern = bindings_of(bound, view)
        shared = [name for name in bound.variables if name in left.variables]
        used = {*shared, *live, *free_variables(pattern.where)}
        needs = _needs(bound, used)
        names = [name for name in _available(bound, needs) if name in used]
        sql, found = self._shaper(replace(pattern, where=())).select(names)
        on = [f"r.{found.variables[n].sql[2:]} = l.{left.variables[n].sql[2:]}" for n in shared]
        new = [name for name in names if name not in left.variables]
        chosen = "".join(f", r.{found.variables[name].sql[2:]} AS m{i}" for i, name in enumerate(new))
        join = "LEFT JOIN" if how == "outer join" else "JOIN"
        source = f"(SELECT l.*, l.rowid AS row{chosen} FROM {left.source} l {join} ({sql}) r ON {_all(on)})"
        made = {name: replace(found.variables[name], sql=f"b.m{i}") for i, name in enumerate(new)}
        given = (*self._given(left, bound, shared), *self._given_values(left, bound))
        self._start(Step(how, view, bound, needs, self._pattern_of(bound, needs), given=given))
        return Relation(source, {**left.variables, **made}, pattern.where, left.known)

    def _given(self, left: Relation, bound: BoundPattern, shared: Iterable[str]) -> Iterator[Given]:
        """Yield what the rows say of the vertices that a pattern shares with them, and of the ends of its edges."""
        for name in shared:
            value = left.variables[name]
            if value.type.base is not (Base.NODE if name in bound.vertex_of else Base.EDGE):
                raise NotSupportedError(f"a pattern that goes on from {value.type} is not supported in SQL")
            ends = [f'({value.sql})."{end}"' for end in ("start", "end")]
            columns: dict[int, list[str]] = {}
            if name in bound.vertex_of:
                columns = {bound.vertex_of[name]: [value.sql]}
            else:
                edge = bound.edges[bound.edge_of[name]]
                columns = {edge.source: ends[: 1 if edge.directed else 2]}
                columns |= {edge.target: ends[1 if edge.directed else 0 :]}
            for vertex, found in columns.items():
                selects = [f"SELECT {sql} AS id FROM {left.source} b WHERE {sql} IS NOT NULL" for sql in found]
                yield Given(vertex, " UNION ".join(selects), {})

    def _given_values(self, left: Relation, bound: BoundPattern) -> Iterator[Given]:
        """Yield what the rows say of vertices whose property must be equal to something of theirs."""
        for condition in bound.residual:
            if not isinstance(condition, ast.Comparison) or condition.operators != ("=",):
                continue
            for one, other in (condition.operands, condition.operands[::-1]):
                subject = one.base if isinstance(one, ast.Property) else None
                if not isinstance(subject, ast.Variable) or subject.name in left.variables:
                    continue
                vertex = _vertex_of(bound, subject.name)
                if vertex is None or not free_variables(other) <= left.variables.keys():
                    continue
                assert isinstance(one, ast.Property)
                sql = self._shaper(left).having(one.key, other)
                if sql is not None:
                    yield Given(vertex, sql, self._parameters.used(sql))

    # --- subqueries

    def _with_subqueries(self, relation: Relation, expressions: Iterable[object], keep: Collection[str]) -> Relation:
        """Return the rows with a column for each subquery of some expressions, and of their own conditions."""
        keep = {*keep, *free_variables(relation.where)}
        for node in dict.fromkeys(subqueries_in((*expressions, *relation.where))):
            if node not in relation.known:
                relation = self._with_subquery(relation, node, keep)
        return relation

    def _filtered(self, relation: Relation, keep: Collection[str]) -> Relation:
        """Return the rows with all that their conditions need."""
        return self._with_subqueries(relation, (), keep)

    def _with_subquery(self, relation: Relation, node: Subquery, keep: Collection[str]) -> Relation:
        matches, value = _matches_of(node)
        left = self._table(relation, {*keep, *free_variables(node)})
        bound = self._bound(matches, left)
        shared = [name for name in bound.variables if name in left.variables]
        if value is None and not bound.residual and all(name in bound.vertex_of for name in shared):
            number, join = self._counted(left, bound, shared, _exists(node))
        else:
            number, join = self._gathered(left, bound, value)
        source = f"(SELECT l.*, {number.sql} AS s FROM {left.source} l LEFT JOIN {join})"
        found = Typed("b.s", number.type)
        if _exists(node):
            found = Typed("(b.s > 0)", BOOLEAN)
        return replace(left, source=source, known={**left.known, node: found})

    def _counted(self, left: Relation, bound: BoundPattern, shared: Sequence[str], exists: bool) -> tuple[Typed, str]:
        """The number of a pattern's matches around the vertices it shares, of which only the numbers are wanted."""
        view = self._name("bindings")
        vertices = [bound.vertex_of[name] for name in shared]
        needs = Wanted(tuple(sorted(vertices)), (), False, None, "drop" if exists else "count")
        given = tuple(self._given(left, bound, shared))
        self._start(Step("group join", view, bound, needs, self._pattern_of(bound, needs), given=given))
        ids = [f"b.v{vertex}" for vertex in vertices]
        number = "1" if exists and ids else "CAST(coalesce(sum(b.n), 0) AS BIGINT)"
        group = f" GROUP BY {', '.join(ids)}" if ids else ""
        sql = f"SELECT {''.join(f'{sql}, ' for sql in ids)}{number} AS n FROM {view} b{group}"
        on = [f"r.v{bound.vertex_of[name]} = l.{left.variables[name].sql[2:]}" for name in shared]
        return Typed("coalesce(r.n, 0)", INTEGER), f"({sql}) r ON {_all(on)}"

    def _gathered(self, left: Relation, bound: BoundPattern, value: ast.Expression | None) -> tuple[Typed, str]:
        """The number of a pattern's matches for each row, or the list of what they yield."""
        keep = set() if value is None else free_variables(value)
        joined = self._joined(left, bound, keep, "join")
        joined = self._filtered(replace(joined, variables={**joined.variables, ROW: _ROW}), keep | {ROW})
        sql, found = self._shaper(joined).select([ROW], value)
        if value is None:
            return Typed("coalesce(r.n, 0)", INTEGER), f"({_PER_ROW.format('count(*)', sql)}) r ON r.at = l.rowid"
        type = list_of(found.variables[VALUE].type)
        per_row = _PER_ROW.format("list(f.c1)", sql)
        return Typed(f"coalesce(r.n, CAST([] AS {sql_type(type)}))", type), f"({per_row}) r ON r.at = l.rowid"

    # --- rows

    def _table(self, relation: Relation, keep: Collection[str]) -> Relation:
        """Return the rows that fulfil the conditions as a table; what waits for a subquery stays to be tested."""
        waiting = tuple(c for c in relation.where if any(s not in relation.known for s in subqueries_in(c)))
        ready = tuple(c for c in relation.where if c not in waiting)
        kept = {*keep, *free_variables(waiting), ORDER, ROW}
        names = [name for name in relation.variables if name in kept]
        if any(name.startswith("#") and name not in (ORDER, ROW) for name in names):
            raise NotSupportedError("a subquery among the properties of a pattern is not supported in SQL")
        sql, found = self._shaper(replace(relation, where=ready)).select(names)
        table = self._name("rows")
        self._rows = Rows(table, sql, self._parameters.used(sql))
        return replace(found, source=f"temp.{table}", where=waiting)

    def _start(self, step: Step) -> None:
        """Add a match that starts from the rows that were made a table last."""
        self._steps.append(replace(step, rows=self._rows))

    def _shaper(self, relation: Relation) -> Shaper:
        return Shaper(self._snapshot, self._text, self._arguments, relation, parameters=self._parameters)

    def _name(self, what: str) -> str:
        self._named += 1
        return f"_{what}{self._named}"

    def _live(self, relation: Relation, rest: Sequence[ast.ClauseNode]) -> set[str]:
        """Return the names that later clauses may use: those of the relation, and those that come."""
        live = free_variables(tuple(rest))
        if any(isinstance(part, ast.ReturnClause) and part.star for part in walk(tuple(rest))):
            return self._names | set(relation.names)
        return live


_ROW = Typed("b.row", INTEGER)
_PER_ROW = "SELECT f.c0 AS at, {0} AS n FROM ({1}) f GROUP BY f.c0"


def refuse_described(snapshot: Snapshot, bound: BoundPattern) -> None:
    """Leave edges that their triples do not tell apart, or not in full, to the interpreter."""
    described, parallel = snapshot.described, snapshot.parallel
    if not described:
        return
    named = set(bound.edge_of.values())
    for number, edge in enumerate(bound.edges):
        asked = described if number in named else parallel
        if asked if edge.labels is None else asked.intersection(edge.labels):
            raise NotSupportedError("parallel edges and properties of edges are not supported in SQL")


def _check_reading(query: ast.Composite) -> None:
    """Refuse clauses and paths that are not for SQL."""
    for part in query.parts:
        for clause in part:
            if not isinstance(clause, _READING):
                raise NotSupportedError("writing is not for SQL")
    matches = [clause for part in query.parts for clause in part if isinstance(clause, ast.MatchClause)]
    own = {id(path) for match in matches for path in match.patterns}
    for node in walk(query.parts):
        if isinstance(node, ast.PathPattern) and not node.plain and id(node) not in own:
            raise NotSupportedError("paths in such places are not supported in SQL")


def _distinct(part: tuple[ast.ClauseNode, ...]) -> tuple[ast.ClauseNode, ...]:
    """Return a part of a UNION so that equal rows may come once, where that is all that DISTINCT does to it."""
    *clauses, returns = part
    if not isinstance(returns, ast.ReturnClause) or returns.order_by or returns.skip or returns.limit:
        return part
    if any(is_aggregate(item.expression) for item in returns.items):
        return part
    return (*clauses, replace(returns, distinct=True))


def _leading(clauses: Sequence[ast.ClauseNode]) -> list[ast.MatchClause]:
    """Return the MATCH clauses at the head of others: together they are one pattern."""
    found: list[ast.MatchClause] = []
    for clause in clauses:
        if not isinstance(clause, ast.MatchClause) or clause.optional:
            break
        found.append(clause)
    return found


def _looks_back(clause: ast.ClauseNode, items: Iterable[ast.ReturnItem], before: Collection[str]) -> bool:
    """Whether the condition of a WITH names what was there before it, and is no more."""
    if not isinstance(clause, ast.WithClause):
        return False
    return bool((free_variables(clause.where) - {item.alias or item.text for item in items}) & set(before))


def _aliased(relation: Relation, version: Version) -> Relation:
    """Return a relation with the names of vertices that are another one in a version."""
    known = relation.variables
    return replace(relation, variables={**known, **{n: known[o] for n, o in version.same.items() if o in known}})


def _needs(bound: BoundPattern, names: Collection[str]) -> Wanted:
    """Return what is wanted of a match so that some names have columns."""
    edges = [number for name, number in bound.edge_of.items() if name in names]
    vertices = {i for i, info in enumerate(bound.vertices) if info.name in names}
    vertices |= {end for edge in edges for end in (bound.edges[edge].source, bound.edges[edge].target)}
    return Wanted(tuple(sorted(vertices)), tuple(sorted(edges)), False, None)


def _available(bound: BoundPattern, needs: Wanted) -> list[str]:
    """Return the names that have columns."""
    vertices = [bound.vertices[vertex].name for vertex in needs.vertices]
    return vertices + [name for name, number in bound.edge_of.items() if number in needs.edges]


def _vertex_of(bound: BoundPattern, name: str) -> int | None:
    return next((i for i, info in enumerate(bound.vertices) if info.name == name), None)


def _exists(node: Subquery) -> bool:
    return isinstance(node, ast.PatternPredicate) or (isinstance(node, ast.Subquery) and node.kind == "exists")


def _matches_of(node: Subquery) -> tuple[list[ast.MatchClause], ast.Expression | None]:
    """Return the MATCH clauses of a subquery, and what is gathered of each match: None where only their number is."""
    match node:
        case ast.PatternPredicate():
            return [ast.MatchClause((node.pattern,), span=node.span)], None
        case ast.PatternComprehension():
            return [ast.MatchClause((node.pattern,), where=node.where, span=node.span)], node.result
        case ast.ShortestPath():
            raise NotSupportedError("shortest paths are not supported in SQL")
    query = node.query
    if isinstance(query, ast.Composite) and len(query.parts) > 1:
        raise NotSupportedError("UNION in a subquery is not supported in SQL")
    clauses = query.parts[0] if isinstance(query, ast.Composite) else query.clauses
    matches = _leading(clauses)
    value = None
    if len(matches) < len(clauses):
        returns = clauses[-1]
        cut = not isinstance(returns, ast.ReturnClause) or returns.skip is not None or returns.limit is not None
        if cut or len(matches) < len(clauses) - 1 or not isinstance(returns, ast.ReturnClause):
            raise NotSupportedError("a subquery of these clauses is not supported in SQL")
        if returns.distinct or returns.order_by or any(is_aggregate(item.expression) for item in returns.items):
            raise NotSupportedError("a subquery that counts or orders is not supported in SQL")
        value = returns.items[0].expression if node.kind == "collect" else None
    if not matches or (node.kind == "collect" and value is None):
        raise NotSupportedError("a subquery of these clauses is not supported in SQL")
    return matches, value


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(conditions) or "TRUE"
