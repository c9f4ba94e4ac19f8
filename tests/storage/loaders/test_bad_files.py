"""Files that are wrong, damaged, cut or endless: refused with their place, or skipped line by line."""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import sys
import threading
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import LoadError
from graphdb.storage import zstd
from graphdb.storage.loaders import streams
from tests.storage.loaders.files import PACK, RDF_HEAD, refused, rows, write

pytestmark = pytest.mark.usefixtures("in_a_folder")


@pytest.mark.parametrize(("name", "text", "message", "place"), [
    ("a.ttl", "@prefix e: <e:> .\ne:a e:b f:c .\n", "f: has not been declared", (2, 9)),
    ("a.ttl", "<e:a> <e:b> \x00 .", "", (1, 13)),
    ("a.ttl", b'<e:a> <e:b> "\xe9" .', "UTF-8", (1, 14)),
    ("a.nt", b'<e:a> <e:b> "\xe9" .', "not UTF-8", (1, 14)),
    ("a.nt", "<e:a> <e:b> \x00 .", "expected an object", (1, 13)),
    ("a.nt", "<e:a> <e:b> <e:c> <e:g> .", "expected '.'", (1, 19)),
    ("a.nt", "<e:a> <e:b> <e:c> .".encode("utf-16"), "UTF-16", (None, None)),
    ("a.nt", "<e:a> <e:b> <e:c> .".encode("utf-16-le"), "UTF-16", (None, None)),
    ("a.ttl", "<e:a> <e:b> <e:c> .".encode("utf-16-be"), "UTF-16", (None, None)),
    ("a.ttl", '<e:a> <e:b> <e:c> .\n<e:a> <e:b> "c .\n', "the string that begins here is not closed (", (2, 13)),
    ("a.ttl", "<e:a> <e:b> <e:c> .\n<e:a> <e:b", "the IRI that begins here is not closed (", (2, 7)),
    ("a.json", '[{"id": 1}]', "rows of JSON: LOAD FROM", (None, None)),
    ("a.rdf", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:a></rdf:b>", "ill-formed", (1, 75)),
    ("a.rdf", RDF_HEAD + "<rdf:Description rdf:about='e:a'><n>1</n></rdf:Description>\n <rdf:Description rdf:ID='1 2'/></rdf:RDF>",
     "not a valid rdf:ID", (3, 2)),
    ("a.rdf.gz", gzip.compress((RDF_HEAD + "<n rdf:about='http://[' /></rdf:RDF>").encode(), mtime=0), "IRI", (2, 1)),
    ("a.jsonld", '[{"@id": "e:a"},\n {"@id": 5}]', "must be a string", (2, 10)),
    ("a.graphml", '<graphml><graph>\n <node/></graph></graphml>', "has no id", (2, 2)),
    ("a.graphml", '<graphml><graph>\n <node id="a"></graph></graphml>', "mismatched tag", (2, 17)),
    ("a.jsonld", '{"@id": "e:a", }', "comma", (1, 16)),
    ("a.jsonld", '{"@context": "http://x/"}', "not fetched", (None, None)),
    ("a.csv", ":ID,n:int\n1,2\n3,x\n", "a value of n that is no integer: x", (3, 3)),
    ("a.csv", '\n:ID,n:int,m\n1,2,"a\nb"\n\n3,4.0,\n', "no integer: 4.0", (6, 3)),
    ("a.csv", "\ufeff:ID|n:date\r\n1|2020-01-01\r\n\r\n3|2020-01-01 10:00\r\n", "no date: 2020-01-01 10:00", (4, 3)),
    ("a.csv", ":ID,n\n1,2\n\n3,4,5\n", "Expected Number of Columns: 2 Found: 3", (4, 4)),
    ("a.csv", ":ID,n:int\n1,2\n,3\n", "this row has no :ID", (3, 1)),
    ("a.csv", "x,y\n1,2\n", "no column says", (None, None)),
    ("a.csv", ":START_ID,:END_ID\n1,2\n", "which edge label", (None, None)),
    ("a.csv", "a:ID,b:ID\n1,2\n", "two columns are :ID: 'a:ID' and 'b:ID'", (None, None)),
    ("a.csv", ':ID,n\n1,"x\n2,y\n', "unterminated quote", (2, 3)),
    ("a.csv", "", "no header", (None, None)),
    ("a.csv", "\n:ID,n,a:intt\n1,2,3\n", "unknown type 'intt' of a column", (2, 9)),
    ("a.csv", ":ID,:LABBEL\n1,2\n", "unknown role 'LABBEL' of a column", (1, 6)),
    ("a.csv", ":ID,n\n1,2\n3,é\x00x\n", "a NUL byte is no text", (3, 4)),
    ("a.csv.gz", gzip.compress(b":ID,n\n1,\0", mtime=0), "a NUL byte is no text", (2, 3)),
    ("a.edges", "1 2\n3 4\x00\n", "a NUL byte is no text", (2, 4)),
    ("a.graph", "t 1 0\nv 0 \x00\n", "a NUL byte is no text", (2, 5)),
    ("a.rdf", RDF_HEAD + "<rdf:Description rdf:about='x:1'><n>\x00</n></rdf:Description></rdf:RDF>", "in XML", (2, 37)),
    ("a.csv", b":ID,n\n1,\xff\xfe\n", "convert the file to UTF-8", (2, 3)),
    ("a.parquet", "PAR1 not at all", "a.parquet", (None, None)),
    ("a.edges", "1 2\n3\n", "expected two vertices", (2, 2)),
    ("a.edges", "# a comment\n \n1 2\n\n1 2 friend\n", "at most a weight", (5, 5)),
    ("a.edges", " 1 2,3\t4\n", "at most a weight", (1, 8)),
    ("a.csv", ":ID,n\n1,2\n".encode("utf-16"), "UTF-16", (None, None)),
    ("a.csv", ":ID,n\n1,2\n".encode("utf-16-le"), "UTF-16", (None, None)),
    ("a.edges", "1 2\n".encode("utf-16"), "UTF-16", (None, None)),
    ("a.nt", "<e:a> <e:b> <e:c> .".encode("utf-32"), "UTF-32", (None, None)),
    ("a.nt.gz", b"", "cut short", (None, None)),
    ("a.csv.xz", b"", "cut short", (None, None)),
    ("a.graph", "t 1 0\nx\n", "expected 't", (2, 1)),
    ("a.graph", "t 1 0\nv 0\n", "expected 't", (2, 4)),
])  # fmt: skip
def test_bad_files(db: Any, name: str, text: Any, message: str, place: tuple[int | None, int | None]) -> None:
    """Told with its place; nothing is kept."""
    error = refused(db, write(name, text), message, place)
    assert name in str(error)


@pytest.mark.parametrize(
    ("name", "packed"), [("a.ttl", ".gz"), ("a.csv", ".gz"), ("a.csv", ".zst"), ("a.nt", ".bz2"), ("a.nt", ".xz")]
)
def test_compressed_files_that_are_truncated(db: Any, name: str, packed: str) -> None:
    text = "".join(f"<e:{i}> <e:p> <e:{i * i}> .\n" for i in range(9_000))
    if name == "a.csv":
        text = ":ID,n\n" + "".join(f"{i},{i * i}\n" for i in range(9_000))
    whole = PACK[packed](text.encode())
    refused(db, write(name + packed, whole[: len(whole) // 2]), "")
    refused(db, write(name + packed, whole + b"what is behind may be the rest of the data"), "")
    if name == "a.nt":
        assert db.load(write("a" + packed, whole)).new_triples == 9_000, (
            "the content tells, however long its first block"
        )


@pytest.mark.parametrize(("name", "text", "kept", "bad"), [
    ("a.ttl", "@prefix e: <e:> .\ne:a e:b e:c .\ne:a e:b f:c .\ne:a e:b e:d .", 2, [(3, 9)]),
    ("a.nq", "<e:a> <e:b> <e:c> <e:g> .\noops\n<e:a> <e:b> <e:d> .", 2, [(2, 1)]),
    ("a.rdf", RDF_HEAD + "<rdf:Description rdf:ID='1 2'><n>lost</n></rdf:Description>\n<rdf:Description rdf:about='e:a'><n>"
     "1</n></rdf:Description>\n<n rdf:about='e:b'><n><n rdf:about='http://['/></n></n><n rdf:about='e:c'/></rdf:RDF>",
     3, [(2, 1), (4, 23)]),
    ("a.rdf", RDF_HEAD + "<n rdf:about='e:a'/>\n<n rdf:about='e:b'></rdf:RDF>", 2, [(3, 22)]),
    ("a.jsonld", '[{"@id": "e:a", "e:p": 1},\n{"@id": 5},\n{"@id": "e:b", "e:p": 2}]', 2, [(2, 9)]),
    ("a.graphml", '<graphml><graph>\n<node id="a"/><edge source="a"/>\n<node/></graph></graphml>', 1, [(2, 15), (3, 1)]),
    ("a.csv", ":ID,n:int\n1,2\n3,x\n4,5\n", 2, [(3, 3)]),
    ("a.csv", ':ID,n:int\n1,2\n"3\n",x\n4\n\n5,"6""7"\n8,9\n\n,1\n', 2, [(5, 2), (4, 3), (7, 3), (10, 1)]),
    ("a.csv", b":ID,n\n1,2\n3,\xff\n4,5\n", 2, [(3, 3)]),
    pytest.param("a.csv", ":ID,n:int\n1,2\n" + "3,x\n" * 5_000, 1, [(i, 3) for i in range(3, 5_003)], id="many"),
    ("a.csv", ":ID,n:int\n1,2\n,3\n4,5\n", 2, [(3, 1)]),
    ("a.edges", "1 2\n3\n4 5\n", 2, [(2, 2)]),
    ("a.edges", "1 2\n3 4 5 6\n7 8\x00\n9 10\n", 2, [(2, 7), (3, 4)]),
    ("a.csv", ":ID,n\n1,2\n3,x\x00\n4,5\n", 2, [(3, 3)]),
])  # fmt: skip
def test_bad_lines_are_skipped(db: Any, name: str, text: str, kept: int, bad: list[Any]) -> None:
    report = db.load(write(name, text), on_error="skip")
    assert (len(rows(db)), report.errors) == (kept, len(bad))
    assert db.sql('SELECT line, "column" FROM load_errors WHERE message IS NOT NULL').fetchall() == bad


LONG = {
    "a.nt": '<e:a> <e:p> <e:b> .\n<e:a> <e:b> "{}" .\n', "a.nq": '<e:a> <e:p> <e:b> .\n<e:a> <e:b> "{}" <e:g> .\n',
    "a.ttl": '<e:a> <e:p> <e:b> .\n<e:a> <e:b> "{}" .\n', "a.trig": '<e:a> <e:p> <e:b> .\n<e:g> {{ <e:a> <e:b> "{}" }}\n',
    "a.rdf": RDF_HEAD + '<rdf:Description rdf:about="x:1"><n>{}</n></rdf:Description></rdf:RDF>',
    "a.jsonld": '{{"@id": "e:a",\n"e:b": "{}"}}',
    "a.csv": ":ID,name\n1,{}\n", "b.csv": ':ID,name\n1,"{}"\n', "a.edges": "1 2\n1 {}\n", "a.graph": "t 1 0\nv 0 {}\n",
    "a.graphml": '<graphml><key id="n" for="node"/><graph>\n<node id="a"><data key="n">{}</data></node></graph></graphml>',
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_unterminated_lines_and_tokens(db: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is too long is refused before it fills the memory, with its limit and its line, first or last of its file."""
    for limit in ("LONGEST_LINE", "LONGEST_ROW", "LONGEST_TOKEN"):
        monkeypatch.setattr(streams, limit, 1 << 20)
    monkeypatch.setattr(streams, "BLOCK", 1 << 16)
    size = 17 << 20 if name in ("a.ttl", "a.trig", "a.jsonld") else 2 << 20  # the library has a limit of its own
    text = LONG[name].format("x" * size)
    refused(db, write(name, text), f"is longer than {16 if size > 16 << 20 else 1} MiB", (2, None))
    if name == "a.nt":
        refused(db, write(name + ".gz", gzip.compress(text.encode(), 1)), "longer than 1 MiB", (2, None))


def test_long_pipes(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe cannot be read again to count its lines."""
    monkeypatch.setattr(streams, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'<e:a> <e:b> "' + b"x" * (2 << 20))))
    refused(db, "-", "longer than 1 MiB", format="nt")
    refused(db, ".", "is a directory")


def test_load_says_what_the_python_call_says(tmp_path: pathlib.Path) -> None:
    """The options of LOAD are those of ``load``: a base, the headers of columns, labels for all vertices and edges."""
    (tmp_path / "a.ttl").write_text("<x> <p> <#y> .")
    (tmp_path / "who.csv").write_text("person,full name,age\n1,Ada,36\n")
    (tmp_path / "knows.csv").write_text("from,to,since\n1,2,1999\n")
    columns = {"person": ":ID(Person)", "full name": "name", "age": "age:int"}
    ends = {"from": ":START_ID(Person)", "to": ":END_ID(Person)", "since": "since:int"}
    with graphdb.connect() as said, graphdb.connect() as called:
        said.query(f"""
            LOAD '{tmp_path}/a.ttl' BASE <http://b/c>;
            LOAD '{tmp_path}/who.csv' COLUMNS {{person: ':ID(Person)', "full name": 'name', age: 'age:int'}} LABEL Person;
            LOAD '{tmp_path}/knows.csv' TYPE knows
                COLUMNS {{`from`: ':START_ID(Person)', to: ':END_ID(Person)', since: 'since:int'}}
        """)
        called.load(tmp_path / "a.ttl", base="http://b/c")
        called.load(tmp_path / "who.csv", columns=columns, label="Person")
        called.load(tmp_path / "knows.csv", columns=ends, type="knows")
        rows = [sorted(db.sql("FROM triples").fetchall(), key=str) for db in (said, called)]
        assert rows[0] == rows[1]
        assert ("http://b/x", "http://b/p", "http://b/c#y", None, None) in rows[0]
        assert said.query("MATCH (a:Person)-[e:knows]->() RETURN a.name, a.age, e.since").fetchall() == [
            ("Ada", 36, 1999)
        ]


NAMES = [f"näme {i * 7919 % 1000}" for i in range(40)]
SOUND = {
    "csv": ":ID,name,:LABEL\n" + "".join(f"{i},{name},P\n" for i, name in enumerate(NAMES)),
    "ttl": "".join(f'<x:a{i}> <x:name> "{name}" .\n' for i, name in enumerate(NAMES)),
    "trig": "".join(f'<x:g> {{ <x:a{i}> <x:name> "{name}" }}\n' for i, name in enumerate(NAMES)),
    "jsonld": "[" + ",\n".join(f'{{"@id": "x:a{i}", "x:name": "{name}"}}' for i, name in enumerate(NAMES)) + "]",
    "rdf": RDF_HEAD
    + "".join(f'<rdf:Description rdf:about="x:{i}"><n>{name}</n></rdf:Description>\n' for i, name in enumerate(NAMES))
    + "</rdf:RDF>",
    "graphml": '<graphml><key id="n" for="node"/><graph>\n'
    + "".join(f'<node id="a{i}"><data key="n">{name}</data></node>\n' for i, name in enumerate(NAMES))
    + "</graph></graphml>",
}


def test_files_that_are_damaged(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut, packed and cut, wrongly encoded, with a NUL in its syntax, overlong, or no file: an error, nothing kept."""
    monkeypatch.setattr(streams, "LONGEST_TOKEN", 1 << 20)
    with graphdb.connect() as db:
        for suffix, text in SOUND.items():
            sound, half = text.encode(), len(text.encode()) // 2
            half = sound.rindex("ä".encode(), 0, half) + 2  # within a value
            packed, framed = gzip.compress(sound), zstd.compress(sound)
            damaged = {
                f"a.{suffix}.gz": (packed + packed[:-9], "cut short"),
                f"b.{suffix}.zst": (framed + framed[:-9], "cut short"),
                f"c.{suffix}": (sound[:half], suffix),
                f"d.{suffix}": (text.encode("utf-16"), "UTF-"),
                f"e.{suffix}": (text.encode("latin-1"), "UTF-8"),
            }
            if suffix != "csv":  # where NUL is a character like others
                damaged[f"f.{suffix}"] = (sound.replace(b"<" if b"<" in sound else b"{", b"<\0", 3), suffix)
            if suffix in ("rdf", "graphml"):
                damaged[f"g.{suffix}"] = (sound.replace(b"me", b"x" * (3 << 20), 1), "longer than 1 MiB")
            for name, (content, says) in damaged.items():
                (tmp_path / name).write_bytes(content)
                with pytest.raises(LoadError, match=says):
                    db.load(tmp_path / name)
            (tmp_path / f"h.{suffix}").mkdir()
            with pytest.raises(LoadError, match="is a directory"):
                db.load(tmp_path / f"h.{suffix}")
            os.mkfifo(tmp_path / f"i.{suffix}")
            writer = threading.Thread(target=(tmp_path / f"i.{suffix}").write_bytes, args=(sound[:half],))
            writer.start()
            with pytest.raises(LoadError):
                db.load(tmp_path / f"i.{suffix}")
            writer.join()
        assert db.sql("SELECT count(*) FROM triples").scalar() == 0
        (tmp_path / "cut.csv").write_bytes(SOUND["csv"].encode()[:-3])
        with pytest.raises(LoadError, match="Expected Number of Columns: 3 Found: 2") as found:
            db.load(tmp_path / "cut.csv")
        assert found.value.line == len(NAMES) + 1
        assert db.load(tmp_path / "cut.csv", on_error="skip").errors == 1


def test_many_errors_of_one_long_line_take_little_room(db: Any) -> None:
    """Of each the table has what stands around it, not the whole line again."""
    wrong = [f"<e:a> <e:b> f:wrong{i} . " for i in range(3000)]
    report = db.load(write("a.ttl", "".join(wrong) + "\n<e:a> <e:b> <e:c> .\n"), on_error="skip")
    found = db.sql('SELECT line, "column", text FROM load_errors').fetchall()
    assert report.errors == len(found) == len(wrong)
    assert sum(len(text) for *_, text in found) < 3000 * 1010
    for number, (line, column, text) in enumerate(found):
        assert line == 1
        assert f"wrong{number} " in text, (number, column)
