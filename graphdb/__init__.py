"""graphdb: an embedded graph database that loads RDF and answers pattern queries by subgraph matching.

>>> import graphdb
>>> db = graphdb.connect()                      # or connect("family.duckdb")
>>> db.query("RETURN 1 + 2 AS three").scalar()
3
>>> db.close()
"""

from typing import NoReturn

from graphdb._version import __version__
from graphdb.common.errors import (
    AccessError,
    BindError,
    DeviceError,
    ExecutionError,
    GraphDBError,
    LoadError,
    MemoryLimitError,
    NotSupportedError,
    ParameterError,
    ParseError,
    QueryInterrupted,
    QueryTimeout,
    StorageError,
    TypeMismatchError,
)
from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.database import Database
from graphdb.dispatch.interface.prepared import PreparedStatement
from graphdb.live.watch import Change, Watch
from graphdb.opening import attach, connect
from graphdb.results.result import Result
from graphdb.storage.loaders.tables.description import Table

__all__ = [
    "AccessError",
    "BindError",
    "Change",
    "Database",
    "DeviceError",
    "ExecutionError",
    "GraphDBError",
    "LoadError",
    "MemoryLimitError",
    "Node",
    "NotSupportedError",
    "ParameterError",
    "ParseError",
    "Path",
    "PreparedStatement",
    "QueryInterrupted",
    "QueryTimeout",
    "Relationship",
    "Result",
    "StorageError",
    "Table",
    "TypeMismatchError",
    "Watch",
    "__version__",
    "attach",
    "connect",
]


def load_ipython_extension(shell: object) -> None:
    """Make ``%cypher`` and ``%%cypher`` known: what ``%load_ext graphdb`` calls."""
    from graphdb.notebook.magics import CypherMagics

    shell.register_magics(CypherMagics)  # type: ignore[attr-defined]


def __getattr__(name: str) -> NoReturn:
    """Refuse a name that is not there, saying what is written for one that other libraries have."""
    here = {
        **dict.fromkeys(
            ("Connection", "GraphDatabase", "Graph", "Driver", "driver", "open", "create"), "connect(path)"
        ),
        **dict.fromkeys(("query", "execute", "sql", "run"), "connect(path).query(text)"),
        **dict.fromkeys(("read_csv", "read_parquet", "read_rdf", "load", "parse"), "connect(path).load(data)"),
        **dict.fromkeys(("Error", "GraphError", "DatabaseError"), "GraphDBError"),
    }.get(name)
    hint = f"; here: {here}" if here is not None else ""
    raise AttributeError(f"module 'graphdb' has no attribute {name!r}{hint}", name=name)
