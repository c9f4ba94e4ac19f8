"""Lists, durations and times that columns hold, against the evaluator, which reads each of their texts."""

from __future__ import annotations

import random
from datetime import date
from typing import Any
from unittest.mock import patch

import pytest

import graphdb
from graphdb import GraphDBError
from graphdb.common.values.terms import XSD
from graphdb.snapshot.exact_types import _FORMS
from tests.fuzz import scaled

NUMBERS = [0.0, -0.0, 1.5, -2.25, 1e20, 1e-7, 1e300, 5e-324, float("inf"), float("-inf"), float("nan"), 0.1]
TEXTS = ["", "a", "b, c", '"', "\\", 'x", "y', "é", "😀", "\n\t\x00", "null", "true", "[1]", "'"]
ITEMS: dict[str, Any] = {
    "integers": lambda draw: draw.choice([0, 1, 2, -3, 10**17, draw.randrange(100)]),
    "large": lambda draw: draw.choice([1, 10**18, -(2**63), 2**63 - 1]),
    "floats": lambda draw: draw.choice(NUMBERS),
    "numbers": lambda draw: draw.choice([1, 2, 2.0, 0.5, 1e20]),
    "texts": lambda draw: draw.choice(TEXTS),
    "booleans": lambda draw: draw.random() < 0.5,
    "mixed": lambda draw: draw.choice([1, 1.0, 0.5, "1", "a", True, False]),
    "dates": lambda draw: draw.choice([date(2020, 1, 2), date(1999, 12, 31)]),
    "lists": lambda draw: [draw.randrange(3)],
}
LISTS = (
    "n.p",
    "size(n.p)",
    "n.p[0], n.p[-1], n.p[1..]",
    "n.p IS NULL, n.p = [1, 2], n.p = n.q, n.p <> n.q",
    "1 IN n.p, 'a' IN n.p, null IN n.p",
    "n.p + n.q",
    "n.p + 1, 'a' + n.p",
    "[x IN n.p | x], [x IN n.p WHERE x IS NOT NULL]",
    "any(x IN n.p WHERE x = 1), all(x IN n.p WHERE x <> 'a'), none(x IN n.p WHERE x IS NULL)",
    "reverse(n.p), head(n.p), last(n.p)",
    "reduce(s = 0, x IN n.p | s + 1)",
    "toString(n.p[0]), coalesce(n.p, n.q), CASE WHEN n.i % 2 = 0 THEN n.p ELSE n.q END",
    "n {.p, .q}, properties(n), keys(n)",
    "n.p[0] + n.q[0]",
    "toUpper(n.p[0])",
    "[n.p, n.q]",
)
DURATIONS = (
    "n.p",
    "n.p.days, n.p.months, n.p.seconds, n.p.nanosecondsOfSecond",
    "toString(n.p)",
    "n.p + n.q, n.p - n.q, -n.p",
    "n.p = n.q, n.p IS NULL",
    "date('2020-01-31') + n.p",
    "localdatetime('2020-01-31T12:00') - n.p",
    "localtime('12:00') + n.p",
    "n.p * 2, n.p / 2",
    "coalesce(n.p, n.q)",
    "size(n.p)",
)
CLOCKS = ["10:00", "10:00:00", "23:59:59.999999", "23:59:59.999999999", "00:00:00.000000001", "09:00:00.5"]
OFFSETS = ["Z", "+01:00", "-18:00", "+00:00:01"]
MADE = {"durations": "duration", "localtime": "localtime", "time": "time", "localdatetime": "localdatetime"}
MADE["datetime"] = "datetime"
TIMES = (
    "n.p",
    "n.p.hour, n.p.nanosecond",
    "toString(n.p)",
    "n.p = n.q, n.p < n.q, n.p >= n.q, n.p IS NULL",
    "n.p + duration({nanoseconds: n.i}), n.p - duration('P1M')",
    "duration.between(n.p, n.q), duration.inDays(n.q, n.p)",
    "localtime(n.p), time(n.q), time.truncate('second', n.p)",
    "coalesce(n.p, n.q), [n.p, n.q], {a: n.p}",
    "n.p IN [n.q, n.i, n.p]",
)
WHOLE = (
    "MATCH (n:N) RETURN count(n.p), count(DISTINCT n.p)",
    "MATCH (n:N) RETURN n.p, count(*) AS c ORDER BY c, n.p",
    "MATCH (n:N) RETURN n.i ORDER BY n.p, n.i LIMIT 7",
    "MATCH (n:N) RETURN n.i ORDER BY n.p DESC, n.i SKIP 3",
    "MATCH (n:N) WHERE n.p = n.q RETURN n.i ORDER BY n.i",
    "MATCH (n:N), (m:N) WHERE n.p = m.q RETURN n.i, m.i ORDER BY n.i, m.i",
    "MATCH (n:N) OPTIONAL MATCH (n)-[:R]->(m) WHERE m.p = n.p RETURN n.i, m.p ORDER BY n.i, m.i",
    "MATCH (n:N) WITH n.p AS p, n.i AS i ORDER BY i RETURN collect(p)",
    "MATCH (n:N) RETURN max(n.p), min(n.p)",
    "MATCH (n:N) RETURN n ORDER BY n.i",
    "MATCH (n:N) WITH n ORDER BY n.i LIMIT 3 RETURN n.p",
)
UNWOUND = (
    "MATCH (n:N) UNWIND n.p AS x RETURN x, count(*) AS c, sum(n.i) ORDER BY c, x",
    "MATCH (n:N) UNWIND n.p AS x MATCH (m:N {i: x}) RETURN n.i, m.i ORDER BY n.i, m.i",
    "MATCH (n:N) WHERE n.i IN n.p RETURN n.i ORDER BY n.i",
)
ADDED = ("MATCH (n:N) RETURN sum(n.p), avg(n.p)", "MATCH (n:N) RETURN n.i % 2 AS k, sum(n.p) ORDER BY k")


