"""The continuous queries of a file: what they are called, what they ask, and what is stored for them.

A row of ``_graphdb.continuous_query`` is one; its answer is in ``_graphdb.answer_N``, its changes in
``_graphdb.changes_N``, which SQL sees as the views ``name`` and ``name_changes``; what it aggregates has its groups in
``_graphdb.groups_N`` and ``_graphdb.values_N_…``, and of what has a LIMIT ``_graphdb.first_N`` has more first rows.
``_graphdb.batch`` has the batches that changed it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import BindError, ParameterError
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

    from graphdb.grammar import syntax as ast
    from graphdb.relational.session.state import State

CHANGES = 1_000_000
"""Rows of changes that are stored of a continuous query, where its options do not say how many."""

WATCHED: set[str] = set()
"""The queries of watches of this process that are not closed (:attr:`Definition.watch`); those of others are stale."""

_LAST = "batch"
"""The key of ``_graphdb.meta`` that has the number of the last batch which changed an answer."""

_COLUMNS = "number, name, text, stored, changes, retention, since, watch"


@dataclass(frozen=True, slots=True)
class Definition:
    """One continuous query."""

    number: int
    name: str
    text: str
    stored: bool = True
    """Whether its answer is in a table."""
    changes: int = CHANGES
    """How many rows of changes are stored at least; older batches go as a whole."""
    retention: str | None = None
    """How long changes are stored, as DuckDB writes intervals; None for any time."""
    since: int = 1
    """The first batch whose changes can be asked for."""
    watch: str | None = None
    """Whose it is, if it goes with a watch of this process."""

    @property
    def answer(self) -> str:
        """The table of its answer, in SQL."""
        return f"_graphdb.answer_{self.number}"

    @property
    def log(self) -> str:
        """The table of its changes, in SQL."""
        return f"_graphdb.changes_{self.number}"

    @property
    def groups(self) -> str:
        """The table of the groups that it aggregates, in SQL."""
        return f"_graphdb.groups_{self.number}"

    def values(self, name: str) -> str:
        """Return the table of the distinct values that it aggregates of a column, in SQL."""
        return f"_graphdb.values_{self.number}_{name}"

    @property
    def first(self) -> str:
        """The table of first rows of which its LIMIT takes some, in SQL."""
        return f"_graphdb.first_{self.number}"

    @property
    def views(self) -> list[tuple[str, str]]:
        """The names that SQL sees, and the tables behind them."""
        if self.watch is not None:
            return []
        named = [(self.name, self.answer)] if self.stored else []
        return [*named, (f"{self.name}_changes", self.log)]


def read(connection: duckdb.DuckDBPyConnection) -> list[Definition]:
    """Return the continuous queries of a file, in the order in which they were created."""
    rows = execute(connection, f"SELECT {_COLUMNS} FROM _graphdb.continuous_query ORDER BY number").fetchall()
    return [Definition(*row) for row in rows]


def show_again(state: State) -> None:
    """Make the views again that are not there any more: DuckDB by itself drops them without asking us."""
    with state.hold(), state.connection.guard() as raw:
        shown = [one for definition in read(raw) for one in definition.views]
        there = _named(raw) if shown else {}
        missing = [(view, table) for view, table in shown if view.lower() not in there]
        if missing:
            with state.writing():
                state.transactions.touch()
                for view, table in missing:
                    raw.execute(f"CREATE VIEW main.{quoted(view)} AS FROM {table}")


def write(connection: duckdb.DuckDBPyConnection, definition: Definition) -> None:
    """Add a continuous query."""
    values = [getattr(definition, name) for name in _COLUMNS.split(", ")]
    execute(connection, f"INSERT INTO _graphdb.continuous_query VALUES ({', '.join('?' * len(values))})", values)


def delete(connection: duckdb.DuckDBPyConnection, definition: Definition) -> None:
    """Take a continuous query away, with its tables, and its views where they are still there."""
    there = _named(connection) if definition.views else {}
    for view, _ in definition.views:
        if there.get(view.lower()) == "view":
            connection.execute(f"DROP VIEW main.{quoted(view)}")
    for table in (definition.answer, definition.log, definition.first):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    drop_groups(connection, definition)
    for table, column in (("continuous_query", "number"), ("batch", "query")):
        connection.execute(f"DELETE FROM _graphdb.{table} WHERE {column} = ?", [definition.number])


def drop_groups(connection: duckdb.DuckDBPyConnection, definition: Definition) -> None:
    """Drop the tables of what a continuous query aggregates."""
    schema, _, prefix = definition.values("").partition(".")
    found = connection.execute(
        "SELECT table_name FROM system.main.duckdb_tables() WHERE database_name = system.main.current_database()"
        " AND schema_name = ? AND starts_with(table_name, ?)",
        [schema, prefix],
    ).fetchall()
    for table in (definition.groups, *(f"{schema}.{quoted(name)}" for (name,) in found)):
        connection.execute(f"DROP TABLE IF EXISTS {table}")


def note_of(connection: duckdb.DuckDBPyConnection, table: str) -> str | None:
    """Return the comment of a table of a continuous query; None where there is none."""
    schema, _, name = table.partition(".")
    found = connection.execute(
        "SELECT comment FROM system.main.duckdb_tables() WHERE database_name = system.main.current_database()"
        " AND schema_name = ? AND table_name = ?",
        [schema, name],
    ).fetchall()
    return found[0][0] if found else None


def note(connection: duckdb.DuckDBPyConnection, table: str, text: str) -> None:
    """Have a table have a comment."""
    escaped = text.replace("'", "''")
    connection.execute(f"COMMENT ON TABLE {table} IS '{escaped}'")


def next_number(there: Sequence[Definition]) -> int:
    """Return the number of the next continuous query, beside those that there are."""
    return max((each.number for each in there), default=0) + 1


def last_batch(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the number of the last batch that changed an answer; 0 where none has."""
    rows = execute(connection, "SELECT value FROM _graphdb.meta WHERE key = ?", [_LAST]).fetchall()
    return int(rows[0][0]) if rows else 0


