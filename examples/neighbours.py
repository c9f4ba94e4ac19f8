"""Load RDF, match a pattern, keep the answer as a table, ask SQL about it.

Run it with ``python examples/neighbours.py``; it takes seconds and leaves nothing behind.
"""

import graphdb
from graphdb.data import GEOGRAPHY

with graphdb.connect() as db:
    report = db.load(GEOGRAPHY)
    print(f"{report.triples:,} triples loaded in {report.seconds:.2f} s\n")

    # Three countries that border each other form a triangle.  Names order its corners, so each is found once.
    db.query("""
        CREATE TABLE triangles AS
        MATCH (a:Country)-[:neighbour]->(b:Country)-[:neighbour]->(c:Country), (a)-[:neighbour]->(c)
        WHERE a.name < b.name AND b.name < c.name
        RETURN a.name AS a, b.name AS b, c.name AS c, a.population + b.population + c.population AS people
    """)

    print("The most populous three neighbours:")
    db.sql("SELECT a, b, c, people FROM triangles ORDER BY people DESC LIMIT 3").show()

    print("\nCountries in most triangles:")
    db.sql("""
        SELECT country, count(*) AS triangles
        FROM (SELECT unnest([a, b, c]) AS country FROM triangles)
        GROUP BY country ORDER BY triangles DESC, country LIMIT 5
    """).show()
