"""Compiles aggregates, also over rows that stand for several equal matches.

:data:`AGGREGATES` has them by their names in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.temporal import DateTime
from graphdb.common.values.terms import Kind
from graphdb.common.values.types import DURATION, FLOAT, INTEGER, NUMERIC, VALUE, Base, list_of, sql_type
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.sql.compiler import Compile, Compiler
from graphdb.sql.equivalence import each_once, each_once_in_order, has_key, items_once, key
from graphdb.sql.exact import variant
from graphdb.sql.joined import cast
from graphdb.sql.times import durations
from graphdb.sql.types.numbers import numeric
from graphdb.sql.types.order import orders_items, sort_keys
from graphdb.sql.udf import aggregate, compute
from graphdb.sql.value import SqlValue, as_union, member, named, number


def number_of_matches(c: Compiler, where: str = "") -> SqlValue:
    """Return ``count(*)``, or how many of the rows fulfil a condition, where a row may stand for several matches."""
    chosen = f" FILTER (WHERE {where})" if where else ""
    if c.scope.matches is None:
        return SqlValue(f"count(*){chosen}", INTEGER)
    return SqlValue(f"CAST(coalesce(sum({c.scope.matches}){chosen}, 0) AS BIGINT)", INTEGER)


def _count(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.anything(node.arguments[0])
    if c.scope.matches is not None and not node.distinct:
        return number_of_matches(c, f"{value.sql} IS NOT NULL")
    if not node.distinct:
        return SqlValue(f"count({value.sql})", INTEGER)
    there = f" FILTER (WHERE {value.sql} IS NOT NULL)" if has_key(value.type, value.bases) else ""
    return SqlValue(f"count(DISTINCT {key(c, value)}){there}", INTEGER)


def _collect(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.anything(node.arguments[0])
    order = f" ORDER BY {c.scope.order} ASC" if c.scope.order is not None and not node.distinct else ""
    gathered = f"list({value.sql}{order}) FILTER (WHERE {value.sql} IS NOT NULL)"
    if value.many:
        flat = value.made(f"flatten({gathered})", bases=value.bases)
        return SqlValue(f"coalesce({items_once(c, flat) if node.distinct else flat.sql}, [])", value.type)
    if node.distinct:
        gathered = each_once(c, value) if c.scope.order is None else each_once_in_order(c, value, c.scope.order)
    return SqlValue(f"coalesce({gathered}, [])", list_of(value.type))


def _sum(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    distinct = "DISTINCT " if node.distinct else ""
    value = _addends(c, node)
    if value.type == DURATION:
        return durations.total(c, node, value)
    if value.type.base is Base.VALUE:  # of integers an integer
        whole, real = member(value, Base.INTEGER), number(value)
        total = f"sum({real})"
        if node.distinct:
            total = f"list_sum({_reals_once(c, value)})"
        exact = as_union(SqlValue(f"CAST(coalesce(sum({distinct}{whole}), 0) AS BIGINT)", INTEGER))
        inexact = as_union(SqlValue(total, FLOAT))
        cases = f"{_refused(c, node, value)} WHEN count({real}) = count({whole})"
        return SqlValue(f"CASE {cases} THEN {exact.sql} ELSE {inexact.sql} END", VALUE)
    type = value.type if value.type.base in NUMERIC else INTEGER
    total = f"sum({distinct}{value.sql})"
    return SqlValue(f"CAST(coalesce({total}, 0) AS {sql_type(type)})", type)


def _refused(c: Compiler, node: ast.FunctionCall, value: SqlValue) -> str:
    """Return the branch of a CASE that fails where some value of a union is no number."""
    if value.bases is not None and value.bases <= NUMERIC:
        return "WHEN FALSE THEN NULL"
    wrong = f"{value.sql} IS NOT NULL AND {number(value)} IS NULL"
    tag = f"any_value(union_tag({value.sql})) FILTER (WHERE {wrong})"
    error = c.unfit(f"{node.name} needs numbers", node, tag, NUMERIC)
    return f"WHEN count({value.sql}) > count({number(value)}) THEN {error}"


def _reals_once(c: Compiler, value: SqlValue) -> str:
    """Return SQL of an aggregate: the list of numbers as floats, one of each that are equal.

    Numbers that differ are two, though they may be one as floats.
    """
    item = c.fresh()
    real = number(named(item, VALUE)) if value.type.base is Base.VALUE else f"CAST({item} AS DOUBLE)"
    return f"list_transform({each_once(c, value)}, lambda {item}: {real})"


def _addends(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """Compile what is added up: numbers, durations, or values whose types the rows tell."""
    argument = node.arguments[0]
    if _is_duration(c, argument):
        return compute(c, argument, DURATION)
    value = c.value_of(c.one(argument), or_text=True)
    as_it_is = value.type == DURATION or value.type.base is Base.VALUE
    return value if as_it_is else numeric(c, node, node.arguments[0])


def _is_duration(c: Compiler, node: ast.Expression) -> bool:
    """Whether an expression is a property of temporal values that SQL has no type for: those added up are durations."""
    if not isinstance(node, ast.Property) or node in c.scope.known or not isinstance(node.base, ast.Variable):
        return False
    base = c.scope.variables.get(node.base.name)
    if base is None or base.type.base is not Base.NODE:
        return False
    label = c.names.property(node.key.words, c.text)
    return label.kinds == 1 << Kind.TEMPORAL and not c.rows.has_type(label)


def gathered(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """Compile an aggregate that SQL does not compute: Python does, of the list of a group's values."""
    value = c.value_of(c.one_of_any(node.arguments[0]), or_text=True)
    order = f" ORDER BY {c.scope.order} ASC" if c.scope.order is not None else ""
    there = f"list({value.sql}{order}) FILTER (WHERE {value.sql} IS NOT NULL)"
    values = [SqlValue(f"coalesce({there}, [])", list_of(value.type), bases=value.bases)]
    for argument in node.arguments[1:]:
        further = c.one_of_any(argument)
        sql = further.sql
        if free_variables(argument):  # a constant is there for a group of no rows, too
            sql = f"CASE WHEN count(*) > 0 THEN first({sql}) ELSE {cast(SqlValue('0', INTEGER), further.type)} END"
        values.append(further.made(sql))
    return aggregate(c, node, values)


