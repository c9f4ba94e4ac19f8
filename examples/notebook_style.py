"""As in a notebook: results as data frames, parameters, and SQL over data frames and results together."""

import pandas as pd

import graphdb
from graphdb.data import GEOGRAPHY

db = graphdb.connect()
db.load(GEOGRAPHY)

# Parameters are values, never text; a result is Arrow inside, and a data frame when asked.
large = db.query(
    """
    MATCH (c:City)-[:parentCountry]->(k:Country)-[:parentFeature]->(:Continent {name: $continent})
    WHERE c.population > $least
    RETURN c.name AS city, k.name AS country, c.population AS people
    """,
    continent="Europe",
    least=1_000_000,
)
cities = large.to_pandas()
print(f"{len(cities)} cities of Europe have more than a million inhabitants; the largest:")
print(cities.nlargest(3, "people").to_string(index=False), "\n")

# SQL finds data frames and results by the names of their Python variables.
trips = pd.DataFrame({"country": ["Germany", "France", "Italy", "Spain"], "visited": [True, True, False, True]})
places = db.sql("""
    SELECT country, count(*) AS cities, sum(people) AS people
    FROM large JOIN trips USING (country) WHERE visited GROUP BY country ORDER BY people DESC
""")
print(places.to_pandas().to_string(index=False), "\n")

# The same as Arrow, for whatever comes next.
table = places.to_arrow()
print(table.schema)

db.close()
