"""What the rows of a query are made of: linear queries, with WITH, CALL and UNION written out.

Each is MATCH clauses, and what makes each of their rows one, several or none: OPTIONAL MATCH, UNWIND, conditions
(``WITH * WHERE``), and calls of subqueries that are more than patterns.  Its rows are those of the query, or with UNION
and calls of one, those of all its linear queries together.  Names are unique: what is called the same after a WITH
that dropped it is called otherwise, since queries are asked for some vertices by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from graphdb.common.values.types import NULL
from graphdb.grammar import syntax as ast
from graphdb.grammar.compose import is_plain
from graphdb.live.forms.final import Final, aggregate, apart, finished
from graphdb.live.forms.substitution import Names, NotRewritten, Scope, bounded
from graphdb.pattern.paths.lengths import all_hold
from graphdb.relational.projection.return_clause import combines_aggregates
from graphdb.relational.projection.sql import columns_of
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.sql.value import SqlValue

NOTHING = SqlValue("NULL", NULL)
"""In the place of a column, where only its name matters."""
MOST = 12
"""Linear queries that one is made of."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A query without UNION."""

    clauses: tuple[ast.ClauseNode, ...]
    returns: ast.ReturnClause
    span: ast.Span = field(compare=False)
    final: Final | None = None
    """What is made of the groups that it returns, where that is more than their columns."""

    @property
    def whole(self) -> tuple[ast.ClauseNode, ...]:
        """All clauses."""
        return (*self.clauses, self.returns)

    @property
    def query(self) -> ast.Query | ast.Composite:
        """It as what prepares queries takes it."""
        matches = tuple(clause for clause in self.clauses if isinstance(clause, ast.MatchClause))
        if len(matches) == len(self.clauses) and is_plain(matches, self.returns):
            return ast.Query(matches, self.returns, span=self.span)
        return ast.Composite((self.whole,), span=self.span)

    def returning(self, columns: Sequence[tuple[ast.Expression, str]]) -> Linear:
        """Return it with other columns."""
        items = tuple(ast.ReturnItem(expression, name, name) for expression, name in columns)
        return replace(self, returns=ast.ReturnClause(items, span=self.returns.span))


@dataclass(slots=True)
class _Stream:
    """The clauses of a linear query so far, and the names that the next one sees."""

    clauses: list[ast.ClauseNode]
    scope: dict[str, ast.Expression]

    def copy(self, scope: Scope) -> _Stream:
        return _Stream([*self.clauses], dict(scope))


def linear(query: ast.Query | ast.Composite) -> list[list[Linear]]:
    """Return the linear queries of each part of a query's UNION.

    Raises
    ------
    NotRewritten
        It has other clauses, or WITH does more than pass on, compute and choose.
    """
    names = Names(query)
    parts = (query.clauses,) if isinstance(query, ast.Query) else query.parts
    found = []
    columns: list[str] = []
    for part in parts:
        *clauses, returns = part
        if not isinstance(returns, ast.ReturnClause):
            raise NotRewritten("its rows are not the matches of one pattern")
        refuse_window(returns)
        if returns.star and not all(isinstance(clause, ast.MatchClause) for clause in clauses):
            raise NotRewritten("its columns are those of the pattern")
        columns = columns or [column.sql_name for column in columns_of([(item, NOTHING) for item in returns.items])]
        named = tuple(replace(item, alias=column) for item, column in zip(returns.items, columns, strict=True))
        returns = replace(returns, items=named, order_by=())
        at = next((i for i, clause in enumerate(clauses) if makes_groups(clause)), len(clauses))
        writer = _Writer(names)
        streams = writer.written([_Stream([], {})], clauses[:at])
        if not _is_last(clauses[at:], returns):
            if len(streams) > 1:
                raise NotRewritten("a WITH aggregates the rows of several queries, before other clauses")
            streams = writer.written(streams, clauses[at:], grouping=True)
            at = len(clauses)
        found.append([_ended(names, stream, clauses[at:], returns, query.span) for stream in streams])
    if sum(map(len, found)) > MOST:
        raise NotRewritten(f"it is more than {MOST} queries")
    return found


def refuse_window(returns: ast.ReturnClause) -> None:
    """Raise NotRewritten where a clause has SKIP or LIMIT."""
    if returns.skip is not None or returns.limit is not None:
        raise NotRewritten("SKIP and LIMIT choose among all rows")


