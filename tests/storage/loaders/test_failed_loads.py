"""Loads that fail, are interrupted or cancelled: the error says where, and the database is as before."""

from __future__ import annotations

import gzip
import pathlib
import threading
from typing import Any

import pytest

from graphdb.common.errors import GraphDBError, LoadError, NotSupportedError, QueryInterrupted
from graphdb.common.stopping import stopping
from graphdb.storage.loaders import loading
from graphdb.storage.loaders import streams as streams_module
from graphdb.storage.loaders.tables import assembly
from graphdb.storage.loaders.tables.headers import Mapping
from tests.storage.loaders.loaded import PEOPLE, Loaded, load


@pytest.fixture
def db(tmp_path: pathlib.Path) -> Loaded:
    return Loaded(tmp_path)


def test_bad_line_stops_and_leaves_no_trace(db: Loaded) -> None:
    db.load(PEOPLE)
    before = db.everything()
    with pytest.raises(LoadError) as caught:
        db.load('<ex:new> <ex:new> "new" .\n' * 3 + '<ex:é> <ex:p> "😀\\q" .\n', "bad.nt")
    assert db.everything() == before
    assert (caught.value.line, caught.value.column) == (4, 17)
    lines = str(caught.value).split("\n")
    assert lines[0].endswith("bad.nt, line 4, column 17)")
    assert lines[1] == '  <ex:é> <ex:p> "😀\\q" .'
    assert lines[2].index("^") == lines[1].index("\\")
    assert db.load("<ex:new> <ex:p> <ex:o> .").new_triples == 1


def test_skip_loads_the_rest(db: Loaded) -> None:
    report = db.load("oops\n<ex:s> <ex:p> <ex:o> .\n<ex:s> <ex:p> é .\n", "bad.nt", on_error="skip")
    assert (report.triples, report.new_triples, report.errors) == (1, 1, 2)
    file = str(db.folder / "bad.nt")
    assert db.rows('SELECT file, line, "column", text FROM main.load_errors') == [
        (file, 1, 1, "oops"),
        (file, 3, 15, "<ex:s> <ex:p> é ."),
    ]
    assert {message.split(" ")[0] for (message,) in db.rows("SELECT message FROM main.load_errors")} == {"expected"}
    db.load("oops", "worse.nt", on_error="skip")
    assert db.rows("SELECT count(*) FROM main.load_errors") == [(3,)]


def test_skip_with_many_bad_lines(db: Loaded) -> None:
    report = db.load("bad\n" * 50_000 + "<ex:s> <ex:p> <ex:o> .\n", on_error="skip")
    assert (report.new_triples, report.errors) == (1, 50_000)
    assert db.rows("SELECT count(*), max(line) FROM main.load_errors") == [(50_000, 50_000)]


def _refused(
    db: Loaded, paths: Any, message: str, hint: str = "", error: type[GraphDBError] = LoadError, **options: Any
) -> None:
    before = db.everything()
    with pytest.raises(error) as caught:
        load(db.connection, db.catalog, paths, **options)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert db.everything() == before


def test_paths(db: Loaded) -> None:
    db.write(PEOPLE, "people.nt")
    db.write("<ex:s> <ex:p> <ex:o> .", "places.nt.gz")
    folder = db.folder
    _refused(db, folder / "peple.nt", "there is no file", "people.nt'")
    _refused(
        db, str(folder / "*.nx"), "no file matches", f"there are '{folder / 'people.nt'}', '{folder / 'places.nt.gz'}'"
    )
    _refused(db, folder, "is a directory", "*.nt")
    _refused(db, [], "no file to load")
    _refused(db, folder / "absent" / "x.nt", "there is no file", "there is no folder")
    _refused(db, db.write("", "data.bin"), "tells the file's format", "FORMAT ntriples")
    _refused(db, db.write("", "data.hdt"), "HDT files cannot", error=NotSupportedError)
    _refused(db, db.write("", "data.n3.gz"), "Notation3 files cannot", error=NotSupportedError)
    _refused(db, folder / "people.nt", "GEXF", error=NotSupportedError, format="gexf")
    _refused(db, folder / "people.nt", "unknown format", "ntriples", format="ntripels")
    _refused(db, folder / "people.nt", "on_error", on_error="ignore")
    assert load(db.connection, db.catalog, str(folder / "p*.nt*")).files == 2
    assert load(db.connection, db.catalog, db.write(PEOPLE, "data.bin"), format="N-Triples").triples == 10
    assert load(db.connection, db.catalog, db.write("", "[a]*.nt")).triples == 0


