"""What a statement has deleted can be returned, and not read, however later clauses come by it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

import graphdb
from graphdb.common.errors import ExecutionError
from tests.fuzz import FUZZ


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        yield database


@pytest.fixture(autouse=True)
def graph(db: graphdb.Database) -> None:
    db.query("MATCH (n) DETACH DELETE n")
    db.query("CREATE (:P {id: 1, name: 'one'})-[:R {w: 1}]->(:P {id: 2, name: 'two'})-[:R {w: 2}]->(:P {id: 3})")


WAYS = {
    "a name": "WITH {0} AS x",
    "a list": "WITH [{0}] AS l UNWIND l AS x",
    "an item": "WITH [1, {0}] AS l WITH l[1] AS x",
    "a map": "WITH {{e: {0}}} AS m WITH m.e AS x",
    "collected": "WITH collect({0}) AS l UNWIND l AS x",
    "within lists": "WITH [[{0}], []] AS l UNWIND l AS inner UNWIND inner AS x",
}
READS = {
    "a property": "RETURN x.id, count(*)",
    "one that nothing has": "RETURN x.nothing, count(*)",
    "in a list": "RETURN [y IN [x] | y.id], count(*)",
    "in an order": "WITH x ORDER BY x.id RETURN count(x)",
    "in a condition": "WITH x WHERE x.id > 0 RETURN count(*)",
    "by a key": "WITH x, 'id' AS key RETURN x[key], count(*)",
    "properties": "RETURN properties(x), count(*)",
    "keys": "RETURN keys(x), count(*)",
    "a projection": "RETURN x {.*} AS p, count(*)",
    "beside a match": "MATCH (m:P {id: 3}) WHERE m.id > coalesce(x.id, 0) RETURN count(*)",
    "written": "CREATE (:C {id: x.id})",
    "set": "SET x.id = 3",
}
OF_VERTICES = {
    "labels": "RETURN labels(x), count(*)",
    "a label": "WITH x WHERE x:P RETURN count(*)",
    "a language": "RETURN lang(x.name), count(*)",
}


@pytest.mark.parametrize("element", ["n", "r"])
def test_reading_what_was_deleted_fails(db: graphdb.Database, element: str) -> None:
    reads = {**READS, **(OF_VERTICES if element == "n" else {})}
    other = {"n": "b", "r": "s"}[element]
    combinations = list(product(WAYS, reads))
    deletes = "MATCH (n:P {id: 1})-[r]->(b)-[s]->() DETACH DELETE n"
    for way, read in Random(element).sample(combinations, min(len(combinations), int(16 * max(FUZZ, 1)))):
        with pytest.raises(ExecutionError, match="this was deleted by the statement") as error:
            db.query(f"{deletes} {WAYS[way].format(element)} {reads[read]}").fetchall()
        assert error.value.line == 1, (way, read)
    for way in WAYS:  # what is left can be read
        db.sql("BEGIN")
        (row,) = db.query(f"{deletes} {WAYS[way].format(other)} RETURN x.id, x.w, count(*)").fetchall()
        assert row == ({"b": (2, None), "s": (None, 2)}[other] + (1,))
        db.sql("ROLLBACK")
    assert db.query("MATCH (n:P) RETURN count(*)").scalar() == 3


@pytest.mark.parametrize("rows", [1, 100])
def test_paths_and_many_rows(db: graphdb.Database, rows: int) -> None:
    text = f"UNWIND range(1, {rows}) AS i MATCH p = (n:P {{id: 1}})-[r]->(b) WITH DISTINCT n, r, p, i"
    for read in ("nodes(p) AS v RETURN v.id", "relationships(p) AS e RETURN e.w", "nodes(p) AS v RETURN labels(v)"):
        with pytest.raises(ExecutionError, match="this was deleted by the statement"):
            db.query(f"{text} DELETE r, n WITH p UNWIND {read}").fetchall()
        db.sql("BEGIN")
        found = db.query(f"{text} DELETE r, n WITH p, i UNWIND nodes(p) AS v WITH v, i WHERE v = v RETURN count(i)")
        assert found.scalar() == 2 * rows
        db.sql("ROLLBACK")


def test_errors_of_a_later_step_are_reported_as_they_are(db: graphdb.Database) -> None:
    """A statement that fails between two steps says why, and not that its transaction is aborted."""
    with pytest.raises(ExecutionError, match="this was deleted by the statement"):
        db.query(
            "MATCH (n:P {id: 1}) WITH collect(n) AS l, n DETACH DELETE n WITH l "
            "MATCH (m:P) WHERE m.id = l[0].id RETURN m.id"
        ).fetchall()


def test_what_was_deleted_is_returned_and_counted(db: graphdb.Database) -> None:
    text = (
        "MATCH (n:P {id: 1}) DETACH DELETE n WITH collect(n) AS l, count(n) AS c RETURN c, size(l), id(l[0]) = id(l[0])"
    )
    assert db.query(text).fetchall() == [(1, 1, True)]


def test_edges_go_with_what_is_said_of_them(db: graphdb.Database) -> None:
    """Parallel ones, and those with properties or without, by themselves or with a vertex, some in one statement."""
    dice = Random(2)
    db.query("MATCH (n) DETACH DELETE n")
    db.query("UNWIND range(0, 5) AS i CREATE (:V {id: i})")
    labels = {"SINGLE": 1, "DOUBLE": 3, "BARE": 1}
    model: dict[int, tuple[str, int, int]] = {}
    for label, most in labels.items():
        rows: list[dict[str, int | None]] = []
        for a, b in product(range(6), repeat=2):
            for _ in range(dice.randrange(most + 1)):
                n = len(model) + 1
                n = -n if label == "BARE" or dice.random() < 0.2 else n
                model[n] = label, a, b
                rows.append({"a": a, "b": b, "n": n if n > 0 else None})
        made = f"CREATE (a)-[:{label} {{n: row.n}}]->(b)"
        db.query(f"UNWIND $rows AS row MATCH (a:V {{id: row.a}}), (b:V {{id: row.b}}) {made}", rows=rows)

    def check() -> None:
        sql = "MATCH (a)-[r]->(b) RETURN type(r), a.id, b.id, r.n"
        said = {(*edge, n if n > 0 else None) for n, edge in model.items()}
        found = db.query(sql).fetchall()
        assert len(found) == len(model)
        assert set(found) == said
        with_number = sum(n > 0 for n in model)
        assert len(db._state.connection.rows("SELECT DISTINCT * FROM _graphdb.edge_property")) == with_number

    check()
    for step in range(16):
        x, y = dice.sample(range(6), 2)
        label = "DOUBLE" if step % 4 == 1 else dice.choice([*labels])
        match step % 4:
            case 0:
                db.query(f"MATCH (a:V {{id: $x}})-[r:{label}]->(b) DELETE r", x=x)
                gone = [n for n, (of, a, _) in model.items() if (of, a) == (label, x)]
            case 1:
                db.query(f"MATCH (a:V {{id: $x}})-[r:{label}]->(b) WHERE r.n % 2 = 0 DELETE r", x=x)
                gone = [n for n, (of, a, _) in model.items() if (of, a) == (label, x) and n > 0 and n % 2 == 0]
            case 2:
                db.query(f"MATCH (a:V {{id: $x}}), (b:V {{id: $y}}) CREATE (a)-[r:{label} {{n: 7777}}]->(b) DELETE r",
                         x=x, y=y)  # fmt: skip
                gone = []
            case _:
                db.query("MATCH (a:V {id: $x}) DETACH DELETE a CREATE (b:V {id: $x})", x=x)
                gone = [n for n, (_, a, b) in model.items() if x in (a, b)]
        for n in gone:
            del model[n]
        check()
