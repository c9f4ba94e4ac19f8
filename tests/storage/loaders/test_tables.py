"""Tables: CSV, Parquet, data frames, networks and edge lists, with the types of their columns."""

from __future__ import annotations

import datetime
import decimal
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.common.duckdb.fetch import batches
from graphdb.storage.loaders.streams import blocks
from graphdb.storage.loaders.tables import delimited
from graphdb.storage.loaders.tables.headers import Dialect, Mapping
from graphdb.storage.loaders.tables.reader import read_table
from tests.storage.loaders.files import OWN, RDF, TYPE, XSD, refused, rows, write

pytestmark = pytest.mark.usefixtures("in_a_folder")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.txt.zst"])
def test_a_name_is_no_compression(db: Any, name: str) -> None:
    """What a file's first bytes are decides, not what it is called."""
    write(name, ":ID,n\n1,2\n" if "csv" in name else "1 2\n2 3\n")
    assert db.load(name, format="csv" if "csv" in name else "edges").errors == 0
    assert db.query("MATCH (n) RETURN count(*)").fetchall() == [(1 if "csv" in name else 3,)]


def test_node_and_edge_tables(db: Any) -> None:
    write("people.csv", "id:ID(P),name,age:int,:LABEL,tags:string[],born:date\n"
          '007,"Ada ""L"" \\, Byron",36,Person;Author,a;b,1815-12-10\n2,Bo,,Person,,\n"x y",,,,,\n')  # fmt: skip
    write("knows.csv", ":START_ID(P),:END_ID(P),:TYPE,since:int\n007,2,knows,1999\n007,2,knows,2000\n2,x y,likes,\n")
    db.load("*.csv")
    a, b, c = (OWN + f"P/{name}" for name in ("007", "2", "x%20y"))
    text = XSD + "string"
    assert rows(db) == {
        (a, TYPE, OWN + "Person", None, None), (a, TYPE, OWN + "Author", None, None), (b, TYPE, OWN + "Person", None, None),
        (a, OWN + "id", "007", text, None), (b, OWN + "id", "2", text, None), (c, OWN + "id", "x y", text, None),
        (a, OWN + "name", 'Ada "L" \\, Byron', text, None), (b, OWN + "name", "Bo", text, None),
        (a, OWN + "age", "36", XSD + "integer", None), (a, OWN + "born", "1815-12-10", XSD + "date", None),
        (a, OWN + "tags", "a", text, None), (a, OWN + "tags", "b", text, None),
        (a, OWN + "knows", b, None, None), (b, OWN + "likes", c, None, None),
    }  # fmt: skip
    two = db.query(
        "MATCH (a:Person {name: 'Bo'})<-[k:knows]-(b:Author) RETURN b.age, k.since ORDER BY k.since"
    ).fetchall()
    assert two == [(36, 1999), (36, 2000)]
    since = "SELECT v.lexical FROM _graphdb.edge_property JOIN _graphdb.literal AS v ON v.id = value ORDER BY ALL"
    assert db.sql(since).fetchall() == [("1999",), ("2000",)]


def test_mapped_columns(db: Any) -> None:
    write("flights.csv", "from,to,km\nFRA,LIS,1870\n")
    columns = {"from": ":START_ID(Airport)", "to": ":END_ID(Airport)", "km": "http://x/km:int"}
    db.load("flights.csv", columns=columns, type="flight")
    assert (OWN + "Airport/FRA", OWN + "flight", OWN + "Airport/LIS", None, None) in rows(db)
    assert "http://x/km" in {iri for (iri,) in db.sql("SELECT iri FROM _graphdb.resource").fetchall()}


