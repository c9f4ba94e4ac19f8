"""Texts that begin with, end with or contain one of many words: one regular expression, with what Python says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

import graphdb

CHARACTERS = "ab.*\\|()[]{}^$+?- \n#é_0/"

HOLDS: dict[str, Callable[[str, str], bool]] = {
    "STARTS WITH": str.startswith,
    "ENDS WITH": str.endswith,
    "CONTAINS": str.__contains__,
}


@pytest.fixture(scope="module")
def data() -> Iterator[tuple[graphdb.Database, list[str | None]]]:
    dice = random.Random(2)
    texts: list[str | None] = ["".join(dice.choices(CHARACTERS, k=dice.randrange(7))) for _ in range(200)]
    texts[5] = None
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND $rows AS r CREATE (:T {i: r.i, t: r.t})", rows=[{"i": i, "t": t} for i, t in enumerate(texts)])
        yield db, texts


@pytest.mark.parametrize("operator", HOLDS)
@pytest.mark.parametrize("longest", [1, 3])
def test_any_and_none(data: tuple[graphdb.Database, list[str | None]], operator: str, longest: int) -> None:
    db, texts = data
    dice = random.Random(longest)
    words = [
        "".join(dice.choices(CHARACTERS, k=dice.randrange(1, longest + 1))) for _ in range(11 if longest == 1 else 150)
    ]
    holds = [None if t is None else any(HOLDS[operator](t, word) for word in words) for t in texts]
    test = f"(w IN $words WHERE a.t {operator} w)"
    found = db.query(f"MATCH (a:T) RETURN a.i, any{test}, none{test} ORDER BY a.i", words=words).fetchall()
    assert found == [(i, x, None if x is None else not x) for i, x in enumerate(holds)]
    for quantifier, wanted in (("any", True), ("none", False)):
        rows = db.query(f"MATCH (a:T) WHERE {quantifier}{test} RETURN a.i ORDER BY a.i", words=words).fetchall()
        assert rows == [(i,) for i, x in enumerate(holds) if x is wanted]
    plan = db.query(f"EXPLAIN MATCH (a:T) WITH a WHERE any{test} RETURN a.i", words=words).fetchall()
    assert any("regexp_full_match" in line for (line,) in plan)
    written = ", ".join("'" + word.replace("\\", "\\\\").replace("\n", "\\n") + "'" for word in words)
    rows = db.query(
        f"MATCH (a:T) WHERE any(w IN [{written}] WHERE a.t {operator} w) RETURN a.i ORDER BY a.i"
    ).fetchall()
    assert rows == [(i,) for i, x in enumerate(holds) if x]


def test_other_lists(data: tuple[graphdb.Database, list[str | None]]) -> None:
    """With an empty word, null or a number among the words, of any number of these, and of computed texts."""
    db, texts = data
    some = [*"ab.*()[]+?"]
    count = "MATCH (a:T) WHERE any(w IN $words WHERE toUpper(a.t) CONTAINS w) RETURN count(*)"
    for words in ([*some, ""], [*some, None], [*some, 7], some[:3], [], [c.upper() for c in some] * 50):
        there = [word for word in words if isinstance(word, str)]
        expected = sum(any(word in t.upper() for word in there) for t in texts if t is not None)
        assert db.query(count, words=words).fetchall() == [(expected,)]
    text = "MATCH (a:T) RETURN sum(size([w IN $words WHERE a.t CONTAINS w]))"
    assert db.query(text, words=some).fetchall() == [(sum(w in t for t in texts if t is not None for w in some),)]
