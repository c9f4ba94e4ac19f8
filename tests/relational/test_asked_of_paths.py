"""What is asked of paths of several lengths after a WITH: of each length the same type, however it is computed there."""

from __future__ import annotations

from collections import Counter

import pytest

import graphdb
from tests.oracle.routes import bag, every_route

AGES = [1, 2, 1, 3]
EDGES = [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("quantifier", ["any", "all", "none", "single"])
@pytest.mark.parametrize("least", [0, 1])
def test_quantifiers_over_paths_that_a_clause_hands_on(quantifier: str, least: int) -> None:
    """A single vertex is asked by its own condition, several by how many fulfil it."""
    paths = [[v] for v in range(4) if not least] + [list(e) for e in EDGES] + [[0, 1, 2], [1, 2, 3]]
    count = {"any": lambda n, of: n > 0, "all": lambda n, of: n == of, "none": lambda n, of: n == 0}
    test = count.get(quantifier, lambda n, of: n == 1)
    expected = Counter(
        repr((AGES[path[0]], test(sum(AGES[v] == 1 for v in path), len(path)), AGES[path[0]] if path[0] else 0))
        for path in paths
    )
    text = (
        f"MATCH p = (a:P)-[:E*{least}..2]->(b) WITH p, a RETURN a.age, {quantifier}(v IN nodes(p) WHERE v.age = 1) AS x, "
        f"CASE WHEN a.i = 0 THEN 0 ELSE a.age END AS y"
    )
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(0, 3) AS i CREATE (:P {i: i, age: $ages[i]})", ages=AGES)
        db.query("MATCH (a:P), (b:P {i: a.i + 1}) CREATE (a)-[:E]->(b)")
        assert bag(db.query(text).fetchall()) == expected
        found = every_route(db, text)
        assert found == dict.fromkeys(found, expected)
        [[n]] = db.query(
            f"MATCH p = (a:P)-[:E*{least}..2]->(b) WITH p, b RETURN sum(CASE WHEN {quantifier}(v IN nodes(p) WHERE v.age = 1) THEN 1 ELSE 0 END)"
        ).fetchall()
        assert n == sum(test(sum(AGES[v] == 1 for v in path), len(path)) for path in paths)
