"""Pictures in a notebook ask its kernel for the edges of a vertex: the kernel's side, and the page's in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.pictures import asset, bridge
from graphdb.pictures.bridge import Asked
from graphdb.pictures.picture import Picture
from tests.browser import Browser


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (:P {name: 'a'})-[:R]->(:P {name: 'b'})-[:R]->(:P {name: 'c'})-[:R]->(:P {name: 'd'})")
        yield database


def iri_of(db: graphdb.Database, name: str) -> str:
    return str(db.query("MATCH (x {name: $name}) RETURN iri(x)", name=name).scalar())


def test_the_edges_of_a_vertex_are_what_the_database_has_now(db: graphdb.Database) -> None:
    picture = db.query("MATCH (x {name: 'a'})-[e]->(y) RETURN x, e, y").graph()
    assert picture.expand is not None
    around = picture.expand(iri_of(db, "b"))
    assert sorted(node.properties["name"] for node in around.nodes) == ["a", "b", "c"]
    db.query("MATCH (x {name: 'b'}) CREATE (x)-[:NEW]->(:P {name: 'e'})")
    assert [edge.type for edge in picture.expand(iri_of(db, "e")).relationships] == ["NEW"]
    data = around.data()
    assert json.loads(json.dumps(data)) == data


def test_who_asks_gets_an_answer_or_what_is_wrong(db: graphdb.Database) -> None:
    published: list[list[str]] = []
    asked = Asked(published.append)
    picture = db.query("MATCH (x {name: 'a'}) RETURN x").graph()
    expand = picture.expand
    assert expand is not None
    id = asked.add(lambda iri: expand(iri).data())
    assert published == [[id]]
    answer = asked.answer({"picture": id, "number": 7, "expand": iri_of(db, "a")})
    assert answer is not None
    assert (answer["picture"], answer["number"], len(answer["graph"]["links"])) == (id, 7, 1)
    for other in ({}, {"picture": "x", "expand": "y"}, {"picture": id}, {"picture": id, "expand": 3}):
        assert asked.answer(other) is None
    nothing = asked.answer({"picture": id, "number": 8, "expand": "urn:nobody"})
    assert nothing is not None
    assert nothing["graph"]["nodes"] == []
    db.close()
    closed = asked.answer({"picture": id, "number": 9, "expand": "urn:x"})
    assert closed is not None
    assert "closed" in closed["error"]


def test_only_the_last_pictures_may_ask() -> None:
    published: list[list[str]] = []
    asked = Asked(published.append)
    ids = [asked.add(lambda iri: {}) for _ in range(bridge._MOST + 3)]
    assert published[-1] == ids[3:]
    assert asked.answer({"picture": ids[0], "number": 1, "expand": "x"}) is None


def test_a_result_does_not_hold_on_to_its_database() -> None:
    db = graphdb.connect(threads=1)
    picture = db.query("CREATE (a:P) RETURN a").graph()
    del db
    assert picture.expand is not None
    with pytest.raises(graphdb.StorageError, match="closed"):
        picture.expand("urn:x")


def test_without_a_kernel_a_page_asks_nobody(db: graphdb.Database, tmp_path: Path) -> None:
    picture = db.query("MATCH (x) RETURN x").graph()
    shown = picture._repr_html_()
    assert "graphdbLive(&quot;" not in shown
    assert "data-graphdb" not in shown
    picture.save(tmp_path / "saved.html")
    assert 'graphdbLive("' not in (tmp_path / "saved.html").read_text(encoding="utf-8")
    assert db.schema().graph().expand is None


NOTEBOOK = """<!DOCTYPE html><meta charset="utf-8"><body>%s
<script type="module">
const source = %s, answers = %s;
const heard = {};
globalThis.sent = [];
globalThis.model = {
  pictures: ["one"],
  get(name) { return this[name]; },
  on(event, call) { heard[event] = call; },
  off() {},
  send(message) {
    sent.push(message);
    const found = answers[message.expand];
    setTimeout(() => heard["msg:custom"]({ picture: message.picture, number: message.number, ...found }), 20);
  },
  change(pictures) { this.pictures = pictures; heard["change:pictures"](); },
};
const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
globalThis.start = () => { globalThis.stop = module.default.initialize({ model }); };
</script>"""
"""A page that has pictures as a notebook has, and the model of anywidget's that leads to a kernel, which answers."""

