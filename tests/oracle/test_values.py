"""Values in SQL (dates, durations, maps, lists of several types …) against Python: the same rows.

The expressions come from a grammar that knows their types but not what SQL makes of them: some are SQL's own, some are
computed in Python once per distinct input, and a query may need both.  ``GRAPHDB_FUZZ`` multiplies the examples.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import SAME, scaled
from tests.oracle.databases import loaded
from tests.oracle.routes import in_python

pick = st.sampled_from


def _graph(seed: int) -> Iterator[str]:
    """Triples over nine vertices, of which some lack some properties."""
    dice, letters = random.Random(seed), "abcab"
    for i in range(9):
        v = f"<urn:x:v{i}>"
        day = f"{dice.choice(['1999', '2000', '2024'])}-{dice.choice(['02-28', '02-29', '12-31', '01-01', '05-17'])}"
        if day[:4] == "1999":
            day = day.replace("02-29", "03-01")
        clock = dice.choice(["00:00:00", "23:59:59.999999", "10:30:00", "07:08:09.5"])
        zone = dice.choice(["Z", "+02:00", "-05:30"])
        yield f'{v} a <urn:x:N> ; <urn:x:id> {i} ; <urn:x:name> "{letters[i % 5]}" ; <urn:x:age> {i % 3} .'
        if i % 4:
            yield f'{v} <urn:x:day> "{day}"^^<{XSD}date> ; <urn:x:at> "{day}T{clock}"^^<{XSD}dateTime> .'
            yield f'{v} <urn:x:clock> "{clock}"^^<{XSD}time> ; <urn:x:text> "{day}" ; <urn:x:weight> {i / 4}e0 .'
        if i % 5:
            yield f'{v} <urn:x:zoned> "{day}T{clock}{zone}"^^<{XSD}dateTime> .'
            took = dice.choice(["P1Y2M", "P3D", "PT1H30M", "-P1D", "P14M", "PT5400S"])
            yield f'{v} <urn:x:took> "{took}"^^<{XSD}duration> .'
        mixed = dice.choice(["1", "2.5e0", '"a"', "true", "1.25"])
        yield f"{v} <urn:x:mixed> {mixed} ; <urn:x:knows> <urn:x:v{dice.randrange(9)}> ."
    yield '<urn:x:v0> <urn:x:nick> "x", "y" . <urn:x:v1> <urn:x:nick> "y" .'


XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[graphdb.Database]]:
    with loaded(tmp_path_factory.mktemp("values"), map(_graph, range(3))) as found:
        yield found


class Values:
    """Writes one value of each type; ``n`` is a vertex, ``x`` an item of a list where one is at hand."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one_of(self, *choices: str | Callable[[], str]) -> str:
        """One of some texts; those that are long in the making are made when they are chosen."""
        chosen = self.draw(st.integers(0, len(choices) - 1))
        found = choices[chosen]
        return found if isinstance(found, str) else found()

    def any(self, depth: int) -> str:
        kind = self.one_of("int", "float", "text", "day", "at", "zoned", "clock", "span", "map", "list", "truth")
        return str(getattr(self, kind)(depth))

    def int(self, depth: int) -> str:
        leaf = self.one_of("1", "2", "-3", "n.id", "n.age", "null")
        if not depth:
            return leaf
        inner = depth - 1
        part = self.one_of(
            "year", "quarter", "month", "week", "weekYear", "day", "ordinalDay", "dayOfWeek", "dayOfQuarter"
        )
        tick = self.one_of("hour", "minute", "second", "millisecond", "microsecond", "nanosecond")
        unit = self.one_of(
            "years", "months", "days", "hours", "minutes", "seconds", "monthsOfYear", "nanosecondsOfSecond"
        )
        return self.one_of(
            leaf,
            lambda: f"({self.int(inner)} {self.one_of('+', '-', '*')} {self.int(inner)})",
            lambda: f"({self.day(inner)}).{part}",
            lambda: f"({self.at(inner)}).{self.one_of(part, tick)}",
            lambda: f"({self.clock(inner)}).{tick}",
            lambda: f"({self.zoned(inner)}).{self.one_of(part, tick, 'epochSeconds', 'offsetSeconds')}",
            lambda: f"({self.span(inner)}).{unit}",
            lambda: f"({self.map(inner)}).a",
            lambda: f"({self.map(inner)})['a']",
            lambda: f"size({self.list(inner)})",
            lambda: f"size(keys({self.map(inner)}))",
            lambda: f"reduce(t = {self.int(0)}, x IN [1, 2, {self.int(inner)}] | t + x * {self.int(0)})",
            lambda: f"toIntegerOrNull({self.any(inner)})",
            lambda: f"coalesce({self.int(inner)}, {self.int(0)})",
        )

    def float(self, depth: int) -> str:
        leaf = self.one_of("1.0", "2.5", "n.weight", "null")
        if not depth:
            return leaf
        function = self.one_of(
            "sqrt",
            "log",
            "log10",
            "atan",
            "degrees",
            "radians",
            "haversin",
            "cot",
            "asin",
            "acos",
            "ceil",
            "sinh",
            "cosh",
            "tanh",
            "coth",
        )
        return self.one_of(leaf, lambda: f"{function}({self.float(depth - 1)})", lambda: f"(n.id / {self.float(0)})")

    def text(self, depth: int) -> str:
        leaf = self.one_of("'a'", "n.name", "n.text", "null")
        if not depth:
            return leaf
        return self.one_of(
            leaf,
            lambda: f"toString({self.any(depth - 1)})",
            lambda: f"({self.map(depth - 1)}).b",
            lambda: f"({self.zoned(0)}).timezone",
            lambda: f"({self.text(depth - 1)} || {self.text(0)})",
            lambda: f"{self.one_of('l', 'r', 'b')}trim({self.text(depth - 1)}, {self.text(0)})",
            lambda: f"nullIf({self.text(depth - 1)}, {self.text(0)})",
        )

    def day(self, depth: int) -> str:
        leaf = self.one_of("n.day", "n.day", "date('2000-02-29')", "date(n.text)", "null")
        if not depth:
            return leaf
        inner = depth - 1
        unit = self.one_of("year", "month", "week", "quarter", "decade", "century", "day", "weekYear")
        return self.one_of(
            leaf,
            lambda: f"date({self.one_of(lambda: self.at(inner), lambda: self.day(inner), lambda: self.zoned(inner))})",
            lambda: f"date({{year: 2000 + {self.int(0)}, month: 2, day: 3}})",
            lambda: f"({self.day(inner)} {self.one_of('+', '-')} {self.span(inner)})",
            lambda: f"date.truncate('{unit}', {self.one_of(lambda: self.day(inner), lambda: self.at(inner))})",
            lambda: f"date.truncate('{unit}', {self.day(inner)}, {{day: 2}})",
        )

    def at(self, depth: int) -> str:
        leaf = self.one_of("n.at", "n.at", "localdatetime('2001-02-03T04:05:06.000000789')", "null")
        if not depth:
            return leaf
        inner = depth - 1
        unit = self.one_of("year", "month", "day", "hour", "minute", "second", "millisecond")
        return self.one_of(
            leaf,
            lambda: (
                f"localdatetime({self.one_of(lambda: self.day(inner), lambda: self.at(inner), lambda: self.zoned(inner))})"
            ),
            lambda: f"({self.at(inner)} {self.one_of('+', '-')} {self.span(inner)})",
            lambda: f"localdatetime.truncate('{unit}', {self.at(inner)})",
        )

    def zoned(self, depth: int) -> str:
        leaf = self.one_of(
            "n.zoned", "datetime('2020-06-01T12:00+02:00[Europe/Berlin]')", "datetime('1999-01-01T00:00Z')", "null"
        )
        if not depth:
            return leaf
        return self.one_of(
            leaf, lambda: f"({self.zoned(0)} + {self.span(depth - 1)})", lambda: f"datetime({self.at(depth - 1)})"
        )

    def clock(self, depth: int) -> str:
        leaf = self.one_of("n.clock", "localtime('10:00:00.5')", "null")
        if not depth:
            return leaf
        return self.one_of(
            leaf, lambda: f"({self.clock(0)} + {self.span(depth - 1)})", lambda: f"localtime({self.at(depth - 1)})"
        )

    def span(self, depth: int) -> str:
        leaf = self.one_of("n.took", "duration('P1M')", "duration({days: 1, hours: 12})", "null")
        if not depth:
            return leaf
        inner = depth - 1
        return self.one_of(
            leaf,
            lambda: f"duration({{months: {self.int(inner)}, days: {self.int(0)}, seconds: {self.int(0)}}})",
            lambda: f"({self.span(inner)} {self.one_of('+', '-')} {self.span(0)})",
            lambda: f"({self.span(inner)} {self.one_of('*', '/')} {self.one_of('2', '3', '0.5')})",
            lambda: (
                f"duration.{self.one_of('between', 'inDays', 'inMonths', 'inSeconds')}({self.day(inner)}, {self.day(0)})"
            ),
            lambda: (
                f"duration.{self.one_of('between', 'inDays', 'inMonths', 'inSeconds')}({self.day(0)}, {self.at(inner)})"
            ),
            lambda: f"duration.between({self.at(inner)}, {self.at(0)})",
        )

    def map(self, depth: int) -> str:
        leaf = self.one_of(
            "n {.id, .name}", "{a: n.id, b: n.name}", "{a: 1}", "n {.*}", "properties(n)", "null", "{A: 1, a: 2}"
        )
        if not depth:
            return leaf
        inner = depth - 1
        return self.one_of(
            leaf,
            lambda: f"{{a: {self.int(inner)}, b: {self.any(inner)}}}",
            lambda: f"n {{{self.one_of('.age', '.*')}, a: {self.any(inner)}}}",
        )

    def list(self, depth: int) -> str:
        leaf = self.one_of(
            "[1, 2, 3]", "[n.id, n.name]", "[n.day, null]", "[]", "[n.mixed] + ['z']", "[n.weight, n.id]"
        )
        if not depth:
            return leaf
        inner = depth - 1
        return self.one_of(
            leaf,
            lambda: f"[{self.any(inner)}, {self.any(inner)}]",
            lambda: f"[x IN {self.list(inner)} | {self.one_of('[x]', '{a: x}', 'toString(x)', 'x')}]",
            lambda: f"({self.list(inner)} + {self.list(0)})",
            lambda: f"tail({self.list(inner)})",
            lambda: f"{self.list(inner)}[0..1]",
        )

    def truth(self, depth: int) -> str:
        kind = self.one_of("int", "day", "at", "zoned", "clock", "span", "map", "list", "text")
        same = getattr(self, kind)
        inner = max(depth - 1, 0)
        operator = self.one_of("=", "<>", "<", ">=")
        return self.one_of(
            f"{same(inner)} {operator} {same(0)}",
            lambda: f"{same(inner)} {operator} {self.any(0)}",
            f"{same(inner)} IN [{same(0)}, {same(0)}]",
            lambda: f"{same(inner)} IN {self.list(inner)}",
            f"{same(inner)} IS NULL",
            lambda: f"any(x IN {self.list(inner)} WHERE x = {self.any(0)})",
            f"({same(inner)} = {same(0)} OR n.id > 3)",
        )