def _avg(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = _addends(c, node)
    if value.type == DURATION:
        return durations.total(c, node, value)
    if value.type.base is not Base.VALUE:
        return SqlValue(f"avg({f'DISTINCT {value.sql}' if node.distinct else f'CAST({value.sql} AS DOUBLE)'})", FLOAT)
    mean = f"list_avg({_reals_once(c, value)})" if node.distinct else f"avg({number(value)})"
    return SqlValue(f"CASE {_refused(c, node, value)} ELSE {mean} END", FLOAT)


def _deviation(function: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        if node.distinct:
            found = _over_once(c, node, f"list_{function}({{}})")
        else:
            found = f"{function}(CAST({numeric(c, node, node.arguments[0]).sql} AS DOUBLE))"
        return SqlValue(f"coalesce({found}, 0.0::DOUBLE)", FLOAT)

    return compile


def _over_once(c: Compiler, node: ast.FunctionCall, template: str) -> str:
    """Return SQL of a function of the list of an aggregate's numbers as floats, one of each that are equal."""
    value = c.value_of(c.one(node.arguments[0]), or_text=True)
    if value.type.base is not Base.VALUE:
        return template.format(_reals_once(c, numeric(c, node, node.arguments[0])))
    return f"CASE {_refused(c, node, value)} ELSE {template.format(_reals_once(c, value))} END"


def _percentile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value, share = numeric(c, node, node.arguments[0]), node.arguments[1]
    given = c.argument(share) if isinstance(share, ast.Parameter) else getattr(share, "value", None)
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1 or value.type == VALUE:
        raise NotSupportedError("such a percentile is not supported in SQL", position=node.span.start)
    if node.name.lower() == "percentiledisc":
        return _one_at(c, node, value, float(given))
    if node.distinct:
        return SqlValue(_over_once(c, node, f"list_aggregate({{}}, 'quantile_cont', {float(given)!r})"), FLOAT)
    return SqlValue(f"quantile_cont(CAST({value.sql} AS DOUBLE), {float(given)!r})", FLOAT)


def _one_at(c: Compiler, node: ast.FunctionCall, value: SqlValue, share: float) -> SqlValue:
    """Return the value that a share of all is not above; ``value`` is the argument as a number."""
    found = c.value_of(c.one(node.arguments[0]))
    if found.type.base is not Base.VALUE:
        return SqlValue(f"quantile_disc({'DISTINCT ' if node.distinct else ''}{value.sql}, {share!r})", value.type)
    if node.distinct:
        raise NotSupportedError("numbers of several types that are equal are found in Python")
    pair = f"struct_pack(k := {value.sql}, v := {found.sql})"  # an integer stays one beside floats
    there = f"FILTER (WHERE {found.sql} IS NOT NULL)"
    return SqlValue(f"(quantile_disc({pair}, {share!r}) {there}).v", VALUE, bases=found.bases)


_BY_KEYS = (Base.VALUE, Base.CHOICE, Base.MAP, Base.DURATION, Base.EXACT)
"""Types that have an order which is not DuckDB's."""


def _extreme(function: str) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        value = c.value_of(c.one_of_any(node.arguments[0]), or_text=True)
        if value.type.base in (Base.NODE, Base.EDGE, Base.TERM, Base.PATH):
            raise c.mismatch(f"{node.name} needs values, found {value.type}", node.arguments[0])
        if value.type.base in _BY_KEYS or orders_items(value.type):
            keys = ", ".join([*sort_keys(c, value), *([variant(value)] if value.type.of is DateTime else [])])
            there = f" FILTER (WHERE {value.sql} IS NOT NULL)"
            return SqlValue(f"{function}_by({value.sql}, row({keys})){there}", value.type)
        if value.type.base is Base.LIST:
            sort_keys(c, value)  # SQL may have no order of them
            if value.subquery:  # DuckDB makes such keys of lists, and cannot name a subquery twice
                raise NotSupportedError("an extreme of lists of what is looked up is found in Python")
        return SqlValue(f"{function}({value.sql})", value.type)

    return compile


AGGREGATES: Mapping[str, Compile] = {
    "count": _count,
    "collect": _collect,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "stdev": _deviation("stddev_samp"),
    "stdevp": _deviation("stddev_pop"),
    "percentilecont": _percentile,
    "percentiledisc": _percentile,
}
