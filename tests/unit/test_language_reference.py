"""The language reference's examples run as written, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import graphdb

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "language.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def test_the_examples() -> None:
    said, tried = "", 0
    with graphdb.connect() as database:
        for found in BLOCK.finditer(REFERENCE.read_text(encoding="utf-8")):
            if found[1] == "graphdb":
                said, tried = database.query(found[2]).text(), tried + 1
            else:
                assert said == found[2].rstrip("\n")
    assert tried >= 13
