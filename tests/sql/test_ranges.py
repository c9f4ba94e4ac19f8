"""Ranges: rows in blocks, whatever their bounds and steps, and no longer lists than there is room for."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

import graphdb
from graphdb.common.errors import ExecutionError, MemoryLimitError, QueryTimeout
from graphdb.sql.types import ranges
from tests.fuzz import scaled
from tests.stops import PATIENCE

FAR = 2**63 - 1
"""Multiplies the number of random ranges."""


@pytest.fixture(scope="module")
def db() -> graphdb.Database:
    return graphdb.connect(device="cpu", memory_limit="1GB")


def expected(first: int, last: int, step: int) -> list[int]:
    return list(range(first, last + (1 if step > 0 else -1), step))


def test_rows_of_ranges_are_those_of_python(db: graphdb.Database) -> None:
    chance = random.Random(7)
    cases = [(1, 3, 1), (1, 0, 1), (5, 1, -2), (0, 1023, 1), (0, 1024, 1), (0, 4096, 2), (1, 5000, 1), (5000, 1, -1)]
    cases += [(FAR - 3000, FAR, 1), (-FAR, -FAR - 1, -1), (-FAR, FAR, 2**51), (FAR, -FAR, -(2**60)), (-FAR, FAR, FAR)]
    for _ in range(scaled(20)):
        step = chance.choice([1, -1, 3, -7, 1000, 2**40])
        first = chance.randint(-100, 100)
        cases.append((first, first + chance.randint(-2, 5000) * step, step))
    for first, last, step in cases:
        given = {"first": first, "last": last, "step": step}
        found = db.query("UNWIND range($first, $last, $step) AS n RETURN n", given).fetchall()
        assert [n for (n,) in found] == expected(first, last, step), given
        maps = {"rows": [[first, last, step]]}
        found = db.query("UNWIND $rows AS r UNWIND range(r[0], r[1], r[2]) AS n RETURN n", maps).fetchall()
        assert [n for (n,) in found] == expected(first, last, step), given


def test_rows_keep_what_is_beside_them_and_their_order(db: graphdb.Database) -> None:
    found = db.query("UNWIND range(1, 3000) AS a UNWIND range(a, 3000, 1000) AS b RETURN a, b, a * b AS c").fetchall()
    assert found == [(a, b, a * b) for a in range(1, 3001) for b in range(a, 3001, 1000)]


@pytest.mark.parametrize("last", [10**9, 10**12, FAR])
@pytest.mark.parametrize(
    "query",
    [
        "UNWIND range(1, {}) AS n RETURN count(*)",
        "UNWIND range(1, $last) AS n RETURN count(*)",
        "UNWIND [{}] AS last UNWIND range(1, last) AS n RETURN count(*)",
        "RETURN size(range(1, {}))",
        "RETURN reduce(s = 0, n IN range(1, {}) | s + n)",
        "RETURN size([n IN range(1, {}) WHERE n % 2 = 0 | n])",
    ],
)
def test_a_list_that_is_too_long_is_refused_before_it_is_made(db: graphdb.Database, query: str, last: int) -> None:
    given = {"last": last} if "$last" in query else {}
    with pytest.raises(MemoryLimitError, match="range of more than 10,000,000 items"):
        db.query(query.format(last), given, timeout=PATIENCE)


@pytest.mark.parametrize("bounds", ["1, 5, 0", "null, 5", "1, null", "1, 5, null"])
def test_wrong_bounds_are_errors(db: graphdb.Database, bounds: str) -> None:
    for query in (f"UNWIND range({bounds}) AS n RETURN n", f"UNWIND [1] AS one UNWIND range({bounds}) AS n RETURN n"):
        with pytest.raises(ExecutionError, match="range needs"):
            db.query(query)


def test_nested_ranges_stop(db: graphdb.Database) -> None:
    """Each vector of rows would have lists of 20 GB."""
    with pytest.raises(QueryTimeout):
        db.query(
            "UNWIND range(1, 3000000) AS a UNWIND range(1, a + 9000000 - 3000000) AS b RETURN max(a * b)", timeout=0.5
        )
    assert db.query("RETURN 1").scalar() == 1


@pytest.mark.parametrize("most", [2**21, 3000, 10])
def test_lists_of_ranges_are_those_of_python(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Whether it is known before the run that the lists of some rows fit in memory, or not."""
    monkeypatch.setattr(ranges, "ITEMS", most)
    chance = random.Random(most)
    for _ in range(scaled(2)):
        step = chance.choice([1, -1, 3, -7])
        rows = [[first, first + chance.randint(-2, 900) * step] for first in chance.choices(range(-50, 50), k=30)]
        bounds = f"r[0], r[1], {step}"
        lists = [expected(first, last, step) for first, last in rows]
        last = 2 * most if most < 10_000 else 2000
        for form, wanted in {
            f"sum(size(range({bounds})))": sum(map(len, lists)),
            f"collect(range({bounds})[2])": [x[2] for x in lists if len(x) > 2],
            f"collect(range({bounds}))": lists,
            f"sum(size([x IN range({bounds}) WHERE x % 3 = 0 | x + r[0]]))": sum(x % 3 == 0 for l in lists for x in l),
            f"sum(reduce(s = 0, x IN range({bounds}) | s + x))": sum(map(sum, lists)),
            f"collect(all(x IN range({bounds}) WHERE x > r[0] - 5))": [
                all(x > first - 5 for x in l) for (first, _), l in zip(rows, lists, strict=True)
            ],
            "sum(size([x IN [1, 3] | range(x, r[1])]))": 2 * len(rows),
            f"sum(size([x IN range(0, {last}) WHERE x < r[0]]))": sum(
                min(max(first, 0), last + 1) for first, _ in rows
            ),
        }.items():
            found = db.query(f"UNWIND $rows AS r RETURN {form} AS found", rows=rows).scalar()
            assert found == wanted, (form, rows)


