"""A notebook as its users have one: a real kernel, whose cells run one after the other."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.stops import soon

manager = pytest.importorskip("jupyter_client.manager")
pytest.importorskip("ipykernel")

pytestmark = [  # of the client's event loop, which is closed where garbage is collected
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Cell:
    """What a cell printed, showed and raised."""

    printed: str = ""
    shown: list[dict[str, str]] = field(default_factory=list)
    error: tuple[str, str] | None = None
    traceback: str = ""
    comms: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """What it sent to the front end's widgets: the kind of each message, and its content."""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))}
    found = manager.start_new_kernel(kernel_name="python3", env=environment, extra_arguments=["--log-level=ERROR"])
    yield found
    found[1].stop_channels()
    found[0].shutdown_kernel(now=True)
    gc.collect()


@pytest.fixture(scope="module")
def run(kernel: Any) -> Callable[..., Cell]:
    def cell(code: str, printing: Callable[[], object] = lambda: None) -> Cell:
        """Run a cell, and ``printing`` whenever it prints something."""
        made = Cell()

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            match message["header"]["msg_type"]:
                case "stream":
                    made.printed += content["text"]
                    printing()
                case "execute_result" | "display_data":
                    made.shown.append(content["data"])
                case "comm_open" | "comm_msg" as kind:
                    made.comms.append((kind, content))
                case "error":
                    made.error = content["ename"], content["evalue"]
                    made.traceback = "\n".join(content["traceback"])

        kernel[1].execute_interactive(code, output_hook=hear, timeout=60)
        return made

    assert cell("import graphdb\ndb = graphdb.connect(threads=1)").error is None
    return cell


def test_rows_are_a_table(run: Callable[[str], Cell]) -> None:
    assert run('made = db.query(\'CREATE (:Person {name: "Ada"})-[:knows]->(:Person {name: "Bob"})\')').error is None
    shown = run("db.query('MATCH (a)-[:knows]->(b) RETURN a.name, b.name AS friend')").shown[0]
    assert "<table" in shown["text/html"]
    assert "Ada" in shown["text/html"]
    assert "friend" in shown["text/plain"]
    assert run("print(db.sql('SELECT 41 + 1 AS n').scalar())").printed == "42\n"


def test_tables_are_loaded(run: Callable[[str], Cell], tmp_path: Path) -> None:
    (tmp_path / "person.csv").write_text("id:ID,age:int\n1,30\n2,40\n")
    assert run(f"done = db.load({str(tmp_path / 'person.csv')!r}, label='Loaded')").error is None
    assert run("print(db.query('MATCH (p:Loaded) RETURN sum(p.age)').scalar())").printed == "70\n"


def test_a_wrong_call_shows_what_is_wrong(run: Callable[[str], Cell]) -> None:
    cell = run("db.query('MATCH (a) RETRUN a')")
    assert cell.error is not None
    assert cell.error[0] == "ParseError"
    assert cell.traceback.startswith("ParseError: ")
    assert "^" in cell.traceback
    assert "database.py" not in cell.traceback


@pytest.mark.parametrize(
    "call",
    [
        "db.sql('SELECT count(*) FROM range(100000000000) r WHERE r.range % 7 = 3')",
        "db.query('UNWIND range(1, 9999) AS x UNWIND range(1, 9999) AS y UNWIND range(1, 9999) AS z WITH x * y * z AS p"
        " WHERE p % 7 = 3 RETURN count(*)')",
    ],
)
def test_an_interrupt_stops_what_runs(run: Callable[..., Cell], kernel: Any, call: str) -> None:
    def stop() -> float:
        asked: list[float] = []

        def interrupt() -> None:  # another one would interrupt what shows the first
            asked.append(time.monotonic())
            kernel[0].interrupt_kernel()

        timer = threading.Timer(0.5, interrupt)
        cell = run(f"print('begun', flush=True); {call}", lambda: timer.ident or timer.start())
        timer.join()
        assert cell.printed == "begun\n"
        assert cell.error is not None
        assert cell.error[0] == "KeyboardInterrupt"
        return time.monotonic() - asked[0]

    soon(stop, 5)  # the kernel's own way included
    assert run("print(db.query('MATCH ()-[:knows]->() RETURN count(*)').scalar())").printed == "1\n"


def test_cypher_in_cells(run: Callable[[str], Cell]) -> None:
    assert run("%load_ext graphdb").error is None
    assert run("magic = graphdb.connect(threads=1); name = 'Eve'").error is None
    made = run(
        "%%cypher -d magic\nCREATE (:Magician {name: $name})-[:TEACHES {spell: 'x'}]->(:Magician {name: 'Bo'});\nMATCH (m:Magician) RETURN m.name AS name ORDER BY name"
    )
    assert "Eve" in made.shown[0]["text/html"]
    assert run("%cypher -d magic -o rows MATCH (m)-[t:TEACHES]->(n) RETURN m, t, n").shown == []
    assert run("print(len(rows))").printed == "1\n"
    picture = run("%cypher -d magic -g MATCH (m)-[t:TEACHES]->(n) RETURN m, t, n").shown[0]["text/html"]
    assert picture.startswith("<iframe")
    assert "TEACHES" in picture
    assert run("rows.graph()").shown[0]["text/html"].startswith("<iframe")
    failed = run("%cypher -d magic RETURN $nobody")
    assert failed.error is not None
    assert "no variable has the value of $nobody" in failed.error[1]
    assert "is no database" in run("%cypher -d name RETURN 1").error[1]  # type: ignore[index]
    for call in "%cypher", "%cypher --help", "%%cypher -d magic\n-- nothing":
        assert "there is no statement\nhint: %cypher [-d DATABASE]" in run(call).error[1]  # type: ignore[index]
    assert "the option -z 1 cannot be read\nhint: %cypher [-d" in run("%%cypher -z 1\nRETURN 1").error[1]  # type: ignore[index]
    assert "_:" in run("%%cypher -d magic\nSELECT m FROM rows").shown[0]["text/html"]
    broken = run("%cypher -d magic MATCH (a RETURN a")
    assert "^" in broken.traceback
    assert "magics.py" not in broken.traceback
    assert "<table" in run("magic.schema()").shown[0]["text/html"]
    assert "<iframe" in run("magic.schema().graph()").shown[0]["text/html"]


