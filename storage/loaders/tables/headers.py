"""Roles and types of a table's columns: headers in the convention of property-graph imports, and names as IRIs.

::

    :ID  :ID(Person)  name:ID        the vertex of the row; in brackets the group of its identifiers
    :LABEL                           its labels, separated by ';' (or a list)
    :START_ID  :END_ID               the ends of the row's edge, which may name a group too
    :TYPE                            its edge label
    :REIFIER                         the resource that the edge is called by, if it has one
    :REIFIER_GRAPH                   the named graph in which that resource stands for the edge
    :ASSERTED                        false where the edge is only spoken of (reified), and not in the graph
    :GRAPH                           the named graph that the row's triples are in; the default graph where it is empty
    :VALUE  :DATATYPE  :LANGUAGE     instead of an :END_ID: a literal, which is a property of :START_ID
    :IGNORE                          nothing
    age:int  names:string[]  since   a property, with or without its type
    foaf:name:string                 one whose name has a colon: with its type (an IRI such as http://x/name needs none)

Columns that are named otherwise are said by a :class:`Mapping`.  A name without namespace lives in the database's own,
and so do identifiers that are no IRIs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from typing import NoReturn

from graphdb.common.errors import LoadError, nearest
from graphdb.common.values.terms import DEFAULT_NAMESPACE, default_iri, default_name

IRI = r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*"
BLANK = r"_:[^\x00-\x20<>\"{}|^`\\]+"
TERM = r"<<\( (<[^<>]*>|_:\S+) <[^<>]*> .+ \)>>"
RDF_TEXT = f"{BLANK}|{TERM}"
"""What stands for a vertex as it does in RDF: blank nodes and triple terms."""

_UNHELD = r"[\x00-\x1F\x7F\uFFFE\uFFFF]"
"""What a name in a header or an attribute cannot have: C cuts it at the first of them, XML has no word for others."""

_TYPES = {"int": "BIGINT", "long": "BIGINT", "integer": "BIGINT", "short": "BIGINT", "byte": "BIGINT",
          "float": "DOUBLE", "double": "DOUBLE", "boolean": "BOOLEAN", "bool": "BOOLEAN", "string": "VARCHAR",
          "char": "VARCHAR", "date": "DATE", "datetime": "TIMESTAMPTZ", "localdatetime": "TIMESTAMP", "time": "TIME",
          "localtime": "TIME", "duration": "INTERVAL", "point": "VARCHAR"}  # fmt: skip
_ROLES = {"ID", "LABEL", "START_ID", "END_ID", "TYPE", "IGNORE", "REIFIER", "REIFIER_GRAPH", "ASSERTED", "GRAPH",
          "VALUE", "DATATYPE", "LANGUAGE"}  # fmt: skip
_HEADER = re.compile(r"(?P<name>.*?):(?P<word>\w+)(?P<list>\[\])?(?:\((?P<group>[^()]*)\))?(?:\{.*\})?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mapping:
    """What the columns of tables are, where their headers do not say it.

    ``columns`` gives columns other headers; ``label`` is a label of every vertex, ``type`` the label of every edge,
    where no column says them.
    """

    columns: MappingABC[str, str] = field(default_factory=dict)
    label: str | None = None
    type: str | None = None
    known: set[str] = field(default_factory=set, compare=False)
    """The names of the columns that were read so far: one mapping may be for several tables."""

    def __post_init__(self) -> None:
        """Refuse what is no mapping: a `LoadError`."""
        for what, name in (("label", self.label), ("type", self.type)):
            if name is not None and not (isinstance(name, str) and name):
                raise LoadError(f"{what} is {name!r}", hint=f"it is a name: {what}='Person'")
        texts = isinstance(self.columns, MappingABC) and all(
            isinstance(text, str) for pair in self.columns.items() for text in pair
        )
        if not texts:
            raise LoadError(f"columns is {self.columns!r}", hint="it says headers by names: columns={'person': ':ID'}")

    def read(self, names: Sequence[str]) -> list[Column]:
        """Return what the columns of these names are.

        Names that come again, in whatever case, get a number: DuckDB would not tell them apart.
        """
        self.known.update(names)
        seen = Counter(name.lower() for name in names)
        unique = [name if seen[name.lower()] == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]
        return [Column.read(column, self.columns.get(name, name)) for column, name in zip(unique, names, strict=True)]

    def check(self) -> None:
        """Refuse columns that none of the tables had: a `LoadError`."""
        for name in self.columns:
            if self.known and name not in self.known:
                found = ", ".join(sorted(self.known))
                close = nearest(name, self.known)
                hint = f"did you mean '{close[0]}'?" if close else f"the columns are {found}"
                raise LoadError(f"there is no column '{name}'", hint=hint)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name there, what it is (a role or ``""`` for a property), property, group, type."""

    column: str
    role: str
    name: str = ""
    group: str = ""
    type: str | None = None
    list: bool = False

    @classmethod
    def read(cls, column: str, header: str) -> Column:
        """Read a header.

        >>> Column.read("x", "age:int").name, Column.read("x", ":END_ID(Person)").group
        ('age', 'Person')
        """
        found = _HEADER.fullmatch(header)
        role = found["word"] if found else ""
        if found and (role in _ROLES or (not found["name"] and role.upper() in _ROLES)):
            return cls(column, role.upper(), found["name"], found["group"] or "")
        if found and found["word"].lower() in _TYPES and found["name"]:
            return cls(column, "", found["name"], type=_TYPES[found["word"].lower()], list=bool(found["list"]))
        if found and ":" not in found["name"]:
            cls._refuse(header, found)
        return cls(column, "", header)

    @staticmethod
    def _refuse(header: str, found: re.Match[str]) -> NoReturn:
        """Refuse a header with something behind its colon that is neither a role nor a type: a `LoadError`."""
        name, word = found["name"], found["word"]
        known: Collection[str] = _TYPES if name else _ROLES
        kind = "type" if name else "role"
        near = nearest(word, known)
        hint = f"did you mean {name}:{near[0]}?" if near else f"the {kind}s are {', '.join(sorted(known))}"
        if name:
            hint += f"; a property that is called '{header}' is written with its type: {header}:string"
        raise LoadError(f"unknown {kind} '{word}' of a column", text=header, position=found.start("word"), hint=hint)


def name_iri(name: str) -> str:
    """Return the IRI of a label or key: itself, or the name in the database's own namespace."""
    if re.fullmatch(IRI, name):
        return name
    return default_iri(name)


def bare_name(iri: str) -> str:
    """Return what :func:`name_iri` makes this IRI of: without our own namespace, where that is no other term.

    A name that files cannot hold (nothing, or with control characters) keeps its namespace, and with it its escapes.

    >>> [bare_name(iri) for iri in ("urn:graphdb:name", "urn:graphdb:x:y", "http://x/y", "urn:graphdb:%00")]
    ['name', 'urn:graphdb:x:y', 'http://x/y', 'urn:graphdb:%00']
    """
    name = default_name(iri) if iri.startswith(DEFAULT_NAMESPACE) else iri
    held = name and not re.search(_UNHELD, name) and not re.fullmatch(RDF_TEXT, name)
    return name if held and name_iri(name) == iri else iri
