"""Circles in a stream of edges, as those who look for fraud follow payments: the graph changes, the answer follows.

The edges are the borders of the shipped geography, each one way, in the order of the file.  They come thirty at a time,
and go again when a hundred and twenty others have come: a sliding window.  A continuous query reports each circle of
three as it closes, and as it opens again; only what a batch changes is matched.
Run it with ``python examples/circles.py``; it takes seconds and leaves nothing behind.
"""

from __future__ import annotations

import gzip

import graphdb
from graphdb.data import GEOGRAPHY

WINDOW, BATCH = 120, 30


def borders() -> list[tuple[str, str, str]]:
    """Return the borders one way: from the country whose IRI is greater, and back from every third."""
    with gzip.open(GEOGRAPHY, "rt", encoding="utf-8") as lines:
        words = [line.split(" ")[:3] for line in lines]
    found = [(s, o) for s, p, o in words if p.endswith("#neighbour>") and s > o]
    return [(o, "paid", s) if number % 3 == 0 else (s, "paid", o) for number, (s, o) in enumerate(found)]


def main() -> None:
    """Stream the edges, and print what the query reports of each batch."""
    stream = borders()
    with graphdb.connect() as db:
        db.query(
            "CREATE CONTINUOUS QUERY circles AS"
            " MATCH (a)-[:paid]->(b)-[:paid]->(c)-[:paid]->(a) WHERE iri(a) < iri(b) AND iri(a) < iri(c)"
            " RETURN iri(a) AS a, iri(b) AS b, iri(c) AS c"
        )
        closed = opened = 0
        with db.watch("circles") as watch:
            for at in range(0, len(stream), BATCH):
                old = stream[max(at - WINDOW, 0) : max(at + BATCH - WINDOW, 0)]
                db.apply(stream[at : at + BATCH], old)
                change = watch.next(timeout=0)
                if change is not None:
                    closed, opened = closed + change.added.num_rows, opened + change.removed.num_rows
                    print(f"batch {change.batch}: {change.added.num_rows} closed, {change.removed.num_rows} opened")
        there = db.sql("SELECT count(*) FROM circles").scalar()
        print(f"{len(stream)} edges: {closed} circles closed, {opened} opened again, {there} are there")


if __name__ == "__main__":
    main()
