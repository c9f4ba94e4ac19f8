"""Opening a database: what can be said when it is opened, for as long as it stays open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from graphdb.common.duckdb.connection import SharedDatabase
from graphdb.common.errors import ParameterError, StorageError
from graphdb.common.progress import Progress
from graphdb.database import Database

if TYPE_CHECKING:
    import duckdb


def connect(
    path: str | os.PathLike[str] = ":memory:",
    device: str = "auto",
    memory_limit: int | str | None = None,
    threads: int | None = None,
    spill: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    subclasses: bool = False,
    progress: Progress | bool | None = None,
    untrusted: bool = False,
    device_memory: int | str | None = None,
    cluster: object = None,
    cluster_storage: str | os.PathLike[str] | None = None,
) -> Database:
    """Open a database, creating it where there is none.

    Parameters
    ----------
    path
        The DuckDB file, or ``":memory:"``.
    device
        Where patterns are matched: ``"cpu"``; ``"cuda:0"`` for a CUDA device, ``"cuda:0,1"`` for two, ``"cuda"`` for
        all there are; ``"auto"`` takes the CPU but for queries that a device, where one can be used, is expected to
        answer sooner.  ``"cuda:0 by join"``, ``"by search"`` and ``"by sums"`` pin a strategy for whatever it can run;
        EXPLAIN says why it does not run something.
    memory_limit
        Bytes, or text such as ``"4GB"``; by default four fifths of the machine's memory.
    threads
        How many threads work; by default one per core.
    spill
        The directory for what does not fit into memory; by default one beside the file.
    read_only
        Open a file for reading only, which several processes may at a time: its own rows stay as they are.  Statements
        may still read and write other files (``COPY``, ``read_csv``, ``ATTACH``): see ``untrusted``.
    subclasses
        Read a vertex label with RDF Schema: ``(x:Person)`` then matches what has the label or any class below it, as
        ``rdfs:subClassOf`` says, however far below.
    progress
        How far loads and queries are: True shows a bar on a terminal or in a notebook for what takes longer than half a
        second; a function is called some times a second, from the thread that runs the statement, with what is done,
        what there is in all, the triples read so far, and what is being done (``progress(done, total, triples,
        phase)``).  A load counts bytes of its files, a query the share (up to 1) of the match under way.
    untrusted
        For statements that strangers write: none reaches a file (but the database and what it spills), the network,
        an extension, a setting of DuckDB's, or a variable of the caller's.  ``LOAD``, ``COPY``, ``read_csv`` and its
        like, ``ATTACH`` of files, :meth:`Database.load` of paths and :meth:`Database.export` end with
        :class:`~graphdb.common.errors.AccessError`.  What they may do to the database itself, ``read_only`` says; how
        long they may take, ``timeout``; how much memory, ``memory_limit``.
    device_memory
        What is used of a CUDA device's memory at most, of each: bytes, or text such as ``"8GB"``; by default nine
        tenths of what is free there.
    cluster
        A Dask client, or the address of a scheduler (``"tcp://host:8786"``): large matches, counts and mining run on
        its workers, which open the same file for reading, as this database does then.  ``device="cuda"`` has each use
        the CUDA device that it sees first.
    cluster_storage
        A folder that all hosts reach, where workers that do not see the file find the graph: a path, or a URL of
        anything that fsspec knows (``"s3://bucket/graphs"``).  What they need of it is written there once for each
        state of the file, as Parquet; each worker fetches the edge labels that it is asked for, once.

    Raises
    ------
    GraphDBError
        The file cannot be opened, is no database, or is open in another process; or an argument is wrong.
    """
    return Database(
        path,
        device=device,
        memory_limit=memory_limit,
        threads=threads,
        spill=spill,
        read_only=read_only,
        subclasses=subclasses,
        progress=progress,
        untrusted=untrusted,
        device_memory=device_memory,
        cluster=cluster,
        cluster_storage=cluster_storage,
    )


def attach(
    connection: duckdb.DuckDBPyConnection,
    device: str = "auto",
    threads: int | None = None,
    subclasses: bool = False,
    progress: Progress | bool | None = None,
) -> Database:
    """Use the database of a connection of DuckDB's: its tables are there for SQL, and the graph is beside them.

    The connection stays the caller's, and so do its settings (``threads`` are those of matches).  What is written on
    either is seen by the other once it is committed.  A database in memory is attached once at a time.

    >>> import duckdb, graphdb
    >>> connection = duckdb.connect()
    >>> with graphdb.attach(connection) as db:
    ...     _ = db.query("CREATE (:Person {name: 'Ada'})")
    ...     _ = db.query("CREATE TABLE people AS MATCH (p:Person) RETURN p.name AS name")
    >>> connection.sql("FROM people").fetchall()
    [('Ada',)]

    Parameters
    ----------
    connection
        What ``duckdb.connect`` returned; the graph is in the database that is its current one.
    device, threads, subclasses, progress
        See :func:`connect`.

    Raises
    ------
    ParameterError
        It is no connection of DuckDB's.
    StorageError
        It is closed.
    """
    import duckdb

    if not isinstance(connection, duckdb.DuckDBPyConnection):
        raise ParameterError(f"a connection of DuckDB's is attached, found {type(connection).__name__}")
    databases = "SELECT database_name, path, readonly FROM system.main.duckdb_databases() WHERE NOT internal"
    try:
        found = {name: of for name, *of in connection.cursor().execute(databases).fetchall()}
        # To ask the connection itself may end what it has not handed over.
        name = None if len(found) == 1 else connection.sql("SELECT system.main.current_database()").fetchall()[0][0]
        [path, read_only] = found[name] if name is not None else next(iter(found.values()))
    except duckdb.Error as error:
        raise StorageError(f"the connection cannot be attached: {error}") from None
    return Database(
        path or ":memory:",
        device=device,
        threads=threads,
        read_only=read_only,
        subclasses=subclasses,
        progress=progress,
        shared=SharedDatabase(connection, name),
    )
