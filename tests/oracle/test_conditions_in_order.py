"""A condition that fails for some values is tested of no row that an earlier condition excludes.

The oracle is Python's ``all(...)``, over integers without bounds, but that null excludes nothing.  Where it comes to no number out of range and to
no division by zero, neither must a query, wherever it looks for its rows.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import takewhile

import pytest

import graphdb
from graphdb.common.errors import ExecutionError
from graphdb.dispatch.queries import Queries
from tests.fuzz import scaled

LARGEST = 2**63 - 1
VERTICES = [(1, LARGEST), (2, -LARGEST - 1), (3, 5), (1, 1), (3, 0), (2, 2**62), (1, None), (None, 7)]
Vertex = tuple[int | None, int | None]


class OutOfRange(ArithmeticError):
    """A number takes more than 64 bits."""


def fits(number: int) -> int:
    if not -LARGEST - 1 <= number <= LARGEST:
        raise OutOfRange
    return number


def known(compute: Callable[..., bool]) -> Callable[..., bool | None]:
    """Null where an operand is."""
    return lambda *operands: None if None in operands else compute(*operands)


ALONE: dict[str, Callable[[Vertex], bool | None]] = {
    "{}.x = 3": lambda v: known(lambda x: x == 3)(v[0]),
    "{}.x <> 2": lambda v: known(lambda x: x != 2)(v[0]),
    "{}.i < 6": lambda v: known(lambda i: i < 6)(v[1]),
    "{}.i <> 0": lambda v: known(lambda i: i != 0)(v[1]),
    "{}.i * {}.x < 9": lambda v: known(lambda x, i: fits(i * x) < 9)(*v),
    "-{}.i < {}.x": lambda v: known(lambda x, i: fits(-i) < x)(*v),
    "abs({}.i) % 2 = 1": lambda v: known(lambda i: fits(abs(i)) % 2 == 1)(v[1]),
    "10 / {}.i < 9": lambda v: known(lambda i: (10 // abs(i)) * (1 if i > 0 else -1) < 9)(v[1]),
}
BETWEEN: dict[str, Callable[[Vertex, Vertex], bool | None]] = {
    "a.x = b.x": lambda a, b: known(lambda x, y: x == y)(a[0], b[0]),
    "a.i < b.i": lambda a, b: known(lambda x, y: x < y)(a[1], b[1]),
    "a.i - b.i > -2": lambda a, b: known(lambda x, y: fits(x - y) > -2)(a[1], b[1]),
    "a.i + b.x <> 6": lambda a, b: known(lambda x, y: fits(x + y) != 6)(a[1], b[0]),
    "a.x / b.i = 0": lambda a, b: known(lambda x, y: abs(x) // abs(y) == 0)(a[0], b[1]),
}
FORMS = [
    "MATCH (a:V), (b:V) WHERE {} RETURN id(a), id(b)",
    "MATCH (a:V), (b:V) WITH a, b WHERE {} RETURN id(a), id(b)",
    "MATCH (a:V) WITH collect(a) AS l MATCH (b:V) UNWIND l AS a WITH a, b WHERE {} RETURN id(a), id(b)",
    "MATCH (a:V) MATCH (b:V) WITH a, b, {} AS holds WHERE holds RETURN id(a), id(b)",
    "MATCH (a:V), (b:V) UNWIND [x IN [1] WHERE {}] AS x RETURN id(a), id(b)",
    "MATCH (a:V) CALL (a) {{ MATCH (b:V) WHERE {} RETURN b }} RETURN id(a), id(b)",
    "MATCH (a:V), (b:V) WITH a, b, CASE WHEN {} THEN 1 END AS x WHERE x = 1 RETURN id(a), id(b)",
]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query(
            "UNWIND $rows AS row CREATE (:V {k: row[2], x: row[0], i: row[1]})",
            rows=[[*v, k] for k, v in enumerate(VERTICES)],
        )
        opened.query("CREATE (:Other {x: 3, i: 0}), (:Other {x: 1, i: $least})", least=-LARGEST - 1)
        yield opened


def expected(conditions: list[Callable[[Vertex, Vertex], bool | None]]) -> tuple[Counter[tuple[int, int]], bool]:
    """The pairs for which all conditions hold, and whether one fails for a pair for which those before it hold."""
    found, fails = Counter[tuple[int, int]](), False
    for (i, a), (j, b) in itertools.product(enumerate(VERTICES), repeat=2):
        try:
            tested = [*takewhile(lambda each: each is not False, (holds(a, b) for holds in conditions))]
            found[i, j] = len(tested) == len(conditions) and None not in tested
        except ArithmeticError:
            fails = True
    return +found, fails


EVERY = dict(BETWEEN)
for _text, _holds in ALONE.items():
    EVERY[_text.replace("{}", "a")] = lambda a, b, holds=_holds: holds(a)  # type: ignore[misc]
    EVERY[_text.replace("{}", "b")] = lambda a, b, holds=_holds: holds(b)  # type: ignore[misc]


def drawn(dice: random.Random) -> tuple[list[str], Counter[tuple[int, int]]]:
    """Conditions one of which would fail without those before it, and the pairs for which all of them hold."""
    while True:
        texts = dice.sample([*EVERY], dice.randint(2, 4))
        found, fails = expected([EVERY[text] for text in texts])
        if not fails and any(expected([EVERY[text]])[1] for text in texts):
            return texts, found


@pytest.mark.parametrize("seed", range(3))
def test_conditions_fail_only_where_they_are_asked(db: graphdb.Database, seed: int) -> None:
    dice = random.Random(seed)
    numbers = dict(db.query("MATCH (v:V) RETURN id(v), v.k").fetchall())
    for _ in range(scaled(150)):
        conditions, pairs = drawn(dice)
        text = dice.choice(FORMS).format(" AND ".join(conditions))
        inside = dice.random() < 0.3
        if inside:  # which an error would end
            db.query("BEGIN")
        found = Counter((numbers[a], numbers[b]) for a, b in db.query(text).fetchall())
        if inside:
            db.query("COMMIT")
        assert found == pairs, text


def test_a_condition_fails_where_it_is_asked(db: graphdb.Database) -> None:
    for text, (holds, form) in itertools.product(EVERY, itertools.product(["true", "a.k >= 0"], FORMS)):
        if expected([EVERY[text]])[1]:
            with pytest.raises(ExecutionError, match=r"out of range|division by zero"):
                db.query(form.format(f"{holds} AND {text}"))


def test_items_of_paths_are_out_of_range_only_where_they_are_asked(db: graphdb.Database) -> None:
    numbers = [1, 5, LARGEST, LARGEST, -LARGEST - 1]
    text = (
        "MATCH p = (a:N)-[:next*1..2]->(b:N) "
        "RETURN a.k, b.k, CASE WHEN b.k < 2 OR b.k = 4 AND a.k = 3 THEN reduce(s = 0, n IN nodes(p) | s + n.i) END"
    )
    pairs = [(a, b) for a in range(5) for b in range(a + 1, min(a + 3, 5))]
    asked = [pair for pair in pairs if pair[1] < 2 or pair == (3, 4)]
    expected = [(a, b, sum(map(fits, numbers[a : b + 1])) if (a, b) in asked else None) for a, b in pairs]
    db.query("UNWIND $rows AS row CREATE (:N {k: row[0], i: row[1]})", rows=[[*row] for row in enumerate(numbers)])
    try:
        db.query("MATCH (a:N), (b:N) WHERE b.k = a.k + 1 CREATE (a)-[:next]->(b)")
        assert "list_reduce" not in db.explain(text)  # as fast as if nothing could be out of range
        for _ in range(2):
            assert sorted(db.query(text).fetchall()) == expected
        assert "list_reduce" in db.explain(text)  # by now something was
        assert any("list_reduce" in row[0] for row in db.query(f"PROFILE {text}").fetchall())
        db.query("BEGIN")  # which an error would end
        assert "list_reduce" not in db.explain(text + " AS x")
        assert sorted(db.query(text + " AS x").fetchall()) == expected
        assert "list_reduce" in db.explain(text + " AS x")
        db.query("COMMIT")
        with pytest.raises(ExecutionError, match="out of range"):
            db.query(text.replace("b.k < 2", "b.k < 3"))
        setting = text.replace("RETURN a.k, b.k, CASE", "WITH b, max(CASE").replace(" END", " END) AS s SET b.s = s")
        sums = [(max((s for _, b, s in expected if b == k and s is not None), default=None),) for k in range(1, 5)]
        for begin, commit in [("", ""), ("BEGIN", "COMMIT")]:
            db.query(begin)
            assert "list_reduce" not in db.explain(setting)
            db.query(setting)
            db.query(commit)
            assert db.query("MATCH (n:N) WHERE n.k > 0 RETURN n.s ORDER BY n.k").fetchall() == sums
            db.query("MATCH (n:N) SET n.s = 7")
            db.query(begin)
            with pytest.raises(ExecutionError, match="out of range"):
                db.query(setting.replace("b.k < 2", "b.k < 3"))
            db.query(commit.replace("COMMIT", "ROLLBACK"))
            assert db.query("MATCH (n:N) RETURN DISTINCT n.s").fetchall() == [(7,)]
            setting += " "
    finally:
        db.query("MATCH (n:N) DETACH DELETE n")


def test_sums_that_are_bounded_fail_nowhere(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there was a number out of range, what cannot fail is known beforehand."""
    monkeypatch.setattr(Queries, "ventured", lambda self, text, run: run(True))
    some = "MATCH p = (a:V)-[:none*1..2]->(b:V) RETURN"
    for bounded in (
        "size([n IN nodes(p) WHERE n.i > 3])",
        "3 * size([n IN nodes(p) WHERE n.i > 3]) - length(p)",
        "reduce(s = 0, n IN nodes(p) | s + n.i % 10)",
        "reduce(s = 0, n IN nodes(p) | s + coalesce(abs(n.i % 3) * sign(n.x), 7))",
        "reduce(s = 0, n IN nodes(p) | s + CASE WHEN n.i > 3 THEN n.x / 5 % 7 ELSE -2 END)",
    ):
        assert "struct_pack(vertices" not in db.explain(f"{some} {bounded} AS n"), bounded
    for unbounded in (
        "reduce(s = 0, n IN nodes(p) | s + n.i)",
        f"reduce(s = 0, n IN nodes(p) | s + {LARGEST} * (n.i % 9))",
    ):
        assert "struct_pack(vertices" in db.explain(f"{some} {unbounded} AS n"), unbounded
