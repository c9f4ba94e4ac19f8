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
from graphdb.sql.value import SqlValue, named, offset_of


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

    def apart(self, a: str, b: str) -> tuple[str, str]:
        """Return the seconds and nanoseconds from one time to another.

        Both are cut into seconds first: so 64 bits hold all that is between.
        """
        if self.per == 1:
            return self.clock(f"({self.second(b)} - {self.first(a)})")
        first, second = (f"epoch_us(CAST({time} AS TIMESTAMP))" for time in (a, b))
        rest = (
            f"(({second} % 1000000 - {first} % 1000000) * 1000 + {self.after} - {self.before} + 3 * {BILLION}::BIGINT)"
        )
        whole = f"({second} // 1000000 - {first} // 1000000 + {rest} // {BILLION} - 3)"
        return whole, f"({rest} % {BILLION})"

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
        return packed("0", "0", *ticks.apart(a, b), f"({a} = {b})")
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
    return f"((datediff('month', {day}, {last}) * 32 + day({last}) - day({day})) // 32)"


def _in_zone(c: Compiler, node: ast.FunctionCall, unit: str, first: SqlValue, second: SqlValue) -> SqlValue:
    """Return what lies between two values with days, of which one is in a zone, by the calendar there."""

    def made(a: SqlValue, b: SqlValue) -> SqlValue:
        own = a if a.type.by_name else b
        clocks = [_clock_of(a), _clock_of(b)]
        near = f"({exact.zone_of(own)} IS NULL OR list_contains({in_zones.known(c)}, {exact.zone_of(own)}))"
        there = " AND ".join(f"{clock} IS NOT NULL" for clock in clocks)
        found = SqlValue(_in_years_of_rules(c, unit, a, b, own), DURATION)
        return in_zones.or_computed(c, node, f"{near} AND {in_zones.between(clocks)}", there, found)

    return in_zones.named_once(c, [first, second], made)


def _clock_of(value: SqlValue) -> str:
    return f"CAST({value.sql} AS TIMESTAMP)" if value.type == DATE else exact.clock_of(value)


def _placed(c: Compiler, value: SqlValue, own: SqlValue) -> str:
    """Return SQL of the microseconds since 1970 at a value.

    One that lacks an offset has the one that the zone of ``own`` has when its clocks show that.
    """
    if exact.kind_of(value.type) is DateTime:
        return in_zones.passed(value)
    zone, offset, clock = exact.zone_of(own), offset_of(own), _clock_of(value)
    fixed = f"{offset} * 1000000::BIGINT"

    def at(passed: str) -> str:
        own_offset = f"coalesce(epoch_us(timezone({zone}, make_timestamptz({passed}))) - {passed}, {fixed})"
        return f"(epoch_us({clock}) - {own_offset})"

    shown = f"CASE WHEN {zone} IS NULL THEN epoch_us({clock}) - {fixed} ELSE {zones.by_rules(zone, clock)} END"
    return in_zones.bound(c, shown, at)


def _in_years_of_rules(c: Compiler, unit: str, first: SqlValue, second: SqlValue, own: SqlValue) -> str:
    """Return SQL of what lies between two values by the calendar of the first one's zone, as `temporal_between` says.

    What is asked of the two is put together once, with what follows from it: a name in SQL that is as short as that
    costs little, however often it stands there.
    """
    zone, offset = exact.zone_of(own), f"{offset_of(own)} * 1000000::BIGINT"
    rest = f"{exact.nanoseconds_of(second)} - {exact.nanoseconds_of(first)}"

    def shown(passed: str) -> str:
        return f"coalesce(timezone({zone}, make_timestamptz({passed})), make_timestamp({passed} + {offset}))"

    def of_both(passed: str, at: str) -> str:
        clock = _clock_of(first) if first is own else shown(passed)
        parts = {"clock": clock, "zone": zone, "past": f"epoch_us({clock}) - {passed}", "at": at, "rest": rest}
        parts |= {"ends": shown(at), "step": f"CASE WHEN ({at} - {passed}) * 1000 + {rest} > 0 THEN 1 ELSE -1 END"}
        packed = ", ".join(f"{name} := {part}" for name, part in parts.items())
        return in_zones.bound(c, f"struct_pack({packed})", lambda s: _Between(c, s).lies(unit).sql)

    def from_first(passed: str) -> str:
        at = _placed(c, second, own)
        return of_both(passed, at) if second.type != DATE else in_zones.bound(c, at, lambda at: of_both(passed, at))

    passed = _placed(c, first, own)
    return from_first(passed) if first is own else in_zones.bound(c, passed, from_first)


