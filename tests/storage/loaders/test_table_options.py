"""What is said of tables beside their headers: types of ids, labels, columns by position, lists, epochs, mappings, SQL."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import pathlib
import random
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import LoadError, ParseError
from graphdb.shell.cli import run
from graphdb.storage.loaders.tables import delimited
from graphdb.storage.updates import parallel_edges
from tests.storage.loaders.files import OWN, TYPE, XSD, refused, rows, write

pytestmark = pytest.mark.usefixtures("in_a_folder")

UTC = datetime.UTC


def test_ids_of_a_type(db: Any) -> None:
    """An id that is an integer is found as one, however it is written."""
    write("a.csv", "id:ID(Person){long},name\n879,Ada\n 007 ,Bo\n")
    write("b.csv", ":START_ID(Person){long},:END_ID(Person){id-type: long},:TYPE\n+879,7,KNOWS\n")
    db.load("*.csv")
    assert db.query("MATCH (p {id: 879})-[:KNOWS]->(q {id: 7}) RETURN p.name, q.name").fetchall() == [("Ada", "Bo")]
    assert db.query("MATCH (p {id: '879'}) RETURN count(*)").scalar() == 0
    with graphdb.connect() as other:
        write("c.csv", "id:ID(Person){string},name\n879,Ada\n")
        other.load("c.csv")
        assert other.query("MATCH (p {id: '879'}) RETURN p.name").scalar() == "Ada"


def test_ids_without_a_type_have_that_of_all_their_values(db: Any) -> None:
    write("a.csv", "id:ID(A),x\n1,a\n2,b\n")
    write("b.csv", "id:ID(B),x\n1,c\n02,d\n")
    db.load("*.csv")
    assert db.query("MATCH (n {id: 1}) RETURN n.x").fetchall() == [("a",)]
    assert db.query("MATCH (n {id: '1'}) RETURN n.x").fetchall() == [("c",)]
    assert db.query("MATCH (n {id: '02'}) RETURN n.x").fetchall() == [("d",)]


def test_ids_of_frames_keep_their_type(db: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    db.load(pa.table({"id:ID(P)": [1, 2], "name": ["a", "b"]}))
    assert db.query("MATCH (n {id: 2}) RETURN n.name").scalar() == "b"


@pytest.mark.parametrize(
    ("header", "value", "message"),
    [("id:ID(P){long}", "x7", "a value of id that is no integer: x7"), (":ID{long}", "1.5", "no integer: 1.5"),
     ("at:date{epoch_ms}", "1", "a value of at that is no date: 1"), ("at:datetime{epoch_s}", "soon", "no date and time: soon"),
     ("at:datetime{epoch_ms}", "9" * 19, "no date and time: 999"), ("l:list<int>", "1;zwei", "no integer: zwei")],
)  # fmt: skip
def test_values_that_are_not_of_their_type(db: Any, header: str, value: str, message: str) -> None:
    first = "" if ":ID" in header else ":ID,"
    text = f"{first}{header},z\n{'1,' if first else ''}{value},2\n"
    refused(db, write("a.csv", text), message, (2, 3 if first else 1))
    text += "5,3\n" if not first else "2,,3\n"
    assert db.load(write("b.csv", text), on_error="skip").errors == 1
    assert db.query("MATCH (n) RETURN n.z").fetchall() == [(3,)]


@pytest.mark.parametrize(
    ("header", "message", "hint"),
    [("id:ID(P){lon}", "unknown option 'lon'", "{long}"), ("x:datetime{epoch}", "unknown option 'epoch'", "{epoch_"),
     ("x:int{epoch_s}", "unknown option 'epoch_s'", ":int has none"), (":LABEL{long}", "unknown option 'long'", "has none"),
     ("x:list<strin>", "unknown type 'strin'", "did you mean x:string")],
)  # fmt: skip
def test_options_that_are_none(db: Any, header: str, message: str, hint: str) -> None:
    with pytest.raises(LoadError, match=message) as caught:
        db.load(write("a.csv", f":ID,{header}\n1,2\n"))
    assert hint in str(caught.value)
    assert not rows(db)


@pytest.mark.parametrize(
    "option", ["{label:Person}", "{ label: Person }", "{label:Person, id-type:long}", "{id-type: long,label:Person}"]
)
def test_keys_of_labels_as_neo4j_has_them(db: Any, option: str) -> None:
    """The label says which constraint the key belongs to: vertices get theirs from the column, or from the options."""
    number = "long" in option
    db.load(write("a.csv", f'"id:ID(P){option}",:LABEL,name\n7,Person,Ada\n08,,Bo\n'))
    db.load(write("b.csv", f'":START_ID(P){option}",:END_ID(P)\n7,{"8" if number else "08"}\n'), type="KNOWS")
    ids = [7, 8] if number else ["7", "08"]
    assert db.query("MATCH (a:Person)-[:KNOWS]->(b) RETURN a.id, b.id, labels(b)").fetchall() == [(*ids, [])]


@pytest.mark.parametrize(
    "header", [":ID{label:}", ":ID{label}", ":ID{labels:Person}", ":LABEL{label:Person}", "x:int{label:P}"]
)
def test_labels_of_keys_that_are_none(db: Any, header: str) -> None:
    with pytest.raises(LoadError, match="unknown option 'label"):
        db.load(write("a.csv", f":ID(Q),{header}\n1,2\n"))


def test_several_labels(db: Any) -> None:
    """Labels that are given go with those of a column."""
    write("a.csv", ":ID,:LABEL\n1,Post;Long\n2,\n")
    db.load("a.csv", label="Message:Thing")
    labels = {(row[0], row[2]) for row in rows(db) if row[1] == TYPE}
    both = {(OWN + one, OWN + label) for one in "12" for label in ("Message", "Thing")}
    assert labels == both | {(OWN + "1", OWN + "Post"), (OWN + "1", OWN + "Long")}
    for label in (["Message", "Thing"], ("Message", "Thing", "Message")):
        with graphdb.connect() as other:
            other.load("a.csv", label=label)
            assert rows(other) == rows(db)
    with graphdb.connect() as other:
        other.load("a.csv", label="http://x/Post")
        assert (OWN + "2", TYPE, "http://x/Post", None, None) in rows(other)
        other.query("LOAD 'a.csv' LABEL A:B")
        assert other.query("MATCH (n:A:B) RETURN count(*)").scalar() == 2


def test_columns_by_position(db: Any) -> None:
    """Two columns of one name, as in LDBC's files, are described by where they are."""
    write("person.csv", 'id|name|email\n1|Ada "A"|a@x;b@x\n2|Bo|\n')
    write("knows.csv", "Person.id|Person.id|since\n1|2|5\n")
    db.load(
        "person.csv",
        columns=["id:ID(Person){long}", None, "email:list<string>"],
        label="Person",
        delimiter="|",
        quote="",
    )
    db.load("knows.csv", columns=(":START_ID(Person)", ":END_ID(Person)", "since:int"), type="KNOWS", delimiter="|")
    found = db.query("MATCH (a:Person {id: 1})-[k:KNOWS]->(b) RETURN a.name, a.email, k.since, b.id").fetchall()
    assert found == [('Ada "A"', ["a@x", "b@x"], 5, 2)]
    with graphdb.connect() as other:
        refused(other, "knows.csv", "columns gives 2 headers, but the table has 3 columns: Person.id, Person.id, since",
                columns=[":START_ID", ":END_ID"], type="KNOWS")  # fmt: skip


