"""Compiles points in time in zones that have names: what their clocks show, and when they show something.

SQL has the rules of most zones for the years 1970 to 2037 (:mod:`graphdb.common.values.zones`).  Where a row's point
in time, or what is made of it, is in another zone or year, Python computes what is asked of that row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphdb.common.errors import NotSupportedError
from graphdb.common.values import zones
from graphdb.common.values.temporal import DateTime
from graphdb.common.values.types import IN_ZONE, Base
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler
from graphdb.sql.equivalence import all_once
from graphdb.sql.value import SqlValue, instant, offset_of


def near(c: Compiler, value: SqlValue, clocks: Sequence[str]) -> str:
    """Return SQL of whether SQL has the rules of a point in time's zone, if it is in one, at local dates and times."""
    zone = exact.zone_of(value)
    return f"({zone} IS NULL OR (list_contains({known(c)}, {zone}) AND {between(clocks)}))"


def known(c: Compiler) -> str:
    """Return SQL of the zones of which SQL has the rules."""
    return c.rows.parameters.add(zones.agreed(), "VARCHAR[]")


def between(clocks: Sequence[str]) -> str:
    """Return SQL of whether local dates and times are in years of which it has them."""
    return " AND ".join(f"{clock} BETWEEN {zones.NEAR}" for clock in clocks)


def or_computed(c: Compiler, node: ast.Expression, usual: str, there: str, found: SqlValue) -> SqlValue:
    """Return what SQL makes of rows that are as usual, and Python of others; null where something is not ``there``.

    Raises
    ------
    NotSupportedError
        It is a constant, or of a list's items.
    """
    if not c.outermost or not free_variables(node):
        raise NotSupportedError("this is not supported of times in zones in SQL", position=node.span.start)
    other = c.computed(node, found.type)
    if other.subquery:  # it may stand in a lambda
        raise NotSupportedError("this is not supported of times in zones in SQL", position=node.span.start)
    return SqlValue(f"CASE WHEN {usual} THEN {found.sql} WHEN {there} THEN {other.sql} END", found.type)


def bound(c: Compiler, sql: str, body: Callable[[str], str]) -> str:
    """Return SQL that is made of other SQL, which it names several times and computes once."""
    name = c.fresh()
    return f"(list_transform([{sql}], lambda {name}: {body(name)}))[1]"


def named_once(c: Compiler, values: Sequence[SqlValue], make: Callable[..., SqlValue]) -> SqlValue:
    """Return what is made of values, some in zones, which it names several times, and computes once."""
    taken = [each for each in values if is_named(each)]
    if not taken:
        return make(*values)
    types = []

    def made(*names: SqlValue) -> str:
        called = dict(zip(taken, names, strict=True))
        found = make(*(called.get(value, value) for value in values))
        types.append(found.type)
        return found.sql

    return SqlValue(all_once(c, taken, made), types.pop())


def is_named(value: SqlValue) -> bool:
    """Whether a value has a name of its own where it is named several times, and in lambdas."""
    return not value.atomic and (value.subquery or (value.type.by_name and not value.parts))


def at_instant(c: Compiler, value: SqlValue, microseconds: str, nanoseconds: str) -> SqlValue:
    """Return a point in time, in microseconds since 1970, in the zone of another one, or at its offset."""
    zone, offset = exact.zone_of(value), offset_of(value)

    def made(at: str) -> str:
        fixed = f"make_timestamp({at} + {offset} * 1000000::BIGINT)"
        shown = f"coalesce(timezone({zone}, make_timestamptz({at})), {fixed})"

        def packed(clock: str) -> str:
            return exact.exact(DateTime, clock, nanoseconds, f"((epoch_us({clock}) - {at}) // 1000000)", zone).sql

        return bound(c, shown, packed)

    return SqlValue(bound(c, microseconds, made), IN_ZONE)


def passed(value: SqlValue) -> str:
    """Return SQL of the microseconds since 1970 at a point in time."""
    if value.type.base is not Base.EXACT:
        return f"epoch_us({instant(value).sql})"
    return f"(epoch_us({exact.clock_of(value)}) - {offset_of(value)} * 1000000::BIGINT)"


def when_shown(value: SqlValue, clock: str) -> str:
    """Return SQL of the microseconds since 1970 when clocks show a local date and time in the zone of a point in time.

    Of one that they show twice it is the one at the offset of that point, else the earlier.
    """
    return zones.when_shown(exact.zone_of(value), clock, offset_of(value))


def moved(
    c: Compiler, node: ast.Expression, value: SqlValue, calendar: str, microseconds: str, nanoseconds: str
) -> SqlValue:
    """Return a point in time moved by units of the calendar and by time that passes.

    ``calendar`` is SQL of what is added to a local date and time, empty where that is nothing.
    """
    clock = exact.clock_of(value)

    def from_first(first: str, to: str) -> str:
        found = at_instant(c, value, f"({first} + {microseconds})", nanoseconds)
        last = f"({to} + to_microseconds({microseconds}))"
        usual = near(c, value, [clock, *([] if to is clock else [to]), last])
        return or_computed(c, node, usual, f"{last} IS NOT NULL", found).sql

    if not calendar:
        sql = from_first(passed(value), clock)
    else:
        sql = bound(c, f"({clock}{calendar})", lambda to: from_first(when_shown(value, to), to))
    return SqlValue(sql, IN_ZONE)


def truncated(c: Compiler, node: ast.Expression, value: SqlValue, cut: str) -> SqlValue:
    """Return the point in time when the clock of another one's zone shows what its own does, ``cut`` down."""
    clock = exact.clock_of(value)

    def found(to: str) -> str:
        usual = near(c, value, [clock, to])
        return or_computed(c, node, usual, f"{clock} IS NOT NULL", at_instant(c, value, when_shown(value, to), "0")).sql

    return SqlValue(bound(c, cut, found), IN_ZONE)
