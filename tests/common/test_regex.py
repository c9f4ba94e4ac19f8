"""``=~`` has one engine: the same answers and errors in SQL and in Python, in time linear in the text."""

from __future__ import annotations

import random

import pytest

import graphdb
from graphdb.common.errors import ExecutionError
from tests.stops import PATIENCE, Stopwatch

ROUTES = {
    "constant": "UNWIND [$text] AS t RETURN t =~ '{}'",
    "parameter": "UNWIND [$text] AS t RETURN t =~ $pattern",
    "row": "UNWIND [{{t: $text, p: $pattern}}] AS m WITH m.t AS t, m.p AS p RETURN t =~ p",
    "in Python": "WITH [$text, 1, [$pattern]] AS l RETURN l[0] =~ l[2][0]",
}
"""Ways to a match: as SQL with a pattern that DuckDB knows when it binds, or does not, and in Python."""


@pytest.fixture(scope="module")
def db() -> graphdb.Database:
    db = graphdb.connect(device="cpu")
    for query in ROUTES.values():  # imports what it needs
        db.query(query.format("a"), {"text": "a", **({"pattern": "a"} if "$pattern" in query else {})})
    return db


def answers(db: graphdb.Database, text: str, pattern: str) -> set[object]:
    found: set[object] = set()
    quoted = pattern.replace("\\", "\\\\").replace("'", "\\'")
    for query in ROUTES.values():
        query = query.format(quoted)
        given = {"text": text, **({"pattern": pattern} if "$pattern" in query else {})}
        try:
            found.add(db.query(query, given).scalar())
        except ExecutionError as error:
            found.add(error.message.partition(" is no regular expression: ")[2])
    return found


@pytest.mark.parametrize("route", ROUTES)
def test_a_pattern_that_backtracks_takes_no_time(db: graphdb.Database, route: str) -> None:
    pattern = "(a|a)*b"
    query = ROUTES[route].format(pattern)
    watch = Stopwatch()
    given = {"text": "a" * 28, **({"pattern": pattern} if "$pattern" in query else {})}
    assert db.query(query, given, timeout=PATIENCE).scalar() is False
    assert watch.seconds() < 2


@pytest.mark.parametrize(
    "pattern",
    ["(", "a)", "[a", "*a", "a**", "a{2,1}", "a{1001}", "[z-a]", "\\", "\\1", "(?=a)", "(?<=a)b", "(?<x>a)", "(?z)a"],
)
def test_invalid_patterns_give_the_same_error(db: graphdb.Database, pattern: str) -> None:
    (report,) = answers(db, "ab", pattern)
    assert isinstance(report, str)
    assert report


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("a\nb", "a.b", False),
        ("a\nb", "(?s)a.b", True),
        ("a\n", "a$", False),
        ("Ä", "(?i)ä", True),
        ("(?<", r"\Q(?<\E", True),
        ("(?<", r"[(][?]<", True),
        ("x٣", r"x\d", False),
        ("é", ".", True),
        ("", "", True),
        ("ab", "(?P<x>a)b", True),
    ],
)
def test_the_syntax_is_re2s(db: graphdb.Database, text: str, pattern: str, matches: bool) -> None:
    assert answers(db, text, pattern) == {matches}


def test_random_patterns_are_answered_alike(db: graphdb.Database) -> None:
    chance = random.Random(16)
    pieces = [
        "a",
        "b",
        "é",
        ".",
        "*",
        "+",
        "?",
        "|",
        "(",
        ")",
        "[",
        "]",
        "^",
        "$",
        "\\",
        "{2}",
        "{1,",
        "(?i)",
        "-",
        "\\d",
    ]
    for _ in range(60):
        pattern = "".join(chance.choices(pieces, k=chance.randint(1, 7)))
        text = "".join(chance.choices("abé1\n-", k=chance.randint(0, 5)))
        assert len(answers(db, text, pattern)) == 1, (text, pattern)
