"""The benchmarks of one sitting: loading, RDF queries and start-up, printed and written as Markdown.

Run as ``python -m tests.benchmarks.all [--to FILE]``: under eight minutes on two cores.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path

from tests.benchmarks import loading, rdf_queries, start_up
from tests.benchmarks.harness import Table, main, surroundings

PARTS = {
    "loading": (loading.run, ["--repeat", "3"]),
    "start-up": (start_up.run, ["--repeat", "5"]),
    "RDF queries": (rdf_queries.run, ["--repeat", "3", "--limit", "10"]),
}


def run(argv: list[str]) -> list[Table]:
    """Run all parts; return their tables, printed as they come."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--to", type=Path, help="append the tables to this Markdown file")
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    written = [f"## {datetime.date.today().isoformat()}", "", f"{surroundings()}.", ""]
    for name, (part, options) in PARTS.items():
        began = time.perf_counter()
        tables = part(options)
        for table in tables:
            print(table, flush=True)
        written.append(f"`python -m tests.benchmarks.{part.__module__.rpartition('.')[2]} {' '.join(options)}`\n")
        written += [table.markdown() for table in tables]
        print(f"{name}: {time.perf_counter() - began:.0f} s\n", file=sys.stderr)
    print(f"in all {time.perf_counter() - started:.0f} s", file=sys.stderr)
    if arguments.to:
        with arguments.to.open("a") as file:
            file.write("\n".join(written))
    return []


if __name__ == "__main__":
    main(run)
