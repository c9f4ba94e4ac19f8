"""Small CSV files that are loaded at once are read together, and are the same graph as one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.storage.loaders.tables.staging import Staging


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """How many files were to be read together, and whether they were, time after time."""
    seen: list[tuple[int, bool]] = []
    tables: Callable[..., Any] = Staging.tables

    def noted(self: Staging, files: Any, mapping: Any) -> Any:
        found = tables(self, files, mapping)
        seen.append((len(files), found is not None))
        return found

    monkeypatch.setattr(Staging, "tables", noted)
    return seen


def write(folder: Path, texts: list[str]) -> list[str]:
    paths = [folder / f"{number}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    return list(map(str, paths))


def literals(db: Any) -> list[Any]:
    return db.sql("SELECT lexical, datatype FROM _graphdb.literal ORDER BY ALL").fetchall()


def values(db: Any) -> list[Any]:
    return sorted(map(str, db.query("MATCH (n) RETURN iri(n), labels(n), properties(n)").fetchall()))


def counted(db: Any) -> list[Any]:
    return db.sql("SELECT triples FROM _graphdb.source ORDER BY id").fetchall()


FILES = {
    "rows of each": [":ID,name,age:int\na,Ada,36\nb,Bo,1\n", ":ID,name,age:int\nc,,\n", ":ID,name,age:int\n"],
    "other types in each": [":ID,v\n1,5\n", ":ID,v\n2,0.5\n", ":ID,v\n3,text\n", ":ID,v\n4,\n", ":ID,v\n5,007\n"],
    "a value in the last": [":ID,v\n1,\n", ":ID,v\n2,\n3,\n", ":ID,v\n4,2020-01-01\n"],
    "ids that are integers": [":ID(P),v\n1,a\n", ":ID(P),v\n01,b\n", ":ID(P),v\nx,c\n", ":ID(P),v\n-0,c\n"],
    "no last line end": [":ID,v\n1,a", ":ID,v\n2,b\n", ":ID,v\n3,c"],
    "empty lines": [":ID,v\n1,a\n\n\n2,b\n", ":ID,v\n\n3,b\n\n"],
    "quotes": [':ID,v\n1,"a\nb, ""c"""\n', ':ID,v\n"2",x\n', ':ID,v\n3,"5"\n'],
    "long line ends": [":ID,v\r\n1,a\r\n2,b\r\n", ":ID,v\r\n3,b\r\n"],
    "stated types": [":ID,a:int,b:float,c:datetime\n1,5,5,2020-01-01\n", ":ID,a:int,b:float,c:datetime\n2, 7,1e3,2020-01-01 10:00\n"],
    "labels and lists": [":ID,:LABEL,l:string[]\n1,A;B,x;y\n", ":ID,:LABEL,l:string[]\n2,,x\n3,A,\n"],
}  # fmt: skip


@pytest.mark.parametrize("texts", FILES.values(), ids=FILES)
def test_as_one_after_the_other(texts: list[str], tmp_path: Path, joined: list[tuple[int, bool]]) -> None:
    paths = write(tmp_path, texts)
    with graphdb.connect(threads=1) as together, graphdb.connect(threads=1) as single:
        report = together.load(paths, label="Thing")
        rows = [single.load(path, label="Thing").rows for path in paths]
        assert joined == [(len(paths), True)]
        assert values(together) == values(single)
        assert literals(together) == literals(single)
        assert counted(together) == counted(single) == [(each,) for each in rows]
        assert (report.rows, report.files) == (sum(rows), len(paths))


ALONE = {
    "several headers": [":ID,v\n1,a\n", ":ID,w\n2,b\n", ":ID,v\n3,c\n"],
    "line ends of both kinds": [":ID,v\n1,a\n", ":ID,v\r\n2,b\r\n"],
    "a type that is asked for": [":ID,v\n1,10:00:00\n", ":ID,v\n2,11:00:00\n"],
    "a blank node": [":ID,v\n_:x,1\n", ":ID,v\n2,1\n"],
    "one column": [":ID\na\n", ":ID\nb\n"],
}


@pytest.mark.parametrize("texts", ALONE.values(), ids=ALONE)
def test_what_is_read_one_by_one(texts: list[str], tmp_path: Path, joined: list[tuple[int, bool]]) -> None:
    paths = write(tmp_path, texts)
    with graphdb.connect(threads=1) as together, graphdb.connect(threads=1) as single:
        together.load(paths)
        for path in paths:
            single.load(path)
        assert joined == [(len(paths), False)]
        assert len(values(together)) == len(values(single)) == len(texts)
        assert literals(together) == literals(single)


def test_errors_name_their_file(tmp_path: Path) -> None:
    good, bad = ":ID,age:int\n1,5\n", ":ID,age:int\n2,6\n3,six\n"
    paths = write(tmp_path, [good, bad, good.replace("1,", "4,")])
    with graphdb.connect(threads=1) as db:
        with pytest.raises(graphdb.LoadError, match="age") as raised:
            db.load(paths)
        assert f"{paths[1]}, line 3" in str(raised.value)
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
        assert db.load(paths, on_error="skip").errors == 1
        assert db.query("MATCH (n) RETURN n.age ORDER BY n.age ASC").fetchall() == [(5,), (5,), (6,)]
        assert db.sql("SELECT file, line FROM load_errors").fetchall() == [(paths[1], 3)]


def test_vertices_and_edges_by_turns(tmp_path: Path, joined: list[tuple[int, bool]]) -> None:
    people = write(tmp_path, [f":ID(P),n:int\n{i},{i * i}\n" for i in range(5)])
    (tmp_path / "edges").mkdir()
    knows = write(tmp_path / "edges", [f":START_ID(P),:END_ID(P)\n{i},{(i + 1) % 5}\n" for i in range(5)])
    with graphdb.connect(threads=1) as db:
        db.load([graphdb.Table(people, label="P"), graphdb.Table(knows, type="K"), graphdb.Table(people[0], label="Q")])
        assert joined == [(5, True), (5, True)]
        assert db.query("MATCH (a:P)-[:K]->(b:P) RETURN a.n, b.n ORDER BY a.n ASC").fetchall() == [
            (i * i, ((i + 1) % 5) ** 2) for i in range(5)
        ]