def test_data_frames_and_parquet_say_the_same() -> None:
    """One table as pandas, Polars and Arrow, from Parquet, and as a result of ours."""
    pandas, polars, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    import pyarrow.parquet

    table = pa.table({":ID": ["a", "b"], "n": [1, None], "x": [1.5, float("inf")], "t": [True, False]})
    pyarrow.parquet.write_table(table, "t.parquet")
    expected = None
    for data in (table, pandas.DataFrame(table.to_pandas()), polars.from_arrow(table), "t.parquet"):
        with graphdb.connect() as db:
            db.load(data, label="Thing")
            found = {(s, p, o if p != OWN + "n" else str(int(float(o))), *rest[1:]) for s, p, o, *rest in rows(db)}
            expected = expected or found
            assert found == expected
    assert len(expected or ()) == 7


def test_networkx(db: Any) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph()
    graph.add_node(1, label="Person", name="x", wide=10**30, wider=10**50)
    graph.add_edge(1, 2, type="knows", since=3)
    graph.add_edge(1, 2, type="knows")
    graph.add_node("alone")
    db.load(graph)
    assert (OWN + "1", OWN + "knows", OWN + "2", None, None) in rows(db)
    assert (OWN + "1", OWN + "wide", str(10**30), XSD + "integer", None) in rows(db)
    assert (OWN + "1", OWN + "wider", str(10**50), XSD + "string", None) in rows(db), (
        "no integer of DuckDB's is as wide"
    )
    assert {row[0] for row in rows(db)} == {OWN + "1", OWN + "2", OWN + "alone"}
    assert db.sql("SELECT count(*) FROM _graphdb.edge").scalar() == 2


def test_attributes_of_any_type(db: Any) -> None:
    """Several types are several, what is no value is none, and vertices whose names are one text are refused."""
    networkx, pandas = pytest.importorskip("networkx"), pytest.importorskip("pandas")
    graph = networkx.Graph()
    for node, value in enumerate([1, "1", True, {"x"}, pandas.NaT, pandas.NA, None, 2**70, 1 + 2j]):
        graph.add_node(node, v=value)
    graph.add_node(9, v=pandas.Timestamp("2020-01-01", tz="Europe/Berlin"))
    db.load(graph)
    assert {row[2:4] for row in rows(db) if row[1] == OWN + "v"} == {
        ("1", XSD + "integer"), ("1", XSD + "string"), ("true", XSD + "boolean"), ("x", XSD + "string"),
        (str(2**70), XSD + "integer"), ("(1+2j)", XSD + "string"), ("2019-12-31T23:00:00Z", XSD + "dateTime"),
    }  # fmt: skip
    graph.add_node("9")
    with graphdb.connect() as empty:
        refused(empty, graph, "the vertices 9 and '9' would be one")


def test_attributes_of_networks_are_no_headers(db: Any) -> None:
    """Only tables say types and roles in names; in a network a name is a name."""
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_node("a", **{"x:int": "seven", ":ID": "b", "Name": 1, "name": 2, "n:IGNORE": 3})
    graph.add_edge("a", "b", **{"w:float": "heavy"})
    db.load(graph, label="Thing", type="knows", columns={"Name": "age:int"})
    text = XSD + "string"
    assert {row[1:4] for row in rows(db) if row[0] == OWN + "a"} == {
        ("x:int", "seven", text), (OWN + ":ID", "b", text), (OWN + "age", "1", XSD + "integer"),
        (OWN + "name", "2", XSD + "integer"), ("n:IGNORE", "3", XSD + "integer"),
        (TYPE, OWN + "Thing", None), (OWN + "knows", OWN + "b", None),
    }  # fmt: skip
    assert db.query("MATCH (a)-[e:knows]->(b) RETURN e.<w:float>").scalar() == "heavy"
    back = db.to_networkx()
    assert back.nodes["a"] == {"x:int": "seven", ":ID": "b", "age": 1, "name": 2, "n:IGNORE": 3, "labels": ["Thing"]}


