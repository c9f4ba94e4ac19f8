"""The data sets and queries of the benchmarks, in a form that every engine can translate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.datasets import SHARED, pattern_query

FILES = {
    "watdiv": "watdiv/watdiv.sf1.nt.gz",
    "lubm": "lubm/lubm.u1.nt.gz",
    "lsqb": "lsqb/lsqb-sf0.1.nt.gz",
    "wikidata": "wikidata/wikidata-1hop.nt.gz",
}

Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Query:
    """A conjunction of triple patterns under homomorphism; terms are ``?x`` or ``<iri>``.

    A predicate that ends in ``>~`` is matched in both directions.  ``differ`` are pairs of variables that must not
    be the same, ``absent`` a triple pattern that must not hold.
    """

    name: str
    text: str
    """In our language."""
    patterns: tuple[Triple, ...]
    count: int | None
    differ: tuple[tuple[str, str], ...] = ()
    absent: Triple | None = None


def source(name: str) -> Path:
    """Return a data set's file."""
    path = SHARED / "data" / FILES[name]
    if not path.exists():
        raise SystemExit(f"{path} is not here; set GRAPHDB_SHARED to the folder with the shared data sets")
    return path


def queries(name: str) -> list[Query]:
    """Return a data set's queries with their known counts."""
    found = json.loads((source(name).parent / "queries.json").read_text())["queries"]
    if name == "lsqb":
        return [_lsqb(query["name"], query["query"], query["count"]) for query in found]
    return [
        Query(q["name"], pattern_query(q), tuple((s, p, o) for s, p, o in q["patterns"]), q["count"]) for q in found
    ]


def _lsqb(name: str, text: str, count: int) -> Query:
    """LSQB's Cypher as triple patterns; ``knows`` is undirected and stored once.

    The classes are left out, to the peers' favour: here they follow from the edges.  Nor do Cypher's distinct edges
    need a word: in q3 no two edges can be the same, in q6 and q9 person1 <> person3 says it.
    """

    def edge(subject: str, predicate: str, object: str) -> Triple:
        undirected = "~" if predicate == "knows" else ""
        return subject, f"<http://ldbcouncil.org/lsqb/{predicate}>{undirected}", object

    patterns = [edge("?person1", "knows", "?person2"), edge("?person2", "knows", "?person3")]
    if name == "q3":
        patterns.append(edge("?person3", "knows", "?person1"))
        for i in (1, 2, 3):
            patterns += [edge(f"?person{i}", "isLocatedIn", f"?city{i}"), edge(f"?city{i}", "isPartOf", "?country")]
        return Query(name, text, tuple(patterns), count)
    patterns.append(edge("?person3", "hasInterest", "?tag"))
    absent = edge("?person1", "knows", "?person3") if name == "q9" else None
    return Query(name, text, tuple(patterns), count, (("?person1", "?person3"),), absent)
