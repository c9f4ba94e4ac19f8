"""The workbench's server: who may ask it, and what it answers."""

from __future__ import annotations

import http.client
import json
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import graphdb
from graphdb.results.plans import tree
from graphdb.workbench.server import _ASSETS, Workbench


class Client:
    """Asks a workbench as its page does."""

    def __init__(self, url: str) -> None:
        self.port, self.token = urlsplit(url).port, urlsplit(url).fragment

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
            answered = connection.getresponse()
            return answered.status, answered.read(), answered.headers
        finally:
            connection.close()

    def ask(self, action: str, **given: Any) -> Any:
        body = json.dumps(given).encode()
        status, answer, _ = self.request("POST", f"/api/{action}", body, Authorization=f"Bearer {self.token}")
        assert status == 200, answer
        return json.loads(answer)


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (a:Person {name: 'Ada', born: 1815})-[:KNOWS {since: 1833}]->(:Person {name: 'Mary'})")
        yield database


@pytest.fixture
def client(db: graphdb.Database) -> Iterator[Client]:
    with Workbench(db, 0) as workbench:
        yield Client(workbench.url)


def test_what_no_text_can_hold(client: Client) -> None:
    """A statement with half a character is in the history, which the page reads when it opens."""
    assert "lone surrogate" in client.ask("run", text="RETURN '\ud800' AS x")["error"]["message"]
    assert client.ask("about")["history"][0] == "RETURN '\ud800' AS x"
    nested = b"[" * 100_000
    status, answer, _ = client.request("POST", "/api/run", nested, Authorization=f"Bearer {client.token}")
    assert (status, json.loads(answer)) == (400, {"error": {"message": "the request is no JSON"}})


def test_statements_and_their_answers(client: Client) -> None:
    found = client.ask(
        "run",
        text="MATCH (a)-[e:KNOWS]->(b) RETURN a, e, b.name AS name, [1, null] AS l, 2.5 AS f, 9007199254740993 AS big, date('2020-01-01') AS d",
    )
    assert found["columns"] == ["a", "e", "name", "l", "f", "big", "d"]
    assert found["rows"] == [
        ["(Ada :Person)", '[:KNOWS {"since": 1833}]', "Mary", "[1, null]", 2.5, "9007199254740993", "2020-01-01"]
    ]
    assert [node["caption"] for node in found["graph"]["nodes"]] == ["Ada", "Mary"]
    assert [link["type"] for link in found["graph"]["links"]] == ["KNOWS"]
    assert client.ask("run", text="SELECT 1 AS x")["graph"] is None
    assert (
        client.ask("run", text="CREATE TABLE t AS MATCH (a:Person) RETURN a.name AS name")["message"]
        == "table t: 2 rows"
    )
    assert client.ask("run", text="MATCH (a:Persn) RETURN a")["warnings"]
    rows = client.ask("run", text="UNWIND range(1, 3000) AS i RETURN i")
    assert (len(rows["rows"]), rows["count"]) == (1000, 3000)
    assert client.ask("run", text="RETURN 0.0 / 0.0 AS nan")["rows"] == [["nan"]]


def test_errors_have_their_place(client: Client) -> None:
    error = client.ask("run", text="MATCH (a:Person) RETRN a")["error"]
    assert (error["line"], error["column"]) == (1, 18)
    assert "^" in error["text"]
    [checked] = client.ask("check", text="MATCH (a:Person)\nWHERE a.name = RETURN a")["errors"]
    assert checked["line"] == 2
    assert client.ask("check", text="MATCH (a:Person {name: $name}) RETURN a")["errors"] == []
    assert client.ask("check", text="  ")["errors"] == []
    [unknown] = client.ask("check", text="MATCH (a) RETURN b")["errors"]
    assert unknown["column"] == 18
    assert "no such" not in client.ask("run", text="RETURN 1 AS x")


def test_completion_knows_the_names(client: Client) -> None:
    client.ask("about")
    found = client.ask("complete", text="MATCH (a:Pe")["found"]
    assert found == [{"text": "Person", "length": 2, "kind": "label"}]
    assert "KNOWS" in [each["text"] for each in client.ask("complete", text="MATCH (a)-[:K")["found"]]


def test_what_is_there(client: Client) -> None:
    client.ask("run", text="RETURN 1 AS x")
    about = client.ask("about")
    assert about["labels"] == [["Person", 2]]
    assert about["types"] == [["KNOWS", 1]]
    assert ["since", "edges", 1, ["INTEGER"]] in about["keys"]
    assert about["history"] == ["RETURN 1 AS x"]
    assert {node["id"] for node in client.ask("schema")["graph"]["nodes"]} == {"Person"}
    iri = client.ask("run", text="MATCH (a {name: 'Ada'}) RETURN a")["graph"]["nodes"][0]["id"]
    assert len(client.ask("expand", iri=iri)["graph"]["nodes"]) == 2