def makes_groups(clause: ast.ClauseNode) -> bool:
    """Whether a clause makes groups of rows, or distinct ones."""
    if not isinstance(clause, ast.WithClause):
        return False
    return clause.returns.distinct or any(contains_aggregate(item.expression) for item in clause.returns.items)


def _is_last(clauses: Sequence[ast.ClauseNode], returns: ast.ReturnClause) -> bool:
    """Whether nothing follows a WITH that makes groups but what passes on, computes and chooses of each of them."""
    plain = all(isinstance(clause, ast.WithClause) and not makes_groups(clause) for clause in clauses[1:])
    more = returns.distinct or any(contains_aggregate(item.expression) for item in returns.items)
    return not clauses or (plain and not more)


def _ended(
    names: Names, stream: _Stream, clauses: Sequence[ast.ClauseNode], returns: ast.ReturnClause, span: ast.Span
) -> Linear:
    """Return a linear query that ends with RETURN, before which only a WITH may make groups, and others follow that."""
    if not clauses:
        items = names.substituted(returns.items, stream.scope)
        final = None
        if combines_aggregates(items):
            items, final = apart(items)
        return Linear(tuple(stream.clauses), replace(returns, items=items), span, final)
    keys, calls = list[ast.Expression](), list[ast.Expression]()
    conditions, scope = list[ast.Expression](), dict[str, ast.Expression]()
    for clause in clauses:
        assert isinstance(clause, ast.WithClause)
        refuse_window(clause.returns)
        before = stream.scope if clause is clauses[0] else scope
        after = dict(before) if clause.returns.star else {}
        for item in clause.returns.items:
            made = bounded(names.substituted(item.expression, before))
            if contains_aggregate(made):
                calls.append(made)
                made = aggregate(len(calls) - 1)
            after[item.alias or item.text] = made
        if clause is clauses[0]:
            keys = [made for made in after.values() if made not in {*map(aggregate, range(len(calls)))}]
            before = {}
        if clause.where is not None:
            conditions.append(names.substituted(clause.where, {**before, **after}))
        scope = after
    columns, final = finished(keys, calls, names.substituted(returns.items, scope), conditions)
    distinct = not calls
    return Linear(tuple(stream.clauses), replace(returns, items=columns, distinct=distinct), span, final)