def test_frames_say_what_their_files_say() -> None:
    """Headers of a frame, types included, are read as those of the file that it comes from."""
    pandas, polars = (pytest.importorskip(name) for name in ("pandas", "polars"))
    write("a.csv", ":ID(P),age:int,tags:string[],Name,name,:LABEL\n1,36,a;b,x,y,Person;Author\n2,,,z,,\n")
    expected = None
    for data in (
        "a.csv",
        pandas.read_csv("a.csv", dtype=str),
        polars.scan_csv("a.csv"),
        polars.read_csv("a.csv").to_arrow(),
    ):
        with graphdb.connect() as db:
            db.load(data)
            expected = expected or rows(db)
            assert rows(db) == expected
    assert {(OWN + "P/1", OWN + name, value) for name, value in (("Name", "x"), ("name", "y"), ("tags", "b"))} <= {
        row[:3] for row in expected or ()
    }


@pytest.mark.parametrize(
    "thing", [5, None, b"a.nt", [1.5], {"a": 1}.keys(), [[1]], object()], ids=lambda thing: type(thing).__name__
)
def test_what_is_nothing_to_load(db: Any, thing: Any) -> None:
    refused(db, thing, "there is no file 'a'" if isinstance(thing, type({}.keys())) else "cannot be loaded")


def test_frames_that_are_none(db: Any) -> None:
    pandas = pytest.importorskip("pandas")
    refused(db, pandas.DataFrame({":ID": ["a", "b"], "o": [1, "x"]}), "Conversion failed")
    refused(db, pandas.Series([1]), "Series")
    refused(db, pandas.DataFrame([["a", 1, 2]], columns=[":ID", "o", "o"]), "Duplicate column names")


def test_intervals_are_durations(db: Any) -> None:
    table = duckdb.sql(
        "SELECT unnest(['a', 'b', 'c', 'd']) AS \":ID\", unnest([INTERVAL '1 year 2 months 3 days 04:05:06.5',"
        " INTERVAL '-90 minutes', INTERVAL '0 days', INTERVAL '1 month -1 day']) AS x"
    )
    db.load(table.to_arrow_table())
    assert {row[0][-1]: row[2:4] for row in rows(db)} == {
        "a": ("P14M3DT14706.500000S", XSD + "duration"), "b": ("-P0M0DT5400.000000S", XSD + "duration"),
        "c": ("P0M0DT0.000000S", XSD + "duration"), "d": ("1 month -1 day", XSD + "string"),
    }  # fmt: skip
    assert db.query("MATCH (v <urn:graphdb:b>) RETURN v.x + duration('PT2H') = duration('PT30M')").scalar() is True


def test_one_mapping_for_several_tables(db: Any) -> None:
    """A mapping names the columns of all tables together; one that none of them has is a mistake."""
    write("people.csv", "person,name\n1,Ada\n")
    write("knows.csv", "from,to\n1,2\n")
    columns = {"person": ":ID", "from": ":START_ID", "to": ":END_ID"}
    db.load("*.csv", columns=columns, type="knows")
    assert {row[:3] for row in rows(db)} == {
        (OWN + "1", OWN + "name", "Ada"), (OWN + "1", OWN + "knows", OWN + "2"),
    }  # fmt: skip
    with graphdb.connect() as other:
        refused(other, ["people.csv", "knows.csv"], "no column 'nmae'", columns={**columns, "nmae": "n"}, type="knows")
        refused(other, "people.csv", "no column 'persn'", columns={"persn": ":ID"})


