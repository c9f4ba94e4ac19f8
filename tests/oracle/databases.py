"""Databases of small graphs that all tests of a module share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import graphdb


@contextmanager
def loaded(folder: Path, texts: Iterable[Iterable[str]]) -> Iterator[list[graphdb.Database]]:
    """A database for each graph, given as lines of Turtle; files are written to ``folder``."""
    with ExitStack() as stack:
        found = []
        for number, lines in enumerate(texts):
            path = folder / f"{number}.ttl"
            path.write_text("\n".join(lines), encoding="utf-8")
            database = stack.enter_context(graphdb.connect(threads=1, device="cpu"))
            database.load(path)
            found.append(database)
        yield found
