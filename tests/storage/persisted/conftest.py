"""A small file of which everything is persisted, in a folder of the test's own."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import graphdb
from graphdb.storage.compile.cache import Cache
from graphdb.storage.persisted import store
from tests.stops import PATIENCE
from tests.storage.persisted.openings import MOMENT


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Persist everything, of small files too and however busy the disk is, in a folder of the test's own."""

    class Own(Cache):
        def folder(self) -> Path:
            return tmp_path / "arrays"

    monkeypatch.setattr(store, "FOLDER", Own("arrays", store.MOST_FILES))
    monkeypatch.setattr(store, "LARGE", 0)
    monkeypatch.setattr(store, "SLOW", 0.0)
    monkeypatch.setattr(store, "_SETTLED", MOMENT)
    monkeypatch.setattr(store, "LONGEST", PATIENCE)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a small graph, which tests copy."""
    path = tmp_path_factory.mktemp("made") / "g.duckdb"
    with graphdb.connect(path) as database:
        database.query("UNWIND range(0, 39) AS i CREATE (:P {x: i, name: 'n' + toString(i)})")
        database.query("MATCH (a:P), (b:P) WHERE (a.x * 7 + b.x) % 5 = 1 CREATE (a)-[:K {w: a.x + b.x}]->(b)")
        database.query("MATCH (a:P), (b:P) WHERE a.x > 0 AND b.x = (a.x - 1) / 2 CREATE (a)-[:UP]->(b)")
    return path


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A file with a small graph, of which nothing is persisted yet."""
    path = Path(shutil.copyfile(made, tmp_path / "g.duckdb"))
    time.sleep(2 * MOMENT)
    return path