def asked(kernel: Any, comm: str, content: dict[str, Any]) -> dict[str, Any]:
    """Send what a page's widget sends to the kernel, and return what that sends back."""
    client = kernel[1]
    message = client.session.msg("comm_msg", {"comm_id": comm, "data": {"method": "custom", "content": content}})
    client.shell_channel.send(message)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        heard = client.get_iopub_msg(timeout=30)
        data = heard["content"].get("data", {})
        if heard["header"]["msg_type"] == "comm_msg" and data.get("method") == "custom":
            return data["content"]  # type: ignore[no-any-return]
    raise AssertionError("no answer")


def test_a_picture_asks_its_kernel(kernel: Any, run: Callable[[str], Cell]) -> None:
    pytest.importorskip("anywidget")
    run("from graphdb.pictures import bridge; bridge._bridge.cache_clear()")  # other tests have shown pictures
    run("own = graphdb.connect(threads=1)")
    run("own.query(\"CREATE (:P {name: 'a'})-[:R]->(:P {name: 'b'})-[:R]->(:P {name: 'c'})\")")
    first = run("own.query(\"MATCH (x {name: 'a'}) RETURN x\").graph()")
    assert first.error is None, first.traceback
    opened = [content for kind, content in first.comms if kind == "comm_open" and "_esm" in content["data"]["state"]]
    assert [content["target_name"] for content in opened] == ["jupyter.widget"]
    second = run("own.query(\"MATCH (x {name: 'b'}) RETURN x\").graph()")
    assert not [kind for kind, _ in second.comms if kind == "comm_open"]  # one for all pictures
    ids = [re.findall('data-graphdb="([0-9a-f]{32})"', cell.shown[0]["text/html"])[0] for cell in (first, second)]
    assert second.comms[-1][1]["data"]["state"]["pictures"] == ids
    comm = opened[0]["comm_id"]
    iri = run("print(own.query(\"MATCH (x {name: 'b'}) RETURN iri(x)\").scalar())").printed.strip()
    answer = asked(kernel, comm, {"picture": ids[0], "number": 4, "expand": iri})
    assert (answer["picture"], answer["number"]) == (ids[0], 4)
    assert sorted(node["caption"] for node in answer["graph"]["nodes"]) == ["a", "b", "c"]
    assert [link["type"] for link in answer["graph"]["links"]] == ["R", "R"]
    run("own.close()")
    answer = asked(kernel, comm, {"picture": ids[1], "number": 5, "expand": iri})
    assert "closed" in answer["error"]
    assert run("1 + 1").shown[0]["text/plain"] == "2"


def test_a_kernel_without_anywidget_shows_pictures_that_ask_nobody(run: Callable[[str], Cell]) -> None:
    run("import sys; known = sys.modules.get('anywidget'); sys.modules['anywidget'] = None")
    run("from graphdb.pictures import bridge; bridge._bridge.cache_clear()")
    cell = run("db.query('CREATE (a:Alone) RETURN a').graph()")
    run("sys.modules.pop('anywidget'); sys.modules.update({'anywidget': known} if known else {})")
    assert cell.error is None, cell.traceback
    assert cell.comms == []
    assert "data-graphdb" not in cell.shown[0]["text/html"]
    run("db.query('MATCH (a:Alone) DELETE a')")


def test_the_shipped_notebook_shows_what_it_says(run: Callable[[str], Cell]) -> None:
    """Its twelve tasks, cell by cell: what each printed or showed as text is what the file has."""
    for package in ("networkx", "pandas", "polars"):
        pytest.importorskip(package)
    book = json.loads((ROOT / "examples" / "analyst.ipynb").read_text(encoding="utf-8"))
    titles = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "markdown"]
    assert [title.split()[1] for title in titles] == [f"{number}." for number in range(1, 13)]
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            made = run("".join(cell["source"]).replace("%load_ext", "%reload_ext"))  # other tests loaded it
            assert made.error is None, made.traceback
            shown = ["".join(output.get("text") or output["data"]["text/plain"]) for output in cell["outputs"]]
            assert [*filter(None, [made.printed]), *(data["text/plain"] for data in made.shown)] == shown
    run("db.close(); db = graphdb.connect(threads=1)")


OPENS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "graphdb")
assert shell.run_line_magic("cypher", "RETURN 1 + 1 AS two").scalar() == 2
assert shell.user_ns["db"].query("RETURN 1").scalar() == 1
assert shell.run_cell_magic("cypher", "", "MATCH (n)\\nRETURN count(n) AS n").scalar() == 0
"""


def test_cypher_without_a_database_opens_one(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", OPENS], env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "db = graphdb.connect()" in ran.stdout
