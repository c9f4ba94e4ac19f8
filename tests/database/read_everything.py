"""Everything that reads a file, asked of one after the other: ``python -m tests.database.read_everything FILE…``.

A line ``FILE path`` is printed before each, and ``BAD path what error`` for what fails otherwise than it should.
"""

from __future__ import annotations

import io
import pathlib
import sys
import traceback
from collections.abc import Callable
from typing import Any

import graphdb

GRAPH = """
<e:reified> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <e:a> <e:said> <e:b> )>> .
<e:reified> <e:certainty> "0.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .
"""

QUERIES = (
    "MATCH (a)-[:KNOWS]->(b)-[:KNOWS]->(c), (a)<-[:KNOWS]-(c) RETURN count(*)",
    "MATCH (a)-[]->(b) RETURN count(*)",
    "MATCH (a)--(b)--(c) RETURN a, c",
    "MATCH (a:Person)-[r:KNOWS]->(b) RETURN a, r, b.name, r.since ORDER BY r.since",
    "MATCH REPEATABLE ELEMENTS (a)-[r]->(b)<-[s]-(c) RETURN count(*)",
    "MATCH INDUCED (a:Person)-[]-(b)-[]-(c) RETURN count(*)",
    "MATCH p = (a:Person)-[*1..3]->(b) RETURN p, length(p)",
    "MATCH ANY SHORTEST (a {name: 'Ada'})-[]->*(b) RETURN b",
    "MATCH (a) WHERE a.age > 30 OR a.name STARTS WITH 'A' RETURN a",
    "MATCH (a) WHERE NOT EXISTS { (a)-[:KNOWS]->() } RETURN a.name, labels(a)",
    "MATCH (a)-[r {since: 1833}]->(b) RETURN r, type(r)",
    "MATCH (a)-[:<e:said>]->(b) RETURN a, b",
    "MATCH (a {name: 'Ada'}) OPTIONAL MATCH (a)-[:KNOWS]->(b) WITH a, collect(b.age) AS ages RETURN a.name, ages",
    "MATCH (a) RETURN labels(a), count(*), avg(a.age), max(a.height), collect(a.born)",
    "MATCH (a)-[r]->(b) RETURN DISTINCT type(r), properties(a)",
)

WRITES = (
    "CREATE (:Person {name: 'New', age: 3})-[:KNOWS {since: 1}]->(:City)",
    "MATCH (a:Person) SET a.seen = true, a.age = a.age + 1",
    "MATCH (a)-[r:KNOWS]->(b) DELETE r",
    "MERGE (a:Person {name: 'Ada'}) ON MATCH SET a.height = 2.5",
    "MATCH (a:Person) DETACH DELETE a",
)


def make(path: pathlib.Path) -> None:
    """Make a small file that has rows in all tables."""
    with graphdb.connect(path, device="cpu") as db:
        db.query(
            "CREATE (a:Person {name: 'Ada', age: 36, height: 1.5, born: date('1815-12-10')}),"
            " (b:Person:Engineer {name: 'Charles', age: 79}), (c:Person {name: 'Mary', age: 53, langs: ['en', 'fr']}),"
            " (d:City {name: 'London'}), (a)-[:KNOWS {since: 1833}]->(b), (b)-[:KNOWS {since: 1828}]->(c),"
            " (c)-[:KNOWS]->(a), (a)-[:LIVES]->(d), (b)-[:LIVES]->(d), (a)-[:WROTE]->(b), (a)-[:WROTE]->(b)"
        )
        db.load(io.BytesIO(GRAPH.encode()), format="nt")
        db.load(io.BytesIO(b'<e:a> <e:said> <e:c> <e:g> .\n<e:a> <e:p> "x"@en <e:g> .\n'), format="nq")


def actions(path: pathlib.Path) -> dict[str, Callable[[Any], object]]:
    """What is done with a file, in this order."""
    made: dict[str, Callable[[Any], object]] = {}
    for text in (*QUERIES, *QUERIES):  # twice: from the file, then from what was derived
        made[text + " " * (text in made)] = lambda db, text=text: [*db.query(text)]
    made["sql"] = lambda db: db.sql("SELECT * FROM triples").fetchall()
    made["cypher"] = lambda db: db.sql(f"SELECT count(*) FROM cypher($${QUERIES[3]}$$)").fetchall()
    made["explain"] = lambda db: db.query("PROFILE " + QUERIES[0]).fetchall()
    made["names"] = lambda db: (db.vertex_labels(), db.edge_labels(), db.prefixes(), db.tables())
    made["networkx"] = lambda db: db.to_networkx(graphs="union")
    for suffix in ("nt", "trig", "graphml", "parquet"):
        target = path.with_suffix("." + suffix)
        made[suffix] = lambda db, target=target: db.export(target, graphs="union" if target.suffix != ".trig" else None)
    made["load"] = lambda db: db.load(io.BytesIO(b'<e:a> <e:said> <e:z> .\n<e:z> <e:p> "w" .\n'), format="nt")
    many = "".join(f'<e:{i}> <e:said> <e:{i % 7}> .\n<e:{i}> <e:p> "w{i}" .\n' for i in range(20_000))
    made["bulk"] = lambda db: db.load(io.BytesIO(many.encode()), format="nt")
    for text in WRITES:
        made[text] = lambda db, text=text: db.query(text)
    return made


def main() -> None:
    """Ask all files."""
    for name in sys.argv[1:]:
        print("FILE", name, flush=True)
        path = pathlib.Path(name)
        try:
            db = graphdb.connect(path, device="cpu", threads=2, memory_limit="1GB")
        except graphdb.GraphDBError as error:
            print("refused", str(error).splitlines()[0])
            continue
        with db:
            for what, action in actions(path).items():
                try:
                    action(db)
                except graphdb.GraphDBError as error:
                    print("told", what[:30], str(error).splitlines()[0])
                except BaseException as error:
                    place = traceback.extract_tb(error.__traceback__)[-1]
                    print(
                        "BAD", name, repr(what[:60]), repr(error)[:200], f"{place.filename}:{place.lineno}", flush=True
                    )


if __name__ == "__main__":
    main()
