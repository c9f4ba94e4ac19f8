"""Quantifiers and comprehensions over maps of an argument, which are joined with the rows: against Python's own lists."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphdb

Row = dict[str, Any]
Truth = bool | None

PEOPLE: list[Row] = [
    {"i": i, "k": None if i % 7 == 3 else i % 6, "w": None if i % 5 == 2 else i % 4, "t": "ab"[i % 2]}
    for i in range(200)
]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND $rows AS r CREATE (:P {i: r.i, k: r.k, w: r.w, t: r.t})", rows=PEOPLE)
        yield database


def _rows(kind: str) -> list[Row]:
    """Maps to be joined with: whose keys are there, are missing or null, or of several types."""
    dice = random.Random(kind)
    rows: list[Row] = []
    for number in range(40):
        key: Any = dice.randrange(9)
        if kind == "nulls" and number % 9 == 4:
            key = None
        if kind == "types" and number % 3:
            key = dice.choice([float(key), key + 0.5, "a", True])
        rows.append({"k": key, "n": dice.choice([0, 1, 2, 3, None]), "t": dice.choice(["a", "b", None]), "o": number})
        if kind == "nulls" and number % 9 == 5:
            del rows[-1]["k"]
    return rows


def _equal(a: Any, b: Any) -> Truth:
    if a is None or b is None:
        return None
    numeric = [isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b)]
    return bool(a == b) if all(numeric) or type(a) is type(b) else False


def _less(a: Any, b: Any) -> Truth:
    return None if a is None or b is None else bool(a < b)


def _and(*parts: Truth) -> Truth:
    return False if False in parts else None if None in parts else True


def _not(part: Truth) -> Truth:
    return None if part is None else not part


def _or(*parts: Truth) -> Truth:
    return _not(_and(*map(_not, parts)))


CONDITIONS: dict[str, Callable[[Row, Row], Truth]] = {
    "r.k = a.k": lambda r, a: _equal(r.get("k"), a["k"]),
    "r.k = a.k AND a.w > r.n": lambda r, a: _and(_equal(r.get("k"), a["k"]), _less(r["n"], a["w"])),
    "a.w >= r.n AND (r.t = a.t OR r.n = 0) AND a.k = r.k": lambda r, a: _and(
        _not(_less(a["w"], r["n"])), _or(_equal(r["t"], a["t"]), _equal(r["n"], 0)), _equal(r.get("k"), a["k"])
    ),
    "r.k = a.k + 1 AND NOT r.t = a.t": lambda r, a: _and(
        _equal(r.get("k"), None if a["k"] is None else a["k"] + 1), _not(_equal(r["t"], a["t"]))
    ),
    "r.k <> a.k OR a.w < r.n": lambda r, a: _or(_not(_equal(r.get("k"), a["k"])), _less(a["w"], r["n"])),
    "NOT (r.k = a.k AND r.t = 'a')": lambda r, a: _not(_and(_equal(r.get("k"), a["k"]), _equal(r["t"], "a"))),
}


def _quantified(quantifier: str, answers: list[Truth]) -> Truth:
    if quantifier == "single":
        holding = answers.count(True)
        return False if holding > 1 else None if None in answers else holding == 1
    if quantifier == "any":
        return _or(*answers, False)
    return _and(*(_not(each) if quantifier == "none" else each for each in answers), True)


CASES = [*((condition, "nulls") for condition in CONDITIONS), *((each, "types") for each in list(CONDITIONS)[2:4])]


@pytest.mark.parametrize(("condition", "kind"), CASES)
@pytest.mark.parametrize("quantifier", ["any", "none", "single", "all"])
def test_quantifiers(db: graphdb.Database, quantifier: str, condition: str, kind: str) -> None:
    rows, test = _rows(kind), f"{quantifier}(r IN $rows WHERE {condition})"
    held = [(a["i"], _quantified(quantifier, [CONDITIONS[condition](r, a) for r in rows])) for a in PEOPLE]
    assert sorted(db.query(f"MATCH (a:P) RETURN a.i, {test}", rows=rows).fetchall()) == held
    for clauses, wanted in (
        (f"MATCH (a:P) WHERE {test}", True),
        (f"MATCH (a:P) WHERE NOT {test}", False),
        (f"MATCH (a:P) WITH a WHERE a.i < 0 OR {test}", True),
    )[: 2 if "NOT" in condition else 3]:
        found = sorted(i for (i,) in db.query(f"{clauses} RETURN a.i", rows=rows).fetchall())
        assert found == [i for i, holds in held if holds is wanted], clauses


@pytest.mark.parametrize(("condition", "kind"), CASES[1:])
def test_comprehensions(db: graphdb.Database, condition: str, kind: str) -> None:
    """Items come in the order of the list."""
    rows = _rows(kind)
    chosen = {a["i"]: [r for r in rows if CONDITIONS[condition](r, a)] for a in PEOPLE}
    listed = f"[r IN $rows WHERE {condition}"
    for text, of in (
        (f"size({listed}])", len),
        (f"{listed} | r.o]", lambda found: [r["o"] for r in found]),
        (f"head({listed} | r.n])", lambda found: found[0]["n"] if found else None),
        (f"{listed}]", lambda found: found),
    ):
        found = {i: repr(value) for i, value in db.query(f"MATCH (a:P) RETURN a.i, {text}", rows=rows).fetchall()}
        assert found == {i: repr(of(each)) for i, each in chosen.items()}, text
    summed = db.query(f"MATCH (a:P) RETURN a.w, sum(size({listed}])) AS n", rows=rows).fetchall()
    totals = Counter[Any]()
    for a in PEOPLE:
        totals[a["w"]] += len(chosen[a["i"]])
    assert dict(summed) == {w: totals[w] for w in {a["w"] for a in PEOPLE}}


def test_values_of_both(db: graphdb.Database) -> None:
    """What a comprehension makes of an item may name the row, and stand within a subquery."""
    rows = _rows("plain")
    text = "MATCH (a:P) RETURN a.i, [r IN $rows WHERE r.k = a.k AND r.n IS NOT NULL | r.n + a.i]"
    expected = {a["i"]: [r["n"] + a["i"] for r in rows if r["k"] == a["k"] and r["n"] is not None] for a in PEOPLE}
    assert dict(db.query(text, rows=rows).fetchall()) == expected
    within = "MATCH (a:P) RETURN a.i, COUNT { MATCH (b:P) WHERE b.i > a.i AND any(r IN $rows WHERE r.k = b.k AND r.n > b.w) }"
    held = {b["i"] for b in PEOPLE if any(CONDITIONS["r.k = a.k"](r, b) and _less(b["w"], r["n"]) for r in rows)}
    assert dict(db.query(within, rows=rows).fetchall()) == {
        a["i"]: len([i for i in held if i > a["i"]]) for a in PEOPLE
    }


def test_rows_are_joined(db: graphdb.Database) -> None:
    """No quantifier over all maps is tested on each row."""
    text = "EXPLAIN MATCH (a:P) WHERE any(r IN $rows WHERE r.k = a.k AND a.w > r.n) RETURN a.i"
    plan = "\n".join(line for (line,) in db.query(text, rows=_rows("plain")).fetchall())
    assert "computed in Python" not in plan
    assert "list_filter" not in plan


def test_groups_are_shared(db: graphdb.Database) -> None:
    """Subqueries beside one another that take the same of the rows run for the same groups of them."""
    one, two = (f"COUNT {{ UNWIND $rows AS r WITH r WHERE r.k = a.k AND r.n < {n} RETURN r }}" for n in (1, 3))
    text, rows = f"MATCH (a:P) RETURN a.i, {one}, {two}", _rows("plain")
    plan = "\n".join(line for (line,) in db.query(f"EXPLAIN {text}", rows=rows).fetchall())
    assert plan.count("SELECT DISTINCT") == 1
    number = [Counter(r["k"] for r in rows if r["n"] is not None and r["n"] < n) for n in (1, 3)]
    assert sorted(db.query(text, rows=rows).fetchall()) == [
        (a["i"], *(each[a["k"]] for each in number)) for a in PEOPLE
    ]


def test_unwound_rows_keep_their_conditions(db: graphdb.Database) -> None:
    """Conditions of a WITH after UNWIND are tested with the join, whatever the WITH hands on."""
    rows = _rows("plain")
    pairs = [
        (a["i"], r["o"])
        for a in PEOPLE
        for r in rows
        if a["k"] == r["k"] and CONDITIONS["r.k = a.k AND a.w > r.n"](r, a)
    ]
    for clauses in (
        "WITH a, r WHERE r.k = a.k AND a.w > r.n RETURN a.i, r.o",
        "WITH * WHERE r.k = a.k AND a.w > r.n RETURN a.i, r.o",
        "WITH a.i AS i, r.o AS o, a, r WHERE a.k = r.k AND a.w > r.n RETURN i, o",
        "WITH a AS b, r WHERE r.k = b.k AND a.w > r.n RETURN b.i, r.o",
        "WITH r, a.i AS i WHERE r.k = a.k AND a.w > r.n RETURN i, r.o",
    ):
        found = db.query(f"MATCH (a:P) UNWIND $rows AS r {clauses}", rows=rows).fetchall()
        assert sorted(found) == sorted(pairs), clauses
    limited = db.query(
        "MATCH (a:P) UNWIND $rows AS r WITH a, r ORDER BY a.i, r.o LIMIT 9 WHERE r.k = a.k RETURN a.i, r.o", rows=rows
    )
    assert sorted(limited.fetchall()) == [(0, r["o"]) for r in rows[:9] if r["k"] == 0]


def test_subqueries_over_values(db: graphdb.Database) -> None:
    """A subquery that asks a vertex for values alone runs for these: whatever it hands on."""
    counted = "CALL (a) { UNWIND [a.w, 2, 1] AS x WITH a, x WHERE x > 1 RETURN count(x) AS n }"
    expected = {a["i"]: len([x for x in (a["w"], 2, 1) if x is not None and x > 1]) for a in PEOPLE}
    for text in (
        f"MATCH (a:P) {counted} RETURN a.i, n",
        f"MATCH (a:P) {counted.replace('(a) {', '{ WITH a')} RETURN a.i, n",
    ):
        assert dict(db.query(text).fetchall()) == expected
    for asked in (
        "COUNT { UNWIND [a.w, a.w] AS x WITH x WHERE x > 1 RETURN x }",
        "COUNT { UNWIND [1, 2] AS x WITH x AS b WHERE b > 1 RETURN b }",
    ):
        found = dict(db.query(f"MATCH (a:P) RETURN a.i, {asked}").fetchall())
        assert found == {a["i"]: 1 if "AS b" in asked else 2 * ((a["w"] or 0) > 1) for a in PEOPLE}