class _Writer:
    """Writes clauses out."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def written(
        self, streams: list[_Stream], clauses: Sequence[ast.ClauseNode], *, grouping: bool = False
    ) -> list[_Stream]:
        """Return linear queries that go on with some clauses, which may make groups where ``grouping`` says so."""
        for clause in clauses:
            match clause:
                case ast.WithClause() if grouping and makes_groups(clause):
                    if len(streams) > 1:
                        raise NotRewritten("a WITH aggregates the rows of several queries, before other clauses")
                    self._group(streams[0], clause)
                case ast.CallClause():
                    streams = [made for stream in streams for made in self._called(stream, clause)]
                case ast.MatchClause() | ast.WithClause() | ast.UnwindClause():
                    for stream in streams:
                        self._go_on(stream, clause)
                case _:
                    raise NotRewritten("its rows are not the matches of one pattern")
            if len(streams) > MOST:
                raise NotRewritten(f"it is more than {MOST} queries")
        return streams

    def _go_on(self, stream: _Stream, clause: ast.MatchClause | ast.WithClause | ast.UnwindClause) -> None:
        names, scope = self._names, stream.scope
        match clause:
            case ast.MatchClause():
                scope |= names.declared(clause.patterns, scope)
                stream.clauses.append(names.substituted(clause, scope))
            case ast.UnwindClause():
                source, variable = names.substituted(clause.source, scope), names.given(clause.variable.name)
                stream.clauses.append(replace(clause, source=source, variable=variable))
                scope[clause.variable.name] = variable
            case ast.WithClause():
                self._pass_on(stream, clause)

    def _pass_on(self, stream: _Stream, clause: ast.WithClause) -> None:
        """Let a WITH be what its names stand for from there on, and its condition."""
        returns, scope = clause.returns, stream.scope
        refuse_window(returns)
        if returns.distinct or any(contains_aggregate(item.expression) for item in returns.items):
            raise NotRewritten("a WITH aggregates, or makes rows distinct")
        after = dict(scope) if returns.star else {}
        for item in returns.items:
            after[item.alias or item.text] = bounded(self._names.substituted(item.expression, scope))
        if clause.where is not None:
            self._choose(stream, self._names.substituted(clause.where, {**scope, **after}), clause.span)
        stream.scope = after

    def _group(self, stream: _Stream, clause: ast.WithClause) -> None:
        """Let a WITH make groups, whose columns have names of their own; variables keep theirs."""
        returns, names = clause.returns, self._names
        refuse_window(returns)
        star = [(name, ast.Variable(name)) for name in stream.scope] if returns.star else []
        columns = [*star, *((item.alias or item.text, item.expression) for item in returns.items)]
        items: dict[ast.ReturnItem, None] = {}
        after: dict[str, ast.Expression] = {}
        for name, expression in columns:
            made = names.substituted(expression, stream.scope)
            alias = made if isinstance(made, ast.Variable) else names.given(name)
            items[ast.ReturnItem(made, alias.name, alias.name)] = None
            after[name] = alias
        where = None if clause.where is None else names.substituted(clause.where, after)
        own = replace(returns, items=tuple(items), star=False, order_by=())
        stream.clauses.append(replace(clause, returns=own, where=where))
        stream.scope = after

    @staticmethod
    def _choose(stream: _Stream, condition: ast.Expression, span: ast.Span) -> None:
        """Let only rows go on of which a condition is true."""
        last = stream.clauses[-1] if stream.clauses else None
        if isinstance(last, ast.MatchClause) and not last.optional:
            both = [condition] if last.where is None else [last.where, condition]
            stream.clauses[-1] = replace(last, where=all_hold(both, last.span))
        elif last is None:
            raise NotRewritten("its rows are not the matches of one pattern")
        else:
            stream.clauses.append(ast.WithClause(ast.ReturnClause((), star=True, span=span), condition, span))

    def _called(self, stream: _Stream, call: ast.CallClause) -> list[_Stream]:
        """Return a linear query that goes on with each part of a call's query."""
        seen = stream.scope
        if call.imported is not None:
            seen = {name.name: seen.get(name.name, name) for name in call.imported}
        if call.optional or (len(call.query.parts) > 1 and not call.query.keeps_all):
            return [self._as_call(stream, call, seen)]
        found: list[_Stream] = []
        for *clauses, returns in call.query.parts:
            assert isinstance(returns, ast.ReturnClause)  # or it is no query of a call
            if returns.distinct or returns.skip or returns.limit or contains_aggregate(returns.items):
                return [self._as_call(stream, call, seen)]
            for made in self.written([stream.copy(seen)], clauses):
                columns = {
                    item.alias or item.text: bounded(self._names.substituted(item.expression, made.scope))
                    for item in returns.items
                }
                found.append(_Stream(made.clauses, {**stream.scope, **columns}))
        return found

    def _as_call(self, stream: _Stream, call: ast.CallClause, seen: Scope) -> _Stream:
        """Return a linear query with a call of patterns, whose rows are made of all that they find from one row."""
        columns = {name: self._names.given(name) for name in call.columns}
        parts = []
        for *clauses, returns in call.query.parts:
            assert isinstance(returns, ast.ReturnClause)
            refuse_window(returns)
            inner = dict(seen)
            written = []
            for clause in clauses:
                if isinstance(clause, ast.WithClause) and clause is clauses[0] and _only_imports(clause):
                    continue
                if not isinstance(clause, ast.MatchClause):
                    raise NotRewritten("a CALL has other clauses than MATCH and RETURN")
                inner |= self._names.declared(clause.patterns, inner)
                written.append(self._names.substituted(clause, inner))
            items = tuple(
                replace(item, expression=self._names.substituted(item.expression, inner), alias=columns[name].name)
                for item, name in zip(returns.items, call.columns, strict=True)
            )
            parts.append((*written, replace(returns, items=items, order_by=())))
        made = replace(call, query=replace(call.query, parts=tuple(parts)), imported=None)
        return _Stream([*stream.clauses, made], {**stream.scope, **columns})


def _only_imports(clause: ast.WithClause) -> bool:
    """Whether a WITH names what a call's query sees, and does nothing else."""
    plain = all(isinstance(item.expression, ast.Variable) and item.alias is None for item in clause.returns.items)
    return plain and clause.where is None and not clause.returns.star and not clause.returns.distinct