def note_batch(connection: duckdb.DuckDBPyConnection, batch: int, changed: Mapping[int, tuple[int, int]]) -> None:
    """Note the number of the last batch, and how many rows it added and took away of the queries that it changed.

    The first batch makes the row of the number, which others change sooner than they replace it.
    """
    noted = "INSERT INTO _graphdb.batch SELECT unnest($queries), $batch, now(), unnest($added), unnest($removed)"
    last = "UPDATE _graphdb.meta SET value = $value WHERE key = $key"
    if batch == 1:
        last = "INSERT OR REPLACE INTO _graphdb.meta VALUES ($key, $value)"
    added, removed = zip(*changed.values(), strict=True)
    given = {"queries": [*changed], "batch": batch, "added": [*added], "removed": [*removed]}
    execute(connection, f"WITH noted AS ({noted}) {last}", {**given, "key": _LAST, "value": str(batch)})


def refuse_taken(connection: duckdb.DuckDBPyConnection, definition: Definition, text: str, at: int) -> None:
    """Raise `BindError` where something else has one of its names."""
    there = _named(connection) if definition.views else {}
    for name, _ in definition.views:
        if (kind := there.get(name.lower())) is not None:
            raise BindError(
                f"there is a {kind} '{name}' already",
                text=text,
                position=at,
                hint=f'give the query another name, or DROP {kind.upper()} "{name}" first',
            )


def _named(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return what the schema of users' tables has, by names in small letters: tables and views."""
    kinds = " UNION ALL ".join(
        f"SELECT lower({kind}_name), '{kind}' FROM system.main.duckdb_{kind}s()"
        " WHERE schema_name = 'main' AND database_name = system.main.current_database()"
        for kind in ("table", "view")
    )
    return dict(execute(connection, kinds).fetchall())


def with_options(definition: Definition, options: Sequence[ast.Option], text: str) -> Definition:
    """Return a definition with what ``WITH (…)`` says.

    Raises
    ------
    ParameterError
        There is no such option, it is given twice, or its value is none that it takes.
    """
    from dataclasses import replace

    given: dict[str, object] = {}
    for option in options:
        at = option.span.start
        if option.name not in _OPTIONS:
            from graphdb.common.errors import nearest

            near = nearest(option.name, _OPTIONS)
            hint = f"did you mean {near[0]}?" if near else f"options are {', '.join(_OPTIONS)}"
            raise ParameterError(f"unknown option {option.name}", text=text, position=at, hint=hint)
        field, kind, words = _OPTIONS[option.name]
        if field in given:
            raise ParameterError(f"the option {option.name} is given twice", text=text, position=at)
        if type(option.value) is not kind or (kind is int and int(option.value) < 0):
            raise ParameterError(f"{option.name} takes {words}", text=text, position=at)
        given[field] = option.value
    return replace(definition, **given)  # type: ignore[arg-type]


def refuse_no_interval(
    connection: duckdb.DuckDBPyConnection, definition: Definition, options: Sequence[ast.Option], text: str
) -> None:
    """Raise `ParameterError` where the option ``retention`` is no time: a later batch would fail by it."""
    given = definition.retention
    sql = "SELECT coalesce(TRY_CAST(? AS INTERVAL) >= INTERVAL 0 SECONDS, false)"
    if given is None or execute(connection, sql, [given]).fetchall()[0][0]:
        return
    at = next(option.span.start for option in options if option.name == "retention")
    hint = f"'{given}' is none, as DuckDB writes intervals"
    raise ParameterError(f"retention takes {_OPTIONS['retention'][2]}", text=text, position=at, hint=hint)


_OPTIONS: dict[str, tuple[str, type, str]] = {
    "table": ("stored", bool, "true or false"),
    "changes": ("changes", int, "a number of rows"),
    "retention": ("retention", str, "a text such as '7 days'"),
}
"""By its name: the field of a definition, the type of its values, and what these are."""
