"""Tables that become triples column by column: the graph that their rows say, and the same as by lines."""

from __future__ import annotations

import csv
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.storage.arrays.batch import Edges, repeated
from graphdb.storage.loaders import loading
from graphdb.storage.loaders.tables import staging
from tests.fuzz import scaled
from tests.storage.loaders.files import OWN, TYPE, XSD, rows, write
from tests.storage.loaders.test_bulk import OTHERS, contents, recounted

pytestmark = pytest.mark.usefixtures("in_a_folder")

Row = dict[str, str]

VALUES = {
    "n:int": [(str(n), str(n), XSD + "integer") for n in (0, -7, 12, 9_007_199_254_740_993)],
    "f:float": [("1.5", "1.5", XSD + "double"), ("2", "2.0", XSD + "double"), ("-0.0", "-0.0", XSD + "double"),
                ("0.0", "0.0", XSD + "double"), ("nan", "NaN", XSD + "double")],
    "b:boolean": [("true", "true", XSD + "boolean"), ("FALSE", "false", XSD + "boolean")],
    "d:date": [("2020-02-29", "2020-02-29", XSD + "date"), ("0001-01-01", "0001-01-01", XSD + "date")],
    "at:datetime": [("2020-01-01T10:00:00+02:00", "2020-01-01T08:00:00Z", XSD + "dateTime"),
                    ("2020-01-01 10:00:00.123456789", "2020-01-01T10:00:00.123456789", XSD + "dateTime")],
    "ms:datetime{epoch_ms}": [("0", "1970-01-01T00:00:00Z", XSD + "dateTime")],
    "s:string": [(text, text, XSD + "string") for text in ("x", 'a "b"', "é\nü", "1", "true", "2020-02-29", "<e:a>", "_:b")],
    "s2:string": [(text, text, XSD + "string") for text in ("x", "y z", "0.0")],
}  # fmt: skip
"""Headers, with values as files have them, and as lexical forms and datatypes."""

NAMES = {"1": OWN + "G/1", "02": OWN + "G/02", "2": OWN + "G/2", "a b": OWN + "G/a%20b", "http://x/y": "http://x/y"}
LABELS = {"": [], "A": ["A"], "A; B": ["A", "B"], "B;B": ["B"], "http://x/L": ["http://x/L"]}


def iri(name: str) -> str:
    return name if ":" in name else OWN + name


