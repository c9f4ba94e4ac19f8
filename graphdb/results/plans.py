"""The lines of EXPLAIN and PROFILE as a tree: matches and SQL, and below a match its steps with rows and times."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_COLUMN = re.compile(r"\S+(?: \S+)*")


def tree(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the parts of a plan: ``title``, ``facts`` (by the headers of the table of steps), and ``children``.

    >>> tree(["match on cpu", "  step  binds  rows", "  1     a         3", "  0.1 ms"])[0]["children"][0]["facts"]
    {'step': '1', 'binds': 'a', 'rows': '3'}
    """
    parts: list[dict[str, Any]] = []
    spans: list[tuple[str, int, int]] = []
    for line in lines:
        text = line.strip()
        if not text:
            spans = []
        elif not line.startswith(" ") or not parts:
            parts.append({"title": text, "facts": {}, "children": []})
            spans = []
        elif text.startswith("step  "):
            spans = _spans(line)
        elif spans and text[0].isdigit() and " ms" not in text[:12]:
            facts = _facts(line, spans)
            title = f"{facts.get('binds', '')} {facts.get('from', '')}".strip()
            parts[-1]["children"].append({"title": title, "facts": facts, "children": []})
        else:
            parts[-1]["children"].append({"title": text, "facts": {}, "children": []})
    return parts


def _spans(header: str) -> list[tuple[str, int, int]]:
    """Return the headers of a table with where each begins and ends."""
    return [(found.group(), found.start(), found.end()) for found in _COLUMN.finditer(header)]


def _facts(line: str, spans: list[tuple[str, int, int]]) -> dict[str, str]:
    """Return the cells of a row, each by the header that it stands below: numbers end with it, texts begin with it."""
    facts: dict[str, str] = {}
    for found in re.finditer(r"\S+(?: \S+)*", line):
        start, end = found.span()
        name = min(spans, key=lambda span: min(abs(span[1] - start), abs(span[2] - end)))[0]
        facts[name] = f"{facts[name]} {found.group()}" if name in facts else found.group()
    return facts