BUTTON = "[...document.querySelectorAll('button')].find(b => b.textContent === 'Expand')"
DRAWN = "document.querySelector('[role=img]').ariaLabel"
"""What the picture's frame is asked; its page is a document of its own."""


def in_frame(browser: Browser, expression: str) -> Any:
    """Evaluate an expression in the page of the first frame, which is sandboxed: by its own context."""
    tree = browser.command("Page.getFrameTree")["frameTree"]
    frame = tree["childFrames"][0]["frame"]["id"]
    context = browser.command("Page.createIsolatedWorld", frameId=frame)["executionContextId"]
    found = browser.command("Runtime.evaluate", expression=expression, contextId=context, returnByValue=True)
    return found["result"].get("value")


def until_in_frame(browser: Browser, expression: str) -> Any:
    import time

    end = time.monotonic() + 20
    while not (found := in_frame(browser, expression)):
        assert time.monotonic() < end, expression
        time.sleep(0.05)
    return found


def test_a_vertex_is_expanded_in_a_browser(
    db: graphdb.Database, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphdb.pictures.picture.registered", lambda expand: "one")
    picture = db.query("MATCH (x {name: 'a'})-[e]->(y) RETURN x, e, y").graph()
    b, a = iri_of(db, "b"), iri_of(db, "a")
    assert picture.expand is not None
    answers = {b: {"graph": picture.expand(b).data()}, a: {"error": "the database is closed"}}
    page = NOTEBOOK % (picture._repr_html_(), json.dumps(asset("bridge.js")), json.dumps(answers))
    (tmp_path / "notebook.html").write_text(page, encoding="utf-8")
    browser.requests.clear()
    browser.messages.clear()
    browser.open((tmp_path / "notebook.html").as_uri())
    browser.until("typeof start === 'function'")
    choose = "[...document.querySelectorAll('[aria-label=Vertices] button')].find(b => b.textContent === '%s')"
    until_in_frame(browser, f"!!({choose % 'b'})")
    in_frame(browser, f"({choose % 'b'}).click()")
    assert in_frame(browser, f"!!({BUTTON})") is False  # nobody is there who could answer
    browser.do("start()")
    until_in_frame(browser, f"!!({BUTTON})")  # it comes with the kernel, without a click
    assert "2 vertices and 1 edges" in in_frame(browser, DRAWN)
    in_frame(browser, f"({BUTTON}).click()")
    until_in_frame(browser, f"{DRAWN}.includes('3 vertices and 2 edges')")
    in_frame(browser, f"({choose % 'a'}).click()")
    in_frame(browser, f"({BUTTON}).click()")
    until_in_frame(
        browser, "[...document.querySelectorAll('.gdb-note')].some(n => n.textContent === 'the database is closed')"
    )
    sent = browser.do("sent")
    assert [message["expand"] for message in sent] == [b, a]
    browser.do("model.change([])")  # the kernel has forgotten it
    until_in_frame(browser, f"!({BUTTON})")
    browser.do("model.change(['one'])")
    until_in_frame(browser, f"!!({BUTTON})")
    browser.do("window.postMessage({graphdb: 'one', number: 9, expand: 'urn:forged'}, '*')")  # not from the frame
    browser.do("stop()")  # the kernel is gone
    until_in_frame(browser, f"!({BUTTON})")
    assert len(browser.do("sent")) == 2
    assert [url for url in browser.requests if url.startswith(("http", "ws"))] == []
    assert browser.messages == []


def test_pictures_differ_by_what_they_show_alone(db: graphdb.Database) -> None:
    text = "MATCH (x) RETURN x ORDER BY x.name"
    assert db.query(text).graph() == db.query(text).graph()
    assert isinstance(db.query(text).graph(), Picture)
