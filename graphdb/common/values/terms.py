"""RDF terms in the file: how ids tell literals from resources, and what kinds of literals there are."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from urllib.parse import quote, unquote

LITERAL_BASE = 1 << 40
"""The id of the first literal."""

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = RDF + "type"
RDF_REIFIES = RDF + "reifies"
XSD = "http://www.w3.org/2001/XMLSchema#"

DEFAULT_NAMESPACE = "urn:graphdb:"
"""Where names live that no RDF gave an IRI; they are written bare."""

_SAFE = "-A-Za-z0-9._~!$&'()*+,;=:@/?#\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16 | (0x1000 if plane == 14 else 0))}-{chr(plane << 16 | 0xFFFD)}" for plane in range(1, 15)
)
"""The characters of an IRI's path, query and fragment (RFC 3987, section 2.2), without ``%``."""

UNSAFE = f"[^{_SAFE}]|#[^#]*#"
"""What a name in our namespace has percent-encoded, for Python and for RE2: what cannot stand in an IRI, such as
brackets or a second ``#``, and the sign itself."""

VERTEX = "urn:x-graphdb:vertex"
"""The class of every vertex that CREATE made: a vertex without labels, properties and edges is there by this alone."""

LIST_DATATYPE = "http://w3id.org/awslabs/neptune/SPARQL-CDTs/List"
"""The datatype of lists as values (SPARQL CDTs: composite datatypes in RDF, §3)."""

ZONED_DATATYPE = "urn:x-graphdb:zonedDateTime"
"""The datatype of a date and time in a zone that has a name: xsd:dateTime knows offsets only."""

IRI, BLANK, PLAIN, TAGGED, TYPED, DATATYPE, LANGUAGE = range(7)
"""What a term of a batch is; the last two are no terms themselves but the notes of literals."""


class Kind(IntEnum):
    """How the value of a literal is stored, hence with what it can be compared.

    A literal whose lexical form is not one of its datatype (``"abc"^^xsd:integer``) is of kind OTHER.
    ``number`` is set for INTEGER, DECIMAL and DOUBLE, to the nearest double.
    """

    STRING = 0
    """xsd:string; the value is the lexical form."""
    LANGSTRING = 1
    """rdf:langString, with a language."""
    INTEGER = 2
    """xsd:integer and the types derived from it, within 64 bits: ``integer``."""
    DECIMAL = 3
    """xsd:decimal, and integers beyond 64 bits, with at most 20 digits before and 18 after the point, read from the
    text."""
    DOUBLE = 4
    """xsd:double, xsd:float, and what is too long for DECIMAL; INF and NaN included: ``number``."""
    BOOLEAN = 5
    """xsd:boolean: ``moment``, 0 or 1."""
    DATE = 6
    """xsd:date without a time zone: ``moment``."""
    DATETIME = 7
    """xsd:dateTime without a time zone, to the microsecond: ``moment``."""
    ZONED = 8
    """xsd:dateTime with a time zone, to the microsecond: ``moment``, a point in time."""
    TIME = 9
    """xsd:time without a time zone, to the microsecond: ``moment``."""
    OTHER = 10
    """Any other datatype; the value is the lexical form."""
    LIST = 11
    """A list as one value (:data:`LIST_DATATYPE`); SQL sees the lexical form."""
    TEMPORAL = 12
    """A temporal value that DuckDB has no type for: a duration, a time with a zone, what is finer than a microsecond,
    a date and time in a zone that has a name.  SQL sees the lexical form."""


VALUE_SQL = dict.fromkeys(Kind, "{0}.text") | {
    Kind.INTEGER: "{0}.integer",
    Kind.DOUBLE: "{0}.number",
    **{
        kind: f"CASE WHEN {{0}}.kind = {kind:d} THEN {sql} END"
        for kind, sql in {
            Kind.DECIMAL: "TRY_CAST({0}.text AS DECIMAL(38, 18))",
            Kind.BOOLEAN: "{0}.moment = 1",
            Kind.DATE: "DATE '1970-01-01' + TRY_CAST({0}.moment AS INTEGER)",
            Kind.DATETIME: "make_timestamp({0}.moment)",
            Kind.ZONED: "make_timestamptz({0}.moment)",
            Kind.TIME: "TIME '00:00:00' + to_microseconds({0}.moment)",
        }.items()
    },
}
"""SQL for the value of a row ``{0}`` of the table ``literal``, by kind; that of another kind may be NULL.

``moment`` has dates by days since 1970, and times by microseconds since then or since midnight."""


@lru_cache(1024)
def default_iri(name: str) -> str:
    """Return the IRI of a name that no RDF gave one.

    >>> default_iri("name"), default_iri("date of birth"), default_iri("scores[0]")
    ('urn:graphdb:name', 'urn:graphdb:date%20of%20birth', 'urn:graphdb:scores%5B0%5D')
    """
    return DEFAULT_NAMESPACE + (quote(name, safe="") if re.search(UNSAFE, name) else name)


def default_name(iri: str) -> str:
    """Return the name that has an IRI of our namespace: what :func:`default_iri` made it of."""
    name = iri[len(DEFAULT_NAMESPACE) :]
    return unquote(name) if "%" in name else name


def escaped(text: str) -> str:
    """SQL for a text with the escapes of N-Triples; ``text`` is SQL."""
    for character, written in (("'\\'", "'\\\\'"), ("'\"'", "'\\\"'"), ("chr(10)", "'\\n'"), ("chr(13)", "'\\r'")):
        text = f"replace({text}, {character}, {written})"
    return text