def test_plans_are_trees(client: Client, db: graphdb.Database) -> None:
    db.query("MATCH (b {name: 'Mary'}) CREATE (b)-[:KNOWS]->(:Person {name: 'Eve'})")
    query = "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN a.name, c.name"
    for text in (query, f"EXPLAIN {query}", f"profile {query}"):
        explained = client.ask("plan", text=text)["plan"]
        bound = [step["facts"]["binds"] for step in explained[0]["children"] if "binds" in step["facts"]]
        assert sorted(bound) == ["a", "b", "c"]
        profiled = client.ask("plan", text=text, profile=True)["plan"]
        steps = [step["facts"] for step in profiled[0]["children"] if "binds" in step["facts"]]
        assert all(float(step["~ms"]) >= 0 for step in steps)
        assert steps[-1]["rows"] == "1"
    assert client.ask("run", text=f"EXPLAIN {query}")["plan"]


@pytest.mark.parametrize("seed", range(3))
def test_every_line_of_a_plan_is_in_its_tree(db: graphdb.Database, seed: int) -> None:
    draw = random.Random(seed)
    hops = "".join(f"-[:KNOWS]->(x{i})" for i in range(draw.randint(1, 4)))
    for text in (
        f"MATCH (a){hops} RETURN a",
        f"MATCH (a:Person) WITH a LIMIT 1 OPTIONAL MATCH (a){hops} RETURN a, x0.name",
    ):
        lines = [line for (line,) in db.query(f"PROFILE {text}")]
        words = set(
            re.findall(r"[\w.,:()-]+", " ".join(line for line in lines if not line.strip().startswith("step ")))
        )
        told = json.dumps(tree(lines), ensure_ascii=False).replace('\\"', '"')
        assert {word for word in words if word not in told} == set()


def test_files_are_loaded(client: Client) -> None:
    data = b'<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:q> "x" .\n'
    headers = {"Authorization": f"Bearer {client.token}"}
    status, answer, _ = client.request("POST", "/api/load?name=some.nt", data, **headers)
    assert (status, json.loads(answer)["read"]) == (200, "2 triples")
    table = b"id:ID,name\n1,Eve\n2,Bo\n"
    _, answer, _ = client.request("POST", "/api/load?name=..%2F..%2Fpeople.csv&label=Guest", table, **headers)
    assert json.loads(answer)["read"].startswith("2 rows as ")
    assert client.ask("run", text="MATCH (g:Guest) RETURN g.name ORDER BY g.name")["rows"] == [["Bo"], ["Eve"]]
    _, answer, _ = client.request("POST", "/api/load?name=bad.nt", b"<urn:a> nonsense", **headers)
    assert "bad.nt" in json.loads(answer)["error"]["text"]
    assert client.ask("progress") == {}


def test_a_file_that_breaks_off_is_not_loaded(client: Client, db: graphdb.Database) -> None:
    """The page is closed while it sends: what came is no file."""
    before = db.query("MATCH (n) RETURN count(*)").scalar()
    sent = b"<urn:a> <urn:p> <urn:b> .\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as connection:
        head = f"POST /api/load?name=some.nt HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nContent-Length: 1000\r\n"
        connection.sendall(f"{head}Authorization: Bearer {client.token}\r\n\r\n".encode() + sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert b"breaks off" in answer
    assert db.query("MATCH (n) RETURN count(*)").scalar() == before


@pytest.mark.parametrize("name", ["..", "a" * 300 + ".nt", "a%00.nt"])
def test_a_file_whose_name_no_file_can_have_is_not_loaded(client: Client, name: str) -> None:
    headers = {"Authorization": f"Bearer {client.token}"}
    status, answer, _ = client.request("POST", f"/api/load?name={name}", b"<urn:a> <urn:p> <urn:b> .\n", **headers)
    assert status == 200
    assert "cannot be stored" in json.loads(answer)["error"]["message"]
    assert client.ask("progress") == {}


def test_files_of_one_name_are_loaded_at_a_time(client: Client, db: graphdb.Database) -> None:
    headers = {"Authorization": f"Bearer {client.token}"}
    bodies = [b"".join(b"<urn:%d:%d> <urn:p> <urn:o> .\n" % (k, i) for i in range(20_000)) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda body: client.request("POST", "/api/load?name=a.nt", body, **headers)[1], bodies))
    assert [json.loads(answer).get("new") for answer in answers] == [20_000] * 4


