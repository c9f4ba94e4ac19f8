"""The lines of EXPLAIN and PROFILE as a tree: what is indented more is part of what is indented less."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_COLUMN = re.compile(r"\S+(?: \S+)*")
_ROW = re.compile(r"\d+ {2,}\S")
"""How a row of a table begins: with the number of its step."""
_MISJUDGED = re.compile(r" *! ([\d,]+× (?:more|fewer))$")


def tree(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the parts of a plan: ``title``, ``facts`` (of a table's row, by the headers), and ``children``.

    An estimate that is off has the fact ``misjudged``.

    >>> tree(["match on cpu", "  step  binds  rows", "  1     a         3", "  0.1 ms"])[0]["children"][0]["facts"]
    {'step': '1', 'binds': 'a', 'rows': '3'}
    """
    parts: list[dict[str, Any]] = []
    above: list[tuple[int, list[dict[str, Any]]]] = [(-1, parts)]
    spans: list[tuple[str, int, int]] = []
    for line in lines:
        text = line.strip()
        if not text:
            spans = []
            continue
        if text.startswith("step  "):
            spans = [(found.group(), found.start(), found.end()) for found in _COLUMN.finditer(line)]
            continue
        facts: dict[str, str] = {}
        if spans and _ROW.match(text):
            facts = _facts(line, spans)
            text = " ".join(filter(None, (facts.get(name) for name in ("binds", "from", "operator", "of"))))
        else:
            spans = []
        indent = len(line) - len(line.lstrip())
        while above[-1][0] >= indent:
            above.pop()
        part: dict[str, Any] = {"title": text, "facts": facts, "children": []}
        above[-1][1].append(part)
        above.append((indent, part["children"]))
    return parts


def _facts(line: str, spans: list[tuple[str, int, int]]) -> dict[str, str]:
    """Return the cells of a row, each by the header that it stands below: numbers end with it, texts begin with it."""
    facts: dict[str, str] = {}
    if (misjudged := _MISJUDGED.search(line)) is not None:
        line = line[: misjudged.start()]
    for found in _COLUMN.finditer(line):
        start, end = found.span()
        name = min(spans, key=lambda span: min(abs(span[1] - start), abs(span[2] - end)))[0]
        facts[name] = f"{facts[name]} {found.group()}" if name in facts else found.group()
    return facts if misjudged is None else {**facts, "misjudged": misjudged[1]}
