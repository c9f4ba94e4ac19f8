"""Four worker processes: the known counts of LSQB and WatDiv, one host's rows, and the known cliques and motifs."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import graphdb
from tests.datasets import pattern_query, queries, shared

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'graphdb-duckdb[dask]'")

from graphdb.cluster import executor as clusters  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

WORKERS = 4
FILES = {"lsqb": "lsqb-sf0.1.nt.gz", "watdiv": "watdiv.sf1.nt.gz"}
EVERY = {"lsqb": 1, "watdiv": 6}
"""Of a set's queries, each so manieth is asked."""
ROWS = 20_000
"""Matches of a query, at most, whose rows are compared too."""


@pytest.mark.parametrize("name", FILES)
def test_queries_of_a_set(name: str, client: Any, tmp_path: Path) -> None:
    path, submitted, submit = tmp_path / f"{name}.duckdb", [], client.submit
    with graphdb.connect(path) as db:
        db.load(shared("data", name, FILES[name]))

    def noted(task: Any, *given: Any, **more: Any) -> Any:
        submitted.append(task)
        return submit(task, *given, **more)

    with (
        mock.patch.object(clusters, "LEAST", 0.0),
        mock.patch.object(client, "submit", noted),
        graphdb.connect(path, cluster=client) as db,
        graphdb.connect(path, read_only=True, device="cpu") as alone,
    ):
        for query in queries(name)[:: EVERY[name]]:
            assert db.query(pattern_query(query)).scalar() == query["count"], query["name"]
            if "patterns" in query and query["count"] <= ROWS:
                text = pattern_query(query, "*")
                found, wanted = (sorted(each.query(text).fetchall(), key=repr) for each in (db, alone))
                assert found == wanted, query["name"]
                assert len(found) == query["count"]
    assert len(submitted) > 50


def test_cliques_and_motifs(client: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    ends = np.loadtxt(shared("data", "snap", "wiki-Vote.txt.gz"), dtype=np.int64, comments="#")
    ends = np.unique(np.sort(ends, axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    path = tmp_path / "votes.duckdb"
    with graphdb.connect(path) as db:
        db.load(pa.table({":START_ID": ends[:, 0], ":END_ID": ends[:, 1]}), type="e")
    texts = ["MINE CLIQUES OF SIZE 3..5 OVER :e", "MINE MOTIFS OF SIZE 3 OVER :e"]
    with mock.patch.object(clusters, "LEAST", 0.0), graphdb.connect(path, cluster=client) as db:
        found = [db.query(text).fetchall() for text in texts]
    with graphdb.connect(path, read_only=True, device="cpu") as alone:
        assert found == [alone.query(text).fetchall() for text in texts]
