"""Whatever a statement is doing, it stops soon after its timeout, an interrupt or Ctrl-C, and the database goes on.

Statements are drawn from a list of slow forms, and stopped at random moments in random ways.  ``GRAPHDB_STOPS=1000``
draws that many; ``GRAPHDB_STOPS_SLACK=0.5`` holds each to the half second that a quiet machine keeps.
"""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Iterator
from contextlib import suppress

import pytest

import graphdb
from graphdb.common.arrow import Array, ChunkedArray
from graphdb.common.duckdb.fetch import batches
from graphdb.common.errors import GraphDBError, NotSupportedError, QueryInterrupted, QueryTimeout
from graphdb.snapshot.columns import ValueColumn
from tests.interrupted import interrupted as interrupted_at
from tests.stops import Stopwatch, interrupted

SLACK = float(os.environ.get("GRAPHDB_STOPS_SLACK", "2"))
DRAWN = int(os.environ.get("GRAPHDB_STOPS", "12"))

NUMBERS = ",".join(map(str, range(100_000)))

SLOW = {
    "nested ranges": "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b)",
    "ranges of rows": "UNWIND range(1, 1000000) AS a UNWIND range(1, a) AS b RETURN max(a * b)",
    "three ranges": "UNWIND range(1, 9999) AS a UNWIND range(1, 9999) AS b UNWIND range(1, 9999) AS c RETURN sum(a * b * c)",
    "sorting": "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b RETURN a, b ORDER BY a * b % 1000, a LIMIT 3",
    "unions": " UNION ".join(["RETURN 1 AS x"] * 5000),
    "unions of matches": " UNION ALL ".join(["MATCH (n:P) RETURN n.k AS x"] * 5000),
    "withs": "WITH 1 AS x " + "WITH x + 1 AS x " * 5000 + "RETURN x",
    "matches": "MATCH (n:P {k: 1}) " + "MATCH (n) " * 3000 + "RETURN n.k",
    "parameters": "RETURN [" + ", ".join(f"$p{i}" for i in range(10_000)) + "] AS l",
    "items of two types": "UNWIND $mixed AS x RETURN count(x)",
    "columns of parameters": "RETURN " + ", ".join(f"$p{i} AS c{i}" for i in range(2048)),
    "conditions": "MATCH (a:P) WHERE " + " AND ".join(f"a.k <> {i}" for i in range(20_000)) + " RETURN count(*)",
    "alternatives": "MATCH (a:P) WHERE " + " OR ".join(f"a.k = {-i}" for i in range(20_000)) + " RETURN count(*)",
    "columns": "MATCH (a:P) RETURN " + ", ".join(f"a.k + {i} AS c{i}" for i in range(2048)),
    "columns of durations": "MATCH (a:P) RETURN "
    + ", ".join(f"date('2020-01-01') + duration({{days: a.k + {i}}}) AS c{i}" for i in range(2048)),
    "columns of aggregates": "MATCH (a:P) RETURN " + ", ".join(f"collect(a.k + {i})[0] AS c{i}" for i in range(500)),
    "choices": "RETURN CASE " + "WHEN 1 = 2 THEN 3 " * 10_000 + "END AS x",
    "labels": "MATCH (a:" + "|".join(f"L{i}" for i in range(10_000)) + ") RETURN count(*)",
    "literals": f"MATCH (a:P) WHERE a.k IN [{NUMBERS}] RETURN count(*)",
    "not of the grammar": f"MATCH (a:P) WHERE a.k IN [{NUMBERS.replace(',', ',x,')} RETURN count(*)",
    "folding": "UNWIND range(1, 100) AS i RETURN reduce(s = 0, x IN range(1, 1000000) | (s + x * i) % 1000003)",
    "lists of ranges": "UNWIND range(1, 1000) AS a RETURN sum(range(1, a * 10000)[5])",
    "items of ranges": "UNWIND range(1, 1000) AS a RETURN sum(size([x IN range(1, a * 10000) WHERE x % 3 = 0 | x * a]))",
    "a map not closed": "RETURN {" + ", ".join(f"k{i}: {i}" for i in range(50_000)) + " AS x",
    "calls in calls": "MATCH (a:P) RETURN sum(" + "log(" * 40 + "a.k" + ")" * 41,
    "durations one after the other": "MATCH (a:P) RETURN count(date('2020-01-01')"
    + " + duration({days: a.k})" * 40
    + ")",
    "lists in lists": "MATCH (a:P) RETURN count(" + "[x IN [" * 40 + "a.k" + "] WHERE x > 0 | x][0]" * 40 + ")",
    "calls that are written out": "MATCH (a:P) RETURN count(" + "nullIf(" * 90 + "a.k" + ", 1)" * 90 + ")",
    "choices in choices": "MATCH (a:P) RETURN sum("
    + "CASE " * 60
    + "a.k"
    + " WHEN < 3 THEN 1 WHEN > 5 THEN 2 END" * 60
    + ")",
    "maps of maps": "WITH {a: 1} AS m " + "WITH {a: m, b: m, c: m} AS m " * 20 + "RETURN m",
    "texts in texts": "RETURN size(" + "replace(" * 20 + "'aa'" + ", 'a', 'aaaaaaaaaa')" * 20 + ") AS x",
    "a text of texts": "RETURN size(replace($text, 'a', $text)) AS x",
    "long texts that are trimmed": "UNWIND range(1, 2048) AS i RETURN max(size(bTrim($long + i, 'q')))",
    "long texts that are turned around": "UNWIND range(1, 2048) AS i RETURN max(size(reverse(toUpper($long + i))))",
    "long texts that say no truth": "UNWIND range(1, 2048) AS i RETURN count(toBoolean($long + i))",
    "long texts that are tested": "UNWIND range(1, 2048) AS i RETURN count($long + i =~ '[b-z ä]*[0-9]*q')",
    "row by row": "UNWIND range(1, 2000) AS a UNWIND range(1, 2000) AS b WITH {x: a, y: [b, 'b']} AS m RETURN count(m.y[1] + m.x)",
    "cross product": "MATCH (a:P), (b:P), (c:P) RETURN sum(a.k * b.k + c.k)",
    "path by path": "UNWIND range(1, 1000) AS i MATCH (a:P)-[r:NEXT*1..40 {k: i % 2}]->(b) RETURN count(r)",
    "set": "MATCH (q:Q) SET q.k = q.k + 1, q.t = 'text ' + q.k",
    "set by maps": "MATCH (q:Q) SET q += {z: q.k, w: 'a' + q.k}",
    "create": "UNWIND range(1, 1000000) AS i CREATE (:R {k: i})-[:E]->(:R {k: i + 1})",
    "merge": "UNWIND range(1, 300000) AS i MERGE (:R {k: i % 1000})",
    "delete": "MATCH (q:Q) DETACH DELETE q",
}


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as db:
        db.query("UNWIND range(1, 1000) AS i CREATE (:P {k: i})")
        db.query("UNWIND range(1, 20000) AS i CREATE (:Q {k: i})")
        db.query("MATCH (a:P), (b:P) WHERE b.k IN [a.k + 1, a.k + 2] UNWIND [0, 1] AS k CREATE (a)-[:NEXT {k: k}]->(b)")
        for form in ("MATCH (a:P) RETURN sum(a.k)", "WITH [1, 'a'] AS l RETURN l[0]", "MATCH (q:Q {k: 1}) SET q.k = 1"):
            db.query(form)  # imports what it needs
        yield db


