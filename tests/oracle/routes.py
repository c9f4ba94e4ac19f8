"""The routes that a query can go: as SQL over matches, in the interpreter, into a table, and from SQL.

Paths have two routes of their own: searched set by set, and one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import NotSupportedError
from graphdb.dispatch.queries import Queries
from graphdb.grammar.parser import parse
from graphdb.relational.lower import Lowering
from graphdb.relational.paths.run import PathRun


def never_interpreted(patch: pytest.MonkeyPatch) -> None:
    """Have no reading query interpreted."""
    whole = Queries.interpreted

    def interpreted(self: Queries, query: Any, text: str, *rest: Any) -> Any:
        if getattr(query, "writes", False):
            return whole(self, query, text, *rest)
        raise AssertionError(f"interpreted: {text}")

    patch.setattr(Queries, "interpreted", interpreted)


def path_by_path(patch: pytest.MonkeyPatch) -> None:
    """Have all paths searched for one by one."""

    def refuse(*_: object) -> None:
        raise NotSupportedError("paths are to be searched for one by one")

    for name in ("prepare_selected", "prepare_unrolled"):
        patch.setattr(PathRun, name, refuse)
    patch.setattr(Lowering, "_searched", refuse)
    patch.setattr(Lowering, "_unrolled", lambda *_: None)


def interpreted(
    db: graphdb.Database, text: str, arguments: Mapping[str, object] | None = None
) -> list[tuple[Any, ...]]:
    """The rows of a query that is interpreted as a whole."""
    return db._statements().queries.interpreted(parse(text), text, arguments or {}, None).fetchall()  # type: ignore[arg-type]


def bag(rows: Iterable[tuple[Any, ...]]) -> Counter[str]:
    """Rows in no order, where types are distinguished, and the items of lists are in no order either."""
    return Counter(repr(tuple(map(_plain, row))) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return sorted(map(_plain, value), key=repr)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in sorted(value.items())}
    return value


def every_route(db: graphdb.Database, text: str) -> dict[str, Counter[str]]:
    """The rows of a reading query by each route, as bags."""
    found = {"default": bag(db.query(text).fetchall()), "interpreted": bag(interpreted(db, text))}
    found["cypher()"] = bag(db.sql(f"SELECT * FROM cypher($$ {text} $$)").fetchall())
    db.query(f"CREATE OR REPLACE TABLE made AS {text}")
    found["table"] = bag(db.sql("FROM made").fetchall())
    return found