def test_lists_in_order(db: Any) -> None:
    """A list is one value, in its order and with its repeats; as one that CREATE makes."""
    texts = ["es;en", "en;es", "es;es", "é€;\U0001f600\x7f", 'a"b;c\\d', "", "x"]
    body = "".join('{},"{}",{}\n'.format(i, text.replace('"', '""'), "3;1;2") for i, text in enumerate(texts))
    db.load(write("a.csv", ":ID,l:list<string>,n:list<int>\n" + body))
    for number, text in enumerate(texts):
        made = text.split(";") if text else None
        query = f"MATCH (n <urn:graphdb:{number}>) RETURN n.l, n.n, n.l = $l"
        assert db.query(query, l=made).fetchall() == [(made, [3, 1, 2], True if made else None)]
        if made:
            db.query("CREATE (:Made {l: $l})", l=made)
    lists = db.sql("SELECT count(*) FROM _graphdb.literal WHERE datatype LIKE '%List'").scalar()
    assert lists == len(texts), "CREATE made no list anew, and all numbers are one"
    with graphdb.connect() as other:
        other.load("a.csv", list_delimiter="|", columns={"n:list<int>": ":IGNORE"})
        assert other.query("MATCH (n <urn:graphdb:0>) RETURN n.l").scalar() == ["es;en"]