def test_what_is_stated_is_read_as_it_is(db: Any) -> None:
    """Casts that would change a value are errors; what text says is kept: zones, digits, clocks in UTC."""
    head = ":ID,i:int,b:boolean,t:time,at:datetime,local:localdatetime,d:duration,f:float\n"
    write("a.csv", head + "1, 7 , TRUE ,10:00+02,2020-01-01T10:00:00,2020-01-01 10:00:00.123456789,P1Y2M,1e3\n")
    db.load("a.csv")
    assert {row[1:4] for row in rows(db)} == {
        (OWN + "i", "7", XSD + "integer"), (OWN + "b", "true", XSD + "boolean"), (OWN + "t", "10:00:00+02:00", XSD + "time"),
        (OWN + "at", "2020-01-01T10:00:00Z", XSD + "dateTime"), (OWN + "f", "1000.0", XSD + "double"),
        (OWN + "local", "2020-01-01T10:00:00.123456789", XSD + "dateTime"), (OWN + "d", "P1Y2M", XSD + "duration"),
    }  # fmt: skip
    for header, value in {"i:int": "0x10", "i:long": "1_000", "i:byte": "1e3", "f:float": "1_0", "d:date": "2020-01-01T10:00",
                          "b:boolean": "ja", "t:time": "25:00", "d:duration": "1 year", "l:int[]": "1;2.5"}.items():  # fmt: skip
        with graphdb.connect() as empty:
            refused(empty, write("b.csv", f":ID,{header}\n1,{value}\n"), "that is no", (2, 3))
    program = (
        "import graphdb; db = graphdb.connect(); db.load('a.csv'); print(db.query('MATCH (n) RETURN n.at').scalar())"
    )
    elsewhere = {**os.environ, "TZ": "America/New_York"}
    assert subprocess.check_output([sys.executable, "-c", program], env=elsewhere, text=True).startswith(
        "2020-01-01 10:00"
    )


def test_types_of_frames(db: Any) -> None:
    """Whatever Arrow's types are: nothing is rounded, and years before our era count."""
    pa = pytest.importorskip("pyarrow")
    day = datetime.date(2020, 1, 1)
    table = {
        ":ID": pa.array([1.0, None, 2.5]).cast(pa.float64()),
        "ns": pa.array([1577836800123456789] * 3, pa.timestamp("ns")),
        "zoned": pa.array([1577836800123456789] * 3, pa.timestamp("ns", "Asia/Tokyo")),
        "early": pa.array([-100_000_000_000] * 3, pa.timestamp("s")),
        "day": pa.array([-800_000] * 3, pa.date32()), "clock": pa.array([3723000000001] * 3, pa.time64("ns")),
        "pair": pa.array([[1, 2]] * 3, pa.list_(pa.int64(), 2)), "nested": pa.array([[[1], [2, 3]]] * 3),
        "texts": pa.array([["", " x", None]] * 3), "half": pa.array([1.5] * 3, pa.float32()).cast(pa.float16()),
        "whole:int": pa.array([3.0] * 3), "date:date": pa.array([datetime.datetime(2020, 1, 1)] * 3),
    }  # fmt: skip
    assert db.load(pa.table(table), on_error="skip").errors == 1
    assert {row[1:4] for row in rows(db) if row[0] == OWN + "1"} == {
        (OWN + "ns", "2020-01-01T00:00:00.123456789", XSD + "dateTime"),
        (OWN + "zoned", "2020-01-01T00:00:00.123456789Z", XSD + "dateTime"),
        (OWN + "early", "-1199-02-15T14:13:20", XSD + "dateTime"), (OWN + "day", "-0221-09-04", XSD + "date"),
        (OWN + "clock", "01:02:03.000000001", XSD + "time"), (OWN + "pair", "1", XSD + "integer"),
        (OWN + "pair", "2", XSD + "integer"), (OWN + "nested", "[1]", RDF + "JSON"), (OWN + "nested", "[2,3]", RDF + "JSON"),
        (OWN + "texts", "", XSD + "string"), (OWN + "texts", " x", XSD + "string"), (OWN + "half", "1.5", XSD + "double"),
        (OWN + "whole", "3", XSD + "integer"), (OWN + "date", "2020-01-01", XSD + "date"),
    }  # fmt: skip
    assert {row[0] for row in rows(db)} == {OWN + "1", OWN + "2.5"}
    pandas = pytest.importorskip("pandas")
    with graphdb.connect() as empty:
        refused(empty, pa.table({":ID": [1], "n:int": [4.7]}), "that is no integer: 4.7", (1, None))
        refused(empty, pa.table({":ID": [1], "d:date": [datetime.datetime(2020, 1, 1, 10)]}), "no date", (1, None))
        wide = pa.array([decimal.Decimal(1)], pa.decimal256(50))
        refused(empty, pa.table({":ID": [1], "d": wide}), "column 'd' has the type")
        months = pandas.period_range("2020", periods=1, freq="M")
        refused(empty, pandas.DataFrame({":ID": [1], "p": months}), "column 'p' has the type")
    frame = pandas.DataFrame({":ID": [7, 8, 9], "day": [day] * 3})
    assert db.load(frame[frame[":ID"] != 8]).new_triples == 2, "the numbers of rows are no property"


