"""The benchmarks of one sitting: loading, start-up and RDF queries, printed as they come and written as Markdown.

Run as ``python -m tests.benchmarks.all [--to FILE]``: under eight minutes on two cores that nobody else uses.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path

from tests.benchmarks import loading, rdf_queries, start_up
from tests.benchmarks.datasets import FILES
from tests.benchmarks.harness import Table, main, surroundings

PARTS = [
    (start_up, ["--repeat", "5"]),
    *((rdf_queries, ["--data", name, "--repeat", "3", "--limit", "5"]) for name in FILES),
    (loading, ["--repeat", "2", "--peers", "graphdb-warm,oxigraph,duckdb-text,duckdb-ids"]),
]


def run(argv: list[str]) -> list[Table]:
    """Run all parts, printing and writing the tables of each when it is done."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--to", type=Path, help="append the tables to this Markdown file")
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    _write(arguments.to, f"## {datetime.date.today().isoformat()}\n\n{surroundings()}.\n\n")
    for part, options in PARTS:
        began = time.perf_counter()
        tables = part.run(options)
        command = f"python -m tests.benchmarks.{part.__name__.rpartition('.')[2]} {' '.join(options)}"
        for table in tables:
            print(table, flush=True)
        _write(arguments.to, "\n".join([f"`{command}`\n", *(table.markdown() for table in tables), ""]))
        print(f"{command}: {time.perf_counter() - began:.0f} s\n", file=sys.stderr)
    print(f"in all {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return []


def _write(file: Path | None, text: str) -> None:
    if file:
        with file.open("a") as open_file:
            open_file.write(text)


if __name__ == "__main__":
    main(run)
