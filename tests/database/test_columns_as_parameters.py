"""Columns of data frames and arrays as parameters: lists, as everybody who has them expects."""

from __future__ import annotations

import array
import datetime
from collections.abc import Iterator

import numpy as np
import pytest

import graphdb

IDS = [2, 3, 5]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query(
            "UNWIND range(1, 6) AS i CREATE (:P {id: i, name: 'p' + i, on: date('2024-01-01') + duration({days: i})})"
        )
        yield database


def columns() -> Iterator[object]:
    yield np.array(IDS)
    yield array.array("q", IDS)
    for name, make in (
        ("pandas", lambda library: (library.Series(IDS), library.Index(IDS), library.DataFrame({"a": IDS})["a"])),
        ("polars", lambda library: (library.Series(IDS),)),
        ("pyarrow", lambda library: (library.array(IDS), library.chunked_array([IDS[:1], IDS[1:]]))),
    ):
        yield from make(pytest.importorskip(name))


def test_a_column_is_a_list(db: graphdb.Database) -> None:
    for column in columns():
        found = db.query("MATCH (p:P) WHERE p.id IN $ids RETURN p.id ORDER BY p.id", ids=column).fetchall()
        assert found == [(id,) for id in IDS], type(column)
    assert db.query("UNWIND $1 AS x RETURN sum(x)", [np.array([0.5, 1.5])]).scalar() == 2.0
    assert db.query("RETURN $m AS m", m=np.array([[1, 2], [3, 4]])).scalar() == [[1, 2], [3, 4]]
    assert db.query("RETURN size($x)", {"x": np.array([], np.int64)}).scalar() == 0
    assert db.query("MATCH (p:P) WHERE p.name IN $names RETURN count(*)", names=np.array(["p1", "x"])).scalar() == 1


def test_a_frame_is_a_list_of_maps(db: graphdb.Database) -> None:
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rows = {"id": IDS, "w": ["a", "b", "c"]}
    text = "UNWIND $rows AS row MATCH (p:P {id: row.id}) RETURN p.name + row.w ORDER BY p.id"
    own = db.query("UNWIND [2, 3, 5] AS id RETURN id, {`2`: 'a', `3`: 'b', `5`: 'c'}[toString(id)] AS w")
    for frame in (pandas.DataFrame(rows), polars.DataFrame(rows), pyarrow.table(rows), own):
        assert db.query(text, rows=frame).fetchall() == [("p2a",), ("p3b",), ("p5c",)], type(frame)


def test_times_stay_times(db: graphdb.Database) -> None:
    pandas = pytest.importorskip("pandas")
    day = datetime.datetime(2024, 1, 3)
    for column in (
        pandas.Series(pandas.to_datetime(["2024-01-03"])),
        np.array(["2024-01-03"], "datetime64[ns]"),
        np.array(["2024-01-03"], "datetime64[D]"),
    ):
        assert db.query("UNWIND $t AS t RETURN t = localdatetime('2024-01-03T00:00')", t=column).scalar() is True, (
            column
        )
    assert db.query("RETURN $t", t=day).scalar() == day


def test_what_is_missing_to_pandas_is_null(db: graphdb.Database) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "text": ["a", None],
            "day": pandas.to_datetime(["2024-01-03", None]),
            "span": pandas.to_timedelta(["1D", None]),
            "count": pandas.array([1, None], "Int64"),
            "kind": pandas.Categorical(["b", None]),
            "number": [0.5, float("nan")],
        }
    )
    asked = ", ".join(f"r.{name}" for name in frame)
    [_, (*others, number)] = db.query(f"UNWIND $rows AS r RETURN {asked}", rows=frame).fetchall()
    assert others == [None] * 5
    assert isinstance(number, float)
    for column in (*(frame[name] for name in list(frame)[:5]), pandas.Index(["a", None])):
        found = db.query("UNWIND $values AS x RETURN x IS NULL", values=column).fetchall()
        assert found == [(False,), (True,)], column
    for given in (pandas.NaT, pandas.NA):
        assert db.query("RETURN $x AS x, $y AS y", x=given, y=[given, 1]).fetchall() == [(None, [None, 1])]
    assert db.query("RETURN $x", x=pandas.MultiIndex.from_tuples([(1, "a")])).scalar() == [[1, "a"]]
    for given in (pandas.NaT, pandas.NA, np.datetime64("NaT", "ns"), np.timedelta64("NaT", "ns")):
        for text in (
            "MATCH (p:P) WHERE p.on < $x OR p.id = $x RETURN p",
            "MATCH (p:P {on: $x}) RETURN p",
            "UNWIND [$x] AS x MATCH (p:P) WHERE CASE WHEN p.on = x THEN true ELSE $x END RETURN p",
            "SELECT 1 WHERE $x IS NOT NULL",
        ):
            assert db.query(text, x=given).fetchall() == [], (text, given)


def test_scalars_of_numpy_are_scalars(db: graphdb.Database) -> None:
    assert db.query("RETURN $x + 1", x=np.int64(4)).scalar() == 5
    assert db.query("RETURN $x", x=np.str_("a")).scalar() == "a"
    for unit in "s", "us", "ns":  # of nanoseconds NumPy itself hands over their number
        span = np.timedelta64(5, "s").astype(f"timedelta64[{unit}]")
        assert db.query("RETURN $x = duration('PT5S')", x=span).scalar() is True
    assert db.query("RETURN $x", x=np.timedelta64("NaT", "ns")).scalar() is None
    with pytest.raises(graphdb.ParameterError, match="timedelta64 cannot be passed"):
        db.query("RETURN $x", x=np.timedelta64(1, "Y"))
    with pytest.raises(graphdb.ParameterError, match="type object cannot be passed"):
        db.query("RETURN $x", x=object())
