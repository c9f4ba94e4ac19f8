"""One pattern under the four match modes: what may be matched twice, and how that changes a count.

The pattern is a path over three borders, a - b - c - d.  A border stands in the data twice, once from each side, and
the pattern asks for both.

- REPEATABLE ELEMENTS (homomorphism, as in SPARQL) lets the path turn back: a - b - a - b counts.
- DIFFERENT EDGES (openCypher's, the default) crosses no border twice; but a path may end where it began, a - b - c - a.
- DIFFERENT NODES (subgraph isomorphism) wants four different countries.
- INDUCED wants in addition that the four have no further border among them.

Each is stricter than the one before.
"""

import graphdb
from graphdb.data import GEOGRAPHY

MODES = ("REPEATABLE ELEMENTS", "DIFFERENT EDGES", "DIFFERENT NODES", "INDUCED")

with graphdb.connect() as db:
    db.load(GEOGRAPHY)
    for mode in MODES:
        count = db.query(f"""
            MATCH {mode}
              (a:Country)-[:neighbour]->(b:Country)-[:neighbour]->(c:Country)-[:neighbour]->(d:Country),
              (b)-[:neighbour]->(a), (c)-[:neighbour]->(b), (d)-[:neighbour]->(c)
            RETURN count(*)
        """).scalar()
        print(f"{mode:20} {count:7,} paths of three borders")
