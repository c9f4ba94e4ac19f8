"""openCypher's scenarios written otherwise: the rows, errors and side effects are the same.

``GRAPHDB_FUZZ`` multiplies how many are asked: 32 asks all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.datasets import SHARED
from tests.fuzz import FUZZ
from tests.suites.rewrites import REWRITES
from tests.suites.tck import Runner, scenarios

EVERY = max(1, round(32 / FUZZ))
"""One scenario of so many."""


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    found = Runner()
    yield found
    found.close()


@pytest.mark.skipif(not scenarios(), reason=f"openCypher's scenarios are not in {SHARED}")
@pytest.mark.parametrize("name", REWRITES)
def test_twins(runner: Runner, name: str) -> None:
    wrong, asked = {}, 0
    for scenario in scenarios()[list(REWRITES).index(name) :: EVERY]:
        twin = REWRITES[name](scenario["query"])
        if twin is None:
            continue
        if name == "with_parameters" and scenario["expect"]["kind"] == "error":
            continue  # a type that is wrong may never be looked at when it runs: true OR $number
        asked += 1
        report = runner.run(scenario, twin)
        if report is not None:
            wrong[scenario["id"], twin[0]] = report
    assert not wrong
    assert asked > 2


def test_twins_are_other_texts() -> None:
    """The rewriting itself, without the shared scenarios."""
    text = "MATCH (a:A {x: 1})-[r:R]->(b) WHERE a.x = b.y RETURN a.x AS y, 'MATCH' AS t"
    found = {name: rewrite(text) for name, rewrite in REWRITES.items()}
    assert found["other_case"] is not None
    assert found["other_case"][0].startswith("match /* - */\n\t(a:A")
    assert "'MATCH'" in found["other_case"][0]
    assert found["renamed"] == (
        "MATCH (zz_a:A {x: 1})-[zz_r:R]->(zz_b) WHERE zz_a.x = zz_b.y RETURN zz_a.x AS zz_y, 'MATCH' AS zz_t",
        {},
    )
    assert found["starred"] == (text.replace(" RETURN", " WITH *  RETURN"), {})
    assert found["after_one"] == ("WITH 1 AS `#one` " + text, {})
    assert found["with_parameters"] == (
        text.replace("1", "$literal0").replace("'MATCH'", "$literal1"),
        {"literal0": 1, "literal1": "MATCH"},
    )
    assert found["mirrored"] == (text.replace("(a:A {x: 1})-[r:R]->(b)", "(b)<-[r:R]-(a:A {x: 1})"), {})