def test_lists_that_do_not_fit_are_an_error(db: graphdb.Database) -> None:
    """The lists of a chunk of rows are in memory together."""
    rows = "UNWIND range(1, 1000) AS a "
    for form in ("size([x IN range(1, a * 10000) WHERE x % 3 = 0])", "[x IN [a, 'a'] | range(1, 9999 * a)]"):
        with pytest.raises(MemoryLimitError, match="do not fit in memory"):
            db.query(f"{rows} RETURN {form} AS l").fetchall()
    sums = "UNWIND range(1, a * 10000) AS x WITH a, sum(x) AS s RETURN count(s)"
    assert db.query(f"UNWIND range(1, 30) AS a {sums}").scalar() == 30


@pytest.mark.parametrize("bounds", [(1, 0, 1), (0, -1, 7), (-FAR, -FAR + 9, 4), (FAR, FAR - 9, -4), (5, 5, -3)])
def test_sizes_are_computed_without_the_list(db: graphdb.Database, bounds: tuple[int, int, int]) -> None:
    assert db.query("RETURN size(range($a, $b, $c))", a=bounds[0], b=bounds[1], c=bounds[2]).scalar() == len(
        expected(*bounds)
    )


_RUN = """
import sys
import graphdb
from graphdb.common.errors import GraphDBError
db = graphdb.connect(device="cpu", memory_limit="1GB")
for form in sys.argv[1:]:
    try:
        db.query(form, timeout=1)
    except GraphDBError:
        pass
    assert db.query("RETURN 1 AS one").scalar() == 1
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM")))
"""


def test_ranges_of_rows_fit_the_memory_limit() -> None:
    """Each vector of rows would have lists of 8 to 40 GB."""
    row = "UNWIND range(1, 1000) AS a RETURN "
    forms = [
        row + "sum(size(range(1, a * 10000)))",
        row + "sum(range(1, a * 10000)[5])",
        row + "sum(reduce(s = 0, x IN range(1, a * 10000) | s + x))",
        row + "sum(size([x IN range(1, a * 10000) WHERE x % 3 = 0 | x * 2]))",
        row + "count(all(x IN range(1, a * 10000) WHERE x > 0))",
        row + "sum(size([x IN range(1, 100000) WHERE x % 3 = 0 | x * a]))",
    ]
    ran = subprocess.run([sys.executable, "-c", _RUN, *forms], capture_output=True, text=True, check=True, timeout=120)
    assert int(ran.stdout) < 1024


def test_bounds_that_only_the_data_knows() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        for bound in ("[2, 'a'][0]", "head([2, 'a'])", "{a: 2}.a"):
            assert db.query(f"WITH {bound} AS k UNWIND range(0, k) AS r RETURN r").fetchall() == [(0,), (1,), (2,)]
        for bound, found in (("['a', 1][0]", "a string"), ("[null, 'a'][0]", "null")):
            with pytest.raises(ExecutionError, match=f"range needs integers, found {found}"):
                db.query(f"WITH {bound} AS k UNWIND range(0, k) AS r RETURN r").fetchall()
