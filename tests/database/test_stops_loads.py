"""Loads and exports stop soon after their ``timeout`` or an interrupt, and leave the database as it was."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import duckdb
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.common.errors import LoadError, QueryInterrupted, QueryTimeout
from graphdb.storage.loaders.streams import Put, Stopped, blocks
from graphdb.storage.loaders.tables.headers import Mapping
from graphdb.storage.loaders.tables.reader import read_table
from tests.stops import PATIENCE, Stopwatch, interrupted, soon, waited_for

SLACK = 2.0
"""Seconds that a stop may take on a machine under load; on a quiet one it is half a second."""

ROWS = 30_000
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def _lines(form: Callable[[int], str]) -> str:
    return "".join(map(form, range(ROWS)))


TEXTS: dict[str, Callable[[], str]] = {
    "nt": lambda: _lines(lambda i: f'<e:{i}> <e:p> "{i}" .\n<e:{i}> <e:q> <e:{i * 7919 % ROWS}> .\n'),
    "ttl": lambda: _lines(lambda i: f'<e:{i}> <e:p> "{i}" ; <e:q> <e:{i * 7919 % ROWS}> .\n'),
    "rdf": lambda: (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="e:">'
        + _lines(lambda i: f'<rdf:Description rdf:about="e:{i}"><e:p>{i}</e:p></rdf:Description>\n')
        + "</rdf:RDF>"
    ),
    "jsonld": lambda: "[" + _lines(lambda i: f'{{"@id": "e:{i}", "e:p": "{i}"}},') + "{}]",
    "graphml": lambda: (
        '<graphml><key id="k" for="node" attr.name="k" attr.type="int"/><graph>'
        + _lines(lambda i: f'<node id="n{i}"><data key="k">{i}</data></node>')
        + _lines(lambda i: f'<edge source="n{i}" target="n{i * 7919 % ROWS}"/>')
        + "</graph></graphml>"
    ),
    "csv": lambda: ":ID,name,age:int\n" + _lines(lambda i: f"n{i},name {i},{i % 90}\n"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each format, which takes a while to load."""
    folder = tmp_path_factory.mktemp("stops")
    for suffix, text in TEXTS.items():
        (folder / f"data.{suffix}").write_text(text())
    return {suffix: folder / f"data.{suffix}" for suffix in TEXTS}


@pytest.fixture(scope="module")
def loaded(files: dict[str, Path]) -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as db:
        db.load(files["nt"])
        yield db


def stopped(run: Callable[[], object], after: float) -> None:
    """Run what must be stopped, soon after so many seconds, unless it ends before."""
    watch = Stopwatch()
    with suppress(QueryTimeout):
        run()
    assert watch.seconds() < after + SLACK


@pytest.mark.parametrize("suffix", TEXTS)
def test_a_load_stops_at_its_timeout(files: dict[str, Path], loaded: graphdb.Database, suffix: str) -> None:
    with graphdb.connect(device="cpu") as db:
        for share in (0.0, 0.01):
            with pytest.raises(QueryTimeout):
                db.load(files[suffix], timeout=share)
            with pytest.raises(QueryTimeout):
                db.query(f"LOAD '{files[suffix]}'", timeout=share)
        stopped(lambda: db.load(files[suffix], timeout=0.1), 0.1)
        db.query("CREATE (:After {stop: 1})")
        assert db.query("MATCH (n:After) RETURN n.stop").scalar() == 1


