"""Bulk loading: one, ten, fifty million generated triples, from nothing to a database on disk that answers.

Run as ``python -m tests.benchmarks.bulk --millions 1,10 --repeat 1``.  The triples are made by DuckDB: people with a
type, a name, an age, a date, three edges to other people and one to a city, subject after subject, 125 bytes a line.
graphdb gets the memory limit; the peak counts the whole process, interpreter and libraries included.  ``duckdb`` is a
bare import of the lines, split by a regular expression.  With ``--quads``, each hundred people are in a graph of their own,
as N-Quads.

Every engine runs in a fresh process.  The seconds are from the first line of its program to the end of the load: its
imports, making the database and closing it are within, the interpreter's own start is not.  Before the first run graphdb
loads a thousand triples once, so kernels and modules are compiled, as they are after the first use of an installation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

R, S = "http://example.org/resource/", "http://example.org/schema#"
X, TYPE = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def generate(path: Path, triples: int, first: int = 0, others: int | None = None) -> None:
    """Write that many triples (a multiple of 8), of people numbered from ``first`` on; as quads where the name says so.

    They know people of numbers from 0 to below ``others``, as many as they are themselves unless it is said.
    """
    import duckdb

    people = triples // 8

    def pick(names: list[str], seed: int) -> str:
        return f"[{', '.join(repr(name) for name in names)}][(1 + hash(i, {seed}) % {len(names)})::BIGINT]"

    def two(seed: int, least: int, count: int) -> str:
        return f"lpad(({least} + hash(i, {seed}) % {count})::VARCHAR, 2, '0')"

    def person(seed: int) -> str:
        return f"'<{R}person/' || hash(i, {seed}) % {others or people} || '>'"

    names = ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Émile", "Łukasz"]
    parts = [
        (TYPE, f"'<{S}' || {pick(['Person', 'Author', 'Editor', 'Reader'], 1)} || '>'"),
        (
            S + "name",
            f"'\"' || {pick(names, 2)} || ' ' || i * 7919 % {people} || '\"' || {pick(['', '@en', '@de'], 3)}",
        ),
        (S + "age", f"'\"' || hash(i, 4) % 100 || '\"^^<{X}integer>'"),
        (S + "created", f"'\"2024-' || {two(5, 1, 12)} || '-' || {two(6, 1, 28)} || 'T10:00:00Z\"^^<{X}dateTime>'"),
        *((S + label, person(seed)) for label, seed in (("knows", 8), ("knows", 9), ("follows", 10))),
        (S + "livesIn", f"'<{R}city/' || hash(i, 11) % 10000 || '>'"),
    ]
    end = f"' <{R}graph/' || i // 100 || '> .'" if path.suffix == ".nq" else "' .'"
    line = " || '\n' || ".join(f"'<{R}person/' || i || '> <{p}> ' || {o} || {end}" for p, o in parts)
    with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
        connection.execute(
            f"COPY (SELECT {line} FROM (SELECT range AS i FROM range({first}, {first + people}))) TO '{path}' "
            "(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01')"
        )


ENGINES = {
    "graphdb": """
import graphdb
limit = sys.argv[3]
with graphdb.connect(out + "/db.duckdb", memory_limit=limit, spill=out) as db:
    report = db.load(data)
""",
    "oxigraph": """
import pyoxigraph
store = pyoxigraph.Store(out + "/store")
store.bulk_load(path=data, format=pyoxigraph.RdfFormat.from_extension(data.rpartition(".")[2]))
store.flush()
""",
    "rdflib": """
import rdflib
graph = rdflib.Graph()
graph.parse(data, format="nt")
""",
    "duckdb": """
import duckdb
with duckdb.connect(out + "/db.duckdb", config={"memory_limit": sys.argv[3], "temp_directory": out}) as db:
    db.execute("SET preserve_insertion_order = false")
    db.execute("CREATE TABLE triple AS SELECT p[1] AS s, p[2] AS p, p[3] AS o FROM (SELECT regexp_extract_all(line, "
               "'(<[^>]*>|_:[^ ]+|\\".*\\"[^ ]*)', 1) AS p FROM read_csv(?, columns = {'line': 'VARCHAR'}, header = false, "
               "delim = '\\x01', quote = '', escape = '', auto_detect = false))", [data])
""",
}
_CHILD = """
import sys, time, resource, json
data, out = sys.argv[1:3]
begin = time.perf_counter()
{code}
seconds = time.perf_counter() - begin
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


def installed() -> dict[str, str]:
    """The environment in which Python keeps what it has compiled, as it is kept of packages that are installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measure(engine: str, data: Path, limit: str) -> tuple[float, float, float, float]:
    """Seconds, processor seconds, peak megabytes, megabytes on disk."""
    with tempfile.TemporaryDirectory(dir=data.parent) as out:
        ran = subprocess.run(
            [sys.executable, "-c", _CHILD.format(code=ENGINES[engine]), str(data), out, limit],
            capture_output=True, text=True, check=False, env=installed(),
        )  # fmt: skip
        if ran.returncode:
            raise RuntimeError(ran.stderr[-500:])
        seconds, processor, peak = json.loads(ran.stdout.splitlines()[-1])
        disk = sum(file.stat().st_size for file in Path(out).rglob("*") if file.is_file()) / 1e6
    return seconds, processor, peak, disk


def packed(data: Path, pack: str) -> Path:
    """Write the file compressed beside itself, where that is asked for."""
    if not pack:
        return data
    command = ["gzip", "-1", "-k", data] if pack == ".gz" else ["zstd", "-q", data]
    subprocess.run(command, check=True)
    return data.with_name(data.name + pack)


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--millions", default="1,10")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--limit", default="1GB", help="graphdb's and duckdb's memory limit")
    parser.add_argument("--packs", default="", help="'.gz,.zst': compressed as well, for graphdb alone")
    parser.add_argument("--quads", action="store_true", help="N-Quads, for graphdb and oxigraph")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder) / "few.nt", 1000)
        measure("graphdb", Path(folder) / "few.nt", given.limit)
    print(f"{'M':>4} {'engine':>12} {'s':>8} {'cpu s':>8} {'triples/s':>12} {'peak MB':>8} {'bytes/triple':>12} "
          f"{'s / graphdb':>12} {'cpu s / graphdb':>15}")  # fmt: skip
    for millions in map(int, given.millions.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / ("data.nq" if given.quads else "data.nt")
            generate(data, millions * 1_000_000)
            engines = ("graphdb", "oxigraph") if given.quads else given.engines.split(",")
            runs = [(engine, data) for engine in engines if engine != "rdflib" or millions == 1]
            at = 1 + runs.index(("graphdb", data))
            runs[at:at] = [("graphdb", packed(data, pack)) for pack in given.packs.split(",") if pack]
            for _ in range(given.repeat):
                ours = 0.0, 0.0
                for engine, file in runs:
                    seconds, processor, peak, disk = measure(engine, file, given.limit)
                    if (engine, file) == ("graphdb", data):
                        ours = seconds, processor
                    ratios = (
                        f"{own / mine:>{width}.2f}" if mine else f"{'-':>{width}}"
                        for own, mine, width in zip((seconds, processor), ours, (12, 15), strict=True)
                    )
                    name = engine + file.suffix.replace(".nt", "").replace(".nq", "")
                    print(f"{millions:>4} {name:>12} {seconds:>8.2f} {processor:>8.2f} {millions * 1e6 / seconds:>12,.0f} "
                          f"{peak:>8.0f} {disk / millions:>12.1f} {' '.join(ratios)}", flush=True)  # fmt: skip
            shutil.rmtree(folder, ignore_errors=True)
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