def late(db: graphdb.Database, form: str, how: str, after: float) -> float:
    """Return for how many seconds a statement worked on after the moment to stop."""
    given: dict[str, object] = (
        {f"p{i}": i for i in range(10_000 if form == "parameters" else 2048)} if "parameters" in form else {}
    )
    if form == "items of two types":
        given = {"mixed": [n if n % 2 else str(n) for n in range(1_000_000)]}
    if form == "a text of texts":
        given = {"text": "a" * 100_000}
    if form.startswith("long texts"):
        given = {"long": "bcdefg ä " * 100_000}
    watch = Stopwatch()
    try:
        with interrupted(db, how, after):
            db.query(SLOW[form], given, timeout=after if how == "timeout" else 60)
    except (GraphDBError, KeyboardInterrupt) as error:
        stopped = error
    else:
        stopped = None
    seconds = watch.seconds() - after
    own = {"timeout": QueryTimeout, "interrupt": QueryInterrupted, "signal": KeyboardInterrupt}
    others = tuple(kind for name, kind in own.items() if name != how)
    assert not isinstance(stopped, others), (form, how, stopped)
    return seconds


def usable(db: graphdb.Database) -> None:
    """Check that the database goes on, with all of what a statement wrote or nothing."""
    for _ in range(2):  # what was said to an earlier statement is said once
        try:
            assert db.query("MATCH (a:P) RETURN count(*), sum(a.k)").fetchall() == [(1000, 500500)]
            break
        except (GraphDBError, KeyboardInterrupt):
            continue
    assert db.query("MATCH (q:Q) WHERE q.z IS NULL RETURN count(*)").scalar() in (0, 20000)
    db.query("CREATE (:After)")
    assert db.query("MATCH (n:After) DELETE n RETURN count(*)").scalar() == 1