def test_times_since_1970(db: Any) -> None:
    milliseconds = 1_354_231_582_579
    write("a.csv", ":ID,ms:datetime{epoch_ms},s:localdatetime{epoch_s},us:datetime{epoch_us},day:date{epoch_ms},old:date{epoch_s}\n"
          f"1,{milliseconds},{milliseconds // 1000},{milliseconds * 1000 + 7},523152000000,-86400\n2,,,,,\n")  # fmt: skip
    db.load("a.csv")
    moment = datetime.datetime(2012, 11, 29, 23, 26, 22, 579000, UTC)
    assert db.query("MATCH (n {day: date('1986-07-31')}) RETURN n.ms, n.s, n.us, n.old").fetchall() == [
        (
            moment,
            moment.replace(microsecond=0, tzinfo=None),
            moment.replace(microsecond=579007),
            datetime.date(1969, 12, 31),
        )
    ]


def test_how_texts_are_written(db: Any) -> None:
    write("a.txt", "1\tx y\t\\N\n2\t'q''\tr'\t\n")
    db.load("a.txt", format="csv", delimiter="\t", quote="'", null="\\N", header=False, columns=[":ID", "a", "b"])
    assert {row[:3] for row in rows(db)} == {
        (OWN + "1", OWN + "a", "x y"), (OWN + "2", OWN + "a", "q'\tr"), (OWN + "2", OWN + "b", "")}  # fmt: skip
    for how in (
        {"delimiter": "||"},
        {"quote": "ab"},
        {"delimiter": ""},
        {"null": 5},
        {"header": "no"},
        {"list_delimiter": ""},
    ):
        with graphdb.connect() as other, pytest.raises(LoadError, match=next(iter(how))):
            other.load("a.txt", format="csv", **how)
    bad = write("b.csv", "1|a|x\n2|b|5\n")
    with graphdb.connect() as other:
        refused(other, bad, "that is no integer: x", (1, 5), delimiter="|", header=False, columns=[":ID", "s", "n:int"])


def test_many_files_in_one_statement(db: Any) -> None:
    """Each with labels or a type of its own, and what is said once for all; one transaction."""
    write("person.csv", "who|name\n1|Ada\n2|Bo\n")
    write("post.csv", "who|name\n3|Hi\n")
    write("likes.csv", "a|b\n1|3\n2|3\n")
    db.query("LOAD 'person.csv' AS LABEL Person, 'post.csv' AS LABEL Post:Message COLUMNS (':ID', NULL) DELIMITER '|'")
    assert db.query("MATCH (n:Post:Message) RETURN n.name").fetchall() == [("Hi",)]
    db.query(
        "LOAD 'likes.csv' AS TYPE LIKES COLUMNS {a: ':START_ID', b: ':END_ID'} HEADER TRUE QUOTE '' LIST DELIMITER ','"
    )
    assert db.query("MATCH (:Person)-[:LIKES]->(m:Post) RETURN m.name, count(*)").fetchall() == [("Hi", 2)]
    with graphdb.connect() as other:
        both = "LOAD 'person.csv' AS LABEL P, 'likes.csv' AS TYPE L DELIMITER '|' COLUMNS {who: ':ID', a: ':START_ID', %s: ':END_ID'}"
        with pytest.raises(LoadError, match="there is no column 'bb'"):
            other.query(both % "bb")
        other.query(both % "b")
        assert other.query("MATCH (:P)-[:L]->() RETURN count(*)").scalar() == 2
    write("broken.csv", ":ID,n:int\n9,x\n")
    before = rows(db)
    with pytest.raises(LoadError, match="no integer"):
        db.query("LOAD 'person.csv' AS LABEL Other, 'broken.csv' AS LABEL Broken COLUMNS {who: ':ID'}")
    assert rows(db) == before, "nothing of either file"