def _value(draw: random.Random, kind: str) -> Any:
    if draw.random() < 0.15:
        return None
    if kind == "durations":
        signs = (-1, 1) if draw.random() < 0.3 else (1,)
        units = ("years", "months", "days", "hours", "minutes", "seconds", "milliseconds", "nanoseconds")
        chosen = draw.sample(units, draw.randrange(1, 4))
        return {unit: draw.choice(signs) * draw.choice([0, 1, 5, 13, 100, 2000]) for unit in chosen}
    if kind in MADE:
        day = draw.choice(["1970-01-01T", "2024-02-29T", "1600-12-31T"]) if "date" in kind else ""
        return day + draw.choice(CLOCKS) + (draw.choice(OFFSETS) if kind in ("time", "datetime") else "")
    items = [None if draw.random() < 0.1 else ITEMS[kind](draw) for _ in range(draw.choice([0, 1, 2, 2, 3, 5]))]
    return items


def _outcome(db: graphdb.Database, query: str) -> Any:
    try:
        return repr(db.query(query).fetchall()).replace("-0.0", "0.0")  # which of both stands for a group is free
    except GraphDBError as error:
        return type(error).__name__


def _forget(db: graphdb.Database) -> None:
    """Have the forms of all properties looked for anew."""
    snapshot = db._state.snapshot()
    snapshot.properties._written.clear()
    for cached in (snapshot.edges._forms, snapshot.edges._columns, snapshot.edges._values, snapshot.edges._made):
        cached.clear()
    db._state.plans.clear()


