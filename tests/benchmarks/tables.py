"""Loading tables: files of vertices and of edges of a social network, rows a second, with peers in the same run.

Run as ``python -m tests.benchmarks.tables --messages 200000``; ``--data FOLDER`` takes files in the schema of LDBC's
Social Network Benchmark instead (``static/*.csv`` and ``dynamic/*.csv``, ``|`` between fields, no quotes).  Each load
runs in a fresh process into a file on disk; imports are not in the seconds.  ``duckdb`` copies each file into a table of
typed columns, and makes an index on its id, or on both ends; ``ladybug`` copies into node and relationship tables.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import graphdb
from tests.benchmarks.harness import Table, size_mb, surroundings

GROUPS = {"post": "Message", "comment": "Message"}
LABELS = {"post": "Post:Message", "comment": "Comment:Message", "tagclass": "TagClass"}
INTEGERS = {"birthday", "creationDate", "joinDate", "classYear", "workFrom", "length"}


@dataclass(frozen=True, slots=True)
class File:
    """One file: of vertices (``edge`` is empty), or of edges from one kind to another."""

    path: str
    kinds: tuple[str, ...]
    edge: str
    columns: tuple[tuple[str, bool], ...]
    """Names of the columns behind the ids, and whether they are integers."""


def generate(folder: Path, messages: int) -> None:
    """Write persons, messages, friendships, authors, replies and likes."""
    persons = max(messages // 100, 10)
    (folder / "dynamic").mkdir(parents=True)
    pick = "floor(random() * {})::BIGINT"
    tables = {
        "person": f"SELECT range AS id, 'n' || range % 500 AS firstName, 1300000000000 + range * 977 AS creationDate,"
        f" 'es;en' AS language FROM range({persons})",
        "post": "SELECT range AS id, 1300000000000 + range * 7919 AS creationDate, '1.2.3.' || range % 250 AS locationIP,"
        f" 'About ' || md5(range::VARCHAR) AS content, range % 120 AS length FROM range({messages})",
        "person_knows_person": f"SELECT DISTINCT {pick.format(persons)} AS a, {pick.format(persons)} AS b,"
        f" 1300000000000 + range AS creationDate FROM range({messages // 3})",
        "post_hasCreator_person": f"SELECT range AS a, {pick.format(persons)} AS b FROM range({messages})",
        "post_replyOf_post": f"SELECT range AS a, {pick.format(messages)} AS b FROM range(1, {messages})",
        "person_likes_post": f"SELECT DISTINCT {pick.format(persons)} AS a, {pick.format(messages)} AS b,"
        f" 1300000000000 + range AS creationDate FROM range({messages})",
    }
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        for name, sql in tables.items():
            path = folder / "dynamic" / f"{name}_0_0.csv"
            connection.execute(f"COPY ({sql}) TO '{path}' (HEADER, DELIMITER '|', QUOTE '')")


def files(folder: Path) -> list[File]:
    """Return what the files of a data set are, by their names and headers."""
    found = []
    for path in sorted(
        [*folder.glob("static/*.csv"), *folder.glob("dynamic/*.csv")], key=lambda path: path.stem.count("_")
    ):
        with open(path, encoding="utf-8") as file:
            header = next(file).rstrip("\n").split("|")
        first, *rest = path.stem.removesuffix("_0_0").split("_")
        kinds = (first, rest[1]) if rest else (first,)
        columns = tuple((name, name in INTEGERS) for name in header[len(kinds) :])
        found.append(File(str(path), kinds, rest[0] if rest else "", columns))
    return found


def into_graphdb(found: list[File], path: Path) -> None:
    """Load as vertices and edges."""
    tables = []
    for file in found:
        rest = [f"{name}:{'long' if integer else 'string'}" for name, integer in file.columns]
        groups = [GROUPS.get(kind, kind) for kind in file.kinds]
        if file.edge:
            columns = [f":START_ID({groups[0]}){{long}}", f":END_ID({groups[1]}){{long}}", *rest]
            how: dict[str, Any] = {"type": re.sub(r"(?=[A-Z])", "_", file.edge).upper()}
        else:
            columns = [f"id:ID({groups[0]}){{long}}", *rest]
            how = {"label": LABELS.get(file.kinds[0], file.kinds[0].capitalize())}
        tables.append(graphdb.Table(file.path, columns=columns, delimiter="|", quote="", **how))
    with graphdb.connect(path) as db:
        db.load(tables)


def into_duckdb(found: list[File], path: Path) -> None:
    """Copy into tables, with indexes on ids and ends."""
    with duckdb.connect(str(path)) as connection:
        names = []
        for file in found:
            name = "_".join((*file.kinds, file.edge))
            ids = [f"id{number} BIGINT" for number in range(len(file.kinds))]
            rest = [f'"{column}" {"BIGINT" if integer else "VARCHAR"}' for column, integer in file.columns]
            connection.execute(f'CREATE TABLE "{name}" ({", ".join([*ids, *rest])})')
            connection.execute(f"COPY \"{name}\" FROM '{file.path}' (HEADER, DELIMITER '|', QUOTE '', ESCAPE '')")
            names.append((name, len(ids)))
        for name, ids_of in names:
            for number in range(ids_of):
                unique = "UNIQUE" if ids_of == 1 else ""
                connection.execute(f'CREATE {unique} INDEX "{name}{number}" ON "{name}" (id{number})')


def into_ladybug(found: list[File], path: Path) -> None:
    """Copy into node tables and relationship tables, one for each file."""
    import ladybug

    connection = ladybug.Connection(ladybug.Database(str(path)))
    how = "(HEADER=true, DELIM='|', QUOTE='\\u0001', ESCAPE='\\u0001', PARALLEL=true)"
    for file in found:
        name = "_".join((*file.kinds, file.edge)).rstrip("_")
        rest = [f"`{column}` {'INT64' if integer else 'STRING'}" for column, integer in file.columns]
        if file.edge:
            ends = [f"FROM {file.kinds[0]} TO {file.kinds[1]}"]
            connection.execute(f"CREATE REL TABLE {name}_({', '.join([*ends, *rest])})")
            connection.execute(f"COPY {name}_ FROM '{file.path}' {how}")
        else:
            connection.execute(f"CREATE NODE TABLE {name}({', '.join(['id INT64 PRIMARY KEY', *rest])})")
            connection.execute(f"COPY {name} FROM '{file.path}' {how}")


ENGINES: dict[str, Callable[[list[File], Path], None]] = {
    "graphdb": into_graphdb,
    "duckdb": into_duckdb,
    "ladybug": into_ladybug,
}


def _measure(engine: str, found: list[File], folder: str, pipe: Any) -> None:
    """Load once, in this process; send seconds, processor seconds and peak, or what went wrong."""
    import resource

    try:
        if engine == "graphdb":
            import pyarrow.compute  # noqa: F401
        elif engine == "ladybug":
            import ladybug  # noqa: F401
        wall, processor = time.perf_counter(), time.process_time()
        ENGINES[engine](found, Path(folder) / engine)
    except Exception as error:
        pipe.send(str(error).splitlines()[0][:80])
        return
    took = time.perf_counter() - wall, time.process_time() - processor
    pipe.send((*took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--data", type=Path, help="a folder of LDBC's schema instead")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--engines", default=",".join(ENGINES))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = arguments.data
        if data is None:
            data = Path(scratch) / "data"
            generate(data, arguments.messages)
        found = files(data)
        rows = sum(Path(file.path).read_bytes().count(b"\n") - 1 for file in found)
        measured: dict[str, list[tuple[float, float, float]]] = {}
        trouble: dict[str, str] = {}
        disk: dict[str, float] = {}
        for _ in range(arguments.repeat):
            for engine in arguments.engines.split(","):
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    context = multiprocessing.get_context("spawn")
                    ours, theirs = context.Pipe()
                    process = context.Process(target=_measure, args=(engine, found, folder, theirs))
                    process.start()
                    answer = ours.recv()
                    process.join()
                    if isinstance(answer, str):
                        trouble[engine] = answer
                    else:
                        measured.setdefault(engine, []).append(answer)
                        disk[engine] = size_mb(Path(folder))
        table = Table(
            f"loading {len(found)} tables of {rows:,} rows into a file: median of {arguments.repeat} fresh processes",
            ["engine", "s", "processor s", "rows/s", "disk MB", "peak MB", "s / duckdb", "processor s / duckdb"],
        )
        base = [statistics.median(column) for column in zip(*measured.get("duckdb", [(1.0, 1.0, 1.0)]), strict=True)]
        for engine, runs in measured.items():
            wall, processor, peak = (statistics.median(column) for column in zip(*runs, strict=True))
            table.add(engine, f"{wall:.2f}", f"{processor:.2f}", f"{rows / wall:,.0f}", f"{disk[engine]:.0f}",
                      f"{peak:.0f}", f"{wall / base[0]:.2f}", f"{processor / base[1]:.2f}")  # fmt: skip
        print(surroundings("duckdb", "ladybug", "pyarrow"))
        print(table)
        for engine, said in trouble.items():
            print(f"{engine}: {said}")


if __name__ == "__main__":
    main()
