"""Zones by name in SQL: DuckDB's rules (those of ICU, which is in its library), where they are Python's.

The two have their rules from releases of the IANA Time Zone Database that need not be the same, and differ for many
zones before 1970.  So the rules of a zone are compared once in a process, when it is first met: at all changes of its
clocks from :data:`FIRST` to :data:`LAST`, and every three days in between.  Who finds a zone among those of
:func:`agreed` may leave to SQL what is between :data:`NEAR` on its clocks; Python computes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.temporal import DAY, SECOND, at_instant, zoned

FIRST, LAST = 0, 2_145_916_800
"""The points in time, in seconds since 1970, between which rules are compared: the beginnings of 1970 and 2038."""

NEAR = "TIMESTAMP '1970-01-08' AND TIMESTAMP '2037-12-24'"
"""The local dates and times between which SQL uses them: a week nearer, in which no duration's parts lead out again."""

_STEP = 5 * 86_400
"""Seconds between the points in time at which all zones are looked at: no clocks were changed twice within them."""

_MOST = 64
"""Zones that are compared at once, at some 20 ms each."""

_AGREE: dict[str, bool] = {}
"""Of zones that were compared: whether their rules are the same."""


def agreed() -> list[str]:
    """Return the zones that were compared, and have the same rules."""
    return [name for name, agrees in _AGREE.items() if agrees]


def compare(connection: Connection, names: Iterable[str]) -> None:
    """Compare the rules of some zones with DuckDB's, if that was not done before."""
    new = sorted({*names} - _AGREE.keys())
    if not new or len(new) > _MOST:
        return
    known = connection.rows(
        "SELECT name FROM pg_timezone_names() WHERE name IN (SELECT unnest($names))", {"names": new}
    )
    for (name,) in known:
        _AGREE[name] = _agrees(connection, name)
    for name in new:
        _AGREE.setdefault(name, False)


def _agrees(connection: Connection, name: str) -> bool:
    try:
        info = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # DuckDB has names that Python has not
        return False
    offsets = [_offset(info, each) for each in _grid()]
    instants: list[int] = []
    there: list[int] = []
    clocks: list[int] = []
    for at, before, after in _changes(info, offsets):
        instants += (at - 1, at)
        there += (before, after)
        clocks += {at + offset + second for offset in (before, after, (before + after) // 2) for second in (-1, 0)}
    passed = [zoned(each * SECOND // DAY, each * SECOND % DAY, name).instant // SECOND for each in clocks]
    shown = "epoch_us(timezone($zone, make_timestamptz(i * 1000000))) = (i + o) * 1000000"
    pairs = (
        (shown, f"unnest(range({FIRST}, {LAST}, {_STEP})) AS i, unnest($offsets::BIGINT[]) AS o"),
        (shown, "unnest($instants::BIGINT[]) AS i, unnest($there::BIGINT[]) AS o"),
        (
            f"{by_rules('$zone', 'make_timestamp(c * 1000000)')} = p * 1000000",
            "unnest($clocks::BIGINT[]) AS c, unnest($passed::BIGINT[]) AS p",
        ),
    )
    tests = " AND ".join(f"coalesce((SELECT bool_and({test}) FROM (SELECT {of})), TRUE)" for test, of in pairs)
    given = {"offsets": offsets, "instants": instants, "there": there, "clocks": clocks, "passed": passed}
    [(same,)] = connection.rows(f"SELECT {tests}", {"zone": name, **given})
    return bool(same)


_ODD = 1000
"""Points in time, at most, whose offsets are left to Python: they are at others than their zones have in SQL."""


def are_in_zones(connection: Connection, times: str, given: Mapping[str, object]) -> bool:
    """Whether points in time are all at the offsets that their zones have.

    They are structs ``t`` in the relation ``times``, which begins as a clause WITH.
    """
    found = connection.rows(f"{times} SELECT DISTINCT t.zone FROM times WHERE t.zone IS NOT NULL", given)
    compare(connection, [name for (name,) in found])
    instant = 'epoch_us(t.clock) - t."offset" * 1000000::BIGINT'
    shown = f"timezone(t.zone, make_timestamptz({instant})) = t.clock"
    of_sql = f"CASE WHEN list_contains($agreed, t.zone) AND t.clock BETWEEN {NEAR} THEN {shown} ELSE FALSE END"
    odd = connection.rows(
        f'{times} SELECT DISTINCT t.zone, {instant}, t."offset" FROM times '
        f"WHERE t.zone IS NOT NULL AND NOT ({of_sql}) LIMIT {_ODD + 1}",
        {**given, "agreed": agreed()},
    )
    return len(odd) <= _ODD and all(has_offset(zone, at * 1000, offset) for zone, at, offset in odd)


def has_offset(zone: str, instant: int, offset: int) -> bool:
    """Whether there is a zone, and it has an offset, in seconds, at a point in time, in nanoseconds since 1970."""
    try:
        return at_instant(instant, zone).offset == offset
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


@cache
def _grid() -> list[datetime]:
    return [_at(each) for each in range(FIRST, LAST, _STEP)]


def _changes(info: ZoneInfo, offsets: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield when the clocks of a zone are changed, from which offset, and to which one, all in seconds.

    ``offsets`` are those of the grid.
    """
    for i, (before, after) in enumerate(pairwise(offsets)):
        if before == after:
            continue
        low, high = FIRST + i * _STEP, FIRST + (i + 1) * _STEP
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(info, _at(middle)) == before else (low, middle)
        yield high, before, _offset(info, _at(high))


def _at(instant: int) -> datetime:
    return datetime.fromtimestamp(instant, UTC)


def _offset(info: ZoneInfo, at: datetime) -> int:
    offset = at.astimezone(info).utcoffset() or timedelta()
    return offset.days * 86_400 + offset.seconds


# --- SQL -------------------------------------------------------------------------------------------------------

_HOURS = 3 * 3_600_000_000
"""Three hours in microseconds: since 1970 no clocks were put back by more."""


def by_rules(zone: str, clock: str) -> str:
    """Return SQL of the microseconds since 1970 when clocks of a zone (SQL) show a local date and time (SQL).

    One that they skip is as much later as they are put forward, as DuckDB has it; one that they show twice is the
    earlier, where DuckDB has the later.
    """
    shown = f"timezone({zone}, make_timestamptz(later - {_HOURS}))"
    earlier = f"(epoch_us({clock}) - epoch_us({shown}) + later - {_HOURS})"
    there = f"timezone({zone}, make_timestamptz({earlier})) = {clock}"
    found = f"CASE WHEN {there} THEN least({earlier}, later) ELSE later END"
    return f"(list_transform([epoch_us(timezone({zone}, {clock}))], lambda later: {found}))[1]"


def when_shown(zone: str, clock: str, offset: str) -> str:
    """Return the same, at an offset in seconds (SQL) where the zone has that then, or where its name is null."""
    at = f"(epoch_us({clock}) - {offset} * 1000000::BIGINT)"
    usual = f"coalesce(timezone({zone}, make_timestamptz({at})) = {clock}, TRUE)"
    return f"CASE WHEN {usual} THEN {at} ELSE {by_rules(zone, clock)} END"
