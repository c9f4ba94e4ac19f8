"""Tables for people say what a vertex without a name of its own is; tables for programs have its IRI."""

from __future__ import annotations

import pytest

import graphdb
from graphdb.common.render import MODES


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_a_vertex_of_a_property_graph_is_shown_by_what_it_is() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:P {name: 'Ada', born: 1815})-[:KNOWS {since: 1833}]->(:P:Q {name: 'Mary'}), ()-[:BARE]->()")
        result = db.query("MATCH (a:P)-[e:KNOWS]->(b) RETURN a, e, b, [a] AS l")
        lines = result.text().splitlines()
        row = lines[2].split(" │ ")
        assert {*row[0].strip().removeprefix("(:P {").removesuffix("})").split(", ")} == {"name: Ada", "born: 1815"}
        assert row[1].strip() == "[:KNOWS {since: 1833}]"
        assert row[2].strip() == "(:P:Q {name: Mary})"
        assert row[3].strip().startswith("[_:v")
        for mode, render in MODES.items():
            whole = "\n".join(render(result.columns, list(result)))
            assert ("(:P:Q {name: Mary})" in whole) == (mode in ("table", "box", "line", "markdown", "html")), mode
        [(bare,)] = db.query("MATCH (a)-[:BARE]->() RETURN a").fetchall()
        assert bare.iri in db.query("MATCH (a)-[:BARE]->() RETURN a").text()
        assert result.df()["a"][0]["id"].startswith("_:v")


def test_a_resource_of_rdf_is_shown_by_its_iri() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("PREFIX ex: <http://e.org/>; INSERT DATA { ex:a a ex:P ; ex:name 'Ada' ; ex:knows ex:b }")
        text = db.query("MATCH (a)-[e:knows]->(b) RETURN a, e").text(200)
        assert " http://e.org/a │ (http://e.org/a)-[:ex:knows]->(http://e.org/b)" in text
