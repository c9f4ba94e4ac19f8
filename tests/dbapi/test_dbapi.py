"""PEP 249: what its text says of a module, its connections and its cursors."""

from __future__ import annotations

import datetime
import pathlib
import time
from collections.abc import Iterator

import pytest

from graphdb import dbapi


@pytest.fixture
def connection() -> Iterator[dbapi.Connection]:
    opened = dbapi.connect(threads=1)
    yield opened
    opened.close()


def test_module() -> None:
    assert dbapi.apilevel == "2.0"
    assert dbapi.threadsafety in (0, 1, 2, 3)
    assert dbapi.paramstyle in ("qmark", "numeric", "named", "format", "pyformat")
    assert issubclass(dbapi.Warning, Exception)
    assert issubclass(dbapi.Error, Exception)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        error = getattr(dbapi, f"{name}Error")
        assert issubclass(error, dbapi.DatabaseError)
        assert getattr(dbapi.Connection, f"{name}Error") is error
    assert dbapi.Date(2002, 12, 25) == datetime.date(2002, 12, 25)
    assert dbapi.Time(13, 45, 30) == datetime.time(13, 45, 30)
    assert dbapi.Timestamp(2002, 12, 25, 13, 45, 30) == datetime.datetime(2002, 12, 25, 13, 45, 30)
    ticks = time.mktime((2002, 12, 25, 13, 45, 30, 0, 0, 0))
    assert dbapi.DateFromTicks(ticks) == dbapi.Date(2002, 12, 25)
    assert dbapi.TimeFromTicks(ticks) == dbapi.Time(13, 45, 30)
    assert dbapi.TimestampFromTicks(ticks) == dbapi.Timestamp(2002, 12, 25, 13, 45, 30)
    assert dbapi.Binary(b"x") == b"x"