@pytest.mark.parametrize("suffix", ["nt", "ttl", "nq.gz", "trig", "graphml", "parquet"])
def test_an_export_stops_at_its_timeout(loaded: graphdb.Database, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    for seconds in (0.0, 0.02):
        with pytest.raises(QueryTimeout):
            loaded.export(target, timeout=seconds)
        assert not target.exists()
        assert not list(tmp_path.iterdir())
    assert loaded.query("MATCH (n) RETURN count(*)").scalar() == ROWS


def test_a_network_stops_at_its_timeout(loaded: graphdb.Database) -> None:
    pytest.importorskip("networkx")
    for seconds in (0.0, 0.05):
        with pytest.raises(QueryTimeout):
            loaded.to_networkx(timeout=seconds)
    assert loaded.query("MATCH (n) RETURN count(*)").scalar() == ROWS


def _nested(depth: int) -> str:
    description = "<rdf:Description><e:p>"
    return (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="e:">'
        + description * depth
        + "</e:p></rdf:Description>" * depth
        + "</rdf:RDF>"
    )


def test_elements_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    deep = tmp_path / "deep.rdf"
    with graphdb.connect(device="cpu") as db:
        deep.write_text(_nested(6000))  # twice as many elements
        with pytest.raises(LoadError, match="elements are nested deeper than 2,000"):
            db.load(deep)
        deep.write_text(_nested(900))
        assert db.load(deep).triples == 900


def seconds_until(db: graphdb.Database, how: str, after: float, load: Callable[..., object]) -> float:
    """Stop a load or an export that would wait for ever, and return how many seconds it took."""
    started = time.perf_counter()
    with interrupted(db, how, after), pytest.raises(QueryTimeout if how == "timeout" else QueryInterrupted):
        load(timeout=after if how == "timeout" else None)
    return time.perf_counter() - started


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nobody waits for a pipe without writers")
@pytest.mark.parametrize("name", ["slow.nt", "slow.ttl", "slow.csv", "slow"])
@pytest.mark.parametrize("said", [None, "<e:a> <e:b> <e:c> .\n" * 10_000])
def test_a_pipe_that_says_nothing_is_not_waited_for(tmp_path: Path, name: str, said: str | None) -> None:
    """Whether nobody has opened it to write, or whoever did stops halfway."""
    os.mkfifo(tmp_path / name)
    writer = None if said is None else os.open(tmp_path / name, os.O_RDWR)
    with graphdb.connect() as db:
        db.query("CREATE (:P)")
        if writer is not None and said is not None:
            os.set_blocking(writer, False)
            os.write(writer, said.encode())
        for stop in ("timeout", "interrupt"):
            load = partial(db.query, f"LOAD '{tmp_path / name}'")
            soon(lambda stop=stop, load=load: seconds_until(db, stop, 0.3, load), 5)  # type: ignore[misc]
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 1
    if writer is not None:
        os.close(writer)


@pytest.fixture
def silent() -> Iterator[tuple[BinaryIO, io.RawIOBase]]:
    """A stream, and its other end, which is open."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as other:
        yield stream, other


@pytest.mark.skipif(sys.platform == "win32", reason="there a pipe cannot be asked whether it has something to say")
@pytest.mark.parametrize(
    ("form", "format"),
    [*(("statement", format) for format in ("nt", "ttl", "csv", None)), ("call", "nt"), ("open stream", "nt")],
)
@pytest.mark.parametrize("said", ["", "<e:a> <e:b> <e:c> .\n<e:d> <e:b"])
def test_standard_input_that_says_nothing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    silent: tuple[BinaryIO, io.RawIOBase],
    form: str,
    format: str | None,
    said: str,
) -> None:
    stream, other = silent
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    stated = f" FORMAT {format}" if format else ""
    with graphdb.connect() as db:
        db.query("CREATE (:P)")
        other.write(said.encode())
        load: Callable[..., object] = {
            "statement": partial(db.query, f"LOAD '-'{stated}"),
            "call": partial(db.load, "-", format),
            "open stream": partial(db.load, stream, format),
        }[form]
        for stop in ("timeout", "interrupt"):
            rescue = threading.Timer(PATIENCE, lambda: other.write(b"\n" * 100_000))  # the test fails, but it ends
            rescue.start()
            soon(lambda stop=stop: seconds_until(db, stop, 0.2, load), 5)  # type: ignore[misc]
            rescue.cancel()
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 1
    readers = [thread for thread in threading.enumerate() if thread.name == "graphdb-read"]
    assert not readers, "what they took of it would be missing in the next statement"
    assert not stream.closed


@pytest.mark.skipif(sys.platform == "win32", reason="as above")
def test_standard_input_is_waited_for(monkeypatch: pytest.MonkeyPatch, silent: tuple[BinaryIO, io.RawIOBase]) -> None:
    """Until it ends; what was read ahead of a line belongs to what is loaded."""
    stream, other = silent
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    lines = [f"<e:{i}> <e:p> <e:{i + 1}> .\n" for i in range(3000)]
    other.write("".join(["a first line\n", *lines[:10]]).encode())
    assert stream.readline() == b"a first line\n"  # and the ten others with it

    def write() -> None:
        for start in range(10, 3000, 1000):
            time.sleep(0.1)
            other.write("".join(lines[start : start + 1000]).encode())
        other.close()

    thread = threading.Thread(target=write)
    thread.start()
    with graphdb.connect() as db:
        assert db.load("-").triples == 3000
    thread.join()


@pytest.mark.skipif(sys.platform == "win32", reason="as above")
def test_a_load_of_the_command_line_sees_its_timeout(tmp_path: Path) -> None:
    """As a user meets it: a statement of the command line, and nobody at the other end of the pipe says anything."""
    graphdb.connect(tmp_path / "db.duckdb").close()
    command = [sys.executable, "-m", "graphdb", "query", str(tmp_path / "db.duckdb"), "LOAD '-'", "--timeout", "0.2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.wait(PATIENCE) == 1
            assert "longer than its timeout of 0.2 s" in process.stderr.read()
        finally:
            process.kill()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nobody waits for a pipe without writers")
def test_named_pipes_are_read_where_many_files_are_open(tmp_path: Path) -> None:
    """``select`` takes no descriptor from 1,024 on."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
    os.mkfifo(tmp_path / "pipe.nt")
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        thread = threading.Thread(target=lambda: (tmp_path / "pipe.nt").write_text("<e:a> <e:b> <e:c> .\n"))
        thread.start()
        with graphdb.connect() as db:
            assert db.load(tmp_path / "pipe.nt").triples == 1
            thread.join()
            reader = threading.Thread(target=lambda: (tmp_path / "pipe.nt").read_bytes())
            reader.start()
            assert db.export(tmp_path / "pipe.nt") == 1
            reader.join()
    finally:
        for file in taken:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as above")
@pytest.mark.parametrize("name", ["slow.nt", "slow.ttl.gz", "slow.graphml"])
@pytest.mark.parametrize("reader", [False, True])
def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path, name: str, reader: bool) -> None:
    """Whether nobody has opened it, or whoever has does not read."""
    os.mkfifo(tmp_path / name)
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 30000) AS i CREATE (:P {name: toString(i * 7919)})")
        other = os.open(tmp_path / name, os.O_RDONLY | os.O_NONBLOCK) if reader else None
        soon(lambda: seconds_until(db, "timeout", 0.3, partial(db.export, tmp_path / name)), 5)
        if other is not None:
            os.close(other)


