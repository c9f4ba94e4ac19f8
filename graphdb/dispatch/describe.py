"""``DESCRIBE <iri>``: every triple that a resource is in, as SPARQL's statement of that name gives them."""

from __future__ import annotations

import re
from collections.abc import Callable

from graphdb.grammar.syntax import Span, Word
from graphdb.pattern.names import Names

_STATEMENT = re.compile(
    r"(?:\s++|--[^\n]*+\n|/\*.*?\*/)*+DESCRIBE\s+(?:<(?P<iri>[^<>\s]*)>|(?P<prefix>[^\W\d]\w*):(?P<local>[\w.-]*\w))\s*",
    re.I | re.S,
)

QUERY = """
MATCH (x) WHERE iri(x) = $iri UNWIND labels(x) AS label
RETURN iri(x) AS subject, 'a' AS predicate, label AS object
UNION ALL MATCH (x) WHERE iri(x) = $iri UNWIND keys(x) AS key UNWIND x[key] AS value
RETURN iri(x) AS subject, key AS predicate, value AS object
UNION ALL MATCH (x)-[e]->(y) WHERE iri(x) = $iri
RETURN iri(x) AS subject, type(e) AS predicate, iri(y) AS object ORDER BY predicate, object
UNION ALL MATCH (y)-[e]->(x) WHERE iri(x) = $iri AND iri(y) <> $iri
RETURN iri(y) AS subject, type(e) AS predicate, iri(x) AS object ORDER BY predicate, subject
"""
"""What gives the triples: those with the resource as subject, literals included, then those with it as object."""


def described(text: str, names: Callable[[], Names]) -> str | None:
    """Return the IRI that a statement asks to describe; None where it is DuckDB's ``DESCRIBE``, or another statement.

    ``names`` tells the database's names, where a prefix is to be read.

    Raises
    ------
    BindError
        The prefix is not declared.
    """
    found = _STATEMENT.fullmatch(text)
    if found is None:
        return None
    if found["iri"] is not None:
        return found["iri"]
    prefix, local = (Word(found[part], span=Span(*found.span(part))) for part in ("prefix", "local"))
    return names().expand(prefix, local, text)
