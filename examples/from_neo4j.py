"""Twelve tasks of somebody who knows Cypher from Neo4j or Kùzu, on films and those who made them.

Each is a statement and what it should answer, counted by hand or by Python from the rows that were loaded.
Run it with ``python examples/from_neo4j.py``; it takes seconds and leaves nothing behind.
"""

import tempfile
from itertools import combinations
from pathlib import Path

import graphdb

CAST = {
    "The Matrix": (1999, ["Keanu Reeves", "Carrie-Anne Moss", "Hugo Weaving"]),
    "John Wick": (2014, ["Keanu Reeves", "Willem Dafoe"]),
    "Speed": (1994, ["Keanu Reeves", "Sandra Bullock"]),
    "Gravity": (2013, ["Sandra Bullock", "George Clooney"]),
}
PEOPLE = sorted({name for _, cast in CAST.values() for name in cast})


def main() -> None:
    """Do them one after the other."""
    with tempfile.TemporaryDirectory() as folder, graphdb.connect(Path(folder) / "films.duckdb") as db:
        # 1. Rows of Python become a graph.
        rows = [{"title": title, "year": year, "cast": cast} for title, (year, cast) in CAST.items()]
        db.query(
            """UNWIND $rows AS row MERGE (m:Movie {title: row.title}) SET m.released = row.year
               WITH m, row UNWIND row.cast AS name MERGE (p:Person {name: name}) MERGE (p)-[:ACTED_IN]->(m)""",
            rows=rows,
        )
        assert db.labels.fetchall() == [("Person", len(PEOPLE)), ("Movie", len(CAST))]

        # 2. One more film, whoever is there already.
        db.query(
            """MATCH (k:Person {name: $star})
               CREATE (k)-[:ACTED_IN {roles: ['Johnny']}]->(:Movie {title: $title, released: 1991})""",
            star="Keanu Reeves",
            title="Point Break",
        )
        assert db.query("MATCH (:Person {name: 'Keanu Reeves'})-[:ACTED_IN]->(m) RETURN count(m)").scalar() == 4

        # 3. Filter, order, first rows.
        found = db.query("MATCH (m:Movie) WHERE m.released < 2000 RETURN m.title ORDER BY m.released LIMIT 2")
        assert found.fetchall() == [("Point Break",), ("Speed",)]

        # 4. Who acted with whom, in what.
        pairs = db.query(
            """MATCH (a:Person)-[:ACTED_IN]->(m)<-[:ACTED_IN]-(b:Person) WHERE a.name < b.name
               RETURN a.name, b.name, collect(m.title)"""
        )
        together = {tuple(sorted(pair)) for _, cast in CAST.values() for pair in combinations(cast, 2)}
        assert {row[:2] for row in pairs} == together

        # 5. The way from one to another.
        path = db.query(
            """MATCH p = shortestPath((:Person {name: 'Hugo Weaving'})-[:ACTED_IN*]-(:Person {name: 'George Clooney'}))
               RETURN [n IN nodes(p) | coalesce(n.name, n.title)]"""
        ).scalar()
        assert path[::2] == ["Hugo Weaving", "Keanu Reeves", "Sandra Bullock", "George Clooney"]

        # 6. Friends of friends: actors of no common film, with how many are between them.
        advice = db.query(
            """MATCH (a:Person {name: 'Willem Dafoe'})-[:ACTED_IN]->()<-[:ACTED_IN]-(f)-[:ACTED_IN]->()<-[:ACTED_IN]-(b)
               WHERE a <> b AND NOT (a)-[:ACTED_IN]->()<-[:ACTED_IN]-(b)
               RETURN b.name, count(DISTINCT f) AS n ORDER BY b.name"""
        )
        assert advice.fetchall() == [("Carrie-Anne Moss", 1), ("Hugo Weaving", 1), ("Sandra Bullock", 1)]

        # 7. A map for each film, its cast a list.
        films = db.query("MATCH (m:Movie) RETURN m {.title, cast: [(m)<-[:ACTED_IN]-(p) | p.name]} AS film").to_dicts()
        assert {row["film"]["title"]: sorted(row["film"]["cast"]) for row in films} == {
            **{title: sorted(cast) for title, (_, cast) in CAST.items()},
            "Point Break": ["Keanu Reeves"],
        }

        # 8. How many, per vertex, none included.
        counts = db.query(
            "MATCH (p:Person) RETURN p.name, COUNT { (p)-[:ACTED_IN]->(m:Movie WHERE m.released > 2000) } AS n"
        )
        assert dict(counts.fetchall()) == {
            name: sum(name in cast for year, cast in CAST.values() if year > 2000) for name in PEOPLE
        }

        # 9. MERGE says what it did.
        merged = db.query(
            "MERGE (p:Person {name: 'Keanu Reeves'}) ON CREATE SET p.new = true ON MATCH SET p.born = 1964"
        )
        assert merged.message == "1 property set"

        # 10. A typo is no silent nothing.
        [warning] = db.query("MATCH (p:Person) WHERE p.nmae = 'Keanu Reeves' RETURN p").warnings
        assert "did you mean 'name'" in warning

        # 11. All or nothing.
        db.query("BEGIN")
        db.query("MATCH (p:Person) DETACH DELETE p")
        db.query("ROLLBACK")
        assert db.query("MATCH (p:Person) RETURN count(p)").scalar() == len(PEOPLE)

        # 12. Take one away, and look at how a query runs.
        db.query("MATCH (p:Person {name: 'Willem Dafoe'}) DETACH DELETE p")
        plan = db.query("PROFILE MATCH (p:Person)-[:ACTED_IN]->(m) RETURN m.title, count(p)").plan()
        rows_of = [step["facts"]["rows"] for step in plan[0]["children"] if "binds" in step["facts"]]
        assert rows_of[-1] == str(sum(len(cast) for _, cast in CAST.values()))
    print("12 tasks done")


if __name__ == "__main__":
    main()
