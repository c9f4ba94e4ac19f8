"""Numbering terms: what it takes to find known ones and to write new ones, by how many there are in the dictionary.

Run as ``python -m tests.benchmarks.terms --there 1,10``.  For each number of terms (resources, and as many literals) and
each size of the database in millions of triples, on disk and warm: half of the terms are known ones from anywhere in
the dictionary, half are new; each time in a transaction of its own that is committed.  Least and median milliseconds of
processor time.  Before, the first small append, which writes what later ones look terms up in, and the size of the file
with and without.  Run it with another checkout's ``PYTHONPATH`` to compare.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import graphdb
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.arrow import ArrowViews
from graphdb.storage.dictionary.terms import Numbering
from tests.benchmarks.bulk import generate

if TYPE_CHECKING:
    import duckdb


def terms_of(connection: duckdb.DuckDBPyConnection, table: str, columns: str, base: int, count: int) -> list[Any]:
    """Some terms of the dictionary, from all over it."""
    [(size,)] = connection.execute(f"SELECT count(*) FROM _graphdb.{table}").fetchall()
    ids = np.unique(np.random.default_rng().integers(0, size, count)) + base if size else np.empty(0, np.int64)
    found = connection.execute(
        f"SELECT {columns} FROM _graphdb.{table} WHERE id IN (SELECT unnest(?::BIGINT[]))", [ids.tolist()]
    )
    return found.fetchall()


def numbered(connection: duckdb.DuckDBPyConnection, count: int, number: int) -> float:
    """Processor time in milliseconds that so many resources and literals take."""
    known = max(count // 2, 1)
    iris = [iri for (iri,) in terms_of(connection, "resource", "iri", 0, known)]
    iris += [f"http://example.org/new/{number}/{count}/{i}" for i in range(count - len(iris))]
    literals = terms_of(connection, "literal", "lexical, datatype, language", LITERAL_BASE, known)
    literals += [(f"new {number} {count} {i}", None, None) for i in range(count - len(literals))]
    columns = [pa.array(column, pa.string()) for column in zip(*literals, strict=True)]
    resources = pa.array(iris, pa.string())
    start = time.process_time()
    connection.begin()
    windows = ArrowViews(connection)
    numbering = Numbering(connection, windows)
    numbering.resources(resources)
    numbering.literals(*columns)
    numbering.store()
    windows.close()
    connection.commit()
    return (time.process_time() - start) * 1000


def main() -> None:
    """Measure and print one table."""
    import duckdb

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--there", default="0,1,10", help="millions of triples")
    parser.add_argument("--counts", default="1,10,100,1000,10000,100000")
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    for there in given.there.split(","):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            generate(folder / "data.nt", max(int(float(there) * 1e6) // 8 * 8, 8))
            with graphdb.connect(folder / "db.duckdb") as db:
                db.load(folder / "data.nt")
            connection = duckdb.connect(folder / "db.duckdb", config={"threads": 2})
            connection.execute("CHECKPOINT")
            size = (folder / "db.duckdb").stat().st_size
            first = numbered(connection, 1, -1)
            connection.execute("CHECKPOINT")
            grown = (folder / "db.duckdb").stat().st_size
            print(f"{there} M: first {first:.0f} ms, file {size / 1e6:.1f} MB, then {grown / 1e6:.1f} MB", flush=True)
            for count in map(int, given.counts.split(",")):
                numbered(connection, count, 0)
                numbered(connection, count, 1)  # where many are looked for, the second time makes what later ones use
                took = [numbered(connection, count, number) for number in range(2, given.repeat + 2)]
                print(f"{there:>6} M {count:>8,} {min(took):>8.1f} {statistics.median(took):>8.1f}", flush=True)
            connection.close()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
