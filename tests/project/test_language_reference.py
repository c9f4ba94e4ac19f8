"""The language reference's examples run as written, and print what it says; its pages are all in its index."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import graphdb

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "language"
PAGES = sorted(path.stem for path in REFERENCE.glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#:]+)")


@pytest.mark.parametrize("page", PAGES)
def test_the_examples(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page starts with the vertices of people.cypher, or with what it loads; ``console`` is not compared.

    Python's examples know the database as ``db``.
    """
    monkeypatch.chdir(REFERENCE)
    monkeypatch.setenv("COLUMNS", "100")
    blocks = [(found[1], found[2]) for found in BLOCK.finditer((REFERENCE / f"{page}.md").read_text(encoding="utf-8"))]
    assert any(kind == "graphdb" for kind, _ in blocks)
    said, how = "", ""
    with graphdb.connect(threads=1) as database:
        if not blocks[0][1].startswith("LOAD"):
            database.query(Path("people.cypher").read_text(encoding="utf-8"))
        for kind, text in blocks:
            if kind == "graphdb":
                try:
                    said, how = database.query(text).text(), "text"
                except graphdb.GraphDBError as error:
                    said, how = str(error), "error"
            elif kind == "python":
                example = doctest.DocTestParser().get_doctest(text, {"db": database}, page, None, None)
                assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
            elif kind in ("text", "error"):
                assert (how, said) == (kind, text.rstrip("\n"))


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    linked = set(LINK.findall((REFERENCE / "README.md").read_text(encoding="utf-8")))
    assert {f"{page}.md" for page in PAGES} - linked == {"README.md"}
    for page in PAGES:
        for link in LINK.findall((REFERENCE / f"{page}.md").read_text(encoding="utf-8")):
            assert (REFERENCE / link).exists(), f"{page}.md: {link}"
