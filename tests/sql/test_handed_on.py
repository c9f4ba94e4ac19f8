"""Values of properties with several values or several types: handed on, negated, computed with; as Python has them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import graphdb
from graphdb.common.errors import TypeMismatchError
from tests.oracle.routes import in_python

DATA = """
<http://x/a> <http://x/name> "one" . <http://x/a> <http://x/tag> "a" . <http://x/a> <http://x/tag> "b" .
<http://x/b> <http://x/name> "two" . <http://x/b> <http://x/tag> "c" .
<http://x/c> <http://x/name> "three" .
"""
TAGS = {"one": ["a", "b"], "two": "c", "three": None}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    path: Path = tmp_path_factory.mktemp("data") / "tags.nt"
    path.write_text(DATA.replace(" . ", " .\n"))
    with graphdb.connect(device="cpu", threads=1) as database:
        database.load(path)
        database.query(
            "CREATE (:M {i: 1, m: true, d: 1}), (:M {i: 2, m: 'x', d: 0.5}), (:M {i: 3, m: false, d: $d}), (:M {i: 4})",
            d=Decimal("2.5"),
        )
        yield database


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n.tag", lambda tag: tag),
        ("[n.tag, 1]", lambda tag: [tag, 1]),
        ("[n.tag]", lambda tag: [tag]),
        ("{t: n.tag}", lambda tag: {"t": tag}),
        ("coalesce(n.tag, 'none')", lambda tag: tag or "none"),
        ("coalesce(null, n.tag)", lambda tag: tag),
        ("CASE WHEN n.name = 'three' THEN 0 ELSE n.tag END", lambda tag: tag or 0),
        ("CASE n.name WHEN 'one' THEN n.tag ELSE 1 END", lambda tag: tag if tag == ["a", "b"] else 1),
        ("[x IN [n.tag, 1] | x]", lambda tag: [tag, 1]),
    ],
)
def test_several_values_are_handed_on_as_a_list(db: graphdb.Database, expression: str, expected: object) -> None:
    assert callable(expected)
    for text in (
        f"MATCH (n) WHERE n.name IS NOT NULL RETURN n.name, {expression}",
        f"MATCH (n) WHERE n.name IS NOT NULL WITH n, {expression} AS t RETURN n.name, t",
    ):
        assert dict(db.query(text).fetchall()) == {name: expected(tag) for name, tag in TAGS.items()}, text
        assert rows_of(db, text) == sorted(map(repr, in_python(db, text)))


def rows_of(db: graphdb.Database, text: str) -> list[str]:
    return sorted(map(repr, db.query(text).fetchall()))


@pytest.mark.parametrize(
    "expression", ["NOT n.m", "n.m AND true", "n.m XOR true", "n.m OR false", "CASE WHEN n.m THEN 1 END"]
)
def test_operators_of_truth_values_fail_for_others(db: graphdb.Database, expression: str) -> None:
    for run in (lambda text: db.query(text).fetchall(), lambda text: in_python(db, text)):
        with pytest.raises(TypeMismatchError, match="expected a condition"):
            run(f"MATCH (n:M) RETURN n.i, {expression}")
        found = dict(run(f"MATCH (n:M) WHERE n.i <> 2 RETURN n.i, {expression}"))
        true, false = {"NOT n.m": (False, True), "n.m XOR true": (False, True)}.get(expression, (True, False))
        if expression.startswith("CASE"):
            true, false = 1, None
        assert found == {1: true, 3: false, 4: None}
        assert [i for (i,) in run("MATCH (n:M) WHERE n.m RETURN n.i")] == [1]


def test_a_condition_fails_for_its_own_vertices_alone(db: graphdb.Database) -> None:
    assert db.query("MATCH (n:M {i: 3}) WHERE NOT n.m RETURN n.i").fetchall() == [(3,)]
    assert db.query("MATCH (n:M {i: 1})-[e]->(m) WHERE NOT m.m RETURN m.i").fetchall() == []


@pytest.mark.parametrize("expression", ["n.d + $d", "$d - n.d", "n.d * $d", "n.d * 2", "n.d % $d", "-n.d", "n.d / $d"])
def test_decimals_among_other_numbers_stay_decimals(db: graphdb.Database, expression: str) -> None:
    text = f"MATCH (n:M) WHERE n.d IS NOT NULL RETURN n.i, {expression}"
    given = {"d": Decimal("1.25")} if "$d" in expression else {}
    found = dict(db.query(text, given).fetchall())
    assert repr(sorted(found.items())) == repr(sorted(in_python(db, text, given)))
    if "/" not in expression:
        assert isinstance(found[3], Decimal)
        assert isinstance(found[2], float)
