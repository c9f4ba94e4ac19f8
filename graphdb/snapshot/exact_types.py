"""The types of properties that are lists, durations or exact times, and SQL of their values: which texts alone say.

A literal's kind says that it is a list, or temporal (:class:`~graphdb.common.values.terms.Kind`), and no more.  Where
the texts of all values of a property are of one of the forms here, SQL has a type for them: lists of integers, floats,
strings or truth values, durations in whole numbers, and times of one kind, at an offset, in a zone or of nanoseconds,
with others to the microsecond among them.  Python reads what else there is (a list of several types, of lists or of
dates, a point in time at an offset that its zone does not have then) as its text says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.duration_texts import duration_of
from graphdb.common.values.temporal import DateTime, LocalDateTime, LocalTime
from graphdb.common.values.terms import LITERAL_BASE, XSD, Kind
from graphdb.common.values.time_texts import time_of
from graphdb.common.values.types import (
    BOOLEAN,
    DURATION,
    EXACT,
    FLOAT,
    IN_ZONE,
    INTEGER,
    STRING,
    Type,
    list_of,
)
from graphdb.common.values.zones import are_in_zones
from graphdb.storage.catalog import EdgeLabel


@dataclass(frozen=True, slots=True)
class Form:
    """How the texts of values are written, and the type that holds these."""

    type: Type
    test: str
    """SQL of whether a text has this form, over the alias ``l`` of the literal table."""
    value: str
    """SQL of the value of such a text; of any other it fails not, for DuckDB may compute it before it is chosen."""

    def holds(self, connection: Connection, literals: str, given: Mapping[str, object]) -> bool:
        """Whether literals that have this form, whose ids a query returns, are what SQL takes them for."""
        # DuckDB would take the texts of all literals apart before it finds out which ones are asked for.
        among = f"l AS MATERIALIZED (SELECT l.text FROM {_AMONG.format(literals)})"
        times = f"WITH {among}, times AS MATERIALIZED (SELECT {self.value} AS t FROM l)"
        return not self.type.by_name or are_in_zones(connection, times, given)


_INTEGER = "-?[0-9]{1,18}"
_NUMBER = r"-?(?:[0-9]{1,17}\.[0-9]{1,40}|[0-9](?:\.[0-9]{1,40})?[eE][+-]?[0-2]?[0-9]{1,2})"
_FLOAT = f"(?:{_NUMBER}|-?INF|NaN)"
_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
"""An escaped character beyond 16 bits: a half of it alone is none."""
_ESCAPED = rf'\\(?:["\\/bfnrt]|u[0-9a-ce-fA-CE-F][0-9a-fA-F]{{3}}|u[dD][0-7][0-9a-fA-F]{{2}}|{_PAIR})'
_STRING = rf'"(?:[^"\\\x00-\x1f]|{_ESCAPED})*"'
_BOOLEAN = "true|false"


def _list(element: Type, item: str, value: str) -> Form:
    item = f"(?:{item}|null)"
    return Form(list_of(element), rf"regexp_full_match(l.text, '\[(?:{item}(?:, ?{item})*)?\]')", value)


_LISTS = (
    _list(INTEGER, _INTEGER, "TRY_CAST(l.text AS BIGINT[])"),
    _list(FLOAT, _FLOAT, "TRY_CAST(l.text AS DOUBLE[])"),
    _list(
        STRING,
        _STRING,
        "CASE WHEN starts_with(l.text, '[') AND json_valid(l.text) THEN from_json(l.text, '[\"VARCHAR\"]') END",
    ),
    _list(BOOLEAN, _BOOLEAN, "TRY_CAST(l.text AS BOOLEAN[])"),
)

_IS_DURATION, _DURATION = duration_of("l.text")
_DURATIONS = (Form(DURATION, f"(l.datatype = '{XSD}duration' AND {_IS_DURATION})", _DURATION),)

_TIMES = {of: Form(type, *time_of(type, "l.text", "l.datatype")) for of, type in EXACT.items()}
_IN_ZONE = Form(IN_ZONE, *time_of(IN_ZONE, "l.text", "l.datatype"))

_EXACT = 1 << Kind.TEMPORAL
_FORMS = {
    1 << Kind.LIST: _LISTS,
    _EXACT: (*_DURATIONS, *_TIMES.values(), _IN_ZONE),
    _EXACT | 1 << Kind.TIME: (_TIMES[LocalTime],),
    _EXACT | 1 << Kind.DATETIME: (_TIMES[LocalDateTime],),
    _EXACT | 1 << Kind.ZONED: (_TIMES[DateTime], _IN_ZONE),
}
"""By the kinds of a property's literals."""


_FEW = 100


def form_of(connection: Connection, label: EdgeLabel) -> Form | None:
    """Return the form of all values of a property of vertices; None where they have none."""
    return form_among(connection, label.kinds, _literals_of(label)) if label.max_values == 1 else None


def form_among(connection: Connection, kinds: int, literals: str) -> Form | None:
    """Return the form of literals of some kinds (bits), whose ids a query returns; None where they have none."""
    forms = _FORMS.get(kinds, ())
    for among in (f"{literals} LIMIT {_FEW}", literals):  # a few rule most forms out
        fitting = zip(forms, _fit(connection, forms, among, {}), strict=True) if forms else ()
        forms = tuple(form for form, fits in fitting if fits)
    return forms[0] if forms else None


def still_fits(connection: Connection, label: EdgeLabel, form: Form, vertices: list[int]) -> bool:
    """Whether the values that some vertices have by now are of the form of the others."""
    if label.max_values != 1 or form not in _FORMS.get(label.kinds, ()):
        return False
    of = f"{_literals_of(label)} AND subject IN (SELECT unnest($vertices::BIGINT[]))"
    return _fit(connection, (form,), of, {"vertices": vertices})[0]


def _literals_of(label: EdgeLabel) -> str:
    """Return a query for the literals that are values of a property of vertices."""
    return f"SELECT object FROM _graphdb.triple WHERE label = {int(label.id)} AND object >= {LITERAL_BASE}"


_AMONG = "_graphdb.literal l WHERE l.id IN ({})"


def _fit(
    connection: Connection, forms: tuple[Form, ...], literals: str, given: Mapping[str, object]
) -> tuple[bool, ...]:
    """Return which forms all of some literals have."""
    tests = ", ".join(f"coalesce(bool_and({form.test}), TRUE)" for form in forms)
    [row] = connection.rows(f"SELECT {tests} FROM {_AMONG.format(literals)}", given)
    return tuple(
        fits and (any(row[:i]) or form.holds(connection, literals, given))
        for i, (form, fits) in enumerate(zip(forms, row, strict=True))
    )