def test_streams_of_tables(db: Any) -> None:
    """What can be read once, or is read as it is needed: readers, data sets, lazy frames, relations of DuckDB."""
    pa, dataset, duckdb = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.dataset", "duckdb"))
    table = pa.table({":ID": ["a", "b", "b"], "n:int": [1, 2, 3]})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(1))
    for thing in (reader, dataset.dataset(table), dataset.dataset(table).scanner(), duckdb.from_arrow(table)):
        with graphdb.connect() as other:
            assert other.load(thing).new_triples == 3
            assert {row[2] for row in rows(other)} == {"1", "2", "3"}


def test_edge_lists_and_labelled_graphs(db: Any) -> None:
    db.load(write("a.txt", "# from to\n0\t1\n1 2\n\n0,2\n"), type="cites")
    assert rows(db) == {(OWN + s, OWN + "cites", OWN + o, None, None) for s, o in ("01", "12", "02")}
    with graphdb.connect() as other:
        other.load(write("g.graph", "t 3 2\nv 0 1 1\nv 1 2 1\nv 2 1 1\ne 0 1\ne 1 2 7\n"))
        assert rows(other) == {
            *((OWN + v, TYPE, OWN + label, None, None) for v, label in (("0", "L1"), ("1", "L2"), ("2", "L1"))),
            (OWN + "0", OWN + "edge", OWN + "1", None, None), (OWN + "1", OWN + "E7", OWN + "2", None, None),
        }  # fmt: skip


def test_wide_tables_become_small_blocks(tmp_path: Path) -> None:
    """Whatever a row has, a block of lines takes a few megabytes, and so does what each thread of DuckDB's holds."""
    with duckdb.connect() as connection:
        columns = ", ".join(f"{number} AS p{number}" for number in range(10))
        rows = connection.sql(f'SELECT i AS ":START_ID", 1 AS ":END_ID", {columns} FROM range(10_000) AS t(i)')
        mapping = Mapping(type="knows")
        table = arrow.table_of(rows), mapping.read(rows.columns)
        sizes = [
            len(block.text)
            for block in blocks(lambda put: read_table(table, "edges", 0, mapping, False, put, str(tmp_path)))
        ]
        assert sum(sizes) > 8 << 20
        assert max(sizes) < 4 << 20
        units = [len(batch) for batch in batches(connection, "SELECT i || 'x' FROM range(300_000) AS t(i)", 20_000)]
    assert sum(units) == 300_000
    assert max(units) <= 20_480


def test_csv_is_read_to_its_end(db: Any) -> None:
    """Nothing is guessed from the first rows: quotes, texts among numbers and long rows may come late."""
    text = ":ID,zip,n,when\n" + "".join(f"{i},10000,{i},2020-01-01\n" for i in range(30_000))
    text += f'a,01234,1.5,"new\nyear"\nb,"say ""no""",7,2020-01-01\nc,{"x" * (4 << 20)},,\n'
    db.load(write("a.csv", text))
    assert {row[1:] for row in rows(db) if row[0] in (OWN + "a", OWN + "b")} == {
        (OWN + "zip", "01234", XSD + "string", None), (OWN + "n", "1.5", XSD + "double", None),
        (OWN + "when", "new\nyear", XSD + "string", None), (OWN + "zip", 'say "no"', XSD + "string", None),
        (OWN + "n", "7.0", XSD + "double", None), (OWN + "when", "2020-01-01", XSD + "string", None),
    }  # fmt: skip
    assert db.query("MATCH (n) WHERE size(n.zip) = 4194304 RETURN count(*)").scalar() == 1


