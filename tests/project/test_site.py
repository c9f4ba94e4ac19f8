"""The documentation as a site: every page is in its navigation, and what the reference names is there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]


def pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for item in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else []:
        yield from pages(item)


def test_every_page_is_in_the_navigation_once() -> None:
    nav = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    written = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(nav) == sorted([*written, "reference.md"])


def test_the_reference_names_what_there_is() -> None:
    named = re.findall(r"^::: (\S+)$", (ROOT / ".ci" / "docs_site.py").read_text(encoding="utf-8"), re.M)
    assert {"graphdb.connect", "graphdb.Database", "graphdb.Result"} <= set(named)
    for name in named:
        module, _, attribute = name.rpartition(".")
        try:
            assert getattr(importlib.import_module(module), attribute).__doc__
        except AttributeError:
            assert importlib.import_module(name).__doc__
