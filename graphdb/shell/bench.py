"""``graphdb bench``: what this machine does in a minute or two, with DuckDB's own joins beside it.

A random graph with a few vertices of high degree is loaded into both; each asks the same questions, one after the
other, and the answers are compared.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from graphdb.common import render
from graphdb.common.config import cores
from graphdb.storage.arrays.small_joins import distinct

if TYPE_CHECKING:
    from graphdb.database import Database

VERTICES, EDGES = 20_000, 200_000
SEED = 20_261_123


class Question(NamedTuple):
    """A question in both languages; ``edges`` is DuckDB's table of ``a``, ``b``, both ``INTEGER``."""

    name: str
    pattern: str
    sql: str


_DISTINCT = "(x.a <> y.a OR x.b <> y.b) AND (x.a <> z.a OR x.b <> z.b) AND (y.a <> z.a OR y.b <> z.b)"

QUESTIONS = (
    Question(
        "edges of one vertex",
        "MATCH (a:V {id: 7})-[:E]->(b) RETURN count(*) AS n",
        "SELECT count(*) FROM edges WHERE a = 7",
    ),
    Question(
        "paths of two edges",
        "MATCH (a)-[:E]->(b)-[:E]->(c) RETURN count(*) AS n",
        "SELECT count(*) FROM edges x JOIN edges y ON x.b = y.a WHERE x.a <> y.a OR x.b <> y.b",
    ),
    Question(
        "triangles",
        "MATCH (a)-[:E]->(b)-[:E]->(c)-[:E]->(a) RETURN count(*) AS n",
        "SELECT count(*) FROM edges x JOIN edges y ON x.b = y.a JOIN edges z ON y.b = z.a AND z.b = x.a "
        f"WHERE {_DISTINCT}",
    ),
    Question(
        "triangles by their largest vertices",
        "MATCH (a:V)-[:E]->(b)-[:E]->(c)-[:E]->(a) RETURN a.id AS id, count(*) AS n ORDER BY n DESC, id LIMIT 10",
        "SELECT x.a AS id, count(*) AS n FROM edges x JOIN edges y ON x.b = y.a "
        "JOIN edges z ON y.b = z.a AND z.b = x.a "
        f"WHERE {_DISTINCT} GROUP BY id ORDER BY n DESC, id LIMIT 10",
    ),
    Question(
        "common neighbours of two vertices",
        "MATCH (a:V {id: 1})-[:E]->(x)<-[:E]-(b:V {id: 2}) RETURN count(*) AS n",
        "SELECT count(*) FROM edges x JOIN edges y ON x.b = y.b WHERE x.a = 1 AND y.a = 2",
    ),
)


def graph(vertices: int = VERTICES, edges: int = EDGES) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the edges of the graph: int64[n, 2], each once, without loops."""
    draw = np.random.default_rng(SEED)
    ends = (vertices * draw.random((edges * 5 // 4, 2)) ** 2).astype(np.int64)  # small numbers come more often
    ends = distinct(ends[ends[:, 0] != ends[:, 1]])
    return draw.permutation(ends)[:edges]


def bench(
    database: Database, output: TextIO | None = None, seconds: float = 100, size: tuple[int, int] = (VERTICES, EDGES)
) -> int:
    """Print the table; returns 0, or 1 if two answers differ.

    Parameters
    ----------
    database
        An empty database, whose threads DuckDB gets, too.
    seconds
        How long the questions are asked again and again, in all.
    size
        Vertices and edges of the graph.
    """
    output = output or sys.stdout
    vertices, ends = size[0], graph(*size)
    size_of = f"{vertices:,} vertices, {len(ends):,} edges"
    print(f"{size_of}, {database.threads} of {cores()} cores; median times", file=output)
    wrong = 0
    rows: list[tuple[str, str, str, str]] = []
    for name, ours, theirs, is_same in _measured(database, ends, vertices, seconds):
        wrong += not is_same
        ratio = theirs / ours
        text = (f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}") if is_same else "answers differ"
        rows.append((name, _duration(ours), _duration(theirs), text))
    for line in render.table(("", "graphdb", "DuckDB", "DuckDB / graphdb"), rows, 1_000_000):
        print(line, file=output)
    return 1 if wrong else 0


def _measured(
    database: Database, ends: np.ndarray[Any, np.dtype[np.int64]], vertices: int, seconds: float
) -> Iterator[tuple[str, float, float, bool]]:
    """Yield what was done, how long each took, and whether their answers are the same."""
    import duckdb

    from graphdb.common import arrow
    from graphdb.storage.loaders.tables.description import Table

    with duckdb.connect(config={"threads": database.threads}) as peer:
        edges = arrow.table([ends[:, 0], ends[:, 1]], ["a", "b"])

        def load_peer() -> None:
            peer.register("given", edges)
            peer.execute("CREATE TABLE edges AS SELECT a::INTEGER AS a, b::INTEGER AS b FROM given ORDER BY a, b")

        def load() -> None:
            numbered = arrow.table([np.arange(vertices), np.arange(vertices)], [":ID", "id:long"])
            joined = edges.rename_columns([":START_ID", ":END_ID"])
            database.load([Table(numbered, label="V"), Table(joined, type="E")])

        yield "load", _time(load), _time(load_peer), True
        each = seconds / len(QUESTIONS) / 2
        for name, pattern, sql in QUESTIONS:
            ours, found = _median(lambda text=pattern: database.query(text).fetchall(), each)  # type: ignore[misc]
            theirs, expected = _median(lambda text=sql: peer.execute(text).fetchall(), each)  # type: ignore[misc]
            yield name, ours, theirs, found == expected


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 1e-3 else render.duration(seconds)


def _time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _median(work: Callable[[], list[Any]], seconds: float) -> tuple[float, list[Any]]:
    """Return the median time of some work, done three times or more after once that does not count; and its answer."""
    answer = work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 1000):
        times.append(_time(work))
    return statistics.median(times), answer
