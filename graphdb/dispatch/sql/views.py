"""Views over patterns: ``CREATE VIEW v AS MATCH …``.

DuckDB has a view of that name with columns of the same types, so that its catalog, DROP, transactions and reflection
know it; its comment is the query.  While SQL that names it runs here, the rows of the query are a temporary view that
stands before it; whoever queries it without graphdb gets an error that says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import AccessError, NotSupportedError
from graphdb.dispatch.arguments import parameters_named
from graphdb.dispatch.sql.pushdown import Asked, asked, parsed, pushed
from graphdb.grammar import syntax as ast
from graphdb.relational.session.authorizer import authorize_name, view_change
from graphdb.relational.session.state import State

if TYPE_CHECKING:
    from graphdb.common.arrow import Table
    from graphdb.results.result import Result

_MARK = "graphdb: "
"""What the comment of such a view begins with; the query follows."""

_DEFINES = re.compile(
    r"\s*(?:CREATE\b.*?\b(?:VIEW|MACRO)\b|DROP\b|ALTER\b|COMMENT\b|DESC(?:RIBE)?\b|SHOW\b)", re.I | re.S
)
"""Statements that are about views, not of their rows."""

Cypher = Callable[[str, Mapping[str, object], float | None], "Result"]
"""Runs a pattern query with its parameters, within so many seconds."""


class Views:
    """Makes views over patterns, and gives SQL their rows."""

    def __init__(self, state: State, cypher: Cypher) -> None:
        self._state = state
        self._cypher = cypher

    def create(self, statement: ast.CreateView, text: str, timeout: float | None, current: tuple[str, ...]) -> str:
        """Make a view, in the schema ``current`` where none is named; return what to tell of it.

        Raises
        ------
        NotSupportedError
            The view is temporary, or its query has parameters or writes.
        """
        query = text[statement.query.span.start : statement.query.span.end]
        self._check(statement, query, text)
        connection = self._state.connection
        parts = statement.name if len(statement.name) > 1 else (*current, *statement.name)
        authorize_name(parts)
        name = ".".join(map(quoted, parts))
        called = ".".join(statement.name)
        if statement.replace:
            self._refuse_answers("CREATE", statement.name, text, statement.span.start)
        if statement.if_not_exists and self._exists(parts):
            return f"view {called} exists"
        rows = self.rows(query, {}, Asked(limit=0), timeout)
        view = connection.temporary()
        with connection.view(view, rows):
            columns = connection.rows(f"DESCRIBE FROM {view}")
        shown = ", ".join(f"CAST(NULL AS {type}) AS {quoted(column)}" for column, type, *_ in columns)
        refusal = _text(f"{called} is a view over a pattern: graphdb answers it, by its name without a schema")
        made = "CREATE OR REPLACE VIEW" if statement.replace else "CREATE VIEW"
        try:
            with self._state.transactions.atomic(), connection.guard() as raw:
                self._state.transactions.touch()
                raw.execute(f"{made} {name} AS SELECT {shown} FROM (SELECT 1) WHERE error({refusal}) IS NULL")
                raw.execute(f"COMMENT ON VIEW {name} IS {_text(_MARK + query)}")
        finally:
            connection.file.pattern_views = None
        return f"view {called}"

    def _check(self, statement: ast.CreateView, query: str, text: str) -> None:
        what = None
        if statement.temporary:
            what = "a temporary view over a pattern"
        elif parameters_named(query):
            what = "a view with parameters"
        elif isinstance(statement.query, ast.Composite) and statement.query.writes:
            what = "a view that writes"
        if what is not None:
            hint = "CREATE TABLE … AS"
            raise NotSupportedError(f"{what} is not supported", text=text, position=statement.span.start, hint=hint)

    def refuse_answers(self, sql: str) -> None:
        """Refuse SQL that takes away what shows the answer of a continuous query, which would go on unseen.

        Raises
        ------
        AccessError
            It drops, renames or replaces such a view.
        """
        change = view_change(sql)
        if change is not None:
            self._refuse_answers(change.verb, change.parts, sql, change.position)

    def _refuse_answers(self, verb: str, parts: tuple[str, ...], text: str, position: int) -> None:
        if not self._is_main(verb, parts):
            return
        query = next((query for query, view in self._answers() if view.lower() == parts[-1].lower()), None)
        if query is not None:
            raise AccessError(
                f"the view '{parts[-1]}' shows the continuous query '{query}', which would go on without it",
                text=text,
                position=position,
                hint=f"DROP CONTINUOUS QUERY {query} drops the query and its views",
            )

    def _is_main(self, verb: str, parts: tuple[str, ...]) -> bool:
        """Whether a name is one in the schema of the users' tables of the database, as DuckDB would find it."""
        home = self._state.database.lower()
        connection = self._state.connection
        names = [part.lower() for part in parts]
        [(database, schema)] = connection.rows("SELECT system.main.current_database(), system.main.current_schema()")
        if len(names) == 3:
            return names[:2] == [home, "main"]
        if len(names) == 2:
            return names[0] == home or (names[0] == "main" and bool(database.lower() == home))
        here: bool = database.lower() == home
        if not here or schema == "main":
            return here
        there = (
            "SELECT 1 FROM system.main.duckdb_views() WHERE database_name = $database AND schema_name = $schema"
            " AND lower(view_name) = $name"
        )
        given = {"database": database, "schema": schema, "name": names[0]}
        return verb != "CREATE" and not connection.rows(there, given)  # DuckDB looks in main after that

    def _answers(self) -> list[tuple[str, str]]:
        """Return the names of continuous queries, each with one of a view that shows it."""
        there = (
            "SELECT 1 FROM system.main.duckdb_tables() WHERE database_name = $home AND schema_name = '_graphdb'"
            " AND table_name = 'continuous_query'"
        )
        if not self._state.connection.rows(there, {"home": self._state.database}):
            return []
        from graphdb.live.definitions import read

        with self._state.at_home(), self._state.connection.guard() as raw:
            return [(each.name, view) for each in read(raw) for view, _ in each.views]

    def _exists(self, parts: tuple[str, ...]) -> bool:
        sql = "SELECT 1 FROM system.main.duckdb_views() WHERE view_name = $name"
        return bool(self._state.connection.rows(sql, {"name": parts[-1]}))

    def changed(self) -> None:
        """Look for views anew: SQL may have made or dropped some."""
        self._state.connection.file.pattern_views = None

    def rows(self, query: str, given: Mapping[str, object], asked: Asked, timeout: float | None) -> Table:
        """Return the rows of a pattern query with its parameters, or those of them that are asked for."""

        def types() -> dict[str, str]:
            text, _ = pushed(query, Asked(limit=0), dict)
            return {name.lower(): type for name, type, *_ in self._cypher(text, given, timeout).description or ()}

        text, values = pushed(query, asked, types)
        return self._cypher(text, {**given, **values}, timeout).presented()

    def enter(self, sql: str, values: Mapping[str, object], stack: ExitStack, timeout: float | None) -> None:
        """Let SQL read the views over patterns that it names, until ``stack`` is left."""
        connection = self._state.connection
        known = connection.file.pattern_views
        if known is None:
            known = connection.file.pattern_views = self._known()
        if not known or _DEFINES.match(sql) is not None:
            return
        named = [name for name in known if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.I) is not None]
        tree = parsed(connection, sql) if named else None
        for name in named:
            rows = self.rows(known[name], {}, asked(tree, name, values), timeout)
            view = connection.temporary()
            stack.enter_context(connection.view(view, rows))
            stack.enter_context(connection.temporary_table(quoted(name), "VIEW"))
            with connection.guard() as raw:
                raw.execute(f"CREATE TEMP VIEW {quoted(name)} AS FROM {view}")

    def _known(self) -> dict[str, str]:
        sql = "SELECT view_name, comment FROM system.main.duckdb_views() WHERE starts_with(comment, $mark)"
        return {name: text.removeprefix(_MARK) for name, text in self._state.connection.rows(sql, {"mark": _MARK})}


def _text(value: str) -> str:
    """Return a string of SQL, for a place where it takes no parameter."""
    return "'" + value.replace("'", "''") + "'"
