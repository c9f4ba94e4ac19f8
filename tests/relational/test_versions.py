"""What results show once the data have changed: what their query saw."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.relational.session.versions import MOST

PEOPLE = (
    "UNWIND range(1, 600) AS i CREATE (:Person {k: i, name: 'p' + toString(i)})-[:LIKES {since: i}]->(:Thing {k: i})"
)


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect() as db:
        db.query(PEOPLE)
        yield db


def properties(result: Any) -> list[Any]:
    return [dict(node.properties) for (node,) in result]


@pytest.mark.parametrize(
    "write",
    [
        "MATCH (n) SET n.k = 0",
        "MATCH (n:Person) SET n.name = null, n:Other",
        "MATCH (n) DETACH DELETE n",
        "MATCH (n:Person) SET n = {}",
        "MATCH (n:Person) WHERE n.k = 3 SET n.k = 4",
    ],
)
def test_vertices_are_as_the_query_saw_them(db: graphdb.Database, write: str) -> None:
    text = "MATCH (n:Person) RETURN n ORDER BY n.k"
    result, wanted = db.query(text), db.query(text).fetchall()
    db.query(write)
    found = result.fetchall()
    assert found == wanted
    assert [node.properties for (node,) in found] == [node.properties for (node,) in wanted]
    assert [node.labels for (node,) in found] == [("Person",)] * 600
    assert [row["n"]["id"] for row in result.to_arrow().to_pylist()] == [node.iri for (node,) in wanted]


def test_an_iteration_that_has_begun_goes_on_as_it_began(db: graphdb.Database) -> None:
    rows = iter(db.query("MATCH (n:Person) RETURN n ORDER BY n.k"))
    seen = [next(rows)[0].properties["k"]]
    db.query("MATCH (n) SET n.k = -1")
    for i, (node,) in enumerate(rows):
        seen.append(node.properties["k"])
        if i % 100 == 50:
            db.query("MATCH (n:Thing) WITH n LIMIT 1 DETACH DELETE n")
    assert seen == list(range(1, 601))


def test_edges_and_paths_keep_labels_and_properties(db: graphdb.Database) -> None:
    edges = db.query("MATCH (:Person)-[e]->() RETURN e ORDER BY e.since LIMIT 3")
    paths = db.query("MATCH p = (a:Person)-[:LIKES]->() RETURN p ORDER BY a.k LIMIT 3")
    db.query("MATCH ()-[e]->() SET e.since = 0")
    db.query("MATCH (n) DETACH DELETE n")
    assert [(edge.type, edge.properties["since"]) for (edge,) in edges] == [("LIKES", i) for i in (1, 2, 3)]
    assert [path.nodes[1].properties["k"] for (path,) in paths] == [1, 2, 3]
    assert [path.relationships[0].properties["since"] for (path,) in paths] == [1, 2, 3]
    assert [row["type"] for row in edges.to_arrow().column(0).to_pylist()] == ["LIKES"] * 3


def test_names_are_written_as_they_were(db: graphdb.Database) -> None:
    result = db.query("MATCH (n:Person)-[e]->() RETURN n, e ORDER BY n.k LIMIT 1")
    db.load([_table()], label="http://x/L")
    again = db.query("MATCH (n:<http://x/L>) RETURN n")
    db.query("PREFIX x: <http://x/>")
    assert [node.labels for (node,) in again] == [("http://x/L",)]
    assert next(iter(result))[1].type == "LIKES"
    assert [node.labels for (node,) in db.query("MATCH (n:x:L) RETURN n")] == [("x:L",)]


def _table() -> Any:
    import pyarrow as pa

    return pa.table({":ID": ["a"]})


def test_what_a_transaction_saw_outlives_its_rollback(db: graphdb.Database) -> None:
    db.query("BEGIN")
    db.query("CREATE (:Person {k: 1000, name: 'new'})")
    result = db.query("MATCH (n:Person) WHERE n.k >= 599 RETURN n ORDER BY n.k")
    db.query("ROLLBACK")
    db.query("CREATE (:Person {k: 2000, name: 'other'})")  # has the id of the one that was rolled back
    assert [found["k"] for found in properties(result)] == [599, 600, 1000]
    assert properties(result)[-1] == {"k": 1000, "name": "new"}
    assert result.to_arrow().num_rows == 3


def test_what_a_transaction_saw_outlives_its_failure(db: graphdb.Database) -> None:
    before = db.query("MATCH (n:Person) WHERE n.k >= 599 RETURN n ORDER BY n.k")
    db.query("BEGIN")
    clean = db.query("MATCH (n:Person) WHERE n.k >= 599 RETURN n ORDER BY n.k")
    db.query("MATCH (n:Person) SET n.k = n.k + 1")
    written = db.query("MATCH (n:Person) WHERE n.k >= 600 RETURN n ORDER BY n.k")
    with pytest.raises(graphdb.GraphDBError):
        db.sql("SELECT error('no')")
    for result, first in ((before, 599), (clean, 599), (written, 600)):
        assert [found["k"] for found in properties(result)] == [first, first + 1]
    db.query("ROLLBACK")
    for result, first in ((before, 599), (clean, 599), (written, 600)):
        assert [found["k"] for found in properties(result)] == [first, first + 1]


def test_results_of_a_transaction_that_only_read_outlive_its_failure(db: graphdb.Database) -> None:
    db.query("BEGIN")
    result = db.query("MATCH (n:Person) RETURN n ORDER BY n.k LIMIT 2")
    with pytest.raises(graphdb.GraphDBError):
        db.sql("SELECT error('no')")
    assert [found["k"] for found in properties(result)] == [1, 2]
    db.query("ROLLBACK")
    assert [found["k"] for found in properties(result)] == [1, 2]


def test_very_many_results_of_different_versions(db: graphdb.Database) -> None:
    results = []
    for i in range(2 * MOST):
        results.append(db.query("MATCH (n:Person) WHERE n.name = 'p7' RETURN n"))
        db.query("MATCH (n:Person) WHERE n.name = 'p7' SET n.k = $i", i=1000 + i)
    assert [properties(result)[0]["k"] for result in results] == [7, *range(1000, 999 + 2 * MOST)]


def test_connections_of_former_versions_end_with_their_results(tmp_path: Path) -> None:
    path = tmp_path / "g.duckdb"
    with graphdb.connect(path) as db:
        db.query(PEOPLE)
        result = db.query("MATCH (n) RETURN n")
        db.query("MATCH (n) SET n.k = 0")
        assert "Person" in next(iter(result))[0].labels
        del result
        gc.collect()
        db.query("CREATE TABLE t AS SELECT 1 AS x")
        db.query("CHECKPOINT")  # refused while others have a transaction that began before the table was made
        late = db.query("MATCH (n) RETURN n")
        db.query("CREATE (:Person)")
    with pytest.raises(graphdb.StorageError, match="closed"):
        late.fetchall()
    with graphdb.connect(path) as db:  # nothing has the file open
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 1201


def test_a_result_stored_late(db: graphdb.Database) -> None:
    result = db.query("MATCH (n:Person) RETURN n, n.k ORDER BY n.k LIMIT 2")
    iris = [node.iri for node, _ in result]
    db.query("MATCH (n) DETACH DELETE n")
    assert result.into("late") == 2
    assert db.sql("FROM late ORDER BY k").fetchall() == [(iris[0], 1), (iris[1], 2)]
    assert db.sql("SELECT count(*) FROM result").scalar() == 2


def test_another_connection_writes(tmp_path: Path) -> None:
    path = tmp_path / "g.duckdb"
    with graphdb.connect(path) as one, graphdb.connect(path) as other:
        one.query(PEOPLE)
        text = "MATCH (n:Person) WHERE n.k < 4 RETURN n ORDER BY n.k"
        first = other.query(text)
        other.query("BEGIN")
        inside = other.query(text)
        one.query("MATCH (n:Person) SET n.k = n.k + 1")
        again = other.query(text)
        one.query("MATCH (n:Person) SET n.k = n.k + 1")
        other.query("COMMIT")
        after = other.query(text)
        one.query("MATCH (n) DETACH DELETE n")
        one.query("VACUUM")
        one.query(PEOPLE)
        for result in (first, inside, again):
            assert [found["k"] for found in properties(result)] == [1, 2, 3]
        assert [found["k"] for found in properties(after)] == [3]


def test_reading_that_is_interrupted_says_so_afterwards(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    result = db.query("MATCH (n:Person) RETURN n ORDER BY n.k")
    db.query("MATCH (n) SET n.k = 0")
    from graphdb.relational.elements import fetch

    with monkeypatch.context() as patched:

        def interrupted(source: Any, ids: Any) -> Any:
            raise KeyboardInterrupt

        patched.setattr(fetch, "nodes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            result.fetchall()
    assert properties(result)[6]["k"] == 7  # nothing was aborted

    def aborted(source: Any, ids: Any) -> Any:
        return source.connection.rows("SELECT error('as an interrupt does')")

    with monkeypatch.context() as patched:
        patched.setattr(fetch, "nodes", aborted)
        with pytest.raises(graphdb.GraphDBError, match="as an interrupt does"):
            result.fetchall()
    with pytest.raises(graphdb.StorageError, match="run the query again"):
        result.fetchall()
    assert db.query("MATCH (n:Person) RETURN count(*)").scalar() == 600