@st.composite
def queries(draw: st.DrawFn) -> str:
    values = Values(draw)
    where = f" WHERE {values.truth(2)}" if draw(st.booleans()) else ""
    value, other = values.any(2), values.any(1)
    ordering = draw(pick(["", " ORDER BY v", " ORDER BY v DESC", f" ORDER BY {values.any(1)}"]))
    limit = " LIMIT 3" if ordering == " ORDER BY v" else ""
    match draw(st.integers(0, 6)):
        case 0:
            return f"MATCH (n:N){where} RETURN DISTINCT {value} AS v{ordering if 'v' in ordering[-6:] else ''}"
        case 1:
            function = draw(pick(["count(DISTINCT", "collect(", "collect(DISTINCT", "min(", "max("]))
            return f"MATCH (n:N){where} RETURN {other} AS k, {function} {value}) AS v"
        case 2:
            function = draw(pick(["sum", "avg", "stDev", "stDevP"]))
            inner = draw(pick([values.int(2), values.float(1), values.span(1)]))
            return f"MATCH (n:N){where} RETURN {function}({inner}) AS v, percentileDisc({values.int(1)}, 0.4) AS p"
        case 3:
            return (
                f"MATCH (n:N) WITH {value} AS v, n{where} MATCH (n)-[:knows]->(m) RETURN v, m.id AS id, {{v: v}}.v AS w"
            )
        case 4:
            return f"MATCH (n:N){where} UNWIND {values.list(2)} AS v RETURN v, n.id AS id, [v, 1] AS l"
        case 5:
            return f"MATCH (n:N) WITH collect({value}) AS vs RETURN size(vs) AS s, [v IN vs | {{a: v}}] AS l, head(vs) IS NULL AS h"
    return f"MATCH (n:N){where} RETURN {value} AS v, {other} AS w{ordering}{limit}"


