"""The language reference's examples run as written, and print what it says; its pages are all in its index."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphdb
from tests.project.pages import LANGUAGE, blocks_of, links_of, run_page

PAGES = sorted(path.stem for path in LANGUAGE.glob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_the_examples(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page starts with the vertices of people.cypher, or with what it loads."""
    monkeypatch.chdir(LANGUAGE)
    monkeypatch.setenv("COLUMNS", "100")
    path = LANGUAGE / f"{page}.md"
    with graphdb.connect(threads=1) as database:
        if not blocks_of(path)[0][1].startswith("LOAD"):
            database.query(Path("people.cypher").read_text(encoding="utf-8"))
        assert run_page(path, database)["graphdb"]


def test_every_page_is_in_the_index() -> None:
    index = {link for link, _ in links_of(LANGUAGE / "README.md")}
    assert {f"{page}.md" for page in PAGES} - index == {"README.md"}