MAPPING = {
    "delimiter": "|",
    "tables": [
        {"file": "person.csv", "label": "Person", "columns": {"id": "id:ID(Person){long}"}},
        {"file": "knows.csv", "type": "KNOWS", "columns": [":START_ID(Person)", ":END_ID(Person)"]},
        {"sql": "SELECT 3 AS \"id:ID(City)\", 'Rom' AS name", "label": ["City", "Place"]},
    ],
}


def test_mapping_files(db: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that lists tables is one load: from Python, in a statement, on the command line, in JSON and in YAML."""
    pathlib.Path("data").mkdir()
    write("data/person.csv", "id|name\n1|Ada\n2|Bo\n")
    write("data/knows.csv", "Person.id|Person.id\n1|2\n")
    write("data/graph.json", json.dumps(MAPPING))
    report = db.load(mapping="data/graph.json")
    assert report.files == 3
    assert db.query("MATCH (a {id: 1})-[:KNOWS]->(b:Person) RETURN b.id, b.name").fetchall() == [(2, "Bo")]
    assert db.query("MATCH (c:City:Place {id: 3}) RETURN c.name").scalar() == "Rom"
    with graphdb.connect() as other:
        other.query("LOAD MAPPING 'data/graph.json'")
        assert rows(other) == rows(db)
    assert run(["load", "g.duckdb", "--mapping", "data/graph.json"]) == 0
    assert "from 3 files" in capsys.readouterr().out
    with graphdb.connect("g.duckdb") as other:
        assert rows(other) == rows(db)
    yaml = pytest.importorskip("yaml")
    write("data/graph.yaml", yaml.safe_dump(MAPPING))
    with graphdb.connect() as other:
        other.load(mapping="data/graph.yaml")
        assert rows(other) == rows(db)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "this is no JSON"), ('{"tables": 5}', "a list of tables"), ('{"tables": [], "tabels": 1}', "did you mean 'tables'"),
     ('{"tables": [{"file": "a", "lable": "A"}]}', "did you mean 'label'"), ('{"tables": [{"label": "A"}]}', "neither a file"),
     ('{"tables": [{"file": "a.csv", "quote": "ab"}]}', "quote is 'ab'"), ('{"tables": [7]}', "table 1 of 1 is 7"),
     ('{"tables": [{"sql": "DROP TABLE x"}]}', "not one query"), ('{"tables": [{"sql": "SELECT nothing"}]}', "nothing")],
)  # fmt: skip
def test_mapping_files_that_are_none(db: Any, text: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        db.load(mapping=write("m.json", text))
    with pytest.raises(LoadError, match="cannot read"):
        db.load(mapping="nowhere.json")
    assert db.query("MATCH (n) RETURN count(*)").scalar() == 0


def test_sums_of_duckdb_are_integers(db: Any) -> None:
    """They are HUGEINTs, which Arrow has as decimal numbers; a column stays such where 64 bits do not hold all of it."""
    db.query(
        'LOAD FROM (SELECT max(x) AS "id:ID", sum(x) AS s, sum(x) FILTER (x > 9) AS none, 5::DECIMAL(38, 0) AS d,'
        " 600000000000000000000::HUGEINT AS large FROM range(4) t(x))"
    )
    [found] = db.query("MATCH (n {id: 3, s: 6}) RETURN properties(n)").fetchall()[0]
    assert found == {"id": 3, "s": 6, "d": 5, "large": 6e20}
    assert (type(found["s"]), type(found["d"])) == (int, decimal.Decimal)
    assert db.load(graphdb.Table(db.sql("SELECT sum(x) AS s FROM range(4) t(x)"), columns=["s:ID"])).errors == 0
    assert db.query("MATCH (n {s: 6}) WHERE n.id IS NULL RETURN n.s").fetchall() == [(6,)]


def test_a_tab_as_it_is_written(db: Any) -> None:
    """A statement's texts have no escapes, nor have a shell's."""
    write("a.txt", ":ID;x\tn;m\n1\t2\n")
    db.query("LOAD 'a.txt' FORMAT csv DELIMITER '\\t' COLUMNS (':ID', 'n')")
    assert db.query("MATCH (n) RETURN n.n").fetchall() == [(2,)]


def test_foreign_keys_of_a_file_are_edges(db: Any) -> None:
    """One file of vertices and of their edges, where keys may be missing."""
    name = write("Comment.csv", "id|content|ParentPostId|ParentCommentId\n1|one|30|\n2|two||1\n")
    read = f"read_csv('{name}', delim = '|')"
    db.query(
        f'LOAD FROM (SELECT id AS "id:ID(Comment)", content FROM {read}) AS LABEL Comment:Message,'
        f' FROM (SELECT id AS ":START_ID(Comment)", ParentPostId AS ":END_ID(Post)" FROM {read}'
        " WHERE ParentPostId IS NOT NULL) AS TYPE REPLY_OF,"
        f' FROM (SELECT id AS ":START_ID(Comment)", ParentCommentId AS ":END_ID(Comment)" FROM {read}'
        " WHERE ParentCommentId IS NOT NULL) AS TYPE REPLY_OF"
    )
    assert db.query("MATCH (a)-[:REPLY_OF]->(b:Message) RETURN a.id, b.content").fetchall() == [(2, "one")]
    assert db.query("MATCH (:Comment)-[e:REPLY_OF]->() RETURN count(*)").scalar() == 2


def test_tables_of_duckdb(db: Any) -> None:
    """A query is a table: types are DuckDB's, dates and lists included."""
    db.sql("CREATE TABLE person AS SELECT range AS id, 'n' || range AS name, DATE '2020-01-01' + range::INT AS day, "
           "['a', 'b'] AS tags FROM range(3)")  # fmt: skip
    db.sql("CREATE TABLE knows AS SELECT id AS a, (id + 1) % 3 AS b, id * 10 AS since FROM person")
    db.query("LOAD FROM (SELECT * FROM person WHERE name <> ')' -- all\n) AS LABEL Person, "
             "FROM (SELECT * FROM person) AS LABEL Human COLUMNS ('id:ID(Person)', NULL, NULL, 'tags:list<string>')")  # fmt: skip
    db.query("LOAD FROM (FROM knows) AS TYPE KNOWS COLUMNS {a: ':START_ID(Person)', b: ':END_ID(Person)'}")
    query = "MATCH (p:Person:Human {id: 1})-[k:KNOWS]->(q) RETURN p.day, p.tags, k.since, q.name"
    assert db.query(query).fetchall() == [(datetime.date(2020, 1, 2), ["a", "b"], 10, "n2")]
    before = rows(db)
    with pytest.raises(LoadError, match="does not exist"):
        db.query("LOAD FROM (SELECT * FROM nobody) AS LABEL Person")
    with pytest.raises(ParseError):
        db.query("LOAD FROM (SELECT 1 AS LABEL Person")
    assert rows(db) == before
    with graphdb.connect() as other:
        other.load(graphdb.Table(sql='SELECT 1 AS ":ID", 2 AS n', label="One"))
        assert other.query("MATCH (n:One) RETURN n.n").scalar() == 2


def test_tables_with_options_of_their_own(db: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    frame = pa.table({"a": [1], "b": [2], "since": [2020]})
    write("p.csv", "id;name\n1;Ada\n2;Bo\n")
    db.load([graphdb.Table("p.csv", columns=["id:ID{long}", None], label="Person"),
             graphdb.Table(frame, columns=[":START_ID", ":END_ID", None], type="KNOWS")])  # fmt: skip
    assert db.query("MATCH (a)-[k:KNOWS]->(b) RETURN a.name, k.since, b.name").fetchall() == [("Ada", 2020, "Bo")]
    for wrong in ({}, {"data": "a", "sql": "SELECT 1"}, {"data": "a", "columns": [5]}, {"data": "a", "label": ""}):
        with pytest.raises(LoadError):
            graphdb.Table(**wrong)


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    write("k.tsv", "1\t2\t5\n")
    write("p.csv", "1\tAda\n2\tBo\n")
    how = ["--no-header", "--delimiter", r"\t", "--quote", ""]
    assert run(["load", "g.duckdb", "p.csv", "--columns", "id:ID{long},name", "--label", "A:B", *how]) == 0
    assert run(["load", "g.duckdb", "k.tsv", "--columns", ":START_ID,:END_ID,w:int", "--type", "KNOWS", *how]) == 0
    capsys.readouterr()
    with graphdb.connect("g.duckdb") as db:
        assert db.query("MATCH (a:A:B {id: 1})-[k:KNOWS]->(b) RETURN k.w, b.name").fetchall() == [(5, "Bo")]


def test_the_same_from_every_source() -> None:
    """CSV, Parquet, Arrow and a query with one mapping are one graph."""
    pa, parquet, csv = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet", "pyarrow.csv"))
    table = pa.table({"id": [5, 6], "at": [1_000, 2_000], "l": ["b;a", None], "name": ["x", "y"]})
    parquet.write_table(table, "t.parquet")
    csv.write_csv(table, "t.csv", csv.WriteOptions(quoting_style="none"))
    columns = ["id:ID(P){long}", "at:datetime{epoch_ms}", "l:list<string>", None]
    found = []
    for data in ("t.csv", "t.parquet", table, graphdb.Table(sql="FROM 't.parquet'", columns=columns, label="P")):
        with graphdb.connect() as db:
            how = {} if isinstance(data, graphdb.Table) else {"columns": columns, "label": "P"}
            db.load(data, **how)
            found.append(rows(db))
    assert all(each == found[0] for each in found)
    assert (OWN + "P/5", OWN + "at", "1970-01-01T00:00:01Z", XSD + "dateTime", None) in found[0]


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lines_of_a_file_may_end_in_both_ways(db: Any, seed: int, skip: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's parser had an invalid state; with ON ERROR SKIP rows were taken for bad ones."""
    chance = random.Random(seed)
    monkeypatch.setattr(delimited, "_STEP", chance.choice([1, 7, 1 << 20]))
    texts = ["a", "a\nb", "a\r\nb", 'a"b', "é,", "", '"', "\n", "\r\n\r\n"]
    written = [(str(number), chance.choice(texts) + "!") for number in range(30)]
    lines = [f'{number},"{text.replace(chr(34), chr(34) * 2)}"' for number, text in [(":ID", "text:string"), *written]]
    ends = [chance.choice(["\n", "\r\n"]) for _ in lines[3:]]
    if skip:
        lines[20] += ",one more"
    text = "".join(map("".join, zip(lines, ["\n", "\r\n", "\n", *ends], strict=True)))
    report = db.load(write("t.csv", text.encode()), label="P", on_error="skip" if skip else "stop")
    assert report.errors == skip
    expected = {text for number, text in written if not skip or number != "19"}
    assert db.query("MATCH (n:P) RETURN count(n)").scalar() == 30 - skip
    assert {text for (text,) in db.query("MATCH (n:P) RETURN n.text")} == expected
    if skip:
        assert db.sql("SELECT line FROM load_errors").fetchall() == [(text[: text.index("one more")].count("\n") + 1,)]


def test_labels_of_what_no_table_has_are_refused(db: Any) -> None:
    """They were ignored."""
    write("person.csv", ":ID,name\n1,Ada\n2,Bo\n")
    write("likes.csv", ":START_ID,:END_ID\n1,2\n")
    for given in ({"type": "X"}, {"type": "X", "label": "P"}):
        with pytest.raises(LoadError, match=r"type='X' labels edges, and the tables have vertices only") as refused:
            db.load("person.csv", **given)
        assert "label='X'" in str(refused.value)
    with pytest.raises(LoadError, match=r"AS LABEL X"):
        db.query("LOAD 'person.csv' AS TYPE X")
    with pytest.raises(LoadError, match=r"label='A:B' labels vertices, and the tables have edges only") as refused:
        db.load("likes.csv", label=["A", "B"], type="L")
    assert "type='A:B'" in str(refused.value)
    assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
    db.load(["person.csv", "likes.csv"], label="P", type="L")
    assert db.query("MATCH (:P)-[:L]->(:P) RETURN count(*)").scalar() == 1


def test_properties_of_edges_are_written_some_at_a_time(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [(i % 3, i % 2, i, f"t{i}" if i % 4 else None) for i in range(11)]
    write("vertices.csv", "id:ID\n0\n1\n2\n")
    db.load("vertices.csv", label="V")
    write("edges.csv", ":START_ID,:END_ID,n:int,t\n" + "".join(f"{a},{b},{n},{t or ''}\n" for a, b, n, t in given))
    for at_once in (1, 4, 100):
        monkeypatch.setattr(parallel_edges, "_AT_ONCE", at_once)
        db.load("edges.csv", type=f"K{at_once}")
        found = db.query(f"MATCH (a)-[k:K{at_once}]->(b) RETURN a.id, b.id, k.n, k.t ORDER BY k.n")
        assert found.fetchall() == given


@pytest.mark.parametrize(
    ("names", "stated"),
    [
        ("id,name", "columns={'id': ':ID'}; LOAD '…' COLUMNS {id: ':ID'}"),
        ("from,to", "'to': ':END_ID'}; LOAD '…' COLUMNS {from: ':START_ID', to: ':END_ID'}"),
        ("targetId,sourceId", "{sourceId: ':START_ID', targetId: ':END_ID'}"),
        ("the id,b", "columns={'the id': ':ID'}"),
    ],
)
def test_what_columns_may_be_is_said_by_their_names(names: str, stated: str) -> None:
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.LoadError) as error:
        db.load(io.BytesIO(f"{names}\n1,2\n".encode()), format="csv")
    assert error.value.hint is not None
    assert error.value.hint.endswith(stated)


def test_an_edge_with_one_end() -> None:
    one = "a column is :END_ID, and none is :START_ID: a, :END_ID"
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.LoadError, match=one):
        db.load(io.BytesIO(b"a,:END_ID\n1,2\n"), format="csv", type="knows")


def test_a_role_in_small_letters_beside_a_name() -> None:
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.LoadError, match="unknown type 'Id'") as error:
        db.load(io.BytesIO(b"person:Id,name\n1,2\n"), format="csv")
    assert error.value.hint is not None
    assert error.value.hint.startswith("did you mean person:ID?")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1,NA", "NULL 'NA' (null='NA')"),
        (r"1,\N", r"NULL '\N' (null='\N')"),
        ('1,"1,5"', "a decimal point is written '.'"),
        ("1,x", "ON ERROR SKIP (on_error='skip') leaves such rows out"),
        ("1,2,3", "a text with the delimiter in it stands in quotes"),
        ('1,"2', "a quote within a text is doubled; QUOTE ''"),
    ],
)
def test_how_a_row_is_mended(text: str, hint: str) -> None:
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.LoadError) as error:
        db.load(io.BytesIO(f":ID,a:float\n{text}\n".encode()), format="csv")
    assert error.value.hint is not None
    assert error.value.hint.startswith(hint)
    with graphdb.connect(threads=1) as db:
        assert db.load(io.BytesIO(f":ID,a:float\n{text}\n".encode()), format="csv", on_error="skip").errors == 1


def test_what_the_hints_say_reads_the_rows() -> None:
    with graphdb.connect(threads=1) as db:
        db.load(io.BytesIO(b":ID,a:float\n1,NA\n2,5\n"), format="csv", null="NA")
        db.load(io.BytesIO(b':ID,b\n3,"2\n'), format="csv", quote="")
        assert db.query("MATCH (n) RETURN n.a, n.b ORDER BY n.a, n.b").fetchall() == [
            (5.0, None),
            (None, '"2'),
            (None, None),
        ]


@pytest.mark.parametrize(
    ("type", "meant"), [("number", "float"), ("text", "string"), ("int64", "long"), ("timestamp", "localdatetime")]
)
def test_types_by_other_names(type: str, meant: str) -> None:
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.LoadError, match=f"unknown type '{type}'") as error:
        db.load(io.BytesIO(f":ID,a:{type}\n1,2\n".encode()), format="csv")
    assert error.value.hint is not None
    assert error.value.hint.startswith(f"did you mean a:{meant}?")