# --- the comparison --------------------------------------------------------------------------------------------


def _plain(value: Any) -> str:
    """A value as text; the items of a list in no order, which collect() does not promise; floats but for rounding."""
    if isinstance(value, list):
        return f"[{', '.join(sorted(map(_plain, value)))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_plain(item)}' for key, item in value.items())}}}"
    if isinstance(value, float):
        return f"{value:.9g}f" if value else "0"  # the sum of no floats is 0 or 0.0
    if getattr(value, "tzinfo", None) is not None and hasattr(value, "astimezone"):
        return str(value.astimezone(UTC))  # a property's zone is not SQL's
    return repr(value)


def _bag(rows: list[tuple[Any, ...]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(_plain, row)) for row in rows)


def _compare(database: graphdb.Database, text: str) -> None:
    note(text)
    try:
        expected = in_python(database, text)  # type: ignore[arg-type]
    except graphdb.GraphDBError as error:
        event(f"error: {type(error).__name__}")
        with pytest.raises(graphdb.GraphDBError):
            database.query(text).fetchall()
        return
    report = database.explain(text)
    event("computed" if "computed in Python" in report else "SQL")
    found = database.query(text).fetchall()
    if "LIMIT" in text:  # of equal rows any may come first
        assert [_plain(row[0]) for row in found] == [_plain(row[0]) for row in expected]
        return
    assert _bag(found) == _bag(expected)


@settings(
    max_examples=scaled(150),
    deadline=None,
    derandomize=SAME,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(text=queries(), number=st.integers(0, 2))
def test_values_in_sql_are_those_of_python(databases: list[graphdb.Database], text: str, number: int) -> None:
    _compare(databases[number], text)