def test_types_of_columns(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE (:A {n: 1})")
    cursor.execute(
        "SELECT 1 AS a, 1.5::DOUBLE AS b, 'x' AS c, 'x'::BLOB AS d, DATE '2020-01-01' AS e, now() AS f, INTERVAL 1 DAY AS g"
    )
    kinds = [dbapi.NUMBER, dbapi.NUMBER, dbapi.STRING, dbapi.BINARY, dbapi.DATETIME, dbapi.DATETIME, dbapi.DATETIME]
    assert cursor.description is not None
    assert [column[1] for column in cursor.description] == kinds
    assert [len(column) for column in cursor.description] == [7] * 7
    assert cursor.execute("MATCH (a:A) RETURN a, a.n AS n").description is not None
    assert [column[:2] for column in cursor.description] == [("a", dbapi.ROWID), ("n", dbapi.NUMBER)]
    assert len({dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID}) == 5


def test_rows(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.Error):
        cursor.fetchone()
    assert (cursor.description, cursor.rowcount, cursor.arraysize) == (None, -1, 1)
    cursor.execute("UNWIND range(1, 10) AS n CREATE (:N {n: n})")
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(dbapi.Error):
            fetch()
    cursor.execute("MATCH (a:N) RETURN a.n AS n ORDER BY n")
    assert cursor.rowcount == 10
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany() == [(2,)]
    assert cursor.fetchmany(3) == [(3,), (4,), (5,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(6,), (7,)]
    assert next(iter(cursor)) == (8,)
    assert cursor.fetchall() == [(9,), (10,)]
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == (None, [], [])
    assert cursor.execute("MATCH (a:None) RETURN a").fetchall() == []
    assert cursor.rowcount == 0
    cursor.setinputsizes((25,))
    cursor.setoutputsize(1000, 0)
    assert cursor.result is not None
    assert cursor.result.df().empty


def test_changed_rows_are_counted(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.execute("CREATE TABLE t (n INT)").rowcount == -1
    assert cursor.executemany("INSERT INTO t VALUES (?)", [[1], (2,), [3]]).rowcount == 3
    assert cursor.executemany("INSERT INTO t VALUES ($n)", [{"n": 4}]).rowcount == 1
    assert cursor.executemany("CREATE (:N {n: $n})", ({"n": n} for n in range(5))).description is None
    assert cursor.execute("UPDATE t SET n = n + 1 WHERE n > 1").rowcount == 3
    assert cursor.description is None
    assert cursor.execute("DELETE FROM t WHERE n = 1 RETURNING n").fetchall() == [(1,)]
    assert cursor.execute('SELECT count(*) AS "Count" FROM t').fetchall() == [(3,)]
    assert connection.execute("MATCH (a:N) RETURN count(*)").fetchone() == (5,)
    with pytest.raises(dbapi.ProgrammingError):
        cursor.executemany("SELECT ?", [[1]])


def test_transactions(tmp_path: pathlib.Path) -> None:
    connection = dbapi.connect(str(tmp_path / "x.duckdb"), threads=1)
    cursor = connection.cursor()
    connection.commit()
    connection.rollback()
    cursor.execute("CREATE (:A)")
    connection.rollback()
    assert cursor.execute("MATCH (a:A) RETURN count(*)").fetchone() == (0,)
    cursor.execute("CREATE (:A)")
    cursor.execute("CREATE TABLE t AS MATCH (a:A) RETURN count(*) AS n")
    connection.commit()
    with connection:
        cursor.execute("CREATE (:A)")
    with pytest.raises(dbapi.ProgrammingError), connection:
        cursor.execute("CREATE (:A)").execute("CREATE (")
    cursor.execute("INSERT INTO t VALUES (7)")
    connection.close()  # rolls back
    connection = dbapi.connect(str(tmp_path / "x.duckdb"), autocommit=True, threads=1)
    assert connection.execute("MATCH (a:A) RETURN count(*)").fetchone() == (2,)
    assert connection.execute("FROM t").fetchall() == [(1,)]
    connection.execute("CREATE (:A)")
    connection.rollback()
    assert connection.execute("MATCH (a:A) RETURN count(*)").fetchone() == (3,)
    connection.close()


def test_the_answer_of_a_continuous_query_follows_transactions(connection: dbapi.Connection) -> None:
    connection.execute("CREATE CONTINUOUS QUERY people AS MATCH (p:P) RETURN p.n AS n")  # outside of one, by itself
    connection.execute("CREATE (:P {n: 1})")
    connection.commit()
    connection.execute("CREATE (:P {n: 2})")
    connection.rollback()
    assert connection.execute("FROM people").fetchall() == [(1,)]
    assert connection.execute("SELECT change, n FROM people_changes").fetchall() == [(1, 1)]


def test_a_load_is_a_transaction_of_its_own(connection: dbapi.Connection, tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.nt").write_text("<a:a> <a:p> <a:b> .\n")
    connection.execute(f"LOAD '{tmp_path / 'x.nt'}'")
    connection.rollback()
    assert connection.execute("MATCH ()-->() RETURN count(*)").fetchone() == (1,)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("MATCH (a RETURN a", dbapi.ProgrammingError),
        ("SELECT * FROM nothing", dbapi.ProgrammingError),
        ("SELECT nothing", dbapi.ProgrammingError),
        ("RETURN $x", dbapi.ProgrammingError),
        ("SELECT 'x'::INT", dbapi.DataError),
        ("INSERT INTO once VALUES (1), (1)", dbapi.IntegrityError),
        ("LOAD 'nowhere.nt'", dbapi.OperationalError),
        ("RETURN 1 + 'x' * 2", dbapi.DatabaseError),
    ],
)
def test_errors(connection: dbapi.Connection, statement: str, kind: type[dbapi.Error]) -> None:
    connection.execute("CREATE TABLE once (n INT UNIQUE)")
    connection.commit()
    with pytest.raises(kind) as error:
        connection.execute(statement)
    assert str(error.value) == str(error.value.__cause__)
    connection.rollback()
    assert connection.execute("RETURN 1").fetchone() == (1,)


def test_what_is_closed(connection: dbapi.Connection) -> None:
    cursor = connection.execute("RETURN 1")
    with connection.cursor() as other:
        other.execute("RETURN 1")
    for use in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute("RETURN 1"), connection.commit):
        connection.close()
        with pytest.raises(dbapi.InterfaceError):
            use()
    with pytest.raises(dbapi.InterfaceError):
        other.fetchone()
    connection.close()
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect("/nowhere/at/all.duckdb")
