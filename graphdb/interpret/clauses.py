"""The reading clauses over rows: MATCH, OPTIONAL MATCH, WITH, RETURN, UNWIND and UNION."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from graphdb.common.errors import ExecutionError, ParameterError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced
from graphdb.interpret.aggregates import aggregate
from graphdb.interpret.context import Context, Row
from graphdb.interpret.evaluate import Compiler
from graphdb.interpret.evaluator import Evaluate
from graphdb.interpret.match import Match, Rows
from graphdb.interpret.values import sort_key, type_name
from graphdb.semantics.aggregation import aggregates_in, contains_aggregate, unshadowed


def column_name(item: ast.ReturnItem) -> str:
    """Return the name that a returned item goes by."""
    return item.alias or item.text


def run_match(context: Context, clause: ast.MatchClause, rows: Rows) -> Rows:
    """Run MATCH; with OPTIONAL a row without a match stays, its new names null."""
    if not rows:
        return []
    known = [name for name in rows[0] if not name.startswith("#")]
    match = Match(context, clause, known)
    if not clause.optional:
        return match.run([dict(row) for row in rows])
    number = context.fresh("row")
    found: list[list[Row]] = [[] for _ in rows]
    for row in match.run([{**row, number: i} for i, row in enumerate(rows)]):
        found[row.pop(number)].append(row)
    absent = dict.fromkeys(match.names)
    return [new for row, matches in zip(rows, found, strict=True) for new in matches or [{**row, **absent}]]


def run_unwind(context: Context, clause: ast.UnwindClause, rows: Rows) -> Rows:
    """Run UNWIND: a row for each item; none for null and the empty list."""
    source = Compiler(context).compile(clause.source)
    _prepare(context, [clause.source], rows)

    def items(row: Row) -> list[Any]:
        value = source(row)
        return value if isinstance(value, list) else [] if value is None else [value]

    pairs = ((row, item) for row in rows for item in items(row))
    return [{**row, clause.variable.name: item} for row, item in context.watched(pairs)]


def _prepare(context: Context, expressions: list[Any], rows: Rows) -> None:
    """Read ahead what the expressions may ask of the rows' vertices, and run their subqueries."""
    for row in context.watched(rows):
        context.view.expect(row.values())
    context.subqueries.run_ahead(expressions, rows)


