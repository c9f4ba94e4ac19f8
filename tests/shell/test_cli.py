"""The command line: what it prints, where, and with which exit code; as a process, too."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from glob import glob
from pathlib import Path

import numpy as np
import pytest

import graphdb
from graphdb._version import __version__
from graphdb.shell import cli, doctor
from graphdb.storage.persisted import files
from tests.programs import command

ROOT = Path(__file__).resolve().parents[2]

FAMILY = """\
<http://example.org/ada> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Person> .
<http://example.org/bob> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Person> .
<http://example.org/ada> <http://example.org/knows> <http://example.org/bob> .
<http://example.org/ada> <http://example.org/name> "Ada" .
<http://example.org/bob> <http://example.org/name> "Bob" .
<http://example.org/ada> <http://example.org/age> "36"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://example.org/bob> <http://example.org/age> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""


def run(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``graphdb`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "graphdb", *map(str, arguments)],
        input=stdin,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file, loaded by the command itself."""
    folder = tmp_path_factory.mktemp("cli")
    data = folder / "family.nt"
    data.write_text(FAMILY, encoding="utf-8")
    ran = run("load", folder / "family.duckdb", data)
    assert ran.returncode == 0, ran.stderr
    assert "7 triples from 1 file, 7 new" in ran.stdout
    assert ran.stderr == "", "no progress bar where there is no terminal"
    return folder / "family.duckdb"


def test_version_and_help() -> None:
    assert run("--version").stdout == f"graphdb {__version__}\n"
    helped = command("--help")
    assert helped.returncode == 0
    for word in ("load", "query", "sql", "demo", "doctor"):
        assert f"graphdb {word}" in helped.stdout
        assert command(word, "--help").returncode == 0


def test_query_prints_a_table(family: Path) -> None:
    ran = run("query", family, "MATCH (p:Person)-[:knows]->(q) RETURN p.name AS who, q.age AS age")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == " who │ age\n─────┼─────\n Ada │   5\n(1 row)\n"


def test_query_with_parameters(family: Path) -> None:
    text = "MATCH (p:Person) WHERE p.age > $least AND p.name = $name RETURN p.name AS name, p.age AS age"
    ran = command("query", family, text, "--mode", "json", "-p", "least=30", "-p", "name=Ada")
    assert json.loads(ran.stdout) == [{"name": "Ada", "age": 36}], ran.stderr


def test_query_from_standard_input_as_csv(family: Path) -> None:
    text = "MATCH (p:Person) RETURN p.name AS name, p.age AS age ORDER BY age"
    for begun in text, "\ufeff" + text:  # as editors of Windows begin files
        assert command("query", family, "-", "--mode", "csv", stdin=begun).stdout == "name,age\nBob,5\nAda,36\n"


def test_sql(family: Path) -> None:
    assert command("sql", family, "SELECT 6 * 7 AS answer", "--mode", "csv").stdout == "answer\n42\n"


def test_errors_are_said_with_a_caret(family: Path) -> None:
    ran = command("query", family, "MATCH (p:Persn) RETURN p")
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert "Persn" in ran.stderr
    assert "Person" in ran.stderr, "the nearest name is suggested"
    assert "  MATCH (p:Persn) RETURN p\n           ^" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Traceback" in command("query", "-v", family, "MATCH (p:Persn) RETURN p").stderr


def test_malformed_data_stops_the_load_or_is_skipped(tmp_path: Path) -> None:
    data = tmp_path / "bad.nt"
    data.write_text(FAMILY + "<http://example.org/x> nonsense .\n", encoding="utf-8")
    ran = command("load", tmp_path / "bad.duckdb", data)
    assert ran.returncode == 1
    assert "line 8" in ran.stderr
    ran = command("load", tmp_path / "bad.duckdb", data, "--on-error", "skip")
    assert ran.returncode == 0
    assert "7 triples" in ran.stdout
    assert "1 malformed line skipped" in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [("query",), ("query", "x.duckdb"), ("load", "x.duckdb"), ("query", "x", "y", "-p", "nothing"), ("--nonsense",)],
)
def test_arguments_that_make_no_sense(arguments: tuple[str, ...]) -> None:
    ran = command(*arguments)
    assert ran.returncode == 2
    assert "usage:" in ran.stderr


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    ran = command("query", tmp_path / "none.duckdb", "RETURN 1")
    assert ran.returncode == 1
    assert "there is no database" in ran.stderr
    assert not list(tmp_path.iterdir()), "and none is made"


def test_a_file_that_is_not_a_database(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database\n" * 1000, encoding="utf-8")
    ran = command("query", file, "RETURN 1")
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert "internal error" not in ran.stderr


def test_shell_reads_a_pipe(family: Path) -> None:
    script = ".mode csv\nMATCH (p:Person)\nRETURN p.name AS n\nORDER BY n;\nSELECT 1 AS one; SELECT 2 AS two;\n"
    ran = run(family, stdin=script)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "n\nAda\nBob\none\n1\ntwo\n2\n", "")


def test_a_pipe_stops_at_its_first_error(family: Path) -> None:
    ran = run(family, "--mode", "csv", stdin="SELECT 1 AS a;\nSELECT nonsense;\nSELECT 2 AS b;\n")
    assert ran.returncode == 1
    assert ran.stdout == "a\n1\n"
    assert "nonsense" in ran.stderr


def test_output_that_nobody_reads(family: Path) -> None:
    line = f"{sys.executable} -m graphdb sql {family} 'SELECT * FROM range(200000)' --mode csv | head -1"
    ran = subprocess.run(
        line, shell=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "range\n"
    assert ran.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_streams_that_are_closed(family: Path, closed: str) -> None:
    """As a job begins that someone's daemon starts."""
    shell = f'"$0" -m graphdb "$1" {closed}'
    ran = subprocess.run(
        ["sh", "-c", shell, sys.executable, str(family)],
        input="RETURN 6 * 7 AS x;",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ("42" in ran.stdout) == (closed == "2>&-")


def test_doctor() -> None:
    ran = command("doctor")
    assert ran.returncode == 0, ran.stdout
    assert __version__ in ran.stdout
    assert "a query             runs" in ran.stdout
    assert "GPU" in ran.stdout
    assert "extra arrow" in ran.stdout
    assert "✓ derived structures  " in ran.stdout


def test_doctor_says_what_persists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is, how much, and within what bound; or why nothing does."""
    monkeypatch.setenv("GRAPHDB_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "arrays"

    def said() -> tuple[str, bool]:
        finding = doctor._persisted()
        return finding.found, finding.broken

    monkeypatch.delenv("GRAPHDB_PERSISTED", raising=False)
    closed = "persisted when a large file is closed"
    bound = f"at most {4 << 30:,} (GRAPHDB_PERSISTED)"
    assert said() == (f"{closed}: 0 files of 0 bytes in {folder}, {bound}", False)
    files.write(folder, "a", np.arange(1000))
    size = (folder / "a").stat().st_size
    monkeypatch.setenv("GRAPHDB_PERSISTED", "64MiB")
    bound = "at most 67,108,864 (GRAPHDB_PERSISTED)"
    assert said() == (f"{closed}: 1 file of {size:,} bytes in {folder}, {bound}", False)
    monkeypatch.setenv("GRAPHDB_PERSISTED", "0")
    assert said() == (f"not persisted, for GRAPHDB_PERSISTED is 0: 1 file of {size:,} bytes in {folder}", False)
    monkeypatch.setenv("GRAPHDB_PERSISTED", "much")
    found, broken = said()
    assert found.startswith("GRAPHDB_PERSISTED 'much' is no size")
    assert broken
    monkeypatch.delenv("GRAPHDB_PERSISTED")
    folder.chmod(0o755)
    assert said() == (f"not persisted: {folder} is not used, others may use it: chmod 700 it", False)


def test_demo_prints_statements_before_answers(tmp_path: Path) -> None:
    ran = command("demo", tmp_path / "world.duckdb")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.index("graphdb> LOAD") < ran.stdout.index("graphdb> MATCH") < ran.stdout.index("Germany")
    # The five countries around Switzerland, whatever their order; and a table that stays in the file.
    for neighbour in ("Germany", "France", "Italy", "Austria", "Liechtenstein"):
        assert neighbour in ran.stdout
    kept = command(
        "sql", tmp_path / "world.duckdb", "SELECT count(*) > 0 AS kept FROM currency_borders", "--mode", "csv"
    )
    assert kept.stdout == "kept\ntrue\n"


def test_start_up_time_is_printed(family: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = {}
    for name, program in {
        "python": [sys.executable, "-c", ""],
        "import graphdb": [sys.executable, "-c", "import graphdb"],
        "shell on a file": [sys.executable, "-m", "graphdb", str(family)],
    }.items():
        start = time.perf_counter()
        ran = subprocess.run(
            program,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
        times[name] = time.perf_counter() - start
        assert ran.returncode == 0
    with capsys.disabled():
        print("\nstart-up: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items()))


def test_tables_export_and_reading_only(family: Path, tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text("owner,pet\nada,rex\nbob,tom\n")
    columns = ["--column", "owner=:START_ID", "--column", "pet=:END_ID"]
    ran = command("load", tmp_path / "db.duckdb", tmp_path / "pets.csv", *columns, "--type", "owns")
    assert "2 rows as 2 triples from 1 file, 2 new" in ran.stdout, ran.stderr
    ran = command("load", tmp_path / "db.duckdb", "-", stdin=FAMILY)
    assert "7 new" in ran.stdout, ran.stderr
    ran = command("export", tmp_path / "db.duckdb", tmp_path / "out.nt.gz", "--read-only", "--graph", "default")
    assert "9 statements to" in ran.stdout, ran.stderr
    assert "9 new" in command("load", tmp_path / "again.duckdb", tmp_path / "out.nt.gz").stdout
    ran = command("query", tmp_path / "again.duckdb", "MATCH ()-[:owns]->(p) RETURN count(*) AS n", "--mode", "csv")
    assert ran.stdout.split() == ["n", "2"]
    ran = command("load", tmp_path / "again.duckdb", tmp_path / "out.nt.gz", "--read-only")
    assert (ran.returncode, "open read-only" in ran.stderr) == (1, True)
    assert command("load", tmp_path / "x.duckdb", tmp_path / "pets.csv", "--column", "owner").returncode == 2


def test_options_may_stand_among_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "family.txt"
    data.write_text(FAMILY, encoding="utf-8")
    assert cli.run(["load", str(tmp_path / "a.duckdb"), "--format", "nt", str(data), "--threads", "1", str(data)]) == 0
    assert "14 triples from 2 files, 7 new" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.duckdb", "-c", "RETURN 1"], "hint: to run a statement: graphdb query FILE TEXT"),
        (["querry", "a.duckdb", "RETURN 1"], "hint: did you mean graphdb query?"),
        (["lod", "a.duckdb", "a.nt"], "hint: did you mean graphdb load?"),
        (["import", "a.duckdb", "a.nt"], "hint: did you mean graphdb load?"),
        (["a.duckdb", "MATCH (n) RETURN n"], "hint: to run a statement: graphdb query FILE TEXT"),
        (["a.duckdb", "-f", "a.txt"], "hint: to run the statements of a file: graphdb FILE < statements.txt"),
        (["zzzzzz", "a.duckdb"], "hint: the commands are load, export"),
        (["query", "a.duckdb", "RETURN 1", "RETURN 2"], "unrecognized arguments: RETURN 2"),
        (["ui", "--port", "99999"], "'99999' is no port, a number from 0 to 65535"),
        (["ui", "--port", "-1"], "'-1' is no port"),
    ],
)
def test_what_is_typed_amiss_is_named(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.run(arguments)
    assert says in capsys.readouterr().err


def test_a_command_that_is_misspelt_makes_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``graphdb doctr`` opened a shell on a new file of that name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("RETURN 7 AS x;\n"))
    for word, meant in (("doctr", "doctor"), ("dump", "export"), ("lod", "load")):
        with pytest.raises(SystemExit, match="2"):
            cli.run([word])
        said = capsys.readouterr().err
        assert f"'{word}' is no command, and no database" in said
        assert f"did you mean graphdb {meant}? A new database of that name: graphdb ./{word}" in said
    assert cli.run(["help"]) == 0
    assert "graphdb load FILE DATA" in capsys.readouterr().out
    assert cli.run(["version"]) == 0
    assert capsys.readouterr().out == f"graphdb {graphdb.__version__}\n"
    assert list(tmp_path.iterdir()) == []
    assert cli.run(["./doctr", "--mode", "csv"]) == 0
    assert cli.run(["people", "--mode", "csv"]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"doctr", "people"}
    assert cli.run(["doctr", "--mode", "csv"]) == 0  # it is a database now


@pytest.mark.parametrize("options", [["--safe"], ["--mode", "csv"], ["-v", "--threads=1", "--safe"], []])
def test_options_may_stand_before_the_command(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "a.duckdb")
    with graphdb.connect(file) as db:
        db.query("CREATE (:P {x: 7})")
    text = f"COPY (SELECT 1) TO '{tmp_path / 'x.csv'}'"
    assert cli.run([*options, "query", file, text]) == ("--safe" in options)
    assert (tmp_path / "x.csv").exists() != ("--safe" in options)
    capsys.readouterr()
    assert cli.run([*options, "query", file, "MATCH (p:P) RETURN p.x AS x"]) == 0
    assert ("x\n7" in capsys.readouterr().out) == ("csv" in options)


def test_the_commands_of_the_page_run_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one process, but for what reads a pipe; what is served, measured or compiled has tests of its own."""
    yaml = pytest.importorskip("yaml")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    mapping = (ROOT / "docs" / "loading.md").read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    Path("graph.json").write_text(json.dumps(yaml.safe_load(mapping)))
    Path("person.csv").write_text("id|name|joined\n07|Ada|1000\n8|Bo|\n")
    Path("people.csv").write_text("person:ID(Person),name\n7,Ann\n9,Cy\n")
    Path("knows.csv").write_text("from:START_ID(Person)|to:END_ID(Person)|since\n7|8|2001\n8|7|2002\n")
    Path("data").mkdir()
    for i in range(2):
        with gzip.open(f"data/{i}.ttl.gz", "wb") as file:
            file.write(f"<e:{i}> a <e:Town> .".encode())
    with gzip.open("big.nt.gz", "wb") as file:
        file.write(b"<e:7> <e:near> <e:8> .\n")
    with graphdb.connect("world.duckdb", threads=1) as db:
        db.query("CREATE TABLE city AS SELECT 5 AS id, 'Rome' AS name")
    said = {}
    for line in re.findall(r"^    (.*?)(?:\s+#.*)?$", page, re.M):
        if line.startswith("zcat"):
            load = shlex.join([sys.executable, "-m", "graphdb"])
            shell = ["bash", "-o", "pipefail", "-c", line.replace("graphdb", load, 1)]
            ran = subprocess.run(shell, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, capture_output=True)
            assert ran.returncode == 0, ran.stderr
        elif line.split()[1] in ("load", "export", "query", "sql"):
            if "knows.csv" in line:  # which the mapping reads with other delimiters
                line = line.replace("knows.csv", "friends.csv")
                Path("friends.csv").write_text(":START_ID(Person),:END_ID(Person),:TYPE\n7,9,FRIEND\n")
            words = [
                found
                for word in shlex.split(line)[1:]
                for found in (sorted(glob(word)) if "*" in word and "/" in word else [word])
            ]
            assert cli.run(words) == 0, capsys.readouterr().err
            said[line] = capsys.readouterr().out
    assert len(said) == 6
    with graphdb.connect("world.duckdb", threads=1) as db:
        assert db.query("MATCH (t:Town) RETURN count(*)").scalar() == 2
        [cities] = [out for line, out in said.items() if "count(*)" in line and "MATCH" in line]
        assert cities.split()[2] == "1"
        asked = "MATCH (a:Person)-[k:KNOWS]->(b) RETURN a.name, a.joined IS NULL, k.since, b.name ORDER BY a.name"
        assert [row[1:] for row in db.query(asked)] == [(False, 2001, "Bo"), (True, 2002, ["Ada", "Ann"])]
        assert db.query("MATCH ()-[:<e:near>]->() RETURN count(*)").scalar() == 1
    with graphdb.connect(threads=1) as copy:
        copy.load("world.ttl.gz")
        assert copy.query("MATCH (:Place {name: 'Rome'}) RETURN count(*)").scalar() == 1
