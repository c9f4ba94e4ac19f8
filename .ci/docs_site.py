"""What the site has besides the pages of docs/: the reference, of docstrings; and no links that lead out of docs/."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from mkdocs.structure.files import File

REFERENCE = """# Reference

Generated from the code.

## Opening

::: graphdb.connect

::: graphdb.attach

## The database

::: graphdb.Database

::: graphdb.PreparedStatement

## Results

::: graphdb.Result

::: graphdb.Node

::: graphdb.Relationship

::: graphdb.Path

::: graphdb.results.network.EdgeIndex

::: graphdb.pictures.picture.Picture

::: graphdb.dispatch.interface.contents.Schema

## Loading

::: graphdb.Table

## Continuous queries

::: graphdb.Watch

::: graphdb.Change

## Errors

::: graphdb.common.errors
"""

_LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)]*)\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the reference."""
    files.append(File.generated(config, "reference.md", content=REFERENCE))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leave the text alone of links to the rest of the repository, which the site does not have."""
    depth = len(PurePosixPath(page.file.src_uri).parts) - 1

    def linked(found: re.Match[str]) -> str:
        return found[1] if found[2].count("../") > depth else found[0]

    return _LINK.sub(linked, markdown)