def test_a_pipe_is_written_as_fast_as_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.nt")
    read: list[bytes] = []

    def work() -> None:
        time.sleep(0.3)
        with (tmp_path / "slow.nt").open("rb") as pipe:
            while piece := pipe.read(100_000):
                read.append(piece)
                time.sleep(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 30000) AS i CREATE (:P {name: toString(i)})")
        db.export(tmp_path / "slow.nt")
        db.export(tmp_path / "file.nt")
    thread.join()
    assert b"".join(read) == (tmp_path / "file.nt").read_bytes()


def test_a_pipe_is_waited_for(tmp_path: Path) -> None:
    """Until someone opens it to write, and until it is closed."""
    os.mkfifo(tmp_path / "slow.nt")

    def write() -> None:
        time.sleep(0.3)
        with (tmp_path / "slow.nt").open("w") as pipe:
            for i in range(3):
                pipe.write("".join(f'<e:{i}> <e:p> "{j}" .\n' for j in range(3000)))
                pipe.flush()
                time.sleep(0.1)

    thread = threading.Thread(target=write)
    thread.start()
    with graphdb.connect() as db:
        assert db.load(tmp_path / "slow.nt").triples == 9000
    thread.join()


@pytest.mark.parametrize("form", ["file", "query"])
def test_tables_of_too_many_columns_are_refused(tmp_path: Path, form: str) -> None:
    """DuckDB took 40 s to bind 100,000 columns, and did not stop."""
    names = [f"c{i}" for i in range(20_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n1\n")
    sources = {
        "file": f"'{tmp_path / 'wide.csv'}'",
        "query": f"FROM (SELECT {', '.join(f'1 AS {name}' for name in names)}) AS LABEL X",
    }
    watch = Stopwatch()
    with graphdb.connect() as db, pytest.raises(LoadError, match="the table has 20,000 columns"):
        db.query(f"LOAD {sources[form]}")
    assert watch.seconds() < 20


def _wide(columns: int) -> str:
    """SQL for a row of so many values."""
    return f"SELECT {', '.join([*(f'{i} AS c{i}' for i in range(columns - 1)), '7 AS ' + chr(34) + 'id:ID' + chr(34)])}"


def test_tables_of_very_many_columns_are_read(tmp_path: Path) -> None:
    """DuckDB crashed on one statement for 9,999 columns of a file; 1,000 took more than a minute."""
    with graphdb.connect(device="cpu", threads=1) as db:
        db.sql(f"COPY ({_wide(1500)}) TO '{tmp_path / 'wide.csv'}'")
        db.query(f"LOAD '{tmp_path / 'wide.csv'}' AS LABEL X", timeout=60)
        assert db.query("MATCH (x:X) RETURN x.c0, x.c63, x.c64, x.c1498").fetchall() == [(0, 63, 64, 1498)]
        assert db.query("MATCH (x:X) RETURN size(keys(x))").scalar() == 1500
        text = (tmp_path / "wide.csv").read_text().replace("c0,", "c0:int,").replace("\n0,", "\nx,")
        (tmp_path / "wide.csv").write_text(text)
        with pytest.raises(LoadError, match=r"has 1,500 columns; where .* a row that cannot be read, it may have 900"):
            db.query(f"LOAD '{tmp_path / 'wide.csv'}' AS LABEL Y", timeout=60)
        with pytest.raises(LoadError, match=r"no column says which vertex or edge a row is: c0, c1, .* and 50 more"):
            db.load(graphdb.Table(sql=_wide(70).replace("id:ID", "id")))


@pytest.mark.parametrize("rows", [0, 1, 2048, 2049, 10_000])
def test_the_types_of_wide_tables(tmp_path: Path, rows: int) -> None:
    """What all values show, wherever the one stands that is of another type."""
    kinds = ["i", "i * 0.5", "'t' || i", "if(i < 2047, i::VARCHAR, 'x')", "if(i < 2048, i::VARCHAR, 'x')", "NULL"]
    kinds += ["if(i < 2048, i::VARCHAR, '0.5')", "DATE '2020-01-01' + i::INTEGER", "if(i % 2 = 0, NULL, i)"]
    columns = [*(f"{kinds[c % len(kinds)]} AS c{c}" for c in range(9 * 8)), 'i AS "id:ID"']
    with graphdb.connect(device="cpu", threads=1) as db:
        db.sql(f"COPY (SELECT {', '.join(columns)} FROM range({rows}) r(i)) TO '{tmp_path / 'wide.csv'}'")
        db.query(f"LOAD '{tmp_path / 'wide.csv'}' AS LABEL X")
        narrow = [f"{kind} AS c{c}" for c, kind in enumerate(kinds)]
        db.sql(f"COPY (SELECT {', '.join(narrow)}, i AS \"id:ID\" FROM range({rows}) r(i)) TO '{tmp_path / 'n.csv'}'")
        db.query(f"LOAD '{tmp_path / 'n.csv'}' AS LABEL Y")
        for c in range(9):
            wide, alone = (
                db.query(f"MATCH (n:{label}) RETURN n.id AS id, n.{name} AS v ORDER BY id").fetchall()
                for label, name in (("X", f"c{c + 63}"), ("Y", f"c{c}"))
            )
            assert repr(wide) == repr(alone), kinds[c]
            assert len(wide) == rows


def test_a_query_of_rows_to_load_stops_as_others_do(tmp_path: Path) -> None:
    """Its interrupt was taken for an error of the query."""
    for seconds in (0.01, 0.1, 0.3):
        with graphdb.connect() as db, pytest.raises(QueryTimeout):
            db.query('LOAD FROM (SELECT count(*) AS "id:ID" FROM range(10000000000)) AS LABEL X', timeout=seconds)


def test_text_that_looks_like_tags_is_none(tmp_path: Path) -> None:
    text = "<br><p>" * 60
    lines = [
        f'<rdf:Description rdf:about="e:{i}"><e:p><![CDATA[{text}{i}]]></e:p></rdf:Description>' for i in range(300)
    ]
    file = tmp_path / "cdata.rdf"
    file.write_text(f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="e:">' + "\n".join(lines) + "</rdf:RDF>")
    with graphdb.connect(device="cpu") as db:
        assert db.load(file).triples == 300


LEFT_ALONE = """
import os
import time
import duckdb
from graphdb.storage.loaders.streams import blocks

class Slow:
    def __del__(self):
        time.sleep(2)  # other threads would go on meanwhile
        os.write(1, b"ended")

def produce(put):
    put.enter_library()
    with duckdb.connect() as connection, put.interrupting(connection.interrupt):
        connection.execute("SELECT " + ", ".join(f"range + {i}" for i in range(10000)) + " FROM range(3)").fetchall()

def watch():
    raise TimeoutError

slow = Slow()
try:
    list(blocks(produce, watch))
except TimeoutError:
    print("stopped", flush=True)
"""


def test_a_process_ends_while_a_library_still_works_for_a_load_that_was_stopped() -> None:
    """Python ended the thread at its exit, and DuckDB the process: *terminate called*."""
    ended = subprocess.run([sys.executable, "-c", LEFT_ALONE], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "stopped\nended", "")


def test_a_reader_enters_no_library_once_nobody_waits() -> None:
    """On a busy machine it came so far when the load had been stopped: nobody waited for it at the process's exit."""
    entered: list[str] = []

    def produce(put: Put) -> None:
        assert put.stopped.wait(PATIENCE)
        for name, enter in (("interrupting", put.interrupting(lambda: None)), ("opening", _opening(put))):
            with suppress(Stopped), enter:
                entered.append(name)

    def watch() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        list(blocks(produce, watch))
    waited_for(lambda: not any(thread.name == "graphdb-read" for thread in threading.enumerate()))
    assert not entered


@contextmanager
def _opening(put: Put) -> Iterator[None]:
    put.enter_library()
    yield


def test_the_reader_of_a_table_is_in_a_library_from_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Put(1)
    put.stopped.set()
    monkeypatch.setattr(duckdb, "connect", lambda **_: pytest.fail("DuckDB was opened"))
    with pytest.raises(Stopped):
        read_table((arrow.table({"a": [1]}), []), "a", "0", Mapping(), False, put, str(tmp_path))
