"""SQLAlchemy's dialect: ``create_engine("graphdb:///file.duckdb")``, for pandas, notebooks' SQL and BI tools.

Its SQL, types and reflection are those of DuckDB's dialect; its connections are those of :mod:`graphdb.dbapi`, so
pattern queries run beside SQL.  ``text()`` reads ``:Person`` as a parameter: pattern queries go to ``exec_driver_sql``,
which ``pandas.read_sql`` takes by itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import ModuleType
from typing import Any

from duckdb_sqlalchemy import Dialect
from sqlalchemy import Uuid, util
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.dialects.postgresql.base import PGExecutionContext
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import ArgumentError

_READERS: dict[str, Callable[[str], object]] = {
    "device": str,
    "device_memory": str,
    "memory_limit": str,
    "threads": int,
    "spill": str,
    "read_only": lambda text: _boolean("read_only", text),
    "subclasses": lambda text: _boolean("subclasses", text),
    "untrusted": lambda text: _boolean("untrusted", text),
}
"""The options of a URL (``graphdb:///file.duckdb?read_only=true``), and how their texts are read."""


class _Uuid(UUID[Any]):
    """UUIDs, which results have as texts."""

    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], Any] | None:
        if not self.as_uuid:
            return None
        return lambda value: uuid.UUID(value) if isinstance(value, str) else value


class GraphDBDialect(Dialect):
    """The dialect of ``graphdb://`` URLs; its name stays DuckDB's, whose SQL it writes."""

    driver = "graphdb"
    supports_statement_cache = True
    execution_ctx_cls = PGExecutionContext  # type: ignore[assignment]  # DuckDB's reads its own cursors' fields
    insert_returning = update_returning = delete_returning = True
    supports_sane_multi_rowcount = True
    colspecs = util.update_copy(Dialect.colspecs, {Uuid: _Uuid, UUID: _Uuid})

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("paramstyle", "numeric_dollar")  # what patterns and SQL both have
        super().__init__(*arguments, **options)

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the DB-API module."""
        from graphdb import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the arguments of :func:`graphdb.dbapi.connect` for a URL."""
        unknown = set(url.query) - set(_READERS)
        if unknown:
            raise ArgumentError(f"graphdb has no option {', '.join(sorted(unknown))}; it has {', '.join(_READERS)}")
        options = {name: _READERS[name](str(text)) for name, text in url.query.items()}
        return (url.database or ":memory:",), options

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Open a connection of the DB-API."""
        return self.loaded_dbapi.connect(*arguments, **options)

    def do_begin(self, dbapi_connection: Any) -> None:
        """Do nothing: what changes something begins a transaction."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back the transaction, if there is one."""
        dbapi_connection.rollback()

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a statement with many sets of parameters; DuckDB's dialect would register a table with its connection."""
        DefaultDialect.do_executemany(self, cursor, statement, parameters, context)  # type: ignore[no-untyped-call]

    def _routes_insertmanyvalues_to_register(self, context: Any) -> bool:
        return False

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        """Whether an error says that the connection is closed."""
        return "the database is closed" in str(e) or "the connection is closed" in str(e)

    def get_schema_names(self, connection: Connection, **options: Any) -> list[str]:
        """Return the schemas but graphdb's own."""
        names = super().get_schema_names(connection, **options)
        return [name for name in names if name.rpartition(".")[2].strip('"') != "_graphdb"]


def _boolean(name: str, text: str) -> bool:
    found = {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if found is None:
        raise ArgumentError(f"the option {name} is true or false, found {text!r}")
    return found
