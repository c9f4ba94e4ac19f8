"""SQLAlchemy's own suite for dialects, run with graphdb's and with DuckDB's: which tests only one of them passes.

python -m tests.dbapi.compliance
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

_CONFIG = """
[sqla_testing]
requirement_cls=duckdb_sqlalchemy.requirements:Requirements
profile_file=profiles.txt
"""

_CONFTEST = """
import pytest
from sqlalchemy.dialects import registry
for name in ("graphdb", "graphdb.graphdb"):
    registry.register(name, "graphdb.dbapi.dialect", "GraphDBDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
from sqlalchemy.testing.plugin.pytestplugin import *
from sqlalchemy.testing import provision
import duckdb_sqlalchemy.provision
for found in vars(provision).values():  # how tests make what only one database needs
    if isinstance(found, provision.register) and "duckdb" in found.fns:
        found.fns["graphdb"] = found.fns["duckdb"]
"""


def failed(folder: pathlib.Path, scheme: str) -> set[str]:
    """Run the suite with a dialect, print what it counts, and return what failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
    options = ["--maxfail", "10000", "--dburi", f"{scheme}:///{folder / scheme}.duckdb"]
    ended = subprocess.run(
        [*command, *options, "test_suite.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    told = ended.stdout
    if " passed" not in told:
        raise SystemExit(told + ended.stderr)
    print(scheme, *re.findall(r"^.* passed.*$", told, re.M))
    return {re.sub(r"_duckdb\+\w+", "", name) for name in re.findall(r"^(?:FAILED|ERROR) \S+::(\S+)", told, re.M)}


def main() -> None:
    """Run both, and print where they differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "conftest.py").write_text(_CONFTEST)
        (folder / "test_suite.py").write_text("from sqlalchemy.testing.suite import *\n")
        (folder / "setup.cfg").write_text(_CONFIG)
        of_duckdb, ours = (failed(folder, scheme) for scheme in ("duckdb", "graphdb"))
    for title, names in (("only graphdb fails", ours - of_duckdb), ("only DuckDB's fails", of_duckdb - ours)):
        print(f"{title}: {len(names)}", *sorted(names), sep="\n  ")


if __name__ == "__main__":
    main()
