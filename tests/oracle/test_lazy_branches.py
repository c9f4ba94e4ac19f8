"""What CASE, AND, OR and coalesce do not come to does not fail, be it a subquery or a list of what is looked up.

The oracle computes with Python: its conditional expressions and ``and``, ``or`` evaluate no more than they need either.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

import graphdb
from graphdb.common.errors import ExecutionError
from tests.fuzz import scaled

VALUES: list[int | None] = [None, 0, 1, 2, 3, 1]
EDGES = [(1, 2), (2, 3), (3, 4), (4, 1), (5, 5), (0, 2), (3, 0)]

Row = tuple[int, int]
"""The vertices of a match ``p = (a)-[:E]->(b)``."""


def whole(a: int, b: int) -> int:
    """Divide as openCypher does, which leaves out the rest."""
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def divided(a: int | None, b: int | None) -> int | None:
    if a is not None and b == 0:
        raise ZeroDivisionError
    return None if a is None or b is None else whole(a, b)


def numbers(last: int | None) -> list[int]:
    if last is None:
        raise ZeroDivisionError
    return list(range(last + 1))


def after(vertex: int) -> list[int]:
    return [end for start, end in EDGES if start == vertex]


FAILING: dict[str, Callable[[Row], int | None]] = {
    "COUNT { UNWIND range(0, a.v) AS i RETURN i }": lambda r: len(numbers(VALUES[r[0]])),
    "COUNT { (a)-[:E]->(c) WHERE c.k / a.v >= 0 }": lambda r: sum(
        (q := divided(c, VALUES[r[0]])) is not None and q >= 0 for c in after(r[0])
    ),
    "size(COLLECT { MATCH (c:V) RETURN DISTINCT range(0, b.v) AS l })": lambda r: len({*[len(numbers(VALUES[r[1]]))]}),
    "size([(b)-[:E]->(c) | 7 / b.v])": lambda r: len([divided(7, VALUES[r[1]]) for _ in after(r[1])]),
    "size([i IN range(0, a.v) WHERE nodes(p)[i % 2].k > 1])": lambda r: sum(
        r[i % 2] > 1 for i in numbers(VALUES[r[0]])
    ),
    "size([n IN nodes(p) WHERE n.k / a.v > 0])": lambda r: sum(
        (q := divided(n, VALUES[r[0]])) is not None and q > 0 for n in r
    ),
    "reduce(s = 0, n IN nodes(p) | s + n.k / b.v)": lambda r: folded([divided(n, VALUES[r[1]]) for n in r]),
    "size([x IN [a.v] WHERE EXISTS { (c:V) WHERE c.k = 6 / x }])": lambda r: int(
        divided(6, VALUES[r[0]]) in range(len(VALUES))
    ),
}


def folded(found: list[int | None]) -> int | None:
    return None if None in found else sum(number for number in found if number is not None)


@dataclass(frozen=True)
class Part:
    """A part of an expression: its text, and what it yields for a row."""

    text: str
    of: Callable[[Row], int | None]


def condition(dice: random.Random) -> tuple[str, Callable[[Row], bool | None]]:
    """A condition that fails nowhere."""
    name, at = dice.choice([("a", 0), ("b", 1)])
    least = dice.choice([0, 1, 2])
    value: Callable[[Row], int | None] = lambda row: VALUES[row[at]]  # noqa: E731
    return dice.choice(
        [
            (f"{name}.v > {least}", lambda row: None if (v := value(row)) is None else v > least),
            (f"{name}.v IS NULL", lambda row: value(row) is None),
            (f"{name}.v = {least}", lambda row: None if (v := value(row)) is None else v == least),
            (
                f"EXISTS {{ ({name})-[:E]->(c) WHERE c.k > {least} }}",
                lambda row: any(c > least for c in after(row[at])),
            ),
        ]
    )


def expression(dice: random.Random, depth: int) -> Part:
    """An expression that may fail for some rows, where some of its parts ask for others only for some."""
    kind = dice.choice(["case", "case", "else", "coalesce", "and", "or", "inside"]) if depth else ""
    if not kind:
        text, of = dice.choice([*FAILING.items()])
        return Part(text, of)
    part, other = expression(dice, depth - 1), expression(dice, depth - 1)
    test, holds = condition(dice)
    match kind:
        case "case":
            more, also = condition(dice)
            return Part(
                f"CASE WHEN {test} THEN {part.text} WHEN {more} THEN 7 ELSE {other.text} END",
                lambda row: part.of(row) if holds(row) else 7 if also(row) else other.of(row),
            )
        case "else":
            return Part(
                f"CASE a.v WHEN 0 THEN -1 WHEN {other.text} THEN 4 ELSE {part.text} END",
                lambda row: (
                    -1
                    if VALUES[row[0]] == 0
                    else 4
                    if None not in (found := (VALUES[row[0]], other.of(row))) and found[0] == found[1]
                    else part.of(row)
                ),
            )
        case "coalesce":
            return Part(
                f"coalesce(b.v, {part.text}, {other.text})",
                lambda row: next(
                    (v for each in (lambda r: VALUES[r[1]], part.of, other.of) if (v := each(row)) is not None), None
                ),
            )
        case "inside":
            return Part(
                f"COUNT {{ MATCH (d:V) WHERE d.k < 2 AND CASE WHEN {test} THEN {part.text} > d.k END }}",
                lambda row: sum(bool(holds(row) and (v := part.of(row)) is not None and v > d) for d in range(2)),
            )
    word, decides = ("AND", False) if kind == "and" else ("OR", True)

    def both(row: Row) -> int | None:
        first = holds(row)
        if first is decides:
            return int(decides)
        second = None if (v := part.of(row)) is None else v > 1
        found = decides if second is decides else None if None in (first, second) else not decides
        return None if found is None else int(found)

    return Part(f"CASE ({test} {word} {part.text} > 1) WHEN true THEN 1 WHEN false THEN 0 END", both)


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        rows = [[k, v] for k, v in enumerate(VALUES)]
        opened.query("UNWIND $rows AS row CREATE (:V {k: row[0], v: row[1]})", rows=rows)
        for start, end in EDGES:
            opened.query("MATCH (a:V {k: $start}), (b:V {k: $end}) CREATE (a)-[:E]->(b)", start=start, end=end)
        yield opened


FORMS = [
    "MATCH p = (a:V)-[:E]->(b:V) RETURN a.k, b.k, {} AS x",
    "MATCH p = (a:V)-[:E]->(b:V) WITH a, b, p, {} AS x RETURN a.k, b.k, x",
    "MATCH p = (a:V)-[:E]->(b:V) UNWIND [{}] AS x RETURN a.k, b.k, x",
    "MATCH (a:V) MATCH p = (a)-[:E]->(b) CALL (a, b, p) {{ RETURN {} AS x }} RETURN a.k, b.k, x",
    "MATCH p = (a:V)-[:E]->(b:V) RETURN a.k, b.k, max({}) AS x",
]


@pytest.mark.parametrize("text", FAILING)
def test_what_is_asked_for_fails(db: graphdb.Database, text: str) -> None:
    for form in FORMS[:2]:
        with pytest.raises(ExecutionError, match=r"division by zero|range needs integers, found null"):
            db.query(form.format(text)).fetchall()


@pytest.mark.parametrize("seed", range(2))
def test_what_is_not_asked_for_does_not_fail(db: graphdb.Database, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(scaled(40)):
        while True:
            part = expression(dice, dice.choice([1, 1, 2]))
            try:
                expected = sorted(((*row, part.of(row)) for row in EDGES), key=repr)
            except ZeroDivisionError:
                continue
            break
        text = dice.choice(FORMS).format(part.text)
        inside = dice.random() < 0.3
        if inside:  # which an error would end
            db.query("BEGIN")
        try:
            found = sorted(db.query(text).fetchall(), key=repr)
        finally:
            if inside:
                db.query("ROLLBACK")
        assert found == expected, text


def test_writes_ask_for_no_more(db: graphdb.Database) -> None:
    branch = "CASE WHEN a.v IS NULL THEN -1 ELSE COUNT { UNWIND range(0, a.v) AS i RETURN i } END"
    db.query("BEGIN")
    db.query(f"MATCH (a:V) SET a.n = {branch}")
    assert [row[0] for row in db.query("MATCH (a:V) RETURN a.n ORDER BY a.k").fetchall()] == [
        -1 if v is None else v + 1 for v in VALUES
    ]
    db.query("ROLLBACK")
