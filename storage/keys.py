"""Finding some terms in a large dictionary: a table of hashes, so that a small append does not read all the strings.

Next to a table of terms, ``resource`` or ``literal``, stands one of (hash, id), made when it is first worth it (for
few terms at once; for more, which gain less, when they are looked for a second time) and sorted by hash in runs:
DuckDB's zone maps then say which part of a run can hold a hash.  What was appended since the last run is read as it is,
and becomes a run itself when it is long enough (a log-structured merge without the merging; O'Neil et al., 1996).  The
hash is DuckDB's own, so a file that another version of DuckDB wrote gets new runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

FEW = 32
"""Terms up to which single ones are looked for."""

SOME = 10_000
"""Terms up to which hashes are looked for; more are joined with the whole dictionary."""

_WANTED = "wanted"
"""Stands where DuckDB's version does, once hashes would have been of use."""

RUN = 122_880
"""Terms that make a run: as many as a row group of DuckDB's has."""


def narrowed(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: tuple[str, ...],
    next_id: int,
    base: int,
    terms: str,
    count: int,
    given: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, Any]] | None:
    """Return SQL, with its parameters, for the rows of a dictionary table that can be among some terms.

    Parameters
    ----------
    table
        ``resource`` or ``literal``; its ids go from ``base`` to ``next_id - 1``, in the order of the table.
    columns
        What a term is told by.
    terms, given
        A relation with these columns and its parameters.
    count
        How many rows it has, at most :data:`SOME`.

    Returns
    -------
    None where the dictionary is so small that it is read as quickly, or has no hashes and few ask for them.
    """
    if next_id - base < (RUN if count <= FEW else 4 * RUN):
        return None
    behind = _covered(connection, table, columns, next_id, base, at_once=count <= FEW)
    if behind is None:
        return None
    row = f"SELECT id, {', '.join(columns)} FROM _graphdb.{table}"
    if count > FEW:
        hashed = f"SELECT hash({', '.join(columns)}) AS hash FROM {terms}"
        held = connection.execute(
            f"SELECT DISTINCT id FROM _graphdb.{table}_key JOIN ({hashed}) USING (hash)", given
        ).fetchnumpy()
        some = f"{row} WHERE id IN (SELECT unnest($ids::BIGINT[]))"  # a join: only the strings of these are unpacked
        return f"({row} WHERE id >= $behind UNION ALL {some})", {"behind": behind, "ids": held["id"].tolist()}
    hashes = connection.execute(f"SELECT hash({', '.join(columns)}) FROM {terms}", given).fetchall()
    # Values, not a join with the terms: they are compared with the zone maps before anything is read.
    found = connection.execute(
        f"SELECT DISTINCT id FROM _graphdb.{table}_key WHERE hash IN ({', '.join('?' * len(hashes))})",
        [hash for (hash,) in hashes],
    ).fetchall()
    ids = {f"id{i}": id for i, (id,) in enumerate(found)}
    # Single ids: where several are asked for at once, DuckDB unpacks the strings of all others too.
    relation = " UNION ALL ".join([f"{row} WHERE id >= $behind", *(f"{row} WHERE id = ${name}" for name in ids)])
    return f"({relation})", {"behind": behind, **ids}


def _covered(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: tuple[str, ...],
    next_id: int,
    base: int,
    *,
    at_once: bool,
) -> int | None:
    """Return the first id that has no hash, once the runs are long enough.

    None where there are none, and it is not said that they be made ``at_once`` but for the first time that they be.
    """
    import duckdb

    note = f"{table}_key"
    known = connection.execute("SELECT value FROM _graphdb.meta WHERE key = ?", [note]).fetchall()
    version, behind = known[0][0].split() if known else ("", "")
    if not known and not at_once:
        connection.execute("INSERT INTO _graphdb.meta VALUES (?, ?)", [note, f"{_WANTED} {base}"])
        return None
    first = int(behind) if version == duckdb.__version__ else base
    if first == base:
        connection.execute(f"CREATE OR REPLACE TABLE _graphdb.{note} (hash UBIGINT NOT NULL, id BIGINT NOT NULL)")
    if next_id - first < RUN:
        return first
    connection.execute(
        f"INSERT INTO _graphdb.{note} SELECT hash({', '.join(columns)}) AS hash, id FROM _graphdb.{table}"
        " WHERE id >= $first ORDER BY hash ASC, id ASC",
        {"first": first},
    )
    connection.execute("INSERT OR REPLACE INTO _graphdb.meta VALUES (?, ?)", [note, f"{duckdb.__version__} {next_id}"])
    return next_id
