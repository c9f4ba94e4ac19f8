"""What users of other libraries type by habit: the error says what it is called here."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import graphdb
from graphdb.database import _ELSEWHERE as OF_DATABASE
from graphdb.results.result import _ELSEWHERE as OF_RESULT


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (:P {name: 'Ada', born: 1815})-[:KNOWS {since: 1833}]->(:P {name: 'Mary'})")
        yield database


def test_names_of_others_are_hinted_at(db: graphdb.Database) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'run'; here: query\(text\)"):
        db.run("MATCH (n) RETURN n")  # type: ignore[attr-defined]
    result = db.query("MATCH (n) RETURN n")
    with pytest.raises(AttributeError, match=r"no attribute 'get_as_df'; here: df\(\)"):
        result.get_as_df()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$") as raised:
        result.nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert (raised.value.name, raised.value.obj) == ("nonsense", result)
    assert not hasattr(result, "single")


def test_names_of_the_module_are_hinted_at() -> None:
    for name, here in (("Connection", r"connect\(path\)"), ("query", "query"), ("Graph", "connect"), ("load", "load")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; here: .*{here}"):
            getattr(graphdb, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$") as raised:
        graphdb.nonsense  # noqa: B018
    assert raised.value.name == "nonsense"


def test_no_hint_is_for_a_name_that_there_is(db: graphdb.Database) -> None:
    """A hint would never be seen, and what it names is there."""
    assert not [name for name in OF_RESULT if hasattr(graphdb.Result, name)]
    assert not [name for name in OF_DATABASE if hasattr(graphdb.Database, name)]
    for owner, hints in ((graphdb.Result, OF_RESULT), (graphdb.Database, OF_DATABASE)):
        for hint in hints.values():
            word = hint.split("(")[0].split(",")[0].split()[0]
            assert hasattr(owner, word) or word in ("for", "message", "len", "graphdb.dbapi"), hint
    assert db.query("CREATE (:X)").message == "1 vertex created, 1 label added"


def test_rows_as_dictionaries(db: graphdb.Database) -> None:
    result = db.query("MATCH (n:P) RETURN n.name AS name, n.born AS born ORDER BY name")
    assert result.to_dicts() == [{"name": "Ada", "born": 1815}, {"name": "Mary", "born": None}]
    assert result.fetchall() == [("Ada", 1815), ("Mary", None)]
    assert db.query("MATCH (n:P) RETURN count(*) AS n").to_dicts() == [{"n": 2}]
    assert db.query("MATCH (n:None) RETURN n").to_dicts() == []


def test_properties_by_key(db: graphdb.Database) -> None:
    [(ada, knows, mary)] = db.query("MATCH (a)-[e]->(b) RETURN a, e, b")
    assert (ada["name"], knows["since"], mary.get("born"), mary.get("born", 0)) == ("Ada", 1833, None, 0)
    with pytest.raises(KeyError):
        mary["born"]


@pytest.mark.parametrize(
    ("method", "package"), [("to_igraph", "igraph"), ("to_networkx", "networkx"), ("pl", "polars"), ("df", "pandas")]
)
def test_a_library_that_is_missing(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, method: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(graphdb.ExecutionError, match="which is not installed") as raised:
        getattr(db.query("MATCH (n) RETURN n"), method)()
    assert raised.value.hint == f"pip install {package}"


def test_habits_of_cypher_and_of_shells(db: graphdb.Database) -> None:
    for text, hint in (
        ("MATCH (p) RETURN size((p)-[:KNOWS]->())", "COUNT {"),
        ("CALL apoc.meta.stats()", "dbms.procedures"),
        (":param x => 1", ".help"),
        ("MATCH (a)-[e:KNOWS]->(b) FROM GRAPH ex:g RETURN b", "IN graphs(e)"),
        ("DELETE WHERE { ex:eve ?p ?o }", "DELETE e"),
    ):
        with pytest.raises(graphdb.GraphDBError) as raised:
            db.query(text)
        assert hint in (raised.value.hint or ""), text
