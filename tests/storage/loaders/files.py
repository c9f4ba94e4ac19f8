"""What tests of loaders share: names, compression, files to write, loads that fail."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pathlib
from typing import Any

import pytest

from graphdb.common.errors import LoadError
from graphdb.storage import zstd

OWN = "urn:graphdb:"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

RDF_HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x/">\n'
PACK = {".gz": gzip.compress, ".zst": zstd.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(name: str, text: str | bytes) -> str:
    """Write a file in the current folder; its name."""
    pathlib.Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


def rows(db: Any) -> set[Any]:
    """All triples of the database."""
    return set(db.sql("FROM triples").fetchall())


def refused(
    db: Any, data: Any, message: str, place: tuple[int | None, int | None] = (None, None), **how: Any
) -> LoadError:
    """The error of a load that fails with this message at this line and column, and leaves nothing behind."""
    with pytest.raises(LoadError) as caught:
        db.load(data, **how)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == place
    assert not rows(db), "nothing is kept"
    assert "load_errors" not in db.tables()
    return caught.value
