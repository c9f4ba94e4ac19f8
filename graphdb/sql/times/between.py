"""Compiles what lies between two days or times: :mod:`graphdb.common.values.temporal_between`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphdb.common.errors import NotSupportedError
from graphdb.common.values import zones
from graphdb.common.values.temporal import AT_OFFSETS, DATED, DateTime, LocalDateTime, LocalTime
from graphdb.common.values.types import DATE, DATETIME, DURATION, INTEGER
from graphdb.grammar import syntax as ast
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler
from graphdb.sql.times import in_zones
from graphdb.sql.times.duration_parts import BILLION, all_bound, bound, packed
from graphdb.sql.value import SqlValue, instant, named, offset_of


def between(unit: str) -> Callable[[Compiler, ast.FunctionCall], SqlValue]:
    """What lies between two days or times: whole months, whole days of what is left, and the rest."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        values = [c.one(argument) for argument in node.arguments]
        kinds = [exact.kind_of(value.type) for value in values]
        if any(kind is None and value.type != DATE for kind, value in zip(kinds, values, strict=True)):
            raise _refused(node)
        dated = all(kind is None or kind in DATED for kind in kinds)
        if any(value.type.by_name for value in values):
            lacking = {None, LocalDateTime, LocalTime} & {
                *kinds
            }  # of what has no offset the other's zone says when it is
            if lacking and not dated:
                raise _refused(node)
            if lacking or (dated and values[0].type.by_name and unit != "inseconds"):
                return _in_zone(c, node, unit, values[0], values[1])
        first, second = (_aligned(value, values, dated=dated) for value in values)
        rests = [exact.nanoseconds_of(value) for value in values]
        ticks = _Ticks(rests[0], rests[1], 1 if rests == ["0", "0"] else 1000)

        def lies(a: str, b: str) -> SqlValue:
            if dated:
                return _lies(c, unit, named(a, first.type), b, ticks)
            apart = f"({ticks.second(b)} - {ticks.first(a)})"
            return packed("0", "0", *(ticks.clock(apart) if unit in ("between", "inseconds") else ("0", "0")), apart)

        return all_bound(c, (first, second), lies)

    return compile


def _aligned(value: SqlValue, values: Sequence[SqlValue], *, dated: bool) -> SqlValue:
    """Return the local date and time of one of two values: what one lacks, the other lends it.

    The second is shown at the offset of the first; where one of them has no day, neither has.
    """
    kind = exact.kind_of(value.type)
    if kind is None:
        return value if dated else value.made(f"CASE WHEN {value.sql} IS NOT NULL THEN make_timestamp(0) END", DATETIME)
    if kind in AT_OFFSETS:
        first = next(each for each in values if exact.kind_of(each.type) in AT_OFFSETS)
        clock = exact.shown(value, offset_of(first))
    else:
        clock = exact.clock_of(value)
    if dated:
        return SqlValue(clock, DATETIME, atomic=value.atomic and value.type == DATETIME)
    if kind not in DATED:
        return SqlValue(clock, DATETIME)
    own = f"epoch_us({exact.clock_of(value)})"
    return SqlValue(f"make_timestamp(epoch_us({exact.time_of_day(own)}) + epoch_us({clock}) - {own})", DATETIME)


@dataclass(frozen=True, slots=True)
class _Ticks:
    """How times are numbers: of microseconds, or of nanoseconds where one of two may have some."""

    before: str
    after: str
    """Nanoseconds of the first, and of the second."""
    per: int
    """Of a microsecond."""

    def _number(self, time: str, rest: str) -> str:
        microseconds = f"epoch_us(CAST({time} AS TIMESTAMP))"
        return microseconds if self.per == 1 else f"(CAST({microseconds} AS HUGEINT) * {self.per} + {rest})"

    def first(self, time: str) -> str:
        """The number of the first time, or of that moved by months."""
        return self._number(time, self.before)

    def second(self, time: str) -> str:
        """The number of the second time."""
        return self._number(time, self.after)

    @property
    def day(self) -> str:
        """The length of a day."""
        return str(86_400_000_000 * self.per)

    def clock(self, ticks: str) -> tuple[str, str]:
        """Return seconds and nanoseconds."""
        second = 1_000_000 * self.per
        rest = f"(({ticks} % {second} + {second}) % {second})"
        return f"(({ticks} - {rest}) // {second})", f"({rest} * {1000 // self.per})"


def _lies(c: Compiler, unit: str, first: SqlValue, b: str, ticks: _Ticks) -> SqlValue:
    a, day = first.sql, first.sql if first.type == DATE else f"CAST({first.sql} AS DATE)"
    begin, end = ticks.first(a), ticks.second(b)
    apart = f"({end} - {begin})"
    if unit == "inseconds":
        return packed("0", "0", *ticks.clock(apart), apart)
    if unit == "indays":
        return packed("0", f"({apart} // {ticks.day})", "0", "0", apart)
    months = SqlValue(_months(day, f"{apart} // {ticks.day}"), INTEGER)
    if unit == "inmonths":
        return packed(months.sql, "0", "0", "0", apart)

    def rest(m: str) -> SqlValue:
        left = f"({end} - {ticks.first(f'({a} + to_months(CAST({m} AS INTEGER)))')})"
        return packed(m, f"({left} // {ticks.day})", *ticks.clock(f"({left} % {ticks.day})"), apart)

    return bound(c, months, rest)


