"""A graph of people small enough to answer questions about by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import graphdb

XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
EX = "http://ex.org/"

DATA = f"""
<{EX}ada> {TYPE} <{EX}Person> .
<{EX}ada> {TYPE} <{EX}Woman> .
<{EX}bob> {TYPE} <{EX}Person> .
<{EX}cy> {TYPE} <{EX}Person> .
<{EX}cy> {TYPE} <{EX}Robot> .
<{EX}acme> {TYPE} <{EX}Firm> .
<{EX}ada> <{EX}knows> <{EX}bob> .
<{EX}bob> <{EX}knows> <{EX}cy> .
<{EX}cy> <{EX}knows> <{EX}ada> .
<{EX}ada> <{EX}knows> <{EX}ada> .
_:b <{EX}knows> <{EX}cy> .
<{EX}ada> <{EX}likes> <{EX}bob> .
<{EX}bob> <{EX}likes> <{EX}ada> .
<{EX}ada> <{EX}worksAt> <{EX}acme> .
<{EX}bob> <{EX}worksAt> <{EX}acme> .
<{EX}ada> <{EX}both> <{EX}acme> .
<{EX}bob> <{EX}both> "text" .
<{EX}ada> <{EX}name> "Ada" .
<{EX}bob> <{EX}name> "Bob" .
<{EX}cy> <{EX}name> "Cy" .
<{EX}acme> <{EX}name> "Acme" .
_:b <{EX}name> "Blank" .
<{EX}ada> <{EX}age> "36"^^<{XSD}integer> .
<{EX}bob> <{EX}age> "40"^^<{XSD}integer> .
<{EX}ada> <{EX}nick> "A" .
<{EX}ada> <{EX}nick> "Countess" .
<{EX}bob> <{EX}nick> "B" .
<{EX}ada> <{EX}mixed> "1"^^<{XSD}integer> .
<{EX}bob> <{EX}mixed> "one" .
<{EX}cy> <{EX}mixed> "1.5"^^<{XSD}decimal> .
<{EX}acme> <{EX}mixed> "true"^^<{XSD}boolean> .
<{EX}ada> <{EX}several> "1"^^<{XSD}integer> .
<{EX}ada> <{EX}several> "x" .
<{EX}ada> <{EX}price> "0.1"^^<{XSD}decimal> .
<{EX}bob> <{EX}price> "0.20"^^<{XSD}decimal> .
<{EX}ada> <{EX}weight> "1.5e0"^^<{XSD}double> .
<{EX}bob> <{EX}weight> "NaN"^^<{XSD}double> .
<{EX}ada> <{EX}ok> "true"^^<{XSD}boolean> .
<{EX}bob> <{EX}ok> "false"^^<{XSD}boolean> .
<{EX}ada> <{EX}born> "1815-12-10"^^<{XSD}date> .
<{EX}bob> <{EX}born> "1990-01-01"^^<{XSD}date> .
<{EX}ada> <{EX}seen> "2020-01-01T10:00:00"^^<{XSD}dateTime> .
<{EX}bob> <{EX}seen> "2020-06-01T00:00:00"^^<{XSD}dateTime> .
<{EX}ada> <{EX}zoned> "2020-01-01T10:00:00Z"^^<{XSD}dateTime> .
<{EX}bob> <{EX}zoned> "2020-01-01T11:30:00+02:00"^^<{XSD}dateTime> .
<{EX}ada> <{EX}clock> "10:30:00"^^<{XSD}time> .
<{EX}bob> <{EX}clock> "09:00:00"^^<{XSD}time> .
<{EX}ada> <{EX}motto> "hello"@en .
<{EX}ada> <{EX}motto> "bonjour"@fr .
<{EX}bob> <{EX}motto> "hi"@en .
<{EX}ada> <{EX}odd> "v"^^<{EX}myType> .
"""


def opened(tmp_path: Path, data: str = DATA, **options: Any) -> graphdb.Database:
    """A database in memory with these data."""
    file = tmp_path / "data.nt"
    file.write_text(data, encoding="utf-8")
    db = graphdb.connect(**options)
    db.load(file)
    return db


def names(db: graphdb.Database, match: str, **parameters: Any) -> list[str]:
    """The sorted names of the vertices ``a`` that a MATCH finds; "-" for none."""
    return sorted(row[0] or "-" for row in db.query(f"{match} RETURN a.name", **parameters))


def value(db: graphdb.Database, expression: str, **parameters: Any) -> Any:
    """The value of an expression."""
    return db.query(f"RETURN {expression} AS x", **parameters).scalar()
