"""Whole queries of any clauses against the oracle that evaluates them row by row (:mod:`tests.oracle.reference`).

Each is asked again with other parameters, when its plan is there already, and in a transaction that changed the graph,
before and after that is rolled back.  ``GRAPHDB_FUZZ`` multiplies the number of examples, and that of the graphs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import FUZZ, SAME, scaled
from tests.oracle.property_graphs import Opened, random_graph
from tests.oracle.queries import PARAMETERS, queries
from tests.oracle.reference_values import Unclear
from tests.oracle.walks import TooMany
from tests.oracle.writes import WRITES, Write

GRAPHS = 6 if FUZZ < 1 else 40

OTHERS: dict[str, Any] = {
    "one": 2,
    "none": 1,
    "some": 0,
    "word": "b",
    "true": False,
    "list": [0, None, 2, 1],
    "day": dt.date(2020, 1, 1),
    "map": {"age": 2, "none": 0},
}
"""Further values of the parameters, some of another type."""


@pytest.fixture(scope="module")
def opened() -> Iterator[Callable[[int], Opened]]:
    """The database of each graph, made when it is first asked for."""
    with ExitStack() as stack:
        made: dict[int, Opened] = {}

        def of(seed: int) -> Opened:
            if seed not in made:
                database = stack.enter_context(graphdb.connect(threads=1, device="cpu"))
                made[seed] = Opened.of(database, random_graph(seed))
            return made[seed]

        yield of


@settings(
    max_examples=scaled(60),
    deadline=None,
    derandomize=SAME,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(text=queries(), seed=st.integers(0, GRAPHS - 1), write=st.sampled_from(WRITES))
def test_rows_are_those_of_the_oracle(opened: Callable[[int], Opened], text: str, seed: int, write: Write) -> None:
    one = opened(seed)
    note(f"{text}\n{write.text}")
    changed = write.made(one.graph)
    try:
        expected = [one.expected(text, parameters) for parameters in (PARAMETERS, OTHERS)]
        after = one.expected(text, PARAMETERS, changed)
    except (TooMany, Unclear) as reason:
        event(f"not compared: {type(reason).__name__} {reason}")
        return
    assert [one.found(text, parameters) for parameters in (PARAMETERS, OTHERS)] == expected
    one.database.query("BEGIN")
    try:
        one.database.query(write.text)
        assert one.found(text, PARAMETERS) == after
    finally:
        one.database.query("ROLLBACK")
    assert one.found(text, PARAMETERS) == expected[0]
