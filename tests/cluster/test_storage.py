"""Workers that do not see the file: they read the graph's partitions from a folder, or fetch them from a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import graphdb
from graphdb.cluster import partition_files
from graphdb.cluster.partition_files import Partitions, published, reaching
from graphdb.cluster.partition_source import PartitionSource
from graphdb.common.errors import NotSupportedError, StorageError

pytest.importorskip(
    "fsspec", reason="fsspec, which comes with Dask, is not installed: pip install 'graphdb-duckdb[dask]'"
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels, literals, parallel edges."""
    path = tmp_path_factory.mktemp("data") / "graph.duckdb"
    with graphdb.connect(path) as db:
        db.query("UNWIND range(0, 39) AS i CREATE (:A {k: i})")
        db.query("MATCH (a:A), (b:A) WHERE (a.k * 7 + b.k) % 11 = 0 CREATE (a)-[:R]->(b)")
        db.query("MATCH (a:A), (b:A) WHERE a.k < 9 AND b.k = a.k + 1 CREATE (a)-[:S {w: 1}]->(b), (a)-[:S {w: 2}]->(b)")
        db.query("MATCH (a:A) WHERE a.k < 5 SET a:B")
    return path


@pytest.fixture
def db(file: Path) -> Iterator[Any]:
    with graphdb.connect(file, read_only=True) as found:
        yield found


def store_of(db: Any) -> Any:
    with db._state.hold():
        return db._state.snapshot().store


def in_store(folder: Path) -> str:
    """A URL of a file system that is not the local one, over the folder."""
    return f"dir::file://{folder}"


@pytest.mark.parametrize("url", [str, in_store])
def test_partitions_say_what_the_file_says(db: Any, tmp_path: Path, url: Any) -> None:
    store, calls = store_of(db), []
    where = published(store, url(tmp_path / "shared"), "one", lambda: calls.append(1))
    source = PartitionSource(where, tmp_path / "kept")
    assert len(calls) == len(store.edge_labels()) > 3
    assert (source.resources, source.literals, source.type_label) == (store.resources, store.literals, store.type_label)
    assert source.edge_labels() == store.edge_labels()
    for label in (*store.edge_labels(), 10**9):
        assert source.statistics(label) == store.statistics(label)
        for ours, theirs in zip(source.edges(label), store.edges(label), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for direction in (0, 1):
            assert source.degrees(label, direction) == store.degrees(label, direction)
            for resource in range(store.resources):
                assert source.at_class(label, direction, resource) == store.at_class(label, direction, resource)
        for resource in range(0, store.resources, 7):
            np.testing.assert_array_equal(source.subjects(label, resource), store.subjects(label, resource))
    for ours, theirs in [
        (source.any_edges(), store.any_edges()),
        (source.parallel_edges(None), store.parallel_edges(None)),
        *((source.parallel_edges((each,)), store.parallel_edges((each,))) for each in store.edge_labels()),
    ]:
        assert sorted(zip(*(c.tolist() for c in ours), strict=True)) == sorted(
            zip(*(c.tolist() for c in theirs), strict=True)
        )
    assert len(source.parallel_edges(None)[0]) == len(source.any_edges()[0]) + 9
    local = url is str
    assert (tmp_path / "kept").exists() is not local


def test_a_state_is_written_once(db: Any, tmp_path: Path) -> None:
    first = published(store_of(db), str(tmp_path), "one", lambda: None)
    with mock.patch.object(partition_files, "_written", side_effect=AssertionError("written again")):
        assert published(store_of(db), str(tmp_path), "one", lambda: None) == first
    assert published(store_of(db), str(tmp_path), "two", lambda: None).digest == first.digest


def test_what_was_given_up_is_not_read(db: Any, tmp_path: Path) -> None:
    """Writing that was stopped leaves no manifest, and is done again."""

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        published(store_of(db), str(tmp_path), "one", stop)
    assert not list(tmp_path.rglob("manifest.json"))
    PartitionSource(published(store_of(db), str(tmp_path), "one", lambda: None), tmp_path / "kept")


def test_files_that_have_changed_are_refused(db: Any, tmp_path: Path) -> None:
    """Ids reach kernels unchecked otherwise."""
    where = published(store_of(db), str(tmp_path), "one", lambda: None)
    folder = Path(where.url)
    label = json.loads((folder / "manifest.json").read_text())["type_label"]
    source = PartitionSource(where, tmp_path / "kept")
    edges = folder / f"edges-{label}.parquet"
    good = edges.read_bytes()
    edges.write_bytes(good[:-9] + bytes([good[-9] ^ 1]) + good[-8:])
    with pytest.raises(StorageError, match=r"edges-\d+.parquet' has changed since it was written"):
        source.edges(label)
    edges.unlink()
    with pytest.raises(StorageError, match="No such file"):
        source.edges(label)
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(StorageError, match="has changed since the cluster's client wrote it"):
        PartitionSource(where, tmp_path / "kept")
    other = Partitions(where.url, partition_files.digest_of(manifest.read_bytes()))
    with pytest.raises(StorageError, match=r"has format 2, expected 1\nhint: install the same version"):
        PartitionSource(other, tmp_path / "kept")


@pytest.mark.parametrize(
    ("url", "kind", "said"),
    [
        ("nowhere://x/y", StorageError, "Protocol not known"),
        ("/proc/none/here", StorageError, "No such file"),
        ("missing://x", NotSupportedError, "needs a package"),
    ],
)
def test_a_folder_that_cannot_be_reached(db: Any, url: str, kind: type[Exception], said: str) -> None:
    absent = mock.patch.dict("fsspec.registry.known_implementations", {"missing": {"class": "no_such.Files"}})
    with absent, pytest.raises(kind, match=said):
        published(store_of(db), url, "one", lambda: None)
    with absent, pytest.raises(kind, match=said), reaching(url) as (files, path):
        files.makedirs(path)


def test_arguments(file: Path, tmp_path: Path) -> None:
    with pytest.raises(graphdb.GraphDBError, match="where a cluster's workers find the graph\nhint: give a cluster"):
        graphdb.connect(file, cluster_storage=tmp_path)
