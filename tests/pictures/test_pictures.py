"""Pictures of results and schemas: what is in the page, and what a browser shows of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.pictures import MOST
from graphdb.pictures.picture import Picture
from tests.browser import Browser

NASTY = "</script><img src=https://example.org/x onerror=alert(1)>\u2028'\"&"


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query(
            "CREATE (a:Person {name: 'Ada', born: 1815})-[:KNOWS {since: 1833}]->(b:Person {name: $name}), (a)-[:KNOWS]->(b), "
            "(b)-[:KNOWS]->(b), (a)-[:LIVES_IN]->(:City {name: 'London'})",
            name=NASTY,
        )
        yield database


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'graphdbPicture\(document.getElementById\("picture"\), (.*)\);</script>', page)
    assert found is not None
    read: dict[str, Any] = json.loads(found[1])
    return read


class Addresses(HTMLParser):
    """What a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "poster")]


def test_the_page_has_the_graph_and_asks_for_nothing(db: graphdb.Database) -> None:
    page = db.query("MATCH (a)-[e]->(b) RETURN a, e, b").graph().html()
    data = data_of(page)
    assert sorted(node["caption"] for node in data["nodes"]) == sorted(["Ada", "London", NASTY])
    assert sorted(link["type"] for link in data["links"]) == ["KNOWS", "KNOWS", "KNOWS", "LIVES_IN"]
    assert {link["source"] for link in data["links"]} <= {node["id"] for node in data["nodes"]}
    assert [link["properties"] for link in data["links"] if link["properties"]] == [{"since": "1833"}]
    parser = Addresses()
    parser.feed(page)
    assert parser.found == []
    assert "default-src 'none'" in page


def test_large_results_are_cut_and_say_so(db: graphdb.Database) -> None:
    db.query("UNWIND range(1, $n) AS i CREATE (:Many {i: i})-[:NEXT]->(:Many)", n=MOST)
    result = db.query("MATCH (a:Many)-[e]->(b) RETURN a, e, b")
    picture = result.graph()
    assert len(picture.nodes) == MOST
    ends = {node.iri for node in picture.nodes}
    assert all(edge.start in ends and edge.end in ends for edge in picture.relationships)
    assert picture.omitted == 3 * MOST - len(picture.nodes) - len(picture.relationships)
    assert len(result.graph(10).nodes) == 10
    assert result.graph(10 * MOST).omitted == 0


def test_captions_and_repr() -> None:
    picture = Picture([graphdb.Node("http://x.org/a#b", ("L",), {"k": 1})], [])
    assert repr(picture) == "<graphdb.Picture: 1 vertex, 0 edges>"
    assert picture.data()["nodes"][0]["caption"] == "b"
    shown = picture._repr_html_()
    assert shown.startswith("<iframe")
    assert "<script" not in shown


def test_the_schema_is_drawn(db: graphdb.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = Path(db.schema().show())
    try:
        data = data_of(path.read_text(encoding="utf-8"))
    finally:
        path.unlink()
    assert [Path(url.removeprefix("file://")) for url in opened] == [path]
    assert {node["id"] for node in data["nodes"]} == {"Person", "City"}
    assert {(link["source"], link["type"], link["target"], link["properties"]["edges"]) for link in data["links"]} == {
        ("Person", "KNOWS", "Person", "3"),
        ("Person", "LIVES_IN", "City", "1"),
    }


def test_rows_without_elements_have_no_picture(db: graphdb.Database) -> None:
    with pytest.raises(graphdb.ExecutionError, match="no vertices"):
        db.query("MATCH (a) RETURN a.name").graph()


def test_a_browser_draws_it(db: graphdb.Database, browser: Browser, tmp_path: Path) -> None:
    db.query("MATCH (a)-[e]->(b) RETURN a, e, b").graph().save(tmp_path / "picture.html")
    browser.requests.clear()
    browser.open((tmp_path / "picture.html").as_uri())
    painted = (
        "(() => { const c = document.querySelector('canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n++; return n })()"
    )
    assert browser.until(painted) > 100
    assert browser.do("document.querySelector('[role=img]').ariaLabel").startswith("A graph of 3 vertices and 4 edges")
    assert browser.do("[...document.querySelectorAll('[aria-label=Labels] button')].map(b => b.textContent)") == [
        "Person 2",
        "City 1",
    ]
    browser.do(
        "[...document.querySelectorAll('[aria-label=Vertices] button')].find(b => b.textContent === 'Ada').click()"
    )
    assert "1815" in browser.do("document.querySelector('[aria-live]').textContent")
    browser.do("document.querySelector('[aria-label=Labels] button').click()")
    assert browser.do("document.querySelectorAll('[aria-label=Vertices] button').length") == 1
    assert browser.requests == [(tmp_path / "picture.html").as_uri()]
    assert browser.messages == []


def test_hovering_and_dragging(db: graphdb.Database, browser: Browser, tmp_path: Path) -> None:
    page = db.query("MATCH (a:City) RETURN a").graph().html()
    page = page.replace("graphdbPicture(document", "window.drawn = graphdbPicture(document")
    (tmp_path / "one.html").write_text(page, encoding="utf-8")
    browser.open((tmp_path / "one.html").as_uri())
    browser.until(
        "drawn.state.nodes[0].x !== undefined && drawn.state.settled !== undefined || performance.now() > 2500"
    )
    x, y = browser.do(
        "(() => { const p = drawn.graph.graph2ScreenCoords(drawn.state.nodes[0].x, drawn.state.nodes[0].y); return [p.x, p.y] })()"
    )
    browser.mouse(x - 30, y - 30)
    browser.mouse(x, y)
    tip = "document.querySelector('.gdb-tip') && document.querySelector('.gdb-tip').textContent"
    assert "London" in browser.until(tip)
    browser.mouse(x, y, "mousePressed", button="left", buttons=1, clickCount=1)
    for step in (10, 30, 60):
        browser.mouse(x + step, y, button="left", buttons=1)
    browser.mouse(x + 60, y, "mouseReleased", button="left", clickCount=1)
    assert browser.until("drawn.state.nodes[0].fx !== undefined")


def test_a_thousand_elements_are_smooth(db: graphdb.Database, browser: Browser, tmp_path: Path) -> None:
    db.query("UNWIND range(0, 499) AS i CREATE (:Many {i: i})")
    db.query("MATCH (a:Many), (b:Many) WHERE b.i = (a.i * 7 + 3) % 500 CREATE (a)-[:NEXT]->(b)")
    picture = db.query("MATCH (a:Many)-[e]->(b) RETURN a, e, b").graph()
    assert len(picture.nodes) + len(picture.relationships) == 1000
    picture.save(tmp_path / "many.html")
    browser.open((tmp_path / "many.html").as_uri())
    frames = "new Promise(done => { let n = 0; const f = () => ++n < 30 ? requestAnimationFrame(f) : done(n); requestAnimationFrame(f) })"
    assert browser.do(frames) == 30
    assert browser.do("document.querySelectorAll('[aria-label=Vertices] button').length") == 200
    assert browser.messages == []


def test_the_shipped_library_is_whole_and_has_its_licence() -> None:
    folder = Path(graphdb.__file__).parent / "pictures" / "assets"
    assert "Version 1.52.0 force-graph" in (folder / "force-graph.min.js").read_text(encoding="utf-8")[:100]
    licences = (folder / "LICENSES.txt").read_text(encoding="utf-8")
    for package in ("force-graph 1.52.0", "d3-force-3d", "tinycolor2", "preact"):
        assert package in licences