def test_damaged_files(db: Loaded) -> None:
    from graphdb.storage import zstd

    text = "".join(f"<ex:{i}> <ex:p> <ex:{i * i}> .\n" for i in range(5_000)).encode()
    for suffix, packed in ((".nt.gz", gzip.compress(text)), (".nt.zst", zstd.compress(text))):
        path = db.folder / f"cut{suffix}"
        path.write_bytes(packed[: len(packed) // 2])
        _refused(db, path, "is cut short", "again")
        path.write_bytes(bytes(1) + packed[1:])  # no longer packed, as it seems
        _refused(db, path, "expected a subject")
        path.write_bytes(packed[:40] + bytes(40) + packed[80:])
        _refused(db, path, "cannot read")


def test_line_too_long(db: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "LONGEST_LINE", 1_000)
    monkeypatch.setattr(streams_module, "BLOCK", 100)
    _refused(db, db.write('<ex:s> <ex:p> "' + "x" * 5_000 + '" .'), "longer than")


def test_loads_within_a_transaction_are_refused_and_leave_it_open(db: Loaded) -> None:
    path = db.write(PEOPLE)
    db.catalog.transactions.begin(db.connection.begin)
    db.connection.execute("CREATE TABLE mine AS SELECT 1 AS one")
    with pytest.raises(LoadError, match="a transaction is open"):
        load(db.connection, db.catalog, path)
    db.catalog.transactions.commit(db.connection.commit)
    assert db.rows("FROM mine") == [(1,)]
    assert db.load(PEOPLE).new_triples == 9


@pytest.mark.parametrize("phase", ["parsing", "storing terms", "sorting triples", "counting", "done"])
def test_interrupt_leaves_no_trace(db: Loaded, monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    """Ctrl-C, arriving in any phase."""
    monkeypatch.setattr(loading, "_TICK", 0.0)
    db.load(PEOPLE)
    before = db.everything()

    def interrupt(done: int, total: int, triples: int, now: str) -> None:
        if now == phase:
            raise KeyboardInterrupt

    lines = "".join(f'<ex:{i}> <ex:p{i % 10}> "{i}" .\n' for i in range(20_000))
    with pytest.raises(KeyboardInterrupt):
        db.load(lines, progress=interrupt)
    assert db.everything() == before
    assert db.load(lines).new_triples == 20_000


def test_cancel_leaves_no_trace(db: Loaded) -> None:
    before = db.everything()
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(QueryInterrupted), stopping(None, cancelled):
        db.load(PEOPLE)
    assert db.everything() == before


def test_triples_of_tables_stop_between_columns(db: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making them is no work of DuckDB's, which could be interrupted."""
    before = db.everything()
    cancelled, columns = threading.Event(), [0]
    values = assembly._Writer._values

    def slow(self: Any, some: Any) -> Any:
        columns[0] += 1
        cancelled.set()
        threading.Event().wait(0.05)
        return values(self, some)

    monkeypatch.setattr(assembly._Writer, "_values", slow)
    header = ":START_ID,:END_ID," + ",".join(f"p{number}" for number in range(100))
    with pytest.raises(QueryInterrupted), stopping(None, cancelled):
        db.load(header + "\n1,2" + ",3" * 100 + "\n", "a.csv", mapping=Mapping(type="K"))
    assert 0 < columns[0] < 100
    assert db.everything() == before


def test_progress(db: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_TICK", 0.0)
    monkeypatch.setattr(streams_module, "BLOCK", 1_000)
    calls: list[tuple[int, int, int, str]] = []
    report = db.load(PEOPLE * 100, progress=lambda *call: calls.append(call))
    assert calls == sorted(calls, key=lambda call: call[0])
    assert {call[1] for call in calls} == {len(PEOPLE.encode()) * 100}
    assert calls[-1] == (calls[-1][1], calls[-1][1], report.triples, "done")
    assert len({call[2] for call in calls}) > 10
