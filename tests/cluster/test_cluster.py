"""A real cluster of two processes: the rows, in their order, and the counts of one host; workers that are killed."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import graphdb
from graphdb.common.errors import ExecutionError, QueryInterrupted, QueryTimeout
from tests.stops import interrupted, soon, waited_for

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'graphdb-duckdb[dask]'")

from graphdb.cluster import executor as clusters  # noqa: E402
from graphdb.cluster.executor import ClusterExecutor  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
"""Dask warns of ports, and of what its own dependencies do."""

WORKERS = 2
KNOWS = "MATCH (a:Person)-[:knows]->(b)-[:knows]->(c), (a)-[:knows]->(c)"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random graph with some hubs, labels and properties."""
    path = tmp_path_factory.mktemp("data") / "people.duckdb"
    rng = np.random.default_rng(3)
    a, b = (rng.random((2, 3000)) ** 1.6 * 250).astype(int)
    lines = [f"<p:{i}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <c:Person> ." for i in range(0, 250, 2)]
    lines += [f'<p:{i}> <p:age> "{i % 60}"^^<http://www.w3.org/2001/XMLSchema#integer> .' for i in range(250)]
    lines += [f"<p:{i}> <p:knows> <p:{j}> ." for i, j in zip(a, b, strict=True) if i != j]
    data = path.with_suffix(".nt")
    data.write_text("\n".join(lines))
    with graphdb.connect(path) as db:
        db.query("PREFIX : <p:>")
        db.load(data)
    return path


@pytest.fixture
def shared_out() -> Iterator[None]:
    """Every run is divided, however small."""
    with mock.patch.object(clusters, "LEAST", 0.0):
        yield


@pytest.fixture
def db(client: Any, file: Path, shared_out: None) -> Iterator[Any]:
    with graphdb.connect(file, cluster=client) as found:
        yield found


@pytest.fixture
def alone(file: Path) -> Iterator[Any]:
    with graphdb.connect(file, device="cpu", read_only=True) as found:
        yield found


