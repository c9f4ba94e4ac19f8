"""Clauses by columns in memory, compared with what Python computes: parts of times, pairs, many rows in pieces."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.relational.running import program_run
from graphdb.relational.vectors import large
from graphdb.relational.vectors import run as clauses
from graphdb.relational.vectors.counted import codes
from graphdb.relational.vectors.run import run
from graphdb.snapshot import union_type


def test_times_and_numbers_are_as_python_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(11)
    days = [date(1, 1, 1) + timedelta(days=int(n)) for n in dice.integers(0, 3_652_058, 90)]
    seen = [datetime(1850, 1, 1) + timedelta(microseconds=int(n)) for n in dice.integers(0, 9_000_000_000_000_000, 90)]
    size = [float(x) for x in dice.normal(scale=90, size=90).round(5)]
    rows = [{"i": i, "day": days[i], "seen": seen[i], "size": size[i]} for i in range(90)]
    text = """
        MATCH (a:P) RETURN a.i, a.day.dayOfWeek, a.seen.hour, a.seen.minute, a.seen.second, a.seen.dayOfWeek, a.size ^ 2,
            sqrt(abs(a.size)), round(a.size, 2), round(a.size * 3, 0), CASE WHEN a.day < date('1000-05-04') THEN 1 WHEN
            a.day >= $late THEN 2 END, CASE WHEN a.i > 40 THEN a.day ELSE date('2024-02-29') END ORDER BY a.i
    """
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND $rows AS r CREATE (:P {i: r.i, day: r.day, seen: r.seen, size: r.size})", rows=rows)
        monkeypatch.setattr(program_run, "run", lambda *given, **named: made.append(run(*given, **named)) or made[-1])
        made: list[Any] = []
        found = db.query(text, late=date(1800, 1, 1)).fetchall()
        assert made[0] is not None, "SQL made it"
        for (i, *mine), day, at, x in zip(found, days, seen, size, strict=True):
            expected = [day.isoweekday(), at.hour, at.minute, at.second, at.isoweekday(), x * x, math.sqrt(abs(x))]
            expected += [math.floor(x * 100 + 0.5) / 100, math.floor(x * 3 + 0.5)]
            expected += [1 if day < date(1000, 5, 4) else 2 if day >= date(1800, 1, 1) else None]
            assert mine == [*expected, day if i > 40 else date(2024, 2, 29)]
        found = db.query("MATCH (a:P) WHERE a.i > 5 UNWIND [a.i, a.size, a.i + 100] AS x RETURN x, a.i")
        assert list(map(repr, found)) == [repr((x, i)) for i in range(6, 90) for x in (i, size[i], i + 100)]
        found = db.query(
            "MATCH (a:P) UNWIND [a.i, a.size] AS x WITH a.i % 7 AS k, x WHERE x > 20 RETURN k, sum(x), count(x) ORDER BY k"
        )
        over = [[x for i in range(k, 90, 7) for x in (i, size[i]) if x > 20] for k in range(7)]
        assert found.fetchall() == [(k, pytest.approx(sum(some)), len(some)) for k, some in enumerate(over)]
        found = db.query(
            "MATCH (a:P), (b:P {i: a.i + 1}) UNWIND [a, b] AS n WITH n WHERE n.i > 3 RETURN n.i, count(*) ORDER BY n.i"
        )
        assert found.fetchall() == [(i, 1 if i == 89 else 2) for i in range(4, 90)]
        found = db.query("MATCH (a:P) WHERE a.i < 9 RETURN sqrt(a.i - 3) AS x ORDER BY a.i").fetchall()
        assert [repr(x) for (x,) in found] == [repr(math.sqrt(i - 3)) if i >= 3 else "nan" for i in range(9)]


@pytest.mark.parametrize("kind", ["text", "number", "size"])
def test_pairs_of_equal_values_are_as_enumerated(kind: str) -> None:
    dice = np.random.default_rng(5)
    some = {
        "text": ["", "a", "ab", "é", "b", None],
        "number": [-(1 << 62), -3, 0, 4, None, 1 << 61],
        "size": [0.5, -0.0, 0, None, 1e300],
    }
    rows: list[dict[str, Any]] = [
        {"i": i, "v": some[kind][int(dice.integers(len(some[kind])))], "w": int(dice.integers(4))} for i in range(700)
    ]
    if kind == "number":  # in a small range, too
        rows += [{"i": 700 + i, "v": int(dice.integers(9)), "w": 1} for i in range(300)]
    text = "MATCH (a:P), (b:P) WHERE a.v = b.v AND a.i < b.i AND a.w = b.w + 1 RETURN count(*), sum(a.i * 3 + b.i)"
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND $rows AS r CREATE (p:P {i: r.i, w: r.w}) SET p.v = r.v", rows=rows)
        found = [
            3 * a["i"] + b["i"]
            for a in rows
            for b in rows
            if a["v"] is not None and a["v"] == b["v"] and a["i"] < b["i"] and a["w"] == b["w"] + 1
        ]
        assert db.query(text).fetchall() == [(len(found), sum(found))]
        found = [
            (a["i"], b["i"])
            for a in rows
            for b in rows
            if a["v"] is not None and a["v"] == b["v"] and a["i"] < b["i"] < a["i"] + 9
        ]
        query = "MATCH (a:P), (b:P) WHERE a.v = b.v AND a.i < b.i AND b.i < a.i + 9 RETURN a.i, b.i"
        assert sorted(db.query(query).fetchall()) == sorted(found)


@pytest.mark.parametrize(("threads", "fewer"), [(1, 8), (3, 1 << 30), (2, 0.001)])
def test_many_rows_are_computed_in_pieces(threads: int, fewer: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the same values together, where these are so many times fewer than the rows."""
    monkeypatch.setattr(codes, "_FEWER", fewer)
    dice = np.random.default_rng(7)
    age, size, ends = (
        dice.integers(0, 9, 40).tolist(),
        dice.normal(size=40).round(2).tolist(),
        dice.integers(0, 40, (300, 2)).tolist(),
    )
    absent = set(dice.integers(0, 40, 9).tolist())
    ends += ends[:20]  # parallel edges
    with graphdb.connect(device="cpu", threads=threads) as db:
        for i in range(40):
            db.query(
                "CREATE (:P {i: $i, age: $age, size: $size})", i=i, age=None if i in absent else age[i], size=size[i]
            )
        db.query(
            "UNWIND $ends AS e MATCH (a:P {i: e[0]}), (b:P {i: e[1]}) CREATE (a)-[:R {w: e[0] - e[1]}]->(b)", ends=ends
        )
        ages = [None if i in absent else age[i] for i in range(40)]
        for name, value in {"MANY": 8, "_PIECE": 8, "_SHARED": 64}.items():
            monkeypatch.setattr(large, name, value)
        monkeypatch.setattr(clauses, "MANY", 8)
        monkeypatch.setattr(union_type, "_LISTS", [])  # as in a process that has asked for nothing yet
        paths = [[e] for e in range(320)] + [
            [e, f] for e in range(320) for f in range(320) if e != f and ends[e][1] == ends[f][0]
        ]
        nodes = [[ends[path[0]][0], *(ends[e][1] for e in path)] for path in paths]
        found = db.query(
            "MATCH p = (a:P)-[:R*1..2]->(b) RETURN a.i, b.i, length(p), size([n IN nodes(p) WHERE n.age > 4]), reduce(s = 0, r IN relationships(p) | s + r.w)"
        )
        over = [sum(1 for n in some if (ages[n] or 0) > 4) for some in nodes]
        weights = [sum(ends[e][0] - ends[e][1] for e in path) for path in paths]
        rows = zip(nodes, paths, over, weights, strict=True)
        assert sorted(found) == sorted((some[0], some[-1], len(path), n, w) for some, path, n, w in rows)
        found = db.query(
            "MATCH (a:P)-[r:R]->(b) WHERE a.age + r.w > 0 RETURN r.w / 3 % 2 AS k, count(*), sum(a.age * 2 + b.i), max(b.size * r.w) ORDER BY k"
        )
        groups: dict[int, list[tuple[int, float]]] = {}
        for e, f in ends:
            if (one := ages[e]) is not None and one + e - f > 0:
                groups.setdefault(int(math.fmod(int((e - f) / 3), 2)), []).append((one * 2 + f, size[f] * (e - f)))
        assert found.fetchall() == [
            (k, len(g), sum(a for a, _ in g), max(b for _, b in g)) for k, g in sorted(groups.items())
        ]
        found = db.query(
            "MATCH (a:P)-[r:R]->(b) RETURN CASE WHEN r.w > 3 THEN a.age WHEN r.w < -3 THEN b.size END AS x, coalesce(a.age, b.size), b.age - coalesce(a.age, 0.5)"
        )
        chosen = [
            (
                ages[e] if e - f > 3 else size[f] if e - f < -3 else None,
                size[f] if ages[e] is None else ages[e],
                None if ages[f] is None else ages[f] - (0.5 if ages[e] is None else ages[e]),
            )
            for e, f in ends
        ]
        assert sorted(map(repr, found)) == sorted(map(repr, chosen))
        found = db.query(
            "MATCH (a:P)-[r:R]->(b) WITH a, CASE WHEN r.w > 3 THEN a.age ELSE b.size END AS x RETURN a.i, sum(x), avg(x), count(x), sum(CASE WHEN x > 1 THEN 1.5 ELSE 1 END) ORDER BY a.i"
        )
        for i, total, mean, number, other in found:
            mine = [x for e, f in ends if e == i and (x := ages[e] if e - f > 3 else size[f]) is not None]
            beside = [
                1.5 if (x := ages[e] if e - f > 3 else size[f]) is not None and x > 1 else 1 for e, f in ends if e == i
            ]
            assert (type(total), number, type(other)) == (type(sum(mine)), len(mine), type(sum(beside)))
            assert (total, other) == pytest.approx((sum(mine), sum(beside)))
            assert mean == (pytest.approx(sum(mine) / len(mine)) if mine else None)