class Drawn:
    """Random tables of vertices and of edges, and what they say."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.triples: set[tuple[str, str, str, str | None]] = set()
        self.edges: Counter[tuple[str, str, str, tuple[str, ...]]] = Counter()
        self.files: list[str] = []
        self.names = list(NAMES) if self.random.random() < 0.5 else ["1", "2"]
        for number in range(self.random.randint(1, 3)):
            self.vertices(f"v{number}.csv")
        for number in range(self.random.randint(0, 3)):
            self.connections(f"w{number}.csv")

    def properties(self) -> list[str]:
        return self.random.sample(list(VALUES), self.random.randint(0, 4))

    def values(self, headers: list[str]) -> list[tuple[str, str, str | None]]:
        """A value or none for each header; as the file has it."""
        return [self.random.choice([*VALUES[header], ("", "", None)]) for header in headers]

    def vertices(self, file: str) -> None:
        headers, label = self.properties(), self.random.random() < 0.5
        made = []
        for _ in range(self.random.randint(1, 8)):
            name, values = self.random.choice(self.names), self.values(headers)
            labels = self.random.choice(list(LABELS)) if label else ""
            made.append([name, *([labels] if label else []), *(value[0] for value in values)])
            facts = {(NAMES[name], TYPE, iri(one), None) for one in LABELS[labels]}
            for header, (_, lexical, datatype) in zip(headers, values, strict=True):
                if datatype is not None:
                    facts.add((NAMES[name], OWN + header.split(":")[0], lexical, datatype))
            self.triples |= facts or {(NAMES[name], TYPE, "urn:x-graphdb:vertex", None)}
        self.write(file, [":ID(G)", *([":LABEL"] if label else []), *headers], made)

    def connections(self, file: str) -> None:
        headers = self.properties()
        drawn: list[tuple[tuple[str, str, str], list[tuple[str, str, str | None]]]] = []
        for _ in range(self.random.randint(1, 8)):
            start, end = self.random.choices(self.names, k=2)
            kind = self.random.choice(["K", "L", "http://x/k"])
            drawn.append(((start, kind, end), self.values(headers)))
        together = Counter(edge for edge, _ in drawn)
        for (start, kind, end), values in drawn:
            self.triples.add((NAMES[start], iri(kind), NAMES[end], None))
            said = tuple(
                f"{header.split(':')[0]}={lexical}"
                for header, (_, lexical, datatype) in zip(headers, values, strict=True)
                if datatype is not None
            )
            if said or together[(start, kind, end)] > 1:
                self.edges[(NAMES[start], iri(kind), NAMES[end], tuple(sorted(said)))] += 1
        self.write(file, [":START_ID(G)", ":END_ID(G)", ":TYPE", *headers],
                   [[edge[0], edge[2], edge[1], *(value[0] for value in values)] for edge, values in drawn])  # fmt: skip

    def write(self, file: str, header: list[str], made: list[list[str]]) -> None:
        with open(file, "w", newline="", encoding="utf-8") as out:
            csv.writer(out, quoting=csv.QUOTE_MINIMAL).writerows([header, *made])
        self.files.append(file)


def edges(db: Any) -> Counter[tuple[str, str, str, tuple[str, ...]]]:
    """The edges that have rows of their own, with their properties."""
    found = db.sql(
        "SELECT s.iri, p.iri, o.iri, list_sort(list(split_part(k.iri, ':', 3) || '=' || v.lexical)"
        " FILTER (v.id IS NOT NULL)) FROM _graphdb.edge AS e JOIN _graphdb.resource AS s ON s.id = e.subject"
        " JOIN _graphdb.resource AS p ON p.id = e.label JOIN _graphdb.resource AS o ON o.id = e.object"
        " LEFT JOIN _graphdb.edge_property AS q USING (label, subject, object, ordinal)"
        " LEFT JOIN _graphdb.resource AS k ON k.id = q.key LEFT JOIN _graphdb.literal AS v ON v.id = q.value"
        " GROUP BY s.iri, p.iri, o.iri, ordinal"
    ).fetchall()
    return Counter((s, p, o, tuple(sorted(said or ()))) for s, p, o, said in found)


def test_of_files_that_are_read_at_a_time_the_first_bad_one_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_LARGE", 0)
    files = [write(f"{name}.csv", f":ID,n:int\n{text}") for name, text in (
        ("a", "".join(f"{row},{row}\n" for row in range(20_000))), ("b", "-1,x\n"), ("c", "-2,y\n"), ("d", "-3,4\n"))]  # fmt: skip
    with graphdb.connect() as db:
        with pytest.raises(graphdb.LoadError, match=r"b\.csv"):
            db.load(files)
        assert db.query("MATCH (n) RETURN count(*)").fetchall() == [(0,)]
        report = db.load(files, on_error="skip")
        assert (report.files, report.errors, report.rows) == (4, 2, 20_003)
        assert db.query("MATCH (n) RETURN count(*), sum(n.n)").fetchall() == [(20_001, sum(range(20_000)) + 4)]


@pytest.mark.parametrize("seed", range(scaled(16)))
def test_the_graph_that_tables_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into an empty graph at once, file by file, and by lines: what an oracle in Python makes of the rows."""
    drawn = Drawn(seed)
    if seed % 2:
        monkeypatch.setattr(loading, "_LARGE", 0)  # two files are read at a time
    with graphdb.connect() as whole, graphdb.connect() as pieces:
        whole.load(drawn.files)
        assert {row[:4] for row in rows(whole)} == drawn.triples
        assert edges(whole) == drawn.edges
        found = contents(whole, *OTHERS)
        assert {tuple(row[:3]) for row in found["edge_property"]} <= {tuple(row[:3]) for row in found["edge"]}
        assert {name: contents(whole, name)[name] for name in recounted(whole)} == recounted(whole)
        pieces.query("CREATE (:Before {x: 1})")
        for file in drawn.files:
            pieces.load(file)
        before = {row for row in rows(pieces) if row[0] in NAMES.values()}
        assert {row[:4] for row in before} == drawn.triples
        assert edges(pieces) == drawn.edges
        ordinals = Counter(tuple(row[:3]) for row in contents(pieces, "edge")["edge"])
        assert all(
            sorted(row[3] for row in contents(pieces, "edge")["edge"] if tuple(row[:3]) == edge) == list(range(count))
            for edge, count in ordinals.items()
        )
    monkeypatch.setattr(staging.Staging, "table", lambda *_: None)
    with graphdb.connect() as lines:
        lines.load(drawn.files)
        assert {row[:4] for row in rows(lines)} == drawn.triples
        assert edges(lines) == drawn.edges


