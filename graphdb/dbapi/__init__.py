"""Python's DB-API 2.0 (PEP 249) over graphdb: ``graphdb.dbapi.connect("file.duckdb")``.

>>> from graphdb import dbapi
>>> connection = dbapi.connect()
>>> cursor = connection.cursor()
>>> cursor.execute("CREATE (:Person {name: $name})", {"name": "Ada"}).rowcount
-1
>>> cursor.execute("MATCH (p:Person) RETURN p.name AS name").fetchall()
[('Ada',)]
>>> cursor.execute("SELECT ? + 1", [41]).fetchone()
(42,)
>>> connection.commit()
>>> connection.close()

Statements are those of :meth:`graphdb.Database.query`.  What writes begins a transaction, which ends with ``commit()``
or ``rollback()``, unless ``autocommit`` is set.  Parameters are ``$name``, ``$1`` and so on in every statement; SQL has
``?`` besides, which is what :data:`paramstyle` says, for PEP 249 has no name for the others.
"""

from graphdb.dbapi.connection import Connection, connect
from graphdb.dbapi.cursor import Cursor
from graphdb.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from graphdb.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module; connections share a transaction, so each thread needs its own."""
paramstyle = "qmark"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