@pytest.mark.parametrize("edges", [False, True], ids=["vertices", "edges"])
@pytest.mark.parametrize("seed", range(scaled(30)))
def test_values_are_those_of_the_evaluator(seed: int, edges: bool) -> None:
    draw = random.Random(2 * seed + edges)
    kind = draw.choice([*ITEMS, *MADE, *MADE, "durations", "integers", "texts", "mixed"])
    made = f"{MADE[kind]}(row.{{}})" if kind in MADE else "row.{}"
    pairs = ", ".join(f"{key}: CASE WHEN row.{key} IS NOT NULL THEN {made.format(key)} END" for key in "pq")
    queries = [
        f"MATCH (n:N) RETURN n.i, {x} ORDER BY n.i"
        for x in (LISTS if kind not in MADE else DURATIONS if kind == "durations" else TIMES)
    ]
    whole, merged = [*WHOLE], "MERGE (n:N {i: row.i})"
    queries += [*whole, *(UNWOUND if kind not in MADE else ADDED if kind == "durations" else ())]
    if edges:  # one of each vertex to itself, some of them parallel
        merged = "MERGE (v:V {i: row.i / 2}) MERGE (v)-[n:N {i: row.i}]->(v)"
        of_one = [[text for text in texts if "(m" not in text] for texts in (whole, queries)]
        whole, queries = ([text.replace("(n:N)", "()-[n:N]->()") for text in texts] for texts in of_one)
    with graphdb.connect(threads=1) as db:

        def write(count: int, of: str) -> None:
            rows = [{"i": i, "p": _value(draw, of), "q": _value(draw, of)} for i in range(count)]
            db.query(f"UNWIND $rows AS row {merged} SET n += {{{pairs}}}", rows=rows)

        write(draw.choice([1, 5, 30]), kind)
        if not edges:
            db.query("MATCH (n:N), (m:N) WHERE m.i = n.i + 1 CREATE (n)-[:R]->(m)")
        for step in range(3):
            inside = draw.random() < 0.3
            asked = draw.sample(whole if inside else queries, 6)
            if inside:  # where one that fails would end it
                db.query("BEGIN")
                write(2, kind)
            found = [_outcome(db, query) for query in asked]
            with (
                patch("graphdb.snapshot.property_types.form_of", return_value=None),
                patch("graphdb.snapshot.edges.form_among", return_value=None),
            ):
                _forget(db)
                should = [_outcome(db, f"{query} ") for query in asked]
            _forget(db)
            for query, one, other in zip(asked, found, should, strict=True):
                assert one == other, (kind, step, query)
            if inside:
                db.query(draw.choice(["COMMIT", "ROLLBACK"]))
            if kind != "durations":
                others = () if kind in MADE else (name for name in ITEMS if name != "dates")
                write(draw.choice([1, 2]), draw.choice([kind, kind, *others]))
            if draw.random() < 0.3:
                db.query(f"MATCH {'()-[n:N {i: 0}]->()' if edges else '(n:N {i: 0})'} SET n.p = null")


def test_no_text_fails_that_another_property_has() -> None:
    """DuckDB may compute values of all literals, before it chooses those of one property."""
    texts = [*TEXTS, "[", "[1, 2]", "[1.5]", "[[1]]", '[{"a": 1}]', "[1,", "[NaN]", "[x]", "5", "P", "P1D", "-P1Y2M"]
    texts += ["PT0.5S", "P99999999999999999999D", "[99999999999999999999]"]
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND $texts AS t CREATE (:T {t: t})", texts=texts)
        literals = f"(SELECT text, '{XSD}duration' AS datatype FROM _graphdb.literal) l"
        for form in (form for forms in _FORMS.values() for form in forms):
            assert len(db.sql(f"SELECT {form.value} FROM {literals}").fetchall()) >= len(texts) - 1


def test_lists_of_edges_beside_lists_of_other_types() -> None:
    """Literals are read by ranges of ids, in which those of other properties, and of none any more, stand."""
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 3) AS i CREATE ()-[:K {i: i, l: [i, i + 1]}]->()")
        db.query("CREATE ()-[:K {i: 7, l: ['x']}]->({l: ['y']})")
        db.query("UNWIND range(4, 9) AS i CREATE ()-[:K {i: i, l: [i, i + 1]}]->()")
        db.query("MATCH ()-[r:K {i: 7, l: ['x']}]->() DELETE r")
        found = db.query("MATCH ()-[r:K]->() RETURN r.i, r.l ORDER BY r.i").fetchall()
        assert found == [(i, [i, i + 1]) for i in range(10)]
        assert db.query("MATCH ()-[r:K]->() RETURN sum(size(r.l)), sum(r.l[1])").fetchall() == [(20, 55)]