def test_what_is_read_as_columns_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of vertices and of edges never become lines, from files as from memory."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("read as lines")

    from graphdb.storage.loaders.tables import reader

    monkeypatch.setattr(reader, "read_table", refuse)
    table = pa.table({":ID": [1, 2], "x": [1.5, None], "l": [["a", "b"], None]})
    parquet.write_table(table, "a.parquet")
    for data in (table, "a.parquet", write("a.csv", ":ID,:LABEL,x,when:datetime\n1,A;B,2.5,2020-01-01\n")):
        with graphdb.connect() as db:
            assert db.load(data).new_triples in (3, 4)


def test_tables_that_do_not_fit_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What memory is too small for goes by lines, all of it: what would come after may need more."""
    from graphdb.storage.loaders import loading

    files = [
        write("a.csv", ":ID(P),n:int\n" + "".join(f"{i},{i}\n" for i in range(2000))),
        write("b.csv", ":ID(P),m\n1,5\n"),
    ]
    with graphdb.connect() as db, graphdb.connect() as other:
        db.load(files)
        monkeypatch.setattr(loading, "_COLUMNS", 1 << 40)
        monkeypatch.setattr(staging.Staging, "table", lambda *_: pytest.fail("read as columns"))
        other.load(files)
        assert rows(other) == rows(db)


def test_types_that_only_later_rows_show(db: Any) -> None:
    """The first rows show integers, or nothing; others have fractions, texts, or the only value."""
    body = "".join(f"{i},{i},{i},\n" for i in range(3000))
    db.load(write("a.csv", "id:ID,n,t,late\n" + body + "x,0.5,text,7\n"))
    found = {row[1]: row[2:4] for row in rows(db) if row[0] == OWN + "x"}
    assert found == {OWN + "n": ("0.5", XSD + "double"), OWN + "t": ("text", XSD + "string"),
                     OWN + "late": ("7", XSD + "integer"), OWN + "id": ("x", XSD + "string")}  # fmt: skip
    assert {row[3] for row in rows(db) if row[1] == OWN + "n"} == {XSD + "double"}
    assert {row[3] for row in rows(db) if row[1] == OWN + "id"} == {XSD + "string"}


def test_tables_beside_other_data(db: Any) -> None:
    """One load of tables, RDF, and tables that only lines say: one vertex wherever it is named."""
    write("a.csv", ":ID(P),n:int\n1,5\n")
    write(
        "b.nt", '<urn:graphdb:P/1> <urn:graphdb:knows> <urn:graphdb:P/2> .\n<urn:graphdb:P/1> <urn:graphdb:n> "5" .\n'
    )
    write("c.csv", ":START_ID(P),:END_ID(P),:TYPE,:GRAPH\n1,2,likes,http://x/g\n")
    write("d.csv", ":ID(P),m:duration\n_:b,P1Y\n1,P1M\n")
    db.load(["a.csv", "b.nt", "c.csv", "d.csv"])
    assert {row[:3] for row in rows(db) if not row[0].startswith("_:")} == {
        (OWN + "P/1", OWN + "n", "5"), (OWN + "P/1", OWN + "knows", OWN + "P/2"), (OWN + "P/1", OWN + "likes", OWN + "P/2"),
        (OWN + "P/1", OWN + "m", "P1M"),
    }  # fmt: skip
    assert db.query("MATCH (p {n: 5})-[:knows]->(q)<-[:likes]-(p) RETURN count(*)").scalar() == 1
    assert recounted(db) == contents(db, *recounted(db))


def test_lists_over_several_chunks() -> None:
    """The rows of values in lists are those of the table, however Arrow cuts it."""
    from graphdb.storage.loaders.tables.encoding import parents

    made, type = [["a"], None, ["b", "c"], [], ["d"]], arrow.list_of(arrow.STRING)
    chunks = arrow.ChunkedArray([arrow.array(some, type) for some in (made[:2], made[2:3], made[3:])])
    whole = chunks.combine_chunks()
    assert parents(whole).tolist() == [0, 2, 2, 4]
    assert arrow.pylist(whole.flatten()) == ["a", "b", "c", "d"]


def test_edges_between_the_same_vertices_are_numbered() -> None:
    """Their ordinals, against a count one by one."""
    draw = np.random.default_rng(5)
    for size in (0, 1, 7, 300):
        found = draw.integers(0, 4, (size, 3)).astype(np.uint32)
        seen: Counter[tuple[int, ...]] = Counter()
        expected = []
        for row in map(tuple, found.tolist()):
            expected.append(seen[row])
            seen[row] += 1
        made = Edges(found, np.empty(0, np.int64), np.empty((0, 2), np.uint32))
        assert made.ordinals().tolist() == expected
        assert repeated(found).tolist() == [seen[tuple(row)] > 1 for row in found.tolist()]


def test_a_load_that_fails_leaves_nothing(db: Any) -> None:
    """Nothing of the tables before the bad one, and the next load is as if it had not been."""
    write("a.csv", ":ID,n:int\n1,5\n")
    write("b.csv", ":START_ID,:END_ID,:TYPE,w:int\n1,2,K,3\n1,2,K,x\n")
    with pytest.raises(graphdb.LoadError, match="no integer: x"):
        db.load(["a.csv", "b.csv"])
    assert not rows(db)
    report = db.load(["a.csv", "b.csv"], on_error="skip")
    assert (report.errors, len(edges(db))) == (1, 1)
    assert db.sql('SELECT file, line, "column" FROM load_errors').fetchall() == [("b.csv", 3, 7)]


@pytest.mark.parametrize("count", [3, 300])
def test_integers_are_stored_as_their_texts_are_read(count: int) -> None:
    """Into an empty graph as they are, into another as texts, and so where others of their datatype are texts."""
    numbers = [0, -1, 2**63 - 1, -(2**63), 9_007_199_254_740_993, *range(10, count)]
    write("a.csv", ":ID(G),n:long,s,x:double\n" + "".join(f"{i},{n},t{i},0.5\n" for i, n in enumerate(numbers)))
    write("b.csv", f":ID(G),n,m\n1,{10**18},5\n2,{10**30},7\n")
    for files in (["a.csv"], ["b.csv"], ["a.csv", "b.csv"]):
        with graphdb.connect() as alone, graphdb.connect() as beside:
            beside.query("CREATE (:Before {x: 'y'})")
            for db in (alone, beside):
                db.load(files)
            # Floats may have texts, or none.
            text = "CASE WHEN datatype LIKE '%double' THEN NULL ELSE text END AS text"
            every = f"SELECT * EXCLUDE id REPLACE ({text}) FROM _graphdb.literal WHERE lexical <> 'y' ORDER BY ALL"
            assert alone.sql(every).fetchall() == beside.sql(every).fetchall()
            found = alone.sql("SELECT lexical, integer, number FROM _graphdb.literal WHERE kind = 2").fetchall()
            assert found
            assert all(int(text) == value and float(value) == number for text, value, number in found)
            assert rows(alone) == {row for row in rows(beside) if row[0].startswith(OWN + "G/")}
            assert recounted(alone) == contents(alone, *recounted(alone))
