"""Tasks on workers that have a CUDA device, emulated."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import graphdb
from graphdb.execute import devices as naming
from tests import emulator
from tests.gpu.executors import EMULATED
from tests.gpu.test_several_devices import machine_of

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'graphdb-duckdb[dask]'")

from graphdb.cluster import executor as clusters  # noqa: E402
from graphdb.cluster import tasks  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), EMULATED]

KNOWS = "MATCH (a)-[:knows]->(b)-[:knows]->(c), (a)-[:knows]->(c)"
SQUARE = "MATCH DIFFERENT NODES (a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(d)-[:knows]-(a)"


class Inline:
    """A cluster whose tasks run when they are submitted, here: an emulated device is no other process's."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def submit(self, task: Any, *given: Any, **_: Any) -> Any:
        self.ran.append(task.__name__)
        state = SimpleNamespace(tasks={"one": SimpleNamespace(state="executing")})
        worker = SimpleNamespace(get_current_task=lambda: "one", state=state)
        with mock.patch.object(distributed, "get_worker", return_value=worker):
            found = task(*given)
        future = SimpleNamespace(done=lambda: True, status="finished", cancelled=lambda: False, result=lambda: found)
        future.add_done_callback = lambda call: call(future)
        return future

    def gather(self, futures: list[Any]) -> list[Any]:
        return [future.result() for future in futures]

    def run(self, _: Any) -> dict[str, str]:
        return {"tcp://one": "another process"}

    def scheduler_info(self) -> dict[str, str]:
        return {"address": "tcp://none"}

    def nthreads(self) -> dict[str, int]:
        return {"tcp://one": 1, "tcp://two": 1}

    def cancel(self, *_: Any, **__: Any) -> None: ...


def test_answers_of_devices_are_those_of_a_host(tmp_path: Path) -> None:
    """Rows, counts, and sums, whose units are a device's own: a worker says how these divide."""
    path = tmp_path / "people.duckdb"
    with graphdb.connect(path) as db:
        db.query("UNWIND range(0, 19) AS i CREATE (:Person {i: i})")
        db.query("MATCH (a), (b) WHERE (a.i * 7 + b.i * 3) % 5 < 2 AND a.i <> b.i CREATE (a)-[:knows]->(b)")
        wanted = [
            sorted(db.query(f"{KNOWS} RETURN a.i, b.i, c.i").fetchall()),
            db.query(f"{KNOWS} RETURN count(*) AS n").fetchall(),
            db.query(f"{SQUARE} RETURN count(*) AS n").fetchall(),
        ]
    client = Inline()
    with (
        emulator.installed(),
        mock.patch.object(naming, "probe", return_value=machine_of(1)),
        mock.patch.object(clusters, "LEAST", 0.0),
        mock.patch.object(tasks, "_ready", tasks._Ready()),
        mock.patch.object(clusters, "client_of", lambda cluster: cluster),
        graphdb.connect(path, cluster=client, device="cuda", threads=1) as db,
    ):
        assert "by cuda, in about 32 tasks" in str(db.query(f"EXPLAIN {KNOWS} RETURN a").fetchall())
        assert "by cuda, in up to 32 tasks" in str(db.query(f"EXPLAIN {KNOWS} RETURN count(*) AS n").fetchall())
        assert sorted(db.query(f"{KNOWS} RETURN a.i, b.i, c.i").fetchall()) == wanted[0]
        assert db.query(f"{KNOWS} RETURN count(*) AS n").fetchall() == wanted[1]
        assert db.query(f"{SQUARE} RETURN count(*) AS n").fetchall() == wanted[2]
        assert tasks._ready.executor("cuda").name == "cuda:0"
        assert client.ran.count("divided") == 3
        assert client.ran.count("rows") > 4
        # Of counts few, which begin large: each ends as its last block of threads does.
        assert 2 * 4 < client.ran.count("timed") < 2 * 16
        for times in (1, 2):
            client.ran.clear()
            assert db.query(f"{SQUARE} RETURN count(*) AS n", timeout=100 + times).fetchall() == wanted[2]
            assert 2 <= len(client.ran) <= 4  # one for each and a rest, by what its units took
            assert set(client.ran) == {"timed"}