@dataclass(frozen=True, slots=True)
class _Between:
    """Two points in time in years of which SQL has the rules of the first one's zone: 64 bits have their nanoseconds.

    ``both`` names a struct: the ``clock`` that the first shows, its ``zone``, the microseconds that its offset is
    (``past`` UTC), the microseconds since 1970 ``at`` the second, the nanoseconds ``rest`` that the second has more,
    the clock at which it ``ends`` in that zone, and the ``step`` from the first to the second: 1 or -1.
    """

    c: Compiler
    both: str

    def _apart(self, clock: str) -> str:
        """Return the nanoseconds from one local date and time to that at the end."""
        return f"((epoch_us({self.both}.ends) - epoch_us({clock})) * 1000 + {self.both}.rest)"

    def _moved(self, months: str, days: str) -> str:
        moved = f"{self.both}.clock"
        moved += f" + to_months(CAST({months} AS INTEGER))" if months != "0" else ""
        return f"({moved}{f' + to_days(CAST({days} AS INTEGER))' if days != '0' else ''})"

    def _left(self, months: str, days: str) -> str:
        """Return the nanoseconds that pass from the first point in time, moved by units of the calendar, on."""
        s = self.both

        def left(to: str) -> str:
            usual = f"(epoch_us({to}) - {s}.past)"
            shows = f"coalesce(timezone({s}.zone, make_timestamptz({usual})) = {to}, TRUE)"
            at = f"CASE WHEN {shows} THEN {usual} ELSE {zones.by_rules(f'{s}.zone', to)} END"
            return f"({s}.at - {at}) * 1000 + {s}.rest"

        return in_zones.bound(self.c, self._moved(months, days), left)

    def _months(self) -> str:
        return _months(f"CAST({self.both}.clock AS DATE)", f"{self._apart(f'{self.both}.clock')} // {_DAY}")

    def _days(self, months: str) -> str:
        return f"({self._apart(self._moved(months, '0'))} // {_DAY})"

    def lies(self, unit: str) -> SqlValue:
        """Return what lies between them, in months, in days, in seconds, or in all units."""
        c, s, end, step = self.c, self.both, f"{self.both}.ends", f"{self.both}.step"
        if unit == "inseconds":
            apart = f"(({s}.at - epoch_us({s}.clock) + {s}.past) * 1000 + {s}.rest)"
            return packed("0", "0", *_clock(apart), end)
        if unit == "inmonths":

            def within(m: str) -> str:
                less = f"CASE WHEN {m} <> 0 AND ({self._left(m, '0')}) * {step} < 0 THEN {step} ELSE 0 END"
                return packed(f"({m} - {less})", "0", "0", "0", end).sql

            return SqlValue(in_zones.bound(c, self._months(), within), DURATION)

        def of_days(found: str) -> str:
            return packed("0", f"{found}.d", "0", "0", end).sql

        def of_all(found: str) -> str:
            return packed(f"{found}.m", f"{found}.d", *_clock(f"{found}.left"), end).sql

        months = "0::BIGINT" if unit == "indays" else self._months()
        first = self._tried(_each(c, f"[{months}]", lambda m: _units(m, self._days(m))))
        found = _each(c, _each(c, first, self._corrected), of_days if unit == "indays" else of_all)
        return SqlValue(f"({found})[1]", DURATION)

    def _tried(self, pairs: str) -> str:
        """Return SQL of months and days, with what is left beside them."""

        def left(pair: str) -> str:
            return f"struct_pack(m := {pair}.m, d := {pair}.d, left := {self._left(f'{pair}.m', f'{pair}.d')})"

        return _each(self.c, pairs, left)

    def _corrected(self, found: str) -> str:
        """Return months and days that do not lead past the second: a day less, or a month, where clocks were changed.

        No clocks were put back by a day: so the months are right where a day more than these is.
        """
        step, last = f"{self.both}.step", self.c.fresh()
        day_less = _units(f"{found}.m", f"({found}.d - {step})")
        month_less = in_zones.bound(
            self.c,
            self._days(f"({found}.m - {step})"),
            lambda d: f"[{_units(f'{found}.m - {step}', d)}, {_units(f'{found}.m - {step}', f'{d} - {step}')}]",
        )
        tried = self._tried(f"CASE WHEN {found}.d <> 0 THEN [{day_less}] ELSE {month_less} END")
        near = f"list_filter({tried}, lambda {last}: {last}.left * {step} >= 0)"
        return f"CASE WHEN {found}.left * {step} >= 0 THEN {found} ELSE ({near})[1] END"


def _units(months: str, days: str) -> str:
    return f"struct_pack(m := {months}, d := {days})"


def _each(c: Compiler, items: str, body: Callable[[str], str]) -> str:
    name = c.fresh()
    return f"list_transform({items}, lambda {name}: {body(name)})"


_DAY = 86_400 * 10**9
"""Nanoseconds."""


def _clock(nanoseconds: str) -> tuple[str, str]:
    """Return seconds and the nanoseconds that are left."""
    rest = f"(({nanoseconds} % {BILLION} + {BILLION}) % {BILLION})"
    return f"(({nanoseconds} - {rest}) // {BILLION})", rest


def _refused(node: ast.Expression) -> NotSupportedError:
    return NotSupportedError("such a duration is not supported in SQL", position=node.span.start)