@pytest.mark.parametrize("length", ["-1", "x", ""])
def test_requests_of_no_length(client: Client, length: str) -> None:
    headers = {"Authorization": f"Bearer {client.token}", "Content_Length": length}
    for path in ("/api/load?name=a.nt", "/api/about"):
        assert client.request("POST", path, None, **headers)[0] == 411


def test_who_may_ask(client: Client) -> None:
    body = json.dumps({"text": "RETURN 1"}).encode()
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"token={client.token}"}):
        status, answer, _ = client.request("POST", "/api/run", body, **headers)
        assert status == 403
        assert b"token" in answer
    right = {"Authorization": f"Bearer {client.token}"}
    for host in ("example.org", "example.org:80", "127.0.0.1.example.org:7575", ""):
        assert client.request("POST", "/api/run", body, Host=host, **right)[0] == 403
        assert client.request("GET", "/", Host=host)[0] == 403
    assert client.request("POST", "/api/nothing", body, **right)[0] == 404
    assert client.request("POST", "/api/run", b"[1]", **right)[0] == 400
    assert client.request("POST", "/api/run", b"{", **right)[0] == 400
    assert client.request("GET", "/../session.py")[0] == 404
    assert client.request("POST", "/api/run", body, Host=f"localhost:{client.port}", **right)[0] == 200


def test_it_listens_on_this_machine_alone(db: graphdb.Database) -> None:
    with Workbench(db, 0) as one, Workbench(db, 0) as two:
        assert one._server.server_address[0] == "127.0.0.1"
        assert one.token != two.token
        assert len(one.token) >= 32


def test_a_port_that_is_taken_is_named(db: graphdb.Database) -> None:
    with Workbench(db, 0) as workbench:
        port = urlsplit(workbench.url).port
        with pytest.raises(graphdb.ExecutionError, match=f"cannot listen on port {port}: Address already in use"):
            Workbench(db, port)


def test_the_page_and_all_that_it_names_is_served(client: Client) -> None:
    _, page, headers = client.request("GET", "/")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page.decode())
    assert set(named) == set(_ASSETS) - {"/"}
    for path in named:
        status, body, _ = client.request("GET", path)
        assert (status, bool(body)) == (200, True), path
    assert client.token not in page.decode()


def test_a_statement_is_stopped(client: Client, db: graphdb.Database) -> None:
    found: list[Any] = []
    text = "UNWIND range(1, 100000) AS i UNWIND range(1, 100000) AS j WITH i, j WHERE i * j = 9999999967 RETURN count(*) AS n"
    thread = threading.Thread(target=lambda: found.append(client.ask("run", text=text)))
    thread.start()
    end = time.monotonic() + 60
    while thread.is_alive() and time.monotonic() < end:
        time.sleep(0.3)
        assert client.ask("check", text="RETURN 1")["errors"] == []  # it does not wait
        client.ask("stop")
    thread.join(10)
    assert "error" in found[0]
    assert client.ask("run", text="RETURN 1 AS x")["rows"] == [[1]]


def test_history_is_remembered(db: graphdb.Database, tmp_path: Path) -> None:
    for text in ("RETURN 1 AS x", "RETURN 2 AS x", "RETURN 1 AS x"):
        with Workbench(db, 0, tmp_path / "history.json") as workbench:
            Client(workbench.url).ask("run", text=text)
    with Workbench(db, 0, tmp_path / "history.json") as workbench:
        assert Client(workbench.url).ask("about")["history"] == ["RETURN 1 AS x", "RETURN 2 AS x"]


@pytest.mark.parametrize("content", [b"no JSON", b"{}", b"\xff"])
def test_a_history_that_is_none_is_begun_anew(db: graphdb.Database, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "history.json"
    file.write_bytes(content)
    with Workbench(db, 0, file) as workbench:
        client = Client(workbench.url)
        assert client.ask("about")["history"] == []
        client.ask("run", text="RETURN 1")
    assert json.loads(file.read_text()) == ["RETURN 1"]


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphdb", "ui", str(tmp_path / "g.duckdb"), "--no-browser", "--port", "0"]
    environment = {"XDG_STATE_HOME": str(tmp_path), "PATH": "", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert running.stdout is not None
        client = Client(running.stdout.readline().strip())
        assert client.ask("run", text="CREATE (:A {k: 1})")["message"]
        assert client.ask("about")["path"] == str(tmp_path / "g.duckdb")
    finally:
        running.send_signal(2)
        _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (0, "")
    with graphdb.connect(tmp_path / "g.duckdb") as db:
        assert db.query("MATCH (a:A) RETURN a.k").scalar() == 1
