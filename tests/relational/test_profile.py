"""PROFILE says what each step did, those after the match with them: rows, bytes, time, DuckDB's operators beside estimates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb

EDGES = [(i, j) for i in range(40) for j in range(i + 1, 40) if (i * 7 + j * 3) % 5 == 0]
TWO_STEPS = (
    "MATCH (a:P)-[:R]->(b) WITH b, count(*) AS n WHERE n > 3 MATCH (b)-[:R]->(c) "
    "RETURN c.x AS x, sum(log10(n)) AS s ORDER BY s DESC LIMIT 3"
)


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        filled(database)
        yield database


def filled(db: graphdb.Database) -> None:
    db.query("UNWIND range(0, 39) AS i CREATE (:P {x: i})")
    db.query(
        "UNWIND $edges AS e MATCH (a:P {x: e[0]}), (b:P {x: e[1]}) CREATE (a)-[:R]->(b)", edges=[*map(list, EDGES)]
    )


def profile(db: graphdb.Database, text: str) -> list[dict[str, Any]]:
    """The plan as a tree, which JSON has."""
    return json.loads(json.dumps(db.query(f"PROFILE {text}").plan()))  # type: ignore[no-any-return]


def below(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield part
        yield from below(part["children"])


def rows_of(parts: list[dict[str, Any]], title: str) -> int:
    """The rows that a part says that it had."""
    [part] = [part for part in parts if part["title"].startswith(title)]
    found = [re.match(r"(?:rows|bindings|paths): ([\d,]+) rows", line["title"]) for line in part["children"]]
    [number] = [match[1] for match in found if match]
    return int(number.replace(",", ""))


def in_degrees() -> dict[int, int]:
    found: dict[int, int] = {}
    for _, j in EDGES:
        found[j] = found.get(j, 0) + 1
    return {j: n for j, n in found.items() if n > 3}


def test_each_step_after_a_match_has_its_rows(db: graphdb.Database) -> None:
    parts = profile(db, TWO_STEPS)
    degrees = in_degrees()
    joined = [(i, j) for i, j in EDGES if i in degrees]
    assert rows_of(parts, "match _bindings1") == len({j for _, j in EDGES})
    assert rows_of(parts, "rows _rows2") == len(degrees)
    assert rows_of(parts, "join with _bindings3") == len(joined)
    assert rows_of(parts, "joined _joined4") == len(joined)
    assert rows_of(parts, "then SQL") == 3


def test_what_columns_make_without_sql_has_its_rows(db: graphdb.Database) -> None:
    parts = profile(db, TWO_STEPS.replace("log10(n)", "n"))
    [result] = [part["title"] for part in below(parts) if part["title"].startswith("taken from")]
    assert result.startswith("taken from columns in memory without SQL: 3 rows, ")


def test_sql_has_its_operators_with_estimates(db: graphdb.Database) -> None:
    [sql] = [part for part in profile(db, TWO_STEPS) if part["title"].startswith("then SQL")]
    operators = [part["facts"] for part in sql["children"] if "operator" in part["facts"]]
    assert [each["step"] for each in operators] == [str(i + 1) for i in range(len(operators))]
    groups = len({j for i, j in EDGES if i in in_degrees()})
    grouped, top = (next(e for e in operators if e["operator"] == name) for name in ("hash group by", "top n"))
    assert (grouped["rows"], top["rows"]) == (str(groups), "3")
    for each in operators:
        assert {"estimated rows", "rows", "ms", "bytes"} <= each.keys(), each
        assert float(each["ms"]) >= 0


def test_times_are_parts_of_all(db: graphdb.Database) -> None:
    last = profile(db, TWO_STEPS)[-1]["title"]
    found = re.fullmatch(
        r"([\d.]+) ms in all: ([\d.]+) planning and candidates, ([\d.]+) match, ([\d.]+) SQL, "
        r"([\d.]+) rows and columns; 3 rows",
        last,
    )
    assert found, last
    total, *parts = map(float, found.groups())
    assert abs(total - sum(parts)) < 0.3
    assert parts[2] > 0


def test_sql_that_takes_long_is_what_is_said_to(db: graphdb.Database) -> None:
    """The lump of earlier versions: a sum over many rows after a match of a row."""
    text = "MATCH (a:P {x: 1}) UNWIND range(1, 3000000) AS i RETURN sum(atan2(i, a.x)) AS s"
    for _ in range(8):  # others on the machine may delay any part
        parts = profile(db, text)
        [total, _, match, sql, _] = map(
            float, re.findall(r"[\d.]+(?= ms in| planning| match| SQL| rows and)", parts[-1]["title"])
        )
        if sql > total / 2 > match:
            break
    assert sql > total / 2 > match
    largest = max(
        (p["facts"] for p in below(parts) if "operator" in p["facts"]), key=lambda f: int(f["rows"].replace(",", ""))
    )
    assert largest["rows"] == "3,000,000"


def test_paths_have_their_rows(db: graphdb.Database) -> None:
    text = "MATCH ANY SHORTEST (a:P {x: 0})-[:R]->+(b) RETURN b.x"
    count = len(db.query(text).fetchall())
    [part] = [each for each in below(profile(db, text)) if each["title"].startswith("paths: ")]
    assert part["title"].startswith(f"paths: {count} rows")
    text = "MATCH (a:P {x: 0})-[r:R*1..2]->(b) RETURN b.x"
    sizes = [each["title"].split(",")[0] for each in below(profile(db, text)) if re.match(r"pattern \d", each["title"])]
    steps = [j for i, j in EDGES if i == 0]
    assert sizes == [f"pattern 0: {len(steps)} rows", f"pattern 1: {sum(i in steps for i, _ in EDGES)} rows"]


@pytest.mark.parametrize(
    "text",
    [
        TWO_STEPS,
        "MATCH (a:P)-[:R]->(b) RETURN a, b.x",
        "MATCH (a:P)-[:R]->(b) RETURN count(*)",
        "MATCH (a:P) RETURN DISTINCT a.x % 3",
        "MATCH (a:P) OPTIONAL MATCH (a)-[:R]->(b:P {x: 3}) RETURN a.x, [(a)-[:R]->(c) | c.x]",
        "MATCH (a:P) WHERE EXISTS { (a)-[:R]->() } CALL (a) { MATCH (a)-[:R]->(b) RETURN sum(b.x) AS s } RETURN a.x, s",
        "UNWIND [1, 2] AS x RETURN x",
        "MATCH (a:P)-[:R*]->(b) RETURN DISTINCT b.x",
    ],
)
def test_no_private_name_and_the_same_answer(db: graphdb.Database, text: str) -> None:
    expected = sorted(map(repr, db.query(text).fetchall()))
    for _ in range(2):
        assert "_graphdb" not in db.query(f"PROFILE {text}").text(1000)
    assert sorted(map(repr, db.query(text).fetchall())) == expected


def test_the_profiler_is_asked_only_meanwhile(db: graphdb.Database) -> None:
    setting = (
        "SELECT count(*) FROM duckdb_settings() WHERE name = 'enable_profiling' AND value IS NOT NULL AND value <> ''"
    )
    before = db.sql(setting).scalar()
    db.query(f"PROFILE {TWO_STEPS}")
    with pytest.raises(graphdb.GraphDBError):
        db.query("PROFILE MATCH (a:P) UNWIND [1, 0] AS d RETURN a.x / d")
    assert db.sql(setting).scalar() == before


def test_where_settings_are_locked_times_and_rows_are_there_all_the_same(tmp_path: Any) -> None:
    with graphdb.connect(tmp_path / "a.duckdb") as writer:
        filled(writer)
    with graphdb.connect(tmp_path / "a.duckdb", untrusted=True) as db:
        parts = profile(db, TWO_STEPS)
        assert rows_of(parts, "then SQL") == 3
        assert not any("operator" in part["facts"] for part in below(parts))


def test_rows_that_spilled_are_counted(tmp_path: Any) -> None:
    with graphdb.connect(tmp_path / "a.duckdb", memory_limit="300MB") as db:
        db.query("UNWIND range(0, 1999) AS i CREATE (:Q {x: i})")
        text = "MATCH (a:Q), (b:Q) WITH a, b, a.x + b.x AS s WHERE s % 2 = 0 MATCH (c:Q {x: 0}) RETURN count(*) AS n, sum(s)"
        parts = profile(db, text)
        assert [row[0] for row in db.query(text)] == [2_000_000]
        sizes = [rows_of(parts, p["title"]) for p in parts if p["title"].startswith(("match _b", "rows _r"))]
        assert 2_000_000 in sizes or 4_000_000 in sizes


def test_writing_says_how_long_each_clause_took(db: graphdb.Database) -> None:
    parts = profile(db, "MATCH (a:P)-[:R]->(b) SET b.seen = a.x RETURN count(*) AS n")
    [clause] = [part for part in parts if part["title"].startswith("SET")]
    [took] = [child["title"] for child in clause["children"] if child["title"].startswith("took ")]
    assert re.fullmatch(rf"took [\d.,]+ ms with what it reads; {len(EDGES)} rows", took)
    steps = [part["facts"] for part in below(parts) if "binds" in part["facts"]]
    assert steps[-1]["rows"] == str(len(EDGES))


def test_an_estimate_that_is_off_is_a_fact_of_its_own(db: graphdb.Database) -> None:
    steps = [p["facts"] for p in below(profile(db, "MATCH (a:P) UNWIND range(1, 500) AS i RETURN sum(i)"))]
    off = [facts for facts in steps if "misjudged" in facts]
    assert off
    assert all(re.fullmatch(r"[\d,]+× (more|fewer)", facts["misjudged"]) for facts in off)
    assert not any("!" in value for facts in steps for value in facts.values())
