"""Queries of several clauses as SQL over bindings, against Python: the same rows, whatever the clauses are.

The queries are those of :mod:`tests.oracle.queries`; the graphs are few and small,
with parallel paths, self loops, several labels, absent properties and multi-valued ones.  ``GRAPHDB_FUZZ`` multiplies
the number of examples.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import SAME, scaled
from tests.oracle.databases import loaded
from tests.oracle.queries import PARAMETERS, queries
from tests.oracle.routes import in_python


def _graph(seed: int) -> Iterator[str]:
    """Triples over up to eight vertices; every third has no ``age``, and the first has two nicknames.

    In the last two graphs edges have properties, too, and there are parallel ones.
    """
    dice = random.Random(seed)
    count = 4 + seed % 5
    for i in range(count):
        yield f"<urn:x:v{i}> a <urn:x:{'N' if i % 3 else 'M'}> ."
        yield f'<urn:x:v{i}> <urn:x:id> {i} ; <urn:x:name> "{"abcab"[i % 5]}" .'
        mixed = ["1", "2.5e0", '"a"', "true"][i % 4]
        yield f"<urn:x:v{i}> <urn:x:weight> {i / 2}e0 ; <urn:x:mixed> {mixed} ."
        yield f'<urn:x:v{i}> <urn:x:born> "2020-0{1 + i % 3}-01"^^<http://www.w3.org/2001/XMLSchema#date> .'
        if i % 3 != 2:
            yield f"<urn:x:v{i}> <urn:x:age> {dice.randrange(3)} ."
    yield '<urn:x:v0> a <urn:x:N> ; <urn:x:nick> "x", "y" . <urn:x:v1> <urn:x:nick> "y" .'
    for i in range(count * 2):
        annotated = ""
        if seed > 1:
            facts = [
                "",
                "",
                "{| <urn:x:age> 1 |}",
                '{| <urn:x:age> 2 ; <urn:x:name> "a" |}',
                "{| <urn:x:mixed> 1, true |}",
            ]
            annotated = f"{dice.choice(facts)} {dice.choice(['', '', '', f'~ <urn:x:again{i}>'])}"
        triple = f"<urn:x:v{dice.randrange(count)}> <urn:x:{dice.choice('EEF')}> <urn:x:v{dice.randrange(count)}>"
        yield f"{triple} {annotated} ."
    yield "<urn:x:v1> <urn:x:E> <urn:x:v1>, <urn:x:v2> . <urn:x:v2> <urn:x:F> <urn:x:v1> ."


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[graphdb.Database]]:
    with loaded(tmp_path_factory.mktemp("clauses"), map(_graph, range(4))) as found:
        yield found


_PATIENCE = 0.5
"""Seconds for Python: a few queries have millions of rows."""


# --- the comparison --------------------------------------------------------------------------------------------


def _plain(value: Any) -> str:
    """A value as text; the items of a list in no order, which collect() does not promise."""
    if isinstance(value, list):
        return f"[{', '.join(sorted(map(_plain, value)))}]"
    if isinstance(value, graphdb.Path):
        edges = [(edge.type, edge.start, edge.end) for edge in value.relationships]
        return f"{[node.iri for node in value.nodes]} {edges}"
    return value.iri if isinstance(value, graphdb.Node) else repr(value)


def _bag(rows: list[tuple[Any, ...]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(_plain, row)) for row in rows)


def _compare(database: graphdb.Database, text: str) -> None:
    note(text)
    used = {name: value for name, value in PARAMETERS.items() if f"${name}" in text}
    try:
        expected = _bag(in_python(database, text, used, timeout=_PATIENCE))
    except graphdb.QueryTimeout:
        event("too much for Python")
        return
    except graphdb.GraphDBError as error:
        event(f"error: {type(error).__name__}")
        with pytest.raises(graphdb.GraphDBError):
            database.query(text, used).fetchall()
        return
    assert _bag(database.query(text, used).fetchall()) == expected


@settings(
    max_examples=scaled(100),
    deadline=None,
    derandomize=SAME,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(text=queries(), number=st.integers(0, 3))
def test_sql_gives_the_rows_of_python(databases: list[graphdb.Database], text: str, number: int) -> None:
    _compare(databases[number], text)