class Projection:
    """WITH or RETURN over rows."""

    def __init__(
        self, context: Context, clause: ast.ReturnClause, known: list[str], where: ast.Expression | None
    ) -> None:
        self.context = context
        self.clause = clause
        self.where = where
        self._compiler = Compiler(context)
        items: list[tuple[str, ast.Expression]] = []
        if clause.star:
            items = [(name, ast.Variable(name, clause.span)) for name in sorted(known)]
        items += [(column_name(item), item.expression) for item in clause.items]
        self.items = items
        self.columns = [name for name, _ in items]

    def run(self, rows: Rows) -> Rows:
        """Return the projected rows, ordered and cut."""
        expressions = [expression for _, expression in self.items]
        orders = [order.expression for order in self.clause.order_by]
        _prepare(self.context, [*expressions, *orders], rows)
        if any(map(contains_aggregate, expressions)):
            pairs = self._grouped(rows)
        else:
            compiled = [(name, self._compiler.reference(expression)) for name, expression in self.items]
            pairs = [({name: value(row) for name, value in compiled}, row) for row in self.context.watched(rows)]
        if self.clause.distinct:
            key_of = self.context.group_key
            pairs = list({tuple(key_of(v) for v in new.values()): (new, new) for new, _ in pairs[::-1]}.values())[::-1]
        if self.clause.order_by:
            pairs = self._ordered(pairs)
        pairs = self._window(pairs)
        result = [new for new, _ in pairs]
        if self.where is None:
            return result
        test = self._compiler.condition(self.where)
        # WHERE sees what was projected and, as ORDER BY does, what was there before.
        scope = [{**old, **new} for new, old in pairs]
        _prepare(self.context, [self.where], scope)
        return [new for new, row in self.context.watched(zip(result, scope, strict=True)) if test(row) is True]

    def _grouped(self, rows: Rows) -> list[tuple[Row, Row]]:
        keys = [(name, e) for name, e in self.items if not contains_aggregate(e)]
        read = [self._compiler.reference(expression) for _, expression in keys]
        groups: dict[tuple[Any, ...], Rows] = {}
        for row in self.context.watched(rows):
            groups.setdefault(tuple(self.context.group_key(value(row)) for value in read), []).append(row)
        if not keys and not groups:
            groups[()] = []
        orders = [order.expression for order in self.clause.order_by]
        calls = list(dict.fromkeys(aggregates_in((*[e for _, e in self.items], *orders))))
        compiled = [(self.context.aggregate_key(call), self._aggregate(call)) for call in calls]
        outer = [(name, self._compiler.reference(expression)) for name, expression in self.items]
        pairs = []
        for group in groups.values():
            row = dict(group[0]) if group else {}
            for key, value in compiled:
                row[key] = value(group)
            pairs.append(({name: value(row) for name, value in outer}, row))
        return pairs

    def _aggregate(self, call: ast.FunctionCall | ast.CountStar) -> Any:
        if isinstance(call, ast.CountStar):
            return len
        counts = call.name.lower() in ("count", "collect")  # terms; all others compute with their values
        argument = (self._compiler.reference if counts else self._compiler.compile)(call.arguments[0])
        further = self._compiler.compile(call.arguments[1]) if len(call.arguments) > 1 else None

        key_of = self.context.group_key if call.distinct else None

        def fail(kind: Any, message: str) -> Any:
            return kind(message, text=self.context.text, position=call.span.start)

        def value(group: Rows) -> Any:
            fraction = further(group[0]) if further is not None and group else 0
            values = [argument(row) for row in group]
            return aggregate(call.name.lower(), values, key_of, fraction, fail)

        return value

    def _ordered(self, pairs: list[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
        keys: list[tuple[Evaluate, bool]] = []
        # What is returned is a column: after DISTINCT and aggregates nothing else is there.
        returned = {expression: ast.Variable(name, expression.span) for name, expression in self.items}
        returned = unshadowed(returned, self.items)
        for order in self.clause.order_by:
            key = self._compiler.compile(replaced(order.expression, returned))
            if order.nulls_first is not order.descending:
                keys.append((_is_null(key), order.nulls_first))
            keys.append((key, order.descending))
        scopes = ({**old, **new} for new, old in pairs)
        ranks = [[sort_key(key(scope)) for key, _ in keys] for scope in self.context.watched(scopes)]

        def compare(a: int, b: int) -> int:
            for i, (_, descending) in enumerate(keys):
                x, y = ranks[a][i], ranks[b][i]
                if x != y:
                    return -1 if (x < y) is not descending else 1
            return 0

        return [pairs[i] for i in sorted(range(len(pairs)), key=cmp_to_key(compare))]

    def _window(self, pairs: list[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
        skip = self._count(self.clause.skip, "SKIP") or 0
        limit = self._count(self.clause.limit, "LIMIT")
        return pairs[skip : None if limit is None else skip + limit]

    def _count(self, node: ast.Expression | None, clause: str) -> int | None:
        if node is None:
            return None
        value = self._compiler.compile(node)({})
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            shown = repr(value) if isinstance(value, (int, float)) else type_name(value)
            kind = ParameterError if isinstance(node, ast.Parameter) else ExecutionError
            raise kind(
                f"{clause} needs a number of rows, 0 or more, found {shown}",
                text=self.context.text,
                position=node.span.start,
            )
        return value


def _is_null(value: Evaluate) -> Evaluate:
    return lambda row: value(row) is None


def union(context: Context, parts: list[Rows], keeps_all: bool) -> Rows:
    """Put the rows of UNION's parts together."""
    rows = [row for part in parts for row in part]
    if keeps_all:
        return rows
    return list({tuple(map(context.group_key, row.values())): row for row in rows[::-1]}.values())[::-1]