@pytest.mark.parametrize("form", SLOW)
def test_every_slow_form_stops_at_its_timeout(db: graphdb.Database, form: str) -> None:
    assert late(db, form, "timeout", 0.15) < SLACK
    usable(db)


def test_random_statements_stop_at_random_moments(db: graphdb.Database) -> None:
    chance = random.Random(os.environ.get("GRAPHDB_STOPS_SEED", "16"))
    found = []
    for _ in range(DRAWN):
        form, how = chance.choice(list(SLOW)), chance.choice(["timeout", "interrupt", "signal"])
        after = 0.05 + chance.choice([0.01, 0.1, 0.4]) * chance.random()
        found.append((late(db, form, how, after), form, how, after))
        usable(db)
    slowest = sorted(found)[::-1][:5]
    print(
        "the latest:",
        *(f"{seconds:.2f} s: {form} by {how} after {after:.2f} s" for seconds, form, how, after in slowest),
        sep="\n  ",
    )
    assert slowest[0][0] < SLACK, slowest[0]


@pytest.mark.parametrize("memory", ["2GB", "100MB"])
def test_what_duckdb_reads_stops_while_it_is_gathered(monkeypatch: pytest.MonkeyPatch, memory: str) -> None:
    """It is gathered before DuckDB begins: of a large answer that took 10 s, whatever stopped it meanwhile."""
    gathered, gather = [], ValueColumn.gather

    def stopping(self: ValueColumn, ids: Array | ChunkedArray) -> Array | ChunkedArray:
        if len(ids) > 10_000:  # not what a condition asks of the vertices
            gathered.append(len(ids))
            db.interrupt()
        return gather(self, ids)

    with graphdb.connect(device="cpu", memory_limit=memory) as db:
        db.query("CREATE (h:Hub) WITH h UNWIND range(1, 1500) AS i CREATE (:P {name: 'name ' + i})-[:IN]->(h)")
        monkeypatch.setattr(ValueColumn, "gather", stopping)
        with pytest.raises(QueryInterrupted):
            db.query(
                """MATCH (a:P)-[:IN]->(g), (b:P)-[:IN]->(h) WHERE a.name < b.name
                   RETURN a.name, b.name ORDER BY a.name, b.name LIMIT 3"""
            )
        assert len(gathered) == 1, gathered


WIDE = 2000
"""Properties that the vertices of a wide table have."""

KEYS = ", ".join(f"n.c{i}" for i in range(WIDE))

