"""Several subqueries of one clause, each of any kind and in any place, against brute force in NumPy.

All of them are joined with one table of the rows, unless a condition that one decides leaves fewer rows for the others.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import graphdb
from tests.fuzz import scaled

VERTICES = 12
Matrix = NDArray[np.int64]
K, L = (np.argwhere(np.random.default_rng(seed).random((VERTICES, VERTICES)) < 0.2) for seed in (1, 2))


def _matrix(edges: Matrix) -> Matrix:
    found = np.zeros((VERTICES, VERTICES), np.int64)
    found[edges[:, 0], edges[:, 1]] = 1
    return found


HAS_K, HAS_L = _matrix(K), _matrix(L)
AT = np.arange(VERTICES)
W = (5 * AT[:, None] + 3 * AT) % 11
"""A property of the edges of K, by their ends."""


def _first_few(a: int) -> int:
    """Return the second and third of a vertex's neighbours, those of the greatest rests by 3 first, as one number."""
    found = 0
    for each in sorted(np.flatnonzero(HAS_K[a]), key=lambda each: (-(each % 3), each))[1:3]:
        found = 20 * found + int(each)
    return found


SUBQUERIES: list[tuple[str, Callable[[int], Any]]] = [
    ("COUNT { (a)-[:K]->() }", lambda a: int(HAS_K[a].sum())),
    ("COUNT { MATCH (a)<-[:K]-(x) WHERE x.id > a.id }", lambda a: int(HAS_K[a + 1 :, a].sum())),
    ("EXISTS { (a)-[:L]->() }", lambda a: bool(HAS_L[a].any())),
    ("EXISTS { MATCH (a)-[:L]->(x) WHERE x.id < 4 }", lambda a: bool(HAS_L[a, :4].any())),
    ("size([(a)-[:K]->(x) | x.id])", lambda a: int(HAS_K[a].sum())),
    ("reduce(t = 0, i IN [(a)-[:L]->(x) | x.id] | t + i)", lambda a: int(HAS_L[a] @ np.arange(VERTICES))),
    ("size(COLLECT { MATCH (a)-[:K]->()-[:L]->(x) RETURN DISTINCT x.id })", lambda a: int((HAS_K @ HAS_L)[a].astype(bool).sum())),
    ("COUNT { MATCH (a)-[:K]->(x) WITH x.id % 3 AS rest, count(*) AS n RETURN rest }", lambda a: len(set(np.flatnonzero(HAS_K[a]) % 3))),
    ("COUNT { MATCH (x:P) WHERE x.id < 5 RETURN x }", lambda a: 5),
    ("COUNT { MATCH (a)-[:K]->(x) RETURN x UNION MATCH (a)-[:K]->()-[:L]->(x) RETURN x }", lambda a: int((HAS_K + HAS_K @ HAS_L)[a].astype(bool).sum())),
    ("reduce(t = 0, i IN COLLECT { MATCH (a)-[:K]->(x) RETURN x.id ORDER BY x.id % 3 DESC, x.id SKIP 1 LIMIT 2 } | 20 * t + i)", lambda a: _first_few(a)),
    ("size([(a)-[r:L]->(x) WHERE x.id < a.id OR size([(x)-[:K]->(y) | y]) = 0 | r])", lambda a: int((HAS_L[a] & ((np.arange(VERTICES) < a) | (HAS_K.sum(axis=1) == 0))).sum())),
    ("COUNT { MATCH (a)-[r:K]->() WHERE r.w > a.id }", lambda a: int((HAS_K[a] & (W[a] > a)).sum())),
    ("EXISTS { MATCH (a)-[r:K]->(x) WHERE r.w < a.id - x.id }", lambda a: bool((HAS_K[a] & (W[a] < a - AT)).any())),
    ("reduce(t = 0, i IN [(a)-[r:K]->(x) WHERE r.w + a.id > x.id | 10 * r.w + x.id] | t + i)", lambda a: int((HAS_K[a] & (W[a] + a > AT)) @ (10 * W[a] + AT))),
]  # fmt: skip
"""What is asked of a vertex, and what it is."""


@pytest.fixture(scope="module")
def database() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.load(
            [
                graphdb.Table(pa.table({"id:ID": np.arange(VERTICES)}), label="P"),
                graphdb.Table(pa.table({":START_ID": K[:, 0], ":END_ID": K[:, 1], "w": W[K[:, 0], K[:, 1]]}), type="K"),
                graphdb.Table(pa.table({":START_ID": L[:, 0], ":END_ID": L[:, 1]}), type="L"),
            ]
        )
        yield opened


def _condition(dice: random.Random, asked: list[tuple[str, Callable[[int], Any]]]) -> tuple[str, Callable[[int], bool]]:
    """Return a condition on some subqueries, and whether it holds: numbers over 1, truths that are true."""
    operator, whether = dice.choice([("AND", all), ("OR", any)])
    texts = [text if text.startswith("EXISTS") else f"{text} > 1" for text, _ in asked]

    def holds(a: int) -> bool:
        return whether(value(a) > (0 if text.startswith("EXISTS") else 1) for text, value in asked)

    return f" {operator} ".join(texts), holds


def test_any_of_them(database: graphdb.Database) -> None:
    dice = random.Random(7)
    for _ in range(scaled(60)):
        asked, tested = dice.sample(SUBQUERIES, dice.randint(2, 4)), dice.sample(SUBQUERIES, dice.randint(1, 3))
        items = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(asked))
        columns = ", ".join(f"c{i}" for i in range(len(asked)))
        condition, holds = _condition(dice, tested)
        text = dice.choice(
            [
                f"MATCH (a:P) WHERE {condition} RETURN a.id AS id, {items}",
                f"MATCH (a:P) WITH a, {items} WHERE {condition} RETURN a.id AS id, {columns}",
                f"MATCH (a:P) WITH DISTINCT a WHERE {condition} WITH a AS a, a.id AS id RETURN id, {items}",
                f"UNWIND range(0, {VERTICES - 1}) AS i MATCH (a:P {{id: i}}) WHERE {condition} RETURN i AS id, {items}",
            ]
        )
        found = sorted(database.query(text).fetchall())
        wanted = [(a, *(value(a) for _, value in asked)) for a in range(VERTICES) if holds(a)]
        assert found == wanted, text


def _tables_of_rows(plan: str) -> int:
    """How many tables are made of the query's rows: not of a subquery's matches, which say of which row they are, or are
    counted for the rows.
    """
    made = [line for line in plan.splitlines() if line.startswith("rows")]
    counted = re.findall(r"^group join with (\w+)", plan, re.MULTILINE)
    of_rows = [line for line in made if not any(f" FROM {view} b" in line for view in counted)]
    return sum(not line.partition(": ")[2].startswith("SELECT b.row AS c0") for line in of_rows)


def test_one_table_for_all(database: graphdb.Database) -> None:
    items = [f"{text} AS c{i}" for i, (text, _) in enumerate(SUBQUERIES[:6])]
    plan = database.explain(f"MATCH (a:P) RETURN a.id, {', '.join(items)}")
    assert _tables_of_rows(plan) == 0  # the match's own rows are that table
    plan = database.explain(f"MATCH (a:P) WITH DISTINCT a WITH a, {', '.join(items)} RETURN count(*)")
    assert _tables_of_rows(plan) == 1


def test_what_a_condition_decides_comes_first(database: graphdb.Database) -> None:
    plan = database.explain(f"MATCH (a:P) WITH a WHERE {SUBQUERIES[3][0]} AND {SUBQUERIES[1][0]} > 1 RETURN count(*)")
    assert _tables_of_rows(plan) == 1
