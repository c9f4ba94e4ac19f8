"""A database in a file whose tables tests of loads look at."""

from __future__ import annotations

import gzip
import pathlib
from typing import Any

import duckdb

from graphdb.common.values.terms import RDF_TYPE
from graphdb.storage.catalog import Catalog
from graphdb.storage.loaders import load as load_module
from graphdb.storage.loaders.load import LoadReport
from graphdb.storage.loaders.sources import Options

XSD = "http://www.w3.org/2001/XMLSchema#"

PEOPLE = f"""\
<ex:ada> <{RDF_TYPE}> <ex:Person> .
<ex:ada> <ex:knows> <ex:bob> .
<ex:ada> <ex:knows> _:who .
<ex:ada> <ex:name> "Ada" .
<ex:ada> <ex:name> "Ada"@en .
<ex:bob> <ex:name> "Bob" .
<ex:bob> <ex:age> "41"^^<{XSD}integer> .
<ex:bob> <{RDF_TYPE}> <ex:Person> .
_:who <ex:age> "abc"^^<{XSD}integer> .
<ex:ada> <ex:knows> <ex:bob> .
"""
"""Ten lines, nine triples."""


def load(connection: Any, catalog: Catalog, data: Any, progress: Any = None, **options: Any) -> LoadReport:
    return load_module.load(connection, catalog, data, Options(**options), progress)


class Loaded:
    """A database in a file, and short ways to load into it and look at it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.connection = duckdb.connect(folder / "test.duckdb")
        self.catalog = Catalog(self.connection)
        self.catalog.create()

    def write(self, text: str | bytes, name: str = "data.nt") -> pathlib.Path:
        path = self.folder / name
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    def load(self, text: str | bytes, name: str = "data.nt", **options: Any) -> LoadReport:
        return load(self.connection, self.catalog, self.write(text, name), **options)

    def rows(self, sql: str) -> list[Any]:
        return self.connection.execute(sql).fetchall()

    def everything(self) -> dict[str, list[Any]]:
        """All rows of all tables."""
        tables = self.rows("SELECT schema_name, table_name FROM duckdb_tables()")
        return {f"{s}.{t}": self.rows(f'SELECT * FROM "{s}"."{t}" ORDER BY ALL') for s, t in tables}