@pytest.mark.parametrize(("values", "datatype"), [
    ("0 -7 123", "integer"), ("1 12345678901234567890", "integer"), ("1 2.5 1e3 nan", "double"), ("true FALSE", "boolean"),
    ("2020-02-29", "date"), ("2020-02-30", "string"), ("12:30:00", "time"), ("2020-01-01T00:00:00 2020-01-02", "dateTime"),
    ("2020-01-01T00:00:00Z", "dateTime"), ("007 1", "string"), ("+1", "string"), ("1 x", "string"), ("1 true", "string"),
    ("1_000", "string"), ("9" * 40, "string"), ("01/02/2020", "string"), ("inf", "double"), ("t f", "string"),
])  # fmt: skip
def test_types_of_values(db: Any, values: str, datatype: str) -> None:
    """A column without a type has that of all its values, where they have one."""
    db.load(write("a.csv", ":ID,x\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values.split()))))
    found = {(row[2], row[3]) for row in rows(db) if row[1] == OWN + "x"}
    assert {type for _, type in found} == {XSD + datatype}
    if datatype in ("integer", "string"):
        assert {text for text, _ in found} == set(values.split())


def test_headers_as_people_write_them(db: Any) -> None:
    """Spaces, roles in lower case, columns without names, empty lines, what comes twice, colons in names."""
    head = "\n\n,:id, Name ,name,:IGNORE,:label,:IGNORE,,x:y:string,urn:z:a\n"
    db.load(write("a.csv", head + "0,1,x,y,-,P; Q,-,,seven,eight\n"))
    assert {row[:3] for row in rows(db)} == {
        (OWN + "1", OWN + "column0", "0"), (OWN + "1", OWN + "Name", "x"), (OWN + "1", OWN + "name", "y"),
        (OWN + "1", TYPE, OWN + "P"), (OWN + "1", TYPE, OWN + "Q"),
        (OWN + "1", "x:y", "seven"), (OWN + "1", "urn:z:a", "eight"),
    }  # fmt: skip


def test_values_that_are_not_of_their_type() -> None:
    """Told with their rows, or skipped, wherever a table comes from: in lists, in frames, in Parquet."""
    polars = pytest.importorskip("polars")
    write("a.csv", ":ID,x:int[],y:float\n1,1;zwei,\n2,3;4,1.5\n3,,2\n")
    frame = polars.read_csv("a.csv", schema_overrides={"y:float": polars.String})
    frame.write_parquet("a.parquet")
    for data, line, column in (("a.csv", 2, 3), (frame, 1, None), ("a.parquet", 1, None)):
        with graphdb.connect() as db:
            refused(db, data, "a value of x that is no integer: zwei", (line, column))
            assert db.load(data, on_error="skip").errors == 1
            assert {row[1:4] for row in rows(db)} == {
                (OWN + "x", "3", XSD + "integer"), (OWN + "x", "4", XSD + "integer"), (OWN + "y", "1.5", XSD + "double"),
                (OWN + "y", "2.0", XSD + "double"),
            }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n", "a,b", "\n\n a;b\n1;2", '"a\nx",b\n1,2\n', 'a,"b,c"\n1,2\n', "\n", "", "a\r\nb\r\n", "aé|b\u2028c|d\n1|2|3\n",
    ],
)  # fmt: skip
def test_headers_are_read_to_their_end(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little of a file is looked at first."""
    name = write("a.csv", text)

    def read() -> Any:
        try:
            return delimited.read_header(name, name, Dialect())
        except graphdb.LoadError as error:
            return str(error)

    monkeypatch.setattr(delimited, "_SHORT", delimited._HEADER)
    expected = read()
    for size in range(len(text) + 2):
        monkeypatch.setattr(delimited, "_SHORT", size)
        assert read() == expected