@pytest.mark.parametrize("kind", ["few", "many", "large", "past the range"])
def test_sums_of_integers_and_floats_are_as_python_adds_them(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(23)
    whole = [int(n) for n in dice.integers(-99, 99, 60)]
    if kind in ("large", "past the range"):  # past what a float holds exactly
        whole = [n + (1 << (54 if kind == "large" else 62)) for n in whole]
    real = [float(x) for x in dice.normal(size=60).round(3)]
    rows = [
        {"i": i, "n": None if i % 7 == 3 else whole[i], "x": None if i % 5 == 1 else real[i], "k": i % 4}
        for i in range(60)
    ]
    ends = [(int(e), int(f)) for e, f in dice.integers(0, 60, (400, 2))]
    if kind == "many":
        for module, name in ((clauses, "MANY"), (clauses, "_LARGE"), (large, "MANY"), (large, "_PIECE")):
            monkeypatch.setattr(module, name, 8)
    monkeypatch.setattr(program_run, "run", lambda *given, **named: made.append(run(*given, **named)) or made[-1])
    made: list[Any] = []

    def added(values: list[Any]) -> Any:
        there = [each for each in values if each is not None]
        reals = [each for each in there if isinstance(each, float)]
        total = sum(each for each in there if isinstance(each, int))
        return math.fsum([*reals, total]) if reals else total

    def check(query: str, expected: dict[Any, list[Any]]) -> None:
        sums_of = {key: added(values) for key, values in expected.items()}
        if any(isinstance(total, int) and not -(1 << 63) <= total < 1 << 63 for total in sums_of.values()):
            with pytest.raises(graphdb.GraphDBError, match="range"):
                db.query(query).fetchall()
            return
        made.clear()
        found = {row[0] if len(row) > 1 else None: row[-1] for row in db.query(query)}
        assert {key: type(total) for key, total in found.items()} == {key: type(s) for key, s in sums_of.items()}
        close = {key: total if isinstance(total, int) else pytest.approx(total) for key, total in sums_of.items()}
        assert found == close
        if kind in ("few", "many"):
            assert made[-1] is not None, "SQL made it"

    def by(key: Any, values: Any, over: Any) -> dict[Any, list[Any]]:
        groups: dict[Any, list[Any]] = {}
        for row in over:
            groups.setdefault(key(row), []).extend(values(row))
        return groups

    case = "CASE WHEN a.k = 0 OR a.i > 50 THEN a.n WHEN a.x > 0 THEN a.x ELSE 0 END"

    def of_case(row: dict[str, Any]) -> Any:
        return row["n"] if row["k"] == 0 or row["i"] > 50 else row["x"] if (row["x"] or 0) > 0 else 0

    def there(row: dict[str, Any]) -> Any:
        return row["n"] if row["n"] is not None else row["x"]

    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND $rows AS r CREATE (p:P {i: r.i, k: r.k}) SET p.n = r.n, p.x = r.x", rows=rows)
        db.query("UNWIND $ends AS e MATCH (a:P {i: e[0]}), (b:P {i: e[1]}) CREATE (a)-[:R]->(b)", ends=ends)
        for text, value in (
            (f"sum({case})", lambda row: [of_case(row)]),
            ("sum(coalesce(a.n, a.x))", lambda row: [there(row)]),
        ):
            for group, key in (
                ("", lambda row: None),
                ("a.k, ", lambda row: row["k"]),
                ("a.i, ", lambda row: row["i"]),
            ):
                check(f"MATCH (a:P) RETURN {group}{text}", by(key, value, rows))
                over = [rows[e] for e, _ in ends]
                check(f"MATCH (a:P)-[:R]->(b) RETURN {group}{text}", by(key, value, over))
        for items, value in (
            ("a.n, a.x * 2, a.i, 3", lambda row: [row["n"], row["x"] and row["x"] * 2, row["i"], 3]),
            ("a.i, a.k", lambda row: [row["i"], row["k"]]),
            ("a.x, 0.5", lambda row: [row["x"], 0.5]),
        ):
            for group, key in (("", lambda row: None), ("a.k AS k, ", lambda row: row["k"])):
                some = [row for row in rows if row["i"] > 8]
                check(f"MATCH (a:P) WHERE a.i > 8 UNWIND [{items}] AS x RETURN {group}sum(x)", by(key, value, some))
                counts = {each: [len(values)] for each, values in by(key, value, some).items()}
                check(f"MATCH (a:P) WHERE a.i > 8 UNWIND [{items}] AS x RETURN {group}count(*)", counts)
        nothing = "MATCH (a:P) WHERE a.i > 99 UNWIND [a.i, a.x] AS x"
        assert db.query(f"{nothing} RETURN sum(x), count(*)").fetchall() == [(0, 0)]
        assert db.query(f"{nothing} RETURN a.k, sum(x)").fetchall() == []
        found = db.query("MATCH (a:P) UNWIND [a.n, a.x] AS x WITH a, x WHERE x > 0 RETURN count(*), sum(x)").fetchall()
        positive = [x for row in rows for x in (row["n"], row["x"]) if x is not None and x > 0]
        assert found == [(len(positive), pytest.approx(added(positive)))]