QUERIES = [
    f"{KNOWS} RETURN count(*) AS n",
    f"{KNOWS} RETURN a, b, c",
    f"{KNOWS} WHERE a.age > 20 AND c.age < 40 RETURN a, c.age",
    f"{KNOWS} RETURN b, count(*) AS n",
    f"{KNOWS} RETURN a, b LIMIT 7",
    "MATCH DIFFERENT NODES (a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(d)-[:knows]-(a) RETURN count(*) AS n",
    "MATCH (a)-[:knows]->(b) OPTIONAL MATCH (b)-[:knows]->(c)-[:knows]->(a) RETURN a, b, count(c) AS n",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_one_host(db: Any, alone: Any, query: str) -> None:
    want, found = alone.query(query).fetchall(), db.query(query).fetchall()
    if "LIMIT" in query:
        assert len(found) == len(want)
    else:
        assert sorted(found, key=repr) == sorted(want, key=repr)


def test_tasks_run_on_both_workers(db: Any, client: Any) -> None:
    """And what small queries take stays here: nothing is sent."""
    ran: list[int] = []
    submit = client.submit

    def counting(*given: Any, **more: Any) -> Any:
        ran.append(1)
        return submit(*given, **more)

    with mock.patch.object(client, "submit", counting):
        assert len(db.query(f"{KNOWS} RETURN a, b, c").fetchall()) > 100
        assert len(ran) > 4
    plans = client.run(lambda: len(__import__("graphdb.cluster.tasks", fromlist=["_ready"])._ready._plans))
    assert len(plans) == 2
    assert all(plans.values())
    assert "cluster tcp://" in str(db.query(f"EXPLAIN {KNOWS} RETURN a, b, c").fetchall())


def test_small_queries_stay_here(client: Any, file: Path) -> None:
    with (
        graphdb.connect(file, cluster=client) as db,
        mock.patch.object(client, "submit", side_effect=AssertionError("a task")),
    ):
        assert db.query(f"{KNOWS} RETURN count(*) AS n").scalar() > 0
        assert "cluster" not in str(db.query(f"EXPLAIN {KNOWS} RETURN a").fetchall())


def test_an_address_does_for_a_client(client: Any, file: Path, shared_out: None, alone: Any) -> None:
    address = client.scheduler_info()["address"]
    with graphdb.connect(file, cluster=address) as db:
        query = f"{KNOWS} RETURN count(*) AS n"
        assert db.query(query).scalar() == alone.query(query).scalar()
        own = db._statements().queries.executor.client  # type: ignore[attr-defined]
        assert own.status == "running"
    assert own.status == "closed"
    assert client.status == "running"


def test_mining_runs_there_too(db: Any, alone: Any) -> None:
    """Over graphs that are made for it: workers are sent their edges."""
    for statement in ("MINE CLIQUES OF SIZE 3..5", "MINE MOTIFS OF SIZE 3 DIRECTED"):
        asked: list[Any] = []
        submitted = ClusterExecutor._submitted

        def noted(self: Any, run: Any, *given: Any, asked: list[Any] = asked, submitted: Any = submitted) -> Any:
            asked.append(run)
            return submitted(self, run, *given)

        with mock.patch.object(ClusterExecutor, "_submitted", noted):
            found = db.query(statement).fetchall()
        assert found == alone.query(statement).fetchall()
        assert asked, statement


def test_a_worker_that_is_killed_changes_nothing(db: Any, alone: Any, client: Any) -> None:
    """Its tasks run again elsewhere, while rows are read."""
    query = (
        "MATCH (a)-[:knows]->(b)-[:knows]->(c)-[:knows]->(d) WHERE a.age < d.age RETURN count(*) AS n, sum(d.age) AS s"
    )
    want = alone.query(query).fetchall()
    victim = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(0.05, os.kill, (victim, signal.SIGKILL))
    timer.start()
    assert db.query(query).fetchall() == want
    timer.join()
    assert waited_for(lambda: len(others(client, victim)) == 2)
    assert db.query(query).fetchall() == want


def others(client: Any, victim: int) -> list[int]:
    """The processes of workers that answer, but for the one that was killed."""
    return [pid for pid in client.run(os.getpid, on_error="ignore").values() if pid != victim]


def endless(db: Any) -> str:
    return "MATCH DIFFERENT EDGES " + "".join(f"(v{i})-[:knows]-" for i in range(9)) + "(z) RETURN v0, z, v4, v5"


def test_a_timeout_stops_the_tasks(db: Any, client: Any) -> None:
    with pytest.raises(QueryTimeout):
        db.query(endless(db), timeout=0.5)
    assert waited_for(lambda: not any(client.processing().values()))
    assert db.query(f"{KNOWS} RETURN count(*) AS n").scalar() > 0


def test_an_interrupt_stops_the_tasks(db: Any, client: Any) -> None:
    def stop() -> float:
        started = time.monotonic()
        with interrupted(db, "interrupt", 0.5), pytest.raises(QueryInterrupted):
            db.query(endless(db))
        return time.monotonic() - started - 0.5

    soon(stop, 1.5)
    assert waited_for(lambda: not any(client.processing().values()))


def test_progress_is_reported(client: Any, file: Path, shared_out: None) -> None:
    seen: list[float] = []
    with graphdb.connect(file, cluster=client, progress=lambda done, *_: seen.append(done)) as db:
        db.query(
            "MATCH (a)-[:knows]->(b)-[:knows]->(c)-[:knows]->(d) WHERE a.age <> d.age RETURN a, b, c, d LIMIT 90000"
        )
    assert seen == sorted(seen)


def test_a_file_that_has_changed_is_refused(client: Any, file: Path, shared_out: None, tmp_path: Path) -> None:
    """A worker that sees another file would give another answer."""
    copy = tmp_path / "copy.duckdb"
    shutil.copy(file, copy)
    with graphdb.connect(copy, cluster=client) as db:
        assert db._statements().queries.executor.name.startswith("cluster")
        os.utime(copy)
        with pytest.raises(ExecutionError, match="another file on a worker, or has changed"):
            db.query(f"{KNOWS} RETURN count(*) AS n")


def test_a_plan_that_differs_is_run_here(db: Any, alone: Any, caplog: pytest.LogCaptureFixture) -> None:
    query = f"{KNOWS} RETURN count(*) AS n"
    with mock.patch.object(clusters, "digest_of", return_value="another"):
        assert db.query(query).scalar() == alone.query(query).scalar()
        assert "workers made another plan" in caplog.text
        rows = f"{KNOWS} RETURN a, b, c"
        assert repr(db.query(rows).fetchall()) == repr(alone.query(rows).fetchall())


def test_workers_that_do_not_see_the_file(
    client: Any, file: Path, shared_out: None, alone: Any, tmp_path: Path
) -> None:
    """They fetch what they need of it from a store, once, and run the plans that the client has."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    moved = Path(shutil.copy(file, hidden))
    opened = mock.patch.object(clusters, "OtherPlan", type("Never", (Exception,), {}))
    with opened, graphdb.connect(moved, cluster=client, cluster_storage=f"dir::file://{tmp_path}/store") as db:
        assert db._statements().queries.executor.name.startswith("cluster")
        moved.rename(hidden / "away.duckdb")  # open here, not to be found by workers
        for query in (*QUERIES[:4], QUERIES[5]):
            assert sorted(db.query(query).fetchall(), key=repr) == sorted(alone.query(query).fetchall(), key=repr)
    fetched = client.run(lambda dask_worker: [*map(str, Path(dask_worker.local_directory).glob("graphdb-*/*"))])
    assert any(fetched.values())
    assert len(list((tmp_path / "store").rglob("manifest.json"))) == 1


def test_what_is_no_cluster(file: Path) -> None:
    with pytest.raises(graphdb.GraphDBError, match="needs a database file"):
        graphdb.connect(cluster="tcp://localhost:1")
    with graphdb.connect(file, cluster=3) as db:
        with pytest.raises(graphdb.GraphDBError, match="found int"):
            db.query("MATCH (a) RETURN count(*)")
        with pytest.raises(graphdb.GraphDBError, match="read-only"):
            db.sql("CREATE TABLE t AS SELECT 1")


def test_a_worker_without_the_package_is_an_error_that_says_so(db: Any, client: Any) -> None:
    missing = ModuleNotFoundError("No module named 'graphdb'")
    with (
        mock.patch.object(client, "run", side_effect=missing),
        pytest.raises(graphdb.GraphDBError, match=r"cannot import .* No module named 'graphdb'\nhint: pip install"),
    ):
        db.query(f"{KNOWS} RETURN count(*) AS n")


def test_a_worker_in_this_process_is_refused(file: Path, shared_out: None) -> None:
    """It would wait for the database, and the database for it."""
    settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**settings, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as inside,
        graphdb.connect(file, cluster=inside) as db,
        pytest.raises(graphdb.GraphDBError, match="a worker runs in this process"),
    ):
        db.query(f"{KNOWS} RETURN count(*) AS n")
