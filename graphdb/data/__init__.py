"""The data set that travels with graphdb: countries, cities, currencies and languages, from GeoNames (CC BY 4.0).

``README.md`` beside this file says where it comes from and what stands in it; ``build_geography.py`` makes it.
"""

from __future__ import annotations

from pathlib import Path

GEOGRAPHY = Path(__file__).with_name("geography.nt.gz")
"""The shipped data set: N-Triples, compressed with gzip."""

PREFIXES = {
    "gn": "http://www.geonames.org/ontology#",
    "schema": "https://schema.org/",
    "dbo": "http://dbpedia.org/ontology/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
}
"""The vocabularies that the data set uses, by their customary prefixes."""
