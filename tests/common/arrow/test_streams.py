"""Who reads columns of ours gives them back when it likes: in threads, after errors, in a fork, as the interpreter ends.

Each program is a process of its own, for what goes wrong there ends processes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphdb
from graphdb.common import arrow

BEFORE = """
import gc, os, threading, weakref
import duckdb, numpy as np
from graphdb.common import arrow
from graphdb.common.duckdb.fetch import batches, fetched, register

def table(rows=300_000):
    numbers = np.arange(rows)
    texts = arrow.strings([str(i) for i in range(1000)] * (rows // 1000))
    pieces = [arrow.numbers(numbers).slice(at, rows // 3) for at in range(0, rows, rows // 3)]
    parts = arrow.struct_array([arrow.numbers(numbers), texts], ["n", "t"], numbers % 3 > 0)
    return arrow.table({"n": arrow.ChunkedArray(pieces), "t": texts, "s": parts})

"""

PROGRAMS = {
    "alive at the end": """
import polars
connection = duckdb.connect()
register(connection, "t", table())
half = iter(batches(connection, "SELECT n, t FROM t", 1000))
next(half)
frame = polars.DataFrame(table())
capsule, schema = table().__arrow_c_stream__(), table().__arrow_c_schema__()
class Forever:
    def __init__(self, thing): self.thing, self.me = thing, self
here = Forever(table().__arrow_c_stream__())
""",
    "DuckDB's threads": """
def ask(cursor):
    for _ in range(5):
        mine = table()
        register(cursor, "mine", mine)
        del mine
        assert cursor.execute("SELECT count(DISTINCT t), sum(n), count(s) FROM mine").fetchall() == [
            (1000, 44999850000, 200000)]
        cursor.unregister("mine")
threads = [threading.Thread(target=ask, args=(duckdb.connect(),)) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "errors on their way": """
connection = duckdb.connect()
for i in range(50):
    mine = table(3000)
    alive = weakref.ref(mine.columns[1].chunks[0].data)
    register(connection, "mine", mine)
    del mine
    try:
        connection.execute("SELECT CASE WHEN n > 2990 THEN error('enough') END FROM mine").fetchall()
    except duckdb.Error as error:
        assert "enough" in str(error)
    else:
        raise AssertionError
    connection.unregister("mine")
    gc.collect()
    assert i == 0 or alive() is None
""",
    "a fork": """
connection = duckdb.connect()
register(connection, "t", table())
mine = table()
child = os.fork()
if not child:
    del mine
    gc.collect()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert connection.execute("SELECT count(s) FROM t").fetchall() == [(200000,)]
""",
    "what is left of a stream": """
connection = duckdb.connect()
for at in range(1, 20):
    reader = batches(connection, "SELECT range AS n, range::VARCHAR AS t FROM range(1000000)", 1000)
    held = [batch for batch, _ in zip(reader, range(at))]
    if at % 2: reader.close()
    del reader
    gc.collect()
    assert arrow.pylist(held[-1].column("t"))[:1] == [str(1000 * (at - 1))]
""",
    "an interrupt": """
import signal
connection = duckdb.connect()
connection.execute("SET threads = 1")
for _ in range(3):
    ended = threading.Event()
    def stop():
        while not ended.wait(0.3): connection.interrupt()  # one that comes before the statement begins stops nothing
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        fetched(connection.sql("SELECT count(*) FROM range(100000) a, range(1000000) b WHERE a.range * b.range = -1"))
    except duckdb.InterruptException:
        pass
    else:
        raise AssertionError
    finally:
        ended.set()
        thread.join()
    assert len(fetched(connection.sql("SELECT 1"))) == 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_are_given_back(name: str, tmp_path: Path) -> None:
    program = f"{BEFORE}{PROGRAMS[name]}"
    folder = str(Path(graphdb.__file__).parents[1])
    warnings = ("-W", "ignore::DeprecationWarning")  # of forks in a process with threads, which is what is tested
    command = [sys.executable, *warnings, "-c", f"import sys; sys.path.insert(0, {folder!r})\n{program}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def stream(error: BaseException) -> pa.RecordBatchReader:
    schema = pa.schema({":ID": pa.string(), ":LABEL": pa.string(), "k:int": pa.int64()})

    def rows() -> Iterator[pa.RecordBatch]:
        for i in range(3):
            yield pa.record_batch([[f"v{i}"], ["P"], [i]], schema=schema)
        raise error

    return pa.RecordBatchReader.from_batches(schema, rows())


@pytest.mark.parametrize("error", [ValueError("no more of this"), OSError("no more of this")])
def test_a_stream_that_breaks_off_loads_nothing_and_says_why(error: Exception) -> None:
    with graphdb.connect(device="cpu") as db:
        with pytest.raises(graphdb.LoadError, match=r"reading the stream failed: .*no more of this"):
            db.load(stream(error))
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
        db.query("CREATE (:A)")
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 1


def test_a_load_of_a_stream_larger_than_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms, triples and statistics, too, go to DuckDB piece by piece."""
    tables = arrow.Reader.tables
    monkeypatch.setattr(arrow.Reader, "tables", lambda self: tables(self, size=100))
    schema = pa.schema({":ID": pa.int64(), ":LABEL": pa.string(), "text": pa.string()})

    def rows() -> Iterator[pa.RecordBatch]:
        for first in range(0, 40, 4):
            ids = list(range(first, first + 4))
            yield pa.record_batch([ids, ["P"] * 4, [str(i) * 250 for i in ids]], schema=schema)

    with graphdb.connect(device="cpu") as db:
        db.load(pa.RecordBatchReader.from_batches(schema, rows()))
        found: Any = db.query("MATCH (p:P) RETURN count(*), sum(size(p.text))").fetchall()
        assert found == [(40, 10 * 250 + 30 * 500)]


def test_an_array_of_others_is_a_column() -> None:
    mine = arrow.array(pa.array(["a", None, "ü"]))
    assert arrow.pylist(mine) == ["a", None, "ü"]
    table = arrow.table({"a": mine, "b": np.arange(3)})
    assert pa.table(table).to_pydict() == {"a": ["a", None, "ü"], "b": [0, 1, 2]}
