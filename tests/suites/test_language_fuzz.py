"""Random statements of the whole language, and openCypher's scenarios with words changed: all end as they should.

That is: in time, with rows or with an error of ours that has its place and our words; and the
database is as usable afterwards, and where the statement failed as it was before.  ``GRAPHDB_FUZZ`` multiplies the
number of examples (``GRAPHDB_FUZZ=100`` runs for half an hour or so); each statement then is a new one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.grammar.parser import parse_script
from graphdb.grammar.syntax import Sql
from tests.fuzz import SAME, scaled
from tests.stops import Stopwatch
from tests.suites.grammar_texts import Writer, mutated
from tests.suites.tck import scenarios
from tests.suites.test_query_fuzz import DOCUMENTED, LEAKS, small_graph

ARGUMENTS = {"one": 1, "text": "Ada", "list": [1, None, "x"], "map": {"name": "Ada", "age": 3}}
TIMEOUT = 5.0
"""Seconds after which a statement is stopped: some of what is written has more matches than anyone could count."""

LATE = 2.0
"""Seconds of CPU time that it may take beyond that to stop."""

PLACED = (graphdb.ParseError, graphdb.BindError, graphdb.TypeMismatchError, graphdb.NotSupportedError)
"""Errors that always have a place in the text."""

MORE_GRAPH = """
CREATE (a:Person {name: 'Eve', since: 1})-[:knows {since: 2}]->(b:Robot {nick: ['x', 'y']}),
       (a)-[:knows {since: 3}]->(b), (b)-[:likes]->(a), (b)-[:likes]->(b)
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    path = tmp_path_factory.mktemp("fuzz") / "graph.nt"
    path.write_text("\n".join(small_graph()) + "\n", encoding="utf-8")
    with graphdb.connect(threads=1) as opened:
        opened.load(path)
        opened.query(MORE_GRAPH)
        yield opened


def _settings(examples: int) -> settings:
    return settings(
        max_examples=scaled(examples),
        deadline=None,
        derandomize=SAME,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


def _census(db: graphdb.Database) -> tuple[int, ...]:
    counted = "SELECT (SELECT count(*) FROM _graphdb.triple), (SELECT count(*) FROM _graphdb.edge), "
    return tuple(db.sql(counted + "(SELECT count(*) FROM _graphdb.edge_property)").fetchall()[0])


def _is_sql(text: str) -> bool:
    """Whether a text goes to DuckDB, whose words its errors then have."""
    try:
        return any(isinstance(statement, Sql) for statement in parse_script(text))
    except graphdb.GraphDBError:
        return False


def _ends_as_it_should(db: graphdb.Database, text: str) -> None:
    note(text)
    before = _census(db)
    wanted = {name: value for name, value in ARGUMENTS.items() if f"${name}" in text}
    db.sql("BEGIN")
    watch, failure = Stopwatch(), None
    try:
        db.query(text, wanted, timeout=TIMEOUT).fetchall()
    except graphdb.GraphDBError as error:
        failure = error
    taken = watch.seconds()
    db.sql("ROLLBACK")
    report = str(failure or "")
    assert taken < TIMEOUT + LATE, f"{text}\ntook {taken:.1f} s {report}"
    if not (_is_sql(text) or any(words in report for words in DOCUMENTED)):
        assert not [words for words in LEAKS if words in report], f"{text}\n{report}"
    if isinstance(failure, PLACED):
        assert failure.line is not None, f"{text}\nhas no place: {report}"
    assert _census(db) == before
    assert db.query("MATCH (n:Person) RETURN count(*)").scalar() == 4, f"after {text}"


@_settings(60)
@given(dice=st.randoms(use_true_random=False))
def test_whatever_the_grammar_writes(db: graphdb.Database, dice: random.Random) -> None:
    _ends_as_it_should(db, Writer(dice).statement())


SCENARIOS = [scenario["query"] for scenario in scenarios()]


@pytest.mark.skipif(not SCENARIOS, reason="openCypher's scenarios are not here; set GRAPHDB_SHARED")
@_settings(60)
@given(dice=st.randoms(use_true_random=False))
def test_whatever_becomes_of_a_scenario(db: graphdb.Database, dice: random.Random) -> None:
    _ends_as_it_should(db, mutated(dice.choice(SCENARIOS), SCENARIOS, dice))
