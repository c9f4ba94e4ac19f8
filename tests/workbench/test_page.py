"""The workbench in a browser: a match drawn, a query run, an error shown, and no request off the machine."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import graphdb
from graphdb.workbench.server import Workbench
from tests.browser import CHROMIUM, Browser

CTRL, SHIFT = 2, 8


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with graphdb.connect(threads=1) as db:
        db.query(
            "CREATE (a:Person {name: 'Ada', born: 1815})-[:KNOWS]->(:Person {name: 'Mary'})-[:KNOWS]->(:Person {name: 'Eve'})"
        )
        browser = Browser(tmp_path_factory.mktemp("chromium"))
        with Workbench(db, 0) as workbench:
            browser.requests.clear()
            browser.open(workbench.url)
            browser.until("document.querySelectorAll('#labels li').length === 1")
            yield browser
            assert {urlsplit(url).hostname for url in browser.requests} == {"127.0.0.1"}
            assert browser.messages == []
        browser.close()


def typed(page: Browser, text: str) -> None:
    page.do("workbench.editor.setValue(''); workbench.editor.focus()")
    page.type(text)
    page.until(f"workbench.editor.getValue().startsWith({text[:10]!r})")


def test_the_token_is_not_left_in_the_address(page: Browser) -> None:
    assert page.do("location.hash") == ""


def test_a_query_runs_and_its_graph_is_drawn(page: Browser) -> None:
    typed(page, "MATCH (a {name: 'Ada'})-[e]->(b) RETURN a, e, b")
    page.press("Escape")
    page.press("Enter", CTRL)
    page.until("document.querySelector('#status').textContent.startsWith('1 row')")
    assert page.do("[...document.querySelectorAll('#view-table td')].map(cell => cell.textContent)") == [
        "(Ada :Person)",
        "[:KNOWS]",
        "(Mary :Person)",
    ]
    assert page.do("document.querySelector('#tab-graph').ariaSelected") == "true"
    assert page.until("drawn.state.nodes.length") == 2
    page.do(
        "[...document.querySelectorAll('[aria-label=Vertices] button')].find(b => b.textContent === 'Mary').click()"
    )
    page.do("[...document.querySelectorAll('.gdb-act')].find(b => b.textContent === 'Expand').click()")
    assert page.until("drawn.state.nodes.length === 3 && drawn.state.links.length") == 2


def test_an_error_is_underlined_and_shown(page: Browser) -> None:
    typed(page, "MATCH (a:Person) RETRN a")
    assert (
        page.until("[...document.querySelectorAll('.CodeMirror-lint-mark-error')].map(m => m.textContent).join()")
        == "RETRN"
    )
    page.press("Escape")
    page.press("Enter", CTRL)
    assert "did you mean RETURN" in page.until("document.querySelector('#mistake').textContent")
    assert page.do("document.querySelector('#mistake').getAttribute('role')") == "alert"


def test_completion(page: Browser) -> None:
    typed(page, "MATCH (a:Pe")
    assert "Person" in page.until(
        "[...document.querySelectorAll('.CodeMirror-hint')].map(hint => hint.textContent).join()"
    )
    page.press("Enter")
    assert page.until("workbench.editor.getValue().includes('Person') && workbench.editor.getValue()").startswith(
        "MATCH (a:Person"
    )


def test_profile_is_a_tree_with_times(page: Browser) -> None:
    typed(page, "MATCH (a)-[:KNOWS]->(b) RETURN count(*) AS n")
    page.press("Escape")
    page.do("document.querySelector('#profile').click()")
    page.until("document.querySelectorAll('[role=treeitem] .bar').length > 0")
    assert page.do("document.querySelector('#tab-plan').ariaSelected") == "true"
    assert " ms" in page.do("document.querySelector('.facts').textContent")


def test_a_dropped_file_is_loaded(page: Browser) -> None:
    page.do("""
        const moved = new DataTransfer();
        moved.items.add(new File(['<urn:s> <urn:isAt> <urn:o> .\\n'], 'dropped.nt'));
        document.dispatchEvent(new DragEvent('drop', {dataTransfer: moved, cancelable: true}));
    """)
    assert "1 triple, 1 new" in page.until(
        "document.querySelector('#load-told').textContent.includes('new') && document.querySelector('#load-told').textContent"
    )
    page.until("[...document.querySelectorAll('#types button')].some(button => button.textContent.includes('isAt'))")


def test_the_schema_and_the_history(page: Browser) -> None:
    typed(page, "MATCH (n) RETURN count(n) AS everything")
    page.press("Escape")
    page.press("Enter", CTRL)
    page.until("document.querySelector('#view-table').textContent.includes('everything')")
    earlier = "[...document.querySelectorAll('#history button')].map(button => button.textContent)"
    page.until(f"{earlier}.some(text => text.includes('AS everything'))")
    page.do("document.querySelector('#labels button').click()")
    assert page.do("workbench.editor.getValue()") == "MATCH (n:Person) RETURN n LIMIT 25"
    page.do("document.querySelector('#draw-schema').click()")
    page.until(
        "[...document.querySelectorAll('[aria-label=Vertices] button')].some(button => button.textContent === 'Person')"
    )


def test_the_keyboard_reaches_everything(page: Browser) -> None:
    typed(page, "RETURN 1 AS one")
    page.press("Escape")  # closes the list of completions, where it is open
    page.press("Escape")
    page.press("Tab")
    reached = []
    for _ in range(5):
        reached.append(page.do("document.activeElement.id"))
        page.press("Tab")
    assert reached[0] == "run"
    assert "answer" in reached or any(name.startswith("tab-") for name in reached)
    unnamed = "[...document.querySelectorAll('button, input, textarea, [role]')].filter(e => !e.closest('[hidden]') && !e.ariaLabel && !e.textContent.trim() && !e.labels?.length && !e.title && !['status', 'alert', 'presentation', 'tabpanel'].includes(e.role)).map(e => e.outerHTML)"
    assert page.do(unnamed) == []