WIDE_FORMS = {
    "distinct": f"MATCH (n:Wide) RETURN DISTINCT {KEYS}",
    "groups": f"MATCH (n:Wide) RETURN {KEYS}, count(*)",
    "set": "MATCH (n:Wide) SET " + ", ".join(f"n.c{i} = {i}" for i in range(WIDE)),
    "constants": "RETURN " + ", ".join(f"{i} AS c{i}" for i in range(2048)),
}


def test_wide_rows_stop_at_their_timeout_wherever_they_are() -> None:
    """What is done for each column, and again for each of the others, has no time for that."""
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND [1, 2, 3] AS i CREATE (:Wide {" + ", ".join(f"c{i}: {i}" for i in range(WIDE)) + "})")
        expected = [(*range(WIDE),)]
        assert db.query(f"MATCH (n:Wide) RETURN {KEYS}").fetchall() == 3 * expected
        for form, text in WIDE_FORMS.items():
            watch = Stopwatch()
            with suppress(QueryTimeout):
                db.query(text, timeout=0.9)
            assert watch.seconds() < 0.9 + SLACK, form
        assert db.query(WIDE_FORMS["distinct"]).fetchall() == expected
        assert db.query(WIDE_FORMS["groups"]).fetchall() == [(*expected[0], 3)]


COLUMNS = ", ".join(f"{i} AS c{i}" for i in range(2048))

TOO_WIDE = {
    f"RETURN {COLUMNS}, 1 AS more": "1 AS more",
    f"WITH {COLUMNS}, 1 AS more RETURN more": "1 AS more",
    f"WITH {COLUMNS} RETURN *, 1 AS more": "1 AS more",
    f"WITH {COLUMNS} UNWIND [1] AS more RETURN *": "RETURN *",
    f"WITH {COLUMNS} UNWIND [1] AS more WITH * RETURN more": "WITH *",
    f"CALL {{ RETURN {COLUMNS}, 1 AS more }} RETURN more": "1 AS more",
    f"RETURN 1 AS c UNION ALL RETURN {COLUMNS}, 1 AS more": "1 AS more",
    f"CREATE TABLE t AS RETURN {COLUMNS}, 1 AS more": "1 AS more",
    f"CREATE VIEW v AS MATCH (n:P) RETURN {COLUMNS}, 1 AS more": "1 AS more",
    f"CREATE CONTINUOUS QUERY q AS MATCH (n:P) RETURN {COLUMNS.replace(' AS', ' + n.k AS')}, 1 AS more": "1 AS more",
    f"MATCH (n:P) SET n.k = 1 RETURN {COLUMNS}, 1 AS more": "1 AS more",
    f"EXPLAIN RETURN {COLUMNS}, 1 AS more": "1 AS more",
    f"SELECT * FROM cypher($$ RETURN {COLUMNS}, 1 AS more $$)": "1 AS more",
}


@pytest.mark.parametrize("text", TOO_WIDE, ids=range(len(TOO_WIDE)))
def test_a_clause_has_so_many_columns_and_no_more(text: str) -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        with pytest.raises(NotSupportedError, match="at most 2,048 columns, and here are 2,049") as error:
            db.query(text)
        assert error.value.hint == "return whole vertices, maps or lists, or ask in several queries"
        shown, caret = str(error.value).splitlines()[1:3]
        assert shown[caret.index("^") :].startswith(TOO_WIDE[text])


def test_a_clause_has_as_many_columns_as_it_may() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        assert db.query(f"WITH {COLUMNS} RETURN {COLUMNS}").fetchall() == [(*range(2048),)]
        assert sorted(*db.query(f"WITH {COLUMNS} RETURN *")) == [*range(2048)]


