"""The README's tour runs as written, and says what is really printed."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import graphdb
from graphdb import GraphDBError

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")


def test_the_tour() -> None:
    blocks = [(match[1], match[2]) for match in BLOCK.finditer(README.read_text())]
    statements = [text for kind, text in blocks if kind == "graphdb"]
    assert len(statements) >= 8
    said = ""
    with graphdb.connect() as database:
        for kind, text in blocks:
            if kind == "graphdb":
                try:
                    said = database.query(text).text()
                except GraphDBError as error:
                    said = str(error)
            elif kind in ("text", "error"):
                assert said == text.rstrip("\n")


def test_the_python_part() -> None:
    parts = [match[2] for match in BLOCK.finditer(README.read_text()) if match[1] == "python"]
    test = doctest.DocTestParser().get_doctest("\n".join(parts), {}, "README", str(README), 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.tries > 8
    assert runner.failures == 0
