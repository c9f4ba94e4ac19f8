"""Pages of documentation: their fenced blocks, run in order and compared with what stands below them, and their links."""

from __future__ import annotations

import doctest
import re
from collections import Counter
from pathlib import Path

import graphdb

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
LANGUAGE = DOCS / "language"

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page: their kinds and texts."""
    return [(found[1], found[2]) for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def links_of(page: Path) -> list[tuple[str, str]]:
    """The links of a page within the repository: (path or nothing, anchor or nothing)."""
    return LINK.findall(page.read_text(encoding="utf-8"))


def _steady(text: str) -> str:
    """Return what EXPLAIN and loads print without what differs from run to run; lines end where their text does."""
    text = re.sub(r"\b[\d.]+ (?:ms|s)\b", "0 s", text)
    return re.sub(r" +$", "", re.sub(r"\b(_[a-z]+)\d+\b", r"\1", text), flags=re.M)


def run_page(page: Path, database: graphdb.Database) -> Counter[str]:
    """Run the blocks of a page, and return how many statements and examples of Python there were.

    A ``graphdb`` block prints the ``text`` or the ``error`` that follows it, or a ``console`` but for times and numbers of
    relations; one that is followed by none succeeds.
    ``python`` blocks are doctests in one namespace, where ``db`` is the database; other blocks are not compared.
    """
    ran: Counter[str] = Counter()
    names: dict[str, object] = {"db": database}
    runner = doctest.DocTestRunner(verbose=False)
    printed: tuple[str, str] | None = None
    for kind, text in [*blocks_of(page), ("end", "")]:
        if kind == "console":
            assert printed is not None
            assert _steady(printed[1]) == _steady(text.rstrip("\n"))
            printed = None
            continue
        if kind in ("text", "error"):
            if printed is not None:  # a text that follows no statement is a drawing
                assert printed == (kind, text.rstrip("\n"))
            printed = None
            continue
        assert printed is None or printed[0] == "text", printed[1]
        printed = None
        if kind == "graphdb":
            ran["graphdb"] += 1
            try:
                printed = "text", database.query(text).text()
            except graphdb.GraphDBError as error:
                printed = "error", str(error)
        elif kind == "python":
            test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
            assert runner.run(test, clear_globs=False).failed == 0
            names.update(test.globs)  # a doctest runs in a copy
            ran["python"] += len(test.examples)
    if isinstance(other := names["db"], graphdb.Database):
        other.close()
    return ran
