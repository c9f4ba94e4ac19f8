"""Where SQL looks for names: our statements run where our tables are, whatever a user's ``USE`` or ``SET`` chose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.duckdb.transactions import Transactions
from graphdb.common.errors import AccessError
from graphdb.relational.session.authorizer import authorize_path


@contextmanager
def visiting(connection: Connection, transactions: Transactions, database: str) -> Iterator[tuple[str, str]]:
    """Work in the main schema of a database; yields the database and schema that SQL is in, and goes back there."""
    import duckdb

    ((former, schema, path),) = connection.rows(
        "SELECT system.main.current_database(), system.main.current_schema(),"
        " system.main.current_setting('search_path')"
    )
    raw, leftovers = connection.raw, transactions.leftovers

    def back() -> None:
        if path:
            raw.execute("SET search_path = '" + path.replace("'", "''") + "'")
        else:
            raw.execute(f"USE {quoted(former)}.{quoted(schema)}")

    leftovers.append(back)
    with connection.guard():
        raw.execute(f"USE {quoted(database)}.main")
    try:
        yield (former, schema)
    finally:
        with suppress(duckdb.TransactionException):  # an error has aborted the transaction
            back()
            leftovers.remove(back)


def check_path(connection: Connection, database: str) -> None:
    """Go back to the main schema of a database, if SQL went into the schema of our tables; raise AccessError then."""
    ((schemas,),) = connection.rows("SELECT system.main.current_schemas(true)")
    try:
        authorize_path(schemas)
    except AccessError:
        with connection.guard() as raw:
            raw.execute(f"USE {quoted(database)}.main")
        raise
