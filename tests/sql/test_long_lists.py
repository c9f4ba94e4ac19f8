"""Long lists that are written out: one token, looked up rather than compared with each item, in little memory."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

import graphdb
from graphdb.common.errors import ParameterError, ParseError
from graphdb.evaluate.context import Context
from graphdb.grammar import syntax as s
from graphdb.grammar.parser import parse

VALUES: list[object] = [1, 7, -3, 2**62, 1.0, 2.5, 0.0, True, "a", "it's", "1", "ä\n", "", [1], None]


@pytest.fixture(scope="module")
def db() -> graphdb.Database:
    db = graphdb.connect(device="cpu")
    db.query("UNWIND range(0, 40) AS i CREATE (:N {i: i, s: 's' + i, f: i / 2.0})")
    db.query("UNWIND $values AS v CREATE (:V {v: v})", values=[1, 7, -3, 1.0, 2.5, True, "a", "1"])
    return db


def written(values: list[object]) -> str:
    quoted = [
        repr(v) if isinstance(v, int) else "'" + str(v).replace("'", "\\'").replace("\n", "\\n") + "'" for v in values
    ]
    return "[" + ", ".join(quoted) + "]"


def long_of(values: list[object]) -> list[object]:
    """Make a list long without changing what is in it."""
    return [values[i % len(values)] for i in range(300)]


def test_long_lists_mean_what_short_ones_do(db: graphdb.Database) -> None:
    chance = random.Random(3)
    pools: list[list[object]] = [[1, 7, -3, 2**62, 2, 30], ["a", "it's", "1", "ä\n", "", "s3"]]
    queries = (
        "UNWIND $values AS v RETURN v IN {}",
        "UNWIND [[$values]] AS r UNWIND r[0] AS v RETURN NOT v IN {}",
        "MATCH (n:V) WHERE n.v IN {} RETURN n.v",
        "MATCH (n:V) RETURN n.v IN {}",
        "MATCH (n:N) WHERE n.i IN {} OR n.s IN {} RETURN n.i",
        "MATCH (n:N) WHERE NOT n.f IN {} RETURN n.i",
        "RETURN [x IN [1, 2, 'a', null] WHERE x IN {}], size([x IN {} | x]) > 0",
        "UNWIND {} AS x RETURN DISTINCT x",
    )
    for query in queries:
        for _ in range(3):
            pool = chance.choice(pools)
            few = chance.sample(pool, chance.randint(1, len(pool)))
            given = {"values": VALUES} if "$values" in query else {}
            short = db.query(query.replace("{}", written(few)), given).fetchall()
            whole = db.query(query.replace("{}", written(long_of(few))), given).fetchall()
            asked = db.query(query.replace("{}", "$few"), {**given, "few": long_of(few)}).fetchall()
            assert sorted(whole, key=repr) == sorted(short, key=repr) == sorted(asked, key=repr), (query, few)


PAIRS = [[n % 53 - 3, n * 7 % 41] for n in range(6000)] + [[], [5], [None, 3], (2, None, 1)]


@pytest.mark.parametrize("pairs", [PAIRS, [[f"s{x}" for x in pair] for pair in PAIRS[:6000]]])
def test_a_long_list_of_lists_is_a_column(db: graphdb.Database, pairs: list[list[object]]) -> None:
    """Vertices by an item of each were compared with it by Python, one pair after the other."""
    key = "s" if isinstance(pairs[0][0], str) else "i"
    known: dict[object, int] = {i if key == "i" else f"s{i}": i for i in range(41)}
    text = f"UNWIND $pairs AS p MATCH (a:N {{{key}: p[0]}}), (b:N {{{key}: p[1]}}) RETURN a.i, b.i, p[2]"
    assert "Python" not in db.explain(text, pairs=pairs)
    found = db.query(text, pairs=pairs).fetchall()
    assert sorted(found, key=repr) == sorted(
        [
            (known[pair[0]], known[pair[1]], pair[2] if len(pair) > 2 else None)
            for pair in pairs
            if len(pair) > 1 and pair[0] in known and pair[1] in known
        ],
        key=repr,
    )
    lists = db.query("UNWIND $pairs AS p RETURN p, size(p), p[-1]", pairs=pairs).fetchall()
    assert lists == [([*pair], len(pair), pair[-1] if pair else None) for pair in pairs]


def test_a_long_list_is_one_constant() -> None:
    values = tuple(range(-100, 200))
    texts = ("it's", 'say "x"', "a\\b", "ü", "", "x,]") * 20
    for given, text in ((values, written([*values])), (texts, "[" + " ,\n".join(map(_double, texts)) + " ]")):
        query = parse(f"RETURN /* [1 */ {text} // ]\n AS x")
        assert isinstance(query, s.Query | s.Composite)
        (item,) = query.returns.items if isinstance(query, s.Query) else query.parts[0][0].items  # type: ignore[union-attr]
        assert item.expression == s.Literal(given)


def _double(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


@pytest.mark.parametrize("wrong", ["9223372036854775808", "-9223372036854775809", "1" * 5000])
def test_a_number_out_of_range_is_an_error_with_its_place(wrong: str) -> None:
    text = "RETURN [" + "1, " * 200 + wrong + "]"
    with pytest.raises(ParseError, match="out of range") as caught:
        parse(text)
    assert caught.value.column == text.index(wrong) + 1


_LARGE = """
import sys
import graphdb
db = graphdb.connect(device="cpu", memory_limit="1GB")
db.query("UNWIND range(1, 1000) AS i CREATE (:P {k: i, s: 's' + i})")
numbers = "[" + ",".join(map(str, range(500, 100500))) + "]"
texts = "[" + ",".join(f"'s{i}'" for i in range(500, 100500)) + "]"
assert db.query(f"MATCH (a:P) WHERE a.k IN {numbers} RETURN count(*)").scalar() == 501
assert db.query(f"MATCH (a:P) WHERE NOT a.s IN {texts} RETURN count(*)").scalar() == 499
assert db.query(f"MATCH (a:P) RETURN sum(CASE WHEN a.k IN {numbers} THEN 1 ELSE 0 END)").scalar() == 501
with open("/proc/self/status") as status:  # ru_maxrss is at least what the process had that started this one
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(peak >> 10)
"""


def test_a_hundred_thousand_literals_fit_the_memory_limit() -> None:
    ran = subprocess.run([sys.executable, "-c", _LARGE], capture_output=True, text=True, check=True, timeout=120)
    assert int(ran.stdout) < 1024


def test_lists_are_joined_without_a_look_at_their_items(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    valued = Context.valued

    def noted(context: Context, value: object) -> object:
        looked.append(len(value) if isinstance(value, list) else 0)
        return valued(context, value)

    monkeypatch.setattr(Context, "valued", noted)
    doubled = "reduce(s = [$one], i IN range(1, 12) | s + s || [])"
    assert db.query(f"RETURN size({doubled}) AS n", one=1).fetchall() == [(4096,)]
    assert max(looked, default=0) < 4096


@pytest.mark.parametrize(
    "leaves", [[1, -7, 2**62], [0.5, -0.0], ["a", "", "ä"], [True, False], [1, None], [1, 2.5], ["a", 1]]
)
def test_items_of_lists_in_lists_are_pythons(db: graphdb.Database, leaves: list[object]) -> None:
    """Lists of lists come to SQL whole where their values are of one type, else value by value."""
    dice = random.Random(5)

    def drawn(depth: int) -> list[object]:
        return [drawn(depth - 1) if depth else dice.choice(leaves) for _ in range(dice.randint(0, 4))]

    text = "UNWIND range(-4, 4) AS i RETURN i, $e[i], $e[i][0], size($e[i]), $e[i] = $e[0], $e"
    for given in (drawn(dice.randint(1, 2)) for _ in range(12)):
        for i, item, first, size, same, whole in db.query(text, e=given).fetchall():
            there = given[i] if -len(given) <= i < len(given) else None
            assert (whole, item) == (given, there)
            assert (first, size) == (
                (there[0] if there else None, len(there)) if isinstance(there, list) else (None, None)
            )
            known = isinstance(there, list) and not _has_null(there + given[0])
            assert not known or same == (there == given[0])


def _has_null(value: object) -> bool:
    return value is None or (isinstance(value, list) and any(map(_has_null, value)))


def test_values_in_lists_that_are_none_are_refused(db: graphdb.Database) -> None:
    for given in ([[1, 2**63]], [["a", "\ud800"]]):
        with pytest.raises(ParameterError):
            db.query("UNWIND [0] AS i RETURN $e[i]", e=given)
