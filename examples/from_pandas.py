"""Twelve tasks of somebody who has data frames and DuckDB, on payments between people.

Each answer is compared with what pandas, DuckDB or NetworkX say of the same frames.
Run it with ``python examples/from_pandas.py``; it takes seconds and leaves nothing behind.  It needs pandas, PyArrow,
Polars and NetworkX.
"""

import tempfile
from pathlib import Path

import duckdb
import networkx
import numpy as np
import pandas as pd

import graphdb


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return people and what they paid each other, the same ones in every run."""
    random = np.random.default_rng(1)
    people = pd.DataFrame({"id": range(60), "country": random.choice(["DE", "FR", "US"], 60)})
    paid = pd.DataFrame({"a": random.integers(0, 60, 200), "b": random.integers(0, 60, 200)}).drop_duplicates()
    paid = paid[paid.a != paid.b].reset_index(drop=True)
    paid["amount"] = random.integers(1, 1000, len(paid)) / 4
    paid["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, len(paid)), unit="D")
    return people, paid


def main() -> None:
    """Do them one after the other."""
    people, paid = frames()
    with tempfile.TemporaryDirectory() as folder, graphdb.connect(Path(folder) / "paid.duckdb") as db:
        # 1. Frames become vertices and edges, their columns properties.
        db.load(people, label="Person", columns={"id": "id:ID"})
        db.load(paid, type="PAID", columns={"a": ":START_ID", "b": ":END_ID"})
        assert [row[1] for row in db.labels] == [len(people)]

        # 2. A group by, as a frame.
        ours = db.query("MATCH (p:Person) RETURN p.country AS country, count(*) AS n ORDER BY country").df()
        assert ours.n.tolist() == people.groupby("country").size().tolist()

        # 3. Conditions on times.
        since = pd.Timestamp("2024-06-01")
        found = db.query(
            "MATCH ()-[p:PAID]->() WHERE p.day >= $since RETURN sum(p.amount)", since=since.to_pydatetime()
        )
        assert found.scalar() == paid.amount[paid.day >= since].sum()

        # 4. A column as a parameter.
        chosen = people.id[people.country == "DE"]
        found = db.query("MATCH (p:Person)-[:PAID]->(q) WHERE p.id IN $ids RETURN count(*)", ids=chosen)
        assert found.scalar() == paid.a.isin(chosen).sum()

        # 5. Circles of three: a pattern here, a join of three tables there.
        circles = db.query("MATCH (a)-[:PAID]->(b)-[:PAID]->(c)-[:PAID]->(a) RETURN count(*)").scalar()
        joined = """SELECT count(*) FROM paid x JOIN paid y ON x.b = y.a JOIN paid z ON y.b = z.a AND z.b = x.a"""
        assert circles == duckdb.sql(joined).fetchall()[0][0]

        # 6. SQL over a pattern, joined with a frame.
        limits = pd.DataFrame({"country": ["DE", "FR", "US"], "most": [100.0, 200.0, 150.0]})
        over = db.sql(
            """SELECT count(*) FROM limits JOIN
               (MATCH (p:Person)-[e:PAID]->() RETURN p.country AS country, e.amount AS amount) USING (country)
               WHERE amount > most"""
        ).scalar()
        merged = paid.merge(people, left_on="a", right_on="id").merge(limits, on="country")
        assert over == (merged.amount > merged.most).sum()

        # 7. A view over a pattern, and ISO's GRAPH_TABLE.
        db.query("CREATE VIEW large AS MATCH (p)-[e:PAID]->(q) WHERE e.amount > 200 RETURN p.id AS a, q.id AS b")
        iso = "FROM GRAPH_TABLE (g MATCH (p)-[e:PAID]->(q) WHERE e.amount > 200 COLUMNS (p.id AS a, q.id AS b))"
        rows = sorted(paid[paid.amount > 200][["a", "b"]].itertuples(index=False, name=None))
        assert sorted(db.sql("FROM large").fetchall()) == sorted(db.sql(iso).fetchall()) == rows

        # 8. To Parquet, and back as DuckDB reads it.
        target = Path(folder) / "out.parquet"
        db.sql(f"COPY (MATCH (p)-[e:PAID]->() RETURN p.id AS a, e.amount AS amount) TO '{target}' (FORMAT parquet)")
        assert duckdb.read_parquet(str(target)).aggregate("sum(amount)").fetchall() == [(paid.amount.sum(),)]

        # 9. To Polars, vertices and edges as structs.
        structs = db.query("MATCH (p:Person)-[e:PAID]->() RETURN p, e").pl()
        assert structs["e"].struct.field("properties").struct.field("amount").sum() == paid.amount.sum()

        # 10. To NetworkX, whatever it is good for.
        network = db.query("MATCH (p)-[e:PAID]->(q) RETURN p, e, q").to_networkx()
        own = networkx.from_pandas_edgelist(paid, "a", "b", create_using=networkx.DiGraph)
        assert networkx.number_weakly_connected_components(network) == networkx.number_weakly_connected_components(own)

        # 11. Who can be reached in three steps.
        reached = db.query("MATCH (:Person {id: 0})-[:PAID*1..3]->(q) RETURN DISTINCT q.id AS id").df()
        lengths = networkx.single_source_shortest_path_length(own, 0, cutoff=3) if 0 in own else {}
        assert set(reached.id) - {0} == set(lengths) - {0}

        # 12. Piece by piece, for what is too large for one frame.
        sizes = [len(batch) for batch in db.query("MATCH (p)-[:PAID]->(q) RETURN p.id, q.id").fetch_batches(50)]
        assert sum(sizes) == len(paid)
        assert max(sizes) <= 50
    print("12 tasks done")


if __name__ == "__main__":
    main()