def test_columns_that_are_long_in_sql_are_computed_by_python() -> None:
    """DuckDB binds the SQL of all columns in one piece, and durations are long in SQL."""
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(1, 3) AS i CREATE (:P {k: i})")
        day = "date('2020-01-01') + duration({{days: a.k + {i}}}) AS d{i}"
        days = ", ".join(day.format(i=i) for i in range(400))
        wide = db.query(f"MATCH (a:P) RETURN {days} ORDER BY d0").fetchall()
        start = datetime.date(2020, 1, 1).toordinal()
        assert wide == [tuple(datetime.date.fromordinal(start + k + i) for i in range(400)) for k in (1, 2, 3)]
        assert sorted(db.query(f"MATCH (a:P) RETURN DISTINCT {days}").fetchall()) == wide


def test_aggregates_that_are_long_in_sql_are_refused() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(1, 3) AS i CREATE (:P {k: i})")
        lists = "MATCH (a:P) RETURN " + ", ".join(f"collect([a.k, {i}])[0] AS c{i}" for i in range(2048))
        with pytest.raises(NotSupportedError, match="too long in SQL, of which they take 131,072 characters") as error:
            db.query(lists)
        assert error.value.hint == "ask for this column and what follows in another query"
        (row,) = db.query(lists.split(", collect([a.k, 300])")[0])
        assert row == tuple([1, i] for i in range(300))


def test_a_table_of_thousands_of_properties() -> None:
    """DuckDB nests joins no deeper than 1,000."""
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND [1, 2, 3] AS i CREATE (:Wide {" + ", ".join(f"c{i}: {i}" for i in range(1100)) + "})")
        db.query("CREATE TABLE wide AS MATCH (n:Wide) RETURN " + ", ".join(f"n.c{i}" for i in range(1100)))
        assert db.sql("SELECT * FROM wide").fetchall() == [(*range(1100),)] * 3


def test_a_pattern_too_large_to_plan_is_refused(db: graphdb.Database) -> None:
    with pytest.raises(NotSupportedError, match="a pattern of more than 128 vertices or edges"):
        db.query("MATCH (a)" + "-->()" * 2000 + " RETURN count(*)")


@pytest.mark.parametrize(
    "rows", ["range(2000000000)", "(SELECT r.range FROM range(2000000000) r WHERE hash(r.range) % 1000 = 0)"]
)
def test_a_stream_that_is_read_when_time_is_over(rows: str) -> None:
    """DuckDB says it through the stream as a text, which was taken for an error of the file system's."""
    with graphdb.connect(threads=1) as db, pytest.raises(QueryTimeout), db._state.connection.guard(0.3) as raw:
        for _ in batches(raw, f"SELECT * FROM {rows}", 1 << 11):
            pass


def test_what_ctrl_c_leaves_unread_blocks_nothing(db: graphdb.Database) -> None:
    """It may come once DuckDB has run a statement, and before its rows are fetched."""
    text = "MATCH (n:P) RETURN count(n.k) AS c"
    found = db.query(text).scalar()
    connection = db._state.connection
    for opened in (False, True):
        if opened:
            db.query("BEGIN")
        with suppress(KeyboardInterrupt), connection.guard() as raw:
            raw.execute("FROM range(10)")
            raise KeyboardInterrupt
        assert connection.raw.sql("SELECT 1").fetchall() == [(1,)]
        connection.raw.execute("FROM range(10)")
        assert db.query(f"{text}{' ' * opened}").scalar() == found
    db.query("COMMIT")


def test_ctrl_c_leaves_no_name_that_shows_nothing(db: graphdb.Database) -> None:
    """Bindings of other columns take the name of those before, which lasts."""
    texts = ["MATCH (n:P) RETURN max(n.k + n.k) AS c", "MATCH (n:P), (m:P) WHERE n.k < m.k RETURN max(n.k + m.k) AS c"]
    found = [db.query(text).scalar() for text in texts]
    at, came = 0, True
    while came:
        came = interrupted_at(lambda: db.query(texts[1]), at, ("duckdb/windows.py",)) is not None
        assert [db.query(text).scalar() for text in texts] == found, at
        at += 1
    assert at > 10
