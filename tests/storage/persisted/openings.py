"""Openings of one file, with what was persisted of it and without, and what another process does to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.storage.persisted import files, store

QUERIES = (
    "MATCH (a:P)-[:K]->(b) RETURN count(*), sum(b.x)",
    "MATCH (a:P)-[:K]-(b)-[:K]-(c) RETURN count(*)",
    "MATCH (a:P)-[r:K]->(b) RETURN count(r), max(r.w), min(r.w)",
    "MATCH (a:P {x: 3})-[r:K]->(b) RETURN b.x, r.w, b.name ORDER BY b.x",
    "MATCH (a:P) WHERE a.name CONTAINS '7' RETURN count(*), max(a.name)",
    "MATCH (a:P)-[:UP*0..]->(b) RETURN count(*)",
    "MATCH (a:P)-[:UP*]->(b:P {x: 0}) RETURN count(*), max(a.x)",
    "MATCH (a:P) RETURN a.x, COUNT { (a)-[:K]-() } AS n ORDER BY n DESC, a.x LIMIT 3",
    "MATCH (n) RETURN labels(n) AS l, count(*) ORDER BY l",
    "MATCH (a:P {x: 1}), (b:P {x: 38}) OPTIONAL MATCH ANY SHORTEST (a)((x)-[:K|UP]-(y))+(b)"
    " COST BY 1 + COUNT { MATCH (x)<-[:UP]-(z) WHERE z.x > 5 } AS w RETURN w",
)
SWAP = "MATCH (a:P {x: 3}), (b:P {x: 4}) SET a.x = 4, b.x = 3"
"""A change that leaves all that is counted as it was."""

MOMENT = 0.05
"""Seconds after which these tests take a file for settled: the file system here counts in milliseconds."""


def answers(path: Path, **options: Any) -> list[Any]:
    """What all queries return on a connection of their own."""
    with graphdb.connect(path, **options) as database:
        return asked(database)


def asked(database: graphdb.Database) -> list[Any]:
    return [database.query(text).fetchall() for text in QUERIES]


def derived(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Any]:
    """The same with nothing persisted."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "LARGE", 1 << 60)
        return answers(path, **options)


def names() -> list[str]:
    try:
        return sorted(os.listdir(store.FOLDER.folder()))
    except FileNotFoundError:
        return []


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the files that were read."""
    read, found = files.read, list[str]()

    def note(folder: Path, name: str) -> Any:
        value = read(folder, name)
        if value is not None:
            found.append(name)
        return value

    with monkeypatch.context() as patch:
        patch.setattr(files, "read", note)
        yield found


def elsewhere(path: Path, code: str) -> None:
    """Run code in another process, which has the file open as ``db``, and does not close it.

    It is forked from one that has imported what it needs, and did nothing else: to import it takes most of its time.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_opened, args=(str(path), code, dict(os.environ)))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    process.close()


def _opened(path: str, code: str, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    exec(code, {"db": graphdb.connect(path)})
    os._exit(0)