def _months(day: str, days: str) -> str:
    """Return SQL of the whole months in a number of days from a day on.

    They are those between the first day and the one up to which all days are whole; one is over on the same day of the
    next, which numbers that leave each month 32 days say by themselves.
    """
    last = f"({day} + CAST({days} AS INTEGER))"
    numbers = [f"((year({d}) * 12 + month({d})) * 32 + day({d}))" for d in (last, day)]
    return f"(({numbers[0]} - {numbers[1]}) // 32)"


def _in_zone(c: Compiler, node: ast.FunctionCall, unit: str, first: SqlValue, second: SqlValue) -> SqlValue:
    """Return what lies between two values with days, of which one is in a zone, by the calendar there."""
    once = in_zones.named_once

    def made(a: SqlValue, b: SqlValue) -> SqlValue:
        own = a if a.type.by_name else b
        clocks = [_clock_of(a), _clock_of(b)]
        near = f"({exact.zone_of(own)} IS NULL OR list_contains({in_zones.known(c)}, {exact.zone_of(own)}))"
        found = once(c, [_placed(c, a, own), _placed(c, b, own)], lambda x, y: _lies_in_zone(c, unit, x, y))
        there = " AND ".join(f"{clock} IS NOT NULL" for clock in clocks)
        return in_zones.or_computed(c, node, f"{near} AND {in_zones.between(clocks)}", there, found)

    return once(c, [first, second], made)


def _clock_of(value: SqlValue) -> str:
    return f"CAST({value.sql} AS TIMESTAMP)" if value.type == DATE else exact.clock_of(value)


def _placed(c: Compiler, value: SqlValue, own: SqlValue) -> SqlValue:
    """Return a value that lacks an offset at the one that the zone of another has when its clocks show that."""
    if exact.kind_of(value.type) is DateTime:
        return value
    zone, offset, clock = exact.zone_of(own), offset_of(own), _clock_of(value)
    fixed = f"{offset} * 1000000::BIGINT"

    def at(passed: str) -> str:
        own_offset = f"coalesce(epoch_us(timezone({zone}, make_timestamptz({passed}))) - {passed}, {fixed})"
        return f"(epoch_us({clock}) - {own_offset})"

    shown = f"CASE WHEN {zone} IS NULL THEN epoch_us({clock}) - {fixed} ELSE {zones.by_rules(zone, clock)} END"
    return in_zones.at_instant(c, own, in_zones.bound(c, shown, at), exact.nanoseconds_of(value))


def _lies_in_zone(c: Compiler, unit: str, first: SqlValue, second: SqlValue) -> SqlValue:
    """Return what lies between two points in time by the calendar of the first one's zone, as `temporal_between` says.

    All numbers are of nanoseconds.
    """
    bound, at = in_zones.bound, f"epoch_us({instant(exact.less_exact(second)).sql})"
    begin, zone, offset = exact.clock_of(first), exact.zone_of(first), offset_of(first)
    rest, other = exact.nanoseconds_of(first), exact.nanoseconds_of(second)
    passed = f"(epoch_us({begin}) - {offset} * 1000000::BIGINT)"
    apart = f"(({at} - {passed}) * 1000 + {other} - {rest})"
    step = f"CASE WHEN {apart} > 0 THEN 1 ELSE -1 END"
    clock = f"coalesce(timezone({zone}, make_timestamptz({at})), make_timestamp({at} + {offset} * 1000000::BIGINT))"

    def left(months: str, days: str) -> str:
        to = f"({begin} + to_months(CAST({months} AS INTEGER)) + to_days(CAST({days} AS INTEGER)))"
        return f"(({at} - ({in_zones.when_shown(first, to)})) * 1000 + {other} - {rest})"

    def within(units: str, months: str, days: str) -> str:
        """One unit less where clocks were changed so that so many lead past the second point in time."""
        return f"{units} - CASE WHEN {units} <> 0 AND {left(months, days)} * ({step}) < 0 THEN {step} ELSE 0 END"

    def whole_months(end: str) -> str:
        later = f"((epoch_us({end}) - epoch_us({begin})) * 1000 + {other} - {rest})"
        return bound(c, _months(f"CAST({begin} AS DATE)", f"{later} // {_DAY}"), lambda m: within(m, m, "0"))

    def whole_days(end: str, months: str) -> str:
        moved = f"epoch_us({begin} + to_months(CAST({months} AS INTEGER)))"
        return bound(
            c, f"(((epoch_us({end}) - {moved}) * 1000 + {other} - {rest}) // {_DAY})", lambda d: within(d, months, d)
        )

    def of_clock(end: str) -> str:
        if unit == "inseconds":
            return packed("0", "0", *_clock(apart), end).sql
        if unit == "indays":
            return bound(c, whole_days(end, "0"), lambda d: packed("0", d, "0", "0", end).sql)
        if unit == "inmonths":
            return bound(c, whole_months(end), lambda m: packed(m, "0", "0", "0", end).sql)
        return bound(c, whole_months(end), lambda m: bound(c, whole_days(end, m), lambda d: all_units(end, m, d)))

    def all_units(end: str, months: str, days: str) -> str:
        return bound(c, left(months, days), lambda rest: packed(months, days, *_clock(rest), end).sql)

    return SqlValue(bound(c, clock, of_clock), DURATION)


_DAY = 86_400 * 10**9
"""Nanoseconds."""


def _clock(nanoseconds: str) -> tuple[str, str]:
    """Return seconds and the nanoseconds that are left."""
    rest = f"(({nanoseconds} % {BILLION} + {BILLION}) % {BILLION})"
    return f"(({nanoseconds} - {rest}) // {BILLION})", rest


def _refused(node: ast.Expression) -> NotSupportedError:
    return NotSupportedError("such a duration is not supported in SQL", position=node.span.start)
