"""Reclaiming space: terms that nothing refers to leave the dictionary, and those behind them move up.

Ids stay dense (resources from 0, literals from :data:`LITERAL_BASE`) and in their order, so whatever is sorted by ids
stays sorted.  All tables that hold ids are written anew in one transaction, :data:`REFERENCES` says which; what is in
memory, and the pages of hashes, are of the previous ids and are dropped.  Names of blank nodes, which
:meth:`.Numbering. blanks` makes of ids, never come again: how far they are ahead is noted in the file
(:data:`~graphdb.storage.dictionary.terms.AHEAD`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.dictionary.terms import AHEAD, names_ahead, term_counts
from graphdb.storage.dictionary.text_compression import LONG
from graphdb.storage.statistics import tables

if TYPE_CHECKING:
    import duckdb

REFERENCES = {
    "triple": ("label", "subject", "object"),
    "quad": ("graph", "label", "subject", "object"),
    "edge": ("label", "subject", "object"),
    "edge_property": ("label", "subject", "object", "key", "value"),
    "reifier": ("label", "subject", "object", "reifier"),
    "edge_graph": ("label", "subject", "object", "graph"),
}
"""Tables of the graph, and their columns that hold ids, in the order by which their rows are sorted.

A negative number is no id: it stands for the default graph."""

STATISTICS = {"edge_label": ("id",), "vertex_label": ("id",), "degree": ("label",), "label_pair": ("label", "class")}
"""Tables of what is counted of ids: their rows are no reason to keep a term."""

_OTHERS = {
    "meta": ("key",),
    "prefix": ("prefix",),
    "source": ("id",),
    "continuous_query": ("number",),
    "batch": ("query", "batch"),
    "counted": ("rows",),
}
"""Tables without ids of terms."""

_LEAST = 10_000
"""Terms up to which a load reclaims nothing."""

_BLOCKS = 8
"""Free blocks (of 256 KiB) that a small file may have."""

_DICTIONARY = ("resource", "literal")

_COMPUTED = {"literal": "EXCLUDE (lexical)"}
"""SQL behind a star that leaves out the columns that DuckDB computes of others."""


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """How many terms have left, and how many there were."""

    resources: int
    literals: int
    of_resources: int
    of_literals: int

    def __bool__(self) -> bool:
        return bool(self.resources or self.literals)

    def __str__(self) -> str:
        return (
            f"reclaimed {self.resources:,} of {self.of_resources:,} resources"
            f" and {self.literals:,} of {self.of_literals:,} literals"
        )


def vacuum(connection: duckdb.DuckDBPyConnection, long: Callable[[], None] | None = None) -> Reclaimed:
    """Reclaim unused terms in the caller's transaction; afterwards all ids that anybody knows are void.

    ``long`` is called where texts are long; see :func:`graphdb.storage.dictionary.text_compression.compressing`.
    """
    before = term_counts(connection)
    number = f"row_number() OVER (PARTITION BY id >= {LITERAL_BASE} ORDER BY id ASC) - 1"
    connection.execute(
        "CREATE TEMP TABLE _graphdb_used AS SELECT id AS former,"
        f" {number} + CASE WHEN id >= {LITERAL_BASE} THEN {LITERAL_BASE} ELSE 0 END AS id"
        f" FROM (SELECT DISTINCT id FROM ({_every_reference()}) WHERE id >= 0)"
    )
    [(resources, literals)] = connection.execute(
        f"SELECT count(*) FILTER (former < {LITERAL_BASE}), count(*) FILTER (former >= {LITERAL_BASE})"
        " FROM temp._graphdb_used"
    ).fetchall()
    found = Reclaimed(before[0] - resources, before[1] - literals, *before)
    if found:
        if long is not None and _mean_length(connection) > LONG:
            long()
        tables.merge_log(connection)
        for table, columns in (REFERENCES | STATISTICS).items():
            _move(connection, table, columns)
        for table in _DICTIONARY:
            _move(connection, table, ("id",))
            connection.execute(f"DROP TABLE IF EXISTS _graphdb.{table}_key")
            connection.execute("DELETE FROM _graphdb.meta WHERE key = ?", [f"{table}_key"])
        ahead = names_ahead(connection) + found.resources
        connection.execute("INSERT OR REPLACE INTO _graphdb.meta VALUES (?, ?)", [AHEAD, str(ahead)])
    connection.execute("DROP TABLE temp._graphdb_used")
    return found


def is_sparse(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether most of the file is free, after a checkpoint: DuckDB cuts off only what is free at its end."""
    [(used, free)] = connection.execute(
        "SELECT used_blocks, free_blocks FROM pragma_database_size() WHERE database_name = current_database()"
    ).fetchall()
    return int(free) > max(int(used), _BLOCKS)


def compact(connection: duckdb.DuckDBPyConnection) -> None:
    """Write all tables again, in the caller's transaction, as they are: DuckDB takes the first blocks that are free."""
    tables.merge_log(connection)
    sorted_by = REFERENCES | STATISTICS | dict.fromkeys(_DICTIONARY, ("id",)) | _OTHERS
    for table, columns in sorted_by.items():
        _rewrite(connection, table, f"SELECT * {_COMPUTED.get(table, '')} FROM _graphdb.{table}", columns)


def is_worth(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether most terms are certainly unused: by what is counted of the graph, without reading it."""
    terms = sum(term_counts(connection))
    if terms < _LEAST:
        return False
    others = " + ".join(
        f"{len(columns)} * (SELECT count(*) FROM _graphdb.{table})"
        for table, columns in REFERENCES.items()
        if table != "triple"
    )
    [(most,)] = connection.execute(
        f"SELECT coalesce(sum(subjects + objects + 1), 0) + {others} FROM {tables.current('edge_label')}"
    ).fetchall()
    return 2 * int(most) < terms


def _every_reference() -> str:
    """Return SQL for all ids that stand anywhere in the graph."""
    return " UNION ALL ".join(
        f"SELECT {column} AS id FROM _graphdb.{table}" for table, columns in REFERENCES.items() for column in columns
    )


def _move(connection: duckdb.DuckDBPyConnection, table: str, columns: tuple[str, ...]) -> None:
    """Give the ids in some columns of a table their new numbers; rows of unused terms go."""
    joins, moved = "", []
    for i, column in enumerate(columns):
        optional = "LEFT " if column == "graph" else ""
        joins += f" {optional}JOIN temp._graphdb_used AS used{i} ON used{i}.former = stored.{column}"
        moved.append(f"coalesce(used{i}.id, stored.{column}) AS {column}")
    computed = _COMPUTED.get(table, "")
    chosen = f"SELECT stored.* {computed} REPLACE ({', '.join(moved)}) FROM _graphdb.{table} AS stored{joins}"
    _rewrite(connection, table, chosen, columns)


def _rewrite(connection: duckdb.DuckDBPyConnection, table: str, rows: str, columns: tuple[str, ...]) -> None:
    """Put other rows into a table, sorted by some columns."""
    order = ", ".join(f"{column} ASC" for column in columns)
    connection.execute(f"CREATE TEMP TABLE _graphdb_moved AS {rows} ORDER BY {order}")
    connection.execute(f"DELETE FROM _graphdb.{table}")
    connection.execute(f"INSERT INTO _graphdb.{table} FROM temp._graphdb_moved")
    connection.execute("DROP TABLE temp._graphdb_moved")


def _mean_length(connection: duckdb.DuckDBPyConnection) -> float:
    """Return how many bytes a literal's text has."""
    [(mean,)] = connection.execute("SELECT coalesce(avg(strlen(text)), 0) FROM _graphdb.literal").fetchall()
    return float(mean)
