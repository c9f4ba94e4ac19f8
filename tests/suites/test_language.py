"""The project's own scenarios: neighbours of openCypher's, each argued from the language's rules.

The expressions of those that read are computed in Python, too, and one in ``EVERY`` is asked in other words: the same rows.  ``GRAPHDB_FUZZ``
multiplies how many.
"""

from __future__ import annotations

from typing import Any

import pytest

import graphdb
from tests.fuzz import FUZZ
from tests.oracle.routes import in_python
from tests.suites.effects import Contents, effects, stored
from tests.suites.language import Scenario, row, scenarios
from tests.suites.rewrites import REWRITES
from tests.suites.tck import COMPILE_TIME

SECTIONS = sorted({scenario.section for scenario in scenarios()})
EVERY = max(1, round(8 / FUZZ))
WRITING = ("CREATE", "MERGE", "SET", "DELETE", "REMOVE")


def _give(database: graphdb.Database, given: tuple[str, ...]) -> None:
    """Make the graph of a scenario, and of nothing else."""
    for statement in ("MATCH (n) DETACH DELETE n", *given):
        database.query(statement)


def _wrong(database: graphdb.Database, scenario: Scenario, tables: list[Any]) -> str | None:
    """What is wrong with the outcome of a scenario, whose graph is stored as ``tables``; None if nothing is."""
    before = Contents.of(database) if scenario.effects is not None else None
    try:
        result = database.query(scenario.query, scenario.parameters)
        found = [row(values) for values in result]
    except graphdb.GraphDBError as error:
        if scenario.error is None:
            return f"{type(error).__name__}: {error}"
        kind, _, words = scenario.error.partition(" ")
        if type(error).__name__ != kind or words not in error.message:
            return f"{type(error).__name__}: {error}"
        if isinstance(error, COMPILE_TIME) and "$" not in scenario.query and error.excerpt is None:
            return f"without a place: {error}"
        return None if not _writes(scenario) or stored(database) == tables else "what failed changed what is stored"
    if scenario.error is not None:
        return f"no error, but {found}"
    should = scenario.rows
    if (found if scenario.ordered else sorted(found)) != (should if scenario.ordered else sorted(should)):
        return f"found {found}"
    if before is not None and scenario.effects is not None:
        changed = effects(before, Contents.of(database))
        if changed != scenario.effects:
            return f"changed {changed}"
    return None


def _writes(scenario: Scenario) -> bool:
    return any(word in scenario.query for word in WRITING)


_ODD = ("toString(n)", "ORDER BY x + 1 DESC", "9223372036854775807, 1] AS x", "rand")
"""Parts of queries whose twins differ for a reason: no row to refuse, constants that must be the same."""


def _otherwise(database: graphdb.Database, scenario: Scenario) -> str | None:
    """What is wrong when a query that reads goes another way: computed in Python or, of some, written otherwise."""
    if scenario.error is not None or any(word in scenario.query for word in (*WRITING, *_ODD)):
        return None
    ways: dict[str, Any] = {"in Python": in_python(database, scenario.query, scenario.parameters)}
    twin = list(REWRITES.values())[scenario.line // EVERY % len(REWRITES)](scenario.query)
    if twin is not None and scenario.line % EVERY == 0:
        ways[twin[0]] = database.query(twin[0], {**scenario.parameters, **twin[1]})
    for way, result in ways.items():
        found = [row(values) for values in result]
        if found != scenario.rows and (scenario.ordered or sorted(found) != sorted(scenario.rows)):
            return f"{way}: found {found}"
    return None


@pytest.mark.parametrize("section", SECTIONS)
def test_section(section: str) -> None:
    wrong = {}
    given: tuple[str, ...] | None = None
    tables: list[Any] = []
    with graphdb.connect(threads=1) as database:
        for scenario in scenarios():
            if scenario.section != section:
                continue
            if scenario.given != given:
                assert given is None or stored(database) == tables, f"something before line {scenario.line} changed it"
                _give(database, given := scenario.given)
                tables = stored(database)
            report = _wrong(database, scenario, tables) or _otherwise(database, scenario)
            if report is not None:
                wrong[f"line {scenario.line}: {scenario.query}"] = report
            if _writes(scenario) and (scenario.error is None or report is not None):
                given = None
        assert given is None or stored(database) == tables, "what only reads changed what is stored"
    assert not wrong, "\n".join(f"{query}\n    {report}" for query, report in wrong.items())
