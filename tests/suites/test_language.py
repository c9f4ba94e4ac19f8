"""The project's own scenarios: neighbours of openCypher's, each argued from the language's rules."""

from __future__ import annotations

import pytest

import graphdb
from tests.suites.language import Scenario, row, scenarios
from tests.suites.tck import COMPILE_TIME, census

SECTIONS = sorted({scenario.section for scenario in scenarios()})
WRITING = ("CREATE", "MERGE", "SET", "DELETE", "REMOVE")


def _give(database: graphdb.Database, given: tuple[str, ...]) -> None:
    """Make the graph of a scenario, and of nothing else."""
    for statement in ("MATCH (n) DETACH DELETE n", *given):
        database.query(statement)


def _wrong(database: graphdb.Database, scenario: Scenario) -> str | None:
    before = census(database) if scenario.effects is not None else None
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
        return None
    if scenario.error is not None:
        return f"no error, but {found}"
    should = scenario.rows
    if (found if scenario.ordered else sorted(found)) != (should if scenario.ordered else sorted(should)):
        return f"found {found}"
    if before is not None and scenario.effects is not None:
        after = census(database)
        changed = {kind: after[kind] - before[kind] for kind in before | after if after[kind] != before[kind]}
        if changed != scenario.effects:
            return f"changed {changed}"
    return None


@pytest.mark.parametrize("section", SECTIONS)
def test_section(section: str) -> None:
    wrong = {}
    there: tuple[str, ...] | None = None
    with graphdb.connect(threads=1) as database:
        for scenario in scenarios():
            if scenario.section != section:
                continue
            if scenario.given != there:
                _give(database, scenario.given)
            told = _wrong(database, scenario)
            there = None if any(word in scenario.query for word in WRITING) else scenario.given
            if told is not None:
                wrong[f"line {scenario.line}: {scenario.query}"] = told
    assert not wrong, "\n".join(f"{query}\n    {told}" for query, told in wrong.items())
