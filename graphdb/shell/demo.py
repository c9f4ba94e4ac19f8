"""``graphdb demo``: the shipped data set, a few statements on it, each printed before its answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from graphdb.data import GEOGRAPHY
from graphdb.shell.repl import Shell
from graphdb.shell.terminal import PROMPT

if TYPE_CHECKING:
    from graphdb.database import Database

STORY = (
    (
        "Who borders Switzerland?  A vertex label, a property, an edge label.",
        """MATCH (:Country {name: 'Switzerland'})-[:neighbour]->(n:Country)
RETURN n.name AS neighbour, n.population AS population ORDER BY population DESC;""",
    ),
    (
        "Three countries that border each other: a triangle, found by subgraph matching.",
        """MATCH (a:Country)-[:neighbour]->(b:Country)-[:neighbour]->(c:Country)-[:neighbour]->(a)
RETURN a.name AS country, count(*) / 2 AS triangles ORDER BY triangles DESC, country LIMIT 5;""",
    ),
    (
        "Neighbours with the same currency: the answer becomes a table of the same file.",
        """CREATE TABLE currency_borders AS
MATCH (a:Country)-[:neighbour]->(b:Country), (a)-[:currency]->(m:Currency)<-[:currency]-(b)
RETURN a.name AS country, b.name AS neighbour, m.identifier AS currency;""",
    ),
    (
        "SQL on that table, by DuckDB.",
        """SELECT currency, count(*) // 2 AS borders, count(DISTINCT country) AS countries
FROM currency_borders GROUP BY currency ORDER BY borders DESC, currency LIMIT 5;""",
    ),
)
"""What is shown: a remark, and the statement it is about."""


def tell(database: Database, output: TextIO | None = None) -> int:
    """Load the data set and run the story; returns 0, or 1 if a statement failed."""
    output = output or sys.stdout
    shell = Shell(database, output)
    shell.timer = True
    quoted = str(GEOGRAPHY).replace("'", "''")
    opening = ("The world's countries and cities, from GeoNames (CC BY 4.0), as N-Triples.", f"LOAD '{quoted}';")
    for remark, statement in (opening, *STORY):
        print(f"-- {remark}", file=output)
        print(PROMPT + statement.replace("\n", "\n" + " " * len(PROMPT)), file=output, flush=True)
        if not shell.accept(statement):
            return 1
        print(file=output)
    return 0
